"""Which pairs to compare next: mutual information against enumeration."""

import functools
import itertools
import math
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest

import naive
import pseudomallows as pm
from pseudomallows.distances import DISTANCES
from pseudomallows.recommendations.next_pairs import entropy, place_probabilities

module = sys.modules["pseudomallows.recommendations.next_pairs"]
RANKINGS = [[1, 2, 3, 4], [1, 2, 4, 3], [2, 1, 3, 4], [1, 3, 2, 4]]
LONG_TAILS = [("footrule", 5), ("spearman", 4)]  # of alpha: so many people agree, and one does not


def posterior_of(distance="kendall", n_draws=30, alpha=None, **options):
    prefs = pm.Preferences.from_rankings(RANKINGS, items=list("abcd"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.diagnostics.FitWarning)
        return pm.fit(
            prefs, "mcmc", alpha, n_draws, rng=1, distance=distance, n_chains=2, **options
        )


def bits(p):
    return -sum(x * math.log2(x) for x in (p, 1 - p) if x > 0)


def exact_information(posterior, distance, cluster=0):
    """{pair of codes: (probability of the first, information)}, by sums over rankings and draws."""
    draws = posterior.consensus[:, :, cluster].reshape(-1, posterior.n_items).tolist()
    alphas = posterior.alpha[:, :, cluster].ravel().tolist()
    found = {}
    for i, j in itertools.combinations(range(posterior.n_items), 2):
        probabilities = [
            naive.pair_likelihood([(i, j)], tuple(ranks), alpha, distance)
            for ranks, alpha in zip(draws, alphas, strict=True)
        ]
        mean = math.fsum(probabilities) / len(probabilities)
        found[i, j] = mean, bits(mean) - math.fsum(map(bits, probabilities)) / len(probabilities)
    return found


def found_information(posterior, **options):
    """The same from the package."""
    found = {}
    for row in pm.next_pairs(posterior, n=100, rng=1, **options).to_rows():
        i, j = "abcd".index(row["item"]), "abcd".index(row["other"])
        probability = row["probability"] if i < j else row["other_probability"]
        found[min(i, j), max(i, j)] = probability, row["information"]
    return found


def test_information_is_that_of_enumeration():
    posterior = posterior_of()
    found, exact = found_information(posterior), exact_information(posterior, "kendall")
    assert found.keys() == exact.keys()
    for pair, values in exact.items():
        assert np.allclose(found[pair], values, atol=1e-10)
    order = [row["information"] for row in pm.next_pairs(posterior, n=6).to_rows()]
    assert order == sorted(order, reverse=True)
    assert order[0] > 0.001


def test_the_information_of_another_distance_is_caught():
    posterior = posterior_of()
    found, wrong = found_information(posterior), exact_information(posterior, "footrule")
    assert max(abs(found[pair][1] - wrong[pair][1]) for pair in wrong) > 0.01


def test_other_distances_are_near_enumeration():
    posterior = posterior_of("footrule", n_draws=10)
    found, exact = found_information(posterior), exact_information(posterior, "footrule")
    for pair, values in exact.items():
        assert np.allclose(found[pair], values, atol=0.03)


def rankings_of(n_agree):
    return n_agree * [[1, 2, 3, 4]] + [[2, 1, 3, 4]]


@functools.cache
def exact_gains(distance, n_agree):
    """Information of each pair, by sums over all consensuses and a fine grid of alpha."""
    laws = {}  # {(consensus, alpha): (posterior weight, {ranking: probability})}
    for alpha in np.arange(0.1, 40, 0.2).tolist():
        prior = alpha * math.exp(-alpha * (2 / 4 + 1 / 20))
        for consensus in naive.all_rankings(4):
            law = naive.mallows(consensus, alpha, distance)
            weight = prior * math.prod(law[tuple(ranking)] for ranking in rankings_of(n_agree))
            laws[consensus, alpha] = weight, law
    total, gains = math.fsum(weight for weight, _ in laws.values()), {}
    for i, j in itertools.combinations(range(4), 2):
        mean = noise = 0.0
        for weight, law in laws.values():
            probability = min(math.fsum(p for r, p in law.items() if r[i] < r[j]), 1.0)
            mean += weight / total * probability
            noise += weight / total * bits(probability)
        gains[i, j] = bits(mean) - noise
    return gains


def stated_and_exact(distance, n_agree):
    prefs = pm.Preferences.from_rankings(rankings_of(n_agree), items=list("abcd"))
    posterior = pm.fit(prefs, "mcmc", n_draws=4000, rng=1, distance=distance)
    stated = {pair: gain for pair, (_, gain) in found_information(posterior).items()}
    return stated, exact_gains(distance, n_agree)


def largest_error(stated, exact):
    return max(abs(stated[pair] - exact[pair]) for pair in exact)


@pytest.mark.parametrize(("distance", "n_agree"), LONG_TAILS)
def test_few_people_get_the_pair_that_tells_most(distance, n_agree):
    stated, exact = stated_and_exact(distance, n_agree)
    assert largest_error(stated, exact) < 0.003
    assert max(stated, key=stated.get) == max(exact, key=exact.get)
    assert min(stated, key=stated.get) == min(exact, key=exact.get)


@pytest.mark.parametrize(("distance", "n_agree"), LONG_TAILS)
def test_five_alphas_between_the_smallest_and_the_largest_are_caught(
    distance, n_agree, monkeypatch
):
    def tables(law, n_items, alphas, rng):
        grid = np.linspace(alphas.min(), alphas.max(), 5)
        made = [place_probabilities(law, n_items, alpha, 4000, rng.integers(99)) for alpha in grid]
        columns = np.reshape(made, (5, -1)).T
        return lambda alpha: np.reshape([np.interp(alpha, grid, c) for c in columns], (4, 4))

    monkeypatch.setattr(module, "tables_of", tables)
    stated, exact = stated_and_exact(distance, n_agree)
    assert largest_error(stated, exact) > 0.015


@pytest.mark.parametrize("name", sorted(DISTANCES))
def test_probabilities_of_places_are_sums_over_all_rankings(name):
    table = place_probabilities(pm.distances.get(name), 4, 2.0, 4000, seed=3)
    for i, j in itertools.permutations(range(4), 2):
        exact = naive.pair_likelihood([(i, j)], (1, 2, 3, 4), 2.0, name)
        assert abs(table[i, j] - exact) < 4 * math.sqrt(exact * (1 - exact) / 4000)
        assert math.isclose(table[i, j] + table[j, i], 1.0)


def test_weights_of_draws_count():
    posterior = posterior_of(n_draws=10)
    weights = np.zeros_like(posterior.weights)
    weights[1, 3] = 1.0
    alone = replace(posterior, weights=weights)
    found = pm.next_pairs(alone, n=6)
    assert np.abs(found.information).max() < 1e-12  # a draw that is sure has nothing to learn
    assert found.probabilities.min() >= 0.5


def test_draws_at_one_alpha_need_one_table():
    posterior = posterior_of("footrule", alpha=2.0)
    first, again = (pm.next_pairs(posterior, n=2, rng=1) for _ in range(2))
    assert first.to_rows() == again.to_rows()
    assert len(first) == 2


def test_a_user_is_asked_by_the_kept_latent_rankings():
    clicks = pm.Preferences.from_clicks({"ann": ["a", "b"], "bob": ["c"]}, items=list("abcd"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = pm.fit(clicks, "mcmc", n_draws=50, rng=1, keep_latent=["bob", "ann"])
    found = pm.next_pairs(posterior, "ann", n=6)
    place = [posterior.users[row] for row in posterior.settings["options"]["keep_latent"]]
    latent = posterior.latent[:, :, place.index("ann")].reshape(-1, 4)
    for row in found.to_rows():
        i, j = "abcd".index(row["item"]), "abcd".index(row["other"])
        share = (latent[:, i] < latent[:, j]).mean()
        assert math.isclose(row["probability"], share, abs_tol=1e-12)
        assert math.isclose(row["information"], bits(share), abs_tol=1e-12)
    assert {found.items[0], found.others[0]} in ({"a", "b"}, {"c", "d"})
    with pytest.raises(ValueError, match="no user is named 'eve'"):
        pm.next_pairs(posterior, "eve")
    with pytest.raises(ValueError, match="everything is known of user 'ann'"):
        pm.next_pairs(posterior_of(), "ann")


def test_clusters_have_pairs_of_their_own():
    posterior = posterior_of(n_draws=10)
    two = replace(
        posterior,
        consensus=np.concatenate([posterior.consensus, 5 - posterior.consensus], axis=2),
        alpha=np.repeat(posterior.alpha, 2, axis=2),
    )
    first, second = pm.next_pairs(two, n=1), pm.next_pairs(two, n=1, cluster=1)
    assert math.isclose(first.information[0], second.information[0], abs_tol=1e-12)
    assert {first.items[0], first.others[0]} == {second.items[0], second.others[0]}
    with pytest.raises(ValueError, match="cluster must be in"):
        pm.next_pairs(two, cluster=2)


def test_many_draws_are_thinned_evenly(monkeypatch):
    posterior = posterior_of(n_draws=300)
    all_draws = found_information(posterior)
    monkeypatch.setattr(module, "MOST_CELLS", 6 * 200)
    for pair, values in found_information(posterior).items():
        assert np.allclose(values, all_draws[pair], atol=0.05)
        assert values != all_draws[pair]


def test_pairs_can_be_read():
    found = pm.next_pairs(posterior_of(), n=6)
    assert repr(found).startswith("NextPairs(6 pairs)\n  ")
    assert " bits" in repr(found)
    frame = found.to_frame()
    columns = ["item", "other", "probability", "other_probability", "information"]
    assert list(frame.columns) == columns
    assert len(frame) == len(found) == 6
    many = replace(found, **{name: np.repeat(getattr(found, name), 3) for name in found.__dict__})
    assert repr(many).endswith("... and 8 more")


def test_fits_without_draws_are_refused():
    clicks = pm.Preferences.from_clicks([[1, 0, 0], [0, 1, 1], [1, 1, 0]])
    with pytest.raises(TypeError, match="posterior must be a fit with draws, got PersonalFit"):
        pm.next_pairs(pm.fit(clicks, "personal", rng=1))
    with pytest.raises((TypeError, ValueError), match="n must be"):
        pm.next_pairs(posterior_of(), n=0)


def test_entropy_of_a_sure_answer_is_0():
    assert entropy(np.array([0.0, 1.0])).tolist() == [0.0, 0.0]
