"""Every law against enumeration: likelihoods, memberships, tallies, moves; with twins that fail."""

import math

import numpy as np
import pytest

import naive
import pseudomallows as pm
from helpers import IS_COMPILED, choose, p_value
from law_cases import (
    ADDITIVE,
    CASES,
    EXACT,
    VOTE_CASE,
    WITH_CLUSTERS,
    clusters_of,
    labels_of,
    one_cluster,
)
from pseudomallows.distances.tallies import Proposals
from pseudomallows.kernels.streams import start_stream
from pseudomallows.laws.law import UNITS, Clusters, exact_sum, exact_sums
from pseudomallows.laws.registry import make_law

pytestmark = pytest.mark.kernel
WEIGHTS = np.array([0.2, 0.5, 0.3])
of_all = pytest.mark.parametrize("case", CASES, ids=str)
of_clusters = pytest.mark.parametrize("case", WITH_CLUSTERS, ids=str)
of_exact = pytest.mark.parametrize("case", EXACT, ids=str)


# Likelihoods


@of_all
@pytest.mark.parametrize("alpha", [0.0, 1.3, 30.0])
def test_each_row_is_as_likely_as_by_enumeration(case, alpha):
    law = case.law()
    assert law.n_rows == len(case.rows)
    assert law.n_users == case.weights.sum()
    (consensus,) = clusters_of(case, (alpha,)).consensus
    found = law.scores(one_cluster(consensus, alpha), np.ones(1))
    assert found == pytest.approx(case.logs(one_cluster(consensus, alpha))[:, 0], abs=1e-9)


@of_all
def test_a_slightly_wrong_alpha_or_consensus_is_caught(case):
    law, clusters = case.law(), clusters_of(case, (2.5,))
    exact = case.logs(clusters)[:, 0]
    near = law.scores(clusters._replace(alpha=clusters.alpha * (1 + 1e-6)), np.ones(1))
    assert near != pytest.approx(exact, abs=1e-9)
    other = law.scores(clusters._replace(consensus=clusters.consensus[:, ::-1].copy()), np.ones(1))
    assert other != pytest.approx(exact, abs=1e-3)


@of_all
def test_scores_sum_the_labels_out(case):
    clusters = clusters_of(case)
    exact = np.log(np.exp(case.logs(clusters)) @ WEIGHTS)
    assert case.law().scores(clusters, WEIGHTS) == pytest.approx(exact, abs=1e-9)
    assert case.law().scores(clusters, WEIGHTS[::-1]) != pytest.approx(exact, abs=1e-3)


@of_all
def test_the_value_of_each_cluster_is_the_sum_over_its_users(case):
    clusters, labels = clusters_of(case), labels_of(case)
    logs = case.weights * case.logs(clusters)[np.arange(len(labels)), labels]
    exact = np.bincount(labels, logs, 3)
    assert case.law().weigh(clusters, labels) == pytest.approx(exact, abs=1e-7)
    others = np.roll(labels, 1)
    assert case.law().weigh(clusters, others) != pytest.approx(exact, abs=1e-3)


@of_all
def test_memberships_are_those_of_enumeration(case):
    clusters, law = clusters_of(case), case.law()
    likelihoods = np.exp(case.logs(clusters))
    exact = np.array([naive.memberships(row.tolist(), WEIGHTS) for row in likelihoods])
    found, value = law.memberships(clusters, WEIGHTS, corrected=True)
    # float32; and clusters that are far behind by the additive law are not looked at
    error = 2e-6 if law.is_exact else 1e-4
    assert found == pytest.approx(exact, abs=error)
    total = float(case.weights @ np.log(likelihoods @ WEIGHTS))
    assert value == pytest.approx(total, abs=law.n_users * error)
    other, _ = law.memberships(clusters, WEIGHTS[::-1], corrected=True)
    assert other != pytest.approx(exact, abs=1e-2)


