"""Figure 1 of the paper: the marginal medians of the ranks against alpha.

The paper: with 9 items in the true order 1..9, the median rank of item k goes to k as alpha grows,
and to the middle, 5, as alpha falls to 0; the items at the edges deviate most. That is why the
middle is visited first. The paper takes medians of 50,000 draws on a grid of alphas; here they come
from the exact marginals, without draws, so there is no noise and the seed does not matter.
Seconds in any setting.
"""

import numpy as np
from matplotlib.figure import Figure

import paper
import pseudomallows as pm

SETTINGS = paper.Settings(
    reduced={"n_items": 9, "highest": 6.0, "n_alphas": 301},
    full={"n_items": 9, "highest": 6.0, "n_alphas": 1201},
    smallest={"n_items": 9, "highest": 6.0, "n_alphas": 13},
)


def medians(n_items: int, alpha: float) -> paper.Array:
    """The median rank of each item; halves where it lies between two ranks."""
    below = np.cumsum(pm.Mallows(np.arange(1, n_items + 1), alpha).rank_probabilities(), axis=1)
    low = 1 + (below < 0.5 - 1e-12).sum(axis=1)
    high = 1 + (below < 0.5 + 1e-12).sum(axis=1)
    return (low + high) / 2


def run(setting: dict, seed: int) -> list[paper.Row]:
    """A row for each alpha and item."""
    n_items = setting["n_items"]
    return [
        {"n_items": n_items, "alpha": round(float(alpha), 6), "item": item, "median": float(median)}
        for alpha in np.linspace(0, setting["highest"], setting["n_alphas"])
        for item, median in enumerate(medians(n_items, alpha), start=1)
    ]


def needed_alpha(rows: list[paper.Row], item: int) -> float | None:
    """The smallest alpha of the grid from which on the median of the item is its own rank."""
    wrong = [row["alpha"] for row in rows if row["item"] == item and row["median"] != item]
    right = [row["alpha"] for row in rows if row["item"] == item and row["median"] == item]
    later = [alpha for alpha in right if not wrong or alpha > max(wrong)]
    return min(later) if later else None


def summarise(rows: list[paper.Row]) -> str:
    """Where each median reaches the item's own rank."""
    items = range(1, (rows[0]["n_items"] + 1) // 2 + 1)
    parts = [f"item {item}: {needed_alpha(rows, item)}" for item in items]
    return "alpha from which on the median is the item's own rank: " + "; ".join(parts)


def draw(rows: list[paper.Row]) -> Figure:
    """A panel for each pair of items that are equally far from the middle."""
    n_items = rows[0]["n_items"]
    half = (n_items + 1) // 2
    title = (
        f"The nearer the edge, the larger the alpha at which the median is right (n = {n_items})"
    )
    figure, axes = paper.panels(rows, title, 1, half, width=12, height=3.4, sharey=True)
    for panel, item in zip(axes[0], range(1, half + 1), strict=True):
        pair = {n_items + 1 - item: "red"} | {item: "blue"}
        for member, name in pair.items():
            own = paper.select(rows, item=member)
            colour = paper.COLOURS[name]
            panel.axhline(member, color=colour, linestyle=":", linewidth=1)
            panel.step(
                paper.column(own, "alpha"), paper.column(own, "median"), color=colour, where="post"
            )
            panel.text(
                rows[-1]["alpha"], member, f"item {member}", color=colour, ha="right", va="bottom"
            )
        panel.set(xlabel="alpha", ylim=(0.5, n_items + 0.9))
        panel.set_title(" and ".join(f"item {member}" for member in sorted(pair)))
    axes[0, 0].set_ylabel("median rank")
    axes[0, 0].set_yticks(range(1, n_items + 1))
    return figure


def main(arguments: list[str] | None = None) -> None:
    """Run and draw."""
    paper.main(__doc__, __file__, SETTINGS, run, draw, summarise, arguments)


if __name__ == "__main__":
    main()
