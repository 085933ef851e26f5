"""Personal consensuses against the recommenders of others: accuracy, calibration, sharpness.

The same splits as `recommenders.py` (retail, msweb). Every rival's scores become probabilities by
isotonic regression on the hidden clicks of the half of the users who are not judged with them: one
for all unseen items and, since those who recommend care for the best of them, another for the k
recommendations alone; ours, by its own correction, from the same hidden clicks. Rivals have the
settings that `recommenders.py` found by tuning ("tuned"; for BPR and SLIM the best on the hidden
clicks themselves), and their own defaults ("default").

accuracy     share of the k recommendations that were hidden clicks
ECE, Brier   of the k recommendations: expected calibration error in ten bins, Brier score x 1000
Brier, log, AUC   over all unseen items: Brier score x 1000, log loss, area under the curve
items        share of the items that are ever recommended
popularity   mean share of users who clicked what is recommended

Then the time of a fit at the paper's size and of one recommendation for a new user. Needs
`pip install implicit scikit-learn`, and `pandas` for msweb. Takes about three minutes a data set.
"""

import time
import warnings

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.stats import rankdata

import pseudomallows as pm
import recommenders
from pseudomallows.evaluation.figures import calibrate
from pseudomallows.recommendations.recommenders import chances_of
from timing import print_table, seconds_of, words

TUNED = {
    "retail": {
        "ridge": 300,
        "slim": {"alpha": 0.03, "l1_ratio": 0.1},
        "knn": {"K": 10, "B": 1.0},
        "als": {"factors": 64, "regularization": 20.0, "alpha": 2.0, "iterations": 30},
        "bpr": {"factors": 128, "learning_rate": 0.01, "regularization": 0.01, "iterations": 150},
    },
    "msweb": {
        "ridge": 100,
        "slim": {"alpha": 0.001, "l1_ratio": 0.3},
        "knn": {"K": 20, "B": 0.25},
        "als": {"factors": 64, "regularization": 200.0, "alpha": 40.0, "iterations": 30},
        "bpr": {"factors": 128, "learning_rate": 0.01, "regularization": 0.01, "iterations": 50},
    },
}


def popularity(train, seed):
    return np.broadcast_to(np.asarray(train.sum(axis=0)).ravel(), train.shape).astype(float)


def ease(train, seed, ridge=500):
    gram = (train.T @ train).toarray().astype(np.float64)
    inverse = np.linalg.inv(gram + ridge * np.eye(len(gram)))
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0)
    return train @ weights


def slim(train, seed, alpha=0.001, l1_ratio=0.1):
    from sklearn.linear_model import ElasticNet

    settings = {"positive": True, "fit_intercept": False, "max_iter": 200, "tol": 1e-3}
    gram = (train.T @ train).toarray().astype(np.float64)
    weights, dense = np.zeros(gram.shape), train.toarray().astype(np.float64)
    for item in range(len(gram)):
        others = np.delete(np.arange(len(gram)), item)
        model = ElasticNet(
            alpha=alpha, l1_ratio=l1_ratio, precompute=gram[np.ix_(others, others)], **settings
        )
        weights[others, item] = model.fit(dense[:, others], dense[:, item]).coef_
    return train @ weights


def item_knn(train, seed, **settings):
    from implicit.nearest_neighbours import BM25Recommender

    model = BM25Recommender(num_threads=2, **settings)
    model.fit(train, show_progress=False)
    return (train @ model.similarity).toarray()


def factors_of(model, train):
    model.fit(train, show_progress=False)
    return np.asarray(model.user_factors) @ np.asarray(model.item_factors).T


def als(train, seed, **settings):
    from implicit.cpu.als import AlternatingLeastSquares
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, "blas"):
        return factors_of(AlternatingLeastSquares(random_state=seed, **settings), train)


def bpr(train, seed, **settings):
    from implicit.cpu.bpr import BayesianPersonalizedRanking

    return factors_of(BayesianPersonalizedRanking(random_state=seed, **settings), train)


def calibrated(scores, split, halves):
    """Probabilities by isotonic regression, learnt on the other half of the users."""
    unseen, chances = split.train.toarray() == 0, np.zeros(scores.shape)
    for mine, others in (halves, halves[::-1]):
        known = scores[others][unseen[others]]
        order = np.argsort(known, kind="stable")
        hits = split.hidden[others][unseen[others]][order].astype(np.float64)
        chances[mine] = np.interp(scores[mine], known[order], isotonic_regression(hits).x)
    return chances


def ours(split, halves, seed, **options):
    """Probabilities of ours, corrected by the other half of the users."""
    prefs, hidden = (pm.Preferences.from_clicks(x) for x in (split.train, split.hidden))
    chances = np.zeros(split.train.shape)
    for mine, others in (halves, halves[::-1]):
        posterior = pm.fit(prefs, "personal", held_out=hidden.take(others), rng=seed, **options)
        chances[mine] = chances_of(posterior, prefs.take(mine), split.k)
    return chances


def best_items(scores, split):
    """The k unseen items of the highest scores."""
    unseen = split.train.toarray() == 0
    return np.argsort(np.where(unseen, -scores, np.inf), axis=1, kind="stable")[:, : split.k]


