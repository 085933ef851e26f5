"""How far Pseudo-Mallows draws are from the exact posterior, `balanced=True` with foresight. Two
minutes.

Data: Mallows draws around a random consensus, `--datasets` sets a row; alpha is known. Each law
makes 4,000 draws; the V order with the sigma of a grid that is best for the data set, with none,
and with the one that "auto" finds. Divergence: the sum over items of KL(draws || reference), the
same floor on both sides. Reference: 8 exact chains of 5,000 draws, started at the MAP. For scale,
two figures of the exact chains themselves: every fifth draw of four chains, and all their draws,
against the other four. Divergences and effective sizes (ESS) are means over the data sets; times
are the best over them, compiled code warm, the counting of ranks included. The rival in time is
the exact chain, 4,000 draws of it.

Foresight as start of chains was left out: they are within 0.3 standard deviations of their mean
after one sweep from the MAP, too.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

import pseudomallows as pm
from pseudomallows.paper.balanced import TOLERANCE, balance_weights
from pseudomallows.scores import FLOOR, rank_divergence, share_of_ranks
from timing import arguments, print_table, race, seconds_of, words

SETTINGS = [(100, 20, 1.0), (100, 20, 2.0), (100, 20, 4.0)]
SETTINGS += [(500, 50, 5.0), (1000, 100, 5.0), (50, 100, 3.0)]
SETTINGS += [(1000, 200, 10.0), (200, 200, 20.0), (5000, 200, 10.0)]
CLOSE_UP = (500, 50, 5.0)  # shown at every floor, and balanced by the rival too
FLOORS = (1e-4, 1e-6, 1e-10)
SIGMAS = (0, 1, 2, 3, 5, 8, 12, 16, 24)
N_DRAWS, N_CHAINS, CHAIN_DRAWS, WARMUP = 4000, 4, 5000, 500  # chains: of each half
MAX_ROUNDS = 20_000  # of the rival's Sinkhorn


@dataclass
class Trial:
    """One data set: tables of rank probabilities and seconds, by method."""

    rankings: np.ndarray
    alpha: float
    rng: np.random.Generator
    tables: dict[str, np.ndarray] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    effective_size: float = 0.0
    exact_size: float = 0.0  # of as many draws of the exact chain as of the others
    worst_rhat: float = 1.0

    def run(self) -> "Trial":
        """Fill the tables."""
        self.run_exact()
        for sigma in SIGMAS:
            self.measure(f"V, sigma {sigma}", self.draw_v, sigma)
        self.measure("V, sigma auto", self.draw_v, "auto")
        self.measure("weighted", self.draw_weighted)
        self.measure("matrix", lambda: self.law().balanced_marginals())
        return self

    def measure(self, name: str, method: Callable[..., np.ndarray], *args: float | str) -> None:
        """Run a method that makes a table, and time it."""

        def call() -> None:
            self.tables[name] = method(*args)

        self.seconds[name] = seconds_of(call)

    def law(self, sigma: float | str = 0.0, balanced: bool = False) -> pm.PseudoMallows:
        """A Pseudo-Mallows law of these data."""
        return pm.PseudoMallows(self.rankings, self.alpha, sigma, balanced)

    def draw_v(self, sigma: float | str) -> np.ndarray:
        """Algorithm 3."""
        return share_of_ranks(self.law(sigma).draw(N_DRAWS, self.rng))

    def draw_weighted(self) -> np.ndarray:
        """Balanced draws, with and without their weights."""
        draws = self.law(balanced=True).draw_weighted(N_DRAWS, self.rng)
        self.effective_size = draws.effective_size
        self.tables["balanced"] = share_of_ranks(draws.rankings)
        return share_of_ranks(draws.rankings, draws.weights)

    def run_exact(self) -> None:
        """Two halves of the exact reference, and every fifth draw of the first."""
        prefs = pm.Preferences.from_rankings(self.rankings)
        options = {"n_draws": CHAIN_DRAWS, "n_chains": N_CHAINS, "warmup": WARMUP}
        first, second = (
            pm.fit(prefs, method="mcmc", alpha=self.alpha, rng=self.rng, **options)
            for _ in range(2)
        )
        step = N_CHAINS * CHAIN_DRAWS // N_DRAWS
        some = first.consensus[:, ::step, 0].reshape(N_DRAWS, -1)
        self.tables |= {"some": share_of_ranks(some), "first": first.rank_probabilities()}
        self.tables["second"] = second.rank_probabilities()
        self.tables["exact"] = (self.tables["first"] + self.tables["second"]) / 2
        self.seconds["exact"] = first.settings["seconds"] / step
        self.exact_size = float(first.diagnostics().rank_effective_size.min()) / step
        self.worst_rhat = max(half.diagnostics().worst_rhat for half in (first, second))

    def divergence(self, name: str, floor: float) -> float:
        """Divergence of a method from the reference."""
        reference = "second" if name in ("some", "first") else "exact"
        return rank_divergence(self.tables[name], self.tables[reference], floor=floor)


def run_trials(setting: tuple[int, int, float], n_datasets: int, rng) -> list[Trial]:
    """All data sets of one row."""
    n_users, n_items, alpha = setting
    simulations = [
        pm.simulate_rankings(n_users, n_items, alpha, rng=rng) for _ in range(n_datasets)
    ]
    return [Trial(simulation.rankings, alpha, rng).run() for simulation in simulations]


def divergences(trials: list[Trial], floor: float) -> list[str]:
    """Mean divergence of each method, that of the V order with the best sigma for each data set."""
    values = np.array(
        [[trial.divergence(f"V, sigma {s}", floor) for s in SIGMAS] for trial in trials]
    )
    sigmas = sorted({SIGMAS[best] for best in values.argmin(axis=1)})
    cells = [f"{values.min(axis=1).mean():.3g} ({', '.join(map(str, sigmas))})"]
    for name in ("V, sigma 0", "V, sigma auto", "balanced", "weighted", "matrix", "some", "first"):
        cells.append(f"{np.mean([trial.divergence(name, floor) for trial in trials]):.2g}")
    return cells


def print_divergences(results: dict[str, list[Trial]], floor: float) -> None:
    """A row for each size: divergence and effective draws."""
    rows = []
    for name, trials in results.items():
        cells = divergences(trials, floor)
        size = f"{np.mean([trial.effective_size for trial in trials]):.0f}"
        rhat = f"{max(trial.worst_rhat for trial in trials):.4f}"
        rows.append([name, *cells[:5], size, *cells[5:], rhat])
    print(f"divergence from the exact posterior, floor {floor:g}")
    header = ["N, n, alpha", "V order (best sigma)", "sigma 0", "sigma auto"]
    header += ["balanced", "weighted", "ESS", "matrix"]
    print_table([*header, "exact 4,000", "exact 20,000", "R-hat"], rows)


def print_seconds(results: dict[str, list[Trial]]) -> None:
    """Best seconds over the data sets."""
    rows = []
    for name, trials in results.items():
        best = {key: min(trial.seconds[key] for trial in trials) for key in trials[0].seconds}
        names = ("V, sigma 0", "V, sigma auto", "weighted", "matrix", "exact")
        times = [best[key] for key in names]
        rows.append([name, *map(words, times), f"{best['exact'] / best['weighted']:.1f} x"])
    print(f"time of {N_DRAWS} draws (matrix: none), best of the data sets")
    header = ["N, n, alpha", "V, sigma 0", "V, sigma auto", "balanced, weighted", "matrix"]
    print_table([*header, "exact chain", "exact / balanced"], rows)
    print("ESS a second: the weighted draws; the exact chain (its worst rank)")
    for name, trials in results.items():
        ours = max(trial.effective_size / trial.seconds["weighted"] for trial in trials)
        exact = max(trial.exact_size / trial.seconds["exact"] for trial in trials)
        print(f"{name}: {ours:,.0f}; {exact:,.0f}")


def print_floors(name: str, trials: list[Trial]) -> None:
    """One row of the table at several floors."""
    print(f"how the divergence depends on the floor, {name}")
    rows = [[f"{floor:g}", *divergences(trials, floor)] for floor in FLOORS]
    header = ["floor", "V order (best sigma)", "sigma 0", "sigma auto"]
    header += ["balanced", "weighted", "matrix"]
    print_table([*header, "exact 4,000", "exact 20,000"], rows)


def numpy_sinkhorn(log_weights: np.ndarray) -> tuple[int, float]:
    """Scale rows and columns in turn; return the rounds it took and the error that is left."""
    balanced = log_weights.copy()
    for n_rounds in range(MAX_ROUNDS + 1):
        row_logs = log_sums(balanced, axis=1)
        error = np.abs(np.exp(row_logs) - 1).max()
        if error <= TOLERANCE or n_rounds == MAX_ROUNDS:
            break
        balanced -= row_logs
        balanced -= log_sums(balanced, axis=0)
    return n_rounds, float(error)


def log_sums(logs: np.ndarray, axis: int) -> np.ndarray:
    """Logs of the sums of exponentials."""
    highest = logs.max(axis=axis, keepdims=True)
    return highest + np.log(np.exp(logs - highest).sum(axis=axis, keepdims=True))


def print_sinkhorn(name: str, trial: Trial, repeats: int) -> None:
    """Balance one matrix by Sinkhorn alone in NumPy, and by ours."""
    log_weights = -trial.alpha / trial.rankings.shape[1] * trial.law().costs
    n_rounds, error = numpy_sinkhorn(log_weights)
    rivals = {
        "balance_weights": lambda: balance_weights(log_weights),
        "Sinkhorn alone, NumPy": lambda: numpy_sinkhorn(log_weights),
    }
    times = race(rivals, repeats)
    ours = times["balance_weights"]
    print(f"balancing one matrix, {name}, every sum within {TOLERANCE:g} of 1; best of {repeats}")
    rows = [[who, words(seconds), f"{seconds / ours:.1f} x"] for who, seconds in times.items()]
    print_table(["method", "time", "ratio"], rows)
    print(f"Sinkhorn alone: {n_rounds} rounds (at most {MAX_ROUNDS}), error {error:.2g} left.")


def main() -> None:
    """Run all rows, then print."""
    options = arguments(__doc__, datasets=3, repeats=3, seed=1, floor=FLOOR)
    rng = np.random.default_rng(options.seed)
    run_trials((10, 5, 1.0), 1, rng)  # compiles
    results = {
        ", ".join(f"{x:g}" for x in setting): run_trials(setting, options.datasets, rng)
        for setting in SETTINGS
    }
    print_divergences(results, options.floor)
    print_seconds(results)
    close_up = ", ".join(f"{x:g}" for x in CLOSE_UP)
    print_floors(close_up, results[close_up])
    print_sinkhorn(close_up, results[close_up][0], options.repeats)


if __name__ == "__main__":
    main()
