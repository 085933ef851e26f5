"""Checks that every kind of preferences shares: names, weights, sizes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence, Sized
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..engines.memory import as_size, available_memory

NO_NAME = frozenset(("", "NA", "<NA>", "N/A", "n/a", "NaN", "nan", "NaT", "NULL", "null", "None"))


class TooLargeError(ValueError):
    """What is read is larger than its file lets expect, or than the memory."""


def check_memory(needed: int, what: str, advice: str = "") -> None:
    """Refuse what needs more memory than there is, before it is made."""
    available = available_memory()
    if available is not None and needed > available:
        raise TooLargeError(
            f"{what} need {as_size(needed)} of memory, and {as_size(available)} are available"
            f"{advice}"
        )


def index_of(rows: ArrayLike) -> NDArray[Any]:
    """Numbers or a mask; an empty list is of numbers."""
    chosen = np.asarray(rows)
    return chosen if chosen.size else chosen.astype(np.int64)


def check_n_items(n_items: int) -> None:
    if n_items < 2:
        raise ValueError(f"a ranking needs at least 2 items, got {n_items}")


def check_names(
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
    return object_array(listed)


def object_array(listed: list[Any]) -> NDArray[Any]:
    array = np.empty(len(listed), dtype=object)
    array[:] = listed
    return array


def rows_of_names(names: NDArray[Any], users: Any) -> NDArray[np.int64]:
    """The places of users among names; one name alone is one user."""
    if isinstance(users, Sized) and not isinstance(users, str) and not len(users):
        return np.empty(0, dtype=np.int64)
    rows = {name: row for row, name in enumerate(names.tolist())}
    if isinstance(users, str) or not isinstance(users, Iterable) or _is_key(users, rows):
        users = [users]
    unknown = [name for name in users if not _is_key(name, rows)]
    if unknown:
        shown, name = f"{names[:3].tolist()}"[1:-1], unknown[0]
        alike = next((user for user in rows if str(user) == str(name)), None)
        advice = f"the first are {shown}" if alike is None else f"did you mean {alike!r}?"
        raise ValueError(f"no user is named {name!r}; {advice}")
    return np.array([rows[name] for name in users], dtype=np.int64)


def _is_key(name: Any, known: Mapping[Any, Any]) -> bool:
    try:
        return name in known
    except TypeError:  # a list or an array, which is no name
        return False


def codes_of(names: Sequence[Hashable], known: NDArray[Any]) -> NDArray[np.int64]:
    """The place of each name among those that are known, -1 for a stranger.

    >>> codes_of(["tea", "rum"], np.array(["ale", "tea"]))
    array([ 1, -1])
    """
    places = {name: place for place, name in enumerate(known.tolist())}
    return np.array([places.get(name, -1) for name in names], dtype=np.int64)


def check_known(codes: NDArray[np.integer[Any]], names: Any, what: str) -> None:
    """Refuse names that have no code, and say which."""
    if (codes < 0).any():
        unknown = list(dict.fromkeys(names[at] for at in np.flatnonzero(codes < 0)))
        more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        shown = ", ".join(repr(name) for name in unknown[:3])
        raise ValueError(
            f"unknown {what}: {shown}{more}; known are those of the fit, or of {what}s="
        )


def is_missing(value: Hashable) -> bool:
    """None, NaN, or a missing value of pandas, which equals nothing."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def spread(numbers: NDArray[np.int64], what: str) -> dict[str, int | float]:
    """Of numbers, one a user: the least, the median, the mean and the largest, by words."""
    numbers = numbers if len(numbers) else np.zeros(1, dtype=np.int64)
    return {
        f"{what}, fewest": int(numbers.min()),
        f"{what}, median": float(np.median(numbers)),
        f"{what}, mean": float(numbers.mean()),
        f"{what}, most": int(numbers.max()),
    }


def name_in_file(value: Any) -> str | None:
    """A name as text; None if there is none."""
    name = text_of(value)
    return None if name in NO_NAME else name


def text_of(value: Any) -> str:
    """A cell as text: whole numbers without a point, missing ones empty."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list | dict):
        raise ValueError(f"a cell holds {str(value)[:40]}: wanted one value in each")
    if is_missing(value):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, bytes):  # text whose writer has not said so, or else an id
        text = value.decode(errors="replace")
        value = text if text.isprintable() and "\ufffd" not in text else value.hex()
    return str(value).strip()


def number_of(value: Any) -> float:
    """The number in a cell, with a decimal comma too; 1 for true, 0 for false; NaN for none.

    >>> [number_of(value) for value in ("3.5", "3,5", "true", "tea")]
    [3.5, 3.5, 1.0, nan]
    """
    text = str(value).lower().replace(",", ".")
    try:
        return float({"true": 1, "false": 0}.get(text, text))
    except ValueError:
        return math.nan
