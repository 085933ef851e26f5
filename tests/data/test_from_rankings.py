import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    with pytest.raises(ValueError, match="row 0, column 'b': wanted a number, got 'x'"):
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


@st.composite
def partial_rankings(draw):
    n_items = draw(st.integers(2, 8))
    rows = []
    for _ in range(draw(st.integers(1, 6))):
        row = draw(st.permutations(range(1, n_items + 1)))
        hidden = draw(st.sets(st.integers(0, n_items - 1)))
        rows.append([0 if item in hidden else rank for item, rank in enumerate(row)])
    return rows


@pytest.mark.filterwarnings("ignore::pseudomallows.data.ZeroBasedWarning")
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
    with pytest.warns(pm.data.ZeroBasedWarning, match="add 1 if the ranks start at 0"):
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


def test_a_column_beside_those_of_places_is_refused():
    frame = pd.DataFrame({"rank1": ["a"], "rank2": ["b"], "city": ["Oslo"]})
    with pytest.raises(ValueError, match="'city' is no known place: name"):
        pm.Preferences.from_orderings(frame)
    plain = frame.set_axis(["x", "y", "z"], axis=1)
    assert pm.Preferences.from_orderings(plain).rankings.tolist() == [[3, 1, 2]]  # Oslo is last
    counted = pd.DataFrame([["b", "a"]])[[1, 0]]  # columns 1 and 0
    assert pm.Preferences.from_orderings(counted).rankings.tolist() == [[2, 1]]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_column_of_users_names_them_in_frames_as_in_files(frame):
    ranks = {"tea": ["1", "2"], "user": ["ann", "bob"], "ale": [2, None]}
    prefs = pm.Preferences.from_rankings(frame(ranks))
    assert (prefs.items.tolist(), prefs.users.tolist()) == (["tea", "ale"], ["ann", "bob"])
    assert prefs.rankings.tolist() == [[1, 2], [2, 1]]
    twice = frame({**ranks, "user": ["ann", "ann"]})
    with pytest.raises(ValueError, match="row 1: user 'ann' is there already, at row 0"):
        pm.Preferences.from_rankings(twice)
    with pytest.raises(
        ValueError, match="row 1, column 'tea': a rank is beyond the 2 items, got 5"
    ):
        pm.Preferences.from_rankings(frame({**ranks, "tea": [1, 5]}))
    places = frame({"name": ["x", "y"], "2nd": ["ale", None], "1st": ["tea", "ale"]})
    prefs = pm.Preferences.from_orderings(places)
    assert (prefs.users.tolist(), prefs.rankings.tolist()) == (["x", "y"], [[2, 1], [1, 2]])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_that_are_no_rankings_are_refused(frame):
    ranks = {"a": [1, 2], "b": [2, 1]}
    with pytest.raises(ValueError, match="items must have 2 names, got 1"):
        pm.Preferences.from_rankings(frame(ranks), items=["a"])
    with pytest.raises(ValueError, match="items has 'c', which is not a column"):
        pm.Preferences.from_rankings(frame(ranks), items=["a", "c"])
    with pytest.raises(ValueError, match="rankings: it is empty: give at least one row"):
        pm.Preferences.from_rankings(frame(ranks)[:0])
    with pytest.raises(TypeError, match="column 'b' is Boolean"):
        pm.Preferences.from_rankings(frame({**ranks, "b": [True, False]}))
