"""Latent rankings that a chain keeps and changes by swaps: the way when nothing exact is known."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..distances import price_of
from ..distances.tallies import Counts, Ranking, RankTally
from ..engines.executors import Executor
from ..kernels.footrule.clicks import swap_users
from ..kernels.streams import Streams
from ..preferences import Clicks
from ..rankings import orderings_of
from .clicks import ClickPopulation
from .population import Completed, Draw, DrawOrigin, Population


class MetropolisPopulation(ClickPopulation):
    """Latent rankings that a chain keeps and changes by swaps, as in the paper's opponent."""

    sums_out = False
    how_latent = "moved by exchanges in each sweep (Metropolis)"

    def __init__(self, prefs: Clicks, executor: Executor | None = None, n_swaps: int = 1):
        if (prefs.weights > 1).any():
            raise ValueError("augmentation='metropolis' needs rows of weight 1: repeat the rows")
        super().__init__(prefs, executor)
        self._n_swaps = n_swaps
        self._rows = np.cumsum(prefs.is_informative) - 1  # of `_latent`, by user
        self._latent: Ranking | None = None
        self.tally = self.known

    def for_chain(self) -> Population:
        """Latent rankings of its own for each chain."""
        return MetropolisPopulation(self.everyone, self.executor, self._n_swaps)

    @property
    def exact(self) -> Population:
        """The same users, their latent rankings drawn exactly."""
        return ClickPopulation(self.everyone, self.executor)

    def begin_draw(self, consensus: Ranking, alpha: float, seed: int, number: int) -> Draw:
        """Begin a few swaps for each user."""
        self._begin(consensus)
        return SwapDraw(self, consensus, alpha, seed, number)

    def swap_rows(self, rows: slice, law: "SwapLaw") -> Counts:
        """Move the latent rankings of some rows; return the counts of their ranks."""
        assert self._latent is not None
        counts = np.zeros((self.n_items, self.n_items), dtype=np.int64)
        streams = Streams(law.seed, law.number, self.row_numbers[rows], self.row_weights[rows])
        latent, clicks = self._latent[rows], self.clicks_of_rows(rows)
        swap_users(streams, clicks, law.consensus, law.lam, self._n_swaps, latent, counts)
        return counts

    def _begin(self, consensus: Ranking) -> None:
        """At first: clicked items, then the others, both in the order of the consensus."""
        if self._latent is not None:
            return
        latent = np.empty((self.n_rows, self.n_items), dtype=np.int32)
        ordering = orderings_of(consensus)
        for row, ranks in enumerate(latent):
            clicked = np.zeros(self.n_items, dtype=bool)
            clicked[self.clicks.clicks_of(row)] = True
            mine = np.concatenate([ordering[clicked[ordering]], ordering[~clicked[ordering]]])
            ranks[mine] = np.arange(1, self.n_items + 1)
        self._latent, self.tally = latent, self.distance.tally(self.n_items)
        self.tally.add(latent, self.row_weights)

    def latent_of(self, users: NDArray[np.int64], origin: DrawOrigin) -> Ranking:
        """The latent rankings that the chain holds; of users who say nothing, exact draws."""
        rankings = super().latent_of(users, origin)
        known = self.everyone.is_informative[users]
        if self._latent is not None:
            rankings[known] = self._latent[self._rows[users[known]]]
        return rankings

    def likelihood_places(self) -> list[tuple[Any, slice | None]]:
        """Nowhere: the latent rankings are full."""
        return []

    def full_log_likelihood(self, consensus: Ranking, alpha: float) -> float:
        """Log probability of the latent rankings, which is what alpha sees here."""
        self._begin(consensus)
        constant = self.distance.log_partition(self.n_items, alpha)
        return -alpha / self.n_items * self.tally.distance(consensus) - self.n_users * constant


@dataclass(frozen=True)
class SwapLaw:
    """How the swaps of one sweep are made: what its tasks need besides the rows."""

    consensus: Ranking
    lam: float
    seed: int
    number: int

    def blocks(self, population: Population) -> list[slice]:
        """The rows, cut into blocks."""
        return population.count_blocks()

    def count(self, population: MetropolisPopulation, rows: slice) -> Counts:
        """What a block adds."""
        return population.swap_rows(rows, self)


class SwapDraw:
    """A few swaps for each user, in the making; the consensus stays where it is."""

    def __init__(
        self,
        population: MetropolisPopulation,
        consensus: Ranking,
        alpha: float,
        seed: int,
        number: int,
    ):
        self.population, self.law = (
            population,
            SwapLaw(consensus, alpha / population.n_items, seed, number),
        )
        self._counts = np.zeros((population.n_items, population.n_items), dtype=np.int64)

    def add(self, part: Counts) -> None:
        """Add the counts of a block."""
        self._counts += part

    def finish(self) -> Completed:
        """The tally, once all blocks are added."""
        self.population.tally = RankTally(price_of(self.population.distance), self._counts)
        return Completed(self.population.tally, self.law.consensus)
