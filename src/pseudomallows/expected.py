"""Expected counts of the latent rankings of clicks, instead of drawn ones: one pass of additions.

Under the paper's law (Algorithm 4) the ranks of a user's clicked items, and of the others, depend
on their places in the consensus among each other alone. So one table for each size of a group,
place by rank, serves all users, and a consensus step needs no more of them than how many have an
item at a place: whole numbers, which add up in any order.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .clicks import ORDERS, ClickLatent
from .executors import BLOCK
from .kernels.costs import footrule_costs
from .kernels.groups import add_products, count_group, count_places
from .latent import Counts, Ranking
from .rankings import orderings_of

TABLE_DRAWS = 2048  # behind each table
MAX_TABLES = 2**27  # cells of all tables; beyond, drawing the users is the better way
ROWS = 16 * BLOCK  # of a block


@dataclass
class GroupTables:
    """``of(size)[place, rank]``: how often, of `TABLE_DRAWS` draws, a place of a group gets a rank.

    Made when they are first needed, and kept while alpha stays.
    """

    lam: float
    order: str
    _tables: dict[int, NDArray[np.float64]] = field(default_factory=dict)

    def of(self, size: int) -> NDArray[np.float64]:
        """The table of one size."""
        if size not in self._tables:
            counts = np.zeros((size, size), dtype=np.int64)
            count_group(size, size, self.lam, ORDERS[self.order], TABLE_DRAWS, counts)
            self._tables[size] = counts.astype(np.float64)
        return self._tables[size]


@dataclass(frozen=True)
class RowsBySize:
    """The rows of clicks, in the order of their numbers of clicks."""

    latent: ClickLatent

    @cached_property
    def sizes(self) -> Counts:
        """Clicks of each row."""
        return np.diff(self.latent.row_starts)

    @cached_property
    def order(self) -> Counts:
        """Rows with few clicks first."""
        return np.argsort(self.sizes, kind="stable")

    @cached_property
    def blocks(self) -> list[slice]:
        """Blocks of that order, all of one size each."""
        ends = np.cumsum(np.bincount(self.sizes)).tolist()
        starts = [0, *ends[:-1]]
        return [
            slice(first, min(first + ROWS, end))
            for start, end in zip(starts, ends, strict=True)
            for first in range(start, end, ROWS)
        ]

    def check_memory(self) -> None:
        """Refuse item lists so long that the tables would not fit."""
        found = np.unique(self.sizes)
        n_cells = int((found**2 + (self.latent.n_items - found) ** 2).sum())
        if n_cells > MAX_TABLES:
            raise ValueError(
                f"update='expected' needs tables of {n_cells:.2g} numbers for {len(found)} numbers "
                f"of clicks and {self.latent.n_items} items: use update='sampled'"
            )


class ExpectedDraw:
    """Expected counts in the making: a draw as others, but of no ranking."""

    def __init__(
        self, latent: ClickLatent, rows: RowsBySize, consensus: Ranking, tables: GroupTables
    ):
        self._latent, self._rows, self._tables = latent, rows, tables
        self._ordering = orderings_of(consensus)
        self._counts = np.zeros((latent.n_items, latent.n_items), dtype=np.int64)
        for size in np.unique(rows.sizes).tolist():  # before threads ask for them
            tables.of(size)
            tables.of(latent.n_items - size)

    def blocks(self) -> list[slice]:
        """Blocks of rows of one size each."""
        return self._rows.blocks

    def count(self, block: slice) -> Counts:
        """What a block adds: expected counts, times the number of draws behind a table.

        Products and sums are of whole numbers below 2^53, so they are exact as floats.
        """
        latent, rows = self._latent, self._rows.order[block]
        n_items, size = latent.n_items, int(self._rows.sizes[rows[0]])
        places = np.zeros((n_items, n_items))
        count_places(
            rows,
            latent.row_starts,
            latent.row_codes,
            latent.row_weights,
            self._ordering,
            places,
        )
        found = np.zeros((n_items, n_items))
        add_products(places, 0, self._tables.of(size), found)
        add_products(places, size, self._tables.of(n_items - size), found)
        return found.astype(np.int64)

    def add(self, part: Counts) -> None:
        """Add the counts of a block."""
        self._counts += part

    def costs(self) -> Counts:
        """The costs, once all blocks are added, to the nearest whole number."""
        return np.asarray((footrule_costs(self._counts) + TABLE_DRAWS // 2) // TABLE_DRAWS)
