"""The tally of votes, comparisons of one pair a person, under Kendall's law: see
`kernels.kendall.votes`."""

import math
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..kernels.kendall import votes as kernels
from ..kernels.kendall.rankings import order_by_rank
from ..kernels.kendall.wins import recount_wins, wins_distance
from ..rankings import orderings_of
from .strengths import fit_strengths, ranked
from .tallies import MOVES, Counts, Ranking

REACH = 30  # places that an item may move at once, where a good consensus is looked for
N_ROUNDS = 4  # of a better consensus and a better alpha, in turn
LEAST_LAM, MOST_LAM = 1e-6, 50.0  # between which the best one is looked for
HALF = 0.5  # of a vote: the unit of the counts


class VoteTally:
    """``halves[i, j]``: votes for item i over item j, counted in halves, so that a tie is a half
    for each and all numbers are whole."""

    is_proved = False  # is `best` sure to be the likeliest?

    def __init__(self, halves: Counts):
        self.halves = np.ascontiguousarray(halves)
        self._votes: kernels.Votes | None = None
        self._best: Ranking | None = None

    @classmethod
    def of(cls, wins: Counts, ties: Counts) -> Self:
        """The tally of votes: ``wins[i, j]`` for i over j, ``ties[i, j]`` for neither."""
        return cls(2 * wins + ties)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.halves)

    @property
    def votes(self) -> kernels.Votes:
        """The counts as kernels take them; made when asked."""
        if self._votes is None:
            self._votes = kernels.Votes(self.halves, np.ascontiguousarray(self.halves.T), HALF)
        return self._votes

    def rank_sums(self) -> Counts:
        """Halves of votes lost by each item."""
        return np.asarray(self.halves.sum(axis=0))

    def add(self, rankings: Ranking, weights: Counts) -> None:
        """Add every pair of full rankings as a vote."""
        added = np.zeros_like(self.halves)
        recount_wins(rankings, np.zeros_like(weights), weights, added)
        self.halves, self._votes, self._best = self.halves + 2 * added, None, None

    def recounted(self, rankings: Ranking, before: Counts, after: Counts) -> Self:
        """The tally of the same rankings with other weights; see `Tally`."""
        changed = np.zeros_like(self.halves)
        recount_wins(rankings, before, after, changed)
        return type(self)(self.halves + 2 * changed)

    def __add__(self, other: "VoteTally") -> Self:
        """The votes of both."""
        return type(self)(self.halves + other.halves)

    def distance(self, consensus: Ranking) -> int:
        """Halves of votes that go against a consensus."""
        return int(wins_distance(self.halves, orderings_of(consensus)))

    def votes_by_gap(self, consensus: Ranking) -> Counts:
        """``[n_items - 1 + d]``: halves of votes for an item over one d places behind it: all that
        alpha depends on, given a consensus."""
        by_gap = np.empty(2 * self.n_items - 1, dtype=np.int64)
        ordering = np.empty(self.n_items, dtype=np.int64)
        order_by_rank(consensus, ordering)
        kernels.fill_votes_by_gap(self.halves, ordering, by_gap)
        return by_gap

    def log_likelihood(self, consensus: Ranking, lam: float) -> float:
        """Log probability of all votes; lam is alpha / n_items."""
        return log_likelihood_of_gaps(self.votes_by_gap(consensus), lam)

    def best_lam(self, consensus: Ranking) -> float:
        """The lam that makes the votes likeliest, given a consensus, within a wide range."""
        from scipy.optimize import minimize_scalar

        by_gap = self.votes_by_gap(consensus)
        found = minimize_scalar(
            lambda log_lam: -log_likelihood_of_gaps(by_gap, math.exp(log_lam)),
            bounds=(math.log(LEAST_LAM), math.log(MOST_LAM)),
            method="bounded",
            options={"xatol": 1e-4},
        )
        return math.exp(found.x)

    def best(self) -> Ranking:
        """The likeliest consensus, or a good one: from the order of strengths (Bradley and Terry),
        items move where they are best, at the best alpha, until none moves. It is kept."""
        if self._best is None:
            self._best = self._find_best()
        return self._best.copy()

    def _find_best(self) -> Ranking:
        consensus = ranked(fit_strengths(self.halves * HALF).strengths)
        reach = min(REACH, self.n_items)
        for _ in range(N_ROUNDS):
            lam = self.best_lam(consensus)
            if not kernels.improve_by_leaps(self.votes, lam, reach, consensus):
                break
        return consensus

    @property
    def evidence(self) -> Counts:
        """The counts."""
        return self.halves

    def best_of(self, evidence: NDArray[Any]) -> Ranking:
        """The likeliest consensus of such counts, or a good one."""
        return type(self)(np.rint(evidence).astype(np.int64)).best()

    def move(
        self,
        stream: NDArray[np.uint64],
        scale: float,
        n_moves: int,
        consensus: Ranking,
        move: str = "swap",
        leap: int = 1,
    ) -> None:
        """Move a consensus in place by Metropolis proposals; `scale` is alpha / n_items.

        A proposal looks at the votes of two items; a leap at those of all that it moves.
        """
        kernels.move_by_votes(stream, self.votes, scale, MOVES[move], leap, n_moves, consensus)


def log_chances(n_items: int, lam: float) -> NDArray[np.float64]:
    """``[n_items - 1 + d]``: log probability that an item is preferred to one d places behind it.

    >>> np.exp(log_chances(3, 1.0)).round(3).tolist()
    [0.156, 0.269, 1.0, 0.731, 0.844]
    """
    table = np.empty(2 * n_items - 1)
    kernels.fill_log_chances(lam, table)
    return table


def log_likelihood_of_gaps(by_gap: Counts, lam: float) -> float:
    """Log probability of votes, counted in halves by the difference of the places."""
    return float(HALF * (by_gap @ log_chances(len(by_gap) // 2 + 1, lam)))


def pair_chances(consensus: Ranking, lam: float) -> NDArray[np.float64]:
    """``[i, j]``: probability that item i is preferred to item j; 1/2 of an item and itself.

    >>> pair_chances(np.array([2, 1]), 1.0).round(3)
    array([[0.5  , 0.269],
           [0.731, 0.5  ]])
    """
    n_items = len(consensus)
    ranks = np.asarray(consensus, dtype=np.int64)
    chances = np.exp(log_chances(n_items, lam))[n_items - 1 + ranks[None, :] - ranks[:, None]]
    np.fill_diagonal(chances, 0.5)
    return np.asarray(chances)
