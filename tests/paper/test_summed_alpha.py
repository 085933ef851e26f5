"""Balanced draws of full rankings with alpha unknown, against integrals over all consensuses."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "experiments"))

import calibration_of_methods as calibration
import naive
import pseudomallows as pm

RANKINGS = [[1, 2, 3, 4], [2, 1, 3, 4], [1, 3, 2, 4], [2, 1, 4, 3], [4, 1, 2, 3]]
PREFS = pm.Preferences.from_rankings(RANKINGS)
PRIOR = (4.0, 1.0)


def likelihood(alpha, distance):
    """Probability of the rankings, the mean over all consensuses."""
    log_total = naive.log_partition(4, alpha, distance)
    between = naive.DISTANCES[distance]
    consensuses = naive.all_rankings(4)
    totals = [sum(between(r, consensus) for r in RANKINGS) for consensus in consensuses]
    weights = [math.exp(-alpha / 4 * total - len(RANKINGS) * log_total) for total in totals]
    return math.fsum(weights) / len(weights)


def integral(prior, distance, power=0):
    """The evidence, or that times the mean of a power of alpha."""
    shape, rate = prior

    def density(alpha):
        prior_density = rate**shape * alpha ** (shape - 1 + power) * math.exp(-rate * alpha)
        return likelihood(alpha, distance) * prior_density / math.gamma(shape)

    return quad(density, 0, 10)[0] + quad(density, 10, 60)[0]


@pytest.mark.parametrize("distance", ["footrule", "spearman", "hamming"])
@pytest.mark.parametrize("prior", [PRIOR, (1.0, 0.3), (0.7, 0.5)])
def test_the_evidence_and_the_mean_of_alpha_are_those_of_the_integral(distance, prior):
    found = pm.fit(PREFS, "balanced", alpha_prior=prior, distance=distance, rng=1, n_draws=20_000)
    evidence = integral(prior, distance)
    assert found.log_evidence_error < 0.02
    assert abs(found.log_evidence - math.log(evidence)) < 4 * found.log_evidence_error
    mean = float((found.weights * found.alpha[..., 0]).sum())
    assert mean == pytest.approx(integral(prior, distance, power=1) / evidence, rel=0.03)
    assert found.settings["alpha"] is None


def test_the_evidence_of_another_prior_or_distance_is_caught():
    found = pm.fit(PREFS, "balanced", alpha_prior=PRIOR, rng=1, n_draws=20_000)
    for wrong in (integral((4.0, 1.2), "footrule"), integral(PRIOR, "hamming")):
        assert abs(found.log_evidence - math.log(wrong)) > 8 * found.log_evidence_error


def test_rank_probabilities_are_those_with_alpha_unknown():
    found = pm.fit(PREFS, "balanced", alpha_prior=PRIOR, rng=1, n_draws=40_000)
    grid = np.linspace(0.01, 25, 1000)
    density = np.array([likelihood(alpha, "footrule") for alpha in grid])
    density *= grid ** (PRIOR[0] - 1) * np.exp(-PRIOR[1] * grid)
    exact, total = np.zeros((4, 4)), density.sum()
    for alpha, mass in zip(grid[::5], density[::5], strict=True):
        law = naive.posterior(RANKINGS, alpha) if mass > 1e-4 * total else {(1, 2, 3, 4): 1.0}
        exact += mass * np.array(naive.marginals(law)) / density[::5].sum()
    assert np.abs(found.rank_probabilities() - exact).max() < 0.015
    fixed = pm.fit(PREFS, "balanced", 6.0, rng=1, n_draws=40_000)
    assert np.abs(fixed.rank_probabilities() - exact).max() > 0.05


def test_the_evidence_at_a_given_alpha():
    found = pm.fit(PREFS, "balanced", 2.0, rng=1)
    assert abs(found.log_evidence - math.log(likelihood(2.0, "footrule"))) < 0.02
    assert abs(found.log_evidence - math.log(likelihood(2.2, "footrule"))) > 0.04


def test_tempered_chains_find_the_same_evidence(tmp_path):
    simulation = pm.simulate_rankings(20, 6, 3.0, rng=1)
    one = pm.fit(simulation.preferences, "balanced", rng=1)
    other = pm.fit(simulation.preferences, "mcmc", temperatures=5, rng=1)
    error = math.hypot(one.log_evidence_error, other.log_evidence_error)
    assert error < 0.1
    assert abs(one.log_evidence - other.log_evidence) < 4 * error
    one.save(tmp_path / "fit.pm")
    assert pm.load(tmp_path / "fit.pm").log_evidence == one.log_evidence


def test_users_who_agree_on_everything_leave_alpha_to_its_prior():
    prefs = pm.Preferences.from_rankings([[1, 2, 3, 4]] * 30)
    with pytest.warns(pm.diagnostics.AlphaWarning, match="no upper limit on alpha"):
        found = pm.fit(prefs, "balanced", rng=1)
    assert (found.point_consensus() == [1, 2, 3, 4]).all()
    with pytest.warns(pm.diagnostics.AlphaWarning, match="no upper limit on alpha"):
        sampled = pm.fit(prefs, "mcmc", rng=1)
    assert np.average(found.alpha, weights=found.weights[..., None]) == pytest.approx(
        sampled.alpha.mean(), rel=0.1
    )


def test_one_cluster_of_partial_rankings_has_no_prior_of_alpha():
    partial = pm.Preferences.from_rankings([[1, 2, 0, 0], [2, 1, 0, 0]])
    with pytest.raises(TypeError, match="has no option 'alpha_prior'"):
        pm.fit(partial, "balanced", alpha_prior=PRIOR, rng=1)
    found = pm.fit(PREFS, "pseudo", 2.0, rng=1)
    with pytest.raises(ValueError, match="weighted draws, which this fit has none of"):
        _ = found.log_evidence


def p_values(n_replications, prior):
    """{quantity: p-value} of simulation-based calibration."""
    options = {"weighted": True, "alpha_prior": prior}
    setting = calibration.Setting("balanced", "balanced", "full", None, options)
    counts = calibration.count_places(calibration.run([setting], n_replications, seed=20_261_119))
    return {quantity: calibration.p_value(bins) for (_, _, quantity), bins in counts.items()}


@pytest.mark.slow
def test_draws_with_alpha_unknown_are_calibrated_and_a_wrong_prior_is_caught():
    assert min(p_values(420, calibration.ALPHA_PRIOR).values()) > 1e-4
    assert p_values(210, (4.0, 2.0))["alpha"] < 1e-4
