"""The best unseen items of some users, by their probabilities."""

import numpy as np

from .click_rows import clicks_of
from .compiled import compiled


@compiled
def insert_best(item, probability, consensus, n_found, keys, items, probabilities):
    """Put an item among the best so far, if it belongs there; return how many there are.

    NextItems that agree to 12 digits are tied, and the better rank in the consensus wins.
    """
    k, key = len(items), np.rint(probability * 1e12)
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
        keys[place], items[place], probabilities[place] = key, item, min(probability, 1.0)
        n_found = min(n_found + 1, k)
    return n_found


@compiled
def choose_best(clicks, table, consensus, items, probabilities):
    """Fill the best unseen items of each row, best first, and their probabilities.

    What is left of `items` and `probabilities` stays as it is.
    """
    n_items, k = table.shape[1], items.shape[1]
    keys, seen = np.empty(k), np.zeros(n_items, dtype=np.bool_)
    for row in range(len(items)):
        mine = clicks_of(clicks, row)
        for item in mine:
            seen[item] = True
        n_found = 0
        for item in range(n_items):
            is_behind = n_found == k and 1e12 * table[row, item] < keys[k - 1] - 1.0
            if not seen[item] and not is_behind:
                best = (keys, items[row], probabilities[row])
                n_found = insert_best(item, table[row, item], consensus, n_found, *best)
        for item in mine:
            seen[item] = False
