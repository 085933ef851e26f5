"""Which items may be shown: those not to show (`exclude`), and those to choose from (`only`)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Clicks

FORMS = (
    "give a list of items, a dict {user: [item, ...]}, or a matrix (users x items) of 0 and 1 with "
    "a row for each user who is answered"
)
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ItemFilter:
    """What is hidden from the users who are answered: ``hidden[item]`` from all; from each what is
    in a row of `excluded`, and, from those who have such a list, what is not in one of `allowed`:
    both sparse, users x items."""

    hidden: Bools
    excluded: Any = None
    allowed: Any = None
    has_allowed: Bools | None = None

    def mask(self, part: slice) -> Bools:
        """``[row, item]``: is the item hidden from that user?"""
        is_hidden = np.tile(self.hidden, (part.stop - part.start, 1))
        if self.excluded is not None:
            is_hidden |= self.excluded[part].toarray()
        if self.has_allowed is not None:
            is_hidden |= self.has_allowed[part, None] & ~self.allowed[part].toarray()
        return is_hidden

    def take(self, part: slice) -> "ItemFilter":
        """That of some users."""
        names = ("excluded", "allowed", "has_allowed")
        own = {name: rows for name in names if (rows := getattr(self, name)) is not None}
        return replace(self, **{name: rows[part] for name, rows in own.items()})


def parse_filter(
    exclude: Any, only: Any, items: NDArray[Any], users: NDArray[Any], known: NDArray[Any]
) -> ItemFilter | None:
    """What `users` may be shown of `items`; None for everything.

    A dict may name more users than are answered, if these are `known`.
    """
    if exclude is None and only is None:
        return None
    given, choice = Given(items, users, known), ItemFilter(np.zeros(len(items), dtype=bool))
    if exclude is not None:
        for_all, of_users, _ = given.read(exclude, "exclude")
        choice = ItemFilter(choice.hidden if for_all is None else for_all, of_users)
    if only is not None:
        for_all, of_users, has_list = given.read(only, "only")
        hidden = choice.hidden if for_all is None else choice.hidden | ~for_all
        choice = ItemFilter(hidden, choice.excluded, of_users, has_list)
    if choice.hidden.all():
        raise ValueError(
            f"nothing is left to recommend: exclude and only hide all {len(items):,} items"
        )
    return choice


Read = tuple[Bools | None, Any, Bools | None]  # [item] for all users; or those of each, and of whom


class Given:
    """Reads what was given, by the names of the items and of the users who are answered."""

    def __init__(self, items: NDArray[Any], users: NDArray[Any], known: NDArray[Any]):
        self._items, self._users, self._known = items, users, known
        self._codes = {name: code for code, name in enumerate(items.tolist())}

    def read(self, items: Any, what: str) -> Read:
        """``[item]`` for all users, or the items of each, and who has such a list."""
        from scipy.sparse import csr_array

        if isinstance(items, Clicks):
            names = items.items
            rows = enumerate(items.users.tolist())
            items = {user: names[items.clicks_of(row)].tolist() for row, user in rows}
        if hasattr(items, "tocsr") or (isinstance(items, np.ndarray) and items.ndim == 2):
            return self._of_matrix(csr_array(items), what)
        if hasattr(items, "columns"):
            raise TypeError(f"{what} is a data frame: {FORMS}")
        if isinstance(items, Mapping):
            return self._of_dict(items, what)
        is_chosen = np.zeros(len(self._items), dtype=bool)
        if isinstance(items, np.ndarray) and items.dtype == bool:
            if items.shape != is_chosen.shape:
                raise ValueError(
                    f"{what} must have a value for each of {len(is_chosen)} items, got "
                    f"{items.shape}"
                )
            return items, None, None
        is_chosen[self._codes_of(items, what)] = True
        return is_chosen, None, None

    def _codes_of(self, given: Any, what: str) -> list[int]:
        """Codes of items; one name alone is one item."""
        if isinstance(given, str) or not isinstance(given, Iterable) or self._is_item(given):
            given = [given]
        names = list(given)
        unknown = [name for name in names if not self._is_item(name)]
        if unknown:
            more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
            shown = ", ".join(map(repr, unknown[:3]))
            known = ", ".join(map(repr, self._items[:3].tolist()))
            raise ValueError(
                f"{what} has unknown items: {shown}{more}; the items of the fit are {known}, ..."
            )
        return [self._codes[name] for name in names]

    def _is_item(self, name: Any) -> bool:
        try:
            return name in self._codes
        except TypeError:  # a list or an array, which is no name
            return False

    def _of_dict(self, given: Mapping[Any, Any], what: str) -> Read:
        from scipy.sparse import csr_array

        answered = {name: row for row, name in enumerate(self._users.tolist())}
        known = set(self._known.tolist())
        unknown = [name for name in given if name not in answered and name not in known]
        if unknown:
            raise ValueError(
                f"{what} names a user who is neither of the fit nor answered: {unknown[0]!r}"
                + (f"; {len(unknown)} in all" if len(unknown) > 1 else "")
            )
        has_list, cells = np.zeros(len(answered), dtype=bool), set()
        for name, listed in given.items():
            codes = self._codes_of(listed, f"{what}[{name!r}]")
            if name in answered:
                has_list[answered[name]] = True
                cells |= {(answered[name], code) for code in codes}
        rows, columns = np.array(sorted(cells), dtype=np.int64).reshape(-1, 2).T
        shape = (len(answered), len(self._items))
        return None, csr_array((np.ones(len(rows), dtype=bool), (rows, columns)), shape), has_list

    def _of_matrix(self, matrix: Any, what: str) -> Read:
        wanted = (len(self._users), len(self._items))
        if matrix.shape != wanted:
            raise ValueError(
                f"{what} must have a row for each of {wanted[0]} users who are answered, and a "
                f"column for each of {wanted[1]} items, got {matrix.shape}"
            )
        return None, matrix != 0, np.ones(wanted[0], dtype=bool)
