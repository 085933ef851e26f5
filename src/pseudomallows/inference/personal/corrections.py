"""How a correction of probabilities is learnt from clicks that were hidden."""

import numpy as np
from numpy.typing import NDArray

from ...posteriors.corrections import Correction, best_of

N_KNOTS = 40  # of a monotone map, at most; for each, 25 hits or more
Floats = NDArray[np.float64]


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
