"""Tables of the paper's law: the chance of each place among the unseen items to come next."""

import threading
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .executors import all_cores
from .kernels.groups import UNIFORM, add_ceilings, count_ends

TABLE_DRAWS = 2000  # behind each table

Table = tuple[NDArray[Any], ...]


class Tables:
    """One table for each window, concentration and number of unseen items, made when asked for.

    ``of(window)`` has what `look_up` reads, and is never changed: more tables make a new one.

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
        self._whole: dict[int, tuple[Table, set[int]]] = {}  # and the sizes that all laws have
        self._lock = threading.Lock()

    def of(self, window: int) -> Table:
        """``lines[law, size]``, -1 if not made; ``ends[line]``, from which place on the chances are
        0; ``chances[line, place]``; ``ceiling_lines[source, size]``; ``ceilings[line, item]``.
        KeyError, if there is nothing for this window."""
        return self._made[window]

    def drop(self, window: int) -> None:
        """Forget the tables of a window."""
        self._made.pop(window, None)
        self._whole.pop(window, None)

    @property
    def nbytes(self) -> int:
        """Memory."""
        return sum(part.nbytes for table in list(self._made.values()) for part in table)

    def has(self, window: int, size: int) -> bool:
        """Are the tables for so many unseen items made, for all laws?"""
        found, known = self._made.get(window), self._whole.get(window)
        if size == 0 or found is None:
            return size == 0
        if known is None or known[0] is not found:
            known = self._whole[window] = (found, set())
        if size not in known[1] and found[0][:, size].min() >= 0:
            known[1].add(size)
        return size in known[1]

    def make(self, window: int, wanted: Iterable[tuple[int, int]]) -> None:
        """Make the tables of these laws and sizes, if they are missing."""
        with self._lock:
            old = self._made.get(window) or self._nothing()
            lines, ends, chances, ceiling_lines, ceilings = old
            missing = sorted({(law, size) for law, size in wanted if size and lines[law, size] < 0})
            if not missing and window in self._made:
                return
            made = list(all_cores().map(lambda task: self._make_one(window, *task), missing))
            lines, ceiling_lines = lines.copy(), ceiling_lines.copy()
            n_ceilings = len(ceilings)
            for number, (law, size) in enumerate(missing, len(ends)):
                lines[law, size] = number
                mine = np.flatnonzero(self._sources[3] == law)
                ceiling_lines[mine, size] = n_ceilings + np.arange(len(mine))
                n_ceilings += len(mine)
            self._made[window] = (
                lines,
                np.append(ends, [int(np.flatnonzero(line)[-1]) + 1 for line, _ in made]).astype(
                    int
                ),
                np.concatenate([chances, *(line[None] for line, _ in made)]),
                ceiling_lines,
                np.concatenate([ceilings, *(more for _, more in made)]),
            )

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
