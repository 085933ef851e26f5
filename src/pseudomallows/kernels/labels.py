"""Labels of users: which cluster each belongs to, and how likely all of them are."""

import numpy as np

from .compiled import compiled
from .moves import accepts
from .streams import start_user, uniform

NO_PROBABILITY = -45.0  # log behind the best that leaves no trace in a sum


@compiled
def draw_labels(streams, logs, labels):
    """Draw `labels[row]` from `logs[row, cluster]`."""
    n_clusters = logs.shape[1]
    stream, probabilities = np.empty(1, dtype=np.uint64), np.empty(n_clusters)
    for row in range(len(labels)):
        start_user(streams, row, 0, stream)
        highest, total = logs[row, 0], 0.0
        for cluster in range(1, n_clusters):
            highest = max(highest, logs[row, cluster])
        for cluster in range(n_clusters):
            behind = logs[row, cluster] - highest
            probabilities[cluster] = np.exp(behind) if behind > NO_PROBABILITY else 0.0
            total += probabilities[cluster]
        u, label = uniform(stream) * total, 0
        while label < n_clusters - 1 and u >= probabilities[label]:
            u -= probabilities[label]
            label += 1
        labels[row] = label


@compiled
def accept_labels(streams, rows, log_ratios, accepted):
    """Fill `accepted[place]`: is the label that `rows[place]` has drawn accepted? By the random
    number of the row's stream after the one that the label was drawn by."""
    stream = np.empty(1, dtype=np.uint64)
    for place in range(len(rows)):
        start_user(streams, rows[place], 0, stream)
        uniform(stream)
        accepted[place] = accepts(stream, log_ratios[place])
