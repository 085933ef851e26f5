"""Clicks from every form: matrices, frames, dicts; and what only looks like clicks."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import pseudomallows as pm

USERS, ITEMS = [3, 3, 7, 9], [11, 12, 11, 13]


@pytest.mark.parametrize("make", [list, np.array], ids=["list", "array"])
@pytest.mark.parametrize("kind", [int, float, str])
def test_pairs_of_user_and_item_are_no_matrix(make, kind):
    pairs = [(kind(user), kind(item)) for user, item in zip(USERS, ITEMS, strict=True)]
    with pytest.raises((ValueError, TypeError), match="for pairs of user and item give"):
        pm.Preferences.from_clicks(make(pairs))
    with pytest.raises((ValueError, TypeError), match="for pairs of user and item"):
        pm.Preferences.from_clicks([(*pair, kind(5)) for pair in pairs])


def test_other_shapes_of_pairs_are_told_the_right_call_too():
    for pairs in (zip(USERS, ITEMS, strict=True), [{"user": 3, "item": 11}], {(3, 11), (7, 12)}):
        with pytest.raises((ValueError, TypeError), match="for pairs of user and item"):
            pm.Preferences.from_clicks(pairs)


def test_a_matrix_of_two_items_is_still_one():
    for matrix in ([[1, 0], [0, 1]], np.array([[True, False]] * 2), [(1.0, 0.0), (0.0, 0.0)]):
        assert pm.Preferences.from_clicks(matrix).n_items == 2
    assert pm.Preferences.from_clicks(np.array([[7, 0, 2], [0, 3, 9]])).n_items == 3


NAMES = [("user", "item"), ("userId", "movieId"), ("Customer ID", "StockCode"), ("item", "uid")]


@pytest.mark.parametrize("names", NAMES, ids=lambda names: " ".join(names))
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, dict])
def test_a_long_table_has_the_names_that_files_may_have(make, names):
    user, item = names if names[0] != "item" else names[::-1]
    prefs = pm.Preferences.from_clicks(make({item: ITEMS, "time": [0] * 4, user: USERS}))
    assert prefs.users.tolist() == [3, 7, 9]
    assert prefs.items[prefs.clicks_of(0)].tolist() == [11, 12]
    arrays = pm.Preferences.from_clicks({user: np.array(USERS), item: pd.Series(ITEMS)})
    assert arrays.codes.tolist() == prefs.codes.tolist()


def test_a_dict_of_columns_is_checked_as_a_frame_is():
    with pytest.raises(ValueError, match="the keys 'user' and 'item', but not as many users"):
        pm.Preferences.from_clicks({"user": [1, 2, 3], "item": [1, 2]})
    with pytest.raises(ValueError, match="row 1: there is no item; 1 of"):
        pm.Preferences.from_clicks({"user": [1, 2], "item": ["a", None]})
    with pytest.raises(ValueError, match="2 columns for 'item'"):
        pm.Preferences.from_clicks({"user": [1, 2], "movie": [1, 2], "track": [1, 2]})


def test_names_of_several_kinds_keep_their_order():
    prefs = pm.Preferences.from_clicks({"user": ["b", 3, "b"], "item": [7, "x", "x"]})
    assert (prefs.users.tolist(), prefs.items.tolist()) == (["b", 3], [7, "x"])
    assert prefs.codes.tolist() == [0, 1, 1]


def test_a_column_of_times_is_no_judgement():
    times = pd.to_datetime(["1969-01-01"] * 4)
    assert pm.Preferences.from_clicks(pd.DataFrame(FRAME | {"x": times})).n_users == 2


def test_users_may_be_named_as_columns_are():
    prefs = pm.Preferences.from_clicks({"judge": ["a", "b"], "page": ["a"], "ann": ["b"]})
    assert prefs.users.tolist() == ["judge", "page", "ann"]


@pytest.mark.parametrize("wrong", [[0, 1000, 2], [0, -5, 2], [0, 1, 100_000]])
def test_a_sparse_matrix_that_is_damaged_is_refused(wrong):
    matrix = sparse.csr_array(np.eye(2, dtype=bool))
    matrix.indptr = np.array(wrong, dtype=matrix.indptr.dtype)
    with pytest.raises(ValueError, match="clicks is a sparse matrix that is damaged"):
        pm.Preferences.from_clicks(matrix)


@pytest.mark.parametrize("form", [list, tuple, lambda rows: tuple(map(np.array, rows))])
def test_two_columns_are_no_matrix(form):
    with pytest.raises(ValueError, match=r"two rows of 3 numbers.*give {'user': users, 'item'"):
        pm.Preferences.from_clicks(form([[1, 2, 3], [4, 5, 6]]))


@pytest.mark.parametrize(
    "clicks",
    [
        [[1, 1, 1], [1, 1, 1]],
        [[1, 2, 0], [0, 3, 1]],
        np.array([[1, 2, 3], [4, 5, 6]]),
        {"u": [1, 2, 3], "i": [3, 4, 4]},
        [[1, 2, 3], [4, 5, 6], [7, 8, 9]],
    ],
)
def test_what_is_no_two_columns_is_read(clicks):
    assert pm.Preferences.from_clicks(clicks).n_users == len(clicks)


FRAME = {"user": ["bob", "ann", "bob", "bob"], "item": ["x", "y", "y", "x"], "time": [1, 2, 3, 4]}


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_long_frames_keep_names_and_count_repeats_once(frame):
    prefs = pm.Preferences.from_clicks(frame(FRAME))
    assert prefs.users.tolist() == ["ann", "bob"]
    assert prefs.items.tolist() == ["x", "y"]
    assert [prefs.clicks_of(row).tolist() for row in range(2)] == [[1], [0, 1]]


def test_every_form_gives_the_same_clicks():
    table = np.array([[0, 2, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1]])
    forms = [
        table,
        table > 0,
        table.tolist(),
        sparse.csr_array(table),
        sparse.coo_matrix(table),
        sparse.csc_array(table.astype(float)),
        sparse.dok_matrix(table),
        sparse.dok_array(table),
        sparse.lil_array(table),
        {0: [3, 1, 1], 1: [], 2: [0, 1, 2, 3]},
    ]
    for form in forms:
        prefs = pm.Preferences.from_clicks(form)
        assert prefs.starts.tolist() == [0, 2, 2, 6]
        assert prefs.codes.tolist() == [1, 3, 0, 1, 2, 3]
        assert (prefs.n_users, prefs.n_items) == (3, 4)


def test_a_sparse_matrix_is_left_as_it_is():
    matrix = sparse.coo_array(([1, 1, 0], ([0, 0, 1], [2, 2, 0])), shape=(2, 3)).tocsr()
    before = matrix.data.copy()
    assert pm.Preferences.from_clicks(matrix).codes.tolist() == [2]
    assert (matrix.data == before).all()


def test_many_repeats_in_a_small_number_type_are_one_click():
    ones, zeros = np.ones(256, dtype=np.uint8), np.zeros(256, dtype=int)
    matrix = sparse.coo_matrix((ones, (zeros, zeros)), shape=(2, 3))
    assert pm.Preferences.from_clicks(matrix).starts.tolist() == [0, 1, 1]


def test_names_may_hold_users_and_items_without_clicks():
    frame = pd.DataFrame({"user": ["b"], "item": ["y"]})
    prefs = pm.Preferences.from_clicks(frame, users=["a", "b"], items=["x", "y", "z"])
    assert prefs.starts.tolist() == [0, 0, 1]
    assert prefs.item_counts().tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("clicks", "options", "message"),
    [
        ([[1, -1]], {}, r"0 \(no click\) or more .* got -1.0 at \[0, 1\]"),
        ([[1, np.nan]], {}, r"got nan at \[0, 1\]"),
        (sparse.csr_array([[1, -2.0]]), {}, r"got -2.0"),
        ([["a", "b"]], {}, "clicks must be numbers"),
        (np.zeros((2, 2, 2), bool), {}, r"a table of users and items, got shape \(2, 2, 2\)"),
        (sparse.csr_array((0, 3)), {}, "clicks is empty: it has no users"),
        (sparse.csr_array([[1j, 0]]), {}, "got complex ones"),
        ([], {}, "clicks is empty"),
        ([["a", "b"], ["c"]], {}, "the same number of items"),
        (np.array([[1j, 0]]), {}, "clicks must be numbers"),
        (sparse.coo_array(np.array([1, 0])), {}, "got 1 axes"),
        ([[1, 0]], {"users": 5}, "users must be a list of names"),
        ({}, {}, "clicks is empty"),
        ([[1], [0]], {}, "at least 2 items, got 1"),
        ({"a": "tea"}, {}, r"clicks\['a'\] must be a list of items"),
        ({"a": ["x"]}, {"items": ["y", "z"]}, "unknown item: 'x'; known are"),
        ({"a": ["x"]}, {"users": ["b"]}, "unknown user: 'a'"),
        (pd.DataFrame(FRAME)[:0], {}, "clicks is empty"),
        (
            pd.DataFrame({"who": [1], "item": [2]}),
            {},
            "clicks: no column for 'user': name one of who, item 'user'",
        ),
        (
            pd.DataFrame({"user": ["a", None], "item": ["x", "y"]}),
            {},
            "row 1: there is no user",
        ),
        (pl.DataFrame({"user": ["a"], "item": [None]}), {}, "row 0: there is no item"),
    ],
)
def test_bad_clicks_are_refused_with_a_message(clicks, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        pm.Preferences.from_clicks(clicks, **options)
