"""The conjecture, and what the paper's Lemma 1, Theorem 1 and appendices say, by enumeration."""

import itertools
import math

import numpy as np
import pytest

import naive
import pseudomallows as pm
from pseudomallows.paper import best_order, count_consistent_orders, mean_costs, order_rate

CASES = [(3, 0.7), (3, 1.0), (4, 0.3), (4, 2.0), (5, 0.5), (5, 1.5), (5, 4.0)]


def costs_by_definition(n_items, alpha):
    """costs[item][rank - 1]: the mean over all rankings of the distance from the rank."""
    law = naive.mallows(tuple(range(1, n_items + 1)), alpha)
    return [
        [math.fsum(p * abs(r[item] - rank) for r, p in law.items()) for rank in r_all(n_items)]
        for item in range(n_items)
    ]


def r_all(n_items):
    return range(1, n_items + 1)


def gaps_by_definition(costs, order):
    """Second best free rank less the own one, for each item but the last."""
    free, gaps = set(range(len(costs))), []
    for item in order[:-1]:
        gaps.append(min(costs[item][rank] for rank in free - {item}) - costs[item][item])
        free.remove(item)
    return gaps


def all_orders(n_items):
    return list(itertools.permutations(range(n_items)))


def v_orders(n_items):
    return np.argsort(pm.v_rankings(np.arange(1, n_items + 1)), axis=1)


@pytest.mark.parametrize(("n_items", "alpha"), CASES)
def test_mean_costs_follow_the_definition(n_items, alpha):
    found = mean_costs(n_items, alpha)
    np.testing.assert_allclose(found, costs_by_definition(n_items, alpha), atol=1e-12)
    assert np.abs(found - costs_by_definition(n_items, 1.01 * alpha)).max() > 1e-4


def rates_by_definition(costs):
    """{order: (bottleneck, posterior gap)} by going through all rankings."""
    n_items = len(costs)
    totals = sorted(sum(costs[i][r] for i, r in enumerate(p)) for p in all_orders(n_items))
    return {
        order: (min(gaps_by_definition(costs, order)), totals[1] - totals[0])
        for order in all_orders(n_items)
    }


@pytest.mark.parametrize(("n_items", "alpha"), CASES)
def test_rates_of_all_orders_follow_the_definition(n_items, alpha):
    exact = rates_by_definition(costs_by_definition(n_items, alpha))
    for order, values in exact.items():
        assert order_rate(order, alpha)[:2] == pytest.approx(values, abs=1e-12)
    n_consistent = sum(gap > 1e-9 for gap, _ in exact.values())
    assert count_consistent_orders(n_items, alpha) == n_consistent


def test_a_wrong_table_of_costs_is_caught():
    wrong = (mean_costs(4, 2.0) ** 2).tolist()
    exact = rates_by_definition(wrong)
    assert all(
        abs(order_rate(order, 2.0)[which] - values[which]) > 1e-3
        for order, values in exact.items()
        for which in (0, 1)
    )


@pytest.mark.parametrize(("n_items", "alpha"), [*CASES, (6, 0.9), (6, 3.0)])
def test_no_order_has_a_larger_bottleneck_than_v_orders(n_items, alpha):
    highest = max(order_rate(order, alpha).bottleneck for order in all_orders(n_items))
    for order in v_orders(n_items):
        rate = order_rate(order, alpha)
        assert rate.is_consistent
        assert rate.bottleneck == pytest.approx(highest, abs=1e-12)
    assert order_rate(best_order(n_items, alpha), alpha).bottleneck == pytest.approx(highest)


@pytest.mark.parametrize("n_items", [2, 9, 16, 41])
@pytest.mark.parametrize("alpha", [0.1, 1.0, 5.0, 40.0])
def test_v_orders_have_the_largest_bottleneck_of_many_items(n_items, alpha):
    rng = np.random.default_rng(1)
    ranking = np.arange(1, n_items + 1)
    best = order_rate(best_order(n_items, alpha), alpha)
    for _ in range(3):
        order = np.argsort(pm.draw_v_ranking(ranking, rng))
        assert order_rate(order, alpha) == pytest.approx(best, abs=1e-10)


def test_nothing_is_consistent_without_concentration():
    assert count_consistent_orders(5, 0.0) == 0
    assert not order_rate([2, 1, 3, 0, 4], 0.0).is_consistent
    assert order_rate([2, 1, 3, 0, 4], 0.0).rate == -math.inf


def lowest_alpha(holds):
    """Where, from below, something begins to hold."""
    low, high = 0.1, 8.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


