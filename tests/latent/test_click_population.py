import itertools
import math
import warnings

import numpy as np
import pytest

import naive
import pseudomallows as pm
from helpers import choose, interpreted, p_value
from pseudomallows.kernels.click_rows import ClickRows
from pseudomallows.kernels.footrule import latent_clicks as kernels
from pseudomallows.kernels.streams import Streams, start_stream
from pseudomallows.latent.click_population import ClickPopulation

CONSENSUS = np.array([2, 5, 1, 3, 4], dtype=np.int32)


def quietly(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.diagnostics.FitWarning)
        return pm.fit(*arguments, **options)


def compatible(clicked, law):
    """The part of a law of rankings in which the clicked items have the first ranks."""
    n_clicks = len(clicked)
    return {r: p for r, p in law.items() if all(r[item] <= n_clicks for item in clicked)}


def click_posterior(rows, alpha):
    """{consensus: probability} given sets of clicked items."""
    n_items = 4
    weights = {}
    for consensus in naive.all_rankings(n_items):
        law = naive.mallows(consensus, alpha)
        weights[consensus] = math.prod(sum(compatible(row, law).values()) for row in rows)
    return naive.normalise(weights)


def arrays(*rows):
    starts = np.cumsum([0, *map(len, rows)])
    return ClickRows(starts, np.array(list(itertools.chain(*rows)), dtype=np.int32))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pm.fit(pm.Preferences.from_clicks([[0, 0], [1, 1]]), "pseudo"), "no informative rows"),
        (lambda: pm.click_log_likelihood(pm.Preferences.from_rankings([[1, 2]]), [1, 2], 1), "must be clicks"),
        (lambda: pm.fit(pm.Preferences.from_clicks([[1, 0, 0]]), "pseudo"), "only one user"),
        (lambda: pm.fit(pm.Preferences.from_clicks([[1, 0]]), "pseudo", alpha=1, order="up"), "order must be one of 'uniform', 'v', 'top_bottom'"),
        (lambda: pm.fit(pm.Preferences.from_clicks([[1, 0]]), "pseudo", alpha=1, keep_latent=["x"]), "no user is named 'x'; the first are 0"),
        (lambda: pm.fit(pm.Preferences.from_clicks([[1, 0]]), "mcmc", 1, augmentation="gibbs"), "augmentation must be one of 'matched', 'exact', got"),
        (lambda: pm.fit(pm.Preferences.from_clicks([[1, 0]]), "pseudo", alpha=1, move="swap"), "method='pseudo' on clicks has no option 'move'"),
        (lambda: pm.simulate_clicks(5, 6, 1, distribution="gamma"), "one of 'poisson', 'exponential', got 'gamma'"),
        (lambda: pm.simulate_clicks(5, 6, 1, min_clicks=4, max_clicks=3), "between min_clicks and max_clicks"),
        (lambda: pm.simulate_clicks(5, 6, 1, 1, distribution="exponential", min_clicks=3), "mean_clicks must be between"),
    ],
)  # fmt: skip
def test_what_clicks_do_not_allow_is_refused_with_a_message(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


# the exact law


def latent_draws(clicked, alpha, n_draws, kernel=kernels.draw_click_users):
    clicks = arrays(clicked)
    kept, draws = np.zeros((1, 5), dtype=np.int32), np.empty((n_draws, 5), dtype=np.int64)
    counts = np.zeros((2, 5, 5), dtype=np.int64)
    one, none = np.ones(1, dtype=np.int64), np.full(5, -1)
    for draw in range(n_draws):
        streams = Streams(3, draw, one * 0, one)
        kernel(streams, clicks, CONSENSUS, alpha / 5, none, counts, kept)
        draws[draw] = kept[0]
    return draws


@pytest.mark.kernel
@pytest.mark.parametrize("clicked", [[1], [0, 3], [1, 2, 4]])
def test_latent_rankings_follow_the_exact_law(clicked):
    law = naive.normalise(compatible(clicked, naive.mallows(CONSENSUS.tolist(), 1.5)))
    assert p_value(latent_draws(clicked, 1.5, 3000), law) > 1e-4
    assert p_value(latent_draws(clicked, 4.0, 3000), law) < 1e-6


@pytest.mark.kernel
def test_compiled_and_interpreted_kernels_are_equal():
    plain = latent_draws([0, 3], 1.5, 20, interpreted(kernels.draw_click_users))
    assert (latent_draws([0, 3], 1.5, 20) == plain).all()


# chains

ROWS = [[0], [0, 2], [1], [3, 0], [2, 0, 1]]


def ends_of_sweeps(alpha, latent_of):
    law = click_posterior(ROWS, 1.0)
    starts = choose(law, 5000, np.random.default_rng(2)).astype(np.int32)
    prefs = pm.Preferences.from_clicks(dict(enumerate(ROWS)), items=range(4))
    latent, stream = latent_of(prefs), np.empty(1, dtype=np.uint64)
    for number, consensus in enumerate(starts):
        tally, consensus[:] = latent.draw(consensus, alpha, 11, number)
        start_stream(11, number, 2**62 + 1, stream)
        tally.move(stream, alpha / 4, 3, consensus)
    return p_value(starts, law)


@pytest.mark.kernel
def test_a_sweep_leaves_the_exact_posterior_as_it_is():
    assert ends_of_sweeps(1.0, lambda prefs: ClickPopulation(prefs, pm.Threads(1))) > 1e-4


def test_a_sweep_at_another_alpha_is_caught():
    assert ends_of_sweeps(2.0, lambda prefs: ClickPopulation(prefs, pm.Threads(1))) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [{}, {"augmentation": "exact", "thin": 5}],
    ids=["matched", "exact"],
)
def test_mcmc_is_exact(options):
    exact = np.array(naive.marginals(click_posterior(ROWS, 2.0)))
    prefs = pm.Preferences.from_clicks(dict(enumerate(ROWS)), items=range(4))
    posterior = pm.fit(prefs, "mcmc", 2.0, n_draws=1500, rng=1, **options)
    assert np.abs(posterior.rank_probabilities() - exact).max() < 0.03


