"""Latent rankings of users known by their clicks: exact draws, exact likelihood."""

import functools
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..distances import FOOTRULE, Distance
from ..distances.tallies import Counts, Ranking
from ..engines.executors import Executor
from ..kernels.click_rows import ClickRows, slice_clicks
from ..kernels.footrule.click_likelihood import own_log_likelihoods
from ..kernels.footrule.latent_clicks import draw_click_users
from ..kernels.footrule.walks import Laws, Walks, make_walks
from ..kernels.streams import Streams
from ..preferences import Clicks
from .population import DrawOrigin, ExactLaw, LocalPopulation, principal_components


class ClickPopulation(LocalPopulation):
    """Clicks: the clicked items have the first ranks, in an order that is not known."""

    everyone: Clicks
    of_distance: ClassVar[Distance] = FOOTRULE

    def __init__(
        self, prefs: Clicks, executor: Executor | None = None, numbers: Counts | None = None
    ):
        super().__init__(prefs.n_items, executor, self.of_distance)
        is_informative = prefs.is_informative
        self.clicks = prefs if is_informative.all() else prefs.take(is_informative)
        self.everyone, self.informative = prefs, self.clicks
        self._set_rows(self.clicks.weights, numbers)
        self.mean_ranks = -self.clicks.item_counts().astype(np.float64)  # most clicked, rank 1

    @property
    def n_unknown(self) -> int:
        """Number of rows of which something is not known: all."""
        return self.n_rows

    def count_rows(self, rows: slice, law: ExactLaw) -> Counts:
        """Counts of the latent ranks of some rows: of all, and of those shared with a partner."""
        counts = np.zeros((2, self.n_items, self.n_items), dtype=np.int64)
        streams = Streams(law.seed, law.number, self.row_numbers[rows], self.row_weights[rows])
        nobody, clicks = np.empty((0, self.n_items), dtype=np.int32), self.clicks_of_rows(rows)
        draw_click_users(streams, clicks, law.consensus, law.rate, law.partners, counts, nobody)
        return counts

    @functools.cached_property
    def click_sizes(self) -> Counts:  # type: ignore[override]
        """All numbers of clicks, rising; also of those from whom these users were selected."""
        return np.unique(self.clicks.n_clicks)

    @property
    def row_codes(self) -> Ranking:
        """The clicks of all rows."""
        return self.clicks.codes

    def starts_of(self, rows: slice) -> NDArray[np.int64]:
        """Where the clicks of some rows begin, and where the last of them end."""
        return self.clicks.starts[rows.start : rows.stop + 1]

    def clicks_of_rows(self, rows: slice) -> ClickRows:
        """The clicks of some rows, as kernels read them."""
        return slice_clicks(self.clicks, rows)

    @staticmethod
    def log_likelihoods(
        prefs: Clicks, rows: slice, consensus: Ranking, alpha: float
    ) -> NDArray[np.float64]:
        """Log probability of the clicks of one user of each row."""
        clicks, n_items = slice_clicks(prefs, rows), len(consensus)
        values = np.empty(len(clicks.starts) - 1)
        everyone, labels = np.arange(len(values)), np.zeros(len(values), dtype=np.int32)
        laws = Laws(np.asarray(consensus, dtype=np.int32)[None], np.zeros(1, dtype=np.int64))
        own_log_likelihoods(clicks, everyone, labels, laws, walks_of(n_items, float(alpha)), values)
        return values

    def of_rows(self, prefs: Clicks, numbers: Counts) -> "ClickPopulation":
        """A population of the same kind, of users who may have any of these numbers of clicks."""
        found = type(self)(prefs, self.executor, numbers)
        found.click_sizes = self.click_sizes
        return found

    def features(self, n_features: int) -> NDArray[np.float64]:
        """Leading axes of the clicks, each user's scaled to length 1."""
        from scipy.sparse import csr_array

        sizes = self.clicks.n_clicks
        values = np.repeat(1 / np.sqrt(sizes), sizes)
        shape = (self.n_rows, self.n_items)
        rows = csr_array((values, self.clicks.codes, self.clicks.starts), shape=shape)
        return principal_components(rows, n_features)

    def redraw(self, known: Clicks, numbers: Counts, origin: DrawOrigin) -> Ranking:
        """The latent rankings of these users, by the same streams, so with the same bits."""
        rankings = np.zeros((known.n_users, known.n_items), dtype=np.int32)
        counts = np.zeros((2, known.n_items, known.n_items), dtype=np.int64)
        streams = Streams(origin.seed, origin.number, numbers, known.weights)
        rows, rate = ClickRows(known.starts, known.codes), origin.alpha / known.n_items
        partners = np.full(known.n_items, -1)
        draw_click_users(streams, rows, origin.consensus, rate, partners, counts, rankings)
        return rankings


@functools.lru_cache(maxsize=4)
def walks_of(n_items: int, alpha: float) -> Walks:
    """What the walks of an alpha share; the blocks of rows ask one after the other."""
    return make_walks(np.array([alpha / n_items]), n_items)
