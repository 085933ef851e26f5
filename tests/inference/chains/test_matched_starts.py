"""Where chains on the matched law start."""

import functools

import numpy as np
import pytest

import naive
import pseudomallows as pm
from pseudomallows.distributions.scores import rand_index
from pseudomallows.inference.chains import matched_starts
from pseudomallows.inference.chains.matched_cluster import MatchedProposals
from pseudomallows.inference.chains.matched_starts import (
    Comparison,
    MatchedStart,
    compare,
    guess_labels,
)
from pseudomallows.inference.priors import default_prior
from pseudomallows.latent.registry import make_population


@functools.cache
def clicked():
    return pm.simulate_clicks(600, 20, [8, 8, 8], 5, sizes=[300, 200, 100], rng=1)


def start_of(prefs, alpha=None, is_corrected=True, **options):
    population = make_population(prefs, pm.Threads(1))
    proposals = MatchedProposals(**options)
    prior = default_prior(population.n_items)
    return MatchedStart(population, alpha, proposals, prior, 1.0, is_corrected)


def test_one_cluster_starts_near_the_best_place():
    data = pm.simulate_clicks(200, 12, 6, 3, rng=1)
    chain = start_of(data.preferences).one("map", np.random.default_rng(1))
    assert chain.alpha[0] == pytest.approx(6, rel=0.3)
    assert naive.footrule(chain.consensus[0], data.consensus) <= 12
    assert chain.is_corrected
    other = start_of(data.preferences).one("random", np.random.default_rng(1))
    assert naive.footrule(other.consensus[0], data.consensus) > 12


def test_an_alpha_that_is_given_stays():
    prefs = pm.simulate_clicks(100, 12, [6, 6], 3, rng=1).preferences
    start = start_of(prefs, 3.5)
    assert (start.one("map", np.random.default_rng(1)).alpha == 3.5).all()
    assert (start.clusters(2, np.random.default_rng(1), lambda: None).alpha == 3.5).all()


def test_clusters_start_near_the_true_ones():
    chain = start_of(clicked().preferences).clusters(3, np.random.default_rng(2), lambda: None)
    labels = chain.snapshot().labels
    informative = clicked().preferences.is_informative
    assert rand_index(labels, clicked().labels[informative]) > 0.7
    assert sum(int(cluster.tally.n_users.sum()) for cluster in chain.clusters) == len(labels)


def test_splits_mend_two_clusters_that_were_taken_for_one():
    """Two labels on one true cluster, and one on two: sweeps alone stay there."""
    data, start = clicked(), start_of(clicked().preferences, is_corrected=False)
    truth = data.labels[data.preferences.is_informative]
    wrong = np.where(truth == 0, 0, 1).astype(np.int32)
    wrong[np.flatnonzero(truth == 0)[::2]] = 2
    chain = start.empty(3, np.random.default_rng(1))
    chain.begin(wrong)
    for cluster in chain.clusters:
        cluster.climb()
    for _ in range(8):
        chain.sweep(adapt=True)
    chain.ensure_likelihoods()
    before = chain.values.matched
    start._split(chain, start.population, np.random.default_rng(1))
    assert chain.values.matched >= before
    assert rand_index(chain.snapshot().labels, truth) > 0.7


def test_a_chain_goes_back_to_where_it_was():
    start = start_of(clicked().preferences, is_corrected=False)
    chain = start.empty(3, np.random.default_rng(1))
    chain.begin((np.arange(chain.population.n_rows) % 3).astype(np.int32))
    chain.sweep(adapt=True)
    chain.ensure_likelihoods()
    there, values = chain.snapshot(), chain.values
    chain.sweep(adapt=True)
    assert (chain.snapshot().labels != there.labels).any()
    chain.restore(there, values)
    for name in ("consensus", "alpha", "shares"):
        assert (getattr(chain, name) == getattr(there, name)).all()
    for label, cluster in enumerate(chain.clusters):
        assert cluster.tally.n_users.sum() == (there.labels == label).sum()
    assert chain.values == values
    chain.restore(there)
    chain.ensure_likelihoods()
    assert chain.values == values


