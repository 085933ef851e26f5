"""Rankings from arrays, lists and tables; and clicks, from a table with a column for each item."""

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._warn import warn
from ..rankings import check_weights
from .blocks import Clicks, Rankings
from .checks import check_memory, check_n_items, check_names, is_missing, name_in_file, text_of
from .columns import (
    KINDS,
    USER,
    are_places,
    find_sides,
    is_long,
    is_user_word,
    order_of_places,
    place_of,
    refuse_pairs,
    user_column,
    word,
    words_in,
)
from .preferences import ColumnWarning, Preferences, ZeroBasedWarning
from .table import (
    HEADER,
    NO_LINE,
    Coded,
    Column,
    Table,
    as_codes,
    distinct,
    is_frame,
    join_names,
    looked_up,
    table_of,
    texts_of,
)
from .text import COMMA, wrong_length
from .ties import UNCLEAR, check_tied_ranks, fill_last_rank, first_ranks

NO_HEADER = (
    "there is no header: name the items in the first line; of clicks, say header=False, and "
    "columns=['user', 'item', ...]"
)
NO_PLACE = (
    "{!r} is no known place: name the columns of places rank1, rank2, ..., and the column of users "
    "'user'"
)
NO_RANK = ("na", "nan", "n/a", "null", "none", "-", ".", "?")  # in lower case; as is an empty cell
NO_ITEM_HERE = "{}: place {} is empty, but later ones are not"
YES_NO = {"true": "1", "yes": "1", "false": "0", "no": "0"}
NO_ITEM = words_in(  # columns that are hardly one of an item
    "age sex gender weight time timestamp date count counts quantity qty plays playcount nclicks "
    "frequency"
)
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$", re.I | re.A)
CELL = 72  # bytes for each cell of a wide table: ten million took 0.71 GB
Names = Sequence[Hashable] | None


def rankings_of_anything(
    rankings: Any, weights: ArrayLike | None, users: Names, items: Names
) -> Rankings:
    """See :meth:`Preferences.from_rankings`."""
    if not is_frame(rankings):
        return _checked(check_tied_ranks(rankings), rankings, weights, users, items)
    table = table_of("rankings", rankings)
    table.checked(refuse_pairs)
    wide = Wide(table, table.all_columns())
    for name, column in zip(table.names, wide.columns, strict=True):
        if not isinstance(column, list) and str(column.dtype) == "Boolean":
            raise TypeError(f"rankings must be numbers (ranks), but column {name!r} is Boolean")
    index: Any = getattr(rankings, "index", None)
    if users is None and wide.user_column() < 0 and getattr(index, "is_unique", False):
        users = list(index)
    return wide.rankings(weights, users, items)


def orderings_of_anything(
    orderings: Any, weights: ArrayLike | None, users: Names, items: Names
) -> Rankings:
    """See :meth:`Preferences.from_orderings`."""
    if not is_frame(orderings):
        return _rankings_of_lists(orderings, weights, users, items)
    table = table_of("orderings", orderings)
    return Wide(table, table.all_columns()).orderings(weights, users, items)


def read_wide(table: Table, kind: str | None) -> tuple[Rankings | Clicks, str]:
    """The data of a table with a row for each user, and their kind: as given, or as the cells
    show."""
    table.checked(refuse_pairs)
    wide, names = Wide(table, table.all_columns()), table.names
    try:
        chosen = kind or wide.recognise()
        if chosen == "orderings":
            return wide.orderings(), chosen
        table.check_names(range(len(names)))
        if is_long(names):
            shown = ", ".join(map(str, names[:5]))
            raise table.error(f"the header {shown} is that of a long table", HEADER)
        return wide.clicks() if chosen == "wide-clicks" else wide.rankings(), chosen
    except ValueError as error:
        words = [word(name) for name in names]
        has_users = len(words) == 3 and bool(USER & set(words))
        if kind is None and has_users and find_sides(words):
            advice = "if these are comparisons, name the columns user, better and worse"
            raise ValueError(f"{error}; {advice}") from None
        raise


