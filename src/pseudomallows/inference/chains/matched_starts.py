"""Where chains on the matched law start: at its best place, or at a good guess of the clusters."""

import functools
import threading
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...distributions.scores import rand_index
from ...engines.memory import DENSE_ITEMS
from ...latent.kendall_clicks import KendallClicks
from ...latent.population import LocalPopulation, Population
from ...latent.registry import make_click_law
from ...rankings import rank_randomly
from ..methods.method import LastDraw
from ..priors import Prior, default_prior
from .labelled_mixture import LabelledMixture
from .matched_cluster import MatchedCluster, MatchedProposals, Snapshot
from .matched_mixture import MatchedMixture
from .starts import some_rows

FIRST_ALPHA = 5.0
N_CLIMBS = 3  # between the best consensus and the best alpha
N_SWEEPS, ONE_MOVES = 20, 100  # before a chain of one cluster begins, and swaps for each item
START_MOVES = 10  # swaps for each item in a round on the way
N_STARTS, GUESS_ROUNDS = 4, 10  # guesses of the clusters, and rounds after which some go on
N_FINALISTS = 2  # that are improved by splits, if they are compared
SPLIT_ROUNDS, N_FAILURES = 5, 4  # after a split; so many in a row that lead nowhere are enough
MOST_SPLITS, LEAST_SPLIT = 40, 10  # splits, and the users of a cluster that is worth one
N_SPLIT_FEATURES = 2  # by which a cluster falls in two
LAST_ROUNDS, N_VALUES = 60, 12  # before the finalists are compared, and by how many values
SETTLE_ROUNDS = 40  # of the best, with all rows
ROWS_EACH = 1000  # of each cluster, by whose most clicked items a large catalogue is divided
FEWER = 4  # times fewer rounds of a large catalogue, where each takes long
FIRST_ROUNDS = 40  # of each chain, which leave the place where all begin
CORRECTED_ROUNDS = 10  # of one whose warmup goes on to leave it, by rounds that are corrected
_filters = threading.Lock()  # what is done about warnings is the same for all threads


class Comparison(NamedTuple):
    """The best start against the runner-up: how much higher its matched log likelihood is, the
    adjusted Rand index of the two, and the share of users that they divide the same way."""

    gap: float
    rand_index: float
    same_users: float


