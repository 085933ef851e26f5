"""The paper's opponent: latent rankings of clicks that a chain keeps and changes by swaps."""

from dataclasses import dataclass

import numpy as np
from numba import njit

from pseudomallows.distances import price_of
from pseudomallows.distances.tallies import Counts, Ranking, RankTally
from pseudomallows.kernels.chain import accepts
from pseudomallows.kernels.click_rows import clicks_of
from pseudomallows.kernels.streams import Streams, below, start_user
from pseudomallows.latent.click_population import ClickPopulation
from pseudomallows.latent.population import Completed, Draw
from pseudomallows.rankings import orderings_of


class MetropolisPopulation(ClickPopulation):
    """Users of weight 1, whose latent rankings try one swap in a sweep."""

    sums_out = False
    latent: Ranking | None = None

    def for_chain(self) -> "MetropolisPopulation":
        """Latent rankings of its own for each chain."""
        return MetropolisPopulation(self.everyone, self.executor)

    def begin_draw(self, consensus: Ranking, alpha: float, seed: int, number: int) -> Draw:
        """Begin a swap for each user; at first clicked items, then the others, both in the order
        of the consensus."""
        if self.latent is None:
            ordering = orderings_of(consensus)
            self.latent = np.empty((self.n_rows, self.n_items), dtype=np.int32)
            for row, ranks in enumerate(self.latent):
                is_clicked = np.isin(ordering, self.clicks.clicks_of(row))
                mine = np.concatenate([ordering[is_clicked], ordering[~is_clicked]])
                ranks[mine] = np.arange(1, self.n_items + 1)
        return SwapDraw(self, SwapLaw(consensus, alpha / self.n_items, seed, number))


@dataclass(frozen=True)
class SwapLaw:
    """How the swaps of one sweep are made: what its tasks need besides the rows."""

    consensus: Ranking
    rate: float
    seed: int
    number: int

    def count(self, population: MetropolisPopulation, rows: slice) -> Counts:
        """Move the latent rankings of some rows; return the counts of their ranks."""
        n_items = population.n_items
        counts = np.zeros((n_items, n_items), dtype=np.int64)
        numbers, weights = population.row_numbers[rows], population.row_weights[rows]
        streams = Streams(self.seed, self.number, numbers, weights)
        clicks, latent = population.clicks_of_rows(rows), population.latent[rows]
        swap_users(streams, clicks, self.consensus, self.rate, latent, counts)
        return counts


class SwapDraw:
    """A swap for each user, in the making; the consensus stays where it is."""

    def __init__(self, population: MetropolisPopulation, law: SwapLaw):
        self.population, self.law = population, law
        self._counts = np.zeros((population.n_items, population.n_items), dtype=np.int64)

    def add(self, part: Counts) -> None:
        """Add the counts of a block."""
        self._counts += part

    def finish(self) -> Completed:
        """The tally, once all blocks are added."""
        tally = RankTally(price_of(self.population.distance), self._counts)
        return Completed(tally, self.law.consensus)


@njit(cache=True, nogil=True)
def swap_users(streams, clicks, consensus, rate, latent, counts):
    """Metropolis steps on the latent rankings, as in the paper, and their `counts`.

    Each step exchanges the ranks of two items, both clicked or both not, of one user.
    """
    n_items = len(consensus)
    stream, clicked = np.empty(1, dtype=np.uint64), np.zeros(n_items, dtype=np.bool_)
    for row in range(len(latent)):
        start_user(streams, row, 0, stream)
        mine, ranks = clicks_of(clicks, row), latent[row]
        clicked[mine] = True
        one, other = below(stream, n_items), below(stream, n_items)
        if one != other and clicked[one] == clicked[other]:
            change = abs(ranks[one] - consensus[other]) + abs(ranks[other] - consensus[one])
            change -= abs(ranks[one] - consensus[one]) + abs(ranks[other] - consensus[other])
            if accepts(stream, -rate * change):
                ranks[one], ranks[other] = ranks[other], ranks[one]
        clicked[mine] = False
        for item in range(n_items):
            counts[item, ranks[item] - 1] += 1
