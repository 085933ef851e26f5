"""One version of the model, ready for quick answers: names as text, tables made, answers kept."""

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...data.blocks import Clicks
from ...engines.executors import Threads
from ...personal.personal_fit import Fit, PersonalFit
from ...posterior.posterior import Posterior
from ...recommendations.choose_recommender import recommender_of
from ...recommendations.explain import REST, reasons_of_one
from ...recommendations.filter import ItemFilter
from ...recommendations.recommend import best_of_one
from ...recommendations.recommender import Users
from ...recommendations.to_file import csv_blocks
from ...recommendations.users import clicks_of_one
from ..errors import ServiceError
from ..types import Reason, RecommendAnswer, Recommendation, Wanted, encode

WINDOW = 10  # the k of most requests: its tables are made before the first request, and stay
ONE = Threads(1)  # the other cores are for requests
ANSWER_BYTES = 32 * 2**20  # of all answers: some 40,000 of ten items
TABLE_BYTES = 512 * 2**20  # of all windows: clients may ask for 1,000 of them
Key = tuple[Hashable, ...]  # all that an answer depends on, each for itself


class Clicked(NamedTuple):
    """What someone has clicked: sorted codes; when each was, where the fit weighs old clicks less;
    and the row of a user of whom the fit knows all of them."""

    codes: NDArray[np.int32]
    times: NDArray[np.float64] | None = None
    row: int | None = None


