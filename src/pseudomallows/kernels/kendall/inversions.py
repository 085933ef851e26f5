"""Kendall's distance: how many pairs of items are in another order.

rate is alpha / n_items, q is exp(-rate), and [m] is (1 - q^m) / (1 - q) = 1 + q + ... + q^(m - 1).
Items join one by one; the one that joins j - 1 others puts itself before v of them, and v adds to
the distance: 0 to j - 1, with weights q^v, whatever happened before. So the sum over all rankings
is the product of the [j].
"""

import numpy as np

from ..compiled import compiled
from ..streams import start_stream, uniform

LARGE = 1e200  # for a product whose logarithm is wanted: times n_items it is still a number


@compiled
def order_by_rank(ranks, ordering):
    """Fill `ordering[rank - 1]` with the item of that rank."""
    for item in range(len(ranks)):
        ordering[ranks[item] - 1] = item


@compiled
def count_inversions(ranks, ordering, tree):
    """Pairs that `ranks` has in another order than `ordering`, ties left out: a sum over the items,
    in that order, of those before them that have a larger rank, by a tree of sums (Fenwick)."""
    n_items, total = len(ranks), 0
    tree[:] = 0
    for place in range(n_items):
        rank = ranks[ordering[place]]
        total += place
        at = rank
        while at > 0:
            total -= tree[at]
            at -= at & -at
        at = rank
        while at <= n_items:
            tree[at] += 1
            at += at & -at
    return total


@compiled
def kendall_distances(rankings, others, distances):
    """Fill `distances[row]` with that from the row of `others`, or from its only one."""
    n_items = rankings.shape[1]
    ordering, tree = np.empty(n_items, np.int64), np.empty(n_items + 1, np.int64)
    for row in range(len(rankings)):
        if row < len(others):
            order_by_rank(others[row], ordering)
        distances[row] = count_inversions(rankings[row], ordering, tree)


@compiled
def log_quantum(rate, m):
    """log [m]."""
    return np.log(np.expm1(-rate * m) / np.expm1(-rate)) if rate > 0.0 else np.log(m)


@compiled
def bose(x):
    """1 / (e^x - 1) - 1 / x + 1 / 2, which is smooth at 0."""
    if x < 0.5:
        square = x * x
        series = -1.0 / 1209600.0 + square * (1.0 / 47900160.0 - square * 691.0 / 1307674368000.0)
        return x * (
            1.0 / 12.0 + square * (-1.0 / 720.0 + square * (1.0 / 30240.0 + square * series))
        )
    return np.exp(-x) / -np.expm1(-x) - 1.0 / x + 0.5


@compiled
def kendall_partition(n_items, rate):
    """Log of the sum over all rankings, and the mean distance.

    [m] = 1 + q [m - 1]; logarithms are taken of products, which is ten times as fast.
    """
    q, rest, smooth = np.exp(-rate), -np.expm1(-rate), bose(rate)
    log_sum, distance, product, quantum, power = 0.0, 0.0, 1.0, 1.0, q
    for m in range(2, n_items + 1):
        quantum = 1.0 + q * quantum
        power *= q
        product *= quantum
        if product > LARGE:
            log_sum += np.log(product)
            product = 1.0
        if rate * m > 0.5:
            distance += (q - m * power / quantum) / rest
        else:
            distance += 0.5 * (m - 1) + smooth - m * bose(rate * m)
    return log_sum + np.log(product), distance


@compiled
def draw_jump(stream, rate, reach, n_choices):
    """Draw v of 0 to n_choices - 1, with weights q^v; `reach` is q^n_choices - 1."""
    u = uniform(stream)
    if rate > 0.0:
        return min(int(-np.log1p(u * reach) / rate), n_choices - 1)
    return int(u * n_choices)


@compiled
def take_nth(tree, n_items, nth):
    """Take the nth (from 0) of the items still in a tree of sums; return it."""
    step, node = 1, 0
    while 2 * step <= n_items:
        step *= 2
    while step > 0:
        if node + step <= n_items and tree[node + step] <= nth:
            node += step
            nth -= tree[node]
        elif node + step <= n_items:
            tree[node + step] -= 1
        step //= 2
    return node


