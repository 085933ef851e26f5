"""The matched law of clicks: a conditional Bernoulli law with given inclusion probabilities.

A user with c clicks draws c of n items, the set S with probability exp(sum over S of g) / e_c. The
log weights g are such that each item is drawn as often as under the exact law (Chen, Dempster and
Liu 1994). With theta such that the probabilities p = logistic(g + theta) sum to c, the law is that
of independent draws given that they are c, and the sum of them is near c: so only a band of it
counts, and nothing overflows.
"""

import numpy as np
from numba import njit

from .chain import accepts
from .streams import start_user, uniform


@njit(cache=True, nogil=True)
def fill_probabilities(log_weights, size, theta, probabilities):
    """Fill `probabilities[item]`, logistic(log weight + theta), that sum to `size`; return theta.

    By Newton's method between bounds, from a guess on.
    """
    low, high = -np.max(log_weights) - 40.0, -np.min(log_weights) + 40.0
    theta = min(max(theta, low), high)
    for _ in range(200):
        total, slope = 0.0, 0.0
        for item in range(len(probabilities)):
            probabilities[item] = 1.0 / (1.0 + np.exp(-log_weights[item] - theta))
            total += probabilities[item]
            slope += probabilities[item] * (1.0 - probabilities[item])
        if abs(total - size) < 1e-9:
            break
        if total > size:
            high = theta
        else:
            low = theta
        step = theta - (total - size) / slope if slope > 0.0 else low
        theta = step if low < step < high else 0.5 * (low + high)
    return theta


@njit(cache=True, nogil=True)
def fill_ends(probabilities, size, firsts, ends):
    """Fill `ends[i, j]`: the probability that the draws from item i on make the sum `size`, if
    those before it are firsts[i] + j."""
    n_items, width = len(probabilities), ends.shape[1]
    ends[n_items] = 0.0
    ends[n_items, size - firsts[n_items]] = 1.0
    for i in range(n_items - 1, -1, -1):
        p, shift = probabilities[i], firsts[i + 1] - firsts[i]
        for j in range(width):
            stays, rises = j - shift, j + 1 - shift
            value = (1.0 - p) * ends[i + 1, stays] if stays >= 0 else 0.0
            ends[i, j] = value + (p * ends[i + 1, rises] if rises < width else 0.0)


@njit(cache=True, nogil=True)
def correct(probabilities, wanted, log_weights, theta, firsts, ends, residuals):
    """Fill `residuals[item]`: wanted minus present log odds to be drawn; return the largest."""
    n_items, width, worst = len(probabilities), ends.shape[1], 0.0
    sums, new = np.zeros((2, width))  # probability of each sum of the draws before an item
    sums[-firsts[0]] = 1.0
    for i in range(n_items):
        p, shift = probabilities[i], firsts[i + 1] - firsts[i]
        without, drawn = 0.0, 0.0
        for j in range(shift, width):
            without += sums[j] * ends[i + 1, j - shift]
        for j in range(width - 1 + shift):
            drawn += sums[j] * ends[i + 1, j + 1 - shift]
        residuals[i] = wanted[i] - log_weights[i] - theta - np.log(drawn / without)
        worst = max(worst, abs(residuals[i]))
        for j in range(width):
            before, same = j + shift - 1, j + shift
            value = p * sums[before] if before >= 0 else 0.0
            new[j] = value + ((1.0 - p) * sums[same] if same < width else 0.0)
        sums, new = new, sums
    return worst


@njit(cache=True, nogil=True)
def match_weights(wanted, size, log_binomial, log_weights):
    """Change `log_weights`, a guess, until an item is drawn with the log odds `wanted`.

    They are left such that the sum over all sets of `size` items is exp(log_binomial), the number
    of these sets. Return the largest error that is left, of log odds. Something must be left to
    probability: not all log odds may be beyond 30.
    """
    n_items = len(wanted)
    probabilities, residuals = np.empty(n_items), np.empty(n_items)
    firsts = np.empty(n_items + 1, dtype=np.int64)
    theta, worst = 0.0, np.inf
    for _ in range(500):  # some ten are enough, more where hardly anything is left to probability
        theta = fill_probabilities(log_weights, size, theta, probabilities)
        variance, squares = 0.0, 0.0
        for item in range(n_items):
            each = probabilities[item] * (1.0 - probabilities[item])
            variance += each
            squares += each * each
        reach = int(9.0 * np.sqrt(variance)) + 10  # 1e-16 of the sum lies beyond
        mean = 0.0
        for item in range(n_items):
            firsts[item] = int(mean) - reach
            mean += probabilities[item]
        firsts[n_items] = size - reach
        for item in range(n_items - 1, -1, -1):  # a rise of at most one, rounding included
            firsts[item] = min(max(firsts[item], firsts[item + 1] - 1), firsts[item + 1])
        ends = np.empty((n_items + 1, 2 * reach + 2))
        fill_ends(probabilities, size, firsts, ends)
        worst = correct(probabilities, wanted, log_weights, theta, firsts, ends, residuals)
        log_sum = np.log(ends[0, -firsts[0]]) - size * theta
        for item in range(n_items):
            log_sum += np.logaddexp(0.0, log_weights[item] + theta)
        if worst < 1e-10:
            break
        # As if all pairs of items were alike: then one step is enough, even of two items alone.
        n_equal = max(2.0, variance * variance / squares)
        for item in range(n_items):
            log_weights[item] += (1.0 - 1.0 / n_equal) * residuals[item]
    log_weights -= (log_sum - log_binomial) / size
    return worst


