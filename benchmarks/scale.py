"""How far one machine goes, and what a cluster costs: `python benchmarks/scale.py PART`.

million  a million users, 200 items, 10 clicks each on average, from a Parquet file: fit
         ("matched") and recommendations for all, to Parquet; seconds and memory
large    the same with 20,000 users and 2,000 items
cluster  the million from 8 Parquet parts, on two workers of Dask, which write the answers
workers  `--users` (ten million) users, 200 items, in parts of a million, each a copy of the first
         under other names: "matched" on two workers of Dask, and their answers
growth   CPU seconds on one thread, of a consensus round and of a recommendation, as users, items,
         clicks, clusters and draws grow, and a cost model fitted to them
dask     a consensus round at 100,000 x 200 on two threads and on two workers of Dask, in one run;
         what is above the kernel's own time is overhead

Users are Mallows (alpha 4) around one consensus. Wall times are the best of `--repeats`, except
those of `million` and `large`, which are of one run each in a process of its own.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import pseudomallows as pm
from pseudomallows.data import Clicks
from pseudomallows.laws.law import Law
from pseudomallows.laws.registry import make_law
from pseudomallows.paper.clicks import PseudoChain, PseudoMoves
from pseudomallows.recommendations.to_file import recommend_to
from timing import print_table, race, words

ALPHA, BLOCK = 4.0, 20_000
SIZES = {"million": (1_000_000, 200), "large": (20_000, 2000), "cluster": (1_000_000, 200)}


def make_clicks(n_users: int, n_items: int, mean_clicks: float = 10, seed: int = 1) -> Clicks:
    """Simulated clicks, drawn in blocks, so that the rankings of all never lie in memory."""
    rng = np.random.default_rng(seed)
    law = pm.Mallows(rng.permutation(n_items) + 1, ALPHA)
    sizes = np.clip(rng.poisson(mean_clicks, n_users), 1, n_items - 3)
    codes = []
    for first in range(0, n_users, BLOCK):
        mine = sizes[first : first + BLOCK]
        ranks = law.draw(len(mine), rng)
        codes.append(np.nonzero(ranks <= mine[:, None])[1].astype(np.int32))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    ones, users = np.ones(n_users, dtype=np.int64), np.arange(n_users)
    return Clicks(ones, users, np.arange(n_items), starts, np.concatenate(codes))


def one_machine(part: str) -> None:
    """Make the log here, then read, fit and recommend in a process of its own."""
    n_users, n_items = SIZES[part]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prefs = make_clicks(n_users, n_items)
        prefs = prefs.rename(
            users=[f"user {row:07}" for row in range(n_users)],
            items=[f"item {code:04}" for code in range(n_items)],
        )
        on_cluster = part == "cluster"
        parts = pm.data.split(prefs, folder / "log", 8 if on_cluster else 1)
        size = sum(Path(path).stat().st_size for path in parts.paths) / 2**20
        print(f"{part}: {n_users:,} users, {n_items:,} items, {len(prefs.codes):,} clicks", end="")
        print(f", {size:.0f} MB of Parquet")
        del prefs
        source, target = parts.paths[0], folder / "out.parquet"
        if on_cluster:
            source, target = str(folder / "log"), folder / "out"
        command = [sys.executable, __file__, "_run", source, str(target)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found = json.loads(done.stdout)
        files = list(target.iterdir()) if on_cluster else [target]
        out = sum(file.stat().st_size for file in files) / 2**20
        rows = [[stage, words(seconds), f"{peak:.0f} MB"] for stage, seconds, peak in found]
        rows.append(["all", words(sum(row[1] for row in found)), f"{found[-1][2]:.0f} MB"])
        print_table(["stage", "seconds", "peak memory until then"], rows)
        print(f"recommendations: {out:.0f} MB of Parquet\n")


def run(source: str, target: str) -> None:
    """What a user would do; prints (stage, seconds, peak memory)."""
    warnings.simplefilter("ignore", pm.ConvergenceWarning)
    stages, started = [], time.perf_counter()

    def note(stage: str) -> None:
        nonlocal started
        now = time.perf_counter()
        stages.append((stage, now - started, peak_memory()))
        started = time.perf_counter()

    options = {"method": "matched", "rng": 1}
    if Path(source).is_dir():
        with pm.DaskExecutor("local:2") as cluster:
            note("start the cluster")
            posterior = pm.fit(pm.data.Parts(source), executor=cluster, **options)
            note("read and fit")
            recommend_to(posterior, target, 10, clicks=pm.data.Parts(source), executor=cluster)
            note("recommend")
            peaks = cluster.client.run(peak_memory).values()
            stages.append(("(the larger worker)", 0.0, max(peaks)))
    else:
        prefs = pm.read(source)
        note("read")
        posterior = pm.fit(prefs, **options)
        note("fit")
        recommend_to(posterior, target, 10)
        note("recommend")
    print(json.dumps(stages))


def workers(n_users: int) -> None:
    """Many users by the matched law, on workers that read their parts themselves."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory() as name:
        source, size = Path(name) / "log", min(n_users, 1_000_000)
        prefs = make_clicks(size, 200)
        owners, items = np.repeat(np.arange(size), prefs.n_clicks), pa.array(prefs.codes)
        source.mkdir()
        for part in range(n_users // size):
            users = pc.utf8_lpad(pa.array(owners + part * size).cast(pa.string()), 8, "0")
            table = pa.table({"user": users, "item": items.cast(pa.string())})
            pq.write_table(table, source / f"part-{part:05}.parquet")
        print(f"{n_users:,} users, {n_users // size * len(prefs.codes):,} clicks", flush=True)
        del prefs, owners, items, users, table
        target = str(Path(name) / "out")
        done = subprocess.run(
            [sys.executable, __file__, "_run", str(source), target],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        rows = [
            [stage, words(spent), f"{peak:.0f} MB"]
            for stage, spent, peak in json.loads(done.stdout)
        ]
        print_table(["stage", "seconds", "peak memory until then"], rows)


def peak_memory() -> float:
    """Of this process, in MB."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024


def cpu_seconds(function, repeats: int) -> float:
    """The least CPU time of several calls."""
    found = []
    for _ in range(repeats):
        started = time.process_time()
        function()
        found.append(time.process_time() - started)
    return min(found)


def chain_of(law: Law) -> PseudoChain:
    """A chain of Algorithm 5, of which a round is timed."""
    consensus, alpha = np.arange(1, law.n_items + 1, dtype=np.int32)[None], np.array([ALPHA])
    moves = PseudoMoves(order="uniform")
    return PseudoChain(law, consensus, alpha, None, moves, np.random.default_rng(1))


def growth(repeats: int) -> None:
    """Vary one thing at a time."""
    base = {"users": 50_000, "items": 200, "clicks": 10}
    cases = [base]
    cases += [base | {"users": n} for n in (12_500, 25_000, 100_000, 200_000)]
    cases += [base | {"items": n} for n in (50, 100, 400, 800)]
    cases += [base | {"clicks": n} for n in (3, 5, 20, 40)]
    one, rows, terms, times = pm.Threads(1), [], [], []
    for case in cases:
        prefs = make_clicks(case["users"], case["items"], case["clicks"])
        n_items, chain = case["items"], chain_of(make_law(prefs, one))
        seconds = cpu_seconds(lambda: chain.tally(0).costs, repeats)  # noqa: B023
        times.append(seconds)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            posterior = pm.fit(prefs, "pseudo", alpha=ALPHA, n_draws=100, rng=1)
        some = prefs.users[:2000].tolist()
        pm.recommend(posterior, 10, users=some, executor=one)
        each = cpu_seconds(
            lambda: pm.recommend(posterior, 10, users=some, executor=one),  # noqa: B023
            repeats,
        )
        terms.append([len(prefs.codes), case["users"] * n_items, n_items**2])
        rows.append([str(value) for value in case.values()])
        rows[-1] += [words(seconds), words(each / len(some))]
    print_table(["users", "items", "clicks", "a round", "a recommendation, 100 draws"], rows)
    fit_costs(np.array(terms, dtype=float), np.array(times))
    grow_clusters(repeats)


def fit_costs(terms: np.ndarray, seconds: np.ndarray) -> None:
    """Non-negative least squares of the relative error."""
    from scipy.optimize import nnls

    costs, _ = nnls(terms / seconds[:, None], np.ones(len(seconds)))
    worst = np.abs(terms @ costs / seconds - 1).max()
    row = [*(f"{cost * 1e9:.3g} ns" for cost in costs), f"{worst:.0%}"]
    print_table(["a click", "a user and item", "items squared", "worst error"], [row])


def grow_clusters(repeats: int) -> None:
    """Labels and sweeps with clusters, CPU time of a whole fit."""
    rows, prefs = [], make_clicks(5000, 100)
    for n_clusters in (1, 2, 5, 10, 20):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            options = {"n_draws": 40, "n_clusters": n_clusters, "rng": 1}
            seconds = cpu_seconds(
                lambda: pm.fit(prefs, executor=pm.Threads(1), **options),  # noqa: B023
                1,
            )
        rows.append([str(n_clusters), words(seconds)])
    print_table(["clusters", "a fit of 5,000 x 100, 40 draws"], rows)


def dask(repeats: int) -> None:
    """A round of counts on threads, and on workers."""
    prefs, n_rounds = make_clicks(100_000, 200), 10
    alone, here = (chain_of(make_law(prefs, pm.Threads(number))) for number in (1, 2))
    with pm.DaskExecutor("local:2") as cluster:
        there = chain_of(make_law(prefs, cluster))

        def rounds(chain):
            for _ in range(n_rounds):
                tally = chain.tally(0)
            return tally.costs

        assert (rounds(here) == rounds(there)).all()
        best = race({"threads": lambda: rounds(here), "dask": lambda: rounds(there)}, repeats)
        kernel = cpu_seconds(lambda: rounds(alone), 1) / n_rounds / 2
        row = [words(kernel)]
        for seconds in best.values():
            each = seconds / n_rounds
            row += [words(each), f"{each / kernel - 1:+.0%}"]
    header = ["CPU of one thread, halved", "2 threads", "more", "Dask, 2 workers", "more"]
    print_table(header, [row])


if __name__ == "__main__":
    if sys.argv[1:2] == ["_run"]:
        run(*sys.argv[2:])
        sys.exit()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "part", choices=("million", "large", "cluster", "workers", "growth", "dask")
    )
    parser.add_argument("--users", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    if options.part in SIZES:
        one_machine(options.part)
    elif options.part == "workers":
        workers(options.users)
    else:
        {"growth": growth, "dask": dask}[options.part](options.repeats)
