"""Latent rankings of users who compare pairs, moved by leaps: one item goes to another place.

Where no statement is wrong, an item leaps within the interval between those that must come before
and those that must come after. These stay where they are meanwhile, so the interval is the same
there and back. Where statements may be wrong, every place is tried, near ones more often.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import compiled
from ..distances.cayley_loops import count_cycles
from ..distances.ulam_loops import longest_rise
from ..moves import INSERT, accepts, choose_pair, make_move
from ..streams import below, start_user, uniform
from .statements import free_places, log_ratio_of_leap
from .swaps import CAYLEY, KENDALL, PRICED, ULAM, Seating


class Latent(NamedTuple):
    """A user's ranking, `holders[rank - 1]` as well, the consensus, and room for distances."""

    ranks: NDArray[np.int32]
    holders: NDArray[np.int64]
    consensus: NDArray[np.int32]
    seating: Seating


@compiled
def leap_latent(streams, said, consensus, law, n_leaps, latent):
    """Move the latent ranking of each row, by `n_leaps` proposals for each item."""
    n_items = len(consensus)
    stream = np.empty(1, dtype=np.uint64)
    seats, holders = np.empty(n_items, dtype=np.int64), np.empty(n_items, dtype=np.int64)
    places, tails = np.empty(n_items, dtype=np.int64), np.empty(n_items, dtype=np.int64)
    for place in range(n_items):
        places[place] = place
    log_reach = np.log(n_items)
    for row in range(len(latent)):
        start_user(streams, row, 0, stream)
        for item in range(n_items):
            holders[latent[row, item] - 1] = item
        state = Latent(latent[row], holders, consensus, Seating(seats, places, tails))
        away = whole_distance(law.swaps, state)
        for _ in range(n_leaps * n_items):
            here, there = choose_place(stream, said, row, law.errors, state, log_reach)
            if here != there:
                away = leap_item(stream, said, row, law, state, (here, there), away)


@compiled
def choose_place(stream, said, row, errors, state, log_reach):
    """The rank of an item and the one it may leap to; the same, if it may not."""
    n_items = len(state.ranks)
    if errors.is_strict:
        item = below(stream, n_items)
        here = state.ranks[item]
        low, high = free_places(said, row, state.ranks, item)
        if low == high:
            return here, here
        there = low + below(stream, high - low)
        return here, there + 1 if there >= here else there
    low, high = choose_pair(stream, n_items, log_reach)
    if high >= n_items:
        return 1, 1
    return (low + 1, high + 1) if uniform(stream) < 0.5 else (high + 1, low + 1)


@compiled
def leap_item(stream, said, row, law, state, ways, away):
    """Propose a leap from the first of `ways` to the second; return the distance, if it is one that
    looks at the whole ranking, else 0."""
    here, there = ways
    ranks, holders, words = state.ranks, state.holders, 0.0
    if not law.errors.is_strict:
        words = log_ratio_of_leap(said, row, law.errors, ranks, holders, here, there)
    if law.swaps.kind == PRICED or law.swaps.kind == KENDALL:
        if accepts(stream, words - law.swaps.rate * change_by_leap(law.swaps, state, here, there)):
            make_move(INSERT, here - 1, there - 1, ranks, holders)
        return 0
    make_move(INSERT, here - 1, there - 1, ranks, holders)
    proposed = whole_distance(law.swaps, state)
    if accepts(stream, words - law.swaps.rate * (proposed - away)):
        return proposed
    make_move(INSERT, there - 1, here - 1, ranks, holders)
    return away


@compiled
def change_by_leap(law, state, here, there):
    """How much the distance from the consensus grows by a leap; priced distances, and Kendall's."""
    side, change = 1 if there > here else -1, 0
    centre = state.consensus[state.holders[here - 1]]
    if law.kind == PRICED:
        change = law.prices[centre - 1, there - 1] - law.prices[centre - 1, here - 1]
    for rank in range(here + side, there + side, side):
        other = state.consensus[state.holders[rank - 1]]
        if law.kind == PRICED:
            change += law.prices[other - 1, rank - side - 1] - law.prices[other - 1, rank - 1]
        else:
            change += side if centre < other else -side
    return change


@compiled
def whole_distance(law, state):
    """Cayley's or Ulam's distance between a ranking and the consensus; 0 for the others."""
    if law.kind != CAYLEY and law.kind != ULAM:
        return 0
    seats, places, tails = state.seating
    for item in range(len(state.ranks)):
        seats[state.consensus[item] - 1] = state.ranks[item]
    if law.kind == ULAM:
        return len(seats) - longest_rise(seats, places, tails)
    return len(seats) - count_cycles(seats, places, tails)
