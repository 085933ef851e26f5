"""A fit is evaluated by a fit of its own options to less."""

import warnings

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.evaluation.evaluate import evaluate_again


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("pseudo", {"alpha": 4.0, "n_draws": 30, "n_clusters": 2, "sigma": 0.5}),
        ("pseudo", {"n_draws": 20, "order": "v"}),
        ("mcmc", {"n_draws": 40, "thin": 1, "warmup": 30, "n_chains": 2, "keep_latent": ["u3"]}),
        ("balanced", {"alpha": 3.0, "n_draws": 30}),
        ("personal", {"ridge": 0.7, "alpha": 3.0}),
        ("personal", {"calibrate": False}),
    ],
)
def test_the_options_are_those_of_the_fit(method, options):
    data = pm.simulate_clicks(150, 8, [6, 6], 4, min_clicks=3, rng=1).preferences
    prefs = data.rename(users=[f"u{row}" for row in range(150)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        posterior = pm.fit(prefs, method, rng=1, **options)
        again = evaluate_again(posterior, 1, 2, rng=1).posterior
    assert again.n_clusters == posterior.n_clusters
    if method != "personal":
        assert again.consensus.shape == posterior.consensus.shape
    own, found = (p.settings["options"] for p in (posterior, again))
    allowed = {"keep_latent", "single"}  # which do not change an answer
    if method == "personal" and options.get("calibrate", True):
        allowed |= {"held_out", "calibration"}  # what was hidden
    assert {name for name in own if own[name] != found.get(name)} <= allowed
    if "alpha" in options:
        drawn = again.alphas if method == "personal" else again.alpha
        assert (drawn == options["alpha"]).all()


def test_a_fit_that_cannot_be_made_again_is_refused():
    prefs = pm.simulate_clicks(60, 6, 5, 3, rng=1).preferences
    scores = np.random.default_rng(1).normal(size=(60, 6))
    posterior = pm.personal.fit_scores(prefs, scores, rng=1)
    with pytest.raises(ValueError, match=r"fitted with scores=\.\.\., which cannot be made again"):
        evaluate_again(posterior, 1, 2)
