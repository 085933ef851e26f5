"""Method "pseudo": the Pseudo-Mallows distribution of the paper, fast and approximate."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ... import distances
from ...distances import price_of
from ...distances.tallies import Ranking, rank_tally
from ...latent.population import Population
from ...paper.pseudo import PseudoMallows, WeightedDraws
from ...paper.visit_orders import ORDERS
from ...posteriors.diagnostics import SLOW_ADVICE
from ...rankings import check_number, rank_randomly
from ..chains.clusters import PseudoCluster, PseudoMoves
from .method import Case, Method, Plan, clicks_only, one_of, option


class PseudoMethod(Method):
    """A method whose consensus is drawn from a Pseudo-Mallows law."""

    def check_distance(self, case: Case) -> None:
        """Draws item by item need a distance that adds up over items."""
        price_of(distances.get(self.distance))

    @abstractmethod
    def moves(self, case: Case) -> PseudoMoves:
        """How a cluster moves."""

    def draw_all(
        self, population: Population, plan: Plan, rng: np.random.Generator
    ) -> WeightedDraws:
        """All draws of full rankings at once (Algorithm 3, or balanced)."""
        assert plan.alpha is not None
        moves = self.moves(plan.case)
        law = PseudoMallows.from_tally(
            rank_tally(population.known), plan.alpha, moves.sigma, moves.balanced
        )
        draws = law.draw_weighted(plan.n_draws, rng)
        return draws if moves.weighted else replace(draws, log_weights=np.zeros(plan.n_draws))

    @staticmethod
    def is_for(case: Case) -> bool:
        """Rankings and clicks."""
        return not case.has_pairs

    def first_cluster(
        self, population: Population, plan: Plan, rng: np.random.Generator, number: int = 0
    ) -> PseudoCluster:
        """From the ranking of the mean ranks."""
        assert plan.alpha is not None
        return self.cluster(
            population, rank_randomly(population.mean_ranks, rng), plan.alpha, plan, rng
        )

    def cluster(
        self,
        population: Population,
        consensus: Ranking,
        alpha: float,
        plan: Plan,
        rng: np.random.Generator,
    ) -> PseudoCluster:
        """A cluster that moves by this method."""
        return PseudoCluster(population, consensus, alpha, self.moves(plan.case), rng)


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

    def other_defaults(self, case: Case) -> dict[str, Any]:
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

    def default_refresh(self, case: Case) -> int:
        """Exact labels cost more than a sweep of Algorithm 5."""
        return 20 if case.has_clicks and case.has_clusters else super().default_refresh(case)

    @property
    def is_led(self) -> bool:
        """The draws are too rough to tell users apart."""
        return True

    def moves(self, case: Case) -> PseudoMoves:
        """How a cluster moves: on clicks, by the paper's law of the latent rankings."""
        assert self.sigma is not None
        order = self.order if case.has_clicks else None
        return PseudoMoves(sigma=self.sigma, order=order)

    def advice(self, case: Case) -> str:
        """Algorithm 5 is slow by its nature."""
        return SLOW_ADVICE if case.has_clicks else super().advice(case)

    def settings(self, case: Case) -> dict[str, Any]:
        """The options as plain values; `order` is that of the law of the latent rankings."""
        return super().settings(case) | {"order": self.moves(case).order}
