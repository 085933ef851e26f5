"""Chains that each look for their own clusters: apart, judged one by one, averaged to recommend."""

import functools
import itertools
import json
import warnings
from dataclasses import replace

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.distributions.scores import rand_index
from pseudomallows.inference.chains import make_chains, matched_starts
from pseudomallows.inference.chains.divisions import compare_divisions
from pseudomallows.inference.chains.mixture import order_like
from pseudomallows.inference.methods import METHODS, Plan
from pseudomallows.inference.reproduce import call_of
from pseudomallows.latent.registry import make_population
from pseudomallows.posteriors.diagnostics import effective_size, rhat
from pseudomallows.posteriors.judged import judge_draws
from pseudomallows.posteriors.verdict import DIVISIONS_ADVICE, WITHIN_NOTE, judge
from pseudomallows.recommendations.recommend import best_of_one
from pseudomallows.recommendations.recommenders import kendall
from pseudomallows.web.models.summary import Summary

ARRAYS = ("consensus", "alpha", "weights", "log_posterior", "best", "shares", "chain_memberships")
OWN = {"n_clusters": 4, "n_draws": 20, "divisions": "own", "rng": 3}


def chances_of(posterior, clicks, window):
    """``chances[user, item]`` of users with these clicks."""
    found = pm.recommend(posterior, posterior.n_items, clicks=clicks, window=window, max_error=0)
    table = np.zeros((clicks.n_users, posterior.n_items + 1))
    np.put_along_axis(table, found.items, np.nan_to_num(found.probabilities), axis=1)
    return table[:, :-1]


@functools.cache
def overlapping():
    """Nine groups of users, whom four clusters can divide in many ways."""
    return pm.simulate_clicks(200, 20, [20.0] * 9, 5, rng=1).preferences


def fit(**options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of few draws
        return pm.fit(overlapping(), **({"method": "mcmc"} | OWN | options))


fitted = functools.cache(fit)


def labels_of(posterior):
    """``labels[chain, user]``."""
    return posterior.chain_memberships.argmax(axis=2)


def indices_of(posterior):
    pairs = itertools.combinations(labels_of(posterior), 2)
    return [rand_index(one, other) for one, other in pairs]


def of_chain(posterior, chain):
    """One chain of a posterior alone."""
    divisions = posterior.settings["divisions"] | {"chain": chain}
    return replace(posterior, settings=posterior.settings | {"divisions": divisions}).described


def test_chains_that_look_for_their_own_clusters_differ_more_than_those_of_one_start():
    own, shared = fitted(), fitted(divisions="shared")
    assert np.mean(indices_of(own)) < np.mean(indices_of(shared)) - 0.3
    assert own.settings["divisions"]["rand_index"] == pytest.approx(np.mean(indices_of(own)))
    assert "starts" not in own.settings
    assert "divisions" not in shared.settings


def test_clear_clusters_are_found_by_every_chain():
    data = pm.simulate_clicks(400, 15, [20, 20, 20], 5, sizes=[200, 120, 80], rng=1)
    how = {"n_clusters": 3, "n_draws": 100, "rng": 2}
    own, shared = (pm.fit(data.preferences, divisions=each, **how) for each in ("own", "shared"))
    assert own.settings["divisions"]["same_users"] > 0.97
    assert rand_index(own.labels, shared.labels) > 0.95
    assert (own.labels == shared.labels).mean() > 0.97  # the order of the clusters, too
    assert own.alpha.mean(axis=(0, 1)) == pytest.approx(shared.alpha.mean(axis=(0, 1)), rel=0.05)
    assert judge(own).answer == "yes"


def test_by_default_the_data_decide():
    found = fitted(divisions="auto", rng=6)
    assert found.settings["options"]["divisions"] == "auto"
    assert found.settings["divisions"]["same_users"] < 0.9
    assert np.mean(indices_of(found)) < np.mean(indices_of(fitted(divisions="shared", rng=6))) - 0.3
    assert "divisions" not in call_of(found)
    data = pm.simulate_clicks(400, 15, [20, 20, 20], 5, sizes=[200, 120, 80], rng=1).preferences
    clear, shared = (
        pm.fit(data, n_clusters=3, n_draws=100, divisions=each, rng=2)
        for each in ("auto", "shared")
    )
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(clear, name), getattr(shared, name))
    assert clear.settings["starts"] == shared.settings["starts"]
    assert "divisions" not in clear.settings


