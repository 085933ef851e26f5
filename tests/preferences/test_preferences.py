import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import pseudomallows as pm
from pseudomallows.rankings import orderings_of


def test_zero_and_nan_mean_not_ranked():
    prefs = pm.Preferences.from_rankings([[1, 0, 2, 0], [np.nan, 4, np.nan, 1]])
    assert prefs.rankings.tolist() == [[1, 0, 2, 0], [0, 4, 0, 1]]
    assert prefs.is_row_full.tolist() == [False, False]
    assert (prefs.n_users, prefs.n_items) == (2, 4)


def test_one_missing_rank_is_filled_in():
    prefs = pm.Preferences.from_rankings([[1, 0, 3], [0, 0, 3]])
    assert prefs.rankings.tolist() == [[1, 2, 3], [0, 0, 3]]


def test_pandas_frames_bring_their_names():
    frame = pd.DataFrame({"ale": [1, 2], "gin": [2, 1]}, index=["ann", "bob"])
    prefs = pm.Preferences.from_rankings(frame)
    assert prefs.items.tolist() == ["ale", "gin"]
    assert prefs.users.tolist() == ["ann", "bob"]


def test_pandas_frames_may_have_gaps():
    floats = pd.DataFrame({"a": [1.0, np.nan], "b": [2.0, np.nan], "c": [3.0, 1.0]})
    nullable = floats.astype("Int64")
    for frame in (floats, nullable):
        assert pm.Preferences.from_rankings(frame).rankings.tolist() == [[1, 2, 3], [0, 0, 1]]


def test_polars_frames_bring_their_names():
    frame = pl.DataFrame({"a": [1, None], "b": [2, None], "c": [3, 1]})
    prefs = pm.Preferences.from_rankings(frame)
    assert prefs.items.tolist() == ["a", "b", "c"]
    assert prefs.rankings.tolist() == [[1, 2, 3], [0, 0, 1]]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_column_of_text_is_named(frame):
    with pytest.raises(TypeError, match="column 'b' is"):
        pm.Preferences.from_rankings(frame({"a": [1, 2], "b": ["x", "y"]}))


def test_orderings_may_be_arrays_of_codes():
    prefs = pm.Preferences.from_orderings(np.array([[2, 0, 1], [0, 1, 2]]))
    assert prefs.items.tolist() == [0, 1, 2]
    assert prefs.rankings.tolist() == [[2, 3, 1], [1, 2, 3]]


def test_orderings_may_be_padded_at_the_end():
    prefs = pm.Preferences.from_orderings([["b", "a", None], ["c", float("nan")], []])
    assert prefs.rankings.tolist() == [[2, 1, 3], [0, 0, 1], [0, 0, 0]]


def test_items_that_nobody_ranks_can_be_named():
    prefs = pm.Preferences.from_orderings([["b"]], items=["a", "b", "c", "d"])
    assert prefs.rankings.tolist() == [[0, 1, 0, 0]]


def test_mixed_names_keep_their_order_of_appearance():
    prefs = pm.Preferences.from_orderings([["b", 3, "a"]])
    assert prefs.items.tolist() == ["b", 3, "a"]


def test_mean_ranks_share_out_what_is_left():
    prefs = pm.Preferences.from_rankings([[1, 0, 0, 0], [1, 2, 3, 4]], weights=[3, 1])
    assert prefs.mean_ranks().tolist() == [1, (3 * 3 + 2) / 4, 3, (3 * 3 + 4) / 4]


@st.composite
def partial_rankings(draw):
    n_items = draw(st.integers(2, 8))
    rows = []
    for _ in range(draw(st.integers(1, 6))):
        row = draw(st.permutations(range(1, n_items + 1)))
        hidden = draw(st.sets(st.integers(0, n_items - 1)))
        rows.append([0 if item in hidden else rank for item, rank in enumerate(row)])
    return rows


@pytest.mark.filterwarnings("ignore::pseudomallows.preferences.ZeroBasedWarning")
@given(partial_rankings())
def test_known_ranks_are_kept(rows):
    prefs = pm.Preferences.from_rankings(rows)
    known = np.array(rows) > 0
    assert (prefs.rankings[known] == np.array(rows)[known]).all()
    filled = (prefs.rankings > 0).sum(axis=1)
    assert (filled != len(rows[0]) - 1).all()  # never one gap alone


