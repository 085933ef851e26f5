"""The blend of scores: how it is searched for, and what comes of it."""

import functools
import json
import math
from dataclasses import replace

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.cli import main
from pseudomallows.data.splits import hide_clicks, take_random
from pseudomallows.engines.executors import Threads
from pseudomallows.personal import weigh as module
from pseudomallows.personal.blend import Blend, moments_of
from pseudomallows.personal.next_clicks import seen_table
from pseudomallows.personal.parts import Factors, Popularity, Regression, pool_for
from pseudomallows.personal.products import AllProducts
from pseudomallows.personal.weigh import (
    HiddenCases,
    HiddenClicks,
    WeightSearch,
    choose_blend,
    importance,
    sample_of,
    scorable,
    score_cases,
    splits_for,
    start_of,
)
from pseudomallows.sampling.reproduce import call_of


@functools.cache
def mixed_tastes(n_users=1000, n_items=60, base=-3.5, strength=1.2, bond=0.2):
    """Users click by factors that they share, and buy items of a pair together: factors find the
    former, regressions the latter."""
    rng = np.random.default_rng(1)
    users, items = rng.normal(size=(n_users, 4)), rng.normal(size=(n_items, 4))
    odds = strength * users @ items.T + rng.normal(base, 0.5, n_items)
    clicked = rng.random(odds.shape) < 1 / (1 + np.exp(-odds))
    partners = np.arange(n_items) ^ 1
    clicked |= clicked[:, partners] & (rng.random(odds.shape) < bond)
    return pm.Preferences.from_clicks(clicked)


def plain_value(scores, hidden, seen, k):
    unseen = [item for item in range(len(scores)) if item not in seen and item != hidden]
    rank = sum(scores[item] > scores[hidden] for item in unseen)
    rank += sum(scores[item] == scores[hidden] for item in unseen) / 2
    return 1 / (1 + math.exp((rank + 0.5 - k) / 3))


def test_cases_have_the_leads_of_their_definition():
    prefs = mixed_tastes(70, 14)
    users = scorable(prefs)[3:20]
    pool = pool_for(14)
    products = AllProducts(prefs, Threads(1))
    shown, hidden = hide_clicks(prefs, 1, np.random.default_rng(5))
    left = products.without(take_random(prefs, 1, np.random.default_rng(5)))
    unseen = ~seen_table(shown, slice(0, 70))[users]
    targets = hidden[users].argmax(axis=1)
    known = HiddenCases(shown.take(users), targets, np.arange(len(users)))
    learnt = [left.learn(part) for part in pool]
    cases = score_cases(learnt, known, Threads(1))[0]
    scorers, leads = [], []
    for part in pool:
        scorers.append(left.learn(part, start_of(part, pool, scorers)))
        if isinstance(part, Popularity):
            scores = np.tile(shown.item_counts().astype(float), (len(users), 1))
        else:
            weights = scorers[-1].dense()
            scores = np.array([weights[shown.clicks_of(user)].sum(axis=0) for user in users])
        scores /= scores[unseen].std()
        leads.append(scores - scores[np.arange(len(users)), targets][:, None])
    is_kept = unseen & (np.max(leads, axis=0) >= 0)
    assert 1 < is_kept.sum(axis=1).mean() < 0.85 * unseen.sum(axis=1).mean()
    assert np.diff(cases.starts).tolist() == is_kept.sum(axis=1).tolist()
    assert cases.leads == pytest.approx(np.array([lead[is_kept] for lead in leads]), abs=1e-4)


def test_items_that_are_behind_by_every_part_change_no_value():
    cases, _ = tiny_cases()
    is_ahead = (cases.leads >= 0).any(axis=0)
    assert is_ahead.mean() < 0.7
    before = np.concatenate([[0], np.cumsum(is_ahead)])
    fewer = HiddenClicks(cases.leads[:, is_ahead], before[cases.starts])
    people = np.ones(40)
    for weights in ([1.0, 0, 0], [0.2, 0.5, 0.3], [0, 0.9, 0.1]):
        one, two = (
            WeightSearch([each], FIVE, people, 3, Threads(1)).score(np.array(weights)).values
            for each in (cases, fewer)
        )
        assert (one == two).all()


