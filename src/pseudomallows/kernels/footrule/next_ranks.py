"""Which unclicked items take the ranks that follow a user's clicks: exact probabilities, quickly.

By the recursion of `recursions`: back from the last click to place c, then forwards over the window
of the next ranks. Behind it an item's probability is what it takes of the window's ranks that are
still open. Behind place c few ranks are open, so few states count where it matters, and the
probabilities soon fall off by the same factor at each place: who wants the best items only may end
the recursion there.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..click_rows import clicks_of
from ..compiled import compiled
from .matching import RESCALE, TINY
from .recursions import (
    BESIDE,
    DECAY,
    LOW,
    STAY,
    TAKE,
    Back,
    fill_gap_steps,
    recursion_at,
    room_to_go_back,
    sort_places,
    sum_back,
)

# Behind the items that are exact, probabilities fall off evenly: from so many items behind the
# window, if that is so far from the last item, in units of 1 / rate. The largest error of 150 items
# was 0.004; with 3 or 12 items behind it was 0.006 or 0.002, and with FAR = 1.5 it was 0.01.
N_BEHIND, FAR = 6, 3.0


class Ahead(NamedTuple):
    """What is asked: the probabilities of the next `window` ranks, exactly for the first `n_exact`
    unclicked items of a consensus."""

    window: int
    n_exact: int


class Room(NamedTuple):
    """Room for one user: for the way `back`; of the window, `hits[p - c]` at each place p, the part
    of the sums on which a given open item takes one of its ranks; forwards, for even and odd
    places, `masses` of all paths, and `marks`, the same times the number of open ranks of the
    window; `terms`; the `probabilities` of the items, by place; the `steps`, and room for a gap
    that is not among them; `inverses[i]`, 1 / i and for 0 1, and `lefts[k]`, k / (k +
    1)."""

    back: Back
    hits: NDArray[np.float64]
    masses: NDArray[np.float64]
    marks: NDArray[np.float64]
    terms: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    steps: NDArray[np.float64]
    inverses: NDArray[np.float64]
    lefts: NDArray[np.float64]


@compiled
def room_ahead(recursions, window):
    """Make that room."""
    n_items, width = recursions.widths.shape[1] - 1, recursions.tails.shape[2]
    masses, marks = np.zeros((2, width)), np.zeros((2, width))
    hits, probabilities = np.zeros((min(window, n_items) + 1, width)), np.empty(n_items)
    n_gaps, back = recursions.steps.shape[1], room_to_go_back(recursions, n_items + 1)
    steps, inverses = np.empty((n_gaps + 1, 3, width - 2)), np.empty(n_items + width)
    lefts = np.empty(width)
    for i in range(len(inverses)):
        inverses[i] = 1.0 / max(i, 1)
    for k in range(width):
        lefts[k] = k * inverses[k + 1]
    return Room(back, hits, masses, marks, np.empty(width), probabilities, steps, inverses, lefts)


@compiled
def divide_states(states, size, number):
    """Divide the first states by a number."""
    for k in range(size):
        states[k + 1] /= number


@compiled
def step_number(gap, recursion, steps):
    """The number of the steps of a gap; they are made, if there are none."""
    last = len(steps) - 1
    if gap < last:
        return gap
    fill_gap_steps(recursion.base, recursion.roots, gap, steps[last])
    return last


@compiled
def hit_back(n_clicks, n_first, end, recursion, room):
    """Fill the hits of the window, whose ranks are those of the places from c up to `end`; return
    the probability of an item before place c."""
    base, widths = recursion.base, recursion.widths
    places, sums, scales = room.back
    hits, steps, inverses, met = room.hits, room.steps, room.inverses, n_clicks - 1
    while met >= n_first and places[met] >= end:
        met -= 1
    gap = n_clicks - 1 - met
    g = step_number(gap, recursion, steps)
    hits[end - n_clicks] = 0.0
    for p in range(end - 1, n_clicks - 1, -1):
        i, size = p - n_clicks, widths[p - n_clicks]
        if met >= n_first and places[met] == p:
            met -= 1
            gap += 1
            g = step_number(gap, recursion, steps)
            for k in range(size):  # a given open item takes this rank, or another
                other = hits[i + 1, k + 1]
                given = other + (sums[p + 1, k + 1] - other) * inverses[k + gap]
                higher = base[BESIDE, k + 1] * hits[i + 1, k + 2]
                hits[i, k + 1] = steps[g, TAKE, k] * given + higher
        else:
            for k in range(size):
                decay, low, high = base[DECAY, k], steps[g, LOW, k], steps[g, LOW, k + 1]
                apart = (steps[g, STAY, k] - decay) * hits[i + 1, k + 1]
                here = decay * sums[p + 1, k + 1] + high * hits[i + 1, k + 2]
                given = hits[i + 1, k] + (sums[p + 1, k] - hits[i + 1, k]) * inverses[k + gap]
                hits[i, k + 1] = apart + here + low * given
        hits[i, size + 1] = 0.0
        if scales[p] != 1.0:
            divide_states(hits[i], size, scales[p])
    return hits[0, 1] / sums[n_clicks, 1]


@compiled
def cross_window(n_clicks, n_first, end, recursion, room):
    """Fill `probabilities[p]` of the items of the window; return how many clicks there are before
    its end. The marks there are in units in which all paths together weigh 1."""
    base, widths = recursion.base, recursion.widths
    places, sums, scales = room.back
    _, hits, masses, marks, terms, probabilities, steps, inverses, lefts = room
    masses[:] = 0.0
    marks[:] = 0.0
    masses[n_clicks & 1, 1] = 1.0
    met, gap = n_first, n_clicks - n_first
    g = step_number(gap, recursion, steps)
    weight = sums[n_clicks, 1]  # of all paths, in the units of mass and sums
    for p in range(n_clicks, end):
        weight *= scales[p]
        i, j, at, size = p & 1, 1 - (p & 1), p + 1 - n_clicks, widths[p + 1 - n_clicks]
        if met < n_clicks and places[met] == p:
            for k in range(size):  # an open item takes this rank, or it opens
                take, opens = steps[g, TAKE, k], base[BESIDE, k]
                masses[j, k + 1] = take * masses[i, k + 1] + opens * masses[i, k]
                marks[j, k + 1] = take * marks[i, k + 1] + opens * (marks[i, k] + masses[i, k])
            met += 1
            gap -= 1
            g = step_number(gap, recursion, steps)
        else:
            for k in range(size):  # the item takes this rank, a later one, or one that is open
                decay, here = base[DECAY, k], base[DECAY, k] * sums[p + 1, k + 1]
                later = decay * (k + gap) * hits[at, k + 1] + steps[g, LOW, k + 1] * hits[at, k + 2]
                taken = here + steps[g, LOW, k] * inverses[k] * sums[p + 1, k]
                terms[k] = masses[i, k + 1] * (here + later) + marks[i, k + 1] * taken
            for k in range(size):
                decay, low, high = base[DECAY, k], steps[g, LOW, k], steps[g, LOW, k + 1]
                beside = low * masses[i, k] + high * masses[i, k + 2]
                masses[j, k + 1] = steps[g, STAY, k] * masses[i, k + 1] + beside
                left = (steps[g, STAY, k] - decay) * marks[i, k + 1]
                left += high * lefts[k] * marks[i, k + 2]
                opened = low * (marks[i, k] + masses[i, k]) + decay * k * masses[i, k + 1]
                marks[j, k + 1] = left + opened
            probability = 0.0
            for k in range(size):
                probability += terms[k]
            probabilities[p] = probability / weight
        if p % RESCALE == 0 or p + 1 == end:
            divide_states(masses[j], size, weight)
            divide_states(marks[j], size, weight)
            weight = 1.0
    return met


@compiled
def cross_rest(n_clicks, met, end, last, recursion, room):
    """Fill `probabilities[p]` of the items from the window to place `last`: each is what the item
    there takes of the open ranks of the window. From there on they fall off."""
    base, widths = recursion.base, recursion.widths
    places, sums, scales = room.back
    marks, probabilities, steps, lefts = room.marks, room.probabilities, room.steps, room.lefts
    gap, weight, left, probability = n_clicks - met, 1.0, 0.0, 0.0
    g = step_number(gap, recursion, steps)
    for k in range(widths[end - n_clicks]):
        left += marks[end & 1, k + 1] * sums[end, k + 1]
    for p in range(end, last):
        weight *= scales[p]
        i, j, size = p & 1, 1 - (p & 1), widths[p + 1 - n_clicks]
        if met < n_clicks and places[met] == p:
            for k in range(size):
                taken = steps[g, TAKE, k] * marks[i, k + 1]
                marks[j, k + 1] = taken + base[BESIDE, k] * marks[i, k]
            met += 1
            gap -= 1
            g = step_number(gap, recursion, steps)
        else:
            for k in range(size):
                stay = (steps[g, STAY, k] - base[DECAY, k]) * marks[i, k + 1]
                high = steps[g, LOW, k + 1] * lefts[k] * marks[i, k + 2]
                marks[j, k + 1] = stay + steps[g, LOW, k] * marks[i, k] + high
            now_left = 0.0
            for k in range(size):
                now_left += marks[j, k + 1] * sums[p + 1, k + 1]
            now_left /= weight
            probability = max(left - now_left, 0.0)
            probabilities[p] = probability
            left = now_left
        if p % RESCALE == 0:
            divide_states(marks[j], size, weight)
            weight = 1.0
    if last < len(probabilities):
        fall_off(met, n_clicks, last, left, probability, room)


@compiled
def fall_off(met, n_clicks, first, left, probability, room):
    """Share out what is left of the window among the places from `first` on, each with the same
    part of the one before, which had a `probability`. What clicks would have is shared out too."""
    places, probabilities, n_items = room.back.places, room.probabilities, len(room.probabilities)
    clicked = 0.0
    for _ in range(3):  # steps to a fixed point
        ratio = (left + probability * clicked) / max(
            left + probability * clicked + probability, TINY
        )
        clicked = 0.0
        for i in range(met, n_clicks):
            clicked += ratio ** (places[i] + 1 - first)
    total = ratio * (1.0 - ratio ** (n_items - first)) / max(1.0 - ratio, TINY) - clicked
    power = left * ratio / max(total, TINY)
    for p in range(first, n_items):
        probabilities[p] = power
        power *= ratio


@compiled
def last_to_cross(n_clicks, end, ahead, rate, places, n_items):
    """Behind the first items that are wanted exactly, and some of the window; behind all, where
    probabilities do not fall off evenly."""
    met = 0
    while met < n_clicks and places[met] < end:
        met += 1
    last, met = max(ahead.n_exact, end - met + N_BEHIND), 0
    while met < n_clicks and places[met] < last:
        met += 1
        last += 1
    return last if rate * (n_items - last) > FAR else n_items


@compiled
def fill_next_probabilities(n_clicks, n_first, ahead, recursion, room):
    """Fill `probabilities[p]` of the items from place c on; return that of those before it."""
    places, n_items = room.back.places, len(room.probabilities)
    end = min(n_clicks + ahead.window, n_items)
    last = last_to_cross(n_clicks, end, ahead, recursion.rate, places, n_items)
    sum_back(n_clicks, n_first, last, recursion, room.back)
    early = hit_back(n_clicks, n_first, end, recursion, room)
    met = cross_window(n_clicks, n_first, end, recursion, room)
    cross_rest(n_clicks, met, end, last, recursion, room)
    return early


@compiled
def add_next_probabilities(early, n_clicks, share, ordering, room, sums):
    """Add the probabilities of the unclicked items, times a share, to `sums[item]`."""
    met, places, probabilities = 0, room.back.places, room.probabilities
    for p in range(len(ordering)):
        if met < n_clicks and places[met] == p:
            met += 1
        else:
            sums[ordering[p]] += share * (early if p < n_clicks else probabilities[p])


@compiled
def next_ranks_of_laws(clicks, laws, ahead, weights, recursions, batches, sums):
    """Add to `sums[batches[law], row, item]` the probability, under each law, of an unclicked item
    to take one of the ranks that follow the row's clicks, times `weights[row, law]`.

    Clicked items are left alone.
    """
    ranks, numbers = laws
    n_items = ranks.shape[1]
    room, ordering = room_ahead(recursions, ahead.window), np.empty(n_items, dtype=np.int64)
    for law in range(len(ranks)):
        recursion = recursion_at(recursions, numbers[law])
        for gap in range(len(recursion.steps)):
            for row in range(3):
                for k in range(recursion.steps.shape[2]):
                    room.steps[gap, row, k] = recursion.steps[gap, row, k]
        for item in range(n_items):
            ordering[ranks[law, item] - 1] = item
        for row in range(len(clicks.starts) - 1):
            mine, share = clicks_of(clicks, row), weights[row, law]
            if share > 0.0 and len(mine) < n_items:
                n_first, _ = sort_places(mine, ranks[law], room.back.places)
                early = fill_next_probabilities(len(mine), n_first, ahead, recursion, room)
                add_next_probabilities(
                    early, len(mine), share, ordering, room, sums[batches[law], row]
                )
