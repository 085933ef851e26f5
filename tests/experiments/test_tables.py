"""Figures of the paper, section 4: each script in its smallest setting shows what it should."""

import csv
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "experiments"))

import accuracy_clicks
import accuracy_rankings
import case_study
import naive
import paper
import pseudomallows as pm
import scaling
from helpers import choose, p_value
from metropolis import MetropolisChain
from pseudomallows.scores import rank_divergence, share_of_ranks

SEED = 20_240_901
SCRIPTS = [accuracy_rankings, accuracy_clicks, case_study, scaling]
RANKINGS = np.array([[1, 2, 3, 4], [2, 1, 3, 4], [1, 3, 2, 4]])


def name_of(script):
    return script.__name__


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """{script: (its folder, the rows of its table)}, each run once."""
    found = {}

    def make(script):
        if script not in found:
            folder = tmp_path_factory.mktemp(script.__name__)
            script.main(["--smallest", "--seed", str(SEED), "--out", str(folder)])
            found[script] = folder, paper.read_rows(folder / f"{script.__name__}.csv")
        return found[script]

    return make


def mean_of(rows, what, **wanted):
    """Mean of a column over the rows with these values."""
    return float(np.mean(paper.column(paper.select(rows, **wanted), what)))


def last_of(rows, what, method):
    """The mean at the largest budget of a method."""
    draws = max(row["draws"] for row in paper.select(rows, method=method))
    return mean_of(rows, what, method=method, draws=draws)


LONG = ("case_study",)  # half a minute


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(each, marks=pytest.mark.slow if name_of(each) in LONG else ())
        for each in SCRIPTS
    ],
    ids=name_of,
)
def test_a_script_writes_its_table_and_its_figure(script, made):
    folder, rows = made(script)
    names = {path.name for path in folder.iterdir()}
    assert names == {f"{script.__name__}.csv", f"{script.__name__}.png"}
    assert {row["seed"] for row in rows} == {SEED}
    assert {"version", "setting"} <= set(rows[0])


@pytest.mark.parametrize("script", SCRIPTS, ids=name_of)
def test_the_figure_comes_from_the_table_alone(script, made, monkeypatch):
    folder, _ = made(script)
    picture = folder / f"{script.__name__}.png"
    before = picture.read_bytes()
    picture.unlink()
    monkeypatch.setattr(script, "run", lambda *_, **__: pytest.fail("it runs again"))
    script.main(["--draw-only", "--out", str(folder)])
    assert picture.read_bytes() == before


# The opponent of full rankings


def opponent_p_value(alpha):
    """p-value of the ends of 20,000 short runs, started in the exact posterior at alpha 1."""
    exact = naive.posterior(RANKINGS.tolist(), 1.0)
    rng = np.random.default_rng(SEED)
    starts = choose(exact, 20_000, rng)
    ends = np.empty_like(starts)
    for start, end in zip(starts, ends, strict=True):
        chain = accuracy_rankings.UserChain(RANKINGS, alpha, rng)
        chain.leap = 2
        chain.consensus[:] = start - 1
        chain.run(5)
        end[:] = chain.consensus + 1
    return p_value(ends, exact)


def test_the_opponent_keeps_the_exact_posterior():
    assert opponent_p_value(alpha=1.0) > 1e-4


def test_an_opponent_with_a_wrong_alpha_is_caught():
    assert opponent_p_value(alpha=1.3) < 1e-10


def test_the_opponent_finds_the_exact_marginals_from_anywhere():
    exact = np.array(naive.marginals(naive.posterior(RANKINGS.tolist(), 2.0)))
    chain = accuracy_rankings.UserChain(RANKINGS, 2.0, np.random.default_rng(SEED))
    counts = chain.run(1_000_000, keep=20)
    assert counts.sum() == 4 * 50_000
    assert np.abs(counts / 50_000 - exact).max() < 0.01


def test_the_cp_consensus_is_that_of_the_package():
    prefs = pm.simulate_rankings(20, 7, 3, rng=SEED).preferences
    for seed in range(5):
        posterior = pm.fit(prefs, "mcmc", 3.0, n_draws=200, rng=seed)
        found = accuracy_rankings.cp_consensus(posterior.rank_probabilities())
        assert np.array_equal(found, posterior.point_consensus())


