"""Method "personal": an order of each user's own, learnt from the user's clicks."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._warn import warn
from ..data.blocks import Clicks
from ..data.more_clicks import check_held_out, read_later
from ..data.preferences import Preferences, check_informative
from ..data.splits import times_of
from ..data.times import DAY
from ..engines.executors import Executor, Threads
from ..engines.memory import DENSE_ITEMS
from ..laws.shards import ShardedClicks
from ..posterior.diagnostics import NoTimesWarning
from .click_shards import RemoteClicks
from .learner import Learner, PersonalOptions
from .next_clicks import split_inside
from .personal_fit import PersonalFit
from .recency import are_dates
from .weigh import silent, why_not

N_REPORTS = 3  # the steps of `Learner.learn`
Floats = NDArray[np.float64]


def _check_call(prefs: Preferences) -> Clicks:
    """The clicks to learn from; refuse other data."""
    if not isinstance(prefs, Clicks):
        raise TypeError("method='personal' needs clicks (pm.Preferences.from_clicks)")
    check_informative(prefs.is_informative)
    return prefs


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
    clicks = _check_call(prefs)
    how = PersonalOptions(**options)
    if isinstance(clicks, ShardedClicks):
        clicks = _open_parts(clicks, how)
    if how.held_out is not None:
        how = replace(how, held_out=check_held_out(read_later(how.held_out, clicks), clicks))
    calibration = how.calibration(clicks) if can_score_again else None
    if calibration == "random" and how.calibrate is True and old is None:
        warn(NoTimesWarning())
    inside = None
    if calibration is not None:
        is_asked = isinstance(how.calibrate, str)
        inside = split_inside(clicks, calibration, rng, is_asked, how.later_share)
        calibration = None if inside is None else inside.how
    steps = iter(range(1, N_REPORTS + 1))

    def report() -> None:
        progress(next(steps), N_REPORTS)

    learner = Learner(clicks, how, alpha, rng, executor or Threads(), scores)
    learner.say = getattr(progress, "say", silent)
    if old is not None:
        learner.keep_blend(old)
    model = learner.learn(inside, report)
    calibration = None if model.correction is None else calibration
    more: dict[str, Any] = {"order": None, "calibration": calibration}
    if isinstance(how.calibrate, float):
        more["later_share"] = how.calibrate
    if calibration == "cut" and inside is not None and are_dates(times_of(clicks, "a date")):
        more["days_ahead"] = (float(np.nanmax(times_of(clicks, "a date"))) - inside.now) / DAY
    more |= learner.scores_settings()
    settings = {
        "method": "personal",
        "distance": "kendall",
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
