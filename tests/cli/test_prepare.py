"""pseudomallows prepare: kernels are compiled before they are needed."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from clihelp import run
from pseudomallows.cli import prepare


def test_parts_run_side_by_side_and_are_counted(capsys, monkeypatch):
    started, done = [], SimpleNamespace(stderr="", returncode=0)
    monkeypatch.setattr(subprocess, "run", lambda command, **_: started.append(command[-1]) or done)
    assert run("prepare") == 0
    names = [script.partition("compile_part('")[2].removesuffix("')") for script in started]
    assert sorted(names) == sorted(prepare.PARTS)
    said = capsys.readouterr().err
    assert f"{len(started)} of {len(started)}: " in said
    assert "Ready, in " in said


@pytest.mark.parametrize(
    ("said", "code", "words"),
    [("Traceback\nOSError: full", 1, "OSError: full"), ("", -9, "it ended with code -9")],
)
def test_a_part_that_fails_is_named(capsys, monkeypatch, said, code, words):
    done = SimpleNamespace(stderr=said, returncode=code)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    assert run("prepare") == 1
    said = capsys.readouterr().err
    assert f"clicks and their clusters: {words}" in said
    assert "groups could not be compiled" in said


@pytest.mark.slow
def test_after_it_a_fit_compiles_nothing(tmp_path):
    """On an empty cache; a part that fails ends the command with an error."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    prepared = [sys.executable, "-m", "pseudomallows", "prepare", "--quiet"]
    subprocess.run(prepared, env=environment, check=True)
    script = """
import pseudomallows as pm
from pseudomallows.engines.progress import when_compiling
told = []
with when_compiling(lambda: told.append(1)):
    clicks = pm.simulate_clicks(300, 20, [6, 6], 5, rng=2).preferences
    pm.recommend(pm.fit(clicks, "personal", rng=1), 3)
    rankings = pm.simulate_rankings(30, 8, 6, rng=1).preferences
    pm.fit(rankings, "mcmc", n_draws=300, rng=1)
assert not told
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], env=environment, check=True)
