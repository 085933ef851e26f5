"""Recommendations for all users, block by block: never all of them in memory."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engines.executors import Executor, Threads, blocks, is_remote
from ..files.atomic import make_folder
from ..files.parquet_parts import Parts, load_part
from ..files.write import Write, check_table, open_table
from ..posteriors.personal import Fit, PersonalFit
from ..preferences.preferences import Clicks
from ..rankings import check_count
from .recommend import Recommendations, best_items, clicks_of_fit, new_users
from .recommenders import recommender_of

ROWS = 1 << 14  # users of a block
DIGITS = 6  # of a probability in a file
Progress = Callable[[int, int], None]
Answered = tuple[int, tuple[str, str] | None]


def recommend_to(
    posterior: Fit,
    target: str | os.PathLike[str],
    k: int = 10,
    *,
    clicks: Any = None,
    window: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    as_json: bool = False,
    safe_csv: bool = False,
) -> int:
    """Recommend to every user, block by block, into a file; return how many users there were.

    The same answers as those of :func:`recommend`, with probabilities to 6 digits, in columns user,
    place, item and probability.

    Parameters
    ----------
    posterior : Posterior or PersonalFit
        From a fit of clicks.
    target : path
        A file, .csv, .tsv (with .gz), .json or .parquet; for :class:`Parts` a folder, in which each
        part has a file of the same name. A file appears once it is whole.
    k, window : int
        As in :func:`recommend`.
    clicks : optional
        Clicks of new users, in the forms of :func:`recommend`, or :class:`Parts`; default: the
        users of the fit.
    executor : optional
        Anything with a `map`. With a :class:`DaskExecutor` and :class:`Parts` the workers read the
        parts and write the answers.
    progress : callable, optional
        Called as ``progress(done, total)``, of blocks or parts.
    as_json : bool
        Write JSON, to standard output if target is "-".
    safe_csv : bool
        In .csv and .tsv, put an apostrophe before names that a spreadsheet takes for a formula.

    Examples
    --------
    >>> import tempfile, pathlib, pseudomallows as pm
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "recommendations.csv"
    >>> prefs = pm.Preferences.from_clicks({"ann": ["tea", "rum"], "bob": ["tea"], "eve": ["ale"]})
    >>> recommend_to(pm.fit(prefs, alpha=2, rng=1), file, k=1)
    3
    >>> print(file.read_text().splitlines()[0])
    user,place,item,probability
    """
    known = clicks_of_fit(posterior, has_clicks=clicks is not None)
    k = min(check_count(k, "k"), posterior.n_items)
    window = k if window is None else min(check_count(window, "window"), posterior.n_items)
    report = progress or (lambda done, total: None)
    if isinstance(clicks, Parts):
        return _answer_parts(posterior, clicks, Path(target), k, window, executor, report)
    if is_remote(executor):
        raise TypeError("on a cluster, recommendations are for parts: give clicks=pm.Parts(folder)")
    check_table(target)
    seen, is_new = known, clicks is not None
    if is_new:
        seen = new_users(clicks, known, recommender_of(posterior).codes)
    answers = _answers(posterior, seen, is_new, k, window, executor)
    n_blocks = max(1, len(blocks(seen.n_users, ROWS)))
    with open_table(target, as_json, safe_csv) as write:
        for number, found in enumerate(answers):
            _write(write, found)
            report(number + 1, n_blocks)
    return seen.n_users


def _write(write: Write, found: Recommendations) -> None:
    columns = found.to_columns()
    columns["probability"] = np.round(columns["probability"], DIGITS)
    write(columns)


def _answers(
    posterior: Fit,
    seen: Clicks,
    is_new: bool,
    k: int,
    window: int,
    executor: Executor | None,
) -> Iterator[Recommendations]:
    """The answers to blocks of users; of nobody, one block without rows."""
    for part in blocks(seen.n_users, ROWS) or [slice(0, 0)]:
        rows: NDArray[np.int64] = np.arange(part.start, part.stop)
        block = seen.take(rows)
        yield best_items(posterior, block, None if is_new else rows, k, window, executor=executor)


# Parts


def _answer_parts(
    posterior: Fit,
    parts: Parts,
    folder: Path,
    k: int,
    window: int,
    executor: Executor | None,
    report: Progress,
) -> int:
    make_folder(folder)
    targets = [str(folder.resolve() / Path(path).name) for path in parts.paths]
    if set(targets) & set(parts.paths):
        raise ValueError(f"{folder} holds the clicks themselves: give another folder")
    lean, n_users, n_parts = without_users(posterior), 0, len(targets)
    pairs = list(zip(parts.paths, targets, strict=True))
    if is_remote(executor):
        model = executor.submit(_keep, lean)
        tasks = [(model, *pair, k, window, True) for pair in pairs]
        counts = [executor.submit(_answer_part, task) for task in tasks]  # side by side
        found = _results(lambda count: next(executor.map(_keep, [count])), counts)
    else:
        mine = [(lean, *pair, k, window, False) for pair in pairs]
        found = _results(lambda task: _answer_part(task, executor), mine)
    ends = []
    for number, (count, first_and_last) in enumerate(found):
        n_users += count
        ends.append(first_and_last)
        report(number + 1, n_parts)
    parts.check_order(ends)  # a user of two files would have two answers, both of half the clicks
    return n_users


def _results(count: Callable[[Any], Answered], parts: list[Any]) -> Iterator[Answered]:
    """The counts as they come; an error of one part is told once the others are written."""
    first = None
    for part in parts:
        try:
            yield count(part)
        except (ValueError, OSError) as error:
            first = first or error
    if first is not None:
        raise first


def without_users(posterior: Fit) -> Fit:
    """The same without the users of the fit, and without costs, which no answer needs: small."""
    assert posterior.clicks is not None
    none = posterior.clicks.take(np.empty(0, dtype=np.int64))
    if isinstance(posterior, PersonalFit):
        return replace(posterior, users=none.users, data=none)
    return replace(
        posterior,
        users=none.users,
        data=none,
        costs=posterior.costs[:, :0, :0],
        latent=posterior.latent[:, :, :0],
        chain_memberships=posterior.chain_memberships[:, :0],
    )


def _keep(thing: Any) -> Any:
    return thing


def _answer_part(
    task: tuple[Fit, str, str, int, int, bool], executor: Executor | None = None
) -> Answered:
    """Read one part, write its answers, whole or not at all; return the number of users, and the
    first and the last of them."""
    posterior, source, target, k, window, is_alone = task
    seen = load_part(source, [str(name) for name in posterior.items.tolist()])
    seen = replace(seen, items=posterior.items)
    threads = Threads(1) if is_alone else executor
    with open_table(target) as write:
        for found in _answers(posterior, seen, True, k, window, threads):
            _write(write, found)
    users = seen.users
    return len(users), (users[0], users[-1]) if len(users) else None
