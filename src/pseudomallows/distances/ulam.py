"""Ulam's distance: the fewest items that must move to another place; see
`kernels.distances.ulam_loops`."""

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.distances import list_loops
from ..kernels.distances import ulam_loops as kernels
from .distance import Distance, symmetric_shares
from .lists import ListTally

MOST_ITEMS = 60  # whose shapes are counted: 966,467; half have 5,604, twice as many 1.8 billion
MOST_ENUMERATED = 10  # items whose rankings, 3.6 million, are gone through once; 11 have 40 million


class Ulam(Distance):
    """Exact up to 60 items: shapes of tableaux are counted, and there are a million of them.

    The distance itself is computed for any number of items.
    """

    name = "ulam"
    most_items = MOST_ITEMS
    compare = kernels.ulam_distances

    def make_partition(self, n_items: int, alpha: float) -> tuple[float, float]:
        """`log_partition` and `expected`; to 60 items."""
        log_sum, law = _law(n_items, alpha)
        return log_sum, float(law @ np.arange(n_items))

    def fill_draws(self, seed: int, alpha: float, draws: NDArray[np.int32]) -> None:
        """Exact, to 60 items: a shape by its weight, two random tableaux of it,
        Robinson-Schensted backwards."""
        n_items = draws.shape[1]
        shapes, sums = shapes_of(n_items), np.cumsum(_law(n_items, alpha)[1])
        kernels.draw_ulam(seed, sums, shapes.sums, shapes.starts, shapes.numbers, draws)

    def rank_probabilities(self, n_items: int, alpha: float) -> NDArray[np.float64]:
        """``probabilities[item, rank - 1]`` of a Mallows draw around 1, 2, ....

        Exact to 10 items, by going through all rankings once. To 60 items by 40,000 exact draws,
        always the same ones, each counted in four ways that have the same law (the ranking, its
        inverse, and both from the other end): the standard error is 0.0025 at most.
        """
        if n_items <= MOST_ENUMERATED:
            counts = _ranks_by_distance(n_items)
            weights = np.exp(-alpha / n_items * np.arange(n_items))
            return np.asarray(np.tensordot(weights, counts, 1) / (weights @ counts[:, 0].sum(1)))
        draws = self.draw(n_items, alpha, 40_000, seed=0)  # standard error: at most 0.0025
        return symmetric_shares(draws)

    def tally(self, n_items: int) -> ListTally:
        _check_size(n_items)
        return ListTally.empty(list_loops.ULAM, n_items)


ULAM = Ulam()


class Shapes(NamedTuple):
    """What is known of all shapes of a number of items, whatever alpha.

    `log_counts[distance]` is the log of the number of rankings at that distance. The shapes of a
    distance begin at `starts[distance]`; `sums[shape]` are running sums of their shares.
    `numbers[total, width]` are the partitions of `total` into rows of at most `width`.
    """

    log_counts: NDArray[np.float64]
    starts: NDArray[np.int64]
    sums: NDArray[np.float64]
    numbers: NDArray[np.int64]


def _check_size(n_items: int) -> None:
    if n_items > MOST_ITEMS:
        raise ValueError(
            f"distance='ulam' has its partition function and draws for up to {MOST_ITEMS} items, "
            f"got {n_items}: use another distance, or fewer items"
        )


@functools.lru_cache(maxsize=4)
def shapes_of(n_items: int) -> Shapes:
    """The shapes of so many items, up to 60."""
    _check_size(n_items)
    numbers = np.empty((n_items + 1, n_items + 1), dtype=np.int64)
    kernels.count_shapes(n_items, numbers)
    log_counts, log_shares = np.empty(n_items), np.empty(numbers[n_items, n_items])
    kernels.weigh_shapes(n_items, log_shares, log_counts)
    sizes = [numbers[distance, n_items - distance] for distance in range(n_items)]
    starts = np.cumsum([0, *sizes])
    sums = np.empty(len(log_shares))
    for distance, log_count in enumerate(log_counts):
        part = slice(starts[distance], starts[distance + 1])
        np.cumsum(np.exp(log_shares[part] - log_count), out=sums[part])
    return Shapes(log_counts, starts, sums, numbers)


def _law(n_items: int, alpha: float) -> tuple[float, NDArray[np.float64]]:
    """The log partition function, and the probability of each distance."""
    logs = shapes_of(n_items).log_counts - alpha / n_items * np.arange(n_items)
    log_sum = float(np.logaddexp.reduce(logs))
    return log_sum, np.exp(logs - log_sum)


@functools.lru_cache(maxsize=4)
def _ranks_by_distance(n_items: int) -> NDArray[np.int64]:
    """``counts[distance, item, rank - 1]`` rankings."""
    counts = np.empty((n_items, n_items, n_items), dtype=np.int64)
    kernels.count_ranks_by_rise(n_items, counts)
    return counts
