"""The conjecture of section 2.4 of the paper, to exponential order, and figures 1 and 2 as one.

The paper: with many users, V orders are the best visit orders. It shows this by trying orders on
simulated data (figure 2), and explains it by the medians of the ranks (figure 1).

Here: a visit order is consistent if at each step the item's own rank is the cheapest free one; if
not, its divergence grows with the users. `docs/paper/conjecture.md` proves that V orders are
consistent and have the largest rate, for any alpha. The script computes where they are the only
consistent ones and where all orders are (from there on all medians of figure 1 are right), how
many there are in between, and, by exact sums over all orders and rankings, the divergence of the
best V over that of the best order: on expected data and on random data. A minute, full or not.
"""

import math
from collections.abc import Callable
from itertools import permutations, product

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numba import njit

import paper
import pseudomallows as pm
from best_orders import expected_costs, simulated_costs, values_of
from pseudomallows.distances.tallies import best_assignment
from pseudomallows.paper import count_consistent_orders, mean_costs
from pseudomallows.rankings import rank_randomly

USERS = (30, 100, 300, 1000, 3000)
SETTINGS = paper.Settings(
    reduced={
        "sizes": range(3, 31),
        "counts": [(n, alpha / 10) for n in (5, 7, 9) for alpha in range(2, 43)],
        "expected": list(product((5, 6, 7), USERS, (0.5, 1.0, 1.5, 2.0, 4.0))),
        "random": list(product((6,), USERS, (0.5, 1.0, 1.5, 2.0, 4.0))),
        "n_sets": 20,
    },
    full={
        "sizes": range(3, 51),
        "counts": [(n, alpha / 20) for n in (5, 7, 9) for alpha in range(4, 86)],
        "expected": list(product((5, 6, 7), USERS, (0.5, 1.0, 1.5, 2.0, 4.0))),
        "random": list(product((6,), USERS, (0.5, 1.0, 1.5, 2.0, 4.0))),
        "n_sets": 40,
    },
    smallest={
        "sizes": (3, 4, 5, 9),
        "counts": [(n, alpha) for n in (3, 5) for alpha in (0.5, 1.0, 1.5, 2.0)],
        "expected": list(product((5,), (100, 1000), (0.5, 1.5))),
        "random": list(product((5,), (100, 1000), (0.5, 1.5))),
        "n_sets": 4,
    },
)
TINY = 1e-250  # a divergence below it loses digits
NEAR = 1e-6  # of two divergences, relative: equally good


# Where V orders are the only consistent ones, and where all are


def all_are_consistent(n_items: int, alpha: float) -> bool:
    """No rank is as cheap for an item as its own."""
    costs = mean_costs(n_items, alpha)
    np.fill_diagonal(others := costs.copy(), np.inf)
    return bool((others.min(axis=1) > np.diag(costs)).all())