@of_all
def test_the_nearest_cluster_is_the_one_of_the_largest_membership(case):
    law, clusters = case.law(), clusters_of(case)
    additive, _ = law.memberships(clusters, WEIGHTS, corrected=False)
    assert (law.nearest(clusters, WEIGHTS) == additive.argmax(axis=1)).all()


@of_exact
def test_where_the_tallies_are_exact_no_correction_changes_anything(case):
    law, clusters = case.law(), clusters_of(case)
    assert law.is_exact
    one, other = (law.memberships(clusters, WEIGHTS, corrected) for corrected in (False, True))
    assert one[0] == pytest.approx(other[0], abs=1e-6)
    assert one[1] == pytest.approx(other[1], abs=1e-6)


@pytest.mark.parametrize("case", ADDITIVE, ids=str)
def test_additive_memberships_are_near_the_exact_ones_but_not_the_same(case):
    law, clusters = case.law(), clusters_of(case, (0.7, 1.5, 3.0))
    assert not law.is_exact
    one, other = (law.memberships(clusters, WEIGHTS, corrected)[0] for corrected in (False, True))
    assert one == pytest.approx(other, abs=0.3)
    assert one != pytest.approx(other, abs=1e-3)


def test_a_cluster_without_weight_has_no_members():
    case = WITH_CLUSTERS[0]
    found, value = case.law().memberships(clusters_of(case), np.array([0.4, 0.0, 0.6]), True)
    assert (found[:, 1] == 0).all()
    assert math.isfinite(value)


# Tallies


@of_exact
@pytest.mark.parametrize("alpha", [0.0, 1e-3, 1.3, 40.0])
def test_the_curve_of_a_tally_is_the_log_likelihood_of_its_users(case, alpha):
    law, clusters, labels = case.law(), clusters_of(case, (alpha,) * 3), labels_of(case)
    tallies, exact = law.tallies(labels, 3), law.weigh(clusters, labels)
    found = [t.curve(c)(alpha) for t, c in zip(tallies, clusters.consensus, strict=True)]
    assert found == pytest.approx(exact, abs=1e-7)
    others = law.tallies(np.roll(labels, 1), 3)
    wrong = [t.curve(c)(alpha) for t, c in zip(others, clusters.consensus, strict=True)]
    assert wrong != pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize("alpha", [0.0, 1.3, 40.0])
def test_the_curve_of_votes_is_their_log_likelihood(alpha):
    law, clusters = VOTE_CASE.law(), clusters_of(VOTE_CASE, (alpha,))
    (tally,) = law.tallies(None, 1)
    exact = VOTE_CASE.weights @ VOTE_CASE.logs(clusters)[:, 0]
    assert tally.curve(clusters.consensus[0])(alpha) == pytest.approx(exact, abs=1e-9)
    assert tally.n_users == VOTE_CASE.weights.sum()


@pytest.mark.parametrize("case", ADDITIVE, ids=str)
@pytest.mark.parametrize("alpha", [0.0, 1.3, 40.0, 90.0])
def test_the_curve_of_an_additive_tally_is_the_sum_of_its_rows(case, alpha):
    law, clusters, labels = case.law(), clusters_of(case, (alpha,) * 3), labels_of(case)
    tables = law.tables(clusters)
    rows = np.concatenate([block.log_likelihoods(tables) for block in law.blocks])
    sums = np.bincount(labels, case.weights * rows[np.arange(len(labels)), labels], 3)
    tallies = law.tallies(labels, 3)
    found = [t.curve(c)(alpha) for t, c in zip(tallies, clusters.consensus, strict=True)]
    assert found == pytest.approx(sums, abs=1e-8)
    costs = [
        t.costs(alpha)[np.arange(case.n_items), c - 1].sum()
        for t, c in zip(tallies, clusters.consensus, strict=True)
    ]
    assert -np.array(costs) == pytest.approx(sums, abs=1e-8)


