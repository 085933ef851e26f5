"""Tallies of lists, for Cayley's and Ulam's distances, against their definitions."""

import numpy as np
import pytest

import naive
from helpers import IS_COMPILED
from pseudomallows.distances.cayley import CAYLEY
from pseudomallows.distances.tallies import Proposals
from pseudomallows.distances.ulam import ULAM
from tally_checks import RANKINGS, WEIGHTS, TallyChecks, random_rankings

pytestmark = pytest.mark.kernel


class TestCayleyTally(TallyChecks):
    distance = CAYLEY
    move_alphas = (1.0, 2.0)


class TestUlamTally(TallyChecks):
    distance = ULAM
    move_alphas = (1.0, 2.0)

    def test_insertions_leave_the_exact_posterior_as_it_is(self):
        right, wrong = self.move_alphas
        assert self.ends_of_moves("insert", right) > 1e-4
        assert not IS_COMPILED or self.ends_of_moves("insert", wrong) < 1e-6

    def test_insertions_reach_every_ranking(self):
        assert self.seen_by_moves("insert") == set(naive.all_rankings(4))


@pytest.mark.parametrize(
    ("distance", "move"), [(CAYLEY, "swap"), (ULAM, "insert")], ids=lambda x: getattr(x, "name", x)
)
def test_the_usual_move_is_that_of_the_distance(distance, move):
    tally, ends = distance.tally(4), []
    tally.add(RANKINGS, WEIGHTS)
    for moves in ((), (move,)):
        stream, consensus = np.array([3], dtype=np.uint64), RANKINGS[0].copy()
        tally.move(stream, 0.1, Proposals(20, *moves), consensus)
        ends.append((consensus.tolist(), int(stream[0])))
    assert ends[0] == ends[1]


def test_exchanges_by_cycles_and_by_whole_rankings_agree():
    """Of 12 items, where neither is enumerated: mean distances of two long chains."""
    rankings, counts = random_rankings(5, 12, seed=4), np.array([2, 1, 1, 3, 1])
    tally = CAYLEY.tally(12)
    tally.add(rankings, counts)
    means, errors = [], []
    for seed, move in enumerate(("swap", "leap_and_shift")):
        stream, consensus = np.array([seed], dtype=np.uint64), rankings[0].copy()
        away = []
        for _ in range(4000 if IS_COMPILED else 100):
            tally.move(stream, 0.3, Proposals(36, move, leap=11), consensus)
            away.append(tally.distance(consensus))
        batches = np.reshape(away, (20, -1)).mean(axis=1)
        means.append(batches.mean())
        errors.append(batches.std() / np.sqrt(20))
    assert abs(means[0] - means[1]) < 4.5 * np.hypot(*errors)


def test_rankings_are_kept_once_in_any_order():
    one, other = CAYLEY.tally(4), CAYLEY.tally(4)
    one.add(np.repeat(RANKINGS, 2, axis=0), np.repeat(WEIGHTS, 2))
    for row in (3, 0, 1):
        other.add(RANKINGS[row : row + 1], 2 * WEIGHTS[row : row + 1])
    assert (one.rankings == other.rankings).all()
    assert (one.counts == other.counts).all()
    assert len(one.rankings) == 3


def test_rankings_that_are_not_full_are_skipped():
    tally = ULAM.tally(3)
    tally.add(np.array([[0, 2, 1], [1, 2, 3]], dtype=np.int32), np.array([5, 1]))
    assert tally.counts.tolist() == [1]


@pytest.mark.parametrize("distance", [CAYLEY, ULAM], ids=lambda distance: distance.name)
def test_more_items_have_a_good_consensus_that_is_not_proved(distance):
    truth = random_rankings(1, 9, seed=1)[0]
    draws = distance.draw(9, 15.0, 60, seed=3)[:, truth - 1]
    tally = distance.tally(9)
    tally.add(draws, np.ones(60, dtype=np.int64))
    assert not tally.is_proved
    assert tally.distance(tally.best()) <= tally.distance(truth)


def test_a_search_goes_down_from_the_rankings_of_the_users():
    """Three users, each with two items of the truth exchanged: nobody has the best."""
    truth = np.arange(1, 10, dtype=np.int32)
    users = np.tile(truth, (3, 1))
    for user, (i, j) in enumerate([(0, 4), (1, 5), (2, 6)]):
        users[user, [i, j]] = users[user, [j, i]]
    tally = CAYLEY.tally(9)
    tally.add(users, np.ones(3, dtype=np.int64))
    assert tally.distance(tally.best()) == 3
