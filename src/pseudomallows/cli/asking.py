"""Commands that ask a model: consensus, recommend, similar, explain, pairs."""

import argparse
import csv
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..engines.executors import Threads
from ..files.later import name_like
from ..files.parquet_parts import Parts
from ..files.read import read
from ..files.write import check_table, write_table
from ..posteriors.personal_fit import Fit, PersonalFit
from ..posteriors.save import load
from ..recommendations.explain import explain
from ..recommendations.next_pairs import next_pairs
from ..recommendations.recommend import DIGITS, recommend
from ..recommendations.similar import similar_items, similar_users
from ..recommendations.to_file import recommend_to
from .arguments import DASK, MODEL, N_NEXT, SEED, TABLE, THREADS, OneOf, command, count, option
from .shared import executor_of, progress_of, say


@command(
    "consensus",
    "Print the consensus of a model. Each item with its rank, mean rank and interval, cluster "
    "by cluster. Clusters are numbered from 0, as in Python; reports and figures start at 1.",
    "model.pm",
    MODEL,
    option("--cluster", "one cluster only; the first is 0", int, metavar="N"),
    option("--probability", "that an interval contains the rank (0.95)", float, 0.95),
    *TABLE,
)
def consensus(options: argparse.Namespace) -> int:
    """The consensus of each cluster, as a table."""
    posterior = load(options.model)
    if isinstance(posterior, PersonalFit) and posterior.population is not None:
        posterior = posterior.population
    if isinstance(posterior, PersonalFit):
        rows = _most_clicked(options, posterior)
    else:
        every = range(posterior.n_clusters) if options.cluster is None else [options.cluster]
        rows = [
            {"cluster": cluster} | row
            for cluster in every
            for row in posterior.summary(cluster, options.probability)
        ]
    columns = {
        name: [round(row[name], 3) if name in ("mean", "share") else row[name] for row in rows]
        for name in rows[0]
    }
    _show(columns, options)
    return 0


def _most_clicked(options: argparse.Namespace, fitted: PersonalFit) -> list[dict[str, Any]]:
    """For orders of one's own, what the users clicked most."""
    if options.cluster is not None:
        raise ValueError(f"{options.model} has no clusters: each user has an order of their own")
    words = "each user has an order of their own, so there is no consensus"
    say(options, f"{options.model}: {words}; these are the items by the share of users who clicked")
    return fitted.most_clicked()


ROWS = "one item a line, or rows of user,item"


@command(
    "recommend",
    "Recommend to each user the items most likely to come next. With probabilities; for users "
    "of the model, or for new ones from their clicks.",
    "model.pm --k 10 --out recommendations.csv",
    MODEL,
    N_NEXT,
    OneOf(
        (
            option("--users", "some users only, by name", nargs="+", metavar="USER"),
            option(
                "--clicks",
                "clicks of new users (user, item); with a folder of Parquet parts, --out is one "
                "too",
                metavar="FILE",
            ),
        )
    ),
    option("--exclude", f"items not to show: {ROWS}", metavar="FILE"),
    option("--only", f"items to choose from: {ROWS}", metavar="FILE"),
    THREADS,
    DASK,
    *TABLE,
)
def recommend_file(options: argparse.Namespace) -> int:
    """Recommendations, as a table, or, for parts, as tables."""
    posterior = load(options.model)
    clicks: Any = None
    if options.clicks is not None and Path(options.clicks).is_dir():
        if options.out == "-" or options.json:
            raise ValueError(f"{options.clicks} is a folder: --out must be a folder too")
        clicks = Parts(options.clicks)
    else:
        check_table(options.out)
        if options.clicks is not None:
            clicks = read(options.clicks, "clicks", items=posterior.items.tolist())
    choice: dict[str, Any] = {
        "exclude": read_choice(options.exclude, posterior),
        "only": read_choice(options.only, posterior),
    }
    if options.users is not None:
        return _recommend_to_some(options, posterior, choice)
    with executor_of(options) as executor:
        recommend_to(
            posterior,
            options.out,
            options.k,
            clicks=clicks,
            executor=executor,
            progress=progress_of(options),
            as_json=options.json,
            safe_csv=options.safe_csv,
            **choice,
        )
    return 0


def _recommend_to_some(options: argparse.Namespace, posterior: Fit, choice: dict[str, Any]) -> int:
    """Recommendations to users by name; a name that looks like a number may be one."""
    known = {str(name): name for name in posterior.users.tolist()}
    users = [known.get(user, user) for user in options.users]
    threads = Threads(options.threads)
    best = recommend(posterior, options.k, users=users, executor=threads, **choice)
    columns = best.to_columns(DIGITS)
    write_table(columns, options.out, as_json=options.json, safe_csv=options.safe_csv)
    return 0


@command(
    "similar",
    "Find the items that are most like one, or the users who are. Needs a model with clusters, "
    "or one of personal.",
    'model.pm --item "item 07" --k 5',
    MODEL,
    OneOf(
        (
            option("--item", "items like this one"),
            option("--user", "users of the model like this one"),
            option("--clicks", "users like someone who clicked", nargs="*", metavar="ITEM"),
        ),
        required=True,
    ),
    option("--k", "how many (10)", count, 10),
    *TABLE,
)
def similar(options: argparse.Namespace) -> int:
    """Items like one, or users like one, as a table."""
    check_table(options.out)
    posterior = load(options.model)
    if options.item is not None:
        item = name_like(posterior.items)(options.item)
        alike = similar_items(posterior, item, options.k)
    else:
        user, clicks = _user_and_clicks(options, posterior)
        alike = similar_users(posterior, user, options.k, clicks=clicks)
    _show(alike.to_columns(DIGITS), options)
    return 0


