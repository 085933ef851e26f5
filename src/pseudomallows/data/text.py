"""Tables of separated values: polars takes the plain blocks of a file, the csv module the rest."""

import csv
import io
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .checks import name_in_file, text_of
from .columns import NAMES, is_pairs, kind_of, place_of, word
from .source import MAX_LINE, Source, check_encoding, text_blocks
from .table import Column, Table
from .times import form_of

if TYPE_CHECKING:
    import polars as pl

DELIMITERS = ",;\t|"
COLONS, UNIT = "::", "\x1f"  # of several characters, one takes the place
MAX_COLUMNS = 1_000_000  # their names alone take some 15 seconds
END = "endofthefile"  # a last line of our own: if it comes out as it went in, no quote is open
COMMA = r"^\s*([+-]?[0-9]+),([0-9]+)\s*$"  # a number with a decimal comma
ROWS = 1 << 16  # of cells as Python text, before they are packed: some 300 bytes each, 20 MB
Row = tuple[int, list[str]]
Rows = Iterable[Row]
Frame = tuple["pl.DataFrame", Sequence[int]]  # rows, and the line of each


@dataclass(frozen=True)
class TextFile:
    """A table of separated values: its header, and where the rows begin."""

    source: Source
    encoding: str
    delimiter: str
    header: Row = (0, [])
    first_line: int = 1  # of the rows
    has_points: bool = True  # or is a comma in a number a point?
    is_ragged: bool = False  # may rows have more cells than the header, or fewer? Then nulls

    def blocks(self) -> Iterator[bytes]:
        """The lines of the rows, in blocks."""
        n_before = self.first_line - 1
        for block in text_blocks(self.source, self.encoding):
            if len(self.delimiter) > 1:
                block = block.replace(self.delimiter.encode(), UNIT.encode())
            while n_before and block:
                block, n_before = block[block.find(b"\n") + 1 :], n_before - 1
            if block:
                yield block

    def table(self) -> Table:
        """The table, a row for each line that is not blank."""
        if not self.is_ragged:
            return file_table(self.source, self.header, self._frames)
        frames = list(self._frames())
        return file_table(self.source, self.header, lambda: frames, is_ragged=True)

    def _frames(self) -> Iterator[Frame]:
        """The rows in blocks, and the line of each.

        From the first block on that is not plain, the csv module reads all.
        """
        line, blocks, n_columns = self.first_line, self.blocks(), len(self.header[1])
        for block in blocks:
            found = plain_frame(block, self.delimiter, n_columns, line)
            if found is None:
                rows = csv_rows(self.source, itertools.chain([block], blocks), self.delimiter, line)
                if not self.is_ragged:
                    rows = (full_row(self.source, n_columns, row) for row in rows)
                for frame, lines in packed_rows(rows):
                    yield self._with_points(frame), lines
                return
            frame, lines = found
            if len(frame):  # no cell is there without text, and none is not there
                frame = frame.fill_null("") if self.is_ragged else frame
                yield self._with_points(frame), lines
            line += block.count(b"\n")

    def _with_points(self, frame: "pl.DataFrame") -> "pl.DataFrame":
        """Rows with points in their numbers; the names of users and items stay as they are."""
        import polars as pl

        if self.has_points:
            return frame
        names = {place for place, name in enumerate(self.header[1]) if word(name) in NAMES}
        others = [name for place, name in enumerate(frame.columns) if place not in names]
        return frame.with_columns(pl.col(others).str.replace(COMMA, "$1.$2"))


def text_table(source: Source, encoding: str | None, kind: str | None) -> Table:
    """A file of separated values: its first lines show the delimiter, and the header."""
    encoding = check_encoding(source, encoding)
    lines = _lines(text_blocks(source, encoding))
    delimiter = find_delimiter(source, list(itertools.islice(lines, 10)))
    opened = TextFile(source, encoding, delimiter)
    some = list(itertools.islice(csv_rows(source, opened.blocks(), delimiter), 10))
    header, is_bare = header_of(source, some, kind)
    first_line = 1
    if not is_bare:
        first = _reader(opened.blocks(), delimiter)
        while not any(cell.strip() for cell in next(first)):
            pass
        first_line = first.line_num + 1
    names = header[1]
    has_names = kind in ("orderings", "pairs") or is_pairs(names)
    has_names = has_names or any(place_of(name) is not None for name in names)
    has_points = delimiter != ";" or has_names
    is_wide = (kind or kind_of(names)) in (None, "rankings", "orderings", "wide-clicks")
    return TextFile(source, encoding, delimiter, header, first_line, has_points, is_wide).table()


