"""Users of several kinds together: some who rank, some who click, some who compare."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._warn import warn
from ..rankings import check_weights
from .blocks import Clicks, Rankings, check_saved_weights, typed_arrays
from .checks import index_of, object_array
from .pairs import Pairs
from .preferences import AbsentItemsWarning, Preferences, check_preferences

PARTS: tuple[type[Preferences], ...] = (Rankings, Clicks, Pairs)  # files number them by place
OF_A_PART = re.compile(r"part(\d{1,9})_(\w+)", re.ASCII)
SUMMED = ("full", "partial", "with ties", "clicks", "comparisons", "ties", "contradictory users")


@dataclass(frozen=True, eq=False)
class Mixed(Preferences):
    """Users of several kinds over the same items: the rows are those of the `parts`, in order.

    Make one with :meth:`Preferences.concat`.
    """

    kind = "mixed"
    ARRAYS: ClassVar[dict[str, Any]] = {"mixed_parts": np.int64}  # and those of the parts

    parts: tuple[Preferences, ...]

    def __post_init__(self) -> None:
        """Give the parts the names and weights that their rows have here, as `replace` may have
        changed them."""
        named = [
            replace(part, weights=self.weights[rows], users=self.users[rows], items=self.items)
            for part, rows in zip(self.parts, self.rows_of_parts(), strict=True)
        ]
        object.__setattr__(self, "parts", tuple(named))

    def __repr__(self) -> str:
        words = ", ".join(f"{part.n_users} by {part.kind}" for part in self.parts)
        return f"Mixed({self.n_users} users, {self.n_items} items; {words})"

    def rows_of_parts(self) -> Iterator[slice]:
        """The rows of each part."""
        first = 0
        for part in self.parts:
            yield slice(first, first + part.n_users)
            first += part.n_users

    @property
    def is_row_full(self) -> NDArray[np.bool_]:
        """Of which users everything is known."""
        return np.concatenate([part.is_row_full for part in self.parts])

    @property
    def is_informative(self) -> NDArray[np.bool_]:
        """Which rows say anything."""
        return np.concatenate([part.is_informative for part in self.parts])

    @property
    def shape_words(self) -> str:
        """What the data are, for messages."""
        *words, last = dict.fromkeys(part.shape_words for part in self.parts)
        return f"{', '.join(words)} and {last}" if words else last

    def facts(self) -> dict[str, int | float]:
        """Figures of the data, by words: how many users are of each kind, and what they said."""
        facts = super().facts()
        for part in self.parts:
            words = f"users by {part.kind}"
            facts[words] = facts.get(words, 0) + part.n_users
        of_parts = [part.facts() for part in self.parts]
        for words in SUMMED:
            if any(words in mine for mine in of_parts):
                facts[words] = sum(mine.get(words, 0) for mine in of_parts)
        return facts

    def contents(self) -> Iterable[Any]:
        """Bytes that other data would hardly have."""
        for part in self.parts:
            yield f"{part.kind} {part.n_users};".encode()
            yield from part.contents()

    @classmethod
    def array_type(cls, name: str) -> Any:
        """The type of an array of a file, by its name; None for one of something else."""
        match = OF_A_PART.fullmatch(name)
        if match is None:
            return super().array_type(name)
        types = (kind.array_type(match[2]) for kind in PARTS)
        return next((dtype for dtype in types if dtype is not None), None)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All but the names, as the arrays of a file: ``mixed_parts[part]`` is the number of its
        kind and of its rows, and the names of its own arrays have its number before them."""
        places = [(PARTS.index(type(part)), part.n_users) for part in self.parts]
        arrays = {"mixed_parts": np.array(places, dtype=np.int64).reshape(-1, 2)}
        for number, part in enumerate(self.parts):
            mine = part.to_arrays()
            arrays |= {f"part{number}_{name}": array for name, array in mine.items()}
        return arrays

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], users: NDArray[Any], items: NDArray[Any]
    ) -> "Mixed":
        """The data of such arrays, which are checked."""
        (places,) = typed_arrays(arrays, cls.ARRAYS)
        fits = places.ndim == 2 and places.shape[1:] == (2,) and len(places) > 0
        fits = fits and bool((places >= 0).all() and (places[:, 0] < len(PARTS)).all())
        if not fits or sum(places[:, 1].tolist()) != len(users):
            raise ValueError("its parts do not fit together")
        parts: list[Preferences] = []
        first = 0
        for number, (kind, n_users) in enumerate(places.tolist()):
            start = f"part{number}_"
            mine = {
                name.removeprefix(start): array
                for name, array in arrays.items()
                if name.startswith(start)
            }
            rows = slice(first, first + n_users)
            parts.append(PARTS[kind].from_arrays(mine, users[rows], items))
            first += n_users
        weights = np.concatenate([part.weights for part in parts])
        check_saved_weights(weights, "parts")
        return cls(weights, users, items, tuple(parts))

    def as_rankings(self) -> Rankings:
        """What is known by ranks."""
        ranks = np.concatenate([part.as_rankings().rankings for part in self.parts])
        return Rankings(self.weights, self.users, self.items, ranks)

    def comparisons(self) -> Pairs | None:
        """What is known by comparisons; nothing of those who made none."""
        compared = [part.comparisons() for part in self.parts]
        if all(pairs is None for pairs in compared):
            return None
        none = (np.empty(0, np.int32),) * 2 + (np.empty(0, np.int64),) * 2
        filled = [
            Pairs(part.weights, part.users, self.items, np.zeros(part.n_users + 1, np.int64), *none)
            if pairs is None
            else pairs
            for pairs, part in zip(compared, self.parts, strict=True)
        ]
        return Pairs.stack(filled, self.users)

    @property
    def is_contradictory(self) -> bool:
        """Does a user contradict himself, so that no ranking agrees with all he says?"""
        return any(part.is_contradictory for part in self.parts)

    def kept(self) -> "Mixed":
        """The data."""
        return self

    def take(self, rows: ArrayLike) -> "Mixed":
        """Some of the rows, by number or by mask; rows of one part that follow each other make a
        part."""
        chosen = np.arange(self.n_users)[index_of(rows)]
        firsts = np.array([rows.start for rows in self.rows_of_parts()])
        owners = np.searchsorted(firsts, chosen, side="right") - 1
        runs = np.split(chosen, np.flatnonzero(np.diff(owners)) + 1) if len(chosen) else [chosen]
        numbers = [int(owners[0]), *owners[1:][np.diff(owners) != 0]] if len(chosen) else [0]
        parts = [
            self.parts[number].take(run - firsts[number])
            for number, run in zip(numbers, runs, strict=True)
        ]
        mixed = Mixed(self.weights[chosen], self.users[chosen], self.items, tuple(parts))
        return replace(mixed, backend=self.backend)

    def on_items(self, items: NDArray[Any], places: NDArray[np.int64]) -> "Mixed":
        """The same over other items."""
        parts = tuple(part.on_items(items, places) for part in self.parts)
        return Mixed(self.weights, self.users, items, parts)

    @classmethod
    def stack(cls, parts: Sequence[Any], users: NDArray[Any]) -> "Mixed":
        """The parts one after the other; those of one kind that follow each other are one."""
        inner = [each for part in parts for each in (part.parts if type(part) is cls else [part])]
        runs: list[list[Preferences]] = []
        for part in inner:
            if runs and type(runs[-1][0]) is type(part):
                runs[-1].append(part)
            else:
                runs.append([part])
        names = [np.concatenate([part.users for part in run]) for run in runs]
        joined = [
            run[0] if len(run) == 1 else run[0].stack(run, mine)
            for run, mine in zip(runs, names, strict=True)
        ]
        weights = np.concatenate([part.weights for part in joined])
        return cls(weights, users, inner[0].items, tuple(joined))


