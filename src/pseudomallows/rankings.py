"""Rankings and orderings: check, convert, compare."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

MAX_ALPHA = 1e9  # as good as infinite: exp(-alpha / n_items) is 0 with a million items
MAX_WEIGHT = 1e9  # in all: with up to 96,000 items, squared ranks times this fit into 64 bits


def check_alpha(alpha: float) -> float:
    """Return `alpha` as a float, or say what is wrong with it."""
    return check_number(alpha, "alpha", most=MAX_ALPHA)


def check_flag(value: Any, name: str) -> bool:
    """Return True or False, or say what is wrong with it."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_count(value: int, name: str, least: int = 1) -> int:
    """Return `value` as an int of at least `least`, or say what is wrong with it."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be {least} or more, got {value}")
    if value >= 2**63:
        raise ValueError(f"{name} is too large for a number of anything, got {value}")
    return int(value)


def check_number(value: Any, name: str, least: float = 0.0, most: float = math.inf) -> float:
    """Return `value` as a finite float between `least` and `most`, or say what is wrong with it."""
    try:
        number = float("not a number" if isinstance(value, str | bytes) else value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, got {value!r}") from None
    if not (math.isfinite(number) and least <= number <= most):
        limit = f" and at most {most:g}" if math.isfinite(most) else ""
        raise ValueError(f"{name} must be a finite number, {least:g} or more{limit}, got {number}")
    return number


def check_name(value: Any, name: str, known: Iterable[str]) -> str:
    """Return one of some names, or say which there are."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}")
    return value


def as_rng(rng: Any) -> np.random.Generator:
    """The generator that was given, or one of a seed; or say what is wrong with it."""
    words = f"rng must be a numpy.random.Generator or a seed (0, 1, 2, ...), got {rng!r}"
    if isinstance(rng, bool):
        raise TypeError(words)
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise TypeError(words) from None


def check_rankings(rankings: ArrayLike, name: str = "rankings") -> NDArray[np.int32]:
    """Return full rankings as an array ``[user, item]``, or say which is not a permutation.

    >>> check_rankings([[1, 2, 3], [3, 1, 2]])
    array([[1, 2, 3],
           [3, 1, 2]], dtype=int32)
    """
    ranks = check_ranks(rankings, name)
    missing = (ranks == 0).any(axis=1)
    if missing.any():
        user = int(missing.argmax())
        raise ValueError(
            f"{name}[{user}] is not a full ranking: {_show(ranks[user])}; "
            f"{_how_many(missing)}; for partial rankings use pm.Preferences and pm.fit"
        )
    return ranks


def check_ranking(ranking: ArrayLike, name: str = "ranking") -> NDArray[np.int32]:
    """Return one full ranking as an array, or say why it is not a permutation of 1..n."""
    values = as_array(ranking, name)
    if values.ndim != 1:
        raise ValueError(f"{name} must have one axis (a rank for each item), got {values.ndim}")
    ranks = check_ranks(values[None], name, row_name=name)[0]
    if (ranks == 0).any():
        raise ValueError(f"{name} is not a permutation of 1..{len(ranks)}: {_show(values)}")
    return ranks


def check_ranks(
    values: ArrayLike, name: str = "rankings", row_name: str | None = None
) -> NDArray[np.int32]:
    """Return ranks ``[user, item]``, 0 where a rank is missing (0 or NaN), or say what is wrong."""
    table = numeric_table(values, name)
    n_users, n_items = table.shape
    ranks = np.where(np.isnan(table), 0.0, table)
    seen = np.zeros((n_users, n_items + 1), dtype=bool)

    def refuse(wrong: Any, why: str) -> None:
        what = f"is not a permutation of 1..{n_items}"
        refuse_rows(wrong, table, name, what, why, row_name)

    refuse((ranks < 0).any(axis=1), "ranks start at 1, and 0 or NaN means not ranked")
    refuse((ranks > n_items).any(axis=1), f"a rank is beyond the {n_items} items")
    refuse((ranks != np.floor(ranks)).any(axis=1), "ranks are whole numbers; ties are not allowed")
    whole = ranks.astype(np.int32)
    np.put_along_axis(seen, whole, True, axis=1)
    tied = seen[:, 1:].sum(axis=1) < (whole > 0).sum(axis=1)
    refuse(tied, "a rank appears twice; ties are not allowed")
    return whole


