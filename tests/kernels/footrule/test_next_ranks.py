"""Probabilities to be among the next ranks: by enumeration, and against sums over whole lines."""

import numpy as np
import pytest

import naive
from helpers import interpreted
from pseudomallows.kernels.click_rows import ClickRows
from pseudomallows.kernels.footrule import next_ranks as kernels
from pseudomallows.kernels.footrule.matching import (
    BOTH,
    ITEM,
    N_GAPS,
    RANK,
    matching_factors,
    room_for_sums,
    sum_matchings,
)
from pseudomallows.kernels.footrule.recursions import Laws, make_recursions
from pseudomallows.recommendations.average import batch_means

pytestmark = pytest.mark.kernel


def some_clicks(rng, n_items, n_rows):
    """Rows with any number of clicks, from none to all."""
    rows = [rng.permutation(n_items)[: rng.integers(n_items + 1)] for _ in range(n_rows)]
    starts = np.append(0, np.cumsum([len(row) for row in rows]))
    return rows, ClickRows(starts, np.concatenate([*rows, []]).astype(np.int32))


def next_probabilities(clicks, ranks, rates, window, n_exact=None, run=kernels.next_ranks_of_laws):
    """``probabilities[law, row, item]``; of all items exactly, unless so many are told."""
    used, numbers = np.unique(rates, return_inverse=True)
    n_rows, n_items = len(clicks.starts) - 1, ranks.shape[1]
    ahead = kernels.Ahead(window, n_items if n_exact is None else n_exact)
    sums, ones = np.zeros((len(rates), n_rows, n_items)), np.ones((n_rows, len(rates)))
    laws, batches = Laws(ranks, numbers), np.arange(len(rates))
    run(clicks, laws, ahead, ones, make_recursions(used, n_items), batches, sums)
    return sums


def by_enumeration(clicked, consensus, alpha, window):
    """Probability of each unclicked item to be among the next."""
    law, n_clicks = naive.mallows(consensus, alpha), len(clicked)
    law = {r: p for r, p in law.items() if all(r[i] <= n_clicks for i in clicked)}
    probabilities = np.zeros(len(consensus))
    for ranking, probability in naive.normalise(law).items():
        for item, rank in enumerate(ranking):
            probabilities[item] += probability * (n_clicks < rank <= n_clicks + window)
    return probabilities


@pytest.mark.parametrize("alpha", [0.0, 0.7, 3.0, 20.0, 200.0])
def test_next_probabilities_equal_enumeration(alpha):
    """Whatever is clicked and whatever the window is."""
    for n_items in (1, 2, 5):
        rng = np.random.default_rng(5)
        rows, clicks = some_clicks(rng, n_items, 12)
        ranks = np.array([rng.permutation(n_items) + 1 for _ in range(2)], dtype=np.int32)
        for window in {1, min(3, n_items), n_items}:
            found = next_probabilities(clicks, ranks, np.full(2, alpha / n_items), window)
            wrong = next_probabilities(clicks, ranks, np.full(2, (alpha + 0.5) / n_items), window)
            expected = np.zeros_like(found)
            for law, row in np.ndindex(2, len(rows)):
                mine = rows[row].tolist()
                consensus = tuple(ranks[law].tolist())
                expected[law, row] = by_enumeration(mine, consensus, alpha, window)
                expected[law, row, mine] = 0.0
            assert np.abs(found - expected).max() < 1e-9
            if 1 < window < n_items and alpha < 100:  # the twin: another alpha
                assert np.abs(wrong - expected).max() > 1e-5


def by_whole_lines(mine, ranks, rate, window):
    """The same by sums over matchings: with a given item and rank, and all of them."""
    n_items, n_clicks = len(ranks), len(mine)
    line = np.full(n_items, BOTH)
    line[:n_clicks] -= RANK
    line[ranks[mine] - 1] -= ITEM
    factors, room = matching_factors(rate, n_items), room_for_sums(n_items, n_items + 1)
    everything, probabilities = sum_matchings(line, rate, factors, room), np.zeros(n_items)
    for item in set(range(n_items)) - set(mine.tolist()):
        place = ranks[item] - 1
        for rank in range(n_clicks, min(n_clicks + window, n_items)):
            rest = line.copy()
            rest[place] -= 1
            rest[rank] -= 2
            part = sum_matchings(rest, rate, factors, room) - everything
            probabilities[item] += np.exp(part - rate * abs(place - rank))
    return probabilities


