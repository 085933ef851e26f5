"""Parquet files, and folders of them, batch by batch."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ...preferences.inputs.table import Table
from ...preferences.inputs.times import TimeColumn, TimeError
from ..csv_files import Row
from ..long_tables import (
    ClickPairs,
    Part,
    SuspectColumn,
    find_columns,
    part_of,
    suspect_columns,
    time_reader,
)
from ..pair_tables import CodedBlocks
from ..source import Source, open_source
from .name_codes import (
    ArrowPairs,
    add_times,
    count_values,
    high_ratings,
    is_missing,
    lean_memory,
)

BATCH = 1 << 15  # rows that are read at a time: from a quarter to four times took the same time


def parquet_header(source: Source) -> tuple[list[str], int]:
    """Names of the columns of a Parquet file, and its number of rows; of a folder, in all."""
    names: list[str] = []
    n_rows = 0
    for number, part in enumerate(_parts(source)):
        with _open(part) as file:
            names = names if number else _columns_of(part, file)
            n_rows += file.metadata.num_rows
    return names, n_rows


def read_part(path: str | os.PathLike[str]) -> Part:
    """Read one Parquet file of long clicks, or a folder of them, into codes.

    Unlike :func:`pseudomallows.read`, it takes a file with one item, or with no rows.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from pseudomallows.files.arrow import ParquetRows
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "part-0.parquet"
    >>> with ParquetRows(file) as rows:
    ...     rows.write({"user": ["bob", "ann", "bob"], "item": ["tea", "tea", "mate"]})
    >>> users, items, starts, codes = read_part(file)
    >>> users, items
    (array(['ann', 'bob'], dtype=object), array(['mate', 'tea'], dtype=object))
    >>> starts, codes  # the clicks of bob are items[codes[1:3]]
    (array([0, 1, 3]), array([1, 0, 1], dtype=int32))
    """
    return part_of(read_parquet_pairs(open_source(path), is_said=True, with_times=False))


def read_parquet_pairs(
    source: Source, is_said: bool = False, with_times: bool = True
) -> ClickPairs:
    """Users, items and times of a Parquet file of long clicks, or of a folder of them, batch by
    batch."""
    names, n_rows = parquet_header(source)
    time = None
    if with_times and names:
        time = time_reader(source, names, find_columns(source, (1, names)))
    # what a file claims to have is believed up to 1 GB of codes and times
    pairs = ArrowPairs(source, min(max(n_rows, 1), 1 << 26), time)
    suspects: list[SuspectColumn] | None = None
    with lean_memory():
        for part in _parts(source):
            with _open(part) as file:
                header = (1, _columns_of(part, file))
                if suspects is None:
                    suspects = suspect_columns(source, header[1], is_said)
                _add_file(pairs, suspects, part, file, header)
    for column in suspects or ():
        column.warn()
    return pairs


def _add_file(
    pairs: ArrowPairs, suspects: list[SuspectColumn], part: Source, file: Any, header: Row
) -> None:
    schema, columns = file.schema_arrow, find_columns(part, header)
    names = [schema.names[place] for place in (columns.user, columns.item)]
    own = dict(zip(header[1], schema.names, strict=True))  # names in the file, by those here
    watched = [
        column
        for column in suspects
        if column.is_open
        and header[1].count(column.name) == 1
        and not pa.types.is_nested(schema.field(own[column.name]).type)
    ]
    names += [own[column.name] for column in watched]
    time = -1 if pairs.time is None else columns.time
    what = "row" if part is pairs.source else f"{part.name}, row"
    n_before = 0
    others = [schema.names[place] for place in (time, columns.rating) if place >= 0]
    for batch in _batches(part, file, list(dict.fromkeys([*names, *others]))):
        times = None if pairs.time is None else np.full(batch.num_rows, np.nan)
        if pairs.time is not None and time >= 0:
            times = _times(part, pairs.time, batch.column(schema.names[time]), n_before)
        is_high = None
        if columns.rating >= 0:
            with _refuse_broken(part):
                is_high = high_ratings(part.layout, batch.column(schema.names[columns.rating]))
        with _refuse_broken(part):
            cells = {name: _encoded(batch.column(name)) for name in names}
            users, items = cells[names[0]], cells[names[1]]
            is_whole = ~(is_missing(users) | is_missing(items))
            for column in watched:
                if column.is_open:
                    count_values(column, cells[own[column.name]])
        first = pairs.count(is_whole)
        if first >= 0:
            pairs.first_dropped = f"{what} {n_before + first + 1}"
        pairs.add_block(users, items, is_whole, times, is_high)
        n_before += batch.num_rows


def _times(part: Source, reader: TimeColumn, column: Any, n_before: int) -> NDArray[np.float64]:
    try:
        with _refuse_broken(part):
            return add_times(reader, column)
    except TimeError as error:
        row = n_before + error.place + 1
        raise part.error(None, f"row {row}, column {str(reader.name)!r}: {error}") from None


def read_parquet_coded(source: Source, find: Callable[[Source, Row], dict[str, int]]) -> Table:
    """Columns of a Parquet file, or of a folder of them, as codes: those that
    ``find(file, header)`` finds, by what they are."""
    blocks: CodedBlocks | None = None
    with lean_memory():
        for part in _parts(source):
            with _open(part) as file:
                places = find(part, (1, _columns_of(part, file)))
                blocks = blocks or CodedBlocks(source, places)
                if blocks.places.keys() != places.keys():
                    raise part.error(None, f"wanted columns for {', '.join(blocks.places)}")
                names = {what: file.schema_arrow.names[at] for what, at in places.items()}
                for batch in _batches(part, file, list(names.values())):
                    with _refuse_broken(part):
                        for what, name in names.items():
                            column = _encoded(batch.column(name))
                            codes = np.asarray(column.indices)
                            blocks.add_coded(what, codes, column.dictionary.to_pylist())
    assert blocks is not None  # a folder has a file
    return blocks.table()


def _batches(source: Source, file: Any, names: list[str]) -> Iterator[Any]:
    """Some columns, batch by batch; group by group, or the reader keeps what it has read."""
    n_rows = 0
    with _refuse_broken(source):
        for group in range(file.num_row_groups):
            for batch in file.iter_batches(BATCH, [group], names, use_threads=False):
                n_rows += batch.num_rows
                yield batch
    _check_rows(source, file, n_rows)


def _check_rows(source: Source, file: Any, n_rows: int) -> None:
    """Refuse a file in which pages are passed over, as those of no known kind are."""
    if n_rows != file.metadata.num_rows:
        raise source.error(
            None,
            f"this Parquet file is damaged: it announces {file.metadata.num_rows} rows, and "
            f"{n_rows} can be read",
        )


def read_parquet_text(source: Source) -> list[list[str]]:
    """Every column of a Parquet file, or of a folder of them, as text."""
    names: list[str] = []
    columns: list[list[str]] = []
    for part in _parts(source):
        with _open(part) as file:
            names = names or _columns_of(part, file)
            if names != _columns_of(part, file):
                shown = ", ".join(names[:8])
                raise part.error(None, f"wanted the columns {shown}, as in the first file")
            columns = columns or [[] for _ in names]
            with _refuse_broken(part):
                table = file.read(use_threads=False)
                _check_rows(part, file, table.num_rows)
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
        file = pq.ParquetFile(
            place,
            metadata=metadata,
            read_dictionary=_repeated(metadata),
            page_checksum_verification=True,  # of pages that have one
        )
    with file:
        yield file


def _repeated(metadata: Any) -> list[str]:
    """The columns of text, if a row takes few bytes: then their names are stored once.

    Sizes are those of all columns together: asking a damaged footer for one column may end the
    process.
    """
    if not metadata.num_row_groups:
        return []
    columns = [metadata.schema.column(place) for place in range(metadata.num_columns)]
    text = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
    n_bytes = 4 * len(text) + 8 * (len(columns) - len(text))  # of a code, of a number
    group = metadata.row_group(0)
    return text if group.total_byte_size < n_bytes * group.num_rows else []


def _columns_of(source: Source, file: Any) -> list[str]:
    return source.names([str(name).strip() for name in file.schema_arrow.names], None)


@contextmanager
def _refuse_broken(source: Source) -> Iterator[None]:
    try:
        yield
    except TimeError:
        raise
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
    if isinstance(value, bytes):  # text whose writer has not said so, or else an id
        text = value.decode(errors="replace")
        value = text if text.isprintable() and "\ufffd" not in text else value.hex()
    return str(value).strip()
