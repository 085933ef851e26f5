"""Can a fit be trusted? The diagnostics in plain words, with what to do."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..engines.memory import DENSE_ITEMS
from .convergence import Convergence, check_convergence, groups_apart
from .diagnostics import (
    ADVICE,
    CLUSTER_ADVICE,
    LEAST_EFFECTIVE_SHARE,
    SLOW_ADVICE,
    contradicts_equal_gaps,
    describe_groups,
    weighted_size_limit,
)
from .personal_fit import Fit, PersonalFit
from .posterior import Posterior

POOR_SIZE = 10.0  # up to here, with care: the error of a mean is a third of the spread
GOOD_CALIBRATION, POOR_CALIBRATION = 0.03, 0.1  # three points are near enough, ten mislead
UNMEASURED = "Nobody has checked yet how its probabilities compare with what is observed."
MEASURE = "Measure it with pm.evaluate, which hides some clicks and counts."
USE = "use the order and its intervals."
SETTLED = "Each chain has settled, and there are enough draws."
GROUPS_ADVICE = "Use the order within each group only, or add comparisons across the groups."
CHAIN_NOTE = (
    "R-hat compares the chains, or the halves of one: far above 1, they disagree. Successive draws "
    "are alike; the effective number says how many independent draws they are worth."
)
DRAW_NOTE = (
    "The draws are independent, so there is no chain that could fail to settle, and R-hat has no "
    "meaning here. Some draws weigh more than others; the effective number says how many equal "
    "ones they are worth."
)


@dataclass(frozen=True)
class Verdict:
    """Whether to trust a fit: "yes", "with care" or "no"; why, and what to do.

    `checks` are rows (check, found, wanted), and `note` says what they mean.
    """

    answer: str
    words: str
    advice: str = ""
    checks: Sequence[tuple[str, str, str]] = ()
    note: str = ""


def judge(posterior: Fit, measured: Verdict | None = None) -> Verdict:
    """Whether to trust a fit.

    `measured` is the verdict of :func:`evaluate`, by which a personal fit is judged.

    Examples
    --------
    >>> from pseudomallows import fit, simulate_rankings
    >>> posterior = fit(simulate_rankings(30, 5, alpha=3, rng=1).preferences, "mcmc", rng=1)
    >>> judge(posterior).answer
    'yes'
    """
    if isinstance(posterior, PersonalFit):
        return measured or Verdict("with care", UNMEASURED, MEASURE)
    if not posterior.alpha.any():
        words = "The users agree no more than by chance, so every order is equally likely."
        return Verdict("no", words, "Do not use this order. More users may help.")
    is_mcmc = posterior.settings.get("method") == "mcmc"
    if is_mcmc or not posterior.is_full or posterior.n_clusters > 1:
        return _judge_chains(posterior)
    return _judge_draws(posterior)


def _judge_chains(posterior: Posterior) -> Verdict:
    judged = check_convergence(posterior)
    limit, least, wanted = judged.rhat_limit, judged.effective_size, judged.size_limit
    of_all = "median" if posterior.n_items > DENSE_ITEMS else "smallest"
    checks = [
        (f"{judged.name} (1 is perfect)", _number(judged.rhat, 3), f"{limit:.4g} or less"),
        (f"{of_all} effective number of draws", _number(least, 0), f"{wanted:.0f} or more"),
        ("draws", f"{posterior.weights.size:,}", ""),
    ]
    answer, words = _answer(judged)
    matched = posterior.settings.get("matched")
    if matched is not None:
        share, limit = matched["effective_share"], LEAST_EFFECTIVE_SHARE
        checks.append(("draws by their exact weights", f"{share:.0%}", f"{limit:.0%} or more"))
        if share < limit and answer == "yes":
            words = "The draws have settled, but on an approximation that is too rough here."
            words += _words_of_starts(posterior)
            return Verdict("with care", words, "Use method='mcmc'.", checks, CHAIN_NOTE)
    words += _words_of_starts(posterior) + _words_of_votes(posterior)
    if answer == "yes" and (groups := groups_apart(posterior)):
        words = f"{SETTLED} But {describe_groups(groups)}."
        return Verdict("with care", words, GROUPS_ADVICE, checks, CHAIN_NOTE)
    if contradicts_equal_gaps(posterior.settings) and answer == "yes":
        return Verdict("with care", words, "Use gaps='free'.", checks, CHAIN_NOTE)
    if answer != "no" and len(posterior.consensus) == 1:
        words += " There is only one chain; several (n_chains=4) would be a stronger check."
    advice = "" if answer == "yes" else _advice(posterior)
    return Verdict(answer, words, advice, checks, CHAIN_NOTE)


def _words_of_starts(posterior: Posterior) -> str:
    """Whether the users could be divided in another way, which R-hat cannot know."""
    starts = posterior.settings.get("starts")
    if starts is None:
        return ""
    return (
        f" These clusters are the best of {starts['n_starts']} starts; the runner-up divides "
        f"{starts['same_users']:.0%} of the users the same way."
    )


def _words_of_votes(posterior: Posterior) -> str:
    """Whether votes follow Kendall's law, and what was done if they do not."""
    votes = posterior.settings.get("votes")
    if votes is None:
        return ""
    if votes["gaps"] == "free":
        words = " The votes do not fit equal gaps between neighbours, so every gap has its own size"
        return f"{words}, which makes the intervals {votes['widened']:.1f} times as wide."
    if contradicts_equal_gaps(posterior.settings):
        return " The votes contradict equal gaps between neighbours: the intervals are too narrow."
    return ""


