"""A correction that makes probabilities agree with what comes true, learnt on hidden clicks."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..kernels.footrule.personal import TIE_BREAK

N_KNOTS = 40  # of a monotone map, at most; for each, 25 hits or more
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Correction:
    """Logistic in some features, then a monotone map for the best items of a user, and another for
    the rest: to be the best of one's list is news that the features do not tell in full.

    The features of an item have coefficients of 0 or more, so that what is better in all of them is
    never said to be less likely; those of the user, at the end, have any.

    Attributes
    ----------
    coefficients : array
        One for each feature, then the constant.
    knots, values : arrays
        The maps, linear between their knots, from the logistic scale to probabilities:
        ``knots[0]`` for the best items, ``knots[1]`` for the rest.
    """

    coefficients: Floats
    knots: Floats
    values: Floats

    def apply(self, features: Floats, unseen: NDArray[np.bool_], n_best: int) -> Floats:
        """Probabilities from ``features[user, item, feature]``; 0 for what is not `unseen`."""
        scale = np.where(unseen, features @ self.coefficients[:-1] + self.coefficients[-1], -np.inf)
        best = best_of(scale, n_best) & unseen
        chances = np.interp(scale, self.knots[0], self.values[0])
        rest = np.interp(scale, self.knots[1], self.values[1])
        lowest = np.where(best, chances, 1.0).min(axis=1, keepdims=True)
        flat = np.where(best, chances, np.minimum(rest, lowest))
        return np.minimum(flat + TIE_BREAK / (1 + np.exp(-scale)), 1.0) * unseen


def best_of(scale: Floats, n_best: int) -> NDArray[np.bool_]:
    """Which items are among the best of their row."""
    best = np.zeros(scale.shape, dtype=bool)
    if n_best >= scale.shape[1]:
        return ~best
    top = np.argpartition(-scale, n_best - 1, axis=1)[:, :n_best]
    best[np.arange(len(scale))[:, None], top] = True
    return best


def learn_correction(
    tables: Floats,
    table_hits: NDArray[np.bool_],
    unseen: NDArray[np.bool_],
    user_weights: Floats,
    n_best: int,
    n_free: int,
) -> Correction:
    """Learn a correction from ``tables[user, item, feature]`` and whether each came true.

    Of items that are `unseen`; a row counts as `user_weights[user]` people; the last `n_free`
    features may have coefficients of any sign.

    Maximum likelihood, with a weak pull towards 0 that keeps it finite; then the map by isotonic
    regression, in bins of equal numbers of hits.
    """
    from scipy.optimize import minimize

    features, hits = tables[unseen], table_hits[unseen]
    n_cases, n_features = features.shape
    table_weights = np.broadcast_to(user_weights[:, None], unseen.shape)
    weights = table_weights[unseen]
    centers, spread = features.mean(axis=0), features.std(axis=0) + 1e-9
    scaled = np.column_stack([(features - centers) / spread, np.ones(n_cases)])
    target = hits.astype(np.float64)

    def loss(values: Floats) -> tuple[float, Floats]:
        scale = scaled @ values
        chances = 1 / (1 + np.exp(-scale))
        fit = weights @ (np.logaddexp(0, scale) - target * scale) + 0.5 * (values[:-1] ** 2).sum()
        slope = scaled.T @ (weights * (chances - target))
        slope[:-1] += values[:-1]
        return float(fit), slope

    bounds = [(0.0, None)] * (n_features - n_free) + [(None, None)] * (n_free + 1)
    start = np.zeros(n_features + 1)
    start[-1] = np.log((weights @ target + 0.5) / (weights @ (1 - target) + 0.5))
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    slopes = found[:-1] / spread
    coefficients = np.append(slopes, found[-1] - slopes @ centers)
    scale = np.where(unseen, tables @ slopes + coefficients[-1], -np.inf)
    best = best_of(scale, n_best) & unseen
    maps = [
        monotone_map(scale[mask], table_hits[mask].astype(np.float64), table_weights[mask])
        for mask in (best, unseen & ~best if (unseen & ~best).any() else best)
    ]
    width = max(len(knots) for knots, _ in maps)
    filled = [[np.pad(row, (0, width - len(row)), "edge") for row in part] for part in maps]
    return Correction(coefficients, *np.array(filled).transpose(1, 0, 2))


def monotone_map(scale: Floats, target: Floats, case_weights: Floats) -> tuple[Floats, Floats]:
    """Observed frequencies as a rising function of a scale: its knots, and values there."""
    from scipy.optimize import isotonic_regression

    order = np.argsort(scale, kind="stable")
    scale, target, case_weights = scale[order], target[order], case_weights[order]
    n_hits = np.cumsum(target * case_weights)
    n_knots = int(min(N_KNOTS, max(n_hits[-1] // 25, 2)))
    edges = np.searchsorted(n_hits, np.linspace(0, n_hits[-1], n_knots + 1)[1:-1], "right")
    parts = [part for part in np.split(np.arange(len(scale)), np.unique(edges)) if len(part)]
    weights = np.array([case_weights[part].sum() for part in parts])
    # a pinch of the overall frequency keeps bins of few cases away from 0 and 1
    overall = n_hits[-1] / weights.sum()
    sums = np.array([case_weights[part] @ target[part] for part in parts])
    means = (sums + overall) / (weights + 1)
    knots = np.array([case_weights[part] @ scale[part] for part in parts]) / weights
    return knots, np.asarray(isotonic_regression(means, weights=weights).x)
