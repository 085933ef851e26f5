"""The latent full rankings of users who are known in part: what every kind of data shares."""

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..distributions.mallows import alpha_for_distance
from ..engines.executors import BLOCK, Executor, Threads, blocks
from ..inference.priors import Prior, log_density
from ..kernels.costs import footrule_costs, total_cost
from ..kernels.footrule.latent import pair_ranks, swap_partners
from ..kernels.footrule.partition import partition_and_distance
from ..kernels.streams import CENTRE, start_stream
from ..preferences.preferences import Preferences
from ..rankings import check_ranking, rank_randomly

HIGHEST_ALPHA = 1e4  # where the search for an alpha ends, if not all is known
UNITS, LOWEST_VALUE = 2**30, 2.0**27  # of sums of log probabilities, and of one user's
Counts = NDArray[np.int64]
Ranking = NDArray[np.int32]


class Latent(ABC):
    """What a fit needs to know of the users: counts of ranks, drawn anew for what is not known.

    Rows that say nothing are left out, so they change nothing. A row of weight w counts as w users,
    each with a latent ranking and a stream of random numbers of its own: the same bits as w rows.
    """

    mean_ranks: NDArray[np.float64]  # or any numbers that rank the items likewise
    known_costs: Counts  # costs[item, rank - 1] of the ranks that are known
    row_weights: Counts  # of the rows that say anything
    row_numbers: Counts  # of the first user of each of them; streams go by these
    click_sizes: "SizeCounts"  # of clicks, also of the users from whom these were selected

    def __init__(self, n_items: int, executor: Executor | None):
        self.n_items = n_items
        self.executor = Threads() if executor is None else executor
        self._known = np.zeros((n_items, n_items), dtype=np.int64)

    def _set_rows(self, weights: Counts, numbers: Counts | None) -> None:
        self.row_weights = weights
        self.row_numbers = np.cumsum(weights) - weights if numbers is None else numbers

    @property
    def n_rows(self) -> int:
        """Number of rows that say anything."""
        return len(self.row_weights)

    @property
    def n_users(self) -> int:
        """Number of users who say anything."""
        return int(self.row_weights.sum())

    @property
    @abstractmethod
    def n_unknown(self) -> int:
        """Number of rows of which something is not known."""

    @property
    def is_full(self) -> bool:
        """Is everything known?"""
        return self.n_unknown == 0

    @abstractmethod
    def places(self, cut: list[slice]) -> list[tuple[Any, slice | None]]:
        """Where the rows of such a cut lie: in which rows of what is at hand, or in which shards,
        each whole."""

    def full_log_likelihood(self, consensus: Ranking, alpha: float) -> float:
        """Log probability of the rows that are full."""
        return 0.0

    @abstractmethod
    def select(self, weights: Counts, numbers: Counts) -> "Latent":
        """The rows of weight above 0 alone, with these weights and numbers of first users."""

    @abstractmethod
    def gather(self, weights: Counts) -> "LocalLatent":
        """The same rows, at hand whatever they were before."""

    def draw(self, consensus: Ranking, alpha: float, seed: int, draw: int) -> Counts:
        """Draw all latent rankings; return ``costs[item, rank - 1]`` of the completed data.

        Then moves `consensus` and the latent rankings together, by swaps that leave the exact
        posterior as it is: a consensus given its own latent rankings alone would hardly move.
        """
        return finish_draws([ExactDraw(self, consensus, alpha, seed, draw)], self.executor)[0]

    def count_blocks(self) -> list[slice]:
        """Blocks of rows for counts: large enough that they outweigh the n x n tables, and equal
        pairs of them, so that two cores end at the same time."""
        size, n_rows = max(2 * BLOCK, self.n_items), self.n_unknown
        if n_rows <= BLOCK:
            return blocks(n_rows)
        n_pairs = max(1, round(n_rows / (2 * size)))
        return blocks(n_rows, math.ceil(n_rows / (2 * n_pairs)))

    def log_likelihood(self, consensus: Ranking, alpha: float) -> float:
        """Log probability of all that is known, given consensus and alpha; exact."""
        return log_likelihoods_of([(self, consensus, alpha)], self.executor)[0]

    def start(self, alpha: float, rng: np.random.Generator, n_rounds: int = 10) -> Ranking:
        """A good consensus to start from: the exact MAP for full rankings.

        For partial ones, the ranking of the mean ranks, improved by rounds of drawing the latent
        rankings and taking their exact MAP (stochastic EM).
        """
        if self.is_full:
            return best_assignment(self.known_costs)
        consensus = rank_randomly(self.mean_ranks, rng)
        seed = int(rng.integers(2**63))
        for n_round in range(n_rounds):
            consensus = best_assignment(self.draw(consensus, alpha, seed, n_round))
        return consensus

    def best_alpha(
        self, consensus: Ranking, prior: Prior | None = None, tolerance: float = 1e-5
    ) -> float:
        """The alpha that makes what is known most likely, given a consensus; maybe infinite.

        With a prior, the mode of its posterior, which is finite.
        """
        from scipy.optimize import minimize_scalar

        def depth(log_alpha: float) -> float:
            alpha = math.exp(log_alpha)
            penalty = 0.0 if prior is None else log_density(prior, alpha)
            return -self.log_likelihood(consensus, alpha) - penalty

        if self.is_full and prior is None:
            distance = float(total_cost(self.known_costs, consensus)) / self.n_users
            return alpha_for_distance(self.n_items, distance)
        best = minimize_scalar(
            depth,
            bounds=(math.log(1e-3), math.log(HIGHEST_ALPHA)),
            method="bounded",
            options={"xatol": tolerance},
        )
        if prior is not None:
            return math.exp(best.x)
        rising = self.log_likelihood(consensus, HIGHEST_ALPHA) >= -best.fun - 1e-9
        return math.inf if rising else math.exp(best.x)

    def for_chain(self) -> "Latent":
        """The latent rankings as one chain keeps them; nothing to keep where draws are exact."""
        return self


