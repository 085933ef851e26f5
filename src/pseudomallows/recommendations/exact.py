"""Recommendations by exact sums over the latent rankings, from draws of the exact posterior.

A user's chances are a mean over the draws of the consensus. A new user's clicks say which of these
draws, and which clusters, are right: each counts by the probability of the clicks under it. For a
user of the fit the draws know the clicks already, so there only the clusters of a draw are weighed.

More and more of the draws are taken, until the Monte Carlo error is small.
"""

import functools
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..distances.footrule import log_partition
from ..engines.executors import Executor, blocks
from ..kernels.footrule.clicks import (
    click_log_likelihoods,
    draw_click_users,
    fill_log_likelihoods,
    next_ranks_of_laws,
    step_factors,
)
from ..kernels.footrule.matching import N_GAPS, grid_weights
from ..kernels.groups import choose_best
from ..posteriors.posterior import Posterior, common_consensus
from ..preferences.preferences import Clicks

FIRST_DRAWS = 32  # in the first round, over all chains; each round has twice as many as before
MAX_ERROR = 0.005  # of a recommended probability, unless told otherwise
LEAST_DRAWS, LEAST_BATCHES = 8.0, 3.0  # that must carry the weight for batches to tell an error
N_BATCHES = 8  # over all chains, from whose spread the error is known
LEAST_WEIGHT = 1e-3  # of the mean: what weighs less is left out, unless no error is allowed
WALK_GAPS = 16  # whose steps are tabulated for the draws of the first round
LOWEST = -1e300  # log of a weight, if no draw so far has any
MAX_LAWS = 256  # draws behind the rankings drawn for one user

Floats = NDArray[np.float64]
Add = Callable[["Round", Floats, Floats], None]


@dataclass(frozen=True)
class Round:
    """Some draws of the posterior: ``ranks[g, item]``, g counting clusters fastest."""

    ranks: NDArray[np.int32]
    alphas: Floats
    log_weights: Floats  # of the draw, times the cluster's share in it
    batches: NDArray[np.int64]

    @functools.cached_property
    def log_partitions(self) -> Floats:
        """One for each alpha."""
        n_items = self.ranks.shape[1]
        values, places = np.unique(self.alphas, return_inverse=True)
        logs = np.array([log_partition(n_items, alpha) for alpha in values.tolist()])
        return np.asarray(logs[places])

    @functools.cached_property
    def walks(self) -> tuple[NDArray[Any], ...]:
        """What the walks of the likelihoods need; see `grid_weights`."""
        n_items = self.ranks.shape[1]
        found: tuple[NDArray[Any], ...] = grid_weights(self.alphas / n_items, n_items, WALK_GAPS)
        return found


