"""The Pseudo-Mallows law of a consensus: item by item, each among the ranks still free.

The weight of rank r for the visited item i is W[i, r], exp(-alpha / n_items * costs) (Algorithm 1).

With foresight it leaves a rank to an item still to come that can hardly do without it: W is the
balanced matrix, and the weight W[i, r] times the product, over the items j still to come, of
1 - W[j, r] / S[j], S[j] being the weight of j on the free ranks: the probability that nobody else
wants r, if all who come chose at once. It is kept up to date rank by rank, over the cells of W that
matter only; what is left out of it makes a draw a little worse, never its probability.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .compiled import compiled
from .streams import start_stream, uniform

# Cells below it are left out of the products. Of 4,000 draws of 20 items and 100 users at alpha 1,
# at least 2,205 are effective on twelve data sets, and of 100 items and 50 users 239 on five; by
# 1e-5 2,201 and 232 in 1.3 and 1.6 times the time; by 0.01 484 and 4, as one draw may have a huge
# weight.
LOG_LEAST = float(np.log(0.001))
# Of W / S: an item with one rank left would leave the others no weight there at all. The effective
# sizes are the same by 0.99 and by 0.99999.
MOST = 0.9999
FLOOR = 1e-200  # of a product and of a sum: below, numbers near 1e-308 would lose their digits


class Cells(NamedTuple):
    """`log_weights[item, rank - 1]`; `table`, their exponentials with the largest of each row 1,
    and `highests`, the logs of these largest. Then the cells that foresight looks at: of item i,
    `ranks[starts[i]:starts[i + 1]]` (from 0) with their `values`; of rank r,
    `items[of_ranks[r]:of_ranks[r + 1]]` with `their_values`."""

    log_weights: NDArray[np.float64]
    table: NDArray[np.float64]
    highests: NDArray[np.float64]
    starts: NDArray[np.int64]
    ranks: NDArray[np.int64]
    values: NDArray[np.float64]
    of_ranks: NDArray[np.int64]
    items: NDArray[np.int64]
    their_values: NDArray[np.float64]


def cells_of(log_weights: NDArray[np.float64], has_foresight: bool) -> Cells:
    """Foresight looks at the cells above `LOG_LEAST`; without it, at none."""
    highests = log_weights.max(axis=1)
    table = np.exp(log_weights - highests[:, None])
    matter = (log_weights > LOG_LEAST) & has_foresight
    items, ranks = np.nonzero(matter)
    starts = np.concatenate([[0], np.cumsum(matter.sum(axis=1))])
    ranks_of, items_of = np.nonzero(matter.T)
    of_ranks = np.concatenate([[0], np.cumsum(matter.sum(axis=0))])
    values, theirs = np.exp(log_weights[items, ranks]), np.exp(log_weights[items_of, ranks_of])
    by_item = starts, ranks, values
    return Cells(log_weights, table, highests, *by_item, of_ranks, items_of, theirs)


@compiled
def draw_consensuses(seed, first, cells, visit_orders, is_given, rankings, logs):
    """Fill `rankings[draw, item]`, or take them if `is_given`, and `logs[draw]`: their log
    probabilities, given `visit_orders[draw]`. `first` is the number of the first draw."""
    log_weights, n_items = cells.log_weights, len(cells.log_weights)
    everything = np.ones(n_items)  # of an item's weight is free, at first
    unwanted = np.ones(n_items)
    for item in range(n_items):
        left = 0.0
        for cell in range(cells.starts[item], cells.starts[item + 1]):
            left += cells.values[cell]
        everything[item] = left
        for cell in range(cells.starts[item], cells.starts[item + 1]):
            unwanted[cells.ranks[cell]] *= 1.0 - min(cells.values[cell] / left, MOST)
    stream = np.empty(1, dtype=np.uint64)
    left, products, weights = np.empty(n_items), np.empty(n_items), np.empty(n_items)
    free = np.empty(n_items, dtype=np.int64)
    is_free, comes = np.empty(n_items, dtype=np.bool_), np.empty(n_items, dtype=np.bool_)
    for draw in range(len(visit_orders)):
        start_stream(seed, first + draw, 0, stream)
        for item in range(n_items):
            left[item], products[item] = everything[item], unwanted[item]
            is_free[item], comes[item], free[item] = True, True, item
        logs[draw] = 0.0
        for step in range(n_items):
            item, n_free = visit_orders[draw, step], n_items - step
            comes[item] = False
            for cell in range(cells.starts[item], cells.starts[item + 1]):
                rank = cells.ranks[cell]
                if is_free[rank]:  # the item itself no longer stands in its way
                    products[rank] /= 1.0 - min(cells.values[cell] / left[item], MOST)
            highest, total, foresees = cells.highests[item], 0.0, True
            for slot in range(n_free):
                weights[slot] = cells.table[item, free[slot]] * products[free[slot]]
                total += weights[slot]
            if total < FLOOR:  # the likely ranks are gone: what others want matters no more
                highest, total = weigh_free(log_weights[item], free, n_free, weights)
                foresees = False
            slot = 0
            if is_given:
                while free[slot] != rankings[draw, item] - 1:
                    slot += 1
            else:
                u = uniform(stream) * total
                while slot < n_free - 1 and u >= weights[slot]:
                    u -= weights[slot]
                    slot += 1
                rankings[draw, item] = free[slot] + 1
            taken = free[slot]
            logs[draw] += log_weights[item, taken] - highest - np.log(total)
            if foresees:
                logs[draw] += np.log(products[taken])
            free[slot] = free[n_free - 1]
            is_free[taken] = False
            take_rank(cells, taken, is_free, comes, left, products)


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
def take_rank(cells, taken, is_free, comes, left, products):
    """Take a rank from the items still to come that want it: they want their other ranks more."""
    for entry in range(cells.of_ranks[taken], cells.of_ranks[taken + 1]):
        item = cells.items[entry]
        if not comes[item]:
            continue
        before = left[item]
        left[item] = after = max(before - cells.their_values[entry], FLOOR)
        for cell in range(cells.starts[item], cells.starts[item + 1]):
            rank = cells.ranks[cell]
            if is_free[rank]:
                value = cells.values[cell]
                change = (1.0 - min(value / after, MOST)) / (1.0 - min(value / before, MOST))
                products[rank] = max(products[rank] * change, FLOOR)
