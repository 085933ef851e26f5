"""A correction that makes probabilities agree with what comes true, learnt on hidden clicks."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

N_KNOTS = 40  # of the monotone map
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Correction:
    """Logistic in some features, then a monotone map.

    The coefficients of all features but the last are 0 or more, so that what is better in all of
    them is never said to be less likely.

    Attributes
    ----------
    coefficients : array
        One for each feature, then the constant.
    knots, values : arrays
        The monotone map, linear between its knots, from the logistic scale to probabilities.
    """

    coefficients: Floats
    knots: Floats
    values: Floats

    def apply(self, features: Floats) -> Floats:
        """Probabilities from ``features[..., feature]``."""
        scale = features @ self.coefficients[:-1] + self.coefficients[-1]
        return np.interp(scale, self.knots, self.values)


def learn_correction(features: Floats, hits: NDArray[np.bool_]) -> Correction:
    """Learn a correction from ``features[case, feature]`` and whether each case came true.

    Maximum likelihood, with a weak pull towards 0 that keeps it finite; then the map by isotonic
    regression, in bins of equal numbers of hits.
    """
    from scipy.optimize import minimize

    n_cases, n_features = features.shape
    centers, spread = features.mean(axis=0), features.std(axis=0) + 1e-9
    scaled = np.column_stack([(features - centers) / spread, np.ones(n_cases)])
    target = hits.astype(np.float64)

    def loss(values: Floats) -> tuple[float, Floats]:
        scale = scaled @ values
        chances = 1 / (1 + np.exp(-scale))
        fit = (np.logaddexp(0, scale) - target * scale).sum() + 0.5 * (values[:-1] ** 2).sum()
        slope = scaled.T @ (chances - target)
        slope[:-1] += values[:-1]
        return float(fit), slope

    bounds = [(0.0, None)] * (n_features - 1) + [(None, None)] * 2
    start = np.zeros(n_features + 1)
    start[-1] = np.log((target.sum() + 0.5) / (n_cases - target.sum() + 0.5))
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    slopes = found[:-1] / spread
    coefficients = np.append(slopes, found[-1] - slopes @ centers)
    knots, values = monotone_map(features @ slopes + coefficients[-1], target)
    return Correction(coefficients, knots, values)


def monotone_map(scale: Floats, target: Floats) -> tuple[Floats, Floats]:
    """Observed frequencies as a rising function of a scale: its knots, and values there."""
    from scipy.optimize import isotonic_regression

    order = np.argsort(scale, kind="stable")
    scale, target = scale[order], target[order]
    n_hits = np.cumsum(target)
    edges = np.searchsorted(n_hits, np.linspace(0, n_hits[-1], N_KNOTS + 1)[1:-1], "right")
    parts = [part for part in np.split(np.arange(len(scale)), np.unique(edges)) if len(part)]
    weights = np.array([len(part) for part in parts], dtype=np.float64)
    # a pinch of the overall frequency keeps bins of few cases away from 0 and 1
    overall = target.mean()
    means = np.array([(target[part].sum() + overall) / (len(part) + 1) for part in parts])
    knots = np.array([scale[part].mean() for part in parts])
    return knots, np.asarray(isotonic_regression(means, weights=weights).x)
