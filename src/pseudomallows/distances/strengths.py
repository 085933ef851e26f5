"""Strengths of items by Bradley and Terry: i is preferred to j by logistic(strength difference).

Kendall's law of a pair depends on the difference of the places alone, as if neighbours were all
equally far apart. Strengths order the items too, but every gap between neighbours has its own size.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..rankings import orderings_of
from .tallies import ranking_of

PRIOR_VARIANCE = 4.0  # of a strength around 0: odds of 17 to 1 between two items are usual
# Of a pair's wins, below which they are uninformative in a chi-square: from 1 on, each side has one
# expected win or more, the least that Cochran (1954) allows.
LEAST_VARIANCE = 1.0
Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Strengths:
    """The likeliest strengths, and the root of their covariance: a normal law of strengths.

    `dispersion` is how many times farther, in variance, the pairs are from their probabilities than
    votes would be by luck; the covariance is that many times as large.
    """

    strengths: Floats
    root: Floats  # its square, root @ root.T, is the covariance
    dispersion: float

    def draw(self, rng: np.random.Generator) -> NDArray[np.int32]:
        """A ranking by strengths drawn from their law."""
        return ranked(self.strengths + self.root @ rng.standard_normal(len(self.strengths)))


def ranked(strengths: Floats) -> NDArray[np.int32]:
    """The ranking by strengths, the largest first."""
    return ranking_of(orderings_of(-strengths))


def fit_strengths(wins: Floats) -> Strengths:
    """The strengths of ``wins[i, j]`` votes for i over j, halves for ties, by Newton's steps; with
    a normal prior, so that an item that always wins has a finite one.

    >>> fit_strengths(np.array([[0, 30.0], [10.0, 0]])).strengths.round(2)
    array([ 0.54, -0.54])
    """
    n_items, votes = len(wins), wins + wins.T
    strengths, won = np.zeros(n_items), wins.sum(axis=1)
    for _ in range(50):  # Newton's steps; 100 items of 8 in spread took 13
        probabilities = _probabilities(strengths)
        slope = won - (votes * probabilities).sum(axis=1) - strengths / PRIOR_VARIANCE
        bend = (
            laplacian(votes * probabilities * (1 - probabilities))
            + np.eye(n_items) / PRIOR_VARIANCE
        )
        step = np.linalg.solve(bend, slope)
        strengths = strengths + np.clip(step, -2.0, 2.0)  # the prior's standard deviation
        if np.abs(step).max() < 1e-8:
            break
    value, n_pairs = chi_square(wins, _probabilities(strengths))
    left = n_pairs - (n_items - 1)  # degrees of freedom
    dispersion = max(1.0, value / left) if left > 0 else 1.0
    root = np.linalg.cholesky(np.linalg.inv(bend) * dispersion)
    return Strengths(strengths, root, dispersion)


def _probabilities(strengths: Floats) -> Floats:
    from scipy.special import expit

    return np.asarray(expit(strengths[:, None] - strengths[None, :]))


def laplacian(weights: Floats) -> Floats:
    """Row sums on the diagonal, less the weights, which are symmetric."""
    return np.asarray(np.diag(weights.sum(axis=1)) - weights)


def chi_square(wins: Floats, probabilities: Floats) -> tuple[float, int]:
    """Sum over the pairs of the squared difference between wins and expected wins, over their
    variance; and how many pairs are in it: those with a variance of 1 vote or more."""
    votes = wins + wins.T
    variances = np.triu(votes * probabilities * (1 - probabilities), 1)
    used = variances >= LEAST_VARIANCE
    squares = (wins - votes * probabilities) ** 2
    return float((squares[used] / variances[used]).sum()), int(used.sum())
