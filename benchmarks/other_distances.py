"""Recommendations by Cayley's and Hamming's distance: calibration and seconds.

500 users x 50 items with 3 to 12 clicks each, drawn from the law itself; a fit by method "mcmc" and
three recommendations for everybody. Prints CPU seconds of both, the mean of the stated chances, the
share that came true, the expected calibration error (ECE, ten bins), the ECE that 1,500 perfectly
calibrated chances would show by accident, and the mean Monte Carlo error that is stated.

With --clusters, three clusters of 600 users x 30 items with 3 to 8 clicks each: the adjusted Rand
index of the labels, and that of somebody who knows each cluster's consensus and alpha.

    .venv/bin/python benchmarks/other_distances.py cayley hamming
    .venv/bin/python benchmarks/other_distances.py --clusters cayley hamming
"""

import argparse
import time
import warnings

import numpy as np

import pseudomallows as pm
from pseudomallows.distributions.scores import rand_index

N_USERS, N_ITEMS, K, SEED = 500, 50, 3, 11
ALPHAS = {"cayley": 150.0, "hamming": 170.0}
OF_CLUSTERS = {"users": 600, "items": 30, "alpha": (90.0, 150.0)}


def calibration_error(stated, came):
    """Mean distance of what is stated from what came true, over ten bins."""
    bins = np.minimum((stated * 10).astype(int), 9)
    sizes = np.bincount(bins, minlength=10)
    return np.abs(np.bincount(bins, stated - came, minlength=10)).sum() / sizes.sum()


def measure(name, n_draws):
    """Fit, recommend, compare with the truth."""
    rng = np.random.default_rng(SEED)
    law = pm.Mallows(rng.permutation(N_ITEMS) + 1, ALPHAS[name], distance=name)
    rankings, sizes = law.draw(N_USERS, rng), rng.integers(3, 13, N_USERS)
    prefs = pm.Preferences.from_clicks(rankings <= sizes[:, None])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        started = time.process_time()
        posterior = pm.fit(prefs, "mcmc", distance=name, n_draws=n_draws, rng=1)
        of_fit = time.process_time() - started
    pm.recommend(posterior, K, users=posterior.users[:1].tolist())  # compile
    started = time.process_time()
    found = pm.recommend(posterior, K)
    seconds = time.process_time() - started
    ranks = np.take_along_axis(rankings, found.items, axis=1)
    came = ((ranks > sizes[:, None]) & (ranks <= sizes[:, None] + K)).ravel()
    stated = found.probabilities.ravel()
    chance = [calibration_error(stated, rng.random(len(stated)) < stated) for _ in range(200)]
    checks = posterior.diagnostics()
    fewest = min(checks.rank_effective_size.min(), checks.alpha_effective_size)
    print(
        f"{name:9} fit {of_fit:6.1f} CPU s, R-hat {checks.worst_rhat:.2f}, {fewest:.0f} effective "
        f"draws of {posterior.alpha.size}, {len(caught)} warnings; "
        f"recommend {seconds:6.2f} CPU s; stated {stated.mean():.3f}, came {came.mean():.3f}, "
        f"ECE {calibration_error(stated, came):.4f} (by accident {np.mean(chance):.4f}), "
        f"stated error {found.errors.mean():.4f}",
        flush=True,
    )


def measure_clusters(name, alpha, n_draws):
    """Fit three clusters, compare labels with the truth."""
    n_users, n_items = OF_CLUSTERS["users"], OF_CLUSTERS["items"]
    rng = np.random.default_rng(5)
    sizes, labels = rng.integers(3, 9, n_users), rng.integers(0, 3, n_users)
    laws = [pm.Mallows(rng.permutation(n_items) + 1, alpha, distance=name) for _ in range(3)]
    drawn = np.stack([law.draw(n_users, rng) for law in laws])
    rankings = drawn[labels, np.arange(n_users)]
    prefs = pm.Preferences.from_clicks(rankings <= sizes[:, None])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        started = time.process_time()
        posterior = pm.fit(prefs, "mcmc", distance=name, n_clusters=3, n_draws=n_draws, rng=1)
        seconds = time.process_time() - started
    checks = [posterior.diagnostics(cluster) for cluster in range(3)]
    fewest = min(min(c.rank_effective_size.min(), c.alpha_effective_size) for c in checks)
    line = f"{name:9} alpha {alpha:.0f}: {seconds:.1f} CPU s, {len(caught)} warnings, R-hat "
    line += f"{max(c.worst_rhat for c in checks):.3f}, {fewest:.0f} effective draws of "
    line += f"{4 * n_draws}, adjusted Rand index {rand_index(labels, posterior.labels):.3f}"
    told = [pm.log_likelihood(prefs, law.consensus, alpha, name) for law in laws]
    line += f" ({rand_index(labels, np.argmax(told, axis=0)):.3f} if all were known)"
    print(line, flush=True)


def main():
    """Measure the distances that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("distances", nargs="*", default=list(ALPHAS))
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--clusters", action="store_true")
    options = parser.parse_args()
    for name in options.distances:
        if options.clusters:
            for alpha in OF_CLUSTERS["alpha"]:
                measure_clusters(name, alpha, options.draws)
        else:
            measure(name, options.draws)


if __name__ == "__main__":
    main()
