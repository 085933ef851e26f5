"""Times of clicks: a column of numbers, or one of dates, never both."""

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .table import Column, RowError, as_column, texts_of

if TYPE_CHECKING:
    import polars as pl

ISO = (
    r"^(?<day>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[ T](?<hour>[0-9]{2})(?::(?<minute>[0-9]{2})"
    r"(?::(?<second>[0-9]{2})(?:\.(?<part>[0-9]+))?)?)?"
    r"(?: ?(?:Z|UTC|(?<sign>[+-])(?<hours>[0-9]{2})(?::?(?<minutes>[0-9]{2}))?))?)?$"
)
SLASHED = (
    r"^(?<one>[0-9]{1,2})(?:/(?<of>[0-9]{1,2})/|\.(?<other>[0-9]{1,2})\.)(?<year>[0-9]{4})"
    r"(?:[ T]+(?<hour>[0-9]{1,2}):(?<minute>[0-9]{2})(?::(?<second>[0-9]{2}))?"
    r"(?: ?(?<half>[AaPp])[Mm])?)?$"
)
DAY = 86_400  # seconds
WORDS = {"number": "a number", "date": "a date like 2024-05-31", "slashed": "a date like 5/31/2024"}
ADVICE = "write all times as numbers, or all as dates like 2024-05-31 or 2024-05-31 09:00"
Seconds = NDArray[np.float64]


class TimeColumn:
    """Times, block by block: all numbers, all ISO dates, or all dates with slashes.

    Of dates with slashes (or points), the column as a whole must show whether the month or the day
    comes first; until then both readings are kept. A column whose first time is none of these is
    not read, with a warning; if it was asked for, it is refused.
    """

    def __init__(self, name: Hashable, is_named: bool = False) -> None:
        self.name, self.is_named = name, is_named
        self.form = ""  # what the first time is: a key of WORDS
        self.is_open = True
        self.problem = ""  # why the column is not read
        self._first = ""

    def add(self, column: Column) -> "pl.Series":
        """The times of a block, null for an empty one; a RowError says which is wrong."""
        import polars as pl

        times = pl.Series([None], dtype=pl.Null).extend_constant(None, len(column))[1:]
        if not isinstance(column, list):
            if column.dtype in (pl.Date, pl.Datetime):
                self.form = self.form or "date"
                if self.form == "date":
                    return column.cast(pl.Datetime("us")).to_physical() / 1e6
            if column.dtype.is_numeric() and self.form in ("", "number"):
                numbers = column.cast(pl.Float64)
                if not (numbers.is_finite() | numbers.is_nan() | numbers.is_null()).all():
                    place = int(numbers.is_infinite().fill_null(False).arg_max() or 0)
                    raise RowError(place, f"times must be finite, got {numbers[place]}")
                self.form = "number"
                return numbers
        texts = texts_of(column)
        known = texts.is_not_null()
        if not known.any() or not self.is_open:
            return times
        if not self.form and not self._begin(int(known.arg_max() or 0), texts.drop_nulls()[0]):
            return times
        times = {"number": numbers_of, "date": dates_of, "slashed": slashed_dates_of}[self.form](
            texts
        )
        wrong = known & times.is_null()
        if wrong.any():
            place = int(wrong.arg_max() or 0)
            raise RowError(
                place,
                f"wanted {WORDS[self.form]}, as the first time is {self._first!r}, got "
                f"{str(texts[place])[:40]!r}: {ADVICE}",
            )
        return times

    def _begin(self, place: int, value: str) -> bool:
        """Fix what the times are, by the first of them; False if it is none."""
        self.form, self._first = form_of(value), value[:40]
        if not self.form:
            self._refuse(place, f"{value[:40]!r} is neither a number nor a date; {ADVICE}")
        return self.is_open

    def _refuse(self, place: int, problem: str) -> None:
        """Do not read the column after all; refuse it, if it was asked for."""
        if self.is_named:
            raise RowError(place, problem)
        self.problem, self.is_open = problem, False

    def finish(self, times: Column) -> Seconds | None:
        """The times of all blocks, NaN for none; None if they are not read. A RowError at -1 says
        why dates with slashes cannot be."""
        import polars as pl

        if not self.is_open:
            return None
        if self.form == "slashed":
            by_month, by_day = times.struct.unnest()
            is_known = by_month.is_not_null() | by_day.is_not_null()
            readings = [by for by in (by_month, by_day) if by.is_not_null().equals(is_known)]
            if not readings or (len(readings) > 1 and not by_month.equals(by_day)):
                which = "may have the month first, or the day" if readings else ""
                which = which or "have the month first, and the day first"
                self._refuse(-1, f"dates like {self._first!r} {which}; write them like 2024-05-31")
                return None
            times = readings[0]
        seconds: Seconds = times.cast(pl.Float64).to_numpy()
        return None if np.isnan(seconds).all() else seconds

    def warning(self) -> str:
        """That the column is not read, for a warning."""
        return f"column {str(self.name)!r} is not read as times: {self.problem}"