def calibrated_best(scores, split, halves):
    """The same for the k best items alone."""
    items = best_items(scores, split)
    values, hits = (np.take_along_axis(table, items, axis=1) for table in (scores, split.hidden))
    chances = np.zeros(values.shape)
    for mine, others in (halves, halves[::-1]):
        known = values[others].ravel()
        order = np.argsort(known, kind="stable")
        found = isotonic_regression(hits[others].ravel()[order].astype(np.float64)).x
        chances[mine] = np.interp(values[mine], known[order], found)
    return chances


def row_of(name, scores, chances, stated, split):
    """One line of the table: the order is that of the scores; `stated` is of the best items."""
    items, unseen = best_items(scores, split), split.train.toarray() == 0
    hits = np.take_along_axis(split.hidden, items, axis=1).astype(np.float64)
    p, truth = np.clip(chances[unseen], 1e-6, 1 - 1e-6), split.hidden[unseen]
    ranks, n_true = rankdata(p), truth.sum()
    area = (ranks[truth].sum() - n_true * (n_true + 1) / 2) / n_true / (len(p) - n_true)
    losses = -np.where(truth, np.log(p), np.log(1 - p))
    shares = np.asarray(split.train.mean(axis=0)).ravel()
    return [
        name,
        f"{hits.mean():.2%}",
        f"{calibrate(stated.ravel(), hits.ravel()).error:.4f}",
        f"{1000 * ((stated - hits) ** 2).mean():.1f}",
        f"{1000 * ((p - truth) ** 2).mean():.2f}",
        f"{losses.mean():.4f}",
        f"{area:.4f}",
        f"{len(np.unique(items)) / split.train.shape[1]:.0%}",
        f"{shares[items].mean():.3f}",
    ]


def rival_row(name, scores, split, halves):
    """A line of scores that become probabilities by isotonic regression."""
    chances = calibrated(scores, split, halves)
    return row_of(name, scores, chances, calibrated_best(scores, split, halves), split)


def our_row(name, chances, split):
    """A line of probabilities that are taken as stated."""
    stated = np.take_along_axis(chances, best_items(chances, split), axis=1)
    return row_of(name, chances, chances, stated, split)


def compare(name, split, seed):
    """The table of one data set."""
    rng, tuned = np.random.default_rng(seed), TUNED[name]
    halves = np.array_split(rng.permutation(split.train.shape[0]), 2)
    rivals = {
        "popularity": (popularity, {}),
        "item-kNN, default": (item_knn, {}),
        "item-kNN, tuned": (item_knn, tuned["knn"]),
        "BPR, default": (bpr, {}),
        "BPR, tuned": (bpr, tuned["bpr"]),
        "ALS, default": (als, {}),
        "ALS, tuned": (als, tuned["als"]),
        "EASE, ridge 500": (ease, {}),
        "EASE, tuned": (ease, {"ridge": tuned["ridge"]}),
        "SLIM, alpha 0.001": (slim, {}),
        "SLIM, tuned": (slim, tuned["slim"]),
    }
    rows = []
    for rival, (score, settings) in rivals.items():
        scores = np.asarray(score(split.train, seed, **settings), dtype=np.float64)
        rows.append(rival_row(rival, scores, split, halves))
    prefs = pm.Preferences.from_clicks(split.train)
    clusters = pm.fit(prefs, n_clusters=10, rng=seed)
    found = chances_of(clusters, prefs, split.k)
    rows.append(our_row("our clusters (10), as stated", found, split))
    rows.append(rival_row("our clusters, isotonic", found, split, halves))
    plain = chances_of(pm.fit(prefs, "personal", rng=seed), prefs, split.k)
    rows.append(our_row("ours, personal, by an inner split", plain, split))
    for title, options in (
        ("ours, personal", {}),
        ("ours, weights of any sign", {"nonnegative": False}),
        ("ours, with clusters", {"with_clusters": clusters}),
    ):
        found = ours(split, halves, seed, **options)
        rows.append(our_row(title, found, split))
    print(f"{name}: {split.train.shape[0]} users, {split.train.shape[1]} items, k = {split.k}")
    header = ["method", "accuracy", "ECE, k", "Brier, k", "Brier", "log", "AUC"]
    header += ["items", "popularity"]
    print_table(header, rows)


def speed(seed):
    """Fit at the paper's size, and one new user."""
    data = pm.simulate_clicks(7872, 200, [8.0] * 17, 10, rng=seed)
    posterior = pm.fit(data.preferences, "personal", rng=seed)
    seconds = min(
        seconds_of(lambda: pm.fit(data.preferences, "personal", rng=seed)) for _ in range(2)
    )
    rng, times = np.random.default_rng(seed), []
    for _ in range(1000):
        clicks = {"new": rng.permutation(200)[:10].tolist()}
        started = time.perf_counter()
        pm.recommend(posterior, 10, clicks=clicks)
        times.append(time.perf_counter() - started)
    half, most = np.quantile(times[10:], [0.5, 0.99])
    print(f"fit of {data.preferences}: {words(seconds)}")
    print(f"one new user: median {words(half)}, 99 % {words(most)}")


def main():
    given = recommenders.options()
    warnings.filterwarnings("ignore", module="implicit")
    warnings.simplefilter("ignore", pm.ConvergenceWarning)
    split = recommenders.SPLITS[given.data](given.folder, given.seed)
    compare(given.data, split, given.seed)
    speed(given.seed)


if __name__ == "__main__":
    main()
