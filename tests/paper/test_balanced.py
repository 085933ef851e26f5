import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

import pseudomallows as pm
from pseudomallows.kernels.balancing import newton_direction
from pseudomallows.paper import balanced as balance


def sums(log_weights):
    matrix = np.exp(log_weights)
    return np.concatenate([matrix.sum(axis=0), matrix.sum(axis=1)])


@given(st.integers(2, 12), st.sampled_from([0.0, 1.0, 30.0, 1000.0]), st.integers(0, 100))
def test_sums_are_within_the_tolerance_and_prices_are_of_rows_and_columns(n_items, scale, seed):
    log_weights = -scale * np.random.default_rng(seed).random((n_items, n_items))
    found = balance.balance_weights(log_weights)
    assert np.abs(sums(found) - 1).max() <= balance.TOLERANCE
    prices = found - log_weights  # row price + column price: every 2 x 2 block adds up
    crossed = prices - prices[:1] - prices[:, :1] + prices[0, 0]
    assert np.abs(crossed).max() < 1e-6 * (1 + scale)


@pytest.mark.parametrize(
    ("n_users", "n_items", "alpha"), [(500, 50, 5), (10_000, 30, 40), (1, 9, 3)]
)
def test_real_costs_are_balanced(n_users, n_items, alpha):
    rankings = pm.Mallows(np.arange(1, n_items + 1), alpha).draw(n_users, rng=1)
    found = pm.PseudoMallows(rankings, alpha, balanced=True).balanced_marginals()
    assert np.abs(found.sum(axis=0) - 1).max() <= balance.TOLERANCE
    assert np.abs(found.sum(axis=1) - 1).max() <= balance.TOLERANCE


def test_plain_sinkhorn_goes_to_the_same_matrix():
    log_weights = -3 * np.random.default_rng(1).random((6, 6))
    plain = np.exp(log_weights)
    for _ in range(500):
        plain /= plain.sum(axis=1, keepdims=True)
        plain /= plain.sum(axis=0)
    assert np.abs(np.log(plain) - balance.balance_weights(log_weights)).max() < 1e-5


def test_steps_lead_to_the_balance():
    rankings = pm.Mallows(np.arange(1, 51), 5).draw(500, rng=1)
    log_weights = pm.PseudoMallows(rankings, 5).posterior_weights
    early, late = (balance.balance_weights(log_weights, max_steps=n) for n in (1, 200))
    assert np.abs(sums(early) - 1).max() > balance.TOLERANCE
    assert np.abs(sums(late) - 1).max() <= balance.TOLERANCE


def test_sharp_weights_are_balanced_quickly_and_cells_may_vanish():
    # Cells of exp(-5000) are 0; with Sinkhorn alone this would take rounds without end.
    log_weights = -100.0 * np.abs(np.arange(60)[:, None] - np.arange(60))
    log_weights[:, 1] = log_weights[:, 0]
    found = balance.balance_weights(log_weights, max_steps=40)
    assert np.abs(sums(found) - 1).max() <= balance.TOLERANCE
    assert np.exp(found[:2, :2]) == pytest.approx(np.full((2, 2), 0.5), abs=1e-6)


@pytest.mark.kernel
def test_a_newton_direction_solves_its_equations():
    matrix = np.random.default_rng(1).random((5, 5)) + 0.1
    rows, columns = matrix.sum(axis=1), matrix.sum(axis=0)
    steps = np.empty((2, 5))
    newton_direction(matrix, rows, columns, 1e-6, *steps)
    assert (rows + 1e-6) * steps[0] + matrix @ steps[1] == pytest.approx(1 - rows)
    assert matrix.T @ steps[0] + columns * steps[1] == pytest.approx(1 - columns)


def test_assignment_prices_support_the_best_assignment():
    log_weights = -50 * np.random.default_rng(4).random((7, 7))
    rows, columns = balance.assignment_prices(log_weights)
    priced = log_weights + rows[:, None] + columns
    assert priced[linear_sum_assignment(priced, maximize=True)] == pytest.approx(np.zeros(7))
    assert priced.max() < 1e-6
