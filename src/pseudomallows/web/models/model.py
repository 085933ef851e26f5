"""One version of the model, ready for quick answers: names as text, tables made, answers kept."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...engines.executors import Threads
from ...posteriors.personal import Fit, PersonalFit
from ...preferences import Clicks
from ...recommendations.recommend import best_of_one
from ...recommendations.recommenders import recommender_of
from ...recommendations.to_file import csv_blocks
from ..errors import ServiceError
from ..types import RecommendAnswer, Recommendation, encode
from .kept_answers import KeptAnswers
from .summary import Summary
from .windows import Windows

WINDOW = 10  # the k of most requests: its tables are made before the first request, and stay
PREPARE_SECONDS = 5.0  # for tables before the port opens; the others follow behind
QUICK_SECONDS, QUICK_CLICKS = 0.005, 50  # what takes more is left to a thread: others would wait
ONE = Threads(1)  # the other cores are for requests


class Model:
    """A posterior with a number, as the service answers from it.

    `codes[name]` is the code of an item, `rows[name]` the row of a user in the fit.
    """

    def __init__(self, posterior: Fit, number: int):
        if posterior.clicks is None:
            raise ValueError("the service recommends from clicks, and this model is of rankings")
        self.posterior, self.number = posterior, number
        self.clicks: Clicks = posterior.clicks
        self.item_names = _as_text(posterior.items, "items")
        self.user_names = _as_text(posterior.users, "users")
        self.codes = {name: code for code, name in enumerate(self.item_names)}
        self.rows = {name: row for row, name in enumerate(self.user_names)}
        self.summary = Summary(posterior, self.clicks, self.item_names)
        self.answers = KeptAnswers()
        self._recommender = recommender_of(posterior)
        self._windows = Windows(self._recommender, self._window(WINDOW))
        self._quick: set[int] = set()  # windows whose last answer was

    def _window(self, k: int) -> int:
        """At most all items."""
        return min(k, self.posterior.n_items)

    # Making ready

    def prepare(self, seconds: float = PREPARE_SECONDS) -> list[int]:
        """Compile, make tables for that long, and measure; what is left to make: sizes."""
        left = self._sizes_at_hand()
        deadline = time.perf_counter() + seconds
        while left and time.perf_counter() < deadline:
            self.prepare_size(left.pop(0))
        codes = np.zeros(1, dtype=np.int32)
        if self.clicks.n_users:  # none are kept of a fit of parts
            codes = self.clicks.clicks_of(int(np.argmax(self.clicks.n_clicks > 0)))
        for k in (WINDOW, WINDOW, *self._corrected_window()):  # the first of each kind compiles
            self.best(codes, k)
        return left

    def _corrected_window(self) -> list[int]:
        """A window whose probabilities are corrected, by kernels of their own, if there is one."""
        fit = self.posterior
        is_corrected = isinstance(fit, PersonalFit) and fit.correction is not None
        return [1] if is_corrected else []

    def _sizes_at_hand(self) -> list[int]:
        """How many clicks users have, the commonest first; none at all is asked for too."""
        counts = Counter(self.clicks.n_clicks.tolist() or range(1, 11))
        sizes = [0, *(size for size, _ in counts.most_common())]
        return list(dict.fromkeys(size for size in sizes if size < self.posterior.n_items))

    def prepare_size(self, n_clicks: int) -> None:
        """Make the tables for all who have that many clicks."""
        self._recommender.prepare_size(n_clicks, self._window(WINDOW))

    def table_bytes(self) -> int:
        """Memory of the tables."""
        return self._recommender.table_bytes()

    # Names

    def codes_of(self, names: Sequence[str]) -> NDArray[np.int32]:
        """Codes of items, sorted, each once."""
        try:
            return np.array(sorted({self.codes[name] for name in names}), dtype=np.int32)
        except KeyError:
            raise self._unknown(names) from None

    def _unknown(self, names: Sequence[str]) -> ServiceError:
        """Which of the names are no items."""
        unknown = list(dict.fromkeys(name for name in names if name not in self.codes))
        more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        shown = ", ".join(repr(name[:80]) for name in unknown[:3])
        return ServiceError(
            422, f"clicks must be items of the model, and these are not: {shown}{more}"
        )

    def clicks_of(self, user: str) -> list[str]:
        """What a user had clicked when the model was fitted; nothing, if it knows no such user."""
        row = self.rows.get(user)
        if row is None:
            return []
        return [self.item_names[code] for code in self.clicks.clicks_of(row).tolist()]

    # Recommendations

    def quick_answer(self, names: Sequence[str], k: int) -> bytes | None:
        """The answer as JSON, or None if it would take long."""
        codes = self.codes_of(names)
        answer, window = self.answers.get((k, codes.tobytes())), self._window(k)
        if answer is None and window in self._quick and len(codes) <= QUICK_CLICKS:
            with self._windows.using(window):
                if self._recommender.is_ready(len(codes), window):
                    answer = self.answers.put((k, codes.tobytes()), self.answer(codes, k))
        return answer

    def answer(self, codes: NDArray[np.int32], k: int, row: int | None = None) -> bytes:
        """The answer as JSON; `row` is that of a user of the fit."""
        items, probabilities, memberships = self.best(codes, k, row)
        rows = [
            Recommendation(self.item_names[item], probability)
            for item, probability in zip(items, probabilities, strict=True)
            if item >= 0
        ]
        return encode(RecommendAnswer(rows, memberships))

    def best(
        self, codes: NDArray[np.int32], k: int, row: int | None = None
    ) -> tuple[list[int], list[float], list[float] | None]:
        """Items, probabilities, memberships: those of `recommend` and `memberships`."""
        window = self._window(k)
        with self._windows.using(window):
            is_ready = self._recommender.is_ready(len(codes), window)
            started = time.thread_time()
            best = best_of_one(self.posterior, codes, row, window)
            if time.thread_time() - started > QUICK_SECONDS:
                self._quick.discard(window)
            elif is_ready and len(codes) < self.posterior.n_items:
                self._quick.add(window)
            return best

    def recommendations_csv(self, k: int, safe_csv: bool) -> Iterator[bytes]:
        """The table of all users of the fit as comma-separated text, block by block."""
        window = self._window(k)
        parts = csv_blocks(self.posterior, window, safe_csv=safe_csv, executor=ONE)
        while True:
            with self._windows.using(window):
                part = next(parts, None)
            if part is None:
                return
            yield part


def _as_text(names: NDArray[Any], what: str) -> list[str]:
    """Names as text, which must be different."""
    text = [str(name) for name in names.tolist()]
    if len(set(text)) != len(text):
        twice = Counter(text).most_common(1)[0][0]
        raise ValueError(f"the service writes names as text, and two {what} are both {twice!r}")
    return text
