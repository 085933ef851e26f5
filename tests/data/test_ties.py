"""Ties: every way to write them, and what a row with ties says."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

import naive
import pseudomallows as pm


@st.composite
def grouped_items(draw, with_missing=True):
    """(groups of items, best first; number of items), some of them maybe in no group."""
    n_items = draw(st.integers(2, 7))
    items = draw(st.permutations(range(n_items)))
    if with_missing:
        items = items[: draw(st.integers(0, n_items))]
    cuts = sorted(draw(st.sets(st.integers(1, max(len(items) - 1, 1)))))
    groups = [items[a:b] for a, b in zip([0, *cuts], [*cuts, len(items)], strict=True)]
    return [group for group in groups if group], n_items


def table_of(groups, n_items, method):
    """A row of ranks as SciPy writes them, 0 for items in no group."""
    numbers = np.zeros(n_items)
    for number, group in enumerate(groups, 1):
        numbers[group] = number
    row, known = np.zeros(n_items), numbers > 0
    row[known] = rankdata(numbers[known], method)
    return row


def ranks_of(rows, **options):
    return pm.Preferences.from_rankings(rows, **options).rankings.tolist()


def orderings_to_ranks(groups, n_items):
    return pm.Preferences.from_orderings([groups], items=range(n_items)).rankings.tolist()


@given(grouped_items(with_missing=False), st.sampled_from(["min", "max", "average", "dense"]))
def test_a_complete_row_is_the_order_of_its_groups_however_it_is_written(drawn, method):
    groups, n_items = drawn
    row = table_of(groups, n_items, method)
    assert ranks_of([row]) == orderings_to_ranks(groups, n_items)
    assert ranks_of([row]) == [table_of(groups, n_items, "min").astype(int).tolist()]


@pytest.mark.filterwarnings("ignore::pseudomallows.data.ZeroBasedWarning")
@given(grouped_items(), st.sampled_from(["min", "dense"]))
def test_a_top_list_with_ties_is_the_same_as_a_table_and_as_lists(drawn, method):
    groups, n_items = drawn
    row = table_of(groups, n_items, method)
    assert ranks_of([row]) == orderings_to_ranks(groups, n_items)


@given(grouped_items())
def test_means_say_the_same_where_a_half_shows_them(drawn):
    groups, n_items = drawn
    row = table_of(groups, n_items, "average")
    if (row != np.floor(row)).any():
        assert ranks_of([row]) == orderings_to_ranks(groups, n_items)


@given(st.lists(st.integers(0, 8), min_size=2, max_size=5), st.booleans())
def test_what_is_accepted_agrees_with_some_full_ranking(halves, whole):
    row = [half // 2 if whole else half / 2 for half in halves]
    try:
        ranks = ranks_of([row])[0]
    except ValueError:
        return
    assert naive.completions(ranks)
    assert ranks_of([ranks]) == [ranks]  # read once more, it is the same
    known = [item for item in range(len(row)) if row[item]]
    for one in known:
        for other in known:
            assert (row[one] < row[other]) == (ranks[one] < ranks[other])


@pytest.mark.parametrize(
    ("row", "ranks"),
    [
        ([0, 2, 2, 1, 0], [0, 2, 2, 1, 0]),
        ([0, 2, 2, 0, 0], [0, 2, 2, 0, 0]),  # some item is the best, nobody knows which
        ([2, 2, 2, 0, 0], [2, 2, 2, 0, 0]),
        ([1, 1, 2, 0, 0], [1, 1, 3, 0, 0]),
        ([1, 2, 2, 3, 0], [1, 2, 2, 4, 5]),  # one rank is left for the last
        ([4, 4, np.nan, 1, np.nan], [4, 4, 0, 1, 0]),
        ([1.5, 1.5, 0, 0, 5], [1, 1, 0, 0, 5]),
        ([2, 2, 2, 4.5, 4.5], [1, 1, 1, 4, 4]),
        ([1, 1, 1, 1, 1], [1] * 5),
        ([3, 3, 3, 3, 3], [1] * 5),
    ],
)
def test_ties_and_missing_ranks_in_one_row(row, ranks):
    assert ranks_of([row]) == [ranks]


@pytest.mark.parametrize(
    "row",
    [
        [2, 2, 3, 3],  # who is the best?
        [4, 4, 0, 0],  # no room for two from rank 4 on
        [1, 1, 1, 3],
        [1, 1.5, 1.5, 0],
        [1.25, 1.25, 3, 4],
        [3, 3, 4, 0],
    ],
)
def test_ties_that_are_not_clear_are_refused(row):
    with pytest.raises(ValueError, match=r"rankings\[1\] is not a ranking of 4 items: .*not clear"):
        pm.Preferences.from_rankings([[1, 2, 3, 4], row])


def test_half_a_rank_without_a_tie_is_refused():
    with pytest.raises(ValueError, match="only items that tie can share a mean rank"):
        pm.Preferences.from_rankings([[1, 2, 3, 4], [2, 2, 4, 0.5]])


@pytest.mark.parametrize(
    "rows",
    [[[0, 1, 1, 2], [2, 1, 0, 1]], [[0, 0, 2, 3], [0, 1, 2, 3]], [[0, 1.5, 1.5, 3], [3, 2, 1, 0]]],
)
def test_ties_that_start_at_zero_are_pointed_out(rows):
    with pytest.warns(pm.data.ZeroBasedWarning, match="add 1 if the ranks start at 0"):
        pm.Preferences.from_rankings(rows)


@pytest.mark.parametrize(
    "rows",
    [
        [[1, 0, 0, 0], [0, 0, 0, 1]],
        [[1, 2, 0, 0], [0, 1, 0, 2]],
        [[1, 1, 0, 0], [0, 1, 0, 1]],
    ],
)
def test_lists_of_the_first_few_do_not_seem_to_start_at_zero(rows):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pm.Preferences.from_rankings(rows).rankings.tolist() == rows


def test_frames_and_weights_take_ties_too():
    table = {"ale": [1, 1], "gin": [2, 1], "rum": [2, None], "tea": [4, None]}
    for frame in (pd.DataFrame(table), pl.DataFrame(table)):
        prefs = pm.Preferences.from_rankings(frame, weights=[3, 2])
        assert prefs.rankings.tolist() == [[1, 2, 2, 4], [1, 1, 0, 0]]
        assert prefs.mean_ranks().tolist() == [1.2, 2.1, (3 * 2.5 + 2 * 3.5) / 5, 3.8]
        assert prefs.one_row_each()[0].rankings.tolist() == [[1, 2, 2, 4]] * 3 + [[1, 1, 0, 0]] * 2


def test_a_tie_in_a_list_is_a_list_a_tuple_a_set_or_an_array():
    for tie in (["b", "c"], ("b", "c"), {"c", "b"}, frozenset("bc"), np.array(["c", "b"])):
        prefs = pm.Preferences.from_orderings([["d", tie, "a"], ["a", None]])
        assert prefs.items.tolist() == ["a", "b", "c", "d"]
        assert prefs.rankings.tolist() == [[4, 2, 2, 1], [1, 0, 0, 0]]


def test_a_cell_of_a_frame_may_hold_a_tie():
    frame = pd.DataFrame({"first": ["a", ["b", "c"]], "second": [["b", "c"], "a"]})
    assert pm.Preferences.from_orderings(frame).rankings.tolist() == [[1, 2, 2], [3, 1, 1]]


def test_a_tuple_among_the_items_is_a_name():
    items = [("x", 1), ("y", 2), "z"]
    prefs = pm.Preferences.from_orderings([[("y", 2), "z"], [{("x", 1), "z"}]], items=items)
    assert prefs.rankings.tolist() == [[3, 1, 2], [1, 3, 1]]


@pytest.mark.parametrize(
    ("ordering", "message"),
    [
        (["a", ["b", "a"]], r"orderings\[0\]: 'a' is there twice"),
        (["a", ["b", None], "c"], "missing entry in a tie"),
        (["a", [], "c"], "place 2 is empty, but later ones are not"),
        (["a", ["b", ["c", "d"]]], r"a tie within a tie: \['c', 'd'\]"),
    ],
)
def test_lists_with_ties_are_checked(ordering, message):
    with pytest.raises((ValueError, TypeError), match=message):
        pm.Preferences.from_orderings([ordering])


def test_half_ranks_anywhere_make_all_ranks_means():
    """As pandas ranks by default: three first ones and one that is not ranked are 2, 2, 2, NaN."""
    found = pm.Preferences.from_rankings([[2, 2, 2, np.nan], [1.5, 1.5, 3, 4]]).rankings
    np.testing.assert_array_equal(found, [[1, 1, 1, 4], [1, 1, 3, 4]])


def test_a_missing_entry_in_a_tie_is_refused():
    with pytest.raises(ValueError, match=r"orderings\[0\] has a missing entry in a tie"):
        pm.Preferences.from_orderings([["x", ["y", None]], ["y", "x", "z"]])
