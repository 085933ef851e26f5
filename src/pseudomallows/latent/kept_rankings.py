"""Users known in part, by any distance: each has a latent full ranking, which a chain keeps.

Where the law of a latent ranking is known it is drawn anew in each sweep (Hamming); else it moves
by exchanges of items whose order is not known, which are accepted by Metropolis' rule.
"""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..distances import Distance
from ..distances.distance import adds_up
from ..distances.hamming import HAMMING
from ..distances.tallies import Counts, Ranking
from ..engines.executors import Executor
from ..kernels.blocks import draw_hamming_latent, hamming_log_likelihoods
from ..kernels.latent_swaps import (
    CAYLEY,
    KENDALL,
    PRICED,
    ULAM,
    SwapLaw,
    swap_latent,
    swap_together,
)
from ..kernels.streams import CENTRE, Streams, start_stream
from ..preferences import Clicks, Preferences, Rankings
from .population import (
    Completed,
    Draw,
    LocalPopulation,
    Population,
    check_informative,
    exact_sum,
    principal_components,
)
from .rankings import log_likelihoods_of_full

N_SWAPS = 2  # proposals for each open item of a user in a sweep
TWO_SIDED = ("cayley", "hamming")  # an exchange of two ranks in both rankings changes nothing
CODES = {"kendall": KENDALL, "cayley": CAYLEY, "ulam": ULAM}


def as_rankings(prefs: Preferences) -> Rankings:
    """Clicks as rankings with two ties; rankings as they are.

    >>> as_rankings(Preferences.from_clicks([[0, 1, 1], [1, 0, 0]])).rankings
    array([[3, 1, 1],
           [1, 2, 2]], dtype=int32)
    """
    if isinstance(prefs, Rankings):
        return prefs
    assert isinstance(prefs, Clicks)
    rankings = np.repeat(prefs.n_clicks[:, None] + 1, prefs.n_items, axis=1).astype(np.int32)
    rankings[np.repeat(np.arange(prefs.n_users), prefs.n_clicks), prefs.codes] = 1
    return Rankings(prefs.weights, prefs.users, prefs.items, rankings)


class KeptPopulation(LocalPopulation):
    """Rankings or clicks with a latent ranking for each user, which moves by exchanges."""

    sums_out = False
    how_latent = "moved by exchanges in each sweep (Metropolis)"

    def __init__(self, prefs: Preferences, executor: Executor | None = None, *, distance: Distance):
        super().__init__(prefs.n_items, executor, distance)
        check_informative(prefs.is_informative)
        each = as_rankings(prefs.one_row_each()[0])
        self._prefs = each.take(each.is_informative)
        self._set_rows(self._prefs.weights, None)
        self._rows = np.arange(len(self.row_weights))  # in the store
        self._store = self._empty_store()

    def _empty_store(self) -> Ranking:
        """``latent[row, item]`` of all users of a chain, whatever their cluster; 0 at first."""
        return np.zeros((len(self._rows), self.n_items), dtype=np.int32)

    @property
    def n_unknown(self) -> int:
        """All rows may have something that is not known."""
        return self.n_rows

    @property
    def mean_ranks(self) -> NDArray[np.float64]:  # type: ignore[override]
        """Mean rank of each item."""
        return self._prefs.mean_ranks()

    def for_chain(self) -> "KeptPopulation":
        """Latent rankings of its own for each chain."""
        new = copy.copy(self)
        new._store = self._empty_store()
        return new

    def select(self, weights: Counts, numbers: Counts) -> "KeptPopulation":
        """The rows of weight above 0 alone; their latent rankings stay in the store."""
        chosen, part = np.flatnonzero(weights), copy.copy(self)
        part._prefs, part._rows = self._prefs.take(chosen), self._rows[chosen]
        part.row_weights, part.row_numbers = weights[chosen], numbers[chosen]
        return part

    def features(self, n_features: int) -> NDArray[np.float64]:
        """Principal components of the ranks, unknown ones as the mean of what they may be."""
        filled = self._prefs.filled_ranks()
        return principal_components(filled - filled.mean(axis=0), n_features)

    def begin_draw(self, consensus: Ranking, alpha: float, seed: int, number: int) -> Draw:
        """Begin to move the latent ranking of each user."""
        self._begin(consensus)
        return KeptDraw(self, KeptLaw(consensus, alpha, seed, number))

    def _begin(self, consensus: Ranking) -> None:
        """At first: the items of each tie in the order of the consensus."""
        new = np.flatnonzero(self._store[self._rows, 0] == 0)
        if len(new):
            self._store[self._rows[new]] = in_order_of(self._prefs.rankings[new], consensus)

    def move_rows(self, rows: slice, law: "KeptLaw") -> None:
        """Move the latent rankings of some rows."""
        latent = self._store[self._rows[rows]]
        streams = Streams(law.seed, law.number, self.row_numbers[rows], self.row_weights[rows])
        self.move_latent(streams, self._prefs.rankings[rows], law, latent)
        self._store[self._rows[rows]] = latent

    def move_latent(
        self, streams: Streams, rankings: Ranking, law: "KeptLaw", latent: Ranking
    ) -> None:
        """Move latent rankings in place."""
        swap_latent(streams, rankings, law.consensus, self._swaps(law), N_SWAPS, latent)

    def _swaps(self, law: "KeptLaw") -> SwapLaw:
        """The law as kernels read it."""
        kind, prices = CODES.get(self.distance.name, PRICED), np.zeros((1, 1), dtype=np.int64)
        if adds_up(self.distance):
            prices = self.distance.prices(self.n_items)
        is_two_sided = self.distance.name in TWO_SIDED
        return SwapLaw(kind, prices, law.alpha / self.n_items, is_two_sided)

    def move_together(self, law: "KeptLaw") -> Completed:
        """Move the consensus and the latent rankings together; the tally of the latter."""
        stream, consensus = np.empty(1, dtype=np.uint64), law.consensus.copy()
        start_stream(law.seed, law.number, CENTRE, stream)
        latent, rankings = self._store[self._rows], self._prefs.rankings
        swap_together(stream, rankings, self._swaps(law), self.n_items, latent, consensus)
        self._store[self._rows] = latent
        tally = self.distance.tally(self.n_items)
        tally.add(latent, self.row_weights)
        return Completed(tally, consensus)

    def count_rows(self, rows: slice, law: Any) -> Counts:
        """Nobody asks: latent rankings are not drawn exactly here."""
        raise TypeError(f"there is no exact law of users known in part by {self.distance.name}")

    def likelihood_places(self) -> list[tuple[Any, slice | None]]:
        """Nowhere: the latent rankings are full."""
        return []

    def full_log_likelihood(self, consensus: Ranking, alpha: float) -> float:
        """Log probability of the latent rankings, which is what alpha sees here."""
        self._begin(consensus)
        values = self.row_log_likelihoods(slice(0, self.n_rows), consensus, alpha)
        return float((values * self.row_weights).sum())

    def unknown_log_likelihood(self, rows: slice, consensus: Ranking, alpha: float) -> int:
        """Log probability of some rows; see `exact_sum`."""
        return exact_sum(self.row_log_likelihoods(rows, consensus, alpha), self.row_weights[rows])

    def row_log_likelihoods(
        self, rows: slice, consensus: Ranking, alpha: float
    ) -> NDArray[np.float64]:
        """Log probability of the latent ranking of each row."""
        self._begin(consensus)
        latent = self._store[self._rows[rows]]
        return log_likelihoods_of_full(latent, consensus, alpha, self.distance)

    def latent_of(self, users: NDArray[np.int64], origin: Any) -> Ranking:
        """The latent rankings that the chain holds."""
        return np.asarray(self._store[self._rows[users]])


