"""fit: check the data, choose a method, resolve its options, run until the draws are good, wrap."""

from __future__ import annotations

import os
import textwrap
import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from .._warn import warn
from ..data.atomic import check_target
from ..data.blocks import Clicks
from ..data.parquet import Parts
from ..data.preferences import Preferences, check_preferences
from ..engines.executors import Executor, check_executor, is_remote
from ..engines.memory import DENSE_ITEMS
from ..engines.progress import Bar, Progress, shown
from ..laws.error_rates import MODELS
from ..laws.law import Law
from ..laws.registry import make_law
from ..laws.shards import open_parts
from ..paper.clicks import PseudoRun
from ..personal.fit_personal import fit_personal
from ..personal.personal_fit import Fit, PersonalFit, as_posterior
from ..personal.weigh import MIN_SCORED, scorable
from ..posterior.diagnose import (
    LEAST_EFFECTIVE_SHARE,
    MOST_THINNING,
    contradiction_check,
    describe_contradictions,
    diagnose,
    is_apart,
    is_mixed,
    is_slow,
    thinning_needed,
    warn_of,
)
from ..posterior.diagnostics import ContradictionWarning, MatchedWarning, ModelWarning
from ..posterior.latent import all_latent
from ..posterior.model_check import check_model
from ..posterior.posterior import Posterior, made_by
from ..rankings import as_rng, check_alpha, check_count, check_name
from .alpha import estimate_alpha
from .checkpoint import Checkpoint, describe_call
from .choose_clusters import check_not_votes, choose_clusters
from .options import (
    CHAINS,
    METHODS,
    Case,
    Options,
    check_options,
    check_work,
    describe_options,
    option_names,
    resolve,
    with_options,
)
from .run import Run
from .start import divide

FEW_DRAWS = 5  # of a chain, too few to say whether people share one order
FREE_GAPS = (
    "mcmc, by the Bradley-Terry model, in which each item has its own strength (gaps='free')"
)


