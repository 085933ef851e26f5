"""Recommendations from clicks by Spearman's, Cayley's, Hamming's and Ulam's distance, against all
rankings of a few items."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import naive
import pseudomallows as pm
from pseudomallows.posteriors.posterior import Posterior
from pseudomallows.recommendations.recommenders import halves, walks
from pseudomallows.recommendations.recommenders.chances import Users
from pseudomallows.recommendations.recommenders.registry import recommender_of

ROWS = [(0, 3), (2,), (), (1, 2, 4), (0, 1, 2, 3, 4), (4, 0, 1, 2)]
N_ITEMS, WINDOW = 5, 2
EXACT, WALKING = ("cayley", "hamming"), ("spearman", "ulam")
ALPHAS = {"spearman": (0.1, 1.5), "cayley": (0.5, 9), "hamming": (0.5, 9), "ulam": (0.5, 8)}


def posterior_of(distance, n_clusters=2, n_chains=2, n_draws=3, seed=1, rows=ROWS):
    """Draws made up, with weights."""
    rng, shape = np.random.default_rng(seed), (n_chains, n_draws, n_clusters)
    draws = np.argsort(rng.random((*shape, N_ITEMS)), axis=-1).astype(np.int32) + 1
    clicks = pm.Preferences.from_clicks(dict(enumerate(map(list, rows))), items=range(N_ITEMS))
    return Posterior(
        consensus=draws,
        alpha=rng.uniform(*ALPHAS[distance], shape),
        weights=rng.dirichlet(np.ones(n_chains * n_draws)).reshape(n_chains, n_draws),
        log_posterior=np.zeros(shape[:2]),
        best=draws[0, 0],
        items=np.arange(N_ITEMS),
        settings={"method": "mcmc", "distance": distance, "options": {}},
        data=clicks,
        users=clicks.users,
        shares=rng.dirichlet(np.ones(n_clusters), shape[:2]),
        chain_memberships=np.full((n_chains, len(rows), n_clusters), 1 / n_clusters, np.float32),
    )


def exact_chances(posterior, row, is_new, factor=1.0, distance=None):
    """By the definition: a mean over draws and clusters, weighed by the clicks; the chances of each
    item, and of each cluster. Alpha may be wrong by a factor."""
    distance = distance or posterior.settings["distance"]
    chances, shares = np.zeros(N_ITEMS), np.zeros(posterior.n_clusters)
    for chain, draw in np.ndindex(posterior.weights.shape):
        laws, weights = [], []
        for cluster in range(posterior.n_clusters):
            center = tuple(posterior.consensus[chain, draw, cluster].tolist())
            laws.append((center, factor * float(posterior.alpha[chain, draw, cluster])))
            like = naive.click_likelihood(row, *laws[-1], distance)
            weights.append(posterior.shares[chain, draw, cluster] * like)
        mine = posterior.weights[chain, draw] * np.array(weights)
        mine /= 1.0 if is_new else sum(weights)
        shares += mine
        for weight, law in zip(mine, laws, strict=True):
            chances += weight * np.array(naive.next_chances(row, *law, WINDOW, distance))
    return chances / shares.sum(), shares / shares.sum()


def largest_difference(posterior, found, is_new, **wrong):
    """Of what is recommended to all users from the definition."""
    largest = 0.0
    for user, row in enumerate(ROWS):
        exact, _ = exact_chances(posterior, row, is_new, **wrong)
        items = found.items[user, : N_ITEMS - len(row)]
        assert sorted([*items.tolist(), *row]) == list(range(N_ITEMS))
        values = found.probabilities[user, : len(items)]
        largest = max(largest, np.abs(values - exact[items]).max(initial=0.0))
    return largest


def recommend_all(posterior, is_new, **options):
    given = {"clicks": posterior.clicks} if is_new else {}
    return pm.recommend(posterior, N_ITEMS, window=WINDOW, max_error=0, **given, **options)


@pytest.mark.kernel
@pytest.mark.parametrize("distance", EXACT)
@pytest.mark.parametrize("n_clusters", [1, 2])
@pytest.mark.parametrize("is_new", [False, True])
def test_chances_by_closed_forms_are_exact(distance, n_clusters, is_new):
    posterior = posterior_of(distance, n_clusters)
    found = recommend_all(posterior, is_new)
    assert largest_difference(posterior, found, is_new) < 1e-12
    assert (np.diff(found.probabilities[2]) <= 1e-12).all()
    assert np.isfinite(found.errors[found.items >= 0]).all()


@pytest.mark.parametrize("distance", EXACT)
def test_those_of_other_laws_would_be_found_out(distance):
    posterior = posterior_of(distance)
    found = recommend_all(posterior, False)
    for wrong in ({"distance": "footrule"}, {"factor": 1.02}):
        assert largest_difference(posterior, found, False, **wrong) > 1e-3
    assert largest_difference(posterior, found, True) > 1e-3


@pytest.mark.parametrize("distance", WALKING)
@pytest.mark.parametrize("n_clusters", [1, 2])
@pytest.mark.parametrize("is_new", [False, True])
def test_walkers_find_the_exact_chances(distance, n_clusters, is_new, monkeypatch):
    monkeypatch.setattr(walks, "MOST_ROUNDS", 256)
    posterior = posterior_of(distance, n_clusters)
    found = recommend_all(posterior, is_new)
    assert largest_difference(posterior, found, is_new) < 0.012
    assert found.errors[found.items >= 0].max() < 0.006
    for wrong in ({"distance": "footrule"}, {"factor": 1.5}):
        assert largest_difference(posterior, found, is_new, **wrong) > 0.02
