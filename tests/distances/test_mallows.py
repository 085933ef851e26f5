import math
from decimal import Decimal, getcontext

import numpy as np
import pytest
from scipy import stats

import naive
import pseudomallows as pm
from helpers import interpreted, p_value
from pseudomallows.distances.distance import alpha_for_distance
from pseudomallows.distances.footrule import FOOTRULE
from pseudomallows.kernels.footrule import partition as kernels
from pseudomallows.kernels.footrule.partition import draw_mallows

REFERENCE = [  # log Z_n(alpha), computed with big numbers
    (5, 2, 2.24370014583675),
    (20, 10, 10.3563530908043),
    (50, 10, 64.0151478986755),
    (100, 5, 248.772633034867),
    (200, 3, 703.244277750604),
    (200, 10, 519.142993540526),
    (500, 20, 1434.4629279564),
    (1000, 10, 4184.60905188223),
    (1000, 100, 2016.27414439772),
]


def log_partition(n_items, alpha):
    return pm.Mallows(np.arange(1, n_items + 1), alpha).log_partition


@pytest.mark.parametrize(("n_items", "alpha", "value"), REFERENCE)
def test_log_partition_has_the_reference_values(n_items, alpha, value):
    assert log_partition(n_items, alpha) == pytest.approx(value, rel=1e-13)


@pytest.mark.kernel
@pytest.mark.parametrize("n_items", range(1, 8))
@pytest.mark.parametrize("alpha", [0, 0.5, 3, 20])
def test_log_partition_and_distance_equal_enumeration(n_items, alpha):
    log_sum, distance = kernels.partition_and_distance(n_items, alpha / n_items)
    law = naive.mallows(range(1, n_items + 1), alpha)
    mean = math.fsum(p * naive.footrule(r, range(1, n_items + 1)) for r, p in law.items())
    assert log_sum == pytest.approx(naive.log_partition(n_items, alpha), abs=1e-12)
    assert distance == pytest.approx(mean, abs=1e-11)


