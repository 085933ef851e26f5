"""Latent rankings that a chain keeps, moved by exchanges of items whose order is not known.

`ranks[item]` is what is known of a user: equal ranks are a tie, whose items share the ranks from
there on, and items of rank 0 share the ranks that are left. `latent[item]` is a full ranking that
agrees with it. Of users who compare pairs no rank is known. Around a consensus a ranking is seen as
`seats[place]`: the rank less 1 of the item at that place of the consensus, so that the distance is
that between `seats` and 0, 1, 2, ....
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import compiled
from ..distances.ulam_loops import longest_rise
from ..moves import SWAP, accepts, choose_pair, make_move
from ..streams import start_user, uniform
from .statements import ErrorLaw, log_ratio_of_exchange

PRICED, KENDALL, CAYLEY, ULAM = range(4)
SURE = 300.0  # log odds: exp(2 SURE), a product of two odds, is still a number


class SwapLaw(NamedTuple):
    """What a move looks at: the code of the distance, `prices[rank - 1, other - 1]` if it is
    PRICED, rate, which is alpha / n_items, and whether the distance stays as it is, too, if two
    ranks are exchanged in both rankings (Cayley, Hamming)."""

    kind: int
    prices: NDArray[np.int64]
    rate: float
    is_two_sided: bool


class OrderLaw(NamedTuple):
    """How likely rankings are around a consensus, and statements, given a ranking."""

    swaps: SwapLaw
    errors: ErrorLaw


class Seating(NamedTuple):
    """`seats[place]` as above, `places` 0, 1, 2, ..., and room for the longest rise."""

    seats: NDArray[np.int64]
    places: NDArray[np.int64]
    tails: NDArray[np.int64]


@compiled
def swap_latent(streams, rankings, consensus, law, n_swaps, latent):
    """Move the latent ranking of each row, by `n_swaps` proposals for each of its open items."""
    n_items = len(consensus)
    stream, open_ranks = np.empty(1, dtype=np.uint64), np.empty(n_items, dtype=np.int64)
    seats, holders = np.empty(n_items, dtype=np.int64), np.empty(n_items, dtype=np.int64)
    places, tails = np.empty(n_items, dtype=np.int64), np.empty(n_items, dtype=np.int64)
    seating = Seating(seats, places, tails)
    starts = np.empty(n_items + 2, dtype=np.int64)
    for place in range(n_items):
        places[place] = place
    for row in range(len(rankings)):
        start_user(streams, row, 0, stream)
        for item in range(n_items):
            seats[consensus[item] - 1] = latent[row, item] - 1
            holders[latent[row, item] - 1] = item
        list_blocks(rankings[row], holders, starts, open_ranks)
        for item in range(n_items):
            holders[latent[row, item] - 1] = consensus[item] - 1
        rise = longest_rise(seats, places, tails) if law.kind == ULAM else 0
        for block in range(n_items + 1):
            mine = open_ranks[starts[block] : starts[block + 1]]
            if len(mine) > 1:
                rise = swap_block(stream, law, n_swaps, mine, seating, holders, rise)
        for item in range(n_items):
            latent[row, item] = seats[consensus[item] - 1] + 1


@compiled
def list_blocks(ranks, holders, starts, open_ranks):
    """Fill `open_ranks` with all ranks less 1, block by block, rising in each; those of the items
    of rank r stand from `starts[r]` to `starts[r + 1]`. `holders[rank - 1]` has the rank now."""
    starts[:] = 0
    for item in range(len(ranks)):
        starts[ranks[item] + 1] += 1
    for rank in range(len(ranks) + 1):
        starts[rank + 1] += starts[rank]
    for rank in range(len(ranks)):
        block = ranks[holders[rank]]
        open_ranks[starts[block]] = rank
        starts[block] += 1
    for rank in range(len(ranks), 0, -1):
        starts[rank] = starts[rank - 1]
    starts[0] = 0


@compiled
def swap_block(stream, law, n_swaps, mine, seating, holders, rise):
    """Exchange items of one block, whose ranks less 1 are `mine`; return the longest rise, if
    the law is Ulam's. The proposal looks at ranks alone, so it is the same there and back."""
    n_mine, seats = len(mine), seating.seats
    log_reach = np.log(n_mine)
    for _ in range(n_swaps * n_mine):
        low, high = choose_pair(stream, n_mine, log_reach)
        if high >= n_mine:
            continue
        one, other = holders[mine[low]], holders[mine[high]]
        if law.kind == ULAM:
            seats[one], seats[other] = seats[other], seats[one]
            proposed = longest_rise(seats, seating.places, seating.tails)
            if accepts(stream, law.rate * (proposed - rise)):
                rise = proposed
                holders[mine[low]], holders[mine[high]] = other, one
            else:
                seats[one], seats[other] = seats[other], seats[one]
        elif accepts(stream, -law.rate * change_by_swap(law, seats, one, other)):
            seats[one], seats[other] = seats[other], seats[one]
            holders[mine[low]], holders[mine[high]] = other, one
    return rise


@compiled
def change_by_swap(law, seats, one, other):
    """How much the distance grows if two places of the consensus exchange their seats."""
    here, there = seats[one], seats[other]
    if law.kind == PRICED:
        prices = law.prices
        change = prices[one, there] + prices[other, here]
        return change - prices[one, here] - prices[other, there]
    if law.kind == CAYLEY:  # a cycle falls in two, or two become one
        place = here
        while place != one and place != other:
            place = seats[place]
        return -1 if place == other else 1
    low, high = min(here, there), max(here, there)
    between = 0
    for place in range(min(one, other) + 1, max(one, other)):
        between += low < seats[place] < high
    return (1 + 2 * between) * (1 if (one < other) == (here < there) else -1)


