"""A correction that makes probabilities agree with what comes true, for any window."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..kernels.footrule.personal import (
    HIGH_ODDS,
    LAST_WINDOW,
    LOW_ODDS,
    N_FEATURES,
    PLACES,
)

N_LEARNT = 256  # places that a correction is learnt from with very many items; else from all
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Correction:
    """Logistic in some features, then a smooth map that rises everywhere.

    The features of an item have coefficients of 0 or more, those of its place above 0, so that a
    higher score always has a higher probability. Every one of them rises with the window too, so
    that a longer window has a higher one. Last, one number is added to all log odds of a user, so
    that the probabilities of all unseen items have the window as their sum (`add_up_to`).

    Attributes
    ----------
    coefficients : array
        One for each feature of `features_of`, then the constant.
    marks : array
        Of the scores: the middle, the spread, a low and a high one; and the largest window that
        was learnt.
    knots, values, slopes : arrays
        The map from the logistic scale to log odds: a cubic between each two knots, with these
        values and slopes there, straight beyond them.
    largest : int
        The largest window it holds for.
    """

    coefficients: Floats
    marks: Floats
    knots: Floats
    values: Floats
    slopes: Floats
    largest: int

    def covers(self, window: int) -> bool:
        """Does it hold for this window?"""
        return 1 <= window <= self.largest

    @property
    def windows(self) -> str:
        """Those it holds for, in words."""
        return f"1 to {self.largest}" if self.largest > 1 else "1"

    def odds(self, features: Floats) -> Floats:
        """Log odds from ``features[..., feature]``, as `features_of` makes them."""
        return self.mapped(features @ self.coefficients[:-1] + self.coefficients[-1])

    def mapped(self, scale: Floats) -> Floats:
        """Log odds from the logistic scale."""
        from scipy.interpolate import CubicHermiteSpline

        knots, values, slopes = self.knots, self.values, self.slopes
        found = values[0] + slopes[0] * np.minimum(scale - knots[0], 0.0)
        found += slopes[-1] * np.maximum(scale - knots[-1], 0.0)
        if len(knots) > 1:
            inside = np.clip(scale, knots[0], knots[-1])
            found += CubicHermiteSpline(knots, values, slopes)(inside) - values[0]
        return np.asarray(found)


def marks_of(scores: Floats, largest: int) -> Floats:
    """Middle, spread, a low and a high value of the scores of unseen items; the largest window."""
    middle, low, high = np.quantile(scores, [0.5, 0.01, 0.999])
    spread = max(float(np.median(np.abs(scores - middle))), 0.05 * float(scores.std()), 1e-9)
    return np.array([middle, spread, low, high, largest])


def features_of(
    law: tuple[Floats, Floats, Floats],
    places: NDArray[np.int64],
    window: int,
    marks: Floats,
) -> Floats:
    """What a correction sees, ``features[case, feature]``, of cases in an array of any shape.

    `law` has ``chances[case]`` of an item by the law of a user for the `window`, the scores, and
    ``few[case]``, 1 / (1 + clicks of the user); ``places[case]`` counts from 0 among the unseen
    items. The features: log odds of the chance, the place, the score and its logarithm (inverse
    hyperbolic sine, for scores of any sign); odds and score again as they count more or less in
    long windows, and for users with few clicks; the window and its logarithm.
    """
    chances, scores, few = law
    middle, spread, low, high, largest = marks
    odds, log_window = log_odds(chances), math.log(window)
    share, part = min(log_window / math.log(LAST_WINDOW), 1.0), min(window / largest, 1.0)
    near, inside = np.clip(odds, LOW_ODDS, HIGH_ODDS), np.clip(scores, low, high)
    fall = -np.log(places + 0.5)
    of_items = [
        odds,
        (near - LOW_ODDS) * share,
        (near - HIGH_ODDS) * (1 - share),
        (near - LOW_ODDS) * part,
        (near - HIGH_ODDS) * (1 - part),
        np.minimum(fall, PLACES[0]),
        np.clip(fall, *PLACES),
        np.maximum(fall, PLACES[1]),
        np.full_like(scores, log_window),
        np.full_like(scores, part),
        scores,
        np.arcsinh((scores - middle) / spread),
        (inside - low) * share,
        (inside - high) * (1 - share),
        (inside - low) * part,
        (inside - high) * (1 - part),
        (near - LOW_ODDS) * few,
        (near - HIGH_ODDS) * (1 - few),
        (inside - low) * few,
        (inside - high) * (1 - few),
    ]
    assert len(of_items) == N_FEATURES
    return np.stack(of_items, axis=-1)


def log_odds(chances: Floats) -> Floats:
    """Log odds, kept finite."""
    inside = np.clip(chances, 1e-6, 1 - 1e-6)
    return np.asarray(np.log(inside / (1 - inside)))
