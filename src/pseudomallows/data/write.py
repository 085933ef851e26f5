"""Write tables of results: as text, JSON, Parquet or Excel, whole or not at all."""

import gzip
import io
import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import IO, TYPE_CHECKING, Any

from .atomic import check_target, is_stream, write_whole
from .frames import rows_of, typed_column
from .source import ending_of

if TYPE_CHECKING:
    import polars as pl

Write = Callable[[dict[str, Any]], None]
ENDINGS = (".csv", ".tsv", ".json", ".parquet", ".xlsx")
FORMULA = r"^[=+\-@\t\r]"  # how a spreadsheet's formula begins
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def write_table(
    columns: dict[str, Any],
    path: str | os.PathLike[str] = "-",
    *,
    as_json: bool = False,
    safe_csv: bool = False,
) -> None:
    """Write columns to a file, by its ending (.csv, .tsv, with .gz; .json, .parquet, .xlsx).

    "-" is standard output, as comma-separated values or, with `as_json`, as JSON. With `safe_csv`,
    separated values have no cell that a spreadsheet takes for a formula; Excel files never have.

    >>> write_table({"item": ["tea", "mate"], "rank": [1, 2]}, "ranks.csv")  # doctest: +SKIP
    """
    with open_table(path, as_json, safe_csv) as write:
        write(columns)


@contextmanager
def open_table(
    path: str | os.PathLike[str], as_json: bool = False, safe_csv: bool = False
) -> Iterator[Write]:
    """A table that is written block by block, and appears once it is whole.

    The first block fixes names and types of the columns. JSON and Excel alone are kept until the
    end.
    """
    ending = check_table(path)
    if as_json and str(path) != "-" and ending != ".json":
        raise ValueError(f"--json writes JSON, and {path} is to be {ending[1:]}: give one of them")
    with _open_target(path) as stream:
        if as_json or ending == ".json":
            rows: list[dict[str, Any]] = []
            yield lambda columns: rows.extend(rows_of(columns))
            stream.write((as_text(rows) + "\n").encode())
        elif ending == ".xlsx":
            blocks: list[pl.DataFrame] = []
            yield _typed_blocks(path, blocks.append)
            _write_excel(path, blocks, stream)
        elif ending == ".parquet":
            with _parquet_blocks(stream) as write_block:
                yield _typed_blocks(path, write_block)
        else:
            yield text_writer(stream, "\t" if ending == ".tsv" else ",", safe_csv)


def text_writer(stream: Any, delimiter: str = ",", safe_csv: bool = False) -> Write:
    """Writes blocks of columns as separated values, with their names before the first."""
    import polars as pl

    is_new, text = True, pl.col(pl.String)
    is_formula = text.str.contains(FORMULA) & ~text.str.contains(NUMBER)

    def write(columns: dict[str, Any]) -> None:
        nonlocal is_new
        frame = _frame_of(columns)
        if safe_csv:  # an apostrophe makes text of a formula
            frame = frame.with_columns(
                pl.when(is_formula).then(text.str.replace("^", "'")).otherwise(text)
            )
        block = io.BytesIO()  # polars would write past the buffer of the stream
        frame.write_csv(block, separator=delimiter, include_header=is_new)
        stream.write(block.getbuffer())
        is_new = False

    return write


def _frame_of(columns: dict[str, Any]) -> "pl.DataFrame":
    """Columns as a frame; names are text, as a name in a later block may be no number."""
    import polars as pl

    names = [
        name for name, values in columns.items() if str(getattr(values, "dtype", "")) == "object"
    ]
    frame = pl.DataFrame({name: typed_column(values) for name, values in columns.items()})
    return frame.with_columns(pl.col(names).cast(pl.String))


def _typed_blocks(path: Any, write: Callable[["pl.DataFrame"], None]) -> Write:
    """Writes blocks of columns as frames that all have the names and types of the first."""
    first: pl.DataFrame | None = None

    def write_columns(columns: dict[str, Any]) -> None:
        nonlocal first
        frame = _frame_of(columns)
        first = frame.clear() if first is None else first
        if frame.columns != first.columns:
            raise ValueError(f"{path}: wanted columns {first.columns}, got {frame.columns}")
        for name, kind in first.schema.items():
            own = frame.schema[name]
            fits = str(kind) == "String" or (kind.is_float() and own.is_numeric())
            if own != kind and not fits:
                raise ValueError(f"{path}: column {name!r} is {kind}, and then {own}")
        write(frame.cast(first.schema))

    return write_columns


@contextmanager
def _parquet_blocks(stream: IO[bytes]) -> Iterator[Callable[["pl.DataFrame"], None]]:
    """Writes frames to a Parquet file with a checksum for each page, which polars cannot write."""
    try:
        from pyarrow.parquet import ParquetWriter
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"Parquet files need {error.name}: pip install 'pseudomallows[files]'", name=error.name
        ) from None
    import polars as pl

    writer: Any = None

    def write(frame: "pl.DataFrame") -> None:
        nonlocal writer
        table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())  # for readers of any age
        if writer is None:
            writer = ParquetWriter(stream, table.schema, write_page_checksum=True)
        writer.write_table(table)

    try:
        yield write
        if writer is None:
            raise ValueError("no block was written")
    finally:
        if writer is not None:
            writer.close()


def _write_excel(path: Any, blocks: list["pl.DataFrame"], stream: IO[bytes]) -> None:
    """One sheet, in which nothing is a formula or a link; what is not a number is empty."""
    try:
        from xlsxwriter import Workbook
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"Excel files need {error.name}: pip install 'pseudomallows[excel]'", name=error.name
        ) from None
    import polars as pl
    from polars.exceptions import InvalidOperationError

    frame = pl.concat(blocks)
    floats = pl.col(pl.Float32, pl.Float64)
    frame = frame.with_columns(pl.when(floats.is_finite()).then(floats))
    plain = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
    try:
        with Workbook(stream, plain) as book:
            book.set_properties({"created": datetime(1980, 1, 1)})  # the same table, the same bytes
            frame.write_excel(book, float_precision=6)
    except InvalidOperationError as error:  # more rows or columns than Excel has
        raise ValueError(f"{path}: {error}; write .csv or .parquet") from None


@contextmanager
def _open_target(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file that appears once it is whole, gzip by its ending; standard output for "-"."""
    if str(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with write_whole(path) as stream:
        if ending_of(path, unpacked=False) != ".gz":
            yield stream
            return
        with gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as packed:
            yield packed  # type: ignore[misc]


def check_table(path: str | os.PathLike[str]) -> str:
    """The ending of a file that a table can be written to."""
    if str(path) == "-":
        return ".csv"
    ending = ending_of(check_target(path))
    if ending not in ENDINGS and is_stream(path):
        return ".csv"
    if ending not in ENDINGS:
        raise ValueError(f"cannot write {path}: its name must end in one of {', '.join(ENDINGS)}")
    return ending


def as_text(value: Any) -> str:
    """JSON that every reader takes: what is not a finite number is null."""
    return json.dumps(finite(value), ensure_ascii=False, indent=1, default=str)


def finite(value: Any) -> Any:
    """The same with None for what is not a finite number."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(key): finite(entry) for key, entry in value.items()}
    return [finite(entry) for entry in value] if isinstance(value, list | tuple) else value
