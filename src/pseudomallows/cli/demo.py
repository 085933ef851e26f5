"""pseudomallows demo: from real purchases to clusters, recommendations and a report."""

import argparse
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np

from ..distributions import datasets
from ..evaluation.evaluate import evaluate
from ..evaluation.result import Evaluation
from ..files.atomic import make_folder
from ..files.write import write_table
from ..inference.fit import fit
from ..posteriors.diagnostics import ConvergenceWarning
from ..posteriors.posterior import Posterior
from ..posteriors.verdict import judge
from ..preferences import Clicks
from ..recommendations.recommend import recommend
from ..show.report import report
from .progress import show_progress
from .shared import check_report, say

WARM_UP = """
import warnings
import pseudomallows as pm
warnings.simplefilter("ignore")
clicks = pm.simulate_clicks(400, 30, 5, 8, min_clicks=6, rng=1).preferences
pm.evaluate(clicks, 3, 3, "personal", ridge=0.3, rng=1)
pm.recommend(pm.fit(clicks, "matched", n_clusters=2, n_draws=4, n_chains=1, rng=1), 3)
"""
CLUSTERS = {"n_clusters": 6}  # 10 overlap so much that their chains would take minutes
FULL, QUICK = {"n_draws": 100, "n_chains": 4}, {"n_draws": 20, "n_chains": 2}  # for accuracy
N_HIDDEN = 10  # purchases of each customer, as in the paper's case study
MIN_PURCHASES = 13  # so that some are left to learn from
METHODS: dict[str, dict[str, Any]] = {
    "matched": CLUSTERS | QUICK,
    "personal": {"ridge": 0.3},  # one regression: a blend is better, and takes longer
}


def demo(options: argparse.Namespace) -> int:
    """Fit the shipped purchases, judge by hidden ones, write everything a user would."""
    check_report()
    folder = Path(options.out)
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"cannot write into {folder}: it is a file")
    say(options, "Loading; the first time, the kernels are compiled, which takes a minute or so.")
    prefs = datasets.online_retail(min_purchases=MIN_PURCHASES)
    print(
        f"{prefs.n_users:,} customers of a shop for gifts, its {prefs.n_items} most bought "
        f"products, {len(prefs.codes):,} purchases (UCI Online Retail)."
    )
    with warnings.catch_warnings(), _compile_beside():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the report says so, in words
        results = {method: _evaluate(prefs, method, options) for method in METHODS}
        posterior = _fit(prefs, options)
    _print_accuracy(results)
    _print_clusters(posterior)
    _write(folder, posterior, results["matched"], options.seed)
    return 0


@contextmanager
def _compile_beside() -> Iterator[None]:
    """Compile in another process what is needed later, while this one is busy with the first."""
    command = [sys.executable, "-c", WARM_UP]
    beside = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        beside.kill()
        beside.wait()


def _evaluate(prefs: Clicks, method: str, options: argparse.Namespace) -> Evaluation:
    title, seed = f"hiding {N_HIDDEN} purchases, {method}", options.seed
    with show_progress(title, options.quiet) as progress:
        return evaluate(prefs, N_HIDDEN, 10, method, rng=seed, progress=progress, **METHODS[method])


def _fit(prefs: Clicks, options: argparse.Namespace) -> Posterior:
    with show_progress("clusters of all purchases", options.quiet) as progress:
        how = METHODS["matched"] | FULL
        posterior = fit(prefs, "matched", rng=options.seed, progress=progress, **how)
    return cast(Posterior, posterior)  # of this method


def _print_accuracy(results: dict[str, Evaluation]) -> None:
    print(f"{N_HIDDEN} purchases of each customer hidden; of 10 recommendations, found again:")
    for words, accuracy in (
        ("the most bought products", results["matched"].popularity),
        (f"{results['matched'].posterior.n_clusters} clusters", results["matched"].accuracy),
        ("a consensus of one's own", results["personal"].accuracy),
    ):
        print(f"  {words:<28}{accuracy:>7.1%}")
    error = results["personal"].calibration.error
    print(f"  stated and observed probabilities of the last differ by {error:.3f} on average")


def _print_clusters(posterior: Posterior) -> None:
    sizes = np.bincount(posterior.labels, minlength=posterior.n_clusters)
    print("Clusters, by customers, and what each ranks first:")
    for cluster in np.argsort(-sizes, kind="stable").tolist():
        best = [str(row["item"]).lower() for row in posterior.summary(cluster)[:2]]
        print(f"  {sizes[cluster]:>5}  {'; '.join(best)}")


def _write(folder: Path, posterior: Posterior, evaluation: Evaluation, seed: int) -> None:
    """The model, the recommendations and the report, into a folder."""
    make_folder(folder)
    posterior.save(folder / "model.pm")
    write_table(recommend(posterior, 10).to_columns(), folder / "recommendations.csv")
    page, command = folder / "report.html", f"pseudomallows demo --seed {seed}"
    report(posterior, page, evaluation=evaluation, command=command)
    verdict = judge(posterior)
    print(f"Can the clusters be trusted? {verdict.answer}: {verdict.words}")
    print(f"Saved {folder / 'model.pm'} and {folder / 'recommendations.csv'}.")
    print(f"Open {page.resolve().as_uri()}")
