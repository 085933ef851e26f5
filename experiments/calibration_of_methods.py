"""Are the posteriors of `pm.fit` right? Simulation-based calibration of every method.

Figure: docs/figures/calibration_of_methods.png. Takes about 4 minutes on 2 cores.

Simulation-based calibration (Talts et al. 2018, Validating Bayesian inference algorithms with
simulation-based calibration): draw a truth from the prior, data given the truth, and posterior
draws given the data. If the posterior is exact, the place of the truth among its draws is uniform.
The draws must be nearly independent, hence the thinning; equal values stand in random order, since
ranks and distances are whole numbers.

The truth is a uniform consensus and, where alpha is sampled, an alpha from its gamma prior. Its
place is taken in
- the rank of item 0: all items are alike;
- the distance to the consensus of all ranks that are known: it looks at the data, so it sees far
  more than the rank does;
- alpha, where it is sampled.

What it shows: the exact chain is uniform in all of them, with both moves, alpha fixed or sampled,
full rankings or the top 3 of 6. So is "balanced" with its importance weights. "pseudo", the
approximation of the paper, is not: its consensuses lie too far from the data, so that the truth
comes early among its distances. "balanced" without its weights errs in the same way, here even
more: the weights are what makes it exact.
"""

import argparse
import csv
import os
import warnings
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import stats

import pseudomallows as pm

N_ITEMS, N_USERS, TOP = 6, 8, 3
ALPHA = 2.0  # where it is fixed
ALPHA_PRIOR = (4.0, 1.0)  # shape and rate of a gamma, where alpha is sampled
N_DRAWS = 62  # so the truth has 63 possible places, in 21 bins of 3
N_WEIGHTED = 4000  # of which N_DRAWS are taken, with replacement, in proportion to their weights
WARMUP = 200  # from a poor start alpha may need 150
N_BINS = 21
REPLICATIONS, SEED = 1000, 20_180_418
BAND = 0.99
FAILURE = 1e-4  # a smaller p-value is no sampling variation among some thirty

ROOT = Path(__file__).resolve().parents[1]
CSV_NAME = "calibration_of_methods.csv"
FIGURE = ROOT / "docs" / "figures" / "calibration_of_methods.png"
QUANTITIES = {"item": "rank of item 0", "distance": "distance to data", "alpha": "alpha"}
DATA = {"full": "full rankings", "top": f"only the top {TOP} known"}
BLUE, RED = "#3b6ea5", "#c44e3b"

Array = NDArray[Any]
Row = dict[str, Any]
Counts = dict[tuple[str, str, str], Array]


@dataclass(frozen=True)
class Setting:
    """A method on one kind of data; without `alpha`, it is drawn from its prior and sampled."""

    name: str
    method: str
    data: str
    alpha: float | None
    options: dict[str, Any] = field(default_factory=dict)
    data_alpha: float | None = None  # simulate with another alpha than the model's
    n_draws: int = N_DRAWS


def chain_setting(move: str, sampled: bool, data: str) -> Setting:
    """The exact chain, thinned until the lag-1 correlation of every quantity is below 0.05."""
    name = f"mcmc, {move}, alpha {'sampled' if sampled else 'fixed'}"
    thin = 10 if sampled and data == "top" else 5
    options = {"move": move, "thin": thin, "warmup": WARMUP, "n_chains": 1}
    if sampled:
        options["alpha_prior"] = ALPHA_PRIOR
    return Setting(name, "mcmc", data, None if sampled else ALPHA, options)


MARKOV = {"thin": 2, "warmup": 50}  # on partial rankings these are chains, too, and forget faster
SETTINGS = [
    *(
        chain_setting(*choice)
        for choice in product(("swap", "leap_and_shift"), (False, True), DATA)
    ),
    Setting("balanced, with weights", "balanced", "full", ALPHA, {"weighted": True}),
    Setting("balanced, with weights", "balanced", "top", ALPHA, {"weighted": True} | MARKOV),
    Setting("balanced, no weights", "balanced", "full", ALPHA, {"weighted": False}),
    Setting("balanced, no weights", "balanced", "top", ALPHA, {"weighted": False} | MARKOV),
    Setting("pseudo, V orders", "pseudo", "full", ALPHA),
    Setting("pseudo, V orders", "pseudo", "top", ALPHA, MARKOV),
]


