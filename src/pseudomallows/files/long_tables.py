"""Long tables, one line a click: which columns count, and clicks from pairs that come in blocks."""

import codecs
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.names import DONE, MORE, NEWLINE, TROUBLE, split_lines
from ..preferences.headers import (
    find_column,
    has_low,
    is_long_clicks,
    is_number,
    judging_column,
    other_columns,
)
from ..preferences.preferences import (
    Clicks,
    DroppedRowsWarning,
    check_weights,
    clicks_of_pairs,
    rows_of_pairs,
    warn_of_column,
)
from .codes import NO_NAME, Cells, Codes, Names, in_order, recode
from .csv_files import Row, Source, find_delimiter, read_rows

LARGE = 4_000_000  # bytes of text from which compiled loops read it
BLOCK = 1 << 20  # bytes that they read at a time
MOST_VALUES = 100_000  # of a rating or a count that are told apart


@dataclass(frozen=True)
class Columns:
    """Where, in a long table, user, item and rank stand; the rank at -1 if there is none."""

    user: int
    item: int
    rank: int


# The header


def check_header(source: Source, header: Row) -> None:
    """Refuse a name that two columns have."""
    line, names = header
    seen: set[str] = set()
    for name in names:
        if name and name in seen:
            raise source.error(line, f"the header has {name!r} twice: give each column a name")
        seen.add(name)


def find_columns(source: Source, header: Row, needs_rank: bool) -> Columns:
    """The columns of user, item and maybe rank."""
    line, names = header
    try:
        user, item = find_column(names, "user"), find_column(names, "item")
        return Columns(user, item, find_column(names, "rank") if needs_rank else -1)
    except ValueError as error:
        raise source.error(line, str(error)) from None


def click_columns(source: Source, header: Row) -> Columns:
    """The columns of user and item."""
    check_header(source, header)
    return find_columns(source, header, needs_rank=False)


def full_rows(source: Source, header: Row, rows: Iterator[Row]) -> Iterator[Row]:
    """The rows, each as long as the header; empty cells beyond it are dropped."""
    n_columns = len(header[1])
    for line, cells in rows:
        if len(cells) > n_columns and not any(cells[n_columns:]):
            cells = cells[:n_columns]
        if len(cells) != n_columns:
            advice = ": is there a decimal comma? Write a point" * (len(cells) == 2 * n_columns)
            raise source.error(
                line,
                f"there are {len(cells)} cells, but the header has {n_columns} columns{advice}",
            )
        yield line, cells


def judged_columns(source: Source, names: list[str], is_said: bool) -> list["Judged"]:
    """The column that may tell which rows are no clicks, by its name; if there is none, those that
    may by their values.

    Where the user has said that these are clicks, a column of positions says nothing more.
    """
    place, kind = judging_column(names)
    if place >= 0:
        return [] if is_said and kind == "position" else [Judged(source, names, place, kind)]
    return [Judged(source, names, other, "number") for other in other_columns(names)]


class Judged:
    """A column that may tell which rows are no clicks, and how often it has each value."""

    def __init__(self, source: Source, names: list[str], place: int, kind: str) -> None:
        self.source, self.names = source, Names()
        self.place, self.kind, self.name = place, kind, names[place]
        self.has_values = kind in ("rating", "count", "number")
        self._counts = np.zeros(0, dtype=np.int64)

    @property
    def is_open(self) -> bool:
        """Whether there are values to count, and not too many."""
        return self.has_values and len(self.names.listed) < MOST_VALUES

    def add(self, codes: Codes) -> None:
        """Count a block of values, by their codes in `names`."""
        counts = np.bincount(codes[codes >= 0], minlength=len(self.names.listed))
        counts[: len(self._counts)] += self._counts
        if self.kind == "number":  # a column of text says nothing: do not read on
            new = self.names.listed[len(self._counts) :]
            self.has_values = all(value in NO_NAME or is_number(value) for value in new)
        self._counts = counts

    def counts(self) -> Counter[str]:
        """How often each value was seen."""
        found: Counter[str] = Counter()
        if self.is_open or (self.has_values and self.kind == "number"):
            for value, n in zip(self.names.listed, self._counts.tolist(), strict=True):
                if n:  # not of what is no name
                    found[value] += n
        return found

    def warn(self, counts: Counter[str]) -> None:
        """Say that the column is not heeded, and how many rows had better be left out."""
        if self.kind != "number" or has_low(counts):
            warn_of_column(f"{self.source.name}: ", self.name, self.kind, counts)


