"""Readers: every kind of file, the dirt of the world, and errors that say where."""

import bz2
import gzip
import io
import lzma
import string
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import pseudomallows as pm
from pseudomallows.files import arrow, long_tables
from pseudomallows.files.csv_files import write_rows
from pseudomallows.files.kinds import KINDS
from pseudomallows.files.read import read_as
from pseudomallows.files.source import open_source

DOOR = sys.modules[pm.read.__module__]  # `files.read` is the function
POTATOES = "user,ale,gin,rum\nann,1,2,3\nbob,3,,1\n"


@pytest.fixture
def put(tmp_path):
    """Write a file and give its path."""

    def write(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def cells_of(prefs):
    """What a user said, by names: comparable whatever the order of rows and columns."""
    if isinstance(prefs, pm.Clicks):
        return {
            user: sorted(prefs.items[prefs.clicks_of(row)].tolist())
            for row, user in enumerate(prefs.users.tolist())
        }
    table = prefs.rankings.tolist()
    return {
        user: dict(zip(prefs.items.tolist(), table[row], strict=True))
        for row, user in enumerate(prefs.users.tolist())
    }


# kinds


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
    with pytest.raises(ValueError, match="line 2: place 1 is empty, but later ones not"):
        pm.read(put("3rd,2nd,1st\nx,y\n"))


def test_orderings_of_numbers_need_their_kind(put):
    path = put("1,2,3\n3,1,2\n")
    with pytest.raises(ValueError, match="may name items or places"):
        pm.read(path)
    assert pm.read(path, "orderings").rankings.tolist() == [[1, 2, 3], [2, 3, 1]]
    assert pm.read(path, "rankings").rankings.tolist() == [[3, 1, 2]]


@pytest.mark.parametrize(
    "header",
    ["user,item", "userId,movieId,timestamp,genre", "Customer ID;StockCode", "USER\titem"],
)
def test_clicks(put, header):
    mark = next(c for c in (",", ";", "\t") if c in header)
    extra = mark * (header.count(mark) - 1)
    rows = [("u2", "b"), ("u1", "a"), ("u1", "b"), ("u2", "b")]
    text = header + "\n" + "".join(f"{u}{mark}{i}{extra}\n" for u, i in rows)
    found = pm.read(put(text))
    assert found.users.tolist() == ["u1", "u2"]
    assert cells_of(found) == {"u1": ["a", "b"], "u2": ["b"]}


def test_wide_clicks(put):
    found = pm.read(put("user,a,b,c\nx,1,0,1\ny,0,,1\n"))
    assert cells_of(found) == {"x": ["a", "c"], "y": ["c"]}
    counts = pm.read(put("user,a,b,c\nx,5,0,1\ny,0,,1\n"), "wide-clicks")
    assert cells_of(counts) == cells_of(found)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("login,sku\nu1,s1\nu1,s2\nu2,s1\n", "cannot tell what this is"),
        ("user;a;b;c\nx;1,0;2,0;3,0\ny;2,0;1,0;3,0\n", "line 2: '1,0' has a decimal comma"),
        ("a;b;c\n1;2;3\n2;1,5;3\n", "line 3: '1,5' has a decimal comma"),
        ("a,b,c\n1,0,2,0,3,0\n", "line 2: there are 6 cells, .* is there a decimal comma"),
        ("ann,tea,mate,juice\nbob,mate,tea,juice\n", "cannot tell what this is"),
        ("user,a,b,c\nx,3,0,2\ny,0,1,0\n", "may be counts"),
        ("2.0,1.0,3.0\n1.0,2.0,3.0\n3,1,2\n", "there is no header"),
        ("user,a,b,c\nx,0,1,2\ny,2,1,0\n", "every user has one rank 0"),
        ("user,item,rank\nx,a,0\nx,b,1\n", "wanted a rank from 1 to 2"),
    ],
)
def test_what_cannot_be_told_is_not_guessed(put, text, words):
    with pytest.raises(ValueError, match=words):
        pm.read(put(text))


