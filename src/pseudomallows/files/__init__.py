"""Files: read, and written whole or not at all."""

from .parquet_parts import Parts, split
from .read import read

__all__ = ["Parts", "read", "split"]
