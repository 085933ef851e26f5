import gc
import pickle
import warnings
import weakref

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import pseudomallows as pm
from pseudomallows.recommendations.choose_recommender import recommender_of
from pseudomallows.recommendations.recommend import COLUMNS, DIGITS, best_of_one
from pseudomallows.recommendations.to_file import csv_blocks
from pseudomallows.recommendations.users import users_of


def quietly(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.diagnostics.FitWarning)
        return pm.fit(*arguments, **options)


@pytest.fixture(scope="module")
def data():
    return pm.simulate_clicks(300, 15, 6, 4, rng=1)


@pytest.fixture(scope="module", params=["pseudo", "balanced", "mcmc"])
def posterior(request, data):
    options = {"n_draws": 60} | ({"n_chains": 1} if request.param == "mcmc" else {})
    return quietly(data.preferences, request.param, 6.0, rng=1, **options)


def table_of(recommendations, n_items):
    table = np.full((len(recommendations.items), n_items), np.nan)
    for row, (codes, values) in enumerate(
        zip(recommendations.items, recommendations.probabilities, strict=True)
    ):
        table[row, codes[codes >= 0]] = values[codes >= 0]
    return table


def test_recommended_items_are_unseen_in_order_and_of_the_stated_probability(posterior, data):
    found = pm.recommend(posterior, k=4)
    assert found.items.shape == (300, 4)
    for row in range(300):
        assert not set(found.items[row]) & set(data.preferences.clicks_of(row))
    assert (np.diff(found.probabilities, axis=1) <= 1e-12).all()
    assert found.probabilities.min() >= 0
    assert found.probabilities.max() <= 1


def test_new_users_get_the_same_in_whatever_form_their_clicks_come(posterior, data):
    mine = data.preferences.clicks_of(7).tolist()
    old = pm.recommend(posterior, k=3, clicks={7: mine})
    known = pm.recommend(posterior, k=3, users=[7])  # many users: the clicks of one tell little
    assert old.items.tolist() == known.items.tolist()
    assert np.abs(old.probabilities - known.probabilities).max() < 0.02
    for clicks in (
        {"new": mine},
        pd.DataFrame({"user": ["new"] * len(mine), "item": mine}),
        sparse.csr_array(np.isin(np.arange(15), mine)[None].astype(int)),
        np.isin(np.arange(15), mine)[None],
        data.preferences.take([7]),
    ):
        new = pm.recommend(posterior, k=3, clicks=clicks)
        assert new.items.tolist() == old.items.tolist()
        assert new.probabilities.tolist() == old.probabilities.tolist()


def test_users_with_no_click_and_with_all_clicks(posterior):
    found = pm.recommend(
        posterior, k=3, clicks={"none": [], "all": list(range(15)), "most": list(range(13))}
    )
    consensus = posterior.point_consensus()
    assert set(found.items[0]) <= set(np.argsort(consensus)[:6])
    assert found.items[1].tolist() == [-1, -1, -1]
    assert np.isnan(found.probabilities[1]).all()
    assert sorted(found.items[2].tolist()) == [-1, 13, 14]
    assert found.probabilities[2, :2] == pytest.approx([1, 1])


def test_ties_go_to_the_better_consensus_rank(posterior):
    found = pm.recommend(posterior, k=20, clicks={"new": [0]})  # all have probability 1
    order = [item for item in np.argsort(posterior.point_consensus()) if item != 0]
    assert found.items[0, :14].tolist() == order


def test_rows_and_frames_have_names(posterior):
    found = pm.recommend(posterior, k=2, clicks={"new": [3], "full": list(range(15))})
    rows = found.to_rows()
    assert [row["user"] for row in rows] == ["new", "new"]
    assert [row["place"] for row in rows] == [1, 2]
    frame = found.to_frame()
    assert list(frame.columns) == ["user", "place", "item", "probability"]
    assert len(frame) == 2
    assert pm.recommend(posterior, k=1, clicks={"full": list(range(15))}).to_frame().shape == (0, 4)


def test_the_number_of_threads_changes_nothing(posterior):
    one = pm.recommend(posterior, k=3, executor=pm.Threads(1))
    two = pm.recommend(posterior, k=3, executor=pm.Threads(2))
    assert (one.items == two.items).all()
    assert (one.probabilities == two.probabilities).all()


def test_a_saved_posterior_recommends_the_same(posterior, tmp_path):
    posterior.save(tmp_path / "model.pm")
    again = pm.load(tmp_path / "model.pm")
    for options in ({}, {"clicks": {"new": [1, 2]}}):
        one, two = (pm.recommend(p, k=3, **options) for p in (posterior, again))
        assert (one.items == two.items).all()
        assert (one.probabilities == two.probabilities).all()


def test_a_window_is_that_of_the_probability(posterior):
    wide = pm.recommend(posterior, k=2, window=6, max_error=0)
    full = table_of(pm.recommend(posterior, k=6, max_error=0), 15)
    assert wide.items.shape == (300, 2)
    for row in range(300):
        assert wide.probabilities[row] == pytest.approx(full[row, wide.items[row]])


