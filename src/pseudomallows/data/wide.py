"""Tables with a line for each user, of ranks, clicks or items by place; long tables of ranks."""

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._warn import warn
from .blocks import Rankings
from .checks import NO_NAME, text_of
from .columns import (
    USER,
    are_places,
    find_sides,
    is_long,
    order_of_places,
    place_of,
    refuse_pairs,
    word,
    words_in,
)
from .preferences import ColumnWarning, Preferences
from .source import Source
from .table import Table, as_codes, distinct, join_names
from .text import COMMA, Row, check_header, full_row
from .ties import UNCLEAR, check_tied_ranks

KINDS = ("rankings", "long-rankings", "orderings", "clicks", "wide-clicks", "pairs", "impressions")
NO_HEADER = (
    "there is no header: name the items in the first line; of clicks, say header=False, and "
    "columns=['user', 'item', ...]"
)
NO_PLACE = (
    "{!r} is no known place: name the columns of places rank1, rank2, ..., and the column of users "
    "'user'"
)
MISSING = frozenset(("", "na", "nan", "n/a", "null", "none", "-", ".", "?"))
YES_NO = {"true": "1", "yes": "1", "false": "0", "no": "0"}
NO_ITEM = words_in(  # columns that are hardly one of an item
    "age sex gender weight time timestamp date count counts quantity qty plays playcount nclicks "
    "frequency"
)
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.I | re.A)


@dataclass(frozen=True, eq=False)
class Grid:
    """A table of text, whose header may be none: the cell of a row is ``texts[codes[row, place]]``,
    an empty one has code 0; ``sizes[row]`` cells are there, and the row is in line ``lines[row]``.
    """

    source: Source
    header: Row
    lines: NDArray[np.int64]
    codes: NDArray[np.int32]
    sizes: NDArray[np.int64]
    texts: list[str]

    @property
    def names(self) -> list[str]:
        """The first line."""
        return self.header[1]

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """The number that each text stands for, yes and no too; NaN for none."""
        texts = [YES_NO.get(text.lower(), text) for text in self.texts]
        return np.array([float(x) if NUMBER.fullmatch(x) else np.nan for x in texts])

    @cached_property
    def is_known(self) -> NDArray[np.bool_]:
        """Which texts say something."""
        return np.array([text.lower() not in MISSING for text in self.texts])

    def error(self, problem: str, row: int | None = None, column: str | None = None) -> ValueError:
        """An error in a row, or in the first line."""
        line = self.header[0] if row is None else int(self.lines[row])
        return self.source.error(line, problem, column)

    def user_column(self) -> int | None:
        """The column that names the users, -1 for none, as far as the header shows it."""
        for place, name in enumerate(self.names):
            if word(name) in USER:
                return place
        if _is_user_word(self.names[0]):
            return 0
        if len(self.names) > 2 and are_places(self.names[1:]):
            return 0 if place_of(self.names[0]) is None else -1
        return None

    def user_column_by_cells(self) -> int:
        """The same, by the first column if the header does not show it."""
        found = self.user_column()
        if found is not None:
            return found
        first = self.codes[:, 0][self.is_known[self.codes[:, 0]]]
        return 0 if np.isnan(self.numbers[first]).sum() > len(first) / 2 else -1

    def users(self, place: int) -> list[str] | None:
        """The names of the users, which are all different; None without a column of them."""
        if place < 0:
            return None
        seen: dict[str, int] = {}
        for row, code in enumerate(self.codes[:, place].tolist()):
            name = self.texts[code]
            if not name:
                raise self.error("the user has no name", row)
            if name in seen:
                line = self.lines[seen[name]]
                raise self.error(f"user {name!r} is there already, at line {line}", row)
            seen[name] = row
        return list(seen)

    def refuse_decimal_commas(self, is_asked: NDArray[np.bool_] | bool = True) -> None:
        """Refuse a number that is written with a comma, in one of these cells."""
        has_comma = np.array([COMMA.fullmatch(text) is not None for text in self.texts])
        wrong = np.argwhere(has_comma[self.codes] & is_asked)
        if len(wrong):
            row, place = wrong[0]
            text = self.texts[self.codes[row, place]][:40]
            raise self.error(f"{text!r} has a decimal comma: write a point, or whole numbers", row)


def _is_user_word(name: str) -> bool:
    """Whether a first column of this name is that of the users."""
    header = word(name)
    return header in ("", "id", "name", "nr", "no", "row", "index") or header.endswith("id")