@pytest.mark.slow
def test_balanced_is_exact_and_pseudo_is_close():
    exact = np.array(naive.marginals(click_posterior(ROWS, 2.0)))
    prefs = pm.Preferences.from_clicks(dict(enumerate(ROWS)), items=range(4))
    balanced = quietly(prefs, "balanced", 2.0, n_draws=1500, rng=1)
    assert np.abs(balanced.rank_probabilities() - exact).max() < 0.03
    pseudo = quietly(prefs, "pseudo", 2.0, n_draws=3000, rng=1)
    assert 0.03 < np.abs(pseudo.rank_probabilities() - exact).max() < 0.25


@pytest.mark.parametrize("method", ["pseudo", "balanced", "mcmc"])
def test_the_same_seed_gives_the_same_bits_on_any_threads_and_blocks(method, monkeypatch):
    prefs = pm.simulate_clicks(600, 12, 2, 4, rng=1).preferences
    options = {"n_draws": 8, "warmup": 2, "thin": 1, "rng": 5, "keep_latent": [3, 500]}
    one, two = (quietly(prefs, method, executor=pm.Threads(n), **options) for n in (1, 2))
    monkeypatch.setattr("pseudomallows.latent.population.BLOCK", 7)
    monkeypatch.setattr("pseudomallows.engines.executors.blocks.__defaults__", (7,))
    three = quietly(prefs, method, executor=pm.Threads(2), **options)
    for other in (two, three):
        assert (one.consensus == other.consensus).all()
        assert (one.alpha == other.alpha).all()
        assert (one.latent == other.latent).all()


@pytest.mark.parametrize("method", ["pseudo", "balanced", "mcmc"])
def test_weights_and_silent_users(method):
    rows, weights = [[0, 2], [], [1], [0, 1, 2, 3], [3, 0]], [2, 3, 1, 2, 3]
    silent = pm.Preferences.from_clicks(dict(enumerate(rows)), items=range(4), weights=weights)
    repeated = [
        row for row, w in zip(rows, weights, strict=True) for _ in range(w) if 0 < len(row) < 4
    ]
    plain = pm.Preferences.from_clicks(dict(enumerate(repeated)), items=range(4))
    one, two = (quietly(prefs, method, 2.0, n_draws=20, rng=5) for prefs in (silent, plain))
    assert (one.consensus == two.consensus).all()


@pytest.mark.parametrize("method", ["pseudo", "mcmc"])
def test_kept_latent_rankings_agree_with_the_clicks(method):
    prefs = pm.simulate_clicks(50, 8, 3, 3, rng=1).preferences
    names = [7, 12]
    posterior = quietly(prefs, method, 3.0, n_draws=50, rng=1, keep_latent=names)
    n_chains = len(posterior.consensus)
    assert posterior.latent.shape == (n_chains, 50, 2, 8)
    for place, user in enumerate(names):
        ranks = posterior.latent[:, :, place].reshape(-1, 8)
        assert (np.sort(ranks, axis=1) == np.arange(1, 9)).all()
        clicked = prefs.clicks_of(user)
        assert (ranks[:, clicked] <= len(clicked)).all()
    assert len(np.unique(posterior.latent.reshape(-1, 8), axis=0)) > 10


@pytest.mark.parametrize("method", ["pseudo", "balanced", "mcmc"])
def test_users_who_say_nothing_have_latent_rankings_too(method):
    rows = {"a": [0, 1], "none": [], "all": [0, 1, 2, 3, 4], "b": [2], "c": [0, 3]}
    prefs = pm.Preferences.from_clicks(rows, items=range(5))
    posterior = quietly(prefs, method, 2.0, n_draws=30, rng=1, keep_latent=["none", "all"])
    latent = posterior.latent.reshape(-1, 2, 5)
    assert (np.sort(latent, axis=2) == np.arange(1, 6)).all()
    assert len(np.unique(latent[:, 0], axis=0)) > 5
    assert (latent[:, 0] != latent[:, 1]).any()


def test_no_latent_ranking_is_kept_by_default():
    prefs = pm.simulate_clicks(50, 8, 3, 3, rng=1).preferences
    assert quietly(prefs, alpha=3.0, n_draws=5, rng=1).latent.size == 0


# alpha and simulation


@pytest.mark.parametrize("alpha", [2, 8])
def test_alpha_is_recovered_by_both_methods(alpha):
    prefs = pm.simulate_clicks(3000, 20, alpha, 5, rng=1).preferences
    assert pm.estimate_alpha(prefs) == pytest.approx(alpha, rel=0.05)
    assert pm.estimate_alpha(prefs, "likelihood", rng=1) == pytest.approx(alpha, rel=0.05)


@pytest.mark.parametrize(("distribution", "lowest"), [("poisson", 1), ("exponential", 3)])
def test_simulated_clicks_are_the_first_ranks(distribution, lowest):
    data = pm.simulate_clicks(500, 20, 3, 8, distribution=distribution, min_clicks=lowest, rng=1)
    n_clicks = data.preferences.n_clicks
    assert n_clicks.min() >= lowest
    assert n_clicks.max() <= 17
    assert n_clicks.mean() == pytest.approx(8, abs=0.5)
    for user in range(500):
        ranks = data.rankings[user, data.preferences.clicks_of(user)]
        assert sorted(ranks) == list(range(1, n_clicks[user] + 1))
    assert (data.consensus != np.arange(1, 21)).any()
