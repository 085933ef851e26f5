"""Method "pseudo": the Pseudo-Mallows distribution of the paper, fast and approximate."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import distances
from ..distances import price_of
from ..engines.progress import Progress
from ..laws.law import Law
from ..paper.clicks import PseudoMoves, PseudoRun
from ..paper.visit_orders import ORDERS
from ..preferences import Preferences
from ..rankings import check_number
from .chain import Chain, Moves, fresh_steps
from .options import Case, Method, Plan, clicks_only, one_of, option
from .priors import default_prior
from .start import replace_moves, start_clusters, unbounded

N_DIVISIONS = 10  # exact memberships are averaged: their mean has a third of the spread of one
N_SETTLING = 20  # sweeps before that


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

    def make_run(
        self,
        law: Law,
        prefs: Preferences,
        owners: NDArray[np.int64],
        plan: Plan,
        rng: np.random.Generator,
        progress: Progress,
    ) -> PseudoRun:
        """Independent draws of full rankings, or chains of Algorithm 5; the users of several
        clusters are divided before, as in the paper's case study, by a short exact run."""
        run = PseudoRun(law, prefs, owners, self.moves(plan.case), rng, progress)
        run.is_markov, run.kept_rows = plan.is_markov, plan.kept_rows
        run.n_chains, run.n_draws = self.n_chains, plan.n_draws
        run.warmup, run.thin = plan.warmup, plan.thin
        run.alpha, run.n_clusters = plan.alpha, plan.case.n_clusters
        if plan.case.has_clusters:
            run.divide = lambda child: self._divide(law, plan, child)
        return run

    def _divide(
        self, law: Law, plan: Plan, rng: np.random.Generator
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_]]:
        """A state with labels, and the mean memberships of a short run; and whether nothing bounds
        the alpha of a cluster."""
        prior = default_prior(law.n_items) if plan.alpha is None else None
        moves = Moves(prior=prior, weight_prior=plan.method.share_prior, is_corrected=False)
        moves = replace_moves(moves, law)
        n_clusters = plan.case.n_clusters
        state, _ = start_clusters(law, n_clusters, plan.alpha, moves, rng)
        chain, alphas = Chain(law, fresh_steps(state, law, moves), moves, rng), []
        memberships = np.zeros((law.n_rows, n_clusters))
        for sweep in range(N_SETTLING + N_DIVISIONS):
            chain.sweep(adapt=sweep < N_SETTLING)
            if sweep >= N_SETTLING:
                alphas.append(chain.state.alpha)
                memberships += chain.memberships()[0] / N_DIVISIONS
        is_free = unbounded(chain) if plan.alpha is None else [False] * n_clusters
        state = chain.state._replace(alpha=np.mean(alphas, axis=0))
        return state, memberships, np.array(is_free)

    @staticmethod
    def is_for(case: Case) -> bool:
        """Rankings and clicks."""
        return not case.has_pairs


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
