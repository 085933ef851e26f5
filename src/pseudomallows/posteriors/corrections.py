"""A correction that makes probabilities agree with what comes true."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..kernels.footrule.personal import TIE_BREAK

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Correction:
    """Logistic in some features, then a monotone map for the best items of a user, and another for
    the rest: to be the best of one's list is news that the features do not tell in full.

    The features of an item have coefficients of 0 or more, so that what is better in all of them is
    never said to be less likely; those of the user, at the end, have any.

    Attributes
    ----------
    coefficients : array
        One for each feature, then the constant.
    knots, values : arrays
        The maps, linear between their knots, from the logistic scale to probabilities:
        ``knots[0]`` for the best items, ``knots[1]`` for the rest.
    """

    coefficients: Floats
    knots: Floats
    values: Floats

    def apply(self, features: Floats, unseen: NDArray[np.bool_], n_best: int) -> Floats:
        """Probabilities from ``features[user, item, feature]``; 0 for what is not `unseen`."""
        scale = np.where(unseen, features @ self.coefficients[:-1] + self.coefficients[-1], -np.inf)
        best = best_of(scale, n_best) & unseen
        chances = np.interp(scale, self.knots[0], self.values[0])
        rest = np.interp(scale, self.knots[1], self.values[1])
        lowest = np.where(best, chances, 1.0).min(axis=1, keepdims=True)
        flat = np.where(best, chances, np.minimum(rest, lowest))
        return np.minimum(flat + TIE_BREAK / (1 + np.exp(-scale)), 1.0) * unseen


def best_of(scale: Floats, n_best: int) -> NDArray[np.bool_]:
    """Which items are among the best of their row."""
    best = np.zeros(scale.shape, dtype=bool)
    if n_best >= scale.shape[1]:
        return ~best
    top = np.argpartition(-scale, n_best - 1, axis=1)[:, :n_best]
    best[np.arange(len(scale))[:, None], top] = True
    return best
