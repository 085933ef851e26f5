"""A distance that one adds by the guide: a file with a class, and a line in the registry."""

import itertools
import math

import numpy as np
import pytest

import naive
import pseudomallows as pm
from pseudomallows.distances import DISTANCES, PriceDistance

N_ITEMS = 4
ALL = np.array(list(itertools.permutations(range(1, N_ITEMS + 1))))


class Cubes(PriceDistance):
    """The sum of the cubed differences in rank, by enumeration: for few items only."""

    name = "cubes"

    def between(self, rankings, other):
        return (np.abs(np.asarray(rankings, np.int64) - np.asarray(other)) ** 3).sum(axis=-1)

    def _weights(self, n_items, alpha):
        return np.exp(-alpha / n_items * self.between(ALL, np.arange(1, n_items + 1)))

    def make_partition(self, n_items, alpha):
        weights = self._weights(n_items, alpha)
        total = weights.sum()
        return math.log(total), weights @ self.between(ALL, np.arange(1, n_items + 1)) / total

    def fill_draws(self, seed, alpha, draws):
        weights = self._weights(draws.shape[1], alpha)
        rng = np.random.default_rng(seed)
        draws[:] = ALL[rng.choice(len(ALL), len(draws), p=weights / weights.sum())]

    def rank_probabilities(self, n_items, alpha):
        weights = self._weights(n_items, alpha)
        return rank_probabilities(weights / weights.sum())

    def prices(self, n_items):
        ranks = np.arange(n_items)
        return np.abs(ranks[:, None] - ranks) ** 3


@pytest.fixture
def cubes(monkeypatch):
    monkeypatch.setitem(DISTANCES, "cubes", Cubes())
    return pm.Mallows([2, 1, 3, 4], 1.0, "cubes").draw(60, rng=1)


def cubed(ranking, other):
    return sum(abs(a - b) ** 3 for a, b in zip(ranking, other, strict=True))


def posterior_of(rankings, alpha, between):
    """``[consensus]``: exact posterior over `ALL`, a flat prior."""
    totals = np.array([sum(between(r, c) for r in rankings) for c in ALL.tolist()])
    logs = -alpha / N_ITEMS * totals
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


def rank_probabilities(weights):
    return np.stack([weights @ (rank == ALL) for rank in range(1, N_ITEMS + 1)], axis=1)


def test_likelihoods_are_those_of_the_distance(cubes):
    prefs = pm.Preferences.from_rankings(cubes[:10])
    found = pm.log_likelihood(prefs, [1, 2, 3, 4], 1.0, "cubes")
    np.testing.assert_allclose(
        found, pm.Mallows([1, 2, 3, 4], 1.0, "cubes").log_probability(cubes[:10])
    )
    assert not np.allclose(found, pm.log_likelihood(prefs, [1, 2, 3, 4], 1.0))


@pytest.mark.parametrize("method", ["mcmc", "balanced"])
def test_an_exact_method_has_the_posterior_of_the_distance(cubes, method):
    rankings, alpha = cubes[:6].tolist(), 0.3
    prefs = pm.Preferences.from_rankings(rankings)
    fit = pm.fit(prefs, method, alpha, n_draws=4000, distance="cubes", rng=1)
    assert fit.settings["distance"] == "cubes"
    found = fit.rank_probabilities()
    right = rank_probabilities(posterior_of(rankings, alpha, cubed))
    wrong = rank_probabilities(posterior_of(rankings, alpha, naive.footrule))
    assert np.abs(found - right).max() < 0.03
    assert np.abs(found - wrong).max() > 0.06


@pytest.mark.parametrize("method", ["pseudo", "balanced", "mcmc"])
@pytest.mark.parametrize("n_clusters", [1, 2])
@pytest.mark.filterwarnings("ignore::pseudomallows.diagnostics.FitWarning")
@pytest.mark.filterwarnings("ignore::pseudomallows.diagnostics.AlphaWarning")
def test_alpha_is_that_of_the_distance(cubes, method, n_clusters):
    centers = ([2, 1, 3, 4], [3, 4, 2, 1])[:n_clusters]
    draws = [pm.Mallows(c, 1.0, "cubes").draw(400, rng=k) for k, c in enumerate(centers)]
    prefs = pm.Preferences.from_rankings(np.concatenate(draws))
    options = {"n_draws": 200, "n_clusters": n_clusters, "rng": 3}
    right = pm.fit(prefs, method, distance="cubes", **options).alpha.mean(axis=(0, 1))
    wrong = pm.fit(prefs, method, **options).alpha.mean(axis=(0, 1))
    assert (np.abs(right - 1.0) < 0.3).all()
    assert (np.abs(wrong - 1.0) > 0.5).all()


def test_users_known_in_part_are_fitted_too_but_have_no_exact_likelihood(cubes):
    for prefs in (
        pm.Preferences.from_rankings([[1, 2, 0, 0], [1, 0, 0, 2]]),
        pm.Preferences.from_clicks([[1, 0, 0, 0], [1, 1, 0, 0]]),
    ):
        posterior = pm.fit(prefs, "mcmc", 40, distance="cubes", n_draws=400, rng=1)
        assert posterior.point_consensus()[0] == 1
        assert posterior.settings["latent"].startswith("moved by exchanges")
        with pytest.raises(ValueError, match="by cubes is not known: use distance='footrule'"):
            pm.log_likelihood(prefs, [1, 2, 3, 4], 1, "cubes")
    with pytest.raises(ValueError, match="'similarity' works with the footrule"):
        pm.estimate_alpha(pm.Preferences.from_rankings(cubes), distance="cubes")
