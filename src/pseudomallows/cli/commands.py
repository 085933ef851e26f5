"""What each command does: read, call a public function, write."""

import argparse
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..distributions import datasets
from ..distributions.datasets import simulate_clicks, simulate_rankings
from ..engines.executors import Executor, Threads
from ..files.atomic import check_target, make_folder
from ..files.parquet_parts import Parts, split
from ..files.read import read, read_as
from ..files.write import as_text, check_table, write_table
from ..inference.evaluate import Evaluation, evaluate
from ..inference.fit import fit
from ..inference.reproduce import fit_options
from ..posteriors.diagnostics import ConvergenceWarning
from ..posteriors.personal import Fit, PersonalFit
from ..posteriors.save import load
from ..preferences.preferences import Clicks, Rankings
from ..recommendations.recommend import DIGITS, recommend
from ..recommendations.to_file import recommend_to
from .progress import show_progress

WARM_UP = """
import warnings
import pseudomallows as pm
warnings.simplefilter("ignore")
clicks = pm.simulate_clicks(400, 30, 5, 8, min_clicks=6, rng=1).preferences
pm.evaluate(clicks, 3, 3, "personal", ridge=0.3, rng=1)
pm.recommend(pm.fit(clicks, alpha=5, n_draws=2, warmup=0, rng=1), 3)
"""
DEMO_CLUSTERS, DEMO_HIDDEN, DEMO_PURCHASES, DEMO_DRAWS = 10, 10, 13, 60


def demo(options: argparse.Namespace) -> int:
    """Fit the shipped purchases, judge by hidden ones, write everything a user would."""
    from ..show.report import report

    folder, seed = Path(options.out), options.seed
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"cannot write into {folder}: it is a file")
    _say(options, "Loading; the first time, the kernels are compiled, which takes a minute or so.")
    prefs = datasets.online_retail(min_purchases=DEMO_PURCHASES)
    print(
        f"{prefs.n_users:,} customers of a shop for gifts, its {prefs.n_items} most bought "
        f"products, {len(prefs.codes):,} purchases (UCI Online Retail)."
    )
    with warnings.catch_warnings(), _compile_beside():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the report says so, in words
        results = _judge_demo(prefs, options)
        with show_progress("clusters of all purchases", options.quiet) as progress:
            posterior = fit(
                prefs,
                n_draws=DEMO_DRAWS,
                n_clusters=DEMO_CLUSTERS,
                rng=seed,
                progress=progress,
            )
    print(f"{DEMO_HIDDEN} purchases of each customer hidden; of 10 recommendations, found again:")
    for words, accuracy in (
        ("the most bought products", results["pseudo"].popularity),
        (f"{DEMO_CLUSTERS} clusters", results["pseudo"].accuracy),
        ("a consensus of one's own", results["personal"].accuracy),
    ):
        print(f"  {words:<28}{accuracy:>7.1%}")
    error = results["personal"].calibration.error
    print(f"  stated and observed probabilities of the last differ by {error:.3f} on average")
    sizes = np.bincount(posterior.labels, minlength=posterior.n_clusters)
    print("Clusters, by customers, and what each ranks first:")
    for cluster in np.argsort(-sizes, kind="stable").tolist():
        best = [str(row["item"]).lower() for row in posterior.summary(cluster)[:2]]
        print(f"  {sizes[cluster]:>5}  {'; '.join(best)}")

    make_folder(folder)
    posterior.save(folder / "model.pm")
    found = recommend(posterior, 10)
    write_table(found.to_columns(), folder / "recommendations.csv")
    page = folder / "report.html"
    command = f"pseudomallows demo --seed {seed}"
    report(posterior, page, evaluation=results["pseudo"], command=command)
    print(
        "The clusters are those of a fast approximation: good for recommendations, but the "
        "intervals\nof their ranks are too short. The report says how far to trust them."
    )
    print(f"Saved {folder / 'model.pm'} and {folder / 'recommendations.csv'}.")
    print(f"Open {page.resolve().as_uri()}")
    return 0


@contextmanager
def _compile_beside() -> Iterator[None]:
    """Compile in another process what is needed later, while this one is busy with the first."""
    command = [sys.executable, "-c", WARM_UP]
    beside = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        beside.kill()
        beside.wait()


