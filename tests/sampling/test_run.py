"""The chains of a fit: the same bits everywhere, what is kept, and what is told on the way."""

import functools
import sys
import threading
import warnings

import numpy as np
import pytest

import naive
import pseudomallows as pm
from exact_posteriors import EXAMPLES, Exact, chi_square
from pseudomallows import distances
from pseudomallows.laws import full, law
from pseudomallows.sampling import run, start
from pseudomallows.sampling.reproduce import call_of

SHORT_STARTS = {"LEAST_RUNS": 4, "MOST_RUNS": 4, "RUN_SWEEPS": 3, "LAST_SWEEPS": 3}
ARRAYS = ("consensus", "alpha", "shares", "best", "weights", "log_posterior")
ARRAYS += ("latent", "chain_memberships", "errors")
SHORT = {"n_draws": 6, "warmup": 4, "thin": 1, "n_chains": 2}


@pytest.fixture(autouse=True, scope="module")
def _short_starts():
    """Few and short runs to find clusters from: here it does not matter how good they are."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SHORT_STARTS.items():
            patch.setattr(start, name, value)
        yield


@functools.cache
def data(kind):
    """A few users, some of them several people, some of whom nothing is known."""
    weights = np.array([1, 2, 0, 3] * 10)
    if kind == "clicks":
        prefs = pm.simulate_clicks(40, 6, [6, 6], 2, rng=1).preferences
        return pm.Clicks(weights, prefs.users, prefs.items, prefs.starts, prefs.codes)
    ranks = pm.simulate_rankings(40, 5, [6, 6], rng=1).preferences.rankings.copy()
    if kind in ("pairs", "cycles", "votes"):
        n_pairs = {"pairs": 4, "cycles": 4, "votes": 1}[kind]
        rng, triples = np.random.default_rng(1), []
        for user, ranking in enumerate(ranks):
            for _ in range(n_pairs):
                one, other = rng.choice(5, 2, replace=False)
                is_right = ranking[one] < ranking[other] or (
                    kind == "cycles" and rng.random() < 0.2
                )
                triples.append((user, one, other) if is_right else (user, other, one))
        return pm.Preferences.from_pairs(triples, items=range(5))
    if kind == "tops":
        ranks[ranks > 3] = 0
    if kind == "gaps":
        ranks[np.random.default_rng(1).random(ranks.shape) < 0.4] = 0
    return pm.Preferences.from_rankings(ranks, weights=weights)


FITS = {
    "full": ("full", {}),
    "full by kendall": ("full", {"distance": "kendall"}),
    "full by ulam": ("full", {"distance": "ulam"}),
    "full by cayley": ("full", {"distance": "cayley"}),
    "buckets": ("tops", {"distance": "kendall"}),
    "gaps": ("gaps", {"keep_latent": [3, 2]}),
    "gaps by hamming": ("gaps", {"distance": "hamming"}),
    "gaps by kendall": ("gaps", {"distance": "kendall", "keep_latent": [3, 2]}),
    "clicks": ("clicks", {"keep_latent": [3, 5]}),
    "clicks by kendall": ("clicks", {"distance": "kendall", "keep_latent": [3]}),
    "matched": ("clicks", {"method": "matched", "keep_latent": [3]}),
    "matched gaps": ("gaps", {"method": "matched"}),
    "votes": ("votes", {}),
    "pairs": ("pairs", {"keep_latent": [3]}),
    "errors": ("cycles", {"errors": "logistic"}),
}
ALL = [(name, k) for name in FITS for k in (1, 2) if (name, k) != ("votes", 2)]


def fit(name, n_clusters=1, **options):
    kind, mine = FITS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        usual = {"method": "mcmc", "rng": 3, "n_clusters": n_clusters}
        return pm.fit(data(kind), **usual | SHORT | mine | options)


@functools.cache
def wanted(name, n_clusters):
    """On one thread, with the steps that were told."""
    steps = []
    how = {"executor": pm.Threads(1), "progress": lambda *step: steps.append(step)}
    return fit(name, n_clusters, **how), steps


def assert_same(found, other):
    for name in ARRAYS:
        assert np.array_equal(getattr(found, name), getattr(other, name), equal_nan=True), name
    assert found.settings.get("starts") == other.settings.get("starts")
    assert found.settings.get("matched") == other.settings.get("matched")


# The same bits


@pytest.mark.parametrize(("name", "n_clusters"), ALL)
def test_threads_and_blocks_leave_no_trace(name, n_clusters, monkeypatch):
    whole, _ = wanted(name, n_clusters)
    monkeypatch.setattr(law, "LEAST_ROWS", 1)
    monkeypatch.setattr(law, "N_BLOCKS", 13)
    monkeypatch.setattr(full, "ROWS_SCALE", 1)
    assert_same(fit(name, n_clusters, executor=pm.Threads(2)), whole)


@pytest.mark.parametrize(("name", "n_clusters"), ALL)
def test_chains_without_room_run_one_after_the_other_with_the_same_bits(
    name, n_clusters, monkeypatch
):
    monkeypatch.setattr(run, "ROOM", 0)
    assert_same(fit(name, n_clusters, executor=pm.Threads(2)), wanted(name, n_clusters)[0])


@pytest.mark.parametrize("n_clusters", [1, 2])
def test_another_seed_gives_other_bits(n_clusters):
    other = fit("gaps", n_clusters, rng=4)
    assert not np.array_equal(other.alpha, wanted("gaps", n_clusters)[0].alpha)


def test_replicas_are_the_same_on_two_threads():
    one, two = (fit("gaps", temperatures=3, executor=pm.Threads(n)) for n in (1, 2))
    assert_same(one, two)
    assert one.settings["tempered"] == two.settings["tempered"]


@pytest.mark.parametrize(("name", "n_clusters"), [("full", 1), ("clicks", 2), ("pairs", 1)])
def test_thinning_keeps_every_second_draw(name, n_clusters):
    all_draws = fit(name, n_clusters, keep_latent=()) if name != "full" else fit(name, n_clusters)
    options = {} if name == "full" else {"keep_latent": ()}
    half = fit(name, n_clusters, n_draws=3, thin=2, **options)
    ordered = [
        np.sort(each.alpha, axis=-1) for each in (all_draws, half)
    ]  # the clusters may be numbered otherwise
    assert np.array_equal(ordered[0][:, 1::2], ordered[1])


# What is told on the way


@pytest.mark.parametrize(("name", "n_clusters"), ALL)
def test_progress_counts_to_its_end(name, n_clusters):
    _, steps = wanted(name, n_clusters)
    total = steps[-1][1]
    assert steps == [(done, total) for done in range(1, total + 1)]


def test_progress_is_told_by_the_thread_that_asked():
    threads = set()
    note = {"progress": lambda *_: threads.add(threading.current_thread())}
    fit("clicks", 2, executor=pm.Threads(2), **note)
    assert threads == {threading.current_thread()}


# Latent rankings


def latent_p_value(name, user, alpha):
    """Of the latent rankings of a user that a fit at alpha 2 keeps, against those at `alpha`."""
    example = EXAMPLES[name]
    how = {"n_draws": 400, "thin": 3, "n_chains": 4, "warmup": 50, "rng": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = pm.fit(
            example.preferences(), "mcmc", 2.0, distance=example.distance, keep_latent=True, **how
        )
    exact = Exact(example)
    grid = np.abs(np.exp(np.log(0.01) + 0.02 * np.arange(exact.prior.shape[1])) - alpha).argmin()
    of_consensus = np.exp(exact.logs[0, :, :, grid].sum(axis=0))
    law_of = exact.agreements[0, user][:, None] * exact.mallows[:, :, grid]
    law_of = law_of / law_of.sum(axis=0) @ (of_consensus / of_consensus.sum())
    numbers = {tuple(ranking): place for place, ranking in enumerate(exact.rankings.tolist())}
    rankings = found.latent[:, :, user].reshape(-1, example.n_items)
    return chi_square(np.array([numbers[tuple(each)] for each in rankings.tolist()]), law_of)


@pytest.mark.parametrize("name", ["gaps and ties", "blocks by hamming", "buckets", "clicks"])
def test_latent_rankings_are_kept_from_the_exact_law(name):
    assert latent_p_value(name, 1, 2.0) > 1e-4


def test_those_of_another_alpha_are_told_apart():
    assert latent_p_value("buckets", 1, 4.0) < 1e-6


@pytest.mark.parametrize(("name", "n_clusters"), ALL)
def test_latent_rankings_agree_with_what_is_known(name, n_clusters):
    kind, options = FITS[name]
    found, _ = wanted(name, n_clusters)
    users = options.get("keep_latent", [])
    assert found.latent.shape[2:] == (len(users), found.n_items)
    assert (np.sort(found.latent, axis=-1) == np.arange(1, found.n_items + 1)).all()
    for place, user in enumerate(users):
        ranks = found.latent[:, :, place]
        if kind == "clicks" and data(kind).weights[user]:
            mine = data(kind).clicks_of(user)
            assert (ranks[..., mine] <= len(mine)).all()
        if kind == "gaps" and data(kind).weights[user]:
            known = data(kind).rankings[user]
            assert (ranks[..., known > 0] == known[known > 0]).all()


# What is best, and how long the chains are


@pytest.mark.parametrize("name", list(distances.DISTANCES))
def test_the_most_likely_consensus_of_full_rankings_is_proved_for_few_items(name):
    rankings = pm.Mallows([3, 1, 5, 2, 4], 4, distance=name).draw(7, rng=2)
    how = {"alpha": 1.5, "n_draws": 400, "rng": 1, "distance": name}
    posterior = pm.fit(pm.Preferences.from_rankings(rankings), "mcmc", **how)
    law = naive.posterior(rankings.tolist(), 1.5, name)
    best = tuple(posterior.point_consensus("map").tolist())
    assert law[best] == pytest.approx(max(law.values()))
    assert posterior.settings["is_best_proved"]


def test_what_is_not_proved_is_said():
    many = pm.Mallows(np.arange(1, 18), 60, distance="kendall").draw(30, rng=1)
    posterior = pm.fit(pm.Preferences.from_rankings(many), "mcmc", distance="kendall", rng=1)
    assert not posterior.settings["is_best_proved"]
    assert np.abs(posterior.point_consensus("map") - np.arange(1, 18)).max() <= 1


def test_by_a_list_of_rankings_the_most_frequent_draw_stands_for_the_best():
    rows = pm.Mallows([1, 2, 3, 4], 12, distance="cayley").draw(60, rng=1)
    rows = np.where(rows <= 2, rows, 0)
    how = {"alpha": 12, "n_draws": 400, "rng": 1, "distance": "cayley"}
    posterior = pm.fit(pm.Preferences.from_rankings(rows), "mcmc", **how)
    draws = posterior.consensus.reshape(-1, 4)
    counts = [(draws == row).all(axis=1).sum() for row in draws]
    best = posterior.point_consensus("map")
    assert (draws == best).all(axis=1).sum() == max(counts)
    assert not posterior.settings["is_best_proved"]


@pytest.mark.parametrize("name", ["cayley", "ulam"])
def test_the_best_of_each_cluster_is_its_own(name):
    centres, sizes = [[1, 2, 3, 4], [4, 3, 2, 1], [2, 4, 1, 3]], (20, 30, 40)
    laws = [pm.Mallows(centre, 12, distance=name) for centre in centres]
    rows = [law.draw(size, rng=size) for law, size in zip(laws, sizes, strict=True)]
    prefs = pm.Preferences.from_rankings(np.concatenate(rows))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.ConvergenceWarning)
        how = {"distance": name, "n_clusters": 3, "n_draws": 60, "rng": 1}
        posterior = pm.fit(prefs, "mcmc", **how)
    for cluster in range(3):
        draws = posterior.consensus[:, :, cluster].reshape(-1, 4)
        counts = [(draws == row).all(axis=1).sum() for row in draws]
        best = posterior.point_consensus("map", cluster=cluster)
        assert (draws == best).all(axis=1).sum() == max(counts)


def slow_chain(n_moves=3, **options):
    """Rankings of which a chain of few proposals knows little after its first draws."""
    prefs = pm.simulate_rankings(40, 12, alpha=1.5, rng=1).preferences
    return pm.fit(prefs, "mcmc", n_moves=n_moves, rng=2, **options)


def test_chains_go_on_until_their_draws_are_good():
    with pytest.warns(pm.ConvergenceWarning):
        short = slow_chain(n_draws=200)
    long = slow_chain()  # without a warning, which would be an error here
    assert long.consensus.shape == short.consensus.shape
    assert long.settings["thinning"] > 1
    assert long.diagnostics().worst_rhat <= 1.05
    assert long.diagnostics().rank_effective_size.min() >= 50
    assert "thinning" not in short.settings
    assert call_of(long) == "pm.fit(prefs, method='mcmc', n_moves=3, rng=2)"


def test_chains_that_are_only_slow_go_on_and_are_not_tempered():
    """Their first halves differ from their second, where chains in different modes stay."""
    with pytest.warns(pm.ConvergenceWarning):
        slow = slow_chain(n_moves=1)
    assert slow.settings["thinning"] >= 4
    assert "tempered" not in slow.settings
    camps = np.repeat([[1, 2, 3, 4, 5], [2, 3, 4, 5, 1]], 10, axis=0)
    stuck = pm.fit(pm.Preferences.from_rankings(camps), distance="hamming", rng=1)
    assert "tempered" in stuck.settings


@pytest.mark.parametrize("agree", [True, False])
@pytest.mark.parametrize(
    ("kind", "n_clusters"), [("rankings", 1), ("rankings", 2), ("clicks", 1), ("clicks", 2)]
)
def test_draws_that_go_on_are_those_of_one_long_chain(kind, n_clusters, agree, monkeypatch):
    """The chain is the same, only what is kept of it is not: every second draw of a chain that
    keeps all, from the first one on if the chains agree, else after those of the first round."""
    if kind == "clicks":
        prefs = pm.simulate_clicks(60, 6, alpha=6, mean_clicks=2, rng=1).preferences
    else:
        prefs = pm.simulate_rankings(30, 6, alpha=3, rng=1).preferences
    rounds = iter([2, 1])
    module = sys.modules["pseudomallows.sampling.fit"]
    monkeypatch.setattr(module, "thinning_needed", lambda *_: next(rounds))
    monkeypatch.setattr(module, "is_mixed", lambda *_: agree)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pm.fit(prefs, "mcmc", n_clusters=n_clusters, n_chains=1, rng=5)
        warmup, n_draws = found.settings["options"]["warmup"], found.consensus.shape[1]
        thin = found.settings["options"]["thin"]
        everything = {"n_draws": 3 * n_draws * thin, "warmup": warmup, "thin": 1}
        whole = pm.fit(prefs, "mcmc", n_clusters=n_clusters, n_chains=1, rng=5, **everything)
    first = 0 if agree else n_draws * thin
    kept = whole.consensus[0, first:][2 * thin - 1 :: 2 * thin][:n_draws]
    one = {tuple(sorted(map(tuple, draw.tolist()))) for draw in found.consensus[0]}
    assert one == {tuple(sorted(map(tuple, draw.tolist()))) for draw in kept}
    assert found.chain_memberships.sum(axis=2) == pytest.approx(1)
