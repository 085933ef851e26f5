"""Text: quotes, spaces and line ends, and the same rows by polars as by the csv module."""

import gzip
import time
import warnings
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pseudomallows as pm
from helpers import as_text, cells_of
from pseudomallows.data import source
from pseudomallows.data import text as text_files


def test_a_first_line_of_one_item_says_nothing_of_the_delimiter(put):
    found = pm.read(put("tea\nmate;tea\n"), "orderings")
    assert found.items.tolist() == ["mate", "tea"]


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


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), min_size=1, max_size=8)


NAMES = NAMES.map(str.strip).filter(bool)


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
    """What polars reads in small blocks, and what the csv module reads."""
    found = []
    for is_plain in (True, False):
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            patch.setattr(source, "BLOCK", block)
            if not is_plain:
                patch.setattr(text_files, "plain_frame", lambda *_: None)
            try:
                answer = cells_of(pm.read(path))
            except ValueError as error:
                answer = str(error)
        found.append((answer, [(entry.category, str(entry.message)) for entry in said]))
    return found


def is_plain(path):
    """Is all of a file read by polars?"""
    found, plain_frame = [], text_files.plain_frame
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(), suppress(ValueError):
        warnings.simplefilter("ignore")
        patch.setattr(source, "BLOCK", 100)
        patch.setattr(
            text_files, "plain_frame", lambda *block: found.append(plain_frame(*block)) or found[-1]
        )
        pm.read(path)
    return bool(found) and all(frame is not None for frame in found)


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
    st.sampled_from(["liked", "day", "rating", "count", "position"]),
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


RAW = [*'ab ",\n\r\t', *",,,,\n\n\n", '""', ' "', '",', '"\n', ",,", "é", "\u3000"]
RAW += ["NA", "1", "0", "-1", "x,y,z\n"]


@settings(max_examples=200)
@given(
    st.lists(st.sampled_from(RAW), max_size=40).map("".join),
    st.sampled_from(["user,item,n\n", '"item" ,user,day\r\n', "user,item,\n", "x,user,item,y,\n"]),
    st.integers(100, 160),
)
def test_any_text_is_read_alike_both_ways(tmp_path_factory, text, header, block):
    path = tmp_path_factory.mktemp("x") / "clicks.csv"
    path.write_bytes((header + "x,y,z\n" * 9 + text).encode())
    fast, slow = read_both_ways(path, block)
    assert fast == slow


LINES = "user,item,day\n" + "ann,tea,1\nbob,mate,2\n" * 9


@pytest.mark.parametrize(
    ("text", "is_by_polars"),
    [
        (LINES, True),
        (LINES.replace("\n", "\r\n"), True),
        (LINES + "cid,tea,3", True),
        (LINES + '"c,i""d","tea" ,3\r\n\n,,\n,tea,1\n', False),
        (LINES + '"c,i""d", "tea" ,3\r\n\n,,\n,tea,1\n', False),
        (LINES + '"c, ""i""","tea",3\n', False),
        (LINES + 'cid,"tea\nfor\ntwo",3\ncid,,3\n', False),
        (LINES + "cid,tea,3,,\n", False),
        (LINES + "cid,tea,3,x\n", False),
        (LINES + "cid,tea\n", False),
        (LINES + 'cid,"tea"s,3\n', False),
        (LINES + '"cid, 1","tea",3\r\n', True),
        (LINES + 'cid,"tea,3\n', False),
        (LINES + "cid,tea,3\rdan,mate,4\r", True),
        (LINES + "cid,t\0a,3\n", False),
        (LINES + f"cid,{'tea' * 100},3\n", True),
        ("user,item\rann,tea\n" + LINES, False),
        ("\n" + LINES, True),
        (" ,\n" + LINES, True),
        ('"us""er",user,item\n' + LINES[14:], True),
        ("user,item\n", False),
        (LINES.replace(",", "\t"), True),
        (LINES.replace("day", "user"), False),
        (LINES.encode("utf-16"), True),
        (LINES.encode() + b"cid,caf\xe9,3\n", True),
        (LINES.encode() + b"cid,tea,\xe9\n", True),
        (LINES.encode() + b"cid,caf\xc3", False),
    ],
)
def test_hard_files_read_both_ways(put, text, is_by_polars):
    path = put(text)
    fast, slow = read_both_ways(path)
    assert fast == slow
    assert is_plain(path) == is_by_polars


@pytest.mark.parametrize("block", [64, 10**9])
def test_a_row_that_is_left_out_is_told_by_its_line(put, monkeypatch, block):
    monkeypatch.setattr(source, "BLOCK", block)
    path = put(LINES + '\n"dan\n(2)",tea,1\n' * 5 + "\nNA,tea,1\n")
    with pytest.warns(pm.data.DroppedRowsWarning, match="1 of 24 rows .* the first at line 36"):
        pm.read(path)


def test_rows_say_their_lines_and_leave_out_blank_ones():
    blocks = iter([b"a, b\n\n , \n", b'"c\n', b'd";e\n', b"f\n"])
    rows = list(text_files.csv_rows(source.Source("x", ".csv", None), blocks))
    assert rows == [(1, ["a", "b"]), (4, ["c\nd;e"]), (6, ["f"])]


@pytest.mark.parametrize("header", ["user,item,", ",", "user,first,"])
def test_time_grows_with_the_number_of_columns(put, header):
    """70,000 columns took more than a minute of CPU, in a search for each name among all others."""
    path = put(header + ",".join(f"c{n}a" for n in range(70_000)) + "\nx\n")
    began = time.process_time()
    with pytest.raises(ValueError, match=r"line \d"):
        pm.read(path)
    assert time.process_time() - began < 20


def test_more_columns_than_can_be_read_are_refused(put):
    with pytest.raises(ValueError, match=r"line 1: .* 1500002 columns, and at most 1000000 can be"):
        pm.read(put("user,item" + "," * 1_500_000 + "\n"))
