"""A blend of several scores from item to item, its weights learnt on inner splits of the clicks.

Five times one click of each user is hidden, every part is learnt without it, and weights are sought
by which the hidden items come among the first. The result is one matrix again, and a bias.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...engines.executors import Executor
from ...kernels.item_weights import value_of_steps
from ...posteriors.personal import clicks_matrix
from ...preferences import Clicks
from ...preferences.hide import hide_clicks
from .parts import Part, Popularity, Products, pool_for

N_SPLITS, N_ROUNDS = 5, 6
STEPS = (0.1, 0.2, 0.4, 0.8)  # what is added to a part, in units of the sum of the weights
MAX_SCORED = 2500  # users whose hidden clicks are judged, and on whom spreads are measured
MAX_PAIRS = 2_500_000  # of those users and items: with more items, fewer users
MIN_SCORED, MIN_ITEMS, MAX_ITEMS = 50, 10, 4000
FAR = -1e30  # how far what was clicked is behind
Floats = NDArray[np.float64]
Leads = NDArray[np.float32]


@dataclass(frozen=True)
class Blend:
    """Parts of a score, their weights, which add up to 1, and what the inner splits said.

    `worths[part]` is what the objective loses without the part (for a part alone: what it is above
    popularity), and `errors[part]` the standard error of that.
    """

    parts: tuple[Part, ...]
    weights: tuple[float, ...]
    objective: float
    worths: tuple[float, ...] = ()
    errors: tuple[float, ...] = ()

    def settings(self) -> list[dict[str, Any]]:
        """For the settings of a fit, the largest weight first."""
        rows = zip(self.parts, self.weights, self.worths, self.errors, strict=True)
        found = [
            {"part": part.name, "weight": weight, "worth": worth, "error": error}
            for part, weight, worth, error in rows
        ]
        return sorted(found, key=lambda row: -float(row["weight"]))

    def learn(self, clicks: Clicks, sample: NDArray[np.int64], executor: Executor) -> "Learnt":
        """One matrix and a bias, from all of these clicks; spreads are those of a `sample`.

        The blend is scaled to the spread of the popularity, which is in shares of the users.
        """
        products, seen = Products(clicks, executor), clicks.take(sample)
        weights, bias = np.zeros((clicks.n_items, clicks.n_items)), np.zeros(clicks.n_items)
        shares = _shares(clicks)
        unit = _spread(_scores(seen, None, shares), seen)
        for part, weight in zip(self.parts, self.weights, strict=True):
            if isinstance(part, Popularity):
                bias += weight / unit * shares
            else:
                found = part.learn(products)
                weights += weight / _spread(_scores(seen, found, None), seen) * found
        unit /= _spread(_scores(seen, weights, bias), seen)
        return Learnt(weights * unit, bias * unit if bias.any() else np.empty(0))


@dataclass(frozen=True, eq=False)
class Learnt:
    """``item_weights[clicked, item]`` and ``bias[item]``, empty if it is 0."""

    item_weights: Floats
    bias: Floats = field(default_factory=lambda: np.empty(0))


def _scores(seen: Clicks, weights: Floats | None, bias: Floats | None) -> Floats:
    """``scores[user, item]``."""
    scores = np.zeros((seen.n_users, seen.n_items))
    if weights is not None:
        scores += clicks_matrix(seen.starts, seen.codes, seen.n_items) @ weights
    return scores if bias is None else scores + bias


def _shares(clicks: Clicks) -> Floats:
    """Share of the people who clicked each item."""
    return np.asarray(clicks.item_counts() / max(int(clicks.weights.sum()), 1))


def _owners(seen: Clicks) -> NDArray[np.int64]:
    return np.repeat(np.arange(seen.n_users), seen.n_clicks)


def _spread(scores: Floats, seen: Clicks) -> float:
    """Standard deviation of the scores of what users have not clicked; 1 if all are the same."""
    unseen = np.ones(scores.shape, dtype=bool)
    unseen[_owners(seen), seen.codes] = False
    return float(scores[unseen].std()) or 1.0


def why_not(clicks: Clicks) -> str | None:
    """Why there is no blend for such clicks, in words; None if there is."""
    n_items, n_scored = clicks.n_items, len(scorable(clicks))
    if n_items > MAX_ITEMS:
        return (
            f"one regression, since there are more than {MAX_ITEMS:,} items: a blend for so many "
            "is not written yet, and would take hours"
        )
    if n_items < MIN_ITEMS:
        return f"one regression, since there are fewer than {MIN_ITEMS} items"
    if n_scored < MIN_SCORED:
        return f"one regression, since fewer than {MIN_SCORED} users have two clicks or more"
    return None


def scorable(clicks: Clicks) -> NDArray[np.int64]:
    """The users of whom one click can be hidden."""
    return np.flatnonzero((clicks.n_clicks > 1) & clicks.is_informative)


def sample_of(users: NDArray[np.int64], n_items: int, rng: np.random.Generator) -> NDArray[Any]:
    """Some of these users, or all if they are few."""
    most = min(MAX_SCORED, max(MAX_PAIRS // n_items, MIN_SCORED))
    if len(users) <= most:
        return users
    return np.sort(rng.choice(users, most, replace=False))


def choose_blend(
    clicks: Clicks, n_best: int, rng: np.random.Generator, executor: Executor
) -> Blend:
    """The simplest blend within one standard error of the best that a greedy search has found.

    The objective is the mean of 1 / (1 + exp((rank + 1/2 - n_best) / 3)), where the rank, from 0,
    is that of a hidden click among the unseen items.
    """
    pool = pool_for(clicks.n_items)
    users = sample_of(scorable(clicks), clicks.n_items, rng)
    cases = hide_and_score(pool, clicks, users, rng, executor)
    search = Search(cases, clicks.weights[users], n_best, executor)
    return search.describe(pool, search.simplest(search.found()))


class Cases(NamedTuple):
    """``leads[part][case, item]``: how far items are ahead of the hidden one by each part, in units
    of the spread of its scores. `clicked` is far below 0 for what was clicked, else 0, and the
    leads are 0 there. The cases are the users, split by split."""

    leads: list[Leads]
    clicked: Leads


def hide_and_score(
    pool: Sequence[Part],
    clicks: Clicks,
    users: NDArray[np.int64],
    rng: np.random.Generator,
    executor: Executor,
) -> Cases:
    """Hide one click of each user, five times, and score these users by what is left."""
    shape = (N_SPLITS, len(users), clicks.n_items)
    leads, clicked = [np.empty(shape, np.float32) for _ in pool], np.zeros(shape, np.float32)
    learnt: dict[Part, Floats] = {}  # a split differs little from the one before: begin there
    for split in range(N_SPLITS):
        shown, hidden = hide_clicks(clicks, 1, rng)
        products, seen = Products(shown, executor), shown.take(users)
        target = hidden[users].argmax(axis=1)[:, None]
        clicked[split, _owners(seen), seen.codes] = FAR
        for number, part in enumerate(pool):
            if isinstance(part, Popularity):
                scores = _scores(seen, None, _shares(shown))
            else:
                learnt[part] = part.learn(products, learnt.get(part))
                scores = _scores(seen, learnt[part], None)
            scores /= _spread(scores, seen)
            scores -= np.take_along_axis(scores, target, axis=1)
            scores[_owners(seen), seen.codes] = 0.0
            leads[number][split] = scores
    flat = (N_SPLITS * len(users), clicks.n_items)
    return Cases([lead.reshape(flat) for lead in leads], clicked.reshape(flat))


class Found(NamedTuple):
    """``weights[part]``, and the mean value of each user's hidden clicks by them."""

    weights: Floats
    values: Floats

    @property
    def n_parts(self) -> int:
        """How many have a weight."""
        return int((self.weights > 0).sum())


