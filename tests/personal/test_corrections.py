"""Corrections of probabilities: what they learn, where they hold, and that they never turn back."""

import functools
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pseudomallows as pm
from naive_corrections import features_of, log_odds, odds_of
from pseudomallows.evaluation.evaluate import calibrate
from pseudomallows.kernels.correct import N_FEATURES
from pseudomallows.personal.calibrate import (
    Cases,
    hits_at,
    learn_correction,
    learn_map,
    rising_slopes,
    thin_places,
)
from pseudomallows.personal.corrections import Correction, marks_of
from pseudomallows.personal.next_clicks import Later, windows_for

MARKS = np.array([0.0, 0.5, -1.0, 3.0, 10])


def probabilities_of(fit, clicks, window):
    """``probabilities[user, item]`` of users with these clicks."""
    found = pm.recommend(fit, fit.n_items, clicks=clicks, window=window)
    table = np.zeros((clicks.n_users, fit.n_items + 1))
    np.put_along_axis(table, found.items, np.nan_to_num(found.probabilities), axis=1)
    return table[:, :-1]


def apply(correction, features):
    """Probabilities before they are made to add up to the window."""
    return 1 / (1 + np.exp(-odds_of(correction, features)))


def tables_of(rng, n_users=400, n_items=30, window=3):
    """NextItems, scores and users, the items in the order of their scores."""
    scores = -np.sort(-rng.normal(size=(n_users, n_items)), axis=1)
    probabilities = 1 / (1 + np.exp(3 - scores - 0.3 * np.log(window)))
    places = np.broadcast_to(np.arange(n_items), scores.shape)
    few = 1 / (1 + rng.integers(1, 12, (n_users, 1)))
    return (probabilities, scores, few), places


def cases_of(rng, truth, windows=(1, 3, 10), n_users=400):
    """Cases of several windows; ``truth(log odds, window)`` are the log odds of what is
    observed."""
    parts = []
    for window in windows:
        law, places = tables_of(rng, n_users, window=window)
        probabilities = 1 / (1 + np.exp(-truth(log_odds(law[0]), window)))
        features = features_of(law, places, window, MARKS).reshape(-1, N_FEATURES)
        hits = rng.random(len(features)) < probabilities.ravel()
        owners = np.repeat(np.arange(n_users), 30)
        parts.append(Cases(features, hits.astype(float), np.ones(len(features)), owners))
    return parts


