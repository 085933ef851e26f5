"""The latent full rankings of users who are known in part: what every kind of data shares."""

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..distances import Distance, price_of
from ..distances.tallies import Counts, Ranking, RankTally, Tally, rank_tally
from ..engines.executors import BLOCK, Executor, Threads, blocks
from ..kernels.footrule.latent_blocks import pair_ranks, swap_partners
from ..kernels.streams import CENTRE, start_stream
from ..preferences import Preferences
from ..rankings import check_ranking

MOST_DENSE = 512  # items whose products with each other are made: their axes take time n^3
UNITS, LOWEST_VALUE = 2**30, 2.0**27  # of sums of log probabilities, and of one user's


class Population(ABC):
    """What a fit needs to know of the users: counts of ranks, drawn anew for what is not known.

    Rows that say nothing are left out, so they change nothing. A row of weight w counts as w users,
    each with a latent ranking and a stream of random numbers of its own: the same bits as w rows.
    """

    mean_ranks: NDArray[np.float64]  # or any numbers that rank the items likewise
    row_weights: Counts  # of the rows that say anything
    row_numbers: Counts  # of the first user of each of them; streams go by these
    click_sizes: Counts  # all numbers of clicks, also of the users from whom these were selected
    rows_at_once = BLOCK // 2  # in a task that finds the likelihood of each row
    sums_out = True  # are latent rankings summed out where alpha and labels move?
    how_latent = "drawn anew in each sweep, exactly"  # are latent rankings; for the report

    def __init__(self, n_items: int, executor: Executor | None, distance: Distance):
        self.n_items, self.distance = n_items, distance
        self.executor = Threads() if executor is None else executor

    @functools.cached_property
    def known(self) -> Tally:
        """The tally of the ranks that are known; made when it is asked for."""
        return self.distance.tally(self.n_items)

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

    @property
    def is_alpha_by_distance(self) -> bool:
        """Is the likeliest alpha that of the mean distance between users and consensus?"""
        return self.is_full

    @abstractmethod
    def places(self, cut: list[slice]) -> list[tuple[Any, slice | None]]:
        """Where the rows of such a cut lie: in which rows of what is at hand, or in which shards,
        each whole."""

    def slices(self, cut: list[slice]) -> list[slice]:
        """Which rows lie at each of the `places` of such a cut."""
        return cut

    def full_log_likelihood(self, consensus: Ranking, alpha: float) -> float:
        """Log probability of the rows that are full."""
        return 0.0

    def likelihood_places(self) -> list[tuple[Any, slice | None]]:
        """Where the rows lie whose likelihood is a sum over latent rankings, in blocks."""
        return self.places(blocks(self.n_unknown))

    @abstractmethod
    def select(self, weights: Counts, numbers: Counts) -> "Population":
        """The rows of weight above 0 alone, with these weights and numbers of first users."""

    def share_out(
        self, counts: Counts, before: Sequence["Population"]
    ) -> list["Population | None"]:
        """The users of each cluster, ``counts[row, cluster]`` of each row; None if it has none.

        `before` are the users of the clusters so far, from which most may stay.
        """
        firsts = self.row_numbers[:, None] + np.cumsum(counts, axis=1) - counts
        pairs = zip(counts.T, firsts.T, strict=True)
        return [self.select(mine, numbers) if mine.any() else None for mine, numbers in pairs]

    @abstractmethod
    def gather(self, weights: Counts) -> "LocalPopulation":
        """The same rows, at hand whatever they were before."""

    def draw(self, consensus: Ranking, alpha: float, seed: int, number: int) -> "Completed":
        """Draw all latent rankings; then move a consensus and the latent rankings together.

        That is by swaps that leave the exact posterior as it is: a consensus given its own latent
        rankings alone would hardly move.
        """
        return finish_draws([self.begin_draw(consensus, alpha, seed, number)], self.executor)[0]

    def begin_draw(self, consensus: Ranking, alpha: float, seed: int, number: int) -> "Draw":
        """Begin to draw all latent rankings, the blocks of rows still to be run."""
        return ExactDraw(self, consensus, alpha, seed, number)

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

    def log_likelihood_by_alpha(self, consensus: Ranking) -> Callable[[float], float]:
        """The same as a function of alpha, for a consensus that stays meanwhile."""
        return functools.partial(self.log_likelihood, consensus)

    def move_errors(self, rng: np.random.Generator) -> None:
        """Move how often comparisons are wrong, where they may be."""
        raise NotImplementedError

    @property
    def error_values(self) -> NDArray[np.float64]:
        """How often comparisons are wrong; nothing where none can be."""
        return np.empty(0)

    def for_chain(self) -> "Population":
        """The latent rankings as one chain keeps them; nothing to keep where draws are exact."""
        return self

    def latent_of(self, users: NDArray[np.int64], origin: "DrawOrigin") -> Ranking:
        """The latent rankings of some users again, where they are at hand."""
        raise TypeError("latent rankings are not kept on workers")

    def redraw(self, known: Any, numbers: Counts, origin: "DrawOrigin") -> Ranking:
        """The same of users given by what is known of them, and their numbers."""
        raise TypeError("latent rankings are not kept on workers")

    def row_of(self, user: int) -> tuple[Any, int, int | None]:
        """What is known of a user of the data, the number, and the row, if there is any."""
        raise TypeError("latent rankings are not kept on workers")

    def best_of(self, evidence: NDArray[Any]) -> Ranking:
        """The consensus that is best by the mean evidence of some draws; see `Tally`."""
        return self.known.best_of(evidence)

    def notes(self) -> dict[str, Any]:
        """For the settings of a posterior: what is worth knowing of how the users were treated."""
        return {}


