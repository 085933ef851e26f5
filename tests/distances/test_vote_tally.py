"""The tally of votes, and strengths."""

import itertools
import math

import numpy as np
import pytest
from scipy import optimize, special

import naive
from pseudomallows.distances.strengths import chi_square, fit_strengths
from pseudomallows.distances.vote_tally import VoteTally, pair_probabilities
from tally_checks import RANKINGS, WEIGHTS


def simulate(n_items, n_votes, seed, probabilities):
    """``wins[i, j]`` of votes on random pairs."""
    rng = np.random.default_rng(seed)
    one, other = np.triu_indices(n_items, 1)
    asked = rng.multinomial(n_votes, np.full(len(one), 1 / len(one)))
    won = rng.binomial(asked, probabilities[one, other])
    wins = np.zeros((n_items, n_items), dtype=np.int64)
    wins[one, other], wins[other, one] = won, asked - won
    return wins


@pytest.mark.parametrize("n_items", [2, 4, 5])
def test_the_best_consensus_is_that_of_enumeration(n_items):
    for seed in range(5):
        truth = np.random.default_rng(seed).permutation(n_items) + 1
        tally = VoteTally(2 * simulate(n_items, 60, seed, pair_probabilities(truth, 0.6)))
        ways = [np.array(r, dtype=np.int32) for r in naive.all_rankings(n_items)]
        most = max(tally.log_likelihood(way, tally.best_rate(way)) for way in ways)
        best = tally.best()
        assert math.isclose(tally.log_likelihood(best, tally.best_rate(best)), most, abs_tol=1e-6)
        assert (tally.best_of(tally.evidence.astype(float)) == best).all()


def test_the_best_alpha_is_where_the_likelihood_is_largest():
    tally = VoteTally(2 * simulate(5, 400, 1, pair_probabilities(np.arange(1, 6), 0.5)))
    consensus = np.arange(1, 6, dtype=np.int32)
    rate = tally.best_rate(consensus)
    values = [tally.log_likelihood(consensus, rate * factor) for factor in (0.98, 1.0, 1.02)]
    assert values[1] == max(values)
    assert 0.3 < rate < 0.7


def test_votes_of_rankings_are_their_pairs():
    tally = VoteTally(np.zeros((4, 4), dtype=np.int64))
    tally.add(RANKINGS, WEIGHTS)
    for i, j in itertools.product(range(4), repeat=2):
        assert tally.counts[i, j] == 2 * WEIGHTS[RANKINGS[:, i] < RANKINGS[:, j]].sum()
    again = tally.recounted(RANKINGS, WEIGHTS, WEIGHTS + 1)
    assert again.counts.sum() == tally.counts.sum() + 2 * 4 * 6
    assert tally.distance(RANKINGS[0]) == tally.counts[np.tril_indices(4, -1)].sum()
    assert (tally.rank_sums() == tally.counts.sum(axis=0)).all()


def test_strengths_have_the_largest_posterior():
    wins = simulate(5, 80, 3, special.expit(np.subtract.outer(np.arange(5), np.arange(5)) / -2))
    wins[0] = 0  # an item that never wins has a finite strength

    def depth(strengths):
        probabilities = special.log_expit(strengths[:, None] - strengths[None, :])
        return -(wins * probabilities).sum() + (strengths**2).sum() / 8

    found = fit_strengths(wins.astype(float))
    best = optimize.minimize(depth, np.zeros(5), tol=1e-10)
    assert np.abs(found.strengths - best.x).max() < 1e-4
    covariance = found.root @ found.root.T / found.dispersion
    assert np.abs(covariance @ _bend(wins, found.strengths) - np.eye(5)).max() < 1e-8


def _bend(wins, strengths):
    bend = np.eye(5) / 4
    for i, j in itertools.combinations(range(5), 2):
        probability = special.expit(strengths[i] - strengths[j])
        step = np.zeros(5)
        step[i], step[j] = 1, -1
        bend += (wins[i, j] + wins[j, i]) * probability * (1 - probability) * np.outer(step, step)
    return bend


def test_draws_by_strengths_have_the_probabilities_of_a_normal_law():
    found = fit_strengths(np.array([[0, 30.0, 20], [22, 0, 12], [20, 10, 0]]))
    rng = np.random.default_rng(5)
    draws = np.array([found.draw(rng) for _ in range(4000)])
    covariance = found.root @ found.root.T
    spread = math.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    exact = special.ndtr((found.strengths[0] - found.strengths[1]) / spread)
    share = (draws[:, 0] < draws[:, 1]).mean()
    assert abs(share - exact) < 4 * math.sqrt(exact * (1 - exact) / 4000)
    assert abs(share - exact - 0.05) > 4 * math.sqrt(exact * (1 - exact) / 4000)


def test_pairs_that_scatter_more_than_votes_widen_the_law():
    rng, n_items = np.random.default_rng(6), 12
    strengths = rng.normal(size=n_items)
    lucky = np.triu(rng.normal(0, 0.4, (n_items, n_items)), 1)
    differences = np.subtract.outer(strengths, strengths)
    plain = simulate(n_items, 60_000, 7, special.expit(differences))
    scattered = simulate(n_items, 60_000, 7, special.expit(differences + lucky - lucky.T))
    assert fit_strengths(plain.astype(float)).dispersion < 1.5
    assert fit_strengths(scattered.astype(float)).dispersion > 5


def test_chi_square_skips_pairs_that_hardly_anybody_compared():
    wins, probabilities = np.array([[0, 3.0, 2], [1, 0, 0], [1, 0, 0]]), np.full((3, 3), 0.5)
    assert chi_square(wins, probabilities) == (1.0, 1)
