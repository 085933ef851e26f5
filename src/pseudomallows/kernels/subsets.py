"""Exact sums over all consensuses by dynamic programming over the sets of ranks in use.

2^n states instead of n! rankings: exact up to some 20 items. Bit r of `used` is rank r + 1.
"""

import numpy as np

from .compiled import compiled
from .foresight import LOG_LEAST, MOST


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
    """Fill `shares[rank]` with the probability that an item of log weights `row` takes it."""
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


@compiled
def pseudo_by_subsets(log_weights, visit_order, has_foresight, marginals):
    """ELBO of the Pseudo-Mallows law of one visit order; fills `marginals[item, rank - 1]`.

    The ELBO is the mean of the log of a ranking's weight, up to a constant the posterior, over its
    probability: without foresight, of the product of the denominators (equation 13).
    """
    n_items = len(visit_order)
    probability = np.zeros(1 << n_items)  # of each set of ranks in use
    shares = np.empty(n_items)
    probability[0] = 1.0
    elbo = 0.0
    marginals[:] = 0.0
    for used in range((1 << n_items) - 1):
        here = probability[used]
        if here == 0.0:
            continue
        step = count_bits(used)
        item = visit_order[step]
        share_free(log_weights[item], used, shares)
        if has_foresight:
            leave_to_others(log_weights, visit_order[step + 1 :], used, shares)
        for rank in range(n_items):
            if shares[rank] > 0.0:
                share = here * shares[rank]
                elbo += share * (log_weights[item, rank] - np.log(shares[rank]))
                marginals[item, rank] += share
                probability[used | 1 << rank] += share
    return elbo


@compiled
def leave_to_others(log_weights, others, used, shares):
    """Multiply `shares[rank]` by the probability that none of the others wants that free rank, by
    the definition of `foresight.py`; they sum to 1 again."""
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


@compiled
def pseudo_by_likely_subsets(log_weights, visit_order, least, probability, sets, marginals):
    """Fill `marginals[item, rank - 1]` of one visit order, without sets less likely than `least`.

    Only sets that are reached cost time. `probability[set]` is all 0 before and after, and
    `sets[0]` and `sets[1]` are scratch that can hold all sets of one size.
    """
    n_items = len(visit_order)
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
            share_free(log_weights[item], used, shares)
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
