"""Where chains begin."""

import math

import numpy as np
import pytest

import naive
import pseudomallows as pm
from exact_posteriors import EXAMPLES, PRIOR, Exact
from pseudomallows.laws.law import Clusters, order_like
from pseudomallows.laws.registry import make_law
from pseudomallows.sampling import start
from pseudomallows.sampling.chain import Chain, Moves, new_state
from pseudomallows.sampling.priors import AlphaPrior
from pseudomallows.sampling.start import (
    best_on_grid,
    best_place,
    elsewhere,
    same_users,
    start_clusters,
    start_one,
    unbounded,
)
from pseudomallows.scores import rand_index

MOVES = Moves(n_moves=30, prior=PRIOR)
CAMPS = np.repeat([[3, 2, 5, 4, 1], [3, 4, 1, 2, 5], [1, 4, 2, 5, 3]], [55, 23, 40], axis=0)


def tally_of(prefs, distance="footrule"):
    (tally,) = make_law(prefs, pm.Threads(1), distance).tallies(None, 1)
    return tally


# One consensus


@pytest.mark.parametrize("name", ["full by kendall", "buckets", "clicks by kendall"])
def test_the_best_place_is_that_of_enumeration(name):
    example = EXAMPLES[name]
    (tally,) = example.law().tallies(None, 1)
    best, exact = best_place(tally, None, PRIOR), Exact(example)
    density = exact.place(0, exact.all_labels[0], 0)
    density = density / np.exp(np.arange(math.log(0.01), math.log(120.0), 0.02))  # of alpha
    center, _ = np.unravel_index(density.argmax(), density.shape)
    highest = math.log(density.max())
    mine = exact.rankings.tolist().index(best.consensus[0].tolist())
    assert math.log(density[mine].max()) == pytest.approx(highest)
    alpha = math.exp(math.log(0.01) + 0.02 * density[center].argmax())
    assert best.alpha[0] == pytest.approx(alpha, rel=0.1)


def test_an_alpha_that_is_given_is_kept():
    best = best_place(tally_of(pm.Preferences.from_rankings(CAMPS)), 2.5, None)
    assert best.alpha.tolist() == [2.5]


def test_the_best_alpha_stays_within_its_limits():
    assert best_on_grid(lambda alpha: alpha, 1.0) == pytest.approx(start.HIGHEST_START, rel=1.0)
    assert best_on_grid(lambda alpha: -alpha, 1.0) == pytest.approx(start.LOWEST_START, rel=1.0)


def test_elsewhere_finds_the_second_mode():
    """36 % of the posterior of these camps is not where the best ranking is."""
    tally = tally_of(pm.Preferences.from_rankings(CAMPS))
    best = best_place(tally, None, PRIOR)
    found = elsewhere(tally, best, 5, np.random.default_rng(1))
    assert found.alpha == best.alpha
    assert found.consensus[0].tolist() != best.consensus[0].tolist()
    behind = [tally.curve(each.consensus[0])(best.alpha[0]) for each in (best, found)]
    assert behind[0] - behind[1] < 5


def test_elsewhere_is_here_where_there_is_one_mode_only():
    rows = np.tile([1, 2, 3, 4, 5], (300, 1))
    tally = tally_of(pm.Preferences.from_rankings(rows))
    best = Clusters(np.array([[1, 2, 3, 4, 5]], dtype=np.int32), np.array([20.0]))
    found = elsewhere(tally, best, 5, np.random.default_rng(1))
    assert found.consensus.tolist() == best.consensus.tolist()


@pytest.mark.parametrize("where", ["map", "random", "elsewhere"])
@pytest.mark.parametrize("name", ["full by footrule", "gaps and ties", "clicks", "pairs", "votes"])
def test_every_law_has_all_starts(name, where):
    law = EXAMPLES[name].law()
    state = start_one(law, None, MOVES, where, np.random.default_rng(1))
    assert sorted(state.consensus[0].tolist()) == [*range(1, law.n_items + 1)]
    assert 0 < state.alpha[0] < 100
    assert len(state.latent) == (law.n_rows if law.has_latent else 0)
    again = start_one(law, None, MOVES, where, np.random.default_rng(1))
    assert np.array_equal(again.consensus, state.consensus)


# Is alpha bounded?


def chain_at(prefs, distance, consensus, alpha):
    law = make_law(prefs, pm.Threads(1), distance)
    where = Clusters(np.array([consensus], dtype=np.int32), np.array([alpha]))
    return Chain(
        law, new_state(law, where, np.ones(1), None, MOVES), MOVES, np.random.default_rng(1)
    )


@pytest.mark.parametrize(
    ("rows", "distance", "is_unbounded"),
    [
        ([[1, 2, 3, 4]] * 3, "footrule", True),
        ([[1, 2, 3, 4]] * 3, "kendall", True),
        ([[1, 2, 3, 4], [2, 1, 3, 4]], "footrule", False),
        ([[1, 2, 0, 0], [1, 0, 0, 0]], "footrule", True),  # one order agrees with both
        ([[1, 2, 0, 0], [2, 1, 0, 0]], "footrule", False),
        ([[1, 1, 3, 3], [1, 2, 3, 4]], "kendall", True),
        ([[1, 2, 0, 0], [0, 0, 0, 4]], "hamming", True),
    ],
)
def test_alpha_is_unbounded_if_nobody_disagrees(rows, distance, is_unbounded):
    chain = chain_at(pm.Preferences.from_rankings(rows), distance, [1, 2, 3, 4], 6.0)
    assert unbounded(chain) == [is_unbounded]


