"""The users of a chain on the matched law: whose cluster they draw, and how likely their clicks
are."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...distances.tallies import Counts, Ranking
from ...engines.executors import BLOCK, blocks, is_alone, is_remote
from ...kernels import matched as kernels
from ...kernels.footrule.click_likelihood import own_log_likelihoods
from ...kernels.footrule.walks import Laws, Walks, make_walks
from ...kernels.streams import Streams
from ..click_laws import ClickLaw, ClickTally, Floats, SizeGroups
from ..click_population import ClickPopulation
from ..population import UNITS, Population, exact_sum, exact_sums

N_BLOCKS = 8  # of rows: two cores end at the same time, and little is lost on tasks
ROWS_ALONE = 4096  # in a block, at least, of a chain that has one core to itself
N_DRAW_BLOCKS = 2  # of rows that draw labels: that is quick, and the counts of each block add up
FAR = 15.0  # a cluster so far below the best, by the matched law, adds nothing: 1e-7 of a user

Labels = NDArray[np.int32]


# What the clusters of a chain tell the users, and what the users tell them


@dataclass(frozen=True)
class ClusterLaws:
    """The exact laws of the clusters of a chain: ``ranks[cluster, item]``, ``alphas[cluster]``."""

    ranks: Ranking
    alphas: Floats

    @property
    def as_laws(self) -> Laws:
        """As kernels read them."""
        return Laws(self.ranks, np.arange(len(self.alphas)))

    @functools.cached_property
    def walks(self) -> Walks:
        """What their walks share; made here for all blocks."""
        n_items = self.ranks.shape[1]
        return make_walks(self.alphas / n_items, n_items)


class MatchedLaws(NamedTuple):
    """The clusters by a law that adds up over clicks: ``log_weights[group, item, cluster]``,
    ``constants[size, cluster]`` and ``log_shares[cluster]``."""

    log_weights: Floats
    constants: Floats
    log_shares: Floats

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return len(self.log_shares)


class LabelDraw(NamedTuple):
    """Which random numbers the labels of a draw come from."""

    seed: int
    number: int


class Values(NamedTuple):
    """Log likelihoods of all users, their labels summed out: exact, and by the matched law."""

    exact: float
    matched: float


@dataclass(frozen=True)
class MemberRows:
    """Some rows in a chain: ``present[row, cluster]``, their memberships in the clusters that were
    weighed last; ``kept``, the sum over the draws; ``answer``, what the last task found."""

    present: NDArray[np.float32]
    kept: Floats
    answer: Any = None

    @classmethod
    def empty(cls, kept: Floats) -> "MemberRows":
        """Rows of which nothing is known but what was kept."""
        return cls(np.zeros(kept.shape, dtype=np.float32), kept)


class MatchedUsers:
    """The users of a chain: at hand in blocks, or in shards on workers, with their memberships."""

    def __init__(self, population: Population, law: ClickLaw, n_clusters: int):
        self.population, self.law, self.n_clusters = population, law, n_clusters
        self._places, self._slices = _cut(population, N_BLOCKS)
        self._draw_places, _ = _cut(population, N_DRAW_BLOCKS)
        self._members: list[Any] = [None] * len(self._places)

    def tallies(self, labels: Labels) -> list[ClickTally]:
        """The tally of each cluster, given all labels."""
        return self._add_up(self._map(_count, [(labels[rows],) for rows in self._slices]))

    def draw(self, laws: MatchedLaws, draw: LabelDraw) -> tuple[list[ClickTally], int]:
        """Draw all labels by the matched law; return the tally of each cluster, and the number of
        rows whose label is not their likeliest."""
        shape = (self.law.groups, self.n_clusters)
        tasks = [(*place, *shape, laws, draw) for place in self._draw_places]
        *parts, n_unlikely = zip(*self.population.executor.map(_draw_and_count, tasks), strict=True)
        return self._add_up(list(zip(*parts, strict=True))), sum(n_unlikely)

    def draw_labels(self, laws: MatchedLaws, draw: LabelDraw) -> Labels:
        """The labels of such a draw."""
        return np.concatenate(self._map(_draw, [(laws, draw)] * len(self._places)))

    def log_likelihoods(self, laws: ClusterLaws, labels: Labels) -> list[float]:
        """Exact log likelihood of the users of each cluster, given all labels."""
        laws.walks  # noqa: B018 - made once, before the tasks share them
        sums = self._map(_sum_own, [(laws, labels[rows]) for rows in self._slices])
        return [sum(each[k] for each in sums) / UNITS for k in range(self.n_clusters)]

    def weigh(self, matched: MatchedLaws, exact: ClusterLaws | None) -> Values:
        """How likely the clicks are under these clusters. Without exact laws both are matched."""
        if exact is not None:
            exact.walks  # noqa: B018 - made once, before the tasks share them
        return _add_values(self._become(_weigh, (matched, exact)))

    def compare(self, matched: MatchedLaws, exact: ClusterLaws) -> Values:
        """The same, but the memberships stay as they are."""
        exact.walks  # noqa: B018 - made once, before the tasks share them
        return _add_values(self._map(_compare, [(matched, exact)] * len(self._places)))

    def settle(self, order: Counts, keeps: bool) -> None:
        """The order in which the clusters stand from now on, and whether the memberships of this
        draw are kept."""
        self._become(_settle, (order, keeps))

    def gather_kept(self) -> Floats:
        """``memberships[row, cluster]``: sums over all draws that were kept."""
        if self._members[0] is None:
            return np.zeros((self.population.n_rows, self.n_clusters))
        return np.concatenate(list(self.population.executor.map(_kept, self._members)))

    def gather_present(self) -> NDArray[np.float32]:
        """``memberships[row, cluster]`` where the chain stands."""
        return np.concatenate(list(self.population.executor.map(_present, self._members)))

    def forget(self) -> None:
        """Know nothing of the memberships."""
        self._members = [None] * len(self._places)

    def remember(self, kept: Floats) -> None:
        """Go on from these sums of memberships."""
        self._hold([MemberRows.empty(kept[rows]) for rows in self._slices])

    def _hold(self, rows: Sequence[Any]) -> None:
        """Let the rows become these, each where it lies."""
        executor = self.population.executor
        self._members = (
            [executor.submit(_same, each) for each in rows] if is_remote(executor) else list(rows)
        )

    def _add_up(self, parts: list[tuple[Counts, Counts]]) -> list[ClickTally]:
        counts, n_users = (np.require(part, requirements="W") for part in parts[0])
        for more, more_users in parts[1:]:
            counts += more
            n_users += more_users
        return [self.law.tally(counts[k], n_users[k]) for k in range(self.n_clusters)]

    def _tasks(self, messages: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        shape = (self.law.groups, self.n_clusters)
        pairs = zip(self._places, messages, strict=True)
        return [(*place, *shape, *message) for place, message in pairs]

    def _map(self, task: Callable[[Any], Any], messages: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The answers of all rows."""
        return list(self.population.executor.map(task, self._tasks(messages)))

    def _become(self, task: Callable[[Any], Any], message: Any) -> list[Any]:
        """Run a task on all rows, which become what it makes of them; return their answers."""
        return self._become_each(task, [message] * len(self._members))

    def _become_each(
        self, task: Callable[[Any], Any], messages: Sequence[tuple[Any, ...]]
    ) -> list[Any]:
        """The same, with a message for each block of rows."""
        executor, pairs = self.population.executor, zip(self._members, messages, strict=True)
        work = self._tasks([(old, *message) for old, message in pairs])
        if is_remote(executor):
            self._members = [executor.submit(_call, task, *arguments) for arguments in work]
            return list(executor.map(_answer, self._members))
        self._members = list(executor.map(task, work))
        return [rows.answer for rows in self._members]


