"""Parquet files, in and out.

The modules of this folder alone import pyarrow.
"""

try:
    import pyarrow  # noqa: F401  # first, for an error that says how to get it
except ModuleNotFoundError as error:  # pragma: no cover
    raise ModuleNotFoundError(
        "Parquet files need pyarrow: pip install 'pseudomallows[files]'", name=error.name
    ) from None

from .parquet import parquet_table, read_part, rows_as_text
from .parquet_rows import ParquetRows

__all__ = ["ParquetRows", "parquet_table", "read_part", "rows_as_text"]
