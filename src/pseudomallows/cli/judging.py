"""Commands that judge a model: evaluate, check, report."""

import argparse
from dataclasses import asdict
from typing import Any

from ..engines.executors import Threads
from ..evaluation.check import check
from ..evaluation.evaluate import evaluate
from ..evaluation.evaluate_again import evaluate_again
from ..evaluation.result import Evaluation
from ..evaluation.trials import SPLITS
from ..files.write import as_text
from ..posteriors.save import load
from ..show.report import report
from .arguments import (
    add_command,
    add_data,
    add_judging,
    add_model,
    add_reading,
    add_saved,
    add_seed,
    add_threads,
    count,
)
from .shared import (
    check_out,
    check_report,
    clicks_for,
    progress_of,
    read_clicks,
    say,
)


def add_evaluate(adders: Any) -> None:
    """The command `evaluate`."""
    parser = add_command(
        adders,
        "evaluate",
        evaluate_file,
        "Hide clicks, learn from the rest, and see which recommendations come true. Prints who is "
        "judged, accuracy, recall, NDCG, MRR and coverage beside those of the most clicked items "
        "and of EASE, and stated against observed probabilities.",
        "pseudomallows evaluate clicks.csv --hide 2 --k 3 --seed 1",
    )
    add_data(parser)
    add_judging(parser)
    parser.add_argument(
        "--split",
        choices=SPLITS,
        help="which clicks are hidden: any, each user's last (default if there are times), or all "
        "from a date on",
    )
    parser.add_argument("--at", metavar="TIME", help="of --split time: the date, or number")
    parser.add_argument(
        "--share", type=float, help="of --split time: the share of the clicks that are later (0.2)"
    )
    parser.add_argument("--test", metavar="FILE", help="later clicks, instead of hidden ones")
    add_model(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


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
        "calibration": [
            {"stated": stated, "observed": observed, "count": count}
            for stated, observed, count in zip(
                result.calibration.stated.tolist(),
                result.calibration.observed.tolist(),
                result.calibration.counts.tolist(),
                strict=True,
            )
        ],
    }


def add_check(adders: Any) -> None:
    """The command `check`."""
    parser = add_command(
        adders,
        "check",
        check_file,
        "Check whether the probabilities of a model are right on clicks that came after it. Says "
        "how many recommendations came true, how many were stated, and whether to fit again.",
        "pseudomallows check model.pm later.csv --k 10",
    )
    add_saved(parser)
    parser.add_argument(
        "file",
        metavar="LATER_FILE",
        help="clicks that came after the fit, - for standard input",
    )
    add_reading(parser)
    parser.add_argument("--k", type=count, default=10, metavar="N", help="items for each user (10)")
    add_threads(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def check_file(options: argparse.Namespace) -> int:
    """Whether the probabilities of a model are right on later clicks."""
    posterior = load(options.model)
    later = clicks_for(posterior, options)
    found = check(posterior, later, options.k, executor=Threads(options.threads))
    print(as_text(found.figures()) if options.json else found)
    return 0


def add_report(adders: Any) -> None:
    """The command `report`."""
    parser = add_command(
        adders,
        "report",
        report_file,
        "Write one HTML page about a model. What data, what model, is it to be trusted, the "
        "consensus, the clusters, examples of recommendations.",
        "pseudomallows report model.pm --out report.html",
    )
    add_saved(parser)
    parser.add_argument(
        "--out", default="report.html", metavar="FILE", help="where to write (report.html)"
    )
    parser.add_argument(
        "--evaluate",
        action="store_true",
        help="hide clicks, fit again, show accuracy and calibration",
    )
    add_judging(parser)
    add_seed(parser)


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
