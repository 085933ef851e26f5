"""Chains on the matched law: with the correction they are exact, whatever the law proposes."""

import functools
import itertools
import math
import warnings

import numpy as np
import pytest
from scipy import stats

import naive
import pseudomallows as pm
from helpers import check_two_clusters, p_value, two_alpha_errors
from pseudomallows.distributions.scores import rand_index
from pseudomallows.inference.chains.labelled_mixture import LabelledMixture
from pseudomallows.inference.chains.matched_cluster import (
    MatchedCluster,
    MatchedProposals,
    best_on_grid,
)
from pseudomallows.inference.chains.matched_mixture import MatchedMixture
from pseudomallows.inference.priors import default_prior
from pseudomallows.latent.matched.matched_tables import MatchedTables
from pseudomallows.latent.registry import make_population

FOUR = ((0,), (0, 1), (1, 2), (0, 1, 2), (3,), (0, 2))
FIVE = ((0, 1), (0,), (1, 2, 3), (0, 1, 2), (4, 0), (0, 3), (1,))
SPLIT = ((0, 4),) * 5 + ((1,),) * 6 + ((0, 1, 2, 3),) * 5 + ((1, 2, 3),) * 5  # many far from any


def quietly(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.diagnostics.FitWarning)
        return pm.fit(*arguments, **options)


def preferences(rows, n_items, weights=None):
    prefs = pm.Preferences.from_clicks(dict(enumerate(map(list, rows))), items=range(n_items))
    if weights is None:
        return prefs
    return pm.Clicks(np.array(weights), prefs.users, prefs.items, prefs.starts, prefs.codes)


@functools.cache
def log_probabilities(n_items, alphas):
    """{set of consensus ranks: log of the probability that they are clicked, at each alpha}."""
    rankings, center = naive.all_rankings(n_items), range(1, n_items + 1)
    distances = np.array([naive.footrule(ranking, center) for ranking in rankings])
    weights = np.exp(-np.outer(alphas, distances) / n_items)
    found = {}
    for size in range(n_items + 1):
        for places in itertools.combinations(range(n_items), size):
            first = [all(r[place] <= size for place in places) for r in rankings]
            found[places] = np.log(weights[:, first].sum(axis=1) / weights.sum(axis=1))
    return found


@functools.cache
def exact_law(rows, n_items, alphas, prior=None):
    """{consensus: probability at each alpha}; a prior of alpha makes them a joint law."""
    probabilities = log_probabilities(n_items, alphas)
    logs = {
        consensus: sum(probabilities[tuple(sorted(consensus[i] - 1 for i in row))] for row in rows)
        for consensus in naive.all_rankings(n_items)
    }
    if prior is None:
        of_alpha = np.zeros(len(alphas))
    else:  # the grid is even in log alpha
        of_alpha = prior[0] * np.log(alphas) - prior[1] * np.array(alphas)
    highest = max((log + of_alpha).max() for log in logs.values())
    weights = {consensus: np.exp(log + of_alpha - highest) for consensus, log in logs.items()}
    total = sum(weight.sum() for weight in weights.values())
    return {consensus: weight / total for consensus, weight in weights.items()}


GRID = tuple(np.exp(np.arange(math.log(1e-3), math.log(200.0), 0.04)).tolist())


def check_consensus(draws, law, least=1e-4):
    """Draws against a law; the rarest consensuses count as one."""
    sums = {consensus: float(np.sum(weight)) for consensus, weight in law.items()}
    rare = {c for c, p in sums.items() if p * len(draws) < 8}
    merged = {c: p for c, p in sums.items() if c not in rare}
    if rare:
        merged[()] = sum(sums[c] for c in rare)
        if merged[()] * len(draws) < 5:
            most = max(merged, key=merged.get)
            merged[most] += merged.pop(())
            rare_goes_to = most
        else:
            rare_goes_to = ()
    keys = [tuple(draw) for draw in draws.tolist()]
    keys = [rare_goes_to if key in rare else key for key in keys]
    expected = np.array(list(merged.values())) * len(keys)
    counts = [keys.count(key) for key in merged]
    return stats.chisquare(counts, expected * len(keys) / expected.sum()).pvalue