@dataclass(frozen=True, eq=False)
class Wide:
    """A table with a row for each user, all its columns at hand."""

    table: Table
    columns: list[Column]

    @cached_property
    def cells(self) -> Coded:
        """All cells as text, by codes ``[row, place]``, -1 for one that is missing."""
        import polars as pl

        shape = len(self.columns), len(self.columns[0])
        words = f"{self.table.title}: {shape[1]:,} rows and {shape[0]:,} columns"
        check_memory(CELL * shape[0] * shape[1], words)
        is_text = [not isinstance(c, list) and c.dtype == pl.String for c in self.columns]
        texts = [at for at, is_so in enumerate(is_text) if is_so]
        groups = [[at] for at, is_so in enumerate(is_text) if not is_so]
        codes, known = np.empty(shape, dtype=np.int32), dict[Any, int]({None: -1})
        for group in [texts, *groups] if texts else groups[: codes.size]:  # all of text at once
            columns = [self.columns[at] for at in group]
            column = pl.concat(columns) if is_text[group[0]] else texts_of(columns[0])
            found, values = distinct(column)
            names = [name_in_file(value) for value in values]
            places = [known.setdefault(name, len(known) - 1) for name in names]
            table = np.array([*places, -1], dtype=np.int32)
            codes[group] = looked_up(table, found).reshape(len(group), -1)
        return Coded(codes.T, list(known)[1:])

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """The number in each cell ``[row, place]``, yes as 1 and no as 0; NaN for none."""
        import polars as pl

        if all(not isinstance(c, list) and c.dtype.is_numeric() for c in self.columns):
            floats = [column.cast(pl.Float64).to_numpy() for column in self.columns]
            return np.column_stack(floats)
        return np.array([*map(_number, self.cells.names), np.nan])[self.cells.codes]

    @cached_property
    def is_known(self) -> NDArray[np.bool_]:
        """Which cells ``[row, place]`` are not missing."""
        is_known = [text.lower() not in NO_RANK for text in self.cells.names]
        return np.array([*is_known, False])[self.cells.codes]

    def refuse_empty(self) -> None:
        """Refuse a table without rows."""
        if not len(self.columns[0]):
            empty = "it is empty: give at least one row"
            raise self.table.error(NO_LINE if self.table.is_file else empty)

    def check_rows(self) -> None:
        """Refuse a table without rows, and a row of more cells than the header, or fewer."""
        self.refuse_empty()
        n_columns = len(self.table.names)
        if self.table.width:
            sizes = sum(column.is_not_null().to_numpy().astype(int) for column in self.columns)
            is_wrong = (sizes < n_columns) | (self.cells.codes[:, n_columns:] >= 0).any(axis=1)
            if is_wrong.any():
                row = int(is_wrong.argmax())
                raise self.table.error(wrong_length(int(sizes[row]), n_columns), row)

    def user_column(self) -> int:
        """The column of the users, -1 for none; if the header does not show it, it is the first, if
        most of its cells are no numbers."""
        found = user_column(self.table.names)
        if found is None and self.table.is_file:
            is_known = self.is_known[:, 0]
            is_text = is_known & np.isnan(self.numbers[:, 0])
            found = 0 if is_text.sum() > is_known.sum() / 2 else -1
        return -1 if found is None else found

    def users(self, place: int, users: Names = None) -> Names:
        """The names of the users, which are all different: of a column, unless they are given."""
        if place < 0 or users is not None:
            return users
        seen: dict[Any, int] = {}
        for row, value in enumerate(self.columns[place]):
            name = self.table.name_of(value)
            if name is None:
                raise self.table.error("the user has no name", row)
            if name in seen:
                where = self.table.at(seen[name])
                raise self.table.error(f"user {name!r} is there already, at {where}", row)
            seen[name] = row
        return list(seen)

    # What is it?

    def recognise(self) -> str:
        """The kind of a table, by its header and its values; what may be two is refused."""
        self._refuse_odd_place()
        first, header = self.user_column(), [str(name) for name in self.table.names]
        shown = ", ".join(header[:5])
        names = [name for at, name in enumerate(header) if at != first]
        rest = [at for at in range(len(self.columns)) if at != first]
        is_known, numbers = self.is_known[:, rest], self.numbers[:, rest]
        places = are_places(names)
        if (is_known & ~np.isnan(numbers)).sum() >= max(is_known.sum() / 2, 1):
            if places:
                raise self.table.error(
                    f"the header {shown} may name items or places: say which by kind='rankings' or "
                    "kind='orderings'",
                    HEADER,
                )
            if all(is_number(name) for name in names):
                raise self.table.error(NO_HEADER, HEADER)
            return self._ranks_or_clicks(numbers)
        if places:
            return "orderings"
        self._refuse_decimal_comma()
        names = [name for name in header if word(name) not in USER]
        strange = [name for name in names if place_of(name) is None]
        if len(strange) < len(names):
            raise self.table.error(NO_PLACE.format(strange[0]), HEADER)
        raise self.table.error(
            f"cannot tell from the header what this is, {shown!r}: name the columns user and item "
            "(and rank), or rank1, rank2, ..., or user, better and worse; or say which is which "
            "with columns={'user': ..., 'item': ...}, with header=False if there is none; or give "
            f"kind, one of {', '.join(KINDS)}",
            HEADER,
        )

    def _refuse_odd_place(self) -> None:
        """Refuse a first column beside those of places that is none, and none of users, by the
        items in it."""
        first, *others = self.table.names
        if user_column(self.table.names) != 0 or not are_places(others) or is_user_word(first):
            return
        codes = self.cells.codes
        shared = np.intersect1d(codes[:, 0], codes[:, 1:])
        items = [self.cells.names[code] for code in shared if code >= 0]
        if word(first) not in USER and items and not any(map(is_number, items)):
            raise self.table.error(NO_PLACE.format(first), HEADER)

    def _ranks_or_clicks(self, numbers: NDArray[np.float64]) -> str:
        """Of a table of numbers; one that may be counts is not guessed."""
        if np.isin(numbers, (0, 1)).sum() == (~np.isnan(numbers)).sum():
            return "wide-clicks"
        for row in np.flatnonzero((numbers == 0).any(axis=1)):
            known = np.sort(numbers[row][numbers[row] != 0])
            known = known[~np.isnan(known)]
            if not np.array_equal(known, np.arange(1, len(known) + 1)):
                raise self.table.error(
                    "these numbers, some of them 0, may be counts: say which by "
                    "kind='wide-clicks', or kind='rankings' (and leave empty what has no rank)",
                    int(row),
                )
        return "rankings"

    def _refuse_decimal_comma(self, is_asked: NDArray[np.bool_] | bool = True) -> None:
        """Refuse a number that is written with a comma, in one of these cells."""
        has_comma = np.array(
            [*(re.match(COMMA, name) for name in self.cells.names), None], dtype=bool
        )
        wrong = np.argwhere(has_comma[self.cells.codes] & is_asked)
        if len(wrong):
            row, place = wrong[0].tolist()
            text = self.cells.names[self.cells.codes[row, place]][:40]
            problem = f"{text!r} has a decimal comma: write a point, or whole numbers"
            raise self.table.error(problem, row)

    # Ranks and clicks, a column for each item

    def rankings(
        self, weights: ArrayLike | None = None, users: Names = None, items: Names = None
    ) -> Rankings:
        """Rankings by ranks; `items` are columns, in this order."""
        first, places, values = self._cells(items)
        ranks = first_ranks(values, partial(_refuse_cells, self.table, places, values))
        is_shifted = ((values == 0).sum(axis=1) == 1) & ((~np.isnan(values)).sum(axis=1) > 1)
        if self.table.is_file and is_shifted.all():
            problem = "every user has one rank 0: ranks start at 1; leave the others empty"
            raise self.table.error(problem, 0)
        names = [self.table.names[place] for place in places]
        return _checked(ranks, values, weights, self.users(first, users), names)

    def clicks(self) -> Clicks:
        """Clicks by numbers above 0."""
        first, places, numbers = self._cells()
        numbers = np.nan_to_num(numbers)
        _refuse_cells(self.table, places, numbers, numbers < 0, "wanted 0 or more")
        names = [self.table.names[place] for place in places]
        return Preferences.from_clicks(numbers > 0, users=self.users(first), items=names)

    def _cells(self, items: Names = None) -> tuple[int, list[int], NDArray[np.float64]]:
        """The columns of the users and of the items, and the numbers of these."""
        self.check_rows()
        table, first = self.table, self.user_column()
        places = [place for place in range(len(table.names)) if place != first]
        if items is not None:
            items = check_names(items, len(places), "items").tolist()
            strange = [name for name in items if name not in table.names]
            if strange:
                raise ValueError(
                    f"items has {strange[0]!r}, which is not a column; the columns are "
                    f"{table.names[:5]}: to rename them use .rename(items=...)"
                )
            places = [table.names.index(name) for name in items]
        for place in places:
            name = table.names[place]
            if name == "":
                raise table.error(f"column {place + 1} has no name in the header")
            if word(name) in NO_ITEM:
                message = f"column {name!r} is read as an item: leave it out if it is not one"
                warn(ColumnWarning(f"{table.title}: {message}"))
        numbers = self.numbers[:, places]
        is_odd = np.isnan(numbers)
        if is_odd.any() and (is_odd := is_odd & self.is_known[:, places]).any():
            row, at = np.argwhere(is_odd)[0].tolist()
            is_first = np.zeros(self.numbers.shape, dtype=bool)
            is_first[row, places[at]] = True
            self._refuse_decimal_comma(is_first)
            text = self.cells.names[self.cells.codes[row, places[at]]]
            raise table.error(f"wanted a number, got {text[:40]!r}", row, table.names[places[at]])
        if np.isinf(numbers).any():
            raise table.error("there are numbers too large to be ranks")
        return first, places, numbers

    # Items, a column for each place

    def orderings(
        self, weights: ArrayLike | None = None, users: Names = None, items: Names = None
    ) -> Rankings:
        """Rankings by items, best first; a column of users only under a header."""
        table = self.table
        header = [str(name) for name in table.names]
        self._refuse_odd_place()
        first = user_column(header) if len(header) > 1 else None
        first = -1 if first is None else first
        rest = [name for at, name in enumerate(header) if at != first]
        strange = [name for name in rest if place_of(name) is None]
        if 0 < len(strange) < len(rest) and not any(name.isdecimal() for name in rest):
            raise table.error(NO_PLACE.format(strange[0]), HEADER)
        has_places = are_places(rest)
        if first >= 0 and not has_places:
            shown = ", ".join(header[:5])
            raise table.error(
                f"the header {shown} names no places: write user, rank1, rank2, ...", HEADER
            )
        # Is the first line a header? Numbers alone, without a column of users, may be items.
        is_header = table.has_header
        if not is_header and has_places:
            texts = [*header, *self.cells.names]
            is_header = first >= 0 or not all(text.isdecimal() for text in texts)
        first = first if is_header else -1
        if is_header:
            self.refuse_empty()
        # The items of each user, by place; those in a file are text.
        places = [at for at in range(len(self.columns)) if at != first]
        if is_header and has_places:
            codes = self.cells.codes[:, places]
            beyond = (codes[:, len(rest) :] >= 0).any(axis=1)
            if beyond.any():
                row = int(beyond.argmax())
                n_items = 1 + int(np.flatnonzero(codes[row] >= 0).max())
                problem = f"there are {n_items} items, but the header has {len(rest)} places"
                raise table.error(problem, row)
            places = [places[at] for at in table.checked(order_of_places, rest)]
        users, n_before = self.users(first, users), 0 if is_header else 1

        def where(user: int) -> str:
            return table.where(user - n_before)  # row -1 is the header

        if not table.is_file:
            lists = zip(*(self.columns[at] for at in places), strict=True)
            return _rankings_of_lists(lists, weights, users, items, where)
        codes, names = self.cells.codes[:, places], self.cells.names
        if not is_header:
            names = list(dict.fromkeys([*names, *filter(None, header)]))
            known = {name: code for code, name in enumerate(names)}
            before = [known.get(name, -1) for name in header]
            before += [-1] * (codes.shape[1] - len(before))
            codes = np.vstack([before, codes])
        is_there = codes >= 0
        gaps = np.argwhere(is_there[:, 1:] & ~is_there[:, :-1])
        if len(gaps):
            user = int(gaps[0, 0])
            raise ValueError(NO_ITEM_HERE.format(where(user), 1 + int(is_there[user].argmin())))
        rows, ranks = np.nonzero(is_there)
        entries = rows, Coded(codes[is_there], names), ranks + 1
        return _rankings_of_entries(*entries, len(codes), weights, users, items, where)


