"""How many clusters describe unseen users best."""

import functools
import warnings

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.sampling.choose_clusters import LITTLE, ClusterCurve


def quietly(*args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.diagnostics.FitWarning)
        return pm.fit(*args, **options)


@functools.cache
def full():
    return pm.simulate_rankings(600, 20, [4, 6, 8], sizes=[280, 200, 120], rng=1)


@functools.cache
def clicked():
    return pm.simulate_clicks(1500, 50, [4, 6, 8], 8, sizes=[700, 500, 300], rng=1)


def test_the_number_of_clusters_is_found():
    curve = pm.choose_clusters(full().preferences, rng=1)
    assert curve.chosen == 3
    assert curve.means.max() - curve.means[2] < 0.05  # of 34: more are as good, and no better
    assert len(curve.n_clusters) == curve.means.argmax() + 3  # two more, then it stops


@pytest.mark.slow
def test_the_number_of_clusters_of_clicks_is_found():
    assert pm.choose_clusters(clicked().preferences, rng=1).chosen == 3


@pytest.mark.parametrize("n_users", [1, 2, 5, 20])
def test_tiny_data_have_one_cluster(n_users):
    prefs = pm.simulate_rankings(n_users, 6, 3, rng=1).preferences
    curve = pm.choose_clusters(prefs, rng=1)
    assert curve.chosen == 1
    assert curve.doubt or n_users == 20
    assert quietly(prefs, alpha=3, n_clusters="auto", n_draws=5, rng=1).n_clusters == 1


def test_more_than_two_clusters_are_tried_for_60_people():
    curve = pm.choose_clusters(pm.datasets.fruits(), rng=1)
    assert curve.n_clusters.tolist() == [1, 2, 3, 4]
    assert (curve.chosen, curve.doubt) == (2, "")


def test_the_edge_of_the_range_and_too_few_people_are_told():
    edge = pm.choose_clusters(pm.datasets.fruits(), 2, rng=1)
    assert "the best number, 2, is the largest that was tried" in repr(edge)
    assert "as largest is 1" in pm.choose_clusters(pm.datasets.fruits(), 1, rng=1).doubt
    few = pm.simulate_rankings(12, 6, 3, rng=1).preferences
    words = "'auto': nothing was compared: 12 users are too few for more than one cluster"
    with pytest.warns(pm.sampling.ClustersWarning, match=words):
        posterior = pm.fit(few, "mcmc", n_clusters="auto", n_draws=100, n_chains=1, rng=1)
    assert posterior.n_clusters == 1
    assert "nothing was compared" in posterior.verdict().words


def curve_of(means, noise, n_users):
    """Scores with these means; all but the first number differ from each other by noise."""
    rng = np.random.default_rng(1)
    scores = np.array(means)[:, None] + noise * rng.standard_normal((len(means), n_users))
    scores += np.array(means)[:, None] - scores.mean(axis=1, keepdims=True)
    return ClusterCurve(np.arange(1, len(means) + 1), scores)


def test_few_people_are_told_that_the_next_number_may_be_better():
    assert curve_of([-5.0, -4.9, -4.8, -4.9], 0.8, 60).to_predict == 1
    words = "3 clusters describe unseen users better than 1, but with 60 users"
    assert words in curve_of([-5.0, -4.9, -4.8, -4.9], 0.8, 60).doubt
    words = "3 clusters describe unseen users better than 2, but with 60 users"
    assert words in curve_of([-5.0, -3.2, -3.0, -3.1], 0.8, 60).doubt
    # a twentieth of the gain of all clusters is too little; many users can tell; one is best
    assert not curve_of([-5.0, -3.02, -3.0, -3.1], 0.8, 60).doubt
    assert not curve_of([-5.0, -3.2, -3.0, -3.1], 0.8, 600).doubt
    assert not curve_of([-5.0, -5.2, -5.3], 0.8, 60).doubt


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [3, 5])
def test_three_clusters_of_60_people_are_chosen_or_told(alpha):
    for seed in range(5):
        data = pm.simulate_rankings(60, 5, [alpha] * 3, rng=seed)
        curve = pm.choose_clusters(data.preferences, rng=1)
        near = curve.means[curve.n_clusters == 3][0] - curve.means[curve.n_clusters == curve.chosen]
        assert near[0] < LITTLE * np.ptp(curve.means[:3]) or curve.doubt


def test_auto_cuts_no_population_into_pieces_and_drops_options_without_effect():
    prefs = pm.simulate_rankings(200, 10, 4, rng=2).preferences
    posterior = quietly(prefs, "mcmc", n_clusters="auto", share_prior=0.5, thin=2, rng=1)
    assert posterior.n_clusters == 1
    with pytest.raises(TypeError, match="has no option 'nchains'"):
        pm.fit(prefs, "mcmc", n_clusters="auto", nchains=2)
    with pytest.raises(ValueError, match="share_prior must be above 0"):
        pm.fit(prefs, "mcmc", n_clusters="auto", share_prior=0)


def compared(rankings, n_pairs, rng, wrong=0.0):
    """Comparisons of pairs by people with these rankings."""
    said = []
    for user, ranks in enumerate(rankings):
        for _ in range(n_pairs):
            one, other = rng.permutation(len(ranks))[:2]
            is_first = (ranks[one] < ranks[other]) != (rng.random() < wrong)
            said.append((user, one, other) if is_first else (user, other, one))
    return pm.Preferences.from_pairs(said, items=list(range(rankings.shape[1])))


@pytest.mark.parametrize("wrong", [0.0, pytest.param(0.1, marks=pytest.mark.slow)])
def test_the_number_of_clusters_of_comparisons_is_found(wrong):
    rng, up = np.random.default_rng(1), np.arange(1, 7)
    camps = [pm.Mallows(order, 10).draw(30, rng) for order in (up, up[::-1])]
    curve = pm.choose_clusters(compared(np.concatenate(camps), 8, rng, wrong), 2, rng=1)
    assert curve.to_predict == curve.to_describe == 2
    assert "2 clusters to describe, 2 to predict" in repr(curve)


@pytest.mark.slow
def test_comparisons_by_people_of_one_mind_have_one_cluster():
    found = []
    for seed in range(4):  # two standard errors: a second cluster comes by chance in one of 40
        rng = np.random.default_rng(seed)
        rankings = pm.Mallows(np.arange(1, 7), 10).draw(60, rng)
        found.append(pm.choose_clusters(compared(rankings, 8, rng), 2, rng=1).to_describe)
    assert found.count(1) >= 3


def test_votes_and_latent_rankings_without_a_likelihood_are_refused():
    with pytest.raises(ValueError, match="here each compared one"):
        pm.choose_clusters(pm.Preferences.from_pairs([("a", "b"), ("b", "c")] * 20))
    gaps = pm.Preferences.from_rankings([[1, 0, 2, 0], [0, 1, 0, 2]] * 20)
    with pytest.raises(ValueError, match="give n_clusters as a number"):
        pm.choose_clusters(gaps, distance="ulam")
