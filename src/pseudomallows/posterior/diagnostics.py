"""R-hat and effective sample size of draws; the warnings of a fit, whose checks `diagnose` has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..engines.executors import all_cores, blocks
from .intervals import BLOCK_OF_ITEMS

if TYPE_CHECKING:
    from .diagnose import Check


class FitWarning(UserWarning):
    """A check of a fit that is not passed: `check`, whose figures are attributes here too."""

    def __init__(self, check: Check):
        self.check = check
        vars(self).update(check.figures)
        super().__init__(str(check))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.check,)


class ConvergenceWarning(FitWarning):
    """Markov chains disagree, are too short, or stuck: `rhat`, `effective_size`, `stuck`; and the
    limits, `rhat_limit` and `size_limit`."""


class EffectiveSizeWarning(FitWarning):
    """A few of the weighted draws carry nearly all the weight: `effective_size` of `n_draws`."""


class AgreementWarning(FitWarning):
    """The users agree no more than by chance, so alpha is estimated as 0: `n_users` of them."""


class AlphaWarning(FitWarning):
    """Nothing in the data bounds the alpha of some clusters from above: `clusters`, `medians`."""


class ModelWarning(FitWarning):
    """People do not share one order: `split` says how far, from 0 to 1 (two opposite camps)."""


class MatchedWarning(FitWarning):
    """The matched law is not close enough to the exact one: of `n_draws` draws, weighted by the
    exact likelihood, the effective size is `effective_share` of their number."""


class UnconnectedWarning(FitWarning):
    """Some items were never compared with others, not even through a third: `groups[group]` are the
    items of each group that was compared among itself."""


class VotesWarning(FitWarning):
    """Votes contradict equal gaps between the neighbours of the consensus, which `gaps="equal"`
    asked for: `p_value` says how clearly."""


class ContradictionWarning(FitWarning):
    """Users contradict themselves, so that some comparisons must be wrong: `n_users` of `n_all`,
    and the first of them, `user`, with a `cycle` of items."""


class ClustersWarning(FitWarning):
    """The number of clusters was not really chosen: nothing was compared, or the best number was
    the largest that was tried."""


class UncorrectedWarning(UserWarning):
    """Probabilities of a `window` longer than the `largest` that a correction holds for."""

    def __init__(self, window: int, largest: int):
        self.window, self.largest = window, largest
        super().__init__(
            f"the probabilities of the next {window} items are not corrected: what is observed was "
            f"learnt for windows of 1 to {largest}, far fewer. They come from the model alone and "
            f"may be off by ten points or more. Ask for a window of {5 * largest} or less, or fit "
            f"with held_out= later clicks, {window} or more of each of at least 50 users"
        )


class QuestionWarning(UserWarning):
    """A fit is evaluated by another question than the one it was made for."""

    def __init__(self, answers: str, evaluated_by: str, wanted: str):
        self.answers, self.evaluated_by = answers, evaluated_by
        super().__init__(
            f"the probabilities of this fit are about {answers}, and it is evaluated by "
            f"{evaluated_by}: both its hits and its probabilities may be far off. Leave out "
            f"calibrate=, or give calibrate={wanted!r}"
        )


class NoTimesWarning(UserWarning):
    """A personal fit of clicks without times cannot know what comes next."""

    def __init__(self) -> None:
        super().__init__(
            "these clicks have no times, so each probability is that an item is among so many "
            "clicks that are missing at random, not among those that come next: give the times of "
            "the clicks, or calibrate='random', which says that this is meant"
        )


def in_blocks(
    diagnostic: Callable[[NDArray[np.floating]], NDArray[np.float64]], draws: NDArray[Any]
) -> NDArray[np.float64]:
    """A diagnostic of ``draws[chain, draw, item]``, some thousand items at a time, so that memory
    does not grow with them."""

    def work(part: slice) -> NDArray[np.float64]:
        return diagnostic(draws[:, :, part].astype(np.float64))

    return np.concatenate(list(all_cores().map(work, blocks(draws.shape[2], BLOCK_OF_ITEMS))))


def rhat(draws: NDArray[np.floating]) -> NDArray[np.float64]:
    """Rank-normalised split R-hat of ``draws[chain, draw, ...]`` (Vehtari et al. 2021).

    A quantity that never moves has 1; one that is constant in each chain but not across them,
    infinity; fewer than 4 draws, NaN.
    """
    if draws.shape[1] < 4:
        return np.full(draws.shape[2:], np.nan)
    chains = _split(draws)
    folded = np.abs(chains - np.median(chains, axis=(0, 1)))
    return np.maximum(_plain_rhat(_normal_scores(chains)), _plain_rhat(_normal_scores(folded)))


def effective_size(draws: NDArray[np.floating]) -> NDArray[np.float64]:
    """Bulk effective sample size of ``draws[chain, draw, ...]`` (Vehtari et al. 2021), as ArviZ has
    it.

    A quantity that never moves counts in full; one that is constant in each chain but not across
    them counts once a chain. NaN for fewer than 4 draws.
    """
    n_chains, n_draws, *shape = draws.shape
    if n_draws < 4:
        return np.full(shape, np.nan)
    columns = draws.reshape(n_chains, n_draws, -1)
    sizes = _effective_sizes(_normal_scores(_split(columns)))
    sizes[(np.ptp(columns, axis=1) == 0).all(axis=0)] = n_chains
    sizes[np.ptp(_split(columns), axis=(0, 1)) == 0] = n_chains * n_draws
    return sizes.reshape(shape)


def _effective_sizes(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of ``scores[chain, draw, column]``; of a column that never moves it has no meaning."""
    n_chains, n_draws, _ = scores.shape
    covariances = _autocovariance(scores).mean(axis=0)
    within = covariances[0] * n_draws / (n_draws - 1)
    total = covariances[0] + scores.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlations = 1 - (within - covariances) / total
    correlations[0] = 1.0
    n_used = n_chains * n_draws
    times = _correlation_times(np.nan_to_num(correlations))
    return n_used / np.maximum(times, 1 / np.log10(n_used))


