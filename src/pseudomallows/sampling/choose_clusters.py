"""choose_clusters: how many clusters describe unseen users best."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.pairs import Pairs
from ..data.preferences import Preferences, check_preferences
from ..engines.executors import Executor, check_executor
from ..engines.progress import Progress, shown
from ..laws.error_rates import MODELS
from ..laws.law import Law
from ..laws.registry import make_law
from ..markup import card, table
from ..rankings import as_rng, check_alpha, check_count
from .chain import Chain, Moves, State
from .options import above_0, check_prior
from .priors import default_prior
from .start import replace_moves, start_clusters, start_one

# Each learns from two thirds (with 5 folds each user would be learnt from 4 times, not twice);
# draws over which a likelihood is a mean.
N_FOLDS, N_SNAPSHOTS = 3, 5
MAX_ROWS = 4000  # of more, some are left out: a mean score is known to 1/63 of the users' spread
LITTLE = 0.05  # of the gain of all clusters over one; at half of it sushi-like data take two more
# With fewer, a better number may not be told from sampling variation: two standard errors of a mean
# are 9 % of the users' spread.
FEW_USERS = 500
USERS_EACH, MAX_CLUSTERS = 10, 40  # a consensus of fewer users is mostly noise
LATENT_SWEEPS = 60  # before the first of these draws, where a chain keeps latent rankings
N_ANSWERS = 6  # of an unseen user; more at once are so rare that draws cannot count them
N_DRAWS = 1000  # rankings of a cluster: the likelihood of 6 answers is then known to some percent


class HeldOutScores:
    """How well each of several models describes unseen users: ``scores[model, user]``, the log
    likelihood of a user under a model learnt from other users."""

    scores: NDArray[np.float64]

    @property
    def means(self) -> NDArray[np.float64]:
        """Mean score of each model."""
        return np.asarray(self.scores.mean(axis=1))

    @property
    def errors(self) -> NDArray[np.float64]:
        """Standard error of each mean's distance from the best, user by user; 0 for the best."""
        if self.scores.shape[1] < 2:
            return np.zeros(len(self.scores))
        lost = self.scores[self.means.argmax()] - self.scores
        return np.asarray(lost.std(axis=1, ddof=1) / math.sqrt(lost.shape[1]))


