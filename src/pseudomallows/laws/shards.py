"""Clicks that lie on Dask workers: what a fit needs of them travels, they do not.

A block is a future: the outcome of a task that reads or makes it, and that runs again if its worker
is lost.
"""

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data.blocks import Clicks, SizeTable
from ..data.checks import index_of
from ..data.parquet import Parts, item_names, load_part
from ..data.preferences import Preferences, check_informative
from ..distances.tallies import Counts
from ..engines.executors import Executor, RemoteExecutor, is_remote
from ..kernels.click_rows import ClickRows

# For each worker, of clicks that are sent to them: workers wait for half of one's share at most. By
# 1 it would be all of it, by 4 a quarter, for twice as many messages.
BLOCKS_EACH = 2


@dataclass(frozen=True, eq=False)
class ShardedClicks(Clicks):
    """Clicks that the workers hold; `starts` are here, `codes` are not. Uninformative rows are left
    out."""

    futures: list[Any]  # of the clicks of some rows each
    cut: list[slice]  # these rows
    executor: RemoteExecutor
    table: SizeTable | None = None  # also of users who clicked everything

    def __repr__(self) -> str:
        return f"ShardedClicks({self.n_users} users, {self.n_items} items)"

    @property
    def n_users(self) -> int:
        """Number of rows; their names are not here."""
        return len(self.weights)

    def blocks(self, kind: Any, sizes: Counts) -> list[Any]:
        """Futures of the rows as a law reads them."""
        firsts = (np.cumsum(self.weights) - self.weights)[[rows.start for rows in self.cut]]
        return [
            self.executor.submit(_rows, shard, kind, sizes, first)
            for shard, first in zip(self.futures, firsts.tolist(), strict=True)
        ]

    def take(self, rows: ArrayLike) -> Clicks:
        """Some of the rows, by number or by mask, brought here."""
        chosen = np.arange(self.n_users)[index_of(rows)]
        order = np.argsort(chosen, kind="stable")
        edges = np.searchsorted(chosen[order], [0, *(rows.stop for rows in self.cut)]).tolist()
        tasks = [
            (shard, chosen[order[slice(*pair)]] - mine.start)
            for shard, mine, pair in zip(
                self.futures, self.cut, itertools.pairwise(edges), strict=True
            )
        ]
        return join_rows(list(self.executor.map(_take, tasks))).take(np.argsort(order))

    def one_row_each(self) -> tuple[Preferences, NDArray[np.int64]]:
        """As they are: each stands for one person."""
        return self, np.arange(self.n_users)

    def item_counts(self) -> Counts:
        return np.asarray(sum(self.executor.map(Clicks.item_counts, self.futures)))

    def checksum(self) -> int:
        return sum(self.executor.map(Clicks.checksum, self.futures)) % 2**64

    def by_size(self) -> SizeTable:
        assert self.table is not None  # clicks that are at hand, too, are not asked here
        return self.table

    def kept(self) -> Clicks:
        """The items alone, for a posterior that keeps no users."""
        none = np.empty(0, dtype=np.int64)
        codes, users = none.astype(np.int32), none.astype(object)
        return Clicks(none, users, self.items, np.zeros(1, np.int64), codes)


# The tasks, which run on the workers


def _rows(clicks: Clicks, kind: Any, sizes: Counts, first: int) -> Any:
    numbers = first + np.cumsum(clicks.weights) - clicks.weights
    return kind(ClickRows(clicks.starts, clicks.codes), sizes, clicks.weights, numbers)


def _take(task: tuple[Clicks, Counts]) -> Clicks:
    clicks, rows = task
    return clicks.take(rows)


def _make_shard(starts: Counts, codes: NDArray[np.int32], weights: Counts, n_items: int) -> Clicks:
    users = np.empty(len(weights), dtype=np.int8)  # names are not needed there
    return Clicks(weights, users, np.arange(n_items), starts, codes)


class _Loaded(NamedTuple):
    """A part, and what is known of it beforehand."""

    clicks: Clicks  # of those who say anything
    table: SizeTable
    ends: tuple[str, str] | None  # the first user and the last


def _load(path: str, items: list[str]) -> _Loaded:
    clicks = load_part(path, items)
    users = clicks.users
    ends = (users[0], users[-1]) if len(users) else None
    return _Loaded(clicks.take(clicks.is_informative), clicks.by_size(), ends)


def _clicks_of(loaded: _Loaded) -> Clicks:
    return loaded.clicks


def _sums(loaded: _Loaded) -> tuple[Counts, SizeTable, tuple[str, str] | None]:
    return loaded.clicks.n_clicks, loaded.table, loaded.ends


# Where they come from


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
    n_clicks, tables, ends = zip(*executor.map(_sums, loaded), strict=True)
    parts.check_order(list(ends))
    used = [part for part, mine in zip(loaded, n_clicks, strict=True) if len(mine)]
    check_informative(np.array([len(used) > 0]))
    edges = np.cumsum([0, *(len(mine) for mine in n_clicks if len(mine))]).tolist()
    return ShardedClicks(
        np.ones(edges[-1], dtype=np.int64),
        np.empty(0, dtype=object),
        np.array(items, dtype=object),
        np.concatenate([[0], np.cumsum(np.concatenate(n_clicks))]),
        np.empty(0, dtype=np.int32),
        [executor.submit(_clicks_of, part) for part in used],
        list(itertools.starmap(slice, itertools.pairwise(edges))),
        executor,
        functools.reduce(SizeTable.plus, tables),
    )


def send_clicks(prefs: Clicks, executor: RemoteExecutor) -> ShardedClicks:
    """Send clicks that are at hand to the workers, within tasks, so that they can be sent again."""
    clicks = prefs.take(prefs.is_informative)
    n_blocks = max(1, min(BLOCKS_EACH * executor.n_workers, clicks.n_users))
    edges = np.linspace(0, clicks.n_users, n_blocks + 1).astype(int).tolist()
    cut, futures = list(itertools.starmap(slice, itertools.pairwise(edges))), []
    for rows in cut:
        starts = clicks.starts[rows.start : rows.stop + 1]
        codes, weights = clicks.codes[starts[0] : starts[-1]], clicks.weights[rows]
        task = (starts - starts[0], codes, weights, clicks.n_items)
        futures.append(executor.submit(_make_shard, *task))
    nobody, none = np.empty(0, dtype=object), np.empty(0, dtype=np.int32)
    where = (clicks.items, clicks.starts, none, futures, cut, executor)
    return ShardedClicks(clicks.weights, nobody, *where)


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
