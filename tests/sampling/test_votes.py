"""Leaderboards from votes: the posterior against enumeration, calibration, honest intervals."""

import functools
import itertools
import math
import warnings

import numpy as np
import pytest
from scipy import stats

import naive
import pseudomallows as pm
from helpers import p_value
from pseudomallows.sampling.priors import AlphaPrior, default_prior
from simulated_votes import bradley_terry, simulate, votes_of_wins

WINS = np.array([[0, 3, 2, 4], [1, 0, 3, 2], [1, 1, 0, 2], [0, 1, 2, 0]])
GRID = np.exp(np.arange(math.log(1e-3), math.log(300.0), 0.05))


def quietly(prefs, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.diagnostics.FitWarning)
        warnings.simplefilter("ignore", pm.diagnostics.VotesWarning)
        return pm.fit(prefs, "mcmc", distance="kendall", **options)


@functools.cache
def probability(gap, n_items, alpha):
    """That an item is preferred to one so many places behind it, by a sum over all rankings."""
    center, first = tuple(range(1, n_items + 1)), max(0, -gap)
    return naive.pair_likelihood([(first, first + gap)], center, alpha, "kendall")


@functools.cache
def joint(shape, rate):
    """``[consensus, alpha]`` on the grid, by sums over all rankings."""
    logs = np.empty((24, len(GRID)))
    for place, alpha in enumerate(GRID.tolist()):
        logs_of = {gap: math.log(probability(gap, 4, alpha)) for gap in (-3, -2, -1, 1, 2, 3)}
        for number, ranks in enumerate(naive.all_rankings(4)):
            logs[number, place] = AlphaPrior(shape, rate).log_density(alpha) + math.log(alpha)
            for i, j in itertools.permutations(range(4), 2):
                logs[number, place] += WINS[i, j] * logs_of[ranks[j] - ranks[i]]
    found = np.exp(logs - logs.max())
    return found / found.sum()


@functools.cache
def long_fit():
    options = {"n_chains": 1, "n_draws": 6000, "thin": 8, "warmup": 100, "rng": 3}
    return quietly(votes_of_wins(WINS), gaps="equal", **options)


def p_values(prior):
    """Of the consensus, by chi-square; of alpha, in twelfths of its exact law."""
    posterior, exact = long_fit(), joint(*prior)
    law = dict(zip(naive.all_rankings(4), exact.sum(axis=1).tolist(), strict=True))
    of_consensus = p_value(posterior.consensus[0, :, 0], law)
    below = np.interp(np.log(posterior.alpha.ravel()), np.log(GRID) + 0.025, exact.sum(0).cumsum())
    cells = np.bincount(np.minimum((12 * below).astype(int), 11), minlength=12)
    return of_consensus, stats.chisquare(cells).pvalue


def test_the_posterior_of_votes_is_that_of_enumeration():
    assert min(p_values(default_prior(4))) > 1e-4


def test_another_prior_of_alpha_is_caught():
    assert p_values((2.0, 1.5))[1] < 1e-6


def test_fits_of_votes_settle_and_say_how():
    rng = np.random.default_rng(4)
    wins = simulate(pm_probabilities(10, 5.0), 2000, rng)
    posterior = pm.fit(votes_of_wins(wins), "mcmc", distance="kendall", rng=1)
    found = posterior.diagnostics()
    assert found.worst_rhat < 1.02
    assert posterior.settings["latent"] == "summed out by a closed form"
    votes = posterior.settings["votes"]
    assert votes["gaps"] == "equal"
    assert votes["ties"] == "half a win for each"
    assert posterior.verdict().answer == "yes"
    low, high = np.percentile(posterior.alpha, [0.5, 99.5])
    assert low < 5.0 < high
    assert naive.kendall(posterior.point_consensus().tolist(), list(range(1, 11))) <= 4


def pm_probabilities(n_items, alpha):
    from pseudomallows.distances.vote_tally import pair_probabilities

    return pair_probabilities(np.arange(1, n_items + 1), alpha / n_items)


def test_rows_of_equal_votes_are_as_good_as_one_with_their_weight(tmp_path):
    wins = np.array([[0, 2, 1], [1, 0, 3], [0, 1, 0]])
    better, worse = np.nonzero(wins)
    names, counts = "abc", wins[better, worse]
    listed = [
        (names[i], names[j])
        for i, j, count in zip(better, worse, counts, strict=True)
        for _ in range(count)
    ]
    fits = [
        quietly(prefs, rng=1, n_draws=20, n_chains=1)
        for prefs in (votes_of_wins(wins), pm.Preferences.from_pairs(listed))
    ]
    assert (fits[0].consensus == fits[1].consensus).all()
    assert (fits[0].alpha == fits[1].alpha).all()
    fits[0].save(tmp_path / "votes.npz")
    again = pm.load(tmp_path / "votes.npz")
    assert again.settings["votes"] == fits[0].settings["votes"]


