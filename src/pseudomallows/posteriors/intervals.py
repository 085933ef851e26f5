"""Mean ranks, intervals and the CP order, from probabilities of ranks."""

import numpy as np
from numpy.typing import NDArray

from ..rankings import orderings_of


def mean_ranks_of(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean rank of each item, from ``probabilities[item, rank - 1]``."""
    return np.asarray(probabilities @ np.arange(1, len(probabilities) + 1))


def intervals_of(probabilities: NDArray[np.float64], probability: float) -> NDArray[np.int32]:
    """``[item]`` is the shortest (lowest, highest) that holds `probability` of the item's ranks."""
    if not 0 < probability <= 1:
        raise ValueError(f"probability must be above 0 and at most 1, got {probability}")
    rows = [_shortest_run(row, probability) for row in probabilities]
    return np.array(rows, dtype=np.int32)


def cp_ordering(probabilities: NDArray[np.float64]) -> NDArray[np.int64]:
    """``ordering[place]`` is the item, among those left, that is most likely there or before; of
    ties the better mean rank."""
    items = orderings_of(mean_ranks_of(probabilities))
    cumulative = probabilities.cumsum(axis=1)[items]
    taken, chosen = np.zeros(len(items)), np.empty(len(items), dtype=np.int64)
    for place in range(len(items)):
        chosen[place] = np.argmax(cumulative[:, place] + taken)  # of ties the first
        taken[chosen[place]] = -np.inf
    return np.asarray(items[chosen])


def _shortest_run(row: NDArray[np.float64], probability: float) -> tuple[int, int]:
    sums = np.concatenate([[0.0], row.cumsum()])
    for length in range(1, len(row) + 1):
        mass = sums[length:] - sums[:-length]
        if mass.max() >= probability - 1e-9:
            lowest = int(mass.argmax()) + 1
            return lowest, lowest + length - 1
    return 1, len(row)


def shortest_span(
    values: NDArray[np.float64], weights: NDArray[np.float64], probability: float
) -> tuple[float, float]:
    """The nearest two values with at least `probability` of the weight from one to the other."""
    order = np.argsort(values, kind="stable")
    values, sums = values[order], np.concatenate([[0.0], weights[order].cumsum()])
    ends = np.searchsorted(sums[1:], sums[:-1] + probability * sums[-1] - 1e-9)
    starts = np.flatnonzero(ends < len(values))
    best = starts[np.argmin(values[ends[starts]] - values[starts])]
    return float(values[best]), float(values[ends[best]])
