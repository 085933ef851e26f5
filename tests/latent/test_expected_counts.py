"""Expected counts of latent rankings, against draws and against definitions."""

import warnings

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.engines.executors import Threads
from pseudomallows.kernels import groups
from pseudomallows.latent import expected_counts as expected
from pseudomallows.latent.clicks import ClickPopulation
from pseudomallows.latent.paper import PseudoDraw
from pseudomallows.latent.population import finish_draws
from pseudomallows.rankings import orderings_of

CONSENSUS = np.array([3, 1, 5, 2, 4], dtype=np.int32)
ROWS = {0: [0, 3], 1: [1, 2, 4], 2: [4], 3: [0, 3], 4: [2, 3]}


def latent_of(rows=ROWS, weights=None):
    prefs = pm.Preferences.from_clicks(rows, items=range(5), weights=weights)
    return ClickPopulation(prefs)


def expect(latent, alpha, order="uniform", consensus=CONSENSUS):
    tables = expected.GroupTables(alpha / latent.n_items, order, latent.click_sizes, 5)
    return expected.ExpectedDraw(latent, consensus, tables)


@pytest.mark.kernel
def test_positions_are_counted_by_size_and_click():
    latent = latent_of(weights=[1, 2, 3, 1, 1])
    law = expected.PositionLaw(CONSENSUS, latent.click_sizes.sizes)
    assert law.sizes.tolist() == [1, 2, 3]
    counts = law.count(latent, slice(0, 5))
    # positions of the items 0 to 4: 2, 0, 4, 1, 3
    wanted = np.zeros((6, 5))
    wanted[0, 3] = 3  # one click, of three people
    wanted[1, 1] = 3  # two clicks, 3 before 0 twice, 3 before 2
    wanted[2, 2], wanted[2, 4] = 2, 1
    wanted[3, 0] = wanted[4, 3] = wanted[5, 4] = 2  # three clicks, of two people
    assert (counts == wanted).all()


def counts_by_definition(rows, weights, tables, n_items, scales):
    """The sum over users and items of the row of a table: what the user's law says of the item."""
    counts, position = np.zeros((n_items, n_items)), CONSENSUS - 1
    for clicks, weight in zip(rows, weights, strict=True):
        clicked = sorted(clicks, key=position.__getitem__)
        others = sorted(set(range(n_items)) - set(clicks), key=position.__getitem__)
        for place, item in enumerate(clicked):
            counts[item, : len(clicked)] += scales[0] * weight * tables[len(clicked)][place]
        for place, item in enumerate(others):
            counts[item, len(clicked) :] += scales[1] * weight * tables[len(others)][place]
    return counts


@pytest.mark.kernel
def test_counts_come_from_the_tables_of_both_groups():
    rng = np.random.default_rng(1)
    tables = {size: rng.integers(0, 9, (size, size)).astype(np.uint16) for size in range(1, 5)}
    weights = [1, 2, 3, 1, 4]
    latent = latent_of(weights=weights)
    law = expected.PositionLaw(CONSENSUS, latent.click_sizes.sizes)
    positions, counts = law.count(latent, slice(0, 5)), np.zeros((5, 5))
    for size in (1, 2, 3):
        mine = positions[law.firsts[size] :][:size]
        groups.add_expected(
            mine, orderings_of(CONSENSUS), tables[size], tables[5 - size], 2, 3, counts
        )
    wanted = counts_by_definition(ROWS.values(), weights, tables, 5, scales=(2, 3))
    assert (counts == wanted).all()


