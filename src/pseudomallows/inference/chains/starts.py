"""Where chains start: a good consensus and alpha, and a good guess of the clusters."""

import math
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...distances.distance import alpha_for_distance
from ...distances.tallies import Ranking, Tally
from ...kernels.streams import CHAIN, start_stream
from ...latent.population import LocalPopulation, Population
from ...rankings import rank_randomly
from ..priors import Prior, default_prior, log_density
from .clusters import Cluster
from .mixture import Mixture

HIGHEST_ALPHA = 1e4  # where the search for an alpha ends, if not all is known
N_DRAWS = 10  # rounds of latent rankings for a first consensus
N_TRIES, TRY_SWEEPS = 8, 10  # of a second mode: one in three random starts is missed by 1 in 25
RARE = 1000  # a mode of this density less is none; a draw of n_items numbers is n_items / 2 below
START_ROWS, START_ROWS_EACH = 1000, 150  # rows for the guesses: in all, and for each cluster
N_STARTS, N_FINALISTS = 6, 2  # guesses, and those that go on after two sweeps
ASSIGNED_SWEEPS, SAMPLED_SWEEPS = 4, 15  # of the best guess, on all rows
PREPARATION = 2 * N_STARTS + 4 * N_FINALISTS + ASSIGNED_SWEEPS + SAMPLED_SWEEPS
LOWEST_START = 0.05  # of alpha
SHARP, FALL = 50.0, 2.0  # alpha / n_items that is as good as infinite; a fall in log likelihood
N_ROUNDS = 5  # in which a consensus without disagreement is looked for


def start_consensus(population: Population, alpha: float, rng: np.random.Generator) -> Ranking:
    """A good consensus to start from: the exact MAP for full rankings.

    For partial ones, the ranking of the mean ranks, improved by rounds of drawing the latent
    rankings and taking their exact MAP (stochastic EM).
    """
    if population.is_full:
        return population.known.best()
    consensus = rank_randomly(population.mean_ranks, rng)
    seed = int(rng.integers(2**63))
    for number in range(N_DRAWS):
        consensus = population.draw(consensus, alpha, seed, number).tally.best()
    return consensus


def start_elsewhere(
    best: Cluster, begin: Callable[[Ranking, np.random.Generator], Cluster]
) -> Ranking:
    """The mode furthest from the best start among those that chains from random rankings find.

    All chains at one mode would agree whatever the others weigh (Gelman and Rubin 1992: begin at
    overdispersed points). A chain counts if its density is near enough to that of the best start to
    be a draw from a mode that matters; where none is, since the way from a random ranking is long,
    the best start it is.
    """
    n_items = best.population.n_items
    least = best.log_posterior() - math.log(RARE) - n_items / 2
    found = [best.consensus]
    for child in best.rng.spawn(N_TRIES):
        chain = Mixture.of_one(begin(rank_randomly(np.zeros(n_items), child), child))
        for _ in range(TRY_SWEEPS):
            chain.sweep(adapt=True)
        if chain.log_posterior() >= least:
            found.append(chain.clusters[0].consensus)
    return max(found, key=lambda consensus: int(np.abs(consensus - best.consensus).sum())).copy()


def best_alpha(
    population: Population, consensus: Ranking, prior: Prior | None = None, tolerance: float = 1e-5
) -> float:
    """The alpha that makes what is known most likely, given a consensus; maybe infinite.

    With a prior, the mode of its posterior, which is finite.
    """
    from scipy.optimize import minimize_scalar

    def depth(log_alpha: float) -> float:
        alpha = math.exp(log_alpha)
        penalty = 0.0 if prior is None else log_density(prior, alpha)
        return -population.log_likelihood(consensus, alpha) - penalty

    if population.is_alpha_by_distance and prior is None:
        mean = population.known.distance(consensus) / population.n_users
        return alpha_for_distance(population.distance, population.n_items, mean)
    best = minimize_scalar(
        depth,
        bounds=(math.log(1e-3), math.log(HIGHEST_ALPHA)),
        method="bounded",
        options={"xatol": tolerance},
    )
    if prior is not None:
        return math.exp(best.x)
    rising = population.log_likelihood(consensus, HIGHEST_ALPHA) >= -best.fun - 1e-9
    return math.inf if rising else math.exp(best.x)


