"""Pairs: `wins[i, j]` users put item i before item j, all that Kendall's distance needs of them.

`margins[i, j]` is wins[i, j] - wins[j, i]: what the distance to all users grows by if i goes from
before j to behind it. `ordering[rank - 1]` is the item of that rank; lam is alpha / n_items.
"""

import numpy as np
from numba import njit

from ..chain import (
    SWAP,
    accepts,
    choose_leap,
    choose_pair,
    exchange_places,
    leap_log_ratio,
    shift_places,
)
from .rankings import order_by_rank


@njit(cache=True, nogil=True)
def recount_wins(rankings, before, after, wins):
    """Bring `wins` from the weights `before` of the users to those `after`; skip ranks of 0."""
    n_items = rankings.shape[1]
    for user in range(len(rankings)):
        change, ranks = after[user] - before[user], rankings[user]
        if change == 0:
            continue
        for i in range(n_items):
            if ranks[i] == 0:
                continue
            for j in range(n_items):
                if ranks[i] < ranks[j]:
                    wins[i, j] += change


@njit(cache=True, nogil=True)
def wins_distance(wins, ordering):
    """Distance between all users and a consensus: the pairs that they have in another order."""
    total = 0
    for place in range(len(ordering)):
        for other in range(place + 1, len(ordering)):
            total += wins[ordering[other], ordering[place]]
    return total


@njit(cache=True, nogil=True)
def swap_by_wins(stream, margins, lam, log_reach, consensus, ordering):
    """Exchange the ranks of two items; return whether it was accepted."""
    low, high = choose_pair(stream, len(consensus), log_reach)
    if high >= len(consensus):
        return False
    first, second = ordering[low], ordering[high]
    change = margins[first, second]
    for place in range(low + 1, high):
        change += margins[first, ordering[place]] - margins[second, ordering[place]]
    if not accepts(stream, -lam * change):
        return False
    exchange_places(low, high, consensus, ordering)
    return True


@njit(cache=True, nogil=True)
def leap_by_wins(stream, margins, lam, leap, consensus, ordering):
    """One item leaps, those between shift by one; return whether it was accepted."""
    here, there = choose_leap(stream, leap, consensus)
    item, side, change = ordering[here], 1 if there > here else -1, 0
    for place in range(here + side, there + side, side):
        change += side * margins[item, ordering[place]]
    if not accepts(stream, -lam * change + leap_log_ratio(here, there, leap, len(consensus))):
        return False
    shift_places(here, there, consensus, ordering)
    return True


@njit(cache=True, nogil=True)
def move_by_wins(stream, margins, lam, move, leap, n_moves, consensus):
    """Make `n_moves` proposals; return how many were accepted."""
    ordering = np.empty(len(consensus), dtype=np.int64)
    order_by_rank(consensus, ordering)
    log_reach, n_accepted = np.log(len(consensus)), 0
    for _ in range(n_moves):
        if move == SWAP:
            n_accepted += swap_by_wins(stream, margins, lam, log_reach, consensus, ordering)
        else:
            n_accepted += leap_by_wins(stream, margins, lam, leap, consensus, ordering)
    return n_accepted


@njit(cache=True, nogil=True)
def best_place(margins, ordering, here):
    """Where the item at a place is best inserted, and what the distance changes by."""
    item, best, least = ordering[here], here, 0
    for side in (-1, 1):
        place, change = here + side, 0
        while 0 <= place < len(ordering):
            change += side * margins[item, ordering[place]]
            if change < least:
                best, least = place, change
            place += side
    return best


@njit(cache=True, nogil=True)
def improve_by_insertions(margins, consensus, ordering):
    """Insert items where they are best, until no insertion makes the distance smaller."""
    n_items, since = len(ordering), 0  # how many items have stayed since the last insertion
    item = 0
    while since < n_items:
        here = consensus[item] - 1
        there = best_place(margins, ordering, here)
        since += 1
        if there != here:
            shift_places(here, there, consensus, ordering)
            since = 0
        item = (item + 1) % n_items


@njit(cache=True, nogil=True)
def best_by_subsets(wins, ordering):
    """Fill the ordering of the smallest distance, by the best order of each set of first items."""
    n_items = len(wins)
    least, last = np.zeros(1 << n_items, np.int64), np.zeros(1 << n_items, np.int64)
    for chosen in range(1, 1 << n_items):
        best = -1
        for item in range(n_items):
            if chosen >> item & 1:
                value = least[chosen ^ (1 << item)]
                for other in range(n_items):
                    if chosen >> other & 1:
                        value += wins[item, other]
                if best < 0 or value < best:
                    best = value
                    last[chosen] = item
        least[chosen] = best
    chosen = (1 << n_items) - 1
    for place in range(n_items - 1, -1, -1):
        ordering[place] = last[chosen]
        chosen ^= 1 << ordering[place]
