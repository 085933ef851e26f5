"""Figure 7 of the paper: visit orders for the rankings of single users.

The paper: to draw a user's ranking around a known consensus (n = 20, alpha 15), the items should be
visited in uniformly random order: then the marginals are those of the Mallows law, while V-rankings
and the order top to bottom bias the items that come last. 1,000 draws in its text, 2,000 in its
caption, on both sides.

Here the Mallows side is exact, and the Pseudo-Mallows draws are many, so that small biases are
seen. Beside the marginal divergence there is the full one (its mean over visit orders), which is
what the ELBO measures, and the largest bias of a mean rank. "2,000 exact draws" shows
what noise alone would give in the paper's setting. Seconds in any setting.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import paper
import pseudomallows as pm
from pseudomallows.kernels.pseudo_draws import cells_of, draw_consensuses
from pseudomallows.rankings import orderings_of
from pseudomallows.scores import rank_divergence, share_of_ranks

SETTINGS = paper.Settings(
    reduced={"n_items": 20, "alpha": 15.0, "n_draws": 100_000},
    full={"n_items": 20, "alpha": 15.0, "n_draws": 1_000_000},
    smallest={"n_items": 20, "alpha": 15.0, "n_draws": 5000},
)
PAPER_DRAWS = 2000
NAMES = {
    "exact": "Mallows, exact",
    "uniform": "uniform orders",
    "v": "V-rankings",
    "top_bottom": "top to bottom",
    "noise": "2,000 exact draws",
}


def visit_orders(name: str, n_items: int, n_draws: int, rng: np.random.Generator) -> paper.Array:
    """An order for each draw, the consensus being 1..n."""
    if name == "top_bottom":
        return np.tile(np.arange(n_items), (n_draws, 1))
    values = rng.random((n_draws, n_items))  # in random order
    if name == "v":  # from the middle outwards, equals in random order
        values += np.abs(2 * np.arange(n_items) + 1 - n_items)
    return orderings_of(values)


def draw_rankings(
    orders: paper.Array, alpha: float, rng: np.random.Generator
) -> tuple[paper.Array, paper.Array]:
    """Rankings around 1..n, item by item, and their log probabilities given the orders."""
    n_draws, n_items = orders.shape
    places = np.arange(n_items)
    log_weights = -alpha / n_items * np.abs(places[:, None] - places)
    rankings = np.empty((n_draws, n_items), dtype=np.int32)
    logs = np.empty(n_draws)
    cells = cells_of(log_weights, has_foresight=False)
    draw_consensuses(rng.integers(2**63), 0, cells, orders, False, rankings, logs)
    return rankings, logs


def run(setting: dict, seed: int) -> list[paper.Row]:
    """A table of marginals for each way to choose orders, and its distances from the exact one."""
    n_items, alpha, n_draws = (setting[name] for name in ("n_items", "alpha", "n_draws"))
    rng = np.random.default_rng(seed)
    mallows = pm.Mallows(np.arange(1, n_items + 1), alpha)
    exact = mallows.rank_probabilities()
    tables, full = {"exact": exact}, {"exact": 0.0}
    for name in ("uniform", "v", "top_bottom"):
        orders = visit_orders(name, n_items, n_draws, rng)
        rankings, logs = draw_rankings(orders, alpha, rng)
        tables[name] = share_of_ranks(rankings)
        full[name] = float((logs - mallows.log_probability(rankings)).mean())
    tables["noise"], full["noise"] = share_of_ranks(mallows.draw(PAPER_DRAWS, rng)), 0.0
    rows = []
    for name, table in tables.items():
        bias = np.abs((table - exact) @ np.arange(1, n_items + 1))
        shared = {"n_items": n_items, "alpha": alpha, "n_draws": n_draws, "orders": name}
        shared |= {"divergence": rank_divergence(table, exact), "full_divergence": full[name]}
        shared |= {"largest_bias": float(bias.max()), "biased_item": int(bias.argmax()) + 1}
        rows += paper.table_rows(table, ("item", "rank"), "probability", **shared)
    return rows


def firsts(rows: list[paper.Row]) -> dict[str, paper.Row]:
    """One row for each way to choose orders."""
    return {name: paper.select(rows, orders=name)[0] for name in paper.unique(rows, "orders")}


def summarise(rows: list[paper.Row]) -> str:
    """A line for each way to choose orders."""
    return "\n".join(
        f"{NAMES[name]:18} marginal KL {row['divergence']:.4f}, full KL "
        f"{row['full_divergence']:.3f}, largest bias {row['largest_bias']:.3f} ranks "
        f"(item {row['biased_item']})"
        for name, row in firsts(rows).items()
    )


def draw(rows: list[paper.Row]) -> Figure:
    """Heat plots, then the bias and the spread of each item's rank."""
    found = firsts(rows)
    title = "Uniform orders are nearly centred but too wide; others bias the items that come last"
    figure, axes = paper.panels(rows, title, 2, 3, width=10.5, height=6.8)
    shown = ("exact", "uniform", "v", "top_bottom")
    for panel, name in zip(axes.flat, shown, strict=False):
        table = paper.table_of(paper.select(rows, orders=name), ("item", "rank"), "probability")
        words = "" if name == "exact" else f"\nmarginal KL {found[name]['divergence']:.2f}"
        mesh = paper.heat(panel, table, NAMES[name] + words, "item, by true rank", "rank", 0.4)
    figure.colorbar(mesh, ax=axes[0], label="probability", extend="max", shrink=0.8)
    draw_moments(axes[1, 1], axes[1, 2], rows)
    return figure


def draw_moments(left: Axes, right: Axes, rows: list[paper.Row]) -> None:
    """The mean rank of each item minus the exact one, and its standard deviation."""
    styles = {"exact": "k-", "uniform": "o-", "v": "s-", "top_bottom": "^-"}
    ranks = np.arange(1, rows[0]["n_items"] + 1)
    exact = None
    for name, style in styles.items():
        table = paper.table_of(paper.select(rows, orders=name), ("item", "rank"), "probability")
        means = table @ ranks
        exact = means if exact is None else exact
        left.plot(ranks, means - exact, style, label=NAMES[name])
        right.plot(ranks, np.sqrt(np.maximum(table @ ranks**2 - means**2, 0)), style)
    left.set(title="bias of the mean rank", xlabel="item, by true rank", ylabel="ranks")
    right.set(title="standard deviation", xlabel="item, by true rank", ylabel="ranks")
    right.set_ylim(0, None)
    left.legend(loc="lower left")
    paper.whole(left, "x")
    paper.whole(right, "x")


def main(arguments: list[str] | None = None) -> None:
    """Run and draw."""
    paper.main(__doc__, __file__, SETTINGS, run, draw, summarise, arguments)


if __name__ == "__main__":
    main()
