"""Clicks: a user's clicked items take the first ranks, in an order that is not known.

By the footrule they are blocks, see `block_laws`. By Kendall's distance everything is exact, in
time that goes with the clicks, and nothing is of the size of items times items: see
`kernels.kendall.click_sums`.
"""

import functools
from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np

from ..distances import FOOTRULE, KENDALL, Distance
from ..distances.tallies import Proposals, Stream, ranking_of
from ..engines.executors import Executor, is_remote
from ..kernels import block_counts
from ..kernels.click_rows import ClickRows, slice_clicks
from ..kernels.footrule.click_likelihood import own_log_likelihoods
from ..kernels.footrule.latent_clicks import draw_click_users
from ..kernels.footrule.recursions import Laws, Recursions, make_recursions
from ..kernels.kendall import click_sums as kernels
from ..kernels.kendall.next_items import RATIO
from ..kernels.streams import Streams
from ..preferences import Clicks
from ..rankings import orderings_of
from .block_laws import BlockLaw, BlockTables, block_logs
from .law import (
    Clusters,
    ClusterTally,
    Counts,
    Curve,
    Floats,
    Labels,
    Law,
    Ranking,
    UserRows,
    check_informative,
    cut_rows,
    principal_components,
)
from .shards import ShardedClicks

# Of swaps at all scales in a sweep, by Kendall's distance: by 2 with 200,000 items, and by 6 with
# 50,000, ranks in successive draws are uncorrelated (docs/measurements.md).
LEAST_ROUNDS, MOST_ROUNDS = 2, 6
ROOMY = 300_000  # items times rounds, beyond which the rounds take most of a sweep


class ClickUsers(UserRows):
    """Some rows of clicks; ``size_places[row]`` is the place of their number among `sizes`."""

    def __init__(self, clicks: ClickRows, sizes: Counts, weights: Counts, numbers: Counts):
        self.clicks, self.sizes, self.weights, self.numbers = clicks, sizes, weights, numbers
        self.size_places = np.searchsorted(sizes, np.diff(clicks.starts))


class ClickLaw(Law):
    """Clicks, at hand or on workers."""

    rows: type[ClickUsers]
    usual_distance: Distance

    def __init__(
        self, prefs: Clicks, executor: Executor | None = None, sizes: Counts | None = None
    ):
        is_informative = prefs.is_informative
        check_informative(is_informative)
        clicks = prefs if is_informative.all() else prefs.take(is_informative)
        self.everyone, self.informative = prefs, clicks
        self.sizes = np.unique(clicks.n_clicks) if sizes is None else sizes
        if isinstance(clicks, ShardedClicks):
            executor, cut = clicks.executor, clicks.cut
            blocks = clicks.blocks(self.rows, self.sizes)
        else:
            numbers = np.cumsum(clicks.weights) - clicks.weights
            cut = cut_rows(clicks.n_users)
            blocks = [
                self.rows(slice_clicks(clicks, c), self.sizes, clicks.weights[c], numbers[c])
                for c in cut
            ]
        weights = [clicks.weights[c] for c in cut]
        super().__init__(prefs.n_items, self.usual_distance, blocks, weights, executor)

    @functools.cached_property
    def mean_ranks(self) -> Floats:
        """Most clicked, rank 1."""
        return -self.informative.item_counts().astype(np.float64)

    def features(self, n_features: int) -> Floats:
        """Leading axes of the clicks, each user's scaled to length 1."""
        from scipy.sparse import csr_array

        clicks = self.informative
        values = np.repeat(1 / np.sqrt(clicks.n_clicks), clicks.n_clicks)
        table = csr_array((values, clicks.codes, clicks.starts), shape=(self.n_rows, self.n_items))
        return principal_components(table, n_features)

    def select(self, rows: Counts) -> Self:
        """The law of some rows, brought here, with tables for the same numbers of clicks."""
        executor = None if is_remote(self.executor) else self.executor
        return type(self)(self.informative.take(rows), executor, self.sizes)

    def rankings_of(self, rows: Counts, order: Floats) -> Ranking:
        """Clicked items first, both parts by `order`."""
        return click_rankings(self.informative.take(rows), order)

    def rows_of(self, users: Counts) -> ClickUsers:
        some = self.everyone.take(users)
        return self.rows(ClickRows(some.starts, some.codes), self.sizes, some.weights, users)


def click_rankings(clicks: Clicks, order: Floats) -> Ranking:
    """Full rankings of users of clicks: the clicked items first, both parts by `order`.

    >>> from pseudomallows import Preferences
    >>> click_rankings(Preferences.from_clicks([[0, 0, 1], [1, 0, 1]]), np.array([2.0, 3.0, 1.0]))
    array([[2, 3, 1],
           [2, 3, 1]], dtype=int32)
    """
    rankings = np.empty((clicks.n_users, clicks.n_items), dtype=np.int32)
    for row, ranking in enumerate(rankings):
        is_last = np.ones(clicks.n_items, dtype=np.bool_)
        is_last[clicks.clicks_of(row)] = False
        ranking[np.lexsort((order, is_last))] = np.arange(1, clicks.n_items + 1)
    return rankings


