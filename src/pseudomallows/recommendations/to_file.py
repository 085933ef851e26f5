"""Recommendations for all users, block by block: never all of them in memory."""

import io
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.atomic import make_folder
from ..data.parquet import Parts, load_part
from ..data.write import Write, check_table, open_table, text_writer
from ..engines.executors import Executor, Threads, all_cores, blocks, check_executor, is_remote
from ..engines.progress import Progress, shown
from ..personal.personal_fit import Fit, PersonalFit
from .choose_recommender import recommender_of
from .filter import ItemFilter, parse_filter
from .recommend import DIGITS, Recommendations, best_items, check_sizes
from .recommender import MAX_ERROR, Users
from .users import check_posterior, users_of

ROWS = 1 << 14  # users of a block in a file: with 200 items their probabilities take 26 MB
Answered = tuple[int, tuple[str, str] | None]


def recommend_to(
    posterior: Fit,
    target: str | os.PathLike[str],
    k: int = 10,
    *,
    clicks: Any = None,
    exclude: Any = None,
    only: Any = None,
    window: int | None = None,
    executor: Executor | None = None,
    progress: Progress | bool | None = None,
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
    exclude, only : optional
        Items not to show, and items to choose from: the forms of :func:`recommend`; for
        :class:`Parts` a list, or a dict of users.
    executor : optional
        Anything with a `map`. With a :class:`DaskExecutor` and :class:`Parts` the workers read the
        parts and write the answers.
    progress : bool or callable, optional
        As in :func:`fit`, of blocks or parts.
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
    check_posterior(posterior)
    recommender_of(posterior)  # before anything is written
    check_executor(executor)
    sizes = check_sizes(k, window, posterior.n_items)
    if isinstance(clicks, Parts):
        asked = FileQuestion(*sizes, *_check_for_parts(exclude, only, posterior))
        with shown(progress, "recommending") as report:
            return _answer_parts(posterior, clicks, Path(target), asked, executor, report)
    if is_remote(executor):
        raise TypeError(
            "on Dask workers, recommendations are for parts: give clicks=pm.data.Parts(folder)"
        )
    users = users_of(posterior, clicks=clicks)
    choice = parse_filter(exclude, only, posterior.items, users.clicks.users, posterior.users)
    check_table(target)
    n_blocks = max(1, len(blocks(users.clicks.n_users, ROWS)))
    with shown(progress, "recommending") as report, open_table(target, as_json, safe_csv) as write:
        answers = answers_of(posterior, users, sizes, executor, choice=choice)
        for number, answer in enumerate(answers):
            write_answer(write, answer)
            report(number + 1, n_blocks)
    return users.clicks.n_users


def csv_blocks(
    posterior: Fit, k: int, *, safe_csv: bool = False, executor: Executor | None = None
) -> Iterator[bytes]:
    """The file of `recommend_to` as comma-separated text, block by block of users of the fit."""
    stream = io.BytesIO()
    write = text_writer(stream, safe_csv=safe_csv)
    known = check_posterior(posterior)  # of a fit of parts without users
    users = Users(known, np.arange(known.n_users))
    sizes = check_sizes(k, None, posterior.n_items)
    for answer in answers_of(
        posterior, users, sizes, executor, 256
    ):  # the reader waits for the first
        write_answer(write, answer)
        yield stream.getvalue()
        stream.seek(0)
        stream.truncate()


def write_answer(write: Write, answer: Recommendations) -> None:
    """Write some rows of the table."""
    write(answer.to_columns(DIGITS))


def answers_of(
    posterior: Fit,
    users: Users,
    sizes: tuple[int, int],
    executor: Executor | None,
    n_rows: int | None = None,
    choice: ItemFilter | None = None,
) -> Iterator[Recommendations]:
    """The answers to blocks of `n_rows` users; of nobody, one block without rows. `sizes` are k and
    the window."""
    threads, recommender, (k, window) = executor or all_cores(), recommender_of(posterior), sizes
    for part in blocks(users.clicks.n_users, n_rows or ROWS) or [slice(0, 0)]:
        chosen = np.arange(part.start, part.stop)
        block = Users(users.clicks.take(chosen), None if users.rows is None else users.rows[chosen])
        probabilities = recommender.probabilities(block, k, window, MAX_ERROR, threads)
        mine = None if choice is None else choice.take(part)
        yield best_items(probabilities, k, threads, mine)


# Parts


class FileQuestion(NamedTuple):
    """What is asked about each part."""

    k: int
    window: int
    exclude: Any
    only: Any

    def choice(self, posterior: Fit, users: NDArray[Any]) -> ItemFilter | None:
        """What the users of a part may be shown; others are named too."""
        named = [name for given in self[2:] if isinstance(given, dict) for name in given]
        known = np.empty(len(named), dtype=object)
        known[:] = named
        return parse_filter(self.exclude, self.only, posterior.items, users, known)


def _check_for_parts(exclude: Any, only: Any, posterior: Fit) -> tuple[Any, Any]:
    """Both, if they suit parts, whose users are not known yet."""
    for given, what in ((exclude, "exclude"), (only, "only")):
        if hasattr(given, "tocsr") or getattr(given, "ndim", 1) == 2:
            raise ValueError(
                f"{what} is a matrix, and the users of parts have no order: give a list of items, "
                "or a dict {user: [item, ...]}"
            )
    asked = FileQuestion(1, 1, exclude, only)
    asked.choice(
        posterior, np.empty(0, dtype=object)
    )  # an error for unknown items, before the work
    return exclude, only


def _answer_parts(
    posterior: Fit,
    parts: Parts,
    folder: Path,
    asked: FileQuestion,
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
        tasks = [(model, *pair, asked, True) for pair in pairs]
        counts = [executor.submit(_answer_part, task) for task in tasks]  # side by side
        answered = _results(lambda count: next(executor.map(_keep, [count])), counts)
    else:
        mine = [(lean, *pair, asked, False) for pair in pairs]
        answered = _results(lambda task: _answer_part(task, executor), mine)
    ends = []
    for number, (count, first_and_last) in enumerate(answered):
        n_users += count
        ends.append(first_and_last)
        report(number + 1, n_parts)
    parts.check_order(ends)  # a user of two files would have two answers, both of half the clicks
    return n_users


def _results(count: Callable[[Any], Answered], parts: list[Any]) -> Iterator[Answered]:
    """The counts as they come; an error of one part is raised once the others are written."""
    first = None
    for part in parts:
        try:
            yield count(part)
        except (ValueError, OSError) as error:
            first = first or error
    if first is not None:
        raise first


def without_users(posterior: Fit) -> Fit:
    """The same without the users of the fit: small."""
    assert posterior.clicks is not None
    none = posterior.clicks.take(np.empty(0, dtype=np.int64))
    if isinstance(posterior, PersonalFit):
        return replace(posterior, users=none.users, data=none)
    return replace(
        posterior,
        users=none.users,
        data=none,
        latent=posterior.latent[:, :, :0],
        chain_memberships=posterior.chain_memberships[:, :0],
    )


def _keep(thing: Any) -> Any:
    return thing


def _answer_part(
    task: tuple[Fit, str, str, FileQuestion, bool], executor: Executor | None = None
) -> Answered:
    """Read one part, write its answers, whole or not at all; return the number of users, and the
    first and the last of them."""
    posterior, source, target, asked, is_alone = task
    seen = load_part(source, [str(name) for name in posterior.items.tolist()])
    seen = replace(seen, items=posterior.items)
    threads = Threads(1) if is_alone else executor
    choice = asked.choice(posterior, seen.users)
    with open_table(target) as write:
        for answer in answers_of(
            posterior, Users(seen, None), (asked.k, asked.window), threads, choice=choice
        ):
            write_answer(write, answer)
    users = seen.users
    return len(users), (users[0], users[-1]) if len(users) else None
