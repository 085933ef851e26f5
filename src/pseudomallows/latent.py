"""The latent full rankings of users who are known in part: exact draws, exact likelihood."""

import functools
import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .executors import BLOCK, Executor, Threads, blocks
from .kernels.costs import count_ranks, footrule_costs, total_cost
from .kernels.latent import draw_latent, log_likelihoods, pair_ranks, swap_partners
from .kernels.mallows import partition_and_distance
from .kernels.streams import CENTRE, start_stream
from .mallows import alpha_for_distance
from .preferences import Preferences, Rankings
from .rankings import check_alpha, check_ranking, rank_randomly

HIGHEST_ALPHA = 1e4  # where the search for an alpha ends, if not all is known
Counts = NDArray[np.int64]
Ranking = NDArray[np.int32]


class Latent(ABC):
    """What a fit needs to know of the users: counts of ranks, drawn anew for what is not known.

    Rows that say nothing are left out, so they change nothing. A row of weight w counts as w users,
    each with a latent ranking and a stream of random numbers of its own: the same bits as w rows.
    """

    mean_ranks: NDArray[np.float64]  # or any numbers that rank the items likewise
    known_costs: Counts  # costs[item, rank - 1] of the ranks that are known

    def __init__(self, prefs: Preferences, weights: Counts, executor: Executor | None):
        self.n_items = prefs.n_items
        self.executor = Threads() if executor is None else executor
        self._weights = weights  # of the rows that have a latent ranking
        self._first_users = np.cumsum(weights) - weights
        self._known = np.zeros((prefs.n_items, prefs.n_items), dtype=np.int64)

    @property
    @abstractmethod
    def n_users(self) -> int:
        """Number of users who say anything."""

    @property
    def is_full(self) -> bool:
        """Is everything known?"""
        return len(self._weights) == 0

    @abstractmethod
    def _draw_rows(
        self,
        rows: slice,
        consensus: Ranking,
        alpha: float,
        seed: int,
        draw: int,
        partners: Counts,
        kept: Ranking,
    ) -> Counts:
        """Counts of the latent ranks of some rows: of all, and of those shared with a partner."""

    @abstractmethod
    def _log_likelihoods(self, rows: slice, consensus: Ranking, alpha: float) -> Any:
        """Log probability of what is known of each of some rows."""

    def draw(self, consensus: Ranking, alpha: float, seed: int, draw: int) -> Counts:
        """Draw all latent rankings; return ``costs[item, rank - 1]`` of the completed data.

        Then moves `consensus` and the latent rankings together, by swaps that leave the exact
        posterior as it is: a consensus given its own latent rankings alone would hardly move.
        """
        lam = alpha / self.n_items
        stream, partners = np.empty(1, dtype=np.uint64), np.empty(self.n_items, dtype=np.int64)
        start_stream(seed, draw, CENTRE, stream)
        pair_ranks(stream, consensus, partners)
        none = np.empty((0, self.n_items), dtype=np.int32)

        def count(rows: slice) -> Counts:
            return self._draw_rows(rows, consensus, alpha, seed, draw, partners, none)

        counts, shared = self._known.copy(), np.zeros_like(self._known)
        for part in self.executor.map(count, self.count_blocks()):
            counts += part[0]
            shared += part[1]
        swap_partners(stream, partners, shared, lam, consensus, counts)
        return np.asarray(footrule_costs(counts))

    def count_blocks(self) -> list[slice]:
        """Blocks of rows for counts: large enough that they outweigh the n x n tables."""
        return blocks(len(self._weights), max(2 * BLOCK, self.n_items))

    def log_likelihood(self, consensus: Ranking, alpha: float) -> float:
        """Log probability of all that is known, given consensus and alpha; exact."""

        def values(rows: slice) -> NDArray[np.float64]:
            return np.asarray(self._log_likelihoods(rows, consensus, alpha))

        parts = list(self.executor.map(values, blocks(len(self._weights))))
        return float(self._weights @ np.concatenate(parts)) if parts else 0.0

    def start(self, alpha: float, rng: np.random.Generator, n_rounds: int = 10) -> Ranking:
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

    def best_alpha(self, consensus: Ranking) -> float:
        """The alpha that makes what is known most likely, given a consensus; maybe infinite."""
        from scipy.optimize import minimize_scalar

        if self.is_full:
            distance = float(total_cost(self.known_costs, consensus)) / self.n_users
            return alpha_for_distance(self.n_items, distance)
        best = minimize_scalar(
            lambda log_alpha: -self.log_likelihood(consensus, math.exp(log_alpha)),
            bounds=(math.log(1e-3), math.log(HIGHEST_ALPHA)),
            method="bounded",
            options={"xatol": 1e-5},
        )
        rising = self.log_likelihood(consensus, HIGHEST_ALPHA) >= -best.fun - 1e-9
        return math.inf if rising else math.exp(best.x)

    def for_chain(self) -> "Latent":
        """The latent rankings as one chain keeps them; nothing to keep where draws are exact."""
        return self


