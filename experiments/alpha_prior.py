"""What a prior of alpha says before any data: how far users would be from their consensus. Seconds.

For each candidate and number of items: quantiles of alpha under the prior, and the expected
footrule distance at each, as a share of the distance by chance: 0, all agree; 1, nobody does. All
exact, from quantiles of a gamma and the partition function. Beside them the alphas that have a
share of 0.75, 0.5, 0.25 and 0.1: what is realistic at each number of items.

Results go to `results/alpha_prior.csv`; a table of shares is printed.
"""

import argparse
import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

import pseudomallows as pm
from pseudomallows.distances.distance import alpha_for_distance
from pseudomallows.distances.footrule import FOOTRULE
from pseudomallows.sampling.priors import FLAT, default_prior

ROOT = Path(__file__).resolve().parents[1]
CSV_NAME = "alpha_prior.csv"
N_ITEMS = (5, 10, 20, 50, 200, 1000)
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
SHARES = (0.75, 0.5, 0.25, 0.1)
CANDIDATES: dict[str, Callable[[int], tuple[float, float]]] = {
    "flat (1, 0.001)": lambda n_items: FLAT,
    "(1, 1/n)": lambda n_items: (1.0, 1 / n_items),
    "(2, 2/n)": lambda n_items: (2.0, 2 / n_items),
    "(2, 1/sqrt n)": lambda n_items: (2.0, n_items**-0.5),
    "default (2, 2/n + 1/20)": default_prior,
}
Row = dict[str, Any]


def chance_distance(n_items: int) -> float:
    """Expected footrule distance of two random rankings."""
    return (n_items**2 - 1) / 3


def share_of_chance(n_items: int, alpha: float) -> float:
    """Expected distance from the consensus, as a share of that by chance."""
    law = pm.Mallows(np.arange(1, n_items + 1), alpha)
    return law.expected_distance() / chance_distance(n_items)


def run(sizes: tuple[int, ...]) -> list[Row]:
    """A row for each candidate, number of items and quantile."""
    rows = []
    for name, prior in CANDIDATES.items():
        for n_items in sizes:
            shape, rate = prior(n_items)
            for quantile in QUANTILES:
                alpha = float(stats.gamma.ppf(quantile, shape)) / rate
                share = share_of_chance(n_items, alpha)
                rows.append(
                    {
                        "prior": name,
                        "shape": shape,
                        "rate": rate,
                        "n_items": n_items,
                        "quantile": quantile,
                        "alpha": alpha,
                        "share": share,
                        "version": pm.__version__,
                    }
                )
    return rows


def alphas_of_shares(n_items: int) -> list[float]:
    """The alphas at which users are so far from the consensus, as shares of chance."""
    means = [share * chance_distance(n_items) for share in SHARES]
    return [alpha_for_distance(FOOTRULE, n_items, mean) for mean in means]


def print_tables(rows: list[Row], sizes: tuple[int, ...]) -> None:
    """Markdown: shares at the quantiles 5, 50 and 95 %, and what alphas are realistic."""
    print("share of the distance by chance at the prior's quantiles 5 / 50 / 95 %\n")
    print(f"| prior | {' | '.join(map(str, sizes))} |\n|---{'|---' * len(sizes)}|")
    for name in CANDIDATES:
        cells = []
        for n_items in sizes:
            mine = [r for r in rows if r["prior"] == name and r["n_items"] == n_items]
            shown = [f"{r['share']:.2f}" for r in mine if r["quantile"] in (0.05, 0.5, 0.95)]
            cells.append(" / ".join(shown))
        print(f"| {name} | {' | '.join(cells)} |")
    print(f"\n| items | {' | '.join(f'alpha of share {share}' for share in SHARES)} |")
    print(f"|---{'|---' * len(SHARES)}|")
    for n_items in sizes:
        print(f"| {n_items} | {' | '.join(f'{a:.1f}' for a in alphas_of_shares(n_items))} |")


def write_rows(rows: list[Row], path: Path) -> None:
    """The CSV file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def main(arguments: list[str] | None = None) -> None:
    """Make the CSV file and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smallest", action="store_true", help="5 and 20 items only, for tests")
    parser.add_argument("--out", type=Path, default=ROOT / "results", help="folder of the CSV file")
    options = parser.parse_args(arguments)
    sizes = (5, 20) if options.smallest else N_ITEMS
    rows = run(sizes)
    write_rows(rows, options.out / CSV_NAME)
    print_tables(rows, sizes)


if __name__ == "__main__":
    main()
