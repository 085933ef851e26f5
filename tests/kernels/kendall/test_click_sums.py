"""Clicks under Kendall's distance, against all rankings of a few items."""

import math

import numpy as np
import pytest
from scipy import stats

import naive
import pseudomallows as pm
from pseudomallows.distances.kendall import log_binomials
from pseudomallows.kernels.click_rows import ClickRows
from pseudomallows.kernels.kendall import click_sums as kernels
from pseudomallows.kernels.streams import CHAIN, Streams, start_stream
from pseudomallows.laws.kendall_clicks import KendallClicks

pytestmark = pytest.mark.kernel

CONSENSUS = (2, 4, 1, 3)
COUNTS = np.array([3, 0, 2, 3])


def rows_of(*rows):
    starts = np.cumsum([0, *map(len, rows)])
    return ClickRows(starts, np.array([i for row in rows for i in row], dtype=np.int32))


def binomials(n_items, rate):
    return log_binomials(n_items, rate * n_items, n_items)


@pytest.mark.parametrize("rate", [0.0, 1e-9, 0.3, 2.0])
def test_gaussian_binomials_count_sets_by_their_inversions(rate):
    powers = {c: [] for c in range(6)}
    for ranking in naive.all_rankings(5):
        for c in range(6):
            first = tuple(sorted(item for item in range(5) if ranking[item] <= c))
            powers[c].append((first, sum(first) - c * (c - 1) // 2))
    sums = [math.log(sum(math.exp(-rate * v) for _, v in set(each))) for each in powers.values()]
    assert binomials(5, rate) == pytest.approx(sums, abs=1e-12)
    assert binomials(5, rate + 0.01) != pytest.approx(sums, abs=1e-4)


def test_gaussian_binomials_join_the_usual_ones_and_stay_finite():
    usual = [math.log(math.comb(40, c)) for c in range(41)]
    assert binomials(40, 0.0) == pytest.approx(usual, abs=1e-11)
    assert binomials(40, 1e-14) == pytest.approx(usual, abs=1e-9)
    assert binomials(40, 1e-301) == pytest.approx(usual, abs=1e-11)
    assert binomials(40, 300.0) == pytest.approx(np.zeros(41), abs=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 1.0, 6.0])
def test_log_likelihoods_are_sums_over_all_rankings(alpha):
    rows = [(0,), (3, 1), (0, 1, 2), (), (0, 1, 2, 3)]
    values, rates = np.empty((len(rows), 1)), np.array([alpha / 4])
    clicks, consensus = rows_of(*rows), np.array([CONSENSUS])
    kernels.kendall_log_likelihoods(
        clicks, consensus, rates, binomials(4, alpha / 4)[:, None], values
    )
    values = values[:, 0]
    exact = [math.log(naive.click_likelihood(row, CONSENSUS, alpha, "kendall")) for row in rows]
    assert values == pytest.approx(exact, abs=1e-12)
    if alpha:  # another distance would be found out
        other = [math.log(naive.click_likelihood(row, CONSENSUS, alpha)) for row in rows]
        assert values != pytest.approx(other, abs=1e-3)


def posterior_of(counts, rate):
    rankings = naive.all_rankings(len(counts))
    return naive.normalise({r: math.exp(-rate * float(counts @ np.array(r))) for r in rankings})


def mixed(counts, rate, number, start, n_passes=4):
    consensus, stream = np.array(start, dtype=np.int32), np.empty(1, dtype=np.uint64)
    start_stream(11, number, CHAIN, stream)
    kernels.mix_consensus(stream, counts, rate, n_passes, consensus)
    return tuple(consensus.tolist())


def p_value_after_one_move(counts, rate, used, n_draws=6_000, n_passes=2):
    """Starts are from the exact posterior, so the ends must be too."""
    exact, rng = posterior_of(counts, rate), np.random.default_rng(5)
    rankings = list(exact)
    starts = rng.choice(len(rankings), n_draws, p=list(exact.values()))
    found = dict.fromkeys(exact, 0)
    for number, start in enumerate(starts.tolist()):
        found[mixed(counts, used, number, rankings[start], n_passes)] += 1
    wanted = n_draws * np.array(list(exact.values()))
    return stats.chisquare(list(found.values()), wanted).pvalue


def test_a_move_leaves_the_posterior_as_it_is():
    assert p_value_after_one_move(COUNTS, 0.2, 0.2) > 1e-4


def test_a_move_with_a_slightly_wrong_alpha_does_not():
    assert p_value_after_one_move(COUNTS, 0.2, 0.3) < 1e-8


def test_a_move_of_five_items_leaves_the_posterior_as_it_is():
    counts = np.array([1, 4, 0, 2, 2])
    assert p_value_after_one_move(counts, 0.15, 0.15, n_passes=3) > 1e-4


def test_a_few_rounds_from_any_start_reach_the_posterior():
    exact, found = posterior_of(COUNTS, 0.2), {}
    for number in range(3_000):
        end = mixed(COUNTS, 0.2, number, (4, 3, 2, 1), n_passes=12)
        found[end] = found.get(end, 0) + 1
    wanted = 3_000 * np.array(list(exact.values()))
    assert stats.chisquare([found.get(r, 0) for r in exact], wanted).pvalue > 1e-4


def test_items_with_more_clicks_go_first_when_alpha_is_large():
    counts = np.array([5, 1, 300, 0, 7, 2])
    assert mixed(counts, 500.0, 1, (1, 2, 3, 4, 5, 6), n_passes=100) == (3, 5, 1, 6, 2, 4)


def test_items_with_very_many_clicks_leave_the_posterior_as_it_is():
    counts = np.array([0, 10**12, 0, 10**12])
    assert p_value_after_one_move(counts, 2e-13, 2e-13) > 1e-4
    assert p_value_after_one_move(counts, 2e-13, 6e-13) < 1e-8


def test_equal_items_forget_their_places_in_one_move():
    """Those of equal numbers of clicks are in any order, whatever the start; others are not."""
    ends = [mixed(COUNTS, 0.2, number, (1, 4, 3, 2), 1) for number in range(2_000)]
    assert stats.binomtest(sum(end[0] < end[3] for end in ends), 2_000).pvalue > 1e-4
    assert stats.binomtest(sum(end[0] < end[2] for end in ends), 2_000).pvalue < 1e-8


def test_the_head_of_a_large_catalogue_is_in_the_order_of_the_clicks_when_alpha_is_large():
    n_items = kernels.HEAD + 40
    counts = np.random.default_rng(1).permutation(n_items)
    consensus = mixed(counts, 500.0, 1, range(1, n_items + 1), n_passes=400)
    assert consensus == tuple((n_items - counts).tolist())


def law_of(clicks):
    """The law of these clicks, Kendall's."""
    return KendallClicks(pm.Preferences.from_clicks(clicks))


def latent_p_value(used):
    """Of 8,000 latent rankings of users who clicked items 3 and 1, at alpha 3."""
    law = naive.mallows(CONSENSUS, 3.0, "kendall")
    law = naive.normalise({r: p for r, p in law.items() if r[1] <= 2 and r[3] <= 2})
    clicks = np.tile([False, True, False, True], (8_000, 1))
    streams = Streams(3, 1, np.arange(8_000), np.ones(8_000, dtype=np.int64))
    rows = law_of(clicks).rows_of(np.arange(8_000))
    found = dict.fromkeys(law, 0)
    for ranking in rows.draw(streams, np.array(CONSENSUS, np.int32), used).tolist():
        found[tuple(ranking)] += 1
    return stats.chisquare(list(found.values()), 8_000 * np.array(list(law.values()))).pvalue


def test_latent_rankings_follow_the_exact_law():
    assert latent_p_value(3.0) > 1e-4


def test_latent_rankings_of_a_slightly_wrong_alpha_do_not():
    assert latent_p_value(3.7) < 1e-8


def test_scales_are_the_powers_of_two_below_the_number_of_places():
    assert [kernels.n_scales(n) for n in (2, 3, 4, 5, 1000)] == [1, 2, 2, 3, 10]


@pytest.mark.parametrize("alpha", [0.0, 3.0])
def test_the_curve_of_many_users_is_the_sum_of_theirs(alpha):
    rows = [{0}, {0}, {1, 3}, {0, 2}, {1}, {0, 1, 3}]
    clicks = np.array([[item in row for item in range(4)] for row in rows])
    law = law_of(clicks)
    labels = np.zeros(law.n_users, dtype=np.int32)
    curve = law.tallies(labels, 1)[0].curve(np.array(CONSENSUS, np.int32))
    each = [math.log(naive.click_likelihood(row, CONSENSUS, alpha, "kendall")) for row in rows]
    assert curve(alpha) == pytest.approx(sum(each))
    assert curve(alpha + 0.3) != pytest.approx(sum(each), rel=1e-3)


def test_sums_of_binomials_and_counts_are_those_of_the_users():
    rows, labels = rows_of((0,), (3, 1), (0, 1, 2), (2,)), np.array([1, 0, 1, 1], dtype=np.int32)
    sizes, weights = np.array([1, 2, 3]), np.array([5, 1, 2, 1])
    places, counts = np.array([0, 1, 2, 0]), np.zeros((2, 4 + 3), dtype=np.int64)
    kernels.count_clicks_and_sizes(rows, places, labels, weights, 4, counts)
    assert counts.tolist() == [[0, 1, 0, 1, 0, 1, 0], [7, 2, 3, 0, 6, 0, 2]]
    n_sizes = counts[:, 4:].sum(axis=0)
    known = float(n_sizes @ binomials(4, 0.3)[sizes])
    assert kernels.sum_binomials(4, 0.3, sizes, n_sizes) == pytest.approx(known, abs=1e-12)
