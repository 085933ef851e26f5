"""The Pseudo-Mallows law of a consensus: item by item, each among the ranks still free.

`log_weights[item, rank - 1]` is -alpha / n_items * costs, or its balanced form.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .compiled import compiled
from .streams import start_stream, uniform


class RankWeights(NamedTuple):
    """`logs[item, rank - 1]` are log weights, `table[item, rank - 1]` their exponentials with the
    largest of each row 1, and `highests[item]` the logs of these largest."""

    logs: NDArray[np.float64]
    table: NDArray[np.float64]
    highests: NDArray[np.float64]


@compiled
def draw_consensus(stream, rank_weights, visit_order, free, weights, consensus):
    """Draw a consensus, the items in `visit_order` (Algorithm 1); return its log probability.

    `rank_weights` come from `exponentials`; `free` and `weights` are scratch.
    """
    log_weights, table, highests = rank_weights
    n_items = len(visit_order)
    log_probability = 0.0
    for rank in range(n_items):
        free[rank] = rank
    for step in range(n_items):
        item, n_free = visit_order[step], n_items - step
        highest, total = highests[item], 0.0
        for slot in range(n_free):
            weights[slot] = table[item, free[slot]]
            total += weights[slot]
        if total < 1e-200:  # the likely ranks are gone, and the others near underflow
            highest, total = weigh_free(log_weights[item], free, n_free, weights)
        u = uniform(stream) * total
        slot = 0
        while slot < n_free - 1 and u >= weights[slot]:
            u -= weights[slot]
            slot += 1
        rank = free[slot]
        log_probability += log_weights[item, rank] - highest - np.log(total)
        consensus[item] = rank + 1
        free[slot] = free[n_free - 1]
    return log_probability


@compiled
def exponentials(log_weights):
    """The log weights with their exponentials: `RankWeights`."""
    table, highests = np.empty(log_weights.shape), np.empty(len(log_weights))
    for item in range(len(log_weights)):
        highests[item] = log_weights[item].max()
        table[item] = np.exp(log_weights[item] - highests[item])
    return RankWeights(log_weights, table, highests)


@compiled
def weigh_free(row, free, n_free, weights):
    """Fill `weights[slot]` for the free ranks, the largest 1; return that one's log and the sum."""
    highest = row[free[0]]
    for slot in range(1, n_free):
        highest = max(highest, row[free[slot]])
    total = 0.0
    for slot in range(n_free):
        weights[slot] = np.exp(row[free[slot]] - highest)
        total += weights[slot]
    return highest, total


@compiled
def draw_consensuses(seed, log_weights, visit_orders, consensus, log_probabilities):
    """Fill `consensus[draw, item]` and `log_probabilities[draw]`, given `visit_orders[draw]`."""
    n_items = len(log_weights)
    free, weights = np.empty(n_items, dtype=np.int64), np.empty(n_items)
    rank_weights, stream = exponentials(log_weights), np.empty(1, dtype=np.uint64)
    for draw in range(len(visit_orders)):
        start_stream(seed, draw, 0, stream)
        log_probabilities[draw] = draw_consensus(
            stream, rank_weights, visit_orders[draw], free, weights, consensus[draw]
        )


@compiled
def log_probability_of(log_weights, visit_order, consensus):
    """Log probability of a consensus, given the visit order (equation 7 of the paper)."""
    n_items = len(visit_order)
    free, slots = np.arange(n_items), np.arange(n_items)  # slots[rank]: where in `free` it is
    weights = np.empty(n_items)
    log_probability = 0.0
    for step in range(n_items):
        item, n_free = visit_order[step], n_items - step
        highest, total = weigh_free(log_weights[item], free, n_free, weights)
        rank = consensus[item] - 1
        log_probability += log_weights[item, rank] - highest - np.log(total)
        slot, moved = slots[rank], free[n_free - 1]
        free[slot], slots[moved] = moved, slot
    return log_probability


@compiled
def log_probabilities_of(log_weights, visit_orders, consensus, log_probabilities):
    """Fill `log_probabilities[draw]` of one consensus for many visit orders."""
    for draw in range(len(visit_orders)):
        log_probabilities[draw] = log_probability_of(log_weights, visit_orders[draw], consensus)
