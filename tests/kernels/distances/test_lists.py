"""Tallies of lists, for Cayley's and Ulam's distances, against their definitions."""

import numpy as np
import pytest

from pseudomallows.distances.cayley import CAYLEY
from pseudomallows.distances.ulam import ULAM
from tally_checks import RANKINGS, WEIGHTS, TallyChecks, random_rankings

pytestmark = pytest.mark.kernel


class TestCayleyTally(TallyChecks):
    distance = CAYLEY
    move_alphas = (1.0, 2.0)


class TestUlamTally(TallyChecks):
    distance = ULAM
    move_alphas = (1.0, 2.0)


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