def _judge_demo(prefs: Clicks, options: argparse.Namespace) -> dict[str, Evaluation]:
    results = {}
    for method in ("pseudo", "personal"):
        more: dict[str, Any] = {"ridge": 0.3}  # what a search would choose
        if method == "pseudo":
            more = {"n_clusters": DEMO_CLUSTERS, "n_draws": DEMO_DRAWS}
        with show_progress(f"hiding {DEMO_HIDDEN} purchases, {method}", options.quiet) as progress:
            results[method] = evaluate(
                prefs, DEMO_HIDDEN, 10, method, rng=options.seed, progress=progress, **more
            )
    return results


def simulate(options: argparse.Namespace) -> int:
    """Simulated users, as a file."""
    for path in (options.out, options.truth or "-"):
        check_table(path)
    alpha = [options.alpha] * options.clusters
    if options.what == "clicks":
        data = simulate_clicks(
            options.users, options.items, alpha, options.mean_clicks, rng=options.seed
        )
    else:
        data = simulate_rankings(
            options.users, options.items, alpha, top=options.top, rng=options.seed
        )
    width, height = (len(str(n)) for n in (options.items, options.users))
    items = [f"item {place + 1:0{width}}" for place in range(options.items)]
    users = [f"user {place + 1:0{height}}" for place in range(options.users)]
    prefs = data.preferences.rename(users=users, items=items)
    if isinstance(prefs, Rankings):
        write_table(_wide(users, items, prefs.rankings), options.out)
    elif isinstance(prefs, Clicks):
        write_table(_long(prefs), options.out)
    if options.truth:
        write_table(_wide(users, items, data.rankings), options.truth)
    return 0


def _long(prefs: Clicks) -> dict[str, Any]:
    owners = np.repeat(np.arange(prefs.n_users), prefs.n_clicks)
    return {"user": prefs.users[owners], "item": prefs.items[prefs.codes]}


def _wide(users: list[str], items: list[str], rankings: Any) -> dict[str, Any]:
    columns = {
        item: ["" if rank == 0 else rank for rank in rankings[:, place].tolist()]
        for place, item in enumerate(items)
    }
    return {"user": users} | columns


def fit_file(options: argparse.Namespace) -> int:
    """Fit a file and save the model."""
    _check_model(options.out, options.file)
    if options.checkpoint and options.seed is None:
        raise ValueError("--checkpoint needs --seed, to know the fit again")
    more: dict[str, Any] = {} if options.update is None else {"update": options.update}
    is_parts = options.dask is not None and Path(options.file).is_dir()
    prefs = Parts(options.file) if is_parts else _read(options)
    with _executor(options) as executor, show_progress("fitting", options.quiet) as progress:
        posterior = fit(
            prefs,
            options.method,
            options.alpha,
            options.draws,
            options.clusters,
            rng=options.seed,
            executor=executor,
            checkpoint=options.checkpoint,
            progress=progress,
            **more,
        )
    posterior.save(options.out)
    seconds = posterior.settings["seconds"]
    _say(options, f"{posterior} in {seconds:.1f} s, saved as {options.out}")
    return 0


def consensus(options: argparse.Namespace) -> int:
    """The consensus of each cluster, as a table."""
    posterior = load(options.model)
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
    if options.out == "-" and not options.json and sys.stdout.isatty():
        _print_aligned(columns)
    else:
        write_table(columns, options.out, as_json=options.json, safe_csv=options.safe_csv)
    return 0


def _most_clicked(options: argparse.Namespace, posterior: PersonalFit) -> list[dict[str, Any]]:
    """For orders of one's own, what the users clicked most."""
    if options.cluster is not None:
        raise ValueError(f"{options.model} has no clusters: each user has an order of their own")
    words = "each user has an order of their own, so there is no consensus"
    _say(
        options, f"{options.model}: {words}; these are the items by the share of users who clicked"
    )
    return posterior.most_clicked()


def split_file(options: argparse.Namespace) -> int:
    """Clicks in parts."""
    prefs = _read(options)
    if not isinstance(prefs, Clicks):
        raise TypeError(f"split needs clicks, and {options.file} holds rankings")
    parts = split(prefs, options.out, options.parts)
    _say(options, f"{parts} in {options.out}")
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
            clicks = _read_clicks(options, posterior)
    if options.users is not None:
        return _recommend_to_some(options, posterior)
    with _executor(options) as executor, show_progress("recommending", options.quiet) as progress:
        recommend_to(
            posterior,
            options.out,
            options.k,
            clicks=clicks,
            executor=executor,
            progress=progress,
            as_json=options.json,
            safe_csv=options.safe_csv,
        )
    return 0


