"""update: more users, or more clicks of the same users, without starting anew."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from ..data.blocks import Clicks
from ..data.more_clicks import join_clicks
from ..engines.executors import Executor, check_executor
from ..engines.progress import Progress, no_progress, shown
from ..laws.registry import find_law
from ..personal.fit_personal import fit_personal
from ..personal.personal_fit import Fit, PersonalFit, as_posterior, check_fit
from ..posterior.diagnostics import ModelWarning
from ..posterior.posterior import Posterior, made_by
from ..rankings import as_rng
from .fit import begin, fit, plan_draws, until_good
from .options import CHAINS
from .reproduce import fit_options
from .reweigh import reweigh

WARMUP = 10  # sweeps of a chain that goes on; with twice the users, 5 lead to the bulk


def update(
    posterior: Fit,
    more: Any,
    *,
    n_draws: int | None = None,
    rng: np.random.Generator | int | None = None,
    progress: Progress | bool | None = None,
    executor: Executor | None = None,
) -> Fit:
    """The posterior of the clicks of a fit and of more clicks together; the old one stays as it is.

    The method and the options are those of the fit. With "matched", and with "mcmc" by the footrule
    or Kendall's distance, each chain continues from its last draw, with a warmup of 10 sweeps and
    the same clusters: the result is that of a fit of all clicks, within Monte Carlo error. If
    little is new and there is one cluster, "mcmc" keeps its draws and weighs them by the exact
    probability of the new clicks, so it looks only at users who are new or have changed. It does so
    while the effective size is at least half the number of draws, unless `n_draws` is given.
    "personal" starts from the old weights and keeps its blend until there are a quarter more clicks
    than it was chosen from: the result is that of learning from all clicks with this blend. Other
    fits have no chains to continue and are made again. A fit of rankings, or of parts, is
    refused: fit all data again.

    Parameters
    ----------
    posterior : Posterior or PersonalFit
        A fit of clicks, from `fit`, from a file, or from an update.
    more : Clicks, or anything that :meth:`Preferences.from_clicks` takes
        Users are recognised by name: known ones keep their old clicks and get the new ones; new
        ones come after them. The users of a matrix are 0, 1, ...; if they are new people, make
        it clicks with names (``users=``). Items must be those of the fit: a new item changes the
        law of all others and needs a new fit.
    n_draws : int, optional
        Draws kept from each chain; default as many as before. If the chains of a default fit are
        too short, they go on, as in :func:`fit`.
    rng, progress, executor : optional
        As for :func:`fit`. Give another seed than that of the fit.

    Returns
    -------
    Posterior or PersonalFit
        With all users. ``settings["updates"]`` counts how often chains were continued; the
        largest cluster comes first, as after a fit.

    Examples
    --------
    >>> import pseudomallows as pm
    >>> prefs = pm.simulate_clicks(60, 8, alpha=8, mean_clicks=3, rng=1).preferences
    >>> posterior = pm.fit(prefs, method="mcmc", rng=1)
    >>> newer = posterior.update({"ann": [0, 4], 7: [1, 2]}, rng=2)
    >>> newer.data
    Clicks(61 users, 8 items; 176 clicks)
    >>> newer.consensus.shape == posterior.consensus.shape
    True
    """
    check_fit(posterior)
    prefs = join_clicks(_kept_clicks(posterior), more)
    with shown(progress, "updating") as report:
        return fit_again(
            posterior, prefs, n_draws=n_draws, rng=rng, progress=report, executor=executor
        )


def fit_again(
    posterior: Fit,
    prefs: Clicks,
    *,
    n_draws: int | None = None,
    rng: np.random.Generator | int | None = None,
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> Fit:
    """The fit of other clicks with the options of a posterior, whose chains go on if they can."""
    check_executor(executor)
    if prefs.backend != (backend := posterior.settings.get("backend")):
        prefs = replace(prefs, backend=backend)
    report = progress or no_progress
    given = fit_options(posterior) | ({} if n_draws is None else {"n_draws": n_draws})
    if isinstance(posterior, PersonalFit) and n_draws is None:
        return _learn_again(posterior, prefs, given, rng, report, executor)
    if not can_go_on(posterior, prefs):
        _refuse_data(given)
        method = posterior.settings["method"]
        return fit(prefs, method, rng=rng, progress=report, executor=executor, **given)
    assert isinstance(posterior, Posterior)
    settings = posterior.settings
    updates = {"updates": settings.get("updates", 0) + 1, "given": list(given)}
    started, alpha = time.perf_counter(), given.pop("alpha", None)
    weighed = reweigh(posterior, prefs, executor) if n_draws is None else None
    if weighed is not None:
        return replace(weighed, settings=weighed.settings | made_by(rng, started, prefs) | updates)
    how = as_rng(rng), executor, report
    usual_draws, _ = given.pop("n_draws", None), given.pop("n_clusters", None)
    where = (posterior.method, alpha, usual_draws, posterior.n_clusters, given)
    usual, _ = plan_draws(prefs, *where, *how)
    warmup = min(WARMUP, int(usual.warmup or 0))
    plan = replace(usual, warmup=warmup, goes_on_from=posterior)
    kept = {"curve": settings["curve"]} if "curve" in settings else {}
    newer = until_good(begin(prefs, plan, *how), prefs, plan, kept)
    new = newer.settings | {"options": usual.settings()} | made_by(rng, started, prefs) | updates
    if "thinning" not in settings:  # the number of draws was given for the fit, and stays so
        new.pop("thinning", None)
    return replace(newer, settings=new)


def _learn_again(
    posterior: PersonalFit,
    prefs: Clicks,
    given: dict[str, Any],
    rng: Any,
    progress: Progress,
    executor: Executor | None,
) -> Fit:
    """A personal fit of more clicks: products are counted anew, which is quick; the blend stays,
    and its regressions begin with the old weights."""
    _refuse_data(given)
    named = {"given": list(given)}
    started, alpha = time.perf_counter(), given.pop("alpha", None)
    given.pop("distance", None)  # that of the consensus of all
    generator = as_rng(rng)
    where = (given, generator, executor, progress)
    fitted = fit_personal(prefs, alpha, *where, old=posterior)
    asked = posterior.settings["options"].get("population")
    if asked is not None:
        fitted.settings["options"]["population"] = asked
    if posterior.made_population is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)  # its verdict tells, as after a fit
            again = fit_again(posterior.made_population, prefs, rng=generator, executor=executor)
        fitted = replace(fitted, made_population=as_posterior(again))
    numbers = [each.settings["options"].get("n_chosen") for each in (posterior, fitted)]
    is_kept = numbers[0] is not None and numbers[0] == numbers[1]
    updates = {"updates": posterior.settings.get("updates", 0) + 1} if is_kept else {}
    new = fitted.settings | named | made_by(rng, started, prefs) | updates
    return replace(fitted, settings=new)


def can_go_on(posterior: Fit, prefs: Clicks) -> bool:
    """Can the chains of a posterior go on with these clicks?"""
    if not isinstance(posterior, Posterior) or posterior.method not in CHAINS:
        return False
    distance = posterior.settings.get("distance", "footrule")
    has_law = find_law(prefs, distance) is not None
    return has_law and prefs.items.tolist() == posterior.items.tolist()


def _kept_clicks(posterior: Fit) -> Clicks:
    """The clicks of a fit, or what to do without them."""
    if posterior.kind != "clicks":
        raise ValueError(
            "update needs a fit of clicks, and this is one of rankings: fit all rankings again"
        )
    clicks = posterior.clicks
    if clicks is None or not clicks.n_users:
        raise ValueError(
            "this posterior keeps no users, as it was fitted to parts: add the new clicks to the "
            "parts and fit them again"
        )
    return clicks


def _refuse_data(given: dict[str, Any]) -> None:
    unknown = [name for name, value in given.items() if repr(value) == "..."]
    if unknown:
        raise ValueError(
            f"this model was fitted with {unknown[0]}=..., data that it does not keep: fit all "
            f"clicks again, with {unknown[0]}="
        )


Posterior.update = update  # that room stands above, and may not import this one
PersonalFit.update = update
