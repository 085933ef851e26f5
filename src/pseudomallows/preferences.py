"""Preferences: what is known of the users, checked once, then trusted."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .rankings import check_ranks, numeric_table


@dataclass(frozen=True, eq=False)
class Preferences:
    """What is known of the users: ``rankings[user, item]`` is a rank, 1 the best, 0 not known.

    The items without a rank take, in an order that is not known, the ranks that nobody has. A row
    stands for ``weights[user]`` people. Make one with :meth:`from_rankings` or
    :meth:`from_orderings`.
    """

    rankings: NDArray[np.int32]
    weights: NDArray[np.int64]
    users: NDArray[Any]
    items: NDArray[Any]

    @classmethod
    def from_rankings(
        cls,
        rankings: Any,
        *,
        weights: ArrayLike | None = None,
        users: Sequence[Hashable] | None = None,
        items: Sequence[Hashable] | None = None,
    ) -> "Preferences":
        """Full or partial rankings, one row a user.

        Parameters
        ----------
        rankings : (n_users, n_items) array_like or data frame
            ``rankings[user, item]`` is a rank, 1 for the best; 0 or NaN means not ranked. The
            columns of a data frame name the items, the index of a pandas frame the users.
        weights : (n_users,) array_like of int, optional
            How many people gave each ranking.
        users, items : sequence, optional
            Names, in row and column order.

        Examples
        --------
        >>> prefs = Preferences.from_rankings([[1, 2, 3], [1, 0, 0]], items=["ale", "gin", "rum"])
        >>> prefs
        Preferences(2 users, 3 items; 1 full rankings, 1 partial)
        """
        if hasattr(rankings, "columns"):
            items = list(rankings.columns) if items is None else items
            if users is None and hasattr(rankings, "index"):
                users = list(rankings.index)
            rankings = _frame_values(rankings)
        ranks = check_ranks(rankings)
        _check_n_items(ranks.shape[1])
        return cls(
            _fill_last_rank(ranks),
            check_weights(weights, len(ranks)),
            _check_names(users, len(ranks), "users"),
            _check_names(items, ranks.shape[1], "items"),
        )

    @classmethod
    def from_orderings(
        cls,
        orderings: Iterable[Iterable[Hashable]],
        *,
        weights: ArrayLike | None = None,
        users: Sequence[Hashable] | None = None,
        items: Sequence[Hashable] | None = None,
    ) -> "Preferences":
        """Lists of items, best first, one a user; shorter lists are top-k lists.

        Without `items`, the items are all that appear in a list, sorted where they can be. Missing
        entries (None or NaN) at the end of a list are dropped.

        Examples
        --------
        >>> prefs = Preferences.from_orderings([["rum", "ale", "gin"], ["gin"]])
        >>> prefs.items
        array(['ale', 'gin', 'rum'], dtype=object)
        >>> prefs.rankings
        array([[2, 3, 1],
               [0, 1, 0]], dtype=int32)
        """
        lists = [_drop_missing(ordering, user) for user, ordering in enumerate(orderings)]
        if not lists:
            raise ValueError("orderings is empty: give one list of items for each user")
        names = _sorted_names({item: None for row in lists for item in row})
        names = names if items is None else list(items)
        codes = {name: code for code, name in enumerate(names)}
        _check_n_items(len(names))
        ranks = np.zeros((len(lists), len(names)), dtype=np.int32)
        for user, row in enumerate(lists):
            for place, item in enumerate(row):
                if item not in codes:
                    raise ValueError(
                        f"orderings[{user}] has {item!r}, which is not among the {len(names)} items"
                    )
                if ranks[user, codes[item]]:
                    raise ValueError(f"orderings[{user}] has {item!r} twice")
                ranks[user, codes[item]] = place + 1
        return cls(
            _fill_last_rank(ranks),
            check_weights(weights, len(ranks)),
            _check_names(users, len(ranks), "users"),
            _check_names(names, len(names), "items"),
        )

    def rename(
        self, *, users: Sequence[Hashable] | None = None, items: Sequence[Hashable] | None = None
    ) -> "Preferences":
        """The same with other names.

        >>> Preferences.from_rankings([[1, 2]]).rename(items=["tea", "mate"]).items
        array(['tea', 'mate'], dtype=object)
        """
        new_users = self.users if users is None else _check_names(users, self.n_users, "users")
        new_items = self.items if items is None else _check_names(items, self.n_items, "items")
        return replace(self, users=new_users, items=new_items)

    def __repr__(self) -> str:
        n_full = int(self.is_full.sum())
        return (
            f"Preferences({self.n_users} users, {self.n_items} items; "
            f"{n_full} full rankings, {self.n_users - n_full} partial)"
        )

    @property
    def n_users(self) -> int:
        """Number of rows."""
        return len(self.rankings)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.rankings.shape[1]

    @property
    def is_full(self) -> NDArray[np.bool_]:
        """Which users have ranked every item."""
        return np.all(self.rankings > 0, axis=1)

    @property
    def is_informative(self) -> NDArray[np.bool_]:
        """Which rows say anything: a rank is known, and the weight is not 0."""
        return np.any(self.rankings > 0, axis=1) & (self.weights > 0)

    def mean_ranks(self) -> NDArray[np.float64]:
        """Mean rank of each item; an unknown rank counts as the mean of those the user has left."""
        informative = self.is_informative
        ranks, weights = self.rankings[informative], self.weights[informative]
        unknown = ranks == 0
        all_ranks = self.n_items * (self.n_items + 1) / 2
        n_unknown = np.maximum(unknown.sum(axis=1), 1)
        left = (all_ranks - ranks.sum(axis=1)) / n_unknown
        filled = np.where(unknown, left[:, None], ranks)
        return np.asarray(np.average(filled, axis=0, weights=weights))


def _check_n_items(n_items: int) -> None:
    if n_items < 2:
        raise ValueError(f"a ranking needs at least 2 items, got {n_items}")


def check_weights(weights: ArrayLike | None, n_users: int) -> NDArray[np.int64]:
    """Return weights as whole numbers, 1 each if None, or say what is wrong with them."""
    if weights is None:
        return np.ones(n_users, dtype=np.int64)
    values = numeric_table(np.atleast_2d(np.asarray(weights)), "weights")[0]
    if values.shape != (n_users,):
        raise ValueError(f"weights must have one number a user ({n_users}), got {len(values)}")
    wrong = ~(np.isfinite(values) & (values >= 0) & (values == np.floor(values)))
    if wrong.any():
        user = int(wrong.argmax())
        raise ValueError(
            f"weights[{user}] must be a whole number, 0 or more (how many people gave this "
            f"ranking), got {values[user]}; {int(wrong.sum())} of {n_users} are wrong"
        )
    return values.astype(np.int64)


def _check_names(names: Sequence[Hashable] | None, count: int, what: str) -> NDArray[Any]:
    if names is None:
        return np.arange(count)
    listed = list(names)
    if len(listed) != count:
        raise ValueError(f"{what} must have {count} names, got {len(listed)}")
    if len(set(listed)) != count:
        twice = next(name for name in listed if listed.count(name) > 1)
        raise ValueError(f"{what} must have different names, got {twice!r} twice")
    array = np.empty(count, dtype=object)
    array[:] = listed
    return array


def _fill_last_rank(ranks: NDArray[np.int32]) -> NDArray[np.int32]:
    """One item without a rank can only take the one rank that is left."""
    n_items = ranks.shape[1]
    rows = np.flatnonzero((ranks == 0).sum(axis=1) == 1)
    left = n_items * (n_items + 1) // 2 - ranks[rows].sum(axis=1)
    ranks[rows, (ranks[rows] == 0).argmax(axis=1)] = left
    return ranks


def _frame_values(frame: Any) -> Any:
    """The numbers of a pandas or polars frame, missing ones as NaN."""
    if hasattr(frame, "iloc"):
        odd = [str(name) for name, kind in frame.dtypes.items() if kind.kind not in "iuf"]
        if odd:
            raise TypeError(
                f"rankings must be numbers (ranks), but column {odd[0]!r} is {frame.dtypes[odd[0]]}"
            )
        return frame.to_numpy(dtype=np.float64, na_value=np.nan)
    odd = [name for name, kind in frame.schema.items() if not kind.is_numeric()]
    if odd:
        raise TypeError(
            f"rankings must be numbers (ranks), but column {odd[0]!r} is {frame.schema[odd[0]]}"
        )
    return frame.to_numpy()


def _is_missing(value: Hashable) -> bool:
    return value is None or (isinstance(value, float) and value != value)


def _drop_missing(ordering: Iterable[Hashable], user: int) -> list[Hashable]:
    if isinstance(ordering, str) or not isinstance(ordering, Iterable):
        raise TypeError(f"orderings[{user}] must be a list of items, best first, got {ordering!r}")
    row = [item.item() if isinstance(item, np.generic) else item for item in ordering]
    while row and _is_missing(row[-1]):
        row.pop()
    if any(_is_missing(item) for item in row):
        raise ValueError(f"orderings[{user}] has a missing entry before its end: {row[:12]}")
    return row


def _sorted_names(names: Iterable[Hashable]) -> list[Hashable]:
    listed = list(names)
    try:
        return sorted(listed)  # type: ignore[type-var]
    except TypeError:
        return listed
