"""estimate_alpha: how concentrated the users are around their consensus."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .executors import Executor
from .kernels.mallows import expected_ranks
from .latent import HIGHEST_ALPHA, Latent, best_assignment, check_informative
from .mallows import Mallows, find_root
from .preferences import Clicks, Preferences, SizeTable, check_preferences
from .shards import make_latent

METHODS = ("similarity", "likelihood")
N_ROUNDS = 8  # of consensus given alpha, alpha given consensus, for partial rankings


def estimate_alpha(
    prefs: Preferences,
    method: str = "similarity",
    *,
    rng: np.random.Generator | int | None = None,
    executor: Executor | None = None,
) -> float:
    """Estimate alpha from what is known of the users.

    Parameters
    ----------
    prefs : Preferences
        What is known of the users.
    method : str
        "similarity": the alpha whose expected cosine similarity between two users is that of the
        data; the paper's method with the exact curve in place of simulated data sets, for full
        rankings and for clicks. "likelihood": the alpha under which the data are most likely, with
        the consensus that is best for it; exact for full rankings, and by stochastic EM on the
        exact likelihood for partial ones and clicks.
    rng : numpy.random.Generator or seed, optional
        Used by "likelihood" for partial rankings and clicks only.

    Examples
    --------
    >>> rankings = Mallows(np.arange(1, 21), alpha=4).draw(500, rng=1)
    >>> prefs = Preferences.from_rankings(rankings)
    >>> round(estimate_alpha(prefs), 1), round(estimate_alpha(prefs, method="likelihood"), 1)
    (4.1, 4.1)
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}, got {method!r}")
    check_preferences(prefs)
    if method == "similarity" and isinstance(prefs, Clicks):
        check_informative(prefs.is_informative)
        return _finite(_alpha_by_click_similarity(prefs.by_size()))
    latent = make_latent(prefs, executor)
    if method == "similarity":
        alpha = _alpha_by_similarity(latent)
    elif latent.is_full:
        alpha = latent.best_alpha(best_assignment(latent.known_costs))
    else:
        alpha = _alpha_by_em(latent, np.random.default_rng(rng))
    return _finite(alpha)


def _finite(alpha: float) -> float:
    if math.isinf(alpha):
        raise ValueError(
            "the users agree in everything (or there is one user only), so no finite alpha is "
            "best: give alpha, or use method='mcmc', where its prior decides"
        )
    return alpha


def expected_similarity(n_items: int, alpha: float) -> float:
    """Mean cosine similarity of two users of a Mallows population, exact, in time n_items^2.

    >>> round(expected_similarity(20, 0.0), 4), round(expected_similarity(20, 1e4), 4)
    (0.7683, 1.0)
    """
    means = np.empty(n_items)
    expected_ranks(n_items, alpha / n_items, means)
    return float((means**2).sum() / _squared_norm(n_items))


def simulated_similarity(
    n_items: int,
    alphas: ArrayLike,
    n_users: int = 500,
    rng: np.random.Generator | int | None = None,
) -> NDArray[np.float64]:
    """The paper's way to the same curve: simulate a data set for each alpha of a grid."""
    rng = np.random.default_rng(rng)
    consensus = np.arange(1, n_items + 1)
    draws = (Mallows(consensus, alpha).draw(n_users, rng) for alpha in np.atleast_1d(alphas))
    return np.array([mean_similarity(rankings.sum(axis=0), n_users) for rankings in draws])


def mean_similarity(rank_sums: NDArray[np.floating] | NDArray[np.integer], n_users: int) -> float:
    """Mean cosine similarity of all pairs of users, from the sum of their full rankings alone."""
    norm = _squared_norm(len(rank_sums))
    total = float((rank_sums.astype(np.float64) ** 2).sum())
    return (total / norm - n_users) / (n_users * (n_users - 1))


def _squared_norm(n_items: int) -> float:
    return n_items * (n_items + 1) * (2 * n_items + 1) / 6


def _alpha_by_similarity(latent: Latent) -> float:
    if not latent.is_full:
        raise ValueError(
            "method='similarity' needs full rankings or clicks, and some rankings are partial: use "
            "method='likelihood'"
        )
    if latent.n_users < 2:
        return math.inf
    similarity = mean_similarity(latent.mean_ranks * latent.n_users, latent.n_users)
    if similarity > 1 - 1e-12:
        return math.inf
    return find_root(lambda alpha: expected_similarity(latent.n_items, alpha) - similarity)


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
    clicked = cumulative[:, sizes - 1] / np.sqrt(sizes)  # [item, size]: chance, over the norm
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


def _alpha_by_click_similarity(table: SizeTable) -> float:
    if table.users.sum() < 2:
        return math.inf
    similarity, n_items = _mean_similarity_of(table), table.counts.shape[1]

    def excess(alpha: float) -> float:
        return _similarity_of_sizes(n_items, alpha, table.sizes, table.users) - similarity

    return math.inf if excess(HIGHEST_ALPHA) <= 1e-12 else find_root(excess, tolerance=1e-5)


def _alpha_by_em(latent: Latent, rng: np.random.Generator) -> float:
    alpha, found = 1.0, []
    for _ in range(N_ROUNDS):
        consensus = latent.start(min(alpha, HIGHEST_ALPHA), rng)
        alpha = latent.best_alpha(consensus)
        height = latent.log_likelihood(consensus, min(alpha, HIGHEST_ALPHA))
        found.append((height, alpha))
    return max(found)[1]
