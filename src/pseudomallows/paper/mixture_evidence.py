"""The evidence of clusters of full rankings: Bayes factors of one cluster against two.

Chib's identity (1995, Marginal likelihood from the Gibbs output): at any parameters, the evidence
is likelihood times prior over posterior density. That density is a mean over labels drawn from the
posterior: given labels, each cluster is a posterior of its own, whose constant weighted draws know.
"""

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.preferences import Preferences
from ..laws.law import Clusters
from ..laws.registry import make_law
from ..posterior.posterior import Posterior
from ..rankings import as_rng, check_count
from .anytime import FullPosterior

Floats = NDArray[np.float64]
N_DRAWS = 400  # behind the constant of a cluster: known to 0.05, little beside the labels
MOST_CLUSTERS = 6  # all 720 permutations of their labels are summed over


class LogEvidence(NamedTuple):
    """Log probability of the data, with all parameters summed out, and its standard error."""

    log_evidence: float
    error: float


def mixture_evidence(
    prefs: Preferences,
    posterior: Posterior,
    n_labels: int = 50,
    rng: np.random.Generator | int | None = None,
) -> LogEvidence:
    """The log evidence of a fit of clusters of full rankings by "mcmc".

    Differences between fits of the same data are log Bayes factors; for one cluster, see
    ``posterior.log_evidence`` of method "balanced".

    Parameters
    ----------
    prefs : Preferences
        The full rankings.
    posterior : Posterior
        Their fit by "mcmc" with 2 to 6 clusters.
    n_labels : int
        From how many draws of the labels; the error falls with their root.
    rng : numpy.random.Generator or seed, optional
        Source of randomness.

    Examples
    --------
    >>> from pseudomallows import fit, simulate_rankings
    >>> prefs = simulate_rankings(80, 6, alpha=[4, 4], rng=1).preferences
    >>> two = mixture_evidence(prefs, fit(prefs, n_clusters=2, rng=1), rng=1)
    >>> one = fit(prefs, "balanced", rng=1)
    >>> two.log_evidence > one.log_evidence + 20
    True
    """
    settings, rng = posterior.settings, as_rng(rng)
    n_clusters, n_labels = posterior.n_clusters, check_count(n_labels, "n_labels")
    is_exact = settings.get("method") == "mcmc" and posterior.is_full
    if not (is_exact and 2 <= n_clusters <= MOST_CLUSTERS):
        raise ValueError(
            "the fit must be of full rankings, by method='mcmc' with 2 to "
            f"{MOST_CLUSTERS} clusters, got {posterior!r}"
        )
    names = ((prefs.users, posterior.users), (prefs.items, posterior.items))
    if not all(np.array_equal(one, other) for one, other in names):
        raise ValueError("the fit must be of these rankings: it has other users or items")
    shape, rate = settings["options"].get("alpha_prior") or (1.0, 1.0)
    share_prior, fixed_alpha = settings["options"]["share_prior"], settings["alpha"]

    def log_prior(alpha: float) -> float:
        if fixed_alpha is not None:
            return 0.0
        constant = shape * math.log(rate) - math.lgamma(shape)
        return float((shape - 1) * math.log(alpha) - rate * alpha + constant)

    # The parameters at which all is evaluated: the draw of the highest posterior density.
    law: Any = make_law(prefs.one_row_each()[0], None, settings["distance"])
    draws = [x.reshape(-1, *x.shape[2:]) for x in (posterior.consensus, posterior.alpha)]
    shares = posterior.shares.reshape(-1, n_clusters)
    best = int(np.nanargmax(posterior.log_posterior))
    consensus, alpha, weights = draws[0][best], draws[1][best], shares[best]
    likelihood = law.memberships(Clusters(consensus, alpha), weights, False)[1]
    prior = -n_clusters * math.lgamma(law.n_items + 1) + sum(map(log_prior, alpha.tolist()))
    prior += _log_dirichlet(weights, np.full(n_clusters, share_prior))

    # Their density, given labels that are drawn at draws of the parameters.
    densities = []
    for draw in np.linspace(0, len(shares) - 1, n_labels).astype(int):
        where = Clusters(draws[0][draw], draws[1][draw])
        sums = law.memberships(where, shares[draw], False)[0].cumsum(axis=1)
        labels = (rng.random(len(sums))[:, None] > sums[:, :-1]).sum(axis=1)
        table, sizes = np.empty((n_clusters, n_clusters)), np.empty(n_clusters)
        for cluster, tally in enumerate(law.tallies(labels, n_clusters)):
            own = FullPosterior(law, tally, fixed_alpha, log_prior, rng, balanced=True)
            table[cluster] = own.log_density(consensus, alpha, N_DRAWS)
            sizes[cluster] = tally.n_users
        permuted = [
            table[range(n_clusters), order].sum()
            + _log_dirichlet(weights[list(order)], share_prior + sizes)
            for order in itertools.permutations(range(n_clusters))
        ]
        densities.append(np.logaddexp.reduce(permuted) - math.lgamma(n_clusters + 1))
    logs = np.array(densities)
    ratios = np.exp(logs - logs.max())
    density = float(np.log(ratios.mean()) + logs.max())
    error = float(ratios.std(ddof=1) / ratios.mean() / math.sqrt(n_labels))
    return LogEvidence(likelihood + prior - density, error)


def _log_dirichlet(weights: Floats, counts: Floats) -> float:
    """Log density of a Dirichlet distribution."""
    constant = math.lgamma(counts.sum()) - sum(map(math.lgamma, counts))
    return float(constant + ((counts - 1) * np.log(weights)).sum())
