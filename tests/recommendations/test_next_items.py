"""The best unseen items of a table of probabilities."""

import functools
import itertools

import numpy as np
import pytest

from pseudomallows.kernels.click_rows import ClickRows
from pseudomallows.recommendations.recommender import NextItems, Users


def test_the_best_items_are_chosen_as_sorting_would():
    rng = np.random.default_rng(3)
    for k in (1, 3, 9):
        table = rng.integers(0, 4, (30, 7)) / 4 + rng.normal(0, 1e-15, (30, 7))
        rows = [sorted(rng.permutation(7)[: rng.integers(0, 8)].tolist()) for _ in range(30)]
        starts = np.cumsum([0, *map(len, rows)])
        clicks = ClickRows(starts, np.array(list(itertools.chain(*rows)), dtype=np.int32))
        consensus = rng.permutation(7) + 1
        items, stated = np.full((30, k), -1), np.full((30, k), np.nan)
        probabilities = functools.partial(lambda table, part: (table[part], None), table)
        next_items = NextItems(Users(clicks, None), consensus, probabilities, lambda: None)
        next_items.fill_best(slice(0, 30), items, stated)
        for row, clicked in enumerate(rows):
            unseen = [i for i in range(7) if i not in clicked]
            best = sorted(unseen, key=lambda i: (-round(table[row, i], 12), consensus[i]))[:k]
            assert items[row].tolist() == best + [-1] * (k - len(best))
            assert stated[row, : len(best)] == pytest.approx(table[row, best])
