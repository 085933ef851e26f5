"""Chains with many numbers: chance alone does not fail them, and a few items that differ do."""

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.inference.convergence_warnings import thinning_needed
from pseudomallows.posteriors.convergence import check_convergence, rhat_limit
from pseudomallows.posteriors.verdict import judge

N_ITEMS = 12_000


def posterior_of(
    n_draws=10,
    n_clusters=2,
    n_moved=0,
    alpha_shift=0.0,
    seed=1,
    n_items=N_ITEMS,
    moved_by=5000,
    step=1,
):
    """Independent draws; in one chain of four some items stand elsewhere."""
    rng, shape = np.random.default_rng(seed), (4, n_draws, n_clusters)
    scores = np.arange(n_items) + rng.exponential(n_items / 40, (*shape, n_items))
    first = n_items * 7 // 12
    scores[0, :, 0, first : first + step * n_moved : step] -= moved_by
    draws = (np.argsort(np.argsort(scores, axis=-1), axis=-1) + 1).astype(np.int32)
    alpha = rng.normal(20, 1, shape)
    alpha[0] += alpha_shift
    return pm.Posterior(
        consensus=draws,
        alpha=alpha,
        weights=np.full(shape[:2], 1 / (4 * n_draws)),
        log_posterior=np.zeros(shape[:2]),
        best=draws[0, 0],
        items=np.arange(n_items),
        settings={"method": "mcmc", "distance": "kendall"},
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_independent_draws_pass_though_their_largest_r_hat_is_large(seed):
    found = posterior_of(seed=seed)
    assert max(found.diagnostics(cluster).worst_rhat for cluster in range(2)) > 1.3
    assert check_convergence(found).is_good
    assert thinning_needed(check_convergence(found), 1) == 1
    assert judge(found).answer == "yes"


def test_chains_that_disagree_on_three_items_of_many_are_caught():
    found = posterior_of(n_moved=3)
    judged = check_convergence(found)
    assert judged.name == "largest R-hat"
    assert judged.rhat > judged.rhat_limit
    assert found.diagnostics(some=True).rank_rhat.mean() <= 1.05  # a mean does not see them
    assert thinning_needed(judged, 1) == 2
    assert judge(found).answer != "yes"


def test_an_alpha_that_differs_by_chain_is_caught():
    judged = check_convergence(posterior_of(alpha_shift=6.0))
    assert (judged.name, judged.is_good) == ("R-hat of alpha", False)


def clusters_of(**how):
    """17 clusters of 200 items, 100 draws in all."""
    return check_convergence(posterior_of(25, 17, n_items=200, **how))


@pytest.mark.parametrize("seed", range(5))
def test_independent_draws_of_many_clusters_pass(seed):
    judged = clusters_of(seed=seed)
    assert judged.is_good
    limits = {"mean R-hat": 1.05, "R-hat of alpha": rhat_limit(17, 4, 25)}
    assert judged.rhat_limit == limits.get(judged.name, rhat_limit(17 * 201, 4, 25))


@pytest.mark.parametrize(
    ("how", "name"),
    [
        ({"n_moved": 1, "moved_by": 40}, "largest R-hat"),
        ({"alpha_shift": 1.5}, "R-hat of alpha"),
    ],
)
def test_clusters_that_differ_by_chain_are_caught(how, name):
    judged = clusters_of(**how)
    assert (judged.name, judged.is_good) == (name, False)


def test_clusters_of_which_many_items_are_off_are_caught_by_the_mean():
    judged = clusters_of(n_moved=40, moved_by=15, step=2)
    assert (judged.name, judged.is_good) == ("mean R-hat", False)


def test_one_consensus_and_few_draws_have_no_allowance():
    assert check_convergence(posterior_of(25, 1, n_items=200)).rhat_limit == 1.05
    assert check_convergence(posterior_of(24, 17, n_items=200)).rhat_limit == 1.05


def test_too_few_draws_cannot_be_judged():
    found = posterior_of(n_draws=3, n_clusters=1)
    assert not check_convergence(found).is_good
    assert "cannot be judged" in judge(found).words


def test_the_limit_rises_with_the_numbers_and_falls_with_the_draws():
    limits = [rhat_limit(n_numbers, 4, 20) for n_numbers in (1, 10, 1000, 10**6)]
    assert (np.diff(limits) > 0).all()
    assert rhat_limit(1000, 4, 10) > rhat_limit(1000, 4, 20) > rhat_limit(1000, 4, 40)
    assert rhat_limit(1000, 4, 1000) == 1.05


@pytest.mark.parametrize("n_draws", [10, 16])
def test_the_limit_of_alpha_is_what_independent_draws_stay_below(n_draws):
    rng, limit = np.random.default_rng(4), rhat_limit(10, 4, n_draws)
    worst = pm.diagnostics.rhat(rng.normal(size=(4, n_draws, 2000, 10))).max(axis=1)
    assert (worst > limit).mean() < 0.005  # in 2,000 fits
    assert (worst > 1 + 0.7 * (limit - 1)).any()  # so it is not far too large
    assert (worst > 1.05).mean() > 0.8  # so a limit of 1.05 would fail nearly all
