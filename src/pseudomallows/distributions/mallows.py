"""Mallows, the distribution: partition function, probability, draws, marginals; all exact."""

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..kernels.footrule import partition as kernels
from ..kernels.footrule.matching import draw_mallows
from ..preferences.preferences import check_weights
from ..rankings import (
    check_alpha,
    check_count,
    check_distance,
    check_ranking,
    check_rankings,
    footrule,
)


class Mallows:
    """The Mallows distribution with the footrule distance.

    A ranking R has probability exp(-alpha / n_items * footrule(R, consensus)) / Z. Everything here
    is exact, for any number of items: the partition function takes time n_items^2, a draw n_items.

    Parameters
    ----------
    consensus : array_like of int
        The ranking in the middle; ``consensus[item]`` is a rank, 1 for the best.
    alpha : float
        Concentration around the consensus, 0 (all rankings alike) or more.
    distance : str
        "footrule".

    Examples
    --------
    >>> m = Mallows([2, 1, 3, 4], alpha=5)
    >>> round(m.log_partition, 6)
    0.261271
    >>> m.draw(2, rng=1)
    array([[2, 1, 3, 4],
           [2, 1, 3, 4]], dtype=int32)
    """

    def __init__(self, consensus: ArrayLike, alpha: float, distance: str = "footrule"):
        check_distance(distance)
        self.consensus = check_ranking(consensus, "consensus")
        self.alpha = check_alpha(alpha)
        self.distance = distance

    def __repr__(self) -> str:
        return f"Mallows({self.n_items} items, alpha={self.alpha:g})"

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.consensus)

    @property
    def _lam(self) -> float:
        return self.alpha / self.n_items

    @cached_property
    def _partition(self) -> tuple[float, float]:
        log_sum, distance = kernels.partition_and_distance(self.n_items, self._lam)
        return float(log_sum), float(distance)

    @property
    def log_partition(self) -> float:
        """Log of the normalising constant, exact."""
        return self._partition[0]

    def expected_distance(self) -> float:
        """Mean footrule distance between a draw and the consensus, exact."""
        return self._partition[1]

    def log_probability(self, rankings: ArrayLike) -> NDArray[np.float64] | float:
        """Log probability of a ranking, or of each row of an array of rankings.

        >>> Mallows([1, 2], alpha=0).log_probability([[1, 2], [2, 1]])
        array([-0.69314718, -0.69314718])
        """
        single = np.ndim(rankings) == 1
        rankings = check_rankings(np.atleast_2d(np.asarray(rankings)))
        if rankings.shape[1] != self.n_items:
            raise ValueError(
                f"rankings must have the {self.n_items} items of the consensus, "
                f"got {rankings.shape[1]}"
            )
        distances = np.atleast_1d(footrule(rankings, self.consensus[None]))
        values = -self._lam * distances - self.log_partition
        return float(values[0]) if single else values

    def draw(self, n_draws: int, rng: np.random.Generator | int | None = None) -> NDArray[np.int32]:
        """Draw rankings, exact and independent: ``draws[draw, item]`` is a rank."""
        rng = np.random.default_rng(rng)
        around = np.empty((check_count(n_draws, "n_draws", 0), self.n_items), dtype=np.int32)
        draw_mallows(rng.integers(2**63), self.n_items, self._lam, around)
        return around[:, self.consensus - 1]

    def rank_probabilities(self) -> NDArray[np.float64]:
        """``probabilities[item, rank - 1]`` is the chance that a draw gives the item that rank.

        >>> Mallows([2, 1], alpha=0).rank_probabilities()
        array([[0.5, 0.5],
               [0.5, 0.5]])
        """
        probabilities = np.empty((self.n_items, self.n_items))
        kernels.rank_probabilities(self.n_items, self._lam, probabilities)
        return probabilities[self.consensus - 1]

    def expected_ranks(self) -> NDArray[np.float64]:
        """Mean rank of each item, exact, in time n_items^2."""
        means = np.empty(self.n_items)
        kernels.expected_ranks(self.n_items, self._lam, means)
        return means[self.consensus - 1]


def maximum_likelihood_alpha(
    rankings: ArrayLike, consensus: ArrayLike, *, weights: ArrayLike | None = None
) -> float:
    """The alpha under which the rankings are most likely, given the consensus.

    It makes the expected distance equal to the mean distance of the rankings: infinite if all of
    them equal the consensus, 0 if they are no closer to it than chance.

    >>> consensus = np.arange(1, 11)
    >>> rankings = Mallows(consensus, alpha=3).draw(5000, rng=1)
    >>> round(maximum_likelihood_alpha(rankings, consensus), 1)
    3.0
    """
    consensus = check_ranking(consensus, "consensus")
    distances = np.atleast_1d(footrule(check_rankings(rankings), consensus[None]))
    share = check_weights(weights, len(distances))
    if not share.any():
        raise ValueError("all weights are 0: at least one must be more")
    return alpha_for_distance(len(consensus), float(np.average(distances, weights=share)))


def alpha_for_distance(n_items: int, distance: float) -> float:
    """The alpha whose expected distance is `distance`; infinite for 0, 0 beyond that of chance."""

    def excess(alpha: float) -> float:
        return float(kernels.partition_and_distance(n_items, alpha / n_items)[1]) - distance

    if distance <= 0:
        return math.inf
    return find_root(lambda alpha: -excess(alpha))


def find_root(rising: Callable[[float], float], tolerance: float = 1e-10) -> float:
    """Where a rising function of alpha crosses zero; 0 if it starts above it."""
    from scipy.optimize import brentq

    low, high = 0.0, 1.0
    if rising(low) >= 0:
        return 0.0
    while rising(high) < 0:
        low, high = high, 2 * high
    return float(brentq(rising, low, high, xtol=tolerance, rtol=1e-12))
