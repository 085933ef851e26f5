"""Parquet, and long tables of text at speed. This module alone imports pyarrow."""

import io
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from .text import Source

try:
    import pyarrow as pa
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq
except ModuleNotFoundError as error:  # pragma: no cover
    raise ModuleNotFoundError(
        "Parquet files need pyarrow: pip install 'pseudomallows[files]'", name=error.name
    ) from None

Encoded = tuple[NDArray[np.int64], list[str]]  # codes, -1 where missing, and names


def read_parquet(source: Source) -> Any:
    """A table of a Parquet file."""
    try:
        return pq.read_table(io.BytesIO(source.content))
    except (pa.ArrowException, OSError, ValueError) as error:
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
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    chunks = column.unify_dictionaries().chunks
    codes = np.concatenate([np.asarray(chunk.indices.fill_null(-1)) for chunk in chunks])
    names = [name_of(value) for value in chunks[0].dictionary.to_pylist()]
    return merge_names(codes, names)


def merge_names(codes: NDArray[np.int64], names: list[str]) -> Encoded:
    """The same with each name once; empty ones are missing."""
    places: dict[str, int] = {}
    merged = [places.setdefault(name, len(places)) if name else -1 for name in names]
    lookup = np.array([*merged, -1], dtype=np.int64)
    return lookup[codes], list(places)


def name_of(value: Any) -> str:
    """A name as text: whole numbers without a point, missing ones empty."""
    if value is None or value != value:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value).strip()


def text_columns(table: Any) -> dict[str, list[str]]:
    """Every column as text."""
    return {
        name: [name_of(value) for value in column.to_pylist()]
        for name, column in zip(table.column_names, table.columns, strict=True)
    }


def write_parquet(stream: IO[bytes], columns: dict[str, Any]) -> None:
    """Write columns as a Parquet file; names of several kinds become text."""
    arrays = {}
    for name, values in columns.items():
        try:
            arrays[name] = pa.array(np.asarray(values).tolist())
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            arrays[name] = pa.array([str(value) for value in values])
    pq.write_table(pa.table(arrays), stream)
