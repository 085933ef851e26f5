"""Tables 1 and 2, figures 10 and 11 of the paper (section 4.3): the case study, on public clicks.

The paper, on clicks of NRK (7,872 users, 200 items, 13 or more clicks, 10 hidden, 17 clusters):
similarity against alpha is one-to-one, nearly a line; in equal time the Pseudo-Mallows finds 22.6 %
of the hidden clicks and the Markov chain 13.9 %, and only the Pseudo-Mallows is calibrated. These
clicks are not public. Here: retail, the purchases that come with the package (200 products,
customers with 13 or more of them, 10 hidden, k = 10), and, with `--msweb FOLDER`, UCI Anonymous
Microsoft Web Data from train.csv and test.csv (user,item) in the folder (3 hidden, k = 3).

Clusters are those of `pm.fit`. In each, with alpha by similarity, as in the paper: the Metropolis
chain (random start, 13,000 steps, the first half thrown away), the Pseudo-Mallows (200 draws, sigma
0 and sigma n / 5: the paper does not say), and the exact chain as `pm.fit` runs it by default. Then
ours: clusters with shared users, a personal consensus that learns from clicks hidden at random, as
these are, and the same corrected by what is observed of the hidden clicks of the other half of the
users. For scale: popularity, EASE, and, if `implicit` is installed, item-kNN and ALS, with the
settings that tuning on inner splits finds (`benchmarks/recommenders.py`).
"""

import argparse
import csv
import importlib.util
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.sparse import csr_matrix

import paper
import pseudomallows as pm
from accuracy_clicks import best_items, count_latent
from metropolis import MetropolisChain
from pseudomallows.data.splits import hide_clicks
from pseudomallows.evaluation.baselines import most_clicked
from pseudomallows.evaluation.figures import calibrate
from pseudomallows.paper.similarity import expected_click_similarity, mean_click_similarity

RETAIL = {"n_items": 200, "min_purchases": 13, "n_users": None, "hide": 10}
SETTINGS = paper.Settings(
    reduced=RETAIL | {"n_clusters": 10, "steps": 13_000, "draws": 200, "points": 12},
    full=RETAIL | {"n_clusters": 17, "steps": 13_000, "draws": 200, "points": 40},
    smallest={
        "n_items": 25,
        "min_purchases": 6,
        "n_users": 300,
        "hide": 3,
        "n_clusters": 2,
        "steps": 400,
        "draws": 20,
        "points": 4,
    },
)
TUNED = {
    "retail": {
        "ridge": 300,
        "knn": {"K": 10, "B": 1.0},
        "als": {"factors": 64, "regularization": 20.0, "alpha": 2.0, "iterations": 30},
    },
    "msweb": {
        "ridge": 100,
        "knn": {"K": 20, "B": 0.25},
        "als": {"factors": 64, "regularization": 200.0, "alpha": 40.0, "iterations": 30},
    },
}
CHAIN, PSEUDO, EXACT = "Metropolis chain", "Pseudo-Mallows", "exact chain"
NOISY = "Pseudo, sigma n/5"
SOFT, PERSONAL = "soft clusters", "personal consensus"
CORRECTED = "personal, corrected"
COLOURS = {
    CHAIN: "red",
    PSEUDO: "blue",
    NOISY: "green",
    EXACT: "orange",
    SOFT: "sky",
    PERSONAL: "pink",
    CORRECTED: "black",
}
HAS_IMPLICIT = importlib.util.find_spec("implicit") is not None
SIMULATED_USERS, HIGHEST_ALPHA = 500, 20.0  # or what the cluster needs
THREAD = pm.Threads(1)


@dataclass(frozen=True)
class Split:
    """Clicks to learn from, and `hidden[user, item]`, to be found by k recommendations."""

    name: str
    shown: pm.Clicks
    hidden: paper.Array
    k: int

    @property
    def train(self) -> csr_matrix:
        """The clicks as a sparse matrix."""
        shape = self.shown.n_users, self.shown.n_items
        ones = np.ones(len(self.shown.codes), dtype=np.float32)
        return csr_matrix((ones, self.shown.codes, self.shown.starts), shape=shape)


def split_retail(setting: dict, rng: np.random.Generator) -> Split:
    """Hide purchases of each customer."""
    prefs = pm.datasets.online_retail(setting["n_items"], setting["min_purchases"])
    if setting["n_users"] is not None:
        prefs = prefs.take(np.arange(min(setting["n_users"], prefs.n_users)))
    return Split("retail", *hide_clicks(prefs, setting["hide"], rng), setting["hide"])


