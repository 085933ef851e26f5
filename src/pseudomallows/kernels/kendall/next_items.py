"""What a user clicks next, under Kendall's distance.

Given the clicks, the m unclicked items have a Mallows ranking of their own, which only their places
in the consensus decide (numbered from 0). Its first k items are chosen one by one: of M items that
are left, the one at place x by q^x (1 - q) / (1 - q^M). So an item at place x is among the k by

    h_k(x, M) = (q^x (1 - q) + (1 - q^x) h_(k-1)(x - 1, M - 1)
                 + (q^(x+1) - q^M) h_(k-1)(x, M - 1)) / (1 - q^M)

with h_0 = 0: nothing cancels, and places from some place on are not needed for those before it. The
probability falls from place to place, and further down it is as good as a power of q times a factor
that hardly changes: there it is known at a few places, and its log is read between them.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..click_rows import ClickRows, clicks_of
from ..compiled import compiled
from .click_sums import FLAT

# Of two places further down at which the probability is tabulated. Between them it is off by 4e-5
# of itself at most (20,000 items, a window of 100 after 512 places); by 1.02 it is 1e-5, by 1.08,
# 1.4e-4.
RATIO = 1.04


class KendallDraws(NamedTuple):
    """Draws of a posterior; law g is that of a cluster in a draw, clusters counted fastest.

    `ranks[item, g]`, `tops[place, g]` the items of the first places, `rates[g]`, alpha over
    n_items, and `log_weights[g]` of the draw times the cluster's share.
    """

    ranks: NDArray[np.int32]
    tops: NDArray[np.int32]
    rates: NDArray[np.float64]
    log_weights: NDArray[np.float64]


class NextTables(NamedTuple):
    """`log_binomials[size, g]` of so many clicks. With `line = lines[size]` of so many unclicked
    items, `probabilities[line, place, g]` is the probability of the first places, and `far[line,
    number, g]` the log of that at `places[number]`; a line of -1 is not made."""

    log_binomials: NDArray[np.float64]
    lines: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    places: NDArray[np.int64]
    far: NDArray[np.float64]


@compiled
def fill_place_probabilities(rate, first, size, window, probabilities):
    """Fill `probabilities[j]`, of place `first + j` among `size` unclicked items, to be among the
    next `window`; 0 from place `size` on. If `first` is not 0, those of the first `window` places
    are not right: each step needs the place before."""
    n_places, n_steps = min(len(probabilities), size - first), min(window, size)
    probabilities[:] = 0.0
    places = first + np.arange(n_places)
    rests = size - first - n_steps - n_places + np.arange(n_steps + n_places)  # behind a place
    falls, afters = np.exp(-rate * places), np.expm1(-rate * np.maximum(rests, 0))
    befores = np.expm1(-rate * places)
    for step in range(n_steps):
        n_left = size - n_steps + 1 + step
        n_known = min(n_places, n_left - first)
        scale = np.expm1(-rate * n_left) if rate > FLAT else -float(n_left)
        for j in range(n_known - 1, -1, -1):
            if rate > FLAT:
                here = falls[j]
                chosen = here * np.expm1(-rate) / scale
                before = befores[j] / scale
                after = here * np.exp(-rate) * afters[n_places + step - j] / scale
            else:
                chosen, before = 1.0 / n_left, places[j] / n_left
                after = (n_left - places[j] - 1) / n_left
            value = chosen + after * probabilities[j]
            if j > 0:
                value += before * probabilities[j - 1]
            probabilities[j] = value
    for j in range(n_places):
        probabilities[j] = min(probabilities[j], 1.0)


@compiled
def fill_far_probabilities(rate, size, window, places, far):
    """Fill `far[number]` with the log of the probability at `places[number]`. At the first place
    that is not there, it is such that a straight line to it goes through that of the last item."""
    scratch, before = np.empty(window + 1), -1
    for number in range(len(places)):
        place = min(places[number], size - 1)
        if place <= before:  # nobody asks for it
            far[number] = far[number - 1]
            continue
        first = max(place - window, 0)
        fill_place_probabilities(rate, first, size, window, scratch[: place - first + 1])
        far[number] = np.log(max(scratch[place - first], 1e-300))
        if number > 0 and place < places[number]:
            slope = (far[number] - far[number - 1]) / (place - before)
            far[number] = far[number - 1] + slope * (places[number] - before)
        before = places[number]


@compiled
def far_probability(place, places, far):
    """The probability of a place beyond the first ones, from `far[number]`."""
    low, high = 0, len(places) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if places[middle] <= place:
            low = middle
        else:
            high = middle
    part = (place - places[low]) / (places[high] - places[low])
    return np.exp(far[low] + part * (far[high] - far[low]))


@compiled
def weigh_laws(mine, draws, log_binomials, n_clusters, is_new, weights):
    """Fill `weights[g]`, which sum to 1, for a user with these clicks.

    The draws of the fit know the clicks of its users, so only the clusters of a draw are weighed;
    for a new user the draws are, too.
    """
    rates, priors = draws.rates, draws.log_weights
    n_laws, size = len(rates), len(mine)
    if n_clusters == 1 and not is_new:
        for g in range(n_laws):
            weights[g] = np.exp(priors[g])
        weights /= weights.sum()
        return
    for g in range(n_laws):
        weights[g] = -(size * (size + 1) // 2)
    for item in mine:
        ranks = draws.ranks[item]
        for g in range(n_laws):
            weights[g] += ranks[g]
    for g in range(n_laws):
        weights[g] = priors[g] - rates[g] * weights[g] - log_binomials[size, g]
    if is_new:
        weights[:] = np.exp(weights - weights.max())
    else:
        for first in range(0, n_laws, n_clusters):
            own, prior = weights[first : first + n_clusters], priors[first : first + n_clusters]
            own[:] = np.exp(own - own.max())
            own *= np.exp(prior).sum() / own.sum()
    weights /= weights.sum()


@compiled
def keep_heavy(weights, left_out, used):
    """Fill `used` with the laws that count, and scale their weights to sum to 1; the others weigh
    `left_out` at most in all, and then nothing. Return how many there are."""
    n_used, total = 0, 0.0
    for g in range(len(weights)):
        if weights[g] > left_out / len(weights):
            used[n_used] = g
            n_used += 1
            total += weights[g]
        else:
            weights[g] = 0.0
    weights /= total
    return n_used


@compiled
def fill_own_probabilities(ranks, theirs, used, tables, line, scratch, probabilities):
    """Fill `probabilities[i]`: that of an item of such ranks under the laws `used`; the clicked
    items have the ranks `theirs[click, i]`. `scratch` is room for two numbers a law."""
    own, places = scratch[0], scratch[1]
    first, n_used = tables.probabilities[line], len(used)
    for i in range(n_used):
        own[i] = ranks[used[i]]
        places[i] = own[i] - 1
    for j in range(len(theirs)):
        clicked = theirs[j]
        for i in range(n_used):
            places[i] -= clicked[i] < own[i]
    for i in range(n_used):
        if places[i] < len(first):
            probabilities[i] = first[places[i], used[i]]
        else:
            probabilities[i] = far_probability(
                places[i], tables.places, tables.far[line, :, used[i]]
            )


@compiled
def error_of_mean(probabilities, weights, used, n_clusters):
    """Standard error of a mean over the laws `used`, from how 8 parts of the draws differ; infinite
    if there are not two draws."""
    n_draws = len(weights) // n_clusters
    n_parts = min(8, n_draws)
    if n_parts < 2:
        return np.inf
    sums, totals = np.zeros(n_parts), np.zeros(n_parts)
    for i in range(len(used)):
        part = (used[i] // n_clusters) * n_parts // n_draws
        totals[part] += weights[used[i]]
        sums[part] += weights[used[i]] * probabilities[i]
    mean, squares = sums.sum(), 0.0
    for part in range(n_parts):
        squares += (sums[part] - mean * totals[part]) ** 2
    return np.sqrt(squares * n_parts / (n_parts - 1))


@compiled
def insert_best(item, probability, consensus, n_found, keys, items, probabilities):
    """Put an item among the best so far, if it belongs there; return how many there are.

    Those that agree to 12 digits are tied, and the better rank in the consensus wins.
    """
    k, key = len(items), np.rint(probability * 1e12)
    place = n_found
    while place > 0:
        other = items[place - 1]
        behind = keys[place - 1] < key
        tied = keys[place - 1] == key
        if not behind and not (tied and consensus[item] < consensus[other]):
            break
        if place < k:
            keys[place], items[place] = keys[place - 1], other
            probabilities[place] = probabilities[place - 1]
        place -= 1
    if place < k:
        keys[place], items[place], probabilities[place] = key, item, min(probability, 1.0)
        n_found = min(n_found + 1, k)
    return n_found


@compiled
def kendall_best_rows(clicks, draws, tables, rules, items, probabilities, errors):
    """Fill the best unclicked items of each row, their probabilities, and, if `errors` has rows,
    the standard errors of these. `rules` are (n_clusters, is_new, left_out, consensus): see
    `weigh_laws` and `keep_heavy`; of equal probabilities the better rank in the consensus wins.

    Down the places of all laws at once (Fagin, Lotem and Naor 2003): an item that no law has up to
    some place has at most the mean probability of that place, so the search ends when the k best
    known are better, or where the tables end.
    """
    rows, laws, next_tables = ClickRows(*clicks), KendallDraws(*draws), NextTables(*tables)
    n_clusters, is_new, left_out, consensus = rules
    n_items, n_laws = laws.ranks.shape
    n_top, k = len(laws.tops), items.shape[1]
    weights, all_used, by_law = np.empty(n_laws), np.empty(n_laws, np.int64), np.empty(n_laws)
    at, scratch = np.empty(n_laws, np.int64), np.empty((2, n_laws), np.int32)
    seen, keys = np.full(n_items, -1, np.int32), np.empty(k)
    for row in range(len(items)):
        mine = clicks_of(rows, row)
        size = n_items - len(mine)
        if size == 0:
            continue
        weigh_laws(mine, laws, next_tables.log_binomials, n_clusters, is_new, weights)
        used = all_used[: keep_heavy(weights, left_out, all_used)]
        line, n_used, n_best = next_tables.lines[size], len(used), 0
        theirs = np.empty((len(mine), n_used), np.int32)
        for j in range(len(mine)):
            seen[mine[j]] = -2 - row  # clicked
            ranks = laws.ranks[mine[j]]
            for i in range(n_used):
                theirs[j, i] = ranks[used[i]]
        at[:n_used] = 0
        for depth in range(min(n_top, next_tables.probabilities.shape[1], size)):
            ceiling, here = 0.0, next_tables.probabilities[line, depth]
            for i in range(n_used):
                ceiling += weights[used[i]] * here[used[i]]
            if n_best == k and np.rint(ceiling * 1e12) < keys[k - 1]:
                break
            for i in range(n_used):
                while at[i] < n_top and seen[laws.tops[at[i], used[i]]] == -2 - row:
                    at[i] += 1
                if at[i] == n_top:
                    continue
                item = laws.tops[at[i], used[i]]
                at[i] += 1
                if seen[item] != row:
                    seen[item] = row
                    own = laws.ranks[item]
                    fill_own_probabilities(own, theirs, used, next_tables, line, scratch, by_law)
                    probability = 0.0
                    for h in range(n_used):
                        probability += weights[used[h]] * by_law[h]
                    best = (keys, items[row], probabilities[row])
                    n_best = insert_best(item, probability, consensus, n_best, *best)
        for number in range(n_best if len(errors) else 0):
            own = laws.ranks[items[row, number]]
            fill_own_probabilities(own, theirs, used, next_tables, line, scratch, by_law)
            errors[row, number] = error_of_mean(by_law, weights, used, n_clusters)


@compiled
def kendall_some_probabilities(clicks, draws, tables, rules, wanted, probabilities, errors):
    """Fill `probabilities[row, item]` of the items that are `wanted` of each row, as
    `kendall_best_rows` finds them, and their standard errors; none of these may be clicked."""
    n_clusters, is_new, left_out = rules
    n_laws = draws.ranks.shape[1]
    weights, all_used, own = np.empty(n_laws), np.empty(n_laws, np.int64), np.empty(n_laws)
    scratch = np.empty((2, n_laws), np.int32)
    for row in range(len(probabilities)):
        mine = clicks_of(clicks, row)
        weigh_laws(mine, draws, tables.log_binomials, n_clusters, is_new, weights)
        used = all_used[: keep_heavy(weights, left_out, all_used)]
        theirs = np.empty((len(mine), len(used)), np.int32)
        for j in range(len(mine)):
            for i in range(len(used)):
                theirs[j, i] = draws.ranks[mine[j], used[i]]
        for item in clicks_of(wanted, row):
            line = tables.lines[len(draws.ranks) - len(mine)]
            fill_own_probabilities(draws.ranks[item], theirs, used, tables, line, scratch, own)
            probabilities[row, item] = 0.0
            for i in range(len(used)):
                probabilities[row, item] += weights[used[i]] * own[i]
            errors[row, item] = error_of_mean(own, weights, used, n_clusters)


@compiled
def weigh_rows(clicks, draws, log_binomials, n_clusters, is_new, weights):
    """Fill `weights[row, g]`: see `weigh_laws`."""
    for row in range(len(weights)):
        mine = clicks_of(clicks, row)
        weigh_laws(mine, draws, log_binomials, n_clusters, is_new, weights[row])
