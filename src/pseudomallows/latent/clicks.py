"""Latent rankings of users known by their clicks: by the paper's law, exactly, or by swaps."""

import functools
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..engines.executors import Executor
from ..kernels.costs import count_ranks, footrule_costs, total_cost
from ..kernels.footrule.clicks import click_log_likelihoods, draw_click_users, swap_users
from ..kernels.groups import TOP_BOTTOM, UNIFORM, V, draw_users
from ..preferences.preferences import Clicks
from ..rankings import orderings_of
from .population import (
    Counts,
    ExactLaw,
    Latent,
    LocalLatent,
    Ranking,
    SizeCounts,
    exact_sum,
    log_partition,
    principal_components,
)

ORDERS = {"uniform": UNIFORM, "v": V, "top_bottom": TOP_BOTTOM}
AUGMENTATIONS = ("exact", "metropolis")


class ClickLatent(LocalLatent):
    """Clicks: the clicked items have the first ranks, in an order that is not known."""

    def __init__(
        self, prefs: Clicks, executor: Executor | None = None, numbers: Counts | None = None
    ):
        informative = prefs.is_informative
        super().__init__(prefs.n_items, executor)
        self.clicks = prefs if informative.all() else prefs.take(informative)
        self._set_rows(self.clicks.weights, numbers)
        self.mean_ranks = -self.clicks.item_counts().astype(np.float64)  # most clicked, rank 1
        self.known_costs = self._known
        self._prefs = prefs

    @property
    def n_unknown(self) -> int:
        """Number of rows of which something is not known: all."""
        return self.n_rows

    def count_rows(self, rows: slice, law: ExactLaw) -> Counts:
        """Counts of the latent ranks of some rows: of all, and of those shared with a partner."""
        counts = np.zeros((2, self.n_items, self.n_items), dtype=np.int64)
        draw_click_users(
            law.seed,
            law.number,
            self.row_numbers[rows],
            self.starts_of(rows),
            self.clicks.codes,
            self.row_weights[rows],
            law.consensus,
            law.lam,
            law.partners,
            counts[0],
            counts[1],
            np.empty((0, self.n_items), dtype=np.int32),
        )
        return counts

    @property
    def row_starts(self) -> NDArray[np.int64]:
        """Where the clicks of each row begin in `row_codes`."""
        return self.clicks.starts

    @functools.cached_property
    def click_sizes(self) -> SizeCounts:  # type: ignore[override]
        """How many users have how many clicks; also of those from whom these were selected."""
        counts = np.bincount(self.clicks.n_clicks, self.row_weights)
        sizes = np.flatnonzero(counts)
        return SizeCounts(sizes, counts[sizes].astype(np.int64))

    @property
    def row_codes(self) -> Ranking:
        """The clicks of all rows."""
        return self.clicks.codes

    def starts_of(self, rows: slice) -> NDArray[np.int64]:
        """Where the clicks of some rows begin, and where the last of them end."""
        return self.clicks.starts[rows.start : rows.stop + 1]

    def unknown_log_likelihood(self, rows: slice, consensus: Ranking, alpha: float) -> int:
        """Log probability of the clicks of some rows; see `exact_sum`."""
        values = self.row_log_likelihoods(rows, consensus, alpha)
        return exact_sum(values, self.row_weights[rows])

    def row_log_likelihoods(
        self, rows: slice, consensus: Ranking, alpha: float
    ) -> NDArray[np.float64]:
        """Log probability of the clicks of one user of each row."""
        return log_likelihoods_of_clicks(self.starts_of(rows), self.clicks.codes, consensus, alpha)

    def select(self, weights: Counts, numbers: Counts) -> "ClickLatent":
        """The rows of weight above 0 alone, with these weights and numbers of first users."""
        chosen = weights > 0
        prefs = replace(self.clicks.take(chosen), weights=weights[chosen])
        found = ClickLatent(prefs, self.executor, numbers[chosen])
        found.click_sizes = self.click_sizes
        return found

    def features(self, n_features: int) -> NDArray[np.float64]:
        """Leading axes of the clicks, each user's scaled to length 1."""
        from scipy.sparse import csr_array

        sizes = self.clicks.n_clicks
        values = np.repeat(1 / np.sqrt(sizes), sizes)
        shape = (self.n_rows, self.n_items)
        rows = csr_array((values, self.clicks.codes, self.clicks.starts), shape=shape)
        return principal_components(rows, n_features)

    def latent_of(self, users: NDArray[np.int64], source: "Source") -> Ranking:
        """The latent rankings of some users again: the same streams give the same bits.

        Users who say nothing have one too, with numbers beyond those of the others.
        """
        numbers = np.array([self.row_of(int(user))[1] for user in users], dtype=np.int64)
        chosen = self._prefs.take(users)
        chosen = replace(chosen, weights=np.maximum(chosen.weights, 1))
        return redraw_latent(chosen, numbers, source)

    def row_of(self, user: int) -> tuple[Clicks, int, int | None]:
        """Clicks and number of a user of the data, and the row, if the user says anything."""
        clicks = self._prefs.take([user])
        informative = self._prefs.is_informative
        if not informative[user]:
            return clicks, self.n_users + int((~informative[: user + 1]).sum()), None
        row = int(informative[:user].sum())
        return clicks, int(self.row_numbers[row]), row


