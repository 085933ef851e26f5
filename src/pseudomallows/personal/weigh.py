"""The weights of a blend, by hidden clicks: which parts, with how old clicks, put them first.

There are two ways to hide. At random: five times one click of each user is hidden, and every part
is learnt without it. Or in time: parts are learnt once, from what was there before a date, or
before each user's last clicks, and what came later is what they have to find. In time, old clicks
of a user may count less, and what is popular now is a part of the blend.

The weights are the mean of those that a greedy search finds by some of the users each: so that
other users, or another seed, change them little. They are never behind the best part alone, and
the best sellers, of all time and of the last days, and plain regressions are such parts.
"""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Clicks
from ..data.splits import take_random
from ..engines.executors import Executor
from ..engines.memory import CUBIC_ITEMS, DENSE_ITEMS
from ..kernels.click_rows import ClickRows
from ..kernels.items.leads import fill_leads
from ..kernels.items.top_items import fill_tops
from ..kernels.items.weights import value_of_steps
from .blend import Blend, Floats, Leads, Moments, n_of_spread, tables_of, tasks_of
from .item_scores import ItemScores
from .next_clicks import MAX_SCORED, MIN_USERS, clicks_of_rows
from .parts import (
    ClosedForm,
    Factors,
    Part,
    Popularity,
    Regression,
    Trend,
    pool_for,
)
from .products import AllProducts, Products
from .recency import Recency, are_dates

# Of a single regression, in units of the mean number of clicks of an item, by steps of 1.5 to 3:
# from a tenth of the default, that of the first part of POOL, to three times it.
RIDGES = (0.03, 0.1, 0.2, 0.3, 0.5, 1.0)
DEFAULT_RIDGE = 0.3
N_ROUNDS = 6  # of the greedy search, a change of one weight each; on retail 3 and 12 did as well
# Up to how many items, how many inner splits, users of each. With more
# items a split takes longer, and tells as much.
SPLITS = ((CUBIC_ITEMS, 5, 2500), (DENSE_ITEMS, 1, 5000), (math.inf, 1, 2500))
N_TARGETS = 3  # later clicks of a user that a part has to find, evenly spread in time
N_PARTS = 5  # into which users are cut; the weights are the mean of those by each
LEAST_PART = 400  # users of each part, so that it can tell blends apart; or 4 of 5 of all
# Users times items of a split by which recency and trend are chosen, and users at least: seconds.
MOST_CELLS, LEAST_USERS = 1_000_000, 300
N_PLACES = 100  # best by each part, which alone are ranked with many items; see measurements.md
LEAST_WEIGHT = 0.04  # what is less, after the mean, is left out: it costs more than it gives
MIN_SCORED, MIN_ITEMS = MIN_USERS, 10  # with fewer, hidden clicks cannot tell blends apart
MOST_IMPORTANCE, SMOOTHING = 3.0, 5  # of a user, so that no few users decide (1.5 and 6 did as well
# on retail); and users added to the counts, so that it is about 1 at rare numbers of clicks: counts
# of fewer than 5 users, which are known to 45 % or worse, say less than half
# By threes or so; of days: a week, a month, half a year. A visit is clicks without a long pause.
HALF_LIVES = {"clicks": (3.0, 10.0, 30.0), "visits": (1.0, 3.0), "days": (7.0, 30.0, 180.0)}
KEPT = {Regression: 3, ClosedForm: 3, Factors: 3, Popularity: 1}  # parts that are weighed, the best
Say = Callable[[str], None]


def say_after(say: Say, before: str, words: str) -> None:
    """Say it after some other words."""
    say(before + words)


def silent(words: str) -> None:
    """Tell nobody what is being done."""


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


def splits_for(n_items: int) -> tuple[int, int]:
    """How often clicks are hidden, and of how many users: what a split costs grows
    with the items, and what it tells does not."""
    return next((number, users) for most, number, users in SPLITS if n_items <= most)


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


# What is hidden

Split = tuple[Products, NDArray[np.bool_]]  # of the clicks that are left; which were taken


