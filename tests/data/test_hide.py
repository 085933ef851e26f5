"""Splits: what is hidden and what is shown."""

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.data.splits import hide_clicks


def test_hidden_clicks_are_clicks_and_the_rest_is_shown():
    prefs = pm.simulate_clicks(200, 20, 3, 6, rng=1).preferences
    shown, hidden = hide_clicks(prefs, 3, np.random.default_rng(1))
    for user in range(200):
        before, left = set(prefs.clicks_of(user)), set(shown.clicks_of(user))
        gone = set(np.flatnonzero(hidden[user]))
        assert left | gone == before
        assert not left & gone
        assert len(gone) == (3 if len(before) > 3 else 0)


def test_every_click_is_hidden_equally_often():
    prefs = pm.Preferences.from_clicks({u: [0, 1, 2, 3] for u in range(4000)}, items=range(6))
    hidden = hide_clicks(prefs, 1, np.random.default_rng(1))[1]
    assert (np.abs(hidden.sum(axis=0)[:4] - 1000) < 120).all()


def test_clicks_of_some_users_only_may_be_hidden():
    prefs = pm.Preferences.from_clicks([[1, 1, 0], [1, 1, 1], [0, 1, 1]])
    shown, hidden = hide_clicks(prefs, 1, np.random.default_rng(1), np.array([False, True, True]))
    assert hidden.sum(axis=1).tolist() == [0, 1, 1]
    assert shown.n_clicks.tolist() == [2, 2, 1]
    with pytest.raises(ValueError, match="no user has more than 3 clicks to hide; the most is 3"):
        hide_clicks(prefs, 3, np.random.default_rng(1))
