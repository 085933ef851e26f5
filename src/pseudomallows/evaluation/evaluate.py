"""evaluate: hide clicks, fit, recommend, and compare stated with observed probabilities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._warn import warn
from ..data.blocks import Clicks, check_clicks
from ..data.more_clicks import later_clicks, read_later
from ..data.splits import (
    Split,
    as_time,
    hide_last,
    hide_random,
    split_at,
    time_in_words,
    time_of_share,
)
from ..engines.executors import Executor, check_local
from ..personal.next_clicks import LEAST_SPANNING, usual_calibration
from ..personal.personal_fit import Fit, PersonalFit
from ..posterior.diagnostics import QuestionWarning
from ..posterior.names import QUESTIONS
from ..rankings import as_rng, check_count, check_name, check_rankings
from ..recommendations.choose_recommender import WITH_SUMS
from ..recommendations.recommend import Recommendations
from ..sampling.fit import choose_method, fit
from ..sampling.reproduce import fit_options
from .baselines import BASELINES
from .certificate import certificate_of, groups_of
from .check import LARGEST_WINDOW, observed_of, recommend_ahead
from .figures import Evaluated, Evaluation, calibrate, scores_of

ALWAYS = ("alpha", "progress", "checkpoint")  # arguments of `fit` that say nothing of the method
SPLITS = ("random", "last", "time")
LATER_SHARE = 0.2  # of the clicks, usually, that come after the date of a split in time


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
    groups: dict[Any, Any] | None = None,
    rng: np.random.Generator | int | None = None,
    executor: Executor | None = None,
    **options: Any,
) -> Evaluation:
    """Hide clicks, fit the rest, and see which recommendations were among the hidden ones.

    The fit that is evaluated is the one that :func:`fit` returns for the clicks not hidden, with
    the same method and options. With times, and without `calibrate`, "personal" is fitted for
    the question that the split asks: what comes after a date, next in this visit, or at random. The
    result says which clicks were hidden, how many users were evaluated and why others were not, and
    gives a verdict.

    Parameters
    ----------
    prefs : Clicks
        All clicks; with `test`, the clicks to learn from.
    hide : int, optional
        How many clicks to hide from each user who has more than that, default 10. Other users
        are only learnt from, not evaluated.
    k : int, optional
        Recommendations for each user, at most all items that a user has not seen; default 10, or
        all of these if they are fewer. The stated probabilities are about the next `hide` ranks,
        since that many clicks are hidden (with a split in time or a `test`, the next as many as the
        user has there, at most 30). Of more than `hide` recommendations some must be wrong.
    method : str
        Method of :func:`fit`; further options go there too. The default, "auto", is "personal" for
        clicks.
    split : str, optional
        Which clicks to hide: "last", each user's last `hide` clicks in time; "random"; "time",
        all clicks from a date on, which judges the users with clicks before and after it. The
        first and the last need clicks with times. The default is the question that a fit answers:
        "time" if most clicks have times ("last" if `hide` is given, or if fewer than 100 users have
        clicks before and after the date), and "random" without times or with
        ``calibrate="random"``.
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
    groups : dict, optional
        ``groups[user]``: the certificate is by these groups too.
    rng : numpy.random.Generator or seed, optional
        Source of randomness.

    Examples
    --------
    >>> from pseudomallows import simulate_clicks
    >>> data = simulate_clicks(200, 8, alpha=6, mean_clicks=3, rng=1)
    >>> result = evaluate(data.preferences, k=2, method="mcmc", truth=data.rankings, rng=1)
    >>> result.calibration.error < 0.05
    True
    >>> print(result.evaluated)
    200 of 200 users evaluated
    """
    prefs = check_clicks(prefs)
    check_local(executor, "evaluate")
    k = None if k is None else check_count(k, "k")
    n_bins = check_count(n_bins, "n_bins")
    rng = as_rng(rng)
    if split is None and test is None and truth is None:
        how = options.get("calibrate")
        how = how if isinstance(how, str) else usual_calibration(prefs)
        split = _usual_split(prefs, hide) if how == "cut" else how
    trial = make_trial(prefs, hide, k, split, rng, test=test, truth=truth, at=at, share=share)
    if not isinstance(method, str):
        raise TypeError(f"method must be a name, such as 'personal', got {method!r}")
    if method == "auto":
        method, options = _choose(prefs, options)
    if method == "personal":
        options = _for_split(trial, split, options)
    if method != "personal" and (options.get("distance") or "footrule") not in WITH_SUMS:
        options = options | {"keep_latent": True}  # which answers users there
    of_groups = groups_of(groups, trial.shown.users[trial.evaluated])
    posterior = fit(trial.shown, method, rng=rng, executor=executor, **options)
    best = trial.recommend(posterior, executor)
    return _score(trial, posterior, best, n_bins, rng, of_groups)


def _usual_split(prefs: Clicks, hide: int | None) -> str:
    """After a date, if it judges as many users as a fit needs; else by their last clicks."""
    if hide is not None:
        return "last"
    parts = split_at(prefs, time_of_share(prefs, LATER_SHARE))
    n_evaluated = int(((parts.shown.n_clicks > 0) & (parts.hidden.n_clicks > 0)).sum())
    return "time" if n_evaluated >= LEAST_SPANNING else "last"


def _for_split(trial: Trial, split: str | None, options: dict[str, Any]) -> dict[str, Any]:
    """The options, with the question that the split asks, unless another was asked for."""
    ahead = _share_ahead(trial)
    asked = {"random": "random", "last": "last", "time": "cut"}.get(split or "")
    asked = "cut" if split is None and ahead is not None else asked
    how = options.get("calibrate", True)
    is_given = options.get("held_out") is not None or how is False
    if trial.shown.times is None and how is True and not is_given:
        return options | {"calibrate": "random"}
    if asked is None or trial.shown.times is None or is_given:
        return options
    if how is True:
        return options | {"calibrate": ahead or True if asked == "cut" else asked}
    if how != asked and not (isinstance(how, float) and asked == "cut"):
        warn(QuestionWarning(QUESTIONS[how], QUESTIONS[asked], asked))
    return options


def _share_ahead(trial: Trial) -> float | None:
    """The share of the clicks shown in so much time as the hidden ones take after them: a fit then
    learns from what came as long after a date; None if these did not come later."""
    shown, hidden = trial.shown.times, trial.hidden.times
    if shown is None or hidden is None or np.isnan(hidden).all() or np.isnan(shown).all():
        return None
    now = float(np.nanmax(shown))
    if np.nanmin(hidden) < now:
        return None
    share = float(np.mean(shown >= now - (np.nanmax(hidden) - now)))
    return min(max(share, 0.05), 0.5)  # so that there is enough to learn from on both sides


def _choose(prefs: Clicks, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The method of "auto", without the consensus of all users, which recommends nothing."""
    own = ("n_draws", "n_clusters", "distance", *ALWAYS)
    others = {name: value for name, value in options.items() if name not in own}
    n_clusters, distance = options.get("n_clusters") or 1, options.get("distance") or "footrule"
    needs_chain = options.get("n_draws") is not None
    method, chosen, _ = choose_method(prefs, n_clusters, distance, others, needs_chain)
    if method != "personal":
        return method, options
    plain = {name: value for name, value in chosen.items() if name != "with_consensus"}
    return method, {name: options[name] for name in ALWAYS if name in options} | plain


