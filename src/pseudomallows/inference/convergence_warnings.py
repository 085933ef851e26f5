"""What a fit must warn of: draws that may not stand for the posterior."""

import numpy as np
from numpy.typing import NDArray

from .._warn import warn
from ..posteriors.convergence import Convergence, check_convergence, groups_apart
from ..posteriors.diagnostics import (
    LEAST_EFFECTIVE_SHARE,
    AlphaWarning,
    ConvergenceWarning,
    EffectiveSizeWarning,
    MatchedWarning,
    UnconnectedWarning,
    VotesWarning,
    contradicts_equal_gaps,
    weighted_size_limit,
)
from ..posteriors.posterior import Posterior
from .methods.method import Plan

MOST_STRETCH = 8  # times as far apart as at first: where draws that go on until they are good end


def warn_of_convergence(
    posterior: Posterior,
    plan: Plan,
    unbounded: NDArray[np.bool_],
    judged: Convergence | None,
) -> None:
    """Warn, on behalf of the caller of `fit`.

    `unbounded[chain, cluster]`: does nothing in the data bound its alpha from above? `judged`: what
    the draws were found to be, if they were looked at.
    """
    if plan.is_markov:
        doubts = _warnings_of_alpha(posterior, unbounded)
        judged = check_convergence(posterior) if judged is None else judged
        doubts += _warnings_of_chains(posterior, plan, judged)
    else:
        doubts = _warnings_of_weights(posterior)
    for doubt in doubts:
        warn(doubt)


def thinning_needed(judged: Convergence, thinning: int) -> int:
    """How many times further apart the draws should be, 1 if they are good or at the limit.

    `thinning` is how much further apart they are already than at first. Chains that tell different
    stories get a second chance only: further apart on separate peaks, they stay as they are.
    """
    if judged.is_good or thinning >= MOST_STRETCH:
        return 1
    if not judged.rhat <= judged.poor_rhat:
        return 2 if thinning == 1 else 1
    wanted = max(2.0, judged.size_limit / max(judged.effective_size, 1.0))
    return int(min(2 ** np.ceil(np.log2(wanted)), MOST_STRETCH // thinning))


def _warnings_of_weights(posterior: Posterior) -> list[UserWarning]:
    n_draws = posterior.weights.size
    if posterior.effective_size < weighted_size_limit(n_draws):
        return [EffectiveSizeWarning(posterior.effective_size, n_draws)]
    return []


def _warnings_of_alpha(posterior: Posterior, unbounded: NDArray[np.bool_]) -> list[UserWarning]:
    clusters = np.flatnonzero(unbounded.mean(axis=0) >= 0.5).tolist()
    if not clusters:
        return []
    medians = np.median(posterior.alpha, axis=(0, 1))[clusters].tolist()
    return [AlphaWarning(clusters, medians, posterior.n_clusters)]


def _warnings_of_chains(posterior: Posterior, plan: Plan, judged: Convergence) -> list[UserWarning]:
    doubts: list[UserWarning] = []
    matched = posterior.settings.get("matched")
    if matched is not None and matched["effective_share"] < LEAST_EFFECTIVE_SHARE:
        doubts.append(MatchedWarning(matched["effective_share"], len(matched["differences"])))
    if contradicts_equal_gaps(posterior.settings):
        doubts.append(VotesWarning(posterior.settings["votes"]["p_value"]))
    if not judged.is_good:
        advice = plan.method.advice(plan.case)
        limits = (judged.rhat_limit, judged.size_limit)
        figures = (judged.rhat, judged.effective_size, list[int](), advice)
        doubts.append(ConvergenceWarning(*figures, *limits))
    if groups := groups_apart(posterior):
        doubts.append(UnconnectedWarning(groups))
    return doubts