def test_chains_that_end_in_the_same_clusters_are_pooled_whatever_their_guesses_were(monkeypatch):
    data = pm.simulate_clicks(400, 15, [20, 20, 20], 5, sizes=[200, 120, 80], rng=1).preferences
    how = {"n_clusters": 3, "n_draws": 100, "rng": 2}
    shared = pm.fit(data, divisions="shared", **how)
    monkeypatch.setattr(matched_starts, "are_apart", lambda *_: True)
    found = pm.fit(data, **how)
    assert "divisions" not in found.settings
    assert "starts" not in found.settings
    assert found.described is found
    assert (found.labels == shared.labels).mean() > 0.97
    assert np.abs(found.best - shared.best).mean() < 0.5
    assert judge(found).answer == "yes"  # R-hat compares the chains
    assert found.alpha.mean(axis=1) == pytest.approx(shared.alpha.mean(axis=1), rel=0.1)


@pytest.mark.parametrize("n_chains", [1, 2, 3, 6])
def test_every_chain_has_a_guess(n_chains, monkeypatch):
    monkeypatch.setattr(matched_starts, "are_apart", lambda *_: True)
    seen = []
    how = {"n_chains": n_chains, "divisions": "auto", "executor": pm.Threads(1)}
    found = fit(n_draws=4, progress=lambda *both: seen.append(both), **how)
    assert len(found.consensus) == n_chains
    assert [done for done, _ in seen] == list(range(1, len(seen) + 1))
    assert seen[-1][1] == len(seen)


@pytest.mark.parametrize("method", ["mcmc", "matched"])
def test_the_same_seed_gives_the_same_bits_on_one_thread_and_on_two(method):
    filters = list(warnings.filters)
    one, two = (fit(method=method, n_draws=6, executor=pm.Threads(n)) for n in (1, 2))
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert one.settings["divisions"] == two.settings["divisions"]
    assert warnings.filters == filters  # guesses side by side leave them as they were


def test_only_the_start_differs_from_chains_that_share_one():
    population = make_population(overlapping(), pm.Threads(1))
    made = {}
    for divisions in ("own", "shared"):
        plan = Plan.make(overlapping(), METHODS["mcmc"], 5, 4, {"divisions": divisions})
        chains = make_chains.make_chains(population, plan, np.random.default_rng(1))
        made[divisions] = [
            chains.start(number, None, np.random.default_rng(7 + number), lambda: None)
            for number in (0, 1)
        ]
    assert {type(chain) for pair in made.values() for chain in pair} == {type(made["own"][0])}
    own, shared = ([c.mean_memberships.argmax(axis=1) for c in pair] for pair in made.values())
    assert rand_index(*own) < rand_index(*shared) - 0.2


def test_each_guess_is_counted_once_by_the_progress():
    seen = []
    fit(n_draws=4, n_chains=2, executor=pm.Threads(1), progress=lambda *both: seen.append(both))
    total = seen[0][1]
    assert seen == [(done, total) for done in range(1, total + 1)]


def test_clusters_take_the_order_in_which_they_agree_best_with_the_first_chain():
    posterior = fitted()
    first, *others = posterior.chain_memberships
    for other in others:
        assert order_like(np.ones(len(other), np.int64), first, other).tolist() == [0, 1, 2, 3]
        # what is said of a cluster goes with it: its share is that of its users
    sizes, shares = posterior.chain_memberships.mean(axis=1), posterior.shares.mean(axis=1)
    assert sizes == pytest.approx(shares, abs=0.03)
    assert np.abs(sizes - shares[:, [1, 0, 2, 3]]).max() > 0.06


