"""Times of clicks: a column of numbers, or one of dates, never both."""

import datetime as dt
import math
import numbers
import re
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks import is_missing
from .table import Column, as_column, distinct

NO_TIME = frozenset(("", "NA", "<NA>", "N/A", "n/a", "NaN", "nan", "NaT", "NULL", "null", "None"))
ISO = re.compile(
    r"\d{4}-\d\d-\d\d"
    r"(?:[ T]\d\d(?::\d\d(?::\d\d(?:\.\d+)?)?)?(?P<zone> ?(?:Z|UTC|[+-]\d\d(?::?\d\d)?))?)?",
    re.ASCII,
)
SLASHED = re.compile(
    r"(\d{1,2})([/.])(\d{1,2})\2(\d{4})(?:[ T]+(\d{1,2}):(\d\d)(?::(\d\d))?(?: ?([AaPp])[Mm])?)?",
    re.ASCII,
)
DAY = 86_400  # seconds
WORDS = {"number": "a number", "date": "a date like 2024-05-31", "slashed": "a date like 5/31/2024"}
ADVICE = "write all times as numbers, or all as dates like 2024-05-31 or 2024-05-31 09:00"
Seconds = NDArray[np.float64]


class TimeError(ValueError):
    """A time that cannot be read, and its place in the block that was given."""

    def __init__(self, place: int, problem: str) -> None:
        super().__init__(problem)
        self.place = place


class TimeColumn:
    """Times as text, block by block: all numbers, all ISO dates, or all dates with slashes.

    Of dates with slashes (or points), the column as a whole must show whether the month or the day
    comes first; until then they are kept as whole numbers that hold both readings. A column whose
    first time is none of these is not read, with a warning; if it was asked for, it is refused.
    """

    def __init__(self, name: Hashable, is_named: bool = False) -> None:
        self.name, self.is_named = name, is_named
        self.form = ""  # what the first time is: a key of WORDS
        self.is_open = True
        self.problem = ""  # why the column is not read
        self._first = ""
        self._most = [0, 0]  # of the first part of a date with slashes, and of the second

    def add(self, values: Sequence[str]) -> Seconds:
        """The times of a block, NaN for an empty one."""
        times = np.full(len(values), np.nan)
        known = [place for place, value in enumerate(values) if value not in NO_TIME]
        if not known or not self.is_open:
            return times
        if not self.form:
            self.begin(values[known[0]], form_of(values[known[0]]), known[0])
        if self.is_open:
            times[known] = self._parse([values[place] for place in known], known)
        return times

    def begin(self, value: Any, form: str, place: int = 0) -> None:
        """Fix what the times are, by the first of them."""
        self.form, self._first = form, str(value)[:40]
        if not form:
            self.refuse(place, f"{str(value)[:40]!r} is neither a number nor a date; {ADVICE}")

    def refuse(self, place: int, problem: str) -> None:
        """Do not read the column after all; refuse it, if it was asked for."""
        if self.is_named:
            raise TimeError(place, problem)
        self.problem, self.is_open = problem, False

    def mixed(self, place: int, value: Any) -> TimeError:
        """The error that a time is of another form than the first, or of none."""
        return TimeError(
            place,
            f"wanted {WORDS[self.form]}, as the first time is {self._first!r}, got "
            f"{str(value)[:40]!r}: {ADVICE}",
        )

    def _parse(self, values: list[str], places: list[int]) -> Seconds:
        parse = {"number": _number, "date": _iso, "slashed": self._slashed}[self.form]
        parse_all = {"number": _all_numbers, "date": _all_iso}.get(self.form)
        if parse_all is not None and (all_times := parse_all(values)) is not None:
            return all_times
        times = np.empty(len(values))
        for at, value in enumerate(values):
            second = parse(value)
            if second is None:
                raise self.mixed(places[at], value)
            times[at] = second
        return times

    def _slashed(self, value: str) -> float | None:
        """A whole number that holds both readings of such a date."""
        match = SLASHED.fullmatch(value)
        if match is None:
            return None
        parts = int(match[1]), int(match[3])
        clock = _clock(match)
        if clock is None or not (min(parts) >= 1 and max(parts) <= 31):
            return None
        self._most = [max(most, part) for most, part in zip(self._most, parts, strict=True)]
        return float(((int(match[4]) * 100 + parts[0]) * 100 + parts[1]) * DAY + clock)

    def finish(self, times: Seconds) -> Seconds | None:
        """The times of all blocks, None if they are not read; a TimeError at -1 says why dates with
        slashes cannot be."""
        if self.is_open and self.form == "slashed":
            is_month_first = self._most[1] > 12
            if (self._most[0] > 12) == is_month_first:
                problem = (
                    f"dates like {self._first!r} may have the month first, or the day; write them "
                    "like 2024-05-31"
                )
                if is_month_first:
                    problem = f"dates like {self._first!r} have the month first, and the day first"
                    problem += "; write them like 2024-05-31"
                self.refuse(-1, problem)
            else:
                times = self._decoded(times, is_month_first)
        if not self.is_open or np.isnan(times).all():
            return None
        return times

    def _decoded(self, times: Seconds, is_month_first: bool) -> Seconds:
        values, places = np.unique(times, return_inverse=True)
        seconds = np.empty(len(values))
        for at, value in enumerate(values.tolist()):
            if math.isnan(value):
                seconds[at] = math.nan
                continue
            day, clock = divmod(int(value), DAY)
            year, one, other = day // 10_000, day // 100 % 100, day % 100
            month, day = (one, other) if is_month_first else (other, one)
            try:
                seconds[at] = _seconds(dt.datetime(year, month, day)) + clock
            except ValueError:
                text = f"{one}/{other}/{year}"
                raise TimeError(-1, f"there is no day {text!r}; {ADVICE}") from None
        return seconds[places]

    def said(self) -> str:
        """That the column is not read, for a warning."""
        return f"column {str(self.name)!r} is not read as times: {self.problem}"


