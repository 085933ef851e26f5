"""Beyond the paper: how close each law is to the exact posterior, and how far it scales.

Part 1, closeness: the sum over items of KL(law || exact) of the marginals, floor 1e-4 on both
sides, at six sizes, over data sets. Laws: Pseudo-Mallows with V orders, the best sigma of a grid
for each data set; balanced draws; the same with importance weights (and their effective size); the
balanced matrix itself, without any draw; for scale, as many draws of one half of the exact chains
against the other half. 4,000 draws each; reference: 8 exact chains of 5,000 draws from the MAP.

Part 2, growth: seconds from full rankings to the CP consensus, and its footrule distance to the
truth, as users grow (n = 50) and as items grow (N = 1,000), at alpha 5: Pseudo-Mallows (200 draws),
the balanced matrix, the MAP by assignment, and the exact chain on costs (200 draws from the MAP).
One thread, compiled code warm. A minute in the reduced setting, three data sets, up to N = 100,000
and n = 500; in full, 5 data sets, up to n = 1,000, two minutes.
"""

import time
from collections.abc import Callable, Iterator

import numpy as np
from matplotlib.figure import Figure

import paper
import pseudomallows as pm
from accuracy_rankings import THREAD, by_costs, by_law, cp_consensus, draws_of, exact_chain
from pseudomallows.laws.registry import make_law
from pseudomallows.scores import rank_divergence, share_of_ranks

CASES = [
    (100, 20, 1.0),
    (100, 20, 2.0),
    (100, 20, 4.0),
    (500, 50, 5.0),
    (1000, 100, 5.0),
    (50, 100, 3.0),
]
SIGMAS = (0, 1, 2, 3, 5, 8, 12, 16, 24)  # with 50 users and 100 items about 12 is best
SETTINGS = paper.Settings(
    reduced={
        "cases": CASES,
        "n_datasets": 3,
        "n_draws": 4000,
        "users": [100, 1000, 10_000, 100_000],
        "items": [20, 50, 100, 200, 500],
    },
    full={
        "cases": CASES,
        "n_datasets": 5,
        "n_draws": 4000,
        "users": [100, 1000, 10_000, 100_000],
        "items": [20, 50, 100, 200, 500, 1000],
    },
    smallest={
        "cases": [(60, 10, 1.0)],
        "n_datasets": 2,
        "n_draws": 1000,
        "users": [50, 500],
        "items": [6, 12],
    },
)
N_CHAINS, WARMUP, ALPHA, N_ITEMS, N_USERS, N_DRAWS = 4, 500, 5.0, 50, 1000, 200
LAWS = {
    "V orders, best sigma": "blue",
    "balanced": "green",
    "balanced, weighted": "pink",
    "balanced matrix": "orange",
    "exact draws": "black",
}
METHODS = {
    "Pseudo-Mallows": "blue",
    "balanced matrix": "orange",
    "MAP by assignment": "sky",
    "chain on costs": "red",
}


def exact_half(
    rankings: paper.Array, alpha: float, n_draws: int, rng: np.random.Generator
) -> paper.Array:
    """Draws of some exact chains from the MAP, chain after chain."""
    law = make_law(pm.Preferences.from_rankings(rankings), THREAD)
    chains = [exact_chain(law, alpha, rng) for _ in range(N_CHAINS)]
    return np.concatenate([draws_of(chain, WARMUP, n_draws) for chain in chains])