# By the footrule


class ClickTables(NamedTuple):
    """The exact law of clusters of clicks: what the sums along the items share."""

    consensus: Ranking
    recursions: Recursions


class ClickBlockRows(ClickUsers):
    """By the footrule."""

    def log_likelihoods(self, tables: BlockTables) -> Floats:
        logs = np.tile(tables.offset, (self.n_rows, 1))
        block_counts.add_click_logs(self.clicks, self.size_places, tables.log_weights, logs)
        return logs

    def exact(self, tables: ClickTables, rows: Counts, labels: Labels) -> Floats:
        values, order = np.empty(len(rows)), np.argsort(labels, kind="stable")
        laws = Laws(tables.consensus, np.arange(len(tables.consensus)))
        pairs = (rows[order], labels[order])
        own_log_likelihoods(self.clicks, *pairs, laws, tables.recursions, values)
        result = np.empty_like(values)
        result[order] = values
        return result

    def count(self, labels: Labels, shape: tuple[int, ...]) -> Counts:
        """``counts[cluster, size, item]`` of clicks."""
        counts = np.zeros(shape, dtype=np.int64)
        block_counts.count_clicks(self.clicks, self.size_places, labels, self.weights, counts)
        return counts

    def draw(self, streams: Streams, consensus: Ranking, alpha: float) -> Ranking:
        n_items = len(consensus)
        drawn = np.zeros((self.n_rows, n_items), dtype=np.int32)
        counts = np.zeros((n_items, n_items), dtype=np.int64)
        draw_click_users(streams, self.clicks, consensus, alpha / n_items, counts, drawn)
        return drawn

    def count_latent(
        self, consensus: Ranking, alpha: float, seed: int, number: int, weights: Counts
    ) -> Counts:
        """``counts[item, rank - 1]`` of latent rankings, drawn exactly, one of each user."""
        n_items = len(consensus)
        counts = np.zeros((n_items, n_items), dtype=np.int64)
        streams = Streams(seed, number, self.numbers, weights)
        nobody, rate = np.empty((0, n_items), dtype=np.int32), alpha / n_items
        draw_click_users(streams, self.clicks, consensus, rate, counts, nobody)
        return counts


class ClickBlocks(ClickLaw, BlockLaw):
    """Clicks by the footrule: the clicked items share the first ranks, the others the rest.

    A user is listed by the clicked items alone: the sum of the others' weights over all items is
    the same for every consensus.
    """

    rows, usual_distance = ClickBlockRows, FOOTRULE

    @property
    def count_shape(self) -> tuple[int, ...]:
        return len(self.sizes), self.n_items

    def make_table(self, alpha: float) -> Floats:
        """``log_weights[size, rank - 1]`` of a clicked item against one that is not."""
        n_items, sizes = self.n_items, self.sizes
        probabilities = FOOTRULE.rank_probabilities(n_items, alpha)
        first = np.cumsum(probabilities, axis=1)[:, sizes - 1].T
        rest = np.cumsum(probabilities[:, ::-1], axis=1)[:, ::-1][:, sizes].T
        clicked = block_logs(first, rest, sizes)
        others = block_logs(rest, first, n_items - sizes)
        return np.asarray(clicked - others + (others.sum(axis=1) / sizes)[:, None])

    def exact_tables(self, clusters: Clusters) -> ClickTables:
        return ClickTables(
            clusters.consensus, make_recursions(clusters.alpha / self.n_items, self.n_items)
        )


# By Kendall's distance


class KendallTables(NamedTuple):
    """The clusters, and ``logs[cluster][c, 0]`` of the Gaussian binomials of n over c."""

    clusters: Clusters
    log_binomials: list[Floats]


class KendallClickRows(ClickUsers):
    """By Kendall's distance."""

    def log_likelihoods(self, tables: KendallTables) -> Floats:
        consensus, alphas = tables.clusters
        rates, columns = alphas / consensus.shape[1], []
        for cluster, logs in enumerate(tables.log_binomials):
            values, mine = np.empty((self.n_rows, 1)), slice(cluster, cluster + 1)
            kernels.kendall_log_likelihoods(self.clicks, consensus[mine], rates[mine], logs, values)
            columns.append(values)
        return np.concatenate(columns, axis=1)

    def count(self, labels: Labels, shape: tuple[int, ...]) -> Counts:
        """``counts[cluster, item]`` of clicks, then ``[cluster, size]`` of users."""
        counts, n_sizes = np.zeros(shape, dtype=np.int64), len(self.sizes)
        n_clicks = np.diff(self.clicks.starts)
        owners = np.repeat(np.arange(self.n_rows), n_clicks)
        codes = self.clicks.codes[self.clicks.starts[0] : self.clicks.starts[-1]]
        np.add.at(counts, (labels[owners], codes), self.weights[owners])
        np.add.at(counts, (labels, shape[1] - n_sizes + self.size_places), self.weights)
        return counts

    def draw(self, streams: Streams, consensus: Ranking, alpha: float) -> Ranking:
        rankings = np.zeros((self.n_rows, len(consensus)), dtype=np.int32)
        law, none = (orderings_of(consensus), alpha / len(consensus)), np.empty((0, 0), np.int64)
        kernels.draw_kendall_users(streams, self.clicks, *law, none, rankings)
        return rankings


