"""Votes: people who compared one pair of items each. `wins[i, j]` says all of them.

Around a consensus, Kendall's law puts the item at place a before the one d places behind it unless
it loses, which it does with probability

    L(d) = d / (e^(rate d) - 1) - (d + 1) / (e^(rate (d + 1)) - 1)
         = q^d (1 - q) S(d) / ((1 - q^d) (1 - q^(d + 1))),    q = e^-rate,

where S(d) is the sum of 1 - q^k over k = 1..d: no term is negative, so nothing cancels, for any
rate above 0. `table[n_items - 1 + d]` is the log probability that an item is preferred to one that
is d places behind it, or, for d below 0, before it.

`ordering[rank - 1]` is the item of that rank; rate is alpha / n_items.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import compiled
from ..moves import INSERT, SWAP, accepts, make_move, propose
from .click_sums import FLAT
from .inversions import order_by_rank


class Votes(NamedTuple):
    """``wins[i, j]``: votes for i over j, in halves, so that a tie is one for each; `losses` is its
    transpose, so that both are read along rows. `unit` is what a half is worth."""

    wins: NDArray[np.int64]
    losses: NDArray[np.int64]
    unit: float


@compiled
def fill_log_probabilities(rate, table):
    """Fill ``table[n_items - 1 + d]``: log probability to beat an item that is d places behind."""
    middle = len(table) // 2
    table[middle] = 0.0
    log_step, total = 0.0, 0.0
    if rate > FLAT:
        log_step = np.log(-np.expm1(-rate))
    log_next = log_step
    for d in range(1, middle + 1):
        log_here = log_next  # log(1 - q^d)
        if rate > FLAT:
            total -= np.expm1(-rate * d)
            log_next = np.log(-np.expm1(-rate * (d + 1)))
            lost = -rate * d + log_step + np.log(total) - log_here - log_next
        else:
            lost = -np.log(2.0)
        table[middle - d] = lost
        table[middle + d] = np.log1p(-np.exp(lost))


@compiled
def exchange_change(votes, table, ordering, low, high):
    """What the log likelihood, in counts, changes by if two places exchange their items."""
    wins, losses, middle = votes.wins, votes.losses, len(ordering) - 1
    one, other = ordering[low], ordering[high]
    gap = high - low
    change = (wins[one, other] - losses[one, other]) * (table[middle - gap] - table[middle + gap])
    for place in range(len(ordering)):
        if place in (low, high):
            continue
        item = ordering[place]
        more = wins[one, item] - wins[other, item]
        less = losses[one, item] - losses[other, item]
        change += more * (table[middle + place - high] - table[middle + place - low])
        change += less * (table[middle + high - place] - table[middle + low - place])
    return change


@compiled
def leap_change(votes, table, ordering, here, there):
    """What the log likelihood, in counts, changes by if an item leaps and those between shift: by
    exchanges of neighbours, which are taken back."""
    side, change = 1 if there > here else -1, 0.0
    for place in range(here, there, side):
        low = min(place, place + side)
        change += exchange_change(votes, table, ordering, low, low + 1)
        ordering[low], ordering[low + 1] = ordering[low + 1], ordering[low]
    for place in range(there, here, -side):
        low = min(place, place - side)
        ordering[low], ordering[low + 1] = ordering[low + 1], ordering[low]
    return change


@compiled
def move_by_votes(stream, votes, rate, move, leap, n_moves, consensus):
    """Make `n_moves` proposals; return how many were accepted."""
    n_items = len(consensus)
    ordering, table = np.empty(n_items, dtype=np.int64), np.empty(2 * n_items - 1)
    order_by_rank(consensus, ordering)
    fill_log_probabilities(rate, table)
    log_reach, n_accepted = np.log(n_items), 0
    for _ in range(n_moves):
        here, there, log_way = propose(stream, move, leap, log_reach, consensus)
        if there < 0:
            continue
        if move == SWAP:
            change = exchange_change(votes, table, ordering, here, there)
        else:
            change = leap_change(votes, table, ordering, here, there)
        if accepts(stream, votes.unit * change + log_way):
            make_move(move, here, there, consensus, ordering)
            n_accepted += 1
    return n_accepted


@compiled
def best_leap(votes, table, reach, ordering, here):
    """To which place, at most `reach` away, the item at a place is best moved."""
    best, most = here, 1e-9  # less is rounding
    for side in (-1, 1):
        place, change = here, 0.0
        while 0 <= place + side < len(ordering) and abs(place - here) < reach:
            low = min(place, place + side)
            change += exchange_change(votes, table, ordering, low, low + 1)
            ordering[low], ordering[low + 1] = ordering[low + 1], ordering[low]
            place += side
            if change > most:
                best, most = place, change
        while place != here:  # back to where it was
            low = min(place, place - side)
            ordering[low], ordering[low + 1] = ordering[low + 1], ordering[low]
            place -= side
    return best


@compiled
def improve_by_leaps(votes, rate, reach, consensus):
    """Move items to where they are best until none moves; return how many moved."""
    n_items = len(consensus)
    ordering, table = np.empty(n_items, dtype=np.int64), np.empty(2 * n_items - 1)
    order_by_rank(consensus, ordering)
    fill_log_probabilities(rate, table)
    since, item, n_moved = 0, 0, 0  # items that have stayed since the last move
    while since < n_items:
        here = consensus[item] - 1
        there = best_leap(votes, table, reach, ordering, here)
        since += 1
        if there != here:
            make_move(INSERT, here, there, consensus, ordering)
            since = 0
            n_moved += 1
        item = (item + 1) % n_items
    return n_moved
