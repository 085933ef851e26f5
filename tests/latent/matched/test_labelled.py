"""Users with labels: each is drawn by the matched law, and accepted by the exact one."""

import math

import numpy as np
import pytest

import naive
import pseudomallows as pm
from pseudomallows.kernels.matched import judge_labels
from pseudomallows.kernels.streams import Streams
from pseudomallows.latent.matched import matched_users as matched_users
from pseudomallows.latent.matched.labelled import LabelledUsers
from pseudomallows.latent.matched.matched_tables import MatchedTables
from pseudomallows.latent.matched.matched_users import ClusterLaws, LabelDraw, MatchedLaws
from pseudomallows.latent.registry import make_population

CLICKS = [[0, 2], [1], [2, 3], [2], [0, 1, 3], [2, 0], [4]]
CENTERS = np.array([(1, 2, 3, 4, 5), (5, 3, 4, 2, 1), (2, 5, 1, 3, 4)], dtype=np.int32)
ALPHAS, SHARES = np.array([1.0, 4.0, 9.0]), np.array([0.5, 0.2, 0.3])
FIRST, NONE = np.array([0, 0, 1, 1, 2, 2, 0], dtype=np.int32), np.zeros(3, dtype=bool)
LAWS = ClusterLaws(CENTERS, ALPHAS)


def users_of(prefs=None, executor=None):
    if prefs is None:
        prefs = pm.Preferences.from_clicks(dict(enumerate(CLICKS)), items=range(5))
    population = make_population(prefs, executor or pm.Threads(1))
    tables = MatchedTables(population.n_items, population.click_sizes)
    return LabelledUsers(population, tables, 3)


def matched_laws(users, laws=LAWS, factor=1.0):
    sizes, tables = users.law.groups.sizes, users.law
    log_weights = np.empty((len(sizes), 5, 3))
    for cluster, (ranks, alpha) in enumerate(zip(laws.ranks, laws.alphas.tolist(), strict=True)):
        tables.fill_log_weights(ranks, alpha, cluster, log_weights)
    constants = np.repeat(tables.constants(1.0)[:, None], 3, axis=1)
    return MatchedLaws(factor * log_weights, constants, np.log(SHARES))


def exact_memberships():
    values = [[naive.click_likelihood(row, *law) for law in zip(CENTERS, ALPHAS, strict=True)]
              for row in CLICKS]  # fmt: skip
    weights = np.array(values) * SHARES
    return weights / weights.sum(axis=1, keepdims=True), np.log(values)


def shares_of_labels(factor, n_draws=1500):
    """``shares[user, label]`` of a chain on labels alone, by tables times a factor."""
    users = users_of()
    users.begin(FIRST)
    counts, matched = np.zeros((7, 3)), matched_laws(users, factor=factor)
    for number in range(n_draws):
        users.relabel(matched, LAWS, NONE, LabelDraw(3, number))
        counts[np.arange(7), users.gather_labels()] += 1
    return counts / n_draws


def test_labels_follow_the_exact_memberships_whatever_they_are_drawn_by(monkeypatch):
    error = 4 * math.sqrt(0.25 * 3 / 1500)  # three draws in a row are worth one
    assert np.abs(shares_of_labels(0.5) - exact_memberships()[0]).max() < error
    always = lambda self, rows, *_: np.ones(len(rows), dtype=bool)  # noqa: E731
    monkeypatch.setattr(matched_users.ClickedRows, "judge", always)
    assert np.abs(shares_of_labels(0.5) - exact_memberships()[0]).max() > 2 * error


def test_tallies_and_values_are_those_of_the_labels():
    users, logs = users_of(), exact_memberships()[1]
    users.begin(FIRST)
    tallies, values, n_changes = users.relabel(matched_laws(users), LAWS, NONE, LabelDraw(3, 5))
    labels = users.gather_labels()
    assert n_changes == (labels != FIRST).sum() > 0
    for cluster, tally in enumerate(users.tallies(labels)):
        assert (tally.counts == tallies[cluster].counts).all()
        mine = labels == cluster
        assert values[cluster] == pytest.approx(logs[mine, cluster].sum(), abs=1e-6)


