"""Benchmarks in a small setting; and one whose service does not come up says what happened."""

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import naive

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

import blocks
import cold
import mixtures
import modes
import service
from webhelp import free_port


def test_a_service_that_ends_early_is_told_with_its_last_words(monkeypatch):
    monkeypatch.setattr(service, "PORT", free_port())
    script = "import time; time.sleep(1); exit(3)"
    ended = subprocess.Popen([sys.executable, "-c", script])
    with pytest.raises(RuntimeError, match=r"ended with code 3 .* Connection refused"):
        service.wait_until_ready(ended)


@pytest.mark.parametrize("distance", ["footrule", "kendall", "hamming"])
def test_modes_are_enumerated_by_the_definition(distance):
    camps, sizes = [(1, 2, 3, 4), (2, 4, 1, 3)], [3, 2]
    weights = dict.fromkeys(naive.all_rankings(4), 0.0)
    for alpha in modes.ALPHAS.tolist():
        prior = alpha * math.exp(-alpha * (2 / 4 + 1 / 20)) * alpha  # steps grow with alpha
        log_partition = naive.log_partition(4, alpha, distance)
        for consensus in weights:
            apart = [naive.DISTANCES[distance](camp, consensus) for camp in camps]
            exponent = -alpha / 4 * np.dot(sizes, apart) - sum(sizes) * log_partition
            weights[consensus] += prior * math.exp(exponent)
    exact = naive.marginals(naive.normalise(weights))
    assert np.allclose(modes.exact_ranks(distance, camps, sizes)[1], exact, atol=1e-12)


def test_the_second_mode_of_118_people_is_found():
    rankings = modes.all_rankings(5)
    swaps = np.array([modes.distances("hamming", rankings, one) == 2 for one in rankings])
    distance, camps, sizes = modes.SETS["118 people"]
    masses, _ = modes.exact_ranks(distance, camps, sizes)
    assert math.isclose(1 - masses.max(), 0.365, abs_tol=0.001)
    assert modes.has_second_mode(masses, swaps)
    alone, _ = modes.exact_ranks(distance, camps[:1], sizes[:1])
    assert not modes.has_second_mode(alone, swaps)


@pytest.mark.filterwarnings("ignore")
def test_a_small_setting_of_random_camps_runs(capsys):
    modes.random_sets(n_sets=40, n_others=2, seed=1)
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith(("footrule, ", "kendall, ")) for line in lines) == 4


@pytest.mark.filterwarnings("ignore")
def test_a_small_setting_of_mixtures_runs(capsys):
    mixtures.compare(n_users=60, numbers=[2], n_seeds=1)
    header, _, row, _ = capsys.readouterr().out.splitlines()
    assert "chains at the best of all seeds" in header
    assert row.split()[:2] == ["2", "0"]


@pytest.mark.filterwarnings("ignore")
def test_a_small_setting_of_blocks_runs(capsys):
    blocks.run_case("tiers", "20x10", seed=1)
    assert json.loads(capsys.readouterr().out)["size"] > 0


@pytest.mark.parametrize("kind", blocks.KINDS)
def test_people_show_a_part_of_their_rankings(kind):
    rankings = np.array([np.random.default_rng(1).permutation(20) + 1])
    seen = blocks.shown(rankings, kind, np.random.default_rng(1))
    n_values = {"top": 6, "tiers": 5, "gaps": (seen > 0).sum() + 1}[kind]
    assert len(np.unique(seen)) == n_values
    if kind != "tiers":
        assert (rankings == seen)[seen > 0].all()


def test_a_case_over_its_limit_is_named():
    assert blocks.in_a_process("top", "300x20", 1, limit=1)[1] == "over 1"


@pytest.mark.slow
def test_the_first_fit_compiles_kernels_and_the_next_does_not():
    first, n_kernels, following = cold.measure(*cold.KINDS["rankings"])
    assert int(n_kernels) > 5
    assert float(following) < float(first)
