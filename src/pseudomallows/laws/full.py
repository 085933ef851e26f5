"""Rankings whose law is a distance: full ones by any distance, and ties and top-k lists by
Kendall's, where the known pairs and the sizes of the tied blocks say all (bucket orders: Fagin et
al. 2004)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Rankings
from ..distances.distance import Distance
from ..distances.kendall import KENDALL, log_factorials
from ..distances.tallies import Counts, Proposals, Ranking, Stream
from ..distances.tallies import Tally as DistanceCounts
from ..engines.executors import Executor
from ..kernels.block_sums import bucket_log_likelihoods, draw_bucket_latent
from ..kernels.streams import Streams
from ..rankings import orderings_of
from .law import (
    Clusters,
    ClusterTally,
    Curve,
    Floats,
    Labels,
    Law,
    RankedLaw,
    UserRows,
    open_ranks,
)

ROWS_SCALE = 64  # of the rows of a block: one takes so few steps that fewer are not worth a task


class RankingRows(UserRows):
    """Some rows of rankings in blocks of ties."""

    def __init__(self, rankings: Ranking, weights: Counts, numbers: Counts, distance: Distance):
        self.rankings, self.weights, self.numbers = rankings, weights, numbers
        self.distance = distance

    def log_likelihoods(self, tables: "FullTables") -> Floats:
        clusters, sums = tables
        columns = [self._log_likelihoods(*each) for each in zip(*clusters, sums, strict=True)]
        return np.stack(columns, axis=1)

    def _log_likelihoods(self, consensus: Ranking, alpha: float, sums: Floats) -> Floats:
        if len(sums) == 1:
            return full_log_likelihoods(self.rankings, consensus, alpha, self.distance)
        values, rate = np.empty(self.n_rows), alpha / len(consensus)
        bucket_log_likelihoods(self.rankings, orderings_of(consensus), rate, sums, values)
        return values

    def draw(self, streams: Streams, consensus: Ranking, alpha: float) -> Ranking:
        latent, rate = np.empty_like(self.rankings), alpha / len(consensus)
        draw_bucket_latent(streams, self.rankings, orderings_of(consensus), rate, latent)
        return latent


class FullTables(NamedTuple):
    """The clusters, and ``sums[cluster]``: the log partition functions of blocks by Kendall's
    distance, or of all items alone where there are no ties."""

    clusters: Clusters
    sums: list[Floats]


class DistanceTally(ClusterTally):
    """Distances add up: `known` counts what the users say, `block_counts[size]` their ties."""

    def __init__(
        self,
        law: "FullLaw",
        known: DistanceCounts,
        row_weights: Counts,  # of the rows that it counts
        block_counts: Counts | None,
    ):
        self.law, self.known, self.block_counts = law, known, block_counts
        self.row_weights, self.n_users = row_weights, int(row_weights.sum())

    @property
    def is_proved(self) -> bool:  # type: ignore[override]
        return self.known.is_proved

    def curve(self, consensus: Ranking) -> Curve:
        n_items, n_users = self.law.n_items, self.n_users
        away, distance = self.known.distance(consensus), self.law.distance

        def full(alpha: float) -> float:
            return -alpha / n_items * away - n_users * distance.log_partition(n_items, alpha)

        counts = self.block_counts
        if counts is None:
            return full
        return lambda alpha: float(full(alpha) + counts @ log_factorials(n_items, alpha))

    def move(
        self, stream: Stream, alpha: float, moves: Proposals, consensus: Ranking, beta: float = 1.0
    ) -> None:
        self.known.move(stream, beta * alpha / self.law.n_items, moves, consensus)

    def best(self, alpha: float) -> Ranking:
        return self.known.best()

    def evidence(self, alpha: float) -> NDArray[Any]:
        return self.known.evidence


class FullLaw(RankedLaw):
    """Full rankings by any distance; ties and top-k lists by Kendall's."""

    def __init__(
        self, prefs: Rankings, executor: Executor | None = None, distance: Distance | None = None
    ):
        closed = replace(prefs, rankings=close_gaps(prefs.rankings))
        distance = KENDALL if distance is None else distance
        super().__init__(closed, executor, distance, ROWS_SCALE)
        self._tie_rows, self._tie_sizes = tied_blocks(self.rankings)
        self.has_ties = len(self._tie_rows) > 0
        self.how_latent = super().how_latent if self.has_ties else "none: everything is known"

    @classmethod
    def of_full(cls, rankings: Ranking, executor: Executor, distance: Distance) -> Self:
        """The law of rankings that are known to be full, one of each user."""
        law, ones = cls.__new__(cls), np.ones(len(rankings), dtype=np.int64)
        rows = RankingRows(rankings, ones, np.arange(len(ones)), distance)
        Law.__init__(law, rankings.shape[1], distance, [rows], [ones], executor)
        law.rankings, law.has_ties = rankings, False
        return law

    def make_rows(self, rows: slice, weights: Counts, numbers: Counts) -> RankingRows:
        return RankingRows(self.rankings[rows], weights, numbers, self.distance)

    def rows_of(self, users: Counts) -> RankingRows:
        some = self.everyone.take(users)
        return RankingRows(some.rankings, some.weights, users, self.distance)

    def tables(self, clusters: Clusters) -> FullTables:
        alphas = clusters.alpha.tolist()
        if self.has_ties:
            return FullTables(clusters, [log_factorials(self.n_items, alpha) for alpha in alphas])
        for alpha in alphas:  # remembered, so that no block makes them again
            self.distance.log_partition(self.n_items, alpha)
        return FullTables(clusters, [np.zeros(1)] * len(alphas))

    def tallies(
        self, labels: Labels | None, n_clusters: int, before: Sequence[ClusterTally] = ()
    ) -> list[ClusterTally]:
        """The tally of each cluster; from those before, only users who came or went are counted."""
        tallies: list[ClusterTally] = []
        for cluster in range(n_clusters):
            weights = self.row_weights if labels is None else self.row_weights * (labels == cluster)
            old = before[cluster] if before else None
            tallies.append(self._tally(weights, old))
        return tallies

    def _tally(self, weights: Counts, old: Any) -> DistanceTally:
        rankings = self.rankings
        if old is None:
            known = self.distance.tally(self.n_items)
            known.add(rankings, weights)
        else:
            known = old.known.recounted(rankings, old.row_weights, weights)
        ties = None
        if self.has_ties:
            ties = np.bincount(self._tie_sizes, weights[self._tie_rows], self.n_items + 1)
        return DistanceTally(self, known, weights, ties)


