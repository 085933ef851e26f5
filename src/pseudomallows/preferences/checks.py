"""Checks that every kind of preferences shares: names, weights, sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence, Sized
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..rankings import as_array, numeric_table

MAX_WEIGHT = 1e9  # in all: with up to 96,000 items, squared ranks times this fit into 64 bits


def index_of(rows: ArrayLike) -> NDArray[Any]:
    """Numbers or a mask; an empty list is of numbers."""
    chosen = np.asarray(rows)
    return chosen if chosen.size else chosen.astype(np.int64)


def check_n_items(n_items: int) -> None:
    if n_items < 2:
        raise ValueError(f"a ranking needs at least 2 items, got {n_items}")


def check_weights(weights: ArrayLike | None, n_users: int) -> NDArray[np.int64]:
    """Return weights as whole numbers, 1 each if None, or say what is wrong with them."""
    if weights is None:
        return np.ones(n_users, dtype=np.int64)
    array = as_array(weights, "weights")
    if array.shape != (n_users,):
        raise ValueError(f"weights must have one number a user ({n_users}), got {array.shape}")
    values = numeric_table(array[None], "weights", "whole numbers")[0]
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


def check_known(codes: NDArray[np.integer[Any]], names: Any, what: str) -> None:
    """Refuse names that have no code, and say which."""
    unknown = list(dict.fromkeys(name for name, code in zip(names, codes, strict=True) if code < 0))
    if unknown:
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
