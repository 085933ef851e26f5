"""What recommendations need of a posterior: by the paper's law, exactly, or personal scores."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..engines.executors import Executor, Threads, all_cores, blocks
from ..kernels.groups import choose_best
from ..posteriors.personal import Fit, PersonalFit
from ..posteriors.posterior import Posterior
from ..preferences.preferences import Clicks
from .exact import MAX_ERROR, ExactRecommender, draw_ranks_of
from .paper import PseudoRecommender
from .personal import PersonalChances

ONE = Threads(1)
Best = tuple[list[int], list[float], list[float] | None]


class Fill(Protocol):
    """Fills the chances of some users."""

    def __call__(self, part: slice) -> NDArray[np.float64]:
        """``[row, item]``; what is clicked has no meaning."""
        ...  # pragma: no cover


class FillBest(Protocol):
    """Fills the best items of some users, best first, their chances, and the errors of these."""

    def __call__(
        self,
        part: slice,
        items: NDArray[np.int64],
        chances: NDArray[np.float64],
        errors: NDArray[np.float64],
    ) -> None: ...  # pragma: no cover


class Recommender(Protocol):
    """What recommendations need of a posterior, made once and kept with it.

    `rows` are those of the users in the fit, None for new users.
    """

    consensus: NDArray[np.int32]  # of equal chances, the better rank here wins
    codes: dict[Any, int]

    def begin(
        self,
        seen: Clicks,
        rows: NDArray[np.int64] | None,
        window: int,
        by: str,
        executor: Executor,
    ) -> Fill:
        """What fills the chances of all items."""
        ...  # pragma: no cover

    def begin_best(
        self,
        seen: Clicks,
        rows: NDArray[np.int64] | None,
        k: int,
        window: int,
        executor: Executor,
        max_error: float,
    ) -> FillBest:
        """What fills the k best items."""
        ...  # pragma: no cover

    def best(self, codes: NDArray[np.int32], row: int | None, window: int) -> Best:
        """The best items of one user, as many as the window is wide, their chances, and the user's
        memberships: the same as `recommend` and `memberships`, as a service asks for them."""
        ...  # pragma: no cover

    def memberships_of(self, seen: Clicks, executor: Executor) -> NDArray[np.float64]:
        """``[user, cluster]`` of new users."""
        ...  # pragma: no cover

    def draw_ranks(
        self, seen: Clicks, rows: NDArray[np.int64] | None, n_draws: int, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """``counts[item, rank - 1]`` of rankings drawn for one user, by the law of `best`."""
        ...  # pragma: no cover

    def prepare_size(self, n_clicks: int, window: int) -> None:
        """Make the tables for all who have that many clicks."""
        ...  # pragma: no cover

    def is_ready(self, n_clicks: int, window: int) -> bool:
        """Are they made?"""
        ...  # pragma: no cover

    def table_bytes(self) -> int:
        """Memory of the tables."""
        ...  # pragma: no cover

    def drop_tables(self, window: int) -> None:
        """Forget those of a window."""
        ...  # pragma: no cover


def recommender_of(posterior: Fit) -> Recommender:
    """What recommendations need of a posterior, made once and kept with it."""
    if "_recommender" not in posterior.__dict__:
        posterior.__dict__["_recommender"] = _make(posterior)
    found: Recommender = posterior.__dict__["_recommender"]
    return found


def _make(posterior: Fit) -> Recommender:
    if isinstance(posterior, PersonalFit):
        return PersonalRecommender(posterior)
    is_pseudo = posterior.settings["method"] == "pseudo"
    return PseudoRecommender(posterior) if is_pseudo else ExactRecommender(posterior)


def chances_of(posterior: Posterior, seen: Clicks, window: int) -> NDArray[np.float64]:
    """``chances[user, item]`` of new users, for all items; what is clicked has no meaning."""
    threads = all_cores()
    fill = recommender_of(posterior).begin(seen, None, window, "look_up", threads)
    return np.concatenate(list(threads.map(fill, blocks(seen.n_users))))


class PersonalRecommender:
    """The same for consensuses of one's own."""

    def __init__(self, fit: PersonalFit):
        self._fit, self._clusters, self._items = fit, fit.clusters, fit.items
        self._chances = PersonalChances(fit)
        self.consensus = fit.popularity_ranking()
        self.codes = {name: code for code, name in enumerate(fit.items.tolist())}

    def begin(
        self,
        seen: Clicks,
        rows: NDArray[np.int64] | None,
        window: int,
        by: str,
        executor: Executor,
    ) -> Fill:
        """What fills the probabilities of some of these users; `rows` are theirs in the fit."""
        if by == "draws":
            raise ValueError("by='draws' is not there for method='personal': use by='look_up'")
        tables = self._chances.prepare(seen, window)
        others = None
        if self._clusters is not None:
            others = chances_of(self._clusters, seen, window)

        def fill(part: slice) -> NDArray[np.float64]:
            blend = None if others is None else others[part]
            return self._chances.probabilities(tables, seen, part, window, rows, blend)

        return fill

    def begin_best(
        self,
        seen: Clicks,
        rows: NDArray[np.int64] | None,
        k: int,
        window: int,
        executor: Executor,
        max_error: float,
    ) -> FillBest:
        """What fills the k best items; the errors are not known, and stay as they are."""
        fill_all = self.begin(seen, rows, window, "look_up", executor)

        def fill(
            part: slice,
            items: NDArray[np.int64],
            chances: NDArray[np.float64],
            errors: NDArray[np.float64],
        ) -> None:
            mine = (seen.starts[part.start : part.stop + 1], seen.codes)
            choose_best(*mine, fill_all(part), self.consensus, items, chances)

        return fill

    def best(self, codes: NDArray[np.int32], row: int | None, window: int) -> Best:
        """The best items of one user, and their chances."""
        seen, rows = self._one(codes), None if row is None else np.array([row])
        items, chances = np.full((1, window), -1, dtype=np.int64), np.full((1, window), np.nan)
        if len(codes) < len(self._items):
            fill = self.begin_best(seen, rows, window, window, ONE, MAX_ERROR)
            fill(slice(0, 1), items, chances, chances.copy())
        return items[0].tolist(), chances[0].tolist(), None

    def memberships_of(self, seen: Clicks, executor: Executor) -> NDArray[np.float64]:
        """There are none."""
        raise ValueError(
            "a personal fit has no clusters: each user has an order of their own; for memberships "
            "fit with another method and n_clusters"
        )

    def _one(self, codes: NDArray[np.int32]) -> Clicks:
        user, starts = np.array([""], dtype=object), np.array([0, len(codes)])
        return Clicks(np.ones(1, dtype=np.int64), user, self._items, starts, codes)

    def prepare_size(self, n_clicks: int, window: int) -> None:
        """Make the tables for all who have that many clicks."""
        seen = self._one(np.arange(n_clicks, dtype=np.int32))
        self.begin(seen, None, window, "look_up", ONE)

    def is_ready(self, n_clicks: int, window: int) -> bool:
        """Are they made?"""
        return self._chances.tables.has(window, len(self._items) - n_clicks)

    def table_bytes(self) -> int:
        """Memory of the tables."""
        return self._chances.tables.nbytes

    def drop_tables(self, window: int) -> None:
        """Forget those of a window."""
        self._chances.tables.drop(window)

    def draw_ranks(
        self, seen: Clicks, rows: NDArray[np.int64] | None, n_draws: int, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """``counts[item, rank - 1]`` of rankings drawn for one user: clicked items and others, each
        in the order of the user's own consensus, at the alphas of the grid."""
        personal, one, codes = self._fit, slice(0, 1), np.empty(0, dtype=np.int32)
        rankings = personal.rankings_of(personal.scores_for(seen, one, rows))
        shares = personal.alpha_shares_of(seen, one, rankings)[0]
        counts = np.zeros((seen.n_items, seen.n_items), dtype=np.int64)
        is_clicked = np.isin(np.argsort(rankings[0]), seen.codes)
        for group, first in ((is_clicked, 0), (~is_clicked, len(seen.codes))):
            size = int(group.sum())
            if size:
                centers = np.tile(np.arange(1, size + 1, dtype=np.int32), (len(shares), 1))
                law = (codes, centers, personal.alphas / seen.n_items, shares, n_draws, rng)
                items = np.argsort(rankings[0])[group]
                counts[items, first : first + size] = draw_ranks_of(*law)
        return counts