KINDS: dict[str, type[Preferences]] = {each.kind: each for each in (Rankings, Clicks, Pairs, Mixed)}


def concat(prefs: Any) -> Preferences:
    """See :meth:`Preferences.concat`."""
    if isinstance(prefs, Preferences) or not isinstance(prefs, Iterable):
        raise TypeError(f"concat needs a list of Preferences, got {prefs!r}")
    parts = list(prefs)
    if not parts:
        raise ValueError("concat needs at least one of Preferences, got an empty list")
    for part in parts:
        check_preferences(part)
        if type(part) not in KINDS.values():
            raise TypeError(f"concat needs data at hand, got {type(part).__name__}")
    if len(parts) == 1:
        return parts[0]
    users, whole = _joined_users(parts), _over_all_items(parts)
    _warn_of_absent_items(parts, whole[0].items)
    check_weights(np.concatenate([part.weights for part in whole]), len(users))
    kinds = {type(part) for part in whole}
    joined = (kinds.pop() if len(kinds) == 1 else Mixed).stack(whole, users)
    return replace(joined, backend=next((p.backend for p in parts if p.backend), None))


def _joined_users(parts: list[Preferences]) -> NDArray[Any]:
    """The names of all users; where every part has 0, 1, ..., they are counted on."""
    if all(part.users.tolist() == list(range(part.n_users)) for part in parts):
        return np.arange(sum(part.n_users for part in parts))
    seen: dict[Any, int] = {}
    for number, part in enumerate(parts):
        for name in part.users.tolist():
            if name in seen:
                raise ValueError(
                    f"the user {name!r} is in prefs[{seen[name]}] and in prefs[{number}]: give "
                    "each user another name by .rename(users=...)"
                )
        seen |= dict.fromkeys(part.users.tolist(), number)
    return object_array(list(seen))


