"""Readers: every kind of file, the dirt of the world, and errors that say where."""

import gzip
import io
import string
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import pseudomallows as pm
from pseudomallows import log
from pseudomallows.read import KINDS
from pseudomallows.text import open_source

POTATOES = "user,ale,gin,rum\nann,1,2,3\nbob,3,,1\n"


@pytest.fixture
def put(tmp_path):
    """Write a file and give its path."""

    def write(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def quiet(path, kind=None, **options):
    return pm.read(path, kind, quiet=True, **options)


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
    found = quiet(put(POTATOES))
    assert found.items.tolist() == ["ale", "gin", "rum"]
    assert cells_of(found)["bob"] == {"ale": 3, "gin": 2, "rum": 1}  # one rank is left


def test_wide_rankings_without_users(put):
    found = quiet(put("a,b,c\n1,2,3\n3,2,1\n2,NA,\n"))
    assert found.rankings.tolist() == [[1, 2, 3], [3, 2, 1], [2, 0, 0]]


def test_long_rankings_in_any_order_of_columns(put):
    text = "rank;item;extra;user\n1;ale;x;ann\n2;gin;y;ann\n3;rum;;ann\n1;rum;;bob\n1;rum;;bob\n"
    found = quiet(put(text))
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
    found = quiet(put(f"{header}{names[0]}rum,ale,gin\n{names[1]}ale,rum\n"), kind)
    assert found.rankings.tolist() == [[2, 3, 1], [1, 3, 2]]
    assert found.users.tolist() == (["ann", "bob"] if names[0] else [0, 1])


def test_orderings_of_numbers_need_their_kind(put):
    path = put("1,2,3\n3,1,2\n")
    with pytest.raises(ValueError, match="may name items or places"):
        quiet(path)
    assert quiet(path, "orderings").rankings.tolist() == [[1, 2, 3], [2, 3, 1]]
    assert quiet(path, "rankings").rankings.tolist() == [[3, 1, 2]]


@pytest.mark.parametrize(
    "header",
    ["user,item", "userId,movieId,rating,timestamp", "Customer ID;StockCode", "USER\titem"],
)
def test_clicks(put, header):
    mark = next(c for c in (",", ";", "\t") if c in header)
    extra = mark * (header.count(mark) - 1)
    rows = [("u2", "b"), ("u1", "a"), ("u1", "b"), ("u2", "b")]
    text = header + "\n" + "".join(f"{u}{mark}{i}{extra}\n" for u, i in rows)
    found = quiet(put(text))
    assert found.users.tolist() == ["u1", "u2"]
    assert cells_of(found) == {"u1": ["a", "b"], "u2": ["b"]}


def test_wide_clicks(put):
    found = quiet(put("user,a,b,c\nx,1,0,1\ny,0,,1\n"))
    assert cells_of(found) == {"x": ["a", "c"], "y": ["c"]}
    counts = quiet(put("user,a,b,c\nx,5,0,1\ny,0,,1\n"), "wide-clicks")
    assert cells_of(counts) == cells_of(found)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("login,sku\nu1,s1\nu1,s2\nu2,s1\n", "cannot tell what this is"),
        ("user;a;b;c\nx;1,0;2,0;3,0\ny;2,0;1,0;3,0\n", "cannot tell what this is"),
        ("ann,tea,mate,juice\nbob,mate,tea,juice\n", "cannot tell what this is"),
        ("user,a,b,c\nx,3,0,2\ny,0,1,0\n", "may be counts"),
        ("2.0,1.0,3.0\n1.0,2.0,3.0\n3,1,2\n", "there is no header"),
        ("user,a,b,c\nx,0,1,2\ny,2,1,0\n", "every user has one rank 0"),
        ("user,item,rank\nx,a,0\nx,b,1\n", "wanted a rank from 1 to 2"),
    ],
)
def test_what_cannot_be_told_is_not_guessed(put, text, words):
    with pytest.raises(ValueError) as caught:
        quiet(put(text))
    assert words in str(caught.value)


