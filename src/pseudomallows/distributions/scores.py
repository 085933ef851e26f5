"""Scores: how far draws are from a reference."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..rankings import check_number, check_rankings

FLOOR = 1e-4


def marginal_divergence(
    draws: ArrayLike,
    reference_draws: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    floor: float = FLOOR,
) -> float:
    """The paper's divergence: the sum over items of KL(rank in draws || rank in reference).

    Empty cells would make it infinite, so on both sides every probability below `floor` is raised
    to it and the rows are scaled to sum to 1 again. The value depends on the floor where draws
    reach ranks that the reference never does: compare figures with the same floor only.

    Parameters
    ----------
    draws, reference_draws : (n_draws, n_items) array_like of int
        Rankings.
    weights : (n_draws,) array_like, optional
        Weights of `draws`.
    floor : float
        Smallest probability of a cell, on both sides.

    Examples
    --------
    >>> marginal_divergence([[1, 2], [2, 1]], [[1, 2], [2, 1], [2, 1], [1, 2]])
    0.0
    """
    left, right = check_rankings(draws, "draws"), check_rankings(reference_draws, "reference_draws")
    if left.shape[1] != right.shape[1]:
        raise ValueError(f"draws have {left.shape[1]} items, reference_draws have {right.shape[1]}")
    share, floor = None, check_number(floor, "floor")
    if weights is not None:
        try:
            share = np.asarray(weights, dtype=np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"weights must be numbers, got {weights!r}") from None
        if not (np.isfinite(share).all() and share.min(initial=0) >= 0 < share.max(initial=0)):
            raise ValueError("weights must be finite numbers, 0 or more, and not all 0")
    return rank_divergence(share_of_ranks(left, share), share_of_ranks(right), floor=floor)


def rank_divergence(
    probabilities: NDArray[np.float64], reference: NDArray[np.float64], *, floor: float = FLOOR
) -> float:
    """The same from tables ``probabilities[item, rank - 1]``."""
    if not 0 < floor < 1:
        raise ValueError(f"floor must be between 0 and 1, got {floor}")
    left, right = (np.maximum(table, floor) for table in (probabilities, reference))
    left, right = (table / table.sum(axis=1, keepdims=True) for table in (left, right))
    return float((left * np.log(left / right)).sum())


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


def rand_index(labels: NDArray[np.int64], others: NDArray[np.int64]) -> float:
    """Adjusted Rand index of two partitions: 1 if they are the same, 0 on average by chance.

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
    """How many equal draws the weighted draws are worth (Kish).

    >>> weighted_effective_size(np.array([0.5, 0.5, 0.0]))
    2.0
    """
    return float(weights.sum() ** 2 / (weights**2).sum())
