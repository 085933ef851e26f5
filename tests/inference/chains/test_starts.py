"""Where chains start: the consensus, alpha, and whether anything in the data bounds it."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import naive
import pseudomallows as pm
from pseudomallows.inference.chains.starts import best_alpha, is_unbounded, start_consensus
from pseudomallows.inference.priors import FLAT, default_prior
from pseudomallows.latent.ranking_population import RankingPopulation
from pseudomallows.latent.registry import make_population

CONSENSUS = np.array([2, 5, 1, 3, 4], dtype=np.int32)


def test_the_start_is_the_exact_map_of_full_rankings():
    rankings = pm.Mallows(CONSENSUS, 1.0).draw(6, rng=1)
    law = naive.posterior(rankings.tolist(), 1.0)
    population = RankingPopulation(pm.Preferences.from_rankings(rankings))
    start = start_consensus(population, 1.0, np.random.default_rng(1))
    assert law[tuple(start.tolist())] == pytest.approx(max(law.values()))


def test_the_start_is_close_for_partial_rankings():
    truth = pm.simulate_rankings(500, 12, 4, top=5, rng=1)
    start = start_consensus(RankingPopulation(truth.preferences), 4.0, np.random.default_rng(1))
    assert pm.footrule(start, truth.consensus) <= 12


@pytest.mark.parametrize("top", [None, 2])
@pytest.mark.parametrize("prior", [FLAT, default_prior(4), (3.0, 2.0)])
def test_the_best_alpha_under_a_prior_is_the_mode(top, prior):
    prefs = pm.simulate_rankings(8, 4, 2, top=top, rng=1).preferences
    consensus = np.array([2, 1, 3, 4], dtype=np.int32)
    found = best_alpha(RankingPopulation(prefs), consensus, prior)

    def height(alpha):
        shape, rate = prior
        known = pm.log_likelihood(prefs, consensus, alpha).sum()
        return known + (shape - 1) * math.log(alpha) - rate * alpha

    assert height(found) > max(height(0.97 * found), height(1.03 * found))


@pytest.mark.parametrize(
    ("rows", "expected"), [([[0], [0, 1], [0, 1, 2]], True), ([[0], [1]], False)]
)
def test_a_consensus_without_disagreement_is_found_wherever_the_chain_stands(rows, expected):
    """Clicks that are nested suit one consensus; two different first choices do not."""
    prefs = pm.Preferences.from_clicks(dict(enumerate(rows)), items=range(5))
    for present in ([1, 2, 3, 4, 5], [5, 4, 3, 2, 1], [2, 1, 5, 3, 4]):
        cluster = SimpleNamespace(
            population=make_population(prefs, None),
            alpha=2.0,
            consensus=np.array(present, dtype=np.int32),
            seed=3,
        )
        where = (cluster.population, cluster.consensus, cluster.alpha, cluster.seed)
        assert is_unbounded(*where) == expected
