"""Exact laws of users who are known by their clicks: the clicked items have the first ranks.

The clicks of row `row` are `codes[starts[row]:starts[row + 1]]`. Each user is two matchings on the
line of `matching`: the clicked items with the first ranks, the others with the rest.
"""

import numpy as np
from numba import njit

from .chain import accepts
from .matching import (
    BOTH,
    ITEM,
    RANK,
    TINY,
    draw_matching,
    gap_decay,
    square_roots,
    sum_matchings,
    walk_weights,
)
from .streams import below, start_stream


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
def click_log_likelihoods(starts, codes, consensus, lam, log_partition, values):
    """Fill `values[row]`: log probability that the user's first ranks are the clicked items."""
    n_items = len(consensus)
    line = walk_weights(lam, n_items)
    table = np.empty((2, n_items // 2 + 3))
    tops = np.empty(n_items + 1, dtype=np.int64)
    places, others = np.empty((2, n_items), dtype=np.int64)
    for row in range(len(values)):
        mark_clicks(codes[starts[row] : starts[row + 1]], consensus, places, others)
        values[row] = sum_matchings(places, lam, line, table, tops) - log_partition
        values[row] += sum_matchings(others, lam, line, table, tops)


@njit(cache=True, nogil=True)
def draw_click_users(
    seed,
    draw,
    first_users,
    starts,
    codes,
    weights,
    consensus,
    lam,
    partners,
    counts,
    shared,
    kept,
):
    """Draw the latent ranking of every user exactly and add it to `counts`.

    `shared` counts, in the same way, the users whose clicks do not tell the item from its partner.
    `kept[row]` is the ranking of the last user of a row, if `kept` has rows at all.
    """
    n_items = len(consensus)
    line = walk_weights(lam, n_items)
    tables = np.empty((2, n_items + 1, n_items // 2 + 3))
    tops = np.empty((2, n_items + 1), dtype=np.int64)
    lines = np.empty((2, n_items), dtype=np.int64)
    ordering, drawn, waiting_items, waiting_ranks = np.empty((4, n_items), dtype=np.int64)
    clicked = np.zeros(n_items, dtype=np.bool_)
    stream = np.empty(1, dtype=np.uint64)
    for item in range(n_items):
        ordering[consensus[item] - 1] = item
    for row in range(len(weights)):
        mine = codes[starts[row] : starts[row + 1]]
        clicked[mine] = True
        mark_clicks(mine, consensus, lines[0], lines[1])
        for group in range(2):
            sum_matchings(lines[group], lam, line, tables[group], tops[group])
        for user in range(weights[row]):
            start_stream(seed, draw, first_users[row] + user, stream)
            for group in range(2):
                draw_matching(
                    stream,
                    lines[group],
                    line[1],
                    tables[group],
                    tops[group],
                    waiting_items,
                    waiting_ranks,
                    drawn,
                )
            for place in range(n_items):
                item, rank = ordering[place], drawn[place]
                counts[item, rank - 1] += 1
                partner = partners[item]
                if partner >= 0 and clicked[item] == clicked[partner]:
                    shared[item, rank - 1] += 1
                if len(kept):
                    kept[row, item] = rank
        clicked[mine] = False


@njit(cache=True, nogil=True)
def swap_users(seed, draw, first_users, starts, codes, consensus, lam, n_swaps, latent, counts):
    """Metropolis steps on the latent rankings, as in the paper, and their `counts`.

    Each step exchanges the ranks of two items, both clicked or both not, of one user.
    """
    n_items = len(consensus)
    stream, clicked = np.empty(1, dtype=np.uint64), np.zeros(n_items, dtype=np.bool_)
    for row in range(len(latent)):
        start_stream(seed, draw, first_users[row], stream)
        mine, ranks = codes[starts[row] : starts[row + 1]], latent[row]
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
def next_rank_probabilities(starts, codes, consensus, lam, k, shares, probabilities):
    """Add to `probabilities[row, item]` the exact chance of one of the k ranks after the clicks.

    Times `shares[row]`, the weight of this consensus; clicked items are left alone.
    """
    n_items = len(consensus)
    decay, roots = gap_decay(lam, n_items // 2 + 3), square_roots(n_items + 2)
    sums, hits = np.zeros((2, n_items + 2, n_items // 2 + 4))
    masses = np.zeros((4, n_items // 2 + 4))
    places, others, ordering = np.empty((3, n_items), dtype=np.int64)
    tops, gaps = np.empty((2, n_items + 1), dtype=np.int64)
    chances = np.empty(n_items)
    for item in range(n_items):
        ordering[consensus[item] - 1] = item
    for row in range(len(starts) - 1):
        if shares[row] == 0.0:
            continue
        mine = codes[starts[row] : starts[row + 1]]
        mark_clicks(mine, consensus, places, others)
        bound_states(others, tops, gaps)
        first, last = len(mine), len(mine) + k
        sum_backwards(others, tops, gaps, first, last, decay, roots, sums, hits)
        match_forwards(others, tops, gaps, first, last, decay, roots, sums, hits, masses, chances)
        for place in range(n_items):
            if others[place] & ITEM:
                probabilities[row, ordering[place]] += shares[row] * chances[place]


@njit(cache=True, nogil=True)
def bound_states(places, tops, gaps):
    """Fill, before each place, the largest state and open items minus open ranks."""
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
def sum_backwards(places, tops, gaps, first, last, decay, roots, sums, hits):
    """From each state before place p to the end: the weight of all walks, and of those on which a
    given open item takes one of the ranks at places first..last - 1.

    `sums[p, k]` and `hits[p, k]` are already multiplied by `decay[k]`, and 0 beyond `tops[p]`.
    """
    n_places = len(places)
    sums[n_places, :3] = 0.0
    hits[n_places, :3] = 0.0
    sums[n_places, 0] = 1.0
    for p in range(n_places - 1, -1, -1):
        place, gap, hit = places[p], gaps[p], 1.0 if first <= p < last else 0.0
        after, after_hits, total = sums[p + 1], hits[p + 1], 0.0
        for k in range(tops[p] + 1):
            a, b = k + max(gap, 0), k + max(-gap, 0)  # open items, open ranks
            weight, weight_hits = 0.0, 0.0
            if place == 0:
                weight, weight_hits = after[k], after_hits[k]
            elif place == BOTH:
                open_both = roots[a + 1] * roots[b + 1]
                weight = open_both * after[k + 1] + (1 + a + b) * after[k]
                weight_hits = open_both * after_hits[k + 1] + (1 + b) * after_hits[k]
                weight_hits += hit * after[k] + (a - 1) * after_hits[k] if a > 0 else 0.0
                if k > 0:
                    close = roots[a] * roots[b]
                    weight += close * after[k - 1]
                    weight_hits += close * (hit * after[k - 1] + (a - 1) * after_hits[k - 1]) / a
            elif place == ITEM:  # before the first rank of the line, so none is open
                opened = min(a + 1, b)
                weight = roots[a + 1] * after[opened]
                weight_hits = roots[a + 1] * after_hits[opened]
            else:
                opened = min(a, b + 1)
                weight = roots[b + 1] * after[opened]
                weight_hits = roots[b + 1] * after_hits[opened]
                if a > 0:
                    given = min(a - 1, b)
                    weight += roots[a] * after[given]
                    weight_hits += roots[a] * (hit * after[given] + (a - 1) * after_hits[given]) / a
            alive = weight * decay[k] > TINY
            sums[p, k] = weight * decay[k] if alive else 0.0
            hits[p, k] = weight_hits * decay[k] if alive else 0.0
            total += sums[p, k]
        for k in range(tops[p] + 1):
            sums[p, k] /= total
            hits[p, k] /= total
        sums[p, tops[p] + 1] = sums[p, tops[p] + 2] = 0.0
        hits[p, tops[p] + 1] = hits[p, tops[p] + 2] = 0.0


@njit(cache=True, nogil=True)
def match_forwards(places, tops, gaps, first, last, decay, roots, sums, hits, masses, chances):
    """Fill `chances[p]`: the item at place p takes one of the ranks at places first..last - 1.

    It may take such a rank that is open, stand together with one, or open and take one later.
    `mass[k]` is the weight of all walks to a state, `marked[k]` the same times the number of such
    ranks that are open.
    """
    mass, marked, new_mass, new_marked = masses[0], masses[1], masses[2], masses[3]
    mass[:] = 0.0
    marked[:] = 0.0
    mass[0] = 1.0
    for p in range(len(places)):
        place, gap, hit = places[p], gaps[p], 1.0 if first <= p < last else 0.0
        after, after_hits = sums[p + 1], hits[p + 1]
        new_mass[: tops[p + 1] + 3] = 0.0
        new_marked[: tops[p + 1] + 3] = 0.0
        good, all_of_them = 0.0, 0.0
        for k in range(tops[p] + 1):
            f, m = mass[k], marked[k]
            a, b = k + max(gap, 0), k + max(-gap, 0)
            if place == 0:
                new_mass[k] += f
                new_marked[k] += m
            elif place == BOTH:
                if k + 1 <= tops[p + 1]:
                    weight = roots[a + 1] * roots[b + 1]
                    good += weight * f * after_hits[k + 1]
                    all_of_them += weight * f * after[k + 1]
                    new_mass[k + 1] += weight * f
                    new_marked[k + 1] += weight * (m + hit * f)
                if k <= tops[p + 1]:
                    good += (hit * f + m) * after[k] + a * f * after_hits[k]
                    all_of_them += (1 + a + b) * f * after[k]
                    new_mass[k] += (1 + a + b) * f
                    new_marked[k] += (
                        (1 + a) * m + (b - 1) * m + b * hit * f if b > 0 else (1 + a) * m
                    )
                if k > 0:
                    weight = roots[a] * roots[b]
                    good += weight * m / b * after[k - 1]
                    all_of_them += weight * f * after[k - 1]
                    new_mass[k - 1] += weight * f
                    new_marked[k - 1] += weight * m * (b - 1) / b
            elif place == ITEM:  # before the first rank of the line, so none is open
                opened = min(a + 1, b)
                good += roots[a + 1] * f * after_hits[opened]
                all_of_them += roots[a + 1] * f * after[opened]
                new_mass[opened] += roots[a + 1] * f
                new_marked[opened] += roots[a + 1] * m
            else:
                opened = min(a, b + 1)
                if opened <= tops[p + 1]:
                    new_mass[opened] += roots[b + 1] * f
                    new_marked[opened] += roots[b + 1] * (m + hit * f)
                if a > 0:
                    given = min(a - 1, b)
                    new_mass[given] += roots[a] * f
                    new_marked[given] += roots[a] * m
        if place & ITEM:
            chances[p] = good / all_of_them
        total = 0.0
        for k in range(tops[p + 1] + 1):
            total += new_mass[k] * decay[k]
        for k in range(tops[p + 1] + 1):
            scale = decay[k] / total
            alive = new_mass[k] * scale > TINY
            new_mass[k] = new_mass[k] * scale if alive else 0.0
            new_marked[k] = new_marked[k] * scale if alive else 0.0
        mass, new_mass = new_mass, mass
        marked, new_marked = new_marked, marked