def fit(
    prefs: Preferences | Parts,
    method: str = "auto",
    alpha: float | None = None,
    n_draws: int | None = None,
    n_clusters: int | str = 1,
    rng: np.random.Generator | int | None = None,
    progress: Progress | bool | None = None,
    *,
    distance: str | None = None,
    executor: Executor | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Fit:
    """Learn what the users agree on, and how sure that is.

    Parameters
    ----------
    prefs : Preferences or Parts
        What is known about the users: full, partial or tied rankings, top-k lists, clicks,
        comparisons. With :class:`Parts`, which Dask workers read, the posterior keeps no users.
    method : str
        "auto" (default): the best method for the data. For clicks that is "personal", together
        with the consensus of all users; for rankings, ties and comparisons, and for clusters of
        any data, it is "mcmc"; or another method, if only that one has the options given. The
        settings say what was chosen and why. "mcmc": the exact posterior. "matched", for clicks
        and rankings known in part: very close to it, and faster with one cluster. "personal", for
        clicks: every user has their own consensus, the ranking of scores from the user's other
        clicks, by the footrule or Kendall's distance.
        "pseudo": the Pseudo-Mallows of the paper, fast and approximate. "balanced": the same with
        a price for each rank, and with importance weights that correct the approximation.
    alpha : float, optional
        Concentration of the users. Without it, "mcmc" samples it along with the consensus, and so
        does "balanced" for full rankings with one cluster; else "pseudo" and "balanced" estimate it
        (:func:`estimate_alpha`; with clusters, each chain by the exact likelihood, for each
        cluster).
    n_draws : int, optional
        Draws kept from each chain, by default 200, or 100 where what is not known is summed out
        (4,000 weighted ones for "balanced" on full rankings with one cluster). If the chains of
        "mcmc" or "matched" do not agree yet, or their draws are worth less than 200, they run
        longer, with draws up to 16 times further apart, unless `n_draws`, `warmup`, `thin` or
        `checkpoint` is given. Chains of one consensus that stay in different modes are tempered,
        with draws worth 2,000, so that the probability of a mode is known to 0.011.
    n_clusters : int or "auto"
        Groups of users, each with its own consensus and alpha. "auto": the smallest number beyond
        which a further cluster gains little, see :func:`choose_clusters`.
    rng : numpy.random.Generator or seed, optional
        Source of randomness; the same seed gives the same draws, whatever the number of threads.
    progress : bool or callable, optional
        By default a bar on standard error, where that is a terminal or a notebook, for work of
        more than two seconds; it also says if kernels are being compiled, once. True: a bar in any
        case. False: none. A callable is called as ``progress(done, total)``; if it has an attribute
        `say`, "personal" calls that with what is being done, in words.
    executor : optional
        Anything with a `map`, to run blocks of users; default: threads on all cores. For clicks,
        a :class:`DaskExecutor` runs them on workers, with the same draws.
    checkpoint : path, optional
        A file in which to save the state of the chains of "mcmc" or "matched", every half minute or
        so, and when the fit is interrupted. The same call then continues from there, with the same
        draws as without an interruption. It needs `rng`; the file is deleted at the end.
    distance : str, optional
        "footrule" (default), "spearman", "kendall" (default for votes, one comparison a person,
        whose law it has in closed form), "cayley", "hamming" or "ulam". "mcmc" takes all of them
        for any data; "pseudo" and "balanced" need one that adds up over items (footrule, spearman,
        hamming). For clicks on many thousands of items take "kendall"; it is the default of
        "personal" at every size, where the footrule takes much longer and is no better.
    **options
        The options of the method: ``help(pm.fit)`` lists them at its end, and so does
        ``pseudomallows fit --help``.

    Returns
    -------
    Posterior or PersonalFit
        A PersonalFit for method "personal", which "auto" takes for clicks; it answers for each
        user and, through its `population`, for all of them.

    Warns
    -----
    ConvergenceWarning
        The chains do not agree, are too short, or are stuck.
    EffectiveSizeWarning
        A few draws carry nearly all the weight.
    ContradictionWarning
        Users who compare pairs contradict themselves, and `errors` was not given: it is
        "bernoulli" then.
    AgreementWarning
        The users agree no more than by chance, so alpha is estimated as 0.
    AlphaWarning
        The data put no upper limit on the alpha of a cluster, so that its prior decides.
    ModelWarning
        People do not share one order: look for groups.

    Examples
    --------
    >>> prefs = Preferences.from_rankings([[1, 2, 3], [1, 2, 3], [1, 3, 2], [2, 1, 3]])
    >>> posterior = fit(prefs, alpha=3, rng=1)
    >>> posterior.point_consensus()
    array([1, 2, 3], dtype=int32)
    """
    started = time.perf_counter()
    check_executor(executor)
    check_name(method, "method", ["auto", *METHODS])
    if isinstance(prefs, Parts):
        prefs = open_parts(prefs, executor)
    check_preferences(prefs)
    if not isinstance(n_clusters, str):
        n_clusters = check_count(n_clusters, "n_clusters")

    asked_distance = distance
    distance = _usual_distance(prefs, method) if distance is None else distance
    facts: dict[str, Any] = {}
    if method == "auto":
        needs_chain = n_draws is not None or is_remote(executor) or checkpoint is not None
        asked = (n_clusters, distance, options, needs_chain)
        method, options, facts["chosen"] = choose_method(prefs, *asked)
    is_usual = asked_distance is None and distance == _usual_distance(prefs, method)
    known: dict[str, Any] = {"alpha": alpha, "n_draws": n_draws}
    known |= {"n_clusters": None if n_clusters == 1 else n_clusters}
    known |= {"distance": None if is_usual else distance} | options
    facts["given"] = [name for name, value in known.items() if value is not None]
    alpha = None if alpha is None else check_alpha(alpha)
    generator = as_rng(rng)
    if checkpoint is not None:
        _check_checkpoint(checkpoint, method, rng, options)

    with shown(progress, "fitting") as report:
        result: Fit
        if method == "personal":
            if n_draws is not None or n_clusters != 1:
                raise ValueError(
                    "method='personal' has neither draws nor clusters: leave out n_draws and "
                    "n_clusters, or give method='mcmc'"
                )
            values = check_options(Case.of(prefs, method), options)
            if asked_distance not in (None, "kendall") and not values["with_consensus"]:
                raise ValueError(
                    "an order of each user's own is by Kendall's distance; got "
                    f"distance={asked_distance!r}: leave it out, or ask for the consensus of all "
                    "by it too (with_consensus=True)"
                )
            result = fit_personal(prefs, alpha, values, generator, executor, report)
            if values["with_consensus"]:
                later = {"seed": int(generator.integers(2**31)), "distance": distance}
                result.settings["options"]["population"] = later
                if is_remote(executor):  # nobody has the clicks later
                    everybody = learn_population(result, prefs, executor, report)
                    result = replace(result, made_population=everybody)
        else:
            options = options | {"distance": distance}
            plan, noted = plan_draws(
                prefs, method, alpha, n_draws, n_clusters, options, generator, executor, report
            )
            file = None
            if checkpoint is not None:
                plan = replace(plan, goes_on=False)
                file = Checkpoint(checkpoint, describe_call(prefs, plan, generator))
            run = begin(prefs, plan, generator, executor, report)
            result = until_good(run, prefs, plan, noted, file)

    if "chosen" in facts and result.settings.get("votes", {}).get("gaps") == "free":
        facts["chosen"] = FREE_GAPS
    reading = getattr(prefs, "reading", "")
    facts |= {"reading": reading} if reading else {}
    result.settings.update(facts | made_by(rng, started, prefs))
    return result


fit.__signature__ = with_options(fit)  # type: ignore[attr-defined]
if fit.__doc__ is not None:  # not with python -OO
    _lines = describe_options().splitlines()
    _wrapped = [textwrap.fill(line, 88, subsequent_indent=" " * 4) for line in _lines]
    fit.__doc__ += textwrap.indent("\n" + "\n".join(_wrapped), "    ")


# The method


def choose_method(
    prefs: Preferences,
    n_clusters: int | str,
    distance: str,
    options: dict[str, Any],
    needs_chain: bool,  # for a number of draws, workers, or a checkpoint
) -> tuple[str, dict[str, Any], str]:
    """The best method for these data that has the options that are asked for, its options, and why
    it was chosen.

    >>> prefs = Preferences.from_rankings([[1, 2, 3], [2, 1, 3]])
    >>> choose_method(prefs, 1, "footrule", {}, False)[2]
    'mcmc, the exact posterior: the default for rankings'
    >>> choose_method(prefs, 1, "footrule", {"sigma": 1.0}, False)[2]
    "pseudo, the paper's method: it is the one with the option 'sigma'"
    """
    given, is_plain = set(options), n_clusters == 1 and not needs_chain
    is_own = isinstance(prefs, Clicks) and is_plain and distance in ("footrule", "kendall")
    if is_own and given <= set(option_names(Case.of(prefs, "personal"))):
        assert isinstance(prefs, Clicks)
        if given or len(scorable(prefs)) >= MIN_SCORED:
            words = "personal, an order of each user's own and the consensus of all: the best "
            words += "there is for clicks"
            return "personal", {"with_consensus": True} | options, words

    numbers = (1, 2) if n_clusters == "auto" else (n_clusters,)
    cases = {
        method: [Case.of(prefs, method, n if isinstance(n, int) else 1) for n in numbers]
        for method in ("mcmc", "pseudo", "balanced")
    }
    known = {method: {n for case in cases[method] for n in option_names(case)} for method in cases}
    eligible = [
        method for method in cases if cases[method][0].is_for_method and given <= known[method]
    ]
    if eligible and eligible[0] != "mcmc":
        words = (
            "the paper's method" if eligible[0] == "pseudo" else "independent draws with weights"
        )
        own = sorted(given - known["mcmc"])
        words = f"{eligible[0]}, {words}: it is the one with the option {own[0]!r}"
        return eligible[0], options, words

    what = str(Case.of(prefs, "mcmc")).removeprefix("full ").removeprefix("partial ")
    if n_clusters != 1:
        what = f"clusters of {'users' if prefs.kind == 'mixed' else what}"
    words = f"mcmc, the exact posterior: the default for {what}"
    if is_own and not given:
        words += f", as fewer than {MIN_SCORED} users have 2 clicks or more and an item left: "
        words += "too few to learn an order of each"
    return "mcmc", options, words


def _usual_distance(prefs: Preferences, method: str) -> str:
    """Kendall's where its closed forms matter: for votes, and for orders of each user's own with so
    many items that there are no tables of their pairs. Else the footrule."""
    is_own = method == "personal" or (method == "auto" and prefs.kind == "clicks")
    is_large = is_own and prefs.n_items > DENSE_ITEMS
    return "kendall" if prefs.is_vote or is_large else "footrule"


def learn_population(
    fitted: PersonalFit,
    prefs: Preferences | None = None,
    executor: Executor | None = None,
    progress: Progress | bool | None = None,
) -> Posterior:
    """The consensus of all users of a personal fit, beside their own: by the matched law, if that
    is near enough."""
    prefs = fitted.data if prefs is None else prefs
    assert prefs is not None
    settings = fitted.settings["options"]
    distance, alpha = settings["population"]["distance"], None
    if "alpha" in fitted.settings.get("given", []):
        alpha = fitted.settings["alpha"]
    rng = np.random.default_rng(settings["population"]["seed"])
    options: dict[str, Any] = {"rng": rng, "executor": executor}
    # a caller's own progress has heard of the end already
    options["progress"] = progress if progress is None or isinstance(progress, Bar) else False
    with warnings.catch_warnings():
        # each user has an order of their own, so nobody needs a common one: its verdict tells
        warnings.simplefilter("ignore", ModelWarning)
        if distance == "footrule":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MatchedWarning)
                matched = fit(prefs, "matched", alpha, **options)
            if matched.settings["matched"]["effective_share"] >= LEAST_EFFECTIVE_SHARE:
                return as_posterior(matched)
        return as_posterior(fit(prefs, "mcmc", alpha, distance=distance, **options))


