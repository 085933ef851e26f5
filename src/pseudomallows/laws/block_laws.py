"""Users who say of some items that they share some ranks, no more: rankings with gaps, top-k lists,
ties; and clicks, whose clicked items share the first ranks.

The probability of a user's blocks is a permanent: a sum over all rankings that agree with them,
exact in time items^2 (`kernels.footrule.matching`). Nearly the same, and additive over
items, is, for an item of consensus rank x in a block of m ranks,

    g(x) = log beta(x) + log(1 - beta(x)),    beta(x) = P(an item of rank x is in the block) / m,

plus a constant: the Bethe approximation of a permanent read backwards (Vontobel 2013; Chertkov and
Yedidia 2013), with beta from the exact rank probabilities. The constant of a block is

    log m! - m * (sum over x of log(1 - beta(x))).

A chain moves on these costs, which need no visit to the users, and is made exact by one correction
(a surrogate transition: Liu 2001). `anchor` lets the two agree at one consensus for every alpha.
"""

import functools
import math
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Rankings
from ..data.ties import block_sizes
from ..distances.distance import Distance, PriceDistance
from ..distances.footrule import FOOTRULE
from ..distances.tallies import MOVES, Counts, Proposals, Ranking, Stream, best_assignment
from ..engines.executors import Executor
from ..kernels import block_counts as kernels
from ..kernels.block_sums import draw_hamming_latent, hamming_log_likelihoods
from ..kernels.click_rows import ranks_of_clicks
from ..kernels.costs import count_ranks
from ..kernels.footrule.click_likelihood import own_log_likelihoods
from ..kernels.footrule.latent_blocks import draw_latent, log_likelihoods
from ..kernels.footrule.recursions import Laws, Recursions, make_recursions
from ..kernels.moves import move_consensus
from ..kernels.streams import Streams
from .law import (
    ClickLaw,
    ClickUsers,
    Clusters,
    ClusterTally,
    Curve,
    Floats,
    Labels,
    Law,
    RankedLaw,
    UserRows,
    open_ranks,
)

STEP = 0.1  # of log alpha between two tables: between six of them a user errs by 4e-6 at most
POINTS = (-2, -1, 0, 1, 2, 3)  # tables around an alpha, from which the one of an alpha is read
DIVISORS = [math.prod(point - other for other in POINTS if other != point) for point in POINTS]
ROUNDING = 1e-9  # of a place of the grid: far above that of a logarithm, far below any difference
# alpha below which all rankings are as good as equally likely: the standard deviation of alpha / n
# times the footrule, alpha sqrt(2 n / 45), is 0.0006 sqrt(n)
LOWEST = 0.003
SHARPEST = 8.0  # alpha / n_items from which logs are linear in it: what is left is exp(-16)
# Of 200,000 users, one row of 49 for the anchor moved the mean of alpha by 0.16 of its standard
# deviation, one of 6 by less than can be seen; of a million these are one of 15.
ANCHOR_ROWS = 2**16
NEVER = 1e-300  # a probability below any that a float has


class BlockTables(NamedTuple):
    """``log_weights[block, item, cluster]``, and the ``offset[cluster]`` of each user."""

    log_weights: Floats
    offset: Floats


