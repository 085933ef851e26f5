"""Exact likelihoods of all that may be known of a user, against enumeration."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import pseudomallows as pm

CONSENSUS = np.array([2, 5, 1, 3, 4], dtype=np.int32)
ROWS = [[0, 3, 0, 1, 0], [1, 2, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 5, 0, 0]]


@pytest.mark.kernel
@pytest.mark.parametrize("alpha", [0.0, 1.3, 25.0])
def test_the_click_likelihood_equals_enumeration(alpha):
    rows = [[0], [1, 3], [0, 2, 4], [], [0, 1, 2, 3, 4]]
    prefs = pm.Preferences.from_clicks(dict(enumerate(rows)), items=range(5))
    exact = [naive.click_likelihood(row, CONSENSUS.tolist(), alpha) for row in rows]
    assert pm.click_log_likelihood(prefs, CONSENSUS, alpha) == pytest.approx(
        np.log(exact), abs=1e-9
    )


@pytest.mark.parametrize("size", range(6))
def test_the_likelihoods_of_all_sets_of_a_size_sum_to_one(size):
    sets = list(itertools.combinations(range(5), size))
    prefs = pm.Preferences.from_clicks(dict(enumerate(sets)), items=range(5))
    assert np.exp(pm.click_log_likelihood(prefs, CONSENSUS, 2.2)).sum() == pytest.approx(1)


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
