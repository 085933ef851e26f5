"""Users known in part, by any distance: each has a latent full ranking, which a chain keeps (data
augmentation: Tanner and Wong 1987; Vitelli et al. 2018 for Mallows).

It moves by exchanges of items whose order is not known, or, if the user compares pairs, by leaps of
items; both are accepted by Metropolis' rule. Given the latent rankings the consensus hardly moves,
so two items are also exchanged in the consensus and in the latent rankings together.
"""

import functools
from typing import Any, NamedTuple, Self

import numpy as np

from ..data.pairs import Pairs
from ..data.preferences import Preferences, check_informative
from ..distances.distance import Distance, adds_up
from ..distances.tallies import Counts, Ranking
from ..engines.executors import Executor
from ..engines.memory import as_size, available_memory
from ..kernels.latent.leaps import leap_latent
from ..kernels.latent.statements import Statements, count_errors, first_rankings
from ..kernels.latent.swaps import (
    CAYLEY,
    KENDALL,
    PRICED,
    ULAM,
    OrderLaw,
    SwapLaw,
    swap_latent,
    swap_together,
)
from ..kernels.streams import CENTRE, Streams, start_stream
from .error_rates import Errors, NoErrors
from .full import FullLaw
from .law import (
    Clusters,
    Floats,
    Labels,
    Law,
    cut_rows,
    in_order_of,
    principal_components,
)

# of an item of a user, six tables of 4 bytes: what is known and a copy, the latent ranks and three
BYTES_OF_RANK = 24
# Proposals for each open item of a user in a sweep: one item in twenty is in none of them; with 1
# it would be one in four or five, with 4, one in 300, at twice the time (10 to 200 open items).
N_SWAPS = 2
# The same of users who compare pairs, whose leaps also move all items on the way; and proposals for
# each item, of a consensus and the rankings of these users together, without which a consensus
# hardly moves. By these two, draws are worth a sixth to a third of their number
# (docs/measurements.md, "Comparisons").
N_LEAPS = 1
N_TOGETHER = 4
TWO_SIDED = ("cayley", "hamming")  # an exchange of two ranks in both rankings changes nothing
CODES = {"kendall": KENDALL, "cayley": CAYLEY, "ulam": ULAM}


class LatentMove(NamedTuple):
    """How the latent rankings of one cluster move in a sweep."""

    consensus: Ranking
    order: OrderLaw
    seed: int
    number: int


def moved_rows(task: Any) -> Ranking:
    """The latent rankings of some rows of a cluster, by their numbers, after a move of each."""
    known, said, numbers, move, latent = task
    latent, ones = latent.copy(), np.ones(len(numbers), dtype=np.int64)
    speaks = said.firsts[:, -1] > 0 if len(said.starts) else np.zeros(len(numbers), dtype=bool)
    for mine in (np.flatnonzero(~speaks), np.flatnonzero(speaks)):
        if not len(mine):
            continue
        streams, moved = Streams(move.seed, move.number, numbers[mine], ones[mine]), latent[mine]
        if speaks[mine[0]]:
            leap_latent(streams, rows_of(said, mine), move.consensus, move.order, N_LEAPS, moved)
        else:
            swaps = move.order.swaps
            swap_latent(streams, known[mine], move.consensus, swaps, N_SWAPS, moved)
        latent[mine] = moved
    return latent


