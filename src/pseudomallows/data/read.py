"""Read preferences from files: the kind of the data is seen from the header."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..rankings import check_name
from .archive import WrongFileError, read_npz, sparse_matrix
from .blocks import Clicks, Rankings, keep_core
from .columns import KINDS, USUAL, Layout, kind_of
from .from_clicks import clicks_of_table
from .from_pairs import impressions_of_table, is_yes_and_no, pairs_of_table
from .from_rankings import rankings_of_long_table, read_wide
from .pairs import Pairs
from .preferences import Preferences
from .preflib import ENDINGS as PREFLIB
from .preflib import read_preflib
from .sheets import ENDINGS as SHEETS
from .sheets import sheet_table
from .source import Source, decode, open_source, refuse_model
from .splits import time_in_words
from .table import Table
from .text import json_table, text_table

JSON = (".jsonl", ".ndjson")


def read(
    path: str | os.PathLike[str],
    kind: str | None = None,
    *,
    encoding: str | None = None,
    items: Sequence[Any] | None = None,
    columns: Mapping[str, Any] | Sequence[str] | None = None,
    sep: str | None = None,
    header: bool | None = None,
    min_rating: float | None = None,
    min_clicks: int | None = None,
) -> Rankings | Clicks | Pairs:
    """Read preferences from a file.

    Names are kept as text. The order of users and items is that of
    :meth:`Preferences.from_clicks` and its like: sorted, or as the columns stand.

    Parameters
    ----------
    path : str or path
        A file of comma-, semicolon- or tab-separated values, with gzip if its name ends in .gz, or
        Parquet (or a folder of Parquet files, which are read as one), a spreadsheet (.xlsx, .ods:
        its first sheet), JSON lines (.jsonl, .ndjson: an object a line), PrefLib (.soc, .soi, .toc,
        .toi, .cat), or NumPy (.npz with `rankings` or `clicks`, and maybe `users`, `items`,
        `weights`, `times`; or a sparse matrix of SciPy). "-" is standard input.
    kind : str, optional
        "rankings": one line a user, one column an item, ranks with 1 for the best, empty for not
        ranked, equal for ties; "long-rankings": columns user, item, rank; "orderings": one line a
        user, items, best first, recognised by a header of places (1st, 2nd; rank1, rank2);
        "clicks": columns user, item and maybe time, all others ignored; "wide-clicks": one line a
        user, one column an item, above 0 for a click; "pairs": columns better and worse, or two
        sides and a winner, and maybe user and count (see :meth:`Preferences.from_pairs`);
        "impressions": columns user, item, clicked, and maybe slate (see
        :meth:`Preferences.from_impressions`). Default: recognised by the header; what could be
        two things is refused. Columns user, item, clicked are impressions if some rows have 1 and
        some 0, and clicks otherwise.
    encoding : str, optional
        Default: UTF-8, or UTF-16 if the file says so; if it is neither, cp1252, with a warning.
    items : sequence, optional
        For long clicks, comparisons and impressions: the names of all items, such as those of a
        model, in their order.
    columns : dict or list, optional
        The names of the columns of long clicks, by what they are, such as
        ``{"user": "visitor", "item": "sku", "time": "when", "rating": "stars"}``, or their places,
        from 0; what is not named is found by its usual names. With ``header=False`` also a list of
        the names of all columns. Of comparisons, only ``{"user": ...}``.
    sep : str, optional
        The text between two cells. Default: recognised from the file (``,``, ``;``, ``|``, a tab,
        or the ``::`` of MovieLens).
    header : bool, optional
        Whether the first line names the columns. Without such a line they are user, item,
        rating, timestamp, or what `columns` says. Default: yes, unless the first lines are ratings
        as MovieLens has them: user, item, a number up to 10, and seconds since 1970.
    min_rating : float, optional
        The lowest rating that counts as a click; rows below it, or without one, are left out.
        Default: every row counts, and a warning says how many ratings are low.
    min_clicks : int, optional
        Drop users and items with fewer clicks, repeatedly, until all have that many.

    Warns
    -----
    ColumnWarning
        When an unused column, such as ratings, may say which rows are not clicks.
    DroppedRowsWarning
        When rows have no user or no item.
    EncodingWarning
        When the file is not UTF-8, and is read as cp1252.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "log.csv"
    >>> _ = file.write_text("user,item,day\\nann,tea,Mon\\nbob,mate,Tue\\nann,mate,Tue\\n")
    >>> read(file)
    Clicks(2 users, 2 items; 3 clicks)
    """
    layout = Layout(columns, sep, header, min_rating, min_clicks)
    return read_as(path, kind, encoding, items, layout=layout)[0]


def read_as(
    path: str | os.PathLike[str],
    kind: str | None = None,
    encoding: str | None = None,
    items: Sequence[Any] | None = None,
    may_be_one_item: bool = False,
    layout: Layout = USUAL,
) -> tuple[Rankings | Clicks | Pairs, str]:
    """As :func:`read`, with a sentence that says what the file was read as.

    Long clicks that are added to others may be on one item only.
    """
    if kind is not None:
        check_name(kind, "kind", KINDS)
    if encoding is not None and (not isinstance(encoding, str) or "\0" in encoding):
        raise TypeError(f"encoding must be the name of one, such as 'utf-8', got {encoding!r}")
    if items is not None and (isinstance(items, str) or not isinstance(items, Iterable)):
        raise TypeError(f"items must be a list of names, got {items!r}")
    wanted = None if items is None else list(items)
    source = open_source(path, layout.checked())
    _check_layout(source)
    if source.is_blank:
        raise source.error(None, "the file is empty")
    prefs: Any
    with source.named():
        if source.ending in PREFLIB:
            if kind not in (None, "rankings", "orderings"):
                raise source.error(None, f"a PrefLib file holds orders, not {kind}")
            prefs, what = read_preflib(source, decode(source, encoding)), "a PrefLib file"
        elif source.ending == ".npz":
            prefs, what = _read_arrays(source, kind), "NumPy arrays"
        else:
            table = _open_table(source, encoding, kind)
            prefs, what = _prefs_of_table(table, kind, layout, wanted, may_be_one_item)
    if isinstance(prefs, Clicks):
        if wanted is not None and layout.min_clicks is not None:
            raise ValueError("min_clicks chooses the items: leave out items")
        prefs = _finish_clicks(source, prefs, {"kind": kind, "encoding": encoding})
    else:  # of comparisons, the column of users may be given
        given = set(layout.call()) - {"sep", "header"}
        is_fine = isinstance(prefs, Pairs) and set(layout.columns or ()) == {"user"}
        if given - ({"columns"} if is_fine else set()):
            raise source.error(
                None, f"columns, min_rating and min_clicks are for clicks, not {what}"
            )
    notes = f" ({'; '.join(source.notes)})" if source.notes else ""
    return prefs, f"{source.name}: read as {what}{notes}: {prefs}"


def _open_table(source: Source, encoding: str | None, kind: str | None) -> Table:
    """A file as a table, by its format."""
    if source.ending in (".parquet", ".pq"):
        from .parquet import parquet_table

        return parquet_table(source)
    if source.ending in SHEETS:
        return sheet_table(source, kind)
    if source.ending in JSON:
        return replace(json_table(source, decode(source, encoding)), has_header=True)
    return text_table(source, encoding, kind)


def _prefs_of_table(
    table: Table,
    kind: str | None,
    layout: Layout,
    items: list[Any] | None,
    may_be_one_item: bool,
) -> tuple[Any, str]:
    """The data of a table and their kind, as given or by its header.

    A table that looks like impressions, whose kind is not given, is one of clicks if its column
    is not of yes and no, or all yes; what is added to clicks always is.
    """
    chosen = kind_of(table.names) if kind is None else kind
    if chosen == "impressions" and kind is None:
        places = {"clicked": table.find("impressions")["clicked"]}
        clicked = table.coded_table(places).columns["clicked"]
        is_known = is_yes_and_no(clicked) and not may_be_one_item
        chosen = "impressions" if is_known else "clicks"
    if chosen == "long-rankings":
        return rankings_of_long_table(table), chosen
    if chosen not in ("clicks", "pairs", "impressions"):
        return read_wide(table, kind)
    names = None if items is None else [str(name) for name in items]
    data: Any
    if chosen == "clicks":
        least = 1 if may_be_one_item else 2
        data = clicks_of_table(table, None, None, names, None, layout, kind is not None, least)
    else:
        build = pairs_of_table if chosen == "pairs" else impressions_of_table
        data = build(table, None, None, names)
    return (data if items is None else data.rename(items=items)), chosen


def _check_layout(source: Source) -> None:
    """Refuse what a format does not have."""
    is_text = source.ending not in (*PREFLIB, ".npz", ".parquet", ".pq", *SHEETS, *JSON)
    for name in ("sep", "header"):
        is_fine = is_text or (name == "header" and source.ending in SHEETS)
        if getattr(source.layout, name) is not None and not is_fine:
            raise source.error(None, f"{name} is for tables of text: leave it out")
    if source.ending == ".npz" and source.layout.call().keys() & {"columns", "min_rating"}:
        raise source.error(None, "columns and min_rating are for long tables, not for arrays")


def _finish_clicks(source: Source, clicks: Clicks, options: dict[str, str | None]) -> Clicks:
    """The clicks of users and items with enough of them, and the call that reads them again."""
    layout = source.layout
    if layout.min_clicks is not None:
        with source.named():
            core = keep_core(clicks, layout.min_clicks)
        lost = clicks.n_users - core.n_users, clicks.n_items - core.n_items
        clicks = core
        source.notes.append(
            f"{lost[0]:,} users and {lost[1]:,} items with fewer than {layout.min_clicks} clicks "
            "left out"
        )
    if clicks.times is not None:
        known = clicks.times[~np.isnan(clicks.times)]
        source.notes.append(
            f"times from {time_in_words(known.min())} to {time_in_words(known.max())}"
        )
    call = {name: value for name, value in options.items() if value is not None} | layout.call()
    if not call:
        return clicks
    arguments = ", ".join(f"{name}={value!r}" for name, value in call.items())
    return replace(clicks, reading=f"pm.read(path, {arguments})")


def _read_arrays(source: Source, kind: str | None) -> Any:
    """Arrays of NumPy, or a sparse matrix of SciPy."""
    refuse_model(source, source.content)
    try:
        arrays = read_npz(source.content)
    except WrongFileError as error:
        raise source.error(None, f"these NumPy arrays cannot be read: the file {error}") from None
    names: dict[str, Any] = {
        name: [str(value) for value in arrays[name].ravel().tolist()]
        for name in ("users", "items")
        if name in arrays
    }
    weights = arrays.get("weights")
    if "rankings" in arrays and kind in (None, "rankings"):
        return Preferences.from_rankings(arrays["rankings"], weights=weights, **names)
    given: dict[str, Any] = {"weights": weights, "times": arrays.get("times")}
    if "clicks" in arrays and kind in (None, "clicks", "wide-clicks"):
        return Preferences.from_clicks(arrays["clicks"], **given, **names)
    if "format" in arrays and "shape" in arrays and kind in (None, "clicks", "wide-clicks"):
        return Preferences.from_clicks(sparse_matrix(arrays), **given, **names)
    raise source.error(
        None,
        f"wanted an array 'rankings' or 'clicks', or a sparse matrix, got {sorted(arrays)[:5]}",
    )
