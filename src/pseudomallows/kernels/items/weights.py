"""Item-to-item regressions with weights of 0 or more, and the ranks of items that were hidden."""

import numpy as np

from ..compiled import compiled
from ..select import smallest

MAX_SWEEPS = 1000  # of a descent, so that it ends: usually its tolerance ends it
LANES = 32  # numbers that a loop takes at a time: four registers of eight


@compiled
def padded(size):
    """The length of a row of so many numbers with zeros behind, so that loops take `LANES` at a
    time."""
    return (size + LANES - 1) // LANES * LANES


@compiled
def step_of(gain, old, ridge, share):
    """How far one weight moves: to where it is best, or to 0."""
    return max((gain - ridge * old) * share, -old)


@compiled
def descend(inner, law, n_sweeps, left, weights):
    """Coordinate descent: least half w'(inner + ridge) w - linear'w with w >= 0, in at most so many
    sweeps; whether the last one changed no weight by more than the tolerance.

    `left` is linear - inner w, and stays so. `left` and the rows of `inner` are `padded`. The steps
    of four weights are computed one after the other, and taken from all of `left` together.
    """
    size, dtype = len(weights), inner.dtype
    ridge, tolerance, n_fours = dtype.type(law[0]), law[1], size // 4 * 4
    shares = np.empty(size, dtype=dtype)  # of a step for each unit of gain
    for a in range(size):
        shares[a] = dtype.type(1.0) / (inner[a, a] + ridge)
    for _ in range(n_sweeps):
        change = dtype.type(0.0)
        for a in range(0, n_fours, 4):
            one, two, three, four = inner[a], inner[a + 1], inner[a + 2], inner[a + 3]
            r = step_of(left[a], weights[a], ridge, shares[a])
            gain = left[a + 1] - one[a + 1] * r
            s = step_of(gain, weights[a + 1], ridge, shares[a + 1])
            gain = left[a + 2] - one[a + 2] * r - two[a + 2] * s
            t = step_of(gain, weights[a + 2], ridge, shares[a + 2])
            gain = left[a + 3] - one[a + 3] * r - two[a + 3] * s - three[a + 3] * t
            u = step_of(gain, weights[a + 3], ridge, shares[a + 3])
            most = max(max(abs(r), abs(s)), max(abs(t), abs(u)))
            if most > 0.0:
                change = max(change, most)
                weights[a] += r
                weights[a + 1] += s
                weights[a + 2] += t
                weights[a + 3] += u
                for b in range(len(left)):
                    left[b] = left[b] - one[b] * r - two[b] * s - three[b] * t - four[b] * u
        for a in range(n_fours, size):
            row, step = inner[a], step_of(left[a], weights[a], ridge, shares[a])
            if step != 0.0:
                change = max(change, abs(step))
                weights[a] += step
                for b in range(len(left)):
                    left[b] -= row[b] * step
        if change <= tolerance:
            return True
    return False


@compiled
def take_rows(products, chosen, weights, left):
    """Take from `left` the rows of the `chosen` items, each times its weight, four at a time."""
    n_fours = len(chosen) // 4 * 4
    for first in range(0, n_fours, 4):
        a, b = products[chosen[first]], products[chosen[first + 1]]
        c, d = products[chosen[first + 2]], products[chosen[first + 3]]
        of_a, of_b = weights[first], weights[first + 1]
        of_c, of_d = weights[first + 2], weights[first + 3]
        for other in range(len(left)):
            now = left[other] - a[other] * of_a - b[other] * of_b
            left[other] = now - c[other] * of_c - d[other] * of_d
    for place in range(n_fours, len(chosen)):
        own, weight = products[chosen[place]], weights[place]
        for other in range(len(left)):
            left[other] -= own[other] * weight


@compiled
def fill_pairs(products, chosen, n_known, inner):
    """Fill `inner[a, b]`, the products of the `chosen` items, with zeros behind (`padded`); those
    of the first `n_known` are there."""
    for a in range(len(chosen)):
        row, mine = products[chosen[a]], inner[a]
        for b in range(n_known if a < n_known else 0, len(chosen)):
            mine[b] = row[chosen[b]]
        mine[len(chosen) : padded(len(chosen))] = 0.0


@compiled
def drop_zeros(bars, bar, chosen, weights):
    """Drop the chosen items that have no weight; how many are left. Their `bars` are put back."""
    n_kept = 0
    for place in range(len(chosen)):
        item = chosen[place]
        if weights[place] > 0.0:
            chosen[n_kept], weights[n_kept] = item, weights[place]
            n_kept += 1
        else:
            bars[item] = bar[item]
    return n_kept


