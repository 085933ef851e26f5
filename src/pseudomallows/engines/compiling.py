"""Numba compiles a kernel when it is first called, and keeps it on disk. Here one hears of it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

WORDS = "compiling, once (`pseudomallows prepare` compiles it all)"


class _First(event.Listener):  # type: ignore[misc]  # Numba has no types
    """Tells of the first kernel that is compiled; one that is read from disk is not."""

    def __init__(self, tell: Callable[[], None]):
        self._tell: Callable[[], None] | None = tell

    def on_start(self, event: Any) -> None:
        """A kernel is about to be compiled."""
        if self._tell is not None:
            tell, self._tell = self._tell, None
            tell()

    def on_end(self, event: Any) -> None:
        """It is compiled."""


@contextmanager
def tell_when_compiling(tell: Callable[[], None]) -> Iterator[None]:
    """Call `tell` once, when a kernel has to be compiled in the meantime."""
    with event.install_listener("numba:compile", _First(tell)):
        yield
