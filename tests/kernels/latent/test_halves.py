"""Cayley's and Hamming's distance, given clicks: closed forms against all rankings."""

import math

import numpy as np
import pytest

import naive
from helpers import IS_COMPILED, interpreted, p_value
from pseudomallows.kernels.blocks import fixed_log_weights
from pseudomallows.kernels.click_rows import ClickRows
from pseudomallows.kernels.latent import halves as kernels
from pseudomallows.kernels.streams import Streams

pytestmark = pytest.mark.kernel
KINDS = {"cayley": kernels.CAYLEY, "hamming": kernels.HAMMING}
CASES = [  # consensus, clicks, alpha, window
    ((2, 5, 1, 3, 4), (1, 4), 3.0, 1),
    ((1, 2, 3, 4, 5), (2, 3, 4), 0.0, 2),
    ((6, 3, 5, 1, 2, 4), (0, 2, 5), 7.0, 2),
    ((3, 1, 2, 4), (), 2.0, 3),
    ((3, 1, 2, 4), (0, 1, 2), 5.0, 4),
    ((3, 1, 2, 4), (0, 1, 2, 3), 5.0, 1),
]


def chances_of(kind, consensus, clicked, alpha, window, kernel=kernels.half_chances):
    """The log probability of the clicks, and the chances of all items."""
    n_items, n_clicks = len(consensus), len(clicked)
    table = np.empty((1, min(n_clicks, n_items - n_clicks) + 1, kernels.N_VALUES))
    kernels.fill_half_table(kind, alpha / n_items, n_items, n_clicks, table[0])
    laws = kernels.HalfLaws(np.array([consensus], np.int32), table)
    clicks = ClickRows(np.array([0, n_clicks]), np.array(clicked, np.int32))
    logs, chances = np.empty((1, 1)), np.empty((1, 1, n_items))
    kernel(clicks, np.zeros(1, np.int64), laws, window, logs, chances)
    return logs[0, 0], chances[0, 0]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_clicks_and_chances_are_those_of_all_rankings(name, case):
    consensus, clicked, alpha, window = case
    log_likelihood, chances = chances_of(KINDS[name], *case)
    exact = naive.click_likelihood(clicked, consensus, alpha, name)
    assert log_likelihood == pytest.approx(math.log(exact), abs=1e-12)
    unclicked = [item for item in range(len(consensus)) if item not in clicked]
    exact = np.array(naive.next_chances(clicked, consensus, alpha, window, name))
    assert chances[unclicked] == pytest.approx(exact[unclicked], abs=1e-12)
    log_again, again = chances_of(KINDS[name], *case, interpreted(kernels.half_chances))
    assert log_again == log_likelihood
    assert again.tolist() == chances.tolist()


@pytest.mark.parametrize("name", KINDS)
def test_a_slightly_wrong_alpha_or_distance_is_caught(name):
    consensus, clicked, alpha, window = CASES[0]
    for wrong_name, wrong in ((name, 1.01 * alpha), ("footrule", alpha)):
        log_likelihood, chances = chances_of(KINDS[name], *CASES[0])
        exact = naive.click_likelihood(clicked, consensus, wrong, wrong_name)
        assert log_likelihood != pytest.approx(math.log(exact), abs=1e-4)
        exact = naive.next_chances(clicked, consensus, wrong, window, wrong_name)
        assert chances[0] != pytest.approx(exact[0], abs=1e-4)


@pytest.mark.parametrize(
    ("n_fit", "size", "lam"), [(0, 0, 1.0), (3, 5, 0.0), (40, 44, 0.7), (60, 60, 30.0), (3, 9, 1e3)]
)
def test_a_sum_that_ends_early_is_that_of_all_terms(n_fit, size, lam):
    every = fixed_log_weights(n_fit, size, lam, np.empty(n_fit + 1))
    assert kernels.log_fitting_sum(n_fit, size, lam) == pytest.approx(every, rel=1e-12, abs=1e-12)
    assert kernels.log_fitting_sum(-1, size, lam) == -np.inf


def drawn_by_cayley(clicked, alpha, n_draws, kernel=kernels.draw_cayley_latent):
    consensus = np.array([2, 5, 1, 3, 4], np.int32)
    clicks = ClickRows(np.arange(n_draws + 1) * len(clicked), np.tile(np.int32(clicked), n_draws))
    latent = np.empty((n_draws, 5), np.int32)
    streams = Streams(3, 1, np.arange(n_draws), np.ones(n_draws, np.int64))
    kernel(streams, clicks, consensus, alpha / 5, latent)
    return latent


@pytest.mark.parametrize("clicked", [(1, 4), (0, 1, 4), (2, 0), ()], ids=str)
def test_rankings_by_cayley_are_drawn_from_the_law_given_the_clicks(clicked):
    law = naive.mallows((2, 5, 1, 3, 4), 2.0, "cayley")
    law = {r: p for r, p in law.items() if all(r[i] <= len(clicked) for i in clicked)}
    n_draws = 20_000 if IS_COMPILED else 2_000
    drawn = drawn_by_cayley(clicked, 2.0, n_draws)
    assert p_value(drawn, naive.normalise(law)) > 1e-4
    if IS_COMPILED:
        assert p_value(drawn_by_cayley(clicked, 2.8, n_draws), naive.normalise(law)) < 1e-6
    few = drawn_by_cayley(clicked, 2.0, 20, interpreted(kernels.draw_cayley_latent))
    assert few.tolist() == drawn[:20].tolist()
