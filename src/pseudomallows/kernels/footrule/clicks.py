"""Exact laws of users who are known by their clicks: the clicked items have the first ranks.

Each user is two matchings on the line of `matching`: the clicked items with the first ranks, the
others with the rest. lam is alpha / n_items.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..chain import accepts
from ..click_rows import clicks_of
from ..streams import below, start_user
from .matching import (
    BOTH,
    ITEM,
    RANK,
    RESCALE,
    TINY,
    Sums,
    draw_matching,
    gap_decay,
    step_both,
    sum_matchings,
    walk_of,
    walk_weights,
)


class MixedLaws(NamedTuple):
    """The laws of clusters: `ranks[cluster, item]` of the consensus, `lams[cluster]`, and the logs
    of their partition functions."""

    ranks: NDArray[np.int32]
    lams: NDArray[np.float64]
    log_partitions: NDArray[np.float64]


@njit(cache=True, nogil=True)
def mark_clicks(mine, consensus, places, others):
    """Mark the line of the clicked items and, as its complement, that of the others."""
    for place in range(len(places)):
        places[place] = RANK if place < len(mine) else 0
    for i in range(len(mine)):
        places[consensus[mine[i]] - 1] += ITEM
    for place in range(len(places)):
        others[place] = BOTH - places[place]


@njit(cache=True, nogil=True)
def sort_places(codes, ranks, places):
    """Fill `places` with those of the clicks, rising; return how many are before place c, and the
    sum of the gaps."""
    n_clicks, n_first, gaps = len(codes), 0, 0
    for i in range(n_clicks):
        place = ranks[codes[i]] - 1
        n_first += place < n_clicks
        gaps += place - i
        j = i
        while j > 0 and places[j - 1] > place:
            places[j] = places[j - 1]
            j -= 1
        places[j] = place
    return n_first, gaps


@njit(cache=True, nogil=True)
def sum_clicked(places, n_clicks, n_first, walk, rows):
    """Log of the sum over the orders of the clicked items before place `n_clicks`, `n_first` of
    them: ranks wait for items, and k is the number of items that wait. `walk` comes from
    `walk_weights`."""
    decay, roots, steps, most = walk
    old, new = rows[0], rows[1]
    old[0] = 1.0
    log_sum, gap, met, top = 0.0, 0, 0, 0
    for p in range(n_clicks):
        old[top + 1] = 0.0
        old[top + 2] = 0.0
        is_item = met < n_first and places[met] == p
        met += is_item
        top = min(min(met, most), n_clicks - 1 - p)
        if is_item and gap < len(steps):
            step_both(old, steps[gap], top, new)
        elif is_item:
            step_both_far(old, decay, roots, gap, top, new)
        else:
            gap += 1
            for k in range(top + 1):
                new[k] = decay[k] * (old[k] * roots[k + gap] + old[k + 1] * roots[k + 1])
        old, new = new, old
        if p % RESCALE == RESCALE - 1:
            total = old[: top + 1].sum()
            old[: top + 1] /= total
            log_sum += np.log(total)
    return log_sum + np.log(old[0])


@njit(cache=True, nogil=True)
def step_both_far(old, decay, roots, gap, top, new):
    """The same as `step_both`, at a gap that is not tabulated."""
    for k in range(top + 1):
        weight = old[k] * (1.0 + 2.0 * k + gap)
        weight += old[k + 1] * (roots[k + 1] * roots[k + 1 + gap])
        if k > 0:
            weight += old[k - 1] * (roots[k] * roots[k + gap])
        new[k] = decay[k] * weight


@njit(cache=True, nogil=True)
def walk_others(places, n_clicks, n_first, n_items, walk, rows):
    """Log of the sum over the others, place by place from `n_clicks` on."""
    decay, roots, steps, most = walk
    gap, top, log_sum, met = n_clicks - n_first, 0, 0.0, n_first
    old, new = rows[0], rows[1]
    old[0] = 1.0
    for p in range(n_clicks, n_items):
        old[top + 1] = 0.0
        old[top + 2] = 0.0
        top = min(min(top + 1, most), n_items - 1 - p)
        if met < n_clicks and places[met] == p:
            met += 1
            new[0] = decay[0] * (old[0] * roots[gap])
            for k in range(1, top + 1):
                new[k] = decay[k] * (old[k] * roots[k + gap] + old[k - 1] * roots[k])
            gap -= 1
        elif gap < len(steps):
            step_both(old, steps[gap], top, new)
        else:
            step_both_far(old, decay, roots, gap, top, new)
        old, new = new, old
        if p % RESCALE == 0:
            total = old[: top + 1].sum()
            old[: top + 1] /= total
            log_sum += np.log(total)
    return log_sum + np.log(old[0])


@njit(cache=True, nogil=True)
def sum_clicks(mine, ranks, lam, walk, log_factorials, places, rows):
    """Log of the sum of exp(-lam * distance) over all rankings that put the clicked items first.

    A user with c clicks gave them the first c ranks. Places are those of the consensus `ranks`,
    from 0. On the line of the clicked items (see `matching`) a rank stands at each of the first c
    places, so all after place c is known, and only the clicks before it make sums. The line of the
    others begins with items alone, as many as there are clicks behind place c; this gap falls by
    one at each of those clicks, where a rank stands alone, and everywhere else an item and a rank
    stand together. The sum of the gaps, of either line, costs exp(-lam) each.
    """
    n_items, n_clicks = len(ranks), len(mine)
    n_first, gaps = sort_places(mine, ranks, places)
    value = log_factorials[n_clicks - n_first] - 2.0 * lam * gaps
    if n_first > 0:
        value += sum_clicked(places, n_clicks, n_first, walk, rows)
    else:
        value += 0.5 * log_factorials[n_clicks]
    return value + walk_others(places, n_clicks, n_first, n_items, walk, rows)


@njit(cache=True, nogil=True)
def logs_of_factorials(n):
    """logs[i] is the log of i!, for i up to n."""
    logs = np.zeros(n + 1)
    for i in range(2, n + 1):
        logs[i] = logs[i - 1] + np.log(i)
    return logs


@njit(cache=True, nogil=True)
def click_log_likelihoods(clicks, consensus, lam, log_partition, values):
    """Fill `values[row]`: log probability that the user's first ranks are the clicked items."""
    n_items = len(consensus)
    walk, log_factorials = walk_weights(lam, n_items), logs_of_factorials(n_items)
    places, rows = np.empty(n_items, dtype=np.int64), np.empty((2, n_items + 4))
    for row in range(len(values)):
        mine = clicks_of(clicks, row)
        value = sum_clicks(mine, consensus, lam, walk, log_factorials, places, rows)
        values[row] = value - log_partition


