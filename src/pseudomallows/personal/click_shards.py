"""Clicks on Dask workers: what is a sum over users is made where their clicks are.

The products of the items come back, and are the same to the last bit however the users are cut:
what a user counts is a multiple of a power of 2, so that all sums are exact (`Products.shares`).
Samples of users are brought here.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data.blocks import Clicks
from ..engines.executors import RemoteExecutor
from ..kernels.items.item_products import (
    ClickLists,
    Head,
    count_products,
    drop_products,
    list_users,
)
from ..laws.shards import ShardedClicks, join_rows

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class RemoteClicks(Clicks):
    """Clicks that the workers hold, in shards of rows; `starts` are here, `codes` are not. Rows
    have numbers as names."""

    shards: tuple[Any, ...]
    edges: tuple[int, ...]  # the rows of a shard are those from one edge to the next
    executor: RemoteExecutor
    origin: "tuple[RemoteClicks, Mask] | None" = None  # some of whose clicks these are, and which

    def __repr__(self) -> str:
        return f"RemoteClicks({self.n_users} users, {self.n_items} items)"

    @classmethod
    def send(cls, clicks: Clicks, executor: RemoteExecutor) -> Self:
        """Clicks that are at hand, sent within tasks, so that they can be sent again."""
        n_shards = max(1, min(2 * executor.n_workers, clicks.n_users))
        edges = np.linspace(0, clicks.n_users, n_shards + 1).astype(int).tolist()
        plain = Clicks(
            clicks.weights,
            np.arange(clicks.n_users),
            np.arange(clicks.n_items),
            clicks.starts,
            clicks.codes,
        )
        shards = [
            executor.submit(_same, plain.take(np.arange(first, end)))
            for first, end in itertools.pairwise(edges)
        ]
        return cls._of(clicks.weights, clicks.items, clicks.starts, (shards, edges, executor))

    @classmethod
    def of_parts(cls, clicks: ShardedClicks) -> Self:
        """Those of a log in parts, which the workers have read."""
        where = (clicks.futures, [0, *(rows.stop for rows in clicks.cut)], clicks.executor)
        return cls._of(clicks.weights, clicks.items, clicks.starts, where)

    @classmethod
    def _of(
        cls,
        weights: NDArray[np.int64],
        items: NDArray[Any],
        starts: NDArray[np.int64],
        where: tuple[Sequence[Any], Sequence[int], RemoteExecutor],
    ) -> Self:
        none, (shards, edges, executor) = np.empty(0, dtype=np.int32), where
        rows = np.arange(len(weights))
        return cls(weights, rows, items, starts, none, tuple(shards), tuple(edges), executor)

    @property
    def _cuts(self) -> list[slice]:
        return [slice(first, end) for first, end in itertools.pairwise(self.edges)]

    def _of_shards(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """The values of the clicks of each shard, of those of all clicks."""
        return [values[self.starts[rows.start] : self.starts[rows.stop]] for rows in self._cuts]

    def choose(self, is_chosen: Mask) -> "RemoteClicks":
        """Some of the clicks, one place in `is_chosen` for each; they stay where they are."""
        pairs = zip(self.shards, self._of_shards(is_chosen), strict=True)
        shards = tuple(self.executor.submit(_choose, *pair) for pair in pairs)
        before = np.concatenate([[0], np.cumsum(is_chosen)])
        origin = (self, is_chosen)
        return replace(self, starts=before[self.starts], shards=shards, origin=origin)

    def taken_from(self, whole: Clicks) -> Mask | None:
        """Which clicks of the `whole` were not chosen; None if these were not chosen from it."""
        if self.origin is None or self.origin[0] is not whole:
            return None
        return ~self.origin[1]

    def take(self, rows: ArrayLike) -> Clicks:
        """Some of the rows, by number or by mask, brought here."""
        wanted = np.asarray(rows)
        chosen = np.flatnonzero(wanted) if wanted.dtype == bool else wanted.astype(np.int64)
        order = np.argsort(chosen, kind="stable")
        cuts = np.searchsorted(chosen[order], self.edges)
        tasks = [
            (shard, chosen[order][first:end] - rows.start)
            for shard, rows, (first, end) in zip(
                self.shards, self._cuts, itertools.pairwise(cuts.tolist()), strict=True
            )
        ]
        sorted_rows = join_rows(list(self.executor.map(_take, tasks)))
        back = np.empty(len(order), dtype=np.int64)
        back[order] = np.arange(len(order))
        return replace(sorted_rows.take(back), users=self.users[chosen], items=self.items)

    def item_counts(self) -> NDArray[np.int64]:
        """How many people have clicked each item."""
        return np.asarray(sum(self.executor.map(_item_counts, self.shards)))

    def products(self, shares: Floats) -> Floats:
        """The table of the products of the items, where a user counts as ``shares[user]``."""
        tasks = [(*pair, None) for pair in self._with_shares(shares)]
        return self._add_up(tasks)

    def products_taken(self, shares: Floats, taken: Mask) -> Floats:
        """What is lost of the products when some clicks are `taken`."""
        pairs = zip(self._with_shares(shares), self._of_shards(taken), strict=True)
        return self._add_up([(*pair, mine) for pair, mine in pairs])

    def _with_shares(self, shares: Floats) -> list[tuple[Any, Floats]]:
        return [(shard, shares[rows]) for shard, rows in zip(self.shards, self._cuts, strict=True)]

    def _add_up(self, tasks: list[tuple[Any, ...]]) -> Floats:
        table = np.zeros((self.n_items, self.n_items))
        for part in self.executor.map(_count, tasks):
            table += part
        return table

    def kept(self) -> Clicks:
        """The items alone, for a fit that keeps no users."""
        none = np.empty(0, dtype=np.int64)
        codes, users = none.astype(np.int32), none.astype(object)
        return Clicks(none, users, self.items, np.zeros(1, np.int64), codes)


def click_lists(clicks: Clicks) -> ClickLists:
    """The clicks by user and by item."""
    counts = np.bincount(clicks.codes, minlength=clicks.n_items)
    item_starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    users = np.empty(len(clicks.codes), dtype=np.int32)
    list_users(clicks.starts, clicks.codes, item_starts, users)
    return ClickLists(clicks.starts, clicks.codes, item_starts, users)


# The tasks, which run on the workers


def _same(clicks: Clicks) -> Clicks:
    return clicks


def _item_counts(clicks: Clicks) -> NDArray[np.int64]:
    return clicks.item_counts()


def _choose(clicks: Clicks, is_chosen: Mask) -> Clicks:
    return clicks.choose(is_chosen)


def _take(task: tuple[Clicks, NDArray[np.int64]]) -> Clicks:
    clicks, rows = task
    return clicks.take(rows)


def _count(task: tuple[Clicks, Floats, Mask | None]) -> Floats:
    """The products of a shard, or what is lost of them when some of its clicks are taken."""
    clicks, shares, taken = task
    table, items = np.zeros((clicks.n_items, clicks.n_items)), np.arange(clicks.n_items)
    lists = click_lists(clicks)
    if taken is None:
        count_products(lists, shares, Head(items.astype(np.int32), items, table), 0, table)
    else:
        drop_products(lists, taken, shares, table)
    return table
