"""Read preferences from files: the kind of the data is seen from the header."""

import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..preferences.headers import (
    NO_ITEM,
    RANK,
    USER,
    are_places,
    is_long,
    is_long_clicks,
    may_be_pairs,
    odd_place,
    order_of_places,
    pairs_by,
    place_of,
    refuse_pairs,
    word,
)
from ..preferences.preferences import Clicks, ColumnWarning, Preferences, Rankings
from .archive import WrongFileError
from .arrays import read_npz, sparse_matrix
from .codes import NO_NAME
from .csv_files import Row, Source, decode, find_delimiter, open_source, read_rows, refuse_model
from .long_tables import (
    Columns,
    check_header,
    clicks_of,
    find_columns,
    full_rows,
    read_clicks,
    read_large,
)
from .preflib import ENDINGS as PREFLIB
from .preflib import read_preflib

KINDS = ("rankings", "long-rankings", "orderings", "clicks", "wide-clicks")
MISSING = frozenset(("", "na", "nan", "n/a", "null", "none", "-", ".", "?"))
YES_NO = {"true": "1", "yes": "1", "false": "0", "no": "0"}
Table = list[Row]


def read(
    path: str | os.PathLike[str],
    kind: str | None = None,
    *,
    encoding: str | None = None,
    ties: str = "error",
    rng: np.random.Generator | int | None = None,
    items: Sequence[Any] | None = None,
    quiet: bool = True,
) -> Rankings | Clicks:
    """Read preferences from a file.

    Names are kept as text. The order of users and items is that of
    :meth:`Preferences.from_clicks` and its like: sorted, or as the columns stand.

    Parameters
    ----------
    path : str or path
        A file of comma-, semicolon- or tab-separated values, with gzip if its name ends in .gz, or
        Parquet (or a folder of Parquet files, which are read as one), PrefLib (.soc, .soi, .toc,
        .toi), or NumPy (.npz with `rankings` or `clicks`, and maybe `users`, `items`, `weights`; or
        a sparse matrix of SciPy). "-" is standard input.
    kind : str, optional
        "rankings": one line a user, one column an item, ranks with 1 for the best, empty for not
        ranked; "long-rankings": columns user, item, rank; "orderings": one line a user, items, best
        first, seen from a header of places (1st, 2nd; rank1, rank2); "clicks": columns user and
        item, all others ignored; "wide-clicks": one line a user, one column an item, above 0 for a
        click. Default: seen from the header; what could be two things is refused.
    encoding : str, optional
        Default: UTF-8, or UTF-16 if the file says so.
    ties : str
        For PrefLib: "error", or "random" to break at random what cannot be kept as not known.
    rng : numpy.random.Generator or seed, optional
        For ``ties="random"``.
    items : sequence, optional
        For long clicks: the names of all items, such as those of a model, in their order.
    quiet : bool
        Without effect, as nothing is printed any more; kept for older calls.

    Warns
    -----
    ColumnWarning
        When a column that is not used may say which rows are no clicks, such as ratings.
    DroppedRowsWarning
        When rows have no user or no item.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "log.csv"
    >>> _ = file.write_text("user,item,time\\nann,tea,9:00\\nbob,mate,9:05\\nann,mate,9:10\\n")
    >>> read(file)
    Clicks(2 users, 2 items; 3 clicks)
    """
    return read_as(path, kind, encoding, ties, rng, items)[0]


def read_as(
    path: str | os.PathLike[str],
    kind: str | None = None,
    encoding: str | None = None,
    ties: str = "error",
    rng: np.random.Generator | int | None = None,
    items: Sequence[Any] | None = None,
    may_be_one_item: bool = False,
) -> tuple[Rankings | Clicks, str]:
    """The same, and what the file was read as, for those who like to be told.

    Long clicks that are added to others may be on one item only.
    """
    if kind is not None and kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    if ties not in ("error", "random"):
        raise ValueError(f"ties must be 'error' or 'random', got {ties!r}")
    source = open_source(path, None if items is None else list(items))
    source = replace(source, may_be_one_item=may_be_one_item)
    if source.is_blank():
        raise source.error(None, "the file is empty")
    if source.ending in PREFLIB:
        if kind not in (None, "rankings", "orderings"):
            raise source.error(None, f"a PrefLib file holds orders, not {kind}")
        text = decode(source, encoding)
        found: Rankings | Clicks = read_preflib(source, text, ties, np.random.default_rng(rng))
        said = "a PrefLib file"
    elif source.ending == ".npz":
        found, said = _read_arrays(source, kind), "NumPy arrays"
    elif source.ending in (".parquet", ".pq"):
        found, said = _read_parquet(source, kind)
    else:
        found, said = _read_text(source, kind, encoding)
    return found, f"{source.name}: read as {said}: {found}"


