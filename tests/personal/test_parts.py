"""The parts of a blend, against plain NumPy and SciPy."""

import json

import numpy as np
import pytest
from scipy.optimize import nnls

import pseudomallows as pm
from pseudomallows.data.splits import take_random
from pseudomallows.engines.executors import Threads
from pseudomallows.personal import products as module
from pseudomallows.personal.parts import (
    POOL,
    ClosedForm,
    Factors,
    Popularity,
    Regression,
    law_of,
    part_of,
    pool_for,
)
from pseudomallows.personal.products import (
    AllProducts,
    NearProducts,
    first_eigenvectors,
    taken_from,
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
    products = AllProducts(prefs, Threads(1))
    assert products.of(power) == pytest.approx(plain_products(clicked, power, weights))
    assert products.of(power) is products.of(power)


@pytest.mark.parametrize("part", [part for part in POOL if isinstance(part, Regression)])
def test_a_regression_has_the_least_squares_with_weights_of_0_or_more(part, monkeypatch):
    monkeypatch.setattr(module, "TOLERANCE", 1e-7)  # single precision
    prefs, clicked = clicks()
    table = plain_products(clicked, part.power)
    unit = np.diag(table).mean()
    found = part.learn(AllProducts(prefs, Threads(1))).dense()
    for target in range(N_ITEMS):
        others = [item for item in range(N_ITEMS) if item != target]
        left = table[np.ix_(others, others)] + part.ridge * unit * np.eye(N_ITEMS - 1)
        lower = np.linalg.cholesky(left)
        right = np.linalg.solve(lower, table[others, target] - part.lasso * unit)
        assert found[others, target] == pytest.approx(nnls(lower.T, right)[0], abs=1e-5)
        assert found[target, target] == 0


@pytest.mark.parametrize("part", [part for part in POOL if isinstance(part, ClosedForm)])
def test_a_closed_form_solves_the_regression_of_each_item(part):
    prefs, clicked = clicks()
    table = plain_products(clicked, part.power)
    counts = np.diag(table)
    penalty = np.diag(part.ridge * counts.mean() + part.own * counts)
    found = part.learn(AllProducts(prefs, Threads(1))).dense()
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
    found = part.learn(AllProducts(prefs, Threads(1))).dense()
    assert found == pytest.approx(exact, abs=1e-9)


def test_some_eigenvectors_of_a_large_matrix_span_the_same_space(monkeypatch):
    rng = np.random.default_rng(1)
    half = rng.normal(size=(60, 60)) * np.geomspace(1, 0.01, 60)
    matrix = half @ half.T
    dense = first_eigenvectors(matrix)
    monkeypatch.setattr(module, "CUBIC_ITEMS", 10)
    some = first_eigenvectors(matrix, first_eigenvectors(matrix))[:, :32]
    assert some.shape == (60, 32)
    for n_factors in (1, 8, 32):
        one, other = (vectors[:, :n_factors] for vectors in (dense, some))
        assert one @ one.T == pytest.approx(other @ other.T, abs=1e-4)


def test_threads_and_starts_leave_no_trace():
    prefs, _ = clicks(2000)
    for part in pool_for(N_ITEMS):
        if isinstance(part, Popularity):
            continue
        one, two = (part.learn(AllProducts(prefs, Threads(n))) for n in (1, 2))
        assert (one.dense() == two.dense()).all()
        again = part.learn(AllProducts(prefs, Threads(1)), one).dense()
        assert again == pytest.approx(one.dense(), abs=1e-3)


def test_few_items_have_few_factors():
    assert pool_for(200) == list(POOL)
    assert [part for part in pool_for(20) if isinstance(part, Factors)] == [
        Factors(0, 8, 0.5),
        Factors(0.5, 8, 0.5),
    ]
    assert not any(isinstance(part, Factors) for part in pool_for(10))


def test_names_tell_the_parts_apart():
    assert len({part.name for part in POOL}) == len(POOL)
    assert all(part_of(json.loads(json.dumps(law_of(part)))) == part for part in POOL)
    assert part_of(["Another", 1]) is None


@pytest.mark.parametrize("power", [0, 0.5, 1])
def test_products_of_what_is_left_are_those_of_all_less_what_is_hidden(power):
    weights = np.random.default_rng(2).integers(0, 4, 150)
    prefs, clicked = clicks(weights=weights)
    taken = take_random(prefs, 2, np.random.default_rng(3))
    left, shown = AllProducts(prefs, Threads(1)).without(taken), prefs.choose(~taken)
    kept = np.zeros(clicked.shape)
    for user in range(prefs.n_users):
        kept[user, shown.clicks_of(user)] = 1
    shares = (
        weights * np.maximum(clicked.sum(axis=1), 1) ** -power
    )  # by the clicks of the whole log
    exact = kept.T @ np.diag(shares) @ kept
    assert left.of(power) == pytest.approx(exact, abs=1e-9)
    assert (taken_from(prefs, shown) == taken).all()
    assert taken_from(shown, prefs) is None
    assert taken_from(prefs, prefs.take(np.arange(9))) is None
    near = NearProducts(prefs, Threads(1)).without(taken)
    assert near.norms(power) == pytest.approx(np.diag(exact))


@pytest.mark.parametrize("part", [Regression(0, 0.3), Regression(0.5, 1), Regression(0, 0.5, 0.07)])
@pytest.mark.parametrize("n_head", [0, 5, 12])
def test_with_all_items_near_a_sparse_regression_is_the_whole_one(part, n_head, monkeypatch):
    """Whether the products of pairs come from the table of often clicked items, or from lists."""
    monkeypatch.setattr(module, "N_HEAD", n_head)
    for name, value in (("TOLERANCE", 1e-6), ("NEAR_TOLERANCE", 1e-6), ("LEAST_WEIGHT", 0.0)):
        monkeypatch.setattr(module, name, value)
    prefs, _ = clicks(weights=np.random.default_rng(2).integers(0, 4, 150))
    whole, sparse = (part.learn(kind(prefs, Threads(1))) for kind in (AllProducts, NearProducts))
    assert sparse.is_sparse
    assert sparse.dense() == pytest.approx(whole.dense(), abs=1e-4)
    assert whole.dense().max() > 0.1
    monkeypatch.setattr(module, "N_NEAR", 3)
    monkeypatch.setattr(module, "N_LEAST_NEAR", 3)
    few = part.learn(NearProducts(prefs, Threads(2))).dense()
    assert ((few > 0).sum(axis=0) <= 3).all()
    assert few != pytest.approx(whole.dense(), abs=1e-2)


@pytest.mark.parametrize("part", [Factors(0, 4, 0.5), Factors(0.5, 3, 0.5)])
def test_factors_of_a_catalogue_are_those_of_the_table_of_pairs(part, monkeypatch):
    monkeypatch.setattr(module, "N_TURNS", 60)
    prefs, _ = clicks()
    whole, sparse = (part.learn(kind(prefs, Threads(1))) for kind in (AllProducts, NearProducts))
    assert sparse.weights is None
    assert sparse.dense() == pytest.approx(whole.dense(), abs=1e-3)
    for item in (0, 7):
        assert sparse.row(item) == pytest.approx(sparse.dense()[item], abs=1e-6)
        assert sparse.column(item) == pytest.approx(sparse.dense()[:, item], abs=1e-6)
