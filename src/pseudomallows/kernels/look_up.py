"""Recommendations by looking up: the chances of unclicked items, from tables of chances of places.

The tables are made beforehand, from the law of `groups`; a user then costs a look-up for each draw
and item, or only for the items that may be among the best.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .click_rows import ClickRows, clicks_of


class Sources(NamedTuple):
    """Draws to be looked up; a source is those of one consensus, with one alpha.

    Those of `source` are `orderings[firsts[source]:firsts[source + 1]]`, and so their weights;
    `alphas[source]` is the number of its alpha; `ranks[item, draw]` are those of all draws.
    """

    orderings: NDArray[np.int32]
    weights: NDArray[np.float64]
    firsts: NDArray[np.int64]
    alphas: NDArray[np.int64]
    ranks: NDArray[np.int32]


class PlaceChances(NamedTuple):
    """What is looked up: chances to be among the next ranks.

    With `line = lines[alpha, size]`, `chances[line, place]` is the chance of the item at `place`
    among `size` unclicked items, 0 from place `ends[line]` on. With
    `line = ceiling_lines[source, size]`, `ceilings[line, item]` is a bound of the item's chance
    under the source. A line of -1 is not made.
    """

    lines: NDArray[np.int32]
    ends: NDArray[np.int64]
    chances: NDArray[np.float64]
    ceiling_lines: NDArray[np.int32]
    ceilings: NDArray[np.float64]


@njit(cache=True, nogil=True)
def look_up(clicks, sources, tables, shares, probabilities):
    """Add to `probabilities[row, item]` the chance of an unclicked item to be among the next ranks.

    `tables` are `PlaceChances`, and a source counts `shares[row, source]` times. So a user costs a
    look-up for each item that has a chance, and each draw. Clicked items are left alone.
    """
    orderings, weights, firsts = sources.orderings, sources.weights, sources.firsts
    alphas, lines, ends, chances = sources.alphas, tables.lines, tables.ends, tables.chances
    n_items = orderings.shape[1]
    clicked = np.zeros(n_items, dtype=np.bool_)
    for row in range(len(clicks.starts) - 1):
        mine = clicks_of(clicks, row)
        size = n_items - len(mine)
        clicked[mine] = True
        for source in range(len(alphas) if size > 0 else 0):
            if shares[row, source] == 0.0:
                continue
            line = lines[alphas[source], size]
            table, end = chances[line], ends[line]
            for draw in range(firsts[source], firsts[source + 1]):
                share = weights[draw] * shares[row, source]
                add_chances(share, orderings[draw], clicked, table, end, probabilities[row])
        clicked[mine] = False


@njit(cache=True, nogil=True)
def add_chances(share, ordering, clicked, chances, end, probabilities):
    """Add `share * chances[place]` to the unclicked item at each place before `end`."""
    place = 0
    for rank in range(len(ordering)):
        item = ordering[rank]
        if not clicked[item]:
            probabilities[item] += share * chances[place]
            place += 1
            if place == end:
                return


@njit(cache=True, nogil=True)
def add_ceilings(orderings, weights, chances, size, ceilings):
    """Add to `ceilings[item]` the largest chance the item can have in these draws, whichever
    `n_items - size` items are clicked: that of a place at most so many before its own."""
    n_items = orderings.shape[1]
    n_clicks, peaks = n_items - size, np.zeros(n_items)
    for rank in range(n_items):
        for place in range(max(rank - n_clicks, 0), min(rank, size - 1) + 1):
            peaks[rank] = max(peaks[rank], chances[place])
    for draw in range(len(orderings)):
        for rank in range(n_items):
            ceilings[orderings[draw, rank]] += weights[draw] * peaks[rank]


@njit(cache=True, nogil=True)
def chance_of(item, mine, sources, tables, shares, places):
    """The chance of one item, in the same order of sums as `look_up`, so with the same bits;
    `places` is room for one number a draw."""
    ranks, weights, firsts, alphas = sources.ranks, sources.weights, sources.firsts, sources.alphas
    lines, chances = tables.lines, tables.chances
    size, total = ranks.shape[0] - len(mine), 0.0
    for source in range(len(alphas)):
        if shares[source] == 0.0:
            continue
        first, last = firsts[source], firsts[source + 1]
        own, room = ranks[item, first:last], places[: last - first]
        for draw in range(len(own)):
            room[draw] = own[draw] - 1
        for other in mine:
            theirs = ranks[other, first:last]
            for draw in range(len(own)):
                room[draw] -= theirs[draw] < own[draw]
        table = chances[lines[alphas[source], size]]
        for draw in range(len(own)):
            total += weights[first + draw] * shares[source] * table[room[draw]]
    return total


@njit(cache=True, nogil=True)
def look_up_best(mine, sources, tables, shares, consensus, items, probabilities):
    """Fill the best items of one user and their chances, as `look_up` and `choose_best` do, but
    look up only the items that may be among the best by their ceilings; return how many these are.

    Items are taken from the highest bound on.
    """
    ranks, ceiling_lines, ceilings = sources.ranks, tables.ceiling_lines, tables.ceilings
    n_items, k = len(ranks), len(items)
    bounds, places = np.zeros(n_items), np.empty(ranks.shape[1], dtype=np.int32)
    for source in range(len(shares)):
        if shares[source] > 0.0:
            line = ceilings[ceiling_lines[source, n_items - len(mine)]]
            for item in range(n_items):
                bounds[item] += shares[source] * line[item]
    for item in mine:
        bounds[item] = -1.0
    keys, n_found, n_tried = np.empty(k), 0, 0
    while True:
        item, bound = 0, bounds[0]
        for other in range(1, n_items):  # as `np.argmax`, which also looks for NaN
            if bounds[other] > bound:
                item, bound = other, bounds[other]
        enough = n_found == k and bound < (keys[k - 1] - 2.0) * 1e-12
        if bound < 0.0 or enough:
            return n_tried
        bounds[item] = -1.0
        chance = chance_of(item, mine, sources, tables, shares, places)
        n_found = insert_best(item, chance, consensus, n_found, keys, items, probabilities)
        n_tried += 1


@njit(cache=True, nogil=True)
def look_up_best_rows(clicks, sources, tables, shares, consensus, items, found):
    """The same for every row that has an unclicked item left.

    The first three are better given as plain tuples: each `NamedTuple` takes Numba a microsecond
    more to hand over, which counts where a service asks for one user.
    """
    rows, draws, looked_up = ClickRows(*clicks), Sources(*sources), PlaceChances(*tables)
    for row in range(len(items)):
        mine = clicks_of(rows, row)
        if len(mine) < len(draws.ranks):
            look_up_best(mine, draws, looked_up, shares[row], consensus, items[row], found[row])


@njit(cache=True, nogil=True)
def insert_best(item, chance, consensus, n_found, keys, items, probabilities):
    """Put an item among the best found so far, if it belongs there; return how many there are.

    Chances that agree to 12 digits are tied, and the better rank in the consensus wins.
    """
    k, key = len(items), np.rint(chance * 1e12)
    place = n_found
    while place > 0:
        other = items[place - 1]
        behind = keys[place - 1] < key
        tied = keys[place - 1] == key
        if not behind and not (tied and consensus[item] < consensus[other]):
            break
        if place < k:
            keys[place], items[place] = keys[place - 1], other
            probabilities[place] = probabilities[place - 1]
        place -= 1
    if place < k:
        keys[place], items[place], probabilities[place] = key, item, min(chance, 1.0)
        n_found = min(n_found + 1, k)
    return n_found


@njit(cache=True, nogil=True)
def choose_best(clicks, chances, consensus, items, probabilities):
    """Fill the best unseen items of each row, best first, and their chances.

    What is left of `items` and `probabilities` stays as it is.
    """
    n_items, k = chances.shape[1], items.shape[1]
    keys, seen = np.empty(k), np.zeros(n_items, dtype=np.bool_)
    for row in range(len(items)):
        mine = clicks_of(clicks, row)
        seen[mine] = True
        n_found = 0
        for item in range(n_items):
            is_behind = n_found == k and 1e12 * chances[row, item] < keys[k - 1] - 1.0
            if not seen[item] and not is_behind:
                best = (keys, items[row], probabilities[row])
                n_found = insert_best(item, chances[row, item], consensus, n_found, *best)
        seen[mine] = False