def alpha_errors(posterior, law):
    """Errors of the mean and of the spread of log alpha, in their standard errors."""
    marginal, logs = sum(law.values()), np.log(GRID)
    mean = (marginal * logs).sum()
    spread = math.sqrt((marginal * (logs - mean) ** 2).sum())
    fourth = (marginal * (logs - mean) ** 4).sum() / spread**4
    drawn = np.log(posterior.alpha.ravel())
    size = min(posterior.diagnostics().alpha_effective_size, len(drawn)) / 2  # of squares: less
    of_mean = (drawn.mean() - mean) / (spread / math.sqrt(size))
    of_spread = (drawn.var() / spread**2 - 1) / math.sqrt((fourth - 1) / size)
    return abs(of_mean), abs(of_spread)


def distort(monkeypatch, factor=0.6):
    """Tables that are far from right: swaps and steps of alpha go to the wrong places."""
    table = MatchedTables.table
    monkeypatch.setattr(MatchedTables, "table", lambda self, alpha: factor * table(self, alpha))


# one cluster: the exact posterior of consensus and alpha


LONG = {"n_chains": 1, "n_draws": 3000, "thin": 2, "warmup": 300, "rng": 1}
CHAINS = {
    "default": {},
    "few moves": {"n_moves": 9},
    "leap and shift": {"move": "leap_and_shift", "leap": 2},
    "random start": {"start": "random"},
    "flat prior": {"alpha_prior": (1.0, 0.2)},
}


OTHERS = [pytest.param(name, marks=pytest.mark.slow) for name in CHAINS if name != "default"]


@pytest.mark.parametrize("how", ["default", *OTHERS])
@pytest.mark.parametrize(
    ("rows", "n_items"), [pytest.param(FOUR, 4, marks=pytest.mark.slow), (FIVE, 5)]
)
def test_consensus_and_alpha_follow_the_exact_posterior(rows, n_items, how):
    options = LONG | ({"thin": 4} if how == "few moves" else {}) | CHAINS[how]
    prior = options.get("alpha_prior", default_prior(n_items))
    law = exact_law(rows, n_items, GRID, prior)
    posterior = quietly(preferences(rows, n_items), "mcmc", **options)
    assert check_consensus(posterior.consensus[0, :, 0], law) > 1e-4
    assert max(alpha_errors(posterior, law)) < 4


def test_another_prior_is_told_from_the_right_one():
    posterior = quietly(preferences(FIVE, 5), "mcmc", alpha_prior=(2.0, 1.5), **LONG)
    law = exact_law(FIVE, 5, GRID, default_prior(5))
    assert max(alpha_errors(posterior, law)) > 6


@pytest.mark.slow
@pytest.mark.parametrize("how", ["default", "few moves"])
def test_the_correction_makes_up_for_tables_that_are_wrong(how, monkeypatch):
    distort(monkeypatch)
    law = exact_law(FIVE, 5, GRID, default_prior(5))
    options = LONG | {"thin": 6} | CHAINS[how]
    posterior = quietly(preferences(FIVE, 5), "mcmc", **options)
    assert check_consensus(posterior.consensus[0, :, 0], law) > 1e-4
    assert max(alpha_errors(posterior, law)) < 4


def test_without_correction_wrong_tables_have_a_wrong_posterior(monkeypatch):
    distort(monkeypatch, 0.4)
    law = exact_law(FIVE, 5, GRID, default_prior(5))
    posterior = quietly(preferences(FIVE, 5), "matched", **LONG)
    assert max(alpha_errors(posterior, law)) > 6


@pytest.mark.parametrize("alpha", [0.0, 0.5, 3.0])
def test_a_given_alpha_stays_and_the_consensus_is_exact(alpha):
    posterior = quietly(preferences(FOUR, 4), "mcmc", alpha, **LONG)
    assert (posterior.alpha == alpha).all()
    law = exact_law(FOUR, 4, (alpha,))
    assert check_consensus(posterior.consensus[0, :, 0], law) > 1e-4


def split_p_value(method):
    posterior = quietly(preferences(SPLIT, 5), method, 5.0, **LONG | {"n_draws": 6000})
    return check_consensus(posterior.consensus[0, :, 0], exact_law(SPLIT, 5, (5.0,)))


def test_the_corrected_chain_is_exact_where_the_matched_law_is_not():
    """Users far from a consensus are taken too kindly: here the total variation is 0.24."""
    assert split_p_value("mcmc") > 1e-4
    assert split_p_value("matched") < 1e-10


