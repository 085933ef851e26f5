"""Preferences: what is known of the users, checked once, then trusted."""

import warnings
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..rankings import as_array, check_ranks, numeric_table
from .headers import (
    USER,
    advice_on,
    are_places,
    find_column,
    has_low,
    is_long,
    judging_column,
    order_of_places,
    other_columns,
    place_of,
    refuse_pairs,
    word,
)

PAIRS = (
    "for pairs of user and item give a data frame or a dict with the columns 'user' and 'item', or "
    "a dict {user: [item, ...]}"
)
MAX_WEIGHT = 1e9  # in all; costs of as many users still fit into 64 bits


class ZeroBasedWarning(UserWarning):
    """Every row has the ranks 0 to n - 1: 0 means not ranked, so the best would become the last."""


class ColumnWarning(UserWarning):
    """A column of a table that may mean more than is made of it."""


class IgnoredColumnWarning(ColumnWarning):
    """A column of a table of clicks that may say which rows are none."""


class DroppedRowsWarning(UserWarning):
    """Rows that say nothing here: without a user or an item, or with one that the fit lacks."""


@dataclass(frozen=True, eq=False)
class Preferences:
    """What is known of the users.

    Make one with :meth:`from_rankings`, :meth:`from_orderings` or :meth:`from_clicks`; the result
    is of the class :class:`Rankings` or :class:`Clicks`. A row stands for ``weights[user]`` people.
    """

    weights: NDArray[np.int64]
    users: NDArray[Any]
    items: NDArray[Any]

    @staticmethod
    def from_rankings(
        rankings: Any,
        *,
        weights: ArrayLike | None = None,
        users: Sequence[Hashable] | None = None,
        items: Sequence[Hashable] | None = None,
    ) -> "Rankings":
        """Full or partial rankings, one row a user.

        Parameters
        ----------
        rankings : (n_users, n_items) array_like or data frame
            ``rankings[user, item]`` is a rank, 1 for the best; 0 or NaN means not ranked. The
            columns of a data frame name the items, the index of a pandas frame the users, if it
            has no name twice.
        weights : (n_users,) array_like of int, optional
            How many people gave each ranking.
        users, items : sequence, optional
            Names, in row and column order. For a data frame, `items` are its columns in the order
            that is wanted; to give them other names, use :meth:`rename`.

        Examples
        --------
        >>> prefs = Preferences.from_rankings([[1, 2, 3], [1, 0, 0]], items=["ale", "gin", "rum"])
        >>> prefs
        Rankings(2 users, 3 items; 1 full, 1 partial)
        """
        if hasattr(rankings, "columns"):
            refuse_pairs(list(rankings.columns))
            rankings, items = _columns_in_order(rankings, items)
            if users is None and hasattr(rankings, "index") and rankings.index.is_unique:
                users = list(rankings.index)
            rankings = _frame_values(rankings)
        ranks = check_ranks(rankings)
        _check_n_items(ranks.shape[1])
        _warn_if_zero_based(ranks, rankings)
        return Rankings(
            check_weights(weights, len(ranks)),
            _check_names(users, len(ranks), "users"),
            _check_names(items, ranks.shape[1], "items"),
            _fill_last_rank(ranks),
        )

    @staticmethod
    def from_orderings(
        orderings: Any,
        *,
        weights: ArrayLike | None = None,
        users: Sequence[Hashable] | None = None,
        items: Sequence[Hashable] | None = None,
    ) -> "Rankings":
        """Lists of items, best first, one a user; shorter lists are top-k lists.

        Without `items`, the items are all that appear in a list, sorted where they can be. Missing
        entries (None or NaN) at the end of a list are dropped. If the columns of a data frame name
        places (rank1, 2nd, third), these count, in whatever order the columns stand, and a column
        "user" names the users; if none does, the columns are taken as they stand.

        Examples
        --------
        >>> prefs = Preferences.from_orderings([["rum", "ale", "gin"], ["gin"]])
        >>> prefs.items
        array(['ale', 'gin', 'rum'], dtype=object)
        >>> prefs.rankings
        array([[2, 3, 1],
               [0, 1, 0]], dtype=int32)
        """
        if hasattr(orderings, "columns"):
            orderings, users = _orderings_of_frame(orderings, users)
        if not isinstance(orderings, Iterable):
            raise TypeError(f"orderings must be lists of items, one a user, got {orderings!r}")
        lists = [_drop_missing(ordering, user) for user, ordering in enumerate(orderings)]
        if not lists:
            raise ValueError("orderings is empty: give one list of items for each user")
        names = _sorted_names({item: None for row in lists for item in row})
        names = names if items is None else _check_names(items, None, "items").tolist()
        codes = {name: code for code, name in enumerate(names)}
        _check_n_items(len(names))
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
            _check_names(users, len(ranks), "users"),
            _check_names(names, len(names), "items"),
            _fill_last_rank(ranks),
        )

    @staticmethod
    def from_clicks(
        clicks: Any,
        *,
        weights: ArrayLike | None = None,
        users: Sequence[Hashable] | None = None,
        items: Sequence[Hashable] | None = None,
    ) -> "Clicks":
        """Clicks: which items each user has chosen, without any order.

        Parameters
        ----------
        clicks : SciPy sparse matrix, (n_users, n_items) array_like, long data frame, or dict
            In a matrix, every number above 0 is a click, however large: repeated clicks count once.
            A long frame (pandas or polars) has a row for each click, with columns "user" and
            "item", or the other names that :func:`read` knows, such as userId and movieId; other
            columns are ignored, with a warning if they look like ratings or counts. A dict is
            {user: [item, ...]}, or has these columns as keys. Pairs of numbers are refused, as they
            look like a matrix of two items: give a frame or a dict.
        weights : (n_users,) array_like of int, optional
            How many people each row stands for.
        users, items : sequence, optional
            Names. With a long frame or a dict, they fix the order, and may hold users and items
            that appear nowhere; without them, they are those that appear, sorted where they can be.

        Examples
        --------
        >>> prefs = Preferences.from_clicks([[1, 0, 1], [0, 0, 1]], items=["ale", "gin", "rum"])
        >>> prefs
        Clicks(2 users, 3 items; 3 clicks)
        >>> prefs.clicks_of(0)
        array([0, 2], dtype=int32)
        """
        if hasattr(clicks, "collect"):
            raise TypeError("clicks is a lazy frame: call .collect() first")
        if hasattr(clicks, "columns"):
            return _clicks_of_columns(list(clicks.columns), clicks, weights, users, items)
        if isinstance(clicks, Mapping) and not hasattr(clicks, "tocsr"):
            return _clicks_of_dict(clicks, weights, users, items)
        starts, codes, n_items = _clicks_of_matrix(clicks)
        _check_n_items(n_items)
        n_users = len(starts) - 1
        return Clicks(
            check_weights(weights, n_users),
            _check_names(users, n_users, "users"),
            _check_names(items, n_items, "items"),
            starts,
            codes,
        )

    @property
    def n_users(self) -> int:
        """Number of rows."""
        return len(self.users)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.items)

    @property
    def is_informative(self) -> NDArray[np.bool_]:
        """Which rows say anything."""
        raise NotImplementedError  # pragma: no cover

    def take(self, rows: ArrayLike) -> "Preferences":
        """Some of the rows, by number or by mask."""
        raise NotImplementedError  # pragma: no cover

    def one_row_each(self) -> tuple["Preferences", NDArray[np.int64]]:
        """The same with a row for each person, and the row here that each comes from.

        A row of weight 0 stays, with weight 0.
        """
        owners = np.repeat(np.arange(self.n_users), np.maximum(self.weights, 1))
        return replace(self.take(owners), weights=np.minimum(self.weights, 1)[owners]), owners

    def rename(
        self, *, users: Sequence[Hashable] | None = None, items: Sequence[Hashable] | None = None
    ) -> Self:
        """The same with other names.

        >>> Preferences.from_rankings([[1, 2]]).rename(items=["tea", "mate"]).items
        array(['tea', 'mate'], dtype=object)
        """
        new_users = self.users if users is None else _check_names(users, self.n_users, "users")
        new_items = self.items if items is None else _check_names(items, self.n_items, "items")
        return replace(self, users=new_users, items=new_items)


