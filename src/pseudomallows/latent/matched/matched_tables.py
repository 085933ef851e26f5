"""The matched law of clicks: its tables for any alpha, and the tally that it needs of the users.

For a user with c clicks it is the law of c of n items, drawn with weights, that has the inclusion
probabilities of the exact law (`kernels.matched`). So all that it needs of the users is how many
with c clicks clicked each item: whole numbers that add up over blocks, files and workers.
"""

import functools
import math
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...distances.tallies import MOVES, Counts, Ranking, best_assignment
from ...engines.executors import Executor, Threads, blocks, is_remote
from ...kernels import matched as kernels
from ...kernels.chain import move_consensus
from ...kernels.footrule.inclusion import inclusion_logits, tagged_walk
from ..click_laws import ClickLaw, ClickTally, SizeGroups
from .matched_users import N_BLOCKS

STEP = 0.1  # of log alpha between two tables: read to 2e-6, see `MatchedTables`
POINTS = (-2, -1, 0, 1, 2, 3)  # tables around an alpha, from which the one of an alpha is read
DIVISORS = tuple(math.prod(point - other for other in POINTS if other != point) for point in POINTS)
LOWEST = 0.003  # alpha below which the log weights are as good as proportional to it
SHARPEST = 8.0  # alpha / n_items from which they are linear in it: what is left is exp(-16)
PARTS = 2.0**12  # of evidence, so that sums are exact: 2^40 fits before a digit is lost
N_LATEST = 64  # tables of the latest alphas: as many as some chains of clusters have at once

Floats = NDArray[np.float64]


