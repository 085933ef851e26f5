"""Where new clicks are kept: SQLite, or PostgreSQL for several processes.

A click that was acknowledged is on the disk: :meth:`Store.add` returns after the commit, and both
stores wait for the disk with each commit. The order of clicks is that of their numbers, which the
store gives; no clock is asked.
"""

import asyncio
import itertools
import queue
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from .errors import ServiceError

MAX_BATCH, MAX_WAITING, CHUNK = 500, 10_000, 5_000
BUSY_SECONDS = 30.0
Pair = tuple[str, str]  # user, item


class Store(Protocol):
    """Clicks of users, each once, in the order in which they came."""

    def add(self, pairs: Iterable[Pair]) -> None:
        """Keep clicks, all or none, safely on the disk when this returns."""
        ...  # pragma: no cover

    def clicks_of(self, users: Sequence[str]) -> dict[str, list[str]]:
        """The clicks of some users, oldest first."""
        ...  # pragma: no cover

    def all_clicks(self) -> Iterator[Pair]:
        """Every click, oldest first."""
        ...  # pragma: no cover

    def n_clicks(self) -> int:
        """How many clicks there are."""
        ...  # pragma: no cover

    def close(self) -> None:
        """Let go of files and connections."""
        ...  # pragma: no cover


def open_store(address: str) -> Store:
    """A file of SQLite, or PostgreSQL for an address that starts with ``postgresql://``.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = open_store(str(pathlib.Path(folder) / "clicks.sqlite"))
    ...     store.add([("ann", "tea"), ("ann", "rum"), ("ann", "tea")])
    ...     store.clicks_of(["ann"])
    ...     store.close()
    {'ann': ['tea', 'rum']}
    """
    if address.startswith(("postgresql://", "postgres://")):
        from .postgres import PostgresStore

        return PostgresStore(address)
    return SqliteStore(address)


class SqliteStore:
    """One file. Safe for several threads and, on one machine, for several processes."""

    def __init__(self, path: str, max_pages: int | None = None):
        self._path = path
        self._lock = threading.Lock()  # of the one connection
        try:
            self._connection = sqlite3.connect(
                path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            if max_pages is not None:
                self._connection.execute(f"PRAGMA max_page_count = {int(max_pages)}")
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS clicks (number INTEGER PRIMARY KEY AUTOINCREMENT, "
                "user TEXT NOT NULL, item TEXT NOT NULL, UNIQUE (user, item))"
            )
        except sqlite3.Error as error:
            raise ValueError(f"cannot keep clicks in {path}: {error}") from None

    def add(self, pairs: Iterable[Pair]) -> None:
        """Keep clicks, all or none, safely on the disk when this returns."""
        with self._lock:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                self._connection.executemany(
                    "INSERT OR IGNORE INTO clicks (user, item) VALUES (?, ?)", pairs
                )
                self._connection.execute("COMMIT")
            except BaseException as error:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                if isinstance(error, sqlite3.Error):
                    raise _sqlite_problem(error) from None
                raise

    def clicks_of(self, users: Sequence[str]) -> dict[str, list[str]]:
        """The clicks of some users, oldest first."""
        found: dict[str, list[str]] = {}
        text = "SELECT item FROM clicks WHERE user = ? ORDER BY number"
        with self._lock:
            try:
                for user in users:
                    if user not in found:
                        rows = self._connection.execute(text, (user,))
                        found[user] = [item for (item,) in rows]
            except sqlite3.Error as error:
                raise _sqlite_problem(error) from None
        return found

    def all_clicks(self) -> Iterator[Pair]:
        """Every click, oldest first."""
        last = 0
        text = "SELECT number, user, item FROM clicks WHERE number > ? ORDER BY number LIMIT ?"
        while True:
            with self._lock:
                rows = self._connection.execute(text, (last, CHUNK)).fetchall()
            if not rows:
                return
            last = rows[-1][0]
            yield from ((user, item) for _, user, item in rows)

    def n_clicks(self) -> int:
        """How many clicks there are."""
        with self._lock:
            return int(self._connection.execute("SELECT count(*) FROM clicks").fetchone()[0])

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()


def _sqlite_problem(error: sqlite3.Error) -> ServiceError:
    words = str(error)
    if "full" in words:
        return ServiceError(507, "the disk of the store is full: nothing was stored; free some")
    if "locked" in words or "busy" in words:
        return ServiceError(503, "the store is busy: nothing was stored; try again", RETRY)
    return ServiceError(503, "the store has a problem: nothing was stored; see the log", RETRY)


RETRY = {"Retry-After": "1"}


class Task:
    """Clicks to store, and who waits for it; with a user, all clicks of the user are the answer."""

    def __init__(self, pairs: Sequence[Pair], user: str | None):
        self.pairs, self.user = pairs, user
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[list[str]] = self.loop.create_future()


class Writer:
    """One thread that stores what many requests bring, all that waits in one commit."""

    def __init__(self, store: Store):
        self.store = store
        self._queue: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="store", daemon=True)
        self._thread.start()

    async def add(self, user: str, items: Sequence[str]) -> list[str]:
        """Store clicks of a user; all stored clicks of the user, once they are on the disk."""
        return await self._put(Task([(user, item) for item in items], user))

    async def add_many(self, pairs: Sequence[Pair]) -> None:
        """Store clicks of many users, all or none."""
        await self._put(Task(pairs, None))

    async def _put(self, task: Task) -> list[str]:
        if self._queue.qsize() >= MAX_WAITING:
            raise ServiceError(503, "too many clicks wait for the store: try again", RETRY)
        self._queue.put(task)
        return await task.future

    def _run(self) -> None:
        while True:
            batch = self._next_batch()
            if batch is None:
                return
            answers: Any
            try:
                answers = self._store_batch(batch)
            except ServiceError as error:
                answers = error
            except Exception:
                answers = ServiceError(503, "the store has a problem; see the log", RETRY)
            for loop in {task.loop for task in batch}:
                mine = [task for task in batch if task.loop is loop]
                loop.call_soon_threadsafe(_answer, mine, answers)

    def _next_batch(self) -> list[Task] | None:
        first = self._queue.get()
        if first is None:
            return None
        batch = [first]
        while len(batch) < MAX_BATCH:
            try:
                task = self._queue.get_nowait()
            except queue.Empty:
                break
            if task is None:
                self._queue.put(None)
                break
            batch.append(task)
        return batch

    def _store_batch(self, batch: list[Task]) -> dict[str, list[str]]:
        # sorted: two processes then take the rows in the same order, and never wait in a circle
        pairs = sorted(set(itertools.chain.from_iterable(task.pairs for task in batch)))
        self.store.add(pairs if len(batch) > 1 else dict.fromkeys(batch[0].pairs))
        return self.store.clicks_of([task.user for task in batch if task.user is not None])

    def close(self) -> None:
        """Store what waits, then stop."""
        self._queue.put(None)
        self._thread.join(timeout=60)


def _answer(tasks: list[Task], answers: dict[str, list[str]] | ServiceError) -> None:
    for task in tasks:
        if task.future.done():  # the client has gone
            continue
        if isinstance(answers, ServiceError):
            task.future.set_exception(answers)
        else:
            task.future.set_result(answers.get(task.user or "", []))
