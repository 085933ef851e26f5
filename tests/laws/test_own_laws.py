"""Users with a consensus of their own: their law at each alpha, against all rankings of 6 items."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chisquare

import naive
from helpers import interpreted
from pseudomallows.distances.kendall import log_binomials
from pseudomallows.kernels.click_rows import ClickRows
from pseudomallows.kernels.correct import GridProbabilities
from pseudomallows.kernels.items.top_places import fill_unclicked, look_up_places
from pseudomallows.kernels.kendall import click_sums as kernels
from pseudomallows.laws import own_laws
from pseudomallows.laws.own_laws import OwnLaw, far_places
from pseudomallows.personal.next_tables import GridTables

pytestmark = pytest.mark.kernel

N_ITEMS = 6
ALPHAS = np.array([0.0, 3.0, 12.0])
ROWS = [[2], [0, 3], [1, 2, 4], [], [5, 0, 1, 2], [0, 1, 2, 3, 4, 5]]
RANKINGS = np.array([np.random.default_rng(row).permutation(6) + 1 for row in range(6)], np.int32)


def click_rows(rows):
    codes = np.array(list(itertools.chain(*rows)), dtype=np.int32)
    return ClickRows(np.cumsum([0, *map(len, rows)]), codes)


def test_the_probability_of_clicks_equals_enumeration():
    law = OwnLaw(N_ITEMS, ALPHAS)
    rows = [row for row in ROWS if len(row) < N_ITEMS]
    found = law.log_likelihoods(click_rows(rows), RANKINGS[: len(rows)])
    for row, g in np.ndindex(found.shape):
        center = tuple(RANKINGS[row].tolist())
        exact = naive.click_likelihood(rows[row], center, ALPHAS[g], "kendall")
        assert found[row, g] == pytest.approx(math.log(exact), abs=1e-12)
    wrong = naive.click_likelihood(rows[1], tuple(RANKINGS[1].tolist()), ALPHAS[-1], "footrule")
    assert found[1, -1] != pytest.approx(math.log(wrong), abs=1e-3)


@pytest.mark.parametrize("window", [1, 2, 9])
def test_what_comes_next_equals_enumeration(window):
    """Also where all but one of the places are read between others: 2 of them are 1 apart."""
    law = OwnLaw(N_ITEMS, ALPHAS)
    found = probabilities_of(law, window)
    for row, clicked in enumerate(ROWS):
        center = tuple(RANKINGS[row].tolist())
        exact = sum(
            np.array(naive.next_probabilities(clicked, center, alpha, window, "kendall")) / 3
            for alpha in ALPHAS
        )
        assert found[row] == pytest.approx(exact, abs=1e-12)


def probabilities_of(law, window):
    """``[row, item]``, all alphas by equal shares."""
    n_near, places = law.places(window)
    made = [law.next_probabilities(window, size) for size in range(1, N_ITEMS + 1)]
    near = np.stack([pair[0] for pair in made])
    far = np.stack([pair[1] for pair in made])
    assert near.shape == (N_ITEMS, len(ALPHAS), n_near)
    tables = GridProbabilities(np.arange(-1, N_ITEMS), near, places, far)
    by_place, items = np.empty((len(ROWS), N_ITEMS)), np.empty((len(ROWS), N_ITEMS), np.int64)
    fill_unclicked(click_rows(ROWS), RANKINGS, items)
    shares = np.full((len(ROWS), 3), 1 / 3)
    look_up_places((items >= 0).sum(axis=1), shares, tables, by_place)
    found = np.zeros((len(ROWS), N_ITEMS + 1))
    np.put_along_axis(found, items, by_place, axis=1)
    return found[:, :-1]


def test_the_law_of_the_footrule_or_of_another_alpha_would_be_found_out():
    found = probabilities_of(OwnLaw(N_ITEMS, ALPHAS), 2)[1]
    center = tuple(RANKINGS[1].tolist())
    for wrong, distance in ((ALPHAS, "footrule"), (1.1 * ALPHAS, "kendall")):
        exact = sum(
            np.array(naive.next_probabilities(ROWS[1], center, alpha, 2, distance)) / 3
            for alpha in wrong
        )
        assert found != pytest.approx(exact, abs=1e-3)


def test_places_further_down_are_read_between_others(monkeypatch):
    """Of 40 items only 4 places are tabulated one by one."""
    n_items, rate, window = 40, 0.2, 1
    whole = OwnLaw(n_items, np.array([rate * n_items])).next_probabilities(window, n_items)[0][0]
    monkeypatch.setattr(own_laws, "N_NEAR", 4)
    law = OwnLaw(n_items, np.array([rate * n_items]))
    near, far = law.next_probabilities(window, n_items)
    n_near, places = law.places(window)
    assert n_near == 4
    lines = np.zeros(n_items + 1, dtype=np.int64)
    found = np.empty((1, n_items))
    tables = GridProbabilities(lines, near[None], places, far[None])
    look_up_places(np.array([n_items]), np.ones((1, 1)), tables, found)
    assert found[0] == pytest.approx(whole, rel=1e-6)
    assert found[0].sum() == pytest.approx(1)
    assert whole[30] < 0.01 * whole[4]  # so they are small, and right all the same


def test_tables_do_not_grow_with_the_square_of_the_items():
    law = OwnLaw(10**6, OwnLaw.grid(10**6))
    near, far = law.next_probabilities(10, 10**6 - 20)
    assert near.nbytes + far.nbytes < 2**18
    assert (np.diff(near, axis=1) <= 1e-15).all()
    n_near, places = law.places(10)
    assert (places == far_places(n_near, 10**6)).all()


def test_the_grid_reaches_as_far_as_the_catalogue():
    for n_items, most in ((10, 64), (200, 400), (10**6, 2 * 10**6)):
        grid = OwnLaw.grid(n_items)
        assert grid[[0, -1]] == pytest.approx([0.75, most])
        assert (grid[1:] / grid[:-1]).max() <= own_laws.GRID_RATIO + 1e-9


def test_ranks_of_one_user_agree_with_the_probabilities():
    law, weights = OwnLaw(N_ITEMS, ALPHAS[1:]), np.array([0.4, 0.6])
    codes, center = np.array([1, 4], np.int32), np.array([3, 1, 2, 6, 5, 4], np.int32)
    n_draws = 4000
    counts = law.count_ranks(codes, center, weights, n_draws, np.random.default_rng(1))
    assert (counts.sum(axis=0) == n_draws).all()
    assert (counts.sum(axis=1) == n_draws).all()
    assert (counts[codes, :2].sum(axis=1) == n_draws).all()
    unclicked = [2, 0, 5, 3]  # in the order of the consensus
    near = law.next_probabilities(1, 4)[0]
    found = [int(counts[item, 2]) for item in unclicked]
    assert chisquare(found, n_draws * (weights @ near)[:4]).pvalue > 1e-4
    assert chisquare(found, n_draws * near[1, :4]).pvalue < 1e-4


def test_compiled_and_interpreted_kernels_agree():
    clicks, rates = click_rows(ROWS), ALPHAS / N_ITEMS
    law = OwnLaw(N_ITEMS, ALPHAS)
    values = law.log_likelihoods(clicks, RANKINGS)
    plain = np.empty_like(values)
    logs = np.stack([log_binomials(N_ITEMS, alpha, 6) for alpha in ALPHAS], axis=1)
    interpreted(kernels.kendall_log_likelihoods)(clicks, RANKINGS, rates, logs, plain)
    assert (plain == values).all()


def test_sizes_that_share_a_table_have_nearly_the_same_probabilities():
    law = OwnLaw(700, np.array([2.0, 30.0]))
    tables = GridTables(law)
    found = tables.of(10, [601, 200])
    assert found.lines[601] == found.lines[604] >= 0
    assert len(found.probabilities) == 2
    for size in (601, 200):
        exact, _ = law.next_probabilities(10, size)
        mine = found.probabilities[found.lines[size]]
        assert mine[:, :50] == pytest.approx(exact[:, :50], rel=0.01)
        assert (mine == exact).all() == (size == 200)
