"""Counts and sums of users in blocks, against loops over the definition."""

import numpy as np
import pytest

from helpers import interpreted
from pseudomallows.kernels import block_counts as kernels
from pseudomallows.kernels.click_rows import ClickRows

pytestmark = pytest.mark.kernel

N_ROWS, N_ITEMS, N_BLOCKS, N_CLUSTERS = 7, 4, 3, 2
RNG = np.random.default_rng(1)
BLOCKS = RNG.integers(0, N_BLOCKS, (N_ROWS, N_ITEMS)).astype(np.int32)
LABELS = RNG.integers(0, N_CLUSTERS, N_ROWS).astype(np.int32)
WEIGHTS = RNG.integers(0, 4, N_ROWS)
LOG_WEIGHTS = RNG.normal(size=(N_BLOCKS, N_ITEMS, N_CLUSTERS))
CLICKED = [[0, 3], [1], [0, 1, 2], [2], [1, 3], [0], [1, 2, 3]]
SIZES = np.array([len(row) for row in CLICKED])
CLICKS = ClickRows(np.append(0, np.cumsum(SIZES)), np.concatenate(CLICKED).astype(np.int32))


def both_ways(name):
    """The kernel, compiled and interpreted."""
    kernel = getattr(kernels, name)
    return [kernel, interpreted(kernel)]


def test_users_are_counted_by_label_block_and_item():
    expected = np.zeros((N_CLUSTERS, N_BLOCKS, N_ITEMS), dtype=np.int64)
    for row, item in np.ndindex(N_ROWS, N_ITEMS):
        expected[LABELS[row], BLOCKS[row, item], item] += WEIGHTS[row]
    for way in both_ways("count_blocks"):
        counts = np.zeros_like(expected)
        way(BLOCKS, LABELS, WEIGHTS, counts)
        np.testing.assert_array_equal(counts, expected)


def test_clicks_are_counted_by_label_size_and_item():
    expected = np.zeros((N_CLUSTERS, 3, N_ITEMS), dtype=np.int64)
    for row, items in enumerate(CLICKED):
        expected[LABELS[row], len(items) - 1, items] += WEIGHTS[row]
    for way in both_ways("count_clicks"):
        counts = np.zeros_like(expected)
        way(CLICKS, SIZES - 1, LABELS, WEIGHTS, counts)
        np.testing.assert_array_equal(counts, expected)


def test_a_sum_over_counts_is_that_over_rows():
    consensus, table = np.array([2, 4, 1, 3], dtype=np.int32), LOG_WEIGHTS[:, :, 0]
    counts = np.zeros((1, N_BLOCKS, N_ITEMS), dtype=np.int64)
    kernels.count_blocks(BLOCKS, np.zeros_like(LABELS), WEIGHTS, counts)
    expected = (WEIGHTS @ table[BLOCKS, consensus - 1]).sum()
    for way in both_ways("sum_weights"):
        assert way(counts[0], consensus, table) == pytest.approx(expected)


def test_logs_are_sums_over_the_items_of_a_row():
    expected = LOG_WEIGHTS[BLOCKS, np.arange(N_ITEMS)].sum(axis=1) + 1
    for way in both_ways("add_block_logs"):
        logs = np.ones((N_ROWS, N_CLUSTERS))
        way(BLOCKS, LOG_WEIGHTS, logs)
        np.testing.assert_allclose(logs, expected)


def test_logs_of_clicks_are_sums_over_the_clicked_items():
    expected = [LOG_WEIGHTS[len(row) - 1, row].sum(axis=0) + 1 for row in CLICKED]
    for way in both_ways("add_click_logs"):
        logs = np.ones((N_ROWS, N_CLUSTERS))
        way(CLICKS, SIZES - 1, LOG_WEIGHTS, logs)
        np.testing.assert_allclose(logs, expected)


def test_costs_are_minus_the_sums_of_log_weights():
    counts = RNG.integers(0, 3, (N_BLOCKS, N_ITEMS))
    table = LOG_WEIGHTS[:, :, 1]
    for way in both_ways("fill_costs"):
        costs = np.zeros((N_ITEMS, N_ITEMS))
        way(counts, table, costs)
        np.testing.assert_allclose(costs, -counts.T @ table)