def full_log_likelihoods(
    rankings: Ranking, consensus: Ranking, alpha: float, distance: Distance
) -> Floats:
    """Log probability of each row of full rankings, by any distance."""
    n_items = len(consensus)
    away = distance.between(rankings, consensus)
    return np.asarray(-alpha / n_items * away - distance.log_partition(n_items, alpha))


def has_buckets_only(rankings: Ranking) -> bool:
    """Are the ranks that items of rank 0 share in one piece, in every row?

    >>> has_buckets_only(np.array([[1, 0, 0], [0, 0, 3], [1, 1, 0]])), has_buckets_only(
    ...     np.array([[0, 2, 0]])
    ... )
    (True, False)
    """
    is_open = open_ranks(rankings)
    begins = is_open & ~np.pad(is_open, ((0, 0), (1, 0)))[:, :-1]
    return bool((begins.sum(axis=1) <= 1).all())


def close_gaps(rankings: Ranking) -> Ranking:
    """The same with the first rank that is left in place of 0.

    >>> close_gaps(np.array([[1, 0, 0], [2, 2, 0]], dtype=np.int32))
    array([[1, 2, 2],
           [2, 2, 1]], dtype=int32)
    """
    missing = rankings == 0
    if not missing.any():
        return rankings
    firsts = open_ranks(rankings).argmax(axis=1) + 1
    return np.where(missing, firsts[:, None], rankings).astype(np.int32)


def tied_blocks(rankings: Ranking) -> tuple[Counts, Counts]:
    """Row and size of each block of several items; no rank is missing.

    >>> [each.tolist() for each in tied_blocks(np.array([[1, 1, 3], [1, 2, 3], [1, 1, 1]]))]
    [[0, 2], [2, 3]]
    """
    n_rows, n_items = rankings.shape
    cells = np.arange(n_rows)[:, None] * n_items + rankings - 1
    sizes = np.bincount(cells.ravel(), minlength=n_rows * n_items)
    blocks = np.flatnonzero(sizes > 1)
    return blocks // n_items, sizes[blocks]
