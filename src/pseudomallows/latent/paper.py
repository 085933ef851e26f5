"""The latent rankings of clicks by the paper's law (Algorithm 4)."""

from dataclasses import dataclass

import numpy as np

from ..distances.tallies import Counts, Ranking, RankTally
from ..kernels.groups import draw_users
from ..rankings import orderings_of
from .clicks import ORDERS, ClickLatent
from .population import Completed, Latent


@dataclass(frozen=True)
class PseudoLaw:
    """How the paper's law (Algorithm 4) draws the latent rankings."""

    ordering: Counts
    lam: float
    seed: int
    number: int
    order: int

    def blocks(self, latent: Latent) -> list[slice]:
        """The rows, cut into blocks."""
        return latent.count_blocks()

    def count(self, latent: ClickLatent, rows: slice) -> Counts:
        """What a block adds."""
        counts = np.zeros((latent.n_items, latent.n_items), dtype=np.int64)
        draw_users(
            self.seed,
            self.number,
            latent.row_numbers[rows],
            latent.starts_of(rows),
            latent.row_codes,
            latent.row_weights[rows],
            self.ordering,
            self.lam,
            self.order,
            counts,
            np.empty((0, latent.n_items), dtype=np.int32),
        )
        return counts


class PseudoDraw:
    """One draw of all latent rankings by the paper's law (Algorithm 4), in the making."""

    def __init__(
        self,
        latent: Latent,
        consensus: Ranking,
        alpha: float,
        seed: int,
        number: int,
        order: str,
    ):
        self._consensus = consensus
        lam, ordering = alpha / latent.n_items, orderings_of(consensus)
        self.latent, self.law = latent, PseudoLaw(ordering, lam, seed, number, ORDERS[order])
        self._counts = np.zeros((latent.n_items, latent.n_items), dtype=np.int64)

    def add(self, part: Counts) -> None:
        """Add the counts of a block."""
        self._counts += part

    def finish(self) -> Completed:
        """The tally, once all blocks are added; the consensus stays where it is."""
        return Completed(RankTally(self.latent.distance, self._counts), self._consensus)
