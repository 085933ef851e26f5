"""Spearman's distance against its definition, by enumeration, sums over sets, and long chains."""

import math

import numpy as np
import pytest

import naive
import pseudomallows as pm
from distance_checks import DistanceChecks, PriceChecks, center
from helpers import IS_COMPILED, p_value
from pseudomallows.distances import spearman
from pseudomallows.distances.spearman import SPEARMAN
from pseudomallows.kernels.distances import spearman_loops as kernels

pytestmark = pytest.mark.kernel
compiled_only = pytest.mark.skipif(not IS_COMPILED, reason="takes too long uncompiled")


def sum_over_sets(n_items, rate):
    return kernels.spearman_sum(SPEARMAN.weights(n_items, rate))


class TestSpearman(DistanceChecks, PriceChecks):
    distance = SPEARMAN
    draw_alphas = (0.5, 0.6)


@pytest.mark.parametrize(("n_items", "rate"), [(6, 0.0), (7, 0.05), (7, 0.6), (6, 900.0)])
def test_the_sum_over_sets_equals_enumeration(n_items, rate):
    exact = naive.log_partition(n_items, rate * n_items, "spearman")
    assert sum_over_sets(n_items, rate) == pytest.approx(exact, abs=1e-12)


def test_the_formula_of_balanced_weights_is_near_the_sum():
    for rate in (0.0, 0.001, 0.02):
        assert spearman.mccullagh(7, rate) == pytest.approx(sum_over_sets(7, rate), abs=3e-3)
    # where it is not meant for
    assert abs(spearman.mccullagh(7, 1.0) - sum_over_sets(7, 1.0)) > 0.1


@compiled_only
@pytest.mark.parametrize("n_items", [13, 16])
@pytest.mark.parametrize("rate", [1e-6, 2e-4, 0.013, 0.09, 0.4, 2.3, 9.0, 40.0])
def test_the_table_of_few_items_is_that_of_sums_over_sets(n_items, rate):
    found = SPEARMAN.log_partition(n_items, rate * n_items)
    error = SPEARMAN.log_partition_error(n_items, rate * n_items)
    assert found == pytest.approx(sum_over_sets(n_items, rate), abs=error)
    assert error <= 1e-7
    table = np.empty((n_items, n_items))
    kernels.spearman_marginals(SPEARMAN.weights(n_items, rate), table)
    mean = (table * SPEARMAN.prices(n_items)).sum()
    assert SPEARMAN.expected(n_items, rate * n_items) == pytest.approx(mean, rel=1e-6)


@compiled_only
@pytest.mark.parametrize("n_items", [21, 22])
@pytest.mark.parametrize("rate", [1e-6, 0.003, 0.03, 0.07, 0.085, 0.1, 0.16, 0.35, 1.4, 20.0])
def test_more_items_are_within_the_stated_error_of_sums_over_sets(n_items, rate):
    found = SPEARMAN.log_partition(n_items, rate * n_items)
    error = SPEARMAN.log_partition_error(n_items, rate * n_items)
    assert abs(found - sum_over_sets(n_items, rate)) < error < 2e-5


@compiled_only
def test_the_stated_error_is_honest_far_from_the_bases(monkeypatch):
    """From 9 to 12 items to 20: as far as from 17 to 28; the ends see each other less."""
    monkeypatch.setattr(spearman, "BASES", (9, 10, 11, 12))
    monkeypatch.setattr(spearman, "MOST_SUMMED", 12)
    for reach in (20.0, 30.0):
        monkeypatch.setattr(spearman, "REACH", reach)
        for rate in (1e-3, 0.01, 0.05, 0.1, 0.15, 0.2, 0.5, 1.0):
            found, error = spearman.log_sum(20, rate)
            away = abs(found - sum_over_sets(20, rate))
            assert away < 2 * error + 1e-6, (reach, rate)
            assert error < 1e-3
            assert abs(spearman.mccullagh(20, rate) - sum_over_sets(20, rate)) > 3 * error


@pytest.mark.slow
@pytest.mark.parametrize("n_items", [40, 100, 200])
def test_the_slope_of_many_items_is_the_mean_of_long_chains(n_items):
    for rate in (0.05 / n_items**2, 1e-3, 0.01, 0.05, 0.2, 1.0):
        draws = SPEARMAN.draw(n_items, rate * n_items, 4000, seed=4)
        away = SPEARMAN.between(draws, np.arange(1, n_items + 1))
        error = away.std() / math.sqrt(len(away))
        assert abs(away.mean() - SPEARMAN.expected(n_items, rate * n_items)) < 4.5 * error, rate
        assert SPEARMAN.log_partition_error(n_items, rate * n_items) < 1e-4


@compiled_only
@pytest.mark.parametrize("n_items", [30, 60])
def test_the_ends_of_alpha_are_those_of_any_distance(n_items):
    log_factorial = math.lgamma(n_items + 1)
    assert SPEARMAN.log_partition(n_items, 0.0) == pytest.approx(log_factorial, rel=1e-14)
    assert SPEARMAN.log_partition(n_items, 1e9) == 0
    for rate in (0.01 / n_items**2, 5.0):  # where the table begins and ends
        below, above = (rate * n_items * (1 + s) for s in (-1e-9, 1e-9))
        for value in (SPEARMAN.log_partition, SPEARMAN.expected):
            assert value(n_items, below) == pytest.approx(value(n_items, above), rel=1e-5)


def test_too_many_items_are_refused():
    with pytest.raises(ValueError, match="up to 1000 items, got 1001"):
        SPEARMAN.log_partition(1001, 1.0)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 2.0])
def test_chains_end_in_the_law(alpha):
    law = naive.mallows(center(5), alpha, "spearman")
    likely = {r: p for r, p in law.items() if p * 10_000 >= 5}
    draws = np.empty((10_000, 5), dtype=np.int32)

    def fit(rate):
        SPEARMAN.fill_by_chains(3, rate, 20 if IS_COMPILED else 4, draws)
        kept = [row for row in draws.tolist() if tuple(row) in likely]
        return p_value(kept, naive.normalise(likely))

    assert fit(alpha / 5) > 1e-4
    assert not IS_COMPILED or fit(alpha / 5 * 1.3 + 0.02) < 1e-6


@compiled_only
@pytest.mark.parametrize("rate", [1e-3, 0.02, 0.2])
def test_chains_have_the_rank_probabilities_of_sums_over_sets(rate):
    exact, draws = np.empty((12, 12)), np.empty((20_000, 12), dtype=np.int32)
    kernels.spearman_marginals(SPEARMAN.weights(12, rate), exact)
    SPEARMAN.fill_by_chains(5, rate, spearman.N_SWEEPS, draws)
    shares = spearman.symmetric_shares(draws)
    errors = np.sqrt(exact * (1 - exact) / 20_000) + 1e-5
    assert np.abs((shares - exact) / errors).max() < 5
    kernels.spearman_marginals(SPEARMAN.weights(12, 1.3 * rate + 2e-3), exact)
    assert np.abs((shares - exact) / errors).max() > 5


@compiled_only
def test_a_law_of_more_items_is_made_of_draws():
    law = pm.Mallows(np.arange(1, 26), 0.3, "spearman")
    table = law.rank_probabilities()
    assert table.sum(axis=0) == pytest.approx(np.ones(25))
    squares = SPEARMAN.prices(25)
    assert (table * squares).sum() == pytest.approx(law.expected_distance(), rel=0.02)
    assert law.expected_ranks() == pytest.approx(table @ np.arange(1, 26))
