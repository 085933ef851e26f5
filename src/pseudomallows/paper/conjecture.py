"""The conjecture of the optimal visit order (section 2.4), to exponential order in the users.

Rankings come from Mallows around 1, 2, ..., n, and N of them add up to N times the mean costs
``C[item, rank - 1] = E|R_item - rank|``. A visit order is *consistent* if at each step the item's
own rank has the smallest mean cost among the ranks still free. If it is not, Pseudo-Mallows settles
on a wrong ranking, and its divergence from the posterior grows like N. If it is, the divergence
falls like exp(-alpha / n * N * rate), where the rate is the smaller of two numbers: the smallest
*gap* on the way, the mean cost of the second best free rank less that of the own one; and the gap
of the posterior itself, the cheapest exchange of ranks between items. V orders have the largest
smallest gap, for every n and alpha: docs/paper/conjecture.md has the proof.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..distances.mallows import Mallows
from ..rankings import check_alpha, check_count
from .visit_orders import check_order

ROUNDING = 1e-11  # of a difference of costs: at alpha = 0 those of mirrored ranks must be 0
MOST_ITEMS = 20  # of a sum over 2^n sets of items

Floats = NDArray[np.float64]


class Rate(NamedTuple):
    """How fast Pseudo-Mallows nears the posterior along a visit order, as users are added."""

    bottleneck: float  # the smallest gap along the order; 0 or below: not consistent
    posterior_gap: float  # of the posterior from its own mode

    @property
    def is_consistent(self) -> bool:
        """Does Pseudo-Mallows settle on the true consensus?"""
        return self.bottleneck > ROUNDING

    @property
    def rate(self) -> float:
        """The divergence falls like exp(-alpha / n_items * n_users * rate); minus infinity where it
        grows."""
        return min(self.bottleneck, self.posterior_gap) if self.is_consistent else -np.inf


def mean_costs(n_items: int, alpha: float) -> Floats:
    """``costs[item, rank - 1]``: the expected distance of the item's rank from `rank`, by Mallows
    with the footrule around 1, 2, ..., n_items.

    >>> mean_costs(3, 1.0).round(2)
    array([[0.65, 0.72, 1.35],
           [1.  , 0.55, 1.  ],
           [1.35, 0.72, 0.65]])
    """
    n_items = check_count(n_items, "n_items")
    ranks = np.arange(1, n_items + 1)
    probabilities = Mallows(ranks, check_alpha(alpha)).rank_probabilities()
    return np.asarray(probabilities @ np.abs(ranks[:, None] - ranks))


def order_rate(visit_order: ArrayLike, alpha: float) -> Rate:
    """The rate of a visit order of the items 0, 1, ..., n - 1 of the true consensus 1, 2, ..., n.

    >>> order_rate([1, 0, 2], 0.5).is_consistent, order_rate([0, 1, 2], 0.5).is_consistent
    (True, False)
    >>> order_rate([0, 1, 2], 2.0).is_consistent
    True
    """
    order = check_order(visit_order)
    costs = mean_costs(len(order), alpha)
    free = np.ones(len(order), dtype=np.bool_)
    bottleneck = np.inf
    for item in order:
        bottleneck = min(bottleneck, _gaps(costs, free)[item])
        free[item] = False
    return Rate(float(bottleneck), _posterior_gap(costs))


def best_order(n_items: int, alpha: float) -> NDArray[np.int64]:
    """A visit order of the largest bottleneck: next the item with the largest gap.

    Gaps only grow as ranks are used: of any other order, the first item that is still to come has
    at least the gap that it has there, so the largest gap is no smaller. V orders have the same
    bottleneck.

    >>> best_order(7, 1.5)
    array([3, 2, 1, 0, 4, 5, 6])
    """
    costs = mean_costs(n_items, alpha)
    free, order = np.ones(len(costs), dtype=np.bool_), np.empty(len(costs), dtype=np.int64)
    for step in range(len(order)):
        gaps = np.where(free, _gaps(costs, free), -np.inf)
        order[step] = np.argmax(gaps >= gaps.max() - ROUNDING)  # of equal ones the first
        free[order[step]] = False
    return order


def count_consistent_orders(n_items: int, alpha: float) -> int:
    """Number of consistent visit orders, of at most 20 items.

    An order is consistent if each item comes after all those whose ranks would be as cheap for it
    as its own: a sum over the sets of items that may have been visited.

    >>> [count_consistent_orders(5, alpha) for alpha in (0.5, 1.0, 2.0)]
    [4, 6, 120]
    """
    costs = mean_costs(n_items, alpha)
    if len(costs) > MOST_ITEMS:
        raise ValueError(f"n_items must be {MOST_ITEMS} or less, got {n_items}")
    is_before = costs <= np.diag(costs)[:, None] + ROUNDING
    np.fill_diagonal(is_before, False)
    visited = np.arange(1 << len(costs))
    after = (is_before * (1 << np.arange(len(costs)))).sum(axis=1)  # as sets, in bits
    numbers = [0] * len(visited)  # of ways to visit a set; whole numbers of any size
    numbers[0] = 1
    for item_sets in visited.tolist():
        if numbers[item_sets]:
            for item, needed in enumerate(after.tolist()):
                if not item_sets >> item & 1 and item_sets & needed == needed:
                    numbers[item_sets | 1 << item] += numbers[item_sets]
    return numbers[-1]


def _gaps(costs: Floats, free: NDArray[np.bool_]) -> Floats:
    """By how much the second best free rank is worse than the own, for each item, were it visited
    now; below 0 if another one is better, infinite if there is no choice."""
    others = np.where(free, costs, np.inf)
    np.fill_diagonal(others, np.inf)
    return np.asarray(others.min(axis=1) - np.diag(costs))


def _posterior_gap(costs: Floats) -> float:
    """The mean cost of the cheapest exchange of ranks, which is between neighbours: the costs are a
    strict Monge array, since ranks of later items are stochastically larger."""
    own, later, earlier = np.diag(costs), np.diag(costs, 1), np.diag(costs, -1)
    return float((later + earlier - own[1:] - own[:-1]).min(initial=np.inf))
