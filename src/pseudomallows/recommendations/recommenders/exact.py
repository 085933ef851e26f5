"""Recommendations by exact sums over the latent rankings, from draws of the exact posterior."""

import functools

import numpy as np
from numpy.typing import NDArray

from ...engines.executors import Executor, blocks
from ...kernels.click_rows import ClickRows
from ...kernels.footrule.clicks import draw_click_users
from ...kernels.streams import Streams
from ...latent.own_laws import draw_ranks_of
from ...posteriors.posterior import Posterior, common_consensus
from .chances import MAX_ERROR, Chances, Floats, Recommender, Users
from .exact_means import ExactMeans


class ExactRecommender(Recommender):
    """The best items by exact means; see :mod:`.exact_means`."""

    def __init__(self, posterior: Posterior):
        super().__init__(posterior.items, common_consensus(posterior), posterior.chain_memberships)
        self.means = ExactMeans(posterior)

    def chances(
        self, users: Users, k: int, window: int, max_error: float, executor: Executor
    ) -> Chances:
        """As many draws as the error wants."""

        def table(part: slice) -> tuple[Floats, Floats]:
            known = None if users.rows is None else self._known(users.rows[part])
            return self.means.chances(users.block(part), known, k, window, max_error)

        return Chances(
            users, self.consensus, table, functools.partial(self.memberships, users, executor)
        )

    def cluster_chances(
        self, users: Users, k: int, window: int, executor: Executor
    ) -> tuple[Floats, Floats]:
        """From the same draws as `chances`."""
        known = None if users.rows is None else self._known(users.rows)
        return self.means.by_cluster(users.block(slice(0, 1)), known, k, window, MAX_ERROR)

    def _known(self, rows: NDArray[np.int64]) -> Floats:
        """``[row, cluster]``: memberships of users of the fit, in the chain where they are most."""
        return np.asarray(self.chain_memberships[:, rows].max(axis=0))

    def counted_chances(self, users: Users, window: int, executor: Executor) -> Chances:
        """From one ranking of each user for each draw."""

        def table(part: slice) -> tuple[Floats, None]:
            return self._count(part.start, users.block(part), users.is_new, window), None

        return Chances(
            users, self.consensus, table, functools.partial(self.memberships, users, executor)
        )

    def _count(self, first: int, clicks: ClickRows, is_new: bool, window: int) -> Floats:
        """``chances[row, item]`` of some users, from number `first` on."""
        ranks, alphas, weights = self.means.mixture(clicks, is_new)
        numbers, n_clicks = first + np.arange(len(weights)), np.diff(clicks.starts)
        partners, counts = np.full(self.n_items, -1), np.zeros((2, self.n_items, self.n_items), int)
        kept = np.zeros((len(weights), self.n_items), dtype=np.int32)
        chances = np.zeros((len(weights), self.n_items))
        for g, alpha in enumerate(alphas):
            streams = Streams(0, g, numbers, np.ones_like(numbers))
            law = (ranks[g], alpha / self.n_items, partners)
            draw_click_users(streams, clicks, *law, counts, kept)
            chances += weights[:, g, None] * are_next(kept, n_clicks, window)
        return chances

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


def are_next(
    ranks: NDArray[np.int32], n_clicks: NDArray[np.int64], window: int
) -> NDArray[np.bool_]:
    """``[row, item]``: does the rank follow the user's clicks, among the next `window`?"""
    return (ranks > n_clicks[:, None]) & (ranks <= n_clicks[:, None] + window)