class HiddenCases(NamedTuple):
    """Hidden clicks: ``targets[case]`` of somebody who is known by the clicks in row `case` of
    `seen`, and is number ``owners[case]`` of the people."""

    seen: Clicks
    targets: NDArray[np.int64]
    owners: NDArray[np.int64]


def later_cases(
    shown: Clicks, hidden: Clicks, is_case: NDArray[np.bool_], rng: np.random.Generator
) -> tuple[HiddenCases, NDArray[np.int64]]:
    """Some later clicks of the users who have clicks before and after; and who these users are."""
    users = np.flatnonzero(is_case & (shown.n_clicks > 0) & (hidden.n_clicks > 0))
    users = sample_of(users, rng, MAX_SCORED)
    later = hidden.take(users)
    times = np.zeros(len(later.codes)) if later.times is None else later.times
    order = np.lexsort((times, later.owners))
    sizes = later.n_clicks
    numbers = np.minimum(sizes, N_TARGETS)
    owners = np.repeat(np.arange(len(users)), numbers)
    places = np.arange(len(owners)) - np.repeat(np.cumsum(numbers) - numbers, numbers)
    spread = (places + 0.5) * (sizes / numbers)[owners]  # evenly over the later clicks
    targets = later.codes[order[later.starts[owners] + spread.astype(np.int64)]]
    return HiddenCases(shown.take(users[owners]), targets.astype(np.int64), owners), users


# Scores of what is hidden


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

    def take(self, rows: NDArray[np.int64]) -> "HiddenClicks":
        """Some of the cases."""
        starts = np.concatenate([[0], np.cumsum(np.diff(self.starts)[rows])])
        return HiddenClicks(self.leads[:, clicks_of_rows(self.starts, rows)], starts)


def score_cases(
    scorers: list[ItemScores],
    cases: HiddenCases,
    executor: Executor,
    recency: Recency | None = None,
) -> list[HiddenClicks]:
    """How far items are ahead of what is hidden, by each part; spreads are those of the first
    users."""
    seen, n_spread = cases.seen, n_of_spread(cases.seen.n_items)

    def work(task: list[slice]) -> tuple[list[Moments], list[HiddenClicks]]:
        moments, found = [], []
        room = np.empty((len(scorers), (task[0].stop - task[0].start) * seen.n_items), np.float32)
        blocks = tables_of(scorers, seen, task, recency)
        for rows, (clicks, tables) in zip(task, blocks, strict=True):
            if rows.start < n_spread:
                moments.append(Moments.of(clicks, tables, False))
            found.append(cases_of(clicks, tables, cases.targets[rows], room))
        return moments, found

    results = list(executor.map(work, tasks_of(seen)))
    moments = Moments.joined([each for part in results for each in part[0]])
    found = [each for part in results for each in part[1]]
    units = [1 / moments.spread(one) for one in np.eye(len(scorers))]
    for each in found:
        each.leads[:] *= np.array(units, np.float32)[:, None]
    return found


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


def values_alone(
    scorer: ItemScores,
    cases: HiddenCases,
    n_best: int,
    executor: Executor,
    recency: Recency | None = None,
) -> Floats:
    """``values[case]`` of what is hidden by one part alone (see `value_of_steps`)."""
    seen = cases.seen

    def work(task: list[slice]) -> list[Floats]:
        values = []
        blocks = tables_of([scorer], seen, task, recency)
        for rows, (clicks, tables) in zip(task, blocks, strict=True):
            values.append(rank_values(tables[0], clicks, cases.targets[rows], n_best))
        return values

    return np.concatenate([each for part in executor.map(work, tasks_of(seen)) for each in part])


def rank_values(scores: Leads, clicks: ClickRows, target: NDArray[np.int64], n_best: int) -> Floats:
    """What the rank of each row's target among the unseen items is worth (see `value_of_steps`)."""
    own = np.take_along_axis(scores, target[:, None], axis=1)
    owners = np.repeat(np.arange(len(scores)), np.diff(clicks.starts))
    scores[owners, clicks.codes[clicks.starts[0] : clicks.starts[-1]]] = -np.inf
    rank = (scores > own).sum(axis=1) + 0.5 * ((scores == own).sum(axis=1) - 1)
    return np.asarray(1 / (1 + np.exp(np.minimum((rank + 0.5 - n_best) / 3, 500.0))))


