"""The core of clicks; what it is by definition is checked where files are read."""

import numpy as np
import pytest

import pseudomallows as pm
from pseudomallows.data.blocks import keep_core


def test_the_core_keeps_times_and_names():
    table = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 1, 1, 1]])
    prefs = pm.Preferences.from_clicks(table, times=table * np.arange(12).reshape(3, 4))
    core = keep_core(prefs, 2)
    assert (core.users.tolist(), core.items.tolist()) == ([1, 2], [1, 2])
    assert core.times.tolist() == [5, 6, 9, 10]
    assert keep_core(core, 1).digest() == core.digest()
    with pytest.raises(ValueError, match="min_clicks=3 leaves nothing"):
        keep_core(prefs, 3)
