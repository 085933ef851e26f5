"""What comes next: clicks that came later, or are hidden inside a fit, what is observed of them for
each window, and what is learnt from them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Clicks
from ..data.splits import hide_numbers, time_of_share, times_of
from ..engines.memory import DENSE_ITEMS
from .personal_fit import FIRST_WINDOWS

# Numbers of next items for which what is observed is looked at: each at most twice the one before,
# as a correction holds up to twice the largest, and up to the most clicks that are hidden.
WINDOWS = (1, 2, 4, 7, 10, 20, 30)
# Behind a correction, and the distribution of alpha too: a share is known to 0.07, and to 0.005.
MIN_USERS, MAX_HELD_OUT = 50, 10_000
MAX_SCORED = 2500  # users behind one choice or figure: a share is then known to 0.01
NUMBERS = np.array([1, 3, 10, 30])  # of a user's clicks that may be hidden: threes, to WINDOWS[-1]
LEFT = np.array([1, 2, 3, 5, 8, 12])  # clicks that some users keep: few, one step apart
N_EVER = 100  # people of all times beside those of now, by whom a share is known to 0.05
LAST_SHARE = 0.2  # of the clicks, which come after the date that divides them
# Times this share: so that no one date decides what is popular now. With 0.75 and 1.5, as far
# ahead each, date cuts of retail were level, and new customers replayed were hit less.
OTHER_CUTS = (0.5, 1.75)
MOST_LATER = 0.6  # of the clicks, at most: something must be left to learn from
LEAST_SPANNING = 100  # users with clicks before and after a date, to learn from it unasked
Floats = NDArray[np.float64]


class Later(NamedTuple):
    """Clicks that came later, or were hidden: `codes` of each of the `users`, by `starts`; their
    `places` in time, from 0, or -1 where these are not known; the windows to look at; and who is as
    usual, and does not keep but a few clicks.

    Where the order is not known, usual users tell most of the window that is all of their clicks:
    for a shorter one it must be assumed that any of them may have come first. Those with few clicks
    stand for new users, of whom the next clicks are asked for, not all: there everybody counts."""

    users: NDArray[np.int64]
    starts: NDArray[np.int64]
    codes: NDArray[np.int32]
    places: NDArray[np.int64]
    windows: list[int]
    is_usual: NDArray[np.bool_]

    @property
    def n_clicks(self) -> NDArray[np.int64]:
        """How many later clicks each user has."""
        return np.diff(self.starts)

    def take(self, rows: NDArray[np.int64]) -> "Later":
        """That of some of the users."""
        mine = clicks_of_rows(self.starts, rows)
        starts = np.concatenate([[0], np.cumsum(self.n_clicks[rows])])
        of_clicks = starts, self.codes[mine], self.places[mine]
        return Later(self.users[rows], *of_clicks, self.windows, self.is_usual[rows])

    def is_hit(self, window: int) -> Floats:
        """The probability of each click to be among the next `window` of its user; without places
        each of n is so with a probability of window / n."""
        shares = np.repeat(window / self.n_clicks, self.n_clicks)
        return np.where(self.places < 0, shares, self.places < window)

    def weights(self, window: int) -> Floats:
        """How much each user tells of a window."""
        has_order = bool((self.places >= 0).all())
        return np.where(self.is_usual & ~has_order, window / self.n_clicks, 1.0)


def places_in_time(clicks: Clicks, rng: np.random.Generator) -> NDArray[np.int64]:
    """The place of each click among those of its user in time, from 0; ties at random, those
    without a time last; -1 if there are no times."""
    if clicks.times is None:
        return np.full(len(clicks.codes), -1)
    order = np.lexsort((rng.random(len(clicks.codes)), clicks.times, clicks.owners))
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order)) - clicks.starts[clicks.owners]
    return places


def sum_first_clicks(clicks: Clicks, people: NDArray[Any] | None = None) -> Floats:
    """``sums[number, item]``: how many people have an item among their first
    `FIRST_WINDOWS[number]` clicks, of those who have so many; last, how many these are. A user is
    as many `people` as are given, else as many as the row stands for.

    Of clicks at the same time, and of all of them where there are no times, any may have come
    first. A click counts a multiple of a power of 2, so that sums over users are exact.
    """
    owners, codes, times = clicks.owners, clicks.codes, clicks.times
    people = clicks.weights.astype(np.float64) if people is None else people
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
        mine = people * (clicks.n_clicks >= window)
        parts = np.rint(np.clip((window - before) / sizes, 0, 1) * 2**20) / 2**20
        counts = np.repeat(parts * mine[owners[firsts]], sizes)
        row[:-1], row[-1] = np.bincount(codes, counts, clicks.n_items), mine.sum()
    return sums


def first_times(clicks: Clicks) -> Floats:
    """When each user came first; not a number for who has no click of a known time."""
    times = np.full(clicks.n_users, np.inf)
    if clicks.times is not None:
        known = np.where(np.isnan(clicks.times), np.inf, clicks.times)
        np.minimum.at(times, clicks.owners, known)
    return np.where(np.isinf(times), np.nan, times)


def sum_faded(clicks: Clicks, now: float, life: float | None) -> Floats:
    """`sum_first_clicks`, where those who came earlier count half with every `life`; but with some
    people more who are as they always were."""
    ever = sum_first_clicks(clicks)
    if life is None:
        return ever
    ages = np.nan_to_num(now - first_times(clicks), nan=np.inf)
    faded = sum_first_clicks(clicks, clicks.weights * np.exp2(-np.maximum(ages, 0.0) / life))
    return np.asarray(faded + ever * np.minimum(N_EVER / np.maximum(ever[:, -1:], 1e-9), 1.0))


def choose_life(clicks: Clicks, cuts: Sequence[float], lives: Sequence[float]) -> float | None:
    """The half-life by which those who came before a date tell best what those who came later click
    first; None, everybody alike, unless one is better by more than a standard error."""
    ways, came, gains, errors = [None, *lives], first_times(clicks), [], []
    for cut in cuts:
        before, after = clicks.take(came < cut), clicks.take(came >= cut)
        counts = sum_first_clicks(after)[0]
        if counts[-1] < MIN_USERS or before.n_users < MIN_USERS:
            continue
        logs = np.log([first_clicks(sum_faded(before, cut, life))[0] for life in ways])
        shares = counts[:-1] / counts[:-1].sum()
        gain = logs - logs[0]
        gains.append(gain @ shares)
        errors.append((gain - gains[-1][:, None]) ** 2 @ shares / counts[-1])
    if not gains:
        return None
    mean, error = np.mean(gains, axis=0), np.sqrt(np.sum(errors, axis=0)) / len(gains)
    if len(gains) > 1:
        error = np.maximum(error, np.std(gains, axis=0, ddof=1) / np.sqrt(len(gains)))
    best = int(mean.argmax())
    return ways[best] if mean[best] > error[best] else None


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


def usual_calibration(clicks: Clicks) -> str:
    """What comes after a date, if the times of most clicks are known and say of any order."""
    if clicks.times is None or np.isnan(clicks.times).mean() > 0.5:
        return "random"
    return "cut" if np.nanmax(clicks.times) > np.nanmin(clicks.times) else "random"


class Inside(NamedTuple):
    """Clicks to learn from, and hidden ones to learn from how these are found; up to what time
    something is known (`now`), and of whom what is hidden is what a fit will be asked for: others
    keep but a few clicks, so that the correction is learnt where it is used."""

    shown: Clicks
    hidden: Clicks
    how: str
    now: float
    is_usual: NDArray[np.bool_]

    @property
    def n_users(self) -> int:
        """With clicks on both sides."""
        return int(((self.hidden.n_clicks > 0) & (self.shown.n_clicks > 0)).sum())

    @property
    def n_spanning(self) -> int:
        """Of these, for whom what is hidden is what a fit will be asked for."""
        return int((self.is_usual & (self.shown.n_clicks > 0)).sum())


def split_inside(
    clicks: Clicks,
    how: str,
    rng: np.random.Generator,
    is_asked: bool = True,
    share: float = LAST_SHARE,
) -> Inside | None:
    """The clicks to learn from, and those to learn a correction from; None for too few users. A
    date that divides the clicks of few users is replaced by their last ones, unless it was asked
    for."""
    if how == "cut":
        inside = split_at_date(clicks, rng, share)
        if inside is not None and (is_asked or inside.n_spanning >= LEAST_SPANNING):
            return inside if inside.n_users >= MIN_USERS else None
        how = "last"
    numbers, is_few = draw_numbers(clicks.n_clicks, rng)
    most = most_users(MAX_HELD_OUT, clicks.n_items)
    numbers[_spared(numbers, most, how, rng)] = 0
    split = hide_numbers(clicks, numbers, how == "last", rng)
    hidden = split.hidden
    if how == "random":  # what is hidden at random did not come later
        hidden = replace(hidden, times=None)
    inside = Inside(split.shown, hidden, how, np.inf, (numbers > 0) & ~is_few)
    return inside if inside.n_users >= MIN_USERS else None


def split_at_date(
    clicks: Clicks, rng: np.random.Generator, share: float = LAST_SHARE
) -> Inside | None:
    """All clicks of the last `share` are hidden; but who came later still is shown with the first
    few clicks, as a service sees new users, and so are some of the others. None if all clicks are
    at one time."""
    times, cut = times_of(clicks, "a split by time"), time_of_share(clicks, share)
    is_late = times >= cut  # of unknown times, it is not
    if is_late.all():
        return None
    places, most = places_in_time(clicks, rng), most_users(MAX_HELD_OUT, clicks.n_items) // 4
    n_late = np.bincount(clicks.owners[is_late], minlength=clicks.n_users)
    n_early = clicks.n_clicks - n_late
    is_usual = (n_early > 0) & (n_late > 0)
    new = rng.permutation(np.flatnonzero((n_early == 0) & (n_late > 1)))[:most]
    old = np.flatnonzero((n_early > 1) & (clicks.n_clicks > 3))
    old = rng.permutation(old)[: min(most, len(old) // 4)]
    few = np.concatenate([new, old])
    left = LEFT[rng.integers(np.maximum(np.searchsorted(LEFT, clicks.n_clicks[few]), 1))]
    n_shown = np.full(clicks.n_users, -1)
    n_shown[few] = left
    is_usual[few] = False
    mine = n_shown[clicks.owners]
    taken = np.where(mine >= 0, places >= mine, is_late)
    return Inside(clicks.choose(~taken), clicks.choose(taken), "cut", cut, is_usual)


def shares_of_cuts(share: float) -> list[float]:
    """The shares of the clicks that come after the dates, the one that is asked for first."""
    return [share, *(min(times * share, MOST_LATER) for times in OTHER_CUTS)]


def splits_inside(
    inside: Inside | None, clicks: Clicks, rng: np.random.Generator, share: float = LAST_SHARE
) -> list[Inside]:
    """This split, and, if it is at a date, those at other dates that enough users clicked before
    and after: so that no one date decides what comes next."""
    if inside is None or inside.how != "cut":
        return [] if inside is None else [inside]
    others = [split_at_date(clicks, rng, other) for other in shares_of_cuts(share)[1:]]
    eligible = [each for each in others if each is not None and each.n_spanning >= LEAST_SPANNING]
    return [inside, *eligible]


def _spared(
    numbers: NDArray[np.int64], most: int, how: str, rng: np.random.Generator
) -> NDArray[np.int64]:
    """The users from whom nothing is hidden, so that scores are learnt from nearly all clicks: two
    thirds, or half where the weights of the scores are learnt too; no more than `most` are
    needed."""
    eligible = np.flatnonzero(numbers)
    n_hidden = len(eligible) // (2 if how == "last" else 3)
    n_hidden = max(n_hidden, min(500, len(eligible)))
    return rng.permutation(eligible)[min(n_hidden, most) :]


def draw_numbers(
    n_clicks: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """How many clicks to hide from each user: any of a few numbers that leave a third; or, of some
    users, all but a few, so that the correction is learnt for new users as well; and who these are.

    >>> draw_numbers(np.array([1, 2, 4, 100]), np.random.default_rng(1))[0].tolist()
    [0, 1, 2, 3]
    """
    choices = np.searchsorted(NUMBERS, 2 * n_clicks // 3, "right")
    numbers = NUMBERS[rng.integers(np.maximum(choices, 1))]
    left = LEFT[rng.integers(np.maximum(np.searchsorted(LEFT, n_clicks), 1))]
    is_few = rng.random(len(n_clicks)) < 1 / 3
    numbers = np.where(is_few, n_clicks - left, numbers)
    return np.where(choices > 0, numbers, 0), is_few
