"""What a model says of itself: its consensus, clusters and items, and a page about it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...personal.personal_fit import Fit
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

if TYPE_CHECKING:
    from .model import Model


def consensus(model: Model, cluster: int) -> bytes:
    """The best items of a cluster, and the probabilities of their ranks in bins of equal width."""
    posterior = model.population
    if posterior is None:
        raise ServiceError(
            404,
            "this model has no consensus, as each user has an order of their own: /items lists "
            "the items by the number of users who clicked them",
        )
    if not 0 <= cluster < posterior.n_clusters:
        raise ServiceError(404, f"cluster must be in 0..{posterior.n_clusters - 1}, got {cluster}")
    rows = posterior.summary(cluster, first=100)
    items = [ConsensusItem(**(row | {"item": str(row["item"])})) for row in rows]
    codes = np.array([model.codes[item.item] for item in items])
    n_items = posterior.n_items
    width = -(-n_items // 50)  # bins, and 100 items: as many as the page can show
    edges = list(range(0, n_items, width))
    shares = posterior.shares_of_ranks(codes, n_items, cluster)
    binned = np.add.reduceat(shares, edges, axis=1).round(6)
    return encode(ConsensusAnswer(cluster, items, binned.tolist(), [edge + 1 for edge in edges]))


def clusters(model: Model) -> bytes:
    """Each cluster with its weight, its users and its best items; a personal model has the
    consensus of all users, if it was asked for."""
    posterior, rows = model.population, list[ClusterRow]()
    if posterior is None:
        return encode(ClustersAnswer(rows))
    sizes = np.bincount(posterior.labels, minlength=posterior.n_clusters).tolist()
    weights = posterior.shares.mean(axis=(0, 1)).tolist()
    alphas = posterior.alpha.mean(axis=(0, 1)).tolist()
    for cluster in range(posterior.n_clusters):
        ranks = posterior.point_consensus(cluster=cluster)
        codes = np.flatnonzero(ranks <= 3)
        best = [model.item_names[code] for code in codes[np.argsort(ranks[codes])].tolist()]
        rows.append(ClusterRow(cluster, weights[cluster], sizes[cluster], alphas[cluster], best))
    return encode(ClustersAnswer(rows))


def items(model: Model, search: str, limit: int) -> ItemsAnswer:
    """The most clicked items whose names hold a text."""
    wanted, rows = search.casefold(), list[ItemRow]()
    for code in model.by_clicks:
        if wanted in model.folded_names[code]:
            rows.append(ItemRow(model.item_names[code], int(model.item_counts[code])))
            if len(rows) == limit:
                break
    return ItemsAnswer(rows)


def page(model: Model, write: Callable[[Fit, Path], object]) -> bytes:
    """A page about the model, as `write` writes it to a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        write(model.posterior, path)
        return path.read_bytes()
