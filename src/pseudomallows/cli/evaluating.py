"""Commands that evaluate a model: evaluate, check, report."""

import argparse
from dataclasses import asdict
from typing import Any

from ..data.write import as_text
from ..engines.executors import Threads
from ..evaluation.check import check
from ..evaluation.evaluate import SPLITS, evaluate, evaluate_again
from ..evaluation.figures import Evaluation
from ..personal.save_personal import load
from ..show.report import report
from .arguments import (
    DATA,
    FITTING,
    HIDING,
    JSON,
    MODEL,
    N_NEXT,
    READING,
    SEED,
    THREADS,
    check_out,
    check_report,
    clicks_for,
    command,
    flag,
    option,
    progress_of,
    read_clicks,
    say,
)


@command(
    "evaluate",
    "Hide clicks, learn from the rest, and see which recommendations are hits. Prints who is "
    "evaluated, accuracy, recall, NDCG, MRR and coverage beside those of the most clicked items "
    "and of EASE, and stated against observed probabilities.",
    "clicks.csv --hide 2 --k 3 --seed 1",
    *DATA,
    *HIDING,
    option(
        "--split",
        "which clicks are hidden: any, each user's last (default if there are times), or all "
        "from a date on",
        choices=SPLITS,
    ),
    option("--at", "of --split time: the date, or number", metavar="TIME"),
    option("--share", "of --split time: the share of the clicks that are later (0.2)", float),
    option("--test", "later clicks, instead of hidden ones", metavar="FILE"),
    *FITTING,
    JSON,
)
def evaluate_file(options: argparse.Namespace) -> int:
    """Accuracy and calibration on hidden clicks."""
    prefs = read_clicks(options, "evaluate")
    result = evaluate(
        prefs,
        options.hide,
        options.k,
        options.method,
        split=options.split,
        test=options.test,
        at=options.at,
        share=options.share,
        rng=options.seed,
        executor=Threads(options.threads),
        alpha=options.alpha,
        n_draws=options.draws,
        n_clusters=options.clusters,
        progress=progress_of(options),
    )
    print(as_text(_figures(result)) if options.json else result.summary())
    return 0


def _figures(result: Evaluation) -> dict[str, Any]:
    """The figures of an evaluation, for JSON."""
    return {
        "verdict": {"answer": result.verdict.answer, "words": result.verdict.words},
        "accuracy": result.accuracy,
        "accuracy_error": result.accuracy_error,
        "popularity": result.popularity,
        "n_users": result.n_users,
        "hidden": result.judged.by,
        "all_users": result.judged.n_users,
        "not_judged": result.judged.others,
        "scores": {
            name: asdict(scores)
            for name, scores in ({"fit": result.scores} | result.baselines).items()
        },
        "calibration_error": result.calibration.error,
        "calibration": result.calibration.rows(),
    }


@command(
    "check",
    "Check whether the probabilities of a model are right on clicks that came after it. Says "
    "how many recommendations were hits, how many were stated, and whether to fit again.",
    "model.pm later.csv --k 10",
    MODEL,
    option("file", "clicks that came after the fit, - for standard input", metavar="LATER_FILE"),
    *READING,
    N_NEXT,
    THREADS,
    JSON,
)
def check_file(options: argparse.Namespace) -> int:
    """Whether the probabilities of a model are right on later clicks."""
    posterior = load(options.model)
    later = clicks_for(posterior, options)
    result = check(posterior, later, options.k, executor=Threads(options.threads))
    print(as_text(result.figures()) if options.json else result)
    return 0


@command(
    "report",
    "Write one HTML page about a model. What data, what model, is it to be trusted, the "
    "consensus, the clusters, examples of recommendations.",
    "model.pm --out report.html",
    MODEL,
    option("--out", "where to write (report.html)", default="report.html", metavar="FILE"),
    flag("--evaluate", "hide clicks, fit again, show accuracy and calibration"),
    *HIDING,
    SEED,
)
def report_file(options: argparse.Namespace) -> int:
    """One page about a model."""
    check_report()
    check_out(options.out, options.model, "report")
    posterior, evaluation = load(options.model), None
    if options.evaluate:
        if posterior.kind != "clicks":
            raise ValueError(
                f"{options.model} was fitted to {posterior.kind}: only clicks can be hidden"
            )
        evaluation = evaluate_again(
            posterior, options.hide, options.k, rng=options.seed, progress=progress_of(options)
        )
    report(posterior, options.out, evaluation=evaluation)
    say(options, f"wrote {options.out}")
    return 0
