"""Clicks by Cayley's and Hamming's distance, latent rankings summed out: against all rankings."""

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
from pseudomallows.distributions.scores import rand_index
from pseudomallows.inference.chains.clusters import ExactCluster, Proposals
from pseudomallows.inference.chains.mixture import Mixture
from pseudomallows.latent.halves import HalfClicks
from pseudomallows.latent.population import DrawOrigin
from pseudomallows.latent.registry import make_population

NAMES = ("cayley", "hamming")
ROWS = ((0, 1), (2,), (1, 2, 3), (0,), (3, 1), (0, 2), (0,))
FEW = ((0,), (0, 1), (2,))
PRIOR, GRID = (2.0, 0.5), np.arange(math.log(1e-2), math.log(80.0), 0.02)


def preferences(rows=ROWS, n_items=4, weights=None):
    prefs = pm.Preferences.from_clicks(dict(enumerate(map(list, rows))), items=range(n_items))
    if weights is None:
        return prefs
    return pm.Clicks(np.array(weights), prefs.users, prefs.items, prefs.starts, prefs.codes)


def quietly(prefs, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.ConvergenceWarning)
        warnings.simplefilter("ignore", pm.diagnostics.AlphaWarning)
        return pm.fit(prefs, method="mcmc", **options)


# the likelihood


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("n_items", "alpha"), [(4, 0.0), (4, 7.0), (5, 3.0), (6, 40.0)])
def test_the_likelihood_of_every_set_of_clicks_equals_enumeration(name, n_items, alpha):
    rows = [r for c in range(n_items + 1) for r in itertools.combinations(range(n_items), c)]
    consensus = np.random.default_rng(n_items).permutation(n_items) + 1
    law = naive.mallows(tuple(consensus.tolist()), alpha, name)
    exact = [
        math.fsum(p for r, p in law.items() if all(r[i] <= len(row) for i in row)) for row in rows
    ]
    prefs = preferences(rows, n_items)
    found = pm.log_likelihood(prefs, consensus, alpha, name)
    assert found == pytest.approx(np.log(exact), abs=1e-10)
    wrong = pm.log_likelihood(prefs, consensus, alpha + 0.1, name)
    assert wrong != pytest.approx(np.log(exact), abs=1e-6)
    population = make_population(prefs, None, name)
    assert type(population) is HalfClicks
    total = population.log_likelihood(consensus.astype(np.int32), alpha)
    assert total == pytest.approx(np.log(exact).sum(), abs=1e-6)


# the posterior


@functools.cache
def joint_law(name):
    """``[consensus, alpha]``: exact probabilities of cells of log alpha."""
    rankings, alphas = naive.all_rankings(4), np.exp(GRID)
    center = tuple(range(1, 5))
    away = np.array([naive.DISTANCES[name](r, center) for r in rankings])
    weights = np.exp(-np.outer(alphas, away) / 4)
    logs = np.empty((len(rankings), len(alphas)))
    for number, consensus in enumerate(rankings):
        value = PRIOR[0] * GRID - PRIOR[1] * alphas
        for row in ROWS:
            places = [consensus[item] - 1 for item in row]
            first = [all(r[place] <= len(row) for place in places) for r in rankings]
            value = value + np.log(weights[:, first].sum(axis=1) / weights.sum(axis=1))
        logs[number] = value
    law = np.exp(logs - logs.max())
    return law / law.sum()


def p_values_of_a_sweep(name, prior=PRIOR, alpha_factor=1.0, n_starts=4000):
    """Start from the exact law of consensus and alpha, sweep: p-values of both."""
    law, rankings, rng = joint_law(name), naive.all_rankings(4), np.random.default_rng(12)
    population = make_population(preferences(), pm.Threads(1), name)
    ends, alphas = [], []
    for place in rng.choice(law.size, n_starts, p=law.ravel()):
        number, cell = divmod(int(place), law.shape[1])
        alpha = math.exp(GRID[cell] + 0.02 * (rng.random() - 0.5)) * alpha_factor
        consensus = np.array(rankings[number], np.int32)
        proposals = Proposals("swap", 1, 4, 2)
        cluster = ExactCluster(population, consensus, alpha, proposals, prior, rng)
        cluster.log_step = 0.0
        Mixture.of_one(cluster).sweep(adapt=False)
        ends.append(cluster.consensus)
        alphas.append(math.log(cluster.alpha))
    of_alpha = law.sum(axis=0).cumsum()
    uniform = np.interp(alphas, GRID + 0.01, of_alpha)
    exact = dict(zip(rankings, law.sum(axis=1).tolist(), strict=True))
    return p_value(ends, exact), stats.kstest(uniform, "uniform").pvalue


