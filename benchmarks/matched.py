"""Clicks by the additive likelihood: effective draws a second, against Algorithm 5.

(a) 2,801 users, 200 items; (b) the shipped purchases, 1,846 x 200. In each, one run of: "mcmc" and
its recommendations for all, "matched" and "pseudo". R-hat and effective size are the worst of all
items and alpha.
(c) 7,872 users, 200 items, 17 clusters: "mcmc", "matched", and an update of the first with a tenth
more users; recommendations, and the adjusted Rand index against the truth. (d) a million users, 200
items: from a Parquet log to "matched" and recommendations for all in a Parquet file, in one
process, with its peak memory.
(e) the shipped purchases, and msweb with `--msweb FOLDER`, split as in `recommenders.py`: 10 and 20
clusters by "mcmc" (4 chains of 100 draws), with the accuracy of their recommendations;
`--numbers 20` takes 20 clusters alone.

Takes about ten minutes; `--cases 1` takes (a) alone, `--first 4 --cases 4` (d), with `--users`.
"""

import multiprocessing
import resource
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import pseudomallows as pm
from recommenders import SPLITS
from timing import arguments, print_table, words

ONE = {
    "mcmc": {"method": "mcmc"},
    "matched": {"method": "matched"},
    "pseudo": {"method": "pseudo"},
}


def timed(work):
    started = time.perf_counter()
    found = work()
    return time.perf_counter() - started, found


def clocks():
    """Now: wall clock, and CPU of all threads."""
    return time.perf_counter(), time.process_time()


def worst(posterior):
    """The largest R-hat, and the smallest effective size, over clusters, items and alpha."""
    found = [posterior.diagnostics(cluster) for cluster in range(posterior.n_clusters)]
    return max(d.worst_rhat for d in found), min(d.least_effective_size for d in found)


def rand_index(labels, others):
    """The adjusted Rand index of two clusterings."""
    counts = np.zeros((labels.max() + 1, others.max() + 1))
    np.add.at(counts, (labels, others), 1)
    n_pairs, rows, columns, everyone = (
        (n * (n - 1) / 2).sum()
        for n in (counts, counts.sum(axis=1), counts.sum(axis=0), counts.sum())
    )
    expected = rows * columns / everyone
    return (n_pairs - expected) / ((rows + columns) / 2 - expected)


def one_cluster(prefs, seed):
    print(f"\n{prefs}, one cluster")
    rows, speed = [], {}
    for name, options in ONE.items():
        seconds, posterior = timed(lambda options=options: pm.fit(prefs, rng=seed, **options))
        answers, _ = timed(lambda posterior=posterior: pm.recommend(posterior, 10))
        rhat, size = worst(posterior)
        speed[name] = size / seconds
        ratio = f"{speed['mcmc'] / speed[name]:,.0f} x"
        sizes = f"{posterior.weights.size}", f"{rhat:.3f}", f"{size:.0f}", f"{speed[name]:.2f}"
        rows.append([name, words(seconds), words(answers), *sizes, ratio])
    heads = ["method", "fit", "recommend all", "draws", "R-hat", "effective", "a second", "mcmc is"]
    print_table(heads, rows)


def clusters(seed):
    data = pm.simulate_clicks(8660, 200, [10.0] * 17, 17, rng=seed)
    prefs, more = (data.preferences.take(part) for part in np.split(np.arange(8660), [7872]))
    print(f"\n{prefs}, 17 clusters")
    rows, found = [], {}
    options = {"n_clusters": 17, "rng": seed}
    work = {method: lambda m=method: pm.fit(prefs, m, **options) for method in ("mcmc", "matched")}
    work["update of mcmc"] = lambda: found["mcmc"].update(more, rng=seed + 1)
    for name, make in work.items():
        seconds, found[name] = timed(make)
        answers, _ = timed(lambda name=name: pm.recommend(found[name], 10))
        rhat, size = worst(found[name])
        labels = data.labels[: found[name].n_users]
        shown = f"{found[name].weights.size}", f"{rhat:.3f}", f"{size:.0f}"
        index = f"{rand_index(labels, found[name].labels):.4f}"
        rows.append([name, words(seconds), words(answers), *shown, index])
    print_table(["method", "fit", "recommend all", "draws", "R-hat", "effective", "Rand"], rows)


