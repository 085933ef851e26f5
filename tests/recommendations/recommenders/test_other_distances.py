"""Recommendations from clicks by Cayley's and Hamming's distance, against all rankings of a few
items."""

import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest

import naive
import pseudomallows as pm
from clihelp import run
from pseudomallows.engines.executors import blocks
from pseudomallows.posteriors.posterior import Posterior
from pseudomallows.recommendations.recommenders import halves
from pseudomallows.recommendations.recommenders.chances import MAX_ERROR, Users
from pseudomallows.recommendations.recommenders.registry import recommender_of
from webhelp import client_of, make_model

ROWS = [(0, 3), (2,), (), (1, 2, 4), (0, 1, 2, 3, 4), (4, 0, 1, 2)]
N_ITEMS, WINDOW = 5, 2
ALPHAS = {"cayley": (0.5, 9), "hamming": (0.5, 9)}


def posterior_of(distance, n_clusters=2, n_chains=2, n_draws=3, seed=1, rows=ROWS):
    """Draws made up, with weights."""
    rng, shape = np.random.default_rng(seed), (n_chains, n_draws, n_clusters)
    draws = np.argsort(rng.random((*shape, N_ITEMS)), axis=-1).astype(np.int32) + 1
    clicks = pm.Preferences.from_clicks(dict(enumerate(map(list, rows))), items=range(N_ITEMS))
    return Posterior(
        consensus=draws,
        alpha=rng.uniform(*ALPHAS[distance], shape),
        weights=rng.dirichlet(np.ones(n_chains * n_draws)).reshape(n_chains, n_draws),
        log_posterior=np.zeros(shape[:2]),
        best=draws[0, 0],
        items=np.arange(N_ITEMS),
        settings={"method": "mcmc", "distance": distance, "options": {}},
        data=clicks,
        users=clicks.users,
        shares=rng.dirichlet(np.ones(n_clusters), shape[:2]),
        chain_memberships=np.full((n_chains, len(rows), n_clusters), 1 / n_clusters, np.float32),
    )


def exact_chances(posterior, row, is_new, factor=1.0, distance=None):
    """By the definition: a mean over draws and clusters, weighed by the clicks; the chances of each
    item, and of each cluster. Alpha may be wrong by a factor."""
    distance = distance or posterior.settings["distance"]
    chances, shares = np.zeros(N_ITEMS), np.zeros(posterior.n_clusters)
    for chain, draw in np.ndindex(posterior.weights.shape):
        laws, weights = [], []
        for cluster in range(posterior.n_clusters):
            center = tuple(posterior.consensus[chain, draw, cluster].tolist())
            laws.append((center, factor * float(posterior.alpha[chain, draw, cluster])))
            like = naive.click_likelihood(row, *laws[-1], distance)
            weights.append(posterior.shares[chain, draw, cluster] * like)
        mine = posterior.weights[chain, draw] * np.array(weights)
        mine /= 1.0 if is_new else sum(weights)
        shares += mine
        for weight, law in zip(mine, laws, strict=True):
            chances += weight * np.array(naive.next_chances(row, *law, WINDOW, distance))
    return chances / shares.sum(), shares / shares.sum()


def largest_difference(posterior, found, is_new, **wrong):
    """Of what is recommended to all users from the definition."""
    largest = 0.0
    for user, row in enumerate(ROWS):
        exact, _ = exact_chances(posterior, row, is_new, **wrong)
        items = found.items[user, : N_ITEMS - len(row)]
        assert sorted([*items.tolist(), *row]) == list(range(N_ITEMS))
        values = found.probabilities[user, : len(items)]
        largest = max(largest, np.abs(values - exact[items]).max(initial=0.0))
    return largest


def recommend_all(posterior, is_new, **options):
    given = {"clicks": posterior.clicks} if is_new else {}
    return pm.recommend(posterior, N_ITEMS, window=WINDOW, max_error=0, **given, **options)


@pytest.mark.kernel
@pytest.mark.parametrize("distance", ALPHAS)
@pytest.mark.parametrize("n_clusters", [1, 2])
@pytest.mark.parametrize("is_new", [False, True])
def test_chances_by_closed_forms_are_exact(distance, n_clusters, is_new):
    posterior = posterior_of(distance, n_clusters)
    found = recommend_all(posterior, is_new)
    assert largest_difference(posterior, found, is_new) < 1e-12
    assert (np.diff(found.probabilities[2]) <= 1e-12).all()
    assert np.isfinite(found.errors[found.items >= 0]).all()


@pytest.mark.parametrize("distance", ALPHAS)
def test_those_of_other_laws_would_be_found_out(distance):
    posterior = posterior_of(distance)
    found = recommend_all(posterior, False)
    for wrong in ({"distance": "footrule"}, {"factor": 1.02}):
        assert largest_difference(posterior, found, False, **wrong) > 1e-3
    assert largest_difference(posterior, found, True) > 1e-3


@pytest.mark.parametrize("distance", ALPHAS)
@pytest.mark.parametrize("is_new", [False, True])
def test_answers_are_the_same_in_any_block_and_on_any_number_of_threads(
    distance, is_new, monkeypatch
):
    posterior = posterior_of(distance)
    one = recommend_all(posterior, is_new, executor=pm.Threads(1))
    module = sys.modules[pm.recommendations.Recommendations.__module__]
    monkeypatch.setattr(module, "blocks", lambda n_rows: blocks(n_rows, 2))
    monkeypatch.setattr(halves, "ROOM", 1)  # a row at a time
    two = recommend_all(posterior, is_new, executor=pm.Threads(2))
    for name in ("items", "probabilities", "errors"):
        assert np.array_equal(getattr(one, name), getattr(two, name), equal_nan=True)
    if is_new:
        alone = pm.recommend(
            posterior, N_ITEMS, window=WINDOW, max_error=0, clicks={"x": list(ROWS[3])}
        )
        assert alone.probabilities[0].tolist()[:2] == one.probabilities[3].tolist()[:2]


