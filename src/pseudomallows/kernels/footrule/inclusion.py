"""NextItems to be among the first ranks of a footrule Mallows ranking, with both tails in logs.

An item behind its place takes none of the first ranks while it stays open on the walk of
`partition`. One walk backwards from rank c gives the probability of that for all items before it.
The items behind c that take one of the first ranks are the same by mirror symmetry. So no small
number is ever the difference of large ones, and none is too small: rows are scaled, their logs
kept.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .matching import gap_decay, largest_state, square_roots
from .partition import step_walk, walk_probabilities


class TaggedWalk(NamedTuple):
    """The walk of one rate with an open item that is tagged, before place t, with k items open.

    `ups`, `stays` and `downs` are the probabilities that k rises, stays or falls and the tagged
    item stays open; `opens[t, k]` and `joins[t, k]` that the item at place t opens and k rises, or
    stays, times the probability of the state.
    """

    ups: NDArray[np.float64]
    stays: NDArray[np.float64]
    downs: NDArray[np.float64]
    opens: NDArray[np.float64]
    joins: NDArray[np.float64]


def tagged_walk(n_items: int, rate: float) -> TaggedWalk:
    """The `TaggedWalk` of one rate, which is alpha / n_items and at most 300: beyond that no walk
    is left but one. See `make_walks` for why it is not a kernel."""
    return TaggedWalk(*tables_of_tagged_walk(n_items, rate))


@njit(cache=True, nogil=True)
def tables_of_tagged_walk(n_items, rate):
    """The tables of `TaggedWalk`, in its order."""
    roots, decay = square_roots(n_items + 4), gap_decay(rate, n_items // 2 + 3)
    width = min(largest_state(decay, roots, n_items) + 2, n_items // 2) + 3
    ups, stays, downs, opens, joins = np.zeros((5, n_items + 1, width))
    walk_probabilities(n_items, rate, ups, stays, downs)
    state, next_state = np.zeros((2, width))
    state[0] = 1.0
    for t in range(n_items):
        for k in range(width):
            opens[t, k] = state[k] * ups[t, k]
            joins[t, k] = state[k] * stays[t, k] * k / (2 * k + 1)
        step_walk(state, ups[t], stays[t], downs[t], next_state)
        state, next_state = next_state, state
        for k in range(width):
            stays[t, k] *= 2 * k / (2 * k + 1)
            downs[t, k] *= (k - 1) / k if k > 0 else 0.0
    return ups, stays, downs, opens, joins


@njit(cache=True, nogil=True)
def log_misses(walk, n_first, logs):
    """Fill `logs[item]`, for the first `n_first` items of the consensus: the log of the probability
    to take none of the first `n_first` ranks."""
    ups, stays, downs, opens, joins = walk
    n_items, most = len(ups) - 1, ups.shape[1] - 3
    # lasts[k]: a tagged item of k is still open at rank n_first, divided by exp(log_scale).
    lasts, before = np.zeros((2, most + 3))
    lasts[1 : min(n_first, n_items - n_first, most) + 1] = 1.0
    log_scale = 0.0
    for t in range(n_first - 1, -1, -1):
        top, probability = min(t, n_items - t, most), 0.0
        for k in range(top + 1):
            probability += opens[t, k] * lasts[k + 1] + joins[t, k] * lasts[k]
        logs[t] = np.log(probability) + log_scale
        if t == 0:
            break
        up, stay, down = ups[t], stays[t], downs[t]
        for k in range(1, top + 1):
            before[k] = up[k] * lasts[k + 1] + stay[k] * lasts[k] + down[k] * lasts[k - 1]
        before[top + 1] = 0.0
        before[top + 2] = 0.0
        for k in range(1, top + 1):  # by what counts: a state that is never reached may be larger
            before[k] /= probability
        log_scale += np.log(probability)
        lasts, before = before, lasts


@njit(cache=True, nogil=True)
def inclusion_logits(walk, size, logits):
    """Fill `logits[item]`: the log odds that an item of the consensus takes one of the first
    `size` ranks, for 0 < size < n_items."""
    n_items = len(logits)
    log_misses(walk, size, logits)
    for item in range(size):
        logits[item] = np.log(-np.expm1(logits[item])) - logits[item]
    behind = np.empty(n_items - size)
    log_misses(walk, n_items - size, behind)
    for item in range(size, n_items):
        value = behind[n_items - 1 - item]
        logits[item] = value - np.log(-np.expm1(value))
