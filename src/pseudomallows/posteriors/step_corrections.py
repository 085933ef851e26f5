"""Corrections as files up to version 5 hold them: one for each of a few windows, in steps."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .corrections import log_odds

MOST_STRETCH = 1.5  # how much wider or narrower a window may be than that of its correction
LEAST_SCORE = 1e-3  # where the logarithm of a score ends
TIE_BREAK = 1e-9  # slope where a map is flat: what has better features is first
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StepCorrection:
    """Logistic in some features, then a monotone map for the best items of a user, and another for
    the rest.

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


@dataclass(frozen=True, eq=False)
class StepCorrections:
    """``steps[window]``: a correction for windows like this one."""

    steps: dict[int, StepCorrection]

    @property
    def largest(self) -> int:
        """The largest window that they were learnt for."""
        return max(self.steps)

    @property
    def windows(self) -> str:
        """Those they were learnt for, in words."""
        return ", ".join(map(str, self.steps))

    def nearest(self, window: int) -> int:
        """The nearest window that has a correction."""
        return min(self.steps, key=lambda known: abs(math.log(known / window)))

    def covers(self, window: int) -> bool:
        """Is the nearest window at most half as large again?"""
        nearest = self.nearest(window)
        return max(nearest / window, window / nearest) <= MOST_STRETCH

    def corrected(
        self,
        law: tuple[Floats, Floats, Floats, Floats | None],
        is_given: bool,
        unseen: NDArray[np.bool_],
        window: int,
    ) -> Floats:
        """Probabilities from what `features_of` of the newer correction takes as `law`."""
        return self.steps[self.nearest(window)].apply(step_features(law, is_given), unseen, window)


def step_features(law: tuple[Floats, Floats, Floats, Floats | None], is_given: bool) -> Floats:
    """``[row, item, feature]``: odds by rank and alpha, score, odds of clusters; then those of
    the user."""
    chances, scores, of_users, others = law
    logs = scores if is_given else np.log(np.maximum(scores, LEAST_SCORE))
    plain = [] if is_given else [scores]
    blend = [] if others is None else [log_odds(others)]
    of_items = np.stack([log_odds(chances), logs, *plain, *blend], axis=-1)
    same = np.broadcast_to(of_users[:, None], (*scores.shape, of_users.shape[1]))
    return np.concatenate([of_items, same], axis=-1)


def best_of(scale: Floats, n_best: int) -> NDArray[np.bool_]:
    """Which items are among the best of their row."""
    best = np.zeros(scale.shape, dtype=bool)
    if n_best >= scale.shape[1]:
        return ~best
    top = np.argpartition(-scale, n_best - 1, axis=1)[:, :n_best]
    best[np.arange(len(scale))[:, None], top] = True
    return best
