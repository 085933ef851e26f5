"""Figure 5 of the paper: noise on the V-ranking brings Pseudo-Mallows nearer to the posterior.

The paper: with N = 100 users and n = 20 items, at alpha 1 and at alpha 2, a sigma above 0 gives a
smaller marginal divergence from the Mallows posterior than sigma = 0 (heat plots; the value of
sigma and the divergences are not printed).

Here the posterior is exact, by sums over sets of ranks. Sigma is the best of a grid. The
Pseudo-Mallows marginals come from many draws; every probability below 1e-4 is raised to it on both
sides. Beyond the paper: more data sets, and the balanced law.
"""

import numpy as np
from matplotlib.figure import Figure

import paper
import pseudomallows as pm
from pseudomallows.kernels.subsets import posterior_by_subsets
from pseudomallows.scores import rank_divergence, share_of_ranks

SIGMAS = (0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 15.0, 20.0)
PAPER = {"n_users": 100, "n_items": 20, "alphas": (1.0, 2.0), "sigmas": SIGMAS}
SETTINGS = paper.Settings(
    reduced=PAPER | {"n_sets": 5, "n_draws": 10_000},
    full=PAPER | {"n_sets": 10, "n_draws": 50_000},
    smallest={
        "n_users": 60,
        "n_items": 10,
        "alphas": (1.0,),
        "sigmas": (0.0, 2.0, 4.0),
        "n_sets": 3,
        "n_draws": 2000,
    },
)


def exact_marginals(law: pm.PseudoMallows) -> paper.Array:
    """Rank probabilities of the Mallows posterior, up to some 20 items."""
    marginals = np.empty((law.n_items, law.n_items))
    posterior_by_subsets(-law.alpha / law.n_items * law.costs, marginals)
    return marginals


def laws(setting: dict, alpha: float, rng: np.random.Generator) -> dict[str, paper.Array]:
    """{name: rank probabilities} on one data set; a name is "exact", "balanced" or a sigma."""
    n_items, n_draws = setting["n_items"], setting["n_draws"]
    rankings = pm.Mallows(np.arange(1, n_items + 1), alpha).draw(setting["n_users"], rng)
    tables = {"exact": exact_marginals(pm.PseudoMallows(rankings, alpha))}
    for sigma in setting["sigmas"]:
        draws = pm.PseudoMallows(rankings, alpha, sigma=sigma).draw(n_draws, rng)
        tables[f"{sigma:g}"] = share_of_ranks(draws)
    draws = pm.PseudoMallows(rankings, alpha, balanced=True).draw(n_draws, rng)
    return tables | {"balanced": share_of_ranks(draws)}


def run(setting: dict, seed: int) -> list[paper.Row]:
    """Divergences for all data sets; whole tables for the first one."""
    rows = []
    for alpha, number in paper.each(setting["alphas"], range(setting["n_sets"])):
        rng = np.random.default_rng((seed, round(1000 * alpha), number))
        tables = laws(setting, alpha, rng)
        shared = {"n_users": setting["n_users"], "n_items": setting["n_items"]}
        shared |= {"alpha": alpha, "data_set": number}
        for law, table in tables.items():
            divergence = rank_divergence(table, tables["exact"])
            rows.append(shared | {"kind": "divergence", "law": law, "divergence": divergence})
            if number == 0:
                cell = shared | {"kind": "table", "law": law}
                rows += paper.table_rows(table, ("item", "rank"), "probability", **cell)
    return rows


def divergences(rows: list[paper.Row], alpha: float) -> dict[str, paper.Array]:
    """{law: its divergences, one a data set}."""
    rows = [row for row in rows if row["kind"] == "divergence" and row["alpha"] == alpha]
    return {
        law: paper.column([row for row in rows if str(row["law"]) == law], "divergence")
        for law in map(str, paper.unique(rows, "law"))
    }


def best_sigma(values: dict[str, paper.Array], number: int) -> str:
    """The sigma of the smallest divergence on a data set."""
    sigmas = [law for law in values if law not in ("exact", "balanced")]
    return min(sigmas, key=lambda sigma: values[sigma][number])


def summarise(rows: list[paper.Row]) -> str:
    """Divergences without and with noise."""
    lines = []
    for alpha in paper.unique(rows, "alpha"):
        values = divergences(rows, alpha)
        n_sets = len(values["0"])
        best = [best_sigma(values, number) for number in range(n_sets)]
        lowest = [values[sigma][number] for number, sigma in enumerate(best)]
        lines.append(
            f"alpha {alpha}: sigma 0 {np.round(values['0'], 2)}, best sigma {', '.join(best)} "
            f"{np.round(lowest, 2)}, balanced {np.round(values['balanced'], 2)}; means "
            f"{values['0'].mean():.2f}, {np.mean(lowest):.2f}, {values['balanced'].mean():.2f}"
        )
    return "\n".join(lines)


def draw(rows: list[paper.Row]) -> Figure:
    """The posterior, sigma 0, the best sigma, and the balanced law, a row for each alpha."""
    alphas = paper.unique(rows, "alpha")
    title = "Noise on the V-ranking lowers the marginal divergence; balancing lowers it more"
    figure, axes = paper.panels(rows, title, len(alphas), 4, width=12, height=0.8 + 3 * len(alphas))
    for line, alpha in zip(axes, alphas, strict=True):
        values = divergences(rows, alpha)
        sigma = best_sigma(values, 0)
        shown = {"exact": "Mallows posterior, exact", "0": "Pseudo-Mallows, sigma 0"}
        shown |= {
            sigma: f"Pseudo-Mallows, sigma {sigma}",
            "balanced": "balanced (not in the paper)",
        }
        for panel, (law, name) in zip(line, shown.items(), strict=False):
            own = [row for row in rows if row["kind"] == "table" and row["alpha"] == alpha]
            own = [row for row in own if str(row["law"]) == law]
            table = paper.table_of(own, ("item", "rank"), "probability")
            words = f"alpha {alpha:g}" if law == "exact" else f"marginal KL {values[law][0]:.2f}"
            mesh = paper.heat(panel, table, f"{name}\n{words}", "item, by true rank", highest=0.6)
        line[0].set_ylabel("rank")
    figure.colorbar(mesh, ax=axes, label="probability", extend="max")
    return figure


def main(arguments: list[str] | None = None) -> None:
    """Run and draw."""
    paper.main(__doc__, __file__, SETTINGS, run, draw, summarise, arguments)


if __name__ == "__main__":
    main()
