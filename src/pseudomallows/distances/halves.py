"""The tally of clicks under Cayley's and Hamming's distance, latent rankings summed out: see
`kernels.latent.half_moves`."""

import functools
import math
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..kernels.click_rows import ClickRows
from ..kernels.latent import half_moves as kernels
from ..kernels.latent.halves import CAYLEY, HAMMING
from ..kernels.streams import start_stream
from .tallies import MEAN_UNIT, MOVES, Counts, Ranking

KINDS = {"cayley": CAYLEY, "hamming": HAMMING}
LEAST_LAM, MOST_LAM = 1e-6, 50.0  # between which the best one is looked for
N_ROUNDS = 4  # of a better consensus and a better alpha, in turn
N_TRIES, SEED = 5, 12345  # places from which a better consensus is looked for
UNITS = 2.0**30  # of a log probability

Floats = NDArray[np.float64]


class HalfLaw:
    """Log probabilities of clicks: ``table[firsts[place] + b]`` of ``sizes[place]`` clicks, b of
    them beyond that place of the consensus."""

    def __init__(self, distance: str, n_items: int, sizes: Counts):
        self.n_items, self.sizes = n_items, sizes
        self._kind = KINDS[distance]
        self.firsts = np.concatenate([[0], np.cumsum(np.minimum(sizes, n_items - sizes) + 1)])

    def table(self, lam: float) -> Floats:
        """At some lam, alpha / n_items."""
        values = np.empty(self.firsts[-1])
        kernels.fill_table(self._kind, lam, self.n_items, self.sizes, self.firsts, values)
        return values

    def rounded(self, lam: float) -> Floats:
        """The same in whole units, so that sums over users are the same in any order."""
        return np.asarray(np.rint(self.table(lam) * UNITS) / UNITS)

    def firsts_of(self, n_clicks: Counts) -> Counts:
        """The first cell of users with so many clicks."""
        return self.firsts[np.searchsorted(self.sizes, n_clicks)]

    def cells(self, clicks: ClickRows, consensus: Ranking) -> Counts:
        """The cell of each row of clicks."""
        firsts = self.firsts_of(np.diff(clicks.starts))
        cells = np.empty(len(firsts), dtype=np.int64)
        kernels.fill_row_cells(clicks, firsts, consensus, cells)
        return cells


class HalfTally:
    """Users and their clicks; ``rows[row]`` is the number of each among `n_all`, from whom they
    were selected."""

    is_proved = False  # is `best` sure to be the likeliest?
    _unit = 1  # what a user weighs

    def __init__(self, law: HalfLaw, clicks: ClickRows, weights: Counts, rows: Counts, n_all: int):
        self.law, self.n_items, self._n_all = law, law.n_items, n_all
        self._clicks, self._weights, self._rows = clicks, weights, rows

    def selected(self, clicks: ClickRows, weights: Counts, rows: Counts) -> Self:
        """The tally of some of all users."""
        return type(self)(self.law, clicks, weights, rows, self._n_all)

    @functools.cached_property
    def users(self) -> kernels.HalfUsers:
        """The clicks as kernels take them, by item; made when asked."""
        n_clicks, clicks = np.diff(self._clicks.starts), self._clicks
        order = np.argsort(n_clicks, kind="stable")
        starts, rows = np.empty(self.n_items + 1, np.int64), np.empty(n_clicks.sum(), np.int64)
        kernels.list_rows(clicks, order, starts, rows)
        ends = np.cumsum(np.bincount(n_clicks, minlength=self.n_items + 1))
        firsts = self.law.firsts_of(n_clicks[order])
        return kernels.HalfUsers(starts, rows, ends, firsts, self._weights[order])

    def counts(self, consensus: Ranking) -> Counts:
        """How many users are in each cell: all that alpha depends on, given a consensus."""
        cells, n_cells = self.law.cells(self._clicks, consensus), int(self.law.firsts[-1])
        return np.bincount(cells, self._weights, n_cells).astype(np.int64)

    def distance(self, consensus: Ranking) -> int:
        """Clicks that the consensus puts beyond the number of the user's clicks."""
        firsts = self.law.firsts
        beyond = np.arange(firsts[-1]) - np.repeat(firsts[:-1], np.diff(firsts))
        return int(self.counts(consensus) @ beyond)

    def log_likelihood(self, consensus: Ranking, lam: float) -> float:
        """Log probability of all clicks; lam is alpha / n_items."""
        return float(self.counts(consensus) @ self.law.rounded(lam))

    def best_lam(self, consensus: Ranking) -> float:
        """The lam that makes the clicks likeliest, given a consensus, within a wide range."""
        from scipy.optimize import minimize_scalar

        counts = self.counts(consensus)
        found = minimize_scalar(
            lambda log_lam: -float(counts @ self.law.table(math.exp(log_lam))),
            bounds=(math.log(LEAST_LAM), math.log(MOST_LAM)),
            method="bounded",
            options={"xatol": 1e-3},
        )
        return math.exp(found.x)

    def best(self) -> Ranking:
        """A good consensus: from the order of the numbers of clicks, items are exchanged while that
        helps, at the best alpha; then again from some places that a chain leads to. It is kept."""
        return self._best.copy()

    @functools.cached_property
    def _best(self) -> Ranking:
        clicks, n_clicks = self._clicks, np.diff(self._clicks.starts)
        codes = clicks.codes[clicks.starts[0] : clicks.starts[-1]]
        clicked = np.bincount(codes, np.repeat(self._weights, n_clicks), self.n_items)
        best = np.empty(self.n_items, dtype=np.int32)
        best[np.argsort(-clicked, kind="stable")] = np.arange(1, self.n_items + 1)
        lam, most = self._climb(best)
        stream = np.empty(1, dtype=np.uint64)
        start_stream(SEED, 0, 0, stream)
        for _ in range(N_TRIES):
            tried = best.copy()
            self.move(stream, lam, 10 * self.n_items, tried)
            its_lam, value = self._climb(tried)
            if value > most:
                best, lam, most = tried, its_lam, value
        return best

    def _climb(self, consensus: Ranking) -> tuple[float, float]:
        """Exchange items while that helps; the best lam in the end, and the log likelihood."""
        lam = self.best_lam(consensus)
        for _ in range(N_ROUNDS):
            if not kernels.improve_by_cells(self.users, self.law.rounded(lam), consensus):
                break
            lam = self.best_lam(consensus)
        return lam, self.log_likelihood(consensus, lam)

    @property
    def evidence(self) -> Counts:
        """How many of all users are here."""
        found = np.zeros(self._n_all, dtype=np.int64)
        found[self._rows] = self._weights
        return found

    def best_of(self, evidence: NDArray[Any]) -> Ranking:
        """A good consensus for users of such mean numbers."""
        weights = np.rint(evidence[self._rows] * MEAN_UNIT).astype(np.int64)
        means = self.selected(self._clicks, weights, self._rows)
        means._unit = MEAN_UNIT
        return means.best()

    def move(
        self,
        stream: NDArray[np.uint64],
        scale: float,
        n_moves: int,
        consensus: Ranking,
        move: str = "swap",
        leap: int = 1,
    ) -> None:
        """Move a consensus in place by Metropolis proposals; `scale` is alpha / n_items.

        A proposal visits those who clicked one of two items, and have as many clicks as there are
        between their places.
        """
        table = self.law.rounded(scale) / self._unit
        kernels.move_by_cells(stream, self.users, table, MOVES[move], leap, n_moves, consensus)
