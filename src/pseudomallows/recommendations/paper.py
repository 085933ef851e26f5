"""Recommendations by the paper's law: look-ups in tables that serve all users."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engines.executors import Executor, all_cores, blocks
from ..kernels.footrule.memberships import share_out
from ..kernels.groups import choose_best, draw_users, look_up, look_up_best, look_up_best_rows
from ..latent.clicks import ORDERS
from ..posteriors.posterior import Posterior, common_consensus
from ..preferences.preferences import Clicks
from ..rankings import orderings_of
from .exact import logs_of
from .memberships import Members
from .tables import Table, Tables

N_CENTERS = 16  # draws, over all chains, by which a new user's cluster is found
LEFT_OUT = 0.01  # of a user's memberships, at most: clusters that would count for nearly nothing
FEW_ITEMS = 8  # up to this part of the items, the best are looked up alone

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Draws:
    """Draws of one consensus: those of a cluster in a chain; of all chains, if one cluster."""

    orderings: NDArray[np.int32]
    alpha: float
    shares: Floats  # of the draws; they sum to 1


class PseudoRecommender:
    """Look-ups. The draws of a consensus are rough, so they count alike for new users too; which
    cluster a new user belongs to is found by a few exact consensuses, weighed by the clicks."""

    def __init__(self, posterior: Posterior):
        n_chains, _, self.n_clusters, self.n_items = posterior.consensus.shape
        self.order = ORDERS[posterior.settings["options"]["order"] or "uniform"]
        weights = posterior.weights
        self.chain_weights = weights.sum(axis=1)
        self.chain_memberships = posterior.chain_memberships
        if self.n_clusters == 1:
            draws = posterior.consensus[:, :, 0].reshape(-1, self.n_items)
            self.sources = [_draws(draws, posterior.alpha.ravel(), weights.ravel())]
        else:
            self.sources = [
                _draws(
                    posterior.consensus[chain, :, cluster],
                    posterior.alpha[chain, :, cluster],
                    weights[chain] * posterior.shares[chain, :, cluster],
                )
                for chain in range(n_chains)
                for cluster in range(self.n_clusters)
            ]
        alphas, self.laws = np.unique([s.alpha for s in self.sources], return_inverse=True)
        orderings = np.concatenate([source.orderings for source in self.sources])
        self._stack = (
            orderings,
            np.concatenate([source.shares for source in self.sources]),
            np.cumsum([0, *(len(source.shares) for source in self.sources)]),
            self.laws,
        )
        self._tables = Tables(alphas, self._stack, self.order)
        self._ranks = (orderings_of(orderings).astype(np.int32) + 1).T.copy()
        self._find_members = functools.partial(_members_of, posterior)
        self.consensus = common_consensus(posterior)
        self.codes = {name: code for code, name in enumerate(posterior.items.tolist())}

    # Whole tables of chances

    def begin(
        self,
        seen: Clicks,
        rows: NDArray[np.int64] | None,
        window: int,
        by: str,
        executor: Executor,
    ) -> Callable[[slice], Floats]:
        """What fills the chances of all items."""
        shares = self._shares_of(seen, rows, executor)[0]
        tables = self._make_tables(seen.n_clicks, window, shares) if by == "look_up" else None

        def fill(part: slice) -> Floats:
            chances = np.zeros((part.stop - part.start, seen.n_items))
            starts = seen.starts[part.start : part.stop + 1]
            if tables is None:
                self.draw(part.start, starts, seen.codes, window, shares[part], chances)
            else:
                look_up(starts, seen.codes, self._stack, tables, shares[part], chances)
            return chances

        return fill

    def draw(
        self,
        first: int,
        starts: NDArray[np.int64],
        codes: NDArray[np.int32],
        k: int,
        shares: Floats,
        chances: Floats,
    ) -> None:
        """Fill the chances of some users, from number `first` on, by counting draws."""
        numbers, n_clicks = first + np.arange(len(starts) - 1), np.diff(starts)
        counts = np.zeros((self.n_items, self.n_items), dtype=np.int64)
        kept = np.zeros((len(numbers), self.n_items), dtype=np.int32)
        for place, source in enumerate(self.sources):
            lam = source.alpha / self.n_items
            for draw, share in enumerate(source.shares):
                users = (place, draw, numbers, starts, codes, np.ones_like(numbers))
                draw_users(*users, source.orderings[draw], lam, self.order, counts, kept)
                hits = (kept > n_clicks[:, None]) & (kept <= n_clicks[:, None] + k)
                chances += share * shares[:, place, None] * hits

    # The best items

    def begin_best(
        self,
        seen: Clicks,
        rows: NDArray[np.int64] | None,
        k: int,
        window: int,
        executor: Executor,
        max_error: float,
    ) -> Callable[..., None]:
        """What fills the k best items; the errors are not known, and stay as they are."""
        shares = self._shares_of(seen, rows, executor)[0]
        tables = self._make_tables(seen.n_clicks, window, shares)
        law = (self._ranks, self._stack, tables)

        def fill(part: slice, items: NDArray[np.int64], chances: Floats, errors: Floats) -> None:
            mine = (seen.starts[part.start : part.stop + 1], seen.codes)
            if k <= self.n_items // FEW_ITEMS:  # quicker than by the chances of all
                look_up_best_rows(*mine, *law, shares[part], self.consensus, items, chances)
                return
            table = np.zeros((len(items), self.n_items))
            look_up(*mine, self._stack, tables, shares[part], table)
            choose_best(*mine, table, self.consensus, items, chances)

        return fill

    def best(
        self, codes: NDArray[np.int32], row: int | None, window: int
    ) -> tuple[list[int], list[float], list[float]]:
        """The same for one user, without the work that pays for many only; and memberships."""
        if row is None:
            shares, means = self._share_out(self._found(np.array([0, len(codes)]), codes))
        else:
            found = self.chain_memberships[:, row : row + 1]
            shares, _ = self._share_out(found, self.chain_weights)
            means = found.mean(axis=0, dtype=np.float64)
        items, chances = np.full(window, -1, dtype=np.int64), np.full(window, np.nan)
        size = self.n_items - len(codes)
        if size > 0:
            tables = self._tables.whole(window, size)
            if tables is None:
                tables = self._make_tables(np.array([len(codes)]), window, shares)
            law = (self._ranks, self._stack, tables)
            look_up_best(codes, *law, shares[0], self.consensus, items, chances)
        return items.tolist(), chances.tolist(), means[0].tolist()

    # Memberships

    def memberships_of(self, seen: Clicks, executor: Executor) -> Floats:
        """``[user, cluster]`` of new users."""
        return self._shares_of(seen, None, executor)[1]

    def _shares_of(
        self, seen: Clicks, rows: NDArray[np.int64] | None, executor: Executor
    ) -> tuple[Floats, Floats]:
        """``shares[user, source]``, the least left out, and ``means[user, cluster]``."""
        if rows is not None:
            return self._share_out(self.chain_memberships[:, rows], self.chain_weights)

        def work(part: slice) -> NDArray[Any]:
            return self._found(seen.starts[part.start : part.stop + 1], seen.codes)

        parts = list(executor.map(work, blocks(seen.n_users))) or [
            np.ones((len(self.chain_weights), 0, self.n_clusters))
        ]
        return self._share_out(np.concatenate(parts, axis=1))

    def _found(self, starts: NDArray[np.int64], codes: NDArray[np.int32]) -> Floats:
        """``[chain, row, cluster]`` of new users: how much each chain, and its clusters, count."""
        n_chains, n_rows = len(self.chain_weights), len(starts) - 1
        if self._members is None:
            return np.broadcast_to(self.chain_weights[:, None, None], (n_chains, n_rows, 1))
        logs = np.empty((n_rows, self._members.n_draws * self.n_clusters))
        self._members.fill(starts, codes, logs)
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        by_chain = weights.reshape(n_rows, n_chains, -1, self.n_clusters).sum(axis=2)
        return np.ascontiguousarray(by_chain.transpose(1, 0, 2))

    def _share_out(
        self, found: NDArray[Any], chain_weights: Floats | None = None
    ) -> tuple[Floats, Floats]:
        n_chains, n_users, _ = found.shape
        shares, means = np.empty((n_users, len(self.sources))), np.empty((n_users, self.n_clusters))
        if self.n_clusters == 1:
            shares.fill(1.0)
            means.fill(1.0)
        else:
            weights = np.ones(n_chains) if chain_weights is None else chain_weights
            mine = np.ascontiguousarray(found, dtype=np.float64)
            share_out(mine, weights, LEFT_OUT, shares, means)
        return shares, means

    @functools.cached_property
    def _members(self) -> Members | None:
        """What tells the clusters of new users, if there are several; made when one asks."""
        return self._find_members() if self.n_clusters > 1 else None

    # One user's rankings

    def draw_ranks(
        self, seen: Clicks, rows: NDArray[np.int64] | None, n_draws: int, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """``counts[item, rank - 1]`` of rankings drawn for one user."""
        shares = self._shares_of(seen, rows, all_cores())[0][0]
        counts = np.zeros((self.n_items, self.n_items), dtype=np.int64)
        pairs = zip(shares, self.sources, strict=True)
        numbers = rng.multinomial(n_draws, np.concatenate([p * s.shares for p, s in pairs]))
        seed, user, none = int(rng.integers(2**63)), np.zeros(1, np.int64), np.empty((0, 0))
        kept, orderings = none.astype(np.int32), self._stack[0]
        sources = np.repeat(np.arange(len(self.sources)), np.diff(self._stack[2]))
        for draw in np.flatnonzero(numbers).tolist():
            lam = self.sources[sources[draw]].alpha / self.n_items
            who = (seed, draw, user, seen.starts, seen.codes, numbers[draw : draw + 1])
            draw_users(*who, orderings[draw], lam, self.order, counts, kept)
        return counts

    # Tables

    def _make_tables(self, n_clicks: NDArray[np.int64], window: int, shares: Floats) -> Table:
        """The tables that users with so many clicks need; one serves all users, and all later
        calls."""
        wanted = set()
        for place, law in enumerate(self.laws.tolist()):
            sizes = np.unique(self.n_items - n_clicks[shares[:, place] > 0])
            wanted |= {(law, size) for size in sizes.tolist()}
        return self._tables.of(window, wanted)

    def prepare_size(self, n_clicks: int, window: int) -> None:
        """Make the tables for all who have that many clicks."""
        self._make_tables(np.array([n_clicks]), window, np.ones((1, len(self.sources))))

    def is_ready(self, n_clicks: int, window: int) -> bool:
        """Are they made?"""
        size = self.n_items - n_clicks
        return size == 0 or self._tables.whole(window, size) is not None

    def table_bytes(self) -> int:
        """Memory of the tables."""
        return self._tables.nbytes

    def drop_tables(self, window: int) -> None:
        """Forget those of a window."""
        self._tables.drop(window)


def _draws(draws: NDArray[np.int32], alphas: Floats, weights: Floats) -> Draws:
    """Draws of one consensus; they have one alpha, that of the first."""
    orderings = np.ascontiguousarray(orderings_of(draws).astype(np.int32))
    return Draws(orderings, float(alphas[0]), weights / max(float(weights.sum()), 1e-300))


def _members_of(posterior: Posterior) -> Members:
    """By the leaders, if there are some, else by some of the draws."""
    n_chains, n_draws, n_clusters, n_items = posterior.consensus.shape
    chosen = _evenly(n_draws, min(n_draws, max(1, N_CENTERS // n_chains)))
    centers = posterior.consensus[:, chosen]
    if posterior.leaders.size:
        centers = posterior.leaders
        chosen = _evenly(n_draws, centers.shape[1])  # there may be more leaders than draws
    shares = posterior.weights[:, chosen, None] * posterior.shares[:, chosen]
    return Members(
        centers.reshape(-1, n_clusters, n_items),
        posterior.alpha[:, chosen].reshape(-1, n_clusters),
        logs_of(shares).reshape(-1, n_clusters),
    )


def _evenly(length: int, number: int) -> NDArray[np.int64]:
    """So many of the numbers below `length`, evenly spaced."""
    places = np.linspace(0, length - 1, number)
    return np.asarray(places.round().astype(np.int64))