PersonalFit.learn_population = learn_population  # that room stands above, and may not import this


# Draws


def plan_draws(
    prefs: Preferences,
    method: str,
    alpha: float | None,
    n_draws: int | None,
    n_clusters: int | str,
    options: dict[str, Any],
    rng: np.random.Generator,
    executor: Executor | None,
    progress: Progress,
) -> tuple[Options, dict[str, Any]]:
    """The options, resolved and checked; and for the settings what was noted on the way."""
    noted: dict[str, Any] = {}
    if is_remote(executor) and options.get("keep_latent"):
        raise ValueError("keep_latent does not work with Dask workers: leave executor out")
    if isinstance(n_clusters, str) and n_clusters == "auto":
        check_not_votes(prefs)
        # refuse options that are wrong whatever the number of clusters will be
        known = {n: set(option_names(Case.of(prefs, method, n))) for n in (1, 2)}
        for number, names in known.items():
            mine = {name: value for name, value in options.items() if name in names}
            resolve(prefs, method, n_draws, number, mine)
        strange = {name: options[name] for name in set(options) - known[1] - known[2]}
        check_options(Case.of(prefs, method, 2), strange)
        curve = choose_clusters(
            prefs,
            alpha=alpha,
            share_prior=options.get("share_prior", 1.0),
            alpha_prior=options.get("alpha_prior"),
            rng=rng,
            executor=executor,
            progress=progress,
            distance=options["distance"],
        )
        n_clusters, noted["curve"] = curve.chosen, curve.as_settings()
        names = known[min(n_clusters, 2)]
        options = {name: value for name, value in options.items() if name in names}
    number = check_n_clusters(n_clusters, prefs)
    plan = resolve(prefs, method, n_draws, number, options, alpha)
    check_work(plan, prefs.is_vote)

    contradictions = contradictions_of(prefs)
    if contradictions is not None and options.get("errors") is None:
        words = describe_contradictions(*contradictions)
        names_of = ("n_users", "n_all", "user", "cycle")
        figures = dict(zip(names_of, contradictions, strict=True))
        warn(ContradictionWarning(contradiction_check(words, figures)))
        noted["contradictions"] = words
    return plan, noted


