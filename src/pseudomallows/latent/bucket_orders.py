"""Users who put items in buckets, one before the other: nothing need be latent.

Full rankings, whose buckets have one item each, by any distance; and ties and top-k lists by
Kendall's, where the known pairs and the sizes of the buckets say all.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..distances import Distance
from ..distances.kendall import KENDALL
from ..distances.tallies import Counts, Ranking
from ..engines.executors import Executor
from ..kernels.block_sums import bucket_log_likelihoods
from ..preferences import Rankings
from ..preferences.ties import block_sizes
from ..rankings import orderings_of
from .population import DrawOrigin, Population
from .ranking_population import RankedPopulation, log_likelihoods_of_full


class BucketPopulation(RankedPopulation):
    """Rankings in buckets; items without a rank are one too.

    A row of weight 0 counts for nobody: the users of a cluster are all rows, most of them of weight
    0, so that nothing is copied when a user moves.
    """

    rows_at_once = 2**14  # so few steps for each that fewer rows are not worth a thread

    def __init__(
        self,
        prefs: Rankings,
        executor: Executor | None = None,
        numbers: Counts | None = None,
        distance: Distance = KENDALL,
    ):
        super().__init__(prefs, executor, numbers, distance)
        rankings = close_gaps(self.informative.rankings)
        self.informative = replace(self.informative, rankings=rankings)
        self.known = self.tally_of(rankings, self.row_weights)
        self._bucket_rows, self._bucket_sizes = _tied_buckets(rankings)
        self.how_latent = (
            "summed out by a closed form" if len(self._bucket_rows) else "none: everything is known"
        )

    @staticmethod
    def holds(prefs: Rankings) -> bool:
        """Are all rows in buckets?"""
        return has_buckets_only(prefs.rankings)

    @staticmethod
    def log_likelihoods(
        prefs: Rankings, rows: slice, consensus: Ranking, alpha: float
    ) -> NDArray[np.float64]:
        """Log probability of one user of each row, by Kendall's distance."""
        rankings, n_items = close_gaps(prefs.rankings[rows]), len(consensus)
        values, ordering = np.empty(len(rankings)), orderings_of(consensus)
        sums = log_factorials(n_items, alpha)
        bucket_log_likelihoods(rankings, ordering, alpha / n_items, sums, values)
        return values

    def row_log_likelihoods(
        self, rows: slice, consensus: Ranking, alpha: float
    ) -> NDArray[np.float64]:
        """Log probability of one user of each row."""
        if len(self._bucket_rows):
            return self.log_likelihoods(self.informative, rows, consensus, alpha)
        rankings = self.informative.rankings[rows]
        return log_likelihoods_of_full(rankings, consensus, alpha, self.distance)

    @property
    def n_unknown(self) -> int:
        """None: what is not known is summed out."""
        return 0

    @property
    def is_alpha_by_distance(self) -> bool:
        """Not if there are buckets of several items."""
        return not len(self._bucket_rows)

    def full_log_likelihood(self, consensus: Ranking, alpha: float) -> float:
        """Log probability of all that is known, given consensus and alpha."""
        return self.log_likelihood_by_alpha(consensus)(alpha)

    def log_likelihood(self, consensus: Ranking, alpha: float) -> float:
        """The same at once: the tally has all rows."""
        return self.log_likelihood_by_alpha(consensus)(alpha)

    def log_likelihood_by_alpha(self, consensus: Ranking) -> Callable[[float], float]:
        """The same as a function of alpha."""
        n_items, n_users, distance = self.n_items, self.n_users, self.known.distance(consensus)

        def full(alpha: float) -> float:
            log_partition = self.distance.log_partition(n_items, alpha)
            return -alpha / n_items * distance - n_users * log_partition

        if not len(self._bucket_rows):
            return full
        weights = self.row_weights[self._bucket_rows]
        counts = np.bincount(self._bucket_sizes, weights, n_items + 1)
        return lambda alpha: float(full(alpha) + counts @ log_factorials(n_items, alpha))

    def redraw(self, known: Rankings, numbers: Counts, origin: DrawOrigin) -> Ranking:
        """Latent rankings: the items of a bucket have a Mallows distribution of their own."""
        found = close_gaps(known.rankings)
        for ranks, number in zip(found, numbers.tolist(), strict=True):
            for first in np.unique(ranks):
                mine = np.flatnonzero(ranks == first)
                mine = mine[np.argsort(origin.consensus[mine])]
                seeds = np.random.SeedSequence((origin.seed, origin.number, number, int(first)))
                seed = int(seeds.generate_state(1, np.uint64)[0] >> 1)
                alpha = origin.alpha * len(mine) / self.n_items
                if len(mine) > 1:
                    ranks[mine] = first - 1 + self.distance.draw(len(mine), alpha, 1, seed)[0]
        return found

    def share_out(self, counts: Counts, before: Sequence[Population]) -> list[Any]:
        """The users of each cluster; their tallies change by those who come and go."""
        columns = np.ascontiguousarray(counts.T)
        return [self._part(mine, old) for mine, old in zip(columns, before, strict=True)]

    def _part(self, weights: Counts, before: Population) -> "BucketPopulation | None":
        """The same rows with other weights, most of them as in `before`; None if all are 0."""
        if not weights.any():
            return None
        if getattr(before, "informative", None) is not self.informative:
            before = self
        part, rankings = copy.copy(self), self.informative.rankings
        part.known = before.known.recounted(rankings, before.row_weights, weights)
        part.row_weights = weights
        return part


def log_factorials(n_items: int, alpha: float) -> NDArray[np.float64]:
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


def _tied_buckets(rankings: Ranking) -> tuple[Counts, Counts]:
    """Row and size of each bucket of several items."""
    sizes = block_sizes(rankings)
    is_bucket = (sizes > 1) & _is_first_of_tie(rankings)
    return np.nonzero(is_bucket)[0], sizes[is_bucket]