@dataclass(frozen=True, eq=False)
class ClusterCurve(HeldOutScores):
    """How well each number of clusters describes unseen users.

    Attributes
    ----------
    n_clusters : array
        The numbers of clusters that were tried.
    scores : (n_tried, n_users) array
        Exact log likelihood of each user, under clusters learnt from other users.
    """

    n_clusters: NDArray[np.int64]
    scores: NDArray[np.float64]
    largest: int = MAX_CLUSTERS  # that would have been tried

    @property
    def to_predict(self) -> int:
        """The smallest number of clusters within two standard errors of the best, which describes
        unseen users well."""
        near = self.means.max() - self.means <= 2 * self.errors
        return int(self.n_clusters[near.argmax()])

    @property
    def to_describe(self) -> int:
        """The smallest number beyond which a further cluster gains little: less than a twentieth of
        what all clusters together gain over one. At most `to_predict`."""
        last = int(np.flatnonzero(self.n_clusters == self.to_predict)[0])
        means, numbers = np.maximum.accumulate(self.means[: last + 1]), self.n_clusters[: last + 1]
        gains = np.diff(means) / np.diff(numbers)
        matters = np.flatnonzero(gains >= LITTLE * (means[-1] - means[0]))
        return int(numbers[matters[-1] + 1]) if len(matters) and last else 1

    @property
    def chosen(self) -> int:
        """That of ``n_clusters="auto"``: `to_describe`."""
        return self.to_describe

    @property
    def doubt(self) -> str:
        """Why the number may be another one, in words; empty if there is no doubt."""
        n_users, best = self.scores.shape[1], int(self.n_clusters[self.means.argmax()])
        if len(self.n_clusters) == 1:
            if n_users >= 2 * USERS_EACH:
                return "nothing was compared, as largest is 1"
            return (
                f"nothing was compared: {n_users} users are too few for more than one cluster, as "
                f"each needs {USERS_EACH}; give n_clusters as a number, or largest to "
                "choose_clusters"
            )
        is_last = best == self.n_clusters[-1] and best + max(1, best // 4) > self.largest
        if is_last and self.to_describe == best:
            return (
                f"the best number, {best}, is the largest that was tried, so more may be better: "
                f"give a larger `largest` than {self.largest} to choose_clusters"
            )
        means, few = self.means, self.to_predict
        more = means.max() - means[self.n_clusters == few][0]
        if best > few and more >= LITTLE * (means.max() - means[0]) and n_users < FEW_USERS:
            return (
                f"{best} clusters describe unseen users better than {few}, but with {n_users} "
                "users the difference is within two standard errors: look at both"
            )
        return ""

    def __repr__(self) -> str:
        pairs = zip(self.n_clusters.tolist(), self.means.tolist(), strict=True)
        listed = ", ".join(f"{number}: {mean:.2f}" for number, mean in pairs)
        doubt = f"; {self.doubt}" if self.doubt else ""
        words = f"{self.to_describe} clusters to describe, {self.to_predict} to predict"
        return f"ClusterCurve({words}; mean scores {listed}{doubt})"

    def _repr_html_(self) -> str:
        """For a notebook: the score of each number of clusters, and which is chosen."""
        columns = (self.n_clusters.tolist(), self.means.tolist(), self.errors.tolist())
        rows = [
            (number, f"{mean:.3f}", f"{error:.3f}", self._use(number))
            for number, mean, error in zip(*columns, strict=True)
        ]
        head = ["clusters", "log likelihood of an unseen user", "error against the best", ""]
        words = f"{self.to_describe} to describe, {self.to_predict} to predict"
        return card("ClusterCurve", words, table(head, rows))

    def _use(self, number: int) -> str:
        uses = {"to describe": self.to_describe, "to predict": self.to_predict}
        return ", ".join(use for use, mine in uses.items() if mine == number)

    def as_settings(self) -> dict[str, Any]:
        """For the settings of a posterior, and for plots."""
        return {
            "n_clusters": self.n_clusters.tolist(),
            "means": self.means.tolist(),
            "errors": self.errors.tolist(),
            "chosen": self.chosen,
            "to_predict": self.to_predict,
            "doubt": self.doubt,
        }


def check_not_votes(prefs: Preferences) -> None:
    """Refuse to look for clusters where every person compared one pair only."""
    if prefs.is_vote:
        raise ValueError(
            "clusters need people who compared several pairs, and here each compared one, which "
            "says nothing about who resembles whom: leave n_clusters out, or give the user of each "
            "comparison"
        )


def choose_clusters(
    prefs: Preferences,
    largest: int | None = None,
    *,
    alpha: float | None = None,
    share_prior: float = 1.0,
    alpha_prior: Any = None,
    rng: np.random.Generator | int | None = None,
    executor: Executor | None = None,
    progress: Progress | bool | None = None,
    distance: str = "footrule",
) -> ClusterCurve:
    """Choose the number of clusters by the exact likelihood of users held out.

    The users are cut into three parts; for each number of clusters the mixture is learnt from two
    of them and scored on the third. Of users who compared pairs, six answers are scored, by draws
    from the clusters. To predict, take the smallest number within two standard errors
    of the best (`to_predict`), where the error is that of the difference, user by user; to
    describe, the smallest beyond which a further cluster gains little (`to_describe`), which is
    what ``n_clusters="auto"`` takes. The numbers grow by ever
    larger steps until two in a row are no better than the best so far. If the best is the largest
    that was tried, or nothing was compared, the result says so (`doubt`).

    Parameters
    ----------
    prefs : Preferences
        What is known about the users; if there are more than 4,000, a random part is used.
    largest : int, optional
        The largest number to try; default 40, and at most one for every 10 users.
    alpha : float, optional
        Concentration of all clusters; default: each has its own, estimated.
    share_prior : float
        The Dirichlet prior of their shares.
    alpha_prior : (shape, rate) or "flat", optional
        The prior of alpha, as in :func:`fit`.
    rng : numpy.random.Generator or seed, optional
        Source of randomness.
    progress : bool or callable, optional
        As in :func:`fit`; the end may come early.
    distance : str
        As in :func:`fit`; for rankings known in part and clicks, one with an exact likelihood:
        "footrule", "kendall" without gaps, or "hamming" but for clicks.

    Examples
    --------
    >>> from pseudomallows import Mallows
    >>> draws = [Mallows(c, 12).draw(50, rng=1) for c in (range(1, 7), range(6, 0, -1))]
    >>> choose_clusters(Preferences.from_rankings(np.concatenate(draws)), 3, rng=1).chosen
    2
    """
    rng = as_rng(rng)
    check_executor(executor)
    share_prior = above_0(share_prior, "share_prior")
    alpha = None if alpha is None else check_alpha(alpha)
    check_preferences(prefs)
    check_not_votes(prefs)
    errors = MODELS["bernoulli" if prefs.is_contradictory else "none"](prefs.n_items)
    law = make_law(prefs.one_row_each()[0], executor, distance, errors)
    if law.has_latent and not isinstance(prefs, Pairs):
        raise ValueError(
            f"users known in part by {distance} have no exact likelihood by which to choose the "
            "number of clusters: give n_clusters as a number"
        )
    rows = rng.permutation(law.n_rows)[:MAX_ROWS]
    law, rows = law.select(np.sort(rows)), np.argsort(np.argsort(rows))
    most = max(1, min(MAX_CLUSTERS, len(rows) // USERS_EACH))
    if largest is not None:
        most = min(check_count(largest, "largest"), max(1, len(rows) // N_FOLDS))
    folds = np.array_split(rows, N_FOLDS) if len(rows) >= 2 * N_FOLDS else [rows]
    prior = default_prior(law.n_items) if alpha_prior is None else check_prior(alpha_prior, "")
    moves = Moves(None, 1, None, None if alpha is not None else prior, share_prior, False)
    moves = replace_moves(moves, law)

    def learn(users: Law, n_clusters: int) -> Chain:
        if n_clusters == 1:
            state = start_one(users, alpha, moves, "map", rng)
        else:
            state, _ = start_clusters(users, n_clusters, alpha, moves, rng)
        return Chain(users, state, moves, rng)

    tried, scores, to_try = [], [], list(_growing(most))
    with shown(progress, "comparing numbers of clusters") as report:
        for n_clusters in to_try:
            tried.append(n_clusters)
            parts = [_held_out_scores(law, rows, fold, n_clusters, learn) for fold in folds]
            scores.append(np.concatenate(parts))
            report(len(tried), len(to_try))
            means = [score.mean() for score in scores]
            if max(means) > max(means[-2:]) and len(means) > 2:
                break
    return ClusterCurve(np.array(tried), np.array(scores), most)


def _growing(most: int) -> Iterator[int]:
    """1, 2, 3, 4, 5, 6, 7, 8, 10, 12, ...: steps of a quarter, at least 1."""
    number = 1
    while number <= most:
        yield number
        number += max(1, number // 4)


def _held_out_scores(
    law: Law,
    rows: NDArray[np.int64],
    fold: NDArray[np.int64],
    n_clusters: int,
    learn: Callable[[Law, int], Chain],
) -> NDArray[np.float64]:
    """Log of the mean likelihood of each user of a fold, over clusters learnt from the others."""
    others = np.setdiff1d(rows, fold) if len(fold) < len(rows) else rows
    chain, users, logs = learn(law.select(others), n_clusters), law.select(fold), []
    for _ in range(LATENT_SWEEPS if law.has_latent else 0):
        chain.sweep(adapt=True)
    for _ in range(N_SNAPSHOTS):
        chain.sweep(adapt=True)
        chain.sweep(adapt=True)
        if law.has_latent:
            logs.append(_answer_scores(users, chain.state, chain.rng))
        else:
            logs.append(users.scores(chain.state.clusters, chain.state.weights))
    return np.asarray(np.logaddexp.reduce(logs, axis=0) - math.log(N_SNAPSHOTS))


def _answer_scores(users: Any, state: State, rng: np.random.Generator) -> NDArray[np.float64]:
    """Log likelihood of some answers of each user, always the same ones: the mean over draws from
    the clusters of the probability that all are given."""
    each = users.prefs.one_row_each()[0]
    each, law = each.take(each.is_informative), users.errors.law(state.errors)
    said = np.flatnonzero(each.counts)
    order = np.lexsort([np.random.default_rng(0).random(len(said)), each.owners[said]])
    owners = each.owners[said][order]
    firsts = np.searchsorted(owners, np.arange(each.n_users))
    asked = said[order][np.arange(len(said)) - firsts[owners] < N_ANSWERS]
    firsts = np.searchsorted(each.owners[asked], np.arange(each.n_users))
    better, worse = each.better[asked], each.worse[asked]
    total = np.zeros(each.n_users)
    for consensus, alpha, weight in zip(state.consensus, state.alpha, state.weights, strict=True):
        draws = users.distance.draw(users.n_items, float(alpha), N_DRAWS, int(rng.integers(2**63)))
        apart = draws[:, consensus[worse] - 1] - draws[:, consensus[better] - 1]
        logs = np.where(apart > 0, law.right[abs(apart)], law.wrong[abs(apart)])
        total += weight * np.exp(np.add.reduceat(logs, firsts, axis=1)).mean(axis=0)
    return np.log(total + 0.5 / N_DRAWS)  # half a draw more: none has 0
