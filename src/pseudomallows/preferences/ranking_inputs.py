"""Rankings from tables of ranks, data frames and lists of items."""

import warnings
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..rankings import check_ranks
from .base import ZeroBasedWarning, check_n_items, check_names, check_weights, is_missing
from .blocks import Rankings
from .headers import USER, are_places, order_of_places, place_of, refuse_pairs, word


def rankings_of_table(
    rankings: Any,
    weights: ArrayLike | None,
    users: Sequence[Hashable] | None,
    items: Sequence[Hashable] | None,
) -> Rankings:
    """See :meth:`Preferences.from_rankings`."""
    if hasattr(rankings, "columns"):
        refuse_pairs(list(rankings.columns))
        rankings, items = _columns_in_order(rankings, items)
        if users is None and hasattr(rankings, "index") and rankings.index.is_unique:
            users = list(rankings.index)
        rankings = _frame_values(rankings)
    ranks = check_ranks(rankings)
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
    if hasattr(orderings, "columns"):
        orderings, users = _orderings_of_frame(orderings, users)
    if not isinstance(orderings, Iterable):
        raise TypeError(f"orderings must be lists of items, one a user, got {orderings!r}")
    lists = [_drop_missing(ordering, user) for user, ordering in enumerate(orderings)]
    if not lists:
        raise ValueError("orderings is empty: give one list of items for each user")
    names = _sorted_names({item: None for row in lists for item in row})
    names = names if items is None else check_names(items, None, "items").tolist()
    codes = {name: code for code, name in enumerate(names)}
    check_n_items(len(names))
    ranks = np.zeros((len(lists), len(names)), dtype=np.int32)
    for user, row in enumerate(lists):
        for place, item in enumerate(row):
            if item not in codes:
                raise ValueError(
                    f"orderings[{user}] has {item!r}, which is not among the {len(names)} items"
                )
            if ranks[user, codes[item]]:
                raise ValueError(f"orderings[{user}] has {item!r} twice")
            ranks[user, codes[item]] = place + 1
    return Rankings(
        check_weights(weights, len(ranks)),
        check_names(users, len(ranks), "users"),
        check_names(names, len(names), "items"),
        fill_last_rank(ranks),
    )


def fill_last_rank(ranks: NDArray[np.int32]) -> NDArray[np.int32]:
    """One item without a rank can only take the one rank that is left."""
    n_items = ranks.shape[1]
    rows = np.flatnonzero((ranks == 0).sum(axis=1) == 1)
    left = n_items * (n_items + 1) // 2 - ranks[rows].sum(axis=1)
    ranks[rows, (ranks[rows] == 0).argmax(axis=1)] = left
    return ranks


def _warn_if_zero_based(ranks: NDArray[np.int32], given: Any) -> None:
    n_users, n_items = ranks.shape
    if n_users < 2 or n_items < 3 or np.isnan(np.asarray(given, dtype=np.float64)).any():
        return
    if (np.sort(ranks, axis=1) == np.arange(n_items)).all():
        warnings.warn(
            ZeroBasedWarning(
                "every row has the ranks 0 to n - 1, and 0 means not ranked, so it is taken as the "
                "last rank: add 1 if the ranks start at 0; if not, write NaN for not ranked"
            ),
            stacklevel=4,
        )


def _columns_in_order(frame: Any, items: Sequence[Hashable] | None) -> tuple[Any, list[Hashable]]:
    """A frame with the columns in the order of `items`."""
    columns = list(frame.columns)
    if items is None:
        return frame, columns
    wanted = check_names(items, len(columns), "items").tolist()
    strange = [name for name in wanted if name not in columns]
    if strange:
        raise ValueError(
            f"items has {strange[0]!r}, which is not a column; the columns are {columns[:5]}: to "
            "rename them use .rename(items=...)"
        )
    return frame[wanted], wanted


def _frame_values(frame: Any) -> Any:
    """The numbers of a pandas or polars frame, missing ones as NaN."""
    if hasattr(frame, "iloc"):
        odd = [name for name, kind in frame.dtypes.items() if kind.kind not in "iuf"]
        odd = [name for name in odd if not frame[name].isna().all()]
        if odd:
            raise TypeError(
                f"rankings must be numbers (ranks), but column {odd[0]!r} is {frame.dtypes[odd[0]]}"
            )
        return frame.to_numpy(dtype=np.float64, na_value=np.nan)
    odd = [name for name, kind in frame.schema.items() if not kind.is_numeric()]
    odd = [name for name in odd if frame[name].null_count() < len(frame)]
    if odd:
        raise TypeError(
            f"rankings must be numbers (ranks), but column {odd[0]!r} is {frame.schema[odd[0]]}"
        )
    return np.array(frame.to_numpy(), dtype=np.float64)  # nulls become NaN


def _orderings_of_frame(frame: Any, users: Any) -> tuple[Any, Any]:
    """The items, those of the first place first, and the users, if a column names them."""
    names = list(frame.columns)
    if all(place_of(name) is None for name in names):
        return frame.to_numpy(), users
    owners = [name for name in names if word(name) in USER][:1]
    places = [name for name in names if name not in owners]
    if not are_places(places):
        strange = next(name for name in places if place_of(name) is None)
        raise ValueError(
            f"orderings has a column {strange!r} beside those of places: leave it out, or call it "
            "'user' if it names the users"
        )
    order = order_of_places(places)
    if owners and users is None:
        users = list(frame[owners[0]])
    return frame[[places[column] for column in order]].to_numpy(), users


def _drop_missing(ordering: Iterable[Hashable], user: int) -> list[Hashable]:
    if isinstance(ordering, str) or not isinstance(ordering, Iterable):
        raise TypeError(f"orderings[{user}] must be a list of items, best first, got {ordering!r}")
    row = [item.item() if isinstance(item, np.generic) else item for item in ordering]
    while row and is_missing(row[-1]):
        row.pop()
    if any(is_missing(item) for item in row):
        raise ValueError(f"orderings[{user}] has a missing entry before its end: {row[:12]}")
    return row


def _sorted_names(names: Iterable[Hashable]) -> list[Hashable]:
    listed = list(names)
    try:
        return sorted(listed)  # type: ignore[type-var]
    except TypeError:
        return listed