def check_n_clusters(n_clusters: int | str, prefs: Preferences) -> int:
    """Return a number of clusters, or say what is wrong with it."""
    if isinstance(n_clusters, str):
        raise ValueError(f'n_clusters must be a whole number or "auto", got {n_clusters!r}')
    if n_clusters > 1:
        check_not_votes(prefs)
    n_users = int(prefs.weights[prefs.is_informative].sum())
    if n_clusters > max(n_users, 1):
        raise ValueError(
            f"n_clusters must be at most the number of informative users, {n_users}, "
            f"got {n_clusters}"
        )
    return n_clusters


def contradictions_of(prefs: Preferences) -> tuple[int, int, Any, list[Any]] | None:
    """How many users contradict themselves, of how many; the first, and how; None if none does."""
    pairs = prefs.comparisons() if prefs.is_contradictory else None
    if pairs is None:
        return None
    return int((~pairs.is_consistent).sum()), prefs.n_users, *pairs.contradictions(1)[0]


def begin(
    prefs: Preferences,
    plan: Options,
    rng: np.random.Generator,
    executor: Executor | None,
    progress: Progress,
) -> Run | PseudoRun:
    """What makes the draws, with an estimate of alpha where the method needs one."""
    rows = prefs, np.arange(prefs.n_users)
    rows = prefs.one_row_each() if plan.case.has_clusters else rows
    law = _law_of(plan, rows[0], executor)
    if plan.method in CHAINS:
        return Run(law, *rows, plan, rng, progress)
    is_estimated = not (plan.case.has_clusters or plan.case.has_weighted_draws)
    if plan.alpha is None and is_estimated:
        by_likelihood = plan.case.is_partial or plan.distance != "footrule"
        how = "likelihood" if by_likelihood else "similarity"
        estimate = estimate_alpha(prefs, how, rng=rng, executor=executor, distance=plan.distance)
        plan = replace(plan, alpha=estimate)
    return PseudoRun(law, *rows, plan, divide, rng, progress)


