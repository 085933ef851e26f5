"""Cayley's distance: the fewest exchanges of two items that turn one ranking into the other."""

import functools
import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..kernels.distances import cayley as kernels
from ..kernels.distances import lists
from .distance import Exact, compare_rows, means_if_one_stays, one_rank_stays
from .tallies import ListTally


class Cayley(Exact):
    """Everything is exact, for any number of items; see `kernels.cayley`."""

    name = "cayley"

    def between(self, rankings: ArrayLike, other: ArrayLike) -> NDArray[np.int64]:
        """Distance of each row of `rankings` from `other`, or from its row there."""
        return compare_rows(kernels.cayley_distances, rankings, other)

    def log_partition(self, n_items: int, alpha: float) -> float:
        """Log of the sum over all rankings of exp(-alpha / n_items * distance)."""
        return _partition(n_items, alpha)[0]

    def expected(self, n_items: int, alpha: float) -> float:
        """Mean distance of a Mallows draw from its consensus."""
        return _partition(n_items, alpha)[1]

    def draw(self, n_items: int, alpha: float, n_draws: int, seed: int) -> NDArray[np.int32]:
        """Mallows draws around 1, 2, ..., exact and independent, in time n_items each."""
        draws = np.empty((n_draws, n_items), dtype=np.int32)
        kernels.draw_cayley(seed, alpha / n_items, draws)
        return draws

    def rank_probabilities(self, n_items: int, alpha: float) -> NDArray[np.float64]:
        """``probabilities[item, rank - 1]`` of a Mallows draw around 1, 2, ....

        The distance does not see how far an item moves: all ranks but its own are alike. It stays
        if it is alone in its cycle, and any item may be the last to join.
        """
        return one_rank_stays(n_items, _chance_to_move(n_items, alpha))

    def expected_ranks(self, n_items: int, alpha: float) -> NDArray[np.float64]:
        """Mean rank of each item of a Mallows draw around 1, 2, ...."""
        return means_if_one_stays(n_items, _chance_to_move(n_items, alpha))

    def tally(self, n_items: int) -> ListTally:
        """A tally of no users."""
        return ListTally.empty(lists.CAYLEY, n_items)


CAYLEY = Cayley()


def _chance_to_move(n_items: int, alpha: float) -> float:
    others = (n_items - 1) * math.exp(-alpha / n_items)
    return others / (1 + others)


@functools.lru_cache(maxsize=64)  # a chain asks for the same alpha again and again
def _partition(n_items: int, alpha: float) -> tuple[float, float]:
    log_sum, distance = kernels.cayley_partition(n_items, alpha / n_items)
    return float(log_sum), float(distance)
