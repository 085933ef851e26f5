import itertools

import numpy as np
import pytest

import naive
from helpers import interpreted, p_value
from pseudomallows.kernels import groups
from pseudomallows.kernels.click_rows import ClickRows
from pseudomallows.kernels.streams import Streams

pytestmark = pytest.mark.kernel

ORDERS = {"uniform": groups.UNIFORM, "v": groups.V, "top_bottom": groups.TOP_BOTTOM}


def visit_orders(name, size):
    """Every order in which the places are visited, all of equal probability."""
    if name == "uniform":
        return list(itertools.permutations(range(size)))
    if name == "top_bottom":
        return [tuple(range(size))]
    return [tuple(np.argsort(v)) for v in naive.v_set(range(1, size + 1))]


def exact_law(name, size, rate):
    """Algorithm 4 inside a group: {ranks by place: probability}."""
    center = list(range(1, size + 1))
    orders = visit_orders(name, size)
    laws = [naive.pseudo_mallows([center], rate * size, order) for order in orders]
    return {key: sum(law[key] for law in laws) / len(laws) for key in laws[0]}


def draws(name, size, rate, n_draws, draw_group=groups.draw_group):
    leaps = groups.leap_tables(size, rate)
    scratch, out = groups.make_scratch(size), np.empty((n_draws, size), dtype=np.int64)
    stream = np.array([5], dtype=np.uint64)
    for ranks in out:
        draw_group(stream, size, ORDERS[name], leaps, scratch, ranks)
    return out + 1


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("size", [2, 4, 5])
def test_draws_of_a_group_follow_the_law_of_each_order(name, size):
    assert p_value(draws(name, size, 0.25, 8000), exact_law(name, size, 0.25)) > 1e-4


@pytest.mark.parametrize("name", ORDERS)
def test_a_slightly_wrong_decay_is_caught(name):
    assert p_value(draws(name, 4, 0.35, 8000), exact_law(name, 4, 0.25)) < 1e-4


@pytest.mark.parametrize("name", ["v", "top_bottom"])
def test_another_order_is_caught(name):
    assert p_value(draws(name, 5, 0.5, 8000), exact_law("uniform", 5, 0.5)) < 1e-4


@pytest.mark.parametrize("rate", [0.0, 0.02, 0.3, 6.0, 900.0])
def test_leaping_and_scanning_have_the_same_law(rate, monkeypatch):
    """Large groups leap while many ranks are free; with SCAN raised they always scan."""
    plain = interpreted(groups.draw_group)
    leapt = draws("uniform", 40, rate, 400, plain)
    monkeypatch.setitem(plain.__globals__, "SCAN", 1000)
    scanned = draws("uniform", 40, rate, 400, plain)
    assert (np.sort(leapt, axis=1) == np.arange(1, 41)).all()
    leaps = [np.abs(x - np.arange(1, 41)).sum(axis=1) for x in (leapt, scanned)]
    error = np.hypot(*(x.std() / 20 for x in leaps)) + 1e-9
    assert abs(leaps[0].mean() - leaps[1].mean()) < 4 * error
    for place in (0, 13):
        first = [x[:, place].mean() for x in (leapt, scanned)]
        spread = np.hypot(*(x[:, place].std() / 20 for x in (leapt, scanned))) + 1e-9
        assert abs(first[0] - first[1]) < 4 * spread


@pytest.mark.parametrize("name", ORDERS)
def test_compiled_and_interpreted_draws_are_equal(name):
    plain = draws(name, 40, 0.1, 5, interpreted(groups.draw_group))
    assert (draws(name, 40, 0.1, 5) == plain).all()


def test_users_draw_both_groups_and_keep_them_apart():
    ordering, n_items = np.array([3, 0, 4, 1, 2]), 5
    clicks = ClickRows(np.array([0, 2, 2, 7]), np.array([1, 3, 0, 1, 2, 3, 4]))
    weights, kept = np.array([2, 1, 1]), np.zeros((3, 5), dtype=np.int32)
    counts = np.zeros((5, 5), dtype=np.int64)
    streams = Streams(1, 0, np.array([0, 2, 3]), weights)
    groups.draw_users(streams, clicks, ordering, 0.2, groups.UNIFORM, counts, kept)
    assert counts.sum() == 4 * n_items
    assert (counts.sum(axis=1) == 4).all()
    assert (counts.sum(axis=0) == 4).all()
    assert sorted(kept[0, [1, 3]].tolist()) == [1, 2]
    assert (np.sort(kept, axis=1) == np.arange(1, 6)).all()
