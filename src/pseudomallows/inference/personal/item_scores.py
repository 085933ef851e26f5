"""The scores of the items for each user: by a regression on the user's other clicks, or given."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...engines.executors import Executor, Threads
from ...posteriors.personal import clicks_matrix
from ...preferences import Clicks
from .products import AllProducts, solve_regressions

TOLERANCE = 1e-5  # of the weights of a single regression
MAX_SCORE = 1e100  # beyond it, sums of squares overflow
Floats = NDArray[np.float64]
Train = Callable[[Any], ArrayLike]


def products_of(clicks: Clicks, executor: Executor) -> Floats:
    """How many people clicked both of two items: all that the scores need of the users.

    Whole numbers, so that sums over blocks of users are exact in any order.
    """
    return AllProducts(clicks, executor).of(0.0)


def ridge_weights(
    products: Floats, ridge: float, nonnegative: bool = True, executor: Executor | None = None
) -> Floats:
    """Regression of each item on the others, from their products, with a zero diagonal.

    `ridge` is in units of the mean diagonal. With weights of any sign this is the closed form of
    Steck (2019); weights of 0 or more recommend better on the data we have seen.

    >>> ridge_weights(np.array([[4.0, 2.0], [2.0, 4.0]]), ridge=0.5)
    array([[0.        , 0.33333333],
           [0.33333333, 0.        ]])
    """
    scale = max(ridge * float(np.trace(products)) / len(products), 1e-6)
    if nonnegative:
        solved = np.zeros_like(products)
        solve_regressions(products, (scale, 0.0, TOLERANCE), solved, executor or Threads(1))
        return np.ascontiguousarray(solved.T)
    inverse = np.linalg.inv(products + scale * np.eye(len(products)))
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0.0)
    return weights


def given_scores(scores: Any, clicks: Clicks) -> Floats:
    """Scores of all users from an array, or from a function that learns them from the clicks."""
    matrix = clicks_matrix(clicks.starts, clicks.codes, clicks.n_items)
    found = scores(matrix) if callable(scores) else scores
    found = found.toarray() if hasattr(found, "toarray") else found
    try:
        values = np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"scores must be an array of numbers, users x items: {error}") from None
    if values.shape != (clicks.n_users, clicks.n_items):
        raise ValueError(
            f"scores must have {clicks.n_users} users and {clicks.n_items} items, got an array of "
            f"shape {values.shape}"
        )
    wrong = ~np.isfinite(values)
    if wrong.any():
        user, item = np.argwhere(wrong)[0]
        raise ValueError(
            f"scores must be finite numbers, got {values[user, item]} for user {user} and item "
            f"{item}; {int(wrong.sum())} of {values.size} are wrong"
        )
    if np.ptp(values) == 0:
        raise ValueError(f"scores must not be all the same, got {values.flat[0]} everywhere")
    if np.abs(values).max() > MAX_SCORE:
        raise ValueError(f"scores must be at most 1e100, got {np.abs(values).max():.3g}")
    return np.asarray((values - values.mean()) / values.std())


def scores_from(model: Any) -> Train:
    """Adapter for the recommenders of `implicit`: their scores, learnt anew from given clicks.

    Give a model that is not fitted, for instance
    ``scores=pm.inference.scores_from(AlternatingLeastSquares(factors=64))``.
    Works with anything that has a `fit` for a sparse matrix and, after it, `user_factors` and
    `item_factors`, or a `similarity` of items.
    """

    def train(clicks: Any) -> ArrayLike:
        fitted, matrix = copy.deepcopy(model), clicks.tocsr().astype(np.float32)
        fitted.fit(matrix, show_progress=False)
        if hasattr(fitted, "user_factors"):
            return np.asarray(fitted.user_factors) @ np.asarray(fitted.item_factors).T
        return np.asarray((matrix @ fitted.similarity).todense())

    return train
