"""Clicks without latent rankings: the matched law, additive over items, and the exact one beside.

For a user with c clicks it is the law of c of n items, drawn with weights, that has the inclusion
probabilities of the exact law (`kernels.matched`). So all that it needs of the users is how many
with c clicks clicked each item: whole numbers that add up over blocks, files and workers.
"""

import functools
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..distances.tallies import MOVES, Counts, Ranking, best_assignment
from ..engines.executors import BLOCK, Executor, Threads, blocks, is_remote
from ..kernels import matched as kernels
from ..kernels.chain import move_consensus
from ..kernels.footrule.inclusion import inclusion_logits, tagged_walk
from ..kernels.footrule.likelihood import own_log_likelihoods
from ..kernels.footrule.walks import Laws, Walks, make_walks
from ..kernels.streams import Streams
from .clicks import ClickPopulation
from .population import UNITS, Population, exact_sum

STEP = 0.1  # of log alpha between two tables
POINTS = (-2, -1, 0, 1, 2, 3)  # tables around an alpha, from which the one of an alpha is read
DIVISORS = tuple(math.prod(point - other for other in POINTS if other != point) for point in POINTS)
LOWEST = 0.003  # alpha below which the log weights are as good as proportional to it
SHARPEST = 8.0  # alpha / n_items from which they are linear in it: what is left is exp(-16)
N_BLOCKS = 8  # of rows: two cores end at the same time, and little is lost on tasks
FAR = 10.0  # a cluster whose matched log probability is so far below the best has no share

Floats = NDArray[np.float64]


