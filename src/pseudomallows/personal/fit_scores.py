"""fit_scores: probabilities for scores from elsewhere."""

import copy
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data.blocks import Clicks, check_clicks, clicks_matrix
from ..engines.executors import Executor, check_local
from ..posterior.names import check_calibrate
from ..posterior.posterior import made_by
from ..rankings import as_rng, check_alpha
from .fit_personal import fit_personal
from .personal_fit import PersonalFit

MAX_SCORE = 1e100  # beyond it, sums of squares overflow
Floats = NDArray[np.float64]


def fit_scores(
    prefs: Clicks,
    scores: Any,
    alpha: float | None = None,
    *,
    held_out: Any = None,
    calibrate: bool | str | float = True,
    rng: np.random.Generator | int | None = None,
    executor: Executor | None = None,
) -> PersonalFit:
    """Learn how far scores from elsewhere can be trusted, and so what their probabilities are.

    The ranking of a user's scores is the user's consensus, as with `fit(prefs, "personal")`, which
    learns the scores itself.

    Parameters
    ----------
    prefs : Clicks
        The users' clicks.
    scores : array, function or model
        Of each user and item, (n_users, n_items); or a function that learns them from a sparse
        matrix of clicks; or a model that is not fitted, such as those of `implicit`, with a `fit`
        for such a matrix and, after it, `user_factors` and `item_factors`, or a `similarity` of
        items. Functions and models learn again without hidden clicks, so that the probabilities
        can be corrected by these. Arrays cannot, and look surer than they are if they use a user's
        click on the item itself: give `held_out` with them.
    alpha : float, optional
        Concentration of all users; default: learnt.
    held_out, calibrate, rng, executor : optional
        As for :func:`fit` by method "personal".

    Returns
    -------
    PersonalFit
        For the users of the scores alone: new ones have none.

    Examples
    --------
    >>> import pseudomallows as pm
    >>> clicks = pm.simulate_clicks(100, 8, 5, 3, rng=1).preferences
    >>> popularity = np.tile(clicks.item_counts(), (100, 1))
    >>> fit_scores(clicks, popularity, rng=1).n_users
    100
    """
    started, clicks = time.perf_counter(), check_clicks(prefs)
    check_local(executor, "fit_scores")
    fitted = fit_personal(
        clicks,
        None if alpha is None else check_alpha(alpha),
        {"held_out": held_out, "calibrate": check_calibrate(calibrate, "calibrate")},
        as_rng(rng),
        executor,
        lambda done, of: None,
        scores=_scorer(scores),
        can_score_again=callable(scores) or hasattr(scores, "fit"),
    )
    named = {"alpha": alpha, "held_out": held_out}
    named["calibrate"] = None if calibrate is True else calibrate
    given = [*(name for name, value in named.items() if value is not None), "scores"]
    return replace(
        fitted, settings=fitted.settings | {"given": given} | made_by(rng, started, clicks)
    )


def _scorer(scores: Any) -> Callable[[Clicks], Floats]:
    """From clicks to checked scores, with mean 0 and deviation 1."""

    def score(clicks: Clicks) -> Floats:
        matrix = clicks_matrix(clicks.starts, clicks.codes, clicks.n_items)
        if hasattr(scores, "fit"):
            table = _scores_of_model(scores, matrix)
        else:
            table = scores(matrix) if callable(scores) else scores
        values = _check_scores(table, clicks)
        return np.asarray((values - values.mean()) / values.std())

    return score


def _scores_of_model(model: Any, matrix: Any) -> ArrayLike:
    """Those of a copy of the model, fitted to these clicks."""
    fitted, single = copy.deepcopy(model), matrix.tocsr().astype(np.float32)
    fitted.fit(single, show_progress=False)
    if hasattr(fitted, "user_factors"):
        return np.asarray(fitted.user_factors) @ np.asarray(fitted.item_factors).T
    return np.asarray((single @ fitted.similarity).todense())


def _check_scores(scores: Any, clicks: Clicks) -> Floats:
    scores = scores.toarray() if hasattr(scores, "toarray") else scores
    try:
        values = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"scores must be an array of numbers, users x items: {error}") from None
    if values.shape != (clicks.n_users, clicks.n_items):
        raise ValueError(
            f"scores must have {clicks.n_users} users and {clicks.n_items} items, got an array of "
            f"shape {values.shape}"
        )
    wrong = ~np.isfinite(values)
    if wrong.any():
        user, item = np.argwhere(wrong)[0]
        raise ValueError(
            f"scores must be finite numbers, got {values[user, item]} for user {user} and item "
            f"{item}; {int(wrong.sum())} of {values.size} are wrong"
        )
    if np.ptp(values) == 0:
        raise ValueError(f"scores must not be all the same, got {values.flat[0]} everywhere")
    if np.abs(values).max() > MAX_SCORE:
        raise ValueError(f"scores must be at most 1e100, got {np.abs(values).max():.3g}")
    return values