def test_spreads_are_those_of_what_was_not_clicked():
    prefs = mixed_tastes(90, 14)
    products = AllProducts(prefs, Threads(1))
    scorers = [part.learn(products) for part in pool_for(14)[:3]]
    found = moments_of(scorers, prefs, Threads(2))
    unseen, weights = ~seen_table(prefs, slice(0, 90)), np.array([0.3, 0.0, 2.0])
    clicked = (~unseen).astype(float)
    scores = [(clicked @ scorer.dense())[unseen] for scorer in scorers]
    for one, mine in zip(np.eye(3), scores, strict=True):
        assert found.spread(one) == pytest.approx(mine.std(), rel=1e-4)
    assert found.spread(weights) == pytest.approx((weights @ scores).std(), rel=1e-4)
    assert found.spread(weights) != pytest.approx(found.spread([0.4, 0.0, 2.0]), rel=1e-3)


FIVE = np.tile(np.arange(40), 5)  # five clicks of each of 40 users


def tiny_cases(seed=1, n_parts=3, n_users=40, n_items=12):
    """Made-up scores: a part has some of the truth and noise of its own."""
    rng = np.random.default_rng(seed)
    shape = (5 * n_users, n_items)
    truth = rng.normal(size=shape)
    hidden = np.argmax(truth + rng.gumbel(size=shape), axis=1)[:, None]
    leads = []
    for _ in range(n_parts):
        scores = truth + rng.normal(size=shape)
        leads.append((scores - np.take_along_axis(scores, hidden, 1)).astype(np.float32))
    starts = np.arange(shape[0] + 1) * n_items
    return HiddenClicks(np.reshape(leads, (n_parts, -1)), starts), hidden


def test_the_objective_is_the_mean_over_people_of_the_mean_over_splits():
    cases, hidden = tiny_cases()
    people = np.random.default_rng(2).integers(1, 5, 40)
    search, weights = WeightSearch([cases], FIVE, people, 3, Threads(1)), np.array([0.5, 0.0, 0.25])
    scores = (0.5 * cases.leads[0] + 0.25 * cases.leads[2]).reshape(200, 12)
    values = [plain_value(row, hidden[case, 0], [], 3) for case, row in enumerate(scores.tolist())]
    by_users = np.reshape(values, (5, 40)).mean(axis=0)
    found = search.score(weights)
    assert found.values == pytest.approx(by_users, abs=1e-12)
    assert search.mean(found) == pytest.approx(np.average(by_users, weights=people))


def test_every_round_is_better_than_the_one_before_and_a_blend_than_its_parts():
    cases, _ = tiny_cases()
    search = WeightSearch([cases], FIVE, np.ones(40, dtype=np.int64), 3, Threads(2))
    found = search.search()
    means = [search.mean(one) for one in found]
    assert [one.n_parts for one in found[:3]] == [1, 1, 1]
    assert means[3] == max(means[:3])
    assert (np.diff(means[3:]) > 0).all()
    assert len(found) <= 4 + module.N_ROUNDS
    assert found[-1].n_parts == 3
    for one in found:
        assert one.values == pytest.approx(search.score(one.weights).values, abs=0.05)


def test_steady_weights_change_less_with_the_users_and_are_never_behind_the_best_part():
    steady, greedy, owners = [], [], np.tile(np.arange(600), 5)
    for seed in range(8):
        cases, _ = tiny_cases(seed, n_users=600)
        search = WeightSearch([cases], owners, np.ones(600, dtype=np.int64), 3, Threads(1))
        chosen, found = search.steady(), search.search()
        best = max(found[:3], key=search.mean)
        assert search.mean(chosen) >= search.mean(best) - search.error(best, chosen)
        for weights, all_of_them in ((chosen.weights, steady), (found[-1].weights, greedy)):
            all_of_them.append(weights / weights.sum())
    assert np.std(steady, axis=0).mean() < 0.75 * np.std(greedy, axis=0).mean()


