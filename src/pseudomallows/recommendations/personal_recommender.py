"""Recommendations by a consensus of each user's own."""

import numpy as np
from numpy.typing import NDArray

from ..engines.executors import Executor
from ..posteriors.posterior import Posterior, common_consensus
from .chances import Chances, Floats, Recommender, Users
from .exact import draw_ranks_of
from .tables import GridTables


class PersonalRecommender(Recommender):
    """By the scores of a personal fit; blended, if it says so, with the chances of clusters."""

    def __init__(self, posterior: Posterior, clusters: Recommender | None):
        super().__init__(posterior.items, common_consensus(posterior), posterior.chain_memberships)
        assert posterior.personal is not None
        self._personal, self._clusters = posterior.personal, clusters
        self._tables = GridTables(self.n_items, self._personal.alphas)

    def chances(
        self, users: Users, k: int, window: int, max_error: float, executor: Executor
    ) -> Chances:
        """From tables; the errors are not known."""
        tables = self._tables.of(window, {*(self.n_items - users.clicks.n_clicks).tolist()})
        others = None
        if self._clusters is not None:
            others = self._clusters.all_chances(users.clicks, window)

        def table(part: slice) -> tuple[Floats, None]:
            blend = None if others is None else others[part]
            law = (window, users.rows, blend)
            return self._personal.probabilities(tables, users.clicks, part, *law), None

        return Chances(users, self.consensus, table, lambda: None)

    def counted_chances(self, users: Users, window: int, executor: Executor) -> Chances:
        """There are no draws to count."""
        raise ValueError("by='draws' is not there for method='personal': use by='look_up'")

    def new_memberships(self, users: Users, executor: Executor) -> Floats:
        """There is one cluster."""
        return np.ones((users.clicks.n_users, 1))

    def draw_ranks(self, users: Users, n_draws: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """``counts[item, rank - 1]`` of rankings drawn for one user: clicked items and others, each
        in the order of the user's own consensus, at the alphas of the grid."""
        personal, clicks, one = self._personal, users.clicks, slice(0, 1)
        consensus = personal.rankings_of(personal.scores_for(clicks, one, users.rows))
        alpha_weights = personal.alpha_shares_of(clicks, one, consensus)[0]
        ordering, none = np.argsort(consensus[0]), np.empty(0, dtype=np.int32)
        is_clicked = np.isin(ordering, clicks.codes)
        counts = np.zeros((self.n_items, self.n_items), dtype=np.int64)
        for group, first in ((is_clicked, 0), (~is_clicked, len(clicks.codes))):
            size = int(group.sum())
            if size:
                ranks = np.tile(np.arange(1, size + 1, dtype=np.int32), (len(alpha_weights), 1))
                mixture = (ranks, personal.alphas / self.n_items, alpha_weights)
                drawn = draw_ranks_of(none, *mixture, n_draws, rng)
                counts[ordering[group], first : first + size] = drawn
        return counts

    # Tables, those of the clusters too

    @property
    def _of_clusters(self) -> list[Recommender]:
        return [] if self._clusters is None else [self._clusters]

    def prepare_size(self, n_clicks: int, window: int) -> None:
        """Make the tables for all who have that many clicks."""
        self._tables.of(window, [self.n_items - n_clicks])
        for other in self._of_clusters:
            other.prepare_size(n_clicks, window)

    def is_ready(self, n_clicks: int, window: int) -> bool:
        """Are they made?"""
        is_ready = self._tables.has(window, self.n_items - n_clicks)
        return is_ready and all(other.is_ready(n_clicks, window) for other in self._of_clusters)

    def table_bytes(self) -> int:
        """Memory of the tables."""
        return self._tables.nbytes + sum(other.table_bytes() for other in self._of_clusters)

    def drop_tables(self, window: int) -> None:
        """Forget those of a window."""
        self._tables.drop(window)
        for other in self._of_clusters:
            other.drop_tables(window)
