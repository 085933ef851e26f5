"""Votes under Kendall's law: probabilities of pairs, changes of the likelihood, moves: by
definition."""

import functools
import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

import naive
from helpers import IS_COMPILED, choose, interpreted, p_value
from pseudomallows.distances.tallies import Proposals
from pseudomallows.distances.vote_tally import VoteTally, log_probabilities, pair_probabilities
from pseudomallows.kernels.kendall import vote_moves as kernels
from pseudomallows.kernels.streams import start_stream

pytestmark = pytest.mark.kernel

WINS = np.array([[0, 3, 2, 1], [1, 0, 2, 2], [0, 1, 0, 2], [1, 0, 1, 0]])
TIES = np.array([[0, 1, 0, 0], [1, 0, 0, 3], [0, 0, 0, 0], [0, 3, 0, 0]])


def random_wins(n_items, seed):
    wins = np.random.default_rng(seed).integers(0, 6, (n_items, n_items))
    np.fill_diagonal(wins, 0)
    return wins


@functools.cache
def probability(i, j, consensus, alpha):
    return naive.pair_likelihood([(i, j)], consensus, alpha, "kendall")


def log_likelihood(wins, ties, consensus, alpha):
    """By sums over all rankings; a tie is half a vote for each."""
    n_items = len(wins)
    return math.fsum(
        (wins[i, j] + ties[i, j] / 2) * math.log(probability(i, j, tuple(consensus), alpha))
        for i, j in itertools.permutations(range(n_items), 2)
        if wins[i, j] or ties[i, j]
    )


@pytest.mark.parametrize("n_items", [2, 4, 5, 6])
@pytest.mark.parametrize("alpha", [0.0, 0.3, 2.0, 15.0])
def test_probabilities_of_pairs_are_sums_over_all_rankings(n_items, alpha):
    table = np.exp(log_probabilities(n_items, alpha / n_items))
    center = tuple(range(1, n_items + 1))
    for i, j in itertools.permutations(range(n_items), 2):
        assert math.isclose(
            table[n_items - 1 + j - i], probability(i, j, center, alpha), rel_tol=1e-12
        )


def test_a_probability_of_the_wrong_difference_is_caught():
    table = np.exp(log_probabilities(5, 0.4))
    assert not math.isclose(table[4 + 2], probability(0, 3, (1, 2, 3, 4, 5), 2.0), rel_tol=1e-3)


@pytest.mark.parametrize("rate", [1e-300, 1e-90, 1e-12, 1e-6, 1e-3, 0.1, 1.0, 10.0, 1000.0])
def test_probabilities_are_right_for_any_alpha(rate):
    """Against decimals of hundreds of digits."""
    n_items = 40 if IS_COMPILED else 12
    found = log_probabilities(n_items, rate)
    with localcontext() as context:
        context.prec = 700
        ratio = (-Decimal(rate)).exp()
        powers = [ratio**power for power in range(n_items + 1)]
        for d in range(1, n_items):
            lost = d * powers[d] / (1 - powers[d]) - (d + 1) * powers[d + 1] / (1 - powers[d + 1])
            if rate >= 10:  # beyond the digits: the same without a difference
                total = sum(1 - power for power in powers[1 : d + 1])
                lost = powers[d] * (1 - ratio) * total / (1 - powers[d]) / (1 - powers[d + 1])
            middle = n_items - 1
            assert math.isclose(found[middle - d], float(lost.ln()), rel_tol=1e-12)
            assert math.isclose(found[middle + d], float((1 - lost).ln()), rel_tol=1e-12)


def test_votes_by_gap_count_every_vote_once():
    by_gap = VoteTally.of(WINS, TIES).votes_by_gap(np.array([3, 1, 4, 2], dtype=np.int32))
    places = np.array([2, 0, 3, 1])
    for gap in range(-3, 4):
        pairs = [(i, j) for i in range(4) for j in range(4) if places[j] - places[i] == gap]
        assert by_gap[3 + gap] == sum(2 * WINS[i, j] + TIES[i, j] for i, j in pairs)


@pytest.mark.parametrize("n_items", [4, 5])
def test_the_likelihood_is_that_of_all_rankings(n_items):
    wins, ties = random_wins(n_items, 1), np.triu(random_wins(n_items, 2))
    tally = VoteTally.of(wins, ties + ties.T)
    for consensus in naive.all_rankings(n_items)[::7]:
        found = tally.log_likelihood(np.array(consensus, dtype=np.int32), 3.0 / n_items)
        exact = log_likelihood(wins, ties + ties.T, consensus, 3.0)
        assert math.isclose(found, exact, rel_tol=1e-11)
        assert not math.isclose(found, log_likelihood(wins, ties, consensus, 3.0), rel_tol=1e-3)


