"""Matchings on a line: items at places, ranks at places, weight exp(-rate * sum |item - rank|),
rate being alpha / n_items.

Along the line, `open items` wait for a rank further on, `open ranks` for an item; their numbers
differ by a known amount, the gap, so the state is one number: `k`, the smaller of the two. Every
unit step costs exp(-rate * (open items + open ranks)), and the sum of these steps is the distance.
States are weighed by sqrt(open items! * open ranks!), which keeps the numbers tame.

With an item and a rank at every place this is the footrule Mallows distribution itself.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiled import compiled
from ..streams import below, uniform

ITEM, RANK, BOTH = range(1, 4)  # what is at a place; 0 is nothing
# A row is scaled to unit sum every so many places. One place multiplies it by a few times n_items
# at most, and (10^5)^16 is far from the largest number.
RESCALE = 16
# Weights below this count as 0. Smaller ones would lose their digits (and round up instead of dying
# out), and the sums over ten thousand items would come out too large.
TINY = 1e-290
N_GAPS = 64  # whose steps are tabulated: most users have fewer clicks; others take longer
NEGLIGIBLE = 1e-18  # part of a sum: below half of its last digit, 2^-53, even a hundred times


class MatchingFactors(NamedTuple):
    """What all lines of one rate share.

    `decay[k]` is exp(-2 rate k), `roots[i]` the square root of i. `steps[gap, :, k]`, for the first
    gaps: the factors with which state k at a place with an item and a rank comes from the states k,
    k - 1 and k + 1, the gap's decay included. `most` is the largest state that counts.
    """

    decay: NDArray[np.float64]
    roots: NDArray[np.float64]
    steps: NDArray[np.float64]
    most: int


class Sums(NamedTuple):
    """Sums along a line: `table[p, k]` is that of state k before place p, and `tops[p]` the largest
    state there. With two rows of the table, when only the whole sum is wanted, they are used in
    turn."""

    table: NDArray[np.float64]
    tops: NDArray[np.int64]


@compiled
def square_roots(n):
    """roots[i] is the square root of i, for i up to n."""
    roots = np.empty(n + 1)
    for i in range(n + 1):
        roots[i] = np.sqrt(i)
    return roots


@compiled
def gap_decay(rate, n):
    """decay[k] is exp(-2 rate k), for k up to n."""
    decay = np.empty(n + 1)
    for k in range(n + 1):
        decay[k] = np.exp(-2.0 * rate * k)
    return decay


@compiled
def matching_factors(rate, n_places, n_gaps=N_GAPS):
    """The `MatchingFactors` of at most `n_places`."""
    width = n_places // 2 + 3
    decay, roots = gap_decay(rate, width), square_roots(n_places + n_gaps + 4)
    steps = np.zeros((n_gaps, 3, width))
    for gap in range(n_gaps):
        fill_steps(decay, roots, gap, steps[gap])
    return MatchingFactors(decay, roots, steps, largest_state(decay, roots, n_places))


@compiled
def fill_steps(decay, roots, gap, steps):
    """The factors of one gap; see `MatchingFactors`."""
    for k in range(steps.shape[1]):
        steps[0, k] = decay[k] * (1.0 + 2.0 * k + gap)
        steps[1, k] = decay[k] * (roots[k] * roots[k + gap])
        steps[2, k] = decay[k] * (roots[k + 1] * roots[k + 1 + gap])


@compiled
def largest_state(decay, roots, n_places):
    """The largest state that counts in the middle of a line with an item and a rank everywhere.

    On other lines, and nearer to the ends, there are fewer: less is open at a time.
    """
    steps = np.empty((3, n_places // 2 + 3))
    fill_steps(decay, roots, np.int64(0), steps)
    old, new = np.zeros(n_places // 2 + 3), np.zeros(n_places // 2 + 3)
    old[0] = 1.0
    for p in range(n_places // 2):
        step_both(old, steps, p + 1, new)
        if p % RESCALE == 0:
            scale(new, len(new))
        old, new = new, old
    total, most = 0.0, 0
    for k in range(len(old)):
        if old[k] > 0.0:
            old[k] *= old[k] / decay[k]  # the way there and the way back, the decay once
            total += old[k]
    for k in range(len(old)):
        if old[k] > NEGLIGIBLE * total:
            most = k
    return most


@compiled
def scale(states, size):
    """Scale the first states to unit sum; return by what they were divided."""
    total = 0.0
    for k in range(size):
        total += states[k]
    for k in range(size):
        states[k] /= total
    return total


@compiled
def step_both(old, steps, top, new):
    """One step over a place with an item and a rank: the inner loop of all sums.

    The arrays are shifted beforehand, so that the compiler can take several states at once.
    """
    weight = old[0] * steps[0, 0] + old[1] * steps[2, 0]
    new[0] = weight if weight > TINY else 0.0
    lower, same, upper, out = old[:top], old[1 : top + 1], old[2 : top + 2], new[1 : top + 1]
    stay, close, open_both = steps[0, 1:], steps[1, 1:], steps[2, 1:]
    for k in range(top):
        weight = same[k] * stay[k] + lower[k] * close[k] + upper[k] * open_both[k]
        out[k] = weight if weight > TINY else 0.0


@compiled
def room_for_sums(n_places, n_rows):
    """Room for the sums along a line, with so many rows of the table."""
    return Sums(np.empty((n_rows, n_places // 2 + 3)), np.empty(n_places + 1, dtype=np.int64))


@compiled
def sum_matchings(places, rate, factors, sums):
    """Log of the sum of the weights of all matchings; fills `sums` for `draw_matching`.

    `places[p]` says what stands at place p. `factors` come from `matching_factors`.
    """
    decay, roots, steps, most = factors
    table, tops = sums
    n_places, mask = len(places), 1 if len(table) == 2 else -1
    n_pairs = 0
    for p in range(n_places):
        n_pairs += places[p] & 1
    log_sum, items, ranks, gap = 0.0, 0, 0, 0
    table[0, 0], tops[0] = 1.0, 0
    for p in range(n_places):
        old, new, old_top = table[p & mask], table[(p + 1) & mask], tops[p]
        old[old_top + 1] = 0.0
        old[old_top + 2] = 0.0
        place = places[p]
        items += place & 1
        ranks += place >> 1
        top = min(min(min(items, n_pairs - items), min(ranks, n_pairs - ranks)), most)
        tops[p + 1] = top
        if place == BOTH and gap < len(steps):
            step_both(old, steps[gap], top, new)
        else:
            for k in range(top + 1):
                lower = old[k - 1] if k > 0 else 0.0
                if place == BOTH:
                    weight = (
                        old[k] * (1.0 + 2.0 * k + gap)
                        + lower * (roots[k] * roots[k + gap])
                        + old[k + 1] * (roots[k + 1] * roots[k + 1 + gap])
                    )
                elif place == 0:
                    weight = old[k]
                elif abs(items - ranks) > gap:
                    weight = old[k] * roots[k + gap + 1] + old[k + 1] * roots[k + 1]
                else:
                    weight = lower * roots[k] + old[k] * roots[k + gap]
                weight *= decay[k]
                new[k] = weight if weight > TINY else 0.0
        gap = abs(items - ranks)
        log_sum -= rate * gap
        if p % RESCALE == 0:
            log_sum += np.log(scale(new, top + 1))
    return log_sum + np.log(table[n_places & mask, 0])


@compiled
def draw_matching(stream, places, roots, sums, waiting, ranks):
    """Draw a matching from the sums of `sum_matchings`: the item at place p takes `ranks[p]`.

    From the end of the line to its start. `waiting[0]`, of items, and `waiting[1]`, of ranks, hold
    the places of those whose partner stands further ahead; a newcomer takes any of them with equal
    probability. Ranks are places plus one.
    """
    table, tops = sums
    waiting_items, waiting_ranks = waiting[0], waiting[1]
    k, gap, signed_gap = 0, 0, 0
    n_items, n_ranks = 0, 0  # how many wait
    for p in range(len(places) - 1, -1, -1):
        place = places[p]
        if place == 0:
            continue
        old, top = table[p], tops[p]
        takes_item = takes_rank = False  # does the rank (item) here take one that waits?
        together = False
        if place == BOTH:
            stay = old[k] * (1.0 + 2.0 * k + gap) if k <= top else 0.0
            opened = old[k - 1] * (roots[k] * roots[k + gap]) if k > 0 else 0.0
            closed = old[k + 1] * (roots[k + 1] * roots[k + 1 + gap]) if k < top else 0.0
            u = uniform(stream) * (stay + opened + closed)
            if u < opened:
                k -= 1
                takes_item = takes_rank = True
            elif u < opened + closed:
                k += 1
            else:
                way = below(stream, 1 + n_items + n_ranks)
                together = way == 0
                takes_item = 0 < way <= n_items
                takes_rank = way > n_items
        else:
            signed_gap -= 1 if place == ITEM else -1
            before = abs(signed_gap)
            if before < gap:
                opened = old[k] * roots[k + gap] if k <= top else 0.0
                closed = old[k + 1] * roots[k + 1] if k < top else 0.0
                step_opened, step_closed = 0, 1
            else:
                opened = old[k - 1] * roots[k] if k > 0 else 0.0
                closed = old[k] * roots[k + before] if k <= top else 0.0
                step_opened, step_closed = -1, 0
            opens = uniform(stream) * (opened + closed) < opened
            k += step_opened if opens else step_closed
            takes_rank = opens and place == ITEM
            takes_item = opens and place == RANK
            gap = before
        if together:
            ranks[p] = p + 1
            continue
        item_waits = place & 1 and not takes_rank
        rank_waits = place >> 1 and not takes_item
        if takes_rank:
            i = below(stream, n_ranks)
            ranks[p] = waiting_ranks[i] + 1
            n_ranks -= 1
            waiting_ranks[i] = waiting_ranks[n_ranks]
        if takes_item:
            i = below(stream, n_items)
            ranks[waiting_items[i]] = p + 1
            n_items -= 1
            waiting_items[i] = waiting_items[n_items]
        if item_waits:
            waiting_items[n_items] = p
            n_items += 1
        if rank_waits:
            waiting_ranks[n_ranks] = p
            n_ranks += 1
