import itertools
import math
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.optimize import brentq
from scipy.special import expit, logit

import naive
import pseudomallows as pm
from helpers import interpreted
from naive_corrections import features_of, odds_of
from pseudomallows.data.splits import hide_clicks
from pseudomallows.engines.executors import Threads
from pseudomallows.evaluation.baselines import ease_weights
from pseudomallows.evaluation.evaluate import calibrate
from pseudomallows.kernels import correct as kernels
from pseudomallows.kernels.click_rows import ClickRows
from pseudomallows.kernels.items.top_places import look_up_places
from pseudomallows.personal.corrections import Correction
from pseudomallows.personal.next_clicks import seen_table
from pseudomallows.personal.next_tables import GridTables
from pseudomallows.personal.personal_fit import PersonalModel
from pseudomallows.personal.probabilities import PersonalProbabilities
from pseudomallows.personal.products import AllProducts

N_ITEMS = 5
ALPHAS = np.array([1.0, 4.0, 9.0])
NO_FAR = (np.empty(0, dtype=np.int64), np.empty((2, 2, 0)))
WEIGHTS = np.array(
    [
        [0.0, 0.5, 0.1, 0.0, 0.2],
        [0.4, 0.0, 0.3, 0.1, 0.0],
        [0.2, 0.3, 0.0, 0.6, 0.1],
        [0.0, 0.1, 0.5, 0.0, 0.7],
        [0.1, 0.0, 0.2, 0.8, 0.0],
    ]
)


FIRST = np.array([[0.4, 0.3, 0.1, 0.1, 0.1]])  # the first click


def example(**changes):
    popularity, shares = np.linspace(0.5, 0.1, N_ITEMS), np.array([0.5, 0.3, 0.2])
    return replace(
        PersonalModel(WEIGHTS, popularity, np.arange(N_ITEMS), ALPHAS, shares, FIRST), **changes
    )


def clicks_of(*rows, n_items=N_ITEMS):
    return pm.Preferences.from_clicks(dict(enumerate(rows)), items=range(n_items))


# the law


def exact_law(personal, clicked, window):
    """Probability of each unclicked item to be among the next, by enumeration."""
    scores = WEIGHTS[clicked].sum(axis=0)
    order = sorted(range(N_ITEMS), key=lambda item: -scores[item])
    center = [order.index(item) + 1 for item in range(N_ITEMS)]
    likelihoods = [naive.click_likelihood(clicked, center, alpha, "kendall") for alpha in ALPHAS]
    shares = naive.memberships(likelihoods, personal.alpha_shares)
    unseen = [item for item in order if item not in clicked]
    probabilities = dict.fromkeys(unseen, 0.0)
    for alpha, share in zip(ALPHAS, shares, strict=True):
        law = naive.normalise(
            {
                ranks: math.exp(-alpha / N_ITEMS * naive.kendall(ranks, range(1, len(unseen) + 1)))
                for ranks in itertools.permutations(range(1, len(unseen) + 1))
            }
        )
        for ranks, probability in law.items():
            for item, rank in zip(unseen, ranks, strict=True):
                probabilities[item] += share * probability * (rank <= window)
    return probabilities


@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("clicked", [[2], [0, 3], [1, 2, 4]])
def test_the_law_equals_enumeration(clicked, window):
    probabilities, seen = PersonalProbabilities(example()), clicks_of(clicked)
    tables = probabilities.prepare(seen, window)
    found = probabilities.probabilities(tables, seen, slice(0, 1), window)[0]
    for item, probability in exact_law(probabilities.model, clicked, window).items():
        assert found[item] == pytest.approx(probability, abs=1e-10)


@pytest.mark.kernel
def test_likelihoods_on_the_grid_equal_enumeration():
    rows = [[2], [0, 3], [1, 2, 4]]
    personal, seen = example(), clicks_of(*rows)
    rankings = personal.rankings_of(personal.scores_of(seen, slice(0, 3)))
    clicks = ClickRows(seen.starts, seen.codes)
    found = personal.law.log_likelihoods(clicks, rankings)
    for row, clicked in enumerate(rows):
        for g, alpha in enumerate(ALPHAS):
            exact = naive.click_likelihood(clicked, tuple(rankings[row].tolist()), alpha, "kendall")
            assert found[row, g] == pytest.approx(math.log(exact))
    shares = personal.shares_by(clicks, rankings)
    for row in range(3):
        exact = naive.memberships(np.exp(found[row]), personal.alpha_shares)
        assert shares[row] == pytest.approx(exact)