# Text


def _read_text(source: Source, kind: str | None, encoding: str | None) -> tuple[Any, str]:
    if kind in (None, "clicks") and encoding is None:
        pairs = read_large(source, is_said=kind is not None)
        if pairs is not None:
            return clicks_of(pairs), "clicks"
    text = decode(source, encoding)
    rows = read_rows(source, text, find_delimiter(source, text))
    header = next(rows, None)
    if header is None:
        raise source.error(None, "the file is empty")
    if kind in (None, "clicks") and is_long_clicks(header[1]):
        return read_clicks(source, header, rows, is_said=kind is not None), "clicks"
    return _read_table(source, [header, *rows], kind, has_header=False)


def _read_table(
    source: Source, table: Table, kind: str | None, has_header: bool
) -> tuple[Any, str]:
    """A table of any kind: first its kind, if it is not given."""
    try:
        refuse_pairs(table[0][1])
    except ValueError as error:
        raise source.error(table[0][0], str(error)) from None
    try:
        return _read_as_kind(source, table, kind, has_header)
    except ValueError:
        if kind is None and may_be_pairs(table[0][1]) and _has_pairs(table):
            raise source.error(table[0][0], pairs_by(table[0][1])) from None
        raise


def _has_pairs(table: Table) -> bool:
    """Whether a user has two lines, or most of the sides are text, as no ranks of two items are."""
    (_, header), rows = table[0], table[1:]
    first = next(place for place, cell in enumerate(header) if word(cell) in USER)
    users = [cells[first] for _, cells in rows if len(cells) > first]
    sides = [cell for _, cells in rows for at, cell in enumerate(cells) if at != first]
    is_text = sum(_is_number(cell) for cell in sides) < len(sides) / 2
    return is_text or len(set(users)) < len(users)


def _read_as_kind(
    source: Source, table: Table, kind: str | None, has_header: bool
) -> tuple[Any, str]:
    chosen = kind or _recognise(source, table)
    if chosen == "orderings":
        return _orderings(source, table, has_header), chosen
    check_header(source, table[0])
    if chosen in ("rankings", "wide-clicks") and is_long(table[0][1]):
        raise source.error(
            table[0][0], f"the header {', '.join(table[0][1][:5])} is that of a long table"
        )
    if chosen == "clicks":
        return read_clicks(source, table[0], iter(table[1:]), is_said=kind is not None), chosen
    rows = list(full_rows(source, table[0], iter(table[1:])))
    if not rows:
        raise source.error(None, "there is a header, but no line after it")
    if chosen == "long-rankings":
        columns = find_columns(source, table[0], needs_rank=True)
        return _long_rankings(source, rows, table[0], columns), chosen
    return _wide(source, table[0][1], rows, is_clicks=chosen == "wide-clicks"), chosen


def _recognise(source: Source, table: Table) -> str:
    """The kind of a table, by its header and its values."""
    line, header = table[0]
    if is_long(header):
        return "long-rankings" if any(word(cell) in RANK for cell in header) else "clicks"
    _refuse_odd_place(source, table)
    first = _user_column(header, table[1:])
    body = [[c for at, c in enumerate(cells) if at != first] for _, cells in table[1:]]
    cells = [cell for row in body for cell in row if cell.lower() not in MISSING]
    names = [cell for at, cell in enumerate(header) if at != first]
    places = are_places(names)
    if sum(_is_number(cell) for cell in cells) >= max(len(cells) / 2, 1):
        if places:
            raise source.error(
                line,
                f"the header {', '.join(header[:5])} may name items or places: say which by "
                "kind='rankings' or kind='orderings'",
            )
        if all(_is_number(cell) for cell in names):
            raise source.error(line, "there is no header: name the items in the first line")
        return _ranks_or_clicks(source, table, body)
    if places:
        return "orderings"
    _refuse_decimal_commas(source, table[1:])
    if any(place_of(name) is not None for name in names):
        strange = next(name for name in names if place_of(name) is None)
        raise source.error(line, _no_place(strange))
    raise source.error(
        line,
        f"cannot tell what this is by its header, {', '.join(header[:5])!r}: name the columns user "
        f"and item (and rank), or rank1, rank2, ...; or give kind, one of {', '.join(KINDS)}",
    )


