"""How likely is what is known of each user, given the consensus and alpha: exact, for any data."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import distances
from ..distances.tallies import Ranking
from ..engines.executors import Threads, blocks
from ..kernels.click_rows import slice_clicks
from ..preferences import Clicks, Preferences, check_clicks, check_preferences
from ..rankings import check_alpha
from .bucket_orders import has_buckets_only, log_likelihoods_of_buckets
from .clicks import log_likelihoods_of_clicks
from .kept_rankings import as_rankings, log_likelihoods_by_hamming
from .population import check_consensus
from .rankings import log_likelihoods_of_full, log_likelihoods_of_rankings

# How likely the rows of a slice are, by the kind of data and the distance
LIKELIHOODS: dict[tuple[str, str], Callable[[Any, slice, Ranking, float], NDArray[np.float64]]] = {
    ("rankings", "footrule"): lambda prefs, rows, consensus, alpha: log_likelihoods_of_rankings(
        prefs.rankings[rows], consensus, alpha
    ),
    ("clicks", "footrule"): lambda prefs, rows, consensus, alpha: log_likelihoods_of_clicks(
        slice_clicks(prefs, rows), consensus, alpha
    ),
    ("rankings", "kendall"): lambda prefs, rows, consensus, alpha: log_likelihoods_of_buckets(
        prefs.rankings[rows], consensus, alpha
    ),
    ("clicks", "kendall"): lambda prefs, rows, consensus, alpha: log_likelihoods_of_buckets(
        as_rankings(prefs.take(np.arange(rows.start, rows.stop))).rankings, consensus, alpha
    ),
    ("rankings", "hamming"): lambda prefs, rows, consensus, alpha: log_likelihoods_by_hamming(
        prefs.rankings[rows], consensus, alpha
    ),
    ("clicks", "hamming"): lambda prefs, rows, consensus, alpha: log_likelihoods_by_hamming(
        as_rankings(prefs.take(np.arange(rows.start, rows.stop))).rankings, consensus, alpha
    ),
}


def log_likelihood(
    prefs: Preferences, consensus: ArrayLike, alpha: float, distance: str = "footrule"
) -> NDArray[np.float64]:
    """Log probability of what is known of each user, given the consensus and alpha; exact.

    The sum over all full rankings that agree with it, by matchings on a line, in time n_items^2 a
    user. Of clicks, their number is given. Row weights are not used: a value is that of one person.

    >>> rankings = [[1, 2, 3], [1, 0, 0], [1, 1, 3], [0, 0, 0]]  # the third has a tie
    >>> prefs = Preferences.from_rankings(rankings)
    >>> np.exp(log_likelihood(prefs, [1, 2, 3], alpha=0))
    array([0.16666667, 0.33333333, 0.33333333, 1.        ])
    >>> prefs = Preferences.from_clicks([[1, 0, 0], [0, 0, 1], [0, 0, 0]])
    >>> np.exp(log_likelihood(prefs, [1, 2, 3], alpha=0))
    array([0.33333333, 0.33333333, 1.        ])
    """
    check_preferences(prefs)
    center, alpha = check_consensus(consensus, prefs), check_alpha(alpha)
    kind = distances.get(distance)
    if prefs.is_full:
        full: Any = prefs
        return log_likelihoods_of_full(full.rankings, center, alpha, kind)
    of_rows = LIKELIHOODS.get((prefs.kind, kind.name))
    if of_rows is None or not _is_summed(prefs, kind.name):
        raise ValueError(
            f"the exact likelihood of {prefs.shape_words} by {kind.name} is not known: use "
            "distance='footrule', or 'hamming'; by Kendall's it is known but for gaps"
        )
    parts = Threads().map(lambda rows: of_rows(prefs, rows, center, alpha), blocks(prefs.n_users))
    return np.concatenate(list(parts))


def _is_summed(prefs: Any, distance: str) -> bool:
    """Has the sum over full rankings a closed form? By Kendall's distance not with gaps."""
    has_gaps = distance == "kendall" and prefs.kind == "rankings"
    return not has_gaps or has_buckets_only(prefs.rankings)


def click_log_likelihood(prefs: Clicks, consensus: ArrayLike, alpha: float) -> NDArray[np.float64]:
    """Log probability of each user's clicks, given their number: :func:`log_likelihood` of clicks.

    >>> prefs = Preferences.from_clicks([[1, 0, 0], [0, 0, 1], [0, 0, 0]])
    >>> np.exp(click_log_likelihood(prefs, [1, 2, 3], alpha=0))
    array([0.33333333, 0.33333333, 1.        ])
    """
    return log_likelihood(check_clicks(prefs), consensus, alpha)
