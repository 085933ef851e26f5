"""Recommenders on real clicks: our clusters, popularity, item-kNN and ALS of `implicit`, EASE.

Some clicks of each user are hidden; every method learns from those that are left and recommends k
items that the user has not clicked there. Accuracy is the share of a user's k recommendations that
were hidden clicks, averaged over users, with its standard error over users.

Data, by `--data`:
retail  UCI Online Retail (Chen, Sain and Guo 2012, CC BY 4.0), `pm.datasets.online_retail`: who
        bought which of the 200 products with most buyers; customers with 13 or more of them, 10
        hidden, k = 10. The seed chooses the hidden clicks.
msweb   UCI Anonymous Microsoft Web Data (Breese, Heckerman and Kadie 1998, CC BY 4.0), from
        train.csv and test.csv (user,item) in `--folder`: 3 hidden, k = 3. The files are the split;
        the seed moves only ties, the start of ALS and the tuning.

A method is a function and a grid of settings. The tuning hides some of the clicks that are left,
three times, and takes the settings with most hits: 2 clicks of each user for retail, 1 for msweb,
where many users have 3 left and would keep but one. The rows "best on test" take the settings with
most hits on the test itself: too good by construction, a bound for what this grid can do.
Seconds are those of one fit with recommendations for all users, then those of the tuning.

Needs `pip install implicit`, and `pandas` for msweb. A seed takes about six minutes for retail.
"""

import argparse
import importlib.util
import sys
import time
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

import pseudomallows as pm
from pseudomallows.data.splits import hide_clicks
from timing import print_table, words

N_THREADS = 2
N_PRODUCTS, MIN_PRODUCTS = 200, 13
N_TUNING = 3  # splits to tune on


class Split(NamedTuple):
    """`train[user, item]` is 1 for a click that is left, `hidden[user, item]` true for one to be
    found by `k` recommendations; the tuning hides `hide` more of each user."""

    train: csr_matrix
    hidden: np.ndarray
    k: int
    hide: int


class Method(NamedTuple):
    """`recommend(train, k, seed, **settings)` gives `items[user, place]`, best first, -1 for none;
    `grid` is a list of settings to choose from."""

    recommend: Callable
    grid: list


class Result(NamedTuple):
    """What one method reached on one split."""

    settings: dict
    accuracy: float
    error: float
    seconds: float
    tuning: float


# The data


def split_retail(folder, seed):
    """Hide 10 products of each customer."""
    prefs = pm.datasets.online_retail(N_PRODUCTS, MIN_PRODUCTS)
    shown, hidden = hide_clicks(prefs, 10, np.random.default_rng(seed))
    return Split(matrix_of(shown), hidden, k=10, hide=2)


def split_msweb(folder, seed):
    """The split of the files."""
    import pandas as pd

    train, test = (pd.read_csv(folder / f"{part}.csv") for part in ("train", "test"))
    both = pd.concat([train, test])
    names = {"users": sorted(set(both["user"])), "items": sorted(set(both["item"]))}
    left, gone = (matrix_of(pm.Preferences.from_clicks(part, **names)) for part in (train, test))
    return Split(left, gone.toarray() > 0, k=3, hide=1)


def matrix_of(prefs):
    """Clicks as a sparse matrix."""
    ones = np.ones(len(prefs.codes), dtype=np.float32)
    return csr_matrix((ones, prefs.codes, prefs.starts), shape=(prefs.n_users, prefs.n_items))


# The methods


def by_popularity(train, k, seed):
    """The items with most clicks."""
    return best_unseen(np.zeros(train.shape), train, k, seed)


def by_neighbours(train, k, seed, weighting, **settings):
    """Item-kNN: sum of the similarities to the user's clicks, each item with its K nearest."""
    from implicit import nearest_neighbours

    model = getattr(nearest_neighbours, f"{weighting}Recommender")(
        num_threads=N_THREADS, **settings
    )
    model.fit(train, show_progress=False)
    return best_unseen((train @ model.similarity).toarray(), train, k, seed)


