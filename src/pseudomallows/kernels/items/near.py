"""Regressions of items on their nearest items alone, for catalogues without a table of all pairs.

Products of two items that are often clicked are looked up in a table; those of any other item are
counted from the lists of its few users.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import compiled
from ..select import smallest
from .weights import MAX_SWEEPS, descend, padded


class NearLaw(NamedTuple):
    """What is sought: see `nonnegative_rows`; `least` is the weight from which on it is kept, and
    `spare` of the nearest items an item with few clicks has at least."""

    ridge: float
    lasso: float
    tolerance: float
    least: float
    spare: int


class Rows(NamedTuple):
    """Weights of some items: `weights[row, place]` of `items[row, place]`, the first `sizes[row]`
    of them."""

    items: NDArray[np.int32]
    weights: NDArray[np.float32]
    sizes: NDArray[np.int64]


@compiled
def count_near(lists, shares, item, counts, touched):
    """Add to `counts[other]` the products of an item with all others; how many are `touched`."""
    n_touched = 0
    for user in lists.users[lists.item_starts[item] : lists.item_starts[item + 1]]:
        if shares[user] == 0.0:
            continue
        for other in lists.codes[lists.starts[user] : lists.starts[user + 1]]:
            if counts[other] == 0.0:
                touched[n_touched] = other
                n_touched += 1
            counts[other] += shares[user]
    return n_touched


@compiled
def choose_near(counts, touched, norms, item, most):
    """The items whose clicks are most like those of `item`, by the cosine, in rising order."""
    cosines = np.empty(len(touched))
    for place in range(len(touched)):
        other = touched[place]
        cosines[place] = -counts[other] / np.sqrt(max(norms[other], 1e-300))
        if other == item:
            cosines[place] = np.inf
    n_near = min(most, len(touched) - 1)
    if n_near <= 0:
        return touched[:0].copy()
    if n_near < len(touched) - 1:  # of equal ones, those of the lowest numbers
        edge = smallest(cosines.copy(), n_near - 1)
        is_near, n_left = cosines < edge, n_near
        n_left -= is_near.sum()
        level = np.sort(touched[cosines == edge])[:n_left]
        return np.sort(np.concatenate((touched[is_near], level)))
    return np.sort(touched[cosines < np.inf])


@compiled
def fill_inner(lists, shares, head, near, places, visits, inner):
    """Fill `inner[a, b]`, the products of the `near` items. `places` are -1 for all items, before
    and after; `visits`, one for each user, says whom an earlier call has met."""
    n_near, visit = len(near), visits[-1] + 1
    visits[-1] = visit
    mine, is_rare = np.empty(n_near, dtype=np.int64), np.empty(n_near, dtype=np.bool_)
    for a in range(n_near):
        places[near[a]] = a
        in_head = head.places[near[a]]
        is_rare[a] = in_head < 0
        for b in range(n_near):
            other = head.places[near[b]]
            inner[a, b] = head.table[in_head, other] if in_head >= 0 and other >= 0 else 0.0
        inner[a, n_near:] = 0.0
    for a in range(n_near):
        if not is_rare[a]:
            continue
        for user in lists.users[lists.item_starts[near[a]] : lists.item_starts[near[a] + 1]]:
            if visits[user] == visit:
                continue
            visits[user] = visit
            n_mine = 0
            for other in lists.codes[lists.starts[user] : lists.starts[user + 1]]:
                if places[other] >= 0:
                    mine[n_mine] = places[other]
                    n_mine += 1
            for one in mine[:n_mine]:
                for other in mine[:n_mine]:
                    if is_rare[one] or is_rare[other]:
                        inner[one, other] += shares[user]
    for item in near:
        places[item] = -1


@compiled
def near_rows(lists, shares, head, norms, law, targets, rows):
    """Regress each of the `targets` upon the items nearest to it, into `rows`.

    As many items as `rows` has room for; an item with few clicks has as many as clicks, or
    `law.spare`, if these are more: the others say little of it. `norms` are the products of each
    item with itself.
    """
    n_items, most = len(norms), rows.items.shape[1]
    counts, touched = np.zeros(n_items), np.empty(n_items, dtype=np.int64)
    places, inner = np.full(n_items, -1, dtype=np.int32), np.empty(most * padded(most))
    visits = np.zeros(len(lists.starts), dtype=np.int32)  # the last: how many visits there were
    for row in range(len(rows.sizes)):
        item, size = targets[row], 0
        n_touched = count_near(lists, shares, item, counts, touched)
        n_clicks = lists.item_starts[item + 1] - lists.item_starts[item]
        room = min(most, max(n_clicks, law.spare))
        near = choose_near(counts, touched[:n_touched], norms, item, room)
        width = padded(len(near))
        own, left = inner[: len(near) * width].reshape(len(near), width), np.zeros(width)
        fill_inner(lists, shares, head, near, places, visits, own)
        weights, left[: len(near)] = np.zeros(len(near)), counts[near] - law.lasso
        descend(own, (law.ridge, law.tolerance), MAX_SWEEPS, left, weights)
        for place in range(len(near)):
            if weights[place] > law.least:
                rows.items[row, size], rows.weights[row, size] = near[place], weights[place]
                size += 1
        rows.sizes[row] = size
        counts[touched[:n_touched]] = 0.0
