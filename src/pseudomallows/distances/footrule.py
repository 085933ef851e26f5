"""The footrule: the sum over items of the difference in rank.

Everything here is exact, by a recursion along the ranks: see `kernels.footrule`.
"""

import functools

import numpy as np
from numpy.typing import NDArray

from ..kernels.costs import power_distances
from ..kernels.footrule import partition as kernels
from .distance import PriceDistance
from .tallies import Counts


class Footrule(PriceDistance):
    """``prices[rank - 1, other - 1]`` is the difference between two ranks."""

    name = "footrule"
    compare = functools.partial(power_distances, 1)

    def make_partition(self, n_items: int, alpha: float) -> tuple[float, float]:
        log_sum, distance = kernels.partition_and_distance(n_items, alpha / n_items)
        return log_sum, distance

    def fill_draws(self, seed: int, alpha: float, draws: NDArray[np.int32]) -> None:
        n_items = draws.shape[1]
        kernels.draw_mallows(seed, n_items, alpha / n_items, draws)

    def rank_probabilities(self, n_items: int, alpha: float) -> NDArray[np.float64]:
        probabilities = np.empty((n_items, n_items))
        kernels.rank_probabilities(n_items, alpha / n_items, probabilities)
        return probabilities

    def expected_ranks(self, n_items: int, alpha: float) -> NDArray[np.float64]:
        """Mean rank of each item of a Mallows draw around 1, 2, ..., in time n_items^2."""
        means = np.empty(n_items)
        kernels.expected_ranks(n_items, alpha / n_items, means)
        return means

    def prices(self, n_items: int) -> Counts:
        ranks = np.arange(n_items)
        return np.abs(ranks[:, None] - ranks)

    def costs(self, counts: Counts) -> Counts:
        """``counts @ prices``, by running sums: n_items^2 steps instead of n_items^3.

        One rank further adds 1 for every user at or before it, and takes 1 off for every other.
        """
        passed = counts.cumsum(axis=1)
        costs = np.empty_like(counts)
        costs[:, 0] = counts @ np.arange(len(counts))
        costs[:, 1:] = 2 * passed[:, :-1] - passed[:, -1:]
        return np.asarray(costs.cumsum(axis=1, out=costs))


FOOTRULE = Footrule()
