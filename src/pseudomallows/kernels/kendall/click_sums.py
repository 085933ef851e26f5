"""Clicks under Kendall's distance: exact, in closed form.

rate is alpha / n_items and q is exp(-rate). A user with c clicks has inversed the pairs of a
clicked item and an unclicked one before it: the sum of the consensus ranks of the clicks, less c (c
+ 1) /
2. Within the clicked items, and within the others, the ranking is a Mallows draw of its own. So

    P(clicks) = q^(sum of ranks - c (c + 1) / 2) / [n over c]

with the Gaussian binomial [n over c], and a consensus of all users has the log posterior
-rate times the sum over items of clicks times rank.
"""

import numpy as np

from ..click_rows import clicks_of
from ..compiled import compiled
from ..streams import below, uniform

# Rate up to which q = exp(-rate) counts as 1, as it does in floats below 1e-16. Quotients of expm1
# are exact far below that, and lose their digits near 1e-308, the least float that has all of them.
FLAT = 1e-200
N_SWAPS = 64  # differences in clicks whose probabilities are tabulated: most pairs are closer
# First places, where few items have as many clicks as another. If popularity is Zipf's, place^2 *
# 14.4 / clicks items have as many as the one at a place: of 20 million clicks on a million items 48
# here, 12 at half and 193 at twice the place.
HEAD = 8192
SURE = 40.0  # log odds that leave nothing to probability: exp(-40) < 2^-53, the step of a draw


@compiled
def kendall_log_likelihoods(clicks, rankings, rates, log_binomials, values):
    """Fill `values[row, g]` with the log probability of the row's clicks, given their number, at
    each of the `rates`, under the consensus `rankings[row]`, or the only one; `log_binomials[size,
    g]` are those of so many clicks."""
    for row in range(len(values)):
        mine, ranks = clicks_of(clicks, row), rankings[min(row, len(rankings) - 1)]
        size, total = len(mine), 0
        for item in mine:
            total += ranks[item]
        excess = total - size * (size + 1) // 2
        for g in range(len(rates)):
            values[row, g] = -rates[g] * excess - log_binomials[size, g]


@compiled
def fill_binomials(n_items, rate, logs):
    """Fill `logs[c]` with the log of the Gaussian binomial of n_items over c."""
    logs[0] = 0.0
    for c in range(1, len(logs)):
        if rate > FLAT:
            step = log_of_rest(rate * (n_items - c + 1)) - log_of_rest(rate * c)
        else:
            step = np.log((n_items - c + 1) / c)
        logs[c] = logs[c - 1] + step


@compiled
def log_of_rest(x):
    """log(1 - exp(-x)) of x above 0, to all digits."""
    return np.log(-np.expm1(-x)) if x < 0.7 else np.log1p(-np.exp(-x))


@compiled
def sum_binomials(n_items, rate, sizes, n_sizes):
    """The sum of the logs of the Gaussian binomials of n_items over `sizes[place]`, which rise, of
    `n_sizes[place]` users."""
    logs, total = np.empty(sizes[-1] + 1), 0.0
    fill_binomials(n_items, rate, logs)
    for place in range(len(sizes)):
        total += n_sizes[place] * logs[sizes[place]]
    return total


@compiled
def count_clicks_and_sizes(clicks, places, labels, weights, n_items, counts):
    """Add up `counts[cluster, item]` of clicks, and `counts[cluster, n_items + place]` of rows
    whose number of clicks has that place."""
    for row in range(len(labels)):
        mine = counts[labels[row]]
        for item in clicks_of(clicks, row):
            mine[item] += weights[row]
        mine[n_items + places[row]] += weights[row]


@compiled
def n_scales(n_items):
    """How many offsets 1, 2, 4, ... there are below so many places."""
    number = 0
    while 2**number < n_items:
        number += 1
    return number