def test_the_likeliest_chain_describes_the_clusters():
    posterior = fitted(method="matched", n_draws=30)  # whose draws all know their log posterior
    heights = posterior.log_posterior.mean(axis=1)
    chain = posterior.settings["divisions"]["chain"]
    assert chain == heights.argmax()
    assert posterior.settings["divisions"]["log_posteriors"] == pytest.approx(heights.tolist())
    assert (posterior.memberships == posterior.chain_memberships[chain]).all()
    assert (posterior.labels == labels_of(posterior)[chain]).all()
    assert (np.diff(posterior.memberships.sum(axis=0)) <= 0).all()  # the largest first
    draws = posterior.consensus[chain, :, 1]
    assert posterior.mean_ranks(1) == pytest.approx(draws.mean(axis=0))
    shares = (draws[:, :, None] == np.arange(1, 21)).mean(axis=0)
    assert posterior.rank_probabilities(1) == pytest.approx(shares)
    both = posterior.pair_probabilities(1)
    assert both[3, 5] == pytest.approx((draws[:, 3] < draws[:, 5]).mean())
    assert (posterior.alpha_intervals() == posterior.described.alpha_intervals()).all()
    assert posterior.described.described is posterior.described
    assert posterior.described.weights.sum() == pytest.approx(1)
    assert np.abs(posterior.best - posterior.consensus[chain].mean(axis=0)).mean() < 2
    others = np.delete(posterior.consensus, chain, axis=0).mean(axis=1)
    assert np.abs(posterior.best - others).mean() > 2


def test_chains_are_judged_by_their_own_halves():
    posterior = fitted(n_draws=40)
    found = posterior.diagnostics(2)
    ranks, alpha = posterior.consensus[:, :, 2].astype(float), posterior.alpha[:, :, 2]
    rhats = [[rhat(draws[[chain]]) for chain in range(4)] for draws in (ranks, alpha)]
    sizes = [[effective_size(draws[[chain]]) for chain in range(4)] for draws in (ranks, alpha)]
    assert (found.rank_rhat == np.max(rhats[0], axis=0)).all()
    assert found.alpha_rhat == max(rhats[1])
    assert found.rank_effective_size == pytest.approx(np.sum(sizes[0], axis=0))
    assert found.alpha_effective_size == pytest.approx(sum(sizes[1]))
    assert rhat(ranks).max() > found.rank_rhat.max()  # between chains it is that they differ
    judged = judge_draws(posterior)
    assert judged.name == "largest R-hat within a chain"
    assert judged.rhat == max(posterior.diagnostics(each).worst_rhat for each in range(4))
    assert judged.rhat_limit > 1.05  # of two halves chance makes more than of eight


def independent(n_items, n_draws, n_chains=4):
    """A posterior with independent draws, other ones in each chain."""
    rng, n_clusters = np.random.default_rng(1), 2
    shape = (n_chains, n_draws, n_clusters)
    center = rng.permuted(np.tile(np.arange(n_items), (n_chains, 1, n_clusters, 1)), axis=3)
    noisy = center + 3 * rng.standard_normal((*shape, n_items))
    consensus = noisy.argsort(axis=3).argsort(axis=3).astype(np.int32) + 1
    return pm.Posterior(
        consensus,
        5 + np.arange(n_chains)[:, None, None] + rng.standard_normal(shape) / 9,
        np.full(shape[:2], 1 / (n_chains * n_draws)),
        np.zeros(shape[:2]),
        consensus[0, 0],
        np.arange(n_items),
        {"method": "mcmc", "divisions": {"chain": 0, "rand_index": 0.1, "same_users": 0.5}},
        shares=np.full(shape, 1 / n_clusters),
    )


