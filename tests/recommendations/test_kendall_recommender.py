"""Recommendations from clicks under Kendall's distance, against all rankings of a few items."""

import warnings

import numpy as np
import pytest

import naive
import pseudomallows as pm
from pseudomallows.engines import memory
from pseudomallows.posterior.posterior import Posterior
from pseudomallows.recommendations import kendall_recommender as kendall
from pseudomallows.recommendations import recommender as probabilities
from pseudomallows.recommendations.choose_recommender import recommender_of

ROWS = [(0, 3), (2,), (), (1, 4, 5), (0, 1, 2, 3, 4, 5), (4, 0, 1, 2, 3)]
N_ITEMS, WINDOW = 6, 2


def posterior_of(n_clusters=2, n_chains=2, n_draws=3, seed=1, rows=ROWS):
    """Draws made up, with weights."""
    rng, shape = np.random.default_rng(seed), (n_chains, n_draws, n_clusters)
    draws = np.argsort(rng.random((*shape, N_ITEMS)), axis=-1).astype(np.int32) + 1
    clicks = pm.Preferences.from_clicks(dict(enumerate(map(list, rows))), items=range(N_ITEMS))
    return Posterior(
        consensus=draws,
        alpha=rng.uniform(0.5, 9, shape),
        weights=rng.dirichlet(np.ones(n_chains * n_draws)).reshape(n_chains, n_draws),
        log_posterior=np.zeros(shape[:2]),
        best=draws[0, 0],
        items=np.arange(N_ITEMS),
        settings={"method": "mcmc", "distance": "kendall", "options": {}},
        data=clicks,
        users=clicks.users,
        shares=rng.dirichlet(np.ones(n_clusters), shape[:2]),
        chain_memberships=np.full((n_chains, len(rows), n_clusters), 1 / n_clusters, np.float32),
    )


def exact_probabilities(posterior, row, is_new, distance="kendall"):
    """By the definition: a mean over draws and clusters, weighed by the clicks."""
    probabilities, total = np.zeros(N_ITEMS), 0.0
    for chain, draw in np.ndindex(posterior.weights.shape):
        weight, laws = posterior.weights[chain, draw], []
        for cluster in range(posterior.n_clusters):
            center = tuple(posterior.consensus[chain, draw, cluster].tolist())
            law = (center, float(posterior.alpha[chain, draw, cluster]))
            like = naive.click_likelihood(row, *law, distance)
            laws.append((posterior.shares[chain, draw, cluster] * like, law))
        sum_of_draw = sum(share for share, _ in laws)
        for share, law in laws:
            mine = weight * share / (1.0 if is_new else sum_of_draw)
            probabilities += mine * np.array(naive.next_probabilities(row, *law, WINDOW, distance))
            total += mine
    return probabilities / total


@pytest.mark.kernel
@pytest.mark.parametrize("n_clusters", [1, 2])
@pytest.mark.parametrize("is_new", [False, True])
def test_probabilities_are_exact(n_clusters, is_new, monkeypatch):
    monkeypatch.setattr(kendall, "LEFT_OUT", 0.0)
    posterior = posterior_of(n_clusters)
    given = {"clicks": posterior.clicks} if is_new else {}
    found = pm.recommend(posterior, 6, window=WINDOW, **given)
    for user, row in enumerate(ROWS):
        exact = exact_probabilities(posterior, row, is_new)
        n_left = N_ITEMS - len(row)
        items, values = found.items[user, :n_left], found.probabilities[user, :n_left]
        assert sorted([*items.tolist(), *row]) == list(range(6))
        assert values == pytest.approx(exact[items], abs=1e-12)
        assert (np.diff(values) <= 1e-12).all()
        assert (found.items[user, n_left:] == -1).all()


def test_those_of_the_footrule_or_of_wrong_weights_would_be_found_out():
    posterior = posterior_of(2)
    found = pm.recommend(posterior, 4, window=WINDOW, users=[0])
    for wrong in ({"is_new": False, "distance": "footrule"}, {"is_new": True}):
        exact = exact_probabilities(posterior, ROWS[0], **wrong)
        assert found.probabilities[0] != pytest.approx(exact[found.items[0]], abs=1e-3)