class AugmentedLaw(Law):
    """Users of any kind with a latent ranking each, which a chain keeps in its state."""

    has_latent = True
    how_latent = "moved by exchanges in each sweep (Metropolis)"

    def __init__(
        self,
        prefs: Preferences,
        executor: Executor | None = None,
        distance: Distance | None = None,
        errors: Errors | None = None,
    ):
        assert distance is not None
        check_informative(prefs.is_informative)
        check_room(prefs, distance)
        self.prefs, (each, owners) = prefs, prefs.one_row_each()
        is_informative = each.is_informative
        self._last_rows = _lasts(owners[is_informative])  # of each row of the data that says
        self._data_rows = owners[is_informative][self._last_rows]  # anything, and its number
        said = each.take(is_informative)
        self._known, self._said = said.as_rankings(), list_statements(said.comparisons())
        if len(self._said.starts):
            self.how_latent = "moved by leaps and exchanges in each sweep (Metropolis)"
        n_rows = int(is_informative.sum())
        ones = np.ones(n_rows, dtype=np.int64)  # no blocks: each pass has those of its cluster
        super().__init__(prefs.n_items, distance, [], [ones], executor)
        self.errors = NoErrors(self.n_items) if errors is None else errors

    def filled_ranks(self) -> Floats:
        """The ranks, each unknown one as the mean of those it may have; of items that were compared
        by how often they won."""
        ranks, said = self._known.filled_ranks(), self._said
        for row in range(len(said.starts)):
            firsts = said.firsts[row]
            mine = slice(said.starts[row], said.starts[row] + firsts[-1])
            items = np.repeat(np.arange(self.n_items), np.diff(firsts))
            lost = np.bincount(items, said.losses[mine] - said.wins[mine], self.n_items)
            compared = np.bincount(items, said.losses[mine] + said.wins[mine], self.n_items)
            ranks[row] += (self.n_items - 1) / 2 * lost / (compared + 1)
        return ranks

    @functools.cached_property
    def mean_ranks(self) -> Floats:
        return np.asarray(self.filled_ranks().mean(axis=0))

    def features(self, n_features: int) -> Floats:
        filled = self.filled_ranks()
        return principal_components(filled - filled.mean(axis=0), n_features)

    def select(self, rows: Counts) -> Self:
        each = self.prefs.one_row_each()[0]
        chosen = each.take(np.flatnonzero(each.is_informative)[rows])
        return type(self)(chosen, self.executor, self.distance, self.errors)

    def rankings_of(self, rows: Counts, order: Floats) -> Ranking:
        first = np.argsort(np.argsort(order, kind="stable")).astype(np.int32)[None] + 1
        return self.first_latent(Clusters(first, np.ones(1)), None)[rows]

    def tables(self, clusters: Clusters) -> Any:
        """Not without the latent rankings: see `given`."""
        raise NotImplementedError

    def given(self, latent: Ranking) -> FullLaw:
        """The law given the latent rankings: they are full."""
        return FullLaw.of_full(latent, self.executor, self.distance)

    def first_latent(self, clusters: Clusters, labels: Labels | None) -> Ranking:
        """What is not known in the order of the consensus of each user's cluster."""
        labels = np.zeros(self.n_rows, dtype=np.int32) if labels is None else labels
        latent = np.empty((self.n_rows, self.n_items), dtype=np.int32)
        for label, consensus in enumerate(clusters.consensus):
            mine = np.flatnonzero(labels == label)
            first = in_order_of(self._known.rankings[mine], consensus)
            if len(self._said.starts):
                said = rows_of(self._said, mine)
                speaks = said.firsts[:, -1] > 0
                speaking = first[speaks]
                first_rankings(rows_of(said, speaks), consensus, speaking)
                first[speaks] = speaking
            latent[mine] = first
        return latent

    def complete(
        self,
        clusters: Clusters,
        labels: Labels | None,
        latent: Ranking,
        errors: Floats,
        seed: int,
        number: int,
    ) -> tuple[Ranking, Ranking]:
        """Latent rankings and consensuses after a move of each, and of both together."""
        labels = np.zeros(self.n_rows, dtype=np.int32) if labels is None else labels
        latent, consensus = latent.copy(), clusters.consensus.copy()
        for label, alpha in enumerate(clusters.alpha.tolist()):
            mine = np.flatnonzero(labels == label)
            if not len(mine):
                continue
            known, said = self._known.rankings[mine], rows_of(self._said, mine)
            move = LatentMove(consensus[label].copy(), self._order(alpha, errors), seed, number)
            tasks = [
                (known[c], rows_of(said, c), mine[c], move, latent[mine[c]])
                for c in cut_rows(len(mine))
            ]
            moved = np.concatenate(list(self.executor.map(moved_rows, tasks)))
            stream = np.empty(1, dtype=np.uint64)
            start_stream(seed, number, CENTRE + label, stream)
            n_moves = self.n_items * (N_TOGETHER if len(said.starts) else 1)
            swap_together(stream, known, said, move.order, n_moves, moved, consensus[label])
            latent[mine] = moved
        return latent, consensus

    def _order(self, alpha: float, errors: Floats) -> OrderLaw:
        """The distance and the errors as kernels read them."""
        kind, prices = CODES.get(self.distance.name, PRICED), np.zeros((1, 1), dtype=np.int64)
        if adds_up(self.distance):
            prices = self.distance.prices(self.n_items)
        is_two_sided = self.distance.name in TWO_SIDED
        swaps = SwapLaw(kind, prices, alpha / self.n_items, is_two_sided)
        return OrderLaw(swaps, self.errors.law(errors))

    def move_errors(self, errors: Floats, latent: Ranking, rng: np.random.Generator) -> Floats:
        """How often users are wrong, given their latent rankings."""
        if not len(errors):
            return errors
        counts = np.zeros((self.n_items, 2), dtype=np.int64)
        count_errors(self._said, latent, counts)
        return self.errors.moved(errors, counts, rng)

    def latent_of(
        self,
        users: Counts,
        labels: Labels | None,
        latent: Ranking,
        clusters: Clusters,
        rng: np.random.Generator,
    ) -> Ranking:
        """The latent rankings of some users of the data; of those who say nothing, a new one."""
        kept = np.empty((len(users), self.n_items), dtype=np.int32)
        for place, user in enumerate(users.tolist()):
            row = int(np.searchsorted(self._data_rows, user))
            if row < len(self._data_rows) and self._data_rows[row] == user:
                kept[place] = latent[self._last_rows[row]]
            else:
                label = 0 if labels is None else int(rng.choice(labels))
                alpha, seed = float(clusters.alpha[label]), int(rng.integers(2**63))
                ranks = self.distance.draw(self.n_items, alpha, 1, seed)[0]
                kept[place] = ranks[clusters.consensus[label] - 1]
        return kept


