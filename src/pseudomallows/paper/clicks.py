"""The latent rankings of clicks by the paper's law (Algorithm 4)."""

from dataclasses import dataclass

import numpy as np

from ..distances import price_of
from ..distances.tallies import Counts, Ranking, RankTally
from ..kernels.groups import draw_users
from ..kernels.streams import Streams
from ..latent.clicks import ClickPopulation
from ..latent.population import Completed, Draw, Population
from ..rankings import orderings_of
from .visit_orders import ORDERS


@dataclass(frozen=True)
class PseudoLaw:
    """How the paper's law (Algorithm 4) draws the latent rankings."""

    ordering: Counts
    lam: float
    seed: int
    number: int
    order: int

    def blocks(self, population: Population) -> list[slice]:
        """The rows, cut into blocks."""
        return population.count_blocks()

    def count(self, population: ClickPopulation, rows: slice) -> Counts:
        """What a block adds."""
        counts = np.zeros((population.n_items, population.n_items), dtype=np.int64)
        numbers, weights = population.row_numbers[rows], population.row_weights[rows]
        streams = Streams(self.seed, self.number, numbers, weights)
        clicks = population.clicks_of_rows(rows)
        nobody = np.empty((0, population.n_items), dtype=np.int32)
        draw_users(streams, clicks, self.ordering, self.lam, self.order, counts, nobody)
        return counts


class PseudoDraw(Draw):
    """One draw of all latent rankings by the paper's law (Algorithm 4), in the making."""

    def __init__(
        self,
        population: Population,
        consensus: Ranking,
        alpha: float,
        seed: int,
        number: int,
        order: str,
    ):
        self._consensus = consensus
        lam, ordering = alpha / population.n_items, orderings_of(consensus)
        self.population, self.law = (
            population,
            PseudoLaw(ordering, lam, seed, number, ORDERS[order]),
        )
        self._counts = np.zeros((population.n_items, population.n_items), dtype=np.int64)

    def add(self, part: Counts) -> None:
        """Add the counts of a block."""
        self._counts += part

    def finish(self) -> Completed:
        """The tally, once all blocks are added; the consensus stays where it is."""
        return Completed(
            RankTally(price_of(self.population.distance), self._counts), self._consensus
        )