def is_number(text: str) -> bool:
    """Whether a text is a number, yes or no."""
    return not np.isnan(_number(text))


def _number(text: str) -> float:
    """The number that a text stands for, 1 for yes and 0 for no; NaN for none."""
    text = YES_NO.get(text.lower(), text)
    return float(text) if NUMBER.match(text) else np.nan


def _refuse_cells(
    table: Table, places: list[int], values: NDArray[np.float64], wrong: NDArray[np.bool_], why: str
) -> None:
    """Refuse the first of the cells that are wrong; if its whole row is, no column."""
    if wrong.any():
        row, item = np.argwhere(wrong)[0].tolist()
        if wrong[row].all():
            raise table.error(why, row)
        count = f"{int(wrong.sum())} of {wrong.size} cells are wrong"
        problem = f"{why}, got {values[row, item]:g}; {count}"
        raise table.error(problem, row, table.names[places[item]])


def _checked(
    ranks: NDArray[np.int32], given: Any, weights: ArrayLike | None, users: Names, items: Names
) -> Rankings:
    """Ranks that are checked, with their names; those that were given may count from 0."""
    check_n_items(ranks.shape[1])
    _warn_if_zero_based(ranks, given)
    return _named(ranks, weights, users, items)


def _named(
    ranks: NDArray[np.int32], weights: ArrayLike | None, users: Names, items: Names
) -> Rankings:
    return Rankings(
        check_weights(weights, len(ranks)),
        check_names(users, len(ranks), "users"),
        check_names(items, ranks.shape[1], "items"),
        fill_last_rank(ranks),
    )