# The search


class ScoredWeights(NamedTuple):
    """``weights[part]``, and the mean value of each user's hidden clicks by them."""

    weights: Floats
    values: Floats

    @property
    def n_parts(self) -> int:
        """How many have a weight."""
        return int((self.weights > 0).sum())


class WeightSearch:
    """A greedy search for weights of the parts, by what the ranks of hidden clicks are worth.

    ``owners[case]`` is the number of the user among the `people`, whose weights these are.
    """

    def __init__(
        self,
        cases: list[HiddenClicks],
        owners: NDArray[np.int64],
        people: NDArray[Any],
        n_best: int,
        executor: Executor,
    ) -> None:
        self._cases, self._n_best, self._executor = cases, n_best, executor
        self._owners = owners
        self._sizes = np.maximum(np.bincount(owners, minlength=len(people)), 1)
        self._people: Floats = people / people.sum()
        self._n_parts = len(cases[0].leads)

    def part(self, number: int) -> "WeightSearch":
        """The search by some of the users: one of `N_PARTS`, or all but one if they are few."""
        n_users = len(self._people)
        n_taken = min(max(math.ceil(N_PARTS * LEAST_PART / n_users), 1), N_PARTS - 1)
        is_mine = (np.arange(n_users) + number) % N_PARTS < n_taken
        people, chosen, before = np.where(is_mine, self._people, 0.0), [], 0
        mine = is_mine[self._owners]
        for cases in self._cases:
            rows = np.flatnonzero(mine[before : before + cases.n_cases])
            chosen.append(cases.take(rows))
            before += cases.n_cases
        law = (people if people.any() else self._people, self._n_best, self._executor)
        return WeightSearch(chosen, self._owners[mine], *law)

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

    def steady(self) -> ScoredWeights:
        """The mean of the weights that parts of the users ask for; but the best part alone, if that
        is ahead by more than one standard error."""
        found = [self.part(number).search()[-1].weights for number in range(N_PARTS)]
        mean = np.mean([weights / weights.sum() for weights in found], axis=0)
        mean = np.where(mean >= min(LEAST_WEIGHT, mean.max()), mean, 0.0)
        chosen = self._without_harm(self.score(mean / mean.sum()))
        best = max(map(self.score, np.eye(self._n_parts)), key=self.mean)
        is_behind = self.mean(best) - self.mean(chosen) > self.error(best, chosen)
        return best if is_behind else chosen

    def _without_harm(self, chosen: ScoredWeights) -> ScoredWeights:
        """Without parts that are better left out, by more than one standard error."""
        for part in np.flatnonzero(chosen.weights).tolist():
            rest = np.where(np.arange(self._n_parts) == part, 0.0, chosen.weights)
            if rest.any():
                without = self.score(rest / rest.sum())
                if self.mean(without) - self.mean(chosen) > self.error(without, chosen):
                    chosen = without
        return chosen

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
        unit, n_people = np.eye(len(weights))[part], len(self._people)
        return [
            ScoredWeights(
                weights + step * unit, np.bincount(self._owners, row, n_people) / self._sizes
            )
            for step, row in zip(steps, values, strict=True)
        ]

    def mean(self, scored: ScoredWeights) -> float:
        """The objective: mean over people."""
        return float(self._people @ scored.values)

    def error(self, one: ScoredWeights, other: ScoredWeights) -> float:
        """Standard error of the difference of two objectives, paired by users."""
        difference = one.values - other.values
        away = difference - self._people @ difference
        return float(np.sqrt((self._people**2) @ (away**2)))

    def describe(self, pool: Sequence[Part], best: ScoredWeights) -> Blend:
        """The blend, with what each of its parts is worth."""
        used = np.flatnonzero(best.weights)
        weights, worths, errors = best.weights / best.weights.sum(), [], []
        popularity = next(n for n, part in enumerate(pool) if isinstance(part, Popularity))
        for part in used.tolist():
            rest = np.where(np.arange(len(weights)) == part, 0.0, weights)
            if len(used) == 1:  # then popularity is all that is left
                rest[popularity] = 1.0
            without = self.score(rest)
            worths.append(self.mean(best) - self.mean(without))
            errors.append(self.error(best, without))
        parts = tuple(pool[part] for part in used.tolist())
        chosen = tuple(weights[used].tolist())
        return Blend(parts, chosen, self.mean(best), tuple(worths), tuple(errors))


