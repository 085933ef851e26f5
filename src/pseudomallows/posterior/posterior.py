"""Posterior: what a fit with draws of a consensus returns."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._version import __version__
from ..data.blocks import Clicks
from ..data.frames import TableRows, make_frame, rows_of
from ..data.preferences import Preferences
from ..engines.executors import all_cores
from ..engines.memory import DENSE_ITEMS, check_table
from ..markup import N_SHOWN, Markup, card, interval, plain, table
from ..rankings import check_name, orderings_of
from ..scores import share_of_ranks, weighted_effective_size
from . import intervals
from .diagnose import Verdict, diagnose
from .diagnostics import Diagnostics

KINDS = ("cp", "map", "mean")


@dataclass(frozen=True, eq=False)
class Posterior:
    """Draws from a posterior, and the answers they give.

    Attributes
    ----------
    consensus : (n_chains, n_draws, n_clusters, n_items) array
        ``consensus[chain, draw, cluster, item]`` is a rank.
    alpha : (n_chains, n_draws, n_clusters) array
        Concentration.
    weights : (n_chains, n_draws) array
        Weights of the draws; they sum to 1.
    log_posterior : (n_chains, n_draws) array
        Log posterior density of each draw, up to a constant; NaN where it is not computed, such as
        between two draws of the labels of clusters.
    best : (n_clusters, n_items) array
        ``best[cluster, item]`` is a rank in the most likely consensus: see `point_consensus`.
    items : array
        Names of the items.
    settings : dict
        Version, method, seed and options: how to make these draws again.
    data : Preferences or None
        What the fit was made from, if it is kept: clicks, for :func:`recommend`.
    latent : (n_chains, n_draws, n_kept, n_items) array
        ``latent[chain, draw, place, item]``: latent rankings of the users named in `keep_latent`.
    users : array
        Names of the users, row by row.
    shares : (n_chains, n_draws, n_clusters) array
        Share of each cluster in the population.
    chain_memberships : (n_chains, n_users, n_clusters) array
        ``chain_memberships[chain, user, cluster]``: probability, by one chain, that a user belongs
        to a cluster, given what is known about the user; see `memberships`.
    errors : (n_chains, n_draws, n_values) array
        How often comparisons are wrong: theta of ``errors="bernoulli"``, the two certainties of
        "logistic"; empty where there are none. See `theta`.
    """

    consensus: NDArray[np.int32]
    alpha: NDArray[np.float64]
    weights: NDArray[np.float64]
    log_posterior: NDArray[np.float64]
    best: NDArray[np.int32]
    items: NDArray[Any]
    settings: dict[str, Any] = field(default_factory=dict)
    data: Preferences | None = None
    latent: NDArray[np.int32] = field(default_factory=lambda: np.empty((0, 0, 0, 0), np.int32))
    users: NDArray[Any] = field(default_factory=lambda: np.arange(0))
    shares: NDArray[np.float64] = field(default_factory=lambda: np.ones((1, 1, 1)))
    chain_memberships: NDArray[np.float32] = field(
        default_factory=lambda: np.ones((1, 0, 1), np.float32)
    )
    errors: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0, 0)))

    update: ClassVar[Callable[..., Any]]  # :func:`pseudomallows.sampling.update`

    def __repr__(self) -> str:
        lines = [f"Posterior {self._words()}"]
        for title, rows in self._first():
            lines += [title] if title else []
            lines.append(plain(rows, self.n_items - len(rows)))
        n_more = self.n_clusters - N_SHOWN
        return "\n".join([*lines, *([f"... and {n_more} more clusters"] if n_more > 0 else [])])

    def _repr_html_(self) -> str:
        """For a notebook: the first items of each cluster, with their intervals."""
        parts = [
            table(
                ["", title or "item", "rank, 95 % interval"],
                [(row["rank"], str(row["item"]), self._interval(row)) for row in rows],
            )
            for title, rows in self._first()
        ]
        return card("Posterior", self._words(), *parts)

    def _words(self) -> str:
        """How it was fitted, and how large it is."""
        n_chains, n_draws, n_clusters, n_items = self.consensus.shape
        chains = "1 chain" if n_chains == 1 else f"{n_chains} chains"
        words = f"by {self.settings.get('method', '?')}: {chains} of {n_draws:,} draws, "
        words += f"{n_items:,} items"
        if n_clusters > 1:  # numbered as in the report and the figures
            words += f", {n_clusters} clusters; in calls, cluster 1 is cluster=0"
        return words

    def _first(self) -> list[tuple[str, TableRows]]:
        """The first items of the first clusters, under the name of the cluster."""
        if self.n_clusters == 1:
            return [("", self.summary(first=10))]
        shares = self.shares.mean(axis=(0, 1))
        return [
            (f"cluster {cluster + 1}, {shares[cluster]:.0%}", self.summary(cluster, first=5))
            for cluster in range(min(self.n_clusters, N_SHOWN))
        ]

    def _interval(self, row: dict[str, Any]) -> Markup:
        return interval(row["lowest"], row["highest"], row["mean"], self.n_items)

    @property
    def method(self) -> str:
        """How it was fitted."""
        return str(self.settings["method"])

    @property
    def order(self) -> str:
        """In which order the paper's law visits the places of a group."""
        return self.settings["options"].get("order") or "uniform"

    @property
    def clicks(self) -> Clicks | None:
        """The data, if they are clicks."""
        return self.data if isinstance(self.data, Clicks) else None

    @property
    def kind(self) -> str:
        """The kind of data it was fitted to: "rankings" or "clicks"."""
        return str(self.settings.get("kind", "rankings" if self.data is None else self.data.kind))

    @property
    def is_full(self) -> bool:
        """Was it fitted to full rankings only?"""
        return bool(self.settings.get("is_full", False))

    @property
    def n_users(self) -> int:
        """Number of rows of `users`; a fit of parts on workers keeps none."""
        return len(self.users)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.consensus.shape[-1]

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return self.consensus.shape[2]

    @property
    def theta(self) -> NDArray[np.float64]:
        """``theta[chain, draw]``: probability that a comparison is wrong; by ``errors="logistic"``,
        one of two items that the user has at neighbouring ranks."""
        if not self.errors.size:
            raise ValueError(
                "theta is the probability of wrong comparisons, which this fit does not allow for: "
                "fit comparisons with errors='bernoulli' or 'logistic'"
            )
        first = self.errors[:, :, 0]
        return first if self.errors.shape[2] == 1 else 1 / (1 + np.exp(first))

    @property
    def log_evidence(self) -> float:
        """Log probability of the data, with consensus and alpha summed out; `log_evidence_error`
        is its standard error. Differences between two fits of the same data are log Bayes factors.

        Weighted draws estimate it, those of method "balanced" for full rankings with one cluster,
        and tempered chains: those of ``fit(..., temperatures=10)``, and those that a fit tempers by
        itself.
        """
        return self._evidence("log_evidence")

    @property
    def log_evidence_error(self) -> float:
        """The standard error of `log_evidence`, from how the chains or the weights differ."""
        return self._evidence("log_evidence_error")

    def _evidence(self, name: str) -> float:
        for key in ("tempered", "evidence"):
            if key in self.settings:
                return float(self.settings[key][name])
        raise ValueError(
            f"{name} comes from tempered chains or weighted draws, which this fit has none of: fit "
            "again with temperatures=10, or full rankings with method='balanced'"
        )

    @property
    def memberships(self) -> NDArray[np.float64]:
        """``memberships[user, cluster]``: probability that a user belongs to a cluster.

        The mean over the chains, from the exact likelihood of what is known about
        the user. A user of whom nothing is known gets the shares of the clusters.
        """
        return np.asarray(self.chain_memberships.mean(axis=0, dtype=np.float64))

    @property
    def labels(self) -> NDArray[np.int64]:
        """Most probable cluster of each user."""
        return np.asarray(self.memberships.argmax(axis=1))

    def membership_frame(self, backend: str | None = None) -> Any:
        """A data frame: user, cluster (the most probable) and the probability of it.

        `backend` is as in `to_frame`.
        """
        memberships = self.memberships
        columns = {
            "user": self.users,
            "cluster": self.labels,
            "probability": memberships.max(axis=1),
        }
        return make_frame(columns, backend, self.settings.get("backend"))

    def check_cluster(self, cluster: int) -> None:
        """Refuse a cluster that is not there."""
        is_whole = isinstance(cluster, int | np.integer) and not isinstance(cluster, bool)
        if not is_whole or not 0 <= cluster < self.n_clusters:
            raise ValueError(f"cluster must be in 0..{self.n_clusters - 1}, got {cluster!r}")

    def _draws(self, cluster: int) -> NDArray[np.int32]:
        self.check_cluster(cluster)
        return self.consensus[:, :, cluster].reshape(-1, self.n_items)

    @property
    def _draw_weights(self) -> NDArray[np.float64]:
        """Of `_draws`."""
        return self.weights.ravel()

    def rank_probabilities(self, cluster: int = 0) -> NDArray[np.float64]:
        """``probabilities[item, rank - 1]`` is the weighted share of draws with that rank.

        A table of items times items, which must fit into memory; the other methods need none.
        """
        check_table(self.n_items, "rank probabilities")
        return share_of_ranks(self._draws(cluster), self._draw_weights)

    def pair_probabilities(self, cluster: int = 0) -> NDArray[np.float64]:
        """``probabilities[item, other]``: that `item` comes before `other` in the consensus, by the
        weighted share of draws; 1/2 for an item and itself. A table that must fit into memory."""
        check_table(self.n_items, "probabilities of pairs")
        table = np.zeros((self.n_items, self.n_items))
        for ranks, weight in zip(self._draws(cluster), self._draw_weights, strict=True):
            table += weight * (ranks[:, None] < ranks[None, :])
        np.fill_diagonal(table, 0.5)
        return table

    def point_consensus(
        self, kind: str = "cp", cluster: int = 0, *, names: bool = False
    ) -> NDArray[Any]:
        """One ranking that stands for the posterior.

        Parameters
        ----------
        kind : str
            "cp": the cumulative probability consensus of Vitelli et al. (2018): place by place, the
            item, among those left, that is most likely at that place or before; ties go to the
            better mean rank. "mean": by mean rank. "map": the most likely consensus. For full
            rankings it is found by linear assignment, by Kendall's distance by insertions from the
            mean ranks (to 15 items through all sets of them), and ``settings["is_best_proved"]``
            says whether none is better. For partial ones it is the best for the mean of the
            latent rankings; by Cayley's and Ulam's distance, which have no mean, and with clusters
            by these, the most frequent draw.
        cluster : int
            Which cluster.
        names : bool
            The names of the items, best first, instead of their ranks.
        """
        check_name(kind, "kind", KINDS)
        if names:
            return np.asarray(self.items[orderings_of(self.point_consensus(kind, cluster))])
        if kind == "map":
            self.check_cluster(cluster)
            return self.best[cluster].copy()
        ordering = orderings_of(self.mean_ranks(cluster)) if kind == "mean" else self._cp(cluster)
        return (orderings_of(ordering) + 1).astype(np.int32)

    def _cp(self, cluster: int) -> NDArray[np.int64]:
        """The items of the CP consensus, best first."""
        return intervals.cp_items(self._draws(cluster), self._draw_weights)

    def mean_ranks(self, cluster: int = 0) -> NDArray[np.float64]:
        """Mean rank of each item."""
        return intervals.mean_ranks(self._draws(cluster), self._draw_weights)

    def shares_of_ranks(
        self, items: NDArray[np.int64], last: int, cluster: int = 0
    ) -> NDArray[np.float64]:
        """``shares[place, rank - 1]``: probabilities of the ranks 1 to `last` of some items."""
        return intervals.shares_of_ranks(self._draws(cluster), self._draw_weights, items, last)

    def intervals(self, probability: float | str = 0.95, cluster: int = 0) -> NDArray[Any]:
        """Highest-density interval of each item's rank: ``[item]`` is (lowest, highest).

        The shortest run of ranks that holds at least `probability`; of several, the most likely.
        ``intervals("alpha")`` is short for `alpha_intervals`.
        """
        if isinstance(probability, str):
            if probability != "alpha":
                raise ValueError(f"intervals are of 'alpha' or of the ranks, got {probability!r}")
            return self.alpha_intervals()
        return intervals.intervals(self._draws(cluster), self._draw_weights, probability)

    def alpha_intervals(self, probability: float = 0.95) -> NDArray[np.float64]:
        """Highest-density interval of alpha: ``[cluster]`` is (lowest, highest)."""
        draws, weights = self.alpha.reshape(-1, self.n_clusters), self._draw_weights
        rows = [intervals.shortest_span(values, weights, probability) for values in draws.T]
        return np.array(rows)

    @cached_property
    def effective_size(self) -> float:
        """Effective size of the weighted draws; see `diagnostics` for chains."""
        return weighted_effective_size(self.weights)

    def diagnostics(self, cluster: int = 0, some: bool = False) -> Diagnostics:
        """R-hat and effective sample size of each item's rank and of alpha; with `some`, of 4,000
        items at most, evenly spread, which is enough to check the chains."""
        self.check_cluster(cluster)
        ranks = self.consensus[:, :, cluster]
        if some and self.n_items > DENSE_ITEMS:
            ranks = ranks[:, :, np.linspace(0, self.n_items - 1, DENSE_ITEMS).astype(np.int64)]
        scale = self.effective_size / self.weights.size
        return Diagnostics.of(ranks, self.alpha[:, :, cluster], scale)

    @cached_property
    def all_diagnostics(self) -> list[Diagnostics]:
        """Those of each cluster, of 4,000 items at most."""
        clusters = range(self.n_clusters)
        return list(all_cores().map(lambda each: self.diagnostics(each, some=True), clusters))

    def verdict(self) -> Verdict:
        """Whether to trust this fit: `answer` ("yes", "with care" or "no"), `words` (what that
        means for its numbers), `advice` (what to do), and `checks`, the list behind it."""
        return Verdict.of(diagnose(self))

    def to_frame(
        self, cluster: int = 0, probability: float = 0.95, backend: str | None = None
    ) -> Any:
        """A data frame, best item first: item, rank, lowest and highest rank, mean rank.

        It is of `backend`: "pandas", "polars", "pyarrow" or "modin"; by default of the library that
        the data came in, else of pandas if it is installed, else of polars.
        """
        columns = self._summary(cluster, probability)
        return make_frame(columns, backend, self.settings.get("backend"))

    def summary(
        self, cluster: int = 0, probability: float = 0.95, first: int | None = None
    ) -> TableRows:
        """The CP consensus, best item first, with intervals and mean ranks: one dict an item, of
        the `first` items if that is given. It prints as a table."""
        columns = self._summary(cluster, probability)
        return rows_of({name: column[:first] for name, column in columns.items()})

    def _summary(self, cluster: int, probability: float) -> dict[str, NDArray[Any]]:
        """The columns of `summary`."""
        ordering, runs = self._cp(cluster), self.intervals(probability, cluster)
        return {
            "item": self.items[ordering],
            "rank": np.arange(1, self.n_items + 1),
            "lowest": runs[ordering, 0],
            "highest": runs[ordering, 1],
            "mean": self.mean_ranks(cluster)[ordering].round(6),  # no 1.2999999999999998
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the posterior to a file, whole or not at all; see :func:`pseudomallows.load`."""
        from .save import save

        save(self, path)

    def equal_draws(self) -> NDArray[np.int64]:
        """Numbers of draws, each as often as its weight says (systematic resampling)."""
        n_draws = self.weights.size
        if np.ptp(self.weights) == 0:
            return np.arange(n_draws)
        edges = np.cumsum(self.weights.ravel())
        return np.searchsorted(edges, (np.arange(n_draws) + 0.5) / n_draws * edges[-1])

    def to_arviz(self) -> Any:
        """The draws for ArviZ: `consensus`, `alpha`, with clusters `shares`; beside them `lp`.

        `lp` is the log posterior. ArviZ knows no weights, so weighted draws are drawn again in
        proportion to their weights.
        """
        try:
            import arviz
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"to_arviz needs {error.name}: pip install 'pseudomallows[arviz]'", name=error.name
            ) from None

        chosen = self.equal_draws()
        arrays: dict[str, NDArray[Any]] = {"consensus": self.consensus, "alpha": self.alpha}
        if self.n_clusters > 1:
            arrays["shares"] = self.shares
        if self.errors.size:
            arrays["theta"] = self.theta
        draws = {
            name: values.reshape(-1, *values.shape[2:])[chosen].reshape(values.shape)
            for name, values in arrays.items()
        }
        statistics = {"lp": self.log_posterior.ravel()[chosen].reshape(self.weights.shape)}
        names = {
            "cluster": np.arange(self.consensus.shape[2]),
            "item": [str(x) for x in self.items],
        }
        dims = {"consensus": ["cluster", "item"], "alpha": ["cluster"], "shares": ["cluster"]}
        if hasattr(arviz, "InferenceData"):  # before version 1
            return arviz.from_dict(draws, sample_stats=statistics, coords=names, dims=dims)
        groups = {"posterior": draws, "sample_stats": statistics}
        return arviz.from_dict(groups, coords=names, dims=dims)


def common_consensus(posterior: Posterior) -> NDArray[np.int32]:
    """One consensus for all; of several clusters, by mean rank over the population."""
    if posterior.n_clusters == 1:
        return posterior.point_consensus()
    shares = posterior.shares.mean(axis=(0, 1))
    every = range(posterior.n_clusters)
    means = [posterior.mean_ranks(cluster) for cluster in every]
    return orderings_of(orderings_of(shares @ np.array(means))).astype(np.int32) + 1


def made_by(rng: Any, started: float, prefs: Any) -> dict[str, Any]:
    """For the settings of a fit: who made it, with what seed, in how many seconds, and of which
    library the frame was that the data came in."""
    backend = getattr(prefs, "backend", None)
    return ({"backend": backend} if backend else {}) | {
        "version": __version__,
        "seed": int(rng) if isinstance(rng, int | np.integer) else None,
        "seconds": round(time.perf_counter() - started, 3),
    }