class BlockTally(ClusterTally):
    """``counts[block, item]`` users have an item in a block."""

    def __init__(self, law: "BlockLaw", counts: Counts, n_users: int, cluster: int):
        self.law, self.counts, self.n_users, self.cluster = law, counts, n_users, cluster
        self._costs: dict[float, Floats] = {}

    def curve(self, consensus: Ranking) -> Curve:
        law, values, consensus = self.law, dict[int, float](), consensus.copy()

        def at(grid: int) -> float:
            if grid not in values:
                total = kernels.sum_weights(self.counts, consensus, law.table(grid))
                values[grid] = total + self.n_users * law.offset(grid, self.cluster)
            return values[grid]

        return lambda alpha: sum(factor * at(grid) for grid, factor in law.terms(alpha))

    def costs(self, alpha: float) -> Floats:
        """``costs[item, rank - 1]``: minus the log weight, over all users, of that choice."""
        if alpha not in self._costs:
            costs = np.zeros((self.law.n_items, self.law.n_items))
            kernels.fill_costs(self.counts, self.law.log_weights(alpha), costs)
            self._costs = {alpha: costs}
        return self._costs[alpha]

    def move(
        self, stream: Stream, alpha: float, moves: Proposals, consensus: Ranking, beta: float = 1.0
    ) -> None:
        code = MOVES[moves.kind or "swap"]
        costs = self.costs(alpha)
        move_consensus(stream, costs, beta, code, moves.leap, moves.number, consensus)

    def best(self, alpha: float) -> Ranking:
        """The likeliest consensus by the additive law, by linear assignment."""
        return best_assignment(self.costs(alpha))

    def evidence(self, alpha: float) -> Floats:
        return self.costs(alpha)


class BlockLaw(Law):
    """Blocks by the footrule, or by Hamming's distance: tables of the additive law for any alpha,
    read between those of a grid of log alpha."""

    is_exact = False
    how_latent = "summed out"

    def __init__(
        self,
        n_items: int,
        distance: Distance,
        blocks: Sequence[Any],
        weights: Sequence[Counts],
        executor: Executor | None,
    ):
        super().__init__(n_items, distance, blocks, weights, executor)
        self._tables: dict[int, Floats] = {}
        self._offsets: dict[int, Floats] = {}  # of each cluster
        self._anchor: tuple[Clusters, Labels | None, Law, list[Any]] | None = None
        self._lock = threading.RLock()
        self._latest: tuple[float, Floats] | None = None

    def make_table(self, alpha: float) -> Floats:
        """``log_weights[block, rank - 1]`` of the additive law at an alpha."""
        raise NotImplementedError

    def terms(self, alpha: float) -> list[tuple[int, float]]:
        """Places of the grid, whose alphas are exp(STEP * place), and with which factors their
        tables sum to that of an alpha."""
        if alpha <= LOWEST:
            return [(math.ceil(math.log(LOWEST) / STEP), 1.0)]
        if alpha >= SHARPEST * self.n_items:
            last = math.ceil(math.log(SHARPEST * self.n_items) / STEP)
            low, high = math.exp(STEP * (last - 1)), math.exp(STEP * last)
            extra = (alpha - high) / (high - low)
            return [(last, 1.0 + extra), (last - 1, -extra)]
        place = math.log(alpha) / STEP
        if abs(place - round(place)) < ROUNDING:  # a climb steps from place to place
            return [(round(place), 1.0)]
        first = math.floor(place)
        return [(first - 2 + k, factor) for k, factor in enumerate(lagrange(place - first))]

    def table(self, grid: int) -> Floats:
        """The table at a place of the grid, made when it is asked for."""
        table = self._tables.get(grid)
        if table is None:
            with self._lock:
                table = self._tables.get(grid)
                if table is None:
                    table = self._tables[grid] = self.make_table(math.exp(STEP * grid))
        return table

    def log_weights(self, alpha: float) -> Floats:
        """``[block, rank - 1]`` at any alpha."""
        latest = self._latest
        if latest is not None and latest[0] == alpha:
            return latest[1]
        table = sum(factor * self.table(grid) for grid, factor in self.terms(alpha))
        self._latest = alpha, np.asarray(table)
        return np.asarray(table)

    def anchor(self, clusters: Clusters, labels: Labels | None) -> None:
        """Let the additive law agree with the exact one at these clusters, over the users, or over
        some of many, one of so many rows."""
        self._anchor, self._offsets, users = None, {}, self
        step = self.n_rows // ANCHOR_ROWS
        if step > 1 and (self.row_weights == 1).all():
            users = self.select(np.arange(0, self.n_rows, step))
            labels = None if labels is None else labels[::step]
        self._anchor = (clusters, labels, users, users.tallies(labels, clusters.n_clusters))

    def offset(self, grid: int, cluster: int = 0) -> float:
        """Exact minus additive log likelihood at the anchor, a user of the cluster, at a place of
        the grid."""
        if self._anchor is None:
            return 0.0
        offsets = self._offsets.get(grid)
        if offsets is None:
            with self._lock:
                offsets = self._offsets.get(grid)
                if offsets is None:
                    offsets = self._offsets[grid] = self._find_offsets(grid)
        return float(offsets[cluster])

    def _find_offsets(self, grid: int) -> Floats:
        assert self._anchor is not None
        clusters, labels, users, tallies = self._anchor
        there = clusters._replace(alpha=np.full(clusters.n_clusters, math.exp(STEP * grid)))
        table = self.table(grid)
        additive = [
            kernels.sum_weights(tally.counts, consensus, table)
            for tally, consensus in zip(tallies, clusters.consensus, strict=True)
        ]
        sums = users.weigh(there, labels) - np.array(additive)
        sizes = np.array([tally.n_users for tally in tallies])
        return np.where(sizes > 0, sums / np.maximum(sizes, 1), sums.sum() / users.n_users)

    def tables(self, clusters: Clusters) -> BlockTables:
        """The additive law of each cluster, by item."""
        weights = np.stack(
            [
                self.log_weights(alpha)[:, consensus - 1]
                for consensus, alpha in zip(
                    clusters.consensus, clusters.alpha.tolist(), strict=True
                )
            ],
            axis=2,
        )
        offsets = [
            sum(factor * self.offset(grid, cluster) for grid, factor in self.terms(alpha))
            for cluster, alpha in enumerate(clusters.alpha.tolist())
        ]
        return BlockTables(weights, np.array(offsets))

    @property
    def evidence_shape(self) -> tuple[int, ...]:
        return self.n_items, self.n_items

    def best_of(self, evidence: Floats, draws: Ranking) -> Ranking:
        return best_assignment(evidence)

    def tally(self, counts: Counts, n_users: int, cluster: int = 0) -> BlockTally:
        return BlockTally(self, counts, n_users, cluster)