SETTINGS = [(11, 0.0), (14, 0.1), (15, 0.5), (12, 4.0), (9, 1000.0)]


@pytest.mark.parametrize(("n_items", "rate"), SETTINGS)
def test_next_probabilities_are_those_of_whole_lines(n_items, rate):
    """And they add up to the window."""
    rng = np.random.default_rng(1)
    rows, clicks = some_clicks(rng, n_items, 10)
    ranks = (rng.permutation(n_items) + 1).astype(np.int32)[None]
    n_clicks = np.array([len(row) for row in rows])
    for window in (1, 5):
        found = next_probabilities(clicks, ranks, np.array([rate]), window)[0]
        expected = [by_whole_lines(row, ranks[0], rate, window) for row in rows]
        assert np.abs(found - expected).max() < 1e-9
        assert found.sum(axis=1) == pytest.approx(np.minimum(window, n_items - n_clicks))


def test_many_items_and_gaps_without_a_table():
    """All clicks on the last items, more than steps are tabulated for."""
    if not hasattr(kernels.next_ranks_of_laws, "py_func"):
        pytest.skip("slow without compilation")
    n_items, n_clicks = 200, 80
    assert n_clicks > N_GAPS
    mine = np.arange(120, 200, dtype=np.int32)
    clicks, ranks = ClickRows(np.array([0, n_clicks]), mine), np.arange(1, n_items + 1)
    for rate in (0.0, 0.01, 0.3):
        found = next_probabilities(clicks, ranks.astype(np.int32)[None], np.array([rate]), 5)[0, 0]
        assert found == pytest.approx(by_whole_lines(mine, ranks, rate, 5), abs=1e-9)
        assert found.sum() == pytest.approx(5)


@pytest.mark.parametrize(("alpha", "n_clicks"), [(5.0, 3), (10.0, 12), (40.0, 12), (40.0, 40)])
def test_the_first_items_are_exact_and_the_others_close(alpha, n_clicks):
    if not hasattr(kernels.next_ranks_of_laws, "py_func"):
        pytest.skip("slow without compilation")
    n_items, window, n_exact, rng = 200, 10, 20, np.random.default_rng(1)
    rows = [rng.choice(4 * n_clicks, n_clicks, replace=False) for _ in range(50)]
    clicks = ClickRows(n_clicks * np.arange(51), np.concatenate(rows).astype(np.int32))
    ranks, rates = np.arange(1, n_items + 1, dtype=np.int32)[None], np.array([alpha / n_items])
    exact = next_probabilities(clicks, ranks, rates, window)[0]
    found = next_probabilities(clicks, ranks, rates, window, n_exact)[0]
    for row, mine in enumerate(rows):
        unclicked = np.setdiff1d(np.arange(n_items), mine)
        assert (np.diff(exact[row, unclicked]) <= 1e-12).all()  # the best are the first
        first = unclicked[:n_exact]
        assert found[row, first] == pytest.approx(exact[row, first], abs=1e-9)
    assert (np.abs(found - exact) > 1e-9).any()
    assert np.abs(found - exact).max() < 0.01
    assert found.sum(axis=1) == pytest.approx(np.full(50, 10.0), rel=1e-6)


def test_compiled_probabilities_have_the_bits_of_interpreted_ones():
    rng = np.random.default_rng(1)
    _, clicks = some_clicks(rng, 20, 4)
    ranks = np.array([rng.permutation(20) + 1 for _ in range(3)], dtype=np.int32)
    rates, run = np.array([0.2, 0.5, 0.2]), kernels.next_ranks_of_laws
    for n_exact in (20, 2):
        how = (clicks, ranks, rates, 3, n_exact)
        assert np.array_equal(next_probabilities(*how), next_probabilities(*how, interpreted(run)))


def test_batch_means_of_unequal_weights():
    rng = np.random.default_rng(1)
    sums, totals = rng.random((5, 2, 3)), rng.random((5, 2))
    means, errors, worst = batch_means(sums, totals, 2)
    for row, value in np.ndindex(2, 3):
        mean = sums[:, row, value].sum() / totals[:, row].sum()
        parts = (sums[:, row, value] - totals[:, row] * mean) / totals[:, row].sum()
        assert means[row, value] == pytest.approx(mean)
        assert errors[row, value] == pytest.approx(np.sqrt(5 / 4 * (parts**2).sum()))
    best = np.argsort(means, axis=1)[:, 1:]
    assert worst == pytest.approx(np.take_along_axis(errors, best, axis=1).max(axis=1))
