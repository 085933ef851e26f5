"""A user who changes clusters with the places of their items, against all rankings of a few."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import naive
from helpers import interpreted
from pseudomallows.kernels.click_rows import ClickRows
from pseudomallows.kernels.kendall import moves_of_users as kernels
from pseudomallows.kernels.kendall.clicks import mix_and_deal
from pseudomallows.kernels.kendall.moves_of_users import Side
from pseudomallows.kernels.streams import CHAIN, start_stream

pytestmark = pytest.mark.kernel

ITEMS = np.array([2, 0], dtype=np.int32)  # that the user clicked
LAMS, LOG_ODDS = (0.4, 0.7), 0.3  # of cluster 1, besides what the consensuses say


def log_weight(others, label, *consensuses):
    """Of one state, up to a constant: `others[cluster]` are the clicks of all other users."""
    total = LOG_ODDS * label
    for cluster, consensus in enumerate(consensuses):
        clicks = np.array(others[cluster])
        clicks[ITEMS] += cluster == label
        total -= LAMS[cluster] * float(clicks @ np.array(consensus))
    return total


def law_of(others):
    """The law of (label, consensus of cluster 0, consensus of cluster 1)."""
    rankings = naive.all_rankings(len(others[0]))
    states = itertools.product((0, 1), rankings, rankings)
    return naive.normalise({state: math.exp(log_weight(others, *state)) for state in states})


def moved(others, state, number, factor=1.0, extra=0.0, move_user=kernels.move_user):
    """A state after one try of the user to go to the other cluster."""
    label, *consensuses = state
    sides = []
    for cluster, consensus in enumerate(consensuses):
        clicks = np.array(others[cluster])
        clicks[ITEMS] += cluster == label
        sides.append(Side(factor * LAMS[cluster], clicks, np.array(consensus, dtype=np.int32)))
    before = np.sum([side.counts for side in sides], axis=0)
    stream, room = np.empty(1, dtype=np.uint64), np.empty(len(others[0]), dtype=np.int32)
    start_stream(5, number, CHAIN, stream)
    odds = (LOG_ODDS + extra) * (1 - 2 * label)
    moves = move_user(stream, ITEMS, odds, sides[label], sides[1 - label], room)
    assert (np.sum([side.counts for side in sides], axis=0) == before).all()
    label = 1 - label if moves else label
    assert (sides[label].counts[ITEMS] == np.array(others[label])[ITEMS] + 1).all()
    return (label, *(tuple(side.ranks.tolist()) for side in sides))


def p_value_after_one_move(others, part, n_draws=6_000, **how):
    """Starts are from the exact law, so the ends must be; the `part` of the states is compared."""
    law, rng = law_of(others), np.random.default_rng(3)
    states = list(law)
    wanted, found = {}, {}
    for state, probability in law.items():
        wanted[part(state)] = wanted.get(part(state), 0.0) + n_draws * probability
    for number, start in enumerate(rng.choice(len(states), n_draws, p=list(law.values()))):
        end = part(moved(others, states[start], number, **how))
        found[end] = found.get(end, 0) + 1
    few = [key for key, value in wanted.items() if value < 5]
    rest = [sum(each.get(key, 0) for key in few) for each in (found, wanted)]
    pairs = [(found.get(key, 0), value) for key, value in wanted.items() if value >= 5]
    pairs += [tuple(rest)] if rest[1] >= 5 else []
    one, other = np.transpose(pairs)
    return stats.chisquare(one, other * one.sum() / other.sum()).pvalue


THREE = [(0, 1, 0), (1, 0, 1)]
EQUAL = [(0, 0, 0), (1, 1, 1)]
MANY = [(0, 1, 9), (8, 0, 0)]  # of which some stay where they are


@pytest.mark.parametrize("others", [THREE, EQUAL, MANY])
def test_a_move_leaves_the_exact_law_as_it_is(others):
    assert p_value_after_one_move(others, lambda state: state) > 1e-4


@pytest.mark.parametrize("cluster", [0, 1])
def test_a_move_among_four_items_leaves_the_law_as_it_is(cluster):
    others = [(0, 0, 0, 1), (1, 0, 0, 0)]
    p_value = p_value_after_one_move(others, lambda state: (state[0], state[1 + cluster]))
    assert p_value > 1e-4


@pytest.mark.parametrize("how", [{"factor": 1.3}, {"extra": 0.2}])
def test_a_move_by_slightly_wrong_laws_does_not(how):
    assert p_value_after_one_move(EQUAL, lambda state: state, **how) < 1e-8


def test_places_alone_would_not_do():
    """A user who leaves their items where they are in the cluster that they leave is found out."""

    def keeps_places(stream, items, log_odds, origin, target, room):
        old = origin.ranks.copy()
        moves = kernels.move_user(stream, items, log_odds, origin, target, room)
        origin.ranks[:] = old
        return moves

    p_value = p_value_after_one_move(THREE, lambda state: state, move_user=keeps_places)
    assert p_value < 1e-8


def test_compiled_and_interpreted_moves_are_the_same():
    starts = list(law_of(THREE))[::7]
    for number, state in enumerate(starts):
        again = moved(THREE, state, number, move_user=interpreted(kernels.move_user))
        assert moved(THREE, state, number) == again


def catalogue(n_items=3000, n_rare=12):
    """Two clusters at their posteriors, and a user of cluster 0 who alone clicked `n_rare` items,
    and with many others the first item of cluster 1."""
    items = np.array([0, *range(n_items - n_rare, n_items)], dtype=np.int32)
    rng, sides = np.random.default_rng(1), []
    stream = np.empty(1, dtype=np.uint64)
    for cluster in range(2):
        counts = rng.poisson(2000 / np.arange(2, n_items + 2))
        counts[items], counts[0] = 0, 600 * cluster
        counts[items] += cluster == 0
        ranks = np.empty(n_items, dtype=np.int32)
        ranks[np.argsort(-counts, kind="stable")] = np.arange(1, n_items + 1)
        start_stream(2, cluster, CHAIN, stream)
        mix_and_deal(stream, counts, 12 / n_items, 30, ranks)
        sides.append(Side(12 / n_items, counts, ranks))
    return items, sides


def test_a_user_leaves_a_cluster_that_their_own_clicks_hold_them_in():
    items, (origin, target) = catalogue()
    held = target.lam * target.ranks[items].sum() - origin.lam * origin.ranks[items].sum()
    assert held > 20  # log odds against leaving, given the consensuses
    total, room = origin.counts + target.counts, np.empty(len(origin.ranks), dtype=np.int32)
    stream = np.empty(1, dtype=np.uint64)
    start_stream(1, 1, CHAIN, stream)
    assert kernels.move_user(stream, items, 0.0, origin, target, room)
    assert not kernels.move_user(stream, items, 0.0, target, origin, room)
    assert (origin.counts + target.counts == total).all()
    assert (target.counts[items[1:]] == 1).all()
    for side in (origin, target):
        assert (np.sort(side.ranks) == np.arange(1, len(side.ranks) + 1)).all()


def test_what_changes_in_the_own_cluster_is_added_there():
    clicks = ClickRows(np.array([0, 2, 3]), np.array([0, 2, 1], dtype=np.int32))
    changes, logs = np.array([[1.0, 2.0], [4.0, 8.0], [16.0, 32.0]]), np.zeros((2, 2))
    kernels.add_own(clicks, np.array([1, 0], dtype=np.int32), changes, logs)
    assert logs.tolist() == [[0.0, 34.0], [4.0, 0.0]]