def simulate(setting: Setting, rng: np.random.Generator) -> tuple[Array, float, Array]:
    """A consensus and an alpha from the prior, and rankings from the model; unknown ranks are 0,
    and clicks are 1."""
    shape, rate = ALPHA_PRIOR
    consensus = rng.permutation(N_ITEMS) + 1
    alpha = rng.gamma(shape, 1 / rate) if setting.alpha is None else setting.alpha
    data_alpha = alpha if setting.data_alpha is None else setting.data_alpha
    distance = setting.options.get("distance", "footrule")
    rankings = pm.Mallows(consensus, data_alpha, distance).draw(N_USERS, rng)
    if setting.data == "top":
        rankings = np.where(rankings <= TOP, rankings, 0)
    elif setting.data == "gaps":  # any rank may be unknown, but for one of each user
        is_known = rng.random(rankings.shape) < 0.5
        rankings = np.where(is_known | (rankings == rng.integers(1, N_ITEMS + 1)), rankings, 0)
    elif setting.data == "clicks":  # the best are known, not their order
        rankings = (rankings <= TOP).astype(np.int64)
    return consensus, alpha, rankings


def preferences_of(setting: Setting, rankings: Array) -> pm.Preferences:
    """What `simulate` has made, as data."""
    if setting.data == "clicks":
        return pm.Preferences.from_clicks(rankings > 0)
    return pm.Preferences.from_rankings(rankings)


