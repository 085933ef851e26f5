"""Parquet: tables in, whole or in blocks, and out. This module alone imports pyarrow."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import TracebackType
from typing import IO, Any, Self

import numpy as np

from .atomic import write_whole
from .codes import Cells, Codes, Names
from .csv_files import Source, open_source
from .long_tables import Columns, Judged, Pairs, Part, click_columns, judged_columns, part_of

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ModuleNotFoundError as error:  # pragma: no cover
    raise ModuleNotFoundError(
        "Parquet files need pyarrow: pip install 'pseudomallows[files]'", name=error.name
    ) from None

BATCH = 1 << 15  # rows that are read at a time
MOST = 1 << 26  # rows that room is made for before they are seen


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
    pairs = Pairs(source, min(max(n_rows, 1), MOST))
    judged: list[Judged] | None = None
    with _lean_memory():
        for part in _parts(source):
            with _open(part) as file:
                header = (1, _columns_of(file))
                if judged is None:
                    judged = judged_columns(source, header[1], is_said)
                _add_file(pairs, judged, part, file, click_columns(part, header))
    for column in judged or ():
        column.warn(column.counts())
    return pairs


def _add_file(
    pairs: Pairs, judged: list[Judged], part: Source, file: Any, columns: Columns
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
    first = 1
    for batch in _batches(part, file, names):
        with _refuse_broken(part):
            users = _codes(pairs.users, batch.column(names[0]))
            items = _codes(pairs.items, batch.column(names[1]))
            for column in watched:
                if column.is_open:
                    column.add(_codes(column.names, batch.column(column.name)))
        pairs.add_codes(users, items, np.arange(first, first + len(batch)), what)
        first += len(batch)


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


def _codes(known: Names, column: Any) -> Codes:
    """Codes of a column of names, -1 where there is none."""
    if not pa.types.is_dictionary(column.type):
        return known.codes(_cells(column))
    codes = known.codes(_cells(column.dictionary))
    return np.append(codes, np.int32(-1))[np.asarray(column.indices.fill_null(-1))]


def _cells(column: Any) -> Cells:
    """The values of a column as names."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind):
        column = column.cast(pa.string())
    elif not pa.types.is_string(kind):
        encoded = column.dictionary_encode()
        names = pa.array(map(name_of, encoded.dictionary.to_pylist()), pa.string())
        column = names.take(encoded.indices)
    if not len(column):
        return Cells(np.empty(0, np.uint8), np.empty(0, np.int32), np.empty(0, np.int32))
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32, len(column) + 1, 4 * column.offset)
    first = int(ends[0])
    length = int(ends[-1]) - first
    text = np.frombuffer(data, np.uint8, length, first) if length else np.empty(0, np.uint8)
    bounds = np.array([ends[:-1], ends[1:]]) - first
    if column.null_count:
        bounds[:, np.asarray(column.is_null())] = -1
    return Cells(text.copy(), bounds[0], bounds[1])


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


def write_parquet(stream: IO[bytes], columns: dict[str, Any]) -> None:
    """Write columns as a Parquet file; names of several kinds become text."""
    arrays = {name: _as_array(values) for name, values in columns.items()}
    pq.write_table(pa.table(arrays), stream)


def _as_array(values: Any) -> Any:
    try:
        return pa.array(np.asarray(values).tolist())
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([str(value) for value in values])


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
