"""Parquet files, and folders of them, as tables."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ...preferences.inputs.from_clicks import rows_of_pairs
from ...preferences.inputs.headers import find_column, is_long
from ...preferences.inputs.table import Table, join_names
from ..csv_files import Row
from ..source import Source, open_source
from ..tables import check_columns, file_table, text_of

BATCH = 1 << 15  # rows that are read at a time: from a quarter to four times took the same time


class Part(NamedTuple):
    """Clicks by codes: those of ``users[row]`` are ``items[codes[starts[row]:starts[row + 1]]]``.

    Users and items are sorted, and so are the codes of a user, each there once.
    """

    users: NDArray[Any]
    items: NDArray[Any]
    starts: NDArray[np.int64]
    codes: NDArray[np.int32]


def parquet_table(source: Source) -> Table:
    """A Parquet file, or a folder of them as one table; a column is read when it is asked for.

    The columns are those of the first file. Another may call those of users and items otherwise,
    and of a table of clicks may lack others.
    """
    parts = _parts(source)
    headers: list[list[str]] = []
    sizes: list[int] = []
    for part in parts:
        with _open(part) as file:
            headers.append(_columns_of(part, file))
            sizes.append(file.metadata.num_rows)
    names = headers[0]
    places = [_places(part, names, mine) for part, mine in zip(parts, headers, strict=True)]
    ends = np.cumsum(sizes)

    def column(place: int) -> Any:
        pieces = []
        for part, mine, n_rows in zip(parts, places, sizes, strict=True):
            absent = pl.Series([None], dtype=pl.Null).extend_constant(None, max(n_rows - 1, 0))
            pieces.append(_read(part, mine[place]) if mine[place] >= 0 else absent[:n_rows])
        kinds = {piece.dtype for piece in pieces} - {pl.Null}
        if len(kinds) > 1:
            return [value for piece in pieces for value in piece.to_list()]
        kind = kinds.pop() if kinds else pl.Null
        joined = pl.concat([piece.cast(kind) for piece in pieces])
        return joined.to_list() if kind.is_nested() else joined

    def at(row: int) -> str:
        part = int(np.searchsorted(ends, row, side="right"))
        number = f"row {row - (ends[part] - sizes[part]) + 1}"
        return number if len(parts) == 1 else f"{parts[part].name}, {number}"

    return file_table(source, names, column, int(ends[-1]), at)


def _places(part: Source, names: list[str], mine: list[str]) -> list[int]:
    """The column of a part for each of the first one, -1 for none."""
    known = {name: place for place, name in reversed(list(enumerate(mine)))}
    places = [known.get(name, -1) for name in names]
    if not is_long(names):
        if set(mine) != set(names):
            shown = ", ".join(names[:8])
            raise part.error(None, f"wanted the columns {shown}, as in the first file")
        return places
    for what in ("user", "item"):
        try:
            places[find_column(names, what)] = find_column(mine, what)
        except ValueError as error:
            raise part.error(1, str(error)) from None
    return places


def _read(part: Source, place: int) -> Any:
    """A column of a file, as a series of polars."""
    with _open(part) as file, _refuse_broken(part):
        name, pieces, n_rows = file.schema_arrow.names[place], [], 0
        for group in range(file.num_row_groups):  # or the reader keeps what it has read
            for batch in file.iter_batches(BATCH, [group], [name], use_threads=False):
                pieces.append(pl.Series(batch.column(0)))
                n_rows += batch.num_rows
        _check_rows(part, file, n_rows)
        return pl.concat(pieces) if pieces else pl.Series([], dtype=pl.Null)


def rows_as_text(table: Table) -> list[Row]:
    """Every row as text."""
    columns = [table.columns(place) for place in range(len(table.names))]
    cells = [[text_of(value) for value in list(column)] for column in columns]
    return [(line, list(row)) for line, row in enumerate(zip(*cells, strict=True), 2)]


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
    source = open_source(path)
    table = parquet_table(source)
    check_columns(source, (1, [str(name) for name in table.names]), "clicks")
    coded = table.coded_table({what: find_column(table.names, what) for what in ("user", "item")})
    coded = coded.whole_rows() if table.n_rows else coded
    (rows,), users = join_names([coded.columns["user"]], None, "user")
    (codes,), items = join_names([coded.columns["item"]], None, "item")
    return Part(users, items, *rows_of_pairs(rows, codes, len(users), len(items)))


def _check_rows(source: Source, file: Any, n_rows: int) -> None:
    """Refuse a file in which pages are passed over, as those of no known kind are."""
    if n_rows != file.metadata.num_rows:
        raise source.error(
            None,
            f"this Parquet file is damaged: it announces {file.metadata.num_rows} rows, and "
            f"{n_rows} can be read",
        )


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
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError) as error:
        first = str(error).split("\n", 1)[0]
        raise source.error(None, f"this Parquet file cannot be read: {first}") from None
