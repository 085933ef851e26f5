import math
import sys

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.paper import anytime as anytime_of
from pseudomallows.paper.anytime import anytime

STAGES = ["MAP", "balanced matrix", "weighted draws", "chains"]
RANKINGS = np.argsort(np.arange(1, 7) + np.random.default_rng(1).normal(0, 5, (30, 6))) + 1


@pytest.fixture
def clock(monkeypatch):
    """A clock of which each look takes a second, so that no test depends on the machine."""
    times = iter(range(1_000_000))
    module = sys.modules["pseudomallows.paper.anytime"]  # the function has the same name
    monkeypatch.setattr(module, "perf_counter", lambda: float(next(times)))


def run(seconds, **options):
    return anytime(RANKINGS, 1.5, seconds, rng=1, **options)


def test_it_is_exported():
    assert anytime_of is anytime


@pytest.mark.parametrize(("seconds", "n_stages"), [(0, 1), (1.5, 2), (10, 3), (16, 4)])
@pytest.mark.usefixtures("clock")
def test_stages_come_in_order_as_far_as_the_time_allows(seconds, n_stages):
    answer = run(seconds)
    stages = list(dict.fromkeys(step.stage for step in answer.steps))
    assert stages == STAGES[:n_stages]
    times = [step.seconds for step in answer.steps]
    assert times == sorted(times)
    assert all(abs(step.probabilities.sum(axis=1) - 1).max() < 1e-5 for step in answer.steps)


@pytest.mark.usefixtures("clock")
def test_a_longer_run_begins_like_a_shorter_one():
    short, long = run(10).steps, run(16).steps
    assert len(short) < len(long)
    for one, other in zip(short, long, strict=False):
        np.testing.assert_array_equal(one.probabilities, other.probabilities)


@pytest.mark.parametrize("distance", ["footrule", "spearman", "hamming"])
@pytest.mark.usefixtures("clock")
def test_the_stated_error_holds_and_falls(distance):
    law = pm.PseudoMallows(RANKINGS, 1.5, distance=distance)
    exact = law.exact_rank_probabilities()
    answer = run(20, distance=distance)
    assert (answer.consensus == law.tally.best()).all()
    gaps = [np.abs(step.probabilities - exact).max() for step in answer.steps]
    known = [(g, s.error) for g, s in zip(gaps, answer.steps, strict=True) if s.error < math.inf]
    assert all(gap < 4 * error for gap, error in known)
    assert answer.best.error == min(error for _, error in known) < 0.02
    assert np.abs(answer.best.probabilities - exact).max() < gaps[1] < gaps[0]
    wrong = pm.PseudoMallows(RANKINGS, 1.9, distance=distance).exact_rank_probabilities()
    assert np.abs(answer.best.probabilities - wrong).max() > 2 * answer.best.error


def test_a_figure_shows_all_stages(clock):
    answer = run(16)
    axes = pm.plots.anytime(answer)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == STAGES
    assert "after" in axes.get_title()


@pytest.mark.parametrize(("seconds", "error"), [(-1, ValueError), ("1", TypeError)])
def test_a_wrong_time_is_refused(seconds, error):
    with pytest.raises(error, match="seconds"):
        run(seconds)
