"""Names to codes: against a dict of Python; lines of text: against the csv module."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import interpreted
from pseudomallows.files.codes import Cells, Names, in_order, recode
from pseudomallows.files.csv_files import Source, read_rows
from pseudomallows.kernels import names as kernels

pytestmark = pytest.mark.kernel


def cells_of(names):
    """Names, None for missing, as cells."""
    parts = [b"" if name is None else name.encode() for name in names]
    ends = np.cumsum([len(part) for part in parts], dtype=np.int32)
    begins = np.concatenate([[0], ends[:-1]]).astype(np.int32)
    is_missing = np.array([name is None for name in names])
    begins[is_missing] = ends[is_missing] = -1
    return Cells(np.frombuffer(b"".join(parts), dtype=np.uint8).copy(), begins, ends)


def codes_by_dict(names):
    known = {}
    return [-1 if name is None else known.setdefault(name, len(known)) for name in names]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.none() | st.text("abcé日", max_size=3), min_size=1, max_size=80))
def test_codes_are_those_of_a_dict(listed):
    cells = cells_of(listed)
    for kernel in (kernels.find_codes, interpreted(kernels.find_codes)):
        table, stored = np.zeros(128, np.int64), np.zeros(1000, np.uint8)
        bounds, codes = np.zeros(90, np.int64), np.empty(len(listed), np.int32)
        n_known = kernel(*cells, table, stored, bounds, 0, codes)
        assert codes.tolist() == codes_by_dict(listed)
        assert n_known == len({name for name in listed if name is not None})
        larger = np.zeros(256, np.int64)
        kernels.move_entries(table, larger)
        again = np.empty(len(listed), np.int32)
        assert kernel(*cells, larger, stored, bounds, n_known, again) == n_known
        assert again.tolist() == codes.tolist()


@pytest.mark.parametrize("n_slots", [8, 64])
def test_names_with_one_hash_are_told_apart(monkeypatch, n_slots):
    """Every name in one slot, the last but one: the table is searched on, past its end."""
    names = ["", "n", "n1", "n2", "n1x", "n2x"]
    find, move = interpreted(kernels.find_codes), kernels.move_entries
    monkeypatch.setattr(kernels, "hash_bytes", lambda data, begin, end: n_slots - 2)
    table, larger = np.zeros(n_slots, np.int64), np.zeros(2 * n_slots, np.int64)
    stored, bounds, codes = np.zeros(100, np.uint8), np.zeros(9, np.int64), np.zeros(6, np.int32)
    assert find(*cells_of(names), table, stored, bounds, 0, codes) == 6
    assert codes.tolist() == list(range(6))
    move(table, larger)
    assert find(*cells_of(names[::-1]), larger, stored, bounds, 6, codes) == 6
    assert codes.tolist() == list(range(6))[::-1]


def test_names_in_blocks_spaces_and_missing_ones():
    names = Names()
    blocks = [["b", " a", None, "NA"], ["a", "b\u00a0", "\u3000"], [f"n{i}" for i in range(3000)]]
    codes = np.concatenate([names.codes(cells_of(block)) for block in blocks])
    assert codes[[2, 3, 6]].tolist() == [-1, -1, -1]
    codes = codes[codes >= 0]
    ordered = in_order(codes, names.merge(codes))
    expected = ["b", "a", "a", "b", *blocks[2]]
    assert ordered.tolist() == sorted(set(expected))
    assert ordered[codes].tolist() == expected


def test_codes_change_in_steps(monkeypatch):
    monkeypatch.setattr(sys.modules["pseudomallows.files.codes"], "STEP", 3)
    codes = np.array([0, 2, 1, 1, 0, 2, 2], np.int32)
    recode(codes, np.array([5, 6, 7]))
    assert codes.tolist() == [5, 7, 6, 6, 5, 7, 7]
    codes = np.array([0, 2, 0, 2, 2, 2, 0], np.int32)
    assert in_order(codes, ["x", "none", "a"]).tolist() == ["a", "x"]
    assert codes.tolist() == [1, 0, 1, 0, 0, 0, 1]


def test_spaces_are_those_of_python():
    letters = [chr(n) for n in [*range(1, 0x3100), 0x85, 0xFEFF, 0x1F600]]
    for letter in letters:
        data = np.frombuffer(letter.encode("utf-8", "surrogatepass"), dtype=np.uint8)
        is_control = letter < " " and not letter.isspace()  # refused before it comes so far
        assert is_control or kernels.is_space(data, 0, len(data)) == (not letter.strip())
    text = np.frombuffer("  \t\u00a0\u2003\u3000".encode(), dtype=np.uint8)
    assert kernels.is_space(text, 0, len(text))
    assert not kernels.is_space(text, 0, len(text) - 1)  # cut within a letter


def test_two_quotes_become_one():
    data = np.frombuffer(b'x""""y""z', dtype=np.uint8).copy()
    end = kernels.join_quotes(data, 1, 8)
    assert data[1:end].tobytes() == b'""y"'