def test_a_first_line_of_one_item_says_nothing_of_the_delimiter(put):
    found = quiet(put("tea\nmate;tea\n"), "orderings")
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
        quiet(put(text), kind)


def test_the_column_of_users_may_stand_anywhere(put):
    found = quiet(put("ale,gin,rum,user\n1,2,3,4\n2,1,3,7\n"))
    assert found.users.tolist() == ["4", "7"]
    assert found.items.tolist() == ["ale", "gin", "rum"]
    assert quiet(put("Respondent ID,a,b,c\n4,1,2,\n5,2,1,\n")).items.tolist() == ["a", "b", "c"]
    assert quiet(put("user,a,b\nx,yes,no\ny,TRUE,\n")).clicks_of(1).tolist() == [0]


def test_a_column_that_says_which_rows_are_clicks_is_told(put):
    with pytest.warns(pm.IgnoredColumnWarning, match="'clicked' is ignored"):
        quiet(put("user,item,clicked\nx,a,1\nx,b,0\n"))


def test_items_of_a_model(put):
    path = put("user,item\nx,2\n")
    found = quiet(path, items=[1, 2, 3])
    assert found.items.tolist() == [1, 2, 3]
    assert found.clicks_of(0).tolist() == [1]
    with pytest.raises(ValueError, match="unknown item: '2'"):
        quiet(path, items=["a", "b"])


def test_the_kind_is_said_unless_it_is_given(put, capsys):
    path = put(POTATOES)
    pm.read(path)
    assert "read as rankings: Rankings(2 users, 3 items; 2 full" in capsys.readouterr().err
    pm.read(path, "rankings")
    assert capsys.readouterr().err == ""
    with pytest.raises(ValueError, match="kind must be one of rankings, long-rankings"):
        pm.read(path, "votes")


def test_standard_input(monkeypatch):
    class Standard:
        buffer = io.BytesIO(gzip.compress(POTATOES.encode()))

    monkeypatch.setattr("sys.stdin", Standard)
    assert quiet("-").n_users == 2


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
    found = quiet(put(text))
    assert cells_of(found) == {
        "Smith, Ann": ['café "noir"', "日本"],
        "99999999999999999999999999": ["日本"],
        "007": ["日本"],
    }


def test_wide_text_of_excel(put):
    assert quiet(put(POTATOES.replace(",", "\t").encode("utf-16"))).n_users == 2


def test_rows_without_a_name_are_left_out_and_counted(put):
    path = put("user,item\na,x\n,y\nb,\nb,NA\nb,y\n")
    with pytest.warns(pm.DroppedRowsWarning, match="3 of 5 rows .* the first at line 3"):
        assert cells_of(quiet(path)) == {"a": ["x"], "b": ["y"]}


def test_gzip_and_tabs(put):
    path = put(gzip.compress(POTATOES.replace(",", "\t").encode()), "data.tsv.gz")
    assert cells_of(quiet(path)) == cells_of(quiet(put(POTATOES)))


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
        quiet(path)
    assert words in str(caught.value)


