"""What holds for every distance, and the doors by which they are found."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from pseudomallows import distances
from pseudomallows.distances import DISTANCES

three_rankings = st.integers(1, 9).flatmap(
    lambda n: st.tuples(*[st.permutations(list(range(1, n + 1)))] * 3)
)


@pytest.mark.parametrize("name", DISTANCES)
@given(found=three_rankings)
def test_it_is_a_distance_that_does_not_see_names(name, found):
    first, second, items = found
    between = DISTANCES[name].between
    value = int(between(first, second))
    assert value == between(second, first)
    assert (value == 0) == (first == second)
    assert value == between(*([ranking[i - 1] for i in items] for ranking in (first, second)))


def test_every_distance_has_its_definition_and_every_definition_its_distance():
    assert set(DISTANCES) == set(naive.DISTANCES)


def test_a_distance_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(ValueError, match="one of 'footrule', .*'ulam', got 'manhattan'"):
        distances.get("manhattan")


def test_those_that_add_up_over_items_can_be_told():
    adding = {name for name, distance in DISTANCES.items() if distances.adds_up(distance)}
    assert adding == {"footrule", "spearman", "hamming"}
    for name in sorted(set(DISTANCES) - adding):
        wanted = f"distance='{name}' does not add up over items: use one of 'footrule', "
        with pytest.raises(ValueError, match=wanted):
            distances.get_price(name)
