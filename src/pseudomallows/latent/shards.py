"""Clicks in shards on Dask workers: what a fit needs of them travels, they do not.

A shard is a future: the outcome of a task that reads or makes it, and that runs again if its worker
is lost. A draw goes out as a law, a consensus and a seed, and comes back as counts.
"""

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ..distances.tallies import Counts
from ..engines.executors import Executor, RemoteExecutor, Threads, is_remote
from ..files.parquet_parts import Parts, item_names, load_part
from ..preferences import Clicks, Preferences, SizeTable
from .click_population import ClickPopulation
from .population import Population, check_informative

SHARDS_EACH = 2  # for each worker, of clicks that are sent to them


class ShardedPopulation(Population):
    """The latent rankings of users whose clicks lie in shards, each a `ClickPopulation`.

    As many numbers as users lie here too: their weights, and which stream is whose.
    """

    local: ClassVar[type[ClickPopulation]] = ClickPopulation  # what rows brought here become

    def __init__(
        self,
        shards: Sequence[Any],
        weights: Sequence[Counts],
        numbers: Sequence[Counts],
        sizes: Counts,
        n_items: int,
        executor: RemoteExecutor,
    ):
        super().__init__(n_items, executor, self.local.of_distance)
        self.shards, self.remote = list(shards), executor
        self._ends = np.cumsum([len(part) for part in weights])
        self._set_rows(np.concatenate(weights), np.concatenate(numbers))
        self.click_sizes = sizes

    @classmethod
    def of(cls, other: "ShardedPopulation") -> Self:
        """The same users, under the distance of this class."""
        found = cls.__new__(cls)
        found.__dict__ |= other.__dict__ | {"distance": cls.local.of_distance}
        return found

    @functools.cached_property
    def mean_ranks(self) -> NDArray[np.float64]:  # type: ignore[override]
        """Most clicked, rank 1."""
        counts = self.remote.map(_item_counts, self.shards)
        return -np.asarray(sum(counts), dtype=np.float64)

    @property
    def n_unknown(self) -> int:
        """Number of rows of which something is not known: all."""
        return self.n_rows

    def places(self, cut: list[slice]) -> list[tuple[Any, slice | None]]:
        """The shards, each whole."""
        return [(shard, None) for shard in self.shards]

    def slices(self, cut: list[slice]) -> list[slice]:
        """The rows of each shard."""
        edges = [0, *self._ends.tolist()]
        return [slice(first, end) for first, end in itertools.pairwise(edges)]

    def _select(self, weights: Counts, numbers: Counts) -> list[tuple[Any, Counts, Counts]]:
        """Shards of the rows of weight above 0, their weights, their numbers."""
        found, first = [], 0
        for shard, end in zip(self.shards, self._ends.tolist(), strict=True):
            rows = first + np.flatnonzero(weights[first:end])
            if len(rows):
                chosen = (rows - first, weights[rows], numbers[rows])
                found.append((self.remote.submit(_select_rows, shard, *chosen), *chosen[1:]))
            first = end
        return found

    def select(self, weights: Counts, numbers: Counts) -> "ShardedPopulation":
        """The rows of weight above 0 alone, with these weights and numbers of first users."""
        shards, weight_parts, number_parts = zip(*self._select(weights, numbers), strict=True)
        parts = (shards, weight_parts, number_parts)
        return type(self)(*parts, self.click_sizes, self.n_items, self.remote)

    def gather(self, weights: Counts) -> ClickPopulation:
        """The rows of weight above 0 alone, brought here."""
        shards, _, numbers = zip(*self._select(weights, self.row_numbers), strict=True)
        parts = list(self.remote.map(_clicks_of, shards))
        return self.local(join_clicks(parts), Threads(), np.concatenate(numbers))


# The tasks, which run on the workers


def _item_counts(population: ClickPopulation) -> Counts:
    return -population.mean_ranks.astype(np.int64)


def _select_rows(
    population: ClickPopulation, rows: Counts, weights: Counts, numbers: Counts
) -> Any:
    given = np.zeros((2, population.n_rows), dtype=np.int64)
    given[:, rows] = weights, numbers
    return population.select(*given)


def _clicks_of(population: ClickPopulation) -> Clicks:
    return population.clicks


