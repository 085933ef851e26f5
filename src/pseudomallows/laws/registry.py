"""Which law for which data: (kind of data, distance) to the class that says how probable they are;
and how likely these are by it. Users known in part without a law of their own have latent rankings
that a chain keeps.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import distances
from ..data.blocks import Clicks, check_clicks
from ..data.preferences import Preferences, check_preferences
from ..engines.executors import Executor, is_remote
from ..rankings import check_alpha, check_ranking
from .augmented import AugmentedLaw
from .block_laws import ClickBlocks, RankedBlocks
from .error_rates import Errors
from .full import FullLaw, has_buckets_only
from .kendall_clicks import KendallClicks
from .law import Clusters, Floats, Law
from .shards import ShardedClicks, send_clicks
from .votes import VoteLaw, vote_log_likelihoods

CLICK_LAWS = {"footrule": ClickBlocks, "kendall": KendallClicks}


def make_law(
    prefs: Preferences,
    executor: Executor | None = None,
    distance: str = "footrule",
    errors: Errors | None = None,
    gaps: str = "auto",
) -> Law:
    """The law of some users, here or on workers; `errors` says how often comparisons are wrong."""
    check_preferences(prefs)
    kind = distances.get(distance)
    data: Any = prefs
    made = find_law(prefs, kind.name)
    if is_remote(executor):
        if prefs.kind != "clicks" or made is None:
            known = ", ".join(f"clicks by {name}" for name in CLICK_LAWS)
            raise TypeError(
                f"Dask workers run fits of {known}, got {prefs.kind} by {distance}: leave executor "
                "out"
            )
        data = prefs if isinstance(prefs, ShardedClicks) else send_clicks(data, executor)
    if made is None:
        return AugmentedLaw(prefs, executor, kind, errors)
    if made is VoteLaw:
        return VoteLaw(data, executor, gaps)
    return made(data, executor) if prefs.kind == "clicks" else made(data, executor, kind)


def find_law(prefs: Preferences, distance: str) -> Any:
    """The law whose likelihood of these data is exact, if there is one."""
    if prefs.kind == "rankings":
        rankings: Any = prefs
        if prefs.is_full or (distance == "kendall" and has_buckets_only(rankings.rankings)):
            return FullLaw
        return RankedBlocks if distance in ("footrule", "hamming") else None
    if prefs.kind == "clicks":
        return CLICK_LAWS.get(distance)
    return VoteLaw if prefs.is_vote and distance == "kendall" else None


def log_likelihood(
    prefs: Preferences, consensus: ArrayLike, alpha: float, distance: str = "footrule"
) -> Floats:
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
    center, alpha = check_ranking(consensus, "consensus"), check_alpha(alpha)
    if len(center) != prefs.n_items:
        raise ValueError(f"consensus must have {prefs.n_items} items, got {len(center)}")
    name = distances.get(distance).name
    kind = find_law(prefs, name)
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
        votes: Any = prefs
        return vote_log_likelihoods(votes, center, alpha)
    each = replace(prefs, weights=np.ones(prefs.n_users, dtype=np.int64))
    values, says = np.zeros(prefs.n_users), each.is_informative
    if says.any():
        law = make_law(each, None, name)
        values[says] = law.scores(Clusters(center[None], np.array([alpha])), np.ones(1))
    return values


def click_log_likelihood(prefs: Clicks, consensus: ArrayLike, alpha: float) -> Floats:
    """Log probability of each user's clicks, given their number: :func:`log_likelihood` of clicks.

    >>> prefs = Preferences.from_clicks([[1, 0, 0], [0, 0, 1], [0, 0, 0]])
    >>> np.exp(click_log_likelihood(prefs, [1, 2, 3], alpha=0))
    array([0.33333333, 0.33333333, 1.        ])
    """
    return log_likelihood(check_clicks(prefs), consensus, alpha)