def test_a_first_line_of_one_item_says_nothing_of_the_delimiter(put):
    found = pm.read(put("tea\nmate;tea\n"), "orderings")
    assert found.items.tolist() == ["mate", "tea"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("user,ale,gin\nann,1,2\n", "orderings"),
        ("user,item,rank\nann,a,1\n", "rankings"),
        ("user,item\nann,a\n", "wide-clicks"),
    ],
)
def test_a_kind_that_does_not_fit_is_refused(put, text, kind):
    with pytest.raises(ValueError, match="the header"):
        pm.read(put(text), kind)


def test_the_column_of_users_may_stand_anywhere(put):
    found = pm.read(put("ale,gin,rum,user\n1,2,3,4\n2,1,3,7\n"))
    assert found.users.tolist() == ["4", "7"]
    assert found.items.tolist() == ["ale", "gin", "rum"]
    assert pm.read(put("Respondent ID,a,b,c\n4,1,2,\n5,2,1,\n")).items.tolist() == ["a", "b", "c"]
    assert pm.read(put("user,a,b\nx,yes,no\ny,TRUE,\n")).clicks_of(1).tolist() == [0]


def test_a_column_that_says_which_rows_are_clicks_is_told(put):
    with pytest.warns(pm.IgnoredColumnWarning, match="'clicked' is ignored"):
        pm.read(put("user,item,clicked\nx,a,1\nx,b,0\n"))


JUDGING = [
    ("position", "1\n2\n3", "if it holds ranks, give kind='long-rankings'"),
    ("place", "1\n2\n3", "if it holds ranks, give kind='long-rankings'"),
    ("rating", "5\n1\n2", "also the 2 of 3 whose rating is below 3, the middle of 1 to 5"),
    ("Score", "-10\n0.5\n10", "also the 1 of 3 whose rating is 0 or less"),
    ("stars", "5\n\nNA", "every row counts as a click: drop the rows"),
    ("count", "0\n7\n0", "also the 2 of 3 whose count is 0 or less"),
    ("Quantity", "1\n7\n-2", "also the 1 of 3 whose count is 0 or less"),
    ("play_count", "1\n7\n2", "every row counts as a click: drop the rows"),
    ("views", "0\n3\n1", "also the 1 of 3 whose count is 0 or less"),
    ("n", "0\n3\n1", "also the 1 of 3 whose count is 0 or less"),
    ("weight", "0\n3\n1", "also the 1 of 3 whose count is 0 or less"),
    ("click_count", "0\n3\n1", "also the 1 of 3 whose count is 0 or less"),
    ("numRatings", "0\n3\n1", "also the 1 of 3 whose count is 0 or less"),
    ("vote", "-1\n1\n1", "also the 1 of 3 whose rating is 0 or less"),
    ("user_rating", "5\n1\n2", "also the 2 of 3 whose rating is below 3"),
    ("rating:float", "5\n1\n2", "also the 2 of 3 whose rating is below 3"),
    ("engaged", "0\n3\n1", "also the 1 of 3 whose value is 0 or less"),
    ("balance", "-0.5\n\n0", "also the 2 of 2 whose value is 0 or less"),
]


@pytest.mark.parametrize(("name", "values", "words"), JUDGING)
@pytest.mark.parametrize("form", ["text", "blocks", "parquet", "folder", "frame", "dict"])
def test_a_column_of_ratings_or_counts_is_told(put, monkeypatch, form, name, values, words):
    columns = {"user": ["u", "u", "v"], "item": ["a", "b", "c"], name: values.split("\n")}
    if form in ("frame", "dict"):
        columns[name] = [float(value) if value.strip("NA") else np.nan for value in columns[name]]
        given = pd.DataFrame(columns) if form == "frame" else columns
        if name in ("position", "place"):  # it is said that these are clicks
            assert len(pm.Preferences.from_clicks(given).codes) == 3
            return
        with pytest.warns(pm.ColumnWarning, match=words) as said:
            assert len(pm.Preferences.from_clicks(given).codes) == 3
    else:
        if form == "blocks":
            monkeypatch.setattr(DOOR, "LARGE", 0)
        path = put("\n".join(",".join(row) for row in zip(*columns.values(), strict=True)) + "\n")
        path.write_text(",".join(columns) + "\n" + path.read_text())
        if form in ("parquet", "folder"):
            folder = path.with_name("folder")
            folder.mkdir()
            pd.DataFrame(columns).to_parquet(folder / "x.parquet")
            path = folder if form == "folder" else folder / "x.parquet"
        with pytest.warns(pm.ColumnWarning, match=words) as said:
            assert len(pm.read(path).codes) == 3
    assert len(said) == 1
    assert f"column {name!r} is ignored" in str(said[0].message)
    assert not issubclass(said[0].category, pm.IgnoredColumnWarning)