@pytest.mark.kernel
def test_look_ups_take_the_place_among_the_unclicked():
    lines, probabilities = (
        np.array([-1, -1, -1, 1, -1, 0]),
        np.random.default_rng(1).random((2, 2, 5)),
    )
    tables, shares = (
        kernels.GridProbabilities(lines, probabilities, *NO_FAR),
        np.array([[0.25, 0.75]]),
    )
    found = np.ones((1, 5))
    look_up_places(np.array([3]), shares, tables, found)
    assert found[0, :3] == pytest.approx(shares[0] @ probabilities[1, :, :3])
    assert (found[0, 3:] == 0).all()


def test_ties_are_broken_by_a_given_order():
    personal = example(ties=np.array([4, 2, 0, 1, 3]))
    ranking = personal.rankings_of(np.array([[1.0, 1.0, 0.0, 1.0, 0.0]]))[0]
    assert ranking.tolist() == [1, 2, 5, 3, 4]


# scores


def test_weights_of_any_sign_solve_theirs():
    rng = np.random.default_rng(2)
    clicked = rng.random((80, 5)) < 0.4
    products = clicked.T.astype(float) @ clicked
    scale = 0.2 * np.trace(products) / 5
    found = ease_weights(products, 0.2)
    for target in range(5):
        others = [item for item in range(5) if item != target]
        left = products[np.ix_(others, others)] + scale * np.eye(4)
        exact = np.linalg.solve(left, products[others, target])
        assert found[others, target] == pytest.approx(exact)


def test_products_count_people_who_clicked_both():
    prefs = pm.Preferences.from_clicks([[1, 1, 0], [1, 0, 1], [1, 1, 1]], weights=[2, 1, 3])
    expected = [[6, 5, 4], [5, 5, 3], [4, 3, 4]]
    assert AllProducts(prefs, Threads(1)).of(0.0).tolist() == expected


# corrections


def places_of(rankings, unseen):
    """Among the unseen items of each user, from 0."""
    better = (rankings[:, None, :] < rankings[:, :, None]) & unseen[:, None, :]
    return better.sum(axis=2)


@pytest.mark.kernel
@pytest.mark.parametrize("per_click", [False, True])
@pytest.mark.parametrize("window", [1, 2, 200])
def test_the_kernel_corrects_as_the_definition_does(window, per_click):
    rng = np.random.default_rng(window)
    rows, is_item = [[0, 3], [], [1, 2, 4]], slice(0, 3)
    seen, scores = clicks_of(*rows), rng.normal(size=(3, 5))
    probabilities, few = rng.random((3, 5)), rng.random(3)
    unseen = ~seen_table(seen, is_item)
    rankings = example().rankings_of(scores)
    marks, places = np.array([0.1, 0.5, -1.0, 1.0, 4.0]), places_of(rankings, unseen)
    ahead = 1 if per_click else window
    features = features_of((probabilities, scores, few[:, None]), places, ahead, marks)
    coefficients, (knots, values) = rng.random(features.shape[-1] + 1), rng.random((2, 4)).cumsum(1)
    maps = (knots - 1, values, rng.random(4))
    odds = odds_of(Correction(coefficients, marks, *maps, np.zeros(len(maps[0])), 9), features)
    if per_click:  # of one click, so for more as many times as likely, but below 1
        times = (window + 1) * expit(odds)
        odds = logit(times / (1 + times**8) ** 0.125)
    expected = np.zeros((3, 5))
    for row in range(3):  # one number for all, so that the sum is right
        expected[row, unseen[row]] = 1.0
        if window < unseen[row].sum():
            mine = odds[row, unseen[row]]
            shift = brentq(lambda x, mine=mine: expit(mine + x).sum() - window, -50, 50, xtol=1e-13)
            expected[row, unseen[row]] = expit(mine + shift)
    order = np.argsort(np.where(unseen, rankings, 99), axis=1)  # the unseen first
    probabilities_by, scores_by, expected = (
        np.take_along_axis(table, order, axis=1) for table in (probabilities, scores, expected)
    )
    arrays = kernels.CorrectionArrays(coefficients, marks, *maps, per_click)
    given = (scores_by, few, unseen.sum(axis=1), arrays, window, 0)
    found, plain = probabilities_by.copy(), probabilities_by.copy()
    kernels.correct_probabilities(*given, found)
    is_unseen = np.arange(5) < given[2][:, None]
    assert found[is_unseen] == pytest.approx(expected[is_unseen], abs=1e-8)
    assert (found[~is_unseen] == probabilities_by[~is_unseen]).all()
    interpreted(kernels.correct_probabilities)(*given, plain)
    assert plain == pytest.approx(found, abs=1e-13)
    cases = np.empty((5, kernels.N_FEATURES))
    one = (probabilities[0], scores[0], np.full(5, few[0]), places[0], ahead, marks)
    kernels.fill_cases(*one, cases)
    assert cases == pytest.approx(features[0])


