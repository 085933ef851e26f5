"""Clicks under Kendall's distance: exact, in time that goes with the clicks; see
`kernels.kendall.click_sums`. Nothing here is of the size of items times items."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..distances.kendall import KENDALL
from ..distances.tallies import Counts, Ranking, ranking_of
from ..engines.executors import Executor
from ..kernels.click_rows import ClickRows, slice_clicks
from ..kernels.kendall import click_sums as kernels
from ..kernels.kendall.next_items import RATIO
from ..kernels.streams import Streams
from ..preferences import Clicks
from ..rankings import orderings_of
from .click_laws import ClickLaw, ClickTally, Curve, SizeGroups
from .click_population import ClickPopulation
from .population import DrawOrigin
from .shards import ShardedPopulation

LEAST_ROUNDS, MOST_ROUNDS = 2, 6  # of swaps at all scales in a sweep
ROOMY = 300_000  # items times rounds, beyond which the rounds take most of a sweep

Floats = NDArray[np.float64]


class KendallLaw(ClickLaw):
    """The exact law of clicks: the log weight of an item is -alpha / n_items times its rank."""

    is_exact = True
    alpha_steps = 20  # a step takes a logarithm a click of one user: next to nothing

    def __init__(self, n_items: int, sizes: Counts, executor: Executor | None = None):
        groups = SizeGroups(sizes, np.zeros(len(sizes), dtype=np.int64))
        super().__init__(n_items, groups, evidence_shape=(n_items,))
        n_rounds = min(MOST_ROUNDS, max(LEAST_ROUNDS, ROOMY // n_items))
        self.usual_moves = n_rounds * n_items * kernels.n_scales(n_items) // 2

    def fill_log_weights(self, ranks: Ranking, alpha: float, cluster: int, filled: Floats) -> None:
        """Fill ``filled[0, item, cluster]`` under a consensus."""
        filled[0, :, cluster] = (-alpha / self.n_items) * ranks

    def constants(self, alpha: float) -> Floats:
        """``constants[place]`` of users with so many clicks."""
        sizes = self.groups.sizes
        logs = log_binomials(self.n_items, alpha, int(sizes.max(initial=0)))
        return np.asarray(alpha / self.n_items * (sizes * (sizes + 1) // 2) - logs[sizes])

    def tally(self, counts: Counts, n_users: Counts) -> "KendallTally":
        """The tally of some users."""
        return KendallTally(self, counts, n_users)

    def best_of(self, evidence: NDArray[Any], draw: Ranking) -> Ranking:
        """The items by their mean numbers of clicks; ties by a draw, which is to say by chance."""
        return ranking_of(np.lexsort((draw, -evidence)))


class KendallTally(ClickTally):
    """``counts[0, item]`` clicks on each item."""

    def best(self, alpha: float) -> Ranking:
        """The consensus of the largest likelihood: the order of the numbers of clicks."""
        return ranking_of(np.argsort(-self.counts[0], kind="stable"))

    def evidence(self, alpha: float) -> Counts:
        """The numbers of clicks."""
        return np.asarray(self.counts[0])

    def curve(self, consensus: Ranking) -> Curve:
        """The log likelihood as a function of alpha."""
        n_items, sizes = self.law.n_items, self.law.groups.sizes
        total = int(kernels.sum_of_ranks(self.counts[0], consensus))

        def value(alpha: float) -> float:
            rate = alpha / n_items
            return float(
                kernels.kendall_constant(n_items, rate, sizes, self.n_users) - rate * total
            )

        return value

    def move(
        self,
        stream: NDArray[np.uint64],
        alpha: float,
        n_moves: int,
        consensus: Ranking,
        move: str = "swap",
        leap: int = 1,
    ) -> None:
        """Move a consensus in place by swaps of places at all scales, `n_moves` of them or so."""
        n_items = self.law.n_items
        n_passes = max(1, round(2 * n_moves / n_items))
        kernels.mix_consensus(stream, self.counts[0], alpha / n_items, n_passes, consensus)


class KendallClicks(ClickPopulation):
    """Users known by their clicks, under Kendall's distance: summed up by their numbers."""

    of_distance = KENDALL

    @staticmethod
    def log_likelihoods(prefs: Clicks, rows: slice, consensus: Ranking, alpha: float) -> Floats:
        """Log probability of the clicks of one user of each row, given their number."""
        clicks, n_items = slice_clicks(prefs, rows), len(consensus)
        values, rates = np.empty((len(clicks.starts) - 1, 1)), np.array([alpha / n_items])
        logs = log_binomials(n_items, alpha, int(np.diff(clicks.starts).max(initial=0)))
        kernels.kendall_log_likelihoods(clicks, consensus[None], rates, logs[:, None], values)
        return values[:, 0]

    def of_items(self, items: Counts) -> "KendallClicks":
        """The clicks on these items alone, of the rows that have some and not all."""
        places = np.full(self.n_items, -1, dtype=np.int32)
        places[items] = np.arange(len(items))
        codes, clicks = places[self.clicks.codes], self.clicks
        sums = np.concatenate([[0], np.cumsum(codes >= 0)])
        starts = sums[clicks.starts]
        kept = replace(clicks, items=clicks.items[items], starts=starts, codes=codes[codes >= 0])
        sizes = np.diff(starts)
        return KendallClicks(kept.take((sizes > 0) & (sizes < len(items))), self.executor)

    def redraw(self, known: Clicks, numbers: Counts, origin: DrawOrigin) -> Ranking:
        """The latent rankings of these users, by the same streams, so with the same bits."""
        streams = Streams(origin.seed, origin.number, numbers, known.weights)
        rows = ClickRows(known.starts, known.codes)
        return draw_kendall_rankings(streams, rows, origin.consensus, origin.alpha)


class KendallShards(ShardedPopulation):
    """The same in shards on workers."""

    local = KendallClicks


def log_binomials(n_items: int, alpha: float, largest: int) -> Floats:
    """``[c]``: log of the Gaussian binomial of n_items over c, at exp(-alpha / n_items).

    >>> np.exp(log_binomials(4, 0.0, 4)).round(6)
    array([1., 4., 6., 4., 1.])
    """
    values = np.empty(largest + 1)
    kernels.log_gaussian_binomials(n_items, alpha / n_items, values)
    return values


def draw_kendall_rankings(
    streams: Streams, clicks: ClickRows, consensus: Ranking, alpha: float
) -> Ranking:
    """A latent ranking of each row, given its clicks."""
    n_items = len(consensus)
    rankings = np.zeros((len(streams.weights), n_items), dtype=np.int32)
    law = (orderings_of(consensus), alpha / n_items)
    none = np.empty((0, 0), dtype=np.int64)
    kernels.draw_kendall_users(streams, clicks, *law, none, rankings)
    return rankings


def far_places(n_top: int, n_items: int) -> NDArray[np.int64]:
    """The places, from the last one tabulated on, at which probabilities further down are known.

    >>> far_places(100, 110).tolist()
    [99, 103, 107, 111]
    """
    places = [n_top - 1]
    while places[-1] < n_items:
        places.append(max(places[-1] + 1, round(places[-1] * RATIO)))
    return np.array(places, dtype=np.int64)