# What the figures show


def test_the_chain_on_users_has_a_burn_in_and_the_others_have_none(made):
    _, rows = made(accuracy_rankings)
    first = {
        name: mean_of(rows, "distance", method=name, draws=min(paper.unique(own, "draws")))
        for name in accuracy_rankings.COLOURS
        for own in [paper.select(rows, method=name)]
    }
    last = {name: last_of(rows, "distance", name) for name in first}
    assert first["chain on users"] > 1.5 * last["chain on users"]
    assert first["chain on users"] > 1.5 * first["Pseudo-Mallows, sigma 0"]
    assert first["chain on costs"] <= last["chain on users"] + 4
    assert last["chain on costs"] <= last["Pseudo-Mallows, sigma 0"]


def test_one_draw_of_the_chain_on_costs_is_near_the_map():
    rng = np.random.default_rng(SEED)
    data = pm.simulate_rankings(200, 100, 5.0, rng=rng)
    one = accuracy_rankings.by_costs(data.rankings, 5.0, 1, rng)
    best = scaling.by_assignment(data.rankings, rng)
    assert pm.footrule(one, data.consensus) < 2 * pm.footrule(best, data.consensus)


def test_a_random_start_costs_accuracy_and_calibration_from_clicks(made):
    _, rows = made(accuracy_clicks)
    short = {"method": "Metropolis chain", "draws": 40}
    assert mean_of(rows, "accuracy", **short) < last_of(rows, "accuracy", "exact chain") - 0.1
    assert mean_of(rows, "calibration_error", **short) > 0.2
    assert last_of(rows, "calibration_error", "exact chain") < 0.1


def test_the_pseudo_mallows_needs_few_draws_but_is_less_calibrated_than_the_exact_chain(made):
    _, rows = made(accuracy_clicks)
    few = {"method": "Pseudo-Mallows", "draws": 5}
    assert mean_of(rows, "accuracy", **few) > last_of(rows, "accuracy", "Metropolis chain")
    assert mean_of(rows, "distance", **few) < last_of(rows, "distance", "Metropolis chain")
    names = "Pseudo-Mallows", "exact chain", "foresight"
    own, exact, foresight = (last_of(rows, "calibration_error", name) for name in names)
    assert own > 1.5 * exact
    assert own > 1.5 * foresight


def test_users_of_the_pseudo_mallows_visit_items_in_uniform_order():
    rng = np.random.default_rng(SEED)
    data = pm.simulate_clicks(100, 12, 6.0, 3, rng=rng)
    trial = accuracy_clicks.Trial(data, 6.0, rng)
    own = share_of_ranks(trial.by_pseudo(1000).posterior.consensus[0, :, 0])
    short = {"n_draws": 1000, "warmup": 10, "n_chains": 1, "thin": 1, "sigma": 0.0}
    far = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.diagnostics.FitWarning)
        for order in ("uniform", "v", "top_bottom"):
            fit = pm.fit(data.preferences, "pseudo", 6.0, order=order, rng=SEED, **short)
            far[order] = np.abs(share_of_ranks(fit.consensus[0, :, 0]) - own).sum()
    assert far["uniform"] < 0.6 * min(far["v"], far["top_bottom"])


def test_the_opponent_gives_the_k_ranks_after_the_clicks_to_k_items():
    rng = np.random.default_rng(SEED)
    prefs = pm.simulate_clicks(20, 10, 3.0, rng=rng).preferences
    chain = MetropolisChain(prefs, 3.0, rng)
    draws, probabilities = accuracy_clicks.count_latent(chain, prefs, 3, 50)
    assert draws.shape == (10, 10)
    np.testing.assert_array_equal((probabilities < 0).sum(axis=1), prefs.n_clicks)
    np.testing.assert_allclose(probabilities.clip(0).sum(axis=1), 3)


def test_click_counts_are_as_accurate_as_the_oracle(made):
    _, rows = made(accuracy_clicks)
    popularity, oracle = (
        mean_of(rows, "accuracy", method=name) for name in ("popularity", "oracle")
    )
    assert abs(popularity - oracle) < 0.06
    for name in ("exact chain", "foresight", "Pseudo-Mallows"):
        assert abs(last_of(rows, "accuracy", name) - popularity) < 0.06


