"""Users of several kinds in one fit: the exact posterior, by enumeration."""

import math

import numpy as np
import pytest

import naive
import pseudomallows as pm

pytestmark = pytest.mark.filterwarnings("ignore::pseudomallows.diagnostics.FitWarning")
ITEMS = ["a", "b", "c", "d"]
RANKED = [[1, 2, 0, 0], [2, 1, 4, 3]]
CLICKED = [[0, 1, 1, 0], [1, 0, 0, 0]]
SAID = {"p": [("c", "a"), ("a", "d")], "q": [("b", "d")]}


def mixed():
    return pm.Preferences.concat(
        [
            pm.Preferences.from_rankings(RANKED, items=ITEMS, users=["r", "s"]),
            pm.Preferences.from_clicks(CLICKED, items=ITEMS, users=["t", "u"]),
            pm.Preferences.from_pairs(SAID, items=ITEMS),
        ]
    )


def exact_law(alpha, distance, without_pairs=False):
    weights = {}
    for consensus in naive.all_rankings(4):
        probabilities = [naive.likelihood(row, consensus, alpha, distance) for row in RANKED]
        clicked = [{item for item in range(4) if row[item]} for row in CLICKED]
        probabilities += [
            naive.click_likelihood(mine, consensus, alpha, distance) for mine in clicked
        ]
        for pairs in SAID.values():
            codes = [(ITEMS.index(better), ITEMS.index(worse)) for better, worse in pairs]
            if not without_pairs:
                probabilities.append(naive.pair_likelihood(codes, consensus, alpha, distance))
        weights[consensus] = math.prod(probabilities)
    return np.array(naive.marginals(naive.normalise(weights)))


@pytest.mark.parametrize(
    "distance", ["footrule", "kendall", pytest.param("cayley", marks=pytest.mark.slow)]
)
def test_a_fit_of_users_of_several_kinds_has_the_exact_posterior(distance):
    found = pm.fit(mixed(), alpha=3.0, n_draws=1000, n_chains=2, rng=2, distance=distance)
    assert found.method == "mcmc"
    ranks = found.rank_probabilities()
    assert np.abs(ranks - exact_law(3.0, distance)).max() < 0.04
    assert np.abs(ranks - exact_law(3.0, distance, without_pairs=True)).max() > 0.05


def test_kinds_without_comparisons_mix_too():
    both = pm.Preferences.concat(
        [
            pm.Preferences.from_rankings(RANKED, items=ITEMS, users=["r", "s"]),
            pm.Preferences.from_clicks(CLICKED, items=ITEMS, users=["t", "u"]),
        ]
    )
    found = pm.fit(both, alpha=3.0, n_draws=1000, n_chains=2, rng=2)
    assert np.abs(found.rank_probabilities() - exact_law(3.0, "footrule", True)).max() < 0.04


def test_a_mixed_fit_is_saved_with_its_data(tmp_path):
    found = pm.fit(mixed(), n_draws=20, n_chains=2, rng=2, keep_latent=["p", "t"])
    found.save(tmp_path / "fit.pm")
    again = pm.load(tmp_path / "fit.pm")
    assert again.data.digest() == found.data.digest()
    assert np.array_equal(again.latent, found.latent)