# Which parts are worth weighing


class Contest:
    """Learns parts one by one, and keeps the best of each group."""

    def __init__(self, products: Products, cases: HiddenCases, n_best: int, starts: dict[Any, Any]):
        self._products, self._cases, self._n_best = products, cases, n_best
        self._starts = starts
        self.values: dict[Part, float] = {}

    def enter(self, pool: Sequence[Part], say: Say) -> list[Part]:
        """The parts that are worth weighing, in the order of the pool."""
        scorers: list[ItemScores] = []
        kept: list[Part] = []
        for part in pool:
            say(part.name)
            start = self._starts.get(part) or start_of(part, pool, scorers)
            learnt = self._products.learn(part, start)
            scorers.append(learnt)
            values = values_alone(learnt, self._cases, self._n_best, self._products.executor)
            self.values[part] = float(values.mean())
            kept.append(part)
            group = [one for one in kept if type(one) is type(part)]
            if len(group) > KEPT[type(part)]:
                worst = min(group, key=lambda one: self.values[one])
                kept.remove(worst)
                self._products.forget(worst)
        return kept


def start_of(part: Part, pool: Sequence[Part], learnt: list[ItemScores]) -> ItemScores | None:
    """What to begin a regression with: the one learnt before it, which has similar weights."""
    if not isinstance(part, Regression) or part.lasso:  # with a lasso, far fewer
        return None
    before = [
        one for one, other in zip(learnt, pool, strict=False) if isinstance(other, Regression)
    ]
    return before[-1] if before else None


# The blend


def choose_blend(
    products: Products,
    n_best: int,
    rng: np.random.Generator,
    starts: dict[Part, ItemScores],
    say: Say = silent,
) -> tuple[Blend, list[Split]]:
    """The blend that finds clicks hidden at random, and the splits by which it was chosen.

    The objective is the mean of 1 / (1 + exp((rank + 1/2 - n_best) / 3)), where the rank, from 0,
    is that of a hidden click among the unseen items. `starts` is filled with the parts of the last
    split; `say` gets words for what is being done.

    With a table of all pairs of items, a split begins with the weights of the one before. With too
    many items for it, clicks of the scored users alone are hidden, so that most weights of the
    whole log stay.
    """
    clicks, pool = products.whole, pool_for(products.n_items)
    n_splits, most = splits_for(products.n_items)
    users = sample_of(scorable(clicks), rng, most)
    has_table = isinstance(products, AllProducts)
    if not has_table:
        say("learning the scores from all clicks")
        starts |= {part: products.learn(part) for part in pool if isinstance(part, Regression)}
    leads: list[HiddenClicks] = []
    splits: list[Split] = []
    for split in range(n_splits):
        (left, taken), cases = hide_one(products, users, rng)
        splits.append((left, taken))
        words = f"split {split + 1} of {n_splits}: "
        if split == 0:
            contest = Contest(left, cases, n_best, starts)
            pool = contest.enter(pool, functools.partial(say_after, say, words))
        scorers: list[ItemScores] = []
        for part in pool:
            say(words + part.name)
            scorers.append(left.learn(part, starts.get(part) or start_of(part, pool, scorers)))
        if has_table:
            starts |= dict(zip(pool, scorers, strict=True))
        leads += score_cases(scorers, cases, products.executor)
    say("weighing the parts of the scores")
    owners = np.tile(np.arange(len(users)), n_splits)
    search = WeightSearch(leads, owners, importance(clicks)[users], n_best, products.executor)
    return search.describe(pool, search.steady()), splits


