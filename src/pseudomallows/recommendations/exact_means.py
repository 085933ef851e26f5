"""Means over the draws of an exact posterior, for users who are known by their clicks.

A user's chances are a mean over the draws of the consensus. A new user's clicks say which of these
draws, and which clusters, are right: each counts by the probability of the clicks under it. For a
user of the fit the draws know the clicks already, so there only the clusters of a draw are weighed.

More and more of the draws are taken, until the Monte Carlo error is small.
"""

import functools
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..distances.footrule import log_partition
from ..kernels.click_rows import ClickRows
from ..kernels.footrule.clicks import (
    Laws,
    click_log_likelihoods,
    fill_log_likelihoods,
    next_ranks_of_laws,
    step_factors,
)
from ..kernels.footrule.matching import N_GAPS, Walks, grid_weights
from ..posteriors.posterior import Posterior
from .chances import MAX_ERROR, Floats

FIRST_DRAWS = 32  # in the first round, over all chains; each round has twice as many as before
LEAST_DRAWS, LEAST_BATCHES = 8.0, 3.0  # that must carry the weight for batches to tell an error
N_BATCHES = 8  # over all chains, from whose spread the error is known
LEAST_WEIGHT = 1e-3  # of the mean: what weighs less is left out, unless no error is allowed
WALK_GAPS = 16  # whose steps are tabulated for the draws of the first round
LOWEST = -1e300  # log of a weight, if no draw so far has any
MIXTURE_DRAWS = 256  # behind the rankings drawn for one user

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
    def walks(self) -> Walks:
        """What the walks of the likelihoods need; see `grid_weights`."""
        n_items = self.ranks.shape[1]
        walks: Walks = grid_weights(self.alphas / n_items, n_items, WALK_GAPS)
        return walks


