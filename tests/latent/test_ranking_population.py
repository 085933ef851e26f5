"""Latent rankings of users known by a ranking: exact draws, exact likelihoods."""

import math

import numpy as np
import pytest

import naive
import pseudomallows as pm
from helpers import interpreted, p_value
from pseudomallows.kernels.footrule import latent_blocks as kernels
from pseudomallows.kernels.streams import Streams
from pseudomallows.latent.ranking_population import RankingPopulation

ROWS = [[0, 3, 0, 1, 0], [1, 2, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 5, 0, 0]]

CONSENSUS = np.array([2, 5, 1, 3, 4], dtype=np.int32)


def latent_draws(row, alpha, n_draws, kernel=kernels.draw_latent):
    """One row of weight 1, drawn many times."""
    rankings, kept = np.array([row], dtype=np.int32), np.empty((1, 5), dtype=np.int32)
    one, none = np.ones(1, dtype=np.int64), np.full(5, -1)
    counts = np.zeros((2, 5, 5), dtype=np.int64)
    draws = np.empty((n_draws, 5), dtype=np.int64)
    for number in range(n_draws):
        streams = Streams(3, number, one * 0, one)
        kernel(streams, rankings, CONSENSUS, alpha / 5, none, counts, kept)
        draws[number] = kept[0]
    return draws, counts[0]


@pytest.mark.kernel
@pytest.mark.parametrize("row", ROWS[:2])
def test_latent_rankings_follow_the_exact_law(row):
    whole = naive.mallows(CONSENSUS.tolist(), 1.5)
    law = naive.normalise({r: whole[r] for r in naive.completions(row)})
    draws, counts = latent_draws(row, 1.5, 4000)
    assert p_value(draws, law) > 1e-4
    assert p_value(latent_draws(row, 3.5, 4000)[0], law) < 1e-6
    unknown = [item for item in range(5) if row[item] == 0]
    drawn = np.stack([(draws == rank).sum(axis=0) for rank in range(1, 6)], axis=1)
    assert (counts[unknown] == drawn[unknown]).all()
    assert counts.sum() == 4000 * len(unknown)


@pytest.mark.kernel
def test_compiled_and_interpreted_draws_are_equal():
    for row in ROWS:
        plain = latent_draws(row, 1.0, 20, interpreted(kernels.draw_latent))
        assert (latent_draws(row, 1.0, 20)[0] == plain[0]).all()


def test_total_log_likelihood_counts_weights_and_full_rows():
    rows = [[0, 3, 0, 1, 0], [3, 1, 2, 5, 4]]
    latent = RankingPopulation(pm.Preferences.from_rankings(rows, weights=[3, 2]))
    each = [math.log(naive.likelihood(row, CONSENSUS.tolist(), 1.2)) for row in rows]
    assert latent.log_likelihood(CONSENSUS, 1.2) == pytest.approx(3 * each[0] + 2 * each[1])


def costs(prefs, executor=None):
    found = RankingPopulation(prefs, executor).draw(CONSENSUS, 2.0, 5, 1)
    return found.tally.costs.tolist(), found.consensus.tolist()


def test_a_weight_gives_the_same_bits_as_repeated_rows():
    weights = [2, 3, 4, 1]
    weighted = pm.Preferences.from_rankings(ROWS, weights=weights)
    repeated = pm.Preferences.from_rankings(np.repeat(ROWS, weights, axis=0))
    assert costs(weighted) == costs(repeated)


def test_rows_without_information_change_no_bit():
    silent = [ROWS[0], [0] * 5, ROWS[1], ROWS[3], [1, 2, 3, 4, 5]]
    weights = [1, 7, 1, 1, 0]
    with_them = pm.Preferences.from_rankings(silent, weights=weights)
    without = pm.Preferences.from_rankings([silent[0], silent[2], silent[3]])
    assert costs(with_them) == costs(without)


def test_the_number_of_threads_and_the_blocks_change_no_bit(monkeypatch):
    prefs = pm.simulate_rankings(700, 5, 1, top=2, rng=1).preferences
    one = costs(prefs, pm.Threads(1))
    assert costs(prefs, pm.Threads(3)) == one
    monkeypatch.setattr("pseudomallows.latent.population.BLOCK", 10)
    monkeypatch.setattr("pseudomallows.engines.executors.blocks.__defaults__", (10,))
    assert costs(prefs, pm.Threads(2)) == one