def lagrange(x: float) -> list[float]:
    """With which factors values at `POINTS` give that at x, between 0 and 1.

    >>> [round(factor, 4) for factor in lagrange(0.5)]
    [0.0117, -0.0977, 0.5859, 0.5859, -0.0977, 0.0117]
    """
    gaps = [x - point for point in POINTS]
    if 0.0 in gaps:
        return [float(gap == 0.0) for gap in gaps]
    whole = math.prod(gaps)
    return [whole / (gap * divisor) for gap, divisor in zip(gaps, DIVISORS, strict=True)]


def block_logs(sums: Floats, others: Floats, sizes: Counts) -> Floats:
    """``[block, rank - 1]``: g(x) and the block's constant, a part with each of its items.

    ``sums[block, rank - 1]`` is P(an item of this rank has a rank in the block), `others` one minus
    that, to all digits.
    """
    from scipy.special import gammaln

    m = sizes[:, None].astype(np.float64)
    log_rest = np.log(np.maximum((m - 1 + others) / m, NEVER))
    constants = gammaln(m + 1) / m - log_rest.sum(axis=1, keepdims=True)
    return np.asarray(np.log(np.maximum(sums / m, NEVER)) + log_rest + constants)


class BlockRows(UserRows):
    """Some rows of rankings; ``blocks[row, item]`` is the number of the item's block."""

    def __init__(
        self,
        rankings: Ranking,
        blocks: Ranking,
        weights: Counts,
        numbers: Counts,
        distance: Distance,
    ):
        self.rankings, self.item_blocks, self.distance = rankings, blocks, distance
        self.weights, self.numbers = weights, numbers

    def log_likelihoods(self, tables: BlockTables) -> Floats:
        logs = np.tile(tables.offset, (self.n_rows, 1))
        kernels.add_block_logs(self.item_blocks, tables.log_weights, logs)
        return logs

    def exact(self, tables: Clusters, rows: Counts, labels: Labels) -> Floats:
        values = np.empty(len(rows))
        for label in np.unique(labels).tolist():
            mine = labels == label
            chosen = self.rankings if len(rows) == mine.sum() == self.n_rows else None
            rankings = self.rankings[rows[mine]] if chosen is None else chosen
            consensus, alpha = tables.consensus[label], float(tables.alpha[label])
            values[mine] = ranking_log_likelihoods(rankings, consensus, alpha, self.distance)
        return values

    def count(self, labels: Labels, shape: tuple[int, ...]) -> Counts:
        """``counts[cluster, block, item]``."""
        counts = np.zeros(shape, dtype=np.int64)
        kernels.count_blocks(self.item_blocks, labels, self.weights, counts)
        return counts

    def draw(self, streams: Streams, consensus: Ranking, alpha: float) -> Ranking:
        latent, rate = self.rankings.copy(), alpha / len(consensus)
        if self.distance.name == "hamming":
            draw_hamming_latent(streams, self.rankings, consensus, rate, latent)
        else:
            counts = np.zeros((len(consensus), len(consensus)), dtype=np.int64)
            draw_latent(streams, self.rankings, consensus, rate, counts, latent)
        return latent

    def count_latent(
        self, consensus: Ranking, alpha: float, seed: int, number: int, weights: Counts
    ) -> Counts:
        """``counts[item, rank - 1]`` of latent rankings, drawn exactly, one of each user."""
        n_items = len(consensus)
        counts = np.zeros((n_items, n_items), dtype=np.int64)
        if self.distance.name == "hamming":  # whose kernel draws one user of each row
            rows = np.repeat(np.arange(self.n_rows), weights)
            ones, latent = np.ones(len(rows), dtype=np.int64), self.rankings[rows]
            firsts = np.repeat(self.numbers - (np.cumsum(weights) - weights), weights)
            streams = Streams(seed, number, np.arange(len(rows)) + firsts, ones)
            draw_hamming_latent(streams, self.rankings[rows], consensus, alpha / n_items, latent)
            count_ranks(latent, ones, counts)
            return counts
        streams = Streams(seed, number, self.numbers, weights)
        nobody, rate = np.empty((0, n_items), dtype=np.int32), alpha / n_items
        draw_latent(streams, self.rankings, consensus, rate, counts, nobody)
        is_known = (self.rankings > 0) & (block_sizes(self.rankings) == 1)
        rows, items = np.nonzero(is_known)  # nothing is drawn for these
        np.add.at(counts, (items, self.rankings[rows, items] - 1), weights[rows])
        return counts