def test_who_is_left_with_fewer_clicks_stands_for_those_who_have_as_many():
    sizes = np.repeat([0, 2, 3, 4, 8], [5, 60, 40, 20, 1])
    rows = {user: list(range(size)) for user, size in enumerate(sizes.tolist())}
    prefs = pm.Preferences.from_clicks(rows, items=range(8))
    found = importance(prefs)
    assert found[sizes == 3] == pytest.approx(np.full(40, (60 + 5) / (40 + 5)))
    assert found[sizes == 4] == pytest.approx(np.full(20, (40 + 5) / (20 + 5)))
    assert (found[(sizes == 0) | (sizes == 2) | (sizes == 8)] == 0).all()
    twice = importance(replace(prefs, weights=2 * prefs.weights))
    assert twice[sizes == 3] == pytest.approx(np.full(40, 2 * (120 + 5) / (80 + 5)))
    rows = {user: [0] if user < 90 else [0, 1] for user in range(99)}
    few = pm.Preferences.from_clicks(rows, items=range(5))
    assert importance(few).max() == module.MOST_IMPORTANCE
    alike = prefs.take(sizes == 3)  # nobody has fewer clicks, so all stand for themselves
    assert (importance(alike) == 1).all()


def test_a_part_is_worth_what_is_lost_without_it():
    cases, _ = tiny_cases()
    search, pool = (
        WeightSearch([cases], FIVE, np.ones(40, dtype=np.int64), 3, Threads(1)),
        pool_for(12)[:2],
    )
    pool = [*pool, Popularity()]
    both = search.score(np.array([2.0, 1.0, 0.0]))
    found = search.describe(pool, both)
    assert found.parts == tuple(pool[:2])
    assert found.weights == pytest.approx((2 / 3, 1 / 3))
    alone = search.score(np.array([0.0, 1.0, 0.0]))
    assert found.worths[0] == pytest.approx(search.mean(both) - search.mean(alone))
    difference = both.values - alone.values
    assert found.errors[0] == pytest.approx(difference.std() / math.sqrt(40))
    single = search.describe(pool, alone)
    popular = search.score(np.array([0.0, 0.0, 1.0]))
    assert single.worths == pytest.approx((search.mean(alone) - search.mean(popular),))
    assert search.describe(pool, popular).worths == (0.0,)


def test_a_blend_is_the_sum_of_its_parts_in_units_of_their_spread():
    prefs = mixed_tastes(200, 40)
    parts = (Regression(0, 0.3), Factors(0.5, 8, 0.5), Popularity())
    products = AllProducts(prefs, Threads(1))
    found = Blend(parts, (0.5, 0.3, 0.2), 0.0).learn(products, np.arange(200), {})
    clicked = np.zeros((200, 40))
    for user in range(200):
        clicked[user, prefs.clicks_of(user)] = 1
    shares = clicked.mean(axis=0)
    scores = [clicked @ part.learn(products).dense() for part in parts[:2]]
    scores.append(np.tile(shares, (200, 1)))
    unseen = clicked == 0
    total = sum(
        weight * score / score[unseen].std()
        for weight, score in zip((0.5, 0.3, 0.2), scores, strict=True)
    )
    mine = clicked @ found.weights + found.bias
    assert mine[unseen].std() == pytest.approx(scores[2][unseen].std(), rel=1e-4)
    exact = total * scores[2][unseen].std() / total[unseen].std()
    assert mine == pytest.approx(exact, rel=1e-4, abs=1e-7)
    assert (np.diag(found.weights) == 0).all()
    plain = Blend(parts[:1], (1.0,), 0.0).learn(products, np.arange(200), {})
    assert plain.bias.size == 0


def test_a_blend_beats_its_best_part_where_tastes_are_of_two_kinds():
    """By the hidden clicks of users whom the search has not seen."""
    everybody = mixed_tastes(9000, 100, base=-4.0, strength=0.8, bond=0.3)
    known, others = everybody.take(np.arange(1500)), everybody.take(np.arange(1500, 9000))
    products = AllProducts(known, Threads())
    chosen, _ = choose_blend(products, 10, np.random.default_rng(2), {})
    assert {type(part) for part in chosen.parts} >= {Regression, Factors}
    assert all(w > -e for w, e in zip(chosen.worths, chosen.errors, strict=True))
    shown, hidden = hide_clicks(others, 1, np.random.default_rng(1))
    seen = seen_table(shown, slice(0, shown.n_users))

    def values(weights, bias=0.0):
        scores = np.where(seen, -np.inf, seen.astype(float) @ weights + bias)
        own = scores.sum(axis=1, where=hidden)[:, None]
        ranks = (scores > own).sum(axis=1) + 0.5 * ((scores == own) & ~hidden).sum(axis=1)
        return 1 / (1 + np.exp((ranks[hidden.any(axis=1)] + 0.5 - 10) / 3))

    blended = chosen.learn(products, np.arange(1500), {})
    mine = values(blended.weights, blended.bias if blended.bias.size else 0.0)
    for part in pool_for(100)[:-1]:
        gain = mine - values(part.learn(products).dense())
        assert gain.mean() > 3 * gain.std() / math.sqrt(len(gain)), part


