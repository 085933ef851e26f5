"""Who is evaluated, by which clicks, and that the result says so."""

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.evaluation.evaluate import make_trial


@pytest.fixture
def prefs():
    """Five users who click a, b, c, ... one after the other, starting at their own time."""
    users = {"ann": (0, 4), "bob": (2, 3), "cat": (10, 2), "dan": (0, 2), "eve": (5, 8)}
    rows = [
        (user, "abcdefgh"[place], first + place)
        for user, (first, size) in users.items()
        for place in range(size)
    ]
    names, items, times = zip(*rows, strict=True)
    return pm.Preferences.from_clicks({"user": names, "item": items, "time": times})


def trial(prefs, split=None, hide=2, k=None, **given):
    return make_trial(prefs, hide, k, split, np.random.default_rng(1), **given)


def words_of(clicks):
    return ["".join(clicks.items[clicks.codes][clicks.owners == row]) for row in range(5)]


def test_the_last_clicks_of_those_who_have_more_are_hidden(prefs):
    found = trial(prefs, "last")
    assert words_of(found.hidden) == ["cd", "bc", "", "", "gh"]
    assert words_of(found.shown) == ["ab", "a", "ab", "ab", "abcdef"]
    assert found.evaluated.tolist() == [0, 1, 4]
    assert str(found.who) == (
        "3 of 5 users evaluated; not evaluated: 2 with 2 clicks or fewer (lower hide to judge them)"
    )
    assert found.who.by == "each user's last 2 clicks"


def test_all_clicks_from_a_time_on_are_hidden(prefs):
    found = trial(prefs, "time", at=4)
    assert words_of(found.shown) == ["abcd", "ab", "", "ab", ""]
    assert found.evaluated.tolist() == [1]
    assert found.who.others == {"without a click before 4": 2, "without a click after it": 2}
    assert found.windows.tolist() == [1]
    assert trial(prefs, "time", share=0.3).hidden.times.min() == 9  # 6 of 19
    with pytest.raises(
        ValueError, match="no user can be evaluated by all clicks from 10 on: 1 with"
    ):
        trial(prefs.take([0, 2]), "time", at=10)


def test_a_test_set_of_ones_own(prefs, tmp_path):
    later = {"ann": ["a", "e", "zz"], "fay": ["a"], "dan": ["c"], "cat": ["a"]}
    found = trial(prefs, test=later)
    assert words_of(found.hidden) == ["e", "", "", "c", ""]
    assert found.evaluated.tolist() == [0, 3]
    assert found.who.others == {
        "in test, but not in prefs": 1,
        "without a new click in test": 3,
    }
    assert "without 4 of 6 that are in prefs already" in found.who.by
    file = tmp_path / "later.csv"
    file.write_text("user,item\n" + "\n".join(f"{u},{i}" for u in later for i in later[u]))
    again = trial(prefs, test=file)
    assert words_of(again.hidden) == words_of(found.hidden)
    assert again.who == found.who
    with pytest.raises(ValueError, match="test has no click that is not in prefs already"):
        trial(prefs, test=prefs)


def test_names_of_a_file_may_be_numbers(tmp_path):
    prefs = pm.Preferences.from_clicks({"user": [1, 1, 2], "item": [7, 8, 7]})
    (tmp_path / "later.csv").write_text("user,item\n2,8\n")
    assert trial(prefs, test=tmp_path / "later.csv").hidden.n_clicks.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"split": "first"}, "split must be one of 'random', 'last', 'time', got 'first'"),
        ({"at": 3}, "at is for split='time'"),
        ({"split": "time", "share": 0.1, "at": 3}, "by at or by share, not by both"),
        ({"split": "time", "share": 1.5}, "share must be between 0 and 1, got 1.5"),
        ({"split": "time", "at": "noon"}, "at must be a time: .*'noon' is neither a number nor"),
        ({"split": "time", "at": 99}, "the split at 99 leaves nothing to judge by: the times are"),
        (
            {"split": "last", "test": {"ann": ["a"]}},
            "test already says what is evaluated: leave out split=",
        ),
        ({"split": "last", "hide": 9}, "no user has more than 9 clicks to hide; the most is 8"),
    ],
)
def test_questions_that_cannot_be_answered_are_refused(prefs, given, words):
    with pytest.raises(ValueError, match=words):
        trial(prefs, **given)


def test_clicks_without_times_cannot_be_split_by_time():
    bare = pm.Preferences.from_clicks({"ann": ["tea", "ale"]})
    for split in ("last", "time"):
        with pytest.raises(ValueError, match="as the clicks have no times: name a column of the"):
            trial(bare, split, hide=1)
