"""Cayley's distance: the fewest exchanges of two items, which is n_items less the number of cycles.

rate is alpha / n_items. Items join one by one; the one that joins j others starts a cycle of its
own, or enters a cycle behind one of the j, which adds 1 to the distance.
"""

import numpy as np

from ..compiled import compiled
from ..kendall.inversions import order_by_rank
from ..streams import below, start_stream, uniform


@compiled
def count_cycles(ranks, ordering, seen):
    """Cycles of the way from an item to the one of `ordering` at its rank."""
    count = 0
    seen[:] = 0
    for start in range(len(ranks)):
        if seen[start]:
            continue
        count += 1
        item = start
        while not seen[item]:
            seen[item] = 1
            item = ordering[ranks[item] - 1]
    return count


@compiled
def cayley_distances(rankings, others, distances):
    """Fill `distances[row]` with that from the row of `others`, or from its only one."""
    n_items = rankings.shape[1]
    ordering, seen = np.empty(n_items, np.int64), np.empty(n_items, np.int64)
    for row in range(len(rankings)):
        if row < len(others):
            order_by_rank(others[row], ordering)
        distances[row] = n_items - count_cycles(rankings[row], ordering, seen)


@compiled
def draw_cayley(seed, rate, draws):
    """Fill `draws[draw, item]` with rankings of the Mallows distribution around 1..n."""
    weight, stream = np.exp(-rate), np.empty(1, np.uint64)
    for draw in range(len(draws)):
        ranks = draws[draw]
        start_stream(seed, draw, 0, stream)
        for item in range(draws.shape[1]):
            ranks[item] = item + 1
            if uniform(stream) * (1.0 + item * weight) >= 1.0:
                other = below(stream, item)
                ranks[item], ranks[other] = ranks[other], ranks[item]
