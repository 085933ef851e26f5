"""Figure 2 of the paper: which visit orders are best, by going through all of them.

The paper: the order whose Pseudo-Mallows law has the smallest marginal divergence from the Mallows
posterior is a V-ranking: the item in the middle of the true consensus comes first, then outwards.
It draws 200 times for each order and compares with a Markov chain, for up to 9 items; the values of
alpha and N are not printed, only that the posterior should be neither too concentrated nor too
flat.

Here both sides are exact, by sums over the sets of ranks in use; the laws of all orders that begin
alike share their work, so that all 362,880 orders of 9 items take a second. The full divergence
(the ELBO), which the conjecture is about and the paper could not compute, comes from the same sums.
Besides 20 data sets a setting, the conjecture without the noise of data: every ranking comes as
often as expected, from 10 users to 1,000. About one minute, full or not.
"""

import math
from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numba import njit

import paper
import pseudomallows as pm
from pseudomallows.distances import FOOTRULE
from pseudomallows.kernels.costs import count_ranks
from pseudomallows.kernels.subsets import count_bits, posterior_by_subsets
from pseudomallows.rankings import orderings_of, rank_randomly

CASES = [(n_items, n_users, 1.0) for n_users in (500, 100) for n_items in (5, 7, 9)]
OTHERS = [  # not drawn: fewer users, larger alphas
    (n_items, n_users, alpha)
    for n_items in (5, 7)
    for n_users, alpha in ((20, 1.0), (20, 2.0), (100, 2.0), (50, 3.0))
]
ALPHAS, MANY = (0.5, 1.0, 1.5, 2.0, 4.0), (10, 30, 100, 300, 1000)
LIMITS = [
    (n_items, n_users, alpha) for n_items in (5, 7, 9) for alpha in ALPHAS for n_users in MANY
]
SETTINGS = paper.Settings(
    reduced={"cases": CASES + OTHERS, "n_sets": 20, "limits": LIMITS},
    full={"cases": CASES + OTHERS, "n_sets": 20, "limits": LIMITS},
    smallest={"cases": [(5, 500, 1.0), (5, 100, 1.0)], "n_sets": 6, "limits": LIMITS[:7]},
)
MEASURES = {"marginal": "marginal KL", "full": "full KL"}
CLOSE = 1e-9  # orders whose divergences differ by less are equally good


@njit(cache=True)
def all_orders(log_weights, reference, elbos, divergences):
    """Fill the ELBO and the marginal divergence of every visit order, in lexicographic order.

    A search of the tree of all beginnings of orders: the law of the ranks in use after some
    items is computed once for all orders that begin with them.
    """
    n_items = len(log_weights)
    n_sets = 1 << n_items
    log_totals, shares = np.zeros((n_items, n_sets)), np.zeros((n_items, n_sets, n_items))
    for item in range(n_items):
        for used in range(n_sets - 1):
            highest, total = -np.inf, 0.0
            for rank in range(n_items):
                if not used >> rank & 1:
                    highest = max(highest, log_weights[item, rank])
            for rank in range(n_items):
                if not used >> rank & 1:
                    shares[item, used, rank] = np.exp(log_weights[item, rank] - highest)
                    total += shares[item, used, rank]
            shares[item, used] /= total
            log_totals[item, used] = highest + np.log(total)
    sets = np.zeros((n_items + 1, n_sets), dtype=np.int64)  # sets[size, :n_of_size[size]]
    n_of_size = np.zeros(n_items + 1, dtype=np.int64)
    for used in range(n_sets):
        size = count_bits(used)
        sets[size, n_of_size[size]] = used
        n_of_size[size] += 1

    probability = np.zeros((n_items + 1, n_sets))  # [items visited, ranks in use]
    probability[0, 0] = 1.0
    elbo, divergence = np.zeros(n_items + 1), np.zeros(n_items + 1)
    order = np.full(n_items + 1, -1)  # order[step] is the item visited there, -1 for none yet
    visited = np.zeros(n_items, dtype=np.bool_)
    marginal = np.empty(n_items)
    step, leaf = 0, 0
    while step >= 0:
        item = order[step]
        if item >= 0:
            visited[item] = False
        item += 1
        while item < n_items and visited[item]:
            item += 1
        if item == n_items or step == n_items:
            order[step] = -1
            step -= 1
            continue
        order[step] = item
        visited[item] = True
        marginal[:] = 0.0
        mean_log = 0.0
        for place in range(n_of_size[step + 1]):
            probability[step + 1, sets[step + 1, place]] = 0.0
        for place in range(n_of_size[step]):
            used = sets[step, place]
            here = probability[step, used]
            mean_log += here * log_totals[item, used]
            for rank in range(n_items):
                if not used >> rank & 1:
                    share = here * shares[item, used, rank]
                    marginal[rank] += share
                    probability[step + 1, used | 1 << rank] += share
        gap = 0.0
        for rank in range(n_items):
            if marginal[rank] > 0:
                gap += marginal[rank] * np.log(marginal[rank] / reference[item, rank])
        elbo[step + 1] = elbo[step] + mean_log
        divergence[step + 1] = divergence[step] + gap
        if step == n_items - 1:
            elbos[leaf], divergences[leaf] = elbo[n_items], divergence[n_items]
            leaf += 1
        else:
            step += 1
            order[step] = -1