def test_the_exact_curve_goes_through_the_simulated_points(made):
    _, rows = made(case_study)
    exact, simulated = (paper.select(rows, part=part) for part in ("exact", "simulated"))
    x, y = (paper.column(exact, name) for name in ("alpha", "similarity"))
    assert (np.diff(y) > 0).all()
    expected = np.interp(paper.column(simulated, "alpha"), x, y)
    assert np.abs(paper.column(simulated, "similarity") / expected - 1).max() < 0.1


def test_methods_that_learn_beat_popularity_on_purchases(made):
    _, rows = made(case_study)
    accuracy = {r["method"]: r["accuracy"] for r in paper.select(rows, part="accuracy")}
    assert accuracy[case_study.PERSONAL] > accuracy["popularity"] + 0.02
    assert accuracy["EASE"] > accuracy["popularity"] + 0.02
    assert accuracy[case_study.EXACT] > accuracy[case_study.CHAIN] + 0.03
    assert accuracy[case_study.PSEUDO] > accuracy[case_study.CHAIN] + 0.03
    gaps = {r["method"]: r["calibration_error"] for r in paper.select(rows, part="accuracy")}
    assert gaps[case_study.CHAIN] > 2 * gaps[case_study.PSEUDO]
    # learnt from clicks hidden at random, as these are, so both are calibrated
    assert max(gaps[case_study.CORRECTED], gaps[case_study.PERSONAL]) < gaps[case_study.CHAIN] / 4


def test_the_case_study_reads_a_split_from_files(tmp_path):
    for name, rows in {"train": [(7, 3), (7, 5), (9, 5)], "test": [(7, 4), (9, 3)]}.items():
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("user", "item"), *rows])
    split = case_study.split_msweb(tmp_path)
    assert split.train.toarray().tolist() == [[1, 0, 1], [0, 0, 1]]
    assert split.hidden.tolist() == [[False, True, False], [True, False, False]]


def test_prices_bring_draws_nearer_and_weights_make_them_exact(made):
    _, rows = made(scaling)
    gaps = {law: mean_of(rows, "divergence", law=law) for law in scaling.LAWS}
    assert gaps["balanced"] < gaps["V orders, best sigma"] / 5  # with foresight
    assert gaps["balanced matrix"] < gaps["V orders, best sigma"] / 5
    assert gaps["balanced, weighted"] < gaps["balanced"] / 3
    assert gaps["exact draws"] < 0.1


def test_the_divergence_is_that_of_the_law_from_the_exact_one():
    rng = np.random.default_rng(SEED)
    rankings = pm.simulate_rankings(30, 10, 3.0, rng=rng).rankings
    law = pm.PseudoMallows(rankings, 3.0, balanced=True)
    tables = law.balanced_marginals(), law.exact_rank_probabilities()
    rows = scaling.closeness(rankings, 3.0, 1000, rng)
    found = next(row["divergence"] for row in rows if row["law"] == "balanced matrix")
    assert found == pytest.approx(rank_divergence(*tables), rel=0.15)
    assert found > 1.25 * rank_divergence(*tables[::-1])  # the other way round it is less


def test_more_users_bring_the_consensus_nearer_to_the_truth(made):
    _, rows = made(scaling)
    for method in scaling.METHODS:
        few, many = (
            mean_of(rows, "distance", part="users", method=method, n_users=n) for n in (50, 500)
        )
        assert many < few / 2


def test_the_pseudo_mallows_is_farther_from_the_truth_than_the_map(made):
    _, rows = made(scaling)
    own, best = (
        mean_of(rows, "distance", part="users", method=method, n_users=50)
        for method in ("Pseudo-Mallows", "MAP by assignment")
    )
    assert own > 1.5 * best


def test_cells_come_back_as_numbers_where_they_are_numbers(tmp_path):
    rows = [{"whole": 3, "real": -1.5e-7, "text": "mcmc", "none": ""}]
    paper.write_rows(rows, tmp_path / "x.csv", SEED, "smallest")
    (found,) = paper.read_rows(tmp_path / "x.csv")
    assert {name: found[name] for name in rows[0]} == rows[0] | {"none": None}
    assert type(found["whole"]) is int
