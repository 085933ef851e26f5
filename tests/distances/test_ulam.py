"""Ulam's distance against its definition, by enumeration, and known counts of rankings."""

import math
import warnings

import numpy as np
import pytest

import pseudomallows as pm
from distance_checks import DistanceChecks
from helpers import IS_COMPILED
from pseudomallows.distances import ulam
from pseudomallows.distances.ulam import ULAM
from pseudomallows.kernels.distances import ulam_loops as kernels

pytestmark = pytest.mark.kernel
slowly = pytest.mark.skipif(not IS_COMPILED, reason="takes minutes without compilation")


class TestUlam(DistanceChecks):
    distance = ULAM
    draw_alphas = (1.5, 2.2)
    n_items = 9 if IS_COMPILED else 4  # more take minutes then


def test_shapes_have_as_many_tableaux_as_one_can_count():
    logs = np.array([math.lgamma(i + 1) for i in range(13)])
    for rows, exact in (([3, 2], 5), ([2, 2, 1], 5), ([4], 1), ([1, 1, 1], 1), ([4, 2, 1], 35)):
        found = kernels.log_tableaux(np.array(rows), len(rows), logs)
        assert math.exp(found) == pytest.approx(exact)


def test_all_shapes_are_numbered_as_they_come():
    n_items, numbers = 12, np.empty((13, 13), dtype=np.int64)
    kernels.count_shapes(n_items, numbers)
    rows, again = np.zeros(n_items, dtype=np.int64), np.zeros(n_items, dtype=np.int64)
    rows[0], n_rows, number = n_items, 1, 0
    while n_rows:
        assert rows[:n_rows].sum() == n_items
        assert kernels.shape_of(number, numbers, n_items, again) == n_rows
        assert (again[:n_rows] == rows[:n_rows]).all()
        n_rows, number = kernels.next_shape(rows, n_rows), number + 1
    assert number == numbers[n_items, n_items] == 77


def test_rankings_without_a_rise_of_three_are_counted_by_catalan_numbers():
    for n_items in (5, 9, 14):
        counts = np.exp(ulam.shapes_of(n_items).log_counts)
        assert counts.sum() == pytest.approx(math.factorial(n_items))
        assert counts[0] == pytest.approx(1)
        assert counts[1] == pytest.approx((n_items - 1) ** 2)
        catalan = math.comb(2 * n_items, n_items) / (n_items + 1)
        assert counts[-2:].sum() == pytest.approx(catalan)


def test_the_rank_of_more_items_is_within_the_stated_error():
    """At one size the same law by enumeration and by draws."""
    exact = ULAM.rank_probabilities(7, 3.0)
    shares = ulam.symmetric_shares(ULAM.draw(7, 3.0, 40_000, seed=0))
    assert np.abs(shares - exact).max() < 4 * 0.0025
    assert np.abs(shares - ULAM.rank_probabilities(7, 6.0)).max() > 4 * 0.0025
    found = ULAM.rank_probabilities(12, 2.0) if IS_COMPILED else shares
    assert found.sum(axis=0) == pytest.approx(np.ones(len(found)))
    assert found == pytest.approx(found.T)


@pytest.mark.slow
def test_sixty_items_are_the_most():
    counts = ulam.shapes_of(60).log_counts
    assert np.logaddexp.reduce(counts) == pytest.approx(math.lgamma(61), rel=1e-12)
    draws = ULAM.draw(60, 100.0, 2000, seed=1)
    away = ULAM.between(draws, np.arange(1, 61))
    assert abs(away.mean() - ULAM.expected(60, 100.0)) < 5 * away.std() / math.sqrt(2000)


def test_more_than_sixty_items_have_a_distance_only():
    up = np.arange(1, 10_001)
    assert ULAM.between(up, np.roll(up, 1)) == 1
    assert ULAM.between(up, up[::-1]) == 9999
    law = pm.Mallows(np.arange(1, 62), 1.0, "ulam")
    with pytest.raises(ValueError, match="up to 60 items, got 61: use another distance"):
        law.draw(1)
    with pytest.raises(ValueError, match="up to 60 items, got 61: use another distance"):
        ULAM.tally(61)  # so that a fit says so before any work


def worst_rhat(**options):
    """Of a fit of users who differ by small steps, where exchanges get stuck.

    The number of draws is given: without it, chains go on and are tempered until exchanges do.
    """
    prefs = pm.simulate_rankings(20, 20, 6.0, rng=1).preferences
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.diagnostics.FitWarning)
        posterior = pm.fit(prefs, "mcmc", distance="ulam", n_draws=250, rng=1, **options)
    return posterior.diagnostics().worst_rhat


@slowly
@pytest.mark.slow
def test_a_chain_mixes_by_insertions_and_not_by_swaps():
    assert worst_rhat() <= 1.05
    assert worst_rhat(move="swap") > 2
