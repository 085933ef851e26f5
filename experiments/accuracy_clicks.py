"""Figure 9 of the paper: accuracy of recommendations against computing time, from clicks.

The paper: the Pseudo-Mallows makes good recommendations much sooner than the Markov chain, which
after its burn-in is the more accurate. Data: N = 500 users with latent Mallows rankings of n = 50
items around a random consensus, so that labels tell nothing; a user clicks the first c of them, c
from a Poisson law of mean 5 cut to 1 .. n - 3. Alpha is known. A recommendation is right if its
true rank is one of the k = 3 after the clicks.

- Pseudo-Mallows: Algorithm 5, a warm-up of 10 sweeps, probabilities by counting latent rankings;
- foresight: independent weighted draws of `PseudoMallows(..., balanced=True)`, from the costs of
  the additive law (method "matched"): no chain at all;
- exact chain: one chain of `pm.fit(..., "mcmc")`, with as many draws after as many thrown away, and
  last the default: 4 chains of 100 draws, further apart until they are good;
- Metropolis chain: the paper's opponent, from a random start: at each step one leap-and-shift of
  the consensus and one swap in each user's latent ranking; it throws away the first half;
  probabilities by counting its latent rankings;
- popularity, and an oracle that knows the true consensus and alpha: both without a time.
Foresight, the exact chain and the oracle have their probabilities from exact sums. Seconds are of
the CPU and hold all from the clicks to the recommendations, compiled code warm, one thread. A
minute in the reduced setting, with 3 data sets for 20; six minutes in full.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import paper
import pseudomallows as pm
from accuracy_rankings import THREAD
from metropolis import MetropolisChain
from pseudomallows.data.datasets import Simulation
from pseudomallows.evaluation.baselines import most_clicked
from pseudomallows.evaluation.figures import calibrate
from pseudomallows.laws.registry import make_law
from pseudomallows.paper.clicks import count_next

SIZE = {"n_users": 500, "n_items": 50, "mean_clicks": 5, "alphas": [1.0, 3.0, 5.0, 10.0]}
STEPS = [100, 800, 6400, 25_600]  # of the Metropolis chain
SETTINGS = paper.Settings(
    reduced=SIZE | {"n_datasets": 3, "draws": [1, 5, 20, 50], "steps": STEPS},
    full=SIZE | {"n_datasets": 20, "draws": [1, 5, 20, 50, 200], "steps": STEPS},
    smallest={
        "n_users": 400,
        "n_items": 12,
        "mean_clicks": 3,
        "alphas": [6.0],
        "n_datasets": 2,
        "draws": [5, 20],
        "steps": [40, 2000],
    },
)
K, WARMUP, KEEP = 3, 10, 5  # of the Metropolis chain, every fifth step is counted
DEFAULT = 400  # draws of the exact chain by default: 4 chains of 100
N_RANKINGS = 200  # of a user at least that are counted: as many as the paper has samples
COLOURS = {
    "Pseudo-Mallows": "blue",
    "foresight": "green",
    "exact chain": "orange",
    "Metropolis chain": "red",
}
BASELINES = {"popularity": (0, (1, 1.5)), "oracle": (0, (6, 2))}


class Found(NamedTuple):
    """What a method says: draws of the consensus, items for each user, and their probabilities."""

    posterior: pm.Posterior
    items: paper.Array
    probabilities: paper.Array


class Trial:
    """One data set."""

    def __init__(self, data: Simulation, alpha: float, rng: np.random.Generator):
        self.data, self.alpha, self.rng = data, alpha, rng
        self.prefs = data.preferences
        self.mould = self.fit("mcmc", 1, warmup=0)

    def fit(self, method: str, n_draws: int | None, **options: Any) -> pm.Posterior:
        """One chain with so many draws; by default whatever `pm.fit` does."""
        if n_draws is not None:
            options |= {"n_draws": n_draws, "n_chains": 1, "thin": 1}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pm.ConvergenceWarning)  # they are short on purpose
            return pm.fit(self.prefs, method, self.alpha, rng=self.rng, executor=THREAD, **options)

    def posterior(self, draws: paper.Array, weights: paper.Array | None = None) -> pm.Posterior:
        """A posterior with these draws of the consensus."""
        shape = (1, len(draws))
        return replace(
            self.mould,
            consensus=draws[None, :, None].astype(np.int32),
            alpha=np.full((*shape, 1), self.alpha),
            weights=np.full(shape, 1 / len(draws)) if weights is None else weights[None],
            shares=np.ones((*shape, 1)),
            log_posterior=np.full(shape, np.nan),
        )

    def recommend(self, posterior: pm.Posterior) -> Found:
        """Items and probabilities for all users, by exact sums."""
        found = pm.recommend(posterior, K, executor=THREAD)
        return Found(posterior, found.items, found.probabilities)

    def by_pseudo(self, n_draws: int) -> Found:
        """Algorithm 5, and recommendations by counting."""
        posterior = self.fit("pseudo", n_draws, warmup=WARMUP)
        draws = posterior.consensus[0, :, 0]
        repeated = np.repeat(draws, -(-N_RANKINGS // n_draws), axis=0)
        probabilities = count_next(self.prefs, repeated, self.alpha, K, rng=self.rng)
        return self.best(posterior, probabilities)

    def by_foresight(self, n_draws: int) -> Found:
        """Weighted draws from the costs that the additive law has at this alpha."""
        (tally,) = make_law(self.prefs, THREAD).tallies(None, 1)
        n_items = self.prefs.n_items
        costs = tally.costs(self.alpha) * n_items / self.alpha  # they are minus log weights
        table: Any = SimpleNamespace(costs=costs, n_items=n_items)
        law = pm.PseudoMallows.from_tally(table, self.alpha, balanced=True)
        draws = law.draw_weighted(n_draws, self.rng)
        return self.recommend(self.posterior(draws.rankings, draws.weights))

    def by_exact(self, n_draws: int | None) -> Found:
        """The chain of method "mcmc"."""
        return self.recommend(self.fit("mcmc", n_draws, warmup=n_draws))

    def best(self, posterior: pm.Posterior, probabilities: paper.Array) -> Found:
        """The most probable items that a user has not clicked."""
        users = np.repeat(np.arange(self.prefs.n_users), self.prefs.n_clicks)
        probabilities[users, self.prefs.codes] = -1
        items = best_items(probabilities, K, self.rng)
        return Found(posterior, items, np.take_along_axis(probabilities, items, axis=1))

    def by_metropolis(self, steps: list[int]) -> Iterator[tuple[int, float, Found]]:
        """Steps, seconds and what is found by one long run of the opponent, at each number."""
        begin, done = time.process_time(), 0
        chain = MetropolisChain(self.prefs, self.alpha, self.rng)
        seconds = time.process_time() - begin
        for n_steps in steps:
            begin = time.process_time()
            chain.run(n_steps // 2 - done)
            draws, probabilities = count_latent(chain, self.prefs, K, n_steps - n_steps // 2)
            found = self.best(self.posterior(draws), probabilities)
            seconds, done = seconds + time.process_time() - begin, n_steps
            yield n_steps, seconds, found

    def score(self, items: paper.Array, probabilities: paper.Array | None) -> paper.Row:
        """Share of right recommendations, and the calibration error, if there are any."""
        ranks = np.take_along_axis(self.data.rankings, items, axis=1)
        n_clicks = self.prefs.n_clicks[:, None]
        hits = ((ranks > n_clicks) & (ranks <= n_clicks + K)).astype(float)
        row = {"accuracy": float(hits.mean())}
        if probabilities is not None:
            row["calibration_error"] = calibrate(probabilities.ravel(), hits.ravel()).error
        return row

    def measure(self, setting: dict) -> Iterator[paper.Row]:
        """A row for each method and budget."""
        popular = most_clicked(self.prefs, self.prefs.item_counts(), K, self.rng)
        yield {"method": "popularity"} | self.score(popular, None)
        oracle = self.recommend(self.posterior(self.data.consensus[None]))
        yield {"method": "oracle"} | self.score(oracle.items, oracle.probabilities)
        ways: dict[str, Callable[[int], Found]] = {
            "Pseudo-Mallows": self.by_pseudo,
            "foresight": self.by_foresight,
            "exact chain": self.by_exact,
        }
        cases = [(name, way, n) for n in setting["draws"] for name, way in ways.items()]
        for name, way, n_draws in [*cases, ("exact chain", self.by_exact, None)]:
            begin = time.process_time()
            found = way(n_draws)
            size = DEFAULT if n_draws is None else n_draws
            yield self.row(name, size, time.process_time() - begin, found)
        for n_steps, seconds, found in self.by_metropolis(setting["steps"]):
            yield self.row("Metropolis chain", n_steps, seconds, found)

    def row(self, name: str, size: int, seconds: float, found: Found) -> paper.Row:
        """One row."""
        distance = int(pm.footrule(found.posterior.point_consensus(), self.data.consensus))
        shared = {"method": name, "draws": size, "seconds": seconds, "distance": distance}
        return shared | self.score(found.items, found.probabilities)


def count_latent(
    chain: MetropolisChain, prefs: pm.Clicks, k: int, n_steps: int
) -> tuple[paper.Array, paper.Array]:
    """Go on, and count how often an item is among the k after the clicks of a user.

    Returns draws of the consensus, and `probabilities[user, item]`, -1 for what was clicked.
    """
    n_clicks, draws = prefs.n_clicks[:, None], []
    probabilities = np.zeros((prefs.n_users, prefs.n_items))
    for _ in range(n_steps // KEEP):
        chain.run(KEEP)
        probabilities += (chain.latent > n_clicks) & (chain.latent <= n_clicks + k)
        draws.append(chain.consensus.copy())
    probabilities /= len(draws)
    probabilities[np.repeat(np.arange(prefs.n_users), prefs.n_clicks), prefs.codes] = -1
    return np.array(draws), probabilities


def best_items(probabilities: paper.Array, k: int, rng: np.random.Generator) -> paper.Array:
    """The k items of the highest probabilities of each user; ties at random."""
    return np.lexsort((rng.random(probabilities.shape), -probabilities), axis=1)[:, :k]


def run(setting: dict, seed: int) -> list[paper.Row]:
    """A row for each alpha, data set, method and budget."""
    rng, rows = np.random.default_rng(seed), []
    for _ in Trial(simulate(20, 6, 2, 3.0, rng), 3.0, rng).measure({"draws": [1], "steps": [20]}):
        pass  # compiles
    size = setting["n_users"], setting["n_items"], setting["mean_clicks"]
    shared = dict(zip(("n_users", "n_items", "mean_clicks"), size, strict=True))
    for alpha, dataset in paper.each(setting["alphas"], range(setting["n_datasets"])):
        trial = Trial(simulate(*size, alpha, rng), alpha, rng)
        case = shared | {"alpha": alpha, "dataset": dataset}
        rows += [case | row for row in trial.measure(setting)]
    return rows


def simulate(
    n_users: int, n_items: int, mean_clicks: float, alpha: float, rng: np.random.Generator
) -> Simulation:
    """The paper's clicks."""
    return pm.simulate_clicks(n_users, n_items, alpha, mean_clicks, rng=rng)