@pytest.mark.parametrize("name", NAMES)
def test_a_sweep_leaves_the_exact_law_of_consensus_and_alpha_as_it_is(name):
    assert min(p_values_of_a_sweep(name)) > 1e-4


@pytest.mark.parametrize("name", NAMES)
def test_another_alpha_or_another_prior_is_caught(name):
    assert p_values_of_a_sweep(name, prior=None, alpha_factor=2.0)[0] < 1e-6
    assert p_values_of_a_sweep(name, prior=(4.0, 0.5))[1] < 1e-6


def ends_of_clusters(name, alpha, n_draws):
    """Start two clusters from the exact posterior at alpha 1, sweep: p-value of the ends."""
    law, rng = clusters_law(name), np.random.default_rng(5)
    population = make_population(preferences(FEW, 3), pm.Threads(1), name)
    states, ends = list(law), []
    for place in rng.choice(len(states), n_draws, p=list(law.values())):
        centers, labels = states[place]
        clusters = [
            ExactCluster(
                population, np.array(c, np.int32), alpha, Proposals("swap", 1, 6), None, rng
            )
            for c in centers
        ]
        counts = np.zeros((3, 2), dtype=np.int64)
        counts[np.arange(3), list(labels)] = 1
        shares = rng.dirichlet(1.0 + counts.sum(axis=0))
        mixture = Mixture(population, clusters, shares, 1, 1.0, rng)
        mixture.share_out(counts)
        mixture.sweep(adapt=False)
        ends.append(mixture.consensus.ravel().tolist() + mixture.counts.argmax(axis=1).tolist())
    exact = {(*itertools.chain(*centers), *labels): p for (centers, labels), p in law.items()}
    return p_value(ends, exact)


@functools.cache
def clusters_law(name):
    chances = {
        (user, center): naive.click_likelihood(row, center, 1.0, name)
        for user, row in enumerate(FEW)
        for center in naive.all_rankings(3)
    }
    return naive.mixture_posterior(lambda *key: chances[key], 3, 3, 2, 1.0)


@pytest.mark.parametrize("name", NAMES)
def test_a_sweep_of_two_clusters_leaves_the_exact_law_as_it_is(name):
    assert ends_of_clusters(name, 1.0, 4000) > 1e-4


@pytest.mark.parametrize("name", NAMES)
def test_a_sweep_of_two_clusters_at_another_alpha_does_not(name):
    assert ends_of_clusters(name, 3.0, 4000) < 1e-6


@pytest.mark.parametrize("name", NAMES)
def test_kept_latent_rankings_follow_their_law_given_the_clicks(name):
    population = make_population(preferences(weights=[1, 2, 1, 1, 1, 1, 1]), None, name)
    consensus, users = np.array([3, 1, 4, 2], np.int32), np.array([1])
    found, wrong = [], []
    for number in range(3000):
        found.append(population.latent_of(users, DrawOrigin(consensus, 3.0, 5, number))[0])
        wrong.append(population.latent_of(users, DrawOrigin(consensus, 5.0, 5, number))[0])
    law = {r: p for r, p in naive.mallows((3, 1, 4, 2), 3.0, name).items() if r[2] == 1}
    law = naive.normalise(law)
    assert p_value(found, law) > 1e-4
    assert p_value(wrong, law) < 1e-6


# fits


@functools.cache
def simulated(name, n_users=60, n_items=8, n_clusters=1, seed=3):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_clusters, n_users)
    rankings = np.empty((n_users, n_items), dtype=int)
    for label in range(n_clusters):
        mine = labels == label
        law = pm.Mallows(rng.permutation(n_items) + 1, 4.0 * n_items, distance=name)
        rankings[mine] = law.draw(int(mine.sum()), rng)
    return rankings <= rng.integers(2, 5, n_users)[:, None], labels


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n_clusters", [1, 2])
def test_threads_change_nothing_and_weights_count_as_users(name, n_clusters):
    table = simulated(name)[0]
    twice = pm.Preferences.from_clicks(np.repeat(table, 2, axis=0))
    once = pm.Preferences.from_clicks(table)
    once = pm.Clicks(np.full(60, 2), once.users, once.items, once.starts, once.codes)
    how = {"n_draws": 10, "n_chains": 1, "warmup": 5, "rng": 5, "n_clusters": n_clusters}
    found = [
        quietly(prefs, distance=name, executor=executor, keep_latent=[0], **how)
        for prefs, executor in ((twice, pm.Threads(1)), (twice, pm.Threads(2)), (once, None))
    ]
    for other in found[1:]:
        assert np.array_equal(found[0].consensus, other.consensus)
        assert np.array_equal(found[0].alpha, other.alpha)
        assert np.array_equal(found[0].log_posterior, other.log_posterior, equal_nan=True)
    assert found[0].settings["latent"] == "summed out by a closed form"


