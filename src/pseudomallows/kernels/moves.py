"""Moves of the exact Markov chain. They see `costs` alone, so their time is free of the users.

`ordering[rank - 1]` is the item of that rank, kept in step with `consensus`; rate is
alpha / n_items.
"""

import numpy as np

from .compiled import compiled
from .streams import below, uniform

# whole numbers of NumPy's: a kernel is compiled anew for each of Python's that it is given
SWAP, LEAP_AND_SHIFT, INSERT = np.int64(0), np.int64(1), np.int64(2)


@compiled
def accepts(stream, log_ratio):
    """The Metropolis rule. No uniform number is below exp(-40), whose underflow would be slow."""
    return log_ratio >= 0.0 or (log_ratio > -40.0 and uniform(stream) < np.exp(log_ratio))


@compiled
def choose_pair(stream, n_items, log_reach):
    """Two places, from 0, whose ranks a swap may exchange; the second may stick out at the end.

    They are `leap` apart, and a leap has probability of about 1 / leap, so that every scale is
    tried and nothing needs tuning. Pairs that stick out are to be refused, which keeps the proposal
    symmetric.
    """
    leap = int(np.exp(uniform(stream) * log_reach))
    low = below(stream, n_items)
    return low, low + leap


@compiled
def propose(stream, move, leap, log_reach, consensus):
    """Two places of a move, from 0, and the log of the probability of the way back over that of the
    way there. The second place is -1 if the move sticks out at the end."""
    n_items = len(consensus)
    if move == SWAP:
        low, high = choose_pair(stream, n_items, log_reach)
        return low, high if high < n_items else -1, 0.0
    # An item leaps to one of the ranks within `leap` of its own: Vitelli et al. (2018).
    here = consensus[below(stream, n_items)] - 1
    lowest = max(here - leap, 0)
    n_choices = min(here + leap, n_items - 1) - lowest
    there = lowest + below(stream, n_choices)
    if there >= here:
        there += 1
    # A leap of one place can be proposed from both of its items, so its two ways have equal
    # probability there and back; a longer one has one way, and the ratio is that of the choices.
    if abs(there - here) == 1:
        return here, there, 0.0
    n_back = min(there + leap, n_items - 1) - max(there - leap, 0)
    return here, there, np.log(n_choices / n_back)


@compiled
def make_move(move, here, there, consensus, ordering):
    """Exchange the items at two places; or one item leaps, and those between shift by one."""
    item, last = ordering[here], ordering[there]
    if move == SWAP:
        consensus[last] = here + 1
        ordering[here] = last
    else:
        side = 1 if there > here else -1
        for rank in range(here + side, there + side, side):
            between = ordering[rank]
            consensus[between] = rank - side + 1
            ordering[rank - side] = between
    consensus[item] = there + 1
    ordering[there] = item


@compiled
def cost_of_move(costs, ordering, move, here, there):
    """What the cost grows by if a move is made."""
    item, last = ordering[here], ordering[there]
    change = costs[item, there] - costs[item, here]
    if move == SWAP:
        return change + costs[last, here] - costs[last, there]
    side = 1 if there > here else -1
    for rank in range(here + side, there + side, side):
        between = ordering[rank]
        change += costs[between, rank - side] - costs[between, rank]
    return change


@compiled
def move_consensus(stream, costs, rate, move, leap, n_moves, consensus):
    """Make `n_moves` proposals; return how many were accepted."""
    n_items = len(consensus)
    ordering = np.empty(n_items, dtype=np.int64)
    for item in range(n_items):
        ordering[consensus[item] - 1] = item
    log_reach, n_accepted = np.log(n_items), 0
    for _ in range(n_moves):
        here, there, log_way = propose(stream, move, leap, log_reach, consensus)
        if there < 0:
            continue
        change = cost_of_move(costs, ordering, move, here, there)
        if accepts(stream, -rate * change + log_way):
            make_move(move, here, there, consensus, ordering)
            n_accepted += 1
    return n_accepted
