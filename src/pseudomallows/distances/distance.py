"""What every distance answers, and the alpha that belongs to a mean distance."""

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..kernels.costs import count_ranks
from .tallies import Counts, RankTally, Tally


class Distance(ABC):
    """A right-invariant distance between rankings, in whole numbers, never normalised."""

    name: ClassVar[str]  # in `fit`, in settings and in files
    most_items: float = math.inf  # how many it can take
    compare: ClassVar[Callable[..., None]]  # kernel (rankings, others, distances)

    def between(self, rankings: ArrayLike, other: ArrayLike) -> NDArray[np.int64]:
        """Distance of each row of `rankings` from `other`, or from its row there.

        Either of the two may be one ranking for all rows of the other: distances are symmetric.
        """
        left, right = (np.ascontiguousarray(x, dtype=np.int32) for x in (rankings, other))
        shape = np.broadcast_shapes(left.shape, right.shape)
        rows, others = left.reshape(-1, shape[-1]), right.reshape(-1, shape[-1])
        if len(rows) < len(others):
            rows, others = others, rows
        distances = np.empty(len(rows), dtype=np.int64)
        type(self).compare(rows, others, distances)
        return distances.reshape(shape[:-1])

    @abstractmethod
    def make_partition(self, n_items: int, alpha: float) -> tuple[float, float]:
        """`log_partition` and `expected`."""

    @functools.lru_cache(maxsize=64)  # noqa: B019 - there is one object of each distance
    def partition(self, n_items: int, alpha: float) -> tuple[float, float]:
        """The same, made once for the same alpha."""
        log_sum, mean = self.make_partition(n_items, alpha)
        return float(log_sum), float(mean)

    def log_partition(self, n_items: int, alpha: float) -> float:
        """Log of the sum over all rankings of exp(-alpha / n_items * distance)."""
        return self.partition(n_items, alpha)[0]

    def log_partition_error(self, n_items: int, alpha: float) -> float:
        """How far off `log_partition` may be; 0 where it is exact."""
        return 0.0

    def expected(self, n_items: int, alpha: float) -> float:
        """Mean distance of a Mallows draw from its consensus."""
        return self.partition(n_items, alpha)[1]

    @abstractmethod
    def fill_draws(self, seed: int, alpha: float, draws: NDArray[np.int32]) -> None:
        """Fill ``draws[draw, item]``."""

    def draw(self, n_items: int, alpha: float, n_draws: int, seed: int) -> NDArray[np.int32]:
        """Mallows draws around 1, 2, ..., independent: ``draws[draw, item]``."""
        draws = np.empty((n_draws, n_items), dtype=np.int32)
        self.fill_draws(seed, alpha, draws)
        return draws

    @abstractmethod
    def rank_probabilities(self, n_items: int, alpha: float) -> NDArray[np.float64]:
        """``probabilities[item, rank - 1]`` of a Mallows draw around 1, 2, ...."""

    def expected_ranks(self, n_items: int, alpha: float) -> NDArray[np.float64]:
        """Mean rank of each item of a Mallows draw around 1, 2, ...."""
        return np.asarray(self.rank_probabilities(n_items, alpha) @ np.arange(1, n_items + 1))

    @abstractmethod
    def tally(self, n_items: int) -> Tally:
        """A tally of no users."""


class PriceDistance(Distance):
    """A distance that is a sum over items of a price for two ranks."""

    @abstractmethod
    def prices(self, n_items: int) -> Counts:
        """``prices[rank - 1, other - 1]``: what an item adds to the distance."""

    def costs(self, counts: Counts) -> Counts:
        """``counts @ prices``."""
        return np.asarray(counts @ self.prices(len(counts)))

    def tally(self, n_items: int) -> RankTally:
        return RankTally(self, np.zeros((n_items, n_items), dtype=np.int64))


class OneStays(Distance):
    """A distance that does not see how far an item moves: all ranks but its own are alike."""

    @abstractmethod
    def move_probability(self, n_items: int, alpha: float) -> float:
        """The probability that an item leaves its rank."""

    def rank_probabilities(self, n_items: int, alpha: float) -> NDArray[np.float64]:
        moved = self.move_probability(n_items, alpha)
        table = np.full((n_items, n_items), moved / max(n_items - 1, 1))
        np.fill_diagonal(table, 1 - moved)
        return table

    def expected_ranks(self, n_items: int, alpha: float) -> NDArray[np.float64]:
        """Mean rank of each item of a Mallows draw around 1, 2, ..., in time n_items."""
        ranks = np.arange(1, n_items + 1)
        others = (ranks.sum() - ranks) / max(n_items - 1, 1)
        return np.asarray(ranks + self.move_probability(n_items, alpha) * (others - ranks))


def adds_up(distance: Distance) -> TypeGuard[PriceDistance]:
    """Is the distance a sum over items of a price for two ranks?"""
    return isinstance(distance, PriceDistance)


def symmetric_shares(draws: NDArray[np.int32]) -> NDArray[np.float64]:
    """``shares[item, rank - 1]`` of draws around 1, 2, ..., made as symmetric as their law is:
    items and ranks can be exchanged, and both can be counted from the other end.

    >>> symmetric_shares(np.array([[2, 3, 1]], dtype=np.int32))
    array([[0. , 0.5, 0.5],
           [0.5, 0. , 0.5],
           [0.5, 0.5, 0. ]])
    """
    n_items = draws.shape[1]
    counts = np.zeros((n_items, n_items), dtype=np.int64)
    count_ranks(draws, np.ones(len(draws), dtype=np.int64), counts)
    both = counts + counts.T
    return np.asarray((both + both[::-1, ::-1]) / (4 * len(draws)))


def alpha_for_distance(distance: Distance, n_items: int, mean: float) -> float:
    """The alpha whose expected distance is `mean`; infinite for 0, and 0 beyond that of alpha 0."""
    if mean <= 0:
        return math.inf
    return find_root(lambda alpha: mean - distance.expected(n_items, alpha))


def find_root(rising: Callable[[float], float], tolerance: float = 1e-10) -> float:
    """Where a rising function of alpha crosses zero; 0 if it starts above it."""
    from scipy.optimize import brentq

    low, high = 0.0, 1.0
    if rising(low) >= 0:
        return 0.0
    while rising(high) < 0:
        low, high = high, 2 * high
    return float(brentq(rising, low, high, xtol=tolerance, rtol=1e-12))
