"""Write tables of results: as text, JSON or Parquet, whole or not at all."""

import gzip
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from ..preferences.frames import rows_of
from .atomic import check_target, is_stream, write_whole
from .csv_files import write_rows
from .source import ending_of

Write = Callable[[dict[str, Any]], None]
ENDINGS = (".csv", ".tsv", ".json", ".parquet")
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how a spreadsheet's formula begins
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def write_table(
    columns: dict[str, Any],
    path: str | os.PathLike[str] = "-",
    *,
    as_json: bool = False,
    safe_csv: bool = False,
) -> None:
    """Write columns to a file, by its ending (.csv, .tsv, with .gz; .json, .parquet).

    "-" is standard output, as comma-separated values or, with `as_json`, as JSON. With `safe_csv`,
    separated values have no cell that a spreadsheet takes for a formula.

    >>> write_table({"item": ["tea", "mate"], "rank": [1, 2]}, "ranks.csv")  # doctest: +SKIP
    """
    with open_table(path, as_json, safe_csv) as write:
        write(columns)


@contextmanager
def open_table(
    path: str | os.PathLike[str], as_json: bool = False, safe_csv: bool = False
) -> Iterator[Write]:
    """A table that is written block by block, and appears once it is whole.

    JSON alone is kept until the end.
    """
    ending = check_table(path)
    if as_json and str(path) != "-" and ending != ".json":
        raise ValueError(f"--json writes JSON, and {path} is to be {ending[1:]}: give one of them")
    if ending == ".parquet":
        from .arrow import ParquetRows

        with ParquetRows(path) as table:
            yield table.write
    elif as_json or ending == ".json":
        rows: list[dict[str, Any]] = []
        yield lambda columns: rows.extend(rows_of(columns))
        with open_target(path) as stream:
            stream.write((as_text(rows) + "\n").encode())
    else:
        with open_target(path) as stream:
            yield text_writer(stream, "\t" if ending == ".tsv" else ",", safe_csv)


def text_writer(stream: Any, delimiter: str = ",", safe_csv: bool = False) -> Write:
    """Writes blocks of columns as separated values, with their names before the first."""
    is_new = True

    def write(columns: dict[str, Any]) -> None:
        nonlocal is_new
        if is_new:
            write_rows(stream, [list(columns)], delimiter)
        is_new = False
        cells = [_plain(column) for column in columns.values()]
        if safe_csv:
            cells = [[safe_cell(value) for value in column] for column in cells]
        write_rows(stream, zip(*cells, strict=True), delimiter)

    return write


@contextmanager
def open_target(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
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


def safe_cell(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula: text that begins like one gets an apostrophe.

    Numbers stay as they are, as text too.

    >>> [safe_cell(value) for value in ("tea", "=1+1", "@sum(a1)", "-tea", "-3.5", -3.5)]
    ['tea', "'=1+1", "'@sum(a1)", "'-tea", '-3.5', -3.5]
    """
    if not isinstance(value, str) or not value.startswith(FORMULA) or NUMBER.fullmatch(value):
        return value
    return f"'{value}"


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
    return json.dumps(_finite(value), ensure_ascii=False, indent=1, default=str)


def _plain(column: Any) -> list[Any]:
    return column.tolist() if hasattr(column, "tolist") else list(column)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(key): _finite(entry) for key, entry in value.items()}
    return [_finite(entry) for entry in value] if isinstance(value, list | tuple) else value