def _answer(judged: Convergence) -> tuple[str, str]:
    if judged.is_good:
        return "yes", f"The draws have settled, and there are enough of them: {USE}"
    is_enough = judged.effective_size >= min(POOR_SIZE, judged.size_limit)
    if judged.rhat <= judged.poor_rhat and is_enough:
        words = "The draws have nearly settled: the order is about right, its intervals are rough."
        return "with care", words
    if not np.isfinite(judged.rhat):
        words = "There are too few draws, or the chains do not move, so they cannot be judged."
        return "no", words
    return "no", "The draws have not settled: another run may give another answer."


def _advice(posterior: Posterior) -> str:
    slow = posterior.settings.get("method") == "pseudo" and posterior.clicks is not None
    words = SLOW_ADVICE if slow else CLUSTER_ADVICE if posterior.n_clusters > 1 else ADVICE
    return words[0].upper() + words[1:] + "."


def _judge_draws(posterior: Posterior) -> Verdict:
    size, n_draws = posterior.effective_size, posterior.weights.size
    wanted = weighted_size_limit(n_draws)
    checks = [
        ("effective number of draws", _number(size, 0), f"{wanted:.0f} or more"),
        ("draws", f"{n_draws:,}", ""),
    ]
    if size >= wanted:
        words = f"The draws are independent, and there are enough of them: {USE}"
        return Verdict("yes", words, "", checks, DRAW_NOTE)
    words = "Few draws carry nearly all the weight, so the intervals are rough."
    answer = "with care" if size >= min(POOR_SIZE, wanted) else "no"
    return Verdict(answer, words, "Raise n_draws, or use method='mcmc'.", checks, DRAW_NOTE)


def judge_hits(
    clicks: str, stated: float, error: float, accuracy: tuple[float, float], popularity: float
) -> Verdict:
    """Whether to trust recommendations that were compared with clicks the fit had not seen.

    `clicks` says which, `stated` is the mean probability, `error` the calibration error, `accuracy`
    the share of hits with its standard error, and `popularity` the share of the most clicked items.
    """
    hits, hits_error = accuracy
    words = (
        f"The fit that pm.fit gives, judged on {clicks}, hidden from it: {hits:.1%} of its "
        f"recommendations were hits, {stated:.1%} were stated, and probabilities are off by "
        f"{100 * error:.1f} points on average"
    )
    is_below = hits + hits_error < popularity  # by more than one standard error
    is_good, is_poor = error <= GOOD_CALIBRATION, error > POOR_CALIBRATION
    advice = [] if is_good else ["Give later clicks as held_out; they correct the probabilities."]
    if hits <= popularity:
        how = "Below popularity" if is_below else "No better than popularity"
        words = f"{how}, which had {popularity:.1%} hits. {words}."
        advice.insert(0, "Recommend the most clicked items, or learn from more clicks.")
    else:
        meaning = "they mean what they say" if is_good else "trust the order, not the probabilities"
        words = f"{words}: {meaning}."
    answer = "with care" if advice else "yes"
    return Verdict("no" if is_below or is_poor else answer, words, " ".join(advice))


def _number(value: float, decimals: int) -> str:
    return f"{value:,.{decimals}f}" if np.isfinite(value) else "not available"
