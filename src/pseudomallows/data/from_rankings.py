"""Rankings from tables of ranks, data frames and lists of items."""

from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._warn import warn
from ..rankings import check_weights
from .blocks import Rankings
from .checks import check_n_items, check_names, is_missing
from .columns import USER, are_places, order_of_places, place_of, refuse_pairs, word
from .preferences import ZeroBasedWarning
from .table import Column, is_frame, order_of, table_of
from .ties import check_tied_ranks, fill_last_rank


def rankings_of_table(
    rankings: Any,
    weights: ArrayLike | None,
    users: Sequence[Hashable] | None,
    items: Sequence[Hashable] | None,
) -> Rankings:
    """See :meth:`Preferences.from_rankings`."""
    if is_frame(rankings):
        if users is None and hasattr(rankings, "index") and rankings.index.is_unique:
            users = list(rankings.index)
        table = table_of("rankings", rankings)
        refuse_pairs(table.names)
        names = table.names if items is None else check_names(items, len(table.names), "items")
        items = list(names)
        strange = [name for name in items if name not in table.names]
        if strange:
            raise ValueError(
                f"items has {strange[0]!r}, which is not a column; the columns are "
                f"{table.names[:5]}: to rename them use .rename(items=...)"
            )
        places = [table.names.index(name) for name in items]
        packs = {place: partial(_ranks_of, name=table.names[place]) for place in places}
        columns, _ = table.read(packs)
        rankings = np.column_stack([columns[place] for place in places])
    ranks = check_tied_ranks(rankings)
    check_n_items(ranks.shape[1])
    _warn_if_zero_based(ranks, rankings)
    return Rankings(
        check_weights(weights, len(ranks)),
        check_names(users, len(ranks), "users"),
        check_names(items, ranks.shape[1], "items"),
        fill_last_rank(ranks),
    )


def rankings_of_lists(
    orderings: Any,
    weights: ArrayLike | None,
    users: Sequence[Hashable] | None,
    items: Sequence[Hashable] | None,
) -> Rankings:
    """See :meth:`Preferences.from_orderings`."""
    if is_frame(orderings):
        orderings, users = _orderings_of_frame(orderings, users)
    if not isinstance(orderings, Iterable):
        raise TypeError(f"orderings must be lists of items, one a user, got {orderings!r}")
    known = set() if items is None else set(items := check_names(items, None, "items").tolist())
    lists = [_groups_of(ordering, user, known) for user, ordering in enumerate(orderings)]
    if not lists:
        raise ValueError("orderings is empty: give one list of items for each user")
    listed = list({item: None for row in lists for group in row for item in group})
    names = [listed[at] for at in order_of(listed)] if items is None else list(items)
    codes = {name: code for code, name in enumerate(names)}
    check_n_items(len(names))
    ranks = np.zeros((len(lists), len(names)), dtype=np.int32)
    for user, row in enumerate(lists):
        _fill_ranks(ranks[user], row, codes, f"orderings[{user}]")
    return Rankings(
        check_weights(weights, len(ranks)),
        check_names(users, len(ranks), "users"),
        check_names(names, len(names), "items"),
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


def _ranks_of(column: Column, name: Hashable) -> NDArray[np.float64]:
    """The numbers of a column, missing ones as NaN."""
    if isinstance(column, list):
        is_number, n_missing = False, sum(map(is_missing, column))
    else:
        is_number, n_missing = column.dtype.is_numeric(), column.null_count()
    if n_missing == len(column):
        return np.full(len(column), np.nan)
    if not is_number:
        kind = "objects" if isinstance(column, list) else column.dtype
        raise TypeError(f"rankings must be numbers (ranks), but column {name!r} is {kind}")
    return np.array(column.to_numpy(), dtype=np.float64)  # nulls become NaN


def _orderings_of_frame(frame: Any, users: Any) -> tuple[Any, Any]:
    """The items, those of the first place first, and the users, if a column names them."""
    table = table_of("orderings", frame)
    names = table.names
    columns, _ = table.read(dict.fromkeys(range(len(names)), list))
    cells = list(columns.values())
    if all(place_of(name) is None for name in names):
        return list(zip(*cells, strict=True)), users
    owners = [at for at, name in enumerate(names) if word(name) in USER][:1]
    places = [at for at in range(len(names)) if at not in owners]
    if not are_places([names[at] for at in places]):
        strange = next(names[at] for at in places if place_of(names[at]) is None)
        raise ValueError(
            f"orderings has a column {strange!r} next to those of places: leave it out, or call it "
            "'user' if it names the users"
        )
    order = order_of_places([names[at] for at in places])
    if owners and users is None:
        users = cells[owners[0]]
    return list(zip(*(cells[places[at]] for at in order), strict=True)), users


def _groups_of(ordering: Any, user: int, known: set[Hashable]) -> list[list[Hashable]]:
    """Groups of items, best first; those that tie are in one. `known` has names of items, among
    which may be tuples."""
    if isinstance(ordering, str) or not isinstance(ordering, Iterable):
        raise TypeError(f"orderings[{user}] must be a list of items, best first, got {ordering!r}")
    groups = [_group_of(entry, known) for entry in ordering]
    while groups and not groups[-1]:
        groups.pop()
    if not all(groups):
        raise ValueError(f"orderings[{user}] has a missing entry before its end: {groups[:12]}")
    within = [group for group in groups if len(group) > 1 and any(_is_gap(x, known) for x in group)]
    if within:
        raise ValueError(f"orderings[{user}] has a missing entry in a tie: {within[0]!r}")
    nested = [item for group in groups for item in group if _is_tie(item, known)]
    if nested:
        raise TypeError(f"orderings[{user}] has a tie within a tie: {nested[0]!r}")
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


def _fill_ranks(
    ranks: NDArray[np.int32], groups: list[list[Hashable]], codes: dict[Hashable, int], where: str
) -> None:
    """Give each item of a group the first of the group's ranks, in ``ranks[item]``."""
    rank = 1
    for group in groups:
        for item in group:
            if item not in codes:
                raise ValueError(f"{where} has {item!r}, which is not among the {len(codes)} items")
            if ranks[codes[item]]:
                raise ValueError(f"{where} has {item!r} twice")
            ranks[codes[item]] = rank
        rank += len(group)
