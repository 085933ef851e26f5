"""Votes: their law, and whether votes contradict equal gaps."""

import math

import numpy as np
from scipy import stats

import naive
import pseudomallows as pm
from law_cases import one_cluster
from pseudomallows.distances.vote_tally import VoteTally, pair_probabilities
from pseudomallows.laws.registry import find_law, make_law
from pseudomallows.laws.votes import Misfit, VoteLaw, mean_width, misfit_of
from simulated_votes import bradley_terry, simulate, votes_of_wins

VOTES = [("a", "b"), ("a", "b"), ("b", "a"), ("a", "c"), ("c", "d"), ("d", "b"), ("a", "d")]


def prefs_of(votes=VOTES):
    return pm.Preferences.from_pairs(votes, items=list("abcd"))


def test_votes_by_kendall_are_exact_and_several_comparisons_are_not():
    assert find_law(prefs_of(), "kendall") is VoteLaw
    assert find_law(prefs_of(), "footrule") is None
    several = pm.Preferences.from_pairs({"ann": [("a", "b"), ("b", "c")]})
    assert find_law(several, "kendall") is None


def test_likelihoods_are_sums_over_all_rankings():
    prefs, consensus = prefs_of(), (2, 1, 4, 3)
    found = pm.log_likelihood(prefs, consensus, 2.5, distance="kendall")
    pairs = [tuple("abcd".index(each) for each in vote) for vote in prefs_named(prefs)]
    exact = [math.log(naive.pair_likelihood([p], consensus, 2.5, "kendall")) for p in pairs]
    assert np.allclose(found, exact, rtol=1e-12)
    total = curve_of(make_law(prefs, None, "kendall"), consensus)(2.5)
    assert math.isclose(total, float(prefs.weights @ found), rel_tol=1e-12)
    wrong = [math.log(naive.pair_likelihood([p], consensus, 2.5, "footrule")) for p in pairs]
    assert not np.allclose(found, wrong, rtol=1e-3)


def curve_of(law, consensus):
    (tally,) = law.tallies(None, 1)
    return tally.curve(np.array(consensus, dtype=np.int32))


def prefs_named(prefs):
    """(better, worse) of each row."""
    named = zip(prefs.items[prefs.better].tolist(), prefs.items[prefs.worse].tolist(), strict=True)
    return list(named)


def test_a_tie_is_half_a_vote_for_each():
    tied = pm.data.Pairs(
        np.array([1, 1]),
        np.arange(2),
        np.arange(3),
        np.array([0, 1, 2]),
        np.array([0, 0], dtype=np.int32),
        np.array([1, 2], dtype=np.int32),
        np.array([0, 1]),
        np.array([1, 0]),
    )
    found = pm.log_likelihood(tied, [1, 2, 3], 2.0, distance="kendall")
    probability = naive.pair_likelihood([(0, 1)], (1, 2, 3), 2.0, "kendall")
    assert math.isclose(found[0], 0.5 * math.log(probability * (1 - probability)), rel_tol=1e-12)
    law = make_law(tied, None, "kendall")
    assert law.n_rows == 2  # a tie says something of alpha
    value = curve_of(law, [1, 2, 3])(2.0)
    assert math.isclose(value, float(found.sum()), rel_tol=1e-12)


def test_some_votes_have_a_law_of_their_own():
    law = make_law(prefs_of(), None, "kendall")
    some, consensus = law.select(np.array([1, 3])), [1, 2, 3, 4]
    rows = law.scores(one_cluster(consensus, 3.0), np.ones(1))
    exact = law.row_weights[[1, 3]] @ rows[[1, 3]]
    assert some.n_users == law.row_weights[[1, 3]].sum()
    assert math.isclose(curve_of(some, consensus)(3.0), exact, rel_tol=1e-12)
    assert law.features(2).shape == (law.n_rows, 2)
    assert law.mean_ranks.argmin() == 0
    (tally,) = law.tallies(None, 1)
    assert tally.evidence(1.0).shape == law.evidence_shape == (0,)
    draws = np.array([[1, 2, 3, 4], [2, 1, 3, 4], [2, 1, 3, 4]], dtype=np.int32)
    assert law.best_of(tally.evidence(1.0), draws).tolist() == [2, 1, 3, 4]


def p_values(probabilities, n_votes, n_times, popularity=None):
    rng, found = np.random.default_rng(3), []
    for _ in range(n_times):
        tally = VoteTally(2 * simulate(probabilities, n_votes, rng, popularity))
        found.append(misfit_of(tally, tally.best()).p_value)
    return np.array(found)


def test_votes_of_kendalls_law_seldom_contradict_it():
    found = p_values(pair_probabilities(np.arange(1, 9), 0.6), 4000, 60)
    assert (found < 0.2).mean() < 0.35  # in the limit 0.2 or so
    assert found.min() > 1e-4


def test_votes_of_strengths_contradict_equal_gaps():
    strengths = np.array([2, 0.5, 0.3, 0.2, 0, -0.1, -1, -3])
    assert p_values(bradley_terry(strengths), 4000, 10).max() < 1e-6


def test_the_p_value_is_that_of_the_chi_square():
    misfit = Misfit(20.0, 7, 30.0, 27)
    assert math.isclose(misfit.p_value, 2 * stats.chi2.sf(20.0, 7), rel_tol=1e-12)
    assert misfit.is_doubtful
    assert Misfit(6.4, 7, 27.0, 27).is_doubtful
    assert Misfit(6.3, 7, 41.0, 27).is_doubtful
    assert not Misfit(6.3, 7, 40.0, 27).is_doubtful
    assert Misfit(0.0, 1, 0.0, 1).p_value == 1.0


def test_gaps_are_free_by_data_or_by_choice():
    rng = np.random.default_rng(5)
    votes = votes_of_wins(simulate(bradley_terry(rng.normal(size=16)), 9000, rng))
    by_data = VoteLaw(votes)
    assert by_data.has_free_gaps
    assert not VoteLaw(votes, gaps="equal").has_free_gaps
    noted = by_data.notes()["votes"]
    assert noted["gaps"] == "free"
    assert noted["widened"] > 1
    assert len(noted["strengths"]) == 16
    votes = votes_of_wins(simulate(pair_probabilities(np.arange(1, 9), 0.5), 500, rng))
    kendall = VoteLaw(votes)
    assert not kendall.has_free_gaps
    assert kendall.notes()["votes"]["gaps"] == "equal"
    assert "widened" not in kendall.notes()["votes"]
    assert VoteLaw(votes, gaps="free").has_free_gaps


def test_the_width_of_an_interval_counts_its_ranks():
    assert mean_width(np.tile([[1, 2, 3]], (50, 1))) == 1.0
    draws = np.array([[1, 2, 3]] * 50 + [[2, 1, 3]] * 50)
    assert mean_width(draws) == (2 + 2 + 1) / 3