class RankedBlocks(RankedLaw, BlockLaw):
    """Rankings with gaps, top-k lists and ties; full rows among them are exact."""

    def __init__(
        self, prefs: Rankings, executor: Executor | None = None, distance: Distance | None = None
    ):
        super().__init__(prefs, executor, FOOTRULE if distance is None else distance)

    @functools.cached_property
    def _numbered(self) -> tuple[NDArray[np.bool_], Ranking]:
        return number_blocks(self.informative.rankings, self.informative.is_row_full)

    def make_rows(self, rows: slice, weights: Counts, numbers: Counts) -> BlockRows:
        rankings, (_, blocks) = self.rankings[rows], self._numbered
        return BlockRows(rankings, blocks[rows], weights, numbers, self.distance)

    def rows_of(self, users: Counts) -> BlockRows:
        some = self.everyone.take(users)
        return BlockRows(some.rankings, some.rankings, some.weights, users, self.distance)

    @property
    def count_shape(self) -> tuple[int, ...]:
        return self._numbered[0].shape

    def make_table(self, alpha: float) -> Floats:
        """First the ranks of rows that are full, which are exact; then the blocks of the others."""
        n_items, distance, masks = self.n_items, self.distance, self._numbered[0]
        n_full = n_items if self.informative.is_row_full.any() else 0
        assert isinstance(distance, PriceDistance)
        constant = distance.log_partition(n_items, alpha) / n_items
        full = -alpha / n_items * distance.prices(n_items)[:n_full] - constant
        masks = masks[n_full:].astype(np.float64)
        probabilities = distance.rank_probabilities(n_items, alpha)
        sizes = masks.sum(axis=1).astype(np.int64)
        logs = block_logs(masks @ probabilities.T, (1 - masks) @ probabilities.T, sizes)
        return np.concatenate([full, logs])

    def exact_tables(self, clusters: Clusters) -> Clusters:
        """The clusters as they are; their partition functions are remembered."""
        for alpha in clusters.alpha.tolist():
            self.distance.log_partition(self.n_items, alpha)
        return clusters


