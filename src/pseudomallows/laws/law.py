"""What a chain asks of its users, whatever their data and the distance.

A *law* says how probable what one user told us is, given a consensus and alpha. The users of a fit
are blocks of rows: slices of arrays at hand, or futures on Dask workers. Every pass over them is
``executor.map(task, blocks)`` and a sum, so the answer has the same bits on any number of threads,
blocks and workers. A *tally* is all that one cluster needs to know of its users.
"""

import functools
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Clicks, Rankings
from ..data.preferences import check_informative
from ..data.ties import block_sizes
from ..distances.distance import Distance
from ..distances.tallies import Counts, Proposals, Ranking, Stream
from ..engines.executors import Executor, Threads, is_alone, is_remote
from ..engines.memory import CUBIC_ITEMS
from ..kernels import labels as kernels
from ..kernels.click_rows import ClickRows, slice_clicks
from ..kernels.streams import Streams

Floats = NDArray[np.float64]
Labels = NDArray[np.int32]
Curve = Callable[[float], float]  # the log likelihood of users under one consensus, by alpha

N_BLOCKS = 8  # of rows: a core waits for an eighth of them at most, and little is lost on tasks
LEAST_ROWS = 256  # of a block: 2 ms of exact likelihoods (docs/scale.md), where a task costs 0.03
FAR = 15.0  # a cluster so far below the best, by the additive law, adds nothing: 1e-7 of a user
# Of sums of log probabilities; of one user, by size. A value has 57 bits, and its upper 33 times a
# weight of 10^9, the most there may be, fit into 64 with a sign.
UNITS, MOST_VALUE = 2**30, 2.0**27


class Clusters(NamedTuple):
    """``consensus[cluster, item]`` and ``alpha[cluster]``."""

    consensus: Ranking
    alpha: Floats

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return len(self.alpha)


class Memberships(NamedTuple):
    """``probabilities[row, cluster]``, and the log likelihood of all users, the labels summed
    out."""

    probabilities: NDArray[np.float32]
    log_likelihood: float


class ClusterTally(ABC):
    """What a cluster needs to know of its users."""

    n_users: int
    is_proved = False  # is `best` sure to be the likeliest consensus?

    @abstractmethod
    def curve(self, consensus: Ranking) -> Curve:
        """The log likelihood under a consensus, as a function of alpha."""

    @abstractmethod
    def move(
        self, stream: Stream, alpha: float, moves: Proposals, consensus: Ranking, beta: float = 1.0
    ) -> None:
        """Move a consensus in place by Metropolis proposals that leave the posterior at this alpha
        as it is, the likelihood raised to the power `beta`."""

    @abstractmethod
    def best(self, alpha: float) -> Ranking:
        """The likeliest consensus at an alpha, or a good one."""

    @abstractmethod
    def evidence(self, alpha: float) -> NDArray[Any]:
        """Numbers whose mean over draws says which consensus is best; empty where there are
        none."""


class UserRows(ABC):
    """A block of users, at hand or on a worker."""

    weights: Counts  # a row of weight w stands for w users
    numbers: Counts  # of the first user of each row: streams of random numbers go by these

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.weights)

    @abstractmethod
    def log_likelihoods(self, tables: Any) -> Floats:
        """``logs[row, cluster]`` by the tables of `Law.tables`: exact, or additive."""

    def exact(self, tables: Any, rows: Counts, labels: Labels) -> Floats:
        """Exact log likelihood of some rows, each in the cluster of its label."""
        return np.asarray(self.log_likelihoods(tables)[rows, labels])

    def count(self, labels: Labels, shape: tuple[int, ...]) -> Counts:
        """What the tally of each cluster adds up."""
        raise TypeError("the tallies of these users are made where they are")

    def draw(self, streams: Streams, consensus: Ranking, alpha: float) -> Ranking:
        """A latent ranking of each row, exact, given what is known of it."""
        raise TypeError("latent rankings of these users are kept by the chain")


