"""Reasons: what speaks for an item, in numbers that add up."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

import pseudomallows as pm
from pseudomallows.personal.item_scores import ItemScores

K = 3
FITS = {
    "pseudo": {"method": "pseudo", "n_draws": 20, "alpha": 6.0},
    "exact": {"method": "mcmc", "n_draws": 20, "alpha": 6.0, "n_chains": 1, "warmup": 50},
    "pseudo clusters": {"method": "pseudo", "n_draws": 20, "n_clusters": 3, "n_chains": 2},
    "exact clusters": {
        "method": "mcmc",
        "n_draws": 40,
        "n_clusters": 3,
        "n_chains": 1,
        "warmup": 50,
    },
    "kendall clusters": {
        "method": "mcmc",
        "n_draws": 20,
        "n_clusters": 3,
        "distance": "kendall",
        "n_chains": 1,
    },
}


@pytest.fixture(scope="module")
def prefs():
    found = pm.simulate_clicks(90, 12, [8.0] * 3, 4, rng=2).preferences
    return found.rename(items=[f"item {code}" for code in range(12)])


@pytest.fixture(scope="module")
def personal(prefs):
    return pm.fit(prefs, "personal", rng=1)


@pytest.fixture(scope="module", params=sorted(FITS))
def posterior(request, prefs):
    with warnings.catch_warnings(action="ignore", category=pm.diagnostics.FitWarning):
        return pm.fit(prefs, rng=1, **FITS[request.param])


def unseen(prefs, row):
    return next(i for i in range(12) if i not in prefs.clicks_of(row))


def test_what_clicks_add_is_the_score_of_a_personal_fit(personal, prefs):
    for row in range(8):
        code, clicked = unseen(prefs, row), prefs.clicks_of(row)
        if not len(clicked):
            continue
        found = pm.explain(personal, row, f"item {code}", k=K)
        expected = personal.scores_of(prefs, slice(row, row + 1))[0, code]
        assert found.what == "score"
        assert found.value == pytest.approx(expected, abs=1e-12)
        assert found.amounts.sum() == pytest.approx(found.value, rel=1e-12)
        amounts = dict(zip(found.names, found.amounts.tolist(), strict=True))
        for clicked_code in clicked.tolist():
            weight = personal.item_weights[clicked_code, code]
            assert amounts[f"item {clicked_code}"] == pytest.approx(weight, abs=1e-15)
        assert np.abs(found.shares).sum() == pytest.approx(1)
        assert (np.diff(np.abs(found.amounts)) <= 0).all()


def test_a_bias_is_popularity_and_what_is_left_is_the_rest(personal, prefs, monkeypatch):
    biased = replace(personal, bias=np.linspace(-1.0, 1.0, 12))
    plain = replace(personal, bias=np.empty(0))
    code = unseen(prefs, 0)
    found = pm.explain(biased, 0, f"item {code}")
    assert dict(zip(found.kinds, found.amounts, strict=True))["popularity"] == biased.bias[code]
    scores = plain.scores_of(prefs, slice(0, 1))
    monkeypatch.setattr(type(biased), "scores_for", lambda *_: scores + 7.0)
    odd = pm.explain(biased, 0, f"item {code}")
    rest = dict(zip(odd.kinds, odd.amounts, strict=True))["rest"]
    assert rest == pytest.approx(7.0 - biased.bias[code])
    assert odd.value == pytest.approx(scores[0, code] + 7.0)


def test_what_clusters_add_is_the_probability(posterior, prefs):
    for given in ({"user": 5}, {"clicks": ["item 1", "item 4"]}):
        name = "users" if "user" in given else "clicks"
        asked = {"users": [5]} if name == "users" else {"clicks": {"new": given["clicks"]}}
        wide = pm.recommend(posterior, 12, window=K, **asked)
        stated = pm.recommend(posterior, K, **asked)
        code = int(stated.items[0, 0])
        found = pm.explain(posterior, item=f"item {code}", k=K, **given)
        # by Kendall's distance draws and clusters of small weights are left out, 1e-4 in all
        near = 1e-4 if posterior.settings["distance"] == "kendall" else 1e-9
        assert found.value == pytest.approx(found.probability, abs=near)
        assert found.value == pytest.approx(stated.probabilities[0, 0], abs=2e-4)
        assert code in wide.items[0]
        assert found.kinds == ["cluster"] * posterior.n_clusters
        parts = found.details["membership"] * found.details["probability"]
        assert found.amounts == pytest.approx(parts)
        assert found.details["membership"].sum() == pytest.approx(1)
        for row, cluster in enumerate(found.names):
            ranks = posterior.point_consensus(cluster=cluster)
            assert found.details["rank"][row] == ranks[code]


def test_ranks_explain_users_known_by_rankings():
    data = pm.simulate_rankings(20, 6, 4.0, top=2, rng=1).preferences
    posterior = pm.fit(data, "mcmc", 4.0, 120, keep_latent=True, n_chains=2, rng=1)
    wide = pm.recommend(posterior, 6, users=[3], window=3)
    found = pm.explain(posterior, 3, int(wide.items[0, 2]), k=3)
    assert found.value == pytest.approx(wide.probabilities[0, 2])
    assert found.value == pytest.approx(found.probability)
    assert sorted(found.names) == [1, 2, 3]
    assert "most likely has" in str(found)


def test_reasons_are_told_in_words_rows_and_frames(personal, posterior, prefs):
    found = pm.explain(personal, item="item 7", clicks=["item 1", "item 2", "item 3"], k=K)
    assert str(found).startswith("'item 7' for 'new': speak")
    assert "of all that counts" in str(found)
    assert f"among the next {K} is" in str(found)
    assert [row["reason"] for row in found.to_rows()] == found.names
    assert list(found.to_frame().columns) == ["kind", "reason", "amount", "share"]
    nothing = pm.explain(personal, "zoe", "item 7", clicks=[])
    assert nothing.kinds == ["popularity"]
    assert nothing.value == personal.popularity[7]
    assert "no click says anything" in str(nothing)
    other = pm.explain(posterior, 5, f"item {unseen(prefs, 5)}")
    assert "in cluster" in str(other)
    assert list(other.to_frame().columns)[4:] == ["membership", "probability", "rank"]


def test_given_scores_have_one_reason(prefs):
    scores = np.tile(np.arange(12.0), (prefs.n_users, 1))
    fitted = pm.personal.fit_scores(prefs, scores)
    code = unseen(prefs, 0)
    found = pm.explain(fitted, 0, f"item {code}")
    assert found.kinds == ["given"]
    assert found.value == fitted.scores[0, code]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"item": "item 7"}, "give a user of the fit, or the clicks of a new one"),
        ({"user": "zoe", "item": "item 7"}, "no user is named 'zoe'"),
        ({"user": 0, "item": "gold"}, "no item is named 'gold'; the first are 'item 0'"),
        ({"user": 0}, "no item is named None"),
        ({"item": "item 7", "clicks": ["gold"]}, "unknown item: 'gold'"),
        ({"item": "item 7", "clicks": ["item 7"]}, "has clicked 'item 7' already"),
        ({"item": "item 7", "clicks": {1: ["item 0"], 2: []}}, "clicks of one user, got 2"),
        ({"user": 0, "item": "item 7", "k": 0}, "k must be 1 or more"),
    ],
)
def test_bad_questions_are_refused(personal, given, message):
    with pytest.raises(ValueError, match=message):
        pm.explain(personal, **given)


def test_weights_may_be_sparse_and_have_factors(personal):
    rng, weights = np.random.default_rng(1), personal.item_weights
    left, right = rng.random((12, 2)), rng.random((2, 12))
    scores = ItemScores(csr_array(weights), left, right)
    whole = weights + left @ right
    np.fill_diagonal(whole, 0.0)
    assert scores.row(3) == pytest.approx(whole[3])
    assert scores.column(5) == pytest.approx(whole[:, 5])
    assert ItemScores(csr_array(weights)).column(5) == pytest.approx(weights[:, 5])


def test_names_that_are_numbers_are_numbers_in_words():
    clicks = pm.simulate_clicks(40, 5, 5.0, 2, rng=1).preferences
    why = pm.explain(pm.fit(clicks, "personal", calibrate=False, rng=1), item=0, clicks=[1, 2])
    assert str(why).startswith("0 for ")
    assert "np." not in str(why)
