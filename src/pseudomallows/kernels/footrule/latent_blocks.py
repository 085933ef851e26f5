"""Latent full rankings of users known in part: these items share these ranks, no more is known.

rate is alpha / n_items.
"""

import numpy as np

from ..compiled import compiled
from ..streams import start_user
from .matching import ITEM, RANK, draw_matching, matching_factors, room_for_sums, sum_matchings

AT_ONCE = 1024  # users of a row who are drawn tie by tie: their streams take 8 KB meanwhile


@compiled
def find_ties(ranks, consensus, sizes, places):
    """How many ranks, from 0 on, to look at for items whose order is not known; 0 is that of the
    items without a rank.

    It is 1 if no items tie: then `sizes[0]` alone is filled, and `places` is marked as for rank 0.
    Else `sizes[rank]` is how many items have the rank.
    """
    if mark_unranked(ranks, consensus, sizes, places):
        sizes[:] = 0
        for item in range(len(ranks)):
            sizes[ranks[item]] += 1
        return len(sizes)
    return 1


@compiled
def mark_unranked(ranks, consensus, sizes, places):
    """Mark the items without a rank, and the ranks that nobody has; `sizes[0]` is their number.

    Return whether items tie: a rank that several have is taken off several times.
    """
    n_unranked, marks = len(ranks), 0
    for place in range(len(places)):
        places[place] = ITEM | RANK
    for item in range(len(ranks)):
        if ranks[item] > 0:
            places[consensus[item] - 1] -= ITEM
            places[ranks[item] - 1] -= RANK
            n_unranked -= 1
    for place in range(len(places)):
        marks |= places[place]
    sizes[0] = n_unranked
    return marks < 0


@compiled
def is_open(rank, size):
    """Is the order of the items of this rank not known?"""
    return size > 1 or (rank == 0 and size > 0)


@compiled
def mark_places(ranks, sizes, rank, consensus, places):
    """Mark, by consensus rank, the items of this rank, and the ranks that they share.

    Returns the first place where anything is, and the end; for items without a rank, all.
    """
    first, end = (rank - 1, rank - 1 + sizes[rank]) if rank else (0, len(places))
    for place in range(len(places)):
        places[place] = RANK if first <= place < end else 0
    if rank == 0:
        for taken in range(1, len(sizes)):
            for place in range(taken - 1, taken - 1 + sizes[taken]):
                places[place] = 0
    for item in range(len(ranks)):
        if ranks[item] == rank:
            place = consensus[item] - 1
            places[place] += ITEM
            first, end = min(first, place), max(end, place + 1)
    return first, end


@compiled
def known_distance(ranks, sizes, n_ranks, consensus):
    """Distance between the ranks that are known, one item each, and the consensus; `n_ranks` comes
    from `find_ties`."""
    distance = 0
    for item in range(len(ranks)):
        if ranks[item] > 0 and (n_ranks == 1 or sizes[ranks[item]] == 1):
            distance += abs(ranks[item] - consensus[item])
    return distance


@compiled
def log_likelihoods(rankings, consensus, rate, log_partition, values):
    """Fill `values[user]`: log probability that the user's known ranks and ties are as they are."""
    n_items = len(consensus)
    factors, sums = matching_factors(rate, n_items), room_for_sums(n_items, 2)
    sizes, places = np.empty(n_items + 1, dtype=np.int64), np.empty(n_items, dtype=np.int64)
    for user in range(len(rankings)):
        ranks, log_sum = rankings[user], 0.0
        n_ranks = find_ties(ranks, consensus, sizes, places)
        for rank in range(n_ranks):
            if is_open(rank, sizes[rank]):
                first, end = 0, n_items
                if n_ranks > 1:
                    first, end = mark_places(ranks, sizes, rank, consensus, places)
                log_sum += sum_matchings(places[first:end], rate, factors, sums)
        distance = known_distance(ranks, sizes, n_ranks, consensus)
        values[user] = log_sum - rate * distance - log_partition


@compiled
def draw_latent(streams, rankings, consensus, rate, counts, latent):
    """Draw the latent ranking of every user and add its unknown part to `counts[item, rank - 1]`.

    `latent[row]` is the ranking of the last user of a row, if `latent` has rows at all.
    """
    n_items, weights = len(consensus), streams.weights
    factors, sums = matching_factors(rate, n_items), room_for_sums(n_items, n_items + 1)
    sizes, waiting = np.empty(n_items + 1, dtype=np.int64), np.empty((2, n_items), dtype=np.int64)
    places, ordering, drawn = np.empty((3, n_items), dtype=np.int64)
    own_streams = np.empty((AT_ONCE, 1), dtype=np.uint64)
    for item in range(n_items):
        ordering[consensus[item] - 1] = item
    for row in range(len(rankings)):
        ranks = rankings[row]
        n_ranks = find_ties(ranks, consensus, sizes, places)
        if len(latent) and weights[row]:
            latent[row] = ranks
        for done in range(0, weights[row], AT_ONCE):
            n_users = min(AT_ONCE, weights[row] - done)
            for user in range(n_users):
                start_user(streams, row, done + user, own_streams[user])
            for rank in range(n_ranks):
                if not is_open(rank, sizes[rank]):
                    continue
                first, end = 0, n_items
                if n_ranks > 1:
                    first, end = mark_places(ranks, sizes, rank, consensus, places)
                here = places[first:end]
                sum_matchings(here, rate, factors, sums)
                for user in range(n_users):
                    draw_matching(own_streams[user], here, factors.roots, sums, waiting, drawn)
                    for place in range(first, end):
                        if places[place] & ITEM:
                            item, got = ordering[place], drawn[place - first] + first - 1
                            counts[item, got] += 1
                if len(latent):  # `drawn` is that of the last user
                    for place in range(first, end):
                        if places[place] & ITEM:
                            latent[row, ordering[place]] = drawn[place - first] + first
