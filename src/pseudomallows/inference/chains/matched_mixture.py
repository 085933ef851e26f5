"""Clusters of users of clicks, by the matched law, with or without the exact correction.

What moves are the clusters: their consensuses, alphas and shares. A sweep leads some of them after
the other along the matched posterior, in rounds: the users draw labels by the matched law, a sum
over clicks; given them the shares are drawn and these clusters move. Labels are forgotten after it.
A round is reversible, and so are many like it; so one exact correction at the end, of all of them
at once, by how much more the exact likelihood changed than the matched one, both with the labels
summed out, leaves the exact posterior as it is (a surrogate transition).
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...distances.tallies import Counts, Ranking
from ...engines.executors import all_cores, is_remote
from ...files.saved import Saved
from ...kernels.matched import add_scores
from ...kernels.streams import CENTRE, start_stream, uniform
from ...latent.click_laws import ClickLaw, ClickTally
from ...latent.matched.matched_users import (
    ClusterLaws,
    LabelDraw,
    MatchedLaws,
    MatchedUsers,
    Values,
)
from ...latent.population import Population
from ...rankings import MAX_ALPHA
from .clustered import MAX_SWEEPS, Clustered
from .matched_cluster import N_STEPS_ALONE, MatchedCluster, Place, Snapshot

LEAST_MOVES, MOST_MOVES = 1.0, 200.0  # swaps of a cluster before a correction, for each item
FIRST_MOVES = 100.0
TARGET = 0.6  # of the corrections are to be accepted, unless no sweep can be longer
ROUND_MOVES = 10.0  # swaps of each of several clusters in a round, for each item, at least
CLUSTER_MOVES = 40.0  # in all rounds of a sweep, if these are few; before a correction at most
SHARP, FALL = 50.0, 2.0  # alpha / n_items that is as good as infinite; a fall in log likelihood
UNKNOWN = Values(math.nan, math.nan)


class MatchedMixture(Clustered[MatchedCluster]):
    """One chain: clusters, each with its consensus, alpha and share.

    One cluster alone is a mixture without labels, whose tally never changes. With `is_corrected`
    the exact posterior is left as it is, else the matched one.
    """

    first_moves, most_moves = FIRST_MOVES, MOST_MOVES
    least_rounds, most_rounds = 2, 10  # of several clusters in a sweep
    changes = 0.005  # share of users with another label that is worth one

    def __init__(
        self,
        population: Population,
        law: ClickLaw,
        clusters: Sequence[MatchedCluster],
        shares: NDArray[np.float64],
        share_prior: float,
        is_corrected: bool,
        n_moves: int | None,  # of each cluster in a sweep; None: the warmup finds how many
        rng: np.random.Generator,
    ):
        self.population, self.law = population, law
        self.clusters, self.shares, self._rng = list(clusters), shares, rng
        self._share_prior, self.is_corrected = share_prior, is_corrected
        self._seed = int(rng.integers(2**63))
        self._users = MatchedUsers(population, law, len(self.clusters))
        self._reference: ClusterLaws | None = None
        self.values = UNKNOWN  # where the chain stands, if they are known
        self.n_sweeps = self.n_rounds = self._n_kept = 0
        self._rounds_each = float(self.least_rounds)  # of a sweep
        self._n_unlikely = 0  # labels that are not the likeliest, in the last round
        self._n_moves = n_moves
        self.log_moves = math.log(n_moves or self.first_moves * self.n_items)
        if self.n_clusters == 1:
            self.clusters[0].n_alpha_steps = N_STEPS_ALONE
        if law.alpha_steps is not None:
            for cluster in self.clusters:
                cluster.n_alpha_steps = law.alpha_steps
        remote = is_remote(population.executor)
        self._executor = all_cores() if remote else population.executor

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.population.n_items

    @property
    def evidence(self) -> NDArray[Any]:
        """``evidence[cluster]``: numbers whose mean over draws says which consensus is best."""
        return np.stack([cluster.tally.evidence(cluster.alpha) for cluster in self.clusters])

    @property
    def has_users(self) -> list[bool]:
        """Is anyone in each cluster?"""
        return [cluster.has_users for cluster in self.clusters]

    @property
    def mean_memberships(self) -> NDArray[np.float64]:
        """``memberships[row, cluster]``: mean over the sweeps that kept them, or the present."""
        if self._n_kept:
            return self._users.gather_kept() / self._n_kept
        self.ensure_likelihoods()
        return np.asarray(self._users.gather_present(), dtype=np.float64)

    def laws(self) -> ClusterLaws:
        """The exact laws of the clusters."""
        return ClusterLaws(self.consensus, self.alpha)

    def log_posterior(self) -> float:
        """Log posterior density, labels and latent rankings summed out: exact, or matched."""
        self.ensure_likelihoods()
        log_prior = (self._share_prior - 1) * float(self._log_shares().sum())
        return self.values.exact + log_prior + sum(each.log_prior() for each in self.clusters)

    def begin(self, labels: NDArray[np.int32]) -> None:
        """Take first labels."""
        self._take_tallies(self._users.tallies(labels))
        self.values = UNKNOWN

    def _take_tallies(self, tallies: list[ClickTally]) -> None:
        for cluster, tally in zip(self.clusters, tallies, strict=True):
            cluster.tally = tally

    def count_anew(self) -> None:
        """Count sweeps from here, those before being a start; with another seed, so that no random
        number comes twice."""
        self.n_sweeps = self.n_rounds = 0
        self._seed = int(self._rng.integers(2**63))

    def forget(self) -> None:
        """Keep memberships from here on, and leave room for other chains until then."""
        self._users.forget()
        self._n_kept, self.values = 0, UNKNOWN

    def follow(self, reference: ClusterLaws) -> None:
        """From now on the clusters take the order in which they agree best with these."""
        laws = self._additive(reference)
        self._reference = reference
        self._reference_weights = laws.log_weights.reshape(-1, self.n_clusters)
        self._reference_constants = laws.constants

    def sweep(self, adapt: bool) -> None:
        """Lead the clusters along the matched posterior; with a correction, accept where the one
        cluster ends, or go back."""
        self.n_sweeps += 1
        if self._reference is None and not adapt:
            self.follow(self.laws())
        if self.is_corrected:
            self.ensure_likelihoods()
            before = self.clusters[0].place, self.values
            self.run_rounds(*self._lengths(), adapt)
            self._judge(*before, adapt)
        else:
            self.run_rounds(*self._lengths(), adapt)
            if adapt:
                self._adapt_rounds(self._n_unlikely)
        if self.n_clusters > 1:
            order = self._best_order()
            if not adapt:
                self.ensure_likelihoods()
                self._users.settle(order, keeps=True)
                self._n_kept += 1
            self.clusters = [self.clusters[number] for number in order]
            self.shares = self.shares[order]

    def _lengths(self) -> tuple[int, int]:
        """Rounds of a sweep, and the swaps of each cluster in a round."""
        if self.n_clusters == 1 or self.law.is_exact:
            return 1, round(math.exp(self.log_moves))
        if self._n_moves is None:
            n_rounds = round(self._rounds_each)
            n_moves = max(ROUND_MOVES, CLUSTER_MOVES / n_rounds) * self.n_items
            return n_rounds, round(n_moves)
        n_rounds = max(1, round(self._n_moves / (ROUND_MOVES * self.n_items)))
        return n_rounds, max(1, round(self._n_moves / n_rounds))

    def run_rounds(self, n_rounds: int, n_moves: int, adapt: bool) -> None:
        """So many rounds, which leave the matched posterior as it is; in the warmup clusters that
        are empty begin anew."""
        self.law.prepare(self.alpha)
        for _ in range(n_rounds):
            if self.n_clusters > 1:
                self.draw_tallies()
            self._move(n_moves, adapt)
            if adapt:
                self._fill_empty()
        self.values = UNKNOWN

    def draw_tallies(self) -> None:
        """The users draw labels by the matched law, and the clusters count them."""
        tallies, self._n_unlikely = self._users.draw(self.matched_laws(), self._next_draw())
        self._take_tallies(tallies)

    def _next_draw(self) -> LabelDraw:
        self.n_rounds += 1
        return LabelDraw(self._seed, self.n_rounds)

    def _move(self, n_moves: int, adapt: bool) -> None:
        """Draw the shares and move the clusters, each given its users."""
        if self.n_clusters > 1:
            sizes = [int(cluster.tally.n_users.sum()) for cluster in self.clusters]
            self.shares = self._rng.dirichlet(self._share_prior + np.array(sizes))
        used = [cluster for cluster in self.clusters if cluster.has_users]
        list(self._executor.map(lambda cluster: cluster.move(n_moves, adapt), used))
        for cluster in self.clusters:
            if not cluster.has_users:
                cluster.draw_from_prior()

    def _judge(self, place: Place, values: Values, adapt: bool) -> None:
        """Accept where the cluster is, or go back."""
        self.ensure_likelihoods()
        change = self.values.exact - values.exact
        log_ratio = change - (self.values.matched - values.matched)
        if not math.log1p(-self._rng.random()) < log_ratio:
            self.clusters[0].restore(place)
            self.values = values
        if adapt and self._n_moves is None:
            self._adapt_length(min(1.0, math.exp(min(log_ratio, 0.0))))

    def _adapt_length(self, probability: float) -> None:
        """Longer sweeps if more than wanted are accepted, else shorter ones."""
        length = self.log_moves + 2 * (probability - TARGET) / math.sqrt(1 + self.n_sweeps)
        low, high = math.log(LEAST_MOVES * self.n_items), math.log(self.most_moves * self.n_items)
        self.log_moves = min(max(length, low), high)

    def _adapt_rounds(self, n_changes: int) -> None:
        """More rounds in a sweep where many users have another label, else fewer."""
        if self._n_moves is not None or self.n_clusters == 1:
            return
        wanted = n_changes / (self.population.n_rows * self.changes)
        step = (wanted - self._rounds_each) / math.sqrt(1 + self.n_sweeps)
        number = max(self._rounds_each + step, float(self.least_rounds))
        self._rounds_each = min(number, float(self.most_rounds))

    def ensure_likelihoods(self) -> None:
        """Compute the likelihoods where the chain stands, unless they are known."""
        if math.isnan(self.values.exact):
            self.values = self._weigh()

    def _weigh(self) -> Values:
        if self.n_clusters == 1 and not self.is_corrected:
            cluster = self.clusters[0]
            value = cluster.curve(cluster.alpha)
            return Values(value, value)
        return self._users.weigh(self.matched_laws(), self.laws() if self.is_corrected else None)

    def matched_laws(self) -> MatchedLaws:
        """The clusters by the law that adds up over clicks."""
        return self._additive(self.laws())

    def _additive(self, laws: ClusterLaws) -> MatchedLaws:
        alphas = laws.alphas.tolist()
        constants = np.stack([self.law.constants(alpha) for alpha in alphas], axis=1)
        log_weights = np.empty((self.law.groups.n_groups, self.n_items, self.n_clusters))
        for number, (ranks, alpha) in enumerate(zip(laws.ranks, alphas, strict=True)):
            self.law.fill_log_weights(ranks, alpha, number, log_weights)
        return MatchedLaws(log_weights, constants, self._log_shares())

    def _log_shares(self) -> NDArray[np.float64]:
        with np.errstate(divide="ignore"):
            return np.maximum(np.log(self.shares), -1e300)

    def _best_order(self) -> Counts:
        """The order of the clusters in which their users are best explained by the reference."""
        if self._reference is None:
            return np.arange(self.n_clusters)
        from scipy.optimize import linear_sum_assignment

        n_users = np.stack([cluster.tally.n_users for cluster in self.clusters])
        scores = np.zeros((self.n_clusters, self.n_clusters))
        for cluster, mine in zip(self.clusters, scores, strict=True):
            add_scores(cluster.tally.counts.ravel(), self._reference_weights, mine)
        scores = (scores + n_users @ self._reference_constants).T
        return np.asarray(linear_sum_assignment(-scores)[1])

    def _fill_empty(self) -> None:
        """Give an empty cluster a broad law, which takes in the users that the others explain
        worst."""
        empty = [cluster for cluster in self.clusters if not cluster.has_users]
        if not empty:
            return
        used = [cluster for cluster in self.clusters if cluster.has_users]
        alpha = float(np.median([cluster.alpha for cluster in used])) / 2
        everyone = used[0].tally
        for cluster in used[1:]:
            everyone = everyone + cluster.tally
        for cluster in empty:
            cluster.consensus = everyone.best(alpha)
            if not cluster.is_fixed:
                cluster.alpha = alpha
        self.shares = np.maximum(self.shares, 1 / self.n_clusters)
        self.shares = self.shares / self.shares.sum()

    def difference(self) -> float:
        """Exact minus matched log likelihood of all users where the chain stands, their labels
        summed out."""
        if self.law.is_exact:
            return 0.0
        exact, matched = self._users.compare(self.matched_laws(), self.laws())
        return exact - matched

    def unbounded(self) -> list[bool]:
        """``[cluster]``: does nothing in the data bound its alpha from above?

        That is so if some consensus leaves no user in disagreement: then the likelihood does not
        fall from the present alpha to infinity. The matched law is too kind there, so it knows
        where it is worth while to ask the exact one.
        """
        labels = self._labels_now()
        if self.n_clusters > 1:
            self._take_tallies(self._users.tallies(labels))
        sharp = [max(SHARP * self.population.n_items, 10 * c.alpha) for c in self.clusters]
        sharpest = [c.tally.best(a) for c, a in zip(self.clusters, sharp, strict=True)]
        found = []
        for cluster, alpha, best in zip(self.clusters, sharp, sharpest, strict=True):
            here = cluster.curve(cluster.alpha)
            found.append(cluster.tally.curve(best)(alpha) >= here - FALL)
        if self.law.is_exact or not any(found):
            return found
        sharp_laws = ClusterLaws(np.stack(sharpest), np.array(sharp))
        present = self._users.log_likelihoods(self.laws(), labels)
        then = self._users.log_likelihoods(sharp_laws, labels)
        limits = zip(found, present, then, strict=True)
        return [is_near and after >= before - FALL for is_near, before, after in limits]

    def _labels_now(self) -> NDArray[np.int32]:
        """Labels that go with the state."""
        if self.n_clusters == 1:
            return np.zeros(self.population.n_rows, dtype=np.int32)
        return self._users.draw_labels(self.matched_laws(), self._next_draw())

    def moved_to(self, population: Population) -> "MatchedMixture":
        """The same clusters for other users."""
        new = MatchedMixture(
            population,
            self.law,
            self.clusters,
            self.shares,
            share_prior=self._share_prior,
            is_corrected=self.is_corrected,
            n_moves=self._n_moves,
            rng=self._rng,
        )
        new.draw_tallies()
        return new

    def latent_of(self, users: NDArray[np.int64]) -> Ranking:
        """Latent rankings of some users, drawn given the state, each in a cluster drawn by its
        memberships; those of a user who says nothing are the shares."""
        if self.n_clusters == 1:
            return self.population.latent_of(users, self.clusters[0].origin)
        memberships = self._users.gather_present()
        found = np.empty((len(users), self.population.n_items), dtype=np.int32)
        stream = np.empty(1, dtype=np.uint64)
        for place, user in enumerate(users):
            clicks, number, row = self.population.row_of(int(user))
            start_stream(self._seed, self.n_sweeps, CENTRE + number, stream)
            edges = np.cumsum(self.shares if row is None else memberships[row])
            label = int(np.searchsorted(edges, uniform(stream) * edges[-1], "right"))
            clicks = replace(clicks, weights=np.ones(1, dtype=np.int64))
            origin = self.clusters[label].origin
            found[place] = self.population.redraw(clicks, np.array([number]), origin)[0]
        return found

    def snapshot(self) -> Snapshot:
        """Where the chain stands, with labels that the users draw."""
        return Snapshot(self.consensus, self.alpha, self.shares, self._labels_now())

    def restore(self, snapshot: Snapshot, values: Values = UNKNOWN) -> None:
        """Go back there."""
        self.begin(snapshot.labels)
        self.shares, self.values = snapshot.shares, values
        for number, cluster in enumerate(self.clusters):
            cluster.consensus = snapshot.consensus[number].copy()
            cluster.alpha = float(snapshot.alpha[number])

    def to_save(self) -> dict[str, Any]:
        """What a checkpoint keeps between two sweeps."""
        kept: dict[str, Any] = {
            "clusters": [cluster.to_save() for cluster in self.clusters],
            "n_sweeps": self.n_sweeps,
            "log_moves": self.log_moves,
            "rng": self._rng.bit_generator.state,
        }
        if self.n_clusters == 1:
            return kept
        kept |= {"shares": self.shares, "seed": self._seed, "n_rounds": self.n_rounds}
        laws = self.laws() if self._reference is None else self._reference
        kept |= {"has_reference": int(self._reference is not None)}
        kept |= {"reference_ranks": laws.ranks, "reference_alphas": laws.alphas}
        kept |= {"rounds_each": self._rounds_each}
        return kept | self._users_to_save()

    def _users_to_save(self) -> dict[str, Any]:
        return {
            "counts": np.stack([cluster.tally.counts for cluster in self.clusters]),
            "n_users": np.stack([cluster.tally.n_users for cluster in self.clusters]),
            "n_kept": self._n_kept,
            "memberships": self._users.gather_kept(),
        }

    def resume(self, saved: Saved) -> None:
        """Go on from there."""
        for cluster, part in zip(
            self.clusters, saved.parts("clusters", self.n_clusters), strict=True
        ):
            cluster.resume(part)
        self.n_sweeps = saved.count("n_sweeps", 0, MAX_SWEEPS)
        self.log_moves = saved.number("log_moves", 0.0, 700.0)
        self._rng = saved.generator("rng")
        if self.n_clusters == 1:
            self.begin(np.zeros(self.population.n_rows, dtype=np.int32))
            return
        self.shares = saved.array("shares", np.float64, (self.n_clusters,))
        saved.check_shares("shares", self.shares)
        self._seed = saved.count("seed", 0, 2**63 - 1)
        self.n_rounds = saved.count("n_rounds", 0, MAX_SWEEPS)
        limits = (float(self.least_rounds), float(self.most_rounds))
        self._rounds_each = saved.number("rounds_each", *limits)
        self._resume_reference(saved)
        self._resume_users(saved)

    def _resume_users(self, saved: Saved) -> None:
        groups, most = self.law.groups, self.population.n_users
        counts_shape = (self.n_clusters, groups.n_groups, self.n_items)
        counts = saved.array("counts", np.int64, counts_shape)
        n_users = saved.array("n_users", np.int64, (self.n_clusters, len(groups.sizes)))
        saved.check_range("counts", counts, 0, most)
        saved.check_range("n_users", n_users, 0, most)
        self._take_tallies([self.law.tally(*both) for both in zip(counts, n_users, strict=True)])
        self._n_kept = saved.count("n_kept", 0, MAX_SWEEPS)
        shape = (self.population.n_rows, self.n_clusters)
        memberships = saved.array("memberships", np.float64, shape)
        if self._n_kept:
            saved.check_shares("memberships", memberships, self._n_kept)
        self._users.remember(memberships)

    def _resume_reference(self, saved: Saved) -> None:
        ranks = saved.rankings("reference_ranks", (self.n_clusters, self.n_items))
        alphas = saved.array("reference_alphas", np.float64, (self.n_clusters,))
        saved.check_range("reference_alphas", alphas, 0, MAX_ALPHA)
        if saved.count("has_reference", 0, 1):
            self.follow(ClusterLaws(ranks, alphas))
