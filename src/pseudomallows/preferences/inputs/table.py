"""Any table that users hand in, as one: its columns, names as codes, and where a row is."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._warn import warn
from ..checks import check_known, check_names, is_missing, object_array
from ..preferences import DroppedRowsWarning

Column = Any  # a Series of polars, or a list of what polars has no type for


@dataclass(frozen=True)
class Coded:
    """A column: ``names[codes[row]]`` is its value, and a code of -1 that it is missing."""

    codes: NDArray[np.integer[Any]]
    names: list[Any]


@dataclass(frozen=True)
class Table:
    """A table: `title` names it in errors, ``at(row)`` a row, ``name_of(value)`` makes a name of a
    cell, None of one that says nothing."""

    title: str
    names: list[Hashable]  # of the columns
    columns: Callable[[int], Column]  # by place
    n_rows: int
    at: Callable[[int], str] = "row {}".format
    name_of: Callable[[Any], Any] = lambda value: plain_name(value)
    is_file: bool = False  # rows without a user or an item are left out; in memory, refused
    notes: list[str] = field(default_factory=list)  # what was done with the table, for people

    def error(self, problem: str, row: int | None = None, column: Hashable = None) -> ValueError:
        """An error that says where."""
        where = self.title if row is None else self.where(row)
        where += "" if column is None else f", column {str(column)!r}"
        return ValueError(f"{where}: {problem}")

    def where(self, row: int) -> str:
        """A row, and the table it is in."""
        place = self.at(row)
        return place if place.startswith(self.title) else f"{self.title}, {place}"

    def coded(self, place: int) -> Coded:
        """A column as codes of names."""
        codes, values = distinct(self.columns(place))
        known: dict[Any, int] = {None: -1}
        places = [known.setdefault(self.name_of(value), len(known) - 1) for value in values]
        return Coded(np.array([*places, -1], dtype=np.int32)[codes], list(known)[1:])

    def coded_table(self, places: Mapping[str, int]) -> CodedTable:
        """Some of the columns as codes, by what they are."""
        for place in places.values():
            if self.names.count(self.names[place]) > 1:
                raise self.error(f"there are two columns {self.names[place]!r}: keep one of them")
        columns = {what: self.coded(place) for what, place in places.items()}
        return CodedTable(self, columns, np.arange(self.n_rows))


@dataclass(frozen=True)
class CodedTable:
    """Columns of one length as codes, by what they are; ``rows`` are those of the table they come
    from."""

    table: Table
    columns: dict[str, Coded]
    rows: NDArray[np.int64]

    def take(self, is_kept: NDArray[np.bool_]) -> CodedTable:
        """Some of the rows."""
        if is_kept.all():
            return self
        columns = {what: Coded(c.codes[is_kept], c.names) for what, c in self.columns.items()}
        return CodedTable(self.table, columns, self.rows[is_kept])

    def has_all(self) -> NDArray[np.bool_]:
        """In which rows nothing is missing."""
        return np.all([column.codes >= 0 for column in self.columns.values()], axis=0)

    def whole_rows(self) -> CodedTable:
        """Without the rows in which something is missing, which a warning counts."""
        is_whole = self.has_all()
        if not is_whole.all():
            missing = [what for what, column in self.columns.items() if (column.codes < 0).any()]
            first = int(self.rows[is_whole.argmin()])
            warn(
                DroppedRowsWarning(
                    f"{self.table.title}: {int((~is_whole).sum())} of {len(is_whole)} rows have no "
                    f"{' or '.join(missing)} and are left out, the first at "
                    f"{self.table.at(first)}"
                )
            )
        if not is_whole.any():
            raise ValueError(
                f"{self.table.title} is empty: no row has all of {', '.join(self.columns)}"
            )
        return self.take(is_whole)

    def refuse(self, wrong: NDArray[np.bool_], problem: Callable[[int], str]) -> None:
        """Say what is wrong with the first row that is, if one is, and how many are."""
        if wrong.any():
            row = int(wrong.argmax())
            count = f"{int(wrong.sum())} of {len(wrong)} rows have this problem"
            raise self.table.error(f"{problem(row)}; {count}", int(self.rows[row]))

    def value(self, what: str, row: int) -> Any:
        """What a row has in a column."""
        column = self.columns[what]
        return column.names[column.codes[row]]


# Tables in memory


def is_frame(data: Any) -> bool:
    """Whether it is a data frame of any library, lazy or not."""
    marks, kind = ("columns", "column_names", "__arrow_c_stream__"), type(data)
    is_series = hasattr(kind, "to_frame")
    return (
        not isinstance(data, Mapping)
        and not is_series
        and any(hasattr(kind, mark) for mark in marks)
    )


def is_table(data: Any) -> bool:
    """Whether it is a data frame, or a dict."""
    return is_frame(data) or (isinstance(data, Mapping) and not hasattr(data, "tocsr"))


def table_of(title: str, data: Any) -> Table:
    """A data frame of any library, or a dict of columns."""
    if isinstance(data, Mapping):
        columns = [as_column(values, f"{title}[{name!r}]") for name, values in data.items()]
        return _table_of_columns(title, list(data), columns)
    import narwhals as nw
    import polars as pl

    names = list(getattr(data, "columns", ())) if hasattr(data, "iloc") else None
    if names and len(set(names)) < len(names):  # a name may be there twice if nobody asks for it
        data = data.loc[:, ~data.columns.duplicated()]
    frame: Any = nw.from_native(data, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect(backend="polars")
    elif not isinstance(frame, nw.DataFrame):  # by Arrow
        frame = data.to_polars() if hasattr(data, "to_polars") else pl.DataFrame(data)
        frame = nw.from_native(frame)
    names = names or list(frame.columns)
    return Table(title, names, lambda place: series_of(frame.get_column(names[place])), len(frame))


def table_of_rows(title: str, rows: Sequence[Any], names: Sequence[Hashable]) -> Table:
    """Rows, each with a value for every name."""
    columns = [[row[place] for row in rows] for place in range(len(names))]
    return _table_of_columns(title, list(names), columns)


def _table_of_columns(title: str, names: list[Hashable], columns: list[Column]) -> Table:
    lengths = {len(column) for column in columns}
    if len(lengths) > 1:
        raise ValueError(f"{title} must have columns of equal length, got {sorted(lengths)}")
    return Table(title, names, columns.__getitem__, max(lengths, default=0))


def as_column(values: Any, what: str) -> Column:
    """A list, an array, or a series of any library."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"{what} must be a column, got {values!r}")
    if isinstance(values, np.ndarray):
        return _column_of_array(values)
    if hasattr(values, "to_numpy"):  # a series; an index of pandas becomes one
        import narwhals as nw

        series = values.to_series() if hasattr(values, "to_series") else values
        return series_of(nw.from_native(series, series_only=True))
    return list(values)