@compiled
def draw_kendall(seed, rate, draws):
    """Fill `draws[draw, item]` with rankings of the Mallows distribution around 1..n.

    Each rank goes to one of the items left, v of them passed over.
    """
    n_items = draws.shape[1]
    tree, stream = np.empty(n_items + 1, np.int64), np.empty(1, np.uint64)
    reaches = np.expm1(-rate * np.arange(n_items + 1.0))
    for draw in range(len(draws)):
        start_stream(seed, draw, 0, stream)
        for node in range(n_items + 1):
            tree[node] = node & -node
        for rank in range(n_items):
            jump = draw_jump(stream, rate, reaches[n_items - rank], n_items - rank)
            draws[draw, take_nth(tree, n_items, jump)] = rank + 1


@compiled
def pair_probabilities(n_items, rate, probabilities):
    """Fill `probabilities[gap]`: that an item comes before one `gap` places further on."""
    for gap in range(n_items):
        h = gap + 1
        probabilities[gap] = 0.5 + h * bose(rate * h) - gap * bose(rate * gap)


@compiled
def kendall_expected_ranks(n_items, rate, means):
    """Fill `means[item]` with the mean rank of each item, by the probabilities of pairs."""
    probabilities = np.empty(n_items)
    pair_probabilities(n_items, rate, probabilities)
    means[0] = 1.0
    for gap in range(1, n_items):
        means[0] += 1.0 - probabilities[gap]
    for item in range(1, n_items):  # one more before it, one less behind it
        means[item] = means[item - 1] + probabilities[item] - 1.0 + probabilities[n_items - item]


@compiled
def kendall_rank_probabilities(n_items, rate, probabilities):
    """Fill `probabilities[item, rank - 1]`.

    Let `item` items come before one and `above` places before its rank (both from 0). If t of the
    better items are behind it, k = t + above - item of the others are before it. Given t, the
    better items, the others, the places before and those behind are q-binomial choices, so that

        P = sum over t of q^((k + 1) (t + 1) - 1) [item over t] [n - 1 - item over k]
            [above]! [n - 1 - above]! / [n]!

    The terms rise and fall; the sum starts at the largest and ends where they are negligible. The
    table is the same from either end and with items and ranks exchanged: a quarter is computed.
    """
    quanta, powers = np.empty(n_items + 1), np.exp(-rate * np.arange(2.0 * n_items + 4.0))
    log_factorials = np.zeros(n_items + 1)
    quanta[0] = 0.0
    for m in range(1, n_items + 1):
        log_quantum_m = log_quantum(rate, m)
        quanta[m] = np.exp(log_quantum_m)
        log_factorials[m] = log_factorials[m - 1] + log_quantum_m
    last = n_items - 1
    for item in range((n_items + 1) // 2):
        others, t = last - item, 0
        for above in range(item, n_items - item):
            gap = above - item
            t = min(t, item)
            while t < item and term_ratio(quanta, powers, item, others, gap, t) > 1.0:
                t += 1
            while t > 0 and term_ratio(quanta, powers, item, others, gap, t - 1) < 1.0:
                t -= 1
            k, total = t + gap, 1.0
            term = 1.0
            for up in range(t, item):
                term *= term_ratio(quanta, powers, item, others, gap, up)
                total += term
                if term < 1e-18 * total:  # below its last digit
                    break
            term = 1.0
            for down in range(t - 1, -1, -1):
                term /= term_ratio(quanta, powers, item, others, gap, down)
                total += term
                if term < 1e-18 * total:
                    break
            log_largest = -rate * ((k + 1.0) * (t + 1.0) - 1.0)
            log_largest += log_factorials[item] - log_factorials[t] - log_factorials[item - t]
            log_largest += log_factorials[others] - log_factorials[k] - log_factorials[others - k]
            log_largest += log_factorials[above] + log_factorials[last - above]
            log_largest -= log_factorials[n_items]
            value = np.exp(log_largest) * total
            probabilities[item, above] = probabilities[above, item] = value
            probabilities[last - item, last - above] = value
            probabilities[last - above, last - item] = value


@compiled
def term_ratio(quanta, powers, item, others, gap, t):
    """The term of t + 1 over that of t; see `kendall_rank_probabilities`."""
    k = t + gap
    chosen = quanta[item - t] * quanta[others - k]
    return chosen / (quanta[t + 1] * quanta[k + 1]) * powers[k + t + 3]
