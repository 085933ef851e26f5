"""Answers from draws, against those from a table of items and ranks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pseudomallows.kernels.rank_draws import cp_of_draws, intervals_of_draws
from pseudomallows.posterior.intervals import intervals_of
from pseudomallows.scores import share_of_ranks

pytestmark = pytest.mark.kernel


@st.composite
def draws_of(draw):
    """Eight draws, so that shares are exact; some are alike."""
    n_items = draw(st.integers(2, 9))
    seeds = draw(st.lists(st.integers(0, 5), min_size=8, max_size=8))
    rows = [np.random.default_rng(seed).permutation(n_items) + 1 for seed in seeds]
    return np.array(rows, dtype=np.int32)


@settings(max_examples=60, deadline=None)
@given(draws_of())
def test_the_cp_consensus_is_that_of_the_table(draws):
    table = share_of_ranks(draws)
    chosen = np.empty(draws.shape[1], dtype=np.int64)
    orderings = np.argsort(draws, axis=1)
    means = table @ np.arange(1, draws.shape[1] + 1)
    cp_of_draws(orderings, np.ones(8), means, chosen)
    left = list(range(draws.shape[1]))
    for place, item in enumerate(chosen.tolist()):  # of ties the better mean rank
        sums = table[:, : place + 1].sum(axis=1)
        assert item == min(left, key=lambda each: (-sums[each], means[each], each))
        left.remove(item)


def test_without_means_ties_would_go_elsewhere():
    draws = np.array([[2, 1, 3, 4], [1, 2, 4, 3], [3, 1, 2, 4], [1, 4, 3, 2]], dtype=np.int32)
    chosen, orderings = np.empty(4, dtype=np.int64), np.argsort(draws, axis=1)
    cp_of_draws(orderings, np.ones(4), np.array([9.0, 1.0, 1.0, 1.0]), chosen)
    assert chosen[0] == 1
    cp_of_draws(orderings, np.ones(4), np.array([1.0, 9.0, 1.0, 1.0]), chosen)
    assert chosen[0] == 0


@settings(max_examples=60, deadline=None)
@given(draws_of(), st.sampled_from([0.3, 0.5, 0.75, 0.95, 1.0]))
def test_intervals_are_those_of_the_table(draws, probability):
    found = np.empty((draws.shape[1], 2), dtype=np.int32)
    intervals_of_draws(draws, np.full(8, 1 / 8), probability, found)
    assert found.tolist() == intervals_of(share_of_ranks(draws), probability).tolist()


def test_weights_count():
    draws = np.array([[1, 2], [2, 1], [2, 1]], dtype=np.int32)
    found = np.empty((2, 2), dtype=np.int32)
    intervals_of_draws(draws, np.array([0.9, 0.05, 0.05]), 0.8, found)
    assert found.tolist() == [[1, 1], [2, 2]]
    intervals_of_draws(draws, np.full(3, 1 / 3), 0.8, found)
    assert found.tolist() == [[1, 2], [1, 2]]
