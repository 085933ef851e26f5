"""NextItems to be among the first ranks: against enumeration, and in the far tails."""

import math

import numpy as np
import pytest

import naive
import pseudomallows as pm
from pseudomallows.kernels.footrule.inclusion import inclusion_logits, log_misses, tagged_walk

ALPHAS = (0.0, 0.5, 3.0, 30.0, 300.0)


def logits_of(n_items, alpha, size):
    logits = np.empty(n_items)
    inclusion_logits(tagged_walk(n_items, alpha / n_items), size, logits)
    return logits


def log_sum(logs):
    highest = max(logs)
    return highest + math.log(math.fsum(math.exp(each - highest) for each in logs))


def enumerated(n_items, alpha, size, item):
    """Logs of the probability to be among the first ranks, and of the probability not to be."""
    center = range(1, n_items + 1)
    logs = {r: -alpha / n_items * naive.footrule(r, center) for r in naive.all_rankings(n_items)}
    total = log_sum(list(logs.values()))
    inside = log_sum([log for r, log in logs.items() if r[item] <= size])
    outside = log_sum([log for r, log in logs.items() if r[item] > size])
    return inside - total, outside - total


@pytest.mark.kernel
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("n_items", [2, 3, 4, 5, 6])
def test_both_tails_equal_enumeration(n_items, alpha):
    walk = tagged_walk(n_items, alpha / n_items)
    for size in range(1, n_items):
        logits, misses = logits_of(n_items, alpha, size), np.empty(size)
        log_misses(walk, size, misses)
        for item in range(n_items):
            inside, outside = enumerated(n_items, alpha, size, item)
            assert logits[item] == pytest.approx(inside - outside, rel=1e-12, abs=1e-12)
            if item < size:  # a relative error of the probability itself, of exp(-200) too
                assert misses[item] == pytest.approx(outside, rel=1e-12, abs=1e-12)


def test_a_slightly_wrong_alpha_is_told_from_the_right_one():
    inside, outside = enumerated(5, 3.0, 2, 1)
    assert logits_of(5, 3.0, 2)[1] == pytest.approx(inside - outside, rel=1e-12)
    assert logits_of(5, 3.0 + 1e-9, 2)[1] != pytest.approx(inside - outside, rel=1e-12)


@pytest.mark.parametrize("alpha", [0.1, 1.0, 10.0, 40.0])
@pytest.mark.parametrize("size", [1, 10, 25, 49])
def test_they_are_sums_of_the_rank_probabilities(alpha, size):
    table = pm.Mallows(np.arange(1, 51), alpha).rank_probabilities()
    wanted = np.log(table[:, :size].sum(axis=1) / table[:, size:].sum(axis=1))
    assert logits_of(50, alpha, size) == pytest.approx(wanted, rel=1e-10, abs=1e-12)


def check_tails(n_items, alphas):
    """Finite, falling with the rank, and the same from the other end."""
    for alpha in alphas:
        for size in sorted({1, n_items // 2, n_items - 1}):
            logits = logits_of(n_items, alpha, size)
            assert np.isfinite(logits).all()
            assert (np.diff(logits) < (0.0 if alpha > 0 else 1e-13)).all()
            mirrored = logits_of(n_items, alpha, n_items - size)[::-1]
            assert logits == pytest.approx(-mirrored, rel=1e-13, abs=1e-13)
            probabilities = 1 / (1 + np.exp(-np.clip(logits, -500, 500)))
            assert probabilities.sum() == pytest.approx(size, rel=1e-10)


@pytest.mark.parametrize("n_items", [2, 3, 50, 1000])
def test_they_are_finite_and_fall_with_the_rank(n_items):
    """To alpha / n_items of 100, far beyond the sharpest table."""
    alphas = (0.0, 0.01, 1.0, 10.0, 100.0, 1000.0, 10_000.0)
    check_tails(n_items, [alpha for alpha in alphas if alpha <= 100 * n_items])


@pytest.mark.slow
def test_they_are_so_of_five_thousand_items():
    check_tails(5000, (0.0, 1.0, 100.0, 10_000.0))


def test_the_tails_are_beyond_what_a_double_can_tell_from_0_and_1():
    logits = logits_of(50, 1000.0, 25)
    assert logits[0] > 800
    assert logits[-1] < -800
    assert logits_of(1000, 10_000.0, 500)[0] > 5000