def moved(ordering, here, there):
    items = ordering.tolist()
    items.insert(there, items.pop(here))
    return np.argsort(items).astype(np.int32) + 1


@pytest.mark.parametrize("n_items", [2, 3, 6])
def test_changes_of_the_likelihood_are_differences(n_items):
    tally, rate = VoteTally(random_wins(n_items, 3)), 0.7
    table = log_probabilities(n_items, rate)
    ordering = np.random.default_rng(4).permutation(n_items)
    consensus = np.argsort(ordering).astype(np.int32) + 1
    before = tally.log_likelihood(consensus, rate)
    for low, high in itertools.combinations(range(n_items), 2):
        exchanged = ordering.copy()
        exchanged[[low, high]] = exchanged[[high, low]]
        after = tally.log_likelihood(np.argsort(exchanged).astype(np.int32) + 1, rate)
        votes = (tally.votes, table, ordering, low, high)
        assert math.isclose(0.5 * kernels.exchange_change(*votes), after - before, abs_tol=1e-10)
    for here, there in itertools.permutations(range(n_items), 2):
        after = tally.log_likelihood(moved(ordering, here, there), rate)
        votes = (tally.votes, table, ordering, here, there)
        assert math.isclose(0.5 * kernels.leap_change(*votes), after - before, abs_tol=1e-10)


def ends_of_moves(move, rate):
    """Start from the posterior at rate = 0.3, move: p-value of where it ends."""
    tally = VoteTally.of(WINS, TIES)
    weights = {r: math.exp(log_likelihood(WINS, TIES, r, 1.2)) for r in naive.all_rankings(4)}
    law = naive.normalise(weights)
    n_draws = 20_000 if IS_COMPILED else 4000
    ends, stream = choose(law, n_draws, np.random.default_rng(1)), np.empty(1, dtype=np.uint64)
    ends = ends.astype(np.int32)
    for number, consensus in enumerate(ends):
        start_stream(7, number, 0, stream)
        tally.move(stream, rate, Proposals(4, move, leap=2), consensus)
    return p_value(ends, law)


@pytest.mark.parametrize("move", ["swap", "leap_and_shift"])
def test_moves_leave_the_exact_posterior_as_it_is(move):
    assert ends_of_moves(move, 0.3) > 1e-4
    assert not IS_COMPILED or ends_of_moves(move, 0.5) < 1e-6


@pytest.mark.parametrize("move", ["swap", "leap_and_shift"])
def test_a_long_run_reaches_every_ranking(move):
    tally, stream = VoteTally.of(WINS, TIES), np.array([5], dtype=np.uint64)
    consensus, seen = np.array([4, 3, 2, 1], dtype=np.int32), set()
    for _ in range(2000):
        tally.move(stream, 0.1, Proposals(1, move, leap=1), consensus)
        seen.add(tuple(consensus.tolist()))
    assert seen == set(naive.all_rankings(4))


def test_compiled_moves_are_those_of_plain_python():
    tally, ends = VoteTally(random_wins(6, 8)), []
    for run in (kernels.move_by_votes, interpreted(kernels.move_by_votes)):
        for move in (0, 1):
            consensus, stream = np.arange(1, 7, dtype=np.int32), np.array([9], dtype=np.uint64)
            n_accepted = run(stream, tally.votes, 0.2, move, 2, 50, consensus)
            ends.append((move, n_accepted, consensus.tolist()))
    assert ends[:2] == ends[2:]
    assert ends[0][1] > 0


def test_leaps_end_where_none_helps():
    for seed in range(5):
        tally = VoteTally(random_wins(6, seed))
        consensus = np.random.default_rng(seed).permutation(6).astype(np.int32) + 1
        before = tally.log_likelihood(consensus, 0.4)
        kernels.improve_by_leaps(tally.votes, 0.4, 6, consensus)
        here = tally.log_likelihood(consensus, 0.4)
        assert here >= before
        ordering = np.argsort(consensus)
        for pair in itertools.permutations(range(6), 2):
            assert tally.log_likelihood(moved(ordering, *pair), 0.4) <= here + 1e-9


def test_leaps_that_may_go_one_place_only_still_improve():
    tally = VoteTally(random_wins(5, 3))
    consensus = np.array([5, 4, 3, 2, 1], dtype=np.int32)
    before = tally.log_likelihood(consensus, 0.4)
    assert kernels.improve_by_leaps(tally.votes, 0.4, 1, consensus) > 0
    assert tally.log_likelihood(consensus, 0.4) > before


def test_probabilities_of_a_consensus_are_by_its_places():
    probabilities = pair_probabilities(np.array([3, 1, 2]), 0.5)
    for i, j in itertools.permutations(range(3), 2):
        assert math.isclose(probabilities[i, j], probability(i, j, (3, 1, 2), 1.5), rel_tol=1e-12)
    assert (np.diag(probabilities) == 0.5).all()
