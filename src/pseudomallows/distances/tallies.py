"""Tallies: all that a consensus step needs of the users, in whole numbers.

Whole numbers add up to the same bits in any order, so blocks of users may be counted on any thread
or worker. `RankTally` serves every distance that is a sum over items of a price for two ranks;
Kendall's has its own (`kendall`), and so have those that need every distinct ranking (`lists`).
"""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..engines.executors import interruptible
from ..kernels.costs import count_ranks
from ..kernels.moves import INSERT, LEAP_AND_SHIFT, SWAP, move_consensus

if TYPE_CHECKING:
    from .distance import PriceDistance

MOVES = {"swap": SWAP, "leap_and_shift": LEAP_AND_SHIFT, "insert": INSERT}
Counts = NDArray[np.int64]
Ranking = NDArray[np.int32]
Stream = NDArray[np.uint64]  # one number, which a kernel carries along
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