@pytest.mark.parametrize(
    "name", ["time", "click_time", "hourOfDay", "unit_price", "session_nr", "rating_id", "x"]
)
@pytest.mark.parametrize("form", ["text", "blocks", "parquet", "frame"])
def test_other_columns_are_ignored_in_silence(put, monkeypatch, form, name):
    values = {"x": [1, 2, 5], "session_nr": ["0", "a", "-1"]}.get(name, [0, 3, -1])
    table = pd.DataFrame({"user": ["u", "u", "v"], "item": ["a", "b", "c"], name: values})
    path = put(table.to_csv(index=False))
    if form == "blocks":
        monkeypatch.setattr(DOOR, "LARGE", 0)
    if form == "parquet":
        path = path.with_name("x.parquet")
        table.to_parquet(path)
    found = pm.Preferences.from_clicks(table) if form == "frame" else pm.read(path)
    assert len(found.codes) == 3


def test_typed_names_of_columns(put):
    found = pm.read(put("user_id:token,item_id:token,timestamp:float\nu,a,0\nv,b,0\n"))
    assert cells_of(found) == {"u": ["a"], "v": ["b"]}


@pytest.mark.parametrize("kind", [None, "orderings"])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("last,first\ntea,mate\nmate,tea\n", "line 1: 'last' is no known place"),
        ("first,last\ntea,mate\nmate,tea\n", "line 1: 'last' is no known place"),
        ("user,first,last\nu,tea,mate\nv,mate,tea\n", "line 1: 'last' is no known place"),
        ("last,first,second\na,b,c\nb,c,a\n", "line 1: 'last' is no known place"),
        ("zero,first,second\na,b,c\nb,c,a\n", "line 1: 'zero' is no known place"),
        ("twenty-first,first\ntea,mate\n", "'twenty-first' is no known place"),
        ("twentieth,first\ntea,mate\n", "no column is for place 2, but 'twentieth' comes after"),
        ("eleventh,first,second\na,b,c\n", "no column is for place 3, but 'eleventh'"),
    ],
)
def test_what_is_no_place_is_named(put, text, words, kind):
    with pytest.raises(ValueError, match=words):
        pm.read(put(text), kind)


@pytest.mark.parametrize("name", ["name", "id", "", "country", "user", "Respondent ID"])
def test_the_first_column_beside_places_names_the_users(put, name):
    found = pm.read(put(f"{name},first,second\nx,tea,mate\ny,mate,tea\n"))
    assert cells_of(found) == {"x": {"mate": 2, "tea": 1}, "y": {"mate": 1, "tea": 2}}


PAIRS_NAMED = ["item1,item2", "item_a,item_b", "left,right", "a,b", "first_item,second_item"]
PAIRS_NAMED += ["preferred,other", "chosen,rejected", "winner,loser", "itemA,itemB"]


@pytest.mark.parametrize("names", PAIRS_NAMED)
@pytest.mark.parametrize("rows", ["1,1,2\n1,3,1\n2,2,1\n", "u,tea,mate\nv,mate,tea\n"])
@pytest.mark.parametrize("user", ["user", "judge"])
def test_comparisons_by_other_names_are_refused(put, user, names, rows):
    with pytest.raises(ValueError, match="line 1: these are comparisons of pairs, by the header"):
        pm.read(put(f"{user},{names}\n{rows}"))


