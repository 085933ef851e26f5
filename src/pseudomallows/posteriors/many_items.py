"""Answers from draws of rankings of many items, without a table of items and ranks.

``draws[draw, item]`` are ranks, and ``weights[draw]`` sum to 1.
"""

import numpy as np
from numpy.typing import NDArray

from ..engines.executors import all_cores, blocks
from ..engines.memory import as_size
from ..kernels.rank_draws import cp_of_draws, intervals_of_draws

MOST_IN_TABLES = 2000  # items up to which answers come from a table of items and ranks
MOST_PROBABILITIES = 20_000  # items up to which one may ask for such a table
BLOCK_OF_ITEMS = 1 << 14

Draws = NDArray[np.int32]
Floats = NDArray[np.float64]


def check_room(n_items: int) -> None:
    """Refuse a table of items and ranks that would be too large."""
    if n_items > MOST_PROBABILITIES:
        raise ValueError(
            f"rank probabilities of {n_items:,} items would take {as_size(8 * n_items**2)} of "
            "memory: ask for intervals(), summary() or point_consensus(), which take little"
        )


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
    if not 0 < probability <= 1:
        raise ValueError(f"probability must be above 0 and at most 1, got {probability}")
    found = np.empty((draws.shape[1], 2), dtype=np.int32)

    def work(part: slice) -> None:
        mine = np.ascontiguousarray(draws[:, part])
        intervals_of_draws(mine, weights, probability, found[part])

    list(all_cores().map(work, blocks(draws.shape[1], BLOCK_OF_ITEMS)))
    return found


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
