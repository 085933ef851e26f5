"""Spearman's distance: the sum over items of the squared difference in rank.

It adds up over items, as the footrule does, but its partition function is a permanent, for which no
short way is known. Up to 20 items it is summed exactly, over sets. Beyond, two facts that hold to
many digits take its place.

- While the weights reach over many ranks (rate n^2 is not large, rate being alpha / n_items), the
  permanent is near McCullagh's formula (2014) for balanced weights, and what is missing is a power
  series in 1 / n, at equal rate n^2: it is taken from 14 to 17 items, where the sum is exact.
- Where rate n^2 is large, the two ends do not see each other, and the log of the sum grows by the
  same amount with each item.

Either states how far off it may be: the last term of the series, and the change of the growth.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.costs import power_distances
from ..kernels.distances import spearman_loops as kernels
from .distance import PriceDistance, symmetric_shares
from .tallies import Counts

MOST_SUMMED = 20  # items whose sum goes over their million sets; each item more doubles them
MOST_ITEMS = 1000  # whose table takes some 40 seconds; it grows with their cube
BASES = (14, 15, 16, 17)  # items of which the series is taken: its error is that of its last term
REACH = 40.0  # rate n^2 beyond which the ends do not see each other; in tests 20 is enough
SMALLEST = 0.01  # rate n^2 below which mean and variance are enough: to 1e-10 with 20 items
SHARPEST = 5.0  # rate above which only exchanges of neighbours count: others weigh exp(-30)
STEP = 0.15  # of log rate in the table: the spline is then within the error below
INTERPOLATION_ERROR = 1e-7  # of the spline at these steps
# Proposals for a draw, for each item. With 25, 50 and 200 the mean distance of draws of 21, 50 and
# 100 items is the same within its error, 0.5 to 2 %; with 6 it is up to 6 % off, or 30 if sharp.
N_SWEEPS = 100


class Spearman(PriceDistance):
    """Exact to 20 items; beyond, with a stated error; its partition function to 1,000 items."""

    name = "spearman"
    most_items = MOST_ITEMS
    compare = functools.partial(power_distances, 2)

    def make_partition(self, n_items: int, alpha: float) -> tuple[float, float]:
        """`log_partition` and `expected`, its slope; to 1,000 items.

        See `log_partition_error`. From 13 items on, a table is made at the first call for a number
        of items: it takes one to six seconds up to 200 of them, and some 40 at 1,000.
        """
        return _partition(n_items, alpha)[:2]

    def log_partition_error(self, n_items: int, alpha: float) -> float:
        """How far off `log_partition` may be.

        0 to 12 items, 1e-7 to 20, below 1e-4 to 200, and below 1e-3 at 1,000.
        """
        return _partition(n_items, alpha)[2]

    def fill_draws(self, seed: int, alpha: float, draws: NDArray[np.int32]) -> None:
        """Exact to 20 items. Beyond, each draw is the end of a chain of its own: from the order of
        normal numbers around 1, 2, ..., which is near the law, 100 proposals for each item to
        exchange two ranks."""
        n_items = draws.shape[1]
        rate = alpha / n_items
        if n_items <= MOST_SUMMED:
            kernels.draw_by_sets(seed, self.weights(n_items, rate), draws)
        else:
            self.fill_by_chains(seed, rate, N_SWEEPS, draws)

    def fill_by_chains(
        self, seed: int, rate: float, n_sweeps: int, draws: NDArray[np.int32]
    ) -> None:
        """From normal numbers, so many proposals for each item; rate is alpha / n_items."""
        n_items = draws.shape[1]
        noise = np.random.default_rng(seed).standard_normal(draws.shape)
        places = np.arange(n_items) + noise / math.sqrt(2.0 * max(rate, 1e-12))
        draws[:] = places.argsort(axis=1).argsort(axis=1) + 1
        kernels.draw_by_swaps(seed, self.prices(n_items), rate, n_sweeps, draws)

    def rank_probabilities(self, n_items: int, alpha: float) -> NDArray[np.float64]:
        """``probabilities[item, rank - 1]`` of a Mallows draw around 1, 2, ....

        Exact to 20 items. Beyond, by 10,000 draws, always the same ones, each counted in four ways
        that have the same law: the standard error is 0.005 at most.
        """
        if n_items <= MOST_SUMMED:
            probabilities = np.empty((n_items, n_items))
            kernels.spearman_marginals(self.weights(n_items, alpha / n_items), probabilities)
            return probabilities
        return symmetric_shares(self.draw(n_items, alpha, 10_000, seed=0))

    def prices(self, n_items: int) -> Counts:
        ranks = np.arange(n_items)
        return np.asarray((ranks[:, None] - ranks) ** 2)

    def weights(self, n_items: int, rate: float) -> NDArray[np.float64]:
        """``exp(-rate * prices)``: the sum over all rankings is their permanent."""
        return np.asarray(np.exp(-rate * self.prices(n_items)))

    def costs(self, counts: Counts) -> Counts:
        """``counts @ prices``, by the number of users, the sum of ranks and that of squares."""
        ranks = np.arange(len(counts))
        users, sums, squares = (counts @ ranks**power for power in range(3))
        costs = users[:, None] * ranks**2 - 2 * sums[:, None] * ranks + squares[:, None]
        return np.asarray(costs)


SPEARMAN = Spearman()


class PartitionTable(NamedTuple):
    """`spline(log rate)` is log of the log partition; `error(log rate)` of the log partition."""

    spline: Any
    slope: Any
    nodes: NDArray[np.float64]
    errors: NDArray[np.float64]


def _partition(n_items: int, alpha: float) -> tuple[float, float, float]:
    """The log partition function, the mean distance, and how far off the first may be."""
    rate, squares = alpha / n_items, n_items * (n_items**2 - 1)  # the mean at alpha = 0 is a sixth
    if n_items <= 12:  # the sum over 4,096 sets is so fast that it needs no table
        table = np.empty((n_items, n_items))
        log_sum = kernels.spearman_marginals(SPEARMAN.weights(n_items, rate), table)
        return float(log_sum), float((table * SPEARMAN.prices(n_items)).sum()), 0.0
    if n_items > MOST_ITEMS:
        raise ValueError(
            f"distance='spearman' has its partition function for up to {MOST_ITEMS} items, got "
            f"{n_items}: use distance='footrule', or fewer items"
        )
    if rate * n_items**2 <= SMALLEST:
        mean, variance = squares / 6, squares * n_items * (n_items + 1) / 36
        log_sum = math.lgamma(n_items + 1) - rate * mean + rate**2 * variance / 2
        return log_sum, mean - rate * variance, INTERPOLATION_ERROR
    if rate >= SHARPEST:
        one, two = (n_items - 1) * math.exp(-2 * rate), (3 * n_items - 5) * math.exp(-4 * rate)
        return one - two / 2, 2 * (one - two), INTERPOLATION_ERROR
    made, place = _table(n_items), math.log(rate)
    log_sum = math.exp(made.spline(place))
    error = float(np.interp(place, made.nodes, made.errors)) + INTERPOLATION_ERROR
    return log_sum, -log_sum * float(made.slope(place)) / rate, error


@functools.lru_cache(maxsize=16)
def _table(n_items: int) -> PartitionTable:
    from scipy.interpolate import make_interp_spline

    low, high = math.log(SMALLEST / n_items**2) - 1, math.log(SHARPEST) + STEP
    nodes = np.linspace(low, high, math.ceil((high - low) / STEP) + 1)
    values, errors = np.array([log_sum(n_items, math.exp(node)) for node in nodes]).T
    spline = make_interp_spline(nodes, np.log(values), k=7)
    return PartitionTable(spline, spline.derivative(), nodes, errors)


def log_sum(n_items: int, rate: float) -> tuple[float, float]:
    """The log of the sum over all rankings, and how far off it may be; see above."""
    if n_items <= MOST_SUMMED:
        return float(kernels.spearman_sum(SPEARMAN.weights(n_items, rate))), 0.0
    base = max(math.ceil(math.sqrt(REACH / rate)), BASES[-1])
    if base >= n_items:
        return smooth_log_sum(n_items, rate)
    some = log_sum if base <= MOST_SUMMED else smooth_log_sum
    values, errors = np.array([some(base - k, rate) for k in range(4)]).T
    growth, n_more = -np.diff(values), n_items - base
    error = errors[0] + n_more * np.abs(np.diff(growth)).max()  # one alone may happen to be small
    return float(values[0] + n_more * growth[0]), float(error)


def smooth_log_sum(n_items: int, rate: float) -> tuple[float, float]:
    """McCullagh's formula and a series in 1 / n of what it misses, where weights reach far."""
    scaled = [(n, rate * n_items**2 / n**2) for n in BASES]
    missing = np.array([log_sum(n, x)[0] - mccullagh(n, x) for n, x in scaled])
    series, shorter = (_at(n_items, BASES[-n_terms:], missing[-n_terms:]) for n_terms in (4, 3))
    return mccullagh(n_items, rate) + series, abs(series - shorter)


