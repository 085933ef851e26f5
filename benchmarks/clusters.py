"""Clusters: how well known ones are found, and how long the paper's real data would take.

(a) Three known clusters (alpha 4, 6, 8; independent random consensuses): full rankings (600 users,
    20 items) and clicks (1,500 users, 50 items, 8 clicks each). Adjusted Rand index against the
    truth, alphas, the number of clusters chosen, and, for clicks, accuracy and calibration at
    k = 3. The oracle knows all parameters, and the popularity list knows no clusters.
(b) Clicks of the size of the paper's NRK data, simulated: 7,872 users, 200 items, 5 % density,
    17 clusters; fit by "pseudo" and recommendations for all. The authors took 587 s for the largest
    cluster alone, the clustering not counted.
(c) One sweep of "mcmc" with three clusters of 1,000 full rankings of 20 items: alphas, consensuses,
    labels, shares. The rival counts all users of each cluster anew in every sweep; ours, those who
    came or went.

Takes about five minutes.
"""

import time
import warnings

import numpy as np

import pseudomallows as pm
from pseudomallows.distances import FOOTRULE
from pseudomallows.laws.full import FullLaw
from pseudomallows.sampling.chain import Chain, Moves, fresh_steps
from pseudomallows.sampling.priors import default_prior
from pseudomallows.sampling.start import start_clusters
from pseudomallows.scores import rand_index
from timing import arguments, print_table, race, words

ALPHAS = [4.0, 6.0, 8.0]
EXACT = {"n_chains": 2, "n_draws": 50}
NRK = {"n_users": 7872, "n_items": 200, "n_clusters": 17, "mean_clicks": 10}
AUTHORS = 587.0
SWEEPS, REPEATS = 200, 5


def oracle(data, sizes):
    """Labels by someone who knows consensus, alpha and size of every cluster."""
    likelihood = pm.log_likelihood
    if isinstance(data.preferences, pm.Clicks):
        likelihood = pm.click_log_likelihood
    values = [
        likelihood(data.preferences, center, alpha) + np.log(size)
        for center, alpha, size in zip(data.consensus, ALPHAS, sizes, strict=True)
    ]
    return np.argmax(values, axis=0)


def alphas_of(posterior, truth):
    """Mean alpha of the cluster that holds most users of each true one."""
    found = [np.bincount(posterior.labels[truth == k]).argmax() for k in range(len(ALPHAS))]
    return " ".join(f"{posterior.alpha[:, :, k].mean():.2f}" for k in found)


def known_clusters(name, data, sizes, seed):
    """(a)"""
    rows = [["oracle", f"{rand_index(oracle(data, sizes), data.labels):.3f}", "4 6 8", "", "", ""]]
    for method in ("pseudo", "balanced", "mcmc"):
        options = {} if method == "pseudo" else EXACT
        started = time.perf_counter()
        if isinstance(data.preferences, pm.Clicks):
            found = pm.evaluate(
                data.preferences,
                k=3,
                method=method,
                truth=data.rankings,
                n_clusters=3,
                rng=seed,
                **options,
            )
            posterior = found.posterior
            accuracy = f"{found.accuracy:.1%} ({found.popularity:.1%})"
            error = f"{found.calibration.error:.3f}"
        else:
            posterior = pm.fit(data.preferences, method, n_clusters=3, rng=seed, **options)
            accuracy, error = "", ""
        seconds = words(time.perf_counter() - started)
        index = f"{rand_index(posterior.labels, data.labels):.3f}"
        rows.append([method, index, alphas_of(posterior, data.labels), accuracy, error, seconds])
    print(f"(a) {name}: {data.preferences}, seed {seed}")
    header = ["method", "Rand index", "alphas", "accuracy (popularity)", "calibration", "time"]
    print_table(header, rows)
    started = time.perf_counter()
    curve = pm.choose_clusters(data.preferences, rng=seed)
    print(f"    {curve}, in {words(time.perf_counter() - started)}")
    print(f"    standard errors of the distances from the best: {curve.errors.round(3)}\n")


def paper_size(seed):
    """(b)"""
    rng = np.random.default_rng(seed)
    n_users, n_clusters = NRK["n_users"], NRK["n_clusters"]
    shares = np.sort(rng.dirichlet(np.full(n_clusters, 2.0)))[::-1]
    sizes = np.floor(shares * n_users).astype(int)
    sizes[0] += n_users - sizes.sum()
    alphas = rng.uniform(5, 20, n_clusters).tolist()
    data = pm.simulate_clicks(
        n_users, NRK["n_items"], alphas, NRK["mean_clicks"], sizes=sizes.tolist(), rng=rng
    )
    started = time.perf_counter()
    posterior = pm.fit(data.preferences, "pseudo", n_clusters=n_clusters, rng=seed)
    fitted = time.perf_counter()
    pm.recommend(posterior, 10)
    total = time.perf_counter() - started
    print(f"(b) {data.preferences}, {n_clusters} clusters of {sizes.min()} to {sizes.max()} users")
    print(f"    fit {words(fitted - started)}, with recommendations for all {words(total)};")
    print(f"    the authors, for the largest cluster alone, 587 s ({AUTHORS / total:.0f} x);")
    print(f"    adjusted Rand index {rand_index(posterior.labels, data.labels):.3f}")


class CountedAnew(FullLaw):
    """All users are counted in every sweep."""

    def tallies(self, labels, n_clusters, before=()):
        return super().tallies(labels, n_clusters)


def chain_of(law, seed):
    """A chain of "mcmc" at its start."""
    rng = np.random.default_rng(seed)
    moves = Moves(n_moves=10 * law.n_items, prior=default_prior(law.n_items))
    state, _ = start_clusters(law, len(ALPHAS), None, moves, rng)
    return Chain(law, fresh_steps(state, law, moves), moves, rng)


def sweeps(seed):
    """(c)"""
    data = pm.simulate_rankings(1000, 20, ALPHAS, sizes=[467, 333, 200], rng=seed)
    laws = {"ours": FullLaw, "all anew": CountedAnew}
    chains = {
        name: chain_of(law(data.preferences, pm.Threads(), FOOTRULE), seed)
        for name, law in laws.items()
    }

    def run(chain):
        for _ in range(SWEEPS):
            chain.sweep(adapt=False)

    seconds = race({name: lambda c=chain: run(c) for name, chain in chains.items()}, REPEATS)
    same = (chains["ours"].state.consensus == chains["all anew"].state.consensus).all()
    each = {name: words(total / SWEEPS) for name, total in seconds.items()}
    ratio = seconds["all anew"] / seconds["ours"]
    print(f"(c) {data.preferences}, {len(ALPHAS)} clusters: {each['ours']} a sweep;")
    print(f"    all anew {each['all anew']} ({ratio:.1f} x), same draws: {same}\n")


def main():
    options = arguments(__doc__, seed=1)
    warnings.simplefilter("ignore", pm.ConvergenceWarning)
    seed, sizes = options.seed, [280, 200, 120]
    sweeps(seed)
    data = pm.simulate_rankings(600, 20, ALPHAS, sizes=sizes, rng=seed)
    known_clusters("full rankings", data, sizes, seed)
    sizes = [700, 500, 300]
    data = pm.simulate_clicks(1500, 50, ALPHAS, 8, sizes=sizes, rng=seed)
    known_clusters("clicks", data, sizes, seed)
    paper_size(seed)


if __name__ == "__main__":
    main()
