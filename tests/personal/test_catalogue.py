"""Personal fits of more items than have a table of their pairs."""

import functools
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import pseudomallows as pm
import pseudomallows.personal.blend as blend_module
from pseudomallows.data import Clicks
from pseudomallows.data.blocks import clicks_matrix
from pseudomallows.engines.executors import Threads
from pseudomallows.kernels.click_rows import slice_clicks
from pseudomallows.personal import products as module
from pseudomallows.personal.blend import Blend
from pseudomallows.personal.parts import Factors, Popularity, Regression
from pseudomallows.personal.products import AllProducts, NearProducts
from pseudomallows.recommendations.recommend import best_of_one
from pseudomallows.sampling.reproduce import call_of

N_ITEMS, N_USERS, SIZE = 6000, 400, 12


@functools.cache
def log(n_users=N_USERS):
    """Users of one of 60 groups, each of which has 100 items, the first of them clicked most."""
    rng = np.random.default_rng(1)
    groups = rng.integers(0, 60, n_users)
    rows = [
        np.unique(100 * group + (100 * rng.random(SIZE) ** 3).astype(np.int32)) for group in groups
    ]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    codes = np.concatenate(rows).astype(np.int32)
    users, items = np.arange(n_users), np.arange(N_ITEMS)
    return Clicks(np.ones(n_users, np.int64), users, items, starts, codes)


@pytest.fixture(scope="module")
def fit():
    return pm.fit(log(), "personal", calibrate=False, rng=1, executor=Threads(1))


