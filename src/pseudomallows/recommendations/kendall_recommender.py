"""Recommendations from clicks under Kendall's distance: exact look-ups, for any number of items.

Given a draw of the consensus, the probability of an item is read from a table, by its place among
the unclicked items; see `kernels.kendall.next_items`. The probabilities of a user are the mean over
draws and clusters, each weighed by the exact probability of the user's clicks.
"""

import functools

import numpy as np
from numpy.typing import NDArray

from ..engines.executors import Executor, blocks
from ..engines.memory import check_table
from ..kernels.click_rows import ClickRows
from ..kernels.kendall import next_items as kernels
from ..kernels.kendall.next_items import KendallDraws, NextTables
from ..laws.own_laws import N_NEAR, OwnLaw, draw_kendall_ranks_of
from ..personal.next_tables import GridTables
from ..posterior.posterior import Posterior, common_consensus
from .recommender import (
    Floats,
    Items,
    NextItems,
    Recommender,
    Users,
    as_rows,
    clicked_items,
    logs_of,
)

MOST_LAWS = 1024  # clusters of draws that are averaged: the standard error is at most 0.5 / 32
# Places whose probabilities are tabulated one by one, and down to which the best are sought.
N_TOP = N_NEAR
LEFT_OUT = 1e-4  # of a user's weights, at most, is left out: probabilities err by less, of 0.005