class _Improved(NamedTuple):
    """A guess, and how likely it makes the clicks."""

    guess: MatchedMixture
    value: float


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
        self._prior = prior if alpha is None else None
        self._share_prior = share_prior
        self._is_corrected = is_corrected and not self.law.is_exact
        self.comparison: Comparison | None = None

    def one(self, start: str, rng: np.random.Generator) -> MatchedMixture:
        """One cluster, that of all users: from the best place by the matched law, a random one, or
        "elsewhere", where the chain on the matched law comes from a random one."""
        mixture = self.empty(1, rng)
        mixture.begin(np.zeros(self.population.n_rows, dtype=np.int32))
        cluster = mixture.clusters[0]
        if start != "map":
            cluster.consensus = rank_randomly(np.zeros(self.population.n_items), rng)
        if start == "random":
            return mixture
        for _ in range(N_CLIMBS if start == "map" else 0):
            cluster.climb()
        for _ in range(N_SWEEPS):
            mixture.run_rounds(1, self.law.usual_moves or ONE_MOVES * mixture.n_items, adapt=True)
        mixture.count_anew()
        return mixture

    def go_on(self, last: LastDraw, rng: np.random.Generator) -> MatchedMixture:
        """From a draw of another chain, on data that are much like those of these users."""
        mixture = self.empty(len(last.alpha), rng)
        labels = np.zeros(self.population.n_rows, dtype=np.int32)
        mixture.restore(Snapshot(last.consensus, last.alpha, last.shares, labels))
        if mixture.n_clusters > 1:
            mixture.run_rounds(self._first_rounds, self._moves, adapt=True)
            mixture.count_anew()
        return mixture

    def empty(self, n_clusters: int, rng: np.random.Generator) -> MatchedMixture:
        """A chain that still wants labels, or to be filled from a file."""
        if self._is_corrected and n_clusters > 1:
            return self._new(LabelledMixture, self.population, n_clusters, rng, True)
        return self._new(MatchedMixture, self.population, n_clusters, rng, self._is_corrected)

    def _mixture(
        self, population: Population, n_clusters: int, rng: np.random.Generator
    ) -> MatchedMixture:
        """Several clusters on the way to a start, without a correction."""
        return self._new(MatchedMixture, population, n_clusters, rng, False)

    def _new(
        self,
        kind: type[MatchedMixture],
        population: Population,
        n_clusters: int,
        rng: np.random.Generator,
        is_corrected: bool,
    ) -> MatchedMixture:
        first = np.arange(1, population.n_items + 1, dtype=np.int32)
        alpha = FIRST_ALPHA if self._alpha is None else self._alpha
        clusters = [
            MatchedCluster(first, alpha, self._proposals, self._prior, child)
            for child in rng.spawn(n_clusters)
        ]
        shares = np.full(n_clusters, 1 / n_clusters)
        return kind(
            population,
            self.law,
            clusters,
            shares,
            share_prior=self._share_prior,
            is_corrected=is_corrected,
            n_moves=self._proposals.n_moves,
            rng=rng,
        )

    @property
    def _moves(self) -> int:
        """Swaps of each cluster in a round on the way; a law that has its own says how many."""
        usual = self.law.usual_moves
        return START_MOVES * self.population.n_items if usual is None else max(1, usual // 2)

    def _rounds(self, usual: int) -> int:
        """Rounds on the way: fewer, where each of them takes seconds."""
        return usual if self.population.n_items <= DENSE_ITEMS else usual // FEWER

    @property
    def _first_rounds(self) -> int:
        return CORRECTED_ROUNDS if self._is_corrected else self._rounds(FIRST_ROUNDS)

    def clusters(
        self,
        n_clusters: int,
        rng: np.random.Generator,
        report: Callable[[], None],
        n_finalists: int = 1,
    ) -> MatchedMixture:
        """Several clusters: the best of several guesses on some of the rows goes on with all
        rows."""
        best = self.guess(n_clusters, n_finalists, rng, report)
        return self.settle(best, rng, report)

    def guess(
        self,
        n_clusters: int,
        n_finalists: int,
        rng: np.random.Generator,
        report: Callable[[], None],
    ) -> MatchedMixture:
        """The best guess of the clusters on some of the rows. If there are several finalists,
        `comparison` says how it differs from the runner-up."""
        if not self._is_large:
            some = some_rows(self.population, n_clusters, rng)
            return self._guess_best(some, n_clusters, n_finalists, rng, report)
        n_items = self.population.n_items
        some = some_rows(self.population, n_clusters, rng, ROWS_EACH)
        assert isinstance(some, KendallClicks)  # no other law of clicks is exact
        by_clicks = np.argsort(-np.bincount(some.row_codes, minlength=n_items), kind="stable")
        few = some.of_items(np.sort(by_clicks[:DENSE_ITEMS]))
        inner = MatchedStart(
            few,
            None,
            MatchedProposals(),
            prior=default_prior(DENSE_ITEMS),
            share_prior=self._share_prior,
            is_corrected=False,
            distance=few.distance.name,
        )
        best = inner._guess_best(few, n_clusters, n_finalists, rng, report)
        self.comparison, self._by_clicks = inner.comparison, by_clicks
        return best

    def settle(
        self, guess: MatchedMixture, rng: np.random.Generator, report: Callable[[], None]
    ) -> MatchedMixture:
        """A guess goes on with all rows."""
        if self._is_large:
            found = self._by_popular_items(guess, rng)
        else:
            found = guess.moved_to(self.population)
        self._run_rounds(found, self._rounds(SETTLE_ROUNDS), report)
        found.count_anew()
        return found

    @property
    def _is_large(self) -> bool:
        """Are there so many items that clusters are guessed by the most clicked ones?"""
        return self.law.is_exact and self.population.n_items > DENSE_ITEMS

    def _by_popular_items(self, guess: MatchedMixture, rng: np.random.Generator) -> MatchedMixture:
        """Put every user where a guess by the most clicked items says, and sort the items of each
        cluster by the clicks of its users.

        An item of a large catalogue that one user clicked tells nothing of the clusters, yet it
        would stand far higher in that user's cluster than in any other, and hold the user there.
        """
        n_items, by_clicks = self.population.n_items, self._by_clicks
        mixture = self._mixture(self.population, guess.n_clusters, rng)
        mixture.shares = guess.shares
        alphas = [cluster.alpha for cluster in mixture.clusters]
        rate = float(guess.shares @ guess.alpha) / DENSE_ITEMS  # one: the other items tell nothing
        for cluster, guessed in zip(mixture.clusters, guess.consensus, strict=True):
            cluster.consensus = np.empty(n_items, dtype=np.int32)
            cluster.consensus[by_clicks] = np.arange(1, n_items + 1)
            cluster.consensus[np.sort(by_clicks[:DENSE_ITEMS])] = guessed
            cluster.alpha = rate * n_items
        mixture.begin(mixture.mean_memberships.argmax(axis=1).astype(np.int32))
        for cluster, alpha in zip(mixture.clusters, alphas, strict=True):
            cluster.alpha = alpha
            if cluster.has_users:
                cluster.climb()
        return mixture

    def _guess_best(
        self,
        some: LocalPopulation,
        n_clusters: int,
        n_finalists: int,
        rng: np.random.Generator,
        report: Callable[[], None],
    ) -> MatchedMixture:
        """K-means on the leading axes of the data, improved by rounds on the matched law, and the
        best by splits. They are made side by side, each on one core."""
        features = some.features(min(n_clusters, self.population.n_items - 1))
        work = functools.partial(self._guess, some, features, n_clusters)
        guesses = self._side_by_side(some, work, rng.spawn(N_STARTS), GUESS_ROUNDS, report)
        guesses.sort(key=lambda guess: -guess.values.matched)
        tasks = list(zip(guesses[:n_finalists], rng.spawn(n_finalists), strict=True))
        improve = functools.partial(self._improve, some)
        found = self._side_by_side(some, improve, tasks, LAST_ROUNDS, report)
        found.sort(key=lambda each: -each.value)
        if n_finalists > 1:
            best, other = found[:2]
            both = best.guess.mean_memberships, other.guess.mean_memberships
            self.comparison = compare(*both, best.value - other.value)
        return found[0].guess

    def _side_by_side(
        self,
        some: LocalPopulation,
        work: Callable[[Any], Any],
        tasks: list[Any],
        n_rounds: int,
        report: Callable[[], None],
    ) -> list[Any]:
        found = []
        for each in some.executor.map(work, tasks):
            found.append(each)
            for _ in range(self._rounds(n_rounds)):
                report()
        return found

    def _guess(
        self,
        some: LocalPopulation,
        features: NDArray[np.float64],
        n_clusters: int,
        rng: np.random.Generator,
    ) -> MatchedMixture:
        guess = self._mixture(some, n_clusters, rng)
        guess.begin(guess_labels(features, n_clusters, rng))
        for cluster in guess.clusters:
            if cluster.has_users:
                cluster.climb()
        self._run_rounds(guess, self._rounds(GUESS_ROUNDS))
        guess.ensure_likelihoods()
        return guess

    def _improve(
        self, some: LocalPopulation, task: tuple[MatchedMixture, np.random.Generator]
    ) -> _Improved:
        """Split clusters, then let them settle."""
        guess, rng = task
        self._split(guess, some, rng)
        self._run_rounds(guess, self._rounds(LAST_ROUNDS) - N_VALUES)
        values = []
        for _ in range(N_VALUES):
            self._run_rounds(guess, 1)
            guess.ensure_likelihoods()
            values.append(guess.values.matched)
        return _Improved(guess, float(np.mean(values)))

    def begin_at(self, other: MatchedMixture, rng: np.random.Generator) -> MatchedMixture:
        """A chain that begins where another one stands, and first leaves it by some rounds."""
        mixture = self.empty(other.n_clusters, rng)
        mixture.shares = other.shares
        for cluster, old in zip(mixture.clusters, other.clusters, strict=True):
            cluster.restore(old.place)
            cluster.log_step = old.log_step
        mixture.run_rounds(self._first_rounds, self._moves, adapt=True)
        mixture.count_anew()
        return mixture

    def _split(
        self, mixture: MatchedMixture, some: LocalPopulation, rng: np.random.Generator
    ) -> None:
        """Split clusters, those of the least agreement first, and dissolve the smallest one for
        each: where two were taken for one, and one for two, sweeps alone would never mend it."""
        n_failures, tried = 0, set[int]()
        for _ in range(MOST_SPLITS):
            before, values = mixture.snapshot(), mixture.values
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
            self._run_rounds(mixture, SPLIT_ROUNDS)
            mixture.ensure_likelihoods()
            if mixture.values.matched > values.matched:
                n_failures, tried = 0, set()
            else:
                mixture.restore(before, values)
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
        new, orphaned_rows = labels.copy(), np.flatnonzero(labels == smallest)
        others = np.setdiff1d(np.unique(labels), [smallest])
        new[orphaned_rows] = rng.choice(others, len(orphaned_rows))
        new[rows[guess_labels(features, 2, rng) == 1]] = smallest
        return new

    def _run_rounds(
        self, mixture: MatchedMixture, n_rounds: int, report: Callable[[], None] = lambda: None
    ) -> None:
        for _ in range(n_rounds):
            mixture.run_rounds(1, self._moves, adapt=True)
            report()


def compare(
    memberships: NDArray[np.float64], others: NDArray[np.float64], gap: float
) -> Comparison:
    """How two divisions of the users differ, by ``memberships[row, cluster]`` of each."""
    from scipy.optimize import linear_sum_assignment

    labels, other_labels = memberships.argmax(axis=1), others.argmax(axis=1)
    counts = np.zeros((memberships.shape[1], others.shape[1]))
    np.add.at(counts, (labels, other_labels), 1)
    same = counts[linear_sum_assignment(-counts)].sum() / len(labels)
    return Comparison(gap, rand_index(labels, other_labels), float(same))


def guess_labels(
    features: NDArray[np.float64], n_clusters: int, rng: np.random.Generator
) -> NDArray[np.int32]:
    """Labels by k-means."""
    from scipy.cluster.vq import kmeans2

    with _filters, warnings.catch_warnings():
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
    start = MatchedStart(
        population,
        alpha,
        MatchedProposals(),
        prior=default_prior(population.n_items),
        share_prior=share_prior,
        is_corrected=False,
        distance=distance,
    )
    if n_clusters == 1:
        return start.one("map", rng)
    return start.clusters(n_clusters, rng, lambda: None)
