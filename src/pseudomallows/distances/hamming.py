"""The Hamming distance: the number of items with another rank; see `kernels.hamming`."""

import functools

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..kernels.distances import hamming as kernels
from .distance import Exact, compare_rows, means_if_one_stays, one_rank_stays
from .tallies import Counts, RankTally


class Hamming(Exact):
    """Everything is exact, for any number of items."""

    name = "hamming"

    def between(self, rankings: ArrayLike, other: ArrayLike) -> NDArray[np.int64]:
        """Distance of each row of `rankings` from `other`, or from its row there."""
        return compare_rows(kernels.hamming_distances, rankings, other)

    def log_partition(self, n_items: int, alpha: float) -> float:
        """Log of the sum over all rankings of exp(-alpha / n_items * distance)."""
        return _law(n_items, alpha)[0]

    def expected(self, n_items: int, alpha: float) -> float:
        """Mean distance of a Mallows draw from its consensus."""
        law = _law(n_items, alpha)[1]
        return float(law @ np.arange(n_items + 1))

    def draw(self, n_items: int, alpha: float, n_draws: int, seed: int) -> NDArray[np.int32]:
        """Mallows draws around 1, 2, ..., exact and independent, in time n_items each."""
        draws = np.empty((n_draws, n_items), dtype=np.int32)
        kernels.draw_hamming(seed, _law(n_items, alpha)[1], draws)
        return draws

    def rank_probabilities(self, n_items: int, alpha: float) -> NDArray[np.float64]:
        """``probabilities[item, rank - 1]`` of a Mallows draw around 1, 2, ....

        The distance does not see how far an item moves: all ranks but its own are alike.
        """
        return one_rank_stays(n_items, self.expected(n_items, alpha) / n_items)

    def expected_ranks(self, n_items: int, alpha: float) -> NDArray[np.float64]:
        """Mean rank of each item of a Mallows draw around 1, 2, ...."""
        return means_if_one_stays(n_items, self.expected(n_items, alpha) / n_items)

    def prices(self, n_items: int) -> Counts:
        """``prices[rank - 1, other - 1]``: what an item adds to the distance."""
        return 1 - np.eye(n_items, dtype=np.int64)

    def costs(self, counts: Counts) -> Counts:
        """``counts @ prices``: the users who do not give the item that rank."""
        return np.asarray(counts.sum(axis=1, keepdims=True) - counts)

    def tally(self, n_items: int) -> RankTally:
        """A tally of no users."""
        return RankTally(self, np.zeros((n_items, n_items), dtype=np.int64))


HAMMING = Hamming()


@functools.lru_cache(maxsize=64)  # a chain asks for the same alpha again and again
def _law(n_items: int, alpha: float) -> tuple[float, NDArray[np.float64]]:
    """The log partition function, and the probability of each distance."""
    law = np.empty(n_items + 1)
    return float(kernels.hamming_law(n_items, alpha / n_items, law)), law
