"""Moves of a consensus, given clicks, under Cayley's and Hamming's distance: latent rankings are
summed out.

The probability of a user's c clicks depends on b alone, the clicked items that the consensus puts
beyond place c; see `halves`. The numbers of clicks that occur have a cell of one table for each b
there can be, in a row, and `cells[row]` is the cell that a user is in. If the consensus exchanges
the items at two places, those users move to the next cell, or the one before, who clicked one of
the two items and whose c is between the places.

Users are in the order of their numbers of clicks. `ordering[rank - 1]` is the item of that rank;
lam is alpha / n_items.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..chain import (
    SWAP,
    accepts,
    choose_leap,
    choose_pair,
    exchange_places,
    leap_log_ratio,
)
from ..click_rows import clicks_of
from ..kendall.rankings import order_by_rank
from .halves import fill_click_logs, fill_log_products

ROUNDING = 1e-7  # of a sum over users: less is no change for the better


class HalfUsers(NamedTuple):
    """Item `item` was clicked by the rows `rows[starts[item]:starts[item + 1]]`, which rise. Those
    with at most c clicks are the first `ends[c]`. `firsts[row]` is the cell of a user who agrees
    with the consensus, and `weights[row]` users have these clicks."""

    starts: NDArray[np.int64]
    rows: NDArray[np.int64]
    ends: NDArray[np.int64]
    firsts: NDArray[np.int64]
    weights: NDArray[np.int64]


class Standing(NamedTuple):
    """Where a chain stands: the consensus, its ordering, the cells of the users, and room to list
    those who would move."""

    consensus: NDArray[np.int32]
    ordering: NDArray[np.int64]
    cells: NDArray[np.int64]
    changed: NDArray[np.int64]


@njit(cache=True, nogil=True)
def fill_table(kind, lam, n_items, sizes, firsts, table):
    """Fill the cells, `table[firsts[place] + b]`, with the log probability of `sizes[place]`
    clicks, b of them beyond that place."""
    logs = np.empty(n_items + 1)
    fill_log_products(kind, lam, logs)
    for place in range(len(sizes)):
        mine = table[firsts[place] : firsts[place + 1]]
        fill_click_logs(kind, lam, sizes[place], logs, mine)


@njit(cache=True, nogil=True)
def fill_row_cells(clicks, firsts, consensus, cells):
    """Fill `cells[row]` of users in any order, whose first cells are `firsts[row]`."""
    for row in range(len(cells)):
        mine = clicks_of(clicks, row)
        cells[row] = firsts[row]
        for item in mine:
            cells[row] += consensus[item] > len(mine)


@njit(cache=True, nogil=True)
def list_rows(clicks, order, starts, rows):
    """Fill `rows`, by item, with the places in `order` of those who clicked it, and `starts`."""
    starts[:] = 0
    for row in order:
        for item in clicks_of(clicks, row):
            starts[item + 1] += 1
    for item in range(len(starts) - 1):
        starts[item + 1] += starts[item]
    n_listed = np.zeros(len(starts) - 1, dtype=np.int64)
    for place in range(len(order)):
        for item in clicks_of(clicks, order[place]):
            rows[starts[item] + n_listed[item]] = place
            n_listed[item] += 1


@njit(cache=True, nogil=True)
def fill_cells(users, consensus, cells):
    """Fill the cell of each user."""
    cells[:] = users.firsts
    for item in range(len(consensus)):
        end = users.ends[consensus[item] - 1]  # those with fewer clicks than its rank
        for row in users.rows[users.starts[item] : users.starts[item + 1]]:
            if row >= end:
                break
            cells[row] += 1


@njit(cache=True, nogil=True)
def rows_between(users, item, low, high):
    """Who clicked an item, of those with more than `low` and at most `high` clicks."""
    mine = users.rows[users.starts[item] : users.starts[item + 1]]
    first, last = np.searchsorted(mine, users.ends[low]), np.searchsorted(mine, users.ends[high])
    return mine[first:last]


@njit(cache=True, nogil=True)
def stand_at(users, consensus):
    """Where a chain stands."""
    ordering = np.empty(len(consensus), dtype=np.int64)
    order_by_rank(consensus, ordering)
    cells, changed = np.empty((2, len(users.firsts)), dtype=np.int64)
    fill_cells(users, consensus, cells)
    return Standing(consensus, ordering, cells, changed)


@njit(cache=True, nogil=True)
def list_changes(users, low, high, now):
    """List who would move if the items of two places, from 0, were exchanged; return how many at
    the front of `changed` move to the next cell, and how many at its end to the one before."""
    downs = rows_between(users, now.ordering[low], low, high)
    ups = rows_between(users, now.ordering[high], low, high)
    changed = now.changed
    i, j, n_down, n_up = 0, 0, 0, 0
    while i < len(downs) or j < len(ups):
        if j == len(ups) or (i < len(downs) and downs[i] < ups[j]):
            changed[n_down] = downs[i]
            n_down += 1
            i += 1
        elif i == len(downs) or ups[j] < downs[i]:
            n_up += 1
            changed[len(changed) - n_up] = ups[j]
            j += 1
        else:  # who clicked both stays
            i += 1
            j += 1
    return n_down, n_up


@njit(cache=True, nogil=True)
def change_by_cells(users, table, n_down, n_up, now):
    """What the log likelihood changes by if those listed move."""
    cells, changed, change = now.cells, now.changed, 0.0
    for row in changed[:n_down]:
        change += users.weights[row] * (table[cells[row] + 1] - table[cells[row]])
    for row in changed[len(changed) - n_up :]:
        change += users.weights[row] * (table[cells[row] - 1] - table[cells[row]])
    return change


@njit(cache=True, nogil=True)
def exchange_by_cells(low, high, n_down, n_up, now):
    """Exchange the items of two places, and move those listed."""
    for row in now.changed[:n_down]:
        now.cells[row] += 1
    for row in now.changed[len(now.changed) - n_up :]:
        now.cells[row] -= 1
    exchange_places(low, high, now.consensus, now.ordering)


@njit(cache=True, nogil=True)
def swap_by_cells(stream, users, table, log_reach, now):
    """Exchange the ranks of two items; return whether it was accepted."""
    low, high = choose_pair(stream, len(now.ordering), log_reach)
    if high >= len(now.ordering):
        return False
    n_down, n_up = list_changes(users, low, high, now)
    if not accepts(stream, change_by_cells(users, table, n_down, n_up, now)):
        return False
    exchange_by_cells(low, high, n_down, n_up, now)
    return True


@njit(cache=True, nogil=True)
def shift_by_cells(users, table, here, there, now):
    """Move the item at one place to another, neighbour by neighbour; return what the log likelihood
    changes by."""
    side, change = 1 if there > here else -1, 0.0
    for place in range(here, there, side):
        low = min(place, place + side)
        n_down, n_up = list_changes(users, low, low + 1, now)
        change += change_by_cells(users, table, n_down, n_up, now)
        exchange_by_cells(low, low + 1, n_down, n_up, now)
    return change


@njit(cache=True, nogil=True)
def leap_by_cells(stream, users, table, leap, now):
    """One item leaps, those between shift by one; return whether it was accepted."""
    here, there = choose_leap(stream, leap, now.consensus)
    change = shift_by_cells(users, table, here, there, now)
    if accepts(stream, change + leap_log_ratio(here, there, leap, len(now.ordering))):
        return True
    shift_by_cells(users, table, there, here, now)
    return False


@njit(cache=True, nogil=True)
def move_by_cells(stream, users, table, move, leap, n_moves, consensus):
    """Make `n_moves` proposals; return how many were accepted."""
    now, log_reach, n_accepted = stand_at(users, consensus), np.log(len(consensus)), 0
    for _ in range(n_moves):
        if move == SWAP:
            n_accepted += swap_by_cells(stream, users, table, log_reach, now)
        else:
            n_accepted += leap_by_cells(stream, users, table, leap, now)
    return n_accepted


@njit(cache=True, nogil=True)
def improve_by_cells(users, table, consensus):
    """Exchange places 1 to 8, 10, 12, ... apart until no exchange helps; return how many did."""
    now, n_items, n_made, n_before = stand_at(users, consensus), len(consensus), 0, -1
    while n_made > n_before:
        n_before, leap = n_made, 1
        while leap < n_items:
            for low in range(n_items - leap):
                n_down, n_up = list_changes(users, low, low + leap, now)
                if change_by_cells(users, table, n_down, n_up, now) > ROUNDING:
                    exchange_by_cells(low, low + leap, n_down, n_up, now)
                    n_made += 1
            leap += 1 + leap // 8
    return n_made