def check_room(prefs: Preferences, distance: Distance) -> None:
    """Refuse more users than have room, before any work."""
    n_people, available = int(prefs.weights[prefs.is_informative].sum()), available_memory()
    needed = BYTES_OF_RANK * n_people * prefs.n_items
    if available is not None and needed > available:
        raise ValueError(
            f"a chain by distance={distance.name!r} keeps a ranking of each of "
            f"{n_people:,} people, which needs {as_size(needed)} of memory, and "
            f"{as_size(available)} are available; votes, one comparison a person, need none "
            "with distance='kendall'"
        )


def list_statements(pairs: Pairs | None) -> Statements:
    """Comparisons as kernels read them: each stands with both of its items."""
    none = np.empty(0, dtype=np.int32)
    if pairs is None:
        return Statements(np.empty(0, np.int64), np.empty((0, 0), np.int32), none, none, none)
    said = np.flatnonzero(pairs.counts > 0)
    owners, counts, nothing = pairs.owners[said], pairs.counts[said], np.zeros(len(said), int)
    rows, items = np.tile(owners, 2), np.concatenate([pairs.better[said], pairs.worse[said]])
    others = np.concatenate([pairs.worse[said], pairs.better[said]])
    cells = (rows * pairs.n_items + items) * pairs.n_items + others
    distinct, places = np.unique(cells, return_inverse=True)
    wins = np.bincount(places, np.concatenate([counts, nothing]), len(distinct))
    losses = np.bincount(places, np.concatenate([nothing, counts]), len(distinct))
    owned, others = np.divmod(distinct, pairs.n_items)
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
