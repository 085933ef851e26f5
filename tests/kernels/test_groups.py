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


def exact_law(name, size, lam):
    """Algorithm 4 inside a group: {ranks by place: probability}."""
    center = list(range(1, size + 1))
    orders = visit_orders(name, size)
    laws = [naive.pseudo_mallows([center], lam * size, order) for order in orders]
    return {key: sum(law[key] for law in laws) / len(laws) for key in laws[0]}


def draws(name, size, lam, n_draws, draw_group=groups.draw_group):
    leaps = groups.leap_tables(size, lam)
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


@pytest.mark.parametrize("lam", [0.0, 0.02, 0.3, 6.0, 900.0])
def test_leaping_and_scanning_have_the_same_law(lam, monkeypatch):
    """Large groups leap while many ranks are free; with SCAN raised they always scan."""
    plain = interpreted(groups.draw_group)
    leapt = draws("uniform", 40, lam, 400, plain)
    monkeypatch.setitem(plain.__globals__, "SCAN", 1000)
    scanned = draws("uniform", 40, lam, 400, plain)
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


def chance_z_scores(order, lam, k, exact_lam):
    """Of the mean chances at `lam` against the exact ones at `exact_lam`."""
    sums, squares = np.zeros((2, 5))
    n_draws = 20_000
    group = groups.Group(5, lam, groups_order(order))
    groups.sum_first_chances(7, 0, n_draws, group, k, sums, squares)
    means = sums / n_draws
    errors = np.sqrt(np.maximum(squares / n_draws - means**2, 1e-12) / n_draws)
    exact = np.array(naive.marginals(exact_law(order, 5, exact_lam)))[:, :k].sum(axis=1)
    return (means - exact) / errors


def groups_order(order):
    return {"uniform": groups.UNIFORM, "v": groups.V, "top_bottom": groups.TOP_BOTTOM}[order]


@pytest.mark.parametrize("order", ["uniform", "v", "top_bottom"])
@pytest.mark.parametrize("lam", [0.0, 0.3, 2.0])
def test_chances_of_the_first_ranks_are_those_of_the_law(order, lam):
    for k in (1, 2, 5):
        assert np.abs(chance_z_scores(order, lam, k, lam)).max() < 4.5


def test_chances_at_a_slightly_wrong_lam_are_caught():
    assert np.abs(chance_z_scores("uniform", 0.3, 2, 0.33)).max() > 8


@pytest.mark.kernel
@pytest.mark.parametrize(("size", "lam"), [(1, 0.5), (6, 0.4), (9, 30.0), (40, 500.0)])
def test_chances_of_sharp_laws_stay_sums_of_all_ranks(size, lam):
    """The compiled kernel does what the interpreted one does; a place takes some rank; and of so
    sharp a law every place its own."""
    for order in (groups.UNIFORM, groups.V, groups.TOP_BOTTOM):
        both, group = np.zeros((2, 2, size)), groups.Group(size, lam, order)
        for kernel, (sums, squares) in zip(
            (groups.sum_first_chances, interpreted(groups.sum_first_chances)), both, strict=True
        ):
            kernel(1, 5, 3, group, size, sums, squares)
        assert both[0] == pytest.approx(np.full((2, size), 3.0))
        assert (both[0] == both[1]).all()
        firsts, squares = np.zeros((2, size))
        groups.sum_first_chances(1, 0, 4, group, 1, firsts, squares)
        if lam >= 30:
            assert firsts == pytest.approx([4.0, *([0.0] * (size - 1))])


@pytest.mark.kernel
@pytest.mark.parametrize("lam", [0.2, 3.0, 400.0])
def test_weights_of_few_free_ranks_are_relative_to_the_nearest(lam):
    free = np.zeros(12, dtype=bool)
    free[[0, 2, 10, 11]] = True
    found = groups.few_weights(5, 3, lam, free)
    away = {rank: abs(rank - 5) - 3 for rank in np.flatnonzero(free)}  # the nearest is 3 away
    weights = {rank: np.exp(-lam * distance) for rank, distance in away.items()}
    expected = (weights[0] + weights[2], weights[10] + weights[11], sum(weights.values()))
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.kernel
def test_chances_where_few_ranks_are_free_do_not_depend_on_the_way_they_are_summed(monkeypatch):
    """Small totals are summed anew; so are all, if any total counts as small."""
    kernel, both, n_few = interpreted(groups.sum_first_chances), np.zeros((2, 2, 14)), []
    plain = interpreted(groups.few_weights)
    monkeypatch.setattr(groups, "few_weights", lambda *law: n_few.append(1) or plain(*law))
    for few, (sums, squares) in zip((groups.FEW, np.inf), both, strict=True):
        monkeypatch.setattr(groups, "FEW", few)
        kernel(3, 0, 40, groups.Group(14, 2.5, groups.TOP_BOTTOM), 4, sums, squares)
        assert n_few  # also where only small totals count as few
    assert both[0] == pytest.approx(both[1], rel=1e-9)
