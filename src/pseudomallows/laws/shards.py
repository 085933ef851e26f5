"""Clicks whose blocks lie on Dask workers: what a fit needs of them travels, they do not.

A block is a future: the outcome of a task that reads or makes it, and that runs again if its worker
is lost.
"""

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import distances
from ..engines.executors import Executor, RemoteExecutor, Threads, is_remote
from ..files.parquet_parts import Parts, item_names, load_part
from ..kernels.click_rows import ClickRows
from ..preferences import Clicks, Preferences, SizeTable
from .block_laws import BlockLaw, ClickBlockRows, ClickBlocks
from .clicks_kendall import KendallClickRows, KendallClicks
from .law import Counts, Floats, Law, check_informative

BLOCKS_EACH = 2  # for each worker, of clicks that are sent to them
ROWS = {"footrule": ClickBlockRows, "kendall": KendallClickRows}


class Shard:
    """Some rows of clicks, on a worker: rows that say something."""

    def __init__(self, clicks: Clicks, first: int):
        self.clicks = clicks
        self.numbers = first + np.cumsum(clicks.weights) - clicks.weights

    def rows(self, distance: str, sizes: Counts) -> Any:
        """As a law by this distance reads them."""
        rows = ClickRows(self.clicks.starts, self.clicks.codes)
        return ROWS[distance](rows, sizes, self.clicks.weights, self.numbers)


@dataclass(frozen=True)
class Shards:
    """Futures of `Shard`, with as many numbers as users that lie here: the weights of the rows."""

    futures: list[Any]
    weights: list[Counts]
    sizes: Counts  # all numbers of clicks
    item_counts: Counts
    n_items: int
    executor: RemoteExecutor

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(map(len, self.weights))


class RemoteLaw(Law):
    """What a law of clicks has otherwise if its blocks lie on workers."""

    shards: Shards

    def __init__(self, shards: Shards, distance: str):  # the law's own constructor is for rows here
        self.shards, self.sizes = shards, shards.sizes
        executor, kind = shards.executor, distances.get(distance)
        blocks = [executor.submit(_rows, each, distance, shards.sizes) for each in shards.futures]
        base: Any = BlockLaw if isinstance(self, BlockLaw) else Law
        base.__init__(self, shards.n_items, kind, blocks, shards.weights, executor)
        if isinstance(self, KendallClicks):
            self._set_moves()

    @functools.cached_property
    def mean_ranks(self) -> Floats:
        """Most clicked, rank 1."""
        return -self.shards.item_counts.astype(np.float64)

    def rankings_of(self, rows: Counts, order: Floats) -> Any:
        """Clicked items first, both parts by `order`."""
        at_hand = self.select(np.unique(rows))
        return at_hand.rankings_of(np.searchsorted(np.unique(rows), rows), order)

    def select(self, rows: Counts) -> Any:
        """The law of some rows, brought here."""
        edges = np.cumsum([0, *map(len, self.shards.weights)])
        parts = [
            self.shards.executor.submit(_take, shard, rows[(rows >= low) & (rows < high)] - low)
            for shard, (low, high) in zip(
                self.shards.futures, itertools.pairwise(edges), strict=True
            )
        ]
        clicks = join_rows(list(self.shards.executor.map(_same, parts)))
        at_hand: Any = ClickBlocks if isinstance(self, ClickBlocks) else KendallClicks
        return at_hand(clicks, Threads(), self.sizes)


class RemoteClickBlocks(RemoteLaw, ClickBlocks):
    """Clicks by the footrule, on workers."""


class RemoteKendallClicks(RemoteLaw, KendallClicks):
    """Clicks by Kendall's distance, on workers."""


REMOTE: dict[str, Any] = {"footrule": RemoteClickBlocks, "kendall": RemoteKendallClicks}


# The tasks, which run on the workers


def _rows(shard: Shard, distance: str, sizes: Counts) -> Any:
    return shard.rows(distance, sizes)


def _take(shard: Shard, rows: Counts) -> Clicks:
    return shard.clicks.take(rows)


def _same(value: Any) -> Any:
    return value


def _make_shard(
    starts: Counts, codes: NDArray[np.int32], weights: Counts, first: int, n_items: int
) -> Shard:
    nobody, items = np.empty(len(weights), dtype=np.int8), np.arange(n_items)
    return Shard(Clicks(weights, nobody, items, starts, codes), first)


@dataclass(frozen=True)
class _Sums:
    """What is known of a part beforehand."""

    n_users: int  # who say anything
    table: SizeTable
    item_counts: Counts
    checksum: int
    ends: tuple[str, str] | None  # the first user and the last


def _load(path: str, items: list[str]) -> tuple[Clicks, _Sums]:
    clicks = load_part(path, items)
    used, users = clicks.take(clicks.is_informative), clicks.users
    ends = (users[0], users[-1]) if len(users) else None
    sums = (used.n_users, clicks.by_size(), used.item_counts(), used.checksum(), ends)
    return used, _Sums(*sums)


