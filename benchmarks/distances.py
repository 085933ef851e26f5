"""Every distance against a straightforward NumPy version: draws and log partitions; and the Markov
chain of a fit by each. Two minutes.

The rivals use the same formulas where these are short (repeated insertion, cycles, derangements),
and are vectorised over the draws where that is natural; for the footrule see mallows.py. Without a
formula the rival is a Metropolis chain that swaps two ranks, 10 n proposals for each draw, all
chains side by side. Best of `--repeats` runs, rivals in turn, compiled code warm; the answers of
the rivals are checked.

The chains are those of `fit` with its defaults, alpha sampled, on 500 users around one ranking of
50 items: the smallest effective number of draws, of alpha and of the rank of any item, for each
second of CPU time, start and warmup included.
"""

import math
import time
import warnings

import numpy as np

import pseudomallows as pm
from pseudomallows import distances
from pseudomallows.distances.spearman import N_SWEEPS
from timing import arguments, print_table, race, words

N_ITEMS, N_DRAWS = 200, 1000
ULAM_ITEMS = 50  # its partition function ends at 60
ALPHAS = {
    "footrule": 10.0,
    "spearman": 1.0,
    "kendall": 10.0,
    "cayley": 400.0,
    "hamming": 800.0,
    "ulam": 100.0,
}
SIZES = (200, 10_000)
CHAIN_USERS, CHAIN_ITEMS = 500, 50
CHAIN_ALPHAS = {
    "footrule": 5.0,
    "spearman": 0.2,
    "kendall": 5.0,
    "cayley": 100.0,
    "hamming": 150.0,
    "ulam": 42.0,
}
CHAIN_SWEEPS = 10  # proposals of a rival's chain, for each item
SWEEPS_RATIO = N_SWEEPS // CHAIN_SWEEPS


def draw_kendall(n_items: int, alpha: float, rng: np.random.Generator) -> np.ndarray:
    """Repeated insertion: item by item into a list, one draw after the other."""
    q, draws = math.exp(-alpha / n_items), np.empty((N_DRAWS, n_items), dtype=np.int32)
    jumps = []
    for n_choices in range(1, n_items + 1):
        sums = np.cumsum(q ** np.arange(n_choices))
        jumps.append(np.searchsorted(sums, rng.random(N_DRAWS) * sums[-1]))
    for draw in range(N_DRAWS):
        ordering: list[int] = []
        for item in range(n_items):
            ordering.insert(item - int(jumps[item][draw]), item)
        draws[draw, ordering] = np.arange(1, n_items + 1)
    return draws


def draw_cayley(n_items: int, alpha: float, rng: np.random.Generator) -> np.ndarray:
    """Item by item: a cycle of its own, or behind one of the others; all draws side by side."""
    weight = math.exp(-alpha / n_items)
    draws = np.tile(np.arange(1, n_items + 1, dtype=np.int32), (N_DRAWS, 1))
    for item in range(1, n_items):
        joins = np.flatnonzero(rng.random(N_DRAWS) * (1 + item * weight) >= 1)
        others = rng.integers(0, item, len(joins))
        draws[joins, item] = draws[joins, others]
        draws[joins, others] = item + 1
    return draws


def hamming_logs(n_items: int, alpha: float) -> np.ndarray:
    """Log of the weight of each distance: choices, derangements, decay."""
    d = np.arange(n_items + 1)
    signs = np.where(d % 2, -1.0, 1.0)
    with np.errstate(divide="ignore"):
        shares = np.log(np.cumsum(signs * np.exp(-np.cumsum(np.log(np.maximum(d, 1))))))
    falls = np.concatenate([[0.0], np.cumsum(np.log(n_items - d[:-1]))])
    return falls + shares - alpha / n_items * d


def draw_hamming(n_items: int, alpha: float, rng: np.random.Generator) -> np.ndarray:
    """How many move, which, and a random order of them in which none stays."""
    logs = hamming_logs(n_items, alpha)
    law = np.exp(logs - logs.max())
    draws = np.tile(np.arange(1, n_items + 1, dtype=np.int32), (N_DRAWS, 1))
    for draw, d in zip(draws, rng.choice(n_items + 1, N_DRAWS, p=law / law.sum()), strict=True):
        items = rng.choice(n_items, d, replace=False)
        moved = rng.permutation(d)
        while (moved == np.arange(d)).any():
            moved = rng.permutation(d)
        draw[items] = items[moved] + 1
    return draws


def draw_by_chains(
    n_items: int, alpha: float, rng: np.random.Generator, distance: str
) -> np.ndarray:
    """Chains of swaps from the consensus, 10 n proposals each, side by side."""
    up, rows = np.arange(1, n_items + 1, dtype=np.int32), np.arange(N_DRAWS)
    draws, between = np.tile(up, (N_DRAWS, 1)), distances.get(distance).between
    away = between(draws, up)
    for _ in range(CHAIN_SWEEPS * n_items):
        i, j = rng.integers(0, n_items, (2, N_DRAWS))
        moved = draws.copy()
        moved[rows, i], moved[rows, j] = draws[rows, j], draws[rows, i]
        proposed = between(moved, up)
        takes = np.log(rng.random(N_DRAWS)) < -alpha / n_items * (proposed - away)
        draws[takes], away[takes] = moved[takes], proposed[takes]
    return draws


RIVALS = {"kendall": draw_kendall, "cayley": draw_cayley, "hamming": draw_hamming}


