"""How far long work has come, shown on a terminal. This module alone imports rich."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ..engines.compiling import WORDS, tell_when_compiling
from ..engines.progress import Progress


@contextmanager
def show_progress(title: str, quiet: bool = False) -> Iterator[Progress | None]:
    """A bar with the time that is left, on standard error; nothing in a pipe or without rich."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars
    except ModuleNotFoundError:  # pragma: no cover
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    console = Console(stderr=True)
    with Bars(*columns, TimeRemainingColumn(), console=console, transient=True) as bars:
        task = bars.add_task(title, total=None)

        def update(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total)

        def say(words: str) -> None:
            bars.update(task, description=f"{title}: {words}")

        update.say = say  # type: ignore[attr-defined]  # for fits that tell what they do
        yield update


@contextmanager
def say_when_compiling(quiet: bool = False) -> Iterator[None]:
    """Say on a terminal, once, that kernels are compiled, which takes a while."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    words = f"{WORDS}: the next time this starts quickly (`pseudomallows prepare` compiles it all)"
    with tell_when_compiling(lambda: print(words, file=sys.stderr, flush=True)):
        yield