def find_delimiter(source: Source, first: list[str]) -> str:
    """What is between cells: as said, or by the ending, else the most frequent mark in the first
    line that has one, of the first ten; two colons, as in MovieLens, if there is no other."""
    if source.layout.sep is not None:
        return source.layout.sep
    if source.ending in (".tsv", ".tab"):
        return "\t"
    for line in first:
        bare = re.sub(r'"[^"]*"', "", line)
        if COLONS in bare and not any(mark in bare for mark in DELIMITERS):
            return COLONS
        if any(mark in bare for mark in DELIMITERS):
            return max(DELIMITERS, key=bare.count)
    return ","


def plain_frame(block: bytes, delimiter: str, n_columns: int, line: int) -> Frame | None:
    """The rows of a block, by polars, and their lines; None unless each line is a row of so many
    cells, which the csv module would read alike.

    This is so if all bytes are accounted for: those of the cells, a delimiter or an end after each,
    and the quotes, none of which is left in a cell.
    """
    import polars as pl

    mark = delimiter if len(delimiter) == 1 else UNIT
    if mark not in DELIMITERS + UNIT or n_columns < 2:
        return None
    try:
        frame = pl.read_csv(
            block,
            has_header=False,
            schema={str(place): pl.String for place in range(n_columns)},
            separator=mark,
        )
    except pl.exceptions.PolarsError:
        return None
    n_bytes = sum(int(column.str.len_bytes().sum()) for column in frame)
    n_bytes += n_columns * len(frame) + block.count(b'"')
    if n_bytes != len(block) or len(frame) != block.count(b"\n"):
        return None
    # A row of blank cells counts as a blank line.
    first = frame.to_series(0)
    may_be_blank = first.is_null() | (first < "!") | (first > "~")
    if not may_be_blank.any():
        return frame, range(line, line + len(frame))
    texts = frame.filter(may_be_blank).with_columns(pl.all().fill_null("").str.strip_chars())
    is_blank = np.zeros(len(frame), dtype=bool)
    is_blank[may_be_blank.to_numpy()] = texts.select(pl.all_horizontal(pl.all() == "")).to_series()
    lines = line + np.flatnonzero(~is_blank)
    return frame.filter(~is_blank), lines  # type: ignore[return-value]


# Rows


def csv_rows(
    source: Source, blocks: Iterator[bytes], delimiter: str = ",", line: int = 1
) -> Iterator[Row]:
    """Line number and stripped cells of each line that is not blank: what a row is, is said here.

    The first line of the blocks has the number `line`.
    """
    reader = _reader(blocks, delimiter)
    before, last = line - 1, (0, [""])
    try:
        for cells in reader:
            if any(last[1]):
                yield last
            last = line, [cell.strip() for cell in cells]
            line = before + reader.line_num + 1
    except csv.Error as error:
        raise source.error(line, f"this is no table: {error} (is a quote not closed?)") from None
    if last[1] != [END]:
        raise source.error(last[0], "a quote is opened, but not closed")


def _reader(blocks: Iterator[bytes], delimiter: str) -> Any:
    csv.field_size_limit(MAX_LINE)
    mark = delimiter if len(delimiter) == 1 else UNIT
    lines = itertools.chain(_lines(blocks), ["\n", END])
    return csv.reader(lines, delimiter=mark, skipinitialspace=True)


def _lines(blocks: Iterator[bytes]) -> Iterator[str]:
    return (line for block in blocks for line in io.StringIO(block.decode(), newline="\n"))


def header_of(source: Source, some: list[Row], kind: str | None) -> tuple[Row, bool]:
    """The header of a table, by its first rows, and whether it is bare: then it gets a header."""
    if not some:
        raise source.error(None, "the file is empty")
    line, first = some[0]
    if len(first) > MAX_COLUMNS:
        raise source.error(
            line,
            f"there are {len(first)} columns, and at most {MAX_COLUMNS} can be read: write a "
            "line for each user and item",
        )
    layout = source.layout
    if layout.header is not False and isinstance(layout.columns, list | tuple):
        raise ValueError("columns as a list names those of a table without a header: header=False")
    may_be_bare = layout.header is None and kind in (None, "clicks")
    is_bare = layout.header is False or (
        may_be_bare and all(is_rating_line(cells) for _, cells in some)
    )
    if not is_bare:
        return (line, source.names(first, line)), False
    names: list[Any] = ["user", "item", "rating", "timestamp"]
    if len(first) == 3 and is_like_time(first[2]):
        names.remove("rating")
    names = names[: len(first)] + [f"column {place}" for place in range(4, len(first))]
    if isinstance(layout.columns, list | tuple):
        names = list(layout.columns)
    elif layout.columns is not None:
        places = [f"column {place}" for place in range(len(first))]
        names = list(source.names(places, None))
    if len(names) != len(first):
        raise source.error(
            line, f"columns has {len(names)} names, and there are {len(first)} columns"
        )
    texts = [str(name) for name in names]
    source.notes.append(f"no header, columns {', '.join(texts)}")
    return (0, texts), True


