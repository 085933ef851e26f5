"""Counts of ranks, and distances of users: what the consensus needs to know of them."""

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
def footrule_distances(rankings, others, distances):
    """Fill `distances[row]` with that from the row of `others`, or from its only one."""
    for row in range(len(rankings)):
        ranks, other = rankings[row], others[min(row, len(others) - 1)]
        distance = 0
        for item in range(len(ranks)):
            distance += abs(ranks[item] - other[item])
        distances[row] = distance
