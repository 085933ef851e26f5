"""The Pseudo-Mallows distribution (section 2.2): draws (Algorithms 1 and 3), probability, ELBO."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import distances
from ..distances.tallies import Proposals, Ranking, RankTally
from ..engines.executors import all_cores, blocks
from ..kernels.pseudo_draws import MOST, Cells, cells_of, draw_consensuses
from ..kernels.streams import CHAIN, start_stream
from ..kernels.subsets import posterior_by_subsets, pseudo_by_subsets, room_for_sets
from ..rankings import (
    as_array,
    as_rng,
    check_alpha,
    check_count,
    check_ranking,
    check_rankings,
    check_sigma,
    check_weights,
    orderings_of,
    rank_randomly,
)
from ..scores import rank_divergence, share_of_ranks, weighted_effective_size
from .balanced import balance_weights
from .visit_orders import check_order, from_middle, tied_rankings, v_rankings

EXACT_ITEMS = 16  # up to here sums over all rankings are exact, by 2^n sets of ranks, in 0.1 s
EXACT_ORDERS = 50_000  # up to here a sum over visit orders is: all 40,320 of 8 items
MOVES = 10  # of a sweep of a chain, for each item, as in a fit
SIGMA_DRAWS = 200  # for each sigma that is tried; the divergence sums over n_items rows of them
MOST_SEEN = 30  # different draws of a law that may be nearly degenerate; of more the spread is fair

# Of the items: one for all draws, one for each, or a function of (n_draws, rng) that draws them.
VisitOrders = ArrayLike | Callable[[int, np.random.Generator], ArrayLike]


@dataclass(frozen=True, eq=False)
class WeightedDraws:
    """Draws with their importance weights towards the exact posterior."""

    rankings: NDArray[np.int32]
    log_weights: NDArray[np.float64]

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weights that sum to 1."""
        weights = np.exp(self.log_weights - self.log_weights.max())
        return np.asarray(weights / weights.sum())

    @property
    def effective_size(self) -> float:
        """Effective size: a number of draws of the exact posterior."""
        return weighted_effective_size(self.weights)


@dataclass(frozen=True)
class Evidence:
    """The ELBO, the log evidence above it, and their difference, the divergence.

    Given a visit order, the divergence is KL(Pseudo-Mallows || exact). Without one, it is the mean
    of that over the visit orders: an upper bound of the divergence of the mixture.

    `error` is the standard error of the ELBO, and `effective_size` that of the draws behind the log
    evidence; 0 and infinity where the sums are exact. Draws of a nearly degenerate law are all
    alike, and their spread is uninformative about rankings they have missed; where these have so
    small a probability, which is known, `error` also holds the most that they can change. The
    constant terms that do not depend on the consensus are left out, as in the paper.
    """

    elbo: float
    log_evidence: float
    error: float
    effective_size: float

    @property
    def divergence(self) -> float:
        """KL from the Pseudo-Mallows law to the exact posterior, or its mean over visit orders."""
        return self.log_evidence - self.elbo


