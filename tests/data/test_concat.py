"""Data sets one after the other."""

import numpy as np
import pytest

import pseudomallows as pm

RANKED = pm.Preferences.from_orderings([["tea", "ale", "gin"], ["ale"]], users=["ann", "bob"])
absent = pytest.mark.filterwarnings("ignore::pseudomallows.data.AbsentItemsWarning")
CLICKED = pm.Preferences.from_clicks({"cid": ["rum", "ale"], "dan": ["tea"]})
COMPARED = pm.Preferences.from_pairs([("eve", "tea", "ale"), ("eve", "ale", "rum")])


def test_data_of_one_kind_stay_of_that_kind():
    one = pm.Preferences.from_rankings([[1, 2, 3], [3, 1, 2]], weights=[1, 2])
    other = pm.Preferences.from_rankings([[1, 0, 0]], weights=[4])
    both = pm.Preferences.concat([one, other])
    assert both.kind == "rankings"
    assert both.rankings.tolist() == [[1, 2, 3], [3, 1, 2], [1, 0, 0]]
    assert both.weights.tolist() == [1, 2, 4]
    assert both.users.tolist() == [0, 1, 2]
    assert both.items.tolist() == [0, 1, 2]
    assert pm.Preferences.concat([one]) is one


def test_clicks_and_comparisons_are_joined():
    clicks = [
        pm.Preferences.from_clicks([[1, 0, 1]]),
        pm.Preferences.from_clicks([[0, 0, 0], [0, 1, 1]]),
    ]
    both = pm.Preferences.concat(clicks)
    assert [both.clicks_of(row).tolist() for row in range(3)] == [[0, 2], [], [1, 2]]
    said = [[("a", 1, 2), ("a", 2, 1)], [("b", 2, 1)]]
    both = pm.Preferences.concat(pm.Preferences.from_pairs(rows) for rows in said)
    assert both.users.tolist() == ["a", "b"]
    assert both.wins().tolist() == [[0, 1], [2, 0]]
    assert both.is_consistent.tolist() == [False, True]


@absent
def test_items_are_those_of_all_by_name():
    mixed = pm.Preferences.concat([RANKED, CLICKED, COMPARED])
    assert mixed.items.tolist() == ["ale", "gin", "tea", "rum"]
    assert mixed.users.tolist() == ["ann", "bob", "cid", "dan", "eve"]
    ranked, clicked, compared = mixed.parts
    assert ranked.rankings.tolist() == [[2, 3, 1, 4], [1, 0, 0, 0]]  # the one that is left is last
    assert [clicked.clicks_of(row).tolist() for row in range(2)] == [[0, 3], [2]]
    assert compared.wins().tolist() == [[0, 0, 0, 1], [0] * 4, [1, 0, 0, 0], [0] * 4]


def test_rankings_that_lack_items_of_the_others_are_counted():
    one = pm.Preferences.from_rankings([[1, 2], [2, 1]], users=["x", "y"], items=["tea", "ale"])
    other = pm.Preferences.from_rankings([[1, 2, 3]], users=["z"], items=["tea", "ale", "gin"])
    words = "2 users rank only .* all others last: user 'x', .* 1 of 3 items, such as 'gin'"
    with pytest.warns(pm.data.AbsentItemsWarning, match=words) as caught:
        both = pm.Preferences.concat([one, other])
    assert caught[0].filename == __file__
    assert both.rankings.tolist() == [[1, 2, 3], [2, 1, 3], [1, 2, 3]]
    said = pm.Preferences.from_rankings([[1, 2, 0]], users=["x"], items=["tea", "ale", "gin"])
    pm.Preferences.concat([said, other])  # asked about all of them: no warning


@absent
def test_kinds_that_follow_each_other_are_one_part():
    ranked = RANKED.rename(users=["x", "y"])
    mixed = pm.Preferences.concat([RANKED, ranked, CLICKED])
    assert [part.n_users for part in mixed.parts] == [4, 2]
    more = pm.Preferences.concat([mixed, COMPARED, COMPARED.rename(users=["z"])])
    assert [part.kind for part in more.parts] == ["rankings", "clicks", "pairs"]
    again = pm.Preferences.concat([CLICKED.rename(users=["p", "q"]), more])
    assert [part.kind for part in again.parts] == ["clicks", "rankings", "clicks", "pairs"]
    assert again.users.tolist()[:3] == ["p", "q", "ann"]


def test_numbers_and_names_of_users_may_stand_side_by_side():
    one, other = pm.Preferences.from_rankings([[1, 2]]), pm.Preferences.from_rankings([[2, 1]])
    both = pm.Preferences.concat([one, other.rename(users=["ann"])])
    assert both.users.tolist() == [0, "ann"]


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([], "at least one of Preferences, got an empty list"),
        (RANKED, "a list of Preferences, got Rankings"),
        (7, "a list of Preferences, got 7"),
        ([RANKED, [[1, 2]]], "prefs must be Preferences, got list"),
        (
            [RANKED, CLICKED, RANKED],
            r"the user 'ann' is in prefs\[0\] and in prefs\[2\]: .*rename",
        ),
        (
            [RANKED, pm.Preferences.from_clicks([[1, 0, 1]])],
            r"prefs\[1\] has no item in common with those before it: its items are like 0",
        ),
        (
            [
                pm.Preferences.from_rankings([[1, 2]]),
                pm.Preferences.from_orderings([["0", "1"]], users=["x"]),
            ],
            r"prefs\[1\] has the item '0', and one before it has 0: give names of the same type",
        ),
        (
            [
                pm.Preferences.from_rankings([[1, 2]], weights=[6 * 10**8]),
                pm.Preferences.from_clicks([[1, 0]], weights=[6 * 10**8]),
            ],
            "weights must sum to at most",
        ),
    ],
)
def test_what_cannot_be_joined_is_told(parts, words):
    with pytest.raises((ValueError, TypeError), match=words):
        pm.Preferences.concat(parts)


def test_too_many_comparisons_are_refused():
    said = {"better": ["a"], "worse": ["b"], "user": ["x"], "count": [6 * 10**8]}
    one = pm.Preferences.from_pairs(said)
    with pytest.raises(ValueError, match=r"at most 1e\+09 comparisons"):
        pm.Preferences.concat([one, one.rename(users=["y"])])


def test_the_digest_of_data_does_not_depend_on_how_they_were_joined():
    whole = pm.Preferences.from_rankings(np.array([[1, 2, 3], [2, 3, 1], [0, 1, 0]]))
    parts = [whole.take([0, 1]), whole.take([2]).rename(users=[0])]
    assert pm.Preferences.concat(parts).digest() == whole.digest()
