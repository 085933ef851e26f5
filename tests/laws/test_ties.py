"""Users who tie items: exact likelihood, exact draws, and fits, against enumeration."""

import functools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import pseudomallows as pm
from helpers import IS_COMPILED, choose, interpreted, p_value
from law_cases import one_cluster
from pseudomallows.kernels.footrule import latent_blocks as kernels
from pseudomallows.kernels.streams import Streams
from pseudomallows.laws.registry import make_law
from pseudomallows.sampling.chain import Chain, Moves, new_state

CONSENSUS = np.array([2, 5, 1, 3, 4], dtype=np.int32)
ROWS = [
    [1, 1, 3, 3, 5],
    [2, 2, 0, 0, 1],
    [0, 3, 3, 0, 0],
    [1, 2, 2, 2, 5],
    [4, 4, 1, 1, 3],
    [1, 1, 1, 1, 1],
]


@st.composite
def tied_rows(draw):
    """Rows of three to five items in blocks: some items tie, some have no rank."""
    n_items = draw(st.integers(3, 5))
    ranking = draw(st.permutations(range(1, n_items + 1)))
    cuts = draw(st.sets(st.integers(1, n_items)))
    firsts = [max(cut for cut in {1, *cuts} if cut <= rank) for rank in ranking]
    hidden = draw(st.sets(st.sampled_from(sorted(set(firsts)))))
    return [0 if first in hidden else first for first in firsts]


@pytest.mark.filterwarnings("ignore::pseudomallows.data.ZeroBasedWarning")
@given(tied_rows(), st.data(), st.sampled_from([0.0, 1.3, 30.0]))
def test_log_likelihood_equals_enumeration(row, data, alpha):
    consensus = data.draw(st.permutations(range(1, len(row) + 1)))
    prefs = pm.Preferences.from_rankings([row])
    found = pm.log_likelihood(prefs, consensus, alpha)
    exact = naive.likelihood(row, consensus, alpha)
    assert found == pytest.approx([math.log(exact)], abs=1e-10)


@pytest.mark.kernel
@pytest.mark.parametrize("alpha", [0.0, 1.0, 30.0])
def test_log_likelihood_of_some_rows_equals_enumeration(alpha):
    found = pm.log_likelihood(pm.Preferences.from_rankings(ROWS), CONSENSUS, alpha)
    exact = [naive.likelihood(row, CONSENSUS.tolist(), alpha) for row in ROWS]
    assert found == pytest.approx(np.log(exact), abs=1e-10)


def test_clicks_are_two_ties():
    rows = np.random.default_rng(1).random((20, 9)) < 0.4
    rows[:, 0], rows[:, 1] = True, False
    clicks = pm.Preferences.from_clicks(rows)
    ranks = np.where(rows, 1, rows.sum(axis=1, keepdims=True) + 1)
    tied = pm.Preferences.from_rankings(ranks)
    consensus = np.random.default_rng(2).permutation(9) + 1
    found = pm.log_likelihood(clicks, consensus, 3.0)
    assert found == pytest.approx(pm.log_likelihood(tied, consensus, 3.0), abs=1e-10)
    assert (found == pm.click_log_likelihood(clicks, consensus, 3.0)).all()


def log_permanent(items, ranks, consensus, rate):
    """Log of the sum over all ways to give `ranks` to `items`, set by set."""

    @functools.cache
    def total(place, free):
        if place == len(items):
            return 1.0
        return math.fsum(
            math.exp(-rate * abs(ranks[i] - consensus[items[place]]))
            * total(place + 1, free ^ 1 << i)
            for i in range(len(ranks))
            if free >> i & 1
        )

    return math.log(total(0, (1 << len(ranks)) - 1))


