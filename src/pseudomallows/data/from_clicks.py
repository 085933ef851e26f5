"""Clicks from matrices, data frames and dicts."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._warn import warn
from ..rankings import as_array, check_weights, numeric_table
from .blocks import Clicks, keep_core
from .checks import NO_NAME, check_n_items, check_names, number_of, text_of
from .columns import USUAL, Layout, is_long, rating_column, time_column
from .ignored import Counts, advice_on, flagged_columns
from .preferences import ColumnWarning, IgnoredColumnWarning
from .table import (
    STEP,
    Column,
    Pack,
    RowError,
    Table,
    as_codes,
    distinct,
    is_frame,
    is_table,
    join_names,
    table_of,
    table_of_lists,
    table_of_rows,
)
from .times import TimeColumn, given_times

PAIRS = (
    "for pairs of user and item give a data frame or a dict with the columns 'user' and 'item', or "
    "a dict {user: [item, ...]}"
)


def clicks_of_anything(
    clicks: Any,
    weights: ArrayLike | None,
    users: Sequence[Hashable] | None,
    items: Sequence[Hashable] | None,
    times: Any = None,
    layout: Layout = USUAL,
) -> Clicks:
    """See :meth:`Preferences.from_clicks`."""
    if layout.min_clicks is not None:
        if users is not None or items is not None or weights is not None:
            raise ValueError(
                "min_clicks chooses users and items: leave out users, items and weights"
            )
        least, others = layout.min_clicks, replace(layout, min_clicks=None)
        return keep_core(clicks_of_anything(clicks, None, None, None, times, others), least)
    if isinstance(layout.columns, list | tuple):
        if is_table(clicks):
            raise ValueError("columns as a list is for rows without names: give a dict for a frame")
        table = table_of_rows("clicks", clicks, layout.columns)
        layout = replace(layout, columns=None)
    elif is_frame(clicks) or (is_table(clicks) and _has_columns(clicks, layout)):
        table = table_of("clicks", clicks)
    elif is_table(clicks):
        users = list(clicks) if users is None else users
        times = None if times is None else _listed_times(clicks, times)
        table = table_of_lists("clicks", clicks, ["item"])
    else:
        return _clicks_of_matrix(clicks, weights, users, items, times, layout)
    table = replace(table, names=table.checked(layout.names))
    return clicks_of_table(table, weights, users, items, times, layout)


def _has_columns(clicks: Mapping[Any, Any], layout: Layout) -> bool:
    """Whether a dict is one of columns, and not of users."""
    if layout.columns is None and layout.min_rating is None and not is_long(list(clicks)):
        return False
    lengths = {len(values) for values in clicks.values() if hasattr(values, "__len__")}
    if len(clicks) == 2 and len(lengths) > 1:
        one, other = clicks
        raise ValueError(
            f"clicks has the keys {one!r} and {other!r}, but not as many users as items: give "
            "columns of equal length, or a dict {user: [item, ...]}"
        )
    return len(lengths) == 1


def _listed_times(clicks: Mapping[Any, Any], times: Any) -> list[Any]:
    """The times of a dict of users, one after the other."""
    if not isinstance(times, Mapping):
        raise TypeError(f"times must be a dict, as clicks is, got {type(times).__name__}")
    for user, items in clicks.items():
        if user not in times or len(times[user]) != len(items):
            raise ValueError(f"times must have {len(items)} times for {user!r}, one an item")
    return [time for user in clicks for time in times[user]]


def _clicks_of_matrix(
    clicks: Any,
    weights: ArrayLike | None,
    users: Sequence[Hashable] | None,
    items: Sequence[Hashable] | None,
    times: Any,
    layout: Layout,
) -> Clicks:
    """Clicks by the numbers above 0 of a sparse or dense matrix."""
    if layout.columns is not None or layout.min_rating is not None:
        what = "columns" if layout.columns is not None else "min_rating"
        raise ValueError(
            f"{what} is for a long table: a data frame, or a dict of columns; of rows of user and "
            "item say what they hold by columns=['user', 'item']"
        )
    if hasattr(clicks, "tocoo"):
        if hasattr(clicks, "check_format"):  # compiled code believes the indices
            try:
                clicks.check_format(full_check=True)
            except ValueError as error:
                raise ValueError(f"clicks is a sparse matrix that is damaged: {error}") from None
        matrix = clicks.tocoo()
        if matrix.ndim != 2:
            raise ValueError(f"clicks must be a table of users and items, got {matrix.ndim} axes")
        _check_counts(matrix.data, None)
        is_click = matrix.data > 0  # before repeats are added up, which could overflow
        rows, columns, shape = matrix.row[is_click], matrix.col[is_click], matrix.shape
        when = _given_times(times, len(is_click), "number that the sparse matrix stores")
        when = None if when is None else when[is_click]
    else:
        table = as_array(clicks, "clicks")
        if table.dtype != bool:
            try:
                table = numeric_table(table, "clicks", "numbers (0 for no click)")
            except TypeError as error:
                raise TypeError(f"{error}; {PAIRS}") from None
        if table.ndim != 2 or table.size == 0:
            raise ValueError(f"clicks must be a table of users and items, got shape {table.shape}")
        _check_counts(table, table.shape)
        _refuse_names(clicks, table)
        rows, columns = np.nonzero(table)
        shape = table.shape
        when = None
        if times is not None:
            given = times.to_numpy() if hasattr(times, "to_numpy") else np.asarray(times)
            if given.shape != shape:
                raise ValueError(f"times must have the shape of clicks, {shape}, got {given.shape}")
            when = _given_times(given[rows, columns], len(rows), "click")
    if shape[0] == 0:
        raise ValueError("clicks is empty: it has no users")
    check_n_items(int(shape[1]))
    names = check_names(users, shape[0], "users"), check_names(items, shape[1], "items")
    return clicks_of_pairs(rows, columns, weights, *names, when)


def _given_times(times: Any, count: int, what: str) -> NDArray[np.float64] | None:
    """Times that were given beside the clicks, so many."""
    if times is None:
        return None
    seconds = given_times(times)
    if len(times) != count:
        raise ValueError(f"times must have one for each {what} ({count}), got {len(times)}")
    return seconds


def _refuse_names(clicks: Any, table: NDArray[Any]) -> None:
    """Refuse what may be rows of user and item (two columns, or tuples of up to four, that have
    more than zeros and ones), or a list of users and one of items."""
    (n_rows, n_columns), is_list = table.shape, isinstance(clicks, list | tuple)
    is_tuples = isinstance(clicks, list) and isinstance(clicks[0], tuple)
    if 2 <= n_columns <= (4 if is_tuples else 2) and not np.isin(table, (0, 1)).all():
        raise ValueError(
            f"clicks has {n_rows} rows of {n_columns} numbers, not all of them 0 or 1: {PAIRS}; "
            "for a matrix of counts give counts > 0"
        )
    if is_list and n_rows == 2 < n_columns and (table > 0).all() and (table != 1).any():
        raise ValueError(
            f"clicks has two rows of {n_columns} numbers, all above 0: if they are users and "
            "items, give {'user': users, 'item': items}; if they are counts, give counts > 0 as an "
            "array (but both users have then clicked every item)"
        )


def rows_of_pairs(
    rows: NDArray[Any], columns: NDArray[Any], n_users: int, n_items: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Starts and sorted codes of each row; repeated pairs count once."""
    from scipy.sparse import csr_array

    ones = np.ones(len(rows), dtype=bool)
    table = csr_array((ones, (rows, columns)), shape=(n_users, n_items))  # linear in the pairs
    table.sum_duplicates()
    return table.indptr.astype(np.int64), table.indices.astype(np.int32, copy=False)


