"""Uploads: taken in one at a time, kept whole or not at all, listed, removed."""

import asyncio
import contextlib
import json
import logging
import math
import os
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import RETRY, ServiceError, StoreError
from ..stores.async_store import AsyncStore
from .upload_file import UploadLimits, read_upload, store_parts

log = logging.getLogger("pseudomallows")
MAX_UPLOADS = 4  # under way at once, those that wait included: each may fill the disk with 100 MB
SMALL = 500_000  # bytes that are read here, in less time than a process takes to start
TAKE_SECONDS = 1800.0  # to take in one upload; ten million rows take a few minutes
STALE_SECONDS = 60.0  # without any progress: an upload that nobody finishes; parts take far less
CLEAN_SECONDS = 5.0  # between two looks for uploads to clear away
PAUSE = 0.05  # seconds between two steps of clearing away, for posted clicks


class Uploaded(NamedTuple):
    """What an upload brought, and its number."""

    upload: int
    users: int
    items: int
    clicks: int
    warnings: list[str]


class Uploads:
    """The uploads of a service."""

    command: Sequence[str] = (sys.executable, "-m", "pseudomallows.web.jobs.upload_process")

    def __init__(self, store: AsyncStore, address: str, limits: UploadLimits, folder: Path):
        self.store, self.address, self.limits, self._folder = store, address, limits, folder
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="uploads")
        self._cleaner = ThreadPoolExecutor(1, thread_name_prefix="cleaner")
        self._turn = asyncio.Lock()
        self._under_way: dict[Path, set[str]] = {}  # files, and users who were removed meanwhile
        self._clear_folder()
        self._mine = set[int]()
        self._given_up = set[int]()  # that could not be removed, as the store had failed
        self._seen: dict[int, tuple[int, float]] = {}  # rows of unfinished ones, and since when

    def _clear_folder(self) -> None:
        """Remove the files that a killed service has left."""
        for path in self._folder.glob("*.csv"):
            with contextlib.suppress(OSError), path.open("rb") as file:
                if _take_alone(file.fileno()):
                    path.unlink()

    @contextlib.contextmanager
    def place(self) -> Iterator[Path]:
        """Room for one more upload, from its first byte to its last click: an empty file."""
        if len(self._under_way) >= MAX_UPLOADS:
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
        mine = tuple(self._mine)
        return await self.store.ask(lambda store: store.remove_user(user, mine))

    async def take(self, path: Path, known: Collection[str]) -> Uploaded:
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

    async def _take_here(self, path: Path, known: Collection[str]) -> Uploaded:
        """In a thread."""
        loop = asyncio.get_running_loop()
        clicks = await loop.run_in_executor(self._pool, read_upload, path, self.limits, known)
        counts = clicks.counts()
        async with self._begun(path, *counts[:2]) as upload:
            await self._ask(lambda store: store_parts(store, upload, clicks))
        return Uploaded(upload, *counts, clicks.warnings)

    async def _take_there(self, path: Path, known: Collection[str]) -> Uploaded:
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
            return Uploaded(upload, users, items, clicks, said["warnings"])
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
        self._mine.add(upload)
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
            self._mine.discard(upload)

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
                    step = partial(_clean_step, upload)
                    while await self.store.ask(step, pool=self._cleaner):
                        await asyncio.sleep(PAUSE)
                await self.store.ask(lambda store: store.scrub(), pool=self._cleaner)
            await asyncio.sleep(CLEAN_SECONDS)

    def _to_clean(self, store: Any) -> list[int]:
        """Uploads whose rows may go, and among them those that nobody finishes."""
        now, unfinished = time.monotonic(), store.left_over()
        ready = [upload for upload, (stage, _) in unfinished.items() if stage == "deleted"]
        seen = {}
        for upload, (stage, rows) in unfinished.items():
            if stage != "running" or upload in self._mine:
                continue
            seen[upload] = self._seen.get(upload, (rows, now))
            if upload in self._given_up:
                seen[upload] = rows, -math.inf
            if seen[upload][0] != rows:
                seen[upload] = rows, now
            elif now - seen[upload][1] >= STALE_SECONDS:
                store.remove_upload(upload, "running")
                self._given_up.discard(upload)
                log.warning("upload %d was never finished: it is removed", upload)
                ready.append(upload)
        self._seen = seen
        return ready

    def close(self) -> None:
        """Wait for nothing."""
        for pool in (self._pool, self._cleaner):
            pool.shutdown(wait=False, cancel_futures=True)


def _take_alone(handle: int) -> bool:
    """Lock a file until it is closed; False if another process has."""
    try:
        import fcntl
    except ModuleNotFoundError:  # pragma: no cover (Windows removes no file that is open)
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _clean_step(upload: int, store: Any) -> bool:
    is_more: bool = store.clean(upload)
    return is_more
