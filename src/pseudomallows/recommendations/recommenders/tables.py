"""Tables of what comes next: the chance of each place among the unseen items.

Tables are made when they are asked for, and kept. What a caller gets is whole and never changes, so
any number of threads may ask: more tables make a new one, which takes the place of the old.
"""

import math
import threading
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...engines.executors import all_cores
from ...kernels.footrule.personal import GridChances
from ...kernels.groups import UNIFORM, Group, sum_first_chances
from ...kernels.look_up import PlaceChances, Sources, add_ceilings
from ...latent.own_laws import OwnLaw

FIRST_DRAWS = 2000  # behind a table, at least
TABLE_ERROR, MOST_DRAWS = 0.001, 50_000  # standard error of a chance before it is smoothed
CHEAP, CHEAP_ERROR, MOST_CHEAP_DRAWS = 64, 0.0004, 200_000  # up to this size, more draws are cheap
FINE = 8  # binary digits of a size that tell tables apart
SMALL, RATIO = 16, 1.125  # beyond this size tables are made for sizes of this ratio only


class _Made(NamedTuple):
    """The tables of a window, and the numbers of clicks for which they are made at all alphas."""

    tables: PlaceChances
    n_clicks: frozenset[int]


class Tables:
    """Tables of the paper's law, for each window, alpha and number of unseen items.

    Parameters
    ----------
    alphas : array
        The alphas there are.
    sources : Sources
        The draws that will be looked up.
    order : int
        In which the places of a group are visited.
    """

    def __init__(self, alphas: NDArray[np.float64], sources: Sources, order: int):
        self._alphas, self._sources, self._order = alphas, sources, order
        self.n_items = sources.orderings.shape[1]
        self._made: dict[int, _Made] = {}
        self._knots: dict[tuple[int, int, int], NDArray[np.float64]] = {}  # window, alpha, size
        self._lock = threading.Lock()

    def of(self, window: int, wanted: Iterable[tuple[int, int]]) -> PlaceChances:
        """The tables; those of the `wanted` numbers of alphas and sizes are made, if they are
        missing."""
        pairs = sorted({(alpha, size) for alpha, size in wanted if size})
        found = self._of(window)
        if all(found.lines[pair] >= 0 for pair in pairs):  # waits for no other thread
            return found
        with self._lock:
            lines, ends, chances, ceiling_lines, ceilings = self._of(window)
            missing = [pair for pair in pairs if lines[pair] < 0]
            self._make_knots(window, missing)
            made = list(all_cores().map(lambda pair: self._make_one(window, *pair), missing))
            lines, ceiling_lines = lines.copy(), ceiling_lines.copy()
            n_ceilings = len(ceilings)
            for number, (alpha, size) in enumerate(missing, len(ends)):
                lines[alpha, size] = number
                mine = np.flatnonzero(self._sources.alphas == alpha)
                ceiling_lines[mine, size] = n_ceilings + np.arange(len(mine))
                n_ceilings += len(mine)
            last_places = [int(np.flatnonzero(line)[-1]) + 1 for line, _ in made]
            tables = PlaceChances(
                lines,
                np.append(ends, last_places).astype(np.int64),
                np.concatenate([chances, *(line[None] for line, _ in made)]),
                ceiling_lines,
                np.concatenate([ceilings, *(more for _, more in made)]),
            )
            n_clicks = self.n_items - np.flatnonzero((lines >= 0).all(axis=0))
            self._made[window] = _Made(tables, frozenset([*n_clicks.tolist(), self.n_items]))
            return tables

    def drop(self, window: int) -> None:
        """Forget the tables of a window."""
        self._made.pop(window, None)
        for key in [key for key in list(self._knots) if key[0] == window]:
            self._knots.pop(key, None)

    @property
    def nbytes(self) -> int:
        """Memory."""
        knots = sum(knot.nbytes for knot in list(self._knots.values()))
        all_made = list(self._made.values())
        return knots + sum(part.nbytes for made in all_made for part in made.tables)

    def whole(self, window: int, n_clicks: Iterable[int]) -> PlaceChances | None:
        """The tables, if those of users with so many clicks are made for all alphas."""
        made = self._made.get(window)
        return made.tables if made is not None and made.n_clicks.issuperset(n_clicks) else None

    def _of(self, window: int) -> PlaceChances:
        """What is made so far."""
        if window in self._made:
            return self._made[window].tables
        n_items, shape = self.n_items, (len(self._sources.alphas), self.n_items + 1)
        return PlaceChances(
            np.full((len(self._alphas), n_items + 1), -1, dtype=np.int32),
            np.empty(0, dtype=np.int64),
            np.empty((0, n_items)),
            np.full(shape, -1, dtype=np.int32),
            np.empty((0, n_items)),
        )

    def _make_one(self, window: int, alpha: int, size: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Chances by one alpha, and the ceilings of its sources."""
        line = np.zeros(self.n_items)
        low, high = self._sizes_near(window, size)
        below, above = (self._knot(window, alpha, knot) for knot in (low, high))
        share = (size - low) / (high - low) if high > low else 0.0
        extended = np.append(below, np.full(size - low, below[-1]))
        line[:size] = (1 - share) * extended + share * above[:size]
        line[:size] *= min(window, size) / line[:size].sum()  # so many ranks are taken in all
        np.minimum(line, 1.0, out=line)
        orderings, weights, firsts = self._sources[:3]
        mine = np.flatnonzero(self._sources.alphas == alpha)
        ceilings = np.zeros((len(mine), self.n_items))
        for row, source in enumerate(mine):
            own = slice(firsts[source], firsts[source + 1])
            add_ceilings(orderings[own], weights[own], line, size, ceilings[row])
        return line, ceilings

    def _make_knots(self, window: int, pairs: list[tuple[int, int]]) -> None:
        """The chances between which those of these alphas and sizes lie, side by side."""
        keys = {
            (window, alpha, knot)
            for alpha, size in pairs
            for knot in self._sizes_near(window, size)
        }
        missing = sorted(keys - set(self._knots))
        made = all_cores().map(lambda key: self._make_knot(*key), missing)
        self._knots.update(zip(missing, made, strict=True))

    def _sizes_near(self, window: int, size: int) -> tuple[int, int]:
        """The sizes between whose chances those of a size lie. None but itself, where the window
        reaches near the end, and for other orders, which treat the ends in their own way."""
        near_end = size < 2 * window
        return (size, size) if near_end or self._order != UNIFORM else knots_of(size, self.n_items)

    def _knot(self, window: int, alpha: int, size: int) -> NDArray[np.float64]:
        kept = self._knots.get((window, alpha, size))  # None, if it has just been dropped
        return self._make_knot(window, alpha, size) if kept is None else kept

    def _make_knot(self, window: int, alpha: int, size: int) -> NDArray[np.float64]:
        lam = self._alphas[alpha] / self.n_items
        return first_chances(size, lam, min(window, size), self._order)


def knots_of(size: int, n_items: int) -> tuple[int, int]:
    """The sizes at hand between which a size lies; itself twice, if it is one of them.

    A few more unseen items hardly change what comes next, so the chances of a size are read between
    those of two others.

    >>> knots_of(9, 100), knots_of(50, 100), knots_of(100, 100)
    ((9, 9), (46, 52), (100, 100))
    """
    if size <= SMALL:
        return size, size
    step = math.log(size / SMALL) / math.log(RATIO)
    sizes = [round(SMALL * RATIO**number) for number in (math.floor(step), math.ceil(step))]
    low, high = max(n for n in (SMALL, *sizes) if n <= size), max(size, sizes[1])
    return (size, size) if size in (low, n_items) else (low, min(high, n_items))


def first_chances(size: int, lam: float, window: int, order: int) -> NDArray[np.float64]:
    """Chance of each place of a group to take one of its first `window` ranks, by the paper's law.

    From draws, as many as make the standard error 0.001 or less, 0.0004 for small groups. For
    uniform orders the chance never rises from a place to the next, which smooths them.
    """
    sums, squares = np.zeros((2, size))
    law = (Group(size, lam, order), window, sums, squares)
    sum_first_chances(size, 0, FIRST_DRAWS, *law)
    variance = float((squares / FIRST_DRAWS - (sums / FIRST_DRAWS) ** 2).max())
    error, most = (CHEAP_ERROR, MOST_CHEAP_DRAWS) if size <= CHEAP else (TABLE_ERROR, MOST_DRAWS)
    n_draws = min(max(FIRST_DRAWS, math.ceil(variance / error**2)), most)
    sum_first_chances(size, FIRST_DRAWS, n_draws - FIRST_DRAWS, *law)
    chances = np.minimum(sums / n_draws, 1.0)
    return falling(chances) if order == UNIFORM else chances


def falling(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nearest sequence, in least squares, that never rises.

    >>> falling(np.array([3.0, 1.0, 2.0, 0.0]))
    array([3. , 1.5, 1.5, 0. ])
    """
    from scipy.optimize import isotonic_regression

    return np.asarray(isotonic_regression(values, increasing=False).x)


def shared_size(size: int, n_items: int) -> int:
    """The size whose table serves a size too: itself up to 256, then one at most 1/128 larger, by
    which the chances of the first places hardly change.

    >>> shared_size(200, 1000), shared_size(601, 1000), shared_size(999, 1000)
    (200, 604, 1000)
    """
    step = _step(size)
    return min(-(-size // step) * step, n_items)


def _step(size: int) -> int:
    """From one table to the next: a power of 2, so that sizes never change their table."""
    return 1 << max((size - 1).bit_length() - FINE, 0)


def sizes_like(size: int, n_items: int) -> list[int]:
    """The sizes that a table serves."""
    found = range(max(1, size - _step(size)), size + 1)
    return [each for each in found if shared_size(each, n_items) == size]


class GridTables:
    """Tables of the exact law of users with a consensus of their own, for a grid of alphas."""

    def __init__(self, law: OwnLaw):
        self.law, self.n_items = law, law.n_items
        self._made: dict[int, GridChances] = {}
        self._lock = threading.Lock()

    def of(self, window: int, sizes: Iterable[int]) -> GridChances:
        """The chances, under the Mallows law of the unclicked items, to take one of the first
        `window` ranks. The tables of these sizes are made, if they are missing."""
        wanted = {size for size in sizes if size}
        found = self._made.get(window) or self._nothing(window)
        if all(found.lines[size] >= 0 for size in wanted):  # waits for no other thread
            return found
        with self._lock:
            lines, chances, places, far = self._made.get(window) or self._nothing(window)
            missing = sorted({shared_size(n, self.n_items) for n in wanted if lines[n] < 0})
            made = list(all_cores().map(lambda size: self._make_one(window, size), missing))
            lines = lines.copy()
            for number, size in enumerate(missing, len(chances)):
                lines[sizes_like(size, self.n_items)] = number
            more = np.concatenate([chances, *(near[None] for near, _ in made)])
            more_far = np.concatenate([far, *(beyond[None] for _, beyond in made)])
            self._made[window] = GridChances(lines, more, places, more_far)
            return self._made[window]

    def has(self, window: int, size: int) -> bool:
        """Is the table for so many unseen items made?"""
        found = self._made.get(window)
        return size == 0 or (found is not None and bool(found.lines[size] >= 0))

    def drop(self, window: int) -> None:
        """Forget the tables of a window."""
        self._made.pop(window, None)

    @property
    def nbytes(self) -> int:
        """Memory."""
        return sum(part.nbytes for table in list(self._made.values()) for part in table)

    def _nothing(self, window: int) -> GridChances:
        n_near, places = self.law.places(window)
        lines, n_alphas = np.full(self.n_items + 1, -1, dtype=np.int64), len(self.law.alphas)
        near, far = np.empty((0, n_alphas, n_near)), np.empty((0, n_alphas, len(places)))
        return GridChances(lines, near, places, far)

    def _make_one(self, window: int, size: int) -> tuple[NDArray[Any], NDArray[Any]]:
        return self.law.next_chances(window, size)
