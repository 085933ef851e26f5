"""How likely is what is known of each user, given the consensus and alpha: exact, for any data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import distances
from ..preferences import Clicks, Preferences, check_clicks, check_preferences
from ..rankings import check_alpha
from .law import Clusters, check_consensus
from .registry import find_law, make_law
from .votes import VoteLaw, vote_log_likelihoods


def log_likelihood(
    prefs: Preferences, consensus: ArrayLike, alpha: float, distance: str = "footrule"
) -> NDArray[np.float64]:
    """Log probability of what is known of each user, given the consensus and alpha; exact.

    The sum over all full rankings that agree with it, by matchings on a line, in time n_items^2 a
    user; for clicks under Kendall's distance in closed form, in time that goes with the clicks. Of
    clicks, their number is given. Row weights are not used: a value is that of one person.

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
    name = distances.get(distance).name
    kind, data = find_law(prefs, name), cast(Any, prefs)
    if kind is None:
        known = "'footrule', or 'hamming'; by Kendall's it is known but for gaps"
        known = "'footrule' or 'kendall'" if prefs.kind == "clicks" else known
        if prefs.comparisons() is not None:
            known = "'kendall', with one comparison a person"
        raise ValueError(
            f"the exact likelihood of {prefs.shape_words} by {name} is not known: use "
            f"distance={known}"
        )
    if kind is VoteLaw:  # a tie is informative of alpha alone, and has a likelihood too
        return vote_log_likelihoods(data, center, alpha)
    each = replace(prefs, weights=np.ones(prefs.n_users, dtype=np.int64))
    values, says = np.zeros(prefs.n_users), each.is_informative
    if says.any():
        law = make_law(each, None, name)
        values[says] = law.scores(Clusters(center[None], np.array([alpha])), np.ones(1))
    return values


def click_log_likelihood(prefs: Clicks, consensus: ArrayLike, alpha: float) -> NDArray[np.float64]:
    """Log probability of each user's clicks, given their number: :func:`log_likelihood` of clicks.

    >>> prefs = Preferences.from_clicks([[1, 0, 0], [0, 0, 1], [0, 0, 0]])
    >>> np.exp(click_log_likelihood(prefs, [1, 2, 3], alpha=0))
    array([0.33333333, 0.33333333, 1.        ])
    """
    return log_likelihood(check_clicks(prefs), consensus, alpha)
