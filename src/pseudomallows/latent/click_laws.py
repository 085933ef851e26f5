"""Laws of clicks that add up over the clicked items: what a chain on clicks needs of one.

A user with c clicks, S, has the log probability

    sum over S of log_weights[group of c, rank of the item - 1]  +  constant[c]

for weights and constants that depend on alpha. So the users of a cluster are summed up by how many
of each group clicked each item, and how many have c clicks. The matched law of the footrule is near
the exact one, and is corrected by it; that of Kendall's distance is exact.
"""

from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ..distances.tallies import Counts, Ranking

Floats = NDArray[np.float64]


class SizeGroups(NamedTuple):
    """``groups[place]`` is the group of weights that users with ``sizes[place]`` clicks have."""

    sizes: Counts
    groups: Counts

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(self.groups.max(initial=0)) + 1


class Curve(Protocol):
    """The log likelihood of users under one consensus, as a function of alpha."""

    def __call__(self, alpha: float) -> float:
        """Its value."""
        ...  # pragma: no cover


class ClickTally(Protocol):
    """What a law needs of the users of a cluster, in whole numbers."""

    @property
    def counts(self) -> Counts:
        """``counts[group, item]``: so many users of the group clicked the item."""
        ...  # pragma: no cover

    @property
    def n_users(self) -> Counts:
        """``n_users[place]``: so many users have so many clicks."""
        ...  # pragma: no cover

    @property
    def is_empty(self) -> bool:
        """Is there nobody?"""
        ...  # pragma: no cover

    def __add__(self, other: Self) -> Self:
        """The users of both."""
        ...  # pragma: no cover

    def best(self, alpha: float) -> Ranking:
        """The consensus of the largest likelihood."""
        ...  # pragma: no cover

    def evidence(self, alpha: float) -> NDArray[Any]:
        """Numbers whose mean over draws says which consensus is best."""
        ...  # pragma: no cover

    def curve(self, consensus: Ranking) -> Curve:
        """The log likelihood as a function of alpha."""
        ...  # pragma: no cover

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
        ...  # pragma: no cover


class ClickLaw(Protocol):
    """A law of clicks for any alpha."""

    is_exact: bool  # or is it to be corrected by, or compared with, the exact one?
    evidence_shape: tuple[int, ...]  # of a tally
    usual_moves: int | None  # of a sweep; None: the warmup finds out
    alpha_steps: int | None  # in a move of a cluster; None: as many as are usual

    @property
    def groups(self) -> SizeGroups:
        """The numbers of clicks there are, and their groups of weights."""
        ...  # pragma: no cover

    def prepare(self, alphas: Floats) -> None:
        """Make ready for these alphas and those nearby; not in a task."""
        ...  # pragma: no cover

    def fill_log_weights(self, ranks: Ranking, alpha: float, cluster: int, filled: Floats) -> None:
        """Fill ``filled[group, item, cluster]`` of one cluster, under its consensus."""
        ...  # pragma: no cover

    def constants(self, alpha: float) -> Floats:
        """``constants[place]`` of users with so many clicks."""
        ...  # pragma: no cover

    def tally(self, counts: Counts, n_users: Counts) -> Any:
        """The tally of some users: ``counts[group, item]``, ``n_users[place]``."""
        ...  # pragma: no cover

    def best_of(self, evidence: NDArray[Any], draw: Ranking) -> Ranking:
        """The consensus that is best by a mean of evidence; ties go by a draw."""
        ...  # pragma: no cover
