"""Clusters of users of clicks, by the matched law, with or without the exact correction.

Labels are proposed by the matched law, a sum over clicks, and accepted by the exact one.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...distances.tallies import Counts, Ranking
from ...engines.executors import all_cores, is_remote
from ...files.saved import Saved
from ...latent.click_laws import ClickLaw
from ...latent.matched.users import ClusterLaws, MatchedUsers, Relabel
from ...latent.population import Population
from ...rankings import MAX_ALPHA
from .clustered import MAX_SWEEPS, Clustered
from .matched_cluster import MatchedCluster, Stretch

KEEP_EVERY = 5  # sweeps between two exact memberships, which cost more than a sweep
SHARP, FALL = 50.0, 2.0  # alpha / n_items that is as good as infinite; a fall in log likelihood


class Snapshot(NamedTuple):
    """``consensus[cluster, item]``, ``alpha[cluster]``, ``shares[cluster]`` and ``labels[row]``."""

    consensus: Ranking
    alpha: NDArray[np.float64]
    shares: NDArray[np.float64]
    labels: NDArray[np.int32]


class MatchedMixture(Clustered[MatchedCluster]):
    """One chain: clusters, each with its consensus and alpha, and users with labels.

    One cluster alone is a mixture without labels, whose tally never changes. With `is_corrected`
    the exact posterior is left as it is, else the matched one.
    """

    is_led = False

    def __init__(
        self,
        population: Population,
        law: ClickLaw,
        clusters: Sequence[MatchedCluster],
        shares: NDArray[np.float64],
        share_prior: float,
        is_corrected: bool,
        rng: np.random.Generator,
    ):
        self.population, self.law = population, law
        self.clusters, self.shares, self._rng = list(clusters), shares, rng
        self._share_prior, self.is_corrected = share_prior, is_corrected
        self._seed = int(rng.integers(2**63))
        self._users = MatchedUsers(population, law, len(self.clusters))
        self._reference: ClusterLaws | None = None
        self._log_posterior = math.nan
        self.matched_log_likelihood = math.nan  # without correction, the labels summed out
        self.n_sweeps = self._n_kept = 0
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
        """``memberships[row, cluster]``: mean over the sweeps that kept them, if any did."""
        if self._n_kept:
            return self._users.gather_memberships() / self._n_kept
        labels = self._users.gather_labels()
        return np.eye(self.n_clusters)[labels]

    def laws(self) -> ClusterLaws:
        """The exact laws of the clusters."""
        return ClusterLaws(self.consensus, self.alpha)

    def log_posterior(self) -> float:
        """Log posterior density, labels and latent rankings summed out: exact, or matched; NaN in
        sweeps that do not compute it."""
        return self._log_posterior

    def begin(self, labels: NDArray[np.int32]) -> None:
        """Take first labels."""
        for cluster, tally in zip(self.clusters, self._users.begin(labels), strict=True):
            cluster.tally = tally

    def count_anew(self) -> None:
        """Count sweeps from here, those before being a start; with another seed, so that no random
        number comes twice."""
        self.n_sweeps, self._seed = 0, int(self._rng.integers(2**63))

    def follow(self, reference: ClusterLaws) -> None:
        """From now on the clusters take the order in which they agree best with these."""
        self._reference, self._reference_parts = reference, self._additive(reference)

    def know_likelihoods(self) -> None:
        """Compute the exact log likelihoods of the users where the chain stands."""
        values = self._users.log_likelihoods(self.laws())
        for cluster, value in zip(self.clusters, values, strict=True):
            cluster.log_likelihood = value

    def sweep(self, adapt: bool) -> None:
        """Move every cluster, given its users; then draw the shares, and the labels given them."""
        self.n_sweeps += 1
        if self._reference is None and not adapt:
            self.follow(self.laws())
        accepted = self._move(adapt)
        if self.n_clusters == 1:
            cluster = self.clusters[0]
            if not self.is_corrected:
                cluster.log_likelihood = cluster.tally.curve(cluster.consensus)(cluster.alpha)
            self._log_posterior = cluster.log_likelihood + cluster.log_prior()
        else:
            sizes = [int(cluster.tally.n_users.sum()) for cluster in self.clusters]
            self.shares = self._rng.dirichlet(self._share_prior + np.array(sizes))
            if adapt:
                self._fill_empty()
            every = KEEP_EVERY if self.is_corrected else 1
            self._draw_labels(accepted, keeps=not adapt and self.n_sweeps % every == 0)

    def _move(self, adapt: bool) -> NDArray[np.bool_]:
        """Move the clusters; return whose proposals were taken."""
        used = [cluster for cluster in self.clusters if cluster.has_users]
        self.law.prepare(np.array([cluster.alpha for cluster in used]))
        stretches = list(self._executor.map(lambda cluster: cluster.stretch(adapt), used))
        taken = np.array(self.has_users)
        if not self.is_corrected:
            for cluster, stretch in zip(used, stretches, strict=True):
                cluster.take(stretch)
        else:
            taken[taken] = self._judge(used, stretches, adapt)
        for cluster in self.clusters:
            if not cluster.has_users:
                cluster.wander()
        return taken

    def _judge(
        self, used: list[MatchedCluster], stretches: list[Stretch], adapt: bool
    ) -> list[bool]:
        if any(math.isnan(cluster.log_likelihood) for cluster in used):
            self.know_likelihoods()
            self._users.take_proposed()
        proposals = dict(zip(map(id, used), stretches, strict=True))
        there = [proposals.get(id(cluster), cluster) for cluster in self.clusters]
        laws = ClusterLaws(
            np.stack([each.consensus for each in there]), np.array([each.alpha for each in there])
        )
        values = self._users.log_likelihoods(laws)
        known = [value for value, c in zip(values, self.clusters, strict=True) if c.has_users]
        return [
            cluster.judge(stretch, value, adapt)
            for cluster, stretch, value in zip(used, stretches, known, strict=True)
        ]

    def _draw_labels(self, accepted: NDArray[np.bool_], keeps: bool) -> None:
        """Let the users draw their labels, given the shares and the clusters, of which some were
        just accepted."""
        order = self._best_order()
        self.clusters = [self.clusters[number] for number in order]
        self.shares = self.shares[order]
        laws = self.laws()
        log_shares = self._log_shares()
        parts, exact = self._additive(laws), laws if self.is_corrected else None
        how = Relabel(self._seed, self.n_sweeps, order, *parts, log_shares, exact, keeps)
        drawn = self._users.relabel(how, accepted)
        for cluster, tally, value in zip(self.clusters, drawn.tallies, drawn.values, strict=True):
            cluster.tally = tally
            cluster.log_likelihood = value if self.is_corrected else math.nan
        self._log_posterior, self.matched_log_likelihood = math.nan, drawn.log_likelihood
        if keeps:
            self._n_kept += 1
            self._log_posterior = drawn.log_likelihood
            self._log_posterior += (self._share_prior - 1) * float(log_shares.sum())
            self._log_posterior += sum(cluster.log_prior() for cluster in self.clusters)

    def _log_shares(self) -> NDArray[np.float64]:
        with np.errstate(divide="ignore"):
            return np.maximum(np.log(self.shares), -1e300)

    def _additive(self, laws: ClusterLaws) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """``log_weights[group, item, cluster]`` and ``constants[size, cluster]`` of the law that
        adds up over clicks."""
        pairs = list(zip(laws.ranks, laws.alphas.tolist(), strict=True))
        parts = [self.law.log_weights(ranks, alpha) for ranks, alpha in pairs]
        constants = [self.law.constants(alpha) for _, alpha in pairs]
        return np.ascontiguousarray(np.stack(parts, axis=2)), np.stack(constants, axis=1)

    def _best_order(self) -> Counts:
        """The order of the clusters in which their users are best explained by the reference."""
        if self._reference is None:
            return np.arange(self.n_clusters)
        from scipy.optimize import linear_sum_assignment

        counts = np.stack([cluster.tally.counts for cluster in self.clusters])
        n_users = np.stack([cluster.tally.n_users for cluster in self.clusters])
        weights, constants = self._reference_parts
        scores = np.tensordot(weights, counts, ((0, 1), (1, 2))) + constants.T @ n_users.T
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
        laws, order = self.laws(), np.arange(self.n_clusters)
        how = (order, *self._additive(laws), self._log_shares(), laws, False)
        exact, matched = self._users.compare(Relabel(self._seed, self.n_sweeps, *how))
        return exact - matched + sum(cluster.tally.log_sets for cluster in self.clusters)

    def unbounded(self) -> list[bool]:
        """``[cluster]``: does nothing in the data bound its alpha from above?

        That is so if some consensus leaves no user in disagreement: then the likelihood does not
        fall from the present alpha to infinity. The matched law is too kind there, so it knows
        where it is worth while to ask the exact one.
        """
        sharp = [max(SHARP * self.population.n_items, 10 * c.alpha) for c in self.clusters]
        sharpest = [c.tally.best(a) for c, a in zip(self.clusters, sharp, strict=True)]
        found = []
        for cluster, alpha, best in zip(self.clusters, sharp, sharpest, strict=True):
            here = cluster.tally.curve(cluster.consensus)(cluster.alpha)
            found.append(cluster.tally.curve(best)(alpha) >= here - FALL)
        if self.law.is_exact or not any(found):
            return found
        present = self._users.log_likelihoods(self.laws())
        then = self._users.log_likelihoods(ClusterLaws(np.stack(sharpest), np.array(sharp)))
        limits = zip(found, present, then, strict=True)
        return [is_near and after >= before - FALL for is_near, before, after in limits]

    def some_leaders(self, number: int) -> Ranking:
        """There are none."""
        raise TypeError("the draws of the matched law are their own leaders")

    def moved_to(self, population: Population) -> "MatchedMixture":
        """The same clusters for other users, whose labels are drawn by the matched law."""
        how = (self.clusters, self.shares, self._share_prior, False, self._rng)
        new = MatchedMixture(population, self.law, *how)
        new.begin(np.zeros(population.n_rows, dtype=np.int32))
        new.relabel()
        return new

    def relabel(self) -> None:
        """Draw all labels by the matched law, given the clusters."""
        is_corrected, self.is_corrected = self.is_corrected, False
        self._draw_labels(np.zeros(self.n_clusters, dtype=bool), keeps=False)
        self.is_corrected = is_corrected

    def latent_of(self, users: NDArray[np.int64]) -> Ranking:
        """Latent rankings of some users, drawn given the state, each in the cluster of its label;
        a user who says nothing has a label by the shares."""
        if self.n_clusters == 1:
            return self.population.latent_of(users, self.clusters[0].origin)
        labels = self._users.gather_labels().tolist()
        how = (self.clusters, self.shares, lambda row: (labels[row], 1, 0))
        return self._draw_latent(users, *how)

    def snapshot(self) -> "Snapshot":
        """Where the chain stands."""
        return Snapshot(self.consensus, self.alpha, self.shares, self._users.gather_labels())

    def restore(self, snapshot: "Snapshot", matched_log_likelihood: float) -> None:
        """Go back there."""
        self.begin(snapshot.labels)
        self.shares, self.matched_log_likelihood = snapshot.shares, matched_log_likelihood
        for number, cluster in enumerate(self.clusters):
            cluster.consensus = snapshot.consensus[number].copy()
            cluster.alpha = float(snapshot.alpha[number])

    def to_save(self) -> dict[str, Any]:
        """What a checkpoint keeps between two sweeps."""
        kept: dict[str, Any] = {
            "clusters": [cluster.to_save() for cluster in self.clusters],
            "n_sweeps": self.n_sweeps,
        }
        if self.n_clusters == 1:
            return kept
        kept |= {"shares": self.shares, "seed": self._seed, "rng": self._rng.bit_generator.state}
        kept |= {"labels": self._users.gather_labels(), "n_kept": self._n_kept}
        kept["memberships"] = self._users.gather_memberships()
        laws = self.laws() if self._reference is None else self._reference
        kept |= {"has_reference": int(self._reference is not None)}
        return kept | {"reference_ranks": laws.ranks, "reference_alphas": laws.alphas}

    def resume(self, saved: Saved) -> None:
        """Go on from there."""
        for cluster, part in zip(
            self.clusters, saved.parts("clusters", self.n_clusters), strict=True
        ):
            cluster.resume(part)
        self.n_sweeps = saved.count("n_sweeps", 0, MAX_SWEEPS)
        if self.n_clusters == 1:
            self.begin(np.zeros(self.population.n_rows, dtype=np.int32))
            return
        shape = (self.population.n_rows, self.n_clusters)
        self.shares = saved.array("shares", np.float64, (self.n_clusters,))
        saved.check_shares("shares", self.shares)
        self._seed = saved.count("seed", 0, 2**63 - 1)
        self._rng = saved.generator("rng")
        labels = saved.array("labels", np.int32, shape[:1])
        saved.check_range("labels", labels, 0, self.n_clusters - 1)
        self._n_kept = saved.count("n_kept", 0, MAX_SWEEPS)
        memberships = saved.array("memberships", np.float64, shape)
        if self._n_kept:
            saved.check_shares("memberships", memberships, self._n_kept)
        ranks = saved.rankings("reference_ranks", (self.n_clusters, self.population.n_items))
        alphas = saved.array("reference_alphas", np.float64, (self.n_clusters,))
        saved.check_range("reference_alphas", alphas, 0, MAX_ALPHA)
        if saved.count("has_reference", 0, 1):
            self.follow(ClusterLaws(ranks, alphas))
        self.begin(labels)
        self._users.remember(memberships)
