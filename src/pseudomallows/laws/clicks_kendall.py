"""Clicks by Kendall's distance: exact, in time that goes with the clicks; see
`kernels.kendall.click_sums`. Nothing here is of the size of items times items."""

import functools
from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..distances.kendall import KENDALL
from ..distances.tallies import ranking_of
from ..engines.executors import Executor
from ..kernels.click_rows import ClickRows, slice_clicks
from ..kernels.kendall import click_sums as kernels
from ..kernels.kendall.next_items import RATIO
from ..kernels.streams import Streams
from ..preferences import Clicks
from ..rankings import orderings_of
from .block_laws import click_features, click_rankings
from .law import (
    Clusters,
    ClusterTally,
    Counts,
    Curve,
    Floats,
    Labels,
    Law,
    Ranking,
    UserRows,
    check_informative,
    cut_rows,
)

LEAST_ROUNDS, MOST_ROUNDS = 2, 6  # of swaps at all scales in a sweep
ROOMY = 300_000  # items times rounds, beyond which the rounds take most of a sweep


class KendallTables(NamedTuple):
    """The clusters, and ``logs[cluster][c, 0]`` of the Gaussian binomials of n over c."""

    clusters: Clusters
    log_binomials: list[Floats]


class KendallClickRows(UserRows):
    """Some rows of clicks."""

    def __init__(self, clicks: ClickRows, sizes: Counts, weights: Counts, numbers: Counts):
        self.clicks, self.sizes, self.weights, self.numbers = clicks, sizes, weights, numbers

    def log_likelihoods(self, tables: KendallTables) -> Floats:
        """``logs[row, cluster]``, exact."""
        consensus, alphas = tables.clusters
        rates, columns = alphas / consensus.shape[1], []
        for cluster, logs in enumerate(tables.log_binomials):
            values, mine = np.empty((self.n_rows, 1)), slice(cluster, cluster + 1)
            kernels.kendall_log_likelihoods(self.clicks, consensus[mine], rates[mine], logs, values)
            columns.append(values)
        return np.concatenate(columns, axis=1)

    def count(self, labels: Labels, shape: tuple[int, ...]) -> Counts:
        """``counts[cluster, item]`` of clicks, then ``[cluster, size]`` of users."""
        counts, n_sizes = np.zeros(shape, dtype=np.int64), len(self.sizes)
        n_clicks = np.diff(self.clicks.starts)
        owners = np.repeat(np.arange(self.n_rows), n_clicks)
        codes = self.clicks.codes[self.clicks.starts[0] : self.clicks.starts[-1]]
        np.add.at(counts, (labels[owners], codes), self.weights[owners])
        places = shape[1] - n_sizes + np.searchsorted(self.sizes, n_clicks)
        np.add.at(counts, (labels, places), self.weights)
        return counts


class KendallClickTally(ClusterTally):
    """``counts[item]`` clicks, and ``n_sizes[place]`` users with so many clicks."""

    def __init__(self, law: "KendallClicks", counts: Counts, n_sizes: Counts, n_users: int):
        self.law, self.counts, self.n_sizes, self.n_users = law, counts, n_sizes, n_users

    def curve(self, consensus: Ranking) -> Curve:
        """The log likelihood under a consensus, as a function of alpha."""
        n_items, sizes = self.law.n_items, self.law.sizes
        total = int(kernels.sum_of_ranks(self.counts, consensus))

        def value(alpha: float) -> float:
            rate = alpha / n_items
            constant = kernels.kendall_constant(n_items, rate, sizes, self.n_sizes)
            return float(constant - rate * total)

        return value

    def move(
        self,
        stream: NDArray[np.uint64],
        alpha: float,
        n_moves: int,
        consensus: Ranking,
        *,
        beta: float = 1.0,
        move: str | None = None,
        leap: int = 1,
    ) -> None:
        """Swaps of places at all scales, `n_moves` of them or so."""
        n_items = self.law.n_items
        n_passes = max(1, round(2 * n_moves / n_items))
        kernels.mix_consensus(stream, self.counts, beta * alpha / n_items, n_passes, consensus)

    def best(self, alpha: float) -> Ranking:
        """The items in the order of the numbers of clicks."""
        return ranking_of(np.argsort(-self.counts, kind="stable"))

    def evidence(self, alpha: float) -> Counts:
        """The numbers of clicks."""
        return self.counts


