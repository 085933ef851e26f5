"""Latent rankings of users known by their clicks: by the paper's law, exactly, or by swaps."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .executors import Executor, Threads, blocks
from .kernels.clicks import click_log_likelihoods, draw_click_users, swap_users
from .kernels.costs import footrule_costs, total_cost
from .kernels.groups import TOP_BOTTOM, UNIFORM, V, draw_users
from .latent import Counts, Latent, Ranking, check_consensus, check_informative, log_partition
from .preferences import Clicks
from .rankings import check_alpha, orderings_of

ORDERS = {"uniform": UNIFORM, "v": V, "top_bottom": TOP_BOTTOM}
AUGMENTATIONS = ("exact", "metropolis")


class ClickLatent(Latent):
    """Clicks: the clicked items have the first ranks, in an order that is not known."""

    def __init__(self, prefs: Clicks, executor: Executor | None = None):
        informative = prefs.is_informative
        check_informative(informative)
        self._clicks = prefs.take(informative)
        super().__init__(prefs, self._clicks.weights, executor)
        self.mean_ranks = -self._clicks.item_counts().astype(np.float64)  # most clicked, rank 1
        self.known_costs = self._known
        self._prefs = prefs
        silent = self.n_users + np.cumsum(~informative)  # beyond the numbers of the others
        self._numbers = np.where(informative, 0, silent)  # of the streams, by user
        self._numbers[informative] = self._first_users

    @property
    def n_users(self) -> int:
        """Number of users who say anything."""
        return int(self._weights.sum())

    @property
    def n_clicks(self) -> Counts:
        """Number of clicks of each row, and of each person behind it."""
        return np.repeat(self._clicks.n_clicks, self._weights)

    def _draw_rows(
        self,
        rows: slice,
        consensus: Ranking,
        alpha: float,
        seed: int,
        draw: int,
        partners: Counts,
        kept: Ranking,
    ) -> Counts:
        counts = np.zeros((2, self.n_items, self.n_items), dtype=np.int64)
        draw_click_users(
            seed,
            draw,
            self._first_users[rows],
            self._starts(rows),
            self._clicks.codes,
            self._weights[rows],
            consensus,
            alpha / self.n_items,
            partners,
            counts[0],
            counts[1],
            kept,
        )
        return counts

    def _starts(self, rows: slice) -> NDArray[np.int64]:
        return self._clicks.starts[rows.start : rows.stop + 1]

    def _log_likelihoods(self, rows: slice, consensus: Ranking, alpha: float) -> Any:
        return _log_likelihoods(self._starts(rows), self._clicks.codes, consensus, alpha)

    def draw_pseudo(
        self, consensus: Ranking, alpha: float, seed: int, draw: int, order: str
    ) -> Counts:
        """Draw all latent rankings by the paper's law (Algorithm 4); return their costs."""

        def count(rows: slice) -> Counts:
            none = np.empty((0, self.n_items), dtype=np.int32)
            return self._draw_pseudo_rows(rows, consensus, alpha, seed, draw, order, none)

        counts = np.zeros_like(self._known)
        for part in self.executor.map(count, self.count_blocks()):
            counts += part
        return np.asarray(footrule_costs(counts))

    def _draw_pseudo_rows(
        self,
        rows: slice,
        consensus: Ranking,
        alpha: float,
        seed: int,
        draw: int,
        order: str,
        kept: Ranking,
    ) -> Counts:
        counts = np.zeros((self.n_items, self.n_items), dtype=np.int64)
        draw_users(
            seed,
            draw,
            self._first_users[rows],
            self._starts(rows),
            self._clicks.codes,
            self._weights[rows],
            orderings_of(consensus),
            alpha / self.n_items,
            ORDERS[order],
            counts,
            kept,
        )
        return counts

    def latent_of(
        self,
        users: NDArray[np.int64],
        consensus: Ranking,
        alpha: float,
        seed: int,
        draw: int,
        order: str | None,
    ) -> Ranking:
        """The latent rankings of some users again: the same streams give the same bits.

        With `order`, those of the paper's law. Users who say nothing have one too.
        """
        chosen = self._prefs.take(users)
        numbers = self._numbers[users]
        rankings = np.zeros((len(users), self.n_items), dtype=np.int32)
        counts, shared = np.zeros((2, self.n_items, self.n_items), dtype=np.int64)
        weights, lam = np.maximum(chosen.weights, 1), alpha / self.n_items
        who = (seed, draw, numbers, chosen.starts, chosen.codes, weights)
        if order is None:
            partners = np.full(self.n_items, -1)
            draw_click_users(*who, consensus, lam, partners, counts, shared, rankings)
        else:
            draw_users(*who, orderings_of(consensus), lam, ORDERS[order], counts, rankings)
        return rankings


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
        if self._latent is None:
            self._latent = self._first_latent(consensus)
        latent = self._latent

        def count(rows: slice) -> Counts:
            counts = np.zeros((self.n_items, self.n_items), dtype=np.int64)
            lam = alpha / self.n_items
            codes, starts = self._clicks.codes, self._starts(rows)
            first = self._first_users[rows]
            swap_users(
                seed,
                draw,
                first,
                starts,
                codes,
                consensus,
                lam,
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

    def _first_latent(self, consensus: Ranking) -> Ranking:
        """Clicked items first, then the others, both in the order of the consensus."""
        latent = np.empty((len(self._weights), self.n_items), dtype=np.int32)
        ordering = orderings_of(consensus)
        for row, ranks in enumerate(latent):
            clicked = np.zeros(self.n_items, dtype=bool)
            clicked[self._clicks.clicks_of(row)] = True
            mine = np.concatenate([ordering[clicked[ordering]], ordering[~clicked[ordering]]])
            ranks[mine] = np.arange(1, self.n_items + 1)
        return latent

    def latent_of(
        self,
        users: NDArray[np.int64],
        consensus: Ranking,
        alpha: float,
        seed: int,
        draw: int,
        order: str | None,
    ) -> Ranking:
        """The latent rankings that the chain holds; of users who say nothing, exact draws."""
        rankings = super().latent_of(users, consensus, alpha, seed, draw, order)
        known = self._prefs.is_informative[users]
        if self._latent is not None:
            rankings[known] = self._latent[self._rows[users[known]]]
        return rankings

    def log_likelihood(self, consensus: Ranking, alpha: float) -> float:
        """Log probability of the latent rankings, which is what alpha sees here."""
        distance = float(total_cost(self._costs, consensus))
        return -alpha / self.n_items * distance - self.n_users * log_partition(self.n_items, alpha)

    def start(self, alpha: float, rng: np.random.Generator, n_rounds: int = 10) -> Ranking:
        """As for exact draws, so that the start is the same."""
        return ClickLatent(self._prefs, self.executor).start(alpha, rng, n_rounds)


def click_log_likelihood(prefs: Clicks, consensus: ArrayLike, alpha: float) -> NDArray[np.float64]:
    """Log probability of each user's clicks, given their number, the consensus and alpha; exact.

    >>> from pseudomallows import Preferences
    >>> prefs = Preferences.from_clicks([[1, 0, 0], [0, 0, 1], [0, 0, 0]])
    >>> np.exp(click_log_likelihood(prefs, [1, 2, 3], alpha=0))
    array([0.33333333, 0.33333333, 1.        ])
    """
    if not isinstance(prefs, Clicks):
        raise TypeError(
            f"prefs must be clicks, got {type(prefs).__name__}: for rankings use log_likelihood"
        )
    center, alpha = check_consensus(consensus, prefs), check_alpha(alpha)
    parts = Threads().map(
        lambda rows: _log_likelihoods(
            prefs.starts[rows.start : rows.stop + 1], prefs.codes, center, alpha
        ),
        blocks(prefs.n_users),
    )
    return np.concatenate(list(parts))


def _log_likelihoods(
    starts: NDArray[np.int64], codes: Ranking, consensus: Ranking, alpha: float
) -> NDArray[np.float64]:
    values, n_items = np.empty(len(starts) - 1), len(consensus)
    lam, constant = alpha / n_items, log_partition(n_items, alpha)
    click_log_likelihoods(starts, codes, consensus, lam, constant, values)
    return values
