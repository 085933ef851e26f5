"""Personal consensuses against the recommenders of others: accuracy, calibration, sharpness.

The same splits as `recommenders.py` (retail, msweb). All learn how likely a score is to come true
from the same hidden clicks, those of the half of the users who are not evaluated with them: ours by
its own correction, the scores of every rival by the same features, a logistic regression in score,
log score (inverse hyperbolic sine, since scores may be negative) and the user's clicks, then a
monotone map (isotonic regression); once for all unseen items and, since those who recommend care
for the best of them, once for the k recommendations alone. Rivals have the settings with most hits
on inner splits, as in `recommenders.py`; BPR, whose grid takes long, those that are best on the
hidden clicks themselves.

accuracy     share of the k recommendations that were hidden clicks
behind ours  the difference, and its standard error over users, paired
ECE, Brier   of the k recommendations: expected calibration error in ten bins, Brier score x 1000
Brier, log, AUC   over all unseen items: Brier score x 1000, log loss, area under the curve
items        share of the items that are ever recommended

Then the time of a fit at the paper's size and of one recommendation for a new user. Needs
`pip install implicit scikit-learn`, and `pandas` for msweb. Takes about ten minutes a data set.
"""

import time
import warnings
from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression, minimize
from scipy.stats import rankdata

import pseudomallows as pm
import recommenders
from pseudomallows.evaluation.figures import calibrate
from recommenders import grid_of
from timing import print_table, seconds_of, words

BPR = {
    "retail": {"factors": 128, "learning_rate": 0.01, "regularization": 0.01, "iterations": 150},
    "msweb": {"factors": 128, "learning_rate": 0.01, "regularization": 0.01, "iterations": 50},
}
N_TUNING = 2  # inner splits to choose the settings of a rival on


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


def low_rank(train, seed, factors, damping):
    """The click matrix in the space of its first factors, items scaled by popularity^-damping."""
    counts = np.asarray(train.sum(axis=0)).ravel()
    scaled = train.toarray().astype(np.float64) * (counts + 1) ** -damping
    vectors = np.linalg.eigh(scaled.T @ scaled)[1][:, -factors:]
    return scaled @ vectors @ vectors.T * (counts + 1) ** damping


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


RIVALS = {  # how the scores are learnt, and the settings to choose from
    "popularity": (popularity, [{}]),
    "item-kNN": (item_knn, grid_of(K=[5, 10, 20, 50, 100], B=[0.1, 0.25, 0.5, 1.0])),
    "BPR": (bpr, None),
    "low rank (SVD)": (
        low_rank,
        grid_of(factors=[4, 8, 12, 16, 24, 32, 48, 64], damping=[0.0, 0.25, 0.5, 0.75]),
    ),
    "ALS": (
        als,
        grid_of(
            factors=[32, 64, 128],
            regularization=[3.0, 20.0, 60.0, 200.0],
            alpha=[1.0, 2.0, 10.0, 40.0],
            iterations=[15],
        ),
    ),
    "EASE": (ease, grid_of(ridge=[10, 20, 30, 50, 100, 200, 300, 500, 1000, 2000])),
    "SLIM": (slim, grid_of(alpha=[0.001, 0.003, 0.01, 0.03], l1_ratio=[0.01, 0.1, 0.3])),
}


def tuned(score, grid, split, seed):
    """The settings with most hits on inner splits."""
    if len(grid) == 1:
        return grid[0]
    parts = [recommenders.inner_split(split, seed, part) for part in range(N_TUNING)]

    def n_hits(settings):
        scores = (np.asarray(score(part.train, seed, **settings)) for part in parts)
        return sum(hits_of(*both).sum() for both in zip(scores, parts, strict=True))

    return max(grid, key=n_hits)


def hits_of(scores, split):
    """``hits[user, place]`` of the k best items."""
    return np.take_along_axis(split.hidden, best_items(scores, split), axis=1).astype(np.float64)


def rival_features(scores, split):
    """Score, log score, and the user's clicks: ``features[user, item, feature]``."""
    middle = np.median(scores)
    spread = max(np.median(np.abs(scores - middle)), 0.05 * scores.std(), 1e-9)
    log_clicks = np.log1p(np.asarray(split.train.sum(axis=1))).reshape(-1, 1)
    of_users = [np.broadcast_to(x, scores.shape) for x in (log_clicks, log_clicks**2)]
    return np.stack([scores, np.arcsinh((scores - middle) / spread), *of_users], axis=-1)


def learn_probabilities(features, hits):
    """A function from features to probabilities: logistic, then isotonic."""
    centre, spread = features.mean(axis=0), features.std(axis=0) + 1e-9

    def scaled(given):
        return np.column_stack([(given - centre) / spread, np.ones(len(given))])

    def loss(values):
        scale = table @ values
        slope = table.T @ (1 / (1 + np.exp(-scale)) - hits) + 1e-3 * values
        return (np.logaddexp(0, scale) - hits * scale).sum() + 5e-4 * values @ values, slope

    table, bounds = scaled(features), [(0, None)] * 2 + [(None, None)] * 3
    start = np.append(np.zeros(4), np.log(hits.mean() / (1 - hits.mean())))
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    scale = table @ found
    order = np.argsort(scale, kind="stable")
    map_to = isotonic_regression(hits[order]).x
    return lambda given: np.interp(scaled(given) @ found, scale[order], map_to)