@pytest.mark.parametrize("order", ["uniform", "v", "top_bottom"])
def test_expected_costs_are_the_mean_of_drawn_ones(order):
    latent, alpha = latent_of(), 4.0
    drawn = [
        finish_draws([PseudoDraw(latent, CONSENSUS, alpha, 1, n, order)], Threads(1))[0].tally.costs
        for n in range(4000)
    ]
    found = finish_draws([expect(latent, alpha, order)], Threads(1))[0].tally.costs
    error = np.std(drawn, axis=0) / np.sqrt(len(drawn))
    noise = 6 * error + 6 * np.std(drawn, axis=0) / np.sqrt(expected.FEWEST_DRAWS) + 0.5
    assert (np.abs(found - np.mean(drawn, axis=0)) <= noise).all()
    other = finish_draws([expect(latent, 3 * alpha, order)], Threads(1))[0].tally.costs
    assert (np.abs(other - np.mean(drawn, axis=0)) > noise).any()


def test_blocks_and_threads_leave_no_trace(monkeypatch):
    data = pm.simulate_clicks(300, 12, 6, 4, rng=1)
    found = []
    for n_threads, rows in ((1, 10_000), (2, 7), (1, 1)):
        monkeypatch.setattr(expected, "ROWS", rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pm.ConvergenceWarning)
            posterior = pm.fit(
                data.preferences,
                "pseudo",
                alpha=6,
                n_draws=30,
                update="expected",
                rng=1,
                executor=Threads(n_threads),
            )
        found.append(posterior.consensus)
    assert (found[0] == found[1]).all()
    assert (found[0] == found[2]).all()


def test_expected_and_sampled_agree():
    """Consensus, marginals and accuracy, on data that leave little open."""
    data = pm.simulate_clicks(4000, 15, 8, 5, rng=3)
    posteriors = []
    for update in ("sampled", "expected"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pm.ConvergenceWarning)
            options = {"alpha": 8, "n_draws": 100, "update": update, "rng": 1}
            posteriors.append(pm.fit(data.preferences, **options))
    consensus = [posterior.point_consensus() for posterior in posteriors]
    assert pm.footrule(*consensus) <= 4
    one, two = (posterior.rank_probabilities() for posterior in posteriors)
    assert 0.5 * np.abs(one - two).sum(axis=1).mean() < 0.2
    n_clicks = data.preferences.n_clicks[:, None]
    right = (data.rankings > n_clicks) & (data.rankings <= n_clicks + 3)
    shares = [
        np.take_along_axis(right, np.maximum(pm.recommend(p, 3).items, 0), axis=1).mean()
        for p in posteriors
    ]
    assert shares[0] == pytest.approx(shares[1], abs=0.01)


def test_with_clusters():
    data = pm.simulate_clicks(400, 10, [9, 9], 4, rng=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.ConvergenceWarning)
        posterior = pm.fit(
            data.preferences, "pseudo", n_clusters=2, n_draws=40, update="expected", rng=1
        )
    assert posterior.n_clusters == 2
    assert posterior.settings["options"]["update"] == "expected"


def test_too_many_items_are_refused(monkeypatch):
    monkeypatch.setattr(expected, "MAX_TABLES", 50)
    with pytest.raises(ValueError, match=r"needs tables of .* use update=.sampled."):
        pm.fit(
            pm.simulate_clicks(50, 10, 5, 3, rng=1).preferences, "pseudo", update="expected", rng=1
        )
    with pytest.raises(ValueError, match="update must be one of 'sampled', 'expected'"):
        pm.fit(pm.simulate_clicks(50, 10, 5, 3, rng=1).preferences, "pseudo", update="mean", rng=1)


def test_a_chain_that_never_moves_is_called_stuck():
    prefs = pm.simulate_clicks(2000, 20, 4, 4, rng=1).preferences
    options = {"alpha": 4, "n_draws": 100, "rng": 1}
    with pytest.warns(pm.ConvergenceWarning, match=r"chains \[0\] are stuck"):
        posterior = pm.fit(prefs, update="expected", **options)
    assert (posterior.consensus == posterior.consensus[:, :1]).all()
    with pytest.warns(pm.ConvergenceWarning) as caught:
        pm.fit(prefs, "pseudo", **options)  # sampled: it moves, if slowly
    assert not caught[0].message.stuck
