"""Counts of ranks, and distances of users: what the consensus needs to know of them."""

import numpy as np

from .compiled import compiled


@compiled
def count_ranks(rankings, weights, counts):
    """Add to `counts[item, rank - 1]` the weights of the users who give the item that rank; skip
    rank 0. Differences of weights bring the counts from the one to the other."""
    for user in range(len(rankings)):
        if weights[user] != 0:
            for item in range(rankings.shape[1]):
                if rankings[user, item] > 0:
                    counts[item, rankings[user, item] - 1] += weights[user]


@compiled
def power_distances(power, rankings, others, distances):
    """Fill `distances[row]` with that from the row of `others`, or from its only one: the sum of
    the differences in rank to the power of 0 (how many there are), 1 or 2."""
    for row in range(len(rankings)):
        ranks, other = rankings[row], others[min(row, len(others) - 1)]
        distance = 0
        for item in range(len(ranks)):
            difference = abs(np.int64(ranks[item]) - np.int64(other[item]))
            if power == 0:
                distance += difference != 0
            else:
                distance += difference if power == 1 else difference * difference
        distances[row] = distance