def _warn_if_zero_based(ranks: NDArray[np.int32], given: Any) -> None:
    """Warn if every row would be complete with 1 more. A group of zeros must be seen as one by the
    next rank (0, 0, 2), for any list of the first few (1, 2, 0, 0) has many zeros."""
    n_users, n_items = ranks.shape
    values = np.asarray(given, dtype=np.float64)
    if n_users < 2 or n_items < 3 or not (values == 0).any(axis=1).all():
        return
    try:
        firsts = check_tied_ranks(values + 1)
    except ValueError:
        return
    one_zero, has_rank = (values == 0).sum(axis=1) == 1, (values > 0).any(axis=1)
    is_shifted = one_zero | (firsts == values + 1).all(axis=1)
    if (is_shifted & has_rank).all() and firsts.all():
        warn(
            ZeroBasedWarning(
                "every row has the ranks 0 to n - 1, but here 0 means not ranked, so everybody's "
                "best item would come last: add 1 if the ranks start at 0; if 0 does mean not "
                "ranked, write NaN instead"
            )
        )


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
    is_ranked = np.array([text.lower() not in ("", *NO_RANK) for text in texts])[codes]
    numbers = [float(text) if NUMBER.match(text) else np.nan for text in texts]
    ranks = np.array(numbers)[codes]

    is_odd = is_ranked & np.isnan(ranks)
    if is_odd.any():
        row = int(is_odd.argmax())
        problem = f"wanted a rank, got {texts[codes[row]][:40]!r}"
        raise table.error(problem, row, table.names[at_rank])
    # A cell that is there twice must have one rank.
    cells = rows.astype(np.int64) * len(items) + columns
    _, firsts, inverse = np.unique(cells, return_index=True, return_inverse=True)
    before = firsts[inverse]
    differs = is_ranked[before] & (ranks != ranks[before]) | (is_ranked != is_ranked[before])
    if differs.any():
        row = int(differs.argmax())
        user, item, first = users[rows[row]], items[columns[row]], int(before[row])
        raise table.error(
            f"{user!r} ranks {item!r} {texts[codes[row]]}, but {texts[codes[first]]} at "
            f"{table.at(first)}",
            row,
        )
    firsts = np.sort(firsts)
    cell = rows[firsts], columns[firsts]
    table_of_ranks = np.full((len(users), len(items)), np.nan)
    table_of_ranks[cell] = ranks[firsts]

    def refuse_cells(wrong: NDArray[np.bool_], why: str) -> None:
        if wrong.any():
            row = int(firsts[wrong[cell].argmax()])
            shown = "" if why == UNCLEAR else f", got {texts[codes[row]][:40]!r}"
            name = None if why == UNCLEAR else table.names[at_rank]
            raise table.error(f"{why}{shown}", row, name)

    found = first_ranks(table_of_ranks, refuse_cells)
    refuse_cells((found == 0) & ~np.isnan(table_of_ranks), "ranks start at 1")
    return _checked(found, table_of_ranks, None, users.tolist(), items.tolist())


