"""JSON lines: an object a line, whose keys name the columns."""

import io
import json
from collections.abc import Iterator
from typing import Any

from .checks import text_of
from .source import Source
from .text import Row


def json_rows(source: Source, text: str) -> tuple[Row, Iterator[Row]]:
    """The keys of all lines, in the order in which they appear, and a row of text for each line."""
    names: dict[str, int] = {}
    rows: list[Row] = []
    for number, line in enumerate(io.StringIO(text, newline=None), 1):
        if not line.strip():
            continue
        entry = _parsed(source, number, line)
        for name in entry:
            names.setdefault(name, len(names))
        cells = [""] * len(names)
        for name, value in entry.items():
            try:
                cells[names[name]] = text_of(value)
            except ValueError as error:
                raise source.error(number, str(error), name) from None
        rows.append((number, cells))
    if not names:
        raise source.error(None, "the file is empty")
    header = source.names([name.strip() for name in names], rows[0][0])
    missing = len(header)
    whole = ((number, cells + [""] * (missing - len(cells))) for number, cells in rows)
    return (rows[0][0], header), whole


def _parsed(source: Source, number: int, line: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise source.error(number, f"this is no JSON: {error}; is the line cut?") from None
    if not isinstance(entry, dict):
        raise source.error(
            number, f'wanted an object like {{"user": "ann", ...}}, got {line.strip()[:40]}'
        )
    return entry