def write_log(file, n_users, seed):
    """A log of clicks in the order of the users, as Parquet."""
    import pyarrow as pa
    from pyarrow import parquet

    prefs = pm.simulate_clicks(n_users, 200, 10.0, 12, rng=seed).preferences
    users = np.repeat(np.arange(n_users), prefs.n_clicks)
    parquet.write_table(pa.table({"user": users, "item": prefs.codes}), file)


def from_parquet(n_users, seed):
    """Each step in turn, in this process; the log comes from another one, for its memory."""
    with tempfile.TemporaryDirectory() as folder:
        log, answers = Path(folder) / "log.parquet", Path(folder) / "answers.parquet"
        writer = multiprocessing.get_context("spawn").Process(
            target=write_log, args=(log, n_users, seed)
        )
        writer.start()
        writer.join()
        marks = [clocks()]
        prefs = pm.read(log)
        marks.append(clocks())
        posterior = pm.fit(prefs, "matched", n_draws=50, rng=seed)
        marks.append(clocks())
        pm.recommendations.recommend_to(posterior, answers, 10)
        marks.append(clocks())
    rhat, size = worst(posterior)
    share = posterior.settings["matched"]["effective_share"]
    n_checks = len(posterior.settings["matched"]["differences"])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    steps = np.append(np.diff(marks, axis=0), [np.subtract(marks[-1], marks[0])], axis=0)
    rows = zip(("read", "fit", "recommend all", "in all"), steps.tolist(), strict=True)
    print(f"\n{n_users:,} users, 200 items, from Parquet to Parquet, {peak:.2f} GB at the peak")
    print_table(["step", "wall clock", "CPU"], [[step, *map(words, both)] for step, both in rows])
    print(f"R-hat {rhat:.3f}, effective size {size:.0f}; ", end="")
    print(f"{n_checks} comparisons with the exact likelihood, {share:.0%} effective")


def real_clusters(folder, seed, numbers):
    """How well clusters that have converged recommend, and whether they have."""
    rows = []
    for name, split in SPLITS.items():
        if name == "msweb" and not folder:
            continue
        data = split(Path(folder), seed)
        prefs = pm.Preferences.from_clicks(data.train)
        for n_clusters in numbers:
            started = clocks()
            how = {"n_clusters": n_clusters, "n_draws": 100, "rng": seed}
            posterior = pm.fit(prefs, "mcmc", **how)
            seconds, spent = np.subtract(clocks(), started)
            items = pm.recommend(posterior, data.k).items
            hits = np.take_along_axis(data.hidden, items, axis=1).mean(axis=1)
            accuracy = f"{hits.mean():.2%} +- {hits.std() / len(hits) ** 0.5:.2%}"
            rhats, sizes = np.concatenate(
                [
                    [d.rank_rhat, d.rank_effective_size]
                    for d in map(posterior.diagnostics, range(n_clusters))
                ],
                axis=1,
            )
            found = f"{rhats.max():.3f}", f"{np.quantile(rhats, 0.99):.3f}"
            found += f"{sizes.min():.0f}", f"{np.median(sizes):.0f}"
            row = [name, f"{n_clusters}", words(seconds), words(spent), *found, accuracy]
            rows.append(row)
            print(*row, flush=True)
    heads = ["data", "clusters", "fit", "CPU", "R-hat", "99 %", "effective", "median"]
    print_table([*heads, "accuracy"], rows)


def main():
    more = {"msweb": "", "numbers": "10,20"}
    options = arguments(__doc__, seed=1, first=1, cases=4, users=1_000_000, **more)
    warnings.simplefilter("ignore")  # the table says what they would
    small = pm.simulate_clicks(200, 20, [5.0, 5.0], 5, rng=1).preferences
    for each in ONE.values():  # compile
        for n_clusters in (1, 2):
            pm.recommend(pm.fit(small, n_clusters=n_clusters, n_draws=4, rng=1, **each), 3)
    cases = [
        lambda: one_cluster(
            pm.simulate_clicks(2801, 200, 10.0, 12, rng=options.seed).preferences, options.seed
        ),
        lambda: one_cluster(pm.datasets.online_retail(min_purchases=13), options.seed),
        lambda: clusters(options.seed),
        lambda: from_parquet(options.users, options.seed),
        lambda: real_clusters(
            options.msweb,
            options.seed,
            [int(number) for number in options.numbers.split(",")],
        ),
    ]
    for case in cases[options.first - 1 : options.cases]:
        case()


if __name__ == "__main__":
    main()