@pytest.mark.kernel
@pytest.mark.parametrize("kernel", [kernels.spread_rest, interpreted(kernels.spread_rest)])
def test_places_that_were_not_learnt_share_what_is_left(kernel):
    odds = np.array([0.0, -1.0, -2.0, -3.0])
    found = odds.copy()
    kernel(1, 2, found)
    assert found[:2] == pytest.approx(expit(odds[:2]))
    assert found.sum() == pytest.approx(1)
    assert found[2] / found[3] == pytest.approx(math.e)
    found = odds + 5  # the first ones alone would be too much
    kernel(1, 2, found)
    assert found[:2].sum() == pytest.approx(1)
    assert found[2:] == pytest.approx(0, abs=1e-8)
    kernel(1, 2, np.empty(0))


# fits


def own_population(n_users, n_items, rng):
    """Users with scores of their own, alpha 4 or 16, who click the first of their ranks."""
    scores = rng.normal(size=(n_users, n_items))
    alphas = rng.choice([4.0, 16.0], n_users)
    rows = []
    for user in range(n_users):
        center = np.argsort(np.argsort(-scores[user])) + 1
        rows.append(pm.Mallows(center, alphas[user]).draw(1, rng)[0])
    rankings = np.array(rows)
    n_clicks = rng.integers(4, 12, n_users)
    return scores, rankings, rankings <= n_clicks[:, None], alphas


@pytest.mark.slow
def test_a_correction_by_later_clicks_does_no_harm_where_the_law_is_nearly_right():
    """Half of the users show what they click next; the probabilities of the others stay as good."""
    errors = []
    for seed in (2, 3, 4):
        scores, rankings, clicked, _ = own_population(10_000, 30, np.random.default_rng(seed))
        prefs = pm.Preferences.from_clicks(clicked)
        n_clicks = prefs.n_clicks[:, None]
        later = (rankings > n_clicks) & (rankings <= n_clicks + 3)
        held_out = pm.Preferences.from_clicks(later).take(np.arange(10_000) < 5000)
        for options in ({"calibrate": False}, {"held_out": held_out}):
            posterior = pm.personal.fit_scores(prefs, scores, rng=1, **options)
            found = pm.recommend(posterior, 3, users=list(range(5000, 10_000)))
            hits = np.take_along_axis(later[5000:], found.items, axis=1).astype(float)
            errors.append(calibrate(found.probabilities.ravel(), hits.ravel()).error)
    plain, corrected = np.reshape(errors, (3, 2)).T
    # 0.023 to 0.027, and 0.022 to 0.031: more knots fit this law better, and real clicks worse
    assert corrected.mean() < plain.mean() + 0.005
    assert max(errors) <= 0.035


def simulated(n_users=400, seed=1):
    return pm.simulate_clicks(n_users, 30, [8, 8, 8, 8], 8, min_clicks=5, rng=seed)


