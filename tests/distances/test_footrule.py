"""The footrule against its definition, by enumeration."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import naive
from helpers import p_value
from pseudomallows import distances
from pseudomallows.distances.distance import alpha_for_distance, find_root
from pseudomallows.distances.footrule import FOOTRULE

SIZES, ALPHAS = (3, 4, 5), (0.0, 0.7, 3.0, 20.0)
each_law = pytest.mark.parametrize(
    ("n_items", "alpha"), [(n_items, alpha) for n_items in SIZES for alpha in ALPHAS]
)


def law_of(n_items, alpha):
    return naive.mallows(range(1, n_items + 1), alpha)


def test_it_is_found_by_its_name():
    assert distances.get("footrule") is FOOTRULE
    with pytest.raises(ValueError, match=r"distance must be one of 'footrule', .* got 'manhattan'"):
        distances.get("manhattan")


@pytest.mark.parametrize("n_items", SIZES)
def test_the_distance_between_rankings_follows_the_definition(n_items):
    rankings = naive.all_rankings(n_items)
    other = rankings[len(rankings) // 2]
    exact = [naive.footrule(ranking, other) for ranking in rankings]
    assert FOOTRULE.between(rankings, other).tolist() == exact
    assert FOOTRULE.between(other, other) == 0
    pairs = list(zip(rankings, rankings[::-1], strict=True))
    row_by_row = FOOTRULE.between(rankings, rankings[::-1])
    assert row_by_row.tolist() == [naive.footrule(*pair) for pair in pairs]


@each_law
def test_the_log_partition_equals_enumeration(n_items, alpha):
    exact = naive.log_partition(n_items, alpha)
    assert FOOTRULE.log_partition(n_items, alpha) == pytest.approx(exact, abs=1e-12)


@each_law
def test_the_expected_distance_equals_enumeration(n_items, alpha):
    center = range(1, n_items + 1)
    exact = math.fsum(p * naive.footrule(r, center) for r, p in law_of(n_items, alpha).items())
    assert FOOTRULE.expected(n_items, alpha) == pytest.approx(exact, abs=1e-11)


@each_law
def test_rank_probabilities_and_expected_ranks_equal_enumeration(n_items, alpha):
    exact = np.array(naive.marginals(law_of(n_items, alpha)))
    assert FOOTRULE.rank_probabilities(n_items, alpha) == pytest.approx(exact, abs=1e-12)
    means = exact @ np.arange(1, n_items + 1)
    assert FOOTRULE.expected_ranks(n_items, alpha) == pytest.approx(means, abs=1e-11)


@pytest.mark.parametrize("n_items", SIZES)
def test_draws_follow_the_exact_law(n_items):
    draws = FOOTRULE.draw(n_items, 1.5, 20_000, seed=5)
    assert p_value(draws, law_of(n_items, 1.5)) > 1e-4


@pytest.mark.parametrize("n_items", SIZES)
def test_draws_at_another_alpha_are_caught(n_items):
    draws = FOOTRULE.draw(n_items, 1.8, 20_000, seed=5)
    assert p_value(draws, law_of(n_items, 1.5)) < 1e-6


def test_the_same_seed_gives_the_same_draws():
    one, same, other = (FOOTRULE.draw(6, 1.0, 50, seed) for seed in (3, 3, 4))
    assert (one == same).all()
    assert (one != other).any()


def test_a_price_is_what_one_item_adds_to_the_distance():
    rankings = naive.all_rankings(4)
    prices = FOOTRULE.prices(4)
    for ranking in rankings:
        total = sum(prices[a - 1, b - 1] for a, b in zip(ranking, rankings[7], strict=True))
        assert total == naive.footrule(ranking, rankings[7])


squares = st.integers(1, 6).flatmap(
    lambda n: arrays.arrays(np.int64, (n, n), elements=st.integers(0, 10**6))
)


@given(squares)
def test_costs_are_counts_times_prices(counts):
    assert (FOOTRULE.costs(counts) == counts @ FOOTRULE.prices(len(counts))).all()


@pytest.mark.parametrize("alpha", [0.3, 2.0, 15.0])
def test_the_alpha_of_a_mean_distance_is_found_again(alpha):
    mean = FOOTRULE.expected(8, alpha)
    assert alpha_for_distance(FOOTRULE, 8, mean) == pytest.approx(alpha, rel=1e-8)


def test_the_alpha_of_a_mean_distance_at_the_ends():
    assert alpha_for_distance(FOOTRULE, 8, 0) == math.inf
    assert alpha_for_distance(FOOTRULE, 8, FOOTRULE.expected(8, 0.0)) == 0
    assert alpha_for_distance(FOOTRULE, 8, 30) == 0


def test_a_root_is_found_far_away():
    assert find_root(lambda x: x - 1234.5) == pytest.approx(1234.5)
    assert find_root(lambda x: x + 1) == 0
