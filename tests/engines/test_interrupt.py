"""Ctrl-C is answered within two seconds, and what would never end is refused before it begins."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest

import pseudomallows as pm

INTERRUPTED = """
import os, signal, threading, time
import pseudomallows as pm

def interrupt():
    global begin
    begin = time.process_time()
    os.kill(os.getpid(), signal.SIGINT)

prefs = {data}
threading.Timer({wait}, interrupt).start()
try:
    {work}
except KeyboardInterrupt:
    print(time.process_time() - begin)
"""
LONG_DRAW = "pm.simulate_rankings(5_000_000, 50, 5.0, rng=1)"
CLICKS = "pm.simulate_clicks(20_000, 100, 5.0, rng=1).preferences"
LONG_CHAINS = "pm.fit(prefs, 'mcmc', rng=1)"
LIMIT = 2.0 * len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 4.0  # all cores


def seconds_to_end(work, wait, data=None):
    """CPU seconds from SIGINT, some seconds after work has begun, to its end: a machine that is
    busy with something else does not count."""
    code = INTERRUPTED.format(data=data, wait=wait, work=work)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout, "it ended too early to be interrupted"
    return float(done.stdout)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_a_long_draw_is_interrupted():
    assert seconds_to_end(LONG_DRAW, 0.5) < LIMIT


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_an_interrupt_while_a_thread_starts_does_not_keep_the_process_from_ending():
    code = """
import os, signal, threading
from pseudomallows.engines.executors import all_cores
start = threading.Thread.start

def interrupted_start(thread):
    start(thread)
    if threading.current_thread() is threading.main_thread():
        os.kill(os.getpid(), signal.SIGINT)

threading.Thread.start = interrupted_start
os.cpu_count = lambda: 2
if hasattr(os, "sched_getaffinity"):
    os.sched_getaffinity = lambda _: {0, 1}
list(all_cores().map(abs, [-1, -2]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "KeyboardInterrupt" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
@pytest.mark.parametrize("wait", [2, 6])
def test_chains_are_interrupted(wait):
    assert seconds_to_end(LONG_CHAINS, wait, CLICKS) < LIMIT


def test_a_simulation_that_does_not_fit_is_refused_before_it_begins():
    with pytest.raises(ValueError, match=r"1,000,000,000,000 users .* at most [\d,]+ users fit"):
        pm.simulate_clicks(10**12, 20, 5.0)
    with pytest.raises(ValueError, match=r"at most [\d,]+ items fit; distance='kendall'"):
        pm.simulate_clicks(10, 10_000_000, 5.0)


def test_rankings_of_too_many_items_are_refused_with_a_number_that_works():
    rng = np.random.default_rng(1)
    rankings = [rng.permutation(10_000) + 1 for _ in range(5)]
    prefs = pm.Preferences.from_rankings(rankings)
    with pytest.raises(ValueError, match=r"10,000 items would take too long: .* At most 3,227"):
        pm.fit(prefs, n_draws=20, rng=1)


def test_a_cycle_of_a_thousand_items_is_refused_at_once():
    said = {"ann": [(item, (item + 1) % 1000) for item in range(1000)]}
    prefs = pm.Preferences.from_pairs(said)
    started = time.process_time()
    with pytest.raises(ValueError, match=r"1,000 items would take too long: .* At most 912 items"):
        pm.fit(prefs, rng=1)
    assert time.process_time() - started < 2