class MatchedTables:
    """Log weights of the matched law, for some numbers of clicks and any alpha.

    They are made on a grid of log alpha and read between six of its points, as weights over alpha,
    which hardly bend: the error is below 2e-6, times one plus the size of the log weight. They are
    scaled so that the weights of all sets of c items sum to their number, n over c, at any alpha.
    """

    def __init__(self, n_items: int, sizes: Counts, executor: Executor | None = None):
        self.n_items, self.sizes = n_items, sizes
        self._executor = Threads(1) if executor is None or is_remote(executor) else executor
        self._tables: dict[float, Floats] = {}
        self._lock = threading.Lock()

    @functools.cached_property
    def log_binomials(self) -> Floats:
        """Log of the number of sets of each size."""
        n = self.n_items
        return np.array(
            [math.lgamma(n + 1) - math.lgamma(c + 1) - math.lgamma(n - c + 1) for c in self.sizes]
        )

    def terms(self, alpha: float) -> list[tuple[float, float]]:
        """Alphas of the grid, and with which factors their tables sum to that of an alpha."""
        sharp = SHARPEST * self.n_items
        if alpha <= LOWEST:
            return [(LOWEST, alpha / LOWEST)]
        if alpha >= sharp:
            extra = (alpha - sharp) / self.n_items
            return [(sharp, 1.0 + extra), (sharp - self.n_items, -extra)]
        place = math.log(alpha) / STEP
        first = math.floor(place + 1e-9)
        if place - first < 1e-9:
            return [(math.exp(first * STEP), 1.0)]
        factors = _lagrange(place - first)
        grid = [math.exp((first + point) * STEP) for point in POINTS]
        return [(near, factor * alpha / near) for near, factor in zip(grid, factors, strict=True)]

    def table(self, alpha: float) -> Floats:
        """``log_weights[size, rank - 1]`` at an alpha of the grid, made when it is asked for."""
        found = self._tables.get(alpha)
        if found is None:
            with self._lock:
                found = self._tables.get(alpha)
                if found is None:
                    found = self._tables[alpha] = self._make(alpha, Threads(1))
        return found

    def prepare(self, alphas: Floats, reach: int = 1) -> None:
        """Make the tables for these alphas and a few steps around, side by side; not in a task."""
        steps = STEP * np.arange(-reach, reach + 1)
        near = {
            grid
            for alpha in alphas
            for step in steps
            for grid, _ in self.terms(alpha * np.exp(step))
        }
        for grid in sorted(near - set(self._tables)):
            self._tables[grid] = self._make(grid, self._executor)

    def at(self, alpha: float) -> Floats:
        """``log_weights[size, rank - 1]`` at any alpha."""
        return np.asarray(sum(factor * self.table(grid) for grid, factor in self.terms(alpha)))

    def _make(self, alpha: float, executor: Executor) -> Floats:
        walk = tagged_walk(self.n_items, alpha / self.n_items)
        log_weights = np.empty((len(self.sizes), self.n_items))

        def make_block(part: slice) -> None:
            logits = np.empty(self.n_items)
            for place in range(part.start, part.stop):
                inclusion_logits(walk, self.sizes[place], logits)
                log_weights[place] = logits
                size, log_binomial = self.sizes[place], self.log_binomials[place]
                kernels.match_weights(logits, size, log_binomial, log_weights[place])

        size = -(-len(self.sizes) // N_BLOCKS)
        list(executor.map(make_block, blocks(len(self.sizes), max(size, 1))))
        return log_weights


def _lagrange(place: float) -> list[float]:
    """Factors of values at `POINTS` for the value at `place`, between 0 and 1 and neither.

    >>> abs(sum(f * p**5 for f, p in zip(_lagrange(0.3), POINTS, strict=True)) - 0.3**5) < 1e-12
    True
    """
    product = math.prod([place - point for point in POINTS])
    pairs = zip(POINTS, DIVISORS, strict=True)
    return [product / ((place - point) * divisor) for point, divisor in pairs]


class SizeTally:
    """``counts[size, item]`` users with so many clicks clicked the item: what the matched law needs
    of the users. Its costs depend on alpha."""

    def __init__(self, tables: MatchedTables, counts: Counts):
        self.tables, self.counts = tables, counts

    @functools.cached_property
    def is_empty(self) -> bool:
        """Is there nobody?"""
        return not self.counts.any()

    @functools.cached_property
    def n_users(self) -> Counts:
        """``n_users[size]``: so many users have so many clicks."""
        return np.asarray(self.counts.sum(axis=1) // self.tables.sizes)

    @functools.cached_property
    def log_sets(self) -> float:
        """Log of the number of ways in which all users could have clicked so many items."""
        return float((self.n_users * self.tables.log_binomials).sum())

    def __add__(self, other: "SizeTally") -> "SizeTally":
        """The users of both."""
        return SizeTally(self.tables, self.counts + other.counts)

    def costs(self, alpha: float) -> Floats:
        """``costs[item, rank - 1]``: minus the log likelihood of all users, up to a constant."""
        n_items = self.tables.n_items
        costs = np.empty((n_items, n_items))
        kernels.fill_costs(self.counts, self.tables.at(alpha), costs)
        return costs

    def best(self, alpha: float) -> Ranking:
        """The consensus of the largest matched likelihood, by linear assignment."""
        return best_assignment(self.costs(alpha))

    def curve(self, consensus: Ranking) -> "AlphaCurve":
        """The matched log likelihood as a function of alpha."""
        return AlphaCurve(self, consensus)

    def move(
        self,
        stream: NDArray[np.uint64],
        alpha: float,
        n_moves: int,
        consensus: Ranking,
        move: str = "swap",
        leap: int = 1,
    ) -> None:
        """Move a consensus in place by Metropolis proposals, which leave the matched posterior of
        an alpha as it is."""
        move_consensus(stream, self.costs(alpha), 1.0, MOVES[move], leap, n_moves, consensus)


class AlphaCurve:
    """The matched log likelihood of all users under one consensus, for any alpha."""

    def __init__(self, tally: SizeTally, consensus: Ranking):
        self._tally, self._consensus = tally, consensus
        self._constant = -tally.log_sets
        self._sums: dict[float, float] = {}

    def __call__(self, alpha: float) -> float:
        """Its value."""
        terms = self._tally.tables.terms(alpha)
        return self._constant + sum(factor * self._sum(grid) for grid, factor in terms)

    def _sum(self, grid: float) -> float:
        if grid not in self._sums:
            table = self._tally.tables.table(grid)
            value = kernels.sum_weights(self._tally.counts, self._consensus, table)
            self._sums[grid] = float(value)
        return self._sums[grid]


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
        walks: Walks = make_walks(self.alphas / n_items, n_items)
        return walks


@dataclass(frozen=True)
class Relabel:
    """How the users draw their labels anew, given the clusters.

    They propose one by the matched law, ``log_weights[size, item, cluster]`` and
    ``log_shares[cluster]``; with `laws` they accept it by the exact one. Before it the clusters
    take the order `order`. With `keeps_memberships` they add their memberships to a sum.
    """

    seed: int
    number: int
    order: Counts
    log_weights: Floats
    log_shares: Floats
    laws: ClusterLaws | None
    keeps_memberships: bool


class Summary(NamedTuple):
    """What some rows tell the centre; counts and sums are whole numbers, so they add up to the same
    bits: ``counts[cluster, size, item]`` clicks, ``sums[cluster]`` of exact log likelihoods, and
    ``log_sum``, the log likelihood with the labels summed out, matched."""

    counts: Counts
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

    tallies: list[SizeTally]
    values: list[float]
    log_likelihood: float


class MatchedUsers:
    """The users of a chain: at hand in blocks, or in shards on workers, with their labels."""

    def __init__(self, population: Population, tables: MatchedTables, n_clusters: int):
        self.population, self.tables, self.n_clusters = population, tables, n_clusters
        cut = blocks(population.n_rows, max(BLOCK, -(-population.n_rows // N_BLOCKS)))
        self._places, self._slices = population.places(cut), population.slices(cut)
        self._rows: list[Any] = [None] * len(self._places)

    def begin(self, labels: NDArray[np.int32]) -> list[SizeTally]:
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

    def _tallies(self, summaries: list[Summary]) -> list[SizeTally]:
        counts = np.sum([each.counts for each in summaries], axis=0)
        return [SizeTally(self.tables, counts[k]) for k in range(self.n_clusters)]

    def _run(self, task: Any, messages: Sequence[Any]) -> list[Summary]:
        """Run a task on all rows, which become what it makes of them."""
        executor, sizes = self.population.executor, self.tables.sizes
        work = [
            (*place, sizes, old, message)
            for place, old, message in zip(self._places, self._rows, messages, strict=True)
        ]
        if is_remote(executor):
            self._rows = [executor.submit(task, *arguments) for arguments in work]
            return list(executor.map(_summary, self._rows))
        self._rows = list(executor.map(lambda arguments: task(*arguments), work))
        return [rows.summary for rows in self._rows]

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
    sizes: Counts,
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
    sizes: Counts,
    old: LabelledRows,
    laws: ClusterLaws,
) -> LabelledRows:
    users = _Rows(population, rows, sizes, old.memberships.shape[1])
    values = users.log_likelihoods(np.arange(users.n_rows), old.labels, laws)
    summary = Summary(np.zeros((1, 1, 1), np.int64), users.sums(old.labels, values), 0)
    return replace(old, proposed=values, summary=summary)


def _relabel(
    population: ClickPopulation,
    rows: slice | None,
    sizes: Counts,
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
    population: ClickPopulation, rows: slice | None, sizes: Counts, old: LabelledRows, message: None
) -> LabelledRows:
    return replace(old, values=old.proposed)


def _compare(
    population: ClickPopulation, rows: slice | None, sizes: Counts, old: LabelledRows, how: Relabel
) -> LabelledRows:
    assert how.laws is not None
    users = _Rows(population, rows, sizes, old.memberships.shape[1])
    matched = users.matched_logs(how)
    values = users.log_likelihoods(np.arange(users.n_rows), old.labels, how.laws)
    exact = users.exact_logs(how, how.laws, matched, old.labels, values)
    both = [np.logaddexp.reduce(logs, axis=1) for logs in (exact, matched)]
    sums = [exact_sum(log_sums, users.weights) for log_sums in both]
    return replace(old, summary=Summary(np.zeros((1, 1, 1), np.int64), sums, 0))


def _remember(
    population: ClickPopulation, rows: slice | None, sizes: Counts, old: LabelledRows, sums: Floats
) -> LabelledRows:
    return replace(old, memberships=sums)


class _Rows:
    """Some rows of clicks, for one task."""

    def __init__(
        self, population: ClickPopulation, rows: slice | None, sizes: Counts, n_clusters: int
    ):
        rows = slice(0, population.n_rows) if rows is None else rows
        self._clicks = population.clicks_of_rows(rows)
        self.n_rows, self.weights = rows.stop - rows.start, population.row_weights[rows]
        self._numbers = population.row_numbers[rows]
        self._sizes, self._n_items, self._n_clusters = sizes, population.n_items, n_clusters
        self._size_places = np.searchsorted(sizes, np.diff(self._clicks.starts))

    def counted(self, new: LabelledRows, log_sum: int) -> LabelledRows:
        """The same with the counts of the clusters."""
        counts = np.zeros((self._n_clusters, len(self._sizes), self._n_items), dtype=np.int64)
        rows = (self._clicks, self._size_places, new.labels, self.weights)
        kernels.count_clicks(*rows, counts)
        return replace(new, summary=Summary(counts, self.sums(new.labels, new.values), log_sum))

    def sums(self, labels: NDArray[np.int32], values: Floats) -> list[int]:
        """Sums of log likelihoods for each cluster; 0 while they are not known."""
        known = np.where(np.isnan(values), 0.0, values)
        if self._n_clusters == 1:
            return [exact_sum(known, self.weights)]
        all_mine = (labels == label for label in range(self._n_clusters))
        return [exact_sum(known[mine], self.weights[mine]) for mine in all_mine]

    def log_likelihoods(self, rows: Counts, labels: NDArray[np.int32], laws: ClusterLaws) -> Floats:
        """Exact log likelihood of some rows, each under the law of its label."""
        values, order = np.empty(len(rows)), np.argsort(labels, kind="stable")
        pairs = (rows[order], labels[order], laws.as_laws, laws.walks)
        own_log_likelihoods(self._clicks, *pairs, values)
        values[order] = values.copy()
        return values

    def matched_logs(self, how: Relabel) -> Floats:
        """``logs[row, cluster]``: log of share times matched likelihood, up to a constant."""
        logs = np.repeat(how.log_shares[None], self.n_rows, axis=0)
        kernels.fill_logs(self._clicks, self._size_places, how.log_weights, logs)
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
