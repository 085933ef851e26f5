"""Parquet, and long tables of text at speed. This module alone imports pyarrow."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from .text import NO_NAME, Source

try:
    import pyarrow as pa
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq
except ModuleNotFoundError as error:  # pragma: no cover
    raise ModuleNotFoundError(
        "Parquet files need pyarrow: pip install 'pseudomallows[files]'", name=error.name
    ) from None

Encoded = tuple[NDArray[np.int32], list[str]]  # codes, -1 where missing, and names


def parquet_header(source: Source) -> tuple[list[str], int]:
    """Names of the columns of a Parquet file, and its number of rows."""
    with _refuse_broken(source):
        file = pq.ParquetFile(pa.BufferReader(source.content))
        return [str(name).strip() for name in file.schema_arrow.names], file.metadata.num_rows


def read_parquet_codes(source: Source, wanted: tuple[int, int]) -> tuple[Encoded, Encoded]:
    """Two columns of a Parquet file, by their places."""
    with _refuse_broken(source):
        stream = pa.BufferReader(source.content)
        names = [pq.ParquetFile(stream).schema_arrow.names[place] for place in wanted]
        # as text: faster than joining dictionaries
        many = len(source.content) > 2**20
        table = pq.read_table(stream, columns=names, use_threads=many, pre_buffer=many)
        return encode_column(table.column(names[0])), encode_column(table.column(names[1]))


def read_parquet_text(source: Source) -> list[list[str]]:
    """Every column of a Parquet file as text."""
    with _refuse_broken(source):
        stream = pa.BufferReader(source.content)
        table = pq.read_table(stream, use_threads=False, pre_buffer=False)
        return [[name_of(value) for value in column.to_pylist()] for column in table.columns]


@contextmanager
def _refuse_broken(source: Source) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError) as error:
        first = str(error).split("\n", 1)[0]
        raise source.error(None, f"this Parquet file cannot be read: {first}") from None


def read_codes(
    content: bytes, delimiter: str, n_columns: int, wanted: tuple[int, int]
) -> tuple[Encoded, Encoded] | None:
    """Two columns of a table of text with a header; None where the slow way knows better."""
    names = [f"c{place}" for place in range(n_columns)]
    chosen = [names[place] for place in wanted]
    kind = pa.dictionary(pa.int32(), pa.string())
    try:
        table = pa_csv.read_csv(
            pa.BufferReader(content),
            read_options=pa_csv.ReadOptions(column_names=names, skip_rows=1),
            parse_options=pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=pa_csv.ConvertOptions(
                include_columns=chosen,
                column_types=dict.fromkeys(chosen, kind),
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowException:
        return None
    if table.num_rows == 0:
        return None
    return encode_column(table.column(0)), encode_column(table.column(1))


def encode_column(column: Any) -> Encoded:
    """Codes of a column of names, and the names as stripped text."""
    if pa.types.is_dictionary(column.type):
        chunks = column.unify_dictionaries().chunks
    else:
        chunks = column.dictionary_encode().chunks  # the last dictionary holds all before it
    codes = np.concatenate([np.asarray(chunk.indices.fill_null(-1)) for chunk in chunks])
    values = chunks[-1].dictionary.to_pylist()
    is_text = bool(values) and isinstance(values[0], str)
    return merge_names(
        codes, [v.strip() for v in values] if is_text else list(map(name_of, values))
    )


def merge_names(codes: NDArray[np.int32], names: list[str]) -> Encoded:
    """The same with each name once; empty ones are missing."""
    if len(set(names)) == len(names) and not NO_NAME & set(names):
        return codes, names
    places: dict[str, int] = {}
    merged = [-1 if name in NO_NAME else places.setdefault(name, len(places)) for name in names]
    lookup = np.array([*merged, -1], dtype=np.int32)
    return lookup[codes], list(places)


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
    arrays = {}
    for name, values in columns.items():
        try:
            arrays[name] = pa.array(np.asarray(values).tolist())
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            arrays[name] = pa.array([str(value) for value in values])
    pq.write_table(pa.table(arrays), stream)