def read_wide(grid: Grid, kind: str | None, has_header: bool) -> tuple[Any, str]:
    """The data of a table that is not long, and their kind: as said, or as the cells show."""
    try:
        refuse_pairs(grid.names)
    except ValueError as error:
        raise grid.error(str(error)) from None
    try:
        chosen = kind or recognise(grid)
        if chosen == "orderings":
            return read_orderings(grid, has_header), chosen
        check_header(grid.source, grid.header)
        if is_long(grid.names):
            shown = ", ".join(grid.names[:5])
            raise grid.error(f"the header {shown} is that of a long table")
        for row in np.flatnonzero(grid.sizes != len(grid.names)):
            cells = [grid.texts[code] for code in grid.codes[row, : grid.sizes[row]]]
            full_row(grid.source, len(grid.names), (int(grid.lines[row]), cells))
        if not len(grid.lines):
            raise grid.source.error(None, "there is a header, but no line after it")
        return read_ranks(grid, is_clicks=chosen == "wide-clicks"), chosen
    except ValueError as error:
        words = [word(name) for name in grid.names]
        has_users = len(words) == 3 and bool(USER & set(words))
        if kind is None and has_users and find_sides(words):
            advice = "if these are comparisons, name the columns user, better and worse"
            raise ValueError(f"{error}; {advice}") from None
        raise


def recognise(grid: Grid) -> str:
    """The kind of a table, by its header and its values; what may be two is refused."""
    _refuse_odd_place(grid)
    first, header, shown = grid.user_column_by_cells(), grid.names, ", ".join(grid.names[:5])
    names = [name for at, name in enumerate(header) if at != first]
    rest = np.delete(grid.codes, [first] * (first >= 0), axis=1)
    is_known, numbers = grid.is_known[rest], grid.numbers[rest]
    places = are_places(names)
    if (is_known & ~np.isnan(numbers)).sum() >= max(is_known.sum() / 2, 1):
        if places:
            raise grid.error(
                f"the header {shown} may name items or places: say which by kind='rankings' or "
                "kind='orderings'"
            )
        if all(is_number(name) for name in names):
            raise grid.error(NO_HEADER)
        return _ranks_or_clicks(grid, numbers)
    if places:
        return "orderings"
    grid.refuse_decimal_commas()
    names = [name for name in header if word(name) not in USER]
    strange = [name for name in names if place_of(name) is None]
    if len(strange) < len(names):
        raise grid.error(NO_PLACE.format(strange[0]))
    raise grid.error(
        f"cannot tell from the header what this is, {shown!r}: name the columns user and item (and "
        "rank), or rank1, rank2, ..., or user, better and worse; or say which is which with "
        "columns={'user': ..., 'item': ...}, with header=False if there is none; or give kind, one "
        f"of {', '.join(KINDS)}"
    )


def _refuse_odd_place(grid: Grid) -> None:
    """Refuse a first column beside those of places that is none, and none of users, by the items
    in it."""
    first, *others = grid.names
    if grid.user_column() != 0 or not are_places(others) or _is_user_word(first):
        return
    known = np.intersect1d(np.flatnonzero(grid.is_known), grid.codes[:, 1:])
    items = [grid.texts[code] for code in np.intersect1d(known, grid.codes[:, 0])]
    if word(first) not in USER and items and not any(map(is_number, items)):
        raise grid.error(NO_PLACE.format(first))


def _ranks_or_clicks(grid: Grid, numbers: NDArray[np.float64]) -> str:
    """Of a table of numbers; one that may be counts is not guessed."""
    if np.isin(numbers, (0, 1)).sum() == (~np.isnan(numbers)).sum():
        return "wide-clicks"
    for row in np.flatnonzero((numbers == 0).any(axis=1)):
        known = np.sort(numbers[row][numbers[row] != 0])
        known = known[~np.isnan(known)]
        if not np.array_equal(known, np.arange(1, len(known) + 1)):
            raise grid.error(
                "these numbers, some of them 0, may be counts: say which by kind='wide-clicks', or "
                "kind='rankings' (and leave empty what has no rank)",
                int(row),
            )
    return "rankings"


def is_number(text: str) -> bool:
    """Whether a text is a number, yes or no."""
    return text.lower() in YES_NO or NUMBER.fullmatch(text) is not None


# Ranks and clicks