@compiled
def swap_together(stream, rankings, said, laws, n_moves, latent, consensus):
    """Exchange two items in the consensus, and with them in the latent ranking of each user who has
    not told them apart: that leaves these users' distances as they are, so that the others decide.
    If the distance is two-sided, so do users whose two items at the same ranks are not told apart.

    A user who compares pairs has two rankings meanwhile, r with the two items as they are and s
    with them exchanged. The consensus moves, or stays, with the probabilities of both summed up;
    then one of them is drawn.

    Without it a consensus would hardly move: latent rankings have been drawn around it.
    """
    n_items, law = len(consensus), laws.swaps
    ordering, seats = np.empty(n_items, dtype=np.int64), np.empty(n_items, dtype=np.int64)
    places, tails = np.empty(n_items, dtype=np.int64), np.empty(n_items, dtype=np.int64)
    seating = Seating(seats, places, tails)
    for item in range(n_items):
        ordering[consensus[item] - 1] = item
        places[item] = item
    partners, log_reach = np.empty((len(latent), 2), dtype=np.int64), np.log(n_items)
    changes = np.zeros(len(latent), dtype=np.int64)
    rises = np.zeros(len(latent), dtype=np.int64)
    if law.kind == ULAM:
        for row in range(len(latent)):
            for item in range(n_items):
                seats[item] = latent[row, ordering[item]]
            rises[row] = longest_rise(seats, places, tails)
    odds = np.empty((len(said.starts), 2))  # of s, if the consensus stays, and if it moves
    for _ in range(n_moves):
        low, high = choose_pair(stream, n_items, log_reach)
        if high >= n_items:
            continue
        one, other, change, log_ratio = ordering[low], ordering[high], 0, 0.0
        for row in range(len(latent)):
            ranks, rise = latent[row], rises[row]
            if speaks(said, row):
                partners[row, 0], partners[row, 1] = one, other
                changes[row] = change_around(law, ranks, ordering, low, high, seating, rise)
                exchanged = log_ratio_of_exchange(said, row, laws.errors, ranks, one, other)
                log_ratio += weigh_both(-law.rate * changes[row], exchanged, odds[row])
                continue
            first, second = find_partners(law, rankings[row], ranks, low, high, one, other)
            partners[row, 0], partners[row, 1] = first, second
            changes[row] = 0
            if first < 0:
                changes[row] = change_around(law, ranks, ordering, low, high, seating, rise)
            change += changes[row]
        is_accepted = accepts(stream, log_ratio - law.rate * change)
        if is_accepted:
            make_move(SWAP, low, high, consensus, ordering)
        for row in range(len(latent)):
            first, second = partners[row, 0], partners[row, 1]
            is_swapped = is_accepted and first >= 0
            if speaks(said, row):
                odd = odds[row, 1 if is_accepted else 0]
                is_swapped = uniform(stream) * (1.0 + odd) < odd
            if is_swapped:
                here = latent[row, first]
                latent[row, first] = latent[row, second]
                latent[row, second] = here
            if is_swapped != is_accepted:
                rises[row] -= changes[row]


@compiled
def speaks(said, row):
    """Has the user of a row compared any pair?"""
    return len(said.starts) > 0 and said.firsts[row, -1] > 0


@compiled
def weigh_both(moved, exchanged, odds):
    """Log of how much likelier a user's two rankings, r and s, become together if the consensus
    moves; `odds` of s against r are filled. `moved` is how the log probability of r changes with
    the consensus, and `exchanged` that of what the user says from r to s. The consensus at its
    new place is as far from s as it is from r at the old one."""
    if exchanged == 0.0:  # r and s change places
        odds[0] = np.exp(min(max(moved, -SURE), SURE))
        odds[1] = 1.0 / odds[0]
        return 0.0
    if exchanged < -SURE or exchanged > SURE or moved < -SURE or moved > SURE:
        odds[0] = np.exp(min(max(exchanged + moved, -SURE), SURE))
        odds[1] = np.exp(min(max(exchanged - moved, -SURE), SURE))
        return log_sum(moved, exchanged) - log_sum(0.0, moved + exchanged)
    of_move, of_words = np.exp(moved), np.exp(exchanged)
    odds[0], odds[1] = of_words * of_move, of_words / of_move
    return np.log((of_move + of_words) / (1.0 + odds[0]))


@compiled
def log_sum(one, other):
    """Log of the sum of two numbers given by their logs."""
    return max(one, other) + np.log1p(np.exp(-min(abs(one - other), SURE)))


@compiled
def find_partners(law, known, ranks, low, high, one, other):
    """Two items of a user whose ranks are exchanged along with the consensus; -1 for none."""
    if known[one] == known[other]:
        return one, other
    if not law.is_two_sided:
        return -1, -1
    first, second = -1, -1
    for item in range(len(ranks)):
        if ranks[item] == low + 1:
            first = item
        elif ranks[item] == high + 1:
            second = item
    if known[first] == known[second]:
        return first, second
    return -1, -1


@compiled
def change_around(law, ranks, ordering, low, high, seating, rise):
    """How much the distance of a ranking grows if two places of the consensus exchange items;
    `rise` is the longest one now, if the law is Ulam's."""
    if law.kind == PRICED:
        here, there, prices = ranks[ordering[low]] - 1, ranks[ordering[high]] - 1, law.prices
        change = prices[low, there] + prices[high, here]
        return change - prices[low, here] - prices[high, there]
    seats = seating.seats
    for place in range(len(ordering)):
        seats[place] = ranks[ordering[place]] - 1
    if law.kind != ULAM:
        return change_by_swap(law, seats, low, high)
    seats[low], seats[high] = seats[high], seats[low]
    return rise - longest_rise(seats, seating.places, seating.tails)
