"""Comparisons from frames, lists and dicts, in all their forms."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pseudomallows as pm

SAID = [("ann", "tea", "ale"), ("bob", "ale", "tea"), ("ann", "gin", "ale"), ("ann", "tea", "ale")]
COLUMNS = dict(zip(("user", "better", "worse"), map(list, zip(*SAID, strict=True)), strict=True))
FORMS = {
    "triples": SAID,
    "lists": [list(row) for row in SAID],
    "array": np.array(SAID),
    "iterator": iter(SAID),
    "columns": COLUMNS,
    "arrays": {name: np.array(column) for name, column in COLUMNS.items()},
    "pandas": pd.DataFrame(COLUMNS),
    "categories": pd.DataFrame(COLUMNS).astype("category"),
    "polars": pl.DataFrame(COLUMNS),
    "bayesmallows": pd.DataFrame(COLUMNS).rename(
        columns={"user": "assessor", "better": "top_item", "worse": "bottom_item"}
    )[["assessor", "bottom_item", "top_item"]],
    "winner, loser": {
        "Judge": COLUMNS["user"],
        "Winner": COLUMNS["better"],
        "loser": COLUMNS["worse"],
    },
    "sides": {
        "user": COLUMNS["user"],
        "item_a": COLUMNS["worse"],
        "item_b": COLUMNS["better"],
        "winner": ["item_b", "b", "B", "item b"],
    },
    "names": {
        "user": COLUMNS["user"],
        "left": COLUMNS["better"],
        "right": COLUMNS["worse"],
        "winner": ["left", "ale", "gin", "tea"],
    },
    "counts": {
        "user": ["ann", "bob", "ann", "bob"],
        "chosen": ["tea", "ale", "gin", "gin"],
        "rejected": ["ale", "tea", "ale", "tea"],
        "n": [2, 1, 1, 0],
    },
    "by user": {
        "ann": [("tea", "ale"), ("gin", "ale"), ["tea", "ale"]],
        "bob": iter([("ale", "tea")]),
    },
}


def said_by(prefs):
    """{user: {(better, worse): (count, ties)}}, by names."""
    items = prefs.items.tolist()
    found = {}
    for row, user in enumerate(prefs.users.tolist()):
        mine = slice(prefs.starts[row], prefs.starts[row + 1])
        entries = [array[mine].tolist() for array in (prefs.better, prefs.worse)]
        counts = zip(prefs.counts[mine].tolist(), prefs.ties[mine].tolist(), strict=True)
        pairs = ((items[b], items[w]) for b, w in zip(*entries, strict=True))
        found[user] = dict(zip(pairs, counts, strict=True))
    return found


@pytest.mark.parametrize("form", FORMS)
def test_every_form_says_the_same(form):
    prefs = pm.Preferences.from_pairs(FORMS[form])
    assert said_by(prefs) == {
        "ann": {("gin", "ale"): (1, 0), ("tea", "ale"): (2, 0)},
        "bob": {("ale", "tea"): (1, 0)},
    }
    assert prefs.items.tolist() == ["ale", "gin", "tea"]


def test_rows_without_a_user_are_votes():
    votes = pm.Preferences.from_pairs([row[1:] for row in SAID])
    assert votes.is_vote
    assert votes.weights.tolist() == [1, 1, 2]
    assert votes.users.tolist() == [0, 1, 2]
    assert votes.wins().tolist() == pm.Preferences.from_pairs(SAID).wins().tolist()
    frame = pd.DataFrame(COLUMNS).drop(columns="user")
    assert pm.Preferences.from_pairs(frame).digest() == votes.digest()
    assert pm.Preferences.from_pairs(SAID).as_votes().digest() == votes.digest()


@pytest.mark.parametrize(
    "tie", ["tie", "Tie", "tie (bothbad)", "tie (both bad)", "both_bad", "draw", "both good"]
)
def test_a_tie_is_of_neither(tie):
    arena = {
        "model_a": ["x", "y", "y", "x"],
        "model_b": ["y", "x", "z", "z"],
        "winner": ["model_a", tie, "model_b", tie],
        "user": ["j"] * 4,
    }
    prefs = pm.Preferences.from_pairs(arena)
    assert said_by(prefs) == {"j": {("x", "y"): (1, 1), ("x", "z"): (0, 1), ("z", "y"): (1, 0)}}
    arena["judge"] = arena.pop("user")
    with pytest.raises(ValueError, match="a column 'judge'"):
        pm.Preferences.from_pairs(arena)
    del arena["judge"]
    votes = pm.Preferences.from_pairs(arena)
    assert votes.tied().tolist() == [[0, 1, 1], [1, 0, 0], [1, 0, 0]]
    assert votes.n_users == 4
    assert votes.is_vote


def test_a_leaderboard_has_other_columns_too():
    frame = pd.DataFrame(
        {
            "question_id": [1, 2],
            "model_a": ["x", "y"],
            "model_b": ["y", "x"],
            "winner": ["model_a", "model_b"],
            "conversation_a": [["hello"], ["hi"]],
            "conversation_b": [["hello"], ["hi"]],
        }
    )
    votes = pm.Preferences.from_pairs(frame)
    assert votes.weights.tolist() == [2]


def test_weights_are_of_the_users_or_of_the_rows_if_there_are_none():
    prefs = pm.Preferences.from_pairs(SAID, weights=[2, 5])
    assert prefs.wins().sum() == 3 * 2 + 5
    votes = pm.Preferences.from_pairs([row[1:] for row in SAID], weights=[1, 2, 3, 0])
    assert votes.weights.tolist() == [2, 3, 1]
    with pytest.raises(ValueError, match=r"one number a user \(4\), got \(2,\)"):
        pm.Preferences.from_pairs([row[1:] for row in SAID], weights=[2, 5])


def test_names_fix_the_order_and_may_say_nothing():
    names = {"users": ["eve", "bob", "ann"], "items": ["tea", "rum", "gin", "ale"]}
    prefs = pm.Preferences.from_pairs(SAID, **names)
    assert prefs.users.tolist() == names["users"]
    assert prefs.items.tolist() == names["items"]
    assert prefs.is_informative.tolist() == [False, True, True]
    assert said_by(prefs)["ann"] == {("tea", "ale"): (2, 0), ("gin", "ale"): (1, 0)}


def test_a_user_without_a_comparison_stays():
    prefs = pm.Preferences.from_pairs({"zoe": [], "ann": [("tea", "ale")]})
    assert prefs.users.tolist() == ["zoe", "ann"]
    assert prefs.n_comparisons.tolist() == [0, 1]


def test_rows_with_something_missing_are_left_out_and_counted():
    columns = {
        "user": [1, 1, None, 2],
        "better": ["a", None, "b", "c"],
        "worse": ["b", "a", "c", None],
    }
    for table in (columns, pd.DataFrame(columns), pl.DataFrame(columns)):
        with pytest.warns(
            pm.data.DroppedRowsWarning,
            match="3 of 4 rows have no better or worse or user .* left out, the first at row 1",
        ):
            prefs = pm.Preferences.from_pairs(table)
        assert said_by(prefs) == {1: {("a", "b"): (1, 0)}}


def test_a_missing_winner_or_count_is_left_out_too():
    sides = {"a": ["x", "x"], "b": ["y", "y"], "winner": ["a", None], "count": [3, 1]}
    with pytest.warns(pm.data.DroppedRowsWarning, match="1 of 2 rows have no winner"):
        assert pm.Preferences.from_pairs(sides).weights.tolist() == [3]
    sides |= {"winner": ["a", "b"], "count": [np.nan, 1]}
    with pytest.warns(pm.data.DroppedRowsWarning, match="1 of 2 rows have no count"):
        assert pm.Preferences.from_pairs(sides).weights.tolist() == [1]


def sides(*winners, names=("a", "b"), columns=("model_a", "model_b")):
    n = len(winners)
    return {columns[0]: [names[0]] * n, columns[1]: [names[1]] * n, "winner": list(winners)}


BAD = [
    ([("ann", "tea", "tea")], r"pairs\[0\]: 'tea' is compared with itself: drop the row; 1 of 1"),
    ([("tea", "ale"), ("ale", "ale")], r"pairs\[1\]: 'ale' is compared with itself"),
    ({"ann": [("x", "y"), ("x", "x")]}, r"pairs\['ann'\]\[1\]: 'x' is compared with itself"),
    (sides("a", "b", names=("x", "x")), "row 0: 'x' is compared with itself.*; 2 of 2 rows"),
    ([("ann", "tea", "ale", "gin")], r"pairs\[0\] must be \(better, worse\) or \(user, better"),
    ([("tea", "ale"), ("tea", "ale", "gin")], r"pairs\[1\] must be \(better, worse\), got"),
    ([("ann", "tea", "ale"), ("tea", "ale")], r"pairs\[1\] must be \(user, better, worse\), got"),
    ({"ann": [("tea", "ale", "gin")]}, r"pairs\['ann'\]\[0\] must be \(better, worse\), got"),
    ({"ann": ["ab"]}, r"pairs\['ann'\]\[0\] must be \(better, worse\), got ab"),
    ({"ann": "ab"}, r"pairs\['ann'\] must be a list of \(better, worse\), got 'ab'"),
    (["ab", "cd"], r"pairs\[0\] must be \(better, worse\) or \(user, better, worse\), got ab"),
    ([{"better": 1, "worse": 2}], r"pairs\[0\] must be"),
    ([], "pairs is empty: give a data frame"),
    ({}, "pairs is empty"),
    (pd.DataFrame({"better": [], "worse": []}), "pairs is empty"),
    ("tea", "pairs must be comparisons, got 'tea'"),
    (7, "pairs must be comparisons, got 7"),
    (
        pd.DataFrame({"user": [1], "item": [2]}),
        "pairs: no column for 'better': name one of .* or two 'item_a' and",
    ),
    (
        sides("model_c"),
        "row 0: the winner must be 'model_a', 'model_b', .* or 'tie', got 'model_c'",
    ),
    (
        sides("x", "a", names=("x", "y")) | {"winner": ["x", "z"]},
        "row 1: the winner must be .* 'z'",
    ),
    (sides("a", names=("b", "a")), "row 0: the winner 'a' may be a side or an item"),
    (
        sides(0, 1, names=("x", "y"), columns=("item1", "item2")),
        "row 0: the winner must be .* got 0",
    ),
    (COLUMNS | {"count": [1, -1, 2, 3]}, "row 1: the count must be a whole number, 0 or more"),
    (COLUMNS | {"count": [1, 1, 2.5, 3]}, "row 2: the count must be .* got 2.5; 1 of 4 rows"),
    (COLUMNS | {"count": ["x", 1, 1, 3]}, "row 0: the count must be .* got 'x'"),
    (COLUMNS | {"count": [1e12, 1, 1, 3]}, "row 0: the count must be .* at most 1e.09"),
    (COLUMNS | {"worse": ["ale"]}, "columns of equal length, got .1, 4."),
    (COLUMNS | {"worse": "ale"}, r"pairs\['worse'\] must be a column, got 'ale'"),
    ([("x", ["y"])], "a name must be text or a number"),
    ({"better": ["x"], "worse": ["y"], "n": [0]}, "pairs is empty: every count is 0"),
]


@pytest.mark.parametrize(("pairs", "words"), BAD)
def test_bad_comparisons_are_told(pairs, words):
    with pytest.raises((ValueError, TypeError), match=words):
        pm.Preferences.from_pairs(pairs)


def test_bad_names_are_told():
    with pytest.raises(ValueError, match="unknown item: 'gin'"):
        pm.Preferences.from_pairs(SAID, items=["tea", "ale"])
    with pytest.raises(ValueError, match="unknown user: 'bob'"):
        pm.Preferences.from_pairs(SAID, users=["ann"])
    with pytest.raises(ValueError, match="pairs has no column of users"):
        pm.Preferences.from_pairs([("tea", "ale")], users=["ann"])
    frame = pd.DataFrame([[1, 2, 3]], columns=["better", "worse", "worse"])
    with pytest.raises(ValueError, match="2 columns for 'worse'"):
        pm.Preferences.from_pairs(frame)


def test_messages_lead_to_the_right_call():
    with pytest.raises(TypeError, match="from_clicks, from_pairs or from_impressions"):
        pm.fit(SAID)
    with pytest.raises(
        ValueError, match=r"these are comparisons .* use pm\.Preferences\.from_pairs"
    ):
        pm.Preferences.from_rankings(pd.DataFrame(COLUMNS))


NAME = st.one_of(st.text(max_size=3), st.integers(-5, 5))


@given(st.lists(st.tuples(NAME, NAME, NAME).filter(lambda row: row[1] != row[2]), min_size=1))
def test_any_names_are_kept(said):
    prefs = pm.Preferences.from_pairs(said)
    expected = {}
    for user, better, worse in said:
        mine = expected.setdefault(user, {})
        mine[better, worse] = (mine.get((better, worse), (0, 0))[0] + 1, 0)
    assert said_by(prefs) == expected
