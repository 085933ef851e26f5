"""Do the stated probabilities hold, on the clicks that came since the model was fitted?"""

from collections.abc import Iterator
from copy import copy

import numpy as np

from ...data.blocks import Clicks
from ...data.from_clicks import clicks_of_pairs
from ...evaluation.check import check
from ..errors import ServiceError
from ..stores.store import Pair, Store
from ..types import CheckAnswer, CheckBin
from .model import ONE, Model

MOST_USERS = 5_000  # whose clicks are looked at: the mean is known to half a point by them
MOST_CLICKS = 40 * MOST_USERS  # that are read in search of users with new ones
USERS_AT_ONCE = 100  # asked for: other readers of the store get in between
NOTHING = (
    "Nothing new to check against yet: since the model was fitted, none of its users has clicked "
    "an item that was new to them."
)


def check_model(model: Model, store: Store) -> CheckAnswer:
    """Whether the probabilities of a model hold, on the newest stored clicks."""
    if not model.clicks.n_users:
        raise ServiceError(
            404, "this model keeps no users, so it cannot know which clicks are new to them"
        )
    new = new_clicks(model, store)
    if new is None:
        return CheckAnswer(model.number, "too few", NOTHING)
    posterior = copy(model.posterior)  # its tables are of no use to requests, and go with it
    figures = check(posterior, new, executor=ONE).figures()
    bins = [CheckBin(**each) for each in figures.pop("bins")]
    return CheckAnswer(model=model.number, bins=bins, **figures)


def new_clicks(model: Model, store: Store) -> Clicks | None:
    """All stored clicks of those who clicked something new last, by the names of the model."""
    rows, codes, times = list[int](), list[int](), list[float]()
    users = list(_users_with_new(model, store))
    for first in range(0, len(users), USERS_AT_ONCE):
        for user, item, time in store.timed_clicks_of(users[first : first + USERS_AT_ONCE]):
            if _is_new(model, (user, item)):
                rows.append(model.rows[user])
                codes.append(model.codes[item])
                times.append(time)
    if not rows:
        return None
    names = model.clicks.weights, model.clicks.users, model.clicks.items
    return clicks_of_pairs(np.array(rows), np.array(codes), *names, np.array(times))


def _users_with_new(model: Model, store: Store) -> Iterator[str]:
    """Each once; all of their clicks count, so that the first of them are known."""
    seen = set[str]()
    for page in store.newest_clicks(MOST_CLICKS):
        for pair in page:
            if pair[0] not in seen and _is_new(model, pair):
                seen.add(pair[0])
                yield pair[0]
                if len(seen) == MOST_USERS:
                    return


def _is_new(model: Model, pair: Pair) -> bool:
    """Is it the click of a user of the fit on an item of the fit, and not in the fit?"""
    row, code = model.rows.get(pair[0]), model.codes.get(pair[1])
    if row is None or code is None:
        return False
    known = model.clicks.clicks_of(row)
    place = known.searchsorted(code)
    return len(known) > 0 and (place == len(known) or known[place] != code)
