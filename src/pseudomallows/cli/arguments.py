"""Commands and their arguments, and what several commands do: each is here once."""

import argparse
import importlib
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

from ..data.atomic import check_target
from ..data.blocks import Clicks, Rankings
from ..data.columns import KINDS, Layout
from ..data.more_clicks import named_like
from ..data.pairs import Pairs
from ..data.read import read_as
from ..distances import DISTANCES
from ..engines.executors import Executor, Threads
from ..personal.personal_fit import Fit
from ..sampling.options import METHODS, describe_options

Run = Callable[[argparse.Namespace], int]
Argument = Callable[[Any], None]  # adds itself to a parser, or to a group of one


class Command(NamedTuple):
    """A command: what it does, its help, which ends in an example, and its arguments."""

    run: Run
    name: str
    words: str
    example: str
    arguments: tuple[Argument, ...]
    groups: tuple[tuple[str, str], ...] = ()  # more for the help: titles and texts

    def add_to(self, adders: Any) -> None:
        """Add it to the parser of all commands."""
        parser: argparse.ArgumentParser = adders.add_parser(
            self.name,
            help=self.words[0].lower() + self.words[1:].split(".")[0],
            description=textwrap.fill(self.words, 79),
            epilog=f"example:\n  pseudomallows {self.name} {self.example}".rstrip(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,  # --token would be --token-file
        )
        parser.set_defaults(run=self.run)
        for each in (QUIET, *self.arguments):
            each(parser)
        for title, text in self.groups:
            parser.add_argument_group(title, text)


def command(
    name: str,
    words: str,
    example: str,
    *arguments: Argument,
    groups: tuple[tuple[str, str], ...] = (),
) -> Callable[[Run], Command]:
    """Make a command of the function that runs it."""
    return lambda run: Command(run, name, words, example, arguments, groups)


def option(
    name: str, words: str | None, kind: Any = None, default: Any = None, **more: Any
) -> Argument:
    """An argument, its help, its type and its default; counts are shown as N."""
    settings = {"help": words, "default": default} | more
    if kind is not None:
        settings["type"] = kind
    if kind is count:
        settings.setdefault("metavar", "N")
    return lambda parser: parser.add_argument(name, **settings)


def flag(name: str, words: str, **more: Any) -> Argument:
    """An argument that is there or not."""
    settings = {"help": words, "action": "store_true"} | more
    return lambda parser: parser.add_argument(name, **settings)


def one_of(*arguments: Argument, required: bool = False) -> Argument:
    """Arguments of which a command takes one."""

    def add(parser: Any) -> None:
        group = parser.add_mutually_exclusive_group(required=required)
        for each in arguments:
            each(group)

    return add


def count(text: str, least: int = 1) -> int:
    """A whole number, 1 or more."""
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"must be a whole number, {least} or more, got {text!r}")
    return int(text)


def seed(text: str) -> int:
    """A whole number, 0 or more."""
    return count(text, 0)


def count_or_auto(text: str) -> int | str:
    """A whole number, 1 or more, or `auto`."""
    return text if text == "auto" else count(text)


def columns(text: str) -> dict[str, str | int] | list[str]:
    """Names of columns, by what they are, or one after the other.

    >>> columns("user=WHO,item=3"), columns("user,item")
    ({'user': 'WHO', 'item': 3}, ['user', 'item'])
    """
    parts = [part.strip() for part in text.split(",")]
    if not any("=" in part for part in parts):
        return parts
    if not all("=" in part for part in parts):
        raise argparse.ArgumentTypeError(f"must be like user=WHO,item=WHAT, got {text!r}")
    pairs = (part.split("=", 1) for part in parts)
    return {what: int(name) if name.isdecimal() else name for what, name in pairs}


def separator(text: str) -> str:
    """The text between cells; \\t is a tab."""
    return text.replace("\\t", "\t")


def distance(words: str, default: str | None = "footrule") -> Argument:
    """The distance; without a default the data decide."""
    words = f"between a user and the consensus ({words})"
    return option("--distance", words, default=default, choices=DISTANCES)


def method_words() -> tuple[tuple[str, str], ...]:
    """Each method in words, and the options that it has in Python."""
    methods = "\n".join(f"{name:<10}{words}" for name, words in METHODS.items())
    described = describe_options().splitlines()
    options = "\n".join(textwrap.fill(line, 76, subsequent_indent=" " * 6) for line in described)
    return ("methods", methods), ("options of the methods, in Python", options)