def others_are_consistent(n_items: int, alpha: float) -> bool:
    """Some item need not wait for all that are nearer to the middle; as the costs are convex, the
    last of these ranks tells."""
    costs = mean_costs(n_items, alpha)
    items = np.arange((n_items - 1) // 2)
    return bool((costs[items, n_items - 2 - items] > np.diag(costs)[items]).any())


def edge_median_is_right(n_items: int, alpha: float) -> bool:
    """Figure 1: the median rank of the first item is 1."""
    probabilities = pm.Mallows(np.arange(1, n_items + 1), alpha).rank_probabilities()
    return bool(probabilities[0, 0] > 0.5)


def lowest_alpha(holds: Callable[[int, float], bool], n_items: int) -> float:
    """Where it begins to hold as alpha grows."""
    low, high = 0.0, 1.0
    while not holds(n_items, high):
        low, high = high, 2 * high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(n_items, middle) else (middle, high)
    return high


# The divergence of every order


@njit(cache=True)
def fill_divergences(values, log_totals, orders, rankings, divergences):
    """KL(Pseudo-Mallows || posterior) of every order, as a sum of positive terms, which is precise
    however small it is. `values[ranking]`: log numerators, that of the mode 0."""
    log_evidence = 0.0
    for value in values:
        if value != 0.0:
            log_evidence += np.exp(value)
    log_evidence = np.log1p(log_evidence)
    for place, order in enumerate(orders):
        total = 0.0
        for row, ranking in enumerate(rankings):
            used, log_total = 0, 0.0
            for item in order:
                log_total += log_totals[item, used]
                used |= 1 << ranking[item]
            ratio = log_evidence - log_total  # the logarithm of q over p
            p, q = np.exp(values[row] - log_evidence), np.exp(values[row] - log_total)
            if abs(ratio) < 1.0:
                total += q * ratio - p * np.expm1(ratio)
            else:
                total += q * ratio - q + p
        divergences[place] = total


def divergences_of_orders(log_weights: paper.Array) -> paper.Array:
    """The divergence of each visit order, the orders as `permutations` gives them."""
    n_items = len(log_weights)
    items = np.arange(n_items)
    mode = best_assignment(-log_weights) - 1
    logs = log_weights - log_weights[items, mode][:, None]
    log_totals = np.zeros((n_items, 1 << n_items))
    for used in range((1 << n_items) - 1):
        free = logs[:, [rank for rank in range(n_items) if not used >> rank & 1]]
        best = free.argmax(axis=1)
        highest = free[items, best]
        terms = np.exp(free - highest[:, None])
        terms[items, best] = 0.0
        log_totals[:, used] = highest + np.log1p(terms.sum(axis=1))
    orders = np.array(list(permutations(range(n_items))))
    values = logs[items, orders].sum(axis=1)  # here they are rankings, from 0
    divergences = np.empty(len(orders))
    fill_divergences(values, log_totals, orders, orders, divergences)
    return divergences


def compare(log_weights: paper.Array, rank_sums: paper.Array, rng: np.random.Generator) -> dict:
    """The best V of the true and of the estimated consensus against the best order."""
    n_items = len(log_weights)
    values = divergences_of_orders(log_weights)
    known = values_of(values, pm.v_rankings(np.arange(1, n_items + 1)))
    own = values_of(values, pm.v_rankings(rank_randomly(rank_sums, rng)))
    lowest = values.min()
    return {
        "lowest": float(lowest),
        "lowest_v": float(known.min()),
        "estimated_v": float(own.min()),
        "median": float(np.median(values)),
        "as_good": int((values <= lowest * (1 + NEAR)).sum()),
    }


def run(setting: dict, seed: int) -> list[paper.Row]:
    """Rows of four parts: threshold, count, expected and random."""
    rows: list[paper.Row] = []
    for n_items in setting["sizes"]:
        row = {"part": "threshold", "n_items": n_items}
        row["others"] = lowest_alpha(others_are_consistent, n_items)
        row["all"] = lowest_alpha(all_are_consistent, n_items)
        row["edge_median"] = lowest_alpha(edge_median_is_right, n_items)
        rows.append(row)
    for n_items, alpha in setting["counts"]:
        number = count_consistent_orders(n_items, alpha)
        rows.append({"part": "count", "n_items": n_items, "alpha": alpha, "number": number})
    tasks = [("expected", *case, 0) for case in setting["expected"]]
    tasks += [("random", *case, k) for case in setting["random"] for k in range(setting["n_sets"])]
    for (task,) in paper.each(tasks):
        part, n_items, n_users, alpha, number = task
        rng = np.random.default_rng((seed, n_items, n_users, round(1000 * alpha), number))
        make = expected_costs if part == "expected" else simulated_costs
        costs = make(n_items, n_users, alpha, *([rng] if part == "random" else []))
        shared = {"part": part, "n_items": n_items, "n_users": n_users, "alpha": alpha}
        sums = np.arange(n_items) if part == "expected" else costs[:, 0]
        rows.append(shared | compare(-alpha / n_items * costs, sums, rng))
    return rows


def ratios(rows: list[paper.Row], what: str = "lowest_v") -> paper.Array:
    """Divergence over that of the best order, of data sets where there are digits to compare."""
    kept = [row for row in rows if row["lowest"] > TINY]
    return paper.column(kept, what) / paper.column(kept, "lowest") if kept else np.empty(0)


def summarise(rows: list[paper.Row]) -> str:
    """A line for each size, and for each setting of the divergences."""
    lines = [
        f"n {row['n_items']:2}: others than V from alpha {row['others']:.3f}, all from "
        f"{row['all']:.3f}; the median of the first item is 1 from {row['edge_median']:.3f}"
        for row in paper.select(rows, part="threshold")
    ]
    for part in ("expected", "random"):
        own = paper.select(rows, part=part)
        for key in paper.unique(own, "n_items", "alpha", "n_users"):
            names = ("n_items", "alpha", "n_users")
            some = paper.select(own, **dict(zip(names, key, strict=True)))
            found, estimated = ratios(some), ratios(some, "estimated_v")
            if len(found):
                lines.append(
                    f"{part:8} n {key[0]} alpha {key[1]:g} N {key[2]:5}: best order "
                    f"{np.median(paper.column(some, 'lowest')):.2g}; V of the truth over it: "
                    f"{np.median(found):.3f} (at most {found.max():.3g}), of the mean ranks "
                    f"{np.median(estimated):.3f}; as good as the best: "
                    f"{np.median(paper.column(some, 'as_good')):.0f} orders"
                )
    return "\n".join(lines)


def draw(rows: list[paper.Row]) -> Figure:
    """The phase diagram, the number of consistent orders, and V against the best order."""
    title = "V orders are always consistent; with many users no order is better"
    figure, axes = paper.panels(rows, title, 2, 2, width=10, height=7.6)
    draw_phases(axes[0, 0], paper.select(rows, part="threshold"))
    draw_counts(axes[0, 1], paper.select(rows, part="count"))
    for panel, part in zip(axes[1], ("expected", "random"), strict=True):
        draw_ratios(panel, paper.select(rows, part=part))
    axes[1, 1].sharey(axes[1, 0])
    axes[1, 0].set_ylabel("KL of the best V /\nKL of the best order")
    axes[1, 0].legend(title="alpha", ncols=2)
    return figure


def draw_phases(panel: Axes, rows: list[paper.Row]) -> None:
    """Where V orders are the only consistent ones, and where all are."""
    n_items, lower, upper = (paper.column(rows, name) for name in ("n_items", "others", "all"))
    top = 1.1 * upper.max()
    panel.fill_between(n_items, 0, lower, color=paper.COLOURS["blue"], alpha=0.5, linewidth=0)
    panel.fill_between(n_items, lower, upper, color=paper.COLOURS["sky"], alpha=0.3, linewidth=0)
    panel.fill_between(n_items, upper, top, color=paper.COLOURS["yellow"], alpha=0.3, linewidth=0)
    edge = paper.column(rows, "edge_median")
    words = "figure 1: the median of item 1 is its own rank"
    panel.plot(n_items, edge, ".", color="black", label=words)
    panel.legend(loc="upper left")
    first, last = n_items[0], n_items[-1]
    panel.text(first + 0.2 * (last - first), 0.7 * top, "all orders")
    panel.text(last, 0.25 * top, "V orders and some others", ha="right")
    arrow = {"arrowstyle": "->"}
    panel.annotate("V orders only", (last, 0), (last, 0.1 * top), arrowprops=arrow, ha="right")
    panel.set(title="consistent visit orders", xlabel="items n", ylabel="alpha", ylim=(0, top))
    paper.whole(panel)


def draw_counts(panel: Axes, rows: list[paper.Row]) -> None:
    """The share of the orders that are consistent."""
    for n_items in paper.unique(rows, "n_items"):
        own = paper.select(rows, n_items=n_items)
        shares = paper.column(own, "number") / math.factorial(n_items)
        (line,) = panel.semilogy(paper.column(own, "alpha"), shares, label=f"n = {n_items}")
        of_v = 2 ** (n_items // 2) / math.factorial(n_items)
        panel.axhline(of_v, color=line.get_color(), linestyle=":", linewidth=1)
    panel.set(title="share of consistent orders (dotted: V orders)", xlabel="alpha")
    panel.legend()


def draw_ratios(panel: Axes, rows: list[paper.Row]) -> None:
    """V over best, against the number of users: the largest size."""
    n_items = max(row["n_items"] for row in rows)
    for alpha, mark in zip(paper.unique(rows, "alpha"), "os^Dv", strict=False):
        own = paper.select(rows, n_items=n_items, alpha=alpha)
        users = paper.unique(own, "n_users")
        points = [(n, np.median(found)) for n in users if len(found := ratios_of(own, n))]
        panel.semilogx(*zip(*points, strict=True), f"{mark}-", label=f"{alpha:g}")
    words = "expected data" if rows[0]["part"] == "expected" else "random data, median"
    panel.set(title=f"{words}, n = {n_items}", xlabel="users N")


def ratios_of(rows: list[paper.Row], n_users: int) -> paper.Array:
    """Those of one number of users."""
    return ratios(paper.select(rows, n_users=n_users))


def main(arguments: list[str] | None = None) -> None:
    """Run and draw."""
    paper.main(__doc__, __file__, SETTINGS, run, draw, summarise, arguments)


if __name__ == "__main__":
    main()