class ExactMeans:
    """Means over the draws of a posterior, for users given by their clicks, with errors."""

    def __init__(self, posterior: Posterior):
        n_chains, self.n_draws, self.n_clusters, self.n_items = posterior.consensus.shape
        self._posterior = posterior
        self._segments = max(1, min(N_BATCHES // n_chains, self.n_draws))
        self.n_batches = n_chains * self._segments
        self._factors = np.asarray(step_factors(self.n_items, N_GAPS))
        self._rounds: list[Round] = []
        self._lock = threading.Lock()

    def chances(
        self,
        starts: NDArray[np.int64],
        codes: NDArray[np.int32],
        is_new: bool,
        k: int,
        window: int,
        max_error: float,
    ) -> tuple[Floats, Floats]:
        """``chances[row, item]`` to be among the next `window`, and their errors: small enough for
        the k best of each row, if there are draws enough. Clicked items have 0."""

        def add(laws: Round, weights: Floats, sums: Floats) -> None:
            law = (laws.ranks, laws.alphas / self.n_items, laws.batches)
            next_ranks_of_laws(starts, codes, *law, window, weights, self._factors, sums)

        return self._mean(starts, codes, is_new, add, self.n_items, k, max_error)

    def memberships(
        self, starts: NDArray[np.int64], codes: NDArray[np.int32], max_error: float = MAX_ERROR
    ) -> Floats:
        """``[row, cluster]`` of new users."""
        n_rows = len(starts) - 1
        if self.n_clusters == 1:
            return np.ones((n_rows, 1))

        def add(laws: Round, weights: Floats, sums: Floats) -> None:
            by_draw = weights.reshape(n_rows, -1, self.n_clusters).transpose(1, 0, 2)
            np.add.at(sums, laws.batches[:: self.n_clusters], by_draw)

        how = (self.n_clusters, self.n_clusters, max_error)
        return self._mean(starts, codes, True, add, *how)[0]

    def laws(
        self, starts: NDArray[np.int64], codes: NDArray[np.int32], is_new: bool
    ) -> tuple[NDArray[np.int32], Floats, Floats]:
        """Consensuses, alphas, and ``weights[row, g]``, which sum to 1: of some hundred draws."""
        laws, weights, n_draws = [], [], 0
        for mine in self._all_rounds():
            laws.append(mine)
            weights.append(self._log_weights(starts, codes, is_new, mine))
            n_draws += len(mine.alphas) // self.n_clusters
            if n_draws >= MAX_LAWS:
                break
        logs = np.concatenate(weights, axis=1)
        shares = np.exp(logs - logs.max(axis=1, keepdims=True))
        return (
            np.concatenate([mine.ranks for mine in laws]),
            np.concatenate([mine.alphas for mine in laws]),
            shares / shares.sum(axis=1, keepdims=True),
        )

    def _mean(
        self,
        starts: NDArray[np.int64],
        codes: NDArray[np.int32],
        is_new: bool,
        add: Add,
        n_values: int,
        k: int,
        max_error: float,
    ) -> tuple[Floats, Floats]:
        """``means[row, value]`` and their errors, round by round.

        `add` adds to ``sums[batch, row, value]`` what the draws of a round say, by their weights.
        """
        n_rows, k = len(starts) - 1, min(k, n_values)
        sums, totals = (
            np.zeros((self.n_batches, n_rows, n_values)),
            np.zeros((self.n_batches, n_rows)),
        )
        squares, heights = np.zeros(n_rows), np.full(n_rows, LOWEST)
        means, errors = np.zeros((2, n_rows, n_values))
        is_open, few = np.ones((2, n_rows), dtype=bool)
        for laws in self._all_rounds():
            logs = np.full((n_rows, len(laws.alphas)), -np.inf)
            logs[is_open] = self._log_weights(*take_rows(starts, codes, is_open), is_new, laws)
            higher = np.maximum(heights, logs.max(axis=1))
            falls = np.exp(heights - higher)  # a draw may suit a user far better than all before
            sums, totals, squares = sums * falls[:, None], totals * falls, squares * falls**2
            heights, weights = higher, np.exp(logs - higher[:, None])
            if max_error > 0:
                weights[weights < LEAST_WEIGHT * weights.mean(axis=1, keepdims=True)] = 0.0
            add(laws, weights, sums)
            np.add.at(totals, laws.batches, weights.T)
            squares += (weights.reshape(n_rows, -1, self.n_clusters).sum(axis=2) ** 2).sum(axis=1)
            means, errors = batch_means(sums, totals)
            n_equal = effective_number(totals)
            few = (n_equal[0] ** 2 < LEAST_DRAWS * squares) | (n_equal[1] < LEAST_BATCHES)
            best = np.argpartition(means, n_values - k, axis=1)[:, n_values - k :]
            worst = np.take_along_axis(errors, best, axis=1).max(axis=1)
            is_open &= ~(worst <= max_error) | few | (max_error == 0)
            if not is_open.any():
                break
        return means, np.where(few[:, None], careful_errors(means, errors, totals, squares), errors)

    def _log_weights(
        self, starts: NDArray[np.int64], codes: NDArray[np.int32], is_new: bool, laws: Round
    ) -> Floats:
        """``logs[row, g]`` of a round: for new users with the probability of their clicks, for
        users of the fit with their memberships in each draw."""
        logs = np.empty((len(starts) - 1, len(laws.alphas)))
        if self.n_clusters == 1 and not is_new:
            logs[:] = laws.log_weights
            return logs
        if laws is self._rounds[0]:
            law = (laws.ranks, laws.alphas / self.n_items, laws.log_partitions, laws.walks)
            fill_log_likelihoods(starts, codes, *law, logs)
            logs += laws.log_weights
        else:  # rarely needed: nothing is kept for them
            values = np.empty(len(logs))
            for g, (ranks, alpha) in enumerate(zip(laws.ranks, laws.alphas, strict=True)):
                law_of_one = (ranks, alpha / self.n_items, laws.log_partitions[g])
                click_log_likelihoods(starts, codes, *law_of_one, values)
                logs[:, g] = values + laws.log_weights[g]
        if not is_new:
            by_draw = logs.reshape(len(logs), -1, self.n_clusters)
            all_clusters = np.logaddexp.reduce(by_draw, axis=2, keepdims=True)
            weights = np.exp(laws.log_weights.reshape(-1, self.n_clusters)).sum(axis=1)
            by_draw -= np.where(np.isfinite(all_clusters), all_clusters, 0.0)
            by_draw += logs_of(weights)[:, None]
        return logs

    def _all_rounds(self) -> Iterator[Round]:
        """Made when they are needed, and kept."""
        order, n_chains = spread(self.n_draws), len(self._posterior.consensus)
        number, first = 0, 0
        while first < self.n_draws:
            last = min(max(2 * first, -(-FIRST_DRAWS // n_chains)), self.n_draws)
            with self._lock:
                if number == len(self._rounds):
                    self._rounds.append(self._make_round(order[first:last]))
            yield self._rounds[number]
            first, number = last, number + 1

    def _make_round(self, draws: NDArray[np.int64]) -> Round:
        posterior = self._posterior
        n_chains, n_laws = len(posterior.consensus), len(draws) * self.n_clusters
        shares = posterior.weights[:, draws, None] * posterior.shares[:, draws]
        segments = draws * self._segments // self.n_draws
        batches = np.arange(n_chains)[:, None] * self._segments + segments
        return Round(
            np.ascontiguousarray(posterior.consensus[:, draws].reshape(-1, self.n_items)),
            np.ascontiguousarray(posterior.alpha[:, draws]).reshape(-1),
            logs_of(shares).reshape(n_chains * n_laws),
            np.repeat(batches.reshape(-1), self.n_clusters),
        )


def batch_means(sums: Floats, totals: Floats) -> tuple[Floats, Floats]:
    """Means of weighted sums over all batches, and errors, from how the batches differ.

    ``sums[batch, row, value]`` are sums of weights times values, ``totals[batch, row]`` of weights.

    >>> means, errors = batch_means(np.array([[[3.0]], [[1.0]]]), np.array([[1.0], [1.0]]))
    >>> float(means[0, 0]), float(errors[0, 0])
    (2.0, 1.0)
    """
    n_batches, total = len(sums), np.full(sums.shape[1:], 1e-300)
    means, squares = np.zeros((2, *sums.shape[1:]))
    for mine, weight in zip(sums, totals, strict=True):  # one by one: the same bits for any rows
        means += mine
        total += weight[:, None]
    means /= total
    for mine, weight in zip(sums, totals, strict=True):
        squares += (mine - weight[:, None] * means) ** 2
    scale = n_batches / (n_batches - 1) if n_batches > 1 else np.nan
    return means, np.sqrt(scale * squares) / total


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


def take_rows(
    starts: NDArray[np.int64], codes: NDArray[np.int32], chosen: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The clicks of some rows."""
    if chosen.all():
        return starts, codes
    sizes = np.diff(starts)
    kept = codes[starts[0] : starts[-1]][np.repeat(chosen, sizes)]
    return np.append(0, np.cumsum(sizes[chosen])), kept


def logs_of(weights: Floats) -> Floats:
    """Logs; -inf for 0."""
    with np.errstate(divide="ignore"):
        return np.log(weights)


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


class ExactRecommender:
    """The best items by exact means."""

    def __init__(self, posterior: Posterior):
        self.means, self.n_items = ExactMeans(posterior), posterior.n_items
        self._memberships = posterior.chain_memberships
        self.consensus = common_consensus(posterior)
        self.codes = {name: code for code, name in enumerate(posterior.items.tolist())}

    def begin(
        self,
        seen: Clicks,
        rows: NDArray[np.int64] | None,
        window: int,
        by: str,
        executor: Executor,
    ) -> Callable[[slice], Floats]:
        """What fills the chances of all items."""
        is_new = rows is None

        def fill(part: slice) -> Floats:
            starts = seen.starts[part.start : part.stop + 1]
            if by == "draws":
                return self._draw(part.start, starts, seen.codes, is_new, window)
            return self.means.chances(starts, seen.codes, is_new, window, window, MAX_ERROR)[0]

        return fill

    def _draw(
        self,
        first: int,
        starts: NDArray[np.int64],
        codes: NDArray[np.int32],
        is_new: bool,
        k: int,
    ) -> Floats:
        """The chances of some users, from number `first` on, by counting draws."""
        ranks, alphas, weights = self.means.laws(starts, codes, is_new)
        numbers, n_clicks = first + np.arange(len(weights)), np.diff(starts)
        partners, counts = np.full(self.n_items, -1), np.zeros((2, self.n_items, self.n_items), int)
        kept = np.zeros((len(weights), self.n_items), dtype=np.int32)
        chances = np.zeros((len(weights), self.n_items))
        for g, alpha in enumerate(alphas):
            users = (0, g, numbers, starts, codes, np.ones_like(numbers))
            draw_click_users(*users, ranks[g], alpha / self.n_items, partners, *counts, kept)
            hits = (kept > n_clicks[:, None]) & (kept <= n_clicks[:, None] + k)
            chances += weights[:, g, None] * hits
        return chances

    def begin_best(
        self,
        seen: Clicks,
        rows: NDArray[np.int64] | None,
        k: int,
        window: int,
        executor: Executor,
        max_error: float,
    ) -> Callable[..., None]:
        """What fills the k best items, and the errors of their chances."""

        def fill(part: slice, items: NDArray[np.int64], chances: Floats, errors: Floats) -> None:
            mine = (seen.starts[part.start : part.stop + 1], seen.codes)
            table, spread = self.means.chances(*mine, rows is None, k, window, max_error)
            choose_best(*mine, table, self.consensus, items, chances)
            known = items >= 0
            errors[known] = np.take_along_axis(spread, np.maximum(items, 0), axis=1)[known]

        return fill

    def best(
        self, codes: NDArray[np.int32], row: int | None, window: int
    ) -> tuple[list[int], list[float], list[float]]:
        """The same for one user; and memberships."""
        starts = np.array([0, len(codes)])
        items, chances = np.full((1, window), -1, dtype=np.int64), np.full((1, window), np.nan)
        if len(codes) < self.n_items:
            how = (row is None, window, window, MAX_ERROR)
            table, _ = self.means.chances(starts, codes, *how)
            choose_best(starts, codes, table, self.consensus, items, chances)
        if row is None:
            memberships = self.means.memberships(starts, codes)[0]
        else:
            memberships = self._memberships[:, row].mean(axis=0, dtype=np.float64)
        return items[0].tolist(), chances[0].tolist(), memberships.tolist()

    def memberships_of(self, seen: Clicks, executor: Executor) -> Floats:
        """``[user, cluster]`` of new users."""

        def work(part: slice) -> Floats:
            return self.means.memberships(seen.starts[part.start : part.stop + 1], seen.codes)

        parts = list(executor.map(work, blocks(seen.n_users)))
        return np.concatenate([np.empty((0, self.means.n_clusters)), *parts])

    def draw_ranks(
        self, seen: Clicks, rows: NDArray[np.int64] | None, n_draws: int, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """``counts[item, rank - 1]`` of rankings drawn for one user."""
        ranks, alphas, weights = self.means.laws(seen.starts, seen.codes, rows is None)
        return draw_ranks_of(seen.codes, ranks, alphas / self.n_items, weights[0], n_draws, rng)

    def prepare_size(self, n_clicks: int, window: int) -> None:
        """There are no tables."""

    def is_ready(self, n_clicks: int, window: int) -> bool:
        """There are no tables to wait for."""
        return True

    def table_bytes(self) -> int:
        """There are none."""
        return 0

    def drop_tables(self, window: int) -> None:
        """There are none."""


def draw_ranks_of(
    codes: NDArray[np.int32],
    ranks: NDArray[np.int32],
    lams: Floats,
    weights: Floats,
    n_draws: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """``counts[item, rank - 1]`` of rankings of one user, drawn exactly from a mixture of laws."""
    n_items = ranks.shape[1]
    counts = np.zeros((2, n_items, n_items), dtype=np.int64)
    numbers, user = rng.multinomial(n_draws, weights), np.zeros(1, dtype=np.int64)
    seed, none = int(rng.integers(2**63)), np.empty((0, n_items), dtype=np.int32)
    partners, starts = np.full(n_items, -1), np.array([0, len(codes)])
    for g in np.flatnonzero(numbers).tolist():
        who = (seed, g, user, starts, codes, numbers[g : g + 1])
        draw_click_users(*who, ranks[g], lams[g], partners, *counts, none)
    return np.asarray(counts[0])
