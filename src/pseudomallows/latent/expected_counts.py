"""Expected counts of the latent rankings of clicks, instead of drawn ones.

Under the paper's law (Algorithm 4) the ranks of a user's clicked items, and of the others, depend
on their places in the consensus among each other alone. So one table for each size of a group,
place by rank, serves all users, and a consensus step needs no more of them than where in the
consensus their first, second, ... clicks lie: one addition a click, of whole numbers, which add up
in any order.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..distances import price_of
from ..distances.tallies import Counts, Ranking, RankTally
from ..distributions.pseudo import ORDERS
from ..engines.executors import BLOCK, all_cores, blocks, is_remote
from ..kernels.groups import Group, add_expected, count_group, count_positions
from ..rankings import orderings_of
from .clicks import ClickPopulation
from .population import Completed, Population, SizeCounts

FEWEST_DRAWS, MOST_DRAWS = 2**11, 2**15  # behind each table
MAX_TABLES = 2**29  # cells of all tables, two bytes each; beyond, drawing the users is better
ROWS = 64 * BLOCK  # of a block
MANY_ITEMS = 500  # from which two threads take the tables


@dataclass
class GroupTables:
    """``of(size)[place, rank]``: how often, of `draws_of(size)` draws, a place of a group gets a
    rank.

    The noise of a table is that of all users who share it, so there are about as many draws behind
    it as users. Tables are made when they are first needed, and kept while alpha stays.
    """

    lam: float
    order: str
    sizes: SizeCounts
    n_items: int
    _tables: dict[int, NDArray[np.uint16]] = field(default_factory=dict)

    def draws_of(self, size: int) -> int:
        """A power of two."""
        groups = (self.sizes.sizes == size) | (self.n_items - self.sizes.sizes == size)
        users = int(self.sizes.users[groups].max(initial=1))
        return int(np.clip(1 << (users - 1).bit_length(), FEWEST_DRAWS, MOST_DRAWS))

    def of(self, size: int) -> NDArray[np.uint16]:
        """The table of one size."""
        if size not in self._tables:
            counts, n_draws = np.zeros((size, size), dtype=np.int64), self.draws_of(size)
            group = Group(size, self.lam, ORDERS[self.order])
            if self.order == "uniform":  # the law is the same read from behind
                count_group(size, group, n_draws // 2, counts)
                counts += counts[::-1, ::-1].copy()
            else:
                count_group(size, group, n_draws, counts)
            self._tables[size] = counts.astype(np.uint16)
        return self._tables[size]

    def make(self) -> None:
        """Make all of them, on all cores."""
        mine = {int(size) for size in self.sizes.sizes}
        groups = sorted(mine | {self.n_items - size for size in mine})
        for _ in all_cores().map(self.of, groups[::-1]):
            pass


def check_tables(sizes: Counts, n_items: int) -> None:
    """Refuse item lists so long that the tables would not fit."""
    n_cells = int((sizes**2 + (n_items - sizes) ** 2).sum())
    if n_cells > MAX_TABLES:
        raise ValueError(
            f"update='expected' needs tables of {n_cells:.2g} numbers for {len(sizes)} numbers "
            f"of clicks and {n_items} items: use update='sampled'"
        )


@dataclass(frozen=True)
class PositionLaw:
    """Count where in the consensus the clicks of the users lie.

    ``counts[firsts[size] + j, position]``: users with `size` clicks whose click j, in the order of
    the consensus, is at that position.
    """

    consensus: Ranking
    sizes: Counts  # all that there are, rising

    @property
    def firsts(self) -> Counts:
        """The first row of each size; rows of other sizes do not exist."""
        firsts = np.full(len(self.consensus) + 1, -1)
        firsts[self.sizes] = np.cumsum(self.sizes) - self.sizes
        return firsts

    def no_counts(self) -> Counts:
        """Counts of no users."""
        return np.zeros((int(self.sizes.sum()), len(self.consensus)), dtype=np.int64)

    def blocks(self, population: Population) -> list[slice]:
        """The rows, cut into blocks."""
        return blocks(population.n_rows, ROWS)

    def count(self, population: ClickPopulation, rows: slice) -> Counts:
        """What a block adds."""
        counts = self.no_counts()
        clicks, weights = population.clicks_of_rows(rows), population.row_weights[rows]
        count_positions(clicks, weights, self.consensus, self.firsts, counts)
        return counts


class ExpectedDraw:
    """Expected counts in the making: a draw as others, but of no ranking."""

    def __init__(self, population: Population, consensus: Ranking, tables: GroupTables):
        self.population, self.law = (
            population,
            PositionLaw(consensus.copy(), population.click_sizes.sizes),
        )
        self._tables, self._positions = tables, self.law.no_counts()
        self._consensus = consensus

    def add(self, part: Counts) -> None:
        """Add the counts of a block."""
        self._positions += part

    def finish(self) -> Completed:
        """The tally, once all blocks are added, in units of a user; the consensus stays.

        Products and sums are of whole numbers below 2^53, so they are exact as floats.
        """
        sizes = self.law.sizes.tolist()
        if self.population.n_items < MANY_ITEMS:
            counts = self._expect(sizes)
        else:
            executor = self.population.executor
            threads = all_cores() if is_remote(executor) else executor
            counts = sum(threads.map(self._expect, [sizes[::2], sizes[1::2]]), start=np.zeros(1))
        tally = RankTally(
            price_of(self.population.distance), counts.astype(np.int64), unit=MOST_DRAWS
        )
        return Completed(tally, self._consensus)

    def _expect(self, sizes: list[int]) -> NDArray[np.float64]:
        """Expected counts of the users of some sizes, times `MOST_DRAWS`."""
        law, n_items = self.law, self.population.n_items
        counts, ordering = np.zeros((n_items, n_items)), orderings_of(law.consensus)
        for size in sizes:
            first = law.firsts[size]
            positions = self._positions[first : first + size]
            if positions.any():
                groups = (size, n_items - size)
                tables = [self._tables.of(group) for group in groups]
                scales = [MOST_DRAWS // self._tables.draws_of(group) for group in groups]
                add_expected(positions, ordering, *tables, *scales, counts)
        return counts
