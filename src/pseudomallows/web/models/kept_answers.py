"""Answers that were given before, to be given again."""

from collections import OrderedDict
from collections.abc import Hashable

ANSWER_BYTES = 32 * 2**20  # of all answers: some 40,000 of ten items
OVERHEAD = 200  # bytes of Python's objects around an answer and its key

Key = tuple[Hashable, ...]  # all that an answer depends on, each for itself


class KeptAnswers:
    """Answers as JSON; those not asked for longest go first. For one thread only."""

    def __init__(self) -> None:
        self._answers: OrderedDict[Key, bytes] = OrderedDict()
        self._n_bytes = 0
        self.n_hits = 0

    def get(self, key: Key) -> bytes | None:
        """The answer, if it is kept."""
        answer = self._answers.get(key)
        if answer is not None:
            self._answers.move_to_end(key)
            self.n_hits += 1
        return answer

    def put(self, key: Key, answer: bytes) -> bytes:
        """Keep an answer, and give it back."""
        if key in self._answers:
            return answer
        self._answers[key] = answer
        self._n_bytes += _size(key, answer)
        while self._n_bytes > ANSWER_BYTES:
            self._n_bytes -= _size(*self._answers.popitem(last=False))
        return answer


def _size(key: Key, answer: bytes) -> int:
    """Bytes that an answer takes."""
    return len(answer) + sum(len(part) for part in key if isinstance(part, bytes)) + OVERHEAD
