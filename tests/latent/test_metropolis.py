"""Latent rankings that a chain keeps and changes by swaps."""

import warnings

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.latent.metropolis import MetropolisPopulation


def quietly(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.ConvergenceWarning)
        return pm.fit(*arguments, **options)


@pytest.mark.kernel
def test_metropolis_steps_keep_the_clicks():
    prefs = pm.simulate_clicks(60, 9, 2, 3, rng=1).preferences
    latent = MetropolisPopulation(prefs, pm.Threads(2), n_swaps=5)
    consensus = np.arange(1, 10, dtype=np.int32)
    for draw in range(20):
        latent.draw(consensus, 2.0, 3, draw)
    ranks = latent._latent
    assert (np.sort(ranks, axis=1) == np.arange(1, 10)).all()
    for row, n_clicks in enumerate(latent.clicks.n_clicks):
        assert set(ranks[row, latent.clicks.clicks_of(row)]) == set(range(1, n_clicks + 1))


def test_kept_latent_rankings_of_metropolis_steps_are_those_of_the_chain():
    prefs = pm.simulate_clicks(30, 8, 3, 3, rng=1).preferences
    options = {"augmentation": "metropolis", "n_swaps": 1, "thin": 1, "keep_latent": [4]}
    posterior = quietly(prefs, "mcmc", 3.0, n_draws=200, n_chains=1, rng=1, **options)
    changed = (np.diff(posterior.latent[0, :, 0], axis=0) != 0).sum(axis=1)
    assert set(changed.tolist()) == {0, 2}