def is_rating_line(cells: list[str]) -> bool:
    """Whether a line is one of ratings, as MovieLens has them: user, item, a rating from 0 to 10,
    and a time in seconds since 1970.

    >>> is_rating_line(["196", "242", "3", "881250949"]), is_rating_line(["1", "2", "3", "4"])
    (True, False)
    """
    if len(cells) != 4 or not all(re.fullmatch(r"\d+(\.\d+)?", cell, re.A) for cell in cells):
        return False
    return float(cells[2]) <= 10 and is_like_time(cells[3])


def is_like_time(text: str) -> bool:
    """Whether a cell looks like the seconds or milliseconds since 1970, or like a date.

    >>> [is_like_time(text) for text in ("881250949", "2024-05-31", "4", "1193")]
    [True, True, False, False]
    """
    form = form_of(text)
    return form in ("date", "slashed") or (form == "number" and 1e8 <= float(text) < 1e14)


def full_row(source: Source, n_columns: int, row: Row) -> Row:
    """A row as long as the header; empty cells beyond it are dropped."""
    line, cells = row
    if len(cells) > n_columns and not any(cells[n_columns:]):
        cells = cells[:n_columns]
    if len(cells) != n_columns:
        raise source.error(line, wrong_length(len(cells), n_columns))
    return line, cells


def wrong_length(n_cells: int, n_columns: int) -> str:
    """What is wrong with a row of so many cells."""
    advice = ": is there a decimal comma? Write a point" * (n_cells == 2 * n_columns)
    return f"there are {n_cells} cells, but the header has {n_columns} columns{advice}"


def packed_rows(rows: Rows) -> Iterator[Frame]:
    """Rows as frames of text, as wide as the longest row of each, and the line of each row."""
    import polars as pl

    rows = iter(rows)
    while some := list(itertools.islice(rows, ROWS)):
        columns = itertools.zip_longest(*(cells for _, cells in some))
        frame = pl.DataFrame(
            [pl.Series(str(at), cells, dtype=pl.String) for at, cells in enumerate(columns)]
        )
        yield frame, np.array([line for line, _ in some], dtype=np.int64)  # type: ignore[misc]


def json_table(source: Source, text: str) -> Table:
    """JSON lines; the columns are the keys of all, in the order in which they appear."""
    import polars as pl

    lines: list[int] = []
    entries: list[dict[str, str]] = []
    for number, line in enumerate(io.StringIO(text, newline=None), 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise source.error(number, f"this is no JSON: {error}; is the line cut?") from None
        if not isinstance(entry, dict):
            raise source.error(
                number, f'wanted an object like {{"user": "ann", ...}}, got {line.strip()[:40]}'
            )
        for name, value in entry.items():
            try:
                entry[name] = text_of(value)
            except ValueError as error:
                raise source.error(number, str(error), name) from None
        lines.append(number)
        entries.append(entry)
    names = list(dict.fromkeys(name for entry in entries for name in entry))
    if not names:
        raise source.error(None, "the file is empty")
    columns = {name: [entry.get(name, "") for entry in entries] for name in names}
    frame = pl.DataFrame(columns, dict.fromkeys(names, pl.String))
    header = source.names([name.strip() for name in names], lines[0])
    return file_table(source, (lines[0], header), lambda: [(frame, lines)])


def file_table(
    source: Source,
    header: Row,
    frames: Callable[[], Iterable[Frame]],
    is_ragged: bool = False,
) -> Table:
    """A table of a file, whose names are text; `frames` are its rows, in blocks."""
    spans: list[Sequence[int]] = []  # the line of each row, block by block

    def blocks(places: list[int]) -> Iterator[list[Column]]:
        import polars as pl

        spans.clear()
        for frame, lines in frames():
            spans.append(lines)
            none = pl.Series([None], dtype=pl.String).new_from_index(0, len(frame))
            yield [frame.to_series(at) if at < frame.width else none for at in places]

    def at(row: int) -> str:
        for lines in spans:
            if row < len(lines):
                return f"{source.row_word} {lines[row]}"
            row -= len(lines)
        raise IndexError(row)

    line, names = header
    width = max([len(names), *(frame.width for frame, _ in frames())]) if is_ragged else len(names)
    return Table(
        source.name,
        list(names),
        blocks,
        at,
        name_in_file,
        header=f"{source.row_word} {line}" if line else "",
        is_file=True,
        may_be_empty=is_ragged,  # the header may be a row
        notes=source.notes,
        width=width,
    )