def ranking_log_likelihoods(
    rankings: Ranking, consensus: Ranking, alpha: float, distance: Distance
) -> Floats:
    """Log probability of each row of rankings, full, partial or tied; exact."""
    values, n_items = np.empty(len(rankings)), len(consensus)
    log_partition = distance.log_partition(n_items, alpha)
    kernel = hamming_log_likelihoods if distance.name == "hamming" else log_likelihoods
    kernel(rankings, consensus, alpha / n_items, log_partition, values)
    return values


def number_blocks(
    rankings: Ranking, is_full: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], Ranking]:
    """``masks[block, rank - 1]``, the ranks of each block, and ``blocks[row, item]``.

    If some rows are full, the first blocks, as many as there are items, are their ranks.

    >>> masks, blocks = number_blocks(np.array([[1, 0, 0], [1, 2, 3]]), np.array([False, True]))
    >>> masks[3:].astype(int).tolist(), blocks.tolist()
    ([[1, 0, 0], [0, 1, 1]], [[3, 4, 4], [0, 1, 2]])
    """
    n_items = rankings.shape[1]
    sizes, blocks = block_sizes(rankings), (rankings - 1).astype(np.int32)
    is_tie = (rankings > 0) & ~is_full[:, None]
    keys = rankings.astype(np.int64) * (n_items + 1) + sizes
    known, places = np.unique(keys[is_tie], return_inverse=True)
    n_full = n_items if is_full.any() else 0
    blocks[is_tie] = n_full + places
    firsts, lengths = np.divmod(known, n_items + 1)
    ranks = np.arange(1, n_items + 1)
    ties = (ranks >= firsts[:, None]) & (ranks < (firsts + lengths)[:, None])
    # items without a rank share what is left: the ranks of no tie of their row
    rows = np.flatnonzero((rankings == 0).any(axis=1))
    left, owners = np.unique(open_ranks(rankings[rows]), axis=0, return_inverse=True)
    missing = rankings[rows] == 0
    owned = np.broadcast_to(owners.reshape(-1, 1), missing.shape)
    blocks[rows] = np.where(missing, n_full + len(ties) + owned, blocks[rows])
    full = np.eye(n_items, dtype=np.bool_)[:n_full]
    return np.concatenate([full, ties, left.reshape(-1, n_items)]), blocks


# Clicks


class ClickTables(NamedTuple):
    """The exact law of clusters of clicks: what the sums along the items share."""

    consensus: Ranking
    recursions: Recursions


class ClickBlockRows(ClickUsers):
    """By the footrule."""

    def log_likelihoods(self, tables: BlockTables) -> Floats:
        logs = np.tile(tables.offset, (self.n_rows, 1))
        kernels.add_click_logs(self.clicks, self.size_places, tables.log_weights, logs)
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
        kernels.count_clicks(self.clicks, self.size_places, labels, self.weights, counts)
        return counts

    def draw(self, streams: Streams, consensus: Ranking, alpha: float) -> Ranking:
        return self._as_rankings(len(consensus)).draw(streams, consensus, alpha)

    def count_latent(
        self, consensus: Ranking, alpha: float, seed: int, number: int, weights: Counts
    ) -> Counts:
        """``counts[item, rank - 1]`` of latent rankings, drawn exactly, one of each user."""
        rankings = self._as_rankings(len(consensus))
        return rankings.count_latent(consensus, alpha, seed, number, weights)

    def _as_rankings(self, n_items: int) -> BlockRows:
        ranks = ranks_of_clicks(self.clicks, n_items)
        return BlockRows(ranks, ranks, self.weights, self.numbers, FOOTRULE)


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
