"""Is a fit good? One list of checks, which warnings, verdict, report, `info` and service print.

Each check is a function of a posterior that returns a :class:`Check`, or None where it does not
apply; `CHECKS` lists them. To add one, write the function and add it there. All limits stand here.

How large may R-hat be? As large as the largest of so many numbers (the rank of each item and alpha,
cluster by cluster) is among 200 independent draws, in all but one of a thousand fits: 1.07 for 10
items, 1.1 for 200, 1.12 for 17 clusters of 200 items. Draws of a larger effective size stay far
below; those of a smaller one fail by that size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._warn import warn
from ..data.pairs import Pairs
from ..engines.memory import DENSE_ITEMS
from ..markup import plain
from .diagnostics import (
    AgreementWarning,
    AlphaWarning,
    ClustersWarning,
    ContradictionWarning,
    ConvergenceWarning,
    EffectiveSizeWarning,
    FitWarning,
    MatchedWarning,
    ModelWarning,
    UnconnectedWarning,
    VotesWarning,
    in_blocks,
    rhat,
)

if TYPE_CHECKING:
    from .posterior import Posterior

GOOD_SIZE = 200.0  # effective draws: a probability of 1/2 is then known to 0.035
MODES_SIZE = 2000.0  # the same of modes, whose probability many numbers share: to 0.011
LEAST_SIZE = 50.0  # enough for the order: the error of a mean rank is a seventh of its spread
# Between the old rule of 1.1 and the 1.01 of Vehtari et al. 2021; 1.2: Brooks and Gelman 1998.
GOOD_RHAT, POOR_RHAT = 1.05, 1.2
FAILURE_RATE = 0.001  # of good chains, by their largest R-hat: one fit of 1,000 is blamed wrongly
WORST = (
    0.01  # of the effective sizes of all items: the least of so many is low by sampling variation
)
# How much further apart draws get: a fit takes 16 times as long at most; tempered, of
# which there are 5 times as many, 20 times.
MOST_THINNING, MOST_OF_MODES = 16, 4
# Of the model check, of people who do not share one order. If a share p has the reverse one, the
# split is 4 p (1 - p): these are 4 and 15 %; and 0.5 is that of two camps with unrelated orders.
GOOD_SPLIT, POOR_SPLIT = 0.15, 0.5
# Below it, sampling variation explains what splits people: with 16 replicates, t of 15 degrees of
# freedom, one good fit of 500 is above it.
LEAST_Z = 3.5
LARGEST_P_VALUE = 0.01  # below it votes contradict equal gaps: one good fit of 100 is blamed
# Of the draws of the matched law, by their exact weights: below, errors are 1.4 times as large.
LEAST_EFFECTIVE_SHARE = 0.5
MOST_SHOWN = 6  # items that a message names: of 12 letters each, a line
ANSWERS = ("yes", "with care", "no")  # from good to bad

ADVICE = "Raise n_draws, warmup or thin."
SLOW_ADVICE = (
    "On clicks method='pseudo' moves too slowly, so its intervals are too narrow: use "
    "method='mcmc', which is exact, or 'matched', which is faster; to recommend, use 'personal'."
)
CLUSTER_ADVICE = (
    "Raise n_draws or thin; if the chains found different clusters (compare "
    "posterior.chain_memberships), use fewer clusters."
)


@dataclass(frozen=True)
class Check:
    """One question about a fit.

    Attributes
    ----------
    name : str
        What is measured.
    value, limit : float
        The figure, and what is wanted: at most `limit`, or with `is_least` at least.
        NaN where there is no such number.
    answer : str
        "yes", "with care" or "no".
    words, advice : str
        What it means for the numbers of the fit, and what to do.
    is_note : bool
        Are the words worth saying even if all is well?
    """

    name: str
    value: float
    limit: float
    answer: str
    words: str
    advice: str = ""
    is_least: bool = False
    is_note: bool = False
    form: str = ".3g"
    warning: type[FitWarning] | None = None  # None: the verdict alone tells
    figures: dict[str, Any] = field(default_factory=dict)  # attributes of the warning

    @property
    def found(self) -> str:
        """The value as text."""
        if np.isnan(self.value):
            return "not available"
        return "above 100" if self.value == np.inf else format(self.value, self.form)

    @property
    def wanted(self) -> str:
        """The limit as text."""
        bound = "more" if self.is_least else "less"
        return "" if np.isnan(self.limit) else f"{format(self.limit, self.form)} or {bound}"

    def __str__(self) -> str:
        figures = f" ({self.name}: {self.found}; want {self.wanted})" if self.wanted else ""
        return f"{self.words.removesuffix('.')}{figures}. {self.advice}".rstrip()

    def warned_of(self, warning: type[FitWarning], **figures: Any) -> Check:
        """The same with a warning, if it is not passed, that has these attributes."""
        return replace(self, warning=warning, figures=figures)

    def row(self) -> dict[str, str]:
        """For tables, settings and JSON."""
        row = {"check": self.name, "found": self.found, "wanted": self.wanted}
        return row | {"answer": self.answer, "words": self.words, "advice": self.advice}


@dataclass(frozen=True, repr=False)
class Verdict:
    """Whether to trust a fit: "yes", "with care" or "no", the worst answer of its `checks`; what
    that means, and what to do."""

    answer: str
    words: str
    advice: str
    checks: Sequence[Check]

    @classmethod
    def of(cls, checks: Sequence[Check]) -> Verdict:
        """The verdict of some checks, the worst first."""
        ranked = sorted(checks, key=lambda each: -ANSWERS.index(each.answer))
        flagged = [each for each in ranked if each.answer != "yes"]
        said = [each for each in ranked if not flagged or each in flagged or each.is_note]
        words, advice = (
            " ".join(dict.fromkeys(text for text in texts if text))
            for texts in ((each.words for each in said), (each.advice for each in flagged))
        )
        return cls(ranked[0].answer, words, advice, checks)

    def __repr__(self) -> str:
        names = ("check", "found", "wanted", "answer")
        rows = [{name: check.row()[name] for name in names} for check in self.checks]
        return f"{self.answer}: {self.words} {self.advice}".rstrip() + f"\n{plain(rows)}"


def diagnose(posterior: Posterior) -> list[Check]:
    """All checks that apply to a fit.

    Examples
    --------
    >>> from pseudomallows import fit, simulate_rankings
    >>> posterior = fit(simulate_rankings(30, 5, alpha=3, rng=1).preferences, "mcmc", rng=1)
    >>> {check.answer for check in diagnose(posterior)}
    {'yes'}
    """
    checks = (check(posterior) for check in CHECKS)
    return [check for check in checks if check is not None]


def warn_of(checks: Sequence[Check]) -> None:
    """Warn of the checks that are not passed, on behalf of the caller of `fit`: once for each kind
    of warning."""
    flagged = [each for each in checks if each.warning is not None and each.answer != "yes"]
    for check in {each.warning: each for each in reversed(flagged)}.values():
        assert check.warning is not None
        warn(check.warning(check))


def thinning_needed(posterior: Posterior, thinning: int) -> int:
    """How many times further apart the draws of chains should be: 1 if they are good, or at the
    limit.

    `thinning` is how much further apart they are already than at first. Chains that disagree, or
    would have too few draws at the limit too, are thinned once more only: on separate modes they
    stay as they are. Draws that are independent already get no better.
    """
    mixing, size = check_mixing(posterior), check_size(posterior)
    assert mixing is not None
    is_best = size.answer == "yes" or size.value >= posterior.weights.size / 2
    most = MOST_OF_MODES if posterior.settings.get("tempered") else MOST_THINNING
    if (mixing.answer == "yes" and is_best) or thinning >= most:
        return 1
    if mixing.answer == "no" or size.value * most / thinning < size.limit:
        return 2 if thinning == 1 else 1
    wanted = max(2.0, size.limit / max(size.value, 1.0))
    return int(min(2 ** np.ceil(np.log2(wanted)), most // thinning))


def is_mixed(posterior: Posterior) -> bool:
    """Do the chains agree?"""
    mixing = check_mixing(posterior)
    return mixing is not None and mixing.answer == "yes"


def is_apart(posterior: Posterior) -> bool:
    """Have the chains ended in different modes?"""
    mixing = check_mixing(posterior)
    return mixing is not None and mixing.answer == "no"


def is_slow(posterior: Posterior) -> bool:
    """Have most chains of one consensus moved on between their first half and their second, so that
    they may agree if they run longer? In different modes each would agree with itself."""
    ranks = posterior.consensus[:, :, 0]
    worst = [in_blocks(rhat, chain[None]).max() for chain in ranks]
    return bool(np.median(worst) > POOR_RHAT)


def check_agreement(posterior: Posterior) -> Check | None:
    """Do the users agree at all?"""
    if posterior.alpha.any():
        return None
    n_users = int(posterior.settings.get("n_users", posterior.n_users))
    words = f"The {n_users} users agree no more than by chance, so every order is equally likely."
    advice = "Do not use this order. Look for groups with n_clusters='auto', or use method='mcmc'."
    check = Check("agreement (alpha)", 0.0, np.nan, "no", words, advice)
    return check.warned_of(AgreementWarning, n_users=n_users)


def check_stuck(posterior: Posterior) -> Check | None:
    """Is a chain stuck where the posterior hardly has any mass?"""
    stuck = posterior.settings.get("stuck")
    if not stuck:
        return None
    words = f"Chains {stuck} are stuck far from the best order, so the draws are wrong."
    check = Check("stuck chains", len(stuck), 0, "no", words, ADVICE)
    return check.warned_of(ConvergenceWarning, **_figures(posterior))


def check_mixing(posterior: Posterior) -> Check | None:
    """Do the chains agree?"""
    if not _has_chains(posterior):
        return None
    rhat, limit = _largest_rhat(posterior), _rhat_limit(posterior)
    if rhat <= limit:
        answer, words = "yes", "The chains agree."
    elif rhat <= limit * POOR_RHAT / GOOD_RHAT:
        answer, words = "with care", "The chains nearly agree: intervals are rough."
    else:
        answer, words = "no", "The chains have not converged: another run may give other numbers."
        if np.isnan(rhat):
            words = "There are too few draws to compare the chains."
    n_chains = len(posterior.consensus)
    if n_chains == 1:
        words += " There is only one chain; several (n_chains=4) would be a stronger check."
    advice = "" if answer == "yes" else _advice(posterior)
    figures = ("largest R-hat", rhat, round(limit, 3), answer, words, advice)
    check = Check(*figures, is_note=n_chains == 1, form=".3f")
    return check.warned_of(ConvergenceWarning, **_figures(posterior))


def check_size(posterior: Posterior) -> Check:
    """Are there enough draws?"""
    size, n_draws = effective_size(posterior), posterior.weights.size
    has_chains, went_on = _has_chains(posterior), "thinning" in posterior.settings
    # a number of draws that was asked for is no reason to warn, if they are good for their number
    is_as_asked = not went_on and size >= n_draws / 4
    limit = _size_limit(posterior)
    if size >= limit:
        answer, words = "yes", "There are enough draws: use the order and its intervals."
    elif size >= LEAST_SIZE:
        answer, words = "with care", "There are enough draws for the order, but few for its "
        words += "intervals and probabilities: these are rough."
    else:
        answer, words = "no", "There are too few draws, even for the order."
    advice = _advice(posterior) if has_chains else "Raise n_draws, or use method='mcmc'."
    if answer == "yes":
        advice = ""
    elif _in_time(posterior):
        advice, is_as_asked = "Give it more time (seconds=).", False
    elif is_as_asked:
        need = int(np.ceil(limit / max(size, 1.0) * posterior.weights.shape[1]))
        advice = f"Raise n_draws to {need} or more, or leave it out."
    elif not has_chains:
        words = "A few draws carry nearly all the weight. " + words
    figures = ("effective number of draws", size, limit, answer, words, advice)
    check = Check(*figures, is_least=True, form=",.0f")
    if is_as_asked:
        return check
    if has_chains:
        return check.warned_of(ConvergenceWarning, **_figures(posterior))
    return check.warned_of(
        EffectiveSizeWarning, effective_size=size, n_draws=n_draws, size_limit=limit
    )


def check_time(posterior: Posterior) -> Check | None:
    """How far did a fit with a time limit get?"""
    if not (answer := _in_time(posterior)):
        return None
    words = f"When the time was up, {answer['stage']} knew each rank probability to within "
    words += f"{answer['error']:.2g} (a standard error)."
    return Check("largest error stated", answer["error"], np.nan, "yes", words, is_note=True)


def check_matched(posterior: Posterior) -> Check | None:
    """Is the matched law of clicks near the exact one?"""
    matched = posterior.settings.get("matched")
    if matched is None:
        return None
    share, words, advice = matched["effective_share"], "", ""
    if share < LEAST_EFFECTIVE_SHARE:
        words = "The approximation of method='matched' is too rough here: the order is about right,"
        words, advice = words + " its intervals are not.", "Use method='mcmc', which corrects it."
    answer, limit = "with care" if words else "yes", LEAST_EFFECTIVE_SHARE
    figures = ("draws by their exact weights", share, limit, answer, words, advice)
    check, n_draws = Check(*figures, is_least=True, form=".0%"), len(matched["differences"])
    return check.warned_of(MatchedWarning, effective_share=share, n_draws=n_draws)


def check_alpha(posterior: Posterior) -> Check | None:
    """Do the data bound the alpha of each cluster?"""
    clusters = posterior.settings.get("unbounded")
    if not clusters:
        return None
    medians = np.median(posterior.alpha, axis=(0, 1))[clusters].tolist()
    shown = ", ".join(
        f"cluster {cluster + 1}: median {median:.3g}"
        for cluster, median in zip(clusters, medians, strict=True)
    )
    shown = f"median {medians[0]:.3g}" if posterior.n_clusters == 1 else shown
    empty = [str(one + 1) for one in clusters if one not in posterior.labels]
    sound = "the order is sound, probabilities are not."
    if empty:
        sound = f"no user is most likely in cluster {' or '.join(empty)}, so ignore its order."
    words = (
        f"The data put no upper limit on alpha ({shown}): one consensus agrees with all users, so "
        f"the prior alone decides how much they agree; {sound}"
    )
    advice = "Use fewer clusters or give alpha." if posterior.n_clusters > 1 else "Give alpha."
    check = Check("clusters without a limit", len(clusters), 0, "with care", words, advice)
    return check.warned_of(AlphaWarning, clusters=clusters, medians=medians)


def check_one_order(posterior: Posterior) -> Check | None:
    """Do people share one order? See `model_check`."""
    measured = posterior.settings.get("model_check")
    if measured is None:
        return None
    split = measured["split"] if measured["z"] >= LEAST_Z else 0.0
    answer = ANSWERS[int(split > GOOD_SPLIT) + int(split > POOR_SPLIT)]
    words = advice = ""
    if answer != "yes":
        words = "People do not share one order: "
        words += "some rank quite differently, so this order is that of the majority."
        advice = "Look for groups with n_clusters='auto'."
    if answer == "no":
        words = "People do not share one order: groups of them differ more than they have in "
        words += "common, so this order describes nobody well."
    if answer != "yes" and posterior.kind == "clicks":
        advice += " To recommend, use method='personal', which needs no common order."
    check = Check("split between people", split, GOOD_SPLIT, answer, words, advice, form=".2f")
    return check.warned_of(ModelWarning, split=split)


def check_groups(posterior: Posterior) -> Check | None:
    """Were all items compared with each other, directly or through others?"""
    groups = posterior.data.groups() if isinstance(posterior.data, Pairs) else []
    if len(groups) < 2:
        return None
    words = (
        f"{describe_groups(groups)}. The order of items of different groups comes from the prior "
        "alone."
    )
    advice = "Use the order within each group only, or add comparisons across the groups."
    check = Check("groups of items", len(groups), 1, "with care", words, advice)
    return check.warned_of(UnconnectedWarning, groups=groups)


def check_votes(posterior: Posterior) -> Check | None:
    """Do votes follow Kendall's law, whose gaps between neighbours are equal?"""
    votes = posterior.settings.get("votes")
    if votes is None:
        return None
    name, p_value = "p-value of equal gaps", votes["p_value"]
    if votes["gaps"] == "free":
        words = "The votes do not fit equal gaps between neighbours, so every gap has its own size"
        words += f", which makes the intervals {votes['widened']:.1f} times as wide."
        return Check(name, p_value, np.nan, "yes", words, is_note=True)
    words = advice = ""
    if p_value < LARGEST_P_VALUE:
        words = "The votes contradict equal gaps between neighbours: the intervals are too narrow, "
        words += "and items that mostly met strong ones may be ranked too low."
        advice = "Leave gaps out, or use gaps='free'."
    answer = "with care" if words else "yes"
    check = Check(name, p_value, LARGEST_P_VALUE, answer, words, advice, is_least=True)
    return check.warned_of(VotesWarning, p_value=p_value)


