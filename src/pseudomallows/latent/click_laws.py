"""Laws of clicks that add up over the clicked items: what a chain on clicks needs of one.

A user with c clicks, S, has the log probability

    sum over S of log_weights[group of c, rank of the item - 1]  +  constant[c]

for weights and constants that depend on alpha. So the users of a cluster are summed up by how many
of each group clicked each item, and how many have c clicks. The matched law of the footrule is near
the exact one, and is corrected by it; that of Kendall's distance is exact.
"""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..distances.tallies import Counts, Ranking

Floats = NDArray[np.float64]
Curve = Callable[[float], float]  # the log likelihood of users under one consensus, by alpha


class SizeGroups(NamedTuple):
    """``groups[place]`` is the group of weights that users with ``sizes[place]`` clicks have."""

    sizes: Counts
    groups: Counts

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(self.groups.max(initial=0)) + 1


class ClickTally(ABC):
    """What a law needs of the users of a cluster, in whole numbers.

    ``counts[group, item]`` users of the group clicked the item, ``n_users[place]`` have so many
    clicks.
    """

    def __init__(self, law: Any, counts: Counts, n_users: Counts):
        self.law, self.counts, self.n_users = law, counts, n_users

    @functools.cached_property
    def is_empty(self) -> bool:
        """Is there nobody?"""
        return not self.n_users.any()

    def __add__(self, other: Self) -> Self:
        """The users of both."""
        return type(self)(self.law, self.counts + other.counts, self.n_users + other.n_users)

    @abstractmethod
    def best(self, alpha: float) -> Ranking:
        """The consensus of the largest likelihood."""

    @abstractmethod
    def evidence(self, alpha: float) -> NDArray[Any]:
        """Numbers whose mean over draws says which consensus is best."""

    @abstractmethod
    def curve(self, consensus: Ranking) -> Curve:
        """The log likelihood as a function of alpha."""

    @abstractmethod
    def move(
        self,
        stream: NDArray[np.uint64],
        alpha: float,
        n_moves: int,
        consensus: Ranking,
        move: str = "swap",
        leap: int = 1,
    ) -> None:
        """Move a consensus in place, such that the posterior at an alpha is left as it is."""


class ClickLaw(ABC):
    """A law of clicks for any alpha; ``groups`` are the numbers of clicks there are, and their
    groups of weights."""

    is_exact: bool  # or is it to be corrected by, or compared with, the exact one?
    usual_moves: int | None = None  # of a sweep; None: the warmup finds out
    alpha_steps: int | None = None  # in a move of a cluster; None: as many as are usual

    def __init__(self, n_items: int, groups: SizeGroups, evidence_shape: tuple[int, ...]):
        self.n_items, self.groups = n_items, groups
        self.evidence_shape = evidence_shape  # of a tally

    def prepare(self, alphas: Floats) -> None:  # noqa: B027 - a closed form needs nothing
        """Make ready for these alphas and those nearby; not in a task."""

    @abstractmethod
    def fill_log_weights(self, ranks: Ranking, alpha: float, cluster: int, filled: Floats) -> None:
        """Fill ``filled[group, item, cluster]`` of one cluster, under its consensus."""

    @abstractmethod
    def constants(self, alpha: float) -> Floats:
        """``constants[place]`` of users with so many clicks."""

    @abstractmethod
    def tally(self, counts: Counts, n_users: Counts) -> ClickTally:
        """The tally of some users."""

    @abstractmethod
    def best_of(self, evidence: NDArray[Any], draw: Ranking) -> Ranking:
        """The consensus that is best by a mean of evidence; ties go by a draw."""
