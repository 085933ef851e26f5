"""Latent full rankings of users known in part: these items share these ranks, no more is known."""

import numpy as np
from numba import njit

from ..chain import accepts
from ..costs import footrule_costs
from ..streams import below, start_stream, uniform
from .matching import ITEM, RANK, draw_matching, sum_matchings, walk_weights


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
    line = walk_weights(lam, n_items)
    table = np.empty((2, n_items // 2 + 3))
    tops = np.empty(n_items + 1, dtype=np.int64)
    places = np.empty(n_items, dtype=np.int64)
    for user in range(len(rankings)):
        mark_places(rankings[user], consensus, places)
        log_sum = sum_matchings(places, lam, line, table, tops)
        distance = known_distance(rankings[user], consensus)
        values[user] = log_sum - lam * distance - log_partition


@njit(cache=True, nogil=True)
def draw_latent(
    seed, draw, first_users, rankings, weights, consensus, lam, partners, counts, shared, kept
):
    """Draw the latent ranking of every user and add its unknown part to `counts`.

    Row `row` stands for `weights[row]` users, numbered from `first_users[row]`; each has a stream
    of its own. `shared` counts, in the same way, the users for whom the item's partner is unknown
    too. `kept[row]` is the ranking of the last of them, if `kept` has rows at all.
    """
    n_items = len(consensus)
    line = walk_weights(lam, n_items)
    table = np.empty((n_items + 1, n_items // 2 + 3))
    tops = np.empty(n_items + 1, dtype=np.int64)
    places, ordering, drawn, waiting_items, waiting_ranks = np.empty((5, n_items), dtype=np.int64)
    stream = np.empty(1, dtype=np.uint64)
    for item in range(n_items):
        ordering[consensus[item] - 1] = item
    for row in range(len(rankings)):
        mark_places(rankings[row], consensus, places)
        sum_matchings(places, lam, line, table, tops)
        for user in range(weights[row]):
            start_stream(seed, draw, first_users[row] + user, stream)
            draw_matching(stream, places, line[1], table, tops, waiting_items, waiting_ranks, drawn)
            for place in range(n_items):
                if places[place] & ITEM:
                    item = ordering[place]
                    counts[item, drawn[place] - 1] += 1
                    if partners[item] >= 0 and rankings[row, partners[item]] == 0:
                        shared[item, drawn[place] - 1] += 1
        if len(kept) and weights[row]:
            for place in range(n_items):
                item = ordering[place]
                kept[row, item] = drawn[place] if places[place] & ITEM else rankings[row, item]


@njit(cache=True, nogil=True)
def pair_ranks(stream, consensus, partners):
    """Pair the items whose ranks are a random leap apart; the others get -1."""
    n_items = len(consensus)
    leap = int(np.exp(uniform(stream) * np.log(n_items)))
    first = below(stream, 2 * leap) - 2 * leap
    ordering = np.empty(n_items, dtype=np.int64)
    for item in range(n_items):
        ordering[consensus[item] - 1] = item
        partners[item] = -1
    for low in range(max(first, 0), n_items - leap):
        if (low - first) % (2 * leap) < leap:
            one, other = ordering[low], ordering[low + leap]
            partners[one], partners[other] = other, one


@njit(cache=True, nogil=True)
def swap_partners(stream, partners, shared, lam, consensus, counts):
    """Exchange two partners in the consensus and, where both are unknown, in the latent rankings.

    Those users are as far from the new consensus as from the old, so the others alone decide. A
    consensus held in place by its own latent rankings gets free. Pairs are disjoint and distances
    add up over items, so each pair is accepted or refused on its own.
    """
    rest = footrule_costs(counts - shared)
    for one in range(len(partners)):
        other = partners[one]
        if other > one:
            here, there = consensus[one] - 1, consensus[other] - 1
            change = rest[one, there] + rest[other, here] - rest[one, here] - rest[other, there]
            if accepts(stream, -lam * change):
                consensus[one], consensus[other] = there + 1, here + 1
                for rank in range(len(consensus)):
                    moved = shared[one, rank] - shared[other, rank]
                    counts[one, rank] -= moved
                    counts[other, rank] += moved
