"""Clusters of users of clicks with labels, and the exact posterior of all of them.

In a round each user draws a label by the matched law, a sum over clicks, and accepts it by the
exact one; given the labels the shares are drawn, and each cluster moves along the matched posterior
of its own users. Where that leads is accepted, for each cluster by itself, by how much more the
exact likelihood of these users changed than the matched one (a surrogate transition). So a round
takes one exact likelihood of each user, and one more of those whose label would change. A sweep has
several rounds where many labels change.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...distances.tallies import Ranking
from ...files.saved import Saved
from ...latent.matched.labelled import LabelledUsers
from .clustered import MAX_SWEEPS
from .matched_mixture import CLUSTER_MOVES, MatchedMixture

N_ALPHA_STEPS = 10
KEEP_EVERY = 10  # rounds for each that adds to the memberships, which takes as long as several


class LabelledMixture(MatchedMixture):
    """One chain of several clusters, with a label for each user."""

    _users: LabelledUsers
    first_moves = most_moves = CLUSTER_MOVES
    least_rounds, most_rounds, changes = 1, 5, 0.01

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **options)
        self._users = LabelledUsers(self.population, self.law, self.n_clusters)
        self._has_labels, self._n_after = False, 0  # sweeps after the warmup
        self._is_taken = np.zeros(self.n_clusters, dtype=np.bool_)
        self._log_likelihood = math.nan
        for cluster in self.clusters:
            cluster.n_alpha_steps = N_ALPHA_STEPS

    @property
    def _keep_every(self) -> int:
        return -(-KEEP_EVERY // round(self._rounds_each))

    @property
    def _n_sums(self) -> int:
        """How often memberships were kept."""
        return -(-self._n_after // self._keep_every)

    @property
    def mean_memberships(self) -> NDArray[np.float64]:
        """``memberships[row, cluster]``: mean of the exact ones over one in so many sweeps."""
        if self._n_sums:
            return self._users.gather_kept() / self._n_sums
        return self._users.memberships(self.matched_laws(), self.laws())

    def log_posterior(self) -> float:
        """Log posterior density, labels and latent rankings summed out; NaN after sweeps that add
        nothing to the memberships."""
        log_prior = (self._share_prior - 1) * float(self._log_shares().sum())
        return self._log_likelihood + log_prior + sum(each.log_prior() for each in self.clusters)

    def begin(self, labels: NDArray[np.int32]) -> None:
        """Take first labels."""
        self._take_tallies(self._users.begin(labels))
        self._has_labels = True

    def run_rounds(self, n_rounds: int, n_moves: int, adapt: bool) -> None:
        """Rounds on the matched posterior, after which labels are drawn anew."""
        super().run_rounds(n_rounds, n_moves, adapt)
        self._has_labels = False

    def forget(self) -> None:
        """Keep memberships from here on."""
        self._users.forget_kept()
        self._n_after = 0

    def sweep(self, adapt: bool) -> None:
        """Labels given the clusters, shares given the labels, clusters given both."""
        self.n_sweeps += 1
        if self._reference is None and not adapt:
            self.follow(self.laws())
        for _ in range(round(self._rounds_each)):
            self._draw_labels(adapt)
            self._move_clusters(adapt)
            if adapt:
                self._fill_empty()
        self._reorder()
        self._log_likelihood = math.nan
        if not adapt:
            self._keep()

    def _draw_labels(self, adapt: bool) -> None:
        self.law.prepare(self.alpha)
        matched = self.matched_laws()
        if not self._has_labels:
            self._users.begin_by(matched, self._next_draw())
            self._has_labels = True
        tallies, self._own_values, n_changes = self._users.relabel(
            matched, self.laws(), self._is_taken, self._next_draw()
        )
        self._take_tallies(tallies)
        if adapt:
            self._adapt_rounds(n_changes)

    def _move_clusters(self, adapt: bool) -> None:
        """Move each cluster, accept where it is or go back."""
        before, matched = [cluster.place for cluster in self.clusters], self._matched_values()
        self._move(round(math.exp(self.log_moves)), adapt)
        change = self._users.weigh_own(self.laws()) - self._own_values
        log_ratios = change - (self._matched_values() - matched)
        self._is_taken = np.log1p(-self._rng.random(self.n_clusters)) <= log_ratios
        for cluster, place, is_taken in zip(self.clusters, before, self._is_taken, strict=True):
            if not is_taken:
                cluster.restore(place)
        if adapt and self._n_moves is None:
            self._adapt_length(float(np.exp(np.minimum(log_ratios, 0.0))[self.has_users].mean()))

    def _matched_values(self) -> NDArray[np.float64]:
        """``[cluster]``: the matched log likelihood of its users."""
        return np.array([cluster.curve(cluster.alpha) for cluster in self.clusters])

    def _reorder(self) -> None:
        order = self._best_order()
        if (np.diff(order) != 1).any():
            self.clusters = [self.clusters[number] for number in order]
            self.shares, self._is_taken = self.shares[order], self._is_taken[order]
            self._users.reorder(order)

    def _keep(self) -> None:
        if self._n_after % self._keep_every == 0:
            self._log_likelihood = self._users.keep(self.matched_laws(), self.laws())
        self._n_after += 1

    def _labels_now(self) -> NDArray[np.int32]:
        return self._users.gather_labels()

    def latent_of(self, users: NDArray[np.int64]) -> Ranking:
        """Latent rankings of some users, drawn given the state, each in the cluster of its label;
        a user who says nothing has a label by the shares."""
        labels = self._users.gather_labels()
        return self._draw_latent(
            users, self.clusters, self.shares, lambda row: (int(labels[row]), 1, 0)
        )

    def _users_to_save(self) -> dict[str, Any]:
        kept: dict[str, Any] = {"labels": self._users.gather_labels(), "n_after": self._n_after}
        return kept | ({"memberships": self._users.gather_kept()} if self._n_sums else {})

    def _resume_users(self, saved: Saved) -> None:
        n_rows = self.population.n_rows
        labels = saved.array("labels", np.int32, (n_rows,))
        saved.check_range("labels", labels, 0, self.n_clusters - 1)
        self._n_after = saved.count("n_after", 0, MAX_SWEEPS)
        self.begin(labels)
        if self._n_sums:
            memberships = saved.array("memberships", np.float64, (n_rows, self.n_clusters))
            saved.check_shares("memberships", memberships, self._n_sums)
            self._users.remember(memberships)
