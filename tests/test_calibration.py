"""Simulation-based calibration: exact methods pass, slightly wrong ones are caught."""

import csv
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "experiments"))

import calibration_of_methods as calibration
import pseudomallows as pm
from pseudomallows.distances import DISTANCES

FEW = 20  # draws of a chain: one place for each of the 21 bins, by a third of the thinned sweeps
CHAINS = [replace(s, n_draws=FEW) for s in calibration.SETTINGS if s.method == "mcmc"]
COLUMNS = {"version", "seed", "n_items", "n_users", "n_draws"}
COLUMNS |= {"method", "data", "quantity", "replication", "place"}


def find_setting(name, data):
    """The setting of the experiment with this name and data."""
    settings = calibration.SETTINGS
    return next(setting for setting in settings if (setting.name, setting.data) == (name, data))


def p_values(setting, n_replications, seed):
    """{quantity: p-value of its histogram}."""
    counts = calibration.count_places(calibration.run([setting], n_replications, seed))
    return {quantity: calibration.p_value(bins) for (_, _, quantity), bins in counts.items()}


@pytest.mark.slow
@pytest.mark.parametrize("setting", CHAINS, ids=lambda setting: f"{setting.name}, {setting.data}")
def test_the_exact_chain_is_calibrated(setting):
    values = p_values(setting, n_replications=500, seed=20_240_301)
    assert set(values) == {"item", "distance"} | ({"alpha"} if setting.alpha is None else set())
    assert min(values.values()) > 1e-4


def by_distance(name, data, **options):
    """The exact chain with another distance; latent rankings that move by exchanges need more."""
    thin = 5 if data == "full" else 25
    options = {"thin": thin, "warmup": 200, "n_chains": 1, "distance": name} | options
    options = {"alpha_prior": calibration.ALPHA_PRIOR} | options
    return calibration.Setting(f"mcmc, {name}", "mcmc", data, None, options, n_draws=FEW)


@pytest.mark.slow
@pytest.mark.parametrize("data", ["full", "top", "gaps"])
@pytest.mark.parametrize("name", [name for name in DISTANCES if name != "footrule"])
def test_the_exact_chain_of_every_distance_is_calibrated(name, data):
    values = p_values(by_distance(name, data), n_replications=300, seed=20_261_117)
    assert set(values) == {"item", "distance", "alpha"}
    assert min(values.values()) > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in DISTANCES if name != "footrule"])
def test_a_wrong_prior_of_alpha_is_caught_by_every_distance(name):
    wrong = by_distance(name, "top", alpha_prior=(4.0, 2.5))
    assert p_values(wrong, n_replications=100, seed=20_261_118)["alpha"] < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spearman", "cayley", "hamming", "ulam"])
def test_the_exact_chain_of_clicks_is_calibrated_by_the_other_distances(name):
    values = p_values(by_distance(name, "clicks"), n_replications=300, seed=20_261_119)
    assert set(values) == {"item", "distance", "alpha"}
    assert min(values.values()) > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spearman", "cayley", "hamming", "ulam"])
def test_a_wrong_prior_of_alpha_is_caught_by_clicks(name):
    wrong = by_distance(name, "clicks", alpha_prior=(4.0, 2.5))
    assert p_values(wrong, n_replications=100, seed=20_261_120)["alpha"] < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("data", ["full", "top"])
def test_data_with_a_slightly_wrong_alpha_are_caught(data):
    setting = replace(find_setting("mcmc, swap, alpha fixed", data), data_alpha=2.8)
    assert setting.alpha == 2.0
    assert p_values(setting, n_replications=500, seed=20_240_302)["distance"] < 1e-4


@pytest.mark.slow
def test_a_wrong_prior_of_alpha_is_caught():
    setting = find_setting("mcmc, swap, alpha sampled", "full")
    wrong = replace(setting, options=setting.options | {"alpha_prior": (4.0, 2.0)})
    assert p_values(wrong, n_replications=500, seed=20_240_303)["alpha"] < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(("data", "n_replications"), [("full", 1500), ("top", 300)])
