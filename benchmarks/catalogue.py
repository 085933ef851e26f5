"""Personal recommendations at the size of a catalogue: time, memory, recall and latency.

Ours, with its tuning and its corrections, beside EASE (products of the items in double precision
and their inverse, penalty given) and the ALS of `implicit` (64 factors, 15 iterations), each in a
process of its own with BLAS on one thread, so that threads waiting for each other do not count.
Simulated clicks: every item belongs to one of some groups, and is popular in it by Zipf's law; a
user clicks in a few groups of their own, and now and then among all items. One click of each user
is hidden.

CPU       seconds of the fit, of all threads
memory    peak of the process, the data and the libraries included
recall    share of 5,000 users whose hidden click is among the 10 recommended
one user  CPU microseconds to recommend 10 items to a new user with 20 clicks, as the service does

    .venv/bin/python benchmarks/catalogue.py               # all sizes: ten minutes
    .venv/bin/python benchmarks/catalogue.py --only 1000   # items

ALS needs `pip install implicit`; without it, it is left out.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time

import numpy as np
from scipy.sparse import csr_matrix

SIZES = {  # items: users, mean clicks of a user, groups
    200: (7872, 20, 10),
    1000: (6040, 97, 30),
    3000: (6040, 138, 60),
    50_000: (100_000, 20, 500),
}
N_EVALUATED, N_BEST, RIDGE = 5000, 10, 0.5  # the ridge of EASE in units of an item's mean clicks
METHODS = ("ours", "EASE", "ALS")


def simulate(n_items, seed=1):
    """Rows of clicks: starts and codes."""
    n_users, mean_clicks, n_groups = SIZES[n_items]
    rng = np.random.default_rng(seed)
    sizes = np.clip(rng.lognormal(np.log(mean_clicks) - 0.2, 0.8, n_users), 2, n_items / 4)
    owners = np.repeat(np.arange(n_users), sizes.round().astype(int))
    groups = rng.integers(0, n_groups, (n_users, 4))[owners, rng.integers(0, 4, len(owners))]
    of_group = n_items // n_groups
    ranks = (of_group ** rng.random(len(owners))).astype(np.int64) - 1  # Zipf
    codes = groups * of_group + ranks
    stray = rng.random(len(owners)) < 0.2
    popular = (n_items ** rng.random(stray.sum())).astype(np.int64) - 1
    codes[stray] = rng.permutation(n_items)[popular]
    pairs = np.unique(owners * n_items + codes)
    starts = np.searchsorted(pairs, np.arange(n_users + 1) * n_items)
    return starts, (pairs % n_items).astype(np.int32)


def hide_one(starts, codes, seed=2):
    """The rows without one click of each user who has two; the item hidden, or -1."""
    rng, n_users = np.random.default_rng(seed), len(starts) - 1
    sizes = np.diff(starts)
    able = np.flatnonzero(sizes > 1)
    places = starts[able] + (rng.random(len(able)) * sizes[able]).astype(np.int64)
    hidden = np.full(n_users, -1)
    hidden[able] = codes[places]
    kept = np.ones(len(codes), dtype=bool)
    kept[places] = False
    left = np.concatenate([[0], np.cumsum(np.bincount(able, minlength=n_users))])
    return starts - left, codes[kept], hidden


def measure(n_items, method):
    """One method at one size, in this process."""
    starts, codes, hidden = hide_one(*simulate(n_items))
    shape = (len(starts) - 1, n_items)
    train = csr_matrix((np.ones(len(codes), np.float32), codes, starts), shape=shape)
    evaluated = np.random.default_rng(3).permutation(np.flatnonzero(hidden >= 0))[:N_EVALUATED]
    seconds, best_items, microseconds = {"ours": ours, "EASE": ease, "ALS": als}[method](
        train, evaluated
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    recall = float((best_items == hidden[evaluated][:, None]).any(axis=1).mean())
    return {"CPU": seconds, "memory": peak, "recall": recall, "one user": microseconds}


def ours(train, evaluated):
    import pseudomallows as pm
    from pseudomallows.data import Clicks
    from pseudomallows.recommendations.recommend import best_of_one

    def clicks_of(matrix):
        users, items = (np.arange(size) for size in matrix.shape)
        rows = (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32))
        return Clicks(np.ones(len(users), np.int64), users, items, *rows)

    clicks = clicks_of(train)
    few = clicks.take(np.arange(min(400, clicks.n_users)))
    pm.recommend(pm.fit(few, "personal", rng=1), N_BEST)  # compiles
    started = time.process_time()
    fit = pm.fit(clicks, "personal", rng=1)
    seconds = time.process_time() - started
    found = pm.recommend(fit, N_BEST, users=evaluated.tolist()).items
    near = np.argsort(np.abs(clicks.n_clicks - 20), kind="stable")[:100]
    times = []
    for _ in range(3):
        for user in near:
            codes, begun = clicks.clicks_of(user), time.thread_time()
            best_of_one(fit, codes, None, N_BEST)
            times.append(time.thread_time() - begun)
    for part in fit.settings["options"]["parts"]:
        print(f"  {part['weight']:.2f} {part['part']}", file=sys.stderr)
    return seconds, found, 1e6 * float(np.median(times))


def ease(train, evaluated):
    started = time.process_time()
    products = (train.T @ train).toarray().astype(np.float64)
    ridge = RIDGE * np.trace(products) / len(products)
    inverse = np.linalg.inv(products + ridge * np.eye(len(products)))
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0.0)
    seconds = time.process_time() - started
    scores = train[evaluated] @ weights
    scores[train[evaluated].nonzero()] = -np.inf
    return seconds, np.argpartition(-scores, N_BEST, axis=1)[:, :N_BEST], None


def als(train, evaluated):
    from implicit.als import AlternatingLeastSquares

    started = time.process_time()
    model = AlternatingLeastSquares(factors=64, iterations=15, random_state=1)
    model.fit(train, show_progress=False)
    seconds = time.process_time() - started
    return seconds, model.recommend(evaluated, train[evaluated], N=N_BEST)[0], None


def run(n_items, method):
    """The same in a process of its own; None if that is not possible."""
    if method == "EASE" and n_items > 10_000:
        return None  # items x items, 20 GB three times over
    command = [sys.executable, __file__, "--one", str(n_items), method]
    one_thread = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(command, stdout=subprocess.PIPE, env=os.environ | one_thread)
    return json.loads(done.stdout.decode().splitlines()[-1]) if done.returncode == 0 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", type=int, choices=SIZES, help="one size, by its items")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(int(given.one[0]), given.one[1])))
        return
    print("| users x items | method | CPU | memory | recall@10 | one user |")
    print("|---|---|---|---|---|---|", flush=True)
    for n_items in [given.only] if given.only else SIZES:
        for method in METHODS:
            row, size = run(n_items, method), f"{SIZES[n_items][0]:,} x {n_items:,}"
            if row is None:
                print(f"| {size} | {method} | - | - | - | - |", flush=True)
                continue
            one = "" if row["one user"] is None else f"{row['one user']:.0f} µs"
            numbers = f"{row['CPU']:.2f} s | {row['memory']:.0f} MB | {row['recall']:.4f} | {one}"
            print(f"| {size} | {method} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
