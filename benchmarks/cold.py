"""The first fit after an installation: CPU seconds while Numba's cache is empty.

Each kind of data in a process of its own, with a new empty folder for the compiled kernels: CPU
seconds of the fit alone, how many kernels it leaves in the folder, and CPU seconds of the same fit
in a second process, which finds them there. `start.py` has whole processes by the wall clock.

Takes about five minutes; `--kinds rankings,pairs` takes these alone.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from timing import arguments, print_table

RANKINGS = "prefs = pm.simulate_rankings(60, 6, [6, 6, 6], rng=1).preferences"
CLICKS = "prefs = pm.simulate_clicks(200, 12, [6, 6], 3, rng=1).preferences"
PAIRS = """
rankings = pm.simulate_rankings(60, 6, 6, rng=1).rankings
rows = [(user, *sorted(pair, key=lambda item: rankings[user][item]))
        for user in range(60) for pair in ((0, 1), (2, 3), (1, 5), (4, 0))]
prefs = pm.Preferences.from_pairs(rows)
"""
KINDS = {  # {name: (data, call)}
    "rankings": (RANKINGS, "pm.fit(prefs, rng=1)"),
    "clusters": (RANKINGS, "pm.fit(prefs, n_clusters=3, rng=1)"),
    "clicks": (CLICKS, "pm.fit(prefs, rng=1)"),
    "mcmc": (CLICKS, "pm.fit(prefs, 'mcmc', rng=1)"),
    "pairs": (PAIRS, "pm.fit(prefs, rng=1)"),
}
# the data come from a file, since making them would compile kernels before the clock starts
MAKE = (
    "import pickle, sys, pseudomallows as pm\n{data}\npickle.dump(prefs, open(sys.argv[1], 'wb'))"
)
FIT = """
import pickle, sys, time, warnings, pseudomallows as pm
warnings.simplefilter("ignore")
prefs = pickle.load(open(sys.argv[1], "rb"))
started = time.process_time()
{call}
print(time.process_time() - started)
"""


def run(code, path, **environment):
    """Run a program in a new Python, and return what it prints."""
    command = [sys.executable, "-c", code, str(path)]
    environment = os.environ | environment
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def measure(data, call):
    """CPU seconds of the first fit, number of kernels, CPU seconds of the next fit."""
    with tempfile.TemporaryDirectory() as folder:
        path, cache = Path(folder) / "prefs", Path(folder) / "cache"
        run(MAKE.format(data=data), path)
        code = FIT.format(call=call)
        cold, warm = (float(run(code, path, NUMBA_CACHE_DIR=str(cache))) for _ in range(2))
        return f"{cold:.1f}", str(len(list(cache.rglob("*.nbi")))), f"{warm:.2f}"


def main():
    options = arguments(__doc__, kinds=",".join(KINDS))
    rows = [[name, *measure(*KINDS[name])] for name in options.kinds.split(",")]
    print_table(["fit", "cold, CPU s", "kernels", "warm, CPU s"], rows)


if __name__ == "__main__":
    main()
