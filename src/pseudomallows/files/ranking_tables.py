"""Tables of rankings and of clicks, one line a user, and long tables of ranks."""

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._warn import warn
from ..preferences import ColumnWarning, Preferences, Rankings
from ..preferences.inputs.headers import NO_ITEM, are_places, order_of_places, word
from ..preferences.ties import UNCLEAR, check_tied_ranks
from .csv_files import Row
from .kinds import (
    MISSING,
    YES_NO,
    Table,
    is_number,
    refuse_decimal_commas,
    refuse_odd_place,
    user_column,
)
from .source import Source
from .tables import NO_NAME


def read_wide(source: Source, header: list[str], rows: Table, is_clicks: bool) -> Any:
    """One line a user, one column an item."""
    first = user_column(header, rows)
    users = [cells[first] for _, cells in rows] if first >= 0 else None
    for place, name in enumerate(header):
        if not name and place != first:
            raise source.error(None, f"column {place + 1} has no name in the header")
    if first >= 0:
        rows = [(line, [*cells[:first], *cells[first + 1 :]]) for line, cells in rows]
        header = [*header[:first], *header[first + 1 :]]
    items = header
    for name in items:
        if word(name) in NO_ITEM:
            warn(
                ColumnWarning(
                    f"{source.name}: column {name!r} is read as an item: leave it out if it is not "
                    "one"
                )
            )
    values = _numbers(source, items, rows)
    if users is not None:
        _check_users(source, users, rows)
    try:
        if is_clicks:
            _check_cells(source, items, rows, values, np.nan_to_num(values) < 0, "0 or more")
            return Preferences.from_clicks(np.nan_to_num(values) > 0, users=users, items=items)
        _check_ranks(source, items, rows, values)
        return Preferences.from_rankings(values, users=users, items=items)
    except (ValueError, TypeError) as error:
        if str(error).startswith(source.name):
            raise
        raise source.error(None, str(error)) from None


def _numbers(source: Source, items: list[str], rows: Table) -> NDArray[np.float64]:
    cells = [
        "nan" if cell.lower() in MISSING else YES_NO.get(cell.lower(), cell)
        for _, row in rows
        for cell in row
    ]
    text = "".join(cells)
    try:
        plain = text.isascii() and "_" not in text
        values = np.array(cells if plain else [], dtype=np.float64)
    except ValueError:
        values = np.array([], dtype=np.float64)
    if len(values) == 0 or np.isinf(values).any():
        for line, row in rows:
            for name, cell in zip(items, row, strict=True):
                if cell.lower() not in MISSING and not is_number(cell):
                    refuse_decimal_commas(source, [(line, [cell])])
                    raise source.error(line, f"wanted a number, got {cell[:40]!r}", name)
        raise source.error(None, "there are numbers too large to be ranks")
    return values.reshape(len(rows), len(items))


def _check_ranks(
    source: Source, items: list[str], rows: Table, values: NDArray[np.float64]
) -> None:
    known = ~np.isnan(values)
    ranks = np.where(known, values, 0.0)
    is_odd = ranks != np.floor(ranks)
    for row in np.flatnonzero(is_odd.any(axis=1)):  # items that tie may share a mean rank
        _, places, counts = np.unique(ranks[row], return_inverse=True, return_counts=True)
        is_odd[row] &= counts[places] == 1
    wanted = f"a rank, a whole number from 1 to {len(items)}"
    wrong = is_odd | (ranks < 0) | (ranks > len(items))
    _check_cells(source, items, rows, values, wrong, wanted)
    zeros = (values == 0).sum(axis=1)
    if (zeros == 1).all() and (known.sum(axis=1) > 1).all():
        raise source.error(
            rows[0][0], "every user has one rank 0: ranks start at 1; leave the others empty"
        )
    _check_ties(source, [line for line, _ in rows], ranks)


def _check_ties(source: Source, lines: list[int], ranks: NDArray[np.float64]) -> None:
    """Refuse the first row whose equal ranks are not clear; that of a user is ``lines[user]``."""
    try:
        check_tied_ranks(ranks)
    except ValueError:
        for line, row in zip(lines, ranks, strict=True):
            try:
                check_tied_ranks([row])
            except ValueError:
                raise source.error(line, UNCLEAR) from None


def _check_cells(
    source: Source,
    items: list[str],
    rows: Table,
    values: NDArray[np.float64],
    wrong: NDArray[np.bool_],
    wanted: str,
) -> None:
    if wrong.any():
        row, item = np.argwhere(wrong)[0]
        raise source.error(
            rows[row][0],
            f"wanted {wanted}, got {values[row, item]:g}; {int(wrong.sum())} of {wrong.size} cells "
            "are wrong",
            items[item],
        )