class Search:
    """A greedy search for weights of the parts, by what the ranks of hidden clicks are worth."""

    def __init__(
        self, cases: Cases, people: NDArray[np.int64], n_best: int, executor: Executor
    ) -> None:
        self._cases, self._n_best, self._executor = cases, n_best, executor
        self._people = people / people.sum()

    def found(self) -> list[Found]:
        """Each part alone, then the best one with more and more rounds: each adds some weight to
        one part, or halves it, as long as that helps."""
        singles = [self.judge(row) for row in np.eye(len(self._cases.leads))]
        found = [*singles, max(singles, key=self.mean)]
        for _ in range(N_ROUNDS):
            better = self._best_step(found[-1])
            if self.mean(better) <= self.mean(found[-1]):
                break
            found.append(better)
        return found

    def _best_step(self, now: Found) -> Found:
        """The best change of one weight."""
        ahead, total = self._ahead(now.weights), now.weights.sum()

        def judge(part: int) -> Found:
            steps = [total * share for share in STEPS]
            if now.weights[part] > 0:
                steps.append(-now.weights[part] / 2)
            return max(self._judge_steps(ahead, now.weights, part, steps), key=self.mean)

        return max(self._executor.map(judge, range(len(now.weights))), key=self.mean)

    def judge(self, weights: Floats) -> Found:
        """The values by these weights."""
        return self._judge_steps(self._ahead(weights), weights, 0, [0.0])[0]

    def _ahead(self, weights: Floats) -> Leads:
        ahead = self._cases.clicked.copy()
        for part in np.flatnonzero(weights):
            ahead += np.float32(weights[part]) * self._cases.leads[part]
        return ahead

    def _judge_steps(
        self, ahead: Leads, weights: Floats, part: int, steps: list[float]
    ) -> list[Found]:
        """What becomes of the values when each of the steps is added to one part."""
        values = np.empty((len(steps), len(ahead)))
        sizes = np.array(steps, dtype=np.float32)
        value_of_steps(ahead, self._cases.leads[part], sizes, self._n_best, values)
        of_users = values.reshape(len(steps), N_SPLITS, -1).mean(axis=1)
        unit = np.eye(len(weights))[part]
        return [
            Found(weights + step * unit, row) for step, row in zip(steps, of_users, strict=True)
        ]

    def mean(self, found: Found) -> float:
        """The objective: mean over people."""
        return float(self._people @ found.values)

    def error(self, one: Found, other: Found) -> float:
        """Standard error of the difference of two objectives, paired by users."""
        difference = one.values - other.values
        away = difference - self._people @ difference
        return float(np.sqrt((self._people**2) @ (away**2)))

    def simplest(self, found: list[Found]) -> Found:
        """Of what is within one standard error of the best: the first part alone if it is, else
        the one of the fewest parts, and the best of these."""
        best = max(found, key=self.mean)
        near = [one for one in found if self.mean(best) - self.mean(one) <= self.error(best, one)]
        first = [one for one in near if one is found[0]]
        return first[0] if first else min(near, key=lambda one: (one.n_parts, -self.mean(one)))

    def describe(self, pool: Sequence[Part], found: Found) -> Blend:
        """The blend, with what each of its parts is worth."""
        used = np.flatnonzero(found.weights)
        weights, worths, errors = found.weights / found.weights.sum(), [], []
        for part in used.tolist():
            rest = np.where(np.arange(len(weights)) == part, 0.0, weights)
            if len(used) == 1:  # then popularity, the last of the pool, is all that is left
                rest[-1] = 1.0
            without = self.judge(rest)
            worths.append(self.mean(found) - self.mean(without))
            errors.append(self.error(found, without))
        parts = tuple(pool[part] for part in used.tolist())
        chosen = tuple(weights[used].tolist())
        return Blend(parts, chosen, self.mean(found), tuple(worths), tuple(errors))
