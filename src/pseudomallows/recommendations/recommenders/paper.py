"""Recommendations by the paper's law: look-ups in tables that serve all users."""

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...distributions.orders import ORDERS
from ...engines.executors import Executor, all_cores, blocks
from ...kernels.click_rows import ClickRows
from ...kernels.footrule.memberships import share_out
from ...kernels.groups import draw_users
from ...kernels.look_up import PlaceChances, Sources, look_up, look_up_best_rows
from ...kernels.streams import Streams
from ...posteriors.posterior import Posterior, common_consensus
from ...rankings import orderings_of
from .chances import Chances, Floats, Items, Recommender, Users
from .exact import are_next
from .exact_means import logs_of
from .memberships import MembershipTables
from .tables import Tables

N_CONSENSUSES = 16  # of each cluster, over all chains, by which a new user's cluster is found
LEFT_OUT = 0.01  # of a user's memberships, at most: clusters that would count for nearly nothing
FEW_ITEMS = 8  # up to this part of the items, the best are looked up alone


class Weights(NamedTuple):
    """How much counts for each user: ``sources[user, source]`` and ``clusters[user, cluster]``."""

    sources: Floats  # the least left out
    clusters: Floats


class PaperRecommender(Recommender):
    """Look-ups. The draws of a consensus are rough, so they count alike for new users too; which
    cluster a new user belongs to is found by a few exact consensuses, weighed by the clicks.

    A source is the draws of one consensus: those of a cluster in a chain; of all chains, if there
    is one cluster. They have one alpha.
    """

    def __init__(self, posterior: Posterior):
        super().__init__(posterior.items, common_consensus(posterior), posterior.chain_memberships)
        self.n_clusters, self.order = posterior.n_clusters, ORDERS[posterior.order]
        self.chain_weights = posterior.weights.sum(axis=1)
        self._alphas, self._sources = sources_of(posterior)
        self._tables = Tables(self._alphas, self._sources, self.order)
        self._consensuses = some_consensuses(posterior)

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
        memberships = functools.partial(self._memberships, users, weights)
        return Chances(users, self.consensus, table, memberships, fill_few if is_few else None)

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

        memberships = functools.partial(self._memberships, users, weights)
        return Chances(users, self.consensus, table, memberships)

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
        """By a few exact consensuses."""
        return self._weigh(users, executor).clusters

    def _memberships(self, users: Users, weights: Weights) -> Floats:
        """Those of `memberships`, from weights at hand."""
        at_hand = users.is_new or self.n_clusters == 1
        return weights.clusters if at_hand else self.memberships(users, all_cores())

    def _weigh(self, users: Users, executor: Executor) -> Weights:
        if self.n_clusters == 1:
            ones = np.empty((users.clicks.n_users, 1))
            ones.fill(1.0)  # `np.ones` takes twice as long for one user
            return Weights(ones, ones)
        if users.rows is not None:
            return self._share_out(self.chain_memberships[:, users.rows], self.chain_weights)

        def work(part: slice) -> Floats:
            return self._weigh_new(users.block(part))

        n_chains = len(self.chain_weights)
        parts = list(executor.map(work, blocks(users.clicks.n_users)))
        by_chain = np.concatenate(parts or [np.ones((n_chains, 0, self.n_clusters))], axis=1)
        return self._share_out(by_chain, np.ones(n_chains))

    def _weigh_new(self, clicks: ClickRows) -> Floats:
        """``[chain, row, cluster]`` of new users: how much each chain, and its clusters, count."""
        tables, n_rows = self._membership_tables, len(clicks.starts) - 1
        logs = np.empty((n_rows, tables.n_draws * self.n_clusters))
        tables.fill(clicks, logs)
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        by_draw = weights.reshape(n_rows, len(self.chain_weights), -1, self.n_clusters)
        return np.ascontiguousarray(by_draw.sum(axis=2).transpose(1, 0, 2))

    def _share_out(self, by_chain: NDArray[Any], chain_weights: Floats) -> Weights:
        """``by_chain[chain, user, cluster]`` are memberships, or weights."""
        n_users, n_sources = by_chain.shape[1], len(self._sources.alphas)
        weights = Weights(np.empty((n_users, n_sources)), np.empty((n_users, self.n_clusters)))
        mine = np.ascontiguousarray(by_chain, dtype=np.float64)
        share_out(mine, chain_weights, LEFT_OUT, *weights)
        return weights

    @functools.cached_property
    def _membership_tables(self) -> MembershipTables:
        """What tells the clusters of new users; made when one asks."""
        return MembershipTables(*self._consensuses)

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


def some_consensuses(posterior: Posterior) -> tuple[NDArray[np.int32], Floats, Floats]:
    """The leaders, if there are some, else some of the draws; alphas; log weights: the arguments of
    `MembershipTables`."""
    n_chains, n_draws, n_clusters, n_items = posterior.consensus.shape
    chosen = _evenly(n_draws, min(n_draws, max(1, N_CONSENSUSES // n_chains)))
    consensuses = posterior.consensus[:, chosen]
    if posterior.leaders.size:
        consensuses = posterior.leaders
        chosen = _evenly(n_draws, consensuses.shape[1])  # there may be more leaders than draws
    weights = posterior.weights[:, chosen, None] * posterior.shares[:, chosen]
    return (
        consensuses.reshape(-1, n_clusters, n_items),
        posterior.alpha[:, chosen].reshape(-1, n_clusters),
        logs_of(weights).reshape(-1, n_clusters),
    )


def _evenly(length: int, number: int) -> NDArray[np.int64]:
    """So many of the numbers below `length`, evenly spaced."""
    places = np.linspace(0, length - 1, number)
    return np.asarray(places.round().astype(np.int64))
