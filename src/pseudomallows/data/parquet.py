"""Parquet files, and folders of them, as tables. This module alone reads with pyarrow."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from .blocks import Clicks
from .checks import text_of
from .columns import find_columns, is_long
from .from_clicks import rows_of_pairs
from .source import Source, open_source, parts_of
from .table import Table, join_names
from .text import Row, file_table

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ModuleNotFoundError as error:  # pragma: no cover
    raise ModuleNotFoundError(
        "Parquet files need pyarrow: pip install 'pseudomallows[files]'", name=error.name
    ) from None

BROKEN = ("Parquet file", pa.ArrowException, OSError, ValueError, KeyError, OverflowError)
BATCH = 1 << 17  # rows that are read at a time: a quarter took a third longer, eight times too


def parquet_table(source: Source, may_be_empty: bool = False) -> Table:
    """A Parquet file, or a folder of them as one table; only columns that are asked for are read.

    The columns are those of the first file. Another may call those of users and items otherwise,
    and of a table of clicks may lack others.
    """
    parts = _parts(source)
    headers: list[list[str]] = []
    sizes: list[int] = []
    for part in parts:
        with _open(part) as file:
            names = [str(name).strip() for name in file.schema_arrow.names]
            headers.append(part.names(names, None))
            sizes.append(file.metadata.num_rows)
    names = headers[0]
    places_of = [_places(part, names, mine) for part, mine in zip(parts, headers, strict=True)]
    ends = np.cumsum(sizes)
    if not names or not (ends[-1] or may_be_empty):
        raise source.error(None, "the file has no rows or no columns")

    def blocks(places: list[int]) -> Iterator[list[Any]]:
        for part, mine in zip(parts, places_of, strict=True):
            yield from _read(part, [mine[place] for place in places])

    def at(row: int) -> str:
        part = int(np.searchsorted(ends, row, side="right"))
        number = f"row {row - (ends[part] - sizes[part]) + 1}"
        return number if len(parts) == 1 else f"{parts[part].name}, {number}"

    return file_table(source, (1, names), blocks, at)


def _places(part: Source, names: list[str], mine: list[str]) -> list[int]:
    """The column of a part for each of the first one, -1 for none."""
    known = {name: place for place, name in reversed(list(enumerate(mine)))}
    places = [known.get(name, -1) for name in names]
    if not is_long(names):
        if set(mine) != set(names):
            shown = ", ".join(names[:8])
            raise part.error(None, f"wanted the columns {shown}, as in the first file")
        return places
    try:
        for what, place in find_columns(mine, "clicks").items():
            places[find_columns(names, "clicks")[what]] = place
    except ValueError as error:
        raise part.error(1, str(error)) from None
    return places


def _read(part: Source, places: list[int]) -> Iterator[list[Any]]:
    """Columns of a file, as series of polars, block by block; nulls for a place of -1."""
    with _open(part) as file, part.refuse_broken(*BROKEN):
        here, n_rows = sorted({place for place in places if place >= 0}), 0
        for group in range(file.num_row_groups):  # or the reader keeps what it has read
            for batch in file.iter_batches(
                BATCH,
                [group],
                [file.schema_arrow.names[place] for place in here],
                use_threads=False,
            ):
                found = {at: pl.Series(column) for at, column in zip(here, batch, strict=True)}
                found[-1] = pl.repeat(None, batch.num_rows, dtype=pl.Null, eager=True)
                yield [found[place] for place in places]
                n_rows += batch.num_rows
        if n_rows != file.metadata.num_rows:  # pages of no known kind are passed over
            raise part.error(
                None,
                f"this Parquet file is damaged: it announces {file.metadata.num_rows} rows, and "
                f"{n_rows} can be read",
            )


def rows_as_text(table: Table) -> list[Row]:
    """Every row as text."""
    packs = dict.fromkeys(range(len(table.names)), lambda column: list(map(text_of, column)))
    columns, _ = table.read(packs)
    return [(line, list(row)) for line, row in enumerate(zip(*columns.values(), strict=True), 2)]


def read_part(path: str | os.PathLike[str]) -> Clicks:
    """Read one Parquet file of long clicks, or a folder of them, without their times.

    Unlike :func:`pseudomallows.read`, it takes a file with one item, or with no rows.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from pseudomallows.data.write import write_table
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "part-0.parquet"
    >>> write_table({"user": ["bob", "ann", "bob"], "item": ["tea", "tea", "mate"]}, file)
    >>> read_part(file)
    Clicks(2 users, 2 items; 3 clicks)
    """
    source = open_source(path)
    table = parquet_table(source, may_be_empty=True)
    coded = table.coded_table(table.find("clicks"))
    coded = coded.whole_rows() if len(coded.rows) else coded
    (rows,), users = join_names([coded.columns["user"]], None, "user")
    (codes,), items = join_names([coded.columns["item"]], None, "item")
    ones = np.ones(len(users), dtype=np.int64)
    return Clicks(ones, users, items, *rows_of_pairs(rows, codes, len(users), len(items)))


def _parts(source: Source) -> list[Source]:
    """The file itself, or those of a folder, by name."""
    if source.path is None or not source.path.is_dir():
        return [source]
    paths = parts_of(source.path)
    if not paths:
        raise source.error(None, "wanted Parquet files in this folder, there is no *.parquet")
    return [replace(source, name=str(path), path=path) for path in paths]


@contextmanager
def _open(source: Source) -> Iterator[Any]:
    with source.refuse_broken(*BROKEN):
        place: Any = source.path
        if source.path is None or source.is_packed:
            place = pa.BufferReader(source.content)
        metadata = pq.ParquetFile(place).metadata
        file = pq.ParquetFile(
            place,
            metadata=metadata,
            page_checksum_verification=True,  # of pages that have one
        )
    with file:
        yield file
