"""Comparisons from data frames, lists and dicts."""

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..rankings import MAX_WEIGHT, check_weights
from .checks import check_n_items
from .columns import is_pairs, side_words, word
from .pairs import Pairs, pairs_of_entries, votes_of
from .table import CodedTable, Table, is_table, join_names, table_of, table_of_rows

TIE = re.compile(r"tied?(\(?both(bad|good)\)?)?|both(bad|good)?|neither|draw|equal|same")
ONE, OTHER, NEITHER = range(3)  # which side won
FORMS = (
    "give a data frame or a dict with the columns user, better and worse, a list of (user, better, "
    "worse) or of (better, worse), or a dict {user: [(better, worse), ...]}"
)
Names = Sequence[Hashable] | None


def pairs_of_anything(pairs: Any, weights: ArrayLike | None, users: Names, items: Names) -> Pairs:
    """See :meth:`Preferences.from_pairs`."""
    if not is_table(pairs):
        return pairs_of_table(_table_of_rows(pairs), weights, users, items)
    if isinstance(pairs, Mapping) and not is_pairs(list(pairs)):
        everybody = list(pairs) if users is None else users
        return pairs_of_table(_table_of_dict(pairs), weights, everybody, items)
    return pairs_of_table(table_of("pairs", pairs), weights, users, items)


# Forms


def _table_of_rows(pairs: Any) -> Table:
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        raise TypeError(f"pairs must be comparisons, got {pairs!r}: {FORMS}")
    rows = pairs.tolist() if isinstance(pairs, np.ndarray) else list(pairs)
    if not rows:
        raise ValueError(f"pairs is empty: {FORMS}")
    width = _width(rows[0])
    wanted = {2: "(better, worse)", 3: "(user, better, worse)"}
    if width not in wanted:
        words = " or ".join(wanted.values())
        raise ValueError(f"pairs[0] must be {words}, got {str(rows[0])[:80]}: {FORMS}")
    wrong = next((at for at, row in enumerate(rows) if _width(row) != width), None)
    if wrong is not None:
        raise ValueError(
            f"pairs[{wrong}] must be {wanted[width]}, as pairs[0] is, got {str(rows[wrong])[:80]}"
        )
    names = ["user", "better", "worse"][-width:]
    return replace(table_of_rows("pairs", rows, names), at="pairs[{}]".format)


def _width(row: Any) -> int:
    """Number of entries of a row, -1 if it is none."""
    return len(row) if isinstance(row, list | tuple | np.ndarray) else -1


def _table_of_dict(pairs: Mapping[Any, Any]) -> Table:
    """Comparisons by user."""
    for user, listed in pairs.items():
        if isinstance(listed, str) or not isinstance(listed, Iterable):
            raise TypeError(
                f"pairs[{user!r}] must be a list of (better, worse), got {listed!r}: {FORMS}"
            )
    everybody = list(pairs)
    lists = [list(listed) for listed in pairs.values()]
    places = [(row, at) for row, listed in enumerate(lists) for at in range(len(listed))]

    def where(row: int) -> str:
        owner, at = places[row]
        return f"pairs[{everybody[owner]!r}][{at}]"

    rows = [pair for listed in lists for pair in listed]
    wrong = next((at for at, pair in enumerate(rows) if _width(pair) != 2), None)
    if wrong is not None:
        raise ValueError(f"{where(wrong)} must be (better, worse), got {str(rows[wrong])[:80]}")
    rows = [(everybody[owner], *pair) for (owner, _), pair in zip(places, rows, strict=True)]
    return replace(table_of_rows("pairs", rows, ["user", "better", "worse"]), at=where)


# Comparisons


def pairs_of_table(table: Table, weights: ArrayLike | None, users: Names, items: Names) -> Pairs:
    """The comparisons of a table; without users, each is by a person of its own."""
    places = table.find("pairs")
    sides = [table.names[places[what]] for what in ("one", "other") if what in places]
    coded = table.coded_table(places)
    n_rows = len(coded.rows)
    coded = coded.whole_rows()
    columns = coded.columns
    has_sides, has_user = "winner" in columns, "user" in columns
    if users is not None and not has_user:
        raise ValueError(f"{table.title} has no column of users: add one, or leave out users=")
    compared = ("one", "other") if has_sides else ("better", "worse")
    (better, worse), item_names = join_names([columns[what] for what in compared], items, "item")
    coded.refuse(
        better == worse,
        lambda row: f"{coded.value(compared[0], row)!r} is compared with itself: drop the row",
    )
    check_n_items(len(item_names))
    is_tie = np.zeros(len(coded.rows), dtype=bool)
    if has_sides:
        won = _who_won(coded, better, worse, item_names, sides)
        is_tie = won == NEITHER
        better, worse = np.where(won == OTHER, worse, better), np.where(won == OTHER, better, worse)
    counts = _counts(coded) if "count" in columns else np.ones(len(coded.rows), dtype=np.int64)
    if not has_user:
        if weights is not None:
            counts = counts * check_weights(weights, n_rows)[coded.rows]
        if not counts.any():
            raise ValueError(f"{table.title} is empty: every count is 0")
        return votes_of(better, worse, is_tie, counts, item_names)
    (owners,), user_names = join_names([columns["user"]], users, "user")
    return pairs_of_entries(owners, better, worse, is_tie, counts, weights, user_names, item_names)


def _who_won(
    table: CodedTable,
    one: NDArray[Any],
    other: NDArray[Any],
    items: NDArray[Any],
    sides: Sequence[Hashable],
) -> NDArray[np.int64]:
    """ONE, OTHER or NEITHER for each row, by the name of the side or of the item."""
    winner = table.columns["winner"]
    known = {name: code for code, name in enumerate(items.tolist())}
    named = np.array([known.get(name, -1) for name in winner.names], dtype=np.int64)
    said = np.array([_side(name, sides) for name in winner.names], dtype=np.int64)
    item, by_side = named[winner.codes], said[winner.codes]
    by_name = np.where(item == one, ONE, np.where(item == other, OTHER, -1))
    is_unclear = (by_name >= 0) & (by_side >= 0) & (by_name != by_side)
    wanted = f"{sides[0]!r}, {sides[1]!r}, the name of one of the two items, or 'tie'"
    table.refuse(
        is_unclear,
        lambda row: (
            f"the winner {table.value('winner', row)!r} may be a side or an item: write "
            f"{sides[0]!r}, {sides[1]!r} or 'tie'"
        ),
    )
    won = np.where(by_side >= 0, by_side, by_name)
    table.refuse(
        won < 0, lambda row: f"the winner must be {wanted}, got {table.value('winner', row)!r}"
    )
    return won


def _side(name: Any, sides: Sequence[Hashable]) -> int:
    """The side that a word stands for, -1 if it is none."""
    said = word(name)
    for side, (column, end) in enumerate(zip(sides, side_words(*sides), strict=True)):
        if said in (word(column), end):
            return side
    return NEITHER if TIE.fullmatch(said) else -1


def _counts(table: CodedTable) -> NDArray[np.int64]:
    count = table.columns["count"]
    values = np.array([_number(name) for name in count.names])[count.codes]
    table.refuse(
        ~((values >= 0) & (values <= MAX_WEIGHT) & (values == np.floor(values))),
        lambda row: (
            f"the count must be a whole number, 0 or more, and at most {MAX_WEIGHT:.0e}, "
            f"got {table.value('count', row)!r}"
        ),
    )
    return values.astype(np.int64)


def _number(value: Any) -> float:
    """A number, NaN for what is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")