def error_of_mean(values: NDArray[np.float64]) -> float:
    """Standard error of the mean of ``values[chain, draw]``, which are correlated along a chain."""
    if np.ptp(values) == 0:
        return 0.0
    chains: NDArray[Any] = _split(values[:, :, None])
    size = float(_effective_sizes(chains)[0])
    return float(values.std(ddof=1) / np.sqrt(size))


def _correlation_times(correlations: NDArray[np.float64]) -> NDArray[np.float64]:
    """Integrated autocorrelation times by Geyer's initial monotone sequence, from
    ``correlations[lag, column]``.

    Lags go in pairs, for as long as the sum of a pair is positive.
    """
    n_lags, n_columns = correlations.shape
    n_pairs, columns = max((n_lags - 3) // 2, 0) + 1, np.arange(n_columns)
    pairs = correlations[: 2 * n_pairs].reshape(n_pairs, 2, n_columns).sum(axis=1)
    has_end = (pairs <= 0).any(axis=0)  # of the last pair the first lag alone counts, once
    last = np.where(has_end, (pairs <= 0).argmax(axis=0), n_pairs - 1)
    extra = correlations[2 * last, columns]
    extra = np.where(pairs[last, columns] < 0, np.maximum(extra, 0.0), extra)
    falling = np.minimum.accumulate(pairs, axis=0)
    falling[np.arange(n_pairs)[:, None] >= last] = 0.0
    return np.asarray(2 * falling.sum(axis=0) - 1 + extra)


def _split(draws: NDArray[np.floating]) -> NDArray[np.floating]:
    """Each chain as two."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])  # of an odd number, not the middle


def _normal_scores(draws: NDArray[np.floating]) -> NDArray[np.float64]:
    """Normal quantiles of the ranks among all draws of a quantity; ties share the mean rank."""
    from scipy.special import ndtri

    n_draws = draws.shape[0] * draws.shape[1]
    flat = draws.reshape(n_draws, -1)
    order = np.argsort(flat, axis=0, kind="stable")
    values, places = np.take_along_axis(flat, order, axis=0), np.arange(n_draws)[:, None]
    is_new = values[1:] != values[:-1]
    border = np.ones((1, flat.shape[1]), dtype=bool)
    firsts = np.where(np.concatenate([border, is_new]), places, 0)
    lasts = np.where(np.concatenate([is_new, border]), places, n_draws)
    firsts = np.maximum.accumulate(firsts, axis=0)
    lasts = np.minimum.accumulate(lasts[::-1], axis=0)[::-1]
    ranks = np.empty(flat.shape)
    np.put_along_axis(ranks, order, 1 + (firsts + lasts) / 2, axis=0)
    return np.asarray(ndtri((ranks - 0.375) / (n_draws + 0.25))).reshape(draws.shape)


def _plain_rhat(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    n_draws = scores.shape[1]
    within = scores.var(axis=1, ddof=1).mean(axis=0)
    between = n_draws * scores.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        rhat = np.sqrt((between / within + n_draws - 1) / n_draws)
    is_constant = (np.ptp(scores, axis=1) == 0).all(axis=0)
    apart = np.where(np.ptp(scores, axis=(0, 1)) == 0, 1.0, np.inf)
    return np.asarray(np.where(is_constant, apart, rhat))


def _autocovariance(chains: NDArray[np.float64]) -> NDArray[np.float64]:
    """``covariances[chain, lag, ...]``."""
    n_draws = chains.shape[1]
    size = 1 << (2 * n_draws - 1).bit_length()
    spectrum = np.fft.rfft(chains - chains.mean(axis=1, keepdims=True), size, axis=1)
    return np.fft.irfft(np.abs(spectrum) ** 2, size, axis=1)[:, :n_draws] / n_draws


@dataclass(frozen=True, eq=False, repr=False)
class Diagnostics:
    """R-hat and effective sample size of each item's rank and of alpha, where it is sampled.

    For independent draws R-hat is near 1 and the size is that of the weights.
    """

    rank_rhat: NDArray[np.float64]
    rank_effective_size: NDArray[np.float64]
    alpha_rhat: float
    alpha_effective_size: float

    @classmethod
    def of(
        cls,
        ranks: NDArray[np.int32],
        alpha: NDArray[np.float64],
        scale: float,
    ) -> Diagnostics:
        """Of ``ranks[chain, draw, item]`` and ``alpha[chain, draw]``; `scale` is what a draw is
        worth by its weight."""
        is_fixed = bool((np.ptp(alpha, axis=1) == 0).all())  # estimated, by each chain for itself
        return cls(
            in_blocks(rhat, ranks),
            scale * in_blocks(effective_size, ranks),
            1.0 if is_fixed else float(rhat(alpha)),
            scale * float(alpha.size if is_fixed else effective_size(alpha)),
        )

    def __repr__(self) -> str:
        return (
            f"Diagnostics: largest R-hat {self.worst_rhat:.3f}, smallest effective sample size "
            f"{self.least_effective_size:,.0f}; of alpha {self.alpha_rhat:.3f} and "
            f"{self.alpha_effective_size:,.0f}"
        )

    @property
    def worst_rhat(self) -> float:
        """The largest R-hat."""
        return float(max(self.rank_rhat.max(), self.alpha_rhat))

    @property
    def least_effective_size(self) -> float:
        """The smallest effective sample size."""
        return float(min(self.rank_effective_size.min(), self.alpha_effective_size))