def _column_of_array(values: NDArray[Any]) -> Column:
    if values.ndim != 1:
        raise ValueError(f"a column must have one axis, got {values.ndim}")
    if values.dtype.kind not in "biufM" or values.dtype.itemsize > 8:
        return values.tolist()
    import polars as pl

    if values.dtype.kind == "M" and values.dtype != "datetime64[D]":
        values = values.astype("datetime64[us]")
    return pl.Series(values.astype(np.float32) if values.dtype == np.float16 else values)


def series_of(series: Any) -> Column:
    """A series of narwhals as one of polars, or as a list if polars has no type for it."""
    if str(series.dtype) == "Object":
        return series.to_list()
    try:
        found = series.to_polars()
    except ImportError:  # text of pandas, which needs pyarrow on its way to polars
        return series.to_list()
    return found.to_list() if found.dtype.is_nested() else found


def distinct(column: Column) -> tuple[NDArray[np.int32], list[Any]]:
    """Codes of a column, -1 for a null, and its different values in the order they appear.

    >>> distinct(["tea", None, "ale", "tea"])
    (array([0, 1, 2, 0], dtype=int32), ['tea', None, 'ale'])
    """
    if isinstance(column, list):
        known: dict[Any, int] = {}
        try:
            codes = [known.setdefault(value, len(known)) for value in column]
        except TypeError:
            odd = next(value for value in column if isinstance(value, list | dict | set))
            raise TypeError(f"a name must be text or a number, got {odd!r}") from None
        return np.array(codes, dtype=np.int32), list(known)
    import polars as pl

    values = column.unique(maintain_order=True).drop_nulls()
    keys = column.to_physical()
    places = pl.Series(np.arange(len(values), dtype=np.int32))
    places = keys.replace_strict(values.to_physical(), places, default=-1, return_dtype=pl.Int32)
    is_text = values.dtype.is_temporal() or values.dtype in (pl.Categorical, pl.Enum)
    return places.to_numpy(), (values.cast(pl.String) if is_text else values).to_list()


def plain_name(value: Any) -> Any:
    """A name as plain Python, None if it is missing; a whole number has no point, as missing values
    make floats of all."""
    value = value.item() if isinstance(value, np.generic) else value
    if is_missing(value):
        return None
    return int(value) if isinstance(value, float) and value.is_integer() else value


def join_names(
    columns: Sequence[Coded], given: Sequence[Hashable] | None, what: str
) -> tuple[list[NDArray[np.int64]], NDArray[Any]]:
    """Codes of columns of one kind of names, none missing, and the names they stand for: those that
    are given, or all that appear, sorted where they can be."""
    appear = [np.flatnonzero(np.bincount(c.codes, minlength=len(c.names))) for c in columns]
    used = [[c.names[at] for at in mine] for c, mine in zip(columns, appear, strict=True)]
    if given is None:
        names = object_array(_sorted(dict.fromkeys(name for some in used for name in some)))
    else:
        names = check_names(given, None, what + "s")
    lookup = {name: code for code, name in enumerate(names.tolist())}
    joined = []
    for column, mine, some in zip(columns, appear, used, strict=True):
        places = np.zeros(len(column.names), dtype=np.int32)
        places[mine] = [lookup.get(name, -1) for name in some]
        check_known(places[mine], some, what)
        joined.append(places[column.codes])
    return joined, names


def _sorted(names: dict[Any, None]) -> list[Any]:
    try:
        return sorted(names)
    except TypeError:  # numbers and text together
        return list(names)
