"""The best unseen items."""

import itertools

import numpy as np
import pytest

from pseudomallows.kernels.click_rows import ClickRows
from pseudomallows.kernels.look_up import choose_best

pytestmark = pytest.mark.kernel


def test_the_best_items_are_chosen_as_sorting_would():
    rng = np.random.default_rng(3)
    for k in (1, 3, 9):
        probabilities = rng.integers(0, 4, (30, 7)) / 4 + rng.normal(0, 1e-15, (30, 7))
        rows = [sorted(rng.permutation(7)[: rng.integers(0, 8)].tolist()) for _ in range(30)]
        starts = np.cumsum([0, *map(len, rows)])
        codes = np.array(list(itertools.chain(*rows)), dtype=np.int32)
        consensus = rng.permutation(7) + 1
        items, found = np.full((30, k), -1), np.full((30, k), np.nan)
        choose_best(ClickRows(starts, codes), probabilities, consensus, items, found)
        for row, clicked in enumerate(rows):
            unseen = [i for i in range(7) if i not in clicked]
            best = sorted(unseen, key=lambda i: (-round(probabilities[row, i], 12), consensus[i]))[
                :k
            ]
            assert items[row].tolist() == best + [-1] * (k - len(best))
            assert found[row, : len(best)] == pytest.approx(probabilities[row, best])
