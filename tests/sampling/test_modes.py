"""A posterior with two modes that chains do not join: a fit must not say that all is well."""

import itertools
import math
import warnings

import numpy as np
import pytest

import naive
import pseudomallows as pm

CYCLES = [
    [3 * block + (item + turn) % 3 + 1 for block in range(3) for item in range(3)]
    for turn in range(3)
]
TWO_MODES = {
    "three camps": ([[3, 2, 5, 4, 1], [3, 4, 1, 2, 5], [1, 4, 2, 5, 3]], [55, 23, 40], "footrule"),
    "other camps": ([[3, 1, 4, 5, 2], [5, 1, 2, 4, 3], [3, 5, 2, 1, 4]], [57, 47, 19], "footrule"),
    "Condorcet": (CYCLES, [20, 20, 20], "kendall"),
    "Hamming": ([[1, 2, 3, 4, 5], [2, 3, 4, 5, 1]], [30, 30], "hamming"),
    "Cayley": ([[1, 2, 3, 4, 5], [2, 3, 4, 5, 1]], [30, 30], "cayley"),
}


def fit_of(rankings, sizes, distance, **options):
    """A default fit, and the warnings of it."""
    prefs = pm.Preferences.from_rankings(rankings, weights=sizes)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        posterior = pm.fit(prefs, distance=distance, **options)
    return posterior, [warning.category for warning in caught]


def has_converged(posterior):
    """By its chains alone; people in camps do not share one order, which is another check."""
    checks = {check.name: check.answer for check in posterior.verdict().checks}
    return checks["largest R-hat"] == checks["effective number of draws"] == "yes"


def exact_law(rankings, sizes, distance):
    """{consensus: probability}, alpha summed out by its prior, (2, 2 / n_items + 1 / 20)."""
    n_items, n_users = len(rankings[0]), sum(sizes)
    everything = naive.all_rankings(n_items)
    by_distance = naive.DISTANCES[distance]
    counts = np.bincount([by_distance(everything[0], other) for other in everything])
    alphas = np.geomspace(0.01, 300, 1500)
    log_partition = np.log(np.exp(-np.outer(alphas / n_items, range(len(counts)))) @ counts)
    log_prior = 2 * np.log(alphas) - (2 / n_items + 1 / 20) * alphas  # with the step of the grid
    totals = {
        consensus: sum(
            size * by_distance(row, consensus) for row, size in zip(rankings, sizes, strict=True)
        )
        for consensus in everything
    }
    masses = {
        total: np.logaddexp.reduce(log_prior - n_users * log_partition - alphas / n_items * total)
        for total in set(totals.values())
    }
    top = max(masses.values())
    return naive.normalise({each: math.exp(masses[totals[each]] - top) for each in everything})


def total_variation(posterior, law):
    drawn = posterior.consensus.reshape(-1, posterior.n_items)
    shares = {each: (drawn == each).all(axis=1).mean() for each in law}
    return sum(abs(shares[each] - law[each]) for each in law) / 2


def is_uneven(posterior):
    """Of Condorcet's cycles: are the items of a block, all alike, told apart?"""
    return np.ptp(posterior.mean_ranks().reshape(3, 3), axis=1).max() > 0.4


SOME = [pytest.param(n, marks=pytest.mark.slow) if "camps" in n else n for n in TWO_MODES]


@pytest.mark.parametrize("name", SOME)
def test_a_fit_with_two_modes_is_not_called_good_unless_it_has_both(name):
    rankings, sizes, distance = TWO_MODES[name]
    law = None if len(rankings[0]) > 5 else exact_law(rankings, sizes, distance)
    for seed in range(1, 3):
        posterior, caught = fit_of(rankings, sizes, distance, rng=seed)
        if not has_converged(posterior):
            assert pm.ConvergenceWarning in caught
        elif law is None:
            assert not is_uneven(posterior)
        else:
            # 800 draws of 120 consensuses: 0.07 to 0.10 by sampling variation
            assert total_variation(posterior, law) < 0.12


@pytest.mark.parametrize("name", ["Condorcet", "Hamming"])
def test_chains_from_one_start_see_one_mode_alone(name):
    """The twin: what the default guards against."""
    rankings, sizes, distance = TWO_MODES[name]
    fits = [fit_of(rankings, sizes, distance, rng=seed, start="map")[0] for seed in range(4)]
    assert any(has_converged(posterior) for posterior in fits)


def ordinary():
    for seed, (n_items, n_users, alpha) in enumerate([(5, 20, 3), (8, 30, 4), (15, 100, 6)]):
        data = pm.simulate_rankings(n_users, n_items, alpha, rng=seed)
        for distance in ("footrule", "kendall"):
            yield data.preferences, {"distance": distance}
    clicks = pm.simulate_clicks(100, 12, 5.0, rng=7).preferences
    yield clicks, {"method": "mcmc"}
    yield clicks, {"method": "mcmc", "distance": "kendall"}
    full = pm.simulate_rankings(30, 6, 4, rng=9).preferences.rankings
    yield pm.Preferences.from_rankings(np.where(full <= 3, full, 0)), {"distance": "kendall"}


@pytest.mark.parametrize("number", range(9))
def test_ordinary_data_are_called_good(number):
    prefs, options = next(itertools.islice(ordinary(), number, None))
    assert pm.fit(prefs, rng=1, **options).verdict().answer == "yes"


def test_every_second_chain_begins_elsewhere_and_a_start_that_is_given_is_kept():
    rankings, sizes, distance = TWO_MODES["Hamming"]
    plain = {"n_draws": 200, "rng": 1}  # or they would be tempered
    chains = fit_of(rankings, sizes, distance, **plain)[0].consensus.reshape(4, -1, 5)
    assert (chains == chains[:, :1]).all()  # none of them leaves its mode
    found = [rankings.index(chain[0].tolist()) for chain in chains]
    assert found[0] == found[2] != found[1] == found[3]
    given = fit_of(rankings, sizes, distance, rng=1, start="map")[0].consensus
    assert (given.reshape(-1, 5) == chains[0, 0]).all()
