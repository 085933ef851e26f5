"""How far long work has come: a callable, or a bar of text for a terminal or a notebook."""

import sys
import time
import weakref
from collections.abc import Callable
from typing import TextIO

from .compiling import WORDS, tell_when_compiling

Progress = Callable[[int, int], None]
WIDTH = 30  # characters of the bar
SECONDS = 0.1  # between two looks


def no_progress(done: int, total: int) -> None:
    """Tell nobody."""


def as_progress(progress: Progress | bool | None, title: str) -> Progress:
    """What is called as ``progress(done, total)``: given, or with True a bar.

    >>> as_progress(None, "fitting") is no_progress
    True
    """
    if progress is None or progress is False:
        return no_progress
    if progress is True:
        return Bar(title)
    if not callable(progress):
        raise TypeError(
            "progress must be True, or a callable that takes (done, total), got "
            f"{type(progress).__name__}"
        )
    return progress


class Bar:
    """A line of text that is written over and over, which terminals and notebooks both show.

    It is wiped when all is done. It says so while kernels are compiled for the first time.
    """

    def __init__(self, title: str, stream: TextIO | None = None):
        self.title, self._stream = title, stream or sys.stderr
        self._shown, self._length = float("-inf"), 0
        me = weakref.ref(self)  # the listener must not keep the bar alive
        self._compiling = tell_when_compiling(lambda: _say_compiling(me()))
        self._compiling.__enter__()
        self.write(title)

    def __call__(self, done: int, total: int) -> None:
        """So much is done of so much."""
        now = time.monotonic()
        if done >= total:
            self.write("")
        elif now - self._shown >= SECONDS:
            self._shown, n_full = now, WIDTH * done // total
            bar = "█" * n_full + "░" * (WIDTH - n_full)
            self.write(f"{self.title} {bar} {100 * done // total:3d} %")

    def __del__(self) -> None:
        """The work is over, if it ended well or not."""
        self._compiling.__exit__(None, None, None)
        self.write("")

    def write(self, words: str) -> None:
        """Write over the line."""
        wipe = " " * max(self._length - len(words), 0)
        if words or self._length:
            print(f"\r{words}{wipe}", end="" if words else "\r", file=self._stream, flush=True)
        self._length = len(words)


def _say_compiling(bar: Bar | None) -> None:
    if bar is not None:
        bar.write(f"{bar.title}: {WORDS}")