@dataclass(frozen=True)
class Source:
    """What a draw of latent rankings came from; with `order`, by the paper's law."""

    consensus: Ranking
    alpha: float
    seed: int
    number: int
    order: str | None = None


def redraw_latent(clicks: Clicks, numbers: Counts, source: Source) -> Ranking:
    """The latent rankings of these users, by the same streams, so with the same bits."""
    rankings = np.zeros((clicks.n_users, clicks.n_items), dtype=np.int32)
    counts, shared = np.zeros((2, clicks.n_items, clicks.n_items), dtype=np.int64)
    lam, consensus = source.alpha / clicks.n_items, source.consensus
    who = (source.seed, source.number, numbers, clicks.starts, clicks.codes, clicks.weights)
    if source.order is None:
        partners = np.full(clicks.n_items, -1)
        draw_click_users(*who, consensus, lam, partners, counts, shared, rankings)
    else:
        order = ORDERS[source.order]
        draw_users(*who, orderings_of(consensus), lam, order, counts, rankings)
    return rankings


@dataclass(frozen=True)
class PseudoLaw:
    """How the paper's law (Algorithm 4) draws the latent rankings."""

    ordering: Counts
    lam: float
    seed: int
    number: int
    order: int

    def blocks(self, latent: Latent) -> list[slice]:
        """The rows, cut into blocks."""
        return latent.count_blocks()

    def count(self, latent: ClickLatent, rows: slice) -> Counts:
        """What a block adds."""
        counts = np.zeros((latent.n_items, latent.n_items), dtype=np.int64)
        draw_users(
            self.seed,
            self.number,
            latent.row_numbers[rows],
            latent.starts_of(rows),
            latent.row_codes,
            latent.row_weights[rows],
            self.ordering,
            self.lam,
            self.order,
            counts,
            np.empty((0, latent.n_items), dtype=np.int32),
        )
        return counts


class PseudoDraw:
    """One draw of all latent rankings by the paper's law (Algorithm 4), in the making."""

    def __init__(
        self,
        latent: Latent,
        consensus: Ranking,
        alpha: float,
        seed: int,
        number: int,
        order: str,
    ):
        lam, ordering = alpha / latent.n_items, orderings_of(consensus)
        self.latent, self.law = latent, PseudoLaw(ordering, lam, seed, number, ORDERS[order])
        self._counts = np.zeros((latent.n_items, latent.n_items), dtype=np.int64)

    def add(self, part: Counts) -> None:
        """Add the counts of a block."""
        self._counts += part

    def costs(self) -> Counts:
        """The costs, once all blocks are added."""
        return np.asarray(footrule_costs(self._counts))


