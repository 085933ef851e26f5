"""The tally of Cayley's and Ulam's distance, which need every distinct ranking."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..kernels.costs import count_ranks
from ..kernels.distances.cycles import improve_by_cycles, move_by_cycles
from ..kernels.distances.insertions import improve_by_places, move_by_insertions
from ..kernels.distances.list_loops import (
    ULAM,
    RankingList,
    best_of_all,
    list_distance,
    move_by_list,
)
from ..rankings import orderings_of
from .tallies import MOVES, Counts, Proposals, Ranking, Stream, Tally, best_assignment, ranking_of

MOST_LISTED_ITEMS = 7  # whose best order by a list is sought through all 5,040; of 8, 40,320


class ListTally(Tally):
    """``counts[row]`` users have the ranking ``rankings[row]``; equal rankings are kept once."""

    def __init__(self, kind: int, rankings: Ranking, counts: Counts):
        self._kind, self.rankings, self.counts = kind, rankings, counts

    @classmethod
    def of(cls, kind: int, rankings: Ranking, weights: Counts) -> Self:
        """The tally of rankings, each as often as its weight says; those with a rank of 0 are
        skipped. `kind` is the code of the distance in `kernels.distances.list_loops`."""
        used = (weights != 0) & (rankings > 0).all(axis=1)
        rows, counts = rankings[used], weights[used]
        order = np.argsort(rows @ _multipliers(rows.shape[1]), kind="stable")  # equal ones in turn
        rows, is_new = rows[order], np.ones(len(rows), dtype=bool)
        is_new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
        sums = np.add.reduceat(counts[order], np.flatnonzero(is_new))
        return cls(kind, np.ascontiguousarray(rows[is_new], dtype=np.int32), sums)

    @classmethod
    def empty(cls, kind: int, n_items: int) -> Self:
        """A tally of no users."""
        return cls(kind, np.empty((0, n_items), dtype=np.int32), np.empty(0, dtype=np.int64))

    @property
    def n_items(self) -> int:
        return int(self.rankings.shape[1])

    @property
    def is_proved(self) -> bool:  # type: ignore[override]
        return self.n_items <= MOST_LISTED_ITEMS

    @property
    def _users(self) -> RankingList:
        return RankingList(self._kind, self.rankings, self.counts)

    def rank_sums(self) -> Counts:
        return np.asarray(self.counts @ (self.rankings.astype(np.int64) - 1))

    def add(self, rankings: Ranking, weights: Counts) -> None:
        """Add full rankings, each as often as its weight says; others are skipped."""
        all_rankings = np.concatenate([self.rankings, rankings])
        all_weights = np.concatenate([self.counts, weights])
        joined = type(self).of(self._kind, all_rankings, all_weights)
        self.rankings, self.counts = joined.rankings, joined.counts

    def recounted(self, rankings: Ranking, before: Counts, after: Counts) -> Self:
        return type(self).of(self._kind, rankings, after)

    def distance(self, consensus: Ranking) -> int:
        scratch = np.empty(self.n_items, dtype=np.int64)
        return int(list_distance(self._users, orderings_of(consensus), scratch))

    def best(self) -> Ranking:
        """The consensus of the smallest distance, by trying all orders of up to 7 items.

        For more items, a good one: of the order of mean ranks, the ranks that most users agree with
        (Hamming's best) and the rankings that most users have, the best is improved by exchanges
        (Cayley) or insertions (Ulam).
        """
        consensus = ranking_of(orderings_of(self.rank_sums()))
        if self.is_proved:
            best_of_all(self._users, consensus)
            return consensus
        common = self.rankings[np.argsort(-self.counts, kind="stable")[:20]]
        counts = np.zeros((self.n_items, self.n_items), dtype=np.int64)
        count_ranks(self.rankings, self.counts, counts)
        starts = [consensus, best_assignment(-counts), *common]
        consensus = min(starts, key=self.distance).copy()
        improve = improve_by_places if self._kind == ULAM else improve_by_cycles
        improve(self.rankings, self.counts, consensus)
        return consensus

    @property
    def evidence(self) -> Counts:
        """None: lists have no mean."""
        return np.empty(0, dtype=np.int64)

    def best_of(self, evidence: NDArray[Any]) -> Ranking:
        """That of these users."""
        return self.best()

    def move(self, stream: Stream, rate: float, moves: Proposals, consensus: Ranking) -> None:
        """The usual moves are exchanges for Cayley's distance, and for Ulam's "insert": an item is
        taken out, and put where its exact probabilities say. Others look at whole rankings."""
        number, kind, leap = moves
        where = (stream, self.rankings, self.counts, rate, number, consensus)
        if self._kind == ULAM and kind in (None, "insert"):
            move_by_insertions(*where)
        elif self._kind != ULAM and kind in (None, "swap"):
            move_by_cycles(*where)
        else:
            assert kind is not None
            move_by_list(stream, self._users, rate, MOVES[kind], leap, number, consensus)


def _multipliers(n_items: int) -> Counts:
    """Of the ranks, so that their sum tells rankings apart, all but always: where it does not,
    equal ones may be kept twice, which does no harm."""
    return np.cumprod(np.full(n_items, 0x5851F42D4C957F2D))
