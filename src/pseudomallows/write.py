"""Write tables of results: as text, JSON or Parquet, whole or not at all."""

import json
import math
import os
from typing import Any

from .files import check_target
from .text import ending_of, open_target, write_rows

ENDINGS = (".csv", ".tsv", ".json", ".parquet")


def write_table(
    columns: dict[str, Any], path: str | os.PathLike[str] = "-", *, as_json: bool = False
) -> None:
    """Write columns to a file, by its ending (.csv, .tsv, with .gz; .json, .parquet).

    "-" is standard output, as comma-separated values or, with `as_json`, as JSON.

    >>> write_table({"item": ["tea", "mate"], "rank": [1, 2]}, "ranks.csv")  # doctest: +SKIP
    """
    ending = check_table(path)
    if as_json and str(path) != "-" and ending != ".json":
        raise ValueError(f"--json writes JSON, and {path} is to be {ending[1:]}: give one of them")
    ending = ".json" if as_json else ending
    values = {name: _plain(column) for name, column in columns.items()}
    if ending == ".parquet":
        from .arrow import write_parquet

        with open_target(path) as stream:
            write_parquet(stream, values)
    elif ending == ".json":
        rows = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
        with open_target(path) as stream:
            stream.write((as_text(rows) + "\n").encode())
    else:
        with open_target(path) as stream:
            write_rows(stream, [list(values)], delimiter="\t" if ending == ".tsv" else ",")
            rows_of_cells = zip(*values.values(), strict=True)
            write_rows(stream, rows_of_cells, delimiter="\t" if ending == ".tsv" else ",")


def check_table(path: str | os.PathLike[str]) -> str:
    """The ending of a file that a table can be written to."""
    if str(path) == "-":
        return ".csv"
    ending = ending_of(check_target(path))
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
