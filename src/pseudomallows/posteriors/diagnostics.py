"""How far to trust draws: R-hat, effective sample size, and the warnings that carry them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..distributions.scores import weighted_effective_size as weighted_effective_size
from ..engines.executors import all_cores, blocks
from ..engines.memory import DENSE_ITEMS
from .intervals import BLOCK_OF_ITEMS

MOST_SHOWN = 6  # items that a message names
RHAT_LIMIT = 1.05  # between the old rule of 1.1 and the strict 1.01 of Vehtari et al. (2021)
EFFECTIVE_SIZE_LIMIT = 50.0  # the error of a mean is then a seventh of the posterior's spread
LARGEST_P_VALUE = 0.01  # below it votes contradict equal gaps for sure
LEAST_EFFECTIVE_SHARE = 0.5  # of the draws of the additive likelihood, by their exact weights

ADVICE = "raise n_draws, warmup or thin"
SLOW_ADVICE = (
    "on clicks method='pseudo' moves too slowly, so its intervals are too narrow: use "
    "method='mcmc', which is exact, or 'matched', which is faster; to recommend, use 'personal'"
)
CLUSTER_ADVICE = (
    "raise n_draws or thin; if the chains found different clusters (compare "
    "posterior.chain_memberships), use fewer clusters"
)


class ConvergenceWarning(UserWarning):
    """A Markov chain is too short, or stuck: `rhat`, `effective_size` and `stuck` say which.

    `rhat_limit` is 1.05, or what chance allows where many numbers are compared by few draws;
    `size_limit` is 50, or a part of the draws where there are few. The verdict has the same limits.
    """

    def __init__(
        self,
        rhat: float,
        effective_size: float,
        stuck: list[int],
        advice: str = ADVICE,
        rhat_limit: float = RHAT_LIMIT,
        size_limit: float = EFFECTIVE_SIZE_LIMIT,
    ):
        self.rhat, self.effective_size, self.stuck = rhat, effective_size, stuck
        self.rhat_limit, self.size_limit = rhat_limit, size_limit
        chains = f"; chains {stuck} are stuck" if stuck else ""
        shown = f"{rhat:.3f}" if rhat < 100 else "above 100"
        super().__init__(
            "the chains have not converged, so another run may give other numbers: R-hat "
            f"{shown} (want {rhat_limit:.4g} or less), effective sample size {effective_size:.0f} "
            f"(want {size_limit:.0f} or more){chains}; {advice}"
        )


class BalanceWarning(UserWarning):
    """The balancing stopped before its tolerance: `error` is left after `n_steps`."""

    def __init__(self, error: float, n_steps: int):
        self.error, self.n_steps = error, n_steps
        super().__init__(
            f"the balanced weights still miss their sums by {error:.2g} after {n_steps} steps; "
            "the draws stay valid, since their weights correct for it"
        )


class AgreementWarning(UserWarning):
    """The users agree no more than by chance, so alpha is estimated as 0: `n_users` of them."""

    def __init__(self, n_users: int):
        self.n_users = n_users
        super().__init__(
            f"the {n_users} users agree no more than by chance, so alpha is estimated as 0 and "
            "every consensus is equally likely: look for groups with n_clusters='auto', give "
            "alpha, or use method='mcmc'"
        )


class ContradictionWarning(UserWarning):
    """Users contradict themselves, so that some comparisons must be wrong: `n_users` of `n_all`,
    and the first of them, `user`, with a `cycle` of items."""

    def __init__(self, n_users: int, n_all: int, user: Any, cycle: list[Any]):
        self.n_users, self.n_all, self.user, self.cycle = n_users, n_all, user, cycle
        super().__init__(
            f"{describe_contradictions(n_users, n_all, user, cycle)}; so the fit assumes that some "
            "answers are wrong (errors='bernoulli'): give errors='bernoulli' or 'logistic' to "
            "choose how"
        )


def describe_contradictions(n_users: int, n_all: int, user: Any, cycle: list[Any]) -> str:
    """Who gives contradictory answers, and which.

    >>> describe_contradictions(1, 60, "bob", ["tea", "ale"])
    "1 of 60 users gives contradictory answers: user 'bob' prefers 'tea' to 'ale' to 'tea'"
    """
    path = [repr(item) for item in [*cycle, cycle[0]]]
    if len(path) > MOST_SHOWN + 1:  # a cycle may be as long as there are items
        path[MOST_SHOWN - 1 : -1] = [f"... ({len(path) - MOST_SHOWN} more) ..."]
    shown = " to ".join(path)
    verb = "gives" if n_users == 1 else "give"
    who = f"{n_users} of {n_all} users {verb} contradictory answers"
    return f"{who}: user {user!r} prefers {shown}"


class AlphaWarning(UserWarning):
    """Nothing in the data bounds the alpha of some clusters from above: `clusters`, `medians`.

    One consensus agrees with all of their users, so the prior alone decides.
    """

    def __init__(self, clusters: list[int], medians: list[float], n_clusters: int):
        self.clusters, self.medians = clusters, medians
        found = [
            f"cluster={cluster}: the data set no upper limit on its alpha (median {median:.3g})"
            for cluster, median in zip(clusters, medians, strict=True)
        ]
        if n_clusters == 1:
            found = [f"the data set no upper limit on alpha (median {medians[0]:.3g})"]
        merge = "use fewer clusters or " if n_clusters > 1 else ""
        super().__init__(
            f"{'; '.join(found)}: one consensus agrees with all users, so the prior alone decides "
            f"how much they agree; {merge}give alpha"
        )


def weighted_size_limit(n_draws: int) -> float:
    """The effective size that so many independent draws with weights should have."""
    return min(EFFECTIVE_SIZE_LIMIT, n_draws / 2)


class EffectiveSizeWarning(UserWarning):
    """A few draws carry all the weight: `effective_size` of `n_draws`, where `size_limit` or more
    are wanted."""

    def __init__(self, effective_size: float, n_draws: int):
        self.effective_size, self.n_draws = effective_size, n_draws
        self.size_limit = weighted_size_limit(n_draws)
        super().__init__(
            f"a few draws carry nearly all the weight: the {n_draws} draws are worth "
            f"{effective_size:.1f} equal ones (want {self.size_limit:.0f} or more); raise "
            "n_draws, use method='mcmc', or drop the weights (weighted=False), which makes the "
            "intervals too wide"
        )


def contradicts_equal_gaps(settings: dict[str, Any]) -> bool:
    """Was a fit of votes made with equal gaps between neighbours, though the votes have others?"""
    votes = settings.get("votes")
    return votes is not None and votes["gaps"] == "equal" and votes["p_value"] < LARGEST_P_VALUE


def describe_tempering(settings: dict[str, Any]) -> str:
    """That the chains were tempered, and the log evidence, in a sentence; nothing if they were not.

    >>> found = {"powers": [1.0, 0.5, 0.0], "log_evidence": -53.8, "log_evidence_error": 0.04}
    >>> print(describe_tempering({"tempered": found}))  # doctest: +NORMALIZE_WHITESPACE
    Parallel tempering with 3 temperatures let the chains cross between modes;
    the log evidence is -53.80 ± 0.04.
    """
    tempered = settings.get("tempered")
    if tempered is None:
        return ""
    value, error = tempered["log_evidence"], tempered["log_evidence_error"]
    return (
        f"Parallel tempering with {len(tempered['powers'])} temperatures let the chains cross "
        f"between modes; the log evidence is {value:.2f} ± {error:.2f}."
    )


class UncorrectedWarning(UserWarning):
    """Probabilities of a `window` longer than the `largest` that a correction holds for."""

    def __init__(self, window: int, largest: int):
        self.window, self.largest = window, largest
        super().__init__(
            f"the probabilities of the next {window} items are not corrected: what is observed was "
            f"learnt for windows of 1 to {largest}. They come from the model alone and may be off "
            f"by ten points or more. Ask for a window of {largest} or less, or fit with held_out= "
            f"later clicks, {window} or more of each of at least 50 users"
        )


class UnconnectedWarning(UserWarning):
    """Some items were never compared with others, not even through a third: `groups[group]` are the
    items of each group that was compared among itself."""

    def __init__(self, groups: list[list[Any]]):
        self.groups = groups
        super().__init__(
            f"{describe_groups(groups)}; the order of items of different groups comes from the "
            "prior alone: add comparisons across the groups, or fit each group by itself"
        )


def describe_groups(groups: list[list[Any]]) -> str:
    """How many groups of items were never compared with each other, and the first items of some.

    >>> print(describe_groups([["a", "b", "c", "d"], ["x"]]).partition(": ")[2])
    'a', 'b', 'c', ... (4 items); 'x' (1 item)
    """
    shown = [
        f"{', '.join(map(repr, group[:3]))}{', ...' if len(group) > 3 else ''} "
        f"({len(group)} item{'s' if len(group) > 1 else ''})"
        for group in groups[:MOST_SHOWN]
    ]
    shown += ["..."] if len(groups) > MOST_SHOWN else []
    words = f"the items form {len(groups)} groups that were never compared with each other"
    return f"{words}: {'; '.join(shown)}"


class VotesWarning(UserWarning):
    """Votes contradict equal gaps between the neighbours of the consensus, which `gaps="equal"`
    asked for: `p_value` says how clearly."""

    def __init__(self, p_value: float):
        self.p_value = p_value
        super().__init__(
            f"the votes contradict equal gaps between neighbours (p-value {p_value:.2g}), so the "
            "intervals are too narrow, and items that mostly met strong ones may be ranked too "
            "low: leave gaps out, or use gaps='free'"
        )


class MatchedWarning(UserWarning):
    """The additive likelihood is not close enough to the exact one: `n_draws` draws, weighed by the
    exact likelihood, are worth `effective_share` of them."""

    def __init__(self, effective_share: float, n_draws: int):
        self.effective_share, self.n_draws = effective_share, n_draws
        super().__init__(
            "the approximation of method='matched' is not close enough here: by the exact "
            f"likelihood, {n_draws} of its draws are worth {effective_share:.0%} of their number "
            f"(want {LEAST_EFFECTIVE_SHARE:.0%} or more); use method='mcmc', which corrects them"
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
    halves = _split(draws)
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    return np.maximum(_plain_rhat(_normal_scores(halves)), _plain_rhat(_normal_scores(folded)))


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


def _correlation_times(correlations: NDArray[np.float64]) -> NDArray[np.float64]:
    """How many draws are worth one, by Geyer's initial monotone sequence, from
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
        found = np.sqrt((between / within + n_draws - 1) / n_draws)
    is_constant = (np.ptp(scores, axis=1) == 0).all(axis=0)
    apart = np.where(np.ptp(scores, axis=(0, 1)) == 0, 1.0, np.inf)
    return np.asarray(np.where(is_constant, apart, found))