class MatchedTables(ClickLaw):
    """Log weights of the matched law, for some numbers of clicks and any alpha.

    They are made on a grid of log alpha and read between six of its points, as weights over alpha,
    which hardly bend: the error is below 2e-6, times one plus the size of the log weight. They are
    scaled so that the weights of all sets of c items sum to their number, n over c, at any alpha.
    """

    is_exact = False

    def __init__(self, n_items: int, sizes: Counts, executor: Executor | None = None):
        groups = SizeGroups(sizes, np.arange(len(sizes)))  # each has its own weights
        super().__init__(n_items, groups, evidence_shape=(n_items, n_items))
        self.sizes = sizes
        self._executor = Threads(1) if executor is None or is_remote(executor) else executor
        self._tables: dict[float, Floats] = {}
        self._latest: dict[float, Floats] = {}  # of the alphas that were asked for last
        self._lock = threading.Lock()

    @functools.cached_property
    def log_binomials(self) -> Floats:
        """Log of the number of sets of each size."""
        return log_binomials(self.n_items, self.sizes)

    def terms(self, alpha: float) -> list[tuple[float, float]]:
        """Alphas of the grid, and with which factors their tables sum to that of an alpha."""
        sharp = SHARPEST * self.n_items
        if alpha <= LOWEST:
            return [(LOWEST, alpha / LOWEST)]
        if alpha >= sharp:
            extra = (alpha - sharp) / self.n_items
            return [(sharp, 1.0 + extra), (sharp - self.n_items, -extra)]
        place = math.log(alpha) / STEP
        first = math.floor(place + 1e-9)
        if place - first < 1e-9:
            return [(math.exp(first * STEP), 1.0)]
        factors = _lagrange(place - first)
        grid = [math.exp((first + point) * STEP) for point in POINTS]
        return [(near, factor * alpha / near) for near, factor in zip(grid, factors, strict=True)]

    def table(self, alpha: float) -> Floats:
        """``log_weights[size, rank - 1]`` at an alpha of the grid, made when it is asked for."""
        found = self._tables.get(alpha)
        if found is None:
            with self._lock:
                found = self._tables.get(alpha)
                if found is None:
                    found = self._tables[alpha] = self._make(alpha, Threads(1))
        return found

    def prepare(self, alphas: Floats, reach: int = 1) -> None:
        """Make the tables for these alphas and a few steps around, side by side; not in a task."""
        steps = STEP * np.arange(-reach, reach + 1)
        near = {
            grid
            for alpha in alphas
            for step in steps
            for grid, _ in self.terms(alpha * np.exp(step))
        }
        with self._lock:  # another chain may be at it
            for grid in sorted(near - set(self._tables)):
                self._tables[grid] = self._make(grid, self._executor)

    def at(self, alpha: float) -> Floats:
        """``log_weights[size, rank - 1]`` at any alpha."""
        found = self._latest.get(alpha)
        if found is None:
            found = np.zeros((len(self.sizes), self.n_items))
            for grid, factor in self.terms(alpha):
                kernels.add_table(self.table(grid), factor, found)
            if len(self._latest) >= N_LATEST:
                self._latest = {}
            self._latest[alpha] = found
        return found

    def fill_log_weights(self, ranks: Ranking, alpha: float, cluster: int, filled: Floats) -> None:
        """Fill ``filled[size, item, cluster]`` under a consensus."""
        kernels.fill_matched_weights(self.at(alpha), ranks, cluster, filled)

    def constants(self, alpha: float) -> Floats:
        """``constants[size]``: minus the log of the number of sets, at any alpha."""
        return -self.log_binomials

    def tally(self, counts: Counts, n_users: Counts) -> "SizeTally":
        """The tally of some users."""
        return SizeTally(self, counts, n_users)

    def best_of(self, evidence: NDArray[Any], draw: Ranking) -> Ranking:
        """The consensus that is best by mean costs."""
        return best_assignment(evidence)

    def _make(self, alpha: float, executor: Executor) -> Floats:
        walk = tagged_walk(self.n_items, alpha / self.n_items)
        log_weights = np.empty((len(self.sizes), self.n_items))

        def make_block(part: slice) -> None:
            logits = np.empty(self.n_items)
            for place in range(part.start, part.stop):
                inclusion_logits(walk, self.sizes[place], logits)
                log_weights[place] = logits
                size, log_binomial = self.sizes[place], self.log_binomials[place]
                kernels.match_weights(logits, size, log_binomial, log_weights[place])

        size = -(-len(self.sizes) // N_BLOCKS)
        list(executor.map(make_block, blocks(len(self.sizes), max(size, 1))))
        return log_weights


def log_binomials(n_items: int, sizes: Counts) -> Floats:
    """Log of the number of sets of each size."""
    whole = math.lgamma(n_items + 1)
    return np.array(
        [whole - math.lgamma(c + 1) - math.lgamma(n_items - c + 1) for c in sizes.tolist()]
    )


def _lagrange(place: float) -> list[float]:
    """Factors of values at `POINTS` for the value at `place`, between 0 and 1 and neither.

    >>> abs(sum(f * p**5 for f, p in zip(_lagrange(0.3), POINTS, strict=True)) - 0.3**5) < 1e-12
    True
    """
    product = math.prod([place - point for point in POINTS])
    pairs = zip(POINTS, DIVISORS, strict=True)
    return [product / ((place - point) * divisor) for point, divisor in pairs]


class SizeTally(ClickTally):
    """``counts[size, item]`` users with so many clicks clicked the item: what the matched law needs
    of the users. Its costs depend on alpha."""

    @functools.cached_property
    def cells(self) -> Counts:
        """Rows of (size, item, count), for the counts above 0."""
        cells = np.empty((int(np.count_nonzero(self.counts)), 3), dtype=np.int64)
        kernels.list_cells(self.counts, cells)
        return cells

    @property
    def log_sets(self) -> float:
        """Log of the number of ways in which all users could have clicked so many items."""
        return float((self.n_users * self.law.log_binomials).sum())

    def costs(self, alpha: float) -> Floats:
        """``costs[item, rank - 1]``: minus the log likelihood of all users, up to a constant."""
        n_items = self.law.n_items
        costs = np.empty((n_items, n_items))
        kernels.fill_costs(self.cells, self.law.at(alpha), costs)
        return costs

    def best(self, alpha: float) -> Ranking:
        """The consensus of the largest matched likelihood, by linear assignment."""
        return best_assignment(self.costs(alpha))

    def evidence(self, alpha: float) -> Floats:
        """The costs, but for a constant of each item, so that none is below 0: their mean over
        draws says which consensus is best. In whole parts of 1, so that any order of draws has the
        same sum."""
        costs = self.costs(alpha)
        kernels.round_costs(PARTS, costs)
        return costs

    def curve(self, consensus: Ranking) -> "AlphaCurve":
        """The matched log likelihood as a function of alpha."""
        return AlphaCurve(self, consensus)

    def move(
        self,
        stream: NDArray[np.uint64],
        alpha: float,
        n_moves: int,
        consensus: Ranking,
        move: str = "swap",
        leap: int = 1,
    ) -> None:
        """Move a consensus in place by Metropolis proposals, which leave the matched posterior of
        an alpha as it is."""
        move_consensus(stream, self.costs(alpha), 1.0, MOVES[move], leap, n_moves, consensus)


class AlphaCurve:
    """The matched log likelihood of all users under one consensus, for any alpha."""

    def __init__(self, tally: SizeTally, consensus: Ranking):
        self._tally, self._consensus = tally, consensus
        self._constant = -tally.log_sets
        self._sums: dict[float, float] = {}

    def __call__(self, alpha: float) -> float:
        """Its value."""
        terms = self._tally.law.terms(alpha)
        return self._constant + sum(factor * self._sum(grid) for grid, factor in terms)

    def _sum(self, grid: float) -> float:
        if grid not in self._sums:
            table = self._tally.law.table(grid)
            value = kernels.sum_weights(self._tally.cells, self._consensus, table)
            self._sums[grid] = float(value)
        return self._sums[grid]
