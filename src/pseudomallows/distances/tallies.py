"""Tallies: all that a consensus step needs of the users, in whole numbers.

Whole numbers add up to the same bits in any order, so blocks of users may be counted on any thread
or worker. `RankTally` serves every distance that is a sum over items of a price for two ranks,
`WinsTally` Kendall's, and `ListTally` those that need every distinct ranking.
"""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..engines.executors import interruptible
from ..kernels.costs import count_ranks
from ..kernels.distances.cycles import improve_by_cycles, move_by_cycles
from ..kernels.distances.insertions import improve_by_places, move_by_insertions
from ..kernels.distances.lists import ULAM, RankingList, best_of_all, list_distance, move_by_list
from ..kernels.kendall.wins import (
    best_by_subsets,
    improve_by_insertions,
    move_by_wins,
    recount_wins,
    wins_distance,
)
from ..kernels.moves import INSERT, LEAP_AND_SHIFT, SWAP, move_consensus
from ..rankings import orderings_of

if TYPE_CHECKING:
    from .distance import PriceDistance

MOVES = {"swap": SWAP, "leap_and_shift": LEAP_AND_SHIFT, "insert": INSERT}
Counts = NDArray[np.int64]
Ranking = NDArray[np.int32]
Stream = NDArray[np.uint64]  # one number, which a kernel carries along
MOST_SUBSET_ITEMS = 15  # whose best order by pairs is sought through all sets of them: 32,768
MOST_LISTED_ITEMS = 7  # whose best order by a list is sought through all 5,040; of 8, 40,320
MADE_OF_COUNTS = ("costs", "margins", "votes", "likeliest")  # what users who are added make stale


class Proposals(NamedTuple):
    """How many, of which kind (None: the usual one of the distance), how far a leap goes."""

    number: int
    kind: str | None = None
    leap: int = 1


class Tally(ABC):
    """What the users say of a consensus."""

    is_proved = False  # is `best` sure to have the smallest distance?

    @property
    @abstractmethod
    def n_items(self) -> int:
        """Number of items."""

    @abstractmethod
    def add(self, rankings: Ranking, weights: Counts) -> None:
        """Add rankings, each as often as its weight says; what has a rank of 0 is not known, and
        skipped."""

    @abstractmethod
    def recounted(self, rankings: Ranking, before: Counts, after: Counts) -> Self:
        """The tally of the same rankings with other weights, full ones all: those `before` are of
        this tally. It stays as it is."""

    @abstractmethod
    def rank_sums(self) -> Counts:
        """Sum over the users of each item's rank less 1: the items in the order of mean ranks."""

    @abstractmethod
    def distance(self, consensus: Ranking) -> int:
        """Distance between all users and a consensus."""

    @abstractmethod
    def best(self) -> Ranking:
        """The consensus of the smallest distance, or a good one where that is out of reach."""

    @property
    @abstractmethod
    def evidence(self) -> NDArray[Any]:
        """Numbers whose mean over some draws says which consensus was best for them all."""

    @abstractmethod
    def best_of(self, evidence: NDArray[Any]) -> Ranking:
        """That consensus, or a good one."""

    @abstractmethod
    def move(self, stream: Stream, rate: float, moves: Proposals, consensus: Ranking) -> None:
        """Move a consensus in place by Metropolis proposals; `rate` is alpha / n_items."""


class TableTally(Tally):
    """A tally that is one square table of `counts`."""

    def __init__(self, counts: Counts):
        self.counts = counts

    @property
    def n_items(self) -> int:
        return len(self.counts)

    @abstractmethod
    def recount(self, rankings: Ranking, before: Counts, after: Counts, counts: Counts) -> None:
        """Bring `counts` from the weights `before` to those `after`."""

    @abstractmethod
    def mover(self) -> tuple[Callable[..., None], Any]:
        """The kernel that moves a consensus, and the table that it looks at."""

    def like(self, counts: Counts) -> Self:
        """A tally of the same kind with other counts."""
        return type(self)(counts)

    def add(self, rankings: Ranking, weights: Counts) -> None:
        self.recount(rankings, np.zeros_like(weights), weights, self.counts)
        for name in MADE_OF_COUNTS:
            self.__dict__.pop(name, None)

    def recounted(self, rankings: Ranking, before: Counts, after: Counts) -> Self:
        counts = self.counts.copy()
        self.recount(rankings, before, after, counts)
        return self.like(counts)

    def move(self, stream: Stream, rate: float, moves: Proposals, consensus: Ranking) -> None:
        kernel, table = self.mover()
        code = MOVES[moves.kind or "swap"]
        kernel(stream, table, rate, code, moves.leap, moves.number, consensus)


