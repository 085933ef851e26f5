"""Clicks in Parquet parts, for logs that are read, and answered, part by part."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..rankings import check_count
from .atomic import make_folder
from .blocks import Clicks, check_clicks
from .checks import check_known, codes_of, object_array
from .source import parts_of
from .write import write_table


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


def item_names(path: str) -> list[str]:
    """The items of one part."""
    from .parquet import read_part

    names: list[str] = read_part(path).items.tolist()
    return names


def load_part(path: str, items: Sequence[str]) -> Clicks:
    """Read one part, with codes for these items."""
    from .parquet import read_part

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
