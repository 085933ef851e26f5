"""Commands that make data and models: simulate, split, fit, update, distances."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from ..data.datasets import simulate_clicks, simulate_rankings
from ..data.parquet import Parts, split
from ..data.write import check_table, write_table
from ..engines.executors import Threads
from ..personal.save_personal import load
from ..posterior.names import ERROR_MODELS
from ..sampling.choose_distance import choose_distance
from ..sampling.fit import fit
from ..sampling.update import update
from .arguments import (
    DASK,
    DATA,
    FITTING,
    MODEL,
    READING,
    SEED,
    TABLE_OUT,
    THREADS,
    check_out,
    clicks_for,
    command,
    count,
    distance,
    executor_of,
    headline,
    method_words,
    option,
    progress_of,
    read_clicks,
    read_data,
    say,
)


@command(
    "simulate",
    "Simulate users around a consensus, or several. Clicks come out long (user, item), "
    "rankings wide (one column an item).",
    "clicks --users 500 --items 50 --clusters 3 --alpha 5 --out clicks.csv --seed 1",
    option("what", "what the users show", choices=("clicks", "rankings")),
    option("--users", "how many users (500)", count, 500),
    option("--items", "how many items (50)", count, 50),
    option("--alpha", "how closely users follow their consensus (5)", float, 5.0),
    option("--clusters", "how many (1)", count, 1),
    option("--mean-clicks", "clicks per user, on average (5)", float, 5.0, metavar="N"),
    option("--top", "for rankings: show the first N ranks", count),
    distance("footrule"),
    option("--truth", "write the full rankings too", metavar="FILE"),
    TABLE_OUT,
    SEED,
)
def simulate(options: argparse.Namespace) -> int:
    """Simulated users, as a file."""
    for path in (options.out, options.truth or "-"):
        check_table(path)
    alpha = [options.alpha] * options.clusters
    size = options.users, options.items, alpha
    law: dict[str, Any] = {"distance": options.distance, "rng": options.seed}
    if options.what == "clicks":
        data = simulate_clicks(*size, options.mean_clicks, **law)
    else:
        data = simulate_rankings(*size, top=options.top, **law)
    width, height = (len(str(n)) for n in (options.items, options.users))
    items = [f"item {place + 1:0{width}}" for place in range(options.items)]
    users = [f"user {place + 1:0{height}}" for place in range(options.users)]
    prefs: Any = data.preferences.rename(users=users, items=items)
    if prefs.kind == "clicks":  # one row a click
        table = {"user": prefs.users[prefs.owners], "item": prefs.items[prefs.codes]}
    else:
        table = _wide(users, items, prefs.rankings)
    write_table(table, options.out)
    if options.truth:
        write_table(_wide(users, items, data.rankings), options.truth)
    return 0


def _wide(users: list[str], items: list[str], rankings: Any) -> dict[str, Any]:
    """One row a user, one column an item; empty where ``rankings[user, item]`` is 0."""
    columns = {
        item: [rank or None for rank in rankings[:, place].tolist()]
        for place, item in enumerate(items)
    }
    return {"user": users} | columns


@command(
    "split",
    "Cut a click log into Parquet files, by users. For Dask workers, which read them themselves.",
    "clicks.csv --out parts --parts 8",
    option("--out", "where to write", required=True, metavar="FOLDER"),
    option("--parts", "how many (8)", count, 8),
    *DATA,
)
def split_file(options: argparse.Namespace) -> int:
    """Clicks in parts."""
    prefs = read_clicks(options, "split")
    parts = split(prefs, options.out, options.parts)
    say(options, f"{parts} in {options.out}")
    return 0


@command(
    "fit",
    "Learn a consensus, or several, from a file of rankings or clicks. Saves a model.",
    "clicks.csv --out model.pm --clusters 3 --seed 1",
    option("--out", "where to save the model", required=True, metavar="MODEL"),
    *DATA,
    *FITTING,
    distance("footrule; of votes, one comparison a person, kendall", None),
    option(
        "--errors",
        "of comparisons: none, or some are wrong (bernoulli if users contradict themselves)",
        choices=ERROR_MODELS,
    ),
    option(
        "--checkpoint",
        "save the fit there regularly, and continue from it; needs --seed",
        metavar="FILE",
    ),
    DASK,
    groups=method_words(),
)
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
    say(options, f"{headline(posterior)} in {seconds:.1f} s, saved as {options.out}")
    return 0


@command(
    "update",
    "Add clicks to a model, of new users or of the same ones. The chains of mcmc and matched "
    "continue where they stopped; other models of clicks are fitted again. Saves a new model.",
    "model.pm later.csv --out newer.pm --seed 2",
    MODEL,
    option("file", "more clicks, - for standard input", metavar="FILE"),
    *READING,
    option("--out", "where to save the new model", required=True, metavar="MODEL"),
    option("--draws", "draws of a chain (as many as before; of clusters 100 in all)", count),
    SEED,
    THREADS,
)
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
    say(options, f"{headline(newer)}, {went_on}, in {seconds:.1f} s, saved as {options.out}")
    return 0


@command(
    "distances",
    "Compare distances by how well each describes unseen users. Writes a table.",
    "clicks.csv --seed 1",
    *DATA,
    TABLE_OUT,
    SEED,
)
def compare_distances(options: argparse.Namespace) -> int:
    """Which distance describes unseen users best, as a table, the best first."""
    check_table(options.out)
    prefs = read_data(options)
    choice = choose_distance(prefs, rng=options.seed, progress=progress_of(options))
    order = np.argsort(-choice.means, kind="stable")
    means, is_exact = choice.means[order].round(4), np.isinf(choice.effective_sizes[order])
    table = {
        "distance": [choice.distances[number] for number in order],
        "log_likelihood": means.tolist(),
        "behind_best": (means[0] - means).round(4).tolist(),
        "standard_error": choice.errors[order].round(4).tolist(),
        "is_exact": np.where(is_exact, "yes", "no").tolist(),
    }
    write_table(table, options.out)
    rivals = f"; nearly as good: {', '.join(choice.rivals)}" if choice.rivals else ""
    say(options, f"{choice.chosen} describes unseen users best{rivals}")
    return 0