@njit(cache=True, nogil=True)
def own_log_likelihoods(clicks, rows, labels, laws, walks, values):
    """Fill `values[place]`: log probability of the clicks of `rows[place]` under the law
    `labels[place]`; see `MixedLaws`. `walks` comes from `grid_weights`."""
    ranks, lams, log_partitions = laws
    n_items = ranks.shape[1]
    log_factorials = logs_of_factorials(n_items)
    places, sums = np.empty(n_items, dtype=np.int64), np.empty((2, n_items + 4))
    for place in range(len(rows)):
        mine, g = clicks_of(clicks, rows[place]), labels[place]
        walk = walk_of(walks, g)
        value = sum_clicks(mine, ranks[g], lams[g], walk, log_factorials, places, sums)
        values[place] = value - log_partitions[g]


@njit(cache=True, nogil=True)
def draw_click_users(streams, clicks, consensus, lam, partners, counts, kept):
    """Draw the latent ranking of every user exactly and add it to `counts[0]`.

    `counts[1]` counts, in the same way, the users whose clicks do not tell the item from its
    partner. `kept[row]` is the ranking of the last user of a row, if `kept` has rows at all.
    """
    n_items, weights = len(consensus), streams.weights
    walk = walk_weights(lam, n_items)
    tables = np.empty((2, n_items + 1, n_items // 2 + 3))
    tops = np.empty((2, n_items + 1), dtype=np.int64)
    lines = np.empty((2, n_items), dtype=np.int64)
    ordering, drawn = np.empty((2, n_items), dtype=np.int64)
    waiting = np.empty((2, n_items), dtype=np.int64)
    everyone, shared = counts[0], counts[1]
    clicked = np.zeros(n_items, dtype=np.bool_)
    stream = np.empty(1, dtype=np.uint64)
    for item in range(n_items):
        ordering[consensus[item] - 1] = item
    for row in range(len(weights)):
        mine = clicks_of(clicks, row)
        clicked[mine] = True
        mark_clicks(mine, consensus, lines[0], lines[1])
        for group in range(2):
            sum_matchings(lines[group], lam, walk, Sums(tables[group], tops[group]))
        for user in range(weights[row]):
            start_user(streams, row, user, stream)
            for group in range(2):
                sums = Sums(tables[group], tops[group])
                draw_matching(stream, lines[group], walk.roots, sums, waiting, drawn)
            for place in range(n_items):
                item, rank = ordering[place], drawn[place]
                everyone[item, rank - 1] += 1
                partner = partners[item]
                if partner >= 0 and clicked[item] == clicked[partner]:
                    shared[item, rank - 1] += 1
                if len(kept):
                    kept[row, item] = rank
        clicked[mine] = False


@njit(cache=True, nogil=True)
def swap_users(streams, clicks, consensus, lam, n_swaps, latent, counts):
    """Metropolis steps on the latent rankings, as in the paper, and their `counts`.

    Each step exchanges the ranks of two items, both clicked or both not, of one user.
    """
    n_items = len(consensus)
    stream, clicked = np.empty(1, dtype=np.uint64), np.zeros(n_items, dtype=np.bool_)
    for row in range(len(latent)):
        start_user(streams, row, 0, stream)
        mine, ranks = clicks_of(clicks, row), latent[row]
        clicked[mine] = True
        for _ in range(n_swaps):
            one, other = below(stream, n_items), below(stream, n_items)
            if one != other and clicked[one] == clicked[other]:
                change = abs(ranks[one] - consensus[other]) + abs(ranks[other] - consensus[one])
                change -= abs(ranks[one] - consensus[one]) + abs(ranks[other] - consensus[other])
                if accepts(stream, -lam * change):
                    ranks[one], ranks[other] = ranks[other], ranks[one]
        clicked[mine] = False
        for item in range(n_items):
            counts[item, ranks[item] - 1] += 1


@njit(cache=True, nogil=True)
def next_rank_probabilities(clicks, consensus, lam, k, shares, factors, probabilities):
    """Add to `probabilities[row, item]` the exact chance of one of the k ranks after the clicks.

    Times `shares[row]`, the weight of this consensus; clicked items are left alone. `factors` comes
    from `step_factors`.
    """
    room = next_rank_room(len(consensus))
    fill_ordering(consensus, room.ordering)
    steps = steps_of(lam, len(consensus), factors)
    for row in range(len(clicks.starts) - 1):
        if shares[row] > 0.0:
            mine, out = clicks_of(clicks, row), probabilities[row]
            add_next_ranks(mine, consensus, k, shares[row], steps, room, out)


class Line(NamedTuple):
    """A line of items and ranks: `places[p]` says what stands at place p; before it, `tops[p]` is
    the largest state, and `gaps[p]` the number of open items minus that of open ranks."""

    places: NDArray[np.int64]
    tops: NDArray[np.int64]
    gaps: NDArray[np.int64]


class Steps(NamedTuple):
    """The factors of the steps of one lam: `decay[k]` of a state; `factors[gap, :, k]` come from
    `step_factors`, and `spare` is room for those of a gap that is not among them."""

    decay: NDArray[np.float64]
    factors: NDArray[np.float64]
    spare: NDArray[np.float64]


class Backward(NamedTuple):
    """From each state before place p to the end: `sums[p, k + 1]` is the weight of all walks,
    `hits[p, k + 1]` of those on which a given open item takes one of the ranks in the window.

    Both include the decay of their state, and are divided by `totals[p]`. Where no item is open,
    the second is of no meaning, and of no use.
    """

    sums: NDArray[np.float64]
    hits: NDArray[np.float64]
    totals: NDArray[np.float64]


class Forward(NamedTuple):
    """Up to one place: `mass[k + 1]` is the weight of all walks to a state, `marked[k + 1]` the
    same times the number of ranks in the window that are open."""

    mass: NDArray[np.float64]
    marked: NDArray[np.float64]


class NextRankRoom(NamedTuple):
    """Room for `add_next_ranks`: `clicked[p]` marks the line of the clicked items, `line` is that
    of the others, `chances[p]` are those of the item at place p, which is `ordering[p]`."""

    clicked: NDArray[np.int64]
    line: Line
    backward: Backward
    masses: NDArray[np.float64]
    chances: NDArray[np.float64]
    ordering: NDArray[np.int64]


@njit(cache=True, nogil=True)
def next_rank_room(n_items):
    """Make that room."""
    tables = np.zeros((2, n_items + 1, n_items // 2 + 5))
    clicked, places, ordering = np.empty((3, n_items), dtype=np.int64)
    tops, gaps = np.empty((2, n_items + 1), dtype=np.int64)
    masses, totals, chances = np.zeros((5, n_items // 2 + 8)), np.empty(n_items), np.empty(n_items)
    line, backward = Line(places, tops, gaps), Backward(tables[0], tables[1], totals)
    return NextRankRoom(clicked, line, backward, masses, chances, ordering)


@njit(cache=True, nogil=True)
def fill_ordering(consensus, ordering):
    """Fill `ordering[place]`, the items in the order of a consensus."""
    for item in range(len(consensus)):
        ordering[consensus[item] - 1] = item


@njit(cache=True, nogil=True)
def steps_of(lam, n_items, factors):
    """The `Steps` of one lam; `factors` come from `step_factors`."""
    return Steps(gap_decay(lam, n_items // 2 + 3), factors, np.empty(factors.shape[1:]))


@njit(cache=True, nogil=True)
def add_next_ranks(mine, consensus, k, share, steps, room, probabilities):
    """One user and one consensus of `next_rank_probabilities`."""
    clicked, line, backward, masses, chances, ordering = room
    mark_clicks(mine, consensus, clicked, line.places)
    bound_states(line)
    window = (len(mine), len(mine) + k)
    sum_backwards(line, window, steps, backward)
    match_forwards(line, window, steps, backward, masses, chances)
    for place in range(len(consensus)):
        if line.places[place] & ITEM:
            probabilities[ordering[place]] += share * chances[place]


# The unclicked items and the ranks after the clicks stand on a line that begins with items only, so
# there are never more open ranks than open items: a state has k open ranks and k + gap open items.
# State k is stored in column k + 1, with zeros around the states. The inner loops read arrays that
# are shifted beforehand, and factors from a table, so that the compiler can take several states at
# once: this is where all the time goes.

OPEN, STAY, CLOSE, GIVEN, OTHERS, LEFT, TAKEN, APART, ITEMS = range(9)  # rows of the factors


@njit(cache=True, nogil=True)
def fill_factors(gap, factors):
    """Factors of a step, for every state k: both open; stay; both close; a given open item closes;
    another one does; both close and a given open rank is left; a given open rank is taken; stay,
    but not item and rank together; the number of open items."""
    for k in range(factors.shape[1]):
        a = k + gap
        factors[OPEN, k] = np.sqrt((k + 1.0) * (a + 1.0))
        factors[STAY, k] = 1.0 + k + a
        factors[CLOSE, k] = np.sqrt(float(k) * a)
        factors[GIVEN, k] = np.sqrt(k / float(a)) if a > 0 else 0.0
        factors[OTHERS, k] = factors[GIVEN, k] * (a - 1.0)
        factors[LEFT, k] = factors[OPEN, k] * k / (k + 1.0)
        factors[TAKEN, k] = np.sqrt(a / float(k)) if k > 0 else 0.0
        factors[APART, k] = k + a
        factors[ITEMS, k] = a


@njit(cache=True, nogil=True)
def step_factors(n_items, n_gaps):
    """`factors[gap, :, k]` for the first gaps; they depend on nothing but the number of items."""
    factors = np.empty((min(n_gaps, n_items) + 1, 9, n_items // 2 + 3))
    for gap in range(len(factors)):
        fill_factors(gap, factors[gap])
    return factors


@njit(cache=True, nogil=True)
def factors_of(gap, steps):
    """The factors of a gap: from the table, or made anew."""
    if gap < len(steps.factors):
        return steps.factors[gap]
    fill_factors(gap, steps.spare)
    return steps.spare


@njit(cache=True, nogil=True)
def bound_states(line):
    """Fill the largest states and the gaps of a line."""
    places, tops, gaps = line
    n_pairs, items, ranks = 0, 0, 0
    for p in range(len(places)):
        n_pairs += places[p] & ITEM
    tops[0] = gaps[0] = 0
    for p in range(len(places)):
        items += places[p] & ITEM
        ranks += places[p] >> 1
        tops[p + 1] = min(min(items, n_pairs - items), min(ranks, n_pairs - ranks))
        gaps[p + 1] = items - ranks


@njit(cache=True, nogil=True)
def sum_backwards(line, window, steps, backward):
    """Fill `backward`, from the end of the line to its beginning."""
    places, tops, gaps = line
    sums, hits, totals = backward
    decay, n_places = steps.decay, len(places)
    sums[n_places, :4] = 0.0
    hits[n_places, :4] = 0.0
    sums[n_places, 1] = 1.0
    for p in range(n_places - 1, -1, -1):
        place, gap, top = places[p], gaps[p], tops[p]
        hit = 1.0 if window[0] <= p < window[1] else 0.0
        after, after_hits, now, now_hits = sums[p + 1], hits[p + 1], sums[p], hits[p]
        if place == BOTH:
            table = factors_of(gap, steps)
            weigh(after, table[OPEN], table[STAY], table[CLOSE], decay, top, now)
            weigh(after_hits, table[OPEN], table[APART], table[OTHERS], decay, top, now_hits)
            for k in range(top + 1 if hit else 0):
                now_hits[k + 1] += decay[k] * (after[k + 1] + table[GIVEN, k] * after[k])
        elif place == RANK:
            for k in range(top + 1):
                opens, gives = np.sqrt(k + 1.0), np.sqrt(float(k + gap))
                now[k + 1] = decay[k] * (opens * after[k + 2] + gives * after[k + 1])
                given = (hit * after[k + 1] + (k + gap - 1.0) * after_hits[k + 1]) / (k + gap)
                now_hits[k + 1] = decay[k] * (opens * after_hits[k + 2] + gives * given)
        else:  # before the first rank: an item opens, or nothing stands here
            factor = np.sqrt(gap + 1.0) if place == ITEM else 1.0
            now[1], now_hits[1] = factor * after[1], factor * after_hits[1]
        totals[p] = scale_states(top, p, now, now_hits)


@njit(cache=True, nogil=True)
def weigh(old, up, stay, down, decay, top, new):
    """For each state k: what comes from the states k + 1, k and k - 1, times the decay."""
    size = top + 1
    low, same, high, out = old[:size], old[1 : size + 1], old[2 : size + 2], new[1 : size + 1]
    for k in range(size):
        out[k] = decay[k] * (up[k] * high[k] + stay[k] * same[k] + down[k] * low[k])


@njit(cache=True, nogil=True)
def scale_states(top, p, one, other):
    """Put zeros around the states; at times scale them, and clear what is negligible."""
    total = 1.0
    if p % RESCALE == 0:
        total = one[1 : top + 2].sum()
        for k in range(1, top + 2):
            keep = 1.0 / total if one[k] > TINY else 0.0
            one[k] *= keep
            other[k] *= keep
    one[0] = other[0] = 0.0
    one[top + 2] = one[top + 3] = other[top + 2] = other[top + 3] = 0.0
    return total


@njit(cache=True, nogil=True)
def match_forwards(line, window, steps, backward, masses, chances):
    """Fill `chances[p]`: the item at place p takes one of the ranks in the window.

    It may take such a rank that is open, stand together with one, or open and take one later.
    `masses` is room for two of `Forward`, and for one row more.
    """
    places, tops, gaps = line
    sums, hits, totals = backward
    decay = steps.decay
    masses[:] = 0.0
    mass, marked, new_mass, new_marked, terms = masses
    mass[1] = 1.0
    weight = totals[0]  # of all walks, in the units of `mass` before and of `sums` after the place
    for p in range(len(places)):
        place, gap, top, new_top = places[p], gaps[p], tops[p], tops[p + 1]
        hit = 1.0 if window[0] <= p < window[1] else 0.0
        if place == BOTH:
            table = factors_of(gap, steps)
            here = Forward(mass, marked)
            weigh_item(sums[p + 1], hits[p + 1], hit, table, top, here, terms)
            chances[p] = sum_terms(terms, top + 1) / weight
            weigh(mass, table[OPEN], table[STAY], table[CLOSE], decay, new_top, new_mass)
            weigh(marked, table[LEFT], table[APART], table[CLOSE], decay, new_top, new_marked)
            for k in range(new_top + 1 if hit else 0):
                new_marked[k + 1] += decay[k] * (table[CLOSE, k] * mass[k] + k * mass[k + 1])
        elif place == RANK:
            for k in range(new_top + 1):  # a rank opens, or is given to an open item
                opens, gives = np.sqrt(float(k)), np.sqrt(float(k + gap))
                new_mass[k + 1] = decay[k] * (opens * mass[k] + gives * mass[k + 1])
                opened = marked[k] + hit * mass[k]
                new_marked[k + 1] = decay[k] * (opens * opened + gives * marked[k + 1])
        else:
            if place == ITEM:
                chances[p] = hits[p + 1, 1] / sums[p + 1, 1]
            factor = np.sqrt(gap + 1.0) if place == ITEM else 1.0
            new_mass[1], new_marked[1] = factor * mass[1], factor * marked[1]
        total = scale_states(new_top, p, new_mass, new_marked)
        if p + 1 < len(places):
            weight *= totals[p + 1] / total
        mass, new_mass = new_mass, mass
        marked, new_marked = new_marked, marked


@njit(cache=True, nogil=True)
def weigh_item(after, after_hits, hit, table, top, forward, terms):
    """Fill `terms[k]`: the weight of the walks through state k on which the item of a place with an
    item and a rank takes a rank in the window."""
    size = top + 1
    low, same = after[:size], after[1 : size + 1]
    same_hits, high_hits = after_hits[1 : size + 1], after_hits[2 : size + 2]
    mass, marked = forward
    here, marks, out = mass[1 : size + 1], marked[1 : size + 1], terms[:size]
    opens, items, taken = table[OPEN], table[ITEMS], table[TAKEN]
    for k in range(size):
        out[k] = here[k] * (opens[k] * high_hits[k] + items[k] * same_hits[k])
    for k in range(size):
        out[k] += here[k] * hit * same[k] + marks[k] * (taken[k] * low[k] + same[k])
    terms[size : size + 4] = 0.0


@njit(cache=True, nogil=True)
def sum_terms(terms, size):
    """Sum, in four strands that do not wait for each other; zeros follow the terms."""
    one, two, three, four = 0.0, 0.0, 0.0, 0.0
    for k in range(0, size, 4):
        one += terms[k]
        two += terms[k + 1]
        three += terms[k + 2]
        four += terms[k + 3]
    return (one + two) + (three + four)