def refuse_rows(
    wrong: NDArray[np.bool_],
    table: NDArray[np.float64],
    name: str,
    what: str,
    why: str,
    row_name: str | None = None,
) -> None:
    """Show the first row that is wrong, if any is, and say how many are."""
    if wrong.any():
        user = int(wrong.argmax())
        place = row_name or f"{name}[{user}]"
        some = "" if row_name else f"; {_how_many(wrong)}"
        raise ValueError(f"{place} {what}: {_show(table[user])}: {why}{some}")


def as_array(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return `values` as an array, or say that its rows are of different lengths."""
    try:
        return np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} must have the same number of items for every user") from None


def numeric_table(
    values: ArrayLike, name: str, wanted: str = "numbers (ranks)"
) -> NDArray[np.float64]:
    """Return `values` as a two-dimensional array of numbers with at least a row and a column."""
    raw = as_array(values, name)
    if raw.dtype.kind in "USmMc" or raw.dtype == bool:
        raise TypeError(f"{name} must be {wanted}, got {_kind_of(raw)}")
    try:
        if raw.dtype == object and any(isinstance(value, str | bytes) for value in raw.flat):
            raise TypeError
        table = raw.astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be {wanted}, got {_first_odd(raw)}") from None
    if table.size == 0:
        raise ValueError(f"{name} is empty: give at least one row of ranks")
    if table.ndim != 2:
        raise ValueError(f"{name} must have two axes (users, items), got {table.ndim}")
    return table


def footrule(ranking: ArrayLike, other: ArrayLike) -> NDArray[np.int64] | int:
    """Footrule distance: the sum over items of the difference in rank.

    One number for two rankings; for an array of rankings, one number each.

    >>> footrule([1, 2, 3], [3, 2, 1])
    4
    >>> footrule([[1, 2, 3], [2, 1, 3]], [1, 2, 3])
    array([0, 2])
    """
    left, right = check_pair(ranking, other)
    distances = np.abs(left.astype(np.int64) - right).sum(axis=1)
    single = np.ndim(ranking) == 1 and np.ndim(other) == 1
    return int(distances[0]) if single else distances


def check_pair(ranking: ArrayLike, other: ArrayLike) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return rankings to compare, ``[row, item]``: as many on either side, or one."""
    left, right = (check_rankings(np.atleast_2d(as_array(x, "rankings"))) for x in (ranking, other))
    if left.shape[1] != right.shape[1]:
        raise ValueError(
            f"rankings must have the same items, got {left.shape[1]} and {right.shape[1]} items"
        )
    if len(left) != len(right) and 1 not in (len(left), len(right)):
        raise ValueError(f"cannot compare {len(left)} rankings with {len(right)}")
    return left, right


def orderings_of(rankings: NDArray[Any]) -> NDArray[np.int64]:
    """``ordering[place]`` is the item of rank ``place + 1``; works on the last axis.

    >>> orderings_of(np.array([3, 1, 2]))
    array([1, 2, 0])
    """
    return np.argsort(rankings, axis=-1, kind="stable")


def check_sigma(value: Any, name: str = "sigma") -> float | str:
    """The value, if it is "auto" or a number of 0 or more."""
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(f'{name} must be a number or "auto", got {value!r}')
        return value
    return check_number(value, name)


def rank_randomly(values: NDArray[Any], rng: np.random.Generator) -> NDArray[np.int32]:
    """Rank `values` on the last axis, the smallest first, ties broken at random.

    Breaking ties by index would leak the truth into simulations where the consensus is 1..n.
    """
    order = np.lexsort((rng.random(values.shape), values), axis=-1)
    ranks = np.empty(values.shape, dtype=np.int32)
    np.put_along_axis(ranks, order, np.arange(1, values.shape[-1] + 1, dtype=np.int32), axis=-1)
    return ranks


def _show(row: NDArray[Any]) -> str:
    values = ["missing" if x is None else float(x) for x in row[:12]]
    shown = [int(x) if isinstance(x, float) and x.is_integer() else x for x in values]
    return f"[{', '.join(map(str, shown))}{', ...' if len(row) > 12 else ''}]"


def _how_many(wrong: NDArray[np.bool_]) -> str:
    return f"{int(wrong.sum())} of {len(wrong)} users have this problem"


def _kind_of(raw: NDArray[Any]) -> str:
    if raw.dtype == bool:
        return "true and false (for clicks use pm.Preferences.from_clicks)"
    return f"text, first {raw.flat[0]!s:.40}" if raw.size else "text"


def _first_odd(raw: NDArray[Any]) -> str:
    for place, value in np.ndenumerate(raw):
        if not isinstance(value, int | float | np.number):
            return f"{value!r:.40} at {list(place)}"
    return f"an array of {raw.dtype}"


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
