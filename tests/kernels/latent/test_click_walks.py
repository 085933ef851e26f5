"""Walkers of users known by clicks: visits leave the law of draw, cluster and ranking as it is."""

from collections import Counter

import numpy as np
import pytest
from scipy import stats

import naive
from helpers import IS_COMPILED, interpreted
from pseudomallows.kernels.click_rows import ClickRows
from pseudomallows.kernels.latent import click_walks as kernels

pytestmark = pytest.mark.kernel
CLICKED = (1, 3)
CONSENSUS = np.array([[[2, 4, 1, 3], [1, 2, 3, 4]], [[3, 1, 4, 2], [4, 3, 2, 1]]])  # draw, cluster
WEIGHTS = np.array([[0.4, 0.2], [0.1, 0.3]])
ALPHAS = {
    "spearman": np.array([[0.3, 0.6], [0.5, 0.2]]),
    "ulam": np.array([[2.0, 1.0], [1.5, 3.0]]),
}
KINDS = {"spearman": kernels.SPEARMAN, "ulam": kernels.ULAM}


def joint_law(name, is_new):
    """{(draw, cluster, ranking): probability} of a new user, or of the clusters in draw 0."""
    law = {}
    for draw, cluster in np.ndindex(2 if is_new else 1, 2):
        center = tuple(CONSENSUS[draw, cluster].tolist())
        alpha = float(ALPHAS[name][draw, cluster])
        for ranking, chance in naive.mallows(center, alpha, name).items():
            if all(ranking[item] <= len(CLICKED) for item in CLICKED):
                law[draw, cluster, ranking] = WEIGHTS[draw, cluster] * chance
    return naive.normalise(law)


def seats_of(draw, cluster, ranking):
    """Ranks less 1 in the order of the aligned consensus: clicked items first."""
    center = CONSENSUS[draw, cluster].tolist()
    aligned = sorted(range(4), key=lambda item: (item not in CLICKED, center[item]))
    return [ranking[item] - 1 for item in aligned]


def ends(name, is_new, n_walkers, factor=1.0, kernel=kernels.walk_rows):
    """Where walkers stand after a visit, if they stood at draws from the law before it; for them
    alpha may be wrong by a factor."""
    law, alphas, rng = joint_law(name, is_new), factor * ALPHAS[name], np.random.default_rng(1)
    keys = list(law)
    starts = [keys[i] for i in rng.choice(len(keys), n_walkers, p=list(law.values()))]
    logs = np.log(WEIGHTS) - [
        [naive.log_partition(4, alpha, name) for alpha in row] for row in alphas.tolist()
    ]
    orderings = np.argsort(CONSENSUS, axis=2).astype(np.int32)
    laws = kernels.WalkLaws(KINDS[name], orderings, alphas / 4, logs)
    visited = rng.integers(2, size=(n_walkers, 1)) * is_new
    visits = kernels.Visits(visited, np.ones((n_walkers, 1)), 7, 0, is_new, 0, 1, 1)
    seats = np.array([[seats_of(*start) for start in starts]], np.int32)
    walkers = kernels.Walkers(seats, np.array([[start[0] for start in starts]]))
    seen = kernels.Seen(
        np.zeros((n_walkers, 1, 2, 4)),
        np.zeros((n_walkers, 1, 2)),
        np.empty((1, n_walkers, 1, 4), np.int32),
    )
    clicks = ClickRows(np.array([0, 2]), np.array(CLICKED, np.int32))
    kernel(clicks, laws, visits, 1, walkers, seen)
    labels = seen.sums[:, 0].sum(axis=2).argmax(axis=1)  # one look, at one rank
    latent = seen.latent[0, :, 0].tolist()
    ends = zip(walkers.draws[0].tolist(), labels.tolist(), map(tuple, latent), strict=True)
    return list(ends), seen


def fit_of(found, law):
    """p-value of a chi-square."""
    counts, expected = Counter(found), len(found) * np.array(list(law.values()))
    assert set(counts) <= set(law)
    assert expected.min() >= 5
    return stats.chisquare([counts[key] for key in law], expected).pvalue


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("is_new", [False, True])
def test_a_visit_leaves_the_law_as_it_is(name, is_new):
    n_walkers = 20_000 if IS_COMPILED else 3_000
    found, seen = ends(name, is_new, n_walkers)
    law = joint_law(name, is_new)
    assert fit_of(found, law) > 1e-4
    assert seen.shares.sum(axis=2) == pytest.approx(1.0)
    exact = sum(p for (_, cluster, _), p in law.items() if cluster == 0)
    assert seen.shares[:, 0, 0].mean() == pytest.approx(exact, abs=4 / n_walkers**0.5)
    if IS_COMPILED:
        assert fit_of(ends(name, is_new, n_walkers, factor=1.5)[0], law) < 1e-6


@pytest.mark.parametrize("name", KINDS)
def test_compiled_and_interpreted_walks_are_equal(name):
    ways = (kernels.walk_rows, interpreted(kernels.walk_rows))
    both = [ends(name, True, 30, kernel=kernel) for kernel in ways]
    assert both[0][0] == both[1][0]
    for one, other in zip(both[0][1], both[1][1], strict=True):
        assert np.array_equal(one, other)


def test_keys_tell_users_apart_by_their_clicks():
    sets = [np.array(codes, np.int32) for codes in ((), (0,), (1,), (0, 1), (0, 2), (0, 1, 2))]
    assert len({int(kernels.key_of_clicks(codes)) for codes in sets}) == len(sets)
