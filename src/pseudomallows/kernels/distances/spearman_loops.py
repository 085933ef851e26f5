"""Spearman's distance: the sum over items of the squared difference in rank.

rate is alpha / n_items. The sum over all rankings is the permanent of the weights
exp(-rate (i - j)^2). Sums over sets are exact and take 2^n_items steps; bit r of a set is rank
r + 1, and the first items, as many as it has, have taken it. No weight is above 1 and that of 1..n
is 1, so plain numbers neither overflow nor lose anything that counts.
"""

import numpy as np

from ..compiled import compiled
from ..moves import SWAP, move_consensus
from ..streams import start_stream, uniform


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
def spearman_sum(weights):
    """Log of the sum over all rankings; `weights[item, rank - 1]` are those above.

    The first half of the items takes a set of ranks, the others the rest: the same sum seen from
    the other end.
    """
    n_items = len(weights)
    sums, n_first = np.empty(1 << n_items), n_items // 2
    sizes = sum_first_items(weights, n_items - n_first, sums)
    total = 0.0
    for used in range(len(sums)):
        if sizes[used] == n_first:
            total += sums[used] * sums[mirror(used, n_items)]
    return np.log(total)


@compiled
def spearman_marginals(weights, probabilities):
    """Fill `probabilities[item, rank - 1]` by sums over sets; return the log of that of all."""
    n_items, sums = len(weights), np.empty(1 << len(weights))
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
    return np.log(sums[-1])


@compiled
def draw_by_sets(seed, weights, draws):
    """Fill `draws[draw, item]` with exact rankings, from the last item on."""
    n_items = draws.shape[1]
    sums = np.empty(1 << n_items)
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
def draw_by_swaps(seed, costs, rate, n_sweeps, draws):
    """Move each of `draws[draw, item]` by a chain of its own, n_sweeps * n_items proposals."""
    n_items, stream = draws.shape[1], np.empty(1, np.uint64)
    for draw in range(len(draws)):
        start_stream(seed, draw, 0, stream)
        move_consensus(stream, costs, rate, SWAP, 1, n_sweeps * n_items, draws[draw])
