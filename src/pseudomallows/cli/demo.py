"""pseudomallows demo: real purchases, from best sellers to an order for each customer; how good
each is, what was learnt, and a report."""

import argparse
import textwrap
import time
import warnings
from pathlib import Path
from typing import Any

from ..data import datasets
from ..data.atomic import make_folder
from ..data.write import write_table
from ..evaluation.evaluate import evaluate
from ..evaluation.figures import Evaluation
from ..personal.personal_fit import Fit, as_posterior
from ..posterior.diagnostics import ConvergenceWarning
from ..posterior.posterior import Posterior
from ..recommendations.recommend import DIGITS, recommend
from ..sampling.fit import fit
from ..show.examples import make_examples
from ..show.report import report
from .arguments import check_report, command, option, progress_of, say, seed

N_HIDDEN = 10  # purchases of each customer, as in the paper's case study
GROUPS: dict[str, Any] = {"n_clusters": 4, "n_draws": 50}  # draws that recommend, no intervals
LADDER: dict[str, tuple[str, dict[str, Any]]] = {  # in words: the method and its options
    "the paper's Pseudo-Mallows, 4 groups": ("pseudo", GROUPS),
    "exact Mallows, 4 groups": ("mcmc", GROUPS | {"n_chains": 2}),
    "each customer's own order": ("personal", {}),
}


@command(
    "demo",
    "Learn from real purchases what each customer wants next, in four ways, and say how many "
    "hidden purchases each finds again. Writes a model, recommendations and a report.",
    "--out demo --seed 1",
    option("--out", "where to write (demo)", default="demo", metavar="FOLDER"),
    option("--seed", "the same seed gives the same result (1)", seed, 1),
)
def run_demo(options: argparse.Namespace) -> int:
    """Evaluate four ways by hidden purchases, learn from all, write everything a user would."""
    started = time.perf_counter()
    check_report()
    folder = Path(options.out)
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"cannot write into {folder}: it is a file")
    prefs = datasets.online_retail(min_purchases=N_HIDDEN + 3)  # some are left to learn from
    print(
        f"A gift shop: {prefs.n_users:,} customers, its {prefs.n_items} most bought products, "
        f"{len(prefs.codes):,} purchases (UCI Online Retail)."
    )
    say(options, "The first time, kernels are compiled.")
    shown: Any = {"rng": options.seed, "progress": progress_of(options)}
    results = _climb(prefs, shown)
    posterior: Any = fit(prefs, **shown)
    own = results["personal"]
    own.keep_in(posterior)
    _print_consensus(posterior.population, results["mcmc"])
    _print_customer(posterior)
    _print_certificate(own)
    page = _write(folder, posterior, options.seed)
    say(options, f"Done in {time.perf_counter() - started:.0f} seconds.")
    print(f"Open {page.resolve().as_uri()}")
    return 0


def _climb(prefs: Any, shown: dict[str, Any]) -> dict[str, Evaluation]:
    """The four ways, each with its share of hits, the share that it stated, and its time."""
    print(f"\nThe last {N_HIDDEN} purchases of each customer are hidden. Of 10 recommendations to")
    print("each, how many are among them, and how many are stated to be?\n")
    print(f"{'':<38}{'found':>7}{'stated':>8}{'seconds':>9}")
    results: dict[str, Evaluation] = {}
    for words, (method, options) in LADDER.items():
        started = time.perf_counter()
        with warnings.catch_warnings():  # too few draws for intervals, which are not asked for
            warnings.simplefilter("ignore", ConvergenceWarning)
            result = evaluate(prefs, N_HIDDEN, 10, method, **shown, **options)
        seconds = time.perf_counter() - started
        if not results:
            print(f"{'best sellers':<38}{result.popularity:>7.1%}")
        stated = float(result.recommendations.probabilities.mean())
        print(f"{words:<38}{result.accuracy:>7.1%}{stated:>8.1%}{seconds:>9.0f}")
        results[method] = result
    return results


def _print_consensus(population: Posterior, groups: Evaluation) -> None:
    from ..show.page import readable  # Jinja2 is optional

    rows = population.summary(first=3)
    listed = [f"{readable(row['item'])} ({row['lowest']} to {row['highest']})" for row in rows]
    together = f"All customers together, ranks with 95 % intervals: {', '.join(listed)}."
    print("\n" + textwrap.fill(together, 100))
    found = as_posterior(groups.posterior)
    sizes = found.shares.mean(axis=(0, 1))
    for cluster in sizes.argsort()[::-1][:2].tolist():
        best = [readable(row["item"]) for row in found.summary(cluster, first=3)]
        print(f"A group of {sizes[cluster]:.0%} prefers {', '.join(best)}.")


def _print_customer(posterior: Fit) -> None:
    from ..show.page import readable

    (example,) = make_examples(posterior, 1)
    bought = [readable(name) for name in example["clicked"][:3]]
    n_more = len(example["clicked"]) - len(bought) + example["n_more"]
    has = f"Customer {example['user']} bought {', '.join(bought)} and {n_more} more. Next:"
    print("\n" + textwrap.fill(has, 100))
    for item, probability, reasons in example["next"]:
        why = f"  because of {' and '.join(map(readable, reasons))}" if reasons else ""
        print(f"  {probability:>4.0%}  {readable(item)}{why}")


def _print_certificate(result: Evaluation) -> None:
    verdict = result.verdict
    print("\nHow sure: stated probabilities of the last, and how many came true.")
    for cell in result.certificate:
        if cell.by == "users with":
            print(
                f"  stated {cell.stated:>4.0%}   observed {cell.observed:>4.0%}   customers with "
                f"{cell.cell.replace('click', 'purchase')} "
                f"({cell.n_recommendations:,} recommendations)"
            )
    print(textwrap.fill(f"Can it be trusted? {verdict.answer}: {verdict.words}", 100))


def _write(folder: Path, posterior: Fit, seed: int) -> Path:
    """The model, the recommendations and the report, into a folder."""
    make_folder(folder)
    posterior.save(folder / "model.pm")
    write_table(recommend(posterior, 10).to_columns(DIGITS), folder / "recommendations.csv")
    page, command = folder / "report.html", f"pseudomallows demo --seed {seed}"
    title = f"A gift shop: what {len(posterior.users):,} customers will want next"
    report(posterior, page, title=title, command=command)
    print(f"\nSaved {folder / 'model.pm'}, {folder / 'recommendations.csv'} and the report.")
    return page