def test_two_items_or_two_places_are_no_comparison(put):
    assert pm.read(put("user,item1,item2\nu,1,2\nv,2,1\n")).rankings.tolist() == [[1, 2], [2, 1]]
    assert pm.read(put("user,first,second\nu,tea,mate\nv,mate,tea\n")).n_items == 2


def test_positions_are_ranks_or_clicks_as_one_says(put):
    path = put("user,item,position\nx,a,2\nx,b,1\n")
    assert pm.read(path, "long-rankings").rankings.tolist() == [[2, 1]]
    assert len(pm.read(path, "clicks").codes) == 2  # and no warning


def test_so_many_values_are_not_counted(put, monkeypatch):
    monkeypatch.setattr(DOOR, "LARGE", 0)
    monkeypatch.setattr(long_tables, "MOST_VALUES", 5)
    path = put("user,item,score\n" + "".join(f"u,{n},{n}\n" for n in range(9)))
    with pytest.warns(pm.ColumnWarning, match="every row counts as a click: drop the rows"):
        pm.read(path)


def test_a_column_that_is_hardly_an_item_is_told(put):
    with pytest.warns(pm.ColumnWarning, match="column 'age' is read as an item"):
        pm.read(put("age,a,b,c\n3,1,2,4\n4,1,2,3\n"))
    assert pm.read(put("nr,a,b,c\n1,2,3,1\n2,1,3,2\n")).items.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize(
    "header",
    [
        "user,better,worse",
        "assessor,bottom_item,top_item",
        "winner,loser",
        "model_a,model_b,winner",
        "judge,left,right,winner",
        "item1,item2,preferred",
    ],
)
@pytest.mark.parametrize("kind", [None, "rankings", "orderings"])
def test_comparisons_of_pairs_are_told(put, header, kind):
    cells = [str(n) for n in range(1, header.count(",") + 2)]
    text = f"{header}\n{','.join(cells)}\n{','.join(cells[::-1])}\n"
    with pytest.raises(ValueError, match="line 1: these are comparisons of pairs"):
        pm.read(put(text), kind)
    frame = pd.DataFrame([range(1, len(cells) + 1)], columns=header.split(","))
    with pytest.raises(ValueError, match="this version reads rankings, orderings and clicks"):
        pm.Preferences.from_rankings(frame)


def test_items_of_a_model(put):
    path = put("user,item\nx,2\n")
    found = pm.read(path, items=[1, 2, 3])
    assert found.items.tolist() == [1, 2, 3]
    assert found.clicks_of(0).tolist() == [1]
    with pytest.raises(ValueError, match="unknown item: '2'"):
        pm.read(path, items=["a", "b"])


def test_reading_prints_nothing_and_the_kind_can_be_asked_for(put, capsys):
    path = put(POTATOES)
    pm.read(path)
    assert capsys.readouterr() == ("", "")
    assert "read as rankings: Rankings(2 users, 3 items; 2 full" in read_as(path)[1]
    with pytest.raises(ValueError, match="kind must be one of rankings, long-rankings"):
        pm.read(path, "votes")


def test_standard_input(monkeypatch):
    class Standard:
        buffer = io.BytesIO(gzip.compress(POTATOES.encode()))

    monkeypatch.setattr("sys.stdin", Standard)
    assert pm.read("-").n_users == 2


# dirt


def test_dirt(put):
    text = (
        "\ufeffuser , item,note\r\n\r\n"
        '"Smith, Ann",  "café ""noir""" ,x\r\n'
        "  ,,\r\n"
        "99999999999999999999999999,日本,\r\n"
        '"Smith, Ann",日本,"two\nlines"\r\n'
        "007,日本,,,\r\n"
        '"Smith, Ann",日本,again\r\n'
    )
    found = pm.read(put(text))
    assert cells_of(found) == {
        "Smith, Ann": ['café "noir"', "日本"],
        "99999999999999999999999999": ["日本"],
        "007": ["日本"],
    }


