"""Products and regressions from lists of clicks, against plain NumPy."""

import numpy as np
import pytest

from helpers import interpreted
from pseudomallows.kernels.click_rows import ClickRows
from pseudomallows.kernels.items.item_products import (
    ClickLists,
    Head,
    count_all_products,
    count_products,
    drop_products,
    list_users,
    mark_taken,
    mirror_rows,
)
from pseudomallows.kernels.items.near import (
    NearLaw,
    Rows,
    choose_near,
    count_near,
    fill_inner,
    near_rows,
)
from pseudomallows.kernels.items.weights import nonnegative_rows

pytestmark = pytest.mark.kernel
N_ITEMS = 9


def clicked_lists(seed=1, n_users=40):
    rng = np.random.default_rng(seed)
    clicked = rng.random((n_users, N_ITEMS)) < rng.uniform(0.1, 0.7, N_ITEMS)
    starts = np.concatenate([[0], np.cumsum(clicked.sum(axis=1))])
    codes = np.nonzero(clicked)[1].astype(np.int32)
    item_starts = np.concatenate([[0], np.cumsum(clicked.sum(axis=0))])
    users = np.empty(len(codes), dtype=np.int32)
    list_users(starts, codes, item_starts, users)
    return clicked, ClickLists(starts, codes, item_starts, users), rng.integers(0, 4, n_users) / 2


def exact_products(clicked, shares):
    return clicked.T @ np.diag(shares) @ clicked


def head_of(lists, shares, items):
    places = np.full(N_ITEMS, -1, dtype=np.int32)
    places[items] = np.arange(len(items))
    head = Head(places, np.array(items, dtype=np.int64), np.zeros((len(items),) * 2, np.float32))
    count_products(lists, shares, head, 0, head.table)
    return head


def test_items_list_their_users():
    clicked, lists, _ = clicked_lists()
    for item in range(N_ITEMS):
        mine = lists.users[lists.item_starts[item] : lists.item_starts[item + 1]]
        assert mine.tolist() == np.flatnonzero(clicked[:, item]).tolist()


@pytest.mark.parametrize("kernel", [count_all_products, interpreted(count_all_products)])
def test_products_of_all_items_are_counted_once_and_mirrored(kernel):
    clicked, lists, shares = clicked_lists()
    table = np.zeros((N_ITEMS, N_ITEMS))
    for first in (0, 4, 8):
        kernel(lists, shares, first, table[first : first + 4])
    exact = exact_products(clicked, shares)
    assert (table == np.triu(exact)).all()
    mirror_rows(table)
    assert (table == exact).all()
    large = np.random.default_rng(1).random((70, 70))
    turned = large.copy()
    mirror_rows(turned)
    assert (turned == np.triu(large) + np.triu(large, 1).T).all()


def test_products_of_some_items_are_counted_from_lists():
    clicked, lists, shares = clicked_lists()
    head, exact = head_of(lists, shares, [1, 4, 7]), exact_products(clicked, shares)
    assert head.table == pytest.approx(exact[np.ix_([1, 4, 7], [1, 4, 7])])


def test_hidden_clicks_are_taken_off_the_products():
    clicked, lists, shares = clicked_lists()
    taken = np.random.default_rng(2).random(len(lists.codes)) < 0.3
    table = exact_products(clicked, shares)
    drop_products(lists, taken, shares, table)
    left, owners = clicked.copy(), np.repeat(np.arange(40), np.diff(lists.starts))
    left[owners[taken], lists.codes[taken]] = False
    assert table == pytest.approx(exact_products(left, shares), abs=1e-12)


def test_clicks_that_are_not_shown_are_marked():
    whole = ClickRows(np.array([0, 3, 3, 5]), np.array([1, 4, 6, 0, 2], dtype=np.int32))
    shown = ClickRows(np.array([0, 2, 2, 3]), np.array([1, 6, 2], dtype=np.int32))
    taken = np.empty(5, dtype=bool)
    assert mark_taken(whole, shown, taken)
    assert taken.tolist() == [False, True, False, True, False]
    assert not mark_taken(shown, whole, np.empty(3, dtype=bool))


@pytest.mark.parametrize("items", [[], [0, 3, 5], list(range(N_ITEMS))])
def test_products_of_near_items_come_from_the_table_or_from_lists(items):
    clicked, lists, shares = clicked_lists()
    near, places = np.array([0, 2, 3, 8]), np.full(N_ITEMS, -1, dtype=np.int32)
    inner, visits = np.empty((4, 4)), np.zeros(len(lists.starts), dtype=np.int32)
    for _ in range(2):  # whom one call has met, the next one meets again
        head = head_of(lists, shares, items)
        fill_inner(lists, shares, head, near, places, visits, inner)
        assert inner == pytest.approx(exact_products(clicked, shares)[np.ix_(near, near)])
    assert (places == -1).all()


def test_the_nearest_items_have_the_largest_cosines():
    clicked, lists, shares = clicked_lists()
    exact, counts = exact_products(clicked, shares), np.zeros(N_ITEMS)
    touched, norms = np.empty(N_ITEMS, dtype=np.int64), np.diag(exact).copy()
    n_touched = count_near(lists, shares, 4, counts, touched)
    assert counts == pytest.approx(exact[4])
    cosines = exact[4] / np.sqrt(np.maximum(norms, 1e-9))
    cosines[4] = -1
    near = choose_near(counts, touched[:n_touched], norms, 4, 3)
    assert near.tolist() == sorted(np.argsort(-cosines)[:3].tolist())
    assert choose_near(counts, touched[:n_touched], norms, 4, 50).tolist() == [
        item for item in range(N_ITEMS) if item != 4 and exact[4, item] > 0
    ]
    assert choose_near(counts, touched[:0], norms, 4, 3).size == 0
    level = choose_near(np.ones(4), np.array([3, 2, 1, 0]), np.ones(4), 3, 2)
    assert level.tolist() == [0, 1]


@pytest.mark.parametrize("kernel", [near_rows, interpreted(near_rows)])
def test_with_all_items_near_the_weights_are_those_of_the_whole_regression(kernel):
    clicked, lists, shares = clicked_lists()
    exact, targets = exact_products(clicked, shares), np.array([7, 0, 4])
    whole = np.zeros((N_ITEMS, N_ITEMS))
    nonnegative_rows(exact, 3.0, 0.5, 1e-10, 0, whole)
    rows = Rows(np.zeros((3, 8), np.int32), np.zeros((3, 8), np.float32), np.zeros(3, np.int64))
    law, norms = NearLaw(3.0, 0.5, 1e-10, 1e-6, 8), np.diag(exact).copy()
    kernel(lists, shares, head_of(lists, shares, [0, 3, 5]), norms, law, targets, rows)
    for row, target in enumerate(targets):
        found = np.zeros(N_ITEMS)
        found[rows.items[row, : rows.sizes[row]]] = rows.weights[row, : rows.sizes[row]]
        assert found == pytest.approx(whole[target], abs=1e-5)
    few = Rows(np.zeros((3, 2), np.int32), np.zeros((3, 2), np.float32), np.zeros(3, np.int64))
    kernel(lists, shares, head_of(lists, shares, [0, 3, 5]), norms, law, targets, few)
    assert (few.sizes <= 2).all()
