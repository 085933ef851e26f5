"""The prior of alpha: a gamma that knows how many items there are."""

import math
from typing import NamedTuple

import numpy as np

from ..rankings import MAX_ALPHA

LOWEST_ALPHA = 1e-12  # the mass below it is left out: 1e-15 of FLAT, less of the default


class AlphaPrior(NamedTuple):
    """A gamma distribution."""

    shape: float
    rate: float

    def log_density(self, alpha: float) -> float:
        """Log density of an alpha above 0, up to `log_constant`."""
        return (self.shape - 1) * math.log(alpha) - self.rate * alpha

    @property
    def log_constant(self) -> float:
        """What makes the density integrate to 1."""
        return self.shape * math.log(self.rate) - math.lgamma(self.shape)

    def draw(self, rng: np.random.Generator) -> float:
        """An alpha."""
        drawn = rng.gamma(self.shape) / self.rate
        return float(min(max(drawn, LOWEST_ALPHA), MAX_ALPHA))


FLAT = AlphaPrior(1.0, 0.001)  # nearly flat, exponential: that of BayesMallows


def default_prior(n_items: int) -> AlphaPrior:
    """Shape 2, and a mean of ``40 n / (n + 40)``: about n for few items, at most 40 for many.

    What an alpha means depends on the items: users are a tenth as far from the consensus as by
    probability at 6 with 5 items, at 15 with 20, at 27 with 200, at 28 with 1,000. So this prior
    expects about the same agreement whatever their number; see experiments/alpha_prior.py.

    >>> [round(shape / rate, 1) for shape, rate in map(default_prior, (5, 20, 200, 1000))]
    [4.4, 13.3, 33.3, 38.5]
    """
    return AlphaPrior(2.0, 2 / n_items + 1 / 20)
