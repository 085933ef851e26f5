"""Mean ranks, intervals and the CP order: from draws, without a table of items and ranks.

``draws[draw, item]`` are ranks, and ``weights[draw]`` sum to 1.
"""

import numpy as np
from numpy.typing import NDArray

from ..engines.executors import all_cores, blocks
from ..kernels.rank_draws import cp_of_draws, intervals_of_draws

BLOCK_OF_ITEMS = 1 << 14  # in a task: their draws, of some hundred chains, fit into a cache

Draws = NDArray[np.int32]
Floats = NDArray[np.float64]


def mean_ranks(draws: Draws, weights: Floats) -> Floats:
    """Mean rank of each item."""
    means = np.zeros(draws.shape[1])
    for draw, weight in zip(draws, weights, strict=True):
        means += weight * draw
    return means


def cp_items(draws: Draws, weights: Floats) -> NDArray[np.int64]:
    """``[place]``: the item, among those left, that is most likely there or before; of ties the
    better mean rank."""
    n_draws, n_items = draws.shape
    orderings = np.empty((n_draws, n_items), dtype=np.int32)
    for ordering, draw in zip(orderings, draws, strict=True):
        ordering[draw - 1] = np.arange(n_items)
    chosen = np.empty(n_items, dtype=np.int64)
    if np.ptp(weights) == 0:
        weights = np.ones(n_draws)  # so that equal numbers of draws are ties
    cp_of_draws(orderings, weights, mean_ranks(draws, weights), chosen)
    return chosen


def intervals(draws: Draws, weights: Floats, probability: float) -> NDArray[np.int32]:
    """``[item]`` is the shortest (lowest, highest) that holds `probability` of the item's ranks."""
    _check_probability(probability)
    lowest_highest = np.empty((draws.shape[1], 2), dtype=np.int32)

    def work(part: slice) -> None:
        items = np.ascontiguousarray(draws[:, part])
        intervals_of_draws(items, weights, probability, lowest_highest[part])

    list(all_cores().map(work, blocks(draws.shape[1], BLOCK_OF_ITEMS)))
    return lowest_highest


def shares_of_ranks(draws: Draws, weights: Floats, items: NDArray[np.int64], last: int) -> Floats:
    """``shares[place, rank - 1]`` of draws that give the item ``items[place]`` that rank, for the
    ranks 1 to `last`."""
    shares = np.zeros((len(items), last))
    places = np.arange(len(items))
    for draw, weight in zip(draws, weights, strict=True):
        ranks = draw[items]
        shown = ranks <= last
        shares[places[shown], ranks[shown] - 1] += weight
    return shares


# From tables of counted ranks


def intervals_of(probabilities: NDArray[np.float64], probability: float) -> NDArray[np.int32]:
    """``[item]`` is the shortest (lowest, highest) that holds `probability` of the item's ranks,
    from ``probabilities[item, rank - 1]``."""
    _check_probability(probability)
    rows = [_shortest_run(row, probability) for row in probabilities]
    return np.array(rows, dtype=np.int32)


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
    _check_probability(probability)
    order = np.argsort(values, kind="stable")
    values, sums = values[order], np.concatenate([[0.0], weights[order].cumsum()])
    ends = np.searchsorted(sums[1:], sums[:-1] + probability * sums[-1] - 1e-9)
    starts = np.flatnonzero(ends < len(values))
    best = starts[np.argmin(values[ends[starts]] - values[starts])]
    return float(values[best]), float(values[ends[best]])


def _check_probability(probability: float) -> None:
    if not 0 < probability <= 1:
        raise ValueError(f"probability must be above 0 and at most 1, got {probability}")