def by_als(train, k, seed, **settings):
    """Factorisation of Hu, Koren and Volinsky (2008); `alpha` is the weight of a click."""
    from implicit.cpu.als import AlternatingLeastSquares
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, "blas"):  # as implicit asks: it has threads of its own
        model = AlternatingLeastSquares(random_state=seed, num_threads=N_THREADS, **settings)
        model.fit(train, show_progress=False)
    return best_unseen(model.user_factors @ model.item_factors.T, train, k, seed)


def by_ease(train, k, seed, ridge):
    """Linear model of each item by the others, in closed form (Steck 2019)."""
    gram = (train.T @ train).toarray().astype(np.float64)
    inverse = np.linalg.inv(gram + ridge * np.eye(len(gram)))
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0)
    return best_unseen(train @ weights, train, k, seed)


def by_clusters(train, k, seed, method, n_clusters, n_chains):
    """Ours: the mean over the clusters of a user, and over chains."""
    prefs = pm.Preferences.from_clicks(train)
    options = {"n_clusters": n_clusters, "n_chains": n_chains, "rng": seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.ConvergenceWarning)
        return pm.recommend(pm.fit(prefs, method, **options), k).items


def best_unseen(scores, train, k, seed):
    """items[user, place]: the k best without a click; ties by popularity, then at random."""
    probability = np.random.default_rng(seed).random(train.shape[1])
    common = np.lexsort((probability, -np.asarray(train.sum(axis=0)).ravel()))
    ranked = np.where(train.toarray() > 0, np.inf, -scores)[:, common]
    return common[np.argsort(ranked, axis=1, kind="stable")[:, :k]]


def grid_of(**values):
    """All combinations of the values."""
    return [dict(zip(values, row, strict=True)) for row in product(*values.values())]


NEAREST = [3, 5, 10, 20, 50, 100, 200]  # an item is the nearest of itself
METHODS = {
    "popularity": Method(by_popularity, [{}]),
    "ours, 10 clusters, one chain": Method(
        by_clusters, grid_of(method=["pseudo"], n_clusters=[10], n_chains=[1])
    ),
    "ours, 20 clusters, 4 chains": Method(
        by_clusters, grid_of(method=["pseudo"], n_clusters=[20], n_chains=[4])
    ),
    "item-kNN, cosine": Method(by_neighbours, grid_of(weighting=["Cosine"], K=NEAREST)),
    "item-kNN, TF-IDF": Method(by_neighbours, grid_of(weighting=["TFIDF"], K=NEAREST)),
    "item-kNN, BM25": Method(
        by_neighbours, grid_of(weighting=["BM25"], K=NEAREST, B=[0.1, 0.25, 0.5, 0.75, 1.0])
    ),
    "ALS": Method(
        by_als,
        grid_of(
            factors=[16, 64, 128],
            regularization=[10.0, 20.0, 30.0, 50.0],
            alpha=[1.0, 2.0, 5.0, 10.0],
            iterations=[30],
        ),
    ),
    "EASE": Method(by_ease, grid_of(ridge=[10, 20, 30, 50, 100, 200, 300, 500, 1000, 2000])),
}


# The measurement


def measure(method, split, seed):
    """Results with the settings of the tuning and, if there was a choice, with the best on test."""
    if len(method.grid) == 1:
        return [result_of(method, method.grid[0], split, seed, 0.0)]
    started = time.perf_counter()
    parts = [inner_split(split, seed, part) for part in range(N_TUNING)]
    tuned = best_settings(method, parts, seed)
    tuning = time.perf_counter() - started
    best = best_settings(method, [split], seed)
    return [result_of(method, settings, split, seed, tuning) for settings in (tuned, best)]


def inner_split(split, seed, part):
    """Hide some of the clicks that are left."""
    prefs = pm.Preferences.from_clicks(split.train)
    shown, hidden = hide_clicks(prefs, split.hide, np.random.default_rng([seed, part]))
    return split._replace(train=matrix_of(shown), hidden=hidden)


