"""Tables of what comes next: the chance of each place among the unseen items.

Tables are made when they are asked for, and kept. What a caller gets is whole and never changes, so
any number of threads may ask: more tables make a new one, which takes the place of the old.
"""

import threading
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .executors import all_cores
from .kernels.clicks import next_rank_probabilities, step_factors
from .kernels.groups import UNIFORM, add_ceilings, count_ends

TABLE_DRAWS = 2000  # behind each table

Table = tuple[NDArray[Any], ...]


class Tables:
    """Tables of the paper's law, for each window, concentration and number of unseen items.

    Parameters
    ----------
    alphas : array
        Concentration of each law.
    sources : tuple of arrays
        The draws that will be looked up: orderings, weights, where each source begins, its law.
    order : int
        In which the places of a group are visited.
    """

    def __init__(self, alphas: NDArray[np.float64], sources: tuple[NDArray[Any], ...], order: int):
        self._alphas, self._sources, self._order = alphas, sources, order
        self.n_items = sources[0].shape[1]
        self._made: dict[int, Table] = {}
        self._lock = threading.Lock()

    def of(self, window: int, wanted: Iterable[tuple[int, int]]) -> Table:
        """``lines[law, size]``, -1 if not made; ``ends[line]``, from which place on the chances are
        0; ``chances[line, place]``; ``ceiling_lines[source, size]``; ``ceilings[line, item]``. The
        tables of the `wanted` laws and sizes are made, if they are missing."""
        pairs = sorted({(law, size) for law, size in wanted if size})
        found = self._made.get(window) or self._nothing()
        if all(found[0][pair] >= 0 for pair in pairs):  # waits for no other thread
            return found
        with self._lock:
            lines, ends, chances, ceiling_lines, ceilings = self._made.get(window) or found
            missing = [pair for pair in pairs if lines[pair] < 0]
            made = list(all_cores().map(lambda pair: self._make_one(window, *pair), missing))
            lines, ceiling_lines = lines.copy(), ceiling_lines.copy()
            n_ceilings = len(ceilings)
            for number, (law, size) in enumerate(missing, len(ends)):
                lines[law, size] = number
                mine = np.flatnonzero(self._sources[3] == law)
                ceiling_lines[mine, size] = n_ceilings + np.arange(len(mine))
                n_ceilings += len(mine)
            last_places = [int(np.flatnonzero(line)[-1]) + 1 for line, _ in made]
            self._made[window] = (
                lines,
                np.append(ends, last_places).astype(np.int64),
                np.concatenate([chances, *(line[None] for line, _ in made)]),
                ceiling_lines,
                np.concatenate([ceilings, *(more for _, more in made)]),
            )
            return self._made[window]

    def drop(self, window: int) -> None:
        """Forget the tables of a window."""
        self._made.pop(window, None)

    @property
    def nbytes(self) -> int:
        """Memory."""
        return sum(part.nbytes for table in list(self._made.values()) for part in table)

    def whole(self, window: int, size: int) -> Table | None:
        """The tables, if those for so many unseen items are made for all laws."""
        found = self._made.get(window)
        return found if found is not None and found[0][:, size].min() >= 0 else None

    def _nothing(self) -> Table:
        n_items, shape = self.n_items, (len(self._sources[3]), self.n_items + 1)
        return (
            np.full((len(self._alphas), n_items + 1), -1, dtype=np.int32),
            np.empty(0, dtype=np.int64),
            np.empty((0, n_items)),
            np.full(shape, -1, dtype=np.int32),
            np.empty((0, n_items)),
        )

    def _make_one(self, window: int, law: int, size: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Chances of a law, and the ceilings of its sources."""
        line = np.zeros(self.n_items)
        lam = self._alphas[law] / self.n_items
        line[:size] = first_chances(size, lam, min(window, size), self._order)
        orderings, weights, firsts, laws = self._sources
        mine = np.flatnonzero(laws == law)
        ceilings = np.zeros((len(mine), self.n_items))
        for row, source in enumerate(mine):
            own = slice(firsts[source], firsts[source + 1])
            add_ceilings(orderings[own], weights[own], line, size, ceilings[row])
        return line, ceilings


def first_chances(size: int, lam: float, k: int, order: int) -> NDArray[np.float64]:
    """Chance of each place of a group to take one of its first k ranks, under the paper's law.

    From draws. For uniform orders the law is the same read from behind, which doubles the draws,
    and the chance never rises from a place to the next, which smooths them.
    """
    firsts, lasts = np.zeros((2, size), dtype=np.int64)
    count_ends(size, size, lam, order, TABLE_DRAWS, k, firsts, lasts)
    chances = firsts / TABLE_DRAWS
    if order != UNIFORM:
        return chances
    return falling((chances + lasts[::-1] / TABLE_DRAWS) / 2)


def falling(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nearest sequence, in least squares, that never rises.

    >>> falling(np.array([3.0, 1.0, 2.0, 0.0]))
    array([3. , 1.5, 1.5, 0. ])
    """
    from scipy.optimize import isotonic_regression

    return np.asarray(isotonic_regression(values, increasing=False).x)


class GridTables:
    """Tables of the exact law, for a grid of alphas."""

    def __init__(self, n_items: int, alphas: NDArray[np.float64]):
        self.n_items, self._alphas = n_items, alphas
        self._made: dict[int, Table] = {}
        self._lock = threading.Lock()

    def of(self, window: int, sizes: Iterable[int]) -> Table:
        """``lines[size]``, -1 if not made, and ``chances[line, g, place]``: under the Mallows law
        of `size` unclicked items at alpha `g`, the chance that the item at `place` takes one of the
        first `window` ranks. The tables of these sizes are made, if they are missing."""
        wanted = {size for size in sizes if size}
        found = self._made.get(window) or self._nothing()
        if all(found[0][size] >= 0 for size in wanted):  # waits for no other thread
            return found
        with self._lock:
            lines, chances = self._made.get(window) or self._nothing()
            missing = sorted(size for size in wanted if lines[size] < 0)
            made = list(all_cores().map(lambda size: self._make_one(window, size), missing))
            lines = lines.copy()
            lines[missing] = len(chances) + np.arange(len(missing))
            self._made[window] = (lines, np.concatenate([chances, *(line[None] for line in made)]))
            return self._made[window]

    def has(self, window: int, size: int) -> bool:
        """Is the table for so many unseen items made?"""
        found = self._made.get(window)
        return size == 0 or (found is not None and bool(found[0][size] >= 0))

    def drop(self, window: int) -> None:
        """Forget the tables of a window."""
        self._made.pop(window, None)

    @property
    def nbytes(self) -> int:
        """Memory."""
        return sum(part.nbytes for table in list(self._made.values()) for part in table)

    def _nothing(self) -> Table:
        lines = np.full(self.n_items + 1, -1, dtype=np.int64)
        return lines, np.empty((0, len(self._alphas), self.n_items))

    def _make_one(self, window: int, size: int) -> NDArray[np.float64]:
        chances = np.zeros((len(self._alphas), self.n_items))
        factors, none, codes = step_factors(size, 0), np.zeros(2, np.int64), np.empty(0, np.int32)
        center, ones = np.arange(1, size + 1), np.ones(1)
        for line, alpha in zip(chances, self._alphas, strict=True):
            law = (center, alpha / self.n_items, min(window, size))
            next_rank_probabilities(none, codes, *law, ones, factors, line[None, :size])
        return chances