def _add_values(sums: Sequence[tuple[int, int]]) -> Values:
    return Values(*(sum(each) / UNITS for each in zip(*sums, strict=True)))


def _cut(population: Population, n_blocks: int) -> tuple[list[Any], list[slice]]:
    """Where the rows lie in about so many blocks, and which they are."""
    least = ROWS_ALONE if is_alone() else BLOCK
    cut = blocks(population.n_rows, max(least, -(-population.n_rows // n_blocks)))
    return population.places(cut), population.slices(cut)


# The tasks: of some rows of a population at hand, or of all rows of a shard (None)


def _call(task: Callable[[Any], Any], *arguments: Any) -> Any:
    return task(arguments)


def _same(rows: Any) -> Any:
    return rows


def _count(task: Any) -> tuple[Counts, Counts]:
    *where, labels = task
    return ClickedRows(*where).count(labels)


def _draw(task: Any) -> Labels:
    *where, laws, draw = task
    users = ClickedRows(*where)
    return users.draw(users.matched_logs(laws), draw)


def _draw_and_count(task: Any) -> tuple[Counts, Counts, int]:
    *where, laws, draw = task
    users = ClickedRows(*where)
    logs = users.matched_logs(laws)
    labels = users.draw(logs, draw)
    is_unlikely = logs[np.arange(users.n_rows), labels] < logs.max(axis=1)
    return *users.count(labels), int(is_unlikely.sum())


def _sum_own(task: Any) -> list[int]:
    *where, laws, labels = task
    users = ClickedRows(*where)
    return users.sums(users.log_likelihoods(np.arange(users.n_rows), labels, laws), labels)


def _weigh(task: Any) -> MemberRows:
    *where, old, matched, exact = task
    present, sums = ClickedRows(*where).weigh(matched, exact)
    old = MemberRows.empty(np.zeros(present.shape)) if old is None else old
    return replace(old, present=present, answer=sums)


def _compare(task: Any) -> tuple[int, int]:
    *where, matched, exact = task
    return ClickedRows(*where).weigh(matched, exact)[1]


def _settle(task: Any) -> MemberRows:
    *_, old, order, keeps = task
    present = old.present[:, order] if (np.diff(order) != 1).any() else old.present
    return replace(old, present=present, kept=old.kept + present if keeps else old.kept)


class ClickedRows:
    """Some rows of clicks, for one task."""

    def __init__(
        self, population: ClickPopulation, rows: slice | None, groups: SizeGroups, n_clusters: int
    ):
        rows = slice(0, population.n_rows) if rows is None else rows
        self._clicks = population.clicks_of_rows(rows)
        self.n_rows, self.weights = rows.stop - rows.start, population.row_weights[rows]
        self._numbers = population.row_numbers[rows]
        self._groups, self._n_items, self.n_clusters = groups, population.n_items, n_clusters
        self._size_places = np.searchsorted(groups.sizes, np.diff(self._clicks.starts))
        self._group_places = groups.groups[self._size_places]

    def count(self, labels: Labels) -> tuple[Counts, Counts]:
        """``counts[cluster, group, item]`` of clicks, and ``n_users[cluster, size]``."""
        counts = np.zeros((self.n_clusters, self._groups.n_groups, self._n_items), dtype=np.int64)
        kernels.count_clicks(self._clicks, self._group_places, labels, self.weights, counts)
        n_users = np.zeros((self.n_clusters, len(self._groups.sizes)), dtype=np.int64)
        np.add.at(n_users, (labels, self._size_places), self.weights)
        return counts, n_users

    def log_likelihoods(self, rows: Counts, labels: Labels, laws: ClusterLaws) -> Floats:
        """Exact log likelihood of some rows, each under the law of its label."""
        values, order = np.empty(len(rows)), np.argsort(labels, kind="stable")
        pairs = (rows[order], labels[order], laws.as_laws, laws.walks)
        own_log_likelihoods(self._clicks, *pairs, values)
        values[order] = values.copy()
        return values

    def matched_logs(self, laws: MatchedLaws) -> Floats:
        """``logs[row, cluster]``: log of share times likelihood, by the law that adds up."""
        logs = (laws.constants + laws.log_shares)[self._size_places]
        kernels.fill_logs(self._clicks, self._group_places, laws.log_weights, logs)
        return logs

    def draw(self, logs: Floats, draw: LabelDraw) -> Labels:
        """Labels of the rows."""
        labels = np.empty(self.n_rows, np.int32)
        kernels.draw_matched_labels(Streams(*draw, self._numbers, self.weights), logs, labels)
        return labels

    def judge(self, rows: Counts, log_ratios: Floats, draw: LabelDraw) -> NDArray[np.bool_]:
        """Which of the labels that some rows have drawn are accepted?"""
        accepted = np.empty(len(rows), np.bool_)
        streams = Streams(*draw, self._numbers, self.weights)
        kernels.judge_labels(streams, rows, log_ratios, accepted)
        return accepted

    def sums(self, values: Floats, labels: Labels) -> list[int]:
        """Sums of a value of each user over those of each cluster; see `exact_sums`."""
        return exact_sums(values, self.weights, labels, self.n_clusters)

    def weigh(
        self, matched: MatchedLaws, exact: ClusterLaws | None
    ) -> tuple[NDArray[np.float32], tuple[int, int]]:
        """``memberships[row, cluster]``, exact or matched, and the log likelihoods of all rows,
        labels summed out, by either law; see `exact_sum`."""
        logs = self.matched_logs(matched)
        log_sums, memberships = np.empty(len(logs)), np.empty(logs.shape, dtype=np.float32)
        kernels.weigh_logs(logs, log_sums, memberships)
        by_matched = exact_sum(log_sums, self.weights)
        if exact is None:
            return memberships, (by_matched, by_matched)
        kernels.weigh_logs(self.exact_logs(matched, exact, logs), log_sums, memberships)
        return memberships, (exact_sum(log_sums, self.weights), by_matched)

    def exact_logs(self, matched: MatchedLaws, exact: ClusterLaws, logs: Floats) -> Floats:
        """``logs[row, cluster]`` by the exact law, for clusters that may count by the matched one;
        the others have -inf."""
        found = np.full(logs.shape, -np.inf)
        rows, clusters = np.nonzero(logs > logs.max(axis=1, keepdims=True) - FAR)
        found[rows, clusters] = self.log_likelihoods(rows, clusters.astype(np.int32), exact)
        return found + matched.log_shares


def _answer(rows: Any) -> Any:
    return rows.answer


def _kept(rows: Any) -> Any:
    return rows.kept


def _present(rows: MemberRows) -> NDArray[np.float32]:
    return rows.present
