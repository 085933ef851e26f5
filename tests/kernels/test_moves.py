import numpy as np
import pytest

import naive
import pseudomallows as pm
from helpers import choose, interpreted, p_value
from pseudomallows.distances import FOOTRULE
from pseudomallows.kernels import moves as kernels
from pseudomallows.kernels.costs import count_ranks
from pseudomallows.kernels.streams import start_stream

RANKINGS = np.array([[1, 2, 3, 4], [2, 1, 3, 4], [1, 3, 2, 4]])
MOVES = [(kernels.SWAP, 1), (kernels.LEAP_AND_SHIFT, 1), (kernels.LEAP_AND_SHIFT, 2)]


def costs_of(rankings):
    n_items = rankings.shape[1]
    counts = np.zeros((n_items, n_items), dtype=np.int64)
    count_ranks(rankings, np.ones(len(rankings), dtype=np.int64), counts)
    return FOOTRULE.costs(counts)


@pytest.mark.kernel
def test_costs_follow_the_definition():
    costs = costs_of(RANKINGS)
    for item in range(4):
        for rank in range(1, 5):
            assert costs[item, rank - 1] == sum(abs(r[item] - rank) for r in RANKINGS)


def ends_of_sweeps(move, leap, alpha=1.0, n_moves=6, n_starts=20_000):
    """Starts from the exact posterior at alpha = 1, one sweep each."""
    law = naive.posterior(RANKINGS.tolist(), 1.0)
    ends = choose(law, n_starts, np.random.default_rng(1))
    costs, stream = costs_of(RANKINGS), np.empty(1, dtype=np.uint64)
    for number, consensus in enumerate(ends):
        start_stream(7, number, 0, stream)
        kernels.move_consensus(stream, costs, alpha / 4, move, leap, n_moves, consensus)
    return p_value(ends, law)


@pytest.mark.kernel
@pytest.mark.parametrize(("move", "leap"), MOVES)
def test_a_sweep_leaves_the_exact_posterior_as_it_is(move, leap):
    assert ends_of_sweeps(move, leap) > 1e-4


@pytest.mark.parametrize(("move", "leap"), MOVES)
def test_a_sweep_at_another_alpha_is_caught(move, leap):
    assert ends_of_sweeps(move, leap, alpha=1.5) < 1e-6


def test_leap_and_shift_without_its_ratio_would_be_caught():
    """The ratio matters at the ends: with a constant number of choices the law is wrong."""
    law, leap = naive.posterior(RANKINGS.tolist(), 1.0), kernels.LEAP_AND_SHIFT
    ends = choose(law, 20_000, np.random.default_rng(1))
    costs, stream = costs_of(RANKINGS), np.empty(1, dtype=np.uint64)
    for number, consensus in enumerate(ends):
        ordering = np.argsort(consensus)
        start_stream(7, number, 0, stream)
        for _ in range(12):
            here, there, _ = kernels.propose(stream, leap, 2, 0.0, consensus)
            change = kernels.cost_of_move(costs, ordering, leap, here, there)
            if kernels.accepts(stream, -0.25 * change):
                kernels.make_move(leap, here, there, consensus, ordering)
    assert p_value(ends, law) < 1e-6


@pytest.mark.parametrize("move", ["swap", "leap_and_shift"])
def test_one_long_run_reaches_every_ranking(move):
    prefs = pm.Preferences.from_rankings(RANKINGS)
    posterior = pm.fit(prefs, "mcmc", 1.0, n_draws=5000, n_chains=1, thin=2, move=move, rng=1)
    law = naive.posterior(RANKINGS.tolist(), 1.0)
    assert p_value(posterior.consensus[0, :, 0], law) > 1e-4


@pytest.mark.kernel
@pytest.mark.parametrize(("move", "leap"), MOVES)
def test_compiled_and_interpreted_chains_are_equal(move, leap):
    results = []
    for run in (kernels.move_consensus, interpreted(kernels.move_consensus)):
        stream, consensus = np.array([3], dtype=np.uint64), np.arange(1, 8)
        rankings = np.array([np.random.default_rng(i).permutation(7) + 1 for i in range(5)])
        n_accepted = run(stream, costs_of(rankings), 0.2, move, leap, 100, consensus)
        results.append((n_accepted, consensus.tolist(), int(stream[0])))
    assert results[0] == results[1]
    assert sorted(results[0][1]) == list(range(1, 8))


def test_a_long_run_at_six_items_agrees_with_the_exact_posterior():
    rankings = pm.Mallows([3, 1, 2, 6, 5, 4], 2.0).draw(6, rng=2)
    exact = np.array(naive.marginals(naive.posterior(rankings.tolist(), 2.0)))
    prefs = pm.Preferences.from_rankings(rankings)
    posterior = pm.fit(prefs, "mcmc", 2.0, n_draws=10_000, thin=3, rng=1)
    # 40,000 draws, all but independent: five standard errors
    assert (
        np.abs(posterior.rank_probabilities() - exact) < 5 * np.sqrt(exact / 40_000) + 1e-4
    ).all()


def exact_alpha_mean(rows, shape, rate):
    """Posterior mean of alpha on a fine grid, the consensus summed out; rows may be partial."""
    grid = np.linspace(0.02, 30, 1000)
    n_items = len(rows[0])
    heights = []
    for alpha in grid:
        total = sum(
            np.prod([naive.likelihood(row, consensus, alpha) for row in rows])
            for consensus in naive.all_rankings(n_items)
        )
        heights.append(total * alpha ** (shape - 1) * np.exp(-rate * alpha))
    heights = np.array(heights)
    return (grid * heights).sum() / heights.sum()


@pytest.mark.parametrize(
    "rows",
    [
        [[1, 2, 3], [1, 3, 2], [1, 2, 3]],
        pytest.param([[1, 2, 3], [1, 0, 0], [2, 0, 0]], marks=pytest.mark.slow),
    ],
)
def test_sampled_alpha_has_the_exact_posterior_mean(rows):
    prefs = pm.Preferences.from_rankings(rows)
    options = {"alpha_prior": (2.0, 0.5), "n_draws": 4000, "warmup": 500}
    posterior = pm.fit(prefs, "mcmc", rng=4, **options)
    exact = exact_alpha_mean(rows, 2.0, 0.5)
    error = posterior.alpha.std() / np.sqrt(posterior.diagnostics().alpha_effective_size)
    assert abs(posterior.alpha.mean() - exact) < 4 * error
    assert error < 0.1
    assert abs(posterior.alpha.mean() - exact_alpha_mean(rows, 2.5, 0.5)) > 4 * error


def test_a_chain_stuck_at_small_alpha_is_reported():
    prefs = pm.simulate_rankings(300, 60, 8, rng=1).preferences
    with pytest.warns(pm.ConvergenceWarning, match="stuck") as record:
        pm.fit(prefs, "mcmc", start="random", n_draws=20, warmup=0, n_moves=10, n_chains=2, rng=1)
    warning = record[0].message
    assert warning.stuck == [0, 1]
    assert warning.effective_size >= 0


def test_a_random_start_reaches_the_same_posterior():
    prefs = pm.simulate_rankings(50, 10, 2, rng=1).preferences
    both = [
        pm.fit(prefs, "mcmc", 2.0, start=start, n_draws=1000, warmup=500, rng=3)
        for start in ("map", "random")
    ]
    draws = [posterior.consensus.reshape(-1, 10) for posterior in both]
    assert pm.marginal_divergence(*draws, floor=1e-3) < 0.05
