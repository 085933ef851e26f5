"""Recency: how much less an old click says than a new one."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..data.blocks import Clicks
from ..data.splits import DATES
from ..data.times import DAY

UNITS = ("clicks", "visits", "days")
PAUSE = 1800.0  # seconds without a click that end a visit: half an hour, as web analytics has it


@dataclass(frozen=True)
class Recency:
    """The weight of a click halves every so many `clicks` of the user that came after it, every so
    many later `visits` (clicks without a pause of half an hour), or every so many `days` before the
    user's last one.

    >>> clicks = Clicks.from_clicks([[1, 1, 1]], times=[[0, 10, 10]])
    >>> Recency(1.0, "clicks").weights_of(clicks)
    array([0.25, 1.  , 1.  ])
    """

    half_life: float
    unit: str

    def __str__(self) -> str:
        return f"the weight of a click halves every {self.half_life:g} {self.unit}"

    def is_known(self, seen: Clicks) -> bool:
        """Is it known how old these clicks are? Visits and days are only by dates."""
        if seen.times is None:
            return False
        return self.unit == "clicks" or are_dates(seen.times)

    def weights_of(self, seen: Clicks) -> NDArray[np.float64]:
        """``weights[place]`` of each click; 1 where there are no times. Clicks at the same time are
        as old as each other, and those without a time as the oldest that has one."""
        if seen.times is None:
            return np.ones(len(seen.codes))
        ages_in = {"clicks": ages_in_clicks, "visits": ages_in_visits, "days": ages_in_days}
        ages = ages_in[self.unit](seen)
        return np.asarray(np.exp2(-ages / self.half_life))


def are_dates(times: NDArray[np.float64]) -> bool:
    """Do these times look like seconds since 1970?"""
    known = times[~np.isnan(times)]
    return len(known) > 0 and bool(DATES[0] <= np.median(known) < DATES[1])


def ages_in_clicks(seen: Clicks) -> NDArray[np.float64]:
    """How many clicks of the same user came after each."""
    times, owners = _known_times(seen), seen.owners
    order = np.lexsort((-times, owners))  # the last of each user first
    mine, when = owners[order], times[order]
    is_first = np.ones(len(order), dtype=bool)  # of those at the same time
    is_first[1:] = (mine[1:] != mine[:-1]) | (when[1:] != when[:-1])
    starts = np.maximum.accumulate(np.where(is_first, np.arange(len(order)), 0))
    ages = np.empty(len(order))
    ages[order] = starts - seen.starts[mine]
    return ages


def ages_in_visits(seen: Clicks) -> NDArray[np.float64]:
    """How many visits of the same user came after that of each click."""
    times, owners = _known_times(seen), seen.owners
    order = np.lexsort((-times, owners))  # the last of each user first
    mine, when = owners[order], times[order]
    is_earlier = np.zeros(len(order), dtype=np.int64)
    is_earlier[1:] = (mine[1:] == mine[:-1]) & (when[:-1] - when[1:] > PAUSE)
    visits, ages = np.cumsum(is_earlier), np.empty(len(order))
    firsts = seen.starts[mine]  # of each user, whose first place here is that of the last click
    ages[order] = visits - visits[np.minimum(firsts, max(len(visits) - 1, 0))]
    return ages


def ages_in_days(seen: Clicks) -> NDArray[np.float64]:
    """How long before the last click of the same user each was."""
    times = _known_times(seen)
    last = np.full(seen.n_users, -np.inf)
    np.maximum.at(last, seen.owners, times)
    return np.asarray((last[seen.owners] - times) / DAY)


def _known_times(seen: Clicks) -> NDArray[np.float64]:
    assert seen.times is not None
    if not np.isnan(seen.times).any():
        return seen.times
    oldest = np.full(seen.n_users, np.inf)
    np.minimum.at(oldest, seen.owners, np.where(np.isnan(seen.times), np.inf, seen.times))
    oldest[~np.isfinite(oldest)] = 0.0
    return np.where(np.isnan(seen.times), oldest[seen.owners], seen.times)