def joined(parts):
    """All of them as one part."""
    names = ("features", "targets", "weights", "owners")
    return Cases(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def gap(correction, truth, window):
    """Mean distance of what is said and what is true, for items drawn afresh."""
    law, places = tables_of(np.random.default_rng(9), window=window)
    said = apply(correction, features_of(law, places, window, MARKS))
    return np.abs(said - 1 / (1 + np.exp(-truth(log_odds(law[0]), window)))).mean()


@functools.cache
def learnt():
    """A correction of probabilities that are too low for most, more so in long windows."""
    return learn_correction(cases_of(np.random.default_rng(1), wrong), MARKS)


def wrong(odds, window):
    return 0.5 * odds - 0.4 + 0.3 * np.log(window)


def right(odds, window):
    return odds


# what is learnt


def test_what_is_right_is_left_alone_in_all_windows():
    found = learn_correction(cases_of(np.random.default_rng(1), right), MARKS)
    for window in (1, 2, 5, 7, 10, 20):
        assert gap(found, right, window) < 0.015


def test_what_is_wrong_is_mended_in_windows_that_were_not_learnt():
    """Learnt from windows 1, 3 and 10; left alone, it would be far off."""
    found = learnt()
    for window in (2, 5, 7, 20):
        law, _ = tables_of(np.random.default_rng(9), window=window)
        left_alone = np.abs(law[0] - 1 / (1 + np.exp(-wrong(log_odds(law[0]), window)))).mean()
        assert gap(found, wrong, window) < 0.02 < 0.05 < left_alone


def test_a_correction_of_one_window_does_not_mend_another():
    """The twin: a correction that does not see the window."""
    cases = cases_of(np.random.default_rng(1), wrong, windows=(1,), n_users=1200)
    assert gap(learn_correction(cases, MARKS), wrong, 20) > 0.02


def test_a_correction_does_not_depend_on_how_its_cases_are_cut():
    parts = cases_of(np.random.default_rng(1), wrong)
    found = learn_correction(parts, MARKS)
    features = parts[0].features[:300]
    other = learn_correction([joined(parts)], MARKS)
    assert apply(other, features) == pytest.approx(apply(found, features), abs=1e-4)


def test_a_row_of_weight_2_is_two_people():
    cases = joined(cases_of(np.random.default_rng(1), wrong, n_users=60))
    weights = np.random.default_rng(2).integers(1, 4, len(cases.targets))
    weighted = replace(cases, weights=weights.astype(float))
    rows = np.repeat(np.arange(len(weights)), weights)
    of_rows = cases.features[rows], cases.targets[rows], np.ones(len(rows))
    repeated = Cases(*of_rows, cases.owners[rows])
    features = cases.features[:300]
    one, two, plain = (
        apply(learn_correction([each], MARKS), features) for each in (weighted, repeated, cases)
    )
    assert one == pytest.approx(two, abs=0.02)  # centres and edges of bins may differ
    assert np.abs(one - plain).mean() > 3 * np.abs(one - two).mean()


def test_features_that_do_not_differ_get_no_weight():
    """One window: its slope would be any number."""
    cases = cases_of(np.random.default_rng(1), wrong, windows=(3,))
    found = learn_correction(cases, MARKS).coefficients
    assert found[[8, 9]].tolist() == [0, 0]
    assert np.abs(found).max() < 20


def test_a_map_has_the_observed_frequencies_and_rises():
    rng = np.random.default_rng(1)
    scale = np.sort(rng.normal(size=20_000))
    hits = (rng.random(20_000) < 1 / (1 + np.exp(-(scale**3)))).astype(float)
    knots, values, _ = learn_map(scale, hits, np.ones(20_000), np.arange(20_000))
    assert (np.diff(values) > 0).all()
    assert (np.diff(knots) > 0).all()
    inside = np.abs(knots) < 1.5
    said, true = (1 / (1 + np.exp(-x[inside])) for x in (values, knots**3))
    assert said == pytest.approx(true, abs=0.05)


def test_a_map_that_would_fall_is_pooled():
    scale = np.repeat([-1.0, 0.0, 1.0], 1000)
    hits = np.concatenate([np.arange(1000) % n == 0 for n in (2, 4, 2)]).astype(float)
    knots, values, _ = learn_map(scale, hits, np.ones(3000), np.arange(3000))
    assert len(knots) == len(values)
    assert (np.diff(values) > 0).all()
    assert (rising_slopes(knots, values) > 0).all()


def test_errors_of_a_map_are_what_other_users_would_change():
    """Users have a level of their own each, so that their cases are not independent."""
    found = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        owners = np.repeat(np.arange(60), 10)
        odds = -1 + rng.normal(size=60)[owners]
        hits = (rng.random(600) < 1 / (1 + np.exp(-odds))).astype(float)
        scale = -1 + 1e-3 * rng.normal(size=600)
        _, values, errors = learn_map(scale, hits, np.ones(600), owners)
        found.append((values[0], errors[0], 1 / np.sqrt(600 * hits.mean() * (1 - hits.mean()))))
    values, errors, independent = np.array(found).T
    assert errors.mean() == pytest.approx(values.std(), rel=0.15)
    assert independent.mean() < 0.75 * values.std()  # the twin


def test_dates_that_differ_make_probabilities_less_certain():
    rng = np.random.default_rng(1)
    (one,) = cases_of(rng, right, windows=(3,))
    (other,) = cases_of(rng, lambda odds, window: odds - 0.5, windows=(3,))
    alike, apart = (
        learn_correction([one, replace(second, split=1)], MARKS).standard_errors
        for second in (one, other)
    )
    assert apart.min() > 0.3 > alike.max()
    stated = np.array([0.01, 0.2, 0.5])
    even = replace(learnt(), standard_errors=np.full(len(learnt().knots), 0.1))
    errors = even.errors_of(stated, 4)
    assert errors == pytest.approx(0.1 * stated * (1 - stated))
    of_four = replace(even, per_click=True).errors_of(stated, 4)  # four times those of one
    assert of_four == pytest.approx(0.1 * stated * (1 - stated / 4))


def test_recommendations_state_how_uncertain_their_probabilities_are(tmp_path):
    shown, _, posterior = shop()
    found = pm.recommend(posterior, 5)
    assert (found.errors > 0).all()
    assert (found.errors < found.probabilities).all()
    posterior.save(tmp_path / "x.pm")
    again = pm.recommend(pm.load(tmp_path / "x.pm"), 5, exclude=[0])
    assert (again.errors > 0).all()
    plain = pm.fit(shown, "personal", ridge=0.3, calibrate=False, rng=1)
    assert np.isnan(pm.recommend(plain, 5).errors).all()


def test_places_that_are_left_out_are_stood_for():
    is_hit = np.zeros((50, 1000))
    is_hit[:, 500:510] = 0.5
    n_unseen = np.full(50, 900)
    rows, places, weights = thin_places(is_hit, n_unseen, 3)
    stands_for = np.zeros(is_hit.shape)
    stands_for[rows, places] = weights
    assert (weights > 0).all()
    assert len(weights) == (stands_for > 0).sum()
    assert (stands_for[:, 900:] == 0).all()
    assert (stands_for[:, :26] == 1).all()
    assert (stands_for[:, 500:510] == 1).all()  # what is observed stands for itself
    assert stands_for.sum(axis=1).mean() == pytest.approx(900, rel=0.02)
    assert (stands_for > 0).sum(axis=1).max() < 70


@pytest.mark.parametrize("has_order", [True, False])
def test_later_clicks_come_true_at_their_places(has_order):
    items = np.array([[4, 0, 2, -1], [3, 1, 0, 2]])
    order = np.array([1, 0, 0, 2, 1]) if has_order else np.full(5, -1)
    codes = np.array([0, 3, 0, 1, 2], dtype=np.int32)  # item 3 is not among those of the first user
    later = Later(np.arange(2), np.array([0, 2, 5]), codes, order, [1, 2], np.ones(2, dtype=bool))
    found = hits_at(later, items, 2, 5)
    if has_order:
        assert found.tolist() == [[0, 1, 0, 0], [0, 0, 1, 1]]
        assert hits_at(later, items, 1, 5).tolist() == [[0, 0, 0, 0], [0, 0, 1, 0]]
    else:
        assert found == pytest.approx(np.array([[0, 1, 0, 0], [0, 2 / 3, 2 / 3, 2 / 3]]))
    some = later.take(np.array([1]))
    assert (hits_at(some, items[1:], 2, 5) == found[1]).all()


def test_the_windows_to_look_at_have_users_enough():
    assert windows_for(np.full(60, 10)) == [1, 2, 4, 7, 10]
    assert windows_for(np.full(60, 5)) == [1, 2, 4, 5]
    assert windows_for(np.full(60, 1)) == [1]
    assert windows_for(np.full(60, 99)) == [1, 2, 4, 7, 10, 20, 30]
    assert windows_for(np.append(np.full(60, 3), np.full(40, 20))) == [1, 2, 3]


# that it never turns back


@settings(max_examples=60, deadline=None)
@given(
    windows=st.tuples(st.integers(1, 60), st.integers(1, 60)),
    seed=st.integers(0, 1000),
)
def test_probabilities_rise_with_the_score_and_never_fall_with_the_window(windows, seed):
    rng, correction = np.random.default_rng(seed), learnt()
    short, long = sorted(windows)
    probabilities, scores = (
        np.sort(rng.random((3, 12)), axis=0),
        np.sort(rng.normal(0, 3, 12))[::-1],
    )
    few, places = rng.random((1, 1)), np.arange(12)[None]
    found = []
    for window, row in ((short, probabilities[0]), (long, probabilities[1])):
        law = (np.sort(row)[None, ::-1], scores[None], few)
        found.append(apply(correction, features_of(law, places, window, MARKS))[0])
    assert (np.diff(found[0]) < 0).all()
    assert (np.diff(found[1]) < 0).all()
    assert (found[1] >= found[0] - 1e-12).all()


def test_a_negative_coefficient_would_turn_back():
    """The twin: of a place that counts the wrong way."""
    coefficients = learnt().coefficients.copy()
    coefficients[5:8] = -5
    law, places = tables_of(np.random.default_rng(1), n_users=1)
    said = apply(replace(learnt(), coefficients=coefficients), features_of(law, places, 3, MARKS))
    assert (np.diff(said[0]) > 0).any()


def test_scores_of_one_value_have_a_spread():
    assert marks_of(np.zeros(10), 3)[1] > 0
    sparse = np.append(np.zeros(99), 5.0)
    assert marks_of(sparse, 3)[1] == pytest.approx(0.05 * sparse.std())


# fits


@functools.cache
def shop():
    """Clicks that follow tastes, 8 hidden of each user; half of the users are to learn from."""
    data = pm.simulate_clicks(900, 40, [10, 10, 10, 10], 16, min_clicks=12, rng=3)
    clicked = np.zeros((900, 40), dtype=bool)
    prefs = data.preferences
    clicked[np.repeat(np.arange(900), prefs.n_clicks), prefs.codes] = True
    rng = np.random.default_rng(1)
    order = np.argsort(np.where(clicked, rng.random(clicked.shape), 2.0), axis=1)
    hidden = np.zeros_like(clicked)
    np.put_along_axis(hidden, order[:, :8], True, axis=1)
    shown = pm.Preferences.from_clicks(clicked & ~hidden)
    half = pm.Preferences.from_clicks(hidden).take(np.arange(450))
    return shown, hidden, pm.fit(shown, "personal", ridge=0.3, held_out=half, rng=1)


def test_later_clicks_correct_all_windows_up_to_twice_their_number():
    """Of 8 later clicks any 5 may be the next 5: each is, with a probability of 5 in 8."""
    shown, hidden, posterior = shop()
    assert posterior.correction.windows == "1 to 16"
    plain = replace(posterior, correction=None, settings={"options": {"calibrate": False}})
    errors = {}
    for window in (1, 2, 5, 7, 8):
        for name, fit in (("corrected", posterior), ("plain", plain)):
            said = probabilities_of(fit, shown.take(np.arange(450, 900)), window)
            best = np.argsort(-said, axis=1)[:, :window]
            true = np.take_along_axis(hidden[450:] * (window / 8), best, axis=1)
            stated = np.take_along_axis(said, best, axis=1)
            errors[name, window] = calibrate(stated.ravel(), true.ravel()).error
        assert errors["corrected", window] < 0.08
    # up to 0.1 the correction was for windows near 8 alone, so that 5 was left as it is
    assert min(errors["plain", window] for window in (5, 7, 8)) > 0.15


def test_recommendations_do_not_share_probabilities_and_keep_the_order_of_scores():
    shown, _, posterior = shop()
    plain = pm.fit(shown, "personal", ridge=0.3, rng=1)
    for fit in (posterior, plain):
        found = pm.recommend(fit, 5)
        assert len(np.unique(found.probabilities)) > 0.99 * found.probabilities.size
        assert (np.diff(found.probabilities, axis=1) < 0).all()
        scores = fit.scores_of(shown, slice(0, shown.n_users))
        assert (np.diff(np.take_along_axis(scores, found.items, axis=1), axis=1) <= 0).all()


def test_a_longer_window_never_has_a_lower_probability():
    shown, _, posterior = shop()
    for fit in (posterior, pm.fit(shown, "personal", ridge=0.3, calibrate=False, rng=1)):
        before = np.zeros((100, 40))
        for window in range(1, 13):
            found = probabilities_of(fit, shown.take(np.arange(100)), window)
            assert (found >= before - 1e-9).all()
            before = found


def test_far_beyond_the_largest_window_a_warning_says_what_to_do():
    _, _, posterior = shop()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pm.recommend(posterior, 17, users=[2])  # 16 is the largest
        pm.recommend(replace(posterior), 20, window=5, users=[1])
    small = replace(posterior.correction, largest=2)  # a recommender warns once of a window
    fresh = replace(posterior, correction=small)
    words = (
        r"next 17 items are not corrected: what is observed was learnt for windows of 1 to 2, .*"
        r"window of 10 or less, or fit with held_out= later clicks, 17 or more"
    )
    with pytest.warns(pm.diagnostics.UncorrectedWarning, match=words) as caught:
        pm.recommend(fresh, 17)
    assert len(caught) == 1
    assert (caught[0].message.window, caught[0].message.largest) == (17, 2)


def test_who_asked_for_no_correction_is_not_warned():
    shown, _, _ = shop()
    fit = pm.fit(shown, "personal", ridge=0.3, calibrate=False, rng=1)
    assert fit.correction is None
    assert pm.recommend(fit, 30, users=[1]).items.shape == (1, 30)


def test_given_scores_are_corrected_by_their_logarithm_too():
    """Whatever their zero and their unit."""
    shown, hidden, posterior = shop()
    scores = posterior.scores_of(shown, slice(0, shown.n_users))
    half = pm.Preferences.from_clicks(hidden).take(np.arange(450))
    one, two = (
        pm.personal.fit_scores(shown, each, held_out=half, rng=1)
        for each in (scores, 1000 * scores - 3)
    )
    assert one.correction.coefficients[11] > 0
    found = [pm.recommend(fit, 5).probabilities for fit in (one, two)]
    assert found[0] == pytest.approx(found[1], abs=1e-4)


def test_a_correction_is_saved_and_read(tmp_path):
    _, _, posterior = shop()
    posterior.save(tmp_path / "x.pm")
    again = pm.load(tmp_path / "x.pm").correction
    assert isinstance(again, Correction)
    assert again.largest == posterior.correction.largest
    for name in ("coefficients", "marks", "knots", "values", "slopes", "standard_errors"):
        assert (getattr(again, name) == getattr(posterior.correction, name)).all()


@pytest.mark.parametrize(
    "change",
    [
        {"knots": np.array([1.0, 0.0])},
        {"marks": np.array([0.0, 0.0, 1.0, 2.0, 9.0])},
        {"largest": 0},
        {"coefficients": np.ones(3)},
        {"slopes": np.array([np.nan])},
    ],
)
def test_a_forged_correction_is_refused(tmp_path, change):
    _, _, posterior = shop()
    replace(posterior, correction=replace(posterior.correction, **change)).save(tmp_path / "x.pm")
    words = r"x\.pm is damaged: its (correction does not fit|arrays .* do not fit together)"
    with pytest.raises(ValueError, match=words):
        pm.load(tmp_path / "x.pm")