def big_log_partition(n_items, alpha):
    """The recursion with 60 digits, the plain weights 1, 2k + 1, k^2, and no scaling at all."""
    getcontext().prec = 60
    step = (Decimal(-2) * Decimal(alpha) / n_items).exp()
    decay = [step**k for k in range(n_items // 2 + 2)]
    old = [Decimal(1)]
    for t in range(1, n_items + 1):
        old = [Decimal(0), *old, Decimal(0), Decimal(0)]
        old = [
            (old[k] + old[k + 1] * (2 * k + 1) + old[k + 2] * (k + 1) ** 2) * decay[k]
            for k in range(min(t, n_items - t) + 1)
        ]
    return float(old[0].ln())


@pytest.mark.parametrize("alpha", ["0.001", "1", "7.5", "60", "2500"])
@pytest.mark.parametrize("n_items", [2, 31, 150])
def test_log_partition_equals_big_numbers(n_items, alpha):
    exact = big_log_partition(n_items, alpha)
    assert log_partition(n_items, float(alpha)) == pytest.approx(exact, rel=1e-12, abs=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_items", "alpha"),
    [(2000, 1), (2000, 40), (10_000, 1e-6), (10_000, 1e-3), (10_000, 3), (10_000, 300)],
)
def test_log_partition_of_many_items_equals_logarithms(n_items, alpha):
    rate, old = alpha / n_items, np.array([0.0])
    with np.errstate(divide="ignore"):
        for t in range(1, n_items + 1):
            k = np.arange(min(t, n_items - t) + 1)
            padded = np.concatenate([[-np.inf], old, [-np.inf, -np.inf]])
            ways = [padded[k] + np.log(k), padded[k + 1] + np.log(2 * k + 1)]
            ways.append(padded[k + 2] + np.log(k + 1))
            old = np.logaddexp.reduce(ways) - 2 * rate * k
    assert log_partition(n_items, alpha) == pytest.approx(old[0], rel=1e-11)


@pytest.mark.parametrize("n_items", [1, 2, 10, 1000, 10_000])
def test_log_partition_at_the_ends(n_items):
    assert log_partition(n_items, 0) == pytest.approx(math.lgamma(n_items + 1), rel=1e-12)
    assert log_partition(n_items, 10_000.0 * n_items) == pytest.approx(0, abs=1e-12)


def test_log_partition_is_finite_and_falls_over_the_whole_range():
    for n_items in (2, 99, 10_000):
        values = [log_partition(n_items, a) for a in (0, 1e-6, 0.1, 1, 10, 100, 1000, 10_000)]
        assert np.isfinite(values).all()
        assert (np.diff(values) <= 0).all()


@pytest.mark.kernel
@pytest.mark.parametrize("n_items", range(1, 8))
@pytest.mark.parametrize("alpha", [0, 1.5, 9])
def test_rank_probabilities_equal_enumeration(n_items, alpha):
    table = np.full((n_items, n_items), np.nan)
    kernels.rank_probabilities(n_items, alpha / n_items, table)
    exact = np.array(naive.marginals(naive.mallows(range(1, n_items + 1), alpha)))
    assert np.abs(table - exact).max() < 1e-13
    means = np.full(n_items, np.nan)
    kernels.expected_ranks(n_items, alpha / n_items, means)
    assert np.abs(means - exact @ np.arange(1, n_items + 1)).max() < 1e-12


@pytest.mark.parametrize("alpha", [0, 5, 400, 10_000])
def test_rank_probabilities_of_many_items_agree_with_the_partition_function(alpha):
    m = pm.Mallows(np.arange(1, 302), alpha)
    table = m.rank_probabilities()
    assert np.abs(table.sum(axis=0) - 1).max() < 1e-10
    assert np.abs(table.sum(axis=1) - 1).max() < 1e-10
    distances = np.abs(np.subtract.outer(np.arange(301), np.arange(301)))
    assert (table * distances).sum() == pytest.approx(m.expected_distance(), rel=1e-10, abs=1e-10)
    assert np.abs(table @ np.arange(1, 302) - m.expected_ranks()).max() < 1e-9


def drawn(consensus, alpha, n_draws=20_000):
    return pm.Mallows(consensus, alpha).draw(n_draws, rng=20_240_229)


def test_draws_follow_the_exact_distribution():
    assert p_value(drawn([3, 1, 4, 2], 2.0), naive.mallows([3, 1, 4, 2], 2.0)) > 1e-4
    five = naive.mallows([3, 1, 4, 2, 5], 1.0)
    assert p_value(drawn([3, 1, 4, 2, 5], 1.0), five) > 1e-4


def test_a_slightly_wrong_alpha_is_caught():
    assert p_value(drawn([3, 1, 4, 2], 2.2), naive.mallows([3, 1, 4, 2], 2.0)) < 1e-6


@pytest.mark.parametrize("alpha", [10, 1000])
def test_draws_of_2000_items_agree_with_the_expected_distance(alpha):
    m = pm.Mallows(np.random.default_rng(3).permutation(2000) + 1, alpha)
    draws = m.draw(300, rng=1)
    assert (np.sort(draws, axis=1) == np.arange(1, 2001)).all()
    distances = pm.footrule(draws, m.consensus)
    assert stats.ttest_1samp(distances, m.expected_distance()).pvalue > 1e-4
    assert stats.ttest_1samp(distances, 1.05 * m.expected_distance()).pvalue < 1e-10


def test_draws_are_independent():
    distances = pm.footrule(drawn(np.arange(1, 31), 5), np.arange(1, 31))
    assert abs(np.corrcoef(distances[1:], distances[:-1])[0, 1]) < 0.03


@pytest.mark.kernel
def test_compiled_and_interpreted_draws_are_equal():
    one, other = np.empty((2, 20, 12), dtype=np.int64)
    draw_mallows(5, 12, 0.3, one)
    interpreted(draw_mallows)(5, 12, 0.3, other)
    assert (one == other).all()
    log_sum = interpreted(kernels.partition_and_distance)(12, 0.3)
    assert kernels.partition_and_distance(12, 0.3) == log_sum


def test_log_probability_is_normalised_and_follows_the_definition():
    m = pm.Mallows([2, 3, 1, 4], 1.7)
    law = naive.mallows([2, 3, 1, 4], 1.7)
    assert np.exp(m.log_probability(list(law))) == pytest.approx(list(law.values()))
    assert m.log_probability([2, 3, 1, 4]) == pytest.approx(math.log(law[2, 3, 1, 4]))


def test_the_same_seed_gives_the_same_draws():
    assert (drawn([1, 2, 3], 1, 50) == drawn([1, 2, 3], 1, 50)).all()
    rng = np.random.default_rng(1)
    m = pm.Mallows(np.arange(1, 9), 1)
    assert (m.draw(50, rng) != m.draw(50, rng)).any()


def test_maximum_likelihood_alpha_maximises_the_likelihood():
    rankings, consensus = drawn([4, 2, 1, 3, 5, 6], 3.0, 200), [4, 2, 1, 3, 5, 6]
    best = pm.maximum_likelihood_alpha(rankings, consensus)
    heights = [
        pm.Mallows(consensus, alpha).log_probability(rankings).sum()
        for alpha in (best * 0.99, best, best * 1.01)
    ]
    assert heights[1] > max(heights[0], heights[2])


def test_maximum_likelihood_alpha_at_the_ends():
    assert pm.maximum_likelihood_alpha([[1, 2, 3]], [1, 2, 3]) == math.inf
    assert pm.maximum_likelihood_alpha([[3, 2, 1]], [1, 2, 3]) == 0
    assert alpha_for_distance(FOOTRULE, 50, 1e-6) > 100


def test_maximum_likelihood_alpha_counts_weights():
    repeated = pm.maximum_likelihood_alpha([[1, 2, 3]] * 4 + [[2, 1, 3]] * 2, [1, 2, 3])
    weighted = pm.maximum_likelihood_alpha([[1, 2, 3], [2, 1, 3]], [1, 2, 3], weights=[4, 2])
    assert weighted == repeated
