"""Cold and warm start: how long a new process takes to its first answer. About a minute.

Each figure is the wall clock of a whole process, its start included. Cold: Numba's cache is a new
empty directory, so every kernel is compiled (Python's own .pyc files are there already). Warm: the
same directory again. Best of `--cold` cold runs, and of `--repeats` warm ones after each. The rival
is a process that imports NumPy and Numba and does nothing: no program on them can beat that.
"""

import os
import subprocess
import sys
import tempfile
from functools import partial

from timing import arguments, best_of, print_table, seconds_of, words

RIVAL = "import numpy, numba"
PROGRAMS = {
    "import numpy, numba": RIVAL,
    "import pseudomallows": "import pseudomallows",
    "Mallows(range(1, 201), 10).draw(1000)": (
        "import pseudomallows as pm; pm.Mallows(range(1, 201), 10).draw(1000)"
    ),
    "fit(50 x 6 full rankings, 'mcmc')": (
        "import pseudomallows as pm;"
        "rows = [[1, 2, 3, 4, 5, 6], [2, 1, 3, 4, 5, 6], [1, 2, 4, 3, 6, 5], [3, 1, 2, 5, 4, 6],"
        " [1, 3, 2, 4, 6, 5]] * 10;"
        "pm.fit(pm.Preferences.from_rankings(rows), method='mcmc', rng=1)"
    ),
}


def run_process(program: str, cache: str) -> None:
    """Run a program in a new Python, its kernels cached in the directory `cache`."""
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)


def measure(program: str, n_cold: int, n_warm: int) -> tuple[float, float]:
    """Best cold and best warm seconds of a program."""
    cold, warm = [], []
    for _ in range(n_cold):
        with tempfile.TemporaryDirectory() as cache:
            run = partial(run_process, program, cache)
            cold.append(seconds_of(run))
            warm.append(best_of(run, n_warm))
    return min(cold), min(warm)


def main() -> None:
    """Measure every program and print the table."""
    options = arguments(__doc__, repeats=5, cold=2)
    run_process(RIVAL, "")  # the files of the libraries come into memory
    times = {name: measure(code, options.cold, options.repeats) for name, code in PROGRAMS.items()}
    rival = times["import numpy, numba"][1]
    print(f"process start included; best of {options.cold} cold, {options.repeats} warm after each")
    print_table(
        ["program", "cold", "warm", "warm / rival"],
        [[name, words(a), words(b), f"{b / rival:.1f} x"] for name, (a, b) in times.items()],
    )


if __name__ == "__main__":
    main()
