"""Closed forms of users known by blocks: Kendall's and Hamming's, against enumeration."""

import math

import numpy as np
import pytest

import naive
from helpers import interpreted, p_value
from pseudomallows.distances.kendall import log_factorials
from pseudomallows.kernels import block_sums as kernels
from pseudomallows.kernels.streams import Streams
from pseudomallows.laws.full import close_gaps
from pseudomallows.rankings import orderings_of

pytestmark = pytest.mark.kernel
CONSENSUS = np.array([2, 5, 1, 3, 4], dtype=np.int32)
BUCKETS = np.array(
    [[1, 2, 3, 4, 5], [1, 0, 0, 2, 0], [1, 1, 3, 3, 5], [0, 0, 0, 0, 5], [3, 1, 1, 3, 3]], np.int32
)
GAPS = np.array([[2, 0, 0, 4, 0], [0, 2, 2, 0, 5], [3, 0, 0, 0, 0]], np.int32)


@pytest.mark.parametrize("alpha", [0.0, 1.3, 30.0])
def test_buckets_under_kendall_equal_enumeration(alpha):
    values, sums = np.empty(len(BUCKETS)), log_factorials(5, alpha)
    ordering = orderings_of(CONSENSUS)
    kernels.bucket_log_likelihoods(close_gaps(BUCKETS), ordering, alpha / 5, sums, values)
    exact = [naive.likelihood(row, CONSENSUS.tolist(), alpha, "kendall") for row in BUCKETS]
    assert values == pytest.approx(np.log(exact), abs=1e-10)


@pytest.mark.parametrize("alpha", [0.0, 1.3, 30.0])
def test_blocks_under_hamming_equal_enumeration(alpha):
    rows = np.concatenate([BUCKETS, GAPS])
    values, constant = np.empty(len(rows)), naive.log_partition(5, alpha, "hamming")
    kernels.hamming_log_likelihoods(rows, CONSENSUS, alpha / 5, constant, values)
    exact = [naive.likelihood(row, CONSENSUS.tolist(), alpha, "hamming") for row in rows]
    assert values == pytest.approx(np.log(exact), abs=1e-10)


def law_of(row, alpha):
    """{full ranking: probability} of what a row may be, under Hamming."""
    weights = {
        full: naive.weight(full, CONSENSUS.tolist(), alpha, "hamming")
        for full in naive.completions(row.tolist())
    }
    return naive.normalise(weights)


def draws_of(row, alpha, n_draws=6000):
    rows, latent = np.repeat(row[None], n_draws, axis=0), np.zeros((n_draws, 5), np.int32)
    streams = Streams(7, 1, np.arange(n_draws), np.ones(n_draws, np.int64))
    kernels.draw_hamming_latent(streams, rows, CONSENSUS, alpha / 5, latent)
    return latent


@pytest.mark.parametrize("row", [BUCKETS[1], BUCKETS[4], GAPS[0], GAPS[1]], ids=str)
def test_draws_under_hamming_follow_their_law(row):
    assert p_value(draws_of(row, 6.0), law_of(row, 6.0)) > 1e-4


def test_draws_at_another_alpha_are_caught():
    assert p_value(draws_of(GAPS[2], 6.0), law_of(GAPS[2], 9.0)) < 1e-6


def test_compiled_and_interpreted_draws_are_equal():
    rows, latent = np.concatenate([BUCKETS, GAPS]), np.zeros((2, 8, 5), np.int32)
    streams = Streams(3, 2, np.arange(8), np.ones(8, np.int64))
    for draw, kernel in zip(latent, (kernels.draw_hamming_latent, None), strict=True):
        kernel = kernel or interpreted(kernels.draw_hamming_latent)
        kernel(streams, rows, CONSENSUS, 0.7, draw)
    assert np.array_equal(*latent)
    assert (np.sort(latent[0], axis=1) == np.arange(1, 6)).all()


def bucket_draws(row, alpha, n_draws=6000):
    rows = np.repeat(close_gaps(row[None]), n_draws, axis=0)
    latent = np.zeros((n_draws, 5), np.int32)
    streams = Streams(7, 1, np.arange(n_draws), np.ones(n_draws, np.int64))
    kernels.draw_bucket_latent(streams, rows, orderings_of(CONSENSUS), alpha / 5, latent)
    return latent


@pytest.mark.parametrize("row", BUCKETS[1:], ids=str)
def test_draws_of_buckets_under_kendall_follow_their_law(row):
    law = {
        full: naive.weight(full, CONSENSUS.tolist(), 4.0, "kendall")
        for full in naive.completions(row.tolist())
    }
    assert p_value(bucket_draws(row, 4.0), naive.normalise(law)) > 1e-4
    if len(law) > 10:
        assert p_value(bucket_draws(row, 6.0), naive.normalise(law)) < 1e-6


def test_compiled_and_interpreted_draws_of_buckets_are_equal():
    rows, latent = close_gaps(BUCKETS), np.zeros((2, 5, 5), np.int32)
    streams, kernel = Streams(3, 2, np.arange(5), np.ones(5, np.int64)), kernels.draw_bucket_latent
    for draw, each in zip(latent, (kernel, interpreted(kernel)), strict=True):
        each(streams, rows, orderings_of(CONSENSUS), 0.7, draw)
    assert np.array_equal(*latent)
    assert (latent[0, 0] == BUCKETS[0]).all()


def test_inversions_of_a_full_ranking_are_kendalls_distance():
    ranks, tree = np.array([3, 1, 5, 2, 4]), np.empty(6, np.int64)
    count = kernels.count_inversions(ranks, orderings_of(CONSENSUS), tree)
    assert count == naive.kendall(ranks.tolist(), CONSENSUS.tolist())


def test_a_block_at_large_alpha_has_as_many_items_in_place_as_it_can():
    assert (draws_of(GAPS[2], 400.0, 20) == [3, 5, 1, 2, 4]).sum(axis=1).min() >= 2
    assert math.isclose(naive.likelihood([0, 0, 0, 0, 0], CONSENSUS.tolist(), 2.0, "hamming"), 1.0)
