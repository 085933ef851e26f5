"""Users known in part, by any distance: each has a latent full ranking, which a chain keeps.

Where the law of a latent ranking is known it is drawn anew in each sweep (Hamming); else it moves
by exchanges of items whose order is not known, or, if the user compares pairs, by leaps of items;
both are accepted by Metropolis' rule.
"""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...distances import Distance
from ...distances.distance import adds_up
from ...distances.hamming import HAMMING
from ...distances.tallies import Counts, Ranking
from ...engines.executors import Executor
from ...engines.memory import as_size, available_memory
from ...kernels.block_sums import draw_hamming_latent, hamming_log_likelihoods
from ...kernels.latent.leaps import leap_latent
from ...kernels.latent.statements import Statements, count_errors, first_rankings
from ...kernels.latent.swaps import (
    CAYLEY,
    KENDALL,
    PRICED,
    ULAM,
    OrderLaw,
    SwapLaw,
    swap_latent,
    swap_together,
)
from ...kernels.streams import CENTRE, Streams, start_stream
from ...preferences import Pairs, Preferences
from ..population import (
    Completed,
    Draw,
    DrawOrigin,
    LocalPopulation,
    Population,
    check_informative,
    principal_components,
)
from ..ranking_population import log_likelihoods_of_full
from .error_rates import Errors, NoErrors

BYTES_OF_RANK = 24  # of an item of a user: what is known, the latent ranks, copies of both
N_SWAPS = 2  # proposals for each open item of a user in a sweep
N_LEAPS = 1  # the same of users who compare pairs
N_TOGETHER = 4  # proposals for each item, of a consensus and the rankings of these users together
TWO_SIDED = ("cayley", "hamming")  # an exchange of two ranks in both rankings changes nothing
CODES = {"kendall": KENDALL, "cayley": CAYLEY, "ulam": ULAM}


@dataclass
class ChainState:
    """What a chain keeps of all users, whatever their cluster: ``latent[row, item]``, 0 at first,
    and how often they are wrong."""

    latent: Ranking
    errors: Errors