# fits


@pytest.fixture(scope="module")
def fit():
    return pm.fit(mixed_tastes(), "personal", rng=1)


def test_a_fit_says_what_was_chosen_and_what_it_is_worth(fit):
    options = fit.settings["options"]
    assert options["ridge"] is None
    assert len(options["parts"]) > 1
    weights = [part["weight"] for part in options["parts"]]
    assert sum(weights) == pytest.approx(1)
    assert weights == sorted(weights, reverse=True)
    assert json.loads(json.dumps(options)) == options
    assert call_of(fit) == "pm.fit(prefs, method='personal', rng=1)"
    assert (np.diag(fit.item_weights) == 0).all()


def test_the_report_and_the_command_say_what_was_chosen(fit, tmp_path, capsys):
    pm.report(fit, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    fit.save(tmp_path / "x.pm")
    assert main(["info", str(tmp_path / "x.pm")]) == 0
    told = capsys.readouterr().out
    for part in fit.settings["options"]["parts"]:
        name = part["part"]
        assert name.replace(">", "&gt;") in page
        assert name in told
        assert f"{part['worth']:.4f} ± {part['error']:.4f}" in page
    small = pm.fit(mixed_tastes(40, 30), "personal", rng=1, calibrate=False)
    pm.report(small, tmp_path / "small.html")
    assert "fewer than 50 users have two clicks" in (tmp_path / "small.html").read_text()


def test_a_blend_comes_back_whole_and_serves_new_users_alike(fit, tmp_path):
    fit.save(tmp_path / "x.pm")
    again, prefs = pm.load(tmp_path / "x.pm"), fit.clicks
    assert again.settings == fit.settings
    for name in ("item_weights", "bias"):
        assert (getattr(again, name) == getattr(fit, name)).all()
    old, new = pm.recommend(fit, 5), pm.recommend(again, 5, clicks=prefs)
    assert (old.items == new.items).all()
    assert (pm.recommend(again, 5).probabilities == old.probabilities).all()
    assert (pm.recommend(fit, 5, clicks=prefs).probabilities == new.probabilities).all()
    one = pm.recommend(again, 5, clicks={"x": prefs.clicks_of(7).tolist()})
    assert (one.items[0] == old.items[7]).all()


def test_threads_leave_no_trace_in_a_blend(fit):
    two = pm.fit(mixed_tastes(), "personal", rng=1, executor=Threads(2))
    one = pm.fit(mixed_tastes(), "personal", rng=1, executor=Threads(1))
    assert one.settings["options"] == two.settings["options"]
    assert (one.item_weights == two.item_weights).all()
    assert (one.bias == two.bias).all()
    assert (one.item_weights == fit.item_weights).all()


def test_a_bias_is_added_for_one_user_as_for_many(fit, tmp_path):
    bias = np.linspace(0, 0.3, fit.n_items)
    biased, prefs = replace(fit, bias=bias), fit.clicks.take(fit.clicks.n_clicks > 0)
    many = biased.scores_of(prefs, slice(0, 9))
    assert many == pytest.approx(fit.scores_of(prefs, slice(0, 9)) + bias)
    for row in range(9):
        assert biased.scores_of(prefs, slice(row, row + 1))[0] == pytest.approx(many[row])
    nobody = pm.Preferences.from_clicks({0: [], 1: [2]}, items=range(fit.n_items))
    assert (biased.scores_of(nobody, slice(0, 1))[0] == fit.popularity).all()
    biased.save(tmp_path / "x.pm")
    assert (pm.load(tmp_path / "x.pm").bias == bias).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [({"ridge": 0.3}, "asked"), ({"blend": False}, "asked")],
)
def test_one_regression_if_asked_for(options, words):
    found = pm.fit(mixed_tastes(120, 12), "personal", rng=1, calibrate=False, **options)
    chosen = found.settings["options"]
    assert chosen["ridge"] > 0
    assert chosen["parts"] == []
    assert words in chosen["single"]
    (key, value), *_ = options.items()
    assert f"{key}={value!r}" in call_of(found)
    assert found.bias.size == 0


