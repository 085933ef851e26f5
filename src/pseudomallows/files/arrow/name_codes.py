"""Users and items as columns of Arrow: codes, and a dictionary of their names."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...preferences.inputs.layout import Layout
from ...preferences.inputs.times import TimeColumn, TimeError, seconds_of
from ..long_tables import NO_NAME, ClickPairs, Codes, SuspectColumn
from ..source import Source

WAITING = 1 << 17  # names that wait to be joined: joining goes through all, so it must be rare
MISSING = pa.array(sorted(NO_NAME))


class ArrowPairs(ClickPairs):
    """Pairs whose names Arrow joins, those of many blocks at a time.

    A column of a block is codes and a dictionary, its names. Those of all blocks before are joined
    first, so that their codes stay.
    """

    def __init__(
        self, source: Source, n_rows: int = 1 << 10, time: TimeColumn | None = None
    ) -> None:
        super().__init__(source, n_rows, time)
        self._dictionaries = [pa.array([], pa.string()) for _ in range(2)]
        self._waiting: list[tuple[Any, Any, Any]] = []
        self._n_waiting = 0

    def add_block(
        self,
        users: Any,
        items: Any,
        is_whole: NDArray[np.bool_],
        times: NDArray[np.float64] | None = None,
        is_high: NDArray[np.bool_] | None = None,
    ) -> None:
        """Add the whole rows of a block; by a mask of ratings, those that are high enough."""
        if is_high is not None:
            self.n_low += int((is_whole & ~is_high).sum())
            is_whole = is_whole & is_high
        if not is_whole.all():
            users, items = (column.filter(pa.array(is_whole)) for column in (users, items))
            times = None if times is None else times[is_whole]
        self._waiting.append((users, items, times))
        self._n_waiting += len(users.dictionary) + len(items.dictionary)
        if self._n_waiting > max(WAITING, 2 * sum(map(len, self._dictionaries))):
            self._join()

    def _join(self) -> None:
        codes = []
        for place, known in enumerate(self._dictionaries):
            first = pa.DictionaryArray.from_arrays(pa.array([], pa.int32()), known)
            chunks = [first, *(columns[place] for columns in self._waiting)]
            joined = pa.chunked_array(chunks).unify_dictionaries()
            self._dictionaries[place] = joined.chunk(0).dictionary
            codes.append([np.asarray(chunk.indices) for chunk in joined.chunks[1:]])
        times = [columns[2] for columns in self._waiting]
        for users, items, when in zip(*codes, times, strict=True):
            self.store(users, items, when)
        self._waiting, self._n_waiting = [], 0

    @property
    def n_kept(self) -> int:
        """How many rows are stored."""
        self._join()
        return super().n_kept

    def times(self) -> NDArray[np.float64] | None:
        """The times of all rows."""
        self._join()
        return super().times()

    def take(self) -> tuple[Codes, Codes, NDArray[Any], NDArray[Any]]:
        """Rows, codes, users and items, the names sorted; the pairs are then empty."""
        self._join()
        return super().take()

    def names(self) -> tuple[list[str], list[str]]:
        """Users and items, in the order of their codes; the names are then forgotten."""
        try:
            users, items = (_filled(names).tolist() for names in self._dictionaries)
        except pa.ArrowException:
            raise self.source.error(None, "a name is no UTF-8 text: is it damaged?") from None
        self._dictionaries = []
        return users, items


def is_missing(column: Any) -> NDArray[np.bool_]:
    """Which rows of a column of codes and names have no name."""
    is_none = pc.is_in(column.dictionary, value_set=MISSING).to_numpy(zero_copy_only=False)
    return np.asarray(is_none[np.asarray(column.indices)])


def count_values(suspect: SuspectColumn, column: Any) -> None:
    """Add the values of a block, as codes and values, to what is counted."""
    values = column.dictionary.to_pylist()
    counts = np.bincount(column.indices, minlength=len(values)).tolist()
    suspect.add(zip(values, counts, strict=True))


def add_times(reader: TimeColumn, column: Any) -> NDArray[np.float64]:
    """The times of a block of a column of any type; a TimeError says which row is wrong."""
    if not reader.is_open:
        return np.full(len(column), np.nan)
    is_date = pa.types.is_timestamp(column.type) or pa.types.is_date(column.type)
    is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    if is_date or is_number:
        form = "date" if is_date else "number"
        known = pc.drop_null(column)
        if len(known) and not reader.form:
            reader.begin(known[0], form)
        if len(known) and reader.form != form:  # of another file of a folder
            raise reader.mixed(0, known[0])
        if is_date:
            return seconds_of(_filled(column.cast(pa.timestamp("us"), safe=False)))
        return _filled(column.cast(pa.float64(), safe=False)).astype(np.float64)
    if pa.types.is_string(column.type) and reader.form in ("", "number"):
        times = _as_numbers(column)
        if times is not None:
            if not reader.form:
                reader.begin(column[0].as_py(), "number")
            return times
    if _holds_no_times(column.type):
        known = pc.drop_null(column)
        if len(known):
            reader.begin(known[0], "")
        return np.full(len(column), np.nan)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    codes = np.asarray(column.indices.fill_null(len(column.dictionary)))
    texts = ["" if value is None else str(value).strip() for value in column.dictionary.to_pylist()]
    try:
        return reader.add([*texts, ""])[codes]
    except TimeError as error:
        error.place = int((codes == error.place).argmax())
        raise


def high_ratings(layout: Layout, column: Any) -> NDArray[np.bool_]:
    """Which ratings of a block count; a ValueError holds the first that is no number."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    is_high = layout.is_high([*column.dictionary.to_pylist(), None])
    return is_high[np.asarray(column.indices.fill_null(len(column.dictionary)))]


def _holds_no_times(kind: Any) -> bool:
    others = (pa.types.is_nested, pa.types.is_boolean, pa.types.is_time, pa.types.is_duration)
    return any(is_other(kind) for is_other in others)


def _filled(column: Any) -> NDArray[Any]:
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _as_numbers(column: Any) -> NDArray[np.float64] | None:
    """Times as text that are all numbers; None if one of them is not, or is empty."""
    try:
        numbers = np.asarray(column.cast(pa.float64()))
    except pa.ArrowInvalid:
        return None
    return numbers if len(numbers) and np.isfinite(numbers).all() else None


@contextmanager
def lean_memory() -> Iterator[None]:
    """Let Arrow give back memory at once: its own pools keep what was used."""
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)
        pa.system_memory_pool().release_unused()
