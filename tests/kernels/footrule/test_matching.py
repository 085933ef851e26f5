import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from helpers import interpreted, p_value
from pseudomallows.kernels.footrule import matching

pytestmark = pytest.mark.kernel


def log_sum(places, rate, n_rows, of=matching.sum_matchings, n_gaps=5):
    places = np.array(places)
    sums = matching.room_for_sums(len(places), n_rows)
    return of(places, rate, matching.matching_factors(rate, len(places), n_gaps), sums)


def all_distances(places):
    """{ranks by place, 0 where no item stands: distance}."""
    items = [p for p, place in enumerate(places) if place & 1]
    ranks = [p + 1 for p, place in enumerate(places) if place >> 1]
    distances = {}
    for chosen in itertools.permutations(ranks):
        row = [0] * len(places)
        for item, rank in zip(items, chosen, strict=True):
            row[item] = rank
        pairs = zip(items, chosen, strict=True)
        distances[tuple(row)] = sum(abs(rank - item - 1) for item, rank in pairs)
    return distances


def exact_law(places, rate):
    """{ranks by place: probability}."""
    return naive.normalise({k: math.exp(-rate * d) for k, d in all_distances(places).items()})


@st.composite
def lines(draw):
    """Up to 7 places with as many items as ranks."""
    n_places = draw(st.integers(1, 7))
    n_pairs = draw(st.integers(0, min(n_places, 5)))
    places = np.zeros(n_places, dtype=int)
    for bit in (1, 2):
        places[draw(st.permutations(range(n_places)))[:n_pairs]] += bit
    return places.tolist()


@given(lines(), st.sampled_from([0.0, 0.1, 0.7, 3.0, 40.0, 2000.0]), st.booleans())
def test_the_sum_is_that_over_all_matchings(places, rate, rolling):
    distances = list(all_distances(places).values())
    least = min(distances)
    exact = -rate * least + math.log(math.fsum(math.exp(rate * (least - d)) for d in distances))
    n_rows = 2 if rolling else len(places) + 1
    for n_gaps in (0, 1, 5):  # with steps from the table, and without
        found = log_sum(places, rate, n_rows, n_gaps=n_gaps)
        assert found == pytest.approx(exact, abs=1e-9)


def long_lines(n_places, rng):
    """Whole, clicks, holes, items and ranks by turns, items far from their ranks, anything."""
    clicked = rng.permutation(n_places)[: n_places // 4]
    clicks = np.where(np.arange(n_places) < len(clicked), 2, 0)
    clicks[clicked] += 1
    yield np.full(n_places, 3)
    yield clicks
    yield 3 - clicks
    yield np.resize([3, 0, 3], n_places)
    yield np.resize([1, 2], n_places)
    yield np.repeat([1, 3, 2], n_places // 3)
    yield 2 * rng.permutation(n_places) // n_places + 2 * (
        2 * rng.permutation(n_places) // n_places
    )


@pytest.mark.parametrize("alpha", [1.0, 8.0, 40.0, 1000.0])
def test_states_that_are_left_out_do_not_count(alpha):
    n_places = 90
    factors = matching.matching_factors(alpha / n_places, n_places)
    most, sums = factors.most, matching.room_for_sums(n_places, 2)

    def total(places, largest):
        fewer = factors._replace(most=largest)
        return matching.sum_matchings(places, alpha / n_places, fewer, sums)

    assert most < n_places // 2
    for places in long_lines(n_places, np.random.default_rng(1)):
        assert total(places, most) == pytest.approx(total(places, n_places // 2), abs=1e-11)
    whole = np.full(n_places, 3)
    if most > 2:  # a twin: with a third of the states something is missing
        assert total(whole, most // 3) < total(whole, most) - 1e-9


def draws(places, rate, n_draws, draw_matching=matching.draw_matching):
    places = np.array(places)
    n_places = len(places)
    sums = matching.room_for_sums(n_places, n_places + 1)
    factors = matching.matching_factors(rate, n_places)
    matching.sum_matchings(places, rate, factors, sums)
    waiting = np.empty((2, n_places), dtype=np.int64)
    out, stream = np.zeros((n_draws, n_places), dtype=np.int64), np.array([7], dtype=np.uint64)
    for row in out:
        draw_matching(stream, places, factors.roots, sums, waiting, row)
    return out


LINES = [
    [3, 3, 3, 3],  # a whole ranking
    [1, 1, 2, 2, 3],  # items before their ranks
    [2, 3, 0, 1, 2, 1],  # ranks first, a hole, both signs of the gap
    [1, 2, 2, 1, 3, 0, 3],
]


@pytest.mark.parametrize("places", LINES)
def test_draws_follow_the_exact_law(places):
    assert p_value(draws(places, 0.3, 10_000), exact_law(places, 0.3)) > 1e-4


@pytest.mark.parametrize("places", LINES)
def test_a_slightly_wrong_decay_is_caught(places):
    assert p_value(draws(places, 0.42, 10_000), exact_law(places, 0.3)) < 1e-6


@pytest.mark.parametrize("places", LINES)
def test_compiled_and_interpreted_draws_are_equal(places):
    plain = draws(places, 0.3, 50, interpreted(matching.draw_matching))
    assert (draws(places, 0.3, 50) == plain).all()
    assert log_sum(places, 0.3, 2) == log_sum(places, 0.3, 2, interpreted(matching.sum_matchings))


def test_many_places_neither_overflow_nor_underflow():
    rng = np.random.default_rng(1)
    places = np.zeros(400, dtype=int)
    for bit in (1, 2):
        places[rng.permutation(400)[:250]] += bit
    sums = [log_sum(places, rate, 2) for rate in (0.0, 1e-3, 0.1, 5.0, 1e4)]
    assert sums[0] == pytest.approx(math.lgamma(251), rel=1e-12)
    assert np.isfinite(sums).all()
    assert (np.diff(sums) < 0).all()