class LocalPopulation(Population):
    """The rows are at hand."""

    everyone: Preferences  # the data, those who say nothing among them
    informative: Any  # the rows that say anything

    @staticmethod
    def holds(prefs: Any) -> bool:
        """Is the law exact for these data, of its kind and distance?"""
        return True

    @staticmethod
    def log_likelihoods(
        prefs: Any, rows: slice, consensus: Ranking, alpha: float
    ) -> NDArray[np.float64]:
        """Log probability of what is known of one user of each row of such data."""
        raise TypeError("the exact likelihood of these data is not known")

    def row_log_likelihoods(
        self, rows: slice, consensus: Ranking, alpha: float
    ) -> NDArray[np.float64]:
        """The same of rows of this population, full or not."""
        return self.log_likelihoods(self.informative, rows, consensus, alpha)

    def unknown_log_likelihood(self, rows: slice, consensus: Ranking, alpha: float) -> int:
        """Log probability of some of the rows that are not full; see `exact_sum`."""
        return exact_sum(self.row_log_likelihoods(rows, consensus, alpha), self.row_weights[rows])

    def count_rows(self, rows: slice, law: "ExactLaw") -> Counts:
        """Counts of the latent ranks of some rows: of all, and of those shared with a partner."""
        raise TypeError("these users have no latent rankings that are drawn anew, exactly")

    @abstractmethod
    def features(self, n_features: int) -> NDArray[np.float64]:
        """Coordinates of each row in which like-minded users are near each other."""

    def select(self, weights: Counts, numbers: Counts) -> "LocalPopulation":
        """The rows of weight above 0 alone, with these weights and numbers of first users."""
        chosen = weights > 0
        prefs = replace(self.informative.take(chosen), weights=weights[chosen])
        return self.of_rows(prefs, numbers[chosen])

    def of_rows(self, prefs: Any, numbers: Counts) -> "LocalPopulation":
        """A population of the same kind."""
        made: Any = type(self)
        found: LocalPopulation = made(prefs, self.executor, numbers)
        return found

    def places(self, cut: list[slice]) -> list[tuple[Any, slice | None]]:
        """Their rows."""
        return [(self, rows) for rows in cut]

    def gather(self, weights: Counts) -> "LocalPopulation":
        """The rows of weight above 0 alone."""
        return self.select(weights, self.row_numbers)

    def latent_of(self, users: NDArray[np.int64], origin: "DrawOrigin") -> Ranking:
        """The latent rankings of some users again: the same streams give the same bits.

        Users who say nothing have one too, with numbers beyond those of the others.
        """
        numbers = np.array([self.row_of(int(user))[1] for user in users], dtype=np.int64)
        chosen = self.everyone.take(users)
        chosen = replace(chosen, weights=np.maximum(chosen.weights, 1))
        return self.redraw(chosen, numbers, origin)

    def row_of(self, user: int) -> tuple[Preferences, int, int | None]:
        """What is known of a user of the data, the number, and the row, if there is any."""
        known, informative = self.everyone.take([user]), self.everyone.is_informative
        if not informative[user]:
            return known, self.n_users + int((~informative[: user + 1]).sum()), None
        row = int(informative[:user].sum())
        return known, int(self.row_numbers[row]), row