def split_msweb(folder: Path) -> Split:
    """The split of the files."""
    pairs = {part: read_pairs(folder / f"{part}.csv") for part in ("train", "test")}
    both = np.concatenate(list(pairs.values()))
    users, items = np.unique(both[:, 0]), np.unique(both[:, 1])
    tables = {}
    for part, rows in pairs.items():
        table = np.zeros((len(users), len(items)), dtype=bool)
        table[np.searchsorted(users, rows[:, 0]), np.searchsorted(items, rows[:, 1])] = True
        tables[part] = table
    return Split("msweb", pm.Preferences.from_clicks(tables["train"]), tables["test"], 3)


def read_pairs(path: Path) -> paper.Array:
    """Pairs of user and item, whole numbers, below a header."""
    with path.open(newline="", encoding="utf-8") as file:
        return np.array([[row["user"], row["item"]] for row in csv.DictReader(file)], dtype=int)


@dataclass(frozen=True)
class Found:
    """What a method recommends: items, and their probabilities if it states any."""

    items: paper.Array
    probabilities: paper.Array | None = None
    longest: float | None = None  # seconds of the cluster that took longest


Way = Callable[[pm.Clicks, float, int, np.random.Generator], tuple[paper.Array, paper.Array]]


def in_clusters(split: Split, labels: paper.Array, rng: np.random.Generator, way: Way) -> Found:
    """Each cluster on its own, with its own alpha, as in the paper."""
    shape = (split.shown.n_users, split.k)
    items, probabilities, longest = np.zeros(shape, dtype=np.int64), np.zeros(shape), 0.0
    for label in range(labels.max() + 1):
        rows = np.flatnonzero(labels == label)
        if not len(rows):
            continue
        begin = time.process_time()
        prefs = split.shown.take(rows)
        items[rows], probabilities[rows] = way(prefs, alpha_of(prefs), split.k, rng)
        longest = max(longest, time.process_time() - begin)
    return Found(items, probabilities, longest)


def alpha_of(prefs: pm.Clicks) -> float:
    """By similarity; the users of a tiny cluster may agree in everything, or in nothing."""
    try:
        return float(np.clip(pm.estimate_alpha(prefs), 0.1, 100.0))
    except ValueError:
        return 100.0


def by_metropolis(
    n_steps: int, prefs: pm.Clicks, alpha: float, k: int, rng: np.random.Generator
) -> tuple[paper.Array, paper.Array]:
    """The paper's Markov chain."""
    chain = MetropolisChain(prefs, alpha, rng)
    chain.run(n_steps // 2)
    _, probabilities = count_latent(chain, prefs, k, n_steps - n_steps // 2)
    items = best_items(probabilities, k, rng)
    return items, np.take_along_axis(probabilities, items, axis=1)


def by_fit(
    options: dict, prefs: pm.Clicks, alpha: float, k: int, rng: np.random.Generator
) -> tuple[paper.Array, paper.Array]:
    """A fit of one cluster."""
    found = pm.recommend(pm.fit(prefs, alpha=alpha, rng=rng, executor=THREAD, **options), k)
    return found.items, found.probabilities


def by_posterior(posterior: pm.Posterior, k: int) -> Found:
    """Recommendations of a fit of all users."""
    found = pm.recommend(posterior, k)
    return Found(found.items, found.probabilities)


def by_halves(split: Split, rng: np.random.Generator) -> Found:
    """A personal consensus, its probabilities corrected by hidden clicks of the other half."""
    shown, shape = split.shown, (split.shown.n_users, split.k)
    hidden = pm.Preferences.from_clicks(split.hidden, users=shown.users, items=shown.items)
    items, probabilities = np.zeros(shape, dtype=np.int64), np.zeros(shape)
    groups = np.array_split(rng.permutation(shown.n_users), 2)
    for own, others in (groups, groups[::-1]):
        posterior = pm.fit(shown, "personal", held_out=hidden.take(others), rng=rng)
        found = pm.recommend(posterior, split.k, users=shown.users[own].tolist())
        items[own], probabilities[own] = found.items, found.probabilities
    return Found(items, probabilities)


def by_scores(split: Split, scores: paper.Array, rng: np.random.Generator) -> Found:
    """The unseen items of the highest scores."""
    scores = np.where(split.train.toarray() > 0, -np.inf, scores)
    return Found(best_items(scores, split.k, rng))


def ease(train: csr_matrix, ridge: float) -> paper.Array:
    """Linear model of each item by the others, in closed form (Steck 2019)."""
    gram = (train.T @ train).toarray().astype(np.float64)
    inverse = np.linalg.inv(gram + ridge * np.eye(len(gram)))
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0)
    return train @ weights


def item_knn(train: csr_matrix, **settings: float) -> paper.Array:
    """Item-kNN of `implicit`."""
    from implicit.nearest_neighbours import BM25Recommender

    model = BM25Recommender(num_threads=1, **settings)
    model.fit(train, show_progress=False)
    return (train @ model.similarity).toarray()


def als(train: csr_matrix, seed: int, **settings: float) -> paper.Array:
    """Factorisation of `implicit`."""
    from implicit.cpu.als import AlternatingLeastSquares
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, "blas"):
        model = AlternatingLeastSquares(random_state=seed, num_threads=1, **settings)
        model.fit(train, show_progress=False)
    return np.asarray(model.user_factors) @ np.asarray(model.item_factors).T


