"""From clicks to scores of the items: by a matrix from item to item, whole or sparse, by factors,
and by a bias."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels.click_rows import ClickRows
from ..kernels.items.top_items import (
    FactorRows,
    SparseRows,
    add_factor_rows,
    add_sparse_rows,
    add_weight_rows,
)

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]


def no_factors() -> Singles:
    """For a score without them."""
    return np.empty((0, 0), np.float32)


@dataclass(frozen=True, eq=False)
class ItemScores:
    """A click on an item adds a row of `weights`, an array or a sparse one, and ``left[item] @
    right`` to the scores of the others; `bias` is added for everybody. What is empty adds nothing.
    """

    weights: Any = None
    left: Singles = field(default_factory=no_factors)  # [item, factor]
    right: Singles = field(default_factory=no_factors)  # [factor, item]
    bias: Floats = field(default_factory=lambda: np.empty(0))

    @property
    def is_sparse(self) -> bool:
        """Is there no array of items x items?"""
        return not isinstance(self.weights, np.ndarray)

    @cached_property
    def _sparse(self) -> SparseRows:
        rows = self.weights
        starts = rows.indptr.astype(np.int64)
        return SparseRows(starts, rows.indices.astype(np.int32, copy=False), rows.data)

    @cached_property
    def _single(self) -> Singles:
        weights: Singles = np.ascontiguousarray(self.weights, dtype=np.float32)
        return weights

    @cached_property
    def _factors(self) -> FactorRows:
        left, right = (
            np.ascontiguousarray(side, dtype=np.float32) for side in (self.left, self.right)
        )
        return FactorRows(left, right, np.einsum("if,fi->i", left, right))

    @cached_property
    def _bias(self) -> Singles:
        return self.bias.astype(np.float32)

    def of(self, clicks: ClickRows, n_items: int) -> Singles:
        """``scores[row, item]`` of some rows of clicks, in single precision."""
        scores = np.zeros((len(clicks.starts) - 1, n_items), np.float32)
        self.add(clicks, scores)
        return scores

    def add(self, clicks: ClickRows, scores: Singles) -> None:
        """Add them to ``scores[row, item]``."""
        if isinstance(self.weights, np.ndarray):
            add_weight_rows(clicks, self._single, scores)
        elif self.weights is not None:
            add_sparse_rows(clicks, self._sparse, scores)
        if self.left.size:
            add_factor_rows(clicks, self._factors, scores)
        if self.bias.size:
            scores += self._bias

    def add_weighted(self, clicks: Any, scores: Singles) -> None:
        """The same for a sparse matrix of clicks of different weights; what is clicked has no
        meaning then."""
        if isinstance(self.weights, np.ndarray):
            scores += clicks @ self._single
        elif self.weights is not None:
            scores += (clicks @ self.weights).toarray()
        if self.left.size:
            scores += (clicks @ self.left.astype(np.float32)) @ self.right.astype(np.float32)
        if self.bias.size:
            scores += self._bias

    def times(self, factors: Floats | None) -> "ItemScores":
        """The scores of each item times its factor."""
        if factors is None:
            return self
        weights = self.weights
        if isinstance(weights, np.ndarray):
            weights = weights * factors.astype(weights.dtype)
        elif weights is not None:
            weights = weights.copy()
            weights.data = weights.data * factors.astype(weights.dtype)[weights.indices]
        right = self.right * factors.astype(self.right.dtype) if self.right.size else self.right
        bias = self.bias * factors if self.bias.size else self.bias
        return ItemScores(weights, self.left, right, bias)

    def dense(self) -> Floats:
        """``weights[clicked, item]`` as one array of items x items, with a zero diagonal."""
        n_items = len(self.left) or self.weights.shape[0]
        weights = np.zeros((n_items, n_items))
        if isinstance(self.weights, np.ndarray):
            weights += self.weights
        elif self.weights is not None:
            weights += self.weights.toarray()
        if self.left.size:
            weights += self.left.astype(np.float64) @ self.right.astype(np.float64)
        np.fill_diagonal(weights, 0.0)
        return weights

    def row(self, item: int) -> Floats:
        """What a click on one item adds to the score of each, without an array of all pairs."""
        return self._line(item, self.weights, lambda: self.left[item] @ self.right)

    def column(self, item: int) -> Floats:
        """What a click on each item adds to the score of one."""
        turned = None if self.weights is None else self.weights.T
        return self._line(item, turned, lambda: self.left @ self.right[:, item])

    def _line(self, item: int, weights: Any, by_factors: Any) -> Floats:
        if isinstance(weights, np.ndarray):
            added = weights[item].astype(np.float64)
        elif weights is not None:
            added = np.asarray(weights.tocsr()[[item]].toarray()[0], dtype=np.float64)
        else:
            added = np.zeros(len(self.left))
        if self.left.size:
            added += by_factors()
        added[item] = 0.0
        return added
