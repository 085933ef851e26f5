"""Uploads: read, taken in one at a time, kept whole or not at all, listed, removed."""

import asyncio
import contextlib
import fcntl
import json
import logging
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ...data.blocks import Clicks
from ...data.preferences import ColumnWarning, DroppedRowsWarning, IgnoredColumnWarning
from ...data.read import read_as
from ..errors import RETRY, ServiceError, StoreError
from ..stores.async_store import AsyncStore
from ..stores.store import PAGE, Pair, Store
from ..types import UploadAnswer, check_name

log = logging.getLogger("pseudomallows")
SMALL = 500_000  # bytes that are read here, in less time than a process takes to start
TAKE_SECONDS = 1800.0  # to take in one upload; ten million rows take a few minutes
CLEAN_SECONDS = 5.0  # between two looks for uploads to clear away: a short query each
PART = PAGE  # clicks of one commit: so short that posted clicks get in between
SHOWN = (ColumnWarning, DroppedRowsWarning, EncodingWarning)  # warnings that the client gets


class UploadLimits(NamedTuple):
    """How much an upload may hold."""

    rows: int = 10_000_000
    users: int = 1_000_000
    items: int = 10_000  # that the model does not know: a refit grows with their square


DEFAULT_LIMITS = UploadLimits()


class UploadClicks(NamedTuple):
    """The clicks of a file, and their names as text."""

    clicks: Clicks
    users: list[str]
    items: list[str]
    warnings: list[str]

    def counts(self) -> tuple[int, int, int]:
        """Users, items and clicks."""
        return len(self.users), len(self.items), len(self.clicks.codes)


