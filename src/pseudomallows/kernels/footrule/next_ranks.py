"""Which unclicked items take the ranks that follow a user's clicks: exact chances, quickly.

A user with c clicks gave them the first c ranks, and the other items share the rest. Walk the line
of these others (see `matching`) from place c on: `gap` items wait there, those of the places before
it, and one fewer behind each click, where a rank stands alone. State k has k open ranks and k + gap
open items. Here states are scaled by the root of their decay, exp(-lam k), so that the step over an
item and a rank is a symmetric matrix, forwards as backwards.

Behind the last click nothing depends on the user any more: `tails` holds these sums for all. And
how many of the window's ranks are still open is known at each place, so the walk can end early.

State k is stored in column k + 1, with zeros around the states. All the time goes into the inner
loops. They get whole tables and the numbers of their rows, as to pass a row costs more than a loop,
and shift the rows beforehand, so that the compiler can take several states at once.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..click_rows import clicks_of
from .clicks import fill_ordering, logs_of_factorials, sort_places
from .matching import RESCALE, gap_decay, largest_state, square_roots

DECAY, BESIDE = 0, 1  # rows of `bases`
STAY, LOW, APART, LEFT = range(4)  # rows of `steps`
MAX_GAPS = 64  # whose steps are tabulated
FAR = 4.0  # from the end of the line: so many times further than what is left lasts
MAX_GAPS = 64  # whose steps are tabulated
FAR = 4.0  # from the end of the line: so many times further than what is left lasts


class Laws(NamedTuple):
    """Laws of users: `ranks[g, item]` of the consensus; `lams[g]`; `numbers[g]`, the number of its
    walk; and `batches[g]`, the batch in which it counts."""

    ranks: NDArray[np.int32]
    lams: NDArray[np.float64]
    numbers: NDArray[np.int64]
    batches: NDArray[np.int64]


class Walks(NamedTuple):
    """What all walks of some lams share; `sizes[g]` states of the law g count.

    `bases[g, DECAY, k]` is exp(-2 lam k), and `bases[g, BESIDE, k]` leads from state k - 1 to k
    over a rank alone. `roots[i]` is the square root of i; `inverses[i]` is 1 / i, and that of 0
    is 1. With an item and a rank at place p and all that follow, and no gap before it,
    `tails[g, p, k + 1]` is the weight of all walks from state k, divided by the product of
    `scales[g, p:]`, whose log is `logs[g, p]`.
    """

    sizes: NDArray[np.int64]
    bases: NDArray[np.float64]
    roots: NDArray[np.float64]
    inverses: NDArray[np.float64]
    tails: NDArray[np.float64]
    scales: NDArray[np.float64]
    logs: NDArray[np.float64]


class Walk(NamedTuple):
    """The same of one law.

    Over an item and a rank, `steps[gap, STAY, k]` leads from state k to itself, `steps[gap, LOW,
    k]` from k - 1 to k, or back; APART and LEFT are the parts of STAY, and of what leads from k + 1
    to k, on which a given open rank is left. The last gap is room for any that has no steps.
    """

    size: int
    base: NDArray[np.float64]
    roots: NDArray[np.float64]
    inverses: NDArray[np.float64]
    tails: NDArray[np.float64]
    scales: NDArray[np.float64]
    logs: NDArray[np.float64]
    steps: NDArray[np.float64]


class Room(NamedTuple):
    """Room for the walk of a user: `places` of the clicks, rising; backwards, `sums[p]` from each
    place p, divided by the `scales` from p on, and `hits[p]`, the part of the walks on which a
    given open item takes a rank of the window; forwards, for even and odd places, `masses` of all
    walks, and `marks`, the same times the number of open ranks of the window; two rows of `terms`;
    and the `chances` of the items, by place."""

    places: NDArray[np.int64]
    sums: NDArray[np.float64]
    scales: NDArray[np.float64]
    hits: NDArray[np.float64]
    masses: NDArray[np.float64]
    marks: NDArray[np.float64]
    terms: NDArray[np.float64]
    chances: NDArray[np.float64]


# What walks share


@njit(cache=True, nogil=True)
def make_walks(lams, n_items):
    """The `Walks` of some lams."""
    n_laws, sizes = len(lams), np.empty(len(lams), dtype=np.int64)
    roots = square_roots(n_items + n_items // 2 + 8)
    for g in range(n_laws):
        sizes[g] = largest_state(gap_decay(lams[g], n_items // 2 + 3), roots, n_items) + 1
    inverses, most = 1.0 / np.maximum(np.arange(len(roots)), 1), sizes.max()
    bases, steps = np.zeros((n_laws, 2, most + 1)), np.zeros((1, 4, most + 1))
    tails = np.zeros((n_laws, n_items + 1, most + 2))
    scales, logs = np.ones((n_laws, n_items + 1)), np.zeros((n_laws, n_items + 1))
    for g in range(n_laws):
        for k in range(sizes[g]):
            bases[g, DECAY, k] = np.exp(-2.0 * lams[g] * k)
            bases[g, BESIDE, k] = np.exp(-lams[g] * (2 * k - 1)) * roots[k] if k > 0 else 0.0
        fill_even_steps(bases[g], roots, 0, steps[0])
        fill_tails(steps, sizes[g], tails[g], scales[g], logs[g])
    return Walks(sizes, bases, roots, inverses, tails, scales, logs)


@njit(cache=True, nogil=True)
def even_walk_of(walks, g, n_gaps):
    """The walk of one law, with the steps of so many gaps."""
    sizes, bases, roots, inverses, tails, scales, logs = walks
    steps = np.zeros((n_gaps + 1, 4, bases.shape[2]))
    for gap in range(n_gaps):
        fill_even_steps(bases[g], roots, gap, steps[gap])
    return Walk(sizes[g], bases[g], roots, inverses, tails[g], scales[g], logs[g], steps)


@njit(cache=True, nogil=True)
def fill_even_steps(base, roots, gap, steps):
    """The steps of one gap; see `Walk`."""
    last = base.shape[1] - 1
    for k in range(last + 1):
        steps[STAY, k] = base[DECAY, k] * (1.0 + 2.0 * k + gap)
        steps[APART, k] = base[DECAY, k] * (2.0 * k + gap)
        steps[LOW, k] = base[BESIDE, k] * roots[k + gap]
        high = base[BESIDE, k + 1] * roots[k + 1 + gap] if k < last else 0.0
        steps[LEFT, k] = high * k / (k + 1.0)


@njit(cache=True, nogil=True)
def step_number(gap, walk):
    """The number of the steps of a gap; they are made, if there are none."""
    last = len(walk.steps) - 1
    if gap < last:
        return gap
    fill_even_steps(walk.base, walk.roots, gap, walk.steps[last])
    return last


@njit(cache=True, nogil=True)
def fill_tails(steps, size, tails, scales, logs):
    """Fill the tails of one law, from the end of the line on."""
    tails[-1, 1] = 1.0
    for p in range(len(tails) - 2, -1, -1):
        step_both_evenly(tails, p + 1, steps, 0, size, tails, p)
        scales[p] = scale_down(p, size, tails)
        logs[p] = logs[p + 1] + np.log(scales[p])


@njit(cache=True, nogil=True)
def scale_down(p, size, states):
    """At times, scale the states of row p to unit sum; return by what they were divided."""
    if p % RESCALE:
        return 1.0
    total = states[p, 1 : size + 1].sum()
    states[p, 1 : size + 1] /= total
    return total


# Inner loops: over all states k, from row i of a table to row j of another


@njit(cache=True, nogil=True)
def step_both_evenly(old, i, steps, gap, size, new, j):
    """Over an item and a rank, forwards or backwards."""
    low, same, high, out = old[i], old[i, 1:], old[i, 2:], new[j, 1:]
    stay, from_low, from_high = steps[gap, STAY], steps[gap, LOW], steps[gap, LOW, 1:]
    for k in range(size):
        out[k] = stay[k] * same[k] + from_low[k] * low[k] + from_high[k] * high[k]


@njit(cache=True, nogil=True)
def mark_both(marks, i, steps, gap, size):
    """Forwards over an item and a rank behind the window: the item may take one of its ranks."""
    low, same, high, out = marks[i], marks[i, 1:], marks[i, 2:], marks[1 - i, 1:]
    apart, from_low, left = steps[gap, APART], steps[gap, LOW], steps[gap, LEFT]
    for k in range(size):
        out[k] = apart[k] * same[k] + from_low[k] * low[k] + left[k] * high[k]


@njit(cache=True, nogil=True)
def add_marks(masses, i, base, steps, gap, size, marks):
    """The rank of a place with an item and a rank is of the window, and may stay open."""
    low, same, out = masses[i], masses[i, 1:], marks[1 - i, 1:]
    decay, from_low = base[DECAY], steps[gap, LOW]
    for k in range(size):
        out[k] += decay[k] * k * same[k] + from_low[k] * low[k]


@njit(cache=True, nogil=True)
def step_click(states, i, base, roots, gap, size):
    """Over a rank alone, before which there is this gap: an open item takes it, or it opens."""
    for k in range(size):
        taken = base[DECAY, k] * roots[k + gap] * states[i, k + 1]
        states[1 - i, k + 1] = taken + base[BESIDE, k] * states[i, k]


@njit(cache=True, nogil=True)
def step_click_back(sums, p, base, roots, gap, size):
    """The same backwards."""
    for k in range(size):
        taken = base[DECAY, k] * roots[k + gap] * sums[p + 1, k + 1]
        sums[p, k + 1] = taken + base[BESIDE, k + 1] * sums[p + 1, k + 2]


@njit(cache=True, nogil=True)
def hit_both_back(sums, p, base, steps, gap, inverses, hits):
    """Backwards over an item and a rank of the window: a given open item takes this rank, or
    another; `inverses` begin with that of the gap."""
    low, same, high, out = hits[p + 1], hits[p + 1, 1:], hits[p + 1, 2:], hits[p, 1:]
    all_low, all_same, apart, decay = sums[p + 1], sums[p + 1, 1:], steps[gap, APART], base[DECAY]
    from_low, from_high = steps[gap, LOW], steps[gap, LOW, 1:]
    for k in range(base.shape[1] - 1):
        value = from_high[k] * high[k] + apart[k] * same[k] + decay[k] * all_same[k]
        out[k] = value + from_low[k] * (low[k] + (all_low[k] - low[k]) * inverses[k])


@njit(cache=True, nogil=True)
def hit_click_back(sums, p, base, roots, gap, size, hits):
    """The same over a rank alone."""
    for k in range(size):
        other = hits[p + 1, k + 1]
        given = other + (sums[p + 1, k + 1] - other) / (k + gap)
        taken = base[DECAY, k] * roots[k + gap] * given
        hits[p, k + 1] = taken + base[BESIDE, k + 1] * hits[p + 1, k + 2]


@njit(cache=True, nogil=True)
def weigh_items(sums, hits, p, base, steps, gap, terms):
    """The weight of the walks on which the item of a place p of the window takes one of its ranks:
    in row 0 that of the place, or a later one; in row 1 a given one that is open."""
    low, same, hit, high_hit = sums[p + 1], sums[p + 1, 1:], hits[p + 1, 1:], hits[p + 1, 2:]
    decay, from_low, from_high = base[DECAY], steps[LOW], steps[LOW, 1:]
    own, opened = terms[0, 1:], terms[1, 1:]
    for k in range(base.shape[1] - 1):
        here = decay[k] * same[k]
        own[k] = here + decay[k] * (k + gap) * hit[k] + from_high[k] * high_hit[k]
        opened[k] = here + from_low[k] / max(k, 1.0) * low[k]


@njit(cache=True, nogil=True)
def dot(one, i, other, j, size):
    """Sum of products over the states."""
    left, right, total = one[i, 1:], other[j, 1:], 0.0
    for k in range(size):
        total += left[k] * right[k]
    return total


@njit(cache=True, nogil=True)
def divide(states, i, size, weight):
    """Divide the states of a row."""
    out = states[i, 1:]
    for k in range(size):
        out[k] /= weight


# The walk of one user


@njit(cache=True, nogil=True)
def room_for(walks):
    """Room for walks of these laws."""
    n_items, width = walks.tails.shape[1] - 1, walks.tails.shape[2]
    sums, hits = np.zeros((2, n_items + 1, width))
    masses, marks, terms = np.zeros((3, 2, width))
    places = np.empty(n_items, dtype=np.int64)
    return Room(places, sums, np.ones(n_items + 1), hits, masses, marks, terms, np.empty(n_items))


@njit(cache=True, nogil=True)
def sum_back(n_clicks, n_first, end, walk, room):
    """Fill the sums and scales from the last click, or `end`, back to place c; return the place
    after which no click comes, and the log of the sum over all rankings of the others, but for the
    steps of the gap."""
    size, base, roots, _, tails, tail_scales, logs, steps = walk
    places, sums, scales = room.places, room.sums, room.scales
    behind = max(places[n_clicks - 1] + 1, n_clicks) if n_clicks > 0 else 0
    met, gap, number, log_sum = n_clicks - 1, 0, 0, logs[behind]
    for p in range(behind, max(behind, end) + 1):
        sums[p] = tails[p]
        scales[p] = tail_scales[p]
    for p in range(behind - 1, n_clicks - 1, -1):
        if met >= n_first and places[met] == p:
            met -= 1
            gap += 1
            number = step_number(gap, walk)
            step_click_back(sums, p, base, roots, gap, size)
        else:
            step_both_evenly(sums, p + 1, steps, number, size, sums, p)
        scales[p] = scale_down(p, size, sums)
        if scales[p] != 1.0:
            log_sum += np.log(scales[p])
    return behind, log_sum + np.log(sums[n_clicks, 1])


@njit(cache=True, nogil=True)
def hit_back(n_clicks, n_first, end, walk, room):
    """Fill the hits of the window, whose ranks are those of the places from c up to `end`; return
    the chance of an item before place c."""
    size, base, roots, inverses, _, _, _, steps = walk
    places, sums, scales, hits = room.places, room.sums, room.scales, room.hits
    met = n_clicks - 1
    while met >= n_first and places[met] >= end:
        met -= 1
    gap = n_clicks - 1 - met
    number = step_number(gap, walk)
    hits[end] = 0.0
    for p in range(end - 1, n_clicks - 1, -1):
        if met >= n_first and places[met] == p:
            met -= 1
            gap += 1
            number = step_number(gap, walk)
            hit_click_back(sums, p, base, roots, gap, size, hits)
        else:
            hit_both_back(sums, p, base, steps, number, inverses[gap:], hits)
        if scales[p] != 1.0:
            divide(hits, p, size, scales[p])
    return hits[n_clicks, 1] / sums[n_clicks, 1]


@njit(cache=True, nogil=True)
def cross_window(n_clicks, n_first, end, walk, room):
    """Fill `chances[p]` of the items of the window; return how many clicks there are before its
    end. The marks there are in units in which all walks together weigh 1."""
    size, base, roots, _, _, _, _, steps = walk
    places, sums, scales, hits, masses, marks, terms, chances = room
    masses[:] = 0.0
    marks[:] = 0.0
    masses[n_clicks & 1, 1] = 1.0
    met, gap = n_first, n_clicks - n_first
    number = step_number(gap, walk)
    weight = sums[n_clicks, 1]  # of all walks, in the units of mass and sums
    for p in range(n_clicks, end):
        weight *= scales[p]
        i = p & 1
        if met < n_clicks and places[met] == p:
            step_click(masses, i, base, roots, gap, size)
            step_click(marks, i, base, roots, gap, size)
            for k in range(size):  # this rank may open
                marks[1 - i, k + 1] += base[BESIDE, k] * masses[i, k]
            met += 1
            gap -= 1
            number = step_number(gap, walk)
        else:
            weigh_items(sums, hits, p, base, steps[number], gap, terms)
            chance = dot(masses, i, terms, 0, size) + dot(marks, i, terms, 1, size)
            chances[p] = chance / weight
            step_both_evenly(masses, i, steps, number, size, masses, 1 - i)
            mark_both(marks, i, steps, number, size)
            add_marks(masses, i, base, steps, number, size, marks)
        if p % RESCALE == 0 or p + 1 == end:
            divide(masses, 1 - i, size, weight)
            divide(marks, 1 - i, size, weight)
            weight = 1.0
    return met


@njit(cache=True, nogil=True)
def walk_to_last_click(n_clicks, met, end, behind, walk, room):
    """Fill `chances[p]` of the items between the window and the last click: each is what the item
    there takes of the open ranks of the window; return how many are left."""
    size, base, roots, _, _, _, _, steps = walk
    places, sums, scales, _, _, marks, _, chances = room
    gap, weight = n_clicks - met, 1.0
    number = step_number(gap, walk)
    left = dot(marks, end & 1, sums, end, size)
    for p in range(end, behind):
        weight *= scales[p]
        i = p & 1
        if places[met] == p:
            step_click(marks, i, base, roots, gap, size)
            met += 1
            gap -= 1
            number = step_number(gap, walk)
        else:
            mark_both(marks, i, steps, number, size)
            now_left = dot(marks, 1 - i, sums, p + 1, size) / weight
            chances[p] = max(left - now_left, 0.0)
            left = now_left
        if p % RESCALE == 0 or p + 1 == behind:
            divide(marks, 1 - i, size, weight)
            weight = 1.0
    return left


@njit(cache=True, nogil=True)
def walk_tail(first, left, rough, walk, marks, chances):
    """The same behind the last click. Once at most `rough` of the window's ranks are left, far from
    the end of the line, the chances fall as they fell before."""
    tails, scales, steps, size, weight = walk.tails, walk.scales, walk.steps, walk.size, 1.0
    for p in range(first, len(chances)):
        weight *= scales[p]
        i = p & 1
        mark_both(marks, i, steps, 0, size)
        now_left = dot(marks, 1 - i, tails, p + 1, size) / weight
        chances[p] = max(left - now_left, 0.0)
        if now_left <= rough and (len(chances) - p) * chances[p] > FAR * left:
            fall_off(p + 1, now_left, now_left / left, chances)
            return
        left = now_left
        if p % RESCALE == 0:
            divide(marks, 1 - i, size, weight)
            weight = 1.0


@njit(cache=True, nogil=True)
def fall_off(first, left, ratio, chances):
    """Share out what is left among the places from `first` on, each `ratio` times that before."""
    chance = left * (1.0 - ratio) / (1.0 - ratio ** (len(chances) - first))
    for p in range(first, len(chances)):
        chances[p] = chance
        chance *= ratio


@njit(cache=True, nogil=True)
def fill_next_chances(n_clicks, n_first, window, rough, walk, room):
    """Fill `chances[p]` of the items from place c on; return that of those before it."""
    end = min(n_clicks + window, len(room.places))
    behind, _ = sum_back(n_clicks, n_first, end, walk, room)
    early = hit_back(n_clicks, n_first, end, walk, room)
    met = cross_window(n_clicks, n_first, end, walk, room)
    left = walk_to_last_click(n_clicks, met, end, behind, walk, room)
    walk_tail(max(end, behind), left, rough, walk, room.marks, room.chances)
    return early


@njit(cache=True, nogil=True)
def add_next_chances(early, n_clicks, share, ordering, room, sums):
    """Add the chances of the unclicked items, times a share, to `sums[item]`."""
    met, places, chances = 0, room.places, room.chances
    for p in range(len(ordering)):
        if met < n_clicks and places[met] == p:
            met += 1
        else:
            sums[ordering[p]] += share * (early if p < n_clicks else chances[p])


@njit(cache=True, nogil=True)
def most_clicks(clicks):
    """The largest number of clicks of a row."""
    most = 0
    for row in range(len(clicks.starts) - 1):
        most = max(most, clicks.starts[row + 1] - clicks.starts[row])
    return most


@njit(cache=True, nogil=True)
def next_ranks_of_laws(clicks, laws, window, rough, weights, walks, sums):
    """Add to `sums[batch, row, item]` the chance, under each law g of the batch, of an unclicked
    item to take one of the `window` ranks that follow the row's clicks, times `weights[row, g]`.

    Clicked items are left alone; `rough` is that of `walk_tail`, and 0 makes all chances exact.
    """
    ranks, _, numbers, batches = laws
    n_items, n_gaps = ranks.shape[1], min(most_clicks(clicks), MAX_GAPS) + 1
    room, ordering = room_for(walks), np.empty(n_items, dtype=np.int64)
    walk, number = even_walk_of(walks, 0, n_gaps), 0
    for g in range(len(ranks)):
        if numbers[g] != number:
            walk, number = even_walk_of(walks, numbers[g], n_gaps), numbers[g]
        fill_ordering(ranks[g], ordering)
        for row in range(len(clicks.starts) - 1):
            mine, share = clicks_of(clicks, row), weights[row, g]
            if share > 0.0 and len(mine) < n_items:
                n_first, _ = sort_places(mine, ranks[g], room.places)
                early = fill_next_chances(len(mine), n_first, window, rough, walk, room)
                add_next_chances(early, len(mine), share, ordering, room, sums[batches[g], row])


# The probability of the clicks


@njit(cache=True, nogil=True)
def sum_clicks_back(n_clicks, n_first, walk, room):
    """Log of the sum over all orders of the clicks before place c, but for the steps of the gap.

    Their line, walked from place c to the first, is like that of the others: there ranks wait for
    items, and one fewer at each place without a click."""
    size, base, roots, _, _, _, _, steps = walk
    places, masses = room.places, room.masses
    masses[:] = 0.0
    masses[1 - (n_clicks & 1), 1] = 1.0
    met, gap, log_sum = n_first - 1, n_clicks - n_first, 0.0
    number = step_number(gap, walk)
    for p in range(n_clicks - 1, -1, -1):
        i = p & 1
        if met >= 0 and places[met] == p:
            step_both_evenly(masses, i, steps, number, size, masses, 1 - i)
            met -= 1
        else:
            step_click(masses, i, base, roots, gap, size)
            gap -= 1
            number = step_number(gap, walk)
        if p % RESCALE == 0:
            total = masses[1 - i, 1 : size + 1].sum()
            divide(masses, 1 - i, size, total)
            log_sum += np.log(total)
    return log_sum + np.log(masses[1, 1]) if n_clicks > 0 else 0.0


@njit(cache=True, nogil=True)
def fill_log_likelihoods(clicks, laws, walks, wanted, values):
    """Fill `values[row, g]`, where `wanted[row, g % n_clusters]`: the log probability, under law g,
    that the user's first ranks are the clicked items; see `sum_clicks`. Elsewhere it is -inf.

    The sum over all rankings is that of a user without clicks."""
    ranks, lams, numbers, _ = laws
    n_items, n_gaps = ranks.shape[1], min(most_clicks(clicks), MAX_GAPS) + 1
    room, log_factorials = room_for(walks), logs_of_factorials(n_items)
    walk, number = even_walk_of(walks, 0, n_gaps), 0
    for g in range(len(ranks)):
        if numbers[g] != number:
            walk, number = even_walk_of(walks, numbers[g], n_gaps), numbers[g]
        log_partition = walk.logs[0] + np.log(walk.tails[0, 1])
        for row in range(len(clicks.starts) - 1):
            values[row, g] = -np.inf
            if wanted[row, g % wanted.shape[1]]:
                mine = clicks_of(clicks, row)
                n_clicks = len(mine)
                n_first, gaps = sort_places(mine, ranks[g], room.places)
                value = log_factorials[n_clicks - n_first] - 2.0 * lams[g] * gaps
                value += sum_clicks_back(n_clicks, n_first, walk, room)
                value += sum_back(n_clicks, n_first, n_clicks, walk, room)[1]
                values[row, g] = value - log_partition


# Means over the laws


@njit(cache=True, nogil=True)
def fill_batch_means(sums, totals, k, means, errors, worst):
    """Fill `means[row, value]` over all batches, and `errors[row, value]`, from how the batches
    differ; `worst[row]` is the largest error of the k largest means.

    `sums[batch, row, value]` are sums of weights times values, `totals[batch, row]` of weights.
    """
    n_batches, n_rows, n_values = sums.shape
    for row in range(n_rows):
        mean, error, total, n_used = means[row], errors[row], 1e-300, 0
        mean[:] = 0.0
        error[:] = 0.0
        for batch in range(n_batches):
            total += totals[batch, row]
            n_used += totals[batch, row] > 0.0
            mine = sums[batch, row]
            for i in range(n_values):
                mean[i] += mine[i]
        for i in range(n_values):
            mean[i] /= total
        for batch in range(n_batches):
            mine, weight = sums[batch, row], totals[batch, row]
            for i in range(n_values):
                error[i] += (mine[i] - weight * mean[i]) ** 2
        scale = n_used / (n_used - 1.0) if n_used > 1 else np.nan
        for i in range(n_values):
            error[i] = np.sqrt(scale * error[i]) / total
        least = np.partition(mean, n_values - k)[n_values - k]
        worst[row] = 0.0
        for i in range(n_values):
            if mean[i] >= least and not error[i] <= worst[row]:
                worst[row] = error[i]
