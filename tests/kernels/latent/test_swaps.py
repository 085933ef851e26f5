"""Exchanges of items whose order is not known: they leave the law of a latent ranking as it is."""

import numpy as np
import pytest

import naive
from helpers import IS_COMPILED, choose, interpreted, p_value
from pseudomallows import distances
from pseudomallows.distances.distance import adds_up
from pseudomallows.kernels.latent import swaps as kernels
from pseudomallows.kernels.streams import Streams, start_stream
from pseudomallows.laws.augmented import CODES, TWO_SIDED, list_statements
from pseudomallows.laws.error_rates import NoErrors

pytestmark = pytest.mark.kernel
CONSENSUS = np.array([2, 5, 1, 3, 4], dtype=np.int32)
ALPHAS = {"spearman": 0.3}  # so that no ranking is rare; of others it is 1.5
NAMES = [name for name in distances.DISTANCES if hasattr(naive, name)]


def law_of_swaps(name, alpha):
    distance = distances.get(name)
    if adds_up(distance):
        return kernels.SwapLaw(kernels.PRICED, distance.prices(5), alpha / 5, name in TWO_SIDED)
    return kernels.SwapLaw(CODES[name], np.zeros((1, 1), np.int64), alpha / 5, name in TWO_SIDED)


def exact_law(row, alpha, name):
    weights = {
        full: naive.weight(full, CONSENSUS.tolist(), alpha, name)
        for full in naive.completions(list(row))
    }
    return naive.normalise(weights)


def ends(row, name, alpha, start_alpha, n_draws=8000 if IS_COMPILED else 2000):
    """Latent rankings drawn at one alpha, and moved at another."""
    rng = np.random.default_rng(4)
    latent = choose(exact_law(row, start_alpha, name), n_draws, rng).astype(np.int32)
    rows = np.repeat(np.array([row], np.int32), n_draws, axis=0)
    streams = Streams(5, 1, np.arange(n_draws), np.ones(n_draws, np.int64))
    kernels.swap_latent(streams, rows, CONSENSUS, law_of_swaps(name, alpha), 2, latent)
    return latent


@pytest.mark.parametrize("row", [(0, 2, 0, 0, 0), (1, 1, 3, 3, 3), (3, 0, 0, 0, 1)], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_exchanges_leave_the_law_of_a_latent_ranking_as_it_is(name, row):
    alpha = ALPHAS.get(name, 1.5)
    assert p_value(ends(row, name, alpha, alpha), exact_law(row, alpha, name)) > 1e-4


@pytest.mark.skipif(not IS_COMPILED, reason="the test above has run the same lines")
@pytest.mark.parametrize("name", NAMES)
def test_exchanges_at_another_alpha_do_not(name):
    row, alpha = (0, 2, 0, 0, 0), ALPHAS.get(name, 1.5)
    assert p_value(ends(row, name, 4 * alpha, alpha), exact_law(row, alpha, name)) < 1e-6


@pytest.mark.parametrize("name", NAMES)
def test_the_change_of_an_exchange_is_that_of_the_distance(name):
    distance, rng, identity = distances.get(name), np.random.default_rng(1), np.arange(1, 8)
    law = kernels.SwapLaw(CODES.get(name, kernels.PRICED), np.zeros((1, 1), np.int64), 1.0, False)
    if adds_up(distance):
        law = law._replace(prices=distance.prices(7))
    if name == "ulam":
        return  # it looks at the whole ranking: see the tests above
    for _ in range(50):
        seats, (one, other) = rng.permutation(7), rng.choice(7, 2, replace=False)
        swapped = seats.copy()
        swapped[[one, other]] = swapped[[other, one]]
        before, after = (int(distance.between(x + 1, identity)) for x in (seats, swapped))
        assert kernels.change_by_swap(law, seats, one, other) == after - before


@pytest.mark.parametrize("name", NAMES)
def test_compiled_and_interpreted_exchanges_are_equal(name):
    rows = np.array([[0, 2, 0, 0, 0], [1, 1, 3, 3, 5], [1, 2, 3, 4, 5]], np.int32)
    start = np.array([[1, 2, 3, 4, 5], [2, 1, 3, 4, 5], [1, 2, 3, 4, 5]], np.int32)
    streams = Streams(3, 2, np.arange(3), np.ones(3, np.int64))
    both = []
    for kernel in (kernels.swap_latent, interpreted(kernels.swap_latent)):
        latent = start.copy()
        kernel(streams, rows, CONSENSUS, law_of_swaps(name, 1.0), 3, latent)
        both.append(latent)
    assert np.array_equal(*both)
    assert np.array_equal(both[0][2], start[2])
    assert (np.sort(both[0], axis=1) == np.arange(1, 6)).all()
    assert both[0][0, 1] == 2
    assert set(both[0][1, :2]) == {1, 2}


@pytest.mark.parametrize("name", NAMES)
def test_compiled_and_interpreted_moves_of_consensus_and_latent_rankings_are_equal(name):
    rows = np.array([[0, 2, 0, 0, 0], [1, 1, 3, 3, 5], [1, 2, 3, 4, 5], [0, 0, 1, 0, 2]], np.int32)
    start = np.array([[1, 2, 3, 4, 5], [2, 1, 3, 4, 5], [1, 2, 3, 4, 5], [3, 4, 1, 5, 2]], np.int32)
    both, moved = [], []
    for kernel in (kernels.swap_together, interpreted(kernels.swap_together)):
        latent, consensus, stream = start.copy(), CONSENSUS.copy(), np.empty(1, np.uint64)
        start_stream(4, 1, 2, stream)
        laws = kernels.OrderLaw(law_of_swaps(name, 1.0), NoErrors(5).law(np.empty(0)))
        kernel(stream, rows, list_statements(None), laws, 40, latent, consensus)
        both.append(latent)
        moved.append(consensus)
    assert np.array_equal(*both)
    assert np.array_equal(*moved)
    assert not np.array_equal(moved[0], CONSENSUS)
    for row, ranks in zip(rows.tolist(), both[0].tolist(), strict=True):
        assert tuple(ranks) in set(naive.completions(row))
