"""What a fit must warn of: draws that may not stand for the posterior."""

import warnings

import numpy as np

from ..posteriors.diagnostics import (
    EFFECTIVE_SIZE_LIMIT,
    LEAST_EFFECTIVE_SHARE,
    RHAT_LIMIT,
    AlphaWarning,
    ConvergenceWarning,
    EffectiveSizeWarning,
    MatchedWarning,
)
from ..posteriors.posterior import Posterior
from .run import Run


def warn_if_doubtful(posterior: Posterior, run: Run, stacklevel: int = 3) -> None:
    """Warn, on behalf of the caller of `fit`."""
    for doubt in (_doubts_of_chains if run.plan.is_markov else _doubts_of_weights)(posterior, run):
        warnings.warn(doubt, stacklevel=stacklevel)


def _doubts_of_weights(posterior: Posterior, run: Run) -> list[UserWarning]:
    n_draws = posterior.weights.size
    if posterior.effective_size < min(EFFECTIVE_SIZE_LIMIT, n_draws / 2):
        return [EffectiveSizeWarning(posterior.effective_size, n_draws)]
    return []


def _doubts_of_chains(posterior: Posterior, run: Run) -> list[UserWarning]:
    doubts: list[UserWarning] = []
    unbounded = np.flatnonzero(run.unbounded.mean(axis=0) >= 0.5).tolist()
    if unbounded:
        medians = np.median(posterior.alpha, axis=(0, 1))[unbounded].tolist()
        doubts.append(AlphaWarning(unbounded, medians, posterior.n_clusters))
    matched = posterior.settings.get("matched")
    if matched is not None and matched["effective_share"] < LEAST_EFFECTIVE_SHARE:
        doubts.append(MatchedWarning(matched["effective_share"], len(matched["differences"])))
    clusters = [
        posterior.diagnostics(cluster, some=True) for cluster in range(posterior.n_clusters)
    ]
    worst = max(diagnostics.judged_rhat for diagnostics in clusters)
    least = min(diagnostics.judged_effective_size for diagnostics in clusters)
    stuck = run.plan.method.stuck_chains(posterior, run.population, run.plan)
    size_limit = min(EFFECTIVE_SIZE_LIMIT, posterior.weights.size / 4)
    if stuck or not (worst <= RHAT_LIMIT and least >= size_limit):
        advice = run.plan.method.advice(run.plan.case)
        doubts.append(ConvergenceWarning(worst, least, stuck, advice))
    return doubts