def best_settings(method, splits, seed):
    """The settings of the grid with most hits on these splits."""

    def accuracy(settings):
        return sum(result_of(method, settings, split, seed).accuracy for split in splits)

    return max(method.grid, key=accuracy)


def result_of(method, settings, split, seed, tuning=0.0):
    """Fit, recommend and count the hits."""
    started = time.perf_counter()
    items = method.recommend(split.train, split.k, seed, **settings)
    seconds = time.perf_counter() - started
    hits = np.take_along_axis(split.hidden, np.maximum(items, 0), axis=1) & (items >= 0)
    shares = hits.sum(axis=1) / split.k
    error = shares.std(ddof=1) / np.sqrt(len(shares))
    return Result(settings, shares.mean(), error, seconds, tuning)


def run(split, seed):
    """{name: result} of all methods on one split, printed."""
    results = {}
    for name, method in METHODS.items():
        found = measure(method, split, seed)
        results |= dict(zip((name, f"{name}, best on test"), found, strict=False))
    print(f"seed {seed}")
    print_results(results)
    return results


def print_results(results):
    """One line a method."""
    header = ["method", "settings", "accuracy", "error", "seconds", "tuning"]
    rows = [
        [
            name,
            ", ".join(f"{key} {value}" for key, value in row.settings.items()),
            f"{row.accuracy:.2%}",
            f"{row.error:.2%}",
            words(row.seconds),
            words(row.tuning) if row.tuning else "",
        ]
        for name, row in results.items()
    ]
    print_table(header, rows)


def mean_of(rows):
    """The mean over splits; settings that differ are joined."""
    settings = {
        key: "/".join(dict.fromkeys(str(row.settings[key]) for row in rows))
        for key in rows[0].settings
    }
    return Result(settings, *np.mean([row[1:] for row in rows], axis=0))


SPLITS = {"retail": split_retail, "msweb": split_msweb}


def options():
    """The command line, with what it needs checked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", choices=SPLITS, default="retail", help="default retail")
    parser.add_argument("--folder", type=Path, help="for msweb: where train.csv and test.csv are")
    parser.add_argument("--seed", type=int, default=1, help="default 1")
    parser.add_argument("--seeds", type=int, default=1, help="how many, from --seed on; default 1")
    given = parser.parse_args()
    if given.data == "msweb" and not (given.folder and (given.folder / "train.csv").is_file()):
        parser.error("--data msweb needs --folder with train.csv and test.csv")
    wanted = ["implicit", *(["pandas"] if given.data == "msweb" else [])]
    missing = [name for name in wanted if importlib.util.find_spec(name) is None]
    if missing:
        sys.exit(f"not installed: {', '.join(missing)}; pip install {' '.join(missing)}")
    return given


def main():
    given = options()
    from threadpoolctl import threadpool_limits  # comes with implicit

    warnings.filterwarnings("ignore", module="implicit")  # it converts its own matrices
    seeds = range(given.seed, given.seed + given.seeds)
    splits = [SPLITS[given.data](given.folder, seed) for seed in seeds]
    train, k, n_hidden = splits[0].train, splits[0].k, splits[0].hidden.sum()
    cells = train.shape[0] * train.shape[1]
    print(
        f"{given.data}: {train.shape[0]} users, {train.shape[1]} items, k = {k}; of the cells "
        f"{(train.nnz + n_hidden) / cells:.1%} are clicks, {train.nnz / cells:.1%} left"
    )
    with threadpool_limits(N_THREADS, "blas"):
        runs = [run(split, seed) for split, seed in zip(splits, seeds, strict=True)]
    if len(runs) > 1:
        print(f"mean over {len(runs)} seeds; error: standard error over users of one seed")
        print_results({name: mean_of([results[name] for results in runs]) for name in runs[0]})


if __name__ == "__main__":
    main()