@pytest.mark.kernel
@pytest.mark.parametrize("is_new", [False, True])
def test_probabilities_of_some_items_alone_are_exact(is_new, monkeypatch):
    monkeypatch.setattr(kendall, "LEFT_OUT", 0.0)
    monkeypatch.setattr(probabilities, "MOST_FEW", 0)
    posterior, only = posterior_of(2), [0, 2, 4]
    given = {"clicks": posterior.clicks} if is_new else {}
    found = pm.recommend(posterior, 6, window=WINDOW, only=only, **given)
    plain = pm.recommend(posterior, 6, window=WINDOW, **given)
    for user, row in enumerate(ROWS):
        exact, left = exact_probabilities(posterior, row, is_new), sorted({*only} - {*row})
        items = found.items[user, : len(left)]
        assert sorted(items.tolist()) == left
        assert found.probabilities[user, : len(left)] == pytest.approx(exact[items], abs=1e-12)
        errors = dict(zip(plain.items[user], plain.errors[user], strict=True))
        assert found.errors[user, : len(left)].tolist() == [errors[item] for item in items]


@pytest.mark.kernel
@pytest.mark.parametrize("is_new", [False, True])
def test_the_parts_of_the_clusters_add_up_to_the_exact_probabilities(is_new):
    posterior = posterior_of(2)
    for user in (0, 1, 2):
        one = posterior.clicks.take([user])
        users = kendall.Users(one, None if is_new else np.array([user]))
        shares, parts = recommender_of(posterior).by_cluster(users, 3, WINDOW, pm.Threads(1))
        exact = exact_probabilities(posterior, ROWS[user], is_new)
        unclicked = [item for item in range(N_ITEMS) if item not in ROWS[user]]
        assert shares.sum() == pytest.approx(1)
        assert parts.sum(axis=0)[unclicked] == pytest.approx(exact[unclicked], abs=1e-12)


@pytest.mark.kernel
def test_the_best_few_are_the_first_of_all(monkeypatch):
    posterior = posterior_of(2)
    whole, few = pm.recommend(posterior, 6, window=2), pm.recommend(posterior, 2, window=2)
    assert (few.items == whole.items[:, :2]).all()
    monkeypatch.setattr(kendall, "N_TOP", 2)  # all probabilities are looked at
    kept = recommender_of(posterior_of(2)).probabilities(
        kendall.Users(posterior.clicks, np.arange(6)), 6, 2, 0.0, pm.Threads(1)
    )
    assert kept.fill is None


@pytest.mark.kernel
def test_errors_are_stated():
    errors = pm.recommend(posterior_of(2, n_draws=200), 4, users=[0, 1], window=2).errors
    assert ((errors > 0) & (errors < 0.1)).all()


@pytest.mark.kernel
def test_memberships_of_new_users_are_exact():
    posterior, exact = posterior_of(2), []
    found = pm.recommendations.memberships(posterior, posterior.clicks)
    for row in ROWS:
        sums = np.zeros(2)
        for chain, draw, cluster in np.ndindex(posterior.alpha.shape):
            center = tuple(posterior.consensus[chain, draw, cluster].tolist())
            alpha = float(posterior.alpha[chain, draw, cluster])
            weight = posterior.weights[chain, draw] * posterior.shares[chain, draw, cluster]
            sums[cluster] += weight * naive.click_likelihood(row, center, alpha, "kendall")
        exact.append(sums / sums.sum())
    assert found == pytest.approx(np.array(exact), abs=1e-9)


def test_intervals_of_a_user_come_from_rankings_that_agree_with_the_clicks():
    posterior = posterior_of(2)
    runs = pm.recommendations.user_intervals(posterior, 3, rng=1)
    assert (runs[[1, 4, 5], 1] <= 3).all()
    assert (runs[[0, 2, 3], 0] >= 4).all()
    recommender_of(posterior)
    counts = recommender_of(posterior).draw_ranks(
        kendall.Users(posterior.clicks.take([0]), np.array([0])), 4000, np.random.default_rng(1)
    )
    share = counts[:, 2:4].sum(axis=1) / 4000
    exact = exact_probabilities(posterior, ROWS[0], is_new=False)
    unclicked = [1, 2, 4, 5]
    assert share[unclicked] == pytest.approx(exact[unclicked], abs=0.04)


