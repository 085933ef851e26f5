"""Recommendations by Spearman's, Cayley's, Hamming's and Ulam's distance: calibration and seconds.

500 users x 50 items with 3 to 12 clicks each, drawn from the law itself; a fit by method "mcmc" and
three recommendations for everybody. Prints CPU seconds of both, the mean of the stated chances, the
share that came true, the expected calibration error (ECE, ten bins), the ECE that 1,500 perfectly
calibrated chances would show by accident, and the mean Monte Carlo error that is stated.

    .venv/bin/python benchmarks/other_distances.py spearman cayley hamming ulam
"""

import argparse
import time
import warnings

import numpy as np

import pseudomallows as pm

N_USERS, N_ITEMS, K, SEED = 500, 50, 3, 11
ALPHAS = {"spearman": 0.15, "cayley": 150.0, "hamming": 170.0, "ulam": 110.0}


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
    rhat = posterior.diagnostics().worst_rhat
    print(
        f"{name:9} fit {of_fit:6.1f} CPU s, R-hat {rhat:.2f}, {len(caught)} warnings; "
        f"recommend {seconds:6.2f} CPU s; stated {stated.mean():.3f}, came {came.mean():.3f}, "
        f"ECE {calibration_error(stated, came):.4f} (by accident {np.mean(chance):.4f}), "
        f"stated error {found.errors.mean():.4f}",
        flush=True,
    )


def main():
    """Measure the distances that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("distances", nargs="*", default=list(ALPHAS))
    parser.add_argument("--draws", type=int, default=200)
    options = parser.parse_args()
    for name in options.distances:
        measure(name, options.draws)


if __name__ == "__main__":
    main()