@pytest.mark.slow
def test_weights_count_as_users_and_who_says_nothing_changes_nothing():
    rows = (*FOUR[:2], FOUR[0], FOUR[0], *FOUR[2:])
    law = exact_law(rows, 4, GRID, default_prior(4))
    weighted = preferences((*FOUR, (), (0, 1, 2, 3), (1,)), 4, [3, *[1] * 5, 1, 7, 0])
    posterior = quietly(weighted, "mcmc", **LONG)
    assert check_consensus(posterior.consensus[0, :, 0], law) > 1e-4
    assert max(alpha_errors(posterior, law)) < 4
    again = quietly(preferences(rows, 4), "mcmc", **LONG)
    assert (again.consensus == posterior.consensus).all()
    assert (again.alpha == posterior.alpha).all()


def test_two_items_are_no_trouble():
    rows = ((0,), (0,), (1,), (0,))
    law = exact_law(rows, 2, GRID, default_prior(2))
    posterior = quietly(preferences(rows, 2), "mcmc", **LONG)
    assert check_consensus(posterior.consensus[0, :, 0], law) > 1e-4
    assert max(alpha_errors(posterior, law)) < 4


def test_the_log_posterior_is_that_of_its_draw():
    data = pm.simulate_clicks(60, 12, 5, 3, rng=1).preferences
    shape, rate = default_prior(12)
    posterior = quietly(data, "mcmc", n_draws=10, n_chains=2, rng=1)
    for chain, draw in ((0, 0), (1, 9)):
        alpha = posterior.alpha[chain, draw, 0]
        value = pm.click_log_likelihood(data, posterior.consensus[chain, draw, 0], alpha).sum()
        value += (shape - 1) * math.log(alpha) - rate * alpha
        assert posterior.log_posterior[chain, draw] == pytest.approx(value)


@pytest.mark.slow
def test_it_agrees_with_latent_rankings_drawn_one_by_one():
    prefs = pm.simulate_clicks(100, 12, 5, 3, rng=1).preferences
    new = quietly(prefs, "mcmc", n_draws=1000, rng=1)
    old = quietly(prefs, "mcmc", n_draws=2000, thin=5, augmentation="exact", rng=2)
    sizes = [each.diagnostics().least_effective_size for each in (new, old)]
    error = 4 * math.sqrt(0.25 * sum(1 / size for size in sizes))
    assert min(sizes) > 100
    assert np.abs(new.rank_probabilities() - old.rank_probabilities()).max() < error
    size = sum(1 / each.diagnostics().alpha_effective_size for each in (new, old))
    difference = np.log(new.alpha).mean() - np.log(old.alpha).mean()
    assert abs(difference) < 4 * np.log(old.alpha).std() * math.sqrt(size)


# its parts


def mixture_of(rows, n_items, centers, alphas, prior, rng, **options):
    """A chain where it stands, without users yet."""
    population = make_population(preferences(rows, n_items), pm.Threads(1))
    tables = MatchedTables(n_items, population.click_sizes)
    proposals = MatchedProposals()
    clusters = [
        MatchedCluster(np.array(center, dtype=np.int32), alpha, proposals, prior, rng)
        for center, alpha in zip(centers, alphas, strict=True)
    ]
    for cluster in clusters:
        cluster.log_step = math.log(0.8)
    shares = np.array(options.get("shares", np.full(len(clusters), 1 / len(clusters))))
    corrected, n_moves = options.get("is_corrected", True), options.get("n_moves", 8)
    how = (clusters, shares, options.get("share_prior", 1.0), corrected, n_moves, rng)
    chain = LabelledMixture if corrected and len(clusters) > 1 else MatchedMixture
    return chain(population, tables, *how)


def test_the_best_alpha_is_found_from_anywhere():
    for best, first in itertools.product((0.05, 3.0, 900.0), (0.02, 5.0, 5000.0)):
        found = best_on_grid(lambda alpha, best=best: -(math.log(alpha / best) ** 2), first)
        assert found == pytest.approx(best, rel=1e-6)


def test_the_best_place_is_the_best_by_enumeration():
    rng = np.random.default_rng(1)
    chain = mixture_of(FIVE, 5, [(5, 4, 3, 2, 1)], [5.0], (2.0, 0.5), rng)
    chain.begin(np.zeros(len(FIVE), dtype=np.int32))
    cluster = chain.clusters[0]
    for _ in range(5):
        cluster.climb()
    curves = [cluster.tally.curve(np.array(c)) for c in naive.all_rankings(5)]
    grid = np.exp(np.arange(-3, 4, 0.1))
    best = max(curve(a) + math.log(a) - 0.5 * a for curve in curves for a in grid)
    here = cluster.tally.curve(cluster.consensus)(cluster.alpha)
    assert here + math.log(cluster.alpha) - 0.5 * cluster.alpha > best - 0.02


