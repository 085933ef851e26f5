"""pseudomallows prepare: compile the kernels, side by side, before they are needed."""

import argparse
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, cast

import numpy as np

from ..data.blocks import Clicks
from ..data.datasets import simulate_clicks, simulate_rankings
from ..data.preferences import Preferences
from ..distances import DISTANCES, distance_between
from ..distances.mallows import Mallows
from ..evaluation.evaluate import evaluate
from ..recommendations.next_pairs import next_pairs
from ..recommendations.recommend import recommend
from ..sampling.fit import fit
from .arguments import THREADS, command, say

SHORT: dict[str, Any] = {"n_draws": 4, "rng": 1}  # few: it is enough that each kernel runs


def _rankings() -> None:
    for top in (None, 3):
        for n_clusters in (1, 2):
            prefs = simulate_rankings(40, 6, [6.0, 6.0], top=top, rng=1).preferences
            latent: dict[str, Any] = {} if top is None else {"keep_latent": True}
            fit(prefs, "mcmc", n_clusters=n_clusters, **latent, **SHORT)
            for method in ("pseudo", "balanced"):
                fit(prefs, method, n_clusters=n_clusters, **SHORT)


def _clicks(method: str) -> None:
    prefs = simulate_clicks(120, 6, [6.0, 6.0], 2.5, rng=1).preferences
    for n_clusters in (1, 2):
        posterior = fit(prefs, method, n_clusters=n_clusters, **SHORT)
        recommend(posterior, 2)
        recommend(posterior, 2, clicks={"new": [1]})


def _exact_clicks() -> None:  # and those of "matched", which is the same chain uncorrected
    _clicks("mcmc")
    prefs = simulate_clicks(120, 6, 6.0, 2.5, rng=1).preferences
    fit(prefs, "mcmc", keep_latent=True, **SHORT)
    fit(prefs, n_clusters="auto", **SHORT)


def _personal() -> None:
    prefs = cast(Clicks, simulate_clicks(400, 30, 5.0, 8, min_clicks=6, rng=1).preferences)
    posterior = evaluate(prefs, 3, 3, "personal", rng=1).posterior
    recommend(posterior, 3, clicks={"new": [1]})
    fit(prefs, "personal", rng=1)


def _comparisons() -> None:
    rng = np.random.default_rng(1)
    pairs = np.sort(np.array([rng.choice(5, 2, replace=False) for _ in range(120)]), axis=1)
    users = np.repeat(np.arange(30), 4)
    rows = [(int(user), *pair) for user, pair in zip(users, pairs.tolist(), strict=True)]
    prefs = Preferences.from_pairs([*rows, (0, 4, 0)])
    for distance in ("footrule", "kendall"):
        next_pairs(fit(prefs, "mcmc", distance=distance, errors="bernoulli", **SHORT))
    votes = Preferences.from_pairs([(f"v{n}", *row[1:]) for n, row in enumerate(rows)])
    fit(votes, "mcmc", **SHORT)


def _distances() -> None:
    prefs = simulate_rankings(40, 6, 6.0, rng=1).preferences
    partial = simulate_rankings(40, 6, 6.0, top=3, rng=1).preferences
    for name in ("hamming", "kendall"):
        fit(partial, "mcmc", distance=name, keep_latent=True, **SHORT)
    for name in DISTANCES:
        distance_between([[2, 1, 3]], [1, 2, 3], name)
        Mallows(np.arange(1, 7), 2.0, name).draw(2, rng=1)
        fit(prefs, "mcmc", distance=name, **SHORT)


def _kendall() -> None:
    prefs = simulate_clicks(120, 6, [6.0, 6.0], 2.5, rng=1).preferences
    for n_clusters in (1, 2):
        posterior = fit(prefs, "mcmc", n_clusters=n_clusters, distance="kendall", **SHORT)
        recommend(posterior, 2)
        recommend(posterior, 2, clicks={"new": [1]})
    rows = {user: [user % 7, 7 + user % 3] for user in range(40)}
    large = Preferences.from_clicks(rows, items=range(25_000))
    for n_clusters in (1, 2):
        fit(large, "mcmc", n_clusters=n_clusters, distance="kendall", **SHORT)
    prefs = simulate_clicks(400, 30, 5.0, 8, min_clicks=6, rng=1).preferences
    recommend(fit(prefs, "personal", distance="kendall", rng=1), 3)


def _other_distances() -> None:
    prefs = simulate_clicks(40, 6, [6.0, 6.0], 2.5, rng=1).preferences
    for name in ("spearman", "cayley", "hamming", "ulam"):
        for n_clusters in (1, 2):
            options = {"distance": name, "keep_latent": True, **SHORT}
            recommend(fit(prefs, "mcmc", n_clusters=n_clusters, **options), 2)


PARTS: dict[str, tuple[str, Callable[[], None]]] = {  # the longest first
    "personal": ("recommendations by an order for each user", _personal),
    "exact": ("clicks and their clusters", _exact_clicks),
    "rankings": ("rankings, full and partial", _rankings),
    "comparisons": ("comparisons and votes", _comparisons),
    "distances": ("the other distances", _distances),
    "kendall": ("clicks by Kendall's distance", _kendall),
    "clicks": ("clicks by the other distances", _other_distances),
    "paper": ("the paper's method on clicks", lambda: _clicks("pseudo")),
}


def compile_part(name: str) -> None:
    """Compile one part, in this process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits as small as these do not converge
        PARTS[name][1]()


@command(
    "prepare",
    "Compile all kernels, once for this installation, so that nothing waits for it later. "
    "They are kept beside the package, or in the folder NUMBA_CACHE_DIR names.",
    "",
    THREADS,
)
def compile_all(options: argparse.Namespace) -> int:
    """Compile all parts, as many at a time as there are cores."""
    started, n_failed = time.perf_counter(), 0
    say(options, f"Compiling {len(PARTS)} groups of kernels, once for this installation.")
    with ThreadPoolExecutor(options.threads or os.cpu_count()) as threads:
        running = {threads.submit(_wait_for, name): name for name in PARTS}
        for done, part in enumerate(as_completed(running), start=1):
            words, error = PARTS[running[part]][0], part.result()
            n_failed += bool(error)
            say(options, f"  {done} of {len(PARTS)}: {words}" + (f": {error}" if error else ""))
    if n_failed:
        raise ValueError(f"{n_failed} of {len(PARTS)} groups could not be compiled")
    say(options, f"Ready, in {time.perf_counter() - started:.0f} seconds.")
    return 0


def _wait_for(name: str) -> str:
    """What went wrong with a part, if anything did."""
    script = f"from pseudomallows.cli.prepare import compile_part; compile_part({name!r})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    if done.returncode == 0:
        return ""
    said = done.stderr.strip()
    return said.splitlines()[-1] if said else f"it ended with code {done.returncode}"
