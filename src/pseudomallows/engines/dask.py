"""Dask workers as executor. This module alone imports Dask."""

import asyncio
import itertools
import logging
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import wait
from contextlib import contextmanager, suppress
from typing import Any, Self, TypeVar
from weakref import WeakKeyDictionary

try:
    import distributed
    from distributed.client import FutureCancelledError, FuturesCancelledError
    from distributed.comm.core import CommClosedError
except ModuleNotFoundError as error:  # pragma: no cover
    raise ModuleNotFoundError(
        "workers need Dask: pip install 'pseudomallows[dask]'", name=error.name
    ) from None

from .executors import WorkersError

T = TypeVar("T")
R = TypeVar("R")
PATIENCE = 30.0  # seconds for a scheduler, or a worker if there is none: Dask's own timeout
SILENCE = 30.0  # seconds that a scheduler may take to answer: the same
GONE = (CommClosedError, FutureCancelledError, FuturesCancelledError, TimeoutError)


AGAIN = (
    "start the workers and the fit again (with `checkpoint`, it goes on where it was saved last)"
)


class DaskExecutor:
    """Runs the blocks of users of a fit on Dask workers.

    Tasks depend on nothing but their arguments, so losing a worker costs only time: Dask runs
    its tasks again elsewhere, and the draws keep their bits.

    Parameters
    ----------
    client : distributed.Client or str
        A client, or the address of a scheduler, or "local:2" for two processes on this machine.

    Examples
    --------
    >>> import pseudomallows as pm
    >>> prefs = pm.simulate_clicks(60, 6, alpha=4, mean_clicks=2, rng=1).preferences
    >>> with pm.DaskExecutor("local:1") as workers:                          # doctest: +SKIP
    ...     posterior = pm.fit(prefs, alpha=4, rng=1, executor=workers)
    """

    is_remote = True

    def __init__(self, client: "distributed.Client | str"):
        self._local: Any = None
        self._is_own = isinstance(client, str)
        self._numbers: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._new_numbers = itertools.count()
        if isinstance(client, str):
            client = self._connect(client)
        elif not isinstance(client, distributed.Client):
            raise TypeError(
                "client must be a distributed.Client or an address such as 'tcp://host:8786' or "
                f"'local:2', got {client!r}"
            )
        elif client.asynchronous:
            raise TypeError("client must not be asynchronous")
        self.client = client
        try:
            self._wait_for_worker()
        except BaseException:
            self.close()
            raise

    def _wait_for_worker(self) -> None:
        begin = time.monotonic()
        while not self._n_threads():
            if time.monotonic() - begin > PATIENCE:
                raise WorkersError("there is no worker: start one with `dask worker`")
            time.sleep(0.1)

    def _connect(self, address: str) -> "distributed.Client":
        name, _, number = address.partition(":")
        if name == "local":
            if not number.isdigit() or int(number) < 1:
                raise ValueError(f"local workers are 'local:2' for two, got {address!r}")
            self._local = distributed.LocalCluster(
                n_workers=int(number),
                threads_per_worker=1,
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,  # errors of tasks come back as exceptions
            )
            return distributed.Client(self._local)
        try:
            return distributed.Client(address, timeout=PATIENCE)
        except (OSError, ValueError) as error:
            raise WorkersError(f"no scheduler answers at {address!r}: {error}") from None

    @property
    def n_workers(self) -> int:
        """Threads over all workers, now."""
        with self._clear_errors():
            return max(1, self._n_threads())

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """A result that stays on the workers, and is made again if it is lost.

        What is made of another such result is at home with it.
        """
        with self._clear_errors(), _large_is_fine():
            future = self.client.submit(function, *arguments, pure=False)
        self._numbers[future] = self._number_of(arguments)
        return future

    def _number_of(self, task: Any) -> int:
        parts = task if isinstance(task, tuple) else (task,)
        known = [self._numbers[part] for part in parts if isinstance(part, distributed.Future)]
        return known[0] if known else next(self._new_numbers)

    def map(self, function: Callable[[T], R], arguments: Iterable[Any]) -> Iterator[R]:
        """Apply `function` to each of the arguments, or to what they are the results of.

        Tasks on results that are at home together travel together: messages cost more than tasks.
        """
        tasks, places = list(arguments), defaultdict[int, list[int]](list)
        for place, task in enumerate(tasks):
            places[self._number_of(task)].append(place)
        results_of: dict[int, R] = {}
        with self._clear_errors():
            with _large_is_fine():
                bundles = [
                    self.client.submit(_run, function, [tasks[p] for p in numbers], pure=False)
                    for numbers in places.values()
                ]
            gathered = self._wait_for(self.client.gather(bundles, asynchronous=True))
            for numbers, results in zip(places.values(), gathered, strict=True):
                results_of |= zip(numbers, results, strict=True)
        return iter([results_of[number] for number in range(len(tasks))])

    def _wait_for(self, answer: Coroutine[Any, Any, Any]) -> Any:
        """Wait, but not for a scheduler that is gone or frozen, nor for ever for a worker."""
        task = asyncio.run_coroutine_threadsafe(answer, self.client.loop.asyncio_loop)
        seen = time.monotonic()
        try:
            while not wait([task], 1.0).done:
                self._check_scheduler()
                if self._n_threads():
                    seen = time.monotonic()
                elif time.monotonic() - seen > PATIENCE:
                    raise WorkersError(f"there is no worker left; {AGAIN}")
            return task.result()
        finally:
            task.cancel()

    def _n_threads(self) -> int:
        """Threads over all workers, now; an error if the scheduler does not say it in time."""
        ask = self.client.scheduler.ncores
        try:
            counts = self.client.sync(ask, workers=None, callback_timeout=SILENCE)
        except TimeoutError:
            raise WorkersError(
                f"the scheduler has not answered for {SILENCE:.0f} seconds; {AGAIN}"
            ) from None
        except OSError as error:
            raise WorkersError(f"the scheduler is gone; {AGAIN}: {error}") from None
        return sum(counts.values())

    def _check_scheduler(self) -> None:
        """Refuse a client that has lost it: even if it comes back, it has forgotten the shards."""
        if self.client.status != "running":
            raise WorkersError(f"the scheduler is gone; {AGAIN}")

    @contextmanager
    def _clear_errors(self) -> Iterator[None]:
        self._check_scheduler()
        try:
            yield
        except distributed.KilledWorker as error:
            raise WorkersError(
                f"a task brought down several workers, perhaps for lack of memory: {error}"
            ) from None
        except GONE as error:
            raise WorkersError(f"the scheduler is gone; {AGAIN}: {error}") from None

    def close(self) -> None:
        """End workers that were made here, and the client of an address; one that was given
        stays open."""
        if self._is_own:
            with suppress(TimeoutError):  # of a scheduler that is frozen
                self.client.close(timeout=10.0)
        if self._local is not None:
            self._local.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _run(function: Callable[[Any], Any], tasks: list[Any]) -> list[Any]:
    return [function(task) for task in tasks]


@contextmanager
def _large_is_fine() -> Iterator[None]:
    """Clicks that travel within tasks are large on purpose: they can be sent again."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph", category=UserWarning)
        yield
