"""What recommendations need of a posterior: from clusters, or from consensuses of one's own."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .clicks import ORDERS
from .executors import Executor, Threads, all_cores, blocks
from .kernels.clicks import draw_click_users, next_rank_probabilities, step_factors
from .kernels.groups import choose_best, draw_users, look_up, look_up_best, look_up_best_rows
from .kernels.matching import N_GAPS
from .kernels.members import share_out
from .lookup import Tables
from .members import Members
from .posterior import Posterior
from .preferences import Clicks
from .rankings import orderings_of

MAX_DRAWS = 50  # consensus draws behind an exact probability; more change little
N_CENTERS = 16  # draws, over all chains, by which a new user's cluster is found
MAX_CLUSTER_DRAWS = 20  # the same with clusters, for each of them
LEFT_OUT = 0.01  # of a user's memberships, at most: clusters that would count for nearly nothing
ONE = Threads(1)

FEW_ITEMS = 8  # up to this part of the items, the best are looked up alone

Fill = Callable[[slice], NDArray[np.float64]]
FillBest = Callable[[slice, NDArray[np.int64], NDArray[np.float64]], None]


def recommender_of(posterior: Posterior) -> "Recommender | PersonalRecommender":
    """What recommendations need of a posterior, made once and kept with it."""
    if "_recommender" not in posterior.__dict__:
        kind = Recommender if posterior.personal is None else PersonalRecommender
        posterior.__dict__["_recommender"] = kind(posterior)
    found: Recommender | PersonalRecommender = posterior.__dict__["_recommender"]
    return found


def chances_of(posterior: Posterior, seen: Clicks, window: int) -> NDArray[np.float64]:
    """``chances[user, item]`` of new users, for all items; what is clicked has no meaning."""
    threads = all_cores()
    fill = recommender_of(posterior).begin(seen, None, window, "look_up", threads)
    return np.concatenate(list(threads.map(fill, blocks(seen.n_users))))


@dataclass(frozen=True)
class Block:
    """Some users: the number of the first, and their clicks."""

    first: int
    starts: NDArray[np.int64]
    codes: NDArray[np.int32]


@dataclass(frozen=True)
class Source:
    """Draws of one consensus: those of a cluster in a chain; of all chains, if one cluster."""

    draws: NDArray[np.int32]
    orderings: NDArray[np.int32]
    alphas: NDArray[np.float64]
    shares: NDArray[np.float64]  # of the draws; they sum to 1


class Recommender:
    """What recommendations need of a posterior, made once and kept with it."""

    def __init__(self, posterior: Posterior):
        n_chains, _, n_clusters, self.n_items = posterior.consensus.shape
        self.n_clusters = n_clusters
        self.is_pseudo = posterior.settings["method"] == "pseudo"
        self.order = ORDERS[posterior.settings["options"]["order"] or "uniform"]
        weights = posterior.weights
        self.chain_weights = weights.sum(axis=1)
        self.chain_memberships = posterior.chain_memberships
        if n_clusters == 1:
            draws = posterior.consensus[:, :, 0].reshape(-1, self.n_items)
            self.sources = [self._source(draws, posterior.alpha.ravel(), weights.ravel(), 0)]
        else:
            self.sources = [
                self._source(
                    posterior.consensus[chain, :, cluster],
                    posterior.alpha[chain, :, cluster],
                    weights[chain] * posterior.shares[chain, :, cluster],
                    n_chains,
                )
                for chain in range(n_chains)
                for cluster in range(n_clusters)
            ]
        self._stack = self._stacked()
        self._tables = Tables(self._alphas, self._stack, self.order)
        self._ranks = np.concatenate([source.draws for source in self.sources]).T.copy()
        self._find_members = functools.partial(_members_of, posterior)
        self.consensus = _common_consensus(posterior)
        self.codes = {name: code for code, name in enumerate(posterior.items.tolist())}

    def _stacked(self) -> tuple[NDArray[Any], ...]:
        """The draws of all sources, as `look_up` reads them; a source of method "pseudo" has one
        alpha, that of its first draw."""
        firsts = np.cumsum([0, *(len(source.shares) for source in self.sources)])
        alphas = [source.alphas[0] for source in self.sources]
        self._alphas, self.laws = np.unique(alphas, return_inverse=True)
        return (
            np.concatenate([source.orderings for source in self.sources]),
            np.concatenate([source.shares for source in self.sources]),
            firsts,
            self.laws,
        )

    @functools.cached_property
    def _factors(self) -> NDArray[np.float64]:
        """Of the exact sums, for methods other than "pseudo"."""
        return np.asarray(step_factors(self.n_items, N_GAPS))

    @functools.cached_property
    def _members(self) -> Members | None:
        """What tells the clusters of new users, if there are several; made when one asks."""
        return self._find_members() if self.n_clusters > 1 else None

    def _source(
        self,
        draws: NDArray[np.int32],
        alphas: NDArray[np.float64],
        weights: NDArray[np.float64],
        n_chains: int,
    ) -> Source:
        """Draws of one consensus; `n_chains` is 0 for one cluster, where the chains are joined."""
        limit = MAX_DRAWS if n_chains == 0 else max(1, MAX_CLUSTER_DRAWS // n_chains)
        if not self.is_pseudo and len(draws) > limit:
            chosen = _evenly(len(draws), limit)
            draws, alphas, weights = draws[chosen], alphas[chosen], weights[chosen]
        orderings = np.ascontiguousarray(orderings_of(draws).astype(np.int32))
        return Source(
            np.ascontiguousarray(draws),
            orderings,
            alphas,
            weights / max(float(weights.sum()), 1e-300),
        )

    def begin(
        self,
        seen: Clicks,
        rows: NDArray[np.int64] | None,
        window: int,
        by: str,
        executor: Executor,
    ) -> Fill:
        """What fills the probabilities of some of these users; `rows` are theirs in the fit."""
        shares = self.shares_of(self._found(seen, rows, executor))[0]
        if by == "look_up":
            self.prepare(seen.n_clicks, window, shares)

        def fill(part: slice) -> NDArray[np.float64]:
            table = np.zeros((part.stop - part.start, seen.n_items))
            block = Block(part.start, seen.starts[part.start : part.stop + 1], seen.codes)
            run = self.draw if by == "draws" else self.look_up
            run(block, window, shares[part], table)
            return table

        return fill

    def begin_best(
        self, seen: Clicks, rows: NDArray[np.int64] | None, k: int, window: int, executor: Executor
    ) -> FillBest | None:
        """What fills the k best items of some of these users, if there is a quicker way to them
        than by the probabilities of all."""
        if not self.is_pseudo or k > self.n_items // FEW_ITEMS:
            return None
        shares = self.shares_of(self._found(seen, rows, executor))[0]
        self.prepare(seen.n_clicks, window, shares)
        law = (self._ranks, self._stack, self._tables.of(window))

        def fill(part: slice, items: NDArray[np.int64], chances: NDArray[np.float64]) -> None:
            mine = (seen.starts[part.start : part.stop + 1], seen.codes)
            look_up_best_rows(*mine, *law, shares[part], self.consensus, items, chances)

        return fill

    def laws_of(
        self, seen: Clicks, rows: NDArray[np.int64] | None
    ) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]:
        """Consensuses, alphas and shares of the laws of which one user's ranking is a mixture."""
        shares = self.shares_of(self._found(seen, rows, all_cores()))[0][0]
        return (
            np.concatenate([source.draws for source in self.sources]),
            np.concatenate([source.alphas for source in self.sources]),
            np.concatenate(
                [share * source.shares for share, source in zip(shares, self.sources, strict=True)]
            ),
        )

    def best(
        self, codes: NDArray[np.int32], row: int | None, window: int
    ) -> tuple[list[int], list[float], list[float]]:
        """The best items of one user, as many as the window is wide, their chances, and the user's
        memberships: as a service asks for them.

        The same as `recommend` and `memberships`, without the work that pays for many users only.
        """
        starts = np.array([0, len(codes)])
        found: NDArray[Any]
        if row is None:
            found = np.empty((len(self.chain_weights), 1, self.n_clusters))
            if self._members is None:
                found.fill(1.0)
            else:
                self._members.fill(starts, codes, found)
        else:
            found = self.chain_memberships[:, row : row + 1]
        shares, means = self.shares_of(found)
        if row is not None:
            means = found.mean(axis=0, dtype=np.float64)
        items, chances = np.empty(window, dtype=np.int64), np.empty(window)
        items.fill(-1)
        chances.fill(np.nan)
        if len(codes) == self.n_items:  # nothing is unseen: no table is needed, nor made
            return items.tolist(), chances.tolist(), means[0].tolist()
        if not self.is_ready(len(codes), window):
            self.prepare(np.array([len(codes)]), window, shares)
        if self.is_pseudo:
            law = (self._ranks, self._stack, self._tables.of(window))
            look_up_best(codes, *law, shares[0], self.consensus, items, chances)
        else:
            table = np.zeros((1, self.n_items))
            self.look_up(Block(0, starts, codes), window, shares, table)
            choose_best(starts, codes, table, self.consensus, items[None], chances[None])
        return items.tolist(), chances.tolist(), means[0].tolist()

    def _found(
        self, seen: Clicks, rows: NDArray[np.int64] | None, executor: Executor
    ) -> NDArray[Any]:
        """``[chain, user, cluster]``; `rows` are those of the fit."""
        if rows is None:
            return self.memberships_of(seen, executor)
        return np.asarray(self.chain_memberships[:, rows])

    def memberships_of(self, seen: Clicks, executor: Executor) -> NDArray[np.float64]:
        """``[chain, user, cluster]`` for new users: the mean over some draws of each chain."""
        found = np.ones((len(self.chain_weights), seen.n_users, self.n_clusters))
        members = self._members
        if members is None:
            return found

        def work(part: slice) -> None:
            starts = seen.starts[part.start : part.stop + 1]
            mine = np.empty((len(found), len(starts) - 1, self.n_clusters))
            members.fill(starts, seen.codes, mine)
            found[:, part] = mine

        for _ in executor.map(work, blocks(seen.n_users)):
            pass
        return found

    def shares_of(
        self, chain_memberships: NDArray[Any]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """``shares[user, source]`` from ``[chain, user, cluster]``, the least left out, and
        ``means[user, cluster]`` over the chains."""
        n_users = chain_memberships.shape[1]
        shares, means = np.empty((n_users, len(self.sources))), np.empty((n_users, self.n_clusters))
        if self.n_clusters == 1:
            shares.fill(1.0)
            means.fill(1.0)
        else:
            found = np.ascontiguousarray(chain_memberships, dtype=np.float64)
            share_out(found, self.chain_weights, LEFT_OUT, shares, means)
        return shares, means

    def prepare(
        self, n_clicks: NDArray[np.int64], window: int, shares: NDArray[np.float64]
    ) -> None:
        """Make the tables of the paper's law that users with so many clicks need.

        One table serves all users, and all later calls.
        """
        if not self.is_pseudo:
            return
        wanted = set()
        for number, law in enumerate(self.laws.tolist()):
            sizes = np.unique(self.n_items - n_clicks[shares[:, number] > 0])
            wanted |= {(law, size) for size in sizes.tolist()}
        self._tables.make(window, wanted)

    def prepare_size(self, n_clicks: int, window: int) -> None:
        """Make the tables for all who have that many clicks."""
        self.prepare(np.array([n_clicks]), window, np.ones((1, len(self.sources))))

    def is_ready(self, n_clicks: int, window: int) -> bool:
        """Are they made?"""
        return not self.is_pseudo or self._tables.has(window, self.n_items - n_clicks)

    def table_bytes(self) -> int:
        """Memory of the tables."""
        return self._tables.nbytes

    def drop_tables(self, window: int) -> None:
        """Forget those of a window."""
        self._tables.drop(window)

    def look_up(
        self, block: Block, k: int, shares: NDArray[np.float64], table: NDArray[Any]
    ) -> None:
        """Fill the probabilities of some users without drawing their rankings."""
        if self.is_pseudo:
            look_up(block.starts, block.codes, self._stack, self._tables.of(k), shares, table)
            return
        for number, source in enumerate(self.sources):
            mine = np.ascontiguousarray(shares[:, number])
            if not mine.any():
                continue
            for draw, share in enumerate(source.shares):
                center = (source.draws[draw], source.alphas[draw] / self.n_items)
                next_rank_probabilities(
                    block.starts, block.codes, *center, k, share * mine, self._factors, table
                )

    def draw(self, block: Block, k: int, shares: NDArray[np.float64], table: NDArray[Any]) -> None:
        """Fill the probabilities of some users by counting draws."""
        n_users = len(block.starts) - 1
        ones = np.ones(n_users, dtype=np.int64)
        numbers = block.first + np.arange(n_users)
        counts, shared = np.zeros((2, self.n_items, self.n_items), dtype=np.int64)
        kept = np.zeros((n_users, self.n_items), dtype=np.int32)
        partners = np.full(self.n_items, -1)
        n_clicks = np.diff(block.starts)[:, None]
        for number, source in enumerate(self.sources):
            for draw, share in enumerate(source.shares):
                lam = source.alphas[draw] / self.n_items
                users = (number, draw, numbers, block.starts, block.codes, ones)
                if self.is_pseudo:
                    draw_users(*users, source.orderings[draw], lam, self.order, counts, kept)
                else:
                    law = (source.draws[draw], lam, partners)
                    draw_click_users(*users, *law, counts, shared, kept)
                hits = (kept > n_clicks) & (kept <= n_clicks + k)
                table += share * shares[:, number, None] * hits


class PersonalRecommender:
    """The same for consensuses of one's own."""

    def __init__(self, posterior: Posterior):
        assert posterior.personal is not None
        self._personal, self._clusters = posterior.personal, posterior.clusters
        self._items = posterior.items
        self.consensus = posterior.consensus[0, 0, 0]
        self.codes = {name: code for code, name in enumerate(posterior.items.tolist())}

    def begin(
        self,
        seen: Clicks,
        rows: NDArray[np.int64] | None,
        window: int,
        by: str,
        executor: Executor,
    ) -> Fill:
        """What fills the probabilities of some of these users; `rows` are theirs in the fit."""
        if by == "draws":
            raise ValueError("by='draws' is not there for method='personal': use by='look_up'")
        self._personal.prepare(seen, window)
        others = None
        if self._clusters is not None:
            others = chances_of(self._clusters, seen, window)

        def fill(part: slice) -> NDArray[np.float64]:
            blend = None if others is None else others[part]
            return self._personal.probabilities(seen, part, window, rows, blend)

        return fill

    def best(
        self, codes: NDArray[np.int32], row: int | None, window: int
    ) -> tuple[list[int], list[float], None]:
        """The best items of one user, and their chances."""
        seen, rows = self._one(codes), None if row is None else np.array([row])
        table = self.begin(seen, rows, window, "look_up", ONE)(slice(0, 1))
        items, chances = np.full((1, window), -1, dtype=np.int64), np.full((1, window), np.nan)
        choose_best(seen.starts, codes, table, self.consensus, items, chances)
        return items[0].tolist(), chances[0].tolist(), None

    def _one(self, codes: NDArray[np.int32]) -> Clicks:
        user, starts = np.array([""], dtype=object), np.array([0, len(codes)])
        return Clicks(np.ones(1, dtype=np.int64), user, self._items, starts, codes)

    def prepare_size(self, n_clicks: int, window: int) -> None:
        """Make the tables for all who have that many clicks."""
        seen = self._one(np.arange(n_clicks, dtype=np.int32))
        self.begin(seen, None, window, "look_up", ONE)

    def is_ready(self, n_clicks: int, window: int) -> bool:
        """Are they made?"""
        table, size = self._personal._tables.get(window), len(self._items) - n_clicks
        return size == 0 or (table is not None and not np.isnan(table[0, size, 0]))

    def table_bytes(self) -> int:
        """Memory of the tables."""
        return sum(table.nbytes for table in list(self._personal._tables.values()))

    def drop_tables(self, window: int) -> None:
        """Forget those of a window."""
        self._personal._tables.pop(window, None)

    def laws_of(
        self, seen: Clicks, rows: NDArray[np.int64] | None
    ) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]:
        """One consensus, and the alphas of the grid."""
        personal, all_rows = self._personal, slice(0, 1)
        scores = personal.scores_for(seen, all_rows, rows)
        rankings = personal.rankings_of(scores)
        shares = personal.alpha_shares_of(seen, all_rows, rankings)[0]
        return np.repeat(rankings, len(shares), axis=0), personal.alphas, shares