def _score(
    trial: Trial,
    posterior: Fit,
    best: Recommendations,
    n_bins: int,
    rng: np.random.Generator,
    of_groups: tuple[NDArray[np.int64], list[str]] | None,
) -> Evaluation:
    """How often the recommendations were right, and those of the baselines."""
    hidden, seen = trial.hidden.take(trial.evaluated), trial.shown.take(trial.evaluated)
    stated, observed = best.probabilities, observed_of(best.items, hidden, trial.windows)
    is_item, scores = ~np.isnan(observed), scores_of(best.items, hidden)
    lists = {name: make(seen, trial.shown, trial.k, rng) for name, make in BASELINES.items()}
    baselines = {
        name: scores_of(items, hidden) for name, items in lists.items() if items is not None
    }
    return Evaluation(
        accuracy=scores.accuracy.value,
        accuracy_error=scores.accuracy.error,
        popularity=baselines["popularity"].accuracy.value,
        calibration=calibrate(stated[is_item], observed[is_item], n_bins),
        n_users=len(trial.evaluated),
        recommendations=best,
        posterior=posterior,
        scores=scores,
        evaluated=trial.who,
        baselines=baselines,
        certificate=certificate_of(
            np.where(is_item, stated, np.nan),
            observed,
            seen.n_clicks,
            trial.windows,
            best.items,
            trial.shown.item_counts(),
            of_groups,
        ),
    )