def _autocovariance(chains: NDArray[np.float64]) -> NDArray[np.float64]:
    """``covariances[chain, lag, ...]``."""
    n_draws = chains.shape[1]
    size = 1 << (2 * n_draws - 1).bit_length()
    spectrum = np.fft.rfft(chains - chains.mean(axis=1, keepdims=True), size, axis=1)
    return np.fft.irfft(np.abs(spectrum) ** 2, size, axis=1)[:, :n_draws] / n_draws


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """R-hat and effective sample size of each item's rank and of alpha, where it is sampled.

    For independent draws R-hat is near 1 and the size is that of the weights.
    """

    rank_rhat: NDArray[np.float64]
    rank_effective_size: NDArray[np.float64]
    alpha_rhat: float
    alpha_effective_size: float
    is_sample: bool = False  # of the items only some are here

    @classmethod
    def of(
        cls,
        ranks: NDArray[np.int32],
        alpha: NDArray[np.float64],
        scale: float,
        is_sample: bool,
    ) -> "Diagnostics":
        """Of ``ranks[chain, draw, item]`` and ``alpha[chain, draw]``; `scale` is what a draw is
        worth by its weight."""
        is_fixed = bool((np.ptp(alpha, axis=1) == 0).all())  # estimated, by each chain for itself
        return cls(
            in_blocks(rhat, ranks),
            scale * in_blocks(effective_size, ranks),
            1.0 if is_fixed else float(rhat(alpha)),
            scale * float(alpha.size if is_fixed else effective_size(alpha)),
            is_sample,
        )

    @property
    def worst_rhat(self) -> float:
        """The largest R-hat."""
        return float(max(self.rank_rhat.max(), self.alpha_rhat))

    @property
    def checked_effective_size(self) -> float:
        """The size by which the draws are judged: the smallest, or, of more than 4,000 items, of
        which the worst is bad by chance, the smaller of alpha's and the median over items."""
        if not self.is_sample and len(self.rank_rhat) <= DENSE_ITEMS:
            return self.least_effective_size
        return float(min(np.median(self.rank_effective_size), self.alpha_effective_size))

    @property
    def least_effective_size(self) -> float:
        """The smallest effective sample size."""
        return float(min(self.rank_effective_size.min(), self.alpha_effective_size))
