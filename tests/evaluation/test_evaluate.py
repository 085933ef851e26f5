import sys
import warnings

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.evaluation.baselines import most_clicked
from pseudomallows.evaluation.figures import calibrate, check_calibration


def quietly(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.diagnostics.FitWarning)
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


@pytest.mark.parametrize("alpha", [1, 10])
def test_exact_probabilities_are_calibrated(alpha):
    data = pm.simulate_clicks(500, 50, alpha, rng=alpha)
    options = {"n_draws": 100, "n_chains": 1, "warmup": 100, "thin": 2}
    result = quietly(
        data.preferences, k=3, truth=data.rankings, method="mcmc", alpha=alpha, rng=1, **options
    )
    assert result.calibration.error < 0.03
    assert result.accuracy >= result.popularity - result.accuracy_error


@pytest.mark.parametrize("alpha", [1, 10])
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
    probability = 4 / (30 - 8)
    assert result.accuracy > 1.5 * probability
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


def test_the_fit_that_is_evaluated_is_the_one_that_a_user_gets():
    """Probabilities are those of `fit`, not corrected by the clicks that they are evaluated on."""
    prefs = pm.simulate_clicks(300, 12, 12, 5, min_clicks=4, rng=1).preferences
    rows = {user: prefs.items[prefs.clicks_of(user)].tolist() for user in range(300)}
    early = pm.Preferences.from_clicks({u: items[2:] for u, items in rows.items()}, items=range(12))
    late = {user: items[:2] for user, items in rows.items()}
    found = pm.evaluate(early, k=3, test=late, method="personal", blend=False, rng=1)
    posterior = pm.fit(early, "personal", blend=False, rng=1)
    own = pm.recommend(posterior, 3, window=2)
    assert (found.recommendations.items == own.items).all()
    assert (found.recommendations.probabilities == own.probabilities).all()
    assert not found.posterior.settings["options"]["held_out"]


def test_a_fit_is_evaluated_by_the_question_it_answers():
    rows = [(user, item, item) for user in range(60) for item in range(user % 5, 8)]
    users, items, times = (list(column) for column in zip(*rows, strict=True))
    table = {"user": users, "item": items}
    how = {"hide": 2, "k": 2, "method": "pseudo", "alpha": 3.0, "n_draws": 5, "rng": 1}
    timed = quietly(pm.Preferences.from_clicks(table | {"time": times}), **how)
    assert timed.evaluated.by == "each user's last 2 clicks"
    assert "evaluated on each user's last 2 clicks, hidden from it" in repr(timed)
    plain = quietly(pm.Preferences.from_clicks(table), **how)
    assert plain.evaluated.by == "2 clicks of each user, chosen at random"
    assert plain.evaluated.by in plain.summary()


def evaluated(scores, **options):
    """Users who click the first items most, by scores of the items."""
    rng = np.random.default_rng(1)
    clicked = rng.random((400, 12)) < np.linspace(0.9, 0.1, 12)
    clicked[:, :4] |= ~clicked.any(axis=1, keepdims=True)
    prefs = pm.Preferences.from_clicks(clicked[clicked.sum(axis=1) > 2])

    def learn(clicks):
        return np.tile(scores, (clicks.shape[0], 1))

    def fit(shown, method, **options):
        return pm.personal.fit_scores(shown, learn, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["pseudomallows.evaluation.evaluate"], "fit", fit)
        return pm.evaluate(prefs, 2, 3, method="personal", rng=1, **options)


def test_a_verdict_says_that_popularity_is_better():
    found = evaluated(np.arange(12.0), calibrate=False)
    assert found.accuracy < found.popularity
    assert found.verdict.answer == "no"
    assert found.verdict.words.startswith(f"Below popularity, which had {found.popularity:.1%} hit")
    assert "no: Below popularity" in repr(found)
    assert "no: Below popularity" in found.summary()


def test_a_verdict_says_how_far_probabilities_are_off():
    sure = evaluated(-np.arange(12.0) - 0.5 * (np.arange(12) == 11), alpha=100.0, calibrate=False)
    off = f"off by {100 * sure.calibration.error:.1f} points"
    assert sure.calibration.error > 0.1
    assert sure.verdict.answer == "no"
    assert off in repr(sure)
    assert off in sure._repr_html_()


def test_logs_of_one_visit_each_are_evaluated_by_last_clicks_and_few_users_tell_nothing():
    """Hardly anybody has clicks before and after a date."""
    rng = np.random.default_rng(1)
    visits = np.sort(rng.random(300)) * 1e7
    rows = [
        (user, item, visits[user] + place)
        for user in range(300)
        for place, item in enumerate(rng.permutation(30)[: rng.integers(12, 16)].tolist())
    ]
    users, items, times = zip(*rows, strict=True)
    clicks = pm.Preferences.from_clicks({"user": users, "item": items, "time": times})
    usual = pm.evaluate(clicks, k=3, method="personal", rng=1)
    assert usual.evaluated.by == "each user's last 10 clicks"
    assert usual.n_users == 300
    cut = pm.evaluate(clicks, k=3, method="personal", split="time", rng=1)
    assert cut.n_users < 30
    assert cut.verdict.answer == "with care"
    assert cut.verdict.words.startswith("Too few users to tell")
    same = pm.Preferences.from_clicks({"user": users, "item": items, "time": [5.0] * len(users)})
    assert "at random" in pm.evaluate(same, k=3, method="personal", rng=1).evaluated.by


def test_small_probabilities_that_are_a_quarter_too_low_are_said():
    check = check_calibration("clicks", 0.083, 0.007, 0.06, 0.023)
    assert check.answer == "with care"
    assert "too low on average" in check.words
    assert check_calibration("clicks", 0.065, 0.007, 0.06, 0.005).answer == "yes"