@dataclass(frozen=True, eq=False)
class Rankings(Preferences):
    """Full and partial rankings: ``rankings[user, item]`` is a rank, 1 the best, 0 not known.

    The items without a rank take, in an order that is not known, the ranks that are left.
    """

    rankings: NDArray[np.int32]

    def __repr__(self) -> str:
        n_full = int(self.is_full.sum())
        return (
            f"Rankings({self.n_users} users, {self.n_items} items; "
            f"{n_full} full, {self.n_users - n_full} partial)"
        )

    @property
    def is_full(self) -> NDArray[np.bool_]:
        """Which users have ranked every item."""
        return np.all(self.rankings > 0, axis=1)

    @property
    def is_informative(self) -> NDArray[np.bool_]:
        """Which rows say anything: a rank is known, and the weight is not 0."""
        return np.any(self.rankings > 0, axis=1) & (self.weights > 0)

    def take(self, rows: ArrayLike) -> "Rankings":
        """Some of the rows, by number or by mask."""
        chosen = np.arange(self.n_users)[index_of(rows)]
        return Rankings(self.weights[chosen], self.users[chosen], self.items, self.rankings[chosen])

    def filled_ranks(self) -> NDArray[np.float64]:
        """The ranks, each unknown one as the mean of those the user has left."""
        unknown = self.rankings == 0
        all_ranks = self.n_items * (self.n_items + 1) / 2
        n_unknown = np.maximum(unknown.sum(axis=1), 1)
        left = (all_ranks - self.rankings.sum(axis=1)) / n_unknown
        return np.where(unknown, left[:, None], self.rankings)

    def mean_ranks(self) -> NDArray[np.float64]:
        """Mean rank of each item; an unknown rank counts as the mean of those the user has left."""
        informative = self.take(self.is_informative)
        return np.asarray(
            np.average(informative.filled_ranks(), axis=0, weights=informative.weights)
        )


