"""The latent full rankings of users known by a ranking: exact draws, exact likelihood."""

import functools
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..distances import FOOTRULE, Distance
from ..distances.tallies import Counts, Ranking, Tally
from ..engines.executors import Executor
from ..kernels.footrule.latent import draw_latent, log_likelihoods
from ..kernels.streams import Streams
from ..preferences import Rankings
from .population import (
    DrawOrigin,
    ExactLaw,
    LocalPopulation,
    check_informative,
    exact_sum,
    principal_components,
)


class RankingPopulation(LocalPopulation):
    """Rankings, full, partial or tied."""

    def __init__(
        self,
        prefs: Rankings,
        executor: Executor | None = None,
        numbers: Counts | None = None,
        distance: Distance = FOOTRULE,
    ):
        informative = prefs.is_informative
        check_informative(informative)
        super().__init__(prefs.n_items, executor, distance)
        self.everyone, self._prefs = prefs, prefs.take(informative)
        self._set_rows(self._prefs.weights, numbers)
        full = self._prefs.is_row_full
        others = self._prefs.take(~full)
        self._partial, self._weights = others.rankings, others.weights
        self._numbers = self.row_numbers[~full]
        full_weights = np.where(full, self.row_weights, 0)  # so that no ranking is copied
        self._n_full = int(full_weights.sum())
        self._full = self._tally(self._prefs.rankings, full_weights)
        self.known = self._full + self._tally(others.known_ranks(), self._weights)

    def _tally(self, rankings: Ranking, weights: Counts) -> Tally:
        tally = self.distance.tally(self.n_items)
        tally.add(rankings, weights)
        return tally

    @functools.cached_property
    def mean_ranks(self) -> NDArray[np.float64]:  # type: ignore[override]
        """Mean rank of each item."""
        return self._prefs.mean_ranks()

    @property
    def n_unknown(self) -> int:
        """Number of rows of which something is not known."""
        return len(self._weights)

    def count_rows(self, rows: slice, law: ExactLaw) -> Counts:
        """Counts of the latent ranks of some rows: of all, and of those shared with a partner."""
        counts = np.zeros((2, self.n_items, self.n_items), dtype=np.int64)
        streams = Streams(law.seed, law.number, self._numbers[rows], self._weights[rows])
        nobody, rankings = np.empty((0, self.n_items), dtype=np.int32), self._partial[rows]
        draw_latent(streams, rankings, law.consensus, law.lam, law.partners, counts, nobody)
        return counts

    def unknown_log_likelihood(self, rows: slice, consensus: Ranking, alpha: float) -> int:
        """Log probability of some of the rows that are not full; see `exact_sum`."""
        values = log_likelihoods_of_rankings(self._partial[rows], consensus, alpha)
        return exact_sum(values, self._weights[rows])

    def row_log_likelihoods(
        self, rows: slice, consensus: Ranking, alpha: float
    ) -> NDArray[np.float64]:
        """Log probability of what is known of one user of each row, full or not."""
        return log_likelihoods_of_rankings(self._prefs.rankings[rows], consensus, alpha)

    def full_log_likelihood(self, consensus: Ranking, alpha: float) -> float:
        """Log probability of the rows that are full."""
        constant = self.distance.log_partition(self.n_items, alpha)
        return -alpha / self.n_items * self._full.distance(consensus) - self._n_full * constant

    def redraw(self, known: Rankings, numbers: Counts, origin: DrawOrigin) -> Ranking:
        """The latent rankings of users given by what is known of them, by the same streams."""
        found, n_items = np.empty_like(known.rankings), self.n_items
        counts = np.zeros((2, n_items, n_items), dtype=np.int64)
        streams = Streams(origin.seed, origin.number, numbers, known.weights)
        law = (origin.consensus, origin.alpha / n_items, np.full(n_items, -1))
        draw_latent(streams, known.rankings, *law, counts, found)
        return found

    def select(self, weights: Counts, numbers: Counts) -> "RankingPopulation":
        """The rows of weight above 0 alone, with these weights and numbers of first users."""
        chosen = weights > 0
        prefs = replace(self._prefs.take(chosen), weights=weights[chosen])
        return type(self)(prefs, self.executor, numbers[chosen], self.distance)

    def features(self, n_features: int) -> NDArray[np.float64]:
        """Principal components of the ranks, unknown ones as the mean of what they may be."""
        filled = self._prefs.filled_ranks()
        return principal_components(filled - filled.mean(axis=0), n_features)


def log_likelihoods_of_full(
    rankings: Ranking, consensus: Ranking, alpha: float, distance: Distance
) -> NDArray[np.float64]:
    """Log probability of each row of full rankings, by any distance."""
    n_items = len(consensus)
    away = distance.between(rankings, consensus)
    return np.asarray(-alpha / n_items * away - distance.log_partition(n_items, alpha))


def log_likelihoods_of_rankings(
    rankings: Ranking, consensus: Ranking, alpha: float
) -> NDArray[np.float64]:
    """Log probability of each row of rankings; see `log_likelihood`, which checks."""
    values, n_items = np.empty(len(rankings)), len(consensus)
    log_partition = FOOTRULE.log_partition(n_items, alpha)
    log_likelihoods(rankings, consensus, alpha / n_items, log_partition, values)
    return values
