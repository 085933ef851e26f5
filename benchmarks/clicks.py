"""Clicks: the paper's largest cluster, one new user, growth with users and items, memory.

(a) N = 2,801 users, n = 200 items, 200 samples of Algorithm 5 with recommendations for all, which
    took the authors 587 s: ours against the straightforward algorithm, where each user's item scans
    all free ranks (time n^2 a user), in the same language, on the same threads.
(b) One new user at serving time: median and 99th percentile of `recommend`; and all users of the
    fit, by 200 draws ("pseudo") and by 100 ("mcmc"), with the ratio of the two.
(c) Time of a sweep as users and items grow: measured exponents.
(d) Peak memory of a fit at N = 100,000, n = 200, 5 % density, above the process's own base.

Takes about three minutes.
"""

import subprocess
import sys
import warnings
from functools import partial

import numpy as np
from numba import njit

import pseudomallows as pm
from pseudomallows.engines.executors import blocks
from pseudomallows.kernels.groups import split_by_clicks
from pseudomallows.kernels.streams import below, start_stream, uniform
from pseudomallows.laws.registry import make_law
from pseudomallows.paper.clicks import PseudoChain, PseudoMoves
from pseudomallows.rankings import orderings_of
from timing import arguments, best_of, print_table, race, seconds_of, words

N_USERS, N_ITEMS, ALPHA, MEAN_CLICKS, K = 2801, 200, 8.0, 10, 10
AUTHORS = 587.0
SIZES = {
    "users": [(1000, 200), (4000, 200), (16_000, 200)],
    "items": [(2000, 100), (2000, 400), (2000, 1600)],
}


@njit(nogil=True)
def scan_users(seed, draw, starts, codes, ordering, rate, counts):
    """Algorithm 4 as printed: for each item, weigh every free rank, then draw."""
    n_items = len(ordering)
    groups, clicked = np.empty((2, n_items), dtype=np.int64), np.zeros(n_items, dtype=np.bool_)
    free, visit = np.empty((2, n_items), dtype=np.int64)
    weights, stream = np.empty(n_items), np.empty(1, dtype=np.uint64)
    for row in range(len(starts) - 1):
        clicked[:] = False
        clicked[codes[starts[row] : starts[row + 1]]] = True
        n_clicks = split_by_clicks(ordering, clicked, groups[0], groups[1])
        start_stream(seed, draw, row, stream)
        for group in range(2):
            size = n_clicks if group == 0 else n_items - n_clicks
            shift = 0 if group == 0 else n_clicks
            for place in range(size):
                free[place] = visit[place] = place
            for step in range(size):
                chosen = step + below(stream, size - step)
                place = visit[chosen]
                visit[chosen] = visit[step]
                total = 0.0
                for slot in range(size - step):
                    weights[slot] = np.exp(-rate * abs(free[slot] - place))
                    total += weights[slot]
                u, slot = uniform(stream) * total, 0
                while slot < size - step - 1 and u >= weights[slot]:
                    u -= weights[slot]
                    slot += 1
                counts[groups[group, place], free[slot] + shift] += 1
                free[slot] = free[size - step - 1]


def simulated(n_users, n_items, seed, mean_clicks=MEAN_CLICKS):
    return pm.simulate_clicks(n_users, n_items, ALPHA, mean_clicks, rng=seed)


def one_sweep(law, consensus):
    alpha, moves = np.array([ALPHA]), PseudoMoves(order="uniform")
    chain = PseudoChain(law, consensus[None], alpha, None, moves, np.random.default_rng(1))
    return chain.tally(0).costs


def scan_sweep(prefs, ordering, executor):
    def count(rows):
        counts = np.zeros((prefs.n_items, prefs.n_items), dtype=np.int64)
        starts = prefs.starts[rows.start : rows.stop + 1]
        scan_users(1, 0, starts, prefs.codes, ordering, ALPHA / prefs.n_items, counts)
        return counts

    return sum(executor.map(count, blocks(prefs.n_users)))


def largest_cluster(repeats, seed):
    """(a)"""
    data, executor = simulated(N_USERS, N_ITEMS, seed), pm.Threads()
    prefs, ordering = data.preferences, orderings_of(data.consensus)
    law = make_law(prefs, executor)

    def whole():
        posterior = pm.fit(prefs, "pseudo", alpha=ALPHA, rng=seed, executor=executor)
        pm.recommend(posterior, K, executor=executor)

    rivals = {
        "ours": lambda: one_sweep(law, data.consensus),
        "scan": lambda: scan_sweep(prefs, ordering, executor),
    }
    whole()
    race(rivals, 1)  # compile
    total, sweeps = best_of(whole, repeats), race(rivals, 2 * repeats)
    print(f"(a) {N_USERS} users, {N_ITEMS} items, {executor.n_threads} threads; best of {repeats}")
    rows = [
        ["fit of 200 samples, 20 more as warmup, and recommendations", words(total), ""],
        ["the authors, on their machine", f"{AUTHORS:.0f} s", f"{AUTHORS / total:.0f} x"],
        ["one sweep over all users", words(sweeps["ours"]), ""],
        [
            "the same, scanning all free ranks",
            words(sweeps["scan"]),
            f"{sweeps['scan'] / sweeps['ours']:.1f} x",
        ],
    ]
    print_table(["what", "time", "ratio"], rows)
    return prefs