def _recommend_to_some(options: argparse.Namespace, posterior: Fit) -> int:
    known = {str(name): name for name in posterior.users.tolist()}
    users = [known.get(user, user) for user in options.users]
    found = recommend(posterior, options.k, users=users, executor=Threads(options.threads))
    columns = found.to_columns(DIGITS)
    write_table(columns, options.out, as_json=options.json, safe_csv=options.safe_csv)
    return 0


def evaluate_file(options: argparse.Namespace) -> int:
    """Accuracy and calibration on hidden clicks."""
    prefs = _read(options)
    if not isinstance(prefs, Clicks):
        raise TypeError(f"evaluate needs clicks, and {options.file} holds rankings")
    with show_progress("evaluating", options.quiet) as progress:
        result = evaluate(
            prefs,
            options.hide,
            options.k,
            options.method,
            rng=options.seed,
            executor=Threads(options.threads),
            alpha=options.alpha,
            n_draws=options.draws,
            n_clusters=options.clusters,
            progress=progress,
        )
    print(as_text(_figures(result)) if options.json else _in_words(result, options))
    return 0


def _figures(result: Evaluation) -> dict[str, Any]:
    return {
        "accuracy": result.accuracy,
        "accuracy_error": result.accuracy_error,
        "popularity": result.popularity,
        "n_users": result.n_users,
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


def _in_words(result: Evaluation, options: argparse.Namespace) -> str:
    lines = [
        f"{options.hide} clicks hidden from each of {result.n_users:,} users, "
        f"{result.recommendations.items.shape[1]} recommendations each",
        f"found again       {result.accuracy:7.1%} ± {result.accuracy_error:.1%}",
        f"the most clicked  {result.popularity:7.1%}",
        f"calibration error {result.calibration.error:7.3f}",
        "stated  observed  recommendations",
    ]
    table = zip(
        result.calibration.stated,
        result.calibration.observed,
        result.calibration.counts,
        strict=True,
    )
    lines += [f"{stated:6.2f}{observed:10.2f}{count:17,}" for stated, observed, count in table]
    return "\n".join(lines)


def report_file(options: argparse.Namespace) -> int:
    """One page about a model."""
    from ..show.report import report

    _check_model(options.out, options.model)
    posterior, evaluation = load(options.model), None
    if options.evaluate:
        if posterior.clicks is None:
            raise ValueError(f"{options.model} was fitted to rankings: only clicks can be hidden")
        with show_progress("evaluating", options.quiet) as progress:
            evaluation = evaluate_again(
                posterior, options.hide, options.k, rng=options.seed, progress=progress
            )
    report(posterior, options.out, evaluation=evaluation)
    _say(options, f"wrote {options.out}")
    return 0


def evaluate_again(posterior: Fit, hide: int, k: int | None, **more: Any) -> Evaluation:
    """Hide clicks of a fit, and fit the rest with the options of that fit."""
    assert posterior.clicks is not None
    given = fit_options(posterior)
    unknown = [name for name in ("scores", "with_clusters") if name in given]
    if unknown:
        raise ValueError(
            f"this model was fitted with {unknown[0]}=..., which cannot be made again without the "
            "hidden clicks: use pm.evaluate"
        )
    for name in ("held_out", "keep_latent"):  # the first is learnt from what is hidden
        given.pop(name, None)
    if isinstance(posterior, PersonalFit):
        given["ridge"] = posterior.settings["options"]["ridge"]
    else:
        given["n_clusters"] = posterior.n_clusters
    method = posterior.settings["method"]
    return evaluate(posterior.clicks, hide, k, method, **more, **given)


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


def info(options: argparse.Namespace) -> int:
    """What a file holds, in a few lines."""
    found = _about(options)
    if options.json:
        print(as_text(found))
    else:
        width = max(map(len, found))
        for name, value in found.items():
            print(f"{name:<{width}}  {value}")
    return 0


def _about(options: argparse.Namespace) -> dict[str, Any]:
    if options.file != "-" and _is_model(options.file):
        return _about_model(load(options.file))
    prefs = read(options.file, options.kind, encoding=options.encoding)
    about: dict[str, Any] = {"users": prefs.n_users, "items": prefs.n_items}
    if isinstance(prefs, Rankings):
        n_full = int(prefs.is_row_full.sum())
        about |= {
            "holds": "rankings",
            "first user": _first_words(prefs),
            "people": int(prefs.weights.sum()),
            "full": n_full,
        }
        about |= {"partial": prefs.n_users - n_full}
    else:
        counts = prefs.item_counts()
        about |= {
            "holds": "clicks",
            "clicks": len(prefs.codes),
            "clicks of a user": f"{int(np.median(prefs.n_clicks))} in the median, at most "
            f"{int(prefs.n_clicks.max())}",
            "most clicked": str(prefs.items[counts.argmax()]),
            "density": round(len(prefs.codes) / prefs.n_users / prefs.n_items, 4),
        }
    return {"holds": about.pop("holds")} | about


def _first_words(prefs: Rankings) -> str:
    """The best items of the first user, to see that the file was understood."""
    ranks = prefs.rankings[0]
    order = [item for item in np.argsort(ranks, kind="stable") if ranks[item] > 0][:3]
    return f"{prefs.users[0]}: {', '.join(str(prefs.items[item]) for item in order)}"


def _is_model(path: str) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return "header.json" in archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError):  # the reader of data says what it is
        return False


