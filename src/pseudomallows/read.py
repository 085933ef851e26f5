"""Read preferences from files: the kind of the data is seen from the header."""

import io
import os
import re
import sys
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .preferences import Clicks, Preferences, Rankings, clicks_of_pairs
from .preflib import ENDINGS as PREFLIB
from .preflib import read_preflib
from .text import Row, Source, decode, find_delimiter, open_source, read_rows

KINDS = ("rankings", "long-rankings", "orderings", "clicks", "wide-clicks")
USER = {"user", "users", "userid", "customer", "customerid", "visitor", "visitorid", "session"}
USER |= {"sessionid", "person", "assessor", "voter", "respondent", "judge"}
ITEM = {"item", "items", "itemid", "product", "productid", "stockcode", "article", "articleid"}
ITEM |= {"movie", "movieid", "track", "trackid", "page", "pageid", "asin", "alternative"}
RANK = {"rank", "ranks", "ranking", "position"}
MISSING = frozenset(("", "na", "nan", "n/a", "null", "none", "-", ".", "?"))
PLACE = re.compile(r"(rank|place|choice|position|top|no\.?|#)?[ _-]?(\d+)(st|nd|rd|th)?", re.I)
LONG = 2_000_000  # bytes of clicks from which pyarrow, if it is there, reads them
Table = list[Row]
Codes = NDArray[np.int32]
Encoded = tuple[Codes, list[str]]  # codes, -1 where missing, and names


class DroppedRowsWarning(UserWarning):
    """Rows of a file without a user or without an item, which say nothing."""


@dataclass(frozen=True)
class Columns:
    """Where, in a long table, user, item and rank stand; the rank at -1 if there is none."""

    user: int
    item: int
    rank: int


def read(
    path: str | os.PathLike[str],
    kind: str | None = None,
    *,
    encoding: str | None = None,
    ties: str = "error",
    rng: np.random.Generator | int | None = None,
    quiet: bool = False,
) -> Rankings | Clicks:
    """Read preferences from a file.

    Names are kept as text. The order of users and items is that of
    :meth:`Preferences.from_clicks` and its like: sorted, or as the columns stand.

    Parameters
    ----------
    path : str or path
        A file of comma-, semicolon- or tab-separated values, with gzip if its name ends in .gz, or
        Parquet, PrefLib (.soc, .soi, .toc, .toi), or NumPy (.npz with `rankings` or `clicks`, and
        maybe `users`, `items`, `weights`; or a sparse matrix of SciPy). "-" is standard input.
    kind : str, optional
        "rankings": one line a user, one column an item, ranks with 1 for the best, empty for not
        ranked; "long-rankings": columns user, item, rank; "orderings": one line a user, items, best
        first; "clicks": columns user and item, all others ignored; "wide-clicks": one line a user,
        one column an item, above 0 for a click. Default: seen from the header, and said on standard
        error.
    encoding : str, optional
        Default: UTF-8, or UTF-16 if the file says so.
    ties : str
        For PrefLib: "error", or "random" to break at random what cannot be kept as not known.
    rng : numpy.random.Generator or seed, optional
        For ``ties="random"``.
    quiet : bool
        Say nothing about the kind.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "log.csv"
    >>> _ = file.write_text("user,item,time\\nann,tea,9:00\\nbob,mate,9:05\\nann,mate,9:10\\n")
    >>> read(file, quiet=True)
    Clicks(2 users, 2 items; 3 clicks)
    """
    if kind is not None and kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    if ties not in ("error", "random"):
        raise ValueError(f"ties must be 'error' or 'random', got {ties!r}")
    source = open_source(path)
    if not source.content.strip():
        raise source.error(None, "the file is empty")
    if source.ending in PREFLIB:
        text = decode(source, encoding)
        found: Rankings | Clicks = read_preflib(source, text, ties, np.random.default_rng(rng))
        said = "a PrefLib file"
    elif source.ending == ".npz":
        found, said = _read_arrays(source, kind), "NumPy arrays"
    elif source.ending in (".parquet", ".pq"):
        found, said = _read_parquet(source, kind)
    else:
        found, said = _read_text(source, kind, encoding)
    if not quiet and kind is None:
        print(f"{source.name}: read as {said}: {found}", file=sys.stderr)
    return found


