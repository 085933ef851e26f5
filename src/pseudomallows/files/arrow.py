"""Large files by pyarrow, block by block: Parquet in and out, and tables of clicks in text.

This module alone imports pyarrow.
"""

import gzip
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from ..preferences.headers import is_long_clicks
from .atomic import write_whole
from .csv_files import END, Row, find_delimiter, read_rows
from .long_tables import (
    NO_NAME,
    Codes,
    Columns,
    Judged,
    Pairs,
    Part,
    find_columns,
    judged_columns,
    part_of,
)
from .source import HEAD, Source, open_source, open_text

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as pcsv
    import pyarrow.parquet as pq
except ModuleNotFoundError as error:  # pragma: no cover
    raise ModuleNotFoundError(
        "Parquet files need pyarrow: pip install 'pseudomallows[files]'", name=error.name
    ) from None

BLOCK = 500_000  # bytes of text at a time: a line is in two blocks at most, so no cell is too long
BATCH = 1 << 15  # rows that are read at a time
MOST = 1 << 26  # rows that room is made for before they are seen
WAITING = 1 << 17  # names of blocks that are joined at a time, at the least
MISSING = pa.array(sorted(NO_NAME))


# Names of users and items


class ArrowPairs(Pairs):
    """Pairs whose names Arrow joins, those of many blocks at a time.

    A column of a block is codes and a dictionary, its names. Those of all blocks before are joined
    first, so that their codes stay.
    """

    def __init__(self, source: Source, n_rows: int = 1 << 10) -> None:
        super().__init__(source, n_rows)
        self._dictionaries = [pa.array([], pa.string()) for _ in range(2)]
        self._waiting: list[tuple[Any, Any]] = []
        self._n_waiting = 0

    def add_block(self, users: Any, items: Any, is_whole: NDArray[np.bool_]) -> None:
        """Add the whole rows of a block."""
        if not is_whole.all():
            users, items = (column.filter(pa.array(is_whole)) for column in (users, items))
        self._waiting.append((users, items))
        self._n_waiting += len(users.dictionary) + len(items.dictionary)
        if self._n_waiting > max(WAITING, 2 * sum(map(len, self._dictionaries))):
            self._join()

    def _join(self) -> None:
        codes = []
        for place, known in enumerate(self._dictionaries):
            first = pa.DictionaryArray.from_arrays(pa.array([], pa.int32()), known)
            chunks = [first, *(columns[place] for columns in self._waiting)]
            joined = pa.chunked_array(chunks).unify_dictionaries()
            self._dictionaries[place] = joined.chunk(0).dictionary
            codes.append([np.asarray(chunk.indices) for chunk in joined.chunks[1:]])
        for users, items in zip(*codes, strict=True):
            self.store(users, items)
        self._waiting, self._n_waiting = [], 0

    def take(self) -> tuple[Codes, Codes, NDArray[Any], NDArray[Any]]:
        """Rows, codes, users and items, the names sorted; the pairs are then empty."""
        self._join()
        return super().take()

    def names(self) -> tuple[list[str], list[str]]:
        """Users and items, in the order of their codes; the names are then forgotten."""
        users, items = map(_listed, self._dictionaries)
        self._dictionaries = []
        return users, items


def _listed(names: Any) -> list[str]:
    found: list[str] = names.to_numpy(zero_copy_only=False).tolist()
    return found


def _is_missing(column: Any) -> NDArray[np.bool_]:
    """Which rows of a column of codes and names have no name."""
    is_none = pc.is_in(column.dictionary, value_set=MISSING)
    found: NDArray[np.bool_] = is_none.to_numpy(zero_copy_only=False)[np.asarray(column.indices)]
    return found


def _count(judged: Judged, column: Any) -> None:
    """Add the values of a block, as codes and values, to what is counted."""
    values = column.dictionary.to_pylist()
    counts = np.bincount(column.indices, minlength=len(values)).tolist()
    judged.add(zip(values, counts, strict=True))


# Text


def read_csv_pairs(source: Source, is_said: bool = False) -> Pairs | None:
    """Users and items of a table of clicks in text; None where `read_rows` knows better.

    What it reads is what `read_rows` would, but for files that are no plain table of clicks.
    """
    with source.open() as stream, _lean_memory():
        found = _plain_header(source, stream.readline(HEAD))
        if found is None:
            return None
        delimiter, header, columns = found
        judged = judged_columns(source, header[1], is_said)
        pairs, text = ArrowPairs(source), PlainText(stream, delimiter, len(header[1]))
        try:
            for batch in _csv_batches(text, header, columns, judged):
                _add_batch(pairs, judged, batch, columns)
        except pa.ArrowInvalid:
            return None
    if not text.is_plain or not pairs.n_rows:
        return None
    for column in judged:
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
        header = next(read_rows(source, iter([line])), (1, []))
        columns = find_columns(source, header)
    except ValueError:  # it is told after all that comes before it, such as bytes that are no text
        return None
    return (find_delimiter(source, [line]), header, columns) if is_long_clicks(header[1]) else None


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
    text: PlainText, header: Row, columns: Columns, judged: list[Judged]
) -> Iterator[Any]:
    """The rows of a table, as text; user, item and what is judged as codes and names."""
    names = [str(place) for place in range(len(header[1]))]
    types = dict.fromkeys(names, pa.string())
    for place in (columns.user, columns.item, *(column.place for column in judged)):
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


