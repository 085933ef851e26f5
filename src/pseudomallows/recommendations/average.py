"""Recommendations by means over the draws of an exact posterior, for users known by their clicks.

A user's probabilities are a mean over the draws of the consensus. A new user's clicks say which of
these draws, and which clusters, are right: each counts by the probability of the clicks under it.
For a user of the fit the draws know the clicks already, so there only the clusters of a draw are
weighed.

More and more of the draws are taken, until the Monte Carlo error is small: where the draws hardly
differ, as in fits of very many users, the first few do.
"""

import functools
import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..engines.executors import Executor, blocks
from ..kernels.click_rows import ClickRows
from ..kernels.footrule.click_likelihood import own_log_likelihoods
from ..kernels.footrule.next_ranks import Ahead, next_ranks_of_laws
from ..kernels.footrule.recursions import Laws, Recursions, make_recursions
from ..laws.own_laws import draw_ranks_of
from ..posterior.posterior import Posterior, common_consensus
from .recommender import MAX_ERROR, Floats, NextItems, Recommender, Users, logs_of

# In the first round, over all chains. Half as many may happen to be all alike: errors of small fits
# were then twice those stated; with twice as many they were no smaller.
FIRST_DRAWS = 16
LEAST_MEMBERSHIP = 1e-5  # of a user in a cluster: less adds nothing that the error would show
MORE_EXACT = 10  # unclicked items of a consensus, besides k, that have no approximate probability

Add = Callable[["Round", ClickRows, Floats, "RunningMeans"], None]


@dataclass(frozen=True)
class Round:
    """Some draws of the posterior: ``laws.ranks[g, item]``, g counting clusters fastest."""

    laws: Laws
    batches: NDArray[np.int64]  # in which the laws count
    alphas: Floats
    log_weights: Floats  # of the draw, times the cluster's share in it
    rates: Floats  # of the recursions
    kept_recursions: Recursions | None

    @property
    def recursions(self) -> Recursions:
        """What the recursions of the laws share."""
        if self.kept_recursions is not None:
            return self.kept_recursions
        return make_recursions(self.rates, self.laws.ranks.shape[1])


@dataclass
class RunningMeans:
    """What some rows have of the draws so far: ``sums[batch, row, value]`` of weights times values,
    ``totals[batch, row]`` of weights, ``squares[row]`` of the draws' weights. All weights are
    relative to the largest so far, whose log is ``heights[row]``."""

    sums: Floats
    totals: Floats
    squares: Floats
    heights: Floats

    @staticmethod
    def of_nothing(n_batches: int, n_rows: int, n_values: int) -> "RunningMeans":
        """Before the first draw."""
        sums, totals = np.zeros((n_batches, n_rows, n_values)), np.zeros((n_batches, n_rows))
        return RunningMeans(sums, totals, np.zeros(n_rows), np.full(n_rows, -1e300))

    def weigh(self, logs: Floats) -> Floats:
        """``weights[row, g]`` of more draws; a draw may suit a user far better than all before."""
        higher = np.maximum(self.heights, logs.max(axis=1))
        falls = np.exp(self.heights - higher)
        if (falls < 1).any():
            self.sums *= falls[:, None]
            self.totals *= falls
            self.squares *= falls**2
        self.heights = higher
        return np.asarray(np.exp(logs - higher[:, None]))

    def count(self, weights: Floats, batches: NDArray[np.int64], n_clusters: int) -> None:
        """Add the weights of draws."""
        np.add.at(self.totals, batches, weights.T)
        by_draw = weights.reshape(len(weights), -1, n_clusters).sum(axis=2)
        self.squares += (by_draw**2).sum(axis=1)

    def means(self, k: int) -> tuple[Floats, Floats, Floats]:
        """``means[row, value]``, their errors, and how large those of the k largest means may be:
        twice the worst, if it is known badly, or infinite, where few draws carry the weight."""
        means, errors, worst = batch_means(self.sums, self.totals, min(k, self.sums.shape[2]))
        total, n_batches = effective_number(self.totals)
        few = (total**2 < 3 * self.squares) | (n_batches < 3)  # by their effective size
        worst[total**2 < 6 * self.squares] *= 2
        if few.any():
            careful = careful_errors(means, errors, self.totals, self.squares)
            errors[few], worst[few] = careful[few], np.inf
        return means, errors, worst

    def take(self, rows: NDArray[np.bool_]) -> "RunningMeans":
        """That of some rows."""
        own = self.squares[rows], self.heights[rows]
        return RunningMeans(self.sums[:, rows], self.totals[:, rows], *own)


