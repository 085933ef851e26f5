"""The exact probability of clicks: by enumeration, and against sums over whole lines."""

import math

import numpy as np
import pytest

import naive
from helpers import interpreted
from pseudomallows.distances import FOOTRULE
from pseudomallows.kernels.click_rows import ClickRows
from pseudomallows.kernels.footrule import recursions as tables
from pseudomallows.kernels.footrule.click_likelihood import own_log_likelihoods
from pseudomallows.kernels.footrule.matching import (
    BOTH,
    ITEM,
    RANK,
    matching_factors,
    room_for_sums,
    sum_matchings,
)

pytestmark = pytest.mark.kernel
IS_COMPILED = hasattr(own_log_likelihoods, "py_func")


def clicks_of(rows):
    """Rows as kernels read them."""
    starts = np.cumsum([0, *map(len, rows)])
    return ClickRows(starts, np.concatenate([*rows, []]).astype(np.int32))


def likelihoods(rows, ranks, alphas, run=own_log_likelihoods):
    """``values[law, row]`` under consensuses of these alphas."""
    ranks, n_items = np.asarray(ranks, np.int32), len(ranks[0])
    laws = tables.Laws(ranks, np.arange(len(ranks)))
    recursions = tables.make_recursions(np.asarray(alphas, float) / n_items, n_items)
    labels, numbers = np.divmod(np.arange(len(ranks) * len(rows)), len(rows))
    values = np.empty(len(labels))
    run(clicks_of(rows), numbers, labels, laws, recursions, values)
    return values.reshape(len(ranks), len(rows))


def both_lines(mine, ranks):
    """What is at each place, of the clicked items with the first ranks, and of the others."""
    clicked, others = np.zeros((2, len(ranks)), dtype=np.int64)
    clicked[: len(mine)] += RANK
    clicked[np.asarray(ranks)[mine] - 1] += ITEM
    others[:] = BOTH - clicked
    return clicked, others


def by_whole_lines(mine, ranks, alpha):
    """The same of one row, by two matchings."""
    n_items, rate = len(ranks), alpha / len(ranks)
    lines = both_lines(np.asarray(mine, np.int32), ranks)
    factors, room = matching_factors(rate, n_items), room_for_sums(n_items, n_items + 1)
    both = sum(sum_matchings(line, rate, factors, room) for line in lines)
    return both - FOOTRULE.log_partition(n_items, alpha)


@pytest.mark.parametrize("n_items", [1, 2, 3, 4, 5, 6, 7])
def test_likelihoods_equal_enumeration(n_items):
    """Whatever is clicked, from nothing to all, at any alpha."""
    rng = np.random.default_rng(n_items)
    rows = [rng.permutation(n_items)[:size] for size in range(n_items + 1) for _ in range(2)]
    ranks = rng.permutation(n_items) + 1
    for alpha in (0.0, 0.7, 5.0, 60.0) if n_items < 7 else (3.0,):
        found = likelihoods(rows, [ranks], [alpha])[0]
        wrong = likelihoods(rows, [ranks], [alpha + 0.5])[0]
        exact = [naive.click_likelihood(row.tolist(), tuple(ranks.tolist()), alpha) for row in rows]
        assert np.exp(found) == pytest.approx(exact, rel=1e-10)
        assert n_items < 2 or alpha > 5 or np.abs(np.exp(wrong) - exact).max() > 1e-4


def odd_rows(n_items, rng):
    """Clicks of many shapes: anywhere, near the top, in a row, at the end, none, all."""
    for n_clicks in (0, 1, 5, 12, n_items // 3, n_items - 1, n_items):
        near = min(n_items, 2 * n_clicks + 3)
        first = int(rng.integers(n_items - n_clicks + 1))
        yield rng.permutation(n_items)[:n_clicks]
        yield rng.permutation(near)[:n_clicks]
        yield np.arange(first, first + n_clicks)
        yield np.arange(n_items - n_clicks, n_items)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 3.0, 10.0, 40.0, 700.0, 10_000.0])
@pytest.mark.parametrize("n_items", [15, 200])
def test_likelihoods_are_those_of_whole_lines(n_items, alpha):
    """Also with more clicks than steps are tabulated for."""
    if not IS_COMPILED and n_items > 15:
        pytest.skip("slow without compilation")
    ranks, rows = np.arange(1, n_items + 1), list(odd_rows(n_items, np.random.default_rng(1)))
    found = likelihoods(rows, [ranks], [alpha])[0]
    expected = [by_whole_lines(row, ranks, alpha) for row in rows]
    assert found == pytest.approx(expected, rel=1e-10, abs=1e-9)


@pytest.mark.parametrize("n_clicks", [3, 500])
def test_flat_laws_of_many_items_lose_no_digits(n_clicks):
    """At alpha 0 every set of so many items has the same probability; tails alone would be 0."""
    if not IS_COMPILED:
        pytest.skip("slow without compilation")
    n_items, rng = 3000, np.random.default_rng(2)
    rows = [rng.permutation(n_items)[:n_clicks], np.arange(n_clicks)]
    found = likelihoods(rows, [np.arange(1, n_items + 1)], [0.0])[0]
    expected = -math.lgamma(n_items + 1) + math.lgamma(n_clicks + 1)
    expected += math.lgamma(n_items - n_clicks + 1)
    assert found == pytest.approx([expected] * 2, rel=1e-10)


def test_tails_that_are_kept_for_some_places_only_give_the_same():
    if not IS_COMPILED:
        pytest.skip("slow without compilation")
    n_items, rng = 300, np.random.default_rng(3)
    rows = [rng.permutation(n_items)[:size] for size in (0, 2, 90, 300)]
    ranks = rng.permutation(n_items) + 1
    whole, strides = likelihoods(rows, [ranks], [3.0]), []
    for n_laws in (1, 200):  # more laws, fewer of their tails
        recursions = tables.make_recursions(np.full(n_laws, 3.0 / n_items), n_items)
        strides.append(recursions.stride)
        found, labels = np.empty(4), np.full(4, n_laws - 1)
        laws = tables.Laws(np.tile(ranks.astype(np.int32), (n_laws, 1)), np.arange(n_laws))
        own_log_likelihoods(clicks_of(rows), np.arange(4), labels, laws, recursions, found)
        assert found == pytest.approx(whole[0], rel=1e-12, abs=1e-12)
    assert strides[0] == 1 < strides[1]


def test_compiled_likelihoods_have_the_bits_of_interpreted_ones():
    rng = np.random.default_rng(4)
    rows = [rng.permutation(20)[:size] for size in (0, 3, 12, 20)]
    ranks = [rng.permutation(20) + 1 for _ in range(3)]
    how = (rows, ranks, [2.0, 9.0, 2.0])
    assert np.array_equal(likelihoods(*how), likelihoods(*how, interpreted(own_log_likelihoods)))
