"""Who is answered: users of the fit, by name, or new ones, by their clicks."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Clicks
from ..data.checks import check_known
from ..data.preferences import Preferences, rows_of_users
from ..personal.personal_fit import Fit, check_fit
from ..posterior.posterior import Posterior
from .choose_recommender import WITH_SUMS, recommender_of
from .recommender import Users

ONE_WEIGHT = np.ones(1, dtype=np.int64)


def check_posterior(posterior: Fit) -> Clicks:
    """The clicks of a fit of clicks; anything else is refused."""
    check_fit(posterior)
    if posterior.clicks is None:
        raise ValueError("recommendations need a fit of clicks, and this posterior is of rankings")
    return posterior.clicks


def needs_latent(posterior: Fit, clicks: Any = None) -> TypeGuard[Posterior]:
    """Are users of the fit answered by latent rankings: is it one of rankings or comparisons, or of
    clicks by a distance without sums?"""
    check_fit(posterior)
    if not isinstance(posterior, Posterior):
        return False
    if posterior.clicks is not None:
        distance = posterior.settings.get("distance", "footrule")
        return clicks is None and distance not in WITH_SUMS
    if clicks is not None:
        raise ValueError(
            f"clicks of new users need a fit of clicks, and this is of {posterior.kind}"
        )
    if posterior.is_full:
        raise ValueError(
            "recommendations need a fit of clicks, or of users known in part; this posterior is of "
            "full rankings, of which everything is known"
        )
    return True


def users_of(posterior: Fit, users: Any = None, clicks: Any = None) -> Users:
    """Users of the fit by name, default all; or new ones by their clicks."""
    known = check_posterior(posterior)
    if clicks is not None and users is not None:
        raise ValueError("give users of the fit or clicks of new users, not both")
    if clicks is not None:
        return Users(new_users(posterior, clicks), None)
    if not known.n_users:
        raise ValueError(
            "this posterior keeps no users, as it was fitted to parts: give their clicks, such as "
            "clicks={'ann': ['tea']}, or, to `recommend_to`, clicks=pm.data.Parts(folder) "
            "(`--clicks FOLDER`)"
        )
    if users is None:
        return Users(known, np.arange(known.n_users))
    rows = rows_of_users(known, users)
    return Users(known.take(rows), rows)


def new_users(posterior: Fit, clicks: Any) -> Clicks:
    """Clicks of new users, on the items of the fit. Lists are in order, the newest click last."""
    items = posterior.items
    if isinstance(clicks, Clicks):
        if clicks.items.tolist() != items.tolist():
            raise ValueError("the clicks of new users must have the items of the fit, in its order")
        return clicks
    is_dict = isinstance(clicks, Mapping) and not hasattr(clicks, "tocsr")
    if not is_dict or len(clicks) != 1:
        new = Preferences.from_clicks(clicks, items=items.tolist())
        if is_dict and new.times is None and new.users.tolist() == list(clicks):
            lists, item_codes = list(clicks.values()), recommender_of(posterior).item_codes
            return replace(new, times=_places_in_lists(new, lists, item_codes))
        return new
    # one user, as a service asks: the same, without the work that pays for many users only
    ((user, listed),) = clicks.items()
    if isinstance(listed, str) or not isinstance(listed, Iterable):
        raise TypeError(f"clicks of {user!r} must be a list of items, got {listed!r}")
    names, item_codes = list(listed), recommender_of(posterior).item_codes
    codes = [item_codes.get(name, -1) for name in names]
    if -1 in codes:
        check_known(np.array(codes), names, "item")
    new = clicks_of_one(np.array(sorted(set(codes)), dtype=np.int32), items, user)
    return replace(new, times=_places_in_lists(new, [listed], item_codes))


def _places_in_lists(
    clicks: Clicks, lists: list[Any], item_codes: Mapping[Any, int]
) -> NDArray[np.float64] | None:
    """Times of clicks that were given as a list for each user: the places in it, of an item that is
    there several times the last; None if one of them is a set, which has no order."""
    if any(isinstance(each, Set) for each in lists):
        return None
    times = np.empty(len(clicks.codes))
    for row, listed in enumerate(lists):
        places = {item_codes[name]: place for place, name in enumerate(listed)}
        mine = slice(clicks.starts[row], clicks.starts[row + 1])
        times[mine] = [places[code] for code in clicks.codes[mine].tolist()]
    return times


def clicks_of_one(
    codes: NDArray[np.int32],
    items: NDArray[Any],
    user: Any = None,
    times: NDArray[np.float64] | None = None,
) -> Clicks:
    """The clicks of one user, by sorted codes of items, and when each was clicked, if known."""
    users = np.empty(1, dtype=object)
    users[0] = user
    return Clicks(ONE_WEIGHT, users, items, np.array([0, len(codes)]), codes, times=times)


def one_user(posterior: Fit, user: Any, clicks: Any) -> Users:
    """One user of the fit by name, or a new one by their clicks, of whom a list is enough."""
    if clicks is None and user is None:
        raise ValueError("give a user of the fit, or the clicks of a new one (clicks=)")
    if clicks is None:
        return users_of(posterior, [user])
    users = users_of(posterior, None, _as_new(clicks, user))
    if users.clicks.n_users != 1:
        raise ValueError(f"give the clicks of one user, got {users.clicks.n_users}")
    return users


def _as_new(clicks: Any, user: Any) -> Any:
    """Clicks in the forms of `recommend`, of a plain list too."""
    is_plain = isinstance(clicks, list | tuple | set) and not any(
        isinstance(each, list | np.ndarray) for each in clicks
    )
    is_names = isinstance(clicks, np.ndarray) and clicks.ndim == 1
    if isinstance(clicks, Mapping | Clicks) or not (is_plain or is_names):
        return clicks
    return {"new" if user is None else user: clicks if isinstance(clicks, set) else list(clicks)}


def code_of_item(posterior: Fit, item: Any) -> int:
    """The code of an item, or what is wrong with its name."""
    names = posterior.items.tolist()
    if isinstance(item, np.ndarray) or item not in names:
        alike = next((name for name in names if str(name) == str(item)), None)
        shown = ", ".join(map(repr, names[:3]))
        advice = f"the first are {shown}" if alike is None else f"did you mean {alike!r}?"
        raise ValueError(f"no item is named {item!r}; {advice}")
    return int(names.index(item))
