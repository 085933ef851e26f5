"""The search for a visit order of small divergence (Algorithm 2), and that divergence."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..kernels.subsets import posterior_by_subsets, pseudo_by_subsets, room_for_sets
from ..rankings import (
    as_rng,
    check_count,
    check_number,
    check_rankings,
    orderings_of,
    rank_randomly,
)
from ..scores import FLOOR, rank_divergence, share_of_ranks
from .pseudo import ConsensusChain, PseudoMallows
from .visit_orders import check_order, draw_v_ranking

MOST_ITEMS = 20  # up to here by sums over 2^n sets of ranks: a million
LEAST = 1e-12  # sets of ranks less likely than this are left out: below what rounding shows
REFERENCE_DRAWS = 20_000  # of a chain; each cell of the reference has an error below 0.004
SMALLEST_GAIN = 1e-12  # of a move: below, it is rounding

Order = NDArray[np.int64]
Divergence = Callable[[Order], float]
Path = list[tuple[Order, float]]


def marginal_divergence(
    draws: ArrayLike,
    reference_draws: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    floor: float = FLOOR,
) -> float:
    """The paper's divergence: the sum over items of KL(rank in draws || rank in reference).

    Empty cells would make it infinite, so on both sides every probability below `floor` is raised
    to it and the rows are scaled to sum to 1 again. The value depends on the floor where draws
    reach ranks that the reference never does: compare figures with the same floor only.

    Parameters
    ----------
    draws, reference_draws : (n_draws, n_items) array_like of int
        Rankings.
    weights : (n_draws,) array_like, optional
        Weights of `draws`.
    floor : float
        Smallest probability of a cell, on both sides.

    Examples
    --------
    >>> marginal_divergence([[1, 2], [2, 1]], [[1, 2], [2, 1], [2, 1], [1, 2]])
    0.0
    """
    left, right = check_rankings(draws, "draws"), check_rankings(reference_draws, "reference_draws")
    if left.shape[1] != right.shape[1]:
        raise ValueError(f"draws have {left.shape[1]} items, reference_draws have {right.shape[1]}")
    share, floor = None, check_number(floor, "floor")
    if weights is not None:
        try:
            share = np.asarray(weights, dtype=np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"weights must be numbers, got {weights!r}") from None
        if not (np.isfinite(share).all() and share.min(initial=0) >= 0 < share.max(initial=0)):
            raise ValueError("weights must be finite numbers, 0 or more, and not all 0")
    return rank_divergence(share_of_ranks(left, share), share_of_ranks(right), floor=floor)


@dataclass(frozen=True, eq=False)
class Search:
    """The path of a search.

    Attributes
    ----------
    visit_orders : (n_iterations + 1, n_items) array
        ``visit_orders[iteration]`` holds the items in the order of their visits; 0 is the start.
    divergences : (n_iterations + 1,) array
        The marginal divergence of each.
    settled : bool
        Whether the search would stay at the last order for good.
    """

    visit_orders: NDArray[np.int64]
    divergences: NDArray[np.float64]
    settled: bool

    @property
    def visit_order(self) -> NDArray[np.int64]:
        """The best order on the path, which need not be the last."""
        return np.asarray(self.visit_orders[self.divergences.argmin()])

    @property
    def divergence(self) -> float:
        """Its marginal divergence."""
        return float(self.divergences.min())

    def __repr__(self) -> str:
        end = "settled" if self.settled else "stopped"
        return (
            f"Search(divergence {self.divergence:.3g}, from {self.divergences[0]:.3g}; {end} after "
            f"{len(self.divergences) - 1} iterations)"
        )


def search(
    rankings: ArrayLike,
    alpha: float,
    start: ArrayLike | None = None,
    *,
    n_iterations: int = 50,
    n_draws: int | None = None,
    polish: bool = False,
    floor: float = FLOOR,
    rng: np.random.Generator | int | None = None,
) -> Search:
    """Search for the visit order whose Pseudo-Mallows law is closest to the exact posterior.

    The paper's Algorithm 2. For each item and place, move the item there ("leap"), the items
    between one place towards the gap ("shift"), and see how much the marginal divergence changes.
    These changes are the costs of an assignment of items to places; its solution is the next order.
    The divergence may rise on the way, and the path may end in a circle, where the search stops:
    the changes are those of single moves.

    Parameters
    ----------
    rankings : (n_users, n_items) array_like of int
        Full rankings.
    alpha : float
        Concentration of the users around the consensus, 0 or more.
    start : (n_items,) array_like of int, optional
        The visit order to start from; by default a V-ranking of the mean ranks.
    n_iterations : int
        Iterations at most.
    n_draws : int, optional
        Draws behind each divergence, as in the paper; they are noisy, so the search never stops
        early, and the divergence it reports, the smallest it saw, is too low. By default up to 20
        items none: sums over sets of ranks. Beyond, 1000.
    polish : bool
        Beyond the paper: in the end, go back to the best order and take the best single move, as
        long as one helps, again at most `n_iterations` times.
    floor : float
        Smallest probability of a cell, as in :func:`marginal_divergence`.
    rng : numpy.random.Generator or seed, optional
        Source of randomness: of the start and of the draws.

    Returns
    -------
    Search
        The best order, and the whole path.

    Examples
    --------
    >>> from pseudomallows import Mallows
    >>> rankings = Mallows([1, 2, 3, 4, 5], alpha=1).draw(100, rng=1)
    >>> found = search(rankings, alpha=1, start=[0, 1, 2, 3, 4])
    >>> found
    Search(divergence 0.741, from 29; settled after 2 iterations)
    >>> found.visit_order
    array([2, 3, 1, 4, 0])
    """
    rankings = check_rankings(rankings)
    law = PseudoMallows(rankings, alpha)
    n_iterations = check_count(n_iterations, "n_iterations")
    if n_draws is None and law.n_items > MOST_ITEMS:
        n_draws = 1000
    rng = as_rng(rng)
    order = _start(law, start, rng)
    if n_draws is None:
        measure = exact_divergence(law, floor)
    else:
        reference = _reference(law, rng)
        measure = _drawn_divergence(law, reference, check_count(n_draws, "n_draws"), floor, rng)

    return follow(order, measure, n_iterations, polish, noisy=n_draws is not None)


def follow(
    order: Order, measure: Divergence, n_iterations: int, polish: bool, noisy: bool = False
) -> Search:
    """The search from a start, for any measure of visit orders."""
    path = [(order, measure(order))]
    settled = _descend(path, measure, n_iterations, noisy)
    if polish:
        settled = _polish(path, measure, n_iterations)
    orders, divergences = zip(*path, strict=True)
    return Search(np.array(orders), np.array(divergences), settled)


def _descend(path: Path, measure: Divergence, n_iterations: int, noisy: bool) -> bool:
    """Iterate; without noise, until an order comes again: then it would go in circles."""
    seen: set[bytes] = set()
    order, divergence = path[0]
    while len(path) <= n_iterations:
        seen.add(order.tobytes())
        order = next_order(order, single_moves(order, divergence, measure))
        if order.tobytes() in seen and not noisy:
            return bool((order == path[-1][0]).all())
        divergence = measure(order)
        path.append((order, divergence))
    return False


def _polish(path: Path, measure: Divergence, n_iterations: int) -> bool:
    """From the best order so far take the best single move, until none helps."""
    order, divergence = min(path, key=lambda point: point[1])
    for _ in range(n_iterations):
        changes = single_moves(order, divergence, measure)
        now, then = np.unravel_index(changes.argmin(), changes.shape)
        if changes[now, then] >= -SMALLEST_GAIN:
            path.append((order, divergence))
            return True
        order = leap_and_shift(order, int(now), int(then))
        divergence = measure(order)
        path.append((order, divergence))
    return False


def _start(law: PseudoMallows, start: ArrayLike | None, rng: np.random.Generator) -> Order:
    if start is None:
        mean_ranking = rank_randomly(law.tally.rank_sums(), rng)
        return orderings_of(draw_v_ranking(mean_ranking, rng))
    return check_order(start, law.n_items, "start")


def single_moves(order: Order, divergence: float, measure: Divergence) -> NDArray[np.float64]:
    """``changes[now, then]`` of the divergence when the item at place `now` moves to `then`."""
    n_items = len(order)
    changes = np.zeros((n_items, n_items))
    for now, then in np.ndindex(n_items, n_items):
        if now == then + 1:  # two neighbours change places: the same as the move of the other one
            changes[now, then] = changes[then, now]
        elif now != then:
            changes[now, then] = measure(leap_and_shift(order, now, then)) - divergence
    return changes


def next_order(order: Order, changes: NDArray[np.float64]) -> Order:
    """The assignment of items to places with the smallest sum of changes."""
    from scipy.optimize import linear_sum_assignment

    places = linear_sum_assignment(changes)[1]
    return np.asarray(order[np.argsort(places)])


def leap_and_shift(order: Order, now: int, then: int) -> Order:
    """The item visited at place `now` moves to `then`; those between move one place towards `now`.

    >>> leap_and_shift(np.array([5, 6, 7, 8]), 0, 2)
    array([6, 7, 5, 8])
    """
    return np.insert(np.delete(order, now), then, order[now])


def exact_divergence(law: PseudoMallows, floor: float = FLOOR) -> Divergence:
    """The marginal divergence of a visit order, both sides by sums over sets of ranks."""
    n_items = law.n_items
    log_weights = law.posterior_weights
    reference, marginals = np.empty((n_items, n_items)), np.empty((n_items, n_items))
    posterior_by_subsets(log_weights, reference)
    room = room_for_sets(n_items)

    def measure(order: Order) -> float:
        pseudo_by_subsets(log_weights, order, False, LEAST, room, marginals)
        return rank_divergence(marginals, reference, floor=floor)

    return measure


def _reference(law: PseudoMallows, rng: np.random.Generator) -> NDArray[np.float64]:
    """Rank probabilities of the exact posterior: by sums, or from a long Metropolis chain."""
    reference = np.empty((law.n_items, law.n_items))
    if law.n_items <= MOST_ITEMS:
        posterior_by_subsets(law.posterior_weights, reference)
        return reference
    chain = ConsensusChain(law.tally, law.tally.best(), int(rng.integers(2**63)))
    return share_of_ranks(np.array([chain.sweep(law.alpha) for _ in range(REFERENCE_DRAWS)]))


def _drawn_divergence(
    law: PseudoMallows,
    reference: NDArray[np.float64],
    n_draws: int,
    floor: float,
    rng: np.random.Generator,
) -> Divergence:
    """The same from fresh draws each time."""

    def measure(order: Order) -> float:
        draws = law.draw(n_draws, rng, order)
        return rank_divergence(share_of_ranks(draws), reference, floor=floor)

    return measure