def check_contradictions(posterior: Posterior) -> Check | None:
    """Did users contradict themselves, and nobody said how to take that?"""
    words = posterior.settings.get("contradictions")
    return None if words is None else contradiction_check(words, {})


def contradiction_check(words: str, figures: dict[str, Any]) -> Check:
    """The check of users who contradict themselves, as `describe_contradictions` puts it."""
    words += ". So the fit assumes that some answers are wrong (errors='bernoulli')."
    advice = "Give errors='bernoulli' to keep that, or 'logistic'."
    check = Check("contradictory answers", np.nan, np.nan, "with care", words, advice)
    return check.warned_of(ContradictionWarning, **figures)


def check_starts(posterior: Posterior) -> Check | None:
    """Could the users be divided in another way? R-hat cannot know."""
    starts = posterior.settings.get("starts")
    if starts is None:
        return None
    gap, words = starts.get("gap"), f"These clusters are the best of {starts['n_starts']} starts; "
    if gap is None:
        words += "all good ones found the same."
        return Check("lead over the next start", np.inf, np.nan, "yes", words, is_note=True)
    words += (
        f"the next, {gap:.1f} log units behind, divides {starts['same_users']:.0%} of the users "
        "the same way."
    )
    return Check("lead over the next start", gap, np.nan, "yes", words, is_note=True, form=".1f")


