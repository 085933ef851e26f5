"""What the tests of every tally share: its users by definition, and moves by enumeration."""

import numpy as np
import pytest

import naive
from helpers import IS_COMPILED, choose, p_value
from pseudomallows.distances.tallies import Proposals
from pseudomallows.kernels.streams import start_stream

RANKINGS = np.array([[1, 2, 3, 4], [2, 1, 3, 4], [1, 3, 2, 4], [4, 3, 1, 2]], dtype=np.int32)
WEIGHTS = np.array([3, 1, 0, 2])


def random_rankings(n_users, n_items, seed):
    rng = np.random.default_rng(seed)
    return np.array([rng.permutation(n_items) + 1 for _ in range(n_users)], dtype=np.int32)


class TallyChecks:
    """The tests; a subclass says of which `distance`."""

    distance = None
    move_alphas = (1.0, 1.7)

    def tally(self, rankings=RANKINGS, weights=WEIGHTS):
        tally = self.distance.tally(rankings.shape[1])
        tally.add(rankings, weights)
        return tally

    def exact(self, consensus, rankings=RANKINGS, weights=WEIGHTS):
        between = naive.DISTANCES[self.distance.name]
        pairs = zip(rankings.tolist(), weights.tolist(), strict=True)
        return sum(weight * between(ranking, consensus) for ranking, weight in pairs)

    def same(self, one, other):
        ways = [np.array(ranking, dtype=np.int32) for ranking in naive.all_rankings(one.n_items)]
        return [one.distance(r) for r in ways] == [other.distance(r) for r in ways]

    def test_the_distance_follows_the_definition(self):
        tally = self.tally()
        for consensus in naive.all_rankings(4):
            found = tally.distance(np.array(consensus, dtype=np.int32))
            assert found == self.exact(consensus)

    def test_rank_sums_are_those_of_the_users(self):
        assert (self.tally().rank_sums() == WEIGHTS @ (RANKINGS - 1)).all()

    def test_users_added_later_count(self):
        tally = self.tally(RANKINGS[:2], WEIGHTS[:2])
        tally.distance(RANKINGS[0])
        tally.add(RANKINGS[2:], WEIGHTS[2:])
        assert self.same(tally, self.tally())

    def test_a_tally_recounted_is_that_of_counting_anew(self):
        after = np.array([0, 4, 1, 2])
        tally = self.tally()
        assert self.same(tally.recounted(RANKINGS, WEIGHTS, after), self.tally(weights=after))
        assert self.same(tally, self.tally())  # as it was

    @pytest.mark.parametrize("n_items", [2, 4, 5])
    def test_the_best_consensus_is_that_of_enumeration(self, n_items):
        for seed in range(4):
            rankings = random_rankings(5, n_items, seed)
            weights = np.arange(1, 6)
            tally = self.tally(rankings, weights)
            least = min(self.exact(r, rankings, weights) for r in naive.all_rankings(n_items))
            assert tally.distance(tally.best()) == least
            assert tally.is_proved

    def ends_of_moves(self, move, alpha):
        """Start from the posterior at the right alpha, move: p-value of where it ends."""
        right = self.move_alphas[0]
        weights = {r: np.exp(-right / 4 * self.exact(r)) for r in naive.all_rankings(4)}
        law = naive.normalise(weights)
        ends = choose(law, 20_000 if IS_COMPILED else 4000, np.random.default_rng(1)).astype(
            np.int32
        )
        tally, stream = self.tally(), np.empty(1, dtype=np.uint64)
        for number, consensus in enumerate(ends):
            start_stream(7, number, 0, stream)
            tally.move(stream, alpha / 4, Proposals(4, move, leap=2), consensus)
        return p_value(ends, law)

    @pytest.mark.parametrize("move", ["swap", "leap_and_shift"])
    def test_moves_leave_the_exact_posterior_as_it_is(self, move):
        right, wrong = self.move_alphas
        assert self.ends_of_moves(move, right) > 1e-4
        assert not IS_COMPILED or self.ends_of_moves(move, wrong) < 1e-6

    @pytest.mark.parametrize("move", ["swap", "leap_and_shift"])
    def test_a_long_run_reaches_every_ranking(self, move):
        assert self.seen_by_moves(move) == set(naive.all_rankings(4))

    def seen_by_moves(self, move):
        """Rankings that a long run has come to."""
        tally, stream = self.tally(), np.array([5], dtype=np.uint64)
        consensus, seen = RANKINGS[0].copy(), set()
        for _ in range(2000):
            tally.move(stream, 0.2, Proposals(1, move, leap=1), consensus)
            seen.add(tuple(consensus.tolist()))
        return seen
