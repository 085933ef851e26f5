"""Cayley's distance: the fewest exchanges of two items that turn one ranking into the other."""

import math

import numpy as np
from numpy.typing import NDArray

from ..kernels.distances import cayley_loops as kernels
from ..kernels.distances import list_loops
from .distance import OneStays
from .lists import ListTally


class Cayley(OneStays):
    """Everything is exact, for any number of items; see `kernels.distances.cayley_loops`."""

    name = "cayley"
    compare = kernels.cayley_distances

    def make_partition(self, n_items: int, alpha: float) -> tuple[float, float]:
        weights = np.arange(1, n_items) * math.exp(-alpha / n_items)  # of joining a cycle
        return float(np.log1p(weights).sum()), float((weights / (1 + weights)).sum())

    def fill_draws(self, seed: int, alpha: float, draws: NDArray[np.int32]) -> None:
        """Exact, in time n_items each."""
        kernels.draw_cayley(seed, alpha / draws.shape[1], draws)

    def move_probability(self, n_items: int, alpha: float) -> float:
        """An item stays if it is alone in its cycle, and any item may be the last to join."""
        others = (n_items - 1) * math.exp(-alpha / n_items)
        return others / (1 + others)

    def tally(self, n_items: int) -> ListTally:
        return ListTally.empty(list_loops.CAYLEY, n_items)


CAYLEY = Cayley()
