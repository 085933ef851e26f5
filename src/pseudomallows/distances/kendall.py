"""Kendall's distance: the number of pairs of items in another order; see `kernels.kendall`."""

import numpy as np
from numpy.typing import NDArray

from ..kernels.kendall import inversions as kernels
from .distance import Distance
from .tallies import WinsTally


class Kendall(Distance):
    """Everything is exact, for any number of items."""

    name = "kendall"
    compare = kernels.kendall_distances

    def make_partition(self, n_items: int, alpha: float) -> tuple[float, float]:
        log_sum, distance = kernels.kendall_partition(n_items, alpha / n_items)
        return log_sum, distance

    def fill_draws(self, seed: int, alpha: float, draws: NDArray[np.int32]) -> None:
        """Exact, in time n_items log n_items each."""
        kernels.draw_kendall(seed, alpha / draws.shape[1], draws)

    def rank_probabilities(self, n_items: int, alpha: float) -> NDArray[np.float64]:
        """``probabilities[item, rank - 1]`` of a Mallows draw around 1, 2, ....

        A sum for each cell, of at most some sqrt(n_items) terms that count.
        """
        probabilities = np.empty((n_items, n_items))
        kernels.kendall_rank_probabilities(n_items, alpha / n_items, probabilities)
        return probabilities

    def expected_ranks(self, n_items: int, alpha: float) -> NDArray[np.float64]:
        """Mean rank of each item of a Mallows draw around 1, 2, ..., in time n_items."""
        means = np.empty(n_items)
        kernels.kendall_expected_ranks(n_items, alpha / n_items, means)
        return means

    def tally(self, n_items: int) -> WinsTally:
        return WinsTally(np.zeros((n_items, n_items), dtype=np.int64))


KENDALL = Kendall()
