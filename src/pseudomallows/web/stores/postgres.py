"""Clicks in PostgreSQL. This module alone imports psycopg."""

import contextlib
import os
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..errors import ServiceError, StoreError
from .store import EACH_ONCE, Click, Run, Store

CLIENT_SECONDS = 6.0  # as we count, if the server is frozen; less than the service waits for it
NAMES = {  # how PostgreSQL says what the statements of `store` leave open
    "clicks": "pseudomallows_clicks",
    "uploads": "pseudomallows_uploads",
    "uploaded": "pseudomallows_uploaded",
    "state": "pseudomallows_state",
    "user": "name",
    "serial": "BIGSERIAL PRIMARY KEY",
    "without_number": "",
    "is_one": "= ANY(%s)",
}
ROWS = "unnest(%s::text[], %s::text[], %s::float8[]) AS rows"  # one statement for any number
OPTIONS = {  # of the connection: the other end is given up after about CLIENT_SECONDS
    "connect_timeout": 5,
    "tcp_user_timeout": 6000,
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
}
AGAIN = "the store has a problem: the clicks may not be stored; try again"
FULL = "the disk of the store is full: nothing was stored; free some"


class PostgresStore(Store):
    """Tables of PostgreSQL. Safe for several threads, processes and machines."""

    where = "PostgreSQL"

    def __init__(self, address: str):
        try:
            import psycopg
        except ModuleNotFoundError as error:  # pragma: no cover
            raise ModuleNotFoundError(
                "PostgreSQL needs psycopg: pip install 'pseudomallows[postgresql]'", name=error.name
            ) from None
        self._psycopg = psycopg
        self._writer, self._reader = _Line(psycopg, address), _Line(psycopg, address)
        try:
            with self._writer.transaction(is_limited=False) as run:
                self._alone(run)
                self._prepare(run)
        except (psycopg.Error, ValueError, StoreError) as error:
            self._writer.close()
            if isinstance(error, ValueError):
                raise
            words = getattr(error, "detail", "") or _first_line(error)
            raise ValueError(f"cannot keep clicks in PostgreSQL: {words}") from None

    def _columns(self, run: Run, table: str) -> tuple[str, ...]:
        text = (
            "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 "
            "AND NOT attisdropped ORDER BY attnum"
        )
        return tuple(row[0] for row in run(text, (NAMES[table],)).fetchall())

    def _user_column(self) -> str:
        return "name"

    def _user_values(self, users: Sequence[str]) -> Sequence[Any]:
        return [users]

    def _alone(self, run: Run) -> None:
        run("SELECT pg_advisory_xact_lock(7305011)")  # any number

    @contextmanager
    def _writing(self) -> Iterator[Run]:
        with self._known_problems(), self._writer.transaction() as run:
            yield run

    @contextmanager
    def _reading(self, at_one_moment: bool = False) -> Iterator[Run]:
        with self._known_problems():
            if not at_one_moment:
                with self._reader.statements() as run:
                    yield run
                return
            with self._reader.transaction() as run:
                run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                yield run

    @contextmanager
    def _known_problems(self) -> Iterator[None]:
        try:
            yield
        except self._psycopg.DataError as error:  # a fault of what was asked, not of the store
            raise ServiceError(422, f"PostgreSQL: {_first_line(error)}") from None
        except self._psycopg.errors.DiskFull as error:
            raise StoreError(FULL, f"PostgreSQL: {_first_line(error)}", status=507) from None
        except self._psycopg.Error as error:
            raise StoreError(AGAIN, f"PostgreSQL: {_first_line(error)}") from None

    def _add_clicks(self, run: Run, clicks: Sequence[Click]) -> int:
        text = f"INSERT INTO {{clicks}} ({{user}}, item, time) SELECT * FROM {ROWS} {EACH_ONCE}"
        return int(run(text, _columns_of(clicks)).rowcount)

    def _add_uploaded(self, run: Run, upload: int, clicks: Sequence[Click]) -> None:
        text = f"INSERT INTO {{uploaded}} SELECT {int(upload)}, rows.* FROM {ROWS}"
        run(text, _columns_of(clicks))

    def close(self) -> None:
        """Let go of the connections."""
        self._writer.close()
        self._reader.close()


class _Line:
    """One connection, made when it is needed and again when it is lost, with a limit of time."""

    def __init__(self, psycopg: Any, address: str):
        self._psycopg, self._address = psycopg, address
        self._lock = threading.Lock()
        self._connection: Any = None
        self._was_cut = False

    @contextmanager
    def statements(self) -> Iterator[Run]:
        """Statements, each for itself."""
        with self._lock, self._cuts_told():
            self._ensure()
            yield self._run

    @contextmanager
    def transaction(self, is_limited: bool = True) -> Iterator[Run]:
        """Statements, all or nothing."""
        with self.statements() as run:
            if not is_limited:
                with self._connection.transaction():
                    self._connection.execute("SET LOCAL statement_timeout = 0")
                    yield self._execute
                return
            run("BEGIN")
            try:
                yield run
            except BaseException:
                with contextlib.suppress(self._psycopg.Error):  # the line may be lost
                    run("ROLLBACK")
                raise
            run("COMMIT")

    def _ensure(self) -> None:
        """A connection that works, as far as is known."""
        if self._connection is not None:
            if not self._connection.closed:
                return
            self._connection.close()
        try:
            self._connection = self._psycopg.connect(self._address, autocommit=True, **OPTIONS)
        except self._psycopg.Error as error:  # it names the server: not for everybody
            reason = "PostgreSQL cannot be reached"
            raise StoreError(AGAIN, reason, detail=f"({_first_line(error)})") from None
        self._connection.execute("SET synchronous_commit = on")
        self._connection.execute("SET statement_timeout = '4s'")  # sooner than CLIENT_SECONDS

    def _execute(self, text: str, values: Sequence[Any] = ()) -> Any:
        return self._connection.execute(text.format(**NAMES), values)

    def _run(self, text: str, values: Sequence[Any] = ()) -> Any:
        """A statement; the line to a server that does not answer is cut, as a frozen one keeps no
        limits itself."""
        timer = threading.Timer(CLIENT_SECONDS, self._cut)
        timer.daemon = True
        timer.start()
        try:
            return self._execute(text, values)
        finally:
            timer.cancel()

    def _cut(self) -> None:
        """Whoever waits for the server then gets an error."""
        self._was_cut = True
        with (
            contextlib.suppress(OSError, self._psycopg.Error),
            socket.socket(fileno=os.dup(self._connection.fileno())) as line,
        ):
            line.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def _cuts_told(self) -> Iterator[None]:
        self._was_cut = False
        try:
            yield
        except self._psycopg.Error:
            if self._was_cut:
                reason = f"PostgreSQL did not answer within {CLIENT_SECONDS:g} seconds"
                raise StoreError(AGAIN, reason) from None
            raise

    def close(self) -> None:
        """Let go of the connection."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()


def _columns_of(clicks: Sequence[Click]) -> list[list[Any]]:
    return [[click[column] for click in clicks] for column in range(3)]


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