def test_wide_text_of_excel(put):
    assert pm.read(put(POTATOES.replace(",", "\t").encode("utf-16"))).n_users == 2


def test_rows_without_a_name_are_left_out_and_counted(put):
    path = put("user,item\na,x\n,y\nb,\nb,NA\nb,y\n")
    with pytest.warns(pm.DroppedRowsWarning, match="3 of 5 rows .* the first at line 3"):
        assert cells_of(pm.read(path)) == {"a": ["x"], "b": ["y"]}


def test_gzip_and_tabs(put):
    path = put(gzip.compress(POTATOES.replace(",", "\t").encode()), "data.tsv.gz")
    assert cells_of(pm.read(path)) == cells_of(pm.read(put(POTATOES)))


# errors say where


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("\n \n", "empty"),
        ("user,item\n", "no line after it"),
        ("user,item\na,b\nc\n", "line 3: there are 1 cells, but the header has 2"),
        ("user,item\na,b,c\n", "line 2: there are 3 cells"),
        ('user,item\na,b\n"c,d\n', "line 3: a quote is opened, but not closed"),
        ("user,item,item\na,b,c\n", "line 1: the header has 'item' twice"),
        ("user,product,movie\na,b,c\n", "line 1: 2 columns for the item"),
        ("user,a,b\nx,1,2\ny,2,z\n", "line 3, column 'b': wanted a number, got 'z'"),
        ("user,a,b\nx,1,2\ny,2,0_1\n", "line 3, column 'b': wanted a number, got '0_1'"),
        ("user,item\na,b\0\n", "line 2: there is a zero byte"),
        ("user,a,b,c\nx,1,2,3\ny,2,2,1\n", "line 3: 'a' and 'b' both have rank 2"),
        (
            "user,a,b,c\nx,1,2,3\ny,7,2,1\n",
            "line 3, column 'a': wanted a rank, a whole number from 1 to 3",
        ),
        ("user,a,b,c\nx,1,2,3\ny,1.5,2,1\n", "line 3, column 'a': wanted a rank"),
        ("user,a,b,c\nx,1,2,3\nx,3,2,1\n", "line 3: user 'x' is there already, at line 2"),
        ("user,a,b,c\nx,1,2,3\n,3,2,1\n", "line 3: the user has no name"),
        ("user,a,b,c\nx,1,2,1e999\n", "too large"),
        ("user,item,rank\nx,a,1\nx,a,2\n", "line 3: 'x' ranks 'a' 2, but 1 at line 2"),
        ("user,item,rank\nx,a,1\nx,b,1\n", "line 3: 'x' gives rank 1 to 'b' and, at line 2, 'a'"),
        ("user,item,rank\nx,a,1\nx,b,first\n", "line 3, column 'rank': wanted a rank, got 'first'"),
        ("user,item,rank\nx,a,1\nx,b,9\n", "line 3, column 'rank': wanted a rank from 1 to 2"),
        ("user,item,rank\nx,a,1\n,b,2\n", "line 3, column 'user': the cell is empty"),
        ("user,item\na,b\n", "at least 2 items"),
        ("rank1,rank2\na,b\na,a\n", "line 3: 'a' is there twice"),
        ("rank1,rank2,rank3\na,b,c\na,,c\n", "line 3: place 2 is empty"),
    ],
)
def test_errors_say_where(put, text, words):
    path = put(text)
    with pytest.raises(ValueError, match=r"data\.csv") as caught:
        pm.read(path)
    assert words in str(caught.value)


