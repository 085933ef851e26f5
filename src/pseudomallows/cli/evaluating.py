"""Commands that evaluate a model: evaluate, check, report."""

import argparse
import shlex

from ..data.write import as_text
from ..engines.executors import Threads
from ..evaluation.check import check
from ..evaluation.evaluate import SPLITS, evaluate, evaluate_again
from ..personal.personal_fit import Fit
from ..personal.save_personal import load
from ..sampling.fit import fit
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
    count_or_auto,
    flag,
    option,
    progress_of,
    read_clicks,
    read_data,
    say,
)
from .info import is_model


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
    option(
        "--keep-in",
        "a model of the same items, which keeps the figures: its report, page and info show them",
        metavar="MODEL",
    ),
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
    if options.keep_in is not None:
        fitted = load(options.keep_in)
        result.keep_in(fitted)
        fitted.save(options.keep_in)
        say(options, f"kept in {options.keep_in}: its report, its page and info show it")
    print(as_text(result.figures()) if options.json else result.summary())
    return 0


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
    "Write one HTML page about a model, or about data. What data, what model, is it to be trusted, "
    "the consensus, the groups, examples of recommendations. Of data, a model is fitted first; "
    "rankings and comparisons are divided into groups, if there are any.",
    "model.pm --out report.html",
    *DATA,
    option("--out", "where to write (report.html)", default="report.html", metavar="FILE"),
    option("--clusters", 'groups of people, of data (as many as there are, "auto")', count_or_auto),
    flag("--evaluate", "hide clicks, fit again, show accuracy and calibration"),
    *HIDING,
    SEED,
    THREADS,
)
def report_file(options: argparse.Namespace) -> int:
    """One page about a model, or about data."""
    check_report()
    check_out(options.out, options.file, "report")
    is_data = options.file == "-" or not is_model(options.file)
    posterior, evaluation = _fitted(options) if is_data else load(options.file), None
    if options.evaluate:
        if posterior.kind != "clicks":
            raise ValueError(
                f"{options.file} was fitted to {posterior.kind}: only clicks can be hidden"
            )
        evaluation = evaluate_again(
            posterior, options.hide, options.k, rng=options.seed, progress=progress_of(options)
        )
    command = f"pseudomallows report {shlex.quote(options.file)}" if is_data else None
    report(posterior, options.out, evaluation=evaluation, command=command)
    say(options, f"wrote {options.out}")
    return 0


def _fitted(options: argparse.Namespace) -> Fit:
    """A fit of data, by defaults: of rankings and comparisons as many groups as there are."""
    prefs = read_data(options)
    chosen = options.clusters
    if chosen is None:
        chosen = 1 if prefs.kind == "clicks" or prefs.is_vote else "auto"
    return fit(
        prefs,
        n_clusters=chosen,
        rng=options.seed,
        progress=progress_of(options),
        executor=Threads(options.threads),
    )
