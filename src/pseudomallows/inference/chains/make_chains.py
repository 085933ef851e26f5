"""How the chains of a fit begin, each with its clusters."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ...distances.tallies import Ranking
from ...latent.matched.matched_users import ClusterLaws
from ...latent.population import Population
from ..methods.method import Plan
from .clustered import Chains, Earlier
from .clusters import Cluster
from .matched_cluster import MatchedProposals
from .matched_mixture import MatchedMixture
from .matched_starts import (
    GUESS_ROUNDS,
    LAST_ROUNDS,
    N_FINALISTS,
    N_STARTS,
    SETTLE_ROUNDS,
    Comparison,
    MatchedStart,
)
from .mixture import Mixture
from .starts import PREPARATION, is_unbounded, prepare

Chain = Mixture | MatchedMixture  # one Markov chain: clusters, each with its consensus and alpha
Floats = NDArray[np.float64]


def make_chains(population: Population, plan: Plan, rng: np.random.Generator) -> Chains:
    """The chains of a plan: on the matched law of clicks, or on latent rankings; `rng` is for what
    they share."""
    own = plan.method.chains(population, plan)
    if own is not None:
        return own
    if not plan.method.is_matched(plan.case):
        return LatentChains(population, plan)
    if plan.last_draws:
        return GrownChains(population, plan, rng)
    return MatchedChains(population, plan, rng)


class LatentChains(Chains):
    """Chains that draw latent rankings in each sweep, or need none."""

    def __init__(self, population: Population, plan: Plan):
        self._population, self._plan = population, plan
        self.preparation = PREPARATION if plan.case.has_clusters else 0
        self.evidence_shape = population.known.evidence.shape

    def start(
        self,
        number: int,
        earlier: Earlier | None,
        rng: np.random.Generator,
        report: Callable[[], None],
    ) -> Mixture:
        """A chain at its start."""
        plan = self._plan
        method: Any = plan.method  # one whose clusters draw latent rankings
        if not plan.case.has_clusters:
            return Mixture.of_one(method.first_cluster(self._population, plan, rng, number))
        population = self._population.for_chain()
        prior, n_clusters = method.share_prior, plan.case.n_clusters
        start = prepare(population, n_clusters, plan.alpha, prior, rng, report)
        clusters = [
            method.cluster(first.population, first.consensus.copy(), first.alpha, plan, child)
            for first, child in zip(start.clusters, rng.spawn(n_clusters), strict=True)
        ]
        mixture = self._mixture(population, clusters, start.shares, rng)
        mixture.begin(None if earlier is None else earlier.memberships)
        return mixture

    def _mixture(
        self,
        population: Population,
        clusters: list[Cluster],
        shares: Floats,
        rng: np.random.Generator,
    ) -> Mixture:
        method: Any = self._plan.method  # with a refresh
        mixture = Mixture(population, clusters, shares, method.refresh, method.share_prior, rng)
        mixture.first_refresh = self._plan.warmup
        return mixture

    def empty(self) -> Mixture:
        """One to be filled from a file."""
        rng, number = np.random.default_rng(0), self._plan.case.n_clusters  # its state comes later
        first = np.arange(1, self._population.n_items + 1, dtype=np.int32)
        method, plan = cast(Any, self._plan.method), self._plan
        clusters = [method.cluster(self._population, first, 1.0, plan, rng) for _ in range(number)]
        if number == 1:
            return Mixture.of_one(clusters[0])
        return self._mixture(self._population, clusters, np.full(number, 1 / number), rng)

    def best_of(self, evidence: NDArray[Any], draw: Ranking) -> Ranking:
        """The consensus that is best by the mean evidence of a cluster."""
        return self._population.best_of(evidence)

    def unbounded(self, chain: Any) -> list[bool]:
        """Does nothing in the data bound the alpha of each cluster?"""
        pairs = zip(chain.clusters, chain.has_users, strict=True)
        return [
            not has_users or is_unbounded(each.population, each.consensus, each.alpha, each.seed)
            for each, has_users in pairs
        ]


class MatchedChains(Chains):
    """Chains on the matched law of clicks, which need no latent rankings.

    Those of several clusters begin at one place, the best of several guesses: another guess may
    divide the users in another way, and chains that differ so would tell nothing of each other.
    """

    def __init__(self, population: Population, plan: Plan, rng: np.random.Generator):
        self._n_clusters, self._rng = plan.case.n_clusters, rng
        method: Any = plan.method  # with a prior of alpha, and a start
        proposals = MatchedProposals(method.move, method.leap, method.n_moves)
        self._start = MatchedStart(
            population,
            plan.alpha,
            proposals,
            prior=method.alpha_prior,
            share_prior=method.share_prior,
            is_corrected=method.is_exact,
            distance=method.distance,
        )
        self._start_of, self.evidence_shape = method.start_of, self._start.law.evidence_shape
        self._first: MatchedMixture | None = None

    @property
    def guesses(self) -> int:  # type: ignore[override]
        """Rounds of the guesses before the first chain."""
        if self._n_clusters == 1:
            return 0
        return N_STARTS * GUESS_ROUNDS + N_FINALISTS * LAST_ROUNDS + SETTLE_ROUNDS

    @property
    def comparison(self) -> Comparison | None:
        """Of the start of all chains with another, if there was one."""
        return self._start.comparison

    def make_ready(self, report: Callable[[], None]) -> None:
        """Guess the clusters at whose place all chains begin."""
        if self._n_clusters > 1 and self._first is None:
            self._first = self._start.clusters(
                self._n_clusters, self._rng, report, n_finalists=N_FINALISTS
            )

    def start(
        self,
        number: int,
        earlier: Earlier | None,
        rng: np.random.Generator,
        report: Callable[[], None],
    ) -> MatchedMixture:
        """A chain at its start; its clusters keep the order that they have there."""
        if self._n_clusters == 1:
            return self._start.one(self._start_of(number), rng)
        self.make_ready(report if earlier is None else lambda: None)
        assert self._first is not None
        chain = self._start.begin_at(self._first, rng)
        chain.follow(self._first.laws())
        return chain

    def empty(self) -> MatchedMixture:
        """One to be filled from a file."""
        return self._start.empty(self._n_clusters, np.random.default_rng(0))

    def best_of(self, evidence: NDArray[Any], draw: Ranking) -> Ranking:
        """The consensus that is best by the mean evidence of a cluster."""
        return self._start.law.best_of(evidence, draw)

    def unbounded(self, chain: Any) -> list[bool]:
        """Does nothing in the data bound the alpha of each cluster?"""
        found: list[bool] = chain.unbounded()
        return found


class GrownChains(MatchedChains):
    """Chains on the matched law that go on, each from a draw of a chain on fewer clicks."""

    def __init__(self, population: Population, plan: Plan, rng: np.random.Generator):
        super().__init__(population, plan, rng)
        self._last_draws = plan.last_draws

    @property
    def guesses(self) -> int:  # type: ignore[override]
        """None."""
        return 0

    def make_ready(self, report: Callable[[], None]) -> None:
        """They share nothing but the order of their clusters."""

    def start(
        self,
        number: int,
        earlier: Earlier | None,
        rng: np.random.Generator,
        report: Callable[[], None],
    ) -> MatchedMixture:
        """The chain of this number; its clusters keep the order of the first one."""
        chain = self._start.go_on(self._last_draws[number], rng)
        if self._n_clusters > 1:
            reference = self._last_draws[0]
            chain.follow(ClusterLaws(reference.consensus, reference.alpha))
        return chain