def test_the_difference_is_the_exact_minus_the_matched_log_likelihood():
    rng = np.random.default_rng(1)
    rows = [(0, 1), (3, 4), (2,), (0, 3), (2, 3, 4), (1, 4)]
    centers, alphas, shares = [(1, 2, 3, 4, 5), (2, 1, 3, 5, 4)], [3.0, 8.0], [0.7, 0.3]
    chain = mixture_of(rows, 5, centers, alphas, None, rng, shares=shares)
    chain.begin(np.zeros(6, dtype=np.int32))
    exact = matched_value = 0.0
    for row in rows:
        values, near = [], []
        for center, alpha in zip(centers, alphas, strict=True):
            values.append(naive.click_likelihood(row, center, alpha))
            table = chain.law.at(alpha)[len(row) - 1]
            near.append(math.exp(sum(table[center[i] - 1] for i in row)) / math.comb(5, len(row)))
        exact += math.log(np.dot(values, shares))
        matched_value += math.log(np.dot(near, shares))
    assert abs(exact - matched_value) > 0.1
    assert chain.difference() == pytest.approx(exact - matched_value, abs=1e-4)


# clusters: the exact posterior


SIX = ((0,), (0, 1), (2,), (1, 2), (3,), (0, 3))
TINY = ((0,), (0, 1), (2,), (1, 2), (0, 2))
SHORT = {"n_clusters": 2, "n_chains": 2, "n_draws": 400, "thin": 2, "warmup": 50, "rng": 1}


@pytest.mark.slow
def test_clusters_at_a_given_alpha_have_the_exact_posterior():
    posterior = quietly(preferences(SIX, 4), "mcmc", 3.0, share_prior=0.7, **SHORT)
    p_value, error = check_two_clusters(posterior, SIX, 3.0, 0.7)
    assert p_value > 1e-4
    assert error < 4
    assert check_two_clusters(posterior, SIX, 4.5, 0.7)[0] < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("method", ["mcmc", "matched"])
def test_they_do_even_if_tables_are_wrong_but_not_without_correction(method, monkeypatch):
    distort(monkeypatch)
    posterior = quietly(preferences(SIX, 4), method, 3.0, share_prior=0.7, **SHORT)
    assert (check_two_clusters(posterior, SIX, 3.0, 0.7)[0] > 1e-4) == (method == "mcmc")


def test_clusters_whose_alpha_is_sampled_have_the_exact_posterior():
    prior = (3.0, 0.8)
    posterior = quietly(preferences(TINY, 3), "mcmc", alpha_prior=prior, **SHORT)
    assert max(two_alpha_errors(posterior, TINY, prior)) < 4
    assert max(two_alpha_errors(posterior, TINY, (3.0, 1.6))) > 8


def test_memberships_and_log_posterior_are_those_of_the_draws():
    prefs = preferences(SIX, 4)
    posterior = quietly(prefs, "mcmc", 6.0, **SHORT | {"n_chains": 1, "n_draws": 600, "thin": 1})
    values = np.zeros((1, 600, 2, len(SIX)))
    for draw, cluster in itertools.product(range(600), range(2)):
        center = posterior.consensus[0, draw, cluster]
        values[0, draw, cluster] = pm.click_log_likelihood(prefs, center, 6.0)
    values += np.log(posterior.shares)[..., None]
    sums = np.logaddexp.reduce(values, axis=2)
    kept = np.isfinite(posterior.log_posterior)  # the others add nothing to the memberships
    assert kept.sum() > 20
    assert posterior.log_posterior[kept] == pytest.approx(sums.sum(axis=-1)[kept], abs=1e-5)
    means = np.exp(values - sums[:, :, None]).mean(axis=(0, 1)).T
    assert posterior.memberships == pytest.approx(means, abs=0.1)
    assert np.abs(posterior.memberships - means[:, ::-1]).max() > 0.2


def test_an_empty_cluster_follows_its_prior():
    rng = np.random.default_rng(3)
    mixture = mixture_of(TINY, 3, [(1, 2, 3)] * 2, [2.0] * 2, (3.0, 0.5), rng)
    mixture.begin(np.zeros(5, dtype=np.int32))
    empty = mixture.clusters[1]
    assert mixture.has_users == [True, False]
    centers, alphas = [], []
    for _ in range(1200):
        empty.draw_from_prior()
        centers.append(tuple(empty.consensus.tolist()))
        alphas.append(empty.alpha)
    assert p_value(centers, dict.fromkeys(naive.all_rankings(3), 1 / 6)) > 1e-4
    assert stats.kstest(alphas, stats.gamma(3.0, scale=2.0).cdf).pvalue > 1e-4
    assert stats.kstest(alphas, stats.gamma(3.0, scale=2.5).cdf).pvalue < 1e-3