def _check_users(source: Source, users: list[str], rows: Table) -> None:
    seen: dict[str, int] = {}
    for name, (line, _) in zip(users, rows, strict=True):
        if not name:
            raise source.error(line, "the user has no name")
        if name in seen:
            raise source.error(line, f"user {name!r} is there already, at line {seen[name]}")
        seen[name] = line


def read_long_rankings(
    source: Source, rows: Table, header: Row, places: dict[str, int]
) -> Rankings:
    """Columns user, item, rank; the same row twice counts once."""
    cells: dict[tuple[str, str], tuple[int, str]] = {}
    for line, row in rows:
        user, item, rank = (row[places[what]] for what in ("user", "item", "rank"))
        for name, what in ((user, "user"), (item, "item")):
            if not name:
                raise source.error(line, "the cell is empty", header[1][places[what]])
        rank = "" if rank.lower() in MISSING else rank
        before = cells.setdefault((user, item), (line, rank))
        if before[1] != rank:
            raise source.error(
                line, f"{user!r} ranks {item!r} {rank}, but {before[1]} at line {before[0]}"
            )
    users = sorted({user for user, _ in cells})
    items = sorted({item for _, item in cells})
    row_of, item_of = ({n: i for i, n in enumerate(names)} for names in (users, items))
    counts = Counter((user, rank) for (user, _), (_, rank) in cells.items())
    ranks = np.zeros((len(users), len(items)))
    lines: dict[str, int] = {}  # the first of each user
    for (user, item), (line, text) in cells.items():
        lines.setdefault(user, line)
        if not text:
            continue
        value = float(text) if is_number(text) else np.nan
        is_rank = value == np.floor(value) or counts[user, text] > 1  # a tie may have a mean rank
        if not is_rank or np.isnan(value):
            raise source.error(line, f"wanted a rank, got {text[:40]!r}", header[1][places["rank"]])
        if not 1 <= value <= len(items):
            wanted = f"a rank from 1 to {len(items)}, the number of items"
            raise source.error(line, f"wanted {wanted}, got {text}", header[1][places["rank"]])
        ranks[row_of[user], item_of[item]] = value
    _check_ties(source, [lines[user] for user in users], ranks)
    try:
        return Preferences.from_rankings(ranks, users=users, items=items)
    except ValueError as error:
        raise source.error(None, str(error)) from None


def read_orderings(source: Source, table: Table, has_header: bool) -> Rankings:
    """One line a user, items, best first; a column of users only under a header."""
    line, header = table[0]
    refuse_odd_place(source, table)
    first = user_column(header, []) if len(header) > 1 else -1
    rest = [cell for at, cell in enumerate(header) if at != first]
    places = are_places(rest)
    numbers = all(cell.isdecimal() for _, cells in table for cell in cells if cell)
    is_header = has_header or (places and not (numbers and first < 0))
    named = is_header and first >= 0
    if first >= 0 and not places:
        raise source.error(
            line,
            f"the header {', '.join(header[:5])} names no places: write user, rank1, rank2, ...",
        )
    rows = table[1:] if is_header else table
    if not rows:
        raise source.error(line, "there is a header, but no line after it")
    order = _places_of(source, line, rest) if is_header and places else None
    lists, users = [], []
    for number, cells in rows:
        listed = [cell for at, cell in enumerate(cells) if not (named and at == first)]
        if order is not None:
            if any(listed[len(order) :]):
                raise source.error(
                    number, f"there are {len(listed)} items, but the header has {len(order)} places"
                )
            listed = [listed[at] if at < len(listed) else "" for at in order]
        while listed and listed[-1] in NO_NAME:
            listed.pop()
        if "" in listed:
            raise source.error(
                number, f"place {listed.index('') + 1} is empty, but later ones are not"
            )
        if len(set(listed)) < len(listed):
            twice = [item for item, n in Counter(listed).items() if n > 1]
            raise source.error(number, f"{min(twice)!r} is there twice")
        lists.append(listed)
        users.append(cells[first] if named else "")
    if named:
        _check_users(source, users, rows)
    try:
        return Preferences.from_orderings(lists, users=users if named else None)
    except ValueError as error:
        raise source.error(None, str(error)) from None


def _places_of(source: Source, line: int, names: list[str]) -> list[int]:
    try:
        return order_of_places(names)
    except ValueError as error:
        raise source.error(line, str(error)) from None