def split(text, n_columns, wanted, kernel, room=50):
    """Rows as (line, cell, cell), where reading stopped, and why."""
    data = np.frombuffer(text.encode(), dtype=np.uint8).copy()
    state, rows = np.array([0, 1, kernels.DONE]), []
    while state[2] == kernels.DONE:
        cells, lines = np.zeros((4, room), np.int32), np.zeros(room, np.int64)
        n = kernel(
            data, int(state[0]), len(data), 44, n_columns, np.array(wanted), state, cells, lines
        )
        for row in range(n):
            a, b, c, d = cells[:, row]
            pair = data[a:b].tobytes().decode().strip(), data[c:d].tobytes().decode().strip()
            rows.append((int(lines[row]), *pair))
    return rows, int(state[0]), int(state[2])


CELLS = ["a", "b c", "", " ", '"x,y"', '"x""y"', ' "z" ', '"two\nlines"', '"é\r\n日"', 'm"n', "\t"]


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.lists(st.sampled_from(CELLS), min_size=3, max_size=3), min_size=1, max_size=8),
    st.lists(st.sampled_from(["\n", "\r\n", "\n\n", ",,\n", "\n , ,\n", ",\n"]), min_size=1),
    st.sampled_from([(0, 2), (2, 0), (1, 1)]),
    st.integers(1, 3),
)
def test_lines_are_split_as_the_csv_module_does(rows, ends, wanted, room):
    text = "".join(",".join(row) + ends[at % len(ends)] for at, row in enumerate(rows))
    expected = [
        (line, row[wanted[0]], row[wanted[1]])
        for line, row in read_rows(Source("x", ".csv", None), text, ",")
    ]
    for kernel in (kernels.split_lines, interpreted(kernels.split_lines)):
        found, stopped, why = split(text, 3, wanted, kernel, room)
        assert found == expected
        assert (stopped, why) == (len(text.encode()), kernels.MORE)


@pytest.mark.parametrize(
    "line",
    ["a\n", "a,b,c\n", "a,b\0\n", 'a,"b\0"\n', 'a,"b"c\n', "a\rb,c\n", 'a,"b\rc"\n', "a,b\r,c\n",
     'a,"b" \rx\n', "a\x1f,b\n"],
)  # fmt: skip
@pytest.mark.parametrize("kernel", [kernels.split_lines, interpreted(kernels.split_lines)])
def test_what_is_no_plain_table_is_trouble(line, kernel):
    rows, stopped, why = split("x,y\n" + line, 2, (0, 1), kernel)
    assert (rows, stopped, why) == ([(1, "x", "y")], 4, kernels.TROUBLE)


def test_a_cell_that_is_too_long_is_trouble():
    text = f"x,y\n{'z' * (kernels.LONGEST + 1)},y\n"
    assert split(text, 2, (0, 1), kernels.split_lines)[2] == kernels.TROUBLE


@pytest.mark.parametrize("text", ["a,b", "a", 'a,"b', 'a,"b"', 'a,"b""', "a,b\r", 'a,"b" ', "a,  "])
@pytest.mark.parametrize("kernel", [kernels.split_lines, interpreted(kernels.split_lines)])
def test_a_line_that_is_not_whole_waits(text, kernel):
    rows, stopped, why = split("x,y\n" + text, 2, (0, 1), kernel)
    assert (rows, stopped, why) == ([(1, "x", "y")], 4, kernels.MORE)
