"""How far the additive likelihood of clicks is from the exact one, by enumeration.

The additive likelihood, that of method "matched", has a closed form for each item (Bethe's
approximation of a permanent). For the consensus of five to seven items at a known alpha: total
variation of its posterior; of draws from that with importance weights; and of the draws of the
corrected chain (method "mcmc"). Draws are never nearer than sampling variation allows, so the mean
total variation of as many independent exact draws stands beside. The effective share of the weights
says how much of the draws is left.
"""

import itertools
import math
import warnings

import numpy as np
from matplotlib.figure import Figure
from scipy import stats

import paper
import pseudomallows as pm
from pseudomallows.laws.block_laws import ClickBlocks

SETTINGS = paper.Settings(
    reduced={"n_items": (5, 6, 7), "n_sets": 20, "n_draws": 1000},
    full={"n_items": (5, 6, 7), "n_sets": 20, "n_draws": 10_000},
    smallest={"n_items": (5,), "n_sets": 2, "n_draws": 200},
)
ALPHAS = (0.5, 2.0, 5.0, 10.0, 30.0)
N_USERS, MEAN_CLICKS = 20, 2.5
COLUMNS = {
    "matched": "additive likelihood",
    "weighted": "with weights",
    "chain": "corrected chain",
    "independent": "independent draws",
}


def log_probabilities(prefs: pm.Clicks, alpha: float) -> tuple[paper.Array, paper.Array]:
    """Exact and additive log likelihood of clicks on each set of consensus ranks, as bits."""
    n_items = prefs.n_items
    rankings = np.array(list(itertools.permutations(range(1, n_items + 1))))
    distances = np.abs(rankings - np.arange(1, n_items + 1)).sum(axis=1)
    probabilities = np.exp(-alpha / n_items * distances)
    additive = ClickBlocks(prefs, sizes=np.arange(1, n_items)).log_weights(alpha)
    exact, matched = np.zeros((2, 2**n_items))
    for size in range(1, n_items):
        for places in map(list, itertools.combinations(range(n_items), size)):
            bits = sum(1 << place for place in places)
            first = (rankings[:, places] <= size).all(axis=1)
            exact[bits] = math.log(probabilities[first].sum() / probabilities.sum())
            matched[bits] = additive[size - 1, places].sum()
    return exact, matched


def posteriors(prefs: pm.Clicks, alpha: float) -> tuple[paper.Array, paper.Array, paper.Array]:
    """All consensuses, the logs of their exact and of their additive probabilities."""
    n_items = prefs.n_items
    consensuses = np.array(list(itertools.permutations(range(1, n_items + 1))))
    laws = log_probabilities(prefs, alpha)
    bits = [
        (1 << (consensuses[:, prefs.clicks_of(row)] - 1)).sum(axis=1)
        for row in range(prefs.n_users)
    ]
    logs = [sum(law[each] for each in bits) for law in laws]
    exact, matched = (each - np.logaddexp.reduce(each) for each in logs)
    return consensuses, exact, matched


def variation(one: paper.Array, other: paper.Array) -> float:
    """Total variation between two laws."""
    return 0.5 * float(np.abs(one - other).sum())


def expected_variation(law: paper.Array, n_draws: int) -> float:
    """Mean total variation between a law and independent draws from it (de Moivre)."""
    rare = 1e-9  # below it a draw deviates when it is there at all
    usual = law[law > rare]
    most = np.floor(n_draws * usual) + 1
    deviations = 2 * most * stats.binom.pmf(most, n_draws, usual) * (1 - usual)
    return float(0.5 * deviations.sum() / n_draws + law[law <= rare].sum())


