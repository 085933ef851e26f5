"""Alpha summed out of the posterior of the consensus of full rankings.

Given their total distance d from the consensus, the rankings say nothing else of alpha: it has the
density prior(alpha) exp(-alpha / n_items * d) / Z(alpha)^n_users, up to a constant. Its integral
is a function of d alone, the likelihood of a consensus whatever alpha is. So draws of the consensus
at one alpha, weighed by it, are of the posterior with alpha unknown, and an alpha is drawn for each
from that density: one number, by the inverse of its cumulative sum on a grid.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..distances.distance import Distance
from ..rankings import MAX_ALPHA

Floats = NDArray[np.float64]
# Of the logarithm of alpha. Below the first value the prior has 1e-12 of its mass to the power of
# its shape; half or twice the points change a log evidence of 20 items by less than 1e-9.
FIRST, LAST, N_POINTS = np.log(1e-12), np.log(MAX_ALPHA), 1000
N_ZOOM = 100  # on the way there: three times a hundredth of 54 log units is less than any spread
FAR = 40.0  # log units below the highest point: less than rounding of the sum
# Where to draw: at a low quantile, as a proposal should be wider than its target. With 5 users of
# 4 items the median has half the effective size; with 100 of 20 half of it has a tenth less.
LOW = 0.3
ROWS = 1000  # distances at a time, so that a table has 8 MB


class SummedAlpha:
    """The likelihood and the alphas of a consensus, by its total distance from the rankings."""

    def __init__(
        self,
        distance: Distance,
        n_items: int,
        n_users: int,
        log_prior: Callable[[float], float],  # log density of alpha
    ):
        self._distance, self.n_items, self.n_users = distance, n_items, n_users
        self.log_prior = log_prior

    def log_constant(self, alpha: float) -> float:
        """Log likelihood of a consensus at distance 0."""
        return -self.n_users * self._distance.log_partition(self.n_items, alpha)

    def _logs(self, log_alphas: Floats) -> Floats:
        """Log density of the logarithm of alpha, and of the rankings at distance 0."""
        alphas = np.exp(log_alphas).tolist()
        parts = [self.log_prior(alpha) + self.log_constant(alpha) for alpha in alphas]
        return np.asarray(np.array(parts) + log_alphas)

    def table(self, distances: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """The logarithms of a grid of alphas that holds all the mass at distances in this range,
        and the logs there, without the distance."""
        ends = distances.min(), distances.max()
        grid = np.linspace(FIRST, LAST, N_ZOOM)
        for n_points in (N_ZOOM, N_ZOOM, N_POINTS):  # each time closer
            logs = self._logs(grid)
            high = np.zeros(len(grid), dtype=np.bool_)
            for distance in ends:
                values = logs - np.exp(grid) / self.n_items * distance
                high |= values > values.max() - FAR
            where = np.flatnonzero(high)
            low, top = max(where[0] - 1, 0), min(where[-1] + 1, len(grid) - 1)
            grid = np.linspace(grid[low], grid[top], n_points)
        return grid, self._logs(grid)

    def low_alpha(self, distance: float) -> float:
        """A quantile of alpha given a distance, somewhat low."""
        grid, logs = self.table(np.array([distance]))
        values = logs - np.exp(grid) / self.n_items * distance
        sums = np.exp(values - values.max()).cumsum()
        return float(np.exp(np.interp(LOW * sums[-1], sums, grid)))

    def integrate(
        self,
        distances: NDArray[np.int64],
        rng: np.random.Generator,
        table: tuple[Floats, Floats] | None = None,  # default: made for these distances
    ) -> tuple[Floats, Floats]:
        """For each distance the log likelihood, alpha integrated out, and an alpha drawn given it.

        The integrand vanishes at both ends of the grid, so that the sum over it is as exact as the
        smooth function allows: to rounding.
        """
        grid, logs = self.table(distances) if table is None else table
        alphas, step = np.exp(grid), float(grid[1] - grid[0])
        log_likelihoods, drawn = np.empty(len(distances)), np.empty(len(distances))
        uniforms = rng.random(len(distances))
        for start in range(0, len(distances), ROWS):
            rows = slice(start, start + ROWS)
            values = logs - alphas / self.n_items * distances[rows, None]
            highest = values.max(axis=1)
            masses = np.exp(values - highest[:, None])
            log_likelihoods[rows] = highest + np.log(masses.sum(axis=1) * step)
            # between two points the density is their mean
            sums = np.zeros(masses.shape)
            np.cumsum((masses[:, 1:] + masses[:, :-1]) / 2, axis=1, out=sums[:, 1:])
            for row, (own, u) in enumerate(zip(sums, uniforms[rows], strict=True), start):
                drawn[row] = np.exp(np.interp(u * own[-1], own, grid))
        return log_likelihoods, drawn
