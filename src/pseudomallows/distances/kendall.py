"""Kendall's distance: the number of pairs of items in another order; see `kernels.kendall`."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels.kendall import inversions as kernels
from ..kernels.kendall.click_sums import fill_binomials
from ..kernels.kendall.wins import (
    best_by_subsets,
    improve_by_insertions,
    move_by_wins,
    recount_wins,
)
from ..rankings import orderings_of
from .distance import Distance
from .tallies import Counts, Ranking, TableTally, ranking_of

MOST_SUBSET_ITEMS = 15  # whose best order by pairs is sought through all sets of them: 32,768


class WinsTally(TableTally):
    """``counts[i, j]`` users put item i before item j, each counted `unit` times."""

    unit = 1
    mean_unit = 1000  # of a mean number of users, so that it is a whole number to three digits

    @functools.cached_property
    def margins(self) -> Counts:
        """``margins[i, j]``: how many more put i before j than behind it; made when asked."""
        return np.ascontiguousarray(self.counts - self.counts.T)

    @property
    def is_proved(self) -> bool:  # type: ignore[override]
        return self.n_items <= MOST_SUBSET_ITEMS

    def rank_sums(self) -> Counts:
        return np.asarray(self.counts.sum(axis=0))

    def recount(self, rankings: Ranking, before: Counts, after: Counts, counts: Counts) -> None:
        recount_wins(rankings, self.unit * before, self.unit * after, counts)

    def distance(self, consensus: Ranking) -> int:
        """The pairs that the users have in another order."""
        ordering = orderings_of(consensus)
        return int(np.tril(self.counts[np.ix_(ordering, ordering)], -1).sum())

    def best(self) -> Ranking:
        """The consensus of the smallest distance (Kemeny's), through all sets of up to 15 items.

        For more items, a good one: from the order of mean ranks, items are inserted where they are
        best until no insertion helps.
        """
        ordering = orderings_of(self.rank_sums())
        if self.is_proved:
            best_by_subsets(self.counts, ordering)
        consensus = ranking_of(ordering)
        if not self.is_proved:
            improve_by_insertions(self.margins, consensus, ordering)
        return consensus

    @property
    def evidence(self) -> Counts:
        return self.counts

    def best_of(self, evidence: NDArray[Any]) -> Ranking:
        """The consensus of the smallest mean distance, or a good one."""
        return self.like(np.rint(evidence * self.mean_unit).astype(np.int64)).best()

    def mover(self) -> tuple[Callable[..., None], Any]:
        """A proposal over h places looks at h margins, or 2 h."""
        return move_by_wins, self.margins


class Kendall(Distance):
    """Everything is exact, for any number of items."""

    name = "kendall"
    compare = kernels.kendall_distances

    def make_partition(self, n_items: int, alpha: float) -> tuple[float, float]:
        log_sum, distance = kernels.kendall_partition(n_items, alpha / n_items)
        return log_sum, distance

    def fill_draws(self, seed: int, alpha: float, draws: NDArray[np.int32]) -> None:
        """Exact, in time n_items log n_items each."""
        kernels.draw_kendall(seed, alpha / draws.shape[1], draws)

    def rank_probabilities(self, n_items: int, alpha: float) -> NDArray[np.float64]:
        """``probabilities[item, rank - 1]`` of a Mallows draw around 1, 2, ....

        A sum for each cell, of at most some sqrt(n_items) terms that count.
        """
        probabilities = np.empty((n_items, n_items))
        kernels.kendall_rank_probabilities(n_items, alpha / n_items, probabilities)
        return probabilities

    def expected_ranks(self, n_items: int, alpha: float) -> NDArray[np.float64]:
        """Mean rank of each item of a Mallows draw around 1, 2, ..., in time n_items."""
        means = np.empty(n_items)
        kernels.kendall_expected_ranks(n_items, alpha / n_items, means)
        return means

    def tally(self, n_items: int) -> WinsTally:
        return WinsTally(np.zeros((n_items, n_items), dtype=np.int64))


KENDALL = Kendall()


def log_factorials(n_items: int, alpha: float) -> NDArray[np.float64]:
    """``[m]``: log partition function of Kendall for m of the items, 0 to all of them.

    >>> np.exp(log_factorials(4, 0.0)).round(6).tolist()
    [1.0, 1.0, 2.0, 6.0, 24.0]
    """
    rate, sizes = alpha / n_items, np.arange(1, n_items + 1)
    terms = np.log(sizes) if rate == 0 else np.log(np.expm1(-rate * sizes) / np.expm1(-rate))
    return np.concatenate([[0.0], np.cumsum(terms)])


def log_binomials(n_items: int, alpha: float, largest: int) -> NDArray[np.float64]:
    """``[c]``: log of the Gaussian binomial of n_items over c, at exp(-alpha / n_items).

    >>> np.exp(log_binomials(4, 0.0, 4)).round(6)
    array([1., 4., 6., 4., 1.])
    """
    logs = np.empty(largest + 1)
    fill_binomials(n_items, alpha / n_items, logs)
    return logs
