"""Are stated probabilities still right on later clicks?"""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.data.splits import hide_random, keep_first
from pseudomallows.evaluation import Calibration
from pseudomallows.evaluation.check import CalibrationCheck


@pytest.fixture(scope="module")
def data():
    """Clicks of people of two tastes: a fit of some of them, and what came later."""
    rng = np.random.default_rng(1)
    tastes = [pm.simulate_clicks(400, 20, 9, 6, rng=seed).preferences for seed in (1, 2)]
    tables = [np.zeros((400, 20), bool) for _ in tastes]
    for table, taste in zip(tables, tastes, strict=True):
        table[taste.owners, taste.codes] = True
    return hide_random(pm.Preferences.from_clicks(np.concatenate(tables)), 2, rng)


@pytest.fixture(scope="module")
def fitted(data):
    return pm.fit(data.shown, "personal", held_out=data.hidden, blend=False, rng=1)


def test_probabilities_learnt_from_such_clicks_are_right(data, fitted):
    found = pm.check(fitted, data.hidden, k=5)
    assert found.answer == "yes"
    assert found.n_users == (data.hidden.n_clicks > 0).sum()
    assert found.n_recommendations == 5 * found.n_users
    assert str(found).startswith("The probabilities are still right: of ")


def test_clicks_of_another_law_are_caught(data, fitted):
    rng = np.random.default_rng(2)
    strange = data.hidden.choose(np.ones(len(data.hidden.codes), bool))
    strange = pm.Preferences.from_clicks(
        {user: rng.choice(20, 2, replace=False).tolist() for user in strange.users.tolist()},
        items=range(20),
    )
    found = pm.check(fitted, strange, k=5)
    assert found.answer == "no"
    assert "too high now" in str(found)
    assert "Fit again with the later clicks" in str(found)


def test_few_users_say_little(data, fitted):
    some = data.hidden.take(np.flatnonzero(data.hidden.n_clicks)[:10])
    assert pm.check(fitted, some).answer == "too few"


def test_what_is_known_already_is_no_news(data, fitted):
    with pytest.raises(ValueError, match="later has no new click of a user of the fit"):
        pm.check(fitted, data.shown)
    with pytest.raises(ValueError, match="needs a fit of clicks"):
        pm.check(pm.fit(pm.Preferences.from_rankings([[1, 2, 3]] * 9), "pseudo", 2), data.shown)


def test_the_interval_covers_the_difference_as_often_as_it_says():
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(300):
        level = rng.beta(2, 6, (80, 1))  # users differ, so their recommendations go together
        stated = np.clip(level + rng.normal(0, 0.05, (80, 5)), 0.01, 0.99)
        observed = (rng.random((80, 5)) < level).astype(float)
        low, high = CalibrationCheck.of(stated, observed, 10).interval
        covered += low <= (level - stated).mean() <= high
    assert 270 <= covered <= 297  # 95 % of 300, within four standard errors


def test_of_clicks_of_one_time_those_count_that_chance_takes():
    """Not the items that happen to come first in the data; clicks of an earlier time all count."""
    times = np.tile([1.0] + [2.0] * 99, 50)
    table = {"user": np.repeat(np.arange(50), 100), "item": np.tile(np.arange(100)[::-1], 50)}
    kept = keep_first(pm.Preferences.from_clicks(table | {"time": times}), 30)
    assert kept.n_clicks.tolist() == [30] * 50
    assert kept.item_counts()[99] == 50
    halves = [part.sum() for part in np.split(kept.item_counts()[1:99], 2)]
    assert abs(halves[0] - halves[1]) < 0.1 * sum(halves)


def test_the_figures_of_one_user_are_numbers_or_none():
    found = CalibrationCheck.of(np.array([[0.5, 0.25]]), np.array([[1.0, 0.0]]), 2).figures()
    assert (found["low"], found["high"], found["answer"]) == (None, None, "too few")
    assert found["bins"] == [
        {"stated": 0.25, "observed": 0.0, "count": 1},
        {"stated": 0.5, "observed": 1.0, "count": 1},
    ]


def test_a_mean_that_is_right_does_not_hide_bins_that_are_wrong():
    rng = np.random.default_rng(4)
    stated = np.tile([0.4, 0.1, 0.1, 0.1], (300, 1))
    observed = (rng.random((300, 4)) < np.array([0.58, 0.04, 0.04, 0.04])).astype(float)
    found = CalibrationCheck.of(stated, observed, 10)
    low, high = found.interval
    assert low < 0.01
    assert high > -0.01
    assert found.answer == "no"
    assert "right on average, but not everywhere" in str(found)
    fair = (rng.random((300, 4)) < stated).astype(float)
    assert CalibrationCheck.of(stated, fair, 10).answer == "yes"


def test_small_probabilities_have_a_small_tolerance():
    """0.081 stated and 0.096 observed is a fifth too little."""
    bins = Calibration(np.array([0.081]), np.array([0.096]), np.array([30_000]))
    found = CalibrationCheck(0.081, 0.096, 0.004, 3000, 30_000, bins)
    assert found.answer == "no"
    assert "too low now" in str(found)
    near = CalibrationCheck(0.081, 0.085, 0.004, 3000, 30_000, bins)
    assert near.answer == "yes"
    large = CalibrationCheck(
        0.5, 0.51, 0.004, 3000, 30_000, replace(bins, stated=np.array([0.095]))
    )
    assert large.answer == "yes"


def test_longer_windows_than_were_learnt_give_no_warning(data, fitted):
    """Their odds are those of the largest one, and they sum to their own number."""
    seen, every = data.shown, np.arange(20)
    later = {
        user: np.setdiff1d(every, seen.codes[seen.owners == user])[: 8 + user % 6].tolist()
        for user in range(100)
    }
    fresh = replace(fitted)  # a recommender warns once
    assert fresh.correction.largest < 8
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pm.check(fresh, later)
    found = pm.recommend(fresh, 20, users=list(range(50)), window=9).probabilities
    assert np.nansum(found, axis=1) == pytest.approx(np.full(50, 9.0))
