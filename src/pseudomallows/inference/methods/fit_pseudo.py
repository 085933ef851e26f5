"""Method "pseudo": the Pseudo-Mallows distribution of the paper, fast and approximate."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ... import distances
from ...distances import price_of
from ...distances.tallies import Ranking, rank_tally
from ...latent.population import Population
from ...paper.clicks import PseudoChain, PseudoMoves, make_groups
from ...paper.pseudo import PseudoMallows
from ...paper.visit_orders import ORDERS
from ...rankings import check_number, rank_randomly
from ..chains.clustered import Chains, Earlier
from ..chains.starts import PREPARATION, is_unbounded, prepare
from .method import Case, Method, Plan, clicks_only, one_of, option

N_DIVISIONS = 10  # exact memberships are averaged: their mean has a third of the spread of one


@dataclass(frozen=True, kw_only=True)
class PseudoMethod(Method):
    """A method whose consensus is drawn from a Pseudo-Mallows law."""

    keep_latent: Any = option(
        (),
        "Names of users whose latent rankings are kept with the draws, or True for all of them: "
        "those drawn at the start of a sweep, before the consensus moved.",
        lambda case: not case.is_full and not case.has_clusters,
    )

    def check_distance(self, case: Case) -> None:
        """Draws item by item need a distance that adds up over items."""
        price_of(distances.get(self.distance))

    @abstractmethod
    def moves(self, case: Case) -> PseudoMoves:
        """How a chain moves."""

    def draw_all(
        self, population: Population, plan: Plan, rng: np.random.Generator
    ) -> tuple[Ranking, NDArray[np.float64]]:
        """All draws of full rankings at once (Algorithm 3, or balanced)."""
        assert plan.alpha is not None
        moves, tally = self.moves(plan.case), rank_tally(population.known)
        law = PseudoMallows.from_tally(tally, plan.alpha, moves.sigma, moves.balanced)
        draws = law.draw_weighted(plan.n_draws, rng)
        return draws.rankings, draws.log_weights if moves.weighted else np.zeros(plan.n_draws)

    @staticmethod
    def is_for(case: Case) -> bool:
        """Rankings and clicks."""
        return not case.has_pairs

    def chains(self, population: Population, plan: Plan) -> "PseudoChains":
        """Those of the paper."""
        return PseudoChains(population, plan, self.moves(plan.case))


class PseudoChains(Chains):
    """Chains of Algorithm 5, the users of several clusters divided before, as in the paper's case
    study, by a short run of the exact mixture."""

    def __init__(self, population: Population, plan: Plan, moves: PseudoMoves):
        self._population, self._plan, self._moves = population, plan, moves
        self.preparation = PREPARATION + N_DIVISIONS if plan.case.has_clusters else 0
        self.evidence_shape = population.known.evidence.shape

    def start(
        self,
        number: int,
        earlier: Earlier | None,
        rng: np.random.Generator,
        report: Callable[[], None],
    ) -> PseudoChain:
        """A chain at its start: one cluster at the ranking of the mean ranks."""
        plan, n_clusters = self._plan, self._plan.case.n_clusters
        population = self._population.for_chain()
        if n_clusters == 1:
            consensus = rank_randomly(population.mean_ranks, rng)[None]
            alpha = np.array([plan.alpha], dtype=np.float64)
            return self._chain(population, consensus, alpha, rng)
        start = prepare(population, n_clusters, plan.alpha, plan.method.share_prior, rng, report)
        start.begin(None if earlier is None else earlier.memberships)
        start.refresh_every = 1
        for _ in range(N_DIVISIONS):
            start.sweep(adapt=False)
            report()
        divided = (start.counts, start.mean_memberships)
        return self._chain(population, start.consensus, start.alpha, rng, *divided)

    def _chain(
        self,
        population: Population,
        consensus: Ranking,
        alpha: NDArray[np.float64],
        rng: np.random.Generator,
        counts: NDArray[np.int64] | None = None,
        memberships: NDArray[np.float64] | None = None,
    ) -> PseudoChain:
        """Without `counts`, all users are in the first cluster."""
        shape = (population.n_rows, len(alpha))
        if counts is None or memberships is None:
            counts, memberships = np.zeros(shape, dtype=np.int64), np.zeros(shape)
            counts[:, 0], memberships[:, 0] = population.row_weights, 1.0
        seeds = rng.integers(2**63, size=len(alpha))
        groups = make_groups(population, counts, consensus, alpha, seeds)
        return PseudoChain(population, groups, counts, memberships, self._moves, rng)

    def empty(self) -> PseudoChain:
        """One to be filled from a file."""
        number, n_items = self._plan.case.n_clusters, self._population.n_items
        first = np.tile(np.arange(1, n_items + 1, dtype=np.int32), (number, 1))
        return self._chain(self._population, first, np.ones(number), np.random.default_rng(0))

    def best_of(self, evidence: NDArray[Any], draw: Ranking) -> Ranking:
        """The consensus that is best by the mean evidence of a cluster."""
        return self._population.best_of(evidence)

    def unbounded(self, chain: PseudoChain) -> list[bool]:
        """Does nothing in the data bound the alpha of each cluster?"""
        return [
            each.population is None
            or is_unbounded(each.population, each.consensus, each.alpha, each.seed)
            for each in chain.groups
        ]


@dataclass(frozen=True, kw_only=True)
class Pseudo(PseudoMethod):
    """The consensus is drawn item by item, in the order of a V-ranking; clicks by Algorithm 5."""

    name: ClassVar[str] = "pseudo"
    words: ClassVar[str] = "Pseudo-Mallows, a fast approximation"

    sigma: float | None = option(
        None,
        "Noise on the V-ranking; default 0, but n_items / 5 for clusters of clicks, where 0 ranks "
        "the best items of a cluster badly.",
        check=check_number,
    )
    order: str = option(
        "uniform",
        'How a user\'s items are visited (section 3.3 of the paper): "uniform" (default), "v" or '
        '"top_bottom".',
        clicks_only,
        one_of(*ORDERS),
    )

    def check_distance(self, case: Case) -> None:
        """Algorithms 4 and 5, of clicks, are of the footrule."""
        super().check_distance(case)
        if case.has_clicks and self.distance != "footrule":
            raise ValueError(
                "method='pseudo' on clicks works with the footrule only, got "
                f"distance={self.distance!r}: use method='mcmc'"
            )

    def other_defaults(self, case: Case, n_sweeps: int) -> dict[str, Any]:
        """Noise for clusters of clicks: few users, sharp costs, so one order scrambles the top."""
        noisy = case.has_clicks and case.has_clusters
        return {"sigma": case.n_items / 5 if noisy else 0.0} if self.sigma is None else {}

    def default_thin(self, case: Case) -> int:
        """Draws by Algorithm 5 move fast."""
        if case.is_full or case.has_clicks:
            return 1
        return 5 if case.has_clusters else 10

    def default_warmup(self, case: Case, n_sweeps: int) -> int:
        """Algorithm 5 starts close, and moves fast."""
        if case.has_clicks:
            return max(10, n_sweeps // 10)
        return super().default_warmup(case, n_sweeps)

    def moves(self, case: Case) -> PseudoMoves:
        """How a chain moves: on clicks, by the paper's law of the latent rankings."""
        assert self.sigma is not None
        order = self.order if case.has_clicks else None
        return PseudoMoves(sigma=self.sigma, order=order)

    def settings(self, case: Case) -> dict[str, Any]:
        """The options as plain values; `order` is that of the law of the latent rankings."""
        return super().settings(case) | {"order": self.moves(case).order}