class ExactMeans:
    """Means over the draws of a posterior, for users given by their clicks, with errors."""

    def __init__(self, posterior: Posterior):
        self._consensus, self._alpha = posterior.consensus, posterior.alpha
        self._weights = posterior.weights[:, :, None] * posterior.shares
        self.n_chains, self.n_draws, self.n_clusters, self.n_items = posterior.consensus.shape
        self._segments = max(1, min(N_BATCHES // self.n_chains, self.n_draws))
        self.n_batches = self.n_chains * self._segments
        self._factors = np.asarray(step_factors(self.n_items, N_GAPS))
        self._rounds: list[Round] = []
        self._lock = threading.Lock()

    def chances(
        self, clicks: ClickRows, is_new: bool, k: int, window: int, max_error: float
    ) -> tuple[Floats, Floats]:
        """``chances[row, item]`` to be among the next `window`, and their errors: small enough for
        the k best of each row, if there are draws enough. Clicked items have 0."""

        def add(drawn: Round, weights: Floats, sums: Floats) -> None:
            laws = Laws(drawn.ranks, drawn.alphas / self.n_items, drawn.batches)
            next_ranks_of_laws(clicks, laws, window, weights, self._factors, sums)

        return self._mean(clicks, is_new, add, self.n_items, k, max_error)

    def memberships(self, clicks: ClickRows, max_error: float = MAX_ERROR) -> Floats:
        """``[row, cluster]`` of new users."""
        n_rows = len(clicks.starts) - 1
        if self.n_clusters == 1:
            return np.ones((n_rows, 1))

        def add(drawn: Round, weights: Floats, sums: Floats) -> None:
            by_draw = weights.reshape(n_rows, -1, self.n_clusters).transpose(1, 0, 2)
            np.add.at(sums, drawn.batches[:: self.n_clusters], by_draw)

        how = (self.n_clusters, self.n_clusters, max_error)
        return self._mean(clicks, True, add, *how)[0]

    def mixture(self, clicks: ClickRows, is_new: bool) -> tuple[NDArray[np.int32], Floats, Floats]:
        """Some hundred draws as a mixture for each row: ``ranks[g, item]``, ``alphas[g]``, and
        ``weights[row, g]``, which sum to 1."""
        rounds, log_weights, n_draws = [], [], 0
        for drawn in self._all_rounds():
            rounds.append(drawn)
            log_weights.append(self._log_weights(clicks, is_new, drawn))
            n_draws += len(drawn.alphas) // self.n_clusters
            if n_draws >= MIXTURE_DRAWS:
                break
        logs = np.concatenate(log_weights, axis=1)
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        return (
            np.concatenate([drawn.ranks for drawn in rounds]),
            np.concatenate([drawn.alphas for drawn in rounds]),
            weights / weights.sum(axis=1, keepdims=True),
        )

    def _mean(
        self,
        clicks: ClickRows,
        is_new: bool,
        add: Add,
        n_values: int,
        k: int,
        max_error: float,
    ) -> tuple[Floats, Floats]:
        """``means[row, value]`` and their errors, round by round.

        `add` adds to ``sums[batch, row, value]`` what the draws of a round say, by their weights.
        """
        n_rows, k = len(clicks.starts) - 1, min(k, n_values)
        sums, totals = (
            np.zeros((self.n_batches, n_rows, n_values)),
            np.zeros((self.n_batches, n_rows)),
        )
        squares, heights = np.zeros(n_rows), np.full(n_rows, LOWEST)
        means, errors = np.zeros((2, n_rows, n_values))
        is_open, few = np.ones((2, n_rows), dtype=bool)
        for drawn in self._all_rounds():
            logs = np.full((n_rows, len(drawn.alphas)), -np.inf)
            logs[is_open] = self._log_weights(take_rows(clicks, is_open), is_new, drawn)
            higher = np.maximum(heights, logs.max(axis=1))
            falls = np.exp(heights - higher)  # a draw may suit a user far better than all before
            sums, totals, squares = sums * falls[:, None], totals * falls, squares * falls**2
            heights, weights = higher, np.exp(logs - higher[:, None])
            if max_error > 0:
                weights[weights < LEAST_WEIGHT * weights.mean(axis=1, keepdims=True)] = 0.0
            add(drawn, weights, sums)
            np.add.at(totals, drawn.batches, weights.T)
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

    def _log_weights(self, clicks: ClickRows, is_new: bool, drawn: Round) -> Floats:
        """``logs[row, g]`` of a round: for new users with the probability of their clicks, for
        users of the fit with their memberships in each draw."""
        logs = np.empty((len(clicks.starts) - 1, len(drawn.alphas)))
        if self.n_clusters == 1 and not is_new:
            logs[:] = drawn.log_weights
            return logs
        if drawn is self._rounds[0]:
            law = (drawn.ranks, drawn.alphas / self.n_items, drawn.log_partitions, drawn.walks)
            fill_log_likelihoods(clicks, *law, logs)
            logs += drawn.log_weights
        else:  # rarely needed: nothing is kept for them
            values = np.empty(len(logs))
            for g, (ranks, alpha) in enumerate(zip(drawn.ranks, drawn.alphas, strict=True)):
                law_of_one = (ranks, alpha / self.n_items, drawn.log_partitions[g])
                click_log_likelihoods(clicks, *law_of_one, values)
                logs[:, g] = values + drawn.log_weights[g]
        if not is_new:
            by_draw = logs.reshape(len(logs), -1, self.n_clusters)
            all_clusters = np.logaddexp.reduce(by_draw, axis=2, keepdims=True)
            weights = np.exp(drawn.log_weights.reshape(-1, self.n_clusters)).sum(axis=1)
            by_draw -= np.where(np.isfinite(all_clusters), all_clusters, 0.0)
            by_draw += logs_of(weights)[:, None]
        return logs

    def _all_rounds(self) -> Iterator[Round]:
        """Made when they are needed, and kept."""
        order, number, first = spread(self.n_draws), 0, 0
        while first < self.n_draws:
            last = min(max(2 * first, -(-FIRST_DRAWS // self.n_chains)), self.n_draws)
            with self._lock:
                if number == len(self._rounds):
                    self._rounds.append(self._make_round(order[first:last]))
            yield self._rounds[number]
            first, number = last, number + 1

    def _make_round(self, draws: NDArray[np.int64]) -> Round:
        segments = draws * self._segments // self.n_draws
        batches = np.arange(self.n_chains)[:, None] * self._segments + segments
        return Round(
            np.ascontiguousarray(self._consensus[:, draws].reshape(-1, self.n_items)),
            np.ascontiguousarray(self._alpha[:, draws]).reshape(-1),
            logs_of(self._weights[:, draws]).reshape(-1),
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


def take_rows(clicks: ClickRows, chosen: NDArray[np.bool_]) -> ClickRows:
    """The clicks of some rows."""
    if chosen.all():
        return clicks
    starts, codes = clicks
    sizes = np.diff(starts)
    kept = codes[starts[0] : starts[-1]][np.repeat(chosen, sizes)]
    return ClickRows(np.append(0, np.cumsum(sizes[chosen])), kept)


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
