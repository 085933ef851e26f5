"""One chain for every law: latent rankings, consensus and alpha of each cluster, labels, weights.

A state is arrays and nothing else, so that saving, resuming, going on with more users and tempering
need no code of their own. A sweep moves each cluster on its tally, which costs no visit to the
users. Where the tally's law is not the exact one, the whole step of a cluster is accepted by how
much more the exact likelihood changed than the additive one (a surrogate transition: Liu 2001). For
that the step must be reversible: alpha moves before the consensus or after it, by a coin.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..distances.tallies import Counts, Proposals, Ranking
from ..engines.executors import at_hand
from ..kernels.streams import CHAIN, start_stream
from ..laws.law import Clusters, ClusterTally, Floats, Labels, Law, Memberships, log_of
from ..rankings import MAX_ALPHA, rank_randomly
from .priors import LOWEST_ALPHA, AlphaPrior

TARGET_ACCEPTANCE = 0.44  # of the random walk of alpha, best in one dimension (Roberts et al. 1997)
# In a sweep; one looks at a curve, not at the users. At that acceptance, draws from a normal
# density are correlated by 0.1 after 5 steps (and by 0.01 after 10), so 0.8 of them count.
N_ALPHA_STEPS = 5
# Of the corrections that are to be accepted, unless no step can be longer. At 0.3 and at 0.8, draws
# of clicks of 400 users had the same effective size, to a quarter; so had those of clusters, also
# at half and at twice CLUSTER_MOVES.
CORRECTIONS_TARGET = 0.6
# Of each item before a correction: with 100, 0.88 to 0.96 were accepted; twice as many
# at most, and at least one.
FIRST_MOVES, LEAST_MOVES, MOST_MOVES = 100.0, 1.0, 200.0
CLUSTER_MOVES = 40.0  # at most, of clusters, whose labels change meanwhile


class State(NamedTuple):
    """Where a chain is. Nothing else moves."""

    consensus: Ranking  # [cluster, item]
    alpha: Floats  # [cluster]
    weights: Floats  # [cluster], shares of the users
    labels: Labels  # [row]; empty with one cluster
    latent: Ranking  # [row, item]; no rows where nothing is latent
    errors: Floats  # how often comparisons are wrong; empty where none can be
    log_steps: Floats  # [cluster], of the random walk of log alpha
    log_moves: Floats  # [1], of the proposals before a correction

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return len(self.alpha)

    @property
    def clusters(self) -> Clusters:
        """The consensuses and alphas."""
        return Clusters(self.consensus, self.alpha)

    @property
    def labels_or_none(self) -> Labels | None:
        """The labels, or None with one cluster."""
        return self.labels if self.n_clusters > 1 else None


@dataclass(frozen=True)
class Moves:
    """How a chain moves, and its priors."""

    move: str | None = None
    leap: int = 1
    n_moves: int | None = None  # of each cluster in a sweep; None: as many as the law finds best
    prior: AlphaPrior | None = None  # None: alpha is given
    weight_prior: float = 1.0
    is_corrected: bool = True  # or does the chain stay on the additive law, where it has one?


def new_state(
    law: Law, clusters: Clusters, weights: Floats, labels: Labels | None, moves: Moves
) -> State:
    """A state with these clusters."""
    n_clusters, errors = clusters.n_clusters, np.empty(0)
    latent = np.empty((0, law.n_items), dtype=np.int32)
    if law.has_latent:
        augmented: Any = law
        latent = augmented.first_latent(clusters, labels)
        errors = augmented.errors.first_values()
    usual = FIRST_MOVES if n_clusters == 1 else CLUSTER_MOVES
    n_moves = moves.n_moves or law.n_moves or usual * law.n_items
    return State(
        clusters.consensus,
        clusters.alpha,
        weights,
        np.empty(0, dtype=np.int32) if labels is None else labels,
        latent,
        errors,
        np.full(n_clusters, math.log(0.1)),
        np.array([math.log(n_moves)]),
    )


class Chain:
    """A state that moves."""

    def __init__(self, law: Law, state: State, moves: Moves, rng: np.random.Generator):
        self.law, self.state, self.moves, self.rng = law, state, moves, rng
        self.corrects = moves.is_corrected and not law.is_exact
        self.seed, self.n_sweeps = int(rng.integers(2**63)), 0
        self._forget()

    def _forget(self) -> None:
        """Nothing is known of the state but itself."""
        augmented: Any = self.law
        has_latent = self.law.has_latent
        self.given: Law = augmented.given(self.state.latent) if has_latent else self.law
        self._tallies: list[ClusterTally] | None = None
        self._exact: Floats | None = None  # log likelihood of the users of each cluster
        self._values: Floats | None = None  # of each row, where the chain corrects
        self._memberships: Memberships | None = None  # that the labels were drawn from

    def go_to(self, state: State) -> None:
        """Go on from another state."""
        self.state = state
        self._forget()

    def jump(self, consensus: Ranking, value: float) -> None:
        """Go on from another consensus of this log likelihood, with one cluster, whose tally does
        not change."""
        self.state = self.state._replace(consensus=consensus)
        self._exact, self._values = np.array([value]), None

    @property
    def tallies(self) -> list[ClusterTally]:
        """What each cluster knows of its users."""
        if self._tallies is None:
            state = self.state
            self._tallies = self.given.tallies(state.labels_or_none, state.n_clusters)
        return self._tallies

    @property
    def exact(self) -> Floats:
        """``[cluster]``: the log likelihood of its users, exact unless the chain stays on the
        additive law; of latent rankings, where there are any."""
        if self._exact is None:
            state = self.state
            if not self.corrects:
                self._exact = curves_at(self.tallies, state.clusters)
            else:
                self._exact = self.law.sums(self.values, state.labels_or_none, state.n_clusters)
        assert self._exact is not None
        return self._exact

    @property
    def values(self) -> Floats:
        """``[row]``: the exact log likelihood of each row in the cluster of its label."""
        if self._values is None:
            self._values = self.law.weigh_rows(self.state.clusters, self.state.labels_or_none)
        return self._values

    # The sweep

    def sweep(self, adapt: bool, weighs: bool = False) -> None:
        """One sweep; step sizes are adapted during the warmup only. If asked (`weighs`), the
        memberships that labels are drawn from are remembered."""
        self.n_sweeps += 1
        if self.law.has_latent:
            self._complete()
        self._move_clusters(adapt)
        if self.state.n_clusters > 1:
            self._draw_labels(adapt, weighs)

    def _complete(self) -> None:
        """Errors given the latent rankings, then these given the clusters, and both together."""
        law: Any = self.law
        state = self.state
        errors = law.move_errors(state.errors, state.latent, self.rng)
        where = (state.clusters, state.labels_or_none, state.latent, errors)
        latent, consensus = law.complete(*where, self.seed, self.n_sweeps)
        self.go_to(state._replace(latent=latent, consensus=consensus, errors=errors))

    def _move_clusters(self, adapt: bool) -> None:
        """Consensus and alpha of each cluster, given its users."""
        state, tallies, n_clusters = self.state, self.tallies, self.state.n_clusters
        n_steps = 0 if self.moves.prior is None else N_ALPHA_STEPS
        noise = self.rng.standard_normal((n_clusters, n_steps))
        uniforms = self.rng.random((n_clusters, n_steps + 1))
        exact, values = (self.exact, self._values) if self.corrects else (None, None)
        used = [cluster for cluster in range(n_clusters) if tallies[cluster].n_users]
        tasks = [(cluster, noise[cluster], uniforms[cluster], adapt) for cluster in used]
        moves = at_hand(self.law.executor).map(self._move_cluster, tasks)
        moved = dict(zip(used, moves, strict=True))
        for cluster in range(n_clusters):
            if cluster not in moved:  # nobody is in it
                moved[cluster] = self._draw_from_prior(cluster)
        consensus, alpha, steps = zip(*(moved[k] for k in range(n_clusters)), strict=True)
        self.state = state._replace(
            consensus=np.stack(consensus), alpha=np.array(alpha), log_steps=np.array(steps)
        )
        self._exact = self._values = self._memberships = None
        if exact is not None:
            self._correct(state, exact, values, adapt)

    def _move_cluster(self, task: Any) -> tuple[Ranking, float, float]:
        """Consensus, alpha and the step of its random walk, after the move of one cluster."""
        cluster, noise, uniforms, adapt = task
        state, moves, tally = self.state, self.moves, self.tallies[cluster]
        consensus, alpha = state.consensus[cluster].copy(), float(state.alpha[cluster])
        step, is_alpha_first = float(state.log_steps[cluster]), uniforms[-1] < 0.5
        if is_alpha_first:
            alpha, step = self._step_alpha(tally, consensus, alpha, step, noise, uniforms, adapt)
        stream = np.empty(1, dtype=np.uint64)
        start_stream(self.seed, self.n_sweeps, CHAIN + cluster, stream)
        n_moves = round(math.exp(state.log_moves[0]))
        tally.move(stream, alpha, Proposals(n_moves, moves.move, moves.leap), consensus)
        if not is_alpha_first:
            alpha, step = self._step_alpha(tally, consensus, alpha, step, noise, uniforms, adapt)
        return consensus, alpha, step

    def _step_alpha(
        self,
        tally: ClusterTally,
        consensus: Ranking,
        alpha: float,
        log_step: float,
        noise: Floats,
        uniforms: Floats,
        adapt: bool,
    ) -> tuple[float, float]:
        """A random walk on log alpha."""
        prior = self.moves.prior
        if prior is None:
            return alpha, log_step
        curve = tally.curve(consensus)
        here = curve(alpha) + prior.log_density(alpha) + math.log(alpha)
        for normal, uniform in zip(noise.tolist(), uniforms.tolist(), strict=False):
            new = alpha * math.exp(min(max(math.exp(log_step) * normal, -50.0), 50.0))
            accepted = False
            if LOWEST_ALPHA <= new <= MAX_ALPHA:
                there = curve(new) + prior.log_density(new) + math.log(new)
                accepted = math.log1p(-uniform) < there - here
            if accepted:
                alpha, here = new, there
            if adapt:
                log_step += (accepted - TARGET_ACCEPTANCE) / math.sqrt(1 + self.n_sweeps)
        return alpha, min(max(log_step, -20.0), 20.0)

    def _draw_from_prior(self, cluster: int) -> tuple[Ranking, float, float]:
        """A move without any users: the consensus anywhere, alpha by its prior."""
        state, prior = self.state, self.moves.prior
        alpha = float(state.alpha[cluster]) if prior is None else prior.draw(self.rng)
        consensus = rank_randomly(np.zeros(self.law.n_items), self.rng)
        return consensus, alpha, float(state.log_steps[cluster])

    def _correct(self, old: State, exact: Floats, values: Floats | None, adapt: bool) -> None:
        """Keep the step of each cluster, or undo it, by the exact likelihood of its users."""
        additive = curves_at(self.tallies, self.state.clusters)
        additive -= curves_at(self.tallies, old.clusters)
        log_ratios = self.exact - exact - additive
        kept = np.log1p(-self.rng.random(old.n_clusters)) <= log_ratios
        self._exact = np.where(kept, self.exact, exact)
        of_rows = kept if old.n_clusters == 1 else kept[old.labels]
        self._values = None if values is None else np.where(of_rows, self.values, values)
        self.state = self.state._replace(
            consensus=np.where(kept[:, None], self.state.consensus, old.consensus),
            alpha=np.where(kept, self.state.alpha, old.alpha),
        )
        if adapt and self.moves.n_moves is None:
            used = [bool(tally.n_users) for tally in self.tallies]
            accepted = float(np.exp(np.minimum(log_ratios, 0.0))[used].mean())
            rise = 2 * (accepted - CORRECTIONS_TARGET) / math.sqrt(1 + self.n_sweeps)
            most = MOST_MOVES if old.n_clusters == 1 else CLUSTER_MOVES
            limits = np.log(np.array([LEAST_MOVES, most]) * self.law.n_items)
            log_moves = np.clip(self.state.log_moves + rise, *limits)
            self.state = self.state._replace(log_moves=log_moves)

    def _draw_labels(self, adapt: bool, weighs: bool) -> None:
        """Weights given the labels, then labels given weights and clusters."""
        state, before = self.state, self.tallies
        sizes = np.array([tally.n_users for tally in before])
        weights = self.rng.dirichlet(self.moves.weight_prior + sizes)
        where = (state.clusters, weights, state.labels, self.values if self.corrects else None)
        labels, values, memberships = self.given.relabel(*where, self.seed, self.n_sweeps, weighs)
        self._go_to_labels(labels, weights, before)
        self._values, self._memberships = values, memberships
        empty = [k for k, tally in enumerate(self.tallies) if not tally.n_users]
        if adapt and empty:
            self._begin_empty(np.array(empty))

    def _go_to_labels(
        self, labels: Labels, weights: Floats, before: Sequence[ClusterTally]
    ) -> None:
        self._tallies = self.given.tallies(labels, self.state.n_clusters, before)
        self.state = self.state._replace(labels=labels, weights=weights)
        self._exact = self._values = self._memberships = None

    def _begin_empty(self, empty: Counts) -> None:
        """During the warmup, let an empty cluster begin anew at the ranking of somebody, with those
        who are nearest."""
        state = self.state
        consensus, alpha, weights = state.consensus.copy(), state.alpha.copy(), state.weights
        people = self.rng.choice(self.law.n_rows, len(empty))
        consensus[empty] = self.given.rankings_of(people, self.law.mean_ranks)
        if self.moves.prior is not None:
            alpha[empty] = np.median(np.delete(state.alpha, empty))
        weights = np.maximum(weights, 1 / state.n_clusters)
        weights = weights / weights.sum()
        self.state = state._replace(consensus=consensus, alpha=alpha)
        labels = self.given.nearest(self.state.clusters, weights)
        self._go_to_labels(labels, weights, self.tallies)

    # What a draw is

    def log_prior(self) -> float:
        """Log prior density of alphas and weights, up to a constant."""
        state, prior = self.state, self.moves.prior
        value = (self.moves.weight_prior - 1) * float(log_of(state.weights).sum())
        if prior is not None:
            value += sum(prior.log_density(alpha) for alpha in state.alpha.tolist())
        return value

    @property
    def memberships(self) -> Memberships:
        """Exact, unless the chain stays on the additive law."""
        if self._memberships is None:
            where = (self.state.clusters, self.state.weights)
            self._memberships = self.given.memberships(*where, self.corrects)
        return self._memberships


def curves_at(tallies: list[ClusterTally], clusters: Clusters) -> Floats:
    """``[cluster]``: the log likelihood of its users by the tallies."""
    pairs = zip(tallies, clusters.consensus, clusters.alpha.tolist(), strict=True)
    return np.array([tally.curve(consensus)(alpha) for tally, consensus, alpha in pairs])


def fresh_steps(state: State, law: Law, moves: Moves) -> State:
    """A state from a start, with step sizes to be adapted anew."""
    fresh = new_state(law, state.clusters, state.weights, state.labels_or_none, moves)
    return fresh._replace(latent=state.latent, errors=state.errors)
