"""What every distance answers, and the alpha that belongs to a mean distance."""

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .tallies import Prices, RankTally, Tally


class Distance(Protocol):
    """A right-invariant distance between rankings, in whole numbers, never normalised."""

    @property
    def name(self) -> str:
        """What it is called in `fit`, in settings and in files."""
        ...  # pragma: no cover

    def between(self, rankings: ArrayLike, other: ArrayLike) -> NDArray[np.int64]:
        """Distance of each row of `rankings` from `other`, or from its row there."""
        ...  # pragma: no cover

    def log_partition(self, n_items: int, alpha: float) -> float:
        """Log of the sum over all rankings of exp(-alpha / n_items * distance)."""
        ...  # pragma: no cover

    def expected(self, n_items: int, alpha: float) -> float:
        """Mean distance of a Mallows draw from its consensus."""
        ...  # pragma: no cover

    def draw(self, n_items: int, alpha: float, n_draws: int, seed: int) -> NDArray[np.int32]:
        """Mallows draws around 1, 2, ..., exact and independent: ``draws[draw, item]``."""
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

    def tally(self, n_items: int) -> RankTally:
        """A tally of no users."""
        ...  # pragma: no cover


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
