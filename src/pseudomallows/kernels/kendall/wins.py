"""Pairs: `wins[i, j]` users put item i before item j, all that Kendall's distance needs of them.

`margins[i, j]` is wins[i, j] - wins[j, i]: what the distance to all users grows by if i goes from
before j to behind it. `ordering[rank - 1]` is the item of that rank; rate is alpha / n_items.
"""

import numpy as np

from ..compiled import compiled
from ..moves import INSERT, SWAP, accepts, make_move, propose
from .inversions import order_by_rank


@compiled
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


@compiled
def wins_of_exchange(margins, ordering, low, high):
    """What the distance grows by if two places exchange their items."""
    first, second = ordering[low], ordering[high]
    change = margins[first, second]
    for place in range(low + 1, high):
        change += margins[first, ordering[place]] - margins[second, ordering[place]]
    return change


@compiled
def wins_of_leap(margins, ordering, here, there):
    """What the distance grows by if an item leaps and those between shift by one."""
    item, side, change = ordering[here], 1 if there > here else -1, 0
    for place in range(here + side, there + side, side):
        change += side * margins[item, ordering[place]]
    return change


@compiled
def move_by_wins(stream, margins, rate, move, leap, n_moves, consensus):
    """Make `n_moves` proposals; return how many were accepted."""
    ordering = np.empty(len(consensus), dtype=np.int64)
    order_by_rank(consensus, ordering)
    log_reach, n_accepted = np.log(len(consensus)), 0
    for _ in range(n_moves):
        here, there, log_way = propose(stream, move, leap, log_reach, consensus)
        if there < 0:
            continue
        if move == SWAP:
            change = wins_of_exchange(margins, ordering, here, there)
        else:
            change = wins_of_leap(margins, ordering, here, there)
        if accepts(stream, -rate * change + log_way):
            make_move(move, here, there, consensus, ordering)
            n_accepted += 1
    return n_accepted


@compiled
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


@compiled
def improve_by_insertions(margins, consensus, ordering):
    """Insert items where they are best, until no insertion makes the distance smaller."""
    n_items, since = len(ordering), 0  # how many items have stayed since the last insertion
    item = 0
    while since < n_items:
        here = consensus[item] - 1
        there = best_place(margins, ordering, here)
        since += 1
        if there != here:
            make_move(INSERT, here, there, consensus, ordering)
            since = 0
        item = (item + 1) % n_items


@compiled
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
