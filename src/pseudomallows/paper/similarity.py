"""Alpha by similarity (sections 2.6 and 3.5): that at which two users are expected to be as similar
as in the data. The paper simulates data sets on a grid of alphas; here the curve is exact."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data.blocks import Clicks, SizeTable
from ..distances.distance import find_root
from ..distances.footrule import FOOTRULE
from ..distances.mallows import Mallows
from ..laws.full import FullLaw
from ..laws.law import Law

# Users agree on everything: a share of n exp(-2 alpha / n) does not, 2 in a million of 1,000 items.
HIGHEST_ALPHA = 1e4


def expected_similarity(n_items: int, alpha: float) -> float:
    """Mean cosine similarity of two users of a Mallows population, exact, in time n_items^2.

    >>> round(expected_similarity(20, 0.0), 4), round(expected_similarity(20, 1e4), 4)
    (0.7683, 1.0)
    """
    means = FOOTRULE.expected_ranks(n_items, alpha)
    return float((means**2).sum() / _squared_norm(n_items))


def mean_similarity(rank_sums: NDArray[np.floating] | NDArray[np.integer], n_users: int) -> float:
    """Mean cosine similarity of all pairs of users, from the sum of their full rankings alone."""
    norm = _squared_norm(len(rank_sums))
    total = float((rank_sums.astype(np.float64) ** 2).sum())
    return (total / norm - n_users) / (n_users * (n_users - 1))


def _squared_norm(n_items: int) -> float:
    return n_items * (n_items + 1) * (2 * n_items + 1) / 6


def alpha_by_similarity(law: Law) -> float:
    """The alpha of full rankings that are as similar; infinite, if all are the same."""
    if not isinstance(law, FullLaw) or law.has_ties:
        raise ValueError(
            "method='similarity' needs full rankings or clicks, and some rankings are partial: use "
            "method='likelihood'"
        )
    if law.n_users < 2:
        return math.inf
    similarity = mean_similarity(law.mean_ranks * law.n_users, law.n_users)
    if similarity > 1 - 1e-12:
        return math.inf
    return find_root(lambda alpha: expected_similarity(law.n_items, alpha) - similarity)


def expected_click_similarity(n_items: int, alpha: float, n_clicks: ArrayLike) -> float:
    """Mean cosine similarity of two users who click the first of their ranks, exact.

    `n_clicks` is the number of clicks of each user, 1 or more; only its histogram matters.
    """
    sizes, counts = np.unique(np.asarray(n_clicks), return_counts=True)
    return _similarity_of_sizes(n_items, alpha, sizes, counts)


def _similarity_of_sizes(
    n_items: int, alpha: float, sizes: NDArray[np.int64], counts: NDArray[np.int64]
) -> float:
    cumulative = Mallows(np.arange(1, n_items + 1), alpha).rank_probabilities().cumsum(axis=1)
    clicked = cumulative[:, sizes - 1] / np.sqrt(sizes)  # [item, size]: probability, over the norm
    n_users = int(counts.sum())
    pairs = ((clicked @ counts) ** 2).sum() - ((clicked**2) @ counts).sum()
    return float(pairs / (n_users * (n_users - 1)))


def mean_click_similarity(prefs: Clicks) -> float:
    """Mean cosine similarity of all pairs of users with clicks, without a table of pairs."""
    return _mean_similarity_of(prefs.by_size())


def _mean_similarity_of(table: SizeTable) -> float:
    total = (table.counts / np.sqrt(table.sizes)[:, None]).sum(axis=0)
    n_users = float(table.users.sum())
    return float(((total**2).sum() - n_users) / (n_users * (n_users - 1)))


def alpha_by_click_similarity(table: SizeTable) -> float:
    """The alpha of users who click their first ranks and are as similar."""
    if table.users.sum() < 2:
        return math.inf
    similarity, n_items = _mean_similarity_of(table), table.counts.shape[1]

    def excess(alpha: float) -> float:
        return _similarity_of_sizes(n_items, alpha, table.sizes, table.users) - similarity

    return math.inf if excess(HIGHEST_ALPHA) <= 1e-12 else find_root(excess, tolerance=1e-5)
