"""Tables of text: comma-separated files, in and out, with line numbers for errors."""

import csv
import io
import itertools
import re
from collections.abc import Iterable, Iterator
from typing import IO, Any

from ..preferences.inputs.headers import NAMES, place_of, word
from ..preferences.inputs.layout import is_like_time, unnamed_columns
from ..preferences.inputs.pair_headers import is_pairs
from .source import Source

DELIMITERS = ",;\t|"
COLONS, UNIT = "::", "\x1f"  # of several characters, one takes the place
MAX_COLUMNS = 1_000_000  # their names alone take some 15 seconds
END = "endofthefile"  # a last line of our own: if it comes out as it went in, no quote is open
COMMA = re.compile(r"[+-]?\d+,\d+", re.ASCII)
Row = tuple[int, list[str]]


def read_rows(source: Source, lines: Iterator[str]) -> Iterator[Row]:
    """Line number and stripped cells of each line that is not blank: what a row is, is said here.

    Another reader, faster for large files, must take the same text for the same rows.
    """
    first = list(itertools.islice(lines, 10))
    delimiter = find_delimiter(source, first)
    whole = itertools.chain(first, lines, ["\n", END])
    if len(delimiter) == 1:
        return _split(source, whole, delimiter)
    return _split(source, (line.replace(delimiter, UNIT) for line in whole), UNIT)


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


def _split(source: Source, lines: Iterator[str], delimiter: str) -> Iterator[Row]:
    csv.field_size_limit(1_000_000)  # a longer cell is an open quote
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    line, last = 1, (0, [""])
    try:
        for cells in reader:
            if any(last[1]):
                yield last
            last = line, [cell.strip() for cell in cells]
            line = reader.line_num + 1
    except csv.Error as error:
        raise source.error(line, f"this is no table: {error} (is a quote not closed?)") from None
    if last[1] != [END]:
        raise source.error(last[0], "a quote is opened, but not closed")


def read_table(source: Source, lines: Iterator[str], kind: str | None) -> tuple[Row, Iterator[Row]]:
    """The header and the rows after it; between semicolons, a comma in a number is a point."""
    some = list(itertools.islice(lines, 10))
    rows = read_rows(source, itertools.chain(some, lines))
    header, rows = _with_header(source, rows, kind)
    has_names = kind in ("orderings", "pairs") or is_pairs(header[1])
    has_names = has_names or any(place_of(name) is not None for name in header[1])
    if find_delimiter(source, some) == ";" and not has_names:
        rows = _with_points(header[1], rows)
    return header, rows


def _with_points(header: list[str], rows: Iterator[Row]) -> Iterator[Row]:
    """The rows with points in their numbers; the names of users and items stay as they are."""
    names = {place for place, name in enumerate(header) if word(name) in NAMES}
    for line, cells in rows:
        for place, cell in enumerate(cells):
            if "," in cell and place not in names and COMMA.fullmatch(cell):
                cells[place] = cell.replace(",", ".")
        yield line, cells


def _with_header(
    source: Source, rows: Iterator[Row], kind: str | None
) -> tuple[Row, Iterator[Row]]:
    """The header and the rows after it; a table without a header gets one."""
    first = next(rows, None)
    if first is None:
        raise source.error(None, "the file is empty")
    if len(first[1]) > MAX_COLUMNS:
        raise source.error(
            first[0],
            f"there are {len(first[1])} columns, and at most {MAX_COLUMNS} can be read: write a "
            "line for each user and item",
        )
    if source.layout.header is not False and isinstance(source.layout.columns, list | tuple):
        raise ValueError("columns as a list names those of a table without a header: header=False")
    if source.layout.header is not False:
        some = [first, *itertools.islice(rows, 9)]
        rows = itertools.chain(some[1:], rows)
        may_be_bare = source.layout.header is None and kind in (None, "clicks")
        if not (may_be_bare and all(is_rating_line(cells) for _, cells in some)):
            return (first[0], source.names(first[1], first[0])), rows
    names = unnamed_columns(len(first[1]), first[1][2] if len(first[1]) > 2 else "")
    if isinstance(source.layout.columns, list | tuple):
        names = list(source.layout.columns)
    elif source.layout.columns is not None:
        places = [f"column {place}" for place in range(len(first[1]))]
        names = list(source.names(places, None))
    if len(names) != len(first[1]):
        raise source.error(
            first[0], f"columns has {len(names)} names, and there are {len(first[1])} columns"
        )
    texts = [str(name) for name in names]
    source.notes.append(f"no header, columns {', '.join(texts)}")
    return (0, texts), itertools.chain([first], rows)


def is_rating_line(cells: list[str]) -> bool:
    """Whether a line is one of ratings, as MovieLens has them: user, item, a rating from 0 to 10,
    and a time in seconds since 1970.

    >>> is_rating_line(["196", "242", "3", "881250949"]), is_rating_line(["1", "2", "3", "4"])
    (True, False)
    """
    if len(cells) != 4 or not all(re.fullmatch(r"\d+(\.\d+)?", cell, re.A) for cell in cells):
        return False
    return float(cells[2]) <= 10 and is_like_time(cells[3])


def full_rows(source: Source, header: Row, rows: Iterable[Row]) -> Iterator[Row]:
    """The rows, each as long as the header; empty cells beyond it are dropped."""
    n_columns = len(header[1])
    for line, cells in rows:
        if len(cells) > n_columns and not any(cells[n_columns:]):
            cells = cells[:n_columns]
        if len(cells) != n_columns:
            advice = ": is there a decimal comma? Write a point" * (len(cells) == 2 * n_columns)
            raise source.error(
                line,
                f"there are {len(cells)} cells, but the header has {n_columns} columns{advice}",
            )
        yield line, cells


def check_header(source: Source, header: Row) -> None:
    """Refuse a name that two columns have."""
    line, names = header
    seen: set[str] = set()
    for name in names:
        if name and name in seen:
            raise source.error(line, f"the header has {name!r} twice: give each column a name")
        seen.add(name)


def write_rows(stream: IO[bytes], rows: Iterable[Iterable[Any]], delimiter: str = ",") -> None:
    """Write lines of cells as UTF-8."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=False)
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)
    text.flush()
    text.detach()
