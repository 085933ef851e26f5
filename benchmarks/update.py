"""More clicks: `posterior.update` against a fit of all clicks, in CPU time.

(a) 2,801 users, 200 items, one cluster; (b) 7,872 users, 200 items, 17 clusters. In each, a tenth of
the users is new, by "mcmc" and by "matched"; beside the ratio, how far the two are apart: the
largest difference between the means of an item's rank, in standard deviations of that rank over
the draws, and of the labels.

Takes about ten minutes; `--cases 1` takes (a) alone.
"""

import time
import warnings

import numpy as np

import pseudomallows as pm
from timing import arguments, print_table, words

CASES = {"(a)": (2801, 200, [10.0]), "(b)": (7872, 200, [10.0] * 17)}


def cpu_seconds(work):
    started = time.process_time()
    found = work()
    return time.process_time() - started, found


def ranks_apart(one, other):
    """The largest difference of mean ranks, in standard deviations of the rank."""
    means = [each.consensus.mean(axis=(0, 1)) for each in (one, other)]
    spread = np.maximum(one.consensus.std(axis=(0, 1)), 0.5)
    return float((np.abs(means[0] - means[1]) / spread).max())


def compare(name, method, seed):
    n_users, n_items, alpha = CASES[name]
    prefs = pm.simulate_clicks(n_users, n_items, alpha, 17, rng=seed).preferences
    rows = np.random.default_rng(seed).permutation(n_users)
    n_old = round(0.9 * n_users)
    old, more = prefs.take(rows[:n_old]), prefs.take(rows[n_old:])
    everyone, n_clusters = prefs.take(rows), len(alpha)
    executor = pm.Threads(1)
    first = pm.fit(old, method, n_clusters=n_clusters, rng=seed, executor=executor)
    update, newer = cpu_seconds(lambda: first.update(more, rng=seed + 1, executor=executor))
    anew, fitted = cpu_seconds(
        lambda: pm.fit(everyone, method, n_clusters=n_clusters, rng=seed + 2, executor=executor)
    )
    labels = float((newer.labels == fitted.labels).mean())
    apart = f"{ranks_apart(fitted, newer):.2f}", f"{labels:.4f}"
    worst = max(newer.diagnostics(cluster).worst_rhat for cluster in range(n_clusters))
    return [name, method, words(update), words(anew), f"{update / anew:.2f}", *apart, f"{worst:.3f}"]


def main():
    options = arguments(__doc__, seed=1, cases=2)
    warnings.simplefilter("ignore")  # the table says what they would
    names = list(CASES)[: options.cases]
    for name in names:  # compile
        small = pm.simulate_clicks(200, 20, CASES[name][2][:2], 5, rng=1).preferences
        for method in ("mcmc", "matched"):
            posterior = pm.fit(small, method, n_clusters=len(CASES[name][2][:2]), n_draws=10, rng=1)
            posterior.update({"new": [1, 2]}, rng=1)
    rows = [
        compare(name, method, options.seed) for name in names for method in ("mcmc", "matched")
    ]
    heads = ["case", "method", "update", "fit anew", "ratio", "apart", "same labels", "R-hat"]
    print_table(heads, rows)


if __name__ == "__main__":
    main()