@of_clusters
def test_tallies_of_the_labels_add_up_to_that_of_all(case):
    law, labels, alpha = case.law(), labels_of(case), 1.7
    (whole,) = law.tallies(None, 1)
    tallies = law.tallies(labels, 3)
    assert [tally.n_users for tally in tallies] == np.bincount(labels, case.weights).tolist()
    assert law.cluster_sizes(labels, 3).tolist() == [tally.n_users for tally in tallies]
    assert whole.n_users == law.n_users == law.cluster_sizes(None, 1)[0]
    for consensus in clusters_of(case).consensus:
        parts = [tally.curve(consensus)(alpha) for tally in tallies]
        assert sum(parts) == pytest.approx(whole.curve(consensus)(alpha), abs=1e-8)
        assert sum(parts[1:]) != pytest.approx(whole.curve(consensus)(alpha), abs=1e-3)
    evidence = [tally.evidence(alpha) for tally in tallies]
    assert evidence[0].shape == law.evidence_shape
    assert sum(evidence) == pytest.approx(whole.evidence(alpha), abs=1e-8)


@of_clusters
def test_tallies_from_those_before_are_those_of_counting_anew(case):
    law, rng = case.law(), np.random.default_rng(2)
    before = law.tallies(labels_of(case), 3)
    consensus = clusters_of(case).consensus[0]
    for _ in range(20):
        labels = rng.choice(3, len(case.rows), p=[0.6, 0.4, 0.0]).astype(np.int32)
        labels = (labels + rng.integers(3)).astype(np.int32) % 3  # one cluster is empty
        before, anew = law.tallies(labels, 3, before), law.tallies(labels, 3)
        for one, other in zip(before, anew, strict=True):
            assert one.n_users == other.n_users
            assert one.curve(consensus)(2.0) == other.curve(consensus)(2.0)
            if one.n_users:
                assert (one.best(2.0) == other.best(2.0)).all()


@of_clusters
def test_a_cluster_without_users_has_a_likelihood_of_one(case):
    law = case.law()
    labels = np.zeros(len(case.rows), dtype=np.int32)
    empty = law.tallies(labels, 2)[1]
    assert empty.n_users == 0
    for alpha in (0.0, 2.0, 60.0):
        assert empty.curve(clusters_of(case).consensus[0])(alpha) == 0.0
    assert law.weigh(clusters_of(case, (1.0, 2.0)), labels)[1] == 0.0


@of_all
def test_weights_of_rows_count_as_users(case):
    law = case.law()
    rows = np.repeat(np.arange(case.prefs.n_users), case.prefs.weights)
    each = case.prefs.take(rows)
    each = pm.data.preferences.replace(each, weights=np.ones(len(rows), dtype=np.int64))
    repeated = make_law(each, pm.Threads(1), case.distance, gaps="equal")
    clusters = clusters_of(case)
    assert repeated.n_users == law.n_users
    assert (repeated.mean_ranks == pytest.approx(law.mean_ranks)) or case is VOTE_CASE
    labels = labels_of(case)
    of_each = np.repeat(labels, case.weights)
    assert repeated.weigh(clusters, of_each).tolist() == law.weigh(clusters, labels).tolist()
    if case is not VOTE_CASE:
        one, other = law.tallies(labels, 3), repeated.tallies(of_each, 3)
        for tally, same in zip(one, other, strict=True):
            assert tally.curve(clusters.consensus[0])(2.0) == same.curve(clusters.consensus[0])(2.0)
    values = law.memberships(clusters, WEIGHTS, True)[1]
    assert repeated.memberships(clusters, WEIGHTS, True)[1] == values
    unweighted = pm.data.preferences.replace(
        case.prefs, weights=np.ones(case.prefs.n_users, dtype=np.int64)
    )
    other = make_law(unweighted, pm.Threads(1), case.distance, gaps="equal")
    assert other.weigh(clusters, labels).tolist() != law.weigh(clusters, labels).tolist()


