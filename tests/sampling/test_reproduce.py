"""The call that makes a fit again makes it again."""

import warnings

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.sampling.reproduce import call_of


def rankings():
    return pm.simulate_rankings(30, 5, [6, 6], rng=1).preferences


def partial():
    return pm.simulate_rankings(30, 5, 3, top=2, rng=1).preferences


def clicks():
    prefs = pm.simulate_clicks(40, 8, 5, mean_clicks=3, rng=1).preferences
    return prefs.rename(users=[f"user '{row}'" for row in range(40)])


CASES = [
    (rankings, {"method": "pseudo"}),
    (rankings, {"method": "pseudo", "alpha": 3, "sigma": 0.7, "n_chains": 2}),
    (rankings, {"method": "balanced", "n_draws": 100, "weighted": False}),
    (rankings, {"method": "mcmc", "n_draws": 20, "move": "leap_and_shift", "leap": 2}),
    (rankings, {"method": "mcmc", "n_draws": 20, "n_clusters": 2, "share_prior": 2.0}),
    (rankings, {"method": "pseudo", "n_draws": 20, "n_clusters": "auto"}),
    (partial, {"method": "mcmc", "n_draws": 20, "thin": 2, "warmup": 30, "alpha": 2.5}),
    (partial, {"method": "pseudo", "n_draws": 20}),
    (clicks, {"method": "pseudo", "n_draws": 20, "order": "v"}),
    (clicks, {"method": "mcmc", "n_draws": 20, "keep_latent": ["user '3'", "user '5'"]}),
    (clicks, {"method": "personal", "calibrate": False, "blend": False}),
]


@pytest.mark.parametrize(("make", "options"), CASES)
def test_the_call_makes_the_same_draws(make, options):
    prefs = make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        posterior = pm.fit(prefs, rng=7, **options)
        again = eval(call_of(posterior), {"pm": pm, "prefs": prefs})
    names = ("consensus", "alpha", "latent")
    if isinstance(posterior, pm.PersonalFit):
        names = ("item_weights", "ties", "alphas", "alpha_shares")
    for name in names:
        assert np.array_equal(getattr(again, name), getattr(posterior, name))


def test_usual_options_are_left_out_and_data_is_not_told():
    posterior = pm.fit(rankings(), "pseudo", alpha=3, rng=7)
    assert call_of(posterior) == ("pm.fit(prefs, method='pseudo', alpha=3.0, rng=7)")
    scores = np.random.default_rng(1).random((40, 8))
    posterior = pm.personal.fit_scores(clicks(), scores, calibrate=False, rng=7)
    call = "pm.personal.fit_scores(prefs, calibrate=False, scores=..., rng=7)"
    assert call_of(posterior) == call
