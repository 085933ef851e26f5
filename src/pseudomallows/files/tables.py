"""Long tables in files, whatever the format: which kind they are, and the data of each kind."""

import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engines.memory import as_size, available_memory
from ..preferences.inputs.from_clicks import clicks_of_table
from ..preferences.inputs.from_pairs import pairs_of_table
from ..preferences.inputs.headers import find_column, is_long_clicks
from ..preferences.inputs.impressions import impressions_of_table, is_yes_and_no
from ..preferences.inputs.pair_headers import (
    check_voters,
    find_impression_columns,
    find_pair_columns,
    is_impressions,
    is_pairs,
)
from ..preferences.inputs.table import Table
from .csv_files import Row, check_header, find_delimiter, full_rows, read_rows
from .source import HEAD, Source, TooLargeError

NO_NAME = frozenset(("", "NA", "<NA>", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None"))
BLOCK = 1 << 20  # bytes of text that are looked at together, while they are in the cache
MAX_CELL = 1_000_000  # bytes of a line, nearly a block: in a longer one, a quote may be open
ROWS = 1 << 16  # of cells as Python text, before they are packed: some 300 bytes each, 20 MB


def long_kind(source: Source, kind: str | None, names: list[str]) -> str | None:
    """The kind of a long table: as said, or by its header; None for other tables.

    What is added to clicks is never taken for impressions.
    """
    if kind is not None:
        return kind if kind in ("pairs", "impressions", "clicks") and names else None
    if is_pairs(names):
        return "pairs"
    if is_impressions(names) and not source.may_be_one_item:
        return "impressions"
    return "clicks" if is_long_clicks(names) else None


def check_columns(source: Source, header: Row, kind: str) -> None:
    """Refuse a header without the columns of a kind."""
    check_header(source, header)
    line, names = header
    try:
        if kind == "pairs":
            check_voters(names, find_pair_columns(names))
        elif kind == "impressions":
            find_impression_columns(names)
        else:
            for what in ("user", "item"):
                find_column(names, what)
            source.layout.rating_column(names)
    except ValueError as error:
        raise source.error(line, str(error)) from None


def read_long(source: Source, table: Table, chosen: str, kind: str | None) -> tuple[Any, str]:
    """The data of a long table, and their kind, with the items of the source, if it has some.

    A table that looks like impressions, of which nothing was said, is one of clicks if its column
    is not of yes and no, or all yes.
    """
    items = None if source.items is None else [str(name) for name in source.items]
    data: Any
    try:
        if chosen == "impressions" and kind is None:
            clicked = table.coded(find_impression_columns(table.names)["clicked"])
            chosen = chosen if is_yes_and_no(clicked) else "clicks"
        if chosen == "clicks":
            least = 1 if source.may_be_one_item else 2
            is_said, layout = kind is not None, source.layout
            data = clicks_of_table(table, None, None, items, None, layout, is_said, least)
        else:
            build = pairs_of_table if chosen == "pairs" else impressions_of_table
            data = build(table, None, None, items)
    except (ValueError, TypeError) as error:
        if str(error).startswith(source.name):
            raise
        raise source.error(None, str(error)) from None
    return (data if source.items is None else data.rename(items=source.items)), chosen


def file_table(
    source: Source,
    names: list[str],
    columns: Callable[[int], Any],
    n_rows: int,
    at: Callable[[int], str],
) -> Table:
    """A table of a file; refused if its codes, there three times, do not fit into memory."""
    needed, available = 3 * 8 * n_rows, available_memory()
    if available is not None and needed > available:
        raise TooLargeError(
            f"{source.name}: this does not fit into memory: {n_rows:,} rows need "
            f"{as_size(needed)}, and {as_size(available)} are available"
        )
    return Table(source.name, list(names), columns, n_rows, at, name_in_file, True, source.notes)


def name_in_file(value: Any) -> str | None:
    """A name as text; None if there is none."""
    name = text_of(value)
    return None if name in NO_NAME else name


def text_of(value: Any) -> str:
    """A cell as text: whole numbers without a point, missing ones empty."""
    if value is None or value != value:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, list | dict):
        raise ValueError(f"a cell holds {str(value)[:40]}: wanted one value in each")
    if isinstance(value, bytes):  # text whose writer has not said so, or else an id
        text = value.decode(errors="replace")
        value = text if text.isprintable() and "\ufffd" not in text else value.hex()
    return str(value).strip()


# Text


def table_of_rows(source: Source, header: Row, rows: Iterable[Row]) -> Table:
    """A table of rows of text."""
    import polars as pl

    packed: list[list[Any]] = [[] for _ in header[1]]
    lines: list[NDArray[np.int64]] = []
    waiting: list[Row] = []

    def pack() -> None:
        lines.append(np.array([line for line, _ in waiting], dtype=np.int64))
        for place, column in enumerate(packed):
            column.append(pl.Series([cells[place] for _, cells in waiting], dtype=pl.String))
        waiting.clear()

    for row in full_rows(source, header, rows):
        waiting.append(row)
        if len(waiting) == ROWS:
            pack()
    pack()
    numbers = np.concatenate(lines)
    if not len(numbers):
        raise source.error(None, "there is a header, but no line after it")
    columns = [pl.concat(column) for column in packed]
    return file_table(
        source, header[1], columns.__getitem__, len(numbers), lambda row: f"line {numbers[row]}"
    )


def regular_table(source: Source) -> Table | None:
    """A file of text, each row on a line of its own, read by polars a column at a time; None if the
    csv module may see other rows in it.
    """
    import polars as pl

    with source.open() as stream:
        delimiter, header = _plain_header(source, stream.readline(HEAD))
        n_rows = _count_rows(stream, delimiter, len(header[1])) if delimiter else 0
    if not n_rows:
        return None
    content: Any = source.content if source.path is None or source.is_packed else source.path
    schema = {str(place): pl.String for place in range(len(header[1]))}

    def column(place: int) -> Any:
        try:
            found = pl.read_csv(
                content,
                columns=[place],
                has_header=False,
                skip_lines=1,
                schema=schema,
                separator=delimiter,
            ).to_series()
        except pl.exceptions.PolarsError as error:
            raise ValueError(f"{source.name}: {error}") from None
        if len(found) != n_rows:
            raise ValueError(f"{source.name}: wanted {n_rows} rows, got {len(found)}")
        return found

    return file_table(source, header[1], column, n_rows, lambda row: f"line {row + 2}")


def _plain_header(source: Source, first: bytes) -> tuple[str, Row]:
    """Delimiter and names of a first line that is a header of a long table; "" if it is not."""
    nothing: tuple[str, Row] = "", (1, [])
    try:
        line = first.decode("utf-8-sig")
        is_odd = line.count('"') % 2 or "\0" in line or "\r" in line.removesuffix("\r\n")
        delimiter = find_delimiter(source, [line])
        if is_odd or not line.endswith("\n") or len(delimiter) != 1:
            return nothing
        number, names = next(read_rows(source, iter([line])), (1, []))
        return delimiter, (number, source.names(names))
    except ValueError:  # errors that come before it, such as bytes that are no text, go first
        return nothing


def _count_rows(stream: Any, delimiter: str, n_columns: int) -> int:
    """The number of lines; 0 if a line has too few or too many cells, or what is odd."""
    n_rows, rest = 0, b""
    while True:
        block = stream.read(BLOCK)
        text = rest + (block or (b"\n" if rest else b""))
        end = text.rfind(b"\n") + 1
        text, rest = text[:end], text[end:]
        count = _count_regular(text, delimiter.encode(), n_columns)
        if count < 0 or len(rest) > MAX_CELL:
            return 0
        n_rows += count
        if not block:
            return n_rows


def _count_regular(text: bytes, delimiter: bytes, n_columns: int) -> int:
    """The number of lines of a block, -1 if one is odd."""
    if b"\0" in text or text.count(b"\r") != text.count(b"\r\n"):
        return -1
    if re.search(rb"\n(?:[^!-~\n]|%b)*\n" % re.escape(delimiter), b"\n" + text):
        return -1  # a line may be blank
    letters = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero(letters == ord("\n"))
    marks = np.flatnonzero(letters == ord(delimiter))
    if b'"' in text:  # each quote has to begin or to end a cell, on one line
        is_quote = (letters == ord('"')).view(np.uint8)
        is_inside = np.bitwise_xor.accumulate(is_quote)
        quotes = np.flatnonzero(is_quote)
        before = np.frombuffer(b"\n" + text, dtype=np.uint8)[quotes[::2]]
        after = letters[np.minimum(quotes[1::2] + 1, len(letters) - 1)]
        begins = (before == ord("\n")) | (before == ord(delimiter))
        stops = (after == ord("\n")) | (after == ord("\r")) | (after == ord(delimiter))
        if not (begins.all() and stops.all()) or is_inside[ends].any():
            return -1
        marks = marks[is_inside[marks] == 0]
    if len(marks) != len(ends) * (n_columns - 1):
        return -1
    if not len(ends):
        return 0
    between = marks.reshape(len(ends), n_columns - 1)
    starts = np.append(-1, ends[:-1])
    is_row = (between[:, 0] > starts) & (between[:, -1] < ends)
    return len(ends) if is_row.all() and (ends - starts).max() <= MAX_CELL else -1