class Uploads:
    """The uploads of a service."""

    command: Sequence[str] = (sys.executable, "-m", "pseudomallows.web.jobs.child", "upload")

    def __init__(self, store: AsyncStore, address: str, limits: UploadLimits, folder: Path):
        self.store, self.address, self.limits, self._folder = store, address, limits, folder
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="uploads")
        self._cleaner = ThreadPoolExecutor(1, thread_name_prefix="cleaner")
        self._turn = asyncio.Lock()
        self._under_way: dict[Path, set[str]] = {}  # files, and users who were removed meanwhile
        self._clear_folder()
        self._running = set[int]()
        self._given_up = set[int]()  # that could not be removed, as the store had failed

    def _clear_folder(self) -> None:
        """Remove the files that a killed service has left."""
        for path in self._folder.glob("*.csv"):
            with contextlib.suppress(OSError), path.open("rb") as file:
                if _take_alone(file.fileno()):
                    path.unlink()

    @contextlib.contextmanager
    def place(self) -> Iterator[Path]:
        """Room for one more upload, from its first byte to its last click: an empty file."""
        if len(self._under_way) >= 4:  # each may fill the disk with 100 MB
            raise ServiceError(503, "too many uploads are under way: try again", RETRY)
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            handle, name = tempfile.mkstemp(".csv", dir=self._folder)  # of mode 0600
        except OSError as error:
            words = f"the service cannot keep the file while it reads it: {error.strerror}"
            raise ServiceError(507, words) from None
        path = Path(name)
        self._under_way[path] = set()
        try:
            _take_alone(handle)
            yield path
        finally:
            del self._under_way[path]
            path.unlink(missing_ok=True)
            os.close(handle)

    async def remove_user(self, user: str) -> int:
        """Remove all stored clicks of a user, and keep uploads under way from bringing them back;
        how many there were."""
        for removed in self._under_way.values():
            removed.add(user)
        running = tuple(self._running)
        return await self.store.ask(lambda store: store.remove_user(user, running))

    async def take(self, path: Path, known: Collection[str]) -> UploadAnswer:
        """Read a file and keep its clicks, whole or not at all."""
        async with self._turn:
            is_small = path.stat().st_size <= SMALL
            take = self._take_here if is_small else self._take_there
            try:
                taken = await asyncio.wait_for(take(path, known), TAKE_SECONDS)
            except TimeoutError:
                words = f"the upload took longer than {TAKE_SECONDS:g} seconds: send it in parts"
                raise ServiceError(503, words, RETRY) from None
        for words in taken.warnings:
            log.warning("upload %d: %s", taken.upload, words)
        return taken

    async def _take_here(self, path: Path, known: Collection[str]) -> UploadAnswer:
        """In a thread."""
        loop = asyncio.get_running_loop()
        clicks = await loop.run_in_executor(self._pool, read_upload, path, self.limits, known)
        counts = clicks.counts()
        async with self._begun(path, *counts[:2]) as upload:
            await self._ask(lambda store: store_parts(store, upload, clicks))
        return UploadAnswer(None, upload, *counts, clicks.warnings)

    async def _take_there(self, path: Path, known: Collection[str]) -> UploadAnswer:
        """The same, in a process of its own."""
        process = await asyncio.create_subprocess_exec(
            *self.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            request = {"path": str(path), "limits": self.limits, "store": self.address}
            said = await self._tell(process, request | {"known": list(known)})
            users, items, clicks = said["counts"]
            async with self._begun(path, users, items) as upload:
                await self._tell(process, upload)
            return UploadAnswer(None, upload, users, items, clicks, said["warnings"])
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
            await process.wait()

    async def _tell(self, process: asyncio.subprocess.Process, what: Any) -> dict[str, Any]:
        """A line to the process, and its answer."""
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(ConnectionError):
            process.stdin.write(json.dumps(what).encode() + b"\n")
            await process.stdin.drain()
        line = await process.stdout.readline()
        if not line:
            code = await process.wait()
            log.error("the process of an upload ended with code %d", code)
            raise ServiceError(503, "the upload was cut short: nothing of it was stored", RETRY)
        said: dict[str, Any] = json.loads(line)
        if "reason" in said:
            error = StoreError(said["error"], said["reason"], said["status"])
            self.store.health.failed(error)
            raise error
        if "error" in said:
            raise ServiceError(said["status"], said["error"])
        return said

    @contextlib.asynccontextmanager
    async def _begun(self, path: Path, users: int, items: int) -> Any:
        """The number of an upload that counts once all went well."""
        upload = await self._ask(lambda store: store.begin_upload(users, items))
        self._running.add(upload)
        try:
            yield upload
            # the set itself: it is read when the store lets nobody remove users any more
            removed = self._under_way[path]
            await self._ask(lambda store: store.finish_upload(upload, removed))
        except BaseException:
            self._given_up.add(upload)
            with contextlib.suppress(ServiceError):
                await self._ask(lambda store: store.remove_upload(upload, "running"))
                self._given_up.discard(upload)
            raise
        finally:
            self._running.discard(upload)

    async def _ask(self, work: Any) -> Any:
        """The store, for as long as an upload may take, and with nothing but uploads waiting."""
        return await self.store.ask(work, TAKE_SECONDS, self._pool)

    # What is there

    async def remove(self, upload: int) -> int | None:
        """Remove what an upload brought; how many clicks, None if there is no such upload."""
        return await self.store.ask(lambda store: store.remove_upload(upload))

    async def clean(self) -> None:
        """Clear away the rows of removed uploads, and uploads that nobody finishes."""
        while True:
            with contextlib.suppress(ServiceError):
                for upload in await self.store.ask(self._to_clean, pool=self._cleaner):
                    step = partial(Store.clean, upload=upload)
                    while await self.store.ask(step, pool=self._cleaner):
                        await asyncio.sleep(0.05)  # posted clicks get in between
                await self.store.ask(lambda store: store.scrub(), pool=self._cleaner)
            await asyncio.sleep(CLEAN_SECONDS)

    def _to_clean(self, store: Store) -> list[int]:
        """Uploads whose rows may go, and among them those that nobody finishes: nobody takes longer
        than TAKE_SECONDS over one."""
        now, ready = datetime.now(UTC), []
        for upload, (stage, _, began) in store.left_over().items():
            if stage == "running" and upload not in self._running:
                age = (now - datetime.fromisoformat(began)).total_seconds()
                if upload in self._given_up or age > TAKE_SECONDS:
                    store.remove_upload(upload, stage)
                    self._given_up.discard(upload)
                    log.warning("upload %d was never finished: it is removed", upload)
                    ready.append(upload)
            elif stage == "deleted":
                ready.append(upload)
        return ready

    def close(self) -> None:
        """Wait for nothing."""
        for pool in (self._pool, self._cleaner):
            pool.shutdown(wait=False, cancel_futures=True)


def _take_alone(handle: int) -> bool:
    """Lock a file until it is closed; False if another process has."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


# Files


def read_upload(path: Path, limits: UploadLimits, known: Collection[str]) -> UploadClicks:
    """The clicks of a file, or an error that says what is wrong; `known` are items of the model."""
    _check_size(limits.rows, _count_rows(path), "rows", "rows")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.simplefilter("error", IgnoredColumnWarning)
            clicks = read_as(path, may_be_one_item=True)[0]
    except (ValueError, TypeError, OSError) as error:
        raise ServiceError(422, str(error).replace(str(path), "the file")) from None
    except IgnoredColumnWarning as warning:
        column = str(warning).partition(" is ignored")[0].replace(str(path), "the file")
        problem = f"{column} says that some rows are no clicks: leave these rows out"
        raise ServiceError(422, problem) from None
    if not isinstance(clicks, Clicks):
        holds = "rankings" if clicks.kind == "rankings" else clicks.shape_words
        raise ServiceError(422, f"the file must hold clicks (columns user, item), not {holds}")
    users, items = [str(name) for name in clicks.users], [str(name) for name in clicks.items]
    _check_size(limits.rows, len(clicks.codes), "rows", "clicks")
    _check_size(limits.users, len(users), "users", "users")
    new = len(set(items).difference(known))
    _check_size(limits.items, new, "items", "items that the model does not know")
    for names, what in ((users, "a user"), (items, "an item")):
        for name in names:
            check_name(name, what)
    shown = [str(one.message) for one in caught if issubclass(one.category, SHOWN)]
    words = [text.replace(str(path), "the file")[:500] for text in shown[:10]]  # a short answer
    return UploadClicks(clicks, users, items, words)


def _count_rows(path: Path) -> int:
    """Lines after the first."""
    n_lines, last = 0, b"\n"
    with path.open("rb") as stream:
        if stream.read(2) == b"\x1f\x8b":  # unpacked, it might be of any size
            raise ServiceError(422, "the file must be text, and this is packed (gzip): unpack it")
        stream.seek(0)
        while block := stream.read(1 << 20):
            n_lines, last = n_lines + block.count(b"\n"), block[-1:]
    return max(0, n_lines + (last != b"\n") - 1)


def _check_size(most: int, size: int, option: str, what: str) -> None:
    """Refuse what is larger than the option of the service allows."""
    if size > most:
        raise ServiceError(
            413,
            f"an upload may have at most {most:,} {what}, and this has {size:,}: send it in "
            f"parts, or start the service with --upload-{option} {size}",
        )


def store_parts(store: Store, upload: int, clicks: UploadClicks) -> None:
    """Store the clicks of an upload, and leave room between the parts for clicks of others."""
    for part, times in _parts(clicks):
        started = time.monotonic()
        store.add_part(upload, part, times)
        # as long as the part took, but a slow disk is not waited for
        time.sleep(min(time.monotonic() - started, 0.1))


def _parts(clicks: UploadClicks) -> Iterator[tuple[list[Pair], list[float] | None]]:
    """User and item of each click, some at a time, and their times, if the file has them."""
    owners, codes, when = clicks.clicks.owners, clicks.clicks.codes, clicks.clicks.times
    for first in range(0, len(codes), PART):
        part = slice(first, first + PART)
        pairs = zip(owners[part].tolist(), codes[part].tolist(), strict=True)
        times = None if when is None else when[part].tolist()
        yield [(clicks.users[row], clicks.items[code]) for row, code in pairs], times
