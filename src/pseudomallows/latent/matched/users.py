"""The users of a chain on the matched law: their labels, and how likely their clicks are."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...distances.footrule import log_partition
from ...distances.tallies import Counts, Ranking
from ...engines.executors import BLOCK, blocks, is_remote
from ...kernels import matched as kernels
from ...kernels.footrule.clicks import MixedLaws, own_log_likelihoods
from ...kernels.footrule.matching import N_GAPS, Walks, grid_weights
from ...kernels.streams import Streams
from ..click_laws import ClickLaw, Floats, SizeGroups
from ..clicks import ClickPopulation
from ..population import UNITS, Population, exact_sum

N_BLOCKS = 8  # of rows: two cores end at the same time, and little is lost on tasks
NOBODY = np.zeros(1, np.int64)
FAR = 10.0  # a cluster whose matched log probability is so far below the best has no share


# What the clusters of a chain tell the users, and what the users tell them


@dataclass(frozen=True)
class ClusterLaws:
    """The exact laws of the clusters of a chain: ``ranks[cluster, item]``, ``alphas[cluster]``."""

    ranks: Ranking
    alphas: Floats

    @functools.cached_property
    def mixed(self) -> MixedLaws:
        """As kernels read them."""
        n_items = self.ranks.shape[1]
        logs = np.array([log_partition(n_items, alpha) for alpha in self.alphas.tolist()])
        return MixedLaws(self.ranks, self.alphas / n_items, logs)

    @functools.cached_property
    def walks(self) -> Walks:
        """What their walks share; made here for all blocks."""
        walks: Walks = grid_weights(self.mixed.lams, self.ranks.shape[1], N_GAPS)
        return walks


@dataclass(frozen=True)
class Relabel:
    """How the users draw their labels anew, given the clusters.

    They propose one by a law that adds up over clicks, ``log_weights[group, item, cluster]``,
    ``constants[size, cluster]`` and ``log_shares[cluster]``; with `laws` they accept it by the
    exact one. Before it the clusters
    take the order `order`. With `keeps_memberships` they add their memberships to a sum.
    """

    seed: int
    number: int
    order: Counts
    log_weights: Floats
    constants: Floats
    log_shares: Floats
    laws: ClusterLaws | None
    keeps_memberships: bool


class Summary(NamedTuple):
    """What some rows tell the centre; counts and sums are whole numbers, so they add up to the same
    bits: ``counts[cluster, group, item]`` clicks, ``n_users[cluster, size]``, ``sums[cluster]`` of
    exact log likelihoods, and ``log_sum``, the log likelihood with the labels summed out, by the
    law that adds up."""

    counts: Counts
    n_users: Counts
    sums: list[int]
    log_sum: int


@dataclass(frozen=True)
class LabelledRows:
    """Some rows in a chain: ``labels[row]``; ``values[row]``, the exact log likelihood under the
    label, and ``proposed[row]`` under what the centre has proposed; sums of memberships."""

    labels: NDArray[np.int32]
    values: Floats
    proposed: Floats
    memberships: Floats
    summary: Summary | None = None


class Relabelled(NamedTuple):
    """The clusters after a draw of labels: their tallies, the exact log likelihoods of their users,
    and the log likelihood with the labels summed out: matched, or, where memberships were kept,
    exact."""

    tallies: list[Any]
    values: list[float]
    log_likelihood: float


class MatchedUsers:
    """The users of a chain: at hand in blocks, or in shards on workers, with their labels."""

    def __init__(self, population: Population, law: ClickLaw, n_clusters: int):
        self.population, self.law, self.n_clusters = population, law, n_clusters
        cut = blocks(population.n_rows, max(BLOCK, -(-population.n_rows // N_BLOCKS)))
        self._places, self._slices = population.places(cut), population.slices(cut)
        self._rows: list[Any] = [None] * len(self._places)

    def begin(self, labels: NDArray[np.int32]) -> list[Any]:
        """Take first labels; return the tally of each cluster."""
        messages = [(labels[rows], self.n_clusters) for rows in self._slices]
        return self._tallies(self._run(_begin, messages))

    def log_likelihoods(self, laws: ClusterLaws) -> list[float]:
        """Exact log likelihood of the users of each cluster under these laws, which they remember
        until they hear which are taken."""
        laws.walks  # noqa: B018 - made once, before the tasks share them
        return self._sums(self._run(_propose, [laws] * len(self._places)))

    def take_proposed(self) -> None:
        """The laws of the latest `log_likelihoods` are those of the clusters."""
        self._run(_take_proposed, [None] * len(self._places))

    def compare(self, how: Relabel) -> tuple[float, float]:
        """Exact and matched log likelihood of all users, their labels summed out."""
        summaries = self._run(_compare, [how] * len(self._places))
        exact, matched = (sum(each.sums[k] for each in summaries) / UNITS for k in range(2))
        return exact, matched

    def relabel(self, how: Relabel, accepted: NDArray[np.bool_]) -> "Relabelled":
        """Take the proposals of the accepted clusters, then draw the labels."""
        summaries = self._run(_relabel, [(how, accepted)] * len(self._places))
        log_likelihood = sum(each.log_sum for each in summaries) / UNITS
        return Relabelled(self._tallies(summaries), self._sums(summaries), log_likelihood)

    def _sums(self, summaries: list[Summary]) -> list[float]:
        sums = [sum(each.sums[k] for each in summaries) for k in range(self.n_clusters)]
        return [total / UNITS for total in sums]

    def _tallies(self, summaries: list[Summary]) -> list[Any]:
        counts, n_users = summaries[0].counts, summaries[0].n_users
        for each in summaries[1:]:
            counts, n_users = counts + each.counts, n_users + each.n_users
        return [self.law.tally(counts[k], n_users[k]) for k in range(self.n_clusters)]

    def _run(self, task: Any, messages: Sequence[Any]) -> list[Summary]:
        """Run a task on all rows, which become what it makes of them."""
        executor, sizes = self.population.executor, self.law.groups
        work = [
            (*place, sizes, old, message)
            for place, old, message in zip(self._places, self._rows, messages, strict=True)
        ]
        if is_remote(executor):
            self._rows = [executor.submit(task, *arguments) for arguments in work]
            return list(executor.map(_summary, self._rows))
        found = list(executor.map(lambda arguments: task(*arguments), work))
        self._rows = [replace(rows, summary=None) for rows in found]  # it may be large
        return [rows.summary for rows in found]

    def gather_labels(self) -> NDArray[np.int32]:
        """The labels of all rows, brought here."""
        return np.concatenate(list(self.population.executor.map(_labels, self._rows)))

    def gather_memberships(self) -> Floats:
        """``memberships[row, cluster]``: sums over all that were kept."""
        return np.concatenate(list(self.population.executor.map(_memberships, self._rows)))

    def remember(self, memberships: Floats) -> None:
        """Go on from these sums of memberships."""
        self._run(_remember, [memberships[rows] for rows in self._slices])


# The tasks: of some rows of a population at hand, or of all rows of a shard (None)


def _begin(
    population: ClickPopulation,
    rows: slice | None,
    sizes: SizeGroups,
    old: None,
    message: tuple[NDArray[np.int32], int],
) -> LabelledRows:
    labels, n_clusters = message
    users = _Rows(population, rows, sizes, n_clusters)
    none, memberships = np.full(users.n_rows, np.nan), np.zeros((users.n_rows, n_clusters))
    return users.counted(LabelledRows(labels, none, none, memberships), 0)


def _propose(
    population: ClickPopulation,
    rows: slice | None,
    sizes: SizeGroups,
    old: LabelledRows,
    laws: ClusterLaws,
) -> LabelledRows:
    users = _Rows(population, rows, sizes, old.memberships.shape[1])
    values = users.log_likelihoods(np.arange(users.n_rows), old.labels, laws)
    summary = Summary(NOBODY, NOBODY, users.sums(old.labels, values), 0)
    return replace(old, proposed=values, summary=summary)


def _relabel(
    population: ClickPopulation,
    rows: slice | None,
    sizes: SizeGroups,
    old: LabelledRows,
    message: tuple[Relabel, NDArray[np.bool_]],
) -> LabelledRows:
    how, accepted = message
    users = _Rows(population, rows, sizes, old.memberships.shape[1])
    values = np.where(accepted[old.labels], old.proposed, old.values)
    labels = np.argsort(how.order).astype(np.int32)[old.labels]
    logs = users.matched_logs(how)
    labels, values = users.draw_labels(how, logs, labels, values)
    new = replace(old, labels=labels, values=values)
    if how.laws is not None:
        if not how.keeps_memberships:
            return users.counted(new, 0)
        logs = users.exact_logs(how, how.laws, logs, labels, values)
    log_sums = np.logaddexp.reduce(logs, axis=1)
    if how.keeps_memberships:
        new = replace(new, memberships=old.memberships + np.exp(logs - log_sums[:, None]))
    return users.counted(new, exact_sum(log_sums, users.weights))


def _take_proposed(
    population: ClickPopulation,
    rows: slice | None,
    sizes: SizeGroups,
    old: LabelledRows,
    message: None,
) -> LabelledRows:
    return replace(old, values=old.proposed)


def _compare(
    population: ClickPopulation,
    rows: slice | None,
    sizes: SizeGroups,
    old: LabelledRows,
    how: Relabel,
) -> LabelledRows:
    assert how.laws is not None
    users = _Rows(population, rows, sizes, old.memberships.shape[1])
    matched = users.matched_logs(how)
    values = users.log_likelihoods(np.arange(users.n_rows), old.labels, how.laws)
    exact = users.exact_logs(how, how.laws, matched, old.labels, values)
    both = [np.logaddexp.reduce(logs, axis=1) for logs in (exact, matched)]
    sums = [exact_sum(log_sums, users.weights) for log_sums in both]
    return replace(old, summary=Summary(NOBODY, NOBODY, sums, 0))


def _remember(
    population: ClickPopulation,
    rows: slice | None,
    sizes: SizeGroups,
    old: LabelledRows,
    sums: Floats,
) -> LabelledRows:
    return replace(old, memberships=sums)


class _Rows:
    """Some rows of clicks, for one task."""

    def __init__(
        self, population: ClickPopulation, rows: slice | None, sizes: SizeGroups, n_clusters: int
    ):
        rows = slice(0, population.n_rows) if rows is None else rows
        self._clicks = population.clicks_of_rows(rows)
        self.n_rows, self.weights = rows.stop - rows.start, population.row_weights[rows]
        self._numbers = population.row_numbers[rows]
        self._sizes, self._n_items, self._n_clusters = sizes, population.n_items, n_clusters
        self._size_places = np.searchsorted(sizes.sizes, np.diff(self._clicks.starts))
        self._groups = sizes.groups[self._size_places]

    def counted(self, new: LabelledRows, log_sum: int) -> LabelledRows:
        """The same with the counts of the clusters."""
        shape = (self._n_clusters, self._sizes.n_groups, self._n_items)
        counts = np.zeros(shape, dtype=np.int64)
        kernels.count_clicks(self._clicks, self._groups, new.labels, self.weights, counts)
        n_users = np.zeros((self._n_clusters, len(self._sizes.sizes)), dtype=np.int64)
        np.add.at(n_users, (new.labels, self._size_places), self.weights)
        sums = self.sums(new.labels, new.values)
        return replace(new, summary=Summary(counts, n_users, sums, log_sum))

    def sums(self, labels: NDArray[np.int32], values: Floats) -> list[int]:
        """Sums of log likelihoods for each cluster; 0 while they are not known."""
        unknown = np.isnan(values)
        if unknown.all():
            return [0] * self._n_clusters
        known = np.where(unknown, 0.0, values)
        if self._n_clusters == 1:
            return [exact_sum(known, self.weights)]
        all_mine = (labels == label for label in range(self._n_clusters))
        return [exact_sum(known[mine], self.weights[mine]) for mine in all_mine]

    def log_likelihoods(self, rows: Counts, labels: NDArray[np.int32], laws: ClusterLaws) -> Floats:
        """Exact log likelihood of some rows, each under the law of its label."""
        values = np.empty(len(rows))
        own_log_likelihoods(self._clicks, rows, labels, laws.mixed, laws.walks, values)
        return values

    def matched_logs(self, how: Relabel) -> Floats:
        """``logs[row, cluster]``: log of share times likelihood by the law that adds up, but for a
        constant."""
        logs = (how.constants + how.log_shares)[self._size_places]
        kernels.fill_logs(self._clicks, self._groups, how.log_weights, logs)
        return logs

    def draw_labels(
        self, how: Relabel, logs: Floats, labels: NDArray[np.int32], values: Floats
    ) -> tuple[NDArray[np.int32], Floats]:
        """New labels, and the exact log likelihoods under them."""
        new, log_uniforms = np.empty(self.n_rows, np.int32), np.empty(self.n_rows)
        streams = Streams(how.seed, how.number, self._numbers, self.weights)
        kernels.propose_labels(streams, logs, new, log_uniforms)
        if how.laws is None:
            return new, values
        moved = np.flatnonzero(new != labels)
        there = self.log_likelihoods(moved, new[moved], how.laws)
        matched = logs - how.log_shares
        log_ratios = there - values[moved] + matched[moved, labels[moved]]
        log_ratios -= matched[moved, new[moved]]
        taken = log_uniforms[moved] < log_ratios
        labels, values = labels.copy(), values.copy()
        labels[moved[taken]], values[moved[taken]] = new[moved[taken]], there[taken]
        return labels, values

    def exact_logs(
        self,
        how: Relabel,
        laws: ClusterLaws,
        logs: Floats,
        labels: NDArray[np.int32],
        values: Floats,
    ) -> Floats:
        """The same by the exact law, for clusters that may count; the others have -inf."""
        near = logs > logs.max(axis=1, keepdims=True) - FAR
        near[np.arange(self.n_rows), labels] = True
        rows, clusters = np.nonzero(near)
        exact = np.full(logs.shape, -np.inf)
        known = clusters == labels[rows]
        exact[rows[known], clusters[known]] = values[rows[known]]
        rows, clusters = rows[~known], clusters[~known]
        exact[rows, clusters] = self.log_likelihoods(rows, clusters.astype(np.int32), laws)
        return exact + how.log_shares


def _summary(rows: LabelledRows) -> Summary:
    assert rows.summary is not None
    return rows.summary


def _labels(rows: LabelledRows) -> NDArray[np.int32]:
    return rows.labels


def _memberships(rows: LabelledRows) -> Floats:
    return rows.memberships
