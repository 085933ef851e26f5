"""Run blocks of users with anything that has a `map`."""

import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import Any, Protocol, TypeGuard, TypeVar

from ..rankings import check_count

# Users in a block: a table of them and 4,000 items takes 8 MB. No result depends on it.
BLOCK = 256

_here = threading.local()  # `is_alone`: one of several threads at work, which takes no others

T = TypeVar("T")
R = TypeVar("R")


class Executor(Protocol):
    """Anything with a `map` that keeps the order, such as those of `concurrent.futures`."""

    def map(self, function: Callable[[T], R], arguments: Iterable[T]) -> Iterator[R]:
        """Apply `function` to each of the arguments."""
        ...  # pragma: no cover


class RemoteExecutor(Executor, Protocol):
    """Runs tasks in other processes: they get their arguments as copies."""

    n_workers: int

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """A result that stays there, to be an argument of other tasks."""
        ...  # pragma: no cover


class StoppedError(Exception):
    """Ends a task, since another one, or the user, has ended the work."""


class WorkersError(RuntimeError):
    """The workers that run a fit are gone, or cannot do it."""


def is_remote(executor: Executor | None) -> TypeGuard[RemoteExecutor]:
    """Does it run tasks in other processes?"""
    return getattr(executor, "is_remote", False)


def check_executor(executor: Any) -> None:
    """Refuse what cannot run anything."""
    if executor is not None and not callable(getattr(executor, "map", None)):
        raise TypeError(f"executor must have a map, such as pm.Threads(2), got {executor!r}")


def check_local(executor: Executor | None, what: str) -> None:
    """Refuse Dask workers where the work is done in this process."""
    check_executor(executor)
    if is_remote(executor):
        raise TypeError(f"{what} does not run on Dask workers: give threads, or leave executor out")


class Threads:
    """Threads of this process; the kernels release Python's lock, so they use all cores.

    >>> list(Threads(2).map(abs, [-1, -2]))
    [1, 2]
    """

    def __init__(self, n_threads: int | None = None):
        available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
        default = available or os.cpu_count() or 1
        self.n_threads = default if n_threads is None else check_count(n_threads, "n_threads")
        self._pool = None
        if self.n_threads > 1:
            self._pool = ThreadPoolExecutor(self.n_threads, initializer=_be_alone)
            _start_threads(self._pool, self.n_threads)

    def map(self, function: Callable[[T], R], arguments: Iterable[T]) -> Iterator[R]:
        """Apply `function` to each of the arguments, in order."""
        listed = list(arguments)
        if is_alone():
            return _until_stopped(function, listed)
        if self._pool is None or len(listed) < 2:  # one block is not worth a thread
            return map(function, listed)
        return self._pool.map(function, listed)


def _start_threads(pool: ThreadPoolExecutor, n_threads: int) -> None:
    """Start all threads of a pool, on a thread of its own.

    Ctrl-C interrupts the main thread. If that is just starting a thread, the pool does not get to
    know it, and the process would wait for it at its end, for good.
    """
    meet = threading.Barrier(n_threads, timeout=1.0)  # so that each task needs a thread

    def start() -> None:
        for _ in range(n_threads):
            pool.submit(meet.wait)

    starter = threading.Thread(target=start, daemon=True)
    starter.start()
    starter.join()


def run_together(
    task: Callable[[int], None], n_tasks: int, n_threads: int, watch: Callable[[bool], None]
) -> None:
    """Run long tasks, given by their numbers, at the same time, each on one thread.

    `watch` is called here, again and again, with whether all is well: if not, since a task failed
    or this thread was interrupted, the tasks are to end soon by themselves. They do at the latest
    before the next block of their `Threads.map`.

    >>> run_together(lambda number: print(number), 2, 1, lambda is_well: None)
    0
    1
    """
    stop = threading.Event()
    with ThreadPoolExecutor(n_threads, initializer=_be_alone, initargs=(stop,)) as pool:
        left = {pool.submit(task, number) for number in range(n_tasks)}
        try:
            while left:
                done, left = wait(left, 0.05)
                for each in done:
                    each.result()
                watch(True)
        except BaseException:
            for each in left:
                each.cancel()
            stop.set()
            watch(False)
            raise


def _be_alone(stop: threading.Event | None = None) -> None:
    _here.is_alone, _here.stop = True, stop


def _until_stopped(function: Callable[[T], R], arguments: list[T]) -> Iterator[R]:
    """The same as `map`, unless the tasks of this thread are to end."""
    for argument in arguments:
        if _here.stop is not None and _here.stop.is_set():
            raise StoppedError
        yield function(argument)


def interruptible(function: Callable[..., R], *arguments: Any) -> R:
    """Call what may run for long outside Python, such as a kernel, so that Ctrl-C is answered at
    once: Python looks for it between its own steps only. The call itself goes on, on a thread that
    ends with the process.

    >>> interruptible(max, 1, 2)
    2
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*arguments)
    result: Future[R] = Future()
    context = copy_context()  # with NumPy's settings of overflows, for instance

    def work() -> None:
        try:
            result.set_result(context.run(function, *arguments))
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return result.result()


def is_alone() -> bool:
    """Is this one of several threads side by side, so that what it asks for runs in it alone?"""
    return getattr(_here, "is_alone", False)


@functools.cache
def all_cores() -> Threads:
    """Threads on all cores, made once: a service asks for them with every request."""
    return Threads()


def at_hand(executor: Executor | None) -> Executor:
    """The same, or threads of this process in place of workers elsewhere, or of nothing."""
    return all_cores() if executor is None or is_remote(executor) else executor


def blocks(n_rows: int, size: int = BLOCK) -> list[slice]:
    """Cut rows into blocks.

    >>> blocks(5, size=2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]
