"""What comes next under Kendall's distance, against all rankings of a few items."""

import numpy as np
import pytest

import naive
from pseudomallows.kernels.kendall import next_items as kernels

pytestmark = pytest.mark.kernel

CONSENSUS = (3, 1, 2, 5, 4, 6)
CASES = [((1, 4), 2, 3.0), ((), 3, 0.0), ((0,), 2, 8.0), ((1,), 6, 2.0), ((0, 2, 5), 1, 40.0)]


def probabilities_of_items(clicked, window, alpha):
    """From the table of places."""
    probabilities, size = np.empty(6), 6 - len(clicked)
    kernels.fill_place_probabilities(alpha / 6, 0, size, window, probabilities)
    unclicked = [item for item in np.argsort(CONSENSUS).tolist() if item not in clicked]
    assert (probabilities[size:] == 0).all()
    return {item: probabilities[place] for place, item in enumerate(unclicked)}


@pytest.mark.parametrize(("clicked", "window", "alpha"), CASES)
def test_tables_hold_the_exact_probabilities(clicked, window, alpha):
    exact = naive.next_probabilities(clicked, CONSENSUS, alpha, window, "kendall")
    found = probabilities_of_items(clicked, window, alpha)
    assert found == pytest.approx({item: exact[item] for item in found}, abs=1e-12)


def test_those_of_the_footrule_are_others():
    exact = naive.next_probabilities((1, 4), CONSENSUS, 3.0, 2)
    found = probabilities_of_items((1, 4), 2, 3.0)
    assert found != pytest.approx({item: exact[item] for item in found}, abs=1e-3)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 20.0, 300.0])
def test_later_places_do_not_need_those_far_before(alpha):
    window, table, some = 5, np.empty(40), np.empty(12)
    kernels.fill_place_probabilities(alpha / 50, 0, 40, window, table)
    kernels.fill_place_probabilities(alpha / 50, 20, 40, window, some)
    assert some[window:] == pytest.approx(table[20 + window : 32], rel=1e-12)
    assert alpha == 300 or some[:window] != pytest.approx(table[20 : 20 + window], rel=1e-3)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 20.0, 300.0])
def test_the_first_places_do_not_need_those_behind(alpha):
    few, all_places = np.empty(7), np.empty(40)
    kernels.fill_place_probabilities(alpha / 50, 0, 40, 5, few)
    kernels.fill_place_probabilities(alpha / 50, 0, 40, 5, all_places)
    assert (few == all_places[:7]).all()
    assert all_places.sum() == pytest.approx(5)
    assert (np.diff(all_places) <= 1e-15).all()


@pytest.mark.parametrize("alpha", [0.0, 2.0, 30.0, 400.0])
def test_probabilities_further_down_are_right_to_one_part_in_ten_thousand(alpha):
    size, window, n_top = 3000, 8, 40
    table, places = np.empty(size), [n_top - 1]
    while places[-1] < size:
        places.append(max(places[-1] + 1, round(places[-1] * kernels.RATIO)))
    places, far = np.array(places), np.empty(len(places))
    kernels.fill_place_probabilities(alpha / size, 0, size, window, table)
    kernels.fill_far_probabilities(alpha / size, size, window, places, far)
    wanted = np.arange(n_top, places[-2] + 1, 7)
    found = [kernels.far_probability(place, places, far) for place in wanted]
    assert np.array(found) == pytest.approx(table[wanted], rel=1e-4)
