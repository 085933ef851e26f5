"""Moves of a consensus, given clicks, by Cayley's and Hamming's distance: against all rankings."""

import functools
import itertools
import math

import numpy as np
import pytest

import naive
from helpers import IS_COMPILED, choose, interpreted, p_value
from pseudomallows.distances.halves import HalfLaw, HalfTally
from pseudomallows.kernels.chain import LEAP_AND_SHIFT, SWAP
from pseudomallows.kernels.click_rows import ClickRows
from pseudomallows.kernels.latent import half_moves as kernels
from pseudomallows.kernels.streams import start_stream

pytestmark = pytest.mark.kernel
NAMES = ("cayley", "hamming")
ROWS, WEIGHTS = ((0, 1), (2,), (1, 2, 3), (0,), (3, 1), (0, 2)), (1, 2, 1, 3, 1, 1)
RIGHT, WRONG = 2.0, 3.0  # alphas


def tally_of(rows, weights, n_items, name):
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    clicks = ClickRows(starts, np.array(list(itertools.chain(*rows)), np.int32))
    law = HalfLaw(name, n_items, np.unique(np.diff(starts)))
    return HalfTally(law, clicks, np.array(weights), np.arange(len(rows)), len(rows))


def random_rows(n_rows, n_items, seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, n_items, n_rows)
    return [tuple(rng.choice(n_items, size, replace=False).tolist()) for size in sizes]


@functools.cache
def likelihood(row, consensus, alpha, name):
    return naive.click_likelihood(row, consensus, alpha, name)


def log_likelihood(rows, weights, consensus, alpha, name):
    pairs = zip(rows, weights, strict=True)
    return sum(w * math.log(likelihood(tuple(row), consensus, alpha, name)) for row, w in pairs)


@functools.cache
def posterior_law(name):
    rankings = naive.all_rankings(4)
    logs = {r: log_likelihood(ROWS, WEIGHTS, r, RIGHT, name) for r in rankings}
    return naive.normalise({r: math.exp(log) for r, log in logs.items()})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n_items", [4, 5])
def test_tables_and_cells_say_the_likelihood_of_every_set_of_clicks(name, n_items):
    rows = [r for c in range(n_items + 1) for r in itertools.combinations(range(n_items), c)]
    tally = tally_of(rows, [1] * len(rows), n_items, name)
    for consensus in naive.all_rankings(n_items)[::11]:
        center = np.array(consensus, np.int32)
        cells = tally.law.cells(tally._clicks, center)
        found = tally.law.table(3.0 / n_items)[cells]
        exact = [likelihood(row, consensus, 3.0, name) for row in rows]
        assert found == pytest.approx(np.log(exact), abs=1e-12)
        wrong = [likelihood(row, consensus, 3.03, name) for row in rows]
        assert found != pytest.approx(np.log(wrong), abs=1e-4)
        by_item = np.empty(len(rows), np.int64)
        kernels.fill_cells(tally.users, center, by_item)
        assert (by_item == cells[np.argsort([len(row) for row in rows], kind="stable")]).all()


@pytest.mark.parametrize("name", NAMES)
def test_changes_are_differences_of_the_likelihood(name):
    rows = random_rows(30, 6, 3)
    weights = np.random.default_rng(4).integers(1, 4, 30).tolist()
    tally = tally_of(rows, weights, 6, name)
    table = tally.law.table(0.8)
    start = np.array([3, 1, 6, 4, 2, 5], np.int32)
    before = tally.counts(start) @ table
    for low, high in itertools.combinations(range(6), 2):
        now = kernels.stand_at(tally.users, start.copy())
        numbers = kernels.list_changes(tally.users, low, high, now)
        change = kernels.change_by_cells(tally.users, table, *numbers, now)
        kernels.exchange_by_cells(low, high, *numbers, now)
        assert change == pytest.approx(tally.counts(now.consensus) @ table - before, abs=1e-9)
        again = kernels.stand_at(tally.users, now.consensus.copy())
        assert (again.cells == now.cells).all()
        assert (again.ordering == now.ordering).all()


def ends_of_moves(name, alpha, move, users=lambda users: users):
    """Start from the exact posterior, move: p-value of where it ends."""
    law, tally = posterior_law(name), tally_of(ROWS, WEIGHTS, 4, name)
    ends = choose(law, 20_000 if IS_COMPILED else 5000, np.random.default_rng(1)).astype(np.int32)
    table, stream = tally.law.table(alpha / 4), np.empty(1, np.uint64)
    known = users(tally.users)
    for number, consensus in enumerate(ends):
        start_stream(7, number, 0, stream)
        kernels.move_by_cells(stream, known, table, move, 2, 4, consensus)
    return p_value(ends, law)


@pytest.mark.parametrize("move", [SWAP, LEAP_AND_SHIFT])
@pytest.mark.parametrize("name", NAMES)
def test_moves_leave_the_exact_posterior_as_it_is(name, move):
    assert ends_of_moves(name, RIGHT, move) > 1e-4
    assert not IS_COMPILED or ends_of_moves(name, WRONG, move) < 1e-6


@pytest.mark.skipif(not IS_COMPILED, reason="too few draws")
@pytest.mark.parametrize("name", NAMES)
def test_a_place_too_many_or_users_counted_once_are_caught(name):
    def one_place_on(users):
        return users._replace(ends=np.append(users.ends[1:], users.ends[-1]))

    def once(users):
        return users._replace(weights=np.ones_like(users.weights))

    for wrong in (one_place_on, once):
        assert ends_of_moves(name, RIGHT, SWAP, wrong) < 1e-6


@pytest.mark.parametrize("move", [SWAP, LEAP_AND_SHIFT])
def test_a_long_run_reaches_every_ranking(move):
    tally, seen = tally_of(ROWS, WEIGHTS, 4, "cayley"), set()
    stream, table = np.array([5], np.uint64), tally.law.table(0.2)
    consensus = np.arange(1, 5, dtype=np.int32)
    for _ in range(2000 if IS_COMPILED else 600):
        kernels.move_by_cells(stream, tally.users, table, move, 1, 1, consensus)
        seen.add(tuple(consensus.tolist()))
    assert seen == set(naive.all_rankings(4))


@pytest.mark.parametrize("move", [SWAP, LEAP_AND_SHIFT])
def test_the_interpreted_kernel_does_the_same(move):
    tally = tally_of(random_rows(20, 6, 5), [1, 2] * 10, 6, "hamming")
    table, ends = tally.law.table(0.5), []
    for kernel in (kernels.move_by_cells, interpreted(kernels.move_by_cells)):
        stream, consensus = np.array([3], np.uint64), np.arange(1, 7, dtype=np.int32)
        n_accepted = kernel(stream, tally.users, table, move, 2, 50, consensus)
        ends.append((n_accepted, consensus.tolist(), int(stream[0])))
    assert ends[0] == ends[1]


@pytest.mark.parametrize("name", NAMES)
def test_when_all_is_improved_no_exchange_helps(name):
    tally = tally_of(random_rows(40, 7, 6), [1] * 40, 7, name)
    table, consensus = tally.law.table(0.9), np.arange(1, 8, dtype=np.int32)
    before = tally.counts(consensus) @ table
    assert kernels.improve_by_cells(tally.users, table, consensus) > 0
    best = tally.counts(consensus) @ table
    assert best > before
    for low, high in itertools.combinations(range(7), 2):
        other = consensus.copy()
        first, second = np.flatnonzero(consensus == low + 1), np.flatnonzero(consensus == high + 1)
        other[first], other[second] = high + 1, low + 1
        assert tally.counts(other) @ table <= best + 1e-9
