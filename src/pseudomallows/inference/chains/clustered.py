"""What all chains of clusters share."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...distances.tallies import Ranking
from ...kernels.streams import start_stream, uniform
from ...latent.population import DrawOrigin, Population

MAX_SWEEPS = 2**50  # nobody can make so many
TARGET_ACCEPTANCE = 0.44  # of the random walk of alpha, best in one dimension (Roberts et al. 1997)


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
