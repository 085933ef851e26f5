"""Cayley's distance against its definition, by enumeration."""

import numpy as np
import pytest

from distance_checks import DistanceChecks, LargeChecks
from pseudomallows.distances.cayley import CAYLEY

pytestmark = pytest.mark.kernel


class TestCayley(DistanceChecks):
    distance = CAYLEY
    draw_alphas = (1.5, 2.2)


class TestManyItems(LargeChecks):
    distance = CAYLEY


def test_one_cycle_of_all_items_is_the_farthest():
    up = np.arange(1, 10_001)
    assert CAYLEY.between(np.roll(up, 1), up) == 9999
    swapped = up.copy()
    swapped[[3, 7]] = swapped[[7, 3]]
    assert CAYLEY.between(swapped, up) == 1
