"""Memberships of new users: by definition, and the same for one user as for many."""

import warnings

import numpy as np
import pytest

import naive
import pseudomallows as pm
from pseudomallows.web.models.model import Clicked, Model
from webhelp import make_model

LOG = {i: ["tea", "milk"] if i < 8 else ["ale", "rum"] for i in range(14)}


def test_memberships_of_a_pseudo_fit_are_those_of_its_draws():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = pm.fit(pm.Preferences.from_clicks(LOG), "pseudo", n_clusters=2, rng=1)
    codes = {name: code for code, name in enumerate(posterior.items.tolist())}
    for clicked in (["milk"], ["ale", "rum"], ["tea", "rum"]):
        expected = np.zeros(2)
        for chain, draw, cluster in np.ndindex(posterior.alpha.shape):
            law = (
                posterior.consensus[chain, draw, cluster].tolist(),
                posterior.alpha[0, 0, cluster],
            )
            likelihood = naive.click_likelihood([codes[item] for item in clicked], *law)
            expected[cluster] += posterior.shares[chain, draw, cluster] * likelihood
        found = pm.recommendations.memberships(posterior, {"new": clicked})[0]
        assert found == pytest.approx(expected / expected.sum(), abs=0.01)
        assert found != pytest.approx([0.5, 0.5], abs=0.01)


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
        items, probabilities, memberships = served.best(Clicked(codes.astype(np.int32)), 3)
        assert items == together.items[user].tolist()
        assert np.array_equal(probabilities, together.probabilities[user], equal_nan=True)
        assert memberships == means[user].tolist()
