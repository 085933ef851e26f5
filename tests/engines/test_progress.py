"""The bar of long work, on a terminal and in a notebook, and what is heard of compiling."""

import os
import pty
import subprocess
import sys
import types

import pytest
from numba.core import event

import pseudomallows as pm
from pseudomallows.engines.progress import Bar, when_compiling

SLOW = """
import time, sys
import pseudomallows as pm
prefs = pm.simulate_rankings(20, 5, 4, rng=1).preferences
quick = dict(method="mcmc", alpha=2, n_draws=60, n_chains=2, warmup=10, rng=1)
pm.fit(prefs, progress=False, **quick)  # kernels are there
pm.fit(prefs, **quick)
before = time.monotonic()
class Threads:
    def map(self, function, arguments):
        if time.monotonic() - before < 2.3:
            time.sleep(0.05)
        return map(function, arguments)
pm.choose_clusters(prefs, 8, rng=1, executor=Threads())
assert time.monotonic() - before > 2.2
"""
QUIET = """
sys.stderr.write("QUIET")
before = time.monotonic()
pm.choose_clusters(prefs, 2, rng=1, executor=Threads(), progress=False)
assert time.monotonic() - before > 2.2
"""
SCRIPT = """
import pseudomallows as pm
prefs = pm.simulate_rankings(20, 5, 4, rng=1).preferences
pm.fit(prefs, "mcmc", n_draws=20, n_chains=2, rng=1, progress=True)
"""


def seen_on_a_terminal(script):
    """What a process writes on standard error, if that is a terminal."""
    mine, its = pty.openpty()
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stderr=its, env=os.environ | {"TERM": "xterm"}) as process:
        os.close(its)
        said = b""
        while True:
            try:
                part = os.read(mine, 4096)
            except OSError:  # the other end is closed
                break
            said += part
    os.close(mine)
    assert process.returncode == 0, said.decode()
    return said.decode()


def test_long_work_shows_a_bar_on_a_terminal_and_wipes_it_unless_none_is_asked_for():
    said, quiet = seen_on_a_terminal(SLOW + QUIET).split("QUIET")
    assert quiet == ""
    assert "comparing numbers of clusters " in said
    assert " %, " in said
    assert " s left" in said
    assert "fitting" not in said  # the second fit took less than two seconds
    assert said.endswith("\r")
    assert set(said.split("\r")[-2]) == {" "}


def test_a_notebook_sees_the_bar(monkeypatch, capsys):
    """By the name of its shell a notebook is known."""
    shell = type("ZMQInteractiveShell", (), {})
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=shell))
    exec(SLOW, {})
    assert "comparing numbers of clusters " in capsys.readouterr().err


def test_of_bars_within_each_other_the_innermost_is_shown(capsys):
    outer, inner = Bar("outer"), Bar("inner")
    outer(1, 4)
    inner(1, 4)
    assert "inner" in capsys.readouterr().err
    outer(3, 4)
    assert "outer" not in capsys.readouterr().err
    inner.close()
    outer.say("more")
    assert "outer: more" in capsys.readouterr().err
    outer.close()


def test_compiling_is_told_once():
    told = []
    with when_compiling(lambda: told.append(1)):
        for _ in range(3):
            with event.trigger_event("numba:compile"):
                pass
    with event.trigger_event("numba:compile"):
        pass
    assert told == [1]


def test_progress_is_a_callable_or_a_flag(capsys):
    prefs = pm.simulate_rankings(20, 5, 4, rng=1).preferences
    seen = []
    same = {"n_draws": 60, "n_chains": 2, "rng": 1}
    first = pm.fit(prefs, "mcmc", progress=lambda done, total: seen.append((done, total)), **same)
    assert seen
    assert capsys.readouterr().err == ""
    second = pm.fit(prefs, "mcmc", progress=True, **same)
    assert "fitting" in capsys.readouterr().err
    assert (first.consensus == second.consensus).all()
    with pytest.raises(TypeError, match="progress must be True, False, or a callable"):
        pm.fit(prefs, progress="yes")


@pytest.mark.slow
def test_on_an_empty_cache_the_bar_says_compiling(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "fitting: compiling, once" in done.stderr
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "compiling" not in done.stderr
