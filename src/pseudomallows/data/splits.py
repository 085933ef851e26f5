"""Splits: clicks to learn from, and clicks to evaluate by, at random or by time; and their core.

All of them are sparse, and keep users and items: a user without clicks on one side is there too.
"""

import datetime as dt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..rankings import check_count
from .blocks import Clicks
from .times import DAY, times_of_column

TIMES = "name a column of the data time, timestamp, date or datetime, or give columns={'time': ...}"
# 2**64 over the golden ratio: times this, modulo 2**64, neighbours are far apart (Knuth)
SCATTER = np.uint64(0x9E3779B97F4A7C15)
DATES = (1e8, 1e10)  # numbers that may be seconds since 1970: from 1973 to 2286


class Split(NamedTuple):
    """Clicks that are shown, and those that are hidden, with the same users and items."""

    shown: Clicks
    hidden: Clicks


def _split(prefs: Clicks, is_hidden: NDArray[np.bool_]) -> Split:
    return Split(prefs.choose(~is_hidden), prefs.choose(is_hidden))


def hide_random(
    prefs: Clicks, hide: int, rng: np.random.Generator, users: NDArray[np.bool_] | None = None
) -> Split:
    """Hide so many clicks of each user who has more; with a mask of `users`, of these only.

    Examples
    --------
    >>> prefs = Clicks.from_clicks([[1, 1, 1, 0], [1, 0, 0, 0]])
    >>> shown, hidden = hide_random(prefs, 2, np.random.default_rng(1))
    >>> shown.n_clicks, hidden.n_clicks
    (array([1, 1]), array([2, 0]))
    """
    return _split(prefs, take_random(prefs, hide, rng, users))


def hide_clicks(
    prefs: Clicks,
    hide: int,
    rng: np.random.Generator,
    users: NDArray[np.bool_] | None = None,
) -> tuple[Clicks, NDArray[np.bool_]]:
    """As :func:`hide_random`, with a table of users and items for those hidden."""
    shown, hidden = hide_random(prefs, hide, rng, users)
    table = np.zeros((prefs.n_users, prefs.n_items), dtype=bool)
    table[hidden.owners, hidden.codes] = True
    return shown, table


def take_random(
    prefs: Clicks, hide: int, rng: np.random.Generator, users: NDArray[np.bool_] | None = None
) -> NDArray[np.bool_]:
    """Which clicks :func:`hide_random` hides: one place for each click."""
    enough = _has_more(prefs, hide, users)
    numbers = np.where(enough, hide, 0)
    return _take_least(prefs, numbers, rng.random(int(prefs.starts[-1])))


def hide_last(
    prefs: Clicks,
    hide: int,
    rng: np.random.Generator | None = None,
    users: NDArray[np.bool_] | None = None,
) -> Split:
    """Hide the last clicks in time of each user who has more than so many.

    Of clicks at the same time, as in one purchase of many items, it is drawn which are hidden, by
    `rng`, or always by the same numbers. A click whose time is not known counts as an early one.

    Examples
    --------
    >>> prefs = Clicks.from_clicks([[1, 1, 1, 0], [1, 0, 0, 0]], times=[[5, 9, 7, 0], [3, 0, 0, 0]])
    >>> shown, hidden = hide_last(prefs, 2)
    >>> shown.clicks_of(0), hidden.clicks_of(0)
    (array([0], dtype=int32), array([1, 2], dtype=int32))
    """
    times_of(prefs, "the last clicks")  # of these two errors, this one comes first
    enough = _has_more(prefs, hide, users)
    return _hide_last(prefs, np.where(enough, hide, 0), rng or np.random.default_rng(0))


def hide_numbers(
    prefs: Clicks, numbers: NDArray[np.int64], is_last: bool, rng: np.random.Generator
) -> Split:
    """Hide so many clicks of each user, ``numbers[user]``: the last in time, or at random.

    Examples
    --------
    >>> prefs = Clicks.from_clicks([[1] * 9, [1, 1, *[0] * 7], [1, *[0] * 8]])
    >>> numbers = np.array([2, 1, 0])
    >>> hide_numbers(prefs, numbers, False, np.random.default_rng(1)).hidden.n_clicks
    array([2, 1, 0])
    """
    if not is_last:
        return _split(prefs, _take_least(prefs, numbers, rng.random(int(prefs.starts[-1]))))
    return _hide_last(prefs, numbers, rng)


def keep_first(prefs: Clicks, most: int) -> Clicks:
    """At most so many clicks of each user, the first in time, at random those of one time; all, if
    there are no times."""
    if prefs.times is None:
        return prefs
    cells = prefs.owners * prefs.n_items + prefs.codes
    order = np.lexsort((cells.astype(np.uint64) * SCATTER, prefs.times, prefs.owners))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order)) - prefs.starts[prefs.owners]
    return prefs.choose(place < most)


