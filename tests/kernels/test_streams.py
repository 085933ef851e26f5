import numpy as np
import pytest
from scipy import stats

from helpers import interpreted
from pseudomallows.kernels import streams

pytestmark = pytest.mark.kernel


def numbers(seed, draw, user, count, of=streams):
    stream = np.empty(1, dtype=np.uint64)
    of.start_stream(seed, draw, user, stream)
    return np.array([of.uniform(stream) for _ in range(count)])


def test_numbers_are_uniform():
    assert stats.kstest(numbers(1, 2, 3, 5000), "uniform").pvalue > 1e-4


def test_first_numbers_of_neighbouring_streams_are_uniform_and_unrelated():
    first = np.array([numbers(1, draw, user, 1)[0] for draw in range(50) for user in range(50)])
    assert stats.kstest(first, "uniform").pvalue > 1e-4
    table = first.reshape(50, 50)
    for shifted in (table[:, 1:], table[1:, :]):
        correlation = np.corrcoef(
            table[: len(shifted), : shifted.shape[1]].ravel(), shifted.ravel()
        )
        assert abs(correlation[0, 1]) < 0.08


def test_streams_differ_by_seed_draw_and_user():
    starts = [
        numbers(*key, 1)[0] for key in [(1, 2, 3), (2, 2, 3), (1, 3, 3), (1, 2, 4), (1, 3, 2)]
    ]
    assert len(set(starts)) == len(starts)


def test_below_gives_each_number_equally_often():
    stream = np.empty(1, dtype=np.uint64)
    streams.start_stream(5, 0, 0, stream)
    counts = np.bincount([streams.below(stream, 7) for _ in range(7000)], minlength=7)
    assert len(counts) == 7
    assert stats.chisquare(counts).pvalue > 1e-4


def test_splitmix64_has_the_published_values():
    # The first outputs for seed 1234567, as in the reference code of Vigna (2015).
    state, outputs = np.uint64(1234567), []
    for _ in range(3):
        state = np.uint64(state + streams.STEP)
        outputs.append(int(interpreted(streams.mix)(state)))
    assert outputs == [6457827717110365317, 3203168211198807973, 9817491932198370423]
