"""Where chains on the matched law start: at its best place, or at a good guess of the clusters."""

import math
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...latent.population import LocalPopulation, Population
from ...latent.registry import make_click_law
from ...rankings import rank_randomly
from ..methods.method import LastDraw
from ..priors import Prior, default_prior
from .matched_cluster import FIRST_MOVES, MatchedCluster, MatchedProposals
from .matched_mixture import MatchedMixture, Snapshot
from .starts import some_rows

FIRST_ALPHA = 5.0
N_CLIMBS = 3  # between the best consensus and the best alpha
N_SWEEPS = 20  # without correction, before a chain begins
START_MOVES = 20  # swaps for each item in a sweep on the way
N_STARTS, GUESS_SWEEPS = 4, 8  # guesses of the clusters, and sweeps after which the best goes on
SPLIT_SWEEPS, N_FAILURES = 5, 4  # after a split; so many in a row that lead nowhere are enough
MOST_SPLITS, LEAST_SPLIT = 40, 10  # splits, and the users of a cluster that is worth one
N_SPLIT_FEATURES = 2  # by which a cluster falls in two
LAST_SWEEPS = 15  # on all rows
PREPARATION = N_STARTS * GUESS_SWEEPS + LAST_SWEEPS


class MatchedStart:
    """How chains on a law of clicks start; its tables are shared by all."""

    def __init__(
        self,
        population: Population,
        alpha: float | None,
        proposals: MatchedProposals,
        prior: Prior,
        share_prior: float,
        is_corrected: bool,
        distance: str = "footrule",
    ):
        self.population, self._alpha = population, alpha
        self.law = make_click_law(population, distance)
        if proposals.n_moves is None:
            proposals = proposals._replace(n_moves=self.law.usual_moves)
        self._proposals = proposals
        usual = self.law.usual_moves
        self._start_moves = START_MOVES * population.n_items if usual is None else usual // 2
        self._prior = prior if alpha is None else None
        self._share_prior = share_prior
        self._is_corrected = is_corrected and not self.law.is_exact

    def one(self, start: str, rng: np.random.Generator) -> MatchedMixture:
        """One cluster, that of all users: from the best place by the matched law, or a random
        one."""
        mixture = self.empty(1, rng)
        mixture.begin(np.zeros(self.population.n_rows, dtype=np.int32))
        cluster = mixture.clusters[0]
        if start == "random":
            cluster.consensus = rank_randomly(np.zeros(self.population.n_items), rng)
            return mixture
        for _ in range(N_CLIMBS):
            cluster.climb()
        self._sweep(mixture, N_SWEEPS, lambda: None)
        mixture.count_anew()
        return mixture

    def go_on(self, last: LastDraw, rng: np.random.Generator) -> MatchedMixture:
        """From a draw of another chain, on data that are much like those of these users."""
        mixture = self.empty(len(last.alpha), rng)
        labels = np.zeros(self.population.n_rows, dtype=np.int32)
        mixture.restore(Snapshot(last.consensus, last.alpha, last.shares, labels), math.nan)
        if mixture.n_clusters > 1:
            mixture.relabel()
        return mixture

    def empty(self, n_clusters: int, rng: np.random.Generator) -> MatchedMixture:
        """A chain that still wants labels, or to be filled from a file."""
        return self._mixture(self.population, n_clusters, rng)

    def _mixture(
        self, population: Population, n_clusters: int, rng: np.random.Generator
    ) -> MatchedMixture:
        first = np.arange(1, population.n_items + 1, dtype=np.int32)
        alpha = FIRST_ALPHA if self._alpha is None else self._alpha
        clusters = [
            MatchedCluster(first, alpha, self._proposals, self._prior, child)
            for child in rng.spawn(n_clusters)
        ]
        shares = np.full(n_clusters, 1 / n_clusters)
        how = (shares, self._share_prior, self._is_corrected, rng)
        return MatchedMixture(population, self.law, clusters, *how)

    def clusters(
        self, n_clusters: int, rng: np.random.Generator, report: Callable[[], None]
    ) -> MatchedMixture:
        """Several clusters: k-means on the leading axes of the data, improved by sweeps on the
        matched law; the best of several guesses on some of the rows, improved by splits, goes on
        with all rows."""
        some = some_rows(self.population, n_clusters, rng)
        features = some.features(min(n_clusters, self.population.n_items - 1))
        guesses = []
        for child in rng.spawn(N_STARTS):
            guess = self._mixture(some, n_clusters, child)
            guess.begin(guess_labels(features, n_clusters, child))
            for cluster in guess.clusters:
                cluster.log_moves = math.log(self._start_moves)
                if cluster.has_users:
                    cluster.climb()
            self._sweep(guess, GUESS_SWEEPS, report)
            guesses.append(guess)
        best = max(guesses, key=lambda guess: guess.matched_log_likelihood)
        self._split(best, some, rng)
        best = best.moved_to(self.population)
        self._sweep(best, LAST_SWEEPS, report)
        best.count_anew()
        for cluster in best.clusters:
            cluster.log_moves = math.log(self._proposals.n_moves or FIRST_MOVES * best.n_items)
        return best

    def _split(
        self, mixture: MatchedMixture, some: LocalPopulation, rng: np.random.Generator
    ) -> None:
        """Split clusters, those of the least agreement first, and dissolve the smallest one for
        each: where two were taken for one, and one for two, sweeps alone would never mend it."""
        n_failures, tried = 0, set[int]()
        for _ in range(MOST_SPLITS):
            before, value = mixture.snapshot(), mixture.matched_log_likelihood
            sizes = np.bincount(before.labels, minlength=mixture.n_clusters)
            smallest = int(sizes.argmin())
            left = [
                number
                for number in np.argsort(mixture.alpha, kind="stable").tolist()
                if sizes[number] >= LEAST_SPLIT and number != smallest and number not in tried
            ]
            if not left or n_failures == N_FAILURES:
                return
            mixture.begin(self._split_labels(before.labels, left[0], smallest, some, rng))
            for number in (left[0], smallest):
                if mixture.clusters[number].has_users:
                    mixture.clusters[number].climb()
            self._sweep(mixture, SPLIT_SWEEPS, lambda: None)
            if mixture.matched_log_likelihood > value:
                n_failures, tried = 0, set()
            else:
                mixture.restore(before, value)
                n_failures += 1
                tried.add(left[0])

    def _split_labels(
        self,
        labels: NDArray[np.int32],
        split: int,
        smallest: int,
        some: LocalPopulation,
        rng: np.random.Generator,
    ) -> NDArray[np.int32]:
        """Labels with one cluster in two halves, and the users of the smallest one elsewhere."""
        rows = np.flatnonzero(labels == split)
        weights = np.zeros_like(some.row_weights)
        weights[rows] = some.row_weights[rows]
        features = some.select(weights, some.row_numbers).features(N_SPLIT_FEATURES)
        new, homeless = labels.copy(), np.flatnonzero(labels == smallest)
        others = np.setdiff1d(np.unique(labels), [smallest])
        new[homeless] = rng.choice(others, len(homeless))
        new[rows[guess_labels(features, 2, rng) == 1]] = smallest
        return new

    def _sweep(self, mixture: MatchedMixture, n_sweeps: int, report: Callable[[], None]) -> None:
        """Sweeps without correction."""
        mixture.is_corrected = False
        for _ in range(n_sweeps):
            mixture.sweep(adapt=True)
            report()
        mixture.is_corrected = self._is_corrected


def guess_labels(
    features: NDArray[np.float64], n_clusters: int, rng: np.random.Generator
) -> NDArray[np.int32]:
    """Labels by k-means."""
    from scipy.cluster.vq import kmeans2

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of empty clusters, which the mixture fills
        return np.asarray(kmeans2(features, n_clusters, minit="++", iter=20, seed=rng)[1])


def start_matched(
    population: Population,
    n_clusters: int,
    alpha: float | None,
    share_prior: float,
    rng: np.random.Generator,
    distance: str = "footrule",
) -> MatchedMixture:
    """A chain on a law of clicks, without correction, where its clusters are a good guess."""
    prior = default_prior(population.n_items)
    how = (alpha, MatchedProposals(), prior, share_prior, False, distance)
    start = MatchedStart(population, *how)
    if n_clusters == 1:
        return start.one("map", rng)
    return start.clusters(n_clusters, rng, lambda: None)
