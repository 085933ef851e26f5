"""Tallies: all that a consensus step needs of the users, in whole numbers.

Whole numbers add up to the same bits in any order, so blocks of users may be counted on any thread
or worker. `RankTally` serves every distance that is a sum over items of a price for two ranks.
"""

from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ..kernels.chain import LEAP_AND_SHIFT, SWAP, move_consensus
from ..kernels.costs import count_ranks, total_cost

MOVES = {"swap": SWAP, "leap_and_shift": LEAP_AND_SHIFT}
Counts = NDArray[np.int64]
Ranking = NDArray[np.int32]


class Tally(Protocol):
    """What the users say of a consensus."""

    def add(self, rankings: Ranking, weights: Counts) -> None:
        """Add full rankings, each as often as its weight says."""
        ...  # pragma: no cover

    def distance(self, consensus: Ranking) -> int:
        """Distance between all users and a consensus."""
        ...  # pragma: no cover

    def best(self) -> Ranking:
        """The consensus of the smallest distance, or a good one where that is out of reach."""
        ...  # pragma: no cover

    @property
    def evidence(self) -> NDArray[Any]:
        """Numbers whose mean over some draws says which consensus was best for them all."""
        ...  # pragma: no cover

    def best_of(self, evidence: NDArray[Any]) -> Ranking:
        """That consensus."""
        ...  # pragma: no cover

    def move(
        self,
        stream: NDArray[np.uint64],
        scale: float,
        n_moves: int,
        consensus: Ranking,
        move: str = "swap",
        leap: int = 1,
    ) -> None:
        """Move a consensus in place by Metropolis proposals; `scale` is alpha / n_items."""
        ...  # pragma: no cover


class Prices(Protocol):
    """A distance that is a sum over items of a price for two ranks."""

    def costs(self, counts: Counts) -> Counts:
        """``counts @ prices``."""
        ...  # pragma: no cover


class RankTally:
    """``counts[item, rank - 1]`` users, times `unit`, give an item that rank."""

    def __init__(self, prices: Prices, counts: Counts, unit: int = 1):
        self._prices, self.counts, self._unit = prices, counts, unit
        self._costs: Counts | None = None

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.counts)

    @property
    def costs(self) -> Counts:
        """``costs[item, rank - 1]``: distance, over all users, of that choice; made when asked."""
        if self._costs is None:
            self._costs = self._whole(self._prices.costs(self.counts))
        return self._costs

    def rank_sums(self) -> Counts:
        """Sum over the users of each item's rank less 1: the items in the order of mean ranks."""
        return self._whole(self.counts @ np.arange(self.n_items))

    def _whole(self, values: Any) -> Counts:
        """In units of one user, to the nearest whole number."""
        if self._unit == 1:
            return np.asarray(values)
        return np.asarray((values + self._unit // 2) // self._unit)

    def add(self, rankings: Ranking, weights: Counts) -> None:
        """Add rankings, each as often as its weight says; a rank of 0 is not known, and skipped."""
        count_ranks(rankings, weights, self.counts)
        self._costs = None

    def __add__(self, other: "RankTally") -> Self:
        """The users of both."""
        return type(self)(self._prices, self.counts + other.counts, self._unit)

    def distance(self, consensus: Ranking) -> int:
        """Distance between all users and a consensus."""
        return int(total_cost(self.costs, consensus))

    def best(self) -> Ranking:
        """The consensus of the smallest distance, by linear assignment."""
        return best_assignment(self.costs)

    @property
    def evidence(self) -> Counts:
        """The costs."""
        return self.costs

    def best_of(self, evidence: NDArray[Any]) -> Ranking:
        """The consensus of the smallest mean distance, by linear assignment."""
        return best_assignment(evidence)

    def move(
        self,
        stream: NDArray[np.uint64],
        scale: float,
        n_moves: int,
        consensus: Ranking,
        move: str = "swap",
        leap: int = 1,
    ) -> None:
        """Move a consensus in place by Metropolis proposals; `scale` is alpha / n_items."""
        move_consensus(stream, self.costs, scale, MOVES[move], leap, n_moves, consensus)


def best_assignment(costs: NDArray[Any]) -> Ranking:
    """The consensus of the lowest total cost, by linear assignment."""
    from scipy.optimize import linear_sum_assignment

    items, ranks = linear_sum_assignment(costs)
    consensus = np.empty(len(costs), dtype=np.int32)
    consensus[items] = ranks + 1
    return consensus
