"""Users known in part by any distance: data augmentation and fits against enumeration, each with a
twin that fails."""

import functools
import warnings

import numpy as np
import pytest

import naive
import pseudomallows as pm
from helpers import choose, p_value
from law_cases import one_cluster
from pseudomallows import distances
from pseudomallows.laws import augmented
from pseudomallows.laws.augmented import AugmentedLaw
from pseudomallows.laws.block_laws import RankedBlocks
from pseudomallows.laws.full import FullLaw, close_gaps, has_buckets_only
from pseudomallows.laws.law import Clusters, in_order_of
from pseudomallows.laws.registry import make_law
from pseudomallows.sampling.chain import Chain, Moves, new_state

NAMES = list(distances.DISTANCES)
ROWS = ((1, 0, 0, 0), (0, 2, 0, 1), (3, 1, 1, 3), (0, 0, 2, 0), (1, 2, 3, 4))
ALPHAS = {"spearman": 0.5, "footrule": 1.0}  # of others it is 2
NO_ERRORS = np.empty(0)


def alpha_of(name):
    return ALPHAS.get(name, 2.0)


def preferences(rows=ROWS):
    return pm.Preferences.from_rankings(np.array(rows))


def law_of(name, rows=ROWS, executor=None):
    return AugmentedLaw(preferences(rows), executor or pm.Threads(1), distances.get(name))


@functools.cache
def posterior_law(name):
    return naive.posterior([list(row) for row in ROWS], alpha_of(name), name)


@functools.cache
def latent_law(row, consensus, name):
    all_full = naive.completions(list(row))
    weights = {full: naive.weight(full, consensus, alpha_of(name), name) for full in all_full}
    return naive.normalise(weights)


def exact_starts(name, n_starts, seed):
    """Consensus and latent rankings of all users, from their exact joint posterior."""
    rng = np.random.default_rng(seed)
    for consensus in choose(posterior_law(name), n_starts, rng).astype(np.int32):
        center = tuple(consensus.tolist())
        latent = [choose(latent_law(row, center, name), 1, rng)[0] for row in ROWS]
        yield consensus, np.array(latent, dtype=np.int32)


# Sweeps


def ends_of_sweeps(name, alpha, n_starts=2000):
    """Consensuses after one sweep from the exact posterior, latent rankings included."""
    law, moves, ends = law_of(name), Moves("swap", 1, 2), []
    start = new_state(law, one_cluster((1, 2, 3, 4), alpha), np.ones(1), None, moves)
    chain = Chain(law, start, moves, np.random.default_rng(12))
    for consensus, latent in exact_starts(name, n_starts, 11):
        chain.go_to(start._replace(consensus=consensus[None], latent=latent))
        chain.sweep(adapt=False)
        ends.append(chain.state.consensus[0])
    return np.array(ends)


@pytest.mark.parametrize("name", NAMES)
def test_a_sweep_leaves_the_exact_posterior_as_it_is(name):
    assert p_value(ends_of_sweeps(name, alpha_of(name)), posterior_law(name)) > 1e-4


@pytest.mark.parametrize("name", NAMES)
def test_a_sweep_at_another_alpha_is_caught(name):
    assert p_value(ends_of_sweeps(name, 3 * alpha_of(name)), posterior_law(name)) < 1e-4


# Latent rankings and consensus, together


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


@functools.cache
def completed(name, times=1.0, n_starts=2000):
    """(consensus, latent rankings before and after) of `complete` from the exact joint posterior,
    at so many times the right alpha."""
    law, found = law_of(name), []
    for number, (consensus, latent) in enumerate(exact_starts(name, n_starts, 13)):
        clusters = one_cluster(consensus, times * alpha_of(name))
        new, (center,) = law.complete(clusters, None, latent, NO_ERRORS, 5, number)
        assert (clusters.consensus == consensus).all()  # nothing is changed in place
        found.append((center, latent, new))
    return found


def p_value_of_sums(name, latent, centers):
    """Of the sums of distances between latent rankings and consensus."""
    between = distances.get(name).between
    sums = [(int(between(*both).sum()),) for both in zip(latent, centers, strict=True)]
    return p_value(
        [each for each in sums if each in law_of_distances(name)], law_of_distances(name)
    )


