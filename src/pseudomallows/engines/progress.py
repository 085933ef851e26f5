"""How far long work has come: a callable, or a line of text on a terminal or in a notebook.

Numba compiles a kernel when it is first called, and keeps it on disk; the line says so.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

Progress = Callable[[int, int], None]
WIDTH = 20  # characters of the bar, so that with words and time it fits into 80
COMPILING = "compiling, once (`pseudomallows prepare` compiles it all)"


def no_progress(done: int, total: int) -> None:
    """Tell nobody."""


@contextmanager
def shown(progress: Progress | bool | None, title: str) -> Iterator[Progress]:
    """What is called as ``progress(done, total)``, while the work lasts.

    A callable is taken as it is; True is a bar, at once; None is one after two seconds where
    somebody may watch, on a terminal or in a notebook; False is nothing.

    >>> with shown(False, "fitting") as progress:
    ...     progress is no_progress
    True
    """
    if progress is not None and not isinstance(progress, bool):
        if not callable(progress):
            raise TypeError(
                "progress must be True, False, or a callable that takes (done, total), got "
                f"{type(progress).__name__}"
            )
        yield progress
    elif progress or (progress is None and is_watched()):
        bar = Bar(title, 0.0 if progress else 2.0)  # who waits no longer wonders about nothing
        try:
            with when_compiling(lambda: bar.say(COMPILING)):
                yield bar
        finally:
            bar.close()
    else:
        yield no_progress


@contextmanager
def compiling_said() -> Iterator[None]:
    """Say on a terminal, once, that kernels are compiled, where no bar says so."""

    def say() -> None:
        if is_watched() and not Bar.open_bars:
            print(COMPILING, file=sys.stderr, flush=True)

    with when_compiling(say):
        yield


class _First(event.Listener):  # type: ignore[misc]  # Numba has no types
    """Tells of the first kernel that is compiled; one that is read from disk is not."""

    def __init__(self, say: Callable[[], None]):
        self._say: Callable[[], None] | None = say

    def on_start(self, event: Any) -> None:
        """A kernel is about to be compiled."""
        if self._say is not None:
            say, self._say = self._say, None
            say()

    def on_end(self, event: Any) -> None:
        """It is compiled."""


@contextmanager
def when_compiling(say: Callable[[], None]) -> Iterator[None]:
    """Call `say` once, when a kernel has to be compiled in the meantime."""
    with event.install_listener("numba:compile", _First(say)):
        yield


def is_watched() -> bool:
    """Is standard error a terminal, or a notebook's?"""
    if sys.stderr is None:
        return False
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return sys.stderr.isatty() or type(shell).__name__ == "ZMQInteractiveShell"


class Bar:
    """A line of text that is written over and over, which terminals and notebooks both show.

    Of bars within each other, the innermost is shown.
    """

    open_bars: list["Bar"] = []  # noqa: RUF012

    def __init__(self, title: str, quiet: float = 0.0):
        self.title, self._words, self._length = title, title, 0
        self._started, self._looked, self._quiet = time.monotonic(), 0.0, quiet
        self._first: tuple[float, int] | None = None
        self._lock = threading.RLock()
        Bar.open_bars.append(self)
        self._timer = threading.Timer(quiet, self._write)  # if nothing is heard until then
        self._timer.daemon = True
        self._timer.start()

    def __call__(self, done: int, total: int) -> None:
        """So much is done of so much."""
        now = time.monotonic()
        if self._first is None or done <= self._first[1]:
            self._first = now, done  # of this part of the work, without compiling
        if done >= total:  # warnings may follow, on a line of their own
            self.show("")
        elif now - self._looked >= 0.1:  # no eye sees more
            self._looked, n_full = now, WIDTH * done // total
            since, before = self._first
            left = (now - since) * (total - done) / max(done - before, 1)
            words = f", {left:.0f} s left" if done > before else ""
            bar = "█" * n_full + "░" * (WIDTH - n_full)
            self.show(f"{self.title} {bar} {100 * done // total:3d} %{words}")

    def say(self, words: str) -> None:
        """What is being done."""
        self.show(f"{self.title}: {words}")

    def show(self, words: str) -> None:
        """Write over the line, once it is time for it."""
        self._words = words
        if time.monotonic() - self._started >= self._quiet:
            self._write()

    def close(self) -> None:
        """Wipe the line."""
        self._timer.cancel()
        with self._lock:
            self._words = ""
            self._write()
            Bar.open_bars.remove(self)

    def _write(self) -> None:
        with self._lock:
            is_shown = bool(self._words or self._length)
            if is_shown and Bar.open_bars and Bar.open_bars[-1] is self:
                wipe = " " * max(self._length - len(self._words), 0)
                end = "" if self._words else "\r"
                print(f"\r{self._words}{wipe}", end=end, file=sys.stderr, flush=True)
                self._length = len(self._words)
