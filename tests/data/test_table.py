"""A table of any library, and its columns of names as codes."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pseudomallows as pm
from pseudomallows.data.table import join_names, table_of

VALUES = ["b", "a", None, "b"]
FORMS = {
    "list": VALUES,
    "tuple": tuple(VALUES),
    "array": np.array(VALUES, dtype=object),
    "pandas": pd.Series(VALUES),
    "category": pd.Series(VALUES).astype("category"),
    "text": pd.Series(VALUES, dtype="string"),
    "polars": pl.Series(VALUES),
}


def coded(column):
    return table_of("x", {"column": column}).coded_table({"name": 0}).columns["name"]


@pytest.mark.parametrize("form", FORMS)
def test_a_column_of_any_form_has_the_same_values(form):
    column = coded(FORMS[form])
    assert [None if c < 0 else column.names[c] for c in column.codes] == VALUES


@pytest.mark.parametrize(
    "column",
    [
        [3, 1, 3],
        np.array([3, 1, 3]),
        np.array([3.0, 1.0, 3.0]),
        pd.Series([3, 1, 3], dtype="Int64"),
        pl.Series([3, 1, 3]),
    ],
)
def test_whole_numbers_have_no_point(column):
    found = coded(column)
    values = [found.names[code] for code in found.codes]
    assert values == [3, 1, 3]
    assert all(type(value) is int for value in values)


@pytest.mark.parametrize(
    "column",
    [
        [1, float("nan")],
        np.array([1.0, np.nan]),
        pd.Series([1, pd.NA], dtype="Int64"),
        pl.Series([1, None]),
        pd.Series([1, None]),
    ],
)
def test_missing_values_have_no_code(column):
    assert (coded(column).codes >= 0).tolist() == [True, False]


def test_times_are_text():
    found = coded(np.array(["2024-05-01"], dtype="datetime64[D]"))
    assert found.names == ["2024-05-01"]


def test_what_is_no_name_is_refused():
    with pytest.raises(TypeError, match=r"a name must be text or a number, got \['a'\]"):
        coded([["a"], "b"])


def test_a_table_is_no_column():
    with pytest.raises(ValueError, match="a column must have one axis, got 2"):
        coded(np.ones((2, 2)))


def test_names_of_two_columns_have_one_code():
    one, other = coded(["b", "a"]), coded(["c", "b"])
    (first, second), names = join_names([one, other], None, "item")
    assert names.tolist() == ["a", "b", "c"]
    assert names[first].tolist() == ["b", "a"]
    assert names[second].tolist() == ["c", "b"]


def test_names_that_cannot_be_sorted_stand_as_they_come():
    _, names = join_names([coded(["b", 1, "a"])], None, "item")
    assert names.tolist() == ["b", 1, "a"]


def test_given_names_fix_the_order_and_others_are_refused():
    (codes,), names = join_names([coded(["b", "a"])], ["b", "x", "a"], "item")
    assert codes.tolist() == [0, 2]
    assert names.tolist() == ["b", "x", "a"]
    with pytest.raises(ValueError, match="unknown item: 'a'"):
        join_names([coded(["b", "a"])], ["b"], "item")


def test_rows_in_which_something_is_missing_are_left_out():
    table = table_of("x", {"a": ["p", None, "q"], "b": [1, 2, None]})
    with pytest.warns(
        pm.data.DroppedRowsWarning,
        match="x: 2 of 3 rows have no a or b and are left out, the first at row 1",
    ):
        whole = table.coded_table({"a": 0, "b": 1}).whole_rows()
    assert whole.rows.tolist() == [0]
    assert whole.value("a", 0) == "p"


LOG = {"user": ["bob", "ann", "bob"], "item": ["x", "y", "y"], "time": [3, 1, 2]}
NUMBERS = {"user": [7, 3, 7], "item": [20, 10, 10], "time": [3, 1, 2]}
FRAMES = {
    "pandas": pd.DataFrame,
    "pandas, objects": lambda columns: pd.DataFrame(columns).astype(object),
    "pandas, categories": lambda columns: pd.DataFrame(columns).astype("category"),
    "polars": pl.DataFrame,
    "polars, lazy": pl.LazyFrame,
    "polars, categories": lambda columns: pl.DataFrame(columns).with_columns(
        pl.col("user", "item").cast(pl.String).cast(pl.Categorical)
    ),
    "Arrow": pa.table,
    "Arrow, a batch": lambda columns: pa.table(columns).to_batches()[0],
    "Arrow, codes": lambda columns: pa.table(
        {name: pa.array(values).dictionary_encode() for name, values in columns.items()}
    ),
    "rows of a dict": lambda columns: {name: np.array(values) for name, values in columns.items()},
}


@pytest.mark.parametrize("form", FRAMES)
def test_a_frame_of_any_library_is_one_table(form):
    prefs = pm.Preferences.from_clicks(FRAMES[form](LOG))
    assert (prefs.users.tolist(), prefs.items.tolist()) == (["ann", "bob"], ["x", "y"])
    assert prefs.codes.tolist() == [1, 0, 1]
    assert prefs.times.tolist() == [1, 3, 2]
    if form != "polars, categories":  # its names are text
        numbers = pm.Preferences.from_clicks(FRAMES[form](NUMBERS))
        assert (numbers.users.tolist(), numbers.items.tolist()) == ([3, 7], [10, 20])


SQL = """select * from (values ('bob', 'x', 3), ('ann', 'y', 1), ('bob', 'y', 2))
as log("user", item, time)"""


@pytest.mark.parametrize("library", ["duckdb", "datasets", "modin.pandas"])
def test_a_frame_of_other_libraries_is_read_too(library):
    module = pytest.importorskip(library)
    make = {
        "duckdb": lambda: module.sql(SQL),
        "datasets": lambda: module.Dataset.from_dict(LOG),
        "modin.pandas": lambda: module.DataFrame(LOG),
    }
    assert pm.Preferences.from_clicks(make[library]()).codes.tolist() == [1, 0, 1]


def test_frames_of_ranks_and_of_places_are_read_from_any_library():
    for make in (pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.table):
        ranks = pm.Preferences.from_rankings(make({"tea": [1, 2], "ale": [2, 1]}))
        assert (ranks.items.tolist(), ranks.rankings.tolist()) == (["tea", "ale"], [[1, 2], [2, 1]])
        places = pm.Preferences.from_orderings(make({"2nd": ["ale"], "1st": ["tea"]}))
        assert places.rankings.tolist() == [[2, 1]]
        pairs = pm.Preferences.from_pairs(make({"better": ["tea"], "worse": ["ale"]}))
        assert pairs.wins().tolist() == [[0, 0], [1, 0]]


def test_text_of_pandas_needs_no_pyarrow(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for kind in (object, pd.StringDtype("python")):
        frame = pd.DataFrame(LOG).astype({"user": kind, "item": kind})
        assert pm.Preferences.from_clicks(frame).users.tolist() == ["ann", "bob"]
