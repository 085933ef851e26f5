"""Clicks that came later, or were hidden, and what came true of them for each window."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...posteriors.personal import MAX_ITEMS
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