def _members_of(posterior: Posterior) -> Members:
    """By the leaders, if there are some, else by some of the draws."""
    n_chains, n_draws = posterior.consensus.shape[:2]
    chosen = _evenly(n_draws, max(1, N_CENTERS // n_chains))
    centers = posterior.consensus[:, chosen]
    if posterior.leaders.size:
        centers = posterior.leaders
        chosen = _evenly(n_draws, centers.shape[1])
    shares = np.log(np.maximum(posterior.shares[:, chosen], 1e-300))
    return Members(centers, posterior.alpha[:, chosen], shares)


def _evenly(length: int, number: int) -> NDArray[np.int64]:
    """At most `number` of the numbers below `length`, evenly spaced."""
    places = np.linspace(0, length - 1, min(number, length))
    return np.asarray(places.round().astype(np.int64))


def _common_consensus(posterior: Posterior) -> NDArray[np.int32]:
    """The consensus that breaks ties; of several clusters, by mean rank over the population."""
    if posterior.n_clusters == 1:
        return posterior.point_consensus()
    ranks = np.arange(1, posterior.n_items + 1)
    shares = posterior.shares.mean(axis=(0, 1))
    means = [posterior.rank_probabilities(k) @ ranks for k in range(posterior.n_clusters)]
    return orderings_of(orderings_of(shares @ np.array(means))).astype(np.int32) + 1
