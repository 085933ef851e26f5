"""Tables of the matched law, the tally they read, and the users of a chain in blocks."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import naive
import pseudomallows as pm
from pseudomallows.kernels.footrule.likelihood import own_log_likelihoods
from pseudomallows.latent import matched
from pseudomallows.latent.clicks import ClickPopulation
from pseudomallows.latent.matched import (
    LOWEST,
    SHARPEST,
    STEP,
    ClusterLaws,
    MatchedTables,
    MatchedUsers,
    Relabel,
    SizeTally,
)
from pseudomallows.latent.registry import make_population

CLICKS = [[0, 2], [1], [2, 3], [2], [0, 1, 3], [2, 0], [4]]
CENTERS = np.array([(1, 2, 3, 4, 5), (5, 3, 4, 2, 1), (2, 5, 1, 3, 4)], dtype=np.int32)
ALPHAS, SHARES = np.array([1.0, 4.0, 9.0]), np.array([0.5, 0.2, 0.3])


def preferences(rows=CLICKS, weights=None, n_items=5):
    prefs = pm.Preferences.from_clicks(dict(enumerate(rows)), items=range(n_items))
    if weights is None:
        return prefs
    return pm.Clicks(np.array(weights), prefs.users, prefs.items, prefs.starts, prefs.codes)


def users_of(prefs, n_clusters=1, executor=None):
    population = make_population(prefs, executor or pm.Threads(1))
    tables = MatchedTables(population.n_items, population.click_sizes.sizes)
    return MatchedUsers(population, tables, n_clusters)


def tally_of(prefs):
    """Of all users."""
    users = users_of(prefs)
    return users.begin(np.zeros(users.population.n_rows, dtype=np.int32))[0]


def made_directly(tables, alpha):
    """A table at an alpha, whether it is on the grid or not."""
    return tables._make(alpha, pm.Threads(1))


# tables


def relative_error(tables, alpha):
    exact = made_directly(tables, alpha)
    return (np.abs(tables.at(alpha) - exact) / (1 + np.abs(exact))).max()


@pytest.mark.parametrize(
    ("n_items", "sizes"),
    [(2, [1]), (3, [1, 2]), (8, range(1, 8)), (50, [1, 2, 10, 25, 49]), (200, [1, 20, 100])],
)
def test_tables_between_grid_points_err_by_no_more_than_they_say(n_items, sizes):
    tables = MatchedTables(n_items, np.array(sizes))
    first = math.floor(math.log(LOWEST / 5) / STEP)
    last = math.floor(math.log(10 * n_items) / STEP)  # a little beyond the last grid point
    places = [first + 3 * k + 0.5 for k in range((last - first) // 3)]
    errors = [relative_error(tables, math.exp(place * STEP)) for place in places]
    assert max(errors) < 2e-6


def test_tables_of_fifty_items_err_absolutely_by_1e_5():
    tables = MatchedTables(50, np.array([1, 2, 5, 10, 25, 40, 49]))
    for alpha in np.exp(np.arange(-4.05, math.log(SHARPEST * 50), 0.2)):
        assert np.abs(tables.at(alpha) - made_directly(tables, alpha)).max() < 1e-5


def test_fewer_points_would_err_more(monkeypatch):
    tables = MatchedTables(50, np.array([1, 25]))
    monkeypatch.setattr(matched, "POINTS", (0, 1))
    monkeypatch.setattr(matched, "DIVISORS", (-1, 1))
    assert relative_error(tables, math.exp(2.05)) > 1e-4


@pytest.mark.parametrize("n_items", [2, 8, 50])
def test_tables_are_continuous_at_both_ends_of_the_grid(n_items):
    tables = MatchedTables(n_items, np.array(sorted({1, n_items // 2, n_items - 1})))
    for edge in (LOWEST, SHARPEST * n_items):
        below, above = tables.at(edge * (1 - 1e-10)), tables.at(edge * (1 + 1e-10))
        assert below == pytest.approx(above, rel=1e-7, abs=1e-9)


def test_tables_are_linear_at_the_ends():
    tables = MatchedTables(8, np.arange(1, 8))
    assert (tables.at(0.0) == 0).all()
    assert tables.at(LOWEST / 2) == pytest.approx(tables.at(LOWEST) / 2)
    sharp = SHARPEST * 8
    middle = (tables.at(2 * sharp) + tables.at(4 * sharp)) / 2
    assert tables.at(3 * sharp) == pytest.approx(middle, rel=1e-12)


@pytest.mark.parametrize("n_items", [2, 3, 50, 1000])
def test_tables_are_finite_and_fall_with_the_rank_at_any_alpha(n_items):
    tables = MatchedTables(n_items, np.array(sorted({1, n_items // 2, n_items - 1})))
    for alpha in (1e-12, 0.01, 3.3, 10_000.0, 1e9):
        table = tables.at(alpha)
        assert np.isfinite(table).all()
        assert (np.diff(table, axis=1) < 1e-18).all()


@pytest.mark.slow
def test_tables_of_five_thousand_items_are_finite():
    tables = MatchedTables(5000, np.array([1, 2500, 4999]))
    for alpha in (3.3, 10_000.0):
        assert np.isfinite(tables.at(alpha)).all()
        assert (np.diff(tables.at(alpha), axis=1) < 0).all()


def test_tables_made_beforehand_or_side_by_side_are_the_same():
    sizes = np.arange(1, 30)
    alone, prepared = MatchedTables(30, sizes), MatchedTables(30, sizes, pm.Threads(2))
    prepared.prepare(np.array([3.3, 70.0]))
    known = set(prepared._tables)
    for alpha in (3.3, 3.6, 70.0):
        assert (alone.at(alpha) == prepared.at(alpha)).all()
    assert set(prepared._tables) == known


# the tally


def test_a_tally_counts_the_clicks_of_each_item_by_their_number():
    tally = tally_of(preferences())
    assert tally.tables.sizes.tolist() == [1, 2, 3]
    counts = np.zeros((3, 5), dtype=int)
    for clicks in CLICKS:
        counts[len(clicks) - 1, clicks] += 1
    assert (tally.counts == counts).all()
    assert tally.n_users.tolist() == [3, 3, 1]
    assert tally.log_sets == pytest.approx(3 * math.log(5) + 4 * math.log(10))
    assert not tally.is_empty
    assert SizeTally(tally.tables, 0 * tally.counts).is_empty


def test_tallies_add_up_over_blocks_and_weights_count_as_rows(monkeypatch):
    prefs = pm.simulate_clicks(700, 6, 4, 2, rng=1).preferences
    whole = tally_of(prefs).counts
    for n_blocks, block in ((1, 10_000), (50, 1)):
        monkeypatch.setattr(matched, "N_BLOCKS", n_blocks)
        monkeypatch.setattr(matched, "BLOCK", block)
        users = users_of(prefs)
        assert len(users._places) == n_blocks
        tally = users.begin(np.zeros(users.population.n_rows, dtype=np.int32))[0]
        assert (tally.counts == whole).all()
    one, two = tally_of(preferences()), tally_of(preferences(weights=[1, 3, 2, 1, 1, 5, 1]))
    repeated = [CLICKS[row] for row in np.repeat(range(7), [0, 2, 1, 0, 0, 4, 0])]
    three = tally_of(preferences([*CLICKS, *repeated]))
    assert (two.counts == three.counts).all()
    assert (two.counts != one.counts).any()
    assert ((one + two).counts == one.counts + two.counts).all()
    assert two.log_sets == pytest.approx(three.log_sets)


def matched_by_definition(clicks, consensus, table, sizes):
    """Log likelihood of one user: the log weights of the clicks over the number of all sets."""
    of_size = table[sizes.tolist().index(len(clicks))]
    sum_of_weights = math.fsum(of_size[consensus[item] - 1] for item in clicks)
    return sum_of_weights - math.log(math.comb(len(consensus), len(clicks)))


@pytest.mark.parametrize("alpha", [0.0, 0.002, 0.7, 3.3, 25.0, 400.0])
def test_costs_curve_and_log_likelihood_agree_with_a_sum_over_users(alpha):
    tally = tally_of(preferences())
    table, sizes = tally.tables.at(alpha), tally.tables.sizes
    consensus = CENTERS[1]
    total = sum(matched_by_definition(clicks, consensus, table, sizes) for clicks in CLICKS)
    assert tally.curve(consensus)(alpha) == pytest.approx(total)
    cost = tally.costs(alpha)[np.arange(5), consensus - 1].sum()
    assert -cost - tally.log_sets == pytest.approx(total)


def test_the_probabilities_of_all_sets_of_a_size_sum_to_1():
    for size, alpha in itertools.product((1, 2, 3, 4), (0.001, 0.7, 3.3, 100.0)):
        sets = list(itertools.combinations(range(5), size))
        tables = MatchedTables(5, np.array([size]))
        logs = [matched_by_definition(s, CENTERS[2], tables.at(alpha), tables.sizes) for s in sets]
        assert math.fsum(map(math.exp, logs)) == pytest.approx(1, abs=1e-5)


def test_the_best_consensus_has_the_largest_matched_likelihood():
    tally = tally_of(preferences())
    values = {c: tally.curve(np.array(c))(3.0) for c in naive.all_rankings(5)}
    assert tally.curve(tally.best(3.0))(3.0) == pytest.approx(max(values.values()))


@pytest.mark.parametrize(("n_items", "alpha"), [(50, 5.0), (50, 30.0), (200, 10.0)])
def test_the_matched_likelihood_is_near_the_exact_one_near_the_consensus(n_items, alpha):
    data = pm.simulate_clicks(200, n_items, alpha, 5, rng=1)
    consensus = data.consensus
    exact = pm.click_log_likelihood(data.preferences, consensus, alpha)
    tally = tally_of(data.preferences)
    table, sizes = tally.tables.at(alpha), tally.tables.sizes
    rows = [data.preferences.clicks_of(row).tolist() for row in range(200)]
    informative = [0 < len(row) < n_items for row in rows]
    near = [matched_by_definition(r, consensus, table, sizes) for r in rows if 0 < len(r) < n_items]
    errors = exact[informative] - near
    assert errors.std() < 0.1
    assert abs(errors.sum()) < 3
    far = (n_items + 1 - consensus).astype(np.int32)
    exact = pm.click_log_likelihood(data.preferences, far, alpha)[informative]
    near = [matched_by_definition(r, far, table, sizes) for r in rows if 0 < len(r) < n_items]
    assert (exact - near).std() > 5 * errors.std()  # elsewhere it is a proposal only


# users with labels


LABELS = np.array([0, 1, 2, 0, 1, 2, 2], dtype=np.int32)


def log_weights_of(tables, laws):
    pairs = zip(laws.ranks, laws.alphas, strict=True)
    return np.stack([tables.at(alpha)[:, ranks - 1] for ranks, alpha in pairs], axis=2).copy()


def relabel_of(users, laws, is_exact, keeps, order=(0, 1, 2), number=1):
    weights = log_weights_of(users.tables, laws)
    exact = laws if is_exact else None
    return Relabel(3, number, np.array(order), weights, np.log(SHARES), exact, keeps)


def exact_logs():
    """``logs[user, cluster]`` of the share times the likelihood."""
    return np.array(
        [
            [
                math.log(share * naive.click_likelihood(clicks, center, alpha))
                for center, alpha, share in zip(CENTERS, ALPHAS, SHARES, strict=True)
            ]
            for clicks in CLICKS
        ]
    )


def test_exact_log_likelihoods_of_clusters_are_those_of_their_users():
    users, laws = users_of(preferences(), 3), ClusterLaws(CENTERS, ALPHAS)
    tallies = users.begin(LABELS)
    for cluster, tally in enumerate(tallies):
        assert tally.n_users.sum() == (cluster == LABELS).sum()
    logs = exact_logs() - np.log(SHARES)
    wanted = [logs[cluster == LABELS, cluster].sum() for cluster in range(3)]
    assert users.log_likelihoods(laws) == pytest.approx(wanted)


def test_exact_memberships_equal_enumeration():
    """But for clusters that count for less than exp(-10) by the matched law."""
    users, laws = users_of(preferences(), 3), ClusterLaws(CENTERS, ALPHAS)
    users.begin(LABELS)
    users.log_likelihoods(laws)
    users.take_proposed()
    drawn = users.relabel(relabel_of(users, laws, True, True), np.ones(3, dtype=bool))
    logs = exact_logs()
    sums = np.logaddexp.reduce(logs, axis=1)
    assert users.gather_memberships() == pytest.approx(np.exp(logs - sums[:, None]), abs=1e-4)
    assert drawn.log_likelihood == pytest.approx(sums.sum(), abs=1e-4)
    labels = users.gather_labels()
    own = exact_logs()[np.arange(7), labels] - np.log(SHARES)[labels]
    wanted = [own[labels == cluster].sum() for cluster in range(3)]
    assert drawn.values == pytest.approx(wanted)
    assert sum(tally.n_users.sum() for tally in drawn.tallies) == 7


def test_matched_memberships_equal_the_definition():
    users, laws = users_of(preferences(), 3), ClusterLaws(CENTERS, ALPHAS)
    users.begin(LABELS)
    drawn = users.relabel(relabel_of(users, laws, False, True), np.ones(3, dtype=bool))
    tables = [users.tables.at(alpha) for alpha in ALPHAS]
    logs = np.array(
        [
            [
                matched_by_definition(clicks, center, table, users.tables.sizes)
                for center, table in zip(CENTERS, tables, strict=True)
            ]
            for clicks in CLICKS
        ]
    )
    logs += np.log(SHARES)
    sums = np.logaddexp.reduce(logs, axis=1)
    assert users.gather_memberships() == pytest.approx(np.exp(logs - sums[:, None]))
    sets = sum(tally.log_sets for tally in drawn.tallies)
    assert drawn.log_likelihood - sets == pytest.approx(sums.sum(), abs=1e-6)


def test_exact_and_matched_likelihood_are_compared_with_the_labels_summed_out():
    users, laws = users_of(preferences(), 3), ClusterLaws(CENTERS, ALPHAS)
    users.begin(LABELS)
    exact, near = users.compare(relabel_of(users, laws, True, False))
    assert exact == pytest.approx(np.logaddexp.reduce(exact_logs(), axis=1).sum(), abs=1e-4)
    drawn = users.relabel(relabel_of(users, laws, False, True), np.ones(3, dtype=bool))
    assert near == pytest.approx(drawn.log_likelihood)


def shares_of_labels(is_exact, n_sweeps=4000):
    """``shares[user, label]`` of draws one after the other, the clusters being given; proposals
    are by weights that are far from right."""
    users, laws = users_of(preferences(), 3), ClusterLaws(CENTERS, ALPHAS)
    users.begin(LABELS)
    users.log_likelihoods(laws)
    users.take_proposed()
    counts = np.zeros((7, 3))
    for number in range(n_sweeps):
        how = relabel_of(users, laws, is_exact, False, number=number)
        how = replace(how, log_weights=0.5 * how.log_weights)
        users.relabel(how, np.zeros(3, dtype=bool))
        counts[np.arange(7), users.gather_labels()] += 1
    return counts / n_sweeps


def test_labels_are_exact_however_they_are_proposed():
    logs = exact_logs()
    wanted = np.exp(logs - np.logaddexp.reduce(logs, axis=1)[:, None])
    error = 4 * math.sqrt(3 * 0.25 / 4000)  # three proposals or fewer are worth one draw
    assert np.abs(shares_of_labels(is_exact=True) - wanted).max() < error
    assert np.abs(shares_of_labels(is_exact=False) - wanted).max() > 2 * error


def test_clusters_in_another_order_take_their_users_along():
    users, laws = users_of(preferences(), 3), ClusterLaws(CENTERS, ALPHAS)
    users.begin(LABELS)
    users.log_likelihoods(laws)
    order = [2, 0, 1]
    moved = ClusterLaws(CENTERS[order], ALPHAS[order])
    # A share of 0 would forbid all moves; weights that say "stay" do the same.
    weights = np.zeros((3, 5, 3))
    how = Relabel(3, 1, np.array(order), weights, np.array([-1e300, 0.0, -1e300]), moved, False)
    drawn = users.relabel(how, np.ones(3, dtype=bool))
    labels = users.gather_labels()
    stayed = labels != 1  # all others were given the cluster with all of the share
    assert (np.array(order)[labels[stayed]] == LABELS[stayed]).all()
    logs = exact_logs() - np.log(SHARES)
    own = logs[np.arange(7), np.array(order)[labels]]
    assert drawn.values == pytest.approx([own[labels == k].sum() for k in range(3)])


def test_labels_do_not_depend_on_blocks_or_threads(monkeypatch):
    prefs = pm.simulate_clicks(700, 5, [4, 8, 9], 2, rng=1).preferences
    laws, found = ClusterLaws(CENTERS, ALPHAS), []
    for n_blocks, block, n_threads in ((8, 256, 1), (8, 256, 2), (40, 1, 2)):
        monkeypatch.setattr(matched, "N_BLOCKS", n_blocks)
        monkeypatch.setattr(matched, "BLOCK", block)
        users = users_of(prefs, 3, pm.Threads(n_threads))
        users.begin(np.arange(users.population.n_rows, dtype=np.int32) % 3)
        users.log_likelihoods(laws)
        drawn = users.relabel(relabel_of(users, laws, True, True), np.ones(3, dtype=bool))
        counts = np.stack([tally.counts for tally in drawn.tallies])
        memberships, labels = users.gather_memberships(), users.gather_labels()
        found.append((counts, memberships, labels, drawn.values, drawn.log_likelihood))
    for other in found[1:]:
        for one, same in zip(found[0], other, strict=True):
            assert np.array_equal(one, same)


@pytest.mark.kernel
def test_each_row_has_the_likelihood_of_its_own_cluster():
    rng = np.random.default_rng(4)
    prefs = pm.Preferences.from_clicks(rng.random((12, 9)) < 0.4)
    population = ClickPopulation(prefs, pm.Threads(1))
    ranks = np.array([rng.permutation(9) + 1 for _ in range(3)], dtype=np.int32)
    laws = ClusterLaws(ranks, np.array([0.5, 4.0, 30.0]))
    labels = rng.integers(0, 3, population.n_rows).astype(np.int32)
    rows, found = np.arange(population.n_rows)[::-1].copy(), np.empty(population.n_rows)
    clicks = population.clicks_of_rows(slice(0, population.n_rows))
    own_log_likelihoods(clicks, rows, labels, laws.as_laws, laws.walks, found)
    for place, row in enumerate(rows):
        label = labels[place]
        law = (ranks[label], float(laws.alphas[label]))
        expected = population.row_log_likelihoods(slice(row, row + 1), *law)
        assert found[place] == pytest.approx(expected[0], rel=1e-12)
