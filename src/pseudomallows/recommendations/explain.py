"""explain: what speaks for an item and how much, in numbers that add up.

A personal fit scores an item by the user's clicks, so its reasons are clicks, and they add up to
the score. A posterior of clusters has a probability for each, so its reasons are clusters; users
known by latent rankings have ranks: these add up to the probability.
"""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.frames import Tabular
from ..engines.executors import Threads
from ..personal.personal_fit import Fit, PersonalFit, check_fit
from ..posterior.posterior import Posterior
from ..rankings import check_count
from .choose_recommender import recommender_of
from .latent_ranks import LatentRanks
from .recommender import MAX_ERROR, Floats, Users
from .users import code_of_item, needs_latent, one_user

CLICK, POPULARITY, GIVEN, REST, CLUSTER, RANK = KINDS = (
    "click",
    "popularity",
    "given",
    "rest",
    "cluster",
    "rank",
)
ONE_USER, ONE = slice(0, 1), Threads(1)
N_SPOKEN = 3  # reasons on each side that are put into words: as many as a sentence takes


class Reasons(NamedTuple):
    """The reasons for some items and one user.

    ``amounts[reason, item]`` add up, over the reasons, to what is explained: "score" or
    "probability". `kinds` and `names` say what the reasons are; `details` have more columns, of the
    same shape as the amounts.
    """

    what: str
    kinds: list[str]
    names: list[Any]
    amounts: Floats
    details: dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Tabular):
    """What speaks for an item, for one user, and how much; it prints as sentences.

    Attributes
    ----------
    user, item
        Names.
    what : str
        What is explained: "score", by a personal fit, or "probability".
    value : float
        The score or the probability. The amounts add up to it.
    probability : float
        Probability that the item is among the user's next k.
    k : int
        Of the probability.
    kinds, names : lists
        What the reasons are, the weightiest first: "click" and the clicked item; "popularity", what
        is added for everybody; "rest", other parts of a score; "given", scores that came from
        elsewhere; "cluster" and its number; "rank" and the rank.
    amounts : array
        What each adds to the value; below 0 if it speaks against the item.
    details : dict
        More columns: for clusters the user's `membership`, the `probability` and the `rank` of the
        item there, where amount = membership x probability.
    """

    user: Any
    item: Any
    what: str
    value: float
    probability: float
    k: int
    kinds: list[str]
    names: list[Any]
    amounts: NDArray[np.float64]
    details: dict[str, NDArray[Any]] = field(default_factory=dict)

    @property
    def shares(self) -> NDArray[np.float64]:
        """The amounts as shares of the total, for and against: without their signs they add up
        to 1."""
        return self.amounts / max(float(np.abs(self.amounts).sum()), 1e-300)

    def to_columns(self, digits: int | None = None) -> dict[str, Any]:
        """One row a reason: kind, reason, amount, share, and the details."""
        columns = {"amount": self.amounts, "share": self.shares} | self.details
        rounded = {
            name: values if digits is None or values.dtype.kind != "f" else values.round(digits)
            for name, values in columns.items()
        }
        return {"kind": self.kinds, "reason": self.names} | rounded

    def __str__(self) -> str:
        """The reasons in words."""
        probability = (
            f"The probability that it is among the next {self.k} is {self.probability:.1%}."
        )
        return f"{_quoted(self.item)} for {_quoted(self.user)}: {self._words()}. {probability}"

    def _words(self) -> str:
        if self.kinds[0] == CLUSTER:
            return "; ".join(self._cluster_words(row) for row in range(min(len(self.kinds), 3)))
        if self.kinds[0] == RANK:
            ranks = f"{min(self.names)} to {max(self.names)}"
            return f"among the ranks {ranks} of this user it most likely has {self.names[0]}"
        if CLICK not in self.kinds:
            return f"no click says anything; the score is that of {self.names[0]}"
        sides = []
        for sign, words in ((1, "for it"), (-1, "against it")):
            mine = [row for row in range(len(self.kinds)) if sign * self.amounts[row] > 0]
            listed = ", ".join(self._part_words(row) for row in mine[:N_SPOKEN])
            more = f" and {len(mine) - N_SPOKEN} more" if len(mine) > N_SPOKEN else ""
            if mine:
                verb = "speak" if len(mine) > 1 else "speaks"
                sides.append(f"{verb} {words}: {listed}{more}")
        return "; ".join(sides) or "nothing speaks for or against it"

    def _part_words(self, row: int) -> str:
        """A reason and its share; the weightiest one says of what."""
        name = _quoted(self.names[row]) if self.kinds[row] == CLICK else str(self.names[row])
        whole = " of all that counts" if row == 0 else ""
        return f"{name} ({abs(self.shares[row]):.0%}{whole})"

    def _cluster_words(self, row: int) -> str:
        mine = {name: values[row] for name, values in self.details.items()}
        share = f"the user's with probability {mine['membership']:.0%}"
        return (
            f"in cluster {self.names[row] + 1} ({share})"
            f" it has rank {mine['rank']} and a probability of {mine['probability']:.1%}"
        )


def _quoted(name: Any) -> str:
    """A name as one writes it: no np.int64(7)."""
    return repr(name.item() if isinstance(name, np.generic) else name)