def test_rows_are_plain_enough_for_json(posterior):
    import json

    rows = pm.recommend(posterior, k=2, users=[3, 5]).to_rows()
    assert json.loads(json.dumps(rows)) == rows
    assert [row["user"] for row in rows] == [3, 3, 5, 5]


@pytest.mark.parametrize("name", ["ann", 12352, ("x", 1)], ids=str)
def test_one_user_may_be_asked_for_by_name_alone(name):
    prefs = pm.Preferences.from_clicks({name: ["tea"], "bob": ["ale"], "eve": ["tea", "rum"]})
    posterior = quietly(prefs, alpha=2, n_draws=5, rng=1)
    rows = pm.recommend(posterior, 1, users=name).to_rows()
    assert rows == pm.recommend(posterior, 1, users=[name]).to_rows()
    assert [row["user"] for row in rows] == [name]
    assert pm.recommend(posterior, 1, users=()).items.shape == (0, 1)
    if name == 12352:
        assert pm.recommend(posterior, 1, users=np.int64(name)).to_rows() == rows


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k must be 1 or more, got 0"),
        ({"k": 2.5}, "k must be a whole number"),
        ({"users": ["zoe"]}, "no user is named 'zoe'; the first are 0, 1, 2"),
        ({"users": "zoe"}, "no user is named 'zoe'; the first are 0, 1, 2"),
        ({"users": "3"}, "no user is named '3'; did you mean 3?"),
        ({"users": 99_999}, "no user is named 99999; the first are"),
        ({"users": [[3]]}, r"no user is named \[3\]; the first are"),
        ({"clicks": {"a": ["x", "y", 3]}}, "unknown item: 'x', 'y'; known are those of the fit"),
        ({"clicks": [[1, 0]]}, "items must have 2 names, got 15"),
        ({"clicks": {"a": [1]}, "users": [1]}, "not both"),
    ],
)
def test_bad_questions_are_refused(posterior, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        pm.recommend(posterior, **options)


def test_only_a_posterior_can_recommend():
    with pytest.raises(TypeError, match="posterior must come from fit"):
        pm.recommend(pm.Preferences.from_clicks([[1, 0]]))


def test_a_posterior_of_rankings_cannot_recommend():
    posterior = pm.fit(pm.Preferences.from_rankings([[1, 2, 3]]), "pseudo", alpha=1, rng=1)
    with pytest.raises(ValueError, match="need a fit of clicks"):
        pm.recommend(posterior)


@pytest.mark.parametrize("method", ["pseudo", "mcmc", "personal"])
def test_a_user_s_rankings_are_drawn_by_the_law_of_the_recommendations(method, data):
    """The share of drawn rankings that put an item next is its stated probability."""
    alpha = {} if method == "personal" else {"alpha": 6.0}
    plain = {"calibrate": False} if method == "personal" else {"n_draws": 60}
    posterior = quietly(data.preferences, method, rng=1, **alpha, **plain)
    for given in ({"users": [7]}, {"clicks": {"new": [2, 5, 9]}}):
        stated = pm.recommend(posterior, 3, max_error=0, **given)
        users, rng = users_of(posterior, **given), np.random.default_rng(1)
        counts = recommender_of(posterior).draw_ranks(users, 20_000, rng)
        first = int(users.clicks.n_clicks[0])
        shares = counts[stated.items[0], first : first + 3].sum(axis=1) / 20_000
        assert shares == pytest.approx(stated.probabilities[0], abs=0.02)


def test_a_posterior_is_not_kept_by_what_was_made_for_its_recommendations(data):
    for method in ("pseudo", "mcmc", "personal"):
        mine = {"n_draws": 5, "n_chains": 1} if method == "mcmc" else {}
        posterior = quietly(data.preferences, method, rng=1, **mine)
        before = set(vars(posterior))
        pm.recommend(posterior, 2, clicks={"new": [1, 2]})
        assert set(vars(posterior)) == before
        assert pickle.loads(pickle.dumps(posterior)).n_items == 15
        kept = [weakref.ref(thing) for thing in (posterior, recommender_of(posterior))]
        del posterior
        gc.collect()
        assert [thing() for thing in kept] == [None, None]


@pytest.mark.parametrize("row", [None, 7])
def test_one_user_gets_the_same_as_many(posterior, data, row):
    codes = data.preferences.clicks_of(7)
    items, probabilities, memberships = best_of_one(posterior, codes, row, 3)
    given = {"users": [7, 8]} if row else {"clicks": {7: codes.tolist(), 8: [2]}}
    many = pm.recommend(posterior, 3, **given)
    assert items == many.items[0].tolist()
    assert probabilities == many.probabilities[0].tolist()
    assert memberships == [1.0]


def test_the_table_is_the_same_in_python_file_and_text(posterior, tmp_path):
    pm.recommendations.recommend_to(posterior, tmp_path / "r.csv", 2)
    text = b"".join(csv_blocks(posterior, 2))
    assert text == (tmp_path / "r.csv").read_bytes()
    lines = text.decode().splitlines()
    assert lines[0] == ",".join(COLUMNS)
    columns = [part.tolist() for part in pm.recommend(posterior, 2).to_columns(DIGITS).values()]
    expected = [",".join(map(str, row)) for row in zip(*columns, strict=True)]
    assert lines[1:] == expected