def _warn_of_absent_items(parts: list[Preferences], items: NDArray[Any]) -> None:
    """Say whose rankings lack items of the others: by the model, these come last."""
    ranked = [
        each for part in parts for each in (part.parts if isinstance(part, Mixed) else [part])
    ]
    lacking = [part for part in ranked if part.kind == "rankings" and part.n_items < len(items)]
    if not lacking:
        return
    n_users, first = sum(part.n_users for part in lacking), lacking[0]
    known = set(first.items.tolist())
    absent = [name for name in items.tolist() if name not in known]
    words = (
        f"{n_users} users rank only the items of their own data set, and count as if they had "
        f"ranked all others last: user {str(first.users[0])!r}, for example, {len(absent)} of "
        f"{len(items)} items, such as {str(absent[0])!r}. If they were not asked about these, the "
        "consensus puts them too low: join only rankings of the same items, or fit each data set "
        "by itself"
    )
    warn(AbsentItemsWarning(words))


def _over_all_items(parts: list[Preferences]) -> list[Preferences]:
    """The parts over the items of all: those of the first, then the others as they come."""
    lists = [part.items.tolist() for part in parts]
    if all(names == lists[0] for names in lists):
        return parts
    known = dict.fromkeys(lists[0])
    for number, names in enumerate(lists):
        alike = {str(name): name for name in known}
        for name in names:
            if name not in known and str(name) in alike:
                raise ValueError(
                    f"prefs[{number}] has the item {name!r}, and one before it has "
                    f"{alike[str(name)]!r}: give names of the same type"
                )
        if not any(name in known for name in names):
            raise ValueError(
                f"prefs[{number}] has no item in common with those before it: its items are like "
                f"{names[0]!r}, theirs like {lists[0][0]!r}; give them the same names"
            )
        known |= dict.fromkeys(names)
    items = object_array(list(known))
    places = {name: place for place, name in enumerate(known)}
    return [
        part.on_items(items, np.array([places[name] for name in names], dtype=np.int64))
        for part, names in zip(parts, lists, strict=True)
    ]
