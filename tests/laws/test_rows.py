"""What the laws know of some rows: latent rankings, full rankings to begin with, features, and the
law of these rows alone."""

import numpy as np
import pytest

import naive
import pseudomallows as pm
from helpers import IS_COMPILED, p_value
from law_cases import (
    BLOCK_CASES,
    BUCKET_CASE,
    CLICK_CASES,
    FULL_CASES,
    VOTE_CASE,
    WITH_CLUSTERS,
    clusters_of,
    labels_of,
)
from pseudomallows.laws.registry import make_law

pytestmark = pytest.mark.kernel
WITH_LATENT = [BUCKET_CASE, *BLOCK_CASES, *CLICK_CASES]
of_latent = pytest.mark.parametrize("case", WITH_LATENT, ids=str)
of_clusters = pytest.mark.parametrize("case", WITH_CLUSTERS, ids=str)
ALPHA = {"footrule": 1.5, "kendall": 2.5, "hamming": 4.0}


# Latent rankings


def numbers_of(case):
    """The number in the data of each row that says something."""
    return np.flatnonzero(case.prefs.is_informative)


def latent_law(case, row, consensus, alpha):
    """{latent ranking: probability} of a user of a row."""
    weights = {r: naive.weight(r, consensus, alpha, case.distance) for r in case.completions(row)}
    return naive.normalise(weights)


def p_value_of_latent(case, row, times=1.0, n_draws=3000):
    """Of latent rankings of a user at so many times the right alpha, and of two clusters."""
    law, clusters = case.law(), clusters_of(case, (ALPHA[case.distance],) * 2)
    wrong = clusters._replace(alpha=times * clusters.alpha)
    label, user = np.array([1], dtype=np.int32), numbers_of(case)[[row]]
    draws = [law.draw_latent(user, label, wrong, 7, number)[0] for number in range(n_draws)]
    exact = latent_law(case, row, clusters.consensus[1].tolist(), float(clusters.alpha[1]))
    return p_value(draws, exact)


def open_rows(case):
    """Rows that leave something open, and not too much for a chi-square."""
    return [row for row in range(len(case.rows)) if 1 < len(case.completions(row)) <= 24]


@pytest.mark.skipif(not IS_COMPILED, reason="too many draws")
@of_latent
def test_latent_rankings_follow_the_exact_law(case):
    rows = open_rows(case)
    assert len(rows) >= 3
    for row in rows:
        assert p_value_of_latent(case, row) > 1e-4


@pytest.mark.skipif(not IS_COMPILED, reason="too many draws")
@of_latent
def test_latent_rankings_at_another_alpha_are_caught(case):
    assert min(p_value_of_latent(case, row, times=1.6) for row in open_rows(case)) < 1e-6


@of_latent
def test_latent_rankings_agree_with_what_is_known(case):
    law, clusters, users = case.law(), clusters_of(case), numbers_of(case)
    for number in range(20):
        drawn = law.draw_latent(users, labels_of(case), clusters, 3, number)
        for row, ranks in enumerate(drawn.tolist()):
            assert tuple(ranks) in set(case.completions(row))


@of_latent
def test_the_latent_ranking_of_a_user_depends_on_the_user_alone(case):
    law, clusters, users = case.law(), clusters_of(case), numbers_of(case)
    labels = labels_of(case)
    whole = law.draw_latent(users, labels, clusters, 3, 5)
    order = np.random.default_rng(1).permutation(len(users))[:4]
    assert (law.draw_latent(users[order], labels[order], clusters, 3, 5) == whole[order]).all()
    others = np.array([law.draw_latent(users, labels, clusters, 4, n) for n in range(5)])
    assert (others != whole).any()


@pytest.mark.skipif(not IS_COMPILED, reason="too many draws")
@of_latent
def test_a_user_who_says_nothing_has_any_ranking(case):
    law, clusters = case.law(), clusters_of(case, (1.0,))
    user = np.flatnonzero(~case.prefs.is_informative)[:1]
    label = np.zeros(1, dtype=np.int32)
    draws = [law.draw_latent(user, label, clusters, 7, number)[0] for number in range(3000)]
    exact = np.array(
        naive.marginals(naive.mallows(clusters.consensus[0].tolist(), 1.0, case.distance))
    )
    shares = [(np.array(draws) == rank).mean(axis=0) for rank in range(1, case.n_items + 1)]
    assert np.stack(shares, axis=1) == pytest.approx(exact, abs=5 * np.sqrt(0.25 / 3000))


@pytest.mark.parametrize("case", FULL_CASES, ids=str)
def test_full_rankings_are_their_own_latent_ones(case):
    users, labels = np.array([3, 0, 1]), np.zeros(3, dtype=np.int32)
    found = case.law().draw_latent(users, labels, clusters_of(case), 1, 1)
    assert (found == case.prefs.rankings[users]).all()


