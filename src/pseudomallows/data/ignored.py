"""Columns of a table of clicks that are ignored, but may show which rows are no clicks."""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from .checks import number_of
from .columns import NEUTRAL, ORDER, POSITION, RATING, other_columns, parts, word, words_in
from .table import Column, distinct

COUNT = words_in(
    "count counts quantity qty plays playcount nclicks frequency n num freq weight views visits "
    "listens hits purchases"
)
NAMED = {  # the kinds of columns by their names
    "clicked": words_in("click clicked isclick clicks label liked purchased bought"),
    "rating": RATING,
    "count": COUNT,
    "position": POSITION,
}
EVENT = words_in("event action behavior behaviour interaction type")  # neutral ones, too
NO_CLICK = words_in(
    "view views viewed pv impression shown seen hover exposure remove removed delete deleted "
    "return returned refund refunded cancel cancelled canceled down downvote dislike disliked "
    "unlike skip skipped dismiss dismissed reject rejected ignored hide no negative bad hate"
)
MOST_WORDS = 20  # in a column that names events (view, cart, purchase); names are more
MOST_VALUES = 100_000  # of a rating or a count: with more, the column holds prices or times
YES, NO = ("1", "true", "yes", "y", "t"), ("0", "false", "no", "n", "f")


class Counts:
    """How often a column has each number, or each word; nothing of a column of dates, or with more
    words than events have."""

    def __init__(self, name_of: Callable[[Any], Any]) -> None:
        self.name_of, self.counts, self.is_open = name_of, dict[Any, int](), True

    def add(self, column: Column) -> None:
        """Count a block."""
        is_list = isinstance(column, list)
        if not is_list and (column.dtype.is_temporal() or column.dtype.is_nested()):
            self.is_open = False
        if self.is_open:
            codes, values = distinct(column)
            numbers = np.bincount(codes[codes >= 0], minlength=len(values)).tolist()
            for value, n in zip(values, numbers, strict=True):
                name = self.name_of(value)
                if name is not None:
                    self.counts[name] = self.counts.get(name, 0) + n
            n_words = sum(math.isnan(number_of(name)) for name in self.counts)
            self.is_open = len(self.counts) <= MOST_VALUES and n_words <= MOST_WORDS
        if not self.is_open:
            self.counts = {}


def flagged_columns(names: Sequence[Hashable]) -> dict[int, str]:
    """The first column that may show by its name which rows are no clicks, and its kind; if there
    is none, all that may show it by their values, of the kind "number".

    >>> [flagged_columns(["user", "item", *names]) for names in (["time", "stars"], ["x", "price"])]
    [{3: 'rating'}, {2: 'number'}]
    """
    words = [word(name) for name in names]
    for kind, known in NAMED.items():
        for place, name in enumerate(words):
            if name in known:
                return {place: kind}
    others = {place: parts(names[place]) for place in other_columns(names)}
    for kind in ("count", "rating", "position", "clicked"):  # a click count is a count
        for place, words_of_name in others.items():
            if words_of_name & NAMED[kind]:
                return {place: kind}
    return dict.fromkeys(other_columns(names, EVENT), "number")


def advice_on(
    name: Hashable, kind: str, counts: Mapping[Any, int], kind_is_given: bool = False
) -> str:
    """The warning about such a column, "" for none; ``counts[value]`` rows have a value. If the
    caller gave the kind, positions are no reason for one.

    >>> advice_on("stars", "rating", {1: 2, 5: 3})[-70:]
    'is below 3, the middle of 1 to 5: give min_rating=3 to leave these out'
    >>> advice_on("stars", "rating", {4: 2, 5: 3}), advice_on("price", "number", {0: 1})
    ('', '')
    """
    ignored = f"column {str(name)!r} is ignored, every row counts as a click"
    of_all = f"of {sum(counts.values())}"
    numbers = _numbers(counts)
    low, high = min(numbers, default=1.0), max(numbers, default=1.0)
    if kind == "number":
        no_clicks = [value for value in counts if parts(value) & NO_CLICK]
        if any(math.isnan(number_of(value)) for value in counts):
            if len(counts) < 2 or not no_clicks:
                return ""
            n_low = sum(counts[value] for value in no_clicks)
            shown = ", ".join(repr(str(value)[:40]) for value in no_clicks[:5])
            return (
                f"{ignored}, also the {n_low} {of_all} with {shown}: keep the rows that are "
                "clicks, and drop the others first"
            )
        is_order = word(name) in ORDER and _are_ranks(numbers)
        if parts(name) & NEUTRAL or (low > 0 and not is_order):
            return ""
        kind = "value" if low <= 0 else "position"
    if kind == "position":
        advice = f"{ignored}: if it holds ranks, give kind='long-rankings'; if not, kind='clicks'"
        return "" if kind_is_given else advice
    if kind == "clicked":
        n_low = sum(n for value, n in counts.items() if not _is_yes(value))
        if counts and not n_low:
            return ""
        ignored += f", also the {n_low} {of_all} without a yes or 1" if n_low else ""
        return (
            f"{ignored}: drop the rows that are not clicks, or learn from what was passed over, "
            "too, with kind='impressions' or from_impressions"
        )
    middle = max((low + high) / 2, 0.0) if kind == "rating" and numbers else 0.0
    # Those that are left of 1 to 5, or 1 to 10, if low ones were dropped, are all high.
    if kind == "rating" and ((3 <= low <= high <= 5) or (5 <= low <= high <= 10)):
        return ""
    n_low = sum(n for value, n in numbers.items() if value <= 0 or value < middle)
    which = f"below {middle:g}, the middle of {low:g} to {high:g}" if middle else "0 or less"
    if n_low:
        ignored += f", also the {n_low} of {sum(numbers.values())} whose {kind} is {which}"
        if middle:
            return f"{ignored}: give min_rating={middle:g} to leave these out"
        if kind == "count":
            by = {"rating": str(name)}
            return f"{ignored}: give columns={by} and min_rating=1 to leave these out"
    return f"{ignored}: drop the rows that are not clicks first"


def _numbers(counts: Mapping[Any, int]) -> dict[float, int]:
    """Counts by number; values that are no numbers are left out."""
    by_number: dict[float, int] = {}
    for value, n in counts.items():
        number = number_of(value)
        if math.isfinite(number):
            by_number[number] = by_number.get(number, 0) + n
    return by_number


def _is_yes(value: Any) -> bool:
    """Whether a cell is a yes, or a number above 0."""
    return str(value).lower() in YES or number_of(value) > 0


def _are_ranks(numbers: Mapping[float, int]) -> bool:
    """Whether these are ranks of several users: 1, 2, ..., none more often than the one before."""
    times = [numbers.get(rank, 0) for rank in range(1, len(numbers) + 1)]
    return len(times) > 1 and times[0] > 1 and 0 not in times and times == sorted(times)[::-1]
