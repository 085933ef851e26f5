"""Memberships of new users: by definition, against sums over whole lines, and what is neglected."""

import numpy as np
import pytest

import naive
import pseudomallows as pm
from helpers import interpreted
from pseudomallows.kernels.click_rows import ClickRows
from pseudomallows.kernels.footrule import memberships as kernels
from pseudomallows.recommendations.recommenders.memberships import (
    MAX_STATES,
    MembershipTables,
    n_states,
)
from pseudomallows.web.models.model import Clicked, Model
from webhelp import make_model


def make_tables(consensuses, alphas, shares=None):
    """Tables of one draw with one consensus for each cluster."""
    alphas = np.asarray(alphas, dtype=np.float64)
    shares = np.full(len(alphas), 1 / len(alphas)) if shares is None else np.asarray(shares)
    consensuses = np.asarray(consensuses, dtype=np.int32)[None]
    return MembershipTables(consensuses, alphas[None], np.log(shares)[None])


def find(clusters, codes, kernel=kernels.fill_log_weights):
    """Memberships of one user, and how many exact sums they took."""
    clicks = ClickRows(np.array([0, len(codes)]), np.asarray(codes, dtype=np.int32))
    logs = np.empty((1, clusters.n_clusters))
    clusters._make_room(len(codes))
    n_sums = kernel(clicks, clusters._model, clusters._tables, clusters.n_clusters, logs)
    return shares_of(logs[0]), n_sums


def walked(model, places):
    """Log of the sum over the others at clicks behind place c, step by step."""
    room = kernels.room_to_leap(model).back
    room.places[: len(places)] = places
    n_first = int((places < len(places)).sum())
    walk = kernels.walk_at(model.walks, 0)
    return kernels.sum_back(len(places), n_first, len(places), walk, room)


def shares_of(logs):
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


def exact_logs(codes, consensuses, alphas):
    """By sums over whole lines, step by step."""
    n_items = len(consensuses[0])
    prefs = pm.Preferences.from_clicks([[code in set(codes) for code in range(n_items)]])
    pairs = zip(consensuses, alphas, strict=True)
    return np.array([pm.click_log_likelihood(prefs, *pair)[0] for pair in pairs])


@pytest.mark.kernel
@pytest.mark.parametrize("codes", [[], [3], [0, 2, 4], [0, 1, 2, 3, 4]])
@pytest.mark.parametrize("alphas", [[0.0, 2.0, 7.0], [1.0, 20.0, 60.0]])
def test_memberships_are_those_of_the_definition(codes, alphas):
    rng = np.random.default_rng(1)
    consensuses = [(rng.permutation(5) + 1).tolist() for _ in range(3)]
    clusters, shares = make_tables(consensuses, alphas, [0.2, 0.3, 0.5]), np.array([0.2, 0.3, 0.5])
    pairs = zip(consensuses, alphas, strict=True)
    weights = shares * [naive.click_likelihood(codes, *pair) for pair in pairs]
    for kernel in (kernels.fill_log_weights, interpreted(kernels.fill_log_weights)):
        found, _ = find(clusters, codes, kernel)
        assert found == pytest.approx(
            weights / weights.sum(), rel=1e-9, abs=3 * np.exp(-kernels.FAR)
        )


CASES = [(40, 3.0), (40, 1.0), (40, 30.0), (200, 20.0), (200, 8.0), (200, 5.0), (200, 2.0)]