class HammingPopulation(KeptPopulation):
    """Under Hamming: latent rankings are drawn anew, and summed out in likelihoods."""

    sums_out = True
    how_latent = "drawn anew in each sweep, exactly"

    def __init__(self, prefs: Preferences, executor: Executor | None = None):
        super().__init__(prefs, executor, distance=HAMMING)

    def move_latent(
        self, streams: Streams, rankings: Ranking, law: "KeptLaw", latent: Ranking
    ) -> None:
        """Draw latent rankings, whatever they were."""
        draw_hamming_latent(streams, rankings, law.consensus, law.alpha / self.n_items, latent)

    def likelihood_places(self) -> list[tuple[Any, slice | None]]:
        """Where the rows lie, in blocks."""
        return Population.likelihood_places(self)

    def full_log_likelihood(self, consensus: Ranking, alpha: float) -> float:
        """No row is apart from the others."""
        return 0.0

    def row_log_likelihoods(
        self, rows: slice, consensus: Ranking, alpha: float
    ) -> NDArray[np.float64]:
        """Log probability of what is known of each row."""
        return log_likelihoods_by_hamming(self._prefs.rankings[rows], consensus, alpha)


def log_likelihoods_by_hamming(
    rankings: Ranking, consensus: Ranking, alpha: float
) -> NDArray[np.float64]:
    """Log probability of each row of rankings, full, partial or tied."""
    values, n_items = np.empty(len(rankings)), len(consensus)
    constant = HAMMING.log_partition(n_items, alpha)
    hamming_log_likelihoods(rankings, consensus, alpha / n_items, constant, values)
    return values


def in_order_of(rankings: Ranking, consensus: Ranking) -> Ranking:
    """Full rankings that agree with what is known, the items of each tie in the consensus' order.

    >>> in_order_of(np.array([[0, 2, 0], [2, 2, 1]], dtype=np.int32), np.array([3, 2, 1]))
    array([[3, 2, 1],
           [3, 2, 1]], dtype=int32)
    """
    n_items, full = rankings.shape[1], np.empty_like(rankings)
    for row, ranks in enumerate(rankings):
        known = np.flatnonzero(ranks)
        known = known[np.lexsort((consensus[known], ranks[known]))]
        firsts = ranks[known]
        behind = np.arange(len(known)) - np.searchsorted(firsts, firsts)
        full[row, known] = firsts + behind
        missing = np.flatnonzero(ranks == 0)
        left = np.setdiff1d(np.arange(1, n_items + 1), full[row, known])
        full[row, missing[np.argsort(consensus[missing])]] = left
    return full


@dataclass(frozen=True)
class KeptLaw:
    """How the latent rankings of one sweep move: what its tasks need besides the rows."""

    consensus: Ranking
    alpha: float
    seed: int
    number: int

    def blocks(self, population: Population) -> list[slice]:
        """The rows, cut into blocks."""
        return population.count_blocks()

    def count(self, population: KeptPopulation, rows: slice) -> Any:
        """Move the latent rankings of a block; they are counted at the end."""
        population.move_rows(rows, self)


class KeptDraw:
    """The latent rankings of one sweep, in the making."""

    def __init__(self, population: KeptPopulation, law: KeptLaw):
        self.population, self.law = population, law

    def add(self, part: Any) -> None:
        """A block has moved."""

    def finish(self) -> Completed:
        """The tally, once all blocks have moved, and a consensus that has moved along with it."""
        return self.population.move_together(self.law)