@of_clusters
@pytest.mark.parametrize("alpha", [1.0, 12.0])
def test_the_best_consensus_is_that_of_enumeration(case, alpha):
    (tally,) = case.law().tallies(None, 1)
    ways = np.array(naive.all_rankings(case.n_items), dtype=np.int32)
    highest = max(tally.curve(consensus)(alpha) for consensus in ways)
    assert tally.curve(tally.best(alpha))(alpha) == pytest.approx(highest, abs=1e-9)


@of_clusters
def test_the_best_of_the_mean_evidence_is_the_best_of_one_tally(case):
    law = case.law()
    (tally,) = law.tallies(None, 1)
    draws = np.array([tally.best(3.0)] * 3)
    best = law.best_of(np.asarray(tally.evidence(3.0), dtype=np.float64), draws)
    curve = tally.curve(best)(3.0)
    assert curve == pytest.approx(tally.curve(tally.best(3.0))(3.0), abs=1e-9)


# Moves


def ends_of_moves(case, times=1.0, beta=0.3, n_starts=8000):
    """p-value of consensuses that begin at the tally's posterior, its likelihood to the power 0.3
    so that no ranking is rare, after moves at so many times its alpha."""
    law, right = case.law(), 0.5 if case.distance == "spearman" else 1.5
    (tally,) = law.tallies(None, 1)
    ways = naive.all_rankings(case.n_items)
    logs = [tally.curve(np.array(r, dtype=np.int32))(right) for r in ways]
    logs = 0.3 * (np.array(logs) - max(logs))
    exact = naive.normalise(dict(zip(ways, np.exp(logs).tolist(), strict=True)))
    ends = choose(exact, n_starts, np.random.default_rng(1)).astype(np.int32)
    stream = np.empty(1, dtype=np.uint64)
    for number, consensus in enumerate(ends):
        start_stream(7, number, 0, stream)
        tally.move(stream, times * right, Proposals(2 * case.n_items), consensus, beta)
    cells = {}  # by the ranks of two items
    for ranks, probability in exact.items():
        cells[ranks[:2]] = cells.get(ranks[:2], 0.0) + probability
    return p_value(ends[:, :2], cells)


@pytest.mark.skipif(not IS_COMPILED, reason="too many moves")
@of_all
def test_moves_leave_the_tempered_posterior_as_it_is(case):
    assert ends_of_moves(case) > 1e-4


@pytest.mark.skipif(not IS_COMPILED, reason="too many moves")
@of_all
def test_moves_at_another_power_or_alpha_are_caught(case):
    assert ends_of_moves(case, beta=1.2) < 1e-6
    assert ends_of_moves(case, times=4.0) < 1e-6


# Sums


def test_sums_have_the_same_bits_however_they_are_cut():
    rng = np.random.default_rng(1)
    values, weights = -np.exp(rng.normal(0, 4, 500)), rng.integers(1, 1000, 500)
    labels = rng.integers(0, 3, 500).astype(np.int32)
    whole, each = exact_sum(values, weights), exact_sums(values, weights, labels, 3)
    assert whole == sum(each)
    for cuts in ([250], [1, 2, 499], [77, 300]):
        parts = [np.split(array, cuts) for array in (values, weights, labels)]
        assert sum(exact_sum(v, w) for v, w, _ in zip(*parts, strict=True)) == whole
        sums = [exact_sums(v, w, which, 3) for v, w, which in zip(*parts, strict=True)]
        assert [sum(column) for column in zip(*sums, strict=True)] == each
    assert whole / UNITS == pytest.approx(math.fsum(values * weights), rel=1e-12)


def test_sums_do_not_overflow():
    values, weights = np.full(10, -np.inf), np.full(10, 10**8)
    assert exact_sum(values, weights) / UNITS == -(2.0**27) * 1e9
    assert exact_sum(-values, weights) / UNITS == 2.0**27 * 1e9  # an additive law may have such
    assert exact_sums(values, weights, np.zeros(10, np.int32), 2)[1] == 0


def test_clusters_know_their_number():
    assert Clusters(np.ones((3, 2), dtype=np.int32), np.ones(3)).n_clusters == 3