def check_tempering(posterior: Posterior) -> Check | None:
    """Did chains need help to cross between modes?"""
    tempered = posterior.settings.get("tempered")
    if tempered is None:
        return None
    value, error = tempered["log_evidence"], tempered["log_evidence_error"]
    words = (
        f"Parallel tempering with {len(tempered['powers'])} temperatures let the chains cross "
        f"between modes; the log evidence is {value:.2f} ± {error:.2f}."
    )
    return Check("log evidence", value, np.nan, "yes", words, is_note=True, form=".2f")


def check_number(posterior: Posterior) -> Check | None:
    """Was the number of clusters really chosen?"""
    curve = posterior.settings.get("curve")
    if curve is None or not curve.get("doubt"):
        return None
    words = f"n_clusters='auto': {curve['doubt']}."
    check = Check("clusters", posterior.n_clusters, np.nan, "with care", words)
    return check.warned_of(ClustersWarning)


CHECKS: list[Callable[[Posterior], Check | None]] = [
    check_agreement,
    check_stuck,
    check_mixing,
    check_size,
    check_time,
    check_matched,
    check_alpha,
    check_one_order,
    check_groups,
    check_votes,
    check_contradictions,
    check_starts,
    check_tempering,
    check_number,
]


def rhat_limit(n_numbers: int, n_chains: int) -> float:
    """The largest R-hat of so many numbers that 200 independent draws have in all but one of a
    thousand fits, by the F distribution.

    >>> [round(rhat_limit(n_numbers, 4), 2) for n_numbers in (11, 201, 17 * 201)]
    [1.07, 1.1, 1.12]
    """
    from scipy.special import betaincinv

    n_halves = 2 * n_chains
    half = max(GOOD_SIZE / n_halves, 2.0)
    # a number has two R-hats, of what it is and of how far it is from its median
    above, below = (n_halves - 1) / 2, n_halves * (half - 1) / 2  # half the degrees of freedom
    share = betaincinv(below, above, FAILURE_RATE / (2 * n_numbers))
    ratio = (1 / share - 1) * below / above
    return max(GOOD_RHAT, float(np.sqrt((ratio + half - 1) / half)))