def test_ranks_of_too_many_items_are_not_counted(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 100)
    with pytest.raises(ValueError, match=r"ranks of 6 items need 288 bytes.*pm\.recommend"):
        pm.recommendations.user_intervals(posterior_of(), 3, rng=1)


@pytest.mark.kernel
def test_places_beyond_the_tables_are_read_between_some(monkeypatch):
    monkeypatch.setattr(kendall, "LEFT_OUT", 0.0)
    exact = pm.recommend(posterior_of(2), 1, window=1, users=[0, 1, 2])
    monkeypatch.setattr(kendall, "N_TOP", 3)  # and 4 places for a window of 1
    found = pm.recommend(posterior_of(2), 1, window=1, users=[0, 1, 2])
    assert (found.items == exact.items).all()
    assert found.probabilities == pytest.approx(exact.probabilities, rel=0.05)


def test_tables_are_made_kept_and_dropped():
    recommender = recommender_of(posterior_of())
    assert not recommender.is_ready(2, 3)
    recommender.prepare_size(2, 3)
    assert recommender.is_ready(2, 3)
    assert recommender.table_bytes() > 0
    recommender.drop_tables(3)
    assert not recommender.is_ready(2, 3)
    assert recommender.table_bytes() == 0


def test_fewer_draws_are_averaged_where_there_is_no_room(monkeypatch):
    monkeypatch.setattr(kendall, "MOST_LAWS", 8)
    draws, alphas = kendall.some_draws(posterior_of(2, n_chains=2, n_draws=9))
    assert draws.ranks.shape == (6, 8)
    assert len(alphas) == 8


def test_a_file_has_the_same_answers(tmp_path):
    posterior, path = posterior_of(), tmp_path / "next.parquet"
    assert pm.recommendations.recommend_to(posterior, path, 2) == 6
    import pyarrow.parquet as pq

    rows, found = pq.read_table(path).to_pylist(), pm.recommend(posterior, 2).to_rows()
    assert [row["item"] for row in rows] == [str(row["item"]) for row in found]  # as text
    assert [row["probability"] for row in rows] == pytest.approx(
        [row["probability"] for row in found], abs=1e-6
    )


@pytest.mark.slow
@pytest.mark.parametrize("n_clusters", [1, 2])
def test_probabilities_come_true(n_clusters):
    """Expected calibration error of what is recommended, on rankings drawn from the model."""
    rng, n_users, n_items, k = np.random.default_rng(11), 2000, 40, 5
    labels = rng.integers(n_clusters, size=n_users)
    laws = [
        pm.Mallows(rng.permutation(n_items) + 1, alpha, distance="kendall")
        for alpha in (30.0, 50.0)[:n_clusters]
    ]
    rankings = np.stack([laws[label].draw(1, rng)[0] for label in labels])
    sizes = rng.integers(2, 10, n_users)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.diagnostics.FitWarning)
        prefs = pm.Preferences.from_clicks(rankings <= sizes[:, None])
        posterior = pm.fit(prefs, "mcmc", distance="kendall", n_clusters=n_clusters, rng=1)
    found = pm.recommend(posterior, k)
    ranks = np.take_along_axis(rankings, found.items, axis=1)
    came = (ranks > sizes[:, None]) & (ranks <= sizes[:, None] + k)
    assert calibration_error(found.probabilities.ravel(), came.ravel()) <= 0.02
    assert calibration_error(found.probabilities.ravel() ** 1.3, came.ravel()) > 0.03


def calibration_error(stated, came):
    bins = np.minimum((stated * 10).astype(int), 9)
    sums = [
        (bins == b).sum() * abs(stated[bins == b].mean() - came[bins == b].mean())
        for b in np.unique(bins)
    ]
    return sum(sums) / len(stated)
