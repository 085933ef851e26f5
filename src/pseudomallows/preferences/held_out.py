"""Later clicks of the users of a fit, in any form, brought to its users and items."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._warn import warn
from .blocks import Clicks
from .inputs.clicks import clicks_of_pairs
from .preferences import DroppedRowsWarning, Preferences


@dataclass(frozen=True, eq=False)
class Later:
    """Later clicks with the users and items of a fit, and what was left out."""

    clicks: Clicks
    n_users: int  # who have later clicks
    n_items: int
    strange_users: int  # of these, who are not in the fit
    strange_items: int
    n_left_out: int  # clicks of strange users, or on strange items
    n_clicks: int


def check_held_out(held_out: Any, prefs: Clicks) -> Clicks:
    """Later clicks, in any form of `from_clicks`, with the items of the fit, of users of the fit.

    What the fit does not know is left out, with a warning that counts it.
    """
    given = _as_clicks(held_out, prefs, "held_out")
    users = _places(given.users, prefs.users)
    if given.items.tolist() == prefs.items.tolist() and (users >= 0).all():
        return given
    later = _bring(given, prefs, "held_out")
    if later.strange_items or later.strange_users:
        warn(
            DroppedRowsWarning(
                f"held_out: {later.strange_items} of {later.n_items} items and "
                f"{later.strange_users} of {later.n_users} users are not in the fit, so "
                f"{later.n_left_out} of {later.n_clicks} clicks are left out"
            )
        )
    return later.clicks


def later_clicks(given: Any, prefs: Clicks, what: str) -> Later:
    """The same with all users of the fit, and what was left out; nothing is warned of."""
    return _bring(_as_clicks(given, prefs, what), prefs, what)


def _bring(given: Clicks, prefs: Clicks, what: str) -> Later:
    items, users = _places(given.items, prefs.items), _places(given.users, prefs.users)
    owners, codes = np.repeat(users, given.n_clicks), items[given.codes]
    is_known = (owners >= 0) & (codes >= 0)
    if not is_known.any():
        first = [names[:1].tolist()[0] for names in (given.users, prefs.users, given.items)]
        first += prefs.items[:1].tolist()
        raise ValueError(
            "{} has no click of a user of the fit on an item of the fit; its users are like "
            "{!r}, those of the fit like {!r}; its items like {!r}, those of the fit like {!r}"
            "".format(what, *first)
        )
    times = None if given.times is None else given.times[is_known]
    names = (prefs.weights, prefs.users, prefs.items)
    found = clicks_of_pairs(owners[is_known], codes[is_known], *names, times)
    strange = int((users < 0).sum()), int((items < 0).sum())
    return Later(found, len(users), len(items), *strange, int((~is_known).sum()), len(given.codes))


def _with_other_items(held_out: Any, prefs: Clicks, what: str) -> Clicks:
    try:
        return Preferences.from_clicks(held_out)
    except ValueError as error:
        few = prefs.items[:3].tolist()
        raise ValueError(f"{what} must have items of the fit, such as {few}: {error}") from None


def _as_clicks(held_out: Any, prefs: Clicks, what: str) -> Clicks:
    """Clicks by name; a matrix, which has none, has the rows and columns of the fit."""
    if isinstance(held_out, Clicks):
        return held_out
    if isinstance(held_out, Preferences):
        raise TypeError(f"{what} must be clicks, got {held_out.kind}")
    is_named = hasattr(held_out, "columns") or isinstance(held_out, Mapping)
    if is_named and not hasattr(held_out, "tocsr"):
        try:
            return Preferences.from_clicks(held_out, items=prefs.items.tolist())
        except ValueError:  # there are other items too
            return _with_other_items(held_out, prefs, what)
    try:
        return Preferences.from_clicks(
            held_out, users=prefs.users.tolist(), items=prefs.items.tolist()
        )
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"{what} must be clicks: a file, a dict {{user: [item, ...]}}, a data frame, Clicks, "
            f"or a matrix with the users and items of the fit; {error}"
        ) from None


def _places(names: NDArray[Any], known: NDArray[Any]) -> NDArray[np.int64]:
    """Where each name stands among those that are known, -1 for a stranger."""
    places = {name: place for place, name in enumerate(known.tolist())}
    return np.array([places.get(name, -1) for name in names.tolist()], dtype=np.int64)