def read_ranks(grid: Grid, is_clicks: bool) -> Any:
    """One line a user, one column an item."""
    first, source = grid.user_column_by_cells(), grid.source
    places = [place for place in range(len(grid.names)) if place != first]
    items = [grid.names[place] for place in places]
    for place, name in zip(places, items, strict=True):
        if not name:
            raise source.error(None, f"column {place + 1} has no name in the header")
        if word(name) in NO_ITEM:
            message = f"column {name!r} is read as an item: leave it out if it is not one"
            warn(ColumnWarning(f"{source.name}: {message}"))
    codes = grid.codes[:, places]
    values = grid.numbers[codes]
    wrong = np.argwhere(grid.is_known[codes] & np.isnan(values))
    if len(wrong):
        row, place = wrong[0]
        is_asked = np.zeros(grid.codes.shape, dtype=bool)
        is_asked[row, places[place]] = True
        grid.refuse_decimal_commas(is_asked)
        text = grid.texts[codes[row, place]][:40]
        raise grid.error(f"wanted a number, got {text!r}", row, items[place])
    if np.isinf(values).any():
        raise source.error(None, "there are numbers too large to be ranks")
    users = grid.users(first)
    try:
        if is_clicks:
            _check_cells(grid, items, values, np.nan_to_num(values) < 0, "0 or more")
            return Preferences.from_clicks(np.nan_to_num(values) > 0, users=users, items=items)
        _check_ranks(grid, items, values)
        return Preferences.from_rankings(values, users=users, items=items)
    except (ValueError, TypeError) as error:
        if str(error).startswith(source.name):
            raise
        raise source.error(None, str(error)) from None


def _check_ranks(grid: Grid, items: list[str], values: NDArray[np.float64]) -> None:
    known = ~np.isnan(values)
    ranks = np.where(known, values, 0.0)
    is_odd = ranks != np.floor(ranks)
    for row in np.flatnonzero(is_odd.any(axis=1)):  # items that tie may share a mean rank
        _, places, counts = np.unique(ranks[row], return_inverse=True, return_counts=True)
        is_odd[row] &= counts[places] == 1
    wanted = f"a rank, a whole number from 1 to {len(items)}"
    _check_cells(grid, items, values, is_odd | (ranks < 0) | (ranks > len(items)), wanted)
    if ((values == 0).sum(axis=1) == 1).all() and (known.sum(axis=1) > 1).all():
        raise grid.error(
            "every user has one rank 0: ranks start at 1; leave the others empty", row=0
        )
    _check_ties(grid.error, np.arange(len(ranks)), ranks)


def _check_cells(
    grid: Grid,
    items: list[str],
    values: NDArray[np.float64],
    wrong: NDArray[np.bool_],
    wanted: str,
) -> None:
    if wrong.any():
        row, item = np.argwhere(wrong)[0]
        count = f"{int(wrong.sum())} of {wrong.size} cells are wrong"
        raise grid.error(f"wanted {wanted}, got {values[row, item]:g}; {count}", row, items[item])


def _check_ties(error: Any, rows: NDArray[Any], ranks: NDArray[np.float64]) -> None:
    """Refuse the first user whose equal ranks are not clear: the one in ``rows[user]``."""
    try:
        check_tied_ranks(ranks)
    except ValueError:
        for row, mine in zip(rows, ranks, strict=True):
            try:
                check_tied_ranks([mine])
            except ValueError:
                raise error(UNCLEAR, int(row)) from None