class Question(NamedTuple):
    """What is asked for, whoever asks: how many items, what may be shown, and with reasons?"""

    k: int
    choice: ItemFilter | None = None
    reasons: bool = False

    @property
    def is_plain(self) -> bool:
        """Is it asked for k items and no more?"""
        return self.choice is None and not self.reasons

    def key(self, clicked: Clicked) -> Key:
        """By which an answer is kept."""
        codes, times, row = clicked
        who: Key = (row,)
        if row is None:
            who = (codes.tobytes(), None if times is None else times.tobytes())
        hidden = None if self.choice is None else np.packbits(self.choice.hidden).tobytes()
        return self.k, hidden, self.reasons, *who


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
        self.item_counts = self.clicks.item_counts()
        self.by_clicks: list[int] = np.argsort(-self.item_counts, kind="stable").tolist()
        self.folded_names = [name.casefold() for name in self.item_names]  # to search in
        self.uses_times = isinstance(posterior, PersonalFit) and posterior.recency is not None
        self.answers = AnswerCache()
        self.made: dict[Hashable, Any] = {}  # what it says of itself, by name
        self._recommender = recommender_of(posterior)
        self._windows: OrderedDict[int, None] = OrderedDict()  # by their last use
        self._using = threading.Lock()  # held for a moment only
        self._quick: set[int] = set()  # windows whose last answer was

    def _window(self, k: int) -> int:
        """At most all items."""
        return min(k, self.posterior.n_items)

    def _use(self, window: int) -> None:
        """Note that a window is in use; drop the tables of those unused for longest, beyond
        TABLE_BYTES. Who reads tables that are dropped has them still."""
        with self._using:
            self._windows[window] = None
            self._windows.move_to_end(window)
            for each in list(self._windows):
                if self._recommender.table_bytes() <= TABLE_BYTES:
                    return
                if each not in (window, self._window(WINDOW)):
                    self._recommender.drop_tables(each)

    # Making ready

    def prepare(self) -> None:
        """Compile, make tables for 5 seconds, and measure; the others are made when asked for. And
        judge the fit, so that nobody waits for that."""
        self.verdict = self.posterior.verdict()
        deadline = time.perf_counter() + 5.0
        for n_clicks in self._sizes_at_hand():
            if time.perf_counter() < deadline:
                self._recommender.prepare_size(n_clicks, self._window(WINDOW))
        clicked = self.clicked([self.item_names[0]])
        if self.clicks.n_users:  # none are kept of a fit of parts
            row = int(np.argmax(self.clicks.n_clicks > 0))
            clicked = self.clicked_in_fit(row)._replace(row=None)
        for k in (WINDOW, WINDOW, *self._corrected_window()):  # the first of each kind compiles
            self.best(clicked, k)

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

    def table_bytes(self) -> int:
        """Memory of the tables."""
        return self._recommender.table_bytes()

    @property
    def population(self) -> Posterior | None:
        """What has a consensus: a personal fit may have one of all users, which is learnt when it
        is first asked for, and that may take long."""
        fit = self.posterior
        return fit.population if isinstance(fit, PersonalFit) else fit

    @property
    def n_clusters(self) -> int:
        """How many have a consensus; none is learnt for that."""
        fit = self.posterior
        if not isinstance(fit, PersonalFit):
            return fit.n_clusters
        is_asked = fit.settings.get("options", {}).get("population") is not None
        return int(is_asked or fit.made_population is not None)

    @property
    def alphas(self) -> list[float]:
        """Mean concentration of each cluster."""
        fit = self.posterior
        if isinstance(fit, PersonalFit):
            return [fit.mean_alpha]
        means: list[float] = fit.alpha.mean(axis=(0, 1)).tolist()
        return means

    # Names

    def codes_of(self, names: Sequence[str], what: str = "clicks") -> NDArray[np.int32]:
        """Codes of items, sorted, each once."""
        try:
            return np.array(sorted({self.codes[name] for name in names}), dtype=np.int32)
        except KeyError:
            raise self._unknown(names, what) from None

    def _unknown(self, names: Sequence[str], what: str) -> ServiceError:
        """Which of the names are no items."""
        unknown = list(dict.fromkeys(name for name in names if name not in self.codes))
        more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        shown = ", ".join(repr(name[:80]) for name in unknown[:3])
        return ServiceError(
            422, f"{what} must be items of the model, and these are not: {shown}{more}"
        )

    def question(self, asked: Wanted, reasons: bool = False) -> Question:
        """What is asked for, with codes for names."""
        exclude, only = asked.exclude, asked.only
        if not exclude and only is None:
            return Question(asked.k, None, reasons)
        hidden = np.zeros(len(self.item_names), dtype=bool)
        if only is not None:
            hidden[:] = True
            hidden[self.codes_of(only, "only")] = False
        hidden[self.codes_of(exclude, "exclude")] = True
        if hidden.all():
            raise ServiceError(
                422, "nothing is left to recommend: exclude and only hide all items of the model"
            )
        return Question(asked.k, ItemFilter(hidden), reasons)

    def clicked(self, names: Sequence[str], times: Sequence[float] | None = None) -> Clicked:
        """Clicks by names, each at the first of its times; without times, the newest is last."""
        codes = self.codes_of(names)
        if not self.uses_times:
            return Clicked(codes)
        when = np.full(len(codes), np.nan)
        places = np.searchsorted(codes, [self.codes[name] for name in names])
        np.fmin.at(when, places, np.arange(float(len(names))) if times is None else times)
        return Clicked(codes, when)

    def clicked_in_fit(self, row: int) -> Clicked:
        """The clicks of a user of the fit."""
        return Clicked(self.clicks.clicks_of(row), self._times_in_fit(row), row)

    def _times_in_fit(self, row: int) -> NDArray[np.float64] | None:
        if not self.uses_times or self.clicks.times is None:
            return None
        return self.clicks.times[self.clicks.starts[row] : self.clicks.starts[row + 1]]

    def clicked_by(self, user: str, stored: Sequence[tuple[str, float]]) -> Clicked:
        """The clicks of a user of the fit, of the store (items and times), or of both."""
        row = self.rows.get(user)
        if row is None and not stored:
            raise ServiceError(404, f"no user is named {user[:80]!r}: post some clicks first")
        fitted = self.clicks_of(user)
        known = set(fitted)
        new = [each for each in stored if each[0] in self.codes and each[0] not in known]
        if row is not None and not new:
            return self.clicked_in_fit(row)
        times = None if row is None else self._times_in_fit(row)
        when = [np.nan] * len(fitted) if times is None else times.tolist()
        names = [*fitted, *(item for item, _ in new)]
        return self.clicked(names, [*when, *(time for _, time in new)])

    def clicks_of(self, user: str) -> list[str]:
        """What a user had clicked when the model was fitted; nothing, if it knows no such user."""
        row = self.rows.get(user)
        if row is None:
            return []
        return [self.item_names[code] for code in self.clicks.clicks_of(row).tolist()]

    # Recommendations

    def quick_answer(self, clicked: Clicked, asked: Question) -> bytes | None:
        """The answer as JSON, or None if it would take long."""
        key, window, n_clicks = asked.key(clicked), self._window(asked.k), len(clicked.codes)
        answer = self.answers.get(key)
        is_short = asked.is_plain and clicked.row is None and n_clicks <= 50
        if answer is not None or not is_short or window not in self._quick:
            return answer
        if not self._recommender.is_ready(n_clicks, window):
            return None
        return self.answers.put(key, self.answer(clicked, asked))

    def answer(self, clicked: Clicked, asked: Question) -> bytes:
        """The answer as JSON."""
        items, probabilities, memberships = self.best(clicked, asked.k, asked.choice)
        shown = [item for item in items if item >= 0]
        reasons: Sequence[list[Reason] | None] = [None] * len(shown)
        if asked.reasons and shown:
            reasons = self._reasons(clicked, shown, self._window(asked.k))
        rows = [
            Recommendation(self.item_names[item], probability, why)
            for item, probability, why in zip(
                shown, probabilities[: len(shown)], reasons, strict=True
            )
        ]
        return encode(RecommendAnswer(rows, memberships))

    def _reasons(self, clicked: Clicked, items: list[int], window: int) -> list[list[Reason]]:
        """Why each of these items: the weightiest reasons, and what is left as one."""
        codes, times, row = clicked
        rows = None if row is None else np.array([row])
        users = Users(clicks_of_one(codes, self.posterior.items, times=times), rows)
        self._use(window)
        all_reasons = reasons_of_one(self.posterior, users, np.array(items), window)
        kinds, names = all_reasons.kinds, all_reasons.names
        totals = np.maximum(np.abs(all_reasons.amounts).sum(axis=0), 1e-300)
        answer = []
        for amounts, total in zip(all_reasons.amounts.T, totals.tolist(), strict=True):
            numbers = amounts.tolist()
            order = np.argsort(-np.abs(amounts), kind="stable")
            first = order if len(order) <= 6 else order[:5]  # what is left is summed up
            weighty = [
                Reason(kinds[i], str(names[i]), numbers[i], numbers[i] / total)
                for i in first.tolist()
            ]
            rest = float(amounts[order[len(first) :]].sum())
            if len(first) < len(order):
                weighty.append(Reason(REST, "everything else", rest, rest / total))
            answer.append(weighty)
        return answer

    def best(
        self, clicked: Clicked, k: int, choice: ItemFilter | None = None
    ) -> tuple[list[int], list[float], list[float] | None]:
        """Items, probabilities, memberships: those of `recommend` and `memberships`."""
        window, (codes, times, row) = self._window(k), clicked
        self._use(window)
        is_ready = self._recommender.is_ready(len(codes), window)
        started = time.thread_time()
        best = best_of_one(self.posterior, codes, row, window, choice, times)
        if choice is not None:  # uninformative about plain questions
            return best
        if time.thread_time() - started > 0.005:  # meanwhile, others would wait
            self._quick.discard(window)
        elif is_ready and len(codes) < self.posterior.n_items:
            self._quick.add(window)
        return best

    def recommendations_csv(self, k: int, safe_csv: bool) -> Iterator[bytes]:
        """The table of all users of the fit as comma-separated text, block by block."""
        window = self._window(k)
        parts = csv_blocks(self.posterior, window, safe_csv=safe_csv, executor=ONE)
        for part in parts:
            yield part
            self._use(window)


def _as_text(names: NDArray[Any], what: str) -> list[str]:
    """Names as text, which must be different."""
    text = [str(name) for name in names.tolist()]
    if len(set(text)) != len(text):
        twice = Counter(text).most_common(1)[0][0]
        raise ValueError(f"the service writes names as text, and two {what} are both {twice!r}")
    return text