def divergences_of_orders(log_weights: paper.Array) -> dict[str, paper.Array]:
    """{measure: its value for each visit order}; the orders as `permutations` gives them."""
    n_items = len(log_weights)
    n_orders = int(np.prod(np.arange(1, n_items + 1)))
    reference = np.empty((n_items, n_items))
    log_evidence = posterior_by_subsets(log_weights, reference)
    elbos, marginal = np.empty(n_orders), np.empty(n_orders)
    all_orders(log_weights, np.maximum(reference, 1e-300), elbos, marginal)
    return {"marginal": marginal, "full": log_evidence - elbos}


def simulated_costs(
    n_items: int, n_users: int, alpha: float, rng: np.random.Generator
) -> paper.Array:
    """Costs of a data set whose true consensus is 1..n."""
    rankings = pm.Mallows(np.arange(1, n_items + 1), alpha).draw(n_users, rng)
    counts = np.zeros((n_items, n_items), dtype=np.int64)
    count_ranks(rankings, np.ones(n_users, dtype=np.int64), counts)
    return FOOTRULE.costs(counts)


def expected_costs(n_items: int, n_users: int, alpha: float) -> paper.Array:
    """The same when every ranking comes as often as it should."""
    ranks = np.arange(1, n_items + 1)
    shares = pm.Mallows(ranks, alpha).rank_probabilities()
    return n_users * shares @ np.abs(ranks[:, None] - ranks)


def place_of(order: paper.Array) -> int:
    """The place of a visit order among all, in lexicographic order."""
    later = [sum(other < item for other in order[step + 1 :]) for step, item in enumerate(order)]
    return sum(count * math.factorial(len(order) - 1 - step) for step, count in enumerate(later))


def order_at(place: int, n_items: int) -> list[int]:
    """The visit order at that place."""
    left, order = list(range(n_items)), []
    for step in range(n_items - 1, -1, -1):
        which, place = divmod(place, math.factorial(step))
        order.append(left.pop(which))
    return order


def values_of(values: paper.Array, rankings: paper.Array) -> paper.Array:
    """The values of some orders, given as rankings: `ranking[item]` is the place of its visit."""
    return np.array([values[place_of(order)] for order in orderings_of(rankings)])


def judge(
    values: paper.Array, known: paper.Array, own: paper.Array, rng: np.random.Generator
) -> paper.Row:
    """How the V-rankings `known` of the true and `own` of the estimated consensus do.

    `best` is one of the equally good orders, at random.
    """
    lowest = values.min()
    ties = np.flatnonzero(values <= lowest + CLOSE)
    best = orderings_of(np.array(order_at(int(rng.choice(ties)), known.shape[1]))) + 1
    of_known, of_own = values_of(values, known), values_of(values, own)
    return {
        "best": " ".join(map(str, best)),
        "n_best": len(ties),
        "distance": int(np.abs(known - best).sum(axis=1).min()),
        "is_v": int((of_known <= lowest + CLOSE).any()),
        "is_estimated_v": int((of_own <= lowest + CLOSE).any()),
        "lowest": float(lowest),
        "lowest_v": float(of_known.min()),
        "mean_v": float(of_known.mean()),
        "highest_v": float(of_known.max()),
        "mean_estimated_v": float(of_own.mean()),
        "median": float(np.median(values)),
        "highest": float(values.max()),
        "share_better": float((values < of_known.mean() - CLOSE).mean()),
    }


def costs_of(task: tuple, rng: np.random.Generator) -> paper.Array:
    """The costs of a simulated data set, or of the limit."""
    data, n_items, n_users, alpha, _ = task
    if data == "limit":
        return expected_costs(n_items, n_users, alpha)
    return simulated_costs(n_items, n_users, alpha, rng)


def run(setting: dict, seed: int) -> list[paper.Row]:
    """A row for each data set and measure."""
    tasks = [
        ("simulated", *case, number)
        for case, number in product(setting["cases"], range(setting["n_sets"]))
    ]
    tasks += [("limit", *case, 0) for case in setting["limits"]]
    rows = []
    for (task,) in paper.each(tasks):
        _, n_items, n_users, alpha, number = task
        rng = np.random.default_rng((seed, n_items, n_users, round(1000 * alpha), number))
        costs = costs_of(task, rng)
        known = pm.v_rankings(np.arange(1, n_items + 1))
        own = pm.v_rankings(rank_randomly(costs[:, 0], rng))
        values = divergences_of_orders(-alpha / n_items * costs)
        names = ("data", "n_items", "n_users", "alpha", "data_set")
        shared = dict(zip(names, task, strict=True))
        rows += [
            shared | {"measure": measure} | judge(values[measure], known, own, rng)
            for measure in MEASURES
        ]
    return rows