@compiled
def admit(left, shares, room, bars, chosen, size):
    """Let the items in that gain most by a weight, at most about `room` at a time: append them to
    the first `size` of the `chosen`. How many there are then, and how many would gain.

    An item gains if what is `left` of it is above its bar, and then by its share of the square. The
    bars of those that are in are out of reach.
    """
    gains, least, n_eligible = np.empty(len(left), dtype=left.dtype), left.dtype.type(0.0), 0
    for item in range(len(left)):
        gains[item] = left[item] * left[item] * shares[item] if left[item] > bars[item] else least
    for item in range(len(left)):
        n_eligible += gains[item] > least
    if n_eligible == 0:
        return size, 0
    if n_eligible > room:
        least = smallest(gains.copy(), len(gains) - room - 1)
    for item in range(len(left)):
        if gains[item] > least:
            bars[item] = np.inf
            chosen[size] = item
            size += 1
    return size, n_eligible


@compiled
def nonnegative_rows(products, ridge, lasso, tolerance, first, solved):
    """Regress items on all others, with weights of 0 or more, from their products alone.

    Row t of `solved` is where the weights of item `first + t` start, and what they become: least
    half w'(products + ridge) w - w'products[item] + lasso sum(w), with w[item] = 0. Only items with
    a weight, or that would get one, are visited: the others are looked at after each descent, and
    those that gain most are let in.
    """
    n_items, dtype, law = len(products), products.dtype, (ridge, tolerance)
    bar, bars = np.empty(n_items, dtype=dtype), np.empty(n_items, dtype=dtype)
    shares, chosen = np.empty(n_items, dtype=dtype), np.empty(n_items, dtype=np.int64)
    for item in range(n_items):
        norm = products[item, item] + dtype.type(ridge)
        bar[item], shares[item] = dtype.type(tolerance) * norm, dtype.type(1.0) / norm
    mine, left = np.empty(n_items, dtype=dtype), np.empty(n_items, dtype=dtype)
    inner = np.empty((n_items, padded(n_items) + 16), dtype=dtype)  # no power of 2, for the cache
    near = np.empty(padded(n_items), dtype=dtype)
    for row in range(len(solved)):
        target, weights, is_done, size = first + row, solved[row], False, 0
        n_known = np.int64(0)  # a type, not a literal: compiled once
        weights[target] = 0.0
        for item in range(n_items):
            bars[item] = bar[item]
            if weights[item] != 0.0:
                chosen[size], mine[size], bars[item] = item, weights[item], np.inf
                size += 1
        bars[target] = np.inf
        while True:
            for item in range(n_items):
                left[item] = products[target, item] - dtype.type(lasso)
            take_rows(products, chosen[:size], mine, left)
            n_old, room = size, max(64, size // 2)
            size, n_eligible = admit(left, shares, room, bars, chosen, n_old)
            if is_done and size == n_old:
                break
            mine[n_old:size] = 0.0
            fill_pairs(products, chosen[:size], n_known, inner)
            near[: padded(size)] = 0.0
            for place in range(size):
                near[place] = left[chosen[place]]
            n_sweeps = 4 if n_eligible > room else MAX_SWEEPS  # few while others wait to be let in
            is_done = descend(inner, law, n_sweeps, near[: padded(size)], mine[:size])
            n_known, n_zeros = size, 0
            for place in range(size):
                n_zeros += mine[place] == 0.0
            if n_zeros > size // 4:
                size, n_known = drop_zeros(bars, bar, chosen[:size], mine), np.int64(0)
        weights[:] = 0.0
        for place in range(size):
            weights[chosen[place]] = mine[place]


@compiled
def value_of_steps(starts, ahead, more, steps, k, values):
    """Fill `values[s, case]`: what the rank of a hidden item is worth in the scores ahead + step
    times more, for each of the `steps`.

    `ahead[starts[case]:starts[case + 1]]` is how far items are ahead of the hidden one; `more` the
    same of one part. The value is near 1 for a rank among the first `k`, and near 0 far beyond; of
    items level with the hidden one, itself among them, half are before it.
    """
    for case in range(len(starts) - 1):
        mine, own = ahead[starts[case] : starts[case + 1]], more[starts[case] : starts[case + 1]]
        for s in range(len(steps)):
            n_above, n_level, step = 0, 0, steps[s]
            for place in range(len(mine)):
                lead = mine[place] + step * own[place]
                n_above += lead > 0
                n_level += lead == 0
            rank = n_above + 0.5 * (n_level - 1)  # the hidden item is level with itself
            values[s, case] = 1.0 / (1.0 + np.exp((rank + 0.5 - k) / 3.0))
