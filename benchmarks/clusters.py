"""Clusters: how well known ones are found, and how long the paper's real data would take.

(a) Three known clusters (alpha 4, 6, 8; independent random consensuses): full rankings (600 users,
    20 items) and clicks (1,500 users, 50 items, 8 clicks each). Adjusted Rand index against the
    truth, alphas, the number of clusters chosen, and, for clicks, accuracy and calibration at
    k = 3. The oracle knows all parameters, and the popularity list knows no clusters.
(b) Clicks of the size of the paper's NRK data, simulated: 7,872 users, 200 items, 5 % density,
    17 clusters; fit by "pseudo" and recommendations for all. The authors took 587 s for the largest
    cluster alone, the clustering not counted.
(c) One sweep of "mcmc" with three clusters of 1,000 full rankings of 20 items: alphas, consensuses,
    exact memberships, labels, shares. The rival counts the users of each cluster anew in every
    sweep, row by row, as for users known in part.

Takes about five minutes.
"""

import time
import warnings

import numpy as np

import pseudomallows as pm
from pseudomallows.distances import FOOTRULE
from pseudomallows.distributions.scores import rand_index
from pseudomallows.inference.chains.mixture import Mixture
from pseudomallows.inference.chains.starts import prepare
from pseudomallows.inference.methods.fit_mcmc import Mcmc
from pseudomallows.inference.methods.method import Plan
from pseudomallows.latent.bucket_orders import BucketPopulation
from pseudomallows.latent.ranking_population import RankingPopulation
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


def mixture_of(population, prefs, seed):
    """A chain of "mcmc" after its first labels."""
    rng = np.random.default_rng(seed)
    plan = Plan.make(prefs, Mcmc, 1, len(ALPHAS), {}, None)
    start = prepare(population, len(ALPHAS), None, 1.0, rng, lambda: None)
    clusters = [
        plan.method.cluster(first.population, first.consensus.copy(), first.alpha, plan, child)
        for first, child in zip(start.clusters, rng.spawn(len(ALPHAS)), strict=True)
    ]
    mixture = Mixture(population, clusters, start.shares, 1, 1.0, rng)
    mixture.begin(None)
    return mixture


def sweeps(seed):
    """(c)"""
    data = pm.simulate_rankings(1000, 20, ALPHAS, sizes=[467, 333, 200], rng=seed)
    ways = {
        "ours": lambda prefs, executor: BucketPopulation(prefs, executor, distance=FOOTRULE),
        "row by row": RankingPopulation,
    }
    chains = {
        name: mixture_of(way(data.preferences, pm.Threads()), data.preferences, seed)
        for name, way in ways.items()
    }

    def run(chain):
        for _ in range(SWEEPS):
            chain.sweep(adapt=False)

    seconds = race({name: lambda c=chain: run(c) for name, chain in chains.items()}, REPEATS)
    same = (chains["ours"].consensus == chains["row by row"].consensus).all()
    each = {name: words(total / SWEEPS) for name, total in seconds.items()}
    ratio = seconds["row by row"] / seconds["ours"]
    print(f"(c) {data.preferences}, {len(ALPHAS)} clusters: {each['ours']} a sweep;")
    print(f"    row by row {each['row by row']} ({ratio:.1f} x), same draws: {same}\n")


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