class LocalLatent(Latent):
    """The rows are at hand."""

    @abstractmethod
    def count_rows(self, rows: slice, law: "ExactLaw") -> Counts:
        """Counts of the latent ranks of some rows: of all, and of those shared with a partner."""

    @abstractmethod
    def unknown_log_likelihood(self, rows: slice, consensus: Ranking, alpha: float) -> int:
        """Log probability of some of the rows that are not full; see `exact_sum`."""

    @abstractmethod
    def row_log_likelihoods(
        self, rows: slice, consensus: Ranking, alpha: float
    ) -> NDArray[np.float64]:
        """Log probability of what is known of one user of each row, full or not."""

    @abstractmethod
    def features(self, n_features: int) -> NDArray[np.float64]:
        """Coordinates of each row in which like-minded users are near each other."""

    @abstractmethod
    def select(self, weights: Counts, numbers: Counts) -> "LocalLatent":
        """The rows of weight above 0 alone, with these weights and numbers of first users."""

    def places(self, cut: list[slice]) -> list[tuple[Any, slice | None]]:
        """Their rows."""
        return [(self, rows) for rows in cut]

    def gather(self, weights: Counts) -> "LocalLatent":
        """The rows of weight above 0 alone."""
        return self.select(weights, self.row_numbers)


@dataclass(frozen=True)
class SizeCounts:
    """``users[place]`` users have ``sizes[place]`` clicks; sizes rise."""

    sizes: Counts
    users: Counts


@dataclass(frozen=True)
class ExactLaw:
    """How one exact draw of all latent rankings is made: what its tasks need besides the rows."""

    consensus: Ranking
    lam: float
    seed: int
    number: int
    partners: Counts

    def blocks(self, latent: Latent) -> list[slice]:
        """The rows, cut into blocks."""
        return latent.count_blocks()

    def count(self, latent: LocalLatent, rows: slice) -> Counts:
        """What a block adds."""
        return latent.count_rows(rows, self)


class ExactDraw:
    """One exact draw of all latent rankings, in the making: its blocks may run anywhere."""

    def __init__(self, latent: Latent, consensus: Ranking, alpha: float, seed: int, number: int):
        self.latent, self._consensus = latent, consensus
        self._stream = np.empty(1, dtype=np.uint64)
        partners = np.empty(latent.n_items, dtype=np.int64)
        start_stream(seed, number, CENTRE, self._stream)
        pair_ranks(self._stream, consensus, partners)
        self.law = ExactLaw(consensus, alpha / latent.n_items, seed, number, partners)
        self._sums = np.zeros((2, latent.n_items, latent.n_items), dtype=np.int64)
        self._sums[0] = latent._known

    def add(self, part: Counts) -> None:
        """Add the counts of a block."""
        self._sums += part

    def costs(self) -> Counts:
        """The costs, once all blocks are added; moves the consensus along, see `Latent.draw`."""
        counts, shared = self._sums
        law = self.law
        swap_partners(self._stream, law.partners, shared, law.lam, self._consensus, counts)
        return np.asarray(footrule_costs(counts))


