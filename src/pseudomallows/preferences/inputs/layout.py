"""How a long table of clicks is laid out, where its header does not say, and what of it counts."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...rankings import check_count
from .headers import RATING, TRUTH, other_columns, parts, word

ROLES = {"user": "user", "item": "item", "time": "timestamp", "rating": "rating"}
UNNAMED = ("user", "item", "rating", "timestamp")  # the columns of a table without a header


@dataclass(frozen=True)
class Layout:
    """What the caller says of a table.

    `columns` are the names of the columns of users, items, times and ratings, by what they are, or
    their places, from 0; or a list of the names of all columns, for a table without a header.
    """

    columns: Mapping[str, Hashable] | Sequence[Hashable] | None = None
    sep: str | None = None
    header: bool | None = None
    min_rating: float | None = None
    min_clicks: int | None = None

    def checked(self) -> "Layout":
        """The same, or what is wrong with it."""
        given = self.columns
        if isinstance(given, str) or not (
            given is None or isinstance(given, Mapping | list | tuple)
        ):
            raise TypeError(
                f"columns must be a dict like {{'user': 'name of its column'}}, got {given!r}"
            )
        strange = (
            [what for what in given if what not in ROLES] if isinstance(given, Mapping) else []
        )
        if strange:
            raise ValueError(f"columns must be of {', '.join(ROLES)}, got {strange[0]!r}")
        if self.sep is not None and (not isinstance(self.sep, str) or not self.sep):
            raise ValueError(f"sep must be the text between two cells, got {self.sep!r}")
        if self.min_rating is not None and not _is_finite(self.min_rating):
            raise ValueError(f"min_rating must be a number, got {self.min_rating!r}")
        if self.min_clicks is not None:
            check_count(self.min_clicks, "min_clicks")
        return self

    @property
    def has_columns(self) -> bool:
        """Are columns named one by one?"""
        return isinstance(self.columns, Mapping)

    def names(self, names: Sequence[Hashable]) -> list[Hashable]:
        """The names of the columns, those that the caller has named by what they are.

        >>> Layout({"user": "kunde", "time": 2}).names(["kunde", "item", "wann", "user"])
        ['user', 'item', 'timestamp', 'user (another)']
        """
        if not isinstance(self.columns, Mapping):
            return list(names)
        places = {what: self._place(names, what) for what in self.columns}
        if len(set(places.values())) < len(places):
            raise ValueError(f"columns names one column twice: {dict(self.columns)}")
        new = list(names)
        for role in places:
            for place, name in enumerate(new):
                if word(name) == ROLES[role]:
                    new[place] = f"{name} (another)"
        for role, place in places.items():
            new[place] = ROLES[role]
        return new

    def _place(self, names: Sequence[Hashable], what: str) -> int:
        assert isinstance(self.columns, Mapping)
        wanted = self.columns[what]
        texts = [str(name).strip() for name in names]
        if wanted in names:
            return list(names).index(wanted)
        if isinstance(wanted, int) and 0 <= wanted < len(names):
            return wanted
        if str(wanted) in texts:
            return texts.index(str(wanted))
        shown = ", ".join(texts[:8])
        raise ValueError(f"columns: there is no column {wanted!r} for the {what} among {shown}")

    def rating_column(self, names: Sequence[Hashable]) -> int:
        """The column of ratings that `min_rating` is about; -1 if nothing is asked of them."""
        if self.min_rating is None:
            return -1
        for place, name in enumerate(names):
            if word(name) in RATING:
                return place
        for place in other_columns(names):
            if parts(names[place]) & RATING:
                return place
        shown = ", ".join(str(name) for name in names[:8])
        raise ValueError(
            f"min_rating needs a column of ratings, and there are {shown}: name it by "
            "columns={'rating': ...}"
        )

    def is_high(self, ratings: Sequence[Any]) -> NDArray[np.bool_]:
        """Which ratings count as clicks; an empty one does not. A ValueError holds the first that
        is no number."""
        assert self.min_rating is not None
        values = np.empty(len(ratings))
        for place, rating in enumerate(ratings):
            values[place] = _rating(rating)
        return np.asarray(values >= self.min_rating)

    def call(self) -> dict[str, Any]:
        """What is not the default, for the call that reads the table again."""
        given = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {name: value for name, value in given.items() if value is not None}


USUAL = Layout()


def _is_finite(value: Any) -> bool:
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return bool(is_number and math.isfinite(value))


def _rating(value: Any) -> float:
    if value is None or str(value).strip() in (
        "",
        "NA",
        "<NA>",
        "N/A",
        "NaN",
        "nan",
        "NULL",
        "null",
    ):
        return math.nan
    try:
        return float(TRUTH.get(str(value).lower(), value))
    except (TypeError, ValueError):
        raise ValueError(f"wanted a rating, a number, got {str(value)[:40]!r}") from None


def unnamed_columns(n_columns: int, third: str) -> list[Hashable]:
    """Names for the columns of a table without a header: user, item, rating, timestamp; of three,
    the last is a time if it looks like one.

    >>> unnamed_columns(3, "881250949"), unnamed_columns(3, "4.5")
    (['user', 'item', 'timestamp'], ['user', 'item', 'rating'])
    """
    names: list[Hashable] = list(UNNAMED)
    if n_columns == 3:
        names = ["user", "item", "timestamp" if is_like_time(third) else "rating"]
    return names[:n_columns] + [f"column {place}" for place in range(4, n_columns)]


def is_like_time(text: str) -> bool:
    """Whether a cell looks like the seconds or milliseconds since 1970, or like a date.

    >>> [is_like_time(text) for text in ("881250949", "2024-05-31", "4", "1193")]
    [True, True, False, False]
    """
    from .times import form_of

    form = form_of(text)
    return form in ("date", "slashed") or (form == "number" and 1e8 <= float(text) < 1e14)
