"""Probabilities for users with few clicks, and for clicks with and without times."""

import functools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pseudomallows as pm
from pseudomallows.data.splits import hide_random
from pseudomallows.evaluation.figures import hits_of


@functools.cache
def halves():
    """Purchases of a shop, of one half of the customers and of the other, no two at once."""
    shop, rng = pm.datasets.online_retail(n_items=60, min_purchases=8), np.random.default_rng(1)
    is_first = rng.permutation(shop.n_users) < shop.n_users // 2
    shop = replace(shop, times=shop.times + rng.random(len(shop.times)))
    return shop.take(is_first), shop.take(~is_first)


@functools.cache
def fit_of(kind):
    prefs = halves()[0]
    if kind == "times":
        return pm.fit(prefs, "personal", rng=1)
    if kind == "last":
        since = replace(prefs, times=prefs.times - prefs.times.min())  # no dates, so no visits
        return pm.fit(since, "personal", blend=False, calibrate="last", rng=1)
    return pm.fit(replace(prefs, times=None), "personal", calibrate=kind, rng=1)


@pytest.mark.parametrize("kind", ["times", "last", "random", False])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_probabilities_of_all_unseen_items_sum_to_the_window(kind, data):
    fit = fit_of(kind)
    clicked = data.draw(st.lists(st.sampled_from(fit.items.tolist()), max_size=58, unique=True))
    window = data.draw(st.integers(1, 12))
    found = pm.recommend(fit, 60, clicks={"new": clicked}, window=window)
    n_unseen = 60 - len(clicked)
    assert np.nansum(found.probabilities) == pytest.approx(min(window, n_unseen), rel=0.05)
    shown = found.probabilities[0, :n_unseen]
    assert ((shown >= 0) & (shown <= 1)).all()
    assert (np.diff(shown) <= 0).all()


def next_clicks(prefs, n_given, n_next, in_time, rng):
    """The first clicks of each user, as lists in order, and those that come next."""
    given, later = {}, {}
    for row in range(prefs.n_users):
        mine = slice(prefs.starts[row], prefs.starts[row + 1])
        ties = rng.random(mine.stop - mine.start)
        order = np.lexsort((ties, prefs.times[mine])) if in_time else np.argsort(ties)
        codes = prefs.codes[mine][order]
        if len(codes) >= n_given + n_next:
            given[row] = prefs.items[codes[:n_given]].tolist()
            later[row] = set(codes[n_given : n_given + n_next].tolist())
    return given, later


def stated_and_observed(kind, n_given):
    given, later = next_clicks(halves()[1], n_given, 3, kind == "times", np.random.default_rng(2))
    found = pm.recommend(fit_of(kind), 3, clicks=given)
    hits = [[item in later[user] for item in row] for user, row in zip(given, found.items)]  # noqa: B905
    return found.probabilities.mean(), np.mean(hits)


@pytest.mark.parametrize("n_given", [0, 1, 2, 3, 5, 8])
def test_new_users_with_few_clicks_get_calibrated_probabilities(n_given):
    stated, observed = stated_and_observed("times", n_given)
    assert stated == pytest.approx(observed, abs=0.04)  # three standard errors are 0.03


@functools.cache
def missing_three():
    """A fit without times, three clicks of each user missing, and what these are."""
    shown, hidden = hide_random(replace(halves()[0], times=None), 3, np.random.default_rng(3))
    return pm.fit(shown, "personal", rng=1), hidden


@pytest.mark.parametrize("k", [1, 3])
def test_users_of_a_fit_without_times_are_told_what_is_missing_at_random(k):
    fit, hidden = missing_three()
    found = pm.recommend(fit, k, window=3)
    hits = hits_of(found.items, hidden)
    assert found.probabilities.mean() == pytest.approx(hits.mean(), abs=0.03)
    as_new = pm.recommend(fit, k, clicks=fit.clicks, window=3)  # who have more to come
    assert (found.items == as_new.items).all()
    assert as_new.probabilities.mean() < hits.mean() - 0.04


