"""Fits of clicks under Kendall's distance: the same bits everywhere, and what goes with them."""

import functools
import warnings

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.sampling import options

ARRAYS = ("consensus", "alpha", "shares", "best", "weights", "log_posterior")
ARRAYS += ("latent", "chain_memberships")
SHORT = {"n_draws": 9, "warmup": 4, "n_chains": 2, "method": "mcmc", "distance": "kendall"}


def clicks_of(n_users, n_items, alphas, seed=1):
    """From Kendall's law, a cluster for each alpha; and the labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(len(alphas), size=n_users)
    laws = [pm.Mallows(rng.permutation(n_items) + 1, alpha, distance="kendall") for alpha in alphas]
    rankings = np.stack([laws[label].draw(1, rng)[0] for label in labels])
    sizes = rng.integers(1, n_items // 2 + 1, size=n_users)
    return pm.Preferences.from_clicks(rankings <= sizes[:, None]), labels


@functools.cache
def data():
    """Some rows stand for several users, or for none."""
    prefs = clicks_of(300, 8, [8.0, 14.0])[0]
    weights = np.tile([1, 2, 0, 3], 300)[:300]
    return pm.Clicks(weights, prefs.users, prefs.items, prefs.starts, prefs.codes)


def quietly(prefs, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.diagnostics.FitWarning)
        return pm.fit(prefs, **{"rng": 3} | SHORT | options)


@functools.cache
def wanted(n_clusters):
    steps = []
    note = {"progress": lambda done, total: steps.append((done, total))}
    found = quietly(data(), n_clusters=n_clusters, executor=pm.Threads(1), **note)
    assert steps[-1][0] == steps[-1][1]
    return found, steps[-1][0]


def assert_same(found, other):
    for name in ARRAYS:
        assert np.array_equal(getattr(found, name), getattr(other, name), equal_nan=True), name


@pytest.mark.parametrize("n_clusters", [1, 2])
def test_a_posterior_comes_back_whole_and_answers_the_same(n_clusters, tmp_path):
    whole, _ = wanted(n_clusters)
    whole.save(tmp_path / "x.pm")
    again = pm.load(tmp_path / "x.pm")
    assert_same(again, whole)
    assert again.settings == whole.settings
    assert (again.point_consensus("map") == whole.point_consensus("map")).all()
    assert (pm.recommend(again, 3).items == pm.recommend(whole, 3).items).all()


# what a fit finds


def test_the_truth_is_found():
    prefs, labels = clicks_of(800, 20, [30.0, 50.0], seed=3)
    posterior = quietly(prefs, n_clusters=2, n_draws=100, warmup=25)
    agree = (posterior.labels == labels).mean()
    assert max(agree, 1 - agree) > 0.95
    assert sorted(posterior.alpha.mean(axis=(0, 1))) == pytest.approx([30, 50], rel=0.15)
    assert posterior.diagnostics().worst_rhat < 1.15


def test_the_number_of_clusters_is_found():
    prefs, _ = clicks_of(300, 12, [30.0, 40.0], seed=4)
    posterior = quietly(prefs, n_clusters="auto")
    assert posterior.n_clusters == 2
    assert posterior.settings["curve"]["chosen"] == 2


def test_the_best_consensus_is_the_order_of_the_numbers_of_clicks():
    posterior, _ = wanted(1)
    counts = data().item_counts()
    best = posterior.point_consensus("map")
    assert (np.diff(counts[np.argsort(best)]) <= 0).all()


def test_an_update_is_a_fit_of_all_clicks():
    prefs, _ = clicks_of(400, 10, [20.0], seed=5)
    old = quietly(prefs.take(np.arange(200)), n_draws=300, warmup=20)
    new = old.update(prefs.take(np.arange(200, 400)).rename(users=range(200, 400)), rng=7)
    whole = quietly(prefs, n_draws=300, warmup=20)
    assert new.settings["updates"] == 1
    assert new.settings["distance"] == "kendall"
    assert new.n_users == 400
    error = 5 * whole.alpha.std() / np.sqrt(60)
    assert abs(new.alpha.mean() - whole.alpha.mean()) < error
    assert np.abs(new.mean_ranks() - whole.mean_ranks()).max() < 0.6


def test_an_update_of_clusters_is_a_fit_of_all_clicks():
    prefs, labels = clicks_of(400, 10, [30.0, 40.0], seed=5)
    old = quietly(prefs.take(np.arange(300)), n_clusters=2, n_draws=100, warmup=20)
    new = old.update(prefs.take(np.arange(300, 400)).rename(users=range(300, 400)), rng=7)
    assert new.n_users == 400
    assert abs((new.labels == labels).mean() - 0.5) > 0.45  # the clusters have no numbers


def test_latent_rankings_are_kept_and_agree_with_the_clicks():
    posterior = quietly(data(), n_clusters=2, keep_latent=[0, 5, 2])
    for place, user in enumerate([0, 5, 2]):
        mine = data().clicks_of(user)
        ranks = posterior.latent[:, :, place]
        assert (np.sort(ranks, axis=-1) == np.arange(1, 9)).all()
        if data().weights[user]:
            assert (ranks[..., mine] <= len(mine)).all()


# what does not go with it


@pytest.mark.parametrize("method", ["pseudo", "balanced", "matched"])
def test_other_methods_say_what_to_use(method):
    with pytest.raises(ValueError, match=r"the footrule only|add up over items.*method='mcmc'"):
        pm.fit(data(), method, distance="kendall", rng=1)


@pytest.mark.parametrize("option", [{"leap": 2}, {"move": "leap_and_shift"}])
def test_other_moves_are_refused(option):
    (name,) = option
    with pytest.raises(ValueError, match=f"{name}=.* which have moves of their own: leave {name}"):
        pm.fit(data(), "mcmc", distance="kendall", rng=1, **option)


def test_a_huge_catalogue_keeps_fewer_draws(monkeypatch):
    monkeypatch.setattr(options, "ROOM", 2 * 4 * 8 * 30)
    posterior = quietly(data(), n_draws=None)
    assert posterior.consensus.shape[1] == posterior.settings["options"]["n_draws"] == 30
    monkeypatch.setattr(options, "ROOM", 1)
    assert quietly(data(), n_draws=None).consensus.shape[1] == options.LEAST_DRAWS
