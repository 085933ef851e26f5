"""How the benchmarks measure: wall clock, rivals in turn, the best of several repeats.

The best and not the mean, because other work on the machine can only make a run slower; in turn,
so that a slow minute hits all rivals alike.
"""

import argparse
import time
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Name = TypeVar("Name", bound=Hashable)
Result = TypeVar("Result")


def best_of(function: Callable[[], Any], repeats: int) -> float:
    """Seconds of the fastest of `repeats` calls."""
    return min(seconds_of(function) for _ in range(repeats))


def race(rivals: dict[Name, Callable[[], Any]], repeats: int) -> dict[Name, float]:
    """Seconds of the fastest call of each rival, called in turn `repeats` times."""
    rounds = [{name: seconds_of(call) for name, call in rivals.items()} for _ in range(repeats)]
    return {name: min(seconds[name] for seconds in rounds) for name in rivals}


def seconds_of(function: Callable[[], Any]) -> float:
    """Seconds of one call."""
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def cpu_seconds(work: Callable[[], Result]) -> tuple[float, Result]:
    """CPU seconds of one call, all threads together, and what it returns."""
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


def answer(posterior: Any) -> str:
    """The verdict on a fit: "yes", "with care" or "no"."""
    return str(posterior.verdict().answer)


def words(seconds: float) -> str:
    """A time for people.

    >>> words(0.00625), words(2.5)
    ('6.25 ms', '2.5 s')
    """
    for unit, name in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds * 1e6:.3g} µs"


def print_table(header: list[str], rows: list[list[str]]) -> None:
    """Print rows under their header, the first column to the left."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in [header, ["-" * width for width in widths], *rows]:
        first, *rest = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join([row[0].ljust(len(first)), *rest]))
    print()


def arguments(doc: str | None, **defaults: float | str) -> argparse.Namespace:
    """Options with these defaults; the docstring of the script is its help."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in defaults.items():
        parser.add_argument(
            f"--{name}", type=type(default), default=default, help=f"default {default}"
        )
    return parser.parse_args()
