"""Clusters of full rankings: shared out by what changes, and as if selected row by row."""

import numpy as np
import pytest

import naive
import pseudomallows as pm
from helpers import interpreted
from pseudomallows.kernels import costs as kernels
from pseudomallows.kernels import labels as label_kernels
from pseudomallows.latent.bucket_orders import BucketPopulation
from pseudomallows.latent.ranking_population import RankingPopulation
from pseudomallows.latent.registry import make_population

N_ROWS, N_ITEMS, N_CLUSTERS = 40, 6, 3


def example():
    """Full rankings of rows that stand for several users."""
    rankings = pm.simulate_rankings(N_ROWS, N_ITEMS, 2, rng=1).preferences.rankings
    return pm.Preferences.from_rankings(rankings, weights=np.arange(N_ROWS) % 3 + 1)


def random_labels(rng, weights, n_clusters=N_CLUSTERS):
    """``counts[row, cluster]``: each user in a cluster, now and then one that nobody chooses."""
    probabilities = rng.dirichlet(np.ones(n_clusters))
    probabilities[rng.integers(n_clusters)] *= rng.random() < 0.5
    return rng.multinomial(weights, probabilities / probabilities.sum())


def check_part(part, whole, weights):
    """It knows what the same users know whose rows were selected and counted one by one."""
    prefs = example()
    one_by_one = RankingPopulation(prefs).select(weights, whole.row_numbers)
    assert (part.known.counts == one_by_one.known.counts).all()
    assert (part.known.costs == one_by_one.known.costs).all()
    assert part.n_users == one_by_one.n_users == weights.sum()
    assert (part.mean_ranks == one_by_one.mean_ranks).all()
    consensus = np.array([3, 1, 2, 6, 5, 4], dtype=np.int32)
    for alpha in (0.0, 0.7, 12.0):
        expected = one_by_one.log_likelihood(consensus, alpha)
        assert part.log_likelihood(consensus, alpha) == expected
        assert part.log_likelihood_by_alpha(consensus)(alpha) == expected
    assert part.select(part.row_weights, part.row_numbers).n_rows == one_by_one.n_rows


def test_tallies_after_many_moves_are_those_of_counting_anew():
    whole, rng = make_population(example(), pm.Threads(1)), np.random.default_rng(1)
    parts, n_empty = [whole] * N_CLUSTERS, 0
    for _ in range(60):
        counts = random_labels(rng, whole.row_weights)
        shared = whole.share_out(counts, parts)
        n_empty += shared.count(None)
        for part, weights in zip(shared, counts.T, strict=True):
            if part is None:
                assert not weights.any()
            else:
                check_part(part, whole, weights)
        # the users of an empty cluster stay those of long ago, as in a mixture
        parts = [old if new is None else new for new, old in zip(shared, parts, strict=True)]
        order = rng.permutation(N_CLUSTERS)
        parts = [parts[number] for number in order]
    assert n_empty > 5


def test_what_was_shared_out_before_stays_as_it_is():
    whole, rng = make_population(example(), pm.Threads(1)), np.random.default_rng(2)
    first_counts = rng.multinomial(whole.row_weights, [0.4, 0.3, 0.3])
    first = whole.share_out(first_counts, [whole] * N_CLUSTERS)
    whole.share_out(random_labels(rng, whole.row_weights), first)
    for part, weights in zip(first, first_counts.T, strict=True):
        check_part(part, whole, weights)
    check_part(whole, whole, example().weights)


def test_users_of_another_population_are_no_start_for_a_tally():
    whole, others = (make_population(example(), pm.Threads(1)) for _ in range(2))
    weights = np.zeros((N_ROWS, 1), dtype=np.int64)
    weights[5:9, 0] = 1
    for before in (others, RankingPopulation(example())):
        (part,) = whole.share_out(weights, [before])
        check_part(part, whole, weights[:, 0])


def test_users_who_do_not_move_leave_the_tally():
    whole = make_population(example(), pm.Threads(1))
    counts = np.zeros((N_ROWS, 2), dtype=np.int64)
    counts[:, 0] = whole.row_weights
    part, nobody = whole.share_out(counts, [whole, whole])
    assert nobody is None
    assert (part.known.counts == whole.known.counts).all()


def test_full_rankings_have_their_own_population_and_others_do_not():
    prefs = example()
    assert isinstance(make_population(prefs, None), BucketPopulation)
    partial = pm.Preferences.from_rankings(np.where(prefs.rankings <= 4, prefs.rankings, 0))
    assert not isinstance(make_population(partial, None), BucketPopulation)


def test_rows_are_as_likely_as_by_definition_and_by_the_way_of_partial_rankings():
    prefs, consensus = example(), np.array([2, 1, 3, 4, 6, 5], dtype=np.int32)
    found = make_population(prefs, None).row_log_likelihoods(slice(3, 20), consensus, 2.5)
    assert (
        found == RankingPopulation(prefs).row_log_likelihoods(slice(3, 20), consensus, 2.5)
    ).all()
    law = naive.mallows(consensus.tolist(), 2.5)
    exact = [np.log(law[tuple(row)]) for row in prefs.rankings[3:20].tolist()]
    assert found == pytest.approx(exact)


# kernels


@pytest.mark.kernel
def test_recounted_ranks_are_those_counted_anew():
    rng = np.random.default_rng(3)
    rankings = (np.argsort(rng.random((30, 5)), axis=1) + 1).astype(np.int32)
    before, after = rng.integers(0, 4, (2, 30))
    counts, expected = np.zeros((2, 5, 5), dtype=np.int64)
    kernels.count_ranks(rankings, before, counts)
    plain = counts.copy()
    kernels.count_ranks(rankings, after, expected)
    kernels.recount_ranks(rankings, before, after, counts)
    interpreted(kernels.recount_ranks)(rankings, before, after, plain)
    assert (counts == expected).all()
    assert (plain == expected).all()


@pytest.mark.kernel
def test_distances_of_many_users_are_those_by_definition():
    rankings = example().rankings
    other, found = rankings[7], np.empty(N_ROWS, dtype=np.int64)
    expected = [naive.footrule(row, other.tolist()) for row in rankings.tolist()]
    for kernel in (kernels.footrule_distances, interpreted(kernels.footrule_distances)):
        kernel(rankings, other[None], found)
        assert found.tolist() == expected
    assert pm.footrule(rankings, other).tolist() == expected
    assert pm.footrule(rankings.astype(np.int64), other).tolist() == expected


@pytest.mark.kernel
def test_overlaps_and_log_sums_are_those_by_definition():
    rng = np.random.default_rng(4)
    weights, shares = rng.integers(1, 4, 50), rng.dirichlet(np.ones(4))
    one, other = rng.dirichlet(np.ones(4), (2, 50))
    logs = 30 * rng.standard_normal((50, 4)) - 900  # their exponentials alone would be 0
    overlaps, log_sums = np.empty((4, 4)), np.empty(50)
    for way in (lambda kernel: kernel, interpreted):
        way(label_kernels.fill_overlaps)(weights, one, other, overlaps)
        assert overlaps == pytest.approx((weights[:, None] * one).T @ other)
        way(label_kernels.fill_log_sums)(logs, np.log(shares), log_sums)
        assert log_sums == pytest.approx(np.logaddexp.reduce(logs + np.log(shares), axis=1))
