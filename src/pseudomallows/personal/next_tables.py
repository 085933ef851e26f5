"""Tables of what comes next: the probability of each place among the unseen items.

Tables are made when they are asked for, and kept. What a caller gets is whole and never changes, so
any number of threads may ask: more tables make a new one, which takes the place of the old.
"""

import threading
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engines.executors import all_cores
from ..kernels.correct import GridProbabilities
from ..laws.own_laws import OwnLaw


def step_of(size: int) -> int:
    """From one table to the next: 1 up to 256, then at most 1/128 of the size, by which the
    probabilities of the first places hardly change. A power of 2, so that sizes never change their
    table.

    >>> step_of(200), step_of(601), step_of(999)
    (1, 4, 4)
    """
    return 1 << max((size - 1).bit_length() - 8, 0)


class GridTables:
    """Tables of an exact law at the alphas of a grid, or of draws: the alphas before the places or,
    with `by_place`, behind them. Sizes that are nearly the same share one, unless `is_exact`."""

    def __init__(self, law: OwnLaw, by_place: bool = False, is_exact: bool = False):
        self.law, self.n_items, self.by_place = law, law.n_items, by_place
        self._step = (lambda size: 1) if is_exact else step_of
        self._made: dict[int, GridProbabilities] = {}
        self._lock = threading.Lock()

    def of(self, window: int, sizes: Iterable[int]) -> GridProbabilities:
        """The probabilities, under the Mallows law of the unclicked items, to take one of the first
        `window` ranks. The tables of these sizes are made, if they are missing."""
        wanted = {size for size in sizes if size}
        tables = self._made.get(window) or self._nothing(window)
        if all(tables.lines[size] >= 0 for size in wanted):  # waits for no other thread
            return tables
        with self._lock:
            lines, probabilities, places, far = self._made.get(window) or self._nothing(window)
            missing = sorted({self._shared(n) for n in wanted if lines[n] < 0})
            made = list(all_cores().map(lambda size: self.make_one(window, size), missing))
            lines = lines.copy()
            for number, size in enumerate(missing, len(probabilities)):
                like = range(max(1, size - self._step(size)), size + 1)
                lines[[each for each in like if self._shared(each) == size]] = number
            more = np.concatenate([probabilities, *(near[None] for near, _ in made)])
            more_far = np.concatenate([far, *(beyond[None] for _, beyond in made)])
            self._made[window] = GridProbabilities(lines, more, places, more_far)
            return self._made[window]

    def has(self, window: int, size: int) -> bool:
        """Is the table for so many unseen items made?"""
        tables = self._made.get(window)
        return size == 0 or (tables is not None and bool(tables.lines[size] >= 0))

    def drop(self, window: int) -> None:
        """Forget the tables of a window."""
        self._made.pop(window, None)

    @property
    def nbytes(self) -> int:
        """Memory."""
        return sum(part.nbytes for table in list(self._made.values()) for part in table)

    def _shared(self, size: int) -> int:
        """The size whose table serves a size."""
        step = self._step(size)
        return min(-(-size // step) * step, self.n_items)

    def _nothing(self, window: int) -> GridProbabilities:
        n_near, places = self.law.places(window)
        lines, n_alphas = np.full(self.n_items + 1, -1, dtype=np.int64), len(self.law.alphas)
        near, far = (np.empty((0, n_alphas, number)) for number in (n_near, len(places)))
        near, far = self._turned(near), self._turned(far)
        return GridProbabilities(lines, near, places, far)

    def make_one(self, window: int, size: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Of one size."""
        near, far = self.law.next_probabilities(window, size)
        return self._turned(near), self._turned(far)

    def _turned(self, table: NDArray[Any]) -> NDArray[Any]:
        return np.ascontiguousarray(table.swapaxes(-1, -2)) if self.by_place else table