# Text


def _read_text(source: Source, kind: str | None, encoding: str | None) -> tuple[Any, str]:
    if len(source.content) >= LONG and kind in (None, "clicks") and encoding is None:
        found = _read_long_clicks(source)
        if found is not None:
            return found, "clicks"
    text = decode(source, encoding)
    rows = read_rows(source, text, find_delimiter(source, text))
    header = next(rows, None)
    if header is None:
        raise source.error(None, "the file is empty")
    if kind in (None, "clicks") and _is_long_clicks(header[1]):
        return _read_clicks(source, header, rows), "clicks"
    return _read_table(source, [header, *rows], kind)


def _is_long_clicks(header: list[str]) -> bool:
    words = [_word(cell) for cell in header]
    return (
        any(word in USER for word in words)
        and any(word in ITEM for word in words)
        and not any(word in RANK for word in words)
    )


def _read_table(source: Source, table: Table, kind: str | None) -> tuple[Any, str]:
    """A table of any kind: first its kind, if it is not given."""
    chosen = kind or _recognise(source, table)
    if chosen == "orderings":
        return _orderings(source, table), chosen
    _check_header(source, table[0])
    if chosen == "clicks":
        return _read_clicks(source, table[0], iter(table[1:])), chosen
    rows = list(_full_rows(source, table[0], iter(table[1:])))
    if not rows:
        raise source.error(None, "there is a header, but no line after it")
    if chosen == "long-rankings":
        columns = _find_columns(source, table[0], needs_rank=True)
        return _long_rankings(source, rows, table[0], columns), chosen
    return _wide(source, table[0][1], rows, is_clicks=chosen == "wide-clicks"), chosen


def _word(cell: str) -> str:
    return re.sub(r"[\s_-]", "", cell.lower())


def _recognise(source: Source, table: Table) -> str:
    """The kind of a table, by its header and its values."""
    line, header = table[0]
    words = [_word(cell) for cell in header]
    is_long = any(word in USER for word in words) and any(word in ITEM for word in words)
    if is_long:
        return "long-rankings" if any(word in RANK for word in words) else "clicks"
    body = [cells[_n_names(header, table[1:]) :] for _, cells in table[1:]]
    cells = [cell for row in body for cell in row if cell.lower() not in MISSING]
    n_numbers = sum(_is_number(cell) for cell in cells)
    if n_numbers < len(cells) / 2 or not cells:
        if _looks_ordered(table):
            return "orderings"
        raise source.error(
            line,
            f"cannot tell what this is, by its header {', '.join(header[:5])!r}: name the columns "
            f"user and item (and rank), or give kind, one of {', '.join(KINDS)}",
        )
    if all(PLACE.fullmatch(cell) for cell in header[_n_names(header, table[1:]) :]):
        raise source.error(
            line,
            f"the header {', '.join(header[:5])} may name items or places: say which by "
            "kind='rankings' or kind='orderings'",
        )
    values = {float(cell) for cell in cells if _is_number(cell)}
    return "wide-clicks" if values <= {0.0, 1.0} else "rankings"


def _looks_ordered(table: Table) -> bool:
    """Do the columns name places, or has one name different places in different lines?"""
    _, header = table[0]
    named = _word(header[0]) in USER
    if header[named:] and all(PLACE.fullmatch(cell) for cell in header[named:]):
        return True
    places: dict[str, int] = {}
    rows = (cells[named:] for _, cells in table[named:])
    pairs = ((place, cell) for cells in rows for place, cell in enumerate(cells) if cell)
    return any(places.setdefault(cell, place) != place for place, cell in pairs)


def _is_number(cell: str) -> bool:
    return re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", cell, re.I | re.A) is not None


def _n_names(header: list[str], rows: Sequence[Row]) -> int:
    """1 if the first column of a wide table names the users, else 0."""
    if _word(header[0]) in USER | {"", "id", "name"}:
        return 1
    first = [cells[0] for _, cells in rows]
    return int(any(cell.lower() not in MISSING and not _is_number(cell) for cell in first))


