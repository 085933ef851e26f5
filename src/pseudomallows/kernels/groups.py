"""The paper's law of a user's ranking (Algorithm 4): the clicked group, then the unclicked one.

Inside a group of m items only their relative places in the consensus matter: the item at place s
takes rank r, among the ranks still free, with probability proportional to exp(-lam |s - r|). Places
and ranks of a group are numbered from 0.
"""

import numpy as np
from numba import njit

from .streams import below, start_stream, uniform

UNIFORM, V, TOP_BOTTOM = 0, 1, 2  # orders in which the places are visited
SCAN, TRIES = 24, 16  # scan the free ranks when so few are left, or after so many tries


@njit(cache=True, nogil=True)
def leap_tables(n_items, lam):
    """Powers exp(-lam d), and an alias table (Walker 1977) of leaps from -n to n of these weights.

    Cell i of the table is the leap `leaps[i, 0]` with chance `keep[i]`, else `leaps[i, 1]`.
    """
    powers = np.exp(-lam * np.arange(n_items + 1).astype(np.float64))
    n_cells = 2 * n_items + 1
    weights, keep = np.empty(n_cells), np.ones(n_cells)
    leaps, todo = np.empty((n_cells, 2), dtype=np.int64), np.empty((2, n_cells), dtype=np.int64)
    for cell in range(n_cells):
        leaps[cell] = cell - n_items
        weights[cell] = powers[abs(cell - n_items)]
    weights *= n_cells / weights.sum()
    n_light, n_heavy = 0, 0
    for cell in range(n_cells):
        if weights[cell] < 1.0:
            todo[0, n_light] = cell
            n_light += 1
        else:
            todo[1, n_heavy] = cell
            n_heavy += 1
    while n_light > 0 and n_heavy > 0:
        light, heavy = todo[0, n_light - 1], todo[1, n_heavy - 1]
        keep[light], leaps[light, 1] = weights[light], leaps[heavy, 0]
        weights[heavy] -= 1.0 - weights[light]
        if weights[heavy] < 1.0:
            todo[0, n_light - 1] = heavy
            n_heavy -= 1
        else:
            n_light -= 1
    return powers, keep, leaps


@njit(cache=True, nogil=True)
def next_place(stream, order, step, size, visit):
    """The place to visit in this step; `visit` holds 0..size - 1 at the start."""
    if order == UNIFORM:
        chosen = step + below(stream, size - step)
        place = visit[chosen]
        visit[chosen] = visit[step]
        return place
    if order == TOP_BOTTOM:
        return step
    # V: outwards from the middle, the two places of a pair in random order, `visit[0]` the coin
    odd = size % 2
    if odd and step == 0:
        return size // 2
    pair, second = (step - odd) // 2, (step - odd) % 2
    if second == 0:
        visit[0] = below(stream, 2)
    upper = visit[0] == second
    return size // 2 - 1 - pair if upper else size // 2 + odd + pair


@njit(cache=True, nogil=True)
def draw_group(stream, size, order, powers, keep, leaps, scratch, ranks):
    """Fill `ranks[place]` for the places of a group; `scratch` has three rows.

    While most ranks are free, leap by a two-sided geometric and refuse what is taken or beyond the
    ends; at the end, or out of luck, scan the free ranks.
    """
    visit, free, slots = scratch[0], scratch[1], scratch[2]
    for place in range(size):
        visit[place] = free[place] = slots[place] = place
    for step in range(size):
        place = next_place(stream, order, step, size, visit)
        n_free, rank = size - step, -1
        if n_free > SCAN:
            for _ in range(TRIES):
                u = uniform(stream) * len(keep)
                cell = int(u)
                candidate = place + leaps[cell, int(u - cell >= keep[cell])]
                if 0 <= candidate < size and slots[candidate] >= 0:
                    rank = candidate
                    break
        if rank < 0:
            rank = scan_free(stream, place, n_free, free, powers)
        ranks[place] = rank
        slot, last = slots[rank], free[n_free - 1]
        free[slot], slots[last] = last, slot
        slots[rank] = -1


@njit(cache=True, nogil=True)
def scan_free(stream, place, n_free, free, powers):
    """Draw among the free ranks by their weights, relative to the nearest of them."""
    nearest = abs(free[0] - place)
    for slot in range(1, n_free):
        nearest = min(nearest, abs(free[slot] - place))
    total = 0.0
    for slot in range(n_free):
        total += powers[abs(free[slot] - place) - nearest]
    u = uniform(stream) * total
    for slot in range(n_free):
        u -= powers[abs(free[slot] - place) - nearest]
        if u < 0.0:
            return free[slot]
    return free[n_free - 1]


