"""Scores of draws and of partitions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FLOOR = 1e-4  # of a probability: an empty cell of some thousand draws, which would be infinite


def share_of_ranks(
    draws: NDArray[np.int32], weights: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """``shares[item, rank - 1]`` is the (weighted) share of draws that give the item that rank."""
    n_draws, n_items = draws.shape
    if weights is None:
        weights = np.ones(n_draws)
    if weights.shape != (n_draws,):
        raise ValueError(f"weights must have one number a draw ({n_draws}), got {weights.shape}")
    cells = (np.arange(n_items) * n_items + draws - 1).ravel()
    counts = np.bincount(cells, np.repeat(weights, n_items), n_items * n_items)
    return counts.reshape(n_items, n_items) / weights.sum()


def rank_divergence(
    probabilities: NDArray[np.float64], reference: NDArray[np.float64], *, floor: float = FLOOR
) -> float:
    """The sum over items of KL(probabilities || reference), of tables ``probabilities[item, rank -
    1]``, every cell below `floor` raised to it."""
    if not 0 < floor < 1:
        raise ValueError(f"floor must be between 0 and 1, got {floor}")
    left, right = (np.maximum(table, floor) for table in (probabilities, reference))
    left, right = (table / table.sum(axis=1, keepdims=True) for table in (left, right))
    return float((left * np.log(left / right)).sum())


def rand_index(labels: NDArray[np.int64], others: NDArray[np.int64]) -> float:
    """Adjusted Rand index of two partitions: 1 if they are the same; 0 on average if unrelated.

    >>> rand_index(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]))
    1.0
    """
    table = np.zeros((labels.max() + 1, others.max() + 1))
    np.add.at(table, (labels, others), 1)
    pairs = [(x * (x - 1) / 2).sum() for x in (table, table.sum(axis=0), table.sum(axis=1))]
    expected = pairs[1] * pairs[2] / (len(labels) * (len(labels) - 1) / 2)
    highest = (pairs[1] + pairs[2]) / 2
    return 1.0 if highest == expected else float((pairs[0] - expected) / (highest - expected))


def weighted_effective_size(weights: NDArray[np.float64]) -> float:
    """Effective size of weighted draws (Kish).

    >>> weighted_effective_size(np.array([0.5, 0.5, 0.0]))
    2.0
    """
    return float(weights.sum() ** 2 / (weights**2).sum())
