"""Columns of names as codes."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import pseudomallows as pm
from pseudomallows.preferences.inputs.coded import coded, coded_table, join_names

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
    table = coded_table(
        "x", {"a": ["p", None, "q"], "b": [1, 2, None]}, lambda names: {"a": 0, "b": 1}
    )
    with pytest.warns(
        pm.preferences.DroppedRowsWarning,
        match="x: 2 of 3 rows have no a or b and are left out, the first at row 1",
    ):
        whole, rows = table.whole_rows()
    assert rows.tolist() == [0]
    assert whole.value("a", 0) == "p"
    assert whole.where(0) == "row 0"
