"""A user goes from one cluster to another, together with the places of the items they clicked.

Given the consensuses, hardly any user of a large catalogue could leave: an item that few clicked
stands far higher in the cluster of those who did than in any other. So the places change, too.

Without the user, the items of a cluster with as many clicks, a class, are in any order by the same
chance; with the user, the places p of the user's items have the weight q^p each. A user who leaves
deals their items to places of their classes by chance. A user who comes gives each of their items,
one after the other, a place of its class, by the weights of those that are left. What is proposed
so is as likely as what is there but for the mean weights of the places that each item can choose
from, those of the new cluster divided by those of the old one. Items with many clicks stay.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..chain import accepts
from ..streams import below, uniform

N_CLASSES = 8  # clicks of an item from which one more or less hardly moves it
ROUGH = 1e-6  # of a sum, below which what is left of it by subtractions is added up anew


class Side(NamedTuple):
    """A cluster: alpha / n_items, the clicks `counts[item]` and its consensus `ranks[item]`."""

    lam: float
    counts: NDArray[np.int64]
    ranks: NDArray[np.int32]


@njit(cache=True, nogil=True)
def move_user(stream, items, log_odds, origin, target, room):
    """Move a user who clicked `items` from one cluster to another, or leave everything as it is;
    return whether they moved.

    `log_odds` are those of the target: of all that does not depend on the consensuses, and of the
    proposals. `room[item]` is for notes.
    """
    for item in items:
        origin.counts[item] -= 1
    dealt, taken = np.full(len(items), -1, np.int32), np.full(len(items), -1, np.int32)
    lost = choose_class_places(stream, items, False, origin, room, dealt)
    won = choose_class_places(stream, items, True, target, room, taken)
    is_known = np.isfinite(lost) and np.isfinite(won)
    moves = is_known and accepts(stream, log_odds + won - lost)
    if moves:
        take_places(items, dealt, origin)
        take_places(items, taken, target)
    counts = target.counts if moves else origin.counts
    for item in items:
        counts[item] += 1
    return moves


@njit(cache=True, nogil=True)
def choose_class_places(stream, items, comes, side, room, chosen):
    """Choose a place for each of the user's items, that of the item `chosen[number]`; return the
    sum of the log mean weights of the places to choose from.

    One who comes draws by weights, and the mean weights are those of what is drawn. One who leaves
    draws by chance, and the mean weights are those of the places that the items have.
    """
    counts, ranks, lam, total = side.counts, side.ranks, side.lam, 0.0
    weights, n_left, left, rough = np.empty(0), 0, 0.0, 0.0
    for n_clicks in range(N_CLASSES):
        size, first = -1, 0
        for number in range(len(items)):
            if counts[items[number]] != n_clicks:
                continue
            if size < 0:
                size, first = list_class(n_clicks, counts, ranks, room)
                weights = np.exp(-lam * (ranks[room[:size]] - first))
                n_left, left = size, weights.sum()
                rough = ROUGH * left
            elif left < rough:
                left = weights.sum()
                rough = ROUGH * left
            if left <= 0.0:
                return -np.inf
            total += np.log(left / n_left) - lam * first
            if comes:
                place = pick(stream, weights, left)
                chosen[number] = room[place]
            else:
                place = np.searchsorted(room[:size], items[number])
                chosen[number] = deal(stream, room[:size], chosen[:number])
            left, n_left = left - weights[place], n_left - 1
            weights[place] = 0.0
    for number in range(len(items)):
        if counts[items[number]] >= N_CLASSES:
            chosen[number] = items[number]
            total -= lam * ranks[items[number]]
    return total


@njit(cache=True, nogil=True)
def list_class(n_clicks, counts, ranks, members):
    """List the items with so many clicks; return how many there are, and the first of their
    places."""
    size, first = 0, len(ranks)
    for item in range(len(counts)):
        if counts[item] == n_clicks:
            members[size] = item
            size += 1
            first = min(first, ranks[item])
    return size, first


@njit(cache=True, nogil=True)
def pick(stream, weights, total):
    """Draw a place by its weight."""
    u, last = uniform(stream) * total, 0
    for place in range(len(weights)):
        if weights[place] > 0.0:
            last = place
            u -= weights[place]
            if u < 0.0:
                break
    return last


@njit(cache=True, nogil=True)
def deal(stream, members, taken):
    """Draw one of the members that is not taken."""
    while True:
        item = members[below(stream, len(members))]
        if not is_among(item, taken):
            return item


@njit(cache=True, nogil=True)
def is_among(item, items):
    """Is it one of these?"""
    found = False
    for other in items:
        found |= other == item
    return found


@njit(cache=True, nogil=True)
def take_places(items, chosen, side):
    """Give each of the user's items the place of the item `chosen[number]` of its class. Others who
    lose theirs get those that are left, in the same order; so the way back is the same."""
    counts, ranks = side.counts, side.ranks
    new = ranks[chosen]
    losers, places = np.empty(len(items), np.int32), np.empty(len(items), np.int32)
    for n_clicks in range(N_CLASSES):
        n_losers = n_places = 0
        for number in range(len(items)):
            if counts[items[number]] != n_clicks:
                continue
            if not is_among(chosen[number], items):
                losers[n_losers] = chosen[number]
                n_losers += 1
            if not is_among(items[number], chosen):
                places[n_places] = ranks[items[number]]
                n_places += 1
        order = losers[:n_losers][np.argsort(ranks[losers[:n_losers]])]
        ranks[order] = np.sort(places[:n_places])
    ranks[items] = new


@njit(cache=True, nogil=True)
def add_own(clicks, labels, changes, logs):
    """Add to the log of each row's own cluster the `changes[item, cluster]` of its clicks."""
    for row in range(len(labels)):
        label = labels[row]
        for place in range(clicks.starts[row], clicks.starts[row + 1]):
            logs[row, label] += changes[clicks.codes[place], label]
