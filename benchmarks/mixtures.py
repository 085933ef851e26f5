"""Clusters of rankings: do all chains and all seeds end at the same, best mode?

5,000 people and 10 items, from eight overlapping clusters of unequal size and alpha (their log
likelihood is near that of the sushi data), fitted with each of `--clusters` by `--seeds` seeds.
The columns: mean log likelihood of the likeliest chain; how far behind the last chain is; how many
chains are as good as the best of all seeds; the worst R-hat and effective size; verdict; CPU
seconds.

Takes three minutes.
"""

import warnings

import numpy as np
from scipy.special import logsumexp

import pseudomallows as pm
from timing import answer, arguments, cpu_seconds, print_table

ALPHAS = [4.0, 3.5, 3.5, 3.0, 3.0, 2.5, 2.0, 1.5]
SHARES = np.array([20, 18, 15, 13, 12, 10, 7, 5]) / 100
N_ITEMS, CENTERS_ALPHA = 10, 3.0
SAME_MODE = 3.0  # chains of one mode differ by less in their mean log likelihood


def overlapping_clusters(n_users, seed):
    """Rankings of 10 items; the eight consensuses are themselves Mallows draws around one."""
    rng = np.random.default_rng(seed)
    centers = pm.Mallows(range(1, N_ITEMS + 1), CENTERS_ALPHA).draw(len(ALPHAS), rng)
    sizes = rng.multinomial(n_users, SHARES)
    laws = zip(centers, ALPHAS, sizes, strict=True)
    return np.concatenate([pm.Mallows(center, a).draw(n, rng) for center, a, n in laws])


def chain_log_likelihoods(posterior, prefs, n_states=25):
    """Mean log likelihood of each chain, over some of its draws."""
    places = np.linspace(0, posterior.alpha.shape[1] - 1, n_states).astype(int)
    values = np.empty((len(posterior.alpha), n_states))
    for (chain, k), _ in np.ndenumerate(values):
        state = chain, places[k]
        parts = zip(posterior.consensus[state], posterior.alpha[state], strict=True)
        terms = [pm.log_likelihood(prefs, consensus, float(alpha)) for consensus, alpha in parts]
        values[chain, k] = logsumexp(np.array(terms).T + np.log(posterior.shares[state]), 1).sum()
    return values.mean(axis=1)


def compare(n_users, numbers, n_seeds):
    prefs, rows = pm.Preferences.from_rankings(overlapping_clusters(n_users, 1)), []
    for n_clusters in numbers:
        found = []
        for seed in range(n_seeds):
            seconds, posterior = cpu_seconds(
                lambda n=n_clusters, seed=seed: pm.fit(prefs, n_clusters=n, rng=seed)
            )
            found.append((chain_log_likelihoods(posterior, prefs), posterior, seconds))
        best = max(chains.max() for chains, _, _ in found)
        for seed, (chains, posterior, seconds) in enumerate(found):
            checks = [posterior.diagnostics(cluster) for cluster in range(n_clusters)]
            rhat = max(check.worst_rhat for check in checks)
            size = min(check.rank_effective_size.min() for check in checks)
            same = f"{(chains > best - SAME_MODE).sum()} of {len(chains)}"
            words = [f"{chains.max():.1f}", f"{np.ptp(chains):.1f}", same, f"{rhat:.3g}"]
            words += [f"{size:.0f}", answer(posterior), f"{seconds:.1f}"]
            rows.append([str(n_clusters), str(seed), *words])
    header = ["clusters", "seed", "best chain", "last behind", "chains at the best of all seeds"]
    print_table([*header, "R-hat", "effective size", "verdict", "CPU s"], rows)


def main():
    options = arguments(__doc__, users=5000, clusters="2,3,4,5,6,7,8", seeds=4)
    warnings.simplefilter("ignore")  # the table says what they would
    small = pm.Preferences.from_rankings(overlapping_clusters(50, 1))
    pm.fit(small, n_clusters=2, rng=1)  # compile
    compare(options.users, [int(n) for n in options.clusters.split(",")], options.seeds)


if __name__ == "__main__":
    main()
