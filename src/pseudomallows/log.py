"""Long tables, one line a click: which columns count, and clicks from pairs that come in blocks."""

import codecs
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .kernels.names import DONE, MORE, NEWLINE, TROUBLE, split_lines
from .names import NO_NAME, Cells, Codes, Names, in_order, recode
from .preferences import Clicks, clicks_of_pairs, rows_of_pairs
from .text import Row, Source, find_delimiter, read_rows

USER = {"user", "users", "userid", "customer", "customerid", "visitor", "visitorid", "session"}
USER |= {"sessionid", "person", "personid", "assessor", "voter", "voterid", "respondent", "judge"}
USER |= {"respondentid", "participant", "participantid", "subject", "rater", "uid"}
USER |= {"indexlevel0"}  # of pandas, in Parquet
ITEM = {"item", "items", "itemid", "product", "productid", "stockcode", "article", "articleid"}
ITEM |= {"movie", "movieid", "track", "trackid", "page", "pageid", "asin", "alternative"}
RANK = {"rank", "ranks", "ranking"}
JUDGED = {"click", "clicked", "isclick", "clicks", "label", "liked", "purchased", "bought"}
LARGE = 4_000_000  # bytes of text from which compiled loops read it
BLOCK = 1 << 20  # bytes that they read at a time


class DroppedRowsWarning(UserWarning):
    """Rows of a file without a user or without an item, which say nothing."""


class IgnoredColumnWarning(UserWarning):
    """A column of a file of clicks that may say which rows are none."""


@dataclass(frozen=True)
class Columns:
    """Where, in a long table, user, item and rank stand; the rank at -1 if there is none."""

    user: int
    item: int
    rank: int


# The header


def word(cell: str) -> str:
    """A name of a column without what is a matter of taste."""
    return re.sub(r"[\s_-]", "", cell.lower())


def is_long(header: list[str]) -> bool:
    """Whether there are columns for user and item."""
    words = {word(cell) for cell in header}
    return bool(words & USER) and bool(words & ITEM)


def is_long_clicks(header: list[str]) -> bool:
    """The same, without one for ranks."""
    return is_long(header) and not any(word(cell) in RANK for cell in header)


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
    places = []
    wanted = {"user": USER, "item": ITEM} | ({"rank": RANK} if needs_rank else {})
    for what, known in wanted.items():
        found = [place for place, name in enumerate(names) if word(name) in known]
        exact = [place for place in found if word(names[place]) == what]
        found = exact or found
        if len(found) != 1:
            problem = "no column" if not found else f"{len(found)} columns"
            raise source.error(
                line,
                f"{problem} for the {what}: name one of {', '.join(names[:8])} {what!r}",
            )
        places.append(found[0])
    return Columns(places[0], places[1], places[2] if needs_rank else -1)


def click_columns(source: Source, header: Row) -> Columns:
    """The columns of user and item."""
    check_header(source, header)
    return find_columns(source, header, needs_rank=False)


def warn_of_judged(source: Source, header: Row) -> None:
    """Say that a column that may tell which rows are no clicks is not heeded."""
    judged = [name for name in header[1] if word(name) in JUDGED]
    if judged:
        warnings.warn(
            IgnoredColumnWarning(
                f"{source.name}: column {judged[0]!r} is ignored, every row counts as a click: "
                "leave out the rows that are none"
            ),
            stacklevel=2,
        )


def full_rows(source: Source, header: Row, rows: Iterator[Row]) -> Iterator[Row]:
    """The rows, each as long as the header; empty cells beyond it are dropped."""
    n_columns = len(header[1])
    for line, cells in rows:
        if len(cells) > n_columns and not any(cells[n_columns:]):
            cells = cells[:n_columns]
        if len(cells) != n_columns:
            raise source.error(
                line, f"there are {len(cells)} cells, but the header has {n_columns} columns"
            )
        yield line, cells


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


def read_clicks(source: Source, header: Row, rows: Iterator[Row]) -> Clicks:
    """Clicks from rows of text."""
    columns = click_columns(source, header)
    warn_of_judged(source, header)
    users: dict[str, int] = {}
    items: dict[str, int] = {}
    owners, codes, lines = [], [], []
    for line, cells in full_rows(source, header, rows):
        user, item = cells[columns.user], cells[columns.item]
        owners.append(-1 if user in NO_NAME else users.setdefault(user, len(users)))
        codes.append(-1 if item in NO_NAME else items.setdefault(item, len(items)))
        lines.append(line)
    if not lines:
        raise source.error(None, "there is a header, but no line after it")
    pairs = Pairs(source)
    pairs.users.listed, pairs.items.listed = list(users), list(items)
    pairs.add_codes(np.array(owners, np.int32), np.array(codes, np.int32), np.array(lines), "line")
    return clicks_of(pairs)


def read_large(source: Source) -> Pairs | None:
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
    pairs = Pairs(source)
    with source.open() as stream:
        try:
            check = codecs.getincrementaldecoder("utf-8")()
            check.decode(stream.read(len(first)))
            is_plain = _read_blocks(stream, pairs, delimiter, len(header[1]), columns, check)
        except UnicodeDecodeError:
            is_plain = False
    if not is_plain or not pairs.n_rows:
        return None
    warn_of_judged(source, header)
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
    delimiter: str,
    n_columns: int,
    columns: Columns,
    check: codecs.IncrementalDecoder,
) -> bool:
    """Add all lines after the header to `pairs`; False if the file is no plain table."""
    data = np.empty(BLOCK + 1, dtype=np.uint8)
    cells, lines = np.empty((4, BLOCK // 8), np.int32), np.empty(BLOCK // 8, np.int64)
    wanted = np.array([columns.user, columns.item])
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
            users, items = (Cells(data, cells[k, :n], cells[k + 1, :n]) for k in (0, 2))
            pairs.add(users, items, lines[:n])
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