class RankTally(TableTally):
    """``counts[item, rank - 1]`` users give an item that rank."""

    is_proved = True

    def __init__(self, prices: "PriceDistance", counts: Counts):
        super().__init__(counts)
        self._prices = prices

    def like(self, counts: Counts) -> Self:
        return type(self)(self._prices, counts)

    @functools.cached_property
    def costs(self) -> Counts:
        """``costs[item, rank - 1]``: distance, over all users, of that choice; made when asked."""
        return self._prices.costs(self.counts)

    def rank_sums(self) -> Counts:
        return np.asarray(self.counts @ np.arange(self.n_items))

    def recount(self, rankings: Ranking, before: Counts, after: Counts, counts: Counts) -> None:
        count_ranks(rankings, after - before, counts)

    def distance(self, consensus: Ranking) -> int:
        return int(self.costs[np.arange(self.n_items), consensus - 1].sum())

    def best(self) -> Ranking:
        """The consensus of the smallest distance, by linear assignment."""
        return best_assignment(self.costs)

    @property
    def evidence(self) -> Counts:
        return self.costs

    def best_of(self, evidence: NDArray[Any]) -> Ranking:
        """The consensus of the smallest mean distance, by linear assignment."""
        return best_assignment(evidence)

    def mover(self) -> tuple[Callable[..., None], Counts]:
        """A proposal looks at the costs of the items that it moves."""
        return move_consensus, self.costs


def rank_tally(tally: Tally) -> RankTally:
    """The tally, if it counts ranks, or an error that says what to do."""
    if not isinstance(tally, RankTally):
        raise ValueError(
            "this needs a distance that adds up over items: use distance='footrule', or "
            "method='mcmc' with full rankings"
        )
    return tally


class WinsTally(TableTally):
    """``counts[i, j]`` users put item i before item j, each counted `unit` times."""

    unit = 1
    mean_unit = 1000  # of a mean number of users, so that it is a whole number to three digits

    @functools.cached_property
    def margins(self) -> Counts:
        """``margins[i, j]``: how many more put i before j than behind it; made when asked."""
        return np.ascontiguousarray(self.counts - self.counts.T)

    @property
    def is_proved(self) -> bool:  # type: ignore[override]
        return self.n_items <= MOST_SUBSET_ITEMS

    def rank_sums(self) -> Counts:
        return np.asarray(self.counts.sum(axis=0))

    def recount(self, rankings: Ranking, before: Counts, after: Counts, counts: Counts) -> None:
        recount_wins(rankings, self.unit * before, self.unit * after, counts)

    def distance(self, consensus: Ranking) -> int:
        return int(wins_distance(self.counts, orderings_of(consensus)))

    def best(self) -> Ranking:
        """The consensus of the smallest distance (Kemeny's), through all sets of up to 15 items.

        For more items, a good one: from the order of mean ranks, items are inserted where they are
        best until no insertion helps.
        """
        ordering = orderings_of(self.rank_sums())
        if self.is_proved:
            best_by_subsets(self.counts, ordering)
        consensus = ranking_of(ordering)
        if not self.is_proved:
            improve_by_insertions(self.margins, consensus, ordering)
        return consensus

    @property
    def evidence(self) -> Counts:
        return self.counts

    def best_of(self, evidence: NDArray[Any]) -> Ranking:
        """The consensus of the smallest mean distance, or a good one."""
        return self.like(np.rint(evidence * self.mean_unit).astype(np.int64)).best()

    def mover(self) -> tuple[Callable[..., None], Any]:
        """A proposal over h places looks at h margins, or 2 h."""
        return move_by_wins, self.margins


class ListTally(Tally):
    """``counts[row]`` users have the ranking ``rankings[row]``; equal rankings are kept once."""

    def __init__(self, kind: int, rankings: Ranking, counts: Counts):
        self._kind, self.rankings, self.counts = kind, rankings, counts

    @classmethod
    def of(cls, kind: int, rankings: Ranking, weights: Counts) -> Self:
        """The tally of rankings, each as often as its weight says; those with a rank of 0 are
        skipped. `kind` is the code of the distance in `kernels.distances.lists`."""
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
        found = type(self).of(self._kind, all_rankings, all_weights)
        self.rankings, self.counts = found.rankings, found.counts

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


def ranking_of(ordering: NDArray[np.int64]) -> Ranking:
    """The ranking whose ordering, best item first, this is."""
    ranking = np.empty(len(ordering), dtype=np.int32)
    ranking[ordering] = np.arange(1, len(ordering) + 1)
    return ranking


def best_assignment(costs: NDArray[Any]) -> Ranking:
    """The consensus of the lowest total cost, by linear assignment."""
    from scipy.optimize import linear_sum_assignment

    if len(costs) < 1000:  # at most some 0.1 s, too short for a thread that Ctrl-C can leave
        items, ranks = linear_sum_assignment(costs)
    else:
        items, ranks = interruptible(linear_sum_assignment, costs)
    consensus = np.empty(len(costs), dtype=np.int32)
    consensus[items] = ranks + 1
    return consensus
