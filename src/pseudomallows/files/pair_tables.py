"""Long tables of comparisons and of impressions, as codes that come in blocks."""

import itertools
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from ..preferences import Pairs
from ..preferences.inputs.from_pairs import pairs_of_table
from ..preferences.inputs.impressions import impressions_of_table, is_yes_and_no
from ..preferences.inputs.pair_headers import (
    check_voters,
    find_impression_columns,
    find_pair_columns,
    is_impressions,
    is_pairs,
)
from ..preferences.inputs.table import Table
from .csv_files import Row, check_header, full_rows
from .long_tables import BLOCK, NO_NAME
from .source import Source

FINDERS = {"pairs": find_pair_columns, "impressions": find_impression_columns}


def pair_kind(source: Source, kind: str | None, names: list[str]) -> str | None:
    """The kind if it is "pairs" or "impressions", or if nothing is said and the header says so.

    What is added to clicks is never taken for impressions.
    """
    if kind is None:
        may_be_shown = is_impressions(names) and not source.may_be_one_item
        return "pairs" if is_pairs(names) else "impressions" if may_be_shown else None
    return kind if kind in FINDERS else None


def find_places(source: Source, header: Row, kind: str) -> dict[str, int]:
    """The columns of such a table, by what they are."""
    check_header(source, header)
    try:
        columns = FINDERS[kind](header[1])
        if kind == "pairs":
            check_voters(header[1], columns)
        return columns
    except ValueError as error:
        raise source.error(header[0], str(error)) from None


class CodedBlocks:
    """Columns of names that come in blocks: codes, and each name once."""

    def __init__(self, source: Source, places: dict[str, int]) -> None:
        self.source, self.places = source, places
        self._known: dict[str, dict[str, int]] = {
            what: dict.fromkeys(NO_NAME, -1) for what in places
        }
        self._codes: dict[str, list[Any]] = {what: [] for what in places}
        self._lines: list[Any] = []

    def add(self, what: str, names: Iterable[str]) -> None:
        """Add a block of names to a column."""
        self._codes[what].append(np.array(self._codes_of(what, names), dtype=np.int64))

    def add_coded(self, what: str, codes: Any, names: Iterable[str]) -> None:
        """The same, of which each name is given once."""
        self._codes[what].append(np.array(self._codes_of(what, names), dtype=np.int64)[codes])

    def _codes_of(self, what: str, names: Iterable[str]) -> list[int]:
        known, n_others = self._known[what], len(NO_NAME)
        return [known.setdefault(name, len(known) - n_others) for name in names]

    def add_lines(self, lines: list[int]) -> None:
        """Add the line numbers of a block; without any, rows are counted from 1."""
        self._lines.append(np.array(lines, dtype=np.int64))

    def table(self) -> Table:
        """All blocks together; the columns have no names."""
        import polars as pl

        columns = {}
        for what, blocks in self._codes.items():
            if not blocks:
                raise self.source.error(None, "there is a header, but no line after it")
            codes = pl.Series(np.concatenate(blocks))
            names = pl.Series(list(self._known[what])[len(NO_NAME) :], dtype=pl.String)
            columns[self.places[what]] = names.gather(codes.replace(-1, None))
        lines = np.concatenate(self._lines) if self._lines else None
        name = self.source.name

        def where(row: int) -> str:
            return f"{name}, row {row + 1}" if lines is None else f"{name}, line {lines[row]}"

        n_rows = len(next(iter(columns.values())))
        return Table(name, [], columns.__getitem__, n_rows, where)


def read_coded(source: Source, header: Row, rows: Iterable[Row], places: dict[str, int]) -> Table:
    """Some columns of rows of text, a block at a time."""
    blocks = CodedBlocks(source, places)
    whole = full_rows(source, header, rows)
    while block := list(itertools.islice(whole, BLOCK)):
        for what, place in places.items():
            blocks.add(what, (cells[place] for _, cells in block))
        blocks.add_lines([line for line, _ in block])
    return blocks.table()


def pairs_of(source: Source, table: Table, kind: str, names: list[str]) -> Pairs:
    """The comparisons of a table, with the items of the source, if it has some."""
    items = None if source.items is None else [str(name) for name in source.items]
    build = impressions_of_table if kind == "impressions" else pairs_of_table
    try:
        pairs = build(replace(table, names=list(names)), None, None, items)
    except ValueError as error:
        if str(error).startswith(source.name):
            raise
        raise source.error(None, str(error)) from None
    return pairs if source.items is None else pairs.rename(items=source.items)


def are_clicks(kind: str | None, chosen: str, table: Table, places: dict[str, int]) -> bool:
    """Whether a table that looks like impressions is one of clicks after all: nothing was said of
    it, and its column is not of yes and no, or all yes."""
    may_be_shown = kind is None and chosen == "impressions"
    return may_be_shown and not is_yes_and_no(table.coded(places["clicked"]))
