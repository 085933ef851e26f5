"""Tables of rankings, wide, long or as orderings, and wide tables of clicks."""

import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pseudomallows as pm
from helpers import as_text, cells_of

POTATOES = "user,ale,gin,rum\nann,1,2,3\nbob,3,,1\n"


def test_wide_rankings(put):
    found = pm.read(put(POTATOES))
    assert found.items.tolist() == ["ale", "gin", "rum"]
    assert cells_of(found)["bob"] == {"ale": 3, "gin": 2, "rum": 1}  # one rank is left


def test_wide_rankings_without_users(put):
    found = pm.read(put("a,b,c\n1,2,3\n3,2,1\n2,NA,\n"))
    assert found.rankings.tolist() == [[1, 2, 3], [3, 2, 1], [2, 0, 0]]


def test_long_rankings_in_any_order_of_columns(put):
    text = "rank;item;extra;user\n1;ale;x;ann\n2;gin;y;ann\n3;rum;;ann\n1;rum;;bob\n1;rum;;bob\n"
    found = pm.read(put(text))
    assert cells_of(found) == {
        "ann": {"ale": 1, "gin": 2, "rum": 3},
        "bob": {"ale": 0, "gin": 0, "rum": 1},
    }


@pytest.mark.parametrize(
    "header",
    ["", "rank1,rank2,rank3\n", "1,2,3\n", "user,1st,2nd,3rd\n", "id,first,second,third\n"],
)
def test_orderings(put, header):
    names = ["ann,", "bob,"] if header.startswith(("user", "id")) else ["", ""]
    kind = None if header else "orderings"
    found = pm.read(put(f"{header}{names[0]}rum,ale,gin\n{names[1]}ale,rum\n"), kind)
    assert found.rankings.tolist() == [[2, 3, 1], [1, 3, 2]]
    assert found.users.tolist() == (["ann", "bob"] if names[0] else [0, 1])


@pytest.mark.parametrize(
    "header",
    [
        "3rd,2nd,1st",
        "third,second,first",
        "top3,top2,top1",
        "Rank_03,rank 2,RANK-1",
        "third choice,2nd choice,choice 1",
        "2,1,0",
    ],
)
def test_orderings_are_read_by_the_places_of_the_header(put, header):
    found = pm.read(put(f"{header}\nx,y,z\ny,x,z\n"))
    assert found.rankings.tolist() == [[3, 2, 1], [2, 3, 1]]
    found = pm.read(put("user,rank2,rank1,rank3\nann,b,a,c\nbob,a,c\n"))
    assert cells_of(found) == {"ann": {"a": 1, "b": 2, "c": 3}, "bob": {"a": 2, "b": 3, "c": 1}}


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("rank1,rank3", "line 1: no column is for place 2, but 'rank3' comes after it"),
        ("2nd,3rd", "no column is for place 1"),
        ("rank0,rank1", "column 'rank0': places start at 1"),
        ("rank1,1st", "two columns are for place 1"),
        ("user,rank1,rank2,rank2", "two columns are for place 2"),
    ],
)
@pytest.mark.parametrize("kind", [None, "orderings"])
def test_places_that_are_missing_or_there_twice_are_refused(put, header, words, kind):
    with pytest.raises(ValueError, match=words):
        pm.read(put(f"{header}\n" + ",".join("abcd"[: header.count(",") + 1]) + "\n"), kind)
    frame = pd.DataFrame([list("abcd"[: header.count(",") + 1])], columns=header.split(","))
    with pytest.raises(ValueError, match=words.removeprefix("line 1: ")):
        pm.Preferences.from_orderings(frame)


def test_more_items_than_places_are_refused(put):
    with pytest.raises(ValueError, match="line 3: there are 3 items, but the header has 2 places"):
        pm.read(put("rank2,rank1\na,b\na,b,c\n"))


def test_a_gap_before_a_place_is_found_whatever_the_order_of_the_columns(put):
    with pytest.raises(ValueError, match="line 2: place 1 is empty, but later ones are not"):
        pm.read(put("3rd,2nd,1st\nx,y\n"))


def test_one_line_is_a_list_of_items_if_the_kind_is_given(put):
    assert pm.read(put("b,a,c\n"), "orderings").rankings.tolist() == [[2, 1, 3]]
    for text, kind in (("user,1st,2nd\n", "orderings"), ("user,a,b\n", "rankings")):
        with pytest.raises(ValueError, match="there is a header, but no line after it"):
            pm.read(put(text), kind)
    with pytest.raises(ValueError, match="line 1: cannot tell from the header what this is"):
        pm.read(put("b,a,c\n"))


def test_wide_clicks(put):
    found = pm.read(put("user,a,b,c\nx,1,0,1\ny,0,,1\n"))
    assert cells_of(found) == {"x": ["a", "c"], "y": ["c"]}
    counts = pm.read(put("user,a,b,c\nx,5,0,1\ny,0,,1\n"), "wide-clicks")
    assert cells_of(counts) == cells_of(found)


