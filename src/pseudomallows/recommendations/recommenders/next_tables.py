"""Tables of what comes next: the probability of each place among the unseen items.

Tables are made when they are asked for, and kept. What a caller gets is whole and never changes, so
any number of threads may ask: more tables make a new one, which takes the place of the old.
"""

import threading
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...engines.executors import all_cores
from ...kernels.footrule.own_orders import GridProbabilities
from ...laws.own_laws import OwnLaw


def shared_size(size: int, n_items: int) -> int:
    """The size whose table serves a size too: itself up to 256, then one at most 1/128 larger, by
    which the probabilities of the first places hardly change.

    >>> shared_size(200, 1000), shared_size(601, 1000), shared_size(999, 1000)
    (200, 604, 1000)
    """
    step = _step(size)
    return min(-(-size // step) * step, n_items)


def _step(size: int) -> int:
    """From one table to the next: a power of 2, so that sizes never change their table."""
    return 1 << max((size - 1).bit_length() - 8, 0)


def sizes_like(size: int, n_items: int) -> list[int]:
    """The sizes that a table serves."""
    below = range(max(1, size - _step(size)), size + 1)
    return [each for each in below if shared_size(each, n_items) == size]


class GridTables:
    """Tables of the exact law of users with a consensus of their own, for a grid of alphas."""

    def __init__(self, law: OwnLaw):
        self.law, self.n_items = law, law.n_items
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
            missing = sorted({shared_size(n, self.n_items) for n in wanted if lines[n] < 0})
            made = list(all_cores().map(lambda size: self.make_one(window, size), missing))
            lines = lines.copy()
            for number, size in enumerate(missing, len(probabilities)):
                lines[sizes_like(size, self.n_items)] = number
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

    def _nothing(self, window: int) -> GridProbabilities:
        n_near, places = self.law.places(window)
        lines, n_alphas = np.full(self.n_items + 1, -1, dtype=np.int64), len(self.law.alphas)
        near, far = np.empty((0, n_alphas, n_near)), np.empty((0, n_alphas, len(places)))
        return GridProbabilities(lines, near, places, far)

    def make_one(self, window: int, size: int) -> tuple[NDArray[Any], NDArray[Any]]:
        return self.law.next_probabilities(window, size)
