"""A blend of several scores from item to item, its weights learnt on inner splits of the clicks.

Five times one click of each user is hidden, every part is learnt without it, and weights are sought
by which the hidden items come among the first. The result is one matrix again, and a bias.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..engines.executors import BLOCK, Executor, blocks
from ..engines.memory import CUBIC_ITEMS, DENSE_ITEMS
from ..kernels.click_rows import ClickRows, slice_clicks
from ..kernels.items.leads import clear_clicks, fill_leads
from ..kernels.items.top_items import fill_tops
from ..kernels.items.weights import value_of_steps
from ..posteriors.item_scores import ItemScores
from ..preferences import Clicks
from ..preferences.splits import take_random
from .next_clicks import MAX_SCORED, MIN_USERS, clicks_of_rows
from .parts import Part, Popularity, Regression, part_named, pool_for
from .products import AllProducts, Products

N_ROUNDS = 6  # of the greedy search, a change of one weight each; on retail 3 and 12 did as well
# Up to how many items, how many inner splits, users of each. With more
# items a split takes longer, and tells as much.
SPLITS = ((CUBIC_ITEMS, 5, 2500), (DENSE_ITEMS, 1, 5000), (math.inf, 1, 2500))
N_PLACES = 100  # best by each part, which alone are ranked with many items; see measurements.md
MAX_CELLS = 1_000_000  # of a table of scores, 8 MB
LEAST_SPREAD = 128  # users behind the spread of scores: known to 1 / sqrt(2 * 128), 6 %
MIN_SCORED, MIN_ITEMS = MIN_USERS, 10  # with fewer, hidden clicks cannot tell blends apart
MOST_IMPORTANCE, SMOOTHING = 3.0, 5  # of a user, so that no few users decide (1.5 and 6 did as well
# on retail); and users added to the counts, so that it is about 1 at rare numbers of clicks: counts
# of fewer than 5 users, which are known to 45 % or worse, say less than half
Floats = NDArray[np.float64]
Leads = NDArray[np.float32]
Say = Callable[[str], None]


def silent(words: str) -> None:
    """Tell nobody what is being done."""


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
        parts = zip(self.parts, self.weights, self.worths, self.errors, strict=True)
        rows = [
            {"part": part.name, "weight": weight, "worth": worth, "error": error}
            for part, weight, worth, error in parts
        ]
        return sorted(rows, key=lambda row: -float(row["weight"]))

    @classmethod
    def from_settings(cls, options: dict[str, Any]) -> "Blend | None":
        """The blend of a fit, from its settings; None if it has none, or parts not known here."""
        try:
            rows = options["parts"]
            parts = [part_named(row["part"]) for row in rows]
            names = ("weight", "worth", "error")
            numbers = [tuple(float(row[name]) for row in rows) for name in names]
            objective = float(options["objective"])
        except (KeyError, TypeError, ValueError):
            return None
        known = tuple(part for part in parts if part is not None)
        if not known or len(known) < len(parts) or not sum(numbers[0]) > 0:
            return None
        return cls(known, numbers[0], objective, *numbers[1:])

    def learn(
        self, products: Products, sample: NDArray[np.int64], starts: dict[Part, ItemScores]
    ) -> ItemScores:
        """One score, from all clicks of these products; spreads are those of a `sample` of users.

        The blend is scaled to the spread of the popularity, which is in shares of the users.
        `starts` has parts learnt from similar clicks, to begin with; those of all clicks go there.
        """
        learnt_parts = []
        for part in self.parts:
            learnt = products.learn(part, starts.get(part))
            if products.is_whole:
                starts[part] = learnt
            learnt_parts.append(learnt)
        seen = products.clicks.take(sample)
        moments = moments_of([*learnt_parts, products.learn(Popularity())], seen, products.executor)
        alone = np.eye(len(learnt_parts) + 1)
        shares = np.array([*self.weights, 0.0])
        shares /= [moments.spread(one) for one in alone]
        shares *= moments.spread(alone[-1]) / moments.spread(shares)
        return add_up(list(zip(shares.tolist(), learnt_parts, strict=False)), products)


def add_up(parts: list[tuple[float, ItemScores]], products: Products) -> ItemScores:
    """The sum of some scores, each times a number: one array of items x items, unless there are
    too many items for it."""
    biases = [share * part.bias for share, part in parts if part.bias.size]
    bias = np.sum(biases, axis=0) if biases else np.empty(0)
    if isinstance(products, AllProducts):
        weights = np.zeros((products.n_items, products.n_items))
        for share, part in parts:
            if part.weights is not None or part.left.size:
                weights += share * part.dense()
        return ItemScores(weights, bias=bias)
    sparse = [np.float32(share) * part.weights for share, part in parts if part.weights is not None]
    sides = [(share, part) for share, part in parts if part.left.size]
    if not sides:
        return ItemScores(_sum_of(sparse, products.n_items), bias=bias)
    left = np.concatenate([part.left for _, part in sides], axis=1)
    right = np.concatenate([np.float32(share) * part.right for share, part in sides])
    return ItemScores(_sum_of(sparse, products.n_items), left, right, bias)


def _sum_of(sparse: list[Any], n_items: int) -> Any:
    from scipy.sparse import csr_array

    empty = csr_array((n_items, n_items), dtype=np.float32)
    return sum(sparse[1:], sparse[0]) if sparse else empty


class Moments(NamedTuple):
    """Of the scores of what users have not clicked, by some parts: how many there are, their sums
    and those of their products."""

    number: int
    sums: Floats
    products: Floats

    def spread(self, weights: Floats) -> float:
        """The standard deviation of the sum of the scores, each part times its weight; 1 if all
        are the same."""
        mean = float(weights @ self.sums) / max(self.number, 1)
        square = float(weights @ self.products @ weights) / max(self.number, 1)
        return float(np.sqrt(max(square - mean**2, 0.0))) or 1.0

    @classmethod
    def of(cls, clicks: ClickRows, tables: Leads, is_joint: bool) -> "Moments":
        """Of ``tables[part, row, item]``, 0 for what was clicked; products of two parts only if
        they are wanted. Each user's sums are in single precision."""
        n_parts, n_users, n_items = tables.shape
        sums, products = np.zeros(n_parts), np.zeros((n_parts, n_parts))
        for one, table in enumerate(tables):
            sums[one] = table.sum(axis=1).sum(dtype=np.float64)
            for other in range(0 if is_joint else one, one + 1):
                by_user = np.einsum("ri,ri->r", table, tables[other])
                products[one, other] = products[other, one] = by_user.sum(dtype=np.float64)
        n_clicks = int(clicks.starts[-1] - clicks.starts[0])
        return cls(n_users * n_items - n_clicks, sums, products)

    @classmethod
    def joined(cls, parts: "Sequence[Moments]") -> "Moments":
        """Those of all users."""
        numbers, sums, products = zip(*parts, strict=True)
        return cls(sum(numbers), np.sum(sums, axis=0), np.sum(products, axis=0))


