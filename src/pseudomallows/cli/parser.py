"""The command line: one command per public function."""

import argparse
import os
import sys
import warnings
from typing import Any

from .._version import __version__
from ..distances import DISTANCES
from ..engines.executors import WorkersError
from ..evaluation.trials import SPLITS
from ..files.kinds import KINDS
from ..posteriors.names import ERROR_MODELS, UPDATES
from . import commands
from .arguments import (
    add_dask,
    add_data,
    add_judging,
    add_method_words,
    add_model,
    add_reading,
    add_saved,
    add_seed,
    add_table,
    add_threads,
    count,
)
from .demo import demo
from .info import info
from .prepare import prepare
from .progress import say_when_compiling

FILES_AND_CODES = """\
Files: comma-, semicolon- or tab-separated values (also .gz), Parquet, PrefLib, NumPy; "-" is
standard input or output. Exit codes: 0 all is well, 1 bad input, 2 wrong usage, 130 interrupted."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code: 0, 1 on bad input, 130 when interrupted."""
    options = make_parser().parse_args(arguments)
    try:
        with warnings.catch_warnings(), say_when_compiling(getattr(options, "quiet", True)):
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)  # ours
            warnings.simplefilter("always", RuntimeWarning)
            warnings.showwarning = _show_warning
            code = int(options.run(options))
            sys.stdout.flush()
            return code
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, TypeError, OSError, ModuleNotFoundError, WorkersError) as error:
        print(f"pseudomallows: {error}", file=sys.stderr)
        return 1
    except MemoryError:
        print("pseudomallows: there is not enough memory for this", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("pseudomallows: interrupted", file=sys.stderr)
        return 130


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    print(f"pseudomallows: warning: {message}", file=sys.stderr)


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="pseudomallows",
        description="Learn what people prefer, and how sure you can be of it.",
        epilog=FILES_AND_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"pseudomallows {__version__}")
    adders = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for add in (_demo, _prepare, _simulate, _split, _fit, _update, _consensus, _recommend):
        add(adders)
    for add in (_similar, _explain, _pairs, _evaluate, _check, _distances, _report, _info, _serve):
        add(adders)
    _completion(adders)
    return parser