def describe_contradictions(n_users: int, n_all: int, user: Any, cycle: list[Any]) -> str:
    """Who gives contradictory answers, and which.

    >>> describe_contradictions(1, 60, "bob", ["tea", "ale"])
    "1 of 60 users gives contradictory answers: user 'bob' prefers 'tea' to 'ale' to 'tea'"
    """
    path = [repr(item) for item in [*cycle, cycle[0]]]
    if len(path) > MOST_SHOWN + 1:  # a cycle may be as long as there are items
        path[MOST_SHOWN - 1 : -1] = [f"... ({len(path) - MOST_SHOWN} more) ..."]
    shown = " to ".join(path)
    verb = "gives" if n_users == 1 else "give"
    who = f"{n_users} of {n_all} users {verb} contradictory answers"
    return f"{who}: user {user!r} prefers {shown}"


def describe_groups(groups: list[list[Any]]) -> str:
    """How many groups of items were never compared with each other, and the first items of some.

    >>> print(describe_groups([["a", "b", "c", "d"], ["x"]]).partition(": ")[2])
    'a', 'b', 'c', ... (4 items); 'x' (1 item)
    """
    shown = [
        f"{', '.join(map(repr, group[:3]))}{', ...' if len(group) > 3 else ''} "
        f"({len(group)} item{'s' if len(group) > 1 else ''})"
        for group in groups[:MOST_SHOWN]
    ]
    shown += ["..."] if len(groups) > MOST_SHOWN else []
    words = f"The items form {len(groups)} groups that were never compared with each other"
    return f"{words}: {'; '.join(shown)}"


