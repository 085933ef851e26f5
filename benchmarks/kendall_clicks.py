"""Clicks under Kendall's distance: seconds and memory, from a file to a file.

Three settings:

- 7,872 users x 200 items in 17 clusters, drawn from the model: the time of a fit with 17 clusters,
  its largest R-hat, and the adjusted Rand index against the truth.
- N users x N items (default 100,000; the figures in `docs/measurements.md` are of 1,000,000), Zipf
  popularity, 20 clicks each: write Parquet, read it, fit one consensus (or `--clusters` of them),
  recommend 10 items to everybody into Parquet. The rival is a list of the most popular unclicked
  items, in NumPy.
- N users x N items in clusters, each with a Zipf popularity of its own, at most 20 clicks a user:
  the time of a fit with the true number of clusters, and the adjusted Rand index against the truth.

    .venv/bin/python benchmarks/kendall_clicks.py clusters
    .venv/bin/python benchmarks/kendall_clicks.py catalogue --size 1000000 --clusters 1
    .venv/bin/python benchmarks/kendall_clicks.py sparse --size 200000 --clusters 10
"""

import argparse
import resource
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import pseudomallows as pm
from pseudomallows.distances import KENDALL
from pseudomallows.recommendations import recommend_to
from pseudomallows.scores import rand_index

N_CLICKS, K, SEED = 20, 10, 1
N_USERS, N_ITEMS, N_CLUSTERS = 7872, 200, 17


class Clock:
    """Prints the seconds of each step, and the peak of the memory so far."""

    def __init__(self):
        self.total = 0.0

    def __call__(self, what, work):
        started, spent = time.perf_counter(), time.process_time()
        found = work()
        seconds, spent = time.perf_counter() - started, time.process_time() - spent
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        self.total += seconds
        print(f"{what:32} {seconds:8.1f} s {spent:8.1f} CPU s   peak {peak:5.2f} GB", flush=True)
        return found


def simulate_clusters(rng):
    """Clicks of users in clusters, each with its own consensus and alpha; and the labels."""
    labels = rng.integers(N_CLUSTERS, size=N_USERS)
    rankings = np.empty((N_USERS, N_ITEMS), dtype=np.int32)
    for cluster in range(N_CLUSTERS):
        mine = np.flatnonzero(labels == cluster)
        alpha, order = rng.uniform(15, 40), rng.permutation(N_ITEMS)
        draws = KENDALL.draw(N_ITEMS, alpha, len(mine), int(rng.integers(2**60)))
        rankings[mine] = draws[:, order]
    sizes = rng.integers(5, 30, size=N_USERS)
    return pm.Preferences.from_clicks(rankings <= sizes[:, None]), labels