@pytest.mark.parametrize("name", NAMES)
def test_completion_leaves_the_exact_law_of_consensus_and_latent_rankings_as_it_is(name):
    centers, before, after = zip(*completed(name), strict=True)
    assert p_value(centers, posterior_law(name)) > 1e-4
    assert p_value_of_sums(name, after, centers) > 1e-4
    for row, ranks in enumerate(ROWS[:4]):  # a latent ranking each, the consensus summed out
        law = {}
        for consensus, probability in posterior_law(name).items():
            for full, share in latent_law(ranks, consensus, name).items():
                law[full] = law.get(full, 0.0) + probability * share
        assert p_value([latent[row] for latent in after], law) > 1e-4
    assert any((old != new).any() for old, new in zip(before, after, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_a_move_that_forgets_the_latent_rankings_is_caught(name):
    centers, before, _ = zip(*completed(name), strict=True)
    assert p_value_of_sums(name, before, centers) < 1e-6


@pytest.mark.parametrize("name", NAMES)
def test_completion_at_another_alpha_is_caught(name):
    centers, _, after = zip(*completed(name, times=3.0), strict=True)
    assert p_value_of_sums(name, after, centers) < 1e-6


@pytest.mark.parametrize("name", ["footrule", "cayley"])
def test_completion_of_clusters_moves_each_by_its_own_users(name):
    """Two clusters of the same users: each as if it were alone, but for its random numbers."""
    law = law_of(name, ROWS * 2)
    labels = np.repeat([0, 1], 5).astype(np.int32)
    centers, sums = [], []
    for number, (consensus, latent) in enumerate(exact_starts(name, 1000, 14)):
        clusters = Clusters(np.array([consensus] * 2), np.full(2, alpha_of(name)))
        new, moved = law.complete(
            clusters, labels, np.concatenate([latent] * 2), NO_ERRORS, 5, number
        )
        centers.append(moved[1])
        sums.append(new[5:])
        assert new.shape == (10, 4)
    assert p_value(centers, posterior_law(name)) > 1e-4
    assert p_value_of_sums(name, sums, centers) > 1e-4


def test_an_empty_cluster_is_left_as_it_is():
    law, clusters = (
        law_of("ulam"),
        Clusters(np.array([[1, 2, 3, 4], [4, 3, 2, 1]], dtype=np.int32), np.ones(2)),
    )
    labels = np.zeros(5, dtype=np.int32)
    latent = law.first_latent(clusters, labels)
    _, consensus = law.complete(clusters, labels, latent, NO_ERRORS, 1, 1)
    assert consensus[1].tolist() == [4, 3, 2, 1]


def test_latent_rankings_begin_by_the_consensus_of_the_cluster_and_agree_with_what_is_known():
    centers = np.array([[4, 3, 2, 1], [1, 2, 3, 4]], dtype=np.int32)
    law, labels = law_of("cayley"), np.array([0, 1, 0, 1, 0], dtype=np.int32)
    first = law.first_latent(Clusters(centers, np.ones(2)), labels)
    assert first.tolist() == [[1, 4, 3, 2], [3, 2, 4, 1], [4, 2, 1, 3], [1, 3, 2, 4], [1, 2, 3, 4]]
    for row, ranks in zip(ROWS, first.tolist(), strict=True):
        assert tuple(ranks) in set(naive.completions(list(row)))
    some = np.array([2, 0])
    order = np.array([3.0, 1.0, 2.0, 0.5])
    found = law.rankings_of(some, order)
    assert found.tolist() == in_order_of(np.array(ROWS, np.int32)[some], order).tolist()


@pytest.mark.parametrize("name", NAMES)
def test_given_the_latent_rankings_the_law_is_that_of_full_ones(name):
    law = law_of(name)
    clusters = one_cluster((2, 1, 4, 3), alpha_of(name))
    latent = law.first_latent(clusters, None)
    given = law.given(latent)
    exact = [
        np.log(naive.mallows((2, 1, 4, 3), alpha_of(name), name)[tuple(ranks)])
        for ranks in latent.tolist()
    ]
    assert given.scores(clusters, np.ones(1)) == pytest.approx(exact, abs=1e-9)
    (tally,) = given.tallies(None, 1)
    found = tally.curve(clusters.consensus[0])(alpha_of(name))
    assert found == pytest.approx(sum(exact), abs=1e-9)


def test_cuts_into_blocks_and_threads_change_no_latent_ranking(monkeypatch):
    found, labels = [], (np.arange(100) % 2).astype(np.int32)
    clusters = Clusters(np.array([[1, 2, 3, 4], [4, 3, 2, 1]], dtype=np.int32), np.ones(2))
    for size, n_threads in ((1000, 1), (7, 1), (7, 2)):
        n_blocks = []

        def cut_rows(n_rows, size=size, n_blocks=n_blocks):
            n_blocks.append(-(-n_rows // size))
            return [slice(first, min(first + size, n_rows)) for first in range(0, n_rows, size)]

        monkeypatch.setattr(augmented, "cut_rows", cut_rows)
        law = law_of("cayley", ROWS * 20, pm.Threads(n_threads))
        latent = law.first_latent(clusters, labels)
        latent, consensus = law.complete(clusters, labels, latent, NO_ERRORS, 5, 1)
        assert n_blocks == ([1, 1] if size == 1000 else [8, 8])  # of each cluster
        found.append((latent.tolist(), consensus.tolist()))
    assert found[0] == found[1] == found[2]


def test_the_latent_rankings_of_users_of_the_data_are_theirs():
    """A row of weight w has w latent rankings: the last one is shown; who says nothing has any."""
    prefs = pm.Preferences.from_rankings(
        [[1, 0, 0], [0, 0, 0], [2, 0, 1], [0, 3, 0]], weights=[2, 1, 0, 3]
    )
    law = AugmentedLaw(prefs, pm.Threads(1), distances.get("cayley"))
    assert law.n_rows == law.n_users == 5
    clusters, rng = one_cluster((2, 1, 3), 30.0), np.random.default_rng(1)
    latent = np.array([[1, 2, 3], [1, 3, 2], [1, 3, 2], [1, 3, 2], [2, 3, 1]], dtype=np.int32)
    kept = law.latent_of(np.array([3, 0, 1]), None, latent, clusters, rng)
    assert kept.tolist() == [[2, 3, 1], [1, 3, 2], [2, 1, 3]]


def test_some_rows_have_a_law_of_their_own():
    law = law_of("cayley")
    some = law.select(np.array([1, 4]))
    assert (some.n_rows, some.n_users) == (2, 2)
    first = one_cluster((4, 3, 2, 1), 1.0)
    assert (some.first_latent(first, None) == law.first_latent(first, None)[[1, 4]]).all()


# Which law


@pytest.mark.parametrize(
    ("rows", "name", "expected"),
    [
        ([[1, 0, 0], [1, 1, 3]], "kendall", FullLaw),
        ([[0, 2, 0], [1, 1, 3]], "kendall", AugmentedLaw),
        ([[0, 2, 0], [1, 1, 3]], "hamming", RankedBlocks),
        ([[1, 0, 0], [1, 1, 3]], "cayley", AugmentedLaw),
    ],
)
def test_the_distance_says_how_latent_rankings_are_treated(rows, name, expected):
    assert type(make_law(preferences(rows), None, name)) is expected


@pytest.mark.parametrize("name", ["kendall", "hamming"])
@pytest.mark.parametrize("alpha", [0.0, 2.0, 40.0])
def test_the_likelihood_of_users_known_in_part_equals_enumeration(name, alpha):
    rows = [(1, 0, 0, 0), (3, 1, 1, 3), (1, 2, 3, 4), (0, 0, 0, 4)]
    rows += [(0, 2, 0, 1), (0, 0, 2, 0)] if name == "hamming" else []
    consensus = [3, 1, 4, 2]
    exact = [naive.likelihood(list(row), consensus, alpha, name) for row in rows]
    found = pm.log_likelihood(preferences(rows), consensus, alpha, name)
    assert found == pytest.approx(np.log(exact), abs=1e-10)


def test_clicks_are_two_ties():
    clicks = pm.Preferences.from_clicks([[1, 0, 0, 1], [0, 0, 1, 0]])
    ties = preferences([(1, 3, 3, 1), (2, 2, 1, 2)])
    both = [pm.log_likelihood(prefs, [2, 4, 1, 3], 1.5, "kendall") for prefs in (clicks, ties)]
    assert both[0] == pytest.approx(both[1], abs=1e-12)


@pytest.mark.parametrize("name", ["spearman", "cayley", "ulam"])
def test_where_no_sum_is_known_the_likelihood_says_so(name):
    with pytest.raises(ValueError, match=f"partial rankings by {name} is not known: use dist"):
        pm.log_likelihood(preferences([[1, 0, 0]]), [1, 2, 3], 1.0, name)
    with pytest.raises(ValueError, match="give n_clusters as a number"):
        pm.choose_clusters(preferences(), distance=name)


@pytest.mark.parametrize("name", ["spearman", "cayley", "hamming", "ulam"])
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


@pytest.mark.parametrize(
    ("n_clusters", "name"),
    [
        *((1, name) for name in NAMES),
        (2, "kendall"),
        *(pytest.param(2, name, marks=pytest.mark.slow) for name in NAMES if name != "kendall"),
    ],
)
def test_threads_change_nothing_and_weights_count_as_users(name, n_clusters):
    draws = pm.Mallows(np.arange(1, 7), 5.0, distance=name).draw(
        30 if n_clusters == 1 else 15, rng=3
    )
    rows = np.where(draws <= 2, draws, 0)
    rows[::3, 0] = 0
    twice = pm.Preferences.from_rankings(np.repeat(rows, 2, axis=0))
    once = pm.Preferences.from_rankings(rows, weights=[2] * len(rows))
    how = {"n_draws": 10, "n_chains": 1, "warmup": 5, "rng": 5, "n_clusters": n_clusters}
    found = []
    for prefs, executor in ((twice, pm.Threads(1)), (twice, pm.Threads(2)), (once, None)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # short chains
            found.append(pm.fit(prefs, "mcmc", distance=name, executor=executor, **how))
    for other in found[1:]:
        assert np.array_equal(found[0].consensus, other.consensus)
        assert np.array_equal(found[0].alpha, other.alpha)
