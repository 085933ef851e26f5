"""Recommendations from clicks under Cayley's and Hamming's distance: closed forms, see
`kernels.latent.halves`.

The chances of a user are the mean over draws and clusters. A new user's clicks weigh them by their
exact probability; for a user of the fit, who is in the draws already, they weigh the clusters of
each draw. More draws are taken until the Monte Carlo error is small.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...distances.halves import KINDS
from ...engines.executors import Executor, blocks
from ...engines.memory import as_size
from ...kernels.click_rows import ClickRows, slice_clicks
from ...kernels.latent import halves as kernels
from ...kernels.streams import Streams
from ...latent.halves import draw_half_rankings
from ...posteriors.posterior import Posterior, common_consensus
from .chances import MAX_ERROR, Chances, Floats, Recommender, Users
from .exact import are_next
from .exact_means import FIRST_DRAWS, N_BATCHES, Tally, logs_of, spread, take_rows

MOST_LAWS = 256  # clusters of draws in a round
ROOM = 2**22  # chances at hand: rows times laws times items
MOST_BYTES = 2**27  # of the tables that are kept
MOST_COUNTED = 20_000  # items whose ranks are counted


@dataclass(frozen=True)
class Round:
    """Some draws: ``ranks[g, item]``, g counting clusters fastest, and the batch of each."""

    number: int
    ranks: NDArray[np.int32]
    lams: Floats
    log_weights: Floats
    batches: NDArray[np.int64]


class HalvesRecommender(Recommender):
    """The mean over draws, round by round."""

    def __init__(self, posterior: Posterior):
        super().__init__(posterior.items, common_consensus(posterior), posterior.chain_memberships)
        self._distance = posterior.settings["distance"]
        self._consensus, self._alpha = posterior.consensus, posterior.alpha
        self._weights = posterior.weights[:, :, None] * posterior.shares
        self.n_clusters = posterior.n_clusters
        n_chains, n_draws = posterior.weights.shape
        self._segments = max(1, min(N_BATCHES // n_chains, n_draws))
        self.n_batches = n_chains * self._segments
        self._rounds = list(self._make_rounds())
        self._tables: dict[tuple[int, int], Floats] = {}  # by round and number of clicks

    def _make_rounds(self) -> Iterator[Round]:
        n_chains, n_draws, n_clusters, n_items = self._consensus.shape
        order, n_segments = spread(n_draws), self._segments
        step = max(1, min(FIRST_DRAWS, MOST_LAWS // n_clusters) // n_chains)
        for number, first in enumerate(range(0, n_draws, step)):
            draws = order[first : first + step]
            batches = np.arange(n_chains)[:, None] * n_segments + draws * n_segments // n_draws
            yield Round(
                number,
                np.ascontiguousarray(self._consensus[:, draws].reshape(-1, n_items)),
                self._alpha[:, draws].reshape(-1) / n_items,
                logs_of(self._weights[:, draws]).reshape(-1),
                np.repeat(batches.reshape(-1), n_clusters),
            )

    # Chances

    def chances(
        self, users: Users, k: int, window: int, max_error: float, executor: Executor
    ) -> Chances:
        """As many draws as the error wants."""

        def table(part: slice) -> tuple[Floats, Floats]:
            return self._means(users.block(part), users.is_new, k, window, max_error)

        memberships = functools.partial(self.memberships, users, executor)
        return Chances(users, self.consensus, table, memberships)

    def cluster_chances(
        self, users: Users, k: int, window: int, executor: Executor
    ) -> tuple[Floats, Floats]:
        """From the same draws as `chances`."""
        trail: list[tuple[Floats, Floats, float]] = []
        self._mean(users.block(slice(0, 1)), users.is_new, k, window, MAX_ERROR, trail)
        shares, parts = np.zeros(self.n_clusters), np.zeros((self.n_clusters, self.n_items))
        for weights, chances, height in trail:
            scaled = (weights * np.exp(height - trail[-1][2])).reshape(-1, self.n_clusters)
            shares += scaled.sum(axis=0)
            by_cluster = chances.reshape(*scaled.shape, self.n_items)
            parts += np.einsum("dc,dci->ci", scaled, by_cluster)
        return shares / shares.sum(), parts / shares.sum()

    def new_memberships(self, users: Users, executor: Executor) -> Floats:
        """By the exact probability of the clicks under each draw and cluster."""

        def work(part: slice) -> Floats:
            return self._means(users.block(part), True, self.n_clusters, None, MAX_ERROR)[0]

        parts = list(executor.map(work, blocks(users.clicks.n_users)))
        return np.concatenate([np.empty((0, self.n_clusters)), *parts])

    def _means(
        self, clicks: ClickRows, is_new: bool, k: int, window: int | None, max_error: float
    ) -> tuple[Floats, Floats]:
        """Means and errors of some rows, as many at a time as there is room for."""
        n_rows, n_laws = len(clicks.starts) - 1, len(self._rounds[0].lams)
        size = max(1, ROOM // (n_laws * self.n_items))
        found = [
            self._mean(slice_clicks(clicks, part), is_new, k, window, max_error)
            for part in blocks(n_rows, size)
        ]
        empty = np.empty((0, self.n_clusters if window is None else self.n_items))
        means, errors = zip((empty, empty), *found, strict=True)
        return np.concatenate(means), np.concatenate(errors)

    def _mean(
        self,
        clicks: ClickRows,
        is_new: bool,
        k: int,
        window: int | None,
        max_error: float,
        trail: list[tuple[Floats, Floats, float]] | None = None,
    ) -> tuple[Floats, Floats]:
        """``means[row, item]`` and their errors; without a window, ``means[row, cluster]``."""
        n_rows = len(clicks.starts) - 1
        n_values = self.n_clusters if window is None else self.n_items
        means, errors = np.zeros((2, n_rows, n_values))
        left, tally = np.arange(n_rows), Tally.of_nothing(self.n_batches, n_rows, n_values)
        for drawn in self._rounds:
            logs, values = self._visit(drawn, clicks, window or 1)
            if window is None:
                one = np.tile(np.eye(self.n_clusters), (logs.shape[1] // self.n_clusters, 1))
                values = np.broadcast_to(one, (len(logs), *one.shape))
            weights = tally.weigh(self._weigh(logs, drawn, is_new))
            np.add.at(tally.sums, drawn.batches, (weights[:, :, None] * values).swapaxes(0, 1))
            tally.count(weights, drawn.batches, self.n_clusters)
            if trail is not None:
                trail.append((weights[0], values[0], float(tally.heights[0])))
            means[left], errors[left], worst = tally.means(k)
            is_open = ~(worst <= max_error) | (max_error == 0)
            if not is_open.any():
                break
            if not is_open.all():
                left, tally, clicks = left[is_open], tally.take(is_open), take_rows(clicks, is_open)
        return means, errors

    def _visit(self, drawn: Round, clicks: ClickRows, window: int) -> tuple[Floats, Floats]:
        """``logs[row, g]`` of the probability of the clicks, and ``chances[row, g, item]``."""
        sizes = np.diff(clicks.starts)
        logs = np.empty((len(sizes), len(drawn.lams)))
        chances = np.empty((*logs.shape, self.n_items))
        for size in np.unique(sizes).tolist():
            laws = kernels.HalfLaws(drawn.ranks, self._table(drawn, size))
            rows = np.flatnonzero(sizes == size)
            kernels.half_chances(clicks, rows, laws, window, logs, chances)
        return logs, chances

    def _table(self, drawn: Round, n_clicks: int) -> Floats:
        """``[g, b, value]``, for all who have that many clicks; kept, if there is room."""
        found = self._tables.get((drawn.number, n_clicks))
        if found is None:
            n_lines = min(n_clicks, self.n_items - n_clicks) + 1
            found = np.empty((len(drawn.lams), n_lines, kernels.N_VALUES))
            for g, lam in enumerate(drawn.lams.tolist()):
                kernels.fill_half_table(
                    KINDS[self._distance], lam, self.n_items, n_clicks, found[g]
                )
            if self.table_bytes() + found.nbytes <= MOST_BYTES:
                self._tables[drawn.number, n_clicks] = found
        return found

    def _weigh(self, logs: Floats, drawn: Round, is_new: bool) -> Floats:
        """Log weights: of new users by all their clicks say, of others by what they say about the
        clusters of a draw."""
        logs = logs + drawn.log_weights
        if is_new:
            return logs
        by_draw = logs.reshape(len(logs), -1, self.n_clusters)
        of_draw = np.logaddexp.reduce(drawn.log_weights.reshape(-1, self.n_clusters), axis=1)
        told = np.logaddexp.reduce(by_draw, axis=2)
        scaled = by_draw + (of_draw - np.where(np.isfinite(told), told, 0.0))[:, :, None]
        return np.asarray(scaled.reshape(logs.shape))

    # Draws

    def counted_chances(self, users: Users, window: int, executor: Executor) -> Chances:
        """From one ranking of each user for each draw and cluster."""

        def table(part: slice) -> tuple[Floats, None]:
            clicks, n_rows = users.block(part), part.stop - part.start
            weights, n_clicks = self._all_weights(clicks, users.is_new), np.diff(clicks.starts)
            numbers, found = part.start + np.arange(n_rows), np.zeros((n_rows, self.n_items))
            for g, (ranks, lam) in enumerate(self._all_laws()):
                streams = Streams(0, g, numbers, np.ones_like(numbers))
                drawn = draw_half_rankings(self._distance, streams, clicks, ranks, lam)
                found += weights[:, g, None] * are_next(drawn, n_clicks, window)
            return found, None

        memberships = functools.partial(self.memberships, users, executor)
        return Chances(users, self.consensus, table, memberships)

    def draw_ranks(self, users: Users, n_draws: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """``counts[item, rank - 1]`` of rankings drawn for one user."""
        check_countable(self.n_items)
        clicks, codes = users.block(slice(0, 1)), users.clicks.codes
        weights = self._all_weights(clicks, users.is_new)[0]
        numbers, seed = rng.multinomial(n_draws, weights / weights.sum()), int(rng.integers(2**63))
        counts, items = np.zeros((self.n_items, self.n_items), np.int64), np.arange(self.n_items)
        for g, (ranks, lam) in enumerate(self._all_laws()):
            each = np.arange(numbers[g])
            starts = np.arange(numbers[g] + 1) * len(codes)
            rows = ClickRows(starts, np.tile(codes, numbers[g]))
            streams = Streams(seed, g, each, np.ones_like(each))
            drawn = draw_half_rankings(self._distance, streams, rows, ranks, lam)
            np.add.at(counts, (items, drawn - 1), 1)
        return counts

    def _all_laws(self) -> Iterator[tuple[Any, float]]:
        """The consensus and lam of each draw and cluster."""
        for drawn in self._rounds:
            yield from zip(drawn.ranks, drawn.lams.tolist(), strict=True)

    def _all_weights(self, clicks: ClickRows, is_new: bool) -> Floats:
        """``weights[row, g]`` of all draws, which sum to 1."""
        logs = np.concatenate(
            [self._weigh(self._visit(each, clicks, 1)[0], each, is_new) for each in self._rounds],
            axis=1,
        )
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    # Tables

    def table_bytes(self) -> int:
        """Memory of the tables; they serve all windows."""
        return sum(table.nbytes for table in list(self._tables.values()))


def check_countable(n_items: int) -> None:
    """Refuse to count the ranks of too many items."""
    if n_items > MOST_COUNTED:
        raise ValueError(
            f"ranks of {n_items:,} items are not counted, as that would take "
            f"{as_size(8 * n_items**2)} of memory: pm.recommend has the best items"
        )