def test_bytes_that_are_no_text(put):
    path = put("user,item\na,b\nc,d\xe9\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"line 3: this is not utf-8 text .* encoding=.latin-1"):
        quiet(path)
    assert quiet(path, encoding="latin-1").items.tolist() == ["b", "dé"]
    with pytest.raises(ValueError, match="encoding must be a known one"):
        quiet(path, encoding="klingon")


@pytest.mark.parametrize("name", ["broken.csv.gz", "broken.parquet", "broken.npz", "x.pq"])
@pytest.mark.parametrize("content", [b"\x1f\x8b\x08broken", b"PAR1xxxx", b"PK\x03\x04", b"junk"])
def test_broken_files(put, name, content):
    with pytest.raises(ValueError, match=name):
        quiet(put(content, name))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(OSError, match=r"none\.csv"):
        quiet(tmp_path / "none.csv")


# PrefLib

PREFLIB = """# FILE NAME: x.toc
# NUMBER ALTERNATIVES: 4
# ALTERNATIVE NAME 1: ale
# ALTERNATIVE NAME 2: gin
# ALTERNATIVE NAME 3: rum
# ALTERNATIVE NAME 4: mead
"""


def test_preflib(put):
    found = quiet(put(PREFLIB + "7: 3,1,2,4\n2: 4,{1,2},3\n1: 2\n", "x.toi"))
    assert found.weights.tolist() == [7, 2, 1]
    assert found.items.tolist() == ["ale", "gin", "rum", "mead"]
    assert found.rankings.tolist() == [[2, 3, 1, 4], [0, 0, 4, 1], [0, 1, 0, 0]]


def test_more_ties_than_can_be_kept(put):
    path = put(PREFLIB + "1: {1,2},{3,4}\n1: {2,3}\n", "x.toi")
    with pytest.raises(ValueError, match="line 7: 2 groups of items are equal"):
        quiet(path)
    found = quiet(path, ties="random", rng=1).rankings
    assert sorted(found[0, :2]) == [1, 2]
    assert found[0, 2:].tolist() == [0, 0]  # the last group stays unknown
    assert sorted(found[1, 1:3]) == [1, 2]


def test_a_tie_before_one_that_is_not_listed(put):
    assert quiet(put(PREFLIB + "1: {1,2},3\n", "x.toi")).rankings.tolist() == [[0, 0, 3, 4]]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("x: 1,2\n", "line 7: wanted 'count: item,item,...'"),
        ("1: 1,b\n", "line 7: wanted numbers, commas and braces"),
        ("1: 1,9\n", "line 7: item 9 has no name"),
        ("1: 1,2,1\n", "line 7: item 1 is there twice"),
        ("", "there are no orders"),
    ],
)
def test_preflib_errors_say_where(put, lines, words):
    with pytest.raises(ValueError, match=r"x\.soc") as caught:
        quiet(put(PREFLIB + lines, "x.soc"))
    assert words in str(caught.value)
    with pytest.raises(ValueError, match="is this a PrefLib file of today"):
        quiet(put("4\n1,ale\n", "x.soc"))


# arrays and Parquet


def test_arrays(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, rankings=[[1, 2, 3], [3, 2, 1]], items=["a", "b", "c"], weights=[2, 1])
    found = quiet(path)
    assert found.items.tolist() == ["a", "b", "c"]
    assert found.weights.tolist() == [2, 1]
    np.savez(path, clicks=np.eye(3), users=[7, 8, 9])
    assert quiet(path).users.tolist() == ["7", "8", "9"]
    sparse.save_npz(path, sparse.csr_matrix(np.eye(4)))
    assert quiet(path).n_items == 4
    np.savez(path, other=[1])
    with pytest.raises(ValueError, match=r"wanted an array 'rankings' or 'clicks'.*\['other'\]"):
        quiet(path)
    np.savez(path, rankings=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="cannot be read"):
        quiet(path)


def test_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    table = {"user": [3, 3, 10, None], "item": ["b ", "a", "b", "a"], "n": [1, 2, 3, 4]}
    pq.write_table(pa.table(table), path)
    with pytest.warns(pm.DroppedRowsWarning, match="1 of 4 rows .* the first at row 4"):
        found = quiet(path)
    assert cells_of(found) == {"3": ["a", "b"], "10": ["b"]}
    pq.write_table(pa.table({"user": [1.0, 2.0], "item": ["a", "b"]}), path)
    assert quiet(path).users.tolist() == ["1", "2"]
    pq.write_table(pa.table({"a": [1, 2, None], "b": [2.0, 1.0, 1.0], "c": [3, 3, None]}), path)
    assert quiet(path).rankings.tolist() == [[1, 2, 3], [2, 1, 3], [0, 1, 0]]
    pq.write_table(pa.table({"user": [], "item": []}), path)
    with pytest.raises(ValueError, match="no rows"):
        quiet(path)


# properties

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), min_size=1, max_size=8)
NAMES = NAMES.map(str.strip).filter(bool)