def test_a_fit_without_times_says_what_its_probabilities_mean(recwarn):
    clicks = replace(halves()[0].take(np.arange(80)), times=None)
    with pytest.warns(pm.diagnostics.NoTimesWarning, match="not among those that come next"):
        pm.fit(clicks, "personal", blend=False, rng=1)
    recwarn.clear()
    pm.fit(clicks, "personal", blend=False, calibrate="random", rng=1)
    pm.evaluate(clicks, hide=2, k=2, method="personal", blend=False, rng=1)
    assert not [each for each in recwarn if each.category is pm.diagnostics.NoTimesWarning]


@settings(max_examples=20, deadline=None)
@given(window=st.integers(1, 40))
def test_what_is_missing_sums_to_the_window_too(window):
    fit, _ = missing_three()
    found = pm.recommend(fit, 60, users=fit.users[:20].tolist(), window=window).probabilities
    n_left = (~np.isnan(found)).sum(axis=1)
    assert np.nansum(found, axis=1) == pytest.approx(np.minimum(window, n_left))


def test_a_user_without_clicks_gets_calibrated_popularity_without_times_too():
    stated, observed = stated_and_observed("random", 0)
    assert stated == pytest.approx(observed, abs=0.025)


def test_the_same_clicks_have_the_same_probabilities_by_name_in_order_and_with_times():
    fit, prefs = fit_of("last"), halves()[0]
    assert fit.recency is not None
    assert fit.recency.unit == "clicks"
    by_name = pm.recommend(fit, 5)
    columns = {"user": [], "item": [], "time": []}
    lists = {}
    for row in range(40):
        mine = slice(prefs.starts[row], prefs.starts[row + 1])
        order = np.argsort(prefs.times[mine])
        names = prefs.items[prefs.codes[mine][order]].tolist()
        lists[prefs.users[row]] = names
        columns["user"] += [prefs.users[row]] * len(names)
        columns["item"] += names
        columns["time"] += prefs.times[mine][order].tolist()
    one_by_one = [pm.recommend(fit, 5, clicks={user: listed}) for user, listed in lists.items()]
    ways = [
        pm.recommend(fit, 5, clicks=lists),
        pm.recommend(fit, 5, clicks=columns),
        replace(
            by_name,
            items=np.concatenate([found.items for found in one_by_one]),
            probabilities=np.concatenate([found.probabilities for found in one_by_one]),
        ),
    ]
    for found in ways:
        assert (found.items == by_name.items[:40]).all()
        assert found.probabilities == pytest.approx(
            by_name.probabilities[:40], abs=1e-12, nan_ok=True
        )


def test_clicks_of_unknown_order_are_served_by_what_was_learnt_without_recency(tmp_path):
    fit = fit_of("last")
    given, later = next_clicks(halves()[1], 5, 3, True, np.random.default_rng(2))
    sets = {user: set(items) for user, items in given.items()}
    found = pm.recommend(fit, 3, clicks=sets)
    hits = [[item in later[user] for item in row] for user, row in zip(given, found.items)]  # noqa: B905
    assert found.probabilities.mean() == pytest.approx(np.mean(hits), abs=0.04)
    in_order = pm.recommend(fit, 3, clicks=given)
    assert (found.probabilities != in_order.probabilities).any()
    fit.save(tmp_path / "x.pm")
    again = pm.recommend(pm.load(tmp_path / "x.pm"), 3, clicks=sets)
    assert (again.probabilities == found.probabilities).all()


def test_reasons_add_up_to_the_score_with_recency():
    fit, user = fit_of("last"), halves()[0].users[0]
    best = pm.recommend(fit, 1, users=[user]).to_rows()[0]["item"]
    assert "everything else" not in str(pm.explain(fit, user, best))