def _at(n_items: int, bases: tuple[int, ...], values: NDArray[np.float64]) -> float:
    """The series c_1 / n + c_2 / n^2 + ... through values at some n, at another n."""
    powers = np.arange(1, len(bases) + 1)
    matrix = np.array(bases, dtype=np.float64)[:, None] ** -powers
    return float(np.linalg.solve(matrix, values) @ float(n_items) ** -powers)


def mccullagh(n_items: int, rate: float) -> float:
    """Log of the permanent of the weights, by McCullagh's formula for balanced ones.

    Balanced by x, weights B have unit sums. Then the permanent is about n! / n^n over the square
    root of det(I - B B + 1 / n).
    """
    weights, x = SPEARMAN.weights(n_items, rate), np.ones(n_items)
    for _ in range(100):  # some 40 rounds are enough
        sums = weights @ x
        if np.abs(x * sums - 1).max() < 1e-12:
            break
        x = np.sqrt(x / sums)
    balanced = weights * x[:, None] * x
    matrix = np.eye(n_items) - balanced @ balanced + 1 / n_items
    log_uniform = math.lgamma(n_items + 1) - n_items * math.log(n_items)
    return float(log_uniform - 2 * np.log(x).sum() - np.linalg.slogdet(matrix)[1] / 2)