def calibrated(scores, split, halves):
    """Probabilities of all unseen items, learnt on the other half of the users."""
    unseen, probabilities = split.train.toarray() == 0, np.zeros(scores.shape)
    features = rival_features(scores, split)
    for mine, others in (halves, halves[::-1]):
        known, hits = features[others][unseen[others]], split.hidden[others][unseen[others]]
        found = np.zeros((len(mine), scores.shape[1]))
        found[unseen[mine]] = learn_probabilities(known, hits)(features[mine][unseen[mine]])
        probabilities[mine] = found
    return probabilities


def probabilities_of(fit, clicks, window):
    """``probabilities[user, item]`` of users with these clicks."""
    found = pm.recommend(fit, fit.n_items, clicks=clicks, window=window)
    table = np.zeros((clicks.n_users, fit.n_items + 1))
    np.put_along_axis(table, found.items, np.nan_to_num(found.probabilities), axis=1)
    return table[:, :-1]


def ours(split, halves, seed, **options):
    """Probabilities of ours, corrected by the other half of the users."""
    prefs, hidden = (pm.Preferences.from_clicks(x) for x in (split.train, split.hidden))
    probabilities = np.zeros(split.train.shape)
    for mine, others in (halves, halves[::-1]):
        posterior = pm.fit(prefs, "personal", held_out=hidden.take(others), rng=seed, **options)
        probabilities[mine] = probabilities_of(posterior, prefs.take(mine), split.k)
    return probabilities


def best_items(scores, split):
    """The k unseen items of the highest scores."""
    unseen = split.train.toarray() == 0
    return np.argsort(np.where(unseen, -scores, np.inf), axis=1, kind="stable")[:, : split.k]


def calibrated_best(scores, split, halves):
    """The same for the k best items alone."""
    items, hits = best_items(scores, split), hits_of(scores, split)
    features = np.take_along_axis(rival_features(scores, split), items[..., None], axis=1)
    probabilities = np.zeros(hits.shape)
    for mine, others in (halves, halves[::-1]):
        learnt = learn_probabilities(features[others].reshape(-1, 4), hits[others].ravel())
        probabilities[mine] = learnt(features[mine].reshape(-1, 4)).reshape(len(mine), -1)
    return probabilities


class Row(NamedTuple):
    """One line of the table: what it says, and the hits, to compare with ours."""

    name: str
    hits: np.ndarray
    cells: list


def row_of(name, scores, probabilities, stated, split):
    """The order is that of the scores; `stated` is of the best items."""
    items, unseen = best_items(scores, split), split.train.toarray() == 0
    hits = hits_of(scores, split)
    p, truth = np.clip(probabilities[unseen], 1e-6, 1 - 1e-6), split.hidden[unseen]
    ranks, n_true = rankdata(p), truth.sum()
    area = (ranks[truth].sum() - n_true * (n_true + 1) / 2) / n_true / (len(p) - n_true)
    losses = -np.where(truth, np.log(p), np.log(1 - p))
    cells = [
        f"{calibrate(stated.ravel(), hits.ravel()).error:.4f}",
        f"{1000 * ((stated - hits) ** 2).mean():.1f}",
        f"{1000 * ((p - truth) ** 2).mean():.2f}",
        f"{losses.mean():.4f}",
        f"{area:.4f}",
        f"{len(np.unique(items)) / split.train.shape[1]:.0%}",
    ]
    return Row(name, hits, cells)


def rival_row(name, scores, split, halves):
    """A line of scores that become probabilities by what is observed."""
    probabilities = calibrated(scores, split, halves)
    return row_of(name, scores, probabilities, calibrated_best(scores, split, halves), split)


def our_row(name, probabilities, split):
    """A line of probabilities that are taken as stated."""
    stated = np.take_along_axis(probabilities, best_items(probabilities, split), axis=1)
    return row_of(name, probabilities, probabilities, stated, split)


def behind(row, our):
    """Difference in accuracy to ours, in points, and its standard error, paired by users."""
    gap = 100 * (row.hits - our.hits).mean(axis=1)
    return f"{gap.mean():+.2f} ± {gap.std(ddof=1) / np.sqrt(len(gap)):.2f}" if gap.any() else ""


def compare(name, split, seed):
    """The table of one data set."""
    halves = np.array_split(np.random.default_rng(seed).permutation(split.train.shape[0]), 2)
    rows = []
    for rival, (score, grid) in RIVALS.items():
        started = time.process_time()
        settings = tuned(score, grid or [BPR[name]], split, seed)
        scores = np.asarray(score(split.train, seed, **settings), dtype=np.float64)
        rows.append(rival_row(rival, scores, split, halves))
        print(rival, settings, f"{time.process_time() - started:.0f} s of CPU", flush=True)
    prefs = pm.Preferences.from_clicks(split.train)
    clusters = pm.fit(prefs, "pseudo", n_clusters=10, rng=seed)
    found = probabilities_of(clusters, prefs, split.k)
    rows.append(our_row("our clusters (10), as stated", found, split))
    rows.append(rival_row("our clusters, calibrated", found, split, halves))
    plain = probabilities_of(pm.fit(prefs, "personal", rng=seed), prefs, split.k)
    rows.append(our_row("ours, personal, by an inner split", plain, split))
    for title, options in (
        ("ours, one regression", {"blend": False}),
        ("ours, personal", {}),
    ):
        rows.append(our_row(title, ours(split, halves, seed, **options), split))
    print(f"{name}: {split.train.shape[0]} users, {split.train.shape[1]} items, k = {split.k}")
    header = ["method", "accuracy", "behind ours", "ECE, k", "Brier, k", "Brier", "log", "AUC"]
    table = [
        [row.name, f"{row.hits.mean():.2%}", behind(row, rows[-1]), *row.cells] for row in rows
    ]
    print_table([*header, "items"], table)


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
