"""The Hamming distance against its definition, by enumeration."""

import math

import numpy as np
import pytest
from scipy import stats

from distance_checks import DistanceChecks, LargeChecks, PriceChecks
from pseudomallows.distances.hamming import HAMMING, law_of
from pseudomallows.kernels.distances import hamming_loops as kernels

pytestmark = pytest.mark.kernel


class TestHamming(DistanceChecks, PriceChecks):
    distance = HAMMING
    draw_alphas = (1.5, 1.9)


class TestManyItems(LargeChecks):
    distance = HAMMING


def test_there_are_as_many_rankings_at_a_distance_as_places_chosen_and_deranged():
    derangements = [1, 0, 1, 2, 9, 44, 265, 1854]
    log_sum, law = law_of(7, 0.0)
    exact = [math.comb(7, d) * derangements[d] for d in range(8)]
    assert math.exp(log_sum) * law == pytest.approx(exact)


def test_derangements_are_uniform():
    stream, moved, counts = np.array([7], dtype=np.uint64), np.empty(4, dtype=np.int64), {}
    for _ in range(9000):
        kernels.derange(stream, moved)
        counts[tuple(moved.tolist())] = counts.get(tuple(moved.tolist()), 0) + 1
    assert len(counts) == 9
    assert all(place != to for found in counts for place, to in enumerate(found))
    assert stats.chisquare(list(counts.values())).pvalue > 1e-4
