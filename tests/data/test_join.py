"""Clicks joined with more of them, by the names of users and items."""

import numpy as np
import pandas as pd
import pytest

import pseudomallows as pm
from pseudomallows.data.more_clicks import join_clicks

OLD = pm.Preferences.from_clicks(
    {"ann": ["tea", "rum"], "bob": ["tea"], "eve": ["ale"]}, weights=[2, 1, 3]
)


def listed(clicks):
    rows = range(clicks.n_users)
    return {clicks.users[row]: clicks.items[clicks.clicks_of(row)].tolist() for row in rows}


@pytest.mark.parametrize("kind", ["clicks", "dict", "frame"])
def test_users_and_items_are_known_by_name(kind):
    new = {"zoe": ["rum"], "bob": ["ale", "tea"], "amy": ["tea"]}
    pairs = [(user, item) for user, items in new.items() for item in items]
    more = {
        "clicks": pm.Preferences.from_clicks(new, items=["tea", "ale", "rum"]),
        "dict": new,
        "frame": pd.DataFrame(pairs, columns=["user", "item"]),
    }[kind]
    found = join_clicks(OLD, more)
    assert found.users.tolist()[:3] == ["ann", "bob", "eve"]
    assert found.items.tolist() == OLD.items.tolist()
    assert listed(found) == {
        "ann": ["rum", "tea"],
        "bob": ["ale", "tea"],
        "eve": ["ale"],
        "zoe": ["rum"],
        "amy": ["tea"],
    }
    weights = dict(zip(found.users, found.weights, strict=True))
    assert weights == {"ann": 2, "bob": 1, "eve": 3, "zoe": 1, "amy": 1}
    assert listed(OLD)["bob"] == ["tea"]


def test_a_matrix_has_the_users_by_number():
    old = pm.Preferences.from_clicks([[1, 0, 0], [0, 1, 0]], items=["ale", "rum", "tea"])
    found = join_clicks(old, np.array([[0, 0, 1], [0, 0, 0], [1, 0, 1]]))
    assert listed(found) == {0: ["ale", "tea"], 1: ["rum"], 2: ["ale", "tea"]}


def test_no_new_clicks_change_nothing():
    assert join_clicks(OLD, OLD).digest() == OLD.digest()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"ann": ["gin"]}, "unknown item: 'gin'.*fit all clicks again"),
        (
            pm.Preferences.from_clicks({"ann": ["gin"], "bob": ["tea"]}),
            "items that the fit does not know: 'gin'; .*fit all clicks again",
        ),
        (
            pm.Preferences.from_clicks({"eve": ["tea", "ale"]}, weights=[2]),
            "user 'eve' with weight 2, and the fit with 3; give 3, or 1",
        ),
        ({}, "more: clicks is empty"),
    ],
)
def test_what_cannot_be_joined_is_refused(more, words):
    with pytest.raises(ValueError, match=words):
        join_clicks(OLD, more)


def test_names_of_two_types_are_refused():
    old = pm.Preferences.from_clicks({1: ["ale"], 2: ["tea"]})
    with pytest.raises(ValueError, match="user '2' and the fit 2: give names of the same type"):
        join_clicks(old, {"2": ["ale"]})


def test_rankings_are_refused():
    with pytest.raises(TypeError, match="more must be clicks"):
        join_clicks(OLD, pm.Preferences.from_rankings([[1, 2, 3]]))


def test_an_item_that_nobody_clicked_may_be_unknown():
    more = pm.Preferences.from_clicks({"zoe": ["tea"]}, items=["gin", "tea"])
    assert join_clicks(OLD, more).n_clicks.tolist() == [2, 1, 1, 1]
