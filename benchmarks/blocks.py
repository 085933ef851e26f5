"""Top-k lists, ties and rankings with gaps by the footrule: CPU seconds to 200 effective draws.

Simulated people (alpha a tenth of the items, from 2 to 8) show their first ranks, the tier of each
item (five tiers), or the ranks of half of the items. A default fit of each case, in a process
of its own, which a small fit of the same kind has warmed up: CPU seconds, R-hat, effective size at
the worst item, verdict, and the CPU seconds that 200 effective draws take at that rate.

    .venv/bin/python benchmarks/blocks.py --cases 300x20,500x50 --limit 300

A case that needs more than `--limit` CPU seconds is stopped and named.
"""

import json
import resource
import subprocess
import sys
import warnings

import numpy as np

import pseudomallows as pm
from timing import answer, arguments, cpu_seconds, print_table

KINDS = ("top", "tiers", "gaps")
CASES = {  # {size: kinds}
    "300x20": KINDS,
    "500x50": ("top",),
    "2000x100": ("top",),
    "5000x50": KINDS,
    "20000x100": KINDS,
}
N_TIERS, TOP, WANTED = 5, 10, 200


def shown(rankings, kind, rng):
    """What people show of their rankings; 0 is not ranked."""
    n_items = rankings.shape[1]
    if kind == "top":
        return np.where(rankings <= min(TOP, n_items // 4), rankings, 0)
    if kind == "tiers":
        size = n_items // N_TIERS
        return (rankings - 1) // size * size + 1
    return np.where(rng.random(rankings.shape) < 0.5, rankings, 0)


def make(kind, n_users, n_items, seed):
    rng = np.random.default_rng(seed)
    simulated = pm.simulate_rankings(n_users, n_items, min(max(n_items / 10, 2.0), 8.0), rng=rng)
    return pm.Preferences.from_rankings(shown(simulated.rankings, kind, rng))


def run_case(kind, size, seed):
    """Print the figures of one fit, as JSON."""
    warnings.simplefilter("ignore")  # the table says what they would
    pm.fit(make(kind, 20, 20, 1), n_draws=10, rng=1)
    prefs = make(kind, *map(int, size.split("x")), seed)
    seconds, posterior = cpu_seconds(lambda: pm.fit(prefs, rng=seed))
    checks = posterior.diagnostics()
    figures = {"seconds": seconds, "rhat": checks.worst_rhat, "verdict": answer(posterior)}
    print(json.dumps(figures | {"size": float(checks.rank_effective_size.min())}))


def in_a_process(kind, size, seed, limit):
    """One row of the table."""
    words = [sys.executable, __file__, "--kinds", kind, "--cases", size, "--seed", str(seed)]
    done = subprocess.run(
        [*words, "--alone", "1"],
        stdout=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5)),
    )
    if done.returncode < 0:
        return [f"{kind}, {size}", f"over {limit}", "", "", "", ""]
    if done.returncode:
        raise SystemExit(f"{kind}, {size}: the process ended with code {done.returncode}")
    found = json.loads(done.stdout)
    rate = found["seconds"] * WANTED / found["size"]
    row = [f"{found['seconds']:.2f}", f"{found['rhat']:.3f}", f"{found['size']:.0f}"]
    return [f"{kind}, {size}", *row, found["verdict"], f"{rate:.2f}"]


def main():
    options = arguments(
        __doc__, cases=",".join(CASES), kinds=",".join(KINDS), limit=300, seed=1, alone=0
    )
    sizes, kinds = options.cases.split(","), options.kinds.split(",")
    if options.alone:
        run_case(*kinds, *sizes, options.seed)
        return
    cases = [(kind, size) for size in sizes for kind in CASES.get(size, KINDS) if kind in kinds]
    rows = []
    for case in cases:
        rows.append(in_a_process(*case, options.seed, options.limit))
        print(*rows[-1], sep="  ", file=sys.stderr)  # at once, since others may take long
    header = ["case", "CPU s", "R-hat", "effective size", "verdict", f"CPU s to {WANTED}"]
    print_table(header, rows)


if __name__ == "__main__":
    main()