class AugmentedPopulation(LocalPopulation):
    """Users of any kind with a latent ranking each, which moves by exchanges or leaps."""

    sums_out = False
    how_latent = "moved by exchanges in each sweep (Metropolis)"

    def __init__(
        self,
        prefs: Preferences,
        executor: Executor | None = None,
        *,
        distance: Distance,
        errors: Errors | None = None,
    ):
        super().__init__(prefs.n_items, executor, distance)
        check_informative(prefs.is_informative)
        self._check_room(prefs)
        each, owners = prefs.one_row_each()
        is_informative = each.is_informative
        self._last_rows = _lasts(owners[is_informative])  # of each row of the data that says
        self._data_rows = owners[is_informative][self._last_rows]  # anything, and its number
        said = each.take(is_informative)
        self._known, self._said = said.as_rankings(), list_statements(said.comparisons())
        if len(self._said.starts):
            self.how_latent = "moved by leaps and exchanges in each sweep (Metropolis)"
        self._set_rows(said.weights, None)
        self._rows = np.arange(len(self.row_weights))  # in the store
        self._errors = NoErrors(self.n_items) if errors is None else errors
        self.state = self._first_state()

    def _check_room(self, prefs: Preferences) -> None:
        """Refuse more users than have room, before any work."""
        n_people, available = int(prefs.weights[prefs.is_informative].sum()), available_memory()
        needed = BYTES_OF_RANK * n_people * self.n_items
        if available is not None and needed > available:
            raise ValueError(
                f"a chain by distance={self.distance.name!r} keeps a ranking of each of "
                f"{n_people:,} people, which needs {as_size(needed)} of memory, and "
                f"{as_size(available)} are available; votes, one comparison a person, need none "
                "with distance='kendall'"
            )

    def _first_state(self) -> ChainState:
        latent = np.zeros((len(self._rows), self.n_items), dtype=np.int32)
        return ChainState(latent, self._errors.fresh())

    @property
    def n_unknown(self) -> int:
        """All rows may have something that is not known."""
        return self.n_rows

    @property
    def mean_ranks(self) -> NDArray[np.float64]:  # type: ignore[override]
        """Mean rank of each item."""
        return np.asarray(np.average(self._filled_ranks(), axis=0, weights=self.row_weights))

    def _filled_ranks(self) -> NDArray[np.float64]:
        """The ranks, each unknown one as the mean of those it may have; of items that were compared
        by how often they won."""
        ranks, said = self._known.filled_ranks(), self._said
        for row in range(len(said.starts)):
            firsts = said.firsts[row]
            mine = slice(said.starts[row], said.starts[row] + firsts[-1])
            items = np.repeat(np.arange(self.n_items), np.diff(firsts))
            lost = np.bincount(items, said.losses[mine] - said.wins[mine], self.n_items)
            told = np.bincount(items, said.losses[mine] + said.wins[mine], self.n_items)
            ranks[row] += (self.n_items - 1) / 2 * lost / (told + 1)
        return ranks

    def for_chain(self) -> "AugmentedPopulation":
        """Latent rankings of its own for each chain."""
        new = copy.copy(self)
        new.state = self._first_state()
        return new

    def select(self, weights: Counts, numbers: Counts) -> "AugmentedPopulation":
        """The rows of weight above 0 alone; their latent rankings stay in the store."""
        chosen, part = np.flatnonzero(weights), copy.copy(self)
        part._known, part._rows = self._known.take(chosen), self._rows[chosen]
        part._said = rows_of(self._said, chosen)
        part.row_weights, part.row_numbers = weights[chosen], numbers[chosen]
        return part

    def features(self, n_features: int) -> NDArray[np.float64]:
        """Principal components of the ranks, unknown ones as the mean of what they may be."""
        filled = self._filled_ranks()
        return principal_components(filled - filled.mean(axis=0), n_features)

    def begin_draw(self, consensus: Ranking, alpha: float, seed: int, number: int) -> Draw:
        """Begin to move the latent ranking of each user."""
        self._begin(consensus)
        return KeptDraw(self, KeptLaw(consensus, alpha, seed, number))

    def _begin(self, consensus: Ranking) -> None:
        """At first: what is not known in the order of the consensus."""
        latent = self.state.latent
        new = np.flatnonzero(latent[self._rows, 0] == 0)
        if not len(new):
            return
        first = in_order_of(self._known.rankings[new], consensus)
        if len(self._said.starts):
            said = rows_of(self._said, new)
            speaks = said.firsts[:, -1] > 0
            mine = first[speaks]
            first_rankings(rows_of(said, speaks), consensus, mine)
            first[speaks] = mine
        latent[self._rows[new]] = first

    def move_rows(self, rows: slice, law: "KeptLaw") -> None:
        """Move the latent rankings of some rows."""
        places, known = self._rows[rows], self._known.rankings[rows]
        streams = Streams(law.seed, law.number, self.row_numbers[rows], self.row_weights[rows])
        latent = self.state.latent[places]
        if not len(self._said.starts):
            self.move_latent(streams, known, law, latent)
        else:
            said = rows_of(self._said, rows)
            speaks = said.firsts[:, -1] > 0
            for mine in (np.flatnonzero(~speaks), np.flatnonzero(speaks)):
                some = streams._replace(
                    first_users=streams.first_users[mine], weights=streams.weights[mine]
                )
                moved = latent[mine]
                if len(mine) and speaks[mine[0]]:
                    both = self._laws(law)
                    leap_latent(some, rows_of(said, mine), law.consensus, both, N_LEAPS, moved)
                else:
                    self.move_latent(some, known[mine], law, moved)
                latent[mine] = moved
        self.state.latent[places] = latent

    def move_latent(
        self, streams: Streams, rankings: Ranking, law: "KeptLaw", latent: Ranking
    ) -> None:
        """Move latent rankings in place, those of users who do not compare pairs."""
        swap_latent(streams, rankings, law.consensus, self._laws(law).swaps, N_SWAPS, latent)

    def _laws(self, law: "KeptLaw") -> OrderLaw:
        """The law as kernels read it."""
        kind, prices = CODES.get(self.distance.name, PRICED), np.zeros((1, 1), dtype=np.int64)
        if adds_up(self.distance):
            prices = self.distance.prices(self.n_items)
        is_two_sided = self.distance.name in TWO_SIDED
        swaps = SwapLaw(kind, prices, law.alpha / self.n_items, is_two_sided)
        return OrderLaw(swaps, self.state.errors.law())

    def move_together(self, law: "KeptLaw") -> Completed:
        """Move the consensus and the latent rankings together; the tally of the latter."""
        stream, consensus = np.empty(1, dtype=np.uint64), law.consensus.copy()
        start_stream(law.seed, law.number, CENTRE, stream)
        latent, known, said = self.state.latent[self._rows], self._known.rankings, self._said
        n_moves = self.n_items * (N_TOGETHER if len(said.starts) else 1)
        swap_together(stream, known, said, self._laws(law), n_moves, latent, consensus)
        self.state.latent[self._rows] = latent
        tally = self.distance.tally(self.n_items)
        tally.add(latent, self.row_weights)
        return Completed(tally, consensus)

    def move_errors(self, rng: np.random.Generator) -> None:
        """Move how often users are wrong, given their latent rankings."""
        counts = np.zeros((self.n_items, 2), dtype=np.int64)
        latent = self.state.latent[self._rows]
        is_begun = latent[:, 0] > 0
        count_errors(rows_of(self._said, is_begun), latent[is_begun], counts)
        self.state.errors.move(counts, rng)

    @property
    def error_values(self) -> NDArray[np.float64]:
        """How often users are wrong."""
        return self.state.errors.values

    def likelihood_places(self) -> list[tuple[Any, slice | None]]:
        """Nowhere: the latent rankings are full."""
        return []

    def full_log_likelihood(self, consensus: Ranking, alpha: float) -> float:
        """Log probability of the latent rankings, which is what alpha sees here."""
        self._begin(consensus)
        values = self.row_log_likelihoods(slice(0, self.n_rows), consensus, alpha)
        return float((values * self.row_weights).sum())

    def row_log_likelihoods(
        self, rows: slice, consensus: Ranking, alpha: float
    ) -> NDArray[np.float64]:
        """Log probability of the latent ranking of each row."""
        self._begin(consensus)
        latent = self.state.latent[self._rows[rows]]
        return log_likelihoods_of_full(latent, consensus, alpha, self.distance)

    def row_of(self, user: int) -> tuple[Any, int, int | None]:
        """What is known of a user of the data, the number, and the row, if there is any."""
        place, nobody = int(np.searchsorted(self._data_rows, user)), self._known.take([])
        if place < len(self._data_rows) and self._data_rows[place] == user:
            row = int(self._last_rows[place])
            return nobody, row, row
        return nobody, self.n_users + user, None

    def redraw(self, known: Any, numbers: Counts, origin: DrawOrigin) -> Ranking:
        """The latent rankings that the chain holds; of users who say nothing, a new one."""
        found = np.empty((len(numbers), self.n_items), dtype=np.int32)
        for place, number in enumerate(numbers.tolist()):
            if number < len(self.state.latent):
                found[place] = self.state.latent[number]
            else:
                seed = np.random.SeedSequence((origin.seed, origin.number, number))
                drawn = int(seed.generate_state(1, np.uint64)[0] >> 1)
                ranks = self.distance.draw(self.n_items, origin.alpha, 1, drawn)[0]
                found[place] = ranks[origin.consensus - 1]
        return found

    def latent_of(self, users: NDArray[np.int64], origin: DrawOrigin) -> Ranking:
        """The latent rankings of some users of the data."""
        numbers = np.array([self.row_of(int(user))[1] for user in users], dtype=np.int64)
        return self.redraw(None, numbers, origin)