def rankings_of_long_table(table: Table) -> Rankings:
    """Columns user, item, rank; the same row twice counts once."""
    places = table.find("long-rankings")
    at_rank = places.pop("rank")
    coded = table.coded_table(places, {at_rank: as_codes()})
    coded.refuse_gaps()
    (rows,), users = join_names([coded.columns["user"]], None, "user")
    (columns,), items = join_names([coded.columns["item"]], None, "item")
    codes, values = distinct(coded.others[at_rank])
    texts = [text_of(value) for value in [*values, None]]
    is_said = np.array([text.lower() not in MISSING for text in texts])[codes]
    numbers = [float(text) if NUMBER.fullmatch(text) else np.nan for text in texts]
    ranks = np.array(numbers)[codes]

    def refuse(wrong: NDArray[np.bool_], wanted: str, at: NDArray[np.integer[Any]]) -> None:
        if wrong.any():
            row = int(at[wrong.argmax()])
            problem = f"wanted {wanted}, got {texts[codes[row]][:40]!r}"
            raise table.error(problem, row, table.names[at_rank])

    refuse(is_said & np.isnan(ranks), "a rank", coded.rows)
    # A cell that is there twice must have one rank.
    cells = rows.astype(np.int64) * len(items) + columns
    _, firsts, inverse = np.unique(cells, return_index=True, return_inverse=True)
    before = firsts[inverse]
    differs = is_said[before] & (ranks != ranks[before]) | (is_said != is_said[before])
    if differs.any():
        row = int(differs.argmax())
        user, item, first = users[rows[row]], items[columns[row]], int(before[row])
        raise table.error(
            f"{user!r} ranks {item!r} {texts[codes[row]]}, but {texts[codes[first]]} at "
            f"{table.at(first)}",
            row,
        )
    # Each rank is whole, or that of a tie, which may be a mean.
    firsts = np.sort(firsts)
    rows, columns, known, is_said = rows[firsts], columns[firsts], ranks[firsts], is_said[firsts]
    values_of, places_of = np.unique(known, return_inverse=True)
    shared = rows.astype(np.int64) * len(values_of) + places_of
    _, inverse, counts = np.unique(shared, return_inverse=True, return_counts=True)
    is_odd = (known != np.floor(known)) & (counts[inverse] == 1)
    refuse(is_said & is_odd, "a rank", firsts)
    is_beyond = ~((known >= 1) & (known <= len(items)))
    refuse(is_said & is_beyond, f"a rank from 1 to {len(items)}, the number of items", firsts)
    table_of_ranks = np.zeros((len(users), len(items)))
    table_of_ranks[rows[is_said], columns[is_said]] = known[is_said]
    _check_ties(table.error, firsts[np.unique(rows, return_index=True)[1]], table_of_ranks)
    return Preferences.from_rankings(table_of_ranks, users=users.tolist(), items=items.tolist())


# Items by place


def read_orderings(grid: Grid, has_header: bool) -> Rankings:
    """One line a user, items, best first; a column of users only under a header."""
    header, source = grid.names, grid.source
    _refuse_odd_place(grid)
    first = -1 if len(header) < 2 else grid.user_column()
    first = -1 if first is None else first
    rest = [name for at, name in enumerate(header) if at != first]
    strange = [name for name in rest if place_of(name) is None]
    if 0 < len(strange) < len(rest) and not any(name.isdecimal() for name in rest):
        raise grid.error(NO_PLACE.format(strange[0]))
    has_places = are_places(rest)
    if first >= 0 and not has_places:
        shown = ", ".join(header[:5])
        raise grid.error(f"the header {shown} names no places: write user, rank1, rank2, ...")
    # Is the first line a header? Numbers alone, without a column of users, may be items.
    texts = [*header, *(grid.texts[at] for at in np.unique(grid.codes))]
    are_numbers = first < 0 and all(text.isdecimal() for text in texts if text)
    is_header = has_header or (has_places and not are_numbers)
    first = first if is_header else -1
    order = None
    if is_header and has_places:
        try:
            order = order_of_places(rest)
        except ValueError as error:
            raise grid.error(str(error)) from None
    if is_header and not len(grid.lines):
        raise grid.error("there is a header, but no line after it")
    # The items of each user, by place.
    columns = [at for at in range(grid.codes.shape[1]) if at != first]
    lists = [[grid.texts[code] for code in row] for row in grid.codes[:, columns]]
    lines = grid.lines.tolist()
    if not is_header:
        lists, lines = [list(header), *lists], [grid.header[0], *lines]
    for row, (line, listed) in enumerate(zip(lines, lists, strict=True)):
        if order is not None:
            if any(listed[len(order) :]):
                n_items = max(at for at, item in enumerate(listed, 1) if item)
                raise source.error(
                    line, f"there are {n_items} items, but the header has {len(order)} places"
                )
            listed = [listed[at] for at in order]
        while listed and listed[-1] in NO_NAME:
            listed.pop()
        if "" in listed:
            raise source.error(
                line, f"place {listed.index('') + 1} is empty, but later ones are not"
            )
        if len(set(listed)) < len(listed):
            twice = [item for item, n in Counter(listed).items() if n > 1]
            raise source.error(line, f"{min(twice)!r} is there twice")
        lists[row] = listed
    users = grid.users(first)
    try:
        return Preferences.from_orderings(lists, users=users)
    except ValueError as error:
        raise source.error(None, str(error)) from None
