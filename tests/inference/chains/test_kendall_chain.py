"""Chains on clicks under Kendall's distance are exact: against all rankings of a few items."""

import functools
import itertools
import math
import warnings

import numpy as np
import pytest

import naive
import pseudomallows as pm
from helpers import check_two_clusters, p_value, two_alpha_errors
from pseudomallows.inference.chains.matched_cluster import MatchedCluster, MatchedProposals
from pseudomallows.inference.chains.matched_mixture import MatchedMixture
from pseudomallows.inference.priors import default_prior
from pseudomallows.latent.kendall_clicks import KendallLaw, KendallTally
from pseudomallows.latent.registry import make_population

FOUR = ((0,), (0, 1), (1, 2), (0, 1, 2), (3,), (0, 2))
FIVE = ((0, 1), (0,), (1, 2, 3), (0, 1, 2), (4, 0), (0, 3), (1,))
TINY = ((0,), (0, 1), (2,), (1, 2))
GRID = np.exp(np.arange(math.log(1e-3), math.log(300.0), 0.03))


def preferences(rows, n_items, weights=None):
    prefs = pm.Preferences.from_clicks(dict(enumerate(map(list, rows))), items=range(n_items))
    if weights is None:
        return prefs
    return pm.Clicks(np.array(weights), prefs.users, prefs.items, prefs.starts, prefs.codes)


def quietly(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.diagnostics.FitWarning)
        return pm.fit(*arguments, method="mcmc", distance="kendall", **options)


LONG = {"n_chains": 1, "n_draws": 4000, "thin": 3, "warmup": 100, "rng": 1}


def exact_consensus(rows, n_items, alpha):
    rankings = naive.all_rankings(n_items)
    logs = {
        r: sum(math.log(naive.click_likelihood(row, r, alpha, "kendall")) for row in rows)
        for r in rankings
    }
    return naive.normalise({r: math.exp(log) for r, log in logs.items()})


@functools.cache
def log_likelihoods_on_grid(rows, n_items):
    """``[consensus, alpha]``, by sums over all rankings."""
    rankings, center = naive.all_rankings(n_items), tuple(range(1, n_items + 1))
    distances = np.array([naive.kendall(r, center) for r in rankings])
    weights = np.exp(-np.outer(GRID, distances) / n_items)
    probabilities = {}
    for size in range(n_items + 1):
        for places in itertools.combinations(range(n_items), size):
            first = [all(r[place] <= size for place in places) for r in rankings]
            probabilities[places] = np.log(weights[:, first].sum(axis=1) / weights.sum(axis=1))
    return np.array(
        [sum(probabilities[tuple(sorted(c[i] - 1 for i in row))] for row in rows) for c in rankings]
    )


def alpha_errors(posterior, rows, n_items, prior):
    """Errors of the mean and spread of log alpha, in their standard errors."""
    logs = log_likelihoods_on_grid(rows, n_items) + prior[0] * np.log(GRID) - prior[1] * GRID
    marginal = np.exp(logs - logs.max()).sum(axis=0)
    marginal, places = marginal / marginal.sum(), np.log(GRID)
    mean = (marginal * places).sum()
    spread = math.sqrt((marginal * (places - mean) ** 2).sum())
    fourth = (marginal * (places - mean) ** 4).sum() / spread**4
    drawn = np.log(posterior.alpha.ravel())
    size = min(posterior.diagnostics().alpha_effective_size, len(drawn)) / 2
    of_mean = (drawn.mean() - mean) / (spread / math.sqrt(size))
    of_spread = (drawn.var() / spread**2 - 1) / math.sqrt((fourth - 1) / size)
    return max(abs(of_mean), abs(of_spread))


# one cluster


@pytest.mark.parametrize(("rows", "n_items", "alpha"), [(FOUR, 4, 0.0), (FOUR, 4, 1.5)])
def test_the_consensus_follows_the_exact_posterior_at_a_given_alpha(rows, n_items, alpha):
    posterior = quietly(preferences(rows, n_items), alpha=alpha, **LONG)
    assert (posterior.alpha == alpha).all()
    law = exact_consensus(rows, n_items, alpha)
    assert p_value(posterior.consensus[0, :, 0], law) > 1e-4


def test_a_slightly_wrong_alpha_is_caught():
    posterior = quietly(preferences(FOUR, 4), alpha=2.3, **LONG)
    assert p_value(posterior.consensus[0, :, 0], exact_consensus(FOUR, 4, 1.5)) < 1e-6


@pytest.mark.parametrize("start", ["map", "random"])
def test_alpha_follows_its_exact_posterior(start):
    posterior = quietly(preferences(FIVE, 5), start=start, **LONG)
    assert alpha_errors(posterior, FIVE, 5, default_prior(5)) < 4


def test_under_another_prior_it_does_not():
    posterior = quietly(preferences(FIVE, 5), alpha_prior=(2.0, 1.0), **LONG)
    assert alpha_errors(posterior, FIVE, 5, (2.0, 1.0)) < 4
    assert alpha_errors(posterior, FIVE, 5, default_prior(5)) > 6