@pytest.mark.parametrize(
    ("n_items", "all_from", "others_from"),
    [(3, 0.824, 0.824), (5, 1.983, 0.677), (7, 2.941, 0.561), (9, 3.835, 0.475)],
)
def test_v_orders_are_the_only_consistent_ones_first_and_all_are_in_the_end(
    n_items, all_from, others_from
):
    n_v, n_all = 2 ** (n_items // 2), math.factorial(n_items)
    is_all = lowest_alpha(lambda alpha: count_consistent_orders(n_items, alpha) == n_all)
    others = lowest_alpha(lambda alpha: count_consistent_orders(n_items, alpha) > n_v)
    assert is_all == pytest.approx(all_from, abs=1e-3)
    assert others == pytest.approx(others_from, abs=1e-3)
    assert count_consistent_orders(n_items, others_from - 0.01) == n_v


def divergence(costs, weight, order):
    """KL(Pseudo-Mallows || posterior), for weights exp(-weight * costs): a sum of terms that are
    all positive, so that it holds far below the rounding of a log evidence."""
    n_items = len(costs)
    logs, over = {}, {}  # of the posterior's numerators; of the products of the denominators
    for ranking in all_orders(n_items):
        logs[ranking] = -weight * sum(costs[i][r] - costs[i][i] for i, r in enumerate(ranking))
        free, over[ranking] = set(range(n_items)), 0.0
        for item in order:
            terms = [-weight * (costs[item][r] - costs[item][item]) for r in free]
            own = terms.pop(terms.index(max(terms)))
            over[ranking] += own + math.log1p(math.fsum(math.exp(t - own) for t in terms))
            free.remove(ranking[item])
    others = [value for ranking, value in logs.items() if ranking != tuple(range(n_items))]
    log_evidence = math.log1p(math.fsum(map(math.exp, others)))
    total = []
    for ranking, value in logs.items():
        p, q = math.exp(value - log_evidence), math.exp(value - over[ranking])
        ratio = log_evidence - over[ranking]  # its logarithm
        total.append(q * ratio - (p * math.expm1(ratio) if abs(ratio) < 1 else q - p))
    return math.fsum(total)


@pytest.mark.parametrize("alpha", [0.8, 1.5, 3.0])
def test_the_divergence_falls_or_grows_at_the_rate_of_the_order(alpha):
    costs = mean_costs(4, alpha).tolist()
    for order in [(1, 2, 0, 3), (1, 0, 2, 3), (0, 1, 2, 3), (3, 0, 1, 2)]:
        rate = order_rate(order, alpha)
        scale = rate.rate if rate.is_consistent else 1.0
        few, many = (divergence(costs, weight / scale, order) for weight in (400.0, 600.0))
        if rate.is_consistent:  # but for a factor of at most 600, the number of users
            assert math.log(few / many) / 200 == pytest.approx(1.0, rel=0.01)
        else:
            assert many > 1.4 * few > 1.0


def test_the_divergence_is_that_of_the_package():
    rankings = pm.Mallows([1, 2, 3, 4], 1.5).draw(30, rng=1)
    law = pm.PseudoMallows(rankings, 1.5)
    order = [2, 0, 3, 1]
    exact = law.evidence(order).divergence
    assert divergence(law.costs.tolist(), 1.5 / 4, order) == pytest.approx(exact)


# What the proof needs


@pytest.mark.parametrize("n_items", [2, 5, 12, 31])
@pytest.mark.parametrize("alpha", [0.05, 1.0, 6.0, 40.0])
def test_ranks_grow_and_more_items_cross_a_cut_from_the_smaller_side(n_items, alpha):
    below = pm.Mallows(np.arange(1, n_items + 1), alpha).rank_probabilities().cumsum(axis=1)
    assert (np.diff(below[:, :-1], axis=0) < 1e-15).all()  # item + 1 is stochastically larger
    for cut in range(1, n_items // 2 + 1):  # the items next to it are cut - 1 and cut
        assert below[cut, cut - 1] <= 1 - below[cut - 1, cut - 1] + 1e-12
        assert below[cut, cut - 1] < 0.5


@pytest.mark.parametrize("n_items", [4, 5, 6])
def test_neighbours_exchange_ranks_at_the_lowest_cost(n_items):
    costs = mean_costs(n_items, 1.3)
    second = costs[:-1, :-1] + costs[1:, 1:] - costs[1:, :-1] - costs[:-1, 1:]
    assert (second < 0).all()  # a strict Monge array


# What the paper says


@pytest.mark.parametrize("alpha", [0.2, 1.0, 4.0])
def test_lemma_1_mean_ranks_grow_along_the_consensus(alpha):
    means = pm.Mallows(np.arange(1, 10), alpha).expected_ranks()
    assert (np.diff(means) > 0).all()
    exact = naive.marginals(naive.mallows((1, 2, 3, 4), alpha))
    means = [sum((rank + 1) * p for rank, p in enumerate(row)) for row in exact]
    assert means == sorted(means)


@pytest.mark.parametrize("alpha", [0.5, 2.0])
def test_theorem_1_mean_ranks_of_many_users_are_in_the_order_of_the_consensus(alpha):
    consensus = np.random.default_rng(1).permutation(8) + 1
    rankings = pm.Mallows(consensus, alpha).draw(20_000, rng=1)
    assert (rankings.mean(axis=0).argsort().argsort() + 1 == consensus).all()


@pytest.mark.parametrize("alpha", [0.2, 1.0, 4.0])
def test_appendix_b_the_rank_of_the_middle_item_is_symmetric(alpha):
    probabilities = pm.Mallows(np.arange(1, 10), alpha).rank_probabilities()
    np.testing.assert_allclose(probabilities[4], probabilities[4, ::-1], atol=1e-13)
    assert np.abs(probabilities[3] - probabilities[3, ::-1]).max() > 1e-4


def cheapest_and_median(n_items, alpha, item, used):
    """Of the free ranks, the cheapest, and the median of the item's rank given that it is free."""
    free = [rank for rank in range(n_items) if rank not in used]
    cheapest = min(free, key=lambda rank: mean_costs(n_items, alpha)[item, rank])
    row = pm.Mallows(np.arange(1, n_items + 1), alpha).rank_probabilities()[item, free]
    return cheapest, free[int((row.cumsum() / row.sum() < 0.5).sum())]


def test_appendix_a_the_mode_of_a_factor_is_a_median_in_v_orders_but_not_in_general():
    assert cheapest_and_median(5, 1.0, 4, {0, 1, 2}) == (3, 4)  # ranks 4 and 5
    for order in v_orders(5).tolist():
        for step, item in enumerate(order):
            used = set(order[:step])
            assert cheapest_and_median(5, 1.0, item, used) == (item, item)
