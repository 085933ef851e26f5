"""The state behind the service: the model that answers, the store, the jobs."""

import asyncio
import logging
import os
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from .._version import __version__
from .connections import asking
from .errors import RETRY, ServiceError, StoreError
from .jobs.refits import Refit, Refits
from .jobs.uploads import DEFAULT_LIMITS, UploadLimits, Uploads
from .metrics import Metrics
from .models.model import Clicked, Model, Question
from .models.summary import check_model
from .models.versions import Versions, known_changes, known_removals, without_removed
from .stores.async_store import BRIEF, AsyncStore
from .stores.open import open_store
from .stores.sqlite import SqliteStore
from .types import (
    BatchRow,
    BatchUser,
    CheckAnswer,
    CheckBin,
    DiagnosisRow,
    ModelAnswer,
    RecommendRequest,
    UserQuery,
    check_name,
    encode,
    is_name,
    read_times,
)

log = logging.getLogger("pseudomallows")
WATCH_SECONDS = 2.0  # between two looks for a version of another process: a list of a folder each
# between two checks of the probabilities, each of up to 5,000 users: at the 6 seconds of
# docs/service.md they take 1 % of a core
CHECK_SECONDS = 600.0
T = TypeVar("T")


@dataclass(frozen=True)
class Limits:
    """What is refused, and how long a client may take."""

    body: int = 1_000_000  # bytes; 10,000 clicks take less
    upload: int = 100_000_000  # bytes, which wait on the disk
    seconds: float = 30.0  # for the body of a request; an upload has ten times as long
    rate: float = 0.0  # requests a second and client; 0: any number
    waiting: int = 64  # slow answers that may wait, for two threads; half of them of one client
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
        opened = open_store(store)
        try:
            self._forgotten = opened.forgotten()
            number, posterior = self.versions.newest(self._forgotten)
            self.model = Model(posterior, number)
            self.model.prepare()
        except BaseException:
            opened.close()
            raise
        self._seen = max([number, *self.versions.numbers()])
        self.store = AsyncStore(opened)
        beside = store if isinstance(opened, SqliteStore) else self.versions.model
        folder = Path(f"{beside}.uploads")
        self.uploads = Uploads(self.store, store, self.limits.uploads, folder)
        self.refits = Refits(self._take_version)
        self._slow = ThreadPoolExecutor(2, thread_name_prefix="slow")
        self._behind = ThreadPoolExecutor(1, thread_name_prefix="behind")
        self._waiting, self._n_stored = Counter[str](), 0
        self._tasks: list[asyncio.Task[None]] = []
        self._turn, self._checking, self._making = (asyncio.Lock() for _ in range(3))
        self._checked: tuple[int, CheckAnswer] | None = None  # changes of the store by then
        self._refitted = 0  # changes of the store by then

    # Beginning and end

    async def start(self) -> None:
        """Begin what goes on beside the requests."""
        beside = [self.store.watch(), self.uploads.clean()]
        beside.append(_every(WATCH_SECONDS, self._look_for_versions, "a new version is skipped"))
        beside.append(_every(CHECK_SECONDS, self._check_if_changed, "no check"))
        if self.refit_every:
            beside.append(_every(self.refit_every, self._refit_if_changed, "no refit"))
        self._tasks += [asyncio.create_task(work) for work in beside]
        self._drop_outdated(self._forgotten)

    async def stop(self) -> None:
        """End jobs, store what waits, close."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.refits.close()
        for pool in (self._slow, self._behind):
            pool.shutdown(wait=False, cancel_futures=True)
        self.uploads.close()
        loop = asyncio.get_running_loop()
        for store in (self.store, self.store.blocking):
            await loop.run_in_executor(None, store.close)

    # Versions

    async def _take_version(self, number: int) -> None:
        """Load a version, make it ready, then answer from it."""
        async with self._turn:
            if number <= self.model.number:
                return
            self._seen = number - 1  # if the store fails, it is looked at again
            forgotten = await self.store.ask(lambda store: store.forgotten())
            loop = asyncio.get_running_loop()
            self._seen = number
            model = await loop.run_in_executor(self._behind, self._load, number, forgotten)
            self.model, self._seen = model, model.number
            log.info("version %d answers now", model.number)
            self._drop_outdated(forgotten)

    def _drop_outdated(self, forgotten: int) -> None:
        """Once a version answers that has learned since the last user was removed, those that may
        know the user go."""
        if 0 < forgotten <= known_removals(self.model.posterior):
            self._behind.submit(self.versions.drop_outdated, forgotten, self.model.number)

    def _load(self, number: int, forgotten: int) -> Model:
        """A version, ready to answer; a user who was removed after the refit had looked is taken
        out first, and the file with the user goes."""
        posterior = self.versions.load(number)
        if known_removals(posterior) < forgotten:
            own, stored = self.versions.load(1).clicks, self.store.blocking.all_clicks()
            assert own is not None
            posterior = without_removed(posterior, own, stored, forgotten)
            named, number = number, self.versions.save(posterior)
            self.versions.path(named).unlink(missing_ok=True)
        model = Model(posterior, number)
        model.prepare()
        return model

    async def _look_for_versions(self) -> None:
        fresh = [number for number in self.versions.numbers() if number > self._seen]
        if fresh:
            await self._take_version(fresh[-1])

    async def _refit_if_changed(self) -> None:
        """If clicks were added or removed since the last refit."""
        changes, known = await self.changes(), known_changes(self.model.posterior)
        if changes not in (known, self._refitted) and not self.refits.is_busy:
            await self.refit(None, None)
            self._refitted = changes

    async def changes(self) -> int:
        """How many clicks were added to the store or removed, so far."""
        return (await self.store.ask(lambda store: store.counts()))[1]

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

    async def stored_clicks(self, users: Sequence[str]) -> dict[str, list[tuple[str, float]]]:
        """Items and times of what the store has of some users."""
        stored = defaultdict[str, list[tuple[str, float]]](list)
        rows = await self.store.ask(lambda store: store.timed_clicks_of(users))
        for user, item, when in rows:
            stored[user].append((item, when))
        return stored

    async def add_clicks(
        self, user: str, items: Sequence[str], times: Sequence[float] | None
    ) -> list[str]:
        """Store clicks; all clicks of the user, once they are safe."""
        check_name(user, "a user")
        self.model.codes_of(items)  # an unknown item is refused
        stored = await self.store.add(user, items, times)
        return self.all_clicks(user, stored)

    def all_clicks(self, user: str, stored: Sequence[str]) -> list[str]:
        """The clicks of the fit and those of the store, each once."""
        return list(dict.fromkeys([*self.model.clicks_of(user), *stored]))

    async def remove_user(self, user: str) -> int:
        """Remove all stored clicks of a user; how many there were."""
        check_name(user, "a user")
        n_removed = await self.uploads.remove_user(user)
        if not n_removed:
            more = "; the model's own clicks stay" if user in self.model.rows else ""
            raise ServiceError(404, f"no clicks are stored for user {user[:80]!r}{more}")
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
        client, most = asking.get(), self.limits.waiting
        if self._waiting.total() >= most or self._waiting[client] >= max(1, most // 2):
            raise ServiceError(503, "too many long requests at once: try again", RETRY)
        self._waiting[client] += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._slow, work)
        finally:
            self._waiting[client] -= 1
            if not self._waiting[client]:
                del self._waiting[client]

    async def once(self, name: Hashable, make: Callable[[Model], T]) -> T:
        """What the model says of itself: made as slow work, one after the other, and kept."""
        model = self.model
        if name not in model.made:
            async with self._making:  # who waited takes what was made meanwhile
                if name not in model.made:
                    model.made[name] = await self.slow(lambda: make(model))
        made: T = model.made[name]
        return made

    async def recommend(self, asked: RecommendRequest) -> bytes:
        """The answer of /recommend."""
        model = self.model
        clicked = model.clicked(asked.clicks, read_times(asked.times, asked.clicks))
        return await self._recommend(model, clicked, model.question(asked, asked.reasons))

    async def _recommend(self, model: Model, clicked: Clicked, asked: Question) -> bytes:
        """An answer that is kept or quick, else one that takes long; kept."""
        answer = model.quick_answer(clicked, asked)
        if answer is None:
            answer = await self.slow(lambda: model.answer(clicked, asked))
            model.answers.put(asked.key(clicked), answer)
        return answer

    async def recommend_user(self, user: str, asked: UserQuery) -> tuple[bytes, bool]:
        """The answer for a user, of the fit, of the store, or of both; and was the store asked?

        If the store fails, users of the fit get the answer of the fit alone.
        """
        stored, is_whole = list[tuple[str, float]](), True
        try:
            stored = (await self.stored_clicks([user]))[user]
        except StoreError:
            is_whole = False
            if user not in self.model.rows:
                raise
        model = self.model
        clicked, question = model.clicked_by(user, stored), model.question(asked, asked.reasons)
        return await self._recommend(model, clicked, question), is_whole

    async def recommend_batch(self, users: Sequence[BatchUser]) -> tuple[bytes, bool]:
        """The answer of /recommend/batch; and was the store asked? What is wrong with one user is
        said in that user's row."""
        stored, is_whole, rows = dict[str, list[tuple[str, float]]](), True, list[bytes]()
        wanted = [user.id for user in users if user.clicks is None and is_name(user.id)]
        try:
            stored = await self.stored_clicks(list(dict.fromkeys(wanted))) if wanted else {}
        except StoreError:
            is_whole = False
        model = self.model
        for user in users:
            try:
                check_name(user.id, "a user")
                if user.clicks is None:
                    clicked = model.clicked_by(user.id, stored.get(user.id, []))
                else:
                    clicked = model.clicked(user.clicks, read_times(user.times, user.clicks))
                answer = await self._recommend(model, clicked, model.question(user))
                rows.append(b'{"id":' + encode(user.id) + b"," + answer[1:])
            except ServiceError as error:
                if error.status == 503:  # of the service, not of this user
                    raise
                rows.append(encode(BatchRow(user.id, error=error.words)))
            await asyncio.sleep(0)  # others get in between
        return b'{"answers":[' + b",".join(rows) + b"]}", is_whole

    def about(self) -> ModelAnswer:
        """The answer of /model."""
        model, settings = self.model, self.model.posterior.settings
        trusted: Any = model.verdict.answer
        bins = settings.get("evaluation", {}).get("calibration", [])
        return ModelAnswer(
            version=str(settings.get("version", __version__)),
            method=str(settings.get("method")),
            model=model.number,
            n_users=len(model.user_names),
            n_items=len(model.item_names),
            n_clusters=model.n_clusters,
            n_clicks=len(model.clicks.codes),
            alpha=model.alphas,
            trusted=trusted,
            why=f"{model.verdict.words} {model.verdict.advice}".strip(),
            checks=[DiagnosisRow(**check.row()) for check in model.verdict.checks],
            calibration=[CheckBin(row["stated"], row["observed"], row["count"]) for row in bins],
            seed=settings.get("seed"),
            has_token=self.token is not None,
            updates=settings.get("updates", 0),
        )

    # Do the stated probabilities hold?

    async def check(self) -> CheckAnswer:
        """The answer of /check, kept until the model or the store changes."""
        changes = await self.changes()
        async with self._checking:  # who waited takes what was made meanwhile
            model, checked = self.model, self._checked
            if checked is not None and checked[1].model == model.number and checked[0] >= changes:
                return checked[1]
            changes = await self.changes()
            answer = await self.slow(lambda: check_model(model, self.store.blocking))
            self._checked = changes, answer
            return answer

    async def _check_if_changed(self) -> None:
        """If there are clicks that the model has not learned from."""
        known = known_changes(self.model.posterior)
        if self.model.clicks.n_users and await self.changes() != known:
            await self.check()

    def _check_gauges(self) -> dict[str, tuple[str, float]]:
        """Of the last check of this model, if there was one."""
        if self._checked is None or self._checked[1].model != self.model.number:
            return {}
        last = self._checked[1]
        gauges = {
            "check_users": ("Users with new clicks in the last check.", last.n_users),
            "check_stated": ("Mean probability of what they were recommended.", last.stated),
            "check_observed": ("Share of it that they clicked.", last.observed),
        }
        return {
            name: (words, float(value))
            for name, (words, value) in gauges.items()
            if value is not None
        }

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
            "kept_answers_used": ("Answers of this version given again.", float(n_hits)),
            "refit_running": ("Does a refit run?", float(self.refits.is_busy)),
            "store_good": ("Can clicks be kept?", float(is_good)),
            "stored_clicks": ("Clicks in the store, when it last answered.", float(self._n_stored)),
        }
        return self.metrics.text(gauges | self._check_gauges())


async def _every(seconds: float, work: Callable[[], Awaitable[None]], words: str) -> None:
    """Do some work again and again; if it fails, the log says so."""
    while True:
        await asyncio.sleep(seconds)
        try:
            await work()
        except Exception as error:
            log.warning("%s: %s", words, error)
