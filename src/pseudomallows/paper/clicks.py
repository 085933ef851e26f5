"""Users known in part, above all by clicks: their latent rankings (Algorithm 4), the chain that
draws these and the consensus in turn (Algorithm 5), and recommendations by counting (section 3.4).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..distances import price_of
from ..distances.tallies import Counts, Ranking, RankTally, Tally, rank_tally
from ..files.saved import Saved
from ..kernels.click_rows import ClickRows, slice_clicks
from ..kernels.groups import draw_users
from ..kernels.streams import Streams
from ..latent.click_population import ClickPopulation
from ..latent.population import Completed, Draw, DrawOrigin, Population, finish_draws
from ..preferences import Clicks
from ..rankings import (
    MAX_ALPHA,
    as_rng,
    check_alpha,
    check_count,
    check_name,
    check_rankings,
    orderings_of,
    rank_randomly,
)
from .pseudo import PseudoMallows
from .visit_orders import ORDERS

Floats = NDArray[np.float64]
N_CANDIDATES = 20  # among which "balanced" chooses: beside the tally of all users they cost little
MAX_SWEEPS = 2**50  # nobody can make so many


@dataclass(frozen=True)
class PseudoLaw:
    """How Algorithm 4 draws the latent rankings: what its tasks need besides the rows."""

    ordering: Counts
    rate: float
    seed: int
    number: int
    order: int

    def count(self, population: ClickPopulation, rows: slice) -> Counts:
        """What a block adds."""
        counts = np.zeros((population.n_items, population.n_items), dtype=np.int64)
        numbers, weights = population.row_numbers[rows], population.row_weights[rows]
        nobody = np.empty((0, population.n_items), dtype=np.int32)
        self.draw(population.clicks_of_rows(rows), numbers, weights, counts, nobody)
        return counts

    def draw(
        self, clicks: ClickRows, numbers: Counts, weights: Counts, counts: Counts, kept: Ranking
    ) -> None:
        """Add the ranks of these users to `counts`, and put their rankings into `kept`, if it has
        rows."""
        streams = Streams(self.seed, self.number, numbers, weights)
        draw_users(streams, clicks, self.ordering, self.rate, self.order, counts, kept)


class PseudoDraw(Draw):
    """One draw of all latent rankings by Algorithm 4, in the making."""

    def __init__(self, population: Population, origin: DrawOrigin, order: str):
        self.population, self._consensus = population, origin.consensus
        self.law = PseudoLaw(
            orderings_of(origin.consensus),
            origin.alpha / population.n_items,
            origin.seed,
            origin.number,
            ORDERS[order],
        )
        self._counts = np.zeros((population.n_items, population.n_items), dtype=np.int64)

    def add(self, part: Counts) -> None:
        """Add the counts of a block."""
        self._counts += part

    def finish(self) -> Completed:
        """The tally, once all blocks are added; the consensus stays where it is."""
        prices = price_of(self.population.distance)
        return Completed(RankTally(prices, self._counts), self._consensus)


@dataclass(frozen=True)
class PseudoMoves:
    """How the consensus is drawn from a Pseudo-Mallows law, and the latent rankings before it."""

    balanced: bool = False
    weighted: bool = False
    sigma: float = 0.0
    order: str | None = None  # of Algorithm 4; None: latent rankings are drawn exactly


@dataclass
class Group:
    """The users of one cluster, None if there are none, and where its consensus is."""

    population: Population | None
    consensus: Ranking
    alpha: float
    seed: int
    tally: Tally | None = None  # of the latest rankings
    before: Ranking | None = None  # the consensus that these were drawn from


class PseudoChain:
    """Algorithm 5: the latent rankings given the consensus, then the consensus given them.

    The users of several clusters are divided before, as in the case study of the paper, so that
    each cluster is a chain of its own. Partial rankings have exact latent rankings in place of
    Algorithm 4; full ones need none, and their draws are independent.

    Parameters
    ----------
    population : Population
        All users.
    groups : list of Group
        Where each cluster begins.
    counts, memberships : (n_rows, n_clusters) arrays
        How many users of a row are in each cluster, and with what probability a user is.
    moves : PseudoMoves
        How a sweep moves the groups.
    """

    errors = np.empty(0)  # of comparisons, which there are none of

    def __init__(
        self,
        population: Population,
        groups: Sequence[Group],
        counts: Counts,
        memberships: Floats,
        moves: PseudoMoves,
        rng: np.random.Generator,
    ):
        self.population, self.groups, self._moves, self._rng = population, groups, moves, rng
        self._counts, self.mean_memberships, self.n_sweeps = counts, memberships, 0

    @property
    def shares(self) -> Floats:
        """``shares[cluster]``: the mean membership."""
        weights = self.population.row_weights
        return np.asarray(weights @ self.mean_memberships / weights.sum())

    @property
    def consensus(self) -> Ranking:
        """``consensus[cluster, item]``."""
        return np.stack([group.consensus for group in self.groups])

    @property
    def alpha(self) -> Floats:
        """``alpha[cluster]``."""
        return np.array([group.alpha for group in self.groups])

    @property
    def evidence(self) -> NDArray[Any]:
        """``evidence[cluster]`` of the latest rankings (see `Tally`); 0 for an empty cluster."""
        nothing = np.zeros_like(self.population.known.evidence)
        tallies = [group.tally for group in self.groups]
        return np.stack([nothing if tally is None else tally.evidence for tally in tallies])

    def sweep(self, adapt: bool) -> None:
        """Latent rankings of all users, then the consensus of each cluster."""
        self.n_sweeps += 1
        unknown = []
        for group in self.groups:
            group.before = group.consensus
            if group.population is not None and group.population.is_full:
                group.tally = group.population.known
            elif group.population is not None:
                unknown.append(group)
        draws = [self._begin_draw(group) for group in unknown]
        for group, found in zip(
            unknown, finish_draws(draws, self.population.executor), strict=True
        ):
            group.tally, group.consensus = found
        for group in self.groups:
            group.consensus = self._draw_consensus(group)

    def _begin_draw(self, group: Group) -> Draw:
        """Algorithm 4, or exact latent rankings."""
        assert group.population is not None
        if self._moves.order is None:
            return group.population.begin_draw(
                group.consensus, group.alpha, group.seed, self.n_sweeps
            )
        origin = DrawOrigin(group.consensus, group.alpha, group.seed, self.n_sweeps)
        return PseudoDraw(group.population, origin, self._moves.order)

    def _draw_consensus(self, group: Group) -> Ranking:
        """Algorithm 3, or a choice by weight among balanced draws; anything for nobody."""
        if group.tally is None:
            return rank_randomly(np.zeros(self.population.n_items), self._rng)
        moves, tally = self._moves, rank_tally(group.tally)
        law = PseudoMallows.from_tally(tally, group.alpha, moves.sigma, moves.balanced)
        if moves.weighted:
            return law.redraw(group.consensus, N_CANDIDATES, self._rng).copy()
        return law.draw(1, self._rng)[0]

    def latent_of(self, users: NDArray[np.int64]) -> Ranking:
        """The latest latent rankings of some users of one cluster: the same streams give the same
        bits."""
        (group,) = self.groups
        population: Any = group.population
        assert group.before is not None
        origin = DrawOrigin(group.before, group.alpha, group.seed, self.n_sweeps)
        if self._moves.order is None:
            return population.latent_of(users, origin)
        known = population.everyone.take(users)
        numbers = np.array([population.row_of(int(user))[1] for user in users], dtype=np.int64)
        counts = np.zeros((population.n_items, population.n_items), dtype=np.int64)
        kept = np.zeros((len(users), population.n_items), dtype=np.int32)
        rows, weights = ClickRows(known.starts, known.codes), np.maximum(known.weights, 1)
        law = PseudoDraw(population, origin, self._moves.order).law
        law.draw(rows, numbers, weights, counts, kept)
        return kept

    def forget(self) -> None:
        """Nothing: the memberships are those of the start."""

    def log_posterior(self) -> float:
        """Not known."""
        return float("nan")

    def difference(self) -> float:
        """Exact minus approximate log likelihood: none is used here."""
        return 0.0

    def to_save(self) -> dict[str, Any]:
        """What a checkpoint keeps between two sweeps."""
        return {
            "consensus": self.consensus,
            "alpha": self.alpha,
            "seeds": np.array([group.seed for group in self.groups]),
            "counts": self._counts,
            "memberships": self.mean_memberships,
            "n_sweeps": self.n_sweeps,
            "rng": self._rng.bit_generator.state,
        }

    def resume(self, saved: Saved) -> None:
        """Go on from there."""
        shape, n_items = self._counts.shape, self.population.n_items
        consensus = saved.rankings("consensus", (shape[1], n_items))
        alpha = saved.array("alpha", np.float64, shape[1:])
        saved.check_range("alpha", alpha, 0.0, MAX_ALPHA)
        seeds = saved.array("seeds", np.int64, shape[1:])
        saved.check_range("seeds", seeds, 0, 2**63 - 1)
        self.mean_memberships = saved.array("memberships", np.float64, shape)
        saved.check_shares("memberships", self.mean_memberships)
        counts, weights = saved.array("counts", np.int64, shape), self.population.row_weights
        saved.check_range("counts", counts, 0, weights.max())
        if (counts.sum(axis=1) != weights).any():
            saved.refuse("counts", "must have as many users as the data")
        self.n_sweeps = saved.count("n_sweeps", 0, MAX_SWEEPS)
        self._counts, self._rng = counts, saved.generator("rng")
        self.groups = make_groups(self.population, counts, consensus, alpha, seeds)


def make_groups(
    population: Population, counts: Counts, consensus: Ranking, alpha: Floats, seeds: Counts
) -> list[Group]:
    """The groups of users that are divided in this way; all of them are one group as they are."""
    n_clusters = counts.shape[1]
    parts: list[Population | None] = [population]
    if n_clusters > 1:
        parts = population.share_out(counts, [population] * n_clusters)
    states = zip(parts, consensus, alpha.tolist(), seeds.tolist(), strict=True)
    return [Group(part, center.copy(), value, seed) for part, center, value, seed in states]


def count_next(
    clicks: Clicks,
    consensus: ArrayLike,
    alpha: float,
    k: int,
    *,
    order: str = "uniform",
    rng: np.random.Generator | int | None = None,
) -> Floats:
    """P(c < rank <= c + k) of each item, for users with c clicks (equation 25), by counting.

    As the paper does: one latent ranking of each user for each draw of the consensus (Algorithm 4).
    200 draws leave an error of up to 0.035. :func:`recommend` has exact sums instead.

    Parameters
    ----------
    clicks : Clicks
        Of the users.
    consensus : (n_draws, n_items) array_like of int
        Draws, such as ``posterior.consensus[0, :, 0]``.
    alpha : float
        Concentration of the users.
    k : int
        How many ranks after the clicks.
    order : str
        How a user's items are visited: "uniform", "v" or "top_bottom".

    Returns
    -------
    (n_users, n_items) array
        Clicked items have 0.

    Examples
    --------
    >>> from pseudomallows import Preferences
    >>> clicks = Preferences.from_clicks([[1, 0, 0, 0]])
    >>> count_next(clicks, [[1, 2, 3, 4]] * 1000, 8.0, 1, rng=1).round(1)
    array([[0. , 0.9, 0.1, 0. ]])
    """
    draws, k = check_rankings(consensus, "consensus"), check_count(k, "k")
    if draws.shape[1] != clicks.n_items:
        raise ValueError(f"consensus must have {clicks.n_items} items, got {draws.shape[1]}")
    rate = check_alpha(alpha) / clicks.n_items
    seed, visits = int(as_rng(rng).integers(2**63)), ORDERS[check_name(order, "order", ORDERS)]
    numbers, ones = np.arange(clicks.n_users), np.ones(clicks.n_users, dtype=np.int64)
    rows, n_clicks = slice_clicks(clicks, slice(0, clicks.n_users)), clicks.n_clicks[:, None]
    counts = np.zeros((clicks.n_items, clicks.n_items), dtype=np.int64)
    ranks = np.zeros((clicks.n_users, clicks.n_items), dtype=np.int32)
    found = np.zeros(ranks.shape)
    for number, ordering in enumerate(orderings_of(draws)):
        PseudoLaw(ordering, rate, seed, number, visits).draw(rows, numbers, ones, counts, ranks)
        found += (ranks > n_clicks) & (ranks <= n_clicks + k)
    return found / len(draws)
