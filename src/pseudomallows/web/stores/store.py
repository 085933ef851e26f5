"""Where new clicks are kept: the tables and what is asked of them, in SQLite or PostgreSQL.

A click that was acknowledged is on the disk: :meth:`Store.add` returns after the commit, and both
stores wait for the disk with each commit. The order of clicks is that of their numbers, which the
store gives; each has a time as well, in seconds since 1970, unknown in stores of before 0.3.

Posted clicks are rows of `clicks`. Those of an upload are rows of `uploaded`, and count only while
the upload is "done": so an upload is there whole or not at all, and can be taken away again. The
rows of one that is "running" or "deleted" are seen by nobody. `state` is one row: how many clicks
count, how many were added or removed so far (changes), the number of the last upload, and the
changes by the last removal of a user (forgotten): a model that learned before may know the user.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any, TypeVar

from msgspec import Struct

from ..errors import RETRY, ServiceError

SCHEMA = 3  # 0.1 had `clicks` alone, 0.2 had none of ADDED
PAGE = 5_000  # rows read or removed at a time: few round trips, and posted clicks hardly wait
COLUMNS = {
    "clicks": ("number", "{user}", "item", "time"),
    "uploads": ("id", "began", "stage", "users", "items", "clicks", "after"),
    "uploaded": ("upload", "{user}", "item", "time"),
    "state": ("one", "schema", "clicks", "changes", "uploads", "forgotten"),
}
ADDED = {  # the last column of these tables, which older stores get
    "clicks": "time DOUBLE PRECISION",
    "uploaded": "time DOUBLE PRECISION",
    "state": "forgotten BIGINT NOT NULL DEFAULT 0",
}
TABLES = (
    "CREATE TABLE IF NOT EXISTS {clicks} (number {serial}, {user} TEXT NOT NULL, "
    "item TEXT NOT NULL, time DOUBLE PRECISION, UNIQUE ({user}, item))",
    "CREATE TABLE IF NOT EXISTS {uploads} (id BIGINT PRIMARY KEY, began TEXT NOT NULL, "
    "stage TEXT NOT NULL, users BIGINT NOT NULL, items BIGINT NOT NULL, clicks BIGINT NOT NULL, "
    "after BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS {uploaded} (upload BIGINT NOT NULL, {user} TEXT NOT NULL, "
    "item TEXT NOT NULL, time DOUBLE PRECISION, PRIMARY KEY (upload, {user}, item)) "
    "{without_number}",
    "CREATE TABLE IF NOT EXISTS {state} (one INTEGER PRIMARY KEY CHECK (one = 1), "
    "schema INTEGER NOT NULL, clicks BIGINT NOT NULL, changes BIGINT NOT NULL, "
    "uploads BIGINT NOT NULL, forgotten BIGINT NOT NULL DEFAULT 0)",
)
FIRST_STATE = "INSERT INTO {state} SELECT 1, %s, count(*), count(*), 0, 0 FROM {clicks}"
EACH_ONCE = "ON CONFLICT ({user}, item) DO NOTHING"
CLICKS_OF = (
    "SELECT {user}, item, time FROM "
    "(SELECT {user}, item, time, number AS place, 0 AS upload FROM {clicks} "
    "WHERE {user} {is_one} UNION ALL SELECT {user}, item, time, after, id FROM {uploads} "
    "CROSS JOIN {uploaded} WHERE upload = id AND stage = 'done' AND {user} {is_one}) AS known "
    "ORDER BY place, upload, item"
)  # CROSS JOIN: SQLite then looks up the user in each upload, and does not read through them all
REMOVE_SOME = (
    "DELETE FROM {uploaded} WHERE upload = %s AND ({user}, item) IN (SELECT {user}, item "
    "FROM {uploaded} WHERE upload = %s ORDER BY {user}, item LIMIT %s)"
)
Pair = tuple[str, str]  # user, item
Click = tuple[str, str, float | None]  # user, item, time
Run = Callable[..., Any]  # a statement and its values; gives a cursor
T = TypeVar("T")


class UploadRow(Struct):
    """What an upload brought, and when (UTC); clicks that were removed since do not count."""

    upload: int
    time: str
    users: int
    items: int
    clicks: int


class Store(ABC):
    """Clicks of users, in the order in which they came."""

    where: str  # for errors
    _has_traces = True  # may the files hold what was removed? A kill may have left it

    # What each kind of store does in its own way

    @abstractmethod
    def _writing(self) -> AbstractContextManager[Run]:
        """Statements, all or nothing; safely on the disk at the end."""

    @abstractmethod
    def _reading(self, at_one_moment: bool = False) -> AbstractContextManager[Run]:
        """Statements that change nothing, each for itself, or all of one moment."""

    @abstractmethod
    def _add_clicks(self, run: Run, clicks: Sequence[Click]) -> int:
        """Add clicks; how many of them are new."""

    @abstractmethod
    def _add_uploaded(self, run: Run, upload: int, clicks: Sequence[Click]) -> None:
        """Add clicks of an upload."""

    @abstractmethod
    def _columns(self, run: Run, table: str) -> tuple[str, ...]:
        """The columns of a table, none if it is not there."""

    @abstractmethod
    def _user_column(self) -> str:
        """Its name."""

    def _user_values(self, users: Sequence[str]) -> Sequence[Any]:
        """What to ask for, question by question."""
        return users

    def _alone(self, run: Run) -> None:
        """Let no other process finish or remove uploads until the end of this transaction."""
        return

    def be_lazy(self) -> None:
        """Do not wait for the disk at each commit: for parts of uploads, whose last one does."""
        return

    @abstractmethod
    def close(self) -> None:
        """Let go of files and connections."""

    # Beginning

    def _prepare(self, run: Run) -> None:
        """Make the tables that are missing; refuse those of another schema."""
        for table, wanted in COLUMNS.items():
            named = tuple(name.format(user=self._user_column()) for name in wanted)
            columns = self._columns(run, table)
            if table in ADDED and columns == named[:-1]:
                run(f"ALTER TABLE {{{table}}} ADD COLUMN {ADDED[table]}")
            elif columns and columns != named:
                raise ValueError(
                    f"cannot keep clicks in {self.where}: its table {table!r} has the columns "
                    f"{', '.join(columns)}, wanted {', '.join(named)}; give another --store"
                )
        for text in TABLES:
            run(text)
        if run("SELECT 1 FROM {state}").fetchone() is None:
            run(FIRST_STATE, (SCHEMA,))
        run("UPDATE {state} SET schema = 3 WHERE schema = 2")
        schema = run("SELECT schema FROM {state}").fetchone()[0]
        if schema != SCHEMA:
            raise ValueError(
                f"cannot keep clicks in {self.where}: its schema is number {schema}, and this "
                f"program knows up to {SCHEMA}; update pseudomallows, or give another --store"
            )
        run(f"EXPLAIN INSERT INTO {{clicks}} ({{user}}, item) VALUES ('', '') {EACH_ONCE}")

    # Clicks

    def add(self, pairs: Iterable[Pair], times: Sequence[float] | None = None) -> None:
        """Keep clicks, all or none, safely on the disk when this returns; by default of now."""
        rows = _with_times(list(pairs), times)
        with self._writing() as run:
            self._count(run, self._add_clicks(run, rows))

    def _count(self, run: Run, n_new: int) -> None:
        if n_new:
            run(
                "UPDATE {state} SET clicks = clicks + %s, changes = changes + %s",
                (n_new, abs(n_new)),
            )

    def clicks_of(self, users: Sequence[str]) -> dict[str, list[str]]:
        """The clicks of some users, each once, oldest first."""
        clicks: dict[str, dict[str, None]] = {user: {} for user in users}
        for user, item, _ in self.timed_clicks_of(list(clicks)):
            clicks[user][item] = None
        return {user: list(items) for user, items in clicks.items()}

    def timed_clicks_of(self, users: Sequence[str]) -> list[tuple[str, str, float]]:
        """User, item and time (NaN if not known) of the clicks of some users, in the order in which
        they came. A click may come several times."""
        with self._reading() as run:
            return [
                (user, item, math.nan if when is None else when)
                for value in self._user_values(users)
                for user, item, when in run(CLICKS_OF, (value, value)).fetchall()
            ]

    def newest_clicks(self, most: int) -> Iterator[list[Pair]]:
        """At most so many clicks, a page at a time, others get in between: the posted ones, newest
        first, then those of the newest upload, and so on."""
        text, before = "number, {user}, item FROM {clicks} WHERE number < %s", 2**63 - 1
        while page := self._page(text, "number DESC", (before,), most):
            most, before = most - len(page), page[-1][0]
            yield [(user, item) for _, user, item in page]
        text = "{user}, item FROM {uploaded} WHERE upload = %s AND ({user}, item) > (%s, %s)"
        for upload in self.uploads():
            last: Pair = ("", "")
            while page := self._page(text, "{user}, item", (upload.upload, *last), most):
                most, last = most - len(page), page[-1]
                yield page

    def _page(self, text: str, order: str, values: tuple[Any, ...], most: int) -> list[Any]:
        """Some of the rows, in order."""
        with self._reading() as run:
            text = f"SELECT {text} ORDER BY {order} LIMIT {min(PAGE, most)}"
            return list(run(text, values).fetchall())

    def all_clicks(self) -> Iterator[Click]:
        """Every click of one moment: the posted ones, oldest first, then upload after upload.

        One that came by several ways is there several times.
        """
        with self._reading(at_one_moment=True) as run:
            columns, rows = "number, {user}, item, time", "FROM {clicks} WHERE number > %s"
            yield from _pages(run, columns, rows, "number", (0,))
            uploads = run("SELECT id FROM {uploads} WHERE stage = 'done' ORDER BY id").fetchall()
            for (upload,) in uploads:
                rows = f"FROM {{uploaded}} WHERE upload = {int(upload)}"
                rows += " AND ({user}, item) > (%s, %s)"
                yield from _pages(run, "{user}, item, time", rows, "{user}, item", ("", ""))

    def n_clicks(self) -> int:
        """How many clicks there are; one that came by several ways counts several times."""
        return self.counts()[0]

    def counts(self) -> tuple[int, int]:
        """How many clicks there are, and how many were added or removed so far."""
        return self._state()[:2]

    def forgotten(self) -> int:
        """The changes by the last removal of a user: who has learned before may know the user."""
        return self._state()[2]

    def _state(self) -> tuple[int, int, int]:
        with self._reading() as run:
            clicks, *more = run("SELECT clicks, changes, forgotten FROM {state}").fetchone()
            return int(clicks), int(more[0]), int(more[1])

    def remove_user(self, user: str, running: Collection[int] = ()) -> int:
        """Remove all clicks of a user; how many there were.

        Uploads under way may bring the user back. Those of others are given up; who runs one of
        `running` says so when it is finished.
        """
        with self._writing() as run:
            self._alone(run)
            total = int(run("DELETE FROM {clicks} WHERE {user} = %s", (user,)).rowcount)
            for upload, stage in run("SELECT id, stage FROM {uploads}").fetchall():
                if stage == "done":
                    total += _remove_uploaded(run, upload, user)
                elif upload not in running:
                    run("UPDATE {uploads} SET stage = 'deleted' WHERE id = %s", (upload,))
            if total:
                self._count(run, -total)
                run("UPDATE {state} SET forgotten = changes")
        self._has_traces = True
        self.scrub()
        return total

    def scrub(self) -> None:
        """Let go of what the files still hold of removed rows, if nobody reads there now."""
        return

    def check(self, writing: bool = False) -> None:
        """Raise an error if clicks cannot be kept; `writing` finds out by writing."""
        if writing:
            with self._writing() as run:
                run("UPDATE {state} SET changes = changes")
        with self._reading() as run:
            for table in COLUMNS:
                run(f"SELECT 1 FROM {{{table}}} LIMIT 1")

    # Uploads

    def begin_upload(self, users: int, items: int) -> int:
        """The number of a new upload, of which nothing is seen until it is finished."""
        with self._writing() as run:
            run("UPDATE {state} SET uploads = uploads + 1")
            number = int(run("SELECT uploads FROM {state}").fetchone()[0])
            began = datetime.now(UTC).isoformat(timespec="seconds")
            run(
                "INSERT INTO {uploads} VALUES (%s, %s, 'running', %s, %s, 0, 0)",
                (number, began, users, items),
            )
            return number

    def add_part(
        self, upload: int, pairs: Sequence[Pair], times: Sequence[float] | None = None
    ) -> None:
        """Keep some clicks of an upload, by default of now; each pair must come once in it."""
        with self._writing() as run:
            text = "UPDATE {uploads} SET clicks = clicks + %s WHERE id = %s AND stage = 'running'"
            self._must_change(run(text, (len(pairs), upload)))
            self._add_uploaded(run, upload, _with_times(pairs, times))

    def finish_upload(self, upload: int, without: Collection[str] = ()) -> None:
        """From now on, the clicks of an upload count, but for those of some users."""
        with self._writing() as run:
            self._alone(run)
            for user in list(without):
                _remove_uploaded(run, upload, user)
            last = run("SELECT coalesce(max(number), 0) FROM {clicks}").fetchone()[0]
            text = "UPDATE {uploads} SET stage = 'done', after = %s "
            text += "WHERE id = %s AND stage = 'running'"
            self._must_change(run(text, (last, upload)))
            text = "SELECT clicks FROM {uploads} WHERE id = %s"
            self._count(run, run(text, (upload,)).fetchone()[0])
        self._has_traces = self._has_traces or bool(without)

    def _must_change(self, cursor: Any) -> None:
        if cursor.rowcount != 1:
            words = "the upload was given up, and nothing of it was stored: send it again"
            raise ServiceError(503, words, RETRY)

    def remove_upload(self, upload: int, stage: str = "done") -> int | None:
        """Let an upload count no more; how many clicks it had, None if there is none in that stage.

        Its rows stay until :meth:`clean` has removed them.
        """
        with self._writing() as run:
            self._alone(run)
            text = "UPDATE {uploads} SET stage = 'deleted' WHERE id = %s AND stage = %s"
            if run(text, (upload, stage)).rowcount != 1:
                return None
            text = "SELECT clicks FROM {uploads} WHERE id = %s"
            clicks = int(run(text, (upload,)).fetchone()[0])
            self._count(run, -clicks if stage == "done" else 0)
            return clicks

    def uploads(self, most: int = 1000) -> list[UploadRow]:
        """The newest uploads that count, the newest first."""
        text = (
            "SELECT id, began, users, items, clicks FROM {uploads} WHERE stage = 'done' "
            "ORDER BY id DESC LIMIT %s"
        )
        with self._reading() as run:
            return [UploadRow(*row) for row in run(text, (most,)).fetchall()]

    def left_over(self) -> dict[int, tuple[str, int, str]]:
        """Stage, rows and beginning of the uploads that do not count, by number."""
        with self._reading() as run:
            text = "SELECT id, stage, clicks, began FROM {uploads} WHERE stage != 'done'"
            return {number: tuple(more) for number, *more in run(text).fetchall()}

    def clean(self, upload: int) -> bool:
        """Remove some rows of a deleted upload; are there any left?"""
        self._has_traces = True
        with self._writing() as run:
            text = "SELECT 1 FROM {uploads} WHERE id = %s AND stage = 'deleted'"
            if run(text, (upload,)).fetchone() is None:
                return False
            if run(REMOVE_SOME, (upload, upload, PAGE)).rowcount:
                return True
            run("DELETE FROM {uploads} WHERE id = %s", (upload,))
            return False


def _with_times(pairs: Sequence[Pair], times: Sequence[float] | None) -> list[Click]:
    """Clicks with their times, None for NaN; by default of now."""
    if times is None:
        now = time.time()
        return [(user, item, now) for user, item in pairs]
    return [
        (user, item, None if math.isnan(when) else when)
        for (user, item), when in zip(pairs, times, strict=True)
    ]


def _remove_uploaded(run: Run, upload: int, user: str) -> int:
    """Remove the clicks of a user from an upload; how many there were."""
    text = "DELETE FROM {uploaded} WHERE upload = %s AND {user} = %s"
    n_removed = int(run(text, (upload, user)).rowcount)
    if n_removed:
        text = "UPDATE {uploads} SET clicks = clicks - %s, users = users - 1 WHERE id = %s"
        run(text, (n_removed, upload))
    return n_removed


def _pages(
    run: Run, columns: str, rows: str, order: str, after: tuple[Any, ...]
) -> Iterator[Click]:
    """User, item and time, the last columns, of all rows, some at a time; `order` comes first."""
    text = f"SELECT {columns} {rows} ORDER BY {order} LIMIT {PAGE}"
    while page := run(text, after).fetchall():
        after = tuple(page[-1][: len(after)])
        yield from (tuple(row[-3:]) for row in page)
