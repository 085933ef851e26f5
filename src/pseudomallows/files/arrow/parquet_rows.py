"""Parquet files that are written block by block."""

import os
from contextlib import ExitStack
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..atomic import write_whole


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
            writer = pq.ParquetWriter(self._stream, table.schema, write_page_checksum=True)
            self._writer = self._stack.enter_context(writer)
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
