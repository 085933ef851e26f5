"""What all chains of clusters share."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...distances.tallies import Ranking
from ...files.saved import Saved
from ...kernels.streams import start_stream, uniform
from ...latent.population import DrawOrigin, Population

Floats = NDArray[np.float64]
MAX_SWEEPS = 2**50  # nobody can make so many
TARGET_ACCEPTANCE = 0.44  # of the random walk of alpha, best in one dimension (Roberts et al. 1997)


class Earlier(NamedTuple):
    """What the first chain has found, so that the clusters of a later one take its order: its
    ``memberships[row, cluster]``, and its last draw."""

    memberships: NDArray[Any]
    consensus: Ranking
    alpha: Floats


class Chain(Protocol):
    """A Markov chain in the making: clusters, each with its consensus and alpha."""

    n_sweeps: int

    @property
    def shares(self) -> Floats: ...  # pragma: no cover
    @property
    def consensus(self) -> Ranking: ...  # pragma: no cover
    @property
    def alpha(self) -> Floats: ...  # pragma: no cover
    @property
    def evidence(self) -> NDArray[Any]: ...  # pragma: no cover
    @property
    def errors(self) -> Floats: ...  # pragma: no cover
    @property
    def mean_memberships(self) -> Floats: ...  # pragma: no cover
    def sweep(self, adapt: bool) -> None: ...  # pragma: no cover
    def forget(self) -> None: ...  # pragma: no cover
    def log_posterior(self) -> float: ...  # pragma: no cover
    def difference(self) -> float: ...  # pragma: no cover
    def latent_of(self, users: NDArray[np.int64]) -> Ranking: ...  # pragma: no cover
    def to_save(self) -> dict[str, Any]: ...  # pragma: no cover
    def resume(self, saved: Saved) -> None: ...  # pragma: no cover


class Chains(ABC):
    """What makes the chains of a fit."""

    evidence_shape: tuple[int, ...]  # of one cluster, see `best_of`
    preparation = 0  # sweeps before a chain begins, for the progress
    guesses = 0  # and before the first one
    comparison: Any = None  # of the start of all chains with another, if there was one

    def make_ready(self, report: Callable[[], None]) -> None:  # noqa: B027
        """Make what all chains share, if they do share something."""

    @abstractmethod
    def start(
        self,
        number: int,
        earlier: Earlier | None,
        rng: np.random.Generator,
        report: Callable[[], None],
    ) -> Chain:
        """The chain of this number at its start."""

    @abstractmethod
    def empty(self) -> Chain:
        """One to be filled from a file."""

    @abstractmethod
    def best_of(self, evidence: NDArray[Any], draw: Ranking) -> Ranking:
        """The consensus that is best by the mean evidence of a cluster; ties go by a draw."""

    @abstractmethod
    def unbounded(self, chain: Any) -> list[bool]:
        """Does nothing in the data bound the alpha of each cluster?"""


class HasConsensus(Protocol):
    """A cluster, as far as it matters here."""

    consensus: Ranking
    alpha: float

    @property
    def origin(self) -> DrawOrigin: ...  # pragma: no cover


C = TypeVar("C", bound=HasConsensus)


class Clustered(Generic[C]):
    """Clusters, each with its consensus and alpha, and users with labels."""

    population: Population
    clusters: list[C]
    n_sweeps: int
    _seed: int

    @property
    def n_clusters(self) -> int:
        """Number of clusters, empty ones included."""
        return len(self.clusters)

    @property
    def consensus(self) -> Ranking:
        """``consensus[cluster, item]``."""
        return np.stack([cluster.consensus for cluster in self.clusters])

    @property
    def alpha(self) -> NDArray[np.float64]:
        """``alpha[cluster]``."""
        return np.array([cluster.alpha for cluster in self.clusters])

    @property
    def errors(self) -> NDArray[np.float64]:
        """How often comparisons are wrong; nothing where none can be."""
        return self.population.error_values

    def _draw_latent(
        self,
        users: NDArray[np.int64],
        clusters: Sequence[C],
        shares: NDArray[np.float64],
        label_of: Callable[[int], tuple[int, int, int]],
    ) -> Ranking:
        """Latent rankings of some users, each in the cluster of its label.

        `label_of(row)` is the label of the last user of a row, how many have it, and how many users
        of the row come before them. A user who says nothing has a label by the shares.
        """
        rankings = np.empty((len(users), self.population.n_items), dtype=np.int32)
        stream = np.empty(1, dtype=np.uint64)
        for place, user in enumerate(users):
            known, number, row = self.population.row_of(int(user))
            if row is None:
                start_stream(self._seed, self.n_sweeps, number, stream)
                edges = np.cumsum(shares)
                label = int(np.searchsorted(edges, uniform(stream) * edges[-1], "right"))
                weight = 1
            else:
                label, weight, n_before = label_of(row)
                number += n_before
            known = replace(known, weights=np.array([weight]))
            origin = clusters[label].origin
            rankings[place] = self.population.redraw(known, np.array([number]), origin)[0]
        return rankings