def _refuse_odd_place(source: Source, table: Table) -> None:
    """Refuse a column beside those of places that is none, and none of users: by its name, or, if
    it is the first, by the items in it."""
    line, header = table[0]
    strange = odd_place(header)
    has_users = any(word(cell) in USER for cell in header)
    if strange is None and not has_users and len(header) > 2 and are_places(header[1:]):
        listed = {cell for _, cells in table[1:] for cell in cells[1:]} - MISSING
        items = {cells[0] for _, cells in table[1:]} & listed
        is_place = _is_user_word(header[0]) or place_of(header[0]) is not None
        strange = header[0] if items and not is_place and not any(map(_is_number, items)) else None
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
        found = [value for cell in row if (value := _value(cell)) is not None]
        known = sorted(value for value in found if value)
        if len(known) < len(found) and known != list(range(1, len(known) + 1)):
            raise source.error(
                line,
                "these numbers, some of them 0, may be counts: say which by kind='wide-clicks', or "
                "kind='rankings' (and leave empty what has no rank)",
            )
    return "rankings"


def _value(cell: str) -> float | None:
    """The number in a cell, None if there is none."""
    return float(YES_NO.get(cell.lower(), cell)) if _is_number(cell) else None


def _is_number(cell: str) -> bool:
    if cell.lower() in YES_NO:
        return True
    return re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", cell, re.I | re.A) is not None


def _refuse_decimal_commas(source: Source, rows: Table) -> None:
    for line, cells in rows:
        for cell in cells:
            if re.fullmatch(r"[+-]?\d+,\d+", cell, re.A):
                raise source.error(
                    line, f"{cell[:40]!r} has a decimal comma: write a point, or whole numbers"
                )


def _user_column(header: list[str], rows: Sequence[Row]) -> int:
    """The column of a wide table that names the users, -1 for none."""
    for place, cell in enumerate(header):
        if word(cell) in USER:
            return place
    if _is_user_word(header[0]):
        return 0
    if len(header) > 2 and are_places(header[1:]):
        return 0 if place_of(header[0]) is None else -1
    first = [cells[0] for _, cells in rows if cells[0].lower() not in MISSING]
    return 0 if sum(not _is_number(cell) for cell in first) > len(first) / 2 else -1


def _is_user_word(name: str) -> bool:
    """Whether a first column of this name is that of the users."""
    found = word(name)
    return found in ("", "id", "name", "nr", "no", "row", "index") or found.endswith("id")


# Rankings


def _wide(source: Source, header: list[str], rows: Table, is_clicks: bool) -> Any:
    """One line a user, one column an item."""
    first = _user_column(header, rows)
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
            warnings.warn(
                ColumnWarning(
                    f"{source.name}: column {name!r} is read as an item: leave it out if it is none"
                ),
                stacklevel=2,
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
                if cell.lower() not in MISSING and not _is_number(cell):
                    _refuse_decimal_commas(source, [(line, [cell])])
                    raise source.error(line, f"wanted a number, got {cell[:40]!r}", name)
        raise source.error(None, "there are numbers too large to be ranks")
    return values.reshape(len(rows), len(items))


def _check_ranks(
    source: Source, items: list[str], rows: Table, values: NDArray[np.float64]
) -> None:
    known = ~np.isnan(values)
    whole = np.where(known, values == np.floor(values), True)
    inside = np.where(known, (values >= 0) & (values <= len(items)), True)
    wanted = f"a rank, a whole number from 1 to {len(items)}"
    _check_cells(source, items, rows, values, ~(whole & inside), wanted)
    zeros = (values == 0).sum(axis=1)
    if (zeros == 1).all() and (known.sum(axis=1) > 1).all():
        raise source.error(
            rows[0][0], "every user has one rank 0: ranks start at 1; leave the others empty"
        )
    ranks = np.where(known, values, 0).astype(np.int64)
    order = np.argsort(ranks, axis=1, kind="stable")
    ordered = np.take_along_axis(ranks, order, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] > 0)
    if twice.any():
        row, place = np.argwhere(twice)[0]
        one, other = (items[order[row, place + i]] for i in range(2))
        raise source.error(
            rows[row][0],
            f"{one!r} and {other!r} both have rank {ordered[row, place]}: each rank goes to one "
            "item; leave equal ones empty",
        )


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