def _check_header(source: Source, header: Row) -> None:
    line, names = header
    seen: set[str] = set()
    for name in names:
        if name and name in seen:
            raise source.error(line, f"the header has {name!r} twice: give each column a name")
        seen.add(name)


def _full_rows(source: Source, header: Row, rows: Iterator[Row]) -> Iterator[Row]:
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


def _find_columns(source: Source, header: Row, needs_rank: bool) -> Columns:
    line, names = header
    places = []
    wanted = {"user": USER, "item": ITEM} | ({"rank": RANK} if needs_rank else {})
    for what, known in wanted.items():
        found = [place for place, name in enumerate(names) if _word(name) in known]
        exact = [place for place in found if _word(names[place]) == what]
        found = exact or found
        if len(found) != 1:
            problem = "no column" if not found else f"{len(found)} columns"
            raise source.error(
                line,
                f"{problem} for the {what}: name one of {', '.join(names[:8])} {what!r}",
            )
        places.append(found[0])
    return Columns(places[0], places[1], places[2] if needs_rank else -1)


# Clicks


def _read_long_clicks(source: Source) -> Clicks | None:
    """Clicks of a large file, by pyarrow, if it is there and understands the file; else None."""
    try:
        from . import arrow
    except ModuleNotFoundError:  # pragma: no cover
        return None
    first = source.content[: source.content.find(b"\n") + 1]
    line = first.decode("utf-8-sig", "replace")
    if not line.strip() or line.count('"') % 2 or first[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return None
    delimiter = find_delimiter(source, line)
    if source.content.find(f'{delimiter} "'.encode()) >= 0:  # a quote that pyarrow takes as text
        return None
    header = next(read_rows(source, line, delimiter))
    if not _is_long_clicks(header[1]):
        return None
    _check_header(source, header)
    columns = _find_columns(source, header, needs_rank=False)
    wanted = (columns.user, columns.item)
    pairs = arrow.read_codes(source.content, delimiter, len(header[1]), wanted)
    return None if pairs is None else _clicks_of_codes(source, *pairs)


def _read_clicks(source: Source, header: Row, rows: Iterator[Row]) -> Clicks:
    _check_header(source, header)
    columns = _find_columns(source, header, needs_rank=False)
    users: dict[str, int] = {}
    items: dict[str, int] = {}
    owners, codes, lines = [], [], []
    for line, cells in _full_rows(source, header, rows):
        user, item = cells[columns.user], cells[columns.item]
        owners.append(users.setdefault(user, len(users)) if user else -1)
        codes.append(items.setdefault(item, len(items)) if item else -1)
        lines.append(line)
    if not lines:
        raise source.error(None, "there is a header, but no line after it")
    pairs = [(np.array(of, np.int32), list(to)) for of, to in ((owners, users), (codes, items))]
    return _clicks_of_codes(source, pairs[0], pairs[1], lines=np.array(lines))


def _clicks_of_codes(
    source: Source,
    users: Encoded,
    items: Encoded,
    lines: NDArray[np.int64] | None = None,
) -> Clicks:
    """Clicks from codes, -1 where a name is missing, and names, which get sorted."""
    said = (users[0] >= 0) & (items[0] >= 0)
    if not said.all():
        first = int(said.argmin())
        where = f"row {first + 1}" if lines is None else f"line {lines[first]}"
        warnings.warn(
            DroppedRowsWarning(
                f"{source.name}: {int((~said).sum())} of {len(said)} rows have no user or no item "
                f"and are left out, the first at {where}"
            ),
            stacklevel=2,
        )
    chosen = slice(None) if said.all() else said
    owners, user_names = _in_order(users[0][chosen], users[1])
    codes, item_names = _in_order(items[0][chosen], items[1])
    try:
        return clicks_of_pairs(owners, codes, None, user_names, item_names)
    except ValueError as error:
        raise source.error(None, str(error)) from None


def _in_order(codes: Codes, names: list[str]) -> tuple[Codes, NDArray[Any]]:
    """Codes and names with the names sorted, without those that no code has."""
    used = np.bincount(codes, minlength=len(names)) > 0
    order = np.array(sorted(np.flatnonzero(used).tolist(), key=names.__getitem__), dtype=np.int64)
    places = np.empty(len(names), dtype=np.int32)
    places[order] = np.arange(len(order))
    return places[codes], np.array(names, dtype=object)[order]


# Rankings


def _wide(source: Source, header: list[str], rows: Table, is_clicks: bool) -> Any:
    """One line a user, one column an item."""
    first = _n_names(header, rows)
    items = header[first:]
    for place, name in enumerate(items):
        if not name:
            raise source.error(None, f"column {first + place + 1} has no name in the header")
    values = _numbers(source, items, rows, first)
    users = [cells[0] for _, cells in rows] if first else None
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


def _numbers(source: Source, items: list[str], rows: Table, first: int) -> NDArray[np.float64]:
    cells = ["nan" if cell.lower() in MISSING else cell for _, row in rows for cell in row[first:]]
    try:
        values = np.array(cells, dtype=np.float64)
    except ValueError:
        values = np.array([], dtype=np.float64)
    if len(values) == 0 or np.isinf(values).any():
        for line, row in rows:
            for name, cell in zip(items, row[first:], strict=True):
                if cell.lower() not in MISSING and not _is_number(cell):
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
        if text and not 0 <= value <= len(items):
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


def _orderings(source: Source, table: Table) -> Rankings:
    """One line a user, items, best first; a column of users only under a header."""
    line, header = table[0]
    body = [cell for _, cells in table[1:] for cell in cells if cell]
    named = _word(header[0]) in USER
    rest = header[named:]
    places = bool(rest) and all(PLACE.fullmatch(cell) for cell in rest)
    plain = all(cell.isdecimal() for cell in rest)
    is_header = named or (places and not (plain and all(cell.isdecimal() for cell in body)))
    rows = table[1:] if is_header else table
    if not rows:
        raise source.error(line, "there is a header, but no line after it")
    lists, users = [], []
    for number, cells in rows:
        listed = list(cells[named:])
        while listed and not listed[-1]:
            listed.pop()
        if "" in listed:
            raise source.error(number, f"place {listed.index('') + 1} is empty, but later ones not")
        twice = {item for item in listed if listed.count(item) > 1} if listed else set()
        if twice:
            raise source.error(number, f"{min(twice)!r} is there twice")
        lists.append(listed)
        users.append(cells[0])
    if named:
        _check_users(source, users, rows)
    try:
        return Preferences.from_orderings(lists, users=users if named else None)
    except ValueError as error:
        raise source.error(None, str(error)) from None


# Parquet and NumPy


def _read_parquet(source: Source, kind: str | None) -> tuple[Any, str]:
    from . import arrow

    names, n_rows = arrow.parquet_header(source)
    if not names or not n_rows:
        raise source.error(None, "the file has no rows or no columns")
    header = (1, names)
    if kind in (None, "clicks") and _is_long_clicks(names):
        _check_header(source, header)
        columns = _find_columns(source, header, needs_rank=False)
        users, items = arrow.read_parquet_codes(source, (columns.user, columns.item))
        return _clicks_of_codes(source, users, items), "clicks"
    _check_header(source, header)
    columns_of_text = arrow.read_parquet_text(source)
    rows = [(line, list(cells)) for line, cells in enumerate(zip(*columns_of_text, strict=True), 2)]
    return _read_table(source, [header, *rows], kind)


def _read_arrays(source: Source, kind: str | None) -> Any:
    """Arrays of NumPy, or a sparse matrix of SciPy."""
    try:
        with np.load(io.BytesIO(source.content), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise source.error(None, f"these NumPy arrays cannot be read: {error}") from None
    except (MemoryError, OverflowError, NotImplementedError, RuntimeError, SyntaxError) as error:
        raise source.error(None, f"these NumPy arrays are broken: {error!r}") from None
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
            from scipy.sparse import load_npz

            matrix = load_npz(io.BytesIO(source.content))
            return Preferences.from_clicks(matrix, weights=weights, **names)
    except (ValueError, TypeError, KeyError, IndexError, NotImplementedError) as error:
        raise source.error(None, str(error)) from None
    raise source.error(
        None,
        f"wanted an array 'rankings' or 'clicks', or a sparse matrix, got {sorted(arrays)[:5]}",
    )
