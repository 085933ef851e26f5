"""Commands that ask a model: consensus, recommend, similar, explain, pairs."""

import argparse
import sys
from pathlib import Path
from typing import Any

from ..engines.executors import Threads
from ..files.later import name_like
from ..files.parquet_parts import Parts
from ..files.read import read
from ..files.write import check_table, write_table
from ..posteriors.personal import Fit, PersonalFit
from ..posteriors.save import load
from ..recommendations.explain import explain
from ..recommendations.next_pairs import next_pairs
from ..recommendations.recommend import DIGITS, recommend
from ..recommendations.similar import similar_items, similar_users
from ..recommendations.to_file import recommend_to
from .arguments import (
    add_command,
    add_dask,
    add_saved,
    add_seed,
    add_table,
    add_threads,
    count,
)
from .choice import read_choice
from .shared import (
    executor_of,
    progress_of,
    say,
)


def add_consensus(adders: Any) -> None:
    """The command `consensus`."""
    parser = add_command(
        adders,
        "consensus",
        consensus,
        "Print the consensus of a model. Each item with its rank, mean rank and interval, cluster "
        "by cluster. Clusters are numbered from 0, as in Python; reports and figures start at 1.",
        "pseudomallows consensus model.pm",
    )
    add_saved(parser)
    parser.add_argument("--cluster", type=int, metavar="N", help="one cluster only; the first is 0")
    parser.add_argument(
        "--probability", type=float, default=0.95, help="that an interval contains the rank (0.95)"
    )
    add_table(parser)


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


def add_recommend(adders: Any) -> None:
    """The command `recommend`."""
    parser = add_command(
        adders,
        "recommend",
        recommend_file,
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
    found = recommend(posterior, options.k, users=users, executor=threads, **choice)
    columns = found.to_columns(DIGITS)
    write_table(columns, options.out, as_json=options.json, safe_csv=options.safe_csv)
    return 0


def add_similar(adders: Any) -> None:
    """The command `similar`."""
    parser = add_command(
        adders,
        "similar",
        similar,
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


def similar(options: argparse.Namespace) -> int:
    """Items like one, or users like one, as a table."""
    check_table(options.out)
    posterior = load(options.model)
    item_of, user_of = name_like(posterior.items), name_like(posterior.users)
    if options.item is not None:
        found = similar_items(posterior, item_of(options.item), options.k)
    else:
        clicks = None if options.clicks is None else [item_of(name) for name in options.clicks]
        user = None if options.user is None else user_of(options.user)
        found = similar_users(posterior, user, options.k, clicks=clicks)
    _show(found.to_columns(DIGITS), options)
    return 0


def add_explain(adders: Any) -> None:
    """The command `explain`."""
    parser = add_command(
        adders,
        "explain",
        explain_item,
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
        "--k",
        type=count,
        default=10,
        metavar="N",
        help="how many next items the probability is about (10)",
    )
    add_table(parser)


def explain_item(options: argparse.Namespace) -> int:
    """What speaks for an item, as a table; and in words."""
    check_table(options.out)
    posterior = load(options.model)
    item_of, user_of = name_like(posterior.items), name_like(posterior.users)
    clicks = None if options.clicks is None else [item_of(name) for name in options.clicks]
    user = None if options.user is None else user_of(options.user)
    found = explain(posterior, user, item_of(options.item), clicks=clicks, k=options.k)
    say(options, str(found))
    _show(found.to_columns(DIGITS), options)
    return 0


def add_pairs(adders: Any) -> None:
    """The command `pairs`."""
    parser = add_command(
        adders,
        "pairs",
        pairs_to_compare,
        "Say which pairs of items to compare next. Those whose answer would tell most about the "
        "consensus, with the probability of each answer and what it tells, in bits.",
        "pseudomallows pairs model.pm --n 10",
    )
    add_saved(parser)
    parser.add_argument("--n", type=count, default=10, metavar="N", help="how many pairs (10)")
    parser.add_argument("--user", help="about a user whose latent rankings the model keeps")
    parser.add_argument(
        "--cluster", type=int, default=0, metavar="N", help="whose consensus; the first is 0 (0)"
    )
    add_seed(parser)
    add_table(parser)


def pairs_to_compare(options: argparse.Namespace) -> int:
    """Pairs whose comparison would tell most, as a table."""
    check_table(options.out)
    posterior = load(options.model)
    user = None if options.user is None else name_like(posterior.users)(options.user)
    found = next_pairs(posterior, user, options.n, cluster=options.cluster, rng=options.seed)
    columns = {
        name: [round(row[name], 4) if isinstance(row[name], float) else row[name] for row in rows]
        for rows in [found.rows()]
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
