"""What a model says of itself: its consensus, clusters and items, a page about it, and whether its
probabilities hold on the clicks that came since it was fitted."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from copy import copy
from pathlib import Path

import numpy as np

from ...data.blocks import Clicks
from ...data.from_clicks import clicks_of_pairs
from ...evaluation.check import check
from ...personal.personal_fit import Fit
from .. import types
from ..errors import ServiceError
from ..stores.store import Pair, Store
from .model import ONE, Model

MOST_USERS = 5_000  # whose clicks are looked at: the mean is known to half a point by them
MOST_CLICKS = 40 * MOST_USERS  # that are read in search of users with new ones
USERS_AT_ONCE = 100  # asked for: other readers of the store get in between
NOTHING = (
    "Nothing new to check against yet: since the model was fitted, none of its users has clicked "
    "an item that was new to them."
)


def consensus(model: Model, cluster: int) -> types.ConsensusAnswer:
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
    items = [types.ConsensusItem(**(row | {"item": str(row["item"])})) for row in rows]
    codes = np.array([model.codes[item.item] for item in items])
    n_items = posterior.n_items
    width = -(-n_items // 50)  # bins, and 100 items: as many as the page can show
    edges = list(range(0, n_items, width))
    shares = posterior.shares_of_ranks(codes, n_items, cluster)
    binned = np.add.reduceat(shares, edges, axis=1).round(6)
    firsts = [edge + 1 for edge in edges]
    return types.ConsensusAnswer(cluster, items, binned.tolist(), firsts)


def clusters(model: Model) -> types.ClustersAnswer:
    """Each cluster with its weight, its users and its best items; a personal model has the
    consensus of all users, if it was asked for."""
    posterior, rows = model.population, list[types.ClusterRow]()
    if posterior is None:
        return types.ClustersAnswer(rows)
    sizes = np.bincount(posterior.labels, minlength=posterior.n_clusters).tolist()
    weights = posterior.shares.mean(axis=(0, 1)).tolist()
    alphas = posterior.alpha.mean(axis=(0, 1)).tolist()
    for cluster in range(posterior.n_clusters):
        ranks = posterior.point_consensus(cluster=cluster)
        codes = np.flatnonzero(ranks <= 3)
        best = [model.item_names[code] for code in codes[np.argsort(ranks[codes])].tolist()]
        figures = weights[cluster], sizes[cluster], alphas[cluster]
        rows.append(types.ClusterRow(cluster, *figures, best))
    return types.ClustersAnswer(rows)


def items(model: Model, search: str, limit: int) -> types.ItemsAnswer:
    """The most clicked items whose names hold a text."""
    wanted, rows = search.casefold(), list[types.ItemRow]()
    for code in model.by_clicks:
        if wanted in model.folded_names[code]:
            rows.append(types.ItemRow(model.item_names[code], int(model.item_counts[code])))
            if len(rows) == limit:
                break
    return types.ItemsAnswer(rows)


def page(model: Model, write: Callable[[Fit, Path], object]) -> bytes:
    """A page about the model, as `write` writes it to a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        write(model.posterior, path)
        return path.read_bytes()


# Do the stated probabilities hold?


def check_model(model: Model, store: Store) -> types.CheckAnswer:
    """Whether the probabilities of a model hold, on the newest stored clicks."""
    if not model.clicks.n_users:
        raise ServiceError(
            404, "this model keeps no users, so it cannot know which clicks are new to them"
        )
    new = new_clicks(model, store)
    if new is None:
        return types.CheckAnswer(model.number, "too few", NOTHING)
    posterior = copy(model.posterior)  # its tables are of no use to requests, and go with it
    figures = check(posterior, new, executor=ONE).figures()
    bins = [types.CheckBin(**each) for each in figures.pop("bins")]
    return types.CheckAnswer(model=model.number, bins=bins, **figures)


def new_clicks(model: Model, store: Store) -> Clicks | None:
    """All stored clicks of those who clicked something new last, by the names of the model."""
    rows, codes, times = list[int](), list[int](), list[float]()
    users = list(_users_with_new(model, store))
    for first in range(0, len(users), USERS_AT_ONCE):
        for user, item, time in store.timed_clicks_of(users[first : first + USERS_AT_ONCE]):
            if _is_new(model, (user, item)):
                rows.append(model.rows[user])
                codes.append(model.codes[item])
                times.append(time)
    if not rows:
        return None
    names = model.clicks.weights, model.clicks.users, model.clicks.items
    return clicks_of_pairs(np.array(rows), np.array(codes), *names, np.array(times))


def _users_with_new(model: Model, store: Store) -> Iterator[str]:
    """Each once; all of their clicks count, so that the first of them are known."""
    seen = set[str]()
    for page in store.newest_clicks(MOST_CLICKS):
        for pair in page:
            if pair[0] not in seen and _is_new(model, pair):
                seen.add(pair[0])
                yield pair[0]
                if len(seen) == MOST_USERS:
                    return


def _is_new(model: Model, pair: Pair) -> bool:
    """Is it the click of a user of the fit on an item of the fit, and not in the fit?"""
    row, code = model.rows.get(pair[0]), model.codes.get(pair[1])
    if row is None or code is None:
        return False
    known = model.clicks.clicks_of(row)
    place = known.searchsorted(code)
    return len(known) > 0 and (place == len(known) or known[place] != code)
