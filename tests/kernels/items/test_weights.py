"""Regressions from item to item, and the ranks of hidden items, against their definitions."""

import math

import numpy as np
import pytest
from scipy.optimize import nnls

from helpers import interpreted
from pseudomallows.kernels.items.weights import (
    admit,
    descend,
    nonnegative_rows,
    padded,
    value_of_steps,
)

pytestmark = pytest.mark.kernel


def products_of_clicks(n_items=7, seed=1):
    rng = np.random.default_rng(seed)
    clicked = rng.random((60, n_items)) < rng.random(n_items)
    return clicked.T.astype(float) @ clicked


def exact_rows(products, ridge, lasso):
    """By SciPy: half w'Aw - b'w with A = LL' is the least squares of L'w on the solution of Lz = b;
    a weight that the target would have on itself is left out."""
    n_items = len(products)
    found = np.zeros((n_items, n_items))
    for target in range(n_items):
        others = [item for item in range(n_items) if item != target]
        lower = np.linalg.cholesky(products[np.ix_(others, others)] + ridge * np.eye(n_items - 1))
        right = np.linalg.solve(lower, products[target, others] - lasso)
        found[target, others] = nnls(lower.T, right)[0]
    return found


@pytest.mark.parametrize(("ridge", "lasso"), [(3.0, 0.0), (1.0, 4.0), (0.1, 0.0)])
def test_weights_of_0_or_more_solve_their_least_squares(ridge, lasso):
    products = products_of_clicks()
    found = np.zeros((7, 7))
    nonnegative_rows(products, ridge, lasso, 1e-12, 0, found)
    exact = exact_rows(products, ridge, lasso)
    assert found == pytest.approx(exact, abs=1e-8)
    assert (found >= 0).all()
    assert (np.diag(found) == 0).all()
    assert (exact == 0).sum() > 7  # some weights would be negative
    other = exact_rows(products, 1.2 * ridge, lasso)
    assert found != pytest.approx(other, abs=1e-8)


def test_a_start_near_by_leads_to_the_same_weights():
    products, other = products_of_clicks(), products_of_clicks(seed=2)
    start = np.zeros((7, 7))
    nonnegative_rows(other, 2.0, 1.0, 1e-12, 0, start)
    start += np.eye(7)  # the weight of an item on itself is taken away
    nonnegative_rows(products, 2.0, 1.0, 1e-12, 0, start)
    assert start == pytest.approx(exact_rows(products, 2.0, 1.0), abs=1e-8)


def test_blocks_of_targets_have_the_bits_of_all():
    products = products_of_clicks()
    whole, parts = np.zeros((7, 7)), np.zeros((7, 7))
    nonnegative_rows(products, 2.0, 1.0, 1e-4, 0, whole)
    for first in (0, 3, 6):
        nonnegative_rows(products, 2.0, 1.0, 1e-4, first, parts[first : first + 3])
    assert (whole == parts).all()


def test_compiled_and_interpreted_are_the_same():
    products = products_of_clicks()
    one, two = np.zeros((7, 7)), np.zeros((7, 7))
    nonnegative_rows(products, 2.0, 1.0, 1e-4, 0, one)
    interpreted(nonnegative_rows)(products, 2.0, 1.0, 1e-4, 0, two)
    assert one == pytest.approx(two, abs=1e-13)  # compiled, a * b + c may round once


@pytest.mark.parametrize("kernel", [descend, interpreted(descend)])
def test_a_descent_ends_where_no_weight_gains(kernel):
    """With 7 weights: four at once, and three one by one; zeros behind them stay."""
    products, linear = products_of_clicks(), np.array([9.0, 20, -3, 15, 1, 12, 30])
    inner, left, weights = np.zeros((7, padded(7))), np.zeros(padded(7)), np.full(7, 0.1)
    inner[:, :7], left[:7] = products, linear - products @ weights
    assert not kernel(inner, (2.0, 1e-12), 1, left, weights)
    assert kernel(inner, (2.0, 1e-12), 1000, left, weights)
    assert left[:7] == pytest.approx(linear - products @ weights)
    assert (left[7:] == 0).all()
    gains = left[:7] - 2.0 * weights
    assert gains[weights > 0] == pytest.approx(0.0, abs=1e-9)
    assert (gains[weights == 0] <= 0).all()
    assert 0 < (weights > 0).sum() < 7
    assert len(left) % 4 == 0