@njit(cache=True, nogil=True)
def count_clicks(clicks, size_places, labels, weights, counts):
    """Add to `counts[label, size, item]` the users of the label who clicked the item, by the place
    of their number of clicks in a list of sizes."""
    for row in range(len(labels)):
        mine = counts[labels[row], size_places[row]]
        for place in range(clicks.starts[row], clicks.starts[row + 1]):
            mine[clicks.codes[place]] += weights[row]


@njit(cache=True, nogil=True)
def list_cells(counts, cells):
    """List the (size, item, count) of `counts[size, item]` above 0, item by item, in `cells`;
    return how many there are."""
    n_cells = 0
    for item in range(counts.shape[1]):
        for size in range(counts.shape[0]):
            if counts[size, item]:
                cells[n_cells, 0], cells[n_cells, 1] = size, item
                cells[n_cells, 2] = counts[size, item]
                n_cells += 1
    return n_cells


@njit(cache=True, nogil=True)
def sum_weights(cells, consensus, table):
    """Sum of `table[size, rank - 1]` over the clicks in `cells`, rows of (size, item, count)."""
    total = 0.0
    for cell in range(len(cells)):
        size, item, count = cells[cell]
        total += count * table[size, consensus[item] - 1]
    return total


@njit(cache=True, nogil=True)
def add_table(table, factor, total):
    """Add `table[size, rank - 1]`, times a factor, to `total`."""
    for size in range(len(table)):
        for rank in range(table.shape[1]):
            total[size, rank] += factor * table[size, rank]


@njit(cache=True, nogil=True)
def fill_matched_weights(table, consensus, cluster, log_weights):
    """Fill `log_weights[size, item, cluster]` of one cluster from its `table[size, rank - 1]`."""
    for size in range(len(table)):
        for item in range(len(consensus)):
            log_weights[size, item, cluster] = table[size, consensus[item] - 1]


@njit(cache=True, nogil=True)
def fill_costs(cells, table, costs):
    """Fill `costs[item, rank - 1]`: minus the sum of `table[size, rank - 1]` over the clicks in
    `cells`, rows of (size, item, count)."""
    costs[:] = 0.0
    for cell in range(len(cells)):
        size, item, count = cells[cell]
        for rank in range(costs.shape[1]):
            costs[item, rank] -= count * table[size, rank]


@njit(cache=True, nogil=True)
def round_costs(parts, costs):
    """Take the least of each row off `costs[item, rank - 1]`, and round to one in `parts`."""
    for item in range(len(costs)):
        least = costs[item].min()
        for rank in range(costs.shape[1]):
            costs[item, rank] = np.rint((costs[item, rank] - least) * parts) / parts


@njit(cache=True, nogil=True)
def add_scores(counts, weights, scores):
    """Add to `scores[cluster]` the sum of `counts[cell]` times `weights[cell, cluster]`."""
    for cell in range(len(counts)):
        if counts[cell]:
            for cluster in range(len(scores)):
                scores[cluster] += counts[cell] * weights[cell, cluster]


@njit(cache=True, nogil=True)
def fill_logs(clicks, size_places, log_weights, logs):
    """Add to `logs[row, cluster]` the `log_weights[size, item, cluster]` of the row's clicks."""
    for row in range(len(logs)):
        mine, weights = logs[row], log_weights[size_places[row]]
        for place in range(clicks.starts[row], clicks.starts[row + 1]):
            added = weights[clicks.codes[place]]
            for cluster in range(len(mine)):
                mine[cluster] += added[cluster]


@njit(cache=True, nogil=True)
def weigh_logs(logs, log_sums, memberships):
    """Fill `log_sums[row]`, the log of the sum of exp(`logs[row, cluster]`), and
    `memberships[row, cluster]`, the parts of that sum."""
    n_clusters = logs.shape[1]
    parts = np.empty(n_clusters)
    for row in range(len(logs)):
        highest, total = logs[row].max(), 0.0
        for cluster in range(n_clusters):
            behind = logs[row, cluster] - highest
            parts[cluster] = np.exp(behind) if behind > -104.0 else 0.0  # 0 in float32
            total += parts[cluster]
        log_sums[row] = highest + np.log(total)
        for cluster in range(n_clusters):
            memberships[row, cluster] = parts[cluster] / total


@njit(cache=True, nogil=True)
def draw_matched_labels(streams, logs, labels):
    """Draw `labels[row]` from `logs[row, cluster]`."""
    n_clusters = logs.shape[1]
    stream, probabilities = np.empty(1, dtype=np.uint64), np.empty(n_clusters)
    for row in range(len(labels)):
        start_user(streams, row, 0, stream)
        highest, total = logs[row].max(), 0.0
        for cluster in range(n_clusters):
            behind = logs[row, cluster] - highest
            probabilities[cluster] = np.exp(behind) if behind > -45.0 else 0.0  # below 2^-53
            total += probabilities[cluster]
        u, label = uniform(stream) * total, 0
        while label < n_clusters - 1 and u >= probabilities[label]:
            u -= probabilities[label]
            label += 1
        labels[row] = label


@njit(cache=True, nogil=True)
def judge_labels(streams, rows, log_ratios, accepted):
    """Fill `accepted[place]`: is the label that `rows[place]` has drawn accepted? By the random
    number of the row's stream after the one that the label was drawn by."""
    stream = np.empty(1, dtype=np.uint64)
    for place in range(len(rows)):
        start_user(streams, rows[place], 0, stream)
        uniform(stream)
        accepted[place] = accepts(stream, log_ratios[place])