def as_text(rows, delimiter=","):
    stream = io.BytesIO()
    sys.modules["pseudomallows.text"].write_rows(stream, rows, delimiter)
    return stream.getvalue()


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=20), st.sampled_from(",;\t|"))
def test_what_is_written_is_read_again(tmp_path_factory, pairs, delimiter):
    path = tmp_path_factory.mktemp("x") / "clicks.csv"
    path.write_bytes(as_text([("user", "item"), *pairs], delimiter))
    if len({item for _, item in pairs}) < 2:
        return
    expected = {user: sorted({i for u, i in pairs if u == user}) for user, _ in pairs}
    assert cells_of(quiet(path)) == expected


def read_both_ways(path, block=64):
    """What the compiled loops read, in small blocks, and what the csv module reads."""
    found = []
    for least in (0, 10**9):
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            patch.setattr(log, "LARGE", least)
            patch.setattr(log, "BLOCK", block)
            try:
                answer = cells_of(quiet(path))
            except ValueError as error:
                answer = str(error)
        found.append((answer, [(entry.category, str(entry.message)) for entry in said]))
    return found


def is_read_in_blocks(path, block=64):
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.IgnoredColumnWarning)
        patch.setattr(log, "LARGE", 0)
        patch.setattr(log, "BLOCK", block)
        return log.read_large(open_source(path)) is not None


HARD = ["a", "b", " c", "c ", "", "NA", 'd"e', "f,g", "h\ni", "日本", "é" * 9, "\u00a0k", "k\u3000"]


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.tuples(*[st.sampled_from(HARD)] * 3), min_size=1, max_size=20),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\ufeff"]),
    st.sampled_from(["", "\n", "\n\n,,\n"]),
    st.integers(150, 230),
    st.sampled_from(["clicks.csv", "clicks.csv.gz"]),
)
def test_the_fast_way_reads_as_the_slow_way(tmp_path_factory, rows, end, mark, last, block, name):
    path = tmp_path_factory.mktemp("x") / name
    content = as_text([("item", "click", "user"), *rows]) + last.encode()
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
        (LINES + '"c,i""d", "tea" ,3\r\n\n,,\n,tea,1\n', True),
        (LINES + 'cid,"tea\nfor\ntwo",3\ncid,,3\n', True),
        (LINES + "cid,tea,3,,\n", True),
        (LINES + "cid,tea,3,x\n", False),
        (LINES + "cid,tea\n", False),
        (LINES + 'cid,"tea"s,3\n', False),
        (LINES + 'cid,"tea,3\n', False),
        (LINES + "cid,tea,3\rdan,mate,4\r", False),
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
    monkeypatch.setattr(log, "LARGE", least)
    monkeypatch.setattr(log, "BLOCK", 64)
    path = put(LINES + '\n"dan\n(2)",tea,1\n' * 5 + "\nNA,tea,1\n")
    with pytest.warns(pm.DroppedRowsWarning, match="1 of 24 rows .* the first at line 36"):
        quiet(path)


def test_a_large_file_from_standard_input(monkeypatch):
    class Standard:
        buffer = io.BytesIO(gzip.compress(LINES.encode()))

    monkeypatch.setattr("sys.stdin", Standard)
    monkeypatch.setattr(log, "LARGE", 0)
    assert cells_of(quiet("-")) == {"ann": ["tea"], "bob": ["mate"]}


def test_a_broken_gzip_file_is_told_while_it_is_read(put, monkeypatch):
    monkeypatch.setattr(log, "LARGE", 0)
    packed = gzip.compress(as_text([("user", "item"), *((n, n % 7) for n in range(9999))]))
    with pytest.raises(ValueError, match=r"x\.csv\.gz: this gzip file is broken"):
        quiet(put(packed[:-2000], "x.csv.gz"))


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
            found = quiet(path, kind)
        except ValueError as error:
            found = error
    if isinstance(found, ValueError):
        assert name in str(found)
        return
    assert found.n_users >= 1
    assert found.n_items >= 2