@given(
    st.integers(2, 9).flatmap(lambda n: st.lists(st.permutations(range(n)), min_size=1, max_size=5))
)
def test_orderings_and_rankings_are_each_other_s_inverse(orderings):
    prefs = pm.Preferences.from_orderings(orderings)
    assert orderings_of(prefs.rankings).tolist() == [list(row) for row in orderings]


@given(partial_rankings())
def test_top_lists_are_rankings_with_gaps(rows):
    n_items = len(rows[0])
    top = [sorted((i for i in range(n_items) if r[i]), key=lambda i, r=r: r[i]) for r in rows]
    prefs = pm.Preferences.from_orderings(top, items=range(n_items))
    for row, listed in zip(prefs.rankings, top, strict=True):
        assert [int(row[item]) for item in listed] == list(range(1, len(listed) + 1))


def test_zero_based_rankings_are_pointed_out():
    with pytest.warns(pm.preferences.ZeroBasedWarning, match="add 1 if the ranks start at 0"):
        pm.Preferences.from_rankings([[0, 1, 2], [2, 1, 0]])
    pm.Preferences.from_rankings([[0, 1, 2], [2, 1, 3]])  # no warning
    pm.Preferences.from_rankings([[np.nan, 1, 2], [2, 1, np.nan]])


def test_items_put_the_columns_of_a_frame_in_order():
    frame = pd.DataFrame({"x": [1, 2], "y": [2, 1]})
    prefs = pm.Preferences.from_rankings(frame, items=["y", "x"])
    assert prefs.items.tolist() == ["y", "x"]
    assert prefs.rankings.tolist() == [[2, 1], [1, 2]]


def test_missing_values_of_pandas_are_missing():
    prefs = pm.Preferences.from_orderings([["a", "b", pd.NA], ["b", "a", "c"]])
    assert prefs.items.tolist() == ["a", "b", "c"]
    frame = pd.DataFrame({"first": ["a", "b"], "second": ["b", None]})
    assert pm.Preferences.from_orderings(frame).rankings.tolist() == [[1, 2], [2, 1]]


def test_a_column_without_any_rank_is_fine():
    for frame in (
        pl.DataFrame({"a": [1, 1], "b": [2, 2], "c": [None, None], "d": [None, None]}),
        pd.DataFrame({"a": [1, 1], "b": [2, 2], "c": [None, None], "d": [None, None]}),
    ):
        assert pm.Preferences.from_rankings(frame).rankings.tolist() == [[1, 2, 0, 0]] * 2


def test_an_index_with_a_name_twice_does_not_name_the_users():
    frame = pd.DataFrame({"a": [1, 2], "b": [2, 1]}, index=[7, 7])
    assert pm.Preferences.from_rankings(frame).users.tolist() == [0, 1]


def test_numpy_names_become_plain_ones(tmp_path):
    prefs = pm.Preferences.from_rankings([[1, 2, 3]], items=np.array([10, 20, 30]))
    pm.fit(prefs, alpha=1, rng=1).save(tmp_path / "x.pm")
    assert pm.load(tmp_path / "x.pm").items.tolist() == [10, 20, 30]


# clicks, and what looks like them

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
    with pytest.raises(ValueError, match="row 1 has no item; 1 rows"):
        pm.Preferences.from_clicks({"user": [1, 2], "item": ["a", None]})
    with pytest.raises(ValueError, match="2 columns for the item"):
        pm.Preferences.from_clicks({"user": [1, 2], "movie": [1, 2], "track": [1, 2]})


def test_users_may_be_named_as_columns_are():
    prefs = pm.Preferences.from_clicks({"judge": ["a", "b"], "page": ["a"], "ann": ["b"]})
    assert prefs.users.tolist() == ["judge", "page", "ann"]


def test_a_column_beside_those_of_places_is_refused():
    frame = pd.DataFrame({"rank1": ["a"], "rank2": ["b"], "city": ["Oslo"]})
    with pytest.raises(ValueError, match="a column 'city' beside those of places"):
        pm.Preferences.from_orderings(frame)
    plain = frame.set_axis(["x", "y", "z"], axis=1)
    assert pm.Preferences.from_orderings(plain).rankings.tolist() == [[3, 1, 2]]  # Oslo is last
    counted = pd.DataFrame([["b", "a"]])[[1, 0]]  # columns 1 and 0
    assert pm.Preferences.from_orderings(counted).rankings.tolist() == [[2, 1]]


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
