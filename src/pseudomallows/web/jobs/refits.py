"""Refits, each in a process of its own; one at a time."""

import asyncio
import contextlib
import json
import logging
import secrets
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import ServiceError
from ..types import JobAnswer

log = logging.getLogger("pseudomallows")
PATIENCE = 3.0  # seconds to end when asked to, before it is made to: chains take up to two
Saved = Callable[[int], Awaitable[None]]


@dataclass(eq=False)
class Refit:
    """One refit, a job to the client, and how far it is."""

    name: str
    process: asyncio.subprocess.Process
    state: str = "running"
    done: int = 0
    total: int = 0
    error: str | None = None
    how: str | None = None
    started: float = field(default_factory=time.monotonic)
    ended: float | None = None
    saved: int | None = None

    def answer(self) -> JobAnswer:
        """For the client."""
        seconds = (self.ended or time.monotonic()) - self.started
        state: Any = self.state
        how: Any = self.how
        progress = (self.done, self.total, round(seconds, 3))
        return JobAnswer(self.name, state, *progress, self.error, how)


class Refits:
    """The refits of a service. `saved` is called with the number of each new version."""

    command: Sequence[str] = (sys.executable, "-m", "pseudomallows.web.jobs.child", "refit")

    def __init__(self, saved: Saved):
        self._saved, self.jobs = saved, dict[str, Refit]()
        self._watchers = set[asyncio.Task[None]]()
        self._starting = False

    @property
    def is_busy(self) -> bool:
        """Does a job run?"""
        return self._starting or any(job.state == "running" for job in self.jobs.values())

    def get(self, name: str) -> Refit:
        """One job."""
        if name not in self.jobs:
            raise ServiceError(404, f"there is no job {name[:40]!r}")
        return self.jobs[name]

    def check_free(self) -> None:
        """Refuse a second job."""
        if self.is_busy:
            raise ServiceError(409, "a refit is running: wait for it, or cancel it")

    async def start(self, request: dict[str, Any]) -> Refit:
        """Start a refit; see `child` for the request."""
        self.check_free()
        self._starting = True
        try:
            process = await asyncio.create_subprocess_exec(
                *self.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for the service, which then ends this
            )
            job = Refit(secrets.token_hex(8), process)
            self.jobs[job.name] = job
        finally:
            self._starting = False
        assert process.stdin is not None
        with contextlib.suppress(ConnectionError):
            process.stdin.write(json.dumps(request).encode() + b"\n")
            await process.stdin.drain()
        watcher = asyncio.create_task(self._watch(job))
        self._watchers.add(watcher)
        watcher.add_done_callback(self._watchers.discard)
        self._forget()
        return job

    def _forget(self) -> None:
        """Drop the oldest jobs that have ended."""
        ended = [name for name, job in self.jobs.items() if job.state != "running"]
        for name in ended[: max(0, len(self.jobs) - 100)]:  # a client that asks later gets 404
            del self.jobs[name]

    async def _watch(self, job: Refit) -> None:
        """Follow a job to its end; `done` only once the new version answers."""
        process = job.process
        assert process.stdout is not None
        assert process.stderr is not None
        words = asyncio.create_task(process.stderr.read())
        state = "failed"
        try:
            async for line in process.stdout:
                self._hear(job, line)
            code = await process.wait()
            said = (await words).decode(errors="replace").strip()
            if job.state == "cancelled":
                state = "cancelled"
            elif code == 0 and job.saved is not None:
                await self._saved(job.saved)
                state = "done"
            else:
                ended = f"by signal {-code}" if code < 0 else f"with code {code}"
                why = f"the process of the refit ended {ended}; the old model serves on"
                job.error = job.error or why
                log.error("refit %s ended %s: %s", job.name, ended, said[-2000:])
        except ServiceError as error:
            job.error = error.words
            log.warning("refit %s: %s", job.name, error.words)
        except Exception:
            job.error = job.error or "the new version could not be taken into use; see the log"
            log.exception("refit %s", job.name)
        finally:
            job.state, job.ended = state, time.monotonic()
            if state == "done":
                job.done = job.total = max(job.total, 1)

    def _hear(self, job: Refit, line: bytes) -> None:
        """Note what the process says."""
        try:
            said = json.loads(line)
            job.done, job.total = int(said.get("done", job.done)), int(said.get("total", job.total))
            job.error, job.saved = said.get("error", job.error), said.get("saved", job.saved)
            job.how = said.get("how", job.how)
        except (ValueError, AttributeError, TypeError):
            log.warning("refit %s said %r", job.name, line[:200])

    async def cancel(self, name: str) -> Refit:
        """End a job; one that has ended stays as it is."""
        job = self.get(name)
        if job.state == "running":
            job.state, job.error = "cancelled", None
            await _end(job.process)
            job.ended = time.monotonic()
        return job

    async def close(self) -> None:
        """End what runs."""
        for name in list(self.jobs):
            await self.cancel(name)
        if self._watchers:
            await asyncio.wait(self._watchers, timeout=PATIENCE)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Ask it to end; if it does not, make it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(process.wait(), PATIENCE)
            return