@dataclass(frozen=True, eq=False)
class Clicks(Preferences):
    """Clicks: the items of row `user` are ``codes[starts[user]:starts[user + 1]]``, sorted."""

    starts: NDArray[np.int64]
    codes: NDArray[np.int32]

    def __repr__(self) -> str:
        return f"Clicks({self.n_users} users, {self.n_items} items; {len(self.codes)} clicks)"

    @property
    def n_clicks(self) -> NDArray[np.int64]:
        """Number of clicks of each user."""
        return np.diff(self.starts)

    @property
    def is_informative(self) -> NDArray[np.bool_]:
        """Which rows say anything: some items are clicked, not all, and the weight is not 0."""
        return (self.n_clicks > 0) & (self.n_clicks < self.n_items) & (self.weights > 0)

    def clicks_of(self, row: int) -> NDArray[np.int32]:
        """The items that a user has clicked, as codes."""
        return self.codes[self.starts[row] : self.starts[row + 1]]

    def item_counts(self) -> NDArray[np.int64]:
        """How many people have clicked each item."""
        weights = np.repeat(self.weights, self.n_clicks)
        return np.bincount(self.codes, weights, self.n_items).astype(np.int64)

    def checksum(self) -> int:
        """A number that other clicks would hardly have; the sum of those of the rows."""
        sums = np.zeros(self.n_users, dtype=np.uint64)
        rows = np.flatnonzero(self.n_clicks)
        if len(rows):
            sums[rows] = np.add.reduceat(_mix(self.codes), self.starts[rows])
        return int(_mix(sums ^ _mix(self.weights)).sum(dtype=np.uint64))

    def by_size(self) -> "SizeTable":
        """Users and clicks by the number of clicks, of those who have any."""
        sizes = self.n_clicks
        found = np.unique(sizes[(sizes > 0) & (self.weights > 0)])
        users = np.zeros(len(found), dtype=np.int64)
        counts = np.zeros(len(found) * self.n_items, dtype=np.int64)
        if not len(found):
            return SizeTable(found, users, counts.reshape(0, self.n_items))
        for first in range(0, self.n_users, 1 << 16):
            rows = slice(first, first + (1 << 16))
            mine, weights = sizes[rows], self.weights[rows] * (sizes[rows] > 0)
            places = np.minimum(np.searchsorted(found, mine), len(found) - 1)
            users += np.bincount(places, weights, len(found)).astype(np.int64)
            codes = self.codes[self.starts[first] : self.starts[first + len(mine)]]
            cells = np.repeat(places * self.n_items, mine) + codes
            counts += np.bincount(cells, np.repeat(weights, mine), len(counts)).astype(np.int64)
        return SizeTable(found, users, counts.reshape(len(found), self.n_items))

    def take(self, rows: ArrayLike) -> "Clicks":
        """Some of the rows, by number or by mask."""
        chosen = np.arange(self.n_users)[index_of(rows)]
        sizes = self.n_clicks[chosen]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        places = np.arange(starts[-1]) + np.repeat(self.starts[chosen] - starts[:-1], sizes)
        return Clicks(
            self.weights[chosen], self.users[chosen], self.items, starts, self.codes[places]
        )


