"""Clicks under Cayley's and Hamming's distance: nothing is latent.

The rest of a user's ranking is summed out by a closed form: see `kernels.latent.halves`.
"""

import copy
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..distances import Distance
from ..distances.halves import HalfLaw, HalfTally
from ..distances.tallies import Counts, Ranking
from ..engines.executors import Executor
from ..kernels.blocks import draw_hamming_latent
from ..kernels.click_rows import ClickRows
from ..kernels.latent.halves import draw_cayley_latent
from ..kernels.streams import Streams
from ..preferences import Clicks
from .clicks import ClickPopulation
from .population import DrawOrigin, ExactLaw


class HalfClicks(ClickPopulation):
    """Clicks by Cayley's or Hamming's distance; ``rows[row]`` is the number of each row among all
    of a fit, from whom they were selected."""

    how_latent = "summed out by a closed form"
    is_alpha_cheap = True
    known: HalfTally  # type: ignore[assignment]  # one that takes no full rankings

    def __init__(self, prefs: Clicks, executor: Executor | None = None, *, distance: Distance):
        super().__init__(prefs, executor)
        self.distance = distance
        law = HalfLaw(distance.name, self.n_items, self.click_sizes.sizes)
        self._rows = np.arange(self.n_rows)
        self.known = HalfTally(law, self._all_clicks, self.row_weights, self._rows, self.n_rows)

    @property
    def _all_clicks(self) -> ClickRows:
        return self.clicks_of_rows(slice(0, self.n_rows))

    @property
    def n_unknown(self) -> int:
        """None: what is not known is summed out."""
        return 0

    @property
    def is_alpha_by_distance(self) -> bool:
        """No: how many clicks a user has counts."""
        return False

    def select(self, weights: Counts, numbers: Counts) -> "HalfClicks":
        """The rows of weight above 0 alone, with these weights and numbers of first users."""
        chosen, part = np.flatnonzero(weights), copy.copy(self)
        part.clicks = replace(self.clicks.take(chosen), weights=weights[chosen])
        part._set_rows(part.clicks.weights, numbers[chosen])
        part.mean_ranks = -part.clicks.item_counts().astype(np.float64)
        part._rows = self._rows[chosen]
        part.known = self.known.selected(part._all_clicks, part.row_weights, part._rows)
        return part

    def log_likelihood(self, consensus: Ranking, alpha: float) -> float:
        """Log probability of all clicks, given consensus and alpha."""
        return self.known.log_likelihood(consensus, alpha / self.n_items)

    def full_log_likelihood(self, consensus: Ranking, alpha: float) -> float:
        """The same."""
        return self.log_likelihood(consensus, alpha)

    def log_likelihood_by_alpha(self, consensus: Ranking) -> Callable[[float], float]:
        """The same as a function of alpha."""
        counts, law, n_items = self.known.counts(consensus), self.known.law, self.n_items
        return lambda alpha: float(counts @ law.rounded(alpha / n_items))

    def row_log_likelihoods(
        self, rows: slice, consensus: Ranking, alpha: float
    ) -> NDArray[np.float64]:
        """Log probability of the clicks of one user of each row."""
        law = self.known.law
        cells = law.cells(self.clicks_of_rows(rows), consensus)
        return np.asarray(law.rounded(alpha / self.n_items)[cells])

    def count_rows(self, rows: slice, law: ExactLaw) -> Counts:
        """No rows have latent rankings."""
        raise TypeError(f"clicks by {self.distance.name} have no latent rankings")

    def redraw(self, known: Clicks, numbers: Counts, origin: DrawOrigin) -> Ranking:
        """A latent ranking of the last user of each row, by streams of their own."""
        each = np.ones_like(known.weights)
        streams = Streams(origin.seed, origin.number, numbers + known.weights - 1, each)
        clicks, lam = ClickRows(known.starts, known.codes), origin.alpha / self.n_items
        return draw_half_rankings(self.distance.name, streams, clicks, origin.consensus, lam)


def log_likelihoods_of_halves(
    distance: str, clicks: ClickRows, consensus: Ranking, alpha: float
) -> NDArray[np.float64]:
    """Log probability of each row of clicks, given their number."""
    n_items = len(consensus)
    law = HalfLaw(distance, n_items, np.unique(np.diff(clicks.starts)))
    return np.asarray(law.table(alpha / n_items)[law.cells(clicks, consensus)])


def draw_half_rankings(
    distance: str, streams: Streams, clicks: ClickRows, consensus: Ranking, lam: float
) -> Ranking:
    """``latent[row, item]`` given the clicks of each row, drawn exactly."""
    n_rows, n_items = len(clicks.starts) - 1, len(consensus)
    latent = np.empty((n_rows, n_items), dtype=np.int32)
    if distance == "cayley":
        draw_cayley_latent(streams, clicks, consensus, lam, latent)
        return latent
    known, owners = np.zeros_like(latent), np.repeat(np.arange(n_rows), np.diff(clicks.starts))
    known[owners, clicks.codes[clicks.starts[0] : clicks.starts[-1]]] = 1
    draw_hamming_latent(streams, known, consensus, lam, latent)
    return latent
