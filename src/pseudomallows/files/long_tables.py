"""Long tables, one line a click: which columns count, and clicks from pairs that come in blocks."""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._warn import warn
from ..engines.memory import as_size, available_memory
from ..preferences import Clicks, ColumnWarning, DroppedRowsWarning, check_weights
from ..preferences.inputs.from_clicks import (
    STEP,
    clicks_of_pairs,
    first_times,
    rows_of_pairs,
    warn_of_column,
)
from ..preferences.inputs.headers import (
    EVENT,
    MOST_WORDS,
    as_number,
    doubt_about,
    find_column,
    judging_column,
    other_columns,
    time_column,
)
from ..preferences.inputs.times import TimeColumn, TimeError
from .csv_files import Row, check_header, full_rows
from .source import Source, TooLargeError

NO_NAME = frozenset(("", "NA", "<NA>", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None"))
MOST_VALUES = 100_000  # of a rating or a count: with more, the column holds prices or times
BLOCK = 1 << 10  # rows of text at a time: few, so that they stay in the cache of the processor
Codes = NDArray[np.int32]


@dataclass(frozen=True)
class Columns:
    """The columns of user, item, rank and time in a long table; -1 for those that are missing."""

    user: int
    item: int
    rank: int
    time: int = -1
    rating: int = -1  # if only high ratings count


# The header


def find_columns(source: Source, header: Row, needs_rank: bool = False) -> Columns:
    """The columns of user, item and maybe rank; of clicks, that of the time too."""
    check_header(source, header)
    line, names = header
    try:
        user, item = find_column(names, "user"), find_column(names, "item")
        if needs_rank:
            return Columns(user, item, find_column(names, "rank"))
        return Columns(user, item, -1, time_column(names), source.layout.rating_column(names))
    except ValueError as error:
        raise source.error(line, str(error)) from None


def suspect_columns(source: Source, names: list[str], is_said: bool) -> list["SuspectColumn"]:
    """The column that may tell which rows are no clicks, by its name; if there is none, those that
    may by their values.

    Where the user has said that these are clicks, a column of positions says nothing more.
    """
    if source.layout.min_rating is not None:
        return []
    place, kind = judging_column(names)
    others = [(other, "number") for other in other_columns(names, EVENT)]
    return [
        SuspectColumn(source, names, at, what, is_said)
        for at, what in (others if place < 0 else [(place, kind)])
    ]


class SuspectColumn:
    """A column that may tell which rows are no clicks, and how often it has each value.

    Nothing is counted once there are too many values, or words.
    """

    def __init__(
        self, source: Source, names: list[str], place: int, kind: str, is_said: bool
    ) -> None:
        self.source, self.place, self.kind, self.name = source, place, kind, names[place]
        self.counts: Counter[str] = Counter()
        self.is_open, self.is_said, self._n_words = kind != "position", is_said, 0

    def add(self, counts: Iterable[tuple[str, int]]) -> None:
        """Add the values of a block, and how often it has each."""
        known = [(value, n) for value, n in counts if n and value not in NO_NAME]
        new = [value for value, _ in known if value not in self.counts]
        self._n_words += sum(as_number(value) is None for value in new)
        for value, n in known:
            self.counts[value] += n
        self.is_open = self._n_words <= MOST_WORDS and len(self.counts) <= MOST_VALUES
        if not self.is_open:
            self.counts.clear()

    def warn(self) -> None:
        """Say that the column is not heeded, and how many rows had better be left out."""
        doubt = doubt_about(self.name, self.kind, self.counts)
        if doubt and not (doubt == "position" and self.is_said):
            warn_of_column(f"{self.source.name}: ", self.name, doubt, self.counts)


# Pairs


class Part(NamedTuple):
    """Clicks by codes: those of ``users[row]`` are ``items[codes[starts[row]:starts[row + 1]]]``.

    Users and items are sorted, and so are the codes of a user, each there once.
    """

    users: NDArray[Any]
    items: NDArray[Any]
    starts: NDArray[np.int64]
    codes: NDArray[np.int32]


class ClickPairs:
    """Clicks that come in blocks: codes of users and items, 8 bytes a click, and each name once;
    with times, 8 bytes more."""

    def __init__(
        self, source: Source, n_rows: int = 1 << 10, time: TimeColumn | None = None
    ) -> None:
        self.source, self.time = source, time
        self.n_rows = self.n_dropped = self.n_low = self._size = 0
        self.first_dropped = ""  # where it is
        self._codes = [np.empty(n_rows, dtype=np.int32) for _ in range(2)]
        self._known = [dict.fromkeys(NO_NAME, -1) for _ in range(2)]
        self._times = np.empty(0 if time is None else n_rows)

    def add(
        self,
        users: Iterable[str],
        items: Iterable[str],
        times: NDArray[np.float64] | None = None,
        is_high: NDArray[np.bool_] | None = None,
    ) -> int:
        """Add a block of names, and times; by a mask of ratings, those that are high enough.
        Returns what `count` does."""
        n_others = len(NO_NAME)
        owners, codes = (
            np.array([known.setdefault(name, len(known) - n_others) for name in names], np.int32)
            for known, names in zip(self._known, (users, items), strict=True)
        )
        is_whole = (owners >= 0) & (codes >= 0)
        is_click = is_whole if is_high is None else is_whole & is_high
        self.n_low += int(is_whole.sum() - is_click.sum())
        self.store(owners[is_click], codes[is_click], None if times is None else times[is_click])
        return self.count(is_whole)

    def count(self, is_whole: NDArray[np.bool_]) -> int:
        """Count the rows of a block, and those without a user or an item; the first such row in the
        block, -1 if it is not the first of all."""
        is_first = not self.n_dropped and not is_whole.all()
        self.n_rows += len(is_whole)
        self.n_dropped += int(len(is_whole) - is_whole.sum())
        return int(is_whole.argmin()) if is_first else -1

    def store(self, users: Codes, items: Codes, times: NDArray[np.float64] | None = None) -> None:
        """Store the codes of a block of rows, and their times, if there is a column of them."""
        end = self._size + len(users)
        stored: Any
        block: Any
        for stored, block in zip(self._codes, (users, items), strict=True):
            self._extend(stored, block, end)
        if self.time is not None and times is not None:
            self._extend(self._times, times, end)
        self._size = end

    def _extend(self, stored: NDArray[Any], block: NDArray[Any], end: int) -> None:
        if end > len(stored):
            self._check_memory(end)
            stored.resize(end + end // 8, refcheck=False)  # in place where it can be
        stored[self._size : end] = block

    def _check_memory(self, n_rows: int) -> None:
        """Refuse more rows than can be made into clicks: they are then there three times."""
        needed, available = 3 * 8 * n_rows, available_memory()
        if available is not None and needed > available:
            raise TooLargeError(
                f"{self.source.name}: this does not fit into memory: the first {n_rows:,} rows "
                f"need {as_size(needed)}, and {as_size(available)} are available"
            )

    def times(self) -> NDArray[np.float64] | None:
        """The times of all rows, in their order, None if there are none; they are then forgotten.
        A warning says if the column cannot be read."""
        stored, self._times = self._times, np.empty(0)
        if self.time is None:
            return None
        stored.resize(self._size, refcheck=False)
        try:
            times = self.time.finish(stored)
        except TimeError as error:
            raise self.source.error(None, str(error), str(self.time.name)) from None
        if not self.time.is_open:
            message = f"{self.source.name}: {self.time.said()}"
            warn(ColumnWarning(message))
        return times

    @property
    def n_kept(self) -> int:
        """How many rows are stored."""
        return self._size

    def names(self) -> tuple[list[str], list[str]]:
        """Users and items, in the order of their codes; the names are then forgotten."""
        users, items = (list(known)[len(NO_NAME) :] for known in self._known)
        self._known = []
        return users, items

    def take(self) -> tuple[Codes, Codes, NDArray[Any], NDArray[Any]]:
        """Rows, codes, users and items, the names sorted; the pairs are then empty."""
        if self.n_dropped:
            warn(
                DroppedRowsWarning(
                    f"{self.source.name}: {self.n_dropped} of {self.n_rows} rows have no user or "
                    f"no item and are left out, the first at {self.first_dropped}"
                )
            )
        for stored in self._codes:
            stored.resize(self._size, refcheck=False)
        (rows, codes), self._codes = self._codes, []
        users, items = map(in_order, (rows, codes), self.names())
        return rows, codes, users, items


def in_order(codes: Codes, names: Sequence[str]) -> NDArray[Any]:
    """The names that some code has, sorted; `codes` change to fit.

    >>> codes = np.array([0, 2, 0], dtype=np.int32)
    >>> in_order(codes, ["tea", "juice", "mate"]), codes
    (array(['mate', 'tea'], dtype=object), array([1, 0, 1], dtype=int32))
    """
    is_used = np.zeros(len(names), dtype=bool)
    for first in range(0, len(codes), STEP):
        is_used[codes[first : first + STEP]] = True
    order = np.array(sorted(np.flatnonzero(is_used).tolist(), key=names.__getitem__), np.int64)
    places = np.empty(len(names), dtype=np.int32)
    places[order] = np.arange(len(order))
    recode(codes, places)
    return np.array(names, dtype=object)[order]


def recode(codes: Codes, places: NDArray[np.integer[Any]]) -> None:
    """Put ``places[code]`` for every code, in place and in steps: an index takes 8 bytes."""
    for first in range(0, len(codes), STEP):
        codes[first : first + STEP] = places[codes[first : first + STEP]]


def clicks_of(pairs: ClickPairs) -> Clicks:
    """Clicks from pairs, with the items of the source, if it has some."""
    source = pairs.source
    times = pairs.times()
    if pairs.n_low:
        least = f"{source.layout.min_rating:g}"
        if not pairs.n_kept:
            raise source.error(None, f"no rating is {least} or more: lower min_rating")
        n_rated = pairs.n_low + pairs.n_kept
        source.notes.append(f"{pairs.n_low:,} of {n_rated:,} ratings below {least} left out")
    rows, codes, users, items = pairs.take()
    if source.items is not None:
        items = _as_given(source, codes, items)
    if source.may_be_one_item and len(items) == 1:
        starts, columns = rows_of_pairs(rows, codes, len(users), 1)
        clicks = Clicks(check_weights(None, len(users)), users, items, starts, columns)
        return replace(clicks, times=first_times(rows, codes, times, clicks))
    try:
        return clicks_of_pairs(rows, codes, None, users, items, times)
    except ValueError as error:
        raise source.error(None, str(error)) from None


def part_of(pairs: ClickPairs) -> Part:
    """The same, whatever the number of items."""
    rows, codes, users, items = pairs.take()
    return Part(users, items, *rows_of_pairs(rows, codes, len(users), len(items)))


def _as_given(source: Source, codes: Codes, names: NDArray[Any]) -> NDArray[Any]:
    """The given items, which may be numbers; `codes` change to fit."""
    assert source.items is not None
    known = {str(name): code for code, name in enumerate(source.items)}
    strange = [name for name in names.tolist() if name not in known]
    if strange:
        raise source.error(
            None, f"unknown item: {strange[0]!r}; {len(strange)} of {len(names)} are not known"
        )
    recode(codes, np.array([known[name] for name in names.tolist()], dtype=np.int32))
    given = np.empty(len(source.items), dtype=object)
    given[:] = source.items
    return given


def time_reader(source: Source, names: list[str], columns: Columns) -> TimeColumn | None:
    """What reads the column of times, if there is one."""
    given = source.layout.columns
    is_named = isinstance(given, Mapping) and "time" in given
    return None if columns.time < 0 else TimeColumn(names[columns.time], is_named)


def _high_ratings(
    source: Source, header: Row, block: list[Row], columns: Columns
) -> NDArray[np.bool_] | None:
    if columns.rating < 0:
        return None
    try:
        return source.layout.is_high([cells[columns.rating] for _, cells in block])
    except ValueError:  # which line is it?
        for line, cells in block:
            try:
                source.layout.is_high([cells[columns.rating]])
            except ValueError as error:
                raise source.error(line, str(error), header[1][columns.rating]) from None
        raise


# Text


def read_clicks(source: Source, header: Row, rows: Iterable[Row], is_said: bool) -> ClickPairs:
    """Pairs from rows of text, a block at a time."""
    columns = find_columns(source, header)
    suspects = suspect_columns(source, header[1], is_said)
    time = time_reader(source, header[1], columns)
    pairs = ClickPairs(source, time=time)
    whole = full_rows(source, header, rows)
    while block := list(itertools.islice(whole, BLOCK)):
        times = None
        if time is not None:
            try:
                times = time.add([cells[columns.time] for _, cells in block])
            except TimeError as error:
                line = block[error.place][0]
                raise source.error(line, str(error), header[1][columns.time]) from None
        is_high = _high_ratings(source, header, block, columns)
        users = (cells[columns.user] for _, cells in block)
        first = pairs.add(users, (cells[columns.item] for _, cells in block), times, is_high)
        if first >= 0:
            pairs.first_dropped = f"line {block[first][0]}"
        for column in suspects:
            if column.is_open:
                column.add(Counter(cells[column.place] for _, cells in block).items())
    if not pairs.n_rows:
        raise source.error(None, "there is a header, but no line after it")
    for column in suspects:
        column.warn()
    return pairs
