"""Figure 6 of the paper: the best sigma as a function of alpha, for several N and n.

The paper: the sigma with the smallest marginal divergence falls towards 0 as alpha and N grow and
as n falls; with alpha and N large or n small, sigma hardly matters and 0 is safe. Ten data sets for
each alpha, a grid of sigmas; the values of N and n, and the grids, are not printed.

Here the posterior is exact, by sums over sets of ranks, and the Pseudo-Mallows marginals come from
draws, with the floor of 1e-4 on both sides. Beside the best of the grid stands `sigma="auto"`,
which does not know the posterior. Ten minutes in full.
"""

from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

import paper
import pseudomallows as pm
from pseudomallows.scores import rank_divergence, share_of_ranks
from sigma_heat import exact_marginals

SETTINGS = paper.Settings(
    reduced={
        "sizes": (8, 15),
        "many": (50, 200, 1000),
        "alphas": (0.5, 1.0, 2.0, 3.0, 4.0, 6.0),
        "steps": (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 1.0),
        "n_sets": 10,
        "n_draws": 2000,
    },
    full={
        "sizes": (10, 20),
        "many": (50, 200, 1000),
        "alphas": tuple(np.arange(1, 13) / 2),
        "steps": tuple(np.arange(0, 21) / 20),
        "n_sets": 10,
        "n_draws": 10_000,
    },
    smallest={
        "sizes": (8,),
        "many": (50, 1000),
        "alphas": (1.0, 4.0),
        "steps": (0.0, 0.1, 0.2, 0.4),
        "n_sets": 3,
        "n_draws": 1000,
    },
)
SAFE = 1.05, 0.02  # sigma 0 does as well if its divergence is below 1.05 times the best, plus 0.02
LINES = {"median": ("sigma", "orange"), 'median of sigma="auto"': ("auto_sigma", "green")}


def run(setting: dict, seed: int) -> list[paper.Row]:
    """A row for each data set and sigma; the grid of sigmas is in parts of n."""
    rows, alphas = [], map(float, setting["alphas"])
    cases = paper.each(setting["sizes"], setting["many"], alphas, range(setting["n_sets"]))
    for n_items, n_users, alpha, number in cases:
        key = (seed, n_items, n_users, round(1000 * alpha), number)
        shared = {"n_items": n_items, "n_users": n_users, "alpha": alpha, "data_set": number}
        rows += [shared | row for row in divergences(n_items, n_users, alpha, setting, key)]
    return rows


def divergences(
    n_items: int, n_users: int, alpha: float, setting: dict, key: tuple
) -> Iterator[paper.Row]:
    """The marginal divergence of each sigma of the grid, and of "auto", on one data set."""
    rng = np.random.default_rng(key)
    rankings = pm.Mallows(np.arange(1, n_items + 1), alpha).draw(n_users, rng)
    exact = exact_marginals(pm.PseudoMallows(rankings, alpha))
    sigmas = [float(step) * n_items for step in setting["steps"]]
    for sigma in (*sigmas, "auto"):
        law = pm.PseudoMallows(rankings, alpha, sigma=sigma)
        draws = law.draw(setting["n_draws"], rng)
        row = {"by": "auto" if sigma == "auto" else "grid", "sigma": round(law.sigma, 6)}
        yield row | {"divergence": rank_divergence(share_of_ranks(draws), exact)}


def best_rows(rows: list[paper.Row]) -> list[paper.Row]:
    """For each data set the best sigma of the grid, whether sigma 0 does as well, and "auto"."""
    groups: dict[tuple, list[paper.Row]] = {}
    for row in rows:
        key = (row["n_items"], row["n_users"], row["alpha"], row["data_set"])
        groups.setdefault(key, []).append(row)
    found = []
    for group in groups.values():
        grid, (auto,) = (paper.select(group, by=way) for way in ("grid", "auto"))
        best = min(grid, key=lambda row: row["divergence"])
        plain = next(row["divergence"] for row in grid if row["sigma"] == 0)
        safe = plain <= SAFE[0] * best["divergence"] + SAFE[1]
        by_auto = {"auto_sigma": auto["sigma"], "auto": auto["divergence"]}
        found.append(best | {"plain": plain, "safe": safe} | by_auto)
    return found


def summarise(rows: list[paper.Row]) -> str:
    """Median best sigma, how much it gains, and "auto", for each N, n and alpha."""
    best, lines = best_rows(rows), []
    for n_items, n_users in paper.unique(best, "n_items", "n_users"):
        parts = []
        for alpha in paper.unique(best, "alpha"):
            own = paper.select(best, n_items=n_items, n_users=n_users, alpha=alpha)
            sigma = np.median(paper.column(own, "sigma"))
            names = ("divergence", "plain", "auto_sigma", "auto")
            kl, plain, auto_sigma, auto = (np.median(paper.column(own, name)) for name in names)
            parts.append(
                f"alpha {alpha:g}: {sigma:.2g} (KL {plain:.2g} -> {kl:.2g}, sigma 0 as good "
                f"{sum(row['safe'] for row in own)}/{len(own)}; auto {auto_sigma:.2g}, {auto:.2g})"
            )
        lines.append(f"n {n_items} N {n_users}: " + "; ".join(parts))
    return "\n".join(lines)


def draw(rows: list[paper.Row]) -> Figure:
    """A panel for each N and n: a point for each data set, a line through the medians."""
    best = best_rows(rows)
    sizes, many = paper.unique(best, "n_items"), paper.unique(best, "n_users")
    title = (
        "The best sigma falls as alpha and N grow; where points are hollow, sigma 0 does as well"
    )
    shape = {"width": 10.5, "height": 0.8 + 2.8 * len(sizes)}
    figure, axes = paper.panels(
        rows, title, len(sizes), len(many), sharex=True, sharey="row", **shape
    )
    rng = np.random.default_rng(0)  # moves points aside, so that they do not hide each other
    for line, n_items in zip(axes, sizes, strict=True):
        for panel, n_users in zip(line, many, strict=True):
            own = paper.select(best, n_items=n_items, n_users=n_users)
            alphas = sorted(paper.unique(own, "alpha"))
            for safe, fill in ((False, paper.COLOURS["blue"]), (True, "none")):
                some = paper.select(own, safe=safe)
                x = paper.column(some, "alpha") + rng.uniform(-0.22, 0.22, len(some))
                panel.scatter(
                    x, [row["sigma"] for row in some], 16, fill, edgecolors=paper.COLOURS["blue"]
                )
            for name, colour in LINES.values():
                values = [np.median([r[name] for r in own if r["alpha"] == a]) for a in alphas]
                panel.plot(alphas, values, color=paper.COLOURS[colour])
            panel.set_title(f"n = {n_items}, N = {n_users}")
        line[0].set_ylabel("sigma")
    for panel in axes[-1]:
        panel.set_xlabel("alpha")
    dot = {"color": paper.COLOURS["blue"], "marker": "o", "linestyle": ""}
    marks = [Line2D([], [], **dot, label="best of a data set")]
    marks += [Line2D([], [], **dot, markerfacecolor="none", label="the same, 0 does as well")]
    marks += [Line2D([], [], color=paper.COLOURS[c], label=w) for w, (_, c) in LINES.items()]
    paper.legend_below(figure, marks)
    return figure


def main(arguments: list[str] | None = None) -> None:
    """Run and draw."""
    paper.main(__doc__, __file__, SETTINGS, run, draw, summarise, arguments)


if __name__ == "__main__":
    main()
