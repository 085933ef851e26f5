"""What a model keeps between requests: answers, and its look-up tables by window."""

import threading
from collections import Counter, OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from ...recommendations.recommenders.recommender import Recommender

ANSWER_BYTES = 32 * 2**20  # of all answers: some 40,000 of ten items
TABLE_BYTES = 512 * 2**20  # of all windows: clients may ask for 1,000 of them

Key = tuple[Hashable, ...]  # all that an answer depends on, each for itself


class AnswerCache:
    """Answers as JSON; those not asked for longest go first. For one thread only."""

    def __init__(self) -> None:
        self._answers: OrderedDict[Key, bytes] = OrderedDict()
        self._n_bytes = 0
        self.n_hits = 0

    def get(self, key: Key) -> bytes | None:
        """The answer, if it is here."""
        answer = self._answers.get(key)
        if answer is not None:
            self._answers.move_to_end(key)
            self.n_hits += 1
        return answer

    def put(self, key: Key, answer: bytes) -> bytes:
        """Keep an answer, and give it back."""
        if key not in self._answers:
            self._answers[key] = answer
            self._n_bytes += _size(key, answer)
        while self._n_bytes > ANSWER_BYTES:
            self._n_bytes -= _size(*self._answers.popitem(last=False))
        return answer


def _size(key: Key, answer: bytes) -> int:
    """Bytes that an answer takes."""
    # 200 bytes for Python's objects around an answer and its key
    return len(answer) + sum(len(part) for part in key if isinstance(part, bytes)) + 200


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
