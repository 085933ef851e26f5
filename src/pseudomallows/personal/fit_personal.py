"""Method "personal": an order of each user's own, learnt from the user's clicks."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import distances
from ..data.blocks import Clicks
from ..data.more_clicks import check_held_out, read_later
from ..data.preferences import Preferences, check_informative
from ..engines.executors import Executor, Threads
from ..engines.memory import DENSE_ITEMS
from ..laws.own_laws import OWN_LAWS
from ..laws.shards import ShardedClicks
from .click_shards import RemoteClicks
from .learner import Learner, PersonalOptions
from .next_clicks import split_inside
from .personal_fit import PersonalFit
from .weigh import silent, why_not

N_REPORTS = 3  # the steps of `Learner.learn`
Floats = NDArray[np.float64]


def _check_call(prefs: Preferences, distance: str) -> Clicks:
    """The clicks to learn from; refuse other data, and what has no meaning for this method."""
    if not isinstance(prefs, Clicks):
        raise TypeError("method='personal' needs clicks (pm.Preferences.from_clicks)")
    if distance not in OWN_LAWS:
        raise ValueError(
            f"method='personal' needs distance='footrule' or 'kendall', got {distance!r}"
        )
    check_informative(prefs.is_informative)
    _check_size(prefs.n_items, distance)
    return prefs


def _check_size(n_items: int, distance: str) -> None:
    if n_items > DENSE_ITEMS and distance == "footrule":
        raise ValueError(
            f"with more than {DENSE_ITEMS:,} items method='personal' needs distance='kendall', its "
            f"default there, since the footrule's tables would grow with items x items; got "
            f"'footrule' and {n_items:,} items: leave distance out"
        )


def _open_parts(clicks: ShardedClicks, how: PersonalOptions) -> RemoteClicks:
    """The clicks of parts, which stay with the workers; refuse what needs all of them here."""
    if clicks.n_items > DENSE_ITEMS:
        raise ValueError(
            f"method='personal' learns from parts with at most {DENSE_ITEMS:,} items, got "
            f"{clicks.n_items:,}: read them into memory with pm.read(folder)"
        )
    if how.held_out is not None:
        raise ValueError(
            "method='personal' cannot learn from parts with held_out=, since the users' names stay "
            "with the workers: leave it out, or read the parts into memory with pm.read(folder)"
        )
    remote = RemoteClicks.of_parts(clicks)
    why = "one regression, as was asked for" if how.is_single else why_not(remote)
    if why is not None and how.ridge is None:
        raise ValueError(
            f"method='personal' has no penalty for a regression from parts ({why}): give ridge=, "
            "such as ridge=0.3, or read the parts into memory with pm.read(folder)"
        )
    return remote


def fit_personal(
    prefs: Preferences,
    alpha: float | None,
    distance: str,
    options: dict[str, Any],  # of `PersonalOptions`, checked
    rng: np.random.Generator,
    executor: Executor | None,
    progress: Callable[[int, int], None],
    old: PersonalFit | None = None,
    scores: Callable[[Clicks], Floats] | None = None,
    can_score_again: bool = True,
) -> PersonalFit:
    """Learn an order of each user's own; from an `old` fit of most of these clicks, keep the blend
    and begin with its weights. If `progress` has a `say`, it is told what is being done.

    `scores` makes the scores of clicks, if they come from elsewhere; unless it can do so again
    for fewer clicks, none are hidden."""
    distance = distances.get(distance).name
    clicks = _check_call(prefs, distance)
    how = PersonalOptions(**options)
    if isinstance(clicks, ShardedClicks):
        clicks = _open_parts(clicks, how)
    if how.held_out is not None:
        how = replace(how, held_out=check_held_out(read_later(how.held_out, clicks), clicks))
    calibration = how.calibration(clicks) if can_score_again else None
    inside = None
    if calibration is not None:
        inside = split_inside(clicks, calibration, rng, how.calibrate is not True)
        calibration = None if inside is None else inside.how
    steps = iter(range(1, N_REPORTS + 1))

    def report() -> None:
        progress(next(steps), N_REPORTS)

    learner = Learner(clicks, how, alpha, distance, rng, executor or Threads(), scores)
    learner.say = getattr(progress, "say", silent)
    if old is not None:
        learner.keep_blend(old)
    model = learner.learn(inside, report)
    calibration = None if model.correction is None else calibration
    more = {"order": None, "calibration": calibration} | learner.scores_settings()
    settings = {
        "method": "personal",
        "distance": distance,
        "alpha": model.mean_alpha,
        "n_users": int(clicks.weights[clicks.is_informative].sum()),
        "kind": clicks.kind,
        "is_full": False,
        "options": how.settings() | more,
    }
    kept = clicks.kept()
    return PersonalFit(
        **{each.name: getattr(model, each.name) for each in fields(model)},
        items=kept.items,
        users=kept.users,
        data=kept,
        settings=settings,
    )
