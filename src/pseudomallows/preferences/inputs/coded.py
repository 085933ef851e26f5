"""Columns of names as codes, each name once: what long tables in memory and in files become."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._warn import warn
from ..checks import check_known, check_names, is_missing, object_array
from ..preferences import DroppedRowsWarning


@dataclass(frozen=True)
class Coded:
    """A column: ``names[codes[row]]`` is its value, and a code of -1 that it is missing."""

    codes: NDArray[np.int64]
    names: list[Any]

    def take(self, rows: NDArray[Any]) -> "Coded":
        """Some of the rows."""
        return Coded(self.codes[rows], self.names)


@dataclass(frozen=True)
class CodedTable:
    """Columns of one length, by what they are. Its `name`, and ``where(row)``, are for errors."""

    name: str
    where: Callable[[int], str]
    columns: dict[str, Coded]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values())).codes)

    def whole_rows(self) -> tuple["CodedTable", NDArray[np.int64]]:
        """The table without the rows in which something is missing, which a warning counts, and
        the numbers of its rows here."""
        missing = {what: column.codes < 0 for what, column in self.columns.items()}
        is_whole = ~np.any(list(missing.values()), axis=0)
        rows = np.flatnonzero(is_whole)
        if len(rows) < len(is_whole):
            what = " or ".join(what for what, is_missing in missing.items() if is_missing.any())
            warn(
                DroppedRowsWarning(
                    f"{self.name}: {len(is_whole) - len(rows)} of {len(is_whole)} rows have no "
                    f"{what} and are left out, the first at {self.where(int(is_whole.argmin()))}"
                )
            )
        if not len(rows):
            raise ValueError(f"{self.name} is empty: no row has all of {', '.join(self.columns)}")
        whole = {what: column.take(rows) for what, column in self.columns.items()}
        return CodedTable(self.name, lambda row: self.where(int(rows[row])), whole), rows

    def refuse(self, wrong: NDArray[np.bool_], problem: Callable[[int], str]) -> None:
        """Say what is wrong with the first row that is, if one is, and how many are."""
        if wrong.any():
            row = int(wrong.argmax())
            raise ValueError(
                f"{self.where(row)}: {problem(row)}; {int(wrong.sum())} of {len(wrong)} rows have "
                "this problem"
            )

    def value(self, what: str, row: int) -> Any:
        """What a row has in a column."""
        column = self.columns[what]
        return column.names[column.codes[row]]


def is_table(table: Any, name: str) -> bool:
    """Whether it is a data frame or a dict; a lazy frame, whose columns must not be asked for, is
    refused."""
    if hasattr(table, "collect"):
        raise TypeError(f"{name} is a lazy frame: call .collect() first")
    return isinstance(table, Mapping) or hasattr(table, "columns")


def coded_table(
    name: str, table: Any, find_columns: Callable[[list[Hashable]], dict[str, int]]
) -> CodedTable:
    """Columns of a data frame or of a dict, those that ``find_columns(names)`` finds."""
    names = list(table) if isinstance(table, Mapping) else list(table.columns)
    for column in names if isinstance(table, Mapping) else ():
        if isinstance(table[column], str) or not isinstance(table[column], Iterable):
            raise TypeError(f"{name}[{column!r}] must be a column, got {table[column]!r}")
    column_of = {what: names[place] for what, place in find_columns(names).items()}
    twice = [column for column in column_of.values() if names.count(column) > 1]
    if twice:
        raise ValueError(f"{name} has two columns {twice[0]!r}: keep one of them")
    columns = {what: coded(table[column]) for what, column in column_of.items()}
    lengths = {len(column.codes) for column in columns.values()}
    if len(lengths) > 1:
        raise ValueError(f"{name} must have columns of equal length, got {sorted(lengths)}")
    return CodedTable(name, lambda row: f"row {row}", columns)


def coded(column: Any) -> Coded:
    """A column of a frame, a list or an array.

    >>> coded(["tea", None, "ale", "tea"])
    Coded(codes=array([ 0, -1,  2,  0]), names=['tea', None, 'ale'])
    """
    values = column.to_numpy() if hasattr(column, "to_numpy") else column
    if not isinstance(values, np.ndarray):
        values = object_array(list(values))
    if values.ndim != 1:
        raise ValueError(f"a column must have one axis, got {values.ndim}")
    if values.dtype.kind in "mM":
        values = values.astype(str)
    if values.dtype.kind in "biufUS":
        distinct, codes = np.unique(values, return_inverse=True)
        names = distinct.tolist()
    else:
        known: dict[Any, int] = {}
        try:
            listed = [known.setdefault(name, len(known)) for name in values.tolist()]
        except TypeError:
            odd = next(name for name in values.tolist() if isinstance(name, list | dict | set))
            raise TypeError(f"a name must be text or a number, got {odd!r}") from None
        codes, names = np.array(listed, dtype=np.int64), list(known)
    is_absent = np.array([is_missing(name) for name in names], dtype=bool)
    places = np.where(is_absent, -1, np.arange(len(names)))
    return Coded(places[codes].astype(np.int64), [plain_name(name) for name in names])


def plain_name(name: Any) -> Any:
    """A name as plain Python; a whole number has no point, as missing values make floats of all."""
    name = name.item() if isinstance(name, np.generic) else name
    return int(name) if isinstance(name, float) and name.is_integer() else name


def join_names(
    columns: Sequence[Coded], given: Sequence[Hashable] | None, what: str
) -> tuple[list[NDArray[np.int64]], NDArray[Any]]:
    """Codes of columns of one kind of names, none missing, and the names they stand for: those that
    are given, or all that appear, sorted where they can be."""
    appear = [np.unique(column.codes) for column in columns]
    used = [
        column.names[code] for column, mine in zip(columns, appear, strict=True) for code in mine
    ]
    if given is None:
        names = object_array(_sorted(dict.fromkeys(used)))
    else:
        names = check_names(given, None, what + "s")
    lookup = {name: code for code, name in enumerate(names.tolist())}
    check_known(np.array([lookup.get(name, -1) for name in used], dtype=np.int64), used, what)
    joined = []
    for column, mine in zip(columns, appear, strict=True):
        places = np.zeros(len(column.names), dtype=np.int64)
        places[mine] = [lookup[column.names[code]] for code in mine]
        joined.append(places[column.codes])
    return joined, names


def _sorted(names: dict[Any, None]) -> list[Any]:
    try:
        return sorted(names)
    except TypeError:  # numbers and text together
        return list(names)