class Law(Protocol):
    """How latent rankings are drawn, exactly or not: small, so that it can travel to the rows."""

    def blocks(self, latent: Any) -> list[slice]: ...  # pragma: no cover
    def count(self, latent: Any, rows: slice) -> Counts: ...  # pragma: no cover


class Draw(Protocol):
    """A draw of latent rankings in the making."""

    @property
    def latent(self) -> Latent: ...  # pragma: no cover
    @property
    def law(self) -> Law: ...  # pragma: no cover
    def add(self, part: Counts) -> None: ...  # pragma: no cover
    def costs(self) -> Counts: ...  # pragma: no cover


# The tasks below run in threads, with blocks of rows, or on a cluster, with whole shards (None).


def finish_draws(draws: Sequence[Draw], executor: Executor) -> list[Counts]:
    """Run the blocks of several draws side by side; return the costs of each."""
    owners, tasks = [], []
    for draw in draws:
        for place in draw.latent.places(draw.law.blocks(draw.latent)):
            owners.append(draw)
            tasks.append((draw.law, *place))
    for draw, part in zip(owners, executor.map(_count, tasks), strict=True):
        draw.add(part)
    return [draw.costs() for draw in draws]


def _count(task: tuple[Law, LocalLatent, slice | None]) -> Counts:
    law, latent, rows = task
    parts = (law.count(latent, block) for block in ([rows] if rows else law.blocks(latent)))
    return functools.reduce(np.add, parts)


def log_likelihoods_of(
    points: Sequence[tuple[Latent, Ranking, float]], executor: Executor
) -> list[float]:
    """Log likelihood of each (users, consensus, alpha), their blocks side by side."""
    owners, tasks = [], []
    for point, (latent, consensus, alpha) in enumerate(points):
        for place in latent.places(blocks(latent.n_unknown)):
            owners.append(point)
            tasks.append((*place, consensus, alpha))
    sums = [0] * len(points)
    for point, part in zip(owners, executor.map(_log_likelihood, tasks), strict=True):
        sums[point] += part
    return [
        latent.full_log_likelihood(consensus, alpha) + total / UNITS
        for (latent, consensus, alpha), total in zip(points, sums, strict=True)
    ]


def _log_likelihood(task: tuple[LocalLatent, slice | None, Ranking, float]) -> int:
    latent, rows, consensus, alpha = task
    cut = [rows] if rows else blocks(latent.n_unknown)
    return sum(latent.unknown_log_likelihood(block, consensus, alpha) for block in cut)


def exact_sum(values: NDArray[np.float64], weights: Counts) -> int:
    """The weighted sum of log probabilities in units of 2^-30: however the rows are cut, the sums
    of the parts add up to the same bits.

    >>> exact_sum(np.array([-0.5, -2.0]), np.array([2, 1])) / UNITS
    -3.0
    """
    whole = np.rint(np.maximum(values, -LOWEST_VALUE) * UNITS).astype(np.int64)
    high, low = whole >> 24, whole & (2**24 - 1)  # with a total weight of 10^9 neither overflows
    return (int((weights * high).sum()) << 24) + int((weights * low).sum())


def best_assignment(costs: NDArray[Any]) -> Ranking:
    """The consensus of the lowest total cost, by linear assignment."""
    from scipy.optimize import linear_sum_assignment

    items, ranks = linear_sum_assignment(costs)
    consensus = np.empty(len(costs), dtype=np.int32)
    consensus[items] = ranks + 1
    return consensus


@functools.lru_cache(maxsize=64)
def log_partition(n_items: int, alpha: float) -> float:
    """Log partition function of the Mallows distribution, remembered."""
    return float(partition_and_distance(n_items, alpha / n_items)[0])


def principal_components(rows: Any, n_components: int) -> NDArray[np.float64]:
    """Rows (an array, centred, or a sparse matrix) along their axes of largest spread."""
    products = rows.T @ rows
    products = products.toarray() if hasattr(products, "toarray") else products
    _, axes = np.linalg.eigh(products)
    return np.asarray(rows @ axes[:, : -n_components - 1 : -1])


def check_informative(informative: NDArray[np.bool_]) -> None:
    """Refuse data that say nothing at all."""
    if not informative.any():
        raise ValueError(
            "no user says anything: give at least one row with a rank, or with some items clicked "
            "and others not, and a weight above 0"
        )


def check_consensus(consensus: ArrayLike, prefs: Preferences) -> Ranking:
    """Return a consensus of the items of `prefs`, or say what is wrong with it."""
    center = check_ranking(consensus, "consensus")
    if len(center) != prefs.n_items:
        raise ValueError(f"consensus must have {prefs.n_items} items, got {len(center)}")
    return center
