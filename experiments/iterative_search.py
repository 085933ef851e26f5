"""Figures 3 and 4 of the paper: the iterative search for the best visit order.

The paper: for 15 items and more, Algorithm 2 (`pm.paper.search`) is started near a V-ranking of
the true consensus; whenever it comes to a V-ranking the marginal divergence is very low (figure 3),
and it "typically stops exactly at a V-ranking" (figure 4). Its divergences come from draws.

Here they are exact, by sums over sets of ranks, so one sees what the noise of draws hides; the
search by 200 draws, as in the paper's enumeration, is run on the same data. Only the
setting of figure 3 is printed (N = 500, n = 15, alpha 2.5). Every V-ranking of the true
consensus is evaluated too, so that the search can be compared with the best of them. A polished
search goes on from the best order by single moves as long as one helps.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import paper
import pseudomallows as pm
from pseudomallows.paper.search import exact_divergence, follow
from pseudomallows.rankings import orderings_of
from pseudomallows.scores import share_of_ranks

CASES = [(15, 500, 2.5), (15, 500, 1.0), (20, 500, 2.5)]
SETTINGS = paper.Settings(
    reduced={"cases": CASES, "n_sets": 5, "n_iterations": 50, "n_draws": 200, "n_drawn": 3},
    full={"cases": CASES, "n_sets": 20, "n_iterations": 100, "n_draws": 200, "n_drawn": 20},
    smallest={
        "cases": [(7, 500, 1.0)],
        "n_sets": 6,
        "n_iterations": 10,
        "n_draws": 50,
        "n_drawn": 1,
    },
)
METHODS = {"exact": "exact divergences", "polished": "exact, polished", "draws": "200 draws"}


def start_near(v_ranking: paper.Array, rng: np.random.Generator) -> paper.Array:
    """A visit order near a V-ranking: as many exchanges of neighbours as there are items."""
    order = orderings_of(v_ranking)
    for place in rng.integers(len(order) - 1, size=len(order)):
        order[[place, place + 1]] = order[[place + 1, place]]
    return order


def distance_to_v(order: paper.Array) -> int:
    """Footrule distance to the nearest V-ranking of 1..n.

    The two places of a pair may be exchanged, so each pair takes the better of the two ways.
    """
    n_items = len(order)
    ranking, odd = orderings_of(order) + 1, n_items % 2
    middle = n_items // 2
    total = abs(int(ranking[middle]) - 1) if odd else 0
    for pair in range(middle):
        upper, lower = int(ranking[middle - 1 - pair]), int(ranking[middle + odd + pair])
        first = 2 * pair + 1 + odd
        total += min(
            abs(upper - first) + abs(lower - first - 1),
            abs(lower - first) + abs(upper - first - 1),
        )
    return total


def run_one(case: tuple, number: int, setting: dict, seed: int) -> list[paper.Row]:
    """All searches on one data set: a row for each iteration."""
    n_items, n_users, alpha = case
    rng = np.random.default_rng((seed, n_items, n_users, round(1000 * alpha), number))
    rankings = pm.Mallows(np.arange(1, n_items + 1), alpha).draw(n_users, rng)
    measure = exact_divergence(pm.PseudoMallows(rankings, alpha))
    all_v = pm.v_rankings(np.arange(1, n_items + 1))
    of_v = [measure(order) for order in orderings_of(all_v)]
    start, n_iterations = start_near(all_v[rng.integers(len(all_v))], rng), setting["n_iterations"]
    searches = {
        "exact": follow(start, measure, n_iterations, polish=False),
        "polished": follow(start, measure, n_iterations, polish=True),
    }
    if number < setting["n_drawn"] and case == setting["cases"][0]:
        options = {"n_iterations": n_iterations, "n_draws": setting["n_draws"], "rng": rng}
        searches["draws"] = pm.paper.search(rankings, alpha, start, **options)
    rows = []
    for method, found in searches.items():
        shared = {"n_items": n_items, "n_users": n_users, "alpha": alpha, "data_set": number}
        shared |= {"lowest_v": min(of_v), "mean_v": float(np.mean(of_v)), "method": method}
        for iteration, order in enumerate(found.visit_orders):
            rows.append(
                shared
                | {
                    "iteration": iteration,
                    "divergence": measure(order),
                    "distance": distance_to_v(order),
                    "order": " ".join(map(str, orderings_of(order) + 1)),
                }
            )
    return rows


def run(setting: dict, seed: int) -> list[paper.Row]:
    """All data sets of all cases."""
    return [
        row
        for case, number in paper.each(setting["cases"], range(setting["n_sets"]))
        for row in run_one(case, number, setting, seed)
    ]


def ends(rows: list[paper.Row], which: str = "last") -> list[paper.Row]:
    """The last row, or the one of the smallest divergence, of each search."""
    names = ("n_items", "n_users", "alpha", "data_set", "method")
    found: dict[tuple, paper.Row] = {}
    for row in rows:
        key = tuple(row[name] for name in names)
        if which == "last" or key not in found or row["divergence"] < found[key]["divergence"]:
            found[key] = row
    return list(found.values())


def summarise(rows: list[paper.Row]) -> str:
    """A line for each case, method, and end of the search."""
    lines = []
    for which in ("last", "best"):
        of_which = ends(rows, which)
        for key in paper.unique(of_which, "n_items", "n_users", "alpha", "method"):
            names = ("n_items", "n_users", "alpha", "method")
            own = paper.select(of_which, **dict(zip(names, key, strict=True)))
            found, v = paper.column(own, "divergence"), paper.column(own, "lowest_v")
            mean_v = paper.column(own, "mean_v")
            lines.append(
                f"n {key[0]} N {key[1]} alpha {key[2]} {key[3]:8} {which}: at a V "
                f"{sum(row['distance'] == 0 for row in own)} of {len(own)}, mean distance "
                f"{paper.column(own, 'distance').mean():.1f}; median KL {np.median(found):.3g}, "
                f"best V {np.median(v):.3g}, mean V {np.median(mean_v):.3g}; below the best V in "
                f"{(found < v - 1e-6).sum()}, below the mean V in {(found < mean_v - 1e-6).sum()}"
            )
    return "\n".join(lines)


def draw_trace(panel: Axes, rows: list[paper.Row], title: str, farthest: float) -> Axes:
    """The divergence on the left, the distance to the nearest V-ranking on the right."""
    blue, red = paper.COLOURS["blue"], paper.COLOURS["red"]
    iterations = paper.column(rows, "iteration")
    panel.semilogy(iterations, np.maximum(paper.column(rows, "divergence"), 1e-6), "o-", color=blue)
    panel.axhline(rows[0]["lowest_v"], color="0.3", linestyle=":", linewidth=1.2)
    panel.set(title=title, xlabel="iteration")
    panel.tick_params(axis="y", colors=blue)
    right = panel.twinx()
    right.plot(iterations, paper.column(rows, "distance"), "^--", color=red, linewidth=0.8)
    right.set_ylim(0, farthest)
    right.tick_params(axis="y", colors=red)
    paper.whole(panel, "x")
    return right


def draw(rows: list[paper.Row]) -> Figure:
    """Traces of the first data sets, and heat plots of the last orders."""
    title = "The search jumps, as in the paper; it ends near the V, seldom exactly on it"
    figure, axes = paper.panels(rows, title, 3, 3, width=11, height=9.8)
    n_items, n_users, alpha = paper.unique(rows, "n_items", "n_users", "alpha")[0]
    first = paper.select(rows, n_items=n_items, n_users=n_users, alpha=alpha)
    shown = [row for row in first if row["method"] in ("exact", "draws") and row["data_set"] < 3]
    farthest = 1.05 * max(row["distance"] for row in shown)
    for line, method in zip(axes, ("exact", "draws"), strict=False):
        for number, panel in enumerate(line):
            own = paper.select(first, method=method, data_set=number)
            if not own:
                panel.set_axis_off()
                continue
            name = f"n = {n_items}, N = {n_users}, alpha {alpha:g}\n"
            name += f"{METHODS[method]}, data set {number + 1}"
            if panel is not axes[0, 0]:
                panel.sharey(axes[0, 0])
            right = draw_trace(panel, own, name, farthest)
            if panel is not line[0]:
                panel.tick_params(labelleft=False)
            if panel is not line[-1]:
                right.tick_params(labelright=False)
        line[0].set_ylabel("marginal KL (dotted: best V)", color=paper.COLOURS["blue"])
        right.set_ylabel("distance to nearest V", color=paper.COLOURS["red"])
    last = paper.select(ends(rows), method="exact")
    cases = paper.unique(last, "n_items", "n_users", "alpha")
    for panel, case in zip(axes[2], cases, strict=False):
        own = paper.select(last, n_items=case[0], n_users=case[1], alpha=case[2])
        orders = np.array([[int(place) for place in row["order"].split()] for row in own])
        name = f"n = {case[0]}, N = {case[1]}, alpha {case[2]:g}\nlast orders, exact"
        shares = share_of_ranks(orders)
        mesh = paper.heat(panel, shares, name, "item, by true rank", highest=1)
    axes[2, 0].set_ylabel("visited as number")
    figure.colorbar(mesh, ax=axes[2], label="share of data sets")
    for panel in axes[2, len(cases) :]:
        panel.set_axis_off()
    return figure


def main(arguments: list[str] | None = None) -> None:
    """Run and draw."""
    paper.main(__doc__, __file__, SETTINGS, run, draw, summarise, arguments)


if __name__ == "__main__":
    main()