def index_of(rows: ArrayLike) -> NDArray[Any]:
    """Numbers or a mask; an empty list is of numbers."""
    chosen = np.asarray(rows)
    return chosen if chosen.size else chosen.astype(np.int64)


def _mix(numbers: NDArray[Any]) -> NDArray[np.uint64]:
    """Scatter whole numbers over 64 bits (the end of splitmix64)."""
    mixed = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


@dataclass(frozen=True)
class SizeTable:
    """``users[place]`` people have ``sizes[place]`` clicks, ``counts[place, item]`` on an item."""

    sizes: NDArray[np.int64]
    users: NDArray[np.int64]
    counts: NDArray[np.int64]

    def plus(self, other: "SizeTable") -> "SizeTable":
        """The table of both together."""
        sizes = np.union1d(self.sizes, other.sizes)
        users = np.zeros(len(sizes), dtype=np.int64)
        counts = np.zeros((len(sizes), self.counts.shape[1]), dtype=np.int64)
        for table in (self, other):
            places = np.searchsorted(sizes, table.sizes)
            users[places] += table.users
            counts[places] += table.counts
        return SizeTable(sizes, users, counts)


def check_preferences(prefs: Any) -> None:
    """Refuse anything else."""
    if not isinstance(prefs, Preferences):
        raise TypeError(
            f"prefs must be Preferences, got {type(prefs).__name__}: "
            "use pm.Preferences.from_rankings, from_orderings or from_clicks"
        )


def _check_n_items(n_items: int) -> None:
    if n_items < 2:
        raise ValueError(f"a ranking needs at least 2 items, got {n_items}")


def check_weights(weights: ArrayLike | None, n_users: int) -> NDArray[np.int64]:
    """Return weights as whole numbers, 1 each if None, or say what is wrong with them."""
    if weights is None:
        return np.ones(n_users, dtype=np.int64)
    given = as_array(weights, "weights")
    if given.shape != (n_users,):
        raise ValueError(f"weights must have one number a user ({n_users}), got {given.shape}")
    values = numeric_table(given[None], "weights", "whole numbers")[0]
    wrong = ~((values >= 0) & (values <= MAX_WEIGHT) & (values == np.floor(values)))
    if wrong.any():
        user = int(wrong.argmax())
        raise ValueError(
            f"weights[{user}] must be a whole number, 0 or more (how many people gave this "
            f"ranking), and at most {MAX_WEIGHT:.0e}, got {values[user]}; {int(wrong.sum())} of "
            f"{n_users} are wrong"
        )
    if values.sum() > MAX_WEIGHT:
        raise ValueError(f"weights must sum to at most {MAX_WEIGHT:.0e}, got {values.sum():.3g}")
    return values.astype(np.int64)


