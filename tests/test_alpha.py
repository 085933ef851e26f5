import math

import numpy as np
import pytest

import naive
import pseudomallows as pm
from pseudomallows import alpha as module


def cosine(ranking, other):
    norm = math.sqrt(sum(r * r for r in ranking))
    return sum(a * b for a, b in zip(ranking, other, strict=True)) / norm**2


@pytest.mark.parametrize("value", [0, 1.5, 8])
def test_the_expected_similarity_equals_enumeration(value):
    law = naive.mallows([1, 2, 3, 4], value)
    exact = sum(p * q * cosine(r, s) for r, p in law.items() for s, q in law.items())
    assert module.expected_similarity(4, value) == pytest.approx(exact, abs=1e-12)


def test_the_mean_similarity_is_that_of_all_pairs():
    rankings = pm.Mallows(np.arange(1, 8), 2).draw(9, rng=1)
    pairs = [cosine(a, b) for i, a in enumerate(rankings) for j, b in enumerate(rankings) if i != j]
    assert module.mean_similarity(rankings.sum(axis=0), 9) == pytest.approx(np.mean(pairs))


def test_the_exact_curve_agrees_with_the_simulated_grid_of_the_paper():
    grid = np.array([0.5, 1, 2, 4, 8])
    exact = np.array([module.expected_similarity(20, a) for a in grid])
    found = np.mean([module.simulated_similarity(20, grid, 500, rng=i) for i in range(20)], axis=0)
    assert np.abs(found - exact).max() < 0.002
    shifted = np.array([module.expected_similarity(20, 1.1 * a) for a in grid])
    assert np.abs(found - shifted).max() > 0.004


@pytest.mark.parametrize("method", ["similarity", "likelihood"])
@pytest.mark.parametrize("value", [0.5, 3, 12])
def test_alpha_is_recovered_from_full_rankings(method, value):
    prefs = pm.simulate_rankings(4000, 15, value, rng=1).preferences
    assert pm.estimate_alpha(prefs, method) == pytest.approx(value, rel=0.03, abs=0.05)


@pytest.mark.parametrize("value", [1.5, 6])
def test_alpha_is_recovered_from_partial_rankings(value):
    prefs = pm.simulate_rankings(2000, 15, value, top=5, rng=1).preferences
    assert pm.estimate_alpha(prefs, "likelihood", rng=1) == pytest.approx(value, rel=0.06)


def test_likelihood_finds_the_best_alpha_of_the_best_consensus():
    rankings = pm.Mallows([2, 1, 4, 3, 5], 1.5).draw(12, rng=3)
    best = pm.estimate_alpha(pm.Preferences.from_rankings(rankings), "likelihood")

    def height(value):
        return max(
            pm.Mallows(consensus, value).log_probability(rankings).sum()
            for consensus in naive.all_rankings(5)
        )

    assert height(best) > max(height(best * 0.98), height(best * 1.02))


def test_weights_count_as_repeated_rows():
    rows, weights = [[1, 2, 3, 4], [2, 1, 3, 4], [1, 4, 3, 2]], [3, 2, 1]
    for method in ("similarity", "likelihood"):
        weighted = pm.Preferences.from_rankings(rows, weights=weights)
        repeated = pm.Preferences.from_rankings(np.repeat(rows, weights, axis=0))
        assert pm.estimate_alpha(weighted, method) == pytest.approx(
            pm.estimate_alpha(repeated, method)
        )


def test_rankings_without_agreement_have_alpha_zero():
    prefs = pm.Preferences.from_rankings([[1, 2, 3], [3, 2, 1]])
    assert pm.estimate_alpha(prefs) == 0


@pytest.mark.parametrize(
    "rows", [[[1, 2, 3]], [[1, 2, 3], [1, 2, 3]], [[1, 2, 0, 0], [1, 2, 0, 0]]]
)
def test_no_finite_alpha_is_said(rows):
    prefs = pm.Preferences.from_rankings(rows)
    with pytest.raises(ValueError, match="no finite alpha is best: give alpha"):
        pm.estimate_alpha(prefs, "likelihood")


def test_one_user_has_no_similarity():
    with pytest.raises(ValueError, match="one user only"):
        pm.estimate_alpha(pm.Preferences.from_rankings([[1, 2, 3]]))
