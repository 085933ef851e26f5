"""Rankings whose law is a distance: full ones by any distance, and ties and top-k lists by
Kendall's, where the known pairs and the sizes of the tied blocks say all (bucket orders: Fagin et
al. 2004)."""

import functools
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from .. import distances
from ..distances import Distance
from ..distances.tallies import Proposals, Stream
from ..distances.tallies import Tally as DistanceCounts
from ..engines.executors import Executor
from ..kernels.block_sums import bucket_log_likelihoods
from ..kernels.streams import Streams
from ..preferences import Rankings
from ..preferences.ties import block_sizes
from ..rankings import orderings_of
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
    principal_components,
)

ROWS_SCALE = 64  # of the rows of a block: one takes so few steps that fewer are not worth a task


class RankingRows(UserRows):
    """Some rows of rankings in blocks of ties."""

    def __init__(self, rankings: Ranking, weights: Counts, numbers: Counts, distance: str):
        self.rankings, self.weights, self.numbers = rankings, weights, numbers
        self.distance = distance

    def log_likelihoods(self, tables: "FullTables") -> Floats:
        clusters, sums = tables
        columns = [self._log_likelihoods(*each) for each in zip(*clusters, sums, strict=True)]
        return np.stack(columns, axis=1)

    def _log_likelihoods(self, consensus: Ranking, alpha: float, sums: Floats) -> Floats:
        if len(sums) == 1:
            return full_log_likelihoods(
                self.rankings, consensus, alpha, distances.get(self.distance)
            )
        values, rate = np.empty(self.n_rows), alpha / len(consensus)
        bucket_log_likelihoods(self.rankings, orderings_of(consensus), rate, sums, values)
        return values

    def draw(self, streams: Streams, consensus: Ranking, alpha: float) -> Ranking:
        """The items of a tie have a Mallows distribution of their own, by Kendall's distance."""
        latent, distance = self.rankings.copy(), distances.get(self.distance)
        for ranks, user in zip(latent, streams.first_users.tolist(), strict=True):
            for first in np.unique(ranks):
                mine = np.flatnonzero(ranks == first)
                mine = mine[np.argsort(consensus[mine])]
                if len(mine) > 1:
                    seeds = np.random.SeedSequence((streams.seed, streams.draw, user, int(first)))
                    own = int(seeds.generate_state(1, np.uint64)[0] >> 1)
                    rate = alpha * len(mine) / len(consensus)
                    ranks[mine] = first - 1 + distance.draw(len(mine), rate, 1, own)[0]
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


class RankedLaw(Law):
    """Rankings of any kind; a subclass says how it reads its rows."""

    def __init__(
        self, prefs: Rankings, executor: Executor | None, distance: Distance, scale: int = 1
    ):
        check_informative(prefs.is_informative)
        self.everyone, self.informative = prefs, prefs.take(prefs.is_informative)
        self.rankings, weights = self.informative.rankings, self.informative.weights
        numbers = np.cumsum(weights) - weights
        cut = cut_rows(len(weights), scale)
        self.distance = distance
        blocks = [self.make_rows(c, weights[c], numbers[c]) for c in cut]
        super().__init__(prefs.n_items, distance, blocks, [weights[c] for c in cut], executor)

    @abstractmethod
    def make_rows(self, rows: slice, weights: Counts, numbers: Counts) -> UserRows:
        """Some of the informative rows."""

    @functools.cached_property
    def mean_ranks(self) -> Floats:
        return self.informative.mean_ranks()

    def features(self, n_features: int) -> Floats:
        """Principal components of the ranks, unknown ones as the mean of what they may be."""
        filled = self.informative.filled_ranks()
        return principal_components(filled - filled.mean(axis=0), n_features)

    def select(self, rows: Counts) -> Self:
        return type(self)(self.informative.take(rows), self.executor, self.distance)

    def rankings_of(self, rows: Counts, order: Floats) -> Ranking:
        return in_order_of(self.rankings[rows], order)


class FullLaw(RankedLaw):
    """Full rankings by any distance; ties and top-k lists by Kendall's."""

    def __init__(
        self, prefs: Rankings, executor: Executor | None = None, distance: Distance | None = None
    ):
        closed = replace(prefs, rankings=close_gaps(prefs.rankings))
        distance = distances.KENDALL if distance is None else distance
        super().__init__(closed, executor, distance, ROWS_SCALE)
        self._tie_rows, self._tie_sizes = tied_blocks(self.rankings)
        self.has_ties = len(self._tie_rows) > 0
        self.how_latent = super().how_latent if self.has_ties else "none: everything is known"

    @classmethod
    def of_full(cls, rankings: Ranking, executor: Executor, distance: Distance) -> Self:
        """The law of rankings that are known to be full, one of each user."""
        law, ones = cls.__new__(cls), np.ones(len(rankings), dtype=np.int64)
        rows = RankingRows(rankings, ones, np.arange(len(ones)), distance.name)
        Law.__init__(law, rankings.shape[1], distance, [rows], [ones], executor)
        law.rankings, law.has_ties = rankings, False
        return law

    def make_rows(self, rows: slice, weights: Counts, numbers: Counts) -> RankingRows:
        return RankingRows(self.rankings[rows], weights, numbers, self.distance.name)

    def rows_of(self, users: Counts) -> RankingRows:
        some = self.everyone.take(users)
        return RankingRows(some.rankings, some.weights, users, self.distance.name)

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


