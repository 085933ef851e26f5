"""Users in blocks by an additive law: counts and sums over users, by their definitions."""

import itertools

import numpy as np
import pytest

from helpers import interpreted
from pseudomallows.kernels import blocks as kernels
from pseudomallows.kernels.click_rows import ClickRows

pytestmark = pytest.mark.kernel
N_ITEMS, N_BLOCKS, N_CLUSTERS = 4, 3, 2
BLOCKS = np.array([[0, 1, 1, 2], [2, 2, 0, 0], [1, 1, 1, 1], [0, 2, 1, 0], [2, 0, 0, 1]], np.int32)
LABELS, WEIGHTS = np.array([0, 1, 1, 0, 1], dtype=np.int32), np.array([1, 4, 2, 1, 3])
CLICKS = [[0, 2], [1], [2, 3], [2], [0, 1, 3]]
ROWS = ClickRows(
    np.cumsum([0, *map(len, CLICKS)]), np.array(list(itertools.chain(*CLICKS)), dtype=np.int32)
)
SIZES = np.array([len(clicks) - 1 for clicks in CLICKS])
LOG_WEIGHTS = np.random.default_rng(1).normal(size=(N_BLOCKS, N_ITEMS, N_CLUSTERS))


def both(kernel):
    return kernel, interpreted(kernel)


def block_counts(weights=WEIGHTS):
    counts = np.zeros((N_CLUSTERS, N_BLOCKS, N_ITEMS), dtype=np.int64)
    for row, item in np.ndindex(BLOCKS.shape):
        counts[LABELS[row], BLOCKS[row, item], item] += weights[row]
    return counts


def test_items_in_blocks_are_counted_by_label_and_block():
    for kernel in both(kernels.count_blocks):
        counts = np.zeros((N_CLUSTERS, N_BLOCKS, N_ITEMS), dtype=np.int64)
        kernel(BLOCKS, LABELS, WEIGHTS, counts)
        assert (counts == block_counts()).all()
        assert (counts != block_counts(np.ones(5, dtype=np.int64))).any()  # weights are users


def test_clicks_are_counted_by_label_and_size():
    exact = np.zeros((N_CLUSTERS, 3, N_ITEMS), dtype=np.int64)
    for row, clicks in enumerate(CLICKS):
        exact[LABELS[row], len(clicks) - 1, clicks] += WEIGHTS[row]
    for kernel in both(kernels.count_clicks):
        counts = np.zeros_like(exact)
        kernel(ROWS, SIZES, LABELS, WEIGHTS, counts)
        assert (counts == exact).all()


def test_the_sum_of_weights_is_that_over_users_and_items():
    consensus, table = np.array([3, 1, 4, 2], dtype=np.int32), LOG_WEIGHTS[..., 0]
    exact = sum(
        WEIGHTS[row] * table[BLOCKS[row, item], consensus[item] - 1]
        for row, item in np.ndindex(BLOCKS.shape)
        if LABELS[row] == 1
    )
    found = [kernel(block_counts()[1], consensus, table) for kernel in both(kernels.sum_weights)]
    assert found[0] == found[1] == pytest.approx(exact, rel=1e-12)
    other = kernels.sum_weights(block_counts()[1], consensus[::-1].copy(), table)
    assert other != pytest.approx(exact, rel=1e-3)


def test_what_nobody_says_counts_for_nothing_even_if_it_never_happens():
    counts = np.zeros((N_BLOCKS, N_ITEMS), dtype=np.int64)
    never = np.full((N_BLOCKS, N_ITEMS), -np.inf)
    for kernel in both(kernels.sum_weights):
        assert kernel(counts, np.arange(1, 5, dtype=np.int32), never) == 0.0


def test_the_logs_of_a_row_are_those_of_its_items():
    exact = 0.5 + np.array([LOG_WEIGHTS[row, np.arange(N_ITEMS)].sum(axis=0) for row in BLOCKS])
    logs = np.full((2, 5, N_CLUSTERS), 0.5)
    for kernel, mine in zip(both(kernels.add_block_logs), logs, strict=True):
        kernel(BLOCKS, LOG_WEIGHTS, mine)
    assert (logs[0] == logs[1]).all()
    assert logs[0] == pytest.approx(exact, rel=1e-12)


def test_the_logs_of_a_row_of_clicks_are_those_of_the_clicked_items():
    exact = [0.5 + LOG_WEIGHTS[len(clicks) - 1, clicks].sum(axis=0) for clicks in CLICKS]
    logs = np.full((2, 5, N_CLUSTERS), 0.5)
    for kernel, mine in zip(both(kernels.add_click_logs), logs, strict=True):
        kernel(ROWS, SIZES, LOG_WEIGHTS, mine)
    assert (logs[0] == logs[1]).all()
    assert logs[0] == pytest.approx(np.array(exact), rel=1e-12)
