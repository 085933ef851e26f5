"""Labels of users: which cluster each belongs to."""

import numpy as np
from numba import njit

from .streams import start_stream, uniform


@njit(cache=True, nogil=True)
def draw_labels(seed, draw, first_users, weights, memberships, counts, log_sums):
    """Draw the label of every user from the exact memberships.

    `memberships[row, cluster]` holds the log of share times likelihood, and becomes a probability;
    `log_sums[row]` is the log of their sum. `counts[row, cluster]` are the labels: how many of the
    `weights[row]` users of a row, numbered from `first_users[row]`, belong to the cluster.
    """
    n_clusters = memberships.shape[1]
    stream = np.empty(1, dtype=np.uint64)
    for row in range(len(weights)):
        chances = memberships[row]
        highest, total = chances.max(), 0.0
        for cluster in range(n_clusters):
            chances[cluster] = np.exp(chances[cluster] - highest)
            total += chances[cluster]
        chances /= total
        log_sums[row] = highest + np.log(total)
        counts[row] = 0
        for user in range(weights[row]):
            start_stream(seed, draw, first_users[row] + user, stream)
            u, label = uniform(stream), 0
            while label < n_clusters - 1 and u >= chances[label]:
                u -= chances[label]
                label += 1
            counts[row, label] += 1