def test_bytes_that_are_no_text(put):
    path = put("user,item\na,b\nc,d\xe9\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"line 3: this is not utf-8 text .* encoding=.latin-1"):
        pm.read(path)
    assert pm.read(path, encoding="latin-1").items.tolist() == ["b", "dé"]
    with pytest.raises(ValueError, match="encoding must be a known one"):
        pm.read(path, encoding="klingon")


@pytest.mark.parametrize("name", ["broken.csv.gz", "broken.parquet", "broken.npz", "x.pq"])
@pytest.mark.parametrize("content", [b"\x1f\x8b\x08broken", b"PAR1xxxx", b"PK\x03\x04", b"junk"])
def test_broken_files(put, name, content):
    with pytest.raises(ValueError, match=name):
        pm.read(put(content, name))


@pytest.mark.parametrize("name", ["m.pm", "m.csv", "m", "m.npz"])
def test_a_model_is_known_for_one_whole_or_damaged(put, tmp_path, name):
    pm.fit(pm.Preferences.from_rankings([[1, 2, 3]] * 3), alpha=1, rng=1).save(tmp_path / "m")
    whole = (tmp_path / "m").read_bytes()
    with pytest.raises(ValueError, match=r"saved model, not data: open it with pm\.load"):
        pm.read(put(whole, name))
    for end in (60, 200, len(whole) // 2, len(whole) - 1):
        with pytest.raises(ValueError, match="this is a damaged model file"):
            pm.read(put(whole[:end], name))
    with pytest.raises(ValueError, match="this is a damaged model file"):
        pm.read(put(whole[:100] + b"xxxxxxxx" + whole[108:], name))


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress, b"\x28\xb5\x2f\xfd".__add__])
def test_what_is_packed_otherwise_is_told(put, pack):
    with pytest.raises(ValueError, match=r"this is packed by (bzip2|xz|Zstandard): unpack it"):
        pm.read(put(pack(POTATOES.encode())))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(OSError, match=r"none\.csv"):
        pm.read(tmp_path / "none.csv")


# PrefLib

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
    assert found.rankings.tolist() == [[2, 3, 1, 4], [0, 0, 4, 1], [0, 1, 0, 0]]


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


def test_more_ties_than_can_be_kept(put):
    path = put(PREFLIB + "1: {1,2},{3,4}\n1: {2,3}\n", "x.toi")
    with pytest.raises(ValueError, match="line 7: 2 groups of items are equal"):
        pm.read(path)
    found = pm.read(path, ties="random", rng=1).rankings
    assert sorted(found[0, :2]) == [1, 2]
    assert found[0, 2:].tolist() == [0, 0]  # the last group stays unknown
    assert sorted(found[1, 1:3]) == [1, 2]


def test_a_tie_before_one_that_is_not_listed(put):
    assert pm.read(put(PREFLIB + "1: {1,2},3\n", "x.toi")).rankings.tolist() == [[0, 0, 3, 4]]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("x: 1,2\n", "line 7: wanted 'count: item,item,...'"),
        ("1: 1,b\n", "line 7: wanted numbers, commas and braces"),
        ("1: 1,9\n", "line 7: item 9 has no name"),
        ("1: 1,2,1\n", "line 7: item 1 is there twice"),
        ("1: 1,2,3\n", "line 7: 3 of the 4 items are there, and a .soc file has all: is it cut?"),
        ("", "there are no orders"),
    ],
)
def test_preflib_errors_say_where(put, lines, words):
    with pytest.raises(ValueError, match=r"x\.soc") as caught:
        pm.read(put(PREFLIB + lines, "x.soc"))
    assert words in str(caught.value)
    with pytest.raises(ValueError, match="is this a PrefLib file of today"):
        pm.read(put("4\n1,ale\n", "x.soc"))


# arrays and Parquet


def test_arrays(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, rankings=[[1, 2, 3], [3, 2, 1]], items=["a", "b", "c"], weights=[2, 1])
    found = pm.read(path)
    assert found.items.tolist() == ["a", "b", "c"]
    assert found.weights.tolist() == [2, 1]
    np.savez(path, clicks=np.eye(3), users=[7, 8, 9])
    assert pm.read(path).users.tolist() == ["7", "8", "9"]
    sparse.save_npz(path, sparse.csr_matrix(np.eye(4)))
    assert pm.read(path).n_items == 4
    np.savez(path, other=[1])
    with pytest.raises(ValueError, match=r"wanted an array 'rankings' or 'clicks'.*\['other'\]"):
        pm.read(path)
    np.savez(path, rankings=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="cannot be read"):
        pm.read(path)


