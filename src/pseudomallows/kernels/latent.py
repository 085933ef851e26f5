"""The latent full rankings of users known in part: these items share these ranks, no more is known."""

import numpy as np
from numba import njit

from .matching import ITEM, RANK, draw_matching, gap_decay, square_roots, sum_matchings
from .streams import start_stream


@njit(cache=True, nogil=True)
def mark_places(ranks, consensus, places):
    """Mark, by consensus rank, the items without a rank, and the ranks without an item."""
    for place in range(len(places)):
        places[place] = ITEM | RANK
    for item in range(len(ranks)):
        if ranks[item] > 0:
            places[consensus[item] - 1] -= ITEM
            places[ranks[item] - 1] -= RANK


@njit(cache=True, nogil=True)
def known_distance(ranks, consensus):
    """Distance between the ranks that are known and the consensus."""
    distance = 0
    for item in range(len(ranks)):
        if ranks[item] > 0:
            distance += abs(ranks[item] - consensus[item])
    return distance


@njit(cache=True, nogil=True)
def log_likelihoods(rankings, consensus, lam, log_partition, values):
    """Fill `values[user]`: log probability that the user's known ranks are as they are."""
    n_items = len(consensus)
    decay, roots = gap_decay(lam, n_items // 2 + 2), square_roots(n_items + 1)
    table = np.empty((2, n_items // 2 + 3))
    tops = np.empty(n_items + 1, dtype=np.int64)
    places = np.empty(n_items, dtype=np.int64)
    for user in range(len(rankings)):
        mark_places(rankings[user], consensus, places)
        log_sum = sum_matchings(places, lam, decay, roots, table, tops)
        distance = known_distance(rankings[user], consensus)
        values[user] = log_sum - lam * distance - log_partition


@njit(cache=True, nogil=True)
def draw_latent(seed, draw, first_users, rankings, weights, consensus, lam, counts, kept):
    """Draw the latent ranking of every user and add its unknown part to `counts`.

    Row `row` stands for `weights[row]` users, numbered from `first_users[row]`; each has a stream
    of its own. `kept[row]` is the ranking of the last of them, if `kept` has rows at all.
    """
    n_items = len(consensus)
    decay, roots = gap_decay(lam, n_items // 2 + 2), square_roots(n_items + 1)
    table = np.empty((n_items + 1, n_items // 2 + 3))
    tops = np.empty(n_items + 1, dtype=np.int64)
    places, ordering, drawn, waiting_items, waiting_ranks = np.empty((5, n_items), dtype=np.int64)
    stream = np.empty(1, dtype=np.uint64)
    for item in range(n_items):
        ordering[consensus[item] - 1] = item
    for row in range(len(rankings)):
        mark_places(rankings[row], consensus, places)
        sum_matchings(places, lam, decay, roots, table, tops)
        for user in range(weights[row]):
            start_stream(seed, draw, first_users[row] + user, stream)
            draw_matching(stream, places, roots, table, tops, waiting_items, waiting_ranks, drawn)
            for place in range(n_items):
                if places[place] & ITEM:
                    counts[ordering[place], drawn[place] - 1] += 1
        if len(kept) and weights[row]:
            for place in range(n_items):
                item = ordering[place]
                kept[row, item] = drawn[place] if places[place] & ITEM else rankings[row, item]
