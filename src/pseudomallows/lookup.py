"""Tables of the paper's law: the chance of each place among the unseen items to come next."""

import threading
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from .executors import all_cores
from .kernels.groups import UNIFORM, count_group

TABLE_DRAWS = 2000  # behind each table

Table = tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.float64]]


class Tables:
    """One table for each window, concentration and number of unseen items, made when asked for.

    ``of(window)`` has what `look_up` reads, and is never changed: more tables make a new one.
    """

    def __init__(self, n_items: int, alphas: NDArray[np.float64], order: int):
        self.n_items, self._alphas, self._order = n_items, alphas, order
        self._made: dict[int, Table] = {}
        self._lock = threading.Lock()

    def of(self, window: int) -> Table:
        """``rows[law, size]``, -1 if not made; ``ends[row]``, from which place on the chances are
        0; ``chances[row, place]``. KeyError, if there is nothing for this window."""
        return self._made[window]

    def drop(self, window: int) -> None:
        """Forget the tables of a window."""
        self._made.pop(window, None)

    @property
    def nbytes(self) -> int:
        """Memory."""
        return sum(part.nbytes for table in list(self._made.values()) for part in table)

    def has(self, window: int, size: int) -> bool:
        """Are the tables for so many unseen items made, for all laws?"""
        found = self._made.get(window)
        return size == 0 or (found is not None and bool(found[0][:, size].min() >= 0))

    def make(self, window: int, wanted: Iterable[tuple[int, int]]) -> None:
        """Make the tables of these laws and sizes, if they are missing."""
        with self._lock:
            empty = (
                np.full((len(self._alphas), self.n_items + 1), -1, dtype=np.int32),
                np.empty(0, dtype=np.int64),
                np.empty((0, self.n_items)),
            )
            rows, ends, chances = self._made.get(window, empty)
            missing = sorted({(law, size) for law, size in wanted if size and rows[law, size] < 0})

            def fill(task: tuple[int, int]) -> NDArray[np.float64]:
                law, size = task
                line, lam = np.zeros(self.n_items), self._alphas[law] / self.n_items
                line[:size] = first_chances(size, lam, min(window, size), self._order)
                return line

            if not missing and window in self._made:
                return
            more = np.array(list(all_cores().map(fill, missing))).reshape(-1, self.n_items)
            rows = rows.copy()
            for number, (law, size) in enumerate(missing, len(ends)):
                rows[law, size] = number
            lasts = [int(np.flatnonzero(line)[-1]) + 1 for line in more]
            ends = np.concatenate([ends, np.array(lasts, dtype=np.int64)])
            self._made[window] = (rows, ends, np.concatenate([chances, more]))


def first_chances(size: int, lam: float, k: int, order: int) -> NDArray[np.float64]:
    """Chance of each place of a group to take one of its first k ranks, under the paper's law.

    From draws. For uniform orders the law is the same read from behind, which doubles the draws,
    and the chance never rises from a place to the next, which smooths them.
    """
    counts = np.zeros((size, size), dtype=np.int64)
    count_group(size, size, lam, order, TABLE_DRAWS, counts)
    chances = counts[:, :k].sum(axis=1) / TABLE_DRAWS
    if order != UNIFORM:
        return chances
    mirrored = counts[::-1, ::-1][:, :k].sum(axis=1) / TABLE_DRAWS
    return falling((chances + mirrored) / 2)


def falling(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nearest sequence, in least squares, that never rises.

    >>> falling(np.array([3.0, 1.0, 2.0, 0.0]))
    array([3. , 1.5, 1.5, 0. ])
    """
    from scipy.optimize import isotonic_regression

    return np.asarray(isotonic_regression(values, increasing=False).x)
