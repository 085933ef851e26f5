"""Products of items: how often people clicked both of two, from lists of clicks."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import compiled

SQUARE = 32  # whose two tiles, of 8 KB each, fit into the processor's first cache


class ClickLists(NamedTuple):
    """Users clicked `codes[starts[user]:starts[user + 1]]`; items were clicked by
    `users[item_starts[item]:item_starts[item + 1]]`, both in rising order."""

    starts: NDArray[np.int64]
    codes: NDArray[np.int32]
    item_starts: NDArray[np.int64]
    users: NDArray[np.int32]


class Head(NamedTuple):
    """Products of some items, often clicked: `table[places[a], places[b]]`; the others have no
    place (-1)."""

    places: NDArray[np.int32]
    items: NDArray[np.int64]
    table: NDArray[Any]


@compiled
def list_users(starts, codes, item_starts, users):
    """Fill the users of each item, in rising order; `item_starts` says where each list begins."""
    ends = item_starts[:-1].copy()
    for user in range(len(starts) - 1):
        for item in codes[starts[user] : starts[user + 1]]:
            users[ends[item]] = user
            ends[item] += 1


@compiled
def count_products(lists, shares, head, first, rows):
    """Add to `rows[r, place]` the products of the item at place `first + r` of the head with the
    others of the head: a user counts as `shares[user]`."""
    for r in range(len(rows)):
        item, row = head.items[first + r], rows[r]
        for user in lists.users[lists.item_starts[item] : lists.item_starts[item + 1]]:
            share = shares[user]
            for other in lists.codes[lists.starts[user] : lists.starts[user + 1]]:
                place = head.places[other]
                if place >= 0:
                    row[place] += share


@compiled
def count_all_products(lists, shares, first, rows):
    """Add to `rows[r, other]` the products of item `first + r` with itself and all items after it:
    those before it have the same, in their rows (`mirror_rows`)."""
    for r in range(len(rows)):
        item, row = first + r, rows[r]
        for user in lists.users[lists.item_starts[item] : lists.item_starts[item + 1]]:
            share = shares[user]
            for place in range(lists.starts[user + 1] - 1, lists.starts[user] - 1, -1):
                other = lists.codes[place]
                if other < item:
                    break
                row[other] += share


@compiled
def mirror_rows(table):
    """Copy what is above the diagonal of a table to below it, square by square."""
    size = len(table)
    for top in range(0, size, SQUARE):
        for left in range(top, size, SQUARE):
            for a in range(top, min(top + SQUARE, size)):
                for b in range(max(left, a + 1), min(left + SQUARE, size)):
                    table[b, a] = table[a, b]


@compiled
def drop_products(lists, taken, shares, table):
    """Take from `table[a, b]`, the products of all items, those of the clicks that are `taken`."""
    for user in range(len(lists.starts) - 1):
        begin, end = lists.starts[user], lists.starts[user + 1]
        for place in range(begin, end):
            if not taken[place]:
                continue
            item = lists.codes[place]
            for other_place in range(begin, end):
                other = lists.codes[other_place]
                table[item, other] -= shares[user]
                if not taken[other_place]:
                    table[other, item] -= shares[user]


@compiled
def mark_taken(whole, shown, taken):
    """Mark the clicks of the `whole` log, rows of clicks, that are not `shown`; whether what is
    shown is a part of it, row by row in the same order."""
    for user in range(len(whole.starts) - 1):
        place, end = shown.starts[user], shown.starts[user + 1]
        for whole_place in range(whole.starts[user], whole.starts[user + 1]):
            is_shown = place < end and shown.codes[place] == whole.codes[whole_place]
            taken[whole_place] = not is_shown
            place += is_shown
        if place < end:
            return False
    return True
