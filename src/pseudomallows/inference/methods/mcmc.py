"""Method "mcmc": the exact posterior, by Markov chains."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ...distances.tallies import MOVES, Ranking
from ...engines.executors import Executor, check_local
from ...latent.metropolis import MetropolisPopulation
from ...latent.population import Population, check_informative
from ...posteriors.posterior import Posterior
from ...preferences import Clicks, Preferences
from ...rankings import rank_randomly
from ..clusters import ExactCluster, Proposals
from ..priors import FLAT, Prior, default_prior
from ..starts import best_alpha, start_consensus
from .method import Case, Method, Plan, above_0, clicks_only, count, one_of, option

STARTS = ("map", "random")
AUGMENTATIONS = ("exact", "metropolis")
N_ALPHA_MOVES = 5  # in a sweep of full rankings, where one costs nothing


def _one_cluster_of_clicks(case: Case) -> bool:
    return clicks_only(case) and not case.has_clusters


def _check_prior(prior: Any, name: str) -> Prior:
    if isinstance(prior, str) and prior == "flat":
        return FLAT
    try:
        shape, rate = prior
    except (TypeError, ValueError):
        raise TypeError(
            f'alpha_prior must be (shape, rate) of a gamma, or "flat", got {prior!r}'
        ) from None
    return above_0(shape, "alpha_prior shape"), above_0(rate, "alpha_prior rate")


@dataclass(frozen=True, kw_only=True)
class Mcmc(Method):
    """Metropolis steps on the consensus and on alpha, with exact latent rankings between."""

    name: ClassVar[str] = "mcmc"
    words: ClassVar[str] = "the exact model, by a Markov chain"
    is_exact: ClassVar[bool] = True

    n_chains: int = option(4, "Number of chains; default 4.", check=count())
    warmup: int | None = option(
        None,
        "Sweeps thrown away at the start of a chain; default half of n_draws * thin, at least 100 "
        "(with clusters a fifth, at least 50).",
        check=count(0),
    )
    thin: int | None = option(
        None,
        "Sweeps for each draw that is kept; default 1 for full rankings, else 5.",
        check=count(),
    )
    move: str = option(
        "swap", 'Proposals: "swap" (default) or "leap_and_shift".', check=one_of(*MOVES)
    )
    leap: int | None = option(
        None, "How far a leap goes, in places; default n_items / 5.", check=count()
    )
    n_moves: int | None = option(None, "Proposals in a sweep; default 10 n_items.", check=count())
    alpha_prior: Any = option(
        None,
        "Gamma prior of alpha, (shape, rate). The default, (2, 2 / n_items + 1 / 20), has a mean "
        'of n_items for few items and of 40 for many; "flat" is (1, 0.001), nearly flat.',
        check=_check_prior,
    )
    start: str = option(
        "map",
        '"map" (default) or "random".',
        lambda case: not case.has_clusters,
        one_of(*STARTS),
    )
    augmentation: str = option(
        "exact",
        'Latent rankings: "exact" (default), or "metropolis", the paper\'s opponent.',
        _one_cluster_of_clicks,
        one_of(*AUGMENTATIONS),
    )
    n_swaps: int = option(
        1,
        'With augmentation="metropolis": proposals for each user and sweep.',
        _one_cluster_of_clicks,
        count(),
    )

    def other_defaults(self, case: Case) -> dict[str, Any]:
        """Proposals and prior by the number of items."""
        leap = max(1, case.n_items // 5) if self.leap is None else self.leap
        n_moves = 10 * case.n_items if self.n_moves is None else self.n_moves
        prior = default_prior(case.n_items) if self.alpha_prior is None else self.alpha_prior
        return {"leap": min(leap, case.n_items - 1), "n_moves": n_moves, "alpha_prior": prior}

    def is_markov(self, case: Case) -> bool:
        """Always."""
        return True

    @property
    def has_exact_latent(self) -> bool:
        """Not with swaps."""
        return self.augmentation == "exact"

    def population(self, prefs: Preferences, executor: Executor | None) -> Population:
        """The users as this method needs them."""
        if self.has_exact_latent:
            return super().population(prefs, executor)
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
        proposals = Proposals(self.move, self.leap, self.n_moves, n_alpha_moves)
        prior = self.alpha_prior if plan.alpha is None else None
        return ExactCluster(population, consensus, alpha, proposals, prior, rng)

    def stuck_chains(self, posterior: Posterior, population: Population, plan: Plan) -> list[int]:
        """Chains whose draws cannot be typical, against the best place that is known.

        The mean gap between the mode and a draw is at most the entropy, so at most log n! for the
        consensus; a chain whose mean gap is larger has not found the bulk of the posterior.
        """
        if not self.has_exact_latent or plan.case.has_clusters:
            return []
        from_map = replace(self, start="map")
        best = from_map.first_cluster(population, plan, np.random.default_rng(0)).log_posterior()
        limit = best - math.lgamma(posterior.n_items + 1) - 10
        means = posterior.log_posterior.mean(axis=1)
        return np.flatnonzero(means < limit).tolist()

    def settings(self, case: Case) -> dict[str, Any]:
        """The options as plain values."""
        return super().settings(case) | {"alpha_prior": list(self.alpha_prior)}
