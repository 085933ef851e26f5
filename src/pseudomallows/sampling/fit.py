"""fit: one door to every method."""

from __future__ import annotations

import os
import textwrap
import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from .._version import __version__
from ..engines.executors import Executor, check_executor, is_remote
from ..engines.memory import DENSE_ITEMS
from ..engines.progress import Bar, Progress, shown
from ..files.atomic import check_target
from ..files.parquet_parts import Parts
from ..laws.shards import open_parts
from ..posteriors.diagnose import LEAST_EFFECTIVE_SHARE, MatchedWarning, ModelWarning
from ..posteriors.personal_fit import Fit, as_posterior, own_law_for
from ..posteriors.posterior import Posterior
from ..preferences import Preferences, check_preferences
from ..rankings import as_rng, check_alpha, check_name
from .auto import FREE_GAPS, Asked, choose_method
from .call import Call
from .fit_personal import fit_personal
from .methods import ALL_METHODS, METHODS
from .options import describe_options


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
        and rankings known in part: very close to it, and faster. "personal", for clicks: every user
        has their own consensus, the ranking of scores from the user's other clicks, by the footrule
        or Kendall's distance.
        "pseudo": the Pseudo-Mallows of the paper, fast and approximate. "balanced": the same with
        a price for each rank, and with importance weights that correct the approximation.
    alpha : float, optional
        Concentration of the users. Without it, "pseudo" and "balanced" estimate it
        (:func:`estimate_alpha`; with clusters, each chain by the exact likelihood, for each
        cluster), and "mcmc" samples it along with the consensus.
    n_draws : int, optional
        Draws kept from each chain, by default 200, or 100 where what is not known is summed out
        (4,000 weighted ones for "balanced" on full rankings with one cluster). If the chains of
        "mcmc" or "matched" do not agree yet, or their draws are worth less than 200, they run
        longer, with draws up to 16 times further apart, unless `n_draws`, `warmup`, `thin` or
        `checkpoint` is given. Chains of one consensus that end in different modes are tempered,
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
        "personal" for more than 500 items, where the footrule takes much longer and is no better.
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
        The data set no upper limit on the alpha of a cluster, so that its prior decides.
    ModelWarning
        People do not share one order: look for groups.
    BalanceWarning
        The balancing of the weights stopped early.

    Examples
    --------
    >>> prefs = Preferences.from_rankings([[1, 2, 3], [1, 2, 3], [1, 3, 2], [2, 1, 3]])
    >>> posterior = fit(prefs, alpha=3, rng=1)
    >>> posterior.point_consensus()
    array([1, 2, 3], dtype=int32)
    """
    started = time.perf_counter()
    check_executor(executor)
    check_name(method, "method", ["auto", *ALL_METHODS])
    if isinstance(prefs, Parts):
        prefs = open_parts(prefs, executor)
    check_preferences(prefs)
    own_distance = own_law_for(prefs.n_items) if distance is None else distance
    chosen: dict[str, Any] = {}
    distance = _usual_distance(prefs, method) if distance is None else distance
    if method == "auto":
        needs_chain = is_remote(executor) or checkpoint is not None
        asked = Asked(n_draws, n_clusters, distance, options, needs_chain)
        method, options, chosen["chosen"] = choose_method(prefs, asked)
    alpha = None if alpha is None else check_alpha(alpha)
    generator = as_rng(rng)
    _check_checkpoint(checkpoint, method, rng is not None)
    with shown(progress, "fitting") as report:
        if method == "personal":
            wanted = {"n_draws": n_draws, "n_clusters": n_clusters, "distance": own_distance}
            own = fit_personal(prefs, alpha, wanted, options, generator, executor, report)
            if own.settings["options"]["with_consensus"]:
                everybody = _fit_population(prefs, alpha, distance, generator, executor, report)
                own = replace(own, population=everybody)
            result: Fit = own
        else:
            call = Call(prefs, METHODS[method], alpha, generator, executor, report)
            result = call.draw(n_draws, n_clusters, options | {"distance": distance}, checkpoint)
    if "chosen" in chosen and result.settings.get("votes", {}).get("gaps") == "free":
        chosen["chosen"] = FREE_GAPS
    reading = getattr(prefs, "reading", "")
    chosen |= {"reading": reading} if reading else {}
    return replace(result, settings=result.settings | chosen | made_by(rng, started))


def _usual_distance(prefs: Preferences, method: str) -> str:
    """Kendall's where its closed forms matter: for votes, and for orders of each user's own with so
    many items that there are no tables of their pairs. Else the footrule."""
    is_own = method == "personal" or (method == "auto" and prefs.kind == "clicks")
    is_large = is_own and prefs.n_items > DENSE_ITEMS
    return "kendall" if prefs.is_vote or is_large else "footrule"


def _fit_population(
    prefs: Preferences,
    alpha: float | None,
    distance: str,
    rng: np.random.Generator,
    executor: Executor | None,
    report: Progress,
) -> Posterior:
    """The consensus of all users, beside their own: by the matched law, if that is near enough."""
    options: dict[str, Any] = {"rng": rng, "executor": executor}
    # a caller's own progress has heard of the end already
    options["progress"] = report if isinstance(report, Bar) else False
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


def made_by(rng: Any, started: float) -> dict[str, Any]:
    """For the settings of a fit: who made it, with what seed, and in how many seconds."""
    return {
        "version": __version__,
        "seed": int(rng) if isinstance(rng, int | np.integer) else None,
        "seconds": round(time.perf_counter() - started, 3),
    }


def _check_checkpoint(checkpoint: Any, method: str, has_seed: bool) -> None:
    if checkpoint is None:
        return
    check_target(checkpoint, "checkpoint")
    if method not in METHODS or not METHODS[method].samples_alpha:
        raise ValueError(
            f"a checkpoint of method={method!r} has nothing to save, since it is quick: leave "
            "checkpoint out, or use 'mcmc' or 'matched'"
        )
    if not has_seed:
        raise ValueError(f"a checkpoint of method={method!r} needs a seed: give rng")


if fit.__doc__ is not None:  # not with python -OO
    _lines = describe_options(ALL_METHODS.values()).splitlines()
    _wrapped = [textwrap.fill(line, 88, subsequent_indent=" " * 4) for line in _lines]
    fit.__doc__ += textwrap.indent("\n" + "\n".join(_wrapped), "    ")