def is_unbounded(population: Population, consensus: Ranking, alpha: float, seed: int) -> bool:
    """Does nothing in the data of a cluster bound its alpha from above?

    That is so if some consensus leaves no user in disagreement: then the likelihood does not fall
    from the present alpha to infinity, and the prior alone decides. The consensus is looked for
    from that of the mean ranks, which is one for clicks that are nested, and from the present one
    on, by rounds of latent rankings as close to it as can be.
    """
    sharp = max(SHARP * population.n_items, 10 * alpha)
    present = population.log_likelihood(consensus, alpha)
    if population.is_full:
        return population.log_likelihood(population.known.best(), sharp) >= present - FALL
    mean_ranks = np.argsort(np.argsort(population.mean_ranks, kind="stable")).astype(np.int32) + 1
    if population.log_likelihood(mean_ranks, sharp) >= present - FALL:
        return True
    for number in range(N_ROUNDS):
        if population.log_likelihood(consensus, sharp) >= present - FALL:
            return True
        consensus = population.draw(consensus, sharp, seed, number).tally.best()
    return False


class StartCluster(Cluster):
    """A cluster on its way to a good start: the consensus by assignment, then by moves; alpha by
    climbing its exact likelihood times its prior: a cluster without disagreement has a likelihood
    that rises for ever."""

    def __init__(
        self,
        population: Population,
        consensus: Ranking,
        alpha: float,
        is_fixed: bool,
        rng: np.random.Generator,
    ):
        super().__init__(population, consensus, alpha, rng)
        self.is_fixed, self.is_sampled = is_fixed, False
        self._reach = 0.5  # of the next steps of log alpha
        self._prior = default_prior(population.n_items)

    def alphas_to_try(self) -> list[float]:
        """Three alphas in a row; with full rankings the best one is known without."""
        if self.is_fixed or self.population.is_full:
            return []
        return [self.alpha * math.exp(step * self._reach) for step in (-1, 0, 1)]

    def judge_alphas(self, values: list[float], adapt: bool) -> None:
        """Go to the top of the parabola through three points, at most two steps away."""
        steps = (-self._reach, 0.0, self._reach)
        low, middle, high = (
            value + log_density(self._prior, self.alpha * math.exp(step))
            for value, step in zip(values, steps, strict=True)
        )
        bend = low - 2 * middle + high
        step = (low - high) / (2 * bend) if bend < 0 else math.copysign(2.0, high - low)
        self._set_alpha(self.alpha * math.exp(self._reach * min(max(step, -2.0), 2.0)))
        self._reach = max(0.1, self._reach * (1.0 if abs(step) > 1 else 0.7))

    def _set_alpha(self, alpha: float) -> None:
        highest = min(HIGHEST_ALPHA, 10.0 * self.population.n_items)
        self.alpha = min(max(alpha, LOWEST_START), highest)

    def move(self, tally: Tally) -> None:
        """The best consensus, or a sampled one."""
        if not self.is_sampled:
            self.consensus = tally.best()
        else:
            stream, n_items = np.empty(1, dtype=np.uint64), self.population.n_items
            start_stream(self.seed, self.n_sweeps, CHAIN, stream)
            tally.move(stream, self.alpha / n_items, 10 * n_items, self.consensus)
        if self.population.is_full and not self.is_fixed:
            self._set_alpha(best_alpha(self.population, self.consensus, self._prior))


