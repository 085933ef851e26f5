"""The scores of the items for each user, by a regression on the user's other clicks."""

import numpy as np
from numpy.typing import NDArray

from ...engines.executors import Executor, Threads
from ...preferences import Clicks
from .products import AllProducts, solve_regressions

TOLERANCE = 1e-5  # of the weights of a single regression
Floats = NDArray[np.float64]


def products_of(clicks: Clicks, executor: Executor) -> Floats:
    """How many people clicked both of two items: all that the scores need of the users.

    Whole numbers, so that sums over blocks of users are exact in any order.
    """
    return AllProducts(clicks, executor).of(0.0)


def ridge_weights(products: Floats, ridge: float, executor: Executor | None = None) -> Floats:
    """Regression of each item on the others, from their products, with weights of 0 or more and a
    zero diagonal. `ridge` is in units of the mean diagonal.

    >>> ridge_weights(np.array([[4.0, 2.0], [2.0, 4.0]]), ridge=0.5)
    array([[0.        , 0.33333333],
           [0.33333333, 0.        ]])
    """
    scale = max(ridge * float(np.trace(products)) / len(products), 1e-6)
    solved = np.zeros_like(products)
    solve_regressions(products, (scale, 0.0, TOLERANCE), solved, executor or Threads(1))
    return np.ascontiguousarray(solved.T)