def evaluate_again(posterior: Fit, hide: int | None, k: int | None, **more: Any) -> Evaluation:
    """Hide clicks of a fit, and fit the rest with the options of that fit."""
    assert posterior.clicks is not None
    given = fit_options(posterior)
    if "scores" in given:
        raise ValueError(
            "this model was fitted with scores=..., which cannot be made again without the hidden "
            "clicks: hide some yourself, and give them to pm.personal.fit_scores as held_out="
        )
    for name in ("held_out", "keep_latent"):  # the first is learnt from what is hidden
        given.pop(name, None)
    if isinstance(posterior, PersonalFit):
        given.pop("distance", None)  # that of the consensus of all
        if posterior.settings["options"].get("calibration") == "cut":
            hide = None  # it is evaluated by what it is for: all clicks after a date
        given["ridge"] = posterior.settings["options"]["ridge"]  # None: a blend, learnt again
    else:
        given["n_clusters"] = posterior.n_clusters
    method = posterior.settings["method"]
    return evaluate(posterior.clicks, hide, k, method, **more, **given)


@dataclass(frozen=True, eq=False)
class Trial:
    """What is learnt from, who is evaluated (rows), and what is right: the hidden clicks."""

    shown: Clicks
    hidden: Clicks
    evaluated: NDArray[np.int64]
    k: int
    windows: NDArray[np.int64]  # of each who is evaluated: the probability is about so many next
    who: Evaluated

    def recommend(self, posterior: Fit, executor: Executor | None) -> Recommendations:
        """The recommendations to those who are evaluated."""
        return recommend_ahead(
            posterior, self.shown.users[self.evaluated], self.windows, self.k, executor
        )


def make_trial(
    prefs: Clicks,
    hide: int | None,
    k: int | None,
    split: str | None,  # None with test or truth
    rng: np.random.Generator,
    *,
    test: Any = None,
    truth: ArrayLike | None = None,
    at: Any = None,
    share: float | None = None,
) -> Trial:
    """The test that is asked for; what does not go together is refused."""
    if split is not None:
        check_name(split, "split", SPLITS)
    for name, value in (("at", at), ("share", share)):
        if value is not None and (split != "time" or test is not None):
            raise ValueError(f"{name} is for split='time': leave it out, or give that")
    by = {"test": test, "truth": truth, f"split={split!r}": split}
    asked = [name for name, value in by.items() if value is not None]
    if len(asked) > 1:
        raise ValueError(f"{asked[0]} already says what is evaluated: leave out {asked[1]}")
    if truth is not None:
        return _by_truth(prefs, truth, k)
    if test is not None:
        return _by_test(prefs, test, k)
    if split == "time":
        return _by_time(prefs, at, share, k)
    return _by_hiding(prefs, hide, k, split or "random", rng)


def _by_hiding(
    prefs: Clicks, hide: int | None, k: int | None, split: str, rng: np.random.Generator
) -> Trial:
    """Right is what was hidden, so many clicks of each user who has more."""
    hide = 10 if hide is None else hide  # as in the paper's case study
    parts = (hide_random if split == "random" else hide_last)(prefs, hide, rng)
    if split == "random":  # what is hidden at random did not come later
        parts = Split(parts.shown, replace(parts.hidden, times=None))
    n_few = int((prefs.n_clicks <= hide).sum())
    clicks = "click" if hide == 1 else "clicks"
    words = f"{hide} {clicks} of each user, chosen at random"
    if split == "last":
        words = f"each user's last {clicks if hide == 1 else f'{hide} {clicks}'}"
    reason = f"with {hide} {clicks} or fewer (lower hide to judge them)"
    return _make(parts, k, hide, words, {reason: n_few})


