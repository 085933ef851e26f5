"""Chances of the first places of each user's own order alone, for large catalogues."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def look_up_places(sizes, shares, tables, logs, of_users, chances):
    """Fill `chances[row, place]`: of the first unclicked items of a user who has `sizes[row]` of
    them, to be among the next ranks. See `look_up_personal`, which does so for all items."""
    n_items = len(tables.lines) - 1
    for row in range(len(sizes)):
        n_places = min(sizes[row], chances.shape[1])
        chances[row] = 0.0
        of_users[row, 0] = np.log(1.0 + n_items - sizes[row])
        of_users[row, 1] = 0.0
        for g in range(len(logs)):
            of_users[row, 1] += shares[row, g] * logs[g]
            if shares[row, g] > 0.0 and n_places > 0:
                table = tables.chances[tables.lines[sizes[row]], g]
                for place in range(n_places):
                    chances[row, place] += shares[row, g] * table[place]


@njit(cache=True, nogil=True)
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
