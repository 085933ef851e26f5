"""Item-to-item regressions with weights of 0 or more, and the ranks of items that were hidden."""

import numpy as np
from numba import njit

MAX_SWEEPS = 1000
FIRST_ITEMS = 64  # that a regression begins with, and lets in at a time
TENDERNESS = 3.0  # ranks over which the value of a hit falls from most of it to little


@njit(cache=True, nogil=True)
def descend(products, linear, ridge, tolerance, chosen, weights):
    """Coordinate descent on the first weights: half w'(products + ridge) w - linear'w, w >= 0.

    `chosen` are the rows and columns of `products` that the weights stand for; `linear` is left as
    it is.
    """
    size = len(chosen)
    inner, left = (
        np.empty((size, size), dtype=products.dtype),
        linear.copy(),
    )  # left is linear - products w
    for a in range(size):
        for b in range(size):
            inner[a, b] = products[chosen[a], chosen[b]]
    for a in range(size):
        if weights[a] != 0.0:
            for b in range(size):
                left[b] -= inner[a, b] * weights[a]
    for _ in range(MAX_SWEEPS):
        change = 0.0
        for a in range(size):
            norm, old = inner[a, a], weights[a]
            new = max(left[a] + norm * old, 0.0) / (norm + ridge)
            step = inner.dtype.type(new - old)
            if step != 0.0:
                weights[a] = new
                change = max(change, abs(step))
                for b in range(size):
                    left[b] -= inner[a, b] * step
        if change <= tolerance:
            break


@njit(cache=True, nogil=True)
def admit(left, norms, law, target, is_active):
    """Let the items in that gain most by a weight, some at a time; how many there are."""
    ridge, tolerance, room = law
    gains, n_new = np.zeros(len(left), dtype=left.dtype), 0
    for item in range(len(left)):
        norm = norms[item] + ridge
        if not is_active[item] and item != target and left[item] > tolerance * norm:
            gains[item] = left[item] * left[item] / norm
            n_new += 1
    if n_new == 0:
        return 0
    least = 0.0
    if n_new > room:
        least = np.partition(gains, len(gains) - room)[len(gains) - room]
    for item in range(len(left)):
        if gains[item] > 0.0 and gains[item] >= least:
            is_active[item] = True
    return n_new


@njit(cache=True, nogil=True)
def nonnegative_rows(products, ridge, lasso, tolerance, first, solved):
    """Regress items on all others, with weights of 0 or more, from their products alone.

    Row t of `solved` is where the weights of item `first + t` start, and what they become: least
    half w'(products + ridge) w - w'products[item] + lasso sum(w), with w[item] = 0. Only items with
    a weight, or that would get one, are visited: the others are looked at after each descent, and
    those that gain most are let in.
    """
    n_items, norms = len(products), np.diag(products).copy()
    is_active, left = np.zeros(n_items, dtype=np.bool_), np.empty(n_items, dtype=products.dtype)
    for row in range(len(solved)):
        target, weights = first + row, solved[row]
        weights[target] = 0.0
        for attempt in range(MAX_SWEEPS):
            left[:] = products[target] - products.dtype.type(lasso)
            n_active = 0
            for item in range(n_items):
                weight = weights[item]
                is_active[item] = weight > 0.0
                if weight > 0.0:
                    n_active += 1
                    for other in range(n_items):
                        left[other] -= products[item, other] * weight
            room = max(FIRST_ITEMS, n_active // 2)
            n_new = admit(left, norms, (ridge, tolerance, room), target, is_active)
            if attempt > 0 and n_new == 0:
                break
            chosen = np.flatnonzero(is_active)
            mine = weights[chosen]
            linear = products[target][chosen] - products.dtype.type(lasso)
            descend(products, linear, ridge, tolerance, chosen, mine)
            weights[chosen] = mine


@njit(cache=True, nogil=True)
def value_of_steps(ahead, more, steps, k, values):
    """Fill `values[s, case]`: what the rank of a hidden item is worth in the scores ahead + step
    times more, for each of the `steps`.

    `ahead[case, item]` is how far an item is ahead of the hidden one, far below 0 for what was
    clicked; `more` the same of one part. The value is near 1 for a rank among the first `k`, and
    near 0 far beyond; of items level with the hidden one, half are before it.
    """
    for case in range(len(ahead)):
        for s in range(len(steps)):
            n_above, n_level, step = 0, 0, steps[s]
            for item in range(ahead.shape[1]):
                lead = ahead[case, item] + step * more[case, item]
                n_above += lead > 0
                n_level += lead == 0
            rank = n_above + 0.5 * (n_level - 1)  # the hidden item is level with itself
            values[s, case] = 1.0 / (1.0 + np.exp((rank + 0.5 - k) / TENDERNESS))