def _law_of(plan: Options, prefs: Preferences, executor: Executor | None) -> Law:
    """The law of the users; refuse what does not go with comparisons such as these."""
    if plan.method != "mcmc":
        return make_law(prefs, executor, plan.distance)
    is_votes = prefs.is_vote and plan.distance == "kendall"
    if plan.gaps != "auto" and not is_votes:
        raise ValueError(
            f"gaps={plan.gaps!r} is for votes, one comparison a person, with "
            "distance='kendall': leave gaps out"
        )
    if is_votes and plan.errors != "none":
        raise ValueError(
            f"errors={plan.errors!r} looks the same as disagreement where each person "
            "compares one pair: leave errors out"
        )
    contradictions = contradictions_of(prefs) if plan.errors == "none" else None
    if contradictions is not None:
        raise ValueError(
            f"{describe_contradictions(*contradictions)}: use errors='bernoulli' or 'logistic', "
            "which allow for errors, or leave errors out"
        )
    errors = MODELS[plan.errors or "none"](prefs.n_items, plan.theta_prior)
    return make_law(prefs, executor, plan.distance, errors, plan.gaps)


def until_good(
    run: Run | PseudoRun,
    prefs: Preferences,
    plan: Options,
    noted: dict[str, Any],
    file: Checkpoint | None = None,
) -> Posterior:
    """The result of the chains, which go on, if they may, until the draws are good or at the limit;
    with a warning of each check that is not passed.

    Chains of one consensus that disagree are slow, or in different modes: then they are tempered.
    """
    run.run(file)
    result = _posterior(run, prefs, plan, noted)
    if plan.goes_on and isinstance(run, Run):
        while run.can_temper and is_apart(result):
            if is_slow(result) and run.thinning < MOST_THINNING:
                run.go_on(4, keeps=False)
            else:
                run.temper()
            result = _posterior(run, prefs, plan, noted)
        while (factor := thinning_needed(result, run.thinning)) > 1:
            run.go_on(factor, keeps=is_mixed(result))
            result = _posterior(run, prefs, plan, noted)
        result.settings["thinning"] = run.thinning

    # what the checks need to know; in place, since a copy would find its diagnostics anew
    settings, is_lost = result.settings, False
    if plan.case.is_markov:
        is_unbounded = run.unbounded.mean(axis=0) >= 0.5  # by half of the chains
        settings["unbounded"] = np.flatnonzero(is_unbounded).tolist()
        settings["stuck"] = run.stuck()
        is_lost = bool(settings["stuck"]) or plan.n_draws < FEW_DRAWS
    if plan.method in CHAINS and plan.alpha is None and not is_lost:
        settings["model_check"] = check_model(prefs, result)
    checks = diagnose(result)
    warn_of([check for check in checks if check.warning is not ContradictionWarning])
    settings["checks"] = [check.row() for check in checks]
    if file is not None:
        file.remove()
    if plan.method in CHAINS and len(plan.kept_rows) and not run.law.has_latent:
        result = replace(result, latent=all_latent(result, plan.kept_rows))
    return result


def _posterior(
    run: Run | PseudoRun, prefs: Preferences, plan: Options, noted: dict[str, Any]
) -> Posterior:
    """The result, with how it was made."""
    draws, data = run.results(), prefs.kept()
    if data is not None and data.n_users < prefs.n_users:  # on workers, without rows
        draws["chain_memberships"] = draws["chain_memberships"][:, :0]
    settings = {
        "method": plan.method,
        "distance": plan.distance,
        "alpha": run.alpha,
        "n_users": run.law.n_users,
        "kind": plan.case.kind,
        "is_full": plan.case.is_full,
        "latent": run.how_latent,
        "is_best_proved": run.is_best_proved,
        "options": plan.settings(),
    }
    settings |= noted | run.checks()
    names = {"items": prefs.items, "users": prefs.users}
    return Posterior(**draws, **names, settings=settings, data=data)


def _check_checkpoint(path: Any, method: str, rng: Any, options: dict[str, Any]) -> None:
    """Refuse a checkpoint of what has no state to save, or another one in each process."""
    check_target(path, "checkpoint")
    if method not in CHAINS:
        raise ValueError(
            f"a checkpoint of method={method!r} has nothing to save, since it is quick: leave "
            "checkpoint out, or use 'mcmc' or 'matched'"
        )
    if rng is None:
        raise ValueError(f"a checkpoint of method={method!r} needs a seed: give rng")
    if options.get("temperatures") is not None:
        raise ValueError(
            "a checkpoint does not keep the replicas of temperatures: leave one of them out"
        )
