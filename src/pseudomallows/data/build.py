"""From a table in a file, whatever the format, to data: which kind it is, and what it says."""

from collections.abc import Callable
from typing import Any

from .columns import (
    check_voters,
    find_column,
    find_impression_columns,
    find_pair_columns,
    is_impressions,
    is_long,
    is_long_clicks,
    is_pairs,
)
from .from_clicks import clicks_of_table
from .from_pairs import pairs_of_table
from .impressions import impressions_of_table, is_yes_and_no
from .source import Source
from .table import Table
from .text import Row, Rows, check_header
from .wide import grid_of, rankings_of_long_table, read_wide

LONG = ("pairs", "impressions", "clicks", "long-rankings")


def prefs_of_table(
    source: Source,
    header: Row,
    kind: str | None,
    table: Callable[[], Table],
    rows: Callable[[], Rows],
    has_header: bool = False,
) -> tuple[Any, str]:
    """The data of a table, and their kind: as `table` if it is long by its header, else as `rows`
    of text. Unless it `has_header` by its format, the header may be a row, too."""
    chosen = long_kind(source, kind, header[1])
    if chosen is None:
        return read_wide(grid_of(source, header, rows()), kind, has_header)
    check_columns(source, header, chosen)
    return read_long(source, table(), chosen, kind)


def long_kind(source: Source, kind: str | None, names: list[str]) -> str | None:
    """The kind of a long table: as said, or by its header; None for other tables.

    What is added to clicks is never taken for impressions.
    """
    if kind is not None:
        return kind if kind in LONG else None
    if is_pairs(names):
        return "pairs"
    if is_impressions(names) and not source.may_be_one_item:
        return "impressions"
    if not is_long(names):
        return None
    return "clicks" if is_long_clicks(names) else "long-rankings"


def check_columns(source: Source, header: Row, kind: str) -> None:
    """Refuse a header without the columns of a kind."""
    check_header(source, header)
    line, names = header
    try:
        if kind == "pairs":
            check_voters(names, find_pair_columns(names))
        elif kind == "impressions":
            find_impression_columns(names)
        elif kind == "long-rankings":
            for what in ("user", "item", "rank"):
                find_column(names, what)
        else:
            for what in ("user", "item"):
                find_column(names, what)
            source.layout.rating_column(names)
    except ValueError as error:
        raise source.error(line, str(error)) from None


def read_long(source: Source, table: Table, chosen: str, kind: str | None) -> tuple[Any, str]:
    """The data of a long table, and their kind, with the items of the source, if it has some.

    A table that looks like impressions, of which nothing was said, is one of clicks if its column
    is not of yes and no, or all yes.
    """
    items = None if source.items is None else [str(name) for name in source.items]
    data: Any
    try:
        if chosen == "impressions" and kind is None:
            clicked = table.coded(find_impression_columns(table.names)["clicked"])
            chosen = chosen if is_yes_and_no(clicked) else "clicks"
        if chosen == "long-rankings":
            return rankings_of_long_table(table), chosen
        if chosen == "clicks":
            least = 1 if source.may_be_one_item else 2
            is_said, layout = kind is not None, source.layout
            data = clicks_of_table(table, None, None, items, None, layout, is_said, least)
        else:
            build = pairs_of_table if chosen == "pairs" else impressions_of_table
            data = build(table, None, None, items)
    except (ValueError, TypeError) as error:
        if str(error).startswith(source.name):
            raise
        raise source.error(None, str(error)) from None
    return (data if source.items is None else data.rename(items=source.items)), chosen
