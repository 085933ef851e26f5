"""The tally of clicks by Cayley's and Hamming's distance."""

import numpy as np
import pytest

import naive
import pseudomallows as pm
from pseudomallows.latent.registry import make_population

NAMES = ("cayley", "hamming")


def tally_of(seed, name, n_items=5, n_users=15, alpha=8.0):
    rng = np.random.default_rng(seed)
    rankings = pm.Mallows(rng.permutation(n_items) + 1, alpha, distance=name).draw(n_users, rng)
    clicks = rankings <= rng.integers(1, n_items, n_users)[:, None]
    return make_population(pm.Preferences.from_clicks(clicks), None, name).known, clicks


@pytest.mark.parametrize("name", NAMES)
def test_clicks_that_go_against_a_consensus_are_counted(name):
    tally, clicks = tally_of(1, name)
    for consensus in naive.all_rankings(5)[::13]:
        sizes = clicks.sum(axis=1)[:, None]
        beyond = (clicks & (np.array(consensus) > sizes)).sum()
        assert tally.distance(np.array(consensus, np.int32)) == beyond
    assert tally.counts(np.arange(1, 6, dtype=np.int32)).sum() == len(clicks)


@pytest.mark.parametrize("name", NAMES)
def test_a_good_consensus_is_the_best_of_all_or_near_it(name):
    gaps = []
    for seed in range(12):
        tally, _ = tally_of(seed, name)

        def height(consensus, tally=tally):
            consensus = np.array(consensus, np.int32)
            return tally.log_likelihood(consensus, tally.best_lam(consensus))

        gaps.append(max(map(height, naive.all_rankings(5))) - height(tally.best()))
        assert not tally.is_proved
    assert sum(gap > 1e-3 for gap in gaps) <= 1
    assert max(gaps) < 1


@pytest.mark.parametrize("name", NAMES)
def test_by_mean_numbers_of_users_the_best_is_as_good(name):
    gaps = []
    for seed in range(24):
        tally, _ = tally_of(seed, name, n_items=12, n_users=60)
        both = tally.best_of(tally.evidence.astype(float)), tally.best()
        means, whole = (tally.log_likelihood(each, tally.best_lam(each)) for each in both)
        gaps.append(whole - means)
    assert sum(gap > 0.05 for gap in gaps) <= 2  # neither is sure to be the best of all


@pytest.mark.parametrize("name", NAMES)
def test_the_best_lam_is_that_of_a_fine_grid(name):
    tally, _ = tally_of(3, name)
    consensus = tally.best()
    grid = np.geomspace(1e-3, 20, 2000)
    heights = [tally.log_likelihood(consensus, lam) for lam in grid.tolist()]
    assert tally.best_lam(consensus) == pytest.approx(grid[np.argmax(heights)], rel=0.02)


def test_the_evidence_of_some_users_stands_at_their_rows():
    clicks = pm.Preferences.from_clicks([[1, 0, 0], [1, 1, 0], [0, 0, 1], [0, 1, 0]])
    everybody = make_population(clicks, None, "cayley")
    assert everybody.known.evidence.tolist() == [1, 1, 1, 1]
    some = everybody.select(np.array([0, 1, 0, 2]), everybody.row_numbers)
    assert some.known.evidence.tolist() == [0, 1, 0, 2]
    fewer = some.select(np.array([0, 1]), some.row_numbers)
    assert fewer.known.evidence.tolist() == [0, 0, 0, 1]
    best = everybody.known.best_of(np.array([0.0, 0.0, 5.0, 0.5]))
    assert best.tolist() == [3, 2, 1]
