"""Parquet: files and folders as tables, and click logs in parts. This module alone reads with
pyarrow."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..rankings import check_count
from .atomic import make_folder
from .blocks import Clicks, check_clicks
from .checks import check_known, codes_of, name_in_file, object_array
from .columns import find_columns, is_long
from .from_clicks import rows_of_pairs
from .source import Source, open_source, parts_of
from .table import Table, join_names
from .write import write_table

# Errors of pyarrow are ValueErrors, but for those of files and of what is not there.
BROKEN = ("Parquet file", OSError, ValueError, LookupError, TypeError, RuntimeError, OverflowError)
BATCH = 1 << 17  # rows that are read at a time: a quarter took a third longer, eight times too


def parquet_table(source: Source, may_be_empty: bool = False) -> Table:
    """A Parquet file, or a folder of them as one table; only columns that are asked for are read.

    The columns are those of the first file. Another may call those of users and items otherwise,
    and of a table of clicks may lack others.
    """
    parts = _parts(source)
    headers: list[list[str]] = []
    sizes: list[int] = []
    for part in parts:
        with _open(part) as file:
            names = [str(name).strip() for name in file.schema_arrow.names]
            headers.append(part.names(names, None))
            sizes.append(file.metadata.num_rows)
    names = headers[0]
    places_of = [_places(part, names, mine) for part, mine in zip(parts, headers, strict=True)]
    ends = np.cumsum(sizes)
    if not names or not (ends[-1] or may_be_empty):
        raise source.error(None, "the file has no rows or no columns")

    def blocks(places: list[int]) -> Iterator[list[Any]]:
        for part, mine in zip(parts, places_of, strict=True):
            yield from _read(part, [mine[place] for place in places])

    def at(row: int) -> str:
        part = int(np.searchsorted(ends, row, side="right"))
        number = f"row {row - (ends[part] - sizes[part]) + 1}"
        return number if len(parts) == 1 else f"{parts[part].name}, {number}"

    return Table(
        source.name,
        list(names),
        blocks,
        at,
        name_in_file,
        header="line 1",
        is_file=True,
        has_header=True,
        may_be_empty=may_be_empty,
        notes=source.notes,
    )


def _places(part: Source, names: list[str], mine: list[str]) -> list[int]:
    """The column of a part for each of the first one, -1 for none."""
    known = {name: place for place, name in reversed(list(enumerate(mine)))}
    places = [known.get(name, -1) for name in names]
    if not is_long(names):
        if set(mine) != set(names):
            shown = ", ".join(names[:8])
            raise part.error(None, f"wanted the columns {shown}, as in the first file")
        return places
    try:
        for what, place in find_columns(mine, "clicks").items():
            places[find_columns(names, "clicks")[what]] = place
    except ValueError as error:
        raise part.error(1, str(error)) from None
    return places


def _read(part: Source, places: list[int]) -> Iterator[list[Any]]:
    """Columns of a file, as series of polars, block by block; nulls for a place of -1."""
    import polars as pl

    with _open(part) as file, part.refuse_broken(*BROKEN):
        here, n_rows = sorted({place for place in places if place >= 0}), 0
        for group in range(file.num_row_groups):  # or the reader keeps what it has read
            for batch in file.iter_batches(
                BATCH,
                [group],
                [file.schema_arrow.names[place] for place in here],
                use_threads=False,
            ):
                found = {at: pl.Series(column) for at, column in zip(here, batch, strict=True)}
                found[-1] = pl.repeat(None, batch.num_rows, dtype=pl.Null, eager=True)
                yield [found[place] for place in places]
                n_rows += batch.num_rows
        if n_rows != file.metadata.num_rows:  # pages of no known kind are passed over
            raise part.error(
                None,
                f"this Parquet file is damaged: it announces {file.metadata.num_rows} rows, and "
                f"{n_rows} can be read",
            )


def _parts(source: Source) -> list[Source]:
    """The file itself, or those of a folder, by name."""
    if source.path is None or not source.path.is_dir():
        return [source]
    paths = parts_of(source.path)
    if not paths:
        raise source.error(None, "wanted Parquet files in this folder, there is no *.parquet")
    return [replace(source, name=str(path), path=path) for path in paths]


@contextmanager
def _open(source: Source) -> Iterator[Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ModuleNotFoundError as error:  # pragma: no cover
        raise ModuleNotFoundError(
            "Parquet files need pyarrow: pip install 'pseudomallows[files]'", name=error.name
        ) from None
    with source.refuse_broken(*BROKEN):
        place: Any = source.path
        if source.path is None or source.is_packed:
            place = pa.BufferReader(source.content)
        metadata = pq.ParquetFile(place).metadata
        check = True  # of pages that have a checksum
        file = pq.ParquetFile(place, metadata=metadata, page_checksum_verification=check)
    with file:
        yield file


# Clicks in parts


class Parts:
    """A click log in Parquet files, which Dask workers read themselves.

    Each file has a row for each click, with columns for user and item. All clicks of a user are in
    one file, and the users are sorted by name from file to file, so that a fit gives the same bits
    however the log is cut; :func:`split` makes such parts.

    Parameters
    ----------
    source : path or list of paths
        A folder, of which all ``*.parquet`` are taken, or files, in order. With workers on several
        machines all of them must see these paths.
    items : list, optional
        The names of all items; without it, the files are read once more to find them.

    Examples
    --------
    >>> import tempfile, pseudomallows as pm
    >>> folder = tempfile.mkdtemp()
    >>> prefs = pm.Preferences.from_clicks({"ann": ["tea"], "bob": ["tea", "mate"], "eve": ["tea"]})
    >>> pm.data.split(prefs, folder, n_parts=2)
    Parts(2 files)
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        items: Sequence[Any] | None = None,
    ):
        if isinstance(source, str | os.PathLike):
            folder = Path(source)
            if not folder.is_dir():
                raise FileNotFoundError(f"parts must be a folder of Parquet files, got {folder}")
            paths = parts_of(folder)
            if not paths:
                raise FileNotFoundError(f"no *.parquet in {folder}")
        else:
            paths = [Path(path) for path in source]
            if not paths:
                raise ValueError("parts must be one file or more, got none")
        if len({path.name for path in paths}) < len(paths):
            raise ValueError("the files of parts must have different names")
        self.paths = [str(path.resolve()) for path in paths]
        if isinstance(items, str):
            raise TypeError(f"items must be a list of names, got {items!r}")
        self.items = None if items is None else [str(name) for name in items]
        if self.items is not None and len(set(self.items)) < len(self.items):
            twice = Counter(self.items).most_common(1)[0][0]
            raise ValueError(f"items must have different names as text, got {twice!r} twice")

    def __repr__(self) -> str:
        return f"Parts({len(self.paths)} file{'s' if len(self.paths) > 1 else ''})"

    def check_order(self, ends: Sequence[tuple[str, str] | None]) -> None:
        """Refuse files whose users do not rise: one may be in two of them.

        ``ends[file]`` are its first user and its last.
        """
        last, where = None, ""
        for path, users in zip(self.paths, ends, strict=True):
            if users is None:
                continue
            if last is not None and users[0] <= last:
                raise ValueError(
                    f"{path}: its first user, {users[0]!r}, does not come after {last!r}, the "
                    f"last of {where}; each user must be in one file, and users rise from file to "
                    "file: cut the log with pm.data.split or `pseudomallows split`"
                )
            last, where = users[1], path