def test_chains_begin_at_one_place_and_leave_it_each_in_its_own_way():
    start = start_of(clicked().preferences)
    best = start.clusters(3, np.random.default_rng(2), lambda: None)
    there = best.consensus
    chains = [start.begin_at(best, np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert (best.consensus == there).all()
    assert all(chain.is_corrected for chain in chains)
    assert (chains[0].consensus == chains[1].consensus).all()
    assert (chains[0].consensus != chains[2].consensus).any()
    for chain in chains:
        assert np.abs(chain.consensus - there).mean() < 4


def test_the_best_start_is_compared_with_the_next():
    start = start_of(clicked().preferences)
    start.clusters(3, np.random.default_rng(2), lambda: None)
    assert start.comparison is None
    best = start.clusters(3, np.random.default_rng(2), lambda: None, n_finalists=2)
    assert best.n_clusters == 3
    assert start.comparison.gap >= 0
    assert 0.5 < start.comparison.rand_index <= start.comparison.same_users <= 1


def test_divisions_are_compared_whatever_the_clusters_are_called():
    one = np.eye(3)[[0, 0, 0, 1, 1, 1, 2, 2]]
    other = np.eye(3)[[1, 1, 1, 2, 2, 0, 0, 0]]
    assert compare(one, one[:, [2, 0, 1]], 5.0) == Comparison(5.0, 1.0, 1.0)
    found = compare(one, other, 0.0)
    assert found.same_users == 7 / 8
    assert 0 < found.rand_index < 1


def test_labels_are_guessed_from_features():
    rng = np.random.default_rng(1)
    truth = np.repeat([0, 1], 30)
    features = rng.normal(size=(60, 2)) + 20 * truth[:, None]
    assert rand_index(guess_labels(features, 2, rng), truth) == 1.0


@pytest.mark.parametrize("n_clusters", [2, 5])
def test_more_clusters_than_users_are_no_trouble(n_clusters):
    prefs = pm.Preferences.from_clicks({0: [0], 1: [1], 2: [0, 1], 3: [2]}, items=range(4))
    chain = start_of(prefs).clusters(n_clusters, np.random.default_rng(1), lambda: None)
    assert chain.n_clusters == n_clusters
    chain.sweep(adapt=False)
    assert chain.shares.sum() == pytest.approx(1)


# large catalogues, by Kendall's distance


def sparse_clicks(n_users, n_items, n_clusters, rng):
    """Ten clicks a user by Zipf's law, of an order of each cluster's own; and the labels."""
    labels = rng.integers(n_clusters, size=n_users)
    orders = np.stack([rng.permutation(n_items) for _ in range(n_clusters)])
    sums = np.cumsum(1 / np.arange(1, n_items + 1))
    drawn = np.searchsorted(sums, rng.random((n_users, 10)) * sums[-1])
    rows = [sorted(set(orders[label][mine])) for label, mine in zip(labels, drawn, strict=True)]
    return pm.Preferences.from_clicks(dict(enumerate(rows)), items=range(n_items)), labels


@pytest.mark.parametrize("alpha", [None, 12.0])
def test_users_of_a_large_catalogue_are_sorted_by_its_most_clicked_items(alpha, monkeypatch):
    monkeypatch.setattr(matched_starts, "DENSE_ITEMS", 80)
    prefs, labels = sparse_clicks(900, 400, 3, np.random.default_rng(1))
    population = make_population(prefs, None, "kendall")
    how = (alpha, MatchedProposals(), default_prior(400), 1.0, True, "kendall")
    start = MatchedStart(population, *how)
    rng = np.random.default_rng(2)
    guess = start.guess(3, 2, rng, lambda: None)
    chain = start._by_popular_items(guess, rng)
    found = chain.snapshot().labels
    assert rand_index(found, labels) > 0.9
    assert start.comparison is not None
    for cluster in chain.clusters:  # the items of each are sorted by its clicks
        by_rank = cluster.tally.counts[0][np.argsort(cluster.consensus)]
        assert (np.diff(by_rank) <= 0).all()
        assert alpha is None or cluster.alpha == alpha
    chain = start.clusters(3, np.random.default_rng(2), lambda: None)
    assert rand_index(chain.snapshot().labels, labels) > 0.8  # labels that are drawn


def test_clicks_on_some_items_leave_out_rows_that_say_nothing_of_them():
    prefs = pm.Preferences.from_clicks([[1, 1, 0, 0, 1], [0, 0, 1, 1, 0], [1, 0, 0, 1, 1]])
    few = make_population(prefs, None, "kendall").of_items(np.array([0, 1, 4]))
    assert few.clicks.items.tolist() == [0, 1, 4]
    assert few.n_rows == 1  # all of the three, none of them, and two
    assert few.row_codes.tolist() == [0, 2]