def _has_chains(posterior: Posterior) -> bool:
    """Are the draws of Markov chains, or independent with weights?"""
    settings = posterior.settings
    has_run = settings.get("method") == "mcmc" or _in_time(posterior).get("stage") == "chains"
    return has_run or not posterior.is_full or posterior.n_clusters > 1


def _in_time(posterior: Posterior) -> dict[str, Any]:
    """What a fit with a time limit says of its answer."""
    return dict(posterior.settings.get("in_time", {}))


def _largest_rhat(posterior: Posterior) -> float:
    return float(np.max([each.worst_rhat for each in posterior.all_diagnostics]))


def _rhat_limit(posterior: Posterior) -> float:
    n_items = min(posterior.n_items, DENSE_ITEMS)
    return rhat_limit(posterior.n_clusters * (n_items + 1), len(posterior.consensus))


def _size_limit(posterior: Posterior) -> float:
    """The effective size that intervals need."""
    return MODES_SIZE if posterior.settings.get("tempered") else GOOD_SIZE


def effective_size(posterior: Posterior) -> float:
    """The effective number of draws: of the worst alpha and of the worst item; of more than 100
    items, over all clusters, of all but the worst in a hundred, whose estimates are low by
    sampling variation."""
    if not _has_chains(posterior):
        return round(posterior.effective_size, 6)
    clusters = posterior.all_diagnostics
    ranks = np.concatenate([each.rank_effective_size for each in clusters])
    of_alpha = min(each.alpha_effective_size for each in clusters)
    return float(min(np.quantile(ranks, WORST, method="lower"), of_alpha))


def _figures(posterior: Posterior) -> dict[str, Any]:
    """What a warning of chains carries."""
    return {
        "rhat": _largest_rhat(posterior),
        "effective_size": effective_size(posterior),
        "stuck": posterior.settings.get("stuck", []),
        "rhat_limit": _rhat_limit(posterior),
        "size_limit": _size_limit(posterior),
    }


def _advice(posterior: Posterior) -> str:
    """What to do about chains that disagree, or are short."""
    if posterior.settings.get("method") == "pseudo" and posterior.kind == "clicks":
        return SLOW_ADVICE
    return CLUSTER_ADVICE if posterior.n_clusters > 1 else ADVICE