class Law(ABC):
    """How probable what the users told us is, given a consensus and alpha."""

    is_exact: ClassVar[bool] = True  # are the tallies? If not, the chain corrects by `weigh`
    has_latent: ClassVar[bool] = False  # are there latent rankings in the state of a chain?
    how_latent = "summed out by a closed form"  # for the report
    n_moves: int | None = None  # of a sweep, where the law knows better than the options

    def __init__(
        self,
        n_items: int,
        distance: Distance,
        blocks: Sequence[Any],
        weights: Sequence[Counts],
        executor: Executor | None,
    ):
        self.n_items, self.distance = n_items, distance
        self.blocks, self.row_weights = list(blocks), np.concatenate(weights)
        edges = np.cumsum([0, *map(len, weights)]).tolist()
        self.slices = [slice(*pair) for pair in itertools.pairwise(edges)]
        self.executor: Executor = Threads() if executor is None else executor

    @property
    def n_rows(self) -> int:
        """Number of rows, all of which say something."""
        return len(self.row_weights)

    @functools.cached_property
    def n_users(self) -> int:
        """Number of users."""
        return int(self.row_weights.sum())

    # What each law says

    @property
    @abstractmethod
    def mean_ranks(self) -> Floats:
        """Mean rank of each item, or any numbers that rank the items likewise."""

    @abstractmethod
    def features(self, n_features: int) -> Floats:
        """Coordinates of each row in which like-minded users are near each other."""

    @abstractmethod
    def select(self, rows: Counts) -> Any:
        """The law of some rows, at hand."""

    @abstractmethod
    def rankings_of(self, rows: Counts, order: Floats) -> Ranking:
        """Full rankings that agree with what some rows say, what they leave open by `order`."""

    @abstractmethod
    def tables(self, clusters: Clusters) -> Any:
        """What `UserRows.log_likelihoods` needs of the clusters."""

    def exact_tables(self, clusters: Clusters) -> Any:
        """What `UserRows.exact` needs of them."""
        return self.tables(clusters)

    def tally(self, counts: Counts, n_users: int, cluster: int = 0) -> ClusterTally:
        """The tally of the users of a cluster, from what `UserRows.count` adds up."""
        raise NotImplementedError

    @property
    def evidence_shape(self) -> tuple[int, ...]:
        """The shape of a tally's evidence; by default that of the distance."""
        return self.distance.tally(self.n_items).evidence.shape

    def best_of(self, evidence: Floats, draws: Ranking) -> Ranking:
        """The consensus that is best by the mean evidence of some draws, ``draws[draw, item]``; the
        commonest draw where there is none."""
        if not evidence.size:
            rankings, counts = np.unique(draws, axis=0, return_counts=True)
            return np.asarray(rankings[counts.argmax()])
        return self.distance.tally(self.n_items).best_of(evidence)

    def anchor(self, clusters: Clusters, labels: Labels | None) -> None:  # noqa: B027
        """Let the additive law agree with the exact one at these clusters, for every alpha."""

    def rows_of(self, users: Counts) -> UserRows:
        """Some users of the data, by their numbers, also those who say nothing."""
        raise TypeError("the users of this law are not at hand")

    def draw_latent(
        self, users: Counts, labels: Labels, clusters: Clusters, seed: int, number: int
    ) -> Ranking:
        """Latent rankings of some users of the data, each given the cluster of its label."""
        latent = np.empty((len(users), self.n_items), dtype=np.int32)
        for label in np.unique(labels).tolist():
            mine = np.flatnonzero(labels == label)
            streams = Streams(seed, number, users[mine], np.ones(len(mine), dtype=np.int64))
            where = clusters.consensus[label], float(clusters.alpha[label])
            latent[mine] = self.rows_of(users[mine]).draw(streams, *where)
        return latent

    def notes(self) -> dict[str, Any]:
        """For the settings of a posterior: what is worth knowing of how the users were treated."""
        return {}

    # Passes over the users

    @property
    def count_shape(self) -> tuple[int, ...]:
        """The shape of the numbers that a cluster's tally adds up."""
        raise NotImplementedError

    def tallies(
        self, labels: Labels | None, n_clusters: int, before: Sequence[ClusterTally] = ()
    ) -> list[ClusterTally]:
        """The tally of each cluster; `before`, those of other labels, from which most may stay."""
        shape = (n_clusters, *self.count_shape)
        messages = [(self._labels_of(rows, labels), shape) for rows in self.slices]
        parts = self._map(_count, messages)
        counts = functools.reduce(np.add, parts)
        sizes = self.cluster_sizes(labels, n_clusters).tolist()
        return [self.tally(counts[k], sizes[k], k) for k in range(n_clusters)]

    def cluster_sizes(self, labels: Labels | None, n_clusters: int) -> Counts:
        """Number of users of each cluster."""
        if labels is None:
            return np.array([self.n_users])
        return np.bincount(labels, self.row_weights, n_clusters).astype(np.int64)

    def weigh_rows(self, clusters: Clusters, labels: Labels | None) -> Floats:
        """``values[row]``: exact log likelihood of each row in the cluster of its label."""
        tables = self.exact_tables(clusters)
        messages = [(tables, self._labels_of(rows, labels)) for rows in self.slices]
        return np.concatenate(self._map(_weigh_rows, messages))

    def weigh(self, clusters: Clusters, labels: Labels | None) -> Floats:
        """``sums[cluster]``: exact log likelihood of the users of each cluster."""
        return self.sums(self.weigh_rows(clusters, labels), labels, clusters.n_clusters)

    def sums(self, values: Floats, labels: Labels | None, n_clusters: int) -> Floats:
        """``sums[cluster]`` over the users of each cluster of ``values[row]``."""
        labels = np.zeros(self.n_rows, dtype=np.int32) if labels is None else labels
        sums = exact_sums(values, self.row_weights, labels, n_clusters)
        return np.array([each / UNITS for each in sums])

    def relabel(
        self,
        clusters: Clusters,
        weights: Floats,
        labels: Labels,
        values: Floats | None,
        seed: int,
        number: int,
        weighs: bool = False,
    ) -> tuple[Labels, Floats | None, Memberships | None]:
        """New labels, given the clusters: drawn by the additive law and, given the exact `values`
        of the rows under their labels, accepted by the exact one; with the new values. If asked,
        and no values are given, the memberships come along, which the labels are drawn from."""
        exact = None if values is None else self.exact_tables(clusters)
        shared = (weighs, self.tables(clusters), exact, log_of(weights), seed, number)
        known = [None if values is None else values[rows] for rows in self.slices]
        pairs = zip(self.slices, known, strict=True)
        parts = self._map(_relabel, [(labels[rows], mine, *shared) for rows, mine in pairs])
        new, new_values, memberships = zip(*parts, strict=True)
        return (
            np.concatenate(new),
            None if values is None else np.concatenate(new_values),
            _joined(memberships) if weighs and values is None else None,
        )

    def nearest(self, clusters: Clusters, weights: Floats) -> Labels:
        """The likeliest label of each row, by the additive law."""
        messages = [(self.tables(clusters), log_of(weights))] * len(self.blocks)
        return np.concatenate(self._map(_nearest, messages))

    def memberships(self, clusters: Clusters, weights: Floats, corrected: bool) -> Memberships:
        """By the additive law or, corrected, by the exact one."""
        exact = self.exact_tables(clusters) if corrected else None
        message = (self.tables(clusters), exact, log_of(weights))
        return _joined(self._map(_memberships, [message] * len(self.blocks)))

    def scores(self, clusters: Clusters, weights: Floats) -> Floats:
        """``[row]``: exact log likelihood of a row, the label summed out."""
        message = (self.exact_tables(clusters), log_of(weights))
        return np.concatenate(self._map(_scores, [message] * len(self.blocks)))

    def _map(self, task: Callable[[Any], Any], messages: Sequence[tuple[Any, ...]]) -> list[Any]:
        pairs = zip(self.blocks, messages, strict=True)
        return list(self.executor.map(task, [(block, *message) for block, message in pairs]))

    @staticmethod
    def _labels_of(rows: slice, labels: Labels | None) -> Labels | None:
        return None if labels is None else labels[rows]


