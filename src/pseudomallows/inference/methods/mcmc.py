"""Method "mcmc": the exact posterior, by Markov chains; for clicks, on the matched law."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ...distances.tallies import Ranking
from ...engines.executors import Executor, check_local
from ...latent.metropolis import MetropolisPopulation
from ...latent.population import Population, check_informative
from ...latent.registry import CLICK_LAWS
from ...latent.votes import VotePopulation
from ...posteriors.names import AUGMENTATIONS, GAPS
from ...posteriors.posterior import Posterior
from ...preferences import Clicks, Preferences
from ...rankings import rank_randomly
from ..chains.clusters import ExactCluster, FreeCluster, Proposals
from ..chains.starts import best_alpha, start_consensus
from .method import Case, Plan, clicks_only, count, one_of, option
from .sampler import Sampler

LEAST_DRAWS, ROOM = 10, 2**29  # draws of a chain, and bytes of all, of a huge catalogue
N_ALPHA_MOVES = 5  # in a sweep of full rankings, where one costs nothing


def _one_cluster_of_clicks(case: Case) -> bool:
    return clicks_only(case) and not case.has_clusters


def _pairs_only(case: Case) -> bool:
    return case.kind == "pairs"


@dataclass(frozen=True, kw_only=True)
class Mcmc(Sampler):
    """Metropolis steps on the consensus and on alpha. For clicks, stretches of them on the matched
    law are accepted by the exact one; else exact latent rankings are drawn between."""

    name: ClassVar[str] = "mcmc"
    words: ClassVar[str] = "the exact model, by a Markov chain"
    is_exact: ClassVar[bool] = True

    augmentation: str = option(
        "matched",
        'Latent rankings: "matched" (default) sums them out; "exact" draws them in each sweep; '
        '"metropolis", for one cluster, is the paper\'s opponent.',
        clicks_only,
        one_of(*AUGMENTATIONS),
    )
    n_swaps: int = option(
        1,
        'With augmentation="metropolis": proposals for each user and sweep.',
        _one_cluster_of_clicks,
        count(),
    )

    gaps: str = option(
        "auto",
        'Votes by Kendall\'s distance: "equal" gaps between neighbours of the consensus are its '
        'exact law; with "free" ones each has its own size (Bradley and Terry\'s law); "auto" '
        "(default) takes free ones if the votes contradict equal ones.",
        _pairs_only,
        one_of(*GAPS),
    )

    def other_defaults(self, case: Case) -> dict[str, Any]:
        """Proposals and prior by the number of items."""
        if self.augmentation == "metropolis" and case.has_clusters:
            raise ValueError("augmentation='metropolis' is for one cluster: use 'matched'")
        return super().other_defaults(case)

    def check_distance(self, case: Case) -> None:
        """Of clicks, Kendall's has a law of its own, and moves of its own."""
        if not (case.has_clicks and self.distance == "kendall"):
            return
        for name, usual in (("augmentation", "matched"), ("move", "swap")):
            if getattr(self, name) != usual:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} does not go with clicks and "
                    f"distance='kendall', whose latent rankings are summed out: leave {name} out"
                )

    def is_matched(self, case: Case) -> bool:
        """Clicks, unless their latent rankings are to be drawn, or their distance needs them."""
        return case.has_clicks and self.augmentation == "matched" and self.distance in CLICK_LAWS

    def default_draws(self, case: Case) -> int:
        """Draws on a law of clicks are nearly independent; of a huge catalogue only as many as have
        room."""
        if not self.is_matched(case):
            return 200
        of_one = 4 * case.n_items * case.n_clusters * self.n_chains
        return min(100, max(LEAST_DRAWS, ROOM // of_one))

    def population(self, prefs: Preferences, executor: Executor | None) -> Population:
        """The users as this method needs them."""
        if self.gaps != "auto" and not (prefs.is_vote and self.distance == "kendall"):
            raise ValueError(
                f"gaps={self.gaps!r} is for votes, one comparison a person, with "
                "distance='kendall': leave gaps out"
            )
        if self.augmentation != "metropolis" or self.distance != "footrule":
            made = super().population(prefs, executor)
            return made.with_gaps(self.gaps) if isinstance(made, VotePopulation) else made
        check_local(executor, "augmentation='metropolis'")
        check_informative(prefs.is_informative)
        assert isinstance(prefs, Clicks)  # others do not have the option
        return MetropolisPopulation(prefs, executor, self.n_swaps)

    def first_cluster(
        self, population: Population, plan: Plan, rng: np.random.Generator
    ) -> ExactCluster:
        """At a good place, or at a random one."""
        users, alpha = population.for_chain(), plan.alpha
        if self.start == "random":
            consensus = rank_randomly(np.zeros(population.n_items), rng)
            return self.cluster(users, consensus, 1.0 if alpha is None else alpha, plan, rng)
        consensus = start_consensus(users, 1.0 if alpha is None else alpha, rng)
        if alpha is None:
            best = best_alpha(users, consensus, self.alpha_prior)
            alpha = float(np.clip(best, 0.1, 10 * population.n_items))
        return self.cluster(users, consensus, alpha, plan, rng)

    def cluster(
        self,
        population: Population,
        consensus: Ranking,
        alpha: float,
        plan: Plan,
        rng: np.random.Generator,
    ) -> ExactCluster:
        """A cluster that moves by this method."""
        assert self.leap is not None
        assert self.n_moves is not None
        n_alpha_moves = N_ALPHA_MOVES if plan.case.is_full else 1
        how = FreeCluster if _has_free_gaps(population) else ExactCluster
        proposals = Proposals(self.move, self.leap, self.n_moves, n_alpha_moves)
        prior = self.alpha_prior if plan.alpha is None else None
        return how(population, consensus, alpha, proposals, prior, rng)

    def stuck_chains(self, posterior: Posterior, population: Population, plan: Plan) -> list[int]:
        """Chains whose draws cannot be typical, against the best place that is known.

        The mean gap between the mode and a draw is at most the entropy, so at most log n! for the
        consensus; a chain whose mean gap is larger has not found the bulk of the posterior.
        """
        if not population.sums_out or plan.case.has_clusters or self.is_matched(plan.case):
            return []
        if _has_free_gaps(population):  # whose draws are of another law
            return []
        from_map = replace(self, start="map")
        best = from_map.first_cluster(population, plan, np.random.default_rng(0)).log_posterior()
        limit = best - math.lgamma(posterior.n_items + 1) - 10
        means = posterior.log_posterior.mean(axis=1)
        return np.flatnonzero(means < limit).tolist()


def _has_free_gaps(population: Population) -> bool:
    return isinstance(population, VotePopulation) and population.has_free_gaps
