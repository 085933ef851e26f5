"""Equal ranks: which items share which ranks, however the ties are written."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..rankings import numeric_table, refuse_rows

Ranks = NDArray[np.float64]
UNCLEAR = (
    "its equal ranks are not clear: items that tie share the first of their ranks (1, 2, 2, 4), "
    "the mean of them (1, 2.5, 2.5, 4), or the number of their group (1, 2, 2, 3); ratings, where "
    "high is good, are no ranks"
)


def check_tied_ranks(values: ArrayLike, name: str = "rankings") -> NDArray[np.int32]:
    """Return ranks ``[user, item]``, of each tie the first rank that its items share, 0 where a
    rank is missing (0 or NaN), or say what is wrong.

    >>> check_tied_ranks([[1, 2, 2, 4], [1, 2.5, 2.5, 4], [1, 3, 3, 4], [1, 2, 2, 3], [0, 2, 2, 1]])
    array([[1, 2, 2, 4],
           [1, 2, 2, 4],
           [1, 2, 2, 4],
           [1, 2, 2, 4],
           [0, 2, 2, 1]], dtype=int32)
    """
    table = numeric_table(values, name)

    def refuse(wrong: NDArray[np.bool_], why: str) -> None:
        what = f"is not a ranking of {table.shape[1]} items"
        refuse_rows(np.any(wrong, axis=1), table, name, what, why)

    return first_ranks(table, refuse)


def first_ranks(
    table: NDArray[np.float64], refuse: Callable[[NDArray[np.bool_], str], None]
) -> NDArray[np.int32]:
    """The same of numbers; ``refuse(wrong, why)`` raises an error if a cell is wrong."""
    n_items = table.shape[1]
    ranks = np.where(np.isnan(table), 0.0, table)
    refuse(ranks < 0, "ranks start at 1, and 0 or NaN means not ranked")
    refuse(ranks > n_items, f"a rank is beyond the {n_items} items")
    order = np.argsort(ranks, axis=1)
    in_order = np.take_along_axis(ranks, order, axis=1)
    equal = (in_order[:, 1:] == in_order[:, :-1]) & (in_order[:, 1:] > 0)
    is_tied = np.zeros(ranks.shape, dtype=bool)
    np.put_along_axis(is_tied, order[:, 1:], equal, axis=1)
    is_first = np.zeros(ranks.shape, dtype=bool)  # of a tie
    np.put_along_axis(is_first, order[:, :-1], equal, axis=1)
    is_half = ranks != np.floor(ranks)
    why = "ranks are whole numbers; only items that tie can share a mean rank"
    refuse(is_half & ~is_tied & ~is_first, why)
    tied = equal.any(axis=1)
    if tied.any():
        firsts = _first_ranks(ranks[tied], by_means=bool(is_half.any()))
        unclear = np.zeros(ranks.shape, dtype=bool)
        unclear[tied] = np.any(np.isnan(firsts), axis=1, keepdims=True)
        refuse(unclear, UNCLEAR)
        ranks[tied] = firsts
    return ranks.astype(np.int32)


def block_sizes(rankings: NDArray[np.int32]) -> NDArray[np.int64]:
    """How many items of the row have the same rank, ``[user, item]``; 0 is a rank here, too.

    >>> block_sizes(np.array([[0, 2, 2, 1, 0]]))
    array([[2, 2, 2, 1, 2]])
    """
    n_users, n_items = rankings.shape
    cells = np.arange(n_users)[:, None] * (n_items + 1) + rankings
    return np.bincount(cells.ravel(), minlength=n_users * (n_items + 1))[cells]


def fill_last_rank(ranks: NDArray[np.int32]) -> NDArray[np.int32]:
    """One item without a rank can only take the one rank that is left."""
    n_items = ranks.shape[1]
    rows = np.flatnonzero((ranks == 0).sum(axis=1) == 1)
    taken = ranks[rows] + (block_sizes(ranks[rows]) - 1) / 2
    left = n_items * (n_items + 1) // 2 - taken.sum(axis=1)
    ranks[rows, (ranks[rows] == 0).argmax(axis=1)] = left.astype(np.int32)
    return ranks


def _first_ranks(ranks: Ranks, by_means: bool) -> Ranks:
    """The first rank of each item's tie, by the first way of writing that fits; NaN if none does.

    Half ranks in a row are means, and no other way is tried there; with some anywhere in the table
    (`by_means`) the other rows are tried as means first. Where all items are ranked, every way that
    fits gives the same order of groups. Where some are not, a rank must say which ranks are left to
    them, so without a half rank in the table an odd tie may not be written by its mean, nor any by
    its last.
    """
    groups = _Groups(ranks)
    half = (ranks != np.floor(ranks)).any(axis=1)
    complete = (ranks > 0).all(axis=1)
    means = ranks - (groups.sizes - 1) / 2
    ways = (
        (means, half | by_means),
        (ranks, ~half),
        (np.where(ranks == groups.numbers, groups.n_before + 1.0, np.nan), ~half),
        (means, complete),
        (ranks - groups.sizes + 1, ~half & complete),
    )
    chosen = np.full(ranks.shape, np.nan)
    for firsts, allowed in ways:
        firsts = np.where(ranks > 0, firsts, 0.0)
        rows = np.isnan(chosen).all(axis=1) & allowed & groups.fit(firsts)
        chosen[rows] = firsts[rows]
    return chosen


class _Groups:
    """Items of equal rank, row by row: ``sizes``, ``numbers`` from 1, and how many items are
    ranked before them, ``n_before``, all ``[user, item]``."""

    def __init__(self, ranks: Ranks):
        self._is_known = ranks > 0
        self._order = np.argsort(ranks, axis=1, kind="stable")
        in_order = np.take_along_axis(ranks, self._order, axis=1)
        places = np.arange(ranks.shape[1])
        self._is_first = np.ones(ranks.shape, dtype=bool)
        self._is_first[:, 1:] = in_order[:, 1:] != in_order[:, :-1]
        starts = np.maximum.accumulate(np.where(self._is_first, places, 0), axis=1)
        is_last = np.ones(ranks.shape, dtype=bool)
        is_last[:, :-1] = self._is_first[:, 1:]
        last = np.where(is_last, places, len(places))
        ends = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1] + 1
        n_missing = (~self._is_known).sum(axis=1, keepdims=True)
        self.sizes = self._by_item(ends - starts)
        self.n_before = self._by_item(starts - n_missing)
        self.numbers = self._by_item(np.cumsum(self._is_first, axis=1) - (n_missing > 0))

    def _by_item(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Back from the order of the ranks to that of the items."""
        table = np.empty_like(values)
        np.put_along_axis(table, self._order, values, axis=1)
        return table

    def fit(self, firsts: Ranks) -> NDArray[np.bool_]:
        """In which rows the groups can hold the ranks from these on, each rank once."""
        ends = np.where(self._is_known, firsts + self.sizes, 0.0)
        inside = ~self._is_known | ((firsts >= 1) & (ends <= firsts.shape[1] + 1))
        whole = firsts == np.floor(firsts)  # no NaN either
        starts, ends = (np.take_along_axis(x, self._order, axis=1) for x in (firsts, ends))
        apart = (starts[:, 1:] >= ends[:, :-1]) | ~self._is_first[:, 1:]
        return np.asarray((whole & inside).all(axis=1) & apart.all(axis=1))
