"""Mallows with each distance, through the public door; full rankings fitted by each."""

import numpy as np
import pytest

import naive
import pseudomallows as pm
from helpers import p_value
from pseudomallows import maximum_likelihood_alpha
from pseudomallows.distances import DISTANCES

CONSENSUS = (2, 4, 1, 3)
each = pytest.mark.parametrize("name", DISTANCES)


@each
def test_mallows_is_the_law_of_its_distance_around_any_consensus(name):
    m, law = pm.Mallows(CONSENSUS, 1.2, distance=name), naive.mallows(CONSENSUS, 1.2, name)
    found = np.exp(m.log_probability(list(law)))
    assert found == pytest.approx(np.array(list(law.values())))
    assert m.rank_probabilities() == pytest.approx(np.array(naive.marginals(law)))
    assert m.expected_ranks() == pytest.approx(np.array(naive.marginals(law)) @ [1, 2, 3, 4])
    mean = sum(p * naive.DISTANCES[name](r, CONSENSUS) for r, p in law.items())
    assert m.expected_distance() == pytest.approx(mean)
    assert m.log_partition_error == 0
    assert p_value(m.draw(20_000, rng=1), law) > 1e-4


def test_the_distance_is_named_unless_it_is_the_footrule():
    assert repr(pm.Mallows([1, 2], 3)) == "Mallows(2 items, alpha=3)"
    assert repr(pm.Mallows([1, 2], 3, "ulam")) == "Mallows(2 items, alpha=3, distance='ulam')"


@each
def test_alpha_is_found_again_from_draws(name):
    consensus, alpha = np.arange(1, 11), 2.0 if name in ("footrule", "spearman") else 8.0
    alpha = 0.3 if name == "spearman" else alpha
    draws = pm.Mallows(consensus, alpha, name).draw(4000, rng=1)
    found = maximum_likelihood_alpha(draws, consensus, distance=name)
    assert found == pytest.approx(alpha, rel=0.1)


@each
def test_the_public_distance_takes_one_ranking_or_rows(name):
    rankings, exact = naive.all_rankings(4), naive.DISTANCES[name]
    assert pm.distance(rankings[5], CONSENSUS, name) == exact(rankings[5], CONSENSUS)
    assert isinstance(pm.distance(rankings[5], CONSENSUS, name), int)
    expected = [exact(r, CONSENSUS) for r in rankings]
    assert pm.distance(rankings, CONSENSUS, name).tolist() == expected
    assert pm.distance(CONSENSUS, rankings, name).tolist() == expected


def test_the_public_distance_is_the_footrule_and_checks():
    assert pm.distance([1, 2, 3], [3, 2, 1]) == pm.footrule([1, 2, 3], [3, 2, 1]) == 4
    with pytest.raises(ValueError, match="same items, got 2 and 3 items"):
        pm.distance([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="cannot compare 2 rankings with 3"):
        pm.distance([[1, 2]] * 2, [[1, 2]] * 3, "ulam")
    with pytest.raises(ValueError, match="not a permutation"):
        pm.distance([1, 1], [1, 2], "kendall")


@each
@pytest.mark.filterwarnings("ignore::pseudomallows.diagnostics.FitWarning")
def test_full_rankings_are_fitted_by_every_distance(name):
    """Against the exact posterior of a few rankings, and that of another distance fails."""
    rankings = [[1, 2, 3, 4], [2, 1, 3, 4], [1, 4, 2, 3], [2, 3, 4, 1]]
    alpha = 2.0 if name != "spearman" else 0.5
    prefs = pm.Preferences.from_rankings(rankings)
    fit = pm.fit(prefs, "mcmc", alpha, n_draws=4000, distance=name, rng=1)
    exact = np.array(naive.marginals(naive.posterior(rankings, alpha, name)))
    assert np.abs(fit.rank_probabilities() - exact).max() < 0.03
    assert fit.settings["distance"] == name


@each
@pytest.mark.filterwarnings("ignore::pseudomallows.diagnostics.FitWarning")
def test_two_clusters_are_found_by_every_distance(name):
    alpha = {"spearman": 1.0, "footrule": 8.0, "kendall": 14.0, "hamming": 14.0}
    alpha = alpha.get(name, 28.0)
    centers = [np.arange(1, 8), np.array([7, 5, 6, 4, 1, 3, 2])]
    parts = [pm.Mallows(c, alpha, name).draw(40, rng=k) for k, c in enumerate(centers)]
    prefs = pm.Preferences.from_rankings(np.concatenate(parts))
    fit = pm.fit(prefs, "mcmc", n_clusters=2, n_draws=60, distance=name, rng=3)
    truth = np.repeat([0, 1], 40)
    assert pm.scores.rand_index(fit.labels, truth) > 0.8


@pytest.mark.parametrize("method", ["pseudo", "balanced"])
def test_methods_of_costs_refuse_distances_that_do_not_add_up(method):
    prefs = pm.Preferences.from_rankings([[1, 2, 3], [1, 3, 2]])
    with pytest.raises(ValueError, match="does not add up over items: use one of"):
        pm.fit(prefs, method, 2.0, distance="kendall", rng=1)
