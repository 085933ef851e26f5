"""A store, asked by the requests: a queue for clicks, limits of time, and how the store is."""

import asyncio
import contextlib
import itertools
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import NamedTuple

from ..errors import RETRY, ServiceError, StoreError
from .store import Store, T

log = logging.getLogger("pseudomallows")
PATIENCE = 10.0  # seconds for an answer of the store: more than the 8 and 6 of the stores' own
# seconds, for one that is known to be broken: requests do not pile up, and a good one answers in
# some 0.01 (docs/service.md)
BRIEF = 1.0
CHECK_SECONDS = 2.0  # between two looks at the store: so old may the answer of /healthz be
LOG_SECONDS = 300.0  # before the same problem is logged again: 12 lines an hour
UNREAD = "the store has a problem: the clicks may or may not have been stored; try again"
LATE = "the store does not answer: the clicks may not be stored; try again"


class Health:
    """What is wrong with the store, as far as is known; None while all is well."""

    def __init__(self) -> None:
        self.problem: str | None = None
        self._lasts = False
        self._logged: dict[str, float] = {}

    def failed(self, error: StoreError) -> None:
        """Note a problem; it is logged once, not with each request."""
        now = time.monotonic()
        if now - self._logged.get(error.reason, -LOG_SECONDS) >= LOG_SECONDS:
            log.error("clicks cannot be kept: %s %s", error.reason, error.detail)
            self._logged[error.reason] = now
            for old in list(self._logged)[:-20]:
                del self._logged[old]
        if not self._lasts:
            self.problem, self._lasts = error.reason, error.lasts

    def good(self) -> None:
        """Something was written well."""
        if self.problem is not None and not self._lasts:
            log.warning("clicks can be kept again")
            self.problem = None
            self._logged.clear()  # the next problem is another one, even if it is the same


class PostedClicks(NamedTuple):
    """Clicks of a user to store, and where the request waits for all clicks of the user."""

    user: str
    clicks: list[tuple[str, str, float]]
    future: Future[list[str]]


class AsyncStore:
    """A store (`blocking`) for an event loop.

    One thread stores what many requests bring, all that waits in one commit; others read.
    """

    def __init__(self, store: Store):
        self.blocking, self.health = store, Health()
        self._queue: queue.SimpleQueue[PostedClicks | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="store", daemon=True)
        self._thread.start()
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="reader")
        self._checker = ThreadPoolExecutor(1, thread_name_prefix="checker")

    async def add(
        self, user: str, items: Sequence[str], times: Sequence[float] | None = None
    ) -> list[str]:
        """Store clicks of a user, by default of now, in the order given; all stored clicks of the
        user, once they are on the disk."""
        if times is None:
            now = time.time()
            times = [now + 1e-6 * place for place in range(len(items))]
        if self._queue.qsize() >= 10_000:  # some seconds of work
            raise ServiceError(503, "too many clicks are waiting for the store: try again", RETRY)
        clicks = [(user, item, time) for item, time in zip(items, times, strict=True)]
        task = PostedClicks(user, clicks, Future())
        self._queue.put(task)
        try:
            async with asyncio.timeout(PATIENCE):
                return await asyncio.wrap_future(task.future)
        except TimeoutError:
            raise self._late(PATIENCE) from None

    async def ask(
        self,
        work: Callable[[Store], T],
        seconds: float | None = None,
        pool: Executor | None = None,
    ) -> T:
        """Some work with the store, in a thread; an error if it takes too long."""
        if seconds is None:
            seconds = PATIENCE if self.health.problem is None else BRIEF
        loop = asyncio.get_running_loop()
        answer = loop.run_in_executor(pool or self._readers, work, self.blocking)
        try:
            async with asyncio.timeout(seconds):  # `wait_for` may swallow that a task is to end
                return await answer
        except TimeoutError:
            raise self._late(seconds) from None
        except StoreError as error:
            self.health.failed(error)
            raise

    def _late(self, seconds: float) -> StoreError:
        error = StoreError(LATE, f"the store did not answer within {seconds:g} seconds")
        if self.health.problem is None:
            self.health.failed(error)
        return error

    async def watch(self) -> None:
        """Look at the store now and then: /healthz says what was seen last, and never waits."""
        loop = asyncio.get_running_loop()
        while True:
            looking = loop.run_in_executor(self._checker, self.look)
            await asyncio.wait([looking], timeout=PATIENCE / 2)
            if not looking.done():
                self._late(PATIENCE / 2)
                with contextlib.suppress(Exception):
                    await looking
            await asyncio.sleep(CHECK_SECONDS)

    def look(self) -> None:
        """Note whether clicks can be kept."""
        is_broken = self.health.problem is not None
        try:
            self.blocking.check(writing=is_broken)
        except StoreError as error:
            self.health.failed(error)
        except Exception:
            log.exception("while the store was looked at")
        else:
            if is_broken:
                self.health.good()

    # The thread

    def _run(self) -> None:
        while (batch := self._next_batch()) is not None:
            # the clients of the others have gone, or had an error
            waited_for = [task for task in batch if task.future.set_running_or_notify_cancel()]
            try:
                answers = self._store_batch(waited_for)
            except Exception as error:
                told = error
                if isinstance(error, StoreError):
                    self.health.failed(error)
                elif not isinstance(error, ServiceError):
                    log.exception("while clicks were stored")
                    told = StoreError("the store has a problem; see the log", repr(error))
                for task in waited_for:
                    task.future.set_exception(told)
            else:
                self.health.good()
                for task in waited_for:
                    task.future.set_result(answers[task.user])

    def _next_batch(self) -> list[PostedClicks] | None:
        first = self._queue.get()
        if first is None:
            return None
        batch, n_pairs = [first], len(first.clicks)
        while len(batch) < 500 and n_pairs < 20_000:  # so no commit takes long
            try:
                task = self._queue.get_nowait()
            except queue.Empty:
                break
            if task is None:
                self._queue.put(None)
                break
            batch.append(task)
            n_pairs += len(task.clicks)
        return batch

    def _store_batch(self, batch: list[PostedClicks]) -> dict[str, list[str]]:
        clicks = list(itertools.chain.from_iterable(task.clicks for task in batch))
        if len(batch) > 1:
            # sorted: two processes take the rows in the same order, and never wait in a circle
            clicks = sorted(clicks)
        self.blocking.add([click[:2] for click in clicks], [click[2] for click in clicks])
        try:
            return self.blocking.clicks_of([task.user for task in batch])
        except StoreError as error:
            error.words = UNREAD
            raise

    def close(self) -> None:
        """Store what waits, then stop."""
        self._queue.put(None)
        self._thread.join(timeout=60)
        for pool in (self._readers, self._checker):
            pool.shutdown(wait=False, cancel_futures=True)