@dataclass(frozen=True)
class DrawOrigin:
    """What a draw of latent rankings came from."""

    consensus: Ranking
    alpha: float
    seed: int
    number: int


@dataclass(frozen=True)
class ExactLaw:
    """How one exact draw of all latent rankings is made: what its tasks need besides the rows."""

    consensus: Ranking
    rate: float
    seed: int
    number: int
    partners: Counts

    def count(self, population: LocalPopulation, rows: slice) -> Counts:
        """What a block adds."""
        return population.count_rows(rows, self)


class Completed(NamedTuple):
    """What a draw of all latent rankings leaves: their tally, and the consensus to go on from."""

    tally: Tally
    consensus: Ranking


class Draw(ABC):
    """A draw of all latent rankings in the making. The `law` is small, so that it can travel to
    the rows: ``law.count(population, rows)`` is what a block adds, wherever it runs."""

    def __init__(self, population: Population, law: Any):
        self.population, self.law = population, law

    @abstractmethod
    def add(self, part: Counts) -> None:
        """Add what a block has counted."""

    @abstractmethod
    def finish(self) -> Completed:
        """The tally, once all blocks are added, and the consensus."""


class ExactDraw(Draw):
    """One exact draw, with a consensus that moves along."""

    def __init__(
        self, population: Population, consensus: Ranking, alpha: float, seed: int, number: int
    ):
        self._stream = np.empty(1, dtype=np.uint64)
        partners = np.empty(population.n_items, dtype=np.int64)
        start_stream(seed, number, CENTRE, self._stream)
        pair_ranks(self._stream, consensus, partners)
        rate = alpha / population.n_items
        super().__init__(population, ExactLaw(consensus, rate, seed, number, partners))
        self._sums = np.zeros((2, population.n_items, population.n_items), dtype=np.int64)
        self._sums[0] = rank_tally(population.known).counts

    def add(self, part: Counts) -> None:
        """Add the counts of a block."""
        self._sums += part

    def finish(self) -> Completed:
        """The tally, and a consensus that has moved along with it."""
        counts, shared = self._sums
        law, consensus = self.law, self.law.consensus.copy()
        swap_partners(self._stream, law.partners, shared, law.rate, consensus, counts)
        return Completed(RankTally(price_of(self.population.distance), counts), consensus)


# The tasks below run in threads, with blocks of rows, or on workers, with whole shards (None).


def finish_draws(draws: Sequence[Draw], executor: Executor) -> list[Completed]:
    """Run the blocks of several draws side by side; finish each."""
    owners, tasks = [], []
    for draw in draws:
        for place in draw.population.places(draw.population.count_blocks()):
            owners.append(draw)
            tasks.append((draw.law, *place))
    for draw, part in zip(owners, executor.map(_count, tasks), strict=True):
        draw.add(part)
    return [draw.finish() for draw in draws]


def _count(task: tuple[Any, LocalPopulation, slice | None]) -> Any:
    law, population, rows = task
    first, *others = [rows] if rows else population.count_blocks()
    counts = law.count(population, first)
    for block in others:
        counts += law.count(population, block)
    return counts


