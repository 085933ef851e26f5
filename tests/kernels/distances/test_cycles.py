"""Exchanges by cycles, under Cayley's distance, against the definition."""

import numpy as np
import pytest

import naive
from helpers import interpreted
from pseudomallows.kernels.distances import cycles as kernels
from pseudomallows.kernels.streams import start_stream
from tally_checks import random_rankings

pytestmark = pytest.mark.kernel
RANKINGS, COUNTS = random_rankings(6, 7, seed=2), np.array([1, 3, 2, 1, 1, 4])


def distance(consensus):
    pairs = zip(RANKINGS.tolist(), COUNTS.tolist(), strict=True)
    return sum(count * naive.cayley(ranks, consensus.tolist()) for ranks, count in pairs)


def same_cycles(labels, other):
    """Are the items of each row together in the same cycles?"""
    return np.array_equal(labels[:, None] == labels, other[:, None] == other)


def test_a_chain_of_exchanges_keeps_the_cycles_and_tells_each_change_of_the_distance():
    rng, consensus = np.random.default_rng(1), np.arange(1, 8, dtype=np.int32)
    cycles, now = kernels.find_cycles(RANKINGS, COUNTS, consensus), distance(consensus)
    for _ in range(60):
        first, second = rng.choice(7, 2, replace=False)
        now += kernels.change_by_exchange(cycles, first, second)
        kernels.exchange_items(cycles, first, second, consensus)
        assert now == distance(consensus)
        anew = kernels.find_cycles(RANKINGS, COUNTS, consensus)
        assert (anew.ordering == cycles.ordering).all()
        assert same_cycles(anew.labels, cycles.labels)


def test_a_label_is_an_item_of_its_cycle():
    cycles = kernels.find_cycles(RANKINGS, COUNTS, RANKINGS[0])
    assert (cycles.labels[:, 0] == np.arange(7)).all()  # of the consensus itself
    assert (np.take_along_axis(cycles.labels, cycles.labels, axis=0) == cycles.labels).all()


def test_a_change_looks_at_counts():
    consensus = np.arange(1, 8, dtype=np.int32)
    one = kernels.find_cycles(RANKINGS, COUNTS, consensus)
    double = kernels.find_cycles(RANKINGS, 2 * COUNTS, consensus)
    changes = [kernels.change_by_exchange(cycles, 2, 5) for cycles in (one, double)]
    assert changes[1] == 2 * changes[0] != 0


def test_an_improved_consensus_has_no_better_neighbour():
    consensus = np.arange(1, 8, dtype=np.int32)
    first = distance(consensus)
    kernels.improve_by_cycles(RANKINGS, COUNTS, consensus)
    least = distance(consensus)
    assert least < first
    for i in range(7):
        for j in range(i):
            other = consensus.copy()
            other[[i, j]] = other[[j, i]]
            assert distance(other) >= least


def test_two_items_are_improved_and_no_users_are_no_trouble():
    consensus = np.array([2, 1], dtype=np.int32)
    kernels.improve_by_cycles(np.array([[1, 2]], np.int32), np.ones(1, np.int64), consensus)
    assert consensus.tolist() == [1, 2]
    nobody, stream = np.empty((0, 2), np.int32), np.array([1], np.uint64)
    assert kernels.move_by_cycles(stream, nobody, np.empty(0, np.int64), 1.0, 50, consensus) > 0


def test_compiled_and_interpreted_moves_are_equal():
    both = []
    for kernel in (kernels.move_by_cycles, interpreted(kernels.move_by_cycles)):
        consensus, stream = np.arange(1, 8, dtype=np.int32), np.empty(1, np.uint64)
        start_stream(1, 2, 3, stream)
        n_accepted = kernel(stream, RANKINGS, COUNTS, 0.1, 80, consensus)
        both.append((n_accepted, consensus.tolist(), int(stream[0])))
    assert both[0] == both[1]
    assert 0 < both[0][0] < 80
