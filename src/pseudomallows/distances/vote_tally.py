"""The tally of votes, comparisons of one pair a person, under Kendall's law: see
`kernels.kendall.vote_moves`."""

import functools
import math
from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ..kernels.kendall import vote_moves as kernels
from .kendall import WinsTally
from .strengths import fit_strengths, ranked
from .tallies import Counts, Ranking

HALF = 0.5  # of a vote: the unit of the counts


class VoteTally(WinsTally):
    """``counts[i, j]``: votes for item i over item j, counted in halves, so that a tie is a half
    for each and all numbers are whole."""

    unit = 2
    mean_unit = 1  # half votes are many
    is_proved = False  # is `best` sure to be the likeliest?

    @classmethod
    def of(cls, wins: Counts, ties: Counts) -> Self:
        """The tally of votes: ``wins[i, j]`` for i over j, ``ties[i, j]`` for neither."""
        return cls(2 * wins + ties)

    @functools.cached_property
    def votes(self) -> kernels.Votes:
        """The counts as kernels take them; made when asked."""
        counts = np.ascontiguousarray(self.counts)
        return kernels.Votes(counts, np.ascontiguousarray(counts.T), HALF)

    def votes_by_gap(self, consensus: Ranking) -> Counts:
        """``[n_items - 1 + d]``: halves of votes for an item over one d places behind it: all that
        alpha depends on, given a consensus."""
        gaps = self.n_items - 1 + consensus[None, :].astype(np.int64) - consensus[:, None]
        votes = np.bincount(gaps.ravel(), self.counts.ravel(), 2 * self.n_items - 1)
        return votes.astype(np.int64)  # exact, below 2^53

    def log_likelihood(self, consensus: Ranking, rate: float) -> float:
        """Log probability of all votes; rate is alpha / n_items."""
        return log_likelihood_of_gaps(self.votes_by_gap(consensus), rate)

    def best_rate(self, consensus: Ranking) -> float:
        """The rate that makes the votes likeliest, given a consensus, within a wide range."""
        from scipy.optimize import minimize_scalar

        by_gap = self.votes_by_gap(consensus)
        least = minimize_scalar(
            lambda log_rate: -log_likelihood_of_gaps(by_gap, math.exp(log_rate)),
            bounds=(math.log(1e-6), math.log(50.0)),  # from coin tosses to certain votes
            method="bounded",
            options={"xatol": 1e-4},
        )
        return math.exp(least.x)

    def best(self) -> Ranking:
        """A copy of :attr:`likeliest`."""
        return self.likeliest.copy()

    @functools.cached_property
    def likeliest(self) -> Ranking:
        """The likeliest consensus, or a good one: from the order of strengths (Bradley and Terry),
        items move where they are best, at the best alpha, until none moves."""
        consensus = ranked(fit_strengths(self.counts * HALF).strengths)
        reach = min(30, self.n_items)  # that an item may move at once: the time grows with it
        for _ in range(4):
            rate = self.best_rate(consensus)
            if not kernels.improve_by_leaps(self.votes, rate, reach, consensus):
                break
        return consensus

    def mover(self) -> tuple[Callable[..., None], kernels.Votes]:
        """A proposal looks at the votes of two items; a leap at those of all that it moves."""
        return kernels.move_by_votes, self.votes


def log_probabilities(n_items: int, rate: float) -> NDArray[np.float64]:
    """``[n_items - 1 + d]``: log probability that an item is preferred to one d places behind it.

    >>> np.exp(log_probabilities(3, 1.0)).round(3).tolist()
    [0.156, 0.269, 1.0, 0.731, 0.844]
    """
    table = np.empty(2 * n_items - 1)
    kernels.fill_log_probabilities(rate, table)
    return table


def log_likelihood_of_gaps(by_gap: Counts, rate: float) -> float:
    """Log probability of votes, counted in halves by the difference of the places."""
    return float(HALF * (by_gap @ log_probabilities(len(by_gap) // 2 + 1, rate)))


def pair_probabilities(consensus: Ranking, rate: float) -> NDArray[np.float64]:
    """``[i, j]``: probability that item i is preferred to item j; 1/2 of an item and itself.

    >>> pair_probabilities(np.array([2, 1]), 1.0).round(3)
    array([[0.5  , 0.269],
           [0.731, 0.5  ]])
    """
    n_items = len(consensus)
    ranks = np.asarray(consensus, dtype=np.int64)
    probabilities = np.exp(log_probabilities(n_items, rate))[
        n_items - 1 + ranks[None, :] - ranks[:, None]
    ]
    np.fill_diagonal(probabilities, 0.5)
    return np.asarray(probabilities)
