"""The search for visit orders, on few items against all of them."""

import itertools
import math

import numpy as np
import pytest

import naive
import pseudomallows as pm
from pseudomallows.kernels import subsets
from pseudomallows.paper.search import leap_and_shift, next_order, single_moves
from pseudomallows.scores import rank_divergence

N_ITEMS = 5


def simulated(seed, n_users=100, alpha=1.0, n_items=N_ITEMS):
    """Rankings around a random consensus."""
    rng = np.random.default_rng(seed)
    return pm.Mallows(rng.permutation(n_items) + 1, alpha).draw(n_users, rng)


def all_divergences(rankings, alpha):
    """{visit order: its marginal divergence}, both sides by their definitions."""
    exact = naive.marginals(naive.posterior(rankings.tolist(), alpha))
    n_items = rankings.shape[1]
    return {
        order: rank_divergence(
            np.array(naive.marginals(naive.pseudo_mallows(rankings.tolist(), alpha, order))),
            np.array(exact),
        )
        for order in itertools.permutations(range(n_items))
    }


def test_the_path_has_the_right_divergences():
    rankings = simulated(1, n_users=12, alpha=2.0, n_items=4)
    expected = all_divergences(rankings, 2.0)
    found = pm.paper.search(rankings, 2.0, start=[0, 1, 2, 3])
    assert found.visit_orders[0].tolist() == [0, 1, 2, 3]
    for order, divergence in zip(found.visit_orders, found.divergences, strict=True):
        assert divergence == pytest.approx(expected[tuple(order.tolist())], abs=1e-9)
    assert found.divergence == found.divergences.min()
    assert expected[tuple(found.visit_order.tolist())] == pytest.approx(found.divergence, abs=1e-9)


def test_polished_the_search_finds_the_best_of_all_orders_from_most_starts():
    hits, rng = 0, np.random.default_rng(20_240_601)
    for seed in range(10):
        law = pm.PseudoMallows(simulated(seed), 1.0)
        exact = law.exact_rank_probabilities()
        values = [
            rank_divergence(law.rank_probabilities(order), exact)
            for order in itertools.permutations(range(N_ITEMS))
        ]
        start = rng.permutation(N_ITEMS)
        plain = pm.paper.search(simulated(seed), 1.0, start=start)
        found = pm.paper.search(simulated(seed), 1.0, start=start, polish=True)
        assert found.settled
        assert found.divergence <= plain.divergence
        np.testing.assert_array_equal(
            found.visit_orders[: len(plain.visit_orders)], plain.visit_orders
        )
        assert found.divergence < np.quantile(values, 0.05)
        hits += found.divergence <= min(values) + 1e-9
    assert hits >= 7  # a random order has a probability of 1 in 120


def test_polished_no_single_move_helps():
    rankings = simulated(5, n_users=30, n_items=6)
    found = pm.paper.search(rankings, 1.0, start=range(6), polish=True)
    last = found.visit_orders[-1]
    for now, then in itertools.product(range(6), repeat=2):
        moved = pm.paper.search(
            rankings, 1.0, start=leap_and_shift(last, now, then), n_iterations=1
        )
        assert moved.divergences[0] >= found.divergence - 1e-9


def test_an_iteration_solves_the_assignment_of_single_moves():
    order, target = np.arange(4), np.array([2, 0, 3, 1])

    def measure(order):
        return float(np.abs(np.argsort(order) - np.argsort(target)).sum())

    changes = {
        (now, then): measure(leap_and_shift(order, now, then)) - measure(order)
        for now, then in itertools.product(range(4), repeat=2)
    }
    best = min(
        itertools.permutations(range(4)),
        key=lambda places: sum(changes[now, then] for now, then in enumerate(places)),
    )
    found = next_order(order, single_moves(order, measure(order), measure))
    total = sum(changes[now, int(then)] for now, then in enumerate(np.argsort(found)))
    assert total == sum(changes[now, then] for now, then in enumerate(best))


def test_leap_and_shift_moves_one_item_and_keeps_the_order_of_the_others():
    order = np.array([4, 2, 0, 1, 3])
    for now, then in itertools.product(range(5), repeat=2):
        moved = leap_and_shift(order, now, then)
        assert moved[then] == order[now]
        assert [x for x in moved if x != order[now]] == [x for x in order if x != order[now]]
    assert leap_and_shift(order, 3, 1).tolist() == [4, 1, 2, 0, 3]


def test_draws_come_near_the_exact_search():
    rankings = simulated(3)
    exact = pm.paper.search(rankings, 1.0, start=range(N_ITEMS))
    drawn = pm.paper.search(
        rankings, 1.0, start=range(N_ITEMS), n_draws=20_000, n_iterations=3, rng=1
    )
    assert len(drawn.divergences) == 4
    assert drawn.divergences[0] == pytest.approx(exact.divergences[0], rel=0.02)
    again = pm.paper.search(
        rankings, 1.0, start=range(N_ITEMS), n_draws=20_000, n_iterations=3, rng=1
    )
    np.testing.assert_array_equal(drawn.visit_orders, again.visit_orders)


