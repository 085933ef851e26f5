"""Recommendations by the paper's law: look-ups in tables that serve all users."""

import functools
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...distributions.orders import ORDERS
from ...engines.executors import Executor, all_cores, blocks
from ...kernels.click_rows import ClickRows
from ...kernels.groups import draw_users
from ...kernels.look_up import PlaceChances, Sources, look_up, look_up_best_rows
from ...kernels.streams import Streams
from ...posteriors.posterior import Posterior, common_consensus
from ...rankings import orderings_of
from .chances import Chances, Floats, Items, Recommender, Users
from .exact import are_next
from .exact_means import ExactMeans
from .tables import Tables

FEW_ITEMS = 8  # up to this part of the items, the best are looked up alone


class Weights(NamedTuple):
    """How much counts for each user: ``sources[user, source]`` and ``clusters[user, cluster]``."""

    sources: Floats
    clusters: Floats


class PaperRecommender(Recommender):
    """Look-ups. The draws of a consensus are rough, so they count alike for new users too; which
    cluster a new user belongs to is found by the exact probability of the clicks under the best
    consensus of each.

    A source is the draws of one consensus: those of a cluster in a chain; of all chains, if there
    is one cluster. They have one alpha.
    """

    def __init__(self, posterior: Posterior):
        super().__init__(posterior.items, common_consensus(posterior), posterior.chain_memberships)
        self.n_clusters, self.order = posterior.n_clusters, ORDERS[posterior.order]
        self.chain_weights = posterior.weights.sum(axis=1)
        self._alphas, self._sources = sources_of(posterior)
        self._tables = Tables(self._alphas, self._sources, self.order)
        self._means = ExactMeans(point_of(posterior))

    # Chances

    def chances(
        self, users: Users, k: int, window: int, max_error: float, executor: Executor
    ) -> Chances:
        """From tables; the errors are not known."""
        weights = self._weigh(users, executor)
        tables = self._make_tables(users.clicks.n_clicks, window, weights.sources)

        def table(part: slice) -> tuple[Floats, None]:
            chances = np.zeros((part.stop - part.start, self.n_items))
            look_up(users.block(part), self._sources, tables, weights.sources[part], chances)
            return chances, None

        def fill_few(part: slice, items: Items, probabilities: Floats) -> None:
            given = (tuple(users.block(part)), tuple(self._sources), tuple(tables))
            own = (weights.sources[part], self.consensus, items, probabilities)
            look_up_best_rows(*given, *own)

        # quicker than by the chances of all, for one user whatever k is
        is_few = users.clicks.n_users == 1 or k <= self.n_items // FEW_ITEMS
        quick = fill_few if is_few else None
        return Chances(users, self.consensus, table, lambda: weights.clusters, quick)

    def cluster_chances(
        self, users: Users, k: int, window: int, executor: Executor
    ) -> tuple[Floats, Floats]:
        """The chances by the sources of each cluster, which take turns."""
        weights = self._weigh(users, executor).sources
        tables = self._make_tables(users.clicks.n_clicks, window, weights)
        shares, found = np.empty(self.n_clusters), np.zeros((self.n_clusters, 1, self.n_items))
        clusters = np.arange(weights.shape[1]) % self.n_clusters
        for cluster in range(self.n_clusters):
            own = np.where(clusters == cluster, weights, 0.0)
            look_up(users.block(slice(0, 1)), self._sources, tables, own, found[cluster])
            shares[cluster] = own.sum()
        return shares, found[:, 0]

    def counted_chances(self, users: Users, window: int, executor: Executor) -> Chances:
        """From one ranking of each user for each draw."""
        weights = self._weigh(users, executor)

        def table(part: slice) -> tuple[Floats, None]:
            mine = weights.sources[part]
            return self._count(part.start, users.block(part), window, mine), None

        return Chances(users, self.consensus, table, lambda: weights.clusters)

    def _count(self, first: int, clicks: ClickRows, window: int, weights: Floats) -> Floats:
        """``chances[row, item]`` of some users, from number `first` on."""
        numbers, n_clicks = first + np.arange(len(weights)), np.diff(clicks.starts)
        counts = np.zeros((self.n_items, self.n_items), dtype=np.int64)
        kept = np.zeros((len(numbers), self.n_items), dtype=np.int32)
        chances = np.zeros((len(numbers), self.n_items))
        orderings, draw_weights, firsts = self._sources[:3]
        for source, lam in enumerate(self._lams):
            for draw in range(firsts[source], firsts[source + 1]):
                number = draw - firsts[source]
                streams = Streams(source, number, numbers, np.ones_like(numbers))
                draw_users(streams, clicks, orderings[draw], lam, self.order, counts, kept)
                share = draw_weights[draw] * weights[:, source, None]
                chances += share * are_next(kept, n_clicks, window)
        return chances

    @functools.cached_property
    def _lams(self) -> Floats:
        """Alpha over the number of items, for each source."""
        return np.asarray(self._alphas[self._sources.alphas] / self.n_items)

    # Memberships

    def new_memberships(self, users: Users, executor: Executor) -> Floats:
        """By the exact probability of the clicks under the best consensus of each cluster."""

        def work(part: slice) -> Floats:
            return self._means.memberships(users.block(part), max_error=0.0)

        parts = list(executor.map(work, blocks(users.clicks.n_users)))
        return np.concatenate([np.empty((0, self.n_clusters)), *parts])

    def _weigh(self, users: Users, executor: Executor) -> Weights:
        if self.n_clusters == 1:
            ones = np.empty((users.clicks.n_users, 1))
            ones.fill(1.0)  # `np.ones` takes twice as long for one user
            return Weights(ones, ones)
        clusters = self.memberships(users, executor)
        sources = self.chain_weights[:, None] * clusters[:, None, :]
        return Weights(sources.reshape(len(clusters), -1), clusters)

    # One user's rankings

    def draw_ranks(self, users: Users, n_draws: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """``counts[item, rank - 1]`` of rankings drawn for one user."""
        weights = self._weigh(users, all_cores()).sources[0]
        orderings, draw_weights, firsts = self._sources[:3]
        sources = np.repeat(np.arange(len(weights)), np.diff(firsts))
        numbers = rng.multinomial(n_draws, weights[sources] * draw_weights)
        seed, user = int(rng.integers(2**63)), np.zeros(1, np.int64)
        counts = np.zeros((self.n_items, self.n_items), dtype=np.int64)
        clicks, none = users.block(slice(0, 1)), np.empty((0, 0), dtype=np.int32)
        for draw in np.flatnonzero(numbers).tolist():
            streams = Streams(seed, draw, user, numbers[draw : draw + 1])
            lam = self._lams[sources[draw]]
            draw_users(streams, clicks, orderings[draw], lam, self.order, counts, none)
        return counts

    # Tables

    def _make_tables(
        self, n_clicks: NDArray[np.int64], window: int, weights: Floats
    ) -> PlaceChances:
        """The tables that users with so many clicks need; one serves all users, and all later
        calls."""
        made = self._tables.whole(window, n_clicks.tolist())
        if made is not None:
            return made
        wanted = set()
        for source, alpha in enumerate(self._sources.alphas.tolist()):
            own = np.unique(self.n_items - n_clicks[weights[:, source] > 0])
            wanted |= {(alpha, size) for size in own.tolist()}
        return self._tables.of(window, wanted)

    def prepare_size(self, n_clicks: int, window: int) -> None:
        """Make the tables for all who have that many clicks."""
        n_sources = len(self._sources.alphas)
        self._make_tables(np.array([n_clicks]), window, np.ones((1, n_sources)))

    def is_ready(self, n_clicks: int, window: int) -> bool:
        """Are they made?"""
        return n_clicks == self.n_items or self._tables.whole(window, [n_clicks]) is not None

    def table_bytes(self) -> int:
        """Memory of the tables."""
        return self._tables.nbytes

    def drop_tables(self, window: int) -> None:
        """Forget those of a window."""
        self._tables.drop(window)


def sources_of(posterior: Posterior) -> tuple[Floats, Sources]:
    """The alphas there are, and the draws of each consensus, the weights of which sum to 1."""
    n_chains, n_draws, n_clusters, n_items = posterior.consensus.shape
    weights = posterior.weights[:, :, None] * posterior.shares
    if n_clusters == 1:
        n_chains, n_draws, weights = 1, n_chains * n_draws, posterior.weights
    shape = (n_chains, n_draws, n_clusters)
    consensus = posterior.consensus.reshape(*shape, n_items).swapaxes(1, 2).reshape(-1, n_items)
    by_source = weights.reshape(shape).swapaxes(1, 2).reshape(-1, n_draws)
    scaled = [own / max(float(own.sum()), 1e-300) for own in by_source]
    first_alphas = posterior.alpha.reshape(shape)[:, 0].ravel()
    alphas, alpha_of = np.unique(first_alphas, return_inverse=True)
    orderings = np.ascontiguousarray(orderings_of(consensus).astype(np.int32))
    firsts = n_draws * np.arange(len(by_source) + 1)
    ranks = np.ascontiguousarray(consensus.T, dtype=np.int32)
    return alphas, Sources(orderings, np.concatenate(scaled), firsts, alpha_of, ranks)


def point_of(posterior: Posterior) -> Posterior:
    """The best consensus of each cluster, with its mean alpha and weight, as the only draw."""
    alpha, shares = (
        np.einsum("cd,cdk->k", posterior.weights, np.ascontiguousarray(values))[None, None]
        for values in (posterior.alpha, posterior.shares)  # as from a file, to the last bit
    )
    best, weights = posterior.best[None, None], np.ones((1, 1))
    return replace(posterior, consensus=best, alpha=alpha, shares=shares, weights=weights)
