"""Method "mcmc": the exact posterior, by Markov chains; for clicks, on the matched law."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ...distances.tallies import Ranking
from ...engines.executors import Executor
from ...latent.augmented.error_rates import MODELS, THETA_PRIOR
from ...latent.augmented.votes import VotePopulation
from ...latent.population import Population
from ...latent.registry import CLICK_LAWS, make_population
from ...posteriors.diagnose import describe_contradictions
from ...posteriors.names import AUGMENTATIONS, ERROR_MODELS, GAPS
from ...posteriors.posterior import Posterior
from ...preferences import Preferences
from ...rankings import rank_randomly
from ..chains.clusters import ExactCluster, FreeCluster, Proposals
from ..chains.starts import best_alpha, start_consensus, start_elsewhere
from .method import Case, Plan, above_0, clicks_only, one_of, option, pairs_only
from .sampler import Sampler

LEAST_DRAWS, ROOM = 10, 2**29  # draws of a chain, and bytes of all, of a huge catalogue
N_ALPHA_MOVES = 5  # in a sweep, where one costs nothing
OF_KENDALL = {"augmentation": "matched", "move": "swap"}  # for clicks, which have nothing latent


def check_beta(prior: Any, name: str) -> tuple[float, float]:
    """A check for the two numbers of a Beta distribution."""
    try:
        one, other = prior
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be two numbers above 0, got {prior!r}") from None
    return above_0(one, name), above_0(other, name)


def contradictions_of(prefs: Preferences) -> tuple[int, int, Any, list[Any]] | None:
    """How many users contradict themselves, of how many; the first, and how; None if none does."""
    pairs = prefs.comparisons()
    if pairs is None or not prefs.is_contradictory:
        return None
    return int((~pairs.is_consistent).sum()), prefs.n_users, *pairs.contradictions(1)[0]


def check_consistent(prefs: Preferences) -> None:
    """Refuse users who contradict themselves, and name one."""
    found = contradictions_of(prefs)
    if found is not None:
        raise ValueError(
            f"{describe_contradictions(*found)}: use errors='bernoulli' or 'logistic', which allow "
            "for errors, or leave errors out"
        )


@dataclass(frozen=True, kw_only=True)
class Mcmc(Sampler):
    """Metropolis steps on the consensus and on alpha. For clicks, thinnings of them on the matched
    law are accepted by the exact one; else exact latent rankings are drawn between."""

    name: ClassVar[str] = "mcmc"
    words: ClassVar[str] = "the exact model, by a Markov chain"
    is_exact: ClassVar[bool] = True

    augmentation: str = option(
        "matched",
        'Latent rankings: "matched" (default) sums them out; "exact" draws them in each sweep.',
        clicks_only,
        one_of(*AUGMENTATIONS),
    )
    errors: str | None = option(
        None,
        'Wrong comparisons: "none" (default where no user contradicts themselves), "bernoulli" '
        '(default otherwise: each is wrong with probability theta), or "logistic" (those of items '
        "far apart in the user's ranking more rarely).",
        pairs_only,
        one_of(*ERROR_MODELS),
    )
    theta_prior: Any = option(
        THETA_PRIOR,
        'With errors="bernoulli": (one, other) of the Beta prior of theta, which is cut off at '
        "1/2; default (1, 1), uniform.",
        pairs_only,
        check_beta,
    )
    gaps: str = option(
        "auto",
        'Votes by Kendall\'s distance: "equal" gaps between neighbours of the consensus are its '
        'exact law; with "free" ones each has its own size (Bradley and Terry\'s law); "auto" '
        "(default) takes free ones if the votes contradict equal ones.",
        pairs_only,
        one_of(*GAPS),
    )

    def other_defaults(self, case: Case, n_sweeps: int) -> dict[str, Any]:
        """Proposals and prior by the number of items; errors, if users contradict themselves."""
        errors = self.errors or ("bernoulli" if case.is_contradictory else "none")
        return super().other_defaults(case, n_sweeps) | {"errors": errors}

    def check_distance(self, case: Case) -> None:
        """Clicks have nothing latent by Kendall's distance, and moves of their own."""
        if not (case.has_clicks and self.distance == "kendall"):
            return
        for name, usual in OF_KENDALL.items():
            if getattr(self, name) not in (None, usual):
                raise ValueError(
                    f"{name}={getattr(self, name)!r} does not go with clicks and distance="
                    f"{self.distance!r}, whose latent rankings are summed out: leave {name} out"
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

    def default_refresh(self, case: Case) -> int:
        """Labels cost little where nothing is latent."""
        is_closed = case.has_clicks and self.distance == "kendall"
        return 1 if is_closed else super().default_refresh(case)

    def population(self, prefs: Preferences, executor: Executor | None) -> Population:
        """The users as this method needs them."""
        if self.gaps != "auto" and not (prefs.is_vote and self.distance == "kendall"):
            raise ValueError(
                f"gaps={self.gaps!r} is for votes, one comparison a person, with "
                "distance='kendall': leave gaps out"
            )
        if self.errors == "none":
            check_consistent(prefs)
        errors = MODELS[self.errors or "none"](prefs.n_items, self.theta_prior)
        made = make_population(prefs, executor, self.distance, errors)
        if not isinstance(made, VotePopulation):
            return made
        if self.errors not in (None, "none"):
            raise ValueError(
                f"errors={self.errors!r} looks the same as disagreement where each person "
                "compares one pair: leave errors out"
            )
        return made.with_gaps(self.gaps)

    def first_cluster(
        self, population: Population, plan: Plan, rng: np.random.Generator, number: int = 0
    ) -> ExactCluster:
        """At the best consensus that is found, at a random one, or at another mode."""
        users, alpha, start = population.for_chain(), plan.alpha, self.start_of(number)
        if start == "random" or (start == "elsewhere" and not population.sums_out):
            consensus = rank_randomly(np.zeros(population.n_items), rng)
            return self.cluster(users, consensus, 1.0 if alpha is None else alpha, plan, rng)
        consensus = start_consensus(users, 1.0 if alpha is None else alpha, rng)
        if alpha is None:
            best = best_alpha(users, consensus, self.alpha_prior)
            alpha = float(np.clip(best, 0.1, 10 * population.n_items))
        cluster = self.cluster(users, consensus, alpha, plan, rng)
        if start == "map":
            return cluster
        other = start_elsewhere(
            cluster, lambda random, child: self.cluster(users, random, alpha, plan, child)
        )
        return self.cluster(users, other, alpha, plan, rng)

    def cluster(
        self,
        population: Population,
        consensus: Ranking,
        alpha: float,
        plan: Plan,
        rng: np.random.Generator,
    ) -> ExactCluster:
        """A cluster that moves by this method."""
        assert self.move is not None
        assert self.leap is not None
        assert self.n_moves is not None
        n_alpha_moves = N_ALPHA_MOVES if plan.case.is_full else 1
        how = FreeCluster if _has_free_gaps(population) else ExactCluster
        proposals = Proposals(self.move, self.leap, self.n_moves, n_alpha_moves)
        prior = self.alpha_prior if plan.alpha is None else None
        return how(population, consensus, alpha, proposals, prior, rng)

    def settings(self, case: Case) -> dict[str, Any]:
        """The options as plain values."""
        return super().settings(case) | {"theta_prior": list(self.theta_prior)}

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