class KendallClickTally(ClusterTally):
    """``counts[item]`` clicks, and ``n_sizes[place]`` users with so many clicks."""

    def __init__(self, law: "KendallClicks", counts: Counts, n_sizes: Counts, n_users: int):
        self.law, self.counts, self.n_sizes, self.n_users = law, counts, n_sizes, n_users

    def curve(self, consensus: Ranking) -> Curve:
        n_items, sizes = self.law.n_items, self.law.sizes
        total = int(kernels.sum_of_ranks(self.counts, consensus))

        def value(alpha: float) -> float:
            rate = alpha / n_items
            constant = kernels.kendall_constant(n_items, rate, sizes, self.n_sizes)
            return float(constant - rate * total)

        return value

    def move(
        self, stream: Stream, alpha: float, moves: Proposals, consensus: Ranking, beta: float = 1.0
    ) -> None:
        """Swaps of places at all scales, so many of them or so."""
        n_items = self.law.n_items
        n_passes = max(1, round(2 * moves.number / n_items))
        kernels.mix_consensus(stream, self.counts, beta * alpha / n_items, n_passes, consensus)

    def best(self, alpha: float) -> Ranking:
        """The items in the order of the numbers of clicks."""
        return ranking_of(np.argsort(-self.counts, kind="stable"))

    def evidence(self, alpha: float) -> Counts:
        return self.counts


class KendallClicks(ClickLaw):
    """Clicks by Kendall's distance: users are summed up by their numbers."""

    rows, usual_distance = KendallClickRows, KENDALL

    def __init__(
        self, prefs: Clicks, executor: Executor | None = None, sizes: Counts | None = None
    ):
        super().__init__(prefs, executor, sizes)
        n_rounds = min(MOST_ROUNDS, max(LEAST_ROUNDS, ROOMY // self.n_items))
        self.n_moves = n_rounds * self.n_items * kernels.n_scales(self.n_items) // 2

    @property
    def count_shape(self) -> tuple[int, ...]:
        return (self.n_items + len(self.sizes),)

    def of_items(self, items: Counts) -> "KendallClicks":
        """The clicks on these items alone, of the rows that have some and not all."""
        places = np.full(self.n_items, -1, dtype=np.int32)
        places[items] = np.arange(len(items))
        clicks = self.informative
        codes = places[clicks.codes]
        starts = np.concatenate([[0], np.cumsum(codes >= 0)])[clicks.starts]
        kept = replace(
            clicks, items=clicks.items[items], starts=starts, codes=codes[codes >= 0], times=None
        )
        sizes = np.diff(starts)
        return KendallClicks(kept.take((sizes > 0) & (sizes < len(items))), self.executor)

    def tables(self, clusters: Clusters) -> KendallTables:
        largest = int(self.sizes.max(initial=0))
        logs = [log_binomials(self.n_items, alpha, largest) for alpha in clusters.alpha.tolist()]
        return KendallTables(clusters, [each[:, None] for each in logs])

    @property
    def evidence_shape(self) -> tuple[int, ...]:
        return (self.n_items,)

    def best_of(self, evidence: Floats, draws: Ranking) -> Ranking:
        """The items by their mean numbers of clicks; ties by a draw, which is to say at random."""
        return ranking_of(np.lexsort((draws[-1], -evidence)))

    def tally(self, counts: Counts, n_users: int, cluster: int = 0) -> KendallClickTally:
        return KendallClickTally(self, counts[: self.n_items], counts[self.n_items :], n_users)


def log_binomials(n_items: int, alpha: float, largest: int) -> Floats:
    """``[c]``: log of the Gaussian binomial of n_items over c, at exp(-alpha / n_items).

    >>> np.exp(log_binomials(4, 0.0, 4)).round(6)
    array([1., 4., 6., 4., 1.])
    """
    values = np.empty(largest + 1)
    kernels.log_gaussian_binomials(n_items, alpha / n_items, values)
    return values


def far_places(n_top: int, n_items: int) -> Counts:
    """The places, from the last one tabulated on, at which probabilities further down are known.

    >>> far_places(100, 110).tolist()
    [99, 103, 107, 111]
    """
    places = [n_top - 1]
    while places[-1] < n_items:
        places.append(max(places[-1] + 1, round(places[-1] * RATIO)))
    return np.array(places, dtype=np.int64)