def check_mean(draws: np.ndarray, law: pm.Mallows, who: str) -> None:
    """The mean distance of independent draws is the expected one."""
    away = pm.distance(draws, law.consensus, law.distance)
    error = away.std() / math.sqrt(len(away))
    assert abs(away.mean() - law.expected_distance()) < 5 * error, f"{who}, {law.distance}"


def compare_draws(repeats: int, rng: np.random.Generator) -> None:
    """Time N_DRAWS draws of each distance; the chains may be short of their law."""
    rows = []
    for name, alpha in ALPHAS.items():
        if name == "footrule":
            continue
        n_items = ULAM_ITEMS if name == "ulam" else N_ITEMS
        law = pm.Mallows(np.arange(1, n_items + 1), alpha, name)
        check_mean(law.draw(N_DRAWS, rng), law, "ours")
        if name in RIVALS:
            check_mean(RIVALS[name](n_items, alpha, rng), law, "NumPy")
        rivals = {
            "ours": lambda: law.draw(N_DRAWS, rng),  # noqa: B023
            "NumPy": lambda: (
                RIVALS[name](n_items, alpha, rng)  # noqa: B023
                if name in RIVALS  # noqa: B023
                else draw_by_chains(n_items, alpha, rng, name)  # noqa: B023
            ),
        }
        times = race(rivals, repeats)
        rival = "same algorithm" if name in RIVALS else "chains *"
        if name == "spearman":
            times["NumPy"] *= SWEEPS_RATIO
        ratio = f"{times['NumPy'] / times['ours']:.1f} x"
        rows.append([name, str(n_items), *map(words, times.values()), rival, ratio])
    print(f"{N_DRAWS} draws; best of {repeats}")
    print_table(["draws", "n", "pseudomallows", "NumPy", "NumPy's way", "ratio"], rows)
    print(f"* Spearman: ours are chains too; NumPy's time is scaled by {SWEEPS_RATIO} to as many")
    print("proposals. Ulam: a chain is approximate, and ours are exact.\n")


def kendall_log_partition(n_items: int, alpha: float) -> float:
    """The product of sums of powers."""
    m, rate = np.arange(1, n_items + 1), alpha / n_items
    return float(np.log(np.expm1(-rate * m) / np.expm1(-rate)).sum())


def cayley_log_partition(n_items: int, alpha: float) -> float:
    """The product over items."""
    return float(np.log1p(np.arange(n_items) * math.exp(-alpha / n_items)).sum())


def hamming_log_partition(n_items: int, alpha: float) -> float:
    """The sum over distances."""
    return float(np.logaddexp.reduce(hamming_logs(n_items, alpha)))


PARTITIONS = {
    "kendall": kendall_log_partition,
    "cayley": cayley_log_partition,
    "hamming": hamming_log_partition,
}


def compare_partitions(repeats: int) -> None:
    """Time log_partition, which ours computes along with the expected distance."""
    rows, calls = [], iter(np.linspace(1, 1.001, 10_000))  # never the same alpha: no answer is kept
    for name, rival in PARTITIONS.items():
        for n_items in SIZES:
            distance, alpha = distances.get(name), ALPHAS[name]
            ours, theirs = distance.log_partition(n_items, alpha), rival(n_items, alpha)
            assert abs(ours / theirs - 1) < 1e-9, f"{name}: log partitions differ"
            rivals = {
                "ours": lambda: distance.log_partition(n_items, alpha * next(calls)),  # noqa: B023
                "NumPy": lambda: rival(n_items, alpha),  # noqa: B023
            }
            times = race(rivals, 20 * repeats)
            ratio = f"{times['NumPy'] / times['ours']:.1f} x"
            rows.append([name, str(n_items), f"{ours:.6f}", *map(words, times.values()), ratio])
    print(f"log_partition; best of {20 * repeats}")
    print_table(["log_partition", "n", "value", "pseudomallows", "NumPy", "ratio"], rows)


def measure_chains(seed: int) -> None:
    """Effective draws of a fit by each distance, for a second of CPU time."""
    rows = []
    for name, alpha in CHAIN_ALPHAS.items():
        law = pm.Mallows(np.arange(1, CHAIN_ITEMS + 1), alpha, name)
        prefs = pm.Preferences.from_rankings(law.draw(CHAIN_USERS, seed))
        pm.fit(prefs, "mcmc", n_draws=1, warmup=1, n_chains=1, distance=name, rng=seed)  # compiled
        started = time.process_time()
        posterior = pm.fit(prefs, "mcmc", distance=name, rng=seed)
        seconds, found = time.process_time() - started, posterior.diagnostics()
        size = min(found.rank_effective_size.min(), found.alpha_effective_size)
        moved = np.ptp(posterior.consensus.reshape(-1, CHAIN_ITEMS), axis=0).astype(bool).sum()
        row = [f"{alpha:g}", str(moved), f"{found.worst_rhat:.3f}", f"{size:.0f}"]
        rows.append([name, *row, words(seconds), f"{size / seconds:,.0f}"])
    print(f"chains of {CHAIN_USERS} users and {CHAIN_ITEMS} items; seed {seed}")
    header = ["chain", "alpha", "items that move", "R-hat", "effective draws", "CPU", "per second"]
    print_table(header, rows)


def main() -> None:
    """Draws, then partition functions, then chains."""
    options = arguments(__doc__, repeats=3, seed=1)
    compare_draws(options.repeats, np.random.default_rng(options.seed))
    compare_partitions(options.repeats)
    warnings.simplefilter("ignore", pm.ConvergenceWarning)  # the table has R-hat
    measure_chains(options.seed)


if __name__ == "__main__":
    main()