def share_of_chain(
    prefs: pm.Clicks, alpha: float, n_draws: int, consensuses: paper.Array, seed: int
) -> paper.Array:
    """How often the corrected chain is at each consensus."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.ConvergenceWarning)
        posterior = pm.fit(prefs, "mcmc", alpha, n_draws, n_chains=1, rng=seed)
    powers = (prefs.n_items + 1) ** np.arange(prefs.n_items)
    order = np.argsort(consensuses @ powers)
    keys = (consensuses @ powers)[order]
    found = order[np.searchsorted(keys, posterior.consensus[0, :, 0] @ powers)]
    return np.bincount(found, minlength=len(consensuses)) / n_draws


def compare(n_items: int, alpha: float, n_draws: int, rng: np.random.Generator) -> paper.Row:
    """One data set."""
    data = pm.simulate_clicks(N_USERS, n_items, alpha, MEAN_CLICKS, rng=rng)
    prefs = data.preferences
    consensuses, *logs = posteriors(prefs, alpha)
    exact, matched = np.exp(logs)
    ratios = np.exp(logs[0] - logs[1])
    seed = int(rng.integers(2**31))
    chain = share_of_chain(prefs, alpha, n_draws, consensuses, seed)
    drawn = rng.multinomial(n_draws, matched / matched.sum())
    weights = drawn * ratios
    return {
        "matched": variation(matched, exact),
        "weighted": variation(weights / weights.sum(), exact),
        "chain": variation(chain, exact),
        "independent": expected_variation(exact, n_draws),
        "effective_share": 1 / float((matched * ratios**2).sum()),
    }


def run(setting: dict, seed: int) -> list[paper.Row]:
    """All data sets."""
    rng, rows = np.random.default_rng(seed), []
    cells = itertools.product(setting["n_items"], ALPHAS, range(setting["n_sets"]))
    for n_items, alpha, number in cells:
        found = compare(n_items, alpha, setting["n_draws"], rng)
        shared = {"n_items": n_items, "alpha": alpha, "number": number}
        rows.append(shared | {"n_draws": setting["n_draws"]} | found)
    return rows


def means(rows: list[paper.Row]) -> list[paper.Row]:
    """Means over the data sets, and the worst of the additive likelihood."""
    found = []
    for n_items in paper.unique(rows, "n_items"):
        for alpha in paper.unique(rows, "alpha"):
            some = paper.select(rows, n_items=n_items, alpha=alpha)
            mean = {name: float(np.mean(paper.column(some, name))) for name in COLUMNS}
            worst = max(paper.column(some, "matched"))
            least = min(paper.column(some, "effective_share"))
            found.append(
                {"n_items": n_items, "alpha": alpha, "worst": worst, "least": least} | mean
            )
    return found


def summarise(rows: list[paper.Row]) -> str:
    """A table in Markdown."""
    lines = [
        "| items | alpha | additive (worst) | with weights | corrected chain | independent draws "
        "| least effective share |",
        "|" + "---|" * 7,
    ]
    for row in means(rows):
        values = " | ".join(f"{row[name]:.4f}" for name in ("weighted", "chain", "independent"))
        lines.append(
            f"| {row['n_items']} | {row['alpha']:g} | {row['matched']:.5f} ({row['worst']:.5f}) "
            f"| {values} | {row['least']:.4f} |"
        )
    return "\n".join(lines)


def draw(rows: list[paper.Row]) -> Figure:
    """A panel for each number of items."""
    sizes = paper.unique(rows, "n_items")
    title = "How far the additive likelihood is from the exact posterior"
    figure, axes = paper.panels(rows, title, 1, len(sizes), sharey=True)
    for panel, n_items in zip(axes[0], sizes, strict=True):
        some = paper.select(means(rows), n_items=n_items)
        for name, words in COLUMNS.items():
            panel.plot(paper.column(some, "alpha"), paper.column(some, name), "o-", label=words)
        panel.set(title=f"{n_items} items", xlabel="alpha", xscale="log", yscale="log")
    axes[0, 0].set_ylabel("total variation")
    axes[0, 0].legend(fontsize=8)
    return figure


def main(arguments: list[str] | None = None) -> None:
    """Run and draw."""
    paper.main(__doc__, __file__, SETTINGS, run, draw, summarise, arguments)


if __name__ == "__main__":
    main()