def log_likelihoods_of(
    points: Sequence[tuple[Population, Ranking, float]], executor: Executor
) -> list[float]:
    """Log likelihood of each (users, consensus, alpha), their blocks side by side."""
    owners, tasks = [], []
    for point, (population, consensus, alpha) in enumerate(points):
        for place in population.likelihood_places():
            owners.append(point)
            tasks.append((*place, consensus, alpha))
    sums = [0] * len(points)
    for point, part in zip(owners, executor.map(_log_likelihood, tasks), strict=True):
        sums[point] += part
    return [
        population.full_log_likelihood(consensus, alpha) + total / UNITS
        for (population, consensus, alpha), total in zip(points, sums, strict=True)
    ]


def _log_likelihood(task: tuple[LocalPopulation, slice | None, Ranking, float]) -> int:
    population, rows, consensus, alpha = task
    cut = [rows] if rows else blocks(population.n_unknown)
    return sum(population.unknown_log_likelihood(block, consensus, alpha) for block in cut)


def exact_sum(values: NDArray[np.float64], weights: Counts) -> int:
    """The weighted sum of log probabilities in units of 2^-30: however the rows are cut, the sums
    of the parts add up to the same bits.

    >>> exact_sum(np.array([-0.5, -2.0]), np.array([2, 1])) / UNITS
    -3.0
    """
    high, low = _in_units(values, weights)
    return (int(high.sum()) << 24) + int(low.sum())


def exact_sums(
    values: NDArray[np.float64], weights: Counts, labels: NDArray[np.int32], n_labels: int
) -> list[int]:
    """The same for the rows of each label.

    >>> values, weights = np.array([-0.5, -2.0, -1.0]), np.array([2, 1, 1])
    >>> [each / UNITS for each in exact_sums(values, weights, np.array([2, 0, 2]), 3)]
    [-2.0, 0.0, -2.0]
    """
    sums = np.zeros((2, n_labels), dtype=np.int64)
    for mine, part in zip(sums, _in_units(values, weights), strict=True):
        np.add.at(mine, labels, part)
    return [(high << 24) + low for high, low in sums.T.tolist()]


def _in_units(values: NDArray[np.float64], weights: Counts) -> tuple[Counts, Counts]:
    """High and low parts of weighted values: with a total weight of 10^9 no sum overflows."""
    whole = np.rint(np.maximum(values, -LOWEST_VALUE) * UNITS).astype(np.int64)
    return weights * (whole >> 24), weights * (whole & (2**24 - 1))


def principal_components(rows: Any, n_components: int) -> NDArray[np.float64]:
    """Rows (an array, centred, or a sparse matrix) along their axes of largest spread."""
    if rows.shape[1] > MOST_DENSE and hasattr(rows, "toarray"):
        from scipy.sparse.linalg import svds

        n_found = min(n_components, min(rows.shape) - 1)
        left, values, _ = svds(rows, n_found, v0=np.ones(min(rows.shape)))
        found = np.zeros((rows.shape[0], n_components))
        found[:, :n_found] = (left * values)[:, ::-1]
        return found
    products = rows.T @ rows
    products = products.toarray() if hasattr(products, "toarray") else products
    from scipy.linalg import eigh

    n_axes = len(products)
    _, axes = eigh(products, subset_by_index=[max(n_axes - n_components, 0), n_axes - 1])
    return np.asarray(rows @ axes[:, ::-1])


def check_informative(informative: NDArray[np.bool_]) -> None:
    """Refuse data that say nothing at all."""
    if not informative.any():
        raise ValueError(
            "no informative rows: give at least one row with a rank, or with some items clicked "
            "and others not, and a weight above 0"
        )


def check_consensus(consensus: ArrayLike, prefs: Preferences) -> Ranking:
    """Return a consensus of the items of `prefs`, or say what is wrong with it."""
    center = check_ranking(consensus, "consensus")
    if len(center) != prefs.n_items:
        raise ValueError(f"consensus must have {prefs.n_items} items, got {len(center)}")
    return center