def test_personal_lists_beat_one_list_for_all():
    data = simulated()
    found = pm.evaluate(data.preferences, hide=3, k=3, method="personal", rng=1)
    assert found.accuracy > found.popularity + 5 * found.accuracy_error
    assert found.n_users == len(found.recommendations.users)


def test_new_users_are_served_as_users_with_the_same_clicks():
    data = simulated()
    posterior = pm.fit(data.preferences, "personal", calibrate=False, rng=1)
    old = pm.recommend(posterior, 5)
    new = pm.recommend(posterior, 5, clicks=data.preferences)
    assert (old.items == new.items).all()
    one = pm.recommend(posterior, 5, clicks={"x": data.preferences.clicks_of(7).tolist()})
    assert (one.items[0] == old.items[7]).all()
    assert one.probabilities[0] == pytest.approx(old.probabilities[7])


def test_a_user_without_clicks_gets_the_population_s_list():
    data = simulated()
    posterior = pm.fit(data.preferences, "personal", rng=1)
    found = pm.recommend(posterior, 5, clicks={"nobody": []})
    counts = data.preferences.item_counts()
    assert counts[found.items[0]].tolist() == sorted(counts, reverse=True)[:5]
    everything = pm.recommend(posterior, 5, clicks={"all": list(range(30))})
    assert (everything.items == -1).all()


def test_a_personal_fit_comes_back_whole(tmp_path):
    data = simulated()
    for options in ({"calibrate": False}, {"calibrate": True}):
        posterior = pm.fit(data.preferences, "personal", rng=1, **options)
        posterior.save(tmp_path / "x.pm")
        again = pm.load(tmp_path / "x.pm")
        one, two = (pm.recommend(p, 3, clicks={"new": [1, 2, 3]}) for p in (posterior, again))
        assert (one.items == two.items).all()
        assert (one.probabilities == two.probabilities).all()


def fit_quietly(*args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return pm.fit(*args, **options)


def test_scores_may_be_learnt_by_a_function_or_a_model():
    data = simulated()

    class Factors:
        """A recommender as those of implicit are: fit, then factors."""

        def fit(self, clicks, show_progress=True):
            left, sizes, right = np.linalg.svd(clicks.toarray(), full_matrices=False)
            self.user_factors, self.item_factors = left[:, :4] * sizes[:4], right[:4].T

    for scores in (Factors(), lambda clicks: clicks.toarray() @ WIDE):
        posterior = pm.personal.fit_scores(data.preferences, scores, rng=1)
        assert posterior.correction is not None
        assert pm.recommend(posterior, 3).probabilities.min() > 0
        with pytest.raises(ValueError, match="new users need scores"):
            pm.recommend(posterior, 3, clicks={"new": [1]})


WIDE = np.random.default_rng(1).random((30, 30))


def test_ranks_of_a_user_have_intervals():
    data = simulated()
    fits = [
        pm.fit(data.preferences, "personal", rng=1),
        fit_quietly(data.preferences, n_clusters=2, n_draws=20, rng=1),
        fit_quietly(data.preferences, "mcmc", n_draws=20, n_chains=1, rng=1),
    ]
    for posterior in fits:
        clicked = data.preferences.clicks_of(5)
        found = pm.recommendations.user_intervals(posterior, 5, rng=1)
        assert (found[:, 0] <= found[:, 1]).all()
        assert found[clicked, 1].max() <= len(clicked)
        unseen = np.setdiff1d(np.arange(30), clicked)
        assert found[unseen, 0].min() > len(clicked)
        narrow = pm.recommendations.user_intervals(
            posterior, clicks={"n": clicked.tolist()}, probability=0.5, rng=1
        )
        assert np.diff(narrow, axis=1).mean() < np.diff(found, axis=1).mean()


def test_threads_leave_no_trace():
    data = simulated()
    one, two = (
        pm.fit(data.preferences, "personal", calibrate=True, rng=1, executor=pm.Threads(n))
        for n in (1, 2)
    )
    assert (one.item_weights == two.item_weights).all()
    assert (one.alpha_shares == two.alpha_shares).all()
    for name in ("coefficients", "marks", "knots", "values", "slopes"):
        assert (getattr(one.correction, name) == getattr(two.correction, name)).all()


def test_tiny_data_are_no_trouble():
    prefs = pm.Preferences.from_clicks({"a": ["x"], "b": ["x", "y"], "c": ["z"]})
    posterior = pm.fit(prefs, "personal", rng=1)
    assert posterior.correction is None
    assert pm.recommend(posterior, 1, users=["c"]).items.shape == (1, 1)


def few():
    return pm.simulate_clicks(60, 6, 5, 3, rng=1).preferences


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ridge": -1}, "ridge must be a finite number, 0 or more"),
        ({"sigma": 1}, "method='personal' on clicks has no option 'sigma'; it has blend, cal"),
        ({"n_clusters": 2}, "neither draws nor clusters: leave out"),
        ({"n_draws": 10}, "neither draws nor clusters"),
        (
            {"held_out": 3},
            "held_out must be clicks: a file, a dict .* or a matrix with the users",
        ),
        ({"held_out": [[1, 0]]}, "held_out must be clicks: .* users must have 1 names, got 60"),
        ({"held_out": pm.Preferences.from_rankings([[1, 2]])}, "held_out must be clicks, got rank"),
        ({"calibrate": "no"}, "calibrate must be one of 'last', 'cut', 'random', got 'no'"),
        ({"held_out": {"0": [0, 1]}}, "its users are like '0', those of the fit like 0"),
    ],
)
def test_bad_input_is_refused(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        pm.fit(few(), "personal", rng=1, **options)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.ones((60, 6)), "scores must not be all the same, got 1.0 everywhere"),
        (np.full((60, 6), np.nan), "scores must be finite numbers, got nan for user 0"),
        (np.full((60, 6), np.inf), "scores must be finite numbers, got inf"),
        (np.ones((6, 6)), r"60 users and 6 items, got an array of shape \(6, 6\)"),
        ([["a"] * 6] * 60, "scores must be an array of numbers, users x items"),
        (np.eye(60, 6) * 1e300, "scores must be at most 1e100"),
    ],
)
def test_bad_scores_are_refused(scores, message):
    with pytest.raises((ValueError, TypeError), match=message):
        pm.personal.fit_scores(few(), scores, rng=1)