def log_factorials(n_items: int, alpha: float) -> Floats:
    """``[m]``: log partition function of Kendall for m of the items, 0 to all of them.

    >>> np.exp(log_factorials(4, 0.0)).round(6).tolist()
    [1.0, 1.0, 2.0, 6.0, 24.0]
    """
    rate, sizes = alpha / n_items, np.arange(1, n_items + 1)
    terms = np.log(sizes) if rate == 0 else np.log(np.expm1(-rate * sizes) / np.expm1(-rate))
    return np.concatenate([[0.0], np.cumsum(terms)])


def has_buckets_only(rankings: Ranking) -> bool:
    """Are the ranks that items of rank 0 share in one piece, in every row?

    >>> has_buckets_only(np.array([[1, 0, 0], [0, 0, 3], [1, 1, 0]])), has_buckets_only(
    ...     np.array([[0, 2, 0]])
    ... )
    (True, False)
    """
    closed, missing = close_gaps(rankings), rankings == 0
    n_missing = missing.sum(axis=1)
    last = np.where(missing, closed, 0).max(axis=1) + n_missing - 1
    taken = (rankings > 0) & (rankings <= last[:, None])
    return bool(((last - n_missing) == taken.sum(axis=1))[n_missing > 0].all())


def close_gaps(rankings: Ranking) -> Ranking:
    """The same with the first rank that is left in place of 0.

    >>> close_gaps(np.array([[1, 0, 0], [2, 2, 0]], dtype=np.int32))
    array([[1, 2, 2],
           [2, 2, 1]], dtype=int32)
    """
    missing = rankings == 0
    if not missing.any():
        return rankings
    n_items = rankings.shape[1]
    ends = np.where(missing, 0, rankings + block_sizes(rankings))  # the rank behind a tie
    is_taken = np.zeros((len(rankings), n_items + 2), dtype=np.int64)
    rows = np.arange(len(rankings))[:, None]
    is_first = ~missing & _is_first_of_tie(rankings)
    np.add.at(is_taken, (np.broadcast_to(rows, rankings.shape)[is_first], rankings[is_first]), 1)
    np.add.at(is_taken, (np.broadcast_to(rows, rankings.shape)[is_first], ends[is_first]), -1)
    left = np.cumsum(is_taken, axis=1)[:, 1 : n_items + 1] == 0
    return np.where(missing, left.argmax(axis=1)[:, None] + 1, rankings).astype(np.int32)


def _is_first_of_tie(rankings: Ranking) -> NDArray[np.bool_]:
    order = np.argsort(rankings, axis=1, kind="stable")
    in_order = np.take_along_axis(rankings, order, axis=1)
    is_first = np.ones(rankings.shape, dtype=bool)
    is_first[:, 1:] = in_order[:, 1:] != in_order[:, :-1]
    result = np.empty_like(is_first)
    np.put_along_axis(result, order, is_first, axis=1)
    return result


def tied_blocks(rankings: Ranking) -> tuple[Counts, Counts]:
    """Row and size of each block of several items."""
    sizes = block_sizes(rankings)
    is_block = (sizes > 1) & _is_first_of_tie(rankings)
    return np.nonzero(is_block)[0], sizes[is_block]


def in_order_of(rankings: Ranking, order: NDArray[Any]) -> Ranking:
    """Full rankings that agree with what is known, the items of each tie by ``order[item]``.

    >>> in_order_of(np.array([[0, 2, 0], [2, 2, 1]], dtype=np.int32), np.array([3, 2, 1]))
    array([[3, 2, 1],
           [3, 2, 1]], dtype=int32)
    """
    n_items, full = rankings.shape[1], np.empty_like(rankings)
    for row, ranks in enumerate(rankings):
        known = np.flatnonzero(ranks)
        known = known[np.lexsort((order[known], ranks[known]))]
        firsts = ranks[known]
        behind = np.arange(len(known)) - np.searchsorted(firsts, firsts)
        full[row, known] = firsts + behind
        missing = np.flatnonzero(ranks == 0)
        left = np.setdiff1d(np.arange(1, n_items + 1), full[row, known])
        full[row, missing[np.argsort(order[missing])]] = left
    return full
