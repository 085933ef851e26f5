"""What a model says of itself: its consensus, clusters, items, pages, and whether to trust it."""

import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ...posteriors.diagnose import Verdict
from ...posteriors.personal_fit import Fit, PersonalFit
from ...posteriors.posterior import Posterior
from ...preferences import Clicks
from ..errors import ServiceError
from ..types import (
    ClusterRow,
    ClustersAnswer,
    ConsensusAnswer,
    ConsensusItem,
    ItemRow,
    ItemsAnswer,
    encode,
)

T = TypeVar("T")


class Summary:
    """Answers about a model, each made at the first question and kept."""

    def __init__(self, posterior: Fit, clicks: Clicks, item_names: list[str]):
        self.posterior, self.item_names = posterior, item_names
        # what has a consensus: a personal fit may have one of all users
        self._clusters = posterior.population if isinstance(posterior, PersonalFit) else posterior
        self._counts = clicks.item_counts()
        self._by_count = np.argsort(-self._counts, kind="stable").tolist()
        self._folded = [name.casefold() for name in item_names]
        self._making = threading.Lock()  # held for seconds: a report takes that long
        self.made: dict[Any, Any] = {}

    def _once(self, name: Any, make: Callable[[], T]) -> T:
        """What is made at the first question, and kept."""
        if name not in self.made:
            with self._making:
                if name not in self.made:
                    self.made[name] = make()
        made: T = self.made[name]
        return made

    def verdict(self) -> Verdict:
        """Can it be trusted, and why."""
        return self._once("verdict", self.posterior.verdict)

    def alphas(self) -> list[float]:
        """Mean concentration of each cluster."""
        if isinstance(self.posterior, PersonalFit):
            return [self.posterior.mean_alpha]
        means: list[float] = self.posterior.alpha.mean(axis=(0, 1)).tolist()
        return means

    @property
    def n_clusters(self) -> int:
        """How many clusters /clusters has."""
        return 0 if self._clusters is None else self._clusters.n_clusters

    def consensus(self, cluster: int) -> bytes:
        """The answer of /consensus."""
        posterior = self._clusters
        if posterior is None:
            raise ServiceError(
                404,
                "this model has no consensus, as each user has an order of their own: /items lists "
                "the items by the number of users who clicked them",
            )
        if not 0 <= cluster < self.n_clusters:
            raise ServiceError(404, f"cluster must be in 0..{self.n_clusters - 1}, got {cluster}")
        return self._once(
            ("consensus", cluster), lambda: encode(self._make_consensus(posterior, cluster))
        )

    def _make_consensus(self, posterior: Posterior, cluster: int) -> ConsensusAnswer:
        """The best items, and the probabilities of their ranks in bins of equal width."""
        rows = posterior.summary(cluster, first=100)
        items = [ConsensusItem(**(row | {"item": str(row["item"])})) for row in rows]
        code_of = {name: code for code, name in enumerate(self.item_names)}
        codes = np.array([code_of[item.item] for item in items])
        n_items = posterior.n_items
        width = -(-n_items // 50)  # bins, and 100 items: as many as the page can show
        edges = list(range(0, n_items, width))
        shares = posterior.shares_of_ranks(codes, n_items, cluster)
        binned = np.add.reduceat(shares, edges, axis=1).round(6)
        return ConsensusAnswer(cluster, items, binned.tolist(), [edge + 1 for edge in edges])

    def clusters(self) -> bytes:
        """The answer of /clusters."""
        return self._once("clusters", lambda: encode(self._make_clusters()))

    def _make_clusters(self) -> ClustersAnswer:
        """Each cluster with its weight, its users and its best items; a personal model has the
        consensus of all users, if it was asked for."""
        posterior = self._clusters
        if posterior is None:
            return ClustersAnswer([])
        sizes = np.bincount(posterior.labels, minlength=posterior.n_clusters).tolist()
        weights = posterior.shares.mean(axis=(0, 1)).tolist()
        alphas = posterior.alpha.mean(axis=(0, 1)).tolist()
        rows = []
        for cluster in range(posterior.n_clusters):
            ranks = posterior.point_consensus(cluster=cluster)
            codes = np.flatnonzero(ranks <= 3)
            best = [self.item_names[code] for code in codes[np.argsort(ranks[codes])].tolist()]
            figures = weights[cluster], sizes[cluster], alphas[cluster]
            rows.append(ClusterRow(cluster, *figures, best))
        return ClustersAnswer(rows)

    def items(self, search: str, limit: int) -> ItemsAnswer:
        """The most clicked items whose names hold a text."""
        wanted, rows = search.casefold(), []
        for code in self._by_count:
            if wanted in self._folded[code]:
                rows.append(ItemRow(self.item_names[code], int(self._counts[code])))
                if len(rows) == limit:
                    break
        return ItemsAnswer(rows)

    def page(self, write: Callable[[Fit, Path], object]) -> bytes:
        """A page about the model, as `write` writes it to a file."""

        def make() -> bytes:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "page.html"
                write(self.posterior, path)
                return path.read_bytes()

        return self._once(("page", write), make)
