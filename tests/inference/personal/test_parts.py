"""The parts of a blend, against plain NumPy and SciPy."""

import numpy as np
import pytest
from scipy.optimize import nnls

import pseudomallows as pm
from pseudomallows.engines.executors import Threads
from pseudomallows.inference.personal import parts as module
from pseudomallows.inference.personal.parts import (
    POOL,
    ClosedForm,
    Factors,
    Popularity,
    Products,
    Regression,
    first_eigenvectors,
    pool_for,
)

N_ITEMS = 12


def clicks(n_users=150, weights=None, seed=1):
    rng = np.random.default_rng(seed)
    clicked = rng.random((n_users, N_ITEMS)) < rng.uniform(0.05, 0.6, N_ITEMS)
    clicked[:, -1] = False  # an item that nobody clicked
    clicked[0] = False  # a user without clicks
    return pm.Preferences.from_clicks(clicked, weights=weights), clicked.astype(float)


def plain_products(clicked, power, weights=1.0):
    """X' diag(weights n_u^-power) X."""
    sizes = np.maximum(clicked.sum(axis=1), 1)
    return clicked.T @ np.diag(weights * sizes**-power) @ clicked


@pytest.mark.parametrize("power", [0, 0.5, 1])
def test_products_weigh_users_by_their_clicks(power):
    weights = np.random.default_rng(2).integers(0, 4, 150)
    prefs, clicked = clicks(weights=weights)
    products = Products(prefs, Threads(1))
    assert products.of(power) == pytest.approx(plain_products(clicked, power, weights))
    assert products.of(power) is products.of(power)


@pytest.mark.parametrize("part", [part for part in POOL if isinstance(part, Regression)])
def test_a_regression_has_the_least_squares_with_weights_of_0_or_more(part, monkeypatch):
    monkeypatch.setattr(module, "TOLERANCE", 1e-12)
    prefs, clicked = clicks()
    table = plain_products(clicked, part.power)
    unit = np.diag(table).mean()
    found = part.learn(Products(prefs, Threads(1)))
    for target in range(N_ITEMS):
        others = [item for item in range(N_ITEMS) if item != target]
        left = table[np.ix_(others, others)] + part.ridge * unit * np.eye(N_ITEMS - 1)
        lower = np.linalg.cholesky(left)
        right = np.linalg.solve(lower, table[others, target] - part.lasso * unit)
        assert found[others, target] == pytest.approx(nnls(lower.T, right)[0], abs=1e-8)
        assert found[target, target] == 0


@pytest.mark.parametrize("part", [part for part in POOL if isinstance(part, ClosedForm)])
def test_a_closed_form_solves_the_regression_of_each_item(part):
    prefs, clicked = clicks()
    table = plain_products(clicked, part.power)
    counts = np.diag(table)
    penalty = np.diag(part.ridge * counts.mean() + part.own * counts)
    found = part.learn(Products(prefs, Threads(1)))
    for target in range(N_ITEMS):
        others = [item for item in range(N_ITEMS) if item != target]
        left = (table + penalty)[np.ix_(others, others)]
        exact = np.linalg.solve(left, table[others, target])
        assert found[others, target] == pytest.approx(exact)
        assert found[target, target] == 0


@pytest.mark.parametrize("part", [Factors(0, 4, 0.5), Factors(1, 2, 0.75), Factors(0.5, 3, 0.5)])
def test_factors_are_those_of_the_scaled_clicks(part):
    """By the singular vectors of the users' clicks, not by the products of the items."""
    prefs, clicked = clicks()
    sizes = np.maximum(clicked.sum(axis=1), 1)
    weighted = clicked * sizes[:, None] ** (-part.power / 2)
    scales = ((weighted**2).sum(axis=0) + 1) ** -part.damping
    right = np.linalg.svd(weighted * scales)[2][: part.n_factors]
    exact = np.diag(scales) @ right.T @ right @ np.diag(1 / scales)
    np.fill_diagonal(exact, 0.0)
    found = part.learn(Products(prefs, Threads(1)))
    assert found == pytest.approx(exact, abs=1e-9)


def test_some_eigenvectors_of_a_large_matrix_span_the_same_space(monkeypatch):
    rng = np.random.default_rng(1)
    half = rng.normal(size=(60, 60)) * np.geomspace(1, 0.01, 60)
    matrix = half @ half.T
    dense = first_eigenvectors(matrix)
    monkeypatch.setattr(module, "DENSE_EIGEN", 10)
    some = first_eigenvectors(matrix)
    assert some.shape == dense.shape == (60, 32)
    for n_factors in (1, 8, 32):
        one, other = (vectors[:, :n_factors] for vectors in (dense, some))
        assert one @ one.T == pytest.approx(other @ other.T, abs=1e-6)


def test_threads_and_starts_leave_no_trace():
    prefs, _ = clicks(2000)
    for part in pool_for(N_ITEMS):
        if isinstance(part, Popularity):
            continue
        one, two = (part.learn(Products(prefs, Threads(n))) for n in (1, 2))
        assert (one == two).all()
        assert part.learn(Products(prefs, Threads(1)), one) == pytest.approx(one, abs=1e-3)


def test_few_items_have_few_factors():
    assert pool_for(200) == list(POOL)
    assert [part for part in pool_for(20) if isinstance(part, Factors)] == [Factors(0.5, 8, 0.5)]
    assert not any(isinstance(part, Factors) for part in pool_for(10))


def test_names_tell_the_parts_apart():
    assert len({part.name for part in POOL}) == len(POOL)
