"""Kinds of tables: what the header and the cells say, and what is refused as it may be two."""

import re
from collections.abc import Sequence

from ..preferences.inputs.headers import RANK, USER, are_places, is_long, odd_place, place_of, word
from .csv_files import COMMA, Row
from .source import Source

KINDS = ("rankings", "long-rankings", "orderings", "clicks", "wide-clicks", "pairs", "impressions")
NO_HEADER = (
    "there is no header: name the items in the first line; of clicks, say header=False, and "
    "columns=['user', 'item', ...]"
)
MISSING = frozenset(("", "na", "nan", "n/a", "null", "none", "-", ".", "?"))
YES_NO = {"true": "1", "yes": "1", "false": "0", "no": "0"}
Table = list[Row]


def recognise(source: Source, table: Table) -> str:
    """The kind of a table, by its header and its values."""
    line, header = table[0]
    if is_long(header):
        return "long-rankings" if any(word(cell) in RANK for cell in header) else "clicks"
    refuse_odd_place(source, table)
    first = user_column(header, table[1:])
    body = [[c for at, c in enumerate(cells) if at != first] for _, cells in table[1:]]
    cells = [cell for row in body for cell in row if cell.lower() not in MISSING]
    names = [cell for at, cell in enumerate(header) if at != first]
    places = are_places(names)
    if sum(is_number(cell) for cell in cells) >= max(len(cells) / 2, 1):
        if places:
            raise source.error(
                line,
                f"the header {', '.join(header[:5])} may name items or places: say which by "
                "kind='rankings' or kind='orderings'",
            )
        if all(is_number(cell) for cell in names):
            raise source.error(line, NO_HEADER)
        return _ranks_or_clicks(source, table, body)
    if places:
        return "orderings"
    refuse_decimal_commas(source, table[1:])
    if any(place_of(name) is not None for name in names):
        strange = next(name for name in names if place_of(name) is None)
        raise source.error(line, _no_place(strange))
    raise source.error(
        line,
        f"cannot tell from the header what this is, {', '.join(header[:5])!r}: name the columns "
        "user and item (and rank), or rank1, rank2, ..., or user, better and worse; or say which "
        "is which with columns={'user': ..., 'item': ...}, with header=False if there is none; or "
        f"give kind, one of {', '.join(KINDS)}",
    )


def refuse_odd_place(source: Source, table: Table) -> None:
    """Refuse a column beside those of places that is none, and none of users: by its name, or, if
    it is the first, by the items in it."""
    line, header = table[0]
    strange = odd_place(header)
    has_users = any(word(cell) in USER for cell in header)
    if strange is None and not has_users and len(header) > 2 and are_places(header[1:]):
        listed = {cell for _, cells in table[1:] for cell in cells[1:]} - MISSING
        items = {cells[0] for _, cells in table[1:]} & listed
        is_place = _is_user_word(header[0]) or place_of(header[0]) is not None
        strange = header[0] if items and not is_place and not any(map(is_number, items)) else None
    if strange is not None:
        raise source.error(line, _no_place(str(strange)))


def _no_place(name: str) -> str:
    return (
        f"{name!r} is no known place: name the columns of places rank1, rank2, ..., and the column "
        "of users 'user'"
    )


def _ranks_or_clicks(source: Source, table: Table, body: list[list[str]]) -> str:
    """Of a table of numbers; one that may be counts is not guessed."""
    values = {_value(cell) for row in body for cell in row}
    if values <= {0.0, 1.0, None}:
        return "wide-clicks"
    for (line, _), row in zip(table[1:], body, strict=True):
        numbers = [value for cell in row if (value := _value(cell)) is not None]
        known = sorted(value for value in numbers if value)
        if len(known) < len(numbers) and known != list(range(1, len(known) + 1)):
            raise source.error(
                line,
                "these numbers, some of them 0, may be counts: say which by kind='wide-clicks', or "
                "kind='rankings' (and leave empty what has no rank)",
            )
    return "rankings"


def _value(cell: str) -> float | None:
    """The number in a cell, None if there is none."""
    return float(YES_NO.get(cell.lower(), cell)) if is_number(cell) else None


def is_number(cell: str) -> bool:
    """Whether there is a number in a cell, yes or no."""
    if cell.lower() in YES_NO:
        return True
    return re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", cell, re.I | re.A) is not None


def refuse_decimal_commas(source: Source, rows: Table) -> None:
    """Refuse a number that is written with a comma."""
    for line, cells in rows:
        for cell in cells:
            if COMMA.fullmatch(cell):
                raise source.error(
                    line, f"{cell[:40]!r} has a decimal comma: write a point, or whole numbers"
                )


def user_column(header: list[str], rows: Sequence[Row]) -> int:
    """The column of a wide table that names the users, -1 for none."""
    for place, cell in enumerate(header):
        if word(cell) in USER:
            return place
    if _is_user_word(header[0]):
        return 0
    if len(header) > 2 and are_places(header[1:]):
        return 0 if place_of(header[0]) is None else -1
    first = [cells[0] for _, cells in rows if cells[0].lower() not in MISSING]
    return 0 if sum(not is_number(cell) for cell in first) > len(first) / 2 else -1


def _is_user_word(name: str) -> bool:
    """Whether a first column of this name is that of the users."""
    header = word(name)
    return header in ("", "id", "name", "nr", "no", "row", "index") or header.endswith("id")


def has_pairs(table: Table) -> bool:
    """Whether a user has two lines, or most of the sides are text, as no ranks of two items are."""
    (_, header), rows = table[0], table[1:]
    first = next(place for place, cell in enumerate(header) if word(cell) in USER)
    users = [cells[first] for _, cells in rows if len(cells) > first]
    sides = [cell for _, cells in rows for at, cell in enumerate(cells) if at != first]
    is_text = sum(is_number(cell) for cell in sides) < len(sides) / 2
    return is_text or len(set(users)) < len(users)
