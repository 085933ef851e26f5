"""Moves of the exact Markov chain. They see `costs` alone, so their time is free of the users.

`ordering[rank - 1]` is the item of that rank, kept in step with `consensus`; rate is
alpha / n_items.
"""

import numpy as np
from numba import njit

from .streams import below, uniform

SWAP, LEAP_AND_SHIFT, INSERT = range(3)


@njit(cache=True, nogil=True)
def accepts(stream, log_ratio):
    """The Metropolis rule. No uniform number is below exp(-40), whose underflow would be slow."""
    return log_ratio >= 0.0 or (log_ratio > -40.0 and uniform(stream) < np.exp(log_ratio))


@njit(cache=True, nogil=True)
def choose_pair(stream, n_items, log_reach):
    """Two places, from 0, whose ranks a swap may exchange; the second may stick out at the end.

    They are `leap` apart, and a leap has probability of about 1 / leap, so that every scale is
    tried and nothing needs tuning. Pairs that stick out are to be refused, which keeps the proposal
    symmetric.
    """
    leap = int(np.exp(uniform(stream) * log_reach))
    low = below(stream, n_items)
    return low, low + leap


@njit(cache=True, nogil=True)
def exchange_places(low, high, consensus, ordering):
    """Exchange the items at two places."""
    first, second = ordering[low], ordering[high]
    consensus[first], consensus[second] = high + 1, low + 1
    ordering[low], ordering[high] = second, first


@njit(cache=True, nogil=True)
def choices(rank, leap, n_items):
    """How many ranks an item at `rank` (from 0) can leap to."""
    return min(rank + leap, n_items - 1) - max(rank - leap, 0)


@njit(cache=True, nogil=True)
def choose_leap(stream, leap, consensus):
    """An item's place, from 0, and the one it may leap to: Vitelli et al. (2018)."""
    n_items = len(consensus)
    here = consensus[below(stream, n_items)] - 1
    there = max(here - leap, 0) + below(stream, choices(here, leap, n_items))
    return here, there + 1 if there >= here else there


@njit(cache=True, nogil=True)
def leap_log_ratio(here, there, leap, n_items):
    """Log of the probability of the way back over that of the way there.

    A leap of one place can be proposed from both of its items, so its two ways have equal
    probability there and back; a longer one has one way, and the ratio is that of the choices.
    """
    if abs(there - here) == 1:
        return 0.0
    return np.log(choices(here, leap, n_items) / choices(there, leap, n_items))


@njit(cache=True, nogil=True)
def shift_places(here, there, consensus, ordering):
    """Move the item at one place to another; those between shift by one."""
    item, side = ordering[here], 1 if there > here else -1
    for rank in range(here + side, there + side, side):
        between = ordering[rank]
        consensus[between] = rank - side + 1
        ordering[rank - side] = between
    consensus[item] = there + 1
    ordering[there] = item


@njit(cache=True, nogil=True)
def propose(stream, move, leap, log_reach, consensus):
    """Two places of a move, from 0, and the log of the probability of the way back over that of the
    way there. The second place is -1 if the move sticks out at the end."""
    n_items = len(consensus)
    if move == SWAP:
        low, high = choose_pair(stream, n_items, log_reach)
        return low, high if high < n_items else -1, 0.0
    here, there = choose_leap(stream, leap, consensus)
    return here, there, leap_log_ratio(here, there, leap, n_items)


@njit(cache=True, nogil=True)
def make_move(move, here, there, consensus, ordering):
    """Exchange the items at two places; or one item leaps, and those between shift by one."""
    if move == SWAP:
        exchange_places(here, there, consensus, ordering)
    else:
        shift_places(here, there, consensus, ordering)


@njit(cache=True, nogil=True)
def cost_of_exchange(costs, ordering, low, high):
    """What the cost grows by if two places exchange their items."""
    first, second = ordering[low], ordering[high]
    return costs[first, high] + costs[second, low] - costs[first, low] - costs[second, high]


@njit(cache=True, nogil=True)
def cost_of_leap(costs, ordering, here, there):
    """What the cost grows by if an item leaps and those between shift by one."""
    item, side = ordering[here], 1 if there > here else -1
    change = costs[item, there] - costs[item, here]
    for rank in range(here + side, there + side, side):
        between = ordering[rank]
        change += costs[between, rank - side] - costs[between, rank]
    return change


@njit(cache=True, nogil=True)
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
        if move == SWAP:
            change = cost_of_exchange(costs, ordering, here, there)
        else:
            change = cost_of_leap(costs, ordering, here, there)
        if accepts(stream, -rate * change + log_way):
            make_move(move, here, there, consensus, ordering)
            n_accepted += 1
    return n_accepted