class HammingPopulation(AugmentedPopulation):
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

    @staticmethod
    def log_likelihoods(
        prefs: Any, rows: slice, consensus: Ranking, alpha: float
    ) -> NDArray[np.float64]:
        """Log probability of what is known of each row of rankings, full, partial or tied."""
        values, n_items = np.empty(len(prefs.rankings[rows])), len(consensus)
        constant = HAMMING.log_partition(n_items, alpha)
        rate = alpha / n_items
        hamming_log_likelihoods(prefs.rankings[rows], consensus, rate, constant, values)
        return values

    def row_log_likelihoods(
        self, rows: slice, consensus: Ranking, alpha: float
    ) -> NDArray[np.float64]:
        """Log probability of what is known of each row."""
        return self.log_likelihoods(self._known, rows, consensus, alpha)


def list_statements(pairs: Pairs | None) -> Statements:
    """Comparisons as kernels read them: each stands with both of its items."""
    none = np.empty(0, dtype=np.int32)
    if pairs is None:
        return Statements(np.empty(0, np.int64), np.empty((0, 0), np.int32), none, none, none)
    said = np.flatnonzero(pairs.counts > 0)
    owners, counts, nothing = pairs.owners()[said], pairs.counts[said], np.zeros(len(said), int)
    rows, items = np.tile(owners, 2), np.concatenate([pairs.better[said], pairs.worse[said]])
    others = np.concatenate([pairs.worse[said], pairs.better[said]])
    cells = (rows * pairs.n_items + items) * pairs.n_items + others
    found, places = np.unique(cells, return_inverse=True)
    wins = np.bincount(places, np.concatenate([counts, nothing]), len(found))
    losses = np.bincount(places, np.concatenate([nothing, counts]), len(found))
    owned, others = np.divmod(found, pairs.n_items)
    n_cells = pairs.n_users * pairs.n_items
    sizes = np.bincount(owned, minlength=n_cells).reshape(pairs.n_users, pairs.n_items)
    firsts = np.zeros((pairs.n_users, pairs.n_items + 1), dtype=np.int32)
    np.cumsum(sizes, axis=1, out=firsts[:, 1:])
    ends = np.cumsum(firsts[:, -1], dtype=np.int64)
    numbers = (each.astype(np.int32) for each in (others, wins, losses))
    return Statements(ends - firsts[:, -1], firsts, *numbers)


def rows_of(said: Statements, rows: Any) -> Statements:
    """The statements of some rows."""
    if not len(said.starts):
        return said
    return said._replace(starts=said.starts[rows], firsts=said.firsts[rows])


def _lasts(owners: Counts) -> Counts:
    """Where each run of equal numbers ends."""
    return np.flatnonzero(np.append(owners[1:] != owners[:-1], True))


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

    def count(self, population: AugmentedPopulation, rows: slice) -> Any:
        """Move the latent rankings of a block; they are counted at the end."""
        population.move_rows(rows, self)


class KeptDraw(Draw):
    """The latent rankings of one sweep, in the making."""

    def add(self, part: Any) -> None:
        """A block has moved."""

    def finish(self) -> Completed:
        """The tally, once all blocks have moved, and a consensus that has moved along with it."""
        population: Any = self.population
        moved: Completed = population.move_together(self.law)
        return moved
