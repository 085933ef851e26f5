"""Users with a consensus of their own each: probabilities from tables, and their corrections."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .compiled import compiled

# Log odds between which long windows count them differently; and -log(place + 1/2) where the slope
# changes, near places 20 and 4. Of the last clicks on retail (200 and 400 items) the calibration
# errors are 0.020 and 0.026. With half of these odds they are 0.028 and 0.034, with twice 0.023 and
# 0.029; at half of these places 0.020 and 0.030, at twice 0.022 and 0.031. Hits stay the same.
LOW_ODDS, HIGH_ODDS = -9.0, 5.0
PLACES = (-3.0, -1.5)
LAST_WINDOW = 100  # from which on longer windows are alike: by logs, the usual 10 is halfway
# How sharply probabilities of more missing clicks bend below 1. Calibration errors at random with
# 4, 8 and 16: 0.026, 0.020, 0.021 on msweb, 0.012, 0.014, 0.015 on simulated users with few clicks;
# 0.015, 0.013, 0.014 on retail.
BEND = 8.0
N_FEATURES = 20  # of a correction: those that `fill_features` fills


class GridProbabilities(NamedTuple):
    """With `line = lines[size]`, `probabilities[line, g, place]` is the probability, at alpha g of
    a grid, of the item at `place` among `size` unclicked ones to be among the next; -1 is no line.
    Beyond the places that are there, `far[line, g, number]` is the log of the probability at
    `places[number]`."""

    lines: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    places: NDArray[np.int64]
    far: NDArray[np.float64]


class CorrectionArrays(NamedTuple):
    """A correction: `coefficients[feature]`, the constant last; `marks` of the scores; and the map
    from the logistic scale to log odds, by `knots`, `values` and `slopes`; was it learnt for one
    missing click (`per_click`)?"""

    coefficients: NDArray[np.float64]
    marks: NDArray[np.float64]
    knots: NDArray[np.float64]
    values: NDArray[np.float64]
    slopes: NDArray[np.float64]
    per_click: bool


@compiled
def add_far_probabilities(places, far, size, share, mixed):
    """Add to `mixed[place]` a share of the probabilities beyond `places[0]`, whose logs are
    straight between the places that are known."""
    for number in range(len(places) - 1):
        low, high = places[number], places[number + 1]
        slope = (far[number + 1] - far[number]) / (high - low)
        for place in range(low + 1, min(high + 1, size)):
            mixed[place] += share * np.exp(far[number] + slope * (place - low))


@compiled
def smooth_map(x, knots, values, slopes):
    """Cubic between the knots, with these values and slopes there; straight beyond them."""
    if x <= knots[0]:
        return values[0] + slopes[0] * (x - knots[0])
    if x >= knots[-1]:
        return values[-1] + slopes[-1] * (x - knots[-1])
    place = np.searchsorted(knots, x, "right") - 1
    width = knots[place + 1] - knots[place]
    t = (x - knots[place]) / width
    rise = values[place + 1] - values[place]
    bend = t * (1.0 - t)
    curve = width * bend * ((1.0 - t) * slopes[place] - t * slopes[place + 1])
    return values[place] + rise * t * t * (3.0 - 2.0 * t) + curve


@compiled
def add_up_to(total, odds):
    """Replace log odds by probabilities whose sum is `total`, or their number if that is less: one
    number is added to all of them, by Newton's steps between bounds that close in."""
    if len(odds) <= total:
        odds[:] = 1.0
        return
    shift, low, high = 0.0, -100.0, 100.0
    for _ in range(100):
        value, slope = -float(total), 0.0
        for x in odds:
            probability = 1.0 / (1.0 + np.exp(-x - shift))
            value += probability
            slope += probability * (1.0 - probability)
        if abs(value) < 1e-9 * total:
            break
        if value > 0.0:
            high = shift
        else:
            low = shift
        shift = shift - value / slope if slope > 0.0 else low
        if not low < shift < high:
            shift = (low + high) / 2.0
    for place in range(len(odds)):
        odds[place] = 1.0 / (1.0 + np.exp(-odds[place] - shift))


