"""The paper's law of a user's ranking (Algorithm 4): the clicked group, then the unclicked one.

Inside a group of m items only their relative places in the consensus matter: the item at place s
takes rank r, among the ranks still free, with probability proportional to exp(-rate |s - r|), rate
being alpha / n_items. Places and ranks of a group are numbered from 0.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .click_rows import clicks_of
from .compiled import compiled
from .streams import STEP, below, mix, start_user, uniform

UNIFORM, V, TOP_BOTTOM = range(3)  # orders in which the places are visited
# Scan the free ranks when so few are left, or after so many tries: when this was chosen, 69 ns an
# item of 190, where scans alone took 131 and two Fenwick trees 76; of 5,000, 111, 2,445 and 128.
SCAN, TRIES = 24, 16
FULL, LOW_32, SHIFT_32 = np.uint64(2**32), np.uint64(2**32 - 1), np.uint64(32)


class Leaps(NamedTuple):
    """Powers exp(-rate d), and an alias table (Walker 1977) of leaps from -n to n of these weights.

    Cell i of the table is the leap `cells[i, 0]` if a random number of 32 bits is below
    `thresholds[i]`, else `cells[i, 1]`.
    """

    powers: NDArray[np.float64]
    thresholds: NDArray[np.uint64]
    cells: NDArray[np.int32]


@compiled
def leap_tables(n_items, rate):
    """The `Leaps` of groups of at most so many items."""
    powers = np.exp(-rate * np.arange(n_items + 1).astype(np.float64))
    n_cells = 2 * n_items + 1
    weights, thresholds = np.empty(n_cells), np.full(n_cells, FULL)
    cells, todo = np.empty((n_cells, 2), dtype=np.int32), np.empty((2, n_cells), dtype=np.int64)
    for cell in range(n_cells):
        cells[cell] = cell - n_items
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
        thresholds[light], cells[light, 1] = np.uint64(weights[light] * 2.0**32), cells[heavy, 0]
        weights[heavy] -= 1.0 - weights[light]
        if weights[heavy] < 1.0:
            todo[0, n_light - 1] = heavy
            n_heavy -= 1
        else:
            n_light -= 1
    return Leaps(powers, thresholds, cells)


@compiled
def draw_leaps(stream, thresholds, cells, drawn):
    """Fill `drawn` with leaps. In one go, and apart from the draws that may refuse them: no number
    here waits for another, so a processor makes several at once."""
    state, n_cells = stream[0], np.uint64(len(thresholds))
    for i in range(len(drawn)):
        state += STEP
        bits = mix(state)
        cell = ((bits >> SHIFT_32) * n_cells) >> SHIFT_32
        drawn[i] = cells[cell, 0] if bits & LOW_32 < thresholds[cell] else cells[cell, 1]
    stream[0] = state


@compiled
def draw_visits(stream, order, size, visit):
    """Fill `visit[step]`: the place to visit in this step."""
    for place in range(size):
        visit[place] = place
    if order == UNIFORM:
        for step in range(size - 1):
            chosen = step + below(stream, size - step)
            visit[step], visit[chosen] = visit[chosen], visit[step]
    elif order == V:  # outwards from the middle, the two places of a pair in random order
        odd = size % 2
        visit[0] = size // 2
        for pair in range(size // 2):
            second = below(stream, 2)
            visit[odd + 2 * pair + second] = size // 2 - 1 - pair
            visit[odd + 2 * pair + 1 - second] = size // 2 + odd + pair


@compiled
def make_scratch(n_items):
    """Room for `draw_group`."""
    return np.full((4, 3 * n_items), -1, dtype=np.int32)


@compiled
def draw_group(stream, size, order, leaps, scratch, ranks):
    """Fill `ranks[place]` for the places of a group; `leaps` come from `leap_tables`.

    While most ranks are free, leap by a two-sided geometric and refuse what is taken or beyond the
    ends; at the end, or out of luck, scan the free ranks. `slots[n_items + rank]` is the slot of a
    free rank in `free`, else -1, as it is beyond the ends, where a leap may lead too.
    """
    powers, thresholds, cells = leaps
    visit, free, slots, drawn = (
        scratch[0],
        scratch[1],
        scratch[2],
        scratch[3, :128],
    )  # leaps at once
    first, n_used = len(slots) // 3, len(drawn)
    draw_visits(stream, order, size, visit)
    for place in range(size):
        free[place] = slots[first + place] = place
    for step in range(size):
        place, n_free, rank = visit[step], size - step, -1
        if n_free > SCAN:
            for _ in range(TRIES):
                if n_used == len(drawn):
                    draw_leaps(stream, thresholds, cells, drawn)
                    n_used = 0
                candidate = place + drawn[n_used]
                n_used += 1
                if slots[first + candidate] >= 0:
                    rank = candidate
                    break
        if rank < 0:
            rank = scan_free(stream, place, n_free, free, powers)
        ranks[place] = rank
        slot, last = slots[first + rank], free[n_free - 1]
        free[slot], slots[first + last] = last, slot
        slots[first + rank] = -1


@compiled
def scan_free(stream, place, n_free, free, powers):
    """Draw among the free ranks by their weights; where these could vanish, by those relative to
    the nearest rank."""
    nearest = 0
    if powers[-1] < 1e-200:  # the farthest ranks weigh next to nothing
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


@compiled
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


@compiled
def draw_users(streams, clicks, ordering, rate, order, counts, latent):
    """Draw the latent ranking of every user by the paper's law and add it to `counts`.

    `latent[row]` is the ranking of the last user of a row, if `latent` has rows at all.
    """
    n_items, weights = len(ordering), streams.weights
    leaps = leap_tables(n_items, rate)
    scratch = make_scratch(n_items)
    clicked = np.zeros(n_items, dtype=np.bool_)
    groups, ranks = np.empty((2, n_items), dtype=np.int64), np.empty(n_items, dtype=np.int64)
    stream = np.empty(1, dtype=np.uint64)
    for row in range(len(weights)):
        clicked[clicks_of(clicks, row)] = True
        n_clicks = split_by_clicks(ordering, clicked, groups[0], groups[1])
        for user in range(weights[row]):
            start_user(streams, row, user, stream)
            for group in range(2):
                size = n_clicks if group == 0 else n_items - n_clicks
                shift = 0 if group == 0 else n_clicks
                draw_group(stream, size, order, leaps, scratch, ranks)
                for place in range(size):
                    counts[groups[group, place], ranks[place] + shift] += 1
                    if len(latent):
                        latent[row, groups[group, place]] = ranks[place] + shift + 1
        clicked[clicks_of(clicks, row)] = False
