"""Users and items as columns of Arrow: codes, and a dictionary of their names."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..long_tables import NO_NAME, Codes, Judged, Pairs
from ..source import Source

WAITING = 1 << 17  # names of blocks that are joined at a time, at the least
MISSING = pa.array(sorted(NO_NAME))


class ArrowPairs(Pairs):
    """Pairs whose names Arrow joins, those of many blocks at a time.

    A column of a block is codes and a dictionary, its names. Those of all blocks before are joined
    first, so that their codes stay.
    """

    def __init__(self, source: Source, n_rows: int = 1 << 10) -> None:
        super().__init__(source, n_rows)
        self._dictionaries = [pa.array([], pa.string()) for _ in range(2)]
        self._waiting: list[tuple[Any, Any]] = []
        self._n_waiting = 0

    def add_block(self, users: Any, items: Any, is_whole: NDArray[np.bool_]) -> None:
        """Add the whole rows of a block."""
        if not is_whole.all():
            users, items = (column.filter(pa.array(is_whole)) for column in (users, items))
        self._waiting.append((users, items))
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
        for users, items in zip(*codes, strict=True):
            self.store(users, items)
        self._waiting, self._n_waiting = [], 0

    def take(self) -> tuple[Codes, Codes, NDArray[Any], NDArray[Any]]:
        """Rows, codes, users and items, the names sorted; the pairs are then empty."""
        self._join()
        return super().take()

    def names(self) -> tuple[list[str], list[str]]:
        """Users and items, in the order of their codes; the names are then forgotten."""
        users, items = map(_listed, self._dictionaries)
        self._dictionaries = []
        return users, items


def _listed(names: Any) -> list[str]:
    listed: list[str] = names.to_numpy(zero_copy_only=False).tolist()
    return listed


def is_missing(column: Any) -> NDArray[np.bool_]:
    """Which rows of a column of codes and names have no name."""
    is_none = pc.is_in(column.dictionary, value_set=MISSING).to_numpy(zero_copy_only=False)
    return np.asarray(is_none[np.asarray(column.indices)])


def count_values(judged: Judged, column: Any) -> None:
    """Add the values of a block, as codes and values, to what is counted."""
    values = column.dictionary.to_pylist()
    counts = np.bincount(column.indices, minlength=len(values)).tolist()
    judged.add(zip(values, counts, strict=True))


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
