"""What every distance answers, and the alpha that belongs to a mean distance."""

import math
from collections.abc import Callable
from typing import Protocol, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..kernels.costs import count_ranks
from .tallies import Counts, Prices, RankTally, Tally


class Distance(Protocol):
    """A right-invariant distance between rankings, in whole numbers, never normalised."""

    @property
    def name(self) -> str:
        """What it is called in `fit`, in settings and in files."""
        ...  # pragma: no cover

    @property
    def most_items(self) -> float:
        """How many items it can take; infinite if any number."""
        ...  # pragma: no cover

    def between(self, rankings: ArrayLike, other: ArrayLike) -> NDArray[np.int64]:
        """Distance of each row of `rankings` from `other`, or from its row there."""
        ...  # pragma: no cover

    def log_partition(self, n_items: int, alpha: float) -> float:
        """Log of the sum over all rankings of exp(-alpha / n_items * distance)."""
        ...  # pragma: no cover

    def log_partition_error(self, n_items: int, alpha: float) -> float:
        """How far off `log_partition` may be; 0 where it is exact."""
        ...  # pragma: no cover

    def expected(self, n_items: int, alpha: float) -> float:
        """Mean distance of a Mallows draw from its consensus."""
        ...  # pragma: no cover

    def draw(self, n_items: int, alpha: float, n_draws: int, seed: int) -> NDArray[np.int32]:
        """Mallows draws around 1, 2, ..., independent: ``draws[draw, item]``."""
        ...  # pragma: no cover

    def rank_probabilities(self, n_items: int, alpha: float) -> NDArray[np.float64]:
        """``probabilities[item, rank - 1]`` of a Mallows draw around 1, 2, ...."""
        ...  # pragma: no cover

    def expected_ranks(self, n_items: int, alpha: float) -> NDArray[np.float64]:
        """Mean rank of each item of a Mallows draw around 1, 2, ...."""
        ...  # pragma: no cover

    def tally(self, n_items: int) -> Tally:
        """A tally of no users."""
        ...  # pragma: no cover


class PriceDistance(Distance, Prices, Protocol):
    """A distance that is a sum over items of a price for two ranks."""

    def prices(self, n_items: int) -> Counts:
        """``prices[rank - 1, other - 1]``: what an item adds to the distance."""
        ...  # pragma: no cover

    def tally(self, n_items: int) -> RankTally:
        """A tally of no users."""
        ...  # pragma: no cover


class Exact:
    """What distances have in common whose partition function is exact."""

    most_items = math.inf

    def log_partition_error(self, n_items: int, alpha: float) -> float:
        """How far off `log_partition` may be: it is exact."""
        return 0.0


def adds_up(distance: Distance) -> TypeGuard[PriceDistance]:
    """Is the distance a sum over items of a price for two ranks?"""
    return hasattr(distance, "costs")


def compare_rows(
    kernel: Callable[..., None], rankings: ArrayLike, other: ArrayLike
) -> NDArray[np.int64]:
    """Distances of rows by a kernel ``(rankings, others, distances)``, where either of the two may
    be one ranking for all rows of the other: distances are symmetric."""
    left, right = (np.ascontiguousarray(x, dtype=np.int32) for x in (rankings, other))
    shape = np.broadcast_shapes(left.shape, right.shape)[:-1]
    rows, others = np.atleast_2d(left), np.atleast_2d(right)
    if len(rows) < len(others):
        rows, others = others, rows
    found = np.empty(len(rows), dtype=np.int64)
    kernel(rows, others, found)
    return found.reshape(shape)


def one_rank_stays(n_items: int, chance: float) -> NDArray[np.float64]:
    """``probabilities[item, rank - 1]``, if an item leaves its rank by `chance`, for any other.

    >>> one_rank_stays(3, 0.5)
    array([[0.5 , 0.25, 0.25],
           [0.25, 0.5 , 0.25],
           [0.25, 0.25, 0.5 ]])
    """
    table = np.full((n_items, n_items), chance / max(n_items - 1, 1))
    np.fill_diagonal(table, 1 - chance)
    return table


def means_if_one_stays(n_items: int, chance: float) -> NDArray[np.float64]:
    """The mean ranks of `one_rank_stays`.

    >>> means_if_one_stays(3, 0.5)
    array([1.75, 2.  , 2.25])
    """
    ranks = np.arange(1, n_items + 1)
    others = (ranks.sum() - ranks) / max(n_items - 1, 1)
    return np.asarray(ranks + chance * (others - ranks))


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
    """The alpha whose expected distance is `mean`; infinite for 0, 0 beyond that of chance."""
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
