"""The command `pseudomallows`: one command per public function."""

import argparse
import os
import signal
import sys
import threading
import warnings
from contextlib import nullcontext
from typing import Any

from .._start import stop
from .._version import __version__
from ..engines.executors import WorkersError
from ..engines.progress import compiling_said
from .arguments import command, option
from .asking import consensus, explain_item, pairs_to_compare, recommend_file, similar
from .demo import run_demo
from .evaluating import check_file, evaluate_file, report_file
from .info import describe_file
from .learning import compare_distances, fit_file, simulate, split_file, update_file
from .prepare import compile_all
from .serving import serve_model

FILES_AND_CODES = """\
Files: comma-, semicolon- or tab-separated values (also .gz), Parquet, PrefLib, NumPy; "-" is
standard input or output. Exit codes: 0 all is well, 1 bad input, 2 wrong usage, 130 interrupted."""


BAD_INPUT = (ValueError, TypeError, OSError, ModuleNotFoundError, WorkersError)
was_interrupted = threading.Event()


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code: 0, 1 on bad input, 130 when interrupted."""
    try:
        _listen_to_signals()
        options = make_parser().parse_args(arguments)
        is_quiet = getattr(options, "quiet", True)
        with warnings.catch_warnings(), nullcontext() if is_quiet else compiling_said():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)  # ours
            warnings.simplefilter("always", RuntimeWarning)
            warnings.simplefilter("always", EncodingWarning)
            warnings.showwarning = _show_warning
            code = int(options.run(options))
            sys.stdout.flush()
            return code
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        print("pseudomallows: there is not enough memory for this", file=sys.stderr)
        return 1
    except (Exception, KeyboardInterrupt) as error:
        if was_interrupted.is_set() or isinstance(error, KeyboardInterrupt):
            print("pseudomallows: interrupted", file=sys.stderr)
            return 130
        if isinstance(error, BAD_INPUT):
            print(f"pseudomallows: {error}", file=sys.stderr)
            return 1
        raise


def _interrupt(*_: Any) -> None:
    """Ctrl-C; in the middle of the import of a library it may come out as an ImportError."""
    was_interrupted.set()
    raise KeyboardInterrupt


def _listen_to_signals() -> None:
    """Ctrl-C and SIGTERM are exceptions, so that no temporary file is left behind."""
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGINT) is stop:
        signal.signal(signal.SIGINT, _interrupt)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    print(f"pseudomallows: warning: {message}", file=sys.stderr)


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="pseudomallows",
        description="Learn what people prefer, and how sure you can be of it.",
        epilog=FILES_AND_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"pseudomallows {__version__}")
    adders = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for each in COMMANDS:
        each.add_to(adders)
    return parser


@command(
    "completion",
    "Print a script that completes this command in your shell. Needs shtab.",
    "bash",
    option("shell", None, choices=("bash", "zsh", "tcsh")),
)
def completion(options: argparse.Namespace) -> int:
    """A script for the shell."""
    try:
        import shtab
    except ModuleNotFoundError:  # pragma: no cover
        raise ModuleNotFoundError(
            "completion needs shtab: pip install 'pseudomallows[cli]'"
        ) from None
    print(shtab.complete(make_parser(), options.shell))
    return 0


COMMANDS = (  # in the order of the help
    *(run_demo, compile_all, simulate, split_file, fit_file, update_file),
    *(consensus, recommend_file, similar, explain_item, pairs_to_compare),
    *(
        evaluate_file,
        check_file,
        compare_distances,
        report_file,
        describe_file,
        serve_model,
        completion,
    ),
)
