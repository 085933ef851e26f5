"""Counts and costs: all that the consensus needs to know of the users."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def count_ranks(rankings, weights, counts):
    """Add to `counts[item, rank - 1]` the users who give the item that rank; skip rank 0."""
    for user in range(len(rankings)):
        for item in range(rankings.shape[1]):
            if rankings[user, item] > 0:
                counts[item, rankings[user, item] - 1] += weights[user]


@njit(cache=True, nogil=True)
def footrule_costs(counts):
    """costs[item, rank - 1]: distance, over all users, between that rank and the users' ranks.

    One rank further adds 1 for every user at or before it, and takes 1 off for every user beyond.
    """
    n_items = len(counts)
    costs = np.zeros((n_items, n_items), dtype=np.int64)
    for item in range(n_items):
        n_users = 0
        for rank in range(n_items):
            n_users += counts[item, rank]
            costs[item, 0] += rank * counts[item, rank]
        passed = 0
        for rank in range(1, n_items):
            passed += counts[item, rank - 1]
            costs[item, rank] = costs[item, rank - 1] + 2 * passed - n_users
    return costs


@njit(cache=True, nogil=True)
def total_cost(costs, consensus):
    """Distance between all users and a consensus."""
    total = 0
    for item in range(len(consensus)):
        total += costs[item, consensus[item] - 1]
    return total


@njit(cache=True, nogil=True)
def recount_ranks(rankings, before, after, counts):
    """Bring `counts` of `count_ranks` from the weights `before` to those `after`; skip rank 0."""
    for user in range(len(rankings)):
        change = after[user] - before[user]
        if change != 0:
            for item in range(rankings.shape[1]):
                if rankings[user, item] > 0:
                    counts[item, rankings[user, item] - 1] += change


@njit(cache=True, nogil=True)
def footrule_distances(rankings, others, distances):
    """Fill `distances[row]` with that from the row of `others`, or from its only one."""
    for row in range(len(rankings)):
        ranks, other = rankings[row], others[min(row, len(others) - 1)]
        distance = 0
        for item in range(len(ranks)):
            distance += abs(ranks[item] - other[item])
        distances[row] = distance
