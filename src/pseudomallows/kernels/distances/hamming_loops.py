"""Draws by the Hamming distance: how many items have another rank."""

import numpy as np

from ..compiled import compiled
from ..streams import below, start_stream, uniform


@compiled
def derange(stream, moved):
    """Shuffle until `moved[place]` is never `place`: e shuffles on average, some left early."""
    for place in range(len(moved)):
        moved[place] = place
    last = len(moved) - 1
    while last >= 0:
        other = below(stream, last + 1)
        moved[last], moved[other] = moved[other], moved[last]
        last = len(moved) - 1 if moved[last] == last else last - 1  # begin again, if it stays


@compiled
def draw_hamming(seed, law, draws):
    """Fill `draws[draw, item]` with rankings around 1..n: how many move, which, and where to."""
    n_items = draws.shape[1]
    sums, stream = np.cumsum(law), np.empty(1, np.uint64)
    items, moved = np.empty(n_items, np.int64), np.empty(n_items, np.int64)
    for draw in range(len(draws)):
        ranks = draws[draw]
        start_stream(seed, draw, 0, stream)
        # a sum that rounding left below the number drawn must not lead beyond the last distance
        d = min(np.searchsorted(sums, uniform(stream) * sums[-1], side="right"), n_items)
        for item in range(n_items):
            ranks[item] = item + 1
            items[item] = item
        for place in range(d):
            other = place + below(stream, n_items - place)
            items[place], items[other] = items[other], items[place]
        derange(stream, moved[:d])
        for place in range(d):
            ranks[items[place]] = items[moved[place]] + 1