def test_the_column_of_users_may_stand_anywhere(put):
    found = pm.read(put("ale,gin,rum,user\n1,2,3,4\n2,1,3,7\n"))
    assert found.users.tolist() == ["4", "7"]
    assert found.items.tolist() == ["ale", "gin", "rum"]
    assert pm.read(put("Respondent ID,a,b,c\n4,1,2,\n5,2,1,\n")).items.tolist() == ["a", "b", "c"]
    assert pm.read(put("user,a,b\nx,yes,no\ny,TRUE,\n")).clicks_of(1).tolist() == [0]


@pytest.mark.parametrize("name", ["name", "id", "", "country", "user", "Respondent ID"])
def test_the_first_column_beside_places_names_the_users(put, name):
    found = pm.read(put(f"{name},first,second\nx,tea,mate\ny,mate,tea\n"))
    assert cells_of(found) == {"x": {"mate": 2, "tea": 1}, "y": {"mate": 1, "tea": 2}}


def test_a_column_that_is_hardly_an_item_is_told(put):
    with pytest.warns(pm.data.ColumnWarning, match="column 'age' is read as an item"):
        pm.read(put("age,a,b,c\n3,1,2,4\n4,1,2,3\n"))
    assert pm.read(put("nr,a,b,c\n1,2,3,1\n2,1,3,2\n")).items.tolist() == ["a", "b", "c"]


@st.composite
def orderings_under_places(draw):
    """Names of places, top-k lists under them, and an order of the columns."""
    n_items = draw(st.integers(2, 12))
    form = draw(st.sampled_from(["rank{}", "Top {}", "{}. ", "place_{:03}", "{}"]))
    names = [form.format(place + 1).strip(" .") for place in range(n_items)]
    row = st.permutations([f"item {code}" for code in range(n_items)])
    rows = draw(st.lists(st.tuples(row, st.integers(1, n_items)), min_size=1, max_size=4))
    rows[0] = (rows[0][0], n_items)  # all items are there
    rows = [[*listed[:k], *[""] * (n_items - k)] for listed, k in rows]
    return names, rows, draw(st.permutations(range(n_items)))


@given(orderings_under_places(), st.booleans())
def test_the_order_of_the_columns_of_places_says_nothing(tmp_path_factory, data, has_users):
    names, rows, order = data
    folder, found = tmp_path_factory.mktemp("x"), []
    for columns in (range(len(names)), order):
        table = [[row[at] for at in columns] for row in [names, *rows]]
        if has_users:
            table = [["user", *table[0]], *([f"u{n}", *row] for n, row in enumerate(table[1:]))]
        frame = pd.DataFrame(table[1:], columns=table[0]).replace("", None)
        (folder / "x.csv").write_bytes(as_text(table))
        frame.to_parquet(folder / "x.parquet")
        found += [pm.read(folder / name) for name in ("x.csv", "x.parquet")]
        found += [pm.Preferences.from_orderings(frame)]
        found += [pm.Preferences.from_orderings(pl.from_pandas(frame))]
    expected = pm.Preferences.from_orderings([[cell for cell in row if cell] for row in rows])
    for prefs in found:
        assert prefs.items.tolist() == expected.items.tolist()
        assert prefs.rankings.tolist() == expected.rankings.tolist()
        assert prefs.users.tolist() == found[0].users.tolist()


def test_equal_ranks_are_ties(put):
    wide = pm.read(put("user,a,b,c,d\nx,1,2,2,4\ny,1,2.5,2.5,4\nz,1,1,,\n"))
    assert wide.rankings.tolist() == [[1, 2, 2, 4], [1, 2, 2, 4], [1, 1, 0, 0]]
    rows = "x,a,1\nx,b,2.5\nx,c,2.5\nx,d,4\ny,a,3\ny,b,3\ny,c,1\ny,d,2\n"
    long = pm.read(put(f"user,item,rank\n{rows}"))
    assert long.rankings.tolist() == [[1, 2, 2, 4], [3, 3, 1, 2]]


@pytest.mark.parametrize("rank", ["yes", "true", "1,0,0"])
def test_a_rank_that_is_no_number_is_named(put, rank):
    with pytest.raises(ValueError, match="line 3, column 'rank': wanted a rank, got"):
        pm.read(put(f'user,item,rank\nx,a,1\nx,b,"{rank}"\n'))


def test_the_same_rank_twice_counts_once_however_it_is_written(put):
    found = pm.read(put("user,item,rank\nx,a,1\nx,b,2\nx,b,2.0\nx,c,\nx,c,NA\n"))
    assert found.rankings.tolist() == [[1, 2, 3]]
