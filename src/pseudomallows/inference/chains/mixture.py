"""Clusters of users with a consensus each: a mixture of Mallows distributions, or just one.

Memberships are exact: the latent rankings are summed out before a label is drawn, so labels do not
stick to the rankings that were drawn under them.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...distances.tallies import Counts, Ranking
from ...engines.executors import blocks
from ...files.saved import Saved
from ...kernels.labels import draw_labels, fill_log_sums, fill_overlaps
from ...latent.population import LocalPopulation, Population, finish_draws, log_likelihoods_of
from ...rankings import rank_randomly
from .clustered import MAX_SWEEPS, Clustered
from .clusters import Cluster

Memberships = NDArray[np.float64]


class Mixture(Clustered[Cluster]):
    """One chain: clusters, each with its consensus and alpha, and users with labels.

    A sweep moves each cluster, given its users. Every so many sweeps the labels are drawn anew
    from the exact memberships, given the clusters, and then the shares of the clusters. One cluster
    alone is a mixture without labels.

    Labels that change places would make a mean over draws senseless. So at each refresh the
    clusters take the order in which their memberships agree best with those so far.
    """

    def __init__(
        self,
        population: Population,
        clusters: Sequence[Cluster],
        shares: NDArray[np.float64],
        refresh_every: int | None,  # None: no labels are drawn
        share_prior: float,
        rng: np.random.Generator,
    ):
        self.population, self.clusters, self.shares = population, list(clusters), shares
        self.has_users = [True] * len(self.clusters)
        self.refresh_every, self._share_prior, self._rng = refresh_every, share_prior, rng
        self.n_sweeps = self.first_refresh = 0  # a refresh, and every so many sweeps after it
        if refresh_every is None:
            return
        self._seed = int(rng.integers(2**63))
        self.counts = np.zeros((population.n_rows, len(self.clusters)), dtype=np.int64)
        self.log_likelihood = self._log_posterior = math.nan
        self._reference: Memberships | None = None
        self._total = np.zeros(self.counts.shape)
        self._n_total = 0

    @classmethod
    def of_one(cls, cluster: Cluster) -> "Mixture":
        """One cluster, that of all users, who need no labels."""
        return cls(cluster.population, [cluster], np.ones(1), None, 1.0, cluster.rng)

    @property
    def has_labels(self) -> bool:
        """Do the users have labels, drawn every so many sweeps?"""
        return self.refresh_every is not None

    @property
    def evidence(self) -> NDArray[Any]:
        """``evidence[cluster]`` of the latest draws (see `Tally`); 0 for an empty cluster."""
        nothing = np.zeros_like(self.population.known.evidence)
        tallies = [cluster.tally for cluster in self.clusters]
        return np.stack([nothing if tally is None else tally.evidence for tally in tallies])

    @property
    def mean_memberships(self) -> Memberships:
        """``memberships[row, cluster]``: mean over the refreshes after the warmup, if any."""
        return self._total / self._n_total if self._n_total else self._latest

    def log_posterior(self) -> float:
        """Log posterior density, labels and latent rankings summed out; NaN between refreshes."""
        return self._log_posterior if self.has_labels else self.clusters[0].log_posterior()

    def difference(self) -> float:
        """Exact minus approximate log likelihood: there is no other than the exact one here."""
        return 0.0

    def begin(self, reference: Memberships | None) -> None:
        """Draw the first labels; from now on the clusters keep their order, or take that of the
        reference."""
        self._reference = reference
        self.refresh(adapt=True)
        self._reference = self._latest

    def forget(self) -> None:
        """Keep memberships from here on; those so far say only which cluster is which."""
        if self.has_labels:
            self._reference, self._n_total = self.mean_memberships, 0
            self._total = np.zeros(self.counts.shape)

    def to_save(self) -> dict[str, Any]:
        """What a checkpoint keeps between two sweeps; none of these arrays changes in place."""
        if not self.has_labels:
            return {"clusters": [self.clusters[0].to_save()], "n_sweeps": self.n_sweeps}
        assert self._reference is not None
        return {
            "clusters": [cluster.to_save() for cluster in self.clusters],
            "shares": self.shares,
            "counts": self.counts,
            "seed": self._seed,
            "n_sweeps": self.n_sweeps,
            "rng": self._rng.bit_generator.state,
            "reference": self._reference,
            "total": self._total,
            "n_total": self._n_total,
        }

    def resume(self, saved: Saved) -> None:
        """Go on from there."""
        if self.has_labels:
            self._resume_labels(saved)
        parts = saved.parts("clusters", self.n_clusters)
        for cluster, part in zip(self.clusters, parts, strict=True):
            cluster.resume(part)
        self.n_sweeps = saved.count("n_sweeps", 0, MAX_SWEEPS)

    def _resume_labels(self, saved: Saved) -> None:
        n_clusters, weights = self.n_clusters, self.population.row_weights
        self.shares = saved.array("shares", np.float64, (n_clusters,))
        saved.check_shares("shares", self.shares)
        self._seed = saved.count("seed", 0, 2**63 - 1)
        self._rng = saved.generator("rng")
        self._n_total = saved.count("n_total", 0, MAX_SWEEPS)
        self._total, self._reference = (
            saved.array(name, np.float64, self.counts.shape) for name in ("total", "reference")
        )
        saved.check_shares("total", self._total, self._n_total)
        saved.check_shares("reference", self._reference)
        self._latest = self._reference
        counts = saved.array("counts", np.int64, self.counts.shape)
        saved.check_range("counts", counts, 0, weights.max())
        if (counts.sum(axis=1) != weights).any():
            saved.refuse("counts", "must have as many users as the data")
        self.share_out(counts)

    def sweep(self, adapt: bool) -> None:
        """Move every cluster, given its users; then, if it is time, draw labels and shares."""
        self.n_sweeps += 1
        if len(self.errors):
            self.population.move_errors(self._rng)
        if self.refresh_every is None:
            self._move(self.clusters, adapt)
            return
        self._log_posterior = math.nan
        self._drawn_clusters, self._drawn_counts = self.clusters, self.counts
        self._drawn_shares = self.shares
        self._move(self.clusters, adapt)
        if (self.n_sweeps - self.first_refresh) % self.refresh_every == 0:
            self.refresh(adapt)

    def _move(self, clusters: list[Cluster], adapt: bool) -> None:
        """Alpha given the consensus, latent rankings given both, consensus given the latent."""
        unknown = []
        for cluster, has_users in zip(clusters, self.has_users, strict=True):
            if not has_users:
                continue
            cluster.n_sweeps += 1
            if cluster.population.is_full:
                cluster.note_origin()
                cluster.move_alpha(adapt)
                cluster.tally = cluster.population.known
            else:
                unknown.append(cluster)
        if unknown:
            self._move_side_by_side(unknown, adapt)
        for cluster, has_users in zip(clusters, self.has_users, strict=True):
            if has_users:
                assert cluster.tally is not None
                cluster.move(cluster.tally)
            else:
                cluster.tally = None
                cluster.draw_from_prior()

    def _move_side_by_side(self, clusters: list[Cluster], adapt: bool) -> None:
        """Alphas and latent rankings: the blocks of rows of all clusters at once."""
        for _ in range(clusters[0].n_alpha_moves):
            self._move_alphas(clusters, adapt)
        draws = [cluster.begin_draw() for cluster in clusters]
        completed = finish_draws(draws, self.population.executor)
        for cluster, mine in zip(clusters, completed, strict=True):
            cluster.tally, cluster.consensus = mine

    def _move_alphas(self, clusters: list[Cluster], adapt: bool) -> None:
        tries = [(cluster, cluster.alphas_to_try()) for cluster in clusters]
        points = [(c.population, c.consensus, alpha) for c, alphas in tries for alpha in alphas]
        values = iter(log_likelihoods_of(points, self.population.executor))
        for cluster, alphas in tries:
            if alphas:
                cluster.judge_alphas([next(values) for _ in alphas], adapt)

    def refresh(self, adapt: bool) -> None:
        """Draw the labels from the exact memberships, then the shares."""
        logs = row_log_likelihoods(self.population, [(s.consensus, s.alpha) for s in self.clusters])
        with np.errstate(divide="ignore"):
            memberships = logs + np.log(self.shares)
        log_sums, counts = np.empty(self.population.n_rows), np.empty_like(self.counts)
        draw_labels(
            self._seed,
            self.n_sweeps,
            self.population.row_numbers,
            self.population.row_weights,
            memberships,
            counts,
            log_sums,
        )
        self.log_likelihood = float((self.population.row_weights * log_sums).sum())
        if adapt:
            for refilled in self._fill_empty(counts, log_sums):
                logs[:, refilled] = np.nan  # of the consensus before
        reference = self._total if self._n_total else self._reference
        if reference is not None:
            order = self._best_order(memberships, reference)
            if (order[1:] < order[:-1]).any():  # they would change places
                self._reorder(order)
                counts, logs = np.take(counts, order, axis=1), np.take(logs, order, axis=1)
                memberships = np.take(memberships, order, axis=1)
        self._latest = memberships
        if not adapt:
            self._total = self._total + memberships  # not in place: a checkpoint may hold it
            self._n_total += 1
        self.share_out(counts)
        for number, cluster in enumerate(self.clusters):
            value = float((counts[:, number] * logs[:, number]).sum())
            cluster.log_likelihood = None if math.isnan(value) else value
        self.shares = self._rng.dirichlet(self._share_prior + np.array(self.sizes))
        if not adapt:
            log_shares = np.log(np.maximum(self.shares, 1e-300))
            fill_log_sums(logs, log_shares, log_sums)
            self._log_posterior = float((self.population.row_weights * log_sums).sum())
            self._log_posterior += (self._share_prior - 1) * float(log_shares.sum())
            self._log_posterior += sum(c.log_prior(c.alpha) for c in self.clusters)

    def share_out(self, counts: Counts) -> None:
        """Give each cluster its users."""
        self.counts = counts
        parts = self.population.share_out(counts, [each.population for each in self.clusters])
        self.sizes = [0 if part is None else part.n_users for part in parts]
        self.has_users = [part is not None for part in parts]
        for part, cluster in zip(parts, self.clusters, strict=True):
            if part is not None:
                cluster.population, cluster.log_likelihood = part, None

    def latent_of(self, users: NDArray[np.int64]) -> Ranking:
        """The latest latent rankings of some users of clicks, each in the cluster of its label.

        Of several users of a row it is the last; a user who says nothing has a label by the shares.
        """
        if not self.has_labels:
            return self.clusters[0].population.latent_of(users, self.clusters[0].origin)

        def label_of(row: int) -> tuple[int, int, int]:
            counts = self._drawn_counts[row]
            last = int(np.flatnonzero(counts)[-1])
            return last, int(counts[last]), int(counts[:last].sum())

        return self._draw_latent(users, self._drawn_clusters, self._drawn_shares, label_of)

    def _best_order(self, memberships: Memberships, reference: Memberships) -> NDArray[np.int64]:
        """The order of the clusters that agrees best with the memberships of reference."""
        return order_like(self.population.row_weights, reference, memberships)

    def _reorder(self, order: NDArray[np.int64]) -> None:
        self.clusters = [self.clusters[number] for number in order]
        self.shares = self.shares[order]

    def _fill_empty(self, counts: Counts, log_sums: NDArray[np.float64]) -> list[int]:
        """Give each empty cluster the users that the others explain worst, against probability.

        It starts anew from them; return which clusters did.
        """
        empty, refilled = np.flatnonzero(counts.sum(axis=0) == 0), list[int]()
        if not len(empty):
            return refilled
        alpha = float(np.median(np.delete(self.alpha, empty)))
        probability = row_log_likelihoods(self.population, [(self.clusters[0].consensus, 0.0)])[
            :, 0
        ]
        n_rows = max(1, self.population.n_rows // (2 * self.n_clusters))
        worst = np.argsort(log_sums - probability, kind="stable")[: n_rows * len(empty)]
        for cluster, rows in zip(empty, np.array_split(worst, len(empty)), strict=True):
            if len(rows):
                counts[rows] = 0
                counts[rows, cluster] = self.population.row_weights[rows]
                chosen = self.population.select(counts[:, cluster], self.population.row_numbers)
                consensus = rank_randomly(chosen.mean_ranks, self._rng)
                self.clusters[cluster].consensus, self.clusters[cluster].alpha = consensus, alpha
                refilled.append(int(cluster))
        return refilled


def row_log_likelihoods(
    population: Population, clusters: Sequence[tuple[Ranking, float]]
) -> NDArray[np.float64]:
    """``values[row, cluster]``: log probability of what is known of a user, in each cluster."""
    cut = blocks(population.n_rows, population.rows_at_once)
    tasks = [(*place, clusters) for place in population.places(cut)]
    return np.concatenate(list(population.executor.map(_row_log_likelihoods, tasks)))


def _row_log_likelihoods(
    task: tuple[LocalPopulation, slice | None, Sequence[tuple[Ranking, float]]],
) -> NDArray[np.float64]:
    population, rows, clusters = task
    chosen = slice(0, population.n_rows) if rows is None else rows
    return np.stack(
        [population.row_log_likelihoods(chosen, center, alpha) for center, alpha in clusters],
        axis=1,
    )


def order_like(
    weights: Counts, reference: NDArray[np.floating], memberships: NDArray[np.floating]
) -> NDArray[np.int64]:
    """The order of the clusters of ``memberships[row, cluster]`` that agrees best with those of a
    reference.

    >>> reference = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> order_like(np.ones(3, dtype=np.int64), reference, 1 - reference)
    array([1, 0])
    """
    from scipy.optimize import linear_sum_assignment

    overlaps = np.empty((memberships.shape[1], memberships.shape[1]))
    fill_overlaps(weights, reference, memberships, overlaps)
    return np.asarray(linear_sum_assignment(-overlaps)[1])
