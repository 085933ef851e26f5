"""The latent full rankings of users known by a ranking: exact draws, exact likelihood."""

import functools
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..distances.footrule import log_partition
from ..distances.tallies import Counts, Ranking, RankTally
from ..engines.executors import Executor, Threads, blocks
from ..kernels.footrule.latent import draw_latent, log_likelihoods
from ..preferences.preferences import Rankings
from ..rankings import check_alpha
from .population import (
    ExactLaw,
    LocalPopulation,
    check_consensus,
    check_informative,
    exact_sum,
    principal_components,
)


class RankingPopulation(LocalPopulation):
    """Full and partial rankings."""

    def __init__(
        self, prefs: Rankings, executor: Executor | None = None, numbers: Counts | None = None
    ):
        informative = prefs.is_informative
        check_informative(informative)
        super().__init__(prefs.n_items, executor)
        self._prefs = prefs.take(informative)
        self._set_rows(self._prefs.weights, numbers)
        full = self._prefs.is_row_full
        self._partial = self._prefs.rankings[~full]
        self._weights, self._numbers = self.row_weights[~full], self.row_numbers[~full]
        self._n_full = int(self.row_weights[full].sum())
        self._full = self._tally(full)
        self.known = self._full + self._tally(~full)

    def _tally(self, rows: NDArray[np.bool_]) -> RankTally:
        tally = self.distance.tally(self.n_items)
        tally.add(self._prefs.rankings[rows], self.row_weights[rows])
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
        draw_latent(
            law.seed,
            law.number,
            self._numbers[rows],
            self._partial[rows],
            self._weights[rows],
            law.consensus,
            law.lam,
            law.partners,
            counts[0],
            counts[1],
            np.empty((0, self.n_items), dtype=np.int32),
        )
        return counts

    def unknown_log_likelihood(self, rows: slice, consensus: Ranking, alpha: float) -> int:
        """Log probability of some of the rows that are not full; see `exact_sum`."""
        values = _log_likelihoods(self._partial[rows], consensus, alpha)
        return exact_sum(values, self._weights[rows])

    def row_log_likelihoods(
        self, rows: slice, consensus: Ranking, alpha: float
    ) -> NDArray[np.float64]:
        """Log probability of what is known of one user of each row, full or not."""
        return _log_likelihoods(self._prefs.rankings[rows], consensus, alpha)

    def full_log_likelihood(self, consensus: Ranking, alpha: float) -> float:
        """Log probability of the rows that are full."""
        constant = self.distance.log_partition(self.n_items, alpha)
        return -alpha / self.n_items * self._full.distance(consensus) - self._n_full * constant

    def select(self, weights: Counts, numbers: Counts) -> "RankingPopulation":
        """The rows of weight above 0 alone, with these weights and numbers of first users."""
        chosen = weights > 0
        prefs = replace(self._prefs.take(chosen), weights=weights[chosen])
        return RankingPopulation(prefs, self.executor, numbers[chosen])

    def features(self, n_features: int) -> NDArray[np.float64]:
        """Principal components of the ranks, unknown ones filled with the mean of those left."""
        filled = self._prefs.filled_ranks()
        return principal_components(filled - filled.mean(axis=0), n_features)


def log_likelihood(prefs: Rankings, consensus: ArrayLike, alpha: float) -> NDArray[np.float64]:
    """Log probability of what is known of each user, given the consensus and alpha; exact.

    The sum over all full rankings that agree with it, by matchings on a line, in time n_items^2 a
    user. Row weights are not used: a value is that of one person. For clicks, see
    :func:`click_log_likelihood`.

    >>> from pseudomallows import Preferences
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


def _log_likelihoods(rankings: Ranking, consensus: Ranking, alpha: float) -> NDArray[np.float64]:
    values, n_items = np.empty(len(rankings)), len(consensus)
    log_likelihoods(rankings, consensus, alpha / n_items, log_partition(n_items, alpha), values)
    return values
