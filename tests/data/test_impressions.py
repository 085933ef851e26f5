"""Comparisons from impressions: each item that was taken over each that was passed over."""

from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pseudomallows as pm
from pseudomallows.data import from_pairs as impression_inputs

SHOWN = {
    "user": ["ann", "ann", "ann", "bob", "bob"],
    "item": ["tea", "ale", "gin", "tea", "rum"],
    "clicked": [1, 0, 0, 0, 0],
}


def said_by(prefs):
    """(user, better, worse): how often."""
    users, items = prefs.users.tolist(), prefs.items.tolist()
    owners = np.repeat(np.arange(prefs.n_users), np.diff(prefs.starts)).tolist()
    entries = zip(owners, prefs.better.tolist(), prefs.worse.tolist(), strict=True)
    named = [(users[u], items[b], items[w]) for u, b, w in entries]
    return Counter(dict(zip(named, prefs.counts.tolist(), strict=True)))


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize(
    "values",
    [[1, 0, 0, 0, 0], [True] + [False] * 4, ["yes"] + ["no"] * 4, ["True"] + ["false"] * 4],
)
def test_what_is_taken_beats_what_is_passed_over(make, values):
    prefs = pm.Preferences.from_impressions(make(SHOWN | {"clicked": values}))
    assert said_by(prefs) == {("ann", "tea", "ale"): 1, ("ann", "tea", "gin"): 1}
    assert prefs.items.tolist() == ["ale", "gin", "rum", "tea"]  # rum was only passed over
    assert prefs.is_informative.tolist() == [True, False]
    assert not prefs.ties.any()


def test_items_are_compared_within_a_slate():
    shown = {
        "user": ["ann"] * 6,
        "session": [1, 1, 2, 2, 3, 3],
        "item": ["tea", "ale", "ale", "gin", "tea", "gin"],
        "clicked": [1, 0, 1, 0, 1, 1],
    }
    prefs = pm.Preferences.from_impressions(shown)
    assert said_by(prefs) == {("ann", "tea", "ale"): 1, ("ann", "ale", "gin"): 1}
    del shown["session"]
    whole = pm.Preferences.from_impressions(shown)  # all were clicked once
    assert said_by(whole) == {}
    shown["hour"] = [1, 1, 2, 2, 3, 3]
    again = pm.Preferences.from_impressions(shown, slate="hour")
    assert again.digest() == prefs.digest()


def test_the_same_slate_of_two_users_is_two():
    shown = {"user": [1, 1, 2, 2], "slate": [7] * 4, "item": list("abab"), "clicked": [1, 0, 0, 1]}
    assert said_by(pm.Preferences.from_impressions(shown)) == {(1, "a", "b"): 1, (2, "b", "a"): 1}


def test_an_item_that_is_shown_again_counts_once_in_a_slate():
    shown = {"user": [1] * 4, "item": list("aaab"), "clicked": [0, 1, 0, 0]}
    assert said_by(pm.Preferences.from_impressions(shown)) == {(1, "a", "b"): 1}
    shown = {"user": [1] * 4, "item": list("abab"), "clicked": [1, 0, 1, 0], "slate": [1, 1, 2, 2]}
    assert said_by(pm.Preferences.from_impressions(shown)) == {(1, "a", "b"): 2}


ROW = st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 4), st.booleans())


@given(st.lists(ROW, min_size=1, max_size=30), st.booleans())
def test_impressions_are_as_by_definition(rows, has_slates):
    columns = dict(
        zip(("user", "slate", "item", "clicked"), map(list, zip(*rows, strict=True)), strict=True)
    )
    if not has_slates:
        del columns["slate"]
    slates = {}
    for user, slate, item, clicked in rows:
        mine = slates.setdefault((user, slate if has_slates else 0), {})
        mine[item] = mine.get(item, False) or clicked
    expected = Counter(
        (user, one, other)
        for (user, _), mine in slates.items()
        for one in mine
        for other in mine
        if mine[one] and not mine[other]
    )
    prefs = pm.Preferences.from_impressions(columns, items=range(5))
    assert said_by(prefs) == expected
    assert prefs.users.tolist() == sorted({row[0] for row in rows})


def test_missing_values_are_left_out_and_counted():
    shown = SHOWN | {"clicked": [1, 0, None, 0, 0]}
    with pytest.warns(pm.data.DroppedRowsWarning, match="1 of 5 rows have no clicked"):
        prefs = pm.Preferences.from_impressions(shown)
    assert said_by(prefs) == {("ann", "tea", "ale"): 1}


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (SHOWN | {"clicked": [1, 2, 0, 0, 0]}, "row 1: clicked must be 1 or 0, .* got 2; 1 of 5"),
        (SHOWN | {"clicked": [1, "maybe", 0, 0, 0]}, "row 1: clicked must be .* got 'maybe'"),
        (
            {"user": [1], "item": [2]},
            "impressions: no column for 'clicked': name one of user, item 'clicked'",
        ),
        ({"user": [1], "item": [2], "clicked": [1]}, "at least 2 items, got 1"),
        (SHOWN | {"item": ["tea"]}, "columns of equal length"),
        ({"user": [], "item": [], "clicked": []}, "impressions is empty"),
        ([("ann", "tea", 1)], "impressions must be a data frame or a dict .* got list"),
    ],
)
def test_bad_impressions_are_told(shown, words):
    with pytest.raises((ValueError, TypeError), match=words):
        pm.Preferences.from_impressions(shown)


def test_names_and_weights_are_checked():
    with pytest.raises(ValueError, match="unknown item: 'gin'"):
        pm.Preferences.from_impressions(SHOWN, items=["tea", "ale", "rum"])
    with pytest.raises(ValueError, match="slate must be a column, got 'page'"):
        pm.Preferences.from_impressions(SHOWN, slate="page")
    prefs = pm.Preferences.from_impressions(SHOWN, weights=[4, 1])
    assert prefs.wins().sum() == 8


def test_too_many_comparisons_are_refused_before_they_are_made(monkeypatch):
    monkeypatch.setattr(impression_inputs, "MOST_PAIRS", 1)
    with pytest.raises(ValueError, match=r"impressions makes 2 comparisons, .* a column 'slate'"):
        pm.Preferences.from_impressions(SHOWN)
