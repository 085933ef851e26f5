import importlib
import warnings

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.evaluation.baselines import most_clicked
from pseudomallows.evaluation.figures import calibrate
from pseudomallows.inference.methods.personal import can_correct_again

module = importlib.import_module("pseudomallows.evaluation.evaluate")


def quietly(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.ConvergenceWarning)
        return pm.evaluate(*arguments, **options)


def test_popularity_recommends_the_most_clicked_unseen_items():
    prefs = pm.Preferences.from_clicks({"a": [0], "b": [0, 1], "c": [0, 1, 2]}, items=range(4))
    found = most_clicked(prefs, prefs.item_counts(), 2, np.random.default_rng(1))
    assert found.tolist() == [[1, 2], [2, 3], [3, -1]]


def test_calibration_compares_stated_with_observed():
    stated = np.array([0.05, 0.15, 0.15, 1.0])
    table = calibrate(stated, np.array([0.0, 1.0, 0.0, 1.0]), 10)
    assert table.counts.tolist() == [1, 2, 1]
    assert table.observed.tolist() == [0, 0.5, 1]
    assert table.error == pytest.approx((0.05 + 2 * 0.35 + 0) / 4)


@pytest.mark.parametrize("alpha", [1, 3, 5, 10])
def test_exact_probabilities_are_calibrated(alpha):
    data = pm.simulate_clicks(500, 50, alpha, rng=alpha)
    options = {"n_draws": 100, "n_chains": 1, "warmup": 100, "thin": 2}
    result = quietly(
        data.preferences, k=3, truth=data.rankings, method="mcmc", alpha=alpha, rng=1, **options
    )
    assert result.calibration.error < 0.03
    assert result.accuracy >= result.popularity - result.accuracy_error


@pytest.mark.parametrize("alpha", [1, 3, 5, 10])
@pytest.mark.parametrize("method", ["pseudo", "balanced"])
def test_recommendations_are_as_good_as_popularity(method, alpha):
    data = pm.simulate_clicks(500, 50, alpha, rng=alpha)
    options = {"n_draws": 40, "thin": 1, "warmup": 20}
    result = quietly(
        data.preferences, k=3, truth=data.rankings, method=method, alpha=alpha, rng=1, **options
    )
    assert result.accuracy >= result.popularity - result.accuracy_error
    assert 0 < result.calibration.error < 0.15
    assert result.n_users == 500


def test_hiding_clicks_gives_an_honest_figure():
    data = pm.simulate_clicks(400, 30, 12, 12, rng=1)
    result = quietly(data.preferences, hide=4, k=4, alpha=12.0, n_draws=40, rng=1)
    chance = 4 / (30 - 8)
    assert result.accuracy > 1.5 * chance
    assert result.recommendations.items.shape == (result.n_users, 4)
    assert f"{result.accuracy:.1%}" in repr(result)


@pytest.mark.parametrize(("hide", "k"), [(4, 2), (2, 5)])
def test_stated_probabilities_are_of_what_is_hidden(hide, k):
    data = pm.simulate_clicks(500, 25, 10, 9, rng=2)
    options = {"n_draws": 60, "n_chains": 1, "thin": 1, "warmup": 60}
    result = quietly(data.preferences, hide, k, "mcmc", alpha=10.0, rng=1, **options)
    assert result.calibration.error < 0.2  # hidden clicks are not quite the next ones


def test_the_same_seed_gives_the_same_evaluation():
    prefs = pm.simulate_clicks(200, 20, 6, 8, rng=1).preferences
    one, two = (quietly(prefs, hide=3, k=3, alpha=6.0, n_draws=20, rng=4) for _ in range(2))
    assert one.accuracy == two.accuracy
    assert one.calibration.error == two.calibration.error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hide": 0}, "hide must be 1 or more, got 0"),
        ({"hide": 50}, "no user has more than 50 clicks to hide; the most is"),
        ({"k": 0}, "k must be 1 or more"),
        ({"truth": [[1, 2, 3]]}, "truth must have 50 users and 10 items, got 1 and 3"),
        ({"method": "magic", "hide": 1, "k": 3}, "method must be one of"),
    ],
)
def test_bad_questions_are_refused(options, message):
    prefs = pm.simulate_clicks(50, 10, 6, 5, rng=1).preferences
    with pytest.raises((ValueError, TypeError), match=message):
        pm.evaluate(prefs, **options)


@pytest.mark.parametrize("with_truth", [False, True])
@pytest.mark.parametrize("method", ["pseudo", "mcmc", "personal"])
def test_more_recommendations_than_items_are_refused_before_the_fit(method, with_truth):
    data = pm.simulate_clicks(50, 10, 6, 5, min_clicks=3, rng=1)
    more = {"truth": data.rankings} if with_truth else {}
    most = 10 - (3 if with_truth else int(data.preferences.n_clicks.min()) - 2)
    steps = []
    for k in (most + 1, 10**9):
        with pytest.raises(ValueError, match=f"k must be at most {most}, all items that a user"):
            pm.evaluate(
                data.preferences, 2, k, method, progress=lambda *s: steps.append(s), rng=1, **more
            )
    assert steps == []
    few = {} if method == "personal" else {"alpha": 5.0, "n_draws": 5}
    assert quietly(data.preferences, 2, most, method, rng=1, **few, **more).n_users > 0


def test_rankings_are_not_clicks():
    with pytest.raises(TypeError, match="must be clicks"):
        pm.evaluate(pm.Preferences.from_rankings([[1, 2]]), method="pseudo")


def test_both_halves_have_the_scores_of_one_fit(monkeypatch):
    """The same numbers as with a fit for each half."""
    prefs = pm.simulate_clicks(300, 12, 12, 5, min_clicks=4, rng=1).preferences
    given = {"hide": 2, "k": 3, "method": "personal", "rng": 1, "blend": False}
    once = pm.evaluate(prefs, **given)
    monkeypatch.setattr(module, "can_correct_again", lambda one, other: False)
    twice = pm.evaluate(prefs, **given)
    for name in ("users", "items", "probabilities"):
        mine, theirs = (getattr(each.recommendations, name) for each in (once, twice))
        assert (mine == theirs).all()
    one, two = (each.posterior.correction for each in (once, twice))
    assert (one.coefficients == two.coefficients).all()


def test_scores_are_learnt_again_where_the_halves_could_change_them():
    early, late = (pm.Preferences.from_clicks([[1, 1, 0], [1, 0, 0]]) for _ in range(2))
    assert can_correct_again(early, late)
    assert not can_correct_again(early, pm.Preferences.from_clicks([[1, 1, 1], [1, 1, 1]]))
    timed = pm.Preferences.from_clicks([[1, 1, 0], [1, 0, 0]], times=[[1, 2, 0], [3, 0, 0]])
    assert not can_correct_again(early, timed)