# Pairs


class Part(NamedTuple):
    """Clicks by codes: those of ``users[row]`` are ``items[codes[starts[row]:starts[row + 1]]]``.

    Users and items are sorted, and so are the codes of a user, each there once.
    """

    users: NDArray[Any]
    items: NDArray[Any]
    starts: NDArray[np.int64]
    codes: NDArray[np.int32]


class Pairs:
    """Clicks that come in blocks: codes of users and items, 8 bytes a click, and their names."""

    def __init__(self, source: Source, n_rows: int = 1 << 10) -> None:
        self.source, self.users, self.items = source, Names(), Names()
        self.n_rows = self.n_dropped = self._size = 0
        self._first_dropped = ""
        self._codes = [np.empty(n_rows, dtype=np.int32) for _ in range(2)]

    def add(self, users: Cells, items: Cells, lines: NDArray[Any], what: str = "line") -> None:
        """Add a block of names; `lines` say where in the file they are, and `what` what that is."""
        self.add_codes(self.users.codes(users), self.items.codes(items), lines, what)

    def add_codes(self, users: Codes, items: Codes, lines: NDArray[Any], what: str) -> None:
        """Add a block of codes, -1 where there is no name."""
        self.n_rows += len(users)
        is_whole = (users >= 0) & (items >= 0)
        if not is_whole.all():
            self._first_dropped = self._first_dropped or f"{what} {lines[is_whole.argmin()]}"
            self.n_dropped += int(len(users) - is_whole.sum())
            users, items = users[is_whole], items[is_whole]
        end = self._size + len(users)
        for stored, block in zip(self._codes, (users, items), strict=True):
            if end > len(stored):
                stored.resize(end + end // 8, refcheck=False)  # in place where it can be
            stored[self._size : end] = block
        self._size = end

    def take(self) -> tuple[Codes, Codes, NDArray[Any], NDArray[Any]]:
        """Rows, codes, users and items, the names sorted; the pairs are then empty."""
        if self.n_dropped:
            warnings.warn(
                DroppedRowsWarning(
                    f"{self.source.name}: {self.n_dropped} of {self.n_rows} rows have no user or "
                    f"no item and are left out, the first at {self._first_dropped}"
                ),
                stacklevel=2,
            )
        codes, names = [], []
        for stored, known in zip(self._codes, (self.users, self.items), strict=True):
            stored.resize(self._size, refcheck=False)
            codes.append(stored)
            names.append(in_order(stored, known.merge(stored)))
        self._codes, self.users, self.items = [], Names(), Names()
        return codes[0], codes[1], names[0], names[1]


def clicks_of(pairs: Pairs) -> Clicks:
    """Clicks from pairs, with the items of the source, if it has some."""
    source = pairs.source
    rows, codes, users, items = pairs.take()
    if source.items is not None:
        items = _as_given(source, codes, items)
    if source.may_be_one_item and len(items) == 1:
        found = rows_of_pairs(rows, codes, len(users), 1)
        return Clicks(check_weights(None, len(users)), users, items, *found)
    try:
        return clicks_of_pairs(rows, codes, None, users, items)
    except ValueError as error:
        raise source.error(None, str(error)) from None


def part_of(pairs: Pairs) -> Part:
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


# Text


def read_clicks(source: Source, header: Row, rows: Iterator[Row], is_said: bool) -> Clicks:
    """Clicks from rows of text."""
    columns = click_columns(source, header)
    judged = judged_columns(source, header[1], is_said)
    users: dict[str, int] = {}
    items: dict[str, int] = {}
    values: list[Counter[str]] = [Counter() for _ in judged]
    owners, codes, lines = [], [], []
    for line, cells in full_rows(source, header, rows):
        user, item = cells[columns.user], cells[columns.item]
        owners.append(-1 if user in NO_NAME else users.setdefault(user, len(users)))
        codes.append(-1 if item in NO_NAME else items.setdefault(item, len(items)))
        lines.append(line)
        for column, counts in zip(judged, values, strict=True):
            counts[cells[column.place]] += 1
    if not lines:
        raise source.error(None, "there is a header, but no line after it")
    for column, counts in zip(judged, values, strict=True):
        column.warn(Counter({value: n for value, n in counts.items() if value not in NO_NAME}))
    pairs = Pairs(source)
    pairs.users.listed, pairs.items.listed = list(users), list(items)
    pairs.add_codes(np.array(owners, np.int32), np.array(codes, np.int32), np.array(lines), "line")
    return clicks_of(pairs)


def read_large(source: Source, is_said: bool = False) -> Pairs | None:
    """Pairs of a large file of text; None for a small one, or where `read_rows` knows better.

    It reads block by block, by compiled loops, and what it reads is what `read_rows` would.
    """
    with source.open() as stream:
        head = stream.read(max(LARGE, BLOCK))
    first = head[: head.find(b"\n") + 1]
    if len(head) < LARGE or not first:
        return None
    found = _plain_header(source, first.decode("utf-8-sig", "replace"))
    if found is None:
        return None
    delimiter, header, columns = found
    pairs, judged = Pairs(source), judged_columns(source, header[1], is_said)
    with source.open() as stream:
        try:
            check = codecs.getincrementaldecoder("utf-8")()
            check.decode(stream.read(len(first)))
            is_plain = _read_blocks(
                stream, pairs, judged, delimiter, len(header[1]), columns, check
            )
        except UnicodeDecodeError:
            is_plain = False
    if not is_plain or not pairs.n_rows:
        return None
    for column in judged:
        column.warn(column.counts())
    return pairs


def _plain_header(source: Source, line: str) -> tuple[str, Row, Columns] | None:
    """Delimiter, names and columns of a first line that is the header of a table of clicks."""
    if line.count('"') % 2 or "\0" in line or "\r" in line.removesuffix("\r\n"):
        return None
    delimiter = find_delimiter(source, line)
    try:
        header = next(read_rows(source, line, delimiter), (1, []))
        columns = click_columns(source, header)
    except ValueError:  # it is told after all that comes before it, such as bytes that are no text
        return None
    return (delimiter, header, columns) if is_long_clicks(header[1]) else None


def _read_blocks(
    stream: IO[bytes],
    pairs: Pairs,
    judged: list[Judged],
    delimiter: str,
    n_columns: int,
    columns: Columns,
    check: codecs.IncrementalDecoder,
) -> bool:
    """Add all lines after the header to `pairs`; False if the file is no plain table."""
    data = np.empty(BLOCK + 1, dtype=np.uint8)
    wanted = np.array([columns.user, columns.item, *(column.place for column in judged)])
    cells = np.empty((2 * len(wanted), BLOCK // 8), np.int32)
    lines = np.empty(BLOCK // 8, np.int64)
    state = np.array([0, 2, MORE])  # where to go on, at which line, and why it stopped
    n_left = 0
    while True:
        n_new = stream.readinto(data[n_left:BLOCK].data)  # type: ignore[attr-defined]
        _check_text(data[n_left : n_left + n_new], check)
        end = n_left + n_new
        if not n_new and n_left and data[end - 1] != NEWLINE:
            data[end] = NEWLINE
            end += 1
        state[0], state[2] = 0, DONE
        while state[2] == DONE:
            place = int(state[0])
            n = split_lines(
                data, place, end, ord(delimiter), n_columns, wanted, state, cells, lines
            )
            users, items, *values = (
                Cells(data, cells[2 * k, :n], cells[2 * k + 1, :n]) for k in range(len(wanted))
            )
            pairs.add(users, items, lines[:n])
            for column, block in zip(judged, values, strict=True):
                if column.is_open:
                    column.add(column.names.codes(block))
        n_left = end - int(state[0])
        if state[2] == TROUBLE or n_left >= BLOCK or (n_left and not n_new):
            return False
        if not n_new:
            return True
        data[:n_left] = data[end - n_left : end].copy()


def _check_text(block: NDArray[np.uint8], check: codecs.IncrementalDecoder) -> None:
    """Raise if this, after what came before it, is no UTF-8."""
    if check.getstate()[0] or not len(block) or block.max() > 127:
        check.decode(block.tobytes(), final=not len(block))