@pytest.fixture(scope="module")
def seen_and_later():
    """Clicks of named users on named items, some of them to come later."""
    data = simulated(120)
    users = [f"u{row:03}" for row in range(120)]
    prefs = data.preferences.rename(users=users, items=[f"item {code:02}" for code in range(30)])
    shown, hidden = hide_clicks(prefs, 2, np.random.default_rng(1))
    later = {
        user: shown.items[np.flatnonzero(hidden[row])].tolist()
        for row, user in enumerate(users)
        if hidden[row].any()
    }
    return shown, later, hidden


def corrections_with(shown, held_out):
    posterior = pm.fit(shown, "personal", ridge=0.3, rng=1, held_out=held_out)
    return pm.recommend(posterior, 2).probabilities


def test_later_clicks_may_come_in_any_form(seen_and_later):
    shown, later, hidden = seen_and_later
    expected = corrections_with(shown, pm.Preferences.from_clicks(later, items=shown.items))
    pairs = [(user, item) for user, listed in later.items() for item in listed]
    columns = dict(zip(("user", "item"), zip(*pairs, strict=True), strict=True))
    other_order = pm.Preferences.from_clicks(later, items=shown.items[::-1])
    forms = [later, columns, pd.DataFrame(columns), pl.DataFrame(columns), other_order, hidden]
    for form in [*forms, sparse.csr_array(hidden)]:
        assert (corrections_with(shown, form) == expected).all()


def test_later_clicks_that_the_fit_does_not_know_are_counted_and_left_out(seen_and_later):
    shown, later, _ = seen_and_later
    expected = corrections_with(shown, later)
    more = later | {"stranger": ["item 01", "item 02"], "u000": [*later["u000"], "new", "newer"]}
    words = r"held_out: 2 of 32 items and 1 of \d+ users are not in the fit, so 4 of \d+"
    for form in (more, pm.Preferences.from_clicks(more)):
        with pytest.warns(pm.data.DroppedRowsWarning, match=words):
            found = corrections_with(shown, form)
        assert (found == expected).all()