@pytest.mark.parametrize("alpha", [0.5, 12.0, 80.0])
def test_large_ties_far_from_their_ranks_are_exact_too(alpha):
    """20 items in ties of 8, 8 and 4 whose ranks lie elsewhere on the line than the items."""
    rng = np.random.default_rng(5)
    consensuses = [rng.permutation(20) + 1, np.arange(20, 0, -1), np.arange(1, 21)]
    row = np.repeat([1, 9, 17], [8, 8, 4])
    prefs = pm.Preferences.from_rankings([row])
    for consensus in consensuses:
        blocks = [(np.flatnonzero(row == first), first) for first in (1, 9, 17)]
        logs = [
            log_permanent(items, range(first, first + len(items)), consensus, alpha / 20)
            for items, first in blocks
        ]
        exact = math.fsum(logs) - pm.Mallows(consensus, alpha).log_partition
        assert pm.log_likelihood(prefs, consensus, alpha)[0] == pytest.approx(exact, rel=1e-11)


def latent_draws(row, alpha, n_draws, kernel=kernels.draw_latent):
    """One row of weight 1, drawn many times."""
    rankings, kept = np.array([row], dtype=np.int32), np.empty((1, 5), dtype=np.int32)
    one, counts = np.ones(1, dtype=np.int64), np.zeros((5, 5), dtype=np.int64)
    draws = np.empty((n_draws, 5), dtype=np.int64)
    for number in range(n_draws):
        streams = Streams(3, number, one * 0, one)
        kernel(streams, rankings, CONSENSUS, alpha / 5, counts, kept)
        draws[number] = kept[0]
    return draws, counts


@pytest.mark.kernel
@pytest.mark.parametrize("row", ROWS[:4])
def test_latent_rankings_follow_the_exact_law(row):
    whole = naive.mallows(CONSENSUS.tolist(), 1.5)
    law = naive.normalise({r: whole[r] for r in naive.completions(row)})
    draws, counts = latent_draws(row, 1.5, 2000)
    assert p_value(draws, law) > 1e-4
    drawn = np.stack([(draws == rank).sum(axis=0) for rank in range(1, 6)], axis=1)
    for item in range(5):
        is_known = row[item] > 0 and row.count(row[item]) == 1
        assert (counts[item] == (0 if is_known else drawn[item])).all()


@pytest.mark.parametrize("row", [row for row in ROWS[:4] if row != ROWS[0]])
def test_latent_rankings_at_another_alpha_are_caught(row):
    whole = naive.mallows(CONSENSUS.tolist(), 1.5)
    law = naive.normalise({r: whole[r] for r in naive.completions(row)})
    assert p_value(latent_draws(row, 3.5, 2000)[0], law) < 1e-6


@pytest.mark.kernel
def test_compiled_and_interpreted_draws_are_equal():
    for row in ROWS:
        compiled = latent_draws(row, 1.0, 20)
        plain = latent_draws(row, 1.0, 20, interpreted(kernels.draw_latent))
        assert all((a == b).all() for a, b in zip(compiled, plain, strict=True))


def costs(rows, weights=None, executor=None):
    law = make_law(pm.Preferences.from_rankings(rows, weights=weights), executor)
    (tally,) = law.tallies(None, 1)
    return tally.costs(2.0).tolist(), law.weigh(one_cluster(CONSENSUS, 2.0), None).tolist()


def test_a_weight_gives_the_same_bits_as_repeated_rows():
    weights = [2, 3, 4, 1, 2, 5]
    repeated = costs(np.repeat(ROWS, weights, axis=0))
    assert costs(ROWS, weights) == repeated
    assert costs(ROWS, weights, pm.Threads(1)) == repeated


@pytest.mark.kernel
def test_more_users_than_are_drawn_at_once_give_the_same_bits():
    many = 2500  # more than two times AT_ONCE
    one, rankings = np.ones(1, dtype=np.int64), np.array([ROWS[1]], dtype=np.int32)
    counts = np.zeros((2, 5, 5), dtype=np.int64)
    kept = np.empty((0, 5), dtype=np.int32)
    law = (CONSENSUS, 0.3)
    kernels.draw_latent(Streams(3, 1, one * 7, one * many), rankings, *law, counts[0], kept)
    each = np.repeat(rankings, many, axis=0)
    ones, users = np.ones(many, dtype=np.int64), 7 + np.arange(many)
    kernels.draw_latent(Streams(3, 1, users, ones), each, *law, counts[1], kept)
    assert (counts[0] == counts[1]).all()
    assert counts[0].sum() == 5 * many - many  # one rank of the row is known