def _sums(loaded: tuple[Clicks, _Sums]) -> _Sums:
    return loaded[1]


def _number_part(loaded: tuple[Clicks, _Sums], first: int) -> Shard:
    return Shard(loaded[0], first)


# Preferences in shards


@dataclass(frozen=True, eq=False)
class ShardedClicks(Clicks):
    """Clicks that only the workers hold; uninformative rows are left out."""

    shards: Shards
    table: SizeTable
    sum_of_rows: int

    def __repr__(self) -> str:
        return f"ShardedClicks({self.n_users} users, {self.n_items} items)"

    @property
    def n_users(self) -> int:
        """Number of rows, over all shards."""
        return self.shards.n_rows

    @property
    def is_informative(self) -> NDArray[np.bool_]:
        """All of them."""
        return np.ones(self.n_users, dtype=bool)

    def one_row_each(self) -> tuple[Preferences, NDArray[np.int64]]:
        """As they are: each stands for one person."""
        return self, np.arange(self.n_users)

    def checksum(self) -> int:
        """A number that other clicks would hardly have."""
        return self.sum_of_rows

    def by_size(self) -> SizeTable:
        """Users and clicks by the number of clicks."""
        return self.table

    def kept(self) -> Clicks:
        """The items alone, for a posterior that keeps no users."""
        none = np.empty(0, dtype=np.int64)
        return Clicks(none, self.users, self.items, np.zeros(1, np.int64), none.astype(np.int32))


def open_parts(parts: Parts, executor: Executor | None) -> ShardedClicks:
    """Let the workers read the parts; come to know the items and how many users there are."""
    if executor is None or not is_remote(executor):
        raise TypeError(
            "parts are read by Dask workers: give executor=pm.DaskExecutor(client), or "
            "read them into memory with pm.read(folder)"
        )
    items = parts.items
    if items is None:
        names_of_parts = executor.map(item_names, parts.paths)
        items = sorted({name for names in names_of_parts for name in names})
    if len(items) < 2:
        raise ValueError(f"a ranking needs at least 2 items, got {len(items)}")
    loaded = [executor.submit(_load, path, items) for path in parts.paths]
    sums = list(executor.map(_sums, loaded))
    parts.check_order([part.ends for part in sums])
    n_users = [part.n_users for part in sums]
    firsts = np.cumsum([0, *n_users]).tolist()
    check_informative(np.array([firsts[-1] > 0]))
    used = [place for place, number in enumerate(n_users) if number]
    table = functools.reduce(SizeTable.plus, [part.table for part in sums])
    shards = Shards(
        [executor.submit(_number_part, loaded[place], firsts[place]) for place in used],
        [np.ones(n_users[place], dtype=np.int64) for place in used],
        table.sizes[(table.sizes > 0) & (table.sizes < len(items))],
        np.sum([part.item_counts for part in sums], axis=0),
        len(items),
        executor,
    )
    none = np.empty(0, dtype=np.int64)
    return ShardedClicks(
        np.concatenate(shards.weights),
        none.astype(object),
        np.array(items, dtype=object),
        np.zeros(1, np.int64),
        none.astype(np.int32),
        shards,
        table,
        sum(part.checksum for part in sums) % 2**64,
    )


def send_clicks(prefs: Clicks, executor: RemoteExecutor) -> Shards:
    """Send clicks that are at hand to the workers, within tasks, so that they can be sent again."""
    clicks = prefs.take(prefs.is_informative)
    n_blocks = min(BLOCKS_EACH * executor.n_workers, clicks.n_users)
    edges = np.linspace(0, clicks.n_users, n_blocks + 1).astype(int).tolist()
    firsts = np.cumsum(clicks.weights) - clicks.weights
    futures, weights = [], []
    for low, high in itertools.pairwise(edges):
        starts = clicks.starts[low : high + 1]
        codes = clicks.codes[starts[0] : starts[-1]]
        weights.append(clicks.weights[low:high])
        numbered = (weights[-1], int(firsts[low]), clicks.n_items)
        futures.append(executor.submit(_make_shard, starts - starts[0], codes, *numbered))
    sizes = np.unique(clicks.n_clicks)
    return Shards(futures, weights, sizes, clicks.item_counts(), clicks.n_items, executor)


def join_rows(parts: Sequence[Clicks]) -> Clicks:
    """The rows of several, one after the other."""
    sizes = np.concatenate([part.n_clicks for part in parts])
    return replace(
        parts[0],
        weights=np.concatenate([part.weights for part in parts]),
        users=np.concatenate([part.users for part in parts]),
        starts=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        codes=np.concatenate([part.codes for part in parts]),
        times=None,  # no law looks at them
    )
