import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import pseudomallows as pm
from helpers import interpreted, p_value
from pseudomallows.kernels.footrule import latent as kernels
from pseudomallows.kernels.streams import Streams
from pseudomallows.latent.clicks import ClickPopulation
from pseudomallows.latent.expected_counts import ExpectedDraw, GroupTables
from pseudomallows.latent.metropolis import MetropolisPopulation
from pseudomallows.latent.paper import PseudoDraw
from pseudomallows.latent.population import finish_draws
from pseudomallows.latent.rankings import RankingPopulation

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


@pytest.mark.kernel
@pytest.mark.parametrize("alpha", [0.0, 1.0, 30.0])
def test_log_likelihood_equals_enumeration(alpha):
    prefs = pm.Preferences.from_rankings([*ROWS, [3, 1, 2, 5, 4]])
    found = pm.log_likelihood(prefs, CONSENSUS, alpha)
    exact = [naive.likelihood(row, CONSENSUS.tolist(), alpha) for row in prefs.rankings.tolist()]
    assert found == pytest.approx(np.log(exact), abs=1e-10)


@given(st.integers(0, 2**5 - 1))
def test_likelihoods_of_all_ways_to_fill_the_known_items_sum_to_one(known):
    items = [item for item in range(5) if known >> item & 1]
    rows = np.zeros((math.perm(5, len(items)), 5), dtype=int)
    for row, ranks in zip(rows, itertools.permutations(range(1, 6), len(items)), strict=True):
        row[items] = ranks
    prefs = pm.Preferences.from_rankings(rows)
    total = np.exp(pm.log_likelihood(prefs, CONSENSUS, 2.0)).sum()
    assert total == pytest.approx(1)


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


CLICKS = {0: [0, 3], 1: [1, 2, 4], 2: [4], 3: [3]}


def clicks():
    return pm.Preferences.from_clicks(CLICKS, items=range(5))


def expected_draw(population, consensus):
    tables = GroupTables(0.4, "uniform", population.click_sizes, 5)
    return ExpectedDraw(population, consensus, tables)


DRAWS = {  # how each kind of draw begins, and whether it moves the consensus
    "exact rankings": (
        lambda consensus, number: RankingPopulation(pm.Preferences.from_rankings(ROWS)).begin_draw(
            consensus, 2.0, 5, number
        ),
        True,
    ),
    "exact clicks": (
        lambda consensus, number: ClickPopulation(clicks()).begin_draw(consensus, 2.0, 5, number),
        True,
    ),
    "metropolis": (
        lambda consensus, number: MetropolisPopulation(clicks()).begin_draw(
            consensus, 2.0, 5, number
        ),
        False,
    ),
    "paper": (
        lambda consensus, number: PseudoDraw(
            ClickPopulation(clicks()), consensus, 2.0, 5, number, "uniform"
        ),
        False,
    ),
    "expected": (
        lambda consensus, number: expected_draw(ClickPopulation(clicks()), consensus),
        False,
    ),
}


@pytest.mark.parametrize("kind", DRAWS)
def test_a_draw_does_not_change_the_consensus_it_is_given(kind):
    begin, moves = DRAWS[kind]
    given, moved = CONSENSUS.copy(), []
    for number in range(20):
        (found,) = finish_draws([begin(given, number)], pm.Threads(1))
        assert (given == CONSENSUS).all()
        assert sorted(found.consensus.tolist()) == [1, 2, 3, 4, 5]
        moved.append((found.consensus != CONSENSUS).any())
    assert any(moved) == moves


@pytest.mark.parametrize("make", [ClickPopulation, MetropolisPopulation])
def test_the_method_draw_changes_nothing_either(make):
    given, population = CONSENSUS.copy(), make(clicks())
    for number in range(20):
        population.draw(given, 2.0, 5, number)
    assert (given == CONSENSUS).all()