def test_votes_that_contradict_equal_gaps_have_wider_intervals_and_a_verdict():
    rng = np.random.default_rng(2)
    strengths = rng.normal(size=12)
    prefs = votes_of_wins(simulate(bradley_terry(strengths), 20_000, rng))
    free = pm.fit(prefs, "mcmc", distance="kendall", rng=1)
    with pytest.warns(pm.diagnostics.VotesWarning, match="too narrow") as caught:
        equal = pm.fit(prefs, "mcmc", distance="kendall", rng=1, gaps="equal")
    assert caught[0].message.p_value < 1e-6
    widths = [np.diff(each.intervals(), axis=1).mean() + 1 for each in (free, equal)]
    assert widths[0] > 1.1 * widths[1]
    assert free.settings["votes"]["widened"] > 1.1
    assert "own size" in free.verdict().words
    assert free.verdict().answer == "yes"
    assert equal.verdict().answer == "with care"
    assert (free.point_consensus("map") == np.argsort(np.argsort(-strengths_of(free))) + 1).all()


def strengths_of(posterior):
    return np.array(posterior.settings["votes"]["strengths"])


def test_clusters_of_votes_are_refused_in_words():
    prefs = votes_of_wins(WINS)
    for n_clusters in (2, "auto"):
        with pytest.raises(ValueError, match="says nothing about who resembles whom"):
            pm.fit(prefs, "mcmc", distance="kendall", n_clusters=n_clusters)
    with pytest.raises(ValueError, match="says nothing about who resembles whom"):
        pm.choose_clusters(prefs, distance="kendall")


def test_gaps_are_of_votes_alone():
    several = pm.Preferences.from_pairs({"ann": [("a", "b"), ("b", "c")], "bob": [("a", "c")]})
    with pytest.raises(ValueError, match="gaps='free' is for votes"):
        pm.fit(several, "mcmc", distance="kendall", gaps="free")
    with pytest.raises(ValueError, match="gaps must be one of"):
        pm.fit(votes_of_wins(WINS), "mcmc", distance="kendall", gaps="wide")


def place_of_truth(prior, seed):
    """Simulation-based calibration: the truth's place among the draws, of rank and alpha."""
    rng, shape, rate = np.random.default_rng(seed), *default_prior(5)
    ranks, alpha = rng.permutation(5), rng.gamma(shape, 1 / rate)
    wins = simulate(pm_probabilities(5, alpha)[np.ix_(ranks, ranks)], 40, rng)
    options = {"n_draws": 62, "thin": 10, "warmup": 100, "n_chains": 1, "alpha_prior": prior}
    posterior = quietly(votes_of_wins(wins), rng=rng, gaps="equal", **options)
    places = []
    for truth, draws in ((ranks[0] + 1, posterior.consensus[0, :, 0, 0]), (alpha, posterior.alpha)):
        n_lower, n_equal = (draws < truth).sum(), (draws == truth).sum()
        places.append(int(n_lower + rng.integers(n_equal + 1)))
    return places


def calibration(prior):
    places = np.array([place_of_truth(prior, seed) for seed in range(600)])
    return [stats.chisquare(np.bincount(row // 3, minlength=21)).pvalue for row in places.T]


@pytest.mark.slow
def test_fits_of_votes_are_calibrated():
    assert min(calibration(default_prior(5))) > 1e-4


@pytest.mark.slow
def test_a_wrong_prior_of_alpha_is_not_calibrated():
    shape, rate = default_prior(5)
    assert calibration((shape, 3 * rate))[1] < 1e-6


def coverage(n_items, n_votes, n_times, is_skewed, gaps):
    """Share of items whose 95 % interval holds their rank, and the mean width."""
    found = []
    for seed in range(n_times):
        rng = np.random.default_rng(seed)
        strengths = rng.normal(size=n_items)
        popularity = rng.gamma(1.0, size=n_items) + 0.1 if is_skewed else None
        wins = simulate(bradley_terry(strengths), n_votes, rng, popularity)
        posterior = quietly(votes_of_wins(wins), rng=seed, gaps=gaps, n_draws=100)
        low, high = posterior.intervals().T
        truth = np.argsort(np.argsort(-strengths)) + 1
        found.append([((low <= truth) & (truth <= high)).mean(), (high - low + 1).mean()])
    return np.mean(found, axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("is_skewed", [False, True])
@pytest.mark.parametrize("n_votes", [10_000, 50_000, 500_000])
def test_intervals_hold_the_ranks_of_strengths(n_votes, is_skewed):
    """Where the votes follow Bradley and Terry's law, equal gaps would hold them too seldom."""
    share, _ = coverage(30, n_votes, 20, is_skewed, "auto")
    assert share > 0.93
    narrow, _ = coverage(30, n_votes, 20, is_skewed, "equal")
    assert narrow < 0.94
