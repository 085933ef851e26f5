"""What comes next: clicks that came later, or are hidden inside a fit, what is observed of them for
each window, and what is learnt from them."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..engines.executors import blocks
from ..engines.memory import DENSE_ITEMS
from ..posteriors.names import CALIBRATIONS
from ..posteriors.personal_fit import FIRST_WINDOWS, PersonalModel
from ..posteriors.recency import Recency, are_dates
from ..preferences import Clicks, rows_of_users
from ..preferences.splits import Split, hide_numbers, split_at, time_of_share
from ..rankings import check_flag, check_name

# Numbers of next items for which what is observed is looked at: each at most twice the one before,
# as a correction holds up to twice the largest, and up to the most clicks that are hidden.
WINDOWS = (1, 2, 4, 7, 10, 20, 30)
# Behind a correction, and the distribution of alpha too: a share is known to 0.07, and to 0.005.
MIN_USERS, MAX_HELD_OUT = 50, 10_000
# By threes or so; of days: a week, a month, half a year.
HALF_LIVES = {"clicks": (3.0, 10.0, 30.0), "days": (7.0, 30.0, 180.0)}
MAX_SCORED = 2500  # users behind one choice or figure: a share is then known to 0.01
NUMBERS = np.array([1, 3, 10, 30])  # of a user's clicks that may be hidden: threes, to WINDOWS[-1]
LEFT = np.array([1, 2, 3, 5, 8])  # clicks that a third of these users keep: few, one step apart
Floats = NDArray[np.float64]


class Later(NamedTuple):
    """Clicks that came later, or were hidden: `codes` of each of the `users`, by `starts`; their
    `places` in time, from 0, or -1 where these are not known; and the windows to look at.

    Where the order is not known, users tell most of the window that is all of their clicks: for a
    shorter one it must be assumed that any of them may have come first."""

    users: NDArray[np.int64]
    starts: NDArray[np.int64]
    codes: NDArray[np.int32]
    places: NDArray[np.int64]
    windows: list[int]

    @property
    def n_clicks(self) -> NDArray[np.int64]:
        """How many later clicks each user has."""
        return np.diff(self.starts)

    def take(self, rows: NDArray[np.int64]) -> "Later":
        """That of some of the users."""
        mine = clicks_of_rows(self.starts, rows)
        starts = np.concatenate([[0], np.cumsum(self.n_clicks[rows])])
        return Later(self.users[rows], starts, self.codes[mine], self.places[mine], self.windows)

    def is_hit(self, window: int) -> Floats:
        """The probability of each click to be among the next `window` of its user; without places
        each of n is so with a probability of window / n."""
        shares = np.repeat(window / self.n_clicks, self.n_clicks)
        return np.where(self.places < 0, shares, self.places < window)

    def weights(self, window: int) -> Floats:
        """How much each user tells of a window."""
        has_order = not len(self.places) or bool(self.places[0] >= 0)
        return np.ones(len(self.users)) if has_order else (window / self.n_clicks)


def places_in_time(clicks: Clicks, rng: np.random.Generator) -> NDArray[np.int64]:
    """The place of each click among those of its user in time, from 0; ties at random, those
    without a time last; -1 if there are no times."""
    if clicks.times is None:
        return np.full(len(clicks.codes), -1)
    order = np.lexsort((rng.random(len(clicks.codes)), clicks.times, clicks.owners))
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order)) - clicks.starts[clicks.owners]
    return places


def sum_first_clicks(clicks: Clicks) -> Floats:
    """``sums[number, item]``: how many people have an item among their first
    `FIRST_WINDOWS[number]` clicks, of those who have so many; last, how many these are.

    Of clicks at the same time, and of all of them where there are no times, any may have come
    first. A click counts a multiple of a power of 2, so that sums over users are exact.
    """
    owners, codes, times = clicks.owners, clicks.codes, clicks.times
    is_first = np.zeros(len(codes), dtype=bool)  # of those at the same time
    is_first[clicks.starts[:-1][clicks.n_clicks > 0]] = True
    if times is not None:
        order = np.lexsort((times, owners))
        codes, times = codes[order], times[order]
        is_first[1:] |= times[1:] != times[:-1]
    firsts = np.flatnonzero(is_first)
    sizes = np.diff(np.append(firsts, len(codes)))
    before = firsts - clicks.starts[owners[firsts]]
    sums = np.empty((len(FIRST_WINDOWS), clicks.n_items + 1))
    for row, window in zip(sums, FIRST_WINDOWS, strict=True):
        people = clicks.weights * (clicks.n_clicks >= window)
        parts = np.rint(np.clip((window - before) / sizes, 0, 1) * 2**20) / 2**20
        counts = np.repeat(parts * people[owners[firsts]], sizes)
        row[:-1], row[-1] = np.bincount(codes, counts, clicks.n_items), people.sum()
    return sums


def first_clicks(sums: Floats) -> Floats:
    """``probabilities[number, item]`` of an item to be among the first clicks of somebody of whom
    nothing is known: the shares, with one more person who clicks anything. Windows for which there
    are too few people are left out."""
    people, n_items = sums[:, -1:], sums.shape[1] - 1
    enough = max(int((people >= MIN_USERS).sum()), 1)
    anything = np.array(FIRST_WINDOWS)[:, None] / n_items
    return ((sums[:, :-1] + anything) / (people + 1))[:enough]


def windows_for(n_later: NDArray[np.int64]) -> list[int]:
    """The windows to look at: 1, 2, 4 and so on, and the largest for which there are users
    enough with so many clicks."""
    largest = min(int(np.sort(n_later)[-MIN_USERS]), WINDOWS[-1])
    return [*(window for window in WINDOWS if window < largest), largest]


def clicks_of_rows(starts: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places of the clicks of some rows among all clicks."""
    sizes = starts[rows + 1] - starts[rows]
    before = np.cumsum(sizes) - sizes
    return np.arange(sizes.sum()) + np.repeat(starts[rows] - before, sizes)


