"""The state behind the service: the model that answers, the store, the jobs."""

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from .._version import __version__
from .errors import RETRY, ServiceError, StoreError
from .jobs.refits import Refit, Refits
from .jobs.upload_file import DEFAULT_LIMITS, UploadLimits
from .jobs.uploads import Uploaded, Uploads
from .metrics import Metrics
from .models.model import Model
from .models.versions import Versions
from .stores.async_store import BRIEF, AsyncStore
from .stores.open import open_store
from .types import ModelAnswer, check_name

log = logging.getLogger("pseudomallows")
WATCH_SECONDS = 2.0  # between two looks for a version that another process has made
T = TypeVar("T")


@dataclass(frozen=True)
class Limits:
    """What is refused, and how long a client may take."""

    body: int = 1_000_000  # bytes; 10,000 clicks take less
    upload: int = 100_000_000  # bytes, which wait on the disk
    seconds: float = 30.0  # for the body of a request; an upload has ten times as long
    rate: float = 0.0  # requests a second and client; 0: any number
    waiting: int = 64  # slow answers that may wait, for two threads
    uploads: UploadLimits = DEFAULT_LIMITS


class Service:
    """A model that answers, a store that keeps clicks, and the jobs beside them."""

    def __init__(
        self,
        model: str | os.PathLike[str],
        store: str,
        token: str | None = None,
        limits: Limits | None = None,
        refit_every: float | None = None,
    ):
        self.token, self.limits = token, limits or Limits()
        self.versions, self.address, self.refit_every = Versions(model), store, refit_every
        self.metrics = Metrics()
        newest = self.versions.newest()
        assert newest is not None
        self.model = Model(newest[1], newest[0])
        self._left = self.model.prepare()
        self._seen = max([newest[0], *self.versions.numbers()])
        self.store = AsyncStore(open_store(store))
        self.uploads = Uploads(self.store, store, self.limits.uploads)
        self.refits = Refits(self._take_version)
        self._slow = ThreadPoolExecutor(2, thread_name_prefix="slow")
        self._behind = ThreadPoolExecutor(1, thread_name_prefix="behind")
        self._waiting = self._n_stored = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._turn = asyncio.Lock()
        self._closed = False

    # Beginning and end

    async def start(self) -> None:
        """Begin what goes on beside the requests."""
        beside = [self._watch_versions(), self.store.watch(), self.uploads.clean()]
        if self.refit_every:
            beside.append(self._refit_now_and_then(self.refit_every))
        self._tasks += [asyncio.create_task(work) for work in beside]
        self._behind.submit(self._make_tables, self.model)

    async def stop(self) -> None:
        """End jobs, store what waits, close."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.refits.close()
        for pool in (self._slow, self._behind):
            pool.shutdown(wait=False, cancel_futures=True)
        self.uploads.close()
        await asyncio.get_running_loop().run_in_executor(None, self._close_store)

    def _close_store(self) -> None:
        self.store.close()
        self.store.blocking.close()

    def _make_tables(self, model: Model) -> None:
        """The tables that were not made before the port opened."""
        left = self._left
        while left and not self._closed and self.model is model:
            model.prepare_size(left[0])
            left.pop(0)

    # Versions

    async def _take_version(self, number: int) -> None:
        """Load a version, make it ready, then answer from it."""
        async with self._turn:
            if number <= self.model.number:
                return
            loop = asyncio.get_running_loop()
            model, left = await loop.run_in_executor(self._behind, self._load, number)
            self.model, self._left = model, left
            self._seen = max(self._seen, number)
            log.info("version %d answers now", number)
            self._behind.submit(self._make_tables, model)

    def _load(self, number: int) -> tuple[Model, list[int]]:
        model = Model(self.versions.load(number), number)
        return model, model.prepare()

    async def _watch_versions(self) -> None:
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            try:
                fresh = [n for n in self.versions.numbers() if n > self._seen]
                for number in reversed(fresh):
                    self._seen = max(self._seen, number)
                    await self._take_version(number)
                    break
            except (ValueError, OSError) as error:
                log.warning("a new version is skipped: %s", error)

    async def _refit_now_and_then(self, seconds: float) -> None:
        """Every so many seconds, if clicks were added or removed since the last refit."""
        last = 0
        while True:
            await asyncio.sleep(seconds)
            try:
                _, changes = await self.store.ask(lambda store: store.counts())
                settings = self.model.posterior.settings
                known = settings.get("stored_changes", settings.get("stored_clicks", 0))
                if changes not in (known, last) and not self.refits.is_busy:
                    await self.refit(None, None)
                    last = changes
            except Exception as error:
                log.warning("no refit: %s", error)

    async def refit(self, clusters: int | str | None, method: str | None) -> Refit:
        """Start a refit from the newest version and the store."""
        await self.store.ask(lambda store: store.check())  # a store that is gone has no clicks
        request = {
            "model": str(self.versions.model.resolve()),
            "number": self.model.number,
            "store": self.address,
            "clusters": clusters,
            "method": method,
        }
        return await self.refits.start(request)

    # Clicks

    async def stored_clicks(self, user: str) -> list[str]:
        """What the store has of a user."""
        clicks = await self.store.ask(lambda store: store.clicks_of([user]))
        return clicks[user]

    async def add_clicks(self, user: str, items: Sequence[str]) -> list[str]:
        """Store clicks; all clicks of the user, once they are safe."""
        check_name(user, "a user")
        self.model.codes_of(items)  # an unknown item is refused
        stored = await self.store.add(user, items)
        return self.all_clicks(user, stored)

    def all_clicks(self, user: str, stored: Sequence[str]) -> list[str]:
        """The clicks of the fit and those of the store, each once."""
        return list(dict.fromkeys([*self.model.clicks_of(user), *stored]))

    async def upload(self, path: Path) -> Uploaded:
        """Store the clicks of a file, whole or not at all."""
        return await self.uploads.take(path, self.model.codes.keys())

    async def remove_user(self, user: str) -> int:
        """Remove all stored clicks of a user; how many there were."""
        check_name(user, "a user")
        n_removed = await self.store.ask(lambda store: store.remove_user(user))
        if not n_removed:
            more = "; the model's own clicks stay" if user in self.model.rows else ""
            raise ServiceError(404, f"no clicks are stored of a user {user[:80]!r}{more}")
        return n_removed

    async def remove_upload(self, name: str) -> int:
        """Remove what an upload brought; how many clicks."""
        is_number = name.isascii() and name.isdecimal() and len(name) < 18
        n_removed = await self.uploads.remove(int(name)) if is_number else None
        if n_removed is None:
            raise ServiceError(404, f"there is no upload {name[:40]!r}: GET /uploads lists them")
        return n_removed

    # Answers

    async def slow(self, work: Callable[[], T]) -> T:
        """Work that would hold up the others, in a thread; not too much of it."""
        if self._waiting >= self.limits.waiting:
            raise ServiceError(503, "too many long answers are asked for: try again", RETRY)
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._slow, work)
        finally:
            self._waiting -= 1

    async def recommend(self, names: Sequence[str], k: int) -> bytes:
        """The answer of /recommend."""
        model = self.model
        answer = model.quick_answer(names, k)
        if answer is None:
            codes = model.codes_of(names)
            answer = await self.slow(lambda: model.answer(codes, k))
            model.answers.put((k, codes.tobytes()), answer)
        return answer

    async def recommend_user(self, user: str, k: int) -> tuple[bytes, bool]:
        """The answer for a user, of the fit, of the store, or of both; and was the store asked?

        If the store fails, users of the fit get the answer of the fit alone.
        """
        try:
            return await self._recommend_user(user, await self.stored_clicks(user), k), True
        except StoreError:
            if user not in self.model.rows:
                raise
        return await self._recommend_user(user, [], k), False

    async def _recommend_user(self, user: str, stored: Sequence[str], k: int) -> bytes:
        model = self.model
        fitted = model.clicks_of(user)
        new = [item for item in stored if item in model.codes and item not in set(fitted)]
        if new:
            return await self.recommend([*fitted, *new], k)
        if user not in model.rows and not stored:
            raise ServiceError(404, f"no user is named {user[:80]!r}: post some clicks first")
        if user not in model.rows:
            return await self.recommend([], k)
        row = model.rows[user]
        key = (k, f"row {row}".encode())
        answer = model.answers.get(key)
        if answer is None:
            codes = model.clicks.clicks_of(row)
            answer = await self.slow(lambda: model.answer(codes, k, row))
            model.answers.put(key, answer)
        return answer

    async def about(self) -> ModelAnswer:
        """The answer of /model."""
        model, settings = self.model, self.model.posterior.settings
        answer, why = await self.slow(model.summary.verdict)
        trusted: Any = answer
        return ModelAnswer(
            version=str(settings.get("version", __version__)),
            method=str(settings.get("method")),
            model=model.number,
            n_users=len(model.user_names),
            n_items=len(model.item_names),
            n_clusters=model.summary.n_clusters,
            n_clicks=len(model.clicks.codes),
            alpha=model.summary.alphas(),
            trusted=trusted,
            why=why,
            seed=settings.get("seed"),
            has_token=self.token is not None,
            updates=settings.get("updates", 0),
        )

    async def metrics_text(self) -> str:
        """The answer of /metrics."""
        model, is_good = self.model, self.store.health.problem is None
        n_hits = model.answers.n_hits
        try:
            self._n_stored = await self.store.ask(lambda store: store.n_clicks(), BRIEF)
        except StoreError:
            is_good = False
        gauges = {
            "model_version": ("Number of the version that answers.", float(model.number)),
            "table_bytes": ("Memory of the look-up tables.", float(model.table_bytes())),
            "tables_left": ("Numbers of clicks without tables yet.", float(len(self._left))),
            "kept_answers_used": ("Answers of this version given again.", float(n_hits)),
            "refit_running": ("Does a refit run?", float(self.refits.is_busy)),
            "store_good": ("Can clicks be kept?", float(is_good)),
            "stored_clicks": ("Clicks in the store, when it last answered.", float(self._n_stored)),
        }
        return self.metrics.text(gauges)
