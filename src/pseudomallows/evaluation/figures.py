"""Figures of lists of recommendations, with their standard errors over users."""

import numpy as np
from numpy.typing import NDArray

from ..preferences import Clicks
from .result import Calibration, Figure, Scores


def hits_of(items: NDArray[np.int64], right: Clicks) -> NDArray[np.float64]:
    """1 where a recommendation was right, 0 where not, NaN where there is none: ``[user, place]``.

    >>> right = Clicks.from_clicks([[1, 0, 1], [0, 1, 0]])
    >>> hits_of(np.array([[2, 1], [0, -1]]), right)
    array([[ 1.,  0.],
           [ 0., nan]])
    """
    cells = right.owners * right.n_items + right.codes
    wanted = np.arange(len(items))[:, None] * right.n_items + items
    places = np.minimum(np.searchsorted(cells, wanted), len(cells) - 1)
    return np.where(items >= 0, (cells[places] == wanted).astype(np.float64), np.nan)


def scores_of(items: NDArray[np.int64], right: Clicks) -> Scores:
    """All figures of the recommendations to users who have something right each."""
    hits, k = np.nan_to_num(hits_of(items, right)), items.shape[1]
    sizes = right.n_clicks
    gains = 1 / np.log2(np.arange(2, k + 2))
    ideal = np.concatenate([[0.0], np.cumsum(gains)])[np.minimum(sizes, k)]
    first = np.where(hits.any(axis=1), 1 / (hits.argmax(axis=1) + 1), 0.0)
    return Scores(
        accuracy=_mean(hits.sum(axis=1) / k),
        recall=_mean(hits.sum(axis=1) / np.maximum(sizes, 1)),
        ndcg=_mean(hits @ gains / np.maximum(ideal, gains[0])),
        mrr=_mean(first),
        coverage=_coverage(items, right.n_items),
    )


def _mean(values: NDArray[np.float64]) -> Figure:
    error = float("nan")  # of one user
    if len(values) > 1:
        error = float(values.std(ddof=1) / np.sqrt(len(values)))
    return Figure(float(values.mean()), error)


def _coverage(items: NDArray[np.int64], n_items: int) -> Figure:
    """The share of the items that somebody gets; its error by leaving out one user at a time, who
    takes away the items that nobody else gets."""
    counts = np.bincount(items[items >= 0], minlength=n_items)
    alone = ((items >= 0) & (counts[np.maximum(items, 0)] == 1)).sum(axis=1) / n_items
    n_users = len(items)
    error = float("nan")
    if n_users > 1:
        error = float(np.sqrt((n_users - 1) * alone.var()))
    return Figure(float((counts > 0).mean()), error)


def calibrate(
    probabilities: NDArray[np.float64], hits: NDArray[np.float64], n_bins: int = 10
) -> Calibration:
    """Stated against observed, in bins of equal width.

    >>> calibrate(np.array([0.1, 0.1, 0.9, 0.9]), np.array([0.0, 0.0, 1.0, 1.0]), 2).error
    0.09999999999999999
    """
    bins = np.minimum((probabilities * n_bins).astype(np.int64), n_bins - 1)
    counts = np.bincount(bins, minlength=n_bins)
    used = counts > 0
    stated = np.bincount(bins, probabilities, n_bins)[used] / counts[used]
    observed = np.bincount(bins, hits, n_bins)[used] / counts[used]
    return Calibration(stated, observed, counts[used])