def places(rows: list[paper.Row]) -> paper.Array:
    """`shares[item, group]` of best orders that visit the item in the group 1, 2-3, 4-5, ..."""
    best = np.array([[int(rank) for rank in row["best"].split()] for row in rows])
    groups = best // 2
    return np.stack([(groups == group).mean(axis=0) for group in range(groups.max() + 1)], axis=1)


def summarise(rows: list[paper.Row]) -> str:
    """A line for each setting and measure."""
    lines = []
    names = ("data", "n_items", "n_users", "alpha", "measure")
    for key in paper.unique(rows, *names):
        own = paper.select(rows, **dict(zip(names, key, strict=True)))
        mean = {name: paper.column(own, name).mean() for name in list(own[0])[-11:]}
        lines.append(
            f"{key[0]:9} n {key[1]} N {key[2]:5} alpha {key[3]:g} {key[4]:8} "
            f"best is V {mean['is_v']:4.0%}, distance {mean['distance']:4.1f}; lowest "
            f"{mean['lowest']:.3f}, V {mean['lowest_v']:.3f} to {mean['highest_v']:.3f}, V of mean "
            f"ranks {mean['mean_estimated_v']:.3f}, median {mean['median']:.3f}, highest "
            f"{mean['highest']:.3f}; {mean['share_better']:.2%} of all orders beat the mean V"
        )
    return "\n".join(lines)


def draw(rows: list[paper.Row]) -> Figure:
    """Heat plots of the best orders: a column for each n, a row for each N and measure; below, how
    much worse than the best order the best V-ranking is when the data are as expected."""
    simulated = [
        row
        for row in paper.select(rows, data="simulated")
        if (row["n_items"], row["n_users"], row["alpha"]) in CASES
    ]
    sizes, many = paper.unique(simulated, "n_items"), paper.unique(simulated, "n_users")
    title = "The best visit orders make a V; with fewer users it blurs, with larger alpha it tilts"
    lines = list(product(many, MEASURES))
    shape = {"width": 10, "height": 2.3 * len(lines) + 3}
    figure, axes = paper.panels(rows, title, len(lines) + 1, len(sizes), **shape)
    for line, (n_users, measure) in zip(axes, lines, strict=False):
        for panel, n_items in zip(line, sizes, strict=True):
            own = paper.select(simulated, n_items=n_items, n_users=n_users, measure=measure)
            mesh = draw_places(panel, own, f"n = {n_items}, N = {n_users}, {MEASURES[measure]}")
        line[0].set_ylabel("visited as number")
    for panel, n_items in zip(axes[-1], sizes, strict=True):
        draw_limit(panel, paper.select(rows, data="limit", n_items=n_items, measure="full"))
    axes[-1, 0].set_ylabel("KL of the best V /\nKL of the best order")
    axes[-1, 0].legend(title="alpha", ncols=2)
    figure.colorbar(mesh, ax=axes[:-1], label="share of data sets", shrink=0.5)
    return figure


def draw_places(panel: Axes, rows: list[paper.Row], name: str) -> Any:
    """Where the best orders visit each item."""
    hits = sum(row["is_v"] for row in rows)
    words = f"{name}\na V in {hits} of {len(rows)}"
    mesh = paper.heat(panel, places(rows), words, "item, by true rank", highest=1)
    n_items = rows[0]["n_items"]
    groups = ["1", *(f"{2 * k}, {2 * k + 1}" for k in range(1, n_items // 2 + 1))]
    panel.set_yticks(range(1, len(groups) + 1), groups)
    panel.set_xticks(range(1, n_items + 1))
    return mesh


def draw_limit(panel: Axes, rows: list[paper.Row]) -> None:
    """How much worse the best V-ranking is, against the number of users."""
    for alpha, mark in zip(paper.unique(rows, "alpha"), "os^Dv", strict=False):
        own = [row for row in rows if row["alpha"] == alpha and row["lowest"] > 1e-8]
        ratio = paper.column(own, "lowest_v") / paper.column(own, "lowest")
        panel.semilogx(paper.column(own, "n_users"), ratio, f"{mark}-", label=f"{alpha:g}")
    panel.set(title=f"n = {rows[0]['n_items']}, expected data, full KL", xlabel="users N")
    panel.set_ylim(0.95, 2.4)


def main(arguments: list[str] | None = None) -> None:
    """Run and draw."""
    paper.main(__doc__, __file__, SETTINGS, run, draw, summarise, arguments)


if __name__ == "__main__":
    main()