def _make_shard(
    starts: Counts, codes: NDArray[np.int32], weights: Counts, numbers: Counts, n_items: int
) -> ClickPopulation:
    nobody, items = np.empty(len(weights), dtype=np.int8), np.arange(n_items)
    clicks = Clicks(weights, nobody, items, starts, codes)
    return ClickPopulation(clicks, Threads(1), numbers)


def _number_shard(clicks: Clicks, first: int) -> ClickPopulation:
    return ClickPopulation(clicks, Threads(1), first + np.arange(clicks.n_users))


@dataclass(frozen=True)
class _Sums:
    """What is known of a part beforehand."""

    n_users: int  # who say anything
    table: SizeTable
    checksum: int
    ends: tuple[str, str] | None  # the first user and the last


def _load(path: str, items: list[str]) -> tuple[Clicks, _Sums]:
    clicks = load_part(path, items)
    used, users = clicks.take(clicks.is_informative), clicks.users
    ends = (users[0], users[-1]) if len(users) else None
    return used, _Sums(used.n_users, clicks.by_size(), used.checksum(), ends)


def _sums(loaded: tuple[Clicks, _Sums]) -> _Sums:
    return loaded[1]


def _number_part(loaded: tuple[Clicks, _Sums], first: int) -> ClickPopulation:
    return _number_shard(loaded[0], first)


# Preferences in shards


@dataclass(frozen=True, eq=False)
class ShardedClicks(Clicks):
    """Clicks that only the workers hold; rows that say nothing are left out."""

    population: ShardedPopulation
    table: SizeTable
    sum_of_rows: int

    def __repr__(self) -> str:
        return f"ShardedClicks({self.n_users} users, {self.n_items} items)"

    @property
    def n_users(self) -> int:
        """Number of rows, over all shards."""
        return self.population.n_rows

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
        found = executor.map(item_names, parts.paths)
        items = sorted({name for names in found for name in names})
    if len(items) < 2:
        raise ValueError(f"a ranking needs at least 2 items, got {len(items)}")
    loaded = [executor.submit(_load, path, items) for path in parts.paths]
    sums = list(executor.map(_sums, loaded))
    parts.check_order([part.ends for part in sums])
    sizes = [part.n_users for part in sums]
    firsts = np.cumsum([0, *sizes]).tolist()
    check_informative(np.array([firsts[-1] > 0]))
    used = [place for place, size in enumerate(sizes) if size]
    table = functools.reduce(SizeTable.plus, [part.table for part in sums])
    population = ShardedPopulation(
        [executor.submit(_number_part, loaded[place], firsts[place]) for place in used],
        [np.ones(sizes[place], dtype=np.int64) for place in used],
        [np.arange(firsts[place], firsts[place + 1]) for place in used],
        table.sizes[table.sizes < len(items)],
        len(items),
        executor,
    )
    names = np.array(items, dtype=object)
    none = np.empty(0, dtype=np.int64)
    return ShardedClicks(
        population.row_weights,
        none.astype(object),
        names,
        np.zeros(1, np.int64),
        none.astype(np.int32),
        population,
        table,
        sum(part.checksum for part in sums) % 2**64,
    )


def shard_clicks(prefs: Clicks, executor: RemoteExecutor) -> ShardedPopulation:
    """Send clicks that are at hand to the workers, within tasks, so that they can be sent again."""
    here = ClickPopulation(prefs, Threads(1))
    n_shards = min(SHARDS_EACH * executor.n_workers, here.n_rows)
    edges = np.linspace(0, here.n_rows, n_shards + 1).astype(int).tolist()
    cuts = [slice(first, end) for first, end in itertools.pairwise(edges)]
    shards = []
    for rows in cuts:
        starts = here.starts_of(rows)
        codes = here.row_codes[starts[0] : starts[-1]]
        numbered = (here.row_weights[rows], here.row_numbers[rows], here.n_items)
        shards.append(executor.submit(_make_shard, starts - starts[0], codes, *numbered))
    return ShardedPopulation(
        shards,
        [here.row_weights[rows] for rows in cuts],
        [here.row_numbers[rows] for rows in cuts],
        here.click_sizes,
        here.n_items,
        executor,
    )


def join_clicks(parts: Sequence[Clicks]) -> Clicks:
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
