"""Users with a consensus of their own each: the likelihood of their clicks at each alpha of a grid,
by Kendall's distance: a closed form, with no table of the size of items times items, nor of users
times items. What a user clicks next follows the Mallows law of the unclicked items alone.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..distances.kendall import log_binomials
from ..kernels.block_sums import draw_bucket_latent
from ..kernels.click_rows import ClickRows
from ..kernels.costs import count_ranks
from ..kernels.footrule.latent_blocks import draw_latent
from ..kernels.kendall.click_sums import kendall_log_likelihoods
from ..kernels.kendall.next_items import RATIO, fill_far_probabilities, fill_place_probabilities
from ..kernels.streams import Streams
from ..rankings import orderings_of

# Places whose probabilities are tabulated one by one. Those further down, read between others, are
# then off by 3e-6 of themselves (20,000 items, a window of 10); with 256 it is 5e-6, with 1,024,
# 2e-6.
N_NEAR = 512
# Of an alpha to the next, and the least of them, by which a user hardly prefers anything: the best
# item comes next exp(0.75) = 2 times as often as the last.
GRID_RATIO, LEAST_ALPHA = 1.9, 0.75

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Ranking = NDArray[np.int32]


class OwnLaw:
    """The likelihood of the clicks of users whose consensus is their own, for a grid of alphas."""

    def __init__(self, n_items: int, alphas: Floats):
        self.n_items, self.alphas = n_items, alphas
        self._binomials = np.zeros((1, len(alphas)))

    @staticmethod
    def grid(n_items: int) -> Floats:
        """Up to the alpha at which the next click is the best item left by odds of 6 to 1: an alpha
        costs next to nothing here, and those of a large catalogue may be large."""
        most = max(64.0, 2.0 * n_items)  # with few items, ranks are then some n_items / 64 off
        number = 1 + int(np.ceil(np.log(most / LEAST_ALPHA) / np.log(GRID_RATIO)))
        return np.geomspace(LEAST_ALPHA, most, number)

    def log_likelihoods(self, clicks: ClickRows, rankings: Ranking) -> Floats:
        """``values[row, g]``: exact log probability of a user's clicks at each alpha."""
        values = np.empty((len(rankings), len(self.alphas)))
        logs = self.log_binomials_of(int(np.diff(clicks.starts).max(initial=0)))
        rates = self.alphas / self.n_items
        kendall_log_likelihoods(clicks, rankings, rates, logs, values)
        return values

    def log_binomials_of(self, largest: int) -> Floats:
        """``[size, g]`` for so many clicks at least."""
        binomials = self._binomials
        if len(binomials) <= largest:
            columns = [log_binomials(self.n_items, alpha, largest) for alpha in self.alphas]
            binomials = self._binomials = np.ascontiguousarray(np.stack(columns, axis=1))
        return binomials

    def places(self, window: int) -> tuple[int, Counts]:
        """How many places have a probability each, and the places further down where it is known,
        ever fewer."""
        n_near = min(self.n_items, max(N_NEAR, 4 * window))
        return n_near, far_places(n_near, self.n_items)

    def next_probabilities(self, window: int, size: int) -> tuple[Floats, Floats]:
        """``near[g, place]`` among `size` unclicked items, to be among the next `window`; and
        ``far[g, number]``, the logs at the places further down."""
        n_near, places = self.places(window)
        near = np.empty((len(self.alphas), n_near))
        far = np.empty((len(self.alphas), len(places)))
        for g, rate in enumerate((self.alphas / self.n_items).tolist()):
            fill_place_probabilities(rate, 0, size, window, near[g])
            fill_far_probabilities(rate, size, window, places, far[g])
        return near, far

    def count_ranks(
        self, codes: Ranking, ranks: Ranking, weights: Floats, n_draws: int, rng: Any
    ) -> Counts:
        """``counts[item, rank - 1]`` of rankings drawn for one user, who clicked `codes` and has
        the consensus `ranks`; ``weights[g]`` are the user's shares of the alphas."""
        rankings, rates = np.tile(ranks, (len(weights), 1)), self.alphas / self.n_items
        return draw_kendall_ranks_of(codes, rankings, rates, weights, n_draws, rng)


def draw_ranks_of(
    codes: NDArray[np.int32],
    ranks: NDArray[np.int32],
    rates: Floats,
    weights: Floats,
    n_draws: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """``counts[item, rank - 1]`` of rankings of one user who clicked `codes`, drawn exactly from a
    mixture: part g has consensus ``ranks[g]``, ``rates[g]``, alpha over n_items, and a weight."""
    n_items = ranks.shape[1]
    counts, known = np.zeros((n_items, n_items), dtype=np.int64), np.zeros((1, n_items), np.int32)
    known[0, codes] = 1  # clicked items share the first ranks
    numbers, user = rng.multinomial(n_draws, weights), np.zeros(1, dtype=np.int64)
    seed, none = int(rng.integers(2**63)), np.empty((0, n_items), dtype=np.int32)
    for g in np.flatnonzero(numbers).tolist():
        streams = Streams(seed, g, user, numbers[g : g + 1])
        draw_latent(streams, known, ranks[g], rates[g], counts, none)
    if len(codes) == 1:  # a known rank, for which nothing is drawn
        counts[codes, 0] = n_draws
    return counts


def draw_kendall_ranks_of(
    codes: NDArray[np.int32],
    ranks: NDArray[np.int32],
    rates: Floats,
    weights: Floats,
    n_draws: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """The same by Kendall's distance."""
    n_items = ranks.shape[1]
    counts = np.zeros((n_items, n_items), dtype=np.int64)
    known = np.full(n_items, len(codes) + 1, dtype=np.int32)
    known[codes] = 1
    numbers, seed = rng.multinomial(n_draws, weights), int(rng.integers(2**63))
    for g in np.flatnonzero(numbers).tolist():
        ones = np.ones(numbers[g], dtype=np.int64)
        streams = Streams(seed, g, np.arange(len(ones)), ones)
        rankings, latent = np.tile(known, (2, len(ones), 1))
        draw_bucket_latent(streams, rankings, orderings_of(ranks[g]), rates[g], latent)
        count_ranks(latent, ones, counts)
    return counts


def far_places(n_top: int, n_items: int) -> Counts:
    """The places, from the last one tabulated on, at which probabilities further down are known.

    >>> far_places(100, 110).tolist()
    [99, 103, 107, 111]
    """
    places = [n_top - 1]
    while places[-1] < n_items:
        places.append(max(places[-1] + 1, round(places[-1] * RATIO)))
    return np.array(places, dtype=np.int64)
