"""The Hamming distance: the number of items with another rank; see
`kernels.distances.hamming_loops`."""

import functools

import numpy as np
from numpy.typing import NDArray

from ..kernels.costs import power_distances
from ..kernels.distances import hamming_loops as kernels
from .distance import OneStays, PriceDistance
from .tallies import Counts


class Hamming(OneStays, PriceDistance):
    """Everything is exact, for any number of items."""

    name = "hamming"
    compare = functools.partial(power_distances, 0)

    def make_partition(self, n_items: int, alpha: float) -> tuple[float, float]:
        log_sum, law = law_of(n_items, alpha)
        return log_sum, float(law @ np.arange(n_items + 1))

    def fill_draws(self, seed: int, alpha: float, draws: NDArray[np.int32]) -> None:
        """Exact, in time n_items each."""
        kernels.draw_hamming(seed, law_of(draws.shape[1], alpha)[1], draws)

    def move_probability(self, n_items: int, alpha: float) -> float:
        return self.expected(n_items, alpha) / n_items

    def prices(self, n_items: int) -> Counts:
        return 1 - np.eye(n_items, dtype=np.int64)

    def costs(self, counts: Counts) -> Counts:
        """``counts @ prices``: the users who do not give the item that rank."""
        return np.asarray(counts.sum(axis=1, keepdims=True) - counts)


HAMMING = Hamming()


def law_of(n_items: int, alpha: float) -> tuple[float, NDArray[np.float64]]:
    """The log partition function, and the probability of each distance.

    Of distance d there are n! / (n - d)! * s(d) rankings, where s(d), the sum of (-1)^k / k! for k
    up to d, is the share of those orders of d places in which none stays.
    """
    distances = np.arange(n_items + 1)
    shares = np.cumsum(np.cumprod(np.append(1.0, -1.0 / distances[1:])))
    shares[1] = 0.0  # one item alone cannot move
    ways = np.append(0.0, np.cumsum(np.log(n_items - distances[:-1])))
    with np.errstate(divide="ignore"):
        logs = ways + np.log(shares) - alpha / n_items * distances
    log_sum = float(np.logaddexp.reduce(logs))
    return log_sum, np.exp(logs - log_sum)
