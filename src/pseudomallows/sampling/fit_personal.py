"""Method "personal": an order of each user's own, learnt from the user's clicks."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import distances
from ..engines.executors import Executor, Threads
from ..engines.memory import DENSE_ITEMS
from ..files.later import read_later
from ..laws.law import check_informative
from ..laws.own_laws import OWN_LAWS
from ..laws.shards import ShardedClicks
from ..personal.blend import silent, why_not
from ..personal.click_shards import RemoteClicks
from ..personal.learner import Learner
from ..personal.next_clicks import split_inside, usual_calibration
from ..posteriors.names import CALIBRATIONS
from ..posteriors.personal_fit import PersonalFit
from ..preferences import Clicks, Preferences
from ..preferences.more_clicks import check_held_out
from ..rankings import check_number
from .options import Case, Options, flag, one_of, option

N_REPORTS = 3  # the steps of `Learner.learn`
Floats = NDArray[np.float64]


def _check_calibrate(value: Any, name: str) -> bool | str:
    return one_of(*CALIBRATIONS)(value, name) if isinstance(value, str) else flag(value, name)


@dataclass(frozen=True, kw_only=True)
class Personal(Options):
    """Every user has a consensus of their own: the ranking of scores from their other clicks."""

    name: ClassVar[str] = "personal"
    words: ClassVar[str] = "an order of each user's own"

    ridge: float | None = option(
        None,
        "One regression with this penalty, in units of the mean number of clicks of an item; "
        "default: a blend of several scores.",
        check=check_number,
    )
    blend: bool = option(
        True,
        "Blend regressions, factors and popularity, with weights learnt on inner splits, where one "
        "click of each user is hidden. False, or for fewer than 10 items, or fewer than 50 users "
        "with two clicks: one regression, its penalty the best of a few. With more than 4,000 "
        "items each item is regressed on its 150 nearest ones.",
        check=flag,
    )
    held_out: Any = option(
        None,
        "Later clicks of some of the users, 50 or more: a file, a data frame, or another form of "
        "`Preferences.from_clicks`. "
        "The probabilities are corrected by what is observed of them, for all windows up to twice "
        "the largest number of them that 50 users have. "
        "Users and items that the fit does not have are left out, with a warning that counts them.",
    )
    calibrate: bool | str = option(
        True,
        "Without `held_out`: which clicks are hidden inside, to correct the probabilities by "
        'which of them were hits, before all is learnt again from all clicks. "last" (default with '
        'times): some clicks of each user, the last ones, for what comes next. "cut": all '
        'clicks after a date, for a model that will serve the future. "random" (default without '
        "times): any of them, so that a probability is that of a click like those that are there. "
        "False: no correction. With times, it is also learnt whether old clicks weigh less.",
        check=_check_calibrate,
    )
    with_consensus: bool = option(
        False,
        "Learn the consensus of all users too, by the matched law, so that the fit also answers "
        "what a posterior does: consensus, intervals, summary; method='auto' does so.",
        check=flag,
    )

    @property
    def is_single(self) -> bool:
        """Is one regression asked for?"""
        return self.ridge is not None or not self.blend

    def calibration(self, prefs: Clicks) -> str | None:
        """Which clicks are hidden inside to learn a correction from; None for no such way."""
        if not self.calibrate or self.held_out is not None:
            return None
        return usual_calibration(prefs) if self.calibrate is True else str(self.calibrate)

    def checked(self, prefs: Clicks) -> "Personal":
        """The same, what was given with it checked against the data."""
        if self.held_out is None:
            return self
        return replace(self, held_out=check_held_out(read_later(self.held_out, prefs), prefs))

    def settings(self) -> dict[str, Any]:
        """For the settings of a fit; data that was given is told by a mark only."""
        return {
            "blend": self.blend,
            "ridge_given": self.ridge is not None,
            "calibrate": bool(self.calibrate),
            "held_out": self.held_out is not None,
            "with_consensus": self.with_consensus,
        }


def _check_call(prefs: Preferences, wanted: dict[str, Any]) -> Clicks:
    """The clicks to learn from; refuse other data, and what has no meaning for this method."""
    if not isinstance(prefs, Clicks):
        raise TypeError("method='personal' needs clicks (pm.Preferences.from_clicks)")
    if wanted["n_draws"] is not None or wanted["n_clusters"] != 1:
        raise ValueError(
            "method='personal' has neither draws nor clusters: leave out n_draws and n_clusters, "
            "or give method='mcmc'"
        )
    if distances.get(wanted["distance"]).name not in OWN_LAWS:
        raise ValueError(
            f"method='personal' needs distance='footrule' or 'kendall', got {wanted['distance']!r}"
        )
    check_informative(prefs.is_informative)
    _check_size(prefs.n_items, wanted["distance"])
    return prefs


def _check_size(n_items: int, distance: str) -> None:
    if n_items > DENSE_ITEMS and distance == "footrule":
        raise ValueError(
            f"with more than {DENSE_ITEMS:,} items method='personal' needs distance='kendall', its "
            f"default there, since the footrule's tables would grow with items x items; got "
            f"'footrule' and {n_items:,} items: leave distance out"
        )


def _open_parts(clicks: ShardedClicks, method: Personal) -> RemoteClicks:
    """The clicks of parts, which stay with the workers; refuse what needs all of them here."""
    if clicks.n_items > DENSE_ITEMS:
        raise ValueError(
            f"method='personal' learns from parts with at most {DENSE_ITEMS:,} items, got "
            f"{clicks.n_items:,}: read them into memory with pm.read(folder)"
        )
    if method.held_out is not None:
        raise ValueError(
            "method='personal' cannot learn from parts with held_out=, since the users' names stay "
            "with the workers: leave it out, or read the parts into memory with pm.read(folder)"
        )
    remote = RemoteClicks.of_parts(clicks)
    why = "one regression, as was asked for" if method.is_single else why_not(remote)
    if why is not None and method.ridge is None:
        raise ValueError(
            f"method='personal' has no penalty for a regression from parts ({why}): give ridge=, "
            "such as ridge=0.3, or read the parts into memory with pm.read(folder)"
        )
    return remote


def fit_personal(
    prefs: Preferences,
    alpha: float | None,
    wanted: dict[str, Any],  # n_draws, n_clusters and distance, as `fit` was asked
    options: dict[str, Any],
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
    clicks = _check_call(prefs, wanted)
    method = Personal.make(Case.of(clicks), options)
    if isinstance(clicks, ShardedClicks):
        clicks = _open_parts(clicks, method)
    method = method.checked(clicks)
    distance = distances.get(wanted["distance"]).name
    how = method.calibration(clicks) if can_score_again else None
    inside = None if how is None else split_inside(clicks, how, rng)
    steps = iter(range(1, N_REPORTS + 1))

    def report() -> None:
        progress(next(steps), N_REPORTS)

    learner = Learner(clicks, method, alpha, distance, rng, executor or Threads(), scores)
    learner.say = getattr(progress, "say", silent)
    if old is not None:
        learner.keep_blend(old)
    model = learner.learn(inside, report)
    how = None if model.correction is None else how
    more = {"alpha_given": alpha is not None, "order": None, "calibration": how}
    more |= learner.scores_settings() | {"given_scores": scores is not None}
    settings = {
        "method": "personal",
        "distance": distance,
        "alpha": model.mean_alpha,
        "n_users": int(clicks.weights[clicks.is_informative].sum()),
        "kind": clicks.kind,
        "is_full": False,
        "options": method.settings() | more,
    }
    kept = clicks.kept()
    return PersonalFit(
        **{each.name: getattr(model, each.name) for each in fields(model)},
        items=kept.items,
        users=kept.users,
        data=kept,
        settings=settings,
    )