class Study:
    """One data set."""

    def __init__(self, split: Split, setting: dict, rng: np.random.Generator):
        self.split, self.setting, self.rng = split, setting, rng
        begin = time.process_time()
        how = {"n_clusters": setting["n_clusters"], "rng": rng}
        self.clusters = pm.fit(split.shown, "pseudo", **how)
        self.seconds = time.process_time() - begin

    def rows(self) -> Iterator[paper.Row]:
        """All parts of the study."""
        shared = {"data": self.split.name, "k": self.split.k}
        for part in (self.about(), self.describe_clusters(), self.tune(), self.compare()):
            yield from (shared | row for row in part)

    def about(self) -> Iterator[paper.Row]:
        """The paper's table of the data."""
        shown = self.split.shown
        size = {"n_users": shown.n_users, "n_items": shown.n_items, "n_clicks": len(shown.codes)}
        yield {"part": "data"} | size

    def describe_clusters(self) -> Iterator[paper.Row]:
        """Size, clicks, similarity and alpha of each cluster."""
        for label in range(self.clusters.n_clusters):
            rows = np.flatnonzero(self.clusters.labels == label)
            if len(rows) > 1:
                prefs = self.split.shown.take(rows)
                row = {"part": "cluster", "cluster": label, "n_users": len(rows)}
                row |= {"n_clicks": len(prefs.codes), "alpha": alpha_of(prefs)}
                yield row | {"similarity": mean_click_similarity(prefs)}

    def tune(self) -> Iterator[paper.Row]:
        """Alpha against similarity for the largest cluster: simulated as in the paper, and exact.

        The paper draws the numbers of clicks from an exponential law, cut below; its mean here is
        that of the cluster. A second exact curve has the numbers of clicks of the cluster itself.
        """
        rows = np.flatnonzero(self.clusters.labels == np.bincount(self.clusters.labels).argmax())
        own = self.split.shown.take(rows)
        n_clicks, highest = own.n_clicks, max(HIGHEST_ALPHA, 1.1 * alpha_of(own))
        least, n_items = max(1, int(n_clicks.min())), self.split.shown.n_items
        alphas, sizes = np.linspace(0, highest, self.setting["points"]), []
        for alpha in alphas:
            prefs = pm.simulate_clicks(
                SIMULATED_USERS,
                n_items,
                alpha,
                n_clicks.mean(),
                distribution="exponential",
                min_clicks=least,
                rng=self.rng,
            ).preferences
            sizes.append(prefs.n_clicks)
            row = {"part": "simulated", "alpha": alpha}
            yield row | {"similarity": mean_click_similarity(prefs)}
        for part, counts in (("exact", np.concatenate(sizes)), ("exact, own clicks", n_clicks)):
            for alpha in np.linspace(0, highest, 41):
                value = expected_click_similarity(n_items, alpha, counts)
                yield {"part": part, "alpha": alpha, "similarity": value}

    def compare(self) -> Iterator[paper.Row]:
        """Accuracy and calibration of each method, a row each and a row for each bin."""
        for ((name, way),) in paper.each(self.ways().items()):
            begin = time.process_time()
            found = way()
            seconds = time.process_time() - begin + (self.seconds if name == SOFT else 0.0)
            yield from self.score(name, found, seconds)

    def ways(self) -> dict[str, Callable[[], Found]]:
        """All methods."""
        split, rng, setting = self.split, self.rng, self.setting
        k, train, tuned = split.k, split.train, TUNED[split.name]
        pseudo = {"method": "pseudo", "n_draws": setting["draws"]}
        hard = partial(in_clusters, split, self.clusters.labels, rng)
        counts = split.shown.item_counts()
        ways: dict[str, Callable[[], Found]] = {
            "popularity": lambda: Found(most_clicked(split.shown, counts, k, rng)),
            CHAIN: lambda: hard(partial(by_metropolis, setting["steps"])),
            PSEUDO: lambda: hard(partial(by_fit, pseudo)),
            NOISY: lambda: hard(partial(by_fit, pseudo | {"sigma": split.shown.n_items / 5})),
            EXACT: lambda: hard(partial(by_fit, {"method": "mcmc"})),
            SOFT: lambda: by_posterior(self.clusters, k),
            # purchases have times, but those that are hidden are not the last ones
            PERSONAL: lambda: by_posterior(
                pm.fit(split.shown, "personal", calibrate="random", rng=rng), k
            ),
            CORRECTED: lambda: by_halves(split, rng),
            "EASE": lambda: by_scores(split, ease(train, tuned["ridge"]), rng),
        }
        if not HAS_IMPLICIT:
            return ways
        seed = int(rng.integers(2**31))
        knn = lambda: by_scores(split, item_knn(train, **tuned["knn"]), rng)  # noqa: E731
        factors = lambda: by_scores(split, als(train, seed, **tuned["als"]), rng)  # noqa: E731
        return ways | {"item-kNN": knn, "ALS": factors}

    def score(self, name: str, found: Found, seconds: float) -> Iterator[paper.Row]:
        """Hits, over users, and stated against observed."""
        hidden = self.split.hidden
        hits = np.take_along_axis(hidden, np.maximum(found.items, 0), axis=1)
        hits &= found.items >= 0
        has_hidden = hidden.any(axis=1)
        rates = hits[has_hidden].mean(axis=1)
        row = {"part": "accuracy", "method": name, "accuracy": rates.mean()}
        row |= {"error": rates.std(ddof=1) / np.sqrt(len(rates)), "seconds": seconds}
        row |= {"longest": found.longest}
        if found.probabilities is None:
            yield row
            return
        is_shown = has_hidden[:, None] & (found.items >= 0)
        table = calibrate(found.probabilities[is_shown], hits[is_shown].astype(float))
        yield row | {"calibration_error": table.error}
        for stated, observed, count in zip(table.stated, table.observed, table.counts, strict=True):
            row = {"stated": stated, "observed": observed, "count": int(count)}
            yield {"part": "calibration", "method": name} | row


