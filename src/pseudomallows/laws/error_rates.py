"""How often people are wrong when they compare two items: what a chain holds of it, and moves.

A statement is wrong if the user's ranking has the two items the other way round. Without errors
none is; "bernoulli" gives all the same probability theta below 1/2; "logistic" makes those about
items far apart in the ranking rarer than those about neighbours.
"""

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..kernels.latent.statements import NEVER, ErrorLaw

THETA_PRIOR = (1.0, 1.0)  # of a Beta cut off at 1/2: every theta below is as likely
CERTAINTY_MEAN = 5.0  # of the exponential prior of both: at 5, one answer of 150 is wrong
# Of the random walk of the log certainties in a sweep: 0.4 is best, 2.4 / sqrt(2) deviations, where
# a certainty is known to a quarter; ten such steps, of efficiency 0.3 / 2, are worth one or two
# independent draws (Gelman, Roberts and Gilks 1996).
N_STEPS, STEP = 10, 0.4
LEAST_CERTAINTY, MOST_CERTAINTY = 1e-6, 500.0  # as good as none and as sure, without overflow
Counts = NDArray[np.int64]


class Errors(ABC):
    """The probability of wrong statements, as a chain has it."""

    name: ClassVar[str]
    names: ClassVar[tuple[str, ...]]  # of the values

    def __init__(self, n_items: int, prior: tuple[float, float] = THETA_PRIOR):
        self.n_items, self.prior = n_items, prior

    @abstractmethod
    def first_values(self) -> NDArray[np.float64]:
        """Where a chain begins."""

    @abstractmethod
    def law(self, values: NDArray[np.float64]) -> ErrorLaw:
        """The log probabilities of right and wrong statements."""

    @abstractmethod
    def moved(
        self, values: NDArray[np.float64], counts: Counts, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """New values, given ``counts[apart, is_wrong]`` statements."""


class NoErrors(Errors):
    """All statements are right."""

    name, names = "none", ()

    def first_values(self) -> NDArray[np.float64]:
        return np.empty(0)

    def law(self, values: NDArray[np.float64]) -> ErrorLaw:
        right = np.zeros(self.n_items)
        return ErrorLaw(right, np.full(self.n_items, NEVER), is_strict=True, is_even=True)

    def moved(
        self, values: NDArray[np.float64], counts: Counts, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        return values


class Bernoulli(Errors):
    """Each statement is wrong with probability theta, which is below 1/2."""

    name, names = "bernoulli", ("theta",)

    def first_values(self) -> NDArray[np.float64]:
        return np.array([0.1])

    def law(self, values: NDArray[np.float64]) -> ErrorLaw:
        theta, ones = float(values[0]), np.ones(self.n_items)
        wrong, right = math.log(theta), math.log1p(-theta)
        return ErrorLaw(right * ones, wrong * ones, is_strict=False, is_even=True)

    def moved(
        self, values: NDArray[np.float64], counts: Counts, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Draw theta: a Beta, cut off at 1/2."""
        n_right, n_wrong = counts.sum(axis=0).tolist()
        theta = cut_beta(self.prior[0] + n_wrong, self.prior[1] + n_right, rng.random())
        return np.array([theta])


class Logistic(Errors):
    """The log odds of a right statement are `certainty` for neighbours, and `certainty` plus
    `certainty_apart` for the first and the last item; linear in the places between."""

    name, names = "logistic", ("certainty", "certainty_apart")

    def first_values(self) -> NDArray[np.float64]:
        """Neighbours are often ordered rightly, others nearly always."""
        return np.array([1.0, 5.0])

    def law(self, values: NDArray[np.float64]) -> ErrorLaw:
        wrong, right = self._logs(values)
        return ErrorLaw(right, wrong, is_strict=False, is_even=False)

    def _logs(self, values: NDArray[np.float64]) -> tuple[Any, Any]:
        """Log probabilities of wrong and of right statements, ``[apart]``."""
        between = (np.arange(self.n_items) - 1).clip(0) / max(self.n_items - 2, 1)
        odds = values[0] + values[1] * between
        return -np.logaddexp(0.0, odds), -np.logaddexp(0.0, -odds)

    def moved(
        self, values: NDArray[np.float64], counts: Counts, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Steps of a random walk on the logs of both certainties."""
        present = self._log_density(values, counts)
        for _ in range(N_STEPS):
            proposal = values * np.exp(STEP * rng.standard_normal(2))
            log_uniform = math.log(1.0 - rng.random())
            if not ((proposal > LEAST_CERTAINTY) & (proposal < MOST_CERTAINTY)).all():
                continue
            proposed = self._log_density(proposal, counts)
            if log_uniform < proposed - present:
                values, present = proposal, proposed
        return values

    def _log_density(self, values: NDArray[np.float64], counts: Counts) -> float:
        """Of the logs of the certainties, given the statements, up to a constant."""
        wrong, right = self._logs(values)
        log_likelihood = float(counts[:, 0] @ right + counts[:, 1] @ wrong)
        return log_likelihood - float(values.sum()) / CERTAINTY_MEAN + float(np.log(values).sum())


def cut_beta(one: float, other: float, uniform: float) -> float:
    """The quantile `uniform` of a Beta distribution that is cut off at 1/2, kept above 0.

    >>> round(cut_beta(1.0, 1.0, 0.5), 6)
    0.25
    """
    from scipy.special import betainc, betaincinv

    below = float(betainc(one, other, 0.5))
    if below < 1e-290:  # all of it lies above: next to the edge, where it falls off exponentially
        fall = max(2.0 * (one - other), 1.0)
        return max(0.5 + math.log(max(uniform, 1e-300)) / fall, 1e-12)
    return min(max(float(betaincinv(one, other, uniform * below)), 1e-12), 0.5)


MODELS: dict[str, type[Errors]] = {each.name: each for each in (NoErrors, Bernoulli, Logistic)}