@compiled
def fill_features(probability, score, few, place, window, marks, features):
    """Fill what a correction sees of an unseen item, whose place counts from 0: log odds of the
    probability, the place, the score and its logarithm (inverse hyperbolic sine, for scores of any
    sign); odds and score again as they count more or less in long windows, and for users with few
    clicks; the window and its logarithm. `marks` are those of `Correction`."""
    inside = min(max(probability, 1e-6), 1.0 - 1e-6)
    odds, log_window = np.log(inside / (1.0 - inside)), np.log(window)
    share, part = min(log_window / np.log(LAST_WINDOW), 1.0), min(window / marks[4], 1.0)
    near = min(max(odds, LOW_ODDS), HIGH_ODDS)
    above, below = near - LOW_ODDS, near - HIGH_ODDS
    score_above = min(max(score, marks[2]), marks[3]) - marks[2]
    score_below = min(max(score, marks[2]), marks[3]) - marks[3]
    fall = -np.log(place + 0.5)
    features[0] = odds
    features[1] = above * share
    features[2] = below * (1.0 - share)
    features[3] = above * part
    features[4] = below * (1.0 - part)
    features[5] = min(fall, PLACES[0])
    features[6] = min(max(fall, PLACES[0]), PLACES[1])
    features[7] = max(fall, PLACES[1])
    features[8] = log_window
    features[9] = part
    features[10] = score
    features[11] = np.arcsinh((score - marks[0]) / marks[1])
    features[12] = score_above * share
    features[13] = score_below * (1.0 - share)
    features[14] = score_above * part
    features[15] = score_below * (1.0 - part)
    features[16] = above * few
    features[17] = below * (1.0 - few)
    features[18] = score_above * few
    features[19] = score_below * (1.0 - few)


@compiled
def fill_cases(probabilities, scores, few, places, window, marks, features):
    """Fill `features[case]` of some unseen items."""
    for case in range(len(places)):
        fill_features(
            probabilities[case],
            scores[case],
            few[case],
            places[case],
            window,
            marks,
            features[case],
        )


@compiled
def spread_rest(total, n_learnt, odds):
    """Replace the log odds of places, in order, by probabilities: the first `n_learnt` as they are,
    but with a sum of at most `total`; the others share what is left in proportion."""
    if len(odds) == 0:
        return
    first, rest = odds[:n_learnt], odds[n_learnt:]
    if (1.0 / (1.0 + np.exp(-first))).sum() > total:
        add_up_to(total, first)
    else:
        first[:] = 1.0 / (1.0 + np.exp(-first))
    rest[:] = np.exp(rest)
    rest *= (total - first.sum()) / max(rest.sum(), 1e-300)


@compiled
def odds_among(odds, number):
    """Log odds of an item to be one of a `number` of missing clicks, each of which it is with these
    log odds: so many times as likely, bent below 1 where that would be more."""
    times = number / (1.0 + np.exp(-odds))
    if times < 1.0:
        log = np.log(times) - np.log1p(times**BEND) / BEND
    else:
        log = -np.log1p(times**-BEND) / BEND
    return log - np.log(-np.expm1(log))


@compiled
def correct_probabilities(scores, few, sizes, correction, window, n_learnt, probabilities):
    """Replace `probabilities[row, place]` of the first unseen items of users, who have `sizes[row]`
    of them, by what is observed: the log odds by their features and the map, made to sum to the
    `window`. `few[row]` is 1 / (1 + clicks). The correction was learnt from the first `n_learnt`
    places, 0 for all of them; see `spread_rest`. A window beyond twice the largest that was learnt
    has the odds of that one, and its own sum. A correction `per_click` was learnt from one click
    that was hidden beside those that are missing anyway: `window` + 1 in all."""
    features, ahead = np.empty(N_FEATURES), min(window, 2 * correction.marks[4])
    if correction.per_click:
        ahead = 1
    for row in range(len(scores)):
        odds = probabilities[row, : min(sizes[row], probabilities.shape[1])]
        for place in range(len(odds)):
            score = scores[row, place]
            fill_features(odds[place], score, few[row], place, ahead, correction.marks, features)
            scale = correction.coefficients[N_FEATURES]
            for number in range(N_FEATURES):
                scale += correction.coefficients[number] * features[number]
            odds[place] = smooth_map(scale, correction.knots, correction.values, correction.slopes)
            if correction.per_click:
                odds[place] = odds_among(odds[place], window + 1)
        if n_learnt > 0:
            spread_rest(window, n_learnt, odds)
        else:
            add_up_to(window, odds)
