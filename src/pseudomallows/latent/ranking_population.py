"""The latent full rankings of users known by a ranking: exact draws, exact likelihood."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..distances import FOOTRULE, Distance
from ..distances.tallies import Counts, Ranking, Tally
from ..engines.executors import Executor
from ..kernels.footrule.latent_blocks import draw_latent, log_likelihoods
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


class RankedPopulation(LocalPopulation):
    """Users known by a ranking, by any distance."""

    informative: Rankings

    def __init__(
        self,
        prefs: Rankings,
        executor: Executor | None = None,
        numbers: Counts | None = None,
        distance: Distance = FOOTRULE,
    ):
        check_informative(prefs.is_informative)
        super().__init__(prefs.n_items, executor, distance)
        self.everyone, self.informative = prefs, prefs.take(prefs.is_informative)
        self._set_rows(self.informative.weights, numbers)

    def tally_of(self, rankings: Ranking, weights: Counts) -> Tally:
        """The tally of rankings, each as often as its weight says."""
        tally = self.distance.tally(self.n_items)
        tally.add(rankings, weights)
        return tally

    @property
    def mean_ranks(self) -> NDArray[np.float64]:  # type: ignore[override]
        """Mean rank of each item."""
        return replace(self.informative, weights=self.row_weights).mean_ranks()

    def of_rows(self, prefs: Rankings, numbers: Counts) -> "RankedPopulation":
        """A population of the same kind."""
        return type(self)(prefs, self.executor, numbers, self.distance)

    def features(self, n_features: int) -> NDArray[np.float64]:
        """Principal components of the ranks, unknown ones as the mean of what they may be."""
        filled = self.informative.filled_ranks()
        return principal_components(filled - filled.mean(axis=0), n_features)


class RankingPopulation(RankedPopulation):
    """Rankings, full, partial or tied, by the footrule: latent rankings are drawn exactly."""

    def __init__(
        self, prefs: Rankings, executor: Executor | None = None, numbers: Counts | None = None
    ):
        super().__init__(prefs, executor, numbers)
        full = self.informative.is_row_full
        others = self.informative.take(~full)
        self._partial, self._weights = others.rankings, others.weights
        self._numbers = self.row_numbers[~full]
        full_weights = np.where(full, self.row_weights, 0)  # so that no ranking is copied
        self._n_full = int(full_weights.sum())
        self._full = self.tally_of(self.informative.rankings, full_weights)
        self.known = self._full + self.tally_of(others.known_ranks(), self._weights)

    def of_rows(self, prefs: Rankings, numbers: Counts) -> "RankingPopulation":
        """A population of the same kind."""
        return RankingPopulation(prefs, self.executor, numbers)

    @property
    def n_unknown(self) -> int:
        """Number of rows of which something is not known."""
        return len(self._weights)

    @staticmethod
    def log_likelihoods(
        prefs: Rankings, rows: slice, consensus: Ranking, alpha: float
    ) -> NDArray[np.float64]:
        """Log probability of what is known of one user of each row, full or not."""
        return log_likelihoods_of_rankings(prefs.rankings[rows], consensus, alpha)

    def count_rows(self, rows: slice, law: ExactLaw) -> Counts:
        """Counts of the latent ranks of some rows: of all, and of those shared with a partner."""
        counts = np.zeros((2, self.n_items, self.n_items), dtype=np.int64)
        streams = Streams(law.seed, law.number, self._numbers[rows], self._weights[rows])
        nobody, rankings = np.empty((0, self.n_items), dtype=np.int32), self._partial[rows]
        draw_latent(streams, rankings, law.consensus, law.rate, law.partners, counts, nobody)
        return counts

    def unknown_log_likelihood(self, rows: slice, consensus: Ranking, alpha: float) -> int:
        """Log probability of some of the rows that are not full; see `exact_sum`."""
        values = log_likelihoods_of_rankings(self._partial[rows], consensus, alpha)
        return exact_sum(values, self._weights[rows])

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