def some_rows(
    population: Population,
    n_clusters: int,
    rng: np.random.Generator,
    n_each: int = START_ROWS_EACH,
) -> LocalPopulation:
    """Rows enough to guess the clusters from, at hand."""
    n_rows = max(START_ROWS, n_each * n_clusters)
    if population.n_rows <= n_rows:
        return population.gather(population.row_weights)
    weights = np.zeros_like(population.row_weights)
    chosen = rng.choice(population.n_rows, n_rows, replace=False)
    weights[chosen] = population.row_weights[chosen]
    return population.gather(weights)


def find_start(
    population: Population,
    n_clusters: int,
    alpha: float | None,
    share_prior: float,
    rng: np.random.Generator,
    report: Callable[[], None] = lambda: None,
) -> Mixture:
    """A good start: several cheap guesses on some of the rows, the best by likelihood on all.

    A guess is k-means on the leading axes of the data, improved by stochastic EM: labels from
    exact memberships, exact latent rankings, the best consensus by assignment. From the end on the
    consensus is sampled, since the best one would have too large an alpha.
    """
    some = some_rows(population, n_clusters, rng)
    features = some.features(min(n_clusters, population.n_items - 1))
    guesses = [
        _guess(some, features, n_clusters, alpha, share_prior, child)
        for child in rng.spawn(N_STARTS)
    ]
    for n_sweeps, n_left in ((2, N_FINALISTS), (4, 1)):
        for guess in guesses:
            _run(guess, n_sweeps, report)
        guesses = sorted(guesses, key=lambda guess: -guess.log_likelihood)[:n_left]
    best = Mixture(population, guesses[0].clusters, guesses[0].shares, 1, share_prior, rng)
    best.refresh(adapt=True)
    _run(best, ASSIGNED_SWEEPS, report)
    for cluster in best.clusters:
        assert isinstance(cluster, StartCluster)
        cluster.is_sampled = True
    best.refresh_every = 3
    return best


def prepare(
    population: Population,
    n_clusters: int,
    alpha: float | None,
    share_prior: float,
    rng: np.random.Generator,
    report: Callable[[], None],
) -> Mixture:
    """The clusters to start from, alpha a mean over some sweeps, and fixed from then on."""
    mixture = find_start(population, n_clusters, alpha, share_prior, rng, report)
    _run(mixture, SAMPLED_SWEEPS // 3, report)
    alphas = []
    for _ in range(SAMPLED_SWEEPS - SAMPLED_SWEEPS // 3):
        _run(mixture, 1, report)
        alphas.append(mixture.alpha)
    for cluster, mean in zip(mixture.clusters, np.mean(alphas, axis=0).tolist(), strict=True):
        assert isinstance(cluster, StartCluster)
        cluster.alpha, cluster.is_fixed = mean, True
    return mixture


def _run(mixture: Mixture, n_sweeps: int, report: Callable[[], None]) -> None:
    for _ in range(n_sweeps):
        mixture.sweep(adapt=True)
        report()


def _guess(
    population: Population,
    features: NDArray[np.float64],
    n_clusters: int,
    alpha: float | None,
    share_prior: float,
    rng: np.random.Generator,
) -> Mixture:
    """Clusters by k-means, each with its mean ranks as consensus."""
    from scipy.cluster.vq import kmeans2

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of empty clusters, which the mixture fills
        labels = kmeans2(features, n_clusters, minit="++", iter=20, seed=rng)[1]
    counts = np.zeros((population.n_rows, n_clusters), dtype=np.int64)
    counts[np.arange(population.n_rows), labels] = population.row_weights
    clusters = []
    for cluster, child in enumerate(rng.spawn(n_clusters)):
        mine = counts[:, cluster] if counts[:, cluster].any() else population.row_weights
        chosen = population.select(mine, population.row_numbers)
        consensus = rank_randomly(chosen.mean_ranks, child)
        first = 5.0 if alpha is None else alpha
        clusters.append(StartCluster(chosen, consensus, first, alpha is not None, child))
    sizes = counts.sum(axis=0)
    shares = (share_prior + sizes) / (share_prior + sizes).sum()
    mixture = Mixture(population, clusters, shares, 1, share_prior, rng)
    mixture.share_out(counts)
    return mixture
