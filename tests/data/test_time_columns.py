"""Times of clicks: what is read, what is refused, and that they stay with their clicks."""

import datetime as dt
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

import pseudomallows as pm
from pseudomallows.data.times import TimeColumn

DAY = 86_400.0
USERS, ITEMS = ["ann", "ann", "bob", "ann"], ["tea", "ale", "ale", "tea"]


def clicks(times, name="time", **more):
    return pm.Preferences.from_clicks({"user": USERS, "item": ITEMS, name: times}, **more)


@pytest.mark.parametrize(
    "times",
    [
        [3, 1, 2, 0.5],
        ["3", "1", "2", "0.5"],
        [np.int64(3), 1, 2.0, 0.5],
        np.array([3, 1, 2, 0.5]),
    ],
)
def test_numbers_are_kept_as_they_are_and_repeats_have_their_first_time(times):
    prefs = clicks(times)  # ann: ale, tea (3, then 0.5); bob: ale
    assert prefs.times.tolist() == [1.0, 0.5, 2.0]


@pytest.mark.parametrize(
    "times",
    [
        ["1970-01-04", "1970-01-02", "1970-01-03T12:00", "1970-01-01 00:00:00"],
        ["1970-01-04 01:00+01:00", "1970-01-02T00:00Z", "1970-01-03 12:00 UTC", "1970-01-01"],
        [
            dt.date(1970, 1, 4),
            dt.date(1970, 1, 2),
            dt.datetime(1970, 1, 3, 12),
            np.datetime64(0, "s"),
        ],
        pd.to_datetime(
            ["1970-01-04", "1970-01-02", "1970-01-03 12:00", "1970-01-01"], format="ISO8601"
        ),
        pd.Series(
            pd.to_datetime(
                ["1970-01-04", "1970-01-02", "1970-01-03 12:00", "1970-01-01"], format="ISO8601"
            )
        )
        .dt.tz_localize("UTC")
        .dt.tz_convert("Asia/Tokyo"),
        pl.Series([dt.datetime(1970, 1, day, 12 * (day == 3)) for day in (4, 2, 3, 1)]),
    ],
)
def test_dates_are_seconds_since_1970(times):
    assert clicks(times).times.tolist() == [DAY, 0.0, 2.5 * DAY]


def test_the_month_comes_first_where_a_date_shows_it():
    assert clicks(["1/14/1970", "1/2/1970 1:00 PM", "2/1/1970", "1/14/1970"]).times.tolist() == [
        DAY * 37 / 24,
        13 * DAY,
        31 * DAY,
    ]
    with pytest.warns(pm.data.ColumnWarning, match="may have the month first, or the day"):
        assert clicks(["1/4/1970", "1/2/1970", "1/3/1970", "1/1/1970"]).times is None


def test_the_day_comes_first_where_a_date_shows_it():
    prefs = clicks(["31.12.1970", "1.2.1970", "2.1.1970 8:26", "31.12.1970"])
    assert prefs.times.tolist() == [31 * DAY, 364 * DAY, DAY + 506 * 60]


@pytest.mark.parametrize(
    ("times", "words"),
    [
        (
            [1, "2024-05-31", 2, 3],
            "row 1, column 'time': wanted a number, as the first time is '1'",
        ),
        (["2024-05-31", "", "7", ""], "row 2, column 'time': wanted a date like 2024-05-31, as"),
        (["2024-05-31", "2024-13-01", "", ""], "row 1, column 'time': wanted a date"),
        (["13/1/2024", "1/13/2024", "", ""], "have the month first, and the day first"),
        (
            ["13/1/2024", "31/2/2024", "", ""],
            "row 1, .* wanted a date like 5/31/2024, .* got '31/2",
        ),
        ([1, float("inf"), 1, 1], "got '?inf|finite"),
        ([1, dt.date(2024, 1, 1), 1, 1], "row 1, column 'time': wanted a number"),
    ],
)
def test_mixed_times_are_refused_and_the_first_row_is_named(times, words):
    named = {"times": times} if "month first" in words else {}
    given = {"user": USERS, "item": ITEMS} | ({} if named else {"time": times})
    with pytest.raises(ValueError, match=words):
        pm.Preferences.from_clicks(given, **named)


def test_what_is_no_time_is_not_read_and_told():
    with pytest.warns(
        pm.data.ColumnWarning, match="'time' is not read as times: '9:00' is neither"
    ):
        assert clicks(["9:00", "9:01", "9:02", "9:03"]).times is None
    with pytest.raises(ValueError, match="'9:00' is neither a number nor a date"):
        pm.Preferences.from_clicks(
            {"ann": ["tea"], "bob": ["ale"]}, times={"ann": ["9:00"], "bob": [1]}
        )


def test_empty_times_are_unknown_and_none_at_all_is_no_time():
    assert np.isnan(clicks(["", "5", None, ""]).times).tolist() == [False, True, True]
    assert clicks([None, None, float("nan"), ""]).times is None
    assert clicks([1, 2, 3, 4], name="watch_time").times is None


def test_matrices_have_times_beside_them():
    table = np.array([[1, 0, 2], [0, 1, 0]])
    dense = pm.Preferences.from_clicks(table, times=[[5, 0, 6], [0, 7, 0]])
    sparse = pm.Preferences.from_clicks(sp.csr_array(table), times=[5, 6, 7])
    assert dense.times.tolist() == sparse.times.tolist() == [5, 6, 7]
    with pytest.raises(ValueError, match="times must have one for each number that the sparse"):
        pm.Preferences.from_clicks(sp.csr_array(table), times=[5, 6])
    with pytest.raises(ValueError, match=r"times must have the shape of clicks, \(2, 3\)"):
        pm.Preferences.from_clicks(table, times=[5, 6])
    with pytest.raises(ValueError, match="times must have 1 times for 'ann'"):
        pm.Preferences.from_clicks({"ann": ["tea"], "bob": ["ale"]}, times={"bob": [1]})


def test_blocks_of_text_are_one_column():
    whole, blocks = TimeColumn("time"), TimeColumn("time")
    texts = ["3/14/2010", "", "1/2/2010 8:26", "12/1/2009"]
    one = whole.finish(whole.add(texts))
    other = blocks.finish(pl.concat([blocks.add(texts[:1]), blocks.add(texts[1:])]))
    np.testing.assert_array_equal(one, other)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert one[2] - one[3] == 32 * DAY + 506 * 60
