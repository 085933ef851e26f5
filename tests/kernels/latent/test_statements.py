"""Comparisons: what a leap or an exchange changes, and moves that leave the exact law as it is."""

import functools
import itertools
import math

import numba
import numpy as np
import pytest

import naive
from helpers import choose, interpreted, p_value
from pseudomallows import distances
from pseudomallows.data.pairs import pairs_of_entries
from pseudomallows.distances.distance import adds_up
from pseudomallows.kernels.latent import leaps as latent_leaps
from pseudomallows.kernels.latent import statements
from pseudomallows.kernels.latent import swaps as latent_swaps
from pseudomallows.kernels.streams import Streams, start_stream
from pseudomallows.laws.augmented import CODES, list_statements, rows_of
from pseudomallows.laws.error_rates import MODELS

pytestmark = pytest.mark.kernel
N_ITEMS = 4
CONSENSUS = np.array([2, 4, 1, 3], dtype=np.int32)
UNCOMPILED = bool(numba.config.DISABLE_JIT)
# each way of a kernel once, where it takes long
NAMES = ["footrule", "kendall", "cayley", "ulam"] if UNCOMPILED else list(distances.DISTANCES)
ALPHAS = {"spearman": 0.4}  # so that no ranking is rare; of others it is 1.2
VALUES = {"none": [], "bernoulli": [0.2], "logistic": [0.5, 1.0]}
# (better, worse) of each user; the last contradicts himself
SAID = [((0, 1), (1, 3)), ((2, 0),), ((3, 2), (2, 1), (3, 1)), ((0, 1), (1, 2), (2, 0), (0, 1))]
CONSISTENT = SAID[:3]


def pairs_of(said, n_items=N_ITEMS):
    """`Pairs` of the statements of some users."""
    entries = [(row, *pair) for row, pairs in enumerate(said) for pair in pairs]
    rows, better, worse = np.array(entries).T
    nothing = np.zeros(len(rows), dtype=bool)
    names = (np.arange(len(said)), np.arange(n_items))
    return pairs_of_entries(rows, better, worse, nothing, np.ones(len(rows), int), None, *names)


def error_law(model, n_items=N_ITEMS):
    return MODELS[model](n_items).law(np.array(VALUES[model], dtype=float))


def probability_of_error(model, n_items=N_ITEMS):
    """By the definition of the model."""
    values = VALUES[model]
    if model == "none":
        return lambda apart: 0.0
    if model == "bernoulli":
        return lambda apart: values[0]
    return lambda apart: 1 / (1 + math.exp(values[0] + values[1] * (apart - 1) / (n_items - 2)))


def laws(name, model, alpha=None, n_items=N_ITEMS):
    distance = distances.get(name)
    prices = distance.prices(n_items) if adds_up(distance) else np.zeros((1, 1), np.int64)
    rate = (ALPHAS.get(name, 1.2) if alpha is None else alpha) / n_items
    swaps = latent_swaps.SwapLaw(CODES.get(name, latent_swaps.PRICED), prices, rate, False)
    return latent_swaps.OrderLaw(swaps, error_law(model, n_items))


def streams_of(n_rows, seed=5):
    return Streams(seed, 1, np.arange(n_rows), np.ones(n_rows, np.int64))


def log_probability(said, row, ranks, model):
    n_items = len(ranks)
    return math.log(
        naive.probability_of_statements(
            said[row], ranks.tolist(), probability_of_error(model, n_items)
        )
    )