def fit_draws(setting: Setting, rankings: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Posterior draws of equal weight: `consensuses[draw, item]` and `alphas[draw]`."""
    weighted = setting.data == "full" and setting.options.get("weighted", False)
    with warnings.catch_warnings():
        # On purpose: the draws are few, and among thousands of fits some must look doubtful.
        warnings.simplefilter("ignore", pm.diagnostics.FitWarning)
        posterior = pm.fit(
            preferences_of(setting, rankings),
            setting.method,
            setting.alpha,
            n_draws=N_WEIGHTED if weighted else setting.n_draws,
            rng=rng,
            executor=pm.Threads(1),
            **setting.options,
        )
    consensuses, alphas = posterior.consensus[0, :, 0], posterior.alpha[0, :, 0]
    if not weighted:
        return consensuses, alphas
    taken = rng.choice(N_WEIGHTED, setting.n_draws, p=posterior.weights[0])
    return consensuses[taken], alphas[taken]


def distances(rankings: Array, consensuses: Array) -> Array:
    """Footrule distance of all known ranks to each of the consensuses."""
    gaps = np.abs(rankings - consensuses[:, None])
    return np.where(rankings > 0, gaps, 0).sum(axis=(1, 2))


def place_of(truth: float, draws: Array, rng: np.random.Generator) -> int:
    """How many draws stand before the truth, those equal to it in random order."""
    n_lower, n_equal = np.sum(draws < truth), np.sum(draws == truth)
    return int(n_lower + rng.integers(n_equal + 1))


def replicate(setting: Setting, rng: np.random.Generator) -> dict[str, int]:
    """Simulate, fit, and find the place of the truth in each quantity."""
    consensus, alpha, rankings = simulate(setting, rng)
    consensuses, alphas = fit_draws(setting, rankings, rng)
    distance, *others = distances(rankings, np.vstack([consensus, consensuses]))
    places = {
        "item": place_of(consensus[0], consensuses[:, 0], rng),
        "distance": place_of(distance, np.array(others), rng),
    }
    if setting.alpha is None:
        places["alpha"] = place_of(alpha, alphas, rng)
    return places


def run_task(settings: list[Setting], seed: int, task: tuple[int, int]) -> list[Row]:
    """One replication of one setting, with a random stream of its own; a row for each quantity."""
    number, replication = task
    setting = settings[number]
    places = replicate(setting, np.random.default_rng((seed, number, replication)))
    shared = {"version": pm.__version__, "seed": seed}
    shared |= {"n_items": N_ITEMS, "n_users": N_USERS, "n_draws": setting.n_draws}
    shared |= {"method": setting.name, "data": setting.data, "replication": replication}
    return [shared | {"quantity": quantity, "place": place} for quantity, place in places.items()]


def run(settings: list[Setting], n_replications: int, seed: int, n_processes: int = 1) -> list[Row]:
    """All replications of all settings; the same rows for any number of processes."""
    tasks = list(product(range(len(settings)), range(n_replications)))
    work = partial(run_task, settings, seed)
    if n_processes == 1:
        return list(chain.from_iterable(map(work, tasks)))
    with ProcessPoolExecutor(n_processes, mp_context=get_context("spawn")) as pool:
        return list(chain.from_iterable(pool.map(work, tasks, chunksize=20)))


def write_rows(rows: list[Row], path: Path) -> None:
    """Write the CSV file: a row for each setting, replication and quantity."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def read_rows(path: Path) -> list[Row]:
    """Read the CSV file."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def count_places(rows: Iterable[Row]) -> Counts:
    """`counts[method, data, quantity][bin]`: replications whose truth falls in that bin."""
    counts: Counts = {}
    for row in rows:
        key = row["method"], row["data"], row["quantity"]
        bins = counts.setdefault(key, np.zeros(N_BINS, dtype=np.int64))
        bins[int(row["place"]) * N_BINS // (int(row["n_draws"]) + 1)] += 1
    return counts


def p_value(bins: Array) -> float:
    """Chi-square test of a uniform histogram."""
    return float(stats.chisquare(bins).pvalue)


def print_p_values(counts: Counts) -> None:
    """A table, a line for each histogram."""
    for (method, data, quantity), bins in counts.items():
        print(f"{method:36} {data:5} {quantity:9} p = {p_value(bins):.2g}")


def draw_figure(rows: list[Row], path: Path) -> None:
    """A grid of histograms: methods in rows, quantities in columns, full and partial data apart."""
    counts = count_places(rows)
    methods = list(dict.fromkeys(method for method, _, _ in counts))
    figure = Figure(figsize=(12, 9.6))
    columns = figure.add_gridspec(1, 2, left=0.12, right=0.99, top=0.83, bottom=0.02, wspace=0.05)
    for column, (data, title) in zip(columns, DATA.items(), strict=True):
        grid = column.subgridspec(
            len(methods), len(QUANTITIES), wspace=0.08, hspace=0.15
        ).subplots()
        for panel, (method, quantity) in zip(grid.flat, product(methods, QUANTITIES), strict=True):
            draw_panel(panel, counts.get((method, data, quantity)))
        label_columns(grid, title, methods if data == "full" else [])
    label_figure(figure, rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)


def draw_panel(panel: Axes, bins: Array | None) -> None:
    """One histogram, 1 being its expected height, with the band and the p-value."""
    panel.set(xlim=(0, N_BINS), ylim=(0, 3), xticks=[], yticks=[])
    if bins is None:
        panel.set_axis_off()
        return
    expected, p = bins.sum() / N_BINS, p_value(bins)
    low, high = stats.binom.interval(BAND, bins.sum(), 1 / N_BINS)
    colour = RED if p < FAILURE else BLUE
    panel.spines[["top", "left", "right"]].set_visible(False)
    panel.stairs(bins / expected, fill=True, color=colour)
    panel.axhspan(low / expected, high / expected, color="0.5", alpha=0.4, linewidth=0)
    panel.text(N_BINS, 2.55, f"p = {p:.2g}", color=colour, ha="right")


def label_columns(grid: Array, title: str, methods: list[str]) -> None:
    """The names of the quantities above, those of the methods, if any, on the left."""
    for panel, quantity in zip(grid[0], QUANTITIES.values(), strict=True):
        panel.set_title(quantity, fontsize=11, pad=10)
    grid[0, 1].annotate(
        title, (0.5, 1.45), xycoords="axes fraction", ha="center", fontsize=13, weight="bold"
    )
    for panel, method in zip(grid[:, 0], methods, strict=False):
        panel.set_ylabel(
            method.replace(", ", "\n"), rotation=0, ha="right", va="center", fontsize=11
        )


def label_figure(figure: Figure, rows: list[Row]) -> None:
    """What the figure shows, and what made it."""
    row, n_replications = rows[0], len({row["replication"] for row in rows})
    text = (
        f"Where the truth falls among {row['n_draws']} posterior draws, in {n_replications} "
        f"replications. An exact posterior is flat: {BAND:.0%} of its bars end in the grey band.\n"
        f"Red: not flat, p < {FAILURE:g} by chi-square. {row['n_items']} items, {row['n_users']} "
        f"users; pseudomallows {row['version']}, seed {row['seed']}."
    )
    figure.text(0.01, 0.965, "Simulation-based calibration of pm.fit", fontsize=15, weight="bold")
    figure.text(0.01, 0.955, text, fontsize=10.5, va="top", linespacing=1.4)


def main(arguments: list[str] | None = None) -> None:
    """Simulate into the CSV file, then draw the figure from it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=REPLICATIONS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--out", type=Path, default=ROOT / "results", help="folder of the CSV file")
    parser.add_argument("--figure", type=Path, default=FIGURE, help="file of the figure")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args(arguments)
    rows = run(SETTINGS, options.replications, options.seed, options.processes)
    write_rows(rows, options.out / CSV_NAME)
    rows = read_rows(options.out / CSV_NAME)
    print_p_values(count_places(rows))
    draw_figure(rows, options.figure)


if __name__ == "__main__":
    main()