@pytest.mark.parametrize("name", NAMES)
def test_chains_from_good_and_random_places_agree(name):
    prefs = pm.Preferences.from_clicks(simulated(name, 200, 15)[0])
    good = pm.fit(prefs, "mcmc", distance=name, n_draws=100, rng=1)
    lost = pm.fit(prefs, "mcmc", distance=name, n_draws=100, start="random", rng=2)
    assert good.diagnostics().worst_rhat < 1.05
    assert abs(good.alpha.mean() / lost.alpha.mean() - 1) < 0.02
    gap = np.abs(good.rank_probabilities().cumsum(1) - lost.rank_probabilities().cumsum(1))
    assert gap.max() < 0.15
    assert good.point_consensus("map").tolist() == lost.point_consensus("map").tolist()


@pytest.mark.parametrize("name", NAMES)
def test_clusters_are_found_and_their_best_consensus_is_that_of_their_users(name):
    table, labels = simulated(name, 240, 12, 2)
    prefs = pm.Preferences.from_clicks(table)
    posterior = quietly(prefs, distance=name, n_clusters=2, n_draws=60, rng=1)
    assert rand_index(labels, posterior.labels) > 0.5
    chances = [
        pm.log_likelihood(
            prefs, posterior.best[cluster], posterior.alpha[..., cluster].mean(), name
        )
        for cluster in range(2)
    ]
    assert ((chances[1] > chances[0]) == posterior.labels).mean() > 0.9
    recs = pm.recommend(posterior, 3)
    assert recs.items.shape == (240, 3)


@pytest.mark.parametrize("name", NAMES)
def test_the_number_of_clusters_can_be_chosen(name):
    prefs = pm.Preferences.from_clicks(simulated(name, 240, 12, 2)[0])
    assert pm.choose_clusters(prefs, 3, distance=name, rng=1).chosen == 2


@pytest.mark.parametrize("name", NAMES)
def test_an_update_has_the_clicks_of_both(name):
    table = simulated(name)[0]
    posterior = quietly(pm.Preferences.from_clicks(table), distance=name, n_draws=20, rng=1)
    newer = posterior.update({"ann": [0, 4], 7: [1]}, rng=2)
    assert newer.data.n_users == 61
    assert "updates" not in newer.settings  # no chain goes on
    again = quietly(newer.data, distance=name, n_draws=20, rng=2)
    assert np.array_equal(newer.consensus, again.consensus)


@pytest.mark.parametrize("name", NAMES)
def test_leaps_move_as_well_and_the_way_of_latent_rankings_is_refused(name):
    prefs = pm.Preferences.from_clicks(simulated(name)[0])
    leaps = quietly(prefs, distance=name, move="leap_and_shift", n_draws=100, rng=1)
    swaps = quietly(prefs, distance=name, n_draws=100, rng=1)
    assert abs(leaps.alpha.mean() / swaps.alpha.mean() - 1) < 0.1
    with pytest.raises(ValueError, match="whose latent rankings are summed out: leave augment"):
        pm.fit(prefs, "mcmc", distance=name, augmentation="exact")


def test_balanced_draws_of_clicks_by_hamming_still_have_latent_rankings():
    prefs = pm.Preferences.from_clicks(simulated("hamming")[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.ConvergenceWarning)
        found = pm.fit(prefs, "balanced", distance="hamming", alpha=30, n_draws=10, rng=1)
    assert found.settings["latent"] == "drawn anew in each sweep, exactly"
    assert found.kind == "clicks"


def test_nested_clicks_bound_no_alpha():
    prefs = preferences([(0,), (0, 1), (0, 1, 2)] * 5)
    for name in NAMES:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            pm.fit(prefs, "mcmc", distance=name, n_draws=20, rng=1)
        assert any(isinstance(each.message, pm.diagnostics.AlphaWarning) for each in caught)