def test_balanced_draws_are_calibrated_with_their_weights_only(data, n_replications):
    weighted = find_setting("balanced, with weights", data)
    unweighted = find_setting("balanced, no weights", data)
    assert min(p_values(weighted, n_replications, seed=20_240_304).values()) > 1e-4
    # with foresight, 300 data sets do not tell the draws of chains without weights from exact ones
    if data == "full":
        assert p_values(unweighted, n_replications, seed=20_240_305)["distance"] < 1e-6


def places_of_comparers(model, n_replications, seed, **options):
    """{quantity: p-value}, of people who compare 6 of 5 items' pairs, with errors or without."""
    places = {"item": [], "alpha": []} | ({"theta": []} if model == "bernoulli" else {})
    for replication in range(n_replications):
        rng = np.random.default_rng((seed, replication))
        shape, rate = calibration.ALPHA_PRIOR
        alpha, theta = rng.gamma(shape, 1 / rate), rng.uniform(0, 0.5)
        consensus, said = rng.permutation(5) + 1, {}
        for user, ranks in enumerate(pm.Mallows(consensus, alpha).draw(15, rng)):
            pairs = [rng.choice(5, 2, replace=False) for _ in range(6)]
            pairs = [sorted(pair.tolist(), key=lambda item: ranks[item]) for pair in pairs]
            is_wrong = rng.random(6) < (theta if model == "bernoulli" else 0.0)
            said[user] = [tuple(p[::-1] if w else p) for p, w in zip(pairs, is_wrong, strict=True)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on purpose: the draws are few
            found = pm.fit(
                pm.Preferences.from_pairs(said, items=range(5)),
                "mcmc",
                n_draws=99,
                thin=20,
                warmup=300,
                n_chains=1,
                errors=model,
                rng=rng,
                executor=pm.Threads(1),
                **{"alpha_prior": calibration.ALPHA_PRIOR} | options,
            )
        places["item"].append(calibration.place_of(consensus[0], found.consensus[0, :, 0, 0], rng))
        places["alpha"].append(calibration.place_of(alpha, found.alpha[0, :, 0], rng))
        if model == "bernoulli":
            places["theta"].append(calibration.place_of(theta, found.theta[0], rng))
    bins = {name: np.bincount(np.array(mine) // 10, minlength=10) for name, mine in places.items()}
    return {name: stats.chisquare(counts).pvalue for name, counts in bins.items()}


@pytest.mark.slow
@pytest.mark.parametrize("model", ["none", "bernoulli"])
def test_the_chain_of_people_who_compare_is_calibrated(model):
    assert min(places_of_comparers(model, 200, 20_261_120).values()) > 1e-4


@pytest.mark.slow
def test_a_wrong_prior_of_errors_is_caught():
    values = places_of_comparers("bernoulli", 200, 20_261_121, theta_prior=(12.0, 1.0))
    assert values["theta"] < 1e-4


def test_the_place_of_the_truth_is_uniform_among_equal_draws():
    rng, draws = np.random.default_rng(20_240_306), np.array([3, 5, 5, 5, 7])
    places = [calibration.place_of(5, draws, rng) for _ in range(4000)]
    assert set(places) == {1, 2, 3, 4}
    assert stats.chisquare(np.bincount(places)[1:]).pvalue > 1e-4


def test_the_experiment_runs_from_end_to_end(tmp_path, capsys):
    figure = tmp_path / "figures" / "calibration.png"
    arguments = ["--replications", "1", "--seed", "5", "--processes", "1"]
    calibration.main([*arguments, "--out", str(tmp_path), "--figure", str(figure)])
    with (tmp_path / calibration.CSV_NAME).open() as file:
        rows = list(csv.DictReader(file))
    n_sampled = sum(setting.alpha is None for setting in calibration.SETTINGS)
    assert len(rows) == 2 * len(calibration.SETTINGS) + n_sampled
    assert set(rows[0]) == COLUMNS
    assert {row["seed"] for row in rows} == {"5"}
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out.count("p = ") == len(rows)
