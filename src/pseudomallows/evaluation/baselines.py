"""What a fit is compared with: the most clicked items, and EASE, the regression of Steck (2019)."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Clicks, clicks_matrix
from ..data.splits import hide_random
from ..engines.executors import Threads, blocks
from ..engines.memory import DENSE_ITEMS
from ..personal.products import AllProducts
from ..rankings import orderings_of, rank_randomly

# In units of the mean number of clicks of an item, by threes. Of one hidden click of each customer
# of retail (200 items), 10 recommendations hit 46, 47, 46 and 44 % by these, 46 % by 0.03, 37 % by
# 10; of simulated users 93 to 95 % by all.
RIDGES = (0.1, 0.3, 1.0, 3.0)
MOST_USERS, N_SPLITS = 5_000, 3  # by whom the ridge is chosen: hits of 15,000 clicks, +-0.4 points


def most_clicked(
    seen: Clicks, counts: NDArray[np.int64], k: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """The most clicked items that each user has not seen, -1 for none; ties at random."""
    ranking = rank_randomly(-counts, rng)
    ordering, items = orderings_of(ranking), np.full((seen.n_users, k), -1)
    for rows in blocks(seen.n_users):
        mine = seen.take(np.arange(rows.start, rows.stop))
        n_places = min(k + int(mine.n_clicks.max(initial=0)), seen.n_items)  # k are left of them
        places = ranking[mine.codes] - 1
        is_first, is_seen = places < n_places, np.zeros((mine.n_users, n_places), dtype=bool)
        is_seen[mine.owners[is_first], places[is_first]] = True
        best = np.argsort(is_seen, axis=1, kind="stable")[:, :k]
        is_new = ~np.take_along_axis(is_seen, best, axis=1)
        items[rows, : best.shape[1]] = np.where(is_new, ordering[best], -1)
    return items


def ease(seen: Clicks, shown: Clicks, k: int, rng: np.random.Generator) -> NDArray[np.int64] | None:
    """The items that EASE recommends, -1 for none; None if there are too many items.

    Its ridge is the one, of a few, that finds most of one hidden click of each user.
    """
    if shown.n_items > DENSE_ITEMS:
        return None
    ridge = _choose_ridge(shown, k, rng)
    weights = ease_weights(AllProducts(shown, Threads(1)).of(0.0), ridge)
    return _best(seen, weights, k)


def ease_weights(products: NDArray[np.float64], ridge: float) -> NDArray[np.float64]:
    """Regression of each item on the others, with weights of any sign and a zero diagonal: the
    closed form of Steck (2019). `ridge` is in units of the mean diagonal of the products."""
    penalty = max(ridge * float(np.trace(products)) / len(products), 1e-6)
    inverse = np.linalg.inv(products + penalty * np.eye(len(products)))
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0.0)
    return weights


def _choose_ridge(shown: Clicks, k: int, rng: np.random.Generator) -> float:
    if not (shown.n_clicks > 1).any():
        return RIDGES[1]
    hits = np.zeros(len(RIDGES), dtype=np.int64)
    for _ in range(N_SPLITS):
        inner, hidden = hide_random(shown, 1, rng)
        users = np.flatnonzero(hidden.n_clicks)
        if len(users) > MOST_USERS:
            users = np.sort(rng.choice(users, MOST_USERS, replace=False))
        seen, wanted = inner.take(users), hidden.take(users).codes[:, None]
        products = AllProducts(inner, Threads(1)).of(0.0)
        for place, ridge in enumerate(RIDGES):
            weights = ease_weights(products, ridge)
            hits[place] += (_best(seen, weights, k) == wanted).sum()
    return RIDGES[int(hits.argmax())]


def _best(seen: Clicks, weights: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """The unseen items with the highest scores, the best first."""
    items = np.full((seen.n_users, k), -1)
    for rows in blocks(seen.n_users):
        mine = seen.take(np.arange(rows.start, rows.stop))
        scores = np.asarray(clicks_matrix(mine.starts, mine.codes, mine.n_items) @ weights)
        scores[mine.owners, mine.codes] = -np.inf
        top = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        is_new = np.isfinite(np.take_along_axis(scores, top, axis=1))
        items[rows] = np.where(is_new, top, -1)
    return items


# By name, as they are reported: from the clicks seen by those evaluated and by all, the number
# of items and the source of randomness to the items, or to None where there are too many.
Baseline = Callable[[Clicks, Clicks, int, np.random.Generator], NDArray[np.int64] | None]
BASELINES: dict[str, Baseline] = {
    "popularity": lambda seen, shown, k, rng: most_clicked(seen, shown.item_counts(), k, rng),
    "EASE": ease,
}
