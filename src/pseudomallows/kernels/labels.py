"""Labels of users: which cluster each belongs to, and how likely all of them are."""

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
        probabilities, labels = memberships[row], counts[row]
        highest, total = probabilities[0], 0.0
        for cluster in range(1, n_clusters):
            highest = max(highest, probabilities[cluster])
        for cluster in range(n_clusters):
            probabilities[cluster] = np.exp(probabilities[cluster] - highest)
            total += probabilities[cluster]
        for cluster in range(n_clusters):
            probabilities[cluster] /= total
            labels[cluster] = 0
        log_sums[row] = highest + np.log(total)
        for user in range(weights[row]):
            start_stream(seed, draw, first_users[row] + user, stream)
            u, label = uniform(stream), 0
            while label < n_clusters - 1 and u >= probabilities[label]:
                u -= probabilities[label]
                label += 1
            labels[label] += 1


@njit(cache=True, nogil=True)
def fill_overlaps(weights, reference, memberships, overlaps):
    """Fill `overlaps[k, j]`: how many users are in cluster k of the reference and in j now."""
    n_clusters = memberships.shape[1]
    overlaps[:] = 0.0
    for row in range(len(weights)):
        for k in range(n_clusters):
            for j in range(n_clusters):
                overlaps[k, j] += weights[row] * reference[row, k] * memberships[row, j]


@njit(cache=True, nogil=True)
def fill_log_sums(log_likelihoods, log_shares, log_sums):
    """Fill `log_sums[row]`: log probability of a user of the row, the label summed out."""
    for row in range(len(log_sums)):
        total = log_likelihoods[row, 0] + log_shares[0]
        for cluster in range(1, len(log_shares)):
            total = np.logaddexp(total, log_likelihoods[row, cluster] + log_shares[cluster])
        log_sums[row] = total
