"""Tallies against their definitions, with the footrule and with a distance made up here."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from helpers import choose, p_value
from pseudomallows.distances.footrule import FOOTRULE
from pseudomallows.distances.tallies import MOVES, Proposals, RankTally, best_assignment
from pseudomallows.kernels.moves import move_consensus
from pseudomallows.kernels.streams import start_stream
from pseudomallows.paper.pseudo import PseudoMallows

RANKINGS = np.array([[1, 2, 3, 4], [2, 1, 3, 4], [1, 3, 2, 4], [4, 3, 1, 2]], dtype=np.int32)
WEIGHTS = np.array([3, 1, 0, 2])


class Squares:
    """The square of the difference in rank, made up for these tests."""

    name = "squares"

    def prices(self, n_items):
        """``prices[rank - 1, other - 1]``."""
        ranks = np.arange(n_items)
        return (ranks[:, None] - ranks) ** 2

    def costs(self, counts):
        """``costs[item, rank - 1]``."""
        return counts @ self.prices(len(counts))


PRICES = pytest.mark.parametrize("prices", [FOOTRULE, Squares()], ids=lambda prices: prices.name)


def tally_of(prices, rankings=RANKINGS, weights=WEIGHTS):
    n_items = rankings.shape[1]
    tally = RankTally(prices, np.zeros((n_items, n_items), dtype=np.int64))
    tally.add(rankings, weights)
    return tally


def distance_of(prices, consensus, rankings=RANKINGS, weights=WEIGHTS):
    """By definition: over all users and items, the price of two ranks."""
    table = prices.prices(rankings.shape[1])
    return sum(
        int(weight) * int(table[rank - 1, other - 1])
        for ranking, weight in zip(rankings, weights, strict=True)
        for rank, other in zip(ranking, consensus, strict=True)
    )


def as_ranking(ranking):
    return np.array(ranking, dtype=np.int32)


def test_add_counts_users_by_item_and_rank():
    counts = tally_of(FOOTRULE).counts
    for item, rank in itertools.product(range(4), range(1, 5)):
        assert counts[item, rank - 1] == WEIGHTS[RANKINGS[:, item] == rank].sum()
    assert counts.sum() == 4 * WEIGHTS.sum()


def test_add_skips_ranks_that_are_not_known():
    tally = tally_of(FOOTRULE, as_ranking([[0, 1, 0, 2]]), np.array([5]))
    assert tally.counts.sum() == 10
    assert tally.counts[1, 0] == tally.counts[3, 1] == 5


def test_costs_are_new_after_users_are_added():
    tally = tally_of(FOOTRULE)
    before = tally.costs.copy()
    tally.add(RANKINGS[2:3], np.array([7]))
    assert (tally.costs != before).any()
    assert (
        tally.costs == tally_of(FOOTRULE, weights=WEIGHTS + 7 * np.eye(4, dtype=int)[2]).costs
    ).all()


@PRICES
def test_the_distance_follows_the_definition(prices):
    tally = tally_of(prices)
    for consensus in naive.all_rankings(4):
        assert tally.distance(as_ranking(consensus)) == distance_of(prices, consensus)


def test_the_distance_of_the_footrule_is_that_of_all_users():
    tally = tally_of(FOOTRULE)
    for consensus in naive.all_rankings(4):
        exact = (FOOTRULE.between(RANKINGS, consensus) * WEIGHTS).sum()
        assert tally.distance(as_ranking(consensus)) == exact


@PRICES
def test_costs_are_the_distance_of_one_choice(prices):
    costs, table = tally_of(prices).costs, prices.prices(4)
    for item, rank in itertools.product(range(4), range(4)):
        assert costs[item, rank] == (WEIGHTS * table[RANKINGS[:, item] - 1, rank]).sum()


@PRICES
@given(weights=st.lists(st.integers(0, 9), min_size=4, max_size=4))
def test_the_best_consensus_has_the_smallest_distance(prices, weights):
    tally = tally_of(prices, weights=np.array(weights))
    least = min(tally.distance(as_ranking(ranking)) for ranking in naive.all_rankings(4))
    best = tally.best()
    assert sorted(best.tolist()) == [1, 2, 3, 4]
    assert tally.distance(best) == least


def test_the_best_assignment_is_that_of_the_lowest_cost():
    costs = np.array([[5, 1, 9], [0, 2, 8], [7, 7, 1]])
    assert best_assignment(costs).tolist() == [2, 1, 3]


def test_rank_sums_order_the_items_as_mean_ranks_do():
    exact = (WEIGHTS[:, None] * (RANKINGS - 1)).sum(axis=0)
    assert tally_of(FOOTRULE).rank_sums().tolist() == exact.tolist()
    assert tally_of(Squares()).rank_sums().tolist() == exact.tolist()


@PRICES
def test_users_added_later_count(prices):
    tally, whole = tally_of(prices, RANKINGS[:1], WEIGHTS[:1]), tally_of(prices)
    assert (tally.costs != whole.costs).any()  # made before the others come
    tally.add(RANKINGS[1:], WEIGHTS[1:])
    assert (tally.counts == whole.counts).all()
    assert (tally.costs == whole.costs).all()


@PRICES
@pytest.mark.parametrize("move", MOVES)
def test_a_move_is_that_of_the_chain_on_the_costs(prices, move):
    tally, ends = tally_of(prices), []
    for moves in (
        lambda stream, end: tally.move(stream, 0.1, Proposals(30, move, leap=2), end),
        lambda stream, end: move_consensus(stream, tally.costs, 0.1, MOVES[move], 2, 30, end),
    ):
        stream, end = np.empty(1, dtype=np.uint64), as_ranking([1, 2, 3, 4])
        start_stream(7, 1, 0, stream)
        moves(stream, end)
        ends.append((end.tolist(), int(stream[0])))
    assert ends[0] == ends[1]


def ends_of_moves(prices, alpha):
    """Start from the posterior at alpha = 1, move at `alpha`: p-value of where it ends."""
    law = naive.normalise({r: np.exp(-distance_of(prices, r) / 4) for r in naive.all_rankings(4)})
    ends = choose(law, 40_000, np.random.default_rng(1)).astype(np.int32)
    tally, stream = tally_of(prices), np.empty(1, dtype=np.uint64)
    for number, consensus in enumerate(ends):
        start_stream(7, number, 0, stream)
        tally.move(stream, alpha / 4, Proposals(6), consensus)
    return p_value(ends, law)


def test_moves_leave_the_exact_posterior_as_it_is():
    assert ends_of_moves(FOOTRULE, 1.0) > 1e-4


def test_moves_at_another_alpha_are_caught():
    assert ends_of_moves(FOOTRULE, 1.5) < 1e-6


# The V order is that of mean ranks. With the footrule the costs of rank 1 happen to be the sums of
# ranks, so an order by these costs is right for the footrule alone.

APART, N_USERS = as_ranking([[1, 3, 2], [1, 2, 3], [3, 2, 1]]), np.array([2, 3, 2])


def test_costs_of_rank_1_order_the_items_by_mean_rank_for_the_footrule_only():
    sums, squares = tally_of(FOOTRULE, APART, N_USERS), tally_of(Squares(), APART, N_USERS)
    assert np.argsort(sums.costs[:, 0]).tolist() == np.argsort(sums.rank_sums()).tolist()
    assert np.argsort(squares.costs[:, 0]).tolist() != np.argsort(squares.rank_sums()).tolist()


def v_mixture(tally, alpha, order_of):
    """The law of Algorithm 3 by definition, the items ordered by `order_of`."""
    n_items, weights = tally.n_items, np.exp(-alpha / tally.n_items * tally.costs)
    ranking = np.argsort(np.argsort(order_of)) + 1
    orders = [np.argsort(v) for v in naive.v_set(tuple(ranking.tolist()))]
    law = dict.fromkeys(naive.all_rankings(n_items), 0.0)
    for consensus, order in itertools.product(law, orders):
        probability, free = 1.0, set(range(n_items))
        for item in order:
            probability *= weights[item, consensus[item] - 1] / weights[item, list(free)].sum()
            free.remove(consensus[item] - 1)
        law[consensus] += probability / len(orders)
    return law


@pytest.mark.parametrize("sigma", [0.0, 1e-9])
def test_draws_for_another_distance_follow_the_law_of_mean_ranks(sigma):
    tally = tally_of(Squares(), APART, N_USERS)
    q = PseudoMallows.from_tally(tally, 0.3, sigma=sigma)
    law = v_mixture(tally, 0.3, tally.rank_sums())
    draws = q.draw(40_000, rng=1)
    assert p_value(draws, law) > 1e-4
    if sigma:
        return
    for ranking, probability in law.items():
        assert q.log_probability(ranking) == pytest.approx(np.log(probability))
    assert p_value(draws, v_mixture(tally, 0.3, tally.costs[:, 0])) < 1e-6
