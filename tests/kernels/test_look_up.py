"""Chances that are looked up, and the best of them."""

import itertools

import numpy as np
import pytest

from pseudomallows.kernels.click_rows import ClickRows
from pseudomallows.kernels.look_up import (
    PlaceChances,
    Sources,
    add_ceilings,
    choose_best,
    look_up,
    look_up_best,
    look_up_best_rows,
)

pytestmark = pytest.mark.kernel


def test_look_ups_follow_their_definition():
    rng = np.random.default_rng(1)
    orderings = np.array([rng.permutation(6) for _ in range(4)])
    weights, firsts, laws = np.array([0.4, 0.6, 0.3, 0.7]), np.array([0, 2, 4]), np.array([1, 0])
    lines = np.full((2, 7), -1, dtype=np.int32)
    lines[:, [4, 6]] = [[0, 1], [2, 3]]
    ends = np.array([4, 5, 2, 6])
    chances = np.where(np.arange(6) < ends[:, None], rng.random((4, 6)), 0.0)
    clicks = ClickRows(np.array([0, 2, 2, 8]), np.array([1, 4, 0, 1, 2, 3, 4, 5]))
    found, shares = np.zeros((3, 6)), np.array([[0.25, 0.75], [1.0, 0.0], [0.5, 0.5]])
    none = (np.empty((0, 0), dtype=np.int32), np.empty((0, 0)))
    ranks = np.argsort(orderings, axis=1).T + 1
    sources = Sources(orderings, weights, firsts, laws, ranks)
    tables = PlaceChances(lines, ends, chances, *none)
    look_up(clicks, sources, tables, shares, found)
    for row, clicked in enumerate([{1, 4}, set(), set(range(6))]):
        for item in range(6):
            expected = 0.0
            for draw, ordering in enumerate(orderings):
                unseen = [i for i in ordering if i not in clicked]
                if item in unseen:
                    line = lines[laws[draw // 2], len(unseen)]
                    share = shares[row, draw // 2] * weights[draw]
                    expected += share * chances[line, unseen.index(item)]
            assert found[row, item] == pytest.approx(expected)


def test_the_best_by_ceilings_are_the_best_of_all_to_the_bit():
    """Also with tables that rise and fall, and many ties."""
    rng, n_items = np.random.default_rng(4), 12
    orderings = np.array([rng.permutation(n_items) for _ in range(6)])
    ranks = np.argsort(orderings, axis=1).T + 1
    weights, firsts, laws = np.full(6, 1 / 3), np.array([0, 3, 6]), np.array([0, 1])
    consensus, tried = rng.permutation(n_items) + 1, 0
    for case in range(40):
        mine = np.sort(rng.permutation(n_items)[: rng.integers(0, n_items)])
        size, k = n_items - len(mine), int(rng.integers(1, 5))
        chances = np.zeros((2, n_items))
        chances[:, :size] = np.round(rng.random((2, size)) ** 4, 1 + case % 3)
        if case % 2:
            chances = -np.sort(-chances, axis=1)
        lines = np.full((2, n_items + 1), -1, dtype=np.int32)
        lines[:, size] = [0, 1]
        ceilings = np.zeros((2, n_items))
        for source, own in enumerate([slice(3), slice(3, 6)]):
            given = (orderings[own], weights[own], chances[source], size)
            add_ceilings(*given, ceilings[source])
        sources = Sources(orderings, weights, firsts, laws, ranks)
        tables = PlaceChances(lines, np.full(2, size), chances, lines, ceilings)
        shares, table = np.array([[0.4, 0.6]]), np.zeros((1, n_items))
        clicks = ClickRows(np.array([0, len(mine)]), mine)
        look_up(clicks, sources, tables, shares, table)
        assert (table[0] <= shares[0] @ ceilings + 1e-15).all()
        expected, values = np.full((1, k), -1), np.full((1, k), np.nan)
        choose_best(clicks, table, consensus, expected, values)
        items, found = np.full(k, -1), np.full(k, np.nan)
        given = (mine, sources, tables, shares[0], consensus)
        tried += look_up_best(*given, items, found)
        assert items.tolist() == expected[0].tolist()
        assert np.array_equal(found, values[0], equal_nan=True)
        both, rows = np.concatenate([mine, np.arange(n_items)]), np.full((2, k), -1)
        two, more = ClickRows(np.array([0, len(mine), len(both)]), both), np.full((2, k), np.nan)
        law = (sources, tables, np.repeat(shares, 2, axis=0), consensus)
        look_up_best_rows(two, *law, rows, more)  # the second has clicked everything
        assert rows.tolist() == [items.tolist(), [-1] * k]
        assert np.array_equal(more[0], found, equal_nan=True)
        assert np.isnan(more[1]).all()
    assert tried < 40 * n_items / 2


def test_the_best_items_are_chosen_as_sorting_would():
    rng = np.random.default_rng(3)
    for k in (1, 3, 9):
        chances = rng.integers(0, 4, (30, 7)) / 4 + rng.normal(0, 1e-15, (30, 7))
        rows = [sorted(rng.permutation(7)[: rng.integers(0, 8)].tolist()) for _ in range(30)]
        starts = np.cumsum([0, *map(len, rows)])
        codes = np.array(list(itertools.chain(*rows)), dtype=np.int32)
        consensus = rng.permutation(7) + 1
        items, found = np.full((30, k), -1), np.full((30, k), np.nan)
        choose_best(ClickRows(starts, codes), chances, consensus, items, found)
        for row, clicked in enumerate(rows):
            unseen = [i for i in range(7) if i not in clicked]
            best = sorted(unseen, key=lambda i: (-round(chances[row, i], 12), consensus[i]))[:k]
            assert items[row].tolist() == best + [-1] * (k - len(best))
            assert found[row, : len(best)] == pytest.approx(chances[row, best])
