"""How well alpha is estimated: by similarity, by likelihood, and by the joint maximum as a rival.

The rival maximises over the consensus too, which fits the noise; for partial data it takes the best
consensus of the additive likelihood, and the best alpha of the exact one. Data: Mallows rankings
around a random consensus, their first three ranks, and clicks (3 in the mean). Mean over
`--datasets` sets, standard error in brackets; a set without a finite estimate is left out of its
cell, and their number follows a slash. Times: best of `--repeats` at 1,000 users and 50 items.
About ten minutes; `--largest 100` takes two.
"""

import math
from collections.abc import Callable
from itertools import product

import numpy as np

import pseudomallows as pm
from pseudomallows.laws.law import Clusters
from pseudomallows.laws.registry import make_law
from pseudomallows.sampling.priors import AlphaPrior
from pseudomallows.sampling.start import HIGHEST_START, best_on_grid, best_place
from timing import arguments, print_table, race, words

N_ITEMS, N_USERS, ALPHAS = (8, 20), (15, 100, 1000), (0.5, 1.0, 3.0, 6.0, 12.0)
KINDS = ("rankings", "clicks", "top 3")
UNKNOWN = ("top 3", "similarity")  # which needs full rankings or clicks


def make_data(kind: str, n_users: int, n_items: int, alpha: float, rng) -> pm.Preferences:
    """One data set."""
    if kind == "clicks":
        return pm.simulate_clicks(n_users, n_items, alpha, 3, rng=rng).preferences
    top = 3 if kind == "top 3" else None
    return pm.simulate_rankings(n_users, n_items, alpha, top=top, rng=rng).preferences


def by_similarity(prefs: pm.Preferences, rng) -> float:
    """The paper's way, with the exact curve."""
    return pm.estimate_alpha(prefs)


def by_likelihood(prefs: pm.Preferences, rng) -> float:
    """The consensus summed out."""
    return pm.estimate_alpha(prefs, "likelihood", rng=rng)


def by_joint_maximum(prefs: pm.Preferences, rng) -> float:
    """The best alpha of the best consensus."""
    law = make_law(prefs)
    (tally,) = law.tallies(None, 1)
    best = best_place(tally, None, AlphaPrior(1.0, 0.0))  # flat

    def exact(alpha: float) -> float:
        return float(law.weigh(Clusters(best.consensus, np.array([alpha])), None)[0])

    curve = tally.curve(best.consensus[0]) if law.is_exact else exact
    alpha = best_on_grid(curve, float(best.alpha[0]))
    return alpha if alpha < 0.9 * HIGHEST_START else math.inf  # the end of the search


METHODS: dict[str, Callable[..., float]] = {
    "similarity": by_similarity,
    "joint": by_joint_maximum,
    "likelihood": by_likelihood,
}


def estimate(method: str, kind: str, prefs: pm.Preferences, rng) -> float:
    """One estimate; infinite where there is none that is finite, NaN where the method has none."""
    if (kind, method) == UNKNOWN:
        return math.nan
    try:
        return METHODS[method](prefs, rng)
    except ValueError:
        return math.inf


def cell(values: list[float]) -> str:
    """Mean and standard error of the finite ones."""
    finite = [value for value in values if math.isfinite(value)]
    if len(finite) < 2:
        return "-"
    missing = f"/{len(values) - len(finite)}" if len(finite) < len(values) else ""
    return f"{np.mean(finite):.2f} ({np.std(finite, ddof=1) / math.sqrt(len(finite)):.2f}){missing}"


def print_estimates(largest: int, n_datasets: int, rng) -> None:
    """Rows: settings; columns: kinds of data and methods."""
    rows = []
    for n_items, n_users, alpha in product(N_ITEMS, N_USERS, ALPHAS):
        if n_users > largest:
            continue
        found: dict[tuple[str, str], list[float]] = {}
        for kind, _ in product(KINDS, range(n_datasets)):
            prefs = make_data(kind, n_users, n_items, alpha, rng)
            for method in METHODS:
                found.setdefault((kind, method), []).append(estimate(method, kind, prefs, rng))
        cells = [cell(found[key]) for key in product(KINDS, METHODS) if key != UNKNOWN]
        rows.append([f"{n_items}, {n_users}, {alpha:g}", *cells])
    header = [f"{kind}: {method}" for kind, method in product(KINDS, METHODS)]
    header.remove(f"{UNKNOWN[0]}: {UNKNOWN[1]}")
    print_table(["n, N, alpha", *header], rows)


def print_seconds(repeats: int, rng) -> None:
    """Time of one estimate."""
    rows = []
    for kind in KINDS:
        prefs = make_data(kind, 1000, 50, 4.0, rng)
        rivals = {
            name: lambda way=way, prefs=prefs: way(prefs, np.random.default_rng(1))
            for name, way in METHODS.items()
            if (kind, name) != UNKNOWN
        }
        times = race(rivals, repeats)
        rows.append([kind, *(words(times[name]) if name in times else "-" for name in METHODS)])
    print_table(["1,000 users, 50 items", *METHODS], rows)


def main() -> None:
    """Run all settings, then time them."""
    options = arguments(__doc__, datasets=10, largest=1000, repeats=3, seed=1)
    rng = np.random.default_rng(options.seed)
    print_estimates(options.largest, options.datasets, rng)
    print_seconds(options.repeats, rng)


if __name__ == "__main__":
    main()