def clusters():
    """A fit with the true number of clusters."""
    prefs, labels = simulate_clusters(np.random.default_rng(SEED))
    small = pm.Preferences.from_clicks({i: [i % 5, (i + 1) % 5] for i in range(60)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pm.fit(small, "mcmc", distance="kendall", n_clusters=2, n_draws=5, rng=1)  # compile
    clock = Clock()
    how = {"n_clusters": N_CLUSTERS, "distance": "kendall", "rng": SEED}
    posterior = clock("fit of 17 clusters", lambda: pm.fit(prefs, "mcmc", **how))
    found = [posterior.diagnostics(cluster) for cluster in range(N_CLUSTERS)]
    rhat = max(each.worst_rhat for each in found)
    ranks = np.concatenate([each.rank_rhat for each in found])
    print(
        f"R-hat: largest {rhat:.3f}, mean {ranks.mean():.3f}, 99 % {np.quantile(ranks, 0.99):.3f}"
    )
    print(f"adjusted Rand index {rand_index(posterior.labels, labels):.3f}")


def zipf_clicks(size, rng):
    """Codes of clicked items, `N_CLICKS` a user, none twice: Zipf by the exponential trick."""
    cumulative = np.cumsum(1 / np.arange(1, size + 1))
    names = rng.permutation(size).astype(np.int32)
    users, items = [], []
    for first in range(0, size, 50_000):
        n_users = min(50_000, size - first)
        drawn = np.searchsorted(cumulative, rng.random((n_users, 2 * N_CLICKS)) * cumulative[-1])
        drawn.sort(axis=1)
        is_new = np.ones(drawn.shape, dtype=bool)
        is_new[:, 1:] = drawn[:, 1:] != drawn[:, :-1]
        order = np.argsort(np.where(is_new, rng.random(drawn.shape), 2.0), axis=1)[:, :N_CLICKS]
        rows = np.repeat(np.arange(first, first + n_users), N_CLICKS)
        kept = np.take_along_axis(is_new, order, axis=1).ravel()
        users.append(rows[kept].astype(np.int32))
        items.append(names[np.take_along_axis(drawn, order, axis=1)].ravel()[kept])
    return np.concatenate(users), np.concatenate(items)


def write_parquet(path, users, items):
    """A table of users and items."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"user": users, "item": items}), path)


def popularity_list(prefs, k):
    """The rival: for each user the most clicked items that the user has not clicked."""
    best = np.argsort(-prefs.item_counts(), kind="stable")
    chosen = np.empty((prefs.n_users, k), dtype=np.int64)
    for user in range(prefs.n_users):
        mine = prefs.codes[prefs.starts[user] : prefs.starts[user + 1]]
        shown = best[: k + len(mine)]
        chosen[user] = shown[~np.isin(shown, mine)][:k]
    return chosen


def simulate(clock, source, size):
    """The file of clicks."""
    made = clock("simulate", lambda: zipf_clicks(size, np.random.default_rng(SEED)))
    clock("write Parquet", lambda: write_parquet(source, *made))


def catalogue(size, n_clusters):
    """From a file of clicks to a file of recommendations."""
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "clicks.parquet", Path(folder) / "next.parquet"
        simulate(clock, source, size)
        prefs = clock("read", lambda: pm.read(source))
        how = {"distance": "kendall", "n_clusters": n_clusters, "rng": SEED}
        posterior = clock("fit", lambda: pm.fit(prefs, "mcmc", **how))
        print(posterior, f"alpha {posterior.alpha.mean(axis=(0, 1)).round(2)}")
        clock("recommend to all, to Parquet", lambda: recommend_to(posterior, target, K))
        clock("rival: popularity list, NumPy", lambda: popularity_list(prefs, K))


def sparse_clicks(size, n_clusters, rng):
    """Clicks of as many users as items, each cluster with an order of its own; and the labels."""
    from scipy.sparse import csr_array

    labels = rng.integers(n_clusters, size=size)
    sums = np.cumsum(1 / np.arange(1, size + 1))
    orders = [rng.permutation(size).astype(np.int32) for _ in range(n_clusters)]
    users, items = [], []
    for cluster, order in enumerate(orders):
        mine = np.flatnonzero(labels == cluster)
        for part in np.array_split(mine, max(1, len(mine) // 50_000)):
            drawn = np.searchsorted(sums, rng.random((len(part), N_CLICKS)) * sums[-1])
            users.append(np.repeat(part, N_CLICKS))
            items.append(order[drawn].ravel())
    places = (np.concatenate(users), np.concatenate(items))
    clicks = csr_array((np.ones(len(places[0]), dtype=bool), places), shape=(size, size))
    return pm.Preferences.from_clicks(clicks), labels


def sparse(size, n_clusters, seed):
    """Clusters of a large catalogue."""
    clock = Clock()
    rng = np.random.default_rng(seed)
    prefs, labels = clock("simulate", lambda: sparse_clicks(size, n_clusters, rng))
    how = {"distance": "kendall", "n_clusters": n_clusters, "rng": seed}
    posterior = clock("fit", lambda: pm.fit(prefs, "mcmc", **how))
    evaluated = clock("check the draws", posterior.verdict)
    found = [posterior.diagnostics(cluster, some=True) for cluster in range(n_clusters)]
    thinning = posterior.settings["thinning"]
    print(
        f"adjusted Rand index {rand_index(posterior.labels, labels):.6f}; "
        f"{posterior.consensus.shape[:2]} draws, thinning {thinning}; mean R-hat "
        f"{np.mean([each.rank_rhat.mean() for each in found]):.3f}, of alpha "
        f"{max(each.alpha_rhat for each in found):.3f}; {evaluated.answer}: {evaluated.words}"
    )
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "next.parquet"
        clock("recommend to all, to Parquet", lambda: recommend_to(posterior, target, K))


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("clusters", "catalogue", "sparse"))
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--clusters", type=int, default=1)
    parser.add_argument("--seed", type=int, default=SEED, help="of `sparse`: data and fit")
    options = parser.parse_args()
    if options.what == "clusters":
        clusters()
    elif options.what == "sparse":
        sparse(options.size, options.clusters, options.seed)
    else:
        catalogue(options.size, options.clusters)


if __name__ == "__main__":
    main()
