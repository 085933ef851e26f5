"""Users with a consensus of their own each: exact laws of their clicks, on a grid of alphas.

lam is alpha / n_items.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..click_rows import clicks_of
from ..streams import start_stream, uniform
from .clicks import mark_clicks
from .likelihood import log_likelihood_of, logs_of_factorials
from .matching import draw_matching, room_for_sums, sum_matchings, walk_weights
from .walks import room_to_go_back, walk_at

LEAST_SCORE = 1e-3  # where the logarithm of a score ends
TIE_BREAK = 1e-9  # slope of a correction where its map is flat: what has better features is first


class OwnLaws(NamedTuple):
    """The law of each user: `rankings[row, item]` is the user's own consensus, `shares[row, g]` the
    share of each alpha of a grid."""

    rankings: NDArray[np.int32]
    shares: NDArray[np.float64]


class GridChances(NamedTuple):
    """With `line = lines[size]`, `chances[line, g, place]` is the chance, at alpha g of a grid, of
    the item at `place` among `size` unclicked ones to be among the next; -1 is no line. Beyond the
    places that are there, `far[line, g, number]` is the log of the chance at `places[number]`."""

    lines: NDArray[np.int64]
    chances: NDArray[np.float64]
    places: NDArray[np.int64]
    far: NDArray[np.float64]


class Features(NamedTuple):
    """What a correction sees besides the chances: `scores[row, item]`, and whether they were given;
    `others[row, item]`, the chances of clusters, or no rows; `of_users[row, feature]`, whose
    coefficients stand before the constant."""

    scores: NDArray[np.float64]
    is_given: bool
    others: NDArray[np.float64]
    of_users: NDArray[np.float64]


class CorrectionArrays(NamedTuple):
    """A correction: `coefficients[feature]`, the constant last; and the maps from the logistic
    scale to probabilities, `knots[0]` and `values[0]` of the best items, then those of the rest."""

    coefficients: NDArray[np.float64]
    knots: NDArray[np.float64]
    values: NDArray[np.float64]


@njit(cache=True, nogil=True)
def personal_log_likelihoods(clicks, rankings, grid, values):
    """Fill `values[row, g]`: log probability of a user's clicks, given the user's own consensus
    `rankings[row]` and each alpha of the `grid`, from `make_walks`."""
    room, log_factorials = room_to_go_back(grid, 2), logs_of_factorials(rankings.shape[1])
    for g in range(values.shape[1]):
        walk = walk_at(grid, g)
        for row in range(len(values)):
            mine = clicks_of(clicks, row)
            values[row, g] = log_likelihood_of(mine, rankings[row], walk, log_factorials, room)


@njit(cache=True, nogil=True)
def weigh_alphas(values, prior):
    """Turn `values[row, g]`, log likelihoods, into each user's own distribution over the alphas."""
    for row in range(len(values)):
        highest, total = values[row].max(), 0.0
        for g in range(len(prior)):
            values[row, g] = np.exp(values[row, g] - highest) * prior[g]
            total += values[row, g]
        values[row] /= total


@njit(cache=True, nogil=True)
def draw_alpha(stream, shares):
    """Draw the number of an alpha by its share."""
    level, g = uniform(stream), 0
    while g < len(shares) - 1 and level >= shares[g]:
        level -= shares[g]
        g += 1
    return g


@njit(cache=True, nogil=True)
def draw_last_clicks(seed, first, clicks, own_laws, grid, n_last, last):
    """Mark in `last`, one place for each click, those of the `n_last` last ranks of a draw.

    The ranks of a user's clicks are drawn exactly, given the user's own consensus and an alpha
    drawn from the user's shares; users are numbered from `first`.
    """
    rankings, shares = own_laws
    n_items, lams, starts = rankings.shape[1], grid.lams, clicks.starts
    walks = [walk_weights(lam, n_items, 0) for lam in lams]
    sums, waiting = room_for_sums(n_items, n_items + 1), np.empty((2, n_items), dtype=np.int64)
    places, others, drawn = np.empty((3, n_items), dtype=np.int64)
    stream = np.empty(1, dtype=np.uint64)
    for row in range(len(rankings)):
        start_stream(seed, 0, first + row, stream)
        g = draw_alpha(stream, shares[row])
        mine = clicks_of(clicks, row)
        mark_clicks(mine, rankings[row], places, others)
        sum_matchings(places, lams[g], walks[g], sums)
        draw_matching(stream, places, walks[g].roots, sums, waiting, drawn)
        for place in range(len(mine)):
            rank = drawn[rankings[row, mine[place]] - 1]
            last[starts[row] - starts[0] + place] = rank > len(mine) - n_last