def log_of(weights: Floats) -> Floats:
    """Logs, finite also where a cluster has no weight."""
    return np.log(np.maximum(weights, 1e-300))


def cut_rows(n_rows: int, scale: int = 1) -> list[slice]:
    """Blocks of rows at hand. The answers never depend on them."""
    least = scale * LEAST_ROWS * (16 if is_alone() else 1)
    size = max(least, -(-n_rows // N_BLOCKS))
    return [slice(first, min(first + size, n_rows)) for first in range(0, n_rows, size)]


# Rankings and clicks


class RankedLaw(Law):
    """Rankings of any kind; a subclass says how it reads its rows."""

    def __init__(
        self, prefs: Rankings, executor: Executor | None, distance: Distance, scale: int = 1
    ):
        check_informative(prefs.is_informative)
        self.everyone, self.informative = prefs, prefs.take(prefs.is_informative)
        self.rankings, weights = self.informative.rankings, self.informative.weights
        numbers = np.cumsum(weights) - weights
        cut = cut_rows(len(weights), scale)
        self.distance = distance
        blocks = [self.make_rows(c, weights[c], numbers[c]) for c in cut]
        super().__init__(prefs.n_items, distance, blocks, [weights[c] for c in cut], executor)

    @abstractmethod
    def make_rows(self, rows: slice, weights: Counts, numbers: Counts) -> UserRows:
        """Some of the informative rows."""

    @functools.cached_property
    def mean_ranks(self) -> Floats:
        return self.informative.mean_ranks()

    def features(self, n_features: int) -> Floats:
        """Principal components of the ranks, unknown ones as the mean of what they may be."""
        filled = self.informative.filled_ranks()
        return principal_components(filled - filled.mean(axis=0), n_features)

    def select(self, rows: Counts) -> Self:
        return type(self)(self.informative.take(rows), self.executor, self.distance)

    def rankings_of(self, rows: Counts, order: Floats) -> Ranking:
        return in_order_of(self.rankings[rows], order)


def open_ranks(rankings: Ranking) -> NDArray[np.bool_]:
    """``[row, rank - 1]``: the ranks that are left to the items of a row without one.

    >>> open_ranks(np.array([[0, 2, 2, 0]])).astype(int).tolist()
    [[1, 0, 0, 1]]
    """
    n_items, sizes = rankings.shape[1], block_sizes(rankings)
    edges = np.zeros((len(rankings), n_items + 2), dtype=np.int64)
    rows, items = np.nonzero(rankings)
    firsts = rankings[rows, items]
    np.add.at(edges, (rows, firsts), 1)
    np.add.at(edges, (rows, firsts + sizes[rows, items]), -1)
    return np.asarray(np.cumsum(edges, axis=1)[:, 1 : n_items + 1] == 0)


def in_order_of(rankings: Ranking, order: NDArray[Any]) -> Ranking:
    """Full rankings that agree with what is known, the items of each tie by ``order[item]``.

    >>> in_order_of(np.array([[0, 2, 0], [2, 2, 1]], dtype=np.int32), np.array([3, 2, 1]))
    array([[3, 2, 1],
           [3, 2, 1]], dtype=int32)
    """
    n_items, full = rankings.shape[1], np.empty_like(rankings)
    for row, ranks in enumerate(rankings):
        known = np.flatnonzero(ranks)
        known = known[np.lexsort((order[known], ranks[known]))]
        firsts = ranks[known]
        behind = np.arange(len(known)) - np.searchsorted(firsts, firsts)
        full[row, known] = firsts + behind
        missing = np.flatnonzero(ranks == 0)
        left = np.setdiff1d(np.arange(1, n_items + 1), full[row, known])
        full[row, missing[np.argsort(order[missing])]] = left
    return full


class ClickUsers(UserRows):
    """Some rows of clicks; ``size_places[row]`` is the place of their number among `sizes`."""

    def __init__(self, clicks: ClickRows, sizes: Counts, weights: Counts, numbers: Counts):
        self.clicks, self.sizes, self.weights, self.numbers = clicks, sizes, weights, numbers
        self.size_places = np.searchsorted(sizes, np.diff(clicks.starts))


class ClickLaw(Law):
    """Clicks, at hand or on workers."""

    rows: type[ClickUsers]
    usual_distance: Distance

    def __init__(
        self, prefs: Clicks, executor: Executor | None = None, sizes: Counts | None = None
    ):
        is_informative = prefs.is_informative
        check_informative(is_informative)
        clicks = prefs if is_informative.all() else prefs.take(is_informative)
        self.everyone, self.informative = prefs, clicks
        self.sizes = np.unique(clicks.n_clicks) if sizes is None else sizes
        if is_remote(executor):
            sharded: Any = clicks
            cut, blocks = sharded.cut, sharded.blocks(self.rows, self.sizes)
        else:
            numbers = np.cumsum(clicks.weights) - clicks.weights
            cut = cut_rows(clicks.n_users)
            blocks = [
                self.rows(slice_clicks(clicks, c), self.sizes, clicks.weights[c], numbers[c])
                for c in cut
            ]
        weights = [clicks.weights[c] for c in cut]
        super().__init__(prefs.n_items, self.usual_distance, blocks, weights, executor)

    @functools.cached_property
    def mean_ranks(self) -> Floats:
        """Most clicked, rank 1."""
        return -self.informative.item_counts().astype(np.float64)

    def features(self, n_features: int) -> Floats:
        """Leading axes of the clicks, each user's scaled to length 1."""
        from scipy.sparse import csr_array

        clicks = self.informative
        values = np.repeat(1 / np.sqrt(clicks.n_clicks), clicks.n_clicks)
        table = csr_array((values, clicks.codes, clicks.starts), shape=(self.n_rows, self.n_items))
        return principal_components(table, n_features)

    def select(self, rows: Counts) -> Self:
        """The law of some rows, brought here, with tables for the same numbers of clicks."""
        executor = None if is_remote(self.executor) else self.executor
        return type(self)(self.informative.take(rows), executor, self.sizes)

    def rankings_of(self, rows: Counts, order: Floats) -> Ranking:
        """Clicked items first, both parts by `order`."""
        return click_rankings(self.informative.take(rows), order)

    def rows_of(self, users: Counts) -> ClickUsers:
        some = self.everyone.take(users)
        return self.rows(ClickRows(some.starts, some.codes), self.sizes, some.weights, users)


def click_rankings(clicks: Clicks, order: Floats) -> Ranking:
    """Full rankings of users of clicks: the clicked items first, both parts by `order`.

    >>> from pseudomallows import Preferences
    >>> click_rankings(Preferences.from_clicks([[0, 0, 1], [1, 0, 1]]), np.array([2.0, 3.0, 1.0]))
    array([[2, 3, 1],
           [2, 3, 1]], dtype=int32)
    """
    rankings = np.empty((clicks.n_users, clicks.n_items), dtype=np.int32)
    for row, ranking in enumerate(rankings):
        is_last = np.ones(clicks.n_items, dtype=np.bool_)
        is_last[clicks.clicks_of(row)] = False
        ranking[np.lexsort((order, is_last))] = np.arange(1, clicks.n_items + 1)
    return rankings


# The tasks: what a block of rows does in a pass


def _all_labels(rows: UserRows, labels: Labels | None) -> Labels:
    return np.zeros(rows.n_rows, dtype=np.int32) if labels is None else labels


def _count(task: Any) -> Counts:
    rows, labels, shape = task
    return rows.count(_all_labels(rows, labels), shape)


def _weigh_rows(task: Any) -> Floats:
    rows, tables, labels = task
    return rows.exact(tables, np.arange(rows.n_rows), _all_labels(rows, labels))


def _relabel(task: Any) -> tuple[Labels, Floats | None, Any]:
    rows, labels, values, weighs, tables, exact, log_weights, seed, number = task
    logs, new = rows.log_likelihoods(tables), np.empty(rows.n_rows, dtype=np.int32)
    streams = Streams(seed, number, rows.numbers, rows.weights)
    kernels.draw_labels(streams, logs + log_weights, new)
    if exact is None:
        return new, None, _weighed(rows, logs + log_weights) if weighs else None
    changed = np.flatnonzero(new != labels)  # an independence proposal, accepted one by one
    before, after = labels[changed], new[changed]
    proposed = rows.exact(exact, changed, after)
    log_ratios = proposed - logs[changed, after] - (values[changed] - logs[changed, before])
    accepted = np.empty(len(changed), dtype=np.bool_)
    kernels.accept_labels(streams, changed, log_ratios, accepted)
    new[changed[~accepted]] = before[~accepted]
    values = values.copy()
    values[changed[accepted]] = proposed[accepted]
    return new, values, None


def _nearest(task: Any) -> Labels:
    rows, tables, log_weights = task
    return (rows.log_likelihoods(tables) + log_weights).argmax(axis=1).astype(np.int32)


def _memberships(task: Any) -> tuple[NDArray[np.float32], int]:
    rows, tables, exact, log_weights = task
    logs = rows.log_likelihoods(tables) + log_weights
    if exact is not None:  # only clusters that may count by the additive law
        places, clusters = np.nonzero(logs > logs.max(axis=1, keepdims=True) - FAR)
        values = rows.exact(exact, places, clusters.astype(np.int32)) + log_weights[clusters]
        logs = np.full(logs.shape, -np.inf)
        logs[places, clusters] = values
    return _weighed(rows, logs)


def _weighed(rows: UserRows, logs: Floats) -> tuple[NDArray[np.float32], int]:
    log_sums, probabilities = weigh_logs(logs)
    return probabilities, exact_sum(log_sums, rows.weights)


def _joined(parts: Sequence[tuple[NDArray[np.float32], int]]) -> Memberships:
    """The memberships of all rows, from those of the blocks."""
    probabilities, sums = zip(*parts, strict=True)
    return Memberships(np.concatenate(probabilities), sum(sums) / UNITS)


def weigh_logs(logs: Floats) -> tuple[Floats, NDArray[np.float32]]:
    """Of each row, the log of the sum of its exponentials, and the parts of that sum.

    >>> weigh_logs(np.log([[1.0, 3.0]]))[1]
    array([[0.25, 0.75]], dtype=float32)
    """
    highest = logs.max(axis=1)
    parts = np.exp(logs - highest[:, None])
    totals = parts.sum(axis=1)
    return highest + np.log(totals), (parts / totals[:, None]).astype(np.float32)


def _scores(task: Any) -> Floats:
    return np.asarray(np.logaddexp.reduce(exact_logs(*task), axis=1))


def exact_logs(rows: UserRows, exact: Any, log_weights: Floats) -> Floats:
    """``logs[row, cluster]``: exact log likelihoods, and the weights of the clusters."""
    everyone = np.arange(rows.n_rows)
    logs = [
        rows.exact(exact, everyone, np.full(rows.n_rows, cluster, dtype=np.int32))
        for cluster in range(len(log_weights))
    ]
    return np.stack(logs, axis=1) + log_weights


# Sums with the same bits however the rows are cut


def exact_sum(values: Floats, weights: Counts) -> int:
    """The weighted sum of log probabilities in units of 2^-30: however the rows are cut, the sums
    of the parts add up to the same bits.

    >>> exact_sum(np.array([-0.5, -2.0]), np.array([2, 1])) / UNITS
    -3.0
    """
    high, low = _in_units(values, weights)
    return (int(high.sum()) << 24) + int(low.sum())


def exact_sums(values: Floats, weights: Counts, labels: Labels, n_labels: int) -> list[int]:
    """The same for the rows of each label.

    >>> values, weights = np.array([-0.5, -2.0, -1.0]), np.array([2, 1, 1])
    >>> [each / UNITS for each in exact_sums(values, weights, np.array([2, 0, 2]), 3)]
    [-2.0, 0.0, -2.0]
    """
    sums = np.zeros((2, n_labels), dtype=np.int64)
    for mine, part in zip(sums, _in_units(values, weights), strict=True):
        np.add.at(mine, labels, part)
    return [(high << 24) + low for high, low in sums.T.tolist()]


def _in_units(values: Floats, weights: Counts) -> tuple[Counts, Counts]:
    """High and low parts of weighted values: with a total weight of 10^9 no sum overflows."""
    whole = np.rint(np.clip(values, -MOST_VALUE, MOST_VALUE) * UNITS).astype(np.int64)
    return weights * (whole >> 24), weights * (whole & (2**24 - 1))


# What several laws share


def principal_components(rows: Any, n_components: int) -> Floats:
    """Rows (an array, centred, or a sparse matrix) along their axes of largest spread."""
    if rows.shape[1] > CUBIC_ITEMS and hasattr(rows, "toarray"):  # dense axes take items^3
        from scipy.sparse.linalg import svds

        n_axes = min(n_components, min(rows.shape) - 1)
        left, values, _ = svds(rows, n_axes, v0=np.ones(min(rows.shape)))
        components = np.zeros((rows.shape[0], n_components))
        components[:, :n_axes] = (left * values)[:, ::-1]
        return components
    products = rows.T @ rows
    products = products.toarray() if hasattr(products, "toarray") else products
    from scipy.linalg import eigh

    n_axes = len(products)
    _, axes = eigh(products, subset_by_index=[max(n_axes - n_components, 0), n_axes - 1])
    return np.asarray(rows @ axes[:, ::-1])


def order_like(reference: Any, labels: Labels) -> NDArray[np.int64]:
    """The order of the clusters of ``labels[row]`` that agrees best with those of a reference,
    ``memberships[row, cluster]``.

    >>> reference = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> order_like(reference, np.array([1, 0, 0]))
    array([1, 0])
    """
    from scipy.optimize import linear_sum_assignment

    n_clusters = reference.shape[1]
    # [k, j]: how many of the users with label j are in k of the reference
    overlaps = np.empty((n_clusters, n_clusters))
    for label in range(n_clusters):
        overlaps[:, label] = reference[labels == label].sum(axis=0, dtype=np.float64)
    return np.asarray(linear_sum_assignment(-overlaps)[1])