def first_times(
    rows: NDArray[Any],
    columns: NDArray[Any],
    times: NDArray[np.float64] | None,
    clicks: Clicks,
) -> NDArray[np.float64] | None:
    """The earliest time of each of `clicks` among these pairs, NaN if it has none; None if no click
    has one."""
    if times is None or np.isnan(times).all():
        return None
    cells = clicks.owners * clicks.n_items + clicks.codes
    first = np.full(len(cells), np.nan)
    for start in range(0, len(rows), STEP):
        block = slice(start, start + STEP)
        wanted = rows[block].astype(np.int64) * clicks.n_items + columns[block]
        order = np.argsort(wanted)  # sorted, they are looked up several times faster
        np.fmin.at(first, np.searchsorted(cells, wanted[order]), times[block][order])
    return first


def _check_counts(values: NDArray[Any], shape: tuple[int, ...] | None) -> None:
    if values.dtype.kind == "c":
        raise TypeError("clicks must be numbers (0 for no click), got complex ones")
    wrong = ~(np.asarray(values) >= 0)
    if wrong.any():
        place = int(wrong.argmax())
        value = values.ravel()[place]
        where = f" at {[int(i) for i in np.unravel_index(place, shape)]}" if shape else ""
        raise ValueError(f"clicks must be 0 (no click) or more (a click), got {value}{where}")