def one_new_user(prefs, seed):
    """(b)"""
    rows, everybody = [], {}
    exact = {"n_draws": 100, "n_chains": 1, "warmup": 20, "thin": 1}
    for method, options, n_calls in (("pseudo", {}, 2000), ("mcmc", exact, 50)):
        posterior = pm.fit(prefs, method, ALPHA, rng=seed, **options)
        rng, times = np.random.default_rng(seed), []
        for _ in range(n_calls):
            clicks = {"new": rng.permutation(N_ITEMS)[:MEAN_CLICKS].tolist()}
            times.append(seconds_of(partial(pm.recommend, posterior, K, clicks=clicks)))
        half, most = np.quantile(times[10:], [0.5, 0.99])
        everybody[method] = partial(pm.recommend, posterior, K)
        rows.append([method, str(posterior.weights.size), words(half), words(most)])
    race(everybody, 1)  # tables are made
    seconds = race(everybody, 3)
    for row in rows:
        row += [words(seconds[row[0]]), f"{seconds[row[0]] / seconds['pseudo']:.1f} x"]
    print("(b) recommend for one new user, and for all users of the fit")
    print_table(["method", "consensus draws", "median", "99 %", "all users", "ratio"], rows)


def growth(repeats, seed):
    """(c)"""
    executor, rows = pm.Threads(1), []
    for name, sizes in SIZES.items():
        times = []
        for n_users, n_items in sizes:
            data = simulated(n_users, n_items, seed)
            law = make_law(data.preferences, executor)
            sweep = partial(one_sweep, law, data.consensus)
            posterior = pm.fit(
                data.preferences, "pseudo", alpha=ALPHA, n_draws=20, warmup=0, rng=seed
            )
            look = partial(pm.recommend, posterior, K, executor=executor)
            race({"sweep": sweep, "recommendations": look}, 1)
            times.append(race({"sweep": sweep, "recommendations": look}, repeats))
        span = np.log(np.prod(sizes[-1]) / np.prod(sizes[0]))
        for what in ("sweep", "recommendations"):
            exponent = np.log(times[-1][what] / times[0][what]) / span
            rows.append([f"{name}, {what}", f"{exponent:.2f}", *(words(t[what]) for t in times)])
    print(f"(c) growth, one thread, best of {repeats}; users x items: {SIZES}")
    print_table(["growing", "exponent", "small", "middle", "large"], rows)


MEMORY = """
import warnings
import numpy as np
import pseudomallows as pm

def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024

warnings.simplefilter("ignore")
n_users, n_items, n_clicks = {n_users}, {n_items}, {n_clicks}
warm = pm.simulate_clicks(300, n_items, 5, rng=1).preferences
pm.recommend(pm.fit(warm, "pseudo", alpha=5, n_draws=3, rng=1), 10)
base = peak()
codes = (np.arange(n_users)[:, None] * 7 + np.arange(n_clicks) * 13) % n_items
codes = np.sort(codes, axis=1).ravel().astype(np.int32)
starts, ones = np.arange(n_users + 1) * n_clicks, np.ones(n_users, int)
prefs = pm.Clicks(ones, np.arange(n_users), np.arange(n_items), starts, codes)
posterior = pm.fit(prefs, "pseudo", alpha=5, n_draws=5, warmup=0, rng=1)
pm.recommend(posterior, 10)
print(base, peak())
"""


def memory():
    script = MEMORY.format(n_users=100_000, n_items=200, n_clicks=10)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    base, peak = map(float, done.stdout.split())
    print("(d) fit of 100,000 users, 200 items, 5 % density, and recommendations for all")
    print(f"    peak memory {peak - base:.0f} MB above the base of {base:.0f} MB")


def main():
    options = arguments(__doc__, repeats=3, seed=1)
    warnings.simplefilter("ignore", pm.ConvergenceWarning)
    prefs = largest_cluster(options.repeats, options.seed)
    one_new_user(prefs, options.seed)
    growth(options.repeats, options.seed)
    memory()


if __name__ == "__main__":
    main()
