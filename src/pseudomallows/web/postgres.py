"""Clicks in PostgreSQL. This module alone imports psycopg."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from .errors import ServiceError
from .store import CHUNK, RETRY, Pair

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS pseudomallows_clicks (number BIGSERIAL PRIMARY KEY, "
    "name TEXT NOT NULL, item TEXT NOT NULL, UNIQUE (name, item))"
)
LOCK = 7_305_011  # held while the table is made: two processes may start at once
AGAIN = "try again"
T = TypeVar("T")


class PostgresStore:
    """A table of PostgreSQL. Safe for several threads, processes and machines."""

    def __init__(self, address: str):
        try:
            import psycopg
        except ModuleNotFoundError as error:  # pragma: no cover
            raise ModuleNotFoundError(
                "PostgreSQL needs psycopg: pip install 'pseudomallows[postgresql]'", name=error.name
            ) from None
        self._psycopg, self._address = psycopg, address
        self._lock = threading.Lock()
        try:
            self._connection = self._connect()
            with self._connection.transaction():
                self._connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
                self._connection.execute(SCHEMA)
        except psycopg.Error as error:
            words = str(error).strip().splitlines()[0]
            raise ValueError(f"cannot keep clicks in PostgreSQL: {words}") from None

    def _connect(self) -> Any:
        connection = self._psycopg.connect(self._address, autocommit=True, connect_timeout=10)
        connection.execute("SET synchronous_commit = on")
        return connection

    def _run(self, work: Callable[[Any], T], words: str) -> T:
        """Do some work with the connection; a lost one is made anew first."""
        with self._lock:
            try:
                if self._connection.closed or self._connection.broken:
                    self._connection = self._connect()
                return work(self._connection)
            except self._psycopg.errors.DiskFull:
                raise ServiceError(507, f"the disk of the store is full: {words}") from None
            except self._psycopg.Error:
                raise ServiceError(503, f"the store has a problem: {words}", RETRY) from None

    def add(self, pairs: Iterable[Pair]) -> None:
        """Keep clicks, all or none, safely on the disk when this returns."""
        rows = list(pairs)
        text = (
            "INSERT INTO pseudomallows_clicks (name, item) "
            "SELECT * FROM unnest(%s::text[], %s::text[]) ON CONFLICT DO NOTHING"
        )

        def work(connection: Any) -> None:
            with connection.transaction():
                for start in range(0, len(rows), CHUNK):
                    part = rows[start : start + CHUNK]
                    connection.execute(text, ([u for u, _ in part], [i for _, i in part]))

        self._run(work, f"nothing was stored; {AGAIN}")

    def clicks_of(self, users: Sequence[str]) -> dict[str, list[str]]:
        """The clicks of some users, oldest first."""
        found: dict[str, list[str]] = {user: [] for user in users}
        text = "SELECT name, item FROM pseudomallows_clicks WHERE name = ANY(%s) ORDER BY number"
        for user, item in self._rows(text, (list(found),)):
            found[user].append(item)
        return found

    def all_clicks(self) -> Iterator[Pair]:
        """Every click, oldest first."""
        last = 0
        text = (
            "SELECT number, name, item FROM pseudomallows_clicks WHERE number > %s "
            "ORDER BY number LIMIT %s"
        )
        while True:
            rows = self._rows(text, (last, CHUNK))
            if not rows:
                return
            last = rows[-1][0]
            yield from ((user, item) for _, user, item in rows)

    def _rows(self, text: str, values: tuple[Any, ...] = ()) -> list[Any]:
        return self._run(lambda connection: connection.execute(text, values).fetchall(), AGAIN)

    def n_clicks(self) -> int:
        """How many clicks there are."""
        return int(self._rows("SELECT count(*) FROM pseudomallows_clicks")[0][0])

    def close(self) -> None:
        """Let go of the connection."""
        with self._lock:
            self._connection.close()
