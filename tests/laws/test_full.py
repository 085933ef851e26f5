"""Full rankings in clusters: tallies by what changes are those of counting anew."""

import numpy as np
import pytest

import naive
import pseudomallows as pm
from helpers import interpreted
from pseudomallows.distances import DISTANCES
from pseudomallows.kernels import costs as kernels
from pseudomallows.laws.full import FullLaw
from pseudomallows.laws.registry import make_law

N_ROWS, N_ITEMS, N_CLUSTERS = 40, 6, 3


def example():
    """Full rankings of rows that stand for several users."""
    rankings = pm.simulate_rankings(N_ROWS, N_ITEMS, 2, rng=1).preferences.rankings
    return pm.Preferences.from_rankings(rankings, weights=np.arange(N_ROWS) % 3 + 1)


def random_labels(rng):
    """A cluster of each row; now and then one that nobody chooses."""
    probabilities = rng.dirichlet(np.ones(N_CLUSTERS))
    probabilities[rng.integers(N_CLUSTERS)] *= rng.random() < 0.5
    labels = rng.choice(N_CLUSTERS, N_ROWS, p=probabilities / probabilities.sum())
    return labels.astype(np.int32)


@pytest.mark.parametrize("distance", DISTANCES)
def test_tallies_after_many_moves_are_those_of_counting_anew(distance):
    law, rng = make_law(example(), pm.Threads(1), distance), np.random.default_rng(1)
    tallies, n_empty = law.tallies(random_labels(rng), N_CLUSTERS), 0
    consensus = np.array([3, 1, 2, 6, 5, 4], dtype=np.int32)
    for _ in range(40):
        labels = random_labels(rng)
        before = [tally.curve(consensus)(2.0) for tally in tallies]
        moved = law.tallies(labels, N_CLUSTERS, tallies)
        assert [tally.curve(consensus)(2.0) for tally in tallies] == before  # as they were
        for cluster, tally in enumerate(moved):
            rows = np.flatnonzero(labels == cluster)
            assert tally.n_users == law.row_weights[rows].sum()
            n_empty += not len(rows)
            if len(rows):
                (alone,) = law.select(rows).tallies(None, 1)
                assert (tally.known.counts == alone.known.counts).all()
                assert tally.curve(consensus)(0.7) == alone.curve(consensus)(0.7)
        tallies = moved
    assert n_empty > 5


def test_rankings_known_to_be_full_have_the_same_law():
    prefs = example().one_row_each()[0]
    law = make_law(prefs, pm.Threads(1), "kendall")
    same = FullLaw.of_full(prefs.rankings, pm.Threads(1), law.distance)
    consensus = np.array([3, 1, 2, 6, 5, 4], dtype=np.int32)
    values = [each.tallies(None, 1)[0].curve(consensus)(2.0) for each in (law, same)]
    assert values[0] == values[1]
    assert same.n_users == law.n_users


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
    kernels.count_ranks(rankings, after - before, counts)
    interpreted(kernels.count_ranks)(rankings, after - before, plain)
    assert (counts == expected).all()
    assert (plain == expected).all()


@pytest.mark.kernel
def test_distances_of_many_users_are_those_by_definition():
    rankings = example().rankings
    other, found = rankings[7], np.empty(N_ROWS, dtype=np.int64)
    expected = [naive.footrule(row, other.tolist()) for row in rankings.tolist()]
    for kernel in (kernels.power_distances, interpreted(kernels.power_distances)):
        kernel(1, rankings, other[None], found)
        assert found.tolist() == expected
    assert pm.footrule(rankings, other).tolist() == expected
    assert pm.footrule(rankings.astype(np.int64), other).tolist() == expected
