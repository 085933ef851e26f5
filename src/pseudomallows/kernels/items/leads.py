"""How far items are ahead of a hidden one: those alone that are ahead by some part of a blend."""

import numpy as np

from ..click_rows import clicks_of
from ..compiled import compiled


@compiled
def clear_clicks(clicks, scores):
    """Set the scores of what was clicked to 0."""
    for row in range(len(scores)):
        mine = scores[row]
        for item in clicks_of(clicks, row):
            mine[item] = 0.0


@compiled
def fill_ahead(tables, row, hidden, is_out, ahead):
    """Fill the items that are not out, and are level with the hidden one or ahead of it in some
    table, in rising order; how many there are."""
    n_parts, _, n_items = tables.shape
    best, n_ahead = np.full(n_items, -1.0, dtype=tables.dtype), 0
    for part in range(n_parts):
        scores = tables[part, row]
        least = scores[hidden]
        for item in range(n_items):
            best[item] = max(best[item], scores[item] - least)
    for item in range(n_items):
        if best[item] >= 0.0 and not is_out[item]:
            ahead[n_ahead] = item
            n_ahead += 1
    return n_ahead


@compiled
def fill_leads(clicks, tables, hidden, places, sizes, leads):
    """Fill `leads[part, place]`: how far items are ahead of the hidden one of each row, row after
    row, by `tables[part, row, item]`; and `sizes[row]`, how many these are. How many in all.

    Items behind the hidden one by every part are behind it in every blend, and are left out, like
    what was clicked. If there are `places[row]`, only these items count; -1 is none.
    """
    n_items, filled = tables.shape[2], 0
    ahead, is_out = np.empty(n_items, dtype=np.int64), np.zeros(n_items, dtype=np.bool_)
    for row in range(len(hidden)):
        if places.shape[1] > 0:
            is_out[:] = True
            for item in places[row]:
                if item >= 0:
                    is_out[item] = False
        for item in clicks_of(clicks, row):
            is_out[item] = True
        n_ahead = fill_ahead(tables, row, hidden[row], is_out, ahead)
        for part in range(len(tables)):
            scores, mine = tables[part, row], leads[part, filled : filled + n_ahead]
            least = scores[hidden[row]]
            for place in range(n_ahead):
                mine[place] = scores[ahead[place]] - least
        sizes[row] = n_ahead
        filled += n_ahead
        for item in clicks_of(clicks, row):
            is_out[item] = False
    return filled