@pytest.mark.parametrize(("n_items", "n_draws"), [(40, 100), (6000, 12)])
def test_chains_that_stand_still_are_told_from_chains_that_are_apart(n_items, n_draws):
    good = independent(n_items, n_draws)
    assert judge_draws(good).is_good
    verdict = judge(good)
    assert (verdict.answer, verdict.advice, verdict.note) == (
        "with care",
        DIVISIONS_ADVICE,
        WITHIN_NOTE,
    )
    assert "divide 50% of the users the same way (adjusted Rand index 0.10)" in verdict.words
    assert "chain 1, the likeliest" in verdict.words
    moved = good.consensus.copy()
    moved[2, n_draws // 2 :] = n_items + 1 - moved[2, n_draws // 2 :]  # one chain turns round
    bad = replace(good, consensus=moved)
    assert not judge_draws(bad).is_good
    assert judge(bad).answer == "no"
    shared = replace(good, settings={"method": "mcmc"})
    assert not judge_draws(shared).is_good  # as chains of the same clusters they would disagree


@pytest.mark.parametrize(
    ("distance", "left_out"), [("footrule", 1e-9), ("kendall", kendall.LEFT_OUT)]
)
def test_recommendations_are_the_mean_over_the_chains(distance, left_out):
    posterior = fitted(distance=distance)
    how = {"k": 20, "window": 3, "max_error": 0}
    found = chances(pm.recommend(posterior, **how))
    each = [chances(pm.recommend(of_chain(posterior, chain), **how)) for chain in range(4)]
    np.testing.assert_allclose(found, np.mean(each, axis=0), atol=left_out)
    assert np.nanmax(np.abs(found - each[0])) > 0.01  # and not those of one chain


def chances(recommended):
    """``chances[user, item]``; NaN where it is clicked."""
    table = np.full((len(recommended.users), len(recommended.item_names)), np.nan)
    rows, places = np.nonzero(recommended.items >= 0)
    table[rows, recommended.items[rows, places]] = recommended.probabilities[rows, places]
    return table


def test_new_users_weigh_the_chains_by_their_clicks():
    posterior, new = fitted(), pm.Preferences.from_clicks(np.eye(20, dtype=bool)[:3])
    found = chances_of(posterior, new, 3)
    each = np.stack([chances_of(of_chain(posterior, chain), new, 3) for chain in range(4)])
    unseen = ~np.eye(20, dtype=bool)[:3]
    assert (found[unseen] >= each.min(axis=0)[unseen] - 0.02).all()
    assert (found[unseen] <= each.max(axis=0)[unseen] + 0.02).all()
    of_clusters = pm.recommendations.memberships(posterior, new)
    np.testing.assert_array_equal(
        of_clusters, pm.recommendations.memberships(posterior.described, new)
    )


def test_a_service_recommends_by_all_chains_and_names_the_clusters_of_one():
    posterior = fitted()
    codes, recommended = posterior.clicks.clicks_of(7), pm.recommend(posterior, 3)
    items, probabilities, mine = best_of_one(posterior, codes, 7, 3)
    assert items == recommended.items[7].tolist()
    assert probabilities == recommended.probabilities[7].tolist()
    assert mine == posterior.memberships[7].tolist()
    names = [str(item) for item in posterior.items]
    summary = Summary(posterior, posterior.clicks, names)
    assert summary.alphas() == posterior.described.alpha.mean(axis=(0, 1)).tolist()
    rows = json.loads(summary.clusters())["clusters"]
    assert [row["users"] for row in rows] == np.bincount(posterior.labels, minlength=4).tolist()


def test_reasons_and_similar_users_are_those_of_the_chain_that_describes():
    posterior = fitted()
    user = posterior.users[0]
    item = pm.recommend(posterior, 1, users=[user]).to_rows()[0]["item"]
    found, described = (pm.explain(each, user, item) for each in (posterior, posterior.described))
    assert found.amounts.tolist() == described.amounts.tolist()
    assert found.value == pytest.approx(found.amounts.sum())
    assert found.probability != described.probability
    alike, others = (pm.similar_users(each, user) for each in (posterior, posterior.described))
    assert alike.codes.tolist() == others.codes.tolist()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"divisions": "each"}, "divisions must be one of 'auto', 'shared', 'own', got 'each'"),
        ({"n_chains": 1}, "got n_chains=1: give 2 or more"),
        ({"augmentation": "exact"}, "by augmentation='matched' and distance='footrule'"),
        ({"distance": "spearman"}, "distance='footrule' or 'kendall': leave divisions out"),
        ({"n_clusters": 1}, "on clicks has no option 'divisions'"),
        ({"method": "pseudo"}, "has no option 'divisions'"),
    ],
)
def test_what_does_not_go_together_is_refused_in_words(options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        fit(**options)


def test_rankings_have_no_such_option():
    rankings = pm.simulate_rankings(30, 5, [3, 3], rng=1).preferences
    with pytest.raises(TypeError, match="has no option 'divisions'"):
        pm.fit(rankings, "mcmc", n_clusters=2, divisions="own", rng=1)


def test_a_saved_fit_says_the_same(tmp_path):
    posterior = fitted()
    posterior.save(tmp_path / "model.pm")
    loaded = pm.load(tmp_path / "model.pm")
    assert loaded.settings["divisions"] == posterior.settings["divisions"]
    assert (loaded.labels == posterior.labels).all()
    assert judge(loaded) == judge(posterior)
    assert "divisions='own'" in call_of(loaded)
    np.testing.assert_array_equal(
        pm.recommend(loaded, 3).probabilities, pm.recommend(posterior, 3).probabilities
    )


@pytest.mark.parametrize(
    "damage", [{"chain": 4}, {"chain": -1}, {"chain": None}, {"rand_index": "much"}]
)
def test_a_file_with_a_chain_that_is_not_there_is_refused(tmp_path, damage):
    posterior = fitted()
    divisions = posterior.settings["divisions"] | damage
    wrong = replace(posterior, settings=posterior.settings | {"divisions": divisions})
    wrong.save(tmp_path / "model.pm")
    with pytest.raises(ValueError, match="damaged settings: divisions"):
        pm.load(tmp_path / "model.pm")


def test_an_update_continues_each_chain_with_its_own_clusters():
    posterior = fitted()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of few draws
        newer = posterior.update({"new": [0, 1, 2], 5: [3]}, n_draws=20, rng=8)
    assert newer.settings["options"]["divisions"] == "own"
    assert newer.settings["updates"] == 1
    before, after = labels_of(posterior), labels_of(newer)[:, :200]
    like = np.array([[rand_index(one, other) for other in after] for one in before])
    assert (np.diag(like) > 0.9).all()
    assert (like < 0.5).any()
    assert newer.n_users == 201


def test_an_update_keeps_the_clusters_that_chains_have_by_the_data():
    posterior = fitted(divisions="auto", rng=6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of few draws
        newer = posterior.update({"new": [0, 1, 2], 5: [3]}, n_draws=20, rng=8)
    assert newer.settings["options"]["divisions"] == "auto"
    assert newer.has_own_divisions
    before, after = labels_of(posterior), labels_of(newer)[:, :200]
    like = np.array([[rand_index(one, other) for other in after] for one in before])
    assert np.diag(like).min() > 0.8
    assert like[~np.eye(4, dtype=bool)].max() < 0.7


def test_the_report_and_the_figures_are_of_the_chain_that_describes(tmp_path):
    posterior = fitted()
    pm.report(posterior, tmp_path / "report.html", n_examples=1)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "looked for its own clusters" in page
    share = posterior.described.shares.mean(axis=(0, 1))[0]
    assert f"{100 * share:.0f}" in page
    assert f"({share:.0%})" in pm.plots.top_k(posterior).get_title()
    heights = [bar.get_height() for bar in pm.plots.shares(posterior).patches]
    assert heights == pytest.approx(posterior.described.shares.mean(axis=(0, 1)).tolist())
    assert f"cluster 1, {100 * share:.0f} %" in posterior._repr_html_()


def test_how_far_chains_agree_is_the_mean_over_their_pairs():
    memberships = np.eye(2)[[[0, 0, 1, 1], [0, 0, 1, 1], [0, 1, 1, 1]]]
    found = compare_divisions(memberships, np.array([-3.0, -1.0, -2.0]))
    indices = [1.0, *[rand_index(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]))] * 2]
    assert found["chain"] == 1
    assert found["rand_index"] == pytest.approx(np.mean(indices))
    assert found["same_users"] == pytest.approx(np.mean([1.0, 0.75, 0.75]))
    assert json.loads(json.dumps(found)) == found
