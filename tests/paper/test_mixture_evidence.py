"""The evidence of two clusters, against sums over all consensuses and grids of all else."""

import math

import numpy as np
import pytest

import naive
import pseudomallows as pm

RANKINGS = [(1, 2, 3), (1, 2, 3), (1, 3, 2), (3, 2, 1), (3, 2, 1), (2, 3, 1), (3, 1, 2)]
PREFS = pm.Preferences.from_rankings(RANKINGS)
PRIOR = (4.0, 1.0)
pytestmark = pytest.mark.filterwarnings("ignore::pseudomallows.diagnostics.FitWarning")  # 7 users


def grid_evidence(share_prior, prior, distance, alphas=None):
    """Log evidence of two clusters by a sum over consensuses, weights and alphas."""
    consensuses = naive.all_rankings(3)
    if alphas is None:
        alphas = np.linspace(0.1, 14, 50)
        density = alphas ** (prior[0] - 1) * np.exp(-prior[1] * alphas)
    else:
        density = np.ones(len(alphas))
    density = density / density.sum()
    between = naive.DISTANCES[distance]
    probabilities = np.array(
        [
            [
                math.exp(-a / 3 * between(r, c) - naive.log_partition(3, a, distance))
                for r in RANKINGS
            ]
            for c in consensuses
            for a in alphas
        ]
    )
    masses = np.tile(density, len(consensuses)) / len(consensuses)
    weights = (np.arange(30) + 0.5) / 30
    beta = (weights * (1 - weights)) ** (share_prior - 1)
    total = 0.0
    for weight, share in zip(weights, beta / beta.sum(), strict=True):
        logs = np.zeros((len(masses), len(masses)))
        for user in probabilities.T:
            logs += np.log(weight * user[:, None] + (1 - weight) * user)
        total += share * (masses @ np.exp(logs) @ masses)
    return math.log(total)


@pytest.mark.parametrize("distance", ["footrule", "hamming"])
def test_it_is_that_of_sums_over_all_parameters(distance):
    options = {"alpha_prior": PRIOR, "share_prior": 2.0, "distance": distance}
    fitted = pm.fit(PREFS, "mcmc", n_clusters=2, n_draws=100, rng=1, **options)
    found = pm.paper.mixture_evidence(PREFS, fitted, 60, rng=1)
    assert found.error < 0.2
    exact = grid_evidence(2.0, PRIOR, distance)
    assert abs(found.log_evidence - exact) < 4 * found.error
    assert abs(found.log_evidence - grid_evidence(2.0, (4.0, 2.0), distance)) > 6 * found.error


def test_it_is_that_of_sums_at_a_known_alpha():
    fitted = pm.fit(PREFS, "mcmc", 3.0, n_clusters=2, n_draws=100, rng=1)
    found = pm.paper.mixture_evidence(PREFS, fitted, 60, rng=1)
    for alpha, is_right in [(3.0, True), (4.5, False)]:
        exact = grid_evidence(1.0, PRIOR, "footrule", np.array([alpha]))
        assert (abs(found.log_evidence - exact) < 4 * found.error < 0.6) == is_right


def test_two_clusters_are_preferred_where_there_are_two_and_one_where_there_is_one():
    for alphas, gain in [([4, 4], 20), (4, -1)]:
        prefs = pm.simulate_rankings(80, 6, alpha=alphas, rng=1).preferences
        two = pm.paper.mixture_evidence(prefs, pm.fit(prefs, "mcmc", n_clusters=2, rng=1), rng=1)
        difference = two.log_evidence - pm.fit(prefs, "balanced", rng=1).log_evidence
        assert difference > gain if gain > 0 else difference < gain
        assert two.error < 0.5


def test_other_fits_are_refused():
    one, two = pm.fit(PREFS, "balanced", rng=1), pm.fit(PREFS, n_clusters=2, rng=1)
    with pytest.raises(ValueError, match=r"must be of full rankings, by method='mcmc' with 2 to 6"):
        pm.paper.mixture_evidence(PREFS, one)
    with pytest.raises(ValueError, match="has other users or items"):
        pm.paper.mixture_evidence(pm.Preferences.from_rankings(RANKINGS[:-1]), two)