def read_part(path: str | os.PathLike[str]) -> Clicks:
    """Read one Parquet file of long clicks, or a folder of them, without their times.

    Unlike :func:`pseudomallows.read`, it takes a file with one item, or with no rows.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from pseudomallows.data.write import write_table
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "part-0.parquet"
    >>> write_table({"user": ["bob", "ann", "bob"], "item": ["tea", "tea", "mate"]}, file)
    >>> read_part(file)
    Clicks(2 users, 2 items; 3 clicks)
    """
    source = open_source(path)
    table = parquet_table(source, may_be_empty=True)
    coded = table.coded_table(table.find("clicks"))
    coded = coded.whole_rows() if len(coded.rows) else coded
    (rows,), users = join_names([coded.columns["user"]], None, "user")
    (codes,), items = join_names([coded.columns["item"]], None, "item")
    ones = np.ones(len(users), dtype=np.int64)
    return Clicks(ones, users, items, *rows_of_pairs(rows, codes, len(users), len(items)))


def item_names(path: str) -> list[str]:
    """The items of one part."""
    names: list[str] = read_part(path).items.tolist()
    return names


def load_part(path: str, items: Sequence[str]) -> Clicks:
    """Read one part, with codes for these items."""
    clicks = read_part(path)
    names = object_array(list(items))
    places = codes_of(clicks.items.tolist(), names)
    try:
        check_known(places, clicks.items, "item")
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return clicks.on_items(names, places)


def split(prefs: Clicks, folder: str | os.PathLike[str], n_parts: int = 8) -> Parts:
    """Write clicks as Parquet parts, cut by users: ``part-00000.parquet`` and so on.

    Parameters
    ----------
    prefs : Clicks
        Rows of weight 1.
    folder : path
        Made if it is not there; it must not hold other Parquet files.
    n_parts : int
        How many, of about the same number of clicks.
    """
    check_clicks(prefs)
    if (prefs.weights != 1).any():
        raise ValueError("parts hold rows of weight 1 only: repeat the rows")
    n_parts = check_count(n_parts, "n_parts")
    names = np.array([str(name) for name in prefs.users.tolist()], dtype=object)
    if len(set(names.tolist())) < len(names):
        raise ValueError("two users have the same name as text")
    order = np.argsort(names, kind="stable")
    order = order[prefs.n_clicks[order] > 0]  # a row is a click: who has none cannot be there
    if not len(order):
        raise ValueError("nobody has clicked anything: there is nothing to split")
    target = make_folder(folder)
    if any(target.glob("*.parquet")):
        raise FileExistsError(f"{target} has Parquet files already: give another folder")
    ends = np.cumsum(prefs.n_clicks[order])
    edges = np.searchsorted(ends, np.linspace(0, ends[-1], n_parts + 1)[1:-1])
    items, paths = prefs.items, []
    for number, rows in enumerate(np.split(order, edges)):
        if len(rows):
            mine = prefs.take(rows)
            columns = {
                "user": np.repeat(names[rows], mine.n_clicks),
                "item": items[mine.codes],
            }
            if mine.times is not None:
                columns["time"] = mine.times
            paths.append(target / f"part-{number:05}.parquet")
            write_table(columns, paths[-1])
    return Parts(paths)
