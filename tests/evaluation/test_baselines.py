"""The baselines: what EASE recommends, by its definition."""

import tracemalloc

import numpy as np

import pseudomallows as pm
from pseudomallows.data import Clicks
from pseudomallows.evaluation import baselines


def test_ease_is_the_regression_of_steck(monkeypatch):
    prefs = pm.simulate_clicks(150, 9, [5, 5], 4, rng=1).preferences
    monkeypatch.setattr(baselines, "RIDGES", (0.5, 0.5))
    found = baselines.ease(prefs, prefs, 3, np.random.default_rng(1))
    table = np.zeros((150, 9))
    table[prefs.owners, prefs.codes] = 1
    products = table.T @ table
    inverse = np.linalg.inv(products + 0.5 * np.trace(products) / 9 * np.eye(9))
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0)
    scores = np.where(table > 0, -np.inf, table @ weights)
    best = np.argsort(-scores, axis=1, kind="stable")[:, :3]
    seen = ~np.isfinite(np.take_along_axis(scores, best, axis=1))
    assert (found == np.where(seen, -1, best)).all()
    monkeypatch.setattr(baselines, "DENSE_ITEMS", 8)
    assert baselines.ease(prefs, prefs, 3, np.random.default_rng(1)) is None


def test_the_most_clicked_unseen_items_are_popular():
    rng = np.random.default_rng(1)
    table = rng.random((300, 9)) < rng.permutation(np.linspace(0.1, 0.9, 9))
    table[0], table[1, 1:] = True, True  # nothing is left, or one item
    prefs, counts = pm.Preferences.from_clicks(table), np.array([5, 9, 1, 3, 8, 2, 7, 6, 4])
    for k in (1, 4, 9):
        found = baselines.most_clicked(prefs, counts, k, np.random.default_rng(2))
        for row, seen in zip(found.tolist(), table, strict=True):
            left = sorted(np.flatnonzero(~seen).tolist(), key=lambda item: -counts[item])
            assert row == (left + [-1] * k)[:k]


def test_the_most_clicked_items_of_a_catalogue_need_no_table_of_users_and_items():
    rng, n_items = np.random.default_rng(1), 100_000
    codes = np.sort(rng.integers(0, n_items, (400, 3)), axis=1).astype(np.int32)
    starts = np.arange(0, codes.size + 1, 3)
    prefs = Clicks(
        np.ones(400, np.int64), np.arange(400), np.arange(n_items), starts, codes.ravel()
    )
    tracemalloc.start()
    found = baselines.most_clicked(prefs, prefs.item_counts(), 10, rng)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found >= 0).all()
    assert peak < n_items * 100  # a table of one block of users would have 256 numbers for each