class ExactMeans:
    """Means over the draws of a posterior, for users given by their clicks, with errors."""

    def __init__(self, posterior: Posterior):
        self._consensus, self._alpha = posterior.consensus, posterior.alpha
        self._weights = posterior.weights[:, :, None] * posterior.shares
        self.n_chains, self.n_draws, self.n_clusters, self.n_items = posterior.consensus.shape
        self._segments = max(1, min(8 // self.n_chains, self.n_draws))  # 8 batches of all chains
        self.n_batches = self.n_chains * self._segments
        self._rounds: list[Round] = []
        self._kept_bytes, self._lock = 0, threading.Lock()

    def probabilities(
        self, clicks: ClickRows, known: Floats | None, k: int, window: int, max_error: float
    ) -> tuple[Floats, Floats]:
        """``probabilities[row, item]`` to be among the next `window`, and their errors: small
        enough for the k best of each row, if there are draws enough. Clicked items have 0.

        `known` are the memberships of users of the fit; None for new ones.
        """
        ahead = Ahead(window, k + MORE_EXACT if max_error > 0 else self.n_items)

        def add(drawn: Round, mine: ClickRows, weights: Floats, tally: RunningMeans) -> None:
            next_ranks_of_laws(
                mine, drawn.laws, ahead, weights, drawn.recursions, drawn.batches, tally.sums
            )

        return self._mean(clicks, known, add, self.n_items, k, max_error)

    def by_cluster(
        self, clicks: ClickRows, known: Floats | None, k: int, window: int
    ) -> tuple[Floats, Floats]:
        """``[cluster]`` and ``[cluster, item]``, for one row and more than one cluster: how much
        each counts, and its part in the probabilities, from the same draws as `probabilities`."""
        ahead = Ahead(window, k + MORE_EXACT)
        # with the log of what weights are relative to
        trail: list[tuple[Round, Floats, float]] = []

        def add(drawn: Round, mine: ClickRows, weights: Floats, tally: RunningMeans) -> None:
            next_ranks_of_laws(
                mine, drawn.laws, ahead, weights, drawn.recursions, drawn.batches, tally.sums
            )
            trail.append((drawn, weights, float(tally.heights[0])))

        self._mean(clicks, known, add, self.n_items, k, MAX_ERROR)
        shares, sums = np.zeros(self.n_clusters), np.zeros((self.n_clusters, 1, self.n_items))
        for drawn, weights, height in trail:
            scaled = weights * math.exp(height - trail[-1][2])
            clusters = np.arange(scaled.shape[1]) % self.n_clusters
            next_ranks_of_laws(clicks, drawn.laws, ahead, scaled, drawn.recursions, clusters, sums)
            shares += scaled.reshape(-1, self.n_clusters).sum(axis=0)
        return shares / shares.sum(), sums[:, 0] / shares.sum()

    def memberships(self, clicks: ClickRows) -> Floats:
        """``[row, cluster]`` of new users."""
        n_rows = len(clicks.starts) - 1
        if self.n_clusters == 1:
            return np.ones((n_rows, 1))

        def add(drawn: Round, mine: ClickRows, weights: Floats, tally: RunningMeans) -> None:
            by_draw = weights.reshape(len(weights), -1, self.n_clusters).transpose(1, 0, 2)
            np.add.at(tally.sums, drawn.batches[:: self.n_clusters], by_draw)

        return self._mean(clicks, None, add, self.n_clusters, self.n_clusters, MAX_ERROR)[0]

    def mixture(self, clicks: ClickRows, is_new: bool) -> tuple[NDArray[np.int32], Floats, Floats]:
        """Some hundred draws as a mixture for each row: ``ranks[g, item]``, ``alphas[g]``, and
        ``weights[row, g]``, which sum to 1."""
        rounds, log_weights, n_draws = [], [], 0
        wanted = np.ones((len(clicks.starts) - 1, self.n_clusters), dtype=bool)
        for drawn in self._all_rounds():
            rounds.append(drawn)
            log_weights.append(self._log_weights(clicks, is_new, drawn, wanted))
            n_draws += len(drawn.alphas) // self.n_clusters
            if n_draws >= 256:
                break
        logs = np.concatenate(log_weights, axis=1)
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        return (
            np.concatenate([drawn.laws.ranks for drawn in rounds]),
            np.concatenate([drawn.alphas for drawn in rounds]),
            weights / weights.sum(axis=1, keepdims=True),
        )

    def _mean(
        self,
        clicks: ClickRows,
        known: Floats | None,
        add: Add,
        n_values: int,
        k: int,
        max_error: float,
    ) -> tuple[Floats, Floats]:
        """``means[row, value]`` and their errors, round by round, until they are small.

        `add` adds to ``sums[batch, row, value]`` of the tally what the draws of a round say, by
        their weights.
        """
        n_rows, is_new = len(clicks.starts) - 1, known is None
        means, errors = np.zeros((2, n_rows, n_values))
        left, tally = np.arange(n_rows), RunningMeans.of_nothing(self.n_batches, n_rows, n_values)
        wanted = np.ones((n_rows, self.n_clusters), dtype=bool)
        if known is not None and max_error > 0:
            wanted = known >= LEAST_MEMBERSHIP
        for drawn in self._all_rounds():
            weights = tally.weigh(self._log_weights(clicks, is_new, drawn, wanted))
            if max_error > 0:
                weights[weights < 1e-3 * weights.mean(axis=1, keepdims=True)] = 0.0
                wanted = wanted & self._has_members(weights) if is_new else wanted
            add(drawn, clicks, weights, tally)
            tally.count(weights, drawn.batches, self.n_clusters)
            means[left], errors[left], worst = tally.means(k)
            is_open = ~(worst <= max_error) | (max_error == 0)
            if not is_open.any():
                break
            if not is_open.all():
                left, wanted, tally = left[is_open], wanted[is_open], tally.take(is_open)
                clicks = take_rows(clicks, is_open)
        return means, errors

    def _has_members(self, weights: Floats) -> NDArray[np.bool_]:
        """``[row, cluster]``: does the cluster count in any of the draws?"""
        by_draw = weights.reshape(len(weights), -1, self.n_clusters)
        shares = by_draw.sum(axis=1) / np.maximum(by_draw.sum(axis=(1, 2)), 1e-300)[:, None]
        is_unknown = by_draw.sum(axis=(1, 2)) == 0  # no draw so far has any weight
        return np.asarray((shares >= LEAST_MEMBERSHIP) | is_unknown[:, None])

    def _log_weights(
        self, clicks: ClickRows, is_new: bool, drawn: Round, wanted: NDArray[np.bool_]
    ) -> Floats:
        """``logs[row, g]`` of a round: for new users with the probability of their clicks, for
        users of the fit with their memberships in each draw; only the `wanted` clusters count."""
        logs = np.empty((len(clicks.starts) - 1, len(drawn.alphas)))
        if self.n_clusters == 1 and not is_new:
            logs[:] = drawn.log_weights
            return logs
        logs.fill(-np.inf)
        numbers, rows = np.nonzero(np.tile(wanted.T, (logs.shape[1] // self.n_clusters, 1)))
        likelihoods = np.empty(len(rows))
        own_log_likelihoods(clicks, rows, numbers, drawn.laws, drawn.recursions, likelihoods)
        logs[rows, numbers] = likelihoods + drawn.log_weights[numbers]
        if not is_new:
            by_draw = logs.reshape(len(logs), -1, self.n_clusters)
            all_clusters = np.logaddexp.reduce(by_draw, axis=2, keepdims=True)
            weights = np.exp(drawn.log_weights.reshape(-1, self.n_clusters)).sum(axis=1)
            by_draw -= np.where(np.isfinite(all_clusters), all_clusters, 0.0)
            by_draw += logs_of(weights)[:, None]
        return logs

    def _all_rounds(self) -> Iterator[Round]:
        """Each has as many draws as all before it; made when they are needed, and kept."""
        order, number, first = spread(self.n_draws), 0, 0
        while first < self.n_draws:
            last = max(min(2 * first, first + self._most_draws), -(-FIRST_DRAWS // self.n_chains))
            last = min(last, self.n_draws)
            with self._lock:
                if number == len(self._rounds):
                    self._rounds.append(self._make_round(order[first:last]))
            yield self._rounds[number]
            first, number = last, number + 1

    @functools.cached_property
    def _most_draws(self) -> int:
        """Draws of each chain in a round, whose recursions must have room."""
        flattest = make_recursions(np.array([self._alpha.min() / self.n_items]), self.n_items)
        of_a_draw = flattest.tails.nbytes * self.n_clusters * self.n_chains
        return max(1, 2**25 // of_a_draw)

    def _make_round(self, draws: NDArray[np.int64]) -> Round:
        segments = draws * self._segments // self.n_draws
        batches = np.arange(self.n_chains)[:, None] * self._segments + segments
        alphas = np.ascontiguousarray(self._alpha[:, draws]).reshape(-1)
        rates, numbers = np.unique(alphas / self.n_items, return_inverse=True)
        ranks = np.ascontiguousarray(self._consensus[:, draws].reshape(-1, self.n_items))
        of_laws = np.repeat(batches.reshape(-1), self.n_clusters)
        laws = Laws(ranks, numbers.reshape(-1))
        recursions = None
        if self._kept_bytes < 2**27:
            recursions = make_recursions(rates, self.n_items)
            self._kept_bytes += recursions.tails.nbytes
        return Round(
            laws, of_laws, alphas, logs_of(self._weights[:, draws]).reshape(-1), rates, recursions
        )


class ExactRecommender(Recommender):
    """The best items by exact means over draws of the exact posterior."""

    def __init__(self, posterior: Posterior):
        super().__init__(posterior.items, common_consensus(posterior), posterior.chain_memberships)
        self.means = ExactMeans(posterior)

    def probabilities(
        self, users: Users, k: int, window: int, max_error: float, executor: Executor
    ) -> NextItems:
        """As many draws as the error wants."""

        def table(part: slice) -> tuple[Floats, Floats]:
            known = None if users.rows is None else self._known(users.rows[part])
            return self.means.probabilities(users.block(part), known, k, window, max_error)

        return NextItems(
            users, self.consensus, table, functools.partial(self.memberships, users, executor)
        )

    def cluster_probabilities(
        self, users: Users, k: int, window: int, executor: Executor
    ) -> tuple[Floats, Floats]:
        """From the same draws as `probabilities`."""
        known = None if users.rows is None else self._known(users.rows)
        return self.means.by_cluster(users.block(slice(0, 1)), known, k, window)

    def _known(self, rows: NDArray[np.int64]) -> Floats:
        """``[row, cluster]``: memberships of users of the fit, in the chain where they are most."""
        return np.asarray(self.chain_memberships[:, rows].max(axis=0))

    def new_memberships(self, users: Users, executor: Executor) -> Floats:
        """By the exact probability of the clicks under each draw and cluster."""

        def work(part: slice) -> Floats:
            return self.means.memberships(users.block(part))

        parts = list(executor.map(work, blocks(users.clicks.n_users)))
        return np.concatenate([np.empty((0, self.means.n_clusters)), *parts])

    def draw_ranks(self, users: Users, n_draws: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """``counts[item, rank - 1]`` of rankings drawn for one user."""
        clicks = users.block(slice(0, 1))
        ranks, alphas, weights = self.means.mixture(clicks, users.is_new)
        return draw_ranks_of(clicks.codes, ranks, alphas / self.n_items, weights[0], n_draws, rng)


def batch_means(sums: Floats, totals: Floats, k: int) -> tuple[Floats, Floats, Floats]:
    """``means[row, value]`` of ``sums[batch, row, value]``, of weights times values, over
    ``totals[batch, row]``, of weights; their errors, from how the batches differ; and the largest
    error of the k largest means of each row."""
    means, squares = np.zeros((2, *sums.shape[1:]))
    for batch in sums:  # one by one, so that a row has the same bits whichever rows are with it
        means += batch
    total = effective_number(totals)[0][:, None]
    means /= total
    for batch, weights in zip(sums, totals, strict=True):
        squares += (batch - weights[:, None] * means) ** 2
    n_used = (totals > 0).sum(axis=0)[:, None]
    scale = np.where(n_used > 1, n_used / np.maximum(n_used - 1.0, 1.0), np.nan)
    errors = np.sqrt(scale * squares) / total
    least = np.partition(means, -k, axis=1)[:, -k, None]
    return means, errors, np.where(means >= least, errors, 0.0).max(axis=1)


def effective_number(totals: Floats) -> tuple[Floats, Floats]:
    """Weight of all batches of each row, and how many equal batches these are worth."""
    total, squares = np.full(totals.shape[1], 1e-300), np.full(totals.shape[1], 1e-300)
    for weight in totals:
        total += weight
        squares += weight**2
    return total, total**2 / squares


def careful_errors(means: Floats, errors: Floats, totals: Floats, squares: Floats) -> Floats:
    """Errors where few draws carry the weight, so that batches cannot tell them: those of so many
    independent yes or no answers as the draws are worth, if that is more."""
    n_draws = effective_number(totals)[0] ** 2 / np.maximum(squares, 1e-300)
    spreads = np.sqrt(np.clip(means * (1 - means), 0.0, 1.0) / np.maximum(n_draws, 1.0)[:, None])
    return np.fmax(errors, spreads)


def take_rows(clicks: ClickRows, chosen: NDArray[np.bool_]) -> ClickRows:
    """The clicks of some rows."""
    if chosen.all():
        return clicks
    starts, codes = clicks
    sizes = np.diff(starts)
    chosen_codes = codes[starts[0] : starts[-1]][np.repeat(chosen, sizes)]
    return ClickRows(np.append(0, np.cumsum(sizes[chosen])), chosen_codes)


def spread(number: int) -> NDArray[np.int64]:
    """The numbers below `number`, in an order whose beginnings are evenly spread.

    >>> spread(6).tolist()
    [0, 4, 2, 1, 5, 3]
    """
    n_bits = max(number - 1, 0).bit_length()
    numbers = np.arange(1 << n_bits)
    flipped = sum(((numbers >> bit) & 1) << (n_bits - 1 - bit) for bit in range(n_bits))
    order = np.broadcast_to(np.asarray(flipped, dtype=np.int64), numbers.shape)
    return order[order < number]
