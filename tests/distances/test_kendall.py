"""Kendall's distance against its definition, by enumeration, and closed forms for many items."""

import numpy as np
import pytest

from distance_checks import DistanceChecks, LargeChecks
from helpers import IS_COMPILED
from pseudomallows.distances.kendall import KENDALL
from pseudomallows.kernels.kendall import inversions as kernels

pytestmark = pytest.mark.kernel


class TestKendall(DistanceChecks):
    distance = KENDALL


class TestManyItems(LargeChecks):
    distance = KENDALL


def test_the_distance_of_the_reverse_is_the_number_of_pairs():
    for n_items in (2, 17, 10_000):
        up = np.arange(1, n_items + 1)
        assert KENDALL.between(up, up[::-1]) == n_items * (n_items - 1) // 2


def insertion_probabilities(n_items, rate):
    """``[item, rank - 1]``: the law of an item's place as the others join, one by one."""
    table = np.zeros((n_items, n_items))
    for item in range(n_items):
        weights = np.exp(-rate * np.arange(item, -1.0, -1))
        place = np.zeros(n_items)
        place[: item + 1] = weights / weights.sum()
        for later in range(item + 1, n_items):
            weights = np.exp(-rate * np.arange(later, -1.0, -1))
            pushed = np.zeros(n_items)
            pushed[: later + 1] = np.cumsum(weights) / weights.sum()
            moves = place * pushed
            place = place - moves
            place[1:] += moves[:-1]
        table[item] = place
    return table


@pytest.mark.parametrize(
    ("n_items", "rate"), [(40, 0.0), (40, 1e-4), (41, 0.02), (60, 0.3), (40, 3)]
)
def test_rank_probabilities_are_those_of_repeated_insertion(n_items, rate):
    found = KENDALL.rank_probabilities(n_items, rate * n_items)
    assert found == pytest.approx(insertion_probabilities(n_items, rate), abs=1e-12)
    means = KENDALL.expected_ranks(n_items, rate * n_items)
    assert means == pytest.approx(found @ np.arange(1, n_items + 1), abs=1e-10)


@pytest.mark.parametrize("alpha", [0.0, 1.0, 50.0, 3000.0])
def test_rank_probabilities_of_many_items_sum_to_one(alpha):
    n_items = 1000 if IS_COMPILED else 150
    table = KENDALL.rank_probabilities(n_items, alpha)
    assert np.abs(table.sum(axis=1) - 1).max() < 1e-10
    means = KENDALL.expected_ranks(n_items, alpha)
    assert table @ np.arange(1, n_items + 1) == pytest.approx(means, rel=1e-9)


def test_the_probability_of_a_pair_is_that_of_the_draws():
    n_items, rate = 30, 0.1
    draws = KENDALL.draw(n_items, rate * n_items, 20_000, seed=2)
    probabilities = np.empty(n_items)
    kernels.pair_probabilities(n_items, rate, probabilities)
    for first, gap in ((0, 1), (5, 4), (3, 25)):
        share = (draws[:, first] < draws[:, first + gap]).mean()
        assert abs(share - probabilities[gap]) < 5 * 0.5 / np.sqrt(20_000)


def test_the_smooth_part_of_the_mean_agrees_at_its_joint():
    below, above = kernels.bose(0.5 - 1e-12), kernels.bose(0.5)
    assert below == pytest.approx(above, rel=1e-10)
    assert kernels.bose(0.0) == 0
    assert kernels.bose(2000.0) == pytest.approx(0.4995)