def _check_names(
    names: Sequence[Hashable] | NDArray[Any] | None, count: int | None, what: str
) -> NDArray[Any]:
    """Names as an array, all different; numbers if there are none."""
    if names is None:
        return np.arange(count or 0)
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(f"{what} must be a list of names, got {names!r}")
    listed = [name.item() if isinstance(name, np.generic) else name for name in names]
    if count is not None and len(listed) != count:
        raise ValueError(f"{what} must have {count} names, got {len(listed)}")
    if len(set(listed)) != len(listed):
        twice = Counter(listed).most_common(1)[0][0]
        raise ValueError(f"{what} must have different names, got {twice!r} twice")
    return _object_array(listed)


def _fill_last_rank(ranks: NDArray[np.int32]) -> NDArray[np.int32]:
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
            stacklevel=3,
        )


def _columns_in_order(frame: Any, items: Sequence[Hashable] | None) -> tuple[Any, list[Hashable]]:
    """A frame with the columns in the order of `items`."""
    columns = list(frame.columns)
    if items is None:
        return frame, columns
    wanted = _check_names(items, len(columns), "items").tolist()
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


def _is_missing(value: Hashable) -> bool:
    """None, NaN, or a missing value of pandas, which equals nothing."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def _drop_missing(ordering: Iterable[Hashable], user: int) -> list[Hashable]:
    if isinstance(ordering, str) or not isinstance(ordering, Iterable):
        raise TypeError(f"orderings[{user}] must be a list of items, best first, got {ordering!r}")
    row = [item.item() if isinstance(item, np.generic) else item for item in ordering]
    while row and _is_missing(row[-1]):
        row.pop()
    if any(_is_missing(item) for item in row):
        raise ValueError(f"orderings[{user}] has a missing entry before its end: {row[:12]}")
    return row


def _sorted_names(names: Iterable[Hashable]) -> list[Hashable]:
    listed = list(names)
    try:
        return sorted(listed)  # type: ignore[type-var]
    except TypeError:
        return listed


def _clicks_of_matrix(clicks: Any) -> tuple[NDArray[np.int64], NDArray[np.int32], int]:
    """Rows of a sparse or dense matrix whose numbers above 0 are clicks."""
    if hasattr(clicks, "tocoo"):
        if hasattr(clicks, "check_format"):  # compiled code believes the indices
            try:
                clicks.check_format(full_check=True)
            except ValueError as error:
                raise ValueError(f"clicks is a sparse matrix that is damaged: {error}") from None
        found = clicks.tocoo()
        if found.ndim != 2:
            raise ValueError(f"clicks must be a table of users and items, got {found.ndim} axes")
        _check_counts(found.data, None)
        kept = found.data > 0  # before repeats are added up, which could overflow
        rows, columns, shape = found.row[kept], found.col[kept], found.shape
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
        _refuse_pairs_of_names(clicks, table)
        _refuse_two_columns(clicks, table)
        rows, columns = np.nonzero(table)
        shape = table.shape
    if shape[0] == 0:
        raise ValueError("clicks is empty: it has no users")
    starts, codes = rows_of_pairs(rows.astype(np.int64), columns.astype(np.int64), *shape)
    return starts, codes, int(shape[1])


def _refuse_pairs_of_names(clicks: Any, table: NDArray[Any]) -> None:
    """Refuse rows that may be of user and item: two columns, or tuples of up to four, that have
    more than zeros and ones."""
    is_tuples = isinstance(clicks, list) and isinstance(clicks[0], tuple)
    may_be_pairs = 2 <= table.shape[1] <= (4 if is_tuples else 2)
    if may_be_pairs and not np.isin(table, (0, 1)).all():
        raise ValueError(
            f"clicks has {len(table)} rows of {table.shape[1]} numbers, not all of them 0 or 1: "
            f"{PAIRS}; for a matrix of counts give counts > 0"
        )


def _refuse_two_columns(clicks: Any, table: NDArray[Any]) -> None:
    """Refuse two lists that may be of users and of items; as a matrix, they would say nothing."""
    may_be_columns = isinstance(clicks, list | tuple) and len(table) == 2 and table.shape[1] > 2
    if may_be_columns and (table > 0).all() and (table != 1).any():
        raise ValueError(
            f"clicks has two rows of {table.shape[1]} numbers, all above 0: if they are users and "
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


def _check_counts(values: NDArray[Any], shape: tuple[int, ...] | None) -> None:
    if values.dtype.kind == "c":
        raise TypeError("clicks must be numbers (0 for no click), got complex ones")
    wrong = ~(np.asarray(values) >= 0)
    if wrong.any():
        place = int(wrong.argmax())
        value = values.ravel()[place]
        where = f" at {[int(i) for i in np.unravel_index(place, shape)]}" if shape else ""
        raise ValueError(f"clicks must be 0 (no click) or more (a click), got {value}{where}")


def _clicks_of_columns(
    names: list[Hashable],
    columns: Any,
    weights: ArrayLike | None,
    users: Sequence[Hashable] | None,
    items: Sequence[Hashable] | None,
) -> Clicks:
    """From a long table, a data frame or a dict: ``columns[name]`` is a column."""
    try:
        user, item = (names[find_column(names, what)] for what in ("user", "item"))
    except ValueError as error:
        raise ValueError(f"clicks needs columns of users and items, but has {error}") from None
    place, kind = judging_column(names)
    if kind not in ("", "position"):
        warn_of_column("clicks: ", names[place], kind, _value_counts(columns[names[place]]))
    for other in other_columns(names) if not kind else ():
        if has_low(counts := _value_counts(columns[names[other]])):
            warn_of_column("clicks: ", names[other], "number", counts)
    rows, user_names = _encode(_column(columns[user], "user"), users, "user")
    codes, item_names = _encode(_column(columns[item], "item"), items, "item")
    return clicks_of_pairs(rows, codes, weights, user_names, item_names)


def _value_counts(column: Any) -> dict[float, int]:
    """How often each number appears; none of a column that has other values."""
    try:
        if np.asarray(column).dtype.kind in "mM":  # times
            return {}
        values, counts = np.unique(np.asarray(column, dtype=np.float64), return_counts=True)
    except (TypeError, ValueError):
        return {}
    return dict(zip(values.tolist(), counts.tolist(), strict=True))


def warn_of_column(where: str, name: Hashable, kind: str, counts: Mapping[Any, int]) -> None:
    """Say that a column of a table of clicks is not heeded; its kind is of `judging_column`."""
    what = IgnoredColumnWarning if kind == "clicked" else ColumnWarning
    warnings.warn(what(where + advice_on(name, kind, counts)), stacklevel=3)


def _clicks_of_dict(
    clicks: Mapping[Any, Any],
    weights: ArrayLike | None,
    users: Sequence[Hashable] | None,
    items: Sequence[Hashable] | None,
) -> Clicks:
    for user, listed in clicks.items():
        if isinstance(listed, str) or not isinstance(listed, Iterable):
            raise TypeError(f"clicks of {user!r} must be a list of items, got {listed!r}")
    lists = [list(listed) for listed in clicks.values()]
    if is_long(list(clicks)):
        if len({len(listed) for listed in lists}) == 1:
            return _clicks_of_columns(list(clicks), clicks, weights, users, items)
        if len(clicks) == 2:
            one, other = clicks
            raise ValueError(
                f"clicks has the keys {one!r} and {other!r}, but not as many users as items: give "
                "columns of equal length, or a dict {user: [item, ...]}"
            )
    everybody = _check_names(list(clicks) if users is None else users, None, "users")
    places = {name: row for row, name in enumerate(everybody.tolist())}
    owners = np.array([places.get(user, -1) for user in clicks], dtype=np.int64)
    check_known(owners, list(clicks), "user")
    rows = np.repeat(owners, [len(listed) for listed in lists])
    names = _object_array([name for listed in lists for name in listed])
    codes, item_names = _encode(names, items, "item")
    return clicks_of_pairs(rows, codes, weights, everybody, item_names)


def clicks_of_pairs(
    rows: NDArray[Any],
    codes: NDArray[Any],
    weights: ArrayLike | None,
    user_names: NDArray[Any],
    item_names: NDArray[Any],
) -> Clicks:
    if len(user_names) == 0:
        raise ValueError("clicks is empty: it has no users")
    n_users, n_items = len(user_names), len(item_names)
    _check_n_items(n_items)
    starts, columns = rows_of_pairs(rows, codes, n_users, n_items)
    return Clicks(check_weights(weights, n_users), user_names, item_names, starts, columns)


def _column(column: Any, what: str) -> NDArray[Any]:
    """The values of a column, of a frame or not, none of them missing."""
    if hasattr(column, "isna"):
        absent = np.asarray(column.isna())
    elif not hasattr(column, "is_null"):
        column = _object_array(list(column))
        absent = np.array([_is_missing(name) for name in column], dtype=bool)
    else:
        absent = np.asarray(column.is_null())
        absent |= np.asarray(column.is_nan() if column.dtype.is_float() else False)
    if absent.any():
        raise ValueError(
            f"row {int(absent.argmax())} has no {what}; {int(absent.sum())} rows have this problem"
        )
    return np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)


def _encode(
    values: NDArray[Any], names: Sequence[Hashable] | None, what: str
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Codes of names, and the names they stand for."""
    if names is None:
        try:
            found, codes = np.unique(values, return_inverse=True)
        except TypeError:  # numbers and text together
            found = _object_array(list(dict.fromkeys(values.tolist())))
            order = {name: code for code, name in enumerate(found.tolist())}
            codes = np.array([order[name] for name in values.tolist()])
        return codes.astype(np.int64), _object_array(found.tolist())
    listed = _check_names(names, None, what + "s")
    lookup = {name: code for code, name in enumerate(listed.tolist())}
    codes = np.array([lookup.get(name, -1) for name in values.tolist()], dtype=np.int64)
    check_known(codes, values, what)
    return codes, listed


