"""Tallies of wins, for Kendall's distance, against their definitions."""

import itertools

import numpy as np
import pytest

import naive
from pseudomallows.distances.kendall import KENDALL, MOST_SUBSET_ITEMS, WinsTally
from pseudomallows.kernels.kendall import wins as kernels
from tally_checks import RANKINGS, WEIGHTS, TallyChecks, random_rankings

pytestmark = pytest.mark.kernel


class TestWinsTally(TallyChecks):
    distance = KENDALL


def test_wins_count_who_puts_an_item_before_another():
    tally = KENDALL.tally(4)
    tally.add(RANKINGS, WEIGHTS)
    for i, j in itertools.product(range(4), repeat=2):
        assert tally.counts[i, j] == WEIGHTS[RANKINGS[:, i] < RANKINGS[:, j]].sum()


def test_pairs_with_a_rank_that_is_not_known_are_skipped():
    tally = KENDALL.tally(3)
    tally.add(np.array([[0, 2, 1]], dtype=np.int32), np.array([5]))
    assert tally.counts.sum() == tally.counts[2, 1] == 5


def test_insertions_end_where_none_helps_and_near_the_best():
    """From a random order; the best is found through all sets."""
    rankings = random_rankings(7, 8, seed=2)
    tally = KENDALL.tally(8)
    tally.add(rankings, np.ones(7, dtype=np.int64))
    least = tally.distance(tally.best())
    found = []
    for start in random_rankings(20, 8, seed=3):
        consensus, ordering = start.copy(), np.argsort(start)
        kernels.improve_by_insertions(tally.margins, consensus, ordering)
        assert (np.argsort(consensus) == ordering).all()
        distance = tally.distance(consensus)
        assert least <= distance <= tally.distance(start)
        for here, there in itertools.permutations(range(8), 2):
            moved = ordering.tolist()
            moved.insert(there, moved.pop(here))
            assert tally.distance(np.argsort(moved).astype(np.int32) + 1) >= distance
        found.append(distance)
    assert min(found) == least


def test_more_items_have_a_good_consensus_that_is_not_proved():
    n_items = MOST_SUBSET_ITEMS + 5
    truth = np.random.default_rng(1).permutation(n_items) + 1
    draws = KENDALL.draw(n_items, 20.0, 200, seed=3)[:, truth - 1]
    tally = KENDALL.tally(n_items)
    tally.add(draws, np.ones(200, dtype=np.int64))
    best = tally.best()
    assert not tally.is_proved
    assert tally.distance(best) <= tally.distance(truth.astype(np.int32))
    assert naive.kendall(best.tolist(), truth.tolist()) <= 5


def test_the_distance_of_many_users_does_not_overflow():
    tally = WinsTally(np.array([[0, 2**40], [2**41, 0]]))
    assert tally.distance(np.array([1, 2], dtype=np.int32)) == 2**41
    assert tally.best().tolist() == [2, 1]
