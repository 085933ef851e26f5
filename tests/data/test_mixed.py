"""Users of several kinds together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pseudomallows as pm
from pseudomallows.data import Mixed

ITEMS = ["ale", "gin", "rum", "tea"]
RANKED = pm.Preferences.from_rankings([[1, 2, 3, 4], [1, 0, 0, 0], [0, 2, 1, 0]], items=ITEMS)
CLICKED = pm.Preferences.from_clicks([[1, 0, 0, 1], [0, 0, 0, 0]], items=ITEMS, weights=[2, 1])
PAIRS = [("u", "tea", "ale"), ("v", "gin", "tea"), ("v", "tea", "gin")]
COMPARED = pm.Preferences.from_pairs(PAIRS, items=ITEMS, weights=[5, 1]).rename(users=[0, 1])
ALL = pm.Preferences.concat([RANKED, CLICKED, COMPARED])


def rows_of(prefs):
    """What each row says, as text."""
    if prefs.kind == "mixed":
        return [row for part in prefs.parts for row in rows_of(part)]
    return [
        repr([array.tolist() for array in prefs.take([row]).to_arrays().values()])
        for row in range(prefs.n_users)
    ]


def test_the_parts_answer_all_questions():
    assert type(ALL) is Mixed
    assert [part.kind for part in ALL.parts] == ["rankings", "clicks", "pairs"]
    assert ALL.users.tolist() == list(range(7))
    assert ALL.weights.tolist() == [1, 1, 1, 2, 1, 5, 1]
    assert ALL.is_row_full.tolist() == [True] + [False] * 6
    assert ALL.is_informative.tolist() == [True, True, True, True, False, True, True]
    assert not ALL.is_full
    assert ALL.take([0]).is_full
    assert ALL.shape_words == "partial rankings, clicks and comparisons"
    assert ALL.kept() is ALL
    assert ALL.by_size() is None
    facts = ALL.facts()
    assert [facts[f"users by {kind}"] for kind in ("rankings", "clicks", "pairs")] == [3, 2, 2]
    assert (facts["people"], facts["clicks"], facts["comparisons"]) == (12, 2, 7)
    assert (facts["full"], facts["partial"], facts["contradictory users"]) == (1, 2, 1)
    assert repr(ALL) == "Mixed(7 users, 4 items; 3 by rankings, 2 by clicks, 2 by pairs)"


@given(st.lists(st.integers(0, 6), max_size=10))
def test_rows_are_taken_in_any_order(chosen):
    taken = ALL.take(chosen)
    rows = rows_of(ALL)
    assert rows_of(taken) == [rows[row] for row in chosen]
    assert taken.users.tolist() == chosen
    assert taken.weights.tolist() == ALL.weights[np.array(chosen, dtype=int)].tolist()
    for part, rows in zip(taken.parts, taken.rows_of_parts(), strict=True):
        assert part.users.tolist() == taken.users[rows].tolist()
        assert part.weights.tolist() == taken.weights[rows].tolist()


def test_rows_are_taken_by_mask():
    taken = ALL.take(ALL.is_informative)
    assert repr(taken) == "Mixed(6 users, 4 items; 3 by rankings, 1 by clicks, 2 by pairs)"


def test_other_names_are_those_of_the_parts_too():
    named = ALL.rename(users=list("abcdefg"), items=["w", "x", "y", "z"])
    assert named.parts[1].users.tolist() == ["d", "e"]
    assert all(part.items.tolist() == ["w", "x", "y", "z"] for part in named.parts)


def test_each_person_has_a_row():
    each, owners = ALL.one_row_each()
    assert owners.tolist() == [0, 1, 2, 3, 3, 4, *[5] * 5, 6]
    assert all((part.weights == 1).all() for part in each.parts)


def test_parts_of_a_file_that_do_not_fit_are_refused():
    arrays = ALL.to_arrays()
    assert {name.split("_")[0] for name in arrays} == {"mixed", "part0", "part1", "part2"}
    again = Mixed.from_arrays(arrays, ALL.users, ALL.items)
    assert rows_of(again) == rows_of(ALL)
    for places in ([[0, 3], [1, 2]], [[0, 3], [1, 2], [3, 2]], [[0, 3], [1, 3], [2, 1]], []):
        wrong = arrays | {"mixed_parts": np.array(places, dtype=np.int64).reshape(-1, 2)}
        with pytest.raises(ValueError):
            Mixed.from_arrays(wrong, ALL.users, ALL.items)
    heavy = {
        f"part{n}_{kind}_weights": np.full(2, 3 * 10**8) for n, kind in ((1, "click"), (2, "pair"))
    }
    with pytest.raises(ValueError, match="its parts have weights"):
        Mixed.from_arrays(arrays | heavy, ALL.users, ALL.items)


def test_only_arrays_of_parts_are_known():
    assert Mixed.array_type("part12_click_codes") is np.int32
    assert Mixed.array_type("part1_consensus") is None
    assert Mixed.array_type("click_codes") is None