@pytest.mark.parametrize("model", ["bernoulli", "logistic"])
def test_an_exchange_and_a_leap_change_what_is_said_as_by_definition(model):
    rng = np.random.default_rng(1)
    pairs = [tuple(rng.choice(6, 2, replace=False).tolist()) for _ in range(14)]
    said, errors = list_statements(pairs_of([pairs], 6)), error_law(model, 6)
    for one, other in itertools.permutations(range(6), 2):
        ranks = rng.permutation(6).astype(np.int32) + 1
        swapped = ranks.copy()
        swapped[[one, other]] = swapped[[other, one]]
        expected = log_probability([pairs], 0, swapped, model) - log_probability(
            [pairs], 0, ranks, model
        )
        found = statements.log_ratio_of_exchange(said, 0, errors, ranks, one, other)
        assert found == pytest.approx(expected, abs=1e-12)
        here, there = one + 1, other + 1
        holders = np.argsort(ranks)
        leapt = np.array([statements.rank_after(rank, here, there) for rank in ranks])
        expected = log_probability([pairs], 0, leapt, model) - log_probability(
            [pairs], 0, ranks, model
        )
        found = statements.log_ratio_of_leap(said, 0, errors, ranks, holders, here, there)
        assert found == pytest.approx(expected, abs=1e-12)


def test_right_and_wrong_statements_are_counted_by_how_far_apart_the_items_are():
    said = list_statements(pairs_of([[(0, 1), (1, 0), (0, 1), (2, 0)]], 3))
    counts = np.zeros((3, 2), dtype=np.int64)
    statements.count_errors(said, np.array([[1, 2, 3]], np.int32), counts)
    assert counts.tolist() == [[0, 0], [2, 1], [0, 1]]


def test_first_rankings_agree_with_statements_and_else_with_the_consensus():
    latent = np.empty((len(SAID), N_ITEMS), dtype=np.int32)
    statements.first_rankings(list_statements(pairs_of(SAID)), CONSENSUS, latent)
    for pairs, ranks in zip(CONSISTENT, latent, strict=False):
        assert sorted(ranks.tolist()) == [1, 2, 3, 4]
        assert all(ranks[better] < ranks[worse] for better, worse in pairs)
    assert latent[1].tolist() == [2, 4, 1, 3]  # the consensus has it so already


@functools.cache
def latent_law(row, name, model):
    alpha, wrong = ALPHAS.get(name, 1.2), probability_of_error(model)
    return naive.order_law(SAID[row], CONSENSUS.tolist(), alpha, wrong, name)


def ends(row, name, model, alpha=None, n_draws=3300 if UNCOMPILED else 8000):
    """Latent rankings of the exact law, moved by leaps at some alpha."""
    latent = choose(latent_law(row, name, model), n_draws, np.random.default_rng(4))
    latent = latent.astype(np.int32)
    said = rows_of(list_statements(pairs_of(SAID)), np.full(n_draws, row))
    law = laws(name, model, alpha)
    latent_leaps.leap_latent(streams_of(n_draws), said, CONSENSUS, law, 2, latent)
    return latent


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("model", MODELS)
def test_leaps_leave_the_law_of_a_latent_ranking_as_it_is(name, model):
    for row in (0, 2) if model == "none" else (1, 3):
        assert p_value(ends(row, name, model), latent_law(row, name, model)) > 1e-4


@pytest.mark.skipif(UNCOMPILED, reason="the test above has run the same lines")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("model", MODELS)
def test_leaps_at_another_alpha_do_not(name, model):
    moved = ends(1, name, model, 4 * ALPHAS.get(name, 1.2))
    assert p_value(moved, latent_law(1, name, model)) < 1e-6


@pytest.mark.parametrize("model", ["bernoulli", "logistic"])
def test_leaps_that_do_not_believe_in_errors_are_caught(model):
    """A chain that takes every statement for right, on users who may be wrong."""
    exact = latent_law(0, "footrule", model)
    latent = choose(exact, 5000, np.random.default_rng(4)).astype(np.int32)
    said = rows_of(list_statements(pairs_of(SAID)), np.zeros(5000, int))
    law = laws("footrule", "bernoulli")
    law = law._replace(errors=law.errors._replace(wrong=law.errors.wrong - 1.0))
    latent_leaps.leap_latent(streams_of(5000), said, CONSENSUS, law, 2, latent)
    assert p_value(latent, exact) < 1e-6


