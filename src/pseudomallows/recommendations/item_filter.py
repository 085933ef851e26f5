"""Which items may be shown: those not to show (`exclude`), and those to choose from (`only`)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Clicks
from ..kernels.click_rows import ClickRows, slice_clicks

FORMS = (
    "give a list of items, a dict {user: [item, ...]}, or a matrix (users x items) of 0 and 1 with "
    "a row for each user who is answered"
)
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class UserItems:
    """Items of each user, by code; `has_filter[user]` says who has such a list."""

    rows: ClickRows
    has_filter: Bools

    def mask(self, part: slice, n_items: int) -> Bools:
        """``[row, item]``: is it one of the user's?"""
        starts, codes = slice_clicks(self.rows, part)
        is_own = np.zeros((len(starts) - 1, n_items), dtype=bool)
        owners = np.repeat(np.arange(len(is_own)), np.diff(starts))
        is_own[owners, codes[starts[0] : starts[-1]]] = True
        return is_own

    def take(self, part: slice) -> "UserItems":
        """Those of some users."""
        starts, codes = slice_clicks(self.rows, part)
        mine = ClickRows(starts - starts[0], codes[starts[0] : starts[-1]])
        return UserItems(mine, self.has_filter[part])


@dataclass(frozen=True, eq=False)
class ItemFilter:
    """What is hidden from the users who are answered: ``hidden[item]`` from all, and from each
    what is in `excluded`, or not in `allowed`."""

    hidden: Bools
    excluded: UserItems | None = None
    allowed: UserItems | None = None

    def mask(self, part: slice) -> Bools:
        """``[row, item]``: is the item hidden from that user?"""
        n_items = len(self.hidden)
        is_hidden = np.zeros((part.stop - part.start, n_items), dtype=bool)
        is_hidden |= self.hidden
        if self.excluded is not None:
            is_hidden |= self.excluded.mask(part, n_items)
        if self.allowed is not None:
            has_filter = self.allowed.has_filter[part, None]
            is_hidden |= has_filter & ~self.allowed.mask(part, n_items)
        return is_hidden

    def take(self, part: slice) -> "ItemFilter":
        """That of some users."""
        of_users = (rows if rows is None else rows.take(part) for rows in self._of_users)
        return ItemFilter(self.hidden, *of_users)

    @property
    def _of_users(self) -> tuple[UserItems | None, UserItems | None]:
        return self.excluded, self.allowed


def parse_filter(
    exclude: Any, only: Any, items: NDArray[Any], users: NDArray[Any], known: NDArray[Any]
) -> ItemFilter | None:
    """What `users` may be shown of `items`; None for everything.

    A dict may name more users than are answered, if these are `known`.
    """
    if exclude is None and only is None:
        return None
    given = Given(items, users, known)
    hidden = np.zeros(len(items), dtype=bool)
    excluded = allowed = None
    if exclude is not None:
        read = given.read(exclude, "exclude")
        excluded = read if isinstance(read, UserItems) else None
        hidden |= read if not isinstance(read, UserItems) else False
    if only is not None:
        read = given.read(only, "only")
        allowed = read if isinstance(read, UserItems) else None
        hidden |= ~read if not isinstance(read, UserItems) else False
    if hidden.all():
        raise ValueError(
            f"nothing is left to recommend: exclude and only hide all {len(items):,} items"
        )
    return ItemFilter(hidden, excluded, allowed)


class Given:
    """Reads what was given, by the names of the items and of the users who are answered."""

    def __init__(self, items: NDArray[Any], users: NDArray[Any], known: NDArray[Any]):
        self._items, self._users, self._known = items, users, known
        self._codes = {name: code for code, name in enumerate(items.tolist())}

    def read(self, items: Any, what: str) -> Bools | UserItems:
        """``[item]`` for all users, or the items of each."""
        if isinstance(items, Clicks):
            return self._of_clicks(items, what)
        if hasattr(items, "tocsr"):
            return self._of_matrix(items.tocsr(), what)
        if hasattr(items, "columns"):
            raise TypeError(f"{what} is a data frame: {FORMS}")
        if isinstance(items, Mapping):
            return self._of_dict(items, what)
        if isinstance(items, np.ndarray) and items.ndim == 2:
            from scipy.sparse import csr_array

            return self._of_matrix(csr_array(items), what)
        is_chosen = np.zeros(len(self._items), dtype=bool)
        if isinstance(items, np.ndarray) and items.dtype == bool:
            if items.shape != is_chosen.shape:
                raise ValueError(
                    f"{what} must have a value for each of {len(is_chosen)} items, got "
                    f"{items.shape}"
                )
            return items
        is_chosen[self._codes_of(items, what)] = True
        return is_chosen

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

    def _of_dict(self, given: Mapping[Any, Any], what: str) -> UserItems:
        answered = {name: row for row, name in enumerate(self._users.tolist())}
        strange = [name for name in given if name not in answered]
        if strange:
            known = set(self._known.tolist())
            unknown = [name for name in strange if name not in known]
            if unknown:
                raise ValueError(
                    f"{what} names a user who is neither of the fit nor answered: {unknown[0]!r}"
                    + (f"; {len(unknown)} in all" if len(unknown) > 1 else "")
                )
        lists: list[list[int]] = [[] for _ in answered]
        has_filter = np.zeros(len(lists), dtype=bool)
        for name, listed in given.items():
            codes = self._codes_of(listed, f"{what}[{name!r}]")
            if name in answered:
                lists[answered[name]], has_filter[answered[name]] = codes, True
        starts = np.append(0, np.cumsum([len(codes) for codes in lists])).astype(np.int64)
        flat = np.array([code for codes in lists for code in codes], dtype=np.int32)
        return UserItems(ClickRows(starts, flat), has_filter)

    def _of_matrix(self, matrix: Any, what: str) -> UserItems:
        wanted = (len(self._users), len(self._items))
        if matrix.shape != wanted:
            raise ValueError(
                f"{what} must have a row for each of {wanted[0]} users who are answered, and a "
                f"column for each of {wanted[1]} items, got {matrix.shape}"
            )
        matrix = matrix.copy()
        matrix.eliminate_zeros()
        rows = ClickRows(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32))
        return UserItems(rows, np.ones(wanted[0], dtype=bool))

    def _of_clicks(self, given: Clicks, what: str) -> UserItems:
        names = given.items
        listed = {
            user: names[given.clicks_of(row)].tolist()
            for row, user in enumerate(given.users.tolist())
        }
        return self._of_dict(listed, what)
