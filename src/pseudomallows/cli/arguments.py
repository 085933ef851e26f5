"""Commands and their arguments; those that several commands share are here, each once."""

import argparse
import textwrap
from collections.abc import Callable
from typing import Any, NamedTuple

from ..distances import DISTANCES
from ..files.kinds import KINDS
from ..sampling.options import METHODS, describe_options

Run = Callable[[argparse.Namespace], int]


class Argument(NamedTuple):
    """One argument of a command, as `argparse` takes it."""

    name: str
    settings: dict[str, Any]

    def add_to(self, parser: Any) -> None:
        """Add it to a parser, or to a group of one."""
        parser.add_argument(self.name, **self.settings)


class OneOf(NamedTuple):
    """Arguments of which a command takes one."""

    arguments: tuple[Argument, ...]
    required: bool = False

    def add_to(self, parser: Any) -> None:
        """Add them to a parser."""
        group = parser.add_mutually_exclusive_group(required=self.required)
        for each in self.arguments:
            each.add_to(group)


class Command(NamedTuple):
    """A command: what it does, its help, which ends in an example, and its arguments."""

    run: Run
    name: str
    words: str
    example: str
    arguments: tuple[Argument | OneOf, ...]
    groups: tuple[tuple[str, str], ...] = ()  # more for the help: titles and texts

    def add_to(self, adders: Any) -> None:
        """Add it to the parser of all commands."""
        parser: argparse.ArgumentParser = adders.add_parser(
            self.name,
            help=self.words[0].lower() + self.words[1:].split(".")[0],
            description=self.words,
            epilog=f"example:\n  pseudomallows {self.name} {self.example}".rstrip(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,  # --token would be --token-file
        )
        parser.set_defaults(run=self.run)
        for each in (QUIET, *self.arguments):
            each.add_to(parser)
        for title, text in self.groups:
            parser.add_argument_group(title, text)


def command(
    name: str,
    words: str,
    example: str,
    *arguments: Argument | OneOf,
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
    return Argument(name, settings)


def flag(name: str, words: str, **more: Any) -> Argument:
    """An argument that is there or not."""
    return Argument(name, {"help": words, "action": "store_true"} | more)


def count(text: str) -> int:
    """A whole number, 1 or more."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number, 1 or more, got {text!r}")
    return int(text)


def seed(text: str) -> int:
    """A whole number, 0 or more."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number, 0 or more, got {text!r}")
    return int(text)


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
MODEL = Argument("model", {"metavar": "MODEL", "help": "a model that `fit` has saved"})
N_NEXT = option("--k", "items for each user (10)", count, 10)
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
    option("--hide", "clicks hidden from each user (10)", count, 10),
    option("--k", "recommendations for each user (10, or all if there are fewer)", count),
)
TABLE = (  # where a table goes, and in what form
    option("--out", ".csv, .tsv, .json or .parquet (-)", default="-", metavar="FILE"),
    flag("--json", "write JSON"),
    flag(
        "--safe-csv",
        "for spreadsheets: an apostrophe before names that begin like a formula (= + - @)",
    ),
)
