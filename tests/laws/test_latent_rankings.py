"""Users known in part by any distance: fits against enumeration, each with a twin that fails."""

import functools

import numpy as np
import pytest

import naive
import pseudomallows as pm
from helpers import choose, p_value
from pseudomallows import distances
from pseudomallows.inference.chains.clusters import ExactCluster, Proposals
from pseudomallows.inference.chains.mixture import Mixture
from pseudomallows.latent.augmented.latent_rankings import (
    AugmentedPopulation,
    HammingPopulation,
    KeptLaw,
    in_order_of,
)
from pseudomallows.latent.bucket_orders import BucketPopulation, close_gaps, has_buckets_only
from pseudomallows.latent.registry import make_population

NAMES = [name for name in distances.DISTANCES if name != "footrule"]
ROWS = ((1, 0, 0, 0), (0, 2, 0, 1), (3, 1, 1, 3), (0, 0, 2, 0), (1, 2, 3, 4))
ALPHAS = {"spearman": 0.5}  # of others it is 2


def alpha_of(name):
    return ALPHAS.get(name, 2.0)


def preferences(rows=ROWS):
    return pm.Preferences.from_rankings(np.array(rows))


@functools.cache
def posterior_law(name):
    return naive.posterior([list(row) for row in ROWS], alpha_of(name), name)


@functools.cache
def latent_law(row, consensus, name):
    all_full = naive.completions(list(row))
    weights = {full: naive.weight(full, consensus, alpha_of(name), name) for full in all_full}
    return naive.normalise(weights)


def ends_of_sweeps(name, alpha, n_moves=2, n_starts=3000):
    """Consensuses after one sweep from the exact posterior, latent rankings included."""
    rng = np.random.default_rng(12)
    population = AugmentedPopulation(preferences(), pm.Threads(1), distance=distances.get(name))
    if name == "hamming":
        population = HammingPopulation(preferences(), pm.Threads(1))
    ends = []
    for consensus in choose(posterior_law(name), n_starts, rng):
        for place, row in enumerate(ROWS):
            law = latent_law(row, tuple(consensus.tolist()), name)
            population.state.latent[place] = choose(law, 1, rng)[0]
        center = consensus.astype(np.int32)
        proposals = Proposals("swap", 1, n_moves)
        cluster = ExactCluster(population, center, alpha, proposals, None, rng)
        Mixture.of_one(cluster).sweep(adapt=False)
        ends.append(cluster.consensus)
    return np.array(ends)


@pytest.mark.parametrize("name", NAMES)
def test_a_sweep_leaves_the_exact_posterior_as_it_is(name):
    assert p_value(ends_of_sweeps(name, alpha_of(name)), posterior_law(name)) > 1e-4


@pytest.mark.parametrize("name", NAMES)
def test_a_sweep_at_another_alpha_is_caught(name):
    assert p_value(ends_of_sweeps(name, 3 * alpha_of(name)), posterior_law(name)) < 1e-4


def distances_of_all(latent, consensus, name):
    return int(distances.get(name).between(latent, consensus).sum())


@functools.cache
def law_of_distances(name):
    """{(sum over users of the distance between latent ranking and consensus,): probability}."""
    law = {}
    for consensus, probability in posterior_law(name).items():
        sums = {0: probability}
        for row in ROWS:
            grown = {}
            for full, share in latent_law(row, consensus, name).items():
                away = getattr(naive, name)(full, consensus)
                for total, before in sums.items():
                    grown[total + away] = grown.get(total + away, 0) + before * share
            sums = grown
        for total, share in sums.items():
            law[(total,)] = law.get((total,), 0) + share
    return {key: probability for key, probability in law.items() if probability > 5e-3}


def sums_after_a_move(name, is_forgetful, n_starts=3000):
    rng = np.random.default_rng(13)
    population = AugmentedPopulation(preferences(), pm.Threads(1), distance=distances.get(name))
    sums = []
    for number, consensus in enumerate(choose(posterior_law(name), n_starts, rng)):
        for place, row in enumerate(ROWS):
            law = latent_law(row, tuple(consensus.tolist()), name)
            population.state.latent[place] = choose(law, 1, rng)[0]
        kept, center = population.state.latent.copy(), consensus.astype(np.int32)
        moved = population.move_together(KeptLaw(center, alpha_of(name), 5, number)).consensus
        latent = kept if is_forgetful else population.state.latent
        sums.append((distances_of_all(latent, moved, name),))
    return [each for each in sums if each in law_of_distances(name)]


@pytest.mark.parametrize("name", NAMES)
def test_a_move_of_consensus_and_latent_rankings_leaves_their_law_as_it_is(name):
    assert p_value(sums_after_a_move(name, False), law_of_distances(name)) > 1e-4


@pytest.mark.parametrize("name", NAMES)
def test_a_move_that_forgets_the_latent_rankings_is_caught(name):
    assert p_value(sums_after_a_move(name, True), law_of_distances(name)) < 1e-6


@pytest.mark.parametrize(
    ("rows", "name", "expected"),
    [
        ([[1, 0, 0], [1, 1, 3]], "kendall", BucketPopulation),
        ([[0, 2, 0], [1, 1, 3]], "kendall", AugmentedPopulation),
        ([[0, 2, 0], [1, 1, 3]], "hamming", HammingPopulation),
        ([[1, 0, 0], [1, 1, 3]], "cayley", AugmentedPopulation),
    ],
)
def test_the_distance_says_how_latent_rankings_are_treated(rows, name, expected):
    assert type(make_population(preferences(rows), None, name)) is expected


