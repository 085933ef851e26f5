"""Any table that users hand in, as one: its columns, names as codes, and where a row is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._warn import warn
from .checks import (
    NO_NAME,
    check_known,
    check_memory,
    check_names,
    codes_of,
    is_missing,
    object_array,
    text_of,
)
from .columns import find_columns
from .preferences import DroppedRowsWarning

if TYPE_CHECKING:
    import polars as pl

Column = Any  # a Series of polars, or a list of what polars has no type for
Pack = Callable[[Column], Any]  # what is kept of a block of a column
STEP = 1 << 20  # rows at a time: what they take meanwhile, 8 MB, is little
HEADER = -1  # in place of a row: the names of the columns
NO_LINE = "there is a header, but no line after it"


@dataclass(frozen=True)
class Coded:
    """A column: ``names[codes[row]]`` is its value, and a code of -1 that it is missing."""

    codes: NDArray[np.integer[Any]]
    names: list[Any]


@dataclass(frozen=True)
class Table:
    """A table, block by block: ``blocks(places)`` are columns of so many rows each, by place.

    `title` names it in errors, ``at(row)`` a row, ``name_of(value)`` makes a name of a cell, None
    of one that is missing.
    """

    title: str
    names: list[Hashable]  # of the columns
    blocks: Callable[[list[int]], Iterable[Sequence[Column]]]
    at: Callable[[int], str] = "row {}".format
    name_of: Callable[[Any], Any] = lambda value: plain_name(value)
    header: str = ""  # where the names are, in a file
    is_file: bool = False  # rows without a user or an item are left out; in memory, refused
    has_header: bool = False  # by its format; or else the names may be a row, too
    may_be_empty: bool = False
    notes: list[str] = field(default_factory=list)  # what was done with the table, for people
    width: int = 0  # columns, where rows may be longer than the header

    def error(self, problem: str, row: int | None = None, column: Hashable = None) -> ValueError:
        """An error that says where; with row -1, in the header."""
        where = self.title if row is None else self.where(row)
        where += "" if column is None else f", column {str(column)!r}"
        return ValueError(f"{where}: {problem}")

    def where(self, row: int) -> str:
        """A row, and the table it is in."""
        place = self.at(row) if row >= 0 else self.header
        named = f"{self.title}, {place}" if place else self.title
        return place if place.startswith(self.title) else named

    def checked(self, function: Callable[..., Any], *given: Any) -> Any:
        """What a function finds in the names of the columns, or in what is given; an error names
        the table and its header."""
        try:
            return function(*(given or [self.names]))
        except ValueError as error:
            raise self.error(str(error), HEADER) from None

    def find(self, kind: str, slate: Hashable | None = None) -> dict[str, int]:
        """The columns of a kind of data, by what they are."""
        if self.is_file:
            self.check_names(range(len(self.names)))
        return self.checked(find_columns, self.names, kind, slate)

    def check_names(self, places: Iterable[int]) -> None:
        """Refuse a name of one of these columns that another has, too."""
        counts = Counter(self.names)
        for name in (self.names[place] for place in places):
            if counts[name] > 1 and name != "":
                raise self.error(f"the header has {name!r} twice: give each column a name", HEADER)

    def read(self, packs: Mapping[int, Pack]) -> tuple[dict[int, Column], int]:
        """Columns by place, each block of them as its pack makes it small, and the number of rows.

        A pack that returns None keeps nothing. A :class:`RowError` of one says in which row.
        """
        pieces: dict[int, list[Column]] = {place: [] for place in packs}
        n_rows = 0
        for block in self.blocks(list(packs)):
            for column, (place, pack) in zip(block, packs.items(), strict=True):
                try:
                    piece = pack(column)
                except RowError as error:
                    row = n_rows + error.row if error.row >= 0 else None
                    raise self.error(str(error), row, self.names[place]) from None
                if piece is not None:
                    pieces[place].append(piece)
            n_rows += len(block[0])
            if self.is_file:  # what is in memory has its place; of codes, there are three arrays
                check_memory(3 * 8 * n_rows, f"{self.title}: {n_rows:,} rows")
        if not n_rows and self.is_file and not self.may_be_empty:
            raise self.error(NO_LINE)
        return {place: _joined(pieces.pop(place)) for place in packs}, n_rows

    def all_columns(self) -> list[Column]:
        """Every column, also those beyond the header."""
        places = range(max(self.width, len(self.names)))
        return list(self.read(dict.fromkeys(places, lambda column: column))[0].values())

    def coded_table(
        self, places: Mapping[str, int], packs: Mapping[int, Pack] | None = None
    ) -> CodedTable:
        """Some of the columns as codes, by what they are, and others as they are packed."""
        self.check_names(places.values())
        names = {place: as_codes() for place in places.values()}
        columns, n_rows = self.read({**names, **(packs or {})})
        coded = {what: self._coded(columns.pop(place)) for what, place in places.items()}
        others = {place: columns[place] for place in packs or {}}
        rows: NDArray[Any] = np.arange(n_rows, dtype=np.int32 if n_rows < 1 << 31 else np.int64)
        return CodedTable(self, coded, rows, others)

    def _coded(self, column: Column) -> Coded:
        codes, values = distinct(column)
        if not self.is_file and set(map(type, values)) <= {int, str}:  # names as they are
            return Coded(codes, values)
        names = [self.name_of(value) for value in values]
        if names == values and None not in names:
            return Coded(codes, names)
        known: dict[Any, int] = {None: -1}
        places = [known.setdefault(name, len(known) - 1) for name in names]
        return Coded(looked_up(np.array([*places, -1], dtype=np.int32), codes), list(known)[1:])


class RowError(ValueError):
    """What is wrong in a row of a block; in row -1, with the column as a whole."""

    def __init__(self, row: int, problem: str) -> None:
        super().__init__(problem)
        self.row = row


def as_codes() -> Pack:
    """A pack that keeps text as codes, the same for the same text in every block."""
    import polars as pl

    kind = pl.Categorical(pl.Categories.random())

    def pack(column: Column) -> Column:
        if isinstance(column, list):
            return column
        if column.dtype == pl.String:
            return column.cast(kind)
        if column.dtype == pl.Int64 and column.cast(pl.Int32, strict=False).null_count() == 0:
            return column.cast(pl.Int32)  # half the memory
        return column

    return pack


def _joined(pieces: list[Column]) -> Column:
    """The blocks of a column as one; of several types they become objects."""
    import polars as pl

    if len(pieces) < 2:
        return pieces[0] if pieces else []
    kinds = {None if isinstance(piece, list) else piece.dtype for piece in pieces} - {pl.Null}
    if kinds == {pl.Int32, pl.Int64}:
        kinds = {pl.Int64}
    if len(kinds) > 1 or None in kinds:
        return [value for piece in pieces for value in list(piece)]
    kind = kinds.pop() if kinds else pl.Null
    return pl.concat([piece.cast(kind) for piece in pieces], rechunk=True)


@dataclass(frozen=True)
class CodedTable:
    """Columns of one length as codes, by what they are; ``rows`` are those of the table they come
    from, which has `others`, by place."""

    table: Table
    columns: dict[str, Coded]
    rows: NDArray[np.integer[Any]]
    others: dict[int, Column] = field(default_factory=dict)

    def take(self, is_kept: NDArray[np.bool_]) -> CodedTable:
        """Some of the rows."""
        if is_kept.all():
            return self
        columns = {what: Coded(c.codes[is_kept], c.names) for what, c in self.columns.items()}
        return CodedTable(self.table, columns, self.rows[is_kept], self.others)

    def has_all(self) -> NDArray[np.bool_]:
        """In which rows nothing is missing."""
        return np.all([column.codes >= 0 for column in self.columns.values()], axis=0)

    def whole_rows(self) -> CodedTable:
        """Without the rows in which something is missing, which a warning counts."""
        is_whole = self.has_all()
        if not is_whole.any():
            raise ValueError(
                f"{self.table.title} is empty: no row has all of {', '.join(self.columns)}"
            )
        self.warn_of_gaps(is_whole)
        return self.take(is_whole)

    def warn_of_gaps(self, is_whole: NDArray[np.bool_]) -> None:
        """Count the rows that are left out, if there are any."""
        if not is_whole.all():
            missing = [what for what, column in self.columns.items() if (column.codes < 0).any()]
            words = (
                f"{self.table.title}: {int((~is_whole).sum())} of {len(is_whole)} rows have no "
                f"{' or '.join(missing)} and are left out, the first at "
                f"{self.table.at(int(self.rows[is_whole.argmin()]))}"
            )
            warn(DroppedRowsWarning(words))

    def refuse_gaps(self) -> None:
        """Refuse the first row in which something is missing."""
        for what, column in self.columns.items():
            self.refuse(column.codes < 0, partial(_no, what))

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


def _no(what: str, _: int) -> str:
    return f"there is no {what}"


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
    return Table(
        title,
        names,
        lambda places: [[series_of(frame.get_column(names[at])) for at in places]],
        has_header=True,
    )


def table_of_rows(
    title: str,
    rows: Iterable[Any],
    names: Sequence[Hashable],
    at: Callable[[int], str] | None = None,
    first: Mapping[Hashable, list[Any]] | None = None,
) -> Table:
    """Rows, each with a value for every name; `first` are columns before these."""
    at = at or f"{title}[{{}}]".format
    listed = [row.tolist() if isinstance(row, np.ndarray) else row for row in rows]
    for place, row in enumerate(listed):
        if not isinstance(row, list | tuple) or len(row) != len(names):
            wanted = ", ".join(map(str, names))
            raise ValueError(f"{at(place)} must be ({wanted}), got {str(row)[:80]}")
    columns = {name: [row[place] for row in listed] for place, name in enumerate(names)}
    columns = {**(first or {}), **columns}
    return replace(_table_of_columns(title, list(columns), list(columns.values())), at=at)


def table_of_lists(title: str, lists: Mapping[Any, Any], names: Sequence[str]) -> Table:
    """A dict of users, each with a list of rows, which may be one value, as one long table."""
    wanted = f"({', '.join(names)})" if len(names) > 1 else f"{names[0]}s"
    for user, listed in lists.items():
        if isinstance(listed, str) or not isinstance(listed, Iterable):
            raise TypeError(f"{title}[{user!r}] must be a list of {wanted}, got {listed!r}")
    entries = [(user, *entry) for user, some in lists.items() for entry in enumerate(some)]
    rows = [row if len(names) > 1 else [row] for _, _, row in entries]
    users: dict[Hashable, list[Any]] = {"user": [user for user, _, _ in entries]}
    return table_of_rows(
        title, rows, names, lambda row: f"{title}[{entries[row][0]!r}][{entries[row][1]}]", users
    )


def _table_of_columns(title: str, names: list[Hashable], columns: list[Column]) -> Table:
    lengths = {len(column) for column in columns}
    if len(lengths) > 1:
        raise ValueError(f"{title} must have columns of equal length, got {sorted(lengths)}")
    return Table(title, names, lambda places: [[columns[at] for at in places]], has_header=True)


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


def texts_of(column: Column) -> pl.Series:
    """Cells as text, null for those that are missing."""
    import polars as pl

    if not isinstance(column, list) and column.dtype.is_numeric():
        texts = column.cast(pl.String).str.strip_suffix(".0")
    elif isinstance(column, list) or column.dtype != pl.String:
        column = column if isinstance(column, list) else column.to_list()
        listed = [str(x) if isinstance(x, list | dict) else text_of(x) for x in column]
        texts = pl.Series(listed, dtype=pl.String)
    else:
        texts = column.str.strip_chars()
    return texts.set(texts.is_in(NO_NAME), None)


def distinct(column: Column) -> tuple[NDArray[np.int32], list[Any]]:
    """Codes of a column, -1 for a null, and its different values in the order they appear.

    >>> distinct(["tea", None, "ale", "tea"])
    (array([0, 1, 2, 0], dtype=int32), ['tea', None, 'ale'])
    """
    import polars as pl

    if not isinstance(column, list) and column.dtype.is_nested():
        column = column.to_list()
    if isinstance(column, list):
        known: dict[Any, int] = {}
        try:
            listed = [known.setdefault(value, len(known)) for value in column]
        except TypeError:
            odd = next(value for value in column if isinstance(value, list | dict | set))
            raise TypeError(f"a name must be text or a number, got {odd!r}") from None
        return np.array(listed, dtype=np.int32), list(known)
    if column.dtype == pl.String:
        column = column.cast(pl.Categorical(pl.Categories.random()))  # hashes each text once
    if column.dtype == pl.Categorical:
        return _distinct_keys(column)
    values = column.unique(maintain_order=True).drop_nulls()
    numbers = pl.Series(np.arange(len(values), dtype=np.int32))
    codes = column.to_physical().replace_strict(
        values.to_physical(), numbers, default=-1, return_dtype=pl.Int32
    )
    is_text = values.dtype.is_temporal() or values.dtype == pl.Enum
    return codes.to_numpy(), (values.cast(pl.String) if is_text else values).to_list()


def _distinct_keys(column: pl.Series) -> tuple[NDArray[np.int32], list[Any]]:
    """The same of a column of categories, by their keys."""
    import polars as pl

    keys = column.to_physical()
    n_rows, n_keys = len(keys), int(keys.max() or 0) + 1  # type: ignore[arg-type]
    places = (keys.fill_null(n_keys) if keys.null_count() else keys).to_numpy()
    firsts = np.full(n_keys + 1, n_rows)  # the row in which each key comes first
    for start in reversed(range(0, n_rows, STEP)):
        block = places[start : start + STEP]
        firsts[block[::-1]] = np.arange(start, start + len(block))[::-1]
    firsts[n_keys] = n_rows
    order = np.argsort(firsts, kind="stable")[: np.count_nonzero(firsts < n_rows)]
    codes = np.full(n_keys + 1, -1, dtype=np.int32)
    codes[order] = np.arange(len(order), dtype=np.int32)
    return looked_up(codes, places), column.gather(firsts[order]).cast(pl.String).to_list()


def looked_up(table: NDArray[np.int32], places: NDArray[Any]) -> NDArray[np.int32]:
    """``table[places]``, in blocks: NumPy makes an index of 64 bits of the places."""
    found = np.empty(len(places), dtype=np.int32)
    for start in range(0, len(places), STEP):
        block = slice(start, start + STEP)
        found[block] = table[places[block]]
    return found


def plain_name(value: Any) -> Any:
    """A name as plain Python, None if it is missing; a whole number has no point, as missing values
    make floats of all."""
    value = value.item() if isinstance(value, np.generic) else value
    if is_missing(value):
        return None
    return int(value) if isinstance(value, float) and value.is_integer() else value


def join_names(
    columns: Sequence[Coded], given: Sequence[Hashable] | None, what: str
) -> tuple[list[NDArray[np.int32]], NDArray[Any]]:
    """Codes of columns of one kind of names, none missing, and the names they stand for: those that
    are given, or all that appear, sorted where they can be."""
    appear = [np.flatnonzero(np.bincount(c.codes, minlength=len(c.names))) for c in columns]
    used = [
        object_array(column.names)[mine].tolist()
        for column, mine in zip(columns, appear, strict=True)
    ]
    if given is None and len(columns) == 1:
        order = order_of(used[0])
        names, places_of = object_array(used[0])[order], [np.argsort(order)]
    else:
        pool = list(dict.fromkeys(name for some in used for name in some))
        names = object_array(pool)[order_of(pool)]
        names = names if given is None else check_names(given, None, what + "s")
        places_of = [codes_of(some, names) for some in used]
    joined = []
    for column, mine, some, found in zip(columns, appear, used, places_of, strict=True):
        check_known(found, some, what)
        places = np.zeros(len(column.names), dtype=np.int32)
        places[mine] = found
        joined.append(looked_up(places, column.codes))
    return joined, names


def order_of(names: list[Any]) -> NDArray[np.int64]:
    """The places of names by their order; as they stand, if they have none."""
    import polars as pl

    types = set(map(type, names))
    if types == {str}:
        return pl.Series(names, dtype=pl.String).arg_sort().to_numpy().astype(np.int64)
    if types == {int}:
        return np.argsort(np.array(names), kind="stable")
    try:
        return np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)
    except TypeError:  # numbers and text together
        return np.arange(len(names))