def hide_one(
    products: Products, users: NDArray[np.int64], rng: np.random.Generator
) -> tuple[Split, HiddenCases]:
    """One click of each user is hidden, with too many items for a table of pairs of these `users`
    alone; those of these users are the cases."""
    clicks, has_table = products.whole, isinstance(products, AllProducts)
    taken = take_random(
        clicks, 1, rng, None if has_table else np.isin(np.arange(clicks.n_users), users)
    )
    scored, is_hidden = clicks.take(users), taken[clicks_of_rows(clicks.starts, users)]
    targets = scored.codes[is_hidden].astype(np.int64)
    cases = HiddenCases(scored.choose(~is_hidden), targets, np.arange(len(users)))
    return (products.without(taken), taken), cases


def choose_ridge(
    products: Products, n_best: int, rng: np.random.Generator
) -> tuple[float, list[Split]]:
    """The ridge of a single regression that finds one hidden click of each user best, and the
    splits by which it was chosen: the default, unless another is better by more than a standard
    error."""
    n_splits, most = splits_for(products.n_items)
    users = sample_of(scorable(products.whole), rng, most)
    values, splits = [], []  # [split][ridge, user]
    for _ in range(n_splits if len(users) else 0):
        split, cases = hide_one(products, users, rng)
        scorers = [split[0].learn(Regression(0, ridge)) for ridge in RIDGES]
        law = (cases, n_best, products.executor)
        values.append([values_alone(scorer, *law) for scorer in scorers])
        splits.append(split)
    if not splits:
        return DEFAULT_RIDGE, splits
    people = importance(products.whole)[users]
    gains = np.mean(values, axis=0)
    gains -= gains[RIDGES.index(DEFAULT_RIDGE)]
    means = gains @ people / people.sum()
    best = int(means.argmax())
    error = np.sqrt(people**2 @ (gains[best] - means[best]) ** 2) / people.sum()
    return RIDGES[best] if means[best] > error else DEFAULT_RIDGE, splits


