"""Clicks in a file of SQLite, for services on one machine."""

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ..errors import StoreError
from .store import EACH_ONCE, Click, Run, Store

BUSY_SECONDS = 8.0  # to wait for another process; less than the service waits for the store
NAMES = {  # how SQLite says what the statements of `store` leave open
    "clicks": "clicks",
    "uploads": "uploads",
    "uploaded": "uploaded",
    "state": "state",
    "user": "user",
    "serial": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "without_number": "WITHOUT ROWID",
    "is_one": "= %s",
}
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)  # a restart with a good copy mends it
AGAIN = "the store is busy: nothing was stored; try again"
FULL = "the disk of the store is full: nothing was stored; free some"
PROBLEM = "the store has a problem: nothing was stored; see the log"
GONE = "the file of the store (or its -wal file) was deleted or replaced"


class SqliteStore(Store):
    """One file. Safe for several threads and, on one machine, for several processes."""

    def __init__(self, path: str, max_pages: int | None = None):
        self.where, self._path = path, os.path.abspath(path)
        self._writer_lock, self._reader_lock = threading.Lock(), threading.Lock()
        opened = []
        try:
            with suppress(FileExistsError):  # its -wal gets the same mode
                os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
            opened.append(_connect(path))
            if max_pages is not None:
                opened[0].execute(f"PRAGMA max_page_count = {int(max_pages)}")
            with _transaction(opened[0], "BEGIN IMMEDIATE") as run:
                self._refuse_others(run)
                self._prepare(run)
            opened.append(_connect(path))
            opened[1].execute("PRAGMA query_only = 1")
            opened[1].execute("SELECT clicks FROM state").fetchone()
            self._files = self._files_now()
        except (sqlite3.Error, OSError, ValueError) as error:
            for connection in opened:
                connection.close()
            if isinstance(error, ValueError):
                raise
            raise ValueError(f"cannot keep clicks in {path}: {error}") from None
        self._writer, self._reader = opened

    def be_lazy(self) -> None:
        """Do not wait for the disk at each commit: the last one of an upload is another's."""
        self._writer.execute("PRAGMA synchronous = NORMAL")

    def _refuse_others(self, run: Run) -> None:
        """A database that is none of ours is left as it is."""
        names = [name for (name,) in run("SELECT name FROM sqlite_master WHERE type = 'table'")]
        others = [name for name in names if name not in NAMES and not name.startswith("sqlite_")]
        if others and "clicks" not in names:
            raise ValueError(
                f"cannot keep clicks in {self.where}: it is a database of something else (it has a "
                f"table {others[0]!r}); give another --store"
            )

    def _columns(self, run: Run, table: str) -> tuple[str, ...]:
        return tuple(row[1] for row in run(f"PRAGMA table_info({table})").fetchall())

    def _user_column(self) -> str:
        return "user"

    @contextmanager
    def _writing(self) -> Iterator[Run]:
        with self._writer_lock, _known_problems():
            with _transaction(self._writer, "BEGIN IMMEDIATE") as run:
                yield run
                self._check_files("nothing was stored")
            self._check_files("this may or may not have been stored")

    @contextmanager
    def _reading(self, at_one_moment: bool = False) -> Iterator[Run]:
        with self._reader_lock, _known_problems():
            self._check_files("nothing can be read")
            if not at_one_moment:
                yield _runner(self._reader)
                return
            with _transaction(self._reader, "BEGIN") as run:
                yield run

    def scrub(self) -> None:
        """Empty the log, unless somebody reads there: then once again, later."""
        if not self._has_traces:
            return
        with self._writer_lock, self._reader_lock, suppress(sqlite3.Error):
            self._writer.execute("PRAGMA busy_timeout = 0")  # clicks do not wait for it
            try:
                is_busy = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
                self._has_traces = bool(is_busy)
            finally:
                self._writer.execute(f"PRAGMA busy_timeout = {int(1000 * BUSY_SECONDS)}")

    def _add_clicks(self, run: Run, clicks: Sequence[Click]) -> int:
        text = f"INSERT INTO clicks (user, item, time) VALUES (?, ?, ?) {EACH_ONCE.format(**NAMES)}"
        return int(self._writer.executemany(text, clicks).rowcount) if clicks else 0

    def _add_uploaded(self, run: Run, upload: int, clicks: Sequence[Click]) -> None:
        rows = ((upload, *click) for click in clicks)
        self._writer.executemany("INSERT INTO uploaded VALUES (?, ?, ?, ?)", rows)

    # The file itself

    def _files_now(self) -> list[tuple[int, int]]:
        """Which files are at the path of the store and of its log."""
        files = [os.stat(path) for path in (self._path, f"{self._path}-wal")]
        return [(file.st_dev, file.st_ino) for file in files]

    def _check_files(self, outcome: str) -> None:
        """Refuse a file that is not there any more: what is written to it is not kept."""
        try:
            is_same = self._files_now() == self._files
        except OSError:
            is_same = False
        if not is_same:
            reason = f"{GONE}: put it back, or start the service again"
            raise StoreError(f"{GONE}: {outcome}", reason, detail=f"({self._path})")

    def close(self) -> None:
        """Let go of the file."""
        with self._writer_lock, self._reader_lock:
            self._reader.close()
            self._writer.close()


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA secure_delete = ON")
    return connection


def _runner(connection: sqlite3.Connection) -> Run:
    def run(text: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        return connection.execute(text.format(**NAMES).replace("%s", "?"), values)

    return run


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[Run]:
    connection.execute(begin)
    try:
        yield _runner(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def _known_problems() -> Iterator[None]:
    """Errors of SQLite become errors for the client and for the log."""
    try:
        yield
    except sqlite3.Error as error:
        raise _problem(error) from None


def _problem(error: sqlite3.Error) -> StoreError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    reason = f"SQLite: {error}"
    if code == sqlite3.SQLITE_FULL:
        return StoreError(FULL, reason, status=507)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreError(AGAIN, reason)
    if code in DAMAGED:
        reason += "; put a good copy in its place and start the service again"
    return StoreError(PROBLEM, reason, lasts=code in DAMAGED)
