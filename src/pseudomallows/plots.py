"""Figures: `pm.plots.heat`, `pm.plots.intervals` and others. This module alone imports the plotting
library.

As in the report, figures number clusters from 1; the argument `cluster` counts from 0.
"""

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .evaluation.figures import Evaluation
from .posterior.posterior import Posterior
from .rankings import check_count, orderings_of
from .sampling.choose_clusters import ClusterCurve
from .sampling.choose_distance import DistanceScores

try:
    import matplotlib.pyplot as plt
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator
except ModuleNotFoundError as error:  # pragma: no cover
    raise ModuleNotFoundError(
        "plots need matplotlib: pip install 'pseudomallows[plots]'", name=error.name
    ) from None

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOUR = "#2f7fb3"
COLOURS = ["#2f7fb3", "#e08a3c", "#3c8d5a", "#8e5ea2", "#b3403a", "#7f7f7f", "#c9a227", "#17a2a2"]
STYLE: Any = {  # of every figure that is made here
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": f"cycler(color={COLOURS})",
    "font.size": 10,
    "legend.frameon": False,
}
MAX_NAMES = 60  # beyond this, names of items would overlap, and are left out


def heat(posterior: Posterior, cluster: int = 0, ax: "Axes | None" = None) -> "Axes":
    """Heat plot of the rank probabilities, the items in the order of the consensus."""
    ax = _axes(ax, width=6.4, height=5.6)
    order = orderings_of(posterior.point_consensus("cp", cluster))
    table = posterior.rank_probabilities(cluster)[order].T
    _draw_map(ax, posterior, order, table, "probability", cmap="Blues", vmin=0)
    ax.set(ylabel="rank", title=_title("Rank probabilities", posterior, cluster))
    _count_whole(ax.yaxis)
    return ax


def pairs(posterior: Posterior, cluster: int = 0, ax: "Axes | None" = None) -> "Axes":
    """Heat map: the probability that the item of a row comes before that of a column in the
    consensus, the items in its order."""
    ax = _axes(ax, width=6.8, height=5.8)
    order = orderings_of(posterior.point_consensus("cp", cluster))
    table = posterior.pair_probabilities(cluster)[np.ix_(order, order)]
    np.fill_diagonal(table, np.nan)
    label = "probability that the row comes first"
    _draw_map(ax, posterior, order, table, label, cmap="RdBu", vmin=0, vmax=1)
    ax.set_facecolor("0.8")  # of the diagonal
    ax.set(title=_title("Who comes before whom", posterior, cluster), aspect="equal")
    ax.set_ylabel("items, by consensus")
    if posterior.n_items <= MAX_NAMES:
        names = [_text(posterior.items[item]) for item in order]
        ax.set_yticks(np.arange(1, len(names) + 1), names)
    else:
        _count_whole(ax.yaxis)
    return ax


def intervals(
    posterior: Posterior,
    probability: float = 0.95,
    cluster: int = 0,
    ax: "Axes | None" = None,
) -> "Axes":
    """Highest-density interval and mean of each item's rank, the best item on top."""
    n_items = posterior.n_items
    ax = _axes(ax, width=6.4, height=min(1.2 + 0.24 * n_items, 14))
    rows = posterior.summary(cluster, probability)
    places = np.arange(1, n_items + 1)
    ax.hlines(
        places,
        [row["lowest"] - 0.3 for row in rows],  # so that an interval of one rank is seen
        [row["highest"] + 0.3 for row in rows],
        color=COLOUR,
        alpha=0.45,
        linewidth=min(5, 300 / n_items),
    )
    ax.plot(
        [row["mean"] for row in rows], places, "o", color=COLOUR, markersize=min(5, 300 / n_items)
    )
    ax.invert_yaxis()
    ax.set(
        xlabel="rank",
        title=_title(f"Mean rank and {probability:.0%} interval", posterior, cluster),
        xlim=(0.5, n_items + 0.5),
    )
    _count_whole(ax.xaxis)
    if n_items <= MAX_NAMES:
        ax.set_yticks(places, [_text(row["item"]) for row in rows])
    else:
        ax.set_ylabel("items, by consensus")
    return ax