def test_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    table = {"user": [3, 3, 10, None], "item": ["b ", "a", "b", "a"], "x": [1, 2, 3, 4]}
    pq.write_table(pa.table(table), path)
    with pytest.warns(pm.DroppedRowsWarning, match="1 of 4 rows .* the first at row 4"):
        found = pm.read(path)
    assert cells_of(found) == {"3": ["a", "b"], "10": ["b"]}
    pq.write_table(pa.table({"user": [1.0, 2.0], "item": ["a", "b"]}), path)
    assert pm.read(path).users.tolist() == ["1", "2"]
    pq.write_table(pa.table({"a": [1, 2, None], "b": [2.0, 1.0, 1.0], "c": [3, 3, None]}), path)
    assert pm.read(path).rankings.tolist() == [[1, 2, 3], [2, 1, 3], [0, 1, 0]]
    pq.write_table(pa.table({"user": [], "item": []}), path)
    with pytest.raises(ValueError, match="no rows"):
        pm.read(path)


# properties


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


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), min_size=1, max_size=8)
NAMES = NAMES.map(str.strip).filter(bool)


def as_text(rows, delimiter=","):
    stream = io.BytesIO()
    write_rows(stream, rows, delimiter)
    return stream.getvalue()


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=20), st.sampled_from(",;\t|"))
def test_what_is_written_is_read_again(tmp_path_factory, pairs, delimiter):
    path = tmp_path_factory.mktemp("x") / "clicks.csv"
    path.write_bytes(as_text([("user", "item"), *pairs], delimiter))
    if len({item for _, item in pairs}) < 2:
        return
    expected = {user: sorted({i for u, i in pairs if u == user}) for user, _ in pairs}
    assert cells_of(pm.read(path)) == expected


def read_both_ways(path, block=100):
    """What the compiled loops read, in small blocks, and what the csv module reads."""
    found = []
    for least in (0, 10**9):
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            patch.setattr(DOOR, "LARGE", least)
            patch.setattr(arrow, "BLOCK", block)
            try:
                answer = cells_of(pm.read(path))
            except ValueError as error:
                answer = str(error)
        found.append((answer, [(entry.category, str(entry.message)) for entry in said]))
    return found


def is_read_in_blocks(path, block=100):
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.ColumnWarning)
        patch.setattr(DOOR, "LARGE", 0)
        patch.setattr(arrow, "BLOCK", block)
        return arrow.read_csv_pairs(open_source(path)) is not None


HARD = [
    "5",
    "-1",
    " 1.0",
    "a",
    "b",
    " c",
    "c ",
    "",
    "NA",
    'd"e',
    "f,g",
    "h\ni",
    "日本",
    "é" * 9,
    "\u00a0k",
    "k\u3000",
]


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.tuples(*[st.sampled_from(HARD)] * 3), min_size=1, max_size=20),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\ufeff"]),
    st.sampled_from(["", "\n", "\n\n,,\n"]),
    st.integers(150, 230),
    st.sampled_from(["clicks.csv", "clicks.csv.gz"]),
    st.sampled_from(["click", "day", "rating", "count", "position"]),
)
def test_the_fast_way_reads_as_the_slow_way(
    tmp_path_factory, rows, end, mark, last, block, name, third
):
    path = tmp_path_factory.mktemp("x") / name
    content = as_text([("item", third, "user"), *rows]) + last.encode()
    content = mark.encode() + content.replace(b"\n", end.encode())
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    fast, slow = read_both_ways(path, block)
    assert fast == slow
    if any(any(row) for row in rows):
        assert is_read_in_blocks(path, block)


LINES = "user,item,day\n" + "ann,tea,1\nbob,mate,2\n" * 9