QUIET = flag("--quiet", "print results and warnings only")
JSON = flag("--json", "print JSON")
SEED = option("--seed", "the same seed gives the same result", seed)
THREADS = option("--threads", "threads (one per core)", count)
DASK = option(
    "--dask",
    "run on Dask workers: the address of their scheduler, or local:2 for two workers here",
    metavar="ADDRESS",
)
MODEL = option("model", "a model that `fit` has saved", metavar="MODEL")
N_NEXT = option("--k", "items for each user (10)", count, 10)  # as `pm.recommend`
TABLE_OUT = option("--out", "where to write (-)", default="-", metavar="FILE")
READING = (  # how to read the file, where it does not say so itself
    option("--encoding", "encoding of the text (UTF-8)"),
    option(
        "--columns",
        "of clicks: user=WHO,item=WHAT,time=WHEN,rating=STARS; without a header, the names of "
        "all columns, user,item,...",
        columns,
        metavar="NAMES",
    ),
    option("--sep", "the text between two cells (detected)", separator),
    flag(
        "--no-header", "the first line is data", action="store_false", dest="header", default=None
    ),
    option("--min-rating", "the lowest rating that counts (any)", float, metavar="X"),
    option("--min-clicks", "drop users and items with fewer, repeatedly (none)", count),
)
DATA = (  # the file with the data, and how to read it
    option("file", "rankings, clicks or comparisons, - for standard input", metavar="FILE"),
    option(
        "--kind", f"{', '.join(KINDS)} (recognised by the header)", choices=KINDS, metavar="KIND"
    ),
    *READING,
)
FITTING = (  # what to fit, and how
    option(
        "--method",
        "how to fit (auto: the best for the data)",
        default="auto",
        choices=["auto", *METHODS],
    ),
    option(
        "--clusters",
        'how many, or "auto" to let the data say (1)',
        count_or_auto,
        default=1,
        metavar="N",
    ),
    option("--alpha", "concentration (estimated)", float),
    option("--draws", "draws of the consensus (until they are good)", count),
    SEED,
    THREADS,
)
HIDING = (  # what an evaluation hides and asks for
    option(
        "--hide",
        "clicks hidden from each user (all after a date, with times; else 10)",
        count,
        metavar="N",
    ),
    option("--k", "recommendations for each user (10, or all if there are fewer)", count),
)
TABLE = (  # where a table goes, and in what form
    option("--out", ".csv, .tsv, .json, .parquet or .xlsx (-)", default="-", metavar="FILE"),
    flag("--json", "write JSON"),
    flag(
        "--safe-csv",
        "for spreadsheets: an apostrophe before names that begin like a formula (= + - @)",
    ),
)


# What several commands do


def say(options: argparse.Namespace, words: str) -> None:
    """Words for people, on standard error, unless `--quiet`."""
    if not options.quiet:
        print(words, file=sys.stderr, flush=True)


def progress_of(options: argparse.Namespace) -> bool | None:
    """For `progress`: a bar on a terminal, unless `--quiet`."""
    return False if options.quiet else None


def read_data(options: argparse.Namespace) -> Rankings | Clicks | Pairs:
    """The data of the file; what a guess took it for is said, since it may be wrong."""
    prefs, said = read_as(options.file, options.kind, options.encoding, layout=layout_of(options))
    if options.kind is None:
        say(options, said)
    return prefs


def layout_of(options: argparse.Namespace) -> Layout:
    """What the options say of the table."""
    names = ("columns", "sep", "header", "min_rating", "min_clicks")
    return Layout(*(getattr(options, name) for name in names))


def read_clicks(options: argparse.Namespace, command: str) -> Clicks:
    """The data of the file, for a command that works on clicks only."""
    prefs = read_data(options)
    if prefs.kind != "clicks":
        raise TypeError(f"{command} needs clicks, and {options.file} holds {prefs.kind}")
    return cast(Clicks, prefs)


def clicks_for(posterior: Fit, options: argparse.Namespace) -> Clicks:
    """The clicks of a file that are to be added to a model, whose names may be numbers."""
    layout = layout_of(options)
    prefs, _ = read_as(
        options.file, "clicks", options.encoding, may_be_one_item=True, layout=layout
    )
    return cast(Clicks, named_like(prefs, posterior))


def headline(fitted: Fit) -> str:
    """A fit in one line."""
    return repr(fitted).splitlines()[0]


def check_out(path: str, source: str, what: str = "model") -> None:
    """Refuse, before any work, a place where a model or a report cannot be saved."""
    if path == "-":
        raise ValueError(f"a {what} cannot go to standard output: name a file")
    target = check_target(path)
    if target.exists() and source != "-" and target.samefile(source):
        raise ValueError(f"--out {path} is the file that is read: give the {what} another name")


def check_report() -> None:
    """Say before any work, and not after it, that the library of the report is missing."""
    importlib.import_module("pseudomallows.show.page")


@contextmanager
def executor_of(options: argparse.Namespace) -> Iterator[Executor]:
    """Threads, or Dask workers for as long as they are needed."""
    if options.dask is None:
        yield Threads(options.threads)
        return
    from ..engines.dask import DaskExecutor

    with DaskExecutor(options.dask) as workers:
        yield workers