def odd_clicks(n_items, rng):
    """Clicks of many shapes: anywhere, near the top, in a row, at the end, none, all."""
    for n_clicks in (0, 1, 2, 5, 12, n_items // 3, n_items - 1, n_items):
        first = int(rng.integers(n_items - n_clicks + 1))
        near = min(n_items, 2 * n_clicks + 3)
        yield np.sort(rng.permutation(n_items)[:n_clicks])
        yield np.sort(rng.permutation(near)[:n_clicks])
        yield np.arange(first, first + n_clicks)
        yield np.arange(n_items - n_clicks, n_items)


@pytest.mark.kernel
@pytest.mark.parametrize(("n_items", "alpha"), CASES)
def test_sums_are_those_over_whole_lines_and_below_their_bounds(n_items, alpha):
    """Two clusters of one law each, so that both sums are made; one consensus is the identity."""
    if not hasattr(kernels.fill_log_weights, "py_func") and n_items > 40:
        pytest.skip("slow without compilation")
    rng = np.random.default_rng(2)
    clusters = make_tables([np.arange(1, n_items + 1)], [alpha])
    part, highest = np.empty((2, 1))
    for codes in odd_clicks(n_items, rng):
        codes = codes.astype(np.int32)
        clusters._make_room(len(codes))
        model, tables = clusters._model, clusters._tables
        room = kernels.room_to_leap(model)
        kernels.fill_parts(codes, model, tables, room.back, part, highest)
        found = part[0] + kernels.sum_others(codes, 0, model, tables, room)
        exact = exact_logs(codes, [np.arange(1, n_items + 1)], [alpha])[0]
        assert found == pytest.approx(exact, rel=1e-12, abs=1e-9)
        assert highest[0] >= exact - 1e-9
        assert part[0] + walked(model, np.sort(codes)) == pytest.approx(exact, rel=1e-12, abs=1e-9)


@pytest.mark.kernel
def test_leaps_are_taken_where_they_are_exact_and_refused_where_they_are_not():
    taken, places, rows = [], np.arange(30, 180, 5), np.empty((3, 204))
    for alpha in (20.0, 4.0):
        clusters = make_tables([np.arange(1, 201)], [alpha])
        clusters._make_room(30)
        value = kernels.leap_others(places, 30, 0, 200, clusters._tables, 0, rows)
        exact = walked(clusters._model, places)
        taken.append(value > -np.inf)
        if taken[-1]:
            assert value == pytest.approx(exact, abs=1e-9)
    assert taken == [True, False]


@pytest.mark.kernel
def test_bounds_spare_sums_and_cost_no_more_than_stated():
    rng, n_items, n_clusters = np.random.default_rng(3), 60, 8
    consensuses = np.array([rng.permutation(n_items) + 1 for _ in range(n_clusters)])
    alphas = np.linspace(15, 30, n_clusters)
    clusters, all_sums = make_tables(consensuses, alphas), 0
    for user in range(20):
        codes = np.sort(rng.permutation(n_items)[:4])
        if user % 2:
            codes = np.sort(np.argsort(consensuses[user % n_clusters])[[0, 1, 3, 5]])
        found, n_sums = find(clusters, codes)
        exact = shares_of(exact_logs(codes, consensuses, alphas))
        assert np.abs(found - exact).max() < n_clusters * np.exp(-kernels.FAR)
        kept = found > 0
        assert found[kept] == pytest.approx(exact[kept], rel=2e-5)
        assert (exact[~kept] < np.exp(-kernels.FAR)).all()
        all_sums += n_sums
    assert all_sums < 20 * n_clusters / 2


def test_tables_grow_with_the_clicks_and_the_answers_do_not_change():
    rng = np.random.default_rng(4)
    consensuses = np.array([rng.permutation(80) + 1 for _ in range(3)])
    one, other = (make_tables(consensuses, [10.0, 20.0, 30.0]) for _ in range(2))
    few, many = np.arange(0, 80, 20), np.arange(0, 80, 3)
    before = find(one, few)[0]
    find(one, many)
    assert one._tables[0].shape[1] > other._tables[0].shape[1]
    assert (find(one, few)[0] == before).all()
    assert (find(other, few)[0] == before).all()


@pytest.mark.kernel
def test_a_flat_law_among_sharp_ones_is_summed_step_by_step():
    rng, alphas = np.random.default_rng(6), [0.5, 40.0]
    consensuses = np.array([rng.permutation(150) + 1 for _ in range(2)])
    clusters = make_tables(consensuses, alphas)
    assert clusters._sizes.max() > MAX_STATES > clusters._sizes.min()
    for codes in ([3, 50, 120], np.argsort(consensuses[1])[:3]):
        expected = shares_of(exact_logs(codes, consensuses, alphas))
        assert find(clusters, np.sort(codes))[0] == pytest.approx(
            expected, abs=2 * np.exp(-kernels.FAR)
        )


def test_states_that_do_not_count_are_few_for_sharp_laws_and_none_for_flat_ones():
    assert n_states(200, 5.0) < 5
    assert n_states(200, 0.1) < 25
    assert n_states(200, 0.0) == 101


@pytest.mark.kernel
def test_shares_leave_out_the_least_and_sum_to_one():
    rng = np.random.default_rng(5)
    found = rng.dirichlet(np.full(6, 0.05), (3, 40))  # chain, row, cluster
    weights = np.array([0.5, 0.3, 0.2])
    shares, means = np.empty((40, 18)), np.empty((40, 6))
    kernels.share_out(found, weights, 0.01, shares, means)
    assert means == pytest.approx(np.einsum("c,cuk->uk", weights, found))
    for row in range(40):
        full = (weights[:, None] * found[:, row]).ravel()
        left_out = shares[row] == 0
        assert full[left_out].sum() < 0.01
        least = full[~left_out].min()
        assert full[left_out].sum() + least >= 0.01
        assert (full[left_out] <= least).all()
        assert shares[row] == pytest.approx(np.where(left_out, 0, full) / full[~left_out].sum())


@pytest.mark.parametrize("more", [{}, {"method": "mcmc", "n_chains": 2}])
def test_one_user_gets_what_many_get_to_the_bit(tmp_path, more):
    posterior = make_model(tmp_path / "m.pm", **({"method": "pseudo"} | more), n_clusters=3)
    served, rng = Model(posterior, 1), np.random.default_rng(1)
    n_items = posterior.n_items
    lists = [np.sort(rng.permutation(n_items)[:size]) for size in range(n_items)]
    names = {user: posterior.items[codes].tolist() for user, codes in enumerate(lists)}
    together = pm.recommend(posterior, 3, clicks=names)
    means = pm.recommendations.memberships(posterior, names)
    for user, codes in enumerate(lists):
        items, chances, memberships = served.best(Clicked(codes.astype(np.int32)), 3)
        assert items == together.items[user].tolist()
        assert np.array_equal(chances, together.probabilities[user], equal_nan=True)
        assert memberships == means[user].tolist()
