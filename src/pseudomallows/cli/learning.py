"""Commands that make data and models: simulate, split, fit, update, distances."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from ..distributions.datasets import simulate_clicks, simulate_rankings
from ..engines.executors import Threads
from ..files.parquet_parts import Parts, split
from ..files.write import check_table, write_table
from ..inference.choose_distance import choose_distance
from ..inference.fit import fit
from ..inference.update import update
from ..posteriors.names import ERROR_MODELS
from ..posteriors.save import load
from ..preferences import Clicks
from .arguments import (
    add_command,
    add_dask,
    add_data,
    add_distance,
    add_method_words,
    add_model,
    add_reading,
    add_saved,
    add_seed,
    add_threads,
    count,
)
from .shared import (
    check_out,
    clicks_for,
    executor_of,
    progress_of,
    read_clicks,
    read_data,
    say,
)


def add_simulate(adders: Any) -> None:
    """The command `simulate`."""
    parser = add_command(
        adders,
        "simulate",
        simulate,
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
    add_distance(parser)
    parser.add_argument("--truth", metavar="FILE", help="write the full rankings too")
    parser.add_argument("--out", default="-", metavar="FILE", help="where to write (-)")
    add_seed(parser)


def simulate(options: argparse.Namespace) -> int:
    """Simulated users, as a file."""
    for path in (options.out, options.truth or "-"):
        check_table(path)
    alpha = [options.alpha] * options.clusters
    if options.what == "clicks":
        data = simulate_clicks(
            options.users,
            options.items,
            alpha,
            options.mean_clicks,
            distance=options.distance,
            rng=options.seed,
        )
    else:
        data = simulate_rankings(
            options.users,
            options.items,
            alpha,
            top=options.top,
            distance=options.distance,
            rng=options.seed,
        )
    width, height = (len(str(n)) for n in (options.items, options.users))
    items = [f"item {place + 1:0{width}}" for place in range(options.items)]
    users = [f"user {place + 1:0{height}}" for place in range(options.users)]
    prefs: Any = data.preferences.rename(users=users, items=items)
    is_long = prefs.kind == "clicks"
    write_table(_long(prefs) if is_long else _wide(users, items, prefs.rankings), options.out)
    if options.truth:
        write_table(_wide(users, items, data.rankings), options.truth)
    return 0


def _long(prefs: Clicks) -> dict[str, Any]:
    """One row a click."""
    owners = np.repeat(np.arange(prefs.n_users), prefs.n_clicks)
    return {"user": prefs.users[owners], "item": prefs.items[prefs.codes]}


def _wide(users: list[str], items: list[str], rankings: Any) -> dict[str, Any]:
    """One row a user, one column an item; empty where ``rankings[user, item]`` is 0."""
    columns = {
        item: ["" if rank == 0 else rank for rank in rankings[:, place].tolist()]
        for place, item in enumerate(items)
    }
    return {"user": users} | columns


def add_split(adders: Any) -> None:
    """The command `split`."""
    parser = add_command(
        adders,
        "split",
        split_file,
        "Cut a click log into Parquet files, by users. For Dask workers, which read them "
        "themselves.",
        "pseudomallows split clicks.csv --out parts --parts 8",
    )
    parser.add_argument("--out", required=True, metavar="FOLDER", help="where to write")
    parser.add_argument("--parts", type=count, default=8, metavar="N", help="how many (8)")
    add_data(parser)


def split_file(options: argparse.Namespace) -> int:
    """Clicks in parts."""
    prefs = read_clicks(options, "split")
    parts = split(prefs, options.out, options.parts)
    say(options, f"{parts} in {options.out}")
    return 0


def add_fit(adders: Any) -> None:
    """The command `fit`."""
    parser = add_command(
        adders,
        "fit",
        fit_file,
        "Learn a consensus, or several, from a file of rankings or clicks. Saves a model.",
        "pseudomallows fit clicks.csv --out model.pm --clusters 3 --seed 1",
    )
    parser.add_argument("--out", required=True, metavar="MODEL", help="where to save the model")
    add_data(parser)
    add_model(parser)
    add_distance(parser, None)
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


def fit_file(options: argparse.Namespace) -> int:
    """Fit a file and save the model."""
    check_out(options.out, options.file)
    if options.checkpoint and options.seed is None:
        raise ValueError("--checkpoint needs --seed, to recognise the fit when it continues")
    more = {} if options.errors is None else {"errors": options.errors}
    is_parts = options.dask is not None and Path(options.file).is_dir()
    prefs = Parts(options.file) if is_parts else read_data(options)
    with executor_of(options) as executor:
        posterior = fit(
            prefs,
            options.method,
            options.alpha,
            options.draws,
            options.clusters,
            rng=options.seed,
            distance=options.distance,
            executor=executor,
            checkpoint=options.checkpoint,
            progress=progress_of(options),
            **more,
        )
    posterior.save(options.out)
    seconds, chosen = posterior.settings["seconds"], posterior.settings.get("chosen")
    if chosen is not None:
        say(options, f"chosen: {chosen}")
    say(options, f"{posterior} in {seconds:.1f} s, saved as {options.out}")
    return 0


def add_update(adders: Any) -> None:
    """The command `update`."""
    parser = add_command(
        adders,
        "update",
        update_file,
        "Add clicks to a model, of new users or of the same ones. The chains of mcmc and matched "
        "continue where they stopped; other models of clicks are fitted again. Saves a new model.",
        "pseudomallows update model.pm later.csv --out newer.pm --seed 2",
    )
    add_saved(parser)
    parser.add_argument("file", metavar="FILE", help="more clicks, - for standard input")
    add_reading(parser)
    parser.add_argument("--out", required=True, metavar="MODEL", help="where to save the new model")
    parser.add_argument(
        "--draws",
        type=count,
        metavar="N",
        help="draws of a chain (as many as before; of clusters 100 in all)",
    )
    add_seed(parser)
    add_threads(parser)


def update_file(options: argparse.Namespace) -> int:
    """Add the clicks of a file to a model, and save the new one."""
    check_out(options.out, options.file)
    posterior = load(options.model)
    more = clicks_for(posterior, options)
    newer = update(
        posterior,
        more,
        n_draws=options.draws,
        rng=options.seed,
        progress=progress_of(options),
        executor=Threads(options.threads),
    )
    newer.save(options.out)
    went_on = "its chains went on" if "updates" in newer.settings else "fitted again"
    seconds = newer.settings["seconds"]
    say(options, f"{newer}, {went_on}, in {seconds:.1f} s, saved as {options.out}")
    return 0


def add_distances(adders: Any) -> None:
    """The command `distances`."""
    parser = add_command(
        adders,
        "distances",
        compare_distances,
        "Compare distances: which one describes unseen users best? Writes a table.",
        "pseudomallows distances clicks.csv --seed 1",
    )
    add_data(parser)
    parser.add_argument("--out", default="-", metavar="FILE", help="where to write (-)")
    add_seed(parser)


def compare_distances(options: argparse.Namespace) -> int:
    """Which distance describes unseen users best, as a table, the best first."""
    check_table(options.out)
    prefs = read_data(options)
    found = choose_distance(prefs, rng=options.seed, progress=progress_of(options))
    order = np.argsort(-found.means, kind="stable")
    means, errors = found.means[order].round(4), found.errors[order].round(4)
    table = {
        "distance": [found.distances[place] for place in order],
        "log_likelihood": means.tolist(),
        "behind_best": (means[0] - means).round(4).tolist(),
        "standard_error": errors.tolist(),
        "is_exact": ["yes" if np.isinf(found.effective_sizes[place]) else "no" for place in order],
    }
    write_table(table, options.out)
    rivals = f"; nearly as good: {', '.join(found.rivals)}" if found.rivals else ""
    say(options, f"{found.chosen} describes unseen users best{rivals}")
    return 0
