"""Labels of users: one pass leaves exact memberships as they are, by an exact law and by an
additive one that is corrected; the bits are the same however the rows are cut."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

import naive
import pseudomallows as pm
from helpers import IS_COMPILED
from law_cases import ADDITIVE, EXACT, WITH_CLUSTERS, clusters_of, labels_of, relabel
from pseudomallows.laws import law as law_room
from pseudomallows.laws.registry import make_law

pytestmark = pytest.mark.kernel
WEIGHTS = np.array([0.25, 0.4, 0.35])
N_COPIES = 4000 if IS_COMPILED else 600
of_clusters = pytest.mark.parametrize("case", WITH_CLUSTERS, ids=str)


caught = pytest.mark.skipif(not IS_COMPILED, reason="too few users")


def many(case, n_copies=N_COPIES):
    """Each row of the case that says something so many times, as users of their own."""
    rows = np.tile(np.flatnonzero(case.prefs.is_informative), n_copies)
    prefs = dataclasses.replace(case.prefs.take(rows), weights=np.ones(len(rows), dtype=np.int64))
    return make_law(prefs, pm.Threads(1), case.distance)


def clusters_for(case):
    """Clusters so near each other that no membership is rare, and so narrow that an additive law
    is told from the exact one."""
    alphas = (0.15, 0.3, 0.6) if case.distance == "spearman" else (0.5, 1.0, 2.0)
    if case in ADDITIVE:
        alphas = (2.0, 5.0, 8.0) if case.distance == "hamming" else (1.0, 2.0, 3.5)
    return clusters_of(case, alphas)


def ends_of_relabelling(case, start, weights=WEIGHTS, corrected=True):
    """``counts[row, label]`` after one pass; labels begin at memberships by the weights `start`."""
    clusters = clusters_for(case)
    logs = case.logs(clusters)
    exact = np.array([naive.memberships(row.tolist(), start) for row in np.exp(logs)])
    sums, rng = exact.cumsum(axis=1), np.random.default_rng(5)
    uniforms = rng.random((N_COPIES, len(exact), 1))
    labels = (uniforms > sums[None, :, :-1]).sum(axis=2).astype(np.int32)
    new = relabel(many(case), clusters, weights, labels.ravel(), 7, 3, corrected)
    new = new.reshape(N_COPIES, -1)
    return np.stack([(new == label).sum(axis=0) for label in range(3)], axis=1)


def p_values(case, counts):
    """Of the labels of each row, against their exact memberships."""
    likelihoods = np.exp(case.logs(clusters_for(case)))
    exact = np.array([naive.memberships(row.tolist(), WEIGHTS) for row in likelihoods])
    assert (N_COPIES * exact).min() > 5
    return np.array(
        [
            stats.chisquare(mine, N_COPIES * law / law.sum()).pvalue
            for mine, law in zip(counts, exact, strict=True)
        ]
    )


@of_clusters
def test_one_pass_leaves_exact_memberships_as_they_are(case):
    assert p_values(case, ends_of_relabelling(case, WEIGHTS)).min() > 1e-4


@caught
@of_clusters
def test_a_pass_with_other_weights_is_caught(case):
    wrong = np.array([0.35, 0.35, 0.3])
    assert p_values(case, ends_of_relabelling(case, WEIGHTS, wrong)).min() < 1e-6


@caught
@pytest.mark.parametrize("case", ADDITIVE, ids=str)
def test_the_additive_law_alone_is_caught(case):
    found = p_values(case, ends_of_relabelling(case, WEIGHTS, corrected=False))
    assert found.min() < 1e-6


@pytest.mark.parametrize("case", EXACT, ids=str)
def test_labels_by_an_exact_law_forget_where_they_were(case):
    start = np.array([1.0, 1e-9, 1e-9])
    assert p_values(case, ends_of_relabelling(case, start, corrected=False)).min() > 1e-4


@caught
@pytest.mark.parametrize("case", ADDITIVE, ids=str)
def test_corrected_labels_forget_where_they_were_in_some_passes(case):
    law, clusters = many(case, 500), clusters_for(case)
    labels = np.zeros(law.n_rows, dtype=np.int32)
    for number in range(12):
        labels = relabel(law, clusters, WEIGHTS, labels, 7, number, True)
    new = labels.reshape(500, -1)
    counts = np.stack([(new == label).sum(axis=0) for label in range(3)], axis=1)
    exact, _ = law.memberships(clusters, WEIGHTS, True)
    exact = exact[: counts.shape[0]].astype(np.float64)
    for mine, memberships in zip(counts, exact, strict=True):
        expected = 500 * memberships / memberships.sum()
        assert stats.chisquare(mine, expected).pvalue > 1e-4


# The same bits


def cut_in(size):
    def cut_rows(n_rows, scale=1):
        return [slice(first, min(first + size, n_rows)) for first in range(0, n_rows, size)]

    return cut_rows


def passes(case, executor):
    """What each pass over the users finds."""
    rows = np.tile(np.arange(case.prefs.n_users), 20)
    law = make_law(case.prefs.take(rows), executor, case.distance)
    clusters, labels = clusters_of(case), np.tile(labels_of(case), 20)
    law.anchor(clusters, labels)
    tallies = law.tallies(labels, 3)
    found = {"n_blocks": len(law.blocks)}
    found["labels"] = [
        relabel(law, clusters, WEIGHTS, labels, 7, number, corrected).tolist()
        for number in range(3)
        for corrected in (True, False)
    ]
    found["values"] = law.weigh(clusters, labels).tolist()
    found["scores"] = law.scores(clusters, WEIGHTS).tolist()
    for corrected in (True, False):
        memberships, value = law.memberships(clusters, WEIGHTS, corrected)
        found[f"memberships {corrected}"] = memberships.tolist(), value
    found["nearest"] = law.nearest(clusters, WEIGHTS).tolist()
    found["curves"] = [
        tally.curve(consensus)(alpha)
        for tally, consensus in zip(tallies, clusters.consensus, strict=True)
        for alpha in (0.3, 1.0, 5.0)
    ]
    found["best"] = [tally.best(2.0).tolist() for tally in tallies]
    return found


@of_clusters
def test_cuts_into_blocks_and_threads_change_no_bit(case, monkeypatch):
    wanted = passes(case, pm.Threads(1))
    assert wanted.pop("n_blocks") == 1
    for size, n_threads in ((7, 1), (7, 2), (100, 2)):
        monkeypatch.setattr(law_room, "cut_rows", cut_in(size))
        # uncompiled, streams warn in other threads that integers wrap around
        found = passes(case, pm.Threads(n_threads if IS_COMPILED else 1))
        assert found.pop("n_blocks") > 1
        assert found == wanted


@of_clusters
def test_other_seeds_and_numbers_have_other_labels(case):
    law, clusters = many(case, 20), clusters_for(case)
    labels = np.zeros(law.n_rows, dtype=np.int32)
    found = {
        tuple(relabel(law, clusters, WEIGHTS, labels, seed, number, True).tolist())
        for seed in (1, 2)
        for number in (1, 2)
    }
    assert len(found) == 4
    assert not labels.any()  # as they were
