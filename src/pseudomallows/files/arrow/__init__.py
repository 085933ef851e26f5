"""Large files by pyarrow, block by block: Parquet in and out, and tables of clicks in text.

The modules of this folder alone import pyarrow.
"""

try:
    import pyarrow  # noqa: F401  # first, for an error that says how to get it
except ModuleNotFoundError as error:  # pragma: no cover
    raise ModuleNotFoundError(
        "Parquet files need pyarrow: pip install 'pseudomallows[files]'", name=error.name
    ) from None

from .parquet import (
    parquet_header,
    read_parquet_coded,
    read_parquet_pairs,
    read_parquet_text,
    read_part,
)
from .parquet_rows import ParquetRows
from .text import read_csv_pairs

__all__ = [
    "ParquetRows",
    "parquet_header",
    "read_csv_pairs",
    "read_parquet_coded",
    "read_parquet_pairs",
    "read_parquet_text",
    "read_part",
]
