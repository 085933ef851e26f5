"""Users of several data sets together, by one kind or by several."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._warn import warn
from .checks import check_weights, object_array
from .kinds import KINDS
from .mixed import Mixed
from .preferences import AbsentItemsWarning, Preferences, check_preferences


def concat(prefs: Any) -> Preferences:
    """See :meth:`Preferences.concat`."""
    if isinstance(prefs, Preferences) or not isinstance(prefs, Iterable):
        raise TypeError(f"concat needs a list of Preferences, got {prefs!r}")
    given = list(prefs)
    if not given:
        raise ValueError("concat needs at least one of Preferences, got an empty list")
    for part in given:
        check_preferences(part)
        if type(part) not in KINDS.values():
            raise TypeError(f"concat needs data at hand, got {type(part).__name__}")
    if len(given) == 1:
        return given[0]
    users = _joined_users(given)
    parts = _over_all_items(given)
    _warn_of_absent_items(given, parts[0].items)
    check_weights(np.concatenate([part.weights for part in parts]), len(users))
    kinds = {type(part) for part in parts}
    return (kinds.pop() if len(kinds) == 1 else Mixed).stack(parts, users)


def _joined_users(parts: list[Preferences]) -> NDArray[Any]:
    """The names of all users; where every part has 0, 1, ..., they are counted on."""
    if all(part.users.tolist() == list(range(part.n_users)) for part in parts):
        return np.arange(sum(part.n_users for part in parts))
    seen: dict[Any, int] = {}
    for number, part in enumerate(parts):
        for name in part.users.tolist():
            if name in seen:
                raise ValueError(
                    f"the user {name!r} is in prefs[{seen[name]}] and in prefs[{number}]: give "
                    "each user another name by .rename(users=...)"
                )
        seen |= dict.fromkeys(part.users.tolist(), number)
    return object_array(list(seen))


def _warn_of_absent_items(given: list[Preferences], items: NDArray[Any]) -> None:
    """Say whose rankings lack items of the others: by the model, these come last."""
    ranked = [
        each for part in given for each in (part.parts if isinstance(part, Mixed) else [part])
    ]
    lacking = [part for part in ranked if part.kind == "rankings" and part.n_items < len(items)]
    if not lacking:
        return
    n_users, first = sum(part.n_users for part in lacking), lacking[0]
    known = set(first.items.tolist())
    absent = [name for name in items.tolist() if name not in known]
    words = (
        f"{n_users} users rank only the items of their own data set, and count as if they had "
        f"ranked all others last: user {str(first.users[0])!r}, for example, {len(absent)} of "
        f"{len(items)} items, such as {str(absent[0])!r}. If they were not asked about these, the "
        "consensus puts them too low: join only rankings of the same items, or fit each data set "
        "by itself"
    )
    warn(AbsentItemsWarning(words))


def _over_all_items(parts: list[Preferences]) -> list[Preferences]:
    """The parts over the items of all: those of the first, then the others as they come."""
    lists = [part.items.tolist() for part in parts]
    if all(names == lists[0] for names in lists):
        return parts
    known = dict.fromkeys(lists[0])
    for number, names in enumerate(lists):
        alike = {str(name): name for name in known}
        for name in names:
            if name not in known and str(name) in alike:
                raise ValueError(
                    f"prefs[{number}] has the item {name!r}, and one before it has "
                    f"{alike[str(name)]!r}: give names of the same type"
                )
        if not any(name in known for name in names):
            raise ValueError(
                f"prefs[{number}] has no item in common with those before it: its items are like "
                f"{names[0]!r}, theirs like {lists[0][0]!r}; give them the same names"
            )
        known |= dict.fromkeys(names)
    items = object_array(list(known))
    places = {name: place for place, name in enumerate(known)}
    return [
        part.on_items(items, np.array([places[name] for name in names], dtype=np.int64))
        for part, names in zip(parts, lists, strict=True)
    ]
