"""What every kind of data shares: names, weights, rows of people."""

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.data import check_known, rows_of_users
from pseudomallows.rankings import check_weights

NAMED = pm.Preferences.from_clicks({"ann": [0], "bob": [1], 7: [0, 1]}, items=range(3))


def test_numpy_names_become_plain_ones(tmp_path):
    prefs = pm.Preferences.from_rankings([[1, 2, 3]], items=np.array([10, 20, 30]))
    pm.fit(prefs, "pseudo", alpha=1, rng=1).save(tmp_path / "x.pm")
    assert pm.load(tmp_path / "x.pm").items.tolist() == [10, 20, 30]


def test_other_names_change_nothing_else():
    other = NAMED.rename(users=["x", "y", "z"], items=list("abc"))
    assert (other.users.tolist(), other.items.tolist()) == (["x", "y", "z"], ["a", "b", "c"])
    assert other.codes.tolist() == NAMED.codes.tolist()
    assert NAMED.rename().users.tolist() == ["ann", "bob", 7]
    with pytest.raises(ValueError, match="users must have different names, got 'x' twice"):
        NAMED.rename(users=["x", "y", "x"])


def test_a_weight_is_a_number_of_people():
    prefs = pm.Preferences.from_clicks([[1, 0, 0], [0, 1, 0], [0, 0, 1]], weights=[2, 0, 1])
    people, owners = prefs.one_row_each()
    assert owners.tolist() == [0, 0, 1, 2]
    assert people.weights.tolist() == [1, 1, 0, 1]  # who counts for nobody stays, for nobody
    assert people.codes.tolist() == [0, 0, 1, 2]


@pytest.mark.parametrize("users", ["bob", ["bob"], ("bob",), np.array(["bob"])])
def test_one_name_alone_is_one_user(users):
    assert rows_of_users(NAMED, users).tolist() == [1]


def test_rows_come_in_the_order_of_the_names():
    assert rows_of_users(NAMED, [7, "ann", 7]).tolist() == [2, 0, 2]
    assert rows_of_users(NAMED, 7).tolist() == [2]
    assert rows_of_users(NAMED, []).tolist() == []


@pytest.mark.parametrize(
    ("name", "advice"),
    [("7", "did you mean 7?"), ("cy", "the first are 'ann', 'bob', 7"), ([1], "the first are")],
)
def test_a_name_that_is_not_there_is_told_with_advice(name, advice):
    with pytest.raises(ValueError, match="no user is named") as error:
        rows_of_users(NAMED, [name])
    assert advice in str(error.value)


def test_unknown_names_are_counted():
    names = ["a", "b", "c", "d", "a", "e"]
    with pytest.raises(ValueError, match="unknown item: 'a', 'b', 'c' and 2 more; known are"):
        check_known(np.full(6, -1), names, "item")
    check_known(np.arange(6), names, "item")


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1, 2], r"one number a user \(3\), got \(2,\)"),
        ([1, -1, 0.5], r"weights\[1\] must be a whole number.*got -1.0; 2 of 3 are wrong"),
        ([1, 1, np.nan], r"weights\[2\] must be a whole number.*got nan"),
        ([6e8, 6e8, 1], "weights must sum to at most 1e.09, got 1.2e.09"),
    ],
)
def test_weights_that_are_no_numbers_of_people_are_refused(weights, words):
    with pytest.raises(ValueError, match=words):
        check_weights(weights, 3)


def test_without_weights_each_row_is_one_person():
    assert check_weights(None, 3).tolist() == [1, 1, 1]