@command(
    "explain",
    "Say what speaks for an item: which clicks, or which clusters, and how much. The amounts "
    "add up to the item's score (personal) or to its probability.",
    'model.pm --item "item 07" --clicks "item 03" "item 11"',
    MODEL,
    option("--item", "the item", required=True),
    OneOf(
        (
            option("--user", "a user of the model"),
            option("--clicks", "what a new user clicked", nargs="*", metavar="ITEM"),
        ),
        required=True,
    ),
    option("--k", "how many next items the probability is about (10)", count, 10),
    *TABLE,
)
def explain_item(options: argparse.Namespace) -> int:
    """What speaks for an item, as a table; and in words."""
    check_table(options.out)
    posterior = load(options.model)
    user, clicks = _user_and_clicks(options, posterior)
    item = name_like(posterior.items)(options.item)
    explanation = explain(posterior, user, item, clicks=clicks, k=options.k)
    say(options, str(explanation))
    _show(explanation.to_columns(DIGITS), options)
    return 0


def _user_and_clicks(options: argparse.Namespace, posterior: Fit) -> tuple[Any, list[Any] | None]:
    """The user or the clicks that were named; names that look like numbers may be some."""
    item_of, user_of = name_like(posterior.items), name_like(posterior.users)
    clicks = None if options.clicks is None else [item_of(name) for name in options.clicks]
    return (None if options.user is None else user_of(options.user)), clicks


@command(
    "pairs",
    "Say which pairs of items to compare next. Those whose answer would tell most about the "
    "consensus, with the probability of each answer and what it tells, in bits.",
    "model.pm --n 10",
    MODEL,
    option("--n", "how many pairs (10)", count, 10),
    option("--user", "about a user whose latent rankings the model keeps"),
    option("--cluster", "whose consensus; the first is 0 (0)", int, 0, metavar="N"),
    SEED,
    *TABLE,
)
def pairs_to_compare(options: argparse.Namespace) -> int:
    """Pairs whose comparison would tell most, as a table."""
    check_table(options.out)
    posterior = load(options.model)
    user = None if options.user is None else name_like(posterior.users)(options.user)
    pairs = next_pairs(posterior, user, options.n, cluster=options.cluster, rng=options.seed)
    rows = pairs.rows()
    columns = {
        name: [round(row[name], 4) if isinstance(row[name], float) else row[name] for row in rows]
        for name in rows[0]
    }
    _show(columns, options)
    return 0


def _show(columns: dict[str, Any], options: argparse.Namespace) -> None:
    """A table, for a terminal or into a file."""
    if options.out == "-" and not options.json and sys.stdout.isatty():
        _print_aligned(columns)
    else:
        write_table(columns, options.out, as_json=options.json, safe_csv=options.safe_csv)


def _print_aligned(columns: dict[str, Any]) -> None:
    """A table for a terminal; ``columns[name]`` lists the cells below a name."""
    cells = {name: [str(value) for value in values] for name, values in columns.items()}
    widths = {name: max(len(name), *map(len, values)) for name, values in cells.items()}
    for row in zip(*([name, *values] for name, values in cells.items()), strict=True):
        print("  ".join(cell.ljust(widths[name]) for name, cell in zip(cells, row, strict=True)))


# Files of items not to show, or to choose from


def read_choice(path: str | None, posterior: Fit) -> list[Any] | dict[Any, list[Any]] | None:
    """The items of a file, or those of each user; None without a file.

    A line that is an item of the model is one, whatever commas it has; the first line decides.
    """
    if path is None:
        return None
    text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8-sig")
    lines = [line for line in text.splitlines() if line.strip()]
    item_of, user_of = name_like(posterior.items), name_like(posterior.users)
    items = set(posterior.items.tolist())
    if not lines or _is_item(lines[0], item_of, items) or len(_cells(lines[0])) == 1:
        has_header = bool(lines) and lines[0].strip() == "item" and "item" not in items
        return [_item(line, item_of, items) for line in lines[has_header:]]
    items_of: dict[Any, list[Any]] = {}
    for number, line in enumerate(lines, 1):
        cells = _cells(line)
        if number == 1 and [cell.lower() for cell in cells] == ["user", "item"]:
            continue
        if len(cells) != 2:
            raise ValueError(
                f"{path}, line {number}: wanted one item a line, or user,item, got {line[:80]!r}"
            )
        items_of.setdefault(user_of(cells[0]), []).append(item_of(cells[1]))
    return items_of


def _cells(line: str) -> list[str]:
    """The cells of a line, separated by commas or tabs."""
    return [
        cell.strip() for cell in next(csv.reader([line], delimiter="\t" if "\t" in line else ","))
    ]


def _is_item(line: str, item_of: Callable[[str], Any], items: set[Any]) -> bool:
    return item_of(line) in items or item_of(line.strip()) in items


def _item(line: str, item_of: Callable[[str], Any], items: set[Any]) -> Any:
    """The item of a line: as it stands, without spaces around it, or without quotes."""
    for name in (line, line.strip()):
        if item_of(name) in items:
            return item_of(name)
    return item_of(",".join(_cells(line)))