class TimeSplit(NamedTuple):
    """Clicks up to some time, by their products; later ones of some users, and how many people each
    of these is."""

    products: Products
    cases: HiddenCases
    people: Floats

    def few(self) -> "TimeSplit":
        """The same of fewer users, if there are many items: a choice of one way among dozens."""
        most = max(MOST_CELLS // self.products.n_items, LEAST_USERS)
        if len(self.people) <= most:
            return self
        users = np.linspace(0, len(self.people) - 1, most).astype(np.int64)
        rows = np.flatnonzero(np.isin(self.cases.owners, users))
        owners = np.searchsorted(users, self.cases.owners[rows])
        cases = HiddenCases(self.cases.seen.take(rows), self.cases.targets[rows], owners)
        return TimeSplit(self.products, cases, self.people[users])


def choose_blend_in_time(
    splits: Sequence[TimeSplit],
    n_best: int,
    trends: Sequence[Trend],
    starts: dict[Part, ItemScores],
    say: Say = silent,
) -> tuple[Blend, Recency | None]:
    """The blend that finds later clicks, how much less old clicks weigh in it, and how much more
    what is popular now: each as it is best on the mean of the splits, the first of which says what
    parts are worth weighing."""
    main = splits[0]
    contest = Contest(main.products, main.cases, n_best, starts)
    pool = contest.enter(pool_for(main.products.n_items), say)
    say("weighing the parts of the scores")
    matrices = [part for part in pool if not isinstance(part, Popularity)]
    first = sorted(matrices, key=lambda part: -contest.values[part])[:2]
    few, way = [split.few() for split in splits], Way()
    for _ in range(2):  # each given the other
        before = way
        way = best_way([way._replace(trend=trend) for trend in (None, *trends)], few, first, n_best)
        recencies = [None, *half_lives_for(main.products, main.cases)]
        way = best_recency(recencies, few, first, n_best, way.trend)
        if way.recency == before.recency:
            break
    recency, trend = way
    searches = []
    for products, cases, people in splits:
        factors = factors_of(trend, products)
        scorers = [products.learn(part).times(factors) for part in pool]
        leads = score_cases(scorers, cases, products.executor, recency)
        searches.append(WeightSearch(leads, cases.owners, people, n_best, products.executor))
    weights = np.mean([search.steady().weights for search in searches], axis=0)
    weights = np.where(weights >= min(LEAST_WEIGHT, weights.max()), weights, 0.0)
    blend = searches[0].describe(pool, searches[0].score(weights))
    return replace(blend, trend=trend), recency


def factors_of(trend: Trend | None, products: Products) -> Floats | None:
    """By which the scores of the items are multiplied."""
    return None if trend is None else trend.factors(products.clicks, products.now)


class Way(NamedTuple):
    """How much less old clicks weigh, and how much more what is popular now."""

    recency: Recency | None = None
    trend: Trend | None = None


def best_recency(
    recencies: Sequence[Recency | None],
    splits: Sequence[TimeSplit],
    parts: Sequence[Part],
    n_best: int,
    trend: Trend | None = None,
) -> Way:
    """How much less old clicks weigh: in clicks, which are known of lists too, unless visits or
    days are better by more than a standard error."""
    ways = [Way(each, trend) for each in recencies]
    in_clicks = [way for way in ways if way.recency is None or way.recency.unit == "clicks"]
    usual = best_way(in_clicks, splits, parts, n_best)
    others = [way for way in ways if way not in in_clicks]
    return best_way([usual, *others], splits, parts, n_best)


def best_way(
    ways: Sequence[Way], splits: Sequence[TimeSplit], parts: Sequence[Part], n_best: int
) -> Way:
    """The way by which some parts, each with more or less popularity, find most on the mean of the
    splits; the first, unless another is better by more than a standard error, of users and of
    splits."""
    if len(ways) == 1:
        return ways[0]
    values = []  # [split][way, user], by the part and popularity that are best for each way
    for split in splits:
        mine = []
        for way in ways:
            of_parts = [values_mixed(split, part, n_best, *way) for part in parts]
            mine.append(max((each for part in of_parts for each in part), key=split.people.dot))
        values.append(np.array(mine))
    shares = [split.people / split.people.sum() for split in splits]
    gains = np.array([(each - each[0]) @ share for each, share in zip(values, shares, strict=True)])
    best = int(gains.mean(axis=0).argmax())
    errors = [
        np.sqrt(share**2 @ (each[best] - each[0] - gain[best]) ** 2)
        for each, share, gain in zip(values, shares, gains, strict=True)
    ]
    error = np.sqrt(np.square(errors).sum()) / len(splits)
    if len(splits) > 1:
        error = max(error, gains[:, best].std(ddof=1) / np.sqrt(len(splits)))
    return ways[best] if gains[:, best].mean() > error else ways[0]


def values_mixed(
    split: TimeSplit, part: Part, n_best: int, recency: Recency | None, trend: Trend | None
) -> list[Floats]:
    """``values[user]`` of what is hidden by a part with more and more popularity, up to popularity
    alone."""
    products, cases, people = split
    scorers = [products.learn(part), products.learn(Popularity())]
    seen, factors = cases.seen, factors_of(trend, products)
    scale = np.float32(1) if factors is None else factors.astype(np.float32)
    mixtures = ((1, 0), (1, 0.25), (1, 1), (0.25, 1), (0, 1))

    def work(task: list[slice]) -> Floats:
        values = []
        for rows, (clicks, tables) in zip(
            task, tables_of(scorers, seen, task, recency), strict=True
        ):
            tables /= np.maximum(tables.std(axis=(1, 2), keepdims=True), 1e-12)
            tables *= scale
            mixed = [one * tables[0] + other * tables[1] for one, other in mixtures]
            values.append(
                [rank_values(each, clicks, cases.targets[rows], n_best) for each in mixed]
            )
        return np.concatenate(values, axis=1)

    by_case = np.concatenate(list(products.executor.map(work, tasks_of(seen))), axis=1)
    sizes = np.maximum(np.bincount(cases.owners, minlength=len(people)), 1)
    return [np.bincount(cases.owners, each, len(people)) / sizes for each in by_case]


def half_lives_for(products: Products, cases: HiddenCases) -> list[Recency]:
    """How much less old clicks may weigh: none if it is not known how old they are, or with so many
    items that weights are sparse."""
    times = cases.seen.times
    if times is None or not isinstance(products, AllProducts):
        return []
    return [
        Recency(length, unit)
        for unit, lengths in HALF_LIVES.items()
        for length in lengths
        if unit == "clicks" or are_dates(times)
    ]
