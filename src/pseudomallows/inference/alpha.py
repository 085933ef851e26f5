"""estimate_alpha: how concentrated the users are around their consensus."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import distances
from ..engines.executors import Executor, check_executor
from ..latent.kendall_clicks import KendallClicks
from ..latent.population import Population, check_informative, log_likelihoods_of
from ..latent.registry import make_population
from ..paper.similarity import alpha_by_click_similarity, alpha_by_similarity
from ..preferences import Preferences, check_preferences
from ..rankings import as_rng, check_name
from .chains.clusters import ExactCluster, Proposals
from .chains.matched_starts import start_matched
from .chains.mixture import Mixture
from .chains.starts import HIGHEST_ALPHA, best_alpha, is_unbounded, start_consensus

METHODS = ("similarity", "likelihood")
LEAST_ALPHA = 0.01  # of "likelihood"; what is below is 0
FAR, NEAR = 0.5, 0.2  # how far log alpha moves in one step: on the way, and at the end
N_STEPS, N_LAST_STEPS = 40, 5  # at most
N_PLACES = 5  # of alpha, for an integral
FEW_DRAWS, MANY_DRAWS = 50, 400  # of the consensus for the last steps, for many users and for few


def estimate_alpha(
    prefs: Preferences,
    method: str = "similarity",
    *,
    rng: np.random.Generator | int | None = None,
    executor: Executor | None = None,
    distance: str = "footrule",
) -> float:
    """Estimate alpha from what is known about the users.

    Parameters
    ----------
    prefs : Preferences
        What is known about the users.
    method : str
        "similarity": the alpha at which two users are expected to be as similar (by cosine) as in
        the data. This is the paper's method, with the exact curve instead of simulated data sets,
        for full rankings and for clicks. "likelihood": the alpha under which the data are most
        likely, summed over all consensuses, by a short chain of consensuses and the exact
        likelihood given each; its noise is about a tenth of the standard error.
    rng : numpy.random.Generator or seed, optional
        Used by "likelihood" only.
    distance : str
        "footrule"; for another one (for clicks, "kendall") give method="likelihood".

    Examples
    --------
    >>> from pseudomallows import Mallows
    >>> rankings = Mallows(np.arange(1, 21), alpha=4).draw(500, rng=1)
    >>> prefs = Preferences.from_rankings(rankings)
    >>> round(estimate_alpha(prefs), 1), round(estimate_alpha(prefs, "likelihood", rng=1), 1)
    (4.1, 4.1)
    """
    check_name(method, "method", METHODS)
    check_preferences(prefs)
    if method == "similarity" and distances.get(distance).name != "footrule":
        raise ValueError(
            f"method='similarity' works with the footrule only: for distance={distance!r} give "
            "method='likelihood'"
        )
    check_executor(executor)
    rng = as_rng(rng)
    table = prefs.by_size() if method == "similarity" else None
    if table is not None:
        check_informative(prefs.is_informative)
        return _finite(alpha_by_click_similarity(table))
    population = make_population(prefs, executor, distance)
    if method == "similarity":
        return _finite(alpha_by_similarity(population))
    return _finite(_alpha_by_likelihood(population, rng))


def _finite(alpha: float) -> float:
    if math.isinf(alpha):
        raise ValueError(
            "the users agree on everything (or there is only one user), so no finite alpha is "
            "best: give alpha, or use method='mcmc', where its prior decides"
        )
    return alpha


def _alpha_by_likelihood(population: Population, rng: np.random.Generator) -> float:
    """Climb the likelihood of alpha, the consensus summed out, from its best for one consensus.

    That is too large: the consensus that fits best fits the noise too.
    """
    if not population.sums_out:
        raise ValueError(
            f"users known in part by {population.distance.name} have no exact likelihood to "
            "estimate alpha from: give alpha, or use method='mcmc', which samples it"
        )
    is_click_law = isinstance(population, KendallClicks)
    chain = (ClickChain if is_click_law else LatentChain)(population, rng)
    cluster = chain.cluster
    n_draws = min(max(50_000 // max(population.n_unknown, 1), FEW_DRAWS), MANY_DRAWS)
    n_draws *= 3 if population.is_full else 1  # where they cost little
    for _ in range(N_STEPS):
        if cluster.alpha < LEAST_ALPHA or cluster.alpha > HIGHEST_ALPHA:
            return 0.0 if cluster.alpha < LEAST_ALPHA else math.inf
        step = _best_step(chain, FAR, n_draws // 6)
        cluster.alpha *= math.exp(step)
        if abs(step) < NEAR:
            break
    for _ in range(N_LAST_STEPS):
        step = _best_step(chain, NEAR, n_draws)
        cluster.alpha *= math.exp(step)
        if abs(step) < 0.99 * NEAR:
            break
    if chain.is_unbounded():
        return math.inf
    return float(cluster.alpha) if _beats_chance(chain, n_draws) else 0.0


class LatentChain:
    """A chain of consensuses at the alpha of its `cluster`, which it leaves as it is."""

    cluster: Any

    def __init__(self, population: Population, rng: np.random.Generator):
        self.population = population
        consensus = start_consensus(population, 1.0, rng)
        alpha = best_alpha(population, consensus)
        proposals = Proposals("swap", 1, 10 * population.n_items)
        self.cluster = ExactCluster(population, consensus, alpha, proposals, None, rng)
        self._chain = Mixture.of_one(self.cluster)

    def move(self) -> None:
        """To another consensus."""
        for _ in range(1 if self.population.is_full else 2):
            self._chain.sweep(adapt=False)

    def log_likelihoods(self, alphas: list[float]) -> list[float]:
        """Of the present consensus, at these alphas."""
        points = [(self.population, self.cluster.consensus, alpha) for alpha in alphas]
        return log_likelihoods_of(points, self.population.executor)

    def is_unbounded(self) -> bool:
        """Does nothing in the data bound alpha from above?"""
        each = self.cluster
        return is_unbounded(each.population, each.consensus, each.alpha, each.seed)

    def draw(self, alphas: NDArray[np.float64], n_draws: int) -> NDArray[np.float64]:
        """``logs[place, draw]``: of these alphas, for consensuses drawn given that of the
        cluster."""
        logs = np.empty((len(alphas), n_draws))
        for draw in range(n_draws):
            self.move()
            logs[:, draw] = self.log_likelihoods(alphas.tolist())
        return logs


class ClickChain(LatentChain):
    """The same of clicks whose law is exact and a sum over items."""

    def __init__(self, population: Population, rng: np.random.Generator):
        self.population = population
        self._mixture = start_matched(population, 1, None, 1.0, rng, population.distance.name)
        self.cluster = self._mixture.clusters[0]
        self.cluster.fix_alpha()
        self._n_moves = self._mixture.law.usual_moves or 10 * population.n_items

    def move(self) -> None:
        """To another consensus."""
        self.cluster.move(self._n_moves, adapt=False)

    def log_likelihoods(self, alphas: list[float]) -> list[float]:
        """Of the present consensus, at these alphas."""
        return [self.cluster.tally.curve(self.cluster.consensus)(alpha) for alpha in alphas]

    def is_unbounded(self) -> bool:
        """Does nothing in the data bound alpha from above?"""
        return self._mixture.unbounded()[0]


def _best_step(chain: LatentChain, reach: float, n_draws: int) -> float:
    """How far log alpha should move, at most by `reach`.

    With consensuses drawn given the alpha of the cluster, the likelihood of any other, over that of
    this one, is the mean over them of the ratio of their likelihoods (Geyer and Thompson 1992).
    These are exact at five alphas, and polynomials in log alpha between.
    """
    from scipy.optimize import minimize_scalar

    steps = np.linspace(-reach, reach, 5)
    logs = chain.draw(chain.cluster.alpha * np.exp(steps), n_draws)
    curves = np.polyfit(steps, logs - logs[2], 4)
    best = minimize_scalar(
        lambda step: -float(np.logaddexp.reduce(np.polyval(curves, step))),
        bounds=(-reach, reach),
        method="bounded",
        options={"xatol": 1e-6},
    )
    return float(best.x)


def _beats_chance(chain: LatentChain, n_draws: int) -> bool:
    """Is the alpha of the cluster more likely than 0?

    Certainly, if one consensus alone, one of n!, makes it so. If not, by the integral of the slope
    of the log likelihood, which is the mean slope given a consensus, over the consensuses.
    """
    cluster, n_items = chain.cluster, chain.population.n_items
    alpha = cluster.alpha
    here, by_chance = chain.log_likelihoods([alpha, 0.0])
    if here - math.lgamma(n_items + 1) > by_chance:
        return True
    places, weights = np.polynomial.legendre.leggauss(N_PLACES)
    total = 0.0
    for place, weight in zip((1 + places[::-1]) / 2, weights, strict=True):
        cluster.alpha = alpha * float(place)
        around = cluster.alpha * np.array([0.95, 1.05])
        logs = chain.draw(around, n_draws // N_PLACES)
        total += float(weight * (logs[1] - logs[0]).mean()) / (around[1] - around[0])
    cluster.alpha = alpha
    return total > 0
