"""The bar of `progress=True`, and what is heard of compiling."""

import gc
import io
import os
import subprocess
import sys

import pytest
from numba.core import event

import pseudomallows as pm
from pseudomallows.engines.compiling import tell_when_compiling
from pseudomallows.engines.progress import Bar, as_progress

SCRIPT = """
import pseudomallows as pm
prefs = pm.simulate_rankings(20, 5, 4, rng=1).preferences
pm.fit(prefs, "mcmc", n_draws=20, n_chains=2, rng=1, progress=True)
"""


def test_a_bar_shows_how_far_it_is_and_is_wiped_at_the_end():
    stream = io.StringIO()
    bar = Bar("fitting", stream)
    bar(1, 4)
    assert "fitting " in stream.getvalue()
    assert " 25 %" in stream.getvalue()
    bar(4, 4)
    assert stream.getvalue().endswith("\r")
    assert set(stream.getvalue().split("\r")[-2]) == {" "}


def test_a_bar_says_that_kernels_are_compiled_as_long_as_it_is_there():
    stream = io.StringIO()
    bar = Bar("fitting", stream)
    with event.trigger_event("numba:compile"):
        assert stream.getvalue().endswith("fitting: compiling, once")
    del bar
    gc.collect()
    before = stream.getvalue()
    with event.trigger_event("numba:compile"):
        assert stream.getvalue() == before


def test_compiling_is_told_once():
    told = []
    with tell_when_compiling(lambda: told.append(1)):
        for _ in range(3):
            with event.trigger_event("numba:compile"):
                pass
    with event.trigger_event("numba:compile"):
        pass
    assert told == [1]


def test_progress_is_a_callable_or_true(capsys):
    prefs = pm.simulate_rankings(20, 5, 4, rng=1).preferences
    seen = []
    same = {"n_draws": 60, "n_chains": 2, "rng": 1}
    first = pm.fit(prefs, "mcmc", progress=lambda done, total: seen.append((done, total)), **same)
    second = pm.fit(prefs, "mcmc", progress=True, **same)
    assert seen
    assert "fitting" in capsys.readouterr().err
    assert (first.consensus == second.consensus).all()
    with pytest.raises(TypeError, match="progress must be True, or a callable"):
        as_progress("yes", "fitting")


@pytest.mark.slow
def test_on_an_empty_cache_the_bar_says_compiling(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "fitting: compiling, once" in done.stderr
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "compiling" not in done.stderr
