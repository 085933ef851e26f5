"""The look-up tables of a model, one set for each number of items asked for (the window)."""

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from ...recommendations.recommenders.chances import Recommender

TABLE_BYTES = 512 * 2**20  # of all windows: clients may ask for 1,000 of them


class Windows:
    """Which windows have tables: those in use stay, those long unused go, `first` stays."""

    def __init__(self, recommender: Recommender, first: int):
        self._recommender, self._first = recommender, first
        self._lock = threading.Lock()  # held for a moment only
        self._used: OrderedDict[int, None] = OrderedDict({first: None})  # longest ago first
        self._readers: Counter[int] = Counter()  # of each window, now

    @contextmanager
    def using(self, window: int) -> Iterator[None]:
        """Keep the tables of a window while they are read; drop those long unused."""
        with self._lock:
            self._readers[window] += 1
            self._used[window] = None
            self._used.move_to_end(window)
            self._drop_unused()
        try:
            yield
        finally:
            with self._lock:
                self._readers[window] -= 1

    def _drop_unused(self) -> None:
        """Until what is left takes at most TABLE_BYTES, or is in use."""
        for window in list(self._used):
            if self._recommender.table_bytes() <= TABLE_BYTES:
                return
            if not self._readers[window] and window != self._first:
                del self._used[window], self._readers[window]
                self._recommender.drop_tables(window)