def trace(
    posterior: Posterior,
    item: Any = None,
    cluster: int = 0,
    ax: "Axes | None" = None,
) -> "Axes":
    """Trace of each chain: of alpha, or of the rank of an item (by name); as drawn, unweighted."""
    ax = _axes(ax, width=7.5, height=3.2)
    for chain, values in enumerate(_series(posterior, item, cluster)):
        ax.plot(np.arange(1, len(values) + 1), values, linewidth=0.8, label=f"chain {chain + 1}")
    ax.set(xlabel="draw", ylabel=_series_name(item))
    if item is not None:  # ranks are whole
        _count_whole(ax.yaxis)
    ax.legend(loc="upper right", frameon=False, fontsize="small", ncols=4)
    return ax


def traces(
    posterior: Posterior,
    items: Sequence[Any] | None = None,
    cluster: int = 0,
    n_columns: int = 2,
) -> "Figure":
    """A grid of traces: alpha first, then the rank of each of these items (by name); by default, of
    the first five of the consensus."""
    chosen = posterior.point_consensus(cluster=cluster, names=True)[:5] if items is None else items
    shown, n_columns = [None, *chosen], check_count(n_columns, "n_columns")
    n_rows = -(-len(shown) // n_columns)
    size = (4.2 * n_columns, 2.1 * n_rows)
    figure, grid = _subplots(size, nrows=n_rows, ncols=n_columns, sharex=True, squeeze=False)
    for ax, item in zip(grid.ravel(), shown, strict=False):
        trace(posterior, item, cluster, ax)
        ax.legend_.remove()
        ax.set(xlabel="", ylabel="")
        ax.set_title(_series_name(item), fontsize="medium")
    for ax in grid.ravel()[len(shown) :]:
        ax.set_visible(False)
    figure.supxlabel("draw", fontsize="medium")
    return figure


def top_k(
    posterior: Posterior,
    k: int = 3,
    cluster: int = 0,
    n_items: int = 15,
    ax: "Axes | None" = None,
) -> "Axes":
    """The probability that an item is among the first `k` of the consensus, the best item on
    top."""
    k = min(check_count(k, "k"), posterior.n_items)
    n_shown = min(check_count(n_items, "n_items"), posterior.n_items)
    first = posterior.shares_of_ranks(np.arange(posterior.n_items), k, cluster).sum(axis=1)
    order = np.argsort(-first, kind="stable")[:n_shown]
    ax = _axes(ax, width=6.4, height=1.2 + 0.26 * n_shown)
    bars = ax.barh(np.arange(n_shown), first[order], color=COLOUR, height=0.7)
    ax.bar_label(bars, [f"{probability:.0%}" for probability in first[order]], padding=3)
    ax.set_yticks(np.arange(n_shown), [_text(posterior.items[item]) for item in order])
    ax.invert_yaxis()
    ax.set(
        xlabel="probability",
        title=_title(f"Among the first {k}", posterior, cluster),
        xlim=(0, 1.08),
    )
    return ax


def memberships(posterior: Posterior, ax: "Axes | None" = None) -> "Axes":
    """Which cluster each user belongs to: one column a user, sorted by the most likely cluster and
    how sure it is."""
    table = posterior.memberships
    if not len(table):
        raise ValueError("this posterior keeps no users, so there are no memberships to show")
    labels = posterior.labels
    order = np.lexsort((-table[np.arange(len(table)), labels], labels))
    ax = _axes(ax, width=8, height=3.4)
    edges, low = np.arange(len(table) + 1), np.zeros(len(table))
    for cluster in range(posterior.n_clusters):
        high = low + table[order, cluster]
        colour = COLOURS[cluster % len(COLOURS)]
        ax.stairs(
            high, edges, baseline=low, fill=True, color=colour, label=f"cluster {cluster + 1}"
        )
        low = high
    ax.set(
        xlabel="users, by their most likely cluster",
        ylabel="probability",
        title="Who belongs to which cluster",
        xlim=(0, len(table)),
        ylim=(0, 1),
    )
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    return ax


def save(drawn: "Axes | Figure", path: str | os.PathLike[str]) -> None:
    """Write a figure to a file: SVG with text that can be selected, PDF, or PNG of 200 dpi, by
    the ending of the name."""
    figure = drawn if isinstance(drawn, Figure) else cast(Figure, drawn.figure)
    more = {"Date": None} if str(path).endswith("svg") else None  # the same figure, the same file
    with plt.rc_context({"svg.fonttype": "none", "svg.hashsalt": "pseudomallows"}):
        figure.savefig(path, dpi=200, metadata=more)


def rank_histograms(
    posterior: Posterior,
    item: Any = None,
    cluster: int = 0,
    n_bins: int = 20,  # as bayesplot's mcmc_rank_hist has
    ax: "Axes | None" = None,
) -> "Axes":
    """Histograms, chain by chain, of the place of each draw among all draws.

    Chains that agree have flat histograms (Vehtari et al. 2021). Ties are broken at random, and
    weights do not count.
    """
    ax = _axes(ax, width=7.5, height=3.2)
    values = _series(posterior, item, cluster)
    names = [f"chain {chain + 1}" for chain in range(len(values))]
    noise = np.random.default_rng(0).random(values.size)
    order = np.lexsort((noise, values.ravel()))
    places = np.empty(values.size)
    places[order] = (np.arange(values.size) + 0.5) / values.size
    edges = np.linspace(0, 1, check_count(n_bins, "n_bins") + 1)
    for name, row in zip(names, places.reshape(values.shape), strict=True):
        ax.stairs(np.histogram(row, edges)[0], edges, label=name, linewidth=1.5)
    expected = values.shape[1] / n_bins
    ax.axhline(expected, color="0.5", linestyle=":", linewidth=1)
    ax.set(xlabel=f"place of {_series_name(item)} among all draws", ylabel="draws", ylim=(0, None))
    ax.legend(loc="lower right", frameon=False, fontsize="small", ncols=4)
    return ax


def reliability(evaluation: Evaluation, ax: "Axes | None" = None) -> "Axes":
    """Stated probability against observed share; on the diagonal, they mean what they say.

    The area of a point is its number of recommendations, its bar a 95 % interval.
    """
    ax = _axes(ax, width=5, height=5)
    stated, observed, errors, counts = np.array(evaluation.calibration.points()).T
    ax.plot([0, 1], [0, 1], color="0.6", linestyle=":", linewidth=1)
    ax.errorbar(stated, observed, errors, fmt="none", color=COLOUR, alpha=0.6)
    ax.scatter(stated, observed, 300 * counts / counts.max(), color=COLOUR)
    top = min(1.0, 1.15 * float(max(stated.max(), observed.max())))
    ax.set(
        xlabel="stated probability",
        ylabel="observed share",
        title=f"Calibration error {evaluation.calibration.error:.3f}",
        xlim=(0, top),
        ylim=(0, top),
        aspect="equal",
    )
    return ax


def shares(posterior: Posterior, ax: "Axes | None" = None) -> "Axes":
    """Share of each cluster in the population, with its 95 % interval."""
    ax = _axes(ax, width=6.4, height=4)
    draws = posterior.shares.reshape(-1, posterior.n_clusters)
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    means, places = draws.mean(axis=0), np.arange(1, posterior.n_clusters + 1)
    ax.bar(places, means, color=COLOUR, alpha=0.7)
    ax.vlines(places, low, high, color="0.2", linewidth=1.5)
    ax.set(xlabel="cluster", ylabel="share of the population", title="Clusters", ylim=(0, None))
    _count_whole(ax.xaxis)
    return ax


def certainty(posterior: Posterior, ax: "Axes | None" = None) -> "Axes":
    """How sure the cluster of each user is: the users by their largest membership."""
    ax = _axes(ax, width=6.4, height=4)
    largest = posterior.memberships.max(axis=1)
    ax.hist(largest, bins=20, range=(0, 1), color=COLOUR, alpha=0.7)
    ax.set(
        xlabel="probability of the most probable cluster",
        ylabel="users",
        title=f"Membership certainty, mean {largest.mean():.2f}",
        xlim=(0, 1),
    )
    return ax


def elbow(curve: ClusterCurve | Posterior, ax: "Axes | None" = None) -> "Axes":
    """How well each number of clusters describes unseen users; the chosen one is marked.

    Takes the curve of :func:`choose_clusters`, or a posterior fitted with n_clusters="auto". A bar
    is two standard errors of the distance from the best.
    """
    if isinstance(curve, Posterior) and "curve" not in curve.settings:
        raise ValueError("this posterior has no curve: fit with n_clusters='auto'")
    values = curve.as_settings() if isinstance(curve, ClusterCurve) else curve.settings["curve"]
    ax = _axes(ax, width=6.4, height=4)
    numbers, means, chosen = values["n_clusters"], values["means"], values["chosen"]
    ax.errorbar(numbers, means, 2 * np.array(values["errors"]), color=COLOUR, marker="o", capsize=3)
    ax.axvline(chosen, color="0.5", linestyle=":", linewidth=1)
    ax.set(
        xlabel="number of clusters",
        ylabel="log likelihood of an unseen user",
        title=f"{chosen} clusters chosen" if chosen > 1 else "One cluster chosen",
    )
    _count_whole(ax.xaxis)
    return ax


def distances(scores: DistanceScores, ax: "Axes | None" = None) -> "Axes":
    """How far each distance falls behind the best one in describing an unseen user.

    Takes what :func:`choose_distance` returns. A bar is two standard errors of the difference.
    """
    ax = _axes(ax, width=6.4, height=0.6 + 0.4 * len(scores.distances))
    order = np.argsort(scores.means, kind="stable")
    behind = scores.means[order] - scores.means.max()
    names: Any = [scores.distances[number] for number in order]
    also = f" (as good: {' and '.join(scores.rivals)})" if scores.rivals else ""
    errors: Any = 2 * scores.errors[order]
    ax.errorbar(behind, names, xerr=errors, color=COLOUR, fmt="o", capsize=3)
    ax.axvline(0, color="0.5", linestyle=":", linewidth=1)
    ax.set(
        xlabel="log likelihood of an unseen user, against the best distance",
        title=f"{scores.chosen.capitalize()} describes these people best{also}",
    )
    return ax


def anytime(posterior: Posterior, ax: "Axes | None" = None) -> "Axes":
    """The error of rank probabilities against time, for a fit with ``seconds=``: what each step
    stated, or how far it was from the answer, where it stated none."""
    if "in_time" not in posterior.settings:
        raise ValueError("this fit had no time limit: fit full rankings with seconds=")
    ax, answer = _axes(ax, width=6.4, height=4.2), posterior.settings["in_time"]
    for stage in dict.fromkeys(step["stage"] for step in answer["steps"]):
        own = [step for step in answer["steps"] if step["stage"] == stage]
        errors = [step["gap"] if step["error"] is None else step["error"] for step in own]
        ax.plot([step["seconds"] for step in own], errors, "o-", label=stage)
    ax.set(xscale="log", yscale="log", xlabel="seconds", ylabel="error of a rank probability")
    ax.set_title(f"{answer['stage']}: known to {answer['error']:.2g}")
    ax.legend()
    return ax


def _title(words: str, posterior: Posterior, cluster: int) -> str:
    if posterior.n_clusters == 1:
        return words
    share = posterior.shares[:, :, cluster].mean()
    return f"{words}, cluster {cluster + 1} ({share:.0%})"


def _axes(ax: "Axes | None", width: float, height: float) -> "Axes":
    return _subplots((width, height))[1] if ax is None else ax


def _subplots(size: tuple[float, float], **options: Any) -> Any:
    """A figure in our style, and its axes.

    The backend is loaded first: in a notebook it turns on that figures show themselves, which the
    end of the style would turn off again, so that only the first figure would be seen.
    """
    plt.draw_if_interactive()  # type: ignore[no-untyped-call]
    with plt.rc_context(STYLE):
        return plt.subplots(figsize=size, layout="constrained", **options)


def _draw_map(
    ax: "Axes", posterior: Posterior, order: Iterable[int], table: Any, label: str, **colours: Any
) -> None:
    """A table as colours, its columns the items in an order, its first row on top."""
    edges = np.arange(posterior.n_items + 1) + 0.5
    mesh = ax.pcolormesh(edges, edges, table, rasterized=True, **colours)
    ax.figure.colorbar(mesh, ax=ax).set_label(label)
    ax.invert_yaxis()
    ax.set_xlabel("items, by consensus")
    if posterior.n_items <= MAX_NAMES:
        names = [_text(posterior.items[item]) for item in order]
        rotation = 0 if max(map(len, names)) <= 2 else 90
        ax.set_xticks(np.arange(1, len(names) + 1), names, rotation=rotation)


def _count_whole(axis: Any) -> None:
    """Mark whole numbers only."""
    axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def _text(name: Any) -> str:
    """A name as it is shown: short, and no `$` that would start a formula."""
    text = str(name)
    return (text if len(text) <= 24 else text[:23] + "…").replace("$", r"\$")


def _series(posterior: Posterior, item: Any, cluster: int) -> Any:
    posterior.check_cluster(cluster)
    draws = posterior.alpha if item is None else posterior.consensus
    if item is None:
        return draws[:, :, cluster]
    names = posterior.items.tolist()
    if item not in names:
        raise ValueError(f"no item is named {item!r}; the first are {names[:5]}")
    return draws[:, :, cluster, names.index(item)]


def _series_name(item: Any) -> str:
    return "alpha" if item is None else f"rank of {_text(item)}"
