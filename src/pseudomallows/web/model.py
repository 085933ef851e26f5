"""A posterior made ready for quick answers: names as text, tables made, answers kept."""

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..engines.executors import Threads, blocks
from ..posteriors.personal import Fit, PersonalFit
from ..posteriors.posterior import Posterior, cp_ordering, summary_of
from ..posteriors.verdict import judge
from ..preferences.preferences import Clicks
from ..recommendations.recommend import best_items
from ..recommendations.recommenders import recommender_of
from .errors import ServiceError
from .types import (
    ClusterRow,
    ClustersAnswer,
    ConsensusAnswer,
    ConsensusItem,
    ItemRow,
    ItemsAnswer,
    RecommendAnswer,
    Recommendation,
)

WINDOW = 10  # whose tables are made before the first request
PREPARE_SECONDS = 5.0  # of them before the port opens; the others follow behind
QUICK_SECONDS, QUICK_CLICKS = 0.005, 50  # what takes more is left to a thread
TABLE_BYTES, ANSWER_BYTES = 512 * 2**20, 32 * 2**20
MAX_ROWS, MAX_BINS, N_BEST = 100, 50, 3
ONE = Threads(1)
encode = msgspec.json.Encoder().encode


class Served:
    """One version of the model, as the service answers from it."""

    def __init__(self, posterior: Fit, number: int):
        if posterior.clicks is None:
            raise ValueError("the service recommends from clicks, and this model is of rankings")
        self.posterior, self.number = posterior, number
        self.clicks: Clicks = posterior.clicks
        self.recommender = recommender_of(posterior)
        self.item_names = _as_text(posterior.items, "items")
        self.user_names = _as_text(posterior.users, "users")
        self.codes = {name: code for code, name in enumerate(self.item_names)}
        self.rows = {name: row for row, name in enumerate(self.user_names)}
        self.counts = self.clicks.item_counts()
        self.folded = [name.casefold() for name in self.item_names]
        self.by_count = np.argsort(-self.counts, kind="stable").tolist()
        self._quick: set[int] = set()  # windows whose last answer was
        self._lock = threading.Lock()  # of the tables; held for a moment only
        self._making = threading.Lock()  # of what is made once; a report takes seconds
        self._made: dict[Any, Any] = {}
        self._windows: OrderedDict[int, None] = OrderedDict({self.window(WINDOW): None})
        self._readers: Counter[int] = Counter()  # of the tables of each window, now
        self._answers: OrderedDict[tuple[int, bytes], bytes] = OrderedDict()
        self._answer_bytes = 0
        self.n_hits = 0

    def window(self, k: int) -> int:
        """At most all items."""
        return min(k, self.posterior.n_items)

    # Making ready

    def prepare(self, seconds: float = PREPARE_SECONDS) -> list[int]:
        """Compile, make tables for that long, and measure; what is left to make: sizes."""
        left = self.sizes_at_hand()
        deadline = time.perf_counter() + seconds
        while left and time.perf_counter() < deadline:
            self.prepare_size(left.pop(0))
        codes = np.zeros(1, dtype=np.int32)
        if self.clicks.n_users:  # none are kept of a fit of parts
            codes = self.clicks.clicks_of(int(np.argmax(self.clicks.n_clicks > 0)))
        for _ in range(2):  # the first compiles
            self.best(codes, WINDOW)
        return left

    def sizes_at_hand(self) -> list[int]:
        """How many clicks users have, the commonest first; none at all is asked for too."""
        counts = Counter(self.clicks.n_clicks.tolist() or range(1, 11))
        sizes = [0, *(size for size, _ in counts.most_common())]
        return list(dict.fromkeys(size for size in sizes if size < self.posterior.n_items))

    def prepare_size(self, n_clicks: int, k: int = WINDOW) -> None:
        """Make the tables for all who have that many clicks."""
        self.recommender.prepare_size(n_clicks, self.window(k))

    def table_bytes(self) -> int:
        """Memory of the tables."""
        return self.recommender.table_bytes()

    @contextmanager
    def _using(self, window: int) -> Iterator[None]:
        """Keep the tables of a window while they are read; drop those long unused."""
        with self._lock:
            self._readers[window] += 1
            self._windows[window] = None
            self._windows.move_to_end(window)
            self._drop_unused()
        try:
            yield
        finally:
            with self._lock:
                self._readers[window] -= 1

    def _drop_unused(self) -> None:
        for window in list(self._windows):
            if self.table_bytes() <= TABLE_BYTES:
                return
            if not self._readers[window] and window != self.window(WINDOW):
                del self._windows[window], self._readers[window]
                self.recommender.drop_tables(window)

    # Recommendations

    def codes_of(self, names: Sequence[str]) -> NDArray[np.int32]:
        """Codes of items, sorted, each once."""
        try:
            return np.array(sorted({self.codes[name] for name in names}), dtype=np.int32)
        except KeyError:
            raise self._unknown(names) from None

    def _unknown(self, names: Sequence[str]) -> ServiceError:
        unknown = list(dict.fromkeys(name for name in names if name not in self.codes))
        more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        shown = ", ".join(repr(name[:80]) for name in unknown[:3])
        return ServiceError(
            422, f"clicks must be items of the model, and these are not: {shown}{more}"
        )

    def quick_answer(self, names: Sequence[str], k: int) -> bytes | None:
        """The answer as JSON, or None if it would take long."""
        codes = self.codes_of(names)
        found = self.kept((k, codes.tobytes()))
        window = self.window(k)
        if found is None and window in self._quick and len(codes) <= QUICK_CLICKS:
            with self._using(window):
                if self.recommender.is_ready(len(codes), window):
                    found = self.keep((k, codes.tobytes()), self.answer(codes, k))
        return found

    def kept(self, key: tuple[int, bytes]) -> bytes | None:
        """An answer that was given before; the key is k and the codes, or a row of the fit."""
        found = self._answers.get(key)
        if found is not None:
            self._answers.move_to_end(key)
            self.n_hits += 1
        return found

    def keep(self, key: tuple[int, bytes], answer: bytes) -> bytes:
        """Keep an answer, and drop those long unused. From the thread of the requests only."""
        if key in self._answers:
            return answer
        self._answers[key] = answer
        self._answer_bytes += len(answer) + len(key[1]) + 200
        while self._answer_bytes > ANSWER_BYTES:
            (_, codes), old = self._answers.popitem(last=False)
            self._answer_bytes -= len(old) + len(codes) + 200
        return answer

    def answer(self, codes: NDArray[np.int32], k: int, row: int | None = None) -> bytes:
        """The answer as JSON."""
        items, chances, memberships = self.best(codes, k, row)
        rows = [
            Recommendation(self.item_names[item], chance)
            for item, chance in zip(items, chances, strict=True)
            if item >= 0
        ]
        return encode(RecommendAnswer(rows, memberships))

    def best(
        self, codes: NDArray[np.int32], k: int, row: int | None = None
    ) -> tuple[list[int], list[float], list[float] | None]:
        """Items, chances, memberships: those of `pm.recommend` and `pm.memberships`."""
        window = self.window(k)
        with self._using(window):
            is_ready = self.recommender.is_ready(len(codes), window)
            started = time.thread_time()
            found = self.recommender.best(codes, row, window)
            if time.thread_time() - started > QUICK_SECONDS:
                self._quick.discard(window)
            elif is_ready and len(codes) < self.posterior.n_items:
                self._quick.add(window)
            return found

    def recommendation_rows(self, k: int) -> Iterator[list[list[Any]]]:
        """Rows user, place, item, probability of all users of the fit, block by block."""
        window = self.window(k)
        for part in blocks(len(self.user_names)):
            rows = np.arange(part.start, part.stop)
            seen = self.clicks.take(rows)
            with self._using(window):
                found = best_items(self.posterior, seen, rows, window, window, executor=ONE)
            yield [
                [
                    self.user_names[rows[row]],
                    place + 1,
                    self.item_names[found.items[row, place]],
                    round(float(found.probabilities[row, place]), 6),
                ]
                for row, place in np.argwhere(found.items >= 0).tolist()
            ]

    # Questions about the model

    def once(self, name: Any, make: Any) -> Any:
        """What is made at the first question, and kept."""
        if name not in self._made:
            with self._making:
                if name not in self._made:
                    self._made[name] = make()
        return self._made[name]

    def verdict(self) -> tuple[str, str]:
        """Can it be trusted, and why."""

        def make() -> tuple[str, str]:
            found = judge(self.posterior)
            return found.answer, f"{found.words} {found.advice}".strip()

        answer: tuple[str, str] = self.once("verdict", make)
        return answer

    def consensus(self, cluster: int) -> bytes:
        """The answer of /consensus."""
        if not 0 <= cluster < self.posterior.n_clusters:
            last = self.posterior.n_clusters - 1
            raise ServiceError(404, f"cluster must be in 0..{last}, got {cluster}")
        posterior = self.posterior
        if isinstance(posterior, PersonalFit):
            raise ServiceError(
                404,
                "this model has no consensus, as each user has an order of their own: /items lists "
                "the items by the number of users who clicked them",
            )
        answer: bytes = self.once(
            ("consensus", cluster), lambda: encode(self._make_consensus(posterior, cluster))
        )
        return answer

    def _make_consensus(self, posterior: Posterior, cluster: int) -> ConsensusAnswer:
        chances = posterior.rank_probabilities(cluster)
        rows = summary_of(chances, posterior.items)[:MAX_ROWS]
        items = [ConsensusItem(**(row | {"item": str(row["item"])})) for row in rows]
        codes = [self.codes[item.item] for item in items]
        n_items = posterior.n_items
        width = -(-n_items // MAX_BINS)
        edges = list(range(0, n_items, width))
        binned = np.add.reduceat(chances[codes], edges, axis=1).round(6)
        return ConsensusAnswer(cluster, items, binned.tolist(), [edge + 1 for edge in edges])

    def clusters(self) -> bytes:
        """The answer of /clusters."""
        answer: bytes = self.once("clusters", lambda: encode(self._make_clusters()))
        return answer

    def _make_clusters(self) -> ClustersAnswer:
        posterior = self.posterior
        if isinstance(posterior, PersonalFit):  # one group, with what is clicked most
            best = [self.item_names[code] for code in posterior.ties[:N_BEST]]
            row = ClusterRow(0, 1.0, len(self.user_names), posterior.mean_alpha, best)
            return ClustersAnswer([row])
        n_clusters = posterior.n_clusters
        sizes = np.bincount(posterior.labels, minlength=n_clusters).tolist()
        shares = posterior.shares.mean(axis=(0, 1)).tolist()
        alphas = self.alphas()
        firsts = [
            [
                self.item_names[item]
                for item in cp_ordering(posterior.rank_probabilities(c))[:N_BEST]
            ]
            for c in range(n_clusters)
        ]
        return ClustersAnswer(
            [ClusterRow(c, shares[c], sizes[c], alphas[c], firsts[c]) for c in range(n_clusters)]
        )

    def alphas(self) -> list[float]:
        """Mean concentration of each cluster."""
        if isinstance(self.posterior, PersonalFit):
            return [self.posterior.mean_alpha]
        found: list[float] = self.posterior.alpha.mean(axis=(0, 1)).tolist()
        return found

    def items(self, search: str, limit: int) -> ItemsAnswer:
        """The most clicked items whose names hold a text."""
        wanted, found = search.casefold(), []
        for code in self.by_count:
            if wanted in self.folded[code]:
                found.append(ItemRow(self.item_names[code], int(self.counts[code])))
                if len(found) == limit:
                    break
        return ItemsAnswer(found)


def _as_text(names: NDArray[Any], what: str) -> list[str]:
    text = [str(name) for name in names.tolist()]
    if len(set(text)) != len(text):
        twice = Counter(text).most_common(1)[0][0]
        raise ValueError(f"the service writes names as text, and two {what} are both {twice!r}")
    return text