def test_a_tie_of_all_changes_no_bit():
    assert costs(ROWS) == costs(ROWS[:5])


def test_a_tie_of_all_the_rest_is_what_is_not_ranked():
    tied, partial = [[1, 2, 2, 2, 2], [5, 1, 2, 2, 2]], [[1, 0, 0, 0, 0], [5, 1, 0, 0, 0]]
    for one, other in zip(costs(tied), costs(partial), strict=True):
        assert np.array(one) == pytest.approx(np.array(other), abs=1e-12)


# The posterior of the consensus

TIED = [[1, 1, 3, 3], [2, 2, 0, 0], [1, 2, 2, 4], [2, 1, 3, 4], [0, 0, 1, 0]]


def ends_of_sweeps(alpha, n_starts=4000 if IS_COMPILED else 2000):
    """Consensuses from the exact posterior at alpha = 1, one sweep each."""
    exact, rng = naive.posterior(TIED, 1.0), np.random.default_rng(2)
    law = make_law(pm.Preferences.from_rankings(TIED), pm.Threads(1))
    moves = Moves("swap", 1, 3)
    start = new_state(law, one_cluster((1, 2, 3, 4), alpha), np.ones(1), None, moves)
    chain, ends = Chain(law, start, moves, rng), []
    for consensus in choose(exact, n_starts, rng).astype(np.int32):
        chain.go_to(start._replace(consensus=consensus[None]))
        chain.sweep(adapt=False)
        ends.append(chain.state.consensus[0])
    return p_value(ends, exact)


@pytest.mark.kernel
def test_a_sweep_leaves_the_exact_posterior_as_it_is():
    assert ends_of_sweeps(1.0) > 1e-4


def test_a_sweep_at_another_alpha_is_caught():
    assert ends_of_sweeps(1.7) < 1e-6


@pytest.mark.slow
def test_a_long_run_agrees_with_the_exact_posterior():
    exact = np.array(naive.marginals(naive.posterior(TIED, 2.0)))
    prefs = pm.Preferences.from_rankings(TIED)
    posterior = pm.fit(prefs, "mcmc", 2.0, n_draws=5000, thin=3, rng=1)
    # 20,000 draws, all but independent: five standard errors
    assert (
        np.abs(posterior.rank_probabilities() - exact) < 5 * np.sqrt(exact / 20_000) + 1e-4
    ).all()


@pytest.mark.parametrize("method", ["pseudo", "balanced", "mcmc"])
@pytest.mark.parametrize("n_clusters", [1, 2])
@pytest.mark.filterwarnings("ignore::pseudomallows.diagnostics.FitWarning")
def test_every_method_fits_ties(method, n_clusters):
    truth = pm.simulate_rankings(60, 8, [5.0] * n_clusters, rng=1)
    rankings = truth.rankings
    tied = np.where(rankings > 5, 6, np.where(rankings < 4, 1, rankings))  # 1 1 1 4 5 6 6 6
    prefs = pm.Preferences.from_rankings(tied, weights=np.r_[2, np.ones(59)])
    posterior = pm.fit(prefs, method, n_draws=30, n_clusters=n_clusters, rng=1)
    for row in posterior.summary(0):
        assert 1 <= row["lowest"] <= row["highest"] <= 8
    assert posterior.memberships.shape == (60, n_clusters)
    if n_clusters == 1:
        assert ((posterior.point_consensus() <= 3) == (truth.consensus <= 3)).all()


def test_alpha_is_estimated_from_ties():
    rankings = pm.simulate_rankings(300, 8, 4, rng=1).rankings
    tied = np.where(rankings > 5, 6, np.where(rankings < 4, 1, rankings))
    alpha = pm.estimate_alpha(pm.Preferences.from_rankings(tied), "likelihood", rng=1)
    assert 3 < alpha < 5
