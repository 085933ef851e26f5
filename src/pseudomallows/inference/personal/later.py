"""Clicks that came later, or were hidden, and what came true of them for each window."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...posteriors.personal import FIRST_WINDOWS, MAX_ITEMS
from ...preferences import Clicks

WINDOWS = (1, 2, 4, 7, 10, 20, 30)  # numbers of next items for which what comes true is looked at
MIN_USERS, MAX_HELD_OUT = 50, 10_000  # behind a correction
MAX_PAIRS, LEAST_USERS = 2_000_000, 500  # users x items behind a correction; users at least
LEAST_OF_LARGE = 2000  # the same with very many items
FALL = 1  # of what clicks of unknown order tell of windows shorter than they are
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

    def came_true(self, window: int) -> Floats:
        """The chance of each click to be among the next `window` of its user; without places each
        of n is so with a chance of window / n."""
        shares = np.repeat(window / self.n_clicks, self.n_clicks)
        return np.where(self.places < 0, shares, self.places < window)

    def weights(self, window: int) -> Floats:
        """How much each user tells of a window."""
        has_order = not len(self.places) or bool(self.places[0] >= 0)
        return np.ones(len(self.users)) if has_order else (window / self.n_clicks) ** FALL


def places_in_time(clicks: Clicks, rng: np.random.Generator) -> NDArray[np.int64]:
    """The place of each click among those of its user in time, from 0; ties by chance, those
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
    """The windows to look at: 1, 3, 10 and so on, and the largest for which there are users
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
    least = LEAST_USERS if n_items <= MAX_ITEMS else LEAST_OF_LARGE
    return min(most, max(MAX_PAIRS // n_items, least))


def seen_table(seen: Clicks, rows: slice) -> NDArray[np.bool_]:
    """``table[row, item]``: has the user clicked the item?"""
    starts = seen.starts[rows.start : rows.stop + 1]
    table = np.zeros((len(starts) - 1, seen.n_items), dtype=bool)
    owners = np.repeat(np.arange(len(table)), np.diff(starts))
    table[owners, seen.codes[starts[0] : starts[-1]]] = True
    return table