def means(rows: list[paper.Row], what: str) -> tuple[paper.Array, paper.Array, paper.Array]:
    """Seconds, mean and standard error over data sets at each budget of one method."""
    groups = [paper.select(rows, draws=size) for size in paper.unique(rows, "draws")]
    times = np.array([np.median(paper.column(group, "seconds")) for group in groups])
    values = [paper.column(group, what) for group in groups]
    errors = [x.std(ddof=1) / np.sqrt(len(x)) if len(x) > 1 else 0.0 for x in values]
    return times, np.array([x.mean() for x in values]), np.array(errors)


def summarise(rows: list[paper.Row]) -> str:
    """For each alpha and method: accuracy, calibration error and consensus by budget."""
    lines = []
    for alpha in paper.unique(rows, "alpha"):
        own = paper.select(rows, alpha=alpha)
        bases = [
            f"{name} {paper.column(paper.select(own, method=name), 'accuracy').mean():.1%}"
            for name in BASELINES
        ]
        lines.append(f"alpha {alpha:g}: {', '.join(bases)}")
        for name in COLOURS:
            of_method = paper.select(own, method=name)
            times, hits, _ = means(of_method, "accuracy")
            _, gaps, _ = means(of_method, "calibration_error")
            _, distances, _ = means(of_method, "distance")
            cells = zip(times, hits, gaps, distances, strict=True)
            parts = [f"{t:.2f} s {a:.1%} ece {e:.3f} d {d:.0f}" for t, a, e, d in cells]
            lines.append(f"  {name:17} {' | '.join(parts)}")
    return "\n".join(lines)


