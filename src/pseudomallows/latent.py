"""The latent full rankings of users who are known in part: exact draws, exact likelihood."""

import functools
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .executors import Executor, Threads, blocks
from .kernels.costs import count_ranks, footrule_costs, total_cost
from .kernels.latent import draw_latent, log_likelihoods, pair_ranks, swap_partners
from .kernels.mallows import partition_and_distance
from .kernels.streams import CENTRE, start_stream
from .preferences import Preferences
from .rankings import check_alpha, check_ranking, rank_randomly


class Latent:
    """What a fit needs to know of the users: counts of ranks, drawn anew for what is not known.

    Rows that say nothing are left out, so they change nothing. A row of weight w counts as w users,
    each with a latent ranking and a stream of random numbers of its own: the same bits as w rows.
    """

    def __init__(self, prefs: Preferences, executor: Executor | None = None):
        informative = prefs.is_informative
        if not informative.any():
            raise ValueError(
                "no user has ranked anything: give at least one row with a rank, and a weight "
                "above 0"
            )
        full = informative & prefs.is_full
        partial = informative & ~prefs.is_full
        self.n_items = prefs.n_items
        self.n_users = int(prefs.weights[informative].sum())
        self.mean_ranks = prefs.mean_ranks()
        self._fixed = _counts(prefs, informative)
        self._n_full = int(prefs.weights[full].sum())
        self._full_costs = footrule_costs(_counts(prefs, full))
        self.known_costs = footrule_costs(self._fixed)  # [item, rank - 1], of the ranks known
        self._partial, self._partial_weights = prefs.rankings[partial], prefs.weights[partial]
        self._first_users = np.cumsum(self._partial_weights) - self._partial_weights
        self._executor = Threads() if executor is None else executor

    @property
    def is_full(self) -> bool:
        """Is everything known?"""
        return len(self._partial) == 0

    def draw(
        self, consensus: NDArray[np.int32], alpha: float, seed: int, draw: int
    ) -> NDArray[np.int64]:
        """Draw all latent rankings; return ``costs[item, rank - 1]`` of the completed data.

        Then moves `consensus` and the latent rankings together, by swaps that leave the exact
        posterior as it is: a consensus given its own latent rankings alone would hardly move.
        """
        lam = alpha / self.n_items
        stream, partners = np.empty(1, dtype=np.uint64), np.empty(self.n_items, dtype=np.int64)
        start_stream(seed, draw, CENTRE, stream)
        pair_ranks(stream, consensus, partners)

        def count(rows: slice) -> NDArray[np.int64]:
            counts = np.zeros((2, self.n_items, self.n_items), dtype=np.int64)
            draw_latent(
                seed,
                draw,
                self._first_users[rows],
                self._partial[rows],
                self._partial_weights[rows],
                consensus,
                lam,
                partners,
                counts[0],
                counts[1],
                np.empty((0, self.n_items), dtype=np.int32),
            )
            return counts

        counts, shared = self._fixed.copy(), np.zeros_like(self._fixed)
        for part in self._executor.map(count, blocks(len(self._partial))):
            counts += part[0]
            shared += part[1]
        swap_partners(stream, partners, shared, lam, consensus, counts)
        return np.asarray(footrule_costs(counts))

    def log_likelihood(self, consensus: NDArray[np.int32], alpha: float) -> float:
        """Log probability of all that is known, given consensus and alpha; exact."""
        log_partition = _log_partition(self.n_items, alpha)
        full = -alpha / self.n_items * float(total_cost(self._full_costs, consensus))
        full -= self._n_full * log_partition
        values = _log_likelihoods(self._partial, consensus, alpha, log_partition, self._executor)
        return full + float(self._partial_weights @ values)

    def start(
        self, alpha: float, rng: np.random.Generator, n_rounds: int = 10
    ) -> NDArray[np.int32]:
        """A good consensus to start from: the exact MAP for full rankings.

        For partial ones, the ranking of the mean ranks, improved by rounds of drawing the latent
        rankings and taking their exact MAP (stochastic EM).
        """
        if self.is_full:
            return best_assignment(self.known_costs)
        consensus = rank_randomly(self.mean_ranks, rng)
        seed = int(rng.integers(2**63))
        for n_round in range(n_rounds):
            consensus = best_assignment(self.draw(consensus, alpha, seed, n_round))
        return consensus


def log_likelihood(prefs: Preferences, consensus: ArrayLike, alpha: float) -> NDArray[np.float64]:
    """Log probability of what is known of each user, given the consensus and alpha; exact.

    The sum over all full rankings that agree with it, by matchings on a line, in time n_items^2 a
    user. Row weights are not used: a value is that of one person.

    >>> prefs = Preferences.from_rankings([[1, 2, 3], [1, 0, 0], [0, 0, 0]])
    >>> np.exp(log_likelihood(prefs, [1, 2, 3], alpha=0))
    array([0.16666667, 0.33333333, 1.        ])
    """
    center = check_ranking(consensus, "consensus")
    if len(center) != prefs.n_items:
        raise ValueError(f"consensus must have {prefs.n_items} items, got {len(center)}")
    alpha = check_alpha(alpha)
    log_partition = _log_partition(prefs.n_items, alpha)
    return _log_likelihoods(prefs.rankings, center, alpha, log_partition, Threads())


def best_assignment(costs: NDArray[Any]) -> NDArray[np.int32]:
    """The consensus of the lowest total cost, by linear assignment."""
    from scipy.optimize import linear_sum_assignment

    items, ranks = linear_sum_assignment(costs)
    consensus = np.empty(len(costs), dtype=np.int32)
    consensus[items] = ranks + 1
    return consensus


@functools.lru_cache(maxsize=64)
def _log_partition(n_items: int, alpha: float) -> float:
    return float(partition_and_distance(n_items, alpha / n_items)[0])


def _counts(prefs: Preferences, rows: NDArray[np.bool_]) -> NDArray[np.int64]:
    counts = np.zeros((prefs.n_items, prefs.n_items), dtype=np.int64)
    count_ranks(prefs.rankings[rows], prefs.weights[rows], counts)
    return counts


def _log_likelihoods(
    rankings: NDArray[np.int32],
    consensus: NDArray[np.int32],
    alpha: float,
    log_partition: float,
    executor: Executor,
) -> NDArray[np.float64]:
    values = np.empty(len(rankings))

    def fill(rows: slice) -> None:
        lam = alpha / len(consensus)
        log_likelihoods(rankings[rows], consensus, lam, log_partition, values[rows])

    for _ in executor.map(fill, blocks(len(rankings))):
        pass
    return values
