"""Item-to-item regressions with weights of 0 or more, and the ranks of items that were hidden."""

import numpy as np
from numba import njit

MAX_SWEEPS = 1000
TENDERNESS = 3.0  # ranks over which the value of a hit falls from most of it to little


@njit(cache=True, nogil=True)
def descend(products, linear, ridge, tolerance, chosen, weights):
    """Coordinate descent on the first weights: half w'(products + ridge) w - linear'w, w >= 0.

    `chosen` are the rows and columns of `products` that the weights stand for; `linear` is left as
    it is.
    """
    size = len(chosen)
    inner, left = np.empty((size, size)), linear.copy()  # left is linear - products w
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
            step = new - old
            if step != 0.0:
                weights[a] = new
                change = max(change, abs(step))
                for b in range(size):
                    left[b] -= inner[a, b] * step
        if change <= tolerance:
            break


@njit(cache=True, nogil=True)
def nonnegative_rows(products, ridge, lasso, tolerance, first, solved):
    """Regress items on all others, with weights of 0 or more, from their products alone.

    Row t of `solved` is where the weights of item `first + t` start, and what they become: least
    half w'(products + ridge) w - w'products[item] + lasso sum(w), with w[item] = 0. Only items with
    a weight, or that would get one, are visited: the others are looked at after each descent.
    """
    n_items = len(products)
    is_active, left = np.zeros(n_items, dtype=np.bool_), np.empty(n_items)
    for row in range(len(solved)):
        target, weights = first + row, solved[row]
        weights[target] = 0.0
        for item in range(n_items):
            is_active[item] = weights[item] > 0.0
        for attempt in range(MAX_SWEEPS):
            left[:] = products[target] - lasso
            for item in range(n_items):
                if weights[item] != 0.0:
                    for other in range(n_items):
                        left[other] -= products[item, other] * weights[item]
            n_new = 0
            for item in range(n_items):
                enough = tolerance * (products[item, item] + ridge)
                if not is_active[item] and item != target and left[item] > enough:
                    is_active[item] = True
                    n_new += 1
            if attempt > 0 and n_new == 0:
                break
            chosen = np.flatnonzero(is_active)
            mine = weights[chosen]
            descend(products, products[target][chosen] - lasso, ridge, tolerance, chosen, mine)
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
