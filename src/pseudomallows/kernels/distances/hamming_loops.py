"""The Hamming distance: how many items have another rank.

rate is alpha / n_items. Of d such items there are n! / (n - d)! * s(d) rankings, where s(d), the
sum of (-1)^k / k! for k up to d, is the share of those d places in which none stays.
"""

import numpy as np

from ..compiled import compiled
from ..streams import below, start_stream, uniform


@compiled
def hamming_law(n_items, rate, law):
    """Fill `law[d]` with the probability of distance d; return the log of the sum over rankings."""
    log_ways, share, term, log_share = 0.0, 1.0, 1.0, 0.0
    law[0] = 0.0
    highest = 0.0
    for d in range(1, n_items + 1):
        log_ways += np.log(n_items - d + 1.0) - rate
        if d < 25:  # from there on the share is 1 / e to the last digit
            term /= -d
            share += term
            log_share = np.log(share) if d > 1 else -np.inf
        law[d] = log_ways + log_share
        highest = max(highest, law[d])
    total = 0.0
    for d in range(n_items + 1):
        law[d] = np.exp(law[d] - highest)
        total += law[d]
    law /= total
    return highest + np.log(total)


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