def test_an_empty_cluster_takes_in_users_in_the_warmup():
    rng = np.random.default_rng(3)
    prefs = pm.simulate_clicks(60, 8, [8, 8], 3, rng=1).preferences
    rows = [tuple(prefs.clicks_of(row).tolist()) for row in range(60)]
    centers = [tuple(range(1, 9)), tuple(range(8, 0, -1))]
    options = {"shares": [1 - 1e-9, 1e-9], "is_corrected": False}
    mixture = mixture_of(rows, 8, centers, [5.0, 900.0], (2.0, 0.3), rng, **options)
    mixture.begin(np.zeros(mixture.population.n_rows, dtype=np.int32))
    mixture.sweep(adapt=True)
    assert mixture.has_users == [True, False]
    mixture.sweep(adapt=True)
    assert mixture.has_users == [True, True]
    assert mixture.alpha[1] < 100


@functools.cache
def clicked():
    return pm.simulate_clicks(600, 20, [6, 8], 5, sizes=[400, 200], rng=1)


@pytest.mark.parametrize("method", ["mcmc", "matched"])
def test_chains_have_their_clusters_in_one_order(method):
    posterior = quietly(clicked().preferences, method, n_clusters=2, n_chains=3, n_draws=20, rng=1)
    assert rand_index(posterior.labels, clicked().labels) > 0.8
    for cluster, consensus in enumerate(clicked().consensus):
        own = np.abs(posterior.consensus[:, :, cluster] - consensus).sum(axis=-1)
        other = np.abs(posterior.consensus[:, :, 1 - cluster] - consensus).sum(axis=-1)
        assert (own < other / 2).all()
    assert posterior.alpha[:, :, 0].mean() == pytest.approx(6, rel=0.15)
    assert (posterior.shares[:, :, 0] > posterior.shares[:, :, 1]).all()
    assert posterior.diagnostics().worst_rhat < 1.2


@pytest.mark.slow
def test_the_number_of_clusters_is_found():
    posterior = quietly(
        clicked().preferences, "mcmc", n_clusters="auto", n_chains=2, n_draws=20, rng=1
    )
    assert posterior.n_clusters == 2


@pytest.mark.parametrize("method", ["mcmc", "matched"])
def test_users_who_do_not_agree_at_all_are_no_trouble(method):
    prefs = pm.simulate_clicks(40, 6, [5, 9], 2, rng=1).preferences
    posterior = quietly(prefs, method, 0.0, n_clusters=2, n_draws=10, rng=1)
    assert (posterior.alpha == 0).all()


# alpha without bounds


NESTED = [tuple(range(size)) for size in (1, 2, 3, 4, 5) for _ in range(4)]


@pytest.mark.parametrize("method", ["mcmc", "matched"])
def test_nested_clicks_do_not_bound_alpha(method):
    options = {"n_draws": 20, "n_chains": 2, "rng": 1}
    with pytest.warns(pm.diagnostics.AlphaWarning):
        quietly_but_for_alpha(preferences(NESTED, 6), method, **options)
    for rows in ([*NESTED, (5,)], FIVE):
        with warnings.catch_warnings():
            warnings.simplefilter("error", pm.diagnostics.AlphaWarning)
            quietly_but_for_alpha(preferences(rows, 6), method, **options)


def quietly_but_for_alpha(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.ConvergenceWarning)
        warnings.simplefilter("ignore", pm.diagnostics.ModelWarning)
        return pm.fit(*arguments, **options)


def test_only_the_cluster_of_nested_clicks_is_unbounded():
    rng = np.random.default_rng(3)
    backwards = [tuple(5 - item for item in row) for row in NESTED]
    rows = [*NESTED, *backwards, (0,), (1, 4)]
    centers = [tuple(range(1, 7)), tuple(range(6, 0, -1))]
    mixture = mixture_of(rows, 6, centers, [20.0, 6.0], (2.0, 0.3), rng)
    mixture.begin(np.array([0] * 20 + [1] * 22, dtype=np.int32))
    assert mixture.unbounded() == [True, False]
