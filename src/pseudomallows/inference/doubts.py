"""What a fit must warn of: draws that may not stand for the posterior."""

import warnings

import numpy as np
from numpy.typing import NDArray

from ..latent.population import Population
from ..posteriors.diagnostics import (
    EFFECTIVE_SIZE_LIMIT,
    LEAST_EFFECTIVE_SHARE,
    RHAT_LIMIT,
    AlphaWarning,
    ConvergenceWarning,
    EffectiveSizeWarning,
    MatchedWarning,
    VotesWarning,
    contradicts_equal_gaps,
)
from ..posteriors.posterior import Posterior
from .methods.method import Plan


def warn_if_doubtful(
    posterior: Posterior,
    plan: Plan,
    population: Population,
    unbounded: NDArray[np.bool_],
    stacklevel: int = 3,
) -> None:
    """Warn, on behalf of the caller of `fit`.

    `unbounded[chain, cluster]`: does nothing in the data bound its alpha from above?
    """
    if plan.is_markov:
        doubts = _doubts_of_alpha(posterior, unbounded)
        doubts += _doubts_of_chains(posterior, plan, population)
    else:
        doubts = _doubts_of_weights(posterior)
    for doubt in doubts:
        warnings.warn(doubt, stacklevel=stacklevel)


def _doubts_of_weights(posterior: Posterior) -> list[UserWarning]:
    n_draws = posterior.weights.size
    if posterior.effective_size < min(EFFECTIVE_SIZE_LIMIT, n_draws / 2):
        return [EffectiveSizeWarning(posterior.effective_size, n_draws)]
    return []


def _doubts_of_alpha(posterior: Posterior, unbounded: NDArray[np.bool_]) -> list[UserWarning]:
    clusters = np.flatnonzero(unbounded.mean(axis=0) >= 0.5).tolist()
    if not clusters:
        return []
    medians = np.median(posterior.alpha, axis=(0, 1))[clusters].tolist()
    return [AlphaWarning(clusters, medians, posterior.n_clusters)]


def _doubts_of_chains(
    posterior: Posterior, plan: Plan, population: Population
) -> list[UserWarning]:
    doubts: list[UserWarning] = []
    matched = posterior.settings.get("matched")
    if matched is not None and matched["effective_share"] < LEAST_EFFECTIVE_SHARE:
        doubts.append(MatchedWarning(matched["effective_share"], len(matched["differences"])))
    if contradicts_equal_gaps(posterior.settings):
        doubts.append(VotesWarning(posterior.settings["votes"]["p_value"]))
    clusters = [
        posterior.diagnostics(cluster, some=True) for cluster in range(posterior.n_clusters)
    ]
    worst = max(diagnostics.judged_rhat for diagnostics in clusters)
    least = min(diagnostics.judged_effective_size for diagnostics in clusters)
    stuck = plan.method.stuck_chains(posterior, population, plan)
    size_limit = min(EFFECTIVE_SIZE_LIMIT, posterior.weights.size / 4)
    if stuck or not (worst <= RHAT_LIMIT and least >= size_limit):
        advice = plan.method.advice(plan.case)
        doubts.append(ConvergenceWarning(worst, least, stuck, advice))
    return doubts