@pytest.mark.parametrize("case", [BLOCK_CASES[0], CLICK_CASES[0]], ids=str)
def test_counted_latent_rankings_are_those_of_the_users(case):
    """The counts of a row of weight w are those of w users, numbered one after the other."""
    law, (consensus, _, _) = case.law(), clusters_of(case).consensus
    counts = sum(rows.count_latent(consensus, 1.5, 7, 2, rows.weights) for rows in law.blocks)
    assert (counts.sum(axis=0) == law.n_users).all()
    assert (counts.sum(axis=1) == law.n_users).all()
    each = case.prefs.take(numbers_of(case)).one_row_each()[0]
    repeated = make_law(each, pm.Threads(1), case.distance)
    one_by_one = sum(
        rows.count_latent(consensus, 1.5, 7, 2, rows.weights) for rows in repeated.blocks
    )
    assert (counts == one_by_one).all()


# Full rankings to begin with


@of_clusters
def test_rankings_of_rows_agree_with_them_and_follow_an_order_where_they_are_open(case):
    order = np.random.default_rng(4).permutation(case.n_items).astype(np.float64)
    rows = np.array([2, 0, 1, 2])
    found = case.law().rankings_of(rows, order)
    for row, ranks in zip(rows.tolist(), found.tolist(), strict=True):
        ways = case.completions(row)
        assert tuple(ranks) in set(ways)
        fewest = min(wrong_pairs(way, order) for way in ways)
        assert wrong_pairs(ranks, order) == fewest


def wrong_pairs(ranking, order):
    return naive.kendall(tuple(ranking), tuple((np.argsort(np.argsort(order)) + 1).tolist()))


# Features


def two_camps(kind):
    """Ten users each of two opposite orders, as much of them as the kind shows."""
    full = np.array([range(1, 7)] * 10 + [range(6, 0, -1)] * 10)
    rng = np.random.default_rng(1)
    for ranks in full:
        i = rng.integers(5)
        ranks[np.isin(ranks, [i + 1, i + 2])] = ranks[np.isin(ranks, [i + 1, i + 2])][::-1]
    if kind == "clicks":
        return pm.Preferences.from_clicks(full <= 3)
    tied = (full - 1) // 2 * 2 + 1
    return pm.Preferences.from_rankings(
        {
            "full": full,
            "top": np.where(full <= 3, full, 0),
            "ties": tied,
            "gaps": np.where(rng.random(full.shape) < 0.7, full, 0),
        }[kind]
    )


@pytest.mark.parametrize("kind", ["full", "top", "ties", "gaps", "clicks"])
@pytest.mark.parametrize("distance", ["footrule", "kendall", "hamming", "cayley"])
def test_features_tell_two_camps_apart(kind, distance):
    if kind == "clicks" and distance in ("hamming", "cayley"):
        pytest.skip("no law")
    law = make_law(two_camps(kind), pm.Threads(1), distance)
    features = law.features(2)
    assert features.shape == (20, 2)
    if kind == "clicks":  # not centred: the first axis is what all share
        features = features - features.mean(axis=0)
    means = features[:10].mean(axis=0), features[10:].mean(axis=0)
    away = [np.linalg.norm(features - mean, axis=1) for mean in means]
    assert ((away[0] < away[1]) == (np.arange(20) < 10)).all()


def test_features_of_votes_have_a_row_for_each():
    law = VOTE_CASE.law()
    assert law.features(2).shape == (law.n_rows, 2)


# Some rows


@pytest.mark.parametrize("case", [*WITH_CLUSTERS, VOTE_CASE], ids=str)
def test_the_law_of_some_rows_is_that_of_these_rows(case):
    law, clusters, rows = case.law(), clusters_of(case), np.array([0, 2, 3])
    some, weights = law.select(rows), np.array([0.2, 0.5, 0.3])
    assert (some.n_rows, some.n_users) == (3, case.weights[rows].sum())
    assert (some.row_weights == case.weights[rows]).all()
    exact = law.scores(clusters, weights)[rows]
    assert some.scores(clusters, weights) == pytest.approx(exact, abs=1e-12)
    others = law.scores(clusters, weights)[rows + 1]
    assert some.scores(clusters, weights) != pytest.approx(others, abs=1e-3)
    (tally,) = some.tallies(None, 1)
    values = case.weights[rows] @ case.logs(clusters)[rows]
    for cluster, consensus in enumerate(clusters.consensus if law.is_exact else ()):
        found = tally.curve(consensus)(float(clusters.alpha[cluster]))
        assert found == pytest.approx(values[cluster], abs=1e-8)


@pytest.mark.parametrize("case", CLICK_CASES, ids=str)
def test_some_rows_of_clicks_keep_the_tables_of_all(case):
    law = case.law()
    some = law.select(np.array([0, 4]))
    assert (some.sizes == law.sizes).all()
    assert some.count_shape == law.count_shape
