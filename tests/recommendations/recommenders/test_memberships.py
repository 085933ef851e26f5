"""Memberships of new users: by definition, and the same for one user as for many."""

import warnings

import numpy as np
import pytest

import naive
import pseudomallows as pm
from pseudomallows.web.models.model import Clicked, Model
from webhelp import make_model

LOG = {i: ["tea", "milk"] if i < 8 else ["ale", "rum"] for i in range(14)}


def test_memberships_of_a_pseudo_fit_are_those_of_its_best_consensuses():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = pm.fit(pm.Preferences.from_clicks(LOG), "pseudo", n_clusters=2, rng=1)
    alphas, weights = posterior.alpha.mean(axis=(0, 1)), posterior.shares.mean(axis=(0, 1))
    codes = {name: code for code, name in enumerate(posterior.items.tolist())}
    for clicked in (["milk"], ["ale", "rum"], ["tea", "rum"], []):
        pairs = zip(posterior.best.tolist(), alphas, strict=True)
        likelihoods = [naive.click_likelihood([codes[i] for i in clicked], *p) for p in pairs]
        expected = weights * likelihoods
        found = pm.recommendations.memberships(posterior, {"new": clicked})[0]
        assert found == pytest.approx(expected / expected.sum(), rel=1e-6, abs=1e-9)
        assert found != pytest.approx(weights / weights.sum(), rel=0.01) or not clicked


@pytest.mark.parametrize("more", [{}, {"method": "mcmc", "n_chains": 2}])
def test_one_user_gets_what_many_get_to_the_bit(tmp_path, more):
    posterior = make_model(tmp_path / "m.pm", **({"method": "pseudo"} | more), n_clusters=3)
    served, rng = Model(posterior, 1), np.random.default_rng(1)
    n_items = posterior.n_items
    lists = [np.sort(rng.permutation(n_items)[:size]) for size in range(n_items)]
    names = {user: posterior.items[codes].tolist() for user, codes in enumerate(lists)}
    together = pm.recommend(posterior, 3, clicks=names)
    means = pm.recommendations.memberships(posterior, names)
    for user, codes in enumerate(lists):
        items, chances, memberships = served.best(Clicked(codes.astype(np.int32)), 3)
        assert items == together.items[user].tolist()
        assert np.array_equal(chances, together.probabilities[user], equal_nan=True)
        assert memberships == means[user].tolist()
