"""Orders of visits: V-rankings for the consensus, and those for the items of a user."""

import itertools

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..kernels.groups import TOP_BOTTOM, UNIFORM, V
from ..posterior import names
from ..rankings import as_array, as_rng, check_ranking, orderings_of, rank_randomly

ORDERS = dict(zip(names.ORDERS, (UNIFORM, V, TOP_BOTTOM), strict=True))  # of a user's items


def check_order(
    visit_order: ArrayLike, n_items: int | None = None, name: str = "visit_order"
) -> NDArray[np.int64]:
    """An order of the items 0, 1, ..., n_items - 1; of any number of them without `n_items`."""
    order = as_array(visit_order, name)
    n_items = order.size if n_items is None else n_items
    if order.shape != (n_items,) or sorted(order.tolist()) != list(range(n_items)):
        raise ValueError(
            f"{name} must hold each of the items 0..{n_items - 1} once, got {order.tolist()}"
        )
    return order.astype(np.int64)


def v_rankings(ranking: ArrayLike) -> NDArray[np.int32]:
    """All of the V-set of a ranking: the middle item first, then outwards, two at a time.

    The two items that are equally far from the middle come in either order: 2^(n_items // 2)
    rankings in all. For more than 30 items use :func:`draw_v_ranking`.

    >>> v_rankings([1, 2, 3])
    array([[2, 1, 3],
           [3, 1, 2]], dtype=int32)
    """
    ranking = check_ranking(ranking)
    n_items = len(ranking)
    if n_items > 30:
        raise ValueError(f"the V-set of {n_items} items is too large: use draw_v_ranking")
    ordering = orderings_of(ranking)
    n_pairs, odd = n_items // 2, n_items % 2
    rankings = np.empty((1 << n_pairs, n_items), dtype=np.int32)
    rankings[:, ordering[n_pairs]] = 1  # the middle; for an even number, set again below
    for pair in range(n_pairs):
        upper, lower = ordering[n_pairs - 1 - pair], ordering[n_pairs + odd + pair]
        second = np.arange(1 << n_pairs) >> pair & 1
        rankings[:, upper] = 2 * pair + 1 + odd + second
        rankings[:, lower] = 2 * pair + 2 + odd - second
    return rankings


def draw_v_ranking(
    ranking: ArrayLike, rng: np.random.Generator | int | None = None
) -> NDArray[np.int32]:
    """Draw one of the V-set of a ranking, all with the same probability.

    >>> draw_v_ranking([1, 2, 3, 4, 5], rng=1)
    array([5, 3, 1, 2, 4], dtype=int32)
    """
    return rank_randomly(from_middle(check_ranking(ranking)), as_rng(rng))


def from_middle(ranking: NDArray[np.int32]) -> NDArray[np.int32]:
    """Twice the distance of each rank from the middle; V-rankings rank it, ties at random."""
    return np.abs(2 * ranking - (ranking.shape[-1] + 1))


def tied_rankings(values: NDArray[np.int64]) -> list[NDArray[np.int32]]:
    """Every ranking of `values`, the smallest first, that some way to break the ties gives."""
    groups = [np.flatnonzero(values == value) for value in np.unique(values)]
    rankings = []
    for parts in itertools.product(*(itertools.permutations(group) for group in groups)):
        ordering = np.array(list(itertools.chain(*parts)))
        ranking = np.empty(len(values), dtype=np.int32)
        ranking[ordering] = np.arange(1, len(values) + 1)
        rankings.append(ranking)
    return rankings
