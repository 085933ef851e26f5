"""pseudomallows demo: from real purchases to recommendations, how good they are, and a report."""

import argparse
import time
from pathlib import Path
from typing import Any

from ..data import datasets
from ..data.atomic import make_folder
from ..data.write import write_table
from ..evaluation.evaluate import evaluate
from ..evaluation.figures import Evaluation
from ..personal.personal_fit import Fit
from ..recommendations.recommend import DIGITS, recommend
from ..sampling.fit import fit
from ..show.examples import make_examples
from ..show.report import report
from .arguments import check_report, command, option, progress_of, say, seed

METHOD = "personal"  # an order for each customer
N_HIDDEN = 10  # purchases of each customer, as in the paper's case study


@command(
    "demo",
    "Learn from real purchases what each customer wants next. Writes a model, recommendations "
    "and a report, and says how many hidden purchases were found again.",
    "--out demo --seed 1",
    option("--out", "where to write (demo)", default="demo", metavar="FOLDER"),
    option("--seed", "the same seed gives the same result (1)", seed, 1),
)
def run_demo(options: argparse.Namespace) -> int:
    """Learn from the shipped purchases, evaluate by hidden ones, write everything a user would."""
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
    say(options, "Learning what each customer wants; the first time, kernels are compiled.")
    shown: Any = {"rng": options.seed, "progress": progress_of(options)}
    posterior = fit(prefs, METHOD, **shown)
    say(options, f"Learning again without the last {N_HIDDEN} purchases of each customer.")
    result = evaluate(prefs, N_HIDDEN, 10, METHOD, **shown)
    _print_learnt(posterior)
    _print_accuracy(result)
    _print_calibration(result)
    page = _write(folder, posterior, result, options.seed)
    say(options, f"Done in {time.perf_counter() - started:.0f} seconds.")
    print(f"Open {page.resolve().as_uri()}")
    return 0


def _print_learnt(posterior: Fit) -> None:
    from ..show.page import readable  # Jinja2 is optional

    print("\nWhat was learnt: an order of the products for each customer. For example,")
    (example,) = make_examples(posterior, 1)
    bought = [readable(name) for name in example["clicked"][:3]]
    n_more = len(example["clicked"]) - len(bought) + example["n_more"]
    print(f"customer {example['user']} bought {', '.join(bought)} and {n_more} more. Next:")
    for item, probability, reasons in example["next"]:
        why = f"  because of {' and '.join(map(readable, reasons))}" if reasons else ""
        print(f"  {probability:>4.0%}  {readable(item)}{why}")


def _print_accuracy(result: Evaluation) -> None:
    hidden = f"the last {N_HIDDEN} purchases of each customer, hidden from the fit"
    print(f"\nHow good: measured on {hidden}. Of 10 recommendations,")
    times = result.accuracy / result.popularity
    print(f"  {result.popularity:>6.1%}  were right with the most bought products")
    print(f"  {result.accuracy:>6.1%}  were right with what was learnt, {times:.1f} times as many")


def _print_calibration(result: Evaluation) -> None:
    verdict, row = result.verdict, "  stated {stated:>4.0%}   observed {observed:>4.0%}   "
    print("\nHow sure: stated probabilities against what was observed.")
    for figures in result.calibration.rows():
        print((row + "({count:,} recommendations)").format(**figures))
    print(f"Can it be trusted? {verdict.answer}: {verdict.words}")


def _write(folder: Path, posterior: Fit, result: Evaluation, seed: int) -> Path:
    """The model, the recommendations and the report, into a folder."""
    make_folder(folder)
    posterior.save(folder / "model.pm")
    write_table(recommend(posterior, 10).to_columns(DIGITS), folder / "recommendations.csv")
    page, command = folder / "report.html", f"pseudomallows demo --seed {seed}"
    title = f"A gift shop: what {len(posterior.users):,} customers will want next"
    report(posterior, page, evaluation=result, title=title, command=command)
    print(f"\nSaved {folder / 'model.pm'}, {folder / 'recommendations.csv'} and the report.")
    return page
