"""The additive law of blocks: its tables by definition, how near the exact one it is,
and that the two agree at the anchor."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import pseudomallows as pm
from law_cases import ADDITIVE, clusters_of, labels_of, of_clicks, of_rankings, one_cluster, relabel
from pseudomallows.laws import block_laws as blocks
from pseudomallows.laws.block_laws import LOWEST, SHARPEST, STEP, number_blocks
from pseudomallows.laws.law import Clusters
from pseudomallows.laws.registry import make_law

SIX = {
    "top-2": [[1, 2, 0, 0, 0, 0], [2, 1, 0, 0, 0, 0], [0, 1, 2, 0, 0, 0], [1, 0, 0, 2, 0, 0]],
    "gaps": [[0, 2, 0, 4, 0, 0], [1, 0, 0, 0, 5, 0], [0, 0, 3, 0, 0, 6], [2, 1, 0, 4, 0, 0]],
    "tiers": [[1, 1, 3, 3, 5, 5], [3, 1, 1, 5, 3, 5], [1, 1, 1, 4, 4, 4], [1, 4, 1, 4, 1, 4]],
}
NEAR = [
    *ADDITIVE,
    *(
        of_rankings(f"{name} of six by {d}", SIX[name], d)
        for name in SIX
        for d in ("footrule", "hamming")
    ),
]
CLICKS_OF_SIX = of_clicks("clicks of six", [[0], [0, 1], [1, 2], [0, 1, 3], [5, 0]], "footrule", 6)
of_additive = pytest.mark.parametrize("case", ADDITIVE, ids=str)


# Tables


def table_by_definition(masks, n_items, alpha, distance):
    """``[block, rank - 1]`` of the additive law, by the rank probabilities of enumeration."""
    law = naive.mallows(range(1, n_items + 1), alpha, distance)
    probabilities, table = np.array(naive.marginals(law)), []
    for mask in masks:
        size = int(mask.sum())
        betas = probabilities[:, mask].sum(axis=1) / size
        constant = math.lgamma(size + 1) - size * np.log(1 - betas).sum()
        table.append(np.log(betas) + np.log(1 - betas) + constant / size)
    return np.array(table)


@pytest.mark.parametrize("alpha", [0.5, 2.0, 9.0])
@pytest.mark.parametrize("distance", ["footrule", "hamming"])
@pytest.mark.parametrize("name", SIX)
def test_tables_are_those_of_the_definition(name, distance, alpha):
    law = of_rankings(name, SIX[name], distance).law()
    is_full = np.zeros(len(SIX[name]), dtype=bool)
    masks, _ = number_blocks(np.array(SIX[name], dtype=np.int32), is_full)
    exact = table_by_definition(masks, 6, alpha, distance)
    assert law.make_table(alpha) == pytest.approx(exact, abs=1e-9)
    assert law.make_table(1.001 * alpha) != pytest.approx(exact, abs=1e-5)


@pytest.mark.parametrize("alpha", [0.5, 2.0, 9.0])
def test_tables_of_clicks_are_those_of_clicked_items_less_those_of_the_others(alpha):
    law = CLICKS_OF_SIX.law()
    assert law.sizes.tolist() == [1, 2, 3]
    found = law.make_table(alpha)
    for size, mine in zip(law.sizes.tolist(), found, strict=True):
        is_first = np.arange(6) < size
        table = table_by_definition([is_first, ~is_first], 6, alpha, "footrule")
        for clicked in naive.all_rankings(6)[:50]:  # any consensus: the ranks of clicked items
            ranks = np.array(clicked) - 1
            total = table[0, ranks[:size]].sum() + table[1, ranks[size:]].sum()
            assert mine[ranks[:size]].sum() == pytest.approx(total, abs=1e-9)


@of_additive
def test_ranks_of_full_rows_are_exact(case):
    if case.prefs.kind == "clicks":
        pytest.skip("clicks are never full")
    law, clusters = case.law(), clusters_of(case)
    full = [row for row, ranks in enumerate(case.rows) if 0 not in ranks and len(set(ranks)) == 5]
    assert len(full) == 2
    tables = law.tables(clusters)
    found = np.concatenate([block.log_likelihoods(tables) for block in law.blocks])[full]
    assert found == pytest.approx(case.logs(clusters)[full], abs=1e-4)  # read between tables


@pytest.mark.parametrize("distance", ["footrule", "hamming"])
def test_tables_between_grid_points_err_little(distance, monkeypatch):
    rankings = pm.simulate_rankings(30, 50, 5, top=10, rng=1).preferences

    def worst():
        law, errors = make_law(rankings, pm.Threads(1), distance), []
        for alpha in (0.01, 0.42, 3.3, 17.0, 120.0):
            exact = law.make_table(alpha)
            is_possible = exact > -500  # floats end at -690
            errors.append(np.abs(law.log_weights(alpha) - exact)[is_possible].max())
        return max(errors)

    by_six = worst()
    assert by_six < 1e-4
    monkeypatch.setattr(blocks, "lagrange", lambda x: [0.0, 0.0, 1 - x, x, 0.0, 0.0])
    assert worst() > 10 * by_six


@of_additive
def test_tables_are_continuous_at_both_ends_of_the_grid(case):
    law = case.law()
    sharp = SHARPEST * case.n_items
    for end, near in ((LOWEST, 1e-3), (sharp, 1e-3), (math.exp(7 * STEP), 1e-6)):
        low, high = (law.log_weights(end * times).copy() for times in (1 - 1e-9, 1 + 1e-9))
        assert low == pytest.approx(high, abs=near)


@of_additive
def test_the_factors_of_the_tables_sum_to_one(case):
    law = case.law()
    for alpha in (0.0, 1e-6, 0.5, 1.0, 3.21, 39.0, 41.0, 5000.0):
        assert sum(factor for _, factor in law.terms(alpha)) == pytest.approx(1, abs=1e-6)


def test_tables_made_side_by_side_are_the_same():
    case, alphas = ADDITIVE[0], np.geomspace(0.1, 30, 40).tolist()
    law, alone = case.law(), case.law()
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(law.log_weights, alphas))
    for alpha, table in zip(alphas, found, strict=True):
        assert (table == alone.log_weights(alpha)).all()


@st.composite
def tied_rows(draw):
    """Rows of four items in blocks: some items tie, some have no rank."""
    ranking = draw(st.permutations(range(1, 5)))
    cuts = draw(st.sets(st.integers(1, 4)))
    firsts = [max(cut for cut in {1, *cuts} if cut <= rank) for rank in ranking]
    hidden = draw(st.sets(st.sampled_from(sorted(set(firsts)))))
    return [0 if first in hidden else first for first in firsts]


@given(st.lists(tied_rows(), min_size=1, max_size=6))
def test_the_blocks_of_a_row_have_the_ranks_that_its_items_may_have(rows):
    rankings = np.array(rows, dtype=np.int32)
    is_full = np.array([len(set(row)) == 4 and 0 not in row for row in rows])
    masks, numbers = number_blocks(rankings, is_full)
    for row, mine in zip(rows, numbers, strict=True):
        for item in range(4):
            may_have = {full[item] for full in naive.completions(row)}
            assert set((np.flatnonzero(masks[mine[item]]) + 1).tolist()) == may_have


# How near it is


def distance_of_posteriors(case, alpha, times=1.0):
    """Total variation between the exact posterior and the additive one at so many times alpha."""
    (tally,), ways = case.law().tallies(None, 1), naive.all_rankings(case.n_items)
    rows = range(len(case.rows))
    likelihoods = np.array([[case.likelihood(row, way, alpha) for row in rows] for way in ways])
    exact = np.log(likelihoods) @ case.weights
    additive = [tally.curve(np.array(way, dtype=np.int32))(times * alpha) for way in ways]
    one, other = (np.exp(logs - np.max(logs)) for logs in (exact, np.array(additive)))
    return np.abs(one / one.sum() - other / other.sum()).sum() / 2


@pytest.mark.parametrize("alpha", [0.5, 2.0])
@pytest.mark.parametrize("case", NEAR, ids=str)
def test_the_additive_posterior_is_near_the_exact_one(case, alpha):
    assert distance_of_posteriors(case, alpha) < 0.07
    assert distance_of_posteriors(case, alpha, times=3.0) > 0.1


@pytest.mark.slow
def test_the_additive_posterior_of_clicks_on_six_items_is_near_the_exact_one():
    assert distance_of_posteriors(CLICKS_OF_SIX, 2.0) < 0.07
    assert distance_of_posteriors(CLICKS_OF_SIX, 2.0, times=3.0) > 0.1


# The anchor


def difference(law, case, consensus, alpha):
    """Additive minus exact log likelihood, for each user."""
    (tally,) = law.tallies(None, 1)
    exact = law.weigh(one_cluster(consensus, alpha), None)[0]
    return (tally.curve(consensus)(alpha) - exact) / law.n_users


@of_additive
def test_at_the_anchor_the_two_laws_agree_at_alphas_of_the_grid(case):
    law, (consensus, other, _) = case.law(), clusters_of(case).consensus
    law.anchor(one_cluster(consensus, 2.0), None)
    for alpha in np.exp(STEP * np.array([-30, 0, 7, 23])):
        assert difference(law, case, consensus, float(alpha)) == pytest.approx(0, abs=1e-9)
    for alpha in (LOWEST, SHARPEST * case.n_items):
        assert difference(law, case, consensus, alpha) == pytest.approx(0, abs=1e-4)
    assert abs(difference(law, case, other, 1.0)) > 1e-3
    assert abs(difference(case.law(), case, consensus, 1.0)) > 0.1  # without an anchor


@of_additive
@pytest.mark.parametrize("alpha", [0.004, 0.33, 1.05, 2.34567, 7.7, 21.0, 39.9])
def test_at_the_anchor_they_agree_between_alphas_of_the_grid(case, alpha):
    law, (consensus, _, _) = case.law(), clusters_of(case).consensus
    law.anchor(one_cluster(consensus, 2.0), None)
    assert difference(law, case, consensus, alpha) == pytest.approx(0, abs=2e-4)


@of_additive
@pytest.mark.parametrize("alpha", [0.0, 1e-12, 1e-4])
def test_at_the_anchor_they_agree_at_tiny_alphas(case, alpha):
    law, (consensus, _, _) = case.law(), clusters_of(case).consensus
    law.anchor(one_cluster(consensus, 2.0), None)
    assert difference(law, case, consensus, alpha) == pytest.approx(0, abs=2e-3)


@of_additive
@pytest.mark.parametrize("alpha", [45.0, 400.0, 1e6])
def test_at_the_anchor_they_agree_at_huge_alphas(case, alpha):
    law, (consensus, _, _) = case.law(), clusters_of(case).consensus
    law.anchor(one_cluster(consensus, 2.0), None)
    # one item out of its rank costs exp(-8) by Hamming where the table begins to be linear
    error = (1e-6 if case.distance == "footrule" else 3e-4) * alpha
    assert difference(law, case, consensus, alpha) == pytest.approx(0, abs=error + 1e-4)


@of_additive
def test_an_anchor_at_clusters_agrees_over_the_users_of_all(case):
    law, labels = case.law(), labels_of(case)
    clusters = clusters_of(case, (1.0,) * 3)
    law.anchor(clusters, labels)
    tallies, exact = law.tallies(labels, 3), law.weigh(clusters, labels)
    found = [t.curve(c)(1.0) for t, c in zip(tallies, clusters.consensus, strict=True)]
    assert sum(found) == pytest.approx(exact.sum(), abs=1e-6)
    assert law.tables(clusters).offset == pytest.approx([law.offset(0, k) for k in range(3)])
    swapped = law.weigh(clusters, (labels + 1) % 3).sum()
    assert sum(found) != pytest.approx(swapped, abs=1e-2)


@of_additive
def test_a_new_anchor_takes_the_place_of_the_old(case):
    law, (one, other, _) = case.law(), clusters_of(case).consensus
    law.anchor(one_cluster(one, 2.0), None)
    law.offset(1.0)
    law.anchor(one_cluster(other, 2.0), None)
    assert difference(law, case, other, 1.0) == pytest.approx(0, abs=1e-9)


@of_additive
def test_an_anchor_changes_neither_costs_nor_memberships(case):
    law, clusters = case.law(), clusters_of(case)
    (tally,) = law.tallies(None, 1)
    weights = np.array([0.2, 0.5, 0.3])
    before = tally.costs(2.0).copy(), law.memberships(clusters, weights, True)
    law.anchor(clusters._replace(alpha=np.full(3, 2.0)), labels_of(case))
    (tally,) = law.tallies(None, 1)
    assert (tally.costs(2.0) == before[0]).all()
    after = law.memberships(clusters, weights, True)
    assert after[0] == pytest.approx(before[1][0], abs=1e-4)


# Extremes


def far_apart(n_items=60, n_users=30):
    """Users who do not agree at all: a large alpha makes each as good as impossible."""
    rng = np.random.default_rng(1)
    full = np.array([rng.permutation(n_items) + 1 for _ in range(n_users)])
    return full, {
        "top": np.where(full <= 10, full, 0),
        "gaps": np.where(rng.random(full.shape) < 0.5, full, 0),
        "tiers": (full - 1) // 12 * 12 + 1,
        "clicks": full <= 8,
    }


@pytest.mark.parametrize("distance", ["footrule", "hamming"])
@pytest.mark.parametrize("name", ["top", "gaps", "tiers", "clicks"])
def test_no_alpha_is_too_small_or_too_large(name, distance):
    full, rows = far_apart()
    if name == "clicks":
        if distance == "hamming":
            pytest.skip("clicks by Hamming have no law")
        prefs = pm.Preferences.from_clicks(rows[name])
    else:
        prefs = pm.Preferences.from_rankings(rows[name])
    law, weights = make_law(prefs, pm.Threads(1), distance), np.array([0.5, 0.5])
    labels = (np.arange(30) % 2).astype(np.int32)
    with np.errstate(all="raise", under="ignore"):
        for alpha in (0.0, 1e-12, 1.0, 50.0, 479.0, 481.0, 1e4, 1e6, 1e9):
            clusters = Clusters(full[:2].astype(np.int32), np.array([alpha, 1.0]))
            law.anchor(clusters, labels)
            for tally, consensus in zip(law.tallies(labels, 2), clusters.consensus, strict=True):
                assert math.isfinite(tally.curve(consensus)(alpha))
                assert np.isfinite(tally.costs(alpha)).all()
                assert sorted(tally.best(alpha).tolist()) == list(range(1, 61))
            assert np.isfinite(law.weigh(clusters, labels)).all()
            assert np.isfinite(law.scores(clusters, weights)).all()
            for corrected in (True, False):
                memberships, value = law.memberships(clusters, weights, corrected)
                assert memberships.sum(axis=1) == pytest.approx(np.ones(30), abs=1e-5)
                assert math.isfinite(value)
            new = relabel(law, clusters, weights, labels, 1, 1, True)
            assert set(new.tolist()) <= {0, 1}


def test_probabilities_that_no_float_has_are_as_good_as_zero():
    sums, others = np.array([[0.0, 1.0, 1e-320]]), np.array([[1.0, 0.0, 1.0]])
    with np.errstate(all="raise"):
        logs = blocks.block_logs(sums, others, np.array([1]))
    assert np.isfinite(logs).all()
    assert logs[0, 0] == logs[0, 2]


@pytest.mark.parametrize("kind", ["clicks", "tops"])
def test_of_many_users_the_anchor_looks_at_some(kind, monkeypatch):
    """One of three: for them the two laws agree, for all of them nearly."""
    monkeypatch.setattr(blocks, "ANCHOR_ROWS", 30)
    if kind == "clicks":
        prefs = pm.simulate_clicks(90, 8, 3, 3, rng=1).preferences
    else:
        ranks = pm.simulate_rankings(90, 8, 3, rng=1).preferences.rankings
        prefs = pm.Preferences.from_rankings(np.where(ranks > 3, 0, ranks))
    law, consensus = make_law(prefs, pm.Threads(1)), np.arange(1, 9, dtype=np.int32)
    law.anchor(one_cluster(consensus, 2.0), None)
    some = make_law(prefs.take(np.arange(0, 90, 3)), pm.Threads(1))
    some.anchor(one_cluster(consensus, 2.0), None)
    assert law.offset(7) == pytest.approx(some.offset(7), abs=1e-12)
    (tally,), exact = law.tallies(None, 1), law.weigh(one_cluster(consensus, 2.0), None)[0]
    assert 0 < abs(tally.curve(consensus)(2.0) - exact) / 90 < 0.02
