"""The correction of probabilities by its definition, in NumPy."""

import math

import numpy as np
from scipy.interpolate import CubicHermiteSpline

from pseudomallows.kernels.correct import HIGH_ODDS, LAST_WINDOW, LOW_ODDS, PLACES


def odds_of(correction, features):
    """Log odds from ``features[..., feature]``, as `features_of` makes them."""
    scale = features @ correction.coefficients[:-1] + correction.coefficients[-1]
    knots, values, slopes = correction.knots, correction.values, correction.slopes
    found = values[0] + slopes[0] * np.minimum(scale - knots[0], 0.0)
    found += slopes[-1] * np.maximum(scale - knots[-1], 0.0)
    if len(knots) > 1:
        inside = np.clip(scale, knots[0], knots[-1])
        found += CubicHermiteSpline(knots, values, slopes)(inside) - values[0]
    return found


def features_of(law, places, window, marks):
    """What a correction sees, ``features[case, feature]``, of cases in an array of any shape.

    `law` has ``probabilities[case]`` of an item by the law of a user for the `window`, the scores,
    and ``few[case]``, 1 / (1 + clicks of the user); ``places[case]`` counts from 0 among the unseen
    items. The features: log odds of the probability, the place, the score and its logarithm
    (inverse hyperbolic sine, for scores of any sign); odds and score again as they count more or
    less in long windows, and for users with few clicks; the window and its logarithm.
    """
    probabilities, scores, few = law
    middle, spread, low, high, largest = marks
    odds, log_window = log_odds(probabilities), math.log(window)
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
    return np.stack(of_items, axis=-1)


def log_odds(probabilities):
    """Log odds, kept finite."""
    inside = np.clip(probabilities, 1e-6, 1 - 1e-6)
    return np.log(inside / (1 - inside))
