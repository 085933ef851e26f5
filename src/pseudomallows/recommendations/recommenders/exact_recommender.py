"""Recommendations by exact sums over the latent rankings, from draws of the exact posterior."""

import functools

import numpy as np
from numpy.typing import NDArray

from ...engines.executors import Executor, blocks
from ...laws.own_laws import draw_ranks_of
from ...posteriors.posterior import Posterior, common_consensus
from .exact_means import ExactMeans
from .recommender import Floats, NextItems, Recommender, Users


class ExactRecommender(Recommender):
    """The best items by exact means; see :mod:`.exact_means`."""

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
