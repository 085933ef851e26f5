"""Alpha by similarity: the exact curves, against enumeration and the paper's simulated grid."""

import itertools
import math

import numpy as np
import pytest

import naive
import pseudomallows as pm
from pseudomallows.paper import similarity


def cosine(ranking, other):
    norm = math.sqrt(sum(r * r for r in ranking))
    return sum(a * b for a, b in zip(ranking, other, strict=True)) / norm**2


@pytest.mark.parametrize("value", [0, 1.5, 8])
def test_the_expected_similarity_equals_enumeration(value):
    law = naive.mallows([1, 2, 3, 4], value)
    exact = sum(p * q * cosine(r, s) for r, p in law.items() for s, q in law.items())
    assert similarity.expected_similarity(4, value) == pytest.approx(exact, abs=1e-12)


def test_the_mean_similarity_is_that_of_all_pairs():
    rankings = pm.Mallows(np.arange(1, 8), 2).draw(9, rng=1)
    pairs = [cosine(a, b) for i, a in enumerate(rankings) for j, b in enumerate(rankings) if i != j]
    assert similarity.mean_similarity(rankings.sum(axis=0), 9) == pytest.approx(np.mean(pairs))


def simulated(alpha, rng):
    """The mean similarity of 500 simulated users, as the paper finds its curve."""
    rankings = pm.Mallows(np.arange(1, 21), alpha).draw(500, rng)
    return similarity.mean_similarity(rankings.sum(axis=0), 500)


def test_the_exact_curve_agrees_with_the_simulated_grid_of_the_paper():
    grid = np.array([0.5, 1, 2, 4, 8])
    exact = np.array([similarity.expected_similarity(20, a) for a in grid])
    found = np.mean([[simulated(alpha, rng) for alpha in grid] for rng in range(20)], axis=0)
    assert np.abs(found - exact).max() < 0.002
    shifted = np.array([similarity.expected_similarity(20, 1.1 * a) for a in grid])
    assert np.abs(found - shifted).max() > 0.004


def test_the_click_similarity_is_exact():
    sizes = [1, 2, 2, 4]
    law = naive.mallows([1, 2, 3, 4, 5], 2.0)
    exact = []
    for j, k in itertools.permutations(range(4), 2):
        probabilities = [
            [sum(p for r, p in law.items() if r[item] <= sizes[u]) for item in range(5)]
            for u in (j, k)
        ]
        exact.append(np.dot(*probabilities) / math.sqrt(sizes[j] * sizes[k]))
    found = similarity.expected_click_similarity(5, 2.0, sizes)
    assert found == pytest.approx(np.mean(exact), abs=1e-12)


def test_the_mean_click_similarity_is_that_of_all_pairs():
    prefs = pm.simulate_clicks(30, 9, 3, 3, rng=1).preferences
    table = np.zeros((30, 9))
    table[np.repeat(np.arange(30), prefs.n_clicks), prefs.codes] = 1
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    pairs = (table @ table.T)[~np.eye(30, dtype=bool)]
    assert similarity.mean_click_similarity(prefs) == pytest.approx(pairs.mean())


def test_the_exact_curve_of_clicks_agrees_with_simulated_ones():
    for alpha in (1, 4, 10):
        data = [pm.simulate_clicks(500, 20, alpha, 5, rng=i).preferences for i in range(15)]
        found = [similarity.mean_click_similarity(prefs) for prefs in data]
        exact = [similarity.expected_click_similarity(20, alpha, prefs.n_clicks) for prefs in data]
        error = np.std(np.subtract(found, exact)) / math.sqrt(15)
        assert abs(np.mean(found) - np.mean(exact)) < 4 * error
        shifted = [
            similarity.expected_click_similarity(20, 1.2 * alpha, prefs.n_clicks) for prefs in data
        ]
        assert abs(np.mean(found) - np.mean(shifted)) > 4 * error