@pytest.mark.parametrize("is_taken", [NONE, ~NONE, np.array([True, False, False])])
def test_users_know_the_likelihoods_of_the_clusters_that_were_taken(is_taken, monkeypatch):
    """No label changes here, so nobody looks at a likelihood anew."""
    users = users_of()
    users.begin(FIRST)
    nobody = lambda self, rows, *_: np.zeros(len(rows), dtype=bool)  # noqa: E731
    monkeypatch.setattr(matched_users.ClickedRows, "judge", nobody)
    before = users.relabel(matched_laws(users), LAWS, NONE, LabelDraw(3, 1)).values
    other = ClusterLaws(CENTERS[:, ::-1].copy(), ALPHAS)
    there = users.weigh_own(other)
    assert there == pytest.approx(users.log_likelihoods(other, FIRST), abs=1e-6)
    assert (np.abs(there - before) > 0.01).all()
    now = users.relabel(matched_laws(users), LAWS, is_taken, LabelDraw(3, 2)).values
    assert (now == np.where(is_taken, there, before)).all()


def test_clusters_that_change_places_take_their_users_along():
    users, (exact, logs) = users_of(), exact_memberships()
    users.begin(FIRST)
    assert users.keep(matched_laws(users), LAWS) == pytest.approx(
        np.log((np.exp(logs) * SHARES).sum(axis=1)).sum(), abs=1e-6
    )
    order = np.array([2, 0, 1])
    users.reorder(order)
    assert (order[users.gather_labels()] == FIRST).all()
    assert users.gather_kept() == pytest.approx(exact, abs=1e-6)  # they are of a draw before
    assert users.memberships(matched_laws(users), LAWS) == pytest.approx(exact, abs=1e-6)
    users.remember(np.ones((7, 3)))
    users.keep(matched_laws(users), LAWS)
    assert users.gather_kept() == pytest.approx(1 + exact, abs=1e-6)
    users.forget_kept()
    users.keep(matched_laws(users), LAWS)
    assert users.gather_kept() == pytest.approx(exact, abs=1e-6)
    assert (order[users.gather_labels()] == FIRST).all()


def test_nothing_depends_on_blocks_or_threads(monkeypatch):
    prefs = pm.simulate_clicks(700, 5, [4, 8, 9], 2, rng=1).preferences
    found = []
    for n_blocks, block, n_threads in ((8, 256, 1), (8, 256, 2), (40, 1, 2)):
        monkeypatch.setattr(matched_users, "N_BLOCKS", n_blocks)
        monkeypatch.setattr(matched_users, "BLOCK", block)
        users = users_of(prefs, pm.Threads(n_threads))
        matched = matched_laws(users)
        users.begin_by(matched, LabelDraw(3, 1))
        tallies, *values = users.relabel(matched, LAWS, NONE, LabelDraw(3, 2))
        own = users.weigh_own(ClusterLaws(CENTERS[::-1].copy(), ALPHAS))
        total = users.keep(matched, LAWS)
        counts = np.stack([tally.counts for tally in tallies])
        found.append((counts, *values, own, total, users.gather_labels(), users.gather_kept()))
    for other in found[1:]:
        for one, same in zip(found[0], other, strict=True):
            assert np.array_equal(one, same)


@pytest.mark.kernel
def test_a_label_is_accepted_as_often_as_its_ratio_says():
    n_rows, ratio = 400, math.log(0.3)
    numbers, weights = np.arange(n_rows), np.ones(n_rows, dtype=np.int64)
    rows, accepted = np.arange(n_rows)[::-1].copy(), np.empty(n_rows, dtype=bool)
    judge_labels(Streams(3, 1, numbers, weights), rows, np.full(n_rows, ratio), accepted)
    assert abs(accepted.mean() - 0.3) < 4 * math.sqrt(0.21 / n_rows)
    always = np.empty(n_rows, dtype=bool)
    judge_labels(Streams(3, 1, numbers, weights), rows, np.zeros(n_rows), always)
    assert always.all()
