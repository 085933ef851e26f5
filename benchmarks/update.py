"""More clicks: `posterior.update` against a fit of all clicks, in CPU time.

(a) 2,801 users, 200 items, one cluster; (b) 7,872 users, 200 items, 17 clusters. In each, a tenth
of the users is new, by "mcmc" and by "matched"; with the usual draws, and with those of the fit.
Beside the ratio, how far the two are apart: the largest difference between the means of an item's
rank, in standard deviations of that rank over the draws; and the share of equal labels. Clusters
of nearly one size may come in another order, so they are paired by their users first.

Takes about fifteen minutes; `--cases 1` takes (a) alone.
"""

import warnings

import numpy as np
from scipy.optimize import linear_sum_assignment

import pseudomallows as pm
from timing import arguments, cpu_seconds, print_table, words

CASES = {"(a)": (2801, 200, [10.0]), "(b)": (7872, 200, [10.0] * 17)}


def paired(one, other):
    """``[cluster of one]`` is the cluster of the other that has most of its users."""
    shared = one.memberships.T @ other.memberships
    return linear_sum_assignment(-shared)[1]


def apart(one, other):
    """The largest difference of mean ranks, in standard deviations; the share of equal labels."""
    pairs = paired(one, other)
    means = one.consensus.mean(axis=(0, 1)) - other.consensus.mean(axis=(0, 1))[pairs]
    spread = np.maximum(one.consensus.std(axis=(0, 1)), 0.5)
    labels = (pairs[one.labels] == other.labels).mean()
    return f"{(np.abs(means) / spread).max():.2f}", f"{labels:.4f}"


def compare(name, method, seed):
    n_users, n_items, alpha = CASES[name]
    prefs = pm.simulate_clicks(n_users, n_items, alpha, 17, rng=seed).preferences
    rows = np.random.default_rng(seed).permutation(n_users)
    n_old = round(0.9 * n_users)
    old, more, everyone = (prefs.take(part) for part in (rows[:n_old], rows[n_old:], rows))
    how = {"method": method, "n_clusters": len(alpha), "executor": pm.Threads(1)}
    first = pm.fit(old, rng=seed, **how)
    anew, fitted = cpu_seconds(lambda: pm.fit(everyone, rng=seed + 2, **how))
    found = []
    for n_draws in (None, first.consensus.shape[1]):
        seconds, newer = cpu_seconds(
            lambda n_draws=n_draws: first.update(
                more, n_draws=n_draws, rng=seed + 1, executor=pm.Threads(1)
            )
        )
        times = words(seconds), words(anew), f"{seconds / anew:.2f}"
        found.append([name, method, str(newer.weights.size), *times, *apart(fitted, newer)])
    return found


def main():
    options = arguments(__doc__, seed=1, cases=2)
    warnings.simplefilter("ignore")  # the table says what they would
    names = list(CASES)[: options.cases]
    for name in names:  # compile
        small = pm.simulate_clicks(200, 20, CASES[name][2][:2], 5, rng=1).preferences
        for method in ("mcmc", "matched"):
            posterior = pm.fit(small, method, n_clusters=len(CASES[name][2][:2]), n_draws=10, rng=1)
            posterior.update({"new": [1, 2]}, rng=1)
    heads = ["case", "method", "draws", "update", "fit anew", "ratio", "apart", "same labels"]
    for name in names:
        tables = [compare(name, method, options.seed) for method in ("mcmc", "matched")]
        print_table(heads, [row for table in tables for row in table])


if __name__ == "__main__":
    main()