def split_at(prefs: Clicks, time: float) -> Split:
    """Hide all clicks at `time` or later; those whose time is not known are shown.

    Examples
    --------
    >>> prefs = Clicks.from_clicks([[1, 1, 1, 0], [1, 0, 0, 0]], times=[[5, 9, 7, 0], [3, 0, 0, 0]])
    >>> shown, hidden = split_at(prefs, 7)
    >>> shown.n_clicks, hidden.n_clicks
    (array([1, 1]), array([2, 0]))
    """
    times = times_of(prefs, "a split by time")
    is_late = times >= time  # of NaN, it is not
    if is_late.all() or not is_late.any():
        known = times[~np.isnan(times)]
        raise ValueError(
            f"the split at {time_in_words(time)} leaves "
            f"{'nothing to learn from' if is_late.all() else 'nothing to judge by'}: the times are "
            f"from {time_in_words(known.min())} to {time_in_words(known.max())}"
        )
    return _split(prefs, is_late)


def time_of_share(prefs: Clicks, share: float) -> float:
    """The time at which the last share of the clicks begins, by which to :func:`split_at`.

    >>> prefs = Clicks.from_clicks([[1, 1], [1, 1]], times=[[1, 2], [3, 4]])
    >>> time_of_share(prefs, 0.25), time_of_share(prefs, 0.5)
    (4.0, 3.0)
    """
    if not 0 < share < 1:
        raise ValueError(f"share must be between 0 and 1, got {share}")
    times = times_of(prefs, "a split by time")
    known = np.sort(times[~np.isnan(times)])
    return float(known[min(len(known) - 1, round((1 - share) * len(known)))])


def as_time(at: Any) -> float:
    """A time that was given, a number or a date, as the number that `times` has.

    >>> as_time("1970-01-02"), as_time(7)
    (86400.0, 7.0)
    """
    try:
        times, _ = times_of_column([at], "at", is_named=True)
    except ValueError as error:
        raise ValueError(f"at must be a time: {error}") from None
    if times is None:
        raise ValueError(f"at must be a number or a date, got {at!r}")
    return float(times[0])


def times_of(prefs: Clicks, what: str) -> NDArray[np.float64]:
    """The times of the clicks, or an error that says what needs them."""
    if prefs.times is None:
        raise ValueError(f"{what} cannot be known, as the clicks have no times: {TIMES}")
    return prefs.times


def time_in_words(time: float) -> str:
    """A time for people: a date, if it looks like one.

    >>> time_in_words(1323433800.0), time_in_words(7.0)
    ('2011-12-09 12:30', '7')
    """
    if not DATES[0] <= time < DATES[1]:
        return f"{time:.15g}"
    moment = dt.datetime.fromtimestamp(time, dt.UTC)
    return f"{moment:%Y-%m-%d}" if time % DAY == 0 else f"{moment:%Y-%m-%d %H:%M}"


def _has_more(prefs: Clicks, hide: int, users: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    hide = check_count(hide, "hide")
    enough = prefs.n_clicks > hide
    if users is not None:
        enough &= users
    if not enough.any():
        raise ValueError(
            f"no user has more than {hide} clicks to hide; the most is "
            f"{prefs.n_clicks.max(initial=0)}: lower hide"
        )
    return enough


def _hide_last(prefs: Clicks, numbers: NDArray[np.int64], rng: np.random.Generator) -> Split:
    """Hide the last clicks in time, ``numbers[user]`` of each user; ties are broken at random."""
    times, owners = times_of(prefs, "the last clicks"), prefs.owners
    late_first = np.where(np.isnan(times), np.inf, -times)
    order = np.lexsort((rng.random(len(times)), late_first, owners))
    place = np.arange(len(owners)) - prefs.starts[owners]
    taken = np.zeros(len(owners), dtype=bool)
    taken[order] = place < numbers[owners]
    return _split(prefs, taken)


def _take_least(
    prefs: Clicks, numbers: NDArray[np.int64], values: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """The clicks of the least values, ``numbers[user]`` of each user; only clicks of users with a
    number are sorted, and none if that is 1 for all of them."""
    taken, users = np.zeros(len(values), dtype=bool), np.flatnonzero(numbers)
    if not len(users):
        return taken
    is_eligible = np.repeat(numbers > 0, prefs.n_clicks)
    places, eligible = np.flatnonzero(is_eligible), values[is_eligible]
    sizes = prefs.n_clicks[users]
    starts = np.cumsum(sizes) - sizes
    if (numbers[users] == 1).all():
        is_least = eligible == np.repeat(np.minimum.reduceat(eligible, starts), sizes)
        if is_least.sum() == len(users):  # no ties
            taken[places[is_least]] = True
            return taken
    order = np.lexsort((eligible, np.repeat(np.arange(len(users)), sizes)))
    rank = np.arange(len(eligible)) - np.repeat(starts, sizes)
    taken[places[order[rank < np.repeat(numbers[users], sizes)]]] = True
    return taken