def _command(adders: Any, name: str, run: Any, words: str, example: str) -> argparse.ArgumentParser:
    """A command whose help ends in an example."""
    parser: argparse.ArgumentParser = adders.add_parser(
        name,
        help=words[0].lower() + words[1:].split(".")[0],
        description=words,
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    parser.add_argument("--quiet", action="store_true", help="say nothing but results and warnings")
    return parser


def _demo(adders: Any) -> None:
    parser = _command(
        adders,
        "demo",
        demo,
        "Learn from real purchases what each customer wants next. Writes a model, recommendations "
        "and a report, and says how many hidden purchases were found again.",
        "pseudomallows demo --out demo --seed 1",
    )
    parser.add_argument("--out", default="demo", metavar="FOLDER", help="where to write (demo)")
    add_seed(parser, default=1)


def _prepare(adders: Any) -> None:
    parser = _command(
        adders,
        "prepare",
        prepare,
        "Compile all kernels, once for this installation, so that nothing waits for it later. "
        "They are kept beside the package, or in the folder NUMBA_CACHE_DIR names.",
        "pseudomallows prepare",
    )
    add_threads(parser)


def _simulate(adders: Any) -> None:
    parser = _command(
        adders,
        "simulate",
        commands.simulate,
        "Simulate users around a consensus, or several. Clicks come out long (user, item), "
        "rankings wide (one column an item).",
        "pseudomallows simulate clicks --users 500 --items 50 --alpha 5 --out clicks.csv --seed 1",
    )
    parser.add_argument("what", choices=("clicks", "rankings"), help="what the users show")
    parser.add_argument(
        "--users", type=count, default=500, metavar="N", help="how many users (500)"
    )
    parser.add_argument("--items", type=count, default=50, metavar="N", help="how many items (50)")
    parser.add_argument(
        "--alpha", type=float, default=5.0, help="how closely users follow their consensus (5)"
    )
    parser.add_argument("--clusters", type=count, default=1, metavar="N", help="how many (1)")
    parser.add_argument(
        "--mean-clicks",
        type=float,
        default=5.0,
        metavar="N",
        help="clicks per user, on average (5)",
    )
    parser.add_argument(
        "--top", type=count, metavar="N", help="for rankings: show the first N ranks"
    )
    _add_distance(parser)
    parser.add_argument("--truth", metavar="FILE", help="write the full rankings too")
    parser.add_argument("--out", default="-", metavar="FILE", help="where to write (-)")
    add_seed(parser)


def _add_distance(parser: argparse.ArgumentParser, default: str | None = "footrule") -> None:
    usual = "footrule" if default else "footrule; of votes, one comparison a person, kendall"
    words = f"between a user and the consensus ({usual})"
    parser.add_argument("--distance", choices=DISTANCES, default=default, help=words)


def _distances(adders: Any) -> None:
    parser = _command(
        adders,
        "distances",
        commands.compare_distances,
        "Compare distances: which one describes unseen users best? Writes a table.",
        "pseudomallows distances clicks.csv --seed 1",
    )
    add_data(parser)
    parser.add_argument("--out", default="-", metavar="FILE", help="where to write (-)")
    add_seed(parser)


def _fit(adders: Any) -> None:
    parser = _command(
        adders,
        "fit",
        commands.fit_file,
        "Learn a consensus, or several, from a file of rankings or clicks. Saves a model.",
        "pseudomallows fit clicks.csv --out model.pm --clusters 3 --seed 1",
    )
    parser.add_argument("--out", required=True, metavar="MODEL", help="where to save the model")
    add_data(parser)
    add_model(parser)
    _add_distance(parser, None)
    parser.add_argument(
        "--update",
        choices=UPDATES,
        help="for pseudo on clicks: draw latent rankings, or take their mean, for millions",
    )
    parser.add_argument(
        "--errors",
        choices=ERROR_MODELS,
        help="of comparisons: none, or some are wrong (bernoulli if users contradict themselves)",
    )
    parser.add_argument(
        "--checkpoint",
        metavar="FILE",
        help="save the fit there regularly, and continue from it; needs --seed",
    )
    add_dask(parser)
    add_method_words(parser)


def _update(adders: Any) -> None:
    parser = _command(
        adders,
        "update",
        commands.update_file,
        "Add clicks to a model, of new users or of the same ones. The chains of mcmc and matched "
        "continue where they stopped; other models of clicks are fitted again. Saves a new model.",
        "pseudomallows update model.pm later.csv --out newer.pm --seed 2",
    )
    add_saved(parser)
    parser.add_argument("file", metavar="FILE", help="more clicks, - for standard input")
    add_reading(parser)
    parser.add_argument("--out", required=True, metavar="MODEL", help="where to save the new model")
    parser.add_argument("--draws", type=count, metavar="N", help="draws (as many as before)")
    add_seed(parser)
    add_threads(parser)


def _split(adders: Any) -> None:
    parser = _command(
        adders,
        "split",
        commands.split_file,
        "Cut a click log into Parquet files, by users. For Dask workers, which read them "
        "themselves.",
        "pseudomallows split clicks.csv --out parts --parts 8",
    )
    parser.add_argument("--out", required=True, metavar="FOLDER", help="where to write")
    parser.add_argument("--parts", type=count, default=8, metavar="N", help="how many (8)")
    add_data(parser)


def _consensus(adders: Any) -> None:
    parser = _command(
        adders,
        "consensus",
        commands.consensus,
        "Print the consensus of a model. Each item with its rank, mean rank and interval, cluster "
        "by cluster.",
        "pseudomallows consensus model.pm",
    )
    add_saved(parser)
    parser.add_argument("--cluster", type=int, metavar="N", help="one cluster only, from 0")
    parser.add_argument(
        "--probability", type=float, default=0.95, help="that an interval contains the rank (0.95)"
    )
    add_table(parser)


def _recommend(adders: Any) -> None:
    parser = _command(
        adders,
        "recommend",
        commands.recommend_file,
        "Recommend to each user the items most likely to come next. With probabilities; for users "
        "of the model, or for new ones from their clicks.",
        "pseudomallows recommend model.pm --k 10 --out recommendations.csv",
    )
    add_saved(parser)
    parser.add_argument("--k", type=count, default=10, metavar="N", help="items for each user (10)")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--users", nargs="+", metavar="USER", help="some users only, by name")
    chosen.add_argument(
        "--clicks",
        metavar="FILE",
        help="clicks of new users (user, item); with a folder of Parquet parts, --out is one too",
    )
    rows = "one item a line, or rows of user,item"
    parser.add_argument("--exclude", metavar="FILE", help=f"items not to show: {rows}")
    parser.add_argument("--only", metavar="FILE", help=f"items to choose from: {rows}")
    add_threads(parser)
    add_dask(parser)
    add_table(parser)


def _similar(adders: Any) -> None:
    parser = _command(
        adders,
        "similar",
        commands.similar,
        "Find the items that are most like one, or the users who are. Needs a model with clusters, "
        "or one of personal.",
        'pseudomallows similar model.pm --item "item 07" --k 5',
    )
    add_saved(parser)
    one = parser.add_mutually_exclusive_group(required=True)
    one.add_argument("--item", help="items like this one")
    one.add_argument("--user", help="users of the model like this one")
    one.add_argument("--clicks", nargs="*", metavar="ITEM", help="users like someone who clicked")
    parser.add_argument("--k", type=count, default=10, metavar="N", help="how many (10)")
    add_table(parser)


def _explain(adders: Any) -> None:
    parser = _command(
        adders,
        "explain",
        commands.explain_item,
        "Say what speaks for an item: which clicks, or which clusters, and how much. The amounts "
        "add up to the item's score (personal) or to its probability.",
        'pseudomallows explain model.pm --item "item 07" --clicks "item 03" "item 11"',
    )
    add_saved(parser)
    parser.add_argument("--item", required=True, help="the item")
    one = parser.add_mutually_exclusive_group(required=True)
    one.add_argument("--user", help="a user of the model")
    one.add_argument("--clicks", nargs="*", metavar="ITEM", help="what a new user clicked")
    parser.add_argument(
        "--k", type=count, default=10, metavar="N", help="the probability is of the next N (10)"
    )
    add_table(parser)


def _pairs(adders: Any) -> None:
    parser = _command(
        adders,
        "pairs",
        commands.pairs_to_compare,
        "Say which pairs of items to compare next. Those whose answer would tell most about the "
        "consensus, with the probability of each answer and what it tells, in bits.",
        "pseudomallows pairs model.pm --n 10",
    )
    add_saved(parser)
    parser.add_argument("--n", type=count, default=10, metavar="N", help="how many pairs (10)")
    parser.add_argument("--user", help="about a user whose latent rankings the model keeps")
    parser.add_argument(
        "--cluster", type=int, default=0, metavar="N", help="whose consensus, from 0 (0)"
    )
    add_seed(parser)
    add_table(parser)


def _evaluate(adders: Any) -> None:
    parser = _command(
        adders,
        "evaluate",
        commands.evaluate_file,
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
        default="random",
        help="which clicks are hidden: any, each user's last, or all from a date on (random)",
    )
    parser.add_argument("--at", metavar="TIME", help="of --split time: the date, or number")
    parser.add_argument(
        "--share", type=float, help="of --split time: the share of the clicks that are later (0.2)"
    )
    parser.add_argument("--test", metavar="FILE", help="later clicks, instead of hidden ones")
    add_model(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def _check(adders: Any) -> None:
    parser = _command(
        adders,
        "check",
        commands.check_file,
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


def _report(adders: Any) -> None:
    parser = _command(
        adders,
        "report",
        commands.report_file,
        "Write one HTML page about a model. What data, what model, is it to be trusted, the "
        "consensus, the clusters, examples of recommendations.",
        "pseudomallows report model.pm --out report.html",
    )
    add_saved(parser)
    parser.add_argument("--out", default="report.html", metavar="FILE", help="(report.html)")
    parser.add_argument(
        "--evaluate",
        action="store_true",
        help="hide clicks, fit again, show accuracy and calibration",
    )
    add_judging(parser)
    add_seed(parser)


def _info(adders: Any) -> None:
    parser = _command(
        adders,
        "info",
        info,
        "Tell what a file holds: a model, rankings, clicks or comparisons.",
        "pseudomallows info clicks.csv",
    )
    parser.add_argument("file", metavar="FILE", help="a saved model, or data")
    parser.add_argument("--kind", choices=KINDS, help="kind of the data")
    add_reading(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def _serve(adders: Any) -> None:
    parser = _command(
        adders,
        "serve",
        commands.serve_model,
        "Answer over HTTP from a model, and keep new clicks. With a page to look at; until Ctrl-C. "
        "Whoever writes needs the token, if there is one; it is read from the file or from the "
        "variable PSEUDOMALLOWS_TOKEN.",
        "pseudomallows serve model.pm --port 8000 --store clicks.sqlite",
    )
    add_saved(parser)
    parser.add_argument("--port", type=int, default=8000, metavar="N", help="(8000)")
    parser.add_argument(
        "--host", default="127.0.0.1", help="address; one for others needs a token (127.0.0.1)"
    )
    parser.add_argument(
        "--store",
        default="clicks.sqlite",
        metavar="FILE",
        help="where new clicks go, or postgresql://... (clicks.sqlite)",
    )
    parser.add_argument("--token-file", metavar="FILE", help="the token that writers must give")
    parser.add_argument(
        "--refit-every", type=float, metavar="SECONDS", help="refit with the new clicks this often"
    )
    parser.add_argument(
        "--rate",
        type=float,
        metavar="N",
        help="requests per second from one client (any number on this machine, else 100)",
    )
    parser.add_argument(
        "--upload-rows",
        type=count,
        default=10_000_000,
        metavar="N",
        help="rows of an upload (10,000,000)",
    )
    parser.add_argument(
        "--upload-users",
        type=count,
        default=1_000_000,
        metavar="N",
        help="users of an upload (1,000,000)",
    )
    parser.add_argument(
        "--upload-items",
        type=count,
        default=10_000,
        metavar="N",
        help="items of an upload that the model does not know (10,000)",
    )
    parser.add_argument(
        "--name",
        action="append",
        default=[],
        metavar="HOST",
        help="behind a proxy: the name by which pages ask for the service; may be given again",
    )
    parser.add_argument(
        "--trusted-proxies",
        metavar="ADDRESS[,ADDRESS...]",
        help="proxies whose X-Forwarded-For says who asks (none)",
    )
    parser.add_argument(
        "--max-connections-per-client",
        type=int,
        default=100,
        metavar="N",
        help="connections from one address, unless it is a trusted proxy (100)",
    )


def _completion(adders: Any) -> None:
    parser = _command(
        adders,
        "completion",
        _print_completion,
        "Print a script that completes this command in your shell. Needs shtab.",
        "pseudomallows completion bash",
    )
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"))


def _print_completion(options: argparse.Namespace) -> int:
    try:
        import shtab
    except ModuleNotFoundError:  # pragma: no cover
        raise ModuleNotFoundError(
            "completion needs shtab: pip install 'pseudomallows[cli]'"
        ) from None
    print(shtab.complete(make_parser(), options.shell))
    return 0