@pytest.mark.parametrize("name", ["kendall", "hamming"])
@pytest.mark.parametrize("alpha", [0.0, 2.0, 40.0])
def test_the_likelihood_of_users_known_in_part_equals_enumeration(name, alpha):
    rows = [(1, 0, 0, 0), (3, 1, 1, 3), (1, 2, 3, 4), (0, 0, 0, 4)]
    rows += [(0, 2, 0, 1), (0, 0, 2, 0)] if name == "hamming" else []
    consensus = [3, 1, 4, 2]
    exact = [naive.likelihood(list(row), consensus, alpha, name) for row in rows]
    found = pm.log_likelihood(preferences(rows), consensus, alpha, name)
    assert found == pytest.approx(np.log(exact), abs=1e-10)
    population = make_population(preferences(rows), None, name)
    total = population.log_likelihood(np.array(consensus, np.int32), alpha)
    assert total == pytest.approx(np.log(exact).sum(), abs=1e-7)


def test_clicks_are_two_ties():
    clicks = pm.Preferences.from_clicks([[1, 0, 0, 1], [0, 0, 1, 0]])
    ties = preferences([(1, 3, 3, 1), (2, 2, 1, 2)])
    both = [pm.log_likelihood(prefs, [2, 4, 1, 3], 1.5, "kendall") for prefs in (clicks, ties)]
    assert both[0] == pytest.approx(both[1], abs=1e-12)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("kendall", "hamming")])
def test_where_no_sum_is_known_the_likelihood_says_so(name):
    with pytest.raises(ValueError, match=f"partial rankings by {name} is not known: use dist"):
        pm.log_likelihood(preferences([[1, 0, 0]]), [1, 2, 3], 1.0, name)
    with pytest.raises(ValueError, match="give n_clusters as a number"):
        pm.choose_clusters(preferences(), distance=name)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "kendall"])
def test_clicks_have_sums_by_the_footrule_and_kendall_only(name):
    clicks = pm.Preferences.from_clicks([[1, 0, 0, 1], [0, 0, 1, 0]])
    with pytest.raises(ValueError, match=r"clicks by .* use distance='footrule' or 'kendall'"):
        pm.log_likelihood(clicks, [1, 2, 3, 4], 1.0, name)
    with pytest.raises(ValueError, match="give n_clusters as a number"):
        pm.choose_clusters(clicks, distance=name)


@pytest.mark.parametrize("name", ["cayley", "hamming"])
def test_a_fit_of_few_clicks_keeps_latent_rankings_and_converges(name):
    rng = np.random.default_rng(3)
    rankings = pm.Mallows(np.arange(1, 7), 15.0, distance=name).draw(40, rng)
    clicks = pm.Preferences.from_clicks(rankings <= rng.integers(1, 5, 40)[:, None])
    found = pm.fit(clicks, "mcmc", distance=name, rng=1)  # a warning would be an error
    assert found.settings["latent"] == "moved by exchanges in each sweep (Metropolis)"
    assert found.diagnostics().worst_rhat < 1.05
    assert found.point_consensus()[0] <= 2


def test_gaps_have_no_closed_form_under_kendall():
    with pytest.raises(ValueError, match="but for gaps"):
        pm.log_likelihood(preferences([[0, 2, 0]]), [1, 2, 3], 1.0, "kendall")


def test_first_latent_rankings_agree_with_what_is_known():
    rankings = np.array(ROWS, dtype=np.int32)
    full = in_order_of(rankings, np.array([4, 3, 2, 1], dtype=np.int32))
    for row, ranks in zip(ROWS, full.tolist(), strict=True):
        assert tuple(ranks) in set(naive.completions(list(row)))


def test_gaps_are_told_from_buckets():
    assert has_buckets_only(np.array([[1, 2, 3], [0, 1, 0], [0, 0, 3], [1, 1, 0]], np.int32))
    assert not has_buckets_only(np.array([[1, 2, 3, 4], [0, 2, 0, 1], [0, 2, 2, 0]], np.int32))
    closed = close_gaps(np.array([[0, 1, 0, 4], [1, 1, 0, 0]], np.int32))
    assert closed.tolist() == [[2, 1, 2, 4], [1, 1, 3, 3]]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n_clusters", [1, 2])
def test_threads_change_nothing_and_weights_count_as_users(name, n_clusters):
    draws = pm.Mallows(np.arange(1, 7), 5.0, distance=name).draw(30, rng=3)
    rows = np.where(draws <= 2, draws, 0)
    rows[::3, 0] = 0
    twice = pm.Preferences.from_rankings(np.repeat(rows, 2, axis=0))
    once = pm.Preferences.from_rankings(rows, weights=[2] * len(rows))
    how = {"n_draws": 10, "n_chains": 1, "warmup": 5, "rng": 5, "n_clusters": n_clusters}
    found = []
    for prefs, executor in ((twice, pm.Threads(1)), (twice, pm.Threads(2)), (once, None)):
        with pytest.warns(pm.ConvergenceWarning):
            found.append(pm.fit(prefs, "mcmc", distance=name, executor=executor, **how))
    for other in found[1:]:
        assert np.array_equal(found[0].consensus, other.consensus)
        assert np.array_equal(found[0].alpha, other.alpha)


def test_a_checkpoint_of_latent_rankings_is_refused(tmp_path):
    with pytest.raises(ValueError, match="cannot be saved in a checkpoint: leave it out"):
        pm.fit(preferences(), "mcmc", distance="cayley", checkpoint=tmp_path / "fit", rng=1)