def test_weights_count_as_users_and_who_says_nothing_changes_nothing():
    rows = (*FOUR[:2], FOUR[0], FOUR[0], *FOUR[2:])
    weighted = preferences((*FOUR, (), (0, 1, 2, 3), (1,)), 4, [3, *[1] * 5, 1, 7, 0])
    short = LONG | {"n_draws": 50}
    posterior, again = quietly(weighted, **short), quietly(preferences(rows, 4), **short)
    assert (again.consensus == posterior.consensus).all()
    assert (again.alpha == posterior.alpha).all()


def test_the_log_posterior_is_that_of_its_draw():
    prefs, (shape, rate) = preferences(FIVE, 5), default_prior(5)
    posterior = quietly(prefs, n_draws=10, n_chains=2, rng=1)
    for chain, draw in ((0, 0), (1, 9)):
        alpha, consensus = posterior.alpha[chain, draw, 0], posterior.consensus[chain, draw, 0]
        value = pm.log_likelihood(prefs, consensus, alpha, distance="kendall").sum()
        value += (shape - 1) * math.log(alpha) - rate * alpha
        assert posterior.log_posterior[chain, draw] == pytest.approx(value)


# clusters


def mixture_of(rows, n_items, centers, alphas, prior, shares, rng):
    population = make_population(preferences(rows, n_items), pm.Threads(1), "kendall")
    law = KendallLaw(n_items, population.click_sizes)
    proposals = MatchedProposals(n_moves=8)
    clusters = [
        MatchedCluster(np.array(center, dtype=np.int32), alpha, proposals, prior, rng)
        for center, alpha in zip(centers, alphas, strict=True)
    ]
    for cluster in clusters:
        cluster.log_step = math.log(0.8)
    return MatchedMixture(population, law, clusters, shares, 1.0, False, 8, rng)


SHORT = {"n_clusters": 2, "n_chains": 2, "n_draws": 400, "thin": 2, "warmup": 50, "rng": 1}
SIX = ((0,), (0, 1), (2,), (1, 2), (3,), (0, 3))


def test_clusters_at_a_given_alpha_have_the_exact_posterior():
    posterior = quietly(preferences(SIX, 4), alpha=3.0, share_prior=0.7, **SHORT)
    p_value, error = check_two_clusters(posterior, SIX, 3.0, 0.7, "kendall")
    assert p_value > 1e-4
    assert error < 4
    assert check_two_clusters(posterior, SIX, 6.0, 0.7, "kendall")[0] < 1e-6


def test_clusters_whose_alpha_is_sampled_have_the_exact_posterior():
    prior, rows = (3.0, 0.8), (*TINY, (0, 2))
    posterior = quietly(preferences(rows, 3), alpha_prior=prior, **SHORT)
    assert max(two_alpha_errors(posterior, rows, prior, "kendall")) < 4
    assert max(two_alpha_errors(posterior, rows, (3.0, 1.6), "kendall")) > 8


def test_memberships_are_exact():
    centers, alphas, shares = [(1, 2, 3), (3, 1, 2)], [2.0, 5.0], np.array([0.3, 0.7])
    mixture = mixture_of(TINY, 3, centers, alphas, None, shares, np.random.default_rng(1))
    mixture.begin(np.zeros(4, dtype=np.int32))
    exact = [
        naive.memberships(
            [
                naive.click_likelihood(row, *law, "kendall")
                for law in zip(centers, alphas, strict=True)
            ],
            shares,
        )
        for row in TINY
    ]
    assert mixture.mean_memberships == pytest.approx(np.array(exact), abs=1e-6)


# what the law needs of the users


@pytest.mark.parametrize("alpha", [0.0, 0.3, 4.0])
def test_curves_are_sums_over_users(alpha):
    prefs = preferences(FIVE, 5, [1, 2, 3, 1, 1, 0, 4])
    population = make_population(prefs, None, "kendall")
    law = KendallLaw(5, population.click_sizes)
    counts, places = np.zeros((1, 5), dtype=np.int64), law.groups.sizes.tolist()
    n_users = np.zeros(len(places), dtype=np.int64)
    for row, weight in zip(FIVE, prefs.weights, strict=True):
        if weight:
            counts[0, list(row)] += weight
            n_users[places.index(len(row))] += weight
    tally, consensus = law.tally(counts, n_users), np.array((2, 1, 5, 3, 4), dtype=np.int32)
    exact = pm.log_likelihood(prefs, consensus, alpha, distance="kendall") @ prefs.weights
    assert tally.curve(consensus)(alpha) == pytest.approx(exact, abs=1e-9)
    assert population.log_likelihood(consensus, alpha) == pytest.approx(exact, abs=1e-6)
    both = tally + tally
    assert both.curve(consensus)(alpha) == pytest.approx(2 * exact, abs=1e-9)
    assert not both.is_empty
    assert KendallTally(law, 0 * counts, 0 * n_users).is_empty


def test_the_best_consensus_is_the_order_of_the_clicks_and_ties_go_by_a_draw():
    law = KendallLaw(4, np.array([1, 2]))
    tally = law.tally(np.array([[3, 9, 1, 4]]), np.array([5, 6]))
    assert tally.best(1.0).tolist() == [3, 1, 4, 2]
    assert law.best_of(np.array([2.0, 5.0, 2.0, 0.0]), np.array([4, 3, 2, 1])).tolist() == [
        3,
        1,
        2,
        4,
    ]
