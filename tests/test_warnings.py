"""Warnings point to the line that calls the package, wherever in it they arise."""

import inspect
import warnings

import pytest

import pseudomallows as pm


def warn_of_rankings(folder):
    pm.Preferences.from_rankings([[0, 1, 2], [2, 0, 1], [1, 2, 0]])


def warn_of_a_file(folder):
    (folder / "c.csv").write_text("user,item\n1,a\n1,b\n,a\n2,b\n")
    pm.read(folder / "c.csv")


def warn_of_a_fit(folder):
    prefs = pm.simulate_rankings(30, 8, 2, rng=1).preferences
    pm.fit(prefs, "mcmc", n_draws=3, warmup=1, n_chains=2, rng=1)


def warn_of_an_evaluation(folder):
    prefs = pm.simulate_clicks(60, 6, 5, 3, rng=1).preferences
    pm.evaluate(prefs, 1, 1, "mcmc", n_draws=3, warmup=1, n_chains=2, rng=1)


@pytest.mark.parametrize(
    "work", [warn_of_rankings, warn_of_a_file, warn_of_a_fit, warn_of_an_evaluation]
)
def test_warnings_point_to_the_line_of_the_caller(work, tmp_path):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        work(tmp_path)
    assert caught
    lines, first = inspect.getsourcelines(work)
    for each in caught:
        assert each.filename == __file__
        assert each.lineno == first + len(lines) - 1  # its last line