def _by_time(prefs: Clicks, at: Any, share: float | None, k: int | None) -> Trial:
    """Right is all that came later than a time."""
    if at is not None and share is not None:
        raise ValueError("give the time of the split by at or by share, not by both")
    time = as_time(at) if at is not None else time_of_share(prefs, share or LATER_SHARE)
    parts, when = split_at(prefs, time), time_in_words(time)
    before, after = parts.shown.n_clicks > 0, parts.hidden.n_clicks > 0
    reasons = {
        f"without a click before {when}": int((after & ~before).sum()),
        "without a click after it": int((before & ~after).sum()),
        "without any click": int((~before & ~after).sum()),
    }
    return _make(parts, k, None, f"all clicks from {when} on", reasons)


def _by_test(prefs: Clicks, test: Any, k: int | None) -> Trial:
    """Right are the clicks that were given for it, and are not in `prefs`."""
    later = later_clicks(read_later(test, prefs), prefs, "test")
    known = prefs.owners * prefs.n_items + prefs.codes
    cells = later.clicks.owners * prefs.n_items + later.clicks.codes
    is_new = ~np.isin(cells, known)
    hidden = later.clicks.choose(is_new)
    if not is_new.any():
        raise ValueError("test has no click that is not in prefs already: give later clicks")
    has_old, has_new = prefs.n_clicks > 0, hidden.n_clicks > 0
    reasons = {
        "in test, but not in prefs": later.strange_users,
        "without a new click in test": int((has_old & ~has_new).sum()),
        "without a click in prefs": int((~has_old).sum()),
    }
    left_out = later.n_left_out + int((~is_new).sum())
    words = "the clicks of test"
    if left_out:
        words += f" (without {left_out:,} of {later.n_clicks:,} that are in prefs already, or of "
        words += "users or items that are not)"
    return _make(Split(prefs, hidden), k, None, words, reasons, later.strange_users)


def _make(
    split: Split,
    k: int | None,
    window: int | None,
    words: str,
    reasons: dict[str, int],
    n_strangers: int = 0,
) -> Trial:
    sizes = split.hidden.n_clicks
    evaluated = np.flatnonzero((sizes > 0) & (split.shown.n_clicks > 0))
    others = {reason: count for reason, count in reasons.items() if count}
    if not len(evaluated):
        why = "; ".join(f"{count:,} {reason}" for reason, count in others.items())
        raise ValueError(f"no user can be evaluated by {words}: {why}")
    if window is None:  # as many as come later
        windows = np.minimum(sizes[evaluated], LARGEST_WINDOW)
    else:
        windows = np.full(len(evaluated), window)
    k = check_k(k, split.shown.take(evaluated))
    who = Evaluated(words, len(evaluated), split.shown.n_users + n_strangers, others)
    return Trial(*split, evaluated, k, windows, who)


def _by_truth(prefs: Clicks, truth: ArrayLike, k: int | None) -> Trial:
    """Right are the k true ranks after the clicks."""
    rankings = check_rankings(truth, "truth")
    if rankings.shape != (prefs.n_users, prefs.n_items):
        raise ValueError(
            f"truth must have {prefs.n_users} users and {prefs.n_items} items, "
            f"got {rankings.shape[0]} and {rankings.shape[1]}"
        )
    k, n_clicks = check_k(k, prefs), prefs.n_clicks[:, None]
    owners, codes = np.nonzero((rankings > n_clicks) & (rankings <= n_clicks + k))
    starts = np.searchsorted(owners, np.arange(prefs.n_users + 1))
    right = Clicks(prefs.weights, prefs.users, prefs.items, starts, codes.astype(np.int32))
    words = Evaluated(f"the {k} true ranks after the clicks", prefs.n_users, prefs.n_users, {})
    rows = np.arange(prefs.n_users)
    return Trial(prefs, right, rows, k, np.full(len(rows), k), words)


def check_k(k: int | None, seen: Clicks) -> int:
    """The number of recommendations, of which one of these users has as many at least."""
    most = seen.n_items - int(seen.n_clicks.min())
    k = min(10, most) if k is None else check_count(k, "k")
    if k > most:
        raise ValueError(f"k must be at most {most}, all items that a user has not seen, got {k}")
    return k
