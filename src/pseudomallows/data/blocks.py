"""Kinds of data by blocks, items that share ranks: rankings, full or in part, and clicks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..rankings import MAX_WEIGHT
from .checks import index_of, spread
from .preferences import Preferences
from .ties import block_sizes, check_tied_ranks, fill_last_rank

SHAPES = ("full", "partial", "with ties")  # of a row of rankings


@dataclass(frozen=True, eq=False)
class Rankings(Preferences):
    """Rankings, full, partial or tied: ``rankings[user, item]`` is a rank, 1 the best, 0 not known.

    Items of equal rank r, m of them, take the ranks r to r + m - 1 in an order that is not known;
    the items without a rank take, likewise, the ranks that are left.
    """

    kind = "rankings"
    ARRAYS: ClassVar[dict[str, Any]] = {"ranking_weights": np.int64, "ranking_rankings": np.int32}

    rankings: NDArray[np.int32]

    def __repr__(self) -> str:
        facts = self.facts()
        shapes = ", ".join(f"{facts[name]} {name}" for name in SHAPES if name in facts)
        return f"Rankings({self.n_users} users, {self.n_items} items; {shapes})"

    @property
    def is_row_full(self) -> NDArray[np.bool_]:
        """Which users have ranked every item, without ties."""
        sums = self.rankings.sum(axis=1, dtype=np.int64)  # a tie lowers the sum
        is_whole = sums == self.n_items * (self.n_items + 1) // 2
        return is_whole & np.all(self.rankings > 0, axis=1)

    @property
    def is_row_tied(self) -> NDArray[np.bool_]:
        """Which users have given a rank to several items."""
        return np.any((block_sizes(self.rankings) > 1) & (self.rankings > 0), axis=1)

    @property
    def is_informative(self) -> NDArray[np.bool_]:
        """Which rows say anything: a rank is known, not all items tie, and the weight is not 0."""
        differs = np.any(self.rankings > 0, axis=1) & np.any(self.rankings != 1, axis=1)
        return differs & (self.weights > 0)

    @property
    def shape_words(self) -> str:
        """What the data are, for messages."""
        if self.is_full:
            return "full rankings"
        return "rankings with ties" if self.is_row_tied.any() else "partial rankings"

    def facts(self) -> dict[str, int | float]:
        """Figures of the data, by words; "with ties" only if there are any.

        >>> Preferences.from_rankings([[1, 2, 3], [1, 0, 0]]).facts()
        {'users': 2, 'items': 3, 'people': 2, 'full': 1, 'partial': 1}
        """
        n_full, n_tied = int(self.is_row_full.sum()), int(self.is_row_tied.sum())
        facts = super().facts() | {"full": n_full, "partial": self.n_users - n_full - n_tied}
        return facts | ({"with ties": n_tied} if n_tied else {})

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], users: NDArray[Any], items: NDArray[Any]
    ) -> "Rankings":
        """The rankings of such arrays, which are checked.

        >>> prefs = Preferences.from_rankings([[1, 2, 3], [1, 0, 0]])
        >>> Rankings.from_arrays(prefs.to_arrays(), prefs.users, prefs.items)
        Rankings(2 users, 3 items; 1 full, 1 partial)
        """
        weights, ranks = typed_arrays(arrays, cls.ARRAYS)
        if ranks.shape != (len(users), len(items)) or weights.shape != (len(users),):
            raise ValueError("its rankings do not fit together")
        check_saved_weights(weights, "rankings")
        if len(ranks) and not np.array_equal(check_tied_ranks(ranks), ranks):
            raise ValueError("its ties do not have the first of their ranks")
        return cls(weights, users, items, ranks)

    def as_rankings(self) -> "Rankings":
        """They are."""
        return self

    def kept(self) -> "Rankings | None":
        """The rankings, if anything is not known of them."""
        return None if self.is_full else self

    def take(self, rows: ArrayLike) -> "Rankings":
        """Some of the rows, by number or by mask."""
        chosen = np.arange(self.n_users)[index_of(rows)]
        return Rankings(
            self.weights[chosen],
            self.users[chosen],
            self.items,
            self.rankings[chosen],
            backend=self.backend,
        )

    def on_items(self, items: NDArray[Any], places: NDArray[np.int64]) -> "Rankings":
        """The same over other items; those that are new are not ranked."""
        ranks = np.zeros((self.n_users, len(items)), dtype=np.int32)
        ranks[:, places] = self.rankings
        return Rankings(self.weights, self.users, items, fill_last_rank(ranks))

    @classmethod
    def stack(cls, parts: Sequence["Rankings"], users: NDArray[Any]) -> "Rankings":
        """Rankings of the same items one after the other."""
        weights = np.concatenate([part.weights for part in parts])
        ranks = np.concatenate([part.rankings for part in parts])
        return Rankings(weights, users, parts[0].items, ranks)

    def filled_ranks(self) -> NDArray[np.float64]:
        """The ranks, each unknown one as the mean of those the item may have.

        >>> Preferences.from_rankings([[1, 1, 0, 0]]).filled_ranks()
        array([[1.5, 1.5, 3.5, 3.5]])
        """
        unknown = self.rankings == 0
        means = self.rankings + np.where(unknown, 0.0, (block_sizes(self.rankings) - 1) / 2)
        all_ranks = self.n_items * (self.n_items + 1) / 2
        n_unknown = np.maximum(unknown.sum(axis=1), 1)
        left = (all_ranks - means.sum(axis=1)) / n_unknown
        return np.where(unknown, left[:, None], means)

    def mean_ranks(self) -> NDArray[np.float64]:
        """Mean rank of each item; an unknown rank counts as the mean of those it may be."""
        informative = self.take(self.is_informative)
        return np.asarray(
            np.average(informative.filled_ranks(), axis=0, weights=informative.weights)
        )


@dataclass(frozen=True, eq=False)
class Entries(Preferences):
    """What is known as entries of the rows: those of row `user` are from ``starts[user]`` to
    ``starts[user + 1] - 1`` of each array in `ENTRIES`."""

    ENTRIES: ClassVar[tuple[str, ...]]
    WORDS: ClassVar[str]  # what the entries are

    starts: NDArray[np.int64]

    @property
    def owners(self) -> NDArray[np.int64]:
        """``owners[entry]`` is the row it belongs to."""
        return np.repeat(np.arange(self.n_users), np.diff(self.starts))

    @property
    def is_row_full(self) -> NDArray[np.bool_]:
        """Of which users everything is known: none, for clicks have no order, and comparisons may
        be mistaken."""
        return np.zeros(self.n_users, dtype=bool)

    def kept(self) -> Any:
        """The data."""
        return self

    def take(self, rows: ArrayLike) -> Any:
        """Some of the rows, by number or by mask."""
        chosen = np.arange(self.n_users)[index_of(rows)]
        sizes = (self.starts[1:] - self.starts[:-1])[chosen]  # as `np.diff`, slow for one user
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        places = np.arange(starts[-1]) + np.repeat(self.starts[chosen] - starts[:-1], sizes)
        arrays: dict[str, Any] = {name: getattr(self, name) for name in self.ENTRIES}
        arrays = {name: a if a is None else a[places] for name, a in arrays.items()}
        weights, users = self.weights[chosen], self.users[chosen]
        return replace(self, weights=weights, users=users, starts=starts, **arrays)

    @classmethod
    def stack(cls, parts: Sequence[Any], users: NDArray[Any]) -> Self:
        """Rows of the same items one after the other."""
        weights = np.concatenate([part.weights for part in parts])
        sizes = np.concatenate([np.diff(part.starts) for part in parts])
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        entries: dict[str, Any] = {name: stacked(parts, name) for name in cls.ENTRIES}
        return cls(weights, users, parts[0].items, starts, **entries)

    @classmethod
    def check_starts(cls, arrays: Sequence[NDArray[Any]], n_users: int) -> None:
        """Refuse starts, weights and entries of a file that do not fit together."""
        starts, weights, *entries = arrays
        fits = starts.shape == (n_users + 1,) and weights.shape == (n_users,)
        fits = fits and starts[0] == 0 and bool((np.diff(starts) >= 0).all())
        if not (fits and all(entry.shape == (starts[-1],) for entry in entries)):
            raise ValueError(f"its {cls.WORDS} do not fit together")
        check_saved_weights(weights, cls.WORDS)


def stacked(parts: Sequence[Any], name: str) -> NDArray[Any] | None:
    """The entries of all parts; times that a part lacks are NaN."""
    arrays = [getattr(part, name) for part in parts]
    if all(array is None for array in arrays):
        return None
    sizes = [int(part.starts[-1]) for part in parts]
    return np.concatenate(
        [np.full(n, np.nan) if a is None else a for a, n in zip(arrays, sizes, strict=True)]
    )


@dataclass(frozen=True, eq=False)
class Clicks(Entries):
    """Clicks: the items of row `user` are ``codes[starts[user]:starts[user + 1]]``, sorted.

    ``times[place]`` is when the click ``codes[place]`` was made, for the first time: in seconds
    since 1970 (UTC) for dates, otherwise the number that was given; NaN where it is not known.
    `times` is None where no click has one.
    """

    kind = "clicks"
    ARRAYS: ClassVar[dict[str, Any]] = {
        "click_starts": np.int64,
        "click_weights": np.int64,
        "click_codes": np.int32,
    }
    OPTIONAL: ClassVar[dict[str, Any]] = {"click_times": np.float64}
    ENTRIES = ("codes", "times")
    WORDS = "clicks"

    codes: NDArray[np.int32]
    times: NDArray[np.float64] | None = field(default=None, kw_only=True)
    reading: str = field(default="", kw_only=True)  # the call that reads these clicks again

    def __repr__(self) -> str:
        return f"Clicks({self.n_users} users, {self.n_items} items; {len(self.codes)} clicks)"

    @property
    def shape_words(self) -> str:
        """What the data are, for messages."""
        return self.WORDS

    def facts(self) -> dict[str, int | float]:
        """Figures of the data, by words.

        >>> facts = Preferences.from_clicks([[1, 0, 1], [0, 0, 1]]).facts()
        >>> facts["clicks"], facts["clicks of a user, mean"], facts["density"]
        (3, 1.5, 0.5)
        """
        counts, n_clicks = self.item_counts(), len(self.codes)
        return super().facts() | {
            "clicks": n_clicks,
            **spread(self.n_clicks, "clicks of a user"),
            "users of an item, fewest": int(counts.min()),
            "users of an item, most": int(counts.max()),
            "density": n_clicks / max(self.n_users * self.n_items, 1),
        }

    def contents(self) -> Iterable[Any]:
        """Bytes that other clicks would hardly have."""
        times = [] if self.times is None else [np.ascontiguousarray(self.times).data]
        return [str(self.checksum()).encode(), *times]

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], users: NDArray[Any], items: NDArray[Any]
    ) -> "Clicks":
        """The clicks of such arrays, which are checked.

        >>> prefs = Preferences.from_clicks([[1, 0, 1], [0, 0, 1]])
        >>> Clicks.from_arrays(prefs.to_arrays(), prefs.users, prefs.items)
        Clicks(2 users, 3 items; 3 clicks)
        """
        starts, weights, codes = given = typed_arrays(arrays, Clicks.ARRAYS)
        cls.check_starts(given, len(users))
        if len(codes) and not 0 <= codes.min() <= codes.max() < len(items):
            raise ValueError("its clicks do not fit together")
        pairs = np.repeat(np.arange(len(users)), np.diff(starts)) * len(items) + codes
        if not (np.diff(pairs) > 0).all() and len(np.unique(pairs)) < len(pairs):
            raise ValueError("a user has clicked an item twice")
        times = None
        if "click_times" in arrays:
            (times,) = typed_arrays(arrays, Clicks.OPTIONAL)
            if times.shape != codes.shape or np.isinf(times).any():
                raise ValueError("its times do not fit its clicks")
        return Clicks(weights, users, items, starts, codes, times=times)

    @property
    def n_clicks(self) -> NDArray[np.int64]:
        """Number of clicks of each user."""
        return self.starts[1:] - self.starts[:-1]  # as `np.diff`, which is slow for one user

    @property
    def is_informative(self) -> NDArray[np.bool_]:
        """Which rows say anything: some items are clicked, not all, and the weight is not 0."""
        return (self.n_clicks > 0) & (self.n_clicks < self.n_items) & (self.weights > 0)

    def choose(self, is_chosen: NDArray[np.bool_]) -> "Clicks":
        """Some of the clicks, one place in `is_chosen` for each; users and items stay."""
        before = np.concatenate([[0], np.cumsum(is_chosen)])
        times = None if self.times is None else self.times[is_chosen]
        return replace(self, starts=before[self.starts], codes=self.codes[is_chosen], times=times)

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
        numbers = np.unique(sizes[(sizes > 0) & (self.weights > 0)])
        users = np.zeros(len(numbers), dtype=np.int64)
        counts = np.zeros(len(numbers) * self.n_items, dtype=np.int64)
        if not len(numbers):
            return SizeTable(numbers, users, counts.reshape(0, self.n_items))
        for first in range(0, self.n_users, 1 << 16):
            rows = slice(first, first + (1 << 16))
            mine, weights = sizes[rows], self.weights[rows] * (sizes[rows] > 0)
            places = np.minimum(np.searchsorted(numbers, mine), len(numbers) - 1)
            users += np.bincount(places, weights, len(numbers)).astype(np.int64)
            codes = self.codes[self.starts[first] : self.starts[first + len(mine)]]
            cells = np.repeat(places * self.n_items, mine) + codes
            counts += np.bincount(cells, np.repeat(weights, mine), len(counts)).astype(np.int64)
        return SizeTable(numbers, users, counts.reshape(len(numbers), self.n_items))

    def as_rankings(self) -> Rankings:
        """Rankings with two ties.

        >>> Preferences.from_clicks([[0, 1, 1], [1, 0, 0]]).as_rankings().rankings
        array([[3, 1, 1],
               [1, 2, 2]], dtype=int32)
        """
        ranks = np.repeat(self.n_clicks[:, None] + 1, self.n_items, axis=1).astype(np.int32)
        ranks[self.owners, self.codes] = 1
        return Rankings(self.weights, self.users, self.items, ranks)

    def take(self, rows: ArrayLike) -> "Clicks":
        """Some of the rows, by number or by mask."""
        return replace(super().take(rows), reading="")

    def on_items(self, items: NDArray[Any], places: NDArray[np.int64]) -> "Clicks":
        """The same over other items."""
        codes = places.astype(np.int32)[self.codes]
        order = np.lexsort((codes, self.owners))
        times = None if self.times is None else self.times[order]
        return Clicks(self.weights, self.users, items, self.starts, codes[order], times=times)


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


def _mix(numbers: NDArray[Any]) -> NDArray[np.uint64]:
    """Scatter whole numbers over 64 bits (the end of splitmix64)."""
    mixed = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def typed_arrays(
    arrays: Mapping[str, NDArray[Any]], types: Mapping[str, Any]
) -> list[NDArray[Any]]:
    """The arrays of these names, of these types."""
    for name, dtype in types.items():
        if name not in arrays:
            raise ValueError(f"it has no array {name!r}")
        if arrays[name].dtype.kind != np.dtype(dtype).kind:
            raise ValueError(
                f"its array {name!r} is of {arrays[name].dtype}, and it must be {np.dtype(dtype)}"
            )
    return [arrays[name].astype(dtype, copy=False) for name, dtype in types.items()]


def check_saved_weights(weights: NDArray[np.int64], what: str) -> None:
    """Refuse weights of a file that no data here can have."""
    if len(weights) and not (weights.min() >= 0 and weights.astype(float).sum() <= MAX_WEIGHT):
        raise ValueError(f"its {what} have weights below 0, or too large ones")


def check_clicks(prefs: Any) -> Clicks:
    """Return `prefs`, or refuse anything but clicks."""
    if not isinstance(prefs, Clicks):
        raise TypeError(
            f"prefs must be clicks (pm.read, pm.Preferences.from_clicks), got {prefs!r}"
        )
    return prefs


def keep_core(prefs: Clicks, min_clicks: int) -> Clicks:
    """Leave out users and items with fewer clicks, again and again, until all have so many.

    Examples
    --------
    >>> prefs = Clicks.from_clicks([[1, 1, 0], [1, 1, 0], [0, 1, 1]])
    >>> keep_core(prefs, 2)
    Clicks(2 users, 2 items; 4 clicks)
    """
    owners, codes = prefs.owners, prefs.codes
    is_kept = np.ones(len(codes), dtype=bool)
    while True:
        n_before = int(is_kept.sum())
        of_users = np.bincount(owners[is_kept], minlength=prefs.n_users)
        of_items = np.bincount(codes[is_kept], minlength=prefs.n_items)
        is_kept &= (of_users[owners] >= min_clicks) & (of_items[codes] >= min_clicks)
        if int(is_kept.sum()) == n_before:
            break
    if not n_before:
        raise ValueError(
            f"min_clicks={min_clicks} leaves nothing: no users and items have so many clicks "
            "among themselves; lower it"
        )
    users, items = np.flatnonzero(of_users), np.flatnonzero(of_items)
    new_codes = (np.cumsum(of_items > 0) - 1).astype(np.int32)
    core = prefs.choose(is_kept).take(users)
    return replace(core, items=prefs.items[items], codes=new_codes[core.codes])


def clicks_matrix(
    starts: NDArray[np.int64],
    codes: NDArray[np.int32],
    n_items: int,
    weights: NDArray[Any] | None = None,
) -> Any:
    """Clicks as a sparse matrix of ones, or of the weight of each."""
    from scipy.sparse import csr_array

    mine = codes[starts[0] : starts[-1]]
    values = np.ones(len(mine)) if weights is None else weights
    return csr_array((values, mine, starts - starts[0]), shape=(len(starts) - 1, n_items))
