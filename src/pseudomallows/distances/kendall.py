"""Kendall's distance: the number of pairs of items in another order; see `kernels.kendall`."""

import functools

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..kernels.kendall import rankings as kernels
from .distance import Exact, compare_rows
from .tallies import WinsTally


class Kendall(Exact):
    """Everything is exact, for any number of items."""

    name = "kendall"

    def between(self, rankings: ArrayLike, other: ArrayLike) -> NDArray[np.int64]:
        """Distance of each row of `rankings` from `other`, or from its row there."""
        return compare_rows(kernels.kendall_distances, rankings, other)

    def log_partition(self, n_items: int, alpha: float) -> float:
        """Log of the sum over all rankings of exp(-alpha / n_items * distance)."""
        return _partition(n_items, alpha)[0]

    def expected(self, n_items: int, alpha: float) -> float:
        """Mean distance of a Mallows draw from its consensus."""
        return _partition(n_items, alpha)[1]

    def draw(self, n_items: int, alpha: float, n_draws: int, seed: int) -> NDArray[np.int32]:
        """Mallows draws around 1, 2, ..., exact and independent, in time n_items log n_items."""
        draws = np.empty((n_draws, n_items), dtype=np.int32)
        kernels.draw_kendall(seed, alpha / n_items, draws)
        return draws

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
        """A tally of no users."""
        return WinsTally(np.zeros((n_items, n_items), dtype=np.int64))


KENDALL = Kendall()


@functools.lru_cache(maxsize=64)  # a chain asks for the same alpha again and again
def _partition(n_items: int, alpha: float) -> tuple[float, float]:
    log_sum, distance = kernels.kendall_partition(n_items, alpha / n_items)
    return float(log_sum), float(distance)