def test_later_clicks_must_be_later_and_enough():
    with pytest.raises(ValueError, match="not in the fit, of 50 users or more, got 0 such users"):
        pm.fit(few(), "personal", rng=1, held_out=few())


@pytest.mark.parametrize("k", [1, 3])
def test_a_plain_fit_is_calibrated_for_the_next_ranks(k):
    data = pm.simulate_clicks(1500, 20, [8, 8, 8], 8, min_clicks=5, distance="kendall", rng=1)
    known = {"k": k, "method": "personal", "truth": data.rankings, "rng": 1}
    plain = pm.evaluate(data.preferences, calibrate=False, **known)
    assert plain.calibration.error < 0.04


def test_equal_scores_go_to_the_more_popular():
    rows = {**{i: ["a", "b"] for i in range(20)}, **{i: ["b", "c"] for i in range(20, 30)}}
    prefs = pm.Preferences.from_clicks(rows | {"odd": ["z"]})
    fit = pm.fit(prefs, "personal", calibrate=False, rng=1)
    found = pm.recommend(fit, 3, users=["odd"]).to_rows()
    assert [row["item"] for row in found] == ["b", "a", "c"]


def test_a_penalty_of_0_is_no_trouble():
    prefs = pm.Preferences.from_clicks([[1, 1, 1, 0, 0], [1, 0, 0, 1, 0]])
    posterior = pm.fit(prefs, "personal", ridge=0, calibrate=False, rng=1)
    assert np.isfinite(posterior.item_weights).all()
    found = pm.recommend(posterior, 2)
    assert ((found.probabilities > 0) & (found.probabilities <= 1)).all()


def test_rankings_are_refused():
    with pytest.raises(TypeError, match="method='personal' needs clicks"):
        pm.fit(pm.Preferences.from_rankings([[1, 2, 3]]), "personal")
    posterior = pm.fit(few(), "personal", rng=1)
    with pytest.raises(ValueError, match="give a user of the fit, or the clicks"):
        pm.recommendations.user_intervals(posterior)


def test_threads_never_see_tables_that_are_half_made():
    """Many ask at once while the tables are made; every answer is that of a fit left in peace."""
    n_items, rng = 300, np.random.default_rng(1)
    weights = rng.random((n_items, n_items))
    np.fill_diagonal(weights, 0.0)
    alphas = np.geomspace(1, 64, 8)
    shares, first = np.full(8, 1 / 8), np.full((1, n_items), 1 / n_items)
    parts = (weights, rng.random(n_items), np.arange(n_items), alphas, shares, first)
    seen = [clicks_of(sorted(rng.permutation(n_items)[:3].tolist()), n_items=n_items)] * 8
    expected = ask(PersonalProbabilities(PersonalModel(*parts)), seen[0])
    assert np.isfinite(expected).all()
    for _ in range(3):
        shared, start = PersonalProbabilities(PersonalModel(*parts)), threading.Barrier(len(seen))

        def question(mine, shared=shared, start=start):
            start.wait()
            return ask(shared, mine)

        with ThreadPoolExecutor(len(seen)) as pool:
            for found in pool.map(question, seen):
                assert np.array_equal(found, expected)


def test_a_table_in_the_making_is_not_ready_and_holds_nobody_up(monkeypatch):
    personal, begun, go_on = PersonalProbabilities(example()), threading.Event(), threading.Event()
    ready, make_one = clicks_of([0, 1]), GridTables.make_one
    expected = ask(personal, ready)

    def slow(self, window, size):
        begun.set()
        assert go_on.wait(20)
        return make_one(self, window, size)

    monkeypatch.setattr(GridTables, "make_one", slow)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(ask, personal, clicks_of([2]))
        assert begun.wait(20)
        assert not personal.tables.has(4, 4)
        assert personal.tables.has(4, 3)
        assert np.array_equal(ask(personal, ready), expected)
        go_on.set()
        assert np.isfinite(other.result()).all()
    assert personal.tables.has(4, 4)


def ask(probabilities, seen, window=4):
    tables = probabilities.prepare(seen, window)
    return probabilities.probabilities(tables, seen, slice(0, 1), window)