def closeness(
    rankings: paper.Array, alpha: float, n_draws: int, rng: np.random.Generator
) -> Iterator[paper.Row]:
    """Divergence of each law from the exact chains."""
    halves = [exact_half(rankings, alpha, 5 * n_draws // 4, rng) for _ in range(2)]
    tables = [share_of_ranks(half) for half in halves]
    exact = (tables[0] + tables[1]) / 2
    by_sigma = {}
    for sigma in SIGMAS:
        draws = pm.PseudoMallows(rankings, alpha, sigma).draw(n_draws, rng)
        by_sigma[sigma] = rank_divergence(share_of_ranks(draws), exact)
    best = min(by_sigma, key=by_sigma.__getitem__)
    yield {"law": "V orders, best sigma", "divergence": by_sigma[best], "sigma": best}
    law = pm.PseudoMallows(rankings, alpha, balanced=True)
    draws = law.draw_weighted(n_draws, rng)
    plain, weighted = (share_of_ranks(draws.rankings, w) for w in (None, draws.weights))
    size = {"effective_size": draws.effective_size}
    yield {"law": "balanced", "divergence": rank_divergence(plain, exact)}
    yield {"law": "balanced, weighted", "divergence": rank_divergence(weighted, exact)} | size
    matrix = law.balanced_marginals()
    yield {"law": "balanced matrix", "divergence": rank_divergence(matrix, exact)}
    some = share_of_ranks(halves[0][:: len(halves[0]) // n_draws])
    yield {"law": "exact draws", "divergence": rank_divergence(some, tables[1])}


def by_matrix(rankings: paper.Array, rng: np.random.Generator) -> paper.Array:
    """The CP consensus of the balanced matrix."""
    return cp_consensus(pm.PseudoMallows(rankings, ALPHA).balanced_marginals())


def by_assignment(rankings: paper.Array, rng: np.random.Generator) -> paper.Array:
    """The exact MAP."""
    return pm.PseudoMallows(rankings, ALPHA).tally.best()


WAYS: dict[str, Callable[[paper.Array, np.random.Generator], paper.Array]] = {
    "Pseudo-Mallows": lambda rankings, rng: by_law(rankings, ALPHA, N_DRAWS, rng),
    "balanced matrix": by_matrix,
    "MAP by assignment": by_assignment,
    "chain on costs": lambda rankings, rng: by_costs(rankings, ALPHA, N_DRAWS, rng),
}


def growth(n_users: int, n_items: int, rng: np.random.Generator) -> Iterator[paper.Row]:
    """Seconds and distance of each method at one size."""
    data = pm.simulate_rankings(n_users, n_items, ALPHA, rng=rng)
    for name, way in WAYS.items():
        begin = time.perf_counter()
        consensus = way(data.rankings, rng)
        row = {"method": name, "seconds": time.perf_counter() - begin}
        yield row | {"distance": int(pm.footrule(consensus, data.consensus))}


def run(setting: dict, seed: int) -> list[paper.Row]:
    """A row for each case, data set and law; then one for each size, data set and method."""
    rng, rows = np.random.default_rng(seed), []
    for _ in growth(20, 5, rng):
        pass  # compiles
    datasets = range(setting["n_datasets"])
    for (n_users, n_items, alpha), dataset in paper.each(setting["cases"], datasets):
        data = pm.simulate_rankings(n_users, n_items, alpha, rng=rng)
        case = {"part": "closeness", "dataset": dataset}
        case |= {"n_users": n_users, "n_items": n_items, "alpha": alpha}
        found = closeness(data.rankings, alpha, setting["n_draws"], rng)
        rows += [case | row for row in found]
    sizes = [("users", size, N_ITEMS) for size in setting["users"]]
    sizes += [("items", N_USERS, size) for size in setting["items"]]
    for (part, n_users, n_items), dataset in paper.each(sizes, datasets):
        case = {"part": part, "dataset": dataset, "alpha": ALPHA}
        case |= {"n_users": n_users, "n_items": n_items}
        rows += [case | row for row in growth(n_users, n_items, rng)]
    return rows


def mean_and_error(values: paper.Array) -> tuple[float, float]:
    """Mean and standard error over data sets."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def cells_of(rows: list[paper.Row]) -> dict[tuple, dict[str, list[paper.Row]]]:
    """{(N, n, alpha): {law: rows}}."""
    names = ("n_users", "n_items", "alpha")
    return {
        case: {
            law: paper.select(rows, law=law, **dict(zip(names, case, strict=True))) for law in LAWS
        }
        for case in paper.unique(rows, *names)
    }


def summarise(rows: list[paper.Row]) -> str:
    """The table of closeness, then seconds and distances by size."""
    lines = []
    for case, laws in cells_of(paper.select(rows, part="closeness")).items():
        cells = []
        for law, own in laws.items():
            mean, error = mean_and_error(paper.column(own, "divergence"))
            cells.append(f"{law} {mean:.3g} ± {error:.2g}")
        size, error = mean_and_error(paper.column(laws["balanced, weighted"], "effective_size"))
        lines.append(f"{case}: {'; '.join(cells)}; ESS {size:.0f} ± {error:.0f}")
    for part, name in (("users", "n_users"), ("items", "n_items")):
        for method in METHODS:
            own = paper.select(rows, part=part, method=method)
            cells = []
            for size in paper.unique(own, name):
                found = paper.select(own, **{name: size})
                seconds = paper.column(found, "seconds").min()
                mean, _ = mean_and_error(paper.column(found, "distance"))
                cells.append(f"{size}: {seconds:.4f} s, {mean:.0f}")
            lines.append(f"{part} {method:18} {' | '.join(cells)}")
    return "\n".join(lines)


def draw(rows: list[paper.Row]) -> Figure:
    """Closeness on the left, seconds and distances by size on the right."""
    title = (
        "Balancing brings draws nearer to the exact posterior; users cost no more than the count"
    )
    figure, axes = paper.panels(rows, title, 2, 3, 12, 6.6)
    grid = axes[0, 0].get_gridspec()
    for panel in axes[:, 0]:
        panel.remove()
    axes[0, 2].sharey(axes[0, 1])
    draw_closeness(figure.add_subplot(grid[:, 0]), paper.select(rows, part="closeness"))
    for place, (part, name) in enumerate((("users", "n_users"), ("items", "n_items")), start=1):
        own = paper.select(rows, part=part)
        for panel, what in zip(axes[:, place], ("seconds", "distance"), strict=True):
            draw_growth(panel, own, name, what)
        fixed = f"n = {N_ITEMS}" if part == "users" else f"N = {N_USERS:,}"
        axes[0, place].set_title(f"growing {part}, {fixed}, alpha {ALPHA:g}")
        axes[1, place].set_xlabel(f"number of {part}")
    axes[0, 1].set_ylabel("seconds to the consensus")
    axes[1, 1].set_ylabel("distance to the truth, an item")
    axes[1, 1].legend(loc="upper right")
    return figure


def draw_closeness(panel: paper.Axes, rows: list[paper.Row]) -> None:
    """A group for each case, a point for each law, two standard errors over data sets."""
    found = cells_of(rows)
    for shift, (law, colour) in enumerate(LAWS.items()):
        places = np.arange(len(found)) + 0.14 * (shift - 2)
        values = [mean_and_error(paper.column(laws[law], "divergence")) for laws in found.values()]
        means, errors = np.array(values).T
        low = np.minimum(2 * errors, 0.9 * means)  # stay above 0 on the log scale
        style = {"fmt": "o", "color": paper.COLOURS[colour], "capsize": 2, "label": law}
        panel.errorbar(means, places, xerr=[low, 2 * errors], **style)
    words = ["N {}, n {}\nalpha {:g}".format(*case) for case in found]
    panel.set_yticks(np.arange(len(found)), words)
    panel.set(xscale="log", xlabel="divergence from the exact marginals")
    panel.invert_yaxis()
    panel.set_title("closeness of 4,000 draws")
    panel.legend(loc="upper center", bbox_to_anchor=(0.4, -0.1), ncols=2)


def draw_growth(panel: paper.Axes, rows: list[paper.Row], name: str, what: str) -> None:
    """One line a method: the least seconds, or the mean distance of an item."""
    for method, colour in METHODS.items():
        own = paper.select(rows, method=method)
        sizes, values, errors = paper.unique(own, name), [], []
        for size in sizes:
            found = paper.select(own, **{name: size})
            if what == "seconds":
                values.append(paper.column(found, what).min())
                errors.append(0.0)
            else:
                scaled = paper.column(found, what) / paper.column(found, "n_items")
                mean, error = mean_and_error(scaled)
                values.append(mean)
                errors.append(2 * error)
        style = {"color": paper.COLOURS[colour], "marker": "o", "capsize": 2, "label": method}
        panel.errorbar(sizes, values, errors, **style)
    panel.set_xscale("log")
    panel.set_xticks(sizes, [f"{size:,}" for size in sizes])
    panel.minorticks_off()
    if what == "seconds":
        panel.set_yscale("log")
    else:
        panel.set_ylim(bottom=0)


def main(arguments: list[str] | None = None) -> None:
    """Run and draw."""
    paper.main(__doc__, __file__, SETTINGS, run, draw, summarise, arguments)


if __name__ == "__main__":
    main()
