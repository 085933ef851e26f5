"""Exact sums over all consensuses by dynamic programming over the sets of ranks in use.

2^n states instead of n! rankings: exact up to some 20 items. Bit r of `used` is rank r + 1.
"""

import math

import numpy as np
from numpy.typing import NDArray

from .compiled import compiled
from .pseudo_draws import LOG_LEAST, MOST


@compiled
def count_bits(bits):
    """The number of ones."""
    count = 0
    while bits:
        bits &= bits - 1
        count += 1
    return count


@compiled
def share_free(row, used, shares):
    """Fill `shares[rank]` with the probability that an item of log weights `row` takes it; return
    the log of the sum of the weights."""
    highest, total = -np.inf, 0.0
    for rank in range(len(row)):
        if not used >> rank & 1:
            highest = max(highest, row[rank])
    for rank in range(len(row)):
        shares[rank] = 0.0
        if not used >> rank & 1:
            shares[rank] = np.exp(row[rank] - highest)
            total += shares[rank]
    for rank in range(len(row)):
        shares[rank] /= total
    return highest + np.log(total)


def room_for_sets(n_items: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Room for `pseudo_by_subsets`: a number of each set, and two lists of all sets of a size."""
    most = math.comb(n_items, n_items // 2)
    return np.zeros(1 << n_items), np.empty((2, most), dtype=np.int64)


@compiled
def pseudo_by_subsets(log_weights, visit_order, has_foresight, least, room, marginals):
    """ELBO of the Pseudo-Mallows law of one visit order; fills `marginals[item, rank - 1]`.

    The ELBO is the mean of the log of a ranking's weight, up to a constant the posterior, over its
    probability: without foresight, of the product of the denominators (equation 13). Sets less
    likely than `least` are left out, and only sets that are reached cost time. `room` comes from
    `room_for_sets`; the number of each set is 0 before and after.
    """
    n_items, elbo = len(visit_order), 0.0
    probability, sets = room
    shares = np.empty(n_items)
    marginals[:] = 0.0
    now, n_now = 0, 1
    sets[0, 0] = 0
    probability[0] = 1.0
    for step in range(n_items):
        item, n_then = visit_order[step], 0
        for place in range(n_now):
            used = sets[now, place]
            here = probability[used]
            probability[used] = 0.0
            if here < least:
                continue
            log_sum = share_free(log_weights[item], used, shares)
            if has_foresight:
                leave_to_others(log_weights, visit_order[step + 1 :], used, shares)
                log_sum = mean_log_ratio(log_weights[item], shares)
            elbo += here * log_sum
            for rank in range(n_items):
                share = here * shares[rank]
                if share > 0.0:  # so that a set is listed once
                    then = used | 1 << rank
                    if probability[then] == 0.0:
                        sets[1 - now, n_then] = then
                        n_then += 1
                    probability[then] += share
                    marginals[item, rank] += share
        now, n_now = 1 - now, n_then
    for place in range(n_now):
        probability[sets[now, place]] = 0.0
    return elbo


@compiled
def mean_log_ratio(row, shares):
    """Mean of the log of a rank's weight over its probability."""
    mean = 0.0
    for rank in range(len(row)):
        if shares[rank] > 0.0:
            mean += shares[rank] * (row[rank] - np.log(shares[rank]))
    return mean


@compiled
def leave_to_others(log_weights, others, used, shares):
    """Multiply `shares[rank]` by the probability that none of the others wants that free rank, by
    the definition of `pseudo_draws.py`; they sum to 1 again."""
    n_items = len(shares)
    for other in others:
        left = 0.0
        for rank in range(n_items):
            if not used >> rank & 1 and log_weights[other, rank] > LOG_LEAST:
                left += np.exp(log_weights[other, rank])
        for rank in range(n_items):
            if not used >> rank & 1 and log_weights[other, rank] > LOG_LEAST:
                shares[rank] *= 1.0 - min(np.exp(log_weights[other, rank]) / left, MOST)
    total = shares.sum()
    for rank in range(n_items):
        shares[rank] /= total


@compiled
def posterior_by_subsets(log_weights, marginals):
    """Log of the sum of exp(sum of log weights) over all consensuses; fills `marginals`."""
    n_items = len(log_weights)
    full = (1 << n_items) - 1
    before = np.full(full + 1, -np.inf)  # the first items have taken the ranks in use
    after = np.full(full + 1, -np.inf)  # the other items take the other ranks
    before[0] = after[full] = 0.0
    for used in range(full):
        item = count_bits(used)
        for rank in range(n_items):
            if not used >> rank & 1:
                then = used | 1 << rank
                before[then] = np.logaddexp(before[then], before[used] + log_weights[item, rank])
    for used in range(full - 1, -1, -1):
        item = count_bits(used)
        for rank in range(n_items):
            if not used >> rank & 1:
                step = log_weights[item, rank] + after[used | 1 << rank]
                after[used] = np.logaddexp(after[used], step)
    marginals[:] = 0.0
    for used in range(full):
        item = count_bits(used)
        for rank in range(n_items):
            if not used >> rank & 1:
                step = before[used] + log_weights[item, rank] + after[used | 1 << rank]
                marginals[item, rank] += np.exp(step - after[0])
    return after[0]