class RankingLatent(Latent):
    """Full and partial rankings."""

    def __init__(self, prefs: Rankings, executor: Executor | None = None):
        informative = prefs.is_informative
        check_informative(informative)
        full, partial = informative & prefs.is_full, informative & ~prefs.is_full
        super().__init__(prefs, prefs.weights[partial], executor)
        self._n_users = int(prefs.weights[informative].sum())
        self.mean_ranks = prefs.mean_ranks()
        self._known = _counts(prefs, informative)
        self.known_costs = footrule_costs(self._known)
        self._n_full = int(prefs.weights[full].sum())
        self._full_costs = footrule_costs(_counts(prefs, full))
        self._partial = prefs.rankings[partial]

    @property
    def n_users(self) -> int:
        """Number of users who say anything."""
        return self._n_users

    def _draw_rows(
        self,
        rows: slice,
        consensus: Ranking,
        alpha: float,
        seed: int,
        draw: int,
        partners: Counts,
        kept: Ranking,
    ) -> Counts:
        counts = np.zeros((2, self.n_items, self.n_items), dtype=np.int64)
        draw_latent(
            seed,
            draw,
            self._first_users[rows],
            self._partial[rows],
            self._weights[rows],
            consensus,
            alpha / self.n_items,
            partners,
            counts[0],
            counts[1],
            kept,
        )
        return counts

    def _log_likelihoods(self, rows: slice, consensus: Ranking, alpha: float) -> Any:
        return _log_likelihoods(self._partial[rows], consensus, alpha)

    def log_likelihood(self, consensus: Ranking, alpha: float) -> float:
        """Log probability of all that is known, given consensus and alpha; exact."""
        full = -alpha / self.n_items * float(total_cost(self._full_costs, consensus))
        full -= self._n_full * log_partition(self.n_items, alpha)
        return full + super().log_likelihood(consensus, alpha)


def log_likelihood(prefs: Rankings, consensus: ArrayLike, alpha: float) -> NDArray[np.float64]:
    """Log probability of what is known of each user, given the consensus and alpha; exact.

    The sum over all full rankings that agree with it, by matchings on a line, in time n_items^2 a
    user. Row weights are not used: a value is that of one person. For clicks, see
    :func:`click_log_likelihood`.

    >>> prefs = Preferences.from_rankings([[1, 2, 3], [1, 0, 0], [0, 0, 0]])
    >>> np.exp(log_likelihood(prefs, [1, 2, 3], alpha=0))
    array([0.16666667, 0.33333333, 1.        ])
    """
    if not isinstance(prefs, Rankings):
        raise TypeError(
            f"prefs must be rankings (pm.Preferences.from_rankings), got {type(prefs).__name__}; "
            "for clicks use click_log_likelihood"
        )
    center = check_consensus(consensus, prefs)
    alpha = check_alpha(alpha)
    parts = Threads().map(
        lambda rows: _log_likelihoods(prefs.rankings[rows], center, alpha), blocks(prefs.n_users)
    )
    return np.concatenate(list(parts))


def best_assignment(costs: NDArray[Any]) -> Ranking:
    """The consensus of the lowest total cost, by linear assignment."""
    from scipy.optimize import linear_sum_assignment

    items, ranks = linear_sum_assignment(costs)
    consensus = np.empty(len(costs), dtype=np.int32)
    consensus[items] = ranks + 1
    return consensus


@functools.lru_cache(maxsize=64)
def log_partition(n_items: int, alpha: float) -> float:
    """Log partition function of the Mallows distribution, remembered."""
    return float(partition_and_distance(n_items, alpha / n_items)[0])


def check_informative(informative: NDArray[np.bool_]) -> None:
    """Refuse data that say nothing at all."""
    if not informative.any():
        raise ValueError(
            "no user says anything: give at least one row with a rank, or with some items clicked "
            "and others not, and a weight above 0"
        )


def check_consensus(consensus: ArrayLike, prefs: Preferences) -> Ranking:
    """Return a consensus of the items of `prefs`, or say what is wrong with it."""
    center = check_ranking(consensus, "consensus")
    if len(center) != prefs.n_items:
        raise ValueError(f"consensus must have {prefs.n_items} items, got {len(center)}")
    return center


def _counts(prefs: Rankings, rows: NDArray[np.bool_]) -> Counts:
    counts = np.zeros((prefs.n_items, prefs.n_items), dtype=np.int64)
    count_ranks(prefs.rankings[rows], prefs.weights[rows], counts)
    return counts


def _log_likelihoods(rankings: Ranking, consensus: Ranking, alpha: float) -> NDArray[np.float64]:
    values, n_items = np.empty(len(rankings)), len(consensus)
    log_likelihoods(rankings, consensus, alpha / n_items, log_partition(n_items, alpha), values)
    return values
