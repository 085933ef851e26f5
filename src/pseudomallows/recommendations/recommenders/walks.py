"""Recommendations from clicks under Spearman's and Ulam's distance: latent rankings that walk, see
`kernels.latent.click_walks`.

A user's chance is how often an item's latent rank is among the next. Each user has a few walkers,
whose differences tell the Monte Carlo error. Those of a user of the fit go through draws of the
posterior: they stay a while at each, and are not seen at first, so that they forget the last one.
Those of a new user walk over the draws, too, so that each counts by the probability of the clicks
under it, as if the user had been in the fit; and so do clusters. The seed of a walk is the user's
clicks: equal clicks have equal answers, whoever else is asked for.
"""

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import distances
from ...engines.executors import Executor, blocks
from ...kernels.click_rows import ClickRows, slice_clicks
from ...kernels.latent import click_walks as kernels
from ...posteriors.posterior import Posterior, common_consensus
from ...rankings import orderings_of
from .chances import MAX_ERROR, Chances, Floats, Recommender, Users
from .exact_means import Tally, logs_of, spread, take_rows
from .halves import check_countable

KINDS = {"spearman": kernels.SPEARMAN, "ulam": kernels.ULAM}
N_WALKERS = 8
N_STAYS, N_UNSEEN = 6, 2  # visits to one draw, in a row, and those of them that are not counted
N_DRAWS = 4  # that a walker visits in a round
MOST_ROUNDS = 16  # unless no error is allowed, and there are more draws
FIRST_SWEEPS, START_SWEEPS, SEEN_SWEEPS = 30, 2, 6  # of a walker, of a visit, with a look each
FEW_DRAWS = 2 * N_WALKERS  # of a posterior, of which each walker visits all
ROOM = 2**22  # numbers at hand: rows times walkers times items
MOST_CELLS = 20_000_000  # users times items in one call, hours of work
SEED = 20_261_117


@dataclass
class Walk:
    """What some rows have seen so far."""

    walkers: kernels.Walkers
    tally: Tally
    parts: Floats  # [walker, row, part, item]
    shares: Floats  # [walker, row, cluster]

    def take(self, rows: NDArray[np.bool_]) -> "Walk":
        """That of some rows."""
        walkers = kernels.Walkers(self.walkers.seats[rows], self.walkers.draws[rows])
        parts, shares = (np.ascontiguousarray(x[:, rows]) for x in (self.parts, self.shares))
        return Walk(walkers, self.tally.take(rows), parts, shares)