def moments_of(scorers: list[ItemScores], seen: Clicks, executor: Executor) -> Moments:
    """The moments of all users and parts."""

    def work(task: list[slice]) -> list[Moments]:
        blocks = tables_of(scorers, seen, task)
        return [Moments.of(clicks, tables, True) for clicks, tables in blocks]

    parts = executor.map(work, tasks_of(seen))
    return Moments.joined([moments for part in parts for moments in part])


def tasks_of(seen: Clicks) -> list[list[slice]]:
    """Blocks of users, some for each task: a task uses the memory of its scores again."""
    rows = blocks(seen.n_users, _n_rows(seen.n_items))
    return [rows[part] for part in blocks(len(rows), max(1, -(-len(rows) // 8)))]


def tables_of(
    scorers: list[ItemScores], seen: Clicks, task: list[slice]
) -> Iterator[tuple[ClickRows, Leads]]:
    """Clicks and ``tables[part, row, item]``, the scores by each part, block by block: 0 for what
    was clicked. The next block has the same memory."""
    most = max(rows.stop - rows.start for rows in task)
    memory = np.empty(len(scorers) * most * seen.n_items, np.float32)
    for rows in task:
        shape = (len(scorers), rows.stop - rows.start, seen.n_items)
        clicks, tables = slice_clicks(seen, rows), memory[: math.prod(shape)].reshape(shape)
        for scorer, table in zip(scorers, tables, strict=True):
            table[:] = 0.0
            scorer.add(clicks, table)
            clear_clicks(clicks, table)
        yield clicks, tables


def n_of_spread(n_items: int) -> int:
    """Users behind the spread of scores: with very many items fewer tell as much."""
    return min(MAX_SCORED, max(LEAST_SPREAD, MAX_CELLS // n_items))


def _n_rows(n_items: int) -> int:
    """Users that are scored at a time."""
    return max(1, min(BLOCK, MAX_CELLS // n_items))


def why_not(clicks: Clicks) -> str | None:
    """Why there is no blend for such clicks, in words; None if there is."""
    n_items, n_scored = clicks.n_items, len(scorable(clicks))
    if n_items < MIN_ITEMS:
        return f"one regression, since there are fewer than {MIN_ITEMS} items"
    if n_scored < MIN_SCORED:
        return f"one regression, since fewer than {MIN_SCORED} users have two clicks or more"
    return None


def scorable(clicks: Clicks) -> NDArray[np.int64]:
    """The users of whom one click can be hidden."""
    return np.flatnonzero((clicks.n_clicks > 1) & clicks.is_informative)


def sample_of(users: NDArray[np.int64], rng: np.random.Generator, most: int) -> NDArray[Any]:
    """Some of these users, or all if they are few."""
    if len(users) <= most:
        return users
    return np.sort(rng.choice(users, most, replace=False))


def choose_blend(
    products: Products,
    n_best: int,
    rng: np.random.Generator,
    starts: dict[Part, ItemScores],
    say: Say = silent,
) -> Blend:
    """The simplest blend within one standard error of the best that a greedy search has tried.

    The objective is the mean of 1 / (1 + exp((rank + 1/2 - n_best) / 3)), where the rank, from 0,
    is that of a hidden click among the unseen items. `starts` is filled with the parts of the last
    split; `say` gets words for what is being done.
    """
    clicks, pool = products.whole, pool_for(products.n_items)
    users = sample_of(scorable(clicks), rng, splits_for(clicks.n_items)[1])
    cases = hide_and_score(pool, products, users, rng, starts, say)
    say("weighing the parts of the scores")
    search = WeightSearch(cases, importance(clicks)[users], n_best, products.executor)
    return search.describe(pool, search.simplest(search.search()))


def importance(clicks: Clicks) -> Floats:
    """Importance weights of the users, when one click of each is hidden.

    A user with c clicks is scored with c - 1, and a fit will serve users with the clicks of this
    log: so who is left with c - 1 clicks represents those who have as many. Without it, users with
    the fewest clicks would be scored with fewer than anybody has.
    """
    sizes, people = clicks.n_clicks, clicks.weights * clicks.is_informative
    counts = np.bincount(sizes, people)
    least = np.flatnonzero(counts)[0]
    before = np.where(sizes > least, counts[np.maximum(sizes - 1, 0)] + SMOOTHING, 0)
    shares = np.minimum(before / (counts[sizes] + SMOOTHING), MOST_IMPORTANCE)
    is_fair = bool((people * shares)[scorable(clicks)].any())
    return np.asarray(people * shares if is_fair else people, dtype=np.float64)


class HiddenClicks(NamedTuple):
    """Some hidden clicks: ``leads[part, starts[case]:starts[case + 1]]`` is how far items are ahead
    of the hidden one by each part, in units of the spread of its scores.

    The items are those that are ahead of the hidden one by some part, or level with it: others are
    behind it in every blend. With more than a thousand items they are also among the best by some
    part: others hardly come before a hidden item whose rank matters.
    """

    leads: Leads
    starts: NDArray[np.int64]

    @property
    def n_cases(self) -> int:
        """How many hidden clicks there are."""
        return len(self.starts) - 1


def splits_for(n_items: int) -> tuple[int, int]:
    """How often clicks are hidden, and of how many users: what a split costs grows
    with the items, and what it tells does not."""
    return next((number, users) for most, number, users in SPLITS if n_items <= most)


def hide_and_score(
    pool: Sequence[Part],
    products: Products,
    users: NDArray[np.int64],
    rng: np.random.Generator,
    starts: dict[Part, ItemScores] | None = None,
    say: Say = silent,
) -> list[HiddenClicks]:
    """Hide one click of each user, some times, and score these users by what is left. The cases
    are the users, split by split.

    With a table of all pairs of items, a split begins with the weights of the one before. With too
    many items for it, clicks of the scored users alone are hidden, so that most weights of the
    whole log stay.
    """
    starts, (n_splits, _) = {} if starts is None else starts, splits_for(products.n_items)
    cases: list[HiddenClicks] = []
    whole, has_table = products.whole, isinstance(products, AllProducts)
    scored, places = whole.take(users), clicks_of_rows(whole.starts, users)
    is_scored = np.isin(np.arange(whole.n_users), users)
    if not has_table:
        say("learning the scores from all clicks")
        starts |= {part: products.learn(part) for part in pool if isinstance(part, Regression)}
    for split in range(n_splits):
        taken = take_random(whole, 1, rng, None if has_table else is_scored)
        left, is_hidden = products.without(taken), taken[places]
        scorers: list[ItemScores] = []
        for part in pool:
            say(f"split {split + 1} of {n_splits}: {part.name}")
            scorers.append(left.learn(part, starts.get(part) or start_of(part, pool, scorers)))
        if has_table:
            starts |= dict(zip(pool, scorers, strict=True))
        seen, target = scored.choose(~is_hidden), scored.codes[is_hidden].astype(np.int64)
        cases += score_cases(scorers, seen, target, products.executor)
    return cases


def start_of(part: Part, pool: Sequence[Part], learnt: list[ItemScores]) -> ItemScores | None:
    """What to begin a regression with: the one learnt before it, which has similar weights."""
    if not isinstance(part, Regression) or part.lasso:  # with a lasso, far fewer
        return None
    before = [
        one for one, other in zip(learnt, pool, strict=False) if isinstance(other, Regression)
    ]
    return before[-1] if before else None


def score_cases(
    scorers: list[ItemScores], seen: Clicks, target: NDArray[np.int64], executor: Executor
) -> list[HiddenClicks]:
    """The cases of one split; spreads are those of the first users."""
    n_spread = n_of_spread(seen.n_items)

    def work(task: list[slice]) -> tuple[list[Moments], list[HiddenClicks]]:
        moments, cases = [], []
        room = np.empty((len(scorers), (task[0].stop - task[0].start) * seen.n_items), np.float32)
        for rows, (clicks, tables) in zip(task, tables_of(scorers, seen, task), strict=True):
            if rows.start < n_spread:
                moments.append(Moments.of(clicks, tables, False))
            cases.append(cases_of(clicks, tables, target[rows], room))
        return moments, cases

    results = list(executor.map(work, tasks_of(seen)))
    moments = Moments.joined([each for part in results for each in part[0]])
    cases = [each for part in results for each in part[1]]
    units = [1 / moments.spread(one) for one in np.eye(len(scorers))]
    for each in cases:
        each.leads[:] *= np.array(units, np.float32)[:, None]
    return cases


def cases_of(
    clicks: ClickRows, tables: Leads, target: NDArray[np.int64], room: Leads
) -> HiddenClicks:
    """How far items are ahead of each user's target, in the units of the scores."""
    starts = np.zeros(len(target) + 1, dtype=np.int64)
    places = np.empty((len(target), 0), dtype=np.int64)
    if tables.shape[2] > CUBIC_ITEMS:
        places = best_places(clicks, tables, target[:, None])
    n_filled = fill_leads(clicks, tables, target, places, starts[1:], room)
    return HiddenClicks(room[:, :n_filled].copy(), np.cumsum(starts))


def best_places(clicks: ClickRows, tables: Leads, hidden: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of each user only the items that are among the best by some part, and the hidden one; -1 for
    one that was there before."""
    _, n_users, n_items = tables.shape
    ties = np.arange(n_items)
    best = [np.empty((n_users, N_PLACES), dtype=np.int64) for _ in tables]
    for table, mine in zip(tables, best, strict=True):
        fill_tops(clicks, table, ties, mine)
    places = np.sort(np.concatenate([*best, hidden], axis=1), axis=1)
    again = places[:, 1:] == places[:, :-1]
    places[:, 1:][again] = -1
    return places


class ScoredWeights(NamedTuple):
    """``weights[part]``, and the mean value of each user's hidden clicks by them."""

    weights: Floats
    values: Floats

    @property
    def n_parts(self) -> int:
        """How many have a weight."""
        return int((self.weights > 0).sum())


class WeightSearch:
    """A greedy search for weights of the parts, by what the ranks of hidden clicks are worth."""

    def __init__(
        self, cases: list[HiddenClicks], people: NDArray[Any], n_best: int, executor: Executor
    ) -> None:
        self._cases, self._n_best, self._executor = cases, n_best, executor
        self._people: Floats = people / people.sum()
        self._n_parts = len(cases[0].leads)

    def search(self) -> list[ScoredWeights]:
        """Each part alone, then the best one with more and more rounds: each adds some weight to
        one part, or halves it, as long as that helps."""
        nothing = np.zeros(self._n_parts)
        level = self._ahead(nothing)
        singles = [
            self._score_steps(level, nothing, part, [1.0])[0] for part in range(self._n_parts)
        ]
        tried = [*singles, max(singles, key=self.mean)]
        for _ in range(N_ROUNDS):
            better = self._best_step(tried[-1])
            if self.mean(better) <= self.mean(tried[-1]):
                break
            tried.append(better)
        return tried

    def _best_step(self, now: ScoredWeights) -> ScoredWeights:
        """The best change of one weight."""
        ahead, total = self._ahead(now.weights), now.weights.sum()

        def best_of_part(part: int) -> ScoredWeights:
            steps = [total * share for share in (0.1, 0.2, 0.4, 0.8)]
            if now.weights[part] > 0:
                steps.append(-now.weights[part] / 2)
            return max(self._score_steps(ahead, now.weights, part, steps), key=self.mean)

        return max(self._executor.map(best_of_part, range(self._n_parts)), key=self.mean)

    def score(self, weights: Floats) -> ScoredWeights:
        """The values by these weights."""
        return self._score_steps(self._ahead(weights), weights, 0, [0.0])[0]

    def _ahead(self, weights: Floats) -> list[Leads]:
        """How far items are ahead by these weights, of each of the cases."""
        by_cases = []
        for cases in self._cases:
            ahead = np.zeros(cases.leads.shape[1], np.float32)
            for part in np.flatnonzero(weights):
                ahead += np.float32(weights[part]) * cases.leads[part]
            by_cases.append(ahead)
        return by_cases

    def _score_steps(
        self, ahead: list[Leads], weights: Floats, part: int, steps: list[float]
    ) -> list[ScoredWeights]:
        """What becomes of the values when each of the steps is added to one part."""
        sizes, parts = np.array(steps, dtype=np.float32), []
        for cases, mine in zip(self._cases, ahead, strict=True):
            values = np.empty((len(steps), cases.n_cases))
            law = (cases.starts, mine, cases.leads[part])
            value_of_steps(*law, sizes, self._n_best, values)
            parts.append(values)
        values = np.concatenate(parts, axis=1)
        of_users = values.reshape(len(steps), -1, len(self._people)).mean(axis=1)
        unit = np.eye(len(weights))[part]
        return [
            ScoredWeights(weights + step * unit, row)
            for step, row in zip(steps, of_users, strict=True)
        ]

    def mean(self, scored: ScoredWeights) -> float:
        """The objective: mean over people."""
        return float(self._people @ scored.values)

    def error(self, one: ScoredWeights, other: ScoredWeights) -> float:
        """Standard error of the difference of two objectives, paired by users."""
        difference = one.values - other.values
        away = difference - self._people @ difference
        return float(np.sqrt((self._people**2) @ (away**2)))

    def simplest(self, tried: list[ScoredWeights]) -> ScoredWeights:
        """Of what is within one standard error of the best: the first part alone if it is, else
        the one of the fewest parts, and the best of these."""
        best = max(tried, key=self.mean)
        near = [one for one in tried if self.mean(best) - self.mean(one) <= self.error(best, one)]
        first = [one for one in near if one is tried[0]]
        return first[0] if first else min(near, key=lambda one: (one.n_parts, -self.mean(one)))

    def describe(self, pool: Sequence[Part], best: ScoredWeights) -> Blend:
        """The blend, with what each of its parts is worth."""
        used = np.flatnonzero(best.weights)
        weights, worths, errors = best.weights / best.weights.sum(), [], []
        for part in used.tolist():
            rest = np.where(np.arange(len(weights)) == part, 0.0, weights)
            if len(used) == 1:  # then popularity, the last of the pool, is all that is left
                rest[-1] = 1.0
            without = self.score(rest)
            worths.append(self.mean(best) - self.mean(without))
            errors.append(self.error(best, without))
        parts = tuple(pool[part] for part in used.tolist())
        chosen = tuple(weights[used].tolist())
        return Blend(parts, chosen, self.mean(best), tuple(worths), tuple(errors))
