"""Probabilities of the places of each user's own order: all of them, or the first alone."""

import numpy as np

from ..click_rows import clicks_of
from ..compiled import compiled
from ..correct import add_far_probabilities


@compiled
def fill_unclicked(clicks, rankings, items):
    """Fill `items[row, place]`: what a row has not clicked, in the order of its own ranking; -1
    behind the last."""
    n_items = rankings.shape[1]
    ordering = np.empty(n_items, dtype=np.int64)
    for row in range(len(rankings)):
        for item in range(n_items):
            ordering[rankings[row, item] - 1] = item
        for item in clicks_of(clicks, row):
            ordering[rankings[row, item] - 1] = -1
        place = 0
        for item in ordering:
            if item >= 0 and place < items.shape[1]:
                items[row, place] = item
                place += 1
        items[row, place:] = -1


@compiled
def find_places(clicks, items, n_items, places):
    """Fill `places`, one for each click: where the item is in `items[row]`, -1 if nowhere."""
    where, filled = np.full(n_items, -1, dtype=np.int64), 0
    for row in range(len(items)):
        for place in range(items.shape[1]):
            if items[row, place] >= 0:
                where[items[row, place]] = place
        for item in clicks_of(clicks, row):
            places[filled] = where[item]
            filled += 1
        for item in items[row]:
            if item >= 0:
                where[item] = -1


@compiled
def look_up_places(sizes, shares, tables, probabilities):
    """Fill `probabilities[row, place]`: of the first unclicked items of a user who has `sizes[row]`
    of them, to be among the next ranks. `tables` are `GridProbabilities`."""
    for row in range(len(sizes)):
        n_places = min(sizes[row], probabilities.shape[1])
        probabilities[row] = 0.0
        for g in range(shares.shape[1]):
            if shares[row, g] > 0.0 and n_places > 0:
                table = tables.probabilities[tables.lines[sizes[row]], g]
                for place in range(min(n_places, len(table))):
                    probabilities[row, place] += shares[row, g] * table[place]
                if n_places > len(table):
                    far = tables.far[tables.lines[sizes[row]], g]
                    add_far_probabilities(
                        tables.places, far, n_places, shares[row, g], probabilities[row]
                    )


@compiled
def choose_cases(is_hit, n_unseen, law, rows, places, weights):
    """Fill row and place of all of the first places, and of others that are hits; of the rest so
    many of each row, which stand for all of it by their weights. How many there are in all.

    `law` is how many are first, and how many of the rest are chosen.
    """
    first, n_far = law
    filled = 0
    for row in range(len(is_hit)):
        step = max((n_unseen[row] - first) // n_far, 1)
        for place in range(n_unseen[row]):
            is_far = place >= first and is_hit[row, place] == 0.0
            if not is_far or (place + row) % step == 0:
                rows[filled], places[filled] = row, place
                weights[filled] = step if is_far else 1.0
                filled += 1
    return filled


@compiled
def fill_from_places(best, values, items, probabilities):
    """Fill the items of the largest `values[row, place]`, of the items `best[row, place]`; of equal
    ones the first place wins. What there is not stays as it is."""
    for row in range(len(items)):
        order = np.argsort(-values[row], kind="mergesort")
        n_filled = 0
        for place in order:
            if n_filled < items.shape[1] and best[row, place] >= 0:
                items[row, n_filled] = best[row, place]
                probabilities[row, n_filled] = values[row, place]
                n_filled += 1
