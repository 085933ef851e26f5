"""Spearman's distance: the sum over items of the squared difference in rank.

rate is alpha / n_items. The sum over all rankings is the permanent of the weights
exp(-rate (i - j)^2). Sums over sets are exact and take 2^n_items steps; bit r of a set is rank
r + 1, and the first items, as many as it has, have taken it. No weight is above 1 and that of 1..n
is 1, so plain numbers neither overflow nor lose anything that counts.
"""

import numpy as np

from ..compiled import compiled
from ..kendall.inversions import order_by_rank
from ..moves import SWAP, accepts, choose_pair, make_move
from ..streams import start_stream, uniform


@compiled
def spearman_distances(rankings, others, distances):
    """Fill `distances[row]` with that from the row of `others`, or from its only one."""
    for row in range(len(rankings)):
        ranks, other = rankings[row], others[min(row, len(others) - 1)]
        total = 0
        for item in range(len(ranks)):
            difference = np.int64(ranks[item]) - np.int64(other[item])
            total += difference * difference
        distances[row] = total


@compiled
def square_weights(n_items, rate):
    """weights[item, rank - 1]: exp(-rate * squared difference)."""
    weights = np.empty((n_items, n_items))
    for item in range(n_items):
        for rank in range(n_items):
            weights[item, rank] = np.exp(-rate * float(item - rank) ** 2)
    return weights


@compiled
def sum_first_items(weights, most, sums):
    """Fill `sums[used]` for the sets of up to `most` ranks: what the first items make of them."""
    sums[0] = 1.0
    sizes = np.zeros(len(sums), np.int8)
    for used in range(1, len(sums)):
        sizes[used] = sizes[used >> 1] + (used & 1)
        if sizes[used] > most:
            continue
        item, rank, left, total = sizes[used] - 1, 0, used, 0.0
        while left:
            if left & 1:
                total += sums[used ^ (1 << rank)] * weights[item, rank]
            left >>= 1
            rank += 1
        sums[used] = total
    return sizes


@compiled
def mirror(used, n_items):
    """The ranks not in use, counted from the other end."""
    mirrored = 0
    for rank in range(n_items):
        if not used >> rank & 1:
            mirrored |= 1 << (n_items - 1 - rank)
    return mirrored


@compiled
def spearman_sum(n_items, rate):
    """Log of the sum over all rankings.

    The first half of the items takes a set of ranks, the others the rest: the same sum seen from
    the other end.
    """
    sums, n_first = np.empty(1 << n_items), n_items // 2
    sizes = sum_first_items(square_weights(n_items, rate), n_items - n_first, sums)
    total = 0.0
    for used in range(len(sums)):
        if sizes[used] == n_first:
            total += sums[used] * sums[mirror(used, n_items)]
    return np.log(total)


@compiled
def spearman_marginals(n_items, rate, probabilities):
    """Fill `probabilities[item, rank - 1]` by sums over sets."""
    weights, sums = square_weights(n_items, rate), np.empty(1 << n_items)
    sizes = sum_first_items(weights, n_items, sums)
    probabilities[:] = 0.0
    for used in range(len(sums) - 1):
        item = sizes[used]
        for rank in range(n_items):
            if not used >> rank & 1:
                then = used | 1 << rank
                later = sums[mirror(then, n_items)]
                probabilities[item, rank] += sums[used] * weights[item, rank] * later
    probabilities /= sums[-1]


@compiled
def draw_by_sets(seed, rate, draws):
    """Fill `draws[draw, item]` with exact rankings, from the last item on."""
    n_items = draws.shape[1]
    weights, sums = square_weights(n_items, rate), np.empty(1 << n_items)
    sum_first_items(weights, n_items, sums)
    stream = np.empty(1, np.uint64)
    for draw in range(len(draws)):
        start_stream(seed, draw, 0, stream)
        used = len(sums) - 1
        for item in range(n_items - 1, -1, -1):
            left, chosen = uniform(stream) * sums[used], -1
            for rank in range(n_items):
                if used >> rank & 1:
                    share = sums[used ^ (1 << rank)] * weights[item, rank]
                    if share > 0.0:
                        chosen = rank  # the last one, if rounding leaves something over
                    left -= share
                    if left < 0.0:
                        break
            used ^= 1 << chosen
            draws[draw, item] = chosen + 1


@compiled
def balance_squares(weights, most_rounds, x):
    """Make weights[i, j] x[i] x[j] sum to 1 in each row; `x` has a start."""
    n_items = len(x)
    sums = np.empty(n_items)
    for _ in range(most_rounds):
        error = 0.0
        for item in range(n_items):
            row, total = weights[item], 0.0
            for other in range(n_items):
                total += row[other] * x[other]
            sums[item] = total
            error = max(error, abs(x[item] * total - 1.0))
        if error < 1e-12:
            break
        for item in range(n_items):
            x[item] = np.sqrt(x[item] / sums[item])


@compiled
def rank_with_noise(stream, rate, ranks):
    """Rank the items by their places plus normal noise: near the law, and independent."""
    n_items = len(ranks)
    keys, spread = np.empty(n_items), 1.0 / np.sqrt(2.0 * max(rate, 1e-12))
    for item in range(n_items):
        radius = np.sqrt(-2.0 * np.log(1.0 - uniform(stream)))
        keys[item] = item + spread * radius * np.cos(2.0 * np.pi * uniform(stream))
    ordering = np.argsort(keys)
    for place in range(n_items):
        ranks[ordering[place]] = place + 1


@compiled
def swap_squares(stream, rate, n_moves, ranks, ordering):
    """Exchange ranks around 1..n by the Metropolis rule.

    Items i and j, of ranks r and s, that exchange them change the distance by 2 (i - j) (r - s).
    """
    n_items = len(ranks)
    log_reach = np.log(n_items)
    for _ in range(n_moves):
        low, high = choose_pair(stream, n_items, log_reach)
        if high < n_items:
            change = 2.0 * (ordering[high] - ordering[low]) * (high - low)
            if accepts(stream, -rate * change):
                make_move(SWAP, low, high, ranks, ordering)


@compiled
def draw_by_swaps(seed, rate, n_sweeps, draws):
    """Fill `draws[draw, item]` by chains of their own, n_sweeps * n_items proposals each."""
    n_items = draws.shape[1]
    ordering, stream = np.empty(n_items, np.int64), np.empty(1, np.uint64)
    for draw in range(len(draws)):
        start_stream(seed, draw, 0, stream)
        rank_with_noise(stream, rate, draws[draw])
        order_by_rank(draws[draw], ordering)
        swap_squares(stream, rate, n_sweeps * n_items, draws[draw], ordering)
