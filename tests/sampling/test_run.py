"""A fit with one cluster is a mixture of one, chain by chain."""

import sys
import warnings

import numpy as np
import pytest

import naive
import pseudomallows as pm
from pseudomallows import distances
from pseudomallows.inference.chains.make_chains import make_chains
from pseudomallows.inference.methods import METHODS, Plan
from pseudomallows.inference.reproduce import call_of
from pseudomallows.latent.registry import make_population

ALPHA, N_DRAWS, WARMUP, THIN, N_CHAINS = 0.5, 6, 4, 2, 2
OPTIONS = {"warmup": WARMUP, "thin": THIN, "n_chains": N_CHAINS}
LATENT = [name for name in METHODS if name != "matched"]  # draw latent rankings


def preferences(kind):
    if kind == "clicks":
        return pm.simulate_clicks(10, 6, 1, 2, rng=1).preferences
    return pm.simulate_rankings(10, 6, 1, top=3 if kind == "partial" else None, rng=1).preferences


def options_of(prefs, method):
    is_matched = method == "mcmc" and prefs.kind == "clicks"
    return OPTIONS | ({"augmentation": "exact"} if is_matched else {})


def by_hand(prefs, method, rng):
    """``consensus[chain, draw, item]``, sweep by sweep."""
    plan = Plan.make(prefs, METHODS[method], N_DRAWS, 1, options_of(prefs, method), ALPHA)
    chains = make_chains(make_population(prefs, pm.Threads(1)), plan, rng)
    consensus = np.empty((N_CHAINS, N_DRAWS, prefs.n_items), dtype=np.int32)
    for number, (draws, child) in enumerate(zip(consensus, rng.spawn(N_CHAINS), strict=True)):
        chain = chains.start(number, None, child, lambda: None)
        for _ in range(WARMUP):
            chain.sweep(adapt=True)
        for draw in draws:
            for _ in range(THIN):
                chain.sweep(adapt=False)
            draw[:] = chain.consensus[0]
    return consensus


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        *((method, kind) for method in LATENT for kind in ("partial", "clicks")),
        ("mcmc", "full"),  # the draws of the others are independent there
    ],
)
def test_a_fit_of_one_cluster_is_its_chains_sweep_by_sweep(method, kind):
    prefs = preferences(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.ConvergenceWarning)
        posterior = pm.fit(
            prefs, method, ALPHA, n_draws=N_DRAWS, rng=7, **options_of(prefs, method)
        )
    same, other = (by_hand(prefs, method, np.random.default_rng(seed)) for seed in (7, 8))
    assert (posterior.consensus[:, :, 0] == same).all()
    assert (posterior.consensus[:, :, 0] != other).any()
    assert (posterior.shares == 1).all()
    assert (posterior.memberships == 1).all()


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


def slow_chain(**options):
    """Rankings of which a chain of few proposals knows little after its first draws."""
    prefs = pm.simulate_rankings(40, 12, alpha=1.5, rng=1).preferences
    return pm.fit(prefs, "mcmc", n_moves=4, rng=2, **options)


def test_chains_go_on_until_their_draws_are_good():
    with pytest.warns(pm.ConvergenceWarning):
        short = slow_chain(n_draws=200)
    long = slow_chain()  # without a warning, which would be an error here
    assert long.consensus.shape == short.consensus.shape
    assert long.settings["thinning"] > 1
    assert long.diagnostics().worst_rhat <= 1.05
    assert long.diagnostics().checked_effective_size >= 50
    assert "thinning" not in short.settings
    assert call_of(long).endswith("n_clusters=1, n_moves=4, rng=2)")


@pytest.mark.parametrize(
    ("kind", "n_clusters"), [("rankings", 1), ("rankings", 2), ("clicks", 1)]
)  # clusters of clicks draw labels once more between the rounds
def test_draws_that_go_on_are_those_of_one_long_chain(kind, n_clusters, monkeypatch):
    """The chain is the same, only what is kept of it is not: every draw of the second round comes
    up in a chain that keeps all."""
    if kind == "clicks":
        prefs = pm.simulate_clicks(60, 6, alpha=6, mean_clicks=2, rng=1).preferences
    else:
        prefs = pm.simulate_rankings(30, 6, alpha=3, rng=1).preferences
    rounds = iter([2, 1])
    module = sys.modules["pseudomallows.inference.call"]
    monkeypatch.setattr(module, "thinning_needed", lambda *_: next(rounds))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pm.fit(prefs, "mcmc", n_clusters=n_clusters, n_chains=1, rng=5)
        warmup, n_draws = found.settings["options"]["warmup"], found.consensus.shape[1]
        thin = found.settings["options"]["thin"]
        everything = {"n_draws": 3 * n_draws * thin, "warmup": warmup, "thin": 1}
        whole = pm.fit(prefs, "mcmc", n_clusters=n_clusters, n_chains=1, rng=5, **everything)
    kept = whole.consensus[0, n_draws * thin :][2 * thin - 1 :: 2 * thin]
    one = {tuple(sorted(map(tuple, draw.tolist()))) for draw in found.consensus[0]}
    assert one == {tuple(sorted(map(tuple, draw.tolist()))) for draw in kept}
    assert found.chain_memberships.sum(axis=2) == pytest.approx(1)
