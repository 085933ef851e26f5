"""The prior of alpha, and the clusters whose alpha it alone decides."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import naive
import pseudomallows as pm
from pseudomallows.sampling.priors import default_prior

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "experiments"))

import alpha_prior

SMALL_CLUSTERS = [(6, [60, 20], [5, 9], 4), (5, [40, 20], [5, 7], 9)]  # of clicks, with a seed


def fit_small_clusters(n_items, sizes, alphas, seed, **options):
    """(medians of alpha, the clusters that are named in an AlphaWarning)."""
    data = pm.simulate_clicks(
        sum(sizes), n_items, alphas, 2, max_clicks=n_items - 1, sizes=sizes, rng=seed
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        posterior = pm.fit(data.preferences, "mcmc", n_clusters=2, rng=seed, **options)
    named = [
        w.message.clusters for w in caught if isinstance(w.message, pm.diagnostics.AlphaWarning)
    ]
    return np.median(posterior.alpha, axis=(0, 1)), named


@pytest.mark.slow
@pytest.mark.parametrize("setting", SMALL_CLUSTERS)
def test_small_clusters_of_clicks_are_no_spikes(setting):
    medians, _ = fit_small_clusters(*setting)
    assert 3 < medians.min() < medians.max() < 13


def test_a_spike_of_the_flat_prior_is_named():
    medians, named = fit_small_clusters(*SMALL_CLUSTERS[0], alpha_prior="flat")
    assert medians[0] < 10 < 100 < medians[1]
    assert named == [[1]]


@pytest.mark.parametrize("method", ["pseudo", "balanced", "mcmc"])
@pytest.mark.parametrize("top", [None, 3])
def test_a_cluster_without_disagreement_is_no_spike_and_is_named(method, top):
    some = pm.Mallows([1, 2, 3, 4, 5, 6], 6).draw(40, rng=1)
    rows = np.concatenate([some, np.tile([6, 5, 4, 3, 2, 1], (15, 1))])
    rows[rows > (top or 6)] = 0
    prefs = pm.Preferences.from_rankings(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.diagnostics.FitWarning)
        with pytest.warns(
            pm.diagnostics.AlphaWarning, match=r"no upper limit on alpha \(cluster 2: "
        ) as found:
            posterior = pm.fit(prefs, method, n_clusters=2, n_draws=50, rng=1)
    assert found[0].message.clusters == [1]
    assert found[0].message.medians[0] == np.median(posterior.alpha[:, :, 1])
    assert posterior.alpha[:, :, 1].mean() < 30


@pytest.mark.filterwarnings("ignore::pseudomallows.diagnostics.FitWarning")  # a cluster may empty
@pytest.mark.parametrize("method", ["pseudo", "balanced"])
def test_the_prior_reaches_the_clusters_of_the_paper(method):
    prefs = pm.simulate_rankings(60, 6, [5, 5], rng=1).preferences
    usual, low = (
        pm.fit(prefs, method, n_clusters=2, n_draws=20, rng=1, alpha_prior=prior).alpha.mean()
        for prior in (default_prior(6), (1.0, 100.0))  # means of 6 and of 0.01
    )
    assert low < 0.8 * usual


def test_one_user_is_told_that_the_prior_decides():
    with pytest.warns(pm.diagnostics.AlphaWarning, match="no upper limit on alpha .* Give alpha"):
        posterior = pm.fit(pm.Preferences.from_rankings([[1, 2, 3, 4]]), "mcmc", rng=1)
    shape, rate = default_prior(4)
    assert posterior.alpha.mean() == pytest.approx(shape / rate, rel=0.15)


def test_an_alpha_that_was_given_needs_no_bound():
    prefs = pm.Preferences.from_rankings([[1, 2, 3, 4]] * 3)
    assert (pm.fit(prefs, "mcmc", alpha=4, rng=1).alpha == 4).all()


def test_the_settings_hold_the_prior_in_numbers():
    prefs = pm.simulate_rankings(30, 8, 3, rng=1).preferences
    fits = [pm.fit(prefs, "mcmc", n_draws=100, rng=1, alpha_prior=p) for p in ("flat", (1, 0.001))]
    assert [fit.settings["options"]["alpha_prior"] for fit in fits] == [[1.0, 0.001]] * 2
    assert (fits[0].alpha == fits[1].alpha).all()
    plain = pm.fit(prefs, "mcmc", n_draws=100, rng=1)
    assert plain.settings["options"]["alpha_prior"] == [2.0, 2 / 8 + 1 / 20]


def test_the_chain_follows_the_default_prior():
    """The posterior mean of alpha, by enumeration over consensuses and a grid."""
    rankings = np.array([[1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 4, 3]])
    shape, rate = default_prior(4)
    grid = np.arange(0.1, 60, 0.2)
    logs = (
        (shape - 1) * np.log(grid)
        - rate * grid
        + [
            np.logaddexp.reduce(
                [pm.Mallows(c, a).log_probability(rankings).sum() for c in naive.all_rankings(4)]
            )
            for a in grid
        ]
    )
    weights = np.exp(logs - logs.max())
    exact = (weights * grid).sum() / weights.sum()
    prefs = pm.Preferences.from_rankings(rankings)
    found = pm.fit(prefs, "mcmc", n_draws=2000, rng=1).alpha
    assert found.mean() == pytest.approx(exact, rel=0.05)
    flat = pm.fit(prefs, "mcmc", n_draws=2000, rng=1, alpha_prior="flat").alpha
    assert flat.mean() != pytest.approx(exact, rel=0.1)


def test_the_default_prior_expects_like_agreement_for_any_number_of_items():
    rows = alpha_prior.run(alpha_prior.N_ITEMS)

    def shares(name, quantile):
        return [r["share"] for r in rows if (r["prior"], r["quantile"]) == (name, quantile)]

    default = "default (2, 2/n + 1/20)"
    assert 0.08 < min(shares(default, 0.5)) < max(shares(default, 0.5)) < 0.35
    assert min(shares(default, 0.05)) > 0.3
    assert min(shares("(2, 2/n)", 0.05)) < 0.02  # of 1,000 items it expects agreement in all


def test_the_script_writes_its_table(tmp_path, capsys):
    alpha_prior.main(["--smallest", "--out", str(tmp_path)])
    lines = (tmp_path / alpha_prior.CSV_NAME).read_text().splitlines()
    assert len(lines) == 1 + len(alpha_prior.CANDIDATES) * 2 * len(alpha_prior.QUANTILES)
    assert "| 20 | 1.7 | 3.9 | 8.4 | 15.1 |" in capsys.readouterr().out
