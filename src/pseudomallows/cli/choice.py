"""Files of items not to show, or to choose from: one item a line, or rows of user and item."""

import csv
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..files.later import name_like
from ..posteriors.personal import Fit

ITEM, USER_ITEM = "item", ["user", "item"]  # headers, which may be left out


def read_choice(path: str | None, posterior: Fit) -> list[Any] | dict[Any, list[Any]] | None:
    """The items of a file, or those of each user; None without a file.

    A line that is an item of the model is one, whatever commas it has; the first line decides.
    """
    if path is None:
        return None
    text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8-sig")
    lines = [line for line in text.splitlines() if line.strip()]
    item_of, user_of = name_like(posterior.items), name_like(posterior.users)
    items = set(posterior.items.tolist())
    if not lines or _is_item(lines[0], item_of, items) or len(_cells(lines[0])) == 1:
        has_header = bool(lines) and lines[0].strip() == ITEM and ITEM not in items
        return [_item(line, item_of, items) for line in lines[has_header:]]
    items_of: dict[Any, list[Any]] = {}
    for number, line in enumerate(lines, 1):
        cells = _cells(line)
        if number == 1 and [cell.lower() for cell in cells] == USER_ITEM:
            continue
        if len(cells) != 2:
            raise ValueError(
                f"{path}, line {number}: wanted one item a line, or user,item, got {line[:80]!r}"
            )
        items_of.setdefault(user_of(cells[0]), []).append(item_of(cells[1]))
    return items_of


def _cells(line: str) -> list[str]:
    """The cells of a line, separated by commas or tabs."""
    return [
        cell.strip() for cell in next(csv.reader([line], delimiter="\t" if "\t" in line else ","))
    ]


def _is_item(line: str, item_of: Callable[[str], Any], items: set[Any]) -> bool:
    return item_of(line) in items or item_of(line.strip()) in items


def _item(line: str, item_of: Callable[[str], Any], items: set[Any]) -> Any:
    """The item of a line: as it stands, without spaces around it, or without quotes."""
    for name in (line, line.strip()):
        if item_of(name) in items:
            return item_of(name)
    return item_of(",".join(_cells(line)))
