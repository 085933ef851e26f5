"""The footrule: the sum over items of the difference in rank.

Everything here is exact, by walks along the ranks: see `kernels.footrule`.
"""

import functools

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..kernels.costs import footrule_costs, footrule_distances
from ..kernels.footrule import partition as kernels
from ..kernels.footrule.matching import draw_mallows
from .distance import Exact
from .tallies import Counts, RankTally


class Footrule(Exact):
    """``prices[rank - 1, other - 1]`` is the difference between two ranks."""

    name = "footrule"

    def between(self, rankings: ArrayLike, other: ArrayLike) -> NDArray[np.int64]:
        """Distance of each row of `rankings` from `other`, or from its row there."""
        rankings, other = np.asarray(rankings), np.asarray(other)
        if rankings.ndim == 2 and other.ndim == 1 and rankings.dtype == other.dtype == np.int32:
            distances = np.empty(len(rankings), dtype=np.int64)  # the users of a fit: no copies
            footrule_distances(rankings, other, distances)
            return distances
        return np.asarray(np.abs(np.asarray(rankings, np.int64) - np.asarray(other)).sum(axis=-1))

    def log_partition(self, n_items: int, alpha: float) -> float:
        """Log of the sum over all rankings of exp(-alpha / n_items * distance)."""
        return _partition(n_items, alpha)[0]

    def expected(self, n_items: int, alpha: float) -> float:
        """Mean distance of a Mallows draw from its consensus."""
        return _partition(n_items, alpha)[1]

    def draw(self, n_items: int, alpha: float, n_draws: int, seed: int) -> NDArray[np.int32]:
        """Mallows draws around 1, 2, ..., exact and independent: ``draws[draw, item]``."""
        draws = np.empty((n_draws, n_items), dtype=np.int32)
        draw_mallows(seed, n_items, alpha / n_items, draws)
        return draws

    def rank_probabilities(self, n_items: int, alpha: float) -> NDArray[np.float64]:
        """``probabilities[item, rank - 1]`` of a Mallows draw around 1, 2, ...."""
        probabilities = np.empty((n_items, n_items))
        kernels.rank_probabilities(n_items, alpha / n_items, probabilities)
        return probabilities

    def expected_ranks(self, n_items: int, alpha: float) -> NDArray[np.float64]:
        """Mean rank of each item of a Mallows draw around 1, 2, ..., in time n_items^2."""
        means = np.empty(n_items)
        kernels.expected_ranks(n_items, alpha / n_items, means)
        return means

    def prices(self, n_items: int) -> Counts:
        """``prices[rank - 1, other - 1]``: what an item adds to the distance."""
        ranks = np.arange(n_items)
        return np.abs(ranks[:, None] - ranks)

    def costs(self, counts: Counts) -> Counts:
        """``counts @ prices``, by running sums: n_items^2 steps instead of n_items^3."""
        return np.asarray(footrule_costs(counts))

    def tally(self, n_items: int) -> RankTally:
        """A tally of no users."""
        return RankTally(self, np.zeros((n_items, n_items), dtype=np.int64))


FOOTRULE = Footrule()


@functools.lru_cache(maxsize=64)  # a chain asks for the same alpha again and again
def _partition(n_items: int, alpha: float) -> tuple[float, float]:
    log_sum, distance = kernels.partition_and_distance(n_items, alpha / n_items)
    return float(log_sum), float(distance)


def log_partition(n_items: int, alpha: float) -> float:
    """Log partition function of the Mallows distribution with the footrule."""
    return FOOTRULE.log_partition(n_items, alpha)