@functools.cache
def joint_law(name, model):
    """{(consensus, latent rankings of the first two users): probability}, alpha given."""
    law = {}
    alpha, wrong = ALPHAS.get(name, 1.2), probability_of_error(model)
    for consensus in naive.all_rankings(N_ITEMS):
        around = naive.mallows(consensus, alpha, name)
        laws_of_users = []
        for row in (0, 2):
            probabilities = {
                r: p * naive.probability_of_statements(SAID[row], r, wrong)
                for r, p in around.items()
            }
            laws_of_users.append({r: p for r, p in probabilities.items() if p > 0})
        for (first, p), (second, q) in itertools.product(*(law.items() for law in laws_of_users)):
            law[consensus, first, second] = p * q
    return naive.normalise(law)


def summary(consensus, latent, name):
    """The rank of an item in the consensus, and how far both rankings are from it."""
    return (consensus[0], *(naive.DISTANCES[name](ranking, consensus) for ranking in latent))


@functools.cache
def summary_law(name, model):
    sums = {}
    for (consensus, *latent), probability in joint_law(name, model).items():
        key = summary(consensus, latent, name)
        sums[key] = sums.get(key, 0) + probability
    return naive.normalise(
        {key: probability for key, probability in sums.items() if probability > 2e-3}
    )


def summaries_after_a_move(name, model, is_forgetful, n_starts=4000):
    """From the exact law of consensus and latent rankings, both moved together."""
    keys, probabilities = zip(*joint_law(name, model).items(), strict=True)
    rng, stream, found = np.random.default_rng(13), np.empty(1, np.uint64), []
    said = rows_of(list_statements(pairs_of(SAID)), np.array([0, 2]))
    nothing, law = np.zeros((2, N_ITEMS), np.int32), laws(name, model)
    for number, key in enumerate(rng.choice(len(keys), n_starts, p=probabilities)):
        consensus, *latent = (np.array(ranks, np.int32) for ranks in keys[key])
        latent = np.array(latent)
        kept = latent.copy()
        start_stream(5, number, 1, stream)
        latent_swaps.swap_together(stream, nothing, said, law, 3, latent, consensus)
        shown = kept if is_forgetful else latent
        found.append(summary(consensus.tolist(), shown.tolist(), name))
    return [each for each in found if each in summary_law(name, model)]


@pytest.mark.parametrize(
    ("name", "model"),
    [("footrule", "none"), ("kendall", "bernoulli"), ("cayley", "logistic"), ("ulam", "none")],
)
def test_consensus_and_latent_rankings_moved_together_keep_their_law(name, model):
    found = summaries_after_a_move(name, model, is_forgetful=False)
    assert p_value(found, summary_law(name, model)) > 1e-4


@pytest.mark.parametrize(("name", "model"), [("footrule", "logistic"), ("kendall", "bernoulli")])
def test_a_move_that_forgets_the_latent_rankings_is_caught(name, model):
    found = summaries_after_a_move(name, model, is_forgetful=True)
    assert p_value(found, summary_law(name, model)) < 1e-6


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("model", MODELS)
def test_compiled_and_interpreted_moves_of_comparers_are_equal(name, model):
    said = list_statements(pairs_of(CONSISTENT if model == "none" else SAID))
    start = np.empty((len(said.starts), N_ITEMS), np.int32)
    statements.first_rankings(said, CONSENSUS, start)
    law, nothing, both = laws(name, model), np.zeros_like(start), []
    for leap, together in (
        (latent_leaps.leap_latent, latent_swaps.swap_together),
        (interpreted(latent_leaps.leap_latent), interpreted(latent_swaps.swap_together)),
    ):
        latent, consensus, stream = start.copy(), CONSENSUS.copy(), np.empty(1, np.uint64)
        leap(streams_of(len(start), 3), said, CONSENSUS, law, 3, latent)
        start_stream(4, 1, 2, stream)
        together(stream, nothing, said, law, 10, latent, consensus)
        both.append((latent, consensus))
    for one, other in zip(*both, strict=True):
        assert np.array_equal(one, other)
    assert not np.array_equal(both[0][0], start)