@compiled
def mix_consensus(stream, counts, rate, n_passes, consensus):
    """Move a consensus by heat baths that leave its posterior, given the clicks `counts[item]`, as
    it is.

    Only the numbers of clicks swap places, and where two are equal there is nothing to draw. In the
    end the items with so many clicks are permuted over the places of that number, since one order
    of them is as probable as another: an item with many like it forgets its old place. At the head
    of a large catalogue few are alike, so there is more swapping there.
    """
    n_items = len(consensus)
    clicks = np.empty(n_items, np.int64)
    for item in range(n_items):
        clicks[consensus[item] - 1] = counts[item]
    mix_numbers(stream, rate, n_passes, clicks)
    if n_items > HEAD:
        mix_numbers(stream, rate, 10 * n_scales(HEAD), clicks[:HEAD])
    if counts.max() > n_items:  # a table of all numbers would be longer than the catalogue
        levels = np.unique(counts)
        counts, clicks = np.searchsorted(levels, counts), np.searchsorted(levels, clicks)
    permute_equals(stream, counts, clicks, consensus)


@compiled
def mix_numbers(stream, rate, n_passes, clicks):
    """Passes of swaps between the places of `clicks[place]`.

    In a pass all disjoint pairs of places (p, p + d) swap their numbers by their conditional
    distribution: with probability logistic(rate d times the difference in clicks). The offset d is
    drawn anew, of ever smaller scales from n_items / 2 to 1: like a sorting network, a few rounds
    of all scales take any number anywhere.
    """
    n_items, n_steps = len(clicks), n_scales(len(clicks))
    swaps = np.empty(2 * N_SWAPS + 1)
    for number in range(n_passes):
        smallest = 2 ** (n_steps - 1 - number % n_steps)
        offset = smallest + below(stream, min(smallest, n_items - smallest))
        for difference in range(-N_SWAPS, N_SWAPS + 1):
            swaps[N_SWAPS + difference] = swap_probability(rate * offset * difference)
        swap_unequal(stream, rate * offset, offset, swaps, clicks)


@compiled
def swap_unequal(stream, slope, offset, swaps, clicks):
    """Swap `clicks[place]` and `clicks[place + offset]` of disjoint pairs by their conditional law;
    `swaps[N_SWAPS + difference]` has the probabilities of small differences."""
    n_items = len(clicks)
    start = -below(stream, 2 * offset)
    while start < n_items - offset:
        for place in range(max(start, 0), min(start + offset, n_items - offset)):
            one, other = clicks[place], clicks[place + offset]
            if one == other:
                continue
            difference = other - one
            if abs(difference) <= N_SWAPS:
                probability = swaps[N_SWAPS + difference]
            else:
                probability = swap_probability(slope * difference)
            if probability == 1.0 or (probability > 0.0 and uniform(stream) < probability):
                clicks[place], clicks[place + offset] = other, one
        start += 2 * offset


@compiled
def permute_equals(stream, counts, clicks, consensus):
    """Fill `consensus` at random, such that the item at each place has `clicks[place]` clicks."""
    n_items = len(consensus)
    ends = np.zeros(counts.max() + 1, np.int64)
    for item in range(n_items):
        ends[counts[item]] += 1
    ends = np.cumsum(ends)
    nexts, items = ends.copy(), np.empty(n_items, np.int32)
    for item in range(n_items):  # items[nexts[c]:ends[c]] are those with c clicks
        nexts[counts[item]] -= 1
        items[nexts[counts[item]]] = item
    for place in range(n_items):
        number = clicks[place]
        first = nexts[number]
        taken = first + below(stream, ends[number] - first)
        consensus[items[taken]] = place + 1
        items[taken] = items[first]
        nexts[number] = first + 1


@compiled
def swap_probability(log_odds):
    """The logistic function, exactly 0 and 1 where it is as good as that."""
    if log_odds > SURE:
        return 1.0
    return 1.0 / (1.0 + np.exp(-log_odds)) if log_odds > -SURE else 0.0
