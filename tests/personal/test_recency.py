"""How much less an old click says than a new one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pseudomallows as pm
from pseudomallows.personal.recency import DAY, Recency

ROWS = st.lists(
    st.lists(st.one_of(st.integers(0, 5), st.none()), min_size=1, max_size=6),
    min_size=1,
    max_size=4,
)


def clicks_of(rows):
    table = [
        [index, column, time] for index, row in enumerate(rows) for column, time in enumerate(row)
    ]
    users, items, times = (list(each) for each in zip(*table, strict=True))
    starts = np.searchsorted(users, np.arange(len(rows) + 1))
    return pm.Clicks(
        np.ones(len(rows), np.int64),
        np.arange(len(rows)),
        np.arange(6),
        starts,
        np.array(items, np.int32),
        times=np.array([np.nan if time is None else time * DAY for time in times]),
    )


@given(ROWS)
def test_ages_are_those_of_their_definition(rows):
    found = clicks_of(rows)
    by_clicks, by_days = (Recency(2.0, unit).weights_of(found) for unit in ("clicks", "days"))
    place = 0
    for row in rows:
        known = [time for time in row if time is not None]
        filled = [min(known, default=0) if time is None else time for time in row]
        for time in filled:
            assert by_clicks[place] == 0.5 ** (sum(other > time for other in filled) / 2)
            assert by_days[place] == pytest.approx(0.5 ** ((max(filled) - time) / 2))
            place += 1


def test_without_times_all_clicks_weigh_alike():
    found = pm.Preferences.from_clicks([[1, 0, 1], [1, 1, 0]])
    assert (Recency(1.0, "days").weights_of(found) == 1).all()
