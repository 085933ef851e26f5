"""What each command does: read, call a public function, write."""

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ..distributions.datasets import simulate_clicks, simulate_rankings
from ..engines.executors import Threads
from ..evaluation.check import check
from ..evaluation.evaluate import evaluate
from ..evaluation.evaluate_again import evaluate_again
from ..evaluation.result import Evaluation
from ..files.later import name_like
from ..files.parquet_parts import Parts, split
from ..files.read import read
from ..files.write import as_text, check_table, write_table
from ..inference.choose_distance import choose_distance
from ..inference.fit import fit
from ..inference.update import update
from ..posteriors.personal import Fit, PersonalFit
from ..posteriors.save import load
from ..preferences import Clicks
from ..recommendations.explain import explain
from ..recommendations.next_pairs import next_pairs
from ..recommendations.recommend import DIGITS, recommend
from ..recommendations.similar import similar_items, similar_users
from ..recommendations.to_file import recommend_to
from ..show.report import report
from .choice import read_choice
from .progress import show_progress
from .shared import (
    check_out,
    check_report,
    clicks_for,
    executor_of,
    read_clicks,
    read_data,
    say,
)


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


def compare_distances(options: argparse.Namespace) -> int:
    """Which distance describes unseen users best, as a table, the best first."""
    check_table(options.out)
    prefs = read_data(options)
    with show_progress("comparing", options.quiet) as progress:
        found = choose_distance(prefs, rng=options.seed, progress=progress)
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
    rivals = f"; not told from it: {', '.join(found.rivals)}" if found.rivals else ""
    say(options, f"{found.chosen} describes unseen users best{rivals}")
    return 0


def fit_file(options: argparse.Namespace) -> int:
    """Fit a file and save the model."""
    check_out(options.out, options.file)
    if options.checkpoint and options.seed is None:
        raise ValueError("--checkpoint needs --seed, to know the fit again")
    more = {name: getattr(options, name) for name in ("update", "errors")}
    more = {name: value for name, value in more.items() if value is not None}
    is_parts = options.dask is not None and Path(options.file).is_dir()
    prefs = Parts(options.file) if is_parts else read_data(options)
    with executor_of(options) as executor, show_progress("fitting", options.quiet) as progress:
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
            progress=progress,
            **more,
        )
    posterior.save(options.out)
    seconds, chosen = posterior.settings["seconds"], posterior.settings.get("chosen")
    if chosen is not None:
        say(options, f"chosen: {chosen}")
    say(options, f"{posterior} in {seconds:.1f} s, saved as {options.out}")
    return 0


def update_file(options: argparse.Namespace) -> int:
    """Add the clicks of a file to a model, and save the new one."""
    check_out(options.out, options.file)
    posterior = load(options.model)
    more = clicks_for(posterior, options)
    with show_progress("updating", options.quiet) as progress:
        newer = update(
            posterior,
            more,
            n_draws=options.draws,
            rng=options.seed,
            progress=progress,
            executor=Threads(options.threads),
        )
    newer.save(options.out)
    went_on = "its chains went on" if "updates" in newer.settings else "fitted again"
    seconds = newer.settings["seconds"]
    say(options, f"{newer}, {went_on}, in {seconds:.1f} s, saved as {options.out}")
    return 0


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


def _print_aligned(columns: dict[str, Any]) -> None:
    """A table for a terminal; ``columns[name]`` lists the cells below a name."""
    cells = {name: [str(value) for value in values] for name, values in columns.items()}
    widths = {name: max(len(name), *map(len, values)) for name, values in cells.items()}
    for row in zip(*([name, *values] for name, values in cells.items()), strict=True):
        print("  ".join(cell.ljust(widths[name]) for name, cell in zip(cells, row, strict=True)))


def split_file(options: argparse.Namespace) -> int:
    """Clicks in parts."""
    prefs = read_clicks(options, "split")
    parts = split(prefs, options.out, options.parts)
    say(options, f"{parts} in {options.out}")
    return 0


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
    with executor_of(options) as executor, show_progress("recommending", options.quiet) as progress:
        recommend_to(
            posterior,
            options.out,
            options.k,
            clicks=clicks,
            executor=executor,
            progress=progress,
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


def _show(columns: dict[str, Any], options: argparse.Namespace) -> None:
    """A table, for a terminal or into a file."""
    if options.out == "-" and not options.json and sys.stdout.isatty():
        _print_aligned(columns)
    else:
        write_table(columns, options.out, as_json=options.json, safe_csv=options.safe_csv)


def evaluate_file(options: argparse.Namespace) -> int:
    """Accuracy and calibration on hidden clicks."""
    prefs = read_clicks(options, "evaluate")
    with show_progress("evaluating", options.quiet) as progress:
        result = evaluate(
            prefs,
            options.hide,
            options.k,
            options.method,
            split=options.split,
            test=options.test,
            at=options.at,
            share=options.share,
            rng=options.seed,
            executor=Threads(options.threads),
            alpha=options.alpha,
            n_draws=options.draws,
            n_clusters=options.clusters,
            progress=progress,
        )
    print(as_text(_figures(result)) if options.json else result.summary())
    return 0


def _figures(result: Evaluation) -> dict[str, Any]:
    """The figures of an evaluation, for JSON."""
    return {
        "accuracy": result.accuracy,
        "accuracy_error": result.accuracy_error,
        "popularity": result.popularity,
        "n_users": result.n_users,
        "hidden": result.judged.by,
        "all_users": result.judged.n_users,
        "not_judged": result.judged.others,
        "scores": {
            name: asdict(scores)
            for name, scores in ({"fit": result.scores} | result.baselines).items()
        },
        "calibration_error": result.calibration.error,
        "calibration": [
            {"stated": stated, "observed": observed, "count": count}
            for stated, observed, count in zip(
                result.calibration.stated.tolist(),
                result.calibration.observed.tolist(),
                result.calibration.counts.tolist(),
                strict=True,
            )
        ],
    }


def check_file(options: argparse.Namespace) -> int:
    """Whether the probabilities of a model are right on later clicks."""
    posterior = load(options.model)
    later = clicks_for(posterior, options)
    found = check(posterior, later, options.k, executor=Threads(options.threads))
    print(as_text(found.figures()) if options.json else found)
    return 0


def report_file(options: argparse.Namespace) -> int:
    """One page about a model."""
    check_report()
    check_out(options.out, options.model, "report")
    posterior, evaluation = load(options.model), None
    if options.evaluate:
        if posterior.kind != "clicks":
            raise ValueError(
                f"{options.model} was fitted to {posterior.kind}: only clicks can be hidden"
            )
        with show_progress("evaluating", options.quiet) as progress:
            evaluation = evaluate_again(
                posterior, options.hide, options.k, rng=options.seed, progress=progress
            )
    report(posterior, options.out, evaluation=evaluation)
    say(options, f"wrote {options.out}")
    return 0


def serve_model(options: argparse.Namespace) -> int:
    """Serve a model until interrupted."""
    try:
        from ..web.run import ServeOptions, find_token, serve
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"serve needs {error.name}: pip install 'pseudomallows[web]'", name=error.name
        ) from None
    given = ServeOptions(
        options.host,
        options.port,
        options.store,
        find_token(options.token_file),
        options.refit_every,
        options.rate,
        options.name,
        options.quiet,
        trusted_proxies=options.trusted_proxies,
        max_of_client=options.max_connections_per_client,
        uploads=(options.upload_rows, options.upload_users, options.upload_items),
    )
    serve(options.model, given)
    return 0