@njit(cache=True, nogil=True)
def add_far_chances(places, far, size, share, mixed):
    """Add to `mixed[place]` a share of the chances beyond `places[0]`, whose logs are straight
    between the places that are known."""
    for number in range(len(places) - 1):
        low, high = places[number], places[number + 1]
        slope = (far[number + 1] - far[number]) / (high - low)
        for place in range(low + 1, min(high + 1, size)):
            mixed[place] += share * np.exp(far[number] + slope * (place - low))


@njit(cache=True, nogil=True)
def look_up_personal(clicks, own_laws, tables, logs, of_users, probabilities):
    """Fill `probabilities[row, item]`: chance of an unclicked item to be among the next ranks.

    `tables` are `GridChances`. Clicked items are left alone. Also fills `of_users[row]`: the log of
    the clicks plus 1, and the mean of `logs`, those of alpha.
    """
    rankings, shares = own_laws
    lines, chances, places, far = tables
    n_items, n_near = rankings.shape[1], chances.shape[2]
    clicked, ordering = np.zeros(n_items, dtype=np.bool_), np.empty(n_items, dtype=np.int64)
    mixed = np.empty(n_items)
    for row in range(len(rankings)):
        mine = clicks_of(clicks, row)
        size = n_items - len(mine)
        clicked[mine] = True
        mixed[:size] = 0.0
        of_users[row, 0] = np.log(1.0 + len(mine))
        of_users[row, 1] = 0.0
        for g in range(len(logs)):
            of_users[row, 1] += shares[row, g] * logs[g]
            if shares[row, g] > 0.0 and size > 0:
                table = chances[lines[size], g]
                for place in range(min(size, n_near)):
                    mixed[place] += shares[row, g] * table[place]
                if size > n_near:
                    add_far_chances(places, far[lines[size], g], size, shares[row, g], mixed)
        for item in range(n_items):
            ordering[rankings[row, item] - 1] = item
        place = 0
        for rank in range(n_items):
            item = ordering[rank]
            if not clicked[item]:
                probabilities[row, item] = mixed[place]
                place += 1
        clicked[mine] = False


@njit(cache=True, nogil=True)
def log_odds(chance):
    """Log odds, kept finite."""
    inside = min(max(chance, 1e-6), 1.0 - 1e-6)
    return np.log(inside / (1.0 - inside))


@njit(cache=True, nogil=True)
def interpolate(x, knots, values):
    """Linear between the knots, constant beyond them."""
    if x <= knots[0]:
        return values[0]
    if x >= knots[-1]:
        return values[-1]
    place = np.searchsorted(knots, x, "right") - 1
    low, high = knots[place], knots[place + 1]
    return values[place] + (values[place + 1] - values[place]) * (x - low) / (high - low)


@njit(cache=True, nogil=True)
def correct_chances(clicks, features, correction, n_best, chances):
    """Replace `chances[row, item]` by what comes true: `Correction.apply` in one go."""
    scores, is_given, others, of_users = features
    coefficients, knots, values = correction
    n_items = scores.shape[1]
    clicked, scale = np.zeros(n_items, dtype=np.bool_), np.empty(n_items)
    n_own = of_users.shape[1]
    for row in range(len(scores)):
        mine = clicks_of(clicks, row)
        clicked[mine] = True
        constant = coefficients[-1]
        for feature in range(n_own):
            constant += (
                coefficients[len(coefficients) - 1 - n_own + feature] * of_users[row, feature]
            )
        for item in range(n_items):
            if clicked[item]:
                scale[item] = -np.inf
                continue
            score = scores[row, item]
            value = constant + coefficients[0] * log_odds(chances[row, item])
            if is_given:
                value += coefficients[1] * score
            else:
                value += coefficients[1] * np.log(max(score, LEAST_SCORE))
                value += coefficients[2] * score
            if len(others):
                value += coefficients[2 if is_given else 3] * log_odds(others[row, item])
            scale[item] = value
        least, lowest = -np.inf, 1.0  # of the best items: the scale, and the probability
        if n_best < n_items:
            least = -np.partition(-scale, n_best - 1)[n_best - 1]
        for item in range(n_items):
            if clicked[item]:
                chances[row, item] = 0.0
            elif scale[item] >= least:
                chances[row, item] = interpolate(scale[item], knots[0], values[0])
                lowest = min(lowest, chances[row, item])
        for item in range(n_items):
            if not clicked[item] and scale[item] < least:
                rest = interpolate(scale[item], knots[1], values[1])
                chances[row, item] = min(rest, lowest)
        for item in range(n_items):
            if not clicked[item]:
                more = TIE_BREAK / (1.0 + np.exp(-scale[item]))
                chances[row, item] = min(chances[row, item] + more, 1.0)
        clicked[mine] = False