def test_many_items_are_searched_by_draws():
    n_items = 21
    rankings = pm.Mallows(np.arange(1, n_items + 1), 3.0).draw(40, rng=1)
    found = pm.paper.search(rankings, 3.0, n_iterations=1, n_draws=20, rng=1)
    assert found.visit_orders.shape == (2, n_items)


def test_the_start_is_a_v_ranking_of_the_mean_ranks():
    rankings = np.array([[1, 2, 3, 4, 5]] * 3)
    found = pm.paper.search(rankings, 1.0, n_iterations=1, rng=1)
    order = found.visit_orders[0].tolist()
    assert order[0] == 2
    assert set(order[1:3]) == {1, 3}


def test_the_words_about_a_search():
    found = pm.paper.search(simulated(2), 1.0, rng=1)
    assert repr(found).startswith(f"Search(divergence {found.divergence:.3g}, from ")
    n_iterations = len(found.divergences) - 1
    assert repr(found).endswith(f"settled after {n_iterations} iterations)") == found.settled


@pytest.mark.parametrize("start", [[0, 1, 2], [1, 2, 3, 4, 5], [0, 0, 1, 2, 3]])
def test_a_bad_start_is_refused(start):
    with pytest.raises(ValueError, match=r"start must hold each of the items 0\.\.4 once"):
        pm.paper.search(simulated(1), 1.0, start=start)


def test_bad_numbers_are_refused():
    with pytest.raises(ValueError, match="n_iterations"):
        pm.paper.search(simulated(1), 1.0, n_iterations=0)
    with pytest.raises(ValueError, match="n_draws"):
        pm.paper.search(simulated(1), 1.0, n_draws=0)
    with pytest.raises(ValueError, match="floor"):
        pm.paper.search(simulated(1), 1.0, floor=0)


@pytest.mark.kernel
@pytest.mark.parametrize("least", [0.0, 1e-3])
def test_likely_subsets_give_the_marginals(least):
    rankings = simulated(4, n_users=6, n_items=4).tolist()
    law = pm.PseudoMallows(rankings, 2.0)
    log_weights, order = -2.0 / 4 * law.costs, np.array([2, 0, 3, 1])
    expected = np.array(naive.marginals(naive.pseudo_mallows(rankings, 2.0, order.tolist())))
    kernel = subsets.pseudo_by_subsets
    for function in (kernel, getattr(kernel, "py_func", kernel)):
        room, marginals = subsets.room_for_sets(4), np.empty((4, 4))
        function(log_weights, order, False, least, room, marginals)
        assert not room[0].any()
        np.testing.assert_allclose(marginals, expected, atol=max(1e-12, 10 * least))


@pytest.mark.kernel
def test_unlikely_subsets_are_left_out():
    log_weights = np.array([[0.0, -50.0], [-50.0, 0.0]])
    marginals = np.empty((2, 2))
    room = subsets.room_for_sets(2)
    subsets.pseudo_by_subsets(log_weights, np.array([0, 1]), False, 1e-6, room, marginals)
    assert marginals[1].tolist() == [0.0, 1.0]


@pytest.mark.kernel
def test_shares_too_small_for_a_number_list_no_set_twice():
    n_items = 5
    log_weights = -200.0 * np.abs(np.arange(n_items)[:, None] - np.arange(n_items))
    marginals = np.empty((n_items, n_items))
    room, kernel = subsets.room_for_sets(n_items), subsets.pseudo_by_subsets
    interpreted = getattr(kernel, "py_func", kernel)  # it would see the end of the lists
    interpreted(log_weights, np.arange(n_items), False, 0.0, room, marginals)
    np.testing.assert_allclose(marginals, np.eye(n_items), atol=1e-12)
    assert not room[0].any()


# The divergence


def test_the_divergence_follows_the_definition():
    left = np.array([[0.5, 0.5], [0.5, 0.5]])
    right = np.array([[0.9, 0.1], [0.1, 0.9]])
    exact = 2 * (0.5 * math.log(0.5 / 0.9) + 0.5 * math.log(0.5 / 0.1))
    assert rank_divergence(left, right) == pytest.approx(exact)
    draws, reference = [[1, 2], [2, 1]], [[1, 2]] * 9 + [[2, 1]]
    assert pm.marginal_divergence(draws, reference) == pytest.approx(exact)
    assert pm.marginal_divergence([[1, 2], [2, 1]], reference, weights=[9, 1]) == pytest.approx(0)


def test_the_floor_is_the_same_on_both_sides():
    one, other = [[1, 2]], [[2, 1]]
    for floor in (1e-3, 1e-6):
        low, high = floor / (1 + floor), 1 / (1 + floor)
        exact = 2 * (high * math.log(high / low) + low * math.log(low / high))
        assert pm.marginal_divergence(one, other, floor=floor) == pytest.approx(exact)
        assert pm.marginal_divergence(other, one, floor=floor) == pytest.approx(exact)