class MetropolisLatent(ClickLatent):
    """Latent rankings that a chain keeps and changes by swaps, as in the paper's opponent."""

    def __init__(self, prefs: Clicks, executor: Executor | None = None, n_swaps: int = 1):
        if (prefs.weights > 1).any():
            raise ValueError("augmentation='metropolis' needs rows of weight 1: repeat the rows")
        super().__init__(prefs, executor)
        self._n_swaps = n_swaps
        self._rows = np.cumsum(prefs.is_informative) - 1  # of `_latent`, by user
        self._latent: Ranking | None = None
        self._costs = self._known

    def for_chain(self) -> Latent:
        """Latent rankings of its own for each chain."""
        return MetropolisLatent(self._prefs, self.executor, self._n_swaps)

    def draw(self, consensus: Ranking, alpha: float, seed: int, draw: int) -> Counts:
        """A few swaps for each user; the consensus stays where it is."""
        self._begin(consensus)
        latent = self._latent

        def count(rows: slice) -> Counts:
            assert latent is not None
            counts = np.zeros((self.n_items, self.n_items), dtype=np.int64)
            swap_users(
                seed,
                draw,
                self.row_numbers[rows],
                self.starts_of(rows),
                self.clicks.codes,
                consensus,
                alpha / self.n_items,
                self._n_swaps,
                latent[rows],
                counts,
            )
            return counts

        counts = np.zeros_like(self._known)
        for part in self.executor.map(count, self.count_blocks()):
            counts += part
        self._costs = np.asarray(footrule_costs(counts))
        return self._costs

    def _begin(self, consensus: Ranking) -> None:
        """At first: clicked items, then the others, both in the order of the consensus."""
        if self._latent is not None:
            return
        latent = np.empty((self.n_rows, self.n_items), dtype=np.int32)
        ordering = orderings_of(consensus)
        for row, ranks in enumerate(latent):
            clicked = np.zeros(self.n_items, dtype=bool)
            clicked[self.clicks.clicks_of(row)] = True
            mine = np.concatenate([ordering[clicked[ordering]], ordering[~clicked[ordering]]])
            ranks[mine] = np.arange(1, self.n_items + 1)
        counts = np.zeros_like(self._known)
        count_ranks(latent, self.row_weights, counts)
        self._latent, self._costs = latent, footrule_costs(counts)

    def latent_of(self, users: NDArray[np.int64], source: Source) -> Ranking:
        """The latent rankings that the chain holds; of users who say nothing, exact draws."""
        rankings = super().latent_of(users, source)
        known = self._prefs.is_informative[users]
        if self._latent is not None:
            rankings[known] = self._latent[self._rows[users[known]]]
        return rankings

    def log_likelihood(self, consensus: Ranking, alpha: float) -> float:
        """Log probability of the latent rankings, which is what alpha sees here."""
        self._begin(consensus)
        distance = float(total_cost(self._costs, consensus))
        return -alpha / self.n_items * distance - self.n_users * log_partition(self.n_items, alpha)

    def start(self, alpha: float, rng: np.random.Generator, n_rounds: int = 10) -> Ranking:
        """As for exact draws, so that the start is the same."""
        return ClickLatent(self._prefs, self.executor).start(alpha, rng, n_rounds)


def log_likelihoods_of_clicks(
    starts: NDArray[np.int64], codes: Ranking, consensus: Ranking, alpha: float
) -> NDArray[np.float64]:
    """Log probability of each row of clicks; see `log_likelihood`, which checks."""
    values, n_items = np.empty(len(starts) - 1), len(consensus)
    lam, constant = alpha / n_items, log_partition(n_items, alpha)
    click_log_likelihoods(starts, codes, consensus, lam, constant, values)
    return values
