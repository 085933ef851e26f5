"""Commands that ask a model: consensus, recommend, similar, explain, pairs."""

import argparse
import csv
import sys
from pathlib import Path
from typing import Any

from ..data.more_clicks import name_like
from ..data.parquet import Parts
from ..data.read import read
from ..data.write import check_table, write_table
from ..engines.executors import Threads
from ..personal.personal_fit import Fit, PersonalFit
from ..personal.save_personal import load
from ..recommendations.explain import explain
from ..recommendations.next_pairs import next_pairs
from ..recommendations.recommend import DIGITS, recommend
from ..recommendations.similar import similar_items, similar_users
from ..recommendations.to_file import recommend_to
from .arguments import (
    DASK,
    MODEL,
    N_NEXT,
    SEED,
    TABLE,
    THREADS,
    command,
    count,
    executor_of,
    one_of,
    option,
    progress_of,
    say,
)


@command(
    "consensus",
    "Print the consensus of a model. Each item with its rank, mean rank and interval, cluster "
    "by cluster, numbered from 1 as in reports and figures.",
    "model.pm",
    MODEL,
    option("--cluster", "one cluster only; the first is 1", count),
    option("--probability", "that an interval contains the rank (0.95)", float, 0.95),
    *TABLE,
)
def consensus(options: argparse.Namespace) -> int:
    """The consensus of each cluster, as a table."""
    posterior = load(options.model)
    if isinstance(posterior, PersonalFit):
        if posterior.made_population is None and posterior.settings["options"].get("population"):
            say(options, "learning the consensus of all users, which this fit has left until now")
        posterior = posterior.population or posterior
    if isinstance(posterior, PersonalFit):
        rows = _most_clicked(options, posterior)
    else:
        one = options.cluster
        every = range(posterior.n_clusters) if one is None else [_from_zero(posterior, one)]
        rows = [
            {"cluster": cluster + 1} | row
            for cluster in every
            for row in posterior.summary(cluster, options.probability)
        ]
    columns = {
        name: [round(row[name], 3) if name in ("mean", "share") else row[name] for row in rows]
        for name in rows[0]
    }
    _show(columns, options)
    return 0


def _from_zero(posterior: Fit, cluster: int) -> int:
    """The cluster as Python counts, from 0."""
    if cluster > posterior.n_clusters:
        raise ValueError(f"--cluster must be in 1..{posterior.n_clusters}, got {cluster}")
    return cluster - 1


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
    one_of(
        option("--users", "some users only, by name", nargs="+", metavar="USER"),
        option(
            "--clicks",
            "clicks of new users (user, item); with a folder of Parquet parts, --out is one too",
            metavar="FILE",
        ),
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
    written: dict[str, Any] = {"as_json": options.json, "safe_csv": options.safe_csv}
    if options.users is not None:  # a name that looks like a number may be one
        users = [name_like(posterior.users)(user) for user in options.users]
        threads = Threads(options.threads)
        best = recommend(posterior, options.k, users=users, executor=threads, **choice)
        write_table(best.to_columns(DIGITS), options.out, **written)
        return 0
    with executor_of(options) as executor:
        recommend_to(
            posterior,
            options.out,
            options.k,
            clicks=clicks,
            executor=executor,
            progress=progress_of(options),
            **written,
            **choice,
        )
    return 0


@command(
    "similar",
    "Find the items that are most like one, or the users who are. Needs a model with clusters, "
    "or one of personal.",
    'model.pm --item "item 07" --k 5',
    MODEL,
    one_of(
        option("--item", "items like this one"),
        option("--user", "users of the model like this one"),
        option("--clicks", "users like someone who clicked", nargs="*", metavar="ITEM"),
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
    one_of(
        option("--user", "a user of the model"),
        option("--clicks", "what a new user clicked", nargs="*", metavar="ITEM"),
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
    option("--cluster", "whose consensus; the first is 1 (1)", count, 1),
    SEED,
    *TABLE,
)
def pairs_to_compare(options: argparse.Namespace) -> int:
    """Pairs whose comparison would tell most, as a table."""
    check_table(options.out)
    posterior = load(options.model)
    user = None if options.user is None else name_like(posterior.users)(options.user)
    cluster = _from_zero(posterior, options.cluster)
    pairs = next_pairs(posterior, user, options.n, cluster=cluster, rng=options.seed)
    _show(pairs.to_columns(4), options)
    return 0


def _show(columns: dict[str, Any], options: argparse.Namespace) -> None:
    """A table: aligned on a terminal, or into a file."""
    if options.out != "-" or options.json or not sys.stdout.isatty():
        write_table(columns, options.out, as_json=options.json, safe_csv=options.safe_csv)
        return
    cells = [[name, *map(str, values)] for name, values in columns.items()]
    widths = [max(map(len, column)) for column in cells]
    for row in zip(*cells, strict=True):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))


def read_choice(path: str | None, posterior: Fit) -> list[Any] | dict[Any, list[Any]] | None:
    """The items of a file, or those of each user; None without a file.

    A line that is an item of the model is one, whatever commas it has; the first line decides.
    """
    if path is None:
        return None
    text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8-sig")
    lines = [line for line in text.splitlines() if line.strip()]
    rows = [next(csv.reader([line], delimiter="\t" if "\t" in line else ",")) for line in lines]
    rows = [[cell.strip() for cell in row] for row in rows]
    item_of, user_of = name_like(posterior.items), name_like(posterior.users)
    items = set(posterior.items.tolist())

    # a list: each line is an item as it stands, without spaces around it, or without quotes
    listed = [
        next((name for name in (line, line.strip()) if item_of(name) in items), ",".join(row))
        for line, row in zip(lines, rows, strict=True)
    ]
    if not lines or item_of(listed[0]) in items or len(rows[0]) == 1:
        has_header = listed[:1] == ["item"] and "item" not in items
        return [item_of(name) for name in listed[has_header:]]

    # rows of user and item
    items_of: dict[Any, list[Any]] = {}
    is_header = [cell.lower() for cell in rows[0]] == ["user", "item"]
    for number, row in enumerate(rows[is_header:], 1 + is_header):
        if len(row) != 2:
            raise ValueError(
                f"{path}, line {number}: wanted one item a line, or user,item, got "
                f"{lines[number - 1][:80]!r}"
            )
        items_of.setdefault(user_of(row[0]), []).append(item_of(row[1]))
    return items_of