def _object_array(listed: list[Any]) -> NDArray[Any]:
    array = np.empty(len(listed), dtype=object)
    array[:] = listed
    return array


def rows_of_users(prefs: Preferences, users: Any) -> NDArray[np.int64]:
    """The rows of users, by name; one name alone is one user."""
    if isinstance(users, Sized) and not isinstance(users, str) and not len(users):
        return np.empty(0, dtype=np.int64)
    rows = {name: row for row, name in enumerate(prefs.users.tolist())}
    if isinstance(users, str) or not isinstance(users, Iterable) or _is_key(users, rows):
        users = [users]
    unknown = [name for name in users if not _is_key(name, rows)]
    if unknown:
        shown, name = f"{prefs.users[:3].tolist()}"[1:-1], unknown[0]
        alike = next((user for user in rows if str(user) == str(name)), None)
        advice = f"the first are {shown}" if alike is None else f"did you mean {alike!r}?"
        raise ValueError(f"no user is named {name!r}; {advice}")
    return np.array([rows[name] for name in users], dtype=np.int64)


def _is_key(name: Any, known: Mapping[Any, Any]) -> bool:
    try:
        return name in known
    except TypeError:  # a list or an array, which is no name
        return False


def check_known(codes: NDArray[np.int64], names: Any, what: str) -> None:
    """Refuse names that have no code, and say which."""
    unknown = list(dict.fromkeys(name for name, code in zip(names, codes, strict=True) if code < 0))
    if unknown:
        more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        shown = ", ".join(repr(name) for name in unknown[:3])
        raise ValueError(
            f"unknown {what}: {shown}{more}; known are those of the fit, or of {what}s="
        )