def run(setting: dict, seed: int, msweb: Path | None = None) -> list[paper.Row]:
    """A row for each part and method; see `Study`."""
    rng = np.random.default_rng(seed)
    splits = [split_retail(setting, rng)] + ([] if msweb is None else [split_msweb(msweb)])
    if not HAS_IMPLICIT:
        print("implicit is not installed, so item-kNN and ALS are left out")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.ConvergenceWarning)  # short chains, on purpose
        warnings.filterwarnings("ignore", module="implicit")  # it converts its own matrices
        own, small = np.random.default_rng(seed), SETTINGS.smallest
        for _ in Study(split_retail(small, own), small, own).compare():
            pass  # compiles
        return [row for split in splits for row in Study(split, setting, rng).rows()]


def summarise(rows: list[paper.Row]) -> str:
    """The tables."""
    lines = []
    for name in paper.unique(rows, "data"):
        own = paper.select(rows, data=name)
        about = paper.select(own, part="data")[0]
        cells = about["n_users"] * about["n_items"]
        lines.append(
            f"{name}: N = {about['n_users']}, n = {about['n_items']}, {about['n_clicks']} clicks, "
            f"{about['n_clicks'] / about['n_users']:.1f} a user, density "
            f"{about['n_clicks'] / cells:.1%}"
        )
        clusters = paper.select(own, part="cluster")
        lines.append("  clusters: " + ", ".join(str(row["n_users"]) for row in clusters))
        lines.append("  alphas: " + ", ".join(f"{row['alpha']:.1f}" for row in clusters))
        for row in sorted(paper.select(own, part="accuracy"), key=lambda row: row["accuracy"]):
            gap = row["calibration_error"]
            lines.append(
                f"  {row['method']:20} {row['accuracy']:6.1%} ± {row['error']:.1%}, "
                f"{row['seconds']:6.1f} s"
                + (f", calibration error {gap:.3f}" if gap is not None else "")
                + (f", longest cluster {row['longest']:.1f} s" if row["longest"] else "")
            )
    return "\n".join(lines)