class WalkRecommender(Recommender):
    """Counts of the latent ranks of walkers."""

    rows_at_once = 1 << 10  # they take a while

    def __init__(self, posterior: Posterior):
        super().__init__(posterior.items, common_consensus(posterior), posterior.chain_memberships)
        self._distance = distances.get(posterior.settings["distance"])
        self.n_clusters = posterior.n_clusters
        self._weights = posterior.weights.reshape(-1)
        self._draws = np.flatnonzero(self._weights > 0)
        self._shares = posterior.shares.reshape(-1, self.n_clusters)
        self._alphas = posterior.alpha.reshape(-1, self.n_clusters)
        self._orderings = orderings_of(posterior.consensus.reshape(-1, self.n_items))

    @functools.cached_property
    def _laws(self) -> kernels.WalkLaws:
        """All draws."""
        values, places = np.unique(self._alphas, return_inverse=True)
        sums = [self._distance.log_partition(self.n_items, alpha) for alpha in values.tolist()]
        log_weights = logs_of(self._weights[:, None] * self._shares)
        logs = log_weights - np.array(sums)[places].reshape(self._alphas.shape)
        orderings = self._orderings.reshape(*self._alphas.shape, self.n_items).astype(np.int32)
        kind = KINDS[self._distance.name]
        return kernels.WalkLaws(kind, orderings, self._alphas / self.n_items, logs)

    def chances(
        self, users: Users, k: int, window: int, max_error: float, executor: Executor
    ) -> Chances:
        """As many rounds as the error wants, up to a limit."""
        self._check_size(users.clicks.n_users)

        def table(part: slice) -> tuple[Floats, Floats]:
            clicks = users.block(part)
            size = max(1, ROOM // (N_WALKERS * self.n_items))
            means, errors = np.zeros((2, part.stop - part.start, self.n_items))
            for few in blocks(len(means), size):
                mine = slice_clicks(clicks, few)
                means[few], errors[few] = self._walk(mine, users.is_new, k, window, max_error)[:2]
            return means, errors

        memberships = functools.partial(self.memberships, users, executor)
        return Chances(users, self.consensus, table, memberships)

    def _check_size(self, n_users: int) -> None:
        """Refuse what would take many hours, before any work."""
        if n_users * self.n_items > MOST_CELLS:
            raise ValueError(
                f"recommendations by distance={self._distance.name!r} draw rankings of each user, "
                f"for at most {MOST_CELLS:,} users times items at a time, got {n_users:,} users "
                f"and {self.n_items:,} items: ask for fewer users (users=), or fit again with "
                "distance='footrule' or 'kendall'"
            )

    def cluster_chances(
        self, users: Users, k: int, window: int, executor: Executor
    ) -> tuple[Floats, Floats]:
        """From the same walk as `chances`; a cluster counts as often as a walker was there, so that
        no item's chance in it is above 1."""
        clicks, n_parts = users.block(slice(0, 1)), self.n_clusters
        _, _, shares, parts = self._walk(clicks, users.is_new, k, window, MAX_ERROR, n_parts)
        n_next = min(window, self.n_items - int(users.clicks.n_clicks[0]))
        return parts[0].sum(axis=1) / n_next if n_next else shares[0], parts[0]

    def counted_chances(self, users: Users, window: int, executor: Executor) -> Chances:
        """`chances` counts draws; here all of them."""
        return self.chances(users, self.n_items, window, 0.0, executor)

    def new_memberships(self, users: Users, executor: Executor) -> Floats:
        """From the walk over draws and clusters, as long as for recommendations of one item."""
        self._check_size(users.clicks.n_users)

        def work(part: slice) -> Floats:
            return self._walk(users.block(part), True, 1, 1, MAX_ERROR)[2]

        parts = list(executor.map(work, blocks(users.clicks.n_users)))
        return np.concatenate([np.empty((0, self.n_clusters)), *parts])

    def draw_ranks(self, users: Users, n_draws: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """``counts[item, rank - 1]`` of rankings drawn for one user."""
        check_countable(self.n_items)
        clicks, seed = users.block(slice(0, 1)), int(rng.integers(2**62))
        n_seen = N_WALKERS * N_DRAWS * (N_STAYS - N_UNSEEN)
        walk, seen, weights = self._begin(1, 1), [], []
        for number in range(-(-n_draws // n_seen)):
            visits = self._visits(number, users.is_new, seed)
            shape = (1, *visits.draws.shape, self.n_items)
            latent = np.empty(shape, dtype=np.int32)
            self._add(clicks, visits, 1, walk, latent)
            is_seen = visits.weights > 0
            seen.append(latent[0][is_seen])
            weights.append(visits.weights[is_seen])
        all_weights = np.concatenate(weights)
        chosen = rng.choice(len(all_weights), n_draws, p=all_weights / all_weights.sum())
        counts = np.zeros((self.n_items, self.n_items), dtype=np.int64)
        np.add.at(counts, (np.arange(self.n_items), np.concatenate(seen)[chosen] - 1), 1)
        return counts

    # Walks

    def _walk(
        self,
        clicks: ClickRows,
        is_new: bool,
        k: int,
        window: int,
        max_error: float,
        n_parts: int = 1,
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Means and errors ``[row, item]``, ``shares[row, cluster]``, ``parts[row, part, item]``,
        which add up to the means; round by round, until the errors are small."""
        n_rows = len(clicks.starts) - 1
        means, errors = np.zeros((2, n_rows, self.n_items))
        shares, parts = (
            np.zeros((n_rows, self.n_clusters)),
            np.zeros((n_rows, n_parts, self.n_items)),
        )
        left, walk, number = np.arange(n_rows), self._begin(n_rows, n_parts), 0
        while len(left) and number < self._most_rounds(is_new, max_error):
            for _ in range(max(1, number)):  # look again when there is twice as much to see
                self._add(clicks, self._visits(number, is_new), window, walk)
                number += 1
            means[left], errors[left], worst = walk.tally.means(k)
            total = walk.tally.totals.sum(axis=0)
            shares[left] = walk.shares.sum(axis=0) / total[:, None]
            parts[left] = walk.parts.sum(axis=0) / total[:, None, None]
            is_open = ~(worst <= max_error) | (max_error == 0)
            if not is_open.all():
                left, walk, clicks = left[is_open], walk.take(is_open), take_rows(clicks, is_open)
        return means, errors, shares, parts

    def _most_rounds(self, is_new: bool, max_error: float) -> int:
        """Enough to visit all draws, if no error is allowed."""
        n_rounds = -(-len(self._draws) // (N_WALKERS * N_DRAWS))
        return max(MOST_ROUNDS, n_rounds) if max_error == 0 else MOST_ROUNDS

    def _begin(self, n_rows: int, n_parts: int) -> Walk:
        seats = np.full((n_rows, N_WALKERS, self.n_items), -1, dtype=np.int32)
        return Walk(
            kernels.Walkers(seats, np.zeros((n_rows, N_WALKERS), dtype=np.int64)),
            Tally.of_nothing(N_WALKERS, n_rows, self.n_items),
            np.zeros((N_WALKERS, n_rows, n_parts, self.n_items)),
            np.zeros((N_WALKERS, n_rows, self.n_clusters)),
        )

    def _visits(self, number: int, is_new: bool, seed: int = SEED) -> kernels.Visits:
        """Those of a round."""
        n_visits = N_DRAWS * N_STAYS
        sweeps = (FIRST_SWEEPS, START_SWEEPS, SEEN_SWEEPS)
        if is_new:
            rng = np.random.default_rng((seed, number))
            draws = rng.choice(self._draws, (N_WALKERS, n_visits))
            weights = np.ones(draws.shape)
        else:
            chosen = [self._draws_of(walker, number) for walker in range(N_WALKERS)]
            draws = np.repeat(np.array(chosen), N_STAYS, axis=1)
            weights = self._weights[draws] * (np.arange(n_visits) % N_STAYS >= N_UNSEEN)
        return kernels.Visits(draws, weights, seed, number * n_visits, is_new, *sweeps)

    def _draws_of(self, walker: int, number: int) -> NDArray[np.int64]:
        """Draws that a walker visits in a round: the walkers share them, unless they are few."""
        mine = self._draws
        if len(mine) > FEW_DRAWS:
            mine = np.array_split(mine, N_WALKERS)[walker]
        turns = np.arange(number * N_DRAWS, (number + 1) * N_DRAWS)
        return np.asarray(mine[spread(len(mine))[turns % len(mine)]])

    def _add(
        self,
        clicks: ClickRows,
        visits: kernels.Visits,
        window: int,
        walk: Walk,
        latent: NDArray[np.int32] | None = None,
    ) -> None:
        """Make the visits of a round, and count what is seen."""
        parts = np.zeros_like(walk.parts)
        none = np.empty((0, 0, 0, 0), dtype=np.int32)
        seen = kernels.Seen(parts, walk.shares, none if latent is None else latent)
        kernels.walk_rows(clicks, self._laws, visits, window, walk.walkers, seen)
        walk.parts += parts
        walk.tally.sums += parts.sum(axis=2)
        walk.tally.totals += visits.weights.sum(axis=1)[:, None]
        walk.tally.squares += (visits.weights**2).sum()