class KendallClicks(Law):
    """Users known by their clicks, under Kendall's distance: summed up by their numbers."""

    def __init__(
        self, prefs: Clicks, executor: Executor | None = None, sizes: Counts | None = None
    ):
        check_informative(prefs.is_informative)
        is_informative = prefs.is_informative
        self.everyone = prefs
        self.informative = prefs if is_informative.all() else prefs.take(is_informative)
        weights = self.informative.weights
        self.sizes = np.unique(self.informative.n_clicks) if sizes is None else sizes
        numbers = np.cumsum(weights) - weights
        cut = cut_rows(len(weights))
        blocks = [
            KendallClickRows(slice_clicks(self.informative, c), self.sizes, weights[c], numbers[c])
            for c in cut
        ]
        super().__init__(prefs.n_items, KENDALL, blocks, [weights[c] for c in cut], executor)
        self._set_moves()

    def _set_moves(self) -> None:
        n_rounds = min(MOST_ROUNDS, max(LEAST_ROUNDS, ROOMY // self.n_items))
        self.n_moves = n_rounds * self.n_items * kernels.n_scales(self.n_items) // 2

    @property
    def count_shape(self) -> tuple[int, ...]:
        """Items and numbers of clicks."""
        return (self.n_items + len(self.sizes),)

    @functools.cached_property
    def mean_ranks(self) -> Floats:
        """Most clicked, rank 1."""
        return -self.informative.item_counts().astype(np.float64)

    def features(self, n_features: int) -> Floats:
        """Leading axes of the clicks, each user's scaled to length 1."""
        return click_features(self.informative, n_features)

    def select(self, rows: Counts) -> Self:
        """The law of some rows."""
        return type(self)(self.informative.take(rows), self.executor, self.sizes)

    def of_items(self, items: Counts) -> "KendallClicks":
        """The clicks on these items alone, of the rows that have some and not all."""
        places = np.full(self.n_items, -1, dtype=np.int32)
        places[items] = np.arange(len(items))
        clicks = self.informative
        codes = places[clicks.codes]
        starts = np.concatenate([[0], np.cumsum(codes >= 0)])[clicks.starts]
        kept = replace(
            clicks, items=clicks.items[items], starts=starts, codes=codes[codes >= 0], times=None
        )
        sizes = np.diff(starts)
        return KendallClicks(kept.take((sizes > 0) & (sizes < len(items))), self.executor)

    def rankings_of(self, rows: Counts, order: Floats) -> Ranking:
        """Clicked items first, both parts by `order`."""
        return click_rankings(self.informative.take(rows), order)

    def tables(self, clusters: Clusters) -> KendallTables:
        """The normalising constants."""
        largest = int(self.sizes.max(initial=0))
        logs = [log_binomials(self.n_items, alpha, largest) for alpha in clusters.alpha.tolist()]
        return KendallTables(clusters, [each[:, None] for each in logs])

    @property
    def evidence_shape(self) -> tuple[int, ...]:
        """One number for each item."""
        return (self.n_items,)

    def best_of(self, evidence: Floats, draws: Ranking) -> Ranking:
        """The items by their mean numbers of clicks; ties by a draw, which is to say at random."""
        return ranking_of(np.lexsort((draws[-1], -evidence)))

    def tally(self, counts: Counts, n_users: int, cluster: int = 0) -> KendallClickTally:
        """The tally of some users."""
        return KendallClickTally(self, counts[: self.n_items], counts[self.n_items :], n_users)

    def draw_latent(
        self, users: Counts, labels: Labels, clusters: Clusters, seed: int, number: int
    ) -> Ranking:
        """Drawn exactly."""
        known = self.everyone.take(users)
        latent = np.empty((len(users), self.n_items), dtype=np.int32)
        for label in np.unique(labels).tolist():
            mine = np.flatnonzero(labels == label)
            chosen, ones = known.take(mine), np.ones(len(mine), dtype=np.int64)
            streams = Streams(seed, number, users[mine], ones)
            rows = ClickRows(chosen.starts, chosen.codes)
            consensus, alpha = clusters.consensus[label], float(clusters.alpha[label])
            latent[mine] = draw_kendall_rankings(streams, rows, consensus, alpha)
        return latent


def log_binomials(n_items: int, alpha: float, largest: int) -> Floats:
    """``[c]``: log of the Gaussian binomial of n_items over c, at exp(-alpha / n_items).

    >>> np.exp(log_binomials(4, 0.0, 4)).round(6)
    array([1., 4., 6., 4., 1.])
    """
    values = np.empty(largest + 1)
    kernels.log_gaussian_binomials(n_items, alpha / n_items, values)
    return values


def draw_kendall_rankings(
    streams: Streams, clicks: ClickRows, consensus: Ranking, alpha: float
) -> Ranking:
    """A latent ranking of each row, given its clicks."""
    n_items = len(consensus)
    rankings = np.zeros((len(streams.weights), n_items), dtype=np.int32)
    law = (orderings_of(consensus), alpha / n_items)
    none = np.empty((0, 0), dtype=np.int64)
    kernels.draw_kendall_users(streams, clicks, *law, none, rankings)
    return rankings


def far_places(n_top: int, n_items: int) -> NDArray[np.int64]:
    """The places, from the last one tabulated on, at which probabilities further down are known.

    >>> far_places(100, 110).tolist()
    [99, 103, 107, 111]
    """
    places = [n_top - 1]
    while places[-1] < n_items:
        places.append(max(places[-1] + 1, round(places[-1] * RATIO)))
    return np.array(places, dtype=np.int64)
