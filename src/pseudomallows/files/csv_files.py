"""Tables of text: comma-separated files, in and out, with line numbers for errors."""

import csv
import io
import itertools
import re
from collections.abc import Iterable, Iterator
from typing import IO, Any

from .source import Source

DELIMITERS = ",;\t|"
MAX_CELL = 1_000_000  # characters; one that is longer is an open quote
END = "end of the file"  # a last line of our own: if it comes out as it went in, no quote is open
Row = tuple[int, list[str]]


def read_rows(source: Source, lines: Iterator[str]) -> Iterator[Row]:
    """Line number and stripped cells of each line that is not blank: what a row is, is said here.

    Another reader, faster for large files, must take the same text for the same rows.
    """
    first = list(itertools.islice(lines, 10))
    delimiter = find_delimiter(source, first)
    return _split(source, itertools.chain(first, lines, ["\n", END]), delimiter)


def find_delimiter(source: Source, first: list[str]) -> str:
    """The character between cells: by the ending, else the most frequent in the first line that has
    one, of the first ten."""
    if source.ending in (".tsv", ".tab"):
        return "\t"
    for line in first:
        bare = re.sub(r'"[^"]*"', "", line)
        if any(mark in bare for mark in DELIMITERS):
            return max(DELIMITERS, key=bare.count)
    return ","


def _split(source: Source, lines: Iterator[str], delimiter: str) -> Iterator[Row]:
    csv.field_size_limit(MAX_CELL)
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