def draw(rows: list[paper.Row]) -> Figure:
    """Accuracy above, calibration error below; a column for each alpha."""
    alphas = paper.unique(rows, "alpha")
    title = "Click counts are as accurate as any method; what differs is whether probabilities hold"
    width = 11 if len(alphas) > 1 else 6
    figure, axes = paper.panels(rows, title, 2, len(alphas), width, 6.2, sharex=True, sharey="row")
    for column, alpha in enumerate(alphas):
        own = paper.select(rows, alpha=alpha)
        best = paper.column(paper.select(own, method="oracle"), "accuracy").mean()
        draw_panel(axes[0, column], own, "accuracy", best)
        draw_panel(axes[1, column], own, "calibration_error", 1.0)
        axes[0, column].set_title(f"alpha = {alpha:g}\noracle: {best:.1%} right")
        axes[1, column].set(xlabel="computing time (seconds)", yscale="log")
    axes[0, 0].set(ylabel="right recommendations,\nas a share of the oracle's", ylim=(0, None))
    axes[1, 0].set_ylabel("calibration error")
    marks = [
        Line2D([], [], color=paper.COLOURS[c], marker="o", label=n) for n, c in COLOURS.items()
    ]
    marks += [Line2D([], [], color="0.3", linestyle=s, label=n) for n, s in BASELINES.items()]
    paper.legend_below(figure, marks)
    return figure


def draw_panel(panel: paper.Axes, rows: list[paper.Row], what: str, scale: float) -> None:
    """Means with two standard errors over data sets, against the median time."""
    for name, colour in COLOURS.items():
        times, values, errors = means(paper.select(rows, method=name), what)
        style = {"color": paper.COLOURS[colour], "marker": "o", "capsize": 2}
        low = np.minimum(2 * errors, 0.9 * values)  # stay above 0 on the log scale
        panel.errorbar(times, values / scale, [low / scale, 2 * errors / scale], **style)
    for name, style in BASELINES.items():
        found = [row[what] for row in paper.select(rows, method=name)]
        if None not in found:
            panel.axhline(np.mean(found) / scale, color="0.3", linestyle=style, linewidth=1.2)
    panel.set_xscale("log")


def main(arguments: list[str] | None = None) -> None:
    """Run and draw."""
    paper.main(__doc__, __file__, SETTINGS, run, draw, summarise, arguments)


if __name__ == "__main__":
    main()
