"""Regressions from item to item, and the ranks of hidden items, against their definitions."""

import math

import numpy as np
import pytest
from scipy.optimize import nnls

from helpers import interpreted
from pseudomallows.kernels.items.weights import descend, nonnegative_rows, value_of_steps

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


def test_a_descent_takes_the_chosen_items_only():
    products = products_of_clicks()
    chosen, linear = np.array([1, 4]), np.array([5.0, -3.0])
    weights = np.array([0.5, 0.5])
    descend(products, linear, 2.0, 1e-12, chosen, weights)
    assert weights == pytest.approx([5.0 / (products[1, 1] + 2.0), 0.0])
    assert linear.tolist() == [5.0, -3.0]


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
    for case, items in enumerate(clicked):
        leads[:, case, items] = 0
        leads[0, case, items] = -1e30
    values = np.empty((4, 5))
    kernel(leads[0], leads[1], steps, 3, values)
    for s, step in enumerate(steps):
        for case in range(5):
            scores = parts[0, case] + step * parts[1, case]
            exact = naive_value(scores.tolist(), hidden[case], clicked[case], 3)
            assert values[s, case] == pytest.approx(exact)
