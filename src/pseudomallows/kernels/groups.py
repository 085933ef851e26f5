"""The paper's law of a user's ranking (Algorithm 4): the clicked group, then the unclicked one.

Inside a group of m items only their relative places in the consensus matter: the item at place s
takes rank r, among the ranks still free, with probability proportional to exp(-lam |s - r|), lam
being alpha / n_items. Places and ranks of a group are numbered from 0.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .click_rows import ClickRows, clicks_of
from .streams import STEP, below, mix, start_stream, start_user, uniform

UNIFORM, V, TOP_BOTTOM = 0, 1, 2  # orders in which the places are visited
SCAN, TRIES = 24, 16  # scan the free ranks when so few are left, or after so many tries
N_LEAPS = 128  # drawn at once
TINY = 1e-200
FEW = 1e-4  # a weight of all free ranks below which it is summed anew
FULL, LOW_32, SHIFT_32 = np.uint64(2**32), np.uint64(2**32 - 1), np.uint64(32)


class Group(NamedTuple):
    """So many items, and their law: lam, and the order in which the places are visited."""

    size: int
    lam: float
    order: int


class Leaps(NamedTuple):
    """Powers exp(-lam d), and an alias table (Walker 1977) of leaps from -n to n of these weights.

    Cell i of the table is the leap `cells[i, 0]` if a random number of 32 bits is below
    `thresholds[i]`, else `cells[i, 1]`.
    """

    powers: NDArray[np.float64]
    thresholds: NDArray[np.uint64]
    cells: NDArray[np.int32]


class Sources(NamedTuple):
    """Draws to be looked up; a source is those of one consensus, with one alpha.

    Those of `source` are `orderings[firsts[source]:firsts[source + 1]]`, and so their weights;
    `alphas[source]` is the number of its alpha; `ranks[item, draw]` are those of all draws.
    """

    orderings: NDArray[np.int32]
    weights: NDArray[np.float64]
    firsts: NDArray[np.int64]
    alphas: NDArray[np.int64]
    ranks: NDArray[np.int32]


class PlaceChances(NamedTuple):
    """What is looked up: chances to be among the next ranks.

    With `line = lines[alpha, size]`, `chances[line, place]` is the chance of the item at `place`
    among `size` unclicked items, 0 from place `ends[line]` on. With
    `line = ceiling_lines[source, size]`, `ceilings[line, item]` is a bound of the item's chance
    under the source. A line of -1 is not made.
    """

    lines: NDArray[np.int32]
    ends: NDArray[np.int64]
    chances: NDArray[np.float64]
    ceiling_lines: NDArray[np.int32]
    ceilings: NDArray[np.float64]


@njit(cache=True, nogil=True)
def leap_tables(n_items, lam):
    """The `Leaps` of groups of at most so many items."""
    powers = np.exp(-lam * np.arange(n_items + 1).astype(np.float64))
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def make_scratch(n_items):
    """Room for `draw_group`."""
    return np.full((4, 3 * n_items), -1, dtype=np.int32)


@njit(cache=True, nogil=True)
def draw_group(stream, size, order, leaps, scratch, ranks):
    """Fill `ranks[place]` for the places of a group; `leaps` come from `leap_tables`.

    While most ranks are free, leap by a two-sided geometric and refuse what is taken or beyond the
    ends; at the end, or out of luck, scan the free ranks. `slots[n_items + rank]` is the slot of a
    free rank in `free`, else -1, as it is beyond the ends, where a leap may lead too.
    """
    powers, thresholds, cells = leaps
    visit, free, slots, drawn = scratch[0], scratch[1], scratch[2], scratch[3, :N_LEAPS]
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


@njit(cache=True, nogil=True)
def scan_free(stream, place, n_free, free, powers):
    """Draw among the free ranks by their weights; where these could vanish, by those relative to
    the nearest rank."""
    nearest = 0
    if powers[-1] < TINY:
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
def count_group(seed, group, n_draws, counts):
    """Add `n_draws` draws of a group to `counts[place, rank]`."""
    size, lam, order = group
    leaps = leap_tables(size, lam)
    scratch, ranks = make_scratch(size), np.empty(size, dtype=np.int64)
    stream = np.empty(1, dtype=np.uint64)
    for draw in range(n_draws):
        start_stream(seed, draw, size, stream)
        draw_group(stream, size, order, leaps, scratch, ranks)
        for place in range(size):
            counts[place, ranks[place]] += 1


@njit(cache=True, nogil=True)
def sum_first_chances(seed, first, n_draws, group, k, sums, squares):
    """Add to `sums[place]`, over draws of a group, the chance of one of the first k ranks for the
    place when its turn comes, given the ranks that are free then; and to `squares` its square.

    That chance has the mean of the draws themselves, and spreads far less. For uniform orders the
    law is the same read from behind, so a draw counts twice: forwards and backwards, half each.
    `totals[place]` is the weight of all free ranks for a place, kept up to date.
    """
    size, lam, order = group
    leaps = leap_tables(size, lam)
    mirror = np.empty(2 * size - 1)  # powers of the distance to the middle
    for d in range(size):
        mirror[size - 1 + d] = mirror[size - 1 - d] = leaps.powers[d]
    all_free, totals = np.zeros(size), np.empty(size)
    for rank in range(size):
        all_free += mirror[size - 1 - rank : 2 * size - 1 - rank]
    scratch, ranks = make_scratch(size), np.empty(size, dtype=np.int64)
    chances, free = np.empty(size), np.empty(size, dtype=np.bool_)
    stream = np.empty(1, dtype=np.uint64)
    both = order == UNIFORM
    for draw in range(first, first + n_draws):
        start_stream(seed, draw, size, stream)
        draw_group(stream, size, order, leaps, scratch, ranks)
        totals[:] = all_free
        chances[:] = 0.0
        free[:] = True
        for step in range(size):
            place = scratch[0, step]
            own = mirror[size - 1 - place : 2 * size - 1 - place]
            of_first = weight_of(0, k, own, free)
            of_last = weight_of(size - k, size, own, free)
            total = totals[place]
            if total < FEW:  # rounding, or powers that vanish, would show
                of_first, of_last, total = few_weights(place, k, lam, free)
            chances[place] += of_first / total
            if both:
                chances[size - 1 - place] += of_last / total
            taken = ranks[place]
            free[taken] = False
            away = mirror[size - 1 - taken : 2 * size - 1 - taken]
            for other in range(size):
                totals[other] -= away[other]
        for place in range(size):
            chance = 0.5 * chances[place] if both else chances[place]
            sums[place] += chance
            squares[place] += chance * chance


@njit(cache=True, nogil=True)
def weight_of(first, last, own, free):
    """Weight of the free ranks from `first` up to `last`."""
    total = 0.0
    for rank in range(first, last):
        if free[rank]:
            total += own[rank]
    return total


@njit(cache=True, nogil=True)
def few_weights(place, k, lam, free):
    """Weights, relative to the nearest free rank, of the first k ranks, the last k, and all."""
    size, nearest = len(free), len(free)
    for rank in range(size):
        if free[rank]:
            nearest = min(nearest, abs(rank - place))
    of_first, of_last, total = 0.0, 0.0, 0.0
    for rank in range(size):
        if free[rank]:
            weight = np.exp(-lam * (abs(rank - place) - nearest))
            total += weight
            of_first += weight if rank < k else 0.0
            of_last += weight if rank >= size - k else 0.0
    return of_first, of_last, total


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
def count_positions(clicks, weights, consensus, firsts, counts):
    """Add to `counts[firsts[size] + j, position]` the users with `size` clicks whose click j, in
    the order of the consensus, has that position."""
    positions = np.empty(len(consensus), dtype=np.int64)
    for row in range(len(weights)):
        mine = clicks_of(clicks, row)
        size = len(mine)
        for j in range(size):  # sorted as they come: users have few clicks
            position, place = consensus[mine[j]] - 1, j
            while place > 0 and positions[place - 1] > position:
                positions[place] = positions[place - 1]
                place -= 1
            positions[place] = position
        for j in range(size):
            counts[firsts[size] + j, positions[j]] += weights[row]


@njit(cache=True, nogil=True)
def add_expected(positions, ordering, of_clicked, of_others, clicked_scale, other_scale, counts):
    """Add to `counts[item, rank]` what the tables of two groups say of users of one size, each
    times its scale.

    `positions[j, p]` are the users whose click j is at position p. The item there has place j among
    their clicks; it has place p - j among the others of users with j clicks before it, and none at
    it: those whose click j - 1 lies before, less those whose click j does not lie after.
    """
    size, n_items = positions.shape
    before = np.zeros(size + 1)  # users whose click j - 1 lies before the position; at first all
    before[0] = positions[0].sum()
    for p in range(n_items):
        line = counts[ordering[p]]
        for j in range(size + 1):
            here = float(positions[j, p]) if j < size else 0.0
            if here > 0.0:
                times = here * clicked_scale
                for rank in range(size):
                    line[rank] += times * of_clicked[j, rank]
            users = before[j] - (before[j + 1] + here if j < size else 0.0)
            if users > 0.0:
                times = users * other_scale
                for rank in range(n_items - size):
                    line[size + rank] += times * of_others[p - j, rank]
        for j in range(size):
            before[j + 1] += positions[j, p]


@njit(cache=True, nogil=True)
def draw_users(streams, clicks, ordering, lam, order, counts, kept):
    """Draw the latent ranking of every user by the paper's law and add it to `counts`.

    `kept[row]` is the ranking of the last user of a row, if `kept` has rows at all.
    """
    n_items, weights = len(ordering), streams.weights
    leaps = leap_tables(n_items, lam)
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
                    if len(kept):
                        kept[row, groups[group, place]] = ranks[place] + shift + 1
        clicked[clicks_of(clicks, row)] = False


@njit(cache=True, nogil=True)
def look_up(clicks, sources, tables, shares, probabilities):
    """Add to `probabilities[row, item]` the chance of an unclicked item to be among the next ranks.

    `tables` are `PlaceChances`, and a source counts `shares[row, source]` times. So a user costs a
    look-up for each item that has a chance, and each draw. Clicked items are left alone.
    """
    orderings, weights, firsts = sources.orderings, sources.weights, sources.firsts
    alphas, lines, ends, chances = sources.alphas, tables.lines, tables.ends, tables.chances
    n_items = orderings.shape[1]
    clicked = np.zeros(n_items, dtype=np.bool_)
    for row in range(len(clicks.starts) - 1):
        mine = clicks_of(clicks, row)
        size = n_items - len(mine)
        clicked[mine] = True
        for source in range(len(alphas) if size > 0 else 0):
            if shares[row, source] == 0.0:
                continue
            line = lines[alphas[source], size]
            table, end = chances[line], ends[line]
            for draw in range(firsts[source], firsts[source + 1]):
                share = weights[draw] * shares[row, source]
                add_chances(share, orderings[draw], clicked, table, end, probabilities[row])
        clicked[mine] = False


@njit(cache=True, nogil=True)
def add_chances(share, ordering, clicked, chances, end, probabilities):
    """Add `share * chances[place]` to the unclicked item at each place before `end`."""
    place = 0
    for rank in range(len(ordering)):
        item = ordering[rank]
        if not clicked[item]:
            probabilities[item] += share * chances[place]
            place += 1
            if place == end:
                return


@njit(cache=True, nogil=True)
def add_ceilings(orderings, weights, chances, size, ceilings):
    """Add to `ceilings[item]` the largest chance the item can have in these draws, whichever
    `n_items - size` items are clicked: that of a place at most so many before its own."""
    n_items = orderings.shape[1]
    n_clicks, peaks = n_items - size, np.zeros(n_items)
    for rank in range(n_items):
        for place in range(max(rank - n_clicks, 0), min(rank, size - 1) + 1):
            peaks[rank] = max(peaks[rank], chances[place])
    for draw in range(len(orderings)):
        for rank in range(n_items):
            ceilings[orderings[draw, rank]] += weights[draw] * peaks[rank]


@njit(cache=True, nogil=True)
def chance_of(item, mine, sources, tables, shares, places):
    """The chance of one item, in the same order of sums as `look_up`, so with the same bits;
    `places` is room for one number a draw."""
    ranks, weights, firsts, alphas = sources.ranks, sources.weights, sources.firsts, sources.alphas
    lines, chances = tables.lines, tables.chances
    size, total = ranks.shape[0] - len(mine), 0.0
    for source in range(len(alphas)):
        if shares[source] == 0.0:
            continue
        first, last = firsts[source], firsts[source + 1]
        own, room = ranks[item, first:last], places[: last - first]
        for draw in range(len(own)):
            room[draw] = own[draw] - 1
        for other in mine:
            theirs = ranks[other, first:last]
            for draw in range(len(own)):
                room[draw] -= theirs[draw] < own[draw]
        table = chances[lines[alphas[source], size]]
        for draw in range(len(own)):
            total += weights[first + draw] * shares[source] * table[room[draw]]
    return total


@njit(cache=True, nogil=True)
def look_up_best(mine, sources, tables, shares, consensus, items, probabilities):
    """Fill the best items of one user and their chances, as `look_up` and `choose_best` do, but
    look up only the items that may be among the best by their ceilings; return how many these are.

    Items are taken from the highest bound on.
    """
    ranks, ceiling_lines, ceilings = sources.ranks, tables.ceiling_lines, tables.ceilings
    n_items, k = len(ranks), len(items)
    bounds, places = np.zeros(n_items), np.empty(ranks.shape[1], dtype=np.int32)
    for source in range(len(shares)):
        if shares[source] > 0.0:
            line = ceilings[ceiling_lines[source, n_items - len(mine)]]
            for item in range(n_items):
                bounds[item] += shares[source] * line[item]
    for item in mine:
        bounds[item] = -1.0
    keys, n_found, n_tried = np.empty(k), 0, 0
    while True:
        item, bound = 0, bounds[0]
        for other in range(1, n_items):  # as `np.argmax`, which also looks for NaN
            if bounds[other] > bound:
                item, bound = other, bounds[other]
        enough = n_found == k and bound < (keys[k - 1] - 2.0) * 1e-12
        if bound < 0.0 or enough:
            return n_tried
        bounds[item] = -1.0
        chance = chance_of(item, mine, sources, tables, shares, places)
        n_found = insert_best(item, chance, consensus, n_found, keys, items, probabilities)
        n_tried += 1


@njit(cache=True, nogil=True)
def look_up_best_rows(clicks, sources, tables, shares, consensus, items, found):
    """The same for every row that has an unclicked item left.

    The first three are better given as plain tuples: each `NamedTuple` takes Numba a microsecond
    more to hand over, which counts where a service asks for one user.
    """
    rows, draws, looked_up = ClickRows(*clicks), Sources(*sources), PlaceChances(*tables)
    for row in range(len(items)):
        mine = clicks_of(rows, row)
        if len(mine) < len(draws.ranks):
            look_up_best(mine, draws, looked_up, shares[row], consensus, items[row], found[row])


@njit(cache=True, nogil=True)
def insert_best(item, chance, consensus, n_found, keys, items, probabilities):
    """Put an item among the best found so far, if it belongs there; return how many there are.

    Chances that agree to 12 digits are tied, and the better rank in the consensus wins.
    """
    k, key = len(items), np.rint(chance * 1e12)
    place = n_found
    while place > 0:
        other = items[place - 1]
        behind = keys[place - 1] < key
        tied = keys[place - 1] == key
        if not behind and not (tied and consensus[item] < consensus[other]):
            break
        if place < k:
            keys[place], items[place] = keys[place - 1], other
            probabilities[place] = probabilities[place - 1]
        place -= 1
    if place < k:
        keys[place], items[place], probabilities[place] = key, item, min(chance, 1.0)
        n_found = min(n_found + 1, k)
    return n_found


@njit(cache=True, nogil=True)
def choose_best(clicks, chances, consensus, items, probabilities):
    """Fill the best unseen items of each row, best first, and their chances.

    What is left of `items` and `probabilities` stays as it is.
    """
    n_items, k = chances.shape[1], items.shape[1]
    keys, seen = np.empty(k), np.zeros(n_items, dtype=np.bool_)
    for row in range(len(items)):
        mine = clicks_of(clicks, row)
        seen[mine] = True
        n_found = 0
        for item in range(n_items):
            is_behind = n_found == k and 1e12 * chances[row, item] < keys[k - 1] - 1.0
            if not seen[item] and not is_behind:
                best = (keys, items[row], probabilities[row])
                n_found = insert_best(item, chances[row, item], consensus, n_found, *best)
        seen[mine] = False
