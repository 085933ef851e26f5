"""Figure 9 of the paper: accuracy of recommendations against computing time, from clicks.

The paper: the Pseudo-Mallows makes good recommendations much sooner than the Markov chain, which
after its burn-in is the more accurate. Data: N = 500 users with latent Mallows rankings of n = 50
items around a random consensus, so that labels tell nothing; a user clicks the first c of them, c
from a Poisson law of mean 5 cut to 1 .. n - 3. Alpha is known. A recommendation is right if its
true rank is one of the k = 3 after the clicks.

- Pseudo-Mallows: Algorithm 5, a warm-up of 10 sweeps, probabilities by tables of the paper's law;
- exact chain: latent rankings summed out, started at the MAP, probabilities by exact sums;
- Metropolis chain: the paper's opponent, from a random start: at each step one leap-and-shift of
  the consensus and one swap in each user's latent ranking; probabilities by counting these;
- popularity, and an oracle that knows the true consensus and alpha: both without a time.
Both chains throw away the first half. Seconds hold all from the clicks to the recommendations,
compiled code warm, one thread. A minute and a half in the reduced setting, with 3 data sets for 20;
half an hour in full.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import paper
import pseudomallows as pm
from accuracy_rankings import THREAD, draws_of, exact_chain
from metropolis import MetropolisChain
from pseudomallows.data.datasets import Simulation
from pseudomallows.evaluation.baselines import most_clicked
from pseudomallows.evaluation.figures import calibrate
from pseudomallows.laws.registry import make_law
from pseudomallows.paper.clicks import count_next

SIZE = {"n_users": 500, "n_items": 50, "mean_clicks": 5, "alphas": [1.0, 3.0, 5.0, 10.0]}
SETTINGS = paper.Settings(
    reduced=SIZE | {"n_datasets": 3, "draws": [1, 5, 20, 50], "steps": [100, 800, 6400, 25_600]},
    full=SIZE
    | {"n_datasets": 20, "draws": [1, 5, 20, 50, 200], "steps": [100, 800, 6400, 51_200, 204_800]},
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
N_RANKINGS = 200  # of a user at least that are counted: as many as the paper has samples
COLOURS = {"Pseudo-Mallows": "blue", "exact chain": "orange", "Metropolis chain": "red"}
BASELINES = {"popularity": (0, (1, 1.5)), "oracle": (0, (6, 2))}


class Trial:
    """One data set, with a fit of one draw as a mould for posteriors."""

    def __init__(self, data: Simulation, alpha: float, rng: np.random.Generator):
        self.data, self.alpha, self.rng = data, alpha, rng
        self.prefs = data.preferences
        few = {"n_draws": 1, "n_chains": 1, "warmup": 0, "thin": 1, "executor": THREAD}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pm.ConvergenceWarning)  # they are short on purpose
            self.mould = pm.fit(self.prefs, "mcmc", alpha, rng=rng, **few)

    def posterior(self, draws: paper.Array) -> pm.Posterior:
        """A posterior with these draws of the consensus."""
        shape = (1, len(draws))
        return replace(
            self.mould,
            consensus=draws[None, :, None].astype(np.int32),
            alpha=np.full((*shape, 1), self.alpha),
            weights=np.full(shape, 1 / len(draws)),
            shares=np.ones((*shape, 1)),
            log_posterior=np.full(shape, np.nan),
        )

    def recommend(self, draws: paper.Array) -> tuple[paper.Array, paper.Array]:
        """Items and probabilities for all users."""
        found = pm.recommend(self.posterior(draws), K, executor=THREAD)
        return found.items, found.probabilities

    def by_pseudo(self, n_draws: int) -> tuple[paper.Array, paper.Array, paper.Array]:
        """Algorithm 5, and recommendations by counting."""
        how = {"n_draws": n_draws, "warmup": WARMUP, "executor": THREAD}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pm.ConvergenceWarning)
            draws = pm.fit(self.prefs, "pseudo", self.alpha, rng=self.rng, **how).consensus[0, :, 0]
        repeated = np.repeat(draws, -(-N_RANKINGS // n_draws), axis=0)
        probabilities = count_next(self.prefs, repeated, self.alpha, K, rng=self.rng)
        probabilities[
            np.repeat(np.arange(self.prefs.n_users), self.prefs.n_clicks), self.prefs.codes
        ] = -1
        items = best_items(probabilities, K, self.rng)
        return draws, items, np.take_along_axis(probabilities, items, axis=1)

    def by_exact(self, n_draws: int) -> tuple[paper.Array, paper.Array, paper.Array]:
        """Our chain."""
        chain = exact_chain(make_law(self.prefs, THREAD), self.alpha, self.rng)
        draws = draws_of(chain, n_draws, n_draws)
        return draws, *self.recommend(draws)

    def by_metropolis(
        self, steps: list[int]
    ) -> Iterator[tuple[int, float, tuple[paper.Array, paper.Array, paper.Array]]]:
        """Steps, seconds and what is found by one long run of the opponent, at each number."""
        begin, done = time.process_time(), 0
        chain = MetropolisChain(self.prefs, self.alpha, self.rng)
        seconds = time.process_time() - begin
        for n_steps in steps:
            begin = time.process_time()
            chain.run(n_steps // 2 - done)
            draws, probabilities = count_latent(chain, self.prefs, K, n_steps - n_steps // 2)
            items = best_items(probabilities, K, self.rng)
            found = draws, items, np.take_along_axis(probabilities, items, axis=1)
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
        yield {"method": "oracle"} | self.score(*self.recommend(self.data.consensus[None]))
        ways: dict[str, Callable] = {"Pseudo-Mallows": self.by_pseudo, "exact chain": self.by_exact}
        for n_draws in setting["draws"]:
            for name, way in ways.items():
                begin = time.process_time()
                found = way(n_draws)
                yield self.row(name, n_draws, time.process_time() - begin, *found)
        for n_steps, seconds, found in self.by_metropolis(setting["steps"]):
            yield self.row("Metropolis chain", n_steps, seconds, *found)

    def row(
        self,
        name: str,
        size: int,
        seconds: float,
        draws: paper.Array,
        items: paper.Array,
        probabilities: paper.Array,
    ) -> paper.Row:
        """One row."""
        consensus = self.posterior(draws).point_consensus()
        distance = int(pm.footrule(consensus, self.data.consensus))
        shared = {"method": name, "draws": size, "seconds": seconds, "distance": distance}
        return shared | self.score(items, probabilities)


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
            mine = paper.select(own, method=name)
            times, hits, _ = means(mine, "accuracy")
            _, gaps, _ = means(mine, "calibration_error")
            _, distances, _ = means(mine, "distance")
            cells = zip(times, hits, gaps, distances, strict=True)
            parts = [f"{t:.2f} s {a:.1%} ece {e:.3f} d {d:.0f}" for t, a, e, d in cells]
            lines.append(f"  {name:17} {' | '.join(parts)}")
    return "\n".join(lines)


PANELS = {"accuracy": "share of right\nrecommendations", "calibration_error": "calibration error"}


def draw(rows: list[paper.Row]) -> Figure:
    """Accuracy above, calibration error below; a column for each alpha."""
    alphas = paper.unique(rows, "alpha")
    title = "Click counts are as accurate as any method; what differs is whether probabilities hold"
    width = 11 if len(alphas) > 1 else 6
    figure, axes = paper.panels(rows, title, 2, len(alphas), width, 5.8, sharex=True)
    for column, alpha in enumerate(alphas):
        own = paper.select(rows, alpha=alpha)
        for panel, what in zip(axes[:, column], PANELS, strict=True):
            draw_panel(panel, own, what)
        axes[0, column].set_title(f"alpha = {alpha:g}")
        axes[1, column].set(xlabel="computing time (seconds)", yscale="log")
    for panel, words in zip(axes[:, 0], PANELS.values(), strict=True):
        panel.set_ylabel(words)
    marks = [
        Line2D([], [], color=paper.COLOURS[c], marker="o", label=n) for n, c in COLOURS.items()
    ]
    marks += [Line2D([], [], color="0.3", linestyle=s, label=n) for n, s in BASELINES.items()]
    axes[0, -1].legend(handles=marks, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def draw_panel(panel: paper.Axes, rows: list[paper.Row], what: str) -> None:
    """Means with two standard errors over data sets, against the median time."""
    for name, colour in COLOURS.items():
        times, values, errors = means(paper.select(rows, method=name), what)
        style = {"color": paper.COLOURS[colour], "marker": "o", "capsize": 2}
        low = np.minimum(2 * errors, 0.9 * values)  # stay above 0 on the log scale
        panel.errorbar(times, values, [low, 2 * errors], **style)
    for name, style in BASELINES.items():
        found = [row[what] for row in paper.select(rows, method=name)]
        if None not in found:
            panel.axhline(np.mean(found), color="0.3", linestyle=style, linewidth=1.2)
    panel.set_xscale("log")


def main(arguments: list[str] | None = None) -> None:
    """Run and draw."""
    paper.main(__doc__, __file__, SETTINGS, run, draw, summarise, arguments)


if __name__ == "__main__":
    main()