def _add_batch(pairs: ArrowPairs, judged: list[Judged], batch: Any, columns: Columns) -> None:
    users, items = (_trimmed(batch.column(place)) for place in (columns.user, columns.item))
    is_whole = ~(_is_missing(users) | _is_missing(items))
    is_row = np.ones(batch.num_rows, dtype=bool)
    is_row[_blank_rows(batch, np.flatnonzero(~is_whole))] = False
    pairs.count(is_whole[is_row])
    pairs.add_block(users, items, is_whole)
    for column in judged:
        if column.is_open:
            _count(column, _trimmed(batch.column(column.place)))


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


# Parquet


def parquet_header(source: Source) -> tuple[list[str], int]:
    """Names of the columns of a Parquet file, and its number of rows; of a folder, in all."""
    names: list[str] = []
    n_rows = 0
    for number, part in enumerate(_parts(source)):
        with _open(part) as file:
            names = names if number else _columns_of(file)
            n_rows += file.metadata.num_rows
    return names, n_rows


def read_part(path: str | os.PathLike[str]) -> Part:
    """Read one Parquet file of long clicks, or a folder of them, into codes.

    Unlike :func:`pseudomallows.read`, it takes a file with one item, or with no rows.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "part-0.parquet"
    >>> with ParquetRows(file) as rows:
    ...     rows.write({"user": ["bob", "ann", "bob"], "item": ["tea", "tea", "mate"]})
    >>> users, items, starts, codes = read_part(file)
    >>> users, items
    (array(['ann', 'bob'], dtype=object), array(['mate', 'tea'], dtype=object))
    >>> starts, codes  # the clicks of bob are items[codes[1:3]]
    (array([0, 1, 3]), array([1, 0, 1], dtype=int32))
    """
    return part_of(read_parquet_pairs(open_source(path), is_said=True))


def read_parquet_pairs(source: Source, is_said: bool = False) -> Pairs:
    """Users and items of a Parquet file of long clicks, or of a folder of them, batch by batch."""
    n_rows = parquet_header(source)[1]
    pairs = ArrowPairs(source, min(max(n_rows, 1), MOST))
    judged: list[Judged] | None = None
    with _lean_memory():
        for part in _parts(source):
            with _open(part) as file:
                header = (1, _columns_of(file))
                if judged is None:
                    judged = judged_columns(source, header[1], is_said)
                _add_file(pairs, judged, part, file, find_columns(part, header))
    for column in judged or ():
        column.warn()
    return pairs


def _add_file(
    pairs: ArrowPairs, judged: list[Judged], part: Source, file: Any, columns: Columns
) -> None:
    schema = file.schema_arrow
    names = [schema.names[place] for place in (columns.user, columns.item)]
    watched = [
        column
        for column in judged
        if column.is_open
        and schema.names.count(column.name) == 1
        and not pa.types.is_nested(schema.field(column.name).type)
    ]
    names += [column.name for column in watched]
    what = "row" if part is pairs.source else f"{part.name}, row"
    n_before = 0
    for batch in _batches(part, file, names):
        with _refuse_broken(part):
            found = {name: _encoded(batch.column(name)) for name in names}
            users, items = found[names[0]], found[names[1]]
            is_whole = ~(_is_missing(users) | _is_missing(items))
            for column in watched:
                if column.is_open:
                    _count(column, found[column.name])
        first = pairs.count(is_whole)
        if first >= 0:
            pairs.first_dropped = f"{what} {n_before + first + 1}"
        pairs.add_block(users, items, is_whole)
        n_before += batch.num_rows


def _batches(source: Source, file: Any, names: list[str]) -> Iterator[Any]:
    """Some columns, batch by batch; group by group, or the reader keeps what it has read."""
    with _refuse_broken(source):
        for group in range(file.num_row_groups):
            yield from file.iter_batches(BATCH, [group], names, use_threads=False)


@contextmanager
def _lean_memory() -> Iterator[None]:
    """Let Arrow give back memory at once: its own pools keep what was used."""
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)
        pa.system_memory_pool().release_unused()


def read_parquet_text(source: Source) -> list[list[str]]:
    """Every column of a Parquet file, or of a folder of them, as text."""
    names: list[str] = []
    columns: list[list[str]] = []
    for part in _parts(source):
        with _open(part) as file:
            names = names or _columns_of(file)
            if names != _columns_of(file):
                raise part.error(None, f"wanted the columns {', '.join(names[:8])}")
            columns = columns or [[] for _ in names]
            with _refuse_broken(part):
                table = file.read(use_threads=False)
                for column, cells in zip(columns, table.columns, strict=True):
                    column += map(name_of, cells.to_pylist())
    return columns