# Lists of items


def _rankings_of_lists(
    orderings: Any,
    weights: ArrayLike | None,
    users: Names,
    items: Names,
    where: Callable[[int], str] = "orderings[{}]".format,
) -> Rankings:
    """Lists of items, best first; ``where(user)`` names one."""
    if not isinstance(orderings, Iterable):
        raise TypeError(f"orderings must be lists of items, one a user, got {orderings!r}")
    known = set() if items is None else set(items := check_names(items, None, "items").tolist())
    lists = [_groups_of(ordering, known, where(user)) for user, ordering in enumerate(orderings)]
    if not lists:
        raise ValueError("orderings is empty: give one list of items for each user")
    rows, ranks, listed = [], [], []
    for user, groups in enumerate(lists):
        rank = 1
        for group in groups:
            rows += [user] * len(group)
            ranks += [rank] * len(group)
            listed += group
            rank += len(group)
    coded = Coded(*distinct(listed))
    given = np.array(rows, dtype=np.int64), coded, np.array(ranks, dtype=np.int32)
    return _rankings_of_entries(*given, len(lists), weights, users, items, where)


def _rankings_of_entries(
    rows: NDArray[np.int64],
    entries: Coded,
    ranks: NDArray[Any],
    n_users: int,
    weights: ArrayLike | None,
    users: Names,
    items: Names,
    where: Callable[[int], str],
) -> Rankings:
    """Rankings by entries: the user of ``rows[entry]`` gives its item ``ranks[entry]``."""
    known = set(entries.names if items is None else items)
    for code, name in enumerate(entries.names):
        if name not in known:
            entry = int((entries.codes == code).argmax())
            raise ValueError(f"{where(int(rows[entry]))} has {name!r}, which is not among items=")
    (codes,), names = join_names([entries], items, "item")
    check_n_items(len(names))
    table = np.zeros((n_users, len(names)), dtype=np.int32)
    table[rows, codes] = ranks
    if np.count_nonzero(table) < len(rows):
        _, firsts = np.unique(rows * len(names) + codes, return_index=True)
        entry = int(np.setdiff1d(np.arange(len(rows)), firsts)[0])
        raise ValueError(f"{where(int(rows[entry]))}: {names[codes[entry]]!r} is there twice")
    return _named(table, weights, users, names.tolist())