def draw(rows: list[paper.Row]) -> Figure:
    """For each data set: alpha and accuracy above, calibration of our methods below."""
    names = paper.unique(rows, "data")
    stated = [m for m in COLOURS if any(paper.select(rows, part="calibration", method=m))]
    title = "A consensus of one's own beats clusters; corrected, its probabilities hold"
    figure, axes = paper.panels(rows, title, 1, 1, 11.5, 0.8 + 4.9 * len(names))
    axes[0, 0].remove()
    stripes = figure.subfigures(2 * len(names), 1, height_ratios=[3, 2.1] * len(names))
    for name, above, below in zip(names, stripes[::2], stripes[1::2], strict=True):
        own = paper.select(rows, data=name)
        left, right = above.subplots(1, 2, width_ratios=[2, 3])
        draw_tuning(left, own, name)
        draw_accuracy(right, own, name)
        found = below.subplots(1, len(stated), squeeze=False, sharey=True)[0]
        for panel, method in zip(found, stated, strict=True):
            draw_calibration(panel, paper.select(own, part="calibration", method=method), method)
        found[0].set_ylabel("observed share")
    return figure


def draw_tuning(panel: paper.Axes, rows: list[paper.Row], name: str) -> None:
    """Alpha against similarity, as in the paper's figure."""
    lines = {
        "exact": ("exact curve", "-"),
        "exact, own clicks": ("with the cluster's clicks", "--"),
    }
    for part, (label, style) in lines.items():
        own = paper.select(rows, part=part)
        x, y = paper.column(own, "similarity"), paper.column(own, "alpha")
        panel.plot(x, y, color=paper.COLOURS["blue"], linestyle=style, label=label)
    own = paper.select(rows, part="simulated")
    x, y = paper.column(own, "similarity"), paper.column(own, "alpha")
    panel.plot(x, y, "o", color=paper.COLOURS["orange"], label="simulated, 500 users")
    first = max(paper.select(rows, part="cluster"), key=lambda row: row["n_users"])
    panel.vlines(first["similarity"], 0, first["alpha"], "black", ":", linewidth=1)
    panel.plot(first["similarity"], first["alpha"], "k*", markersize=11, label="largest cluster")
    panel.set(xlabel="mean cosine similarity of two users", ylabel="alpha")
    panel.set_title(f"{name}: choosing alpha")
    if name == "retail":
        panel.legend(loc="upper left")


def draw_accuracy(panel: paper.Axes, rows: list[paper.Row], name: str) -> None:
    """A bar for each method, with two standard errors over users."""
    own = sorted(paper.select(rows, part="accuracy"), key=lambda row: row["accuracy"])
    colours = [
        paper.COLOURS[COLOURS[r["method"]]] if r["method"] in COLOURS else "0.7" for r in own
    ]
    values, errors = 100 * paper.column(own, "accuracy"), 200 * paper.column(own, "error")
    panel.barh([row["method"] for row in own], values, xerr=errors, color=colours, capsize=2)
    for place, (row, value, error) in enumerate(zip(own, values, errors, strict=True)):
        words = f"  {value:.1f} %, {row['seconds']:.0f} s"
        panel.text(value + error, place, words, va="center", fontsize=8.5)
    panel.set(xlabel="hidden clicks found (%)", xlim=(0, 1.25 * values.max()))
    panel.set_title(f"{name}: accuracy of k = {rows[0]['k']} recommendations, and seconds")


def draw_calibration(panel: paper.Axes, rows: list[paper.Row], method: str) -> None:
    """Stated against observed; the area of a point is its number of recommendations."""
    stated, observed = paper.column(rows, "stated"), paper.column(rows, "observed")
    counts, colour = paper.column(rows, "count"), paper.COLOURS[COLOURS[method]]
    error = 2 * np.sqrt(observed * (1 - observed) / counts)
    panel.plot([0, 1], [0, 1], color="0.6", linestyle=":", linewidth=1)
    panel.errorbar(stated, observed, error, fmt="none", color=colour, alpha=0.7)
    panel.scatter(stated, observed, 12 + 120 * counts / counts.max(), color=colour, alpha=0.8)
    panel.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="stated")
    panel.set_title("\n".join(method.split(" ", 1)), fontsize=9.5)


def main(arguments: list[str] | None = None) -> None:
    """Run and draw."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument(
        "--msweb", type=Path, metavar="FOLDER", help="with train.csv and test.csv (user,item)"
    )
    own, _ = parser.parse_known_args(arguments)
    run_all = partial(run, msweb=own.msweb)
    paper.main(__doc__, __file__, SETTINGS, run_all, draw, summarise, arguments, [parser])


if __name__ == "__main__":
    main()
