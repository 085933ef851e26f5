"""Mallows, the distribution: partition function, probability, draws, marginals."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..engines.executors import interruptible
from ..engines.memory import as_size, available_memory
from ..rankings import (
    as_rng,
    check_alpha,
    check_count,
    check_ranking,
    check_rankings,
    check_weights,
)
from . import get
from .distance import alpha_for_distance


class Mallows:
    """The Mallows distribution.

    A ranking R has probability exp(-alpha / n_items * distance(R, consensus)) / Z. With the
    footrule, Kendall's, Cayley's and the Hamming distance everything here is exact, for any number
    of items; with Ulam's up to 60 items, except rank probabilities, which are exact up to 10. With
    Spearman's it is exact up to 20 items; beyond, each draw comes from a Markov chain, and the
    partition function, up to 1,000 items, has an error that `log_partition_error` states.

    Parameters
    ----------
    consensus : array_like of int
        The ranking in the middle; ``consensus[item]`` is a rank, 1 for the best.
    alpha : float
        Concentration around the consensus, 0 (all rankings equally likely) or more.
    distance : str
        "footrule", "spearman" (squared differences), "kendall", "cayley", "hamming" or "ulam".

    Examples
    --------
    >>> m = Mallows([2, 1, 3, 4], alpha=5)
    >>> round(m.log_partition, 6)
    0.261271
    >>> m.draw(2, rng=1)
    array([[2, 1, 3, 4],
           [2, 1, 3, 4]], dtype=int32)
    >>> round(Mallows([2, 1, 3, 4], alpha=5, distance="kendall").expected_distance(), 6)
    0.926415
    """

    def __init__(self, consensus: ArrayLike, alpha: float, distance: str = "footrule"):
        self._distance = get(distance)
        self.consensus = check_ranking(consensus, "consensus")
        self.alpha = check_alpha(alpha)
        self.distance = distance

    def __repr__(self) -> str:
        by = "" if self.distance == "footrule" else f", distance={self.distance!r}"
        return f"Mallows({self.n_items} items, alpha={self.alpha:g}{by})"

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.consensus)

    @property
    def log_partition(self) -> float:
        """Log of the normalising constant."""
        return self._distance.log_partition(self.n_items, self.alpha)

    @property
    def log_partition_error(self) -> float:
        """How far off `log_partition` may be: 0, except for Spearman's distance with many items."""
        return self._distance.log_partition_error(self.n_items, self.alpha)

    def expected_distance(self) -> float:
        """Mean distance between a draw and the consensus."""
        return self._distance.expected(self.n_items, self.alpha)

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
        away = self._distance.between(rankings, self.consensus)
        values = -self.alpha / self.n_items * away - self.log_partition
        return float(values[0]) if single else np.asarray(values, dtype=np.float64)

    def draw(self, n_draws: int, rng: np.random.Generator | int | None = None) -> NDArray[np.int32]:
        """Draw rankings, independent: ``draws[draw, item]`` is a rank."""
        rng = as_rng(rng)
        wanted, seed = check_count(n_draws, "n_draws", 0), int(rng.integers(2**63))
        self._check_memory()
        around = interruptible(self._distance.draw, self.n_items, self.alpha, wanted, seed)
        return around[:, self.consensus - 1]

    def _check_memory(self) -> None:
        """Refuse the tables of the footrule, items^2 / 2 numbers, if they have no room."""
        needed, available = 4 * self.n_items**2, available_memory()
        if self._distance.name != "footrule" or available is None or needed <= available:
            return
        raise ValueError(
            f"draws of {self.n_items:,} items by the footrule need {as_size(needed)} of memory, "
            f"and {as_size(available)} are available: at most {math.isqrt(available // 4):,} items "
            "fit; distance='kendall' has no such limit"
        )

    def rank_probabilities(self) -> NDArray[np.float64]:
        """``probabilities[item, rank - 1]`` is the probability that a draw gives the item that
        rank.

        >>> Mallows([2, 1], alpha=0).rank_probabilities()
        array([[0.5, 0.5],
               [0.5, 0.5]])
        """
        around = self._distance.rank_probabilities(self.n_items, self.alpha)
        return around[self.consensus - 1]

    def expected_ranks(self) -> NDArray[np.float64]:
        """Mean rank of each item."""
        return self._distance.expected_ranks(self.n_items, self.alpha)[self.consensus - 1]


def maximum_likelihood_alpha(
    rankings: ArrayLike,
    consensus: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    distance: str = "footrule",
) -> float:
    """The alpha under which the rankings are most likely, given the consensus.

    It makes the expected distance equal to the mean distance of the rankings: infinite if all of
    them equal the consensus, 0 if they are no closer to it than uniform ones.

    >>> consensus = np.arange(1, 11)
    >>> rankings = Mallows(consensus, alpha=3).draw(5000, rng=1)
    >>> round(maximum_likelihood_alpha(rankings, consensus), 1)
    3.0
    """
    kind, consensus = get(distance), check_ranking(consensus, "consensus")
    table = check_rankings(rankings)
    if table.shape[1] != len(consensus):
        raise ValueError(
            f"rankings must have the {len(consensus)} items of the consensus, got {table.shape[1]}"
        )
    share = check_weights(weights, len(table))
    if not share.any():
        raise ValueError("all weights are 0: at least one must be more")
    mean = float(np.average(kind.between(table, consensus), weights=share))
    return alpha_for_distance(kind, len(consensus), mean)
