"""Splits by time: what is hidden comes later than what is shown."""

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.data.splits import (
    as_time,
    hide_last,
    hide_numbers,
    split_at,
    take_random,
    time_of_share,
)


def timed(times, n_users=200):
    rng = np.random.default_rng(1)
    table = rng.random((n_users, 12)) < 0.5
    return pm.Preferences.from_clicks(table, times=times(rng, table.shape))


def test_the_last_clicks_are_later_than_all_others():
    prefs = timed(lambda rng, shape: rng.random(shape))
    shown, hidden = hide_last(prefs, 2, np.random.default_rng(1))
    for row in range(prefs.n_users):
        early, late = shown.times[shown.owners == row], hidden.times[hidden.owners == row]
        assert len(late) == (2 if prefs.n_clicks[row] > 2 else 0)
        assert not len(late) or early.max() < late.min()
    both = np.concatenate([shown.times, hidden.times])
    assert sorted(both) == sorted(prefs.times)


def test_equal_times_are_drawn_and_unknown_ones_are_early():
    prefs = pm.Preferences.from_clicks(
        np.ones((3000, 4)), times=np.tile([1.0, 1, 1, np.nan], (3000, 1))
    )
    hidden = hide_last(prefs, 1, np.random.default_rng(1)).hidden
    counts = np.bincount(hidden.codes, minlength=4)
    assert counts[3] == 0
    assert (abs(counts[:3] - 1000) < 130).all()
    again = hide_last(prefs, 1).hidden
    assert (again.codes == hide_last(prefs, 1).hidden.codes).all()  # without rng always the same


def test_a_split_at_a_time_leaves_unknown_times_to_learn_from():
    prefs = timed(lambda rng, shape: np.where(rng.random(shape) < 0.1, np.nan, rng.random(shape)))
    time = time_of_share(prefs, 0.25)
    shown, hidden = split_at(prefs, time)
    assert np.nanmax(shown.times) < time <= hidden.times.min()
    assert np.isnan(shown.times).sum() == np.isnan(prefs.times).sum()
    n_known = (~np.isnan(prefs.times)).sum()
    assert abs(len(hidden.codes) / n_known - 0.25) < 0.01


def test_times_are_numbers_or_dates():
    assert as_time("2011-12-09 12:30") == as_time(np.datetime64("2011-12-09T12:30")) == 1323433800
    with pytest.raises(ValueError, match="at must be a number or a date, got nan"):
        as_time(float("nan"))


def test_clicks_hidden_at_random_are_those_of_the_least_numbers():
    clicked = np.random.default_rng(1).random((40, 12)) < 0.4
    prefs = pm.Preferences.from_clicks(clicked)
    owners, values = prefs.owners, np.random.default_rng(7).random(len(prefs.codes))
    ranks = np.empty(len(values), dtype=int)
    ranks[np.lexsort((values, owners))] = np.arange(len(values)) - prefs.starts[owners]
    for hide in (1, 3):
        taken = take_random(prefs, hide, np.random.default_rng(7))
        assert (taken == ((ranks < hide) & (prefs.n_clicks > hide)[owners])).all()
    numbers = np.minimum(np.arange(40) % 4, prefs.n_clicks)
    hidden = hide_numbers(prefs, numbers, False, np.random.default_rng(7)).hidden
    assert (hidden.codes == prefs.codes[ranks < numbers[owners]]).all()
    nothing = hide_numbers(prefs, 0 * numbers, False, np.random.default_rng(7))
    assert not len(nothing.hidden.codes)
