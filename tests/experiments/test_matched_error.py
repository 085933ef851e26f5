"""The error of the additive likelihood by enumeration: the script in its smallest setting."""

import sys
from pathlib import Path

import numpy as np
import pytest

import naive
import pseudomallows as pm

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "experiments"))

import matched_error
import paper


def test_the_script_writes_its_table_and_its_figure(tmp_path, capsys):
    matched_error.main(["--smallest", "--seed", "5", "--out", str(tmp_path)])
    rows = paper.read_rows(tmp_path / "matched_error.csv")
    assert len(rows) == 2 * len(matched_error.ALPHAS)
    assert (tmp_path / "matched_error.png").stat().st_size > 5000
    assert capsys.readouterr().out.count("| 5 |") == len(matched_error.ALPHAS)
    for row in rows:
        assert row["matched"] < 0.1
        assert row["chain"] < 3 * row["independent"] + 0.05
        assert 0.9 < row["effective_share"] < 1 + 1e-9


def test_its_exact_posterior_is_that_of_the_definition():
    rows = [[0], [0, 2], [1, 2, 3], [3]]
    prefs = pm.Preferences.from_clicks(dict(enumerate(rows)), items=range(4))
    consensuses, exact, _ = matched_error.posteriors(prefs, 2.0)
    for consensus, log in zip(consensuses.tolist(), exact, strict=True):
        logs = [np.log(naive.click_likelihood(row, consensus, 2.0)) for row in rows]
        assert log - exact[0] == pytest.approx(
            sum(logs)
            - sum(np.log(naive.click_likelihood(row, consensuses[0], 2.0)) for row in rows)
        )
    assert np.exp(exact).sum() == pytest.approx(1)


def test_the_variation_of_independent_draws_is_as_expected():
    law, rng = np.array([0.5, 0.3, 0.15, 0.05 - 1e-12, 1e-12]), np.random.default_rng(1)
    found = [matched_error.variation(rng.multinomial(50, law) / 50, law) for _ in range(4000)]
    assert np.mean(found) == pytest.approx(matched_error.expected_variation(law, 50), rel=0.03)
