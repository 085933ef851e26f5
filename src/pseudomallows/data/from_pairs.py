"""Comparisons, and impressions as comparisons, from data frames, lists and dicts."""

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..rankings import MAX_WEIGHT, check_weights
from .checks import check_n_items, codes_of, number_of
from .columns import is_pairs, side_words, word
from .ignored import NO, YES
from .pairs import Pairs, pairs_of_entries, votes_of
from .table import (
    Coded,
    CodedTable,
    Table,
    is_table,
    join_names,
    table_of,
    table_of_lists,
    table_of_rows,
)

TIE = re.compile(r"tied?(\(?both(bad|good)\)?)?|both(bad|good)?|neither|draw|equal|same")
ONE, OTHER, NEITHER = range(3)  # which side won
FORMS = (
    "give a data frame or a dict with the columns user, better and worse, a list of (user, better, "
    "worse) or of (better, worse), or a dict {user: [(better, worse), ...]}"
)
MOST_PAIRS = 50_000_000  # that impressions may make: at some 160 bytes each, 8 GB
Names = Sequence[Hashable] | None


def pairs_of_anything(pairs: Any, weights: ArrayLike | None, users: Names, items: Names) -> Pairs:
    """See :meth:`Preferences.from_pairs`."""
    if not is_table(pairs):
        table = _table_of_rows(pairs)
    elif isinstance(pairs, Mapping) and not is_pairs(list(pairs)):
        users = list(pairs) if users is None else users
        table = table_of_lists("pairs", pairs, ["better", "worse"])
    else:
        table = table_of("pairs", pairs)
    return pairs_of_table(table, weights, users, items)


def _table_of_rows(pairs: Any) -> Table:
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        raise TypeError(f"pairs must be comparisons, got {pairs!r}: {FORMS}")
    rows = pairs.tolist() if isinstance(pairs, np.ndarray) else list(pairs)
    if not rows:
        raise ValueError(f"pairs is empty: {FORMS}")
    width = len(rows[0]) if isinstance(rows[0], list | tuple | np.ndarray) else 0
    if width not in (2, 3):
        wanted = "(better, worse) or (user, better, worse)"
        raise ValueError(f"pairs[0] must be {wanted}, got {str(rows[0])[:80]}: {FORMS}")
    return table_of_rows("pairs", rows, ["user", "better", "worse"][-width:])


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
    named = codes_of(winner.names, items)
    side_of = np.array([_side(name, sides) for name in winner.names], dtype=np.int64)
    item, by_side = named[winner.codes], side_of[winner.codes]
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
    text = word(name)
    for side, (column, end) in enumerate(zip(sides, side_words(*sides), strict=True)):
        if text in (word(column), end):
            return side
    return NEITHER if TIE.fullmatch(text) else -1


def _counts(table: CodedTable) -> NDArray[np.int64]:
    count = table.columns["count"]
    values = np.array([number_of(name) for name in count.names])[count.codes]
    table.refuse(
        ~((values >= 0) & (values <= MAX_WEIGHT) & (values == np.floor(values))),
        lambda row: (
            f"the count must be a whole number, 0 or more, and at most {MAX_WEIGHT:.0e}, "
            f"got {table.value('count', row)!r}"
        ),
    )
    return values.astype(np.int64)


# Impressions


def impressions_of_anything(
    impressions: Any,
    weights: ArrayLike | None,
    users: Names,
    items: Names,
    slate: Hashable | None,
) -> Pairs:
    """See :meth:`Preferences.from_impressions`."""
    if not is_table(impressions):
        raise TypeError(
            "impressions must be a data frame or a dict with the columns user, item and clicked, "
            f"got {type(impressions).__name__}"
        )
    return impressions_of_table(table_of("impressions", impressions), weights, users, items, slate)


def impressions_of_table(
    table: Table,
    weights: ArrayLike | None,
    users: Names,
    items: Names,
    slate: Hashable | None = None,
) -> Pairs:
    """Within a slate, or a user if there are no slates, each clicked item beats each that was shown
    and passed over."""
    coded = table.coded_table(table.find("impressions", slate=slate)).whole_rows()
    columns = coded.columns
    is_clicked = _clicked(coded)
    (codes,), item_names = join_names([columns["item"]], items, "item")
    (owners,), user_names = join_names([columns["user"]], users, "user")
    check_n_items(len(item_names))
    slates = columns["slate"].codes if "slate" in columns else np.zeros_like(owners)
    order = np.lexsort((~is_clicked, codes, slates, owners))  # a click before no click
    owners, slates, codes = owners[order], slates[order], codes[order]
    is_slate = _changes(owners, slates)
    is_first = is_slate | _changes(codes)  # an item counts once in a slate
    groups = (np.cumsum(is_slate) - 1)[is_first]
    owners, shown = owners[is_first], codes[is_first]
    better, worse = _taken_over_passed(table.title, groups, is_clicked[order][is_first])
    n_pairs = len(better)
    is_tie, counts = np.zeros(n_pairs, dtype=bool), np.ones(n_pairs, dtype=np.int64)
    pairs = owners[better], shown[better], shown[worse]
    return pairs_of_entries(*pairs, is_tie, counts, weights, user_names, item_names)


def is_yes_and_no(clicked: Coded) -> bool:
    """Whether the values of a column are yes and no, with some of either."""
    values = {_yes_or_no(clicked.names[code]) for code in np.unique(clicked.codes) if code >= 0}
    return values == {0, 1}


def _clicked(table: CodedTable) -> NDArray[np.bool_]:
    clicked = table.columns["clicked"]
    values = np.array([_yes_or_no(name) for name in clicked.names])[clicked.codes]
    table.refuse(
        values < 0,
        lambda row: (
            f"clicked must be 1 or 0, true or false, yes or no, got {table.value('clicked', row)!r}"
        ),
    )
    return np.asarray(values == 1)


def _yes_or_no(value: Any) -> int:
    """1 or 0, -1 for something else."""
    text = str(value).strip().lower()
    return 1 if text in YES else 0 if text in NO else -1


def _changes(*keys: NDArray[Any]) -> NDArray[np.bool_]:
    """At which places a key differs from the one before; the first counts as such."""
    changes = np.ones(len(keys[0]), dtype=bool)
    changes[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return changes


def _taken_over_passed(
    name: str, groups: NDArray[np.int64], is_taken: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every two places of one group of which the first was taken and the second not."""
    taken, passed = np.flatnonzero(is_taken), np.flatnonzero(~is_taken)
    n_passed = np.bincount(groups[passed], minlength=int(groups[-1]) + 1)
    sizes = n_passed[groups[taken]]
    if sizes.sum() > MOST_PAIRS:
        raise ValueError(
            f"{name} makes {sizes.sum():.3g} comparisons, and at most {MOST_PAIRS:.0e} are "
            "possible: say what was shown at once by a column 'slate', or give fewer rows"
        )
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    firsts = (np.cumsum(n_passed) - n_passed)[groups[taken]]  # passed over, of each group
    return np.repeat(taken, sizes), passed[np.repeat(firsts, sizes) + within]