def most_users(most: int, n_items: int) -> int:
    """So many users, or fewer with many items: each then has more to tell."""
    least = 500 if n_items <= DENSE_ITEMS else 2000  # there only the first places are looked at
    return min(most, max(2_000_000 // n_items, least))  # users x items, some seconds' work


def seen_table(seen: Clicks, rows: slice) -> NDArray[np.bool_]:
    """``table[row, item]``: has the user clicked the item?"""
    starts = seen.starts[rows.start : rows.stop + 1]
    table = np.zeros((len(starts) - 1, seen.n_items), dtype=bool)
    owners = np.repeat(np.arange(len(table)), np.diff(starts))
    table[owners, seen.codes[starts[0] : starts[-1]]] = True
    return table


def check_calibrate(value: Any, name: str) -> bool | str:
    """A way to correct probabilities, or what is wrong with it."""
    return (
        check_name(value, name, CALIBRATIONS) if isinstance(value, str) else check_flag(value, name)
    )


def usual_calibration(clicks: Clicks) -> str:
    """By the last clicks, if that is known of most."""
    if clicks.times is None or np.isnan(clicks.times).mean() > 0.5:
        return "random"
    return "last"


def split_inside(clicks: Clicks, how: str, rng: np.random.Generator) -> Split | None:
    """The clicks to learn from, and those to learn a correction from; None for too few users."""
    if how == "cut":
        split = split_at(clicks, time_of_share(clicks, 0.2))
    else:
        numbers = draw_numbers(clicks.n_clicks, rng)
        numbers[_spared(numbers, most_users(MAX_HELD_OUT, clicks.n_items), rng)] = 0
        split = hide_numbers(clicks, numbers, how == "last", rng)
    if how == "random":  # what is hidden at random did not come later
        split = Split(split.shown, replace(split.hidden, times=None))
    is_observed = (split.hidden.n_clicks > 0) & (split.shown.n_clicks > 0)
    return split if is_observed.sum() >= MIN_USERS else None


def _spared(numbers: NDArray[np.int64], most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The users from whom nothing is hidden, so that scores are learnt from nearly all clicks: no
    more than `most` are needed."""
    eligible = np.flatnonzero(numbers)
    n_hidden = max(len(eligible) // 3, min(500, len(eligible)))
    return rng.permutation(eligible)[min(n_hidden, most) :]


def draw_numbers(n_clicks: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """How many clicks to hide from each user: any of a few numbers that leave a third; or, of some
    users, all but a few, so that the correction is learnt for new users as well.

    >>> draw_numbers(np.array([1, 2, 4, 100]), np.random.default_rng(1)).tolist()
    [0, 1, 2, 3]
    """
    choices = np.searchsorted(NUMBERS, 2 * n_clicks // 3, "right")
    numbers = NUMBERS[rng.integers(np.maximum(choices, 1))]
    left = LEFT[rng.integers(np.maximum(np.searchsorted(LEFT, n_clicks), 1))]
    numbers = np.where(rng.random(len(n_clicks)) < 1 / 3, n_clicks - left, numbers)
    return np.where(choices > 0, numbers, 0)


def choose_recency(
    model: PersonalModel, shown: Clicks, later: Clicks, n_best: int, rng: np.random.Generator
) -> Recency | None:
    """The half-life by which most later clicks are among the best unseen items. Of what is within
    one standard error of that: equal weights, None, if they are; else a number of clicks."""
    later = later.take(np.flatnonzero(later.n_clicks))
    rows = rows_of_users(shown, later.users.tolist())
    chosen = np.flatnonzero(shown.n_clicks[rows] > 1)  # with one click there is nothing to weigh
    if len(chosen) > MAX_SCORED:
        chosen = np.sort(rng.choice(chosen, MAX_SCORED, replace=False))
    seen, wanted = shown.take(rows[chosen]), later.take(chosen)
    assert shown.times is not None
    units = ("clicks", "days") if are_dates(shown.times) else ("clicks",)
    choices = [None, *(Recency(length, unit) for unit in units for length in HALF_LIVES[unit])]
    if len(chosen) < MIN_USERS:
        return None
    recalls = np.stack(
        [_recall(replace(model, recency=each), seen, wanted, n_best) for each in choices]
    )
    means = recalls.mean(axis=1)
    behind = recalls[means.argmax()] - recalls
    near = behind.mean(axis=1) <= behind.std(axis=1, ddof=1) / np.sqrt(len(chosen))
    if near[0]:
        return None
    of_clicks = np.array([each is not None and each.unit == "clicks" for each in choices])
    eligible = near & of_clicks if (near & of_clicks).any() else near
    return choices[int(np.where(eligible, means, -1.0).argmax())]


def _recall(model: PersonalModel, seen: Clicks, wanted: Clicks, n_best: int) -> NDArray[np.float64]:
    """The share of each user's later clicks that are among the best unseen items."""
    recall = np.empty(seen.n_users)
    cells = wanted.owners * wanted.n_items + wanted.codes
    for rows in blocks(seen.n_users):
        scores = model.scores_of(seen, rows)
        part = slice(seen.starts[rows.start], seen.starts[rows.stop])
        scores[seen.owners[part] - rows.start, seen.codes[part]] = -np.inf
        top = np.argpartition(-scores, n_best - 1, axis=1)[:, :n_best]
        places = np.arange(rows.start, rows.stop)[:, None] * seen.n_items + top
        recall[rows] = np.isin(places, cells).sum(axis=1)
    return recall / wanted.n_clicks