@pytest.mark.parametrize(
    ("n_users", "n_items", "words"),
    [(60, 8, "fewer than 10 items"), (40, 30, "fewer than 50 users have two clicks")],
)
def test_small_data_have_one_regression(n_users, n_items, words):
    found = pm.fit(mixed_tastes(n_users, n_items), "personal", rng=1, calibrate=False)
    assert words in found.settings["options"]["single"]
    assert found.settings["options"]["ridge"] > 0


def test_some_users_are_evaluated():
    rng = np.random.default_rng(1)
    assert len(sample_of(np.arange(9000), rng, 2500)) == 2500
    assert sample_of(np.arange(30), rng, 50).tolist() == list(range(30))
    assert [splits_for(n) for n in (200, 1000, 9000)] == [(5, 2500), (1, 5000), (1, 2500)]


def test_with_many_items_the_best_by_each_part_are_evaluated(monkeypatch):
    """A hidden item that is among them has the rank that it has among all."""
    prefs = mixed_tastes(300, 40)
    users, products = scorable(prefs)[:60], AllProducts(prefs, Threads(2))
    shown, hidden = hide_clicks(prefs.take(users), 1, np.random.default_rng(5))
    cases = HiddenCases(shown, hidden.argmax(axis=1), np.arange(60))
    learnt = [products.learn(part) for part in pool_for(40)]
    every = score_cases(learnt, cases, Threads(2))
    monkeypatch.setattr(module, "CUBIC_ITEMS", 10)
    monkeypatch.setattr(module, "N_PLACES", 15)
    some = score_cases(learnt, cases, Threads(2))
    assert np.diff(some[0].starts).max() < np.diff(every[0].starts).max()
    for part in range(len(every[0].leads)):
        ranks = [
            np.concatenate([np.add.reduceat(c.leads[part] > 0, c.starts[:-1]) for c in cases])
            for cases in (every, some)
        ]
        is_near = ranks[0] < 15
        assert is_near.mean() > 0.5
        assert (ranks[0] == ranks[1])[is_near].all()
        assert (ranks[0] >= ranks[1]).all()


def test_scores_are_made_for_as_many_items_as_come_later():
    shown, hidden = hide_clicks(mixed_tastes(), 2, np.random.default_rng(1))
    how = {"rng": 1, "held_out": pm.Preferences.from_clicks(hidden)}
    assert pm.fit(shown, "personal", **how).settings["options"]["n_best"] == 2
    assert pm.fit(shown, "personal", rng=1).settings["options"]["n_best"] == 10


def test_an_update_keeps_the_blend_and_finds_the_weights_of_all_clicks():
    """Where the old weights are the start, too; until there are a quarter more clicks."""
    prefs = mixed_tastes(400, 40)
    fit = pm.fit(prefs.take(np.arange(370)), "personal", rng=1, calibrate=False)
    rows = {user: prefs.clicks_of(user).tolist() for user in range(370, 400)}
    newer, wanted = fit.update(rows, rng=2), Blend.from_settings(fit.settings["options"])
    assert newer.settings["options"]["parts"] == fit.settings["options"]["parts"]
    assert newer.settings["options"]["n_chosen"] == len(fit.clicks.codes)
    informative = np.flatnonzero(newer.clicks.is_informative)
    whole = wanted.learn(AllProducts(newer.clicks, Threads(1)), informative, {})
    assert newer.item_weights == pytest.approx(whole.weights, abs=2e-4)
    assert newer.item_weights != pytest.approx(fit.item_weights, abs=2e-3)
    many = {f"new {user}": prefs.clicks_of(user).tolist() for user in range(300)}
    assert newer.update(many, rng=3).settings["options"]["n_chosen"] > 600
    for forged in ({}, {"parts": [{"part": "x"}]}, {"parts": 3, "objective": 1.0}):
        assert Blend.from_settings(forged) is None