@njit(cache=True, nogil=True)
def count_group(seed, size, lam, order, n_draws, counts):
    """Add `n_draws` draws of a group to `counts[place, rank]`."""
    powers, keep, leaps = leap_tables(size, lam)
    scratch, ranks = np.empty((3, size), dtype=np.int64), np.empty(size, dtype=np.int64)
    stream = np.empty(1, dtype=np.uint64)
    for draw in range(n_draws):
        start_stream(seed, draw, size, stream)
        draw_group(stream, size, order, powers, keep, leaps, scratch, ranks)
        for place in range(size):
            counts[place, ranks[place]] += 1


@njit(cache=True, nogil=True)
def split_by_clicks(ordering, clicked, clicked_items, other_items):
    """Both groups of a user, each in the order of the consensus; return the size of the first."""
    n_clicks, n_others = 0, 0
    for place in range(len(ordering)):
        item = ordering[place]
        if clicked[item]:
            clicked_items[n_clicks] = item
            n_clicks += 1
        else:
            other_items[n_others] = item
            n_others += 1
    return n_clicks


@njit(cache=True, nogil=True)
def draw_users(seed, draw, first_users, starts, codes, weights, ordering, lam, order, counts, kept):
    """Draw the latent ranking of every user by the paper's law and add it to `counts`.

    The clicks of row `row` are `codes[starts[row]:starts[row + 1]]`; it stands for `weights[row]`
    users, numbered from `first_users[row]`. `kept[row]` is the ranking of the last of them, if
    `kept` has rows at all.
    """
    n_items = len(ordering)
    powers, keep, leaps = leap_tables(n_items, lam)
    scratch = np.empty((3, n_items), dtype=np.int64)
    clicked = np.zeros(n_items, dtype=np.bool_)
    groups, ranks = np.empty((2, n_items), dtype=np.int64), np.empty(n_items, dtype=np.int64)
    stream = np.empty(1, dtype=np.uint64)
    for row in range(len(weights)):
        clicked[codes[starts[row] : starts[row + 1]]] = True
        n_clicks = split_by_clicks(ordering, clicked, groups[0], groups[1])
        for user in range(weights[row]):
            start_stream(seed, draw, first_users[row] + user, stream)
            for group in range(2):
                size = n_clicks if group == 0 else n_items - n_clicks
                shift = 0 if group == 0 else n_clicks
                draw_group(stream, size, order, powers, keep, leaps, scratch, ranks)
                for place in range(size):
                    counts[groups[group, place], ranks[place] + shift] += 1
                    if len(kept):
                        kept[row, groups[group, place]] = ranks[place] + shift + 1
        clicked[codes[starts[row] : starts[row + 1]]] = False


@njit(cache=True, nogil=True)
def look_up(starts, codes, orderings, shares, tables, probabilities):
    """Fill `probabilities[row, item]`: the chance of an unclicked item to be among the next ranks.

    `tables[size, place]` is that chance for the item at `place` among `size` unclicked items, so a
    user costs one look-up for each item and each consensus draw, of weight `shares[draw]`. Clicked
    items get 0.
    """
    n_items = orderings.shape[1]
    clicked = np.zeros(n_items, dtype=np.bool_)
    for row in range(len(starts) - 1):
        mine = codes[starts[row] : starts[row + 1]]
        clicked[mine] = True
        table, chances = tables[n_items - len(mine)], probabilities[row]
        chances[:] = 0.0
        for draw in range(len(orderings)):
            place = 0
            for rank in range(n_items):
                item = orderings[draw, rank]
                if not clicked[item]:
                    chances[item] += shares[draw] * table[place]
                    place += 1
        clicked[mine] = False


@njit(cache=True, nogil=True)
def choose_best(starts, codes, chances, consensus, items, probabilities):
    """Fill the best unseen items of each row, best first, and their chances.

    Chances that agree to 12 digits are tied, and the better rank in the consensus wins. What is
    left of `items` and `probabilities` stays as it is.
    """
    n_items, k = chances.shape[1], items.shape[1]
    keys, seen = np.empty(k), np.zeros(n_items, dtype=np.bool_)
    for row in range(len(items)):
        mine = codes[starts[row] : starts[row + 1]]
        seen[mine] = True
        n_found = 0
        for item in range(n_items):
            if seen[item]:
                continue
            key = np.rint(chances[row, item] * 1e12)
            place = n_found
            while place > 0:
                other = items[row, place - 1]
                behind = keys[place - 1] < key
                tied = keys[place - 1] == key
                if not behind and not (tied and consensus[item] < consensus[other]):
                    break
                if place < k:
                    keys[place], items[row, place] = keys[place - 1], other
                place -= 1
            if place < k:
                keys[place], items[row, place] = key, item
                n_found = min(n_found + 1, k)
        for place in range(n_found):
            probabilities[row, place] = min(chances[row, items[row, place]], 1.0)
        seen[mine] = False
