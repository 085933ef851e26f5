"""Which distance describes unseen users best."""

import numpy as np
import pytest

import naive
import pseudomallows as pm
from pseudomallows import distances
from pseudomallows.sampling.choose_distance import DistanceScores, estimate_log_likelihoods
from pseudomallows.sampling.priors import default_prior

TRUTHS = {"footrule": 12, "kendall": 12, "cayley": 20, "hamming": 40}


@pytest.mark.parametrize(("name", "alpha"), TRUTHS.items())
def test_the_distance_that_the_users_were_drawn_by_is_found(name, alpha):
    rankings = pm.Mallows(np.arange(1, 11), alpha, distance=name).draw(150, rng=2)
    found = pm.choose_distance(pm.Preferences.from_rankings(rankings), list(TRUTHS), rng=1)
    assert found.chosen == name or name in found.rivals
    assert np.isinf(found.effective_sizes).all()
    assert name in repr(found)


def test_top_lists_are_compared_too():
    rankings = pm.Mallows(np.arange(1, 9), 30, distance="kendall").draw(200, rng=2)
    rankings = np.where(rankings <= 4, rankings, 0)
    names = ["kendall", "hamming", "cayley"]
    found = pm.choose_distance(pm.Preferences.from_rankings(rankings), names, rng=1)
    assert found.chosen == "kendall"
    assert np.isinf(found.effective_sizes).tolist() == [True, True, False]


@pytest.mark.parametrize("name", [name for name in distances.DISTANCES if name != "footrule"])
def test_estimated_likelihoods_are_near_the_exact_ones(name):
    rows = [[1, 0, 0, 0, 0], [0, 2, 0, 1, 0], [3, 1, 1, 3, 3], [0, 0, 2, 0, 5]]
    consensus, alpha = [2, 5, 1, 3, 4], 3.0
    exact = [naive.likelihood(row, consensus, alpha, name) for row in rows]
    center = np.array(consensus, dtype=np.int32)
    found, sizes = estimate_log_likelihoods(np.array(rows, np.int32), center, alpha, name, 3)
    assert np.abs(found - np.log(exact)).max() < 0.25
    assert sizes.min() > 40
    wrong = [naive.likelihood(row, consensus, 4 * alpha, name) for row in rows]
    assert np.abs(found - np.log(wrong)).max() > 0.5


def test_clicks_are_compared_as_ties():
    clicks = pm.simulate_clicks(80, 8, alpha=10, rng=1).preferences
    found = pm.choose_distance(clicks, ["footrule", "hamming"], rng=1)
    assert found.scores.shape == (2, 80)
    assert found.chosen == "footrule"


def test_distances_that_cannot_take_so_many_items_are_left_out():
    rankings = pm.Mallows(np.arange(1, 71), 50).draw(8, rng=1)
    found = pm.choose_distance(pm.Preferences.from_rankings(rankings), rng=1)
    assert "ulam" not in found.distances
    assert "kendall" in found.distances


def test_bad_input_is_refused():
    prefs = pm.Preferences.from_rankings([[1, 2, 3], [2, 1, 3]])
    with pytest.raises(ValueError, match="needs 6 informative users or more, got 2"):
        pm.choose_distance(prefs)
    with pytest.raises(ValueError, match="distance must be one of"):
        pm.choose_distance(pm.datasets.fruits(), ["euclid"])
    with pytest.raises(ValueError, match="at least one distance, got none"):
        pm.choose_distance(pm.datasets.fruits(), [])


def test_rivals_are_those_within_two_standard_errors():
    scores = np.array([[0.0, 1.0, 0.0, 1.0], [0.1, 0.8, 0.0, 1.0], [-5.0, -4.0, -5.0, -4.0]])
    found = DistanceScores(["a", "b", "c"], scores, np.full(3, np.inf))
    assert (found.chosen, found.rivals) == ("a", ["b"])


def test_the_prior_of_alpha_is_that_of_the_caller():
    rankings = pm.Mallows(np.arange(1, 6), 3).draw(12, rng=2)
    prefs, names = pm.Preferences.from_rankings(rankings), ["footrule", "hamming"]
    usual = pm.choose_distance(prefs, names, rng=1)
    (shape, rate) = default_prior(5)
    same = pm.choose_distance(prefs, names, alpha_prior=(shape, rate), rng=1)
    assert np.array_equal(usual.scores, same.scores)
    sharp = pm.choose_distance(prefs, names, alpha_prior=(1, 1000), rng=1)  # nobody agrees
    chance = -np.log(120)
    assert sharp.scores == pytest.approx(np.full((2, 12), chance), abs=0.1)
    assert np.abs(usual.scores - chance).max() > 0.5
    with pytest.raises(TypeError, match="alpha_prior must be"):
        pm.choose_distance(prefs, names, alpha_prior=3)