def form_of(value: str) -> str:
    """What a time is by its first look, a key of WORDS; empty for none.

    >>> [form_of(text) for text in ("881250949", "2024-05-31", "5/31/2024 8:26", "9:00")]
    ['number', 'date', 'slashed', '']
    """
    import polars as pl

    text = pl.Series([value], dtype=pl.String)
    if numbers_of(text)[0] is not None:
        return "number"
    if dates_of(text)[0] is not None:
        return "date"
    return "slashed" if text.str.contains(SLASHED)[0] else ""


def numbers_of(texts: "pl.Series") -> "pl.Series":
    """Finite numbers, null for what is none."""
    import polars as pl

    numbers = texts.cast(pl.Float64, strict=False)
    return numbers.set(~numbers.is_finite(), None)


def dates_of(texts: "pl.Series") -> "pl.Series":
    """Seconds since 1970 of ISO dates, null for what is none; without a time zone, they are UTC."""
    import polars as pl

    found = texts.str.extract_groups(ISO).struct.unnest()
    number = {name: pl.col(name).cast(pl.Int64).fill_null(0) for name in found.columns[1:]}
    zone = number["hours"] * 60 + number["minutes"]
    zone = pl.when(pl.col("sign") == "-").then(-zone).otherwise(zone)
    minutes = number["hour"] * 60 + number["minute"] - zone
    part = pl.col("part").fill_null("0").str.slice(0, 6).str.pad_end(6, "0").cast(pl.Int64)
    day = pl.col("day").str.to_date("%Y-%m-%d", strict=False).cast(pl.Int64)
    micros = ((day * 1440 + minutes) * 60 + number["second"]) * 1_000_000 + part
    is_time = (number["hour"] < 24) & (number["hours"] < 24)
    for name in ("minute", "second", "minutes"):
        is_time &= number[name] < 60
    return found.select(pl.when(is_time).then(micros / 1e6)).to_series()


def slashed_dates_of(texts: "pl.Series") -> "pl.Series":
    """Both readings of dates with slashes, or points, as seconds: with the month first, and with
    the day first; null for what is no date in either."""
    import polars as pl

    found = texts.str.extract_groups(SLASHED).struct.unnest()
    hour, half = pl.col("hour").cast(pl.Int64), pl.col("half").str.to_lowercase()
    is_hour = half.is_null() | hour.is_between(1, 12)
    hour = pl.when(half.is_null()).then(hour).otherwise(hour % 12 + 12 * (half == "p"))
    part = {"one": pl.col("one"), "other": pl.coalesce("of", "other"), "hour": hour}
    part |= {name: pl.col(name) for name in ("minute", "second")}
    padded = {name: text.cast(pl.String).fill_null("0").str.zfill(2) for name, text in part.items()}

    def read(month: str, day: str) -> "pl.Series":
        iso = "{}-{}-{} {}:{}:{}"
        cells = [padded[name] for name in (month, day, "hour", "minute", "second")]
        text = pl.when(is_hour).then(pl.format(iso, "year", *cells))
        return dates_of(found.select(text).to_series())

    both = pl.DataFrame({"by_month": read("one", "other"), "by_day": read("other", "one")})
    is_date = pl.col("by_month").is_not_null() | pl.col("by_day").is_not_null()
    return both.select(pl.when(is_date).then(pl.struct("by_month", "by_day"))).to_series()


def times_of_column(
    column: Column, name: Hashable, is_named: bool = False
) -> tuple[Seconds | None, str]:
    """The times of a column, None if they are not read; and what to warn of. A RowError says in
    which row one is wrong."""
    reader = TimeColumn(name, is_named)
    times = reader.finish(reader.add(column))
    return times, "" if reader.is_open else reader.warning()


def given_times(times: Any) -> Seconds | None:
    """Times that stand beside the clicks, in a list, an array or a series."""
    try:
        return times_of_column(as_column(times, "times"), "times", is_named=True)[0]
    except RowError as error:
        row = f"row {error.row}, " if error.row >= 0 else ""
        raise ValueError(f"{row}column 'times': {error}") from None
