"""Scores by sparse rows and factors, the best items, the ranks of clicks: by their definitions."""

import numpy as np
import pytest

from helpers import interpreted
from pseudomallows.kernels.click_rows import ClickRows
from pseudomallows.kernels.correct import GridProbabilities
from pseudomallows.kernels.items.top_items import (
    FactorRows,
    SparseRows,
    add_factor_rows,
    add_sparse_rows,
    add_weight_rows,
    fill_rankings,
    fill_tops,
    rank_clicks,
)
from pseudomallows.kernels.items.top_places import (
    fill_from_places,
    fill_unclicked,
    look_up_places,
)

pytestmark = pytest.mark.kernel
CLICKS = ClickRows(np.array([0, 2, 2, 5]), np.array([1, 4, 0, 2, 6], dtype=np.int32))
ROWS = [[1, 4], [], [0, 2, 6]]


def test_scores_are_sums_over_what_was_clicked():
    rng = np.random.default_rng(1)
    weights = (rng.random((7, 7)) * (rng.random((7, 7)) < 0.5)).astype(np.float32)
    exact = np.array([weights[row].sum(axis=0) for row in ROWS])
    whole, sparse = np.zeros((3, 7), np.float32), np.zeros((3, 7), np.float32)
    add_weight_rows(CLICKS, weights, whole)
    starts = np.concatenate([[0], np.cumsum((weights > 0).sum(axis=1))])
    items = np.nonzero(weights)[1].astype(np.int32)
    add_sparse_rows(CLICKS, SparseRows(starts, items, weights[weights > 0]), sparse)
    assert whole == pytest.approx(exact)
    assert (sparse == whole).all()


def test_by_factors_a_click_does_not_count_for_its_own_item():
    rng = np.random.default_rng(1)
    left = rng.normal(size=(7, 3)).astype(np.float32)
    right = rng.normal(size=(3, 7)).astype(np.float32)
    weights = left @ right
    own = np.diag(weights).copy()
    np.fill_diagonal(weights, 0.0)
    scores = np.zeros((3, 7), np.float32)
    add_factor_rows(CLICKS, FactorRows(left, right, own), scores)
    assert scores == pytest.approx(np.array([weights[row].sum(axis=0) for row in ROWS]), abs=1e-5)


@pytest.mark.parametrize("kernel", [fill_tops, interpreted(fill_tops)])
@pytest.mark.parametrize("n_best", [1, 3, 7])
def test_the_best_unclicked_items_come_in_order(kernel, n_best):
    rng, ties = np.random.default_rng(2), np.random.default_rng(3).permutation(7)
    for _ in range(20):
        scores = rng.integers(0, 3, (3, 7)).astype(np.float32)  # with ties
        best = np.empty((3, n_best), dtype=np.int64)
        kernel(CLICKS, scores, ties, best)
        for row, mine in enumerate(ROWS):
            order = sorted(range(7), key=lambda item: (-scores[row, item], ties[item]))
            wanted = [item for item in order if item not in mine][:n_best]
            assert best[row].tolist() == wanted + [-1] * (n_best - len(wanted))


def test_clicks_have_the_ranks_of_the_order_of_all():
    scores = np.random.default_rng(2).integers(0, 3, (3, 7)).astype(np.float32)
    ties, ranks = np.random.default_rng(3).permutation(7), np.empty(5, dtype=np.int64)
    rank_clicks(CLICKS, scores, ties, ranks)
    found = iter(ranks.tolist())
    for row, mine in enumerate(ROWS):
        order = sorted(range(7), key=lambda item: (-scores[row, item], ties[item]))
        for item in mine:
            assert next(found) == order.index(item) + 1


@pytest.mark.parametrize("n_places", [2, 7])
def test_what_is_not_clicked_stands_in_the_order_of_the_ranking(n_places):
    rankings = np.random.default_rng(4).permuted(np.tile(np.arange(1, 8), (3, 1)), axis=1)
    items = np.empty((3, n_places), dtype=np.int64)
    fill_unclicked(CLICKS, rankings.astype(np.int32), items)
    for row, mine in enumerate(ROWS):
        left = sorted(set(range(7)) - set(mine), key=lambda item: rankings[row, item])
        assert items[row].tolist() == (left + [-1] * 7)[:n_places]


def test_places_mix_the_probabilities_of_the_alphas():
    rng = np.random.default_rng(1)
    lines = np.array([-1, -1, -1, -1, 0, 1, -1, 2])
    tables = GridProbabilities(
        lines, rng.random((3, 2, 6)), np.empty(0, np.int64), np.empty((3, 2, 0))
    )
    sizes, shares = np.array([5, 7, 4]), np.array([[0.3, 0.7], [1.0, 0.0], [0.5, 0.5]])
    probabilities = np.empty((3, 5))
    look_up_places(sizes, shares, tables, probabilities)
    for row, size in enumerate(sizes):
        exact = shares[row] @ tables.probabilities[lines[size]]
        exact[size:] = 0
        assert probabilities[row] == pytest.approx(exact[:5])


def test_the_largest_values_are_shown_and_of_equal_ones_the_first_place():
    best = np.array([[5, 3, 1, 0], [2, 6, -1, -1]])
    values = np.array([[0.2, 0.4, 0.2, 0.4], [0.1, 0.3, 0.0, 0.0]])
    items, probabilities = np.full((2, 3), -1), np.full((2, 3), np.nan)
    fill_from_places(best, values, items, probabilities)
    assert items.tolist() == [[3, 0, 5], [6, 2, -1]]
    assert probabilities[0].tolist() == [0.4, 0.4, 0.2]
    assert np.isnan(probabilities[1, 2])


@pytest.mark.parametrize("kernel", [fill_rankings, interpreted(fill_rankings)])
def test_rankings_follow_the_values_and_of_equal_ones_the_ties(kernel):
    rng, ties = np.random.default_rng(1), np.array([3, 0, 4, 1, 2])
    values = rng.integers(0, 3, (20, 5)).astype(float)
    order = np.argsort(values + 1e-9 * rng.random(values.shape), axis=1)  # ties anyhow
    rankings = np.empty((20, 5), dtype=np.int32)
    kernel(values, order, ties, rankings)
    for row in range(20):
        exact = sorted(range(5), key=lambda number: (values[row, number], number))
        assert [int(ties[number]) for number in exact] == np.argsort(rankings[row]).tolist()


def test_many_scores_have_their_best_and_their_ranks():
    """More than are looked at together, with many ties."""
    rng, n_items = np.random.default_rng(2), 700
    scores = rng.integers(0, 60, (4, n_items)).astype(np.float32)
    scores[:, :300] += 30
    ties, clicks = rng.permutation(n_items), np.sort(rng.choice(n_items, (4, 9)), axis=1)
    rows = ClickRows(np.arange(5) * 9, clicks.astype(np.int32).ravel())
    best, ranks = np.empty((4, 12), dtype=np.int64), np.empty(36, dtype=np.int64)
    fill_tops(rows, scores, ties, best)
    rank_clicks(rows, scores, ties, ranks)
    for row in range(4):
        order = np.lexsort((ties, -scores[row])).tolist()
        unseen = [item for item in order if item not in clicks[row]]
        assert best[row].tolist() == unseen[:12]
        mine = [order.index(item) + 1 for item in clicks[row]]
        assert ranks[9 * row : 9 * row + 9].tolist() == mine