def test_threads_leave_no_trace_and_need_no_array_of_items_by_items(fit):
    assert fit.is_sparse
    assert fit.item_weights.nnz < 100 * N_ITEMS
    assert fit.settings["distance"] == "kendall"
    assert fit.settings["options"]["parts"]
    tracemalloc.start()
    again = pm.fit(log(), "personal", rng=1, calibrate=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * N_ITEMS**2  # 288 MB; of that, the table of often clicked items is half
    top = pm.recommend(fit, 10)
    mine = top.items // 100 == (log().codes[log().starts[:-1]] // 100)[:, None]
    assert mine.mean() > 0.9  # of the user's group
    assert (again.item_weights != fit.item_weights).nnz == 0
    assert (again.left == fit.left).all()
    assert again.settings["options"]["parts"] == fit.settings["options"]["parts"]


def test_it_comes_back_whole(fit, tmp_path):
    factors = np.random.default_rng(1).normal(size=(N_ITEMS, 2)).astype(np.float32)
    for one in (fit, replace(fit, left=factors, right=factors.T.copy())):
        one.save(tmp_path / "x.pm")
        again = pm.load(tmp_path / "x.pm")
        assert (again.item_weights != one.item_weights).nnz == 0
        assert (again.left == one.left).all()
        assert (again.right == one.right).all()
        found = [pm.recommend(each, 5, users=[0, 7, 20]) for each in (one, again)]
        assert (found[0].items == found[1].items).all()
        assert (found[0].probabilities == found[1].probabilities).all()
    wrong = replace(fit, left=factors[1:], right=factors.T.copy())
    wrong.save(tmp_path / "x.pm")
    with pytest.raises(ValueError, match="do not fit together"):
        pm.load(tmp_path / "x.pm")


def test_new_users_are_answered_as_those_of_the_fit_and_one_as_many(fit):
    known = pm.recommend(fit, 10)
    new = pm.recommend(fit, 10, clicks=log())
    assert (known.items == new.items).all()
    assert (known.probabilities == new.probabilities).all()
    for user in (0, 5, 99):
        items, probabilities, _ = best_of_one(fit, log().clicks_of(user), None, 10)
        assert items == known.items[user].tolist()
        assert probabilities == known.probabilities[user].tolist()
    assert (np.diff(known.probabilities, axis=1) <= 0).all()


@pytest.mark.parametrize("has_factors", [False, True])
def test_the_top_is_that_of_the_whole_order(fit, has_factors):
    """Scores, ranks, the law and the correction of all items give the same best ones."""
    rng = np.random.default_rng(2)
    sides = (0.01 * rng.normal(size=(2, N_ITEMS, 3))).astype(np.float32)
    factors = {"left": sides[0], "right": sides[1].T.copy()} if has_factors else {}
    one, some = replace(fit, **factors), slice(0, 12)
    clicked = clicks_matrix(log().starts[:13], log().codes, N_ITEMS)
    exact = (clicked @ fit.item_weights).toarray() + (fit.bias if fit.bias.size else 0.0)
    if fit.left.size or has_factors:
        own = (one.left * one.right.T).sum(axis=1)
        exact += (clicked @ one.left) @ one.right - clicked.toarray() * own
    scores = one.scores_of(log(), some)
    assert scores == pytest.approx(exact, abs=1e-5)
    rankings = one.rankings_of(scores)
    clicks, ranks = one.orders_of(log(), some, None)
    for row in range(12):
        mine = log().clicks_of(row)
        own = clicks.codes[clicks.starts[row] : clicks.starts[row + 1]]
        assert ranks[row, own].tolist() == rankings[row, mine].tolist()
    assert one.shares_by(clicks, ranks) == pytest.approx(
        one.shares_by(slice_clicks(log(), some), rankings)
    )
    few = pm.recommend(one, 10, users=range(12))
    whole = pm.recommend(one, N_ITEMS, users=range(12), window=10)
    assert few.probabilities == pytest.approx(whole.probabilities[:, :10])


def test_corrected_probabilities_of_the_top_leave_room_for_the_rest():
    """All items together sum to the window, and the first places alone are those of all."""
    fit = pm.fit(log(), "personal", rng=1)
    assert fit.correction is not None
    rows = {"none": [], "one": fit.items[:1].tolist(), "ten": fit.items[3:13].tolist()}
    whole = pm.recommend(fit, N_ITEMS, clicks=rows, window=5)
    assert np.nansum(whole.probabilities, axis=1) == pytest.approx([5, 5, 5], rel=0.05)
    top = pm.recommend(fit, 5, clicks=rows)
    assert top.probabilities == pytest.approx(whole.probabilities[:, :5])


def test_a_blend_of_sparse_parts_is_that_of_whole_ones(monkeypatch):
    monkeypatch.setattr(module, "NEAR_TOLERANCE", 1e-6)
    monkeypatch.setattr(module, "TOLERANCE", 1e-6)
    monkeypatch.setattr(module, "LEAST_WEIGHT", 0.0)
    monkeypatch.setattr(module, "N_LEAST_NEAR", 80)
    monkeypatch.setattr(module, "N_TURNS", 60)
    rng = np.random.default_rng(3)
    clicked = rng.random((300, 80)) < rng.random(80) ** 2 * (1 + np.arange(300)[:, None] % 3) / 4
    prefs, users = pm.Preferences.from_clicks(clicked), np.arange(300)
    blend = Blend((Regression(0, 0.3), Factors(0, 3, 0.5), Popularity()), (0.5, 0.3, 0.2), 0.0)
    whole, sparse = (
        blend.learn(kind(prefs, Threads(2)), users, {}) for kind in (AllProducts, NearProducts)
    )
    assert sparse.is_sparse
    assert sparse.left.shape == (80, 3)
    assert sparse.dense() == pytest.approx(whole.weights, abs=1e-3)
    assert sparse.bias == pytest.approx(whole.bias, rel=1e-3)
    assert np.abs(whole.weights).max() > 0.05


def test_only_items_with_hidden_clicks_are_regressed_again():
    prefs = log()
    products, part = NearProducts(prefs, Threads(2)), Regression(0, 0.3)
    start = part.learn(products)
    taken = np.zeros(len(prefs.codes), dtype=bool)
    taken[prefs.starts[:40]] = True
    left = products.without(taken)
    anew, again, old = (
        found.weights.tocsc() for found in (part.learn(left), part.learn(left, start), start)
    )
    hidden = np.unique(prefs.codes[taken])
    others = np.setdiff1d(np.arange(N_ITEMS), hidden)
    assert (again[:, hidden] != anew[:, hidden]).nnz == 0
    assert (again[:, others] != old[:, others]).nnz == 0
    assert (again[:, hidden] != old[:, hidden]).nnz > 0


def test_an_update_is_the_fit_of_all_clicks_with_the_same_blend(fit, monkeypatch):
    monkeypatch.setattr(blend_module, "LEAST_SPREAD", N_USERS)  # the spread of all, as here
    more = {user: [int(log().codes[log().starts[user]] // 100 * 100 + 50)] for user in range(30)}
    newer = fit.update(more, rng=2)
    assert newer.settings["updates"] == 1
    assert call_of(newer) == "posterior.update(more, rng=2)"
    assert newer.settings["options"]["parts"] == fit.settings["options"]["parts"]
    blend = Blend.from_settings(fit.settings["options"])
    whole = blend.learn(NearProducts(newer.clicks, Threads(1)), np.arange(N_USERS), {})
    difference = abs(newer.item_weights - whole.weights)
    assert difference.max() < 1e-5
    assert newer.item_weights.nnz != fit.item_weights.nnz


def test_what_needs_items_by_items_is_refused(fit):
    with pytest.raises(ValueError, match=r"6,000 items are too many"):
        pm.recommendations.user_intervals(fit, 0)


def test_one_regression_on_near_items_if_asked_for():
    found = pm.fit(log(), "personal", ridge=0.5, calibrate=False, rng=1)
    exact = Regression(0, 0.5).learn(NearProducts(log(), Threads(1)))
    assert (found.item_weights != exact.weights).nnz == 0
    assert found.left.size == 0


def test_progress_says_what_is_done():
    told, steps = [], []

    def progress(done, total):
        steps.append((done, total))

    progress.say = told.append
    pm.fit(log(), "personal", rng=1, calibrate=False, progress=progress)
    assert told[0] == "learning the scores from all clicks"
    assert told[1] == "split 1 of 1: regression of weights >= 0, power 0, ridge 0.3"
    assert steps[-1][0] == steps[-1][1]
