"""PrefLib: orders with ties and counts."""

import pytest

import pseudomallows as pm
from pseudomallows.data.read import read_as

PREFLIB = """# FILE NAME: x.toc
# NUMBER ALTERNATIVES: 4
# ALTERNATIVE NAME 1: ale
# ALTERNATIVE NAME 2: gin
# ALTERNATIVE NAME 3: rum
# ALTERNATIVE NAME 4: mead
"""


def test_preflib(put):
    found = pm.read(put(PREFLIB + "7: 3,1,2,4\n2: 4,{1,2},3\n1: 2\n", "x.toi"))
    assert found.weights.tolist() == [7, 2, 1]
    assert found.items.tolist() == ["ale", "gin", "rum", "mead"]
    assert found.rankings.tolist() == [[2, 3, 1, 4], [2, 2, 4, 1], [0, 1, 0, 0]]


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("# NUMBER VOTERS: 7", None),
        ("# NUMBER UNIQUE ORDERS: 2", None),
        ("# NUMBER VOTERS: 9", "9 voters are announced, but there are 7: the file seems to be cut"),
        ("# number voters : 6", "6 voters are announced, but there are 7$"),
        ("# NUMBER UNIQUE ORDERS: 3", "3 unique orders are announced, but there are 2: .* cut"),
        ("# NUMBER ALTERNATIVES: 5", "5 alternatives are announced, but there are 4"),
    ],
)
def test_a_preflib_file_has_what_it_announces(put, header, words):
    names = PREFLIB if "ALTERNATIVES" not in header else PREFLIB.replace("# NUMBER ALT", "# ALT")
    path = put(f"{names}{header}\n5: 1,2,3,4\n2: 2,1,3,4\n", "x.soc")
    if words is None:
        assert pm.read(path).weights.tolist() == [5, 2]
        return
    with pytest.raises(ValueError, match=words):
        pm.read(path)


def test_every_cut_of_a_preflib_file_is_found(put):
    whole = PREFLIB + "# NUMBER VOTERS: 9\n5: 1,2,3,4\n2: 2,1,3,4\n2: 4,3,2,1\n"
    for end in range(len(whole) - 1):
        with pytest.raises(ValueError, match=r"x\.soc"):
            pm.read(put(whole[:end], "x.soc"))


@pytest.mark.parametrize("ending", [".toc", ".toi"])
def test_every_tie_is_kept(put, ending):
    lines = "3: {1,2},{3,4}\n1: {1,2,3,4}\n2: 2,{1,3,4}\n"
    found = pm.read(put(PREFLIB + lines, f"x{ending}"))
    assert found.rankings.tolist() == [[1, 1, 3, 3], [1, 1, 1, 1], [2, 1, 2, 2]]
    assert found.weights.tolist() == [3, 1, 2]


def test_ties_among_some_of_the_items(put):
    found = pm.read(put(PREFLIB + "1: {2,3}\n1: {1,2},3\n1: 4,{1,2}\n", "x.toi"))
    assert found.rankings.tolist() == [[0, 1, 1, 0], [1, 1, 3, 4], [2, 2, 4, 1]]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("x: 1,2\n", "line 7: wanted 'count: item,item,...'"),
        ("1: 1,b\n", "line 7: wanted numbers, commas and braces"),
        ("1: 1,9\n", "line 7: item 9 has no name"),
        ("1: 1,2,1\n", "line 7: item 1 is there twice"),
        (
            "1: 1,2,3\n",
            "line 7: 3 of the 4 items are there, but a .soc file must have all: is it truncated?",
        ),
        ("", "there are no orders"),
    ],
)
def test_preflib_errors_say_where(put, lines, words):
    with pytest.raises(ValueError, match=r"x\.soc") as caught:
        pm.read(put(PREFLIB + lines, "x.soc"))
    assert words in str(caught.value)
    with pytest.raises(ValueError, match="is this a PrefLib file of today"):
        pm.read(put("4\n1,ale\n", "x.soc"))


CATEGORIES = """# NUMBER ALTERNATIVES: 4
# NUMBER VOTERS: 7
# NUMBER UNIQUE PREFERENCES: 3
# NUMBER CATEGORIES: 3
# CATEGORY NAME 1: Yes
# CATEGORY NAME 2: Maybe
# CATEGORY NAME 3: No
# ALTERNATIVE NAME 1: a
# ALTERNATIVE NAME 2: b
# ALTERNATIVE NAME 3: c
# ALTERNATIVE NAME 4: d
4: {1,2},3,4
2: {},{2,3},{1,4}
1: 4,{},{}
"""


def test_categories_are_ties_the_best_first(put):
    path = put(CATEGORIES, "drinks.cat")
    found = pm.read(path)
    assert found.rankings.tolist() == [[1, 1, 3, 4], [3, 1, 1, 3], [0, 0, 0, 1]]
    assert found.weights.tolist() == [4, 2, 1]
    assert "(categories, best first: Yes, Maybe, No)" in read_as(path)[1]
    for wrong, words in (
        (CATEGORIES.replace("1: 4,{},{}", "1: 4,{},{},1"), "line 14: there are 4 categories"),
        (CATEGORIES.replace("1: 4,{},{}\n", ""), "3 unique preferences are announced"),
        (CATEGORIES.replace("{2,3}", "{2,1}"), "line 13: item 1 is there twice"),
    ):
        with pytest.raises(ValueError, match=words):
            pm.read(put(wrong, "drinks.cat"))
