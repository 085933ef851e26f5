"""evaluate: hide clicks, fit, recommend, and compare stated with observed probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..engines.executors import Executor, check_local
from ..inference.fit import fit
from ..inference.methods.auto import Asked, choose_method
from ..inference.personal.next_clicks import usual_calibration
from ..posteriors.personal import Fit
from ..preferences import Clicks, check_clicks
from ..rankings import as_rng, check_count
from ..recommendations.recommend import Recommendations
from ..recommendations.recommenders.registry import WITH_SUMS
from .baselines import ease, most_clicked
from .figures import calibrate, hits_of, scores_of
from .result import Evaluation
from .trials import Trial, make_trial

ALWAYS = ("alpha", "progress", "checkpoint")  # arguments of `fit` that say nothing of the method


def evaluate(
    prefs: Clicks,
    hide: int | None = None,
    k: int | None = None,
    method: str = "auto",
    *,
    split: str | None = None,
    test: Any = None,
    at: Any = None,
    share: float | None = None,
    truth: ArrayLike | None = None,
    n_bins: int = 10,
    rng: np.random.Generator | int | None = None,
    executor: Executor | None = None,
    **options: Any,
) -> Evaluation:
    """Hide clicks, fit the rest, and see which recommendations were among the hidden ones.

    The fit that is judged is the one that :func:`fit` returns for the clicks that are not hidden,
    with the same method and options. The result says which clicks were hidden, how many users were
    judged and why others were not, and gives a verdict.

    Parameters
    ----------
    prefs : Clicks
        All clicks; with `test`, the clicks to learn from.
    hide : int, optional
        How many clicks to hide from each user who has more than that, default 10. Other users
        are only learnt from, not judged.
    k : int, optional
        Recommendations for each user, at most all items that a user has not seen; default 10, or
        all of these if they are fewer. The stated probabilities are about the next `hide` ranks,
        since that many clicks are hidden (with a split in time or a `test`, as many as a user has
        there on average). Of more than `hide` recommendations some must be wrong.
    method : str
        Method of :func:`fit`; further options go there too. The default, "auto", is "personal" for
        clicks.
    split : str, optional
        Which clicks to hide: "last", each user's last `hide` clicks in time; "random"; "time",
        all clicks from a date on, which judges the users with clicks before and after it. The
        first and the last need clicks with times. The default is the question that a fit answers:
        "last" if most clicks have times, since its probabilities are about what comes next, and
        "random" without times or with ``calibrate="random"``. A fit of clicks with times has not
        learnt to answer "random".
    test : Clicks, data frame, dict or path, optional
        Later clicks of users of `prefs`, instead of hidden ones. Users and items that are not in
        `prefs`, and clicks that are, do not count.
    at, share : optional
        For ``split="time"``: the time, as a number or a date like "2024-05-31", or the share of the
        clicks that come after it (0.2).
    truth : (n_users, n_items) array_like of int, optional
        For simulated data: the true rankings. Then nothing is hidden (`hide` is not used), and a
        recommendation is right if its true rank is one of the k after the clicks.
    n_bins : int
        Bins of equal width for the stated probabilities.
    rng : numpy.random.Generator or seed, optional
        Source of randomness.

    Examples
    --------
    >>> from pseudomallows import simulate_clicks
    >>> data = simulate_clicks(200, 8, alpha=6, mean_clicks=3, rng=1)
    >>> result = evaluate(data.preferences, k=2, method="mcmc", truth=data.rankings, rng=1)
    >>> result.calibration.error < 0.05
    True
    >>> print(result.judged)
    200 of 200 users judged
    """
    prefs = check_clicks(prefs)
    check_local(executor, "evaluate")
    k = None if k is None else check_count(k, "k")
    n_bins = check_count(n_bins, "n_bins")
    rng = as_rng(rng)
    given = {"test": test, "truth": truth, "at": at, "share": share}
    if split is None and test is None and truth is None:
        is_random = options.get("calibrate") == "random"
        split = "random" if is_random else usual_calibration(prefs)
    trial = make_trial(prefs, hide, k, split, given, rng)
    if split is not None and options.get("scores") is not None and not callable(options["scores"]):
        raise ValueError(
            "scores must be a function that learns them from clicks, since an array may have seen "
            "the hidden clicks"
        )
    if not isinstance(method, str):
        raise TypeError(f"method must be a name, such as 'personal', got {method!r}")
    if method == "auto":
        method, options = _choose(prefs, options)
    if method != "personal" and (options.get("distance") or "footrule") not in WITH_SUMS:
        options = options | {"keep_latent": True}  # which answers users there
    posterior = fit(trial.shown, method, rng=rng, executor=executor, **options)
    return _score(trial, posterior, trial.recommend(posterior, executor), n_bins, rng)


def _choose(prefs: Clicks, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The method of "auto", without the consensus of all users, which recommends nothing."""
    usual: dict[str, Any] = {"n_draws": None, "n_clusters": 1, "distance": "footrule"}
    asked = {name: options.get(name) or value for name, value in usual.items()}
    others = {name: value for name, value in options.items() if name not in (*usual, *ALWAYS)}
    method, chosen, _ = choose_method(prefs, Asked(**asked, options=others, needs_chain=False))
    if method != "personal":
        return method, options
    plain = {name: value for name, value in chosen.items() if name != "with_consensus"}
    kept = (*ALWAYS, "distance")
    return method, {name: options[name] for name in kept if name in options} | plain


def _score(
    test: Trial, posterior: Fit, found: Recommendations, n_bins: int, rng: np.random.Generator
) -> Evaluation:
    """How often the recommendations were right, and those of the baselines."""
    right, seen = test.hidden.take(test.judged), test.shown.take(test.judged)
    hits = hits_of(found.items, right)
    given, scores = ~np.isnan(hits), scores_of(found.items, right)
    popular = most_clicked(seen, test.shown.item_counts(), test.k, rng)
    baselines = {"popularity": scores_of(popular, right)}
    by_ease = ease(seen, test.shown, test.k, rng)
    if by_ease is not None:
        baselines["EASE"] = scores_of(by_ease, right)
    return Evaluation(
        accuracy=scores.accuracy.value,
        accuracy_error=scores.accuracy.error,
        popularity=baselines["popularity"].accuracy.value,
        calibration=calibrate(found.probabilities[given], hits[given], n_bins),
        n_users=len(test.judged),
        recommendations=found,
        posterior=posterior,
        scores=scores,
        judged=test.who,
        baselines=baselines,
    )
