"""Corrections for what comes next, and old clicks that weigh less."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.data.splits import hide_last
from pseudomallows.personal.next_clicks import draw_numbers, split_inside
from pseudomallows.personal.recency import Recency
from pseudomallows.sampling.reproduce import call_of

N_ITEMS, N_TOPICS = 40, 4


def log(drifts, n_users=500, seed=1):
    """Clicks in time: people go from topic to topic, if it `drifts`; else each has one taste."""
    rng = np.random.default_rng(seed)
    of_topic = np.arange(N_ITEMS) % N_TOPICS
    rows = []
    for user in range(n_users):
        topics, now = rng.permutation(N_TOPICS), 0
        weights = np.exp(-0.05 * np.arange(N_ITEMS))
        left = np.ones(N_ITEMS, dtype=bool)
        for time in range(18):
            if drifts and rng.random() < 0.2:
                now += 1
            topic = topics[now % N_TOPICS if drifts else time % 2]
            probabilities = weights * left * np.where(of_topic == topic, 8.0, 1.0)
            item = rng.choice(N_ITEMS, p=probabilities / probabilities.sum())
            left[item] = False
            rows.append((user, int(item), 1e9 + 86_400 * time))
    users, items, times = zip(*rows, strict=True)
    columns = {"user": np.array(users), "item": np.array(items), "time": np.array(times)}
    pd = pytest.importorskip("pandas")
    return pm.Preferences.from_clicks(pd.DataFrame(columns))


@pytest.fixture(scope="module")
def drifting():
    """The clicks of people whose tastes change, without the last three, and these."""
    return hide_last(log(drifts=True), 3)


@pytest.fixture(scope="module")
def fits(drifting):
    """By each way of calibration."""
    ways = ("last", "random")
    return {
        how: pm.fit(drifting.shown, "personal", blend=False, calibrate=how, rng=1) for how in ways
    }


def gap(fitted, later):
    found = pm.check(fitted, later, k=3)
    return abs(found.observed - found.stated), found


def test_the_last_clicks_teach_what_comes_next(fits, drifting):
    of_last, found = gap(fits["last"], drifting.hidden)
    assert of_last < 0.03, str(found)
    assert gap(fits["random"], drifting.hidden)[0] > of_last + 0.01  # the twin


def test_old_clicks_weigh_less_where_tastes_change(fits, drifting):
    assert fits["last"].recency is not None
    assert fits["last"].recency.half_life <= 10
    plain = pm.fit(drifting.shown, "personal", blend=False, calibrate=False, rng=1)
    assert plain.recency is None
    hits = [pm.check(fit, drifting.hidden, k=3).observed for fit in (fits["last"], plain)]
    assert hits[0] > hits[1] + 0.005


def test_old_clicks_weigh_the_same_where_they_do_not():
    found = pm.fit(log(drifts=False, n_users=300), "personal", blend=False, rng=1)
    assert found.recency is None


def test_what_was_chosen_is_kept_with_the_fit(fits, drifting, tmp_path):
    fits["last"].save(tmp_path / "m.pm")
    found = pm.load(tmp_path / "m.pm")
    assert isinstance(found.recency, Recency)
    assert found.recency == fits["last"].recency
    some = drifting.shown.users[:5].tolist()
    one, other = (pm.recommend(fit, 3, users=some) for fit in (found, fits["last"]))
    assert (one.probabilities == other.probabilities).all()
    assert "calibrate='last'" in call_of(found)
    assert "calibrate='random'" in call_of(fits["random"])


def test_a_date_divides_the_clicks_to_learn_from(drifting):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pm.fit(drifting.shown, "personal", blend=False, calibrate="cut", rng=1)
    assert found.settings["options"]["calibration"] == "cut"
    inside = split_inside(drifting.shown, "cut", np.random.default_rng(1))
    usual = np.flatnonzero(inside.is_usual)
    shown, hidden = inside.shown.take(usual), inside.hidden.take(usual)
    assert np.nanmax(shown.times) < inside.now <= np.nanmin(hidden.times)
    assert 0.15 < len(hidden.codes) / (len(shown.codes) + len(hidden.codes)) < 0.3
    few = np.setdiff1d(np.flatnonzero(inside.hidden.n_clicks), usual)
    assert set(inside.shown.n_clicks[few]) <= {1, 2, 3, 5, 8, 12}
    firsts, later = inside.shown.take(few), inside.hidden.take(few)
    assert all(
        firsts.times[firsts.owners == row].max() <= later.times[later.owners == row].min()
        for row in range(len(few))
    )


def test_a_share_says_how_far_ahead_is_looked():
    shown, how = hide_last(log(drifts=True, n_users=150), 3).shown, {"blend": False, "rng": 1}
    near, far = (pm.fit(shown, "personal", calibrate=share, **how) for share in (0.15, 0.5))
    days = [fit.settings["options"]["days_ahead"] for fit in (near, far)]
    assert days[0] < days[1]
    assert far.question.endswith(f"within some {days[1]:.0f} days")
    assert "calibrate=0.5" in call_of(far)
    for wrong in (0.0, 1.0, float("nan")):
        with pytest.raises(ValueError, match="calibrate must be"):
            pm.fit(shown, "personal", calibrate=wrong, **how)
    evaluated = pm.evaluate(shown, method="personal", split="time", share=0.4, **how)
    assert 0.3 < evaluated.posterior.settings["options"]["later_share"] <= 0.5


def test_a_date_that_divides_few_users_is_replaced_by_the_last_clicks():
    """Everybody comes once: nobody has clicks before and after a date."""
    prefs = log(drifts=False, n_users=200)
    visits = replace(prefs, times=prefs.times + 86_400.0 * 30 * prefs.owners)
    assert split_inside(visits, "cut", np.random.default_rng(1), is_asked=False).how == "last"
    found = pm.fit(visits, "personal", blend=False, rng=1)
    assert found.settings["options"]["calibration"] == "last"


def test_without_times_clicks_are_hidden_at_random():
    prefs = pm.simulate_clicks(120, 15, alpha=10, mean_clicks=5, rng=1).preferences
    found = pm.fit(prefs, "personal", rng=1)
    assert found.settings["options"]["calibration"] == "random"
    with pytest.raises(ValueError, match="the last clicks cannot be known, as the clicks have"):
        pm.fit(prefs, "personal", calibrate="last")
    with pytest.raises(ValueError, match="calibrate must be one of 'last', 'cut', 'random', got"):
        pm.fit(prefs, "personal", calibrate="first")


def test_too_few_users_teach_nothing():
    prefs = pm.simulate_clicks(30, 15, alpha=10, mean_clicks=5, rng=1).preferences
    found = pm.fit(prefs, "personal", rng=1)
    assert found.correction is None
    assert found.settings["options"]["calibration"] is None


def test_a_third_of_the_clicks_is_left_or_a_few():
    n_clicks = np.arange(200)
    found, is_few = draw_numbers(n_clicks, np.random.default_rng(1))
    assert (found[2:] > 0).all()
    left = n_clicks - found
    assert 0.2 < is_few.mean() < 0.4
    assert set(left[is_few & (found > 0)]) == {1, 2, 3, 5, 8, 12}
    assert set(found[100:][~is_few[100:]]) == {1, 3, 10, 30}
