"""Names to codes, block by block: memory for each name once, not for each row."""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.names import SPACE, find_codes, move_entries

NO_NAME = frozenset(("", "NA", "<NA>", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None"))
STEP = 1 << 20  # codes that are changed at a time
Codes = NDArray[np.int32]


class Cells(NamedTuple):
    """Names as UTF-8: name `row` is ``data[begins[row]:ends[row]]``; missing if both are -1."""

    data: NDArray[np.uint8]
    begins: Codes
    ends: Codes


class Names:
    """Names that have been seen, in the order of their codes, stripped of spaces.

    >>> names = Names()
    >>> data = np.frombuffer(b"teamatetea", dtype=np.uint8).copy()
    >>> begins, ends = np.array([[0, 3, 7], [3, 7, 10]], dtype=np.int32)
    >>> names.codes(Cells(data, begins, ends)), names.listed
    (array([0, 1, 0], dtype=int32), ['tea', 'mate'])
    """

    def __init__(self) -> None:
        self.listed: list[str] = []
        self._missing: list[int] = []  # codes of what is no name
        self._has_spaces = False  # around a name, which may be there without them too
        self._table = np.zeros(1 << 10, dtype=np.int64)
        self._stored = np.empty(1 << 12, dtype=np.uint8)
        self._bounds = np.zeros(1 << 10, dtype=np.int64)

    def codes(self, cells: Cells) -> Codes:
        """The code of each name, -1 where it is missing; new names get new codes."""
        known = len(self.listed)
        self._make_room(len(cells.begins), int(np.maximum(cells.ends - cells.begins, 0).sum()))
        codes = np.empty(len(cells.begins), dtype=np.int32)
        found = find_codes(*cells, self._table, self._stored, self._bounds, known, codes)
        self._list_new(found)
        if self._missing:
            codes[np.isin(codes, self._missing)] = -1
        return codes

    def _make_room(self, n_names: int, n_bytes: int) -> None:
        known = len(self.listed)
        if 2 * (known + n_names) > len(self._table):
            size = 1 << (2 * (known + n_names)).bit_length()
            larger = np.zeros(size, dtype=np.int64)
            move_entries(self._table, larger)
            self._table = larger
        self._bounds = _with_room(self._bounds, known + n_names + 1)
        self._stored = _with_room(self._stored, int(self._bounds[known]) + n_bytes + 1)

    def _list_new(self, found: int) -> None:
        known = len(self.listed)
        bounds = self._bounds[known : found + 1]
        raw = self._stored[bounds[0] : bounds[-1]].tobytes()
        places = (bounds - bounds[0]).tolist()
        if raw.isascii():
            text = raw.decode()
            self.listed += [text[begin:end] for begin, end in pairwise(places)]
        else:
            self.listed += [raw[begin:end].decode() for begin, end in pairwise(places)]
        for code in (known + np.flatnonzero(self._is_doubtful(bounds))).tolist():
            name = self.listed[code].strip()
            self._has_spaces |= name != self.listed[code]
            self.listed[code] = name
            if name in NO_NAME:
                self._missing.append(code)

    def _is_doubtful(self, bounds: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which names are short, or may have spaces around them."""
        first = self._stored[np.minimum(bounds[:-1], len(self._stored) - 1)]
        last = self._stored[np.maximum(bounds[1:] - 1, 0)]
        is_odd = (first <= SPACE) | (first > 127) | (last <= SPACE) | (last > 127)
        return is_odd | (np.diff(bounds) <= max(map(len, NO_NAME)))

    def merge(self, codes: Codes) -> list[str]:
        """Each name once: change `codes` to fit, and give the names; no code can be found after."""
        self._table = self._bounds = np.empty(0, dtype=np.int64)
        self._stored = np.empty(0, dtype=np.uint8)
        if not self._has_spaces:
            return self.listed
        places: dict[str, int] = {}
        merged = [places.setdefault(name, len(places)) for name in self.listed]
        recode(codes, np.array(merged, dtype=np.int32))
        return list(places)


def recode(codes: Codes, places: NDArray[np.integer[Any]]) -> None:
    """Put ``places[code]`` for every code, in place and in steps: an index takes 8 bytes."""
    for first in range(0, len(codes), STEP):
        codes[first : first + STEP] = places[codes[first : first + STEP]]


def in_order(codes: Codes, names: list[str]) -> NDArray[Any]:
    """The names that some code has, sorted; `codes` change to fit."""
    is_used = np.zeros(len(names), dtype=bool)
    for first in range(0, len(codes), STEP):
        is_used[codes[first : first + STEP]] = True
    order = np.array(sorted(np.flatnonzero(is_used).tolist(), key=names.__getitem__), np.int64)
    places = np.empty(len(names), dtype=np.int32)
    places[order] = np.arange(len(order))
    recode(codes, places)
    return np.array(names, dtype=object)[order]


def _with_room(array: NDArray[Any], least: int) -> NDArray[Any]:
    """The array, or a copy that is longer, by half at least."""
    if len(array) >= least:
        return array
    larger = np.empty(max(least, len(array) * 3 // 2), dtype=array.dtype)
    larger[: len(array)] = array
    return larger
