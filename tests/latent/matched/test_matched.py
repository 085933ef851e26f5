"""Tables of the matched law, the tally they read, and the users of a chain in blocks."""

import itertools
import math

import numpy as np
import pytest

import naive
import pseudomallows as pm
from pseudomallows.kernels.footrule.click_likelihood import own_log_likelihoods
from pseudomallows.latent.click_population import ClickPopulation
from pseudomallows.latent.matched import matched_tables as matched_tables
from pseudomallows.latent.matched import matched_users as matched_users
from pseudomallows.latent.matched.matched_tables import (
    LOWEST,
    SHARPEST,
    STEP,
    MatchedTables,
    SizeTally,
)
from pseudomallows.latent.matched.matched_users import (
    ClusterLaws,
    LabelDraw,
    MatchedLaws,
    MatchedUsers,
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
    tables = MatchedTables(population.n_items, population.click_sizes)
    return MatchedUsers(population, tables, n_clusters)


def tally_of(prefs):
    """Of all users."""
    users = users_of(prefs)
    return users.tallies(np.zeros(users.population.n_rows, dtype=np.int32))[0]


def made_directly(tables, alpha):
    """A table at an alpha, whether it is on the grid or not."""
    return MatchedTables(tables.n_items, tables.sizes).table(alpha)


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
    monkeypatch.setattr(matched_tables, "POINTS", (0, 1))
    monkeypatch.setattr(matched_tables, "DIVISORS", (-1, 1))
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
    for alpha in (3.3, 3.6, 70.0):
        assert (alone.at(alpha) == prepared.at(alpha)).all()


# the tally


def test_a_tally_counts_the_clicks_of_each_item_by_their_number():
    tally = tally_of(preferences())
    assert tally.law.sizes.tolist() == [1, 2, 3]
    counts = np.zeros((3, 5), dtype=int)
    for clicks in CLICKS:
        counts[len(clicks) - 1, clicks] += 1
    assert (tally.counts == counts).all()
    assert tally.n_users.tolist() == [3, 3, 1]
    assert tally.log_sets == pytest.approx(3 * math.log(5) + 4 * math.log(10))
    assert not tally.is_empty
    assert SizeTally(tally.law, 0 * tally.counts, 0 * tally.n_users).is_empty


def test_tallies_add_up_over_blocks_and_weights_count_as_rows(monkeypatch):
    prefs = pm.simulate_clicks(700, 6, 4, 2, rng=1).preferences
    whole = tally_of(prefs).counts
    for n_blocks, block in ((1, 10_000), (50, 1)):
        monkeypatch.setattr(matched_users, "N_BLOCKS", n_blocks)
        monkeypatch.setattr(matched_users, "BLOCK", block)
        users = users_of(prefs)
        tally = users.tallies(np.zeros(users.population.n_rows, dtype=np.int32))[0]
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
    table, sizes = tally.law.at(alpha), tally.law.sizes
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
    table, sizes = tally.law.at(alpha), tally.law.sizes
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


def matched_laws(users, laws, factor=1.0):
    constants = np.stack([users.law.constants(alpha) for alpha in laws.alphas], axis=1)
    return MatchedLaws(factor * log_weights_of(users.law, laws), constants, np.log(SHARES))


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


def matched_logs(users):
    """``logs[user, cluster]`` of the share times the matched likelihood."""
    tables, sizes = [users.law.at(alpha) for alpha in ALPHAS], users.law.sizes
    logs = [
        [
            matched_by_definition(clicks, center, table, sizes)
            for center, table in zip(CENTERS, tables, strict=True)
        ]
        for clicks in CLICKS
    ]
    return np.array(logs) + np.log(SHARES)


def test_exact_log_likelihoods_of_clusters_are_those_of_their_users():
    users, laws = users_of(preferences(), 3), ClusterLaws(CENTERS, ALPHAS)
    for cluster, tally in enumerate(users.tallies(LABELS)):
        assert tally.n_users.sum() == (cluster == LABELS).sum()
    logs = exact_logs() - np.log(SHARES)
    wanted = [logs[cluster == LABELS, cluster].sum() for cluster in range(3)]
    assert users.log_likelihoods(laws, LABELS) == pytest.approx(wanted)


def test_users_are_weighed_by_both_laws_with_the_labels_summed_out():
    users, laws = users_of(preferences(), 3), ClusterLaws(CENTERS, ALPHAS)
    sums = [np.logaddexp.reduce(logs, axis=1).sum() for logs in (exact_logs(), matched_logs(users))]
    assert abs(sums[0] - sums[1]) > 1e-4  # the errors of users nearly cancel here
    assert users.weigh(matched_laws(users, laws), laws) == pytest.approx(sums, abs=1e-6)
    assert users.weigh(matched_laws(users, laws), None) == pytest.approx([sums[1]] * 2, abs=1e-6)


@pytest.mark.parametrize("is_exact", [True, False])
def test_memberships_equal_enumeration(is_exact):
    users, laws = users_of(preferences(), 3), ClusterLaws(CENTERS, ALPHAS)
    users.weigh(matched_laws(users, laws), laws if is_exact else None)
    users.settle(np.arange(3), keeps=True)
    wanted = [
        np.exp(logs - np.logaddexp.reduce(logs, axis=1)[:, None])
        for logs in (exact_logs(), matched_logs(users))
    ]
    if not is_exact:
        wanted.reverse()
    assert users.gather_kept() == pytest.approx(wanted[0], abs=1e-6)
    assert users.gather_present() == pytest.approx(wanted[0], abs=1e-6)
    assert np.abs(wanted[0] - wanted[1]).max() > 1e-4


def test_memberships_are_kept_in_the_order_of_their_draw():
    users, laws = users_of(preferences(), 3), ClusterLaws(CENTERS, ALPHAS)
    users.weigh(matched_laws(users, laws), laws)
    users.settle(np.arange(3), keeps=True)
    first = users.gather_present()
    users.settle(np.array([2, 0, 1]), keeps=True)
    assert (users.gather_present() == first[:, [2, 0, 1]]).all()
    assert users.gather_kept() == pytest.approx(first + first[:, [2, 0, 1]])
    users.settle(np.array([1, 2, 0]), keeps=False)
    assert (users.gather_present() == first).all()
    assert users.gather_kept() == pytest.approx(first + first[:, [2, 0, 1]])
    users.remember(np.ones((7, 3)))
    assert (users.gather_kept() == 1).all()


def test_a_comparison_leaves_the_memberships_as_they_are():
    users, laws = users_of(preferences(), 3), ClusterLaws(CENTERS, ALPHAS)
    values, before = users.weigh(matched_laws(users, laws), laws), users.gather_present()
    other = ClusterLaws(CENTERS[::-1].copy(), ALPHAS)
    assert users.compare(matched_laws(users, laws), laws) == values
    assert users.compare(matched_laws(users, other), other) != values
    assert (users.gather_present() == before).all()


def shares_of_labels(factor, n_draws=4000):
    """``shares[user, label]`` of draws by tables times a factor."""
    users, laws = users_of(preferences(), 3), ClusterLaws(CENTERS, ALPHAS)
    counts, matched = np.zeros((7, 3)), matched_laws(users, laws, factor)
    for number in range(n_draws):
        counts[np.arange(7), users.draw_labels(matched, LabelDraw(3, number))] += 1
    return users, counts / n_draws


def test_labels_are_drawn_by_the_matched_law():
    users, found = shares_of_labels(1.0)
    logs = matched_logs(users)
    wanted = np.exp(logs - np.logaddexp.reduce(logs, axis=1)[:, None])
    error = 4 * math.sqrt(0.25 / 4000)
    assert np.abs(found - wanted).max() < error
    assert np.abs(shares_of_labels(0.5)[1] - wanted).max() > 2 * error


def test_the_tallies_of_a_draw_are_those_of_its_labels():
    users, laws = users_of(preferences(), 3), ClusterLaws(CENTERS, ALPHAS)
    matched, draw = matched_laws(users, laws), LabelDraw(3, 5)
    labels = users.draw_labels(matched, draw)
    found, n_unlikely = users.draw(matched, draw)
    for one, other in zip(found, users.tallies(labels), strict=True):
        assert (one.counts == other.counts).all()
    assert n_unlikely == (labels != matched_logs(users).argmax(axis=1)).sum() > 0


def test_nothing_depends_on_blocks_or_threads(monkeypatch):
    prefs = pm.simulate_clicks(700, 5, [4, 8, 9], 2, rng=1).preferences
    laws, found = ClusterLaws(CENTERS, ALPHAS), []
    for n_blocks, block, n_threads in ((8, 256, 1), (8, 256, 2), (40, 1, 2)):
        monkeypatch.setattr(matched_users, "N_BLOCKS", n_blocks)
        monkeypatch.setattr(matched_users, "N_DRAW_BLOCKS", n_blocks)
        monkeypatch.setattr(matched_users, "BLOCK", block)
        users = users_of(prefs, 3, pm.Threads(n_threads))
        matched, draw = matched_laws(users, laws), LabelDraw(3, 1)
        values = users.weigh(matched, laws)
        users.settle(np.arange(3), keeps=True)
        labels = users.draw_labels(matched, draw)
        counts = np.stack([tally.counts for tally in users.draw(matched, draw)[0]])
        own = users.log_likelihoods(laws, labels)
        found.append((counts, labels, own, values, users.gather_kept()))
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