@pytest.mark.parametrize(
    ("text", "is_fast"),
    [
        (LINES, True),
        (LINES.replace("\n", "\r\n"), True),
        (LINES + "cid,tea,3", True),
        (LINES + '"c,i""d","tea" ,3\r\n\n,,\n,tea,1\n', True),
        (LINES + '"c,i""d", "tea" ,3\r\n\n,,\n,tea,1\n', False),
        (LINES + '"c, ""i""","tea",3\n', False),
        (LINES + 'cid,"tea\nfor\ntwo",3\ncid,,3\n', True),
        (LINES + "cid,tea,3,,\n", False),
        (LINES + "cid,tea,3,x\n", False),
        (LINES + "cid,tea\n", False),
        (LINES + 'cid,"tea"s,3\n', True),
        (LINES + 'cid,"tea,3\n', False),
        (LINES + "cid,tea,3\rdan,mate,4\r", True),
        (LINES + "cid,t\0a,3\n", False),
        (LINES + f"cid,{'tea' * 100},3\n", False),
        ("user,item\rann,tea\n" + LINES, False),
        ("\n" + LINES, False),
        (" ,\n" + LINES, False),
        ('"us""er",user,item\n' + LINES[14:], True),
        ("user,item\n", False),
        (LINES.replace(",", "\t"), True),
        (LINES.replace("day", "user"), False),
        (LINES.encode("utf-16"), False),
        (LINES.encode() + b"cid,caf\xe9,3\n", False),
        (LINES.encode() + b"cid,tea,\xe9\n", False),
        (LINES.encode() + b"cid,caf\xc3", False),
    ],
)
def test_hard_files_read_both_ways(put, text, is_fast):
    path = put(text)
    fast, slow = read_both_ways(path)
    assert fast == slow
    if not isinstance(fast[0], str) or is_fast:
        assert is_read_in_blocks(path) == is_fast


@pytest.mark.parametrize("least", [0, 10**9])
def test_a_row_that_is_left_out_is_told_by_its_line(put, monkeypatch, least):
    monkeypatch.setattr(DOOR, "LARGE", least)
    monkeypatch.setattr(arrow, "BLOCK", 64)
    path = put(LINES + '\n"dan\n(2)",tea,1\n' * 5 + "\nNA,tea,1\n")
    with pytest.warns(pm.DroppedRowsWarning, match="1 of 24 rows .* the first at line 36"):
        pm.read(path)


def test_a_large_file_from_standard_input(monkeypatch):
    class Standard:
        buffer = io.BytesIO(gzip.compress(LINES.encode()))

    monkeypatch.setattr("sys.stdin", Standard)
    monkeypatch.setattr(DOOR, "LARGE", 0)
    assert cells_of(pm.read("-")) == {"ann": ["tea"], "bob": ["mate"]}


def test_a_broken_gzip_file_is_told_while_it_is_read(put, monkeypatch):
    monkeypatch.setattr(DOOR, "LARGE", 0)
    packed = gzip.compress(as_text([("user", "item"), *((n, n % 7) for n in range(9999))]))
    with pytest.raises(ValueError, match=r"x\.csv\.gz: this gzip file is broken"):
        pm.read(put(packed[:-2000], "x.csv.gz"))


@settings(deadline=None, max_examples=300)
@given(
    st.one_of(
        st.binary(max_size=60),
        st.text(string.printable, max_size=80).map(str.encode),
        st.lists(
            st.sampled_from(
                [
                    *'user,item rank1230;"\n\t|{}:#',
                    "\n",
                    "user,item\n",
                    "# ALTERNATIVE NAME 1: a\n",
                    "1: 1,{2,3}\n",
                ]
            ),
            max_size=30,
        ).map(lambda x: "".join(x).encode()),
    ),
    st.sampled_from(["x.csv", "x.tsv", "x.soc", "x.toi", "x.npz", "x.parquet", "x", "x.csv.gz"]),
    st.sampled_from([None, *KINDS]),
)
def test_no_bytes_are_more_than_bad_input(tmp_path_factory, content, name, kind):
    path = tmp_path_factory.mktemp("x") / name
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = pm.read(path, kind)
        except ValueError as error:
            found = error
    if isinstance(found, ValueError):
        assert name in str(found)
        return
    assert found.n_users >= 1
    assert found.n_items >= 2