def clicks_of_table(
    table: Table,
    weights: ArrayLike | None,
    users: Sequence[Hashable] | None,
    items: Sequence[Hashable] | None,
    times: Any = None,
    layout: Layout = USUAL,
    kind_is_given: bool = True,
    least_items: int = 2,
) -> Clicks:
    """From a long table, a row for each click; if the caller gave this kind, a column of positions
    is ignored in silence."""
    names = table.names
    places, at_time = table.find("clicks"), time_column(names)
    rating = -1 if layout.min_rating is None else table.checked(rating_column, names)
    # All columns that matter are read at once.
    is_named = isinstance(layout.columns, Mapping) and "time" in layout.columns
    reader = TimeColumn(table.names[at_time], is_named) if times is None and at_time >= 0 else None
    packs: dict[int, Pack] = {} if reader is None else {at_time: reader.add}
    if rating >= 0:
        packs[rating] = as_codes()
    kinds = flagged_columns(names) if rating < 0 else {}
    counted = {at: Counts(table.name_of) for at in kinds}
    packs |= {at: counted[at].add for at, kind in kinds.items() if kind != "position"}
    coded = table.coded_table(places, packs)
    is_whole = coded.has_all()
    if not table.is_file:
        coded.refuse_gaps()
    # The times, and the rows that count by their rating.
    warnings: list[ColumnWarning] = []
    when = None
    if times is not None:
        when = _given_times(times, len(coded.rows), "row")
    elif reader is not None:
        try:
            when = reader.finish(coded.others.pop(at_time))
        except RowError as error:
            raise table.error(str(error), None, reader.name) from None
        if not reader.is_open:
            warnings.append(ColumnWarning(f"{table.title}: {reader.warning()}"))
    is_click = is_whole
    if rating < 0:
        for at, kind in kinds.items():
            advice = advice_on(table.names[at], kind, counted[at].counts, kind_is_given)
            category = IgnoredColumnWarning if kind == "clicked" else ColumnWarning
            warnings += [category(f"{table.title}: {advice}")] if advice else []
    else:
        ratings = _ratings(table, rating, coded.others.pop(rating))
        is_click = is_whole & (ratings >= layout.min_rating)  # type: ignore[operator]
        n_low, least = int(is_whole.sum() - is_click.sum()), f"{layout.min_rating:g}"
        if n_low and not is_click.any():
            raise table.error(f"no rating is {least} or more: lower min_rating")
        if n_low:
            n_rated = f"{int(is_whole.sum()):,}"
            table.notes.append(f"{n_low:,} of {n_rated} ratings below {least} left out")
    # The clicks, and only then what to warn of.
    chosen = coded.take(is_click)
    if when is not None and not is_click.all():
        when = when[is_click]
    (rows,), user_names = join_names([chosen.columns.pop("user")], users, "user")
    (codes,), item_names = join_names([chosen.columns.pop("item")], items, "item")
    clicks = clicks_of_pairs(rows, codes, weights, user_names, item_names, when, least_items)
    for warning in warnings:
        warn(warning)
    coded.warn_of_gaps(is_whole)
    return clicks


def _ratings(table: Table, place: int, column: Column) -> NDArray[np.float64]:
    """The ratings in a column, NaN for an empty cell."""
    codes, values = distinct(column)
    texts = ["" if text_of(value) in NO_NAME else text_of(value) for value in values]
    ratings = np.array([*map(number_of, texts), np.nan])  # the last is of code -1, an empty cell
    is_odd = np.isnan(ratings[:-1]) & np.array([text != "" for text in texts], dtype=bool)
    if is_odd.any():
        code = int(is_odd.argmax())
        problem = f"wanted a rating, a number, got {texts[code][:40]!r}"
        raise table.error(problem, int((codes == code).argmax()), table.names[place])
    return ratings[codes]


def clicks_of_pairs(
    rows: NDArray[Any],
    codes: NDArray[Any],
    weights: ArrayLike | None,
    user_names: NDArray[Any],
    item_names: NDArray[Any],
    times: NDArray[np.float64] | None = None,
    least_items: int = 2,
) -> Clicks:
    """Clicks by codes, with their times; repeated ones count once, at the first of their times."""
    if len(user_names) == 0:
        raise ValueError("clicks is empty: it has no users")
    n_users, n_items = len(user_names), len(item_names)
    if n_items < least_items:
        check_n_items(n_items)
    starts, columns = rows_of_pairs(rows, codes, n_users, n_items)
    clicks = Clicks(check_weights(weights, n_users), user_names, item_names, starts, columns)
    return replace(clicks, times=first_times(rows, codes, times, clicks))