def _groups_of(ordering: Any, known: set[Hashable], where: str) -> list[list[Hashable]]:
    """Groups of items, best first; those that tie are in one. `known` has names of items, among
    which may be tuples."""
    if isinstance(ordering, str) or not isinstance(ordering, Iterable):
        raise TypeError(f"{where} must be a list of items, best first, got {ordering!r}")
    groups = [_group_of(entry, known) for entry in ordering]
    while groups and not groups[-1]:
        groups.pop()
    if not all(groups):
        raise ValueError(NO_ITEM_HERE.format(where, groups.index([]) + 1))
    within = [group for group in groups if len(group) > 1 and any(_is_gap(x, known) for x in group)]
    if within:
        raise ValueError(f"{where} has a missing entry in a tie: {within[0]!r}")
    nested = [item for group in groups for item in group if _is_tie(item, known)]
    if nested:
        raise TypeError(f"{where} has a tie within a tie: {nested[0]!r}")
    return groups


def _group_of(entry: Any, known: set[Hashable]) -> list[Hashable]:
    """One item, the items of a tie, or nothing, if it is missing."""
    listed = list(entry) if _is_tie(entry, known) else [entry]
    if isinstance(entry, set | frozenset):
        listed.sort(key=repr)  # their own order differs from run to run
    plain = [item.item() if isinstance(item, np.generic) else item for item in listed]
    return [] if all(_is_gap(item, known) for item in plain) else plain


def _is_gap(item: Any, known: set[Hashable]) -> bool:
    """Is it a missing entry?"""
    return not _is_tie(item, known) and is_missing(item)


def _is_tie(entry: Any, known: set[Hashable]) -> bool:
    """Is it a list of items and not the name of one?"""
    if isinstance(entry, list | set | np.ndarray):
        return True
    return isinstance(entry, tuple | frozenset) and entry not in known