def _parts(source: Source) -> list[Source]:
    """The file itself, or those of a folder, by name."""
    if source.path is None or not source.path.is_dir():
        return [source]
    paths = [path for path in sorted(source.path.glob("*.parquet")) if path.name[0] not in "._"]
    if not paths:
        raise source.error(None, "wanted Parquet files in this folder, there is no *.parquet")
    return [replace(source, name=str(path), path=path) for path in paths]


@contextmanager
def _open(source: Source) -> Iterator[Any]:
    with _refuse_broken(source):
        place: Any = source.path
        if source.path is None or source.is_packed:
            place = pa.BufferReader(source.content)
        metadata = pq.ParquetFile(place).metadata
        file = pq.ParquetFile(place, metadata=metadata, read_dictionary=_repeated(metadata))
    with file:
        yield file


def _repeated(metadata: Any) -> list[str]:
    """Columns of text that take few bytes a row: their names are stored once."""
    if not metadata.num_row_groups:
        return []
    group = metadata.row_group(0)
    chunks = [group.column(place) for place in range(group.num_columns)]
    return [
        chunk.path_in_schema
        for chunk in chunks
        if chunk.physical_type == "BYTE_ARRAY"
        and chunk.total_uncompressed_size < 4 * chunk.num_values
    ]


def _columns_of(file: Any) -> list[str]:
    return [str(name).strip() for name in file.schema_arrow.names]


@contextmanager
def _refuse_broken(source: Source) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError) as error:
        first = str(error).split("\n", 1)[0]
        raise source.error(None, f"this Parquet file cannot be read: {first}") from None


def _encoded(column: Any) -> Any:
    """A column of any type as codes and names, with an empty name where there is none."""
    if pa.types.is_null(column.type):
        column = column.cast(pa.string())
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    names = column.dictionary
    if pa.types.is_integer(names.type) or pa.types.is_large_string(names.type):
        names = names.cast(pa.string())
    elif not pa.types.is_string(names.type):
        names = pa.array(map(name_of, names.to_pylist()), pa.string())
    names = pa.concat_arrays([pc.utf8_trim_whitespace(names).fill_null(""), pa.array([""])])
    codes = column.indices.cast(pa.int32()).fill_null(len(names) - 1)
    return pa.DictionaryArray.from_arrays(codes, names)


def name_of(value: Any) -> str:
    """A name as text: whole numbers without a point, missing ones empty."""
    if value is None or value != value:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, list | dict):
        raise ValueError(f"a cell holds {str(value)[:40]}: wanted one value in each")
    if isinstance(value, bytes):
        return value.hex()
    return str(value).strip()


class ParquetRows:
    """A Parquet file that is written block by block, and appears once it is whole.

    The first block fixes names and types of the columns; a column of names of several kinds becomes
    text. After an error, or without any block, there is no file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "ranks.parquet"
    >>> with ParquetRows(file) as rows:
    ...     rows.write({"item": ["tea", "mate"], "rank": np.array([1, 2])})
    ...     rows.write({"item": ["juice"], "rank": np.array([3])})
    >>> pq.read_table(file).num_rows
    3
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        self._stack = ExitStack()
        self._stream: IO[bytes] | None = None
        self._writer: Any = None

    def __enter__(self) -> Self:
        self._stream = self._stack.enter_context(write_whole(self.path))
        return self

    def write(self, columns: dict[str, Any]) -> None:
        """Add a block of rows: columns of equal length, each a list or an array."""
        if len({len(values) for values in columns.values()}) != 1:
            raise ValueError(f"{self.path}: wanted columns of equal length in a block")
        if self._writer is None:
            table = pa.table({name: _typed(values) for name, values in columns.items()})
            self._writer = self._stack.enter_context(pq.ParquetWriter(self._stream, table.schema))
        else:
            table = self._table_like_the_first(columns)
        self._writer.write_table(table)

    def _table_like_the_first(self, columns: dict[str, Any]) -> Any:
        schema = self._writer.schema
        if list(columns) != schema.names:
            raise ValueError(f"{self.path}: wanted columns {schema.names}, got {list(columns)}")
        arrays = []
        for field, values in zip(schema, columns.values(), strict=True):
            try:
                arrays.append(_typed(values, field.type))
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
                raise ValueError(
                    f"{self.path}: column {field.name!r} is {field.type}: {error}"
                ) from None
        return pa.table(arrays, schema=schema)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None and self._writer is None:
            error = ValueError(f"{self.path}: no block was written")
            self._stack.__exit__(ValueError, error, None)
            raise error
        self._stack.__exit__(kind, error, trace)


def _typed(values: Any, kind: Any = None) -> Any:
    """A column of Arrow, of a given type or of its own: numbers as they are, names as text."""
    array = np.asarray(values)
    if array.dtype.kind in "OU":
        if kind is None or pa.types.is_string(kind):
            return pa.array([None if v is None else str(v) for v in array.tolist()], pa.string())
        return pa.array(array.tolist(), kind)
    if kind is not None and pa.types.is_string(kind):
        return pa.array(map(str, array.tolist()), kind)
    return pa.array(array, kind)
