"""Insertions under Ulam's distance against the definition."""

import numpy as np
import pytest

import naive
from helpers import interpreted
from pseudomallows.kernels.distances import insertions as kernels
from pseudomallows.kernels.distances.ulam_loops import MOST_BITS, longest_rise, longest_rise_of_many
from pseudomallows.kernels.streams import start_stream
from tally_checks import random_rankings

pytestmark = pytest.mark.kernel
RANKINGS, COUNTS = random_rankings(6, 7, seed=2), np.array([1, 3, 2, 1, 1, 4])


def distance(ordering, rankings=RANKINGS, counts=COUNTS):
    consensus = (np.argsort(ordering) + 1).tolist()
    pairs = zip(rankings.tolist(), counts.tolist(), strict=True)
    return sum(count * naive.ulam(ranks, consensus) for ranks, count in pairs)


def with_item_at(ordering, here, there):
    others = np.delete(ordering, here)
    return np.insert(others, there, ordering[here])


@pytest.mark.parametrize("n_items", [1, 2, 7, MOST_BITS, MOST_BITS + 5])
def test_the_longest_rise_on_bits_is_that_of_piles(n_items):
    room, identity = np.empty(n_items, np.int64), np.arange(n_items)
    for ranks in [*random_rankings(5, n_items, seed=1), identity + 1, n_items - identity]:
        found = longest_rise(ranks, identity, room)
        assert found == longest_rise_of_many(ranks, identity, room)
        assert found == longest_rise(ranks - 1, identity, room)  # ranks from 0 do as well
    assert longest_rise(identity + 1, identity, room) == n_items
    assert longest_rise(n_items - identity, identity, room) == 1


@pytest.mark.parametrize("block", [2, 4, 128])
def test_the_gains_of_all_places_are_those_of_the_distance(block, monkeypatch):
    make, add = interpreted(kernels.make_blocks), kernels.count_gains
    monkeypatch.setitem(make.__globals__, "BLOCK", block)
    users, gains = make(RANKINGS, COUNTS), np.empty(7, np.int64)
    assert users.counts.sum() == COUNTS.sum()
    ordering = np.array([3, 1, 6, 0, 2, 5, 4])
    for here in range(7):
        add(users, ordering, here, gains)
        away = [distance(with_item_at(ordering, here, there)) for there in range(7)]
        assert len(set((away + gains).tolist())) == 1
        assert gains.min() >= 0
        assert gains.max() <= COUNTS.sum()


def test_the_last_bits_count_as_the_others_do():
    """62 items, of which only the first and the last ranks are out of order."""
    n_items = MOST_BITS
    ranks = np.arange(1, n_items + 1, dtype=np.int32)
    users, gains = kernels.make_blocks(ranks[None], np.array([5])), np.empty(n_items, np.int64)
    for here in (0, 30, n_items - 1):
        kernels.count_gains(users, np.arange(n_items), here, gains)
        assert gains.tolist() == [5 * (place == here) for place in range(n_items)]


def test_an_improved_consensus_has_no_better_insertion():
    consensus = np.arange(1, 8, dtype=np.int32)
    first = distance(np.argsort(consensus))
    kernels.improve_by_places(RANKINGS, COUNTS, consensus)
    ordering = np.argsort(consensus)
    least = distance(ordering)
    assert least < first
    ways = [(here, there) for here in range(7) for there in range(7)]
    assert min(distance(with_item_at(ordering, *way)) for way in ways) == least


def test_a_place_is_drawn_by_its_weight():
    gains, weights, stream = np.array([3, 1, 3, -99]), np.empty(4), np.array([1], np.uint64)
    places = [kernels.draw_place(stream, 1.0, gains, weights) for _ in range(2000)]
    counts = np.bincount(places, minlength=4)
    law = np.exp(gains - 3.0) / np.exp(gains - 3.0).sum()
    assert counts[3] == 0  # it is beyond any uniform number
    assert (np.abs(counts - 2000 * law) < 5 * np.sqrt(2000 * law + 1)).all()


def test_no_users_are_no_trouble():
    consensus, stream = np.arange(1, 5, dtype=np.int32), np.array([1], np.uint64)
    nobody = (np.empty((0, 4), np.int32), np.empty(0, np.int64))
    kernels.move_by_insertions(stream, *nobody, 1.0, 50, consensus)
    assert sorted(consensus.tolist()) == [1, 2, 3, 4]


def test_compiled_and_interpreted_moves_are_equal():
    both = []
    for kernel in (kernels.move_by_insertions, interpreted(kernels.move_by_insertions)):
        consensus, stream = np.arange(1, 8, dtype=np.int32), np.empty(1, np.uint64)
        start_stream(1, 2, 3, stream)
        kernel(stream, RANKINGS, COUNTS, 0.1, 30, consensus)
        both.append((consensus.tolist(), int(stream[0])))
    assert both[0] == both[1]
    assert both[0][0] != list(range(1, 8))