def form_of(value: str) -> str:
    """What a time is by its first look, a key of WORDS; empty for none.

    >>> [form_of(text) for text in ("881250949", "2024-05-31", "5/31/2024 8:26", "9:00")]
    ['number', 'date', 'slashed', '']
    """
    if _number(value) is not None:
        return "number"
    if _iso(value) is not None:
        return "date"
    return "slashed" if SLASHED.fullmatch(value) else ""


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _iso(value: str) -> float | None:
    """Seconds since 1970; a date without a time zone is of UTC."""
    match = ISO.fullmatch(value)
    if match is None:
        return None
    text = value if match["zone"] is None else value.replace(" UTC", "Z").replace("UTC", "Z")
    if match["zone"] is not None and match["zone"].startswith(" "):
        text = text[: match.start("zone")] + text[match.start("zone") :].strip()
    try:
        return _seconds(dt.datetime.fromisoformat(text))
    except ValueError:
        return None


def _seconds(value: dt.datetime) -> float:
    aware = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
    past = aware - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    return (past // dt.timedelta(microseconds=1)) / 1e6


def _clock(match: re.Match[str]) -> int | None:
    """Seconds since midnight of a date with slashes; None if there is no such time."""
    hour, minute, second = (int(match[group] or 0) for group in (5, 6, 7))
    if match[8]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (match[8] in "pP")
    return (hour * 60 + minute) * 60 + second if hour < 24 and max(minute, second) < 60 else None


def _all_numbers(values: list[str]) -> Seconds | None:
    try:
        times = np.array(values, dtype=np.float64)
    except ValueError:
        return None
    return times if np.isfinite(times).all() else None


def _all_iso(values: list[str]) -> Seconds | None:
    """Dates without a time zone at once; None if one of them is something else."""
    matches = (ISO.fullmatch(value) for value in values)
    if not all(match is not None and match["zone"] is None for match in matches):
        return None
    try:
        return seconds_of(np.array(values, dtype="datetime64[us]"))
    except (ValueError, TypeError):
        return None


def seconds_of(dates: NDArray[np.datetime64]) -> Seconds:
    """Seconds since 1970, NaN for no date.

    >>> seconds_of(np.array(["1970-01-02", "NaT"], dtype="datetime64[D]"))
    array([86400.,    nan])
    """
    seconds = dates.astype("datetime64[us]").astype(np.int64) / 1e6
    seconds[np.isnat(dates)] = np.nan
    return seconds


# Columns in memory


def times_of_column(
    column: Column, name: Hashable, is_named: bool = False
) -> tuple[Seconds | None, str]:
    """The times of a column, None if they are not read; and what to warn of. A TimeError says in
    which row one is wrong."""
    reader = TimeColumn(name, is_named)
    times = reader.finish(_times_of(column, reader))
    return times, "" if reader.is_open else reader.said()


def given_times(times: Any) -> Seconds | None:
    """Times that stand beside the clicks, in a list, an array or a series."""
    try:
        return times_of_column(as_column(times, "times"), "times", is_named=True)[0]
    except TimeError as error:
        row = f"row {error.place}, " if error.place >= 0 else ""
        raise ValueError(f"{row}column 'times': {error}") from None


def _times_of(column: Column, reader: TimeColumn) -> Seconds:
    if isinstance(column, list):
        return _times_of_objects(column, reader)
    import polars as pl

    if column.dtype in (pl.Date, pl.Datetime):
        reader.form = "date"
        return column.cast(pl.Datetime("us")).to_physical().to_numpy() / 1e6
    if column.dtype.is_numeric():
        reader.form = "number"
        times = column.cast(pl.Float64).to_numpy().astype(np.float64)
        if np.isinf(times).any():
            place = int(np.isinf(times).argmax())
            raise TimeError(place, f"times must be finite, got {times[place]}")
        return times
    if column.dtype == pl.String:
        numbers = column.cast(pl.Float64, strict=False)
        if numbers.null_count() == column.null_count() < len(column) and numbers.is_finite().all():
            reader.begin(column.drop_nulls()[0], "number")
            return numbers.to_numpy().astype(np.float64)
    # Each text once: dates are often the same.
    codes, values = distinct(column)
    try:
        return np.append(_times_of_objects(values, reader), np.nan)[codes]
    except TimeError as error:
        error.place = int((codes == error.place).argmax()) if error.place >= 0 else error.place
        raise


def _times_of_objects(values: list[Any], reader: TimeColumn) -> Seconds:
    """Of texts, or of dates and numbers as objects, and of missing ones among them."""
    is_absent = [is_missing(value) for value in values]
    known = [value for value, absent in zip(values, is_absent, strict=True) if not absent]
    if all(isinstance(value, str) for value in known):
        texts = ["" if no else value.strip() for value, no in zip(values, is_absent, strict=True)]
        return reader.add(texts)
    times = np.full(len(values), np.nan)
    for place, value in enumerate(values):
        if is_absent[place] or not reader.is_open:
            continue
        seconds, form = _of_object(value)
        if not reader.form:
            reader.begin(value, form, place)
        elif form != reader.form:
            raise reader.mixed(place, value)
        times[place] = seconds
    return times


def _of_object(value: Any) -> tuple[float, str]:
    if isinstance(value, np.datetime64):
        return float(seconds_of(np.array([value]))[0]), "date"
    if isinstance(value, dt.datetime):
        return _seconds(value), "date"
    if isinstance(value, dt.date):
        return _seconds(dt.datetime(value.year, value.month, value.day)), "date"
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
    if is_number and math.isfinite(value):
        return float(value), "number"
    if isinstance(value, str) and (form := form_of(value)) in ("number", "date"):
        number = _number(value) if form == "number" else _iso(value)
        return float(number or 0.0), form
    return math.nan, ""