def test_clicks_bound_alpha_unless_nobody_disagrees():
    agreeing = pm.Preferences.from_clicks({0: [0], 1: [0, 1], 2: [0, 1, 2]}, items=range(4))
    others = pm.Preferences.from_clicks({0: [0], 1: [1], 2: [2, 3]}, items=range(4))
    for distance in ("footrule", "kendall"):
        assert unbounded(chain_at(agreeing, distance, [1, 2, 3, 4], 6.0)) == [True]
        assert unbounded(chain_at(others, distance, [1, 2, 3, 4], 6.0)) == [False]


# Clusters


KINDS = [f"{kind}{by}" for kind in ("full", "tops", "clicks") for by in ("", " by kendall")]


def kinds():
    made = pm.simulate_rankings(240, 8, [12.0, 12.0, 12.0], rng=1)
    top = np.where(made.preferences.rankings <= 5, made.preferences.rankings, 0)
    clicks = pm.simulate_clicks(400, 12, [25.0, 25.0], 4, rng=1)
    return {
        "full": (made.preferences, made.labels, "footrule"),
        "full by kendall": (made.preferences, made.labels, "kendall"),
        "tops": (pm.Preferences.from_rankings(top), made.labels, "footrule"),
        "tops by kendall": (pm.Preferences.from_rankings(top), made.labels, "kendall"),
        "clicks": (clicks.preferences, clicks.labels, "footrule"),
        "clicks by kendall": (clicks.preferences, clicks.labels, "kendall"),
    }


def best_start(name, n_threads=1):
    prefs, labels, distance = kinds()[name]
    law = make_law(prefs, pm.Threads(n_threads), distance)
    n_clusters, moves = labels.max() + 1, Moves(n_moves=80, prior=PRIOR)
    steps = []
    found = start_clusters(
        law, n_clusters, None, moves, np.random.default_rng(1), lambda: steps.append(1)
    )
    return *found, labels[prefs.is_informative], len(steps)


@pytest.mark.parametrize("name", KINDS)
def test_clusters_that_are_apart_are_found(name):
    state, comparison, labels, n_steps = best_start(name)
    assert rand_index(state.labels.astype(np.int64), labels.astype(np.int64)) > 0.7
    assert comparison.gap is None or comparison.gap >= 0
    assert comparison.n_starts >= start.LEAST_RUNS
    assert 0 <= comparison.same_users <= 1
    assert 0 < n_steps <= start.n_steps(2)
    assert state.weights.sum() == pytest.approx(1)


def test_the_start_of_clusters_is_the_same_on_two_threads():
    one, other = best_start("clicks"), best_start("clicks", 2)
    for mine, theirs in zip(one[0], other[0], strict=True):
        assert np.array_equal(mine, theirs)
    assert one[1] == other[1]


def test_many_rows_are_looked_at_in_part_first(monkeypatch):
    monkeypatch.setattr(start, "START_ROWS", 100)
    monkeypatch.setattr(start, "START_ROWS_EACH", 10)
    state, _, labels, _ = best_start("full")
    assert len(state.labels) == 240
    assert rand_index(state.labels.astype(np.int64), labels.astype(np.int64)) > 0.7


def test_a_split_mends_what_sweeps_cannot():
    """Two clusters were taken for one, and one for two."""
    prefs, labels, _ = kinds()["full"]
    law, rng, moves = make_law(prefs, pm.Threads(1)), np.random.default_rng(3), MOVES
    first = np.flatnonzero(labels == 0)
    wrong = np.where(labels == 0, 0, 2).astype(np.int32)
    wrong[first[::2]] = 1
    chain = start.begin(law, wrong, 3, 5.0, moves, rng)
    before = start.run_sweeps(chain, 5)
    mended = start.split_clusters(before, law, rng)
    assert mended.value > before.value + 50
    assert rand_index(mended.chain.state.labels.astype(np.int64), labels) > 0.7


def test_divisions_are_compared_whatever_the_clusters_are_called():
    one = np.array([0, 0, 1, 1, 2], dtype=np.int32)
    assert same_users(one, (2 - one).astype(np.int32)) == 1
    assert same_users(one, np.array([0, 0, 1, 2, 2], dtype=np.int32)) == pytest.approx(0.8)


@pytest.mark.parametrize("order", naive.all_rankings(3))
def test_clusters_are_ordered_like_a_reference(order):
    reference = np.random.default_rng(1).dirichlet([0.2] * 3, 50)
    places = np.array(order) - 1
    labels = reference[:, places].argmax(axis=1)
    assert order_like(reference, labels)[places].tolist() == [0, 1, 2]


@pytest.mark.parametrize("alpha", [None, 15.0])
def test_the_prior_of_alpha_and_an_alpha_reach_the_start_by_popular_items(alpha, monkeypatch):
    prefs = pm.simulate_clicks(300, 30, [20.0, 20.0], 4, rng=1).preferences
    law, seen = make_law(prefs, pm.Threads(1), "kendall"), []

    def spy(some, n_clusters, few_alpha, moves, *others):
        seen.append((some.n_items, few_alpha, moves.prior))
        return start_clusters(some, n_clusters, few_alpha, moves, *others)

    monkeypatch.setattr(start, "DENSE_ITEMS", 12)
    monkeypatch.setattr(start, "start_clusters", spy)
    moves = Moves(prior=AlphaPrior(3.0, 0.1) if alpha is None else None)
    state, _ = start_clusters(law, 2, alpha, moves, np.random.default_rng(1))
    expected = AlphaPrior(3.0, 0.25) if alpha is None else None
    assert seen == [(12, None if alpha is None else 6.0, expected)]
    assert state.consensus.shape == (2, 30)
    assert alpha is None or (state.alpha == alpha).all()