def explain(
    posterior: Fit, user: Any = None, item: Any = None, *, clicks: Any = None, k: int = 10
) -> Explanation:
    """Say what speaks for an item, for one user, in numbers that add up.

    In a personal fit, the score of an item is a sum: what each of the user's clicks adds, and what
    is added for everybody. These are the reasons, and the probability rises with the score. In
    other fits, the probability is the sum over the clusters of the user's membership times the
    item's probability there. For users known by rankings or comparisons, or by clicks by another
    distance than the footrule and Kendall's, it is the sum over the next k ranks in the latent
    rankings that the fit has kept.

    Parameters
    ----------
    posterior : Posterior or PersonalFit
        From a fit of clicks; or of partial rankings or comparisons with `keep_latent`.
    user : optional
        Name of a user of the fit.
    item
        Name of an item that the user has not clicked.
    clicks : optional
        Clicks of a new user instead: a list of items, or the forms of :func:`recommend` for one
        user.
    k : int
        The probability is that of being among the next k.

    Examples
    --------
    >>> from pseudomallows import Preferences, fit
    >>> log = {i: ["tea", "milk"] if i % 3 else ["ale", "rum", "tea"] for i in range(30)}
    >>> posterior = fit(Preferences.from_clicks(log), "personal", rng=1)
    >>> why = explain(posterior, item="milk", clicks=["tea"], k=1)
    >>> why.kinds[0], why.names[0], bool(abs(why.amounts.sum() - why.value) < 1e-12)
    ('click', 'tea', True)
    """
    check_fit(posterior)
    window = min(check_count(k, "k"), posterior.n_items)
    code = code_of_item(posterior, item)
    if needs_latent(posterior, clicks):
        ranks = LatentRanks(posterior, [user])
        _check_unseen(user, item, bool(ranks.is_clicked[0, code]))
        reasons, probability = (
            rank_reasons(posterior, user, code, window),
            ranks.probabilities(window)[0],
        )
        found = _explanation(user, item, reasons, float(probability[0, code]), window)
        return replace(found, backend=posterior.settings.get("backend"))
    users = one_user(posterior, user, clicks)
    name = users.clicks.users[0]
    _check_unseen(name, item, code in users.clicks.codes)
    reasons = reasons_of_one(posterior, users, np.array([code]), window)
    probabilities = recommender_of(posterior).probabilities(users, window, window, MAX_ERROR, ONE)
    stated = float(probabilities.table(ONE_USER)[0][0, code])
    found = _explanation(name, item, reasons, stated, window)
    return replace(found, backend=posterior.settings.get("backend"))


def _check_unseen(user: Any, item: Any, is_clicked: bool) -> None:
    if is_clicked:
        raise ValueError(
            f"{user!r} has clicked {item!r} already: ask about an item not clicked yet"
        )


def _explanation(user: Any, item: Any, reasons: Reasons, probability: float, k: int) -> Explanation:
    """Of one item, the weightiest reasons first."""
    amounts = reasons.amounts[:, 0]
    value = float(amounts.sum())
    order = np.argsort(-np.abs(amounts), kind="stable")
    details = {name: values[order, 0] for name, values in reasons.details.items()}
    kinds, names = ([listed[row] for row in order] for listed in (reasons.kinds, reasons.names))
    return Explanation(
        user, item, reasons.what, value, probability, k, kinds, names, amounts[order], details
    )


def reasons_of_one(posterior: Fit, users: Users, items: NDArray[np.int64], window: int) -> Reasons:
    """The reasons for some items, for one user who is known by clicks."""
    if isinstance(posterior, PersonalFit):
        return _personal_reasons(posterior, users, items)
    return _cluster_reasons(posterior, users, items, window)


def _personal_reasons(fit: PersonalFit, users: Users, items: NDArray[np.int64]) -> Reasons:
    """The clicks, and what is added for everybody; what neither explains is the rest."""
    scores = fit.scores_for(users.clicks, ONE_USER, users.rows)[:, items]
    clicked = users.clicks.codes
    if fit.is_given:
        return Reasons("score", [GIVEN], ["the scores that were given"], scores, {})
    if not len(clicked):
        return Reasons("score", [POPULARITY], ["popularity"], scores, {})
    kinds, names = [CLICK] * len(clicked), fit.items[clicked].tolist()
    parts = [np.stack([fit.item_scores.row(click)[items] for click in clicked.tolist()])]
    if fit.recency is not None and fit.recency.is_known(users.clicks):
        parts[0] = parts[0] * fit.recency.weights_of(users.clicks)[:, None]
    if fit.bias.size:
        kinds.append(POPULARITY)
        names.append("popularity")
        parts.append(fit.bias[None, items])
    amounts = np.concatenate(parts)
    rest = scores - amounts.sum(axis=0)
    if np.abs(rest).max() > 1e-5 * max(np.abs(amounts).max(), np.abs(scores).max()):  # not rounding
        kinds.append(REST)
        names.append("everything else")
        amounts = np.concatenate([amounts, rest])
    return Reasons("score", kinds, names, amounts, {})


def _cluster_reasons(
    posterior: Posterior, users: Users, items: NDArray[np.int64], window: int
) -> Reasons:
    """The clusters: how likely the user belongs to each, times the item's probability there."""
    memberships, amounts = recommender_of(posterior).by_cluster(users, window, window, ONE)
    every = range(posterior.n_clusters)
    amounts, mine = amounts[:, items], np.repeat(memberships[:, None], len(items), axis=1)
    details = {
        "membership": mine,
        "probability": np.divide(amounts, mine, out=np.zeros_like(amounts), where=mine > 0),
        "rank": np.stack([posterior.point_consensus(cluster=each)[items] for each in every]),
    }
    return Reasons("probability", [CLUSTER] * len(every), list(every), amounts, details)


def rank_reasons(posterior: Posterior, user: Any, item: int, window: int) -> Reasons:
    """For a user with latent rankings: the ranks in them, those after the clicks."""
    ranks = LatentRanks(posterior, [user])
    first = int(ranks.n_clicks[0])
    probabilities = ranks.rank_probabilities()[item, first : first + window]
    names = list(range(first + 1, first + 1 + len(probabilities)))
    return Reasons("probability", [RANK] * len(names), names, probabilities[:, None], {})