class KendallRecommender(Recommender):
    """The mean over some draws, evenly spread: all of them, where there is room."""

    def __init__(self, posterior: Posterior):
        super().__init__(posterior.items, common_consensus(posterior), posterior.chain_memberships)
        self.n_clusters = posterior.n_clusters
        self.draws, self._alphas = some_draws(posterior)
        self._law = OwnLaw(len(posterior.items), self._alphas)
        self.tables: GridTables = GridTables(self._law, by_place=True, is_exact=True)

    def probabilities(
        self, users: Users, k: int, window: int, max_error: float, executor: Executor
    ) -> NextItems:
        """From tables; all draws at hand are used, whatever the error."""
        sizes = np.unique(users.clicks.n_clicks).tolist()
        logs = self._law.log_binomials_of(max(sizes, default=0))
        tables = NextTables(logs, *self.tables.of(window, [self.n_items - size for size in sizes]))

        def table(part: slice) -> tuple[Floats, Floats]:
            return some(part, as_rows(~clicked_items(users.block(part), self.n_items)))

        def fill(part: slice, items: Items, best: Floats, errors: Floats | None) -> None:
            none = np.empty((0, 0)) if errors is None else errors
            arrays = (tuple(users.block(part)), tuple(self.draws), tuple(tables))
            rules = (self.n_clusters, users.is_new, LEFT_OUT, self.consensus)
            kernels.kendall_best_rows(*arrays, rules, items, best, none)

        def some(part: slice, wanted: ClickRows) -> tuple[Floats, Floats]:
            rules = (self.n_clusters, users.is_new, LEFT_OUT)
            return means_of(users.block(part), self.draws, tables, rules, wanted)

        memberships = functools.partial(self.memberships, users, executor)
        is_few = self.n_items <= N_TOP or k <= N_TOP // 2
        return NextItems(
            users,
            self.consensus,
            table,
            memberships,
            fill=fill if is_few else None,
            some=some,
        )

    def cluster_probabilities(
        self, users: Users, k: int, window: int, executor: Executor
    ) -> tuple[Floats, Floats]:
        """The probabilities by the laws of each cluster, which take turns."""
        clicks = users.block(slice(0, 1))
        weights, logs = self._weights(clicks, users.is_new)[0], self._law.log_binomials_of(0)
        unclicked = as_rows(~clicked_items(clicks, self.n_items))
        lines, near, places, far = self.tables.of(window, [len(unclicked.codes)])
        shares, probabilities = np.zeros(self.n_clusters), np.zeros((self.n_clusters, self.n_items))
        for cluster in range(self.n_clusters):
            own = slice(cluster, None, self.n_clusters)
            shares[cluster] = weights[own].sum()
            if shares[cluster] > 0:
                ranks, tops = (np.ascontiguousarray(part[:, own]) for part in self.draws[:2])
                own_logs = np.maximum(logs_of(weights[own]), -1e300)
                mine = KendallDraws(ranks, tops, self.draws.rates[own].copy(), own_logs)
                some = (np.ascontiguousarray(part[:, :, own]) for part in (near, far))
                tables = NextTables(logs, lines, next(some), places, next(some))
                means, _ = means_of(clicks, mine, tables, (1, False, 0.0), unclicked)
                probabilities[cluster] = means[0]
        return shares, shares[:, None] * probabilities

    def _weights(self, clicks: ClickRows, is_new: bool) -> Floats:
        """``weights[row, g]``."""
        weights = np.empty((len(clicks.starts) - 1, len(self._alphas)))
        logs = self._law.log_binomials_of(int(np.diff(clicks.starts).max(initial=0)))
        kernels.weigh_rows(clicks, self.draws, logs, self.n_clusters, is_new, weights)
        return weights

    def new_memberships(self, users: Users, executor: Executor) -> Floats:
        """By the exact probability of the clicks under each draw and cluster."""
        memberships = np.zeros((users.clicks.n_users, self.n_clusters))

        def work(part: slice) -> None:
            weights = self._weights(users.block(part), is_new=True)
            for draw in range(0, weights.shape[1], self.n_clusters):
                memberships[part] += weights[:, draw : draw + self.n_clusters]

        list(executor.map(work, blocks(users.clicks.n_users)))
        return memberships

    def draw_ranks(self, users: Users, n_draws: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """``counts[item, rank - 1]`` of rankings drawn for one user."""
        check_table(self.n_items, "counts of ranks")
        clicks = users.block(slice(0, 1))
        weights = self._weights(clicks, users.is_new)[0]
        mixture = self.draws.ranks.T, self.draws.rates, weights / weights.sum()
        codes = clicks.codes[clicks.starts[0] : clicks.starts[1]]
        return draw_kendall_ranks_of(codes, *mixture, n_draws, rng)


def means_of(
    clicks: ClickRows,
    draws: KendallDraws,
    tables: NextTables,
    rules: tuple[int, bool, float],
    wanted: ClickRows,
) -> tuple[Floats, Floats]:
    """``probabilities[row, item]`` of the wanted items, and their errors."""
    means, errors = np.zeros((2, len(clicks.starts) - 1, draws.ranks.shape[0]))
    kernels.kendall_some_probabilities(clicks, draws, tables, rules, wanted, means, errors)
    return means, errors


def some_draws(posterior: Posterior) -> tuple[KendallDraws, Floats]:
    """Draws of a posterior, evenly spread, as kernels read them; and their alphas."""
    n_chains, n_draws, n_clusters, n_items = posterior.consensus.shape
    most = min(MOST_LAWS, 2**29 // (4 * n_items)) // (n_clusters * n_chains)
    number = min(n_draws, max(1, most))
    chosen = np.linspace(0, n_draws - 1, number).round().astype(np.int64)
    n_laws = n_chains * number * n_clusters
    ranks = np.empty((n_items, n_laws), dtype=np.int32)
    n_top = min(n_items, 4 * N_TOP)
    tops = np.empty((n_top, n_laws), dtype=np.int32)
    g = 0
    for chain in range(n_chains):
        for draw in chosen.tolist():
            for consensus in posterior.consensus[chain, draw]:
                ranks[:, g] = consensus
                first = np.flatnonzero(consensus <= n_top)
                tops[consensus[first] - 1, g] = first
                g += 1
    alphas = np.ascontiguousarray(posterior.alpha[:, chosen]).reshape(-1)
    weights = posterior.weights[:, chosen, None] * posterior.shares[:, chosen]
    logs = np.maximum(logs_of(weights).reshape(-1), -1e300)
    return KendallDraws(ranks, tops, alphas / n_items, logs), alphas