@pytest.mark.parametrize("distance", ALPHAS)
@pytest.mark.parametrize("is_new", [False, True])
def test_parts_of_clusters_add_up_and_memberships_are_exact(distance, is_new):
    posterior, tolerance = posterior_of(distance), 1e-12
    recommender = recommender_of(posterior)
    users = Users(posterior.clicks.take([0]), None if is_new else np.array([0]))
    shares, parts = recommender.by_cluster(users, 3, WINDOW, pm.Threads(1))
    chances = recommender.chances(users, 3, WINDOW, MAX_ERROR, pm.Threads(1))
    exact, clusters = exact_chances(posterior, ROWS[0], is_new)
    assert parts.sum(axis=0)[[1, 2, 4]] == pytest.approx(
        chances.table(slice(0, 1))[0][0, [1, 2, 4]], abs=1e-12
    )
    assert parts.sum(axis=0)[[1, 2, 4]] == pytest.approx(exact[[1, 2, 4]], abs=tolerance)
    assert shares == pytest.approx(clusters, abs=tolerance)
    assert (parts <= shares[:, None] + 1e-9)[:, [1, 2, 4]].all()
    if is_new:
        found = pm.recommendations.memberships(posterior, posterior.clicks)
        assert found[0] == pytest.approx(clusters, abs=tolerance)
        assert found.sum(axis=1) == pytest.approx(1)
    assert recommender.is_ready(2, 3)


@pytest.mark.parametrize("distance", ALPHAS)
def test_intervals_and_counted_draws_agree_with_the_clicks(distance):
    posterior = posterior_of(distance)
    runs = pm.recommendations.user_intervals(posterior, 3, rng=1)
    assert (runs[[1, 2, 4], 1] <= 3).all()
    assert (runs[[0, 3], 0] >= 4).all()
    users = Users(posterior.clicks.take([0]), None)
    counts = recommender_of(posterior).draw_ranks(users, 4000, np.random.default_rng(1))
    assert (counts.sum(axis=0) == 4000).all()
    exact, _ = exact_chances(posterior, ROWS[0], is_new=True)
    share = counts[:, 2:4].sum(axis=1) / 4000
    assert share[[1, 2, 4]] == pytest.approx(exact[[1, 2, 4]], abs=0.05)
    many = posterior_of(distance, n_draws=300)
    one, other = (pm.recommend(many, 3, users=[0], window=2, by=by) for by in ("look_up", "draws"))
    chances = dict(zip(other.items[0], other.probabilities[0], strict=True))
    assert one.probabilities[0] == pytest.approx([chances[i] for i in one.items[0]], abs=0.08)


@pytest.mark.parametrize(
    "distance",
    ["cayley", pytest.param("hamming", marks=pytest.mark.slow)],
)
def test_a_fit_answers_by_python_file_command_and_service(distance, tmp_path, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = make_model(tmp_path / "m.pm", n_clusters=2, n_users=30, distance=distance)
    found = pm.recommend(posterior, 2, users=["user 3", "user 4"]).to_rows()
    n_users = pm.recommendations.recommend_to(posterior, tmp_path / "next.csv", 2)
    assert n_users == 30
    lines = (tmp_path / "next.csv").read_text().splitlines()
    mine = [line.split(",") for line in lines if line.startswith(("user 3,", "user 4,"))]
    assert [(row[0], row[2]) for row in mine] == [(row["user"], row["item"]) for row in found]
    assert run("recommend", tmp_path / "m.pm", "--k", 2) == 0
    assert capsys.readouterr().out.splitlines() == lines
    with client_of(tmp_path / "m.pm") as client:
        answer = client.get("/users/user 3/recommendations?k=2").json()["recommendations"]
        assert [row["item"] for row in answer] == [row["item"] for row in found[:2]]
        assert [row["probability"] for row in answer] == [row["probability"] for row in found[:2]]
        new = pm.recommend(posterior, 2, clicks={"x": ["item 1"]}).to_rows()
        answer = client.post("/recommend", json={"clicks": ["item 1"], "k": 2}).json()
        assert [row["item"] for row in answer["recommendations"]] == [row["item"] for row in new]
        assert sum(answer["memberships"]) == pytest.approx(1)
    why = pm.recommendations.explain(posterior, "user 3", found[0]["item"], k=2)
    assert why.probability == pytest.approx(found[0]["probability"])
    assert why.amounts.sum() == pytest.approx(why.probability)


def test_too_many_items_are_refused(monkeypatch):
    monkeypatch.setattr(halves, "MOST_COUNTED", 4)
    for distance in ALPHAS:
        with pytest.raises(ValueError, match=r"ranks of 5 items are not counted"):
            pm.recommendations.user_intervals(posterior_of(distance), 3, rng=1)


def test_a_draw_without_weight_and_a_cluster_without_share_do_not_count():
    for distance in ("hamming",):
        posterior = posterior_of(distance)
        weights, shares = posterior.weights.copy(), posterior.shares.copy()
        weights[0, 0], shares[:, :, 1] = 0.0, 0.0
        posterior = replace(posterior, weights=weights / weights.sum(), shares=shares)
        for is_new in (False, True):
            found = recommend_all(posterior, is_new)
            assert largest_difference(posterior, found, is_new) < 0.06
            assert np.isfinite(found.probabilities[found.items >= 0]).all()
