"""Tables of clicks in text, block by block."""

import gzip
import re
import zlib
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
from numpy.typing import NDArray

from ...preferences.inputs.headers import is_long_clicks
from ...preferences.inputs.pair_headers import is_impressions
from ..csv_files import END, Row, find_delimiter, read_rows
from ..long_tables import (
    NO_NAME,
    ClickPairs,
    Columns,
    SuspectColumn,
    find_columns,
    suspect_columns,
    time_reader,
)
from ..source import HEAD, Source, TooLargeError, open_text
from .name_codes import (
    ArrowPairs,
    add_times,
    count_values,
    high_ratings,
    is_missing,
    lean_memory,
)

BLOCK = 500_000  # bytes of text at a time: a line is in two blocks at most, so no cell is too long


def read_csv_pairs(
    source: Source, is_said: bool = False, is_checked: bool = False
) -> ClickPairs | None:
    """Users and items of a table of clicks in text; None where `read_rows` knows better, and of
    impressions, unless they are said or checked to be clicks.

    What it reads is what `read_rows` would, but for files that are no plain table of clicks.
    """
    with source.open() as stream, lean_memory():
        plain = _plain_header(source, stream.readline(HEAD))
        if plain is None:
            return None
        delimiter, header, columns = plain
        may_be_shown = not (is_said or is_checked or source.may_be_one_item)
        if may_be_shown and is_impressions(header[1]):
            return None
        suspects = suspect_columns(source, header[1], is_said)
        pairs = ArrowPairs(source, time=time_reader(source, header[1], columns))
        text = PlainText(stream, delimiter, len(header[1]))
        try:
            for batch in _csv_batches(text, header, columns, suspects):
                _add_batch(pairs, suspects, batch, columns)
        except TooLargeError:
            raise
        except (
            pa.ArrowInvalid,
            ValueError,
        ):  # of times or ratings, too: the plain reader names the line
            return None
    if not text.is_plain or not pairs.n_rows:
        return None
    for column in suspects:
        column.warn()
    if pairs.n_dropped:
        pairs.first_dropped = f"line {_first_without_a_name(source, columns)}"
    return pairs


def _plain_header(source: Source, first: bytes) -> tuple[str, Row, Columns] | None:
    """Delimiter, names and columns of a first line that is the header of a table of clicks."""
    try:
        line = first.decode("utf-8-sig")
        is_odd = line.count('"') % 2 or "\0" in line or "\r" in line.removesuffix("\r\n")
        if is_odd or not line.endswith("\n"):
            return None
        number, names = next(read_rows(source, iter([line])), (1, []))
        header = number, source.names(names)
        columns = find_columns(source, header)
    except ValueError:  # errors that come before it, such as bytes that are no text, go first
        return None
    delimiter = find_delimiter(source, [line])
    is_plain = len(delimiter) == 1 and source.layout.header is not False
    return (delimiter, header, columns) if is_plain and is_long_clicks(header[1]) else None


class PlainText:
    """Bytes on their way to pyarrow, as long as it takes them for the same rows as `read_rows`.

    It takes spaces before a quote for text, and closes an open quote at the end of the file: so a
    last line of our own shows whether one is open.
    """

    def __init__(self, stream: IO[bytes], delimiter: str, n_columns: int) -> None:
        self.is_plain, self.closed = True, False
        self.delimiter, self._stream = delimiter, stream
        self._end = f"\n{delimiter.join([END] * n_columns)}\n".encode()
        self._space = re.compile(rb'[\n\r%b] +"' % re.escape(delimiter).encode())
        self._tail = b"\n"  # what came last, with the spaces after it

    def read(self, size: int = -1) -> bytes:
        """The next bytes; none once they are not plain."""
        try:
            block = self._stream.read(size) if self.is_plain else b""
        except TooLargeError:
            raise
        except (gzip.BadGzipFile, EOFError, zlib.error, ValueError):
            block, self.is_plain = b"", False
        text = self._tail + block
        if b"\0" in block or (b' "' in text and self._space.search(text)):
            self.is_plain = False
        self._tail = text[max(len(text.rstrip(b" ")) - 1, 0) :]
        if not block:
            block, self._end = self._end, b""
        return block if self.is_plain else b""

    def close(self) -> None:
        """Nothing: who opened the stream closes it."""


def _csv_batches(
    text: PlainText, header: Row, columns: Columns, suspects: list[SuspectColumn]
) -> Iterator[Any]:
    """The rows of a table, as text; user, item and suspect columns as codes and names."""
    names = [str(place) for place in range(len(header[1]))]
    types = dict.fromkeys(names, pa.string())
    for place in (columns.user, columns.item, *(column.place for column in suspects)):
        types[str(place)] = pa.dictionary(pa.int32(), pa.string())
    reader = pcsv.open_csv(
        text,
        pcsv.ReadOptions(use_threads=False, block_size=BLOCK, column_names=names),
        pcsv.ParseOptions(delimiter=text.delimiter, newlines_in_values=True),
        pcsv.ConvertOptions(column_types=types, strings_can_be_null=False),
    )
    last = None
    for batch in reader:
        if batch.num_rows:
            if last is not None:
                yield last
            last = batch
    if last is None or set(last.slice(last.num_rows - 1).to_pylist()[0].values()) != {END}:
        raise pa.ArrowInvalid("a quote is open")
    yield last.slice(0, last.num_rows - 1)


def _add_batch(
    pairs: ArrowPairs, suspects: list[SuspectColumn], batch: Any, columns: Columns
) -> None:
    users, items = (_trimmed(batch.column(place)) for place in (columns.user, columns.item))
    is_whole = ~(is_missing(users) | is_missing(items))
    is_row = np.ones(batch.num_rows, dtype=bool)
    is_row[_blank_rows(batch, np.flatnonzero(~is_whole))] = False
    pairs.count(is_whole[is_row])
    times = None if pairs.time is None else add_times(pairs.time, batch.column(columns.time))
    is_high = None
    if columns.rating >= 0:
        is_high = high_ratings(pairs.source.layout, batch.column(columns.rating))
    pairs.add_block(users, items, is_whole, times, is_high)
    for column in suspects:
        if column.is_open:
            count_values(column, _trimmed(batch.column(column.place)))


def _trimmed(column: Any) -> Any:
    names = pc.utf8_trim_whitespace(column.dictionary)
    return pa.DictionaryArray.from_arrays(column.indices, names)


def _blank_rows(batch: Any, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Those of some rows that have nothing in any column."""
    for column in batch.columns:
        if not len(rows):
            break
        cells = column.take(pa.array(rows)).cast(pa.string())
        rows = rows[np.asarray(pc.utf8_length(pc.utf8_trim_whitespace(cells))) == 0]
    return rows


def _first_without_a_name(source: Source, columns: Columns) -> int:
    """The line of the first row without a user or an item: pyarrow counts no lines."""
    with open_text(source, None) as lines:
        rows = read_rows(source, lines)
        next(rows)
        return next(
            line
            for line, cells in rows
            if cells[columns.user] in NO_NAME or cells[columns.item] in NO_NAME
        )
