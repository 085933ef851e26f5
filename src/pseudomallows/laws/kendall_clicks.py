"""Clicks by Kendall's distance: the clicked items take the first ranks, in an order not known.

Everything is exact, in time that goes with the clicks, and nothing is of the size of items times
items: see `kernels.kendall.click_sums`.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..data.blocks import Clicks
from ..distances.kendall import KENDALL, log_binomials
from ..distances.tallies import Counts, Proposals, Ranking, Stream, ranking_of
from ..engines.executors import Executor
from ..kernels.block_sums import draw_bucket_latent
from ..kernels.click_rows import ranks_of_clicks
from ..kernels.kendall import click_sums as kernels
from ..kernels.streams import Streams
from ..rankings import orderings_of
from .law import ClickLaw, ClickUsers, Clusters, ClusterTally, Curve, Floats, Labels

# Of swaps at all scales in a sweep, by Kendall's distance: by 2 with 200,000 items, and by 6 with
# 50,000, ranks in successive draws are uncorrelated (docs/measurements.md).
LEAST_ROUNDS, MOST_ROUNDS = 2, 6
ROOMY = 300_000  # items times rounds, beyond which the rounds take most of a sweep


class KendallTables(NamedTuple):
    """The clusters, and ``logs[cluster][c, 0]`` of the Gaussian binomials of n over c."""

    clusters: Clusters
    log_binomials: list[Floats]


class KendallClickRows(ClickUsers):
    """By Kendall's distance."""

    def log_likelihoods(self, tables: KendallTables) -> Floats:
        consensus, alphas = tables.clusters
        rates, columns = alphas / consensus.shape[1], []
        for cluster, logs in enumerate(tables.log_binomials):
            values, mine = np.empty((self.n_rows, 1)), slice(cluster, cluster + 1)
            kernels.kendall_log_likelihoods(self.clicks, consensus[mine], rates[mine], logs, values)
            columns.append(values)
        return np.concatenate(columns, axis=1)

    def count(self, labels: Labels, shape: tuple[int, ...]) -> Counts:
        """``counts[cluster, item]`` of clicks, then ``[cluster, size]`` of users."""
        counts = np.zeros(shape, dtype=np.int64)
        n_items = shape[1] - len(self.sizes)
        kernels.count_clicks_and_sizes(
            self.clicks, self.size_places, labels, self.weights, n_items, counts
        )
        return counts

    def draw(self, streams: Streams, consensus: Ranking, alpha: float) -> Ranking:
        n_items, sizes = len(consensus), np.diff(self.clicks.starts)
        known = ranks_of_clicks(self.clicks, n_items)
        known = np.where(known == 0, sizes[:, None] + 1, known).astype(np.int32)
        latent = np.empty_like(known)
        draw_bucket_latent(streams, known, orderings_of(consensus), alpha / n_items, latent)
        return latent


class KendallClickTally(ClusterTally):
    """``counts[item]`` clicks, and ``n_sizes[place]`` users with so many clicks."""

    def __init__(self, law: "KendallClicks", counts: Counts, n_sizes: Counts, n_users: int):
        self.law, self.counts, self.n_sizes, self.n_users = law, counts, n_sizes, n_users

    def curve(self, consensus: Ranking) -> Curve:
        n_items, sizes = self.law.n_items, self.law.sizes
        least = sizes * (sizes + 1) // 2  # sum of the first ranks
        excess = int(self.counts @ consensus - self.n_sizes @ least)

        def value(alpha: float) -> float:
            rate = alpha / n_items
            return -rate * excess - kernels.sum_binomials(n_items, rate, sizes, self.n_sizes)

        return value

    def move(
        self, stream: Stream, alpha: float, moves: Proposals, consensus: Ranking, beta: float = 1.0
    ) -> None:
        """Swaps of places at all scales, so many of them or so."""
        n_items = self.law.n_items
        n_passes = max(1, round(2 * moves.number / n_items))
        kernels.mix_consensus(stream, self.counts, beta * alpha / n_items, n_passes, consensus)

    def best(self, alpha: float) -> Ranking:
        """The items in the order of the numbers of clicks."""
        return ranking_of(np.argsort(-self.counts, kind="stable"))

    def evidence(self, alpha: float) -> Counts:
        return self.counts


class KendallClicks(ClickLaw):
    """Clicks by Kendall's distance: users are summed up by their numbers."""

    rows, usual_distance = KendallClickRows, KENDALL

    def __init__(
        self, prefs: Clicks, executor: Executor | None = None, sizes: Counts | None = None
    ):
        super().__init__(prefs, executor, sizes)
        n_rounds = min(MOST_ROUNDS, max(LEAST_ROUNDS, ROOMY // self.n_items))
        self.n_moves = n_rounds * self.n_items * kernels.n_scales(self.n_items) // 2

    @property
    def count_shape(self) -> tuple[int, ...]:
        return (self.n_items + len(self.sizes),)

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

    def tables(self, clusters: Clusters) -> KendallTables:
        largest = int(self.sizes.max(initial=0))
        logs = [log_binomials(self.n_items, alpha, largest) for alpha in clusters.alpha.tolist()]
        return KendallTables(clusters, [each[:, None] for each in logs])

    @property
    def evidence_shape(self) -> tuple[int, ...]:
        return (self.n_items,)

    def best_of(self, evidence: Floats, draws: Ranking) -> Ranking:
        """The items by their mean numbers of clicks; ties by a draw, which is to say at random."""
        return ranking_of(np.lexsort((draws[-1], -evidence)))

    def tally(self, counts: Counts, n_users: int, cluster: int = 0) -> KendallClickTally:
        return KendallClickTally(self, counts[: self.n_items], counts[self.n_items :], n_users)