def _long_rankings(source: Source, rows: Table, header: Row, columns: Columns) -> Rankings:
    """Columns user, item, rank; the same row twice counts once."""
    cells: dict[tuple[str, str], tuple[int, str]] = {}
    for line, row in rows:
        user, item, rank = row[columns.user], row[columns.item], row[columns.rank]
        for name, what in ((user, columns.user), (item, columns.item)):
            if not name:
                raise source.error(line, "the cell is empty", header[1][what])
        rank = "" if rank.lower() in MISSING else rank
        before = cells.setdefault((user, item), (line, rank))
        if before[1] != rank:
            raise source.error(
                line, f"{user!r} ranks {item!r} {rank}, but {before[1]} at line {before[0]}"
            )
    users = sorted({user for user, _ in cells})
    items = sorted({item for _, item in cells})
    row_of, item_of = ({n: i for i, n in enumerate(names)} for names in (users, items))
    ranks = np.zeros((len(users), len(items)))
    owners: dict[tuple[str, float], tuple[int, str]] = {}
    for (user, item), (line, text) in cells.items():
        value = float(text) if text and _is_number(text) else float("nan")
        if text and not (value == int(value) if abs(value) < 1e15 else False):
            raise source.error(line, f"wanted a rank, got {text[:40]!r}", header[1][columns.rank])
        if text and not 1 <= value <= len(items):
            wanted = f"a rank from 1 to {len(items)}, the number of items"
            raise source.error(line, f"wanted {wanted}, got {text}", header[1][columns.rank])
        value = 0.0 if np.isnan(value) else value
        other = owners.setdefault((user, value), (line, item)) if value else (line, item)
        if other[1] != item:
            raise source.error(
                line,
                f"{user!r} gives rank {text} to {item!r} and, at line {other[0]}, {other[1]!r}",
            )
        ranks[row_of[user], item_of[item]] = value
    try:
        return Preferences.from_rankings(ranks, users=users, items=items)
    except ValueError as error:
        raise source.error(None, str(error)) from None


def _orderings(source: Source, table: Table, has_header: bool) -> Rankings:
    """One line a user, items, best first; a column of users only under a header."""
    line, header = table[0]
    _refuse_odd_place(source, table)
    first = _user_column(header, []) if len(header) > 1 else -1
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
            raise source.error(number, f"place {listed.index('') + 1} is empty, but later ones not")
        twice = {item for item in listed if listed.count(item) > 1} if listed else set()
        if twice:
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


# Parquet and NumPy


def _read_parquet(source: Source, kind: str | None) -> tuple[Any, str]:
    from . import parquet as arrow

    names, n_rows = arrow.parquet_header(source)
    if not names or not n_rows:
        raise source.error(None, "the file has no rows or no columns")
    header = (1, names)
    if kind in (None, "clicks") and is_long_clicks(names):
        pairs = arrow.read_parquet_pairs(source, is_said=kind is not None)
        return clicks_of(pairs), "clicks"
    check_header(source, header)
    columns_of_text = arrow.read_parquet_text(source)
    rows = [(line, list(cells)) for line, cells in enumerate(zip(*columns_of_text, strict=True), 2)]
    return _read_table(source, [header, *rows], kind, has_header=True)


def _read_arrays(source: Source, kind: str | None) -> Any:
    """Arrays of NumPy, or a sparse matrix of SciPy."""
    refuse_model(source, source.content)
    try:
        arrays = read_npz(source.content)
    except WrongFileError as error:
        raise source.error(None, f"these NumPy arrays cannot be read: the file {error}") from None
    names = {
        name: [str(value) for value in arrays[name].ravel().tolist()]
        for name in ("users", "items")
        if name in arrays
    }
    weights = arrays.get("weights")
    try:
        if "rankings" in arrays and kind in (None, "rankings"):
            return Preferences.from_rankings(arrays["rankings"], weights=weights, **names)
        if "clicks" in arrays and kind in (None, "clicks", "wide-clicks"):
            return Preferences.from_clicks(arrays["clicks"], weights=weights, **names)
        if "format" in arrays and "shape" in arrays and kind in (None, "clicks", "wide-clicks"):
            matrix = sparse_matrix(arrays)
            return Preferences.from_clicks(matrix, weights=weights, **names)
    except (ValueError, TypeError, KeyError, IndexError, NotImplementedError) as error:
        raise source.error(None, str(error)) from None
    raise source.error(
        None,
        f"wanted an array 'rankings' or 'clicks', or a sparse matrix, got {sorted(arrays)[:5]}",
    )