def _about_model(posterior: Fit) -> dict[str, Any]:
    settings = posterior.settings
    about = {
        "holds": "model",
        "method": settings.get("method"),
        "users": len(posterior.users) or f"{settings.get('n_users', 0)}, who are not kept",
        "items": posterior.n_items,
    }
    more = {
        "fitted to": settings.get("kind"),
        "seed": settings.get("seed"),
        "version": settings.get("version"),
        "seconds": settings.get("seconds"),
    }
    if isinstance(posterior, PersonalFit):
        windows = ", ".join(map(str, posterior.corrections)) or "none"
        return about | {"alpha": f"{posterior.mean_alpha:.3g}", "corrected windows": windows} | more
    n_chains, n_draws = posterior.consensus.shape[:2]
    about |= {
        "clusters": posterior.n_clusters,
        "alpha": ", ".join(f"{a:.3g}" for a in posterior.alpha.mean(axis=(0, 1))),
        "draws": f"{n_chains} chains of {n_draws}",
    }
    found = [posterior.diagnostics(cluster) for cluster in range(posterior.n_clusters)]
    return (
        about
        | more
        | {
            "worst R-hat": round(max(each.worst_rhat for each in found), 3),
            "least effective size": round(min(each.least_effective_size for each in found), 1),
        }
    )


# What several commands share


def _read(options: argparse.Namespace) -> Rankings | Clicks:
    prefs, said = read_as(options.file, options.kind, options.encoding)
    if options.kind is None:  # a guess, which may be wrong
        _say(options, said)
    return prefs


def _read_clicks(options: argparse.Namespace, posterior: Fit) -> Clicks:
    prefs = read(options.clicks, "clicks", items=posterior.items.tolist())
    assert isinstance(prefs, Clicks)
    return prefs


def _check_model(path: str, source: str) -> None:
    """Refuse, before any work, a place where no model can be saved."""
    if path == "-":
        raise ValueError("a model cannot go to standard output: name a file")
    target = check_target(path)
    if target.exists() and source != "-" and target.samefile(source):
        raise ValueError(f"--out {path} is the file that is read: give the model another name")


@contextmanager
def _executor(options: argparse.Namespace) -> Iterator[Executor]:
    """Threads, or a cluster for as long as it is needed."""
    if options.dask is None:
        yield Threads(options.threads)
        return
    from ..engines.dask import DaskExecutor

    with DaskExecutor(options.dask) as cluster:
        yield cluster


def _say(options: argparse.Namespace, words: str) -> None:
    if not options.quiet:
        print(words, file=sys.stderr, flush=True)


def _print_aligned(columns: dict[str, Any]) -> None:
    cells = {name: [str(value) for value in values] for name, values in columns.items()}
    widths = {name: max(len(name), *map(len, values)) for name, values in cells.items()}
    for row in zip(*([name, *values] for name, values in cells.items()), strict=True):
        print("  ".join(cell.ljust(widths[name]) for name, cell in zip(cells, row, strict=True)))
