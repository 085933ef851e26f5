"""Fits of full rankings with a time limit, by a clock that does not depend on the machine."""

import itertools
import sys
import types

import numpy as np
import pytest

import naive
import pseudomallows as pm

STAGES = ["MAP", "balanced matrix", "weighted draws", "chains"]
RANKINGS = np.argsort(np.arange(1, 7) + np.random.default_rng(1).normal(0, 5, (30, 6))) + 1
PREFS = pm.Preferences.from_rankings(RANKINGS)
PRIOR = (4.0, 1.0)


@pytest.fixture
def clock(monkeypatch):
    """A clock of which each look takes a second."""
    ticks = itertools.count()
    seconds = types.SimpleNamespace(perf_counter=lambda: float(next(ticks)))
    for name in ("anytime", "clicks"):
        monkeypatch.setattr(sys.modules[f"pseudomallows.paper.{name}"], "time", seconds)


def run(seconds, alpha=1.5, **options):
    return pm.fit(PREFS, alpha=alpha, seconds=seconds, rng=1, **options)


def stages(fitted):
    return list(dict.fromkeys(step["stage"] for step in fitted.settings["in_time"]["steps"]))


@pytest.mark.parametrize(
    ("seconds", "shape", "n_stages"),
    [(0, (1, 25), 3), (5.5, (1, 50), 3), (6.5, (1, 100), 3), (100, (4, 4000), 4)],
)
@pytest.mark.usefixtures("clock")
@pytest.mark.filterwarnings("ignore::pseudomallows.diagnostics.EffectiveSizeWarning")
def test_stages_come_in_order_as_far_as_the_time_allows(seconds, shape, n_stages):
    fitted = run(seconds)
    assert fitted.settings["method"] == "balanced"
    assert fitted.alpha.shape[:2] == fitted.weights.shape == fitted.consensus.shape[:2] == shape
    assert stages(fitted) == STAGES[:n_stages]
    times = [step["seconds"] for step in fitted.settings["in_time"]["steps"]]
    assert times == sorted(times)
    assert fitted.log_evidence_error < 0.2


@pytest.mark.usefixtures("clock")
@pytest.mark.filterwarnings("ignore::pseudomallows.diagnostics.EffectiveSizeWarning")
def test_more_time_begins_with_the_same_draws():
    short, long = run(0), run(6.5)
    np.testing.assert_array_equal(short.consensus[0], long.consensus[0, :25])
    assert short.settings["in_time"]["error"] > long.settings["in_time"]["error"]


@pytest.mark.parametrize("distance", ["footrule", "spearman", "hamming"])
@pytest.mark.usefixtures("clock")
def test_the_stated_error_holds(distance):
    exact, wrong = (
        pm.PseudoMallows(RANKINGS, alpha, distance=distance).exact_rank_probabilities()
        for alpha in (1.5, 1.9)
    )
    fitted = run(100, distance=distance)
    answer = fitted.settings["in_time"]
    far = [np.abs(fitted.rank_probabilities() - table).max() for table in (exact, wrong)]
    assert answer["error"] < 0.02
    assert far[0] < 4 * answer["error"] < far[1]
    gaps = [next(s["gap"] for s in answer["steps"] if s["stage"] == stage) for stage in STAGES]
    assert gaps[0] > gaps[1] > 4 * answer["error"]


@pytest.mark.usefixtures("clock")
def test_chains_with_alpha_unknown_are_of_the_exact_posterior():
    fitted = run(100, alpha=None, alpha_prior=PRIOR)
    assert fitted.settings["in_time"]["stage"] == "chains"
    totals = np.array([np.abs(RANKINGS - each).sum() for each in naive.all_rankings(6)])
    alphas = np.linspace(0.01, 20, 1000)
    logs = -alphas[:, None] / 6 * totals + (PRIOR[0] - 1) * np.log(alphas)[:, None]
    logs -= (PRIOR[1] * alphas)[:, None]
    logs -= np.array([30 * pm.Mallows(np.arange(1, 7), a).log_partition for a in alphas])[:, None]
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    consensuses = np.array(naive.all_rankings(6))
    exact = np.stack([(consensuses == r).T @ weights.sum(axis=0) for r in range(1, 7)], axis=1)
    assert (
        np.abs(fitted.rank_probabilities() - exact).max() < 4 * fitted.settings["in_time"]["error"]
    )
    mean = float(weights.sum(axis=1) @ alphas)
    size = fitted.diagnostics().alpha_effective_size
    assert abs(fitted.alpha.mean() - mean) < 4 * fitted.alpha.std() / np.sqrt(size)
    other = run(100, alpha=None, alpha_prior=(4.0, 1.5))
    assert abs(other.alpha.mean() - mean) > 8 * fitted.alpha.std() / np.sqrt(size)


@pytest.mark.usefixtures("clock")
def test_the_verdict_looks_at_the_chains_and_states_the_error(tmp_path):
    fitted = run(100)
    verdict = fitted.verdict()
    assert verdict.answer == "yes"
    assert {"largest R-hat", "largest error stated"} <= {check.name for check in verdict.checks}
    assert "chains knew each rank probability to within 0.0" in verdict.words
    fitted.save(tmp_path / "fit.pm")
    loaded = pm.load(tmp_path / "fit.pm")
    assert loaded.settings["in_time"] == fitted.settings["in_time"]
    assert loaded.verdict().words == verdict.words


@pytest.mark.usefixtures("clock")
def test_too_little_time_asks_for_more():
    with pytest.warns(pm.diagnostics.EffectiveSizeWarning, match=r"more time \(seconds=\)"):
        run(0)


@pytest.mark.usefixtures("clock")
def test_a_figure_shows_all_stages():
    axes = pm.plots.anytime(run(100))
    assert [text.get_text() for text in axes.get_legend().get_texts()] == STAGES
    assert axes.get_title().startswith("chains: known to 0.0")
    with pytest.raises(ValueError, match="no time limit"):
        pm.plots.anytime(pm.fit(PREFS, "balanced", 1.5, n_draws=400, rng=1))


@pytest.mark.parametrize(
    ("options", "error"),
    [({"seconds": -1}, "seconds"), ({"seconds": 1, "n_chains": 2}, "leave out n_chains=2")],
)
def test_what_does_not_go_with_a_time_is_refused(options, error):
    with pytest.raises(ValueError, match=error):
        pm.fit(PREFS, **options)


def test_a_time_limit_is_for_full_rankings_with_one_cluster():
    partial = pm.Preferences.from_rankings([[1, 2, 0, 0], [0, 1, 2, 0]])
    with pytest.raises(TypeError, match="no option 'seconds'"):
        pm.fit(partial, "balanced", seconds=1.0)
