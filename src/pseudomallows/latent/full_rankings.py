"""Users known by full rankings: nothing is latent, and a tally says all of a cluster of them."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..distances.tallies import Counts, Ranking
from .population import Population
from .rankings import RankingPopulation, log_likelihoods_of_full


class FullPopulation(RankingPopulation):
    """Full rankings, by any distance. A row of weight 0 counts for nobody: the users of a cluster
    are all rows, most of them of weight 0, so that nothing is copied when a user moves."""

    rows_at_once = 2**14  # so few steps for each that fewer rows are not worth a thread

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self._n_full

    @property
    def is_full(self) -> bool:
        """Everything is known."""
        return True

    @property
    def mean_ranks(self) -> NDArray[np.float64]:  # type: ignore[override]
        """Mean rank of each item."""
        return replace(self._prefs, weights=self.row_weights).mean_ranks()

    def log_likelihood(self, consensus: Ranking, alpha: float) -> float:
        """Log probability of all rankings, given consensus and alpha."""
        return self.full_log_likelihood(consensus, alpha)

    def log_likelihood_by_alpha(self, consensus: Ranking) -> Callable[[float], float]:
        """Log probability of all rankings, given a consensus, as a function of alpha."""
        n_items, n_users, log_partition = self.n_items, self._n_full, self.distance.log_partition
        distance = self.known.distance(consensus)
        return lambda alpha: -alpha / n_items * distance - n_users * log_partition(n_items, alpha)

    def row_log_likelihoods(
        self, rows: slice, consensus: Ranking, alpha: float
    ) -> NDArray[np.float64]:
        """Log probability of one user of each row."""
        rankings = self._prefs.rankings[rows]
        return log_likelihoods_of_full(rankings, consensus, alpha, self.distance)

    def share_out(self, counts: Counts, before: Sequence[Population]) -> list[Any]:
        """The users of each cluster; their tallies change by those who come and go."""
        columns = np.ascontiguousarray(counts.T)
        return [self._part(mine, old) for mine, old in zip(columns, before, strict=True)]

    def _part(self, weights: Counts, before: Population) -> "FullPopulation | None":
        """The same rows with other weights, most of them as in `before`; None if all are 0."""
        n_users = int(weights.sum())
        if not n_users:
            return None
        if not isinstance(before, FullPopulation) or before._prefs is not self._prefs:
            before = self
        part, rankings = copy.copy(self), self._prefs.rankings
        part.known = part._full = before.known.recounted(rankings, before.row_weights, weights)
        part.row_weights, part._n_full = weights, n_users
        return part