class PseudoMallows:
    """The Pseudo-Mallows distribution of the consensus of full rankings.

    A consensus is drawn item by item, each item among the ranks still free, with probability
    proportional to exp(-alpha / n_items * costs[item, rank - 1]). Draws are independent, and their
    probability is known in closed form.

    Parameters
    ----------
    rankings : (n_users, n_items) array_like of int
        Full rankings.
    alpha : float
        Concentration of the users around the consensus, 0 or more.
    sigma : float or "auto"
        Standard deviation of the noise on the V-ranking that orders the items. "auto": the one
        whose draws have rank probabilities nearest to the balanced matrix.
    balanced : bool
        Beyond the paper: give each rank a price first, so that no rank is in excess demand, visit
        the items in uniformly random order, and leave a rank alone that an item still to come can
        hardly do without (foresight). Its draws are far closer to the exact posterior than those of
        V-rankings, and their weights hold for hundreds of items.
    weights : (n_users,) array_like of int, optional
        How many people gave each ranking.
    distance : str
        "footrule".

    Examples
    --------
    >>> q = PseudoMallows([[1, 2, 3], [1, 2, 3], [1, 3, 2]], alpha=6)
    >>> q.draw(2, rng=1)
    array([[1, 2, 3],
           [1, 2, 3]], dtype=int32)
    >>> round(float(np.exp(q.log_probability([1, 2, 3], visit_order=[1, 2, 0]))), 4)
    0.8786
    """

    def __init__(
        self,
        rankings: ArrayLike,
        alpha: float,
        sigma: float | str = 0.0,
        balanced: bool = False,
        *,
        weights: ArrayLike | None = None,
        distance: str = "footrule",
    ):
        rankings = check_rankings(rankings)
        counts = check_weights(weights, len(rankings))
        if not counts.any():
            raise ValueError("all weights are 0: at least one must be more")
        tally = check_rank_tally(distances.get(distance).tally(rankings.shape[1]), distance)
        tally.add(rankings, counts)
        self._set(tally, check_alpha(alpha), check_sigma(sigma), balanced)

    @classmethod
    def from_tally(
        cls, tally: RankTally, alpha: float, sigma: float | str = 0.0, balanced: bool = False
    ) -> PseudoMallows:
        """The same from a tally of the rankings, which is not checked."""
        self = cls.__new__(cls)
        self._set(tally, alpha, sigma, balanced)
        return self

    def _set(self, tally: RankTally, alpha: float, sigma: float | str, balanced: bool) -> None:
        if not isinstance(balanced, bool | np.bool_):
            raise TypeError(f"balanced must be True or False, got {balanced!r}")
        if balanced and sigma:
            raise ValueError(f"sigma has no meaning with balanced=True, got sigma={sigma}")
        self.tally, self.alpha, self._sigma, self.balanced = tally, alpha, sigma, bool(balanced)

    @cached_property
    def sigma(self) -> float:
        """Standard deviation of the noise on the V-ranking; "auto" is searched for when first asked
        for, from none upwards until the draws get no nearer to the balanced matrix."""
        if not isinstance(self._sigma, str):
            return self._sigma
        nearest, wanted = (math.inf, 0.0), self.balanced_marginals()
        sigma, n_worse = 0.0, 0
        while sigma <= self.n_items / 2 and n_worse < 2:  # one may be worse by sampling variation
            law = PseudoMallows.from_tally(self.tally, self.alpha, sigma)
            draws = law.draw(SIGMA_DRAWS, np.random.default_rng(0))  # the same noise each time
            distance = rank_divergence(share_of_ranks(draws), wanted)
            n_worse = n_worse + 1 if distance >= nearest[0] else 0
            nearest = min(nearest, (distance, sigma))
            sigma = 1.0 if sigma == 0 else 1.5 * sigma
        return nearest[1]

    @property
    def costs(self) -> NDArray[np.int64]:
        """``costs[item, rank - 1]``: distance, over all users, of that choice."""
        return self.tally.costs

    def __repr__(self) -> str:
        kind = "balanced" if self.balanced else f"sigma={self._sigma!r}"
        return f"PseudoMallows({self.n_items} items, alpha={self.alpha:g}, {kind})"

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.tally.n_items

    @cached_property
    def posterior_weights(self) -> NDArray[np.float64]:
        """Log of the exact posterior, up to a constant, as a sum over cells [item, rank - 1]."""
        return np.asarray(-self.alpha / self.n_items * self.costs, dtype=np.float64)

    @cached_property
    def _log_weights(self) -> NDArray[np.float64]:
        """The weights of the draws: the same, or balanced."""
        if not self.balanced:
            return self.posterior_weights
        return balance_weights(self.posterior_weights)

    @cached_property
    def _cells(self) -> Cells:
        """The weights as the kernel reads them; it has foresight if they are balanced."""
        return cells_of(self._log_weights, self.balanced)

    @property
    def _balance_constant(self) -> float:
        """What the prices add to the log weight of every ranking."""
        return float(np.trace(self._log_weights) - np.trace(self.posterior_weights))

    def balanced_marginals(self) -> NDArray[np.float64]:
        """The balanced matrix: a fast estimate of the rank probabilities, without any draw."""
        return np.exp(balance_weights(self.posterior_weights))

    def draw(
        self,
        n_draws: int,
        rng: np.random.Generator | int | None = None,
        visit_order: VisitOrders | None = None,
    ) -> NDArray[np.int32]:
        """Draw consensuses ``[draw, item]``.

        The items are visited in `visit_order` (Algorithm 1), or else in the order of a V-ranking
        drawn anew for each draw (Algorithm 3), or uniformly at random if balanced. `visit_order`
        may have one order for each draw, or be a function of the number of draws and a generator
        that makes them: the paper's g is any distribution of orders.

        >>> q = PseudoMallows([[1, 2, 3], [1, 2, 3], [1, 3, 2]], alpha=6)
        >>> def from_the_end(n_draws, rng):
        ...     return np.tile([2, 1, 0], (n_draws, 1))
        >>> q.draw(1000, rng=1, visit_order=from_the_end).mean(axis=0).round(1)
        array([1. , 2.1, 2.9])
        """
        return self.draw_weighted(n_draws, rng, visit_order).rankings

    def draw_weighted(
        self,
        n_draws: int,
        rng: np.random.Generator | int | None = None,
        visit_order: VisitOrders | None = None,
    ) -> WeightedDraws:
        """Draw consensuses with their importance weights towards the exact posterior.

        The mean of the weights estimates the evidence, the mean of their logs is the ELBO.
        """
        return self._draw_along(n_draws, rng, visit_order)[0]

    def _draw_along(
        self,
        n_draws: int,
        rng: np.random.Generator | int | None,
        visit_order: VisitOrders | None,
    ) -> tuple[WeightedDraws, NDArray[np.int64]]:
        """Draws, and the visit orders behind them."""
        rng = as_rng(rng)
        n_draws = check_count(n_draws, "n_draws")
        if visit_order is None:
            orders = self._draw_visit_orders(n_draws, rng)
        else:
            orders = self._check_orders(visit_order, n_draws, rng)
        rankings = np.empty((n_draws, self.n_items), dtype=np.int32)
        log_probabilities = np.empty(n_draws)
        self._fill_draws(orders, rankings, log_probabilities, int(rng.integers(2**63)))
        log_weights = self._log_posterior(rankings) - log_probabilities
        return WeightedDraws(rankings, log_weights), orders

    def _fill_draws(
        self,
        orders: NDArray[np.int64],
        rankings: NDArray[np.int32],
        log_probabilities: NDArray[np.float64],
        seed: int | None = None,
    ) -> None:
        """Draw `rankings`, or take them as they are without a seed; on all cores."""
        cells = self._cells

        def run(rows: slice) -> None:
            where = seed or 0, rows.start
            outputs = seed is None, rankings[rows], log_probabilities[rows]
            draw_consensuses(*where, cells, orders[rows], *outputs)

        list(all_cores().map(run, blocks(len(orders))))

    def _log_probabilities(
        self, consensus: NDArray[np.int32], orders: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Log probability of a consensus, given each of the visit orders."""
        values = np.empty(len(orders))
        rankings = np.tile(np.asarray(consensus, dtype=np.int32), (len(orders), 1))
        self._fill_draws(orders, rankings, values)
        return values

    def _log_posterior(self, rankings: NDArray[np.int32]) -> NDArray[np.float64]:
        """Log of the exact posterior, up to a constant."""
        items = np.arange(self.n_items)
        return np.asarray(self.posterior_weights[items, rankings - 1].sum(axis=-1))

    def redraw(
        self, consensus: NDArray[np.int32], n_candidates: int, rng: np.random.Generator
    ) -> NDArray[np.int32]:
        """Choose by weight among this consensus and fresh draws.

        Iterated sampling-importance-resampling (Andrieu, Lee and Vihola 2018): a move that leaves
        the exact posterior as it is, whatever the quality of the draws.
        """
        fresh = self.draw_weighted(n_candidates, rng)
        order = self._draw_visit_orders(1, rng)[0]
        held = self._log_posterior(consensus) - self.log_probability(consensus, order)
        logs = np.append(fresh.log_weights, held)
        weights = np.exp(logs - logs.max())
        chosen = int(rng.choice(len(logs), p=weights / weights.sum()))
        return consensus if chosen == n_candidates else fresh.rankings[chosen]

    def _draw_visit_orders(self, n_draws: int, rng: np.random.Generator) -> NDArray[np.int64]:
        shape = (n_draws, self.n_items)
        if self.balanced:
            return orderings_of(rng.random(shape))
        rank_sums = np.broadcast_to(self.tally.rank_sums(), shape)
        v_rankings = rank_randomly(from_middle(rank_randomly(rank_sums, rng)), rng)
        if self.sigma == 0:
            return orderings_of(v_rankings)
        return orderings_of(v_rankings + self.sigma * rng.standard_normal(shape))

    def log_probability(self, ranking: ArrayLike, visit_order: ArrayLike | None = None) -> float:
        """Log probability of a consensus, given the visit order.

        Without one, that of the mixture over all visit orders that `draw` can take, by enumeration:
        for few items and sigma 0.
        """
        consensus = check_ranking(ranking, "ranking")
        if len(consensus) != self.n_items:
            raise ValueError(f"ranking must have {self.n_items} items, got {len(consensus)}")
        if visit_order is not None:
            orders = check_order(visit_order, self.n_items)[None]
        else:
            orders = self._all_visit_orders()
        values = self._log_probabilities(consensus, orders)
        return float(np.logaddexp.reduce(values) - math.log(len(orders)))

    def _check_orders(
        self, visit_order: VisitOrders, n_draws: int, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """An order for each draw."""
        asked = visit_order(n_draws, rng) if callable(visit_order) else visit_order
        orders = as_array(asked, "visit_order")
        if orders.ndim < 2:
            return np.tile(check_order(orders, self.n_items), (n_draws, 1))
        wanted = (n_draws, self.n_items)
        if orders.shape != wanted:
            raise ValueError(
                f"visit_order must have an order for each draw, {wanted}, got {orders.shape}"
            )
        wrong = np.flatnonzero((np.sort(orders, axis=1) != np.arange(self.n_items)).any(axis=1))
        if len(wrong):
            raise ValueError(
                f"visit_order[{wrong[0]}] must hold each of the items 0..{self.n_items - 1} once, "
                f"got {orders[wrong[0]].tolist()}; {len(wrong)} of {n_draws} have this problem"
            )
        return orders.astype(np.int64)

    def _all_visit_orders(self) -> NDArray[np.int64]:
        """Every visit order that `draw` can take, all of equal probability."""
        if self.sigma > 0:
            raise ValueError("the mixture over visit orders has no finite sum for sigma above 0")
        if self.balanced:
            n_orders = math.factorial(self.n_items)
            all_orders: Iterable[Any] = itertools.permutations(range(self.n_items))
        else:
            rank_sums = self.tally.rank_sums()
            ties = np.unique(rank_sums, return_counts=True)[1].tolist()
            n_orders = math.prod(map(math.factorial, ties)) << self.n_items // 2
            all_orders = (
                order
                for ranking in tied_rankings(rank_sums)
                for order in orderings_of(v_rankings(ranking))
            )
        if n_orders > EXACT_ORDERS:
            raise ValueError(
                f"the mixture has {n_orders} visit orders, more than {EXACT_ORDERS}: give one"
            )
        return np.array(list(all_orders), dtype=np.int64)

    def rank_probabilities(self, visit_order: ArrayLike) -> NDArray[np.float64]:
        """``probabilities[item, rank - 1]`` given the visit order, exact, up to 16 items."""
        self._check_exact()
        return self._sum_over_rankings(check_order(visit_order, self.n_items))[1]

    def _sum_over_rankings(self, order: NDArray[np.int64]) -> tuple[float, NDArray[np.float64]]:
        """The ELBO, but for a constant, and the rank probabilities, given the visit order."""
        marginals, room = np.empty((self.n_items, self.n_items)), room_for_sets(self.n_items)
        law = self._log_weights, order, self.balanced
        return float(pseudo_by_subsets(*law, 0.0, room, marginals)), marginals

    def exact_rank_probabilities(self) -> NDArray[np.float64]:
        """The same of the exact posterior, up to 16 items, by a sum over all rankings."""
        self._check_exact()
        marginals = np.empty((self.n_items, self.n_items))
        posterior_by_subsets(self.posterior_weights, marginals)
        return marginals

    def _check_exact(self) -> None:
        if self.n_items > EXACT_ITEMS:
            raise ValueError(
                f"exact sums over all rankings go up to {EXACT_ITEMS} items, got {self.n_items}: "
                "use draws"
            )

    def elbo(
        self,
        visit_order: ArrayLike | None = None,
        n_draws: int | None = None,
        rng: np.random.Generator | int | None = None,
    ) -> float:
        """Evidence lower bound: the mean log of the product of the denominators (equation 13).

        Exact for up to 16 items and a given visit order, unless `n_draws` asks for draws. Without a
        visit order, the mean over the orders that `draw` takes.

        >>> q = PseudoMallows([[1, 2, 3], [1, 2, 3], [1, 3, 2]], alpha=6)
        >>> round(q.elbo([1, 2, 0]), 5), round(q.elbo([1, 2, 0], n_draws=100_000, rng=1), 3)
        (-4.12784, -4.128)
        """
        return self.evidence(visit_order, n_draws, rng).elbo

    def evidence(
        self,
        visit_order: ArrayLike | None = None,
        n_draws: int | None = None,
        rng: np.random.Generator | int | None = None,
    ) -> Evidence:
        """The ELBO, the log evidence and the divergence between them, all from the same draws.

        Exact for up to 16 items and a given visit order, unless `n_draws` asks for draws.
        """
        if n_draws is None and visit_order is not None and self.n_items <= EXACT_ITEMS:
            elbo, marginals = self._sum_over_rankings(check_order(visit_order, self.n_items))
            log_evidence = posterior_by_subsets(self.posterior_weights, marginals)
            return Evidence(elbo - self._balance_constant, float(log_evidence), 0.0, math.inf)
        draws, orders = self._draw_along(1000 if n_draws is None else n_draws, rng, visit_order)
        logs = draws.log_weights
        spread = float(logs.std(ddof=1) / math.sqrt(len(logs))) if len(logs) > 1 else math.inf
        error = spread + self._missed(draws.rankings, orders[:MOST_SEEN])
        log_evidence = float(np.logaddexp.reduce(logs) - math.log(len(logs)))
        return Evidence(float(logs.mean()), log_evidence, error, draws.effective_size)

    def _missed(self, rankings: NDArray[np.int32], orders: NDArray[np.int64]) -> float:
        """The most that rankings outside of these draws can change the ELBO.

        0 where they are so likely that some of their kind are among the draws (rule of three).
        """
        seen = np.unique(rankings, axis=0)
        if len(seen) > MOST_SEEN:
            return 0.0
        drawn = np.zeros(len(orders))
        for ranking in seen:
            drawn += np.exp(self._log_probabilities(ranking, orders))
        unseen = max(float(1 - drawn.mean()), np.finfo(float).eps)
        if unseen * len(rankings) > 3:
            return 0.0
        logs, n_items = self._log_weights, self.n_items
        highest = np.logaddexp.reduce(logs, axis=1)  # of the log of an item's denominator
        most = float((highest - logs.min(axis=1)).sum())
        if self.balanced:  # each item to come adds a factor to a weight and to the denominator
            most -= n_items * (n_items - 1) * math.log(1 - MOST)
        return unseen * most


class ConsensusChain:
    """An exact chain of the consensus: sweeps of swaps."""

    def __init__(self, tally: RankTally, state: Ranking, seed: int):
        self.tally, self.state, self.seed, self.n_sweeps = tally, state.copy(), seed, 0
        self._stream = np.empty(1, dtype=np.uint64)

    def sweep(self, alpha: float) -> Ranking:
        """The consensus after its next sweep."""
        start_stream(self.seed, self.n_sweeps, CHAIN, self._stream)
        n_items = self.tally.n_items
        self.tally.move(self._stream, alpha / n_items, Proposals(MOVES * n_items), self.state)
        self.n_sweeps += 1
        return self.state.copy()


def check_rank_tally(tally: Any, distance: str) -> RankTally:
    """The tally, if Pseudo-Mallows can be made of it: the distance is a sum over items."""
    if not isinstance(tally, RankTally):
        raise ValueError(
            f"Pseudo-Mallows needs a distance that is a sum over items, got {distance!r}: use "
            "distance='footrule', or method='mcmc'"
        )
    return tally
