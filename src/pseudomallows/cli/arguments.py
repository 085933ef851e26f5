"""Arguments that several commands share."""

import argparse
import textwrap
from typing import Any

from ..distances import DISTANCES
from ..files.kinds import KINDS
from ..inference.methods import ALL_METHODS
from ..inference.methods.method import describe_options


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


def add_data(parser: argparse.ArgumentParser) -> None:
    """The file with the data, and how to read it."""
    parser.add_argument(
        "file", metavar="FILE", help="rankings, clicks or comparisons, - for standard input"
    )
    kinds = f"{', '.join(KINDS)} (recognised by the header)"
    parser.add_argument("--kind", choices=KINDS, metavar="KIND", help=kinds)
    add_reading(parser)


def add_reading(parser: argparse.ArgumentParser) -> None:
    """How to read the file, where it does not say so itself."""
    parser.add_argument("--encoding", help="encoding of the text (UTF-8)")
    parser.add_argument(
        "--columns",
        type=columns,
        metavar="NAMES",
        help="of clicks: user=WHO,item=WHAT,time=WHEN,rating=STARS; without a header, the names of "
        "all columns, user,item,...",
    )
    parser.add_argument("--sep", type=separator, help="the text between two cells (detected)")
    parser.add_argument(
        "--no-header",
        action="store_false",
        dest="header",
        default=None,
        help="the first line is data",
    )
    parser.add_argument(
        "--min-rating", type=float, metavar="X", help="the lowest rating that counts (any)"
    )
    parser.add_argument(
        "--min-clicks",
        type=count,
        metavar="N",
        help="drop users and items with fewer, repeatedly (none)",
    )


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


def add_model(parser: argparse.ArgumentParser) -> None:
    """What to fit, and how."""
    parser.add_argument(
        "--method",
        choices=["auto", *ALL_METHODS],
        default="auto",
        help="how to fit (auto: the best for the data)",
    )
    parser.add_argument(
        "--clusters",
        type=count_or_auto,
        default=1,
        metavar="N",
        help='how many, or "auto" to let the data say (1)',
    )
    parser.add_argument("--alpha", type=float, help="concentration (estimated)")
    parser.add_argument(
        "--draws", type=count, metavar="N", help="draws of the consensus (until they are good)"
    )
    add_seed(parser)
    add_threads(parser)


def add_method_words(parser: argparse.ArgumentParser) -> None:
    """Each method in words, and the options that it has in Python."""
    lines = [f"{name:<10}{method.words}" for name, method in ALL_METHODS.items()]
    parser.add_argument_group("methods", "\n".join(lines))
    described = describe_options(ALL_METHODS.values()).splitlines()
    options = "\n".join(textwrap.fill(line, 76, subsequent_indent=" " * 6) for line in described)
    parser.add_argument_group("options of the methods, in Python", options)


def add_judging(parser: argparse.ArgumentParser) -> None:
    """What an evaluation hides and asks for."""
    parser.add_argument(
        "--hide", type=count, default=10, metavar="N", help="clicks hidden from each user (10)"
    )
    parser.add_argument(
        "--k",
        type=count,
        metavar="N",
        help="recommendations for each user (10, or all if there are fewer)",
    )


def add_saved(parser: argparse.ArgumentParser) -> None:
    """The file with the model."""
    parser.add_argument("model", metavar="MODEL", help="a model that `fit` has saved")


def add_table(parser: argparse.ArgumentParser) -> None:
    """Where a table goes, and in what form."""
    parser.add_argument(
        "--out", default="-", metavar="FILE", help=".csv, .tsv, .json or .parquet (-)"
    )
    parser.add_argument("--json", action="store_true", help="write JSON")
    parser.add_argument(
        "--safe-csv",
        action="store_true",
        help="for spreadsheets: an apostrophe before names that begin like a formula (= + - @)",
    )


def add_seed(parser: argparse.ArgumentParser, default: int | None = None) -> None:
    """The source of randomness."""
    shown = "" if default is None else f" ({default})"
    parser.add_argument(
        "--seed", type=seed, default=default, help=f"the same seed gives the same result{shown}"
    )


def add_dask(parser: argparse.ArgumentParser) -> None:
    """Workers instead of threads."""
    parser.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="run on Dask workers: the address of their scheduler, or local:2 for two workers here",
    )


def add_threads(parser: argparse.ArgumentParser) -> None:
    """How many cores to use."""
    parser.add_argument("--threads", type=count, metavar="N", help="threads (one per core)")


def add_command(
    adders: Any, name: str, run: Any, words: str, example: str
) -> argparse.ArgumentParser:
    """A command whose help ends in an example."""
    parser: argparse.ArgumentParser = adders.add_parser(
        name,
        help=words[0].lower() + words[1:].split(".")[0],
        description=words,
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,  # --token would be --token-file
    )
    parser.set_defaults(run=run)
    parser.add_argument("--quiet", action="store_true", help="print results and warnings only")
    return parser


def add_distance(parser: argparse.ArgumentParser, default: str | None = "footrule") -> None:
    """The distance, `footrule` unless the data say otherwise."""
    usual = "footrule" if default else "footrule; of votes, one comparison a person, kendall"
    words = f"between a user and the consensus ({usual})"
    parser.add_argument("--distance", choices=DISTANCES, default=default, help=words)
