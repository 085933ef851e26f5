"""Exchanges of a consensus under Cayley's distance, by the cycles of all users.

A user's cycles are those of the way from an item to the one of the consensus at its rank. If the
consensus exchanges two items, each user with both in one cycle has it fall in two, which takes 1
off the distance; of every other user two cycles become one. `labels[item, row]` is one of the items
of the cycle, so a proposal compares two lines of labels, and accepted ones alone walk cycles.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import compiled
from ..kendall.inversions import order_by_rank
from ..moves import SWAP, accepts, choose_pair, make_move
from ..streams import below, uniform


class Cycles(NamedTuple):
    """`counts[row]` users have the ranking `rankings[row]`; `ordering[rank - 1]` is an item of the
    consensus, and `labels` are the cycles around it."""

    rankings: NDArray[np.int32]
    counts: NDArray[np.int64]
    ordering: NDArray[np.int64]
    labels: NDArray[np.int32]


@compiled
def find_cycles(rankings, counts, consensus):
    """The cycles of all users around a consensus."""
    n_rows, n_items = rankings.shape
    ordering, labels = np.empty(n_items, np.int64), np.full((n_items, n_rows), -1, np.int32)
    order_by_rank(consensus, ordering)
    cycles = Cycles(rankings, counts, ordering, labels)
    for row in range(n_rows):
        for item in range(n_items):
            if labels[item, row] < 0:
                label_way(cycles, row, item, item, item)
    return cycles


@compiled
def label_way(cycles, row, first, last, label):
    """Label the items on a user's way from `first` until it comes to `last`; return whether the
    item that had been their label was among them."""
    ranks, ordering, labels = cycles.rankings[row], cycles.ordering, cycles.labels
    item, before, is_among = first, labels[first, row], False
    while True:
        labels[item, row] = label
        is_among |= item == before
        item = ordering[ranks[item] - 1]
        if item == last:
            return is_among


@compiled
def change_by_exchange(cycles, first, second):
    """How much the distance to all users grows if the consensus exchanges two items."""
    ones, others, change = cycles.labels[first], cycles.labels[second], 0
    for row in range(len(ones)):
        change += cycles.counts[row] * (1 - 2 * (ones[row] == others[row]))
    return change


@compiled
def exchange_items(cycles, first, second, consensus):
    """Exchange two items of the consensus, and bring the labels up to date."""
    labels = cycles.labels
    make_move(SWAP, consensus[first] - 1, consensus[second] - 1, consensus, cycles.ordering)
    for row in range(labels.shape[1]):
        if labels[first, row] != labels[second, row]:
            label_way(cycles, row, second, first, labels[first, row])
        elif label_way(cycles, row, second, second, second):
            label_way(cycles, row, first, first, first)


@compiled
def choose_places(stream, n_items, log_reach):
    """Two places: by `choose_pair`, or, half of the time, any two, as Cayley's distance does not
    see how far they are apart. They may be the same, and the second may stick out."""
    low, high = choose_pair(stream, n_items, log_reach)
    return low, below(stream, n_items) if uniform(stream) < 0.5 else high


@compiled
def move_by_cycles(stream, rankings, counts, rate, n_moves, consensus):
    """Make `n_moves` proposals to exchange two items; return how many were accepted."""
    n_items, log_reach, n_accepted = len(consensus), np.log(len(consensus)), 0
    cycles = find_cycles(rankings, counts, consensus)
    for _ in range(n_moves):
        low, high = choose_places(stream, n_items, log_reach)
        if high == low or high >= n_items:
            continue
        first, second = cycles.ordering[low], cycles.ordering[high]
        if accepts(stream, -rate * change_by_exchange(cycles, first, second)):
            exchange_items(cycles, first, second, consensus)
            n_accepted += 1
    return n_accepted


@compiled
def improve_by_cycles(rankings, counts, consensus):
    """Exchange items until no exchange makes the distance smaller."""
    n_items, since = len(consensus), 0  # how many pairs in turn were of no use
    cycles = find_cycles(rankings, counts, consensus)
    first, second = 0, 0
    while since < n_items * (n_items - 1) // 2:
        second += 1
        if second == n_items:
            first = (first + 1) % (n_items - 1)
            second = first + 1
        since += 1
        if change_by_exchange(cycles, first, second) < 0:
            exchange_items(cycles, first, second, consensus)
            since = 0