@pytest.mark.parametrize("kernel", [admit, interpreted(admit)])
def test_those_that_gain_most_are_let_in(kernel):
    left, shares = np.array([5.0, 9, 2, 8, 9, 0.1]), np.array([1.0, 1, 4, 0.01, 0.5, 1])
    bars, chosen = np.array([0.5, 0.5, 0.5, 0.5, np.inf, 0.5]), np.full(6, -1)
    chosen[0] = 4
    assert kernel(left, shares, 2, bars, chosen, 1) == (3, 4)
    assert chosen.tolist() == [4, 0, 1, -1, -1, -1]  # by 25 and 81; then 16 and 0.64
    assert np.isinf(bars[[0, 1, 4]]).all()
    assert kernel(left, shares, 2, bars, chosen, 3) == (5, 2)
    assert chosen.tolist() == [4, 0, 1, 2, 3, -1]
    assert kernel(left, shares, 2, bars, chosen, 5) == (5, 0)


def test_more_items_than_are_let_in_at_a_time_have_the_same_weights():
    rng = np.random.default_rng(3)
    clicked = rng.random((400, 90)) < rng.uniform(0.2, 0.6, 90)
    products, found = clicked.T.astype(float) @ clicked, np.zeros((2, 90))
    nonnegative_rows(products, 20.0, 0.0, 1e-10, 3, found)
    assert found == pytest.approx(exact_rows(products, 20.0, 0.0)[3:5], abs=1e-7)
    assert ((found > 0).sum(axis=1) > 20).all()


def test_an_item_without_clicks_has_no_weights():
    products = products_of_clicks()
    products[2], products[:, 2] = 0.0, 0.0
    found = np.zeros((7, 7))
    nonnegative_rows(products, 2.0, 0.0, 1e-8, 0, found)
    assert (found[2] == 0).all()
    assert (found[:, 2] == 0).all()


def naive_value(scores, hidden, clicked, k):
    """By the definition, from the scores themselves."""
    unseen = [item for item in range(len(scores)) if item not in clicked and item != hidden]
    rank = sum(scores[item] > scores[hidden] for item in unseen)
    rank += sum(scores[item] == scores[hidden] for item in unseen) / 2
    return 1 / (1 + math.exp((rank + 0.5 - k) / 3))


@pytest.mark.parametrize("kernel", [value_of_steps, interpreted(value_of_steps)])
def test_values_of_hidden_items_follow_their_definition(kernel):
    rng, n_items, steps = np.random.default_rng(1), 8, np.array([0, 0.5, -0.25, 2], np.float32)
    parts = rng.integers(0, 4, (2, 5, n_items)).astype(np.float32)  # whole numbers: with ties
    hidden, clicked = rng.integers(0, 4, 5), [[4], [], [5, 6], [7], [4, 5, 6, 7]]
    leads = parts - np.take_along_axis(parts, np.tile(hidden[None, :, None], (2, 1, 1)), axis=2)
    unseen = np.ones((5, n_items), dtype=bool)
    for case, items in enumerate(clicked):
        unseen[case, items] = False
    starts, values = np.concatenate([[0], np.cumsum(unseen.sum(axis=1))]), np.empty((4, 5))
    kernel(starts, leads[0][unseen], leads[1][unseen], steps, 3, values)
    for s, step in enumerate(steps):
        for case in range(5):
            scores = parts[0, case] + step * parts[1, case]
            exact = naive_value(scores.tolist(), hidden[case], clicked[case], 3)
            assert values[s, case] == pytest.approx(exact)
